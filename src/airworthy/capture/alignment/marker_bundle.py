"""Markers of known sides in images of known poses: where each lies, how many metres a unit is, and how sure both are.

Corners are triangulated from the rays of two images, for many pairs; the square of the pair on which most images agree is kept
(random sample consensus, Fischler and Bolles, 1981). Then all corners of all markers are fitted together: a marker is a rigid
square with a place and an attitude, its side in units of the capture is its side in metres times one common factor. Poses of
images stay as they are, or move as far as is told that they may (`pose_spread`): their bend is then weighed in. Errors that the
corners of an image share, those of its pose above all, are counted by image in the covariance, not by corner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from airworthy.capture.alignment.marker_fit import BLEED, NORMAL_95, MarkerSights, Spread, Square, fit_squares, image_errors
from airworthy.capture.alignment.markers import marker_corners
from airworthy.capture.alignment.pose_spread import PoseSpread
from airworthy.capture.record import CaptureImages
from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayBool, ArrayIndex, ArrayLike
from airworthy.core.errors import AirworthyError

__all__ = ["FittedMarker", "MarkerBundle", "fit_markers", "names_of", "seen_squares"]

_PAIRS = 600
"""Pairs of images that are tried; of more than 35 images a random choice."""
_PARALLAX = np.sin(np.radians(0.5)) ** 2
"""Rays that are more nearly parallel than this give no place."""
_NEAR, _SHARE = 4.0, 0.1
"""How far corners may be off for an image to agree with a pair [px], or as a share of the marker's side in it: a pair's own
errors are larger than a fit's."""
_FAR, _LEAST = 3.0, 2.0
"""After a fit images are left out beyond so many times the median of the images, and never within so many pixels (as before a
phone's reconstruction, whose poses are off by 0.1 degrees, 2 px)."""
_ROUNDS = 8
_BENT_PX, _BENT = 1.5, 3.0
"""Corners that lie farther than this from the fit [px], and so many times as far as the images differ among themselves, are off
alike. Ours: in three halls, filmed all around, they lie 0.2 to 0.4 px off; 2.9 px (alone 0.2) where a walk was a line."""

Finer = Callable[[int, Square, MarkerSights, dict[int, str]], MarkerSights]
"""Of a marker's number, where it lies, the images that agree on it and those left out: images with better corners."""


@dataclass(frozen=True, eq=False)
class FittedMarker:
    """A marker in the frame of the capture."""

    number: int
    side: float
    """Of its black square [m]."""
    position: Array
    """(3,) its centre [unit of the capture]."""
    attitude: Array
    """(4,) marker (x to its right, y to its top, z out of it) to capture."""
    images: ArrayIndex
    """(n,) images that agree."""
    error: Array
    """(n,) root mean square distance of their corners from the fit [px]."""
    pixels: Array
    """(n, 4, 2) their corners [px]."""
    left_out: Mapping[int, str]
    """Image to the reason why it was not used."""
    own_scale: float
    """Metres per unit by this marker alone."""
    own_half: float
    """Half of its 95 % interval, as a share."""
    elsewhere: float = 0.0
    """Distance at which the images that do not agree see it, where they agree among themselves [m]; 0: they do not."""


@dataclass(frozen=True, eq=False)
class MarkerBundle:
    """All markers, fitted together."""

    scale: float
    """Metres per unit of the capture."""
    scale_half: float
    """Half of its 95 % interval, as a share of it."""
    markers: tuple[FittedMarker, ...]
    spread: Spread
    """Of the logarithm of the units per metre, each marker's centre [unit] and turn [rad] (frame of the capture), the bleed."""
    error: float
    """Root mean square distance of the corners from the fit [px]."""
    alone: float
    """The same if poses are taken as they are [px]: how far the images agree among themselves."""
    bleed: float
    """How far outside of where they are the edges of the black squares are seen [px]; below 0: inside."""

    @property
    def bent(self) -> bool:
        """Whether all images see the markers beside where the reconstruction as a whole says that they lie."""
        return self.error > _BENT_PX and self.error > _BENT * self.alone

    def place_half(self, index: int) -> Array:
        """Return half of the 95 % intervals of a marker's centre along the axes of the capture (3,) [m]."""
        axes = np.eye(len(self.spread.by_corner))[1 + 6 * index : 4 + 6 * index]
        return self.scale * np.array([self.spread.half95(axis) for axis in axes])

    def tilt(self, index: int) -> float:
        """Return the standard deviation of a marker's normal about an axis across it [rad], the larger of two."""
        turn = frames.to_matrix(self.markers[index].attitude)
        slopes = np.zeros((2, len(self.spread.by_corner)))
        slopes[:, 4 + 6 * index : 7 + 6 * index] = turn.T[:2]
        return max(self.spread.half95(slope) for slope in slopes) / NORMAL_95


