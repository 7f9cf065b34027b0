"""Data sets as those read them who train."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayInt, ArrayLike, ArrayU8, NDArray
from airworthy.core.errors import AssetError, unknown_name
from airworthy.learning.datasets.config import (
    COMMAND_COLUMNS,
    IMAGES_FILE,
    PAIR_FIELDS,
    PAIRS_FILE,
    ROLLOUT_FIELDS,
    ROLLOUTS_FILE,
    STATE_COLUMNS,
    VEHICLE_FILE,
    DatasetConfig,
    is_vehicle_file,
    vehicle_digest,
)
from airworthy.learning.datasets.shard_files import Manifest, ShardFacts, read_manifest, verify_shard
from airworthy.learning.datasets.shard_maker import Columns, read_columns
from airworthy.vehicles import Vehicle, named_vehicle, read_vehicle

__all__ = ["ExpertDataset", "ImageStack"]

# ---- Images of several files as one array on disk ---------------------------------------------------------------------------


class ImageStack:
    """Images (k, H, W, 3) of 8 bits, mapped into memory and read where they are asked for.

    It is indexed as an array's first axis is: by a number, a slice, or an array of numbers or of truth values.

    Args:
        files: Paths of `.npy` files, and how many images each has.
        shape: Of an image.

    Raises:
        AssetError: A file is not what it should be.
    """

    def __init__(self, files: Sequence[tuple[Path, int]], shape: tuple[int, int, int]):
        self._files, self._image = list(files), shape
        self._maps = [_mapped(path, (count, *shape)) for path, count in files]
        self._first = np.concatenate([[0], np.cumsum([count for _, count in files])]).astype(np.int64)
        self.shape = (int(self._first[-1]), *shape)
        self.dtype = np.dtype(np.uint8)

    def __reduce__(self) -> tuple[Any, ...]:
        # For a loader's worker processes: they map the files themselves, nothing is copied.
        return ImageStack, (self._files, self._image)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> ArrayU8:
        # NumPy itself makes numbers of whatever indexes an array, with its own errors.
        which = np.arange(len(self))[index]
        if which.ndim == 0:
            return self.take(which[None])[0]
        return self.take(which)

    def take(self, which: ArrayInt) -> ArrayU8:
        """Return images (n, H, W, 3) by their numbers (n,), copied; numbers in order are read fastest."""
        found = np.empty((len(which), *self.shape[1:]), np.uint8)
        owner = np.searchsorted(self._first, which, side="right") - 1
        # One read per file instead of one per image.
        for shard in np.unique(owner):
            mine = np.flatnonzero(owner == shard)
            found[mine] = self._maps[shard][which[mine] - self._first[shard]]
        return found


def _mapped(path: Path, shape: tuple[int, ...]) -> ArrayU8:
    # A file of no images cannot be mapped.
    if not shape[0]:
        return np.empty(shape, np.uint8)
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise AssetError(f"{str(path)!r} is not a file of images: {error}.") from error
    if not isinstance(found, np.ndarray) or found.shape != shape or found.dtype != np.uint8:
        raise AssetError(f"{str(path)!r} does not hold {shape[0]} images of {shape[2]} x {shape[1]} pixels in 8 bits.")
    return found


# -----------------------------------------------------------------------------------------------------------------------------


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
        self.number: ArrayInt = self.flown["rollout"][kept]
        """(rollouts,) number of each roll-out that was kept."""
        names = np.array(manifest.config.courses)
        self.course: NDArray[np.str_] = names[self.flown["course"][kept]]
        """(rollouts,) name of its course."""
        self.start: Array = self.flown["start_s"][kept]
        """(rollouts,) time on the course at which it begins [s]."""
        self.parameters: Array = np.stack([self.flown["mass_kg"][kept], self.flown["rotor_force_N"][kept]], axis=1)
        """(rollouts, 2) mass [kg] and force of one rotor at full command [N]."""
        # One per course in the folder, one per roll-out here: pairs find theirs by `rollout`.
        by_course = np.array([objectives[name] for name in manifest.config.courses])
        self.objective: Array = by_course[self.flown["course"][kept]]
        """(rollouts, 18) duration, displacement, velocities and quaternions of start and end of its course; z up."""
        self.sensed = _states(pairs, "sensed")
        """(pairs, 11) what is sensed."""
        self.true = _states(pairs, "true")
        """(pairs, 11) what is."""
        self.command: Array = np.stack([pairs[f"command_{name}"] for name in COMMAND_COLUMNS], axis=1).astype(np.float64)
        """(pairs, 4) share of full thrust in [0, 1], body rates [rad/s]."""
        self.tick: ArrayInt = pairs["tick"].astype(np.int64)
        """(pairs,) in its roll-out."""
        ticks = manifest.config.ticks
        self.rollout: ArrayInt = np.repeat(np.arange(len(self.number)), ticks)
        """(pairs,) index into what is per roll-out."""
        self._shard = np.repeat(np.arange(len(manifest.shards)), [item.pairs for item in manifest.shards])
        # Each file may be sound and still belong to another run: what they say of each other must agree.
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
            # Sizes of all files, also of images that are not summed: a truncated one would only show amid training.
            _verify(where / facts.name, facts, content=False)
            pairs = read_columns(where / facts.name / PAIRS_FILE, PAIR_FIELDS)
            shards.append((pairs, read_columns(where / facts.name / ROLLOUTS_FILE, ROLLOUT_FIELDS)))
        return cls(where, manifest, objectives, shards)

    @property
    def config(self) -> DatasetConfig:
        """What it was made of."""
        return self._manifest.config

    @cached_property
    def vehicle(self) -> Vehicle:
        """What was flown: of the catalogue, or the copy of its file.

        Raises:
            AssetError: The copy was changed after the data were made.
        """
        # A vehicle of the catalogue is fixed by the version; a file may have changed or gone, so a copy was kept.
        if not is_vehicle_file(self.config):
            return named_vehicle(self.config.vehicle)
        kept = read_vehicle(self.folder / VEHICLE_FILE)
        if vehicle_digest(kept) != self.identity["vehicle_sha256"]:
            raise AssetError(
                f"{str(self.folder / VEHICLE_FILE)!r} is not the vehicle that was flown: it was changed afterwards."
            )
        return kept

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

    def split(self, course: str | None = None) -> tuple[ArrayInt, ArrayInt]:
        """Return indices of pairs to train on, and of those held out: the last shard of each course.

        Args:
            course: Of one course; None: of all.

        Raises:
            UnknownNameError: There is no such course in it.
        """
        if course is not None and course not in self.config.courses:
            raise unknown_name("course of this data set", course, self.config.courses)
        mine = np.array([course in (None, item.course) for item in self.shards], bool)
        last = {item.course: index for index, item in enumerate(self.shards)}
        # Whole shards: no roll-out has pairs on both sides, for neighbouring ticks are all but the same.
        held = np.array([last[item.course] == index for index, item in enumerate(self.shards)], bool)
        return np.flatnonzero((mine & ~held)[self._shard]), np.flatnonzero((mine & held)[self._shard])

    def of_rollouts(self, values: ArrayLike) -> ArrayAny:
        """Return what is per pair (pairs, ...) as (rollouts, ticks, ...)."""
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
