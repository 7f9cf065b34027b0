"""Aerial Gym's navigation by sight as tasks: what is flown, observed beside the image, and judged.

Specification aerial_gym, 9.2 and 12, and learning by reward, 3.2. Images are taken beside the launch of a policy step
(`airworthy.learning.navigation.environments`), and so are terms of the reward that read them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from airworthy.control.levels import ControlConfig
from airworthy.core.arrays import Scalar, Vector
from airworthy.core.ops import arctan2, exp, maximum, minimum, sin_cos, sqrt, where
from airworthy.core.schema import Bound, check_fields
from airworthy.core.vectors import dot, matrix_columns, norm, rotate, rotate_inverse, scale, sub
from airworthy.learning.environments.conditions import Curriculum
from airworthy.learning.environments.rooms import BoxKind, RoomForm
from airworthy.learning.environments.start import euler_quaternion
from airworthy.learning.environments.task import Judgement, crashed_terms, peak, penalty
from airworthy.pilots.navigation_policy.sight import CLIMB, YAW_RATE
from airworthy.vehicles import Vehicle

__all__ = ["LIDAR_ROOMS", "POSE", "DepthNavigation", "LidarNavigation", "NavigationTask"]

POSE = ("position", "attitude", "mount", "place")
"""What an image depends on, in the order of `observe_critic`: 3, 4, 3 + 3 (translation [m], Euler angles [rad]), 9 numbers."""
_TURN = 6.283185307179586
# Source: specification aerial_gym, 9.2, observation perturbation; learning by reward, 3.2, has the same.
_TARGET_NOISE, _ANGLE_NOISE = 0.1, 0.05
"""Half widths of uniform noise: of the way to the target [m], of roll and pitch [rad]."""
_START_SHARES = ((0.1, 0.15, 0.15), (0.2, 0.85, 0.85))
"""Of the room, between which flights begin."""
_START_SPEED = 0.2
"""Half width of velocities [m/s] and rates [rad/s] at a start."""


def _uniform_pair(a: Scalar, b: Scalar) -> tuple[Scalar, Scalar]:
    """Two uniform numbers in (0, 1) of two standard normal ones: Box and Muller's transformation backwards."""
    return exp(-0.5 * (a * a + b * b)), arctan2(b, a) * (1.0 / _TURN) + 0.5


def _between(least: Vector, most: Vector, u: Vector) -> Vector:
    return tuple(low + (high - low) * x for low, high, x in zip(least, most, u, strict=True))


def level_frame(attitude: Vector) -> tuple[Scalar, Scalar]:
    """Return cosine and sine of the heading, of the frame in which velocities are commanded."""
    x = matrix_columns(attitude)[0]
    length = maximum(sqrt(x[0] * x[0] + x[1] * x[1]), 1e-9)
    return x[0] / length, x[1] / length


def in_level_frame(vector: Vector, attitude: Vector) -> Vector:
    """Return a world vector in the level frame that heads as the vehicle does."""
    c, s = level_frame(attitude)
    return (c * vector[0] + s * vector[1], c * vector[1] - s * vector[0], vector[2])


def _roll_pitch(attitude: Vector) -> tuple[Scalar, Scalar]:
    x, y, z = matrix_columns(attitude)
    return arctan2(y[2], z[2]), arctan2(-x[2], sqrt(y[2] * y[2] + z[2] * z[2]))


def _total(values: Any) -> Any:
    first, *rest = values
    for value in rest:
        first = first + value
    return first


