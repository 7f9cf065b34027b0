"""How sure the poses of a reconstruction are, by what its points leave over: the whole may bend, and all that is measured in it
bends with it.

The normal equations of the bundle adjustment are built again from its observations, points eliminated (Triggs, McLauchlan,
Hartley and Fitzgibbon, 2000), in the frame in which the centres as a whole neither move, turn nor grow. How much the poses
are off is told by the scatter of whole points, whose observations err together, not by that of single observations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from airworthy.capture.record import CaptureImages
from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayIndex, ArrayLike
from airworthy.core.errors import AirworthyError

__all__ = ["BEYOND", "PoseSpread", "pixel_slopes", "pose_spread"]

_OWN = 6
"""Numbers of a pose: its centre's way, its turn about the axes of the capture."""
_LENS = 2
"""Numbers of a lens: focal length [px], first radial coefficient."""
_AT_ONCE = 500
"""Points whose rows are held in memory together."""
BEYOND = 2.5
"""Deviations that poses have against those told by the points' scatter. Ours: of six reconstructions of three rendered halls
(60 pictures of 640 or 960 px) focal lengths were off 2.0 times as much, root mean square, the thirty ways in which the whole
bends most 1.8 times, and all ways 1.5 times. Lengths rest on the first; and six are few, so that 2.0 is widened as Student's t
of six is against the normal distribution (2.45 over 1.96). Neighbouring points that err together are not the cause: scatter by
groups of 4 to 64 of them is no larger."""
_LEAST = 3
"""Observations of a point that say something of poses beside the point itself."""


@dataclass(frozen=True, eq=False)
class PoseSpread:
    """How sure poses and lenses are."""

    covariance: Array
    """(6 n + 2 m,) squared: each pose's centre [unit] and turn [rad] (frame of the capture), each lens's focal length [px] and
    first radial coefficient."""
    lens: ArrayIndex
    """(n,) number of each image's lens."""

    @property
    def centres(self) -> Array:
        """(n, 3) standard deviations of the centres [unit]."""
        own = np.diagonal(self.covariance)[: _OWN * len(self.lens)].reshape(-1, _OWN)
        return np.sqrt(np.maximum(own[:, :3], 0.0))

    @cached_property
    def _root(self) -> Array:
        """(6 n + 2 m, q) independent ways in which all may be off, as far as one standard deviation."""
        # Numbers of all sizes: brought to a diagonal of ones first.
        size = np.sqrt(np.maximum(np.diagonal(self.covariance), 1e-300))
        values, vectors = np.linalg.eigh(self.covariance / np.outer(size, size))
        kept = values > 1e-12 * values[-1]
        return np.asarray(size[:, None] * vectors[:, kept] * np.sqrt(values[kept]))

    def ways(self, image: int) -> Array:
        """Return how far an image's centre, turn, focal length and radial coefficient (8, q) are off by each independent way,
        of one standard deviation; the ways are the same for all images."""
        focal = _OWN * len(self.lens) + _LENS * int(self.lens[image])
        return self._root[[*range(_OWN * image, _OWN * image + _OWN), focal, focal + 1]]


def pixel_slopes(points: Array, position: Array, attitude: Array, lens: Array) -> tuple[Array, Array]:
    """Return how pixels move with what is seen and with the camera.

    Args:
        points: (..., 3) frame of the capture.
        position: (..., 3) optical centres, as the points.
        attitude: (..., 4) camera to capture.
        lens: (..., 4) fx, fy, cx, cy [px].

    Returns:
        (..., 2, 3) by the point [px / unit]; (..., 2, 8) by the camera's centre, turn (frame of the capture), focal length and
        first radial coefficient, of a lens that hardly bends.
    """
    arm = points - position
    x, y, z = np.moveaxis(frames.rotate_inverse(attitude, arm), -1, 0)
    flat = np.stack((x / z, y / z), axis=-1)
    zero = np.zeros_like(x)
    across = np.stack((1.0 / z, zero, -x / z**2), axis=-1) * lens[..., :1]
    down = np.stack((zero, 1.0 / z, -y / z**2), axis=-1) * lens[..., 1:2]
    # Slopes in the camera's frame, turned into the capture's.
    point = frames.rotate(attitude[..., None, :], np.stack((across, down), axis=-2))
    turn = np.cross(point, arm[..., None, :])
    radial = lens[..., :2] * flat * np.square(flat).sum(axis=-1, keepdims=True)
    return point, np.concatenate((-point, turn, flat[..., None], radial[..., None]), axis=-1)


