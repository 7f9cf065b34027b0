"""From a course to a checked plan: predict gate by gate, join the segments, prove, mend where needed, or refuse.

Source: spec/boundary_predictor section 8. The start acts as gate 0 at rest. After the last gate the flight ends at rest
max(0.8 m, v^2) beyond it. A segment that fails is stretched; where no stretch helps, its faster end is slowed and the
rest predicted again, which is ours: the paper's grid ends at 1 m/s, so that a faster chain leaves what the predictor knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayInt
from airworthy.core.errors import AirworthyError
from airworthy.gates.planner.certificate import (
    BoundaryPlan,
    Certificate,
    GridCheck,
    PlanOptions,
    Stretched,
    certify,
    clearance_check,
    floor_check,
    stretch,
)
from airworthy.gates.planner.window import (
    RANGES,
    STOP_DISTANCE,
    GateRoute,
    PlanChain,
    Predictor,
    predict_chain,
    route_of,
    situations_of,
)
from airworthy.trajectories import Course, Gate, Trajectory, prove, septic_through
from airworthy.trajectories.limits import usage

__all__ = ["BoundaryPlan", "Draft", "PlanOptions", "draft_of", "joined", "plan", "plan_gates", "plan_many"]

# -----------------------------------------------------------------------------------------------------------------------------
# One round of a plan: what was predicted, joined, and each segment given the time that it needs to pass its checks.

# Ours: 17 samples a segment, ends aside, where neighbours share the state.
_GLANCE = np.linspace(0.02, 0.98, 17)
_DECIDED = 0.5  # relative gap that does for yes or no: where the limit lies inside, it is halved all the same
_SLOWEST_STOP = 0.5  # below this speed 2 d / v would take ever longer [m/s]


@dataclass(frozen=True)
class Draft:
    """One round of planning."""

    route: GateRoute
    chain: PlanChain
    positions: Array
    speeds: Array
    predicted: Array
    mended: Stretched | None
    """None where the predictor had no answer."""


def draft_of(route: GateRoute, chain: PlanChain, gates: Sequence[Gate], options: PlanOptions) -> Draft:
    """Join a chain of predictions, stop behind the last gate, and stretch what fails.

    Args:
        route: Start, gates and end.
        chain: What was predicted along it.
        gates: Whose frames are kept clear of.
        options: What must be kept.
    """
    speeds = np.concatenate(([0.0], chain.speeds, [0.0]))
    last = float(chain.speeds[-1])
    if not np.isfinite(last):
        return Draft(route, chain, route.positions, speeds, np.append(chain.durations, np.nan), None)
    # v^2 metres ask for the same deceleration at every speed.
    # Source: spec/boundary_predictor section 8, ours there: max(0.8, v^2) m, duration 2 d / v.
    distance = max(STOP_DISTANCE, last**2)
    positions = route.stopping_at(distance)
    predicted = np.append(chain.durations, 2.0 * distance / max(last, _SLOWEST_STOP))
    return Draft(route, chain, positions, speeds, predicted, _mended(positions, route, speeds, predicted, gates, options))


def _mended(
    positions: Array, route: GateRoute, speeds: Array, durations: Array, gates: Sequence[Gate], options: PlanOptions
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
        one = septic_through(positions[pair], route.directions[pair], speeds[pair], span, headings[pair], *_turning(options))
        return _keeps(one, gates, options)

    return stretch(durations, passes, options.factor, options.tries)


def _keeps(path: Trajectory, gates: Sequence[Gate], options: PlanOptions) -> bool:
    few = path.sample((path.knots[:-1, None] + np.diff(path.knots)[:, None] * _GLANCE).reshape(-1))
    return (
        # One sample over the limit settles it, at a tenth of a proof's price.
        usage(options.limits, few) <= 1.0
        and prove(path, options.limits, _DECIDED).proven
        and floor_check(path, options.floor).verdict == "proven"
        and clearance_check(path, gates, options.clearance).verdict == "proven"
    )


def joined(positions: Array, route: GateRoute, speeds: Array, durations: Array, options: PlanOptions) -> Trajectory:
    """Return the whole path through positions (n + 2, 3) at speeds (n + 2,), with its yaw.

    Args:
        positions: (n + 2, 3) [m], world.
        route: With the headings there.
        speeds: (n + 2,) [m/s].
        durations: Of the n + 1 segments [s].
        options: Whether yaw turns, and by what.
    """
    headings = np.unwrap(route.headings) + options.yaw_offset
    return septic_through(positions, route.directions, speeds, durations, headings, *_turning(options))


def _turning(options: PlanOptions) -> tuple[bool, float | None, float | None]:
    return options.ramp, options.limits.yaw_rate, options.limits.yaw_acceleration


# -----------------------------------------------------------------------------------------------------------------------------

# Ours: at 2 cm/s the limit of eq. 3 leaves all of a0, so that a lower speed allows nothing more.
_STILL = 0.02  # no speed below this is worth lowering [m/s]


def plan(course: Course, predictor: Any, options: PlanOptions | None = None, lap_count: int | None = None) -> BoundaryPlan:
    """Plan a course of gates.

    Args:
        course: Of kind "gates"; see `plan_gates` for gates without one.
        predictor: A network, an oracle, or anything callable: situations (k, 8) -> speed and duration (k, 2). An object
            with a method `predict` is asked through it.
        options: What must be kept.
        lap_count: Instead of the course's own.

    Raises:
        AirworthyError: Not a course of gates, or gates that no path joins. A course that cannot be flown is no error: it
            comes back refused.
    """
    return plan_many([course], predictor, options, lap_count)[0]


def plan_gates(
    gates: Sequence[Gate],
    start: tuple[float, float, float],
    start_yaw: float,
    predictor: Any,
    options: PlanOptions | None = None,
) -> BoundaryPlan:
    """Plan as `plan`, from rest at `start` [m], heading `start_yaw` [rad], through gates in order.

    Args:
        gates: In the order to be flown.
        start: Where the flight begins, at rest [m], world.
        start_yaw: Heading there [rad].
        predictor: As of `plan`.
        options: What must be kept.
    """
    return plan(Course("gates", "gates", gates=tuple(gates), start=start, start_yaw=start_yaw), predictor, options)


def plan_many(
    courses: Sequence[Course], predictor: Any, options: PlanOptions | None = None, lap_count: int | None = None
) -> list[BoundaryPlan]:
    """Plan as `plan` for many courses: those with equally many gates are asked about together.

    Args:
        courses: Of kind "gates".
        predictor: As of `plan`.
        options: What must be kept.
        lap_count: Instead of the courses' own.
    """
    chosen = PlanOptions() if options is None else options
    gates = [_gates_of(course, lap_count) for course in courses]
    routes = [
        route_of(course.start, course.start_yaw, own, chosen.headings) for course, own in zip(courses, gates, strict=True)
    ]
    ask = _Ask(getattr(predictor, "predict", predictor), _ranges(predictor, chosen))
    plans: dict[int, BoundaryPlan] = {}
    # Equally long chains are asked together: a batch has one shape.
    for count in dict.fromkeys(route.count for route in routes):
        mine = [k for k, route in enumerate(routes) if route.count == count]
        chain = ask(np.stack([situations_of(routes[k]) for k in mine]), chosen.speed_cap)
        for row, k in enumerate(mine):
            plans[k] = _planned(courses[k].name, gates[k], routes[k], chain.row(row), ask, chosen)
    return [plans[k] for k in range(len(courses))]


@dataclass(frozen=True)
class _Ask:
    """A predictor and its ranges."""

    predict: Predictor
    ranges: Array | None

    def __call__(self, situations: Array, caps: Array | float) -> PlanChain:
        return predict_chain(situations, self.predict, self.ranges, caps)


def _gates_of(course: Course, lap_count: int | None) -> tuple[Gate, ...]:
    if course.kind != "gates":
        raise AirworthyError(f"The course {course.name!r} has {course.kind}, not gates: choose one of kind 'gates'.")
    count = course.lap_count if lap_count is None else lap_count
    # No laps would be a plan of no gates.
    if count < 1:
        raise AirworthyError(f"The number of laps must be 1 or more, but is {count!r}.")
    return course.gates * count


def _ranges(predictor: Any, options: PlanOptions) -> Array | None:
    if options.ranges is not None:
        return np.asarray(options.ranges, dtype=np.float64)
    own = getattr(predictor, "ranges", getattr(getattr(predictor, "contract", None), "ranges", RANGES))
    return None if own is None else np.asarray(own, dtype=np.float64)


def _planned(
    name: str, gates: tuple[Gate, ...], route: GateRoute, chain: PlanChain, ask: _Ask, options: PlanOptions
) -> BoundaryPlan:
    """Mend; where that fails, lower the faster end of the first segment that fails, and ask again from there."""
    caps, lowered = np.full(route.count, options.speed_cap), np.zeros(route.count, np.int64)
    while True:
        draft = draft_of(route, chain, gates, options)
        fast = _too_fast(draft, lowered, options.lowerings)
        if fast is None:
            return _checked(name, gates, draft, lowered, ask, options)
        # Below what was predicted, by the factor of a stretch, since no duration alone would do.
        caps[fast] = draft.speeds[fast + 1] / options.factor
        lowered[fast] += 1
        chain = ask(situations_of(route)[None], caps[None]).row(0)


def _too_fast(draft: Draft, lowered: ArrayInt, most: int) -> int | None:
    """Return the gate whose speed is to be lowered: the faster end of the first segment that fails; None where none is left."""
    if draft.mended is None:
        ends = [int(np.argmin(np.isfinite(draft.chain.speeds))) - 1]
    elif draft.mended.kept.all():
        return None
    else:
        failing = int(np.argmin(draft.mended.kept))
        # The faster end asks for more, so lowering it helps sooner.
        ends = sorted((failing - 1, failing), key=lambda gate: -draft.speeds[gate + 1])
    able = [gate for gate in ends if 0 <= gate < draft.route.count]
    return next((gate for gate in able if lowered[gate] < most and draft.speeds[gate + 1] > _STILL), None)


def _checked(
    name: str, gates: tuple[Gate, ...], draft: Draft, lowered: ArrayInt, ask: _Ask, options: PlanOptions
) -> BoundaryPlan:
    # Flown along its legs a course is as the predictor takes it, whatever its gates say.
    grid = GridCheck.of(draft.chain.beyond, draft.route.departure, ask.ranges if options.headings == "given" else None)
    path, certificate, counts = None, None, np.zeros(len(draft.predicted), np.int64)
    durations = draft.predicted
    if draft.mended is None:
        missing = int(np.argmin(np.isfinite(draft.chain.speeds)))
        reason = f"The predictor has no speed and duration for gate {missing + 1} of {len(gates)}."
    else:
        durations, counts = draft.mended.durations, draft.mended.counts
        path = joined(draft.positions, draft.route, draft.speeds, durations, options)
        certificate = certify(path, gates, options.limits, grid, options.clearance, options.floor)
        reason = _reason(certificate, draft.mended, options)
    return BoundaryPlan(
        name=name,
        gates=gates,
        route=draft.route,
        trajectory=path,
        certificate=certificate,
        speeds=draft.speeds,
        durations=durations,
        predicted=draft.predicted,
        situations=draft.chain.situations,
        beyond=draft.chain.beyond,
        stretched=counts,
        lowered=lowered,
        flyable=not reason,
        reason=reason,
    )


def _reason(certificate: Certificate, mended: Stretched, options: PlanOptions) -> str:
    """Return why a plan is refused, in one sentence; empty where it is not."""
    grid = certificate.grid
    if options.outside == "refuse" and not grid.geometry_inside:
        far = [f"{name} by {far:.3f}" for name, far in grid.farthest.items() if name != "v_prev"]
        if grid.turned:
            far.append(f"a gate's heading beside its leg by {grid.turned_by:.3f} rad")
        fields = ", ".join(far)
        return f"The course is outside the predictor's ranges ({fields})."
    if certificate.proven:
        return ""
    checks = (*certificate.limit.checks, certificate.clearance, certificate.floor)
    broken = next((check for check in checks if check.verdict != "proven"), None)
    if broken is None:
        fault = certificate.crossings.fault or "it could not be decided whether a gate is crossed"
        return f"The path does not pass the gates forwards, in order, and none else: {fault}."
    bad = [str(k + 1) for k in np.flatnonzero(~mended.kept)]
    where = f" on segment{'s' if len(bad) > 1 else ''} {', '.join(bad)}" if bad else ""
    after = f" after {options.tries} stretches by {options.factor:g}" if options.tries else ""
    after += f" and {options.lowerings} lower speeds" if options.lowerings else ""
    return f"{broken.quantity.capitalize()} is not kept{where}{after}: {broken}."
