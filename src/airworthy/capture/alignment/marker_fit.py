"""Squares fitted to their corners in images of known poses, and how sure the fit is.

A square has a place and an attitude in the frame of the capture; the edges of all are in proportion to their sides in metres,
so that one number is the scale. Errors that the corners of an image share, those of its pose above all, are counted by image.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from airworthy.capture.alignment.markers import marker_corners
from airworthy.capture.alignment.pose_spread import PoseSpread, pixel_slopes
from airworthy.capture.alignment.shared_errors import CLUSTERS_MIN, left_out, shared_fit
from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayBool, ArrayIndex, ArrayLike

__all__ = ["BLEED", "NORMAL_95", "MarkerSights", "Spread", "Square", "SquareFit", "fit_squares", "image_errors", "scale_bound"]

NORMAL_95 = 1.959964
"""Half the width of the 95 % interval of a normal distribution, in standard deviations."""
_STEPS = 30
_LEAST_NOISE = 0.05
"""Least deviation of corners from where poses, as they may be off, put them [px]; ours: of rendered pictures the best."""
_HUBER = 3.0
"""Standard deviations from which on a corner counts less (Huber, 1964)."""
BLEED = 0.1
"""Standard deviation of how far edges are seen outside of where they are [px]: tone curves of telephones are not that of sRGB,
which is undone before edges are looked for. Ours: the project's film curve moves them by 0.17 px."""
_GROUPS = 8
"""Parts of a walk that are left out one after the other: a reconstruction bends slowly, so neighbours err alike."""


@dataclass(frozen=True, eq=False)
class Square:
    """A square in the frame of the capture."""

    position: Array
    attitude: Array
    edge: float
    """[unit of the capture]."""

    def corners(self) -> Array:
        return np.asarray(frames.rotate(self.attitude, marker_corners(self.edge)) + self.position)


@dataclass(frozen=True, eq=False)
class MarkerSights:
    """Images in which one marker is seen."""

    images: ArrayIndex
    """(n,) their numbers."""
    pixels: Array
    """(n, 4, 2) corners [px]."""
    lens: Array
    """(n, 4) fx, fy, cx, cy [px]."""
    position: Array
    """(n, 3) optical centres [unit of the capture]."""
    attitude: Array
    """(n, 4) camera to capture."""
    root: Array | None = None
    """(n, 8, 8) times the errors of an image's corners (u, v of one after the other) has independent entries, all as large;
    rows of zeros are directions that are not seen. None: the coordinates are independent themselves."""

    def __len__(self) -> int:
        return len(self.images)

    def some(self, keep: ArrayLike) -> MarkerSights:
        """Return those of a mask or of numbers."""
        which = np.asarray(keep)
        parts = {name: getattr(self, name)[which] for name in ("images", "pixels", "lens", "position", "attitude")}
        return MarkerSights(**parts, root=None if self.root is None else self.root[which])

    def rays(self) -> Array:
        """Return unit directions (n, 4, 3) of the corners, frame of the capture."""
        flat = (self.pixels - self.lens[:, None, 2:]) / self.lens[:, None, :2]
        eye = np.concatenate((flat, np.ones((*flat.shape[:2], 1))), axis=-1)
        return np.asarray(frames.rotate(self.attitude[:, None], eye / np.linalg.norm(eye, axis=-1, keepdims=True)))

    def off(self, world: Array) -> tuple[Array, Array]:
        """Return how far points (..., 1 or n, 4, 3) are seen from the corners (..., n, 4, 2) [px], infinite behind a camera;
        and the points in the cameras' frames."""
        eye = frames.rotate_inverse(self.attitude[:, None], world - self.position[:, None])
        with np.errstate(all="ignore"):
            found = eye[..., :2] / eye[..., 2:] * self.lens[:, None, :2] + self.lens[:, None, 2:] - self.pixels
        return np.where(np.isfinite(found) & (eye[..., 2:] > 0.0), found, np.inf), eye


