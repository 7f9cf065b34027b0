"""What is under a click: the first surface along a ray, of meshes or of Gaussian splats."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayLike
from airworthy.geometry import RayTable, cast
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.record import Scene
from airworthy.scenes.splats import Splats
from airworthy.scenes.splats.placing import static_splats
from airworthy.tasks.course_fit import thing_name

__all__ = ["Pick", "Picker", "on_height", "ray_depth"]

FAR = 1000.0
"""Nothing is picked beyond this [m]."""
_REACH = 3.0
"""A gaussian is seen within this many standard deviations: beyond, exp(-4.5) of its opacity is left."""
_MEDIAN = 0.5
"""Light that is left where a cloud counts as met, as in images of median depth."""
_BLOCK = 1 << 18


@dataclass(frozen=True, eq=False)
class Pick:
    """What a ray meets first."""

    point: Array
    """World [m], (3,)."""
    distance: float
    """From where the ray begins [m]."""
    what: str
    """Its name; "splats" for a cloud."""


class Picker:
    """Finds what a ray meets in a scene as it stands at first; actors count where they begin.

    Args:
        scene: What is shown.
    """

    def __init__(self, scene: Scene):
        self.scene = scene
        self._batch: SceneBatch | None = None
        self._splats: Splats | None = None

    def pick(self, origin: ArrayLike, direction: ArrayLike) -> Pick | None:
        """Return the first thing along a ray; None where there is none within `FAR`.

        Args:
            origin: World [m], (3,).
            direction: Of any length but zero, (3,).
        """
        begin, along = _ray(origin, direction)
        found = [item for item in (self._mesh(begin, along), self._cloud(begin, along)) if item is not None]
        return min(found, key=lambda item: item.distance, default=None)

    def _mesh(self, begin: Array, along: Array) -> Pick | None:
        if not self.scene.instances and not self.scene.actors:
            return None
        if self._batch is None:  # placing a large scene takes a while, and many viewers are never clicked
            self._batch = SceneBatch(self.scene, 1)
        table = RayTable(along[None, None], axis=along)
        rows = (begin[None], np.array([frames.IDENTITY]))
        met = cast(self._batch.geometry, table, *rows, [0], ("range", "instance"), max_range=FAR)
        distance = float(met["range"][0, 0, 0])
        if not np.isfinite(distance):
            return None
        name = thing_name(self.scene, int(met["instance"][0, 0, 0]))
        return Pick(begin + distance * along, distance, name.strip("'") or "something that moves")

    def _cloud(self, begin: Array, along: Array) -> Pick | None:
        if not self.scene.splats:
            return None
        if self._splats is None:
            self._splats = static_splats(self.scene)
        if self._splats is None:  # all of them ride on actors
            return None
        distance = ray_depth(self._splats, begin, along)
        return Pick(begin + distance * along, distance, "splats") if distance < FAR else None


def on_height(origin: ArrayLike, direction: ArrayLike, height: float) -> Array | None:
    """Return where a ray passes a height [m], (3,); None where it does not, or farther away than `FAR`.

    Args:
        origin: World [m], (3,).
        direction: (3,).
        height: z of the level plane [m].
    """
    begin, along = _ray(origin, direction)
    if abs(along[2]) < 1e-6:
        return None
    distance = (height - begin[2]) / along[2]
    return begin + distance * along if 0.0 < distance < FAR else None


def ray_depth(splats: Splats, origin: ArrayLike, direction: ArrayLike) -> float:
    """Return how far along a ray half of its light is taken by gaussians [m]; +inf where less than half ever is.

    Each gaussian acts where it is densest along the ray, as in 3-D, without the projection of an image.

    Args:
        splats: In the world.
        origin: World [m], (3,).
        direction: (3,).
    """
    begin, along = _ray(origin, direction)
    depths, alphas = [], []
    for start in range(0, len(splats), _BLOCK):
        rows = slice(start, start + _BLOCK)
        depth, alpha = _met(splats, rows, begin, along)
        depths.append(depth)
        alphas.append(alpha)
    depth, alpha = np.concatenate(depths or [np.zeros(0)]), np.concatenate(alphas or [np.zeros(0)])
    order = np.argsort(depth, kind="stable")
    left = np.cumprod(1.0 - alpha[order])
    taken = np.flatnonzero(left <= _MEDIAN)
    return float(depth[order][taken[0]]) if taken.size else float("inf")


def _met(splats: Splats, rows: slice, begin: Array, along: Array) -> tuple[Array, Array]:
    """Depths and opacities of those gaussians of some rows that the ray passes near."""
    away = splats.position[rows].astype(np.float64) - begin
    ahead = away @ along
    across = (away * away).sum(1) - ahead * ahead
    longest = splats.scale[rows].max(axis=1).astype(np.float64)
    near = np.flatnonzero((across < (_REACH * longest) ** 2) & (ahead > 0.0))
    number = near + rows.start
    # In the gaussian's own axes, in standard deviations: there it is a ball, and densest at the foot of the perpendicular.
    turn, size = splats.rotation[number].astype(np.float64), np.maximum(splats.scale[number].astype(np.float64), 1e-9)
    center = frames.rotate_inverse(turn, away[near]) / size
    ray = frames.rotate_inverse(turn, np.broadcast_to(along, (len(near), 3))) / size
    depth = (center * ray).sum(1) / np.maximum((ray * ray).sum(1), 1e-30)
    off = center - depth[:, None] * ray
    alpha = splats.opacity[number].astype(np.float64) * np.exp(-0.5 * (off * off).sum(1))
    seen = depth > 0.0
    return depth[seen], np.clip(alpha[seen], 0.0, 0.999)


def _ray(origin: ArrayLike, direction: ArrayLike) -> tuple[Array, Array]:
    begin, along = np.asarray(origin, np.float64), np.asarray(direction, np.float64)
    return begin, along / max(float(np.linalg.norm(along)), 1e-300)