def seen_squares(images: CaptureImages, corners: Mapping[int, ArrayLike]) -> tuple[MarkerSights, dict[int, str]]:
    """Return the images in which a marker is seen from its front, and those in which it is mirrored or no square.

    Args:
        images: The capture.
        corners: (4, 2) [px] by the number of the image: upper left, upper right, lower right, lower left.

    Raises:
        AirworthyError: A number is none of the capture's, or corners are not four pairs of finite numbers.
    """
    kept, left = [], {}
    for k in sorted(corners):
        square = np.asarray(corners[k], np.float64)
        if not 0 <= k < len(images):
            raise AirworthyError(f"Corners are given of the image {k}, and there are {len(images)}.")
        if square.shape != (4, 2) or not np.isfinite(square).all():
            raise AirworthyError(f"The corners of a marker in {images.names[k]!r} are {square.shape}; expected 4 finite pairs.")
        edges = np.roll(square, -1, axis=0) - square
        bends = edges[:, 0] * np.roll(edges[:, 1], -1) - edges[:, 1] * np.roll(edges[:, 0], -1)
        # On screen, v down, a square from its front goes round clockwise: it bends the same way at all corners.
        if (bends > 0.0).all():
            kept.append(k)
        else:
            left[k] = "mirrored, or its corners in another order" if (bends < 0.0).all() else "no square"
    numbers = np.array(kept, np.intp)
    pixels = np.array([np.asarray(corners[k], np.float64) for k in kept]).reshape(-1, 4, 2)
    lens, place = (np.asarray(part[numbers], np.float64) for part in (images.intrinsics, images.position))
    return MarkerSights(numbers, pixels, lens, place, frames.normalize(images.attitude[numbers])), left


def fit_markers(
    images: CaptureImages,
    corners: Mapping[int, Mapping[int, ArrayLike]],
    sides: Mapping[int, float],
    seed: int = 0,
    bleed: float = BLEED,
    finer: Finer | None = None,
    poses: PoseSpread | None = None,
) -> MarkerBundle:
    """Return where markers lie and how many metres a unit of the capture is.

    Args:
        images: The capture.
        corners: (4, 2) [px] by the number of the marker and that of the image.
        sides: Of the markers' black squares [m], by their numbers.
        seed: Of the choice of pairs.
        bleed: Standard deviation of how far edges are seen outside of where they are [px].
        finer: Looks at a marker's pictures once it is known where it lies; None: the corners are what they are.
        poses: How sure those of the capture are, for weights and intervals; None: exact.

    Raises:
        AirworthyError: No marker is seen from two places, or what is seen contradicts itself; the images are named.
    """
    groups: list[tuple[FittedMarker, MarkerSights]] = []
    for number in sorted(corners):
        if number not in sides or not sides[number] > 0.0:
            raise AirworthyError(f"The marker {number} has no side above 0 m; say how large its black square is.")
        sights, left = seen_squares(images, corners[number])
        if len(sights) < 2:
            continue
        groups.append(_agreed(images, number, sides[number], sights, left, (seed, bleed, poses), finer))
    if not groups:
        raise AirworthyError(_too_few(images, corners))
    bundle = _together(groups, bleed, poses)
    _check_scales(images, bundle)
    return bundle


def _too_few(images: CaptureImages, corners: Mapping[int, Mapping[int, ArrayLike]]) -> str:
    for number, seen in corners.items():
        mirrored = [k for k, why in seen_squares(images, seen)[1].items() if why.startswith("mirrored")]
        if mirrored:
            return (
                f"The marker {number} is mirrored in {names_of(images, mirrored)}: film it and not its reflection, keep"
                " pictures unflipped, and list corners as upper left, upper right, lower right, lower left."
            )
    most = max((len(seen) for seen in corners.values()), default=0)
    return (
        f"The marker is seen in {most} image{'' if most == 1 else 's'}, and 2 from different places are needed, better 20 from"
        " all around: film it for longer, or check dictionary and number."
    )


def names_of(images: CaptureImages, which: Sequence[int] | ArrayIndex, most: int = 6) -> str:
    """Return names of images for a sentence, the first few."""
    names = [images.names[k] for k in list(which)[:most]]
    more = len(which) - len(names)
    return f"{len(which)} image{'' if len(which) == 1 else 's'} ({', '.join(names)}{f', and {more} more' if more > 0 else ''})"


# ---- One marker: what most images agree on ----------------------------------------------------------------------------------


