"""Reading PCD 0.7 point clouds: ascii, binary and binary_compressed."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

import numpy as np

from airworthy.core.arrays import ArrayAny, ArrayU8
from airworthy.core.files import shown
from airworthy.scenes.formats._source import ModelSource
from airworthy.scenes.formats._text import blocks, floats
from airworthy.scenes.formats.meshes.sampling import parse_note
from airworthy.scenes.formats.model import DEFAULT_LIMITS, FileLimits, Points
from airworthy.scenes.formats.ply import finish_points

# ---- LZF, the compression of PCD files --------------------------------------------------------------------------------------

RATIO_MAX = 88
"""Three bytes stand for at most 264: more than this cannot come out."""


def decompress(source: ModelSource, data: bytes, size: int) -> bytes:
    """Return exactly `size` bytes from LZF data; refuses data that hold more, less, or refer to what was not yet written.

    A control byte below 32 is followed by that many literal bytes and one more; otherwise its upper three bits are a length (7:
    one more byte of length follows), its lower five and the next byte a distance back.

    Args:
        source: Refuses.
        data: LZF.
        size: Bytes that the header promises.
    """
    if size > RATIO_MAX * len(data) + 32:
        source.refuse(f"it promises {size:,} bytes from {len(data):,} compressed ones, which cannot be")
    out = bytearray(size)
    read, written, end = 0, 0, len(data)
    while read < end:
        control = data[read]
        read += 1
        if control < 32:
            length = control + 1
            if read + length > end or written + length > size:
                _broken(source)
            out[written : written + length] = data[read : read + length]
            read += length
        else:
            length = control >> 5
            if length == 7:
                if read >= end:
                    _broken(source)
                length += data[read]
                read += 1
            if read >= end:
                _broken(source)
            start = written - ((control & 31) << 8) - data[read] - 1
            read += 1
            length += 2
            if start < 0 or written + length > size:
                _broken(source)
            piece = out[start : min(start + length, written)]
            if len(piece) < length:  # it overlaps what it writes: the piece repeats
                piece = (piece * (length // len(piece) + 1))[:length]
            out[written : written + length] = piece
        written += length
    if written != size:
        _broken(source)
    return bytes(out)


def _broken(source: ModelSource) -> NoReturn:
    source.refuse("its compressed data are damaged")


# -----------------------------------------------------------------------------------------------------------------------------

_HEADER_MAX = 1 << 16
_KEYS = ("VERSION", "FIELDS", "SIZE", "TYPE", "COUNT", "WIDTH", "HEIGHT", "VIEWPOINT", "POINTS", "DATA")
_CODES = {(letter, size): f"<{letter.lower()}{size}" for letter in "IU" for size in (1, 2, 4, 8)}
_CODES |= {("F", 4): "<f4", ("F", 8): "<f8"}
_WIDE = ("<f8", "<i4", "<u4", "<i8", "<u8")
"""Coordinates that a float32 does not keep; text is taken as it is declared."""


@dataclass(frozen=True)
class _Header:
    fields: tuple[str, ...]
    codes: tuple[str, ...]
    counts: tuple[int, ...]
    points: int
    encoding: str
    body: int
    comments: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """Numbers of a point."""
        return sum(self.counts)

    @property
    def size(self) -> int:
        """Bytes of a point."""
        return sum(np.dtype(code).itemsize * count for code, count in zip(self.codes, self.counts, strict=True))


def read_pcd(path: str | Path, limits: FileLimits = DEFAULT_LIMITS) -> Points:
    """Return points of a PCD file; its view point is not applied, points that are not finite are dropped.

    Raises:
        AssetError: The file is damaged, too large, or holds no points.
    """
    source = ModelSource(path, limits)
    header = _header(source)
    source.at_most(header.points, limits.vertices, "points")
    filled = {name for name, count in zip(header.fields, header.counts, strict=True) if count}
    wanted: list[str] = [name for name in ("x", "y", "z", "rgb", "rgba", "intensity") if name in filled]
    if wanted[:3] != ["x", "y", "z"] or any(header.fields.count(name) > 1 for name in wanted):
        source.refuse("its fields have no x, y and z, or one of them twice")
    columns = (_text if header.encoding == "ascii" else _binary)(source, header, wanted)
    with np.errstate(over="ignore", invalid="ignore"):
        kind = np.float64 if any(header.codes[header.fields.index(name)] in _WIDE for name in "xyz") else np.float32
        positions = np.stack([columns[name].astype(kind) for name in "xyz"], 1)
        intensity = columns["intensity"].astype(np.float32) if "intensity" in columns else None
    color = columns.get("rgb", columns.get("rgba"))
    found = finish_points(source, positions, None if color is None else _unpacked(color), intensity)
    return replace(found, note=parse_note(header.comments))


def _header(source: ModelSource) -> _Header:
    entries: dict[str, list[str]] = {}
    comments: list[str] = []
    start = 0
    # The header's last line, behind which anything may stand.
    while "DATA" not in entries:
        end = source.data.find(b"\n", start, _HEADER_MAX)
        if end < 0:
            source.refuse("its header does not end with a DATA line")
        tokens = source.data[start:end].decode("latin-1").split()
        start = end + 1
        if tokens and tokens[0].startswith("#"):
            comments.append(" ".join(tokens).lstrip("#"))
        elif tokens:
            if tokens[0] not in _KEYS:
                source.refuse(f"its header holds the line {shown(' '.join(tokens))}")
            entries[tokens[0]] = tokens[1:]
    fields = tuple(entries.get("FIELDS", ()))
    sizes, types = entries.get("SIZE", []), entries.get("TYPE", [])
    # One of each, where an old file does not say.
    counts = entries.get("COUNT", ["1"] * len(fields))
    if not 0 < len(fields) == len(sizes) == len(types) == len(counts) <= 256:
        source.refuse("the FIELDS, SIZE, TYPE and COUNT of its header do not match")
    numbers = tuple(_number(source, text, 1 << 16) for text in counts)
    codes = tuple(_code(source, kind, size) for kind, size in zip(types, sizes, strict=True))
    limit = len(source.data)
    points = entries.get("POINTS")
    if points:
        count = _number(source, points[0], limit)
    else:
        # Organised clouds give rows and columns; POINTS repeats their product and may be missing.
        count = _number(source, (entries.get("WIDTH") or ["0"])[0], limit) * _number(
            source, (entries.get("HEIGHT") or ["1"])[0], limit
        )
    encoding = (entries["DATA"] or [""])[0]
    if encoding not in ("ascii", "binary", "binary_compressed"):
        source.refuse(f"its data are {shown(encoding)}; ascii, binary and binary_compressed are known")
    return _Header(fields, codes, numbers, count, encoding, start, tuple(comments))


def _number(source: ModelSource, token: str, limit: int) -> int:
    """Return a count of the header; more than there are bytes is a lie, whatever is counted (except where it is compressed)."""
    if not (token.isascii() and token.isdigit() and len(token) <= 20) or int(token) > 128 * limit:
        source.refuse(f"its header holds the count {shown(token)}, which does not fit a file of {len(source.data):,} bytes")
    return int(token)


def _code(source: ModelSource, kind: str, size: str) -> str:
    code = _CODES.get((kind, int(size))) if size in ("1", "2", "4", "8") else None
    if code is None:
        source.refuse(f"its header holds a field of type {shown(kind)} and size {shown(size)}")
    return code


def _text(source: ModelSource, header: _Header, wanted: list[str]) -> dict[str, ArrayAny]:
    body = source.data[header.body :]
    if header.points * header.width * 2 > len(body) + 1:  # a number takes a digit and a blank
        _short(source, header)
    kept = 8 * len(wanted) + 24
    source.take(kept * header.points, "its points")
    first = np.cumsum(header.counts) - header.counts
    at = [int(first[header.fields.index(name)]) for name in wanted]
    table = np.empty((header.points, len(wanted)))
    # Block by block: the numbers of a line may be split between two.
    filled, rest = 0, np.zeros(0)
    for block in blocks(source, body):
        values = np.concatenate([rest, floats(source, block, "its points")])
        rows = min(len(values) // header.width, header.points - filled)
        table[filled : filled + rows] = values[: rows * header.width].reshape(rows, header.width)[:, at]
        filled += rows
        rest = values[rows * header.width :]
        if filled == header.points:
            break
    if filled < header.points:
        _short(source, header)
    return {name: _as_declared(table[:, i], name, header) for i, name in enumerate(wanted)}


def _as_declared(column: ArrayAny, name: str, header: _Header) -> ArrayAny:
    """Read a packed colour that was written as text: an integer, or the float of the same bits."""
    if name not in ("rgb", "rgba"):
        return column
    sound = np.nan_to_num(column, nan=0.0, posinf=0.0, neginf=0.0)
    if header.codes[header.fields.index(name)] == "<f4":
        # Within float32, where a cast would overflow to infinity and lose the bits that are a colour.
        return sound.clip(-3e38, 3e38).astype("<f4")
    return sound.clip(0, 2**32 - 1).astype("<u4")


def _binary(source: ModelSource, header: _Header, wanted: list[str]) -> dict[str, ArrayAny]:
    if header.encoding == "binary":
        if header.points * header.size > len(source.data) - header.body:
            _short(source, header)
        names = [f"p{index}" for index in range(len(header.fields))]
        row = np.dtype([(n, c, (k,)) for n, c, k in zip(names, header.codes, header.counts, strict=True)])
        source.take(36 * header.points, "its points")
        rows = np.frombuffer(source.data, row, header.points, header.body)
        return {name: rows[f"p{header.fields.index(name)}"][:, 0] for name in wanted}
    return _compressed(source, header, wanted)


def _compressed(source: ModelSource, header: _Header, wanted: list[str]) -> dict[str, ArrayAny]:
    """Return all values of the first field, then all of the second, and so on, compressed as one block."""
    if len(source.data) < header.body + 8:
        _short(source, header)
    packed, size = struct.unpack_from("<II", source.data, header.body)
    if packed > len(source.data) - header.body - 8 or size < header.points * header.size:
        _short(source, header)
    source.take(size + 36 * header.points, "its points")
    data = decompress(source, source.data[header.body + 8 : header.body + 8 + packed], size)
    columns = {}
    start = 0
    for name, code, count in zip(header.fields, header.codes, header.counts, strict=True):
        if name in wanted and name not in columns and count:
            values = np.frombuffer(data, code, header.points * count, start)
            columns[name] = values.reshape(header.points, count)[:, 0]
        # Fields that nobody wants are passed over, but have their room.
        start += header.points * count * np.dtype(code).itemsize
    return columns


def _unpacked(color: ArrayAny) -> ArrayU8:
    """(n, 3) of colours packed as 0x00RRGGBB into an integer or the bits of a float32."""
    packed = np.ascontiguousarray(color)
    bits = packed.view("<u4") if packed.dtype == np.dtype("<f4") else packed.astype(np.int64).astype(np.uint32)
    return np.stack([(bits >> shift & 255).astype(np.uint8) for shift in (16, 8, 0)], 1)


def _short(source: ModelSource, header: _Header) -> NoReturn:
    source.refuse(f"it promises {header.points:,} points of {header.size} bytes and ends before the last")
