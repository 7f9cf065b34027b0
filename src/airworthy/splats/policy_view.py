"""The image that a visuomotor policy is given: rendered directly, or resized and cropped from the whole image.

SOUS VIDE's policy sees a 640 x 360 image resized to 256 x 256, the middle 224 x 224 of it cut out (arXiv 2412.16346 and its
published code). Both steps are a change of intrinsics. With pixel coordinates from the image's upper left corner, as everywhere
here, resizing by (sx, sy) takes fx, fy, cx, cy to sx fx, sy fy, sx cx, sy cy, since corners go to corners (resizing that keeps
the centres of corner pixels would not); cutting subtracts the corner of the cut from cx, cy. For the drone's camera that gives
0.4 * 462.956 = 185.182, 256/360 * 463.002 = 329.246, 0.4 * 323.076 - 16 = 113.230 and 256/360 * 181.184 - 16 = 112.842.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayF32, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import check_fields
from airworthy.splats.renderer import SplatRenderer

CAMERA_SIZE = (640, 360)
CAMERA_INTRINSICS = (462.956, 463.002, 323.076, 181.184)
"""Of the reference drone's camera: fx, fy, cx, cy [px]. Source: SOUS VIDE's configs/frame/carl.json."""
_HALF = 0.500001
"""A half and far more than sums of float64 are off by, so that halves go up however they are summed [counts]."""


@dataclass(frozen=True)
class PolicyView:
    """Resize, then cut out the middle.

    Raises:
        AirworthyError: If the cut is larger than the resized image.
    """

    resized: tuple[int, int] = (256, 256)
    """Width, height [px]; the aspect is not kept."""
    size: tuple[int, int] = (224, 224)
    """Width, height of what is cut out of its middle [px]."""

    def __post_init__(self) -> None:
        check_fields(self, "PolicyView.")
        if not all(1 <= small <= large for small, large in zip(self.size, self.resized, strict=True)):
            raise AirworthyError(
                f"A policy's view cuts {self.size} pixels out of {self.resized}; expected no more than there are."
            )

    @property
    def corner(self) -> tuple[int, int]:
        """Column and row of the resized image at which the cut begins."""
        return (self.resized[0] - self.size[0]) // 2, (self.resized[1] - self.size[1]) // 2

    def intrinsics(self, camera: ArrayLike = CAMERA_INTRINSICS, camera_size: tuple[int, int] = CAMERA_SIZE) -> Array:
        """Return fx, fy, cx, cy (..., 4) of the view, from those of the camera (..., 4) and its size [px]."""
        share = np.array(self.resized, np.float64) / np.array(camera_size)
        return np.asarray(camera, np.float64) * np.tile(share, 2) - (0.0, 0.0, *self.corner)

    def render(
        self,
        renderer: SplatRenderer,
        position: ArrayLike,
        attitude: ArrayLike,
        camera: ArrayLike = CAMERA_INTRINSICS,
        camera_size: tuple[int, int] = CAMERA_SIZE,
        **options: Any,
    ) -> dict[str, ArrayF32]:
        """Return the view of c cameras, rendered directly; `options` as of `SplatRenderer.render`.

        With `reduced` (as set here) Gaussians are as wide and as strong as resizing leaves them. What remains is that resizing
        averages what has been blended, and here averages are blended: they differ where things smaller than a pixel hide each
        other.

        Args:
            renderer: Of the clouds.
            position: (c, 3) of the cameras, world [m].
            attitude: (c, 4) or (4,) quaternion x, y, z, w, camera to world.
            camera: fx, fy, cx, cy of the whole image [px].
            camera_size: Width and height of the whole image [px].
            options: As of `SplatRenderer.render`.
        """
        share = self.resized[0] / camera_size[0], self.resized[1] / camera_size[1]
        options = {"reduced": share, **options}
        return renderer.render(*self.size, self.intrinsics(camera, camera_size), position, attitude, **options)

    def of(self, images: ArrayAny) -> ArrayAny:
        """Return the view of whole images (..., H, W, 3), resized with a triangle filter as wide as the new pixels are apart.

        That is the antialiased bilinear filter of Pillow and torchvision. 8-bit images stay so, others become float32. Those
        of 8 bits are summed up in float64 and rounded so that halves, which whole ratios of sizes make many of, all go up:
        every program that does the same gets the same counts, in whatever order it adds.

        Raises:
            AirworthyError: If the last axis is not 3.
        """
        given = np.asarray(images)
        if given.ndim < 3 or given.shape[-1] != 3:
            raise AirworthyError(f"A policy's view got images of shape {given.shape}; expected (..., H, W, 3).")
        height, width = given.shape[-3:-1]
        (left, top), (wide, tall) = self.corner, self.size
        counts = given.dtype == np.uint8
        kind: Any = np.float64 if counts else np.float32
        down = triangle_matrix(height, self.resized[1])[top : top + tall].astype(kind)
        across = triangle_matrix(width, self.resized[0])[left : left + wide].astype(kind)
        rows = np.einsum("ih,...hwc->...iwc", down, given.astype(kind), optimize=True)
        found = np.einsum("jw,...iwc->...ijc", across, rows, optimize=True)
        return np.clip(np.floor(found + _HALF), 0, 255).astype(np.uint8) if counts else found


def triangle_matrix(size: int, resized: int) -> Array:
    """Return weights (resized, size) of an antialiased linear resize along one axis; rows sum to 1."""
    scale = size / resized
    reach = max(scale, 1.0)
    middle = (np.arange(resized) + 0.5) * scale
    away = np.abs(np.arange(size) + 0.5 - middle[:, None]) / reach
    weights = np.maximum(1.0 - away, 0.0)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
