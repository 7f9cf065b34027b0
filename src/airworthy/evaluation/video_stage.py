"""The scene and the vehicle at the times of some frames, and what a camera sees of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from airworthy.core import frames
from airworthy.evaluation.video_cameras import CameraPath
from airworthy.evaluation.video_vehicle import DISC_OPACITY, MATERIALS, TIP_OPACITY, puppet
from airworthy.geometry import RayTable
from airworthy.sensors.projections import Pinhole, Projection
from airworthy.vehicles import Vehicle

if TYPE_CHECKING:
    from airworthy.scenes import Scene

__all__ = ["Stage"]

Floats = NDArray[np.float64]
Linear = NDArray[np.float32]

_EMPTY, _BODY, _DISCS = range(3)
"""Blocks of the batch's environments: without the vehicle, with it, and with the discs of its rotors too."""
_TABLES = 64
"""Most tables of rays that are kept."""
_FINER = 4
"""Discs are drawn this much finer than pixels, for smooth edges."""
_BOX = 16
"""Corners of what is rendered twice lie on multiples of this [px], so that neighbouring frames share a table of rays."""


class Stage:
    """A scene in one environment per frame that is rendered at once.

    Args:
        place: The scene.
        vehicle: Who is filmed.
        frames_at_once: How many frames are rendered in one call.
        samples: Rays per pixel of surfaces.
        device: Where rays are traced.
    """

    def __init__(self, place: Scene, vehicle: Vehicle, frames_at_once: int, samples: int = 4, device: str = "cpu"):
        from airworthy.scenes import SceneBatch
        from airworthy.sensors.shading import ShadingOptions

        self.count = frames_at_once
        self._puppet = puppet(vehicle)
        self.batch = SceneBatch(
            place,
            3 * frames_at_once,
            device,
            extra_movers=self._puppet.placement(),
            extra_shapes=self._puppet.shapes,
            extra_materials=MATERIALS,
        )
        self._options = ShadingOptions(samples=samples, reflections=True)
        self._tables: dict[Projection, RayTable] = {}
        self._outlines = np.zeros((0, 0, 2, 0, 3))

    def set(self, times: Floats, position: Floats, attitude: Floats) -> None:
        """Everything at the times of at most `count` frames: (k,) [s], the vehicle's (k, 3) [m] and (k, 4)."""
        rows = np.minimum(np.arange(self.count), len(times) - 1)
        self.batch.advance(np.tile(times[rows], 3))
        discs = len(self._puppet.shapes) - 1
        shown = np.array([[False] * (1 + discs), [True] + [False] * discs, [True] * (1 + discs)])
        self.batch.pose_movers(
            np.tile(position[rows], (3, 1))[:, None],
            np.tile(attitude[rows], (3, 1))[:, None],
            active=np.repeat(shown, self.count, axis=0),
        )
        self._outlines = position[:, None, None, None] + frames.rotate(attitude[:, None, None, None], self._puppet.outlines)

    def shoot(self, path: CameraPath, rows: slice) -> Linear:
        """Linear radiance (k, height, width, 3) that a camera sees at frames `rows` of its path, which `set` has staged."""
        position, attitude = path.position[rows], path.attitude[rows]
        if not path.sees_vehicle:
            return self._seen(path.projection, position, attitude, _EMPTY)
        image = self._seen(path.projection, position, attitude, _BODY)
        if isinstance(path.projection, Pinhole):
            self._add_discs(image, path.projection, position, attitude)
        return image

    def _seen(
        self, projection: Projection, position: Floats, attitude: Floats, block: int, first: int = 0
    ) -> NDArray[np.float32]:
        """Images (k, h, w, 3) of the staged frames from `first` on, in one of the three blocks of environments."""
        from airworthy.sensors.capture import render

        if projection not in self._tables:
            if len(self._tables) >= _TABLES:
                self._tables.pop(next(iter(self._tables)))
            self._tables[projection] = projection.rays()
        env = block * self.count + first + np.arange(len(position))
        table = self._tables[projection]
        seen = render(self.batch, table, position, attitude, env, ("rgb",), self._options, projection=projection)
        return np.asarray(seen["rgb"], np.float32)

    def _add_discs(self, image: Linear, projection: Pinhole, position: Floats, attitude: Floats) -> None:
        """Lay the rotors' discs over the images, half transparent: rendered once more where they are, and mixed.

        One frame after the other, since what is rendered of a frame must not depend on its neighbours.
        """
        for frame, outlines in enumerate(self._disc_pixels(projection, position, attitude)):
            box = _box_of(outlines, projection)
            if box is None:
                continue
            left, top, right, bottom = box
            part = replace(projection, width=right - left, height=bottom - top, cx=projection.cx - left, cy=projection.cy - top)
            one = slice(frame, frame + 1)
            solid = self._seen(part, position[one], attitude[one], _DISCS, frame)[0]
            under = image[frame, top:bottom, left:right]
            under += _filled(outlines - (left, top), part)[..., None] * (solid - under)

    def _disc_pixels(self, projection: Pinhole, position: Floats, attitude: Floats) -> Floats:
        """Pixels of the discs' edges, (k, rotors, 2, points, 2); NaN where a disc is not wholly before the camera."""
        local = frames.rotate_inverse(attitude[:, None, None, None], self._outlines - position[:, None, None, None])
        pixel, _ = projection.project(local)
        behind = (local[..., 2] < 0.02).any(axis=(2, 3))
        pixel[behind] = np.nan
        return pixel


def _box_of(pixels: Floats, projection: Pinhole) -> tuple[int, int, int, int] | None:
    """Left, top, right and bottom of what holds all discs [px]; None where none is in the image."""
    points = pixels.reshape(-1, 2)
    points = points[np.isfinite(points).all(1)]
    if not len(points):
        return None
    low = np.maximum(np.floor(points.min(0) / _BOX) * _BOX, 0)
    high = np.minimum(np.ceil(points.max(0) / _BOX) * _BOX, (projection.width, projection.height))
    return (int(low[0]), int(low[1]), int(high[0]), int(high[1])) if (high > low).all() else None


def _filled(outlines: Floats, part: Pinhole) -> NDArray[np.float32]:
    """How much of what is behind each pixel (height, width) discs hide: outlines (rotors, 2, points, 2), outer and inner."""
    from PIL import Image, ImageDraw

    mask = Image.new("L", (_FINER * part.width, _FINER * part.height))
    draw = ImageDraw.Draw(mask)
    for edges in outlines[np.isfinite(outlines).all(axis=(1, 2, 3))]:
        for outline, opacity in zip(edges, (TIP_OPACITY, DISC_OPACITY), strict=True):
            draw.polygon([(float(u), float(v)) for u, v in _FINER * outline], fill=round(255 * opacity))
    return np.asarray(mask.reduce(_FINER), np.float32) / np.float32(255.0)
