"""The heads of a policy on frozen features, in torch: what little of `sv_grid` is learnt, and its tensors for flight.

The network that flies reads plain numbers; while it learns, its inputs and outputs have their mean and spread over the pairs
taken off. Both are folded into first and last layers afterwards, in double precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from airworthy.core.arrays import Array, ArrayF32
from airworthy.core.schema import Bound, check_fields
from airworthy.learning.svnet.model import draw_masks
from airworthy.learning.visuomotor.features import CLASSES, VARIANT, Whitening
from airworthy.learning.visuomotor.pairs import Pairs
from airworthy.learning.visuomotor.sight import Sight
from airworthy.pilots.svnet.features import OBJECTIVE_SIZE, OBSERVABLE_SIZE, VISION_SIZE
from airworthy.pilots.svnet.variants import COMMAND, COMMAND_HIDDEN, FEATURES, HEAD_HIDDEN, LATENT, VARIANTS

__all__ = ["HeadLearning", "Heads", "HistoryWeights", "learn_heads", "policy_tensors", "predicted"]

_VISION = [0, 4, 5, 6, 7]
"""Of the observable state: height and quaternion, which the feature extractor reads."""
_POSITION = 3
_SCALED = {"state": OBSERVABLE_SIZE, "objective": OBJECTIVE_SIZE, "latent": LATENT, "command": COMMAND, "position": _POSITION}
_HIDDEN = (*HEAD_HIDDEN, *COMMAND_HIDDEN)
_LEAST_SPREAD = 1e-5
"""Below it a number does not vary (the objective of a single course): it is not divided."""
# Ours: the usual one; heads overfit images of few flights without it.
_DECAY = 1e-2
"""Of weights, in AdamW."""
_GRADIENT_NORM = 1.0
# [M] 5,600 disturbed pairs of the hall, imitation alone, mean squared error of commands on a policy's first flights, in units
# of the expert's spread: 2.79 without, 2.66 at 0.3, 2.40 at 3, 2.36 at 10, 2.37 at 30.
_POSITION_WEIGHT = 10.0
"""Of the error of positions beside that of commands, both in units of their spread."""
_WARMUP = 100
"""Minibatches over which the rate rises; ours: whitened features make the first gradients large."""


@dataclass(frozen=True)
class HeadLearning:
    """How heads learn.

    Raises:
        AirworthyError: A number is out of range.
    """

    minibatches: Annotated[int, Bound(1, 1_000_000)] = 2000
    batch: Annotated[int, Bound(1, 100_000)] = 256
    rate: Annotated[float, Bound(0.0, 1.0, above=True)] = 1e-3
    """Of AdamW's step at first; it falls to 0 by a cosine."""
    dropout: Annotated[float, Bound(0.0, 0.9)] = 0.1
    """Share of numbers dropped behind hidden layers."""

    def __post_init__(self) -> None:
        check_fields(self, "HeadLearning.")


