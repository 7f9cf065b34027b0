"""Tasks with a place instead of a path: reach a goal in time, hold a set-point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from airworthy.core.arrays import ArrayBool, ArrayLike, NDArray
from airworthy.core.errors import unknown_name
from airworthy.core.schema import check_fields, check_signs

# ---- Names of what can become of a flight, and the events that decide it ----------------------------------------------------

OUTCOMES: tuple[str, ...] = (
    "success",
    "success_recovered",
    "partial",
    "collision",
    "off_course",
    "not_at_goal",
    "timeout",
    "out_of_bounds",
    "diverged",
    "pilot_error",
    "aborted",
)
"""Every outcome, spelled the same everywhere, best first."""

SUCCESSES: frozenset[str] = frozenset({"success", "success_recovered"})
"""The outcomes that count as success."""


class FlightStatus(IntEnum):
    """Status code of one recorded step."""

    FLYING = 0
    DIVERGED = 1
    COLLISION = 2
    OUT_OF_BOUNDS = 3
    PILOT_FAILED = 4
    """Its pilot gave it up, and nobody steers it any more."""


def check_outcome(name: str) -> str:
    """Return the name itself; raises UnknownNameError where it is not an outcome."""
    if name not in OUTCOMES:
        raise unknown_name("outcome", name, OUTCOMES)
    return name


def first_match(rules: Sequence[tuple[ArrayLike, str]], otherwise: str) -> NDArray[np.str_]:
    """Return the outcome of each flight: the first rule that holds.

    Args:
        rules: Masks (flights,) and the outcome that each stands for.
        otherwise: Where none holds.
    """
    masks = np.broadcast_arrays(*(np.atleast_1d(np.asarray(mask, dtype=bool)) for mask, _ in rules))
    # A misspelt outcome would otherwise be a class of its own in every table that counts them.
    names = [np.asarray(check_outcome(name)) for _, name in rules]
    # `select` takes the first mask that holds, which is what makes the order of the rules their rank.
    return np.select(list(masks), names, default=np.asarray(check_outcome(otherwise))).astype(np.str_)


def collision_events(clearance: ArrayLike, start: float = 0.15, end: float = 0.25) -> ArrayBool:
    """Return samples at which a collision event starts.

    An event starts when the clearance drops below `start` and ends when it rises above `end`, so that sliding along a wall
    counts once. A sample without a clearance (NaN) changes nothing.

    Args:
        clearance: Distance from the vehicle's centre to the scene over the time of one flight [m], shape (samples,).
        start: The vehicle's radius [m].
        end: Clearance at which it counts as free again [m], not under `start`.
    """
    clearance = np.asarray(clearance, dtype=np.float64)
    # +1 where an event must be on, -1 where it must be off, 0 in the band between, which keeps what was before.
    mark = np.where(clearance < start, 1, np.where(clearance > end, -1, 0))
    # Index of the last sample that decided anything: what lies in the band inherits it. NaN compares false twice and so is in
    # it.
    last = np.maximum.accumulate(np.where(mark != 0, np.arange(mark.size), -1)) if mark.size else mark
    inside = np.where(last >= 0, mark[last] == 1, False) if mark.size else np.zeros(0, dtype=bool)
    # Only rising edges are events; a flight that begins in contact has one at its first sample.
    return inside & ~np.concatenate(([False], inside[:-1]))[: inside.size]


# -----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GoalProtocol:
    """Reach a place within a time."""

    radius_m: float = 0.5
    """At the goal: within this distance of it."""
    timeout_s: float = 60.0
    """Longest time to get there."""
    collision_ends: bool = True
    """Whether a collision on the way is a failure even where the goal was reached afterwards."""

    def __post_init__(self) -> None:
        check_fields(self, "GoalProtocol.")
        check_signs(self, "The protocol's")


@dataclass(frozen=True)
class HoldProtocol:
    """Stay at a set-point."""

    radius_m: float = 0.2
    """Held: within this distance of the set-point ..."""
    settle_s: float = 2.0
    """... from this time on until the end."""

    def __post_init__(self) -> None:
        check_fields(self, "HoldProtocol.")
        check_signs(self, "The protocol's")


def time_to_goal(t: ArrayLike, position: ArrayLike, goal: ArrayLike, radius: float) -> float:
    """Return the time of the first sample within `radius` [m] of the goal; NaN where there is none.

    Args:
        t: Times of one flight [s], shape (samples,).
        position: World [m], shape (samples, 3); rows that are not finite are never at the goal.
        goal: World [m], shape (3,).
        radius: [m].
    """
    distance = np.linalg.norm(np.asarray(position, dtype=np.float64) - np.asarray(goal, dtype=np.float64), axis=-1)
    # NaN compares false, so samples without a position need no mask of their own.
    at_goal = np.flatnonzero(distance <= radius)
    return float(np.asarray(t, dtype=np.float64)[at_goal[0]]) if at_goal.size else float("nan")


def classify_goal(
    protocol: GoalProtocol,
    *,
    diverged: ArrayLike,
    out_of_bounds: ArrayLike,
    collisions: ArrayLike,
    goal_time: ArrayLike,
    duration: ArrayLike,
) -> NDArray[np.str_]:
    """Return the outcome of each flight to a goal, the first that matches.

    Args:
        protocol: Thresholds.
        diverged: Whether the state ceased to be finite or sane, shape (flights,), as all others.
        out_of_bounds: Whether it left the world before it was at the goal.
        collisions: Number of collision events before it was at the goal.
        goal_time: `time_to_goal` [s]; NaN where it never was.
        duration: Time flown [s].
    """
    # A goal that was never reached has the time NaN, which compares false.
    reached = np.asarray(goal_time, dtype=np.float64) <= protocol.timeout_s
    collided = np.asarray(collisions) > 0
    return first_match(
        [
            (diverged, "diverged"),
            (collided & (~reached | protocol.collision_ends), "collision"),
            (out_of_bounds, "out_of_bounds"),
            # Behind the rule on collisions: only a protocol that lets flights go on after one comes here.
            (reached & collided, "success_recovered"),
            (reached, "success"),
            (np.asarray(duration, dtype=np.float64) >= protocol.timeout_s, "timeout"),
        ],
        otherwise="not_at_goal",
    )


def hold_error(t: ArrayLike, position: ArrayLike, setpoint: ArrayLike, settle: float) -> float:
    """Return the largest distance from the set-point after `settle` seconds of one flight [m]; NaN where it did not last so
    long.

    Args:
        t: Times [s], shape (samples,).
        position: World [m], shape (samples, 3); a row that is not finite makes the error infinite.
        setpoint: World [m], shape (3,).
        settle: [s], counted from the first sample.
    """
    t = np.asarray(t, dtype=np.float64)
    if t.size == 0:
        return float("nan")
    # Counted from the first sample, not from 0: records of flights that were cut out of longer ones begin later.
    settled = t >= t[0] + settle
    distance = np.linalg.norm(np.asarray(position, dtype=np.float64) - np.asarray(setpoint, dtype=np.float64), axis=-1)[settled]
    # A gap in the record must not make a flight look better than it was.
    return float(np.max(np.where(np.isfinite(distance), distance, np.inf))) if distance.size else float("nan")


def classify_hold(
    protocol: HoldProtocol, *, diverged: ArrayLike, out_of_bounds: ArrayLike, collisions: ArrayLike, error: ArrayLike
) -> NDArray[np.str_]:
    """Return the outcome of each flight that held a set-point, (n,); the first that applies.

    Args:
        protocol: Its radius decides about success.
        diverged: Whether the simulation diverged, (n,).
        out_of_bounds: Whether the flight left its bounds, (n,).
        collisions: Their number, (n,).
        error: `hold_error` [m], (n,); NaN where the flight ended before it settled.
    """
    error = np.asarray(error, dtype=np.float64)
    return first_match(
        [
            (diverged, "diverged"),
            (np.asarray(collisions) > 0, "collision"),
            (out_of_bounds, "out_of_bounds"),
            # Behind the classes with a cause: a flight that ended early for one of them has no error either.
            (np.isnan(error), "aborted"),
            (error > protocol.radius_m, "not_at_goal"),
        ],
        otherwise="success",
    )
