"""Places that a policy learns in: the expert's data of each, and which of them a round is flown in."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayF32, ArrayInt
from airworthy.core.errors import AirworthyError
from airworthy.core.files import sha256
from airworthy.core.jobs.progress import progress
from airworthy.learning.datasets import ExpertDataset
from airworthy.learning.datasets.config import DatasetConfig
from airworthy.learning.datasets.job import synthesize_dataset
from airworthy.learning.datasets.place_check import check_place
from airworthy.learning.svnet.data import TrainingData, training_data
from airworthy.learning.visuomotor.config import DATA_FOLDER, VisuomotorOptions
from airworthy.learning.visuomotor.features import VARIANT
from airworthy.pilots.svnet.variants import variant
from airworthy.scenes import scene

__all__ = ["Shown", "expert_data", "flown_in", "joined_numbers"]

_HELD_OUT = 20
"""Of roll-outs in several places every so many-th is held out from the history network; ours."""
_FLOWN_TOGETHER = 2
"""Flights of a block where there are more places than a round can visit; ours: building a place costs about a flight."""

Stop = tuple[str, str]
"""A course, and the place that it is flown in."""


@dataclass(frozen=True, eq=False)
class Shown:
    """What the expert shows in a place."""

    data: TrainingData
    position: ArrayF32
    """(k, 3) true, world [m]."""


def expert_data(
    options: VisuomotorOptions, folder: Path, seconds: float, quiet: bool, alive: Callable[[], None] = lambda: None
) -> tuple[list[Shown], int]:
    """Make what the expert shows, or read it where it lies already.

    Args:
        options: Of the training.
        folder: Of the training.
        seconds: Of all courses together.
        quiet: Say nothing.
        alive: Called now and then; what it raises ends the work, and what is made stays.

    Returns:
        A part per place, with its images, and how many roll-outs were kept.

    Raises:
        AirworthyError: A course leads into something of a place; looked at in all places before anything is made.
        KeyboardInterrupt: It was asked to stop; what is made stays.
    """
    configs = [options.dataset(seconds, name) for name in options.places]
    if len(configs) == 1:
        data: Any = _made(configs[0], folder / DATA_FOLDER, quiet, alive)
        return [Shown(training_data(data, variant(VARIANT)), _positions(data))], int(data.flown["kept"].sum())
    for config in progress(configs, "Looking at courses in places", quiet=quiet):
        check_place(config, scene(config.scene), "refuse")
    parts, first, kept = [], 0, 0
    for number, config in enumerate(progress(configs, "Flying the expert in places", quiet=quiet)):
        made = _made(config, folder / DATA_FOLDER / f"place_{number:04d}", True, alive)
        parts.append(Shown(_part(made, first), _positions(made)))
        first, kept = first + made.rollouts, kept + int(made.flown["kept"].sum())
    if not any(len(part.data.held_out) for part in parts):
        raise AirworthyError(
            f"The expert's roll-outs in {len(configs)} places are {first}, of which none is left to judge the history network"
            f" by; expected at least {_HELD_OUT}: allow more --minutes."
        )
    return parts, kept


def joined_numbers(parts: Sequence[TrainingData]) -> TrainingData:
    """Return the numbers of all parts as one, without images."""
    if len(parts) == 1:
        return replace(parts[0], images=None)
    offsets = np.cumsum([0, *(len(part.state) for part in parts)])
    rows: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("state", "objective", "history", "command", "parameters", "course", "ticks")
    }
    split = {
        name: np.concatenate([getattr(part, name) + offset for part, offset in zip(parts, offsets, strict=False)])
        for name in ("train", "held_out")
    }
    digest = sha256("".join(part.digest for part in parts))
    return TrainingData(**rows, **split, images=None, digest=digest, setting=parts[0].setting)


def flown_in(options: VisuomotorOptions, number: int) -> tuple[list[Stop], int]:
    """Return where a round is flown, by each family alike, and how many flights there are of a family at each stop.

    Every course is flown in every place where a round has flights enough; else rounds take turns through all of them.

    Args:
        options: Of the training.
        number: Of the round, from 1.
    """
    stops = [(course, place) for course in options.course for place in options.places]
    half = options.round_flights // 2
    if len(options.places) == 1 or len(stops) <= half:
        return stops, math.ceil(half / len(stops))
    together = min(_FLOWN_TOGETHER, half)
    count = half // together
    order = np.random.default_rng([options.seed, 17]).permutation(len(stops))
    chosen = (np.arange(count) + (number - 1) * count) % len(stops)
    return [stops[k] for k in order[chosen]], together


def _made(config: DatasetConfig, folder: Path, quiet: bool, alive: Callable[[], None]) -> ExpertDataset:
    if synthesize_dataset(config, folder, quiet=quiet, alive=alive).interrupted:
        raise KeyboardInterrupt
    return ExpertDataset.open(folder)


def _positions(pairs: ExpertDataset) -> ArrayF32:
    # Behind the time.
    return np.asarray(pairs.true[:, 1:4], np.float32)


class _Whole:
    """A data set that is learnt from whole: its own split holds out its last shard, and a place may have one alone."""

    def __init__(self, pairs: Any):
        self._pairs = pairs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pairs, name)

    def split(self, course: str | None = None) -> tuple[ArrayInt, ArrayInt]:
        """Return all pairs, twice."""
        return (np.arange(self._pairs.count),) * 2


def _part(pairs: ExpertDataset, first: int) -> TrainingData:
    """Return what a place gave; `first` is the number of its first roll-out among those of all places."""
    if not pairs.count:
        raise AirworthyError(f"None of the expert's roll-outs in {str(pairs.folder)!r} was kept: see its card.html.")
    whole: Any = _Whole(pairs)
    data = training_data(whole, variant(VARIANT))
    held = (np.asarray(pairs.rollout) + first) % _HELD_OUT == _HELD_OUT - 1
    return replace(data, train=np.flatnonzero(~held), held_out=np.flatnonzero(held))
