"""Recovery from a throw: upright and at rest within two seconds, from any attitude (specification, learning by reward, 3.4)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from airworthy.core.arrays import Vector
from airworthy.core.ops import where
from airworthy.core.schema import Bound, check_fields
from airworthy.core.vectors import matrix_columns, norm
from airworthy.learning.environments.conditions import Curriculum
from airworthy.learning.environments.start import any_quaternion, in_ball
from airworthy.learning.environments.task import Judgement, crashed_terms, peak
from airworthy.learning.gradient.hover import hover_command, hover_observation

__all__ = ["Recovery"]

# Source: specification, learning by reward, 3.4: |v| < 0.5 m/s, tilt < 15 deg.
_CALM_SPEED, _CALM_TILT = 0.5, math.radians(15.0)
"""A vehicle that has recovered: slower [m/s], and less tilted [rad]."""
_EASIEST = 0.2
"""Share of rates and speeds at the first level of a curriculum; ours."""


@dataclass(frozen=True)
class Recovery:
    """Catch a throw by rotor states between their limits, and hold the place where it began.

    A flight succeeds that has become calm (below 0.5 m/s and 15 degrees, above ground) within `within_s` and stayed so for
    `held_s`. The reward is ours.
    """

    name: ClassVar[str] = "recovery"
    vehicle: ClassVar[str] = "cf2x_L250"
    noise: ClassVar[bool] = False
    rate: Annotated[float, Bound(10.0, 1000.0, "Hz")] = 100.0
    """Decisions per second."""
    episode_steps: Annotated[int, Bound(1, 1_000_000)] = 300
    """Decisions in a flight."""
    height_m: Annotated[float, Bound(0.1, 1e3, "m")] = 3.0
    """Of the start above the ground, where a flight ends."""
    rate_max: Annotated[float, Bound(0.0, 100.0, "rad/s")] = 10.0
    """Largest body rate of a start."""
    speed_max: Annotated[float, Bound(0.0, 100.0, "m/s")] = 5.0
    """Largest speed of a start."""
    within_s: Annotated[float, Bound(0.01, 1e3, "s")] = 2.0
    """By when calm has to begin that lasts."""
    held_s: Annotated[float, Bound(0.01, 1e3, "s")] = 1.0
    """How long it has to last."""
    curriculum: Curriculum | None = None
    """With one, rates and speeds grow from a fifth with its level."""

    def __post_init__(self) -> None:
        check_fields(self, "Recovery.")

    def start(self, uniforms: Vector, p: Any) -> Vector:
        """Draw any attitude, rates and velocity within their balls; rotors at hover."""
        share = _EASIEST + (1.0 - _EASIEST) * p.progress
        return (
            0.0,
            0.0,
            0.0,
            *in_ball(uniforms[:3], self.speed_max * share),
            *any_quaternion(uniforms[3:6]),
            *in_ball(uniforms[6:9], self.rate_max * share),
            *p.hover,
        )

    def begin(self, uniforms: Vector, state: Vector, p: Any) -> Vector:
        """Return steps since which it has been calm, and whether it has recovered in time.

        Args:
            uniforms: 16 numbers in (0, 1).
            state: In which the flight begins.
            p: Parameters.
        """
        # As wide as the flights, and traced with them, which a plain 0 is not.
        return (0.0 * state[3], 0.0 * state[3])

    def _calm(self, state: Vector) -> Any:
        # The cosine of the tilt is what the rotation holds: no arc is needed to compare it.
        upright = matrix_columns(state[6:10])[2][2] > math.cos(_CALM_TILT)
        return upright & (norm(state[3:6]) < _CALM_SPEED) & (state[2] > -self.height_m)

    def remember(self, before: Vector, after: Vector, action: Vector, p: Any) -> Vector:
        """Count steps of calm; what has recovered in time stays so.

        Args:
            before: State before the step.
            after: State after it.
            action: That was taken.
            p: Parameters, with the memory.
        """
        # Counted in steps, which float32 counts exactly.
        calm = where(self._calm(after), p.memory[0] + 1.0, 0.0)
        # Calm began `calm` steps before this one's end.
        early = p.age + 1.0 - calm <= self.within_s * self.rate
        return calm, where(early & (calm >= self.held_s * self.rate), 1.0, p.memory[1])

    def command(self, action: Vector, p: Any) -> Vector:
        """Return rotor states, affine in the action."""
        return hover_command(action, p)

    def observe(self, state: Vector, noises: Vector, p: Any) -> Vector:
        """Return 18 numbers; see `airworthy.learning.gradient.hover.hover_observation`.

        Args:
            state: Of the flight.
            noises: 16 standard normal numbers.
            p: Parameters.
        """
        return hover_observation(state)

    def judge(self, before: Vector, after: Vector, action: Vector, past: Vector, p: Any) -> Judgement:
        """Return reward of being upright, slow, calm and near the start; 0 on the ground.

        Args:
            before: State before the step.
            after: State after it.
            action: That was taken, within [-1, 1].
            past: The action before.
            p: Parameters, with the memory.
        """
        up = matrix_columns(after[6:10])[2][2]
        # Ours: each within a few units, so that none is worth a crash.
        terms = {
            "upright": 0.5 * (1.0 + up),
            "speed": peak(norm(after[3:6]), 1.0, 0.5),
            "turning": peak(norm(after[10:13]), 0.5, 0.1),
            "place": peak(norm(after[:3]), 0.5, 0.5),
            "calm": where(self._calm(after), 1.0, 0.0),
        }
        # A plane, not contact: whoever comes there has not been caught.
        ground = after[2] <= -self.height_m
        recovered = self.remember(before, after, action, p)[1]
        return Judgement(crashed_terms(terms, ground, 0.0), where(ground, 1.0, 0.0), where(ground, 0.0, recovered))
