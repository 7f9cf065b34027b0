"""From the light that reaches a lens to the image that comes out of a camera, in physical order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayF32, ArrayLike
from airworthy.geometry import RayTable
from airworthy.optics.exposure import metered, stops_of_ev
from airworthy.optics.projections import Projection
from airworthy.optics.tone import to_8bit
from airworthy.sensors.noise import Draw, RangeLimits, RangeNoise, measure
from airworthy.sensors.realism.rain import lens_drops
from airworthy.sensors.realism.settings import AutoExposure, Bloom, LensDirt, Quantization, Realism, SensorNoise

__all__ = [
    "Optics",
    "aberrated",
    "bloom_layer",
    "bloomed",
    "bright_part",
    "develop",
    "dirt_mask",
    "exposed",
    "exposure_factors",
    "field_cosine",
    "next_stops",
    "noisy",
    "quantized",
    "resampled",
    "vignetted",
    "wanted_stops",
]

# ---- What a chip makes of light: electrons, their noise, and whole counts ---------------------------------------------------
#
# Draws are those of `airworthy.sensors.noise`: a pixel's noise depends on its flight, sample, sensor and place in the image.

# Ours: 2^32 over the golden section, customary as a tag; any number that no sensor's name maps to often would do.
_OWN_DRAWS = 0x9E3779B9
"""Tells the draws of colours from those that the same sensor's depth takes."""


def noisy(image: ArrayF32, settings: SensorNoise, draw: Draw | None, gain: ArrayLike = 1.0) -> ArrayF32:
    """Return images with shot and read noise.

    A value x / gain is x / gain x `white` electrons n, at most the full well; it becomes n + N(0, n + read^2), times the gain.
    The normal law is that of Poisson's for more than some twenty electrons. Values below zero stay: they keep dark means true.
    Nothing exceeds the full well, noise included: a pixel that is full reads full.

    Args:
        image: Linear after exposure, (c, H, W, 3).
        settings: Of the chip.
        draw: Random numbers; None: saturation only.
        gain: Part of the exposure that is amplification instead of light, one or (c,).
    """
    factor = np.broadcast_to(np.asarray(gain, np.float32), (len(image),))[:, None, None, None]
    white = np.float32(settings.white)
    # The well fills before the noise is read: what is clipped here stays white, however large the noise.
    electrons = np.clip(image / factor * white, 0.0, np.float32(settings.full_well))
    if draw is not None:
        sigma = np.sqrt(electrons + np.float32(settings.read_noise**2))
        electrons = np.minimum(electrons + sigma * _normals(image.shape, draw), np.float32(settings.full_well))
    return (electrons / white * factor).astype(np.float32)


def _normals(shape: tuple[int, ...], draw: Draw) -> ArrayF32:
    """Return standard normal numbers, by the native kernel of ranges: readings of nothing with a deviation of one."""
    flat = np.zeros((shape[0], int(np.prod(shape[1:]))), np.float32)
    return measure(flat, RangeNoise(c=1.0), RangeLimits(-1e30), replace(draw, sensor=draw.sensor ^ _OWN_DRAWS)).reshape(shape)


def quantized(image: ArrayF32, settings: Quantization) -> ArrayF32:
    """Return values rounded to whole counts, from 0 to the full scale."""
    step = settings.step
    counts = np.rint(np.clip(image, 0.0, np.float32(settings.full_scale)).astype(np.float64) / step)
    return (counts * step).astype(np.float32)


# ---- Auto-exposure: stops that follow the mean luminance of the images ------------------------------------------------------

# Ours: an image of nothing has some 27 stops to go and is held by the limit, instead of a logarithm of zero.
_DARK = 1e-9


def wanted_stops(mean: ArrayLike, settings: AutoExposure) -> Array:
    """Return stops [EV] that bring a metered luminance to the target, and the compensation, within the limit, (c,)."""
    luminances = np.atleast_1d(np.asarray(mean, np.float64))
    stops = [math.log2(settings.target / max(float(m), _DARK)) + settings.compensation for m in luminances]
    return np.clip(np.array(stops), -settings.limit, settings.limit)


