"""SV-Net in torch, for training: the same tensors that the runner without torch reads.

Dropout takes its masks from outside: they are drawn from (seed, step), so a training that was stopped goes on with the
same numbers, and a compiled network holds no state of a generator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from airworthy.pilots.svnet.features import HISTORY_SIZE, VISION_SIZE
from airworthy.pilots.svnet.squeezenet import CLASSES, FIRES, POOLS
from airworthy.pilots.svnet.variants import (
    COMMAND,
    COMMAND_HIDDEN,
    ESTIMATE,
    FEATURES,
    HEAD_HIDDEN,
    HISTORY_HIDDEN,
    LATENT,
    Variant,
    variant,
)

__all__ = ["Inputs", "Masks", "SvNet", "draw_masks", "mask_widths"]

Masks = Sequence[Tensor]
"""One per hidden layer, (batch, width): 0 where a number is dropped, 1 / (1 - share) elsewhere."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a network reads of n pairs, float32; see `airworthy.pilots.svnet.features`."""

    state: Tensor
    """(n, 8) observable state, or (n, 11) of the network that is told everything."""
    objective: Tensor
    """(n, 18)"""
    history: Tensor
    """(n, 75)"""
    images: Tensor | None = None
    """(n, 3, H, W), normalised."""

    @property
    def vision(self) -> Tensor:
        """(n, 5) height and quaternion, for the feature extractor."""
        return torch.cat([self.state[:, :1], self.state[:, 4:]], dim=1)


