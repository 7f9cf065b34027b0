"""Files of labels: one Parquet table per shard, with the checksum that `gates.json` tells of it."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AssetError
from airworthy.core.files import read_bytes, read_json, sha256, write_bytes
from airworthy.learning.gates.labels import Labels, join_labels
from airworthy.learning.gates.situations import FIELDS

__all__ = ["GATES_FILE", "LabelFolder", "read_labels", "shard_file", "write_shard"]

Array = NDArray[np.float64]

GATES_FILE = "gates.json"
_FILE_MAX = 1 << 30
_FACTS_MAX = 1 << 24


@dataclass(frozen=True)
class LabelFolder:
    """Labels as they lie on disk."""

    situations: Array
    """Shape (k, 8)."""
    labels: Labels
    about: Mapping[str, Any]
    """Content of `gates.json`."""


def shard_file(number: int) -> str:
    """Name of a shard's file."""
    return f"labels-{number:05d}.parquet"


def write_shard(folder: Path, number: int, situations: Array, labels: Labels) -> str:
    """Write a shard, all or nothing; returns its SHA-256.

    Raises:
        AirworthyError: The file system refused.
    """
    import pyarrow as pa
    from pyarrow import parquet

    columns: dict[str, Any] = {name: situations[:, k] for k, name in enumerate(FIELDS)}
    columns |= {item.name: getattr(labels, item.name) for item in fields(Labels)}
    buffer = io.BytesIO()
    parquet.write_table(pa.table(columns), buffer, compression="zstd", write_page_checksum=True)
    data = buffer.getvalue()
    write_bytes(folder / shard_file(number), data)
    return sha256(data)


def read_labels(folder: str | Path) -> LabelFolder:
    """Read every shard of a folder, comparing checksums.

    Raises:
        AssetError: It holds no labels, is not finished, or a file is damaged.
    """
    where = Path(folder)
    about = read_json(where / GATES_FILE, _FACTS_MAX)
    files = about.get("files") if isinstance(about, dict) else None
    if not isinstance(files, dict) or about.get("kind") != "gate labels":
        raise AssetError(f"{str(where / GATES_FILE)!r} does not describe labels of gates; give the folder of a search.")
    if not about.get("complete"):
        raise AssetError(f"{str(folder)!r} is not finished: run the same 'airworthy synthesize gates' again.")
    parts = [_read(where / str(name), files[name]) for name in sorted(files)]
    return LabelFolder(np.concatenate([e for e, _ in parts]), join_labels([one for _, one in parts]), about)


def whole(path: Path, facts: Any) -> bool:
    """Whether a shard's file is there and has the checksum told."""
    return path.is_file() and isinstance(facts, dict) and sha256(read_bytes(path, _FILE_MAX)) == facts.get("sha256")


def _read(path: Path, facts: Any) -> tuple[Array, Labels]:
    import pyarrow as pa
    from pyarrow import parquet

    data = read_bytes(path, _FILE_MAX)
    if not isinstance(facts, dict) or sha256(data) != facts.get("sha256"):
        raise AssetError(f"{str(path)!r} is not the file that {GATES_FILE} tells of: run the search again with --repair.")
    try:
        table = parquet.read_table(io.BytesIO(data), use_threads=False)
        columns = {name: table.column(name).to_numpy() for name in table.column_names}
        situations = np.stack([columns[name] for name in FIELDS], axis=-1)
        return situations, Labels(*(columns[item.name] for item in fields(Labels)))
    except (pa.ArrowException, KeyError, ValueError) as error:
        raise AssetError(f"{str(path)!r} does not hold labels: {(str(error).splitlines() or ['damaged'])[0][:160]}.") from error
