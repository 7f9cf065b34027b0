"""Where the cameras of a capture were, without reading its images."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from airworthy.capture._gate import CAPTURE_LIMITS, CaptureLimits
from airworthy.capture.images import list_capture, oriented
from airworthy.capture.record import CaptureImages
from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayFloat
from airworthy.core.errors import AssetError, telling_refusals

__all__ = ["CapturePoses", "read_poses"]

_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True, eq=False)
class CapturePoses:
    """Cameras of a capture, in the order in which people number what they film."""

    names: tuple[str, ...]
    position: ArrayFloat
    """(n, 3) optical centres [m where `metric`, else in the unit of the set]."""
    attitude: ArrayFloat
    """(n, 4) camera (x right, y down, z forward) to world; x, y, z, w."""
    metric: bool
    """Whether the unit is the metre and z is up."""

    def __len__(self) -> int:
        return len(self.names)

    @property
    def heading(self) -> Array:
        """Where each camera looks, angle about z [rad], (n,); of one that looks straight up or down, where its top points."""
        ahead = frames.rotate(self.attitude, np.array([0.0, 0.0, 1.0]))
        top = frames.rotate(self.attitude, np.array([0.0, -1.0, 0.0]))
        steep = np.linalg.norm(ahead[:, :2], axis=1) < 0.1
        # Looking down, the upper edge of the image is ahead; looking up, it is behind.
        facing = np.where(steep[:, None], -np.sign(ahead[:, 2:]) * top, ahead)
        return np.arctan2(facing[:, 1], facing[:, 0])


@telling_refusals()
def read_poses(folder: str | Path, up: str | None = None, limits: CaptureLimits = CAPTURE_LIMITS) -> CapturePoses:
    """Return the cameras of a capture's folder, as `read_capture` places them.

    Args:
        folder: As of `read_capture`.
        up: As of `read_capture`.
        limits: As of `read_capture`.

    Raises:
        AssetError: There is no capture, it is damaged or hostile, or lists no camera.
    """
    _, listing = list_capture(Path(folder), limits, None)
    # Numbers in names count as numbers: frame_10 comes after frame_9.
    listed = sorted(listing.frames, key=lambda frame: [int(w) if w.isdigit() else w for w in _DIGITS.split(frame.name)])
    if not listed:
        raise AssetError(f"The capture in {str(folder)!r} lists no camera.")
    blank = np.zeros((1, 1, 3), np.uint8)
    images = CaptureImages(
        rgb=(blank,) * len(listed),  # poses alone are asked for, and turning them upright needs no image
        intrinsics=np.ones((len(listed), 4)),
        position=np.array([frame.position for frame in listed]),
        attitude=np.array([frame.attitude for frame in listed]),
        names=tuple(frame.name for frame in listed),
        metric=listing.metric,
    )
    turned = oriented(images, listing, up)
    return CapturePoses(turned.names, turned.position, turned.attitude, turned.metric)