class Heads(nn.Module):
    """Whitened features, state, objective and latent -> command, all with their mean and spread taken off.

    Args:
        channels: Of whitened features.
        seed: Of the weights.
        name: Of the variant.
    """

    def __init__(self, channels: int, seed: int = 0, name: str = VARIANT):
        super().__init__()
        kind = VARIANTS[name]
        # torch's own rules of initialisation draw from the global generator: borrowed, and given back as it was.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.reduce = nn.Linear(channels, CLASSES)
            self.vision = _linears(kind.scores + VISION_SIZE, *HEAD_HIDDEN, FEATURES)
            self.command = _linears(kind.command_input, *COMMAND_HIDDEN, COMMAND)
            self.position = nn.Linear(FEATURES, _POSITION)
        for name, size in _SCALED.items():
            self.register_buffer(f"{name}_mean", torch.zeros(size))
            self.register_buffer(f"{name}_spread", torch.ones(size))

    def scale_by(self, numbers: Mapping[str, ArrayF32]) -> None:
        """Take mean and spread of numbers (k, size) by name: state, objective, latent, command, position."""
        for name in _SCALED:
            rows = numbers[name].astype(np.float64)
            spread = rows.std(axis=0)
            mean, spread = rows.mean(axis=0), np.where(spread > _LEAST_SPREAD, spread, 1.0)
            for kind, values in (("mean", mean), ("spread", spread)):
                getattr(self, f"{name}_{kind}").copy_(torch.from_numpy(values.astype(np.float32)))

    def scaled(self, name: str, values: Tensor) -> Tensor:
        """Return numbers (n, size) with mean and spread taken off."""
        found: Tensor = (values - getattr(self, f"{name}_mean")) / getattr(self, f"{name}_spread")
        return found

    def forward(
        self, features: Tensor, state: Tensor, objective: Tensor, latent: Tensor, masks: list[Tensor] | None
    ) -> tuple[Tensor, Tensor]:
        """Return commands (n, 4), and positions (n, 3) that are read of what is seen, with mean and spread taken off.

        Args:
            features: (n, cells^2, channels).
            state: (n, 8), scaled, as the next two.
            objective: (n, 18).
            latent: (n, 8).
            masks: Of dropped numbers behind the four hidden layers; None: nothing is dropped.
        """
        seen = functional.relu(self.reduce(features)).flatten(1)
        seen = _chained(self.vision, torch.cat([seen, state[:, _VISION]], dim=1), masks and masks[: len(HEAD_HIDDEN)])
        known = torch.cat([state, objective, latent, seen], dim=1)
        return _chained(self.command, known, masks and masks[len(HEAD_HIDDEN) :]), self.position(seen)


