"""What is chosen for a training, what is not part of it (where and how long it runs), and what comes of it. Without torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from airworthy.core.errors import AirworthyError
from airworthy.core.idle_options import IdleRule
from airworthy.core.schema import check_fields
from airworthy.learning.machine import COUNT_MAX, SEED_MAX, TrainingOptions, TrainingRunOptions
from airworthy.pilots.svnet.variants import Variant, variant

__all__ = ["IDLE_RULES", "RUN_RULES", "RunOptions", "SvNetOptions", "TrainedSvNet"]

# Ours; published: 224 (spec/sousvide section 7).
SIDE_MIN, SIDE_MAX = 17, 1024
"""Of images; the smallest leaves something after three poolings."""


@dataclass(frozen=True)
class SvNetOptions(TrainingOptions):
    """A training of SV-Net; defaults are the published values.

    Raises:
        AirworthyError: If a number is out of range or a name unknown.
    """

    variant: str = "sv_net"
    """sv_net, no_rma, no_pretrain, no_latent, hp_net, sv_grid, or sv_lite."""
    epochs: int = 200
    """Of the command step: image, feature and command networks learn the expert's commands."""
    history_epochs: int = 50
    """Of the history step: the history network learns the drone's parameters."""
    batch: int = 64
    """Pairs per minibatch of the command step."""
    history_batch: int = 64
    """Of the history step."""
    rate: float = 1e-4
    """Adam's step in the command step."""
    history_rate: float = 1e-4
    """In the history step."""
    schedule: Literal["constant", "cosine"] = "constant"
    """Of both rates over a step's epochs; cosine ends at zero."""
    warmup: int = 0
    """Minibatches over which the rates rise to their full size at first."""
    dropout: float = 0.2
    """Share of numbers dropped behind hidden layers of the feature and command networks."""
    history_dropout: float = 0.2
    """Of the history network."""
    form: Literal["paper", "code"] = "paper"
    """Of the history's position rows: dt v as the paper says, or v as the published code stores."""
    normalize: bool = False
    """Show the history network its numbers, and ask for its estimates, with their mean and spread taken off while it
    learns; the finished weights have both folded in."""
    clip: float = 0.0
    """Longest gradient of a minibatch; longer ones are shortened to it; 0: none are."""
    balance: bool = False
    """Weigh errors of thrust and rates by their spread in the data, instead of as they are."""
    view: int = 0
    """Side of the images the network sees [px], resized from those of the data; 0: as they are, full images at 224."""
    brightness: float = 0.0
    """Augmentation: the light of each image is scaled by up to this share, down or up."""
    image_noise: float = 0.0
    """Augmentation: standard deviation of each pixel's noise [counts of 255]."""
    paste: float = 0.0
    """Augmentation: share of images into which things are pasted that do not belong there, so that the network does not come to
    depend on any one of those that do."""
    weights: str = ""
    """SqueezeNet 1.1 to begin with, a .safetensors with torchvision's names; empty: random numbers."""
    start: str = ""
    """A policy to begin with, a folder or the name of a shipped one (hall): its image and command networks, and, with
    --history-epochs 0, its history network; empty: random numbers."""
    keep: Literal["best", "last"] = "best"
    """Which weights weights.safetensors holds: those of the lowest held-out loss (of the history network: of the lowest error
    of k/m), or of the last epoch."""
    judge_every: int = 1
    """Epochs between two looks at the held-out pairs."""
    skip_most: int = 100
    """Minibatches without finite numbers that are left out before the training stops."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of the image network; auto takes bfloat16 where the machine computes with it."""
    compile: Literal["none", "default", "reduce-overhead", "max-autotune"] = "none"
    """Mode of torch.compile for the command step."""
    seed: int = 0
    """Of the weights, of the order of the pairs, of dropout and of augmentation."""

    def __post_init__(self) -> None:
        check_fields(self)
        variant(self.variant)
        for name in ("epochs", "batch", "history_batch", "judge_every"):
            self._check_within(name, 1, COUNT_MAX)
        for name in ("history_epochs", "warmup", "skip_most"):
            self._check_within(name, 0, COUNT_MAX)
        for name, most in (("image_noise", 255), ("clip", COUNT_MAX), ("view", SIDE_MAX), ("seed", SEED_MAX)):
            self._check_within(name, 0, most)
        self._check_rates("rate", "history_rate")
        self._check_shares("dropout", "history_dropout", "brightness")
        if not 0.0 <= self.paste <= 1.0:
            raise AirworthyError(f"paste is {self.paste}; expected 0 to 1.")
        if self.start and self.weights:
            raise AirworthyError("--start and --weights are two beginnings of the image network; give one of them.")
        if self.view and not SIDE_MIN <= self.view <= SIDE_MAX:
            raise AirworthyError(f"view is {self.view} px; expected {SIDE_MIN} to {SIDE_MAX}, or 0.")


def _is(read: Callable[[Variant], bool]) -> Callable[[SvNetOptions], bool]:
    return lambda options: read(variant(options.variant))


IDLE_RULES = (
    IdleRule(
        ("form", "history_dropout"),
        _is(lambda kind: kind.history == "none"),
        "for a variant without a history network",
        "choose another --variant",
    ),
    IdleRule(
        ("history_epochs", "history_batch", "history_rate", "normalize"),
        _is(lambda kind: not kind.learns_history),
        "for a variant without a history step",
        "choose another --variant",
    ),
    IdleRule(
        ("history_batch", "history_rate", "history_dropout", "normalize"),
        lambda options: variant(options.variant).learns_history and options.history_epochs == 0,
        "with --history-epochs 0, which leaves the history step out",
        "give it epochs",
    ),
    IdleRule(
        ("view", "brightness", "image_noise", "paste", "weights", "precision"),
        _is(lambda kind: not kind.vision),
        "for a variant that sees no images",
        "choose another --variant",
    ),
)
"""Options that change nothing beside the others."""

RUN_RULES = (
    IdleRule(
        ("resident",),
        lambda run, options: not variant(options.variant).vision,
        "for a variant that sees no images",
        "choose another --variant",
    ),
)
"""The same of where a training runs; conditions are told the options, too."""


@dataclass(frozen=True)
class RunOptions(TrainingRunOptions):
    """Where a training runs, and for how long; it can be stopped here and go on there.

    Raises:
        AirworthyError: If a number is out of range.
    """

    resident: Literal["auto", "yes", "no"] = "auto"
    """Keep all images on the device; auto: on a GPU where they take less than half of its free memory."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self)


@dataclass(frozen=True)
class TrainedSvNet:
    """A policy's folder."""

    folder: Path
    """With `weights.safetensors`, `contract.json`, `report.html`, `training.jsonl`."""
    variant: str
    finished: bool
    """False: it was stopped after the minutes that it was given, and goes on from there."""
    minibatches: int
    """Done."""
    total: int
    figures: Mapping[str, Any] = field(default_factory=dict)
    """Content of `report.json`."""

    @classmethod
    def of(cls, folder: Path, figures: Mapping[str, Any]) -> TrainedSvNet:
        """Return a finished one.

        Raises:
            KeyError, TypeError, ValueError: The figures are not those of a training.
        """
        done = int(figures["minibatches"])
        return cls(folder, str(figures["variant"]), True, done, done, figures)
