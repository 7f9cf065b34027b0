"""Reading and writing captures: folders of images with poses.

Read are transforms.json (instant-ngp, Nerfstudio, the Blender sets) and COLMAP's sparse models. Images come out straight
(without distortion), no wider than asked for; what is missing or damaged is left out and said.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.capture._gate import CAPTURE_LIMITS, CaptureLimits, DamagedImageError, Gate
from airworthy.capture.cameras import SourceCamera
from airworthy.capture.colmap import colmap_model, list_colmap
from airworthy.capture.listing import Frame, Listing
from airworthy.capture.orientation import oriented
from airworthy.capture.record import CaptureImages
from airworthy.capture.transforms import SPLITS, TRANSFORMS, list_transforms
from airworthy.capture.undistort import Undistorter, reduced_size
from airworthy.capture.writing import write_capture
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.progress import progress

__all__ = ["CAPTURE_LIMITS", "CaptureImages", "CaptureLimits", "read_capture", "write_capture"]

_SHAPE_ERROR = 1.01


def read_capture(
    folder: str | Path,
    width: int | None = None,
    every: int = 8,
    up: str | None = None,
    limits: CaptureLimits = CAPTURE_LIMITS,
    *,
    images: str | None = None,
    quiet: bool = True,
) -> CaptureImages:
    """Posed images of a folder.

    Args:
        folder: With transforms.json, or transforms_train.json and its like, or a sparse model of COLMAP (in sparse/0 or
            sparse) and images; or the path of a transforms.json.
        width: Widest image [px]; wider ones are reduced by averaging areas.
        every: Where the set has no split of its own, every so many-th image in the order of names is held out; 0: none.
        up: The axis of the set that points up, "none" to leave its frame as it is, None: z where the set says so (metric ones
            do), else the mean of the cameras' upward directions. What was done is in `source` and `notes`.
        limits: What it may ask for.
        images: Folder of COLMAP's images; None: images, else images_2, images_4, images_8.
        quiet: Show no progress.

    Raises:
        AssetError: There is no capture, it is damaged or hostile, too large, or none of its images can be used.
        AirworthyError: An argument cannot be used.
    """
    if (width is not None and width < 1) or every < 0:
        raise AirworthyError(f"Images {width} wide, every {every}-th held out, are no request; expected 1 or more, 0 or more.")
    gate, listing = _listed(Path(folder), limits, images)
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


def _listed(path: Path, limits: CaptureLimits, images: str | None) -> tuple[Gate, Listing]:
    """What the set says."""
    if path.suffix == ".json":
        gate = Gate(path.parent, limits)
        return gate, list_transforms(gate, path.name)
    gate = Gate(path, limits)
    if not path.is_dir():
        gate.refuse("it is no folder, and no transforms.json")
    for name in (TRANSFORMS, SPLITS[0]):
        if (path / name).is_file():
            return gate, list_transforms(gate, name)
    model = colmap_model(gate)
    if model is None:
        gate.refuse(f"it holds neither {TRANSFORMS} nor {SPLITS[0]} nor a sparse model of COLMAP")
    return gate, list_colmap(gate, *model, images)


@dataclass(frozen=True, eq=False)
class _Plan:
    """An image that is there, and its camera at its size."""

    frame: Frame
    path: Path
    camera: SourceCamera
    width: int | None


def _planned(gate: Gate, listing: Listing, width: int | None) -> Iterator[_Plan]:
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


def _camera(frame: Frame, size: tuple[int, int]) -> SourceCamera:
    """The camera of an image of this size, which may be a reduced copy of what the set tells of."""
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
        self.frames: list[Frame] = []
        self.rgb: list[NDArray[np.uint8]] = []
        self.masks: list[NDArray[np.bool_] | None] = []
        self.intrinsics: list[NDArray[np.float64]] = []
        self._lens: tuple[Any, Undistorter] | None = None

    def add(self, gate: Gate, plan: _Plan) -> None:
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
        self.frames.append(plan.frame)

    def _undistorter(self, camera: SourceCamera, width: int | None) -> Undistorter:
        if self._lens is None or self._lens[0] != (camera, width):
            self._lens = (camera, width), Undistorter(camera, width)
        return self._lens[1]

    @staticmethod
    def _mask(gate: Gate, name: str, size: tuple[int, ...]) -> NDArray[np.bool_]:
        path = gate.locate_image(name)
        if path is None:
            raise AirworthyError("there is no file of its mask")
        found = gate.grey(path) >= 128
        if found.shape != size:
            raise AirworthyError("its mask has another size")
        return found


def over_black(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(h, w, 3) of an image with transparency before black, as encoded values are mixed."""
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
    )
