"""Named columns of numbers out of text, Parquet and .npz, bounded by the size of the file."""

from __future__ import annotations

import io
import lzma
import re
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayAny
from airworthy.core.errors import AssetError
from airworthy.core.files import harmless, shown
from airworthy.logs.building import LogDraft

COLUMNS_MAX = 4096
"""Ours: columns of a table."""
UNPACKED_SHARE, UNPACKED_BYTES = 4, 64 << 20
"""What a packed file may take unpacked: this many times its size, and so many bytes more."""
_NUMBER = re.compile(rb"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*|\s*[-+]?(nan|inf)\s*|", re.IGNORECASE)
_DATE = r"^\s*\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.,]\d{1,9})?)?(Z|[-+]\d\d:?\d\d)?\s*$"
_DAMAGE: tuple[type[Exception], ...] = (zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, lzma.LZMAError)
_DAMAGE += (ValueError, OSError, EOFError, KeyError)
_DAMAGE += (
    RuntimeError,
    RecursionError,
    tokenize.TokenError,
    NotImplementedError,
    OverflowError,
    SyntaxError,
    TypeError,
    MemoryError,
    struct.error,
)
"""What the standard library raises at archives and headers that are damaged."""
_ARROW_LIMITS = {"thrift_string_size_limit": 1 << 20, "thrift_container_size_limit": 1 << 20}


def text_columns(data: bytes, draft: LogDraft, skip: int = 0, names: Sequence[str] = ()) -> dict[str, ArrayAny]:
    """Return the columns of comma-separated text that hold numbers; whole ones as int64, all others as float64.

    The first line names them, with or without a '#'; without one, they are `column_0` and on. What is no number in a column
    of numbers is NaN, and counted; rows of another width are left out, and counted.

    Args:
        data: The file.
        draft: Takes the notes.
        skip: Bytes before the first line.
        names: Of the columns, where no line names them.

    Raises:
        AssetError: There is no table.
    """
    import pyarrow as pa

    if not data.isascii():
        data = data[:skip] + data[skip:].decode("utf-8", "replace").encode()
    head, start = _header(data, skip) if not names else (list(names), skip)
    if not head or len(head) > COLUMNS_MAX:
        raise draft.refuse(
            f"no table of comma-separated numbers begins at byte {skip} (columns: {len(head)}, of 1 to {COLUMNS_MAX:,}); give a"
            " log, or a table with one line of names and one line of numbers for each sample"
        )
    if start >= len(data):
        raise draft.refuse(
            f"it has a line that names {len(head)} column{'s' * (len(head) > 1)} and no line of numbers: nothing was logged, or"
            " the file was cut; give the whole file"
        )
    try:
        return _arrow_columns(data, start, head, draft)
    except (pa.ArrowException, ValueError, UnicodeDecodeError, OverflowError) as error:
        reason = (str(error).splitlines() or ["?"])[0][:160].rstrip(".")
        raise draft.refuse(f"its table from byte {start} on cannot be read: {harmless(reason)}") from error


def _header(data: bytes, skip: int) -> tuple[list[str], int]:
    """Names of the columns, and the first byte behind them."""
    while data[skip : skip + 1] in (b"\n", b"\r") and skip < len(data):
        skip += 1
    end = data.find(b"\n", skip)
    end = len(data) if end < 0 else end
    cells = data[skip : min(end, skip + (1 << 20))].strip().split(b",")
    if len(cells) > COLUMNS_MAX:
        return [""] * len(cells), end
    if all(_NUMBER.fullmatch(cell) for cell in cells):
        return [f"column_{k}" for k in range(len(cells))], skip
    names: list[str] = []
    for cell in cells:
        text = harmless(cell.decode("utf-8", "replace")).strip().strip('"').lstrip("#\ufeff").strip()
        name, k = text, 1
        while name in names:
            k += 1
            name = f"{text}_{k}"
        names.append(name)
    return names, end + 1