def next_stops(stops: Array, mean: ArrayLike, interval: float, settings: AutoExposure) -> Array:
    """Return stops after one frame: s + (wanted - s)(1 - exp(-dt / T)); NaN stands for the beginning of a flight.

    Args:
        stops: Of the frame before [EV], (c,).
        mean: Metered luminance of this frame, (c,).
        interval: Time between frames [s].
        settings: Target, time constant, limit, start.
    """
    wanted = wanted_stops(mean, settings)
    before = np.where(np.isnan(stops), wanted if settings.start is None else settings.start, stops)
    share = 1.0 - math.exp(-interval / settings.time_constant) if settings.time_constant > 0.0 else 1.0
    return np.asarray(before + (wanted - before) * share)


def exposure_factors(stops: Sequence[float] | Array) -> ArrayF32:
    """Return 2^EV, (c,)."""
    return np.array([2.0 ** float(ev) for ev in stops], np.float32)


def exposed(image: ArrayF32, factor: ArrayF32) -> ArrayF32:
    """Return images (c, H, W, 3) times their factors (c,)."""
    return image * factor[:, None, None, None]


# ---- What a lens does to an image: light that falls off towards the corners, and colours of unequal size --------------------


def field_cosine(table: RayTable) -> ArrayF32:
    """Return the cosine of every pixel's angle off the axis, (H, W); 0 beyond a right angle."""
    return np.maximum(table.directions @ table.axis, 0.0).astype(np.float32)


def vignetted(image: ArrayF32, cosine: ArrayAny, strength: float) -> ArrayF32:
    """Return the image times 1 - strength (1 - cos^4).

    Args:
        image: Linear, (..., H, W, 3).
        cosine: Of the angle off the axis, (H, W).
        strength: 0 to 1.
    """
    squared = np.asarray(cosine, np.float64) ** 2
    factor = (1.0 - strength * (1.0 - squared * squared)).astype(np.float32)
    return image * factor[..., None]


def aberrated(image: ArrayF32, shift: float, center: tuple[float, float]) -> ArrayF32:
    """Return the image with red scaled by 1 + shift and blue by 1 - shift about a point, linearly interpolated; the border is
    held.

    Args:
        image: Linear, (..., H, W, 3).
        shift: Relative change of size: a corner moves by shift x its distance from the centre.
        center: (u, v) [px]; pixel j's middle is at j + 0.5.
    """
    out = image.copy()
    for channel, scale in ((0, 1.0 + shift), (2, 1.0 - shift)):
        layer = image[..., channel]
        for axis, middle in ((-1, center[0]), (-2, center[1])):
            positions = middle + (np.arange(layer.shape[axis]) + 0.5 - middle) / scale - 0.5
            layer = resampled(layer, positions, axis)
        out[..., channel] = layer
    return out


def resampled(array: ArrayF32, positions: ArrayAny, axis: int) -> ArrayF32:
    """Return the linear interpolation along one axis at fractional indices (n,); beyond the ends the end holds.

    Args:
        array: Of any shape.
        positions: Fractional indices along the axis, (n,).
        axis: Which axis of the array.
    """
    size = array.shape[axis]
    at = np.clip(positions, 0.0, size - 1.0)
    low = np.minimum(at.astype(np.int64), max(size - 2, 0))
    share = (at - low).astype(np.float32)
    high = np.minimum(low + 1, size - 1)
    form = [1] * array.ndim
    form[axis] = len(share)
    weight = share.reshape(form)
    below, above = np.take(array, low, axis), np.take(array, high, axis)
    return below + (above - below) * weight


# ---- Bloom: light that scatters in a lens around what is very bright, and the dirt that it shows ----------------------------

_FILTER = (0.125, 0.375, 0.375, 0.125)
"""Binomial, over two pixels to either side of a new pixel's middle: it keeps the mean and moves nothing."""


