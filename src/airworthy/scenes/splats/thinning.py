"""Levels of detail: fewer gaussians that look much the same from further away.

Gaussians that share a cell of a grid become one of the same mean and covariance, weighted by opacity times cross-section, and
of the opacity that keeps the sum of opacity times cross-section (moment matching).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.scenes.splats.record import Splats

Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]
_STEPS = 40
_BITS = 20
_VARIANCE_MIN = 1e-18
"""[m^2]; rounding can make the smallest variance of a flat group negative."""


def thinned(splats: Splats, count: int) -> Splats:
    """About `count` gaussians, and at most that many, in the order of their cells; the splats themselves if they are no more.

    Raises:
        AirworthyError: The count is below 1.
    """
    if count < 1:
        raise AirworthyError(f"{count} gaussians were asked for; at least 1 was expected.")
    if len(splats) <= count:
        return splats
    cell, groups = _cells(splats, count)
    weight = splats.opacity.astype(np.float64) * _section(splats.scale.astype(np.float64))
    weight = np.maximum(weight, 1e-30)  # a gaussian that cannot be seen still has a place
    total = np.bincount(cell, weight, groups)

    def mean(values: NDArray[np.floating]) -> Doubles:
        flat = values.reshape(len(splats), -1).astype(np.float64)
        columns = [np.bincount(cell, weight * flat[:, column], groups) / total for column in range(flat.shape[1])]
        return np.stack(columns, 1).reshape(groups, *values.shape[1:])

    position = mean(splats.position)
    away = splats.position - position[cell]
    covariance = mean(_covariance(splats) + away[:, :, None] * away[:, None, :])
    variance, axes = np.linalg.eigh(covariance)
    axes[:, :, 0] *= np.sign(np.linalg.det(axes))[:, None]
    scale = np.sqrt(np.maximum(variance, _VARIANCE_MIN))
    opacity = np.minimum(total / _section(scale), 1.0)
    return Splats(
        position.astype(np.float32),
        frames.from_matrix(axes).astype(np.float32),
        scale.astype(np.float32),
        opacity.astype(np.float32),
        mean(splats.harmonics).astype(np.float32),
    )


def levels_of_detail(splats: Splats, counts: Sequence[int]) -> tuple[Splats, ...]:
    """Levels of falling numbers of gaussians, each made from the splats themselves."""
    return tuple(thinned(splats, count) for count in counts)


def _section(scale: Doubles) -> Doubles:
    """Mean of the cross-sections along the three axes of an ellipsoid of these half axes, up to a constant factor."""
    a, b, c = scale[:, 0], scale[:, 1], scale[:, 2]
    return (a * b + b * c + c * a) / 3.0


def _covariance(splats: Splats) -> Doubles:
    """(n, 3, 3) [m^2]."""
    scaled = frames.to_matrix(splats.rotation.astype(np.float64)) * splats.scale.astype(np.float64)[:, None, :]
    return scaled @ scaled.transpose(0, 2, 1)


def _cells(splats: Splats, count: int) -> tuple[Ints, int]:
    """(n,) number of the cell of each gaussian, and how many cells there are: the finest grid that has no more than `count`."""
    position = splats.position.astype(np.float64)
    low = position.min(0)
    span = float((position.max(0) - low).max()) or 1.0
    coarse, fine = 0.0, float(_BITS)
    best: tuple[Ints, int] = np.zeros(len(splats), np.int64), 1
    for _ in range(_STEPS):
        middle = (coarse + fine) / 2
        cells = np.floor((position - low) / (span * (1 + 1e-9)) * 2.0**middle).astype(np.int64)
        key = (cells[:, 0] << 2 * (_BITS + 1)) | (cells[:, 1] << (_BITS + 1)) | cells[:, 2]
        unique, number = np.unique(key, return_inverse=True)
        if len(unique) <= count:
            coarse, best = middle, (number.astype(np.int64), len(unique))
            if len(unique) >= 0.98 * count:
                break
        else:
            fine = middle
    return best
