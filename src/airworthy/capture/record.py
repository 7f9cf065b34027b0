"""Posed images: what a capture is once it is read, whatever it was read from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from airworthy.capture.cameras import SourceCamera
from airworthy.core import frames
from airworthy.core.arrays import ArrayBool, ArrayFloat, ArrayIndex, ArrayInt, ArrayU8
from airworthy.core.errors import AirworthyError
from airworthy.scenes.splats import SourceFrame

__all__ = ["CaptureImages"]

AS_READ = SourceFrame("z", "")


@dataclass(frozen=True, eq=False)
class CaptureImages:
    """Images without distortion, and where they were taken. Colours are sRGB-encoded.

    Raises:
        AirworthyError: Shapes do not fit together, or a number is not finite.
    """

    rgb: tuple[ArrayU8, ...]
    """(h_i, w_i, 3) each, n of them."""
    intrinsics: ArrayFloat
    """(n, 4) fx, fy, cx, cy [px]; the upper left corner of the image is (0, 0)."""
    position: ArrayFloat
    """(n, 3) optical centres [m where `metric`, else in the unit of the set]."""
    attitude: ArrayFloat
    """(n, 4) camera (x right, y down, z forward) to world; x, y, z, w."""
    masks: tuple[ArrayBool | None, ...] = ()
    """(h_i, w_i) where a pixel shows the scene; None: everywhere. Empty: everywhere in all."""
    names: tuple[str, ...] = ()
    """Of the images as the set calls them; empty: numbered."""
    points: ArrayFloat | None = None
    """(m, 3) of a sparse cloud, where the set has one."""
    colors: ArrayU8 | None = None
    """(m, 3) of the points."""
    metric: bool = False
    """Whether the unit is the metre and z is up."""
    skipped: tuple[str, ...] = ()
    """A sentence for each kind of listed images that are missing here."""
    held_out: ArrayBool | None = None
    """(n,) images to judge on, never to train on; None: none."""
    source: SourceFrame = AS_READ
    """How the frame of the set became this one."""
    notes: tuple[str, ...] = ()
    """What else was found, taken or done, in words."""
    rendered: bool = False
    """Whether the images are rendered ones, of one exposure, and no photographs."""
    cameras: tuple[SourceCamera, ...] = ()
    """Of the files, as these were taken, before images were made straight and small; empty: the images are as their files."""

    def __post_init__(self) -> None:
        count = len(self.rgb)
        held = np.zeros(count, bool) if self.held_out is None else np.asarray(self.held_out, bool)
        object.__setattr__(self, "held_out", held)
        object.__setattr__(self, "masks", self.masks or (None,) * count)
        object.__setattr__(self, "names", self.names or tuple(f"{k:05d}" for k in range(count)))
        shapes = {
            "intrinsics": (self.intrinsics.shape, (count, 4)),
            "position": (self.position.shape, (count, 3)),
            "attitude": (self.attitude.shape, (count, 4)),
            "masks": ((len(self.masks),), (count,)),
            "names": ((len(self.names),), (count,)),
            "held_out": (held.shape, (count,)),
            "cameras": ((len(self.cameras),), (count if self.cameras else 0,)),
        }
        for name, (found, expected) in shapes.items():
            if found != expected:
                raise AirworthyError(f"The {name} of {count} posed images have the shape {found}; expected {expected}.")
        if not all(np.isfinite(values).all() for values in (self.intrinsics, self.position, self.attitude)):
            raise AirworthyError("The cameras of posed images hold numbers that are not finite; leave those images out.")
        for image, mask in zip(self.rgb, self.masks, strict=True):
            if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8 or image.size == 0:
                raise AirworthyError(f"A posed image is {image.dtype} of the shape {image.shape}; expected uint8, (h, w, 3).")
            if mask is not None and mask.shape != image.shape[:2]:
                raise AirworthyError(f"The mask of an image of {image.shape[:2]} pixels has {mask.shape}; expected the same.")

    def __len__(self) -> int:
        return len(self.rgb)

    def __getitem__(self, which: Any) -> CaptureImages:
        """Return some of them, by a mask, numbers or a slice; the points stay."""
        some = np.atleast_1d(np.arange(len(self))[which])
        held = self.held_out[some] if self.held_out is not None else None
        rows = {name: getattr(self, name)[some] for name in ("intrinsics", "position", "attitude")}
        lists: dict[str, Any] = {name: tuple(getattr(self, name)[k] for k in some) for name in ("rgb", "masks", "names")}
        cameras = tuple(self.cameras[k] for k in some) if self.cameras else ()
        return replace(self, **rows, **lists, held_out=held, cameras=cameras)

    @property
    def sizes(self) -> ArrayInt:
        """(n, 2) width and height [px]."""
        return np.array([(image.shape[1], image.shape[0]) for image in self.rgb], np.int64).reshape(-1, 2)

    @property
    def training(self) -> ArrayIndex:
        """Numbers of the images to train on."""
        return np.flatnonzero(~np.asarray(self.held_out))

    @property
    def held_out_ids(self) -> ArrayIndex:
        """Numbers of the images to judge on."""
        return np.flatnonzero(np.asarray(self.held_out))

    def moved(self, rotation: Any, translation: Any, scale: float, note: str = "", metric: bool | None = None) -> CaptureImages:
        """Return cameras and points under a similarity p -> scale R p + translation.

        Args:
            rotation: Quaternion x, y, z, w.
            translation: (3,).
            scale: > 0.
            note: What was done, for `notes`.
            metric: Whether the result is metric and z up; None: as before.
        """
        turn, offset = frames.normalize(rotation), np.asarray(translation, np.float64)
        if not (np.isfinite(scale) and scale > 0.0 and np.isfinite(offset).all()):
            raise AirworthyError(f"Posed images cannot be moved by {translation} at the scale {scale}; expected numbers, > 0.")

        def transformed(points: ArrayFloat) -> ArrayFloat:
            return scale * frames.rotate(turn, points) + offset

        before = self.source
        source = SourceFrame(
            before.up,
            before.axes,
            _four(frames.multiply(turn, before.rotation)),
            _three(transformed(np.array(before.translation))),
            scale * before.scale,
        )
        return replace(
            self,
            position=transformed(self.position),
            attitude=frames.multiply(turn, self.attitude),
            points=None if self.points is None else transformed(self.points),
            metric=self.metric if metric is None else metric,
            source=source,
            notes=(*self.notes, note) if note else self.notes,
        )


def _four(values: ArrayFloat) -> tuple[float, float, float, float]:
    x, y, z, w = (float(value) + 0.0 for value in values)
    return x, y, z, w


def _three(values: ArrayFloat) -> tuple[float, float, float]:
    x, y, z = (float(value) + 0.0 for value in values)
    return x, y, z
