"""What a trajectory may ask of a vehicle, and how much slower it must be flown to stay within."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import check_fields
from airworthy.core.vectors import norm
from airworthy.trajectories.tracked import RotorBound, rotor_use, tracked_samples
from airworthy.trajectories.trajectory import FlatSample, Trajectory
from airworthy.vehicles import Vehicle, indicators


@dataclass(frozen=True)
class Limits:
    """Bounds along a whole trajectory; None where there is none."""

    speed: float | None = None
    """[m/s]"""
    acceleration: float | None = None
    """Magnitude, without gravity [m/s^2]."""
    jerk: float | None = None
    """[m/s^3]"""
    thrust_max: float | None = None
    """Largest thrust over mass, |a + g| [m/s^2]; more than gravity."""
    thrust_min: float | None = None
    """Smallest thrust over mass [m/s^2]; less than gravity."""
    body_rate: float | None = None
    """Magnitude of the body rates, yaw included [rad/s], in the attitude that the tracking laws hold."""
    yaw_rate: float | None = None
    """Magnitude of the heading's rate [rad/s]; kept by turning more slowly, not by flying more slowly."""
    yaw_acceleration: float | None = None
    """Magnitude of the heading's acceleration [rad/s^2]; a rate that jumps has none that is finite."""
    rotors: tuple[RotorBound, ...] = ()
    """Drones whose rotors must make the thrust and the moments, each within its own shares."""
    envelope: tuple[float, float] | None = None
    """(a0, k): acceleration + k speed^3 <= a0 [m/s^2, s^2/m^2]; eq. 3 of spec/boundary_predictor is (2.0, 0.3)."""
    gravity: float = 9.81
    """[m/s^2]"""

    def __post_init__(self) -> None:
        check_fields(self, "Limits.")
        for item in fields(self):
            if item.name == "rotors":
                continue
            value = getattr(self, item.name)
            for number in value if isinstance(value, tuple) else (value,):
                if number is not None and not (np.isfinite(number) and number > 0.0):
                    raise AirworthyError(f"The limit {item.name!r} must be positive and finite, but is {value!r}.")
        if self.thrust_max is not None and self.thrust_max <= self.gravity:
            raise AirworthyError(f"thrust_max is {self.thrust_max:g} m/s^2: to hover it must exceed gravity, {self.gravity:g}.")
        if self.thrust_min is not None and self.thrust_min >= self.gravity:
            raise AirworthyError(f"thrust_min is {self.thrust_min:g} m/s^2: it must be less than gravity, {self.gravity:g}.")

    @classmethod
    def for_vehicle(cls, vehicle: Vehicle, share: float = 0.8, **others: Any) -> Limits:
        """Return limits with `thrust_max` at a share (0 to 1] of what a vehicle's rotors lift; `others` are further fields."""
        if not 0.0 < share <= 1.0:
            raise AirworthyError(f"The share of the thrust to use must be in (0, 1], but is {share!r}.")
        thrust = share * indicators(vehicle).thrust_to_weight * vehicle.gravity
        return cls(thrust_max=thrust, gravity=vehicle.gravity, **others)

    @property
    def speed_max(self) -> float:
        """Largest speed [m/s] that these limits ever admit; infinite where none bounds it."""
        top = np.inf if self.speed is None else self.speed
        return top if self.envelope is None else min(top, float((self.envelope[0] / self.envelope[1]) ** (1.0 / 3.0)))

    @property
    def acceleration_max(self) -> float:
        """Largest acceleration [m/s^2] at rest, in the horizontal plane, that these limits admit."""
        bounds = [np.inf if self.acceleration is None else self.acceleration]
        if self.envelope is not None:
            bounds.append(self.envelope[0])
        if self.thrust_max is not None:
            bounds.append(float(np.sqrt(self.thrust_max**2 - self.gravity**2)))
        return min(bounds)


TRACKING_ENVELOPE = Limits(envelope=(2.0, 0.3))
"""What a small quadrotor was found to track: eq. 3 of spec/boundary_predictor."""
DEFAULT_LIMITS = Limits(speed=2.0, acceleration=3.0)
"""For waypoints flown without a word about the vehicle: any multirotor of the catalogue can follow."""


