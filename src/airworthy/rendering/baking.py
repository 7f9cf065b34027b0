"""Baked light: sun and sky, walls and floors sending light on to each other, traced once and kept.

The indirect light of a point is the mean of what comes from directions over its hemisphere; what a direction brings is asked
of a `Tracer` (`airworthy.rendering.light_baking` gives the renderer itself). Each pass lights surfaces with what the last one
found, so that n passes follow light over n bounces; by default passes with few directions are mixed (`relaxation`) until light
no longer changes, and one with all of them ends it. Directions are the same for all nodes of a kind: results depend on nothing
but the scene and the settings.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayF32, ArrayU32, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import check_fields
from airworthy.geometry import GeometryBatch, RayTable, bounds, occluded
from airworthy.rendering.directions import attitudes_towards, hemisphere_table, parts, ray_density, sphere_table
from airworthy.rendering.occlusion import scene_occlusion
from airworthy.rendering.relaxation import Relaxation
from airworthy.scenes.lights import PROBE_SIZE, BakedLight, MapLayout, fill_invalid, map_layout
from airworthy.scenes.record import LATER, Scene, Sun
from airworthy.scenes.texels import pack_shared_exponent

__all__ = ["DEFAULT_BAKE", "BakeSettings", "Tracer", "solve"]

# ---- Where light is gathered: probes on a grid, nodes on the faces of boxes -------------------------------------------------


class Tracer(Protocol):
    """Answers what comes from directions."""

    def __call__(self, table: RayTable, density: Array, position: Array, attitude: Array) -> tuple[Any, Any, Any]:
        """Radiance (n, 1, K, 3), distance (n, 1, K) (-1: the sky) and whether a back face is seen (n, 1, K), of n points.

        Without the light that `lamps` finds; `density` of the table's rays (K,) [1/sr] says how the two share it.
        """
        ...

    def lamps(self, position: Array, normal: Array | None) -> tuple[Array, Array, Array]:
        """Return directions (n, s, 3) to points of what glows, irradiance across them (n, s, 3), density (n, s) [1/sr]."""
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

    def gather(self, tracer: Tracer, rays: int, text: str, quiet: bool, settle: bool = True) -> None:
        """Light of all probes from what the tracer sees.

        Args:
            tracer: Of rays and light.
            rays: Per vertex or node.
            text: For the line of progress.
            quiet: Print nothing.
            settle: Find anew which probes are inside of something.
        """
        table = sphere_table(2 * rays)
        direction = table.directions[0]
        density = ray_density(table, hemisphere=False)
        weight = _sides(direction).T / density  # (6, K)
        identity = np.array([0.0, 0.0, 0.0, 1.0])
        for part in parts(len(self.position), 2 * rays, text, quiet):
            where = self.position[part]
            radiance, distance, back = tracer(table, density, where, np.tile(identity, (len(where), 1)))
            self.light[part] = np.einsum("sk,nkc->nsc", weight, np.asarray(radiance, float)[:, 0])
            self.light[part] += self._from_lamps(tracer, where, float(density[0]))
            if settle:
                # Whoever sees back faces is inside of something.
                self.valid[part] = (np.asarray(back)[:, 0] * (np.asarray(distance)[:, 0] >= 0)).mean(1) < 0.25
        grid = self.light.reshape(*self.counts, 18)
        filled = fill_invalid(grid, self.valid.reshape(*self.counts), rounds=4)
        self.light = filled.reshape(-1, 6, 3)

    @staticmethod
    def _from_lamps(tracer: Tracer, where: Array, rays: float) -> Array:
        """Return what points of what glows send to the six sides of probes (n, 6, 3)."""
        found = np.zeros((len(where), 6, 3))
        for part in parts(len(where), LAMP_SHARE, "", True):
            direction, light, density = tracer.lamps(where[part], None)
            found[part] = np.einsum("nsk,nsc->nkc", _sides(direction), light * (density / (density + rays))[..., None])
        return found

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

    def gather(self, tracer: Tracer, rays: int, text: str, quiet: bool, settle: bool = True) -> None:
        """Light of all nodes from what the tracer sees.

        Args:
            tracer: Of rays and light.
            rays: Per vertex or node.
            text: For the line of progress.
            quiet: Print nothing.
            settle: Find anew which nodes are inside of something.
        """
        table = hemisphere_table(rays)
        density = ray_density(table, hemisphere=True)
        for part in parts(len(self.lifted), rays, text, quiet):
            radiance, distance, back = tracer(table, density, self.lifted[part], self.attitude[part])
            self.light[part] = np.asarray(radiance, float)[:, 0].mean(1) * np.pi
            self.light[part] += self._from_lamps(tracer, part, rays)
            if not settle:
                continue
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

    def _from_lamps(self, tracer: Tracer, nodes: slice, rays: int) -> Array:
        """Return the irradiance (n, 3) of nodes by points of what glows."""
        where, normal = self.lifted[nodes], self.layout.normal[nodes]
        found = np.zeros((len(where), 3))
        for part in parts(len(where), LAMP_SHARE, "", True):
            direction, light, density = tracer.lamps(where[part], normal[part])
            cosine = np.maximum(np.einsum("nsk,nk->ns", direction, normal[part]), 0.0)
            share = density / (density + rays * cosine / np.pi)
            found[part] = np.einsum("ns,nsc->nc", cosine * share, light)
        return found

    def packed(self) -> ArrayU32:
        """Return (node, 2)"""
        light = pack_shared_exponent(self.light).reshape(-1)
        return np.stack([light, np.rint(self.sun * 255).astype(np.uint32)], -1).astype(np.uint32)


TURN = 2.0 * np.pi * 0.1545
"""Angle between the directions of neighbouring nodes [rad]: no multiple of it is close to a whole turn."""
LIFT = 0.01
"""Nodes look around from this far above their face [m]."""
LAMP_SHARE = 1024
"""Of the rays that are asked for at once, by each place that looks at what glows: NumPy's part needs memory of its own."""


