"""Aerial Gym's position set-points by velocity, acceleration and attitude (specification aerial_gym, 9.1, and tasks.json)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from airworthy.control.attitude import heading
from airworthy.control.levels import ControlConfig, collective_from_normalized
from airworthy.core.arrays import Scalar, Vector
from airworthy.core.ops import arctan2, sqrt, where
from airworthy.core.schema import Bound, check_fields
from airworthy.core.vectors import add, dot, matrix_columns, norm, rotate_inverse, scale
from airworthy.learning.environments.start import euler_quaternion, turned_start
from airworthy.learning.environments.task import Judgement, crashed_terms, cusp, cusp_penalty, peak
from airworthy.vehicles import Vehicle

__all__ = ["PositionByAcceleration", "PositionByAttitude", "PositionByVelocity", "euler_angles"]

# Source: specification aerial_gym, 9.1: position 0.03, Euler 0.02, velocities 0.02 (Gaussian).
_POSITION_NOISE, _NOISE = 0.03, 0.02
"""Standard deviations: of position [m]; of Euler angles [rad] and velocities [m/s, rad/s]."""
# Source: the same, "network output x 2 m/s^2".
_ACCELERATION = 2.0
"""Of a whole action [m/s^2]."""
# Source: the same: physics of 0.01 s, one step of it per policy step.
_RATE = 100.0
"""At which rewards of progress were published [Hz]."""


def position_start(uniforms: Vector, p: Any) -> Vector:
    """Return the state of a new flight as the published robots begin: in a box of 2 m about the target, level, nearly at rest.

    Args:
        uniforms: 16 numbers in (0, 1).
        p: Parameters.
    """
    # 10 to 20 % of the box along x, 15 to 85 % along y and z; headings within 30 degrees, velocities within 0.2.
    state = turned_start(uniforms, p.hover, 0.7, 0.2, 0.0, 0.2, heading=0.5235987755982988)
    return (-0.7 + 0.1 * (2.0 * uniforms[0] - 1.0), *state[1:])


def euler_angles(attitude: Vector) -> tuple[Scalar, Scalar, Scalar]:
    """Return roll, pitch and yaw (Z-Y-X) of an attitude [rad]."""
    x, y, z = matrix_columns(attitude)
    level = sqrt(y[2] * y[2] + z[2] * z[2])
    return arctan2(y[2], z[2]), arctan2(-x[2], level), arctan2(x[1], x[0])


def position_observation(state: Vector, noises: Vector | None, last: Vector) -> Vector:
    """Return 17 numbers: way to the target 3 (world), quaternion with w >= 0 4, velocity 3 and rate 3 (body), last command 4.

    Args:
        state: Of the flight.
        noises: 12 or more standard normal numbers, or None.
        last: Command.
    """
    position, velocity = tuple(-x for x in state[:3]), rotate_inverse(state[6:10], state[3:6])
    attitude, rate = state[6:10], state[10:13]
    if noises is not None:
        position = add(position, scale(noises[:3], _POSITION_NOISE))
        velocity, rate = add(velocity, scale(noises[6:9], _NOISE)), add(rate, scale(noises[9:12], _NOISE))
        attitude = euler_quaternion(*(e + _NOISE * n for e, n in zip(euler_angles(attitude), noises[3:6], strict=True)))
    sign = where(attitude[3] < 0.0, -1.0, 1.0)
    return (*position, *scale(attitude, sign), *velocity, *rate, *last)


def _distances(before: Vector, after: Vector) -> tuple[Scalar, Scalar]:
    return norm(after[:3]), norm(before[:3])


def _total(values: Any) -> Any:
    first, *rest = values
    for value in rest:
        first = first + value
    return first


@dataclass(frozen=True)
class _Position:
    """What the three tasks share."""

    vehicle: ClassVar[str] = "lmf2"
    gain_set: ClassVar[str] = "lmf2"
    action_count: ClassVar[int] = 4
    rate: Annotated[float, Bound(10.0, 1000.0, "Hz")] = _RATE
    """Decisions per second; gains of progress are published for 100 and scaled by the time of a step."""
    episode_steps: Annotated[int, Bound(1, 1_000_000)] = 800
    """Decisions in a flight."""
    crash_m: Annotated[float, Bound(0.1, 1e3, "m")] = 10.0
    """Farther off the flight ends."""
    noise: bool = True
    """Published noise of observations."""
    physics_steps: Annotated[int, Bound(1, 100)] = 1
    """Least steps of physics and controller per decision."""
    gains: str = ""
    """Of the controller: a gain set, or "auto" for those of the vehicle; left out: the published set for the published vehicle,
    "auto" for any other."""

    def __post_init__(self) -> None:
        check_fields(self, f"{type(self).__name__}.")

    def control_for(self, vehicle: Vehicle) -> ControlConfig:
        """Return the gains of the controller between command and rotors."""
        return ControlConfig(gains=self.gains or (self.gain_set if vehicle.name == self.vehicle else "auto"))

    def start(self, uniforms: Vector, p: Any) -> Vector:
        """As the published robot begins; see `position_start`."""
        return position_start(uniforms, p)

    def command(self, action: Vector, p: Any) -> Vector:
        """Command of the level."""
        return tuple(action)

    def observe(self, state: Vector, noises: Vector, p: Any) -> Vector:
        """17 numbers; see `position_observation`.

        Args:
            state: Of the flight.
            noises: 16 standard normal numbers.
            p: Parameters, with the last action.
        """
        return position_observation(state, noises if self.noise else None, self.command(p.past, p))

    def _nearer(self, before: Vector, after: Vector) -> tuple[Scalar, Scalar]:
        """Distance [m], and by how much less it is than before, for gains per metre at 100 Hz."""
        distance, earlier = _distances(before, after)
        # Specification, learning by reward, 3.1: times dt / 0.01 s.
        return distance, (earlier - distance) * (_RATE / self.rate)

    def _judged(self, terms: dict[str, Scalar], distance: Scalar, crash: float, p: Any) -> Judgement:
        lost = where(distance > self.crash_m, 1.0, p.touched) > 0.5
        # Success within 10 cm: ours.
        return Judgement(crashed_terms(terms, lost, crash), where(lost, 1.0, 0.0), where(distance < 0.1, 1.0, 0.0))


@dataclass(frozen=True)
class _Disturbed(_Position):
    """What the two tasks share whose observations have noise."""

    def observe_critic(self, state: Vector, p: Any) -> Vector:
        """Return what critics see: the observation without its noise (ours; published critics see what policies see).

        Where a policy rests, places differ by less than the 3 cm of noise: a critic that sees only those learns that the place
        does not matter (errors in variables), and what costs at once, like a change of command, is all that is left.

        Args:
            state: Of the flight.
            p: Parameters, with the last action.
        """
        return position_observation(state, None, self.command(p.past, p))


def _place(distance: Scalar) -> Scalar:
    # Specification aerial_gym, 9.1: pos = E(d;2,1) + E(d;3,10) + A(d;3,50), the same for velocity and acceleration.
    return peak(distance, 2.0, 1.0) + peak(distance, 3.0, 10.0) + cusp(distance, 3.0, 50.0)


@dataclass(frozen=True)
class PositionByVelocity(_Disturbed):
    """Hold the origin, heading along world x, by velocities [m/s] in the vehicle frame and a yaw rate [rad/s]."""

    name: ClassVar[str] = "position_setpoint_velocity"
    level: ClassVar[str] = "velocity"

    def judge(self, before: Vector, after: Vector, action: Vector, past: Vector, p: Any) -> Judgement:
        """Return reward (aerial_gym, 9.1; tasks.json, `position_setpoint_sim2real_velocity`); -50 in a crash.

        Args:
            before: State before the step.
            after: State after it.
            action: That was taken, within [-1, 1].
            past: The action before.
            p: Parameters.
        """
        distance, nearer = self._nearer(before, after)
        # closer = 400 (d- - d); speed = E(|v|;1,3); act = sum AP(a;0.2,4); diff = sum AP(a - a-;0.3,6)
        place, closer = _place(distance), 400.0 * nearer
        speed = peak(norm(after[3:6]), 1.0, 3.0)
        effort = _total(cusp_penalty(a, 0.2, 4.0) for a in action)
        change = _total(cusp_penalty(a - b, 0.3, 6.0) for a, b in zip(action, past, strict=True))
        terms = {
            "position": place,
            "distance": (20.0 - distance) * (1.0 / 40.0),
            "position_steady": place * (speed + effort + closer * 0.1),
            "effort": effort,
            "change": change,
            "closer": closer,
            "yaw": cusp(euler_angles(after[6:10])[2], 2.0, 3.0),
        }
        return self._judged(terms, distance, -50.0, p)


@dataclass(frozen=True)
class PositionByAcceleration(_Disturbed):
    """Hold the origin, heading along world x, by accelerations within 2 m/s^2 and a yaw rate [rad/s].

    Accelerations are in the vehicle frame, as documented; published they act in the world's, and only penalties are in the
    vehicle frame's numbers.
    """

    name: ClassVar[str] = "position_setpoint_acceleration"
    level: ClassVar[str] = "acceleration"
    as_published: bool = False
    """Accelerations act in the world frame."""

    def control_for(self, vehicle: Vehicle) -> ControlConfig:
        """Return the gains of the controller, and the frame of its commands."""
        gains = super().control_for(vehicle).gains
        return ControlConfig(gains=gains, acceleration_frame="world" if self.as_published else "vehicle")

    def command(self, action: Vector, p: Any) -> Vector:
        """Return the acceleration [m/s^2] and yaw rate [rad/s]."""
        return (*scale(action[:3], _ACCELERATION), action[3])

    def _counted(self, action: Vector, attitude: Vector, p: Any) -> Vector:
        """Command in the vehicle frame."""
        x, y, z, turn = self.command(action, p)
        if not self.as_published:
            return (x, y, z, turn)
        c, s, _ = heading(matrix_columns(attitude))
        return (c * x + s * y, c * y - s * x, z, turn)

    def judge(self, before: Vector, after: Vector, action: Vector, past: Vector, p: Any) -> Judgement:
        """Return reward (aerial_gym, 9.1; tasks.json, `position_setpoint_sim2real_acceleration`); -50 in a crash.

        Args:
            before: State before the step.
            after: State after it.
            action: That was taken, within [-1, 1].
            past: The action before.
            p: Parameters.
        """
        distance, nearer = self._nearer(before, after)
        # On the command in the vehicle frame: act = sum AP(a;0.3,4), diff = sum AP(a - a-;0.4,6); speed = E(|v|;2,2.5)
        command, earlier = self._counted(action, after[6:10], p), self._counted(past, before[6:10], p)
        # closer = 400 (d- - d) if positive, else 1200 (d- - d): going away costs three times what coming near gives.
        place, closer = _place(distance), nearer * where(nearer > 0.0, 400.0, 1200.0)
        speed = peak(norm(after[3:6]), 2.0, 2.5)
        effort = _total(cusp_penalty(a, 0.3, 4.0) for a in command)
        change = _total(cusp_penalty(a - b, 0.4, 6.0) for a, b in zip(command, earlier, strict=True))
        terms = {
            "position": place,
            "position_steady": place * (closer * (1.0 / 9.0) + effort * (1.0 / 3.0) + speed * (1.0 / 1.5)),
            "effort": effort,
            "change": change,
            "closer": closer,
            "yaw": cusp(euler_angles(after[6:10])[2], 3.0, 5.0),
            "near": peak(distance, 2.0, 1.0),
            "speed": 0.2 * speed,
        }
        return self._judged(terms, distance, -50.0, p)


@dataclass(frozen=True)
class PositionByAttitude(_Position):
    """Hold the origin by collective thrust (0: the weight), roll and pitch [rad], and a yaw rate [rad/s]."""

    name: ClassVar[str] = "position_setpoint"
    level: ClassVar[str] = "attitude_thrust"
    vehicle: ClassVar[str] = "base_quadrotor"
    gain_set: ClassVar[str] = "lee"
    # Ours: at 100 steps of physics a second, as published, the attitude loop of these gains is not stable by our measure.
    physics_steps: Annotated[int, Bound(1, 100)] = 2
    """Least steps of physics and controller per decision; 1 is published."""
    episode_steps: Annotated[int, Bound(1, 1_000_000)] = 500
    """Decisions in a flight."""
    crash_m: Annotated[float, Bound(0.1, 1e3, "m")] = 8.0
    """Farther off the flight ends."""
    noise: bool = False
    """None is published."""

    def command(self, action: Vector, p: Any) -> Vector:
        """Return collective thrust [N], roll, pitch [rad] and yaw rate [rad/s]."""
        return (collective_from_normalized(action[0], p.nominal_weight, 1.0), *action[1:])

    def observe(self, state: Vector, noises: Vector, p: Any) -> Vector:
        """Return 13 numbers: those of `position_observation` but for the last action, and the quaternion as it is.

        Args:
            state: Of the flight.
            noises: 16 standard normal numbers.
            p: Parameters.
        """
        seen = position_observation(state, noises if self.noise else None, ())
        return seen if self.noise else (*seen[:3], *state[6:10], *seen[7:])

    def judge(self, before: Vector, after: Vector, action: Vector, past: Vector, p: Any) -> Judgement:
        """Return reward of tasks.json, `position_setpoint`; -20 in a crash.

        Args:
            before: State before the step.
            after: State after it.
            action: That was taken, within [-1, 1].
            past: The action before.
            p: Parameters.
        """
        distance, _ = self._nearer(before, after)
        # Terms pos, dist, up and spin of the same entry, which comes from the code; parameters beside it are not used there.
        place = peak(distance, 3.0, 8.0) + peak(distance, 2.0, 4.0)
        tilt = 1.0 - matrix_columns(after[6:10])[2][2]
        up, spin = 0.2 / (0.1 + tilt * tilt), 3.0 / (1.0 + dot(after[10:13], after[10:13]))
        terms = {"position": place, "distance": (20.0 - distance) * (1.0 / 40.0), "upright": place * up, "spin": place * spin}
        return self._judged(terms, distance, -20.0, p)
