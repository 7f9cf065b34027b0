"""Corners of a marker by its whole picture, in every image that must show it: also where it is too small to be read.

Once some images agree on where a marker lies, all others tell where to look. Each picture is fitted from there
(`marker_photometry`), and how much its corners are off is taken apart: what the fit itself leaves open, an error of every
corner (light that is not even, a lens), and one that all four share (the pose of the image).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from airworthy.capture.alignment.marker_fit import MarkerSights, Square, fit_squares
from airworthy.capture.alignment.marker_light import LightMap, light_map
from airworthy.capture.alignment.marker_photometry import PictureFit, fit_picture, printed_cells
from airworthy.capture.record import CaptureImages
from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayIndex

__all__ = ["PictureRefiner", "through", "weighed"]

_SMALLEST = 5.0
"""Least height or width of a marker that is looked at [px]: five cells of six would share a pixel with a neighbour."""
_EXPLAINED = 0.85
"""Least share of a picture's light that must be the marker's; ours: what is partly hidden has 0.2 to 0.8, what is not 0.9."""
_MOVED = 2.0
"""Most by which a picture may lie off where others have it [px], or a tenth of its side: more is another thing."""
_ROUNDS = 6
_FAR = 4.0
"""Images are left out whose corners are off by over so many deviations, root mean square of the eight."""
_UNSEEN = 1e2
"""Standard deviation of a direction of the corners that a picture does not show [px]."""
_GRID = (0.0, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.8, 1.2, 2.0)
"""Deviations that are tried for what all corners, and what single ones, are off by [px]."""
_TAIL = 4.0
"""Degrees of freedom of the multivariate t distribution that they are judged by, so that single images do not decide."""


@dataclass(frozen=True, eq=False)
class PictureRefiner:
    """Looks for markers of a capture where they must be."""

    images: CaptureImages
    """As large as there are."""
    dictionary: str
    lens: Array
    """(n, 4) fx, fy, cx, cy [px] of the images whose pixels corners are in."""

    def __call__(self, number: int, square: Square, sights: MarkerSights, left: dict[int, str]) -> MarkerSights:
        """Return the images that show a marker, with corners by its whole picture.

        Args:
            number: Of the marker.
            square: Where the images agree that it lies.
            sights: Of these images.
            left: Images that do not agree, by the reason; those whose pictures do not fit are added.

        Returns:
            Images with a picture that fits; the given ones where these are under 2.
        """
        cells = printed_cells(number, self.dictionary)
        read = through(sights, np.asarray(self.images.intrinsics[sights.images], np.float64))
        found = self._looked(cells, square, read, left)
        for k in sorted(set(sights.images.tolist()) - set(found.images.tolist())):
            left[k] = "partly hidden, or its picture does not fit"
        return sights if found is read else through(found, self.lens[found.images])

    def _looked(self, cells: Array, square: Square, sights: MarkerSights, left: Mapping[int, str]) -> MarkerSights:
        """Return images with a picture that fits, [px] of these; the given where there are too few."""
        found = sights
        everywhere = np.array([k for k in range(len(self.images)) if k not in left], np.intp)
        light = None
        for turn in range(_ROUNDS):
            # First where it was read: its place is then known well enough to be looked for elsewhere.
            where = sights.images if turn == 0 else everywhere
            fits = self._fits(cells, square, where, sights if turn == 0 else None, light)
            if len(fits) < 2:
                return found
            found, square = weighed(_sights(self.images, fits), square)
            agreed = zip(found.images.tolist(), _shifted(found, square), strict=True)
            light = light_map([fits[k].sampled(corners) for k, corners in agreed])
        return found

    def _fits(
        self, cells: Array, square: Square, where: ArrayIndex, read: MarkerSights | None, light: LightMap | None
    ) -> dict[int, PictureFit]:
        """Pictures that fit, by the number of the image."""
        result: dict[int, PictureFit] = {}
        expected = _projected(self.images, square, where)
        for k, start in zip(where.tolist(), expected, strict=True):
            if not np.isfinite(start).all() or np.ptp(start, axis=0).min() < _SMALLEST:
                continue
            if read is not None:
                # An error of the pose moves all corners; what was read is small, but its middle is where it is.
                start = start + (read.pixels[np.flatnonzero(read.images == k)[0]] - start).mean(axis=0)
            fit = fit_picture(self.images.rgb[k], start, cells, light=light)
            if fit is None or fit.explained < _EXPLAINED:
                continue
            moved = float(np.sqrt(np.square(fit.corners - start).sum(axis=-1).mean()))
            if moved <= max(_MOVED, 0.1 * float(np.ptp(start, axis=0).max())):
                result[int(k)] = fit
        return result


def through(sights: MarkerSights, lens: Array) -> MarkerSights:
    """Return the same sights in pixels of other copies of the images.

    Args:
        sights: Of images without distortion.
        lens: (n, 4) fx, fy, cx, cy [px] of the copies.
    """
    times = lens[:, None, :2] / sights.lens[:, None, :2]
    pixels = (sights.pixels - sights.lens[:, None, 2:]) * times + lens[:, None, 2:]
    root = None if sights.root is None else sights.root / np.tile(times, (1, 1, 4))
    return replace(sights, pixels=pixels, lens=lens, root=root)


def _projected(images: CaptureImages, square: Square, where: ArrayIndex) -> Array:
    """Return a square's corners (n, 4, 2) [px] in images; NaN where it is not all in front, seen from its back, or outside."""
    world = square.corners()
    attitude = frames.normalize(np.asarray(images.attitude[where], np.float64))
    place, lens = (np.asarray(part[where], np.float64) for part in (images.position, images.intrinsics))
    eye = frames.rotate_inverse(attitude[:, None], world[None] - place[:, None])
    with np.errstate(all="ignore"):
        pixel = eye[..., :2] / eye[..., 2:] * lens[:, None, :2] + lens[:, None, 2:]
    size = np.array([images.rgb[k].shape[1::-1] for k in where]).reshape(-1, 1, 2)
    normal = frames.rotate(square.attitude, np.array([0.0, 0.0, 1.0]))
    good = (eye[..., 2] > 0.0).all(axis=1) & ((pixel > 0.0) & (pixel < size)).all(axis=(1, 2))
    good &= (place - square.position) @ normal > 0.0
    return np.where(good[:, None, None], pixel, np.nan)


