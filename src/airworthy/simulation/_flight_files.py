"""The two files of a flight folder; pyarrow is imported where it is used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AssetError
from airworthy.core.files import make_folder, read_json, sha256_file, write_atomic, write_json

FORMAT_VERSION = 1
COLUMNS_MAX = 512
_META_BYTES_MAX = 16 << 20

Fields = Sequence[tuple[str, "np.dtype[Any]"]]


def write_parquet(path: Path, fields: Fields, blocks: Iterable[Mapping[str, NDArray[Any]]]) -> dict[str, Any]:
    """Write blocks as row groups; returns the facts about the file that `meta.json` keeps."""
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
    rows = meta.get("rows")
    if not isinstance(rows, int) or isinstance(rows, bool) or rows < 0 or not isinstance(meta.get("sha256"), str):
        raise AssetError(f"{str(path)!r} lacks its row count or its sha256: it was not written by Airworthy, or was edited.")
    return meta


def read_parquet(
    path: Path,
    meta: Mapping[str, Any],
    required: Sequence[str],
    column_type: Callable[[str], np.dtype[Any]],
    limit_bytes: int,
) -> dict[str, NDArray[Any]]:
    """Columns of `flight.parquet`; the hash is checked before pyarrow sees a byte, sizes before anything is allocated."""
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
        return _read_checked(path, meta, required, column_type, limit_bytes)
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, MemoryError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200].rstrip(".")
        raise AssetError(f"{str(path)!r} is not a Parquet file that can be read: {reason}.") from error


def _read_checked(
    path: Path,
    meta: Mapping[str, Any],
    required: Sequence[str],
    column_type: Callable[[str], np.dtype[Any]],
    limit_bytes: int,
) -> dict[str, NDArray[Any]]:
    from pyarrow import parquet

    limits = {"thrift_string_size_limit": 1 << 20, "thrift_container_size_limit": 1 << 20}
    with parquet.ParquetFile(path, page_checksum_verification=True, memory_map=False, **limits) as file:
        schema = file.schema_arrow
        _check_schema(path, schema, file.metadata.num_rows, meta, required, column_type)
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


def _check_schema(
    path: Path,
    schema: Any,
    rows: int,
    meta: Mapping[str, Any],
    required: Sequence[str],
    column_type: Callable[[str], np.dtype[Any]],
) -> None:
    import pyarrow as pa

    names = schema.names
    if len(names) > COLUMNS_MAX or len(set(names)) != len(names):
        _wrong(path, f"it has {len(names)} columns or repeats a name")
    for name in required:
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