@dataclass(frozen=True, eq=False)
class Spread:
    """How sure the numbers of a fit are: by the scatter of the corners, and by that of whole images."""

    by_corner: Array
    """(p, p) covariance if the errors of all corners are independent."""
    freedom: int
    by_image: Array | None
    """(p, p) covariance from leaving out one image after the other; None of too few images."""
    images: int
    by_shape: float = 0.0
    """Variance of the scale's logarithm by what the corners of a marker are off together in all images, as uneven light has it:
    by how far they are from a square."""
    by_pose: Array | None = None
    """(p, p) covariance by the bend of the reconstruction, which neighbouring images share; None: poses are taken as exact."""

    def half95(self, slope: ArrayLike) -> float:
        """Return half the width of the 95 % interval of a linear function of the numbers, slope (p,): the wider of corners and
        images, and what all images share on top."""
        from scipy.stats import t as student

        g = np.asarray(slope, np.float64)
        widths = [float(student.ppf(0.975, max(self.freedom, 1)) * np.sqrt(max(float(g @ self.by_corner @ g), 0.0)))]
        if self.by_image is not None:
            widths.append(float(student.ppf(0.975, self.images - 1) * np.sqrt(max(float(g @ self.by_image @ g), 0.0))))
        # Of eight coordinates a square has four of its own, so that four are seen; that many degrees of freedom.
        shape = float(student.ppf(0.975, 4) * abs(g[0]) * np.sqrt(self.by_shape))
        bend = 0.0 if self.by_pose is None else NORMAL_95 * np.sqrt(max(float(g @ self.by_pose @ g), 0.0))
        return float(np.linalg.norm((max(widths), shape, bend)))


def image_errors(sights: MarkerSights, square: Square, bleed: float = 0.0) -> Array:
    """Return the root mean square distance of each image's corners from a square whose edges bleed (n,) [px]."""
    off, _ = sights.off(square.corners())
    if bleed:
        off = off + bleed * _outward(off + sights.pixels)
    return np.asarray(np.sqrt(np.square(off).sum(axis=-1).mean(axis=-1)))


@dataclass(frozen=True, eq=False)
class SquareFit:
    """What a fit found."""

    squares: tuple[Square, ...]
    bleed: float
    """How far outside of where they are the edges of the black squares are seen [px]; below 0: inside."""
    spread: Spread
    """Of the logarithm of the units per metre, each square's place [unit] and turn [rad] (frame of the capture), the bleed."""
    error: float
    """Root mean square distance of the corners from the fit [px]."""
    alone: float
    """The same of the fit to poses as they are [px]: how far the images agree among themselves."""


def fit_squares(
    starts: Sequence[tuple[Square, float]],
    sights: Sequence[MarkerSights],
    bleed_sigma: float = BLEED,
    poses: PoseSpread | None = None,
) -> SquareFit:
    """Return the squares that fit all corners best: Gauss-Newton with Huber's weights on a common scale, six numbers of each
    square, and how far edges bleed.

    Args:
        starts: Squares, and their sides [m]; their edges are taken in proportion to these.
        sights: Of each.
        bleed_sigma: Standard deviation of how far edges are seen outside of where they are [px]; 0: they are where they are.
        poses: How sure those of the capture are: images whose poses are surer count more, and a bend that they share is not
            averaged as if each had its own (generalised least squares, Aitken, 1936); None: exact.
    """
    squares, sides, bleed = [square for square, _ in starts], [side for _, side in starts], 0.0
    image = np.concatenate([np.repeat(s.images, 8) for s in sights])
    residual, slope = _linear(squares, sights, bleed)
    seen = np.asarray(slope.any(axis=1), bool)
    image = _neighbours(image[seen]) if any(part.root is not None for part in sights) else np.asarray(image[seen])
    residual, slope = residual[seen], slope[seen]
    for _ in range(_STEPS):
        weight, prior = _weights(residual), _prior(residual, bleed_sigma)
        root = np.sqrt(weight)
        rows = np.vstack((slope * root[:, None], np.append(np.zeros(slope.shape[1] - 1), prior)))
        step = np.linalg.lstsq(rows, -np.append(residual * root, prior * bleed), rcond=None)[0]
        cost = float(weight @ residual**2) + (prior * bleed) ** 2
        for share in (1.0, 0.5, 0.25, 0.0625):
            moved, tried = _moved(squares, sides, share * step[:-1]), bleed + share * float(step[-1])
            new_residual, new_slope = (part[seen] for part in _linear(moved, sights, tried))
            if np.isfinite(new_residual).all() and float(weight @ new_residual**2) + (prior * tried) ** 2 < cost:
                break
        else:
            break
        squares, bleed, residual, slope = moved, tried, new_residual, new_slope
        if np.abs(step).max() < 1e-12:
            break
    alone = _error(squares, sights, bleed)
    if poses is None:
        spread = _spread(residual, slope, image, bleed_sigma)
    else:
        squares, bleed, spread = _with_poses((squares, sides, bleed), sights, (seen, image), bleed_sigma, poses)
    error = _error(squares, sights, bleed)
    shape = 1.0 / sum(1.0 / max(_by_shape(part, square), 1e-12) for part, square in zip(sights, squares, strict=True))
    spread = replace(spread, by_shape=shape if shape > 1e-11 else 0.0)
    return SquareFit(tuple(squares), bleed, spread, error, alone)


