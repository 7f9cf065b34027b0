"""Motor commands to a position as in Learning to Fly in Seconds (arXiv 2311.13081): the yardstick of speed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

from airworthy.core.arrays import Scalar, Vector
from airworthy.core.errors import AirworthyError
from airworthy.core.ops import absolute, arccos, clip, exp, log, maximum, minimum, sin_cos, sqrt, where
from airworthy.core.schema import SHARE, Bound, Length, check_fields
from airworthy.core.vectors import add, choose, dot, matrix_columns, norm, scale
from airworthy.learning.environments.conditions import Curriculum
from airworthy.learning.environments.start import near_quaternion, tilted_quaternion
from airworthy.learning.environments.task import Judgement
from airworthy.learning.gradient.dynamics import BODY
from airworthy.learning.gradient.hover import hover_command
from airworthy.vehicles import Vehicle
from airworthy.vehicles.record import CollisionBody, Rotor, RotorResponse

__all__ = ["FORCE_SHARE", "L2F_HARDER", "L2F_PUBLISHED", "L2F_ZOO", "TORQUE_SHARE", "L2fPosition", "l2f_crazyflie"]

_SPEED_MAX = 2272.6
"""Of a Crazyflie's motors, 21,702 revolutions per minute [rad/s] as published there: its thrust is fitted to the share u."""
# Source: specification, learning by reward, 3.3: position and orientation 0.001, velocities 0.002.
_POSE_NOISE, _VELOCITY_NOISE = 1e-3, 2e-3
"""Standard deviations: of position [m] and orientation [rad], of velocities [m/s, rad/s]."""
# Source: the same: N(0, mg/20) force, N(0, mg/10,000) torque, constant in a flight.
FORCE_SHARE, TORQUE_SHARE = 1.0 / 20.0, 1.0 / 10_000.0
"""Standard deviations of the constant push per weight: of force, and of torque [m]."""
# Source: the same, |a - 0.334|^2.
L2F_PUBLISHED_HOVER = 0.334
"""Action of hover in the reward of 2024, by an older fit of the thrust."""
# Source: the same: wp x 1.2 from 5 to 40 takes 12 rises, wv and wa x 1.4 from 0.01 to 1 take 14.
_STAGES = 14
"""After which every weight of the reward has reached its largest value."""
Fit = Literal["2024", "2025"]
"""Which measurements of the vehicle."""
_STAGED = Curriculum(0, _STAGES, rise=1, window=100_000, each="steps")
"""Of the weights: every 100 k steps, as there."""


def l2f_crazyflie(fit: Fit = "2025") -> Vehicle:
    """Return the Crazyflie of L2F (2024), or that with decks of RLtools since March 2025.

    Args:
        fit: "2024": 27 g, thrust 0.149 u^2 N of the share u of full speed, 2.25 times the weight at most, late by 0.15 s;
            "2025": 30.6 g, 0.0035 + 0.0144 u + 0.0922 u^2 N, 1.47 times the weight, late by 0.055 s up and 0.249 s down.
    """
    made = _FITS[fit]
    thrust = tuple(c / _SPEED_MAX**k for k, c in enumerate(made.thrust))
    corners = ((0.028, -0.028), (-0.028, -0.028), (-0.028, 0.028), (0.028, 0.028))
    rotors = tuple(
        Rotor(
            position=(x, y, 0.0),
            thrust=(thrust[0], thrust[1], thrust[2]),
            torque=(thrust[0] * made.reach, thrust[1] * made.reach, thrust[2] * made.reach),
            spin=-1 if k % 2 == 0 else 1,
            response=RotorResponse.first_order(*made.lag),
            speed_max=_SPEED_MAX,
        )
        for k, (x, y) in enumerate(corners)
    )
    return Vehicle(
        name="l2f_crazyflie" if fit == "2025" else f"l2f_crazyflie_{fit}",
        mass=made.mass,
        inertia=(*made.inertia, 0.0, 0.0, 0.0),
        rotors=rotors,
        body=CollisionBody("cylinder", (0.06, 0.06, 0.0125)),
        sources={"rotors": made.source},
    )


