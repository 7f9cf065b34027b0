"""What came of a training, in a few numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["TrainedSvNet"]


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
        """A finished one.

        Raises:
            KeyError, TypeError, ValueError: The figures are not those of a training.
        """
        done = int(figures["minibatches"])
        return cls(folder, str(figures["variant"]), True, done, done, figures)
