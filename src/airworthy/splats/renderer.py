"""Images of Gaussian splats, on a CPU or a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import quiet_warp
from airworthy.scenes.splats.record import Splats
from airworthy.splats.cameras import CameraView, RenderRequest, camera_view, gradient_request
from airworthy.splats.cloud import make_cloud
from airworthy.splats.gradients import Gradients, Loss, PoseGradients, answered, gradients_of, pose_gradients
from airworthy.splats.lanes import CpuLanes, Slopes
from airworthy.splats.native_text import CHUNK
from airworthy.splats.single import Single, SingleSlopes

RECORDS_AT_ONCE = {"cpu": 1 << 22, "cuda": 1 << 25}
"""Gaussians times cameras in one go; more cameras are rendered in groups. 64 bytes each."""

GRADIENT_SHARE = 4
"""How many times the memory of an image its derivatives need, about."""


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
        self._engine: CpuLanes | Single = CpuLanes(self._cloud, threads) if kind == "cpu" else Single(self._cloud, device)
        self._group = max(1, RECORDS_AT_ONCE[kind] // (self._cloud.chunk_stride * CHUNK))

    def render(self, *camera: Any, **options: Any) -> dict[str, ArrayF32]:
        """Images of c cameras.

        Channels:

        * `rgb` (c, H, W, 3): over the background, encoded as the splats' colours are (sRGB); above 1 where these are.
        * `depth` (c, H, W): along the optical axis [m], `expected`: the mean over what is seen, or `median`: of the Gaussian at
          which half of the light has been stopped; +inf where nothing, or less than half, is seen.
        * `alpha` (c, H, W): in [0, 1], how much of the background is covered.

        A pixel takes Gaussians in the order of the depth of their means until less than 1e-4 of the light passes; what has an
        opacity under 1/255 at a pixel is left out there, and none counts more than 0.99.

        Args:
            camera: Fields of `RenderRequest` in their order: width, height [px], intrinsics (c, 4) [px], position (c, 3) [m],
                attitude (c, 4), and on.
            options: The others, by name.

        Returns:
            An array per channel, float32.

        Raises:
            AirworthyError: If a name is unknown, a shape does not fit or a value cannot be used.
        """
        asked = camera_view(self._spans, RenderRequest(*camera, **options))
        images = _images(asked)
        for part, some in self._groups(asked):
            self._engine.render(part, {name: image[some] for name, image in images.items()})
        if asked.scale is not None and "depth" in images:
            depth = images["depth"]
            np.multiply(depth, asked.scale, out=depth, where=np.isfinite(depth), casting="same_kind")
        return images

    def render_on_device(self, *camera: Any, **options: Any) -> dict[str, Any]:
        """As `render`, but the images stay where they were made: on a GPU Warp arrays, whose memory `warp.to_torch` shares.

        Copying images to the host takes longer than making them when many cameras look at once. On a CPU the same as `render`.

        Args:
            camera: As of `render`.
            options: As of `render`.

        Raises:
            AirworthyError: As `render`; or depths were to be turned into distances, or back, which is done on the host.
        """
        if not isinstance(self._engine, Single):
            return dict(self.render(*camera, **options))
        asked = camera_view(self._spans, RenderRequest(*camera, **options))
        if asked.scale is not None:
            raise AirworthyError(
                "Depths of fisheyes and distances of other lenses are made on the host; call `render`, or leave `depth` and"
                " `limit` out."
            )
        images = self._engine.images(asked)
        for part, some in self._groups(asked):
            self._engine.render(part, {name: image[some] for name, image in images.items()})
        return images

    def gradients(self, loss: Loss, *camera: Any, **options: Any) -> tuple[list[Gradients], PoseGradients]:
        """Return derivatives of a loss of images with respect to every Gaussian and every camera's pose.

        Sums are made in one order, so that equal calls give equal bytes whatever the threads. Choices are held still: which
        Gaussians a pixel leaves out, their order, that none counts more than 0.99 and no colour is below 0.

        Args:
            loss: Called with the images of some of the cameras (all channels, depth `expected`) and which these are; returns
                the loss' derivative with respect to each channel it depends on, in the channel's shape. It must neither change
                the images nor render with this renderer.
            camera: Fields of `RenderRequest` in their order, `near` the last; channels and the depth's mode are given here.
            options: The others, by name: `dilation`, `lens` (the derivatives of what it does to a Gaussian's form are in),
                `movers` (their Gaussians' derivatives are in the frames of their clouds) and `limit`.

        Returns:
            Per scene, and of the cameras.

        Raises:
            AirworthyError: As `render`; or the loss' answer does not fit.
        """
        asked = camera_view(self._spans, gradient_request(*camera, **options))
        on_cpu = isinstance(self._engine, CpuLanes)
        slopes: Any = Slopes(self._cloud) if on_cpu else SingleSlopes(self._cloud, self.device)
        for part, some in self._groups(asked, GRADIENT_SHARE):
            images = _images(part)
            self._engine.render(part, images)
            slopes.add(self._engine, part, images, answered(loss, part, some, images))
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

    def _groups(self, asked: CameraView, share: int = 1) -> Iterator[tuple[CameraView, slice]]:
        """Cameras that are rendered in one go, as many as the memory for `share` times as much allows."""
        size = max(1, self._group * self._cloud.chunk_stride // (asked.stride * share))
        for first in range(0, asked.count if asked.channels else 0, size):
            some = slice(first, min(first + size, asked.count))
            yield asked.part(some), some


def _images(asked: CameraView) -> dict[str, ArrayF32]:
    shape = (asked.count, asked.height, asked.width)
    return {name: np.empty((*shape, 3) if name == "rgb" else shape, np.float32) for name in asked.channels}


def _has_device(device: str) -> bool:
    return any(str(found) == device for found in quiet_warp().get_cuda_devices())