@dataclass(frozen=True)
class NavigationTask:
    """What both tasks share: fly from one end of a room to a target at its other end, and be there when time is over."""

    name: ClassVar[str]
    level: ClassVar[str]
    vehicle: ClassVar[str]
    action_count: ClassVar[int]
    mount: ClassVar[tuple[tuple[float, ...], tuple[float, ...]]]
    """Least and largest translation [m] and Euler angles [rad] of the sensor on the body."""
    target: ClassVar[tuple[tuple[float, ...], tuple[float, ...]]]
    """Shares of the room between which targets are."""
    crash: ClassVar[float]
    """Reward of a step in which something was touched."""
    heading: ClassVar[float]
    """Half width of the heading at the start [rad]."""
    target_yaw: ClassVar[float] = 0.0
    """Half width of the heading that is asked for [rad]."""

    rate: Annotated[float, Bound(1.0, 100.0, "Hz")] = 10.0
    """Decisions per second."""
    episode_steps: Annotated[int, Bound(1, 1_000_000)] = 100
    """Decisions in a flight."""
    physics_steps: Annotated[int, Bound(1, 100)] = 10
    """Least steps of physics and controller per decision."""
    noise: bool = True
    """Published noise of observations."""
    pushed: bool = True
    """Published pushes from outside."""
    as_published: bool = False
    """With the published defects instead of what was evidently meant; see docs/howto/navigation.md."""
    rooms: RoomForm = field(default_factory=RoomForm)
    """Through which it flies."""
    curriculum: Curriculum = field(default_factory=Curriculum)
    """Of obstacles."""

    def __post_init__(self) -> None:
        check_fields(self, f"{type(self).__name__}.")

    @property
    def pushes(self) -> tuple[float, ...]:
        """Share of the steps of physics with a push, and most force [N] and moment [N m]."""
        # Source: robots.json, lmf2_config.py and magpie_config.py: probability 0.05, 4.75 N, 0.03 N m, per step of 0.01 s.
        steps = 0.05 if self.pushed else 0.0
        return (steps, 4.75, 4.75, 4.75, 0.03, 0.03, 0.03)

    def control_for(self, vehicle: Vehicle) -> ControlConfig:
        """Return the gains of the controller between command and rotors."""
        return ControlConfig(gains=self.vehicle if vehicle.name == self.vehicle else "auto")

    def start(self, uniforms: Vector, p: Any) -> Vector:
        """Return the state of a new flight, level, nearly at rest, at the near end of its room.

        Args:
            uniforms: 16 numbers in (0, 1).
            p: Parameters, with the flight's place.
        """
        u = tuple(2.0 * x - 1.0 for x in uniforms)
        place = p.place or (0.0,) * 9
        share = _between(*_START_SHARES, uniforms[:3])
        position = _between(place[3:6], place[6:9], share)
        attitude = euler_quaternion(0.0, 0.0, self.heading * u[6])
        return (*position, *scale(u[3:6], _START_SPEED), *attitude, *scale(u[7:10], _START_SPEED), *p.hover)

    def begin(self, uniforms: Vector, state: Vector, p: Any) -> Vector:
        """Return the target 3, mounting of the sensor 6, heading that is asked for.

        Args:
            uniforms: 16 numbers in (0, 1).
            state: In which it begins.
            p: Parameters, with the flight's place.
        """
        place = p.place or (0.0,) * 9
        target = _between(place[3:6], place[6:9], _between(*self.target, uniforms[:3]))
        return (*target, *_between(*self.mount, uniforms[3:9]), self.target_yaw * (2.0 * uniforms[9] - 1.0))

    def remember(self, before: Vector, after: Vector, action: Vector, p: Any) -> Vector:
        """Return the same, all flight long.

        Args:
            before: State before the step.
            after: State after it.
            action: That was taken.
            p: Parameters, with the memory.
        """
        return tuple(p.memory)

    def wrench(self, state: Vector, p: Any) -> tuple[Vector, Vector]:
        """Push from outside: force (world) [N] and moment (body) [N m]."""
        return rotate(state[6:10], p.push[:3]), tuple(p.push[3:])

    def observe_critic(self, state: Vector, p: Any) -> Vector:
        """Return what the image depends on, see `POSE`; no learner sees it."""
        return (*state[:3], *state[6:10], *p.memory[3:9], *(p.place or (0.0,) * 9))

    def error(self, state: Vector, p: Any) -> Scalar:
        """Return the distance to the target [m]."""
        return norm(sub(tuple(p.memory[:3]), state[:3]))

    def observe(self, state: Vector, noises: Vector, p: Any) -> Vector:
        """Return 17 numbers: direction to the target 3, distance, roll, pitch, error of heading, velocity 3, rate 3, last
        command 4.

        The direction is in the level frame, velocity and rate are in the body's.

        Args:
            state: Of the flight.
            noises: 16 standard normal numbers.
            p: Parameters, with memory and last action.
        """
        away = in_level_frame(sub(tuple(p.memory[:3]), state[:3]), state[6:10])
        distance = norm(away)
        roll, pitch = _roll_pitch(state[6:10])
        if self.noise:
            u = [x for k in range(0, 6, 2) for x in _uniform_pair(noises[k], noises[k + 1])]
            # As published the noise lies to one side: its centring is misplaced.
            middle = 0.0 if self.as_published else 0.5
            away = tuple(x + 2.0 * _TARGET_NOISE * (e - middle) for x, e in zip(away, u, strict=False))
            roll, pitch = (x + _ANGLE_NOISE * (2.0 * e - 1.0) for x, e in zip((roll, pitch), u[3:5], strict=True))
        # Published: by the true distance, which makes no unit vector of what noise has moved.
        length = maximum(distance if self.as_published else norm(away), 1e-6)
        body = rotate_inverse(state[6:10], state[3:6])
        direction = scale(away, 1.0 / length)
        return (*direction, distance, roll, pitch, self._turn(state, p), *body, *state[10:13], *self.commanded(p.past, p))

    def command(self, action: Vector, p: Any) -> Vector:
        """Return the command of the level."""
        return self.commanded(action, p)

    def commanded(self, action: Vector, p: Any) -> Vector:
        """Return four numbers of the command."""
        raise NotImplementedError

    def judge(self, before: Vector, after: Vector, action: Vector, past: Vector, p: Any) -> Judgement:
        """Return reward of a step, but for what sees the image.

        Args:
            before: State before it.
            after: State after it.
            action: That was taken, within [-1, 1].
            past: The action before.
            p: Parameters.
        """
        raise NotImplementedError

    def _turn(self, state: Vector, p: Any) -> Scalar:
        """Error of heading [rad]."""
        return 0.0 * state[0]

    def _change(self, action: Vector, past: Vector, p: Any) -> Vector:
        """Change of the command; published it is none, since the earlier command is overwritten within the step."""
        now = self.commanded(action, p)
        return tuple(0.0 * x for x in now) if self.as_published else sub(now, self.commanded(past, p))

    def _judged(self, terms: dict[str, Scalar], distance: Scalar, p: Any) -> Judgement:
        lost = where(p.touched > 0.5, 1.0, 0.0) > 0.5
        reached = where(lost, 0.0, where(distance < 1.0, 1.0, 0.0))
        return Judgement(crashed_terms(terms, lost, self.crash), where(lost, 1.0, 0.0), reached)


