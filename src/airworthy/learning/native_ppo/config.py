"""What a user chooses about the motor-command task as published, and about how it is learnt."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from airworthy.core.errors import unknown_name
from airworthy.core.idle_options import IdleRule, refuse_idle
from airworthy.core.keyword_messages import raises_without_class
from airworthy.core.schema import Bound, check_fields
from airworthy.learning.machine import SEED_MAX
from airworthy.learning.native_ppo.options import PpoOptions
from airworthy.learning.native_ppo.training import PpoTrainingOptions
from airworthy.learning.ppo.options import TorchPpoOptions

__all__ = ["IDLE_RULES", "MOTOR_COMMAND_REACH_M", "SHORT_FLIGHT", "MotorCommandConfig"]

_TRAINERS = {
    "native_ppo": "by reward, on environments of the learning task",
    "ppo": "the same in torch: slower, and to read and to change",
}
PUBLISHED_STEPS = 160_000_000
"""Of Aerial Gym's training (specification aerial_gym, 9.3)."""
SHORT_FLIGHT = 150
"""Decisions of a flight in training by our settings. After a second a flight has turned to its heading: of the published 600
decisions nearly all show it near its target, and a third of the flights that begin the wrong way round are lost (measured)."""
MOTOR_COMMAND_REACH_M = 5.5
"""Beyond it a flight of the evaluation is lost [m], as published."""


@dataclass(frozen=True)
class MotorCommandConfig:
    """How to learn, and on how many flights it is judged.

    Raises:
        AirworthyError: One sentence, if something cannot be learnt so.
    """

    trainer: str = "native_ppo"
    """What learns: "native_ppo", or "ppo", the same in torch."""
    seed: Annotated[int, Bound(0, SEED_MAX)] = 0
    """Of weights, starts and noise."""
    steps: int = PUBLISHED_STEPS
    """Decisions of all flights together; the published number."""
    published: bool = False
    """Learn with the published settings instead of ours: clip 0.05, two minibatches, entropy 0.01, flights of 600 decisions."""
    hidden: tuple[int, int] = (32, 24)
    """Widths of the two hidden layers."""
    env_count: int = 4096
    """Flights at once, a multiple of 16."""
    mirror: Literal["none", "y", "xy"] = "none"
    """Of ppo: learn from flights mirrored, too, left and right, or front and back as well."""
    device: str = "cpu"
    """Of ppo's networks: cpu, cuda, cuda:1, or auto, a GPU where there is one. Flights are on the CPU."""
    flights: int = 1024
    """On which it is judged."""
    grid_flights: int = 256
    """Under each condition of the robustness grid."""
    mpc_flights: int = 64
    """Of the MPC beside it; 0: without it."""
    film_flights: int = 9
    """On the page's film; 0: without it."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.trainer not in _TRAINERS:
            raise unknown_name("trainer", self.trainer, _TRAINERS)
        refuse_idle(self, IDLE_RULES)
        # Its fields are those of the trainer's options, and this is what was made.
        with raises_without_class():
            self.options(self.seed)

    def options(self, seed: int) -> PpoTrainingOptions:
        """Return the trainer's options for a seed."""
        kind = TorchPpoOptions if self.trainer == "ppo" else PpoOptions
        settings = kind() if self.published else kind.settings()
        # Only torch's options have the field: the native trainer would refuse it.
        mirrored: dict[str, Any] = {"mirror": self.mirror} if self.trainer == "ppo" else {}
        ppo = replace(settings, seed=seed, hidden=self.hidden, **mirrored)
        # Published settings are for comparison: they stay as they are.
        length = 0 if self.published else SHORT_FLIGHT
        return PpoTrainingOptions(
            "motor_command",
            self.env_count,
            self.steps,
            episode_steps=length,
            ppo=ppo,
            trainer="ppo" if self.trainer == "ppo" else "native_ppo",
        )


IDLE_RULES = (
    IdleRule(
        ("device", "mirror"), lambda asked: asked.trainer != "ppo", "for the trainer native_ppo", "learn with --trainer ppo"
    ),
)
"""What only one of the trainers reads."""
