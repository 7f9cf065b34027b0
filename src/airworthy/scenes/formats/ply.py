"""Reading PLY, text and binary: meshes and point clouds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import overload

import numpy as np
from numpy.typing import NDArray

from airworthy.core.arrays import Array, ArrayAny, ArrayF32, ArrayInt, ArrayU8
from airworthy.scenes.formats import _parts
from airworthy.scenes.formats._images import srgb_to_linear
from airworthy.scenes.formats._ply import Table, read_comments, read_tables
from airworthy.scenes.formats._source import ModelSource, clean_name
from airworthy.scenes.formats.model import DEFAULT_LIMITS, FileLimits, Model, Points
from airworthy.scenes.formats.sampling import parse_note
from airworthy.scenes.record import Instance

_UV = (("u", "v"), ("s", "t"), ("texture_u", "texture_v"))
_RGB = (("red", "green", "blue"), ("r", "g", "b"), ("diffuse_red", "diffuse_green", "diffuse_blue"))
_INTENSITY = ("intensity", "scalar_intensity", "scalar_Intensity", "reflectance")
Coordinates = ArrayF32 | Array
_BLOCK = 1 << 15


def read_ply(path: str | Path, limits: FileLimits = DEFAULT_LIMITS) -> Model:
    """Model of a PLY file with faces: one mesh; integer colours are taken as sRGB, fractional ones as linear.

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
    faces = _triangles(source, *lists, len(vertices))
    raw = _parts.RawMesh(vertices, faces, _together(vertex, ("nx", "ny", "nz")))
    source.take(40 * len(vertices), "its vertices")
    for names in _UV:
        if raw.uv is None and (uv := _together(vertex, names)) is not None:
            raw.uv = np.stack([uv[:, 0], 1.0 - uv[:, 1]], 1)
    raw.colors = _linear_colors(vertex, len(vertices))
    raw = _parts.clean(source, raw)
    if not len(raw.faces):
        source.refuse("it holds no triangle with an area")
    shape = clean_name(source.path.stem, "mesh")
    return Model({shape: _parts.finish(source, raw)}, instances=(Instance(shape, name=shape),), warnings=source.warnings)


def read_ply_points(path: str | Path, limits: FileLimits = DEFAULT_LIMITS) -> Points:
    """Point cloud of a PLY file: its vertices, with colours and intensity where there are.

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


def _triangles(source: ModelSource, values: ArrayAny, counts: ArrayInt, vertex_count: int) -> NDArray[np.int32]:
    """Fans of polygons, in the order of the file."""
    if len(values) and not ((values >= 0) & (values < vertex_count)).all():
        source.refuse(f"a face uses a vertex that does not exist; there are {vertex_count:,}")
    if (counts < 3).any():
        source.warn("faces of fewer than three corners dropped", int((counts < 3).sum()))
    source.take(16 * len(counts), "its faces")
    pieces = np.maximum(counts - 2, 0)
    total = int(pieces.sum())
    source.at_most(total, source.limits.faces, "triangles")
    if len(counts) and (counts == 3).all():
        source.take(12 * total, "its faces")
        return values.astype(np.int32).reshape(-1, 3)
    source.take(12 * total + 8 * len(counts), "its faces")
    faces = np.empty((total, 3), np.int32)
    corner, done = 0, 0
    for start in range(0, len(counts), _BLOCK):
        count, piece = counts[start : start + _BLOCK], pieces[start : start + _BLOCK]
        first = np.repeat(corner + np.cumsum(count) - count, piece)
        step = np.arange(len(first)) - np.repeat(np.cumsum(piece) - piece, piece)
        fans = (first, first + step + 1, first + step + 2)
        for column, index in enumerate(fans):
            faces[done : done + len(first), column] = values[index]
        corner, done = corner + int(count.sum()), done + len(first)
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