def _arrow_columns(data: bytes, start: int, names: list[str], draft: LogDraft) -> dict[str, ArrayAny]:
    from pyarrow import csv

    odd = [0]

    def skipped(_row: Any) -> str:
        odd[0] += 1
        return "skip"

    parse = csv.ParseOptions(invalid_row_handler=skipped)
    read = csv.ReadOptions(column_names=names, use_threads=False)
    import pyarrow as pa

    # Numbers as text first where a column is not one of numbers throughout: arrow's own guess looks at its first megabyte.
    source = pa.py_buffer(memoryview(data)[start:])
    nulls = ["", "nan", "NaN", "NAN", "null", "N/A"]
    try:
        table = csv.read_csv(pa.BufferReader(source), read, parse, csv.ConvertOptions(null_values=nulls))
    except pa.ArrowInvalid:
        odd[0] = 0
        kinds = {name: pa.string() for name in names}
        options = csv.ConvertOptions(column_types=kinds, null_values=nulls, check_utf8=False)
        table = csv.read_csv(pa.BufferReader(source), read, parse, options)
    if odd[0]:
        draft.note(f"{odd[0]} lines have another number of columns than the first and were left out.")
    made = {name: _numbers(table.column(name), name, draft) for name in names}
    _tell_left_out([name for name, values in made.items() if values is None], draft)
    return {name: values for name, values in made.items() if values is not None}


def _numbers(column: Any, name: str, draft: LogDraft) -> ArrayAny | None:
    """Return a column as numbers, or None where hardly anything in it is one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if len(column) and column.null_count == len(column):
        # Blank throughout, as commands that were never armed: what it is of knows a mapping.
        return np.full(len(column), np.nan)
    if pa.types.is_boolean(kind):
        return np.asarray(column.cast(pa.int8()).cast(pa.float64()).to_numpy())
    if is_time(kind):
        return _nanoseconds(column)
    if pa.types.is_integer(kind) and not column.null_count:
        return np.asarray(column.to_numpy(), np.int64)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), np.float64)
    if not (pa.types.is_string(kind) or pa.types.is_binary(kind)):
        return None
    dates = _dates(column)
    if dates is not None:
        return dates
    good = pc.fill_null(pc.match_substring_regex(column, r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"), False)
    count = int(pc.sum(good).as_py() or 0)
    if count < 0.5 * max(1, len(column) - column.null_count):
        return None
    values = pc.if_else(good, pc.utf8_trim_whitespace(column), None).cast(pa.float64())
    lost = len(column) - count - column.null_count
    if lost:
        draft.note(f"Column {shown(name)} holds {lost} cells that are no numbers; they count as missing.")
    return np.asarray(values.to_numpy(), np.float64)


def is_time(kind: Any) -> bool:
    """Tell whether a column of Arrow holds dates, times of day or durations."""
    import pyarrow as pa

    return bool(pa.types.is_timestamp(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind))


def _nanoseconds(column: Any) -> ArrayAny:
    """Return dates as nanoseconds since 1970, times of day since midnight, durations as they are: int64, or float64 with NaN
    where one is missing."""
    import pyarrow as pa

    kind = column.type
    wide = pa.duration("ns") if pa.types.is_duration(kind) else pa.time64("ns")
    wide = pa.timestamp("ns", kind.tz) if pa.types.is_timestamp(kind) else wide
    numbers = column.cast(wide).cast(pa.int64())
    if numbers.null_count:
        return np.asarray(numbers.cast(pa.float64(), safe=False).to_numpy(), np.float64)
    return np.asarray(numbers.to_numpy(), np.int64)


def _dates(column: Any) -> ArrayAny | None:
    """Return texts that are dates with times (ISO 8601) as nanoseconds since 1970; None where most are not."""
    import pyarrow as pa
    import pyarrow.compute as pc

    good = pc.fill_null(pc.match_substring_regex(column, _DATE), False)
    if int(pc.sum(good).as_py() or 0) < max(1.0, 0.5 * (len(column) - column.null_count)):
        return None
    kept = pc.if_else(good, pc.utf8_trim_whitespace(column), None)
    zoned = bool(pc.any(pc.match_substring_regex(kept, r"(Z|[-+]\d\d:?\d\d)$")).as_py())
    try:
        return _nanoseconds(kept.cast(pa.timestamp("ns", "UTC" if zoned else None)))
    except pa.ArrowInvalid:
        return None


def parquet_columns(data: bytes, draft: LogDraft) -> dict[str, ArrayAny]:
    """Return the columns of numbers of a Parquet file.

    Raises:
        AssetError: It is damaged, or takes over 4 times its size and 64 MiB in memory.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(pa.BufferReader(pa.py_buffer(data)), **_ARROW_LIMITS) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
            kept = [f.name for f in schema if _numeric(f.type)]
            kept = [name for name in dict.fromkeys(kept) if schema.names.count(name) == 1][:COLUMNS_MAX]
            size = sum(-(-schema.field(name).type.bit_width // 8) for name in kept) * rows
            if size > bytes_allowed(len(data)) or rows < 0:
                raise draft.refuse(f"unpacked it takes {size:,} bytes; at most {bytes_allowed(len(data)):,} are accepted here")
            table = file.read(columns=kept, use_threads=False)
            _tell_left_out([name for name in dict.fromkeys(schema.names) if name not in kept], draft)
            return {name: _plain(table.column(name), name, draft) for name in kept}
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, MemoryError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:160].rstrip(".")
        raise draft.refuse(f"it is not a Parquet file that can be read: {harmless(reason)}") from error


def _numeric(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind) or is_time(kind))