def _sides(direction: Array) -> Array:
    """Return the cosines (..., 6) of unit directions to the sides -x, +x, -y, +y, -z, +z of an ambient cube.

    It keeps the irradiance of each of six sides, which a normal blends by the squares of its parts.
    """
    return np.stack([np.maximum(s * direction[..., k], 0.0) for k in range(3) for s in (-1.0, 1.0)], -1)


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

    bounces: int = 0
    """Times that light is followed from surface to surface; 0: until it no longer changes."""
    tolerance: float = 0.005
    """With 0 bounces: what the last round may still change, as a share of all light."""
    rays: int = 256
    """Directions per node and bounce."""
    probe_spacing: float = 1.0
    """[m]; wider where the scene would need more than `probes_max`."""
    probes_max: int = 12_000
    texel: float = 0.25
    """Distance of the nodes on boxes [m]."""
    nodes_max: int = 150_000
    """The texel is widened until no more nodes are needed."""
    finest: float = 0.4
    """Small places are baked finer: spacing and texel shrink to this share of theirs as long as a quarter of the probes and
    of the nodes is enough."""
    occlusion_rays: int = 128
    """Per vertex of unique meshes; 0: none."""
    occlusion_distance: float = 2.0
    """Beyond it a mesh does not shade itself, since the volume knows more [m]."""
    vertices_max: int = 400_000
    """Meshes with more vertices are left open."""
    detail: float = field(default=0.0, metadata=LATER)
    """Width of a pixel over the angle between directions by which levels of detail are chosen, as `ShadingOptions.detail`:
    above 0 rays meet the coarse crowns of far trees, and their shadows; 0: everything at its finest."""
    gloss: bool = field(default=False, metadata=LATER)
    """Whether surfaces send on what they mirror, too, of lamps and of light from all sides: of dark leaves it is a third.
    False: they are Lambert's."""

    def __post_init__(self) -> None:
        check_fields(self, "BakeSettings.")
        whole = (self.rays, self.probes_max, self.nodes_max)
        lengths = (self.probe_spacing, self.texel, self.occlusion_distance, self.tolerance)
        if not 0.0 <= self.detail <= 64.0:
            raise AirworthyError(f"Light cannot be baked with `detail` {self.detail}; expected 0 to 64 pixels.")
        if not 0.0 < self.finest <= 1.0:
            raise AirworthyError(f"Light cannot be baked with `finest` {self.finest}; expected a share, above 0 and up to 1.")
        if min(whole) < 1 or min(lengths) <= 0.0 or min(self.bounces, self.occlusion_rays, self.vertices_max) < 0:
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
    texel = settings.texel * settings.finest
    layout = map_layout(geometry.shapes, placement, texel)
    while (over := len(layout.position) / _allowed(settings.nodes_max, texel, settings.texel)) > 1.0:
        wider = texel * max(1.1, float(np.sqrt(over)))
        # Not past the texel that was asked for at once: there four times as many nodes are allowed.
        texel = min(wider, settings.texel) if texel < settings.texel else wider
        layout = map_layout(geometry.shapes, placement, texel)
    lower, spacing, counts = probe_grid(scene, geometry, settings)
    volume = Volume(geometry, scene, lower, spacing, counts)
    surface = Surface(geometry, scene, layout)
    occlusion = scene_occlusion(scene, settings.occlusion_rays, settings.occlusion_distance, settings.vertices_max)
    if not settings.bounces:
        _settle(volume, surface, tracer, settings, quiet)
    for bounce in range(max(settings.bounces, 1)):
        tracer.use(joined(volume, surface, occlusion))
        text = f"Baking light, bounce {bounce + 1} of {settings.bounces}" if settings.bounces else "Baking light, last round"
        volume.gather(tracer, settings.rays, text, quiet)
        surface.gather(tracer, settings.rays, text, quiet)
    return joined(volume, surface, occlusion)


