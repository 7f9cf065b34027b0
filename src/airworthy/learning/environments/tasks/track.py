"""Tracking of reference paths, by collective thrust and body rates, as SimpleFlight (arXiv 2412.11764) does, or by motors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from airworthy.control.levels import ControlConfig, collective_from_normalized
from airworthy.core.arrays import Scalar, Vector
from airworthy.core.ops import absolute, exp, floor, sin_cos, sqrt, where
from airworthy.core.schema import Bound, check_fields
from airworthy.core.vectors import add, choose, dot, matrix_columns, norm, scale, sub
from airworthy.learning.environments.start import turned_start
from airworthy.learning.environments.task import Judgement
from airworthy.learning.gradient.hover import hover_command
from airworthy.vehicles import Vehicle

__all__ = ["PATHS", "MotorTracking", "PathTracking"]

PATHS = ("eight_slow", "eight_normal", "eight_fast", "pentagram", "zigzag", "polynomial")
"""Kinds of path."""
# Source of this, of 100 Hz, 1,000 steps and 1 m: specification, learning by reward, 3.5.
_POINTS = 10
"""Of the reference that are seen."""
# Source: thu-uav/SimpleFlight, omni_drones/envs/single/track.py draws from 14.8-15.2 s, 5.3-5.7 s, 3.3-3.7 s: the middles.
_EIGHTS = {"eight_slow": 15.0, "eight_normal": 5.5, "eight_fast": 3.5}
"""Periods [s]."""
_TURN = 2.0 * math.pi


@dataclass(frozen=True)
class _Tracking:
    """Follow a path that is drawn for each flight and begins where the flight does.

    Figures eight lie level, 2 m long; pentagrams, too, with a radius of 0.75 m, an edge in 1.5 to 3 s; zigzags and polynomials
    lead through four places within +-0.75 m, one in 1 to 2 s, straight at constant speed, or by polynomials of fifth order that
    rest at each place. These sizes are ours.
    """

    vehicle: ClassVar[str] = "cf2x_L250"
    noise: ClassVar[bool] = False
    rate: Annotated[float, Bound(10.0, 1000.0, "Hz")] = 100.0
    """Decisions per second."""
    episode_steps: Annotated[int, Bound(1, 1_000_000)] = 1000
    """Decisions in a flight."""
    crash_m: Annotated[float, Bound(0.01, 1e3, "m")] = 1.0
    """Farther off the path the flight ends."""
    path: Literal["any", "eight_slow", "eight_normal", "eight_fast", "pentagram", "zigzag", "polynomial"] = "any"
    """Kind of path; any: drawn."""
    ahead: Annotated[int, Bound(1, 1000)] = 5
    """Decisions between the points that are seen."""

    def __post_init__(self) -> None:
        check_fields(self, f"{type(self).__name__}.")

    def start(self, uniforms: Vector, p: Any) -> Vector:
        """Near the path's beginning, nearly at rest."""
        return turned_start(uniforms, p.hover, 0.1, 0.1, 0.1, 0.1, heading=0.1)

    def begin(self, uniforms: Vector, state: Vector, p: Any) -> Vector:
        """Kind, time scale, four places 12, and the point that is moved to the origin 3.

        Args:
            uniforms: 16 numbers in (0, 1).
            state: In which the flight begins.
            p: Parameters.
        """
        kind = floor(uniforms[0] * len(PATHS)) if self.path == "any" else float(PATHS.index(self.path)) + 0.0 * uniforms[0]
        # Drawn even where a kind has no use for them: so a flight's numbers do not depend on which kinds there are.
        drawn = (kind, 1.0 + uniforms[1], *(0.75 * (2.0 * u - 1.0) for u in uniforms[2:14]))
        # At the age that it begins with: staggered first flights begin amid their path, and are not to be thrown onto it.
        return (*drawn, *self._raw(p.age * (1.0 / self.rate), drawn))

    def remember(self, before: Vector, after: Vector, action: Vector, p: Any) -> Vector:
        """Keep the path.

        Args:
            before: State before the step.
            after: State after it.
            action: That was taken.
            p: Parameters, with the memory.
        """
        return tuple(p.memory)

    def _raw(self, time: Scalar, path: Vector) -> Vector:
        """Point of a path at a time [s], before it is moved."""
        kind, period, places = path[0], path[1], [path[2 + 3 * k : 5 + 3 * k] for k in range(4)]
        point: Vector = _through(places, time / period, smooth=where(kind > 4.5, 1.0, 0.0))
        point = choose(kind > 3.5, point, _star(time / (1.5 * period)))
        for k, seconds in reversed(list(enumerate(_EIGHTS.values()))):
            sine, cosine = sin_cos(_TURN / seconds * time)
            point = choose(kind > k + 0.5, point, (sine, sine * cosine, 0.0))
        return point

    def reference(self, age: Scalar, p: Any) -> Vector:
        """Point that is to be flown at an age [policy steps], world [m]."""
        return sub(self._raw(age * (1.0 / self.rate), p.memory[:14]), p.memory[14:])

    def observe(self, state: Vector, noises: Vector, p: Any) -> Vector:
        """42 numbers: the next ten points from here 30 (world), velocity (world) 3, rotation matrix by rows 9.

        Args:
            state: Of the flight.
            noises: 16 standard normal numbers.
            p: Parameters, with path and age.
        """
        return self.observe_path([self.reference(p.age + t * self.rate, p) for t in self.path_ahead], state, p)

    @property
    def path_ahead(self) -> tuple[float, ...]:
        """Times ahead [s] of the points that are seen."""
        return tuple(k * self.ahead / self.rate for k in range(1, _POINTS + 1))

    def observe_path(self, points: list[Vector], state: Vector, p: Any) -> Vector:
        """See `observe`; of any path.

        Args:
            points: Of the path, `path_ahead` from now, world [m].
            state: Of the flight.
            p: Parameters.
        """
        columns = matrix_columns(state[6:10])
        seen = [sub(point, state[:3]) for point in points]
        return (*(x for point in seen for x in point), *state[3:6], *(c[i] for i in range(3) for c in columns))

    def error(self, state: Vector, p: Any) -> Scalar:
        """Distance from the path [m]."""
        return norm(sub(state[:3], self.reference(p.age, p)))

    def judge(self, before: Vector, after: Vector, action: Vector, past: Vector, p: Any) -> Judgement:
        """r_p + r_p (r_up + r_spin) + smooth (specification, learning by reward, 3.5); a flight ends `crash_m` off its path.

        Published, the last term's factor is min(2 + 0.0005 n, 2), which is 2 at every step n.

        Args:
            before: State before the step.
            after: State after it.
            action: That was taken, within [-1, 1].
            past: The action before.
            p: Parameters, with path and age.
        """
        # One step on: `after` is the state at the next decision, and the path has gone on meanwhile.
        distance = norm(sub(after[:3], self.reference(p.age + 1.0, p)))
        tilt = absolute(1.0 - matrix_columns(after[6:10])[2][2])
        # r_p = 5 exp(-distance), r_up = 0.5 / (1 + tilt^2), r_spin = 0.5 / (1 + spin^2)
        near = 5.0 * exp(-distance)
        change: Scalar = 0.0
        for a, b in zip(action, past, strict=True):
            change = change + (a - b) * (a - b)
        terms = {
            "near": near,
            "near_upright": near * 0.5 / (1.0 + tilt * tilt),
            "near_spin": near * 0.5 / (1.0 + dot(after[10:13], after[10:13])),
            "smooth": 2.0 * exp(-sqrt(change)),
        }
        lost = distance > self.crash_m
        # Success within 10 cm: ours, as of the tasks that hold a place.
        return Judgement(terms, where(lost, 1.0, 0.0), where(distance < 0.1, 1.0, 0.0))


