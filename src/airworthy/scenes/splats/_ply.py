"""Reading gaussians from PLY: the plain float form of 3DGS (also Nerfstudio's) and the packed form of PlayCanvas.

Plain: x, y, z; f_dc_0..2; f_rest_* with all coefficients of red first, then green, then blue; opacity as a logit; scale_0..2 as
logarithms; rot_0..3 as w, x, y, z of any length. (Kerbl et al. 2023, reference implementation.)

Packed: chunks of 256 gaussians with their bounds, and 32-bit words within them: position and log-scale of 11, 10 and 11 bits,
the quaternion as the place of its largest component (2 bits) and three others of 10 bits, colour and opacity of 8 bits each.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.scenes.formats._ply import Table, read_tables
from airworthy.scenes.formats._source import Source
from airworthy.scenes.splats._raw import Decoded, Raw, exponential, first_harmonic, reserve, sigmoid
from airworthy.scenes.splats._unpack import SQRT_HALF, from_smallest_three, wxyz_to_xyzw
from airworthy.scenes.splats.record import COEFFICIENTS

Floats = NDArray[np.float32]
CHUNK = 256
_XYZ = ("x", "y", "z")
_SCALES = ("scale_0", "scale_1", "scale_2")
_ROTATION = ("rot_0", "rot_1", "rot_2", "rot_3")
_DC = ("f_dc_0", "f_dc_1", "f_dc_2")
_RGB = ("red", "green", "blue")
_PACKED = ("packed_position", "packed_rotation", "packed_scale", "packed_color")
_VERTICAL = re.compile(rb"comment [Vv]ertical [Aa]xis: *([+-]?)([xyzXYZ])\s")
_HEADER_MAX = 1 << 16


def decode_ply(source: Source) -> Decoded:
    """Gaussians of a PLY file of either form."""
    tables = read_tables(source, ("chunk", "vertex", "sh"))
    vertex = tables.get("vertex", Table())
    if _PACKED[0] in vertex.columns:
        raw, kind = _unpacked(source, tables.get("chunk", Table()), vertex, tables.get("sh", Table())), "packed PLY"
    else:
        raw, kind = _plain(source, vertex), "PLY"
    head = source.data[: max(source.data.find(b"end_header", 0, _HEADER_MAX), 0)]
    nerfstudio = b"Nerfstudio" in head
    said = _VERTICAL.search(head)
    up = said[1].decode().replace("+", "") + said[2].decode().lower() if said else "z" if nerfstudio else "-y"
    axes = f"its header says that the vertical axis is {up}" if said else ""
    return Decoded(raw, f"{kind} of Nerfstudio" if nerfstudio else kind, up, axes)


def _need(source: Source, table: Table, names: tuple[str, ...], what: str) -> None:
    missing = [name for name in names if name not in table.columns]
    if missing:
        source.refuse(f"its {what} have no {' and no '.join(missing)}; splats were expected")


def _stacked(table: Table, names: tuple[str, ...]) -> Floats:
    """(n, len(names)) float32."""
    first = table.columns[names[0]]
    result = np.empty((len(first), len(names)), np.float32)
    for index, name in enumerate(names):
        result[:, index] = table.columns[name]
    return result


def _rest(source: Source, table: Table) -> int:
    """Degree by the number of f_rest columns."""
    count = 0
    while f"f_rest_{count}" in table.columns:
        count += 1
    for degree, coefficients in enumerate((*COEFFICIENTS, 25)):
        if count == 3 * (coefficients - 1):
            return degree
    return source.refuse(f"it has {count} columns f_rest; expected 0, 9, 24 or 45")


def _filled(source: Source, first: Floats, table: Table, rest: int, convert: Any) -> Floats:
    """(n, k, 3) of the first coefficients, (n, 1, 3), and the columns f_rest."""
    degree = min(rest, len(COEFFICIENTS) - 1)
    if rest > degree:
        source.warn(f"harmonics of degree {rest} cut to {degree}")
    stride, wanted = (rest + 1) ** 2 - 1, COEFFICIENTS[degree] - 1
    result = np.empty((len(first), wanted + 1, 3), np.float32)
    result[:, :1] = first
    for channel in range(3):
        for index in range(wanted):
            result[:, 1 + index, channel] = convert(table.columns[f"f_rest_{channel * stride + index}"])
    return result


def _plain(source: Source, vertex: Table) -> Raw:
    _need(source, vertex, (*_XYZ, *_SCALES, *_ROTATION, "opacity"), "vertices")
    rest = _rest(source, vertex)
    reserve(source, len(vertex.columns["x"]), min(rest, 3))
    if all(name in vertex.columns for name in _DC):
        first = _stacked(vertex, _DC)[:, None, :]
    else:
        _need(source, vertex, _RGB, "vertices")
        first = first_harmonic(_stacked(vertex, _RGB) / np.float32(255.0))
    return Raw(
        _stacked(vertex, _XYZ),
        wxyz_to_xyzw(_stacked(vertex, _ROTATION)),
        exponential(_stacked(vertex, _SCALES)),
        sigmoid(_stacked(vertex, ("opacity",))[:, 0]),
        _filled(source, first, vertex, rest, lambda column: column),
    )


def _unpacked(source: Source, chunk: Table, vertex: Table, sh: Table) -> Raw:
    bounds = [f"{end}_{axis}" for end in ("min", "max") for axis in _XYZ]
    bounds += [f"{end}_scale_{axis}" for end in ("min", "max") for axis in _XYZ]
    _need(source, chunk, tuple(bounds), "chunks")
    _need(source, vertex, _PACKED, "vertices")
    count, chunks = len(vertex.columns[_PACKED[0]]), len(chunk.columns["min_x"])
    if -(-count // CHUNK) > chunks:
        source.refuse(f"it has {count:,} gaussians in {chunks:,} chunks of {CHUNK}")
    rest = _rest(source, sh)
    if rest and len(sh.columns["f_rest_0"]) != count:
        source.refuse(f"it has {count:,} gaussians and harmonics of {len(sh.columns['f_rest_0']):,}")
    reserve(source, count, min(rest, 3))
    words = [_word(source, vertex, name) for name in _PACKED]
    of_chunk = np.arange(count) // CHUNK
    color = np.stack([(words[3] >> shift & 255) for shift in (24, 16, 8)], 1).astype(np.float32) / np.float32(255)
    if "min_r" in chunk.columns:
        _need(source, chunk, ("min_r", "min_g", "min_b", "max_r", "max_g", "max_b"), "chunks")
        color = _between(chunk, of_chunk, ("min_r", "min_g", "min_b"), ("max_r", "max_g", "max_b"), color)
    return Raw(
        _between(chunk, of_chunk, tuple(bounds[:3]), tuple(bounds[3:6]), _eleven_ten_eleven(words[0])),
        _rotation(words[1]),
        exponential(_between(chunk, of_chunk, tuple(bounds[6:9]), tuple(bounds[9:]), _eleven_ten_eleven(words[2]))),
        (words[3] & 255).astype(np.float32) / np.float32(255),
        _filled(source, first_harmonic(color), sh, rest, _rest_of_bytes),
    )


def _word(source: Source, vertex: Table, name: str) -> NDArray[np.uint32]:
    column = vertex.columns[name]
    if column.dtype.kind == "f":  # an ASCII file
        column = np.nan_to_num(column, nan=0.0).clip(0, 2**32 - 1).astype(np.uint32)
    if column.dtype.kind not in "iu" or column.dtype.itemsize != 4:
        source.refuse(f"its {name} is not a 32-bit integer")
    return column.astype(np.uint32)


def _eleven_ten_eleven(word: NDArray[np.uint32]) -> Floats:
    """(n, 3) in [0, 1]."""
    parts = ((word >> 21) / np.float32(2047), (word >> 11 & 1023) / np.float32(1023), (word & 2047) / np.float32(2047))
    return np.stack(parts, 1).astype(np.float32)


def _between(chunk: Table, of_chunk: NDArray[np.int64], low: tuple[str, ...], high: tuple[str, ...], part: Floats) -> Floats:
    least, most = _stacked(chunk, low)[of_chunk], _stacked(chunk, high)[of_chunk]
    return least * (1 - part) + most * part


def _rotation(word: NDArray[np.uint32]) -> Floats:
    three = np.stack([word >> 20 & 1023, word >> 10 & 1023, word & 1023], 1).astype(np.float32)
    three = (three / np.float32(1023) - np.float32(0.5)) / SQRT_HALF
    return wxyz_to_xyzw(from_smallest_three(word >> 30, three))


def _rest_of_bytes(column: NDArray[Any]) -> Floats:
    """Harmonics of bytes: bins of 1/256 over -4 to 4, their middles, and the ends as they are."""
    value = column.astype(np.float32)
    part = np.where(value <= 0, 0.0, np.where(value >= 255, 1.0, (value + 0.5) / 256.0))
    return ((part - 0.5) * 8.0).astype(np.float32)
