"""Gaussians as decoded from a file, before they are checked: activated values that may be nonsense.

The reader silences NumPy's floating-point warnings for all decoders: what is not finite in the end is dropped here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayAny, ArrayBool, ArrayF32, ArrayInt, ArrayU32, NDArray
from airworthy.scenes.formats._source import ModelSource
from airworthy.scenes.formats.ply import Table, read_tables
from airworthy.scenes.splats.capture_frame import SourceFrame, read_capture_comments
from airworthy.scenes.splats.record import C0, COEFFICIENTS, Splats, with_degree

# ---- Packed quaternions and ranges, as several containers have them ---------------------------------------------------------

SQRT_HALF = np.float32(np.sqrt(0.5))
_OTHERS = np.array([[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]])


def from_smallest_three(largest: NDArray[np.integer], three: NDArray[np.floating]) -> ArrayF32:
    """Return (n, 4) unit quaternions of the place of the largest component, (n,), and the three others in order, (n, 3).

    The largest is taken as positive, which q and -q being the same rotation allows.
    """
    result = np.zeros((len(three), 4), np.float32)
    rest = np.sqrt(np.maximum(1.0 - np.einsum("ij,ij->i", three, three), 0.0))
    for slot, others in enumerate(_OTHERS):
        rows = np.flatnonzero(largest == slot)
        result[rows, slot] = rest[rows]
        for column, other in enumerate(others):
            result[rows, other] = three[rows, column]
    return result


def smallest_three(rotation: NDArray[np.floating]) -> tuple[ArrayInt, ArrayF32]:
    """Return the inverse of `from_smallest_three`."""
    largest = np.abs(rotation).argmax(1)
    rows = np.arange(len(rotation))
    sign = np.where(rotation[rows, largest] < 0, -1.0, 1.0)
    three = np.take_along_axis(rotation, _OTHERS[largest], 1) * sign[:, None]
    return largest, three.astype(np.float32)


def wxyz_to_xyzw(rotation: NDArray[np.floating]) -> ArrayF32:
    """Return (n, 4) with the real part last."""
    return np.ascontiguousarray(rotation[:, [1, 2, 3, 0]], np.float32)


# -----------------------------------------------------------------------------------------------------------------------------

SCALE_MIN = 1e-9
SCALE_MAX = 1e5
"""Standard deviations [m] below the first are raised to it, gaussians above the second are dropped."""
_HARMONIC_MAX = 1e4
_NORM_MIN = 1e-12
_BLOCK = 1 << 16
_HELD = 3  # arrays that are alive at once while a file is decoded, turned and checked, in units of the result


@dataclass
class Raw:
    """Float32 arrays of n gaussians."""

    position: ArrayF32
    """(n, 3)."""
    rotation: ArrayF32
    """(n, 4) x, y, z, w of any length."""
    scale: ArrayF32
    """(n, 3) standard deviations."""
    opacity: ArrayF32
    """(n,)."""
    harmonics: ArrayF32
    """(n, k, 3)."""


@dataclass
class Decoded:
    """What a container's decoder gives."""

    raw: Raw
    container: str
    up: str
    """The axis that the container, or its custom, says is up."""
    axes: str = ""
    antialiased: bool = False
    levels: int = 1
    dropped: dict[str, int] = field(default_factory=dict)
    """Of gaussians that the decoder itself left out."""
    capture: SourceFrame | None = None
    """From the frame of the capture to that of the place, where the file says."""
    in_capture: bool = False
    """Whether coordinates are in the frame of the capture."""


def reserve(source: ModelSource, count: int, degree: int) -> None:
    """Refuse none, or more gaussians than the limits allow, and count their memory, before anything is allocated.

    Args:
        source: Refuses, and counts memory.
        count: Gaussians.
        degree: Of the spherical harmonics.
    """
    if not count:
        source.refuse("it holds no gaussian")
    source.at_most(count, source.limits.vertices, "gaussians")
    source.take(_HELD * count * 4 * (11 + 3 * COEFFICIENTS[degree]), f"its {count:,} gaussians")


def sigmoid(values: NDArray[np.floating]) -> ArrayF32:
    """Return opacities of logits; infinities become 0 and 1, NaN stays."""
    return np.asarray(1.0 / (1.0 + np.exp(-values.astype(np.float32))), np.float32)


def exponential(values: NDArray[np.floating]) -> ArrayF32:
    """Return scales of their logarithms; too large ones become infinite, and are dropped later."""
    return np.exp(values.astype(np.float32))


def first_harmonic(colors: NDArray[np.floating]) -> ArrayF32:
    """Return coefficients of degree 0, (n, 1, 3), of colours (n, 3) in [0, 1]."""
    return np.asarray((colors.astype(np.float32) - 0.5) / C0, np.float32)[:, None, :]


