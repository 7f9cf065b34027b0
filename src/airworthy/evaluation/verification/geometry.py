"""What the ray engine and the distance fields promise: closed forms, brute force, another engine, order, memory."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from airworthy.core.files import data_dir
from airworthy.core.frames import rotate
from airworthy.evaluation.verification.contact import contact_figures
from airworthy.evaluation.verification.embree import embree_figures
from airworthy.evaluation.verification.figure import Figure, below, zero
from airworthy.evaluation.verification.ray_references import (
    placed_range,
    plane_range,
    quaternions,
    random_mesh,
    ray_table,
    silhouette,
    triangle_hits,
)
from airworthy.geometry import CHANNELS, Box, Capsule, Cylinder, GeometryBatch, Mesh, Placement, RayTable, Shape, Sphere, cast
from airworthy.geometry.distance_field import distance_field

Array = NDArray[np.float64]

DEPTH_MAX = 1e-4
"""[m] at 10 m."""
SOLIDS: dict[str, Shape] = {
    "sphere": Sphere(1.2),
    "box": Box((0.9, 0.6, 1.1)),
    "cylinder": Cylinder(0.7, 1.0),
    "capsule": Capsule(0.5, 0.9),
}
_LEVEL = (0.0, 0.0, 0.0, 1.0)
_POSES = 40


def geometry_figures(everything: bool = False) -> Iterator[Figure]:
    """Run the checks one after the other.

    Args:
        everything: Ten times as many random meshes.
    """
    yield from _closed_forms()
    yield from brute_force_figures(1000 if everything else 100)
    if find_spec("embreex") is not None:
        yield from embree_figures(data_dir())
    yield from _order()
    yield _moved()
    yield _distance_field()
    yield from _memory()
    yield from contact_figures()


def _closed_forms() -> Iterator[Figure]:
    """Each solid in 40 poses 10 m away, and a plane whose distance along the axis is 10 m, tilted by up to 60 degrees."""
    rng, table, wrong = np.random.default_rng(0), ray_table(), 0
    for name, shape in SOLIDS.items():
        position = rng.normal((0.0, 0.0, 10.0), 0.5, (_POSES, 3))
        attitude = quaternions(rng, _POSES)
        layouts = [Placement.of([0], position[k], attitude[k]) for k in range(_POSES)]
        rays = table.directions.reshape(-1, 3)
        start = np.zeros_like(rays)
        true = np.stack([placed_range(shape, position[k], attitude[k], start, rays) for k in range(_POSES)])
        error, missed = _compared(GeometryBatch([shape], layouts), table, true)
        wrong += missed
        yield below(f"Rays: depth and range of a {name} at 10 m, worst", error, DEPTH_MAX, "m")
    error, missed = _plane(rng, table)
    yield below("Rays: depth and range of a plane at 10 m, worst", error, DEPTH_MAX, "m")
    yield zero("Rays: pixels off the silhouette that hit or miss wrongly", wrong + missed)


def _plane(rng: np.random.Generator, table: RayTable) -> tuple[float, int]:
    half = 300.0
    corners = np.array([[-half, -half, 0], [half, -half, 0], [half, half, 0], [-half, half, 0]])
    mesh = Mesh(corners, np.array([[0, 1, 2], [0, 2, 3]]))
    tilt, about = rng.uniform(0.0, np.radians(60.0), _POSES), rng.uniform(0.0, 2 * np.pi, _POSES)
    attitude = np.stack([np.sin(tilt / 2) * np.cos(about), np.sin(tilt / 2) * np.sin(about), 0 * tilt, np.cos(tilt / 2)], 1)
    at, rays = np.array([0.0, 0.0, 10.0]), table.directions.reshape(-1, 3)
    true = np.stack([plane_range(at, rotate(q, np.array([0.0, 0.0, 1.0])), np.zeros_like(rays), rays) for q in attitude])
    return _compared(GeometryBatch([mesh], [Placement.of([0], at, q) for q in attitude]), table, true)


def _compared(batch: GeometryBatch, table: RayTable, true: Array) -> tuple[float, int]:
    """Worst error of depth and range [m], and pixels that hit or miss wrongly, both off the silhouette."""
    count = batch.env_count
    seen = cast(batch, table, np.zeros((count, 3)), np.tile(_LEVEL, (count, 1)), channels=("depth", "range"))
    true = true.reshape(seen["range"].shape)
    hit = np.isfinite(true)
    inside = ~silhouette(hit)
    wrong = int(np.sum((np.isfinite(seen["range"]) != hit) & inside))
    both = inside & hit & np.isfinite(seen["range"])
    along = np.broadcast_to(table.directions @ table.axis, true.shape)
    gaps = [seen["range"][both] - true[both], seen["depth"][both] - (true[both] * along[both])]
    return max(float(np.abs(gap).max()) for gap in gaps), wrong


def world_corners(mesh: Mesh, placement: Placement) -> Array:
    """Corners of the triangles (m, 3, 3) of one placed mesh, float64."""
    turned = rotate(placement.attitude[0], placement.scale[0] * mesh.vertices.astype(np.float64))
    return np.asarray(turned + placement.position[0])[mesh.faces]


def brute_force_figures(meshes: int = 100) -> Iterator[Figure]:
    """Random meshes in random poses 8 m away, against every triangle in float64."""
    rng, table = np.random.default_rng(1), ray_table(64, 48, 175.0)
    shapes = [random_mesh(rng, k % 3) for k in range(meshes)]
    turned, scale = quaternions(rng, meshes), rng.uniform(0.5, 1.5, meshes)
    layouts = [Placement.of([k], [0.0, 0.0, 8.0], turned[k], scale[k]) for k in range(meshes)]
    batch, still = GeometryBatch(shapes, layouts), np.zeros((meshes, 3))
    seen = cast(batch, table, still, np.tile(_LEVEL, (meshes, 1)), channels=("depth", "face", "barycentric", "point_world"))
    rays = table.directions.reshape(-1, 3)
    corners = [world_corners(mesh, place) for mesh, place in zip(shapes, layouts, strict=True)]
    found = [triangle_hits(np.zeros_like(rays), rays, triangles) for triangles in corners]
    face = np.stack([f for _, f in found]).reshape(seen["face"].shape)
    depth = np.stack([t for t, _ in found]).reshape(face.shape) * (table.directions @ table.axis)
    inside = ~silhouette(face)
    pixels = f"{int(np.sum(inside & (face >= 0))):,}"
    name = f"Rays: {meshes} random meshes against brute force"
    yield zero(f"{name}, other faces of {pixels} off the edges", int(np.sum((seen["face"] != face) & inside)))
    same = (seen["face"] == face) & (face >= 0)
    yield below(f"{name}, worst depth", float(np.abs(seen["depth"][same] - depth[same]).max()), DEPTH_MAX, "m")
    worst = max(_rebuilt(seen, corners[k], k) for k in range(meshes))
    yield below("Rays: the point met, from face and barycentrics, worst", worst, 1e-5, "m")


def _rebuilt(seen: dict[str, NDArray[np.generic]], corners: Array, k: int) -> float:
    """Largest distance of a point met to the one that its face and barycentrics say [m]."""
    met = np.asarray(seen["face"][k]) >= 0
    if not met.any():
        return 0.0
    share = np.asarray(seen["barycentric"][k][met], np.float64)
    weights = np.concatenate([1.0 - share.sum(1, keepdims=True), share], 1)
    points = np.einsum("nk,nkd->nd", weights, corners[np.asarray(seen["face"][k][met], int)])
    return float(np.linalg.norm(points - np.asarray(seen["point_world"][k][met], float), axis=1).max())


def _order() -> Iterator[Figure]:
    rng, count = np.random.default_rng(2), 48
    shapes: list[Shape] = [*SOLIDS.values(), *(random_mesh(rng, k % 3) for k in range(6))]
    layouts = [
        Placement.of(
            rng.integers(len(shapes), size=k % 7 + 3), rng.normal(0.0, 4.0, (k % 7 + 3, 3)), quaternions(rng, k % 7 + 3)
        )
        for k in range(count)
    ]
    table, position, attitude = ray_table(), rng.normal(0.0, 4.0, (count, 3)), quaternions(rng, count)

    def images(which: NDArray[np.intp]) -> dict[str, NDArray[np.generic]]:
        batch = GeometryBatch(shapes, [layouts[k] for k in which])
        return cast(batch, table, position[which], attitude[which], channels=tuple(CHANNELS))

    straight, order = images(np.arange(count)), rng.permutation(count)
    other = images(order)
    changed = [any(other[c][k].tobytes() != straight[c][e].tobytes() for c in CHANNELS) for k, e in enumerate(order)]
    yield zero(f"Rays: environments, of {count} in another order, with another byte", sum(changed))
    alone = [images(np.array([k])) for k in range(0, count, 5)]
    changed = [any(a[c][0].tobytes() != straight[c][5 * k].tobytes() for c in CHANNELS) for k, a in enumerate(alone)]
    yield zero("Rays: environments seen alone with another byte", sum(changed))


def _moved() -> Figure:
    """A box that moves in one environment is at its new place in the next image there, and nowhere else."""
    count, moved, there = 16, 5, np.array([0.3, -0.2, 6.0])
    movers = [Placement.of([0], [0.0, 0.0, 4.0 + 0.1 * k]) for k in range(count)]
    batch = GeometryBatch([Box((0.5, 0.5, 0.5))], [Placement.empty()], np.zeros(count, int), movers)
    table, still = ray_table(), np.zeros((count, 3))
    turned = np.tile(_LEVEL, (count, 1))
    before = cast(batch, table, still, turned)["depth"].copy()
    batch.set_movers(there[None, None], np.array([[_LEVEL]]), env_ids=[moved])
    after = cast(batch, table, still, turned)["depth"]
    rays = table.directions.reshape(-1, 3)
    true = placed_range(Box((0.5, 0.5, 0.5)), there, np.array(_LEVEL), np.zeros_like(rays), rays).reshape(after[0].shape)
    hit = np.isfinite(true)
    sharp = ~silhouette(hit[None])[0]
    depth = np.where(hit, true, 0.0) * (table.directions @ table.axis)
    wrong = sharp & ~np.where(hit, np.abs(after[moved] - depth) <= DEPTH_MAX, np.isinf(after[moved]))
    others = sum(after[k].tobytes() != before[k].tobytes() for k in range(count) if k != moved)
    return zero("Rays: an obstacle moved, wrong pixels there and images changed elsewhere", int(wrong.sum()) + others)


def _distance_field() -> Figure:
    """Distances in cells are square roots of whole numbers: float32 of both must be the same number."""
    from scipy.ndimage import distance_transform_edt

    rng, wrong = np.random.default_rng(3), 0
    for shape, share in (((60, 50, 40), 0.001), ((33, 70, 21), 0.02), ((96, 96, 30), 0.0003), ((17, 5, 90), 0.3)):
        grid = rng.random(shape) < share
        grid[0, 0, 0] = True
        wrong += int(np.sum(distance_field(grid, 1.0).values != distance_transform_edt(~grid).astype(np.float32)))
    return zero("Distance fields: cells with another distance than SciPy's, of four grids", wrong)


def _memory() -> Iterator[Figure]:
    rng, count, boxes = np.random.default_rng(4), 4096, 30
    shapes = [Box(tuple(half)) for half in rng.uniform(0.1, 0.5, (50, 3))]
    layouts = [Placement.of(rng.integers(50, size=boxes), rng.normal(0.0, 5.0, (boxes, 3))) for _ in range(count)]
    total = sum(GeometryBatch(shapes, layouts).memory().values())
    yield below(f"Memory of {count:,} different environments with {boxes} boxes each", total / 1e6, 25.0, "MB")
    side = np.linspace(0.0, 1.0, 101)
    points = np.stack([*np.meshgrid(side, side, indexing="ij"), rng.random((101, 101))], -1).reshape(-1, 3)
    corner = (np.arange(100)[:, None] * 101 + np.arange(100)).reshape(-1)
    mesh = Mesh(points, np.concatenate([corner[:, None] + [0, 101, 102], corner[:, None] + [0, 102, 1]]))
    few, many = (sum(GeometryBatch([mesh], [Placement.of([0])] * n).memory().values()) for n in (1, 1025))
    yield below("Memory of one more environment with a mesh that is there", (many - few) / 1024, 256.0, "bytes")
    yield below("Memory of a mesh of 20,000 triangles, per triangle", few / 20_000, 128.0, "bytes")