def _error(squares: Sequence[Square], sights: Sequence[MarkerSights], bleed: float) -> float:
    off = np.concatenate([image_errors(part, square, bleed) for part, square in zip(sights, squares, strict=True)])
    return float(np.sqrt(np.mean(off**2)))


def _with_poses(
    start: tuple[list[Square], Sequence[float], float],
    sights: Sequence[MarkerSights],
    rows: tuple[ArrayBool, ArrayIndex],
    bleed_sigma: float,
    poses: PoseSpread,
) -> tuple[list[Square], float, Spread]:
    """Return squares, bleed and spread where poses may be off too: to first order about a fit to them as they are.

    Args:
        start: Squares of that fit, their sides, the bleed.
        sights: Of each.
        rows: Which coordinates are seen (m,), and the group of images of each of these.
        bleed_sigma: As of `fit_squares`.
        poses: How sure they are.
    """
    (squares, sides, bleed), (seen, group) = start, rows
    ways = np.concatenate([_ways(square, part, poses) for square, part in zip(squares, sights, strict=True)])[seen]
    # Together they make up what the covariance says; as many as there are coordinates are enough.
    left, size, _ = np.linalg.svd(ways, full_matrices=False)
    ways = left * size
    residual, slope = (part[seen] for part in _linear(squares, sights, bleed))
    sigma, weight = max(_sigma(residual), _LEAST_NOISE), np.ones(len(residual))
    expected = (np.zeros(slope.shape[1]), np.zeros(slope.shape[1]))
    expected[1][-1] = max(bleed_sigma, 1e-6) ** -2
    for _ in range(_STEPS):
        expected[0][-1] = -bleed
        found = shared_fit(residual, slope, ways, weight / sigma**2, expected)
        squares, bleed = _moved(squares, sides, found.step[:-1]), bleed + float(found.step[-1])
        before, sigma = sigma, max(found.noise * sigma, _LEAST_NOISE)
        weight = _weights(found.own, sigma)
        residual, slope = (part[seen] for part in _linear(squares, sights, bleed))
        if np.abs(found.step).max() < 1e-9 and abs(sigma / before - 1.0) < 1e-3:
            break
    by_image, images = left_out(found.rows, found.errors, found.inverse, group)
    count = slope.shape[1]
    by_image = None if by_image is None else by_image[:count, :count]
    return squares, bleed, Spread(found.by_noise, max(int(found.freedom), 1), by_image, images, by_pose=found.by_ways)


def _ways(square: Square, seen: MarkerSights, poses: PoseSpread) -> Array:
    """Return by how much coordinates (8 n, q) are off [px, or deviations] by each independent way in which poses may be off."""
    views = (seen.position[:, None], seen.attitude[:, None], seen.lens[:, None])
    by_view = pixel_slopes(square.corners()[None], *views)[1].reshape(len(seen), 8, -1)
    if seen.root is not None:
        by_view = seen.root @ by_view
    return np.concatenate([rows @ poses.ways(k) for k, rows in zip(seen.images.tolist(), by_view, strict=True)])


