"""Images of Gaussian splats, on a CPU or a GPU.

Derivatives of a loss with respect to clouds and cameras.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayF32, ArrayInt, NDArray
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.native_kernel import CPU_LANES, quiet_warp
from airworthy.scenes.splats.record import Splats
from airworthy.splats.cameras import CameraView, RenderRequest, camera_view, gradient_request, image_shape
from airworthy.splats.cloud import Cloud, make_cloud
from airworthy.splats.lanes import CpuLanes, Slopes
from airworthy.splats.native_text import CHUNK, SLOPE_ROWS
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
        """Return images of c cameras.

        Channels:

        * `rgb` (c, H, W, 3): over the background, encoded as the splats' colours are (sRGB); above 1 where these are.
        * `depth` (c, H, W): along the optical axis [m], `expected`: the mean over what is seen, or `median`: of the Gaussian at
          which half of the light has been stopped; +inf where nothing, or less than half, is seen. `depth_at="plane"`: where
          the pixel's ray meets the Gaussians' planes.
        * `alpha` (c, H, W): in [0, 1], how much of the background is covered.
        * `normal` (c, H, W, 3), on request: of the Gaussians' shortest axes, towards the camera, in its frame, blended as
        colours are over black: its length is at most alpha.

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
        """Render as `render`, but the images stay where they were made: on a GPU Warp arrays, whose memory `warp.to_torch`
        shares.

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
            loss: Called with the images of some of the cameras (`CHANNELS` and what `channels` names besides, depth
                `expected`) and which these are; returns
                the loss' derivative with respect to each channel it depends on, in the channel's shape. It must neither change
                the images nor render with this renderer.
            camera: Fields of `RenderRequest` in their order, `near` the last; channels and the depth's mode are given here.
            options: The others, by name: `dilation`, `lens` (the derivatives of what it does to a Gaussian's form are in),
                `dynamic_instances` (their Gaussians' derivatives are in the frames of their clouds) and `limit`.

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
    return {name: np.empty(image_shape(name, shape), np.float32) for name in asked.channels}


def _has_device(device: str) -> bool:
    return any(str(found) == device for found in quiet_warp().get_cuda_devices())


Loss = Callable[[dict[str, ArrayF32], slice], dict[str, ArrayAny]]
"""Of the images of some of the cameras, and which these are: derivatives with respect to the channels it depends on."""


@dataclass(frozen=True, eq=False)
class Gradients:
    """Derivatives of a loss with respect to one scene's `Splats`, summed over cameras."""

    position: ArrayF32
    rotation: ArrayF32
    """(n, 4); along the unit sphere: of a quaternion that is normalised after each step."""
    scale: ArrayF32
    opacity: ArrayF32
    harmonics: ArrayF32
    image_shift: ArrayF32
    """(n,) length of the derivative with respect to the place in the image [1/px], summed over cameras."""
    image_count: ArrayF32
    """(n,) in how many images."""


@dataclass(frozen=True, eq=False)
class PoseGradients:
    """Derivatives with respect to the cameras' poses."""

    position: Array
    """(c, 3)"""
    rotation: Array
    """(c, 3) of a small turn about the camera's own axes [1/rad]: attitude times the turn."""


def gradients_of(scenes: list[Splats], cloud: Cloud, slopes: Slopes | SingleSlopes) -> list[Gradients]:
    """Return what was found of every scene, in the order of its Gaussians; costs what was seen.

    Args:
        scenes: The clouds.
        cloud: The same, packed.
        slopes: Sums over cameras.
    """
    found = (slopes.gaussians, slopes.harmonics, slopes.touched)
    return [_of_scene(splats, cloud, scene, *found) for scene, splats in enumerate(scenes)]


def _of_scene(
    splats: Splats, cloud: Cloud, scene: int, gaussians: ArrayF32, harmonics: ArrayF32, touched: ArrayBool
) -> Gradients:
    first, count = cloud.spans[scene]
    chunks = first + np.flatnonzero(touched[first : first + count])
    rows = _rows(gaussians.reshape(len(touched), -1)[chunks], SLOPE_ROWS)
    used = np.flatnonzero(rows[14] > 0.0)
    ranks = ((chunks - first)[:, None] * CHUNK + np.arange(CHUNK)).reshape(-1)[used]
    which, rows = cloud.order[scene][ranks], rows[:, used]
    k = splats.harmonics.shape[1]
    numbers = int(cloud.chunks["harmonics"][first]) * CPU_LANES
    blocks = harmonics[numbers : numbers + count * CHUNK * 3 * k].reshape(count, -1)
    colours = _rows(blocks[chunks - first], 3 * k)[:, used].reshape(k, 3, -1)
    rotation, scale = _of_axes(splats.rotation[which], splats.scale[which], rows[3:12].reshape(3, 3, -1))
    parts = (rows[:3], rotation, scale, rows[12], colours, rows[13], rows[14])
    return Gradients(*(_placed(part, which, len(splats)) for part in parts))


