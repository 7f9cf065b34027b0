"""Flights as columns, in memory and on disk.

A *flight table* has one row per environment and recorded step, ordered by environment, then time, with named, unit-suffixed
columns (`position_x_m` ...). On disk it is a folder: `flight.parquet`, and `meta.json` with what flew, how, and the table's
SHA-256.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayF32, ArrayInt, NDArray
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import make_folder, read_json, sha256_file, write_atomic, write_json

__all__ = [
    "FLIGHT_FILE",
    "META_FILE",
    "FlightTable",
    "flight_columns",
    "read_flight",
    "read_flight_meta",
    "write_flight",
    "write_flight_blocks",
]

# ---- The two files of a flight folder; pyarrow is imported where it is used -------------------------------------------------

FORMAT_VERSION = 1
COLUMNS_MAX = 512
_META_BYTES_MAX = 16 << 20

Fields = Sequence[tuple[str, "np.dtype[Any]"]]


def write_parquet(path: Path, fields: Fields, blocks: Iterable[Mapping[str, ArrayAny]]) -> dict[str, Any]:
    """Write blocks as row groups; returns the facts about the file that `meta.json` keeps.

    Args:
        path: Of the file.
        fields: Names and types, in order.
        blocks: Columns by these names, block by block.
    """
    facts: dict[str, Any] = {"format_version": FORMAT_VERSION, "rows": 0, "environments": 0}

    def write(temporary: Path) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        schema = pa.schema([pa.field(name, pa.from_numpy_dtype(kind), nullable=False) for name, kind in fields])
        # One value per row changes in nearly every column: a dictionary would only cost time.
        options = {"compression": "zstd", "compression_level": 3, "use_dictionary": ["env", "saturated", "status"]}
        with parquet.ParquetWriter(temporary, schema, write_page_checksum=True, **options) as writer:
            for block in blocks:
                arrays = [pa.array(np.ascontiguousarray(block[name], dtype=kind)) for name, kind in fields]
                # Block by block: a batch's flights need never be in memory together.
                batch = pa.Table.from_arrays(arrays, schema=schema)
                writer.write_table(batch, row_group_size=max(1, batch.num_rows))
                facts["rows"] += batch.num_rows
                facts["environments"] += int(np.unique(block["env"]).size)

    make_folder(path.parent)
    write_atomic(path, write)
    return {**facts, "sha256": sha256_file(path)}


def write_meta(path: Path, meta: Mapping[str, Any]) -> None:
    """Write `meta.json` atomically."""
    write_json(path, dict(meta))


def read_meta(path: Path) -> dict[str, Any]:
    """Read `meta.json`; raises AssetError where it is not one that this version understands."""
    meta = read_json(path, _META_BYTES_MAX)
    if not isinstance(meta, dict):
        raise AssetError(f"{str(path)!r} holds no table of keys; a flight's meta.json was expected.")
    version = meta.get("format_version")
    if version != FORMAT_VERSION:
        raise AssetError(f"{str(path)!r} has format_version {version!r}; this version of Airworthy reads {FORMAT_VERSION}.")
    # True is an int, hence the second question.
    rows = meta.get("rows")
    if not isinstance(rows, int) or isinstance(rows, bool) or rows < 0 or not isinstance(meta.get("sha256"), str):
        raise AssetError(f"{str(path)!r} lacks its row count or its sha256: it was not written by Airworthy, or was edited.")
    return meta


def read_parquet(path: Path, meta: Mapping[str, Any], limit_bytes: int) -> dict[str, ArrayAny]:
    """Return columns of `flight.parquet`; the hash is checked before pyarrow sees a byte, sizes before anything is allocated.

    Args:
        path: Of the file.
        meta: Facts that were kept of it.
        limit_bytes: Most that it may take in memory.
    """
    if path.is_dir() or not path.is_file():
        raise AssetError(f"There is no file {str(path)!r}.")
    if path.stat().st_size > limit_bytes:
        raise AssetError(f"{str(path)!r} has {path.stat().st_size:,} bytes; at most {limit_bytes:,} are accepted here.")
    if sha256_file(path) != meta["sha256"]:
        raise AssetError(
            f"{str(path)!r} is not the file that its meta.json describes (other SHA-256): it is damaged, fly again."
        )
    import pyarrow as pa

    try:
        return _read_checked(path, meta, limit_bytes)
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, MemoryError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200].rstrip(".")
        raise AssetError(f"{str(path)!r} is not a Parquet file that can be read: {reason}.") from error


def _read_checked(path: Path, meta: Mapping[str, Any], limit_bytes: int) -> dict[str, ArrayAny]:
    from pyarrow import parquet

    # Headers of a Parquet file are a few kilobytes; its parser would follow any size that they claim.
    limits = {"thrift_string_size_limit": 1 << 20, "thrift_container_size_limit": 1 << 20}
    with parquet.ParquetFile(path, page_checksum_verification=True, memory_map=False, **limits) as file:
        schema = file.schema_arrow
        _check_schema(path, schema, file.metadata.num_rows, meta)
        # From types and row count alone: compressed, a gigabyte of zeros is some kilobytes.
        bytes_needed = file.metadata.num_rows * sum(column_type(name).itemsize for name in schema.names)
        if bytes_needed > limit_bytes:
            raise AssetError(
                f"{str(path)!r} would take {bytes_needed:,} bytes of memory; at most {limit_bytes:,} are accepted here."
            )
        table = file.read()
    columns = {name: np.asarray(table.column(name).to_numpy(), dtype=column_type(name)) for name in schema.names}
    if not np.isfinite(columns["t"]).all():
        _wrong(path, "column 't' holds a time that is not finite")
    return columns


def _check_schema(path: Path, schema: Any, rows: int, meta: Mapping[str, Any]) -> None:
    import pyarrow as pa

    names = schema.names
    if len(names) > COLUMNS_MAX or len(set(names)) != len(names):
        _wrong(path, f"it has {len(names)} columns or repeats a name")
    for name in _REQUIRED:
        if name not in names:
            _wrong(path, f"the column {name!r} is missing")
    for field in schema:
        expected = pa.from_numpy_dtype(column_type(field.name))
        if field.type != expected:
            _wrong(path, f"column {field.name!r} is {field.type}, expected {expected}")
    if rows != meta["rows"]:
        _wrong(path, f"it has {rows:,} rows and its meta.json says {meta['rows']:,}")


def _wrong(path: Path, what: str) -> NoReturn:
    raise AssetError(f"{str(path)!r} is not a flight table: {what}.")


# -----------------------------------------------------------------------------------------------------------------------------

FLIGHT_FILE = "flight.parquet"
META_FILE = "meta.json"

# Ours: a file may name any number of rows; what would not fit is refused before memory is asked for.
BYTES_MAX = 8 << 30
"""Most bytes that a table may take in memory when read; `read_flight(..., limit_bytes=...)` changes it."""
_GROUP_ROWS = 1 << 18

_XYZ = ("x", "y", "z")
_REQUIRED = (
    "env",
    "t",
    *(f"position_{a}_m" for a in _XYZ),
    *(f"velocity_{a}_m_s" for a in _XYZ),
    *(f"attitude_{a}" for a in (*_XYZ, "w")),
    *(f"rate_{a}_rad_s" for a in _XYZ),
    "status",
)


def flight_columns(rotor_count: int, *, reference: bool = True) -> tuple[str, ...]:
    """Return names of the standard columns in the order of the file.

    Args:
        rotor_count: Rotors of the widest vehicle; others leave their last columns NaN.
        reference: Whether what the pilot was asked to follow is among them.
    """
    names = [*_REQUIRED[:-1]]
    names += [f"rotor_speed_{i}_rad_s" for i in range(rotor_count)]
    names += [f"rotor_command_{i}_rad_s" for i in range(rotor_count)]
    if reference:
        names += [f"reference_position_{a}_m" for a in _XYZ]
        names += [f"reference_velocity_{a}_m_s" for a in _XYZ]
        names += ["reference_yaw_rad"]
    return (*names, "saturated", "status")


def column_type(name: str) -> np.dtype[Any]:
    """Return the stored type of a column: int32 for `env`, float64 for `t`, int8 for flags, float32 for everything else."""
    special = {"env": np.int32, "t": np.float64, "saturated": np.int8, "status": np.int8}
    return np.dtype(special.get(name, np.float32))


@dataclass(frozen=True)
class FlightTable:
    """Recorded flights as columns of equal length, ordered by environment, then time.

    Build it with `from_columns`, which checks and orders; the arrays are not copied afterwards and must not be changed.
    """

    columns: Mapping[str, ArrayAny]
    """Column by name; the types are those of `column_type`."""

    @classmethod
    def from_columns(cls, columns: Mapping[str, Any]) -> FlightTable:
        """Check, convert and order columns.

        Args:
            columns: One-dimensional arrays of equal length, by name; at least `env`, `t`, position, velocity, attitude, rate
                and `status`. Further columns are kept as float32.

        Raises:
            AirworthyError: A column is missing, has another length or shape, or `env` or `t` holds what is not a number.
        """
        missing = [name for name in _REQUIRED if name not in columns]
        if missing:
            raise AirworthyError(f"A flight table needs the column {missing[0]!r}; it has {', '.join(columns) or 'none'}.")
        arrays = {name: np.asarray(values, dtype=column_type(name)) for name, values in columns.items()}
        rows = arrays["env"].size
        for name, values in arrays.items():
            if values.shape != (rows,):
                raise AirworthyError(
                    f"Column {name!r} has shape {values.shape}; every column needs shape ({rows},) as 'env' has."
                )
        if not np.isfinite(arrays["t"]).all():
            raise AirworthyError("Column 't' holds a time that is not finite; every recorded row needs its time in seconds.")
        _check_groups(arrays)
        return cls(_ordered(arrays))

    @property
    def row_count(self) -> int:
        """Rows over all environments."""
        return int(self.columns["env"].size)

    @cached_property
    def rotor_count(self) -> int:
        """Rotors of the widest vehicle."""
        return next(i for i in itertools.count() if f"rotor_speed_{i}_rad_s" not in self.columns)

    @property
    def has_reference(self) -> bool:
        """Whether the table says what the pilot was asked to follow."""
        return "reference_position_x_m" in self.columns

    @cached_property
    def starts(self) -> ArrayInt:
        """First row of each environment, and the number of rows at the end, shape (env_count + 1,)."""
        env = self.columns["env"]
        if env.size == 0:
            return np.zeros(1, dtype=np.int64)
        return np.concatenate(([0], np.flatnonzero(np.diff(env)) + 1, [env.size])).astype(np.int64)

    @cached_property
    def envs(self) -> NDArray[np.int32]:
        """Environment ids in order, shape (env_count,)."""
        return np.asarray(self.columns["env"][self.starts[:-1]])

    @property
    def env_count(self) -> int:
        """Number of environments that have rows."""
        return int(self.starts.size - 1)

    @property
    def t(self) -> Array:
        """Time of each row [s], shape (rows,)."""
        return self.columns["t"]

    @property
    def status(self) -> NDArray[np.int8]:
        """Status code of each row (0 flying, 1 diverged, 2 collision, 3 out of bounds), shape (rows,)."""
        return self.columns["status"]

    def vector(self, field: str) -> ArrayF32:
        """Return `position`, `velocity`, `rate`, `reference_position`, `reference_velocity` (rows, 3) or `attitude` (rows,
        4)."""
        return np.stack([self.columns[name] for name in _vector_names(field)], axis=-1)

    def rotors(self, field: str) -> ArrayF32:
        """Return `rotor_speed` or `rotor_command` [rad/s], shape (rows, rotor_count)."""
        names = [f"{field}_{i}_rad_s" for i in range(self.rotor_count)]
        if not names or any(name not in self.columns for name in names):
            return np.zeros((self.row_count, 0), dtype=np.float32)
        return np.stack([self.columns[name] for name in names], axis=-1)

    @property
    def joints(self) -> ArrayF32:
        """Joint angles [rad], shape (rows, joints); no columns of a vehicle without joints."""
        count = next(i for i in itertools.count() if f"joint_{i}_rad" not in self.columns)
        if not count:
            return np.zeros((self.row_count, 0), dtype=np.float32)
        return np.stack([self.columns[f"joint_{i}_rad"] for i in range(count)], axis=-1)

    def select(self, envs: Iterable[int]) -> FlightTable:
        """Return the rows of some environments."""
        keep = np.isin(self.columns["env"], np.fromiter(envs, dtype=np.int32))
        return FlightTable({name: values[keep] for name, values in self.columns.items()})

    def flight(self, env: int) -> FlightTable:
        """Return the rows of one environment, as views; raises AirworthyError where it has none."""
        found = np.flatnonzero(self.envs == env)
        if found.size == 0:
            raise AirworthyError(f"There is no environment {env} in this table, which holds {self.env_count}.")
        return self._rows(slice(int(self.starts[found[0]]), int(self.starts[found[0] + 1])))

    def blocks(self) -> Iterator[dict[str, ArrayAny]]:
        """Yield whole environments at a time, about 260,000 rows each: how the table is written."""
        first = 0
        for last in range(1, self.env_count + 1):
            if last == self.env_count or self.starts[last + 1] - self.starts[first] > _GROUP_ROWS:
                rows = slice(int(self.starts[first]), int(self.starts[last]))
                yield {name: values[rows] for name, values in self.columns.items()}
                first = last

    def _rows(self, rows: slice) -> FlightTable:
        return FlightTable({name: values[rows] for name, values in self.columns.items()})


def write_flight(folder: str | Path, table: FlightTable, meta: Mapping[str, Any]) -> Path:
    """Write `flight.parquet` and `meta.json`: each atomically, the same bytes for the same table and meta.

    Args:
        folder: Made if missing.
        table: The flights.
        meta: What flew: version, vehicle names, course, pilot, seed, rates, config, command line. Anything with a JSON form;
            the keys `format_version`, `rows`, `environments` and `sha256` are written by this function.

    Raises:
        AirworthyError: The file system refused.
    """
    return write_flight_blocks(folder, table.blocks(), list(table.columns), meta)


def write_flight_blocks(
    folder: str | Path, blocks: Iterable[Mapping[str, ArrayAny]], names: Sequence[str], meta: Mapping[str, Any]
) -> Path:
    """Write a flight as `write_flight`, from blocks of whole environments in order, so that the table need not fit into memory.

    Args:
        folder: Of the flight.
        blocks: Columns by name, whole environments in order.
        names: Columns, in order.
        meta: What else is kept.
    """
    folder = Path(folder)
    fields = [(name, column_type(name)) for name in names]
    facts = write_parquet(folder / FLIGHT_FILE, fields, blocks)
    # The table first: a crash in between leaves a meta.json whose hash says that it belongs to another table.
    write_meta(folder / META_FILE, {**meta, **facts})
    return folder


def read_flight_meta(folder: str | Path) -> dict[str, Any]:
    """Return the content of a flight folder's `meta.json`; raises AssetError where it is missing or not one."""
    return read_meta(Path(folder) / META_FILE)