def bloomed(image: ArrayF32, bloom: Bloom, dirt: LensDirt | None = None) -> ArrayF32:
    """Return image plus weight x bloom layer, the layer times the dirt where there is any.

    Images in which nothing exceeds the threshold stay as they are, bit for bit. Light is added, not moved.

    Args:
        image: Linear, (H, W, 3) or (c, H, W, 3).
        bloom: Threshold, levels, weight.
        dirt: Specks on the lens.
    """
    batch = image[None] if image.ndim == 3 else image
    out = batch.copy()
    for number, one in enumerate(batch):  # most images have nothing to bloom
        bright = bright_part(one, bloom.threshold)
        if not bright.any():
            continue
        layer = bloom_layer(bright, bloom.levels)
        if dirt is not None:
            mask = dirt_mask(one.shape[0], one.shape[1], dirt.seed)
            layer = layer * (1.0 + np.float32(dirt.intensity) * (mask - 1.0))[..., None]
        out[number] += np.float32(bloom.weight) * layer
    return out[0] if image.ndim == 3 else out


def bright_part(image: ArrayF32, threshold: float) -> ArrayF32:
    """Return what exceeds a threshold in the brightest channel, with the colour it has: (..., 3)."""
    peak = np.maximum(np.maximum(image[..., :1], image[..., 1:2]), image[..., 2:])  # faster than a maximum over three
    # The brightest channel decides and all three shrink alike, so that a halo keeps the colour of its lamp.
    share = np.maximum(peak - np.float32(threshold), 0.0) / np.maximum(peak, np.float32(1e-12))
    return np.where(np.isfinite(share), np.nan_to_num(image, nan=0.0, posinf=1e6) * np.nan_to_num(share), 0.0).astype(
        np.float32
    )


def bloom_layer(bright: ArrayF32, levels: int) -> ArrayF32:
    """Return the mean of the levels of a pyramid (H, W, 3), each half the one before, brought back to full size: its sum is the
    input's.

    A side that is one pixel is not halved further. The border is held, so a uniform image stays what it is.
    """
    sizes, stack = [], [bright]
    for _ in range(levels):
        sizes.append(stack[-1].shape[:2])
        stack.append(_halved(_halved(stack[-1], 0), 1))
    total = stack.pop()
    for size, below in zip(reversed(sizes), reversed(stack), strict=True):
        total = _doubled(_doubled(total, 0, size[0]), 1, size[1])
        if below is not bright:
            # Every level weighs the same, so the halo has no border at the size of any one of them.
            total = total + below
    return total / np.float32(levels)


def _halved(image: ArrayF32, axis: int) -> ArrayF32:
    size = image.shape[axis]
    if size == 1:
        return image
    pad = [(0, 0)] * image.ndim
    pad[axis] = (1, 1 + size % 2)
    wide = np.pad(image, pad, mode="edge")
    count = (size + 1) // 2
    parts = [np.take(wide, np.arange(k, k + 2 * count, 2), axis) * np.float32(w) for k, w in enumerate(_FILTER)]
    return parts[0] + parts[1] + parts[2] + parts[3]


def _doubled(image: ArrayF32, axis: int, size: int) -> ArrayF32:
    """To twice the size, linearly (weights 3/4 and 1/4), cut to `size`."""
    if size == 1:
        return image
    count = image.shape[axis]
    index = np.arange(size)
    near = index // 2
    far = np.clip(near + np.where(index % 2 == 0, -1, 1), 0, count - 1)
    return np.take(image, near, axis) * np.float32(0.75) + np.take(image, far, axis) * np.float32(0.25)