def _agreed(
    images: CaptureImages,
    number: int,
    side: float,
    sights: MarkerSights,
    left: dict[int, str],
    choices: tuple[int, float, PoseSpread | None],
    finer: Finer | None,
) -> tuple[FittedMarker, MarkerSights]:
    seed, bleed, poses = choices
    square, good = _consensus(sights, seed)
    if square is None:
        raise AirworthyError(
            f"The marker {number} is seen in {names_of(images, sights.images)}, and no two of them agree on a square in front"
            " of them: they were taken from one place, or the marker moved; film it, lying still, from all around."
        )
    error = image_errors(sights, square)
    other, apart = _second(sights.some(~good), square, side, seed)
    for k, is_good in enumerate(good):
        if not is_good:
            where = f"seen {apart:.2f} m away from where most see it" if k in _at(~good, other) else f"{error[k]:.1f} px off"
            left[int(sights.images[k])] = where
    agreeing, away = sights.some(good), sights.images[_at(~good, other)]
    # Two places, neither of which has a clear majority: which one is the floor's origin is not for a program to guess.
    if len(away) > 0.5 * len(agreeing):
        raise AirworthyError(
            f"The marker {number} lay at two places, {apart:.2f} m apart: {names_of(images, agreeing.images)} against"
            f" {names_of(images, away)}; leave the images of one of them out."
        )
    if len(agreeing) < 0.5 * len(sights):
        raise AirworthyError(
            f"Only {len(agreeing)} of {len(sights)} images agree on where the marker {number} lies, and half are needed; not"
            f" {names_of(images, sights.images[~good])}: check that it lay still and that it is there only once."
        )
    if finer is not None:
        agreeing = finer(number, square, agreeing, left)
    found = fit_squares([(square, side)], [agreeing], bleed, poses)
    fitted = found.squares[0]
    marker = FittedMarker(
        number=number,
        side=side,
        position=fitted.position,
        attitude=fitted.attitude,
        images=agreeing.images,
        error=image_errors(agreeing, fitted, found.bleed),
        pixels=agreeing.pixels,
        left_out=left,
        own_scale=side / fitted.edge,
        own_half=found.spread.half95(_scale_slope(found.spread)),
        elsewhere=apart if len(away) else 0.0,
    )
    return marker, agreeing


def _at(mask: ArrayBool, inner: ArrayBool) -> ArrayIndex:
    """Numbers of a mask's true entries that are true in a mask of these."""
    return np.asarray(np.flatnonzero(mask)[inner])


def _consensus(sights: MarkerSights, seed: int) -> tuple[Square | None, ArrayBool]:
    """Return the square on which most images agree, fitted to them, and which agree."""
    none = np.zeros(len(sights), bool)
    candidates = _candidates(sights, seed)
    if not len(candidates[2]):
        return None, none
    square, good = _most_agreed(sights, candidates)
    for _ in range(_ROUNDS):
        if np.count_nonzero(good) < 2:
            return None, none
        square = fit_squares([(square, 1.0)], [sights.some(good)]).squares[0]
        error = image_errors(sights, square)
        limit = max(_FAR * float(np.median(error[good])), _LEAST)
        before, good = good, error <= limit
        if (before == good).all():
            break
    return (square, good) if np.count_nonzero(good) >= 2 else (None, none)


def _candidates(sights: MarkerSights, seed: int) -> tuple[Array, Array, Array]:
    """Squares of pairs of images: centres (k, 3), attitudes (k, 4), edges (k,)."""
    first, second = np.triu_indices(len(sights), 1)
    if len(first) > _PAIRS:
        some = np.random.default_rng(seed).permutation(len(first))[:_PAIRS]
        first, second = first[some], second[some]
    ray, start = sights.rays(), sights.position
    a, b, base = ray[first], ray[second], (start[first] - start[second])[:, None]
    cosine = (a * b).sum(axis=-1)
    along_a, along_b = (a * base).sum(axis=-1), (b * base).sum(axis=-1)
    with np.errstate(all="ignore"):
        apart = 1.0 - cosine**2
        far_a, far_b = (cosine * along_b - along_a) / apart, (along_b - cosine * along_a) / apart
        # The middle of the shortest way between the two rays.
        corner = 0.5 * (start[first][:, None] + far_a[..., None] * a + start[second][:, None] + far_b[..., None] * b)
    good = ((apart > _PARALLAX) & (far_a > 0.0) & (far_b > 0.0)).all(axis=-1) & np.isfinite(corner).all(axis=(1, 2))
    return _squares(corner[good])


