"""Aerial Gym's motor-command position set-point (specification aerial_gym, 9.3): hover at a place by four motor thrusts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from airworthy.core.arrays import Scalar, Vector
from airworthy.core.ops import sqrt, where
from airworthy.core.schema import Bound, check_fields
from airworthy.core.vectors import add, dot, matrix_columns, scale
from airworthy.learning.environments.start import turned_start
from airworthy.learning.environments.task import Judgement, peak, penalty, thrust_command
from airworthy.learning.gradient.hover import HoverStart

__all__ = ["START", "MotorCommand", "Px4MotorCommand"]

# Source: specification aerial_gym, 9.3, as of all numbers here: actions become 0.2 to 1.2 N.
_THRUST_MIN, _THRUST_MAX = 0.2, 1.2
"""Of a motor [N], as published for tinyprop."""
_PUBLISHED_WEIGHT = 0.372 * 9.81
"""Of its reward [N]; the vehicle weighs 0.373 kg."""
_TILT, _SPREAD, _SPEED = 0.5235987755982988, 0.7, 0.5
"""Starts: roll and pitch +-30 degrees, position +-0.7 m, velocities +-0.5 m/s and rad/s."""
START = HoverStart(position=_SPREAD, velocity=_SPEED, tilt=_TILT, rate=_SPEED, rotors=0.0)
"""The same, as evaluations read it."""
# Source: the same: position 1e-3, attitude Euler pi/1032, velocity 2e-3, rate 1e-3.
_POSITION_NOISE, _ANGLE_NOISE, _VELOCITY_NOISE, _RATE_NOISE = 1e-3, 0.0030441, 2e-3, 1e-3
"""Standard deviations [m, rad (pi / 1032), m/s, rad/s]."""


@dataclass(frozen=True)
class MotorCommand:
    """Hold the origin, heading along world x, by motor thrusts.

    The published start draws positions as ratios of a box, up to 2.4 m off where a crash begins at 1.5 m; here they are metres
    around the target. For another vehicle than tinyprop thrusts go from 0.2 to 1.2 times a motor's share of 4 x 0.7 N in
    proportion to its weight.
    """

    name: ClassVar[str] = "motor_command"
    vehicle: ClassVar[str] = "tinyprop"
    rate: Annotated[float, Bound(10.0, 1000.0, "Hz")] = 100.0
    """Decisions per second; progress counts per metre, so that its sum over a way stays."""
    episode_steps: Annotated[int, Bound(1, 1_000_000)] = 600
    """Decisions in a flight."""
    crash_m: Annotated[float, Bound(0.1, 1e3, "m")] = 1.5
    """Farther off the flight ends."""
    noise: bool = True
    """Published noise of observations."""
    as_published: bool = False
    """The reward's effort counts from the weight of 0.372 kg, as published, instead of the vehicle's own."""

    def __post_init__(self) -> None:
        check_fields(self, "MotorCommand.")

    def start(self, uniforms: Vector, p: Any) -> Vector:
        """Draw states uniform around the target; rotors at hover."""
        return turned_start(uniforms, p.hover, _SPREAD, _SPEED, _TILT, _SPEED)

    def command(self, action: Vector, p: Any) -> Vector:
        """Return thrusts, affine in the action."""
        return thrust_command(self._thrusts(action, p), p)

    def hover_action(self, p: Any) -> Vector:
        """Return the action of the vehicle's weight on all rotors alike."""
        middle, half = 0.5 * (_THRUST_MAX + _THRUST_MIN), 0.5 * (_THRUST_MAX - _THRUST_MIN)
        count = len(p.rotor_thrust)
        return ((p.nominal_weight / (count * self._unit(p)) - middle) / half,) * count

    def _thrusts(self, action: Vector, p: Any) -> Vector:
        middle, half = 0.5 * (_THRUST_MAX + _THRUST_MIN), 0.5 * (_THRUST_MAX - _THRUST_MIN)
        unit = self._unit(p)
        return tuple((middle + half * a) * unit for a in action)

    def _unit(self, p: Any) -> Scalar:
        """Thrusts in units of tinyprop's: its weight on four motors is 0.915 N each."""
        return p.nominal_weight * (4.0 / (0.373 * 9.81 * len(p.rotor_thrust)))

    def observe(self, state: Vector, noises: Vector, p: Any) -> Vector:
        """Return 15 numbers: the way to the target 3, two rows of the rotation matrix 6, velocity (world) 3, body rate 3.

        Args:
            state: Of the flight.
            noises: 16 standard normal numbers.
            p: Parameters.
        """
        return motor_observation(state, noises if self.noise else None)

    def judge(self, before: Vector, after: Vector, action: Vector, past: Vector, p: Any) -> Judgement:
        """Return reward of specification aerial_gym, 9.3; a flight ends beyond `crash_m`, without a value of its own.

        Args:
            before: State before the step.
            after: State after it.
            action: That was taken, within [-1, 1].
            past: The action before.
            p: Parameters.
        """
        columns = matrix_columns(after[6:10])
        unit = self._unit(p)
        hover = (_PUBLISHED_WEIGHT if self.as_published else p.nominal_weight / unit) / len(action)
        thrusts, earlier = (scale(self._thrusts(a, p), 1.0 / unit) for a in (action, past))
        # Height counts eleven times, as published.
        position = _sum(peak(e, 10.0, 10.0) + peak(e, 2.0, 2.0) for e in (after[0], after[1], 11.0 * after[2]))
        upright = peak(1.0 - columns[2][2], 2.5, 5.0)
        align = peak(1.0 - columns[0][0], 6.0, 5.0)
        turning = _sum(peak(w, 0.3, 10.0) for w in after[10:13])
        speed = _sum(peak(v, 1.0, 5.0) for v in after[3:6])
        effort = _sum(penalty(u - hover, 0.01, 10.0) for u in thrusts)
        change = _sum(penalty(u - e, 1.3, 6.0) for u, e in zip(thrusts, earlier, strict=True))
        distance, distance_before = (sqrt(dot(x[:3], x[:3])) for x in (after, before))
        nearer = distance_before - distance
        terms = {
            # Metres per step: at another rate the same way has another number of steps.
            "toward": nearer * where(nearer < 0.0, 15.0, 10.0),
            "position": position * 0.01,
            "position_steady": position * (align + speed + turning + change) * 0.01,
            "steady": (turning + speed) * 0.01,
            "upright": upright * 0.01,
            "effort": effort * 0.01,
        }
        # No value for a crash, as published: terms are mostly positive, so that to end early does not pay.
        return Judgement(terms, where(distance > self.crash_m, 1.0, 0.0), where(distance < 0.1, 1.0, 0.0))


