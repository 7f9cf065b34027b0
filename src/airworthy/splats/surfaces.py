"""Surfaces of a scene as small patches, how much of them can be seen, and points spread over them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import ArrayBool, ArrayFloat, ArrayInt
from airworthy.core.errors import AirworthyError
from airworthy.geometry import occluded
from airworthy.geometry.distance import clearance
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.formats.meshes.solids import tessellate
from airworthy.scenes.record import Region, Scene

__all__ = ["Patches", "evenly", "exposure_of", "patches_of", "sequence", "spread_points", "viewpoints", "witnessed"]


LIFT = 0.0012
"""How far above a surface rays to and from it begin [m]."""
_SEGMENTS = 64
"""Of round solids, so that triangles lie within `LIFT` of the surface up to a radius of half a metre."""
NEAREST = 0.7
"""Eyes nearer than this to a surface count as if they were this far away [m]."""
SIZE_DOUBLES = 2.0
"""Distance from the bounds over which patches may grow by their size [m]."""
WITNESSES = 8
"""Eyes that are remembered of a patch."""
_RATIOS = (0.8191725133961645, 0.6710436067037893, 0.5497004779019703)
"""Steps of an additive sequence of low discrepancy in three dimensions: powers of 1 / 1.2207440846, the root of x^4 = x + 1."""


@dataclass(frozen=True, eq=False)
class Patches:
    """Small triangles of all visible surfaces, in the order of a scene's instances."""

    corners: ArrayFloat
    """(n, 3, 3) world [m]."""
    normal: ArrayFloat
    """(n, 3) unit, outwards as the triangle is wound."""
    area: ArrayFloat
    """(n,) [m^2]"""
    breadth: ArrayFloat
    """(n,) of the triangle that the patch is of: its area over half its longest edge [m]. Rails and legs are narrow."""
    along: ArrayFloat
    """(n, 3) unit, that longest edge."""

    def __len__(self) -> int:
        return len(self.area)

    def only(self, which: ArrayBool) -> Patches:
        """Return some of them (n,), in order."""
        return Patches(*(getattr(self, part.name)[which] for part in fields(self)))


def patches_of(scene: Scene, size: float = 0.15, count_max: int = 400_000) -> Patches:
    """Return surfaces as triangles no longer than `size`, longer outside the scene's bounds, and where there would be too many.

    Args:
        scene: Without actors (`scenes.actors.posed`).
        size: Longest edge [m]; twice as long `SIZE_DOUBLES` outside the bounds, three times at twice that distance.
        count_max: Triangles are not split beyond this many.

    Raises:
        AirworthyError: Nothing in the scene has a surface.
    """
    cut = {item.shape: tessellate(scene.shapes[item.shape], _SEGMENTS) for item in scene.instances if item.visible}
    corners = [_placed(cut[item.shape], item) for item in scene.instances if item.visible]
    triangles = np.concatenate(corners) if corners else np.zeros((0, 3, 3))
    normal, area = _normals(triangles)
    triangles, normal, area = triangles[area > 1e-10], normal[area > 1e-10], area[area > 1e-10]
    if not len(area):
        raise AirworthyError(f"The scene {scene.name!r} has no visible surface that could become splats.")
    edges = np.roll(triangles, -1, axis=1) - triangles
    length = np.linalg.norm(edges, axis=-1)
    longest = length.argmax(axis=1)
    rows = np.arange(len(area))
    along = edges[rows, longest] / length[rows, longest, None]
    parts, parent = _split(triangles, size, count_max, scene.bounds)
    return Patches(parts, normal[parent], _normals(parts)[1], (2.0 * area / length.max(axis=1))[parent], along[parent])


def _placed(mesh: Any, item: Any) -> ArrayFloat:
    points = frames.rotate(np.array(item.attitude), mesh.vertices.astype(np.float64) * item.scale) + np.array(item.position)
    return np.asarray(points[mesh.faces])


def _normals(triangles: ArrayFloat) -> tuple[ArrayFloat, ArrayFloat]:
    cross = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    length = np.linalg.norm(cross, axis=-1)
    return cross / np.maximum(length, 1e-30)[:, None], 0.5 * length


