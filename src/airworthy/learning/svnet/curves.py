"""Curves for TensorBoard, where they are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from airworthy.core.errors import AirworthyError

__all__ = ["Curves"]

_NAMES = ("train_loss", "held_out_loss", "rate", "ratio_error", "skipped")


class Curves:
    """A writer of event files; what a run that goes on had written already is written again.

    Args:
        folder: For the files.
        journal: Rows so far.

    Raises:
        AirworthyError: TensorBoard is not installed.
    """

    def __init__(self, folder: Path, journal: Sequence[Mapping[str, Any]] = ()):
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise AirworthyError("Curves for TensorBoard need its package: pip install 'airworthy[learn]'.") from error

        for old in folder.glob("events.out.tfevents.*"):
            old.unlink()
        self._writer: Any = SummaryWriter(str(folder))
        for row in journal:
            self.add(row)

    def __enter__(self) -> Curves:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def add(self, row: Mapping[str, Any]) -> None:
        """One epoch."""
        for name in _NAMES:
            if row.get(name) is not None:
                self._writer.add_scalar(f"{row['stage']}/{name}", row[name], row["epoch"])
        for name, value in zip(("thrust", "rate_x", "rate_y", "rate_z"), row.get("command_rms", ()), strict=False):
            self._writer.add_scalar(f"{row['stage']}/rms_{name}", value, row["epoch"])
        self._writer.flush()
