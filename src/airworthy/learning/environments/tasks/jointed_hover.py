"""Aerial Gym's hover tasks of vehicles with joints (specification articulated, 7): compliant Morphy, and a chain of links.

Formulas and numbers: `position_setpoint_task_morphy` and `position_setpoint_task_reconfigurable` of
ntnu-arl/aerial_gym_simulator, commit f0d0f05.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from airworthy.core.arrays import Scalar, Vector
from airworthy.core.ops import absolute, maximum, sqrt, where
from airworthy.core.schema import Bound, check_fields
from airworthy.core.vectors import matrix_columns, norm, rotate_inverse
from airworthy.dynamics.articulated.composite import effectiveness
from airworthy.learning.environments.jointed import split_state
from airworthy.learning.environments.start import euler_quaternion
from airworthy.learning.environments.task import Judgement, crashed_terms, peak, penalty, thrust_command
from airworthy.learning.environments.tasks.position import euler_angles

__all__ = ["ChainHover", "MorphyHover", "flyable_shape", "total"]

_BOX, _SPEED = 1.0, 0.2
"""Starts: within 1 m of the target per axis; velocities and rates within 0.2 [m/s, rad/s]."""
_TILT_MAX = 1.0
"""Roll or pitch beyond which a flight ends [rad]."""
_LOST = -20.0
"""Reward of the step in which it does."""


def total(values: Any) -> Any:
    """Return the sum of one or more scalars."""
    first, *rest = values
    for value in rest:
        first = first + value
    return first


@dataclass(frozen=True)
class _JointedHover:
    """What both tasks share."""

    jointed: ClassVar[bool] = True
    noise: ClassVar[bool] = False
    physics_steps: ClassVar[int] = 5  # of 2 ms
    rate: Annotated[float, Bound(20.0, 1000.0, "Hz")] = 100.0
    """Decisions per second, of five steps of physics each."""
    episode_steps: Annotated[int, Bound(1, 1_000_000)] = 500
    """Decisions in a flight."""
    crash_m: Annotated[float, Bound(0.1, 1e3, "m")] = 3.0
    """Farther off the flight ends, as at a roll or pitch of more than 1 rad."""

    thrust_max: ClassVar[float]
    """Of a motor [N], at an action of 1."""
    heading: ClassVar[float]
    """Half width of headings at starts [rad]."""
    joint_rate: ClassVar[float]
    """Of joints at starts [rad/s]."""

    def __post_init__(self) -> None:
        check_fields(self, f"{type(self).__name__}.")

    @property
    def _published(self) -> bool:
        return bool(getattr(self, "as_published", False))

    def thrusts(self, action: Vector, rotors: int) -> Vector:
        """Return motor thrusts of an action [N].

        Args:
            action: Within -1 and 1.
            rotors: How many of its numbers are motors'.
        """
        if self._published:
            # The published action is cut off to 0 to 1: of what a policy gives within -1 to 1 half is no thrust at all.
            return tuple(self.thrust_max * maximum(a, 0.0) for a in action[:rotors])
        return tuple(0.5 * self.thrust_max * (1.0 + a) for a in action[:rotors])

    def hover_action(self, p: Any) -> Vector:
        """Return the action of equal shares of the weight, joints at rest."""
        count = len(p.rotor_thrust)
        share = p.nominal_weight * (1.0 / (count * self.thrust_max))
        motor = share if self._published else 2.0 * share - 1.0
        return ((motor,) * count) + self.joints_at_rest(len(p.joint_target))

    def joints_at_rest(self, joints: int) -> Vector:
        """Return the numbers of an action that leave joints as they are; none where they are not commanded."""
        return ()

    def observe(self, state: Vector, noises: Vector, p: Any) -> Vector:
        """Return the way to the target (world) 3, attitude 4, velocity (body) 3, body rate 3, what the last action commanded
        (motors [N], joints [rad/s]), joint angles, joint rates.

        Args:
            state: Of the flight.
            noises: Not read: published observations have none.
            p: Parameters, with the last action.
        """
        position, velocity, attitude, rate, _, q, qd = split_state(state, len(p.rotor_thrust), len(p.joint_target))
        past = self.commanded(p.past, p)
        return (*(-x for x in position), *attitude, *rotate_inverse(attitude, velocity), *rate, *past, *q, *qd)

    def commanded(self, action: Vector, p: Any) -> Vector:
        """Return thrusts [N], and rates of joints [rad/s] where they are commanded."""
        return self.thrusts(action, len(p.rotor_thrust))

    def begun(self, u: Vector, angles: Vector, rates: Vector, p: Any) -> Vector:
        """Return the state of a new flight.

        Args:
            u: 16 numbers within -1 and 1.
            angles: Of the joints [rad].
            rates: Of the joints, within -1 and 1.
            p: Parameters.
        """
        attitude = euler_quaternion(0.0 * u[6], 0.0 * u[6], self.heading * u[6])
        place, speed, turn = (tuple(k * x for x in part) for k, part in ((_BOX, u[:3]), (_SPEED, u[3:6]), (_SPEED, u[7:10])))
        return (*place, *speed, *attitude, *turn, *p.hover, *angles, *(self.joint_rate * x for x in rates))

    def goal(self, p: Any) -> Vector:
        """Return hover at the target, joints as flights of the simulator start."""
        nothing = (0.0,) * 3
        joints = len(p.joint_target)
        return (*nothing, *nothing, *nothing, 1.0, *nothing, *p.hover, *p.joint_start, *((0.0,) * joints))

    def ended(self, terms: dict[str, Scalar], distance: Scalar, roll: Scalar, pitch: Scalar) -> Judgement:
        """Return terms, or the published value where the flight ends; success within 10 cm of the target (ours).

        Args:
            terms: Of a flight that goes on.
            distance: From the target [m].
            roll: [rad]
            pitch: [rad]
        """
        tilt = maximum(absolute(roll), absolute(pitch))
        lost = where(distance > self.crash_m, 1.0, where(tilt > _TILT_MAX, 1.0, 0.0))
        return Judgement(crashed_terms(terms, lost > 0.5, _LOST), lost, where(distance < 0.1, 1.0, 0.0))


@dataclass(frozen=True)
class MorphyHover(_JointedHover):
    """Hold Morphy's base at the origin, level, by four motor thrusts, on arms that bend."""

    as_published: bool = False
    """Actions are cut off to 0 to 1, as published; else all of -1 to 1 means thrust, 0 to 2 N."""

    name: ClassVar[str] = "morphy_hover"
    vehicle: ClassVar[str] = "morphy"
    thrust_max: ClassVar[float] = 2.0
    heading: ClassVar[float] = 0.5235987755982988
    joint_rate: ClassVar[float] = 0.05

    def start(self, uniforms: Vector, p: Any) -> Vector:
        """Draw states within 1 m, level, headings within 30 degrees, joints within 0.1 rad and 0.05 rad/s."""
        u = tuple(2.0 * x - 1.0 for x in uniforms)
        joints = len(p.joint_target)
        return self.begun(u[:16], tuple(0.1 * x for x in u[16 : 16 + joints]), u[32 : 32 + joints], p)

    def command(self, action: Vector, p: Any) -> Vector:
        """Return rotor states of thrusts of 0 to 2 N; nothing commands the joints."""
        return thrust_command(self.thrusts(action, len(p.rotor_thrust)), p)

    def judge(self, before: Vector, after: Vector, action: Vector, past: Vector, p: Any) -> Judgement:
        """Return the published reward (tasks.json, `position_setpoint_morphy`).

        Args:
            before: State before the step.
            after: State after it.
            action: That was taken, within [-1, 1].
            past: The action before.
            p: Parameters.
        """
        count = len(p.rotor_thrust)
        _, _, attitude, rate, _, _, qd = split_state(after, count, len(p.joint_target))
        distance, (roll, pitch, _) = norm(after[:3]), euler_angles(attitude)
        thrusts, earlier = self.thrusts(action, count), self.thrusts(past, count)
        x, y = attitude[:2]
        # 1 - up: twice what x and y of the quaternion are off zero, without the rounding of a difference.
        tilted = 2.0 * (x * x + y * y)
        place = peak(distance, 4.0, 12.0) + peak(distance, 1.0, 3.0)
        change = total(penalty(b - a, 0.2, 5.0) for a, b in zip(thrusts, earlier, strict=True))
        # 0.711225 N: a quarter of the weight of 0.29 kg, as published.
        terms = {
            "position": place,
            "distance": (20.0 - distance) * (1.0 / 40.0),
            "position_steady": place * (peak(tilted, 5.0, 25.0) + peak(norm(rate), 3.0, 10.5)),
            "change": change,
            "position_change": place * change,
            "effort": -0.15 * total((u - 0.711225) * (u - 0.711225) for u in thrusts),
            "joint_speed": total(penalty(v, 0.3, 30.0) for v in qd),
        }
        return self.ended(terms, distance, roll, pitch)


