"""What a splat renderer is asked for, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.sensors.splats.cameras import SIDE_MARGIN, Window, camera_rows, part_of, slope_limits
from airworthy.sensors.splats.lens import Lens
from airworthy.sensors.splats.movers import SplatMovers
from airworthy.sensors.splats.native_text import FLAGS

__all__ = ["CHANNELS", "DEPTH_MODES", "DILATION", "SIDE_MARGIN", "Shot", "shot", "slope_limits"]

CHANNELS = ("rgb", "depth", "alpha")
DEPTH_MODES = ("expected", "median")
DILATION = 0.3
"""Variance that the width of a pixel adds to every Gaussian in the image [px^2]."""
SIZE_LIMIT = 8192
NEAR_LIMITS = (1e-4, 1e3)
PINHOLE = Lens()


@dataclass(frozen=True)
class Shot:
    """One call, checked."""

    width: int
    height: int
    flags: int
    channels: tuple[str, ...]
    near: float
    dilation: float
    cameras: NDArray[np.void]
    """Rows of `CAMERA`: one per image, then those of movers."""
    count: int
    """Images."""
    stride: int
    """Slots of each image: chunks of all that may be before it."""
    limit: NDArray[np.float32] | None = None
    """(c, H, W) of what the kernels sort by: depth, of a fisheye distance; beyond it nothing is blended [m]."""
    scale: NDArray[np.float64] | None = None
    """(c or 1, H, W) the depths to deliver, per what the kernels sort by; None: 1."""

    def part(self, some: slice) -> Shot:
        """Some of the images, neighbours."""
        if some == slice(0, self.count):
            return self
        limit = None if self.limit is None else self.limit[some]
        scale = self.scale if self.scale is None or len(self.scale) == 1 else self.scale[some]
        rows = part_of(self.cameras[: self.count], self.cameras, some)
        return replace(self, cameras=rows, count=some.stop - some.start, limit=limit, scale=scale)


def shot(
    spans: NDArray[np.int32],
    width: int,
    height: int,
    intrinsics: ArrayLike,
    position: ArrayLike,
    attitude: ArrayLike,
    scene: ArrayLike | None,
    background: ArrayLike,
    antialiased: bool,
    near: float,
    dilation: float,
    channels: Sequence[str],
    depth_mode: str,
    lens: Lens | None = None,
    movers: SplatMovers | None = None,
    limit: ArrayLike | None = None,
    distances: bool = False,
    window: Window | None = None,
    reduced: tuple[float, float] | None = None,
) -> Shot:
    """Check a call of `SplatRenderer.render`.

    Raises:
        AirworthyError: If something does not fit.
    """
    if not (1 <= width <= SIZE_LIMIT and 1 <= height <= SIZE_LIMIT):
        raise AirworthyError(f"An image of {width} x {height} pixels was asked for; expected 1 to {SIZE_LIMIT} each way.")
    if not NEAR_LIMITS[0] <= near <= NEAR_LIMITS[1]:
        raise AirworthyError(f"`near` is {near}; expected {NEAR_LIMITS[0]:g} to {NEAR_LIMITS[1]:g} m.")
    if not 1e-3 <= dilation <= 1e3:
        raise AirworthyError(f"`dilation` is {dilation}; expected 0.001 to 1000 px^2.")
    for name in channels:
        if name not in CHANNELS:
            raise unknown_name("channel", name, CHANNELS)
    if depth_mode not in DEPTH_MODES:
        raise unknown_name("depth mode", depth_mode, DEPTH_MODES)
    lens = lens or PINHOLE
    flags = sum(FLAGS[name] for name in dict.fromkeys(channels)) | FLAGS["antialiased"] * bool(antialiased)
    flags |= FLAGS[depth_mode] * ("depth" in channels) | FLAGS["limit"] * (limit is not None)
    flags |= 0 if lens.straight else FLAGS[lens.model]
    cameras, count = camera_rows(spans, width, height, intrinsics, position, attitude, scene, background, lens, movers, window)
    if reduced is not None:
        flags |= FLAGS["reduced"]
        cameras["kept"], cameras["spread"] = reduced_spread(reduced, dilation)
        dilation = float(cameras["spread"].max(initial=dilation))
    asked = Shot(
        width, height, flags, tuple(dict.fromkeys(channels)), float(near), float(dilation), cameras, count,
        _stride(int(spans[:, 1].max()), cameras[:count]),
    )  # fmt: skip
    other = distances != (lens.model == "fisheye") and (limit is not None or "depth" in channels)
    scale = _scale(asked, lens, distances) if other else None
    return replace(asked, limit=None if limit is None else _limit(asked, limit, scale), scale=scale)


def reduced_spread(reduced: tuple[float, float], dilation: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Variances across and down [px^2] by which an image that was reduced has spread Gaussians: by the camera's pixels, in all.

    The filter is a triangle that ends where the next pixels' centres are (of the camera's pixels, where these are wider): its
    variance is a sixth of the square of that.
    """
    share = np.asarray(reduced, np.float64)
    if share.shape != (2,) or not ((share > 1e-3) & (share < 1e3)).all():
        raise AirworthyError(f"`reduced` is {reduced}; expected two factors, of the width and the height, 0.001 to 1000.")
    kept = dilation * share**2
    return kept, kept + np.maximum(1.0, share) ** 2 / 6.0


def _stride(most: int, images: NDArray[np.void]) -> int:
    """Slots per image; beyond a whole scene in few sizes, so that memory and recorded launches stay when movers come and go."""
    needed = int(images["slot_count"].max(initial=0))
    if needed <= most:
        return most
    step = max(8, 1 << max(needed.bit_length() - 3, 0))
    return -(-needed // step) * step


def _scale(asked: Shot, lens: Lens, distances: bool) -> NDArray[np.float64]:
    """Distances along rays per depth along the axis, or the other way round."""
    kinds, which = np.unique(asked.cameras["intrinsics"][: asked.count], axis=0, return_inverse=True)
    kinds = kinds.astype(np.float64)
    found = np.stack([lens.pixel_rays(asked.width, asked.height, kind)[0][..., 2] for kind in kinds] or [np.zeros((0, 0))])
    found = found if len(kinds) <= 1 else found[which.reshape(-1)]
    return 1.0 / found if distances else found


def _limit(asked: Shot, limit: ArrayLike, scale: NDArray[np.float64] | None) -> NDArray[np.float32]:
    shape = (asked.count, asked.height, asked.width)
    given = np.asarray(limit)
    if given.shape != shape or given.dtype.kind != "f" or np.isnan(given).any():
        raise AirworthyError(
            f"`limit` is of {given.dtype}, shape {given.shape}; expected depths {shape} in metres, +inf where nothing is."
        )
    if scale is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            given = np.where(np.isinf(given), given, given / scale)
    return np.ascontiguousarray(given, np.float32)
