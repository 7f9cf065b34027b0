"""What the ray engine and the distance fields promise: closed forms, brute force, another engine, order, memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayIndex, ArrayInt, NDArray
from airworthy.core.files import data_dir
from airworthy.core.frames import camera_attitude, from_euler, rotate, rotate_inverse
from airworthy.geometry import CHANNELS, Box, Capsule, Cylinder, GeometryBatch, Mesh, Placement, RayTable, Shape, Sphere, cast
from airworthy.geometry.distance import distance_field
from airworthy.scenes.formats import read_model
from airworthy.verification.contact import contact_figures
from airworthy.verification.published import Figure, below, zero

# -----------------------------------------------------------------------------------------------------------------------------
# Random meshes and poses, and rays against solids and triangles in float64: what the ray engine is compared with.

_BLOCK = 1 << 21
"""Pairs of ray and triangle that are looked at in one go."""


def ray_table(width: int = 64, height: int = 48, focal: float = 180.0) -> RayTable:
    """Return a pinhole's rays, z forward.

    Args:
        width: [px]
        height: [px]
        focal: Focal length [px].
    """
    u, v = np.meshgrid(np.arange(width) + 0.5 - 0.5 * width, np.arange(height) + 0.5 - 0.5 * height)
    return RayTable(np.stack([u, v, np.full_like(u, focal)], -1))


def quaternions(rng: np.random.Generator, count: int) -> Array:
    """Return uniformly random attitudes (count, 4)."""
    drawn = rng.normal(size=(count, 4))
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def random_mesh(rng: np.random.Generator, kind: int) -> Mesh:
    """Build a mesh about 2 m across: triangles anywhere (0), a rough ball (1), a rough terrain (2)."""
    if kind == 0:
        centre = rng.uniform(-1.0, 1.0, (24, 1, 3))
        return Mesh((centre + rng.normal(0.0, 0.4, (24, 3, 3))).reshape(-1, 3), np.arange(72).reshape(-1, 3))
    u, v = np.meshgrid(np.linspace(0.0, 1.0, 9), np.linspace(0.0, 1.0, 7), indexing="ij")
    if kind == 1:
        around, up = 2 * np.pi * u, np.pi * v
        ball = np.stack([np.sin(up) * np.cos(around), np.sin(up) * np.sin(around), np.cos(up)], -1)
        points = ball * rng.uniform(0.7, 1.2, (9, 7, 1))
    else:
        points = np.stack([2 * u - 1, 2 * v - 1, rng.uniform(-0.3, 0.3, u.shape)], -1)
    corner = (np.arange(8)[:, None] * 7 + np.arange(6)).reshape(-1)
    faces = np.concatenate([np.stack([corner, corner + 7, corner + 8], 1), np.stack([corner, corner + 8, corner + 1], 1)])
    return Mesh(points.reshape(-1, 3), faces)


def solid_range(shape: Shape, origin: Array, direction: Array) -> Array:
    """Return the distance along rays that start outside (n, 3), (n, 3) to a solid, in its frame [m], (n,); +inf: none.

    Args:
        shape: Box, sphere, cylinder or capsule.
        origin: Of the rays [m], in the solid's frame, (n, 3).
        direction: Of unit length, (n, 3).
    """
    if isinstance(shape, Box):
        return _box(np.array(shape.half_size), origin, direction)
    if isinstance(shape, Sphere):
        return _nearest([_sphere(shape.radius, origin, direction)])
    assert isinstance(shape, Cylinder | Capsule)
    roots = _quadric(shape.radius, origin[:, :2], direction[:, :2])
    height = origin[:, 2:] + roots * direction[:, 2:]
    found = [np.where(np.abs(height) <= shape.half_length, roots, np.inf)]
    for end in (-shape.half_length, shape.half_length):
        if isinstance(shape, Capsule):
            found.append(_sphere(shape.radius, origin - [0.0, 0.0, end], direction))
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            lid = (end - origin[:, 2]) / direction[:, 2]
            reach = np.linalg.norm(origin[:, :2] + lid[:, None] * direction[:, :2], axis=1)
        found.append(np.where(reach <= shape.radius, lid, np.inf)[:, None])
    return _nearest(found)


def placed_range(shape: Shape, position: Array, attitude: Array, origin: Array, direction: Array) -> Array:
    """Return the same for a solid somewhere in the world.

    Args:
        shape: Box, sphere, cylinder or capsule.
        position: Of the solid [m], world frame.
        attitude: Of the solid, quaternion x, y, z, w.
        origin: Of the rays [m], world frame, (n, 3).
        direction: Of unit length, (n, 3).
    """
    return solid_range(shape, rotate_inverse(attitude, origin - position), rotate_inverse(attitude, direction))


def plane_range(point: Array, normal: Array, origin: Array, direction: Array) -> Array:
    """Return the distance along rays to a plane without end [m], (n,); +inf: none.

    Args:
        point: On the plane [m], (3,).
        normal: Of the plane, (3,).
        origin: Of the rays [m], (n, 3).
        direction: Of the rays, (n, 3).
    """
    with np.errstate(divide="ignore"):
        return _nearest([(((point - origin) @ normal) / (direction @ normal))[:, None]])


def _box(half: Array, origin: Array, direction: Array) -> Array:
    with np.errstate(divide="ignore"):
        sides = (np.stack([-half, half])[:, None] - origin) / direction
    enter, leave = sides.min(0).max(1), sides.max(0).min(1)
    return np.where((enter <= leave) & (enter > 0.0), enter, np.inf)


def _sphere(radius: float, origin: Array, direction: Array) -> Array:
    return _quadric(radius, origin, direction)


def _quadric(radius: float, origin: Array, direction: Array) -> Array:
    """Return both distances at which |origin + t direction| = radius, (n, 2)."""
    a, b = np.sum(direction**2, 1), np.sum(origin * direction, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(b * b - a * (np.sum(origin**2, 1) - radius * radius))
        return np.stack([(-b - root) / a, (-b + root) / a], 1)


def _nearest(found: list[Array]) -> Array:
    together = np.concatenate(found, 1)
    return np.where(together > 0.0, together, np.inf).min(1)


def triangle_hits(origin: Array, direction: Array, corners: Array) -> tuple[Array, ArrayInt]:
    """Return the nearest of triangles (m, 3, 3) along rays (n, 3), (n, 3): distance [m], +inf, and its number, -1
    (Moeller-Trumbore).

    Args:
        origin: Of the rays [m], (n, 3).
        direction: Of unit length, (n, 3).
        corners: Of the triangles [m], (m, 3, 3).
    """
    # In blocks of rays: rays times triangles would not fit into memory.
    rows = max(_BLOCK // max(len(corners), 1), 1)
    parts = [_hits(origin[k : k + rows], direction[k : k + rows], corners) for k in range(0, len(origin), rows)]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def _hits(origin: Array, direction: Array, corners: Array) -> tuple[Array, ArrayInt]:
    a, b, c = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    p = np.cross(direction[:, None], c)
    away = origin[:, None] - a
    q = np.cross(away, b)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 1.0 / np.sum(p * b, -1)
        u, v = np.sum(away * p, -1) * scale, np.sum(direction[:, None] * q, -1) * scale
        t = np.sum(q * c, -1) * scale
        met = (u >= 0.0) & (v >= 0.0) & (u + v <= 1.0) & (t > 0.0)
    t = np.where(met, t, np.inf)
    nearest = t.argmin(1)
    distance = t[np.arange(len(t)), nearest]
    return distance, np.where(np.isfinite(distance), nearest, -1)


def silhouette(labels: ArrayAny) -> ArrayBool:
    """Return pixels of images (c, H, W) with another label among their eight neighbours, and the outermost ones."""
    band = np.ones(labels.shape, bool)
    inner = labels[:, 1:-1, 1:-1]
    height, width = labels.shape[1:]
    shifted = [labels[:, i : height - 2 + i, j : width - 2 + j] for i in range(3) for j in range(3)]
    band[:, 1:-1, 1:-1] = np.any([other != inner for other in shifted], axis=0)
    return band


# -----------------------------------------------------------------------------------------------------------------------------

# ---- The ray engine against Intel's Embree, where the package `embreex` is installed ----------------------------------------

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


def embree_figures(data: Path | None, meshes: int = 40, scans: Sequence[str] = SCANS) -> Iterator[Figure]:
    """Check random meshes, and the scans of the reference data where there are.

    Args:
        data: Folder of the reference data.
        meshes: Random ones.
        scans: Files below its `meshes`.
    """
    rng = np.random.default_rng(5)
    yield from _figures(f"{meshes} random meshes", [random_mesh(rng, k % 3) for k in range(meshes)])
    if data is not None:
        yield from _figures(f"{len(scans)} scans", [_scan(data / "meshes" / name) for name in scans])


def _scan(path: Path) -> Mesh:
    """Return all triangles of a file, brought to 2 m across around the origin."""
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
        rendered = cast(batch, table, position, attitude, channels=("range", "face"))
        other, face = _embree(mesh, table, position, attitude)
        inside = ~(silhouette(np.isfinite(other)) | _jumps(other))
        met = inside & np.isfinite(other) & np.isfinite(rendered["range"])
        pixels += int(met.sum())
        wrong += int(np.sum((np.isfinite(rendered["range"]) != np.isfinite(other)) & inside))
        gap, same = np.abs(rendered["range"][met] - other[met]), (face == rendered["face"])[met]
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


def _jumps(distance: Array) -> ArrayBool:
    """Pixels with a neighbour that is much nearer or farther."""
    band = np.zeros(distance.shape, bool)
    filled = np.where(np.isfinite(distance), distance, 1e3)
    for i in (0, 1, 2):
        for j in (0, 1, 2):
            shifted = filled[:, i : filled.shape[1] - 2 + i, j : filled.shape[2] - 2 + j]
            band[:, 1:-1, 1:-1] |= np.abs(shifted - filled[:, 1:-1, 1:-1]) > _JUMP
    return band


def _embree(mesh: Mesh, table: RayTable, position: Array, attitude: Array) -> tuple[Array, ArrayInt]:
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


# -----------------------------------------------------------------------------------------------------------------------------

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
    """Check each solid in 40 poses 10 m away, and a plane whose distance along the axis is 10 m, tilted by up to 60 degrees."""
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
    rendered = cast(batch, table, np.zeros((count, 3)), np.tile(_LEVEL, (count, 1)), channels=("depth", "range"))
    true = true.reshape(rendered["range"].shape)
    hit = np.isfinite(true)
    inside = ~silhouette(hit)
    wrong = int(np.sum((np.isfinite(rendered["range"]) != hit) & inside))
    both = inside & hit & np.isfinite(rendered["range"])
    along = np.broadcast_to(table.directions @ table.axis, true.shape)
    gaps = [rendered["range"][both] - true[both], rendered["depth"][both] - (true[both] * along[both])]
    return max(float(np.abs(gap).max()) for gap in gaps), wrong


def world_corners(mesh: Mesh, placement: Placement) -> Array:
    """Return corners of the triangles (m, 3, 3) of one placed mesh, float64."""
    turned = rotate(placement.attitude[0], placement.scale[0] * mesh.vertices.astype(np.float64))
    return np.asarray(turned + placement.position[0])[mesh.faces]


def brute_force_figures(meshes: int = 100) -> Iterator[Figure]:
    """Check random meshes in random poses 8 m away, against every triangle in float64."""
    rng, table = np.random.default_rng(1), ray_table(64, 48, 175.0)
    shapes = [random_mesh(rng, k % 3) for k in range(meshes)]
    turned, scale = quaternions(rng, meshes), rng.uniform(0.5, 1.5, meshes)
    layouts = [Placement.of([k], [0.0, 0.0, 8.0], turned[k], scale[k]) for k in range(meshes)]
    batch, still = GeometryBatch(shapes, layouts), np.zeros((meshes, 3))
    rendered = cast(batch, table, still, np.tile(_LEVEL, (meshes, 1)), channels=("depth", "face", "barycentric", "point_world"))
    rays = table.directions.reshape(-1, 3)
    corners = [world_corners(mesh, placement) for mesh, placement in zip(shapes, layouts, strict=True)]
    found = [triangle_hits(np.zeros_like(rays), rays, triangles) for triangles in corners]
    face = np.stack([f for _, f in found]).reshape(rendered["face"].shape)
    depth = np.stack([t for t, _ in found]).reshape(face.shape) * (table.directions @ table.axis)
    inside = ~silhouette(face)
    pixels = f"{int(np.sum(inside & (face >= 0))):,}"
    name = f"Rays: {meshes} random meshes against brute force"
    yield zero(f"{name}, other faces of {pixels} off the edges", int(np.sum((rendered["face"] != face) & inside)))
    same = (rendered["face"] == face) & (face >= 0)
    yield below(f"{name}, worst depth", float(np.abs(rendered["depth"][same] - depth[same]).max()), DEPTH_MAX, "m")
    worst = max(_rebuilt(rendered, corners[k], k) for k in range(meshes))
    yield below("Rays: the point met, from face and barycentrics, worst", worst, 1e-5, "m")


def _rebuilt(rendered: dict[str, NDArray[np.generic]], corners: Array, k: int) -> float:
    """Largest distance of a point met to the one that its face and barycentrics say [m]."""
    met = np.asarray(rendered["face"][k]) >= 0
    if not met.any():
        return 0.0
    share = np.asarray(rendered["barycentric"][k][met], np.float64)
    weights = np.concatenate([1.0 - share.sum(1, keepdims=True), share], 1)
    points = np.einsum("nk,nkd->nd", weights, corners[np.asarray(rendered["face"][k][met], int)])
    return float(np.linalg.norm(points - np.asarray(rendered["point_world"][k][met], float), axis=1).max())


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

    def images(which: ArrayIndex) -> dict[str, NDArray[np.generic]]:
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
    """Check a box that moves in one environment is at its new place in the next image there, and nowhere else."""
    count, moved, there = 16, 5, np.array([0.3, -0.2, 6.0])
    dynamic_instances = [Placement.of([0], [0.0, 0.0, 4.0 + 0.1 * k]) for k in range(count)]
    batch = GeometryBatch([Box((0.5, 0.5, 0.5))], [Placement.empty()], np.zeros(count, int), dynamic_instances)
    table, still = ray_table(), np.zeros((count, 3))
    turned = np.tile(_LEVEL, (count, 1))
    before = cast(batch, table, still, turned)["depth"].copy()
    batch.set_dynamic_instances(there[None, None], np.array([[_LEVEL]]), env_ids=[moved])
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