ROUNDS_MAX = 12
"""Of settling; none of the places that are shipped needs more than half of them."""
FEW = 4
"""While light settles, a node looks in one over this many of its directions: errors of single nodes are lost among those that
they light, and the last round looks in all of them."""


def _settle(volume: Volume, surface: Surface, tracer: Tracer, settings: BakeSettings, quiet: bool) -> None:
    """Let light go round until it no longer changes, with few directions."""
    relaxation, rays = Relaxation(), max(settings.rays // FEW, 16)
    state = _state(volume, surface)
    for number in range(ROUNDS_MAX):
        # Occlusion by vertices only darkens what meshes send on: the last round knows it.
        tracer.use(joined(volume, surface, {}))
        text = f"Baking light, round {number + 1}"
        volume.gather(tracer, rays, text, quiet, settle=number == 0)
        surface.gather(tracer, rays, text, quiet, settle=number == 0)
        state = relaxation.next(state, _state(volume, surface))
        probes = volume.light.size // 3
        # Copies: gathering writes into them, and what was tried must stay what it was.
        volume.light, surface.light = state[:probes].reshape(volume.light.shape).copy(), state[probes:].copy()
        if relaxation.change < settings.tolerance:
            return


def _state(volume: Volume, surface: Surface) -> Array:
    """Return the light of all probes and nodes, (n, 3)."""
    return np.concatenate([volume.light.reshape(-1, 3), surface.light])


def _allowed(most: int, length: float, asked: float) -> float:
    """Return how many nodes or probes there may be at a distance of them: a quarter where it is finer than was asked for."""
    return max(0.25 * most if length < asked else float(most), 1.0)


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
    spacing = settings.probe_spacing * settings.finest
    while True:
        counts = np.maximum(np.ceil((upper - lower) / spacing).astype(int) + 1, 2)
        if counts.prod() <= max(_allowed(settings.probes_max, spacing, settings.probe_spacing), 8):
            break
        spacing = min(1.1 * spacing, settings.probe_spacing) if spacing < settings.probe_spacing else 1.1 * spacing
    return lower, (upper - lower) / (counts - 1), counts.astype(np.int32)


def _extent(geometry: GeometryBatch) -> tuple[Array, Array] | None:
    placement = geometry.layout(0)
    if not len(placement):
        return None
    reach = np.array([max(np.linalg.norm(c) for c in bounds(shape)) for shape in geometry.shapes])
    radius = (reach[placement.shape] * placement.scale)[:, None]
    return (placement.position - radius).min(0), (placement.position + radius).max(0)
