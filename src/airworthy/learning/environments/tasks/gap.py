"""A chain of links flies through a slot that is narrower than the chain is wide, by changing its shape (ours)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from airworthy.core.arrays import Scalar, Vector
from airworthy.core.ops import absolute, exp, maximum, minimum, sqrt, where
from airworthy.core.schema import Bound, check_fields
from airworthy.core.vectors import add, dot, matrix_columns, norm, rotate, rotate_inverse, sub
from airworthy.dynamics.articulated.composite import body_centers, mean_by_mass
from airworthy.dynamics.articulated.equations import kinematics, matrix_vector, positions
from airworthy.learning.environments.jointed import split_state
from airworthy.learning.environments.start import euler_quaternion
from airworthy.learning.environments.task import Judgement, crashed_terms, thrust_command

__all__ = ["Gap", "slot_distance", "sphere_places"]

_BEND = 0.6981317007977318
"""Of the joints about z at starts [rad]: an arc of 40 degrees per joint is 1.25 m wide. At 70 it would be widest, and a chain
that is to become narrower could as well curl up."""
_AWAY = 3.0
"""Distance from the middle of the slot at which flights begin, and of the target behind it [m]."""
_LOST = -10.0
"""Reward of the step in which a flight ends."""
_TILT_MAX = 1.0
"""Of the first link, beyond which a flight ends [rad]."""


@dataclass(frozen=True)
class Gap:
    """Fly a chain through a slot in a wall across x = 0, and hold a place behind it, by motor thrusts and joint rates.

    Flights begin 3 m before the wall, as an arc that is half as wide again as the slot; drawn straight out the chain would fit,
    but could not turn about its own line. A sphere of a link that touches the wall ends the flight: see `slot_distance`.
    """

    name: ClassVar[str] = "gap"
    vehicle: ClassVar[str] = "snakey"
    jointed: ClassVar[bool] = True
    noise: ClassVar[bool] = False
    action_count: ClassVar[int] = 10
    physics_steps: ClassVar[int] = 10  # of 2 ms
    thrust_max: ClassVar[float] = 15.0

    rate: Annotated[float, Bound(10.0, 500.0, "Hz")] = 50.0
    """Decisions per second, of ten steps of physics each."""
    episode_steps: Annotated[int, Bound(1, 1_000_000)] = 400
    """Decisions in a flight."""
    width_m: Annotated[float, Bound(0.1, 100.0, "m")] = 0.8
    """Of the slot, along y."""
    height_m: Annotated[float, Bound(0.1, 100.0, "m")] = 0.8
    """Of the slot, along z."""
    depth_m: Annotated[float, Bound(0.01, 100.0, "m")] = 0.5
    """Of the wall, along x: more than spheres of a link are apart, so that no link is in it without one of its spheres."""
    crash_m: Annotated[float, Bound(0.1, 1e3, "m")] = 5.0
    """The centre of mass farther off the target than this and twice 3 m ends the flight."""
    cruise_m_s: Annotated[float, Bound(0.1, 100.0, "m/s")] = 1.0
    """Speed up to which coming nearer counts."""

    def __post_init__(self) -> None:
        check_fields(self, "Gap.")

    # ---- what flies ------------------------------------------------------------------------------------------------

    def start(self, uniforms: Vector, p: Any) -> Vector:
        """Draw an arc of links 3 m before the slot, its chord along x, nearly at rest, within 0.3 m and 10 degrees."""
        u = tuple(2.0 * x - 1.0 for x in uniforms)
        joints = len(p.joint_target)
        angles = tuple((0.05 * x if k % 2 else -_BEND + 0.15 * x) for k, x in enumerate(u[16 : 16 + joints]))
        # The first link leads off along y, the arc bends back: its chord lies along x.
        attitude = euler_quaternion(0.0 * u[6], 0.0 * u[6], 1.5 * _BEND + 0.17 * u[6])
        middle = rotate(attitude, center_of_shape(angles, p))
        place = (-_AWAY + 0.3 * u[0] - middle[0], 0.3 * u[1] - middle[1], 0.3 * u[2] - middle[2])
        speed, turn = (tuple(0.1 * x for x in part) for part in (u[3:6], u[7:10]))
        return (*place, *speed, *attitude, *turn, *p.hover, *angles, *((0.0,) * joints))

    def command(self, action: Vector, p: Any) -> Vector:
        """Return rotor states of thrusts of 0 to 15 N, and joint rates of -1 to 1 rad/s."""
        count = len(p.rotor_thrust)
        return (*thrust_command(self.thrusts(action, count), p), *action[count:])

    def thrusts(self, action: Vector, rotors: int) -> Vector:
        """Return motor thrusts of an action [N].

        Args:
            action: Within -1 and 1.
            rotors: How many of its numbers are motors'.
        """
        return tuple(0.5 * self.thrust_max * (1.0 + a) for a in action[:rotors])

    def hover_action(self, p: Any) -> Vector:
        """Return the action of equal shares of the weight, joints at rest."""
        count = len(p.rotor_thrust)
        motor = p.nominal_weight * (2.0 / (count * self.thrust_max)) - 1.0
        return (motor,) * count + (0.0,) * len(p.joint_target)

    def goal(self, p: Any) -> Vector:
        """Return hover at the target as a ring."""
        nothing, joints = (0.0,) * 3, len(p.joint_target)
        middle = center_of_shape(tuple(p.joint_start), p)
        place = (_AWAY - middle[0], -middle[1], -middle[2])
        return (*place, *nothing, *nothing, 1.0, *nothing, *p.hover, *p.joint_start, *((0.0,) * joints))

    # ---- what is seen ----------------------------------------------------------------------------------------------

    def observe(self, state: Vector, noises: Vector, p: Any) -> Vector:
        """Return place of the first link and of the centre of mass (world, from the slot's middle) 6, two columns of the
        rotation matrix 6, velocity (body) 3, body rate 3, last action, joint angles, joint rates.

        Args:
            state: Of the flight.
            noises: Not read.
            p: Parameters, with the last action.
        """
        position, velocity, attitude, rate, _, q, qd = split_state(state, len(p.rotor_thrust), len(p.joint_target))
        columns = matrix_columns(attitude)
        middle = add(position, rotate(attitude, center_of_shape(q, p)))
        return (*position, *middle, *columns[0], *columns[2], *rotate_inverse(attitude, velocity), *rate, *p.past, *q, *qd)

    # ---- how it is judged ------------------------------------------------------------------------------------------

    def judge(self, before: Vector, after: Vector, action: Vector, past: Vector, p: Any) -> Judgement:
        """Return a reward for coming nearer to the target, calm, level, inside of a funnel that ends in the slot.

        Args:
            before: State before the step.
            after: State after it.
            action: That was taken, within [-1, 1].
            past: The action before.
            p: Parameters.
        """
        places, earlier = sphere_places(after, p), sphere_places(before, p)
        radii = [sphere[3] for _, sphere in p.spheres]
        touched: Scalar = 0.0
        behind: Scalar = 1.0
        for place, was, radius in zip(places, earlier, radii, strict=True):
            moved = norm(sub(place, was))
            # Between two decisions a sphere is within half of its way of where it was at one of them.
            reach = radius + 0.5 * moved
            near = minimum(self._distance(place), self._distance(was))
            touched = maximum(touched, where(near < reach, 1.0, 0.0))
            behind = minimum(behind, where(place[0] - radius > 0.5 * self.depth_m, 1.0, 0.0))
        off, was_off = (self.off(state, p) for state in (after, before))
        distance, distance_before = (sqrt(dot(x, x) + 0.01) for x in (off, was_off))
        step_m = self.cruise_m_s / self.rate
        columns, rate, count = matrix_columns(after[6:10]), after[10:13], len(p.rotor_thrust)
        qd = after[13 + count + len(p.joint_target) :]
        change: Scalar = 0.0
        for a, b in zip(action, past, strict=True):
            change = change + (a - b) * (a - b)
        bending: Scalar = 0.0
        for speed in qd:
            bending = bending + speed * speed
        terms = {
            "alive": 0.5 + 0.0 * distance,
            "nearer": minimum((distance_before - distance) * (1.0 / step_m), 1.0),
            "there": exp(-2.0 * dot(off, off)),
            "level": -1.0 * (1.0 - columns[2][2]),
            "turning": -0.1 * dot(rate, rate),
            "joints": -0.02 * bending,
            "change": -0.02 * change,
            "funnel": -2.0 * self.tight(after, p),
        }
        tilted = where(columns[2][2] < 0.5403023058681398, 1.0, 0.0)  # cos(1 rad)
        far = where(distance > 2.0 * _AWAY + self.crash_m, 1.0, 0.0)
        lost = maximum(touched, maximum(tilted, far))
        return Judgement(crashed_terms(terms, lost > 0.5, _LOST), lost, behind)

    def error(self, state: Vector, p: Any) -> Scalar:
        """Return how far the centre of mass is from the target [m]."""
        return norm(self.off(state, p))

    def tight(self, state: Vector, p: Any) -> Scalar:
        """Return the sum over the spheres of the links of the squares of how far each, with 10 cm of room, is outside of a
        funnel that opens at 45 degrees before and behind the slot [m^2].

        Args:
            state: Of the flight.
            p: Parameters, with tree and spheres.
        """
        total: Scalar = 0.0
        for place, (_, sphere) in zip(sphere_places(state, p), p.spheres, strict=True):
            total = total + self._outside(place, sphere[3])
        return total

    def off(self, state: Vector, p: Any) -> Vector:
        """Return the way from the target to the centre of mass [m].

        Args:
            state: Of the flight.
            p: Parameters, with the tree.
        """
        q = split_state(state, len(p.rotor_thrust), len(p.joint_target))[5]
        middle = add(state[:3], rotate(state[6:10], center_of_shape(q, p)))
        return (middle[0] - _AWAY, middle[1], middle[2])

    def _distance(self, place: Vector) -> Scalar:
        return slot_distance(place, self.width_m, self.height_m, self.depth_m)

    def _outside(self, place: Vector, radius: float) -> Scalar:
        """Of one sphere."""
        away = maximum(absolute(place[0]) - 0.5 * self.depth_m, 0.0)
        total: Scalar = 0.0
        for x, size in ((place[1], self.width_m), (place[2], self.height_m)):
            over = maximum(absolute(x) + radius + 0.1 - 0.5 * size - away, 0.0)
            total = total + over * over
        return total


def slot_distance(place: Vector, width: float, height: float, depth: float) -> Scalar:
    """Return the distance of a point from an endless wall across x = 0 with a slot around the x axis [m]; 0 inside of it.

    Args:
        place: World [m].
        width: Of the slot, along y [m].
        height: Along z [m].
        depth: Of the wall, along x [m].
    """
    along = maximum(absolute(place[0]) - 0.5 * depth, 0.0)
    # From within the slot's outline the nearest edge is straight to a side; elsewhere the wall itself stands before the point.
    aside = maximum(minimum(0.5 * width - absolute(place[1]), 0.5 * height - absolute(place[2])), 0.0)
    return sqrt(along * along + aside * aside)


def sphere_places(state: Vector, p: Any) -> list[Vector]:
    """Return where the spheres of the links are, world [m].

    Args:
        state: Of the flight.
        p: Parameters, with tree and spheres.
    """
    q = split_state(state, len(p.rotor_thrust), len(p.joint_target))[5]
    frames = kinematics(p.structure, p.model, q)
    points = positions(p.structure, frames)
    found = []
    for body, sphere in p.spheres:
        place = add(points[body], matrix_vector(frames[body].rotation, sphere[:3]))
        found.append(add(state[:3], rotate(state[6:10], place)))
    return found


def center_of_shape(angles: Vector, p: Any) -> Vector:
    """Return the centre of mass of the whole from the root's own, root axes [m].

    Args:
        angles: Of the joints [rad].
        p: Parameters, with the tree.
    """
    frames = kinematics(p.structure, p.model, angles)
    return mean_by_mass(p.model, body_centers(p.structure, p.model, frames))
