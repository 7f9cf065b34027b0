"""SV-Net in torch, for training: the same tensors that the runner without torch reads.

Dropout takes its masks from outside: they are drawn from (seed, step), so a training that was stopped goes on with the
same numbers, and a compiled network holds no state of a generator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from airworthy.core.arrays import ArrayF32
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import read_bytes, sha256_file
from airworthy.learning.svnet.lite0 import Lite0Trunk
from airworthy.learning.svnet.options import SvNetOptions
from airworthy.pilots.svnet.contract import WEIGHTS_FILE, PolicyContract, policy_folder, read_policy
from airworthy.pilots.svnet.features import HISTORY_SIZE, VISION_SIZE
from airworthy.pilots.svnet.variants import (
    CLASSES,
    COMMAND,
    COMMAND_HIDDEN,
    ESTIMATE,
    FEATURES,
    FIRES,
    HEAD_HIDDEN,
    HISTORY_HIDDEN,
    LATENT,
    POOLS,
    Trunk,
    Variant,
    backbone_shapes,
    cell_spans,
    variant,
)

__all__ = ["Inputs", "Masks", "SvNet", "draw_masks", "mask_widths", "pretrained_digests", "pretrained_init", "read_backbone"]

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
        """Return (n, C, H, W) -> (n, 2 expanded, H, W)"""
        x = functional.relu(self.squeeze(x), inplace=True)
        return functional.relu(torch.cat([self.expand1x1(x), self.expand3x3(x)], dim=1), inplace=True)


class SqueezeNetTrunk(nn.ModuleDict):
    """SqueezeNet 1.1 without its classifier (Iandola et al., 2016); names of tensors as torchvision's."""

    def __init__(self) -> None:
        super().__init__({"0": nn.Conv2d(3, 64, 3, stride=2), **{number: Fire(*sizes) for number, sizes in FIRES.items()}})
        self._order = tuple(sorted((*FIRES, *POOLS), key=int))

    def forward(self, images: Tensor) -> Tensor:
        """Return (n, 3, H, W) -> (n, 512, h, w)"""
        x = functional.relu(self["0"](images), inplace=True)
        for number in self._order:
            x = functional.max_pool2d(x, 3, 2, ceil_mode=True) if number in POOLS else self[number](x)
        return x


class ImageNetwork(nn.Module):
    """A trunk with its classifier.

    Args:
        classes: Channels of the classifier.
        cells: Rows and columns of cells of the image over which each is averaged.
        trunk: Of the image network.
    """

    def __init__(self, classes: int = CLASSES, cells: int = 1, trunk: Trunk = "squeezenet") -> None:
        super().__init__()
        self.cells = cells
        self.features: nn.Module = Lite0Trunk() if trunk == "lite0" else SqueezeNetTrunk()
        channels = backbone_shapes(classes, trunk)["classifier.1.weight"][1]
        self.classifier = nn.ModuleDict({"1": nn.Conv2d(channels, classes, 1)})
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                # Without normalisation a signal must not fade on its way through 18 layers (He et al., 2015).
                nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu")
                nn.init.zeros_(layer.bias)

    def forward(self, images: Tensor) -> Tensor:
        """Return (n, 3, H, W) -> (n, cells^2 classes), cell by cell, row by row"""
        x = functional.relu(self.classifier["1"](self.features(images)), inplace=True).float()
        rows, columns = (cell_spans(side, self.cells) for side in x.shape[2:])
        # Means, not adaptive pooling: their derivative is the same on every run.
        means = [x[:, :, top:bottom, left:right].mean(dim=(2, 3)) for top, bottom in rows for left, right in columns]
        return torch.cat(means, dim=1)


