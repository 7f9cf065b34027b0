"""From the search's labels to the rows that are learnt from. NumPy alone."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayF32, ArrayInt, ArrayLike
from airworthy.core.errors import AirworthyError, AssetError, telling_refusals
from airworthy.core.files import read_bytes, read_json, sha256
from airworthy.gates.planner.contract import FIELDS, PAPER_RANGES, SCALES
from airworthy.gates.training.options import BoundaryOptions

__all__ = ["LabelSubset", "LabelTable", "TrainingArrays", "read_labels", "rows_of", "split_shares"]

# ---- Labels in memory, wherever they come from ------------------------------------------------------------------------------

# Ours: values at the ends of their ranges may have rounded outwards in the file.
_SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class LabelTable:
    """Situations and what the search chose in each; rows come to lie in the order of their numbers.

    Raises:
        AirworthyError: Shapes do not fit, a number occurs twice, a value is not finite or outside of its range.
    """

    index: ArrayInt
    """(n,) number of each situation in its grid."""
    situations: Array
    """(n, 8) [m/s, m, rad]"""
    labels: Array
    """(n, 2) speed [m/s] and time [s]; anything where there is no feasible candidate."""
    feasible: ArrayBool
    """(n,) whether there is a label."""
    ranges: Array = field(default_factory=lambda: np.array(PAPER_RANGES))
    """(8, 2) lowest and highest value of each field in the grid."""
    speed_max: float = SCALES[0]
    """Fastest candidate of the search [m/s]."""
    t_max: float = SCALES[1]
    """Longest time that the network is to give [s]."""
    limit: tuple[float, float] | None = None
    """a0 [m/s^2] and k [s^2/m^2] of the search's limit (eq. 3); None: not known, or none."""
    thrust: float | None = None
    """Most thrust over mass of the search's candidates [m/s^2]; None: not known, or none."""
    heading: str = "incoming"
    """Rule for the heading of gates."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Options of the search, as its folder tells them."""

    def __post_init__(self) -> None:
        order = np.argsort(self.index, kind="stable")
        sorts: dict[str, Any] = {"index": np.int64, "situations": np.float64, "labels": np.float64, "feasible": np.bool_}
        for name, kind in sorts.items():
            object.__setattr__(self, name, np.ascontiguousarray(np.asarray(getattr(self, name), kind)[order]))
        self._check()

    @property
    def digest(self) -> str:
        """SHA-256 of numbers, situations, labels and ranges, however they were laid into files."""
        found = hashlib.sha256()
        labels = np.where(self.feasible[:, None], self.labels, 0.0)
        ends = np.array([self.speed_max, self.t_max])
        for array in (self.index, self.situations, labels, self.feasible, np.asarray(self.ranges, np.float64), ends):
            found.update(str(array.shape).encode())
            found.update(np.ascontiguousarray(array).tobytes())
        return found.hexdigest()

    def _check(self) -> None:
        count = len(self.index)
        shapes = {"index": (count,), "situations": (count, len(FIELDS)), "labels": (count, 2), "feasible": (count,)}
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise AirworthyError(f"The labels have {name} of shape {getattr(self, name).shape}; expected {shape}.")
        if count and (self.index[0] < 0 or (np.diff(self.index) == 0).any()):
            raise AirworthyError(
                "The labels have a situation's number twice, or one below 0: each row needs a number of its own."
            )
        self._check_values()

    def _check_values(self) -> None:
        low, high = np.asarray(self.ranges, np.float64).T
        slack = _SLACK * (high - low)
        if not ((high > low).all() and np.isfinite(self.ranges).all()):
            raise AirworthyError("The labels have a range that does not rise from low to high.")
        inside = (self.situations >= low - slack) & (self.situations <= high + slack)  # False of NaN
        for name, good in zip(FIELDS, inside.T, strict=True):
            if not good.all():
                raise AirworthyError(f"The labels have {int((~good).sum()):,} situations with {name} outside of its range.")
        known = self.labels[self.feasible]
        if not (np.isfinite(known).all() and (known >= 0.0).all() and (known[:, 1] > 0.0).all()):
            raise AirworthyError(
                "The labels have a speed below zero, a time that is not above zero, or one that is not finite."
            )


# ---- Labels from the folder that the search wrote: `labels-*.parquet` and `gates.json` --------------------------------------
#
# The folder may come from a stranger: sizes are bounded, and whatever does not fit is refused in one sentence.

