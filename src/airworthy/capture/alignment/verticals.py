"""Up from what stands upright: edges of walls, doors and furniture, seen in images of known poses.

A straight edge and the camera span a plane; the edge lies in it. Where edges are vertical, up lies in all of their planes,
whichever image they are seen in: one direction is looked for that lies in more of them than chance would put there, near where
the cameras are held upright.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.capture.alignment.level import UpDirection, tangents
from airworthy.capture.alignment.markers import opencv
from airworthy.capture.record import CaptureImages
from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayBool, ArrayIndex, ArrayLike, ArrayU8
from airworthy.core.jobs.progress import progress

__all__ = ["Segments", "image_segments", "seen_segments", "up_by_segments"]

CONE = np.radians(35.0)
"""Up is looked for within this angle of where it was guessed."""
END_NOISE = 0.4
"""Standard deviation of a segment's ends across it [px]; ours, of OpenCV's detector on rendered and photographed edges."""
SYSTEMATIC = np.radians(0.03)
"""Ours: what is left of lenses and of walls that do not stand quite upright."""
_LENGTH = 0.04
"""Segments shorter than this share of the image's width are left out."""
_BORDER = 4.0
"""Edges this near to the border of a mask are its own [px]."""
_MOST = 200
"""Segments of an image, the longest."""
_TRIALS = 2000
_TOLERANCE = 3.0
"""Standard deviations within which a plane holds a direction."""
_WIDEST = np.radians(0.4)
"""Ours: and never less, since poses of a reconstruction are off by a tenth of a degree."""
_CHANCE = 2.0
_LEAST, _IMAGES = 20, 3
"""Segments, images."""
_ROUNDS = 20


@dataclass(frozen=True, eq=False)
class Segments:
    """Straight edges in images."""

    image: ArrayIndex
    """(n,) numbers of the images."""
    normal: Array
    """(n, 3) unit normals of the planes through camera and edge, frame of the capture."""
    sigma: Array
    """(n,) standard deviation of the normals' angle [rad]."""


def image_segments(rgb: ArrayU8) -> Array:
    """Return straight edges (n, 4) of an image as u, v of both ends [px], the longest first (LSD, von Gioi et al., 2010).

    Raises:
        AirworthyError: OpenCV is not installed.
    """
    cv2 = opencv()
    grey = cv2.cvtColor(np.ascontiguousarray(rgb), cv2.COLOR_RGB2GRAY)
    found = cv2.createLineSegmentDetector(cv2.LSD_REFINE_STD).detect(grey)[0]
    if found is None:
        return np.zeros((0, 4))
    # OpenCV's origin is the centre of the first pixel.
    ends = np.asarray(found, np.float64).reshape(-1, 4) + 0.5
    length = np.hypot(ends[:, 2] - ends[:, 0], ends[:, 3] - ends[:, 1])
    order = np.argsort(-length, kind="stable")[:_MOST]
    return ends[order][length[order] >= _LENGTH * rgb.shape[1]]


def seen_segments(images: CaptureImages, quiet: bool = True) -> Segments:
    """Return the edges of all images; raises AirworthyError where OpenCV is not installed."""
    found = []
    for k, rgb in enumerate(progress(images.rgb, "Finding edges", quiet=quiet)):
        ends, mask = image_segments(rgb), images.masks[k]
        found.append(ends if mask is None else ends[_shown(ends, mask)])
    return segments_of(images, found)


def _shown(ends: Array, mask: ArrayBool) -> ArrayBool:
    """Tell which edges (n, 4) lie in what a mask shows, and not along its border, which is the picture's, not the place's."""
    along = (ends[:, 2:] - ends[:, :2]) / np.maximum(np.linalg.norm(ends[:, 2:] - ends[:, :2], axis=-1, keepdims=True), 1e-9)
    across = _BORDER * np.stack((-along[:, 1], along[:, 0]), axis=-1)
    share = np.linspace(0.0, 1.0, 9)[None, :, None]
    on = (1.0 - share) * ends[:, None, :2] + share * ends[:, None, 2:]
    beside = np.concatenate((on - across[:, None], on + across[:, None]), axis=1)
    place = np.clip(beside.astype(np.int64), 0, np.array(mask.shape[::-1]) - 1)
    return np.asarray(mask[place[..., 1], place[..., 0]].all(axis=-1))


def segments_of(images: CaptureImages, ends: Sequence[ArrayLike]) -> Segments:
    """Return edges by their ends (n_i, 4) [px] in each image."""
    number, normal, sigma = [], [], []
    for k, found in enumerate(ends):
        values = np.asarray(found, np.float64).reshape(-1, 4)
        if not len(values):
            continue
        lens = images.intrinsics[k]
        flat = (values.reshape(-1, 2, 2) - lens[2:]) / lens[:2]
        ray = np.concatenate((flat, np.ones((len(flat), 2, 1))), axis=-1)
        across = np.cross(ray[:, 0], ray[:, 1])
        size = np.linalg.norm(across, axis=-1)
        good = size > 1e-9
        normal.append(frames.rotate(images.attitude[k], across[good] / size[good, None]))
        length = np.linalg.norm(values[:, 2:] - values[:, :2], axis=-1)[good]
        # Both ends off across: the edge turns by so much, and the plane with it.
        sigma.append(np.sqrt(2.0) * END_NOISE / length)
        number.append(np.full(np.count_nonzero(good), k))
    if not number:
        return Segments(np.zeros(0, np.intp), np.zeros((0, 3)), np.zeros(0))
    return Segments(np.concatenate(number), np.concatenate(normal), np.concatenate(sigma))