def pose_spread(
    images: CaptureImages, picture: ArrayLike, position: ArrayLike, leftover: ArrayLike, loss: float
) -> PoseSpread | None:
    """Return how sure poses are.

    Args:
        images: The capture, in any frame.
        picture: (k,) number of each observation's image.
        position: (k, 3) of its point, frame of the images; observations of one point have the same numbers.
        leftover: (k, 2) how far it is off [px].
        loss: Of Cauchy, under which the poses were found [px].

    Returns:
        None where there are too few observations to tell.

    Raises:
        AirworthyError: Shapes do not fit together.
    """
    k, p, r = np.asarray(picture, np.intp), np.asarray(position, np.float64), np.asarray(leftover, np.float64)
    if p.shape != (len(k), 3) or r.shape != (len(k), 2):
        raise AirworthyError(f"{len(k)} observations have places {p.shape} and leftovers {r.shape}; expected (k, 3), (k, 2).")
    _, point, count = np.unique(p, axis=0, return_inverse=True, return_counts=True)
    point = point.reshape(-1)
    good = count[point] >= _LEAST
    k, p, r = k[good], p[good], r[good]
    point = np.unique(point[good], return_inverse=True)[1].reshape(-1)
    _, lens = np.unique(np.round(images.intrinsics, 6), axis=0, return_inverse=True)
    lens = lens.reshape(-1)
    if len(np.unique(k)) < len(images) or 2 * len(k) <= _OWN * len(images) + 3 * (int(point.max(initial=0)) + 1):
        return None
    by_pose, by_point = _rows(images, k, p)
    normal, scatter = _reduced(len(images), lens, k, point, (by_pose, by_point, r), loss)
    gauge = _gauge(images, len(normal))
    zero = np.zeros((gauge.shape[1], gauge.shape[1]))
    # Numbers of all sizes (pixels, radians, units): brought to a diagonal of ones before it is inverted.
    size = np.sqrt(np.maximum(np.diagonal(normal), 1e-300))
    own = gauge / size[:, None]
    own = np.linalg.qr(own)[0]
    inverse = np.linalg.pinv(np.block([[normal / np.outer(size, size), own], [own.T, zero]]), rcond=1e-13)
    inverse = inverse[: len(normal), : len(normal)] / np.outer(size, size)
    scatter = _steadied(normal, inverse, scatter, int(point.max()) + 1)
    return PoseSpread(BEYOND**2 * inverse @ scatter @ inverse.T, lens)


def _rows(images: CaptureImages, k: ArrayIndex, points: Array) -> tuple[Array, Array]:
    """Slopes of each observation by pose, focal length and radial coefficient (k, 2, 8), and by its point (k, 2, 3)."""
    place, lens = np.asarray(images.position, np.float64)[k], np.asarray(images.intrinsics, np.float64)[k]
    by_point, by_pose = pixel_slopes(points, place, frames.normalize(images.attitude)[k], lens)
    return by_pose, by_point


def _reduced(
    count: int, lens: ArrayIndex, k: ArrayIndex, point: ArrayIndex, rows: tuple[Array, Array, Array], loss: float
) -> tuple[Array, Array]:
    """Return the normal matrix of poses and lenses without the points, and the scatter of its gradient over the points."""
    by_pose, by_point, r = rows
    size = np.square(r).sum(axis=1) / loss**2
    weight = 1.0 / (1.0 + size)
    # The curvature of Cauchy's loss, trace over two, is less than its weight; on the mean of all (Huber, 1964).
    curved = float((weight**2).sum() / weight.sum())
    root = np.sqrt(weight)[:, None]
    a, b, e = by_pose * root[..., None], by_point * root[..., None], r * root
    total = _OWN * count + _LENS * (int(lens.max()) + 1)
    column = np.concatenate(
        (_OWN * k[:, None] + np.arange(_OWN), _OWN * count + _LENS * lens[k][:, None] + np.arange(_LENS)), axis=1
    )
    normal, scatter = np.zeros((total, total)), np.zeros((total, total))
    np.add.at(normal, (column[:, :, None], column[:, None, :]), np.swapaxes(a, 1, 2) @ a)
    points = int(point.max()) + 1
    own, both, left = np.zeros((points, 3, 3)), np.swapaxes(b, 1, 2) @ a, np.zeros((points, 3))
    np.add.at(own, point, np.swapaxes(b, 1, 2) @ b)
    np.add.at(left, point, np.einsum("kij,ki->kj", b, e))
    values, vectors = np.linalg.eigh(own)
    # Along a direction that a point's observations do not tell it says nothing of poses either.
    half = vectors / np.sqrt(np.maximum(values, 1e-12 * values[:, -1:]))[:, None, :]
    left = np.einsum("pij,pi->pj", half, left)
    both = np.swapaxes(half[point], 1, 2) @ both
    gradient = np.einsum("kij,ki->kj", a, e)
    order = np.argsort(point, kind="stable")
    for first in range(0, points, _AT_ONCE):
        some = order[slice(*np.searchsorted(point[order], (first, first + _AT_ONCE)))]
        which, length = point[some] - first, min(_AT_ONCE, points - first)
        crossed, pulls = np.zeros((length, 3, total)), np.zeros((length, total))
        np.add.at(crossed, (which[:, None, None], np.arange(3)[:, None], column[some][:, None, :]), both[some])
        np.add.at(pulls, (which[:, None], column[some]), gradient[some])
        pulls -= np.einsum("pij,pi->pj", crossed, left[first : first + length])
        flat = crossed.reshape(-1, total)
        normal -= flat.T @ flat
        scatter += pulls.T @ pulls
    return curved * normal, scatter


def _steadied(normal: Array, inverse: Array, scatter: Array, points: int) -> Array:
    """Return the scatter of the gradient, drawn towards what independent observations would have, as large on the whole.

    A scatter over a few points knows hardly more directions than there are points, and weights by it follow its chance. As if
    as many points as there are numbers had been seen to scatter as the normal matrix says (the mean of a covariance under the
    inverse Wishart distribution): thousands of points decide by themselves.
    """
    numbers = float((inverse * normal).sum())
    expected = float((inverse * scatter).sum()) / max(numbers, 1.0) * normal
    return (points * scatter + numbers * expected) / (points + numbers)


def _gauge(images: CaptureImages, total: int) -> Array:
    """Ways of the centres (total, 7) under which the whole moves, turns and grows: these the covariance leaves out."""
    arm = images.position - images.position.mean(axis=0)
    ways = np.zeros((len(images), _OWN, 7))
    ways[:, :3, :3] = np.eye(3)
    for axis in range(3):
        ways[:, :3, 3 + axis] = np.cross(np.eye(3)[axis], arm)
    ways[:, :3, 6] = arm
    result = np.zeros((total, 7))
    result[: _OWN * len(images)] = ways.reshape(-1, 7)
    return result