@lru_cache(maxsize=8)
def dirt_mask(height: int, width: int, seed: int = 7) -> ArrayF32:
    """Return how much light dirt scatters, (H, W), of mean 1: smears, specks with soft rims, a few hairs; the same for every
    size.

    Args:
        height: Of the image [px].
        width: Of the image [px].
        seed: Of the lens.
    """
    rng = np.random.default_rng(seed)
    y, x = (np.arange(height)[:, None] + 0.5) / height, (np.arange(width)[None, :] + 0.5) / height
    aspect = width / height
    # Source: spec/flightgoggles 2.2: a fixed procedural mask. Its shape is ours, as every number here: no values
    # are published, and only the mean of 1 is meant to be kept. A thin film lies all over the lens.
    mask = np.full((height, width), 0.25)
    for _ in range(6):  # smears: broad waves
        angle, waves, phase = rng.uniform(0, np.pi), rng.uniform(0.6, 2.2), rng.uniform(0, 2 * np.pi)
        mask += 0.05 * (1.0 + np.sin(2 * np.pi * waves * (x * np.cos(angle) + y * np.sin(angle)) + phase))
    for _ in range(90):  # specks
        # The fourth power makes most specks small and a few large, as dust is.
        radius = 0.004 + 0.05 * rng.uniform() ** 4
        cx, cy, depth = rng.uniform(0, aspect), rng.uniform(), rng.uniform(0.4, 2.5)
        far = np.hypot(x - cx, (y - cy)) / radius
        # Drops dry from the edge inwards: rims scatter more than middles.
        rim = 0.55 + 0.45 * np.clip(far, 0.0, 1.0) ** 4
        mask += depth * rim * np.clip((1.15 - far) / 0.3, 0.0, 1.0)
    for _ in range(5):  # hairs: arcs
        cx, cy, radius = rng.uniform(-0.5, aspect + 0.5), rng.uniform(-0.5, 1.5), rng.uniform(0.3, 1.2)
        start, span = rng.uniform(-np.pi, np.pi), rng.uniform(0.2, 0.6)
        along = np.abs((np.arctan2(y - cy, x - cx) - start + np.pi) % (2 * np.pi) - np.pi)
        # Thin arcs of large circles, whose middles may lie beside the image.
        off = np.abs(np.hypot(x - cx, y - cy) - radius)
        mask += 1.2 * np.clip(1.0 - off / 0.0025, 0.0, 1.0) * (along < span)
    return (mask / mask.mean()).astype(np.float32)


# -----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Optics:
    """What the lens pieces need to know of a camera."""

    cosine: ArrayF32
    """Of each pixel's angle off the axis, (H, W)."""
    center: tuple[float, float]
    """Principal point (u, v) [px]."""

    @classmethod
    def of(cls, projection: Projection, table: RayTable | None = None) -> Optics:
        """Return the optics of a projection and its rays."""
        rays = projection.rays() if table is None else table
        center = (getattr(projection, "cx", 0.5 * projection.width), getattr(projection, "cy", 0.5 * projection.height))
        return cls(field_cosine(rays), (float(center[0]), float(center[1])))


def develop(
    linear: ArrayF32,
    settings: Realism,
    optics: Optics,
    stops: Array | None = None,
    interval: float = 0.0,
    draw: Draw | None = None,
) -> ArrayAny:
    """Return images as a camera gives them: drops on the lens, vignetting, chromatic aberration, bloom and dirt, exposure,
    noise, counts, tone.

    Args:
        linear: Radiance at the lens, (c, H, W, 3) float32. With every piece off it is returned as it is.
        settings: Which pieces.
        optics: Of the camera.
        stops: Exposures of the frame before [EV], (c,), NaN where a flight begins; this frame's replace them. None: first.
        interval: Time since the frame before [s].
        draw: Random numbers; None: no noise.

    Returns:
        float32, or uint8 for the output "srgb", (c, H, W, 3).
    """
    image = linear if settings.rain_drops is None else lens_drops(linear, settings.rain_drops)
    if settings.vignetting is not None:
        image = vignetted(image, optics.cosine, settings.vignetting.strength)
    if settings.chromatic_aberration is not None:
        image = aberrated(image, settings.chromatic_aberration.shift, optics.center)
    if settings.bloom is not None:
        image = bloomed(image, settings.bloom, settings.lens_dirt)
    factor, opening = np.ones(len(image), np.float32), 0.0
    if settings.auto_exposure is not None:
        before = np.full(len(image), np.nan) if stops is None else stops
        now = next_stops(before, metered(image, settings.auto_exposure.metering), interval, settings.auto_exposure)
        if stops is not None:
            stops[:] = now
        factor, opening = exposure_factors(now), settings.auto_exposure.opening
        image = exposed(image, factor)
    elif settings.exposure is not None:
        factor = exposure_factors(np.full(len(image), float(stops_of_ev(settings.exposure.ev))))
        image = exposed(image, factor)
    if settings.noise is not None:
        # Less exposure is a shorter or smaller opening, more is amplification where shutter and aperture are at their end.
        image = noisy(image, settings.noise, draw, np.maximum(factor / np.float32(2.0**opening), 1.0))
    if settings.quantization is not None:
        image = quantized(image, settings.quantization)
    return to_8bit(image, curve=settings.curve) if settings.output == "srgb" else image