def motor_observation(state: Vector, noises: Vector | None) -> Vector:
    """Return 15 numbers: the way to the target 3, two rows of the rotation matrix 6, velocity (world) 3, body rate 3.

    Args:
        state: Of the flight.
        noises: 12 or more standard normal numbers, or None.
    """
    columns = matrix_columns(state[6:10])
    if noises is not None:
        # To first order the columns turn by the small rotation that three angles make about the body's axes.
        a = scale(noises[3:6], _ANGLE_NOISE)
        columns = (
            add(columns[0], add(scale(columns[1], a[2]), scale(columns[2], -a[1]))),
            add(columns[1], add(scale(columns[2], a[0]), scale(columns[0], -a[2]))),
            add(columns[2], add(scale(columns[0], a[1]), scale(columns[1], -a[0]))),
        )
    rows = tuple(columns[j][i] for i in range(2) for j in range(3))
    clean = (tuple(-x for x in state[:3]), state[3:6], state[10:13])
    if noises is None:
        return (*clean[0], *rows, *clean[1], *clean[2])
    position = add(clean[0], scale(noises[:3], _POSITION_NOISE))
    velocity = add(clean[1], scale(noises[6:9], _VELOCITY_NOISE))
    return (*position, *rows, *velocity, *add(clean[2], scale(noises[9:12], _RATE_NOISE)))


def _sum(values: Any) -> Any:
    first, *rest = values
    for value in rest:
        first = first + value
    return first


_PX4_THRUST_MAX, _PX4_WEIGHT = 8.0, 1.6559999883174896 * 9.81
"""Of a motor [N] (least: 0), and of the vehicle in the published reward [N]."""
_PX4_RATE = 0.2
"""Of starts, each body axis [rad/s]."""