DESCRIPTION_FILE, PATTERN = "gates.json", "labels-*.parquet"
# Ours: 8 kB for each of the published grid's 129,600 situations.
FILE_LIMIT_BYTES = 1 << 30
ROWS_MAX = 1 << 26
"""Of all files together."""
_COLUMNS = (*FIELDS, "v", "t0", "feasible", "index")


@telling_refusals()
def read_labels(folder: str | Path, verify: bool = True) -> LabelTable:
    """Read a folder of labels.

    Args:
        folder: What `airworthy synthesize gates` wrote.
        verify: Compare each file with the checksum that the folder tells of it.

    Raises:
        AssetError: It is not such a folder, or a file is damaged.
    """
    where = Path(folder)
    if not os.path.lexists(where / DESCRIPTION_FILE):
        kind = "does not hold labels" if where.is_dir() else "is no folder"
        raise AssetError(
            f"{str(folder)!r} {kind}: expected what `airworthy synthesize gates` wrote, with its {DESCRIPTION_FILE}."
        )
    about = read_json(where / DESCRIPTION_FILE)
    if not isinstance(about, dict):
        raise AssetError(f"{str(where / DESCRIPTION_FILE)!r} does not describe labels: it is not a table.")
    checksums = _checksums(about)
    # What a search that was cut short left behind is not told of.
    paths = [where / name for name in sorted(checksums)] or sorted(where.glob(PATTERN))
    if not paths or about.get("complete") is False:
        raise AssetError(f"{str(folder)!r} is not finished: repeat the same `airworthy synthesize gates`.")
    columns = _columns(paths, checksums if verify else {})
    try:
        return LabelTable(
            columns["index"].astype(np.int64),
            np.stack([columns[name] for name in FIELDS], axis=1),
            np.stack([columns["v"], columns["t0"]], axis=1),
            columns["feasible"].astype(bool),
            **_described(about),
        )
    except AirworthyError as error:
        raise AssetError(f"{str(folder)!r} cannot be used. {error}") from None


def _columns(paths: list[Path], checksums: Mapping[str, str]) -> dict[str, ArrayAny]:
    found: list[dict[str, ArrayAny]] = []
    rows = 0
    for path in paths:
        data = read_bytes(path, FILE_LIMIT_BYTES)
        # Before a parser sees a byte of it.
        if checksums and sha256(data) != checksums[path.name]:
            raise AssetError(f"{str(path)!r} is not the file that {DESCRIPTION_FILE} tells of: it was changed or damaged.")
        found.append(_parsed(data, str(path)))
        rows += len(found[-1]["index"])
        if rows > ROWS_MAX:
            raise AssetError(f"{str(path.parent)!r} has more than {ROWS_MAX:,} labels.")
    return {name: np.concatenate([columns[name] for columns in found]) for name in _COLUMNS}


def _parsed(data: bytes, where: str) -> dict[str, ArrayAny]:
    import pyarrow as pa
    from pyarrow import parquet

    # A stranger's file may claim any size in its header; a megabyte of names is more than ours ever have.
    limits = {"thrift_string_size_limit": 1 << 20, "thrift_container_size_limit": 1 << 20}
    try:
        with parquet.ParquetFile(io.BytesIO(data), page_checksum_verification=True, **limits) as file:
            names = set(file.schema_arrow.names)
            if missing := [name for name in _COLUMNS if name not in names]:
                raise AssetError(f"{where!r} does not hold labels: it has no column {missing[0]!r}.")
            if file.metadata.num_rows > ROWS_MAX:
                raise AssetError(f"{where!r} has {file.metadata.num_rows:,} rows, more than {ROWS_MAX:,}.")
            table = file.read(columns=list(_COLUMNS))
        kinds: dict[str, Any] = {"feasible": np.bool_, "index": np.int64}
        return {name: _array(table.column(name), kinds.get(name, np.float64)) for name in _COLUMNS}
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError, MemoryError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200].rstrip(".")
        raise AssetError(f"{where!r} is not a Parquet file that can be read: {reason}.") from error


def _array(column: Any, kind: Any) -> ArrayAny:
    if column.null_count and kind is not np.float64:
        raise ValueError("a number or a flag is missing")
    return np.asarray(column.to_numpy(), kind)


