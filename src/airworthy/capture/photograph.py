"""Statistics by which photographs are told from drawings: their spectra, edges, colours and corners.

Photographs of most places share them (Field, "Relations between the statistics of natural images and the response properties of
cortical cells", 1987; Huang and Mumford, "Statistics of natural images and models", 1999), pictures of too little detail, too
even surfaces or too few colours do not. They are necessary, not sufficient: noise of the right spectrum is no place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from airworthy.capture.alignment.markers import opencv
from airworthy.core.arrays import Array, ArrayLike, ArrayU8
from airworthy.core.errors import AirworthyError
from airworthy.optics.tone import linear_from_srgb, luminance

__all__ = [
    "CornerTracks",
    "ImageStatistics",
    "colour_width",
    "corner_tracks",
    "gradient_kurtosis",
    "image_statistics",
    "power_slope",
    "spectrum_slope",
]

LEAST_SIDE = 32
"""Rows and columns of the smallest image of which a spectrum is taken."""
DARKEST = 1.0 / 255.0
"""Luminance below which an 8-bit image tells nothing: logarithms begin here."""
CORNER_QUALITY = 0.02
"""Share of the strongest corner's least eigenvalue that a corner has at least (Shi and Tomasi 1994)."""
CORNER_DISTANCE = 7
"""Between two corners [px]."""
CORNERS_MOST = 2000
BACK_AND_FORTH = 1.0
"""A corner that was followed to the next image and back ends within this of where it was [px], or it is lost."""
_WINDOW, _LEVELS = (15, 15), 3


@dataclass(frozen=True)
class ImageStatistics:
    """Of one image."""

    slope: float
    """Of power over frequency, logarithms of both: about -2 of photographs (Field 1987)."""
    kurtosis: float
    """Of differences of the logarithm of luminance between neighbours: 3 of a normal distribution, of photographs about 17
    (Huang and Mumford 1999)."""
    colour_width: float
    """Deviation of red-green and yellow-blue, of 255 (Hasler and Suesstrunk 2003)."""
    corners: int
    """That a tracker would follow (Shi and Tomasi 1994)."""


@dataclass(frozen=True)
class CornerTracks:
    """Corners of a film's first images, followed from each to the next."""

    kept: float
    """Share of corners that the next image still has."""
    length: float
    """Images through which a corner is followed, in the mean: 1 / (1 - kept), at most as many as there are."""
    flow: float
    """By how much a corner moves between two images, the median, as a share of the longer side."""


def _checked(image: ArrayLike) -> ArrayU8:
    given = np.asarray(image)
    if given.dtype != np.uint8 or given.ndim != 3 or given.shape[2] != 3 or min(given.shape[:2]) < LEAST_SIDE:
        raise AirworthyError(
            f"Statistics are of 8-bit images (height, width, 3) of at least {LEAST_SIDE} pixels a side;"
            f" {given.dtype} of shape {given.shape} came."
        )
    return given


def _luminance(image: ArrayLike) -> Array:
    return np.asarray(luminance(linear_from_srgb(_checked(image))), np.float64)


def power_slope(values: Array) -> float:
    """Return the slope of the radial mean of power over frequency, logarithms of both, from 4 cycles to a quarter of the rows.

    Args:
        values: (n, n), of any unit.
    """
    side = len(values)
    power = np.abs(np.fft.fft2(values)) ** 2
    axis = np.fft.fftfreq(side, 1.0 / side)
    ring = np.rint(np.hypot(axis[:, None], axis[None])).astype(int)
    mean = np.bincount(ring.ravel(), power.ravel()) / np.bincount(ring.ravel())
    # Evenly in the logarithm: else the many fine frequencies alone would decide.
    edges = np.geomspace(4.0, side / 4.0, 9)
    middle = np.sqrt(edges[1:] * edges[:-1])
    level = [mean[int(np.ceil(a)) : max(int(np.ceil(b)), int(np.ceil(a)) + 1)].mean() for a, b in pairwise(edges)]
    return float(np.polyfit(np.log(middle), np.log(np.maximum(level, np.finfo(float).tiny)), 1)[0])


