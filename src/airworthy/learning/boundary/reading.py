"""Labels from the folder that the search wrote: `labels-*.parquet` and `gates.json`.

The folder may come from a stranger: sizes are bounded, and whatever does not fit is refused in one sentence.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import read_bytes, read_json, sha256
from airworthy.learning.boundary.table import LabelTable
from airworthy.pilots.boundary.contract import FIELDS, SCALES

__all__ = ["read_labels"]

DESCRIPTION_FILE, PATTERN = "gates.json", "labels-*.parquet"
FILE_LIMIT_BYTES = 1 << 30
ROWS_MAX = 1 << 26
"""Of all files together."""
_COLUMNS = (*FIELDS, "v", "t0", "feasible", "index")


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


def _columns(paths: list[Path], checksums: Mapping[str, str]) -> dict[str, NDArray[Any]]:
    found: list[dict[str, NDArray[Any]]] = []
    rows = 0
    for path in paths:
        data = read_bytes(path, FILE_LIMIT_BYTES)
        if checksums and sha256(data) != checksums[path.name]:
            raise AssetError(f"{str(path)!r} is not the file that {DESCRIPTION_FILE} tells of: it was changed or damaged.")
        found.append(_parsed(data, str(path)))
        rows += len(found[-1]["index"])
        if rows > ROWS_MAX:
            raise AssetError(f"{str(path.parent)!r} has more than {ROWS_MAX:,} labels.")
    return {name: np.concatenate([columns[name] for columns in found]) for name in _COLUMNS}


def _parsed(data: bytes, where: str) -> dict[str, NDArray[Any]]:
    import pyarrow as pa
    from pyarrow import parquet

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


def _array(column: Any, kind: Any) -> NDArray[Any]:
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
    """What the folder's description says of the search, where it says it."""
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


def _ranges(grid: Any) -> NDArray[np.float64]:
    """Lowest and highest value of each field, by the grid's name."""
    from airworthy.learning.gates.situations import PAPER, grid_named

    name = grid.get("name") if isinstance(grid, dict) else grid
    return (grid_named(name) if isinstance(name, str) else PAPER).ranges


def _table(about: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = about.get(name)
    return value if isinstance(value, dict) else {}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(value))


def _number(value: Any, usual: float) -> float:
    return float(value) if _is_number(value) and 0.0 < value < 1e3 else usual