def _split(triangles: ArrayFloat, size: float, count_max: int, bounds: Region) -> tuple[ArrayFloat, ArrayInt]:
    """Halve at the longest edge, all that are too long at a time; the longest first where not all may be."""
    parent = np.arange(len(triangles))
    while True:
        length = np.linalg.norm(np.roll(triangles, -1, axis=1) - triangles, axis=-1)
        middle = triangles.mean(axis=1)
        outside = np.linalg.norm(middle - np.clip(middle, bounds.lower, bounds.upper), axis=-1)
        long = np.flatnonzero(length.max(axis=1) > size * (1.0 + outside / SIZE_DOUBLES))
        room = count_max - len(triangles)
        if not len(long) or room <= 0:
            return triangles, parent
        if len(long) > room:
            # The longest first: what is left unsplit for want of room is then as small as can be.
            long = long[np.argsort(-length.max(axis=1)[long], kind="stable")[:room]]
        # Corners turned so that the edge to be halved is the first: both halves keep the winding.
        turn = (length[long].argmax(axis=1)[:, None] + np.arange(3)) % 3
        a, b, c = np.moveaxis(np.take_along_axis(triangles[long], turn[..., None], axis=1), 1, 0)
        middle = 0.5 * (a + b)
        halves = np.concatenate([np.stack((a, middle, c), axis=1), np.stack((middle, b, c), axis=1)])
        keep = np.ones(len(triangles), bool)
        keep[long] = False
        triangles = np.concatenate([triangles[keep], halves])
        parent = np.concatenate([parent[keep], parent[long], parent[long]])


def sequence(count: int, first: int = 0) -> ArrayFloat:
    """Return points (count, 3) in the unit cube that fill it evenly."""
    return np.asarray(np.mod(0.5 + np.arange(first + 1, first + count + 1)[:, None] * np.array(_RATIOS), 1.0))


def viewpoints(batch: SceneBatch, count: int, margin: float = 0.4, first: int = 0) -> ArrayFloat:
    """Return free places (count, 3) evenly in the bounds of a batch's first scene.

    Args:
        batch: The scene.
        count: How many.
        margin: Distance from the bounds and from everything in them [m].
        first: Other places for other numbers.

    Raises:
        AirworthyError: There is hardly free room.
    """
    bounds = batch.scenes[0].bounds
    low, high = np.array(bounds.lower) + margin, np.array(bounds.upper) - margin
    # Forty trials for each: halls are mostly free, and what is full should say so instead of searching on.
    tried = low + (high - low) * sequence(40 * count, 40 * first)
    free = tried[clearance(batch.geometry, tried, np.zeros(len(tried), np.int32), 2.0 * margin).distance > margin]
    if (high <= low).any() or len(free) < count:
        raise AirworthyError(f"Only {len(free)} of {len(tried)} places in the bounds are {margin} m from everything.")
    return np.asarray(free[:count])


def exposure_of(batch: SceneBatch, patches: Patches, eyes: ArrayFloat) -> tuple[ArrayFloat, ArrayBool, ArrayInt]:
    """Return how patches are seen.

    Args:
        batch: The scene, for what hides.
        patches: n of its surfaces.
        eyes: Places that are looked from, (m, 3) [m], world.

    Returns:
        Solid angle per area [sr/m^2], mean of the eyes (n,); whether from behind (n,); and the eyes (n, `WITNESSES`) that see
        them largest from that side, the best first, -1 where there are no more.
    """
    middle = patches.corners.mean(axis=1)
    angles = np.zeros((len(patches), len(eyes)), np.float32)
    for k, eye in enumerate(eyes):
        towards = eye - middle
        distance = np.linalg.norm(towards, axis=-1)
        cosine = (towards * patches.normal).sum(axis=-1) / np.maximum(distance, 1e-9)
        some = np.flatnonzero(np.abs(cosine) > 1e-3)
        start = middle[some] + patches.normal[some] * (LIFT * np.sign(cosine[some]))[:, None]
        hidden = occluded(batch.geometry, start, np.broadcast_to(eye, start.shape), np.zeros(len(some), np.int32))
        angles[some, k] = np.where(hidden, 0.0, cosine[some] / np.maximum(distance[some], NEAREST) ** 2)
    behind = np.maximum(-angles, 0.0).sum(axis=1) > np.maximum(angles, 0.0).sum(axis=1)
    chosen = np.maximum(np.where(behind[:, None], -angles, angles), 0.0)
    best = np.argsort(-chosen, axis=1, kind="stable")[:, :WITNESSES]
    best[np.take_along_axis(chosen, best, axis=1) <= 0.0] = -1
    return np.abs(angles).mean(axis=1, dtype=np.float64), behind, best


