"""What a lens does to an image: light that falls off towards the corners, and colours of unequal size."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.geometry import RayTable

Image = NDArray[np.float32]

__all__ = ["aberrated", "field_cosine", "resampled", "vignetted"]


def field_cosine(table: RayTable) -> NDArray[np.float32]:
    """Cosine of every pixel's angle off the axis, (H, W); 0 beyond a right angle."""
    return np.maximum(table.directions @ table.axis, 0.0).astype(np.float32)


def vignetted(image: Image, cosine: NDArray[Any], strength: float) -> Image:
    """Image times 1 - strength (1 - cos^4).

    Args:
        image: Linear, (..., H, W, 3).
        cosine: Of the angle off the axis, (H, W).
        strength: 0 to 1.
    """
    squared = np.asarray(cosine, np.float64) ** 2
    factor = (1.0 - strength * (1.0 - squared * squared)).astype(np.float32)
    return image * factor[..., None]


def aberrated(image: Image, shift: float, center: tuple[float, float]) -> Image:
    """Image with red scaled by 1 + shift and blue by 1 - shift about a point, linearly interpolated; the border is held.

    Args:
        image: Linear, (..., H, W, 3).
        shift: Relative change of size: a corner moves by shift x its distance from the centre.
        center: (u, v) [px]; pixel j's middle is at j + 0.5.
    """
    out = image.copy()
    for channel, scale in ((0, 1.0 + shift), (2, 1.0 - shift)):
        layer = image[..., channel]
        for axis, middle in ((-1, center[0]), (-2, center[1])):
            places = middle + (np.arange(layer.shape[axis]) + 0.5 - middle) / scale - 0.5
            layer = resampled(layer, places, axis)
        out[..., channel] = layer
    return out


def resampled(array: NDArray[np.float32], places: NDArray[Any], axis: int) -> NDArray[np.float32]:
    """Linear interpolation along one axis at fractional indices (n,); beyond the ends the end holds."""
    size = array.shape[axis]
    at = np.clip(places, 0.0, size - 1.0)
    low = np.minimum(at.astype(np.int64), max(size - 2, 0))
    share = (at - low).astype(np.float32)
    high = np.minimum(low + 1, size - 1)
    form = [1] * array.ndim
    form[axis] = len(share)
    weight = share.reshape(form)
    below, above = np.take(array, low, axis), np.take(array, high, axis)
    return below + (above - below) * weight
