"""The task that learning by gradient solves, as one for reinforcement learning: the same starts and cost, as a reward."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from airworthy.core.arrays import Vector
from airworthy.core.ops import sqrt, where
from airworthy.core.schema import Bound, check_fields
from airworthy.core.vectors import dot
from airworthy.learning.environments.start import turned_start
from airworthy.learning.environments.task import Judgement
from airworthy.learning.gradient.hover import HoverCost, HoverStart, hover_command, hover_cost, hover_observation

__all__ = ["HoverTask"]


@dataclass(frozen=True)
class HoverTask:
    """Hold the origin, heading along world x, by rotor states between their limits."""

    name: ClassVar[str] = "hover"
    vehicle: ClassVar[str] = "tinyprop"
    noise: ClassVar[bool] = False
    rate: Annotated[float, Bound(10.0, 1000.0, "Hz")] = 100.0
    """Decisions per second."""
    episode_steps: Annotated[int, Bound(1, 1_000_000)] = 300  # this and `reach_m`: as the gradient's training
    """Decisions in a flight."""
    reach_m: Annotated[float, Bound(0.1, 1e3, "m")] = 4.0
    """Farther off the flight ends."""
    spread: HoverStart = field(default_factory=HoverStart)
    """Where flights begin."""
    cost: HoverCost = field(default_factory=HoverCost)
    """What is to be small."""

    def __post_init__(self) -> None:
        check_fields(self, "HoverTask.")

    def start(self, uniforms: Vector, p: Any) -> Vector:
        """Draw states uniform around the target; rotors near hover."""
        s = self.spread
        return turned_start(uniforms, p.hover, s.position, s.velocity, s.tilt, s.rate, s.rotors)

    def command(self, action: Vector, p: Any) -> Vector:
        """Return rotor states, affine in the action."""
        return hover_command(action, p)

    def observe(self, state: Vector, noises: Vector, p: Any) -> Vector:
        """Return 18 numbers, see `airworthy.learning.gradient.hover.hover_observation`.

        Args:
            state: Of the flight.
            noises: 16 standard normal numbers.
            p: Parameters.
        """
        return hover_observation(state)

    def judge(self, before: Vector, after: Vector, action: Vector, past: Vector, p: Any) -> Judgement:
        """Return a reward of 1 less the cost, so that to go on flying is worth more than to end; lost flights end.

        Args:
            before: State before the step.
            after: State after it.
            action: That was taken, within [-1, 1].
            past: The action before.
            p: Parameters.
        """
        hover = tuple(
            (2.0 * h - high - low) / (high - low) for h, low, high in zip(p.hover, p.rotor_min, p.rotor_max, strict=True)
        )
        distance = sqrt(dot(after[:3], after[:3]))
        # 6 is more than the cost of a flight at its reach that is not moving: the sign of staying alive is right everywhere.
        terms = {"alive": 6.0 + 0.0 * distance, "cost": -hover_cost(after, action, hover, self.cost)}
        # Success within 10 cm: ours; item 15 of the acceptance list counts hovering alike.
        return Judgement(terms, where(distance > self.reach_m, 1.0, 0.0), where(distance < 0.1, 1.0, 0.0))
