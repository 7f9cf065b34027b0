"""The ray engine against Intel's Embree, where the package `embreex` is installed."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from airworthy.core.frames import camera_attitude, from_euler, rotate
from airworthy.evaluation.verification.figure import Figure, below, zero
from airworthy.evaluation.verification.ray_references import random_mesh, ray_table, silhouette
from airworthy.geometry import GeometryBatch, Mesh, Placement, RayTable, cast
from airworthy.scenes.formats import read_model

Array = NDArray[np.float64]

SCANS = (
    "ggg/owl.obj",
    "ggg/birdBath.obj",
    "ggg/Angel.obj",
    "ggg/blackVase.obj",
    "ggg/plasticVase.obj",
    "ggg/seaVase.obj",
    "threedscans/Column03/Column03.obj",
    "threedscans/Hermes/Hermes.obj",
    "threedscans/Plato/Plato.obj",
    "threedscans/Gutenberg/Gutenberg.obj",
    "threedscans/BootlegEve/BootlegEve.obj",
    "egyptian_cat/cat.glb",
    "copyroom/copyroom_c2000_opt.obj",
)
_JUMP = 0.02
"""Ranges of neighbours that differ by more are of different surfaces [m]."""

_EDGE = 1e-3
"""Two triangles that share an edge are this near to each other where a ray that errs by single precision passes it [m]."""


def embree_figures(data: Path | None) -> Iterator[Figure]:
    """Random meshes, and the scans of the reference data where there are."""
    rng = np.random.default_rng(5)
    yield from _figures("40 random meshes", [random_mesh(rng, k % 3) for k in range(40)])
    if data is not None:
        yield from _figures(f"{len(SCANS)} scans", [_scan(data / "meshes" / name) for name in SCANS])


def _scan(path: Path) -> Mesh:
    """All triangles of a file, brought to 2 m across around the origin."""
    model = read_model(path)
    vertices, faces, first = [], [], 0
    for item in model.instances:
        mesh = model.shapes[item.shape]
        assert isinstance(mesh, Mesh)
        vertices.append(mesh.vertices)
        faces.append(mesh.faces + first)
        first += len(mesh.vertices)
    points = np.concatenate(vertices).astype(np.float64)
    low, high = points.min(0), points.max(0)
    return Mesh((points - 0.5 * (low + high)) * (2.0 / float((high - low).max())), np.concatenate(faces))


def _figures(name: str, meshes: list[Mesh]) -> Iterator[Figure]:
    table, cameras = ray_table(160, 120, 220.0), 4
    wrong, worst, pixels = 0, 0.0, 0
    for mesh in meshes:
        position, attitude = _around(cameras, 4.0)
        batch = GeometryBatch([mesh], [Placement.of([0])])
        seen = cast(batch, table, position, attitude, channels=("range", "face"))
        other, face = _embree(mesh, table, position, attitude)
        inside = ~(silhouette(np.isfinite(other)) | _jumps(other))
        met = inside & np.isfinite(other) & np.isfinite(seen["range"])
        pixels += int(met.sum())
        wrong += int(np.sum((np.isfinite(seen["range"]) != np.isfinite(other)) & inside))
        gap, same = np.abs(seen["range"][met] - other[met]), (face == seen["face"])[met]
        worst = max(worst, float(gap[same].max(initial=0.0)))
        # Another triangle is right where both meet the same surface: at an edge that they share.
        wrong += int(np.sum(gap[~same] > _EDGE))
    yield zero(f"Rays: {name} against Embree, other surfaces of {pixels:,} off the edges", wrong)
    yield below(f"Rays: {name} against Embree, worst range at 4 m", worst, 1e-4, "m")


def _around(count: int, distance: float) -> tuple[Array, Array]:
    """Cameras that look at the origin from around it, optical frame: positions (count, 3), attitudes (count, 4)."""
    angle = 0.3 + 2 * np.pi * np.arange(count) / count
    body = np.stack([from_euler(0.1, 0.25, a) for a in angle])
    return -distance * rotate(body, np.array([1.0, 0.0, 0.0])), camera_attitude(body)


def _jumps(distance: Array) -> NDArray[np.bool_]:
    """Pixels with a neighbour that is much nearer or farther."""
    band = np.zeros(distance.shape, bool)
    filled = np.where(np.isfinite(distance), distance, 1e3)
    for i in (0, 1, 2):
        for j in (0, 1, 2):
            shifted = filled[:, i : filled.shape[1] - 2 + i, j : filled.shape[2] - 2 + j]
            band[:, 1:-1, 1:-1] |= np.abs(shifted - filled[:, 1:-1, 1:-1]) > _JUMP
    return band


def _embree(mesh: Mesh, table: RayTable, position: Array, attitude: Array) -> tuple[Array, NDArray[np.int64]]:
    """Ranges (c, H, W), +inf on a miss, and faces, -1, as Embree finds them."""
    scenes, construction = import_module("embreex.rtcore_scene"), import_module("embreex.mesh_construction")
    world = scenes.EmbreeScene()
    construction.TriangleMesh(world, mesh.vertices.astype(np.float32)[mesh.faces])
    rays = rotate(attitude[:, None, None], table.directions).reshape(-1, 3).astype(np.float32)
    start = np.repeat(position, table.height * table.width, axis=0).astype(np.float32)
    found = world.run(start, rays, output=True)
    shape = (len(position), table.height, table.width)
    face = np.asarray(found["primID"], np.int64).reshape(shape)
    return np.where(face >= 0, np.asarray(found["tfar"], float).reshape(shape), np.inf), face