def _squares(corner: Array) -> tuple[Array, Array, Array]:
    """Return the squares nearest to four points each, (k, 4, 3)."""
    x = 0.5 * (corner[:, 1] - corner[:, 0] + corner[:, 2] - corner[:, 3])
    y = 0.5 * (corner[:, 0] - corner[:, 3] + corner[:, 1] - corner[:, 2])
    long, tall = np.linalg.norm(x, axis=-1), np.linalg.norm(y, axis=-1)
    with np.errstate(all="ignore"):
        x, y = x / long[:, None], y / tall[:, None]
        # Halfway between the edges and their perpendiculars: neither edge is favoured.
        sum_, gap = x + y, x - y
        sum_, gap = (part / np.linalg.norm(part, axis=-1, keepdims=True) for part in (sum_, gap))
        x, y = (sum_ + gap) / np.sqrt(2.0), (sum_ - gap) / np.sqrt(2.0)
    matrix = np.stack((x, y, np.cross(x, y)), axis=-1)
    good = np.isfinite(matrix).all(axis=(1, 2)) & (np.minimum(long, tall) > 1e-12)
    if not good.any():
        return np.zeros((0, 3)), np.zeros((0, 4)), np.zeros(0)
    return corner[good].mean(axis=1), frames.from_matrix(matrix[good]), 0.5 * (long + tall)[good]


def _most_agreed(sights: MarkerSights, candidates: tuple[Array, Array, Array]) -> tuple[Square, ArrayBool]:
    centre, turn, edge = candidates
    world = edge[:, None, None] * frames.rotate(turn[:, None], marker_corners(1.0)) + centre[:, None]
    off, _ = sights.off(world[:, None])
    error = np.sqrt(np.square(off).sum(axis=-1).mean(axis=-1))
    size = np.linalg.norm(sights.pixels - np.roll(sights.pixels, 1, axis=1), axis=-1).mean(axis=-1)
    limit = np.maximum(_NEAR, _SHARE * size)
    # Truncated squares (MSAC, Torr and Zisserman, 2000): of squares with as many images, the one nearer to them.
    cost = np.minimum(np.square(error / limit), 1.0).sum(axis=-1)
    best = int(np.argmin(cost))
    return Square(centre[best], turn[best], float(edge[best])), error[best] <= limit


def _second(rest: MarkerSights, square: Square, side: float, seed: int) -> tuple[ArrayBool, float]:
    """Which of the images that do not agree agree on another place of a square as large, and how far away it is [m]."""
    nobody = np.zeros(len(rest), bool)
    if len(rest) < 3:
        return nobody, 0.0
    other, good = _consensus(rest, seed)
    # Three images: two always find some square. As large: a fit to nonsense is not.
    if other is None or np.count_nonzero(good) < 3 or not 0.8 < other.edge / square.edge < 1.25:
        return nobody, 0.0
    return good, float(np.linalg.norm(other.position - square.position) * side / square.edge)


# ---- All markers together ---------------------------------------------------------------------------------------------------


def _together(groups: Sequence[tuple[FittedMarker, MarkerSights]], bleed: float, poses: PoseSpread | None) -> MarkerBundle:
    weight = [1.0 / max(marker.own_half, 1e-9) ** 2 for marker, _ in groups]
    common = float(np.exp(np.average([np.log(marker.own_scale) for marker, _ in groups], weights=weight)))
    starts = [(Square(m.position, m.attitude, m.side / common), m.side) for m, _ in groups]
    found = fit_squares(starts, [sights for _, sights in groups], bleed, poses)
    markers = tuple(
        replace(m, position=square.position, attitude=square.attitude, error=image_errors(sights, square, found.bleed))
        for (m, sights), square in zip(groups, found.squares, strict=True)
    )
    scale = groups[0][0].side / found.squares[0].edge
    half = found.spread.half95(_scale_slope(found.spread))
    return MarkerBundle(scale, half, markers, found.spread, found.error, found.alone, found.bleed)


def _scale_slope(spread: Spread) -> Array:
    return np.eye(len(spread.by_corner))[0]


def _check_scales(images: CaptureImages, bundle: MarkerBundle) -> None:
    """Refuse markers whose stated sides contradict each other."""
    reference = min(bundle.markers, key=lambda marker: marker.own_half)
    for marker in bundle.markers:
        factor = marker.own_scale / reference.own_scale
        sure = np.hypot(marker.own_half, reference.own_half)
        # 2 %: a printed side is not exact either.
        if abs(np.log(factor)) > max(2.0 * sure, 0.02):
            raise AirworthyError(
                f"The markers {reference.number} and {marker.number} contradict each other: by their sides of"
                f" {reference.side:g} and {marker.side:g} m a unit is {reference.own_scale:.4g} and {marker.own_scale:.4g} m, a"
                f" factor of {factor:.3f} (seen in {names_of(images, reference.images, 3)} and"
                f" {names_of(images, marker.images, 3)}); measure both."
            )
