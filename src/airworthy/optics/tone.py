"""From linear radiance to display values: exposure, the tone curve, sRGB, grey.

Linear values are scene-referred: 1 is the white of a surface that reflects everything under an irradiance of pi. The sRGB curve
is IEC 61966-2-1; luminance weights are those of its primaries (ITU-R BT.709).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Literal

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayFloat, ArrayLike, ArrayU8
from airworthy.core.errors import AirworthyError

Curve = Literal["filmic", "linear", "wide"]
CURVES: tuple[Curve, ...] = ("filmic", "linear", "wide")

LUMINANCE = (0.2126, 0.7152, 0.0722)
"""Weights of linear R, G, B."""

SHOULDER = 0.7
"""Linear value from which the filmic curve bends; below it is the identity, so colours of surfaces stay what they are."""
WIDE_SHOULDER, WIDE_CONTRAST = 0.25, 1.2
"""Of the wide curve, which bends a little above middle grey and takes in four stops more than the filmic one: what cameras make
of sun and deep shade in one picture. Below, values go by a power, as pictures have more contrast than places; ours, by eye."""
WIDE_PATH_TO_WHITE = 0.12
"""Of the wide curve: what lies in the sun keeps some of its colour beside an exposure for the shade."""
PATH_TO_WHITE = 0.35
"""How fast a colour pales as it is compressed: film and sensors lose saturation in the highlights."""

BRIGHTEST = 0.998
"""Value of the filmic curve up to which it is taken back: 8 bits show it as 255, and it stands for a radiance of 2.2."""
PURE = 0.02
"""What pure bright colours may pale by as they are taken back, display-linear."""

TABLE_SIZE = 1 << 14


def luminance(linear: ArrayLike) -> ArrayFloat:
    """Return the luminance of linear RGB (..., 3)."""
    rgb = np.asarray(linear)
    return rgb[..., 0] * LUMINANCE[0] + rgb[..., 1] * LUMINANCE[1] + rgb[..., 2] * LUMINANCE[2]


def srgb_from_linear(linear: ArrayLike) -> ArrayF32:
    """Return sRGB-encoded values in [0, 1] of linear ones, clamped."""
    # Constants of both branches are the standard's (IEC 61966-2-1), which do not meet exactly; the gap is under 1e-7.
    x = np.clip(np.asarray(linear, np.float32), 0.0, 1.0)
    return np.where(x <= 0.0031308, 12.92 * x, 1.055 * np.power(x, 1.0 / 2.4) - 0.055).astype(np.float32)


def linear_from_srgb(encoded: ArrayLike) -> ArrayF32:
    """Return linear values of sRGB-encoded ones in [0, 1]; 8-bit integers are taken as 255ths."""
    given = np.asarray(encoded)
    x = given.astype(np.float32) / 255.0 if given.dtype == np.uint8 else given.astype(np.float32)
    return np.where(x <= 0.04045, x / 12.92, np.power((x + 0.055) / 1.055, 2.4)).astype(np.float32)


def shoulder(x: ArrayLike) -> ArrayF32:
    """Return the filmic curve on one value: the identity up to `SHOULDER`, then an exponential approach to 1 with the same
    slope.
    """
    value = np.asarray(x, np.float32)
    # An exponential with this room has slope 1 at the shoulder: no crease in a gradient.
    room = 1.0 - SHOULDER
    return np.where(value <= SHOULDER, value, 1.0 - room * np.exp(-np.maximum(value - SHOULDER, 0.0) / room)).astype(np.float32)


def wide_shoulder(x: ArrayLike) -> ArrayF32:
    """Return the wide curve on one value: a toe up to `WIDE_SHOULDER`, then a hyperbola with its slope that comes near to 1
    slowly, as the sum of films' and sensors' answers in high contrast does (Reinhard and others 2002).

    Middle grey, 0.18, is shown as 0.17, 1 as 0.66, 4 as 0.89, 16 as 0.97.
    """
    value = np.asarray(x, np.float32)
    knee, room = np.float32(WIDE_SHOULDER), np.float32(1.0 - WIDE_SHOULDER)
    over = np.float32(WIDE_CONTRAST) * np.maximum(value - knee, np.float32(0.0)) / room
    toe = knee * np.power(np.maximum(value, np.float32(0.0)) / knee, np.float32(WIDE_CONTRAST))
    return np.where(value <= knee, toe, knee + room * (over / (np.float32(1.0) + over))).astype(np.float32)


def wide(linear: ArrayLike) -> ArrayF32:
    """Compress linear RGB (..., 3) into [0, 1] by `wide_shoulder`, as `filmic` does by its curve."""
    rgb = np.fmax(np.asarray(linear, np.float32), np.float32(0.0))
    return _compressed(rgb, wide_shoulder, WIDE_PATH_TO_WHITE)


def filmic(linear: ArrayLike) -> ArrayF32:
    """Compress linear RGB (..., 3) into [0, 1]: neutral in hue, paling towards white in the highlights.

    The curve acts on the largest channel and scales the others along, so no hue turns as per-channel curves do; what is
    compressed much is mixed towards white. NaN is black.
    """
    rgb = np.fmax(np.asarray(linear, np.float32), np.float32(0.0))  # takes 0 for NaN
    peak = _largest(rgb)
    bright = np.flatnonzero(peak > SHOULDER)
    # Most pixels of most images are below the shoulder, and stay what they are.
    if len(bright) > 0.4 * peak.size:
        return _compressed(rgb)
    if len(bright):
        flat = rgb.reshape(-1, 3)
        flat[bright] = _compressed(flat[bright])
    return rgb


def _compressed(rgb: ArrayF32, bend: Callable[[ArrayLike], ArrayF32] = shoulder, pale: float = PATH_TO_WHITE) -> ArrayF32:
    """Return `filmic` of linear RGB (..., 3) that is 0 or more, whatever its brightness, by any curve on the peak."""
    peak = _largest(rgb)[..., None]
    held = bend(peak)
    scaled = rgb * (held / np.maximum(peak, 1e-6))
    # 0 where nothing was compressed, towards 1 with what was: a bright lamp ends white, whatever its colour.
    lost = np.maximum(peak - np.maximum(held, np.float32(SHOULDER)), 0.0)
    white = 1.0 - 1.0 / (pale * lost + 1.0)
    return (scaled + (held - scaled) * white).astype(np.float32)


def display_from_linear(linear: ArrayLike) -> ArrayF32:
    """Return what a picture holds of linear RGB (..., 3): through the filmic curve, sRGB-encoded (by a table, to 5e-5), in [0,
    1].
    """
    # The table is even in the square root: dark values, where the curve is steep, get more of it.
    root = np.sqrt(np.minimum(filmic(linear), 1.0))
    return encoding_table()[(root * (TABLE_SIZE - 1) + 0.5).astype(np.int32)]


def linear_from_display(encoded: ArrayLike) -> ArrayF32:
    """Return linear RGB (..., 3) that `display_from_linear` turns into a picture's values: its inverse, from values rounded to
    2^-14.

    Up to `SHOULDER` that is the sRGB curve; above it the highlights that the curve compressed are unfolded again, and a colour
    that it paled regains its strength. White is taken as a radiance of 2.2; values beyond [0, 1] count as these. A colour both
    bright and pure, which the curve shows of nothing (it pales all highlights), comes back a little darker and paler.
    """
    index = np.asarray(encoded, np.float32) * np.float32(TABLE_SIZE - 1) + np.float32(0.5)
    display = decoding_table()[np.clip(index, 0.0, TABLE_SIZE - 1).astype(np.int32)]
    bright = _largest(display) > SHOULDER
    if bright.any():
        display[bright] = _unfolded(display[bright])
    return display


def _largest(rgb: ArrayF32) -> ArrayF32:
    """Return the largest channel (...): three times as fast as a reduction over so short an axis."""
    return np.maximum(np.maximum(rgb[..., 0], rgb[..., 1]), rgb[..., 2])


def _unfolded(display: ArrayF32) -> ArrayF32:
    """Linear RGB (n, 3) of display-linear highlights: see `filmic`, which this inverts."""
    peaks, pale = paleness_table()
    held = np.minimum(_largest(display), BRIGHTEST)
    peak = SHOULDER - (1.0 - SHOULDER) * np.log((1.0 - held) / (1.0 - SHOULDER))
    # The curve leaves no channel below its paleness at a peak: a smaller one calls for a lower peak.
    peak = np.minimum(peak, np.interp(-_largest(-display) + PURE, pale, peaks))[:, None].astype(np.float32)
    held = shoulder(peak)
    white = 1.0 - 1.0 / (PATH_TO_WHITE * (peak - held) + 1.0)
    scaled = (np.minimum(display, held) - held * white) / (1.0 - white)
    return np.maximum(scaled * (peak / held), 0.0).astype(np.float32)


@cache
def paleness_table() -> tuple[Array, Array]:
    """Return peaks from `SHOULDER` to white, and the least value of any channel that the filmic curve shows of each."""
    end = SHOULDER - (1.0 - SHOULDER) * np.log((1.0 - BRIGHTEST) / (1.0 - SHOULDER))
    peaks = np.linspace(SHOULDER, end, 257)
    held = 1.0 - (1.0 - SHOULDER) * np.exp(-(peaks - SHOULDER) / (1.0 - SHOULDER))
    return peaks, held * (1.0 - 1.0 / (PATH_TO_WHITE * (peaks - held) + 1.0))


def to_8bit(linear: ArrayLike, exposure: ArrayLike = 1.0, curve: Curve = "filmic") -> ArrayU8:
    """Return sRGB image of linear RGB.

    Args:
        linear: (..., 3) scene-referred; NaN becomes black.
        exposure: Factor, one or per image (broadcast over the leading axes).
        curve: "filmic"; "wide", for sun and deep shade in one picture; or "linear": clipped at 1.

    Raises:
        AirworthyError: If there is no such curve, or the last axis is not 3.
    """
    rgb = np.asarray(linear, np.float32)
    if curve not in CURVES:
        raise AirworthyError(f"Unknown tone curve {curve!r}; expected one of {', '.join(CURVES)}.")
    if rgb.shape[-1:] != (3,):
        raise AirworthyError(f"A colour image has shape {rgb.shape}; expected (..., 3).")
    gain = np.asarray(exposure, np.float32)
    # NaN stays, and is black behind either curve.
    rgb = np.minimum(rgb * gain.reshape(gain.shape + (1,) * (rgb.ndim - gain.ndim)), np.float32(1e6))
    return encode_8bit({"filmic": filmic, "wide": wide}.get(curve, np.asarray)(rgb))


def encode_8bit(linear: ArrayLike) -> ArrayU8:
    """Return 8-bit sRGB of display-linear values in [0, 1], through a table (within one count of the formula); NaN becomes
    black."""
    index = np.fmax(np.asarray(linear, np.float32), np.float32(0.0))  # fmax takes 0 for NaN
    # The square root spreads the dark values, where the curve is steep, over the table.
    np.sqrt(np.minimum(index, np.float32(1.0), out=index), out=index)
    index *= np.float32(TABLE_SIZE - 1)
    index += np.float32(0.5)
    return np.asarray(np.take(_table(), index.astype(np.int32), mode="clip"))


def grey_8bit(linear: ArrayLike, exposure: ArrayLike = 1.0, curve: Curve = "filmic") -> ArrayU8:
    """Return 8-bit image of a monochrome camera, (...): the luminance, tone-mapped and sRGB-encoded.

    Args:
        linear: Linear RGB, (..., 3).
        exposure: Factor on it.
        curve: Tone curve.
    """
    y = luminance(np.asarray(linear, np.float32)).astype(np.float32)
    return to_8bit(np.repeat(y[..., None], 3, axis=-1), exposure, curve)[..., 0]


@cache
def _table() -> ArrayU8:
    x = (np.arange(TABLE_SIZE) / (TABLE_SIZE - 1)) ** 2
    return np.rint(srgb_from_linear(x) * 255.0).astype(np.uint8)


@cache
def encoding_table() -> ArrayF32:
    """Return sRGB of linear values whose square roots are evenly spaced, where the curve is steep."""
    return srgb_from_linear((np.arange(TABLE_SIZE) / (TABLE_SIZE - 1)) ** 2)


@cache
def decoding_table() -> ArrayF32:
    """Return linear values of evenly spaced sRGB."""
    return linear_from_srgb(np.arange(TABLE_SIZE) / (TABLE_SIZE - 1))