def up_by_segments(segments: Segments, guess: ArrayLike, cone: float = CONE, seed: int = 0) -> UpDirection | None:
    """Return the direction that is up by vertical edges, or None where no direction holds more edges than chance.

    Args:
        segments: Edges of all images.
        guess: About where up is, unit (3,), frame of the capture.
        cone: How far from there it may be [rad].
        seed: Of the samples.
    """
    start = np.asarray(guess, np.float64)
    if len(segments.image) < _LEAST:
        return None
    limit = np.maximum(_TOLERANCE * segments.sigma, _WIDEST)
    up = _most_held(segments, start, cone, limit, seed)
    if up is None:
        return None
    for _ in range(_ROUNDS):
        held = _held(segments, up, limit)
        if np.count_nonzero(held) < _LEAST:
            return None
        before, up = up, _refined(segments, up, held)
        if np.linalg.norm(up - before) < 1e-12:
            break
    held = _held(segments, up, limit)
    chance = float(np.sin(limit).sum())
    count, seen_in = int(np.count_nonzero(held)), len(np.unique(segments.image[held]))
    if count < max(_CHANCE * chance, _LEAST) or seen_in < _IMAGES or up @ start < np.cos(cone):
        return None
    sigma = float(np.hypot(_deviation(segments, up, held), SYSTEMATIC))
    return UpDirection("verticals", up, sigma, f"{count:,} upright edges in {seen_in} images")


def _held(segments: Segments, up: Array, limit: Array) -> ArrayBool:
    return np.abs(segments.normal @ up) <= np.sin(limit)


def _most_held(segments: Segments, start: Array, cone: float, limit: Array, seed: int) -> Array | None:
    """Return the best of the directions in which planes of two edges meet."""
    near = np.flatnonzero(np.abs(segments.normal @ start) <= np.sin(cone))
    if len(near) < 2:
        return None
    pairs = np.random.default_rng(seed).choice(near, (_TRIALS, 2))
    tries = np.cross(segments.normal[pairs[:, 0]], segments.normal[pairs[:, 1]])
    size = np.linalg.norm(tries, axis=-1)
    tries = tries[size > 0.05] / size[size > 0.05, None]
    tries = tries * np.sign(tries @ start)[:, None]
    tries = tries[tries @ start >= np.cos(cone)]
    if not len(tries):
        return None
    # Long edges count more: short ones in the grain of a picture lie any way.
    weight = 1.0 / limit
    held = np.abs(tries @ segments.normal.T) <= np.sin(limit)
    return np.asarray(tries[int(np.argmax(held @ weight))])


def _weights(segments: Segments, up: Array, held: ArrayBool) -> tuple[Array, Array]:
    """Residuals of the edges that are held [rad], and their weights: Cauchy's, of errors of edge and pose."""
    off = segments.normal[held] @ up
    scale = np.hypot(segments.sigma[held], 1.4826 * float(np.median(np.abs(off))) + 1e-9)
    return off, 1.0 / (scale**2 * (1.0 + (off / (2.0 * scale)) ** 2))


def _refined(segments: Segments, up: Array, held: ArrayBool) -> Array:
    off, weight = _weights(segments, up, held)
    across = tangents(up)
    slope = segments.normal[held] @ across.T
    matrix = slope.T @ (weight[:, None] * slope) + 1e-12 * weight.sum() * np.eye(2)
    moved = up - across.T @ np.linalg.solve(matrix, slope.T @ (weight * off))
    return np.asarray(moved / np.linalg.norm(moved))


def _deviation(segments: Segments, up: Array, held: ArrayBool) -> float:
    """Return the standard deviation about the worse of two level axes [rad], by leaving out one image after the other, to first
    order."""
    off, weight = _weights(segments, up, held)
    slope, image = segments.normal[held] @ tangents(up).T, segments.image[held]
    rows = slope * np.sqrt(weight)[:, None]
    inverse = np.linalg.pinv(rows.T @ rows)
    moves = []
    for number in np.unique(image):
        part = image == number
        rest = np.linalg.pinv(np.eye(2) - inverse @ rows[part].T @ rows[part])
        moves.append(rest @ inverse @ (slope[part].T @ (weight[part] * off[part])))
    count = len(moves)
    moved = np.array(moves)
    covariance = (count - 1) / count * moved.T @ moved
    from scipy.stats import t as student

    widen = float(student.ppf(0.975, count - 1)) / 1.96
    return widen * float(np.sqrt(max(np.linalg.eigvalsh(covariance)[-1], 0.0)))