def pose_gradients(cameras: NDArray[np.void], slopes: Slopes | SingleSlopes) -> PoseGradients:
    """Return what was found of the cameras, rows of `CAMERA`."""
    rows = np.concatenate([*slopes.poses, np.zeros((0, 12))])
    matrices = cameras["rotation"][: len(rows)].reshape(-1, 3, 3).astype(np.float64)
    return PoseGradients(rows[:, :3], turns(rows[:, 3:].reshape(-1, 3, 3), matrices))


def turns(slopes: Array, matrices: Array) -> Array:
    """Return derivatives (c, 3) with respect to small turns about the cameras' axes, from those with respect to their matrices.

    A turn by w takes the matrix R to R - [w] R: the derivative is the antisymmetric part.
    """
    part = slopes @ matrices.swapaxes(1, 2)
    return np.stack([part[:, 1, 2] - part[:, 2, 1], part[:, 2, 0] - part[:, 0, 2], part[:, 0, 1] - part[:, 1, 0]], axis=1)


def answered(loss: Loss, view: CameraView, some: slice, images: dict[str, ArrayF32]) -> dict[str, ArrayF32]:
    """Ask a loss for its derivatives with respect to images just rendered, which it may read only.

    Args:
        loss: Of the user.
        view: What was rendered, all cameras of this group.
        some: Which of all cameras these are.
        images: By channel, (c, H, W) or (c, H, W, 3).

    Raises:
        AirworthyError: If it names something else, or gives another shape.
    """
    cosines = view.scale  # a fisheye is rendered with distances
    shown = {name: image.view() for name, image in images.items()}
    if cosines is not None:
        with np.errstate(invalid="ignore"):
            shown["depth"] = np.where(np.isfinite(images["depth"]), images["depth"] * cosines, np.inf).astype(np.float32)
    for image in shown.values():
        image.flags.writeable = False
    answer = {name: np.asarray(slope, np.float32) for name, slope in loss(shown, some).items()}
    for name, slope in answer.items():
        if name not in images:
            raise unknown_name("channel", name, tuple(images))
        if slope.shape != images[name].shape:
            raise AirworthyError(
                f"A loss gave derivatives of {name} of shape {slope.shape}; expected {images[name].shape}, as the images."
            )
    if cosines is not None and "depth" in answer:
        answer["depth"] = (answer["depth"] * cosines).astype(np.float32)
    return answer


def _rows(chunks: ArrayF32, width: int) -> ArrayF32:
    """(chunk, numbers of its blocks) -> (width, n)"""
    return chunks.reshape(-1, width, CPU_LANES).swapaxes(0, 1).reshape(width, -1)


def _placed(values: ArrayF32, which: ArrayInt, count: int) -> ArrayF32:
    """(..., n) of some -> (count, ...) of all."""
    found = np.zeros((count, *values.shape[:-1]), np.float32)
    found[which] = np.moveaxis(values, -1, 0)
    return found


def _of_axes(rotation: ArrayF32, scale: ArrayF32, axes: ArrayF32) -> tuple[ArrayF32, ArrayF32]:
    """Return derivatives with respect to quaternions (4, n) and scales (3, n) from those with respect to the axes R
    diag(scale).
    """
    unit = np.ascontiguousarray(rotation.T)
    x, y, z, w = unit
    matrix = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
        (2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
        (2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)),
    )
    along = np.stack([sum(matrix[row][k] * axes[row, k] for row in range(3)) for k in range(3)])
    (aa, ab, ac), (ba, bb, bc), (ca, cb, cc) = axes * np.ascontiguousarray(scale.T)
    quaternion = 2 * np.stack(
        [
            y * (ab + ba) + z * (ac + ca) - 2 * x * (bb + cc) + w * (cb - bc),
            x * (ab + ba) + z * (bc + cb) - 2 * y * (aa + cc) + w * (ac - ca),
            x * (ac + ca) + y * (bc + cb) - 2 * z * (aa + bb) + w * (ba - ab),
            x * (cb - bc) + y * (ac - ca) + z * (ba - ab),
        ]
    )
    return quaternion - unit * (unit * quaternion).sum(axis=0), along
