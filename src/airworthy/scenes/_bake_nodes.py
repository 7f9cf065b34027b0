"""Where light is gathered: probes on a grid, nodes on the faces of boxes."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from airworthy.core import frames
from airworthy.geometry import GeometryBatch, RayTable, occluded
from airworthy.scenes._directions import attitudes_towards, hemisphere_table, parts, sphere_table
from airworthy.scenes._texels import pack_shared_exponent
from airworthy.scenes.lightmaps import PROBE_WORDS, BakedLight, MapLayout, fill_invalid
from airworthy.scenes.record import Scene, Sun

Floats = NDArray[np.float64]


class Tracer(Protocol):
    """Answers what comes from directions."""

    def __call__(self, table: RayTable, position: Floats, attitude: Floats) -> tuple[Any, Any, Any]:
        """Radiance (n, 1, K, 3), distance (n, 1, K) (-1: the sky) and whether a back face is seen (n, 1, K), of n points."""
        ...

    def use(self, baked: BakedLight) -> None:
        """Light surfaces with this from now on."""
        ...


class Volume:
    """Probes on a grid."""

    def __init__(
        self, geometry: GeometryBatch, scene: Scene, lower: Floats, spacing: Floats, counts: NDArray[np.int32]
    ) -> None:
        self.lower, self.spacing, self.counts = lower, spacing, counts
        grid = np.stack(np.meshgrid(*(np.arange(n) for n in counts), indexing="ij"), -1).reshape(-1, 3)
        self.position = lower + grid * spacing
        self.light = np.zeros((len(self.position), 6, 3))
        self.valid = np.ones(len(self.position), bool)
        self.sun = sun_visible(geometry, scene, self.position)

    def gather(self, tracer: Tracer, rays: int, text: str, quiet: bool) -> None:
        """Light of all probes from what the tracer sees."""
        table = sphere_table(2 * rays)
        direction = table.directions[0]
        sides = np.stack([np.maximum(s * direction[:, k], 0.0) for k in range(3) for s in (-1.0, 1.0)])  # (6, K)
        weight = sides * (4.0 * np.pi / direction.shape[0])
        identity = np.array([0.0, 0.0, 0.0, 1.0])
        for part in parts(len(self.position), 2 * rays, text, quiet):
            where = self.position[part]
            radiance, distance, back = tracer(table, where, np.tile(identity, (len(where), 1)))
            self.light[part] = np.einsum("sk,nkc->nsc", weight, np.asarray(radiance, float)[:, 0])
            self.valid[part] = (np.asarray(back)[:, 0] * (np.asarray(distance)[:, 0] >= 0)).mean(1) < 0.25
        grid = self.light.reshape(*self.counts, 18)
        filled = fill_invalid(grid, self.valid.reshape(*self.counts), rounds=4)
        self.light = filled.reshape(-1, 6, 3)

    def words(self) -> NDArray[np.uint32]:
        """(probe, PROBE_WORDS)"""
        words = np.zeros((len(self.position), PROBE_WORDS), np.uint32)
        words[:, :6] = pack_shared_exponent(self.light)
        # Probes inside things got the light of their neighbours: they count, but less.
        valid = np.where(self.valid, 255, 16).astype(np.uint32)
        words[:, 6] = valid | np.rint(self.sun * 255).astype(np.uint32) << 8
        return words


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
        """Light of all nodes from what the tracer sees."""
        table = hemisphere_table(rays)
        for part in parts(len(self.lifted), rays, text, quiet):
            radiance, distance, back = tracer(table, self.lifted[part], self.attitude[part])
            self.light[part] = np.asarray(radiance, float)[:, 0].mean(1) * np.pi
            seen, near = np.asarray(distance)[:, 0] >= 0.0, np.asarray(distance)[:, 0]
            covered = (seen & (near < 2.0 * LIFT)).mean(1) > 0.5
            self.valid[part] = ((np.asarray(back)[:, 0] * seen).mean(1) < 0.2) & ~covered
        for first, rows, columns in self.layout.faces:
            span = slice(first, first + rows * columns)
            valid = self.valid[span].reshape(rows, columns)
            both = np.concatenate([self.light[span], self.sun[span][:, None]], 1).reshape(rows, columns, 4)
            filled = fill_invalid(both, valid)
            self.light[span] = smoothed(filled[..., :3]).reshape(-1, 3)
            self.sun[span] = filled[..., 3].reshape(-1)

    def words(self) -> NDArray[np.uint32]:
        """(node, 2)"""
        light = pack_shared_exponent(self.light).reshape(-1)
        return np.stack([light, np.rint(self.sun * 255).astype(np.uint32)], -1).astype(np.uint32)


TURN = 2.0 * np.pi * 0.1545
"""Angle between the directions of neighbouring nodes [rad]: no multiple of it is close to a whole turn."""
LIFT = 0.01
"""Nodes look around from this far above their face [m]."""


def joined(volume: Volume, surface: Surface, occlusion: dict[str, NDArray[np.float32]]) -> BakedLight:
    """What has been found so far."""
    layout = surface.layout
    return BakedLight(
        volume.lower,
        volume.spacing,
        volume.counts,
        volume.words(),
        layout.map_of_instance,
        layout.maps,
        surface.words().reshape(-1, 2),
        occlusion,
    )


def smoothed(grid: Floats) -> Floats:
    """Binomial mean over 3 x 3 nodes of a grid (rows, columns, k); borders are repeated."""
    for axis in (0, 1):
        pad = [(1, 1) if k == axis else (0, 0) for k in range(grid.ndim)]
        wide = np.pad(grid, pad, mode="edge")
        n = grid.shape[axis]
        parts = [np.take(wide, np.arange(d, d + n), axis=axis) for d in range(3)]
        grid = 0.25 * parts[0] + 0.5 * parts[1] + 0.25 * parts[2]
    return grid


def sun_visible(geometry: GeometryBatch, scene: Scene, points: Floats) -> Floats:
    """1 where the first sun reaches a point, else 0, (n,); 1 everywhere without one."""
    suns = [light for light in scene.lights if isinstance(light, Sun)]
    if not suns or not len(points):
        return np.ones(len(points))
    way = -np.array(suns[0].direction, float)
    end = points + way / np.linalg.norm(way) * 1e3
    return np.where(occluded(geometry, points, end, np.zeros(len(points), np.int32)), 0.0, 1.0)