_CHAIN_TURN, _CHAIN_ROLL = 1.5707963267948966, 0.3
"""Half widths of angles at starts, of joints about z and about x [rad]."""
_ARM = 0.1
"""Least third singular value of the rows of vertical force and of moments about x and y, per newton, that can hover [m]."""


@dataclass(frozen=True)
class ChainHover(_JointedHover):
    """Hold the first of six links at the origin, level, by six motor thrusts and ten joint rates, in whatever shape."""

    as_published: bool = False
    """Actions are cut off to 0 to 1, joints turn the other way (published limits of joints have least and largest swapped), and
    starts are in any shape; else all of -1 to 1 means thrust, and rates have the sign of the action."""
    flyable: bool = True
    """Draw starts only in shapes that can hover; ours."""
    headless: bool = True
    """See the way to the target in the body's axes and the attitude less its heading: headings, which are drawn from all, then
    make no difference (ours); else in the world's, beside velocities in the body's, as published."""

    name: ClassVar[str] = "chain_hover"
    vehicle: ClassVar[str] = "snakey6"
    action_count: ClassVar[int] = 16
    thrust_max: ClassVar[float] = 15.0
    heading: ClassVar[float] = 3.141592653589793
    joint_rate: ClassVar[float] = 0.1

    def observe(self, state: Vector, noises: Vector, p: Any) -> Vector:
        """Return 49 numbers, as of `morphy_hover`; see `headless`.

        Args:
            state: Of the flight.
            noises: Not read.
            p: Parameters, with the last action.
        """
        seen = super().observe(state, noises, p)
        if not self.headless or self.as_published:
            return seen
        attitude = state[6:10]
        return (*rotate_inverse(attitude, seen[:3]), *tilt_quaternion(attitude), *seen[7:])

    def joints_at_rest(self, joints: int) -> Vector:
        """Return rates of zero: published, the middle of 0 to 1."""
        return (0.5 if self.as_published else 0.0,) * joints

    def start(self, uniforms: Vector, p: Any) -> Vector:
        """Draw states within 1 m, level, any heading, joints within 90 degrees about z and 0.3 rad about x."""
        u = tuple(2.0 * x - 1.0 for x in uniforms)
        joints = len(p.joint_target)
        # The first that can hover of three shapes, or else a ring. Six draws are left for the rates.
        candidates = [_bent(u[16 + k * joints : 16 + (k + 1) * joints]) for k in range(3)]
        angles = candidates[0]
        if self.flyable and not self.as_published:
            angles = flyable_shape([*candidates], tuple(p.joint_start), p)
        rates = tuple(u[10 + k % 6] for k in range(joints))
        return self.begun(u[:16], angles, rates, p)

    def command(self, action: Vector, p: Any) -> Vector:
        """Return rotor states of thrusts of 0 to 15 N, and joint rates of -1 to 1 rad/s."""
        count = len(p.rotor_thrust)
        return (*thrust_command(self.thrusts(action, count), p), *self._rates(action[count:]))

    def commanded(self, action: Vector, p: Any) -> Vector:
        """Return thrusts [N] and joint rates [rad/s]."""
        count = len(p.rotor_thrust)
        return (*self.thrusts(action, count), *self._rates(action[count:]))

    def _rates(self, action: Vector) -> Vector:
        # Published: from 1 at an action of 0 to -1 at an action of 1.
        return tuple(1.0 - 2.0 * maximum(a, 0.0) for a in action) if self.as_published else tuple(action)

    def judge(self, before: Vector, after: Vector, action: Vector, past: Vector, p: Any) -> Judgement:
        """Return the published reward (tasks.json, `position_setpoint_reconfigurable`).

        Args:
            before: State before the step.
            after: State after it.
            action: That was taken, within [-1, 1].
            past: The action before.
            p: Parameters.
        """
        rate = after[10:13]
        distance, (roll, pitch, _) = norm(after[:3]), euler_angles(after[6:10])
        place = peak(distance, 3.0, 8.0) + peak(distance, 0.5, 1.0)
        yaw = peak(rate[2], 5.0, 20.5)
        upright = peak(roll, 3.0, 5.0) + peak(pitch, 3.0, 5.0)
        terms = {
            "position": place,
            "distance": (20.0 - distance) * (1.0 / 40.0),
            "yaw_rate": yaw,
            "position_steady": place * (upright + peak(norm(rate), 3.0, 10.5) + yaw),
        }
        return self.ended(terms, distance, roll, pitch)


