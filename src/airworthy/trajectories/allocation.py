"""Times for waypoints: trapezoidal allocation, and minimum-snap durations shortened until limits bind."""

from __future__ import annotations

from itertools import product

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.trajectories.limits import Limits, dense_sample, path_usage, smallest_scale
from airworthy.trajectories.min_snap import IllConditionedError, hermite_spline
from airworthy.trajectories.polynomial import differentiate, evaluate
from airworthy.trajectories.proof import LimitProof, prove
from airworthy.trajectories.trajectory import Trajectory
from airworthy.trajectories.yaw import yaw_fixed, yaw_held_back

# Ours: a budget in work, not in time, so that every machine finds the same path.
EVALUATIONS = 600
"""Default number of splines that the search over durations may try."""
# Ours, like the grids of shares below; what lies between samples is left to the proof.
_NODES = np.linspace(0.0, 1.0, 17)
_STRETCH_BISECTIONS = 4
_FAR_BISECTIONS = 12
_HELD_SHARES = (1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05)
_RAISED_SHARES = (0.0, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)
SLOWEST = 1e4
"""Most that a trajectory is slowed beyond what its samples ask for."""
LEAST_LEG = 1e-6
"""A micrometre [m]: a leg of no length has no direction."""


def check_points(points: ArrayLike) -> Array:
    """Return waypoints as float64 (n, 3); raises AirworthyError unless there are 2 or more, finite, each apart from the one
    before."""
    array = np.asarray(points, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != 3 or len(array) < 2:
        raise AirworthyError(f"Waypoints must be 2 or more points (n, 3), but have shape {array.shape}.")
    if not np.all(np.isfinite(array)):
        raise AirworthyError("Waypoints must be finite numbers.")
    close = np.flatnonzero(np.linalg.norm(np.diff(array, axis=0), axis=1) < LEAST_LEG)
    if len(close):
        raise AirworthyError(f"Waypoints {close[0]} and {close[0] + 1} are the same point: remove one.")
    return array


def time_allocation_trapezoid(points: ArrayLike, speed: float, acceleration: float, stop: bool = False) -> Array:
    """Return the duration of each leg of a polyline flown with a trapezoidal speed profile, at rest at both ends.

    A corner that turns by an angle b is passed at speed (1 + cos b) / 2 of the limit, so straight on at full speed and a
    reversal at rest, lowered where braking or speeding up between corners asks for it.

    Args:
        points: [m], shape (n, 3).
        speed: Largest speed [m/s].
        acceleration: Largest acceleration along the path [m/s^2].
        stop: Stop at every point.

    Returns:
        Durations [s], shape (n - 1,).
    """
    path = check_points(points)
    if not (speed > 0.0 and acceleration > 0.0):
        raise AirworthyError(f"Speed and acceleration must be positive, but are {speed!r} and {acceleration!r}.")
    legs = np.diff(path, axis=0)
    length = np.linalg.norm(legs, axis=1)
    unit = legs / length[:, None]
    through = np.zeros(len(path))
    if not stop:
        # (1 + cos b) / 2: full speed straight on, rest at a reversal (ours; no corner of a polyline can be flown at speed).
        through[1:-1] = speed * 0.5 * (1.0 + np.sum(unit[1:] * unit[:-1], axis=1))
    # No corner is reached faster than the leg before lets the vehicle speed up, nor passed faster than the next lets it brake.
    for i in range(1, len(path)):
        through[i] = min(through[i], np.sqrt(through[i - 1] ** 2 + 2.0 * acceleration * length[i - 1]))
    for i in range(len(path) - 2, -1, -1):
        through[i] = min(through[i], np.sqrt(through[i + 1] ** 2 + 2.0 * acceleration * length[i]))
    before, after = through[:-1], through[1:]
    # On a leg too short for full speed the peak is where speeding up meets braking.
    top = np.minimum(speed, np.sqrt(0.5 * (before**2 + after**2) + acceleration * length))
    ramps = (2.0 * top**2 - before**2 - after**2) / (2.0 * acceleration)
    return (2.0 * top - before - after) / acceleration + (length - ramps) / top


def spline_through(points: ArrayLike, durations: ArrayLike) -> Array:
    """Return minimum-snap coefficients (n - 1, 3, 8) through points at rest at both ends, with given durations [s]."""
    path = np.asarray(points, dtype=np.float64)
    values = np.zeros((len(path), 4, 3))
    values[:, 0] = path
    fixed = np.zeros((len(path), 4), dtype=bool)
    fixed[:, 0] = True
    fixed[[0, -1]] = True
    return hermite_spline(np.asarray(durations, dtype=np.float64), values, fixed)


def shorten_durations(points: ArrayLike, durations: ArrayLike, limits: Limits, evaluations: int = EVALUATIONS) -> Array:
    """Return durations of least total time for which the minimum-snap path through points keeps its limits at samples.

    From the given ratios, legs that use little of the limits are first shortened together, then durations are changed one
    by one in ever smaller steps. Each trial is scaled as a whole to where the first limit binds, which for a path at rest
    at both ends is exact. Deterministic and bounded by `evaluations`.

    Args:
        points: [m], shape (n, 3).
        durations: To begin from [s], shape (n - 1,).
        limits: Bounds; those on yaw are left to what follows.
        evaluations: Most trials.
    """
    path, ratio = check_points(points), sensible_durations(check_points(points), durations, limits)
    best = ratio * _path_scale(path, ratio, limits)
    if len(best) < 2:
        return best
    best, left = _shorten_together(path, best, limits, evaluations - 1)
    return _shorten_singly(path, best, limits, left)


def sensible_durations(points: Array, durations: ArrayLike, limits: Limits) -> Array:
    """Return the same durations, unless the shortest are so short beside the longest that no search could mend them.

    A leg of a centimetre beside one of a kilometre is passed in a quarter of a millisecond by the trapezoidal rule: turning
    there asks for more than any scale of the whole can give, and double precision cannot find the spline at all. Then the
    shortest legs are given a share of the longest one's time, the one with which all is flown soonest.

    Args:
        points: (n, 3) [m].
        durations: Of the legs, (n - 1,) [s].
        limits: To be kept.

    Raises:
        AirworthyError: No share gives a spline.
    """
    first = np.asarray(durations, dtype=np.float64)
    raised = [np.maximum(first, share * np.max(first)) for share in _RAISED_SHARES]
    totals = [np.sum(trial) * _path_scale(points, trial, limits) for trial in raised]
    if not np.isfinite(min(totals)):
        spline_through(points, first)
    return raised[int(np.argmin(totals))] if min(totals) < 0.5 * totals[0] else first


def _shorten_together(path: Array, best: Array, limits: Limits, evaluations: int) -> tuple[Array, int]:
    """Shorten each leg by a power of the part of the limits it uses, while that helps; also what is left of the evaluations."""
    # Ours: a gentle power at first, halved when it overshoots.
    strength, trial = 0.3, best
    while evaluations > 0 and strength > 0.02:
        used = np.max(path_usage(limits, *_motion(path, trial)), axis=1)
        trial = trial * np.maximum(used, 0.05) ** strength
        trial = trial * _path_scale(path, trial, limits)
        evaluations -= 1
        if np.sum(trial) < np.sum(best) * (1.0 - 1e-5):
            best = trial
        else:
            strength, trial = 0.5 * strength, best
    return best, evaluations


def _shorten_singly(path: Array, best: Array, limits: Limits, evaluations: int) -> Array:
    """Pattern search: change one duration at a time, keep what shortens the whole, halve the step when nothing does."""
    # Ours: from 30 % down to 0.4 %.
    step = 0.3
    while evaluations > 0 and step > 0.004:
        improved = False
        for index, factor in product(range(len(best)), (1.0 - step, 1.0 + step)):
            if evaluations <= 0:
                break
            trial = best.copy()
            trial[index] *= factor
            trial *= _path_scale(path, trial, limits)
            evaluations -= 1
            if np.sum(trial) < np.sum(best) * (1.0 - 1e-6):
                best, improved = trial, True
        if not improved:
            step *= 0.5
    return best


def _path_scale(path: Array, durations: Array, limits: Limits) -> float:
    """Time scale at which the first limit binds at 17 samples per segment; infinite where there is no spline."""
    try:
        rows = [row.reshape(-1, 3) for row in _motion(path, durations)]
    except IllConditionedError:
        return np.inf  # a trial that double precision cannot judge is none
    return float(np.max(_binding_scale(limits, *rows)))


def _motion(path: Array, durations: Array) -> list[Array]:
    """Velocity, acceleration and jerk of the spline at 17 samples per segment, each (n - 1, 17, 3)."""
    coefficients, span = spline_through(path, durations), durations[:, None, None]
    return [np.moveaxis(evaluate(differentiate(coefficients, k)[..., None, :], _NODES) / span**k, 1, -1) for k in (1, 2, 3)]


def _binding_scale(limits: Limits, velocity: Array, acceleration: Array, jerk: Array) -> Array:
    """Per sample, the least time scale that keeps the limits: bisection between brackets of a factor 2."""
    # From a thousandth of the time on, doubled until nothing is broken: 40 doublings cover any unit.
    high = np.full(len(velocity), 1e-3)
    for _ in range(40):
        over = path_usage(limits, velocity, acceleration, jerk, high) > 1.0
        if not np.any(over):
            break
        high = np.where(over, 2.0 * high, high)
    # Only what binds nearly as late as the slowest sample matters.
    slowest = high >= np.max(high)
    velocity, acceleration, jerk, high = velocity[slowest], acceleration[slowest], jerk[slowest], high[slowest]
    low = 0.5 * high
    for _ in range(30):
        middle = 0.5 * (low + high)
        over = path_usage(limits, velocity, acceleration, jerk, middle) > 1.0
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    return high


def shorten(trajectory: Trajectory, limits: Limits) -> Trajectory:
    """Return the same path flown as fast as limits allow, every part scaled alike, with the limits proved along the whole of
    it.

    Raises:
        AirworthyError: No time scale keeps the limits, or none is given.
    """
    return stretch_until_proven(trajectory.scaled(_scale(trajectory, limits)), limits)


def slow_to(trajectory: Trajectory, limits: Limits, hold_heading: bool = True) -> Trajectory:
    """Return the same path, slowed as a whole only if, and as much as, limits ask for; the limits are proved.

    Args:
        trajectory: What to slow.
        limits: To be kept.
        hold_heading: Whether a heading that turns too fast is held back (`yaw_held_back`: it turns sooner and later than was
            asked) instead of slowing the path for it. False where the heading at a place is part of what is asked.
    """
    if prove(trajectory, limits).proven:
        return trajectory
    bounds = (limits.yaw_rate, limits.yaw_acceleration, limits.body_rate)
    if not hold_heading or (all(bound is None for bound in bounds) and not limits.rotors):
        return _slowed(trajectory, limits)
    return _slowed_and_held(trajectory, limits)


def _slowed(trajectory: Trajectory, limits: Limits) -> Trajectory:
    return stretch_until_proven(trajectory.scaled(max(1.0, _scale(trajectory, limits))), limits)


def _slowed_and_held(trajectory: Trajectory, limits: Limits) -> Trajectory:
    """Return the soonest of the path with its heading held back more and more, beginning with the limit on the yaw rate.

    With a heading at rest the path is as fast as it can be. A limit on body rates leaves less for yaw than that on the yaw
    rate says where the path itself turns the body.
    """
    # The path alone, without yaw, is the fastest that any heading can come to.
    still = Trajectory(trajectory.knots, trajectory.coefficients, *yaw_fixed(trajectory.duration, 0.0))
    path = still if prove(still, limits).proven else _slowed(still, limits)
    shares = (1.0,) if limits.body_rate is None and not limits.rotors else _HELD_SHARES
    best: Trajectory | None = None
    factor = path.duration / trajectory.duration
    asked = trajectory.scaled(factor)
    bounds = [bound for bound in (limits.yaw_rate, limits.body_rate) if bound is not None]
    first = min(bounds, default=max(1e-3, float(np.max(np.abs(dense_sample(asked).yaw_rate)))))
    for share in shares:
        yaw = yaw_held_back(asked.duration, lambda t: asked.sample(t).yaw, share * first, limits.yaw_acceleration)
        found = stretch_until_proven(Trajectory(asked.knots, asked.coefficients, *yaw), limits)
        if best is None or found.duration < best.duration:
            best = found
        if best.duration < 1.01 * path.duration:
            break
    assert best is not None
    return best


def _scale(trajectory: Trajectory, limits: Limits) -> float:
    scale = smallest_scale(limits, dense_sample(trajectory))
    if scale <= 1e-3:
        raise AirworthyError("No limit binds at any speed: give at least one that this trajectory can reach.")
    return scale


def stretch_until_proven(trajectory: Trajectory, limits: Limits) -> Trajectory:
    """Slow a trajectory by as little as needed for every limit to be proved.

    The proof finds true peaks, wherever they lie: samples from which a scale was guessed may have missed them by any factor.

    Raises:
        AirworthyError: No time scale up to `SLOWEST` is proved, as where a limit does not ease as the flight slows.
    """
    if prove(trajectory, limits).proven:
        return trajectory
    # A proof misses by little where samples were near: small steps first, doubled while they do not do.
    low, high = 1.0, 1.0001
    while not prove(trajectory.scaled(high), limits).proven:
        low, high = high, 1.0 + 2.0 * (high - 1.0)
        if high > SLOWEST:
            raise AirworthyError(
                "The trajectory could not be slowed enough to keep its limits: " + _broken(prove(trajectory, limits))
            )
    bisections = _STRETCH_BISECTIONS if high < 3.0 else _FAR_BISECTIONS
    for _ in range(bisections):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if prove(trajectory.scaled(middle), limits).proven else (middle, high)
    return trajectory.scaled(high)


def _broken(proof: LimitProof) -> str:
    return "; ".join(str(check) for check in proof.checks if check.verdict != "proven") + "."
