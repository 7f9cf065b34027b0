"""Tables of a shard as Parquet, the same bytes for the same values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AssetError

__all__ = ["Columns", "read_columns", "write_columns"]

ROWS_MAX = 1 << 26
Columns = dict[str, NDArray[Any]]


def write_columns(path: Path, fields: Mapping[str, type], columns: Mapping[str, NDArray[Any]]) -> None:
    """Write equally long columns."""
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema([pa.field(name, pa.from_numpy_dtype(np.dtype(kind)), nullable=False) for name, kind in fields.items()])
    arrays = [pa.array(np.ascontiguousarray(columns[name], kind)) for name, kind in fields.items()]
    table = pa.Table.from_arrays(arrays, schema=schema)
    # States and commands differ from row to row: a dictionary would only cost time.
    parquet.write_table(
        table, path, compression="zstd", compression_level=3, use_dictionary=["rollout", "tick"], write_page_checksum=True
    )


def read_columns(path: Path, fields: Mapping[str, type]) -> Columns:
    """Read them back.

    Raises:
        AssetError: It is not a Parquet file with these columns.
    """
    import pyarrow as pa
    from pyarrow import parquet

    limits = {"thrift_string_size_limit": 1 << 20, "thrift_container_size_limit": 1 << 20}
    try:
        with parquet.ParquetFile(path, page_checksum_verification=True, memory_map=False, **limits) as file:
            found = {field.name: field.type for field in file.schema_arrow}
            wanted = {name: pa.from_numpy_dtype(np.dtype(kind)) for name, kind in fields.items()}
            if found != wanted or file.metadata.num_rows > ROWS_MAX:
                raise AssetError(f"{str(path)!r} has other columns than this version of Airworthy writes.")
            table = file.read()
        return {name: np.asarray(table.column(name).to_numpy(), dtype=kind) for name, kind in fields.items()}
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, MemoryError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200].rstrip(".")
        raise AssetError(f"{str(path)!r} is not a Parquet file that can be read: {reason}.") from error
