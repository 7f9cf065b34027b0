"""An avoiding policy behind another camera: images of a level pinhole camera, as its own tilted one would see them.

The navigation benchmark's camera looks straight ahead, to 5 m; a policy's looks up by 20 degrees. Each ray of the policy's
image is looked up in the camera's: the nearest of 4 x 4 rays per pixel, as its own camera keeps the nearest return. What lies
above or beside the camera's image is taken from its last row or column, at the same distance ahead: most things stand upright.
What returns nothing is as far as the policy's reach.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.optics.projections import Pinhole
from airworthy.pilots.avoid_policy.sight import HALF_TANGENT, IMAGE, POOL, REACH, TILT_DEG

__all__ = ["WideView"]


class WideView:
    """Looks a policy's rays up in images of a camera.

    Args:
        camera: Looks straight ahead.
    """

    def __init__(self, camera: Pinhole):
        self._shape = camera.height, camera.width
        rows, columns = (POOL * side for side in IMAGE)
        pitch = 2.0 * HALF_TANGENT / columns
        # Rays of every fourth of a pixel, per metre along the tilted axis: left and up.
        left = -(np.arange(columns) + 0.5 - columns / 2) * pitch
        up = -(np.arange(rows) + 0.5 - rows / 2) * pitch
        up, left = np.meshgrid(up, left, indexing="ij")
        c, s = math.cos(math.radians(TILT_DEG)), math.sin(math.radians(TILT_DEG))
        ahead, height = c - s * up, s + c * up
        # None of them looks back: the upper edge is 52 degrees above the level.
        side, rise = left / ahead, height / ahead
        half = 0.0 if camera.integer_pixels else 0.5
        u = np.rint(camera.cx - half - camera.fx * side).astype(np.int64)
        v = np.rint(camera.cy - half - camera.fy * rise).astype(np.int64)
        self._at = np.clip(v, 0, camera.height - 1) * camera.width + np.clip(u, 0, camera.width - 1)
        self._depth = c + s * rise
        """Along the tilted axis, per metre along the level one."""

    def __call__(self, depth: ArrayLike) -> ArrayF32:
        """Return what the network sees, (k, 192) [m].

        Args:
            depth: Along the level axis [m]; what is not positive or not finite returned nothing, (k, H, W).

        Raises:
            AirworthyError: Images are of another size.
        """
        whole: Any = np.asarray(depth, np.float32)
        if whole.shape[1:] != self._shape:
            raise AirworthyError(f"Depth images are of {whole.shape[1:]}; expected {self._shape}, the camera's.")
        near: Array = whole.reshape(len(whole), -1)[:, self._at]
        returned = np.isfinite(near) & (near > 0.0)
        seen = np.where(returned, near * self._depth, REACH)
        rows, columns = IMAGE
        blocks = seen.reshape(len(whole), rows, POOL, columns, POOL).min((2, 4))
        return np.ascontiguousarray(blocks.reshape(len(whole), -1), np.float32)
