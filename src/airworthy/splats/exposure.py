"""Rolling shutter and motion blur: images that are averaged while the camera moves, row after row."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayF32, ArrayIndex, ArrayLike, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import check_fields
from airworthy.splats.cameras import DILATION, Window, values
from airworthy.splats.cloud import DynamicSplats
from airworthy.splats.lens import Lens
from airworthy.splats.renderer import SplatRenderer

DynamicSplatsOverTime = DynamicSplats | Callable[[Array, ArrayIndex], DynamicSplats]
BANDS_MAX = 64
"""Most parts of an image whose rows share their poses."""
SAMPLES_MAX = 256
# Ours: 268 MB of colours and coverage, 16 bytes per pixel, are averaged at a time.
_PIXELS_AT_ONCE = 1 << 24
_NEAREST = 1.0
"""What the camera's own motion is judged by where bands are chosen: as if everything were this far away [m]."""


@dataclass(frozen=True)
class Exposure:
    """When the rows of an image see.

    Row v of H opens at `start + readout * v / H` and sees for `duration`; light is summed at the middles of `samples` equal
    parts of that.

    Raises:
        AirworthyError: If a number cannot be used.
    """

    duration: float = 0.0
    """How long each row is exposed [s]."""
    readout: float = 0.0
    """From the opening of the first row to that of the row below the last [s]; 0: all at once."""
    start: float = 0.0
    """When the first row opens [s]."""
    samples: int = 8
    """Sub-exposures of a row; one is enough where the duration is 0."""
    bands: int | None = None
    """Parts of the image whose rows share poses; None: so many that the camera's motion in one stays within about a pixel, if
    everything is 1 m away or farther, up to 64."""

    def __post_init__(self) -> None:
        check_fields(self, "Exposure.")
        for name in ("duration", "readout"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise AirworthyError(f"The {name} of an exposure is {getattr(self, name)} s; expected 0 or more.")
        if not math.isfinite(self.start):
            raise AirworthyError(f"The start of an exposure is {self.start}; expected seconds.")
        if not 1 <= self.samples <= SAMPLES_MAX or (self.bands is not None and self.bands < 1):
            raise AirworthyError(
                f"An exposure has {self.samples} samples and {self.bands} bands; expected 1 to {SAMPLES_MAX} samples, 1 or more"
                " bands."
            )


def render_exposed(
    renderer: SplatRenderer,
    width: int,
    height: int,
    intrinsics: ArrayLike,
    times: ArrayLike,
    position: ArrayLike,
    attitude: ArrayLike,
    exposure: Exposure,
    scene: ArrayLike | None = None,
    background: ArrayLike = (0.0, 0.0, 0.0),
    antialiased: bool = False,
    near: float = 0.05,
    dilation: float = DILATION,
    lens: Lens | None = None,
    dynamic_instances: DynamicSplatsOverTime | None = None,
) -> dict[str, ArrayF32]:
    """Return images of c cameras that move while they see.

    Colours are decoded (sRGB), averaged as linear radiance and encoded again, as light adds up in a sensor; coverage is
    averaged as it is. Positions between the given times lie on straight lines, attitudes on the shortest turns.

    Args:
        renderer: Of the clouds.
        width: Of the images [px].
        height: Of the images [px].
        intrinsics: (c, 4) or (4,) fx, fy, cx, cy [px].
        times: (k,) rising instants at which poses are given [s], from the first row's opening to the last row's closing.
        position: (c, k, 3) [m].
        attitude: (c, k, 4).
        exposure: When rows see.
        scene: As of `SplatRenderer.render`, and so the others.
        background: (3,) or (c, 3).
        antialiased: Whether narrow Gaussians lose opacity.
        near: [m]
        dilation: [px^2]
        lens: How the cameras bend rays.
        dynamic_instances: What stands before the c cameras; or a function of times (n,) [s] and cameras (n,) that says where
            things are before each of n views then.

    Returns:
        `rgb` (c, H, W, 3) and `alpha` (c, H, W).

    Raises:
        AirworthyError: As `SplatRenderer.render`; or poses are not given for the whole exposure.
    """
    clock, where, turned = _poses(times, position, attitude, exposure, height)
    count = len(where)
    pixels, colour = values("intrinsics", intrinsics, 4, count), values("background", background, 3, count)
    numbers = None if scene is None else np.broadcast_to(np.asarray(scene), (count,))
    # As `SplatRenderer.render` would choose; said here because it is given some cameras at a time.
    if numbers is None and renderer.scene_count > 1:
        numbers = np.arange(count)
    bands = exposure.bands or _bands(clock, where, turned, float(pixels[:, :2].max(initial=0.0)), exposure)
    rows = -(-height // min(bands, height))
    tops = np.arange(0, height, rows)
    instants = _instants(exposure, tops, rows, height)
    samples = instants.shape[1]
    out = {"rgb": np.empty((count, height, width, 3), np.float32), "alpha": np.empty((count, height, width), np.float32)}
    size = max(1, _PIXELS_AT_ONCE // (instants.size * rows * width))
    for first in range(0, count, size):
        some = np.arange(first, min(first + size, count))
        camera = np.repeat(some, instants.size)
        moment = np.tile(instants.reshape(-1), len(some))
        corner = np.column_stack([np.zeros(len(camera)), np.tile(np.repeat(tops, samples), len(some))])
        images = renderer.render(
            width, rows, pixels[camera], *_between(clock, where, turned, moment, camera),
            scene=None if numbers is None else numbers[camera], background=colour[camera], antialiased=antialiased, near=near,
            dilation=dilation, channels=("rgb", "alpha"), lens=lens,
            dynamic_instances=_before(dynamic_instances, moment, camera), window=Window(width, height, corner),
        )  # fmt: skip
        for name, image in images.items():
            parts = image.reshape(len(some), len(tops), samples, rows, *image.shape[2:])
            mean = _mean(parts, name == "rgb").reshape(len(some), -1, *image.shape[2:])
            out[name][some] = mean[:, :height]
    return out


def _before(dynamic_instances: DynamicSplatsOverTime | None, moment: Array, camera: ArrayIndex) -> DynamicSplats | None:
    if dynamic_instances is None or isinstance(dynamic_instances, DynamicSplats):
        return dynamic_instances and dynamic_instances.part(camera)
    return dynamic_instances(moment, camera)


def linear_of(encoded: NDArray[np.floating]) -> ArrayF32:
    """Return the linear radiance of sRGB-encoded values, also of those above 1 (IEC 61966-2-1, continued)."""
    x = np.asarray(encoded, np.float32)
    return np.where(x <= 0.04045, x / 12.92, np.power((np.maximum(x, 0.0) + 0.055) / 1.055, 2.4)).astype(np.float32)


def encoded_of(linear: NDArray[np.floating]) -> ArrayF32:
    """Return the inverse of `linear_of`."""
    x = np.asarray(linear, np.float32)
    return np.where(x <= 0.0031308, 12.92 * x, 1.055 * np.power(np.maximum(x, 0.0), 1.0 / 2.4) - 0.055).astype(np.float32)


def _mean(parts: ArrayF32, light: bool) -> ArrayF32:
    """Mean over sub-exposures, the third axis."""
    if parts.shape[2] == 1:
        return parts[:, :, 0]
    if not light:
        return np.asarray(parts.mean(axis=2, dtype=np.float64), np.float32)
    return encoded_of(linear_of(parts).mean(axis=2, dtype=np.float64))


def _instants(exposure: Exposure, tops: ArrayIndex, rows: int, height: int) -> Array:
    """Return times (band, sample) [s]: those of a band's middle row."""
    samples = exposure.samples if exposure.duration > 0.0 else 1
    middle = 0.5 * (tops + np.minimum(tops + rows, height) - 1)
    opening = exposure.start + exposure.readout * middle / height
    return np.asarray(opening[:, None] + exposure.duration * (np.arange(samples) + 0.5) / samples)


def _bands(clock: Array, where: Array, turned: Array, focal: float, exposure: Exposure) -> int:
    if exposure.readout == 0.0:
        return 1
    # Half the angle between two attitudes has their product as cosine; q and -q are one attitude, hence its magnitude.
    turn = 2.0 * np.arccos(np.clip(np.abs(np.sum(turned[:, 1:] * turned[:, :-1], axis=-1)), 0.0, 1.0)).sum(axis=1)
    path = np.linalg.norm(np.diff(where, axis=1), axis=-1).sum(axis=1)
    share = exposure.readout / max(float(clock[-1] - clock[0]), 1e-12)
    pixels = focal * share * float((turn + path / _NEAREST).max(initial=0.0))
    return int(np.clip(math.ceil(pixels), 1, BANDS_MAX))


def _poses(
    times: ArrayLike, position: ArrayLike, attitude: ArrayLike, exposure: Exposure, height: int
) -> tuple[Array, Array, Array]:
    clock, where, turned = (np.asarray(x, np.float64) for x in (times, position, attitude))
    if clock.ndim != 1 or not len(clock) or where.shape[1:] != (len(clock), 3) or turned.shape != (*where.shape[:2], 4):
        raise AirworthyError(
            f"An exposure got times {clock.shape}, positions {where.shape} and attitudes {turned.shape}; expected (k,),"
            " (c, k, 3) and (c, k, 4)."
        )
    norm = np.linalg.norm(turned, axis=-1, keepdims=True)
    if not (np.isfinite(clock).all() and np.isfinite(where).all() and (norm > 1e-9).all()) or (np.diff(clock) <= 0.0).any():
        raise AirworthyError("The poses of an exposure are not finite, hold a quaternion of zeros, or their times do not rise.")
    first, last = exposure.start, exposure.start + exposure.readout * (height - 1) / max(height, 1) + exposure.duration
    # Times that were added up are off by their rounding.
    slack = 1e-9 * max(1.0, abs(first), abs(last))
    if first < clock[0] - slack or last > clock[-1] + slack:
        raise AirworthyError(
            f"An exposure lasts from {first:.6g} to {last:.6g} s, but poses are given from {clock[0]:.6g} to {clock[-1]:.6g} s."
        )
    return clock, where, turned / norm


def _between(clock: Array, where: Array, turned: Array, moment: Array, camera: ArrayIndex) -> tuple[Array, Array]:
    """Poses of cameras (n,) at times (n,)."""
    if len(clock) == 1:
        return where[camera, 0], turned[camera, 0]
    left = np.clip(np.searchsorted(clock, moment, side="right") - 1, 0, len(clock) - 2)
    share = np.clip((moment - clock[left]) / (clock[left + 1] - clock[left]), 0.0, 1.0)
    begin, end = where[camera, left], where[camera, left + 1]
    return begin + (end - begin) * share[:, None], frames.slerp(turned[camera, left], turned[camera, left + 1], share)
