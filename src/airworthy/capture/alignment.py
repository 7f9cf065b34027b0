"""From the frame of a reconstruction to that of a marker on the floor: metric, its centre the origin, z up.

Similarities p -> s R p + t between two sets of the same points: closed form, and against outliers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.capture.markers import SIDE, MarkerPose, detect_marker, marker_corners, marker_poses, refined_corners
from airworthy.capture.record import CaptureImages
from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayIndex, ArrayLike
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.jobs.progress import progress
from airworthy.scenes.splats import Splats, transformed

__all__ = [
    "Alignment",
    "FoundSimilarity",
    "Similarity",
    "aligned",
    "best_similarity",
    "corners_by_name",
    "find_alignment",
    "find_markers",
    "find_similarity",
]


_LINE = 1e-6
"""Second over first singular value of three points that count as lying on a line."""
_INLIER_ROUNDS = 10


@dataclass(frozen=True, eq=False)
class Similarity:
    """p -> scale R(rotation) p + translation."""

    rotation: Array
    """(4,) x, y, z, w."""
    translation: Array
    """(3,)"""
    scale: float

    def points(self, points: ArrayLike) -> Array:
        """Return points (..., 3) in the new frame."""
        return self.scale * frames.rotate(self.rotation, points) + self.translation

    def splats(self, splats: Splats) -> Splats:
        """Return splats in the new frame, harmonics turned with them."""
        return transformed(splats, self.rotation, self.translation, self.scale)

    @property
    def inverse(self) -> Similarity:
        """The way back."""
        turn = frames.conjugate(self.rotation)
        return Similarity(turn, -frames.rotate(turn, self.translation) / self.scale, 1.0 / self.scale)


@dataclass(frozen=True, eq=False)
class FoundSimilarity:
    """A similarity, and how well it fits."""

    similarity: Similarity
    inliers: ArrayBool
    """(n,) points within the tolerance."""
    residual: float
    """Root mean square of the inliers' distances [m]."""

    @property
    def inlier_ratio(self) -> float:
        """Share of the points that are within the tolerance."""
        return float(self.inliers.mean())


def best_similarity(source: ArrayLike, target: ArrayLike) -> Similarity:
    """Return the similarity from source to target points, (n, 3) each, n >= 3, of least squares (Umeyama, 1991, equations 40
    to 42).

    Raises:
        AirworthyError: Points are missing, not finite, or all on a line.
    """
    x, y = np.asarray(source, np.float64), np.asarray(target, np.float64)
    if x.shape != y.shape or x.ndim != 2 or x.shape[1:] != (3,) or len(x) < 3 or not np.isfinite([x, y]).all():
        raise AirworthyError(f"A similarity needs 3 or more pairs of finite points; {x.shape} and {y.shape} arrived.")
    rotation, spread = _rotations(x[None] - x.mean(axis=0), y[None] - y.mean(axis=0))
    if not spread[0] > _LINE:
        raise AirworthyError("The points of a similarity lie on a line, about which anything may turn; take others.")
    a, b = x - x.mean(axis=0), y - y.mean(axis=0)
    scale = float((b * (a @ rotation[0].T)).sum() / (a * a).sum())
    return Similarity(frames.from_matrix(rotation[0]), y.mean(axis=0) - scale * rotation[0] @ x.mean(axis=0), scale)


