"""Baked light: sun and sky, walls and floors sending light on to each other, traced once and kept.

The indirect light of a point is the mean of what comes from directions over its hemisphere; what a direction brings is asked
of a `Tracer` (`airworthy.rendering.light_baking` gives the renderer itself). Each pass lights surfaces with what the last one
found, so that n passes follow light over n bounces. Directions are the same for all nodes of a kind: results depend on nothing
but the scene and the settings.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayF32, ArrayU32, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.core.jobs.progress import progress
from airworthy.core.schema import check_fields
from airworthy.geometry import GeometryBatch, Mesh, Placement, RayTable, bounds, cast, occluded
from airworthy.scenes.lights import PROBE_SIZE, BakedLight, MapLayout, fill_invalid, map_layout
from airworthy.scenes.record import Scene, Sun
from airworthy.scenes.texels import pack_shared_exponent

__all__ = ["DEFAULT_BAKE", "BakeSettings", "Tracer", "scene_occlusion", "solve", "vertex_normals", "vertex_occlusion"]

# ---- Directions in which baking looks, and how its work is parted -----------------------------------------------------------

RAYS_PER_PASS = 1 << 20
"""Rays that are asked for at once."""


def sphere_table(count: int) -> RayTable:
    """Return directions spread evenly over the sphere (a Fibonacci spiral), in an order in which neighbours are close."""
    k = np.arange(count) + 0.5
    z = 1.0 - 2.0 * k / count
    return _spiral_table(k, z)


def hemisphere_table(count: int) -> RayTable:
    """Return directions over the half of the sphere around z, as dense as their cosine: every one counts the same."""
    k = np.arange(count) + 0.5
    return _spiral_table(k, np.sqrt(1.0 - k / count))


def _spiral_table(k: NDArray[np.floating], z: NDArray[np.floating]) -> RayTable:
    azimuth = k * (np.pi * (3.0 - np.sqrt(5.0))) % (2.0 * np.pi)
    flat = np.sqrt(np.maximum(1.0 - z * z, 0.0))
    directions = np.stack([np.cos(azimuth) * flat, np.sin(azimuth) * flat, z], -1)
    # Octants one after the other, azimuths within them: packets of rays that stay together are fast.
    octant = (directions < 0.0) @ np.array([1, 2, 4])
    order = np.lexsort((azimuth, octant))
    return RayTable(directions[order][None])


def attitudes_towards(normals: Array) -> Array:
    """Return quaternions (n, 4) that turn z onto unit vectors (n, 3)."""
    n = np.asarray(normals, np.float64)
    w = 1.0 + n[:, 2]
    q = np.stack([-n[:, 1], n[:, 0], np.zeros(len(n)), w], -1)
    q[w < 1e-9] = [1.0, 0.0, 0.0, 0.0]
    return np.asarray(q / np.linalg.norm(q, axis=1, keepdims=True))


def parts(count: int, rays: int, text: str, quiet: bool) -> Iterable[slice]:
    """Split surface points into passes of at most `RAYS_PER_PASS` rays, so that memory stays bounded.

    Args:
        count: Points.
        rays: Rays of each point.
        text: What the progress bar is called.
        quiet: Whether there is none.
    """
    size = max(1, RAYS_PER_PASS // rays)
    return progress([slice(k, min(k + size, count)) for k in range(0, count, size)], text, quiet=quiet)


# -----------------------------------------------------------------------------------------------------------------------------

# ---- How much of the hemisphere over its vertices a mesh itself leaves open -------------------------------------------------


def scene_occlusion(scene: Scene, rays: int, distance: float, vertices_max: int) -> dict[str, ArrayF32]:
    """Return, of every mesh in use, the share of the hemisphere over each vertex that the mesh itself leaves open, (V,).

    Args:
        scene: With its meshes.
        rays: Per vertex.
        distance: How far is looked, at the scale of the mesh's first instance [m].
        vertices_max: Meshes with more vertices are left out.
    """
    scales: dict[str, float] = {}
    for item in (*scene.instances, *(part for actor in scene.actors for part in actor.parts)):
        # The first instance stands for all: occlusion belongs to a mesh, not to its copies.
        scales.setdefault(item.shape, item.scale)
    found = {}
    for name, scale in scales.items():
        mesh = scene.shapes[name]
        if isinstance(mesh, Mesh) and 0 < len(mesh.vertices) <= vertices_max and len(mesh.faces):
            found[name] = vertex_occlusion(mesh, rays, distance / scale)
    return found


def vertex_occlusion(mesh: Mesh, rays: int, distance: float) -> ArrayF32:
    """Return the share of the cosine-weighted hemisphere over each vertex that the mesh leaves open within a distance [m],
    (V,).

    Args:
        mesh: V vertices.
        rays: Per vertex or node.
        distance: How far is looked [m].
    """
    normals = vertex_normals(mesh)
    lower, upper = bounds(mesh)
    lift = 1e-3 * float(np.linalg.norm(upper - lower))
    # The mesh alone: what other things hide changes with where they stand, and is left to probes and maps.
    batch = GeometryBatch([mesh], [Placement.of(0)])
    table = hemisphere_table(rays)
    open_share = np.ones(len(mesh.vertices), np.float32)
    positions, attitude = mesh.vertices.astype(np.float64) + normals * lift, attitudes_towards(normals)
    for part in parts(len(positions), rays, "", True):
        count = part.stop - part.start
        hits = cast(batch, table, positions[part], attitude[part], np.zeros(count, np.int32), ("range",), max_range=distance)
        open_share[part] = np.isinf(hits["range"][:, 0]).mean(1)
    return open_share


def vertex_normals(mesh: Mesh) -> Array:
    """Return the mesh's own vertex normals, or means of its faces' weighted by area, (V, 3)."""
    if mesh.normals is not None:
        normals = mesh.normals.astype(np.float64)
    else:
        p = mesh.vertices.astype(np.float64)[mesh.faces]
        # Not brought to unit length: a cross product is as long as its face is large, which weights it.
        face = np.repeat(np.cross(p[:, 1] - p[:, 0], p[:, 2] - p[:, 0]), 3, axis=0)
        corner, count = mesh.faces.reshape(-1), len(mesh.vertices)
        normals = np.stack([np.bincount(corner, face[:, k], count) for k in range(3)], -1)
    length = np.linalg.norm(normals, axis=1, keepdims=True)
    return np.where(length > 0.0, normals / np.maximum(length, 1e-300), np.array([0.0, 0.0, 1.0]))


# ---- Where light is gathered: probes on a grid, nodes on the faces of boxes -------------------------------------------------


class Tracer(Protocol):
    """Answers what comes from directions."""

    def __call__(self, table: RayTable, position: Array, attitude: Array) -> tuple[Any, Any, Any]:
        """Radiance (n, 1, K, 3), distance (n, 1, K) (-1: the sky) and whether a back face is seen (n, 1, K), of n points."""
        ...

    def use(self, baked: BakedLight) -> None:
        """Light surfaces with this from now on."""
        ...


class Volume:
    """Probes on a grid."""

    def __init__(self, geometry: GeometryBatch, scene: Scene, lower: Array, spacing: Array, counts: NDArray[np.int32]) -> None:
        self.lower, self.spacing, self.counts = lower, spacing, counts
        grid = np.stack(np.meshgrid(*(np.arange(n) for n in counts), indexing="ij"), -1).reshape(-1, 3)
        self.position = lower + grid * spacing
        self.light = np.zeros((len(self.position), 6, 3))
        self.valid = np.ones(len(self.position), bool)
        self.sun = sun_visible(geometry, scene, self.position)

    def gather(self, tracer: Tracer, rays: int, text: str, quiet: bool) -> None:
        """Light of all probes from what the tracer sees.

        Args:
            tracer: Of rays and light.
            rays: Per vertex or node.
            text: For the line of progress.
            quiet: Print nothing.
        """
        table = sphere_table(2 * rays)
        direction = table.directions[0]
        # An ambient cube: irradiance from each of six sides, which a normal blends by the squares of its parts.
        sides = np.stack([np.maximum(s * direction[:, k], 0.0) for k in range(3) for s in (-1.0, 1.0)])  # (6, K)
        weight = sides * (4.0 * np.pi / direction.shape[0])
        identity = np.array([0.0, 0.0, 0.0, 1.0])
        for part in parts(len(self.position), 2 * rays, text, quiet):
            where = self.position[part]
            radiance, distance, back = tracer(table, where, np.tile(identity, (len(where), 1)))
            self.light[part] = np.einsum("sk,nkc->nsc", weight, np.asarray(radiance, float)[:, 0])
            # Whoever sees back faces is inside of something.
            self.valid[part] = (np.asarray(back)[:, 0] * (np.asarray(distance)[:, 0] >= 0)).mean(1) < 0.25
        grid = self.light.reshape(*self.counts, 18)
        filled = fill_invalid(grid, self.valid.reshape(*self.counts), rounds=4)
        self.light = filled.reshape(-1, 6, 3)

    def packed(self) -> ArrayU32:
        """Return (probe, PROBE_SIZE)"""
        packed = np.zeros((len(self.position), PROBE_SIZE), np.uint32)
        packed[:, :6] = pack_shared_exponent(self.light)
        # Probes inside things got the light of their neighbours: they count, but less.
        valid = np.where(self.valid, 255, 16).astype(np.uint32)
        packed[:, 6] = valid | np.rint(self.sun * 255).astype(np.uint32) << 8
        return packed


class Surface:
    """Nodes on the faces of boxes."""

    def __init__(self, geometry: GeometryBatch, scene: Scene, layout: MapLayout) -> None:
        self.layout = layout
        self.lifted = layout.position + layout.normal * LIFT
        self.light = np.zeros((len(layout.position), 3))
        self.valid = np.ones(len(layout.position), bool)
        self.sun = sun_visible(geometry, scene, self.lifted)
        self.attitude = attitudes_towards(layout.normal)
        turn = np.zeros(len(layout.position))
        for first, rows, columns in layout.faces:
            phase = 2 * (np.arange(rows)[:, None] % 2) + np.arange(columns)[None, :] % 2
            turn[first : first + rows * columns] = phase.reshape(-1) * TURN
        # Four neighbours look in turned directions; smoothing takes each of the four for a quarter.
        half = 0.5 * turn
        spin = np.stack([0.0 * half, 0.0 * half, np.sin(half), np.cos(half)], -1)
        self.attitude = frames.multiply(self.attitude, spin)

    def gather(self, tracer: Tracer, rays: int, text: str, quiet: bool) -> None:
        """Light of all nodes from what the tracer sees.

        Args:
            tracer: Of rays and light.
            rays: Per vertex or node.
            text: For the line of progress.
            quiet: Print nothing.
        """
        table = hemisphere_table(rays)
        for part in parts(len(self.lifted), rays, text, quiet):
            radiance, distance, back = tracer(table, self.lifted[part], self.attitude[part])
            self.light[part] = np.asarray(radiance, float)[:, 0].mean(1) * np.pi
            struck, near = np.asarray(distance)[:, 0] >= 0.0, np.asarray(distance)[:, 0]
            # A node that lies in another thing meets it at once in most directions; its light would bleed through walls.
            covered = (struck & (near < 2.0 * LIFT)).mean(1) > 0.5
            self.valid[part] = ((np.asarray(back)[:, 0] * struck).mean(1) < 0.2) & ~covered
        for first, rows, columns in self.layout.faces:
            span = slice(first, first + rows * columns)
            valid = self.valid[span].reshape(rows, columns)
            both = np.concatenate([self.light[span], self.sun[span][:, None]], 1).reshape(rows, columns, 4)
            filled = fill_invalid(both, valid)
            self.light[span] = smoothed(filled[..., :3]).reshape(-1, 3)
            self.sun[span] = filled[..., 3].reshape(-1)

    def packed(self) -> ArrayU32:
        """Return (node, 2)"""
        light = pack_shared_exponent(self.light).reshape(-1)
        return np.stack([light, np.rint(self.sun * 255).astype(np.uint32)], -1).astype(np.uint32)


TURN = 2.0 * np.pi * 0.1545
"""Angle between the directions of neighbouring nodes [rad]: no multiple of it is close to a whole turn."""
LIFT = 0.01
"""Nodes look around from this far above their face [m]."""


def joined(volume: Volume, surface: Surface, occlusion: dict[str, ArrayF32]) -> BakedLight:
    """Return what has been found so far.

    Args:
        volume: Of probes.
        surface: Of nodes.
        occlusion: By the mesh's name, (V,).
    """
    layout = surface.layout
    return BakedLight(
        volume.lower,
        volume.spacing,
        volume.counts,
        volume.packed(),
        layout.map_of_instance,
        layout.maps,
        surface.packed().reshape(-1, 2),
        occlusion,
    )


def smoothed(grid: Array) -> Array:
    """Return the binomial mean over 3 x 3 nodes of a grid (rows, columns, k); borders are repeated."""
    for axis in (0, 1):
        pad = [(1, 1) if k == axis else (0, 0) for k in range(grid.ndim)]
        wide = np.pad(grid, pad, mode="edge")
        n = grid.shape[axis]
        parts = [np.take(wide, np.arange(d, d + n), axis=axis) for d in range(3)]
        grid = 0.25 * parts[0] + 0.5 * parts[1] + 0.25 * parts[2]
    return grid


def sun_visible(geometry: GeometryBatch, scene: Scene, points: Array) -> Array:
    """Return 1 where the first sun reaches a point, else 0, (n,); 1 everywhere without one.

    Args:
        geometry: What hides.
        scene: With its suns.
        points: (n, 3) [m], world.
    """
    suns = [light for light in scene.lights if isinstance(light, Sun)]
    if not suns or not len(points):
        return np.ones(len(points))
    towards = -np.array(suns[0].direction, float)
    end = points + towards / np.linalg.norm(towards) * 1e3
    return np.where(occluded(geometry, points, end, np.zeros(len(points), np.int32)), 0.0, 1.0)


# -----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BakeSettings:
    """How finely light is baked.

    Raises:
        AirworthyError: If a number is out of range.
    """

    bounces: int = 3
    """Times that light is followed from surface to surface."""
    rays: int = 256
    """Directions per node and bounce."""
    probe_spacing: float = 1.0
    """[m]; wider where the scene would need more than `probes_max`."""
    probes_max: int = 12_000
    texel: float = 0.25
    """Distance of the nodes on boxes [m]."""
    nodes_max: int = 150_000
    """The texel is widened until no more nodes are needed."""
    occlusion_rays: int = 128
    """Per vertex of unique meshes; 0: none."""
    occlusion_distance: float = 2.0
    """Beyond it a mesh does not shade itself, since the volume knows more [m]."""
    vertices_max: int = 400_000
    """Meshes with more vertices are left open."""

    def __post_init__(self) -> None:
        check_fields(self, "BakeSettings.")
        whole = (self.bounces, self.rays, self.probes_max, self.nodes_max)
        lengths = (self.probe_spacing, self.texel, self.occlusion_distance)
        if min(whole) < 1 or min(lengths) <= 0.0 or min(self.occlusion_rays, self.vertices_max) < 0:
            raise AirworthyError(f"Light cannot be baked with {self}; expected counts of at least 1 and lengths above 0.")


DEFAULT_BAKE = BakeSettings()


def solve(scene: Scene, geometry: GeometryBatch, tracer: Tracer, settings: BakeSettings, quiet: bool = True) -> BakedLight:
    """Bake the light of a scene.

    Args:
        scene: Whose lights and bounds; its actors are not there.
        geometry: With the scene's static instances as layout 0.
        tracer: What directions bring.
        settings: How finely.
        quiet: Show no progress.
    """
    placement = geometry.layout(0)
    texel = settings.texel
    layout = map_layout(geometry.shapes, placement, texel)
    while len(layout.position) > settings.nodes_max:
        texel *= max(1.1, float(np.sqrt(len(layout.position) / settings.nodes_max)))
        layout = map_layout(geometry.shapes, placement, texel)
    lower, spacing, counts = probe_grid(scene, geometry, settings)
    volume = Volume(geometry, scene, lower, spacing, counts)
    surface = Surface(geometry, scene, layout)
    occlusion: dict[str, ArrayF32] = {}
    if settings.occlusion_rays:
        occlusion = scene_occlusion(scene, settings.occlusion_rays, settings.occlusion_distance, settings.vertices_max)
    baked = joined(volume, surface, occlusion)
    for bounce in range(settings.bounces):
        tracer.use(baked)
        text = f"Baking light, bounce {bounce + 1} of {settings.bounces}"
        volume.gather(tracer, settings.rays, text, quiet)
        surface.gather(tracer, settings.rays, text, quiet)
        baked = joined(volume, surface, occlusion)
    return baked


def probe_grid(scene: Scene, geometry: GeometryBatch, settings: BakeSettings) -> tuple[Array, Array, NDArray[np.int32]]:
    """Lower corner, spacing and counts of the probes: over the scene's bounds where something stands, and a little more.

    Args:
        scene: To be lit.
        geometry: The same, for what stands where.
        settings: With the spacing [m].
    """
    corners = _extent(geometry)
    lower, upper = np.array(scene.bounds.lower, float), np.array(scene.bounds.upper, float)
    if corners is not None:
        lower, upper = np.maximum(lower, corners[0] - 1.0), np.minimum(upper, corners[1] + 1.0)
    upper = np.maximum(upper, lower + 0.5)
    spacing = settings.probe_spacing
    while True:
        counts = np.maximum(np.ceil((upper - lower) / spacing).astype(int) + 1, 2)
        if counts.prod() <= max(settings.probes_max, 8):
            break
        spacing *= 1.1
    return lower, (upper - lower) / (counts - 1), counts.astype(np.int32)


def _extent(geometry: GeometryBatch) -> tuple[Array, Array] | None:
    placement = geometry.layout(0)
    if not len(placement):
        return None
    reach = np.array([max(np.linalg.norm(c) for c in bounds(shape)) for shape in geometry.shapes])
    radius = (reach[placement.shape] * placement.scale)[:, None]
    return (placement.position - radius).min(0), (placement.position + radius).max(0)
