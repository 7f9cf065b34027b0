"""Images of Gaussian splats, on a CPU or a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.native_kernel import quiet_warp
from airworthy.scenes.splats.record import Splats
from airworthy.sensors.splats.cloud import make_cloud
from airworthy.sensors.splats.gradients import Gradients, PoseGradients, gradients_of, pose_gradients
from airworthy.sensors.splats.lanes import Lanes
from airworthy.sensors.splats.lanes_back import Slopes
from airworthy.sensors.splats.native_text import CHUNK
from airworthy.sensors.splats.single import Single
from airworthy.sensors.splats.views import CHANNELS, DILATION, Shot, shot

RECORDS_AT_ONCE = {"cpu": 1 << 22, "cuda": 1 << 25}
"""Gaussians times cameras in one go; more cameras are rendered in groups. 64 bytes each."""

GRADIENT_SHARE = 4
"""How many times the memory of an image its derivatives need, about."""

Loss = Callable[[dict[str, NDArray[np.float32]], slice], dict[str, NDArray[Any]]]


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
        self._scenes, self._cloud = scenes, make_cloud(scenes)
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

        * `rgb` (c, H, W, 3): over the background, encoded as the splats' colours are (sRGB); above 1 where these are.
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
        asked = self._asked(
            width, height, intrinsics, position, attitude, scene, background, antialiased, near, channels, depth_mode, dilation
        )
        images = _images(asked)
        for part, some in self._groups(asked):
            self._engine.render(part, {name: image[some] for name, image in images.items()})
        return images

    def gradients(
        self,
        loss: Loss,
        width: int,
        height: int,
        intrinsics: ArrayLike,
        position: ArrayLike,
        attitude: ArrayLike,
        scene: ArrayLike | None = None,
        background: ArrayLike = (0.0, 0.0, 0.0),
        antialiased: bool = False,
        near: float = 0.05,
        dilation: float = DILATION,
    ) -> tuple[list[Gradients], PoseGradients]:
        """Derivatives of a loss of images with respect to every Gaussian and every camera's pose. On a CPU.

        Sums are made in one order, so that equal calls give equal bytes whatever the threads. Choices are held still: which
        Gaussians a pixel leaves out, their order, that none counts more than 0.99 and no colour is below 0.

        Args:
            loss: Called with the images of some of the cameras (all channels, depth `expected`) and which these are; returns
                the loss' derivative with respect to each channel it depends on, in the channel's shape.
            width: As of `render`, and so the others.
            height: [px]
            intrinsics: (c, 4) or (4,) [px].
            position: (c, 3) [m].
            attitude: (c, 4) or (4,).
            scene: (c,) or None.
            background: (3,) or (c, 3).
            antialiased: As of `render`.
            near: [m].
            dilation: [px^2].

        Returns:
            Per scene, and of the cameras.

        Raises:
            AirworthyError: As `render`; or the renderer is on a GPU, or the loss' answer does not fit.
        """
        if not isinstance(self._engine, Lanes):
            raise AirworthyError("Derivatives of splats are computed on a CPU only; make the renderer with device='cpu'.")
        asked = self._asked(
            width, height, intrinsics, position, attitude, scene, background, antialiased, near, CHANNELS, "expected", dilation
        )
        slopes = Slopes(self._cloud)
        for part, some in self._groups(asked, GRADIENT_SHARE):
            images = _images(part)
            self._engine.render(part, images)
            slopes.add(self._engine, part, images, _answer(loss(images, some), images))
        return gradients_of(self._scenes, self._cloud, slopes), pose_gradients(asked.cameras, slopes)

    def replace(self, splats: Splats | Sequence[Splats]) -> None:
        """Render other clouds from now on; while counts and degrees stay, Gaussians keep their places in memory (training).

        Raises:
            AirworthyError: As when a renderer is made, or the number of scenes is another.
        """
        scenes = [splats] if isinstance(splats, Splats) else list(splats)
        if len(scenes) != self.scene_count:
            raise AirworthyError(f"{len(scenes)} scenes were to replace {self.scene_count}; expected as many as before.")
        self._set(scenes, [len(s) == len(old) for s, old in zip(scenes, self._scenes, strict=True)])

    def _set(self, scenes: list[Splats], keep: Sequence[bool]) -> None:
        orders = [self._cloud.order[k] if kept else None for k, kept in enumerate(keep)] if any(keep) else None
        self._scenes, self._cloud = scenes, make_cloud(scenes, orders)
        self._spans = self._cloud.spans
        self._engine.take(self._cloud)
        self._group = max(1, RECORDS_AT_ONCE[self.device.partition(":")[0]] // (self._cloud.chunk_stride * CHUNK))

    def _asked(
        self,
        width: int,
        height: int,
        intrinsics: ArrayLike,
        position: ArrayLike,
        attitude: ArrayLike,
        scene: ArrayLike | None,
        background: ArrayLike,
        antialiased: bool,
        near: float,
        channels: Sequence[str],
        depth_mode: str,
        dilation: float,
    ) -> Shot:
        camera = (intrinsics, position, attitude, scene, background)
        return shot(self._spans, width, height, *camera, antialiased, near, dilation, channels, depth_mode)

    def _groups(self, asked: Shot, share: int = 1) -> Iterator[tuple[Shot, slice]]:
        """Cameras that are rendered in one go, as many as the memory for `share` times as much allows."""
        size = max(1, self._group // share)
        for first in range(0, len(asked.cameras) if asked.channels else 0, size):
            some = slice(first, min(first + size, len(asked.cameras)))
            yield replace(asked, cameras=asked.cameras[some]), some


def _images(asked: Shot) -> dict[str, NDArray[np.float32]]:
    shape = (len(asked.cameras), asked.height, asked.width)
    return {name: np.empty((*shape, 3) if name == "rgb" else shape, np.float32) for name in asked.channels}


def _answer(answer: dict[str, NDArray[Any]], images: dict[str, NDArray[np.float32]]) -> dict[str, NDArray[Any]]:
    for name, slope in answer.items():
        if name not in images:
            raise unknown_name("channel", name, CHANNELS)
        if np.shape(slope) != images[name].shape:
            raise AirworthyError(
                f"A loss gave derivatives of {name} of shape {np.shape(slope)}; expected {images[name].shape}, as the images."
            )
    return answer


def _has_device(device: str) -> bool:
    return any(str(found) == device for found in quiet_warp().get_cuda_devices())
