"""`dataset.json`: what a data set is and what it holds."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayU8
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import read_json, sha256_file, write_json
from airworthy.core.jobs.block_job import where_else
from airworthy.core.jobs.block_store import digest_of
from airworthy.learning.datasets.config import DATASET_FILE, IMAGES_FILE, SCHEMA_VERSION, SHARD_FILE, DatasetConfig, config_from

__all__ = [
    "Manifest",
    "ShardFacts",
    "clear_unfinished",
    "facts_of",
    "fault_of",
    "read_facts",
    "read_manifest",
    "remove_shard",
    "verify_shard",
    "write_images",
    "write_manifest",
    "write_shard",
]

# ---- A shard on disk: a folder that is whole or not there, and says what its files are --------------------------------------

# Ours: a shard's facts have some kilobytes; the folder may come from a stranger.
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
        """Return the entry as plain data."""
        files = {name: {"bytes": size, "sha256": digest} for name, (size, digest) in self.files.items()}
        counts = {"rollouts": self.rollouts, "kept": self.kept, "pairs": self.pairs}
        return {"name": self.name, "digest": self.digest, "course": self.course, **counts, "files": files}


def facts_of(value: Any, where: str) -> ShardFacts:
    """Return facts from what `described` gave.

    Raises:
        AssetError: They are not.
    """
    try:
        files = {str(name): (int(entry["bytes"]), str(entry["sha256"])) for name, entry in value["files"].items()}
        numbers = (int(value["rollouts"]), int(value["kept"]), int(value["pairs"]))
        facts = ShardFacts(str(value["name"]), str(value["digest"]), str(value["course"]), *numbers, files)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise AssetError(f"{where!r} does not describe a shard: {fault_of(error)}.") from error
    # A folder from a stranger must not make a reader open files elsewhere.
    if min(numbers) < 0 or any(name != os.path.basename(name) or name.startswith(".") for name in (facts.name, *files)):
        raise AssetError(f"{where!r} does not describe a shard: it has a negative count, or a name that leads elsewhere.")
    return facts


def fault_of(error: Exception) -> str:
    """Return what is wrong with a table that was read, in words."""
    if isinstance(error, KeyError) and error.args:
        return f"it lacks {error.args[0]!r}"
    return "one of its entries is not what it should be"


def read_facts(folder: Path) -> ShardFacts:
    """Return what a shard's folder says of itself.

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
            # A folder or a broken link of that name is another mistake than none.
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


def write_images(folder: Path, shape: tuple[int, ...], blocks: Iterable[ArrayU8]) -> str:
    """Write `images.npy` block by block; returns its SHA-256.

    Args:
        folder: Of the shard.
        shape: Of the whole array, (images, H, W, 3).
        blocks: Images in order, which together have that shape.
    """
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


# -----------------------------------------------------------------------------------------------------------------------------

# Ours: bounds what a stranger's manifest makes a reader parse.
_SIZE_MAX = 64 << 20


@dataclass(frozen=True)
class Manifest:
    """Content of `dataset.json`."""

    identity: Mapping[str, Any]
    """Everything the bytes depend on; see `identity`."""
    digest: str
    """SHA-256 of that."""
    shard_count: int
    shards: tuple[ShardFacts, ...]
    """Those that are finished, in order; the last of each course is held out."""
    config: DatasetConfig

    @property
    def complete(self) -> bool:
        """Whether every shard is finished."""
        return len(self.shards) == self.shard_count

    @property
    def camera(self) -> Mapping[str, Any] | None:
        """Size, intrinsics and mount of the camera; None: there are no images."""
        found: Mapping[str, Any] | None = self.identity["camera"]
        return found


def write_manifest(
    folder: Path,
    identity: Mapping[str, Any],
    objectives: Mapping[str, Sequence[float]],
    shards: Sequence[ShardFacts],
    count: int,
) -> Path:
    """Write it.

    Args:
        folder: Of the data set.
        identity: See `identity`.
        objectives: What a policy is told of each course, (18,), z up.
        shards: Those that are finished, in order.
        count: How many there are to be.
    """
    content = {
        "schema_version": SCHEMA_VERSION,
        "digest": digest_of(identity),
        "identity": dict(identity),
        "objectives": dict(objectives),
        "complete": len(shards) == count,
        "shard_count": count,
        **_totals(shards),
        "shards": [item.described() for item in shards],
    }
    return write_json(folder / DATASET_FILE, content)


def _totals(shards: Sequence[ShardFacts]) -> dict[str, int]:
    return {name: sum(getattr(item, name) for item in shards) for name in ("rollouts", "kept", "pairs")}


def read_manifest(folder: Path) -> tuple[Manifest, dict[str, list[float]]]:
    """Read it, and what a policy is told of each course.

    Raises:
        AssetError: There is none, or it is damaged or of another version.
    """
    path = folder / DATASET_FILE
    if not os.path.lexists(path):
        raise AssetError(where_else(folder, DATASET_FILE))
    content, where = read_json(path, _SIZE_MAX), str(path)
    if not isinstance(content, dict) or content.get("schema_version") != SCHEMA_VERSION:
        found = content.get("schema_version") if isinstance(content, dict) else None
        raise AssetError(f"{where!r} has schema_version {found!r}; this version of Airworthy reads {SCHEMA_VERSION}.")
    try:
        identity, objectives = content["identity"], content["objectives"]
        config = config_from(identity["configuration"], where)
        shards = tuple(facts_of(item, where) for item in content["shards"])
        courses = {name: [float(value) for value in objectives[name]] for name in config.courses}
        manifest = Manifest(identity, str(content["digest"]), int(content["shard_count"]), shards, config)
        totals = {**_totals(shards), "complete": manifest.complete}
        damaged = any(content[name] != value for name, value in totals.items())
        damaged |= manifest.digest != digest_of(identity) or any(len(values) != 18 for values in courses.values())
        damaged |= not isinstance(identity["camera"], dict | None) or (identity["camera"] is None) is config.pictured
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise AssetError(f"{where!r} does not describe a data set: {fault_of(error)}.") from error
    if damaged or any(item.digest != manifest.digest for item in shards):
        raise AssetError(f"{where!r} was edited or is damaged: its digest does not match what it says.")
    return manifest, courses