def find_similarity(
    source: ArrayLike,
    target: ArrayLike,
    tolerance: float = 0.05,
    trials: int = 1000,
    seed: int = 0,
    least: float = 0.5,
) -> FoundSimilarity:
    """Return the similarity that most pairs of points agree on, fitted to these (random sample consensus, Fischler and Bolles,
    1981).

    Args:
        source: (n, 3)
        target: (n, 3) [m]
        tolerance: Largest distance of a point that agrees [m].
        trials: Samples of three pairs.
        seed: Of the samples.
        least: Smallest share of points that must agree.

    Raises:
        AirworthyError: Under 3 pairs, all on a line, or fewer agree.
    """
    x, y = np.asarray(source, np.float64), np.asarray(target, np.float64)
    if len(x) < 3 or x.shape != y.shape or x.shape[1:] != (3,) or not np.isfinite([x, y]).all():
        raise AirworthyError(f"A similarity needs 3 or more pairs of finite points; {x.shape} and {y.shape} arrived.")
    inliers = _best_sample(x, y, tolerance, trials, seed)
    for _ in range(_INLIER_ROUNDS):
        if np.count_nonzero(inliers) < 3:
            break
        found = best_similarity(x[inliers], y[inliers])
        off = np.linalg.norm(found.points(x) - y, axis=-1)
        before, inliers = inliers, off <= tolerance
        # The same points give the same fit: nothing would change any more.
        if (before == inliers).all():
            break
    count = np.count_nonzero(inliers)
    if count < max(3, least * len(x)):
        raise AirworthyError(
            f"Only {count} of {len(x)} places agree on a similarity within {tolerance:g} m, and {least:.0%} are needed:"
            " check the side of the marker, and that it lay still."
        )
    return FoundSimilarity(found, inliers, float(np.sqrt(np.square(off[inliers]).mean())))


def _best_sample(x: Array, y: Array, tolerance: float, trials: int, seed: int) -> ArrayBool:
    """Return who agrees with the best of the samples: the most, then the closest."""
    rng = np.random.default_rng(seed)
    # The three least of random numbers are three different points, all trials at once.
    chosen = np.argsort(rng.random((trials, len(x))), axis=1)[:, :3]
    a, b = x[chosen], y[chosen]
    middle_a, middle_b = a.mean(axis=1), b.mean(axis=1)
    a, b = a - middle_a[:, None], b - middle_b[:, None]
    rotation, spread = _rotations(a, b)
    with np.errstate(all="ignore"):
        scale = np.sqrt((b * b).sum(axis=(1, 2)) / (a * a).sum(axis=(1, 2)))
    usable = (spread > _LINE) & np.isfinite(scale) & (scale > 0.0)
    if not usable.any():
        raise AirworthyError("The places from which the marker was seen lie on a line; film it from all around.")
    moved = np.einsum("kij,nj->kni", scale[usable, None, None] * rotation[usable], x)
    moved += (middle_b[usable] - np.einsum("kij,kj->ki", scale[usable, None, None] * rotation[usable], middle_a[usable]))[
        :, None
    ]
    off = np.linalg.norm(moved - y, axis=-1)
    agree = off <= tolerance
    error = np.where(agree, off, 0.0).sum(axis=1) / np.maximum(agree.sum(axis=1), 1)
    return np.asarray(agree[np.lexsort((error, -agree.sum(axis=1)))[0]])


def _rotations(a: Array, b: Array) -> tuple[Array, Any]:
    """Rotations (k, 3, 3) that bring centred points a (k, n, 3) nearest to b; and how far the points are from a line, (k,)."""
    left, values, right = np.linalg.svd(np.swapaxes(b, 1, 2) @ a)
    sign = np.ones((len(a), 3))
    sign[:, 2] = np.sign(np.linalg.det(left) * np.linalg.det(right))
    return (left * sign[:, None]) @ right, values[:, 1] / np.maximum(values[:, 0], 1e-300)


TOLERANCE = 0.05
"""Distance within which a camera's places by marker and by reconstruction agree [m]."""
TRIALS = 1000
_STEPS, _ROUNDS = 20, 5
_FAR, _NEAR = 3.0, 2.0
"""Corners of an image are left out beyond so many times the median of the images, and never within so many pixels."""


@dataclass(frozen=True, eq=False)
class Alignment:
    """The similarity from a capture's frame to the marker's, and how well it fits."""

    similarity: Similarity
    positions: FoundSimilarity
    """What the cameras' places alone say."""
    images: ArrayIndex
    """Numbers of the images with the marker."""
    agreeing: ArrayIndex
    """Those of them whose corners it was refined on."""
    error: float
    """Root mean square distance of these corners from where the similarity puts them [px]."""
    side: float
    """Of the marker [m]."""

    def record(self) -> dict[str, Any]:
        """Return figures for files and tables."""
        return {
            "scale": self.similarity.scale,
            "rotation": self.similarity.rotation.tolist(),
            "translation": self.similarity.translation.tolist(),
            "marker_side_m": self.side,
            "images_with_marker": len(self.images),
            "images_agreeing": len(self.agreeing),
            "inlier_ratio": self.positions.inlier_ratio,
            "residual_m": self.positions.residual,
            "corner_error_px": self.error,
        }


