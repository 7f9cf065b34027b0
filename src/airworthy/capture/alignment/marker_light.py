"""Light on a marker that lies still, told apart from its print by all images that show it.

A border of a shadow beside a black square looks like another edge of it. It lies at the same place of the marker in all images,
where a square can be in one place only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array

__all__ = ["LightMap", "hats", "light_map"]

_MAP, _RIM = 25, 0.12
"""Places of a light map across, and how far it goes beyond the black square, as a share of the square."""
_SMOOTH = 0.3
"""Weight of a light map's second differences beside one pixel of white; ours."""


@dataclass(frozen=True, eq=False)
class LightMap:
    """Light on a marker that lies still, borders of shadows included: bilinear on a grid that covers its margin."""

    share: Array
    """(n, n) of the mean, from the upper left."""

    def __call__(self, place: Array) -> Array:
        """Return the share of the mean light (m,) at places (m, 2), 0 to 1 from the upper left corner of the black square."""
        return np.asarray(hats((place + _RIM) / (1.0 + 2.0 * _RIM), len(self.share)) @ self.share.ravel())


def light_map(samples: Sequence[tuple[Array, Array]]) -> LightMap:
    """Return the light on a marker by all its pictures: least squares on a grid, its second differences small.

    Args:
        samples: Of each picture, `PictureFit.sampled` at the corners of a square that all images agree on: at corners by single
            pictures, a border taken for a shadow would stay one.
    """
    n = _MAP
    place, seen = (np.concatenate([one[0][:, part] for one in samples]) for part in (slice(0, 2), 2))
    reflected = np.concatenate([one[1] for one in samples])
    rows = hats((place + _RIM) / (1.0 + 2.0 * _RIM), n) * reflected[:, None]
    # Soft pictures show a border of a shadow less well than sharp and large ones.
    weight = np.concatenate([np.full(len(one[1]), len(one[1]) ** 0.5) for one in samples])
    bend = np.diff(np.eye(n), 2, axis=0)
    smooth = np.concatenate((np.kron(np.eye(n), bend), np.kron(bend, np.eye(n))))
    matrix = (rows * weight[:, None]).T @ rows / weight.mean() + _SMOOTH * smooth.T @ smooth + 1e-3 * np.eye(n * n)
    share = np.linalg.solve(matrix, (rows * weight[:, None]).T @ seen / weight.mean() + 1e-3)
    share = np.clip(share, 0.05, 5.0)
    return LightMap((share / share.mean()).reshape(n, n))


def hats(place: Array, n: int) -> Array:
    """Return shares of places on a grid, bilinear, and even beyond it.

    Args:
        place: (m, 2) 0 to 1 across the grid.
        n: Places of the grid across and down.

    Returns:
        (m, n^2), row by row.
    """
    at = np.clip(place, 0.0, 1.0) * (n - 1)
    across = np.maximum(1.0 - np.abs(at[..., None] - np.arange(n)), 0.0)
    return np.asarray((across[:, 1, :, None] * across[:, 0, None, :]).reshape(len(place), -1))
