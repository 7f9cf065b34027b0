"""Auto-exposure: stops that follow the mean luminance of the images."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.sensors.realism.pieces import AutoExposure
from airworthy.sensors.tone import luminance

__all__ = ["exposed", "exposure_factors", "next_stops", "wanted_stops"]

Floats = NDArray[np.float64]
_DARK = 1e-9


def mean_luminance(image: NDArray[np.float32]) -> Floats:
    """Mean luminance of each image of (c, H, W, 3), (c,); pixels that are not finite do not count."""
    # One image at a time: a sum over a batch might be ordered by the batch's size.
    return np.array([_mean(luminance(one)) for one in image])


def _mean(values: NDArray[np.floating]) -> float:
    whole = float(np.mean(values, dtype=np.float64))
    if math.isfinite(whole):
        return whole
    finite = values[np.isfinite(values)]
    return float(np.mean(finite, dtype=np.float64)) if finite.size else 0.0


def wanted_stops(mean: ArrayLike, settings: AutoExposure) -> Floats:
    """Stops [EV] that bring a mean luminance to the target, within the limit, (c,)."""
    stops = [math.log2(settings.target / max(float(m), _DARK)) for m in np.atleast_1d(np.asarray(mean, np.float64))]
    return np.clip(np.array(stops), -settings.limit, settings.limit)


def next_stops(stops: Floats, mean: ArrayLike, interval: float, settings: AutoExposure) -> Floats:
    """Stops after one frame: s + (wanted - s)(1 - exp(-dt / T)); NaN stands for the beginning of a flight.

    Args:
        stops: Of the frame before [EV], (c,).
        mean: Luminance of this frame, (c,).
        interval: Time between frames [s].
        settings: Target, time constant, limit, start.
    """
    wanted = wanted_stops(mean, settings)
    before = np.where(np.isnan(stops), wanted if settings.start is None else settings.start, stops)
    share = 1.0 - math.exp(-interval / settings.time_constant) if settings.time_constant > 0.0 else 1.0
    return np.asarray(before + (wanted - before) * share)


def exposure_factors(stops: Sequence[float] | Floats) -> NDArray[np.float32]:
    """2^EV, (c,)."""
    return np.array([2.0 ** float(ev) for ev in stops], np.float32)


def exposed(image: NDArray[np.float32], factor: NDArray[np.float32]) -> NDArray[np.float32]:
    """Images (c, H, W, 3) times their factors (c,)."""
    return image * factor[:, None, None, None]