def _checksums(about: Mapping[str, Any]) -> dict[str, str]:
    """Name -> SHA-256 of the folder's files, where it tells them; raises AssetError for a name that leads elsewhere."""
    files = about.get("files")
    found: dict[str, str] = {}
    for name, facts in files.items() if isinstance(files, dict) else ():
        if not fnmatch(name, PATTERN) or "/" in name or os.sep in name:
            raise AssetError(f"{DESCRIPTION_FILE} tells of a file {name[:80]!r}; expected {PATTERN}.")
        digest = facts.get("sha256") if isinstance(facts, dict) else None
        if not isinstance(digest, str):
            raise AssetError(f"{DESCRIPTION_FILE} tells no checksum of {name[:80]!r}.")
        found[name] = digest
    return found


def _described(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the folder's description says of the search, where it says it."""
    options = _table(about, "options")
    choices = _table(options, "choices")
    limit, thrust = choices.get("limit"), choices.get("thrust")
    ends = limit if isinstance(limit, list) and len(limit) == 2 and all(map(_is_number, limit)) else None
    return {
        "ranges": _ranges(about.get("grid")),
        "speed_max": _number(choices.get("speed_max"), SCALES[0]),
        "t_max": _number(options.get("t_max"), SCALES[1]),
        "limit": (float(ends[0]), float(ends[1])) if ends else None,
        "thrust": float(thrust) if thrust is not None and _is_number(thrust) else None,
        "about": {key: about[key] for key in ("digest", "grid", "options") if key in about},
    }


def _ranges(grid: Any) -> Array:
    """Lowest and highest value of each field, by the grid's name."""
    from airworthy.gates.labels.situations import PAPER, grid_named

    name = grid.get("name") if isinstance(grid, dict) else grid
    return (grid_named(name) if isinstance(name, str) else PAPER).ranges


def _table(about: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = about.get(name)
    return value if isinstance(value, dict) else {}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(value))


def _number(value: Any, usual: float) -> float:
    return float(value) if _is_number(value) and 0.0 < value < 1e3 else usual


# -----------------------------------------------------------------------------------------------------------------------------

# Source: spec/boundary_predictor section 7: 92 / 8 as published, the 8 halved (ours) so that 4 % decide nothing.
TRAIN_SHARE, WATCHED_SHARE = 0.92, 0.04


@dataclass(frozen=True, eq=False)
class LabelSubset:
    """Some rows in physical units."""

    situations: Array
    """(n, 8)"""
    labels: Array
    """(n, 2) speed [m/s] and time [s], as they were found: times are not clipped."""


@dataclass(frozen=True, eq=False)
class TrainingArrays:
    """What a training needs, scaled to [0, 1]."""

    inputs: ArrayF32
    """(n, 8) learnt from."""
    labels: ArrayF32
    """(n, 2)"""
    watched_inputs: ArrayF32
    """(m, 8) whose loss ends the training."""
    watched_labels: ArrayF32
    spans: Array
    """(8,) width of each input's range [m/s, m, rad]."""
    scales: tuple[float, float]
    """Speed and time at which the outputs end."""
    parts: Mapping[str, LabelSubset] = field(default_factory=dict)
    """"train", "watched" and "test" (the paper's split: the same rows are both)."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Rows by part, situations left out, labels clipped."""


def split_shares(index: ArrayLike) -> Array:
    """Return a number in [0, 1) of each row's number, the same in every training: splits do not depend on the order of rows.

    The mixing function of SplitMix64 (Steele, Lea and Flood, 2014), of which the upper 53 bits are taken.
    """
    x = np.asarray(index, np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((x ^ (x >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def rows_of(table: LabelTable, options: BoundaryOptions) -> TrainingArrays:
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
    # The paper's test set also decides when to stop, so it is not untouched; kept as an option.
    if options.split == "paper":
        ends["watched"] = ends["test"] = (TRAIN_SHARE, 1.0)
    which = {name: kept & (share >= low) & (share < high) for name, (low, high) in ends.items()}
    parts = {name: LabelSubset(table.situations[mine], table.labels[mine]) for name, mine in which.items()}
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
    return TrainingArrays(x, y, wx, wy, table.ranges[:, 1] - table.ranges[:, 0], scales, parts, counts)


_PURPOSE = {"train": "learn from", "watched": "watch", "test": "test with"}


def _scaled(part: LabelSubset, ranges: Array, scales: tuple[float, float]) -> tuple[ArrayF32, ArrayF32]:
    inputs = (part.situations - ranges[:, 0]) / (ranges[:, 1] - ranges[:, 0])
    # Times beyond the sigmoid's end can never be met: clipped and counted (2.1 % of the published grid).
    labels = np.minimum(part.labels, scales) / np.asarray(scales)
    return inputs.astype(np.float32), labels.astype(np.float32)
