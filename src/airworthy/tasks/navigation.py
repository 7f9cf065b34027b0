"""Flying to a goal through obstacles: limits, success and classes of failure, as pure functions and a watch over a batch.

The protocol is that of FLYINGTRUST (arXiv 2510.26588) as docs/benchmarks/navigation.md states it: take off, settle at start,
be given the goal, be inside 2 m of it and stay there, within 90 s. A watch is told the state of every flight at each tick; what
it says of a flight depends on that flight alone.

What is measured on the way of a navigation flight, accumulated tick by tick over a batch, nothing stored in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, radians

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayBool, ArrayLike
from airworthy.core.schema import check_fields, check_signs

__all__ = [
    "DIAGNOSTICS",
    "FAILURES",
    "NAVIGATION_OUTCOMES",
    "FlightMeter",
    "GoalWatch",
    "NavigationProtocol",
    "SettleWatch",
    "Tick",
    "acceleration_limit",
    "take_off",
]


FAILURES: tuple[str, ...] = (
    "collision",
    "not_at_goal",
    "timeout_no_path",
    "out_of_bounds",
    "diverged",
    "planner_crash",
)
"""Classes of failure: contact with anything; stable, but not at the goal; still under way, or without a path, when time was
over; left the area; tilted over or not finite; the pilot raised, did not answer in time or gave what is no command."""
NAVIGATION_OUTCOMES: tuple[str, ...] = ("success", *FAILURES)
FLYING = ""
"""Outcome of a flight that has none yet."""
GRAVITY = 9.81


@dataclass(frozen=True)
class NavigationProtocol:
    """Limits and thresholds."""

    time_limit_s: float = 90.0
    """From the goal being issued to the end."""
    goal_radius_m: float = 2.0
    """At the goal: within this distance of it ..."""
    goal_speed_m_s: float = 0.5
    """... and slower than this ..."""
    goal_hold_s: float = 2.0
    """... for this long."""
    settle_speed_m_s: float = 0.2
    """Settled at the start: slower than this ..."""
    settle_hold_s: float = 1.0
    """... for this long."""
    settle_limit_s: float = 20.0
    """Longest time from the ground to the goal being issued."""
    climb_speed_m_s: float = 1.0
    """Peak speed of the take-off."""
    tilt_limit_deg: float = 100.0
    """Tilted further, a flight has diverged."""
    speed_m_s: float = 4.0
    """Cap that every method is given."""
    acceleration_m_s2: float = 6.0
    """Cap that every method is given, or the most of it (`acceleration_limit`)."""
    ceiling_is_solid: bool = False
    """Touching the scenario's ceiling is a collision; else a centre farther above it than `above_m` is out of bounds."""
    above_m: float = 0.3
    """How far a centre may go above a ceiling that is not solid."""

    def __post_init__(self) -> None:
        check_fields(self, "NavigationProtocol.")
        check_signs(self, "The protocol's", zero=False)


def acceleration_limit(thrust_to_weight: ArrayLike, common: float = 6.0, share: float = 0.8) -> Array:
    """Return a_max = min(common, share g sqrt(TWR^2 - 1)) [m/s^2]: what a vehicle can do sideways while it holds its height.

    Args:
        thrust_to_weight: TWR, (n,); 1 or less gives 0.
        common: Cap [m/s^2].
        share: Of what is left beside hovering.
    """
    ratio = np.asarray(thrust_to_weight, np.float64)
    return np.minimum(common, share * GRAVITY * np.sqrt(np.maximum(ratio**2 - 1.0, 0.0)))


def take_off(time: ArrayLike, ground: ArrayLike, top: ArrayLike, speed: float) -> tuple[Array, Array, Array]:
    """Return the height [m], climb [m/s] and acceleration [m/s^2] of a vertical take-off: a quintic from rest to rest, then
    held.

    Args:
        time: Since it began [s], (n,).
        ground: Height where it begins [m], (n,).
        top: Height where it ends [m], (n,).
        speed: Peak of the climb [m/s]; a quintic's is 15/8 of its mean.
    """
    low = np.asarray(ground, np.float64)
    rise = np.asarray(top, np.float64) - low
    # 15/8: peak over mean speed of the quintic. Half a second at least, or a short rise would ask for a jerk that no vehicle
    # has.
    duration = np.maximum(1.875 * np.abs(rise) / speed, 0.5)
    # Clipped to the end, where speed and acceleration are zero: the set-point then stays.
    s = np.clip(np.asarray(time, np.float64) / duration, 0.0, 1.0)
    height = low + rise * s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
    climb = rise / duration * 30.0 * s**2 * (1.0 - s) ** 2
    push = rise / duration**2 * 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s)
    return np.asarray(height), np.asarray(climb), np.asarray(push)


