"""The splats of a batch's scenes, as cameras in its environments see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayF32, ArrayIndex, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.geometry import RayTable
from airworthy.optics.lenses import CAMERA_AXIS, Fisheye, Pinhole
from airworthy.optics.projections import Projection
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.record import Scene
from airworthy.scenes.splats import Splats, transformed
from airworthy.scenes.splats.placing import static_splats
from airworthy.splats.cloud import DynamicSplats
from airworthy.splats.projected import pinhole_of, render_projection
from airworthy.splats.renderer import SplatRenderer

__all__ = ["Eye", "SceneSplats", "SplatView", "eye_of", "splats_of"]

# ---- From a table of rays to a camera that splats can be projected into -----------------------------------------------------

_FAR = 100.0
"""Parallel rays are seen from this many times the image's width away."""
_LENS = 0.1
"""Rays that start as near to each other as this pass a lens of the projection; splats are seen through its middle [m]."""
_SAME = 1e-6
"""Directions and origins that differ by less are the same."""


@dataclass(frozen=True, eq=False)
class Eye:
    """A camera of splats that looks along the rays of a table."""

    projection: Projection | RayTable
    """What `projected.render_projection` takes: the table itself where no projection describes it."""
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Where it is in the frame of the rays [m]."""
    behind: float = 0.0
    """What its depths have more than the table's [m]."""

    def rows(self, first: int, last: int) -> Eye:
        """Return the eye of some rows of the image."""
        if isinstance(self.projection, Pinhole | Fisheye):
            # Still a lens, which renders faster than a table of rays.
            part = replace(self.projection, height=last - first, cy=self.projection.cy - first)
            return replace(self, projection=part)
        if isinstance(self.projection, RayTable):
            table = self.projection
            return replace(self, projection=RayTable(table.directions[first:last], None, table.axis))
        return replace(self, projection=RayTable(self.projection.rays().directions[first:last], None, CAMERA_AXIS))


_EYES: WeakKeyDictionary[RayTable, Eye] = WeakKeyDictionary()


def eye_of(table: RayTable, projection: Projection | None = None) -> Eye:
    """Return the eye of a table.

    Args:
        table: The rays.
        projection: What they came from, if that is known; it is used where it is that of the table indeed.

    Raises:
        AirworthyError: The rays start at places of their own, and are not parallel.
    """
    found = _EYES.get(table)
    if found is None:
        found = _EYES[table] = _found(table, projection)
    return found


def _found(table: RayTable, projection: Projection | None) -> Eye:
    start = (0.0, 0.0, 0.0)
    if table.origins is not None:
        spread = float(np.ptp(table.origins, axis=(0, 1)).max())
        if _SAME < spread <= _LENS and projection is not None:
            return Eye(projection)
        if spread > _SAME:
            return _parallel(table)
        x, y, z = (float(v) for v in table.origins[0, 0])
        start = (x, y, z)
    # Most tables are those of a pinhole, whoever made them; one camera then does for all rays.
    fitted = pinhole_of(table.directions)
    if fitted is not None:
        return Eye(Pinhole(table.width, table.height, *fitted), start)
    if projection is not None and _is_of(projection, table):
        return Eye(projection, start)
    return Eye(table if table.origins is None else RayTable(table.directions, None, table.axis), start)


