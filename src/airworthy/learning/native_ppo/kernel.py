"""Kernels of PPO on small networks: a rollout of environments, and the gradient of the loss of a minibatch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from airworthy.core.arrays import Vector
from airworthy.core.native_kernel import native_kernel, shared_source
from airworthy.core.tracing import adjoint, trace
from airworthy.learning.environments.kernel import KERNEL_ARGUMENTS, EnvironmentShape, environment_parts
from airworthy.learning.native_ppo.loss import ppo_loss
from airworthy.learning.native_ppo.shared import ACTION_STREAM
from airworthy.learning.network_source import network_source

__all__ = ["SLICE", "TOLD", "NetworkSizes", "rollout_kernel", "scratch_rows", "update_kernel"]

SLICE = 16
"""Blocks whose rows lie in the second cache together, an even number: ours, for caches of half a megabyte and more."""
TOLD = ("reward", "ended", "terminated", "cut_value", "return", "success")
"""What a rollout tells of each step and environment, in this order."""


@dataclass(frozen=True)
class NetworkSizes:
    """Of policy and critic, which are alike but for their last layer and for what they see, and of the loss."""

    observed: int
    first: int
    second: int
    actions: int
    clip_share: float
    value_weight: float
    entropy_weight: float
    known: int = 0
    """Numbers that the critic sees instead of the observation (`observe_critic` of a task); 0: the observation."""

    @property
    def judged(self) -> int:
        """Numbers that the critic sees."""
        return self.known or self.observed

    @property
    def forward(self) -> list[tuple[int, int]]:
        """Matrices (rows, columns): three of the policy, three of the critic; a bias follows each."""
        inner, ends = (self.second, self.first), ((self.observed, self.actions), (self.judged, 1))
        return [size for inputs, last in ends for size in ((self.first, inputs), inner, (last, self.second))]

    @property
    def sample(self) -> int:
        """Numbers of a sample: observation, action, its log-probability, advantage, target of the value, what is `known`."""
        return self.observed + self.actions + 3 + self.known


def scratch_rows(sizes: NetworkSizes) -> dict[str, int]:
    """Return the first row of what the update keeps of a slice, by name: layers, and slopes of their sums; `ROWS` is their
    number."""
    first, second = sizes.first, sizes.second
    layers = {"POLICY1": first, "POLICY2": second, "VALUE1": first, "VALUE2": second}
    counts = {**layers, **{f"D_{name}": count for name, count in layers.items()}, "D_ACTION": sizes.actions, "D_VALUE": 1}
    # The critic's inputs are the first rows, too, where it sees what the policy sees.
    found, at = {"KNOWN": sizes.observed if sizes.known else 0}, sizes.observed + sizes.known
    for name, count in counts.items():
        found[name], at = at, at + count
    return {**found, "ROWS": at}


# Both networks use the same arrays for their layers.
_FORWARD = """
#define NETWORK_FORWARD(w, inputs, in, out, count) \\
  Net::layer(FIRST, inputs, w, w + FIRST * (inputs), in, h1); \\
  Net::layer(SECOND, FIRST, w + FIRST * (inputs) + FIRST, w + FIRST * (inputs) + FIRST + SECOND * FIRST, h1, h2); \\
  Net::product(count, SECOND, w + FIRST * (inputs) + FIRST + SECOND * FIRST + SECOND, \\
               w + FIRST * (inputs) + FIRST + SECOND * FIRST + SECOND + count * SECOND, h2, out);
