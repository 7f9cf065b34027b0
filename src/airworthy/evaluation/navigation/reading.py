"""Reading a benchmark's folder, which may come from anywhere: what does not fit is refused in one sentence."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from airworthy.core.errors import AssetError
from airworthy.core.files import json_text, parse_json, read_bytes, read_json
from airworthy.evaluation.navigation.identity import digest_of
from airworthy.evaluation.navigation.plan import CONFIGURATIONS, SCENARIO_NAMES
from airworthy.tasks.navigation import NAVIGATION_OUTCOMES

__all__ = [
    "MANIFEST_FILE",
    "RESULTS_FILE",
    "ROWS_MAX",
    "SCHEMA_VERSION",
    "Row",
    "parquet_bytes",
    "parsed_rows",
    "read_manifest",
    "read_rows",
]

MANIFEST_FILE, RESULTS_FILE = "benchmark.json", "results.parquet"
SCHEMA_VERSION = 1
_MANIFEST_MAX, ROWS_MAX = 64 << 20, 1 << 30
_KEY = b"airworthy"

Row = dict[str, Any]


def read_manifest(folder: str | Path) -> dict[str, Any]:
    """The manifest of a folder; whatever else it says is of the kinds that a run writes.

    Raises:
        AssetError: There is none, or it is damaged.
    """
    path = Path(folder) / MANIFEST_FILE
    told = read_json(path, _MANIFEST_MAX)
    kinds = {"identity": dict, "pilots": dict, "blocks": dict}
    if not isinstance(told, dict) or not all(isinstance(told.get(name), kind) for name, kind in kinds.items()):
        raise AssetError(f"{str(path)!r} is no manifest of a navigation benchmark: choose another folder.")
    if told.get("schema_version") != SCHEMA_VERSION or told.get("digest") != digest_of(told["identity"]):
        raise AssetError(f"{str(path)!r} is damaged or of another version of Airworthy: choose another folder.")
    wrong = [name for name, good in _KINDS.items() if name in told and not good(told[name])]
    if wrong:
        raise AssetError(f"{str(path)!r} is damaged, its {wrong[0]!r} is not what a run writes: choose another folder.")
    return told


def _texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _block(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("sha256"), str):
        return False
    seconds = value.get("seconds", {})
    return isinstance(seconds, dict) and all(isinstance(item, int | float) for item in seconds.values())


def _division(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("division"), str):
        return False
    because = value.get("because")
    return isinstance(because, list) and all(isinstance(why, str) for why in because)


_KINDS: dict[str, Callable[[Any], bool]] = {
    "identity": lambda value: isinstance(value.get("config"), dict) and isinstance(value.get("version"), str),
    "pilots": lambda value: all(isinstance(item, dict) for item in value.values()),
    "blocks": lambda value: all(map(_block, value.values())),
    "words": _texts,
    "system": _texts,
    "division": _division,
    "command": lambda value: isinstance(value, str),
}


def read_rows(path: str | Path) -> list[Row]:
    """Rows of a table: a file, or the `results.parquet` of a folder.

    Raises:
        AssetError: It is missing, too large or no such table.
    """
    where = Path(path) / RESULTS_FILE if Path(path).is_dir() else Path(path)
    return parsed_rows(read_bytes(where, ROWS_MAX), str(where))[1]


def parsed_rows(data: bytes, where: str) -> tuple[dict[str, Any], list[Row]]:
    """Head and rows of a table; `where` is what it is called in what is said. Raises AssetError where it is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(pa.BufferReader(data))
        head = parse_json((table.schema.metadata or {})[_KEY].decode(), where)
        wrong = _wrong_column(table)
        rows = [] if wrong else table.to_pylist()
    except (pa.ArrowException, KeyError, ValueError, OSError) as error:
        message = f"{where!r} is no table of flights, or damaged: the command of its benchmark writes it again."
        raise AssetError(message) from error
    number = next((k for k, row in enumerate(rows) if not _makes_sense(row)), None)
    if wrong or number is not None or not isinstance(head, dict):
        what = (
            f"row {number} tells of no flight" if number is not None else f"its column {wrong!r} is missing or of another kind"
        )
        raise AssetError(f"{where!r} is damaged, {what}: the command of its benchmark writes it again.")
    return head, rows


def _wrong_column(table: Any) -> str:
    """The first column that is not there, of another kind, or not filled; "" where all are well."""
    kinds = _kinds()
    for name, kind in kinds.items():
        if name not in table.column_names or table.schema.field(name).type != kind or table.column(name).null_count:
            return name
    return ""


def _makes_sense(row: Row) -> bool:
    """Whether a row is of a flight that there may have been."""
    known = row["outcome"] in NAVIGATION_OUTCOMES and row["success"] == (row["outcome"] == "success")
    counted = 1 <= row["configuration"] <= CONFIGURATIONS and row["repeat"] >= 0
    return known and counted and row["scenario"] in SCENARIO_NAMES


def _kinds() -> dict[str, Any]:
    """Columns and their kinds in the file."""
    import pyarrow as pa

    from airworthy.evaluation.navigation.rows import COLUMNS

    kinds = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    return {name: kinds[kind] for name, kind in COLUMNS.items()}


def parquet_bytes(rows: Sequence[Row], head: Mapping[str, Any]) -> bytes:
    """The same bytes for the same rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: pa.array([row[name] for row in rows], kind) for name, kind in _kinds().items()}
    table = pa.table(columns).replace_schema_metadata({_KEY: json_text(dict(head)).encode()})
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", version="2.6")
    return sink.getvalue()