def joined(parts: list[Raw]) -> Raw:
    """Return gaussians of several files; harmonics of a lower degree are filled with zeros."""
    if len(parts) == 1:
        return parts[0]
    degree = max(COEFFICIENTS.index(part.harmonics.shape[1]) for part in parts)
    return Raw(
        np.concatenate([part.position for part in parts]),
        np.concatenate([part.rotation for part in parts]),
        np.concatenate([part.scale for part in parts]),
        np.concatenate([part.opacity for part in parts]),
        np.concatenate([with_degree(part.harmonics, degree) for part in parts]),
    )


def checked(source: ModelSource, raw: Raw) -> tuple[Splats, dict[str, int]]:
    """Return splats of what is sound, and how many gaussians were dropped by reason; each is counted once.

    Raises:
        AssetError: Nothing is left.
    """
    if not len(raw.position):
        source.refuse("it holds no gaussian")
    limit = np.float32(source.limits.coordinate)
    keep = np.ones(len(raw.position), bool)
    dropped: dict[str, int] = {}

    def drop(reason: str, bad: Any) -> None:
        number = int((bad & keep).sum())
        if number:
            dropped[reason] = number
            keep[bad] = False

    drop(f"position not finite or beyond {limit:g} m", ~_all_within(raw.position, limit))
    norm = np.sqrt(np.einsum("ij,ij->i", raw.rotation, raw.rotation))
    drop("rotation zero or not finite", ~(np.isfinite(norm) & (norm > _NORM_MIN)))
    drop("scale zero or not finite", ~((raw.scale > 0) & np.isfinite(raw.scale)).all(1))
    drop(f"scale above {SCALE_MAX:g} m", (raw.scale > SCALE_MAX).any(1))
    drop("opacity outside 0 to 1", ~((raw.opacity >= -1e-3) & (raw.opacity <= 1 + 1e-3)))
    drop("colour not finite or absurd", ~_all_within(raw.harmonics.reshape(len(keep), -1), np.float32(_HARMONIC_MAX)))
    for reason, number in dropped.items():
        source.warn(f"gaussians dropped: {reason}", number)
    if not keep.any():
        source.refuse("it holds no sound gaussian")
    if not keep.all():
        raw, norm = _kept(raw, keep), norm[keep]
    tiny = int((raw.scale < SCALE_MIN).any(1).sum())
    if tiny:
        source.warn(f"gaussians thinner than {SCALE_MIN:g} m made that thick", tiny)
    rotation = raw.rotation / norm[:, None]
    opacity = raw.opacity.clip(0.0, 1.0)
    return Splats(raw.position, rotation, np.maximum(raw.scale, SCALE_MIN), opacity, raw.harmonics), dropped


def _all_within(values: ArrayF32, limit: np.float32) -> ArrayBool:
    """(n,) whether all numbers of a row are finite and within a limit; in blocks, which bounds the memory."""
    result = np.empty(len(values), bool)
    for start in range(0, len(values), _BLOCK):
        here = slice(start, start + _BLOCK)
        result[here] = (np.abs(values[here]) <= limit).all(1)  # False also for NaN
    return result


def _kept(raw: Raw, keep: ArrayBool) -> Raw:
    return Raw(raw.position[keep], raw.rotation[keep], raw.scale[keep], raw.opacity[keep], raw.harmonics[keep])


# -----------------------------------------------------------------------------------------------------------------------------
# Reading gaussians from PLY: the plain float form of 3DGS (also Nerfstudio's) and the packed form of PlayCanvas.
#
# Plain: x, y, z; f_dc_0..2; f_rest_* with all coefficients of red first, then green, then blue; opacity as a logit;
# scale_0..2 as logarithms; rot_0..3 as w, x, y, z of any length. (Kerbl et al. 2023, reference implementation.)
#
# Packed: chunks of 256 gaussians with their bounds, and 32-bit words within them: position and log-scale of 11, 10 and 11
# bits, the quaternion as the place of its largest component (2 bits) and three others of 10 bits, colour and opacity of 8
# bits each.

CHUNK = 256
_XYZ = ("x", "y", "z")
_SCALES = ("scale_0", "scale_1", "scale_2")
_ROTATION = ("rot_0", "rot_1", "rot_2", "rot_3")
_DC = ("f_dc_0", "f_dc_1", "f_dc_2")
_RGB = ("red", "green", "blue")
_PACKED = ("packed_position", "packed_rotation", "packed_scale", "packed_color")
_VERTICAL = re.compile(rb"comment [Vv]ertical [Aa]xis: *([+-]?)([xyzXYZ])\s")
_HEADER_MAX = 1 << 16


