"""The kernels of `avoid` in NumPy, float64: what they compute, to be read, and to compare them with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayLike

__all__ = ["AvoidObstacles", "depths", "nearest", "set_trunks"]


@dataclass(frozen=True)
class AvoidObstacles:
    """Of one environment, where they are in it; n, m, k of them."""

    trunks: Array
    """x, y, radius [m], (n, 3)."""
    balls: Array
    """x, y, z, radius [m], (m, 4)."""
    boxes: Array
    """Middle, half edges [m], (k, 6)."""
    side: float
    """Of the square that repeats itself [m]."""

    def about(self, point: Array) -> tuple[Array, Array, Array]:
        """Return middles of trunks (n, 2), balls (m, 3) and boxes (k, 3), of each the image nearest to a point, relative to
        it."""
        return (
            self._image(self.trunks[:, :2] - point[:2]),
            np.concatenate([self._image(self.balls[:, :2] - point[:2]), self.balls[:, 2:3] - point[2]], 1),
            np.concatenate([self._image(self.boxes[:, :2] - point[:2]), self.boxes[:, 2:3] - point[2]], 1),
        )

    def _image(self, away: Array) -> Array:
        return away - self.side * np.floor(away / self.side + 0.5)


def depths(o: AvoidObstacles, position: ArrayLike, camera: ArrayLike, rays: ArrayLike, reach: float, spread: float) -> Array:
    """Return the depth along the optical axis [m] of each ray, (ray,).

    Args:
        o: Obstacles.
        position: Of the camera, world [m], (3,).
        camera: Its forward, left and up axes, world, (3, 3).
        rays: Left and up of each ray per metre of depth, (2, ray).
        reach: Farther returns are at this depth [m].
        spread: Half a pixel per metre of depth: what lies within it of a ray is met.
    """
    p, axes, table = (np.asarray(a, np.float64) for a in (position, camera, rays))
    d = axes[0] + table[0][:, None] * axes[1] + table[1][:, None] * axes[2]
    t = np.full(len(d), float(reach))
    # The ground, seen by the lower edge of a pixel.
    down = d[:, 2] - spread
    with np.errstate(divide="ignore"):
        t = np.minimum(t, np.where(down < 0.0, np.maximum(-p[2] / down, 0.0), np.inf))
    trunks, balls, boxes = o.about(p)
    for middle, radius in zip(trunks, o.trunks[:, 2], strict=True):
        t = np.minimum(t, _round(d[:, :2], middle, radius, spread))
    for middle, radius in zip(balls, o.balls[:, 3], strict=True):
        t = np.minimum(t, _round(d, middle, radius, spread))
    for middle, half in zip(boxes, o.boxes[:, 3:], strict=True):
        grown = half + spread * np.linalg.norm(middle)
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.stack([(middle - grown) / d, (middle + grown) / d])
        enter, leave = ends.min(0).max(1), ends.max(0).min(1)
        t = np.minimum(t, np.where((enter < leave) & (leave > 0.0), np.maximum(enter, 0.0), np.inf))
    return t


def _round(d: Array, middle: Array, radius: float, spread: float) -> Array:
    """Depth at which rays meet a ball, or, in the plane, a trunk; infinite where they do not."""
    square = (d * d).sum(1)
    # Depth at which the ray passes nearest: d is one long in depth, not in length.
    along = (d @ middle) / square
    miss = np.sqrt(np.maximum(middle @ middle - along**2 * square, 0.0))
    # Half a pixel grows with depth: so much nearer may the ray's edge pass.
    beside = np.maximum(miss - spread * along, 0.0)
    left = radius**2 - beside**2
    met = (left > 0.0) & (along > 0.0) & (radius > 0.0)
    return np.where(met, np.maximum(along - np.sqrt(np.maximum(left, 0.0) / square), 0.0), np.inf)


def nearest(o: AvoidObstacles, point: ArrayLike) -> tuple[float, Array]:
    """Return the signed distance [m] of a point to what is nearest, ground included, and the unit vector along which it grows.

    Args:
        o: Obstacles.
        point: World [m], (3,).
    """
    p = np.asarray(point, np.float64)
    trunks, balls, boxes = o.about(p)
    found = [(float(p[2]), np.array([0.0, 0.0, 1.0]))]
    for middle, radius in zip(trunks, o.trunks[:, 2], strict=True):
        length = float(np.hypot(*middle))
        found.append((length - radius, np.array([*(-middle / length), 0.0])))
    for middle, radius in zip(balls, o.balls[:, 3], strict=True):
        length = float(np.linalg.norm(middle))
        found.append((length - radius, -middle / length))
    for middle, half in zip(boxes, o.boxes[:, 3:], strict=True):
        beyond, sign = np.abs(middle) - half, -np.sign(middle)
        outside = np.maximum(beyond, 0.0)
        length = float(np.linalg.norm(outside))
        # Inside, the way out is through the face that is nearest.
        axis = np.eye(3)[int(beyond.argmax())]
        found.append((length, sign * outside / length) if length > 0.0 else (float(beyond.max()), sign * axis))
    return min(found, key=lambda item: item[0])


def set_trunks(candidates: ArrayLike, room: int, side: float, gap: float) -> Array:
    """Return trunks (n, 3) of one place, n at most `room`: candidates that leave gaps to all before them, in order.

    Args:
        candidates: x, y, radius [m], (tried, 3).
        room: Most of them.
        side: Of the square that repeats itself [m].
        gap: Least distance between two surfaces [m].
    """
    found: list[Array] = []
    for tried in np.asarray(candidates, np.float64):
        before = np.array(found).reshape(-1, 3)
        apart = np.abs(before[:, :2] - tried[:2])
        # Places repeat themselves: the other way round may be shorter.
        apart = np.minimum(apart, side - apart)
        if (np.hypot(*apart.T) >= gap + tried[2] + before[:, 2]).all():
            found.append(tried)
        if len(found) == room:
            break
    return np.array(found).reshape(-1, 3)
