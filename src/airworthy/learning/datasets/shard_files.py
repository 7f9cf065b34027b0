"""A shard on disk: a folder that is whole or not there, and says what its files are."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import read_json, sha256_file, write_json
from airworthy.learning.datasets.layout import IMAGES_FILE, SHARD_FILE

__all__ = [
    "ShardFacts",
    "clear_unfinished",
    "facts_of",
    "fault_of",
    "read_facts",
    "remove_shard",
    "verify_shard",
    "write_images",
    "write_shard",
]

_FACTS_MAX = 1 << 20


@dataclass(frozen=True)
class ShardFacts:
    """Content of `shard.json`."""

    name: str
    digest: str
    """Of what the data set is; shards of another one do not belong here."""
    course: str
    rollouts: int
    kept: int
    pairs: int
    files: Mapping[str, tuple[int, str]]
    """Bytes and SHA-256 of each file."""

    def described(self) -> dict[str, Any]:
        """As plain data."""
        files = {name: {"bytes": size, "sha256": digest} for name, (size, digest) in self.files.items()}
        counts = {"rollouts": self.rollouts, "kept": self.kept, "pairs": self.pairs}
        return {"name": self.name, "digest": self.digest, "course": self.course, **counts, "files": files}


def facts_of(value: Any, where: str) -> ShardFacts:
    """Facts from what `described` gave.

    Raises:
        AssetError: They are not.
    """
    try:
        files = {str(name): (int(entry["bytes"]), str(entry["sha256"])) for name, entry in value["files"].items()}
        numbers = (int(value["rollouts"]), int(value["kept"]), int(value["pairs"]))
        facts = ShardFacts(str(value["name"]), str(value["digest"]), str(value["course"]), *numbers, files)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise AssetError(f"{where!r} does not describe a shard: {fault_of(error)}.") from error
    if min(numbers) < 0 or any(name != os.path.basename(name) or name.startswith(".") for name in (facts.name, *files)):
        raise AssetError(f"{where!r} does not describe a shard: it has a negative count, or a name that leads elsewhere.")
    return facts


def fault_of(error: Exception) -> str:
    """What is wrong with a table that was read, in words."""
    if isinstance(error, KeyError) and error.args:
        return f"it lacks {error.args[0]!r}"
    return "one of its entries is not what it should be"


def read_facts(folder: Path) -> ShardFacts:
    """What a shard's folder says of itself.

    Raises:
        AssetError: It says nothing that can be read.
    """
    path = folder / SHARD_FILE
    return facts_of(read_json(path, _FACTS_MAX), str(path))


def verify_shard(folder: Path, facts: ShardFacts, content: bool = True) -> None:
    """Compare a shard's files with what is known of them.

    Args:
        folder: Of the shard.
        facts: What is known.
        content: Compare checksums; False: sizes only.

    Raises:
        AssetError: A file is missing, truncated or changed.
    """
    for name, (size, digest) in facts.files.items():
        path = folder / name
        if not path.is_file():
            how = "is no file" if os.path.lexists(path) else "is missing"
            raise AssetError(f"{str(path)!r} {how}: the shard is damaged.")
        if path.stat().st_size != size:
            raise AssetError(f"{str(path)!r} has {path.stat().st_size:,} bytes instead of {size:,}: the shard is damaged.")
        if content and sha256_file(path) != digest:
            raise AssetError(f"{str(path)!r} has changed since it was written (other SHA-256): the shard is damaged.")


def write_shard(
    target: Path, fill: Callable[[Path], Mapping[str, str]], facts: Callable[[dict[str, tuple[int, str]]], ShardFacts]
) -> ShardFacts:
    """Write a shard's folder, all or nothing.

    Args:
        target: The folder to be.
        fill: Writes the files into a folder of another name; may return SHA-256 of some of them by name.
        facts: Makes what is known of the shard from its files' bytes and SHA-256.

    Raises:
        AirworthyError: The file system refused; nothing is left of the shard.
    """
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        temporary.mkdir()
        known = fill(temporary)
        files = {path.name: (path.stat().st_size, known.get(path.name) or sha256_file(path)) for path in _listed(temporary)}
        found = facts(files)
        for name in files:
            _sync(temporary / name)
        write_json(temporary / SHARD_FILE, found.described())
        _rename(temporary, target)
    except OSError as error:
        raise AirworthyError(
            f"Could not write {str(target)!r}: {error.strerror or error}; finished shards are kept, and the same command"
            " goes on from there."
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return found


def write_images(folder: Path, shape: tuple[int, ...], blocks: Iterable[NDArray[np.uint8]]) -> str:
    """Write `images.npy` block by block; returns its SHA-256."""
    with open(folder / IMAGES_FILE, "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
        file.flush()
        held = hashlib.sha256((folder / IMAGES_FILE).read_bytes())
        count = 0
        for block in blocks:
            view = np.ascontiguousarray(block).data.cast("B")
            file.write(view)
            held.update(view)
            count += len(block)
    assert count == shape[0]
    return held.hexdigest()


def clear_unfinished(folder: Path) -> None:
    """Remove what runs left that were killed; the caller holds the folder's lock."""
    for path in folder.glob(".shard_*.tmp"):
        shutil.rmtree(path, ignore_errors=True)


def remove_shard(folder: Path) -> None:
    """Remove a shard's folder, or whatever has its name.

    Raises:
        AirworthyError: The file system refused.
    """
    try:
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder)
        else:
            folder.unlink()
    except OSError as error:
        raise AirworthyError(f"Could not remove {str(folder)!r}: {error.strerror or error}.") from error


def _listed(folder: Path) -> Iterator[Path]:
    return iter(sorted(folder.iterdir()))


def _rename(temporary: Path, target: Path) -> None:
    _sync(temporary)
    try:
        os.rename(temporary, target)
    except OSError:
        # A worker whose run was killed may have finished the same shard meanwhile: its bytes are ours.
        if not target.is_dir():
            raise
        verify_shard(target, read_facts(target))
    _sync(target.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        # Some network and FUSE file systems cannot synchronise folders.
        with contextlib.suppress(OSError) if path.is_dir() else contextlib.nullcontext():
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