class SettleWatch:
    """Who has arrived at the start and hovers there.

    Args:
        start: World [m], (n, 3).
        protocol: Thresholds.
        near: Farthest from the start [m].
    """

    def __init__(self, start: ArrayLike, protocol: NavigationProtocol, near: float = 0.5):
        self._start, self._protocol, self._near = np.asarray(start, np.float64), protocol, near
        self._since = np.full(len(self._start), np.nan)
        self.settled = np.zeros(len(self._start), bool)
        """(n,)"""

    def update(self, time: ArrayLike, position: ArrayLike, velocity: ArrayLike) -> ArrayBool:
        """Take in a tick.

        Args:
            time: Since the take-off began [s], (n,).
            position: World [m], (n, 3).
            velocity: World [m/s], (n, 3).

        Returns:
            Who has settled at this tick, not before, (n,).
        """
        time = np.asarray(time, np.float64)
        away = np.linalg.norm(np.asarray(position, np.float64) - self._start, axis=1)
        slow = np.linalg.norm(np.asarray(velocity, np.float64), axis=1) < self._protocol.settle_speed_m_s
        good = slow & (away < self._near)
        # Whoever drifts off or speeds up starts anew: the hold is one without a break.
        self._since = np.where(good, np.where(np.isnan(self._since), time, self._since), np.nan)
        held = good & (time - self._since >= self._protocol.settle_hold_s - 1e-9)
        new = held & ~self.settled
        self.settled |= held
        return new