# Source: sensors.json, base_depth_camera: min_euler_rotation_deg and max_euler_rotation_deg, 5 either way.
_MOUNT_DEG = math.radians(5.0)


@dataclass(frozen=True)
class DepthNavigation(NavigationTask):
    """Fly through a room to a target by speed, climb and yaw rate, forward only, with a depth camera.

    Specification aerial_gym, 9.2.
    """

    name: ClassVar[str] = "depth_navigation"
    level: ClassVar[str] = "velocity"
    vehicle: ClassVar[str] = "lmf2"
    action_count: ClassVar[int] = 3
    """Published are four, of which the last is never read: its noise would only blur what is learnt."""
    mount: ClassVar[tuple[tuple[float, ...], tuple[float, ...]]] = (
        (0.07, -0.06, 0.01, -_MOUNT_DEG, -_MOUNT_DEG, -_MOUNT_DEG),
        (0.12, 0.03, 0.04, _MOUNT_DEG, _MOUNT_DEG, _MOUNT_DEG),
    )
    target: ClassVar[tuple[tuple[float, ...], tuple[float, ...]]] = ((0.9, 0.1, 0.1), (0.94, 0.9, 0.9))
    crash: ClassVar[float] = -100.0
    heading: ClassVar[float] = math.pi / 6.0

    def hover_action(self, p: Any) -> Vector:
        """Return the action of no speed."""
        return (-1.0, 0.0, 0.0)

    def commanded(self, action: Vector, p: Any) -> Vector:
        """Return the velocity 3 [m/s] in the level frame, within 45 degrees of forward, at most 2 m/s, and yaw rate [rad/s]."""
        speed, (sine, cosine) = action[0] + 1.0, sin_cos(CLIMB * action[1])
        return (speed * cosine, 0.0 * speed, speed * sine, YAW_RATE * action[2])

    def judge(self, before: Vector, after: Vector, action: Vector, past: Vector, p: Any) -> Judgement:
        """Return reward as published, but for what sees the image; -100 where something was touched.

        Args:
            before: State before the step.
            after: State after it.
            action: That was taken, within [-1, 1].
            past: The action before.
            p: Parameters.
        """
        distance, earlier = self.error(after, p), self.error(before, p)
        nearer, k = earlier - distance, 1.0 + 2.0 * p.progress
        x, _, z, turn = self._change(action, past, p)
        forward, _, climb, rate = self.commanded(action, p)
        effort = penalty(forward, 0.1, 0.3) + penalty(climb, 1.5, 1.0) + penalty(rate, 1.5, 2.0)
        terms = {
            "position": k * peak(distance, 5.0, 1.0 / 3.5),
            "near": k * peak(distance, 5.0, 2.0),
            "closer": k * nearer * where(nearer > 0.0, 10.0, 20.0),
            "distance": k * (20.0 - distance) * (1.0 / 20.0),
            "change": penalty(x, 0.8, 3.333) + penalty(z, 0.8, 5.0) + penalty(turn, 0.8, 3.33),
            "effort": p.progress * effort,
        }
        return self._judged(terms, distance, p)