def find_markers(images: CaptureImages, number: int = 0, quiet: bool = True) -> dict[int, Array]:
    """Return corners (4, 2) [px] by the number of the image, of all images that show the marker; needs OpenCV.

    Args:
        images: Of the capture.
        number: Of the marker in its dictionary.
        quiet: Without a bar of progress.
    """
    found = {}
    for k in progress(range(len(images)), "Looking for the marker", quiet=quiet):
        corners = detect_marker(images.rgb[k], number)
        if corners is not None:
            found[k] = corners
    return found


def find_alignment(
    images: CaptureImages,
    corners: Mapping[int, ArrayLike],
    side: float = SIDE,
    tolerance: float = TOLERANCE,
    trials: int = TRIALS,
    seed: int = 0,
) -> Alignment:
    """Return the similarity that brings a capture into the frame of a marker.

    Of every image with the marker the camera's place in the marker's frame follows from its corners. Most of these places and
    those of the capture agree on a similarity (random samples of three), which is then refined on the corners themselves,
    without the images in which they are three times as far off as in most.

    Args:
        images: The capture.
        corners: (4, 2) [px] by the number of the image; upper left, upper right, lower right, lower left.
        side: Of the marker's black square [m].
        tolerance: Distance within which places agree [m].
        trials: Samples.
        seed: Of the samples.

    Raises:
        AirworthyError: Under 3 images show the marker, under half agree, or all were taken from places on a line.
    """
    numbers = np.array(sorted(corners), np.intp)
    if len(numbers) < 3:
        raise AirworthyError(
            f"The marker is seen in {len(numbers)} images, and 3 are needed, better 20 from all around: film it for longer,"
            " or check the marker's number."
        )
    if numbers.min() < 0 or numbers.max() >= len(images):
        raise AirworthyError(f"Corners are given of the image {numbers.max()}, and there are {len(images)}.")
    poses: list[MarkerPose] = [marker_poses(corners[k], images.intrinsics[k], side)[0] for k in numbers]
    by_marker = np.array([pose.camera[0] for pose in poses])
    found = find_similarity(images.position[numbers], by_marker, tolerance, trials, seed)
    # In metres: the capture's own unit may be anything.
    _check_line(images.position[numbers][found.inliers] * found.similarity.scale, tolerance)
    # From here on the corners themselves decide: places of cameras are worse the flatter the marker is seen.
    agreeing = numbers[found.inliers]
    similarity = found.similarity
    for _ in range(_ROUNDS):
        pixels = np.array([np.asarray(corners[k], np.float64) for k in agreeing])
        similarity, errors = _on_corners(images, agreeing, pixels, side, similarity)
        # The median, not the mean: a few images with a wrong corner would raise a mean until they pass themselves.
        good = errors <= max(_FAR * float(np.median(errors)), _NEAR)
        if good.all() or np.count_nonzero(good) < 3:
            break
        agreeing = agreeing[good]
    return Alignment(similarity, found, numbers, agreeing, float(np.sqrt(np.square(errors).mean())), side)


def aligned(images: CaptureImages, alignment: Alignment) -> CaptureImages:
    """Return the capture in the frame of the marker: metric, z up."""
    found = alignment.similarity
    note = (
        f"aligned to a marker of {alignment.side:g} m seen in {len(alignment.images)} images: scale {found.scale:.6g},"
        f" {alignment.positions.inlier_ratio:.0%} of the places agree, {1000 * alignment.positions.residual:.1f} mm,"
        f" corners {alignment.error:.2f} px"
    )
    return images.moved(found.rotation, found.translation, found.scale, note, metric=True)


