"""Reading and writing captures: folders of images with poses.

Read are transforms.json (instant-ngp, Nerfstudio, the Blender sets) and COLMAP's sparse models. Images come out straight
(without distortion), no wider than asked for; what is missing or damaged is left out and said.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.capture._gate import CAPTURE_LIMITS, CaptureFolder, CaptureLimits, DamagedImageError
from airworthy.capture.cameras import CapturedFrame, Listing, SourceCamera
from airworthy.capture.colmap import colmap_model, list_colmap
from airworthy.capture.record import AS_READ, CaptureImages
from airworthy.capture.writer import ALIGNMENT, SPLITS, TRANSFORMS, list_alignment, list_transforms, write_capture
from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayF32, ArrayU8, NDArray
from airworthy.core.errors import AirworthyError, AssetError, telling_refusals
from airworthy.core.idle_options import IdleRule, refuse_idle
from airworthy.core.jobs.progress import progress
from airworthy.optics.tone import linear_from_srgb, srgb_from_linear
from airworthy.scenes.splats.editing import up_turn

__all__ = [
    "CAPTURE_LIMITS",
    "IDLE_RULES",
    "CaptureImages",
    "CaptureLimits",
    "Undistorter",
    "list_capture",
    "mean_up",
    "oriented",
    "read_capture",
    "reduced_size",
    "write_capture",
]

# ---- Which way is up in a capture: what the set says, or what its cameras suggest ------------------------------------------

_UPRIGHT = 0.3
"""Mean of the cameras' upward directions below which they do not tell what is up."""
IDENTITY = np.array(frames.IDENTITY)


def oriented(images: CaptureImages, listing: Listing, up: str | None) -> CaptureImages:
    """Return the capture with z up; scale and origin stay.

    Args:
        images: As read.
        listing: What the set says.
        up: As of `read_capture`.

    Raises:
        AirworthyError: There is no such axis.
    """
    if up is None and listing.alignment is not None:
        found, unit = listing.alignment, "in metres" if listing.aligned_metric else "in a unit of its own"
        note = f"frame: that of the place, {unit}, as {ALIGNMENT} beside the set says"
        started = replace(images, source=replace(images.source, up="z"))
        return started.moved(found.rotation, found.translation, found.scale, note, listing.aligned_metric)
    if up == "none" or (up is None and listing.up == "z"):
        said = "left as it is" if up == "none" else "z, as the set says"
        return _turned(images, IDENTITY, "z", f"up: {said}")
    if up is not None:
        return _turned(images, np.array(up_turn(up)), up, f"up: the axis {up} of the set, now z")
    direction, length = mean_up(images.attitude)
    if length < _UPRIGHT:
        return _turned(
            images,
            IDENTITY,
            "",
            f"up: unknown, since the cameras disagree (their mean is {length:.2f} long); frame left as it is",
        )
    text = ", ".join(f"{value:.3f}" for value in direction)
    note = f"up: the mean of the cameras' upward directions, ({text}) of the set, now z; scale and origin left as they are"
    return _turned(images, _turn_to_z(direction), f"({text})", note)


def mean_up(attitude: NDArray[np.floating]) -> tuple[Array, float]:
    """Return unit mean (3,) of the directions that are up in the images of cameras (n, 4), and how long it was, in [0, 1]."""
    mean = frames.rotate(attitude, np.array([0.0, -1.0, 0.0])).mean(axis=0)
    length = float(np.linalg.norm(mean))
    return mean / max(length, 1e-12), length


def _turn_to_z(direction: Array) -> Array:
    """Return the shortest turn that leads a direction to z."""
    axis = np.cross(direction, (0.0, 0.0, 1.0))
    angle = float(np.arctan2(np.linalg.norm(axis), direction[2]))
    return frames.from_axis_angle(axis if np.linalg.norm(axis) > 1e-12 else np.array([1.0, 0.0, 0.0]), np.array(angle))


def _turned(images: CaptureImages, turn: Array, axis: str, note: str) -> CaptureImages:
    started = replace(images, source=replace(images.source, up=axis), notes=(*images.notes, note))
    return started if (turn[:3] == 0.0).all() else started.moved(turn, np.zeros(3), 1.0)


# ---- Straight images from those of real lenses: one resampling, which also reduces the size --------------------------------
#
# Every pixel of the new image is the mean of what the camera saw in its area: n x n places in it (n the reduction, rounded
# up) go through the lens, and the image is interpolated bilinearly there. The mean is one of light, so values are decoded
# from sRGB before and encoded after. Without distortion and for a whole reduction this is exactly the mean over n x n pixels.
#
# The whole is linear, so it is one sparse matrix per camera, made once.

