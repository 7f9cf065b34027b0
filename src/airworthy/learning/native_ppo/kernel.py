"""Kernels of PPO on small networks: to act, and to derive the loss of samples by the weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from airworthy.core.arrays import Vector
from airworthy.core.native_kernel import native_kernel, shared_source
from airworthy.core.random import Stream
from airworthy.core.tracing import adjoint, trace
from airworthy.learning.native_ppo.loss import ppo_loss
from airworthy.learning.network_source import network_source

__all__ = ["ACTION_STREAM", "NetworkSizes", "act_kernel", "rows_of", "update_kernel"]

ACTION_STREAM = Stream.RESET
"""Of the noise of actions, at the training's step, index 16 and on: starts and observations take those below."""


@dataclass(frozen=True)
class NetworkSizes:
    """Of policy and critic, which are alike but for their last layer, and of the loss."""

    observed: int
    first: int
    second: int
    actions: int
    clip_share: float
    value_weight: float
    entropy_weight: float

    @property
    def forward(self) -> list[tuple[int, int]]:
        """Matrices (rows, columns): three of the policy, three of the critic; a bias follows each."""
        inner = [(self.first, self.observed), (self.second, self.first)]
        return [*inner, (self.actions, self.second), *inner, (1, self.second)]


def rows_of(sizes: NetworkSizes) -> tuple[dict[str, int], dict[str, int]]:
    """First row of what the update leaves, by name: inputs of layers, and slopes of their sums; `END` is their number.

    After the inputs of each layer one row is left free, for ones: the product of slopes and inputs then holds the bias, too.
    """
    first, second = sizes.first, sizes.second
    layers = {"POLICY1": first, "POLICY2": second, "VALUE1": first, "VALUE2": second}
    inputs = {name: count + 1 for name, count in layers.items()}
    slopes = {**layers, "ACTION": 2 * sizes.actions, "VALUE": 1, "TOLD": 3}

    def places(counts: dict[str, int], at: int) -> dict[str, int]:
        found = {}
        for name, count in counts.items():
            found[name], at = at, at + count
        return {**found, "END": at}

    return places(inputs, sizes.observed + 1), places(slopes, 0)


# Both networks read the same inputs into the same arrays.
_FORWARD = """
#define NETWORK_FORWARD(w, out, count) \\
  Net::layer(FIRST, OBSERVED, w, w + FIRST * OBSERVED, o, h1); \\
  Net::layer(SECOND, FIRST, w + FIRST * OBSERVED + FIRST, w + FIRST * OBSERVED + FIRST + SECOND * FIRST, h1, h2); \\
  Net::product(count, SECOND, w + FIRST * OBSERVED + FIRST + SECOND * FIRST + SECOND, \\
               w + FIRST * OBSERVED + FIRST + SECOND * FIRST + SECOND + count * SECOND, h2, out);
"""


def _source(sizes: NetworkSizes, name: str, blocks: str = "") -> str:
    policy = sum(r * c + r for r, c in sizes.forward[:3])
    value = sum(r * c + r for r, c in sizes.forward[3:])
    inputs, slopes = rows_of(sizes)
    numbers = {
        "OBSERVED": sizes.observed,
        "FIRST": sizes.first,
        "SECOND": sizes.second,
        "ACTIONS": sizes.actions,
        "VALUE": policy,
        "LOG_STD": policy + value,
        "BACKWARD": policy + value + sizes.actions,
        "STREAM": int(ACTION_STREAM),
        **{f"I_{key}": row for key, row in inputs.items()},
        **{f"D_{key}": row for key, row in slopes.items()},
    }
    enumerators = ", ".join(f"{key} = {number}" for key, number in numbers.items())
    text = files("airworthy.learning.native_ppo").joinpath("native", name).read_text().replace("TRACED_BLOCKS", blocks)
    return "\n".join(
        [shared_source("prelude.h"), f"enum {{ {enumerators} }};", shared_source("random.h"), network_source(), _FORWARD, text]
    )


@cache
def act_kernel(sizes: NetworkSizes) -> Any:
    """Return the kernel that acts."""
    return native_kernel("ppo_act", _source(sizes, "policy_act.h"), _ACT)


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
    return native_kernel("ppo_update", _source(sizes, "policy_update.h", "".join(b.source for b in blocks)), _UPDATE)


_ACT = """
    weights: float32[]            # policy, critic, log_std, then transposed matrices
    deviation: float32[]          # (actions,): exp(log_std)
    observation: float32[]        # (env, observed)
    keys: uint32[]                # (4, env)
    action: float32[]             # (env, actions): written
    log_probabilities: float32[]  # (env,): written
    values: float32[]             # (env,): written
    env_count: int
    step: int
"""
_UPDATE = """
    weights: float32[]      # as above
    index: int32[]          # (chunk,): which samples
    observation: float32[]  # (samples, observed)
    action: float32[]       # (samples, actions)
    about: float32[]        # (samples, 3): old log-probability, advantage, target
    inputs: float32[]       # (rows, stride): written
    slopes: float32[]       # (rows, stride): written
    stride: int
    weight: float           # of a sample's loss
"""
