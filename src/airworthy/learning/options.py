"""What the options of all trainings have in common: how they are checked and compared, where and for how long one runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from math import isfinite
from typing import Any

from airworthy.core.errors import AirworthyError

__all__ = ["COUNT_MAX", "SEED_MAX", "TrainingOptions", "TrainingRunOptions"]

COUNT_MAX = 1_000_000_000
"""Of epochs, of rows in a minibatch, of minibatches."""
SEED_MAX = (1 << 63) - 1
THREADS_MAX = 1024
"""More than any machine has; torch would take memory for each before it asks whether there is so much."""


@dataclass(frozen=True)
class TrainingOptions:
    """What is learnt, and how: the fields are each training's own."""

    def differences(self, before: Mapping[str, Any]) -> list[str]:
        """Fields in which an earlier training differs, in words."""
        # An option that an earlier version did not have was at its default.
        now, then = asdict(self), {item.name: before.get(item.name, item.default) for item in fields(self)}
        return [f"{name} was {_told(then[name])}, not {_told(now[name])}" for name in now if then[name] != now[name]]

    def _check_within(self, name: str, least: float, most: float) -> None:
        if not least <= getattr(self, name) <= most:
            raise AirworthyError(f"The training has {name} {getattr(self, name)}; expected {least:,} to {most:,}.")

    def _check_rates(self, *names: str) -> None:
        for name in names:
            if not 0.0 < getattr(self, name) <= 1.0:
                raise AirworthyError(f"The training has {name} {getattr(self, name)}; expected above 0, up to 1.")

    def _check_shares(self, *names: str) -> None:
        for name in names:
            if not 0.0 <= getattr(self, name) < 1.0:
                raise AirworthyError(f"The training has {name} {getattr(self, name)}; expected 0 or more, below 1.")


def _told(value: Any) -> str:
    return "none" if value == "" else str(value)


@dataclass(frozen=True)
class TrainingRunOptions:
    """Where a training runs, and for how long; it can be stopped here and go on there.

    Raises:
        AirworthyError: If a number is out of range.
    """

    device: str = "auto"
    """cpu, cuda, cuda:1; auto: a GPU where there is one."""
    threads: int = 0
    """Of the CPU; 0: all it has. A training goes on with the number it began with."""
    checkpoint_minutes: float = 5.0
    """Between two checkpoints [min]."""
    minutes: float = 0.0
    """Stop after this long, with a checkpoint to go on from [min]; 0: when it is finished."""

    def __post_init__(self) -> None:
        if not 0 <= self.threads <= THREADS_MAX:
            raise AirworthyError(f"The training has {self.threads} threads; expected 0 to {THREADS_MAX:,}.")
        for name in ("checkpoint_minutes", "minutes"):
            if not (isfinite(getattr(self, name)) and getattr(self, name) >= 0.0):
                raise AirworthyError(f"The training has {name} {getattr(self, name)}; expected 0 or more.")