@dataclass(frozen=True)
class _Fit:
    """What was measured of a Crazyflie: mass [kg], inertia [kg m^2], thrust by the share of full speed [N], torque per thrust
    [m], time constants up and down [s]."""

    mass: float
    inertia: tuple[float, float, float]
    thrust: tuple[float, float, float]
    reach: float
    lag: tuple[float, float]
    source: str


_FITS = {
    "2024": _Fit(
        0.027,
        (3.85e-6, 3.85e-6, 5.9675e-6),
        # 3.16e-10 N per squared revolution per minute, of which there are 21,702.
        (0.0, 0.0, 3.16e-10 * 21702.0**2),
        0.005964552,
        (0.15, 0.15),
        "arplaboratory/learning-to-fly, simulator/parameters/dynamics/crazy_flie.h",
    ),
    "2025": _Fit(
        0.0306,
        (9.416556729130406e-6, 9.644051701582312e-6, 1.745951732253285e-5),
        (0.00352526, 0.01437313, 0.09223048),
        4.665e-3,
        (0.05545454545454546, 0.24939393939393945),
        "rl-tools/rl-tools, environments/l2f/parameters/dynamics/crazyflie.h (specification, 3.3)",
    ),
}


@dataclass(frozen=True)
class L2fPosition:
    """Hold the origin by motor commands against a constant push, knowing the last actions; rotors' speeds are not seen.

    Defaults are those of 2024, flown by the vehicle of 2025 from hover; `L2fPosition.published()` has all that L2F's own
    program had, `L2fPosition.newer()` what RLtools' zoo has. The published reward counts actions from 0.334, hover of the
    vehicle of 2024; here they count from hover of the vehicle that flies.
    """

    name: ClassVar[str] = "l2f_position"
    vehicle: ClassVar[str] = "l2f_crazyflie"
    rate: Annotated[float, Bound(10.0, 1000.0, "Hz")] = 100.0
    """Decisions per second."""
    episode_steps: Annotated[int, Bound(1, 1_000_000)] = 500
    """Decisions in a flight."""
    history: Annotated[int, Bound(0, 64)] = 32
    """Past actions that are seen."""
    start_m: Annotated[float, Bound(0.0, 100.0, "m")] = 0.2
    """Starts: half width of each axis."""
    start_angle: Annotated[float, Bound(0.0, math.pi, "rad")] = 0.5 * math.pi
    """Starts: largest angle, about any axis."""
    start_attitude: Literal["angle", "rotation"] = "angle"
    """Starts: angles are uniform, or rotations are (of 2024), so that large angles are frequent."""
    start_rotors: Annotated[tuple[float, ...], SHARE, Length(0, 2)] = ()
    """Starts: least and largest share of full speed with which rotors begin; past actions are those that hold them. None: they
    begin at hover."""
    start_velocity: Annotated[float, Bound(0.0, 50.0)] = 1.0
    """Starts: half width of velocities and body rates [m/s, rad/s]."""
    guidance: Annotated[float, SHARE] = 0.1
    """Share of flights that begin at the goal."""
    reach_m: Annotated[float, Bound(0.01, 1e3, "m")] = 0.6
    """A flight ends with a coordinate beyond it."""
    velocity_limit: Annotated[float, Bound(0.1, 1e4, "m/s")] = 1e4
    """A flight ends with a velocity beyond it along an axis."""
    rate_limit: Annotated[float, Bound(0.1, 1e4, "rad/s")] = 1e4
    """A flight ends with a body rate beyond it."""
    fit: Fit = "2025"
    """Vehicle, as measured when; of no effect on one that is named."""
    noise: bool = True
    """Published noise of observations."""
    disturbance: Annotated[float, Bound(0.0, 100.0)] = 1.0
    """Of the published push: a force of N(0, weight / 20) and a torque of N(0, weight x 0.1 mm), constant in a flight."""
    reward: Literal["2024", "zoo"] = "2024"
    """Squares with weights that grow, or norms (RLtools' zoo)."""
    position_weight: Annotated[float, Bound(0.0, 1e3)] = 5.0
    """At the first level; 1.2 times more with each, at most 40."""
    velocity_weight: Annotated[float, Bound(0.0, 1e3)] = 0.01
    """At the first level; 1.4 times more with each, at most 1."""
    action_weight: Annotated[float, Bound(0.0, 1e3)] = 0.01
    """As `velocity_weight`."""
    as_published: bool = False
    """Actions count from 0.334 in the reward of 2024."""
    curriculum: Curriculum = _STAGED
    """Of the weights: published, a level every 100,000 env-steps. A replay buffer has to be scored anew then."""

    def __post_init__(self) -> None:
        check_fields(self, "L2fPosition.")
        if self.start_rotors and (len(self.start_rotors) != 2 or self.start_rotors[0] > self.start_rotors[1]):
            raise AirworthyError(
                f"L2fPosition.start_rotors is {list(self.start_rotors)}; expected the least and the largest share of full"
                " speed, or nothing for hover."
            )

    @classmethod
    def published(cls, **options: Any) -> L2fPosition:
        """Return the task as L2F's own program of 2024 has it, but for velocities at the goal, which it draws there, too."""
        return cls(**{**L2F_PUBLISHED, **options})

    @classmethod
    def newer(cls, **options: Any) -> L2fPosition:
        """Return the task as RLtools' zoo had it last before it followed paths, in October 2025: neither noise nor push."""
        return cls(**{**L2F_ZOO, **options})

    @classmethod
    def harder(cls, **options: Any) -> L2fPosition:
        """Return the zoo's task with noise and push of 2024, and starts at up to 90 degrees from hover; ours."""
        return cls(**{**L2F_HARDER, **options})

    def airframe(self) -> Vehicle:
        """Return the vehicle of the task."""
        return l2f_crazyflie(self.fit)

    def start(self, uniforms: Vector, p: Any) -> Vector:
        """Draw states uniform around the target, or at it."""
        u = tuple(2.0 * x - 1.0 for x in uniforms)
        turned = tilted_quaternion if self.start_attitude == "angle" else near_quaternion
        spun = self._spun(uniforms[12:16], p)
        state = (
            *scale(u[:3], self.start_m),
            *scale(u[3:6], self.start_velocity),
            *turned(uniforms[6:9], self.start_angle),
            *scale(u[9:12], self.start_velocity),
            *spun,
        )
        nothing = (0.0, 0.0, 0.0)
        goal = (*nothing, *nothing, *nothing, 1.0, *nothing, *spun)
        return choose(uniforms[15] < self.guidance, goal, state) if self.guidance else state

    def _spun(self, u: Vector, p: Any) -> Vector:
        """Rotor states of a start, of four uniform numbers, the last of which has told whether it is guided."""
        if not self.start_rotors:
            return tuple(p.hover)
        low, high, g = *self.start_rotors, self.guidance
        # What is left of a number that was compared is uniform on either side.
        last = where(u[3] < g, u[3] / max(g, 1e-9), (u[3] - g) / max(1.0 - g, 1e-9))
        drawn = (*u[:3], last)
        return tuple(
            least + (low + (high - low) * drawn[k % 4]) * (most - least)
            for k, (least, most) in enumerate(zip(p.rotor_min, p.rotor_max, strict=True))
        )

    def begin(self, uniforms: Vector, state: Vector, p: Any) -> Vector:
        """Return past actions, newest first, then the push: force [N] and torque [N m].

        Args:
            uniforms: 16 numbers in (0, 1).
            state: In which the flight begins.
            p: Parameters.
        """
        normals: list[Scalar] = []
        for k in range(3):  # Box and Muller
            radius = sqrt(-2.0 * log(uniforms[2 * k]))
            sine, cosine = sin_cos(2.0 * math.pi * uniforms[2 * k + 1])
            normals += [radius * cosine, radius * sine]
        size = self.disturbance * p.nominal_weight
        force, torque = (scale(tuple(normals[i : i + 3]), size * s) for i, s in ((0, FORCE_SHARE), (3, TORQUE_SHARE)))
        # Rotors that are not drawn hover, and so do the last actions.
        held = _as_actions(state[BODY:], p) if self.start_rotors else p.past
        return (*(held * self.history), *force, *torque)

    def remember(self, before: Vector, after: Vector, action: Vector, p: Any) -> Vector:
        """Return past actions with the newest before all others.

        Args:
            before: State before the step.
            after: State after it.
            action: That was taken.
            p: Parameters, with the memory.
        """
        kept = self.history * len(action)
        return (*(*action, *p.memory[:kept])[:kept], *p.memory[kept:])

    def wrench(self, state: Vector, p: Any) -> tuple[Vector, Vector]:
        """Return the push of the flight."""
        return p.memory[-6:-3], p.memory[-3:]

    def command(self, action: Vector, p: Any) -> Vector:
        """Return rotor speeds, affine in the action from none to full."""
        return hover_command(action, p)

    def observe(self, state: Vector, noises: Vector, p: Any) -> Vector:
        """Return the position 3, rotation matrix by rows 9, velocity (world) 3, body rate 3, past actions from the newest.

        Args:
            state: Of the flight.
            noises: 16 standard normal numbers.
            p: Parameters, with the memory.
        """
        x, y, z = matrix_columns(state[6:10])
        position, velocity, rate = state[:3], state[3:6], state[10:BODY]
        if self.noise:
            a = scale(noises[3:6], _POSE_NOISE)
            x, y, z = (
                add(x, add(scale(y, a[2]), scale(z, -a[1]))),
                add(y, add(scale(z, a[0]), scale(x, -a[2]))),
                add(z, add(scale(x, a[1]), scale(y, -a[0]))),
            )
            position = add(position, scale(noises[:3], _POSE_NOISE))
            velocity, rate = (add(v, scale(n, _VELOCITY_NOISE)) for v, n in ((velocity, noises[6:9]), (rate, noises[9:12])))
        rows = tuple(column[i] for i in range(3) for column in (x, y, z))
        return (*position, *rows, *velocity, *rate, *p.memory[:-6])

    def observe_critic(self, state: Vector, p: Any) -> Vector:
        """Return what critics see, exact: position 3, matrix by rows 9, velocity 3, body rate 3, rotor states 4, push 6.

        Args:
            state: Of the flight.
            p: Parameters, with the memory.
        """
        columns = matrix_columns(state[6:10])
        rows = tuple(column[i] for i in range(3) for column in columns)
        spun = _as_actions(state[BODY:], p)
        # The push in its standard deviations, so that it is near 1 like all else.
        force, torque = (
            scale(part, 1.0 / share / p.nominal_weight)
            for part, share in ((p.memory[-6:-3], FORCE_SHARE), (p.memory[-3:], TORQUE_SHARE))
        )
        return (*state[:3], *rows, *state[3:6], *state[10:BODY], *spun, *force, *torque)

    @property
    def input_sizes(self) -> tuple[Vector, Vector]:
        """Typical sizes of what policies and critics see, by which first weights are divided; ours.

        Body rates reach tens of rad/s in flights that are lost. Of past actions there are many, each of which tells little: at
        full weight they would drown the state.
        """
        state = (1.0,) * 15 + (10.0,) * 3
        return (*state, *(10.0,) * (4 * self.history)), (*state, *(1.0,) * 10)

    def judge(self, before: Vector, after: Vector, action: Vector, past: Vector, p: Any) -> Judgement:
        """Return reward of specification, learning by reward, 3.3, "2024" or "RLtools zoo"; a flight out of bounds ends with 0.

        Args:
            before: State before the step.
            after: State after it.
            action: That was taken, within [-1, 1].
            past: The action before.
            p: Parameters, with the progress of weights.
        """
        hover = _as_actions(p.hover, p)
        terms = self._squares(after, action, hover, p) if self.reward == "2024" else self._norms(after, action, hover)
        worst = [
            maximum(maximum(absolute(v[0]), absolute(v[1])), absolute(v[2])) for v in (after[:3], after[3:6], after[10:13])
        ]
        limits = (self.reach_m, self.velocity_limit, self.rate_limit)
        lost = sum((where(w > limit, 1.0, 0.0) for w, limit in zip(worst, limits, strict=True)), start=p.touched) > 0.5
        kept = {name: where(lost, 0.0, x) for name, x in terms.items()}
        return Judgement(kept, where(lost, 1.0, 0.0), where(norm(after[:3]) < 0.1, 1.0, 0.0))

    def term_weights(self, progress: Scalar) -> dict[str, Scalar]:
        """Return weights of the reward's terms at a progress of the curriculum from 0 to 1, by which a replay is scored
        anew."""
        if self.reward != "2024":
            return dict.fromkeys(("alive", "position", "attitude", "velocity", "effort"), 1.0)
        grown = {
            name: minimum(weight * exp(progress * _STAGES * math.log(factor)), most)
            for name, weight, factor, most in (
                ("position", self.position_weight, 1.2, 40.0),
                ("velocity", self.velocity_weight, 1.4, 1.0),
                ("effort", self.action_weight, 1.4, 1.0),
            )
        }
        return {"alive": 1.0, "attitude": 1.0, **grown}

    def _squares(self, after: Vector, action: Vector, hover: Vector, p: Any) -> dict[str, Scalar]:
        weights = self.term_weights(p.progress)
        off = tuple(a - (L2F_PUBLISHED_HOVER if self.as_published else h) for a, h in zip(action, hover, strict=True))
        effort = 0.0
        for x in off:
            effort = effort + x * x
        return {
            "alive": 2.0 + 0.0 * after[0],
            "position": -0.5 * weights["position"] * dot(after[:3], after[:3]),
            "attitude": -2.5 * (1.0 - after[9] * after[9]),
            "velocity": -0.5 * weights["velocity"] * dot(after[3:6], after[3:6]),
            "effort": -0.5 * weights["effort"] * effort,
        }

    @staticmethod
    def _norms(after: Vector, action: Vector, hover: Vector) -> dict[str, Scalar]:
        # 2 arccos(1 - |q_z|), as published: an angle of yaw rather than of tilt.
        angle = 2.0 * arccos(clip(1.0 - absolute(after[8]), -1.0, 1.0))
        effort = 0.0
        for a, h in zip(action, hover, strict=True):
            effort = effort + 0.25 * (a - h) * (a - h)  # throttle goes from 0 to 1
        return {
            "alive": 1.0 + 0.0 * after[0],
            "position": -norm(after[:3]),
            "attitude": -0.25 * angle,
            "velocity": -0.005 * norm(after[3:6]),
            "effort": -0.01 * effort,
        }


