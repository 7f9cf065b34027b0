"""Straight images from those of real lenses: one resampling, which also reduces the size.

Every pixel of the new image is the mean of what the camera saw in its area: n x n places in it (n the reduction, rounded up) go
through the lens, and the image is interpolated bilinearly there. The mean is one of light, so values are decoded from sRGB
before and encoded after. Without distortion and for a whole reduction this is exactly the mean over n x n pixels.

The whole is linear, so it is one sparse matrix per camera, made once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.capture.cameras import SourceCamera
from airworthy.core.errors import AirworthyError
from airworthy.sensors.tone import linear_from_srgb, srgb_from_linear

__all__ = ["Undistorter", "reduced_size"]

Pixels = NDArray[np.uint8]
Bools = NDArray[np.bool_]
_SAMPLES_AT_ONCE = 1 << 19
_KEPT_MAX = 1 << 26
"""Entries of a matrix that is kept for the next image of the same camera."""
_PLACES_MAX = 16
_WHOLE = 0.999
"""Share of a pixel's area that a mask must show for the pixel to count."""


_LINEAR = linear_from_srgb(np.arange(256, dtype=np.uint8))


def reduced_size(width: int, height: int, width_max: int | None) -> tuple[int, int]:
    """Size of an image that is at most `width_max` wide, its shape kept to the nearest pixel; never enlarged."""
    if width_max is None or width <= width_max:
        return width, height
    return width_max, max(1, round(height * width_max / width))


class Undistorter:
    """Makes the images of one camera straight.

    The new camera keeps the focal lengths, in proportion to the size, and so the sharpness in the middle; what then lies
    outside of the image is cut off, and where there was no image, `mask` is False.

    Args:
        camera: As the images were taken.
        width_max: Widest new image [px]; None: as wide as the old one.

    Raises:
        AirworthyError: Hardly anything of the new image was in the old one.
    """

    def __init__(self, camera: SourceCamera, width_max: int | None = None) -> None:
        self.camera = camera
        self.width, self.height = reduced_size(camera.width, camera.height, width_max)
        straight = camera.sized(self.width, self.height)
        self.intrinsics = np.array([straight.fx, straight.fy, straight.cx, straight.cy])
        """(4,) fx, fy, cx, cy of the new images [px]."""
        self.places = min(-(-camera.width // self.width), _PLACES_MAX)
        self.mask: Bools | None = None
        """(height, width) pixels that lie wholly in the old image; None: all."""
        self._bands: list[Any] | None = None
        self._same = camera.straight and (self.width, self.height) == (camera.width, camera.height)
        if not self._same:
            self._build()

    def _build(self) -> None:
        kept: list[Any] | None = []
        valid = np.empty((self.height, self.width), bool)
        if 4 * self.places**2 * self.width * self.height > _KEPT_MAX:
            kept = None
        for rows, matrix, good in self._matrices():
            valid[rows] = good
            if kept is not None:
                kept.append((rows, matrix))
        self._bands = kept
        if valid.mean() < 0.1:
            raise AirworthyError("its distortion leaves under a tenth of a straight image")
        self.mask = None if valid.all() else valid

    def __call__(self, pixels: Pixels) -> Pixels:
        """New image (height, width, 3) of an old one; black where `mask` is False."""
        if self._same:
            return pixels
        return np.asarray(np.rint(255.0 * srgb_from_linear(self._applied(_LINEAR[pixels]))), np.uint8)

    def masked(self, shown: Bools) -> Bools:
        """Mask of the new image from one of the old, (height, width): where all of a pixel's area is shown."""
        if self._same:
            return shown
        found = self._applied(shown[..., None].astype(np.float32))[..., 0] >= _WHOLE
        return found if self.mask is None else found & self.mask

    def _applied(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        flat = values.reshape(-1, values.shape[2])
        result = np.empty((self.height, self.width, values.shape[2]), np.float32)
        bands = self._bands if self._bands is not None else ((rows, matrix) for rows, matrix, _ in self._matrices())
        for rows, matrix in bands:
            result[rows] = (matrix @ flat).reshape(-1, self.width, values.shape[2])
        return result

    def _matrices(self) -> Iterator[tuple[slice, Any, Bools]]:
        """Bands of rows: which, the matrix from the old image to them, and which pixels lie in it."""
        camera, n = self.camera, self.places
        corner = np.array([(x, y) for x in (0, self.width) for y in (0, self.height)])
        reach = camera.reach(1.001 * float(np.linalg.norm(self._flat(corner), axis=-1).max()))
        each = max(1, _SAMPLES_AT_ONCE // (self.width * n * n))
        for top in range(0, self.height, each):
            rows = slice(top, min(top + each, self.height))
            yield rows, *self._matrix(rows, reach)

    def _flat(self, pixels: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray((pixels - self.intrinsics[2:]) / self.intrinsics[:2])

    def _matrix(self, rows: slice, reach: float) -> tuple[Any, Bools]:
        from scipy.sparse import csr_matrix

        camera, n = self.camera, self.places
        inner = (np.arange(n) + 0.5) / n
        v = (np.arange(rows.start, rows.stop)[:, None] + inner)[:, None, :, None]
        u = (np.arange(self.width)[:, None] + inner)[None, :, None, :]
        place = np.stack(np.broadcast_arrays(u, v), axis=-1).reshape(-1, n * n, 2)
        flat = self._flat(place)
        where = camera.pixels(flat)
        size = np.array([camera.width, camera.height])
        inside = ((where >= -1e-9) & (where <= size + 1e-9)).all(axis=-1) & (np.linalg.norm(flat, axis=-1) <= reach)
        good = inside.all(axis=-1)
        where = np.where(good[:, None, None], np.nan_to_num(where), 0.5) - 0.5
        first = np.clip(np.floor(where), 0, size - 1).astype(np.int32)
        second = np.minimum(first + 1, size - 1).astype(np.int32)
        share = np.clip(where - first, 0.0, 1.0)
        x = np.stack((first[..., 0], second[..., 0]), axis=-1)
        y = np.stack((first[..., 1], second[..., 1]), axis=-1)
        column = (y[..., :, None] * np.int32(camera.width) + x[..., None, :]).reshape(len(place), -1)
        across = np.stack((1.0 - share[..., 0], share[..., 0]), axis=-1)
        down = np.stack((1.0 - share[..., 1], share[..., 1]), axis=-1)
        weight = (down[..., :, None] * across[..., None, :] * (good[:, None, None, None] / (n * n))).reshape(len(place), -1)
        starts = np.arange(len(place) + 1) * weight.shape[1]
        shape = (len(place), camera.width * camera.height)
        matrix = csr_matrix((weight.ravel().astype(np.float32), column.ravel(), starts), shape=shape)
        if n > 1:
            matrix.sum_duplicates()
        return matrix, good.reshape(-1, self.width)