@dataclass(frozen=True)
class PathTracking(_Tracking):
    """Follow a path, drawn for each flight or of one kind (`path`), by collective thrust and body rates."""

    name: ClassVar[str] = "track"
    level: ClassVar[str] = "rate_thrust"
    action_count: ClassVar[int] = 4
    physics_steps: Annotated[int, Bound(1, 100)] = 4
    """Least steps of physics and controller per decision."""
    # Ours: the specification states no limit.
    turn_max: Annotated[float, Bound(0.1, 100.0, "rad/s")] = math.pi
    """Body rate of a whole action."""

    def control_for(self, vehicle: Vehicle) -> ControlConfig:
        """Return gains of the rate loop: the vehicle's own."""
        return ControlConfig()

    def command(self, action: Vector, p: Any) -> Vector:
        """Return collective thrust [N], 0 for the weight, and body rates [rad/s]."""
        return (collective_from_normalized(action[0], p.nominal_weight, 1.0), *scale(action[1:], self.turn_max))


@dataclass(frozen=True)
class MotorTracking(_Tracking):
    """Follow a path by commands to each rotor, with no controller between: ours, on the paths and by the reward of `track`."""

    name: ClassVar[str] = "motor_track"

    def command(self, action: Vector, p: Any) -> Vector:
        """Return rotor states, affine in the action from the least to the largest."""
        return hover_command(action, p)

    def observe_path(self, points: list[Vector], state: Vector, p: Any) -> Vector:
        """Return 45 numbers: those of `track`, and a tenth of the body rate 3, which no loop holds.

        Args:
            points: Of the path, `path_ahead` from now, world [m].
            state: Of the flight.
            p: Parameters.
        """
        # A tenth, so that rates of 10 rad/s are numbers like all others that the network reads.
        return (*super().observe_path(points, state, p), *(0.1 * w for w in state[10:13]))


def _star(edges: Scalar) -> Vector:
    """Point on a level pentagram after so many of its edges."""
    corner = floor(edges)
    share, ends = edges - corner, []
    for k in (corner, corner + 1.0):
        # Every second corner of a pentagon, one after the other, draws the star.
        sine, cosine = sin_cos(2.0 / 5.0 * _TURN * k)
        ends.append((0.75 * cosine, 0.75 * sine, 0.0))
    return add(ends[0], scale(sub(ends[1], ends[0]), share))


def _through(places: list[Vector], time: Scalar, smooth: Scalar) -> Vector:
    """Point on the way through places, one after the other and again, after so many of its stretches."""
    stretch = floor(time)
    share, turn = time - stretch, stretch - 4.0 * floor(stretch * 0.25)
    # 10 s^3 - 15 s^4 + 6 s^5: no speed and no acceleration at either end.
    eased = share * share * share * (10.0 + share * (6.0 * share - 15.0))
    share = where(smooth > 0.5, eased, share)
    # Without indexing by a number that is only known in flight: it must become a kernel, and have a derivative.
    start, end = places[3], places[0]
    for k in range(3):
        here = (turn > k - 0.5) & (turn < k + 0.5)
        start, end = choose(here, places[k], start), choose(here, places[k + 1], end)
    return add(start, scale(sub(end, start), share))
