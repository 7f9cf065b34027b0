"""Motor commands to a position as in Learning to Fly in Seconds (arXiv 2311.13081): the yardstick of speed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from airworthy.core.arrays import Scalar, Vector
from airworthy.core.ops import absolute, arccos, clip, exp, log, maximum, minimum, sin_cos, sqrt, where
from airworthy.core.schema import SHARE, Bound, check_fields
from airworthy.core.vectors import add, choose, dot, matrix_columns, norm, scale
from airworthy.learning.environments.conditions import Curriculum
from airworthy.learning.environments.start import tilted_quaternion
from airworthy.learning.environments.task import Judgement
from airworthy.learning.gradient.dynamics import BODY
from airworthy.learning.gradient.hover import hover_command
from airworthy.vehicles import Vehicle
from airworthy.vehicles.record import CollisionBody, Rotor, RotorResponse

__all__ = ["FORCE_SHARE", "TORQUE_SHARE", "L2fPosition", "l2f_crazyflie"]

_SPEED_MAX = 2272.6
"""Of a Crazyflie's motors, 21,702 revolutions per minute [rad/s]: its thrust is fitted to the share u of it."""
_POSE_NOISE, _VELOCITY_NOISE = 1e-3, 2e-3
"""Standard deviations: of position [m] and orientation [rad], of velocities [m/s, rad/s]."""
FORCE_SHARE, TORQUE_SHARE = 1.0 / 20.0, 1.0 / 10_000.0
"""Standard deviations of the constant push per weight: of force, and of torque [m]."""
_PUBLISHED_HOVER = 0.334
"""Action of hover in the reward of 2024, by an older fit of the thrust."""
_STAGES = 14
"""After which every weight of the reward has reached its largest value."""
_STAGED = Curriculum(0, _STAGES, rise=1, window=100_000, each="steps")
"""Of the weights, as published."""


def l2f_crazyflie() -> Vehicle:
    """Return the Crazyflie with decks of RLtools: thrust 0.0035 + 0.0144 u + 0.0922 u^2 N of the share u of full speed."""
    c0, c1, c2 = 0.00352526, 0.01437313 / _SPEED_MAX, 0.09223048 / _SPEED_MAX**2
    reach = 4.665e-3  # torque per thrust [m]
    corners = ((0.028, -0.028), (-0.028, -0.028), (-0.028, 0.028), (0.028, 0.028))
    rotors = tuple(
        Rotor(
            position=(x, y, 0.0),
            thrust=(c0, c1, c2),
            torque=(c0 * reach, c1 * reach, c2 * reach),
            spin=-1 if k % 2 == 0 else 1,
            response=RotorResponse.first_order(0.05545454545454546, 0.24939393939393945),
            speed_max=_SPEED_MAX,
        )
        for k, (x, y) in enumerate(corners)
    )
    return Vehicle(
        name="l2f_crazyflie",
        mass=0.0306,
        inertia=(9.416556729130406e-6, 9.644051701582312e-6, 1.745951732253285e-5, 0.0, 0.0, 0.0),
        rotors=rotors,
        body=CollisionBody("cylinder", (0.06, 0.06, 0.0125)),
        sources={"rotors": "rl-tools/rl-tools, environments/l2f/parameters/dynamics/crazyflie.h (specification, 3.3)"},
    )


@dataclass(frozen=True)
class L2fPosition:
    """Hold the origin by motor commands against a constant push, knowing the last actions; rotors' speeds are not seen.

    Defaults are those of 2024; `L2fPosition.newer()` has those of the RLtools zoo. The published reward counts actions from
    0.334, hover of a vehicle before the thrust was fitted anew; here they count from hover of the vehicle that flies.
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

    @classmethod
    def newer(cls, **options: Any) -> L2fPosition:
        """Return the task as the RLtools zoo has it."""
        usual: dict[str, Any] = {"start_m": 0.5, "reach_m": 1.0, "velocity_limit": 10.0, "rate_limit": 35.0, "history": 16}
        return cls(**{**usual, "reward": "zoo", **options})

    def airframe(self) -> Vehicle:
        """Return the vehicle of the task."""
        return l2f_crazyflie()

    def start(self, uniforms: Vector, p: Any) -> Vector:
        """Draw states uniform around the target, or at it."""
        u = tuple(2.0 * x - 1.0 for x in uniforms)
        state = (
            *scale(u[:3], self.start_m),
            *scale(u[3:6], self.start_velocity),
            *tilted_quaternion(uniforms[6:9], self.start_angle),
            *scale(u[9:12], self.start_velocity),
            *p.hover,
        )
        nothing = (0.0, 0.0, 0.0)
        goal = (*nothing, *nothing, *nothing, 1.0, *nothing, *p.hover)
        return choose(uniforms[15] < self.guidance, goal, state) if self.guidance else state

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
        return (*(p.past * self.history), *force, *torque)

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
        spun = tuple(
            (2.0 * w - high - low) / (high - low) for w, low, high in zip(state[BODY:], p.rotor_min, p.rotor_max, strict=True)
        )
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
        """Return reward as published; a flight that leaves its bounds ends with 0.

        Args:
            before: State before the step.
            after: State after it.
            action: That was taken, within [-1, 1].
            past: The action before.
            p: Parameters, with the progress of weights.
        """
        hover = tuple(
            (2.0 * h - high - low) / (high - low) for h, low, high in zip(p.hover, p.rotor_min, p.rotor_max, strict=True)
        )
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
        off = tuple(a - (_PUBLISHED_HOVER if self.as_published else h) for a, h in zip(action, hover, strict=True))
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