def learn_heads(
    heads: Heads,
    pairs: Pairs,
    latent: ArrayF32,
    how: HeadLearning,
    seed: tuple[int, ...],
    stepped: Callable[[int], None] = lambda number: None,
    sight: Sight | None = None,
) -> float:
    """Let heads learn the expert's commands; each time a pair comes, one of its looks is drawn.

    Args:
        heads: Scaled; changed in place.
        pairs: All that is known.
        latent: (k, 8) of the history network.
        how: For how long.
        seed: Of order, looks and dropout.
        stepped: Called behind each minibatch with its number.
        sight: What makes features of the images that pairs hold, and learns with the heads; None: pairs hold features.

    Returns:
        Mean squared error over the last tenth, commands in units of their spread.
    """
    rng = np.random.default_rng(seed)
    generator = torch.Generator().manual_seed(int(rng.integers(1 << 62)))
    features = torch.from_numpy(pairs.features)
    numbers = {
        name: heads.scaled(name, torch.from_numpy(values))
        for name, values in (
            ("state", pairs.state),
            ("objective", pairs.objective),
            ("latent", latent),
            ("command", pairs.command),
            ("position", pairs.position),
        )
    }
    weights = [*heads.parameters(), *(sight.parameters() if sight else ())]
    adam = torch.optim.AdamW(weights, lr=how.rate, weight_decay=_DECAY, foreach=True)
    left = np.zeros(0, np.int64)
    losses: list[float] = []
    heads.train()
    for number in range(how.minibatches):
        if len(left) < how.batch:
            left = np.concatenate([left, rng.permutation(len(pairs))])
        which, left = np.sort(left[: how.batch]), left[how.batch :]
        look = rng.integers(pairs.looks, size=len(which))
        rows = torch.from_numpy(which)
        shown = features[rows, torch.from_numpy(look)]
        shown = sight(shown, rng) if sight else shown.float()
        masks = draw_masks(len(which), [(width, how.dropout) for width in _HIDDEN], generator, "cpu")
        found, where = heads(shown, *(numbers[name][rows] for name in ("state", "objective", "latent")), masks)
        loss = functional.mse_loss(found, numbers["command"][rows])
        cost = loss + _POSITION_WEIGHT * functional.mse_loss(where, numbers["position"][rows])
        share = min(1.0, (number + 1) / _WARMUP) * 0.5 * (1.0 + math.cos(math.pi * number / how.minibatches))
        for group in adam.param_groups:
            group["lr"] = how.rate * share
        adam.zero_grad(set_to_none=True)
        cost.backward()
        nn.utils.clip_grad_norm_(weights, _GRADIENT_NORM)
        adam.step()
        losses.append(float(loss.detach()))
        stepped(number + 1)
    heads.eval()
    return float(np.mean(losses[-max(1, len(losses) // 10) :]))


@torch.no_grad()
def predicted(heads: Heads, pairs: Pairs, latent: ArrayF32) -> ArrayF32:
    """Return commands (k, 4) for the first look at each pair, in the units of the data.

    Args:
        heads: That were learnt.
        pairs: What is seen and known.
        latent: (k, 8) of the history network.
    """
    parts = []
    numbers = {"state": pairs.state, "objective": pairs.objective, "latent": latent}
    known = {name: heads.scaled(name, torch.from_numpy(values)) for name, values in numbers.items()}
    for first in range(0, len(pairs), _EVALUATED_AT_ONCE):
        some = slice(first, first + _EVALUATED_AT_ONCE)
        shown = torch.from_numpy(pairs.features[some, 0]).float()
        parts.append(heads(shown, *(values[some] for values in known.values()), None)[0])
    found = torch.cat(parts) * heads.command_spread + heads.command_mean
    return np.asarray(found.numpy(), np.float32)


_EVALUATED_AT_ONCE = 1024

HistoryWeights = Mapping[str, ArrayF32]
"""Tensors `history.*` of the variant."""


def policy_tensors(
    trunk: Mapping[str, ArrayF32], whitening: Whitening, heads: Heads, history: HistoryWeights
) -> dict[str, ArrayF32]:
    """Return the tensors of `variants.tensor_shapes`, with the whitening and all scales folded in.

    Args:
        trunk: Tensors `features.*`.
        whitening: Of what it gives.
        heads: That were learnt.
        history: That was learnt before them.
    """
    held = {key: value.detach().double().numpy() for key, value in heads.state_dict().items()}
    weight, bias = whitening.folded(held["reduce.weight"], held["reduce.bias"])
    found: dict[str, Array] = {f"vision.backbone.{name}": np.asarray(value, np.float64) for name, value in trunk.items()}
    found |= {"vision.backbone.classifier.1.weight": weight[..., None, None], "vision.backbone.classifier.1.bias": bias}
    for name, layers in (("vision.head", "vision"), ("command", "command")):
        count = len(getattr(heads, layers))
        for number in range(count):
            for kind in ("weight", "bias"):
                found[f"{name}.{number}.{kind}"] = held[f"{layers}.{number}.{kind}"]
    scores = len(heads.vision[0].weight[0]) - VISION_SIZE
    _fold_inputs(found, "vision.head.0", scores, held["state_mean"][_VISION], held["state_spread"][_VISION])
    known = ("state", "objective", "latent")
    mean, spread = (np.concatenate([held[f"{name}_{kind}"] for name in known]) for kind in ("mean", "spread"))
    _fold_inputs(found, "command.0", 0, mean, spread)
    last = f"command.{len(heads.command) - 1}"
    found[f"{last}.weight"] = found[f"{last}.weight"] * held["command_spread"][:, None]
    found[f"{last}.bias"] = found[f"{last}.bias"] * held["command_spread"] + held["command_mean"]
    tensors = {key: np.ascontiguousarray(value, np.float32) for key, value in found.items()}
    return {**tensors, **{key: np.asarray(value, np.float32) for key, value in history.items()}}


def _fold_inputs(tensors: dict[str, Array], name: str, first: int, mean: Array, spread: Array) -> None:
    """Let a layer read inputs from the `first` on as they are, which it learnt to read with mean and spread taken off."""
    weight = tensors[f"{name}.weight"].copy()
    some = slice(first, first + len(mean))
    weight[:, some] /= spread
    tensors[f"{name}.bias"] = tensors[f"{name}.bias"] - weight[:, some] @ mean
    tensors[f"{name}.weight"] = weight


def _linears(*widths: int) -> nn.ModuleList:
    return nn.ModuleList(nn.Linear(given, out) for given, out in pairwise(widths))


def _chained(layers: nn.ModuleList, x: Tensor, masks: Sequence[Tensor] | None) -> Tensor:
    """Linear layers with a rectifier, and a mask, behind each but the last."""
    for number, layer in enumerate(layers):
        x = layer(x)
        if number < len(layers) - 1:
            x = functional.relu(x)
            x = x if masks is None else x * masks[number]
    return x