def witnessed(batch: SceneBatch, position: ArrayFloat, normal: ArrayFloat, eyes: ArrayFloat, witnesses: ArrayInt) -> ArrayBool:
    """Tell which points are visible from one of the eyes of their patches: what lies on a surface hides a part of its patches.

    Args:
        batch: The scene, for what hides.
        position: (n, 3) [m], world.
        normal: (n, 3), unit.
        eyes: (m, 3) [m], world.
        witnesses: Eyes of each point's patch, (n, `WITNESSES`), -1: none.
    """
    visible = np.zeros(len(position), bool)
    for column in witnesses.T:
        some = np.flatnonzero(~visible & (column >= 0))
        start = position[some] + LIFT * normal[some]
        visible[some] = ~occluded(batch.geometry, start, eyes[column[some]], np.zeros(len(some), np.int32))
    return visible


def spread_points(patches: Patches, weight: ArrayFloat, count: int) -> tuple[ArrayInt, ArrayFloat]:
    """Return points in numbers proportional to `weight` (n,): the patch of each (count,), and where (count, 3).

    Stratified: along the sum of weights they are equally far apart, so a patch gets its share to within one point.

    Args:
        patches: n of them.
        weight: Of each, (n,).
        count: Points wanted.
    """
    ends = np.cumsum(weight, dtype=np.float64)
    position = (np.arange(count) + 0.5) / count * ends[-1]
    which = np.minimum(np.searchsorted(ends, position, side="right"), len(ends) - 1)
    u, v = sequence(count)[:, :2].T
    over = u + v > 1.0
    u, v = np.where(over, 1.0 - u, u), np.where(over, 1.0 - v, v)
    a, b, c = np.moveaxis(patches.corners[which], 1, 0)
    return which, a + u[:, None] * (b - a) + v[:, None] * (c - a)


def evenly(position: ArrayFloat, normal: ArrayFloat, distance: ArrayFloat, count: int) -> ArrayInt:
    """Return which of many points (n,) to keep, `count` of them, so that none are close together, nor wide gaps left.

    Poisson discs: in a fixed random order a point is kept unless one that is kept lies within 0.78 of `distance` (n,), on the
    same side of the same surface. All points decide at once as soon as their nearer betters have. What is missing is made up
    from those farthest from what is kept.

    Args:
        position: (n, 3) [m], world.
        normal: (n, 3), unit.
        distance: Wanted between neighbours, (n,) [m].
        count: Points wanted.
    """
    from scipy.spatial import cKDTree

    rank = np.random.default_rng(7).permutation(len(position))
    far, near = cKDTree(position).query(position, k=min(17, len(position)))
    close = (far < 0.78 * distance[:, None]) & ((normal[near] * normal[:, None]).sum(axis=-1) > 0.5)
    better = close & (rank[near] < rank[:, None])
    state = np.zeros(len(position), np.int8)  # 1: kept, -1: not
    while (state == 0).any():
        open_ = np.flatnonzero(state == 0)
        others = np.where(better[open_], state[near[open_]], -1)
        state[open_[(others == 1).any(axis=1)]] = -1
        state[open_[(others == -1).all(axis=1)]] = 1
    kept = np.flatnonzero(state == 1)
    if len(kept) >= count:
        return np.sort(kept[np.argsort(rank[kept], kind="stable")[:count]])
    rest = np.flatnonzero(state == -1)
    gap = cKDTree(position[kept]).query(position[rest])[0] / distance[rest]
    return np.sort(np.concatenate([kept, rest[np.argsort(-gap, kind="stable")[: count - len(kept)]]]))
