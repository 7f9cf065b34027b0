"""What is chosen for a training, what is not part of it (where and how long it runs), and what comes of it. Without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from airworthy.core.errors import AirworthyError
from airworthy.core.idle_options import IdleRule
from airworthy.core.schema import check_fields
from airworthy.gates.planner.network import Skew
from airworthy.learning.machine import COUNT_MAX, SEED_MAX, TrainingOptions, TrainingRunOptions

__all__ = ["IDLE_RULES", "BoundaryOptions", "BoundaryRunOptions", "TrainedBoundary"]


@dataclass(frozen=True)
class BoundaryOptions(TrainingOptions):
    """A training; defaults are the published values, and ours where nothing was published (marked).

    Raises:
        AirworthyError: If a number is out of range.
    """

    # Source of the defaults: the table of hyperparameters in spec/boundary_predictor section 7; what is ours says so.
    epochs: int = 1000
    """At most."""
    patience: int = 100
    """Epochs without a lower loss of the rows that are watched, after which it ends; 0: it does not."""
    batch: int = 1280
    """Rows per minibatch."""
    rate: float = 0.01
    """Adam's step at first."""
    rate_step: int = 50
    """Epochs after which the step is made smaller, again and again."""
    gamma: float = 0.8
    """By this factor."""
    safe: float = 0.8
    """W_S of the loss: weight of safe errors, too slow or too long."""
    unsafe: float = 2.0
    """W_U: weight of unsafe errors; --safe 1 --unsafe 1 is the symmetric loss."""
    alpha: float = 10.0
    """Steepness of the change between the two."""
    eps: float = 0.1
    """Added to a label before it divides, scaled as the outputs are (ours): 0.1 is 0.2 m/s and 0.2 s."""
    noise: float = 0.1
    """B of the input noise B u n, u uniform in (0, 1) by row and n normal by field, drawn anew each epoch."""
    noise_on: Literal["scaled", "physical"] = "scaled"
    """Whether it is added to inputs scaled to [0, 1] (ours), or to metres, radians and metres per second."""
    dropout: float = 0.1
    """Share of numbers dropped behind the second and the third layer (ours)."""
    speed_max: float = 0.0
    """Speed at which the output ends [m/s]; 0: the fastest candidate of the search, 2 as published."""
    t_max: float = 0.0
    """Time at which the output ends [s]; longer labels are clipped to it, and counted; 0: the search's, 2 as published."""
    split: Literal["ours", "paper"] = "ours"
    """ours: 92 % to train, 4 % to watch for its end, 4 % touched by nothing; paper: 92 % to train, 8 % for both of these."""
    keep: Literal["best", "last"] = "best"
    """Which weights are written: those of the lowest loss of the rows that are watched, or of the last epoch."""
    seed: int = 0
    """Of the weights, of the order of the rows, of noise and dropout; the split does not depend on it."""

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("epochs", "batch", "rate_step"):
            self._check_within(name, 1, COUNT_MAX)
        for name, most in (("patience", COUNT_MAX), ("noise", 100), ("seed", SEED_MAX), ("speed_max", 1e3), ("t_max", 1e3)):
            self._check_within(name, 0, most)
        self._check_rates("rate", "gamma")
        self._check_shares("dropout")
        for name, known in (("noise_on", ("scaled", "physical")), ("split", ("ours", "paper")), ("keep", ("best", "last"))):
            if getattr(self, name) not in known:
                raise AirworthyError(f"{name} is {getattr(self, name)!r}; expected {known[0]!r} or {known[1]!r}.")
        _ = self.skew

    @property
    def skew(self) -> Skew:
        """Numbers of the loss."""
        return Skew(self.safe, self.unsafe, self.alpha, self.eps)

    def rate_of(self, epoch: int) -> float:
        """Return Adam's step in an epoch, counted from 0."""
        # 0.01 * 0.8^19 = 1.4e-4 in the last fifty epochs.
        return float(self.rate * self.gamma ** (epoch // self.rate_step))


IDLE_RULES = (
    IdleRule(
        ("alpha",),
        lambda options: options.safe == options.unsafe,
        "where --safe and --unsafe are equal, which is the symmetric loss",
    ),
    IdleRule(("noise_on",), lambda options: options.noise == 0.0, "with --noise 0", "give some noise"),
    IdleRule(
        ("rate_step", "gamma"),
        lambda options: options.rate_step >= options.epochs,
        "where --rate-step is not reached within --epochs",
        "make it shorter",
    ),
    IdleRule(
        ("rate_step",), lambda options: options.gamma == 1.0, "with --gamma 1, which keeps the rate", "choose a smaller one"
    ),
)
"""Options that change nothing beside the others."""


@dataclass(frozen=True)
class BoundaryRunOptions(TrainingRunOptions):
    """Where a training runs, and for how long; it can be stopped here and go on there.

    Raises:
        AirworthyError: If a number is out of range.
    """

    checkpoint_minutes: float = 2.0
    """Between two checkpoints [min]."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self)


@dataclass(frozen=True)
class TrainedBoundary:
    """A network's folder."""

    folder: Path
    """With `weights.safetensors`, `contract.json`, `report.html`, `training.jsonl`."""
    finished: bool
    """False: it was stopped after the minutes that it was given, and goes on from there."""
    epochs: int
    """Done."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """Content of `report.json`."""

    @classmethod
    def of(cls, folder: Path, figures: Mapping[str, Any]) -> TrainedBoundary:
        """Return a finished one.

        Raises:
            KeyError, TypeError, ValueError: The figures are not those of a training.
        """
        return cls(folder, True, int(figures["epochs"]), figures)