def spectrum_slope(image: ArrayLike) -> float:
    """Return the slope of the radial mean of power over frequency, logarithms of both.

    From 4 cycles to a quarter of the sampling rate, of the logarithm of luminance under a Hann window: without it the jump
    between opposite borders would add a cross of slope -2 to every image.

    Args:
        image: 8-bit sRGB (h, w, 3).

    Raises:
        AirworthyError: It is no such image, or the same everywhere.
    """
    values = np.log(np.maximum(_luminance(image), DARKEST))
    side = min(values.shape)
    top, left = (values.shape[0] - side) // 2, (values.shape[1] - side) // 2
    flat = values[top : top + side, left : left + side]
    window = np.hanning(side)
    values = (flat - flat.mean()) * window[:, None] * window[None]
    if np.ptp(flat) == 0.0:
        raise AirworthyError("An image of one value everywhere has no spectrum: choose another view.")
    return power_slope(values)


def gradient_kurtosis(image: ArrayLike) -> float:
    """Return the kurtosis of differences of log luminance between neighbours, along rows and columns; nan of a flat image.

    Args:
        image: 8-bit sRGB (h, w, 3).

    Raises:
        AirworthyError: It is no such image.
    """
    values = np.log(np.maximum(_luminance(image), DARKEST))
    step = np.concatenate([np.diff(values, axis=0).ravel(), np.diff(values, axis=1).ravel()])
    step -= step.mean()
    variance = float(np.mean(step**2))
    return float(np.mean(step**4) / variance**2) if variance > 0.0 else float("nan")


def colour_width(image: ArrayLike) -> float:
    """Return how broad the histogram of colours is: the root of the summed variances of red - green and yellow - blue, of 255.

    Hasler and Suesstrunk, "Measuring colourfulness in natural images", 2003, its first term.

    Args:
        image: 8-bit sRGB (h, w, 3).

    Raises:
        AirworthyError: It is no such image.
    """
    red, green, blue = np.moveaxis(_checked(image).astype(np.float64), -1, 0)
    return float(np.hypot(np.std(red - green), np.std(0.5 * (red + green) - blue)))


def _grey(image: ArrayLike) -> ArrayU8:
    return np.asarray(opencv().cvtColor(np.ascontiguousarray(_checked(image)), opencv().COLOR_RGB2GRAY), np.uint8)


def _corners(grey: ArrayU8) -> Array:
    found = opencv().goodFeaturesToTrack(grey, CORNERS_MOST, CORNER_QUALITY, CORNER_DISTANCE)
    return np.zeros((0, 1, 2), np.float32) if found is None else np.asarray(found, np.float32)


def image_statistics(image: ArrayLike) -> ImageStatistics:
    """Return the statistics of an image; needs the extra `capture`, for corners.

    Args:
        image: 8-bit sRGB (h, w, 3).

    Raises:
        AirworthyError: It is no such image, or the same everywhere.
    """
    return ImageStatistics(spectrum_slope(image), gradient_kurtosis(image), colour_width(image), len(_corners(_grey(image))))


def corner_tracks(film: Sequence[ArrayLike]) -> CornerTracks:
    """Follow corners from each image of a film to the next (pyramidal Lucas and Kanade, forth and back).

    Args:
        film: Two 8-bit sRGB images (h, w, 3) of one size or more.

    Raises:
        AirworthyError: There are fewer, they are of several sizes, or none has a corner.
    """
    greys = [_grey(image) for image in film]
    if len(greys) < 2 or len({grey.shape for grey in greys}) != 1:
        raise AirworthyError(f"Corners are followed through two images of one size or more; {len(greys)} came.")
    begun, kept, flows = 0, 0, []
    options = {"winSize": _WINDOW, "maxLevel": _LEVELS}
    for first, second in pairwise(greys):
        points = _corners(first)
        if not len(points):
            continue
        there, good, _ = opencv().calcOpticalFlowPyrLK(first, second, points, None, **options)
        back, again, _ = opencv().calcOpticalFlowPyrLK(second, first, there, None, **options)
        height, width = first.shape
        inside = ((there >= 0) & (there <= (width - 1, height - 1))).all(axis=(1, 2))
        same = (good[:, 0] > 0) & (again[:, 0] > 0) & inside & (np.linalg.norm(back - points, axis=2)[:, 0] < BACK_AND_FORTH)
        begun, kept = begun + len(points), kept + int(same.sum())
        flows.append(np.linalg.norm(there - points, axis=2)[same, 0])
    if not begun:
        raise AirworthyError("No image of the film has a corner: choose another view.")
    share = kept / begun
    moved = np.concatenate(flows) if flows else np.zeros(0)
    length = min(1.0 / max(1.0 - share, 1e-9), float(len(greys)))
    return CornerTracks(share, length, float(np.median(moved) / max(greys[0].shape)) if len(moved) else float("nan"))