def path_usage(limits: Limits, velocity: Array, acceleration: Array, jerk: Array, slower: Any = 1.0) -> Array:
    """Return the largest part used of the limits on the path, where each sample is flown `slower` times as long.

    Of the body rates, those that tilt the thrust count here; the rest depends on yaw, as the yaw rate does.

    Args:
        limits: The bounds.
        velocity: [m/s], shape (..., 3).
        acceleration: [m/s^2], shape (..., 3).
        jerk: [m/s^3], shape (..., 3).
        slower: Time scale, shape (...).

    Returns:
        1 where a bound is just reached, shape (...).
    """
    # A derivative of order k falls with the k-th power of the time scale; gravity does not, which is why thrust is built anew.
    r = 1.0 / np.asarray(slower, dtype=np.float64)
    speed = np.linalg.norm(velocity, axis=-1) * r
    push = np.linalg.norm(acceleration, axis=-1) * r**2
    used = [np.zeros_like(speed)]
    if limits.speed is not None:
        used.append(speed / limits.speed)
    if limits.acceleration is not None:
        used.append(push / limits.acceleration)
    if limits.jerk is not None:
        used.append(np.linalg.norm(jerk, axis=-1) * r**3 / limits.jerk)
    if limits.envelope is not None:
        used.append((push + limits.envelope[1] * speed**3) / limits.envelope[0])
    if limits.thrust_max is not None or limits.thrust_min is not None or limits.body_rate is not None:
        lifted = acceleration * (r**2)[..., None] + (0.0, 0.0, limits.gravity)
        thrust = np.linalg.norm(lifted, axis=-1)
        if limits.body_rate is not None:
            # Roll and pitch rate of a body whose z axis follows the thrust: the part of jerk across it, over the thrust.
            across = np.linalg.norm(np.cross(lifted, jerk * (r**3)[..., None]), axis=-1)
            used.append(across / np.maximum(thrust, 1e-9) ** 2 / limits.body_rate)
        if limits.thrust_max is not None:
            used.append(thrust / limits.thrust_max)
        if limits.thrust_min is not None:
            used.append(limits.thrust_min / np.maximum(thrust, 1e-9))
    return np.max(used, axis=0)


def usage(limits: Limits, sample: FlatSample, slower: float = 1.0) -> float:
    """Return the largest part of any limit that samples use when flown `slower` times as long.

    Args:
        limits: To be kept.
        sample: Of a trajectory.
        slower: Factor on its duration.
    """
    used = float(np.max(path_usage(limits, sample.velocity, sample.acceleration, sample.jerk, slower)))
    if limits.yaw_rate is not None:
        used = max(used, float(np.max(np.abs(sample.yaw_rate))) / slower / limits.yaw_rate)
    if limits.yaw_acceleration is not None:
        used = max(used, float(np.max(np.abs(sample.yaw_acceleration))) / slower**2 / limits.yaw_acceleration)
    if limits.body_rate is not None or limits.rotors:
        used = max(used, _attitude_usage(limits, slowed(sample, slower)))
    return used


def _attitude_usage(limits: Limits, sample: FlatSample) -> float:
    """Of the body rates and of the rotors."""
    state = tracked_samples(sample, limits.gravity)
    used = 0.0
    if limits.body_rate is not None:
        used = float(np.nanmax(norm(state.body_rate), initial=0.0)) / limits.body_rate
    if limits.rotors:
        used = max(used, float(np.nanmax(rotor_use(state, limits.rotors), initial=0.0)))
    return used


def slowed(sample: FlatSample, slower: float) -> FlatSample:
    """Return the same places flown `slower` times as long."""
    r = 1.0 / slower
    return FlatSample(
        sample.position,
        sample.velocity * r,
        sample.acceleration * r**2,
        sample.jerk * r**3,
        sample.snap * r**4,
        sample.yaw,
        sample.yaw_rate * r,
        sample.yaw_acceleration * r**2,
    )


def smallest_scale(limits: Limits, sample: FlatSample) -> float:
    """Return the least time scale at which samples stay within limits; every limit is taken to ease as the flight slows.

    Raises:
        AirworthyError: Nothing moves and yet a limit is broken, or no limit is given.
    """
    # Doubling from far below finds a bracket within a few steps, however badly the durations were guessed.
    low, high = 1e-3, 1e-3
    while usage(limits, sample, high) > 1.0:
        low, high = high, 2.0 * high
        # A million times as slow is at rest for every purpose: what is still broken then, such as a thrust below gravity, stays
        # so.
        if high > 1e6:
            raise AirworthyError("No speed, however slow, keeps this trajectory within its limits.")
    if high == low:
        return high
    # 48 halvings take the bracket to rounding; the upper end is returned, which keeps the limits.
    for _ in range(48):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if usage(limits, sample, middle) > 1.0 else (low, middle)
    return high


def dense_sample(trajectory: Trajectory, per_segment: int = 33) -> FlatSample:
    """Return samples spread evenly over each position piece, both ends included, and just before each yaw knot."""
    shares = np.linspace(0.0, 1.0, per_segment)[:, None]
    times = (trajectory.knots[:-1] + shares * np.diff(trajectory.knots)).T.reshape(-1)
    # Before and after every knot: derivatives may jump there.
    breaks = np.concatenate((trajectory.yaw_knots, trajectory.knots))
    before = np.nextafter(breaks, -np.inf)
    return trajectory.sample(np.sort(np.concatenate((times, breaks, np.maximum(before, 0.0)))))