_ANY, _SIXTY = math.pi, math.pi / 3.0
_OBJECTS = ((0.1, 0.5, 0.5), (0.1, 1.0, 1.0), (0.1, 0.1, 2.0), (0.4, 0.4, 0.4))
LIDAR_ROOMS = RoomForm(
    ((-7.5, -7.5, -5.0), (-5.0, -5.0, -3.0)),
    ((5.0, 5.0, 3.0), (7.5, 7.5, 5.0)),
    BoxKind(15, ((0.1, 1.2, 3.0),), (0.35, 0.0, 0.0), (1.0, 1.0, 1.0), (0.0, 0.0, _SIXTY)),
    BoxKind(70, _OBJECTS, (0.3, 0.0, 0.0), (1.0, 1.0, 1.0), (_ANY, _ANY, _ANY)),
)
"""`env_with_lidar_nav_obstacles`. Published walls may be left out at low levels; ours stand, or flights leave the room."""


@dataclass(frozen=True)
class LidarNavigation(NavigationTask):
    """Fly through a room to a target by acceleration and yaw rate, with a LiDAR of half a sphere.

    Specification, learning by reward, 3.2.
    """

    name: ClassVar[str] = "lidar_navigation"
    level: ClassVar[str] = "acceleration"
    vehicle: ClassVar[str] = "magpie"
    action_count: ClassVar[int] = 4
    # Source: sensors.json, rslidar_airy, but for the sign of its pitch: by -90 degrees the dome looks back in our frames.
    mount: ClassVar[tuple[tuple[float, ...], tuple[float, ...]]] = ((-0.05, 0.0, 0.0, 0.0, 0.5 * math.pi, 0.0),) * 2
    target: ClassVar[tuple[tuple[float, ...], tuple[float, ...]]] = ((0.9, 0.15, 0.15), (0.92, 0.8, 0.8))
    crash: ClassVar[float] = -10.0
    heading: ClassVar[float] = math.pi
    target_yaw: ClassVar[float] = math.pi

    episode_steps: Annotated[int, Bound(1, 1_000_000)] = 110
    """Decisions in a flight."""
    rooms: RoomForm = LIDAR_ROOMS
    """Through which it flies."""
    curriculum: Curriculum = field(default_factory=lambda: Curriculum(least=25, most=70))
    """Of obstacles."""

    def control_for(self, vehicle: Vehicle) -> ControlConfig:
        """Return the gains of the controller; accelerations are in the vehicle frame, published in the world's."""
        frame: Any = "world" if self.as_published else "vehicle"
        return ControlConfig(gains=super().control_for(vehicle).gains, acceleration_frame=frame)

    def commanded(self, action: Vector, p: Any) -> Vector:
        """Return the acceleration 3 [m/s^2] and yaw rate [rad/s]."""
        return (*scale(action[:3], 2.0), YAW_RATE * action[3])

    def _turn(self, state: Vector, p: Any) -> Scalar:
        x = matrix_columns(state[6:10])[0]
        sine, cosine = sin_cos(p.memory[9])
        # Of the heading that is asked for, less the present one, within half a turn.
        return arctan2(sine * x[0] - cosine * x[1], cosine * x[0] + sine * x[1])

    def judge(self, before: Vector, after: Vector, action: Vector, past: Vector, p: Any) -> Judgement:
        """Return reward as published, but for the time to collision; -10 where something was touched.

        Args:
            before: State before the step.
            after: State after it.
            action: That was taken, within [-1, 1].
            past: The action before.
            p: Parameters.
        """
        away = in_level_frame(sub(tuple(p.memory[:3]), after[:3]), after[6:10])
        v = in_level_frame(after[3:6], after[6:10])
        d, s, e = norm(away), norm(v), self._turn(after, p)
        k, f, g = 1.0 + 2.0 * p.progress, p.progress, peak(e, 1.0, 2.0)
        along = dot(v, away) / (maximum(s, 1e-6) * maximum(d, 1e-6))
        steady = peak(s, 1.5, 10.0) + peak(s, 1.5, 0.5) + peak(e, 2.0, 0.2) + peak(e, 4.0, 15.0) + g * peak(after[12], 1.5, 5.0)
        # The clamp of the published term punishes forward flight; flying backwards is what it is meant for.
        wrong = v[0] if self.as_published else -v[0]
        back = penalty(maximum(wrong, 0.0), 2.0, 8.0) * (1.0 - peak(d, 1.0, 2.0))
        change = _total(penalty(x, 0.3, 5.0) for x in self._change(action, past, p))
        a = self.commanded(action, p)
        effort = penalty(a[0], 0.1, 0.3) + penalty(a[1], 0.1, 0.3) + penalty(a[2], 0.15, 1.0) + penalty(a[3], 0.15, 2.0)
        terms = {
            "position": k * peak(d, 3.0, 1.0),
            "near": k * peak(d, 5.0, 8.0) * g,
            "direction": k * where(along > 0.0, along * peak(s - 2.0, 2.0, 2.0), -0.2) * minimum(d * (1.0 / 3.0), 1.0),
            "distance": k * (20.0 - d) * (1.0 / 20.0),
            "steady": k * where(d < 1.0, steady, 0.0),
            "speed": k * (penalty(maximum(s - 3.0, 0.0), 2.0, 2.0) + back),
            "change": k * change,
            "effort": k * f * effort,
        }
        return self._judged(terms, d, p)