class Fire(nn.Module):
    """Squeeze to few channels, expand by 1 x 1 and 3 x 3 side by side."""

    def __init__(self, given: int, squeezed: int, expanded: int):
        super().__init__()
        self.squeeze = nn.Conv2d(given, squeezed, 1)
        self.expand1x1 = nn.Conv2d(squeezed, expanded, 1)
        self.expand3x3 = nn.Conv2d(squeezed, expanded, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        """(n, C, H, W) -> (n, 2 expanded, H, W)"""
        x = functional.relu(self.squeeze(x), inplace=True)
        return functional.relu(torch.cat([self.expand1x1(x), self.expand3x3(x)], dim=1), inplace=True)


class SqueezeNet(nn.Module):
    """SqueezeNet 1.1 with its classifier (Iandola et al., 2016); names of tensors as torchvision's."""

    def __init__(self) -> None:
        super().__init__()
        layers: dict[str, nn.Module] = {"0": nn.Conv2d(3, 64, 3, stride=2)}
        layers |= {number: Fire(*sizes) for number, sizes in FIRES.items()}
        self.features = nn.ModuleDict(layers)
        self.classifier = nn.ModuleDict({"1": nn.Conv2d(512, CLASSES, 1)})
        self._order = tuple(sorted((*FIRES, *POOLS), key=int))
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                # Without normalisation a signal must not fade on its way through 18 layers (He et al., 2015).
                nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu")
                nn.init.zeros_(layer.bias)

    def forward(self, images: Tensor) -> Tensor:
        """(n, 3, H, W) -> (n, 1000)"""
        x = functional.relu(self.features["0"](images), inplace=True)
        for number in self._order:
            pooled = number in POOLS
            x = functional.max_pool2d(x, 3, 2, ceil_mode=True) if pooled else self.features[number](x)
        # The mean, not adaptive pooling: its derivative is the same on every run.
        return functional.relu(self.classifier["1"](x), inplace=True).float().mean(dim=(2, 3))


class HistoryNetwork(nn.Module):
    """Flown ticks -> latent, and an estimate of mass and force of a rotor."""

    def __init__(self) -> None:
        super().__init__()
        self.body = _linears(HISTORY_SIZE, *HISTORY_HIDDEN, LATENT)
        self.estimate = nn.Linear(LATENT, ESTIMATE)

    def forward(self, history: Tensor, masks: Masks | None = None) -> tuple[Tensor, Tensor]:
        """(n, 75) -> (n, 8), (n, 2)"""
        latent = functional.relu(_chained(self.body, history, masks))
        return latent, self.estimate(latent)


class Vision(nn.Module):
    """Image, height and attitude -> features."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = SqueezeNet()
        self.head = _linears(CLASSES + VISION_SIZE, *HEAD_HIDDEN, FEATURES)

    def forward(self, images: Tensor, state: Tensor, masks: Masks | None = None) -> Tensor:
        """(n, 3, H, W), (n, 5) -> (n, 128)"""
        return _chained(self.head, torch.cat([self.backbone(images), state], dim=1), masks)


class SvNet(nn.Module):
    """SV-Net or one of its variants, on random weights.

    Args:
        name: Of the variant.
        seed: Of the weights.

    Raises:
        UnknownNameError: There is no such variant.
    """

    def __init__(self, name: str = "sv_net", seed: int = 0):
        super().__init__()
        self.variant: Variant = variant(name)
        self.precision: torch.dtype = torch.float32
        """Of the image network; everything else computes in float32."""
        # torch's own rules of initialisation draw from the global generator: borrowed, and given back as it was.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            if self.variant.history != "none":
                self.history = HistoryNetwork()
            if self.variant.vision:
                self.vision = Vision()
            self.command = _linears(self.variant.command_input, *COMMAND_HIDDEN, COMMAND)

    def forward(self, inputs: Inputs, masks: Masks | None = None, history: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """Commands (n, 4): thrust in [-1, 0] and body rates [rad/s], z down, not clipped.

        Args:
            inputs: Of n pairs.
            masks: Of `mask_widths`, in their order; None: nothing is dropped.
            history: What a frozen history network gave; None: it is asked, and learns.
        """
        left = list(masks or ())

        def take(count: int) -> Masks | None:
            taken = left[:count]
            del left[:count]
            return taken or None

        parts = [inputs.state, inputs.objective]
        if self.variant.history != "none":
            if history is None:
                history = self.history(inputs.history, take(len(HISTORY_HIDDEN)))
            parts.append(history[0] if self.variant.history == "latent" else history[1])
        if self.variant.vision:
            with torch.autocast(inputs.state.device.type, torch.bfloat16, enabled=self.precision == torch.bfloat16):
                features = self.vision(inputs.images, inputs.vision, take(len(HEAD_HIDDEN)))
            parts.append(features.float())
        return _chained(self.command, torch.cat(parts, dim=1), take(len(COMMAND_HIDDEN)))


def mask_widths(kind: Variant, stage: str) -> dict[str, tuple[int, ...]]:
    """Widths of the hidden layers from which numbers are dropped in a stage ("history" or "command"), by block, in order."""
    if stage == "history":
        return {"history": HISTORY_HIDDEN}
    found: dict[str, tuple[int, ...]] = {}
    if kind.history != "none" and not kind.pretrained:
        found["history"] = HISTORY_HIDDEN
    if kind.vision:
        found["vision"] = HEAD_HIDDEN
    return {**found, "command": COMMAND_HIDDEN}


def draw_masks(count: int, widths: Sequence[tuple[int, float]], generator: Any, device: Any) -> list[Tensor] | None:
    """Masks (count, width) for layers and the share of numbers dropped from each; None: nothing is dropped from any."""
    if not any(share for _, share in widths):
        return None
    drawn = torch.rand((count, sum(width for width, _ in widths)), generator=generator, device=device)
    parts = drawn.split([width for width, _ in widths], dim=1)
    return [(part >= share).float() / (1.0 - share) for part, (_, share) in zip(parts, widths, strict=True)]


def _linears(*widths: int) -> nn.ModuleList:
    return nn.ModuleList(nn.Linear(given, out) for given, out in pairwise(widths))


def _chained(layers: nn.ModuleList, x: Tensor, masks: Masks | None) -> Tensor:
    """Linear layers with a rectifier, and a mask, behind each but the last."""
    for number, layer in enumerate(layers):
        x = layer(x)
        if number < len(layers) - 1:
            x = functional.relu(x)
            x = x if masks is None else x * masks[number]
    return x
