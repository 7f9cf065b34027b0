"""Raw triangles of a file made into a mesh that nothing downstream can stumble over: what is unfit is dropped and counted."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from airworthy.geometry import Mesh
from airworthy.scenes.formats._source import Source

Floats = NDArray[np.float32]
_BLOCK = 1 << 17
_UV_MAX = 1e6


@dataclass
class RawMesh:
    """Arrays as they stand in a file: lengths fit, indices are in range, values may be anything."""

    vertices: Floats
    faces: NDArray[np.int32]
    normals: Floats | None = None
    uv: Floats | None = None
    colors: Floats | None = None
    face_material: NDArray[np.int32] | None = None
    channels: dict[str, Floats] = field(default_factory=dict)
    joints: NDArray[np.int32] | None = None
    weights: Floats | None = None


def clean(source: Source, raw: RawMesh) -> RawMesh:
    """Drop vertices that are not finite, faces that use them or have no area; mend normals and texture coordinates.

    Args:
        source: The file, which gets a note of everything that was dropped or mended.
        raw: The mesh; its arrays may be changed.
    """
    limit = np.float32(source.limits.coordinate)
    sound: NDArray[np.bool_] = np.all(np.abs(raw.vertices) <= limit, axis=1)  # False also for NaN
    keep = _with_area(raw.vertices, raw.faces, sound)
    unsound_faces = int((~sound[raw.faces].all(1)).sum()) if not sound.all() else 0
    flat = int(len(keep) - keep.sum()) - unsound_faces
    if flat:
        source.warn("faces without area dropped", flat)
    if not keep.all():
        raw.faces = raw.faces[keep]
        if raw.face_material is not None:
            raw.face_material = raw.face_material[keep]
    if not sound.all():
        source.warn(f"vertices dropped that are not finite or beyond {limit:g} m", int((~sound).sum()))
        _keep_vertices(raw, sound)
    _mend(source, raw)
    return raw


def finish(source: Source, raw: RawMesh) -> Mesh:
    """The mesh of cleaned arrays."""
    largest = float(np.abs(raw.vertices).max()) if raw.vertices.size else 0.0
    if largest > 1e5:
        source.warn(f"coordinates reach {largest:.3g} m, where a float32 keeps {largest * 6e-8:.2g} m: subtract an offset")
    return Mesh(raw.vertices, raw.faces, raw.normals, raw.uv, raw.colors, raw.face_material, raw.channels)


def _with_area(vertices: Floats, faces: NDArray[np.int32], sound: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(F,) whether a face has sound vertices and an area; in blocks, to bound the memory."""
    keep = np.empty(len(faces), bool)
    for start in range(0, len(faces), _BLOCK):
        block = faces[start : start + _BLOCK]
        good: NDArray[np.bool_] = np.all(sound[block], axis=1)
        corners = np.where(good[:, None, None], vertices[block], 0).astype(np.float64)
        cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        keep[start : start + _BLOCK] = good & (cross != 0).any(1)
    return keep


def _keep_vertices(raw: RawMesh, keep: NDArray[np.bool_]) -> None:
    renumbered = np.cumsum(keep, dtype=np.int32) - 1
    raw.faces = renumbered[raw.faces].astype(np.int32).reshape(-1, 3)
    raw.vertices = raw.vertices[keep]
    for name in ("normals", "uv", "colors", "joints", "weights"):
        value = getattr(raw, name)
        if value is not None:
            setattr(raw, name, value[keep])
    raw.channels = {name: value[keep] for name, value in raw.channels.items()}


def compact(raw: RawMesh) -> RawMesh:
    """Without the vertices that no face uses."""
    used = np.zeros(len(raw.vertices), bool)
    used[raw.faces.reshape(-1)] = True
    if not used.all():
        _keep_vertices(raw, used)
    return raw


def vertex_normals(vertices: Floats, faces: NDArray[np.int32]) -> Floats:
    """(V, 3) unit normals, faces weighted by area; vertices without a face get z."""
    total = np.zeros((len(vertices), 3))
    for start in range(0, len(faces), _BLOCK):
        block = faces[start : start + _BLOCK]
        corners = vertices[block].astype(np.float64)
        cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        for corner in range(3):
            for axis in range(3):
                total[:, axis] += np.bincount(block[:, corner], cross[:, axis], len(vertices))
    return unit(total)[0]


def unit(vectors: NDArray) -> tuple[Floats, NDArray[np.bool_]]:
    """Rows of length one, and which of them had a direction; the others become z."""
    wide = vectors.astype(np.float64)
    largest = np.abs(wide).max(1, initial=0.0)
    good = np.isfinite(largest) & (largest > 0)
    wide[~good] = (0.0, 0.0, 1.0)
    wide /= np.where(good, largest, 1.0)[:, None]  # first by the largest entry: squares of tiny ones would vanish
    return (wide / np.linalg.norm(wide, axis=1, keepdims=True)).astype(np.float32), good


def _mend(source: Source, raw: RawMesh) -> None:
    if raw.normals is not None:
        raw.normals, good = unit(raw.normals)
        if not good.all():
            source.warn("normals without a direction replaced by those of the faces", int((~good).sum()))
            raw.normals[~good] = vertex_normals(raw.vertices, raw.faces)[~good]
    if raw.uv is not None:
        bad = ~(np.abs(raw.uv) <= _UV_MAX).all(1)
        if bad.any():
            source.warn("texture coordinates that are not finite set to zero", int(bad.sum()))
            raw.uv[bad] = 0.0
    if raw.colors is not None:
        raw.colors = np.nan_to_num(raw.colors, nan=1.0, posinf=1.0, neginf=0.0).clip(0.0, 1.0).astype(np.float32)
    for name, value in raw.channels.items():
        bad = ~np.isfinite(value)
        if bad.any():
            source.warn(f"values of the channel {name} that are not finite set to zero", int(bad.sum()))
            value[bad] = 0.0
    if raw.weights is not None:
        _mend_weights(source, raw)


def _mend_weights(source: Source, raw: RawMesh) -> None:
    assert raw.weights is not None
    weights = np.nan_to_num(raw.weights.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0).clip(0.0, 1e6)
    total = weights.sum(1)
    lost = total <= 0
    if lost.any():
        source.warn("vertices without skin weights bound to their first joint", int(lost.sum()))
        weights[lost] = (1.0, 0.0, 0.0, 0.0)
        total[lost] = 1.0
    raw.weights = (weights / total[:, None]).astype(np.float32)
