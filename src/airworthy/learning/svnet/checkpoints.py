"""Checkpoints of a training: tensors and a manifest that vouches for them, the last two kept."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.core.files import json_text, make_folder, read_bytes, read_json, sha256, write_bytes, write_json

__all__ = ["Checkpoint", "Checkpoints"]

SCHEMA_VERSION = 1
_KEPT = 2
_MOST_BYTES = 1 << 32
_NAME = re.compile(r"step_(\d{9})\.json")


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A training at one moment."""

    number: int
    """Minibatches done, of both steps together."""
    arrays: Mapping[str, NDArray[Any]]
    """Weights, moments of the optimiser, the best weights so far."""
    notes: Mapping[str, Any]
    """What else the next minibatch depends on, and the journal, as JSON."""


class Checkpoints:
    """The checkpoints of one folder.

    Args:
        folder: Made where missing.
    """

    def __init__(self, folder: Path):
        self._folder = make_folder(folder)

    def save(self, checkpoint: Checkpoint, about: Mapping[str, Any]) -> None:
        """Write one, and remove all but the last two.

        The manifest comes last: without it tensors count for nothing, whenever the process was killed.

        Args:
            checkpoint: What to keep.
            about: The run: its options, data and machine; goes into the manifest.
        """
        from safetensors.numpy import save

        data = save({name: np.ascontiguousarray(array) for name, array in checkpoint.arrays.items()})
        stem = self._folder / f"step_{checkpoint.number:09d}"
        write_bytes(stem.with_suffix(".safetensors"), data)
        vouched = {"schema_version": SCHEMA_VERSION, "number": checkpoint.number, "sha256": sha256(data), "bytes": len(data)}
        manifest = {**vouched, **about, "notes": dict(checkpoint.notes)}
        write_json(stem.with_suffix(".json"), {"manifest_sha256": sha256(json_text(manifest)), **manifest})
        for number in self._numbers()[_KEPT:]:
            self._remove(number)
        self._sweep()

    def newest(self) -> Checkpoint | None:
        """The last that is whole; damaged ones are said on standard error."""
        for number in self._numbers():
            try:
                return self._read(number)
            except (AirworthyError, KeyError, ValueError, TypeError, AttributeError) as reason:
                said = f"The checkpoint of minibatch {number:,} is damaged ({reason}); the one before it is taken."
                print(said, file=sys.stderr)
        return None

    def clear(self) -> None:
        """Remove all."""
        for number in self._numbers():
            self._remove(number)
        self._sweep("step_*.safetensors")
        if not any(self._folder.iterdir()):
            self._folder.rmdir()

    def _read(self, number: int) -> Checkpoint:
        from safetensors import SafetensorError
        from safetensors.numpy import load

        stem = self._folder / f"step_{number:09d}"
        manifest = dict(read_json(stem.with_suffix(".json")))
        signed = manifest.pop("manifest_sha256")
        if sha256(json_text(manifest)) != signed:
            raise AirworthyError("its manifest is not the one that was written")
        if manifest["schema_version"] != SCHEMA_VERSION or manifest["number"] != number:
            raise AirworthyError("its manifest is of another version or another checkpoint")
        data = read_bytes(stem.with_suffix(".safetensors"), _MOST_BYTES)
        if len(data) != manifest["bytes"] or sha256(data) != manifest["sha256"]:
            raise AirworthyError("its tensors are not those that were written")
        try:
            return Checkpoint(number, load(data), dict(manifest["notes"]))
        except SafetensorError as reason:
            raise AirworthyError(f"its tensors cannot be read: {reason}") from reason

    def _sweep(self, more: str = "") -> None:
        """Remove what a killed process was writing."""
        for pattern in filter(None, (".step_*.tmp.*", more)):
            for left in self._folder.glob(pattern):
                left.unlink(missing_ok=True)

    def _remove(self, number: int) -> None:
        stem = self._folder / f"step_{number:09d}"
        # The manifest first, for the reason above.
        stem.with_suffix(".json").unlink(missing_ok=True)
        stem.with_suffix(".safetensors").unlink(missing_ok=True)

    def _numbers(self) -> list[int]:
        """Newest first."""

        def found() -> Iterator[int]:
            for path in self._folder.iterdir():
                match = _NAME.fullmatch(path.name)
                if match:
                    yield int(match[1])

        return sorted(found(), reverse=True)