def corners_by_name(images: CaptureImages, table: Mapping[str, Any], refine: bool = True) -> dict[int, Array]:
    """Return corners by the number of the image, of those by its name.

    Args:
        images: The capture.
        table: Four pairs [px] by name: upper left, upper right, lower right, lower left.
        refine: Move them to where the edges of the square meet in the image.

    Raises:
        AirworthyError: There is no such image, or its corners are not four pairs of numbers.
    """
    number = {name: k for k, name in enumerate(images.names)}
    result = {}
    for name, value in table.items():
        if name not in number:
            raise unknown_name("image", name, number)
        try:
            array = np.array(value, np.float64)
        except (TypeError, ValueError, OverflowError):
            array = np.zeros(0)
        if array.shape != (4, 2) or not np.isfinite(array).all():
            raise AirworthyError(f"The corners of the image {name!r} are not four pairs of numbers [px].")
        k = number[name]
        result[k] = refined_corners(images.rgb[k], array) if refine else array
    return result


def _check_line(positions: ArrayAny, tolerance: float) -> None:
    """Refuse places on a line, about which the scene could turn: across it they are no further apart than they may be off."""
    across = np.linalg.svd(positions - positions.mean(axis=0), compute_uv=False)[1] / np.sqrt(len(positions))
    if across < 0.5 * tolerance:
        raise AirworthyError(
            f"The places from which the marker was seen lie within {across:.3f} m of a line: film it from all around."
        )


def _on_corners(
    images: CaptureImages, numbers: ArrayIndex, pixels: Array, side: float, start: Similarity
) -> tuple[Similarity, Array]:
    """Gauss-Newton on all corners (n, 4, 2): seven numbers, the place of the marker in the frame of the capture.

    Returns:
        The similarity, and the root mean square distance of the corners of each image (n,) [px].
    """
    square, back = marker_corners(side), start.inverse
    rotation, offset, scale = back.rotation, back.translation, back.scale
    lens, position, turn = images.intrinsics[numbers], images.position[numbers], images.attitude[numbers]

    def residuals(rotation: Array, offset: Array, scale: float) -> tuple[Array, Array]:
        world = scale * frames.rotate(rotation, square) + offset
        eye = frames.rotate_inverse(turn[:, None], world[None] - position[:, None])
        with np.errstate(all="ignore"):
            found = eye[..., :2] / eye[..., 2:] * lens[:, None, :2] + lens[:, None, 2:] - pixels
        return np.where(np.isfinite(found) & (eye[..., 2:] > 0.0), found, 1e6), eye

    error, eye = residuals(rotation, offset, scale)
    for _ in range(_STEPS):
        arm = scale * frames.rotate(rotation, square)
        x, y, z = np.moveaxis(eye, -1, 0)
        zero = np.zeros_like(x)
        across = np.stack((1.0 / z, zero, -x / z**2), axis=-1) * lens[:, None, :1]
        down = np.stack((zero, 1.0 / z, -y / z**2), axis=-1) * lens[:, None, 1:2]
        # Slopes with respect to a point of the world: those in the camera, turned.
        slope = frames.rotate(turn[:, None, None], np.stack((across, down), axis=2))
        turned = np.cross(arm[None, :, None], slope)
        grown = (slope * arm[None, :, None]).sum(axis=-1, keepdims=True)
        matrix = np.concatenate((slope, turned, grown), axis=-1).reshape(-1, 7)
        step = np.linalg.lstsq(matrix, -error.ravel(), rcond=None)[0]
        new = frames.normalize(frames.multiply(frames.from_rotation_vector(step[3:6]), rotation))
        moved, sized = offset + step[:3], scale * float(np.exp(step[6]))
        after, eye_after = residuals(new, moved, sized)
        gain = float(np.square(error).sum() - np.square(after).sum())
        if not gain > 0.0:
            break
        rotation, offset, scale, error, eye = new, moved, sized, after, eye_after
        if gain < 1e-12 * float(np.square(error).sum() + 1e-12):
            break
    return Similarity(rotation, offset, scale).inverse, np.sqrt(np.square(error).sum(axis=-1).mean(axis=-1))