def _neighbours(image: ArrayIndex) -> ArrayIndex:
    """Return for each row the number of a group of images that follow each other, whose poses are off alike."""
    numbers = np.unique(image)
    if len(numbers) < 2 * _GROUPS:
        return image
    group = np.arange(len(numbers)) * _GROUPS // len(numbers)
    return np.asarray(group[np.searchsorted(numbers, image)])


def _by_shape(seen: MarkerSights, square: Square) -> float:
    """Return the variance of the scale's logarithm by what corners are off together, from their distances from a square.

    Each corner's two coordinates on the marker are off by a number of their own, the same in all images. Place, turn and scale
    of a square take up four of the eight; as large as the other four are on the mean, so large is the part in the scale.
    Corners that were given have errors of their own only.
    """
    if seen.root is None or len(seen) < CLUSTERS_MIN:
        return 0.0
    corners = square.corners()
    off, eye = seen.off(corners)
    axes = square.edge * frames.to_matrix(square.attitude)[:, :2].T
    z = eye[..., 2:]
    turned = frames.rotate_inverse(seen.attitude[:, None], axes[None])
    # Pixels by a corner's way along the marker's axes, in sides.
    slope = (turned[:, None, :, :2] / z[..., None] - turned[:, None, :, 2:] * (eye[..., None, :2] / z[..., None] ** 2)) * (
        seen.lens[:, None, None, :2]
    )
    by_corner = np.zeros((len(seen), 8, 8))
    for k in range(4):
        by_corner[:, 2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = np.swapaxes(slope[:, k], 1, 2)
    rows, left = (seen.root @ by_corner).reshape(-1, 8), (seen.root @ off.reshape(-1, 8, 1)).ravel()
    matrix = rows.T @ rows
    inverse = np.linalg.pinv(matrix)
    move = -inverse @ (rows.T @ left)
    own = marker_corners(1.0)[:, :2]
    # What turns, moves and grows a square, orthogonal to each other.
    square_like = np.stack(
        (np.tile((1.0, 0.0), 4), np.tile((0.0, 1.0), 4), own.ravel(), np.stack((-own[:, 1], own[:, 0]), axis=-1).ravel())
    )
    square_like = square_like / np.linalg.norm(square_like, axis=1, keepdims=True)
    rest = np.eye(8) - square_like.T @ square_like
    scatter = float(left @ left) / max(len(left) - 8, 1)
    noise = scatter * float(np.trace(rest @ inverse @ rest))
    one = max(float(np.square(rest @ move).sum()) - noise, 0.0) / 4.0
    # The corners are half of a diagonal, sqrt(1/2), from the middle: the scale is the mean of four pairs over 4 / 2.
    return one / 2.0


def scale_bound(square: Square, sights: MarkerSights, noise: float) -> float:
    """Return the least standard deviation of a scale by a marker in images of exact poses, as a share (Cramer and Rao's bound).

    Args:
        square: Where it lies.
        sights: Of it; only from where is used.
        noise: Standard deviation of each coordinate of its corners [px]; edges are seen where they are.
    """
    # Without the last column, that of the bleed.
    slope = _linear([square], [replace(sights, root=None)], 0.0)[1][:, :-1]
    return noise * float(np.sqrt(np.linalg.inv(slope.T @ slope)[0, 0]))


def _prior(residual: Array, bleed_sigma: float) -> float:
    """Weight of the bleed beside a residual [px]: as one more observation that it is 0."""
    return _sigma(residual) / max(bleed_sigma, 1e-6)


def _sigma(residual: Array) -> float:
    # 1.4826: from the median of absolute values to a standard deviation.
    return 1.4826 * float(np.median(np.abs(residual))) + 1e-9


def _moved(squares: Sequence[Square], sides: Sequence[float], step: Array) -> list[Square]:
    edge = squares[0].edge / sides[0] * float(np.exp(np.clip(step[0], -1.0, 1.0)))
    return [
        Square(
            square.position + part[:3],
            frames.normalize(frames.multiply(frames.from_rotation_vector(part[3:]), square.attitude)),
            edge * side,
        )
        for square, side, part in zip(squares, sides, step[1:].reshape(-1, 6), strict=True)
    ]


def _linear(squares: Sequence[Square], sights: Sequence[MarkerSights], bleed: float) -> tuple[Array, Array]:
    """Residuals (m,) of all corners [px, or deviations where these are known], and their slopes (m, 2 + 6 markers)."""
    residuals, slopes = [], []
    for index, (square, seen) in enumerate(zip(squares, sights, strict=True)):
        arm = frames.rotate(square.attitude, marker_corners(square.edge))
        off, eye = seen.off(arm + square.position)
        x, y, z = np.moveaxis(eye, -1, 0)
        zero = np.zeros_like(x)
        across = np.stack((1.0 / z, zero, -x / z**2), axis=-1) * seen.lens[:, None, :1]
        down = np.stack((zero, 1.0 / z, -y / z**2), axis=-1) * seen.lens[:, None, 1:2]
        # Slopes with respect to a point of the capture's frame: those in the camera, turned.
        point = frames.rotate(seen.attitude[:, None, None], np.stack((across, down), axis=2))
        grown = (point * arm[None, :, None]).sum(axis=-1, keepdims=True)
        part = np.zeros((*point.shape[:-1], 2 + 6 * len(squares)))
        part[..., :1] = grown
        part[..., 1 + 6 * index : 4 + 6 * index] = point
        part[..., 4 + 6 * index : 7 + 6 * index] = np.cross(arm[None, :, None], point)
        outward = _outward(off + seen.pixels)
        part[..., -1] = outward
        left, rows = (off + bleed * outward).reshape(-1, 8, 1), part.reshape(len(seen), 8, -1)
        if seen.root is not None:
            left, rows = seen.root @ left, seen.root @ rows
        residuals.append(left.ravel())
        slopes.append(rows.reshape(-1, rows.shape[-1]))
    return np.concatenate(residuals), np.concatenate(slopes)


def _outward(corners: Array) -> Array:
    """Return by how much corners (n, 4, 2) move [px] where all edges of their square move outwards by a pixel.

    Of squares as fitted: of corners as found, their noise would be taken for bleeding.
    """
    with np.errstate(all="ignore"):
        along = np.roll(corners, -1, axis=1) - corners
        along = along / np.linalg.norm(along, axis=-1, keepdims=True)
        # On screen, v down, corners go round clockwise: outwards is to the left of the way.
        after = np.stack((along[..., 1], -along[..., 0]), axis=-1)
        before = np.roll(after, 1, axis=1)
        moved = (after + before) / np.maximum(1.0 + (after * before).sum(axis=-1, keepdims=True), 0.05)
    return np.nan_to_num(moved)


def _weights(residual: Array, sigma: float | None = None) -> Array:
    """Huber's weight of each coordinate."""
    limit = _HUBER * (_sigma(residual) if sigma is None else sigma)
    return np.asarray(np.minimum(1.0, limit / np.maximum(np.abs(residual), limit)))


def _spread(residual: Array, slope: Array, image: ArrayIndex, bleed_sigma: float) -> Spread:
    """Covariances of a fit: of independent errors, and by images (`left_out`)."""
    root = np.sqrt(_weights(residual))
    rows, off = np.asarray(slope * root[:, None]), np.asarray(residual * root)
    matrix = rows.T @ rows
    matrix[-1, -1] += _prior(residual, bleed_sigma) ** 2
    inverse = np.asarray(np.linalg.pinv(matrix), np.float64)
    freedom = len(residual) - slope.shape[1]
    by_corner = inverse * float(off @ off) / max(freedom, 1)
    by_image, images = left_out(rows, off, inverse, image)
    return Spread(by_corner, freedom, by_image, images)
