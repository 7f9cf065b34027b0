"""The kernel of a learner with a replay: steps of environments and the updates that they are due, in one launch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any, Literal

from airworthy.core.arrays import Vector
from airworthy.core.native_kernel import CPU_LANES, native_kernel, shared_source
from airworthy.core.ops import exp
from airworthy.core.random import Stream
from airworthy.core.tracing import adjoint, trace
from airworthy.learning.environments.kernel import KERNEL_ARGUMENTS, EnvironmentShape, environment_parts
from airworthy.learning.network_source import network_source
from airworthy.learning.off_policy.actions import gaussian_action, plain_action, smoothed_action

__all__ = [
    "ACTOR_DRAWS",
    "ADAM",
    "COUNTERS",
    "CRITIC_DRAWS",
    "EXPLORED",
    "NOISE_DRAWS",
    "SETTINGS",
    "STREAM",
    "TOLD",
    "LearnerShape",
    "learner_kernel",
]

STREAM = Stream.RESET
"""Of all draws here, under keys that no flight has."""
EXPLORED = 16
"""First index of the noise of actions that are flown, at the environments' step; behind those of starts and observations."""
CRITIC_DRAWS, ACTOR_DRAWS, NOISE_DRAWS = 0, 1 << 12, 1 << 8
"""First index of what an update of critics or of the actor draws at its step: samples, and behind them noise."""
SETTINGS = (
    "learning_rate", "final_share", "steps", "weight_decay", "gradient_norm", "gamma", "follow", "reward_scale",
    "target_entropy", "average",
)  # fmt: skip
"""Numbers of the options that the kernel reads, in this order."""
COUNTERS = ("time", "finals", "learnt", "broken")
"""Steps of all environments, final observations kept, env-steps whose updates are done, and whether a gradient was none."""
TOLD = (
    "critic_updates", "critic_loss", "value", "actor_updates", "actor_loss", "log_density", "ended", "terminated", "returns",
    "reward",
)  # fmt: skip
"""Sums since they were last cleared."""
ADAM = (0.9, 0.999, 1e-8)
"""Decays of both moments and what keeps from dividing by 0, as published (Kingma and Ba 2015)."""


