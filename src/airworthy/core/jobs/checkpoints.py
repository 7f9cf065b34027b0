"""Checkpoints of long work: arrays, and a manifest that vouches for them and for itself; the last few are kept.

Two files make one: `step_000000120.safetensors` with the arrays, and after it `step_000000120.json`, the manifest: the version
of this layout, the number, size and SHA-256 of the arrays' file, what the run is, notes, and the SHA-256 of all that. Arrays
without a manifest count for nothing, whenever the process was killed; any bit that is not as it was written is found out.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayAny
from airworthy.core.errors import AirworthyError
from airworthy.core.files import (
    LIMIT_BYTES,
    json_text,
    make_folder,
    parse_json,
    read_bytes,
    read_text,
    sha256,
    write_bytes,
    write_text,
)

__all__ = ["SCHEMA_VERSION", "Checkpoint", "Checkpoints"]

SCHEMA_VERSION = 1
_ARRAYS, _MANIFEST, _SIGNED = ".safetensors", ".json", "manifest_sha256"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Work at one moment."""

    number: int
    """Steps done."""
    arrays: Mapping[str, ArrayAny]
    """By name, of any shape; bytes go as uint8."""
    notes: Mapping[str, Any]
    """What else the next step depends on, as JSON: states of generators, the journal so far."""


class Checkpoints:
    """The checkpoints of one folder, which one process uses at a time (`files.lock_folder`).

    Args:
        folder: Made where missing.
        counted: What numbers count, in messages.
        digits: Of a number in names of files.
        keep: How many stay.

    Raises:
        AirworthyError: The folder cannot be made.
    """

    def __init__(self, folder: Path, counted: str = "step", digits: int = 9, keep: int = 2):
        self._folder, self._counted, self._digits, self._keep = make_folder(folder), counted, digits, keep
        self._name = re.compile(rf"step_([0-9]{{{digits}}})(\{_MANIFEST}|\{_ARRAYS})")

    def save(self, checkpoint: Checkpoint, about: Mapping[str, Any]) -> None:
        """Write one, and remove all others but the last few before it; one of a higher number can only be damaged.

        Args:
            checkpoint: What to keep.
            about: The run: its options, data and machine; goes into the manifest.

        Raises:
            AirworthyError: The file system refused (full, read-only); checkpoints from before are as they were.
        """
        from safetensors.numpy import save

        self._sweep()
        data = save({name: np.asarray(array, order="C") for name, array in checkpoint.arrays.items()})
        # Arrays first: only the manifest makes them a checkpoint, so that a process killed in between leaves none that is half.
        write_bytes(self._path(checkpoint.number, _ARRAYS), data)
        vouched = {"schema_version": SCHEMA_VERSION, "number": checkpoint.number, "sha256": sha256(data), "bytes": len(data)}
        # Twice: once for its place at the head of the file, once so that nothing in `about` can take its names.
        manifest = {**vouched, **about, **vouched, "notes": dict(checkpoint.notes)}
        write_text(self._path(checkpoint.number, _MANIFEST), _text(manifest))
        before = [number for number in self._numbers() if number <= checkpoint.number]
        for number in set(self._numbers()) - set(before[: self._keep]):
            self._remove(number)

    def newest(self, restore: Callable[[Checkpoint], object] | None = None) -> Checkpoint | None:
        """Return the last that is whole, None where there is none; damaged ones are said on standard error.

        Args:
            restore: Called with it: what lies beside a checkpoint may be damaged, too, and then the one before is taken.

        Raises:
            AirworthyError: The folder cannot be read, or `restore` refuses all that are whole.
        """
        numbers = self._numbers()
        refused: AirworthyError | None = None
        for number in numbers:
            try:
                found = self._read(number)
                refused = _refusal(found, restore)
                if refused is None:
                    return found
                raise refused
            except AirworthyError as reason:
                if reason is refused and number == numbers[-1]:
                    break
                then = "there is none before it" if number == numbers[-1] else "the one before it is taken"
                said = f"The checkpoint of {self._counted} {number:,} is damaged ({str(reason).rstrip('.')}); {then}."
                print(said, file=sys.stderr)
        # Nothing is begun anew over a whole checkpoint: who has what lies beside it can put it back.
        if refused is not None:
            raise refused
        return None

    def clear(self) -> None:
        """Remove all, and the folder where nothing else is in it; raises AirworthyError where that is refused."""
        for number in self._numbers():
            self._remove(number)
        self._sweep()
        with self._refusals():
            if not any(self._folder.iterdir()):
                self._folder.rmdir()

    def _read(self, number: int) -> Checkpoint:
        from safetensors import SafetensorError
        from safetensors.numpy import load

        path = self._path(number, _MANIFEST)
        manifest = _checked(read_text(path, LIMIT_BYTES), path.name)
        size, digest, notes = (manifest.get(key) for key in ("bytes", "sha256", "notes"))
        if manifest.get("number") != number or not isinstance(size, int) or not isinstance(notes, dict):
            raise AirworthyError("its manifest is of another checkpoint")
        data = read_bytes(self._path(number, _ARRAYS), size)
        # Before they are parsed: a damaged file must not reach the decoder.
        if len(data) != size or sha256(data) != digest:
            raise AirworthyError("its arrays are not those that were written")
        try:
            return Checkpoint(number, load(data), notes)
        except SafetensorError as reason:
            raise AirworthyError(f"its arrays cannot be read: {reason}") from reason

    def _path(self, number: int, ending: str) -> Path:
        return self._folder / f"step_{number:0{self._digits}d}{ending}"

    def _numbers(self, ending: str = _MANIFEST) -> list[int]:
        """Of manifests, or of arrays, newest first."""
        with self._refusals():
            found = (self._name.fullmatch(path.name) for path in self._folder.iterdir())
            return sorted((int(match[1]) for match in found if match and match[2] == ending), reverse=True)

    def _remove(self, number: int) -> None:
        with self._refusals():
            # The manifest first: arrays alone count for nothing.
            self._path(number, _MANIFEST).unlink(missing_ok=True)
            self._path(number, _ARRAYS).unlink(missing_ok=True)

    def _sweep(self) -> None:
        """Remove what a killed process was writing: it would take the room of what is to be written."""
        for number in set(self._numbers(_ARRAYS)) - set(self._numbers()):
            self._remove(number)
        with self._refusals():
            for left in self._folder.glob(".step_*.tmp.*"):
                left.unlink(missing_ok=True)

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or error
            raise AirworthyError(f"Could not use the checkpoints in {str(self._folder)!r}: {reason}.") from error


