"""What a user chooses about learning to hover; what is left open follows from whether vehicles are drawn or commands late."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Annotated, Any, Literal

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.idle_options import IdleRule, refuse_idle
from airworthy.core.keyword_messages import raises_without_class
from airworthy.core.schema import Bound, check_fields
from airworthy.learning.environments.tasks import HoverTask
from airworthy.learning.gradient.evaluation import DRAWN
from airworthy.learning.gradient.trainer import HISTORY_MAX, GradientOptions
from airworthy.learning.machine import SEED_MAX
from airworthy.learning.native_ppo import PpoOptions, PpoTrainingOptions
from airworthy.learning.off_policy.training import OFF_POLICY, OffPolicyTrainingOptions
from airworthy.learning.ppo import TorchPpoOptions
from airworthy.simulation import Randomization
from airworthy.simulation.config import IDENTIFIED_WORD, asked_randomization

__all__ = ["DEFAULT_WORD", "IDLE_RULES", "TRAINERS", "HoverConfig", "randomization_of"]

TRAINERS = {
    "gradient": "by the gradient of flights through vehicle and network",
    "native_ppo": "by reward, on environments of the learning task",
    "ppo": "the same in torch: slower, and to read and to change",
    "sac": "by reward, from a replay of all that was flown",
    "td3": "alike, with a policy that is not random",
}
"""Those there are."""
DEFAULT_WORD = "default"

_ROBUST: Mapping[str, Any] = MappingProxyType(
    # Specification, section 10: slopes explode through early, unstable flights; 0.98 lets them fall to 1/e within 50 decisions.
    # Shorter histories (4, 2) err 1.2 and 1.8 times as much; with `clip` at its usual 0.5 up to two trainings of five were lost
    # to a single gradient, with two past actions and more steps (docs/howto/learn_hover.md).
    {
        "env_count": 64,
        "iterations": 2500,
        "learning_rate": 1.25e-2,
        "keep": 0.98,
        "delay": 2,
        "history": HISTORY_MAX,
        "clip": 0.1,
    }
)
"""Where vehicles are drawn or commands late and nothing else was said; chosen on starts that are not the evaluation's."""
_CRITIC: Mapping[str, Any] = MappingProxyType({"window": 32, "iterations": 3000})
"""With a critic; chosen alike, the window by the specification, section 6.3."""


@dataclass(frozen=True)
class HoverConfig:
    """How to learn, and on how many flights it is judged.

    Raises:
        AirworthyError: One sentence, if something cannot be learnt so.
    """

    trainer: str = "gradient"
    """What learns: "gradient"; or by reward "native_ppo", which needs a hundred times the flights, "ppo", the same in torch,
    "sac" or "td3"."""
    seed: Annotated[int, Bound(0, SEED_MAX)] = 0
    """Of weights, starts and drawn vehicles."""
    hidden: int = 32
    """Width of both hidden layers: 16, 32 or 64; by reward 1 to 128, of ppo to 256."""
    env_count: int | None = None
    """Flights at once, a multiple of 16; left out: 32, or 64 where vehicles are drawn or commands late; of native_ppo and ppo
    4096, of sac and td3 16."""
    steps: int | None = None
    """By reward: decisions of all flights together; left out: of native_ppo and ppo 40 million, of sac 200,000, of td3
    300,000."""
    window: int | None = None
    """Policy steps that a gradient looks ahead; at less than about a second it settles beside the target, without a critic.
    Left out: 100, or 32 with a critic."""
    iterations: int | None = None
    """Gradient steps; left out: 1000, or 2500 where vehicles are drawn or commands late, or 3000 with a critic."""
    critic: bool = False
    """Learn, too, what comes after a window, so that short ones do (SHAC)."""
    memory: Literal["none", "gru"] = "none"
    """What the policy remembers of its flight: nothing but past actions, or what a GRU in place of its second layer keeps."""
    learning_rate: float | None = None
    """Of Adam, falling by a cosine; left out: 0.02, or 0.0125 where vehicles are drawn or commands late. By reward: at
    the beginning, as usual for the trainer."""
    rate: float = 100.0
    """Decisions per second [Hz]."""
    history: int | None = None
    """Past actions that the policy sees; left out: 0, or 8 where vehicles are drawn or commands late (with a GRU:
    the delay)."""
    delay: int | None = None
    """Decisions by which commands come late at most, drawn per flight; left out: 0, or 2 for --randomize default."""
    randomize: tuple[str, ...] = ()
    """How vehicles differ from flight to flight, +- share: mass=0.2 inertia=0.3 thrust=0.1 lag=0.3 rotor=0.02 drag=0.3;
    "default" stands for the first four and commands up to two decisions late; "identified": what an identification left open of
    the vehicle, widen=1.5 times as wide."""
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
        if self.trainer not in TRAINERS:
            raise unknown_name("trainer", self.trainer, TRAINERS)
        refuse_idle(self, IDLE_RULES)
        # Its fields are those of the trainer's options, and this is what was made.
        with raises_without_class():
            self.options(self.seed)

    def options(self, seed: int) -> GradientOptions | PpoTrainingOptions | OffPolicyTrainingOptions:
        """Return the trainer's options for a seed."""
        if self.trainer == "gradient":
            return self._gradient(seed)
        if DEFAULT_WORD in self.randomize:
            raise AirworthyError(
                f"--randomize {DEFAULT_WORD} draws late commands, too, with which {self.trainer} does not fly: give the numbers"
                " (mass=0.2 inertia=0.3 thrust=0.1 lag=0.3)."
            )
        if self.trainer in OFF_POLICY:
            return self._replay(seed)
        mirrored: dict[str, Any] = {"mirror": self.mirror} if self.trainer == "ppo" else {}
        usual = (TorchPpoOptions if self.trainer == "ppo" else PpoOptions).settings()
        rate = usual.learning_rate if self.learning_rate is None else self.learning_rate
        return PpoTrainingOptions(
            "hover",
            **{name: x for name in ("env_count", "steps") if (x := getattr(self, name)) is not None},
            rate=self.rate,
            randomization=self.randomization,
            ppo=replace(usual, seed=seed, hidden=(self.hidden, self.hidden), learning_rate=rate, **mirrored),
            trainer="ppo" if self.trainer == "ppo" else "native_ppo",
        )

    def _replay(self, seed: int) -> OffPolicyTrainingOptions:
        return OffPolicyTrainingOptions.usual(
            self.trainer,
            "hover",
            seed,
            options={} if self.rate == HoverTask.rate else {"rate": self.rate},
            **{name: getattr(self, name) for name in ("env_count", "steps", "learning_rate")},
            randomization=self.randomization,
            hidden=(self.hidden, self.hidden),
        )

    def _gradient(self, seed: int) -> GradientOptions:
        spread, preset = self.randomization, DEFAULT_WORD in self.randomize
        # The acceptance list (section 9, 9) draws vehicles and delays together, and so does the preset.
        delay = self.delay if self.delay is not None else _ROBUST["delay"] if preset else 0
        plain: dict[str, Any] = {item.name: item.default for item in fields(GradientOptions)}
        usual = {**plain, **_ROBUST} if spread.any or delay > 0 else plain
        usual = {**usual, **_CRITIC} if self.critic else usual
        return GradientOptions(
            seed=seed,
            hidden=self.hidden,
            env_count=usual["env_count"] if self.env_count is None else self.env_count,
            window=usual["window"] if self.window is None else self.window,
            critic=self.critic,
            memory=self.memory,
            iterations=usual["iterations"] if self.iterations is None else self.iterations,
            learning_rate=usual["learning_rate"] if self.learning_rate is None else self.learning_rate,
            keep=usual["keep"],
            clip=usual["clip"],
            rate=self.rate,
            # A GRU has a memory of its own, and needs what is still to act alone.
            history=(usual["history"] if self.memory == "none" else min(max(delay, 0), HISTORY_MAX))
            if self.history is None
            else self.history,
            delay=delay,
            randomization=spread,
        )

    @property
    def randomization(self) -> Randomization:
        """How vehicles differ.

        Raises:
            AirworthyError: A word is not a known name with a number that it can take.
        """
        return randomization_of(self.randomize)


