"""What came of a training, in a few numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["TrainedBoundary"]


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
        """A finished one.

        Raises:
            KeyError, TypeError, ValueError: The figures are not those of a training.
        """
        return cls(folder, True, int(figures["epochs"]), figures)