class HistoryNetwork(nn.Module):
    """Flown ticks -> latent, and an estimate of mass and force of a rotor."""

    def __init__(self) -> None:
        super().__init__()
        self.body = _linears(HISTORY_SIZE, *HISTORY_HIDDEN, LATENT)
        self.estimate = nn.Linear(LATENT, ESTIMATE)

    def forward(self, history: Tensor, masks: Masks | None = None) -> tuple[Tensor, Tensor]:
        """Return (n, 75) -> (n, 8), (n, 2)"""
        # The latent is rectified, as in the published code (spec/sousvide section 7); the estimate is not.
        latent = functional.relu(_chained(self.body, history, masks))
        return latent, self.estimate(latent)


class Vision(nn.Module):
    """Image, height and attitude -> features; `kind` says how scores are made of the image."""

    def __init__(self, kind: Variant) -> None:
        super().__init__()
        self.backbone = ImageNetwork(kind.classes, kind.cells, kind.trunk)
        self.head = _linears(kind.scores + VISION_SIZE, *HEAD_HIDDEN, FEATURES)

    def forward(self, images: Tensor, state: Tensor, masks: Masks | None = None) -> Tensor:
        """Return (n, 3, H, W), (n, 5) -> (n, 128)

        Args:
            images: (n, 3, H, W), mean and spread of ImageNet taken off.
            state: Height and quaternion, (n, 5).
            masks: Of dropped numbers; None: nothing is dropped.
        """
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
                self.vision = Vision(self.variant)
            self.command = _linears(self.variant.command_input, *COMMAND_HIDDEN, COMMAND)

    def forward(self, inputs: Inputs, masks: Masks | None = None, history: tuple[Tensor, Tensor] | None = None) -> Tensor:
        """Return commands (n, 4): thrust in [-1, 0] and body rates [rad/s], z down, not clipped.

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
    """Return widths of the hidden layers from which numbers are dropped in a stage ("history" or "command"), by block, in
    order."""
    if stage == "history":
        return {"history": HISTORY_HIDDEN}
    found: dict[str, tuple[int, ...]] = {}
    if kind.history != "none" and not kind.pretrained:
        found["history"] = HISTORY_HIDDEN
    if kind.vision:
        found["vision"] = HEAD_HIDDEN
    return {**found, "command": COMMAND_HIDDEN}


def draw_masks(count: int, widths: Sequence[tuple[int, float]], generator: Any, device: Any) -> list[Tensor] | None:
    """Return masks (count, width) for layers and the share of numbers dropped from each; None: nothing is dropped from any.

    Args:
        count: Rows, (n,).
        widths: Of each layer, with the share that is dropped.
        generator: Whose state is part of checkpoints.
        device: Where the masks are wanted.
    """
    if not any(share for _, share in widths):
        return None
    drawn = torch.rand((count, sum(width for width, _ in widths)), generator=generator, device=device)
    parts = drawn.split([width for width, _ in widths], dim=1)
    # Scaled up here (inverted dropout), so that nothing is scaled at run time.
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


# -----------------------------------------------------------------------------------------------------------------------------
# What a training begins with: random numbers, the backbone of a file, or the networks of a policy that flies already.

# ---- Weights of SqueezeNet 1.1 from a file, to begin a training with --------------------------------------------------------

# Ours: thirteen times the 5 MB of SqueezeNet 1.1; a larger file is something else.
_LIMIT_BYTES = 64 << 20
_HOW = (
    'convert it where you trust it: python -c "import sys, torch; from safetensors.torch import save_file; save_file('
    "torch.load(sys.argv[1], weights_only=True), 'squeezenet1_1.safetensors')\" FILE"
)


def read_backbone(path: str | Path) -> dict[str, ArrayF32]:
    """Return tensors of SqueezeNet 1.1 by torchvision's names.

    Args:
        path: A .safetensors; torch's own .pth holds pickles, which can run code, and is not read.

    Raises:
        AssetError: It is another kind of file, damaged, or its tensors are not SqueezeNet's.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    where = Path(path)
    # Pickles run code when they are loaded; the sentence says how to convert one where it is trusted.
    if where.suffix.lower() != ".safetensors":
        raise AssetError(f"{str(path)!r} is not a .safetensors file; {_HOW}.")
    try:
        found = load(read_bytes(where, _LIMIT_BYTES))
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise AssetError(f"{str(path)!r} is not a usable safetensors file: {str(error).splitlines()[0][:200]}.") from error
    for name, shape in backbone_shapes().items():
        if name not in found:
            raise AssetError(f"{str(path)!r} holds no SqueezeNet 1.1: the tensor {name!r} is missing.")
        if found[name].shape != shape:
            raise AssetError(
                f"{str(path)!r} holds no SqueezeNet 1.1: {name!r} has shape {found[name].shape}, expected {shape}."
            )
        if not np.issubdtype(found[name].dtype, np.floating):
            kind = found[name].dtype
            raise AssetError(f"{str(path)!r} cannot be used: the tensor {name!r} holds {kind}; expected float32 or the like.")
        if not np.isfinite(found[name]).all():
            raise AssetError(f"{str(path)!r} cannot be used: the tensor {name!r} holds values that are not finite numbers.")
    return {name: np.asarray(found[name], np.float32) for name in backbone_shapes()}