def _refusal(found: Checkpoint, restore: Callable[[Checkpoint], object] | None) -> AirworthyError | None:
    """Restore a checkpoint; returns what it was refused with."""
    try:
        if restore is not None:
            restore(found)
    except AirworthyError as reason:
        return reason
    return None


def _text(manifest: Mapping[str, Any]) -> str:
    """Of a manifest's file, signed."""
    return json_text({_SIGNED: sha256(json_text(manifest)), **manifest})


def _checked(text: str, name: str) -> dict[str, Any]:
    """Return a manifest from the text of its file, which has this name.

    Trainings of splats begun before this layout have one of "format" 1, which vouches for the arrays, but not for itself.

    Raises:
        AirworthyError: It is not, to the bit, what was written, or of another version.
    """
    manifest = parse_json(text, name)
    if not isinstance(manifest, dict):
        raise AirworthyError("its manifest is not the one that was written")
    signed = manifest.pop(_SIGNED, None)
    if signed is None and "schema_version" not in manifest and manifest.get("format") == 1:
        return {**manifest, "number": manifest.get("step")}
    if text != _text(manifest):
        raise AirworthyError("its manifest is not the one that was written")
    if manifest.get("schema_version") != SCHEMA_VERSION:
        raise AirworthyError(f"it is of version {manifest.get('schema_version')}, this program reads {SCHEMA_VERSION}")
    return manifest
