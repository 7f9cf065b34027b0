"""SV-Net and its ablations: which blocks each has and what its command network reads. No torch is needed here.

Sources: SOUS VIDE (arXiv 2412.16346), section "Experiments", for the ablations; sizes from StanfordMSL/SousVide,
configs/pilots/*.json, by way of the specification's section 7.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Literal

from airworthy.core.errors import unknown_name
from airworthy.pilots.svnet.features import HISTORY_SIZE, OBJECTIVE_SIZE, OBSERVABLE_SIZE, VISION_SIZE
from airworthy.pilots.svnet.squeezenet import CLASSES, backbone_shapes

__all__ = ["COMMAND", "ESTIMATE", "LATENT", "VARIANTS", "Variant", "parameter_count", "tensor_shapes", "variant"]

HISTORY_HIDDEN, LATENT, ESTIMATE = (64, 32), 8, 2
"""Widths of the history network; the estimate is of mass [kg] and force of one rotor at full command [N]."""
HEAD_HIDDEN, FEATURES = (512, 256), 128
COMMAND_HIDDEN, COMMAND = (100, 100), 4
FULL_STATE_SIZE = 11
"""Time, position, velocity, quaternion: what the non-visual network reads."""


@dataclass(frozen=True)
class Variant:
    """One of the networks."""

    name: str
    summary: str
    vision: bool = True
    """It sees; otherwise it is told the whole state."""
    history: Literal["latent", "estimate", "none"] = "latent"
    """What of the history network the command network reads."""
    pretrained: bool = True
    """The history network learns from the true parameters first and stays as it is then."""

    @property
    def state_size(self) -> int:
        """Numbers of the state that the command network reads."""
        return OBSERVABLE_SIZE if self.vision else FULL_STATE_SIZE

    @property
    def command_input(self) -> int:
        """Numbers that the command network reads: state, objective, history, features, in this order."""
        told = {"latent": LATENT, "estimate": ESTIMATE, "none": 0}[self.history]
        return self.state_size + OBJECTIVE_SIZE + told + (FEATURES if self.vision else 0)

    @property
    def learns_history(self) -> bool:
        """Whether there is a history step."""
        return self.pretrained and self.history != "none"


VARIANTS = {
    item.name: item
    for item in (
        Variant("sv_net", "as published"),
        Variant("no_rma", "without the history network", history="none"),
        Variant("no_pretrain", "history network trained with the rest only", pretrained=False),
        Variant("no_latent", "told the history network's estimate instead of its latent", history="estimate"),
        Variant("hp_net", "told the whole state instead of seeing", vision=False),
    )
}
"""By name."""


def variant(name: str) -> Variant:
    """A variant by name.

    Raises:
        UnknownNameError: There is none of this name.
    """
    if name not in VARIANTS:
        raise unknown_name("variant of SV-Net", name, VARIANTS)
    return VARIANTS[name]


def tensor_shapes(name: str) -> dict[str, tuple[int, ...]]:
    """Every tensor of a variant by the name it has in `weights.safetensors`; matrices are (out, in).

    Raises:
        UnknownNameError: There is no such variant.
    """
    kind = variant(name)
    shapes: dict[str, tuple[int, ...]] = {}
    if kind.history != "none":
        shapes |= _chain("history.body", (HISTORY_SIZE, *HISTORY_HIDDEN, LATENT))
        shapes |= {"history.estimate.weight": (ESTIMATE, LATENT), "history.estimate.bias": (ESTIMATE,)}
    if kind.vision:
        shapes |= {f"vision.backbone.{key}": shape for key, shape in backbone_shapes().items()}
        shapes |= _chain("vision.head", (CLASSES + VISION_SIZE, *HEAD_HIDDEN, FEATURES))
    return shapes | _chain("command", (kind.command_input, *COMMAND_HIDDEN, COMMAND))


def parameter_count(name: str, block: str = "") -> int:
    """Numbers that are learnt, of a variant or of one block of it ("history", "vision.backbone", "vision.head", "command")."""
    return sum(prod(shape) for key, shape in tensor_shapes(name).items() if key.startswith(block))


def _chain(name: str, widths: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for number, (given, out) in enumerate(pairwise(widths)):
        shapes |= {f"{name}.{number}.weight": (out, given), f"{name}.{number}.bias": (out,)}
    return shapes
