"""Checkpoints of a training: tensors and a manifest that vouches for them, the last two kept."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.core.files import make_folder, read_bytes, read_json, sha256, write_bytes, write_json

__all__ = ["Checkpoint", "Checkpoints"]

_KEPT = 2
_MOST_BYTES = 1 << 36
_NAME = re.compile(r"step_(\d{8})\.json")


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A training at one step."""

    step: int
    """Steps done."""
    arrays: dict[str, NDArray[Any]]
    notes: dict[str, Any]
    """What else is needed, as JSON: curves."""


class Checkpoints:
    """The checkpoints of one folder.

    Args:
        folder: Made where missing.
    """

    def __init__(self, folder: Path):
        self._folder = make_folder(folder)

    def save(self, checkpoint: Checkpoint, identity: dict[str, Any]) -> None:
        """Write one, and remove all but the last two.

        The manifest comes last: without it tensors count for nothing, whenever the process was killed.

        Args:
            checkpoint: What to keep.
            identity: Of the run: options, digest of the images; goes into the manifest.
        """
        from safetensors.numpy import save

        data = save({name: np.ascontiguousarray(array) for name, array in checkpoint.arrays.items()})
        stem = self._folder / f"step_{checkpoint.step:08d}"
        write_bytes(stem.with_suffix(".safetensors"), data)
        manifest = {"format": 1, "step": checkpoint.step, "sha256": sha256(data), "bytes": len(data)}
        # Everything random is a function of the seed and the step: that is the whole state of the generators.
        manifest |= {"random": {"seed": identity["options"]["seed"], "step": checkpoint.step}}
        write_json(stem.with_suffix(".json"), manifest | identity | {"notes": checkpoint.notes})
        for number in self._steps()[_KEPT:]:
            self._remove(number)

    def newest(self) -> Checkpoint | None:
        """The last that is whole; damaged ones are said on standard error."""
        for number in self._steps():
            try:
                return self._read(number)
            except (AirworthyError, KeyError, ValueError, TypeError, AttributeError) as reason:
                print(f"The checkpoint of step {number} is damaged ({reason}); the one before is taken.", file=sys.stderr)
        return None

    def clear(self) -> None:
        """Remove all."""
        for number in self._steps():
            self._remove(number)
        for left in self._folder.glob("step_*.safetensors"):
            left.unlink(missing_ok=True)
        if not any(self._folder.iterdir()):
            self._folder.rmdir()

    def _read(self, number: int) -> Checkpoint:
        from safetensors import SafetensorError
        from safetensors.numpy import load

        stem = self._folder / f"step_{number:08d}"
        manifest = read_json(stem.with_suffix(".json"))
        data = read_bytes(stem.with_suffix(".safetensors"), _MOST_BYTES)
        if len(data) != manifest["bytes"] or sha256(data) != manifest["sha256"] or manifest["step"] != number:
            raise AirworthyError("its tensors are not those that were written")
        try:
            return Checkpoint(number, load(data), dict(manifest["notes"]))
        except (SafetensorError, json.JSONDecodeError) as reason:
            raise AirworthyError(f"its tensors cannot be read: {reason}") from reason

    def _remove(self, number: int) -> None:
        stem = self._folder / f"step_{number:08d}"
        # The manifest first, for the reason above.
        stem.with_suffix(".json").unlink(missing_ok=True)
        stem.with_suffix(".safetensors").unlink(missing_ok=True)

    def _steps(self) -> list[int]:
        """Newest first."""

        def numbers() -> Iterator[int]:
            for path in self._folder.iterdir():
                match = _NAME.fullmatch(path.name)
                if match:
                    yield int(match[1])

        return sorted(numbers(), reverse=True)
