"""Images of Gaussian splats, on a CPU or a GPU."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import quiet_warp
from airworthy.scenes.splats.record import Splats
from airworthy.sensors.splats.cloud import make_cloud
from airworthy.sensors.splats.lanes import Lanes
from airworthy.sensors.splats.native_text import CHUNK
from airworthy.sensors.splats.single import Single
from airworthy.sensors.splats.views import CHANNELS, DILATION, Shot, shot

RECORDS_AT_ONCE = {"cpu": 1 << 22, "cuda": 1 << 25}
"""Gaussians times cameras in one go; more cameras are rendered in groups. 64 bytes each."""


class SplatRenderer:
    """Renders one or more clouds from any number of cameras.

    The same cloud, cameras and version give the same bytes on a device type and instruction set, whatever the threads and
    whichever cameras are asked for together.

    Args:
        splats: A scene or several.
        device: `cpu`, or a CUDA device of Warp (`cuda:0`).
        threads: Most threads on a CPU; None: as many as `AIRWORTHY_THREADS` or the machine allows.

    Raises:
        AirworthyError: If a scene holds values that cannot be rendered, or the device is unknown.
    """

    def __init__(self, splats: Splats | Sequence[Splats], device: str = "cpu", threads: int | None = None):
        scenes = [splats] if isinstance(splats, Splats) else list(splats)
        self.device = device
        self.scene_count = len(scenes)
        self._cloud = make_cloud(scenes)
        self._spans = self._cloud.spans
        kind = device.partition(":")[0]
        if kind not in RECORDS_AT_ONCE or (kind == "cuda" and not _has_device(device)):
            raise AirworthyError(
                f"Splats cannot be rendered on device {device!r}; expected cpu, or a CUDA device that is present."
            )
        self._engine: Lanes | Single = Lanes(self._cloud, threads) if kind == "cpu" else Single(self._cloud, device)
        self._group = max(1, RECORDS_AT_ONCE[kind] // (self._cloud.chunk_stride * CHUNK))

    def render(
        self,
        width: int,
        height: int,
        intrinsics: ArrayLike,
        position: ArrayLike,
        attitude: ArrayLike,
        scene: ArrayLike | None = None,
        background: ArrayLike = (0.0, 0.0, 0.0),
        antialiased: bool = False,
        near: float = 0.05,
        channels: Sequence[str] = CHANNELS,
        depth_mode: str = "expected",
        dilation: float = DILATION,
    ) -> dict[str, NDArray[np.float32]]:
        """Images of c cameras.

        Channels:

        * `rgb` (c, H, W, 3): over the background, encoded as the splats' colours are (sRGB); at least 0, above 1 where they are.
        * `depth` (c, H, W): along the optical axis [m], `expected`: the mean over what is seen, or `median`: of the Gaussian at
          which half of the light has been stopped; +inf where nothing, or less than half, is seen.
        * `alpha` (c, H, W): in [0, 1], how much of the background is covered.

        A pixel takes Gaussians in the order of the depth of their means until less than 1e-4 of the light passes; what has an
        opacity under 1/255 at a pixel is left out there, and none counts more than 0.99.

        Args:
            width: Of the images [px].
            height: Of the images [px].
            intrinsics: (c, 4) or (4,) fx, fy, cx, cy [px], the upper left corner of the image being (0, 0).
            position: (c, 3) of the cameras, world [m].
            attitude: (c, 4) or (4,) quaternion x, y, z, w, camera (x right, y down, z forward) to world.
            scene: (c,) which scene each camera sees; None: all the only one, or camera k scene k.
            background: (3,) or (c, 3) colour where nothing is.
            antialiased: Whether a Gaussian narrower than a pixel loses opacity as it is widened to one (for clouds trained so).
            near: Means nearer than this along the axis are not seen [m].
            channels: What to deliver.
            depth_mode: `expected` or `median`.
            dilation: Variance by which a pixel's width spreads every Gaussian [px^2].

        Returns:
            An array per channel, float32.

        Raises:
            AirworthyError: If a name is unknown, a shape does not fit or a value cannot be used.
        """
        asked = shot(
            self._spans, width, height, intrinsics, position, attitude, scene, background, antialiased, near, dilation, channels,
            depth_mode,
        )  # fmt: skip
        shapes = {name: (len(asked.cameras), height, width) for name in asked.channels}
        images = {name: np.empty((*s, 3) if name == "rgb" else s, np.float32) for name, s in shapes.items()}
        if not images:
            return images
        for first in range(0, len(asked.cameras), self._group):
            some = slice(first, first + self._group)
            part = Shot(**{**vars(asked), "cameras": asked.cameras[some]})
            self._engine.render(part, {name: image[some] for name, image in images.items()})
        return images


def _has_device(device: str) -> bool:
    return any(str(found) == device for found in quiet_warp().get_cuda_devices())