class GoalWatch:
    """Judges a batch of flights to their goals, tick by tick.

    Args:
        goal: World [m], (n, 3).
        lower: Corner of the area [m], (n, 3).
        upper: Opposite corner, its z the ceiling [m], (n, 3).
        radius: Of each body [m], (n,).
        protocol: Limits.
    """

    def __init__(self, goal: ArrayLike, lower: ArrayLike, upper: ArrayLike, radius: ArrayLike, protocol: NavigationProtocol):
        self.protocol = protocol
        self._goal, self._lower = np.asarray(goal, np.float64), np.asarray(lower, np.float64)
        self._upper = np.array(upper, np.float64)
        count = len(self._goal)
        if protocol.ceiling_is_solid:
            self._ceiling = self._upper[:, 2] - np.broadcast_to(np.asarray(radius, np.float64), (count,))
        # After the solid ceiling was taken from it: only the bound that ends a flight without contact is lifted.
        self._upper[:, 2] += protocol.above_m
        self.outcome = np.full(count, FLYING, dtype="U16")
        """(n,); "" while it flies."""
        self.end = np.full(count, np.nan)
        """When it was decided [s], (n,)."""
        self.arrival = np.full(count, np.nan)
        """When it was inside the goal's radius first [s], (n,)."""
        self._held = np.full(count, np.nan)
        self._still = np.full(count, np.nan)
        # Compared with the cosine that the attitude matrix holds: no arc cosine per flight and tick.
        self._steep = cos(radians(protocol.tilt_limit_deg))

    @property
    def active(self) -> ArrayBool:
        """Flights that are not decided, (n,)."""
        return self.outcome == FLYING

    def fail(self, who: ArrayLike, outcome: str, time: ArrayLike) -> ArrayBool:
        """End flights that are still flying.

        Args:
            who: Mask (n,).
            outcome: Of `NAVIGATION_OUTCOMES`.
            time: When [s], (n,) or one.

        Returns:
            Whom it ended, (n,).
        """
        # The first decision stands: what follows a failure, such as a tumbling wreck out of bounds, is not another one.
        new = np.asarray(who, bool) & self.active
        self.outcome[new] = outcome
        self.end[new] = np.broadcast_to(np.asarray(time, np.float64), new.shape)[new]
        return new

    def update(
        self,
        time: ArrayLike,
        position: ArrayLike,
        velocity: ArrayLike,
        upright: ArrayLike,
        impact: ArrayLike,
        diverged: ArrayLike,
        searching: ArrayLike = False,
    ) -> ArrayBool:
        """Take in a tick; of a flight that is decided nothing changes.

        Args:
            time: Since the goal was issued [s], (n,).
            position: World [m], (n, 3).
            velocity: World [m/s], (n, 3).
            upright: Cosine of the tilt, (n,).
            impact: Time of the first contact [s], NaN where there was none, (n,).
            diverged: The simulation has given it up, (n,).
            searching: The pilot says that it has no path, (n,) or one; tells the two failures at the time limit apart.

        Returns:
            Who was decided at this tick, (n,).
        """
        time, position = np.asarray(time, np.float64), np.asarray(position, np.float64)
        before = self.active
        rules, speed = self.protocol, np.linalg.norm(np.asarray(velocity, np.float64), axis=1)
        finite = np.isfinite(position).all(axis=1) & np.isfinite(speed)
        touched = ~np.isnan(np.asarray(impact, np.float64))
        # Rules in the order of their rank: of several at one tick the first decides. A contact ends at its own time, between
        # ticks.
        self.fail(touched, "collision", np.where(touched, impact, 0.0))
        if rules.ceiling_is_solid:
            self.fail(position[:, 2] > self._ceiling, "collision", time)
        self.fail(np.asarray(diverged, bool) | ~finite | (np.asarray(upright) < self._steep), "diverged", time)
        self.fail(((position < self._lower) | (position > self._upper)).any(axis=1), "out_of_bounds", time)
        inside = np.linalg.norm(position - self._goal, axis=1) <= rules.goal_radius_m
        self.arrival = np.where(self.active & inside & np.isnan(self.arrival), time, self.arrival)
        slow = speed < rules.goal_speed_m_s
        self._held = _since(inside & slow, self._held, time)
        self._still = _since(slow, self._still, time)
        # Ticks are sums of a period that binary numbers do not hold: without 1e-9 a hold would take one tick more.
        self.fail(time - self._held >= rules.goal_hold_s - 1e-9, "success", time)
        over = time >= rules.time_limit_s - 1e-9
        # Hovering elsewhere is a wrong goal, anything else, or a pilot still searching, a lack of a path.
        stable = (time - self._still >= rules.goal_hold_s - 1e-9) & ~inside & ~np.asarray(searching, bool)
        self.fail(over & stable, "not_at_goal", time)
        self.fail(over, "timeout_no_path", time)
        return before & ~self.active


def _since(holds: ArrayBool, since: Array, time: Array) -> Array:
    """From when on something has held without a break; NaN where it does not hold."""
    return np.where(holds, np.where(np.isnan(since), time, since), np.nan)


CLEARANCE_MAX = 10.0
"""Distances are measured up to here [m]."""

DIAGNOSTICS: tuple[str, ...] = (
    "path_length_m",
    "speed_mean_m_s",
    "speed_max_m_s",
    "clearance_min_m",
    "jerk_integral",
    "snap_integral",
    "control_effort",
    "tracking_rmse_m",
    "thrust_saturation",
    "rate_saturation",
)
"""Of every flight from the goal being issued to its end: integrals of squared jerk [m^2/s^5] and snap [m^2/s^7] of the flown
path, of the mean squared share of full rotor command [s]; root mean square distance to the set-point [m], NaN where the pilot
gives none; shares of time with a rotor command beyond a limit, and with a body rate beyond `RATE_LIMIT`."""
RATE_LIMIT = 6.0
"""Roll and pitch rate that counts as saturated [rad/s]: the limit of published controllers (planners specification, 10.4)."""


