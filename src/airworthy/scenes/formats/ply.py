"""Reading PLY, text and binary: its elements as arrays, meshes and point clouds."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn, overload

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayF32, ArrayInt, ArrayU8, NDArray
from airworthy.core.files import shown
from airworthy.scenes.formats import _parts
from airworthy.scenes.formats._images import srgb_to_linear
from airworthy.scenes.formats._source import ModelSource, clean_name
from airworthy.scenes.formats._text import floats
from airworthy.scenes.formats.meshes.polygons import cut_concave, fans
from airworthy.scenes.formats.meshes.sampling import parse_note
from airworthy.scenes.formats.model import DEFAULT_LIMITS, FileLimits, Model, Points
from airworthy.scenes.record import Instance

# ---- The header of a PLY file -----------------------------------------------------------------------------------------------

_HEADER_MAX = 1 << 16
_PROPERTIES_MAX = 256
_CODES = {"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4", "float": "f4", "double": "f8"}
_WIDE = {
    "int8": "i1",
    "uint8": "u1",
    "int16": "i2",
    "uint16": "u2",
    "int32": "i4",
    "uint32": "u4",
    "int64": "i8",
    "uint64": "u8",
}
_TYPES = {**_CODES, **_WIDE, "float32": "f4", "float64": "f8"}


@dataclass
class Property:
    """A column, or a list of varying length where `length` is given."""

    name: str
    kind: str
    """NumPy code without byte order."""
    length: str = ""


@dataclass
class PlyElement:
    """A table of the file."""

    name: str
    count: int
    properties: list[Property] = field(default_factory=list)

    @property
    def least(self) -> int:
        """Bytes of a row, with its lists empty."""
        return sum(np.dtype(p.length or p.kind).itemsize for p in self.properties)


def read_comments(source: ModelSource) -> list[str]:
    """Return comments of a header that `read_header` accepts."""
    end = max(source.data.find(b"end_header", 0, _HEADER_MAX), 0)
    # Every byte is a letter of latin-1: comments of any encoding pass, if perhaps misspelt.
    lines = source.data[:end].decode("latin-1").splitlines()
    return [line[len("comment") :] for line in lines if line.startswith("comment ")]


def read_header(source: ModelSource) -> tuple[str, list[PlyElement], int]:
    """Return the byte order ("ascii", "<", ">"), elements, and where the body begins."""
    data = source.data
    # Three kinds of line ends are in use, those of old Macs among them.
    if data[:5] not in (b"ply\n", b"ply\r\n") and data[:4] not in (b"ply\n", b"ply\r"):
        source.refuse("it does not begin with the line ply")
    end = data.find(b"end_header", 0, _HEADER_MAX)
    if end < 0:
        source.refuse(f"its header does not end within {_HEADER_MAX:,} bytes")
    body = end + len(b"end_header")
    # Exactly one line end: the next byte may be data that looks like another.
    body += 2 if data[body : body + 2] == b"\r\n" else 1
    order = ""
    elements: list[PlyElement] = []
    for line in data[:end].decode("latin-1").splitlines()[1:]:
        tokens = line.split()
        if not tokens or tokens[0] in ("comment", "obj_info"):
            continue
        if tokens[0] == "format" and len(tokens) >= 2:
            order = {"ascii": "ascii", "binary_little_endian": "<", "binary_big_endian": ">"}.get(tokens[1], "")
        elif tokens[0] == "element" and len(tokens) == 3 and tokens[2].isascii() and tokens[2].isdigit():
            elements.append(PlyElement(tokens[1], _count(source, tokens[2])))
        elif tokens[0] == "property" and elements:
            elements[-1].properties.append(_property(source, tokens))
        else:
            source.refuse(f"its header holds the line {shown(line)}")
    if not order:
        source.refuse("its header names no format that exists (ascii, binary_little_endian, binary_big_endian)")
    if sum(len(element.properties) for element in elements) + len(elements) > _PROPERTIES_MAX:
        source.refuse(f"its header holds more than {_PROPERTIES_MAX} elements and properties")
    return order, elements, body


def _count(source: ModelSource, token: str) -> int:
    # An element takes a byte at least. The length first: int() of a million digits takes minutes.
    if len(token) > 20 or int(token) > len(source.data):
        source.refuse(f"it promises {token[:24]} rows of an element and has {len(source.data):,} bytes in all")
    return int(token)


def _property(source: ModelSource, tokens: list[str]) -> Property:
    if len(tokens) == 3 and tokens[1] in _TYPES:
        return Property(tokens[2], _TYPES[tokens[1]])
    if len(tokens) == 5 and tokens[1] == "list" and tokens[3] in _TYPES and _TYPES.get(tokens[2], "f4")[0] in "iu":
        return Property(tokens[4], _TYPES[tokens[3]], _TYPES[tokens[2]])
    return source.refuse(f"its header holds the property {shown(' '.join(tokens))}")


# -----------------------------------------------------------------------------------------------------------------------------

_BLOCK = 1 << 15
_PLY_WIDE = ("f8", "i4", "u4", "i8", "u8")


@dataclass
class Table:
    """Columns of an element; lists are flat values and a length per row."""

    columns: dict[str, ArrayAny] = field(default_factory=dict)
    lists: dict[str, tuple[ArrayAny, ArrayInt]] = field(default_factory=dict)
    wide: frozenset[str] = frozenset()
    """Columns that are declared as numbers that a float32 does not keep."""


def read_tables(source: ModelSource, wanted: tuple[str, ...]) -> dict[str, Table]:
    """Return the wanted elements of a PLY file; what stands between them is passed over, what comes after them is not looked
    at.
    """
    order, elements, body = read_header(source)
    last = max((index for index, element in enumerate(elements) if element.name in wanted), default=-1)
    elements = elements[: last + 1]
    if order == "ascii":
        return _text_tables(source, elements, wanted, source.data[body:])
    return _binary_tables(source, elements, wanted, order, body)


def _declared(table: Table, element: PlyElement) -> Table:
    return replace(table, wide=frozenset(p.name for p in element.properties if p.kind in _PLY_WIDE))


def _text_tables(source: ModelSource, elements: list[PlyElement], wanted: tuple[str, ...], body: bytes) -> dict[str, Table]:
    # A number and a blank take two bytes at least, and a double eight.
    size = 8 * (len(body) // 2 + 1)
    source.take(size, "its numbers")
    values = floats(source, body.translate(bytes.maketrans(b"\t\v\f\r", b"    ")), "its rows")
    tables = {}
    start = 0
    for element in elements:
        columns = len(element.properties)
        if element.count * columns > len(values) - start:
            _short(source, element)
        if any(p.length for p in element.properties):
            table, start = _text_lists(source, element, values, start)
        else:
            rows = values[start : start + element.count * columns].reshape(element.count, columns)
            table = Table({p.name: rows[:, i] for i, p in enumerate(element.properties)})
            start += element.count * columns
        if element.name in wanted and element.name not in tables:
            tables[element.name] = _declared(table, element)
    return tables


def _text_lists(source: ModelSource, element: PlyElement, values: ArrayAny, start: int) -> tuple[Table, int]:
    """Rows with lists. Where all rows are alike, as of triangles, they are one block; otherwise they are walked through."""
    # Nearly all files hold triangles alone, which need no walk.
    lengths = _alike(element, values, start)
    if lengths:
        width = len(element.properties) + sum(lengths.values())
        block = values[start : start + width * element.count].reshape(element.count, width)
        return _split(element, block, lengths), start + width * element.count
    table = Table()
    starts, counts = _rows(source, element)
    end = len(values)
    for row in range(element.count):
        for index, p in enumerate(element.properties):
            if start >= end:
                _short(source, element)
            length = 1
            if p.length:
                length = _length(source, float(values[start]))
                start += 1
            starts[index][row] = start
            counts[index][row] = length
            start += length
    if start > end:
        _short(source, element)
    for index, p in enumerate(element.properties):
        at = np.frombuffer(starts[index], np.int64)
        if p.length:
            number = np.frombuffer(counts[index], np.int64)
            flat = np.empty(int(number.sum()))
            for here, block in _in_blocks(at, number, 1):
                flat[here] = values[block]
            table.lists[p.name] = (flat, number)
        else:
            table.columns[p.name] = values[at]
    return table, start


def _rows(source: ModelSource, element: PlyElement) -> tuple[list[array[int]], list[array[int]]]:
    """Return where the values of each row lie and how many they are, to be filled in, per property."""
    size = 16 * element.count * len(element.properties)
    source.take(size, f"its rows of {element.name[:30]}")
    # Arrays of whole numbers: lists of Python's own would take five times the memory.
    empty = bytes(8 * element.count)
    pairs = [(array("q", empty), array("q", empty)) for _ in element.properties]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def _in_blocks(at: ArrayInt, number: ArrayInt, step: int) -> Iterator[tuple[slice, ArrayInt]]:
    """Place in the flat result, and where the values lie, for some rows after the other: all at once would take much memory."""
    done = 0
    for start in range(0, len(at), _BLOCK):
        first, count = at[start : start + _BLOCK], number[start : start + _BLOCK]
        total = int(count.sum())
        # 0, 1, 2, ... within each list, without a loop over them.
        within = np.arange(total) - np.repeat(np.cumsum(count) - count, count)
        yield slice(done, done + total), np.repeat(first, count) + step * within
        done += total


def _length(source: ModelSource, value: float) -> int:
    if not 0 <= value < 2**31:
        source.refuse("a list has a length that is not a count")
    return int(value)


def _alike(element: PlyElement, values: ArrayAny, start: int) -> dict[str, int]:
    """Lengths of the lists if those of all rows are the same as in the first, else nothing."""
    lengths: dict[str, int] = {}
    at = start
    heads = []
    for p in element.properties:
        if p.length:
            if at >= len(values) or not 0 <= values[at] <= len(values):
                return {}
            heads.append(at - start)
            lengths[p.name] = int(values[at])
            at += lengths[p.name]
        at += 1
    width = at - start
    if start + width * element.count > len(values):
        return {}
    block = values[start : start + width * element.count].reshape(element.count, width)
    alike = all((block[:, head] == values[start + head]).all() for head in heads)
    return lengths if alike and element.count else {}


def _split(element: PlyElement, block: ArrayAny, lengths: dict[str, int]) -> Table:
    table = Table()
    column = 0
    for p in element.properties:
        if p.length:
            length = lengths[p.name]
            values = block[:, column + 1 : column + 1 + length].reshape(-1)
            table.lists[p.name] = (values, np.full(element.count, length, np.int64))
            column += length
        else:
            table.columns[p.name] = block[:, column]
        column += 1
    return table


def _binary_tables(
    source: ModelSource, elements: list[PlyElement], wanted: tuple[str, ...], order: str, start: int
) -> dict[str, Table]:
    tables = {}
    for element in elements:
        if element.count * element.least > len(source.data) - start:
            _short(source, element)
        if any(p.length for p in element.properties):
            table, start = _binary_lists(source, element, order, start)
        else:
            kind = _row_type(element, order, {})
            table = _named(element, np.frombuffer(source.data, kind, element.count, start) if kind.itemsize else None)
            start += kind.itemsize * element.count
        if element.name in wanted and element.name not in tables:
            tables[element.name] = _declared(table, element)
    return tables


def _row_type(element: PlyElement, order: str, lengths: dict[str, int]) -> np.dtype:
    """Structured type of a row; the fields are numbered, since names may repeat."""
    fields: list[tuple[Any, ...]] = []
    for index, p in enumerate(element.properties):
        if p.length:
            fields.append((f"n{index}", order + p.length))
            fields.append((f"p{index}", order + p.kind, (lengths[p.name],)))
        else:
            fields.append((f"p{index}", order + p.kind))
    return np.dtype(fields)


def _named(element: PlyElement, rows: ArrayAny | None) -> Table:
    if rows is None:
        return Table()
    return Table({p.name: rows[f"p{index}"] for index, p in enumerate(element.properties)})


def _binary_lists(source: ModelSource, element: PlyElement, order: str, start: int) -> tuple[Table, int]:
    """Rows with lists: at once where all are as long as the first, else walked through."""
    source.take(8 * element.count, f"its rows of {element.name[:30]}")
    if not element.count:
        return Table(lists={p.name: (np.zeros(0), np.zeros(0, np.int64)) for p in element.properties if p.length}), start
    lengths = _first_lengths(source, element, order, start)
    kind = _row_type(element, order, lengths)
    if kind.itemsize * element.count <= len(source.data) - start:
        rows = np.frombuffer(source.data, kind, element.count, start)
        listed = [(index, p) for index, p in enumerate(element.properties) if p.length]
        if all((rows[f"n{index}"] == lengths[p.name]).all() for index, p in listed):
            table = Table({p.name: rows[f"p{i}"] for i, p in enumerate(element.properties) if not p.length})
            for index, p in listed:
                table.lists[p.name] = (rows[f"p{index}"].reshape(-1), np.full(element.count, lengths[p.name], np.int64))
            return table, start + kind.itemsize * element.count
    return _walk(source, element, order, start)


def _first_lengths(source: ModelSource, element: PlyElement, order: str, start: int) -> dict[str, int]:
    lengths: dict[str, int] = {}
    for p in element.properties:
        if p.length:
            lengths[p.name], start = _read_length(source, element, p, order, start)
            start += lengths[p.name] * np.dtype(p.kind).itemsize
        else:
            start += np.dtype(p.kind).itemsize
    return lengths


def _read_length(source: ModelSource, element: PlyElement, p: Property, order: str, start: int) -> tuple[int, int]:
    size = np.dtype(p.length).itemsize
    head = source.data[start : start + size]
    if len(head) < size:
        _short(source, element)
    length = int.from_bytes(head, "little" if order == "<" else "big", signed=p.length[0] == "i")
    if length < 0 or length * np.dtype(p.kind).itemsize > len(source.data) - start:
        _short(source, element)
    return length, start + size


def _walk(source: ModelSource, element: PlyElement, order: str, start: int) -> tuple[Table, int]:
    """Rows of different length: where each value lies is found row by row, the values are then fetched at once."""
    starts, counts = _rows(source, element)
    sizes = [np.dtype(p.kind).itemsize for p in element.properties]
    for row in range(element.count):
        for index, p in enumerate(element.properties):
            length = 1
            if p.length:
                length, start = _read_length(source, element, p, order, start)
            starts[index][row] = start
            counts[index][row] = length
            start += length * sizes[index]
    if start > len(source.data):
        _short(source, element)
    table = Table()
    for index, p in enumerate(element.properties):
        at, number = np.frombuffer(starts[index], np.int64), np.frombuffer(counts[index], np.int64)
        values = _fetch(source, at, number, np.dtype(order + p.kind))
        if p.length:
            table.lists[p.name] = (values, number)
        else:
            table.columns[p.name] = values
    return table, start


def _fetch(source: ModelSource, at: ArrayInt, number: ArrayInt, kind: np.dtype) -> ArrayAny:
    """Values of a type at byte positions that need not be aligned."""
    data = np.frombuffer(source.data, np.uint8)
    total = int(number.sum())
    source.take(total * kind.itemsize, "its lists")
    values = np.empty((total, kind.itemsize), np.uint8)
    for here, first in _in_blocks(at, number, kind.itemsize):
        # Byte by byte: lists begin anywhere, and NumPy reads aligned numbers only.
        for byte in range(kind.itemsize):
            values[here, byte] = data[first + byte]
    return values.view(kind).reshape(-1)


def _short(source: ModelSource, element: PlyElement) -> NoReturn:
    source.refuse(f"it promises {element.count:,} rows of {shown(element.name)} and ends before the last")


# ---------------------------------------------------------------------------------------------------------------------------

_UV = (("u", "v"), ("s", "t"), ("texture_u", "texture_v"))
_RGB = (("red", "green", "blue"), ("r", "g", "b"), ("diffuse_red", "diffuse_green", "diffuse_blue"))
_INTENSITY = ("intensity", "scalar_intensity", "scalar_Intensity", "reflectance")
Coordinates = ArrayF32 | Array
_FANS = 1 << 15


def read_ply(path: str | Path, limits: FileLimits = DEFAULT_LIMITS) -> Model:
    """Return the model of a PLY file with faces: one mesh; integer colours are taken as sRGB, fractional ones as linear.

    Raises:
        AssetError: The file is damaged, too large, or holds no faces.
    """
    source = ModelSource(path, limits)
    tables = read_tables(source, ("vertex", "face"))
    vertex, face = tables.get("vertex", Table()), tables.get("face", Table())
    lists = face.lists.get("vertex_indices") or face.lists.get("vertex_index")
    if not lists:
        source.refuse("it has no faces: a mesh is expected here, and points are read by read_points")
    vertices = _positions(source, vertex)
    faces = _triangles(source, *lists, vertices)
    raw = _parts.RawMesh(vertices, faces, _together(vertex, ("nx", "ny", "nz")))
    source.take(40 * len(vertices), "its vertices")
    for names in _UV:
        if raw.uv is None and (uv := _together(vertex, names)) is not None:
            # Origin at the lower left in PLY, at the upper left here (as glTF).
            raw.uv = np.stack([uv[:, 0], 1.0 - uv[:, 1]], 1)
    raw.colors = _linear_colors(vertex, len(vertices))
    raw = _parts.clean(source, raw)
    if not len(raw.faces):
        source.refuse("it holds no triangle with an area")
    shape = clean_name(source.path.stem, "mesh")
    return Model({shape: _parts.finish(source, raw)}, instances=(Instance(shape, name=shape),), warnings=source.warnings)


def read_ply_points(path: str | Path, limits: FileLimits = DEFAULT_LIMITS) -> Points:
    """Return the point cloud of a PLY file: its vertices, with colours and intensity where there are.

    Raises:
        AssetError: The file is damaged, too large, or holds no points.
    """
    source = ModelSource(path, limits)
    vertex = read_tables(source, ("vertex",)).get("vertex", Table())
    positions = _positions(source, vertex, wide=True)
    colors = _color_bytes(vertex)
    intensity = next((_single(vertex.columns[name]) for name in _INTENSITY if name in vertex.columns), None)
    return replace(finish_points(source, positions, colors, intensity), note=parse_note(read_comments(source)))


def finish_points(source: ModelSource, positions: Coordinates, colors: ArrayU8 | None, intensity: ArrayF32 | None) -> Points:
    """Drop points that are not finite and note how many; refuses a cloud that holds none that are.

    Args:
        source: Takes warnings, and refuses.
        positions: (n, 3) [m].
        colors: (n, 3); None: the file has none.
        intensity: (n,); None: the file has none.
    """
    sound = (np.abs(positions) <= np.float32(source.limits.coordinate)).all(1)
    if not sound.all():
        source.warn(f"points dropped that are not finite or beyond {source.limits.coordinate:g} m", int((~sound).sum()))
        positions = positions[sound]
        colors = None if colors is None else colors[sound]
        intensity = None if intensity is None else intensity[sound]
    if not len(positions):
        source.refuse("it holds no point")
    if intensity is not None:
        intensity = np.nan_to_num(intensity, nan=0.0, posinf=0.0, neginf=0.0)
    return Points(positions, colors, intensity, source.warnings)


def _single(values: ArrayAny) -> ArrayF32:
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(np.float32)


def _together(table: Table, names: tuple[str, ...]) -> ArrayF32 | None:
    """Columns side by side, None where one is missing."""
    if not all(name in table.columns for name in names):
        return None
    return np.stack([_single(table.columns[name]) for name in names], 1)


@overload
def _positions(source: ModelSource, vertex: Table) -> ArrayF32: ...
@overload
def _positions(source: ModelSource, vertex: Table, wide: bool) -> Coordinates: ...
def _positions(source: ModelSource, vertex: Table, wide: bool = False) -> Coordinates:
    """(n, 3) as float32, or with `wide` as float64 where the file has doubles."""
    count = len(vertex.columns.get("x", ()))
    source.at_most(count, source.limits.vertices, "vertices")
    doubles = wide and not vertex.wide.isdisjoint("xyz")
    source.take((24 if doubles else 12) * count, "its vertices")
    if doubles and all(name in vertex.columns for name in "xyz"):
        return np.stack([vertex.columns[name].astype(np.float64) for name in "xyz"], 1)
    positions = _together(vertex, ("x", "y", "z"))
    if positions is None:
        source.refuse("its vertices have no x, y and z")
    return positions


def _triangles(source: ModelSource, values: ArrayAny, counts: ArrayInt, vertices: ArrayF32) -> NDArray[np.int32]:
    """Triangles of polygons, in the order of the file."""
    # Before they are cast: a float or an unsigned number may turn into a valid index.
    if len(values) and not ((values >= 0) & (values < len(vertices))).all():
        source.refuse(f"a face uses a vertex that does not exist; there are {len(vertices):,}")
    if (counts < 3).any():
        source.warn("faces of fewer than three corners dropped", int((counts < 3).sum()))
    source.take(16 * len(counts), "its faces")
    total = int(np.maximum(counts - 2, 0).sum())
    source.at_most(total, source.limits.faces, "triangles")
    if len(counts) and (counts == 3).all():
        source.take(12 * total, "its faces")
        return values.astype(np.int32).reshape(-1, 3)
    source.take(12 * total + 36 * len(counts) + 4 * len(values), "its faces")
    corners, faces = values.astype(np.int32), np.empty((total, 3), np.int32)
    corner, done = 0, 0
    for start in range(0, len(counts), _FANS):
        some = fans(counts[start : start + _FANS])
        faces[done : done + len(some)] = some + corner
        corner, done = corner + int(counts[start : start + _FANS].sum()), done + len(some)
    cut_concave(source, faces, counts, vertices, corners)
    for start in range(0, total, _FANS):
        faces[start : start + _FANS] = corners[faces[start : start + _FANS]]
    return faces


def _rgb(table: Table) -> tuple[str, ...] | None:
    return next((names for names in _RGB if all(name in table.columns for name in names)), None)


def _fraction(values: ArrayAny) -> ArrayF32:
    """Integers 0..255 (also of a text file, where they come as floats above 1) as 0..1."""
    return _single(values) / np.float32(255.0)


def _is_integer(columns: list[ArrayAny]) -> bool:
    if columns[0].dtype.kind in "iu":
        return True
    return any(bool((column > 1.0).any()) for column in columns)


def _linear_colors(table: Table, count: int) -> ArrayF32 | None:
    names = _rgb(table)
    if names is None:
        return None
    columns = [table.columns[name] for name in names]
    integer = _is_integer(columns)
    result = np.ones((count, 4), np.float32)
    for index, column in enumerate(columns):
        result[:, index] = srgb_to_linear(_fraction(column)) if integer else _single(column)
    if "alpha" in table.columns:
        alpha = table.columns["alpha"]
        result[:, 3] = _fraction(alpha) if integer else _single(alpha)
    return result


def _color_bytes(table: Table) -> ArrayU8 | None:
    names = _rgb(table)
    if names is None:
        return None
    columns = [table.columns[name] for name in names]
    scale = 1.0 if _is_integer(columns) else 255.0
    wide = np.stack([_single(column) for column in columns], 1) * np.float32(scale)
    return np.nan_to_num(wide, nan=0.0, posinf=255.0, neginf=0.0).clip(0, 255).round().astype(np.uint8)
