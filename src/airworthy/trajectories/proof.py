"""Limits, corridors and clearances proved along the whole trajectory, not at samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from airworthy.core.errors import AirworthyError
from airworthy.trajectories import quantities
from airworthy.trajectories.limits import Limits
from airworthy.trajectories.quantities import ROUNDING, Quantity, maximise
from airworthy.trajectories.trajectory import Trajectory

Verdict = Literal["proven", "violated", "undecided"]

# Ours: a proof halves pieces until its bound is this near; finer costs more and promises hardly more.
TOLERANCE = 1e-3
"""Default gap between bound and attained value, relative to the limit."""
ROTOR_TOLERANCE = 5e-3
"""The same of rotor thrusts, whose bound closes in more slowly."""


@dataclass(frozen=True)
class LimitCheck:
    """One quantity held against its limit over all times."""

    quantity: str
    unit: str
    limit: float
    bound: float
    """Certified: the quantity is nowhere beyond this."""
    attained: float
    """Its value at `time`: the extreme lies between this and the bound."""
    time: float
    """Where `attained` is taken on [s]."""
    sense: Literal["at most", "at least"] = "at most"

    @property
    def verdict(self) -> Verdict:
        """It is "proven" when the bound keeps the limit, "violated" when the attained value breaks it, else "undecided".

        A value within rounding of its limit is left undecided.
        """
        sign = 1.0 if self.sense == "at most" else -1.0
        if sign * self.bound <= sign * self.limit:
            return "proven"
        beyond = sign * (self.attained - self.limit)
        return "violated" if beyond > ROUNDING * abs(self.limit) else "undecided"

    @property
    def tolerance(self) -> float:
        """Gap between bound and attained value."""
        return abs(self.bound - self.attained)

    def __str__(self) -> str:
        limit = f"{self.quantity} {self.sense} {self.limit:g} {self.unit}"
        return f"{limit}: {self.verdict} (bound {self.bound:.6g}, attained {self.attained:.6g} at {self.time:.4g} s)"


@dataclass(frozen=True)
class LimitProof:
    """Every check of a trajectory."""

    checks: tuple[LimitCheck, ...]

    @property
    def verdict(self) -> Verdict:
        """It is "proven" when all checks are, "violated" when any is."""
        verdicts = {check.verdict for check in self.checks}
        return "violated" if "violated" in verdicts else "undecided" if "undecided" in verdicts else "proven"

    @property
    def proven(self) -> bool:
        """Whether every check is proven."""
        return self.verdict == "proven"

    def check(self, quantity: str) -> LimitCheck:
        """Return the check of one quantity; raises AirworthyError for one that was not asked for."""
        for item in self.checks:
            if item.quantity == quantity:
                return item
        raise AirworthyError(f"There is no check of {quantity!r}; there are {', '.join(c.quantity for c in self.checks)}.")

    def __str__(self) -> str:
        return "\n".join(str(check) for check in self.checks)


@dataclass(frozen=True)
class YawedBox:
    """A box, turned by yaw about z."""

    center: tuple[float, float, float]
    """[m]"""
    half_size: tuple[float, float, float]
    """[m]"""
    yaw: float = 0.0
    """[rad]"""


def prove(trajectory: Trajectory, limits: Limits, tolerance: float = TOLERANCE) -> LimitProof:
    """Check every given limit along the whole trajectory.

    Args:
        trajectory: What to check.
        limits: Bounds; those that are None are not checked. Body rates and rotor thrusts are those of a body that tracks
            exactly in the attitude that the tracking laws hold, without drag.
        tolerance: Gap between certified bound and attained value, relative to the limit; smaller where a verdict needs it.
    """
    checks = []
    plain = (("speed", 1, "m/s"), ("acceleration", 2, "m/s^2"), ("jerk", 3, "m/s^3"))
    for name, order, unit in plain:
        limit = getattr(limits, name)
        if limit is not None:
            checks.append(_at_most(name, unit, limit, quantities.magnitude(trajectory, order), tolerance))
    if limits.envelope is not None:
        top, factor = limits.envelope
        checks.append(_at_most("envelope", "m/s^2", top, quantities.envelope(trajectory, factor), tolerance))
    if limits.thrust_max is not None:
        thrust = quantities.magnitude(trajectory, 2, (0.0, 0.0, limits.gravity))
        checks.append(_at_most("thrust_max", "m/s^2", limits.thrust_max, thrust, tolerance))
    if limits.thrust_min is not None:
        # As a square, negated: polynomials have no square roots, and the search finds maxima.
        least = quantities.smallest_thrust(trajectory, limits.gravity)
        checks.append(_thrust_min(limits.thrust_min, least, tolerance))
    if limits.yaw_rate is not None:
        checks.append(_at_most("yaw_rate", "rad/s", limits.yaw_rate, quantities.yaw_rate(trajectory), tolerance))
    if limits.yaw_acceleration is not None:
        bend = quantities.yaw_acceleration(trajectory)
        found = _at_most("yaw_acceleration", "rad/s^2", limits.yaw_acceleration, bend, tolerance)
        checks.append(_unless_jumping(found, trajectory, False))
    if limits.body_rate is not None:
        rate = quantities.body_rate(trajectory, limits.gravity)
        checks.append(_at_most("body_rate", "rad/s", limits.body_rate, rate, tolerance))
    if limits.rotors:
        # Both ends of a rotor's range in one quantity: distance from its middle, over half its width.
        use = quantities.rotor_thrust(trajectory, limits.gravity, limits.rotors)
        # Intervals of so long an expression narrow slowly: a tighter verdict would cost most of the search.
        found = _at_most("rotor_thrust", "of its range", 1.0, use, max(tolerance, ROTOR_TOLERANCE))
        checks.append(_unless_jumping(found, trajectory, True))
    return LimitProof(tuple(checks))


def prove_corridor(trajectory: Trajectory, polyline: ArrayLike, radius: float, tolerance: float = TOLERANCE) -> LimitCheck:
    """Check that the path stays within `radius` [m] of a polyline of points (n, 3), n >= 2.

    Args:
        trajectory: The path.
        polyline: (n, 3) [m], world, n >= 2.
        radius: [m]
        tolerance: Gap between bound and attained value, relative to the limit, at which the search ends.
    """
    points = np.asarray(polyline, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 3 or len(points) < 2 or not np.all(np.isfinite(points)):
        raise AirworthyError(f"A corridor needs a polyline of 2 or more finite points (n, 3), but got shape {points.shape}.")
    return _at_most("corridor", "m", radius, quantities.polyline_distance(trajectory, points), tolerance)


def prove_half_space(trajectory: Trajectory, normal: ArrayLike, offset: float, tolerance: float = TOLERANCE) -> LimitCheck:
    """Check that n . p <= offset [m] along the path; the normal is made a unit vector, and a floor is ((0, 0, -1), -height).

    Args:
        trajectory: The path.
        normal: (3,), any length, world.
        offset: [m]
        tolerance: Gap between bound and attained value, relative to the limit, at which the search ends.
    """
    direction = np.asarray(normal, dtype=np.float64)
    length = float(np.linalg.norm(direction)) if direction.shape == (3,) else 0.0
    if not (np.isfinite(length) and length > 0.0):
        raise AirworthyError("The normal of a half space must be 3 finite numbers that are not all 0.")
    return _at_most("half_space", "m", offset, quantities.along(trajectory, direction / length), tolerance)


def prove_within(trajectory: Trajectory, lower: ArrayLike, upper: ArrayLike, tolerance: float = TOLERANCE) -> LimitProof:
    """Check that the path stays in the box between two corners [m], shape (3,) each.

    Args:
        trajectory: The path.
        lower: (3,) [m], world.
        upper: (3,) [m], world.
        tolerance: Gap between bound and attained value, relative to the limit, at which the search ends.
    """
    checks = []
    for axis, low, high in zip("xyz", np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64), strict=True):
        # Six half spaces; lower bounds as upper ones of the negated coordinate.
        direction = np.array([float(axis == name) for name in "xyz"])
        checks.append(_at_most(f"{axis}_max", "m", float(high), quantities.along(trajectory, direction), tolerance))
        below = maximise(quantities.along(trajectory, -direction), tolerance * _scale(low), -float(low))
        checks.append(
            LimitCheck(f"{axis}_min", "m", float(low), 0.0 - below.bound, 0.0 - below.attained, below.time, "at least")
        )
    return LimitProof(tuple(checks))


def prove_clearance(
    trajectory: Trajectory, boxes: Sequence[YawedBox], clearance: float, tolerance: float = TOLERANCE
) -> LimitCheck:
    """Check that the path keeps at least `clearance` [m] from every box; inside a box the distance is 0.

    Args:
        trajectory: The path.
        boxes: What is kept clear of.
        clearance: [m]
        tolerance: Gap between bound and attained value, relative to the limit, at which the search ends.
    """
    if not boxes or not clearance > 0.0:
        raise AirworthyError("A clearance proof needs at least one box and a clearance above 0 m.")
    results = []
    for box in boxes:
        near = quantities.nearness(trajectory, np.array(box.center), np.array(box.half_size), box.yaw)
        results.append(maximise(near, tolerance * _scale(clearance), -clearance))
    # Nearness is negated distance: the largest is the closest. The bound is the worst of all boxes, not only of that one.
    closest = max(results, key=lambda result: result.attained)
    bound = max(result.bound for result in results)
    return LimitCheck("clearance", "m", clearance, -bound, -closest.attained, closest.time, "at least")


def _at_most(name: str, unit: str, limit: float, quantity: Quantity, tolerance: float) -> LimitCheck:
    found = maximise(quantity, tolerance * _scale(limit), limit)
    return LimitCheck(name, unit, limit, found.bound, found.attained, found.time)


def _scale(limit: float) -> float:
    return abs(limit) if limit != 0.0 else 1.0


def _thrust_min(limit: float, negated_square: Quantity, tolerance: float) -> LimitCheck:
    # The tolerance of a square is twice that of its root, relatively.
    found = maximise(negated_square, 2.0 * tolerance * limit**2, -(limit**2))
    bound, attained = np.sqrt(max(-found.bound, 0.0)), np.sqrt(max(-found.attained, 0.0))
    return LimitCheck("thrust_min", "m/s^2", limit, float(bound), float(attained), found.time, "at least")


def _unless_jumping(check: LimitCheck, trajectory: Trajectory, jerk: bool) -> LimitCheck:
    """Return the check, broken without bound where the yaw rate (or the jerk) jumps: no acceleration, no moment follows
    that.
    """
    found = quantities.jumps(trajectory.yaw_knots, trajectory.yaw_coefficients[:, None], 1)
    # A jump of jerk is one of the body rates' derivative, and asks for a moment without bound.
    if jerk:
        found = np.concatenate((found, quantities.jumps(trajectory.knots, trajectory.coefficients, 3)))
    return check if not found.size else replace(check, bound=np.inf, attained=np.inf, time=float(np.min(found)))
