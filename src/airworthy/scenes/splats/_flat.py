"""Reading .splat and .ksplat: records of fixed size.

.splat: 32 bytes per gaussian, no header: position and scale as floats, red, green, blue and opacity as bytes, the quaternion
w, x, y, z as (byte - 128) / 128.

.ksplat: a header of 4096 bytes, one of 1024 per section, then the sections: counts and centres of buckets, and records at one
of three levels of compression. Positions of levels 1 and 2 are 16-bit offsets from the centre of the bucket.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from airworthy.scenes.formats._source import Source
from airworthy.scenes.splats._raw import Decoded, Raw, first_harmonic, joined, reserve
from airworthy.scenes.splats._unpack import wxyz_to_xyzw
from airworthy.scenes.splats.record import COEFFICIENTS

Floats = NDArray[np.float32]
_SPLAT = np.dtype([("position", "<f4", 3), ("scale", "<f4", 3), ("color", "u1", 4), ("rotation", "u1", 4)])
_HEADER, _SECTION = 4096, 1024
_SECTIONS_MAX = 1024
_KINDS = (("<f4", "<f4", "<f4"), ("<u2", "<f2", "<f2"), ("<u2", "<f2", "u1"))
"""Of positions; of scales and rotations; of harmonics: by level of compression."""
_RANGE = (1, 32767, 32767)


def decode_splat(source: Source) -> Decoded:
    """Gaussians of a .splat file."""
    count, rest = divmod(len(source.data), _SPLAT.itemsize)
    if rest or not count:
        source.refuse(f"it has {len(source.data):,} bytes, which is no multiple of {_SPLAT.itemsize}")
    reserve(source, count, 0)
    rows = np.frombuffer(source.data, _SPLAT, count)
    color = rows["color"].astype(np.float32) / np.float32(255)
    rotation = (rows["rotation"].astype(np.float32) - 128) / 128
    scale, position = np.array(rows["scale"]), np.array(rows["position"])
    raw = Raw(position, wxyz_to_xyzw(rotation), scale, color[:, 3].copy(), first_harmonic(color[:, :3]))
    return Decoded(raw, ".splat", "-y")


def decode_ksplat(source: Source) -> Decoded:
    """Gaussians of a .ksplat file."""
    data = source.data
    if len(data) < _HEADER:
        source.refuse("it ends within its header")
    if data[0] != 0 or data[1] < 1:
        source.refuse(f"it is ksplat {data[0]}.{data[1]}; 0.1 is read")
    sections, (level,) = struct.unpack_from("<I", data, 4)[0], struct.unpack_from("<H", data, 20)
    source.at_most(sections, _SECTIONS_MAX, "sections")
    if level > 2:
        source.refuse(f"it has the compression level {level}; 0, 1 and 2 are known")
    start = _HEADER + _SECTION * sections
    if start > len(data):
        source.refuse(f"it promises {sections:,} sections and ends within their headers")
    low, high = struct.unpack_from("<2f", data, 36)
    span = (low, high) if np.isfinite([low, high]).all() and low < high else (-1.5, 1.5)
    parts = []
    for number in range(sections):
        section = _Section.read(source, number, level, start)
        if section.count:
            parts.append(_section(source, section, level, span))
        start = section.end
    if not parts:
        source.refuse("it holds no gaussian")
    return Decoded(joined(parts), f"ksplat of compression level {level}", "-y")


@dataclass
class _Section:
    count: int
    capacity: int
    """Of a bucket."""
    buckets: int
    block: float
    reach: int
    full: int
    partial: int
    degree: int
    start: int
    """Of the section's data in the file: counts of partly filled buckets, centres, records."""
    records: int
    end: int
    kind: np.dtype

    @classmethod
    def read(cls, source: Source, number: int, level: int, start: int) -> _Section:
        data = source.data
        head = _HEADER + _SECTION * number
        count, most, capacity, buckets = struct.unpack_from("<4I", data, head)
        (block,) = struct.unpack_from("<f", data, head + 16)
        (storage,) = struct.unpack_from("<H", data, head + 20)
        reach, _, full, partial = struct.unpack_from("<4I", data, head + 24)
        (degree,) = struct.unpack_from("<H", data, head + 40)
        if degree >= len(COEFFICIENTS):
            source.refuse(f"its section {number} has harmonics of degree {degree}")
        kind = _record(level, degree)
        records = start + storage * buckets + 4 * partial
        end = records + kind.itemsize * most
        if count > most or records + kind.itemsize * count > len(data):
            source.refuse(f"its section {number} promises {count:,} gaussians and the file ends before the last")
        if level and (full + partial > buckets or (buckets and storage < 12)):
            source.refuse(f"its section {number} has {full + partial:,} of {buckets:,} buckets, of {storage} bytes each")
        return cls(count, capacity, buckets, block, reach or _RANGE[level], full, partial, degree, start, records, end, kind)


