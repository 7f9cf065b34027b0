"""The splats of a batch's scenes, as cameras in its environments see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from airworthy.core import frames
from airworthy.geometry import RayTable
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.record import Scene
from airworthy.scenes.splats import Splats, transformed
from airworthy.scenes.splats.placing import static_splats
from airworthy.sensors.projections import Projection
from airworthy.sensors.splats.eyes import Eye, eye_of
from airworthy.sensors.splats.movers import SplatMovers
from airworthy.sensors.splats.projected import render_projection
from airworthy.sensors.splats.renderer import SplatRenderer

__all__ = ["SceneSplats", "SplatView", "has_splats", "splats_of"]

Arrays = dict[str, NDArray[np.float32]]
Floats = NDArray[np.float64]
BANDS_MAX = 32
"""Most parts of a rolling image, each of which has one pose."""
_EMPTY = Splats(np.zeros((0, 3)), np.zeros((0, 4)), np.zeros((0, 3)), np.zeros(0), np.zeros((0, 1, 3)))


@dataclass(frozen=True, eq=False)
class SplatView:
    """What c cameras are asked for."""

    table: RayTable
    """Rays in the camera's frame; of a rolling image on its side, so that its columns are the image's rows."""
    position: Floats
    """World [m], (c, 3); of a rolling image (c, columns, 3)."""
    attitude: Floats
    """Camera to world, (c, 4); of a rolling image (c, columns, 4)."""
    env: NDArray[np.int32]
    """(c,)"""
    limit: NDArray[np.float32]
    """Depth beyond which splats are hidden, (c, H, W) [m]."""
    projection: Projection | None = None
    """Of the rays, if known."""


def has_splats(batch: SceneBatch) -> bool:
    """Whether any scene of a batch has splats."""
    return any(scene.splats for scene in batch.scenes)


_CACHE: WeakKeyDictionary[SceneBatch, tuple[tuple[int, int], SceneSplats]] = WeakKeyDictionary()


def splats_of(batch: SceneBatch) -> SceneSplats:
    """The batch's splats, packed once and again when scenes have joined."""
    state = (len(batch.scenes), id(batch.geometry))
    found = _CACHE.get(batch)
    if found is None or found[0] != state:
        found = _CACHE[batch] = (state, SceneSplats(batch))
    return found[1]


class SceneSplats:
    """Clouds of all scenes in one renderer: per scene what stands still, merged, and every cloud that rides on an actor."""

    def __init__(self, batch: SceneBatch):
        clouds: list[Splats] = []
        known: dict[Any, int] = {}
        self._standing = np.array([_standing(scene, clouds, known) for scene in batch.scenes])
        riding = [_riding(scene, clouds, known) for scene in batch.scenes]
        most = max(map(len, riding))
        self._riding = np.array([[*row, *[-1] * (most - len(row))] for row in riding], np.int64).reshape(len(riding), most)
        self.renderer = SplatRenderer(clouds, batch.device, batch.threads)
        """Of all clouds."""
        self._present = np.array([bool(scene.splats) for scene in batch.scenes])

    def seen_in(self, batch: SceneBatch, env: NDArray[np.int32]) -> NDArray[np.intp]:
        """Which of c cameras are in environments with splats."""
        return np.flatnonzero(self._present[batch.scene_of_env[env]])

    def movers(self, batch: SceneBatch, env: NDArray[np.int32]) -> SplatMovers | None:
        """Clouds that ride on actors, where these are now, for cameras in environments (c,)."""
        if not self._riding.shape[1]:
            return None
        position, attitude = (poses[env] for poses in batch.splat_poses())
        cloud = self._riding[batch.scene_of_env[env]]  # -1 where an environment's scene has fewer
        return SplatMovers(np.maximum(cloud, 0), position, attitude, cloud >= 0)

    def render(self, batch: SceneBatch, view: SplatView, channels: Sequence[str]) -> Arrays:
        """Images of the splats, hidden where something nearer stands: channels of `SplatRenderer.render`, over black."""
        if view.position.ndim == 3:
            return self._rolling(batch, view, channels)
        eye = eye_of(view.table, view.projection)
        return self._one(batch, eye, view.position, view.attitude, view.env, view.limit, channels)

    def _one(
        self,
        batch: SceneBatch,
        eye: Eye,
        position: Floats,
        attitude: Floats,
        env: NDArray[np.int32],
        limit: NDArray[np.float32],
        channels: Sequence[str],
    ) -> Arrays:
        images = render_projection(
            self.renderer,
            eye.projection,
            position + frames.rotate(attitude, np.array(eye.offset)),
            attitude,
            self._standing[batch.scene_of_env[env]],
            channels=tuple(channels),
            movers=self.movers(batch, env),
            limit=limit + np.float32(eye.behind) if eye.behind else limit,
        )
        if eye.behind and "depth" in images:
            images["depth"] = images["depth"] - np.float32(eye.behind)
        return images

    def _rolling(self, batch: SceneBatch, view: SplatView, channels: Sequence[str]) -> Arrays:
        """Images whose rows have poses of their own, in bands of rows that share one; given and returned on their side."""
        upright = RayTable(view.table.directions.swapaxes(0, 1), None, view.table.axis)
        eye = eye_of(upright, view.projection)
        out: Arrays = {}
        for camera in range(len(view.env)):
            one = slice(camera, camera + 1)
            for first, last in _bands(view.position[camera], view.attitude[camera], eye):
                middle = (first + last) // 2
                pose = view.position[one, middle], view.attitude[one, middle]
                limit = np.ascontiguousarray(view.limit[one, :, first:last].swapaxes(1, 2))
                part = self._one(batch, eye.rows(first, last), *pose, view.env[one], limit, channels)
                for name, image in part.items():
                    if name not in out:
                        out[name] = np.empty((len(view.env), upright.width, upright.height, *image.shape[3:]), np.float32)
                    out[name][camera, :, first:last] = image[0].swapaxes(0, 1)
        return out


def _standing(scene: Scene, clouds: list[Splats], known: dict[Any, int]) -> int:
    """Number of the cloud of a scene's standing splats; scenes with the same ones share it."""
    items = [item for item in scene.splats if not item.attached]
    key = tuple((id(scene.clouds[item.cloud]), item.position, item.attitude, item.scale) for item in items)
    if key not in known:
        known[key] = len(clouds)
        clouds.append(static_splats(scene) or _EMPTY)
    return known[key]


def _riding(scene: Scene, clouds: list[Splats], known: dict[Any, int]) -> list[int]:
    """Numbers of the clouds of a scene's attached placements, in order."""
    numbers = []
    for item in scene.splats:
        if not item.attached:
            continue
        key = ("riding", id(scene.clouds[item.cloud]), item.scale)
        if key not in known:
            known[key] = len(clouds)
            clouds.append(transformed(scene.clouds[item.cloud], scale=item.scale))
        numbers.append(known[key])
    return numbers


def _bands(position: Floats, attitude: Floats, eye: Eye) -> list[tuple[int, int]]:
    """Rows of an image that may share a pose: in a band the camera's turn moves nothing by more than about a pixel.

    The camera's own motion counts as if everything were a metre away.
    """
    rows = len(position)
    focal = float(getattr(eye.projection, "fx", rows))
    turn = 2.0 * np.arccos(np.clip(np.abs(np.sum(attitude[0] * attitude[-1])), 0.0, 1.0))
    pixels = focal * (turn + float(np.linalg.norm(position[-1] - position[0])))
    count = int(np.clip(np.ceil(pixels), 1, min(BANDS_MAX, rows)))
    edges = np.linspace(0, rows, count + 1).round().astype(int)
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