def decode_ply(source: ModelSource) -> Decoded:
    """Return gaussians of a PLY file of either form."""
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
    capture, in_capture, wrong = read_capture_comments(head)
    if wrong:
        source.warn(wrong)
    up = "z" if in_capture else up
    return Decoded(raw, f"{kind} of Nerfstudio" if nerfstudio else kind, up, axes, capture=capture, in_capture=in_capture)


def _need(source: ModelSource, table: Table, names: tuple[str, ...], what: str) -> None:
    missing = [name for name in names if name not in table.columns]
    if missing:
        source.refuse(f"its {what} have no {' and no '.join(missing)}; splats were expected")


def _stacked(table: Table, names: tuple[str, ...]) -> ArrayF32:
    """(n, len(names)) float32."""
    first = table.columns[names[0]]
    result = np.empty((len(first), len(names)), np.float32)
    for index, name in enumerate(names):
        result[:, index] = table.columns[name]
    return result


def _rest(source: ModelSource, table: Table) -> int:
    """Degree by the number of f_rest columns."""
    count = 0
    while f"f_rest_{count}" in table.columns:
        count += 1
    for degree, coefficients in enumerate((*COEFFICIENTS, 25)):
        if count == 3 * (coefficients - 1):
            return degree
    return source.refuse(f"it has {count} columns f_rest; expected 0, 9, 24 or 45")


def _filled(source: ModelSource, first: ArrayF32, table: Table, rest: int, convert: Any) -> ArrayF32:
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


def _plain(source: ModelSource, vertex: Table) -> Raw:
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


def _unpacked(source: ModelSource, chunk: Table, vertex: Table, sh: Table) -> Raw:
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
    packed = [_packed_column(source, vertex, name) for name in _PACKED]
    of_chunk = np.arange(count) // CHUNK
    color = np.stack([(packed[3] >> shift & 255) for shift in (24, 16, 8)], 1).astype(np.float32) / np.float32(255)
    if "min_r" in chunk.columns:
        _need(source, chunk, ("min_r", "min_g", "min_b", "max_r", "max_g", "max_b"), "chunks")
        color = _between(chunk, of_chunk, ("min_r", "min_g", "min_b"), ("max_r", "max_g", "max_b"), color)
    return Raw(
        _between(chunk, of_chunk, tuple(bounds[:3]), tuple(bounds[3:6]), _eleven_ten_eleven(packed[0])),
        _rotation(packed[1]),
        exponential(_between(chunk, of_chunk, tuple(bounds[6:9]), tuple(bounds[9:]), _eleven_ten_eleven(packed[2]))),
        (packed[3] & 255).astype(np.float32) / np.float32(255),
        _filled(source, first_harmonic(color), sh, rest, _rest_of_bytes),
    )


def _packed_column(source: ModelSource, vertex: Table, name: str) -> ArrayU32:
    column = vertex.columns[name]
    if column.dtype.kind == "f":  # an ASCII file
        column = np.nan_to_num(column, nan=0.0).clip(0, 2**32 - 1).astype(np.uint32)
    if column.dtype.kind not in "iu" or column.dtype.itemsize != 4:
        source.refuse(f"its {name} is not a 32-bit integer")
    return column.astype(np.uint32)


def _eleven_ten_eleven(bits: ArrayU32) -> ArrayF32:
    """(n, 3) in [0, 1]."""
    parts = ((bits >> 21) / np.float32(2047), (bits >> 11 & 1023) / np.float32(1023), (bits & 2047) / np.float32(2047))
    return np.stack(parts, 1).astype(np.float32)


def _between(chunk: Table, of_chunk: ArrayInt, low: tuple[str, ...], high: tuple[str, ...], part: ArrayF32) -> ArrayF32:
    least, most = _stacked(chunk, low)[of_chunk], _stacked(chunk, high)[of_chunk]
    return least * (1 - part) + most * part


def _rotation(bits: ArrayU32) -> ArrayF32:
    three = np.stack([bits >> 20 & 1023, bits >> 10 & 1023, bits & 1023], 1).astype(np.float32)
    three = (three / np.float32(1023) - np.float32(0.5)) / SQRT_HALF
    return wxyz_to_xyzw(from_smallest_three(bits >> 30, three))


def _rest_of_bytes(column: ArrayAny) -> ArrayF32:
    """Harmonics of bytes: bins of 1/256 over -4 to 4, their middles, and the ends as they are."""
    value = column.astype(np.float32)
    part = np.where(value <= 0, 0.0, np.where(value >= 255, 1.0, (value + 0.5) / 256.0))
    return ((part - 0.5) * 8.0).astype(np.float32)