def _record(level: int, degree: int) -> np.dtype:
    position, middle, harmonic = _KINDS[level]
    fields = [("position", position, (3,)), ("scale", middle, (3,)), ("rotation", middle, (4,)), ("color", "u1", (4,))]
    return np.dtype([*fields, ("rest", harmonic, (3 * (COEFFICIENTS[degree] - 1),))])


def _section(source: Source, section: _Section, level: int, span: tuple[float, float]) -> Raw:
    reserve(source, section.count, section.degree)
    rows = np.frombuffer(source.data, section.kind, section.count, section.records)
    color = rows["color"].astype(np.float32) / np.float32(255)
    position = rows["position"].astype(np.float32)
    if level:
        step = np.float32(section.block / 2 / section.reach)
        position = (position - section.reach) * step + _centres(source, section)
    return Raw(
        np.ascontiguousarray(position),
        wxyz_to_xyzw(rows["rotation"].astype(np.float32)),
        rows["scale"].astype(np.float32),
        color[:, 3].copy(),
        _harmonics(section, rows, first_harmonic(color[:, :3]), level, span),
    )


def _centres(source: Source, section: _Section) -> Floats:
    """(count, 3) centre of the bucket of each gaussian: first the full buckets, then those of stated length."""
    data = source.data
    lengths = np.frombuffer(data, "<u4", section.partial, section.start).astype(np.int64)
    filled = min(section.full * section.capacity, section.count)
    bucket = np.empty(section.count, np.int64)
    bucket[:filled] = np.arange(filled) // max(section.capacity, 1)
    ends = section.full * section.capacity + np.cumsum(lengths)
    bucket[filled:] = section.full + np.searchsorted(ends, np.arange(filled, section.count), side="right")
    if section.count and bucket.max() >= section.buckets:
        source.refuse("it has gaussians outside its buckets")
    begin = section.start + 4 * section.partial
    size = (section.records - begin) // max(section.buckets, 1)
    table = np.frombuffer(data, np.uint8, size * section.buckets, begin).reshape(section.buckets, size)
    return np.ascontiguousarray(table[:, :12]).view("<f4")[bucket]


def _harmonics(section: _Section, rows: NDArray, first: Floats, level: int, span: tuple[float, float]) -> Floats:
    """Within a degree, all coefficients of red come first, then green, then blue."""
    result = np.empty((section.count, COEFFICIENTS[section.degree], 3), np.float32)
    result[:, :1] = first
    rest = rows["rest"].astype(np.float32)
    if level == 2:
        rest = np.float32(span[0]) + rest / np.float32(255) * np.float32(span[1] - span[0])
    for degree in range(1, section.degree + 1):
        low, high = COEFFICIENTS[degree - 1], COEFFICIENTS[degree]
        block = rest[:, 3 * (low - 1) : 3 * (high - 1)].reshape(section.count, 3, high - low)
        result[:, low:high] = block.transpose(0, 2, 1)
    return result
