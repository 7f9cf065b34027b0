"""Fisheye views that cover the directions of a table of rays, and how the rays are read from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from airworthy.core import frames
from airworthy.geometry import RayTable
from airworthy.sensors.pixel_rays import ray_steps
from airworthy.sensors.splats.lens import Lens

Floats = NDArray[np.float64]
FINER = 2.0
"""Pixels of a view per step from one ray to the next."""
SIZE_MAX = 4096
"""Pixels of a view's side."""
_ONE_VIEW = math.cos(math.radians(80.0))
"""Rays that lie this near to their middle are seen in one view; beyond a fisheye stretches, and two face to face do better."""
_LONE = 1e-3
"""Step between rays where there is one only [rad]."""
_EDGE = 2


@dataclass(frozen=True, eq=False)
class RayView:
    """An equidistant view, and the rays that are read from it."""

    width: int
    height: int
    intrinsics: tuple[float, float, float, float]
    lens: Lens
    turn: Floats
    """Quaternion, the view's camera frame to that of the rays."""
    spread: float
    """Variance of the rays' steps in the view's pixels [px^2 per step^2]."""
    rays: NDArray[np.intp]
    """(n,) which of the table's rays, row by row."""
    corners: NDArray[np.intp]
    """(4, n) pixels around each."""
    shares: NDArray[np.float32]
    """(4, n) of these."""
    directions: Floats
    """Unit directions of all rays (m, 3), in their own frame."""

    def limits(self, distance: NDArray[np.float32]) -> NDArray[np.float32]:
        """Distances (c, H, W) of the view's pixels from those of the table's rays (c, m): that of the nearest ray."""
        return distance[:, self._nearest].reshape(len(distance), self.height, self.width)

    @cached_property
    def _nearest(self) -> NDArray[np.intp]:
        from scipy.spatial import cKDTree

        seen, _ = self.lens.pixel_rays(self.width, self.height, self.intrinsics)
        return np.asarray(cKDTree(self.directions).query(frames.rotate(self.turn, seen.reshape(-1, 3)))[1], np.intp)


def ray_views(table: RayTable, shown: NDArray[np.bool_] | None = None) -> tuple[RayView, ...]:
    """Views of the rays of a table; `shown` (H, W) says which of them count."""
    directions = table.directions.reshape(-1, 3)
    wanted = np.arange(len(directions)) if shown is None else np.flatnonzero(shown)
    if not len(wanted):
        return ()
    step = _step(table, shown)
    middle = directions[wanted].mean(axis=0)
    middle = middle / max(float(np.linalg.norm(middle)), 1e-12)
    if (directions[wanted] @ middle).min() >= _ONE_VIEW:
        return (_view(directions, wanted, middle, step),)
    axis = table.axis / np.linalg.norm(table.axis)
    front = directions[wanted] @ axis >= 0.0
    halves = ((wanted[front], axis), (wanted[~front], -axis))
    return tuple(_view(directions, some, way, step) for some, way in halves if len(some))


def _step(table: RayTable, shown: NDArray[np.bool_] | None) -> float:
    """Usual angle from one ray to the next, the smaller of those across and down [rad]."""
    found = []
    for steps in ray_steps(table):
        length = np.linalg.norm(steps, axis=-1)
        length = length if shown is None else length[shown]
        if (length > 1e-9).any():
            found.append(float(np.median(length[length > 1e-9])))
    return min(found, default=_LONE)


def _view(directions: Floats, rays: NDArray[np.intp], way: Floats, step: float) -> RayView:
    turn = _looking(way)
    lens = Lens("fisheye")
    place, _, _ = lens.unroll(frames.rotate_inverse(turn, directions[rays]))
    low, high = place.min(axis=0), place.max(axis=0)
    focal = min(FINER / step, (SIZE_MAX - 2 * _EDGE - 2) / max(float((high - low).max()), 1e-9))
    corner = np.floor(low * focal) - _EDGE
    width, height = (int(n) for n in np.ceil(high * focal) + _EDGE - corner)
    u, v = (place * focal - corner - 0.5).T
    left, top = np.floor(u).astype(np.intp), np.floor(v).astype(np.intp)
    right, down = u - left, v - top
    corners = np.stack([(top + j) * width + left + i for j in (0, 1) for i in (0, 1)])
    shares = np.stack([(1 - down) * (1 - right), (1 - down) * right, down * (1 - right), down * right])
    pixels = (focal, focal, -float(corner[0]), -float(corner[1]))
    spread = (focal * step) ** 2
    return RayView(width, height, pixels, lens, turn, spread, rays, corners, shares.astype(np.float32), directions)


def _looking(way: Floats) -> Floats:
    """Attitude of a view along `way`, as upright in the rays' frame as it can be."""
    side = np.eye(3)[int(np.argmin(np.abs(way)))]
    right = np.cross(side, way)
    right = right / np.linalg.norm(right)
    return np.asarray(frames.from_matrix(np.column_stack([right, np.cross(way, right), way])))


def gathered(view: RayView, images: dict[str, NDArray[np.float32]], depth_mode: str) -> dict[str, NDArray[np.float32]]:
    """What the rays see of a view's images: (c, n, 3) and (c, n).

    Colours and opacities are mixed by area, mean depths by area and opacity; a median depth is that of the nearest pixel.
    """
    flat = {name: image.reshape(len(image), -1, *image.shape[3:]) for name, image in images.items()}
    found = {name: _mixed(view, values) for name, values in flat.items() if name != "depth"}
    if "depth" in flat:
        depth = flat["depth"]
        if depth_mode == "median":
            nearest = np.take_along_axis(view.corners, view.shares.argmax(axis=0)[None], axis=0)[0]
            found["depth"] = depth[:, nearest]
        else:
            weight = np.where(np.isfinite(depth), flat["alpha"], np.float32(0.0))
            mass = _mixed(view, weight)
            sums = _mixed(view, weight * np.where(np.isfinite(depth), depth, np.float32(0.0)))
            found["depth"] = np.where(mass > 0.0, sums / np.where(mass > 0.0, mass, np.float32(1.0)), np.float32(np.inf))
    return found


def _mixed(view: RayView, values: NDArray[np.float32]) -> NDArray[np.float32]:
    shares = view.shares if values.ndim == 2 else view.shares[..., None]
    total = values[:, view.corners[0]] * shares[0]
    for corner, share in zip(view.corners[1:], shares[1:], strict=True):
        total += values[:, corner] * share
    return total