@dataclass(frozen=True)
class Px4MotorCommand:
    """Hold the origin, heading along world x, by motor thrusts of 0 to 8 N: Aerial Gym's variant for the x500 and PX4.

    Its reward stands in ntnu-arl/aerial_gym_simulator, task/position_setpoint_task_sim2real_px4, commit 07593f1. For another
    vehicle thrusts are in proportion to its weight.
    """

    name: ClassVar[str] = "px4_motor_command"
    vehicle: ClassVar[str] = "x500"
    rate: Annotated[float, Bound(10.0, 1000.0, "Hz")] = 100.0
    """Decisions per second; progress counts per metre, so that its sum over a way stays."""
    episode_steps: Annotated[int, Bound(1, 1_000_000)] = 500
    """Decisions in a flight."""
    crash_m: Annotated[float, Bound(0.1, 1e3, "m")] = 6.5
    """Farther off the flight ends."""
    noise: bool = True
    """Published noise of observations."""

    def __post_init__(self) -> None:
        check_fields(self, "Px4MotorCommand.")

    def start(self, uniforms: Vector, p: Any) -> Vector:
        """Draw states anywhere in the published box of +-1 m."""
        return turned_start(uniforms, p.hover, 1.0, _SPEED, _TILT, _PX4_RATE)

    def _unit(self, p: Any) -> Scalar:
        return p.nominal_weight * (4.0 / (_PX4_WEIGHT * len(p.rotor_thrust)))

    def _thrusts(self, action: Vector) -> Vector:
        """In newtons of the x500."""
        return tuple(0.5 * _PX4_THRUST_MAX * (1.0 + a) for a in action)

    def command(self, action: Vector, p: Any) -> Vector:
        """Return thrusts, affine in the action."""
        return thrust_command(scale(self._thrusts(action), self._unit(p)), p)

    def hover_action(self, p: Any) -> Vector:
        """Return the action of the vehicle's weight on all rotors alike."""
        return (_PX4_WEIGHT / 4.0 / (0.5 * _PX4_THRUST_MAX) - 1.0,) * len(p.rotor_thrust)

    def observe(self, state: Vector, noises: Vector, p: Any) -> Vector:
        """Return 15 numbers; see `motor_observation`.

        Args:
            state: Of the flight.
            noises: 16 standard normal numbers.
            p: Parameters.
        """
        return motor_observation(state, noises if self.noise else None)

    def judge(self, before: Vector, after: Vector, action: Vector, past: Vector, p: Any) -> Judgement:
        """Return reward of the code that tasks.json names for `px4_motor_command`; beyond `crash_m` a flight ends.

        Args:
            before: State before the step.
            after: State after it.
            action: That was taken, within [-1, 1].
            past: The action before.
            p: Parameters.
        """
        columns = matrix_columns(after[6:10])
        thrusts, earlier = self._thrusts(action), self._thrusts(past)
        # Height counts thirteen times, as published.
        position = _sum(peak(e, 10.0, 10.0) + peak(e, 2.0, 2.0) for e in (after[0], after[1], 13.0 * after[2]))
        tilt, turned = 1.0 - columns[2][2], 1.0 - columns[0][0]
        align = peak(turned, 4.0, 5.0) + peak(turned, 2.0, 2.0)
        turning = _sum(peak(w, 0.75, 10.0) for w in after[10:13])
        speed = _sum(peak(v, 1.0, 5.0) for v in after[3:6])
        change = _sum(penalty(u - e, 0.5, 6.0) for u, e in zip(thrusts, earlier, strict=True))
        distance, distance_before = (sqrt(dot(x[:3], x[:3])) for x in (after, before))
        nearer = distance_before - distance
        terms = {
            "toward": nearer * where(nearer < 0.0, 100.0, 50.0),
            "position": position * 0.01,
            "position_steady": position * (align + speed + turning + change) * 0.01,
            "steady": (turning + speed) * 0.01,
            "upright": (peak(tilt, 2.5, 5.0) + peak(tilt, 2.5, 2.0)) * 0.01,
            "effort": _sum(penalty(u - _PX4_WEIGHT / 4.0, 0.01, 10.0) for u in thrusts) * 0.01,
        }
        return Judgement(terms, where(distance > self.crash_m, 1.0, 0.0), where(distance < 0.1, 1.0, 0.0))
