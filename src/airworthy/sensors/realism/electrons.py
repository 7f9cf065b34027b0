"""What a chip makes of light: electrons, their noise, and whole counts.

Draws are those of `airworthy.sensors.noise`: a pixel's noise depends on its flight, sample, sensor and place in the image.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.sensors.limits import RangeLimits
from airworthy.sensors.noise import Draw, RangeNoise, measure
from airworthy.sensors.realism.pieces import Quantization, SensorNoise

__all__ = ["noisy", "quantized"]

Image = NDArray[np.float32]
_OWN_DRAWS = 0x9E3779B9
"""Tells the draws of colours from those that the same sensor's depth takes."""


def noisy(image: Image, settings: SensorNoise, draw: Draw | None, gain: ArrayLike = 1.0) -> Image:
    """Images with shot and read noise.

    A value x / gain is x / gain x `white` electrons n, at most the full well; it becomes n + N(0, n + read^2), times the gain.
    The normal law is that of Poisson's for more than some twenty electrons. Values below zero stay: they keep dark means true.

    Args:
        image: Linear after exposure, (c, H, W, 3).
        settings: Of the chip.
        draw: Random numbers; None: saturation only.
        gain: Part of the exposure that is amplification instead of light, one or (c,).
    """
    factor = np.broadcast_to(np.asarray(gain, np.float32), (len(image),))[:, None, None, None]
    white = np.float32(settings.white)
    electrons = np.clip(image / factor * white, 0.0, np.float32(settings.full_well))
    if draw is not None:
        sigma = np.sqrt(electrons + np.float32(settings.read_noise**2))
        electrons = electrons + sigma * _normals(image.shape, draw)
    return (electrons / white * factor).astype(np.float32)


def _normals(shape: tuple[int, ...], draw: Draw) -> Image:
    """Standard normal numbers, by the native kernel of ranges: readings of nothing with a deviation of one."""
    flat = np.zeros((shape[0], int(np.prod(shape[1:]))), np.float32)
    return measure(flat, RangeNoise(c=1.0), RangeLimits(-1e30), replace(draw, sensor=draw.sensor ^ _OWN_DRAWS)).reshape(shape)


def quantized(image: Image, settings: Quantization) -> Image:
    """Values rounded to whole counts, from 0 to the full scale."""
    step = settings.step
    counts = np.rint(np.clip(image, 0.0, np.float32(settings.full_scale)).astype(np.float64) / step)
    return (counts * step).astype(np.float32)
