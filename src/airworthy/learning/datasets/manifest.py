"""`dataset.json`: what a data set is and what it holds."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airworthy.core.errors import AssetError
from airworthy.core.files import read_json, write_json
from airworthy.evaluation.folder_kinds import where_else
from airworthy.learning.datasets.config import DatasetConfig, config_from
from airworthy.learning.datasets.identity import digest_of
from airworthy.learning.datasets.layout import DATASET_FILE, SCHEMA_VERSION
from airworthy.learning.datasets.shard_files import ShardFacts, facts_of, fault_of

__all__ = ["Manifest", "read_manifest", "write_manifest"]

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
        "digest": digest_of(dict(identity)),
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