def _sights(images: CaptureImages, fits: dict[int, PictureFit]) -> MarkerSights:
    numbers = np.array(sorted(fits), np.intp)
    pixels, root = (np.array([getattr(fits[k], name) for k in numbers.tolist()]) for name in ("corners", "root"))
    lens, place = (np.asarray(part[numbers], np.float64) for part in (images.intrinsics, images.position))
    return MarkerSights(numbers, pixels, lens, place, frames.normalize(images.attitude[numbers]), root)


def weighed(sights: MarkerSights, square: Square) -> tuple[MarkerSights, Square]:
    """Return images with the errors of poses and of single corners in their weights, and the square by them.

    Args:
        sights: With `root` as the pictures' fits have it.
        square: To begin with.

    Returns:
        Those of the images that fit, and the square.
    """
    own = _covariances(sights)
    plain = replace(sights, root=_roots(own, 0.1, 0.5))
    for _ in range(4):
        square = fit_squares([(square, 1.0)], [plain], 0.0).squares[0]
        off = sights.off(square.corners())[0].reshape(len(sights), 8)
        one, all_ = _likeliest(own, off)
        plain = replace(sights, root=_roots(own, one, all_))
        assert plain.root is not None
        size = np.square(np.einsum("nij,nj->ni", plain.root, off)).mean(axis=1)
        # Of that distribution: images far from the others count less, and beyond any doubt not at all.
        share = (_TAIL + 8.0) / (_TAIL + 8.0 * size)
        plain = replace(plain, root=np.sqrt(share)[:, None, None] * plain.root)
        keep = size <= _FAR**2
        if keep.all() or np.count_nonzero(keep) < 3:
            continue
        sights, own, plain = sights.some(keep), own[keep], plain.some(keep)
    return plain, square


def _shifted(sights: MarkerSights, square: Square) -> Array:
    """Return a square's corners (n, 4, 2) in images, moved by what all four are off [px]."""
    assert sights.root is not None
    off = sights.off(square.corners())[0]
    weight = np.swapaxes(sights.root, 1, 2) @ sights.root
    both = np.tile(np.eye(2), (4, 1))
    moved = np.linalg.solve(both.T @ weight @ both, (both.T @ weight @ off.reshape(-1, 8, 1)))
    return np.asarray(sights.pixels + off - moved[:, None, :, 0])


def _covariances(sights: MarkerSights) -> Array:
    """Covariances (n, 8, 8) of the corners by the pictures alone [px^2]."""
    assert sights.root is not None
    information = np.swapaxes(sights.root, 1, 2) @ sights.root
    values, vectors = np.linalg.eigh(information)
    return np.asarray((vectors / np.maximum(values, _UNSEEN**-2)[:, None]) @ np.swapaxes(vectors, 1, 2))


_SHARED = np.kron(np.ones((4, 4)), np.eye(2))
"""Covariance of coordinates (8,) that all move as one."""


def _roots(own: Array, one: float, all_: float) -> Array:
    """Roots (n, 8, 8) of the inverse of the pictures' covariances with an error of each corner and one of all."""
    total = own + one**2 * np.eye(8) + all_**2 * _SHARED
    return np.asarray(np.linalg.inv(np.linalg.cholesky(total)))


def _likeliest(own: Array, off: Array) -> tuple[float, float]:
    """Return the deviations of single corners and of all [px] under which what is left (n, 8) is the most likely."""
    best, result = np.inf, (0.1, 0.5)
    for one in _GRID[1:]:
        for all_ in _GRID:
            root = _roots(own, one, all_)
            size = np.square(np.einsum("nij,nj->ni", root, off)).sum(axis=1)
            spread = -2.0 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
            cost = float((spread + (_TAIL + 8.0) * np.log1p(size / _TAIL)).sum())
            if cost < best:
                best, result = cost, (one, all_)
    return result