"""


def _numbers(sizes: NetworkSizes) -> dict[str, int]:
    policy = sum(r * c + r for r, c in sizes.forward[:3])
    value = sum(r * c + r for r, c in sizes.forward[3:])
    return {
        "OBSERVED": sizes.observed,
        "JUDGED": sizes.judged,
        "FIRST": sizes.first,
        "SECOND": sizes.second,
        "ACTIONS": sizes.actions,
        "VALUE": policy,
        "LOG_STD": policy + value,
        "BACKWARD": policy + value + sizes.actions,
        "STREAM": int(ACTION_STREAM),
        "SAMPLE": sizes.sample,
        "S_ACTION": sizes.observed,
        "S_LOG": sizes.observed + sizes.actions,
        "S_KNOWN": sizes.observed + sizes.actions + 3 if sizes.known else 0,
    }


def _source(numbers: dict[str, int], name: str, replaced: dict[str, str]) -> str:
    enumerators = ", ".join(f"{key} = {number}" for key, number in numbers.items())
    text = files("airworthy.learning.native_ppo").joinpath("native", name).read_text()
    for key, block in replaced.items():
        text = text.replace(key, block)
    return "\n".join(
        [shared_source("prelude.h"), f"enum {{ {enumerators} }};", shared_source("random.h"), network_source(), _FORWARD, text]
    )


@cache
def rollout_kernel(sizes: NetworkSizes, shape: EnvironmentShape) -> Any:
    """Return the kernel that flies environments with a policy.

    Args:
        sizes: Of the network.
        shape: Of the environments.
    """
    enumerators, step = environment_parts(shape)
    source = _source({**enumerators, **_numbers(sizes)}, "policy_rollout.h", {"ENVIRONMENT_STEP": step})
    environment = "".join(f"{line}\n" for line in KERNEL_ARGUMENTS.splitlines() if line.partition(":")[0].strip() != "stepping")
    return native_kernel(f"ppo_rollout_{shape.task.name}", source, environment + _ROLLOUT)


@cache
def update_kernel(sizes: NetworkSizes) -> Any:
    """Return the kernel of the loss and its slopes."""
    n = sizes.actions

    def loss(mean: Vector, log_std: Vector, value: Any, a: Vector, old: Vector) -> Any:
        return ppo_loss(mean, log_std, value, a, old, sizes.clip_share, sizes.value_weight, sizes.entropy_weight)

    def loss_adjoint(mean: Vector, log_std: Vector, value: Any, a: Vector, old: Vector, bar: Vector) -> list[Any]:
        return adjoint(lambda *x: loss(x[:n], x[n : 2 * n], x[2 * n], a, old), (*mean, *log_std, value), bar)[1]

    read: dict[str, int | None] = {"mean": n, "log_std": n, "value": None, "a": n, "old": 3}
    blocks = [
        trace(loss, "loss", read, {"out": 3}),
        trace(loss_adjoint, "loss_adjoint", {**read, "bar": 3}, {"out": 2 * n + 1}),
    ]
    numbers = {**_numbers(sizes), **scratch_rows(sizes), "SLICE": SLICE}
    source = _source(numbers, "policy_update.h", {"TRACED_BLOCKS": "".join(b.source for b in blocks)})
    return native_kernel("ppo_update", source, _UPDATE)


_ROLLOUT = """
    weights: float32[]     # policy, critic, log_std, then transposed matrices
    deviation: float32[]   # (actions,): exp(log_std)
    noise_keys: uint32[]   # (4, env)
    first_step: int32[]    # (1,): of the training, on which noise depends
    lasting: float32[]     # (actions, env): what earlier actions left of their noise, read and written
    samples: float32[]     # (steps, blocks, sample, lane): written, but for advantage and target
    values: float32[]      # (steps + 1, env): written
    told: float32[]        # (told, steps, env): written
    terms: float32[]       # (terms, env): sums over the rollout, written
    steps: int
    memory: float          # share of its noise that an action leaves to the next
"""
_UPDATE = """
    weights: float32[]     # as above
    order: int32[]         # (2 pairs,): which blocks of samples
    samples: float32[]     # as above
    scratch: float32[]     # (parts, rows, a slice and a block): written
    gradient: float32[]    # (parts, weights, then 3 sums of what the loss tells): written
    pairs: int             # of blocks
    parts: int
    weight: float          # of a sample's loss
"""