def tilt_quaternion(attitude: Vector) -> Vector:
    """Return the shortest turn from the vertical to a body's own z axis: its attitude less a heading, x y z w."""
    up = tuple(column[2] for column in matrix_columns(attitude))
    w = sqrt(maximum(0.5 * (1.0 + up[2]), 1e-6))
    half = 0.5 / w
    return (up[1] * half, -(up[0] * half), 0.0 * w, w)


def _bent(u: Vector) -> Vector:
    """Angles of joints that turn about z and x in turn, from numbers within -1 and 1."""
    return tuple((_CHAIN_ROLL if k % 2 else _CHAIN_TURN) * x for k, x in enumerate(u))


def flyable_shape(shapes: list[Vector], otherwise: Vector, p: Any) -> Vector:
    """Return the first of some shapes in which rotors can carry the weight and turn the vehicle about x and y.

    That is: of the rows of vertical force and of moments about x and y, per newton of each rotor, the least singular value is
    above 0.1 m: B B^T less its square is positive definite, by its leading minors.

    Args:
        shapes: Joint angles [rad].
        otherwise: Where none of them can.
        p: Parameters.
    """
    chosen = otherwise
    for angles in reversed(shapes):
        rows = [tuple(column[k] for column in effectiveness(p.structure, p.model, angles)) for k in (2, 3, 4)]
        (a, b, c), (_, d, e), (_, _, f) = (
            tuple(
                total(x * y for x, y in zip(one, other, strict=True)) - (_ARM * _ARM if i == j else 0.0)
                for j, other in enumerate(rows)
            )
            for i, one in enumerate(rows)
        )
        two = a * d - b * b
        three = a * (d * f - e * e) - b * (b * f - c * e) + c * (b * e - c * d)
        fine = where(a > 0.0, 1.0, 0.0) * where(two > 0.0, 1.0, 0.0) * where(three > 0.0, 1.0, 0.0)
        chosen = tuple(where(fine > 0.5, x, other) for x, other in zip(angles, chosen, strict=True))
    return chosen