def read_flight(folder: str | Path, *, limit_bytes: int = BYTES_MAX) -> tuple[FlightTable, dict[str, Any]]:
    """Read a flight folder.

    Args:
        folder: Holds `flight.parquet` and `meta.json`.
        limit_bytes: Most memory that the table may take.

    Returns:
        The table and its meta.

    Raises:
        AssetError: A file is missing, damaged, too large, not what its name says, or the two do not belong together.
    """
    meta = read_flight_meta(folder)
    columns = read_parquet(Path(folder) / FLIGHT_FILE, meta, limit_bytes)
    return FlightTable(_ordered(columns)), meta


def _vector_names(field: str) -> list[str]:
    units = {"position": "_m", "velocity": "_m_s", "rate": "_rad_s", "attitude": ""}
    unit = units.get(field.removeprefix("reference_"))
    if unit is None:
        raise AirworthyError(
            f"A flight table has no vector {field!r}; it has {', '.join(units)} and reference_position/_velocity."
        )
    return [f"{field}_{axis}{unit}" for axis in ((*_XYZ, "w") if field == "attitude" else _XYZ)]


def _check_groups(arrays: Mapping[str, Any]) -> None:
    """Columns that make sense only together."""
    for field in ("reference_position", "reference_velocity"):
        present = [name in arrays for name in _vector_names(field)]
        if any(present) and not all(present):
            raise AirworthyError(f"A flight table with a column of {field} needs all of {', '.join(_vector_names(field))}.")


def _ordered(arrays: dict[str, ArrayAny]) -> dict[str, ArrayAny]:
    env, t = arrays["env"], arrays["t"]
    step = np.diff(env)
    if np.all((step > 0) | ((step == 0) & (np.diff(t) >= 0.0))):
        return arrays
    order = np.lexsort((t, env))
    return {name: values[order] for name, values in arrays.items()}