def _is_of(projection: Projection, table: RayTable) -> bool:
    """Tell whether a projection has the rays of a table; looked up in its corners and middle."""
    if (projection.height, projection.width) != (table.height, table.width) or not projection.optical:
        return False
    # Five rays fix a lens of few parameters; to compare all would cost as much as to make the table.
    rows = np.array([0, 0, table.height - 1, table.height - 1, table.height // 2])
    columns = np.array([0, table.width - 1, 0, table.width - 1, table.width // 2])
    return bool(np.abs(projection.rays().directions[rows, columns] - table.directions[rows, columns]).max() < 1e-5)


def _parallel(table: RayTable) -> Eye:
    """Return a pinhole far behind the plane from which parallel rays start: what it sees differs by less than a pixel."""
    origins, rays = table.origins, table.directions
    assert origins is not None
    height, width = rays.shape[:2]
    u, v = np.arange(width) + 0.5, np.arange(height) + 0.5
    even = np.abs(rays - CAMERA_AXIS).max() < _SAME and width > 1
    pixel = float(np.ptp(origins[0, :, 0])) / (width - 1) if even else 0.0
    x = origins[0, 0, 0] + pixel * (u - 0.5)
    y = origins[0, 0, 1] + pixel * (v - 0.5)
    plane = np.stack([*np.meshgrid(x, y), np.full((height, width), origins[0, 0, 2])], -1)
    if not pixel > 0.0 or np.abs(plane - origins).max() > 0.01 * pixel:
        raise AirworthyError("Splats cannot be seen by rays that start at places of their own, unless these are parallel.")
    far = _FAR * pixel * max(width, height)
    cx, cy = -float(x[0]) / pixel + 0.5, -float(y[0]) / pixel + 0.5
    return Eye(Pinhole(width, height, far / pixel, far / pixel, cx, cy), (0.0, 0.0, float(origins[0, 0, 2]) - far), far)


# -----------------------------------------------------------------------------------------------------------------------------

Arrays = dict[str, ArrayF32]
BANDS_MAX = 32
"""Most parts of a rolling image, each of which has one pose."""
_EMPTY = Splats(np.zeros((0, 3)), np.zeros((0, 4)), np.zeros((0, 3)), np.zeros(0), np.zeros((0, 1, 3)))


@dataclass(frozen=True, eq=False)
class SplatView:
    """What c cameras are asked for."""

    table: RayTable
    """Rays in the camera's frame; of a rolling image on its side, so that its columns are the image's rows."""
    position: Array
    """World [m], (c, 3); of a rolling image (c, columns, 3)."""
    attitude: Array
    """Camera to world, (c, 4); of a rolling image (c, columns, 4)."""
    env: NDArray[np.int32]
    """(c,)"""
    limit: ArrayF32
    """Depth beyond which splats are hidden, (c, H, W) [m]."""
    projection: Projection | None = None
    """Of the rays, if known."""


_CACHE: WeakKeyDictionary[SceneBatch, tuple[tuple[int, int], SceneSplats]] = WeakKeyDictionary()


def splats_of(batch: SceneBatch) -> SceneSplats:
    """Return the batch's splats, packed once and again when scenes have joined."""
    # Both change when a scene joins, and nothing else about clouds does.
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
        attached = [_attached_clouds(scene, clouds, known) for scene in batch.scenes]
        most = max(map(len, attached))
        padded = [[*row, *[-1] * (most - len(row))] for row in attached]
        self._attached_clouds = np.array(padded, np.int64).reshape(len(attached), most)
        self.renderer = SplatRenderer(clouds, batch.device, batch.threads)
        """Of all clouds."""
        self._present = np.array([bool(scene.splats) for scene in batch.scenes])

    def visible_in(self, batch: SceneBatch, env: NDArray[np.int32]) -> ArrayIndex:
        """Return which of c cameras are in environments with splats."""
        return np.flatnonzero(self._present[batch.scene_of_env[env]])

    def dynamic_instances(self, batch: SceneBatch, env: NDArray[np.int32]) -> DynamicSplats | None:
        """Return clouds that ride on actors, where these are now, for cameras in environments (c,)."""
        if not self._attached_clouds.shape[1]:
            return None
        position, attitude = (poses[env] for poses in batch.splat_poses())
        cloud = self._attached_clouds[batch.scene_of_env[env]]  # -1 where an environment's scene has fewer
        # Padding names cloud 0 and is switched off: numbers below 0 would index from the end.
        return DynamicSplats(np.maximum(cloud, 0), position, attitude, cloud >= 0)

    def render(self, batch: SceneBatch, view: SplatView, channels: Sequence[str]) -> Arrays:
        """Return images of the splats, hidden where something nearer stands: channels of `SplatRenderer.render`, over black.

        Args:
            batch: The scenes, for what stands nearer.
            view: Poses and rays of the cameras.
            channels: Wanted.
        """
        if view.position.ndim == 3:
            return self._rolling(batch, view, channels)
        eye = eye_of(view.table, view.projection)
        return self._one(batch, eye, view.position, view.attitude, view.env, view.limit, channels)

    def _one(
        self,
        batch: SceneBatch,
        eye: Eye,
        position: Array,
        attitude: Array,
        env: NDArray[np.int32],
        limit: ArrayF32,
        channels: Sequence[str],
    ) -> Arrays:
        images = render_projection(
            self.renderer,
            eye.projection,
            position + frames.rotate(attitude, np.array(eye.offset)),
            attitude,
            self._standing[batch.scene_of_env[env]],
            channels=tuple(channels),
            dynamic_instances=self.dynamic_instances(batch, env),
            # Depths are counted from the eye, which stands behind the plane from which the rays start.
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
                # One pose for a band: the row in its middle errs least on both sides.
                middle = (first + last) // 2
                pose = view.position[one, middle], view.attitude[one, middle]
                # The image lies on its side, its columns being the rows that have poses.
                limit = np.ascontiguousarray(view.limit[one, :, first:last].swapaxes(1, 2))
                part = self._one(batch, eye.rows(first, last), *pose, view.env[one], limit, channels)
                for name, image in part.items():
                    if name not in out:
                        out[name] = np.empty((len(view.env), upright.width, upright.height, *image.shape[3:]), np.float32)
                    out[name][camera, :, first:last] = image[0].swapaxes(0, 1)
        return out


def _standing(scene: Scene, clouds: list[Splats], known: dict[Any, int]) -> int:
    """Return the number of the cloud of a scene's standing splats; scenes with the same ones share it."""
    items = [item for item in scene.splats if not item.attached]
    key = tuple((id(scene.clouds[item.cloud]), item.position, item.attitude, item.scale) for item in items)
    if key not in known:
        known[key] = len(clouds)
        clouds.append(static_splats(scene) or _EMPTY)
    return known[key]


def _attached_clouds(scene: Scene, clouds: list[Splats], known: dict[Any, int]) -> list[int]:
    """Numbers of the clouds of a scene's attached placements, in order."""
    numbers = []
    for item in scene.splats:
        if not item.attached:
            continue
        key = ("attached", id(scene.clouds[item.cloud]), item.scale)
        if key not in known:
            known[key] = len(clouds)
            clouds.append(transformed(scene.clouds[item.cloud], scale=item.scale))
        numbers.append(known[key])
    return numbers


def _bands(position: Array, attitude: Array, eye: Eye) -> list[tuple[int, int]]:
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