@dataclass(frozen=True)
class Tick:
    """The motion of n flights at one tick."""

    time: Array
    """Since the goal was issued [s], (n,)."""
    position: Array
    """World [m], (n, 3)."""
    velocity: Array
    """World [m/s], (n, 3)."""
    attitude: Array
    """Quaternion x, y, z, w, body to world, (n, 4)."""
    body_rate: Array
    """Body [rad/s], (n, 3)."""
    force: Array
    """Specific force, body [m/s^2], (n, 3)."""
    effort: Array
    """Mean over rotors of the squared share of full command, (n,)."""
    saturated: Array
    """Share of the tick with a rotor command beyond a limit, (n,)."""
    wanted: Array | None = None
    """Position that the tick's command asked for [m], (n, 3); NaN or None where it asked for none."""


class FlightMeter:
    """Accumulates `DIAGNOSTICS`.

    Derivatives of the path are differences of the accelerations at successive ticks, which the simulation gives exactly, so
    that no position is differentiated four times.

    Args:
        count: Flights.
        period: Between ticks [s].
    """

    def __init__(self, count: int, period: float):
        self._period = period
        self._sums = {name: np.zeros(count) for name in ("path", "jerk", "snap", "effort", "off", "full", "turning")}
        self._ticks, self._aimed = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self._last: Tick | None = None
        self._pull, self._jerk = np.full((count, 3), np.nan), np.full((count, 3), np.nan)
        self._fastest = np.zeros(count)
        self.clearance = np.full(count, CLEARANCE_MAX)
        """Least distance of the body to anything [m], (n,); told by `near`."""

    def update(self, tick: Tick, active: ArrayBool) -> None:
        """Take in a tick of the flights that are active (n,)."""
        step = np.zeros(len(active))
        if self._last is not None:
            step = np.linalg.norm(tick.position - self._last.position, axis=1)
        # Acceleration in the world: specific force less gravity.
        pull = frames.rotate(tick.attitude, tick.force) - (0.0, 0.0, GRAVITY)
        jerk = (pull - self._pull) / self._period
        snap = (jerk - self._jerk) / self._period
        begun = self._ticks > 0
        self._add("path", step, active & begun)
        self._add("jerk", np.sum(jerk**2, axis=1) * self._period, active & begun)
        # A difference of differences needs three ticks.
        self._add("snap", np.sum(snap**2, axis=1) * self._period, active & (self._ticks > 1))
        self._add("effort", tick.effort * self._period, active & begun)
        self._add("full", tick.saturated, active & begun)
        self._add("turning", np.abs(tick.body_rate[:, :2]).max(axis=1) > RATE_LIMIT, active & begun)
        if tick.wanted is not None:
            off = np.sum((tick.position - tick.wanted) ** 2, axis=1)
            aimed = active & begun & np.isfinite(off)
            self._add("off", off, aimed)
            # Counted apart: a pilot may give a position at some ticks and a velocity at others.
            self._aimed += aimed
        speed = np.linalg.norm(tick.velocity, axis=1)
        self._fastest = np.where(active & (speed > self._fastest), speed, self._fastest)
        self._ticks += active
        self._pull, self._jerk = pull, jerk
        self._last = tick

    def near(self, distance: ArrayLike, who: ArrayBool) -> None:
        """Note the distance of bodies to what is nearest [m], (n,)."""
        found = np.asarray(distance, np.float64)
        self.clearance = np.where(who & (found < self.clearance), found, self.clearance)

    def values(self, duration: Array) -> dict[str, Array]:
        """Return `DIAGNOSTICS` of every flight (n,).

        Args:
            duration: From the goal being issued to the end [s], (n,).
        """
        # n ticks bound n - 1 intervals.
        sums, shares = self._sums, np.maximum(self._ticks - 1, 1)
        # Flights that ended at once have no duration; their mean speed is set to 0.
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = sums["path"] / np.where(duration > 0.0, duration, np.inf)
            off = np.where(self._aimed > 0, np.sqrt(sums["off"] / np.maximum(self._aimed, 1)), np.nan)
        found = (
            sums["path"],
            mean,
            self._fastest,
            self.clearance,
            sums["jerk"],
            sums["snap"],
            sums["effort"],
            off,
            sums["full"] / shares,
            sums["turning"] / shares,
        )
        return dict(zip(DIAGNOSTICS, found, strict=True))

    def _add(self, name: str, value: ArrayLike, who: ArrayBool) -> None:
        self._sums[name] += np.where(who, value, 0.0)
