"""From the search's labels to the rows that are learnt from. NumPy alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError
from airworthy.learning.boundary.options import BoundaryOptions
from airworthy.learning.boundary.reading import read_labels
from airworthy.learning.boundary.table import LabelTable

__all__ = ["LabelTable", "Part", "Rows", "read_labels", "rows_of", "split_shares"]

Array = NDArray[np.float64]
Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
TRAIN_SHARE, WATCHED_SHARE = 0.92, 0.04


@dataclass(frozen=True, eq=False)
class Part:
    """Some rows in physical units."""

    situations: Array
    """(n, 8)"""
    labels: Array
    """(n, 2) speed [m/s] and time [s], as they were found: times are not clipped."""


@dataclass(frozen=True, eq=False)
class Rows:
    """What a training needs, scaled to [0, 1]."""

    inputs: Floats
    """(n, 8) learnt from."""
    labels: Floats
    """(n, 2)"""
    watched_inputs: Floats
    """(m, 8) whose loss ends the training."""
    watched_labels: Floats
    spans: Array
    """(8,) width of each input's range [m/s, m, rad]."""
    scales: tuple[float, float]
    """Speed and time at which the outputs end."""
    parts: Mapping[str, Part] = field(default_factory=dict)
    """"train", "watched" and "test" (the paper's split: the same rows are both)."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Rows by part, situations left out, labels clipped."""


def split_shares(index: ArrayLike) -> Array:
    """A number in [0, 1) of each row's number, the same in every training: splits do not depend on the order of rows.

    The mixing function of SplitMix64 (Steele, Lea and Flood, 2014), of which the upper 53 bits are taken.
    """
    x = np.asarray(index, np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((x ^ (x >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def rows_of(table: LabelTable, options: BoundaryOptions) -> Rows:
    """Split and scale labels.

    Situations without a label are left out, times beyond the output's end are clipped to it; both are counted.

    Raises:
        AirworthyError: A part has no rows, or the fastest label is beyond the output's end.
    """
    scales = (options.speed_max or table.speed_max, options.t_max or table.t_max)
    kept = table.feasible
    fastest = float(table.labels[kept, 0].max(initial=0.0))
    if fastest > scales[0]:
        raise AirworthyError(
            f"The labels have speeds up to {fastest:g} m/s, the outputs end at {scales[0]:g}: give --speed-max {fastest:g}."
        )
    share = split_shares(table.index)
    ends = {"train": (0.0, TRAIN_SHARE), "watched": (TRAIN_SHARE, TRAIN_SHARE + WATCHED_SHARE)}
    ends["test"] = (TRAIN_SHARE + WATCHED_SHARE, 1.0)
    if options.split == "paper":
        ends["watched"] = ends["test"] = (TRAIN_SHARE, 1.0)
    which = {name: kept & (share >= low) & (share < high) for name, (low, high) in ends.items()}
    parts = {name: Part(table.situations[mine], table.labels[mine]) for name, mine in which.items()}
    for name, part in parts.items():
        if not len(part.labels):
            raise AirworthyError(
                f"There are no labelled situations to {_PURPOSE[name]}: the labels have {int(kept.sum()):,} in all."
            )
    counts = {name: len(part.labels) for name, part in parts.items()}
    counts |= {"situations": len(kept), "infeasible": int(np.count_nonzero(~kept))}
    counts["clipped"] = int(np.count_nonzero(table.labels[kept, 1] > scales[1]))
    scaled = [_scaled(parts[name], table.ranges, scales) for name in ("train", "watched")]
    (x, y), (wx, wy) = scaled
    return Rows(x, y, wx, wy, table.ranges[:, 1] - table.ranges[:, 0], scales, parts, counts)


_PURPOSE = {"train": "learn from", "watched": "watch", "test": "test with"}


def _scaled(part: Part, ranges: Array, scales: tuple[float, float]) -> tuple[Floats, Floats]:
    inputs = (part.situations - ranges[:, 0]) / (ranges[:, 1] - ranges[:, 0])
    labels = np.minimum(part.labels, scales) / np.asarray(scales)
    return inputs.astype(np.float32), labels.astype(np.float32)
