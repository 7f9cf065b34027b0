"""Reading SPZ, versions 2 to 4 (Niantic's format): fixed-point positions and bytes for everything else.

Versions 2 and 3 are a gzip stream, or its bare content, of a 16-byte header and the attributes one after the other; version 4
is a 32-byte header, extensions, a table of (compressed, raw) sizes and one Zstandard frame per attribute. Axes are right, up,
back. Opacity and colour are bytes, colours around 0.5 with a slope of 0.15 per coefficient; scales are logarithms in steps
of 1/16 from -10; harmonics are (byte - 128) / 128.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import ArrayF32, ArrayU8
from airworthy.scenes.formats._source import ModelSource
from airworthy.scenes.splats._ply import SQRT_HALF, Decoded, Raw, from_smallest_three, reserve
from airworthy.scenes.splats.record import COEFFICIENTS

MAGIC = b"NGSP"
GZIP = b"\x1f\x8b"
COLOR_SLOPE = 0.15
NINE_BITS = 511
_DEGREE_MAX = 4
_ANTIALIASED, _EXTENDED = 1, 2
_COORDINATES = 0xADBE0003


@dataclass
class _Header:
    version: int
    count: int
    degree: int
    fraction: int
    flags: int

    def sizes(self) -> tuple[int, ...]:
        """Bytes per gaussian of position, opacity, colour, scale, rotation and harmonics."""
        return 9, 1, 3, 3, 3 if self.version == 2 else 4, 3 * ((self.degree + 1) ** 2 - 1)


def decode_spz(source: ModelSource, data: bytes | memoryview | None = None) -> Decoded:
    """Return gaussians of an SPZ file, or of SPZ data inside another."""
    data = source.data if data is None else bytes(data)
    if data[:2] == GZIP:
        header, body = _inflated(source, data)
    else:
        header = _header(source, data)
        body = _plain(source, header, data[16:]) if header.version < 4 else _streams(source, header, data)
    if header.degree >= len(COEFFICIENTS):
        source.warn(f"harmonics of degree {header.degree} cut to {len(COEFFICIENTS) - 1}")
    raw = _decoded(header, body)
    axes = "right, up, back: y is up"
    return Decoded(raw, f"SPZ version {header.version}", "y", axes, bool(header.flags & _ANTIALIASED))


def _header(source: ModelSource, data: bytes) -> _Header:
    if len(data) < 16 or data[:4] != MAGIC:
        source.refuse("it does not begin with a header of SPZ")
    version, count = struct.unpack_from("<II", data, 4)
    header = _Header(version, count, data[12], data[13], data[14])
    if version not in (2, 3, 4):
        source.refuse(f"it is SPZ version {version}; 2, 3 and 4 are read")
    if header.degree > _DEGREE_MAX or header.fraction > 30:
        source.refuse(f"it has harmonics of degree {header.degree} and {header.fraction} fractional bits, which cannot be")
    reserve(source, count, min(header.degree, 3))
    source.take(count * sum(header.sizes()), "its attributes")
    return header


def _inflated(source: ModelSource, data: bytes) -> tuple[_Header, bytes]:
    """Header and attributes of a gzip stream; no more is decompressed than the header promises."""
    stream = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        head = stream.decompress(data, 16)
        header = _header(source, head)
        size = header.count * sum(header.sizes())
        if size > 1032 * len(data):  # the most that deflate can do
            source.refuse(f"it promises {header.count:,} gaussians in {len(data):,} bytes")
        body = stream.decompress(stream.unconsumed_tail, size) if size else b""
    except zlib.error:
        source.refuse("its gzip stream is damaged")
    if header.version > 3:
        source.refuse(f"it is gzip and says version {header.version}, which is not")
    if header.flags & _EXTENDED:
        source.warn("extensions of an SPZ file passed over")
    return header, _plain(source, header, body)


def _plain(source: ModelSource, header: _Header, body: bytes) -> bytes:
    size = header.count * sum(header.sizes())
    if len(body) < size:
        source.refuse(f"it promises {header.count:,} gaussians, {size:,} bytes, and has {len(body):,}")
    return body[:size]


def _streams(source: ModelSource, header: _Header, data: bytes) -> bytes:
    """Attributes of version 4, one after the other."""
    sizes = [header.count * size for size in header.sizes() if size]
    number, table = (data[15], struct.unpack_from("<I", data, 16)[0]) if len(data) >= 32 else (0, 0)
    start = table + 16 * len(sizes)
    if number != len(sizes) or table < 32 or start > len(data):
        source.refuse("its header or its table of streams is damaged")
    if header.flags & _EXTENDED:
        _extensions(source, data[32:table])
    parts = []
    for index, size in enumerate(sizes):
        packed, raw = struct.unpack_from("<QQ", data, table + 16 * index)
        if raw != size or packed > len(data) - start:
            source.refuse(f"its stream {index} promises {raw:,} bytes of {packed:,}; {size:,} were expected")
        parts.append(_zstandard(source, data[start : start + packed], size))
        start += packed
    return b"".join(parts)


def _extensions(source: ModelSource, data: bytes) -> None:
    """Note what is passed over; a file that states other axes is refused, since it would come out wrong."""
    at = 0
    while at + 8 <= len(data):
        kind, size = struct.unpack_from("<II", data, at)
        if kind == _COORDINATES and size == 4 and data[at + 8 : at + 12] not in (b"\0\0\0\0", b"\4\0\0\0"):
            source.refuse("it states axes of its own (Adobe's extension); convert it to right, up, back")
        source.warn("extensions of an SPZ file passed over")
        at += 8 + size


def _zstandard(source: ModelSource, data: bytes, size: int) -> bytes:
    import pyarrow as pa

    if not size:
        return b""
    try:
        result = bytes(pa.Codec("zstd").decompress(data, decompressed_size=size))
    except (OSError, ValueError):  # pyarrow's errors: of the stream, and of a build without Zstandard
        source.refuse("one of its Zstandard streams is damaged, or pyarrow was built without Zstandard")
    return result


def _decoded(header: _Header, body: bytes) -> Raw:
    data = np.frombuffer(body, np.uint8)
    columns, start = [], 0
    for size in header.sizes():
        columns.append(data[start : start + size * header.count].reshape(header.count, size))
        start += size * header.count
    position, opacity, color, scale, rotation, rest = columns
    degree = min(header.degree, len(COEFFICIENTS) - 1)
    harmonics = np.empty((header.count, COEFFICIENTS[degree], 3), np.float32)
    harmonics[:, 0] = (color / np.float32(255) - np.float32(0.5)) / np.float32(COLOR_SLOPE)
    rest = rest.reshape(header.count, -1, 3)[:, : COEFFICIENTS[degree] - 1]
    harmonics[:, 1:] = (rest.astype(np.float32) - 128) / 128
    return Raw(
        _positions(position, header.fraction),
        _first_three(rotation) if header.version == 2 else _smallest_three(rotation),
        np.exp(scale.astype(np.float32) / 16 - 10),
        opacity[:, 0].astype(np.float32) / np.float32(255),
        harmonics,
    )


def _positions(data: ArrayU8, fraction: int) -> ArrayF32:
    """24-bit fixed-point numbers, sign extended."""
    wide = data.reshape(-1, 3, 3).astype(np.int32)
    value = wide[..., 0] | wide[..., 1] << 8 | wide[..., 2] << 16
    value = (value ^ 0x800000) - 0x800000
    return (value * np.float64(2.0**-fraction)).astype(np.float32)


def _first_three(data: ArrayU8) -> ArrayF32:
    """Version 2: x, y, z in bytes; w, positive, follows."""
    xyz = data.astype(np.float32) / np.float32(127.5) - 1
    w = np.sqrt(np.maximum(1 - (xyz * xyz).sum(1), 0))
    return np.concatenate([xyz, w[:, None]], 1)


def _smallest_three(data: ArrayU8) -> ArrayF32:
    """Version 3: two bits for the place of the largest of x, y, z, w, then three times a sign and nine bits."""
    bits = np.ascontiguousarray(data).view("<u4")[:, 0]
    three = np.stack([bits >> shift & NINE_BITS for shift in (20, 10, 0)], 1).astype(np.float32)
    negative = np.stack([bits >> shift & 1 for shift in (29, 19, 9)], 1)
    three = np.where(negative, -three, three) * (SQRT_HALF / np.float32(NINE_BITS))
    return from_smallest_three(bits >> 30, three.astype(np.float32))
