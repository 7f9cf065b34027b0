"""One round of a plan: what was predicted, joined, and each segment given the time that it needs to pass its checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from airworthy.pilots.boundary.certificate import clearance_check, floor_check
from airworthy.pilots.boundary.plans import PlanOptions
from airworthy.pilots.boundary.stretching import Stretched, stretch
from airworthy.pilots.boundary.window import STOP_DISTANCE, Chain, Route
from airworthy.trajectories import Gate, Trajectory, prove, septic_through
from airworthy.trajectories.limits import usage

__all__ = ["Draft", "draft_of", "joined"]

Array = NDArray[np.float64]
_GLANCE = np.linspace(0.02, 0.98, 17)
_SLOWEST_STOP = 0.5  # below this speed 2 d / v would take ever longer [m/s]


@dataclass(frozen=True)
class Draft:
    """One round of planning."""

    route: Route
    chain: Chain
    positions: Array
    speeds: Array
    predicted: Array
    mended: Stretched | None
    """None where the predictor had no answer."""


def draft_of(route: Route, chain: Chain, gates: Sequence[Gate], options: PlanOptions) -> Draft:
    """Join a chain of predictions, stop behind the last gate, and stretch what fails."""
    speeds = np.concatenate(([0.0], chain.speeds, [0.0]))
    last = float(chain.speeds[-1])
    if not np.isfinite(last):
        return Draft(route, chain, route.positions, speeds, np.append(chain.durations, np.nan), None)
    # v^2 metres ask for the same deceleration at every speed.
    distance = max(STOP_DISTANCE, last**2)
    positions = route.stopping_at(distance)
    predicted = np.append(chain.durations, 2.0 * distance / max(last, _SLOWEST_STOP))
    return Draft(route, chain, positions, speeds, predicted, _mended(positions, route, speeds, predicted, gates, options))


def _mended(
    positions: Array, route: Route, speeds: Array, durations: Array, gates: Sequence[Gate], options: PlanOptions
) -> Stretched:
    """Durations with which every segment passes by itself, where there are any."""
    if _keeps(joined(positions, route, speeds, durations, options), gates, options):
        count = len(durations)
        return Stretched(durations, np.zeros(count, np.int64), np.ones(count, dtype=bool))

    headings = np.unwrap(route.headings) + options.yaw_offset
    if not options.ramp:  # the whole path keeps its first heading, on which body rates depend
        headings = np.full_like(headings, headings[0])

    def passes(index: int, times: Array) -> bool:
        pair, span = slice(index, index + 2), times[index : index + 1]
        one = septic_through(
            positions[pair], route.directions[pair], speeds[pair], span, headings[pair], options.ramp, options.limits.yaw_rate
        )
        return _keeps(one, gates, options)

    return stretch(durations, passes, options.factor, options.tries)


def _keeps(path: Trajectory, gates: Sequence[Gate], options: PlanOptions) -> bool:
    few = path.sample((path.knots[:-1, None] + np.diff(path.knots)[:, None] * _GLANCE).reshape(-1))
    return (
        # One sample over the limit settles it, at a tenth of a proof's price.
        usage(options.limits, few) <= 1.0
        and prove(path, options.limits).proven
        and floor_check(path, options.floor).verdict == "proven"
        and clearance_check(path, gates, options.clearance).verdict == "proven"
    )


def joined(positions: Array, route: Route, speeds: Array, durations: Array, options: PlanOptions) -> Trajectory:
    """The whole path through positions (n + 2, 3) at speeds (n + 2,), with its yaw."""
    headings = np.unwrap(route.headings) + options.yaw_offset
    return septic_through(positions, route.directions, speeds, durations, headings, options.ramp, options.limits.yaw_rate)