@dataclass(frozen=True)
class LearnerShape:
    """What is known when a kernel is built."""

    kind: Literal["sac", "td3"]
    observed: int
    actions: int
    first: int
    second: int
    batch: int
    known: int = 0
    """Numbers that critics see instead of the observation; 0: they see that."""
    target_noise: float = 0.0
    target_clip: float = 0.0
    exploration_noise: float = 0.0

    @property
    def raw(self) -> int:
        """Sums of the actor's last layer."""
        return 2 * self.actions if self.kind == "sac" else self.actions

    @property
    def judged(self) -> int:
        """Inputs of a critic: what it sees, and an action."""
        return (self.known or self.observed) + self.actions

    @property
    def reward_at(self) -> int:
        """Place of the reward in a record; behind it stands how the flight went on."""
        return self.observed + self.actions

    @property
    def record(self) -> int:
        """Numbers of a step in the replay: observation, action, reward, how it went on, and what critics see."""
        return self.observed + self.actions + 2 + self.known

    def matrices(self, network: int) -> list[tuple[int, int]]:
        """Return matrices (rows, columns) of the actor (0) or of a critic (1, 2); a bias follows each."""
        widths = (
            (self.observed, self.first, self.second, self.raw) if network == 0 else (self.judged, self.first, self.second, 1)
        )
        return [(rows, columns) for columns, rows in pairwise(widths)]

    def size(self, network: int) -> int:
        """Return numbers of a network in memory, which is filled up to whole vectors."""
        count = sum(rows * columns + rows for rows, columns in self.matrices(network))
        return -(-count // CPU_LANES) * CPU_LANES

    @property
    def starts(self) -> tuple[int, int, int, int]:
        """Where each network begins in memory, and where the last ends."""
        actor, critic = self.size(0), self.size(1)
        return 0, actor, actor + critic, actor + 2 * critic

    def act(self, raw: Vector, noise: Vector) -> tuple[Any, ...]:
        """Return the action that the actor learns from, and its log-density, flat."""
        action, density = (gaussian_action if self.kind == "sac" else plain_action)(raw, noise)
        return (*action, density)

    def explore(self, raw: Vector, noise: Vector) -> tuple[Any, ...]:
        """Return the action that is flown, and its log-density, flat."""
        if self.kind == "sac":
            return self.act(raw, noise)
        # As published the noise of exploration is not clipped but for the action's own limits: beyond six deviations is none.
        action, density = smoothed_action(raw, noise, self.exploration_noise, 6.0 * self.exploration_noise)
        return (*action, density)

    def target(self, raw: Vector, noise: Vector) -> tuple[Any, ...]:
        """Return the next action of the critics' target, and its log-density, flat."""
        if self.kind == "sac":
            return self.act(raw, noise)
        # Smoothing of targets (Fujimoto et al. 2018, 5.3): similar actions have similar values.
        action, density = smoothed_action(raw, noise, self.target_noise, self.target_clip)
        return (*action, density)

    def act_slopes(self, raw: Vector, noise: Vector, bar: Vector) -> list[Any]:
        """Derive `act` by the sums.

        Args:
            raw: Sums of the last layer.
            noise: Standard normal numbers, one per action.
            bar: Weights of what `act` returns.
        """
        return adjoint(lambda *x: self.act(x, noise), raw, bar)[1]


def scratch_rows(shape: LearnerShape) -> dict[str, int]:
    """Return the first row of what an update keeps of its batch, by name; `ROWS` is their number."""
    first, second = shape.first, shape.second
    counts = {
        # An action behind what critics see: together they are their inputs.
        "X": shape.observed, "NEXT": shape.observed, "SEEN": shape.judged, "BEYOND": shape.judged,
        "POLICY1": first, "POLICY2": second, "RAW": shape.raw, "DENSITY": 1,
        "VALUE1": first, "VALUE2": second, "OTHER1": first, "OTHER2": second, "Q": 2, "TARGET": 1, "REWARD": 1, "GOING": 1,
        "D_Q": 2, "D_VALUE1": first, "D_VALUE2": second, "D_ACTION": 2 * shape.actions, "D_RAW": shape.raw,
        "D_POLICY1": first, "D_POLICY2": second,
    }  # fmt: skip
    found, at = {}, 0
    for name, count in counts.items():
        found[name], at = at, at + count
    if not shape.known:  # the observation lies there once
        found |= {"X": found["SEEN"], "NEXT": found["BEYOND"]}
    return {**found, "ROWS": at}


def numbers_of(shape: LearnerShape) -> dict[str, int]:
    """Return the enumerators of the learner's native text."""
    starts = shape.starts
    return {
        "OBSERVED": shape.observed,
        "ACTIONS": shape.actions,
        "FIRST": shape.first,
        "SECOND": shape.second,
        "RAWS": shape.raw,
        "JUDGED": shape.judged,
        "KNOWN": shape.judged - shape.actions,
        "KNOWN_APART": shape.known,
        "REWARD_AT": shape.reward_at,
        "BATCH": shape.batch,
        "RECORD": shape.record,
        "CRITIC": starts[1],
        "CRITIC_SIZE": shape.size(1),
        "NETWORK_SIZE": starts[3],
        "SAC": int(shape.kind == "sac"),
        "STREAM": int(STREAM),
        "EXPLORED": EXPLORED,
        "CRITIC_DRAWS": CRITIC_DRAWS,
        "ACTOR_DRAWS": ACTOR_DRAWS,
        "NOISE_DRAWS": NOISE_DRAWS,
        **{f"ROW_OF_{name}": row for name, row in scratch_rows(shape).items()},
        **{f"SET_{name.upper()}": k for k, name in enumerate(SETTINGS)},
        **{f"COUNT_{name.upper()}": k for k, name in enumerate(COUNTERS)},
        **{f"TELL_{name.upper()}": k for k, name in enumerate(TOLD)},
    }


def _blocks(shape: LearnerShape) -> str:
    read: dict[str, int | None] = {"raw": shape.raw, "noise": shape.actions}
    out: dict[str, int | None] = {"out": shape.actions + 1}
    blocks = [trace(getattr(shape, name), name, read, out) for name in ("act", "explore", "target")]
    slopes = trace(shape.act_slopes, "act_slopes", {**read, "bar": shape.actions + 1}, {"out": shape.raw})
    return "".join(b.source for b in (*blocks, slopes, trace(exp, "exponential", {"x": None}, {"out": None})))


@cache
def learner_kernel(shape: LearnerShape, environments: EnvironmentShape) -> Any:
    """Return the kernel that flies environments and learns from what was flown.

    Args:
        shape: Of the learner.
        environments: Of the environments.
    """
    numbers, step = environment_parts(environments)
    enumerators = ", ".join(f"{key} = {value}" for key, value in {**numbers, **numbers_of(shape)}.items())
    room = files("airworthy.learning.off_policy").joinpath("native")
    whole = "\n".join(room.joinpath(name).read_text() for name in ("learner.h", "updates.h", "training.h"))
    parts = {name: room.joinpath(f"{name.lower()}.h").read_text() for name in ("CRITIC_UPDATE", "ACTOR_UPDATE")}
    for name, text in {"LEARNER_BLOCKS": _blocks(shape), "ENVIRONMENT_STEP": step, **parts}.items():
        whole = whole.replace(name, text)
    source = "\n".join(
        [shared_source("prelude.h"), f"enum {{ {enumerators} }};", _ADAM, shared_source("random.h"), network_source(), whole]
    )
    kept = "".join(f"{line}\n" for line in KERNEL_ARGUMENTS.splitlines() if line.partition(":")[0].strip() != "stepping")
    return native_kernel(f"{shape.kind}_{environments.task.name}", source, kept + _ARGUMENTS)


_ADAM = "\n".join(f"#define ADAM_{name} {value!r}" for name, value in zip(("FIRST", "SECOND", "EPSILON"), ADAM, strict=True))
_ARGUMENTS = """
    settings: float32[]     # (settings,)
    networks: float32[]     # actor and critics, as `LearnerShape.starts`: written, and so are all that follow
    targets: float32[]      # of them, alike
    moments: float32[]      # (2, networks)
    powers: float64[]       # (4, 2): of Adam's decays, of actor, critics and temperature
    temperature: float64[]  # (3,): its logarithm and moments
    counters: int32[]       # (counters,)
    told: float64[]         # (told,)
    records: float32[]      # (steps + 1, env, record)
    finals: float32[]       # (cut flights, observed)
    terms: float32[]        # (steps, terms, env) where rewards are scored anew, else nothing
    noise_keys: uint32[]    # (4, env)
    batch_keys: uint32[]    # (4, lane)
    scratch: float32[]      # rows of a batch, gradient, transposed matrices
    rounds: int             # steps of every environment
    critic_every: int
    actor_every: int
    critic_warmup: int
    actor_warmup: int
    keep_terms: int
"""
