"""Writing STL, PLY and PCD."""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from airworthy.core.arrays import ArrayF32, ArrayU8, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.core.files import write_bytes
from airworthy.scenes.formats._images import linear_to_srgb
from airworthy.scenes.formats._parts import MeshPart, Writable, as_model, material_of, parts
from airworthy.scenes.formats.meshes.sampling import note_lines
from airworthy.scenes.formats.model import Model, Points
from airworthy.scenes.point_clouds import FAR

# ---- Textures as PNG files --------------------------------------------------------------------------------------------------


def png(pixels: ArrayU8) -> bytes:
    """Return PNG of (height, width, 1, 3 or 4) pixels, the same bytes for the same pixels."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels).save(file, "PNG", compress_level=6)
    return file.getvalue()


# -----------------------------------------------------------------------------------------------------------------------------

_FACET = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def write_stl(path: str | Path, thing: Writable) -> Path:
    """Write a mesh, model or scene as binary STL in world coordinates; raises AirworthyError where it cannot be written."""
    corners = np.concatenate([part.vertices[part.faces] for part in parts(thing)] or [np.zeros((0, 3, 3), np.float32)])
    facets = np.zeros(len(corners), _FACET)
    facets["corners"] = corners
    wide = corners.astype(np.float64)
    normals = np.cross(wide[:, 1] - wide[:, 0], wide[:, 2] - wide[:, 0])
    facets["normal"] = normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    header = b"written by airworthy, metres, z up".ljust(80, b" ")
    return write_bytes(path, header + struct.pack("<I", len(facets)) + facets.tobytes())


def write_ply(path: str | Path, thing: Writable) -> Path:
    """Write a mesh, model or scene as one binary PLY mesh in world coordinates.

    Normals and texture coordinates are written if all parts have them; colours (sRGB, vertex colour times the material's) if
    there is any material or vertex colour.

    Raises:
        AirworthyError: An instance names a missing shape, or the file cannot be written.
    """
    model = as_model(thing)
    pieces = list(parts(model))
    columns: list[tuple[str, str]] = [(name, "<f4") for name in "xyz"]
    tables = [_stack([p.vertices for p in pieces], 3)]
    if pieces and all(p.normals is not None for p in pieces):
        columns += [("nx", "<f4"), ("ny", "<f4"), ("nz", "<f4")]
        tables.append(_stack([p.normals for p in pieces if p.normals is not None], 3))
    if pieces and all(p.uv is not None for p in pieces):
        columns += [("s", "<f4"), ("t", "<f4")]
        uv = _stack([p.uv for p in pieces if p.uv is not None], 2)
        tables.append(np.stack([uv[:, 0], 1.0 - uv[:, 1]], 1))
    if any(p.material or p.colors is not None for p in pieces):
        columns += [(name, "u1") for name in ("red", "green", "blue", "alpha")]
        tables.append(_stack([_bytes(_colors(model, p)) for p in pieces], 4))
    starts = np.cumsum([0] + [len(p.vertices) for p in pieces])
    faces = [p.faces + start for p, start in zip(pieces, starts, strict=False)]
    rows = np.zeros(sum(len(f) for f in faces), np.dtype([("count", "u1"), ("corner", "<i4", 3)]))
    rows["count"] = 3
    rows["corner"] = _stack(faces, 3)
    return write_bytes(path, _ply(columns, tables, rows))


def write_points_ply(path: str | Path, points: Points | NDArray) -> Path:
    """Write a point cloud, (n, 3) or with colours and intensity, as binary PLY; raises AirworthyError where it cannot."""
    points = _points(points)
    kind = _kind(points.positions)
    columns: list[tuple[str, str]] = [(name, kind) for name in "xyz"]
    tables: list[NDArray] = [points.positions]
    if points.colors is not None:
        columns += [(name, "u1") for name in ("red", "green", "blue")]
        tables.append(points.colors)
    if points.intensity is not None:
        columns.append(("intensity", "<f4"))
        tables.append(points.intensity[:, None])
    return write_bytes(path, _ply(columns, tables, None, [] if points.note is None else note_lines(points.note)))


def write_pcd(path: str | Path, points: Points | NDArray) -> Path:
    """Write a point cloud as PCD 0.7, binary little-endian, x y z as `_kind` says, with rgb and intensity where there are.

    Raises:
        AirworthyError: The points are not (n, 3), or the file cannot be written.
    """
    points = _points(points)
    names = ["x", "y", "z"]
    tables: list[NDArray] = [points.positions]
    kinds = [_kind(points.positions)] * 3
    if points.colors is not None:
        names.append("rgb")
        wide = points.colors.astype("<u4")
        tables.append((wide[:, :1] << 16 | wide[:, 1:2] << 8 | wide[:, 2:3]).view("<f4"))
    if points.intensity is not None:
        names.append("intensity")
        tables.append(points.intensity[:, None].astype("<f4"))
    count, width = len(points.positions), len(names)
    kinds += ["<f4"] * (width - 3)
    header = [
        "# .PCD v0.7 - Point Cloud Data file format",
        *([] if points.note is None else [f"# {line}" for line in note_lines(points.note)]),
        "VERSION 0.7",
        f"FIELDS {' '.join(names)}",
        "SIZE " + " ".join(kind[-1] for kind in kinds),
        "TYPE" + " F" * width,
        "COUNT" + " 1" * width,
        f"WIDTH {count}",
        "HEIGHT 1",
        "VIEWPOINT 0 0 0 1 0 0 0",
        f"POINTS {count}",
        "DATA binary\n",
    ]
    return write_bytes(
        path, "\n".join(header).encode() + _write_plain_rows(list(zip(names, kinds, strict=True)), tables).tobytes()
    )


def _points(points: Points | NDArray) -> Points:
    if isinstance(points, Points):
        return points
    positions = np.asarray(points)
    positions = positions.astype(np.float64 if positions.dtype.itemsize > 4 or positions.dtype.kind != "f" else np.float32)
    if positions.ndim != 2 or positions.shape[1] != 3:
        raise AirworthyError(f"A point cloud has shape {positions.shape}; expected (n, 3).")
    return Points(positions)


def _kind(positions: NDArray) -> str:
    """Floats, or doubles where there are some and floats would be a millimetre or more apart."""
    far = positions.dtype == np.float64 and positions.size > 0 and float(np.abs(positions).max()) >= FAR
    return "<f8" if far else "<f4"


def _stack(tables: list[NDArray], width: int) -> NDArray:
    return np.concatenate(tables) if tables else np.zeros((0, width), np.float32)


def _colors(model: Model, part: MeshPart) -> ArrayF32:
    """(V, 4) linear: vertex colour times base colour."""
    base = np.array(material_of(model, part.material).base_color, np.float32)
    return np.tile(base, (len(part.vertices), 1)) if part.colors is None else part.colors * base


def _bytes(colors: ArrayF32) -> ArrayU8:
    srgb = np.concatenate([linear_to_srgb(colors[:, :3]), colors[:, 3:].clip(0, 1)], 1)
    return (srgb * 255).round().astype(np.uint8)


def _write_plain_rows(columns: list[tuple[str, str]], tables: list[NDArray]) -> NDArray:
    """Tables side by side as rows of a file."""
    rows = np.zeros(len(tables[0]), np.dtype(columns))
    column = 0
    for table in tables:
        for index in range(table.shape[1]):
            rows[columns[column + index][0]] = table[:, index]
        column += table.shape[1]
    return rows


def _ply(columns: list[tuple[str, str]], tables: list[NDArray], faces: NDArray | None, comments: Sequence[str] = ()) -> bytes:
    rows = _write_plain_rows(columns, tables)
    kinds = {"<f4": "float", "<f8": "double", "u1": "uchar"}
    header = [
        "ply",
        "format binary_little_endian 1.0",
        "comment written by airworthy, metres, z up",
        *(f"comment {line}" for line in comments),
        f"element vertex {len(rows)}",
    ]
    header += [f"property {kinds[kind]} {name}" for name, kind in columns]
    if faces is not None:
        header += [f"element face {len(faces)}", "property list uchar int vertex_indices"]
    text = "\n".join([*header, "end_header\n"]).encode()
    return text + rows.tobytes() + (b"" if faces is None else faces.tobytes())