_SAMPLES_AT_ONCE = 1 << 19
_KEPT_MAX = 1 << 26
"""Entries of a matrix that is kept for the next image of the same camera."""
_SAMPLES_MAX = 16
_WHOLE = 0.999
"""Share of a pixel's area that a mask must show for the pixel to count."""


_LINEAR = linear_from_srgb(np.arange(256, dtype=np.uint8))


def reduced_size(width: int, height: int, width_max: int | None) -> tuple[int, int]:
    """Return the size of an image that is at most `width_max` wide, its shape kept to the nearest pixel; never enlarged.

    Args:
        width: [px]
        height: [px]
        width_max: Most of the result [px]; None: no bound.
    """
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
        self.samples = min(-(-camera.width // self.width), _SAMPLES_MAX)
        self.mask: ArrayBool | None = None
        """(height, width) pixels that lie wholly in the old image; None: all."""
        self._bands: list[Any] | None = None
        self._same = camera.straight and (self.width, self.height) == (camera.width, camera.height)
        if not self._same:
            self._build()

    def _build(self) -> None:
        kept: list[Any] | None = []
        valid = np.empty((self.height, self.width), bool)
        if 4 * self.samples**2 * self.width * self.height > _KEPT_MAX:
            kept = None
        for rows, matrix, good in self._matrices():
            valid[rows] = good
            if kept is not None:
                kept.append((rows, matrix))
        self._bands = kept
        if valid.mean() < 0.1:
            raise AirworthyError("its distortion leaves under a tenth of a straight image")
        self.mask = None if valid.all() else valid

    def __call__(self, pixels: ArrayU8) -> ArrayU8:
        """Return new image (height, width, 3) of an old one; black where `mask` is False."""
        if self._same:
            return pixels
        return np.asarray(np.rint(255.0 * srgb_from_linear(self._applied(_LINEAR[pixels]))), np.uint8)

    def masked(self, shown: ArrayBool) -> ArrayBool:
        """Mask of the new image from one of the old, (height, width): where all of a pixel's area is shown."""
        if self._same:
            return shown
        found = self._applied(shown[..., None].astype(np.float32))[..., 0] >= _WHOLE
        return found if self.mask is None else found & self.mask

    def _applied(self, values: ArrayF32) -> ArrayF32:
        flat = values.reshape(-1, values.shape[2])
        result = np.empty((self.height, self.width, values.shape[2]), np.float32)
        bands = self._bands if self._bands is not None else ((rows, matrix) for rows, matrix, _ in self._matrices())
        for rows, matrix in bands:
            result[rows] = (matrix @ flat).reshape(-1, self.width, values.shape[2])
        return result

    def _matrices(self) -> Iterator[tuple[slice, Any, ArrayBool]]:
        """Bands of rows: which, the matrix from the old image to them, and which pixels lie in it."""
        camera, n = self.camera, self.samples
        corner = np.array([(x, y) for x in (0, self.width) for y in (0, self.height)])
        reach = camera.reach(1.001 * float(np.linalg.norm(self._flat(corner), axis=-1).max()))
        each = max(1, _SAMPLES_AT_ONCE // (self.width * n * n))
        for top in range(0, self.height, each):
            rows = slice(top, min(top + each, self.height))
            yield rows, *self._matrix(rows, reach)

    def _flat(self, pixels: ArrayAny) -> Array:
        return np.asarray((pixels - self.intrinsics[2:]) / self.intrinsics[:2])

    def _matrix(self, rows: slice, reach: float) -> tuple[Any, ArrayBool]:
        from scipy.sparse import csr_matrix

        camera, n = self.camera, self.samples
        inner = (np.arange(n) + 0.5) / n
        v = (np.arange(rows.start, rows.stop)[:, None] + inner)[:, None, :, None]
        u = (np.arange(self.width)[:, None] + inner)[None, :, None, :]
        sampled = np.stack(np.broadcast_arrays(u, v), axis=-1).reshape(-1, n * n, 2)
        flat = self._flat(sampled)
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
        column = (y[..., :, None] * np.int32(camera.width) + x[..., None, :]).reshape(len(sampled), -1)
        across = np.stack((1.0 - share[..., 0], share[..., 0]), axis=-1)
        down = np.stack((1.0 - share[..., 1], share[..., 1]), axis=-1)
        weight = (down[..., :, None] * across[..., None, :] * (good[:, None, None, None] / (n * n))).reshape(len(sampled), -1)
        starts = np.arange(len(sampled) + 1) * weight.shape[1]
        shape = (len(sampled), camera.width * camera.height)
        matrix = csr_matrix((weight.ravel().astype(np.float32), column.ravel(), starts), shape=shape)
        if n > 1:
            matrix.sum_duplicates()
        return matrix, good.reshape(-1, self.width)


# -----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CaptureReading:
    """Arguments of `read_capture` that some sets have no use for, with their defaults."""

    every: int = 8
    images: str | None = None


IDLE_RULES = (
    IdleRule(("every",), lambda asked, listing: listing.split, "for a set that says itself what is held out"),
    IdleRule(
        ("images",),
        lambda asked, listing: not listing.what.startswith("COLMAP"),
        "for a set that names the file of each image; it is of sparse models of COLMAP",
    ),
)
"""Options that change nothing for a set."""


def read_capture(
    folder: str | Path,
    width: int | None = None,
    every: int = 8,
    up: str | None = None,
    limits: CaptureLimits = CAPTURE_LIMITS,
    *,
    images: str | None = None,
    aligned: bool = True,
    quiet: bool = True,
) -> CaptureImages:
    """Return posed images of a folder.

    Args:
        folder: With transforms.json, or transforms_train.json and its like, or a sparse model of COLMAP (in sparse/0 or
            sparse) and images; or the path of a transforms.json.
        width: Widest image [px]; wider ones are reduced by averaging areas.
        every: Where the set has no split of its own, every so many-th image in the order of names is held out; 0: none.
        up: The axis of the set that points up, "none" to leave its frame as it is, None: z where the set says so (metric ones
            do), else the frame of the place that an alignment.json beside COLMAP's model tells (`airworthy capture video`
            writes one), else the mean of the cameras' upward directions. What was done is in `source` and `notes`.
        limits: What it may ask for.
        images: Folder of COLMAP's images; None: images, else images_2, images_4, images_8.
        aligned: Whether an alignment.json beside COLMAP's model is heeded.
        quiet: Show no progress.

    Raises:
        AssetError: There is no capture, it is damaged or hostile, too large, or none of its images can be used.
        AirworthyError: An argument cannot be used, or changes nothing for this set.
    """
    asked = CaptureReading(every, images)
    if (width is not None and width < 1) or every < 0:
        raise AirworthyError(f"Images {width} wide, every {every}-th held out, are no request; expected 1 or more, 0 or more.")
    gate, listing = list_capture(Path(folder), limits, images, aligned)
    refuse_idle(asked, IDLE_RULES, listing)
    kept = _Kept()
    work = list(_planned(gate, listing, width))
    for plan in progress(work, "Reading images", quiet=quiet):
        try:
            kept.add(gate, plan)
        except AssetError:  # hostile: the gate has refused the whole
            raise
        except DamagedImageError as reason:
            listing.skip(plan.frame.name, f"its file {reason}")
        except AirworthyError as reason:
            listing.skip(plan.frame.name, str(reason))
    if not kept.frames:
        gate.refuse("none of its images can be used: " + ("; ".join(listing.skipped) or "it lists none"))
    return oriented(_capture(listing, kept, every), listing, up)


@telling_refusals()
def list_capture(path: Path, limits: CaptureLimits, images: str | None, aligned: bool = True) -> tuple[CaptureFolder, Listing]:
    """Return what the set says."""
    if path.suffix == ".json":
        gate = CaptureFolder(path.parent, limits)
        return gate, list_transforms(gate, path.name)
    gate = CaptureFolder(path, limits)
    if not path.is_dir():
        gate.refuse("it is no folder, and no transforms.json")
    for name in (TRANSFORMS, SPLITS[0]):
        if (path / name).is_file():
            return gate, list_transforms(gate, name)
    model = colmap_model(gate)
    if model is None:
        gate.refuse(f"it holds neither {TRANSFORMS} nor {SPLITS[0]} nor a sparse model of COLMAP")
    listing = list_colmap(gate, *model, images)
    if aligned:
        list_alignment(gate, listing)
    return gate, listing


@dataclass(frozen=True, eq=False)
class _Plan:
    """An image that is there, and its camera at its size."""

    frame: CapturedFrame
    path: Path
    camera: SourceCamera
    width: int | None


def _planned(gate: CaptureFolder, listing: Listing, width: int | None) -> Iterator[_Plan]:
    """Images in the order of names; sizes are held against the limits before any is decoded."""
    total = 0
    for frame in sorted(listing.frames, key=lambda frame: frame.name):
        path = gate.locate_image(frame.name)
        if path is None:
            listing.skip(frame.name, "there is no such file")
            continue
        try:
            camera = _camera(frame, gate.size(path))
        except DamagedImageError as reason:
            listing.skip(frame.name, f"its file {reason}")
            continue
        except AirworthyError as reason:
            listing.skip(frame.name, str(reason))
            continue
        total += math.prod(reduced_size(camera.width, camera.height, width))
        if total > gate.limits.total_pixels:
            gate.refuse(f"its images have over {gate.limits.total_pixels:,} pixels at this size; ask for a smaller width")
        yield _Plan(frame, path, camera, width)


def _camera(frame: CapturedFrame, size: tuple[int, int]) -> SourceCamera:
    """Return the camera of an image of this size, which may be a reduced copy of what the set tells of."""
    if frame.camera is None:
        focal = 0.5 * size[0] / math.tan(0.5 * frame.angle)
        return SourceCamera(*size, focal, focal, 0.5 * size[0], 0.5 * size[1])
    stated = frame.camera.width, frame.camera.height
    if stated == size:
        return frame.camera
    # A reduced copy has the shape up to half a pixel of its own on either side.
    across, down = size[0] / stated[0], size[1] / stated[1]
    if abs(across - down) > 1.01 * max(across / size[0], down / size[1]):
        raise AirworthyError(f"it has {size[0]} x {size[1]} pixels, its camera {stated[0]} x {stated[1]}")
    return frame.camera.sized(*size)


class _Kept:
    """What was read."""

    def __init__(self) -> None:
        self.frames: list[CapturedFrame] = []
        self.rgb: list[ArrayU8] = []
        self.masks: list[ArrayBool | None] = []
        self.intrinsics: list[Array] = []
        self.cameras: list[SourceCamera] = []
        self._lens: tuple[Any, Undistorter] | None = None

    def add(self, gate: CaptureFolder, plan: _Plan) -> None:
        """Read an image; raises DamagedImageError or AirworthyError with the reason why it cannot be used."""
        lens = self._undistorter(plan.camera, plan.width)
        pixels = gate.color(plan.path)
        if pixels.shape[2] == 4:
            pixels = over_black(pixels)
        mask = lens.mask
        if plan.frame.mask:
            shown = self._mask(gate, plan.frame.mask, pixels.shape[:2])
            mask = lens.masked(shown)
        self.rgb.append(lens(pixels))
        self.masks.append(None if mask is None or mask.all() else mask)
        self.intrinsics.append(lens.intrinsics)
        self.cameras.append(plan.camera)
        self.frames.append(plan.frame)

    def _undistorter(self, camera: SourceCamera, width: int | None) -> Undistorter:
        if self._lens is None or self._lens[0] != (camera, width):
            self._lens = (camera, width), Undistorter(camera, width)
        return self._lens[1]

    @staticmethod
    def _mask(gate: CaptureFolder, name: str, size: tuple[int, ...]) -> ArrayBool:
        path = gate.locate_image(name)
        if path is None:
            raise AirworthyError("there is no file of its mask")
        found = gate.grey(path) >= 128
        if found.shape == size:
            return found
        # Reduced copies of images come with the masks of the whole ones.
        if abs(found.shape[1] * size[0] - found.shape[0] * size[1]) > max(*found.shape, *size):
            raise AirworthyError("its mask has another shape")
        rows, columns = (((np.arange(n) + 0.5) * m / n).astype(np.intp) for n, m in zip(size, found.shape, strict=True))
        return np.asarray(found[rows[:, None], columns])


def over_black(pixels: ArrayU8) -> ArrayU8:
    """Return (h, w, 3) of an image with transparency before black, as encoded values are mixed."""
    share = pixels[..., 3:].astype(np.uint16)
    return ((pixels[..., :3] * share + 127) // 255).astype(np.uint8)


def _capture(listing: Listing, kept: _Kept, every: int) -> CaptureImages:
    if listing.split or not every:
        held = np.array([frame.held_out for frame in kept.frames])
    else:
        held = np.arange(len(kept.frames)) % every == 0
    if held.all():
        held[:] = False  # a set of one
    return CaptureImages(
        rgb=tuple(kept.rgb),
        intrinsics=np.array(kept.intrinsics),
        position=np.array([frame.position for frame in kept.frames]),
        attitude=np.array([frame.attitude for frame in kept.frames]),
        masks=tuple(kept.masks),
        names=tuple(frame.name for frame in kept.frames),
        points=listing.points,
        colors=listing.colors,
        metric=listing.metric,
        skipped=listing.skipped,
        held_out=held,
        notes=tuple(listing.notes),
        source=AS_READ if listing.source is None else listing.source,
        rendered=listing.rendered,
        cameras=tuple(kept.cameras),
    )
