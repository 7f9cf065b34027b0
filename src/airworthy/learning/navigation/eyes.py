"""From what a sensor sees to the numbers that a policy reads: pooled inverse depth, a learnt latent, pooled LiDAR."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from airworthy.core.arrays import Array, ArrayF32
from airworthy.learning.navigation.sight import CAMERA, LIDAR, Rays
from airworthy.pilots.navigation_policy.sight import CELLS, NEAREST, cell_inputs, scan_inputs

__all__ = ["BlindEye", "LidarEye", "NavigationEye", "PooledEye"]


class NavigationEye(Protocol):
    """What becomes of images."""

    @property
    def rays(self) -> Rays:
        """Of the sensor."""

    @property
    def numbers(self) -> int:
        """That it gives of an image."""

    @property
    def uniforms(self) -> int:
        """Uniform numbers that it takes per image; 0: none."""

    def see(self, distance: ArrayF32, uniforms: Array | None = None) -> ArrayF32:
        """Return what policies read, (n, numbers).

        Args:
            distance: (n, rows, columns) [m].
            uniforms: Noise, (n, `uniforms`); None: none.
        """
        ...


@dataclass(frozen=True, eq=False)
class PooledEye:
    """Nearest return of each of 12 x 16 cells, inverse."""

    rays: Rays = CAMERA
    numbers: int = math.prod(CELLS)
    uniforms: int = 0

    def see(self, distance: ArrayF32, uniforms: Array | None = None) -> ArrayF32:
        """Return 3 / depth - 0.6, (n, 192).

        Args:
            distance: (n, 36, 64) [m].
            uniforms: Not taken.
        """
        return cell_inputs(distance)


@dataclass(frozen=True, eq=False)
class LidarEye:
    """Nearest range of each of 16 x 20 cells, inverse, with published noise (specification, learning by reward, 3.2)."""

    rays: Rays = LIDAR
    numbers: int = 320
    uniforms: int = 4 * 320

    def see(self, distance: ArrayF32, uniforms: Array | None = None) -> ArrayF32:
        """Return 1 / range, (n, 320).

        Args:
            distance: (n, 48, 120) [m].
            uniforms: (n, 1280): which cells are moved, are empty, see something near, and by how much; None: none.
        """
        cells = scan_inputs(distance)
        if uniforms is not None:
            # Source: specification, learning by reward, 3.2: after pooling 3 % of cells + U(0.2, 10), 2 % at 10 m, and 2 % of
            # the cells in rows from 10 on, U(0.2, 1). Published these are rows of the image, whatever the mount: of a dome
            # that looks forward they are its outer rings, within 33 degrees of sideways, and half of them look up.
            moved, empty, near, much = (uniforms[:, k * 320 : (k + 1) * 320] for k in range(4))
            cells = cells + np.where(moved < 0.03, NEAREST + (self.rays.reach - NEAREST) * much, 0.0)
            cells = np.where(empty < 0.02, self.rays.reach, cells)
            low = np.arange(320) // 20 >= 10
            cells = np.where((near < 0.02) & low, NEAREST + 0.8 * much, cells)
        return (1.0 / cells).astype(np.float32)


@dataclass(frozen=True, eq=False)
class BlindEye:
    """Another eye before which nothing ever is: the baseline that tells whether a policy flies by what it sees."""

    eye: NavigationEye

    @property
    def rays(self) -> Rays:
        """Of the sensor."""
        return self.eye.rays

    @property
    def numbers(self) -> int:
        """That it gives of an image."""
        return self.eye.numbers

    @property
    def uniforms(self) -> int:
        """None: what is not seen has no noise."""
        return 0

    def see(self, distance: ArrayF32, uniforms: Array | None = None) -> ArrayF32:
        """Return what the other eye makes of images without any return within reach.

        Args:
            distance: (n, rows, columns) [m].
            uniforms: Not taken.
        """
        return self.eye.see(np.full_like(distance, np.float32(self.eye.rays.reach)))