# -----------------------------------------------------------------------------------------------------------------------------


def pretrained_init(options: SvNetOptions, precision: str) -> SvNet:
    """Return the network before its first minibatch.

    Args:
        options: Of the training.
        precision: Of the image network: "float32" or "bfloat16".

    Raises:
        AssetError: There is no such file or policy, or it is damaged.
        AirworthyError: The policy is of another variant, its history is of another form, or the weights are of another image
            network than the variant's.
    """
    model = SvNet(options.variant, options.seed)
    model.precision = torch.bfloat16 if precision == "bfloat16" else torch.float32
    if options.weights and model.variant.trunk != "squeezenet":
        raise AirworthyError(
            f"{options.weights!r} is to hold SqueezeNet 1.1, and variant {options.variant!r} sees with another network; leave"
            " the weights out, or take sv_net or sv_grid."
        )
    if options.weights and model.variant.vision:
        state = {key: torch.from_numpy(value) for key, value in read_backbone(options.weights).items()}
        if model.variant.classes != CLASSES:
            # A variant with classes of its own learns them anew.
            state = {key: value for key, value in state.items() if not key.startswith("classifier.")}
        model.vision.backbone.load_state_dict({**model.vision.backbone.state_dict(), **state})
    if options.start:
        _take_over(model, options)
    if model.variant.vision:
        # Convolutions with channels last run without being transposed, on CPUs and on GPUs.
        model.vision.to(memory_format=torch.channels_last)
    return model


def pretrained_digests(options: SvNetOptions) -> dict[str, str | None]:
    """Return the SHA-256 of the files that a training begins with; None where it needs none.

    Raises:
        AssetError: There is no such file.
    """
    start = policy_folder(options.start) / WEIGHTS_FILE if options.start else None
    return {
        "weights_sha256": sha256_file(options.weights) if options.weights else None,
        "start_sha256": sha256_file(start) if start else None,
    }


def _take_over(model: SvNet, options: SvNetOptions) -> None:
    """Take over the policy's tensors; a history network that is to learn begins anew, since its numbers are scaled while it
    does.
    """
    folder = policy_folder(options.start)
    contract, weights = read_policy(folder)
    if fault := _fault(contract, options):
        raise AirworthyError(f"The training cannot start from {options.start!r}: {fault}.")
    anew = bool(options.history_epochs) and model.variant.learns_history
    kept = {key: value for key, value in weights.items() if not (anew and key.startswith("history."))}
    state = {key: torch.from_numpy(value) for key, value in kept.items()}
    model.load_state_dict({**model.state_dict(), **state})


def _fault(contract: PolicyContract, options: SvNetOptions) -> str:
    if contract.variant != options.variant:
        return f"it is of variant {contract.variant!r}, and {options.variant!r} is to be trained"
    if contract.history != options.form:
        return f"its history is of the form {contract.history!r}, and {options.form!r} was asked for (--form)"
    return ""