def _as_actions(rotors: Vector, p: Any) -> Vector:
    """Actions that hold rotor states."""
    return tuple((2.0 * w - high - low) / (high - low) for w, low, high in zip(rotors, p.rotor_min, p.rotor_max, strict=True))


L2F_PUBLISHED: Mapping[str, Any] = MappingProxyType(
    # arplaboratory/learning-to-fly, config/parameters.h and simulator/parameters/init/default.h.
    {"fit": "2024", "start_attitude": "rotation", "start_rotors": (0.5, 0.5)}
)
"""The task of `published`, as options."""
L2F_ZOO: Mapping[str, Any] = MappingProxyType(
    # rl-tools/rl-tools c490edf0, zoo/l2f/environment.h. It asks for angles of up to 90 degrees; its program draws them up to
    # 1 rad, whatever is asked for.
    {"start_m": 0.5, "start_angle": 1.0, "start_rotors": (0.0, 0.5), "reach_m": 1.0, "velocity_limit": 10.0}
    | {"rate_limit": 35.0, "history": 16, "reward": "zoo", "noise": False, "disturbance": 0.0}
)
"""The task of `newer`, as options."""
L2F_HARDER: Mapping[str, Any] = MappingProxyType(
    {**L2F_ZOO, "noise": True, "disturbance": 1.0, "start_angle": 0.5 * math.pi, "start_rotors": ()}
)
"""The task of `harder`, as options."""