def _plain(column: Any, name: str, draft: LogDraft) -> ArrayAny:
    """Return a column of Parquet as NumPy has it: numbers as they are, all else as of text."""
    import pyarrow as pa

    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return np.asarray(column.to_numpy())
    found = _numbers(column, name, draft)
    assert found is not None  # of a kind that is `_numeric`
    return found


def _tell_left_out(names: Sequence[str], draft: LogDraft) -> None:
    """Note columns that hold no numbers."""
    if names:
        listed = ", ".join(shown(name) for name in names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        draft.note(f"Columns without numbers are left out: {listed}.")


def bytes_allowed(size: int) -> int:
    """Return how much a packed file of some bytes may take unpacked."""
    return UNPACKED_SHARE * size + UNPACKED_BYTES


def npz_arrays(data: bytes, draft: LogDraft) -> dict[str, ArrayAny]:
    """Return every array of an .npz archive; nothing is unpickled, and headers are held against the bytes that are there.

    Raises:
        AssetError: It is damaged, or takes over 16 times its size and 64 MiB unpacked.
    """
    # Compressed float32 of a quiet sensor packs to a tenth; a bomb packs to a thousandth.
    allowed = 4 * bytes_allowed(len(data))
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            size = sum(entry.file_size for entry in entries)
            if len(entries) > COLUMNS_MAX or size > allowed:
                raise draft.refuse(f"{len(entries)} arrays unpack to {size:,} bytes; at most {allowed:,} are accepted here")
            return {entry.filename.removesuffix(".npy"): _npy(archive.read(entry), entry.filename) for entry in entries}
    except AssetError:
        raise
    except _DAMAGE as error:
        raise draft.refuse(f"it is not a .npz archive that can be read: {harmless(str(error))[:160].rstrip('.')}") from error


def _npy(data: bytes, name: str) -> ArrayAny:
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, kind = read(stream)
    count = int(np.prod([int(n) for n in shape], dtype=object)) if shape else 1
    if kind.hasobject or kind.itemsize == 0 or count < 0 or count * kind.itemsize != len(data) - stream.tell():
        raise ValueError(f"array {shown(name)} declares {count} items of {kind}, which is not what it holds")
    values = np.frombuffer(data, kind, count, stream.tell())
    return values.reshape(shape, order="F" if fortran else "C")


def flat(columns: Mapping[str, ArrayAny]) -> dict[str, ArrayAny]:
    """Return arrays of two axes as columns "name.0", "name.1" and on; others stay, what has more axes is left out."""
    found: dict[str, ArrayAny] = {}
    for name, values in columns.items():
        if values.dtype.kind not in "iufb":
            continue
        if values.ndim == 1:
            found[name] = values
        elif values.ndim == 2 and values.shape[1] <= COLUMNS_MAX:
            found |= {f"{name}.{k}": values[:, k] for k in range(values.shape[1])}
    return found
