"""Data sets as those read them who train."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AssetError, unknown_name
from airworthy.learning.datasets.columns import Columns, read_columns
from airworthy.learning.datasets.config import DatasetConfig
from airworthy.learning.datasets.images import ImageStack
from airworthy.learning.datasets.layout import (
    COMMAND_COLUMNS,
    IMAGES_FILE,
    PAIR_FIELDS,
    PAIRS_FILE,
    ROLLOUT_FIELDS,
    ROLLOUTS_FILE,
    STATE_COLUMNS,
)
from airworthy.learning.datasets.manifest import Manifest, read_manifest
from airworthy.learning.datasets.shard_files import ShardFacts, verify_shard

__all__ = ["ExpertDataset"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


class ExpertDataset:
    """A finished data set of expert roll-outs; made by `open`.

    Pairs are in the order of the files: shard by shard, roll-out by roll-out, tick by tick. World z up, body x forward, y left,
    z up; states are time on the course [s], position [m], velocity [m/s], quaternion x, y, z, w.
    """

    def __init__(
        self, folder: Path, manifest: Manifest, objectives: Mapping[str, Sequence[float]], shards: list[tuple[Columns, Columns]]
    ):
        self.folder, self._manifest = folder, manifest
        pairs = _joined([item[0] for item in shards], PAIR_FIELDS)
        self.flown: Columns = _joined([item[1] for item in shards], ROLLOUT_FIELDS)
        """Columns of `rollouts.parquet` of all roll-outs, also of those that were not kept."""
        kept = self.flown["kept"]
        self.number: Ints = self.flown["rollout"][kept]
        """(rollouts,) number of each roll-out that was kept."""
        names = np.array(manifest.config.courses)
        self.course: NDArray[np.str_] = names[self.flown["course"][kept]]
        """(rollouts,) name of its course."""
        self.start: Array = self.flown["start_s"][kept]
        """(rollouts,) time on the course at which it begins [s]."""
        self.parameters: Array = np.stack([self.flown["mass_kg"][kept], self.flown["rotor_force_N"][kept]], axis=1)
        """(rollouts, 2) mass [kg] and force of one rotor at full command [N]."""
        told = np.array([objectives[name] for name in manifest.config.courses])
        self.objective: Array = told[self.flown["course"][kept]]
        """(rollouts, 18) duration, displacement, velocities and quaternions of start and end of its course; z up."""
        self.sensed = _states(pairs, "sensed")
        """(pairs, 11) what is sensed."""
        self.true = _states(pairs, "true")
        """(pairs, 11) what is."""
        self.command: Array = np.stack([pairs[f"command_{name}"] for name in COMMAND_COLUMNS], axis=1).astype(np.float64)
        """(pairs, 4) share of full thrust in [0, 1], body rates [rad/s]."""
        self.tick: Ints = pairs["tick"].astype(np.int64)
        """(pairs,) in its roll-out."""
        ticks = manifest.config.ticks
        self.rollout: Ints = np.repeat(np.arange(len(self.number)), ticks)
        """(pairs,) index into what is per roll-out."""
        self._shard = np.repeat(np.arange(len(manifest.shards)), [item.pairs for item in manifest.shards])
        fits = len(self._shard) == len(self.tick) == len(self.rollout) and np.array_equal(
            pairs["rollout"], self.number[self.rollout]
        )
        if not fits:
            raise AssetError(f"The shards of {str(folder)!r} hold other roll-outs than they say; make the data set again.")

    @classmethod
    def open(cls, folder: str | Path, verify: bool = True) -> ExpertDataset:
        """Read a data set's tables and map its images.

        Args:
            folder: Where it lies.
            verify: Compare every file with its checksum; False: tables only, and the sizes of images.

        Raises:
            AssetError: There is none, it is not finished, or a file is missing, truncated or changed.
        """
        where = Path(folder)
        manifest, objectives = read_manifest(where)
        if not manifest.complete:
            raise AssetError(
                f"The data set in {str(where)!r} is not finished: {len(manifest.shards)} of {manifest.shard_count} shards are"
                " there; run the command that made it again, which goes on from there."
            )
        shards = []
        for facts in manifest.shards:
            _verify(where / facts.name, facts if verify else _tables(facts))
            _verify(where / facts.name, facts, content=False)
            pairs = read_columns(where / facts.name / PAIRS_FILE, PAIR_FIELDS)
            shards.append((pairs, read_columns(where / facts.name / ROLLOUTS_FILE, ROLLOUT_FIELDS)))
        return cls(where, manifest, objectives, shards)

    @property
    def config(self) -> DatasetConfig:
        """What it was made of."""
        return self._manifest.config

    @property
    def digest(self) -> str:
        """SHA-256 of everything its bytes depend on."""
        return self._manifest.digest

    @property
    def identity(self) -> Mapping[str, Any]:
        """Everything its bytes depend on: configuration, versions, digests of scene, vehicle and courses."""
        return self._manifest.identity

    @property
    def camera(self) -> Mapping[str, Any] | None:
        """Of the images: `width`, `height`, `fx`, `fy`, `cx`, `cy` [px], mount; None: there are none."""
        return self._manifest.camera

    @property
    def shards(self) -> tuple[ShardFacts, ...]:
        """The shards, in order."""
        return self._manifest.shards

    @property
    def count(self) -> int:
        """Pairs."""
        return len(self.tick)

    @property
    def rollouts(self) -> int:
        """Roll-outs that were kept."""
        return len(self.number)

    @cached_property
    def images(self) -> ImageStack | None:
        """(pairs, H, W, 3), 8 bits, on disk; None: there are none."""
        if self.camera is None:
            return None
        shape = (int(self.camera["height"]), int(self.camera["width"]), 3)
        files = [(self.folder / item.name / IMAGES_FILE, item.pairs) for item in self.shards]
        return ImageStack(files, shape)

    def split(self, course: str | None = None) -> tuple[Ints, Ints]:
        """Indices of pairs to train on, and of those held out: the last shard of each course.

        Args:
            course: Of one course; None: of all.

        Raises:
            UnknownNameError: There is no such course in it.
        """
        if course is not None and course not in self.config.courses:
            raise unknown_name("course of this data set", course, self.config.courses)
        mine = np.array([course in (None, item.course) for item in self.shards], bool)
        last = {item.course: index for index, item in enumerate(self.shards)}
        held = np.array([last[item.course] == index for index, item in enumerate(self.shards)], bool)
        return np.flatnonzero((mine & ~held)[self._shard]), np.flatnonzero((mine & held)[self._shard])

    def of_rollouts(self, values: ArrayLike) -> NDArray[Any]:
        """What is per pair (pairs, ...) as (rollouts, ticks, ...)."""
        given = np.asarray(values)
        return given.reshape(self.rollouts, self.config.ticks, *given.shape[1:])


def _states(pairs: Columns, kind: str) -> Array:
    columns = [pairs["t_s"], *(pairs[f"{kind}_{name}"] for name in STATE_COLUMNS)]
    return np.stack(columns, axis=1).astype(np.float64)


def _joined(parts: list[Columns], fields: Mapping[str, type]) -> Columns:
    return {name: np.concatenate([part[name] for part in parts]) for name in fields}


def _verify(folder: Path, facts: ShardFacts, content: bool = True) -> None:
    try:
        verify_shard(folder, facts, content)
    except AssetError as error:
        raise AssetError(f"{error} The command that made the data set makes it again, with --repair.") from error


def _tables(facts: ShardFacts) -> ShardFacts:
    files = {name: known for name, known in facts.files.items() if name != IMAGES_FILE}
    return ShardFacts(facts.name, facts.digest, facts.course, facts.rollouts, facts.kept, facts.pairs, files)