def randomization_of(words: Sequence[str]) -> Randomization:
    """Return how vehicles differ by words as NAME=SHARE, "identified" among them, or "default".

    Raises:
        AirworthyError: A word is not a known name with a number that it can take.
    """
    if DEFAULT_WORD in words:
        if len(words) > 1:
            raise AirworthyError(f"--randomize got {DEFAULT_WORD!r} with other words; give either it or the numbers.")
        return DRAWN
    # Where flights begin, and the wind, are not drawn from here.
    known = [item.name for item in fields(Randomization) if item.name not in ("wind", "position", "yaw", "posterior")]
    values: dict[str, float] = {}
    told = [part for text in words for part in text.split()]
    for word in told:
        if word == IDENTIFIED_WORD:
            continue
        name, _, number = word.partition("=")
        if name not in known:
            raise unknown_name(
                "quantity to randomize",
                name,
                [IDENTIFIED_WORD, *known],
                "Write for example --randomize mass=0.2 lag=0.3, or --randomize identified.",
            )
        if name in values:
            raise AirworthyError(f"--randomize got {name} twice, {name}={values[name]:g} and {word}; give it once.")
        try:
            values[name] = float(number)
        except ValueError:
            raise AirworthyError(f"--randomize got {word!r}; write it as {name}=NUMBER.") from None
        if values[name] == 0.0:
            raise AirworthyError(f"--randomize {word} changes nothing: leave it out, or give a share above 0.")
    return asked_randomization(values, IDENTIFIED_WORD in told)


def _of(trainers: tuple[str, ...], options: tuple[str, ...]) -> IdleRule:
    others = " or ".join(name for name in TRAINERS if name not in trainers)
    remedy = f"learn with --trainer {' or '.join(trainers)}"
    return IdleRule(options, lambda asked: asked.trainer not in trainers, f"for the trainer {others}", remedy)


IDLE_RULES = (
    _of(("gradient",), ("window", "iterations", "critic", "memory", "history", "delay")),
    # Not that of the others: who wants a longer or shorter training asks for no other trainer.
    IdleRule(
        ("steps",),
        lambda asked: asked.trainer == "gradient",
        "for the trainer gradient, which counts gradient steps",
        "say how many with --iterations",
    ),
    _of(("ppo",), ("device", "mirror")),
)
"""What only some of the trainers read."""
