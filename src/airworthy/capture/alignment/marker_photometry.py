"""A marker's whole picture fitted to an image: corners of squares whose cells are hardly a pixel, and how sure each is.

An edge of such a square has no profile of its own: blur mixes its border with the cells inside and the margin outside. So all
that is printed is fitted at once - black cells, white cells, margin and what lies around it, seen through a homography and
blurred by a Gaussian of any shape - and what blur and tone curve do to one edge they do to all, also to the cells inside, whose
pitch they cannot change (photometric model fitting; Lucas and Kanade, 1981; Baker and Matthews, 2004).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from airworthy.capture.alignment.marker_light import LightMap, hats
from airworthy.capture.alignment.marker_sheet import draw_marker
from airworthy.core.arrays import Array, ArrayLike, ArrayU8
from airworthy.optics.tone import linear_from_srgb

__all__ = ["PictureFit", "fit_picture", "printed_cells"]

_WINDOW = 0.7
"""Cells around the black square that are looked at; less than its white margin on the sheet (`marker_sheet`)."""
_PIXELS = 1500
"""Pixels that are used of a larger picture, evenly: by then noise is no matter."""
_ROUNDS = 15
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
_NODE_WEIGHTS = _NODE_WEIGHTS / _NODE_WEIGHTS.sum()
_HUBER = 2.5
_KNOWN = 2.0
"""Standard deviation [px] from which on a direction of the eight coordinates counts as not seen."""
_BLUR = 0.5
"""Standard deviation of the logarithm of the blur's deviations about 0.7 px; ours: sharp pictures have 0.5, soft ones 1.5."""
_MARGIN, _MARGIN_SIGMA = 0.85, 0.15
"""White around the square [cells]: 0.75 on the sheet, 1 where others draw it."""
_TONE = 0.3
"""Standard deviation of a tone curve's bend, as a share of the contrast at its middle four times over; ours."""
_LIT = 5
"""Places of the light across and down, between which it changes evenly: borders of shadows cross a marker."""
_LIT_SIGMA = 0.2
"""Standard deviation of the light at each, as a share of the mean; ours."""
_NUISANCES = 8
"""Numbers of a picture beside its corners and its light's places: blur, margin, three levels, the tone curve."""


@dataclass(frozen=True, eq=False)
class PictureFit:
    """Corners by a marker's whole picture."""

    corners: Array
    """(4, 2) [px]."""
    root: Array
    """(8, 8) times the corners' errors (u, v of one after the other) has independent entries of deviation 1; rows of zeros are
    directions that the picture does not show."""
    explained: float
    """Share of the light's variance that the picture explains."""
    blur: float
    """Standard deviation of the blur, mean of both axes [px]."""
    problem: _Problem
    state: _State

    def sampled(self, corners: Array) -> tuple[Array, Array]:
        """Return light and print where a picture shows no more than marker and margin.

        Args:
            corners: (4, 2) where they are [px]; how soft and how bright the picture is stays as fitted.

        Returns:
            (m, 3) place, 0 to 1 from the upper left corner, and light over that of white; (m,) what share of the light the
            print gives back, blur included, white 1.
        """
        return self.problem.sampled(replace(self.state, corners=corners))


def printed_cells(number: int, dictionary: str) -> Array:
    """Return (n, n) 1 where a cell of a marker is black, its border included; the first row is its top."""
    return (draw_marker(1, number, dictionary)[1:-1, 1:-1] < 128).astype(np.float64)


def fit_picture(
    rgb: ArrayU8, corners: ArrayLike, cells: Array, loose: float = 1.0, light: LightMap | None = None
) -> PictureFit | None:
    """Return where a marker's corners are by all of its picture, from ones that are within a cell.

    Args:
        rgb: (h, w, 3) sRGB-encoded.
        corners: (4, 2) [px]: upper left, upper right, lower right, lower left as drawn.
        cells: (n, n) as `printed_cells`.
        loose: Standard deviation of the given corners [px], which holds the fit together and is taken out of the result.
        light: That falls on the marker in all images; None: it changes slowly.

    Returns:
        The fit; None where the picture is outside of the image, too small, or does not look like the marker.
    """
    start = np.asarray(corners, np.float64)
    pixels = _window(rgb.shape, start, cells)
    if pixels is None:
        return None
    column, row = pixels.T
    seen = linear_from_srgb(rgb[row, column]).astype(np.float64) @ (0.2126, 0.7152, 0.0722)
    return _Problem(pixels + 0.5, seen, cells, start, loose, light).solved()


def _window(shape: tuple[int, ...], corners: Array, cells: Array) -> Array | None:
    """Return the pixels (m, 2) whose centres lie on a marker or close to it."""
    n = len(cells)
    height, width = shape[:2]
    inverse = _to_plane(corners, n)
    if inverse is None:
        return None
    to_image = np.asarray(np.linalg.inv(inverse), np.float64)
    rim = _applied(to_image, np.array([[-1.0, -1.0], [n + 1.0, -1.0], [n + 1.0, n + 1.0], [-1.0, n + 1.0]]))[0]
    if not np.isfinite(rim).all() or (corners < 0.0).any() or (corners > (width, height)).any():
        return None
    low = np.maximum(np.floor(rim.min(axis=0)), 0.0).astype(int)
    high = np.minimum(np.ceil(rim.max(axis=0)), (width - 1.0, height - 1.0)).astype(int)
    u, v = (part.ravel() for part in np.meshgrid(np.arange(low[0], high[0] + 1), np.arange(low[1], high[1] + 1)))
    place, _ = _applied(inverse, np.stack((u, v), axis=-1) + 0.5)
    inside = ((place > -_WINDOW) & (place < n + _WINDOW)).all(axis=-1)
    pixels = np.stack((u, v), axis=-1)[inside]
    if len(pixels) > _PIXELS:
        pixels = pixels[np.random.default_rng(0).permutation(len(pixels))[:_PIXELS]]
    # Ours: twice the numbers that are fitted.
    return pixels if len(pixels) >= 40 else None


def _to_plane(corners: Array, n: int) -> Array | None:
    """Return the homography (3, 3) from pixels to cells, 0 to n from the upper left; None of corners on a line."""
    plane = n * np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    rows, values = [], []
    for (x, y), (u, v) in zip(plane, corners, strict=True):
        rows += [[x, y, 1.0, 0.0, 0.0, 0.0, -u * x, -u * y], [0.0, 0.0, 0.0, x, y, 1.0, -v * x, -v * y]]
        values += [u, v]
    try:
        matrix = np.append(np.linalg.solve(np.array(rows), np.array(values)), 1.0).reshape(3, 3)
        return np.asarray(np.linalg.inv(matrix))
    except np.linalg.LinAlgError:
        return None


def _applied(matrix: Array, points: Array) -> tuple[Array, Array]:
    """Return points (m, 2) under a homography, and its slopes (m, 2, 2) there."""
    with np.errstate(all="ignore"):
        q = points @ matrix[:, :2].T + matrix[:, 2]
        place = q[:, :2] / q[:, 2:]
        slope = (matrix[None, :2, :2] - place[:, :, None] * matrix[None, 2:, :2]) / q[:, 2, None, None]
    return place, slope


@dataclass(frozen=True, eq=False)
class _State:
    corners: Array
    blur: Array
    """(3,) logarithms of the first and last, and the middle, of the lower triangular root of the blur's covariance [px]."""
    margin: float
    shade: Array
    """(4 + 25,) light of black, white and what is around [1], bend of the tone curve; light at places, a share of the mean."""

    def moved(self, step: Array) -> _State:
        return _State(
            self.corners + step[:8].reshape(4, 2), self.blur + step[8:11], self.margin + float(step[11]), self.shade + step[12:]
        )


class _Problem:
    """Levenberg-Marquardt on one picture; numbers: 8 of corners, 3 of blur, margin, 4 of light and its places."""

    def __init__(self, pixels: Array, light: Array, cells: Array, start: Array, loose: float, lit: LightMap | None) -> None:
        self.pixels, self.light, self.cells, self.start, self.lit = pixels, light, cells, start, lit
        black, white = np.quantile(light, [0.1, 0.9])
        self.contrast = max(float(white - black), 1e-6)
        self.first = _State(
            start,
            np.log([0.7, 1.0, 0.7]),
            _MARGIN,
            np.concatenate(([black, white, 0.5 * (black + white), 0.0], np.zeros(_LIT**2))),
        )
        c = self.contrast
        sigma = [*[loose] * 8, _BLUR, 0.5, _BLUR, _MARGIN_SIGMA, 2 * c, 2 * c, c, _TONE]
        sigma += [_LIT_SIGMA] * _LIT**2
        self.prior = 1.0 / np.array(sigma)

    def _past(self, state: _State) -> Array:
        """How far numbers are from what is expected of them."""
        base = self.first
        return np.concatenate((
            (state.corners - base.corners).ravel(),
            state.blur - base.blur,
            [state.margin - base.margin],
            state.shade - base.shade,
        ))  # fmt: skip

    def solved(self) -> PictureFit | None:
        """Return the fit; None where it does not look like the marker."""
        state, damping = self.first, 1e-3
        made = self._linear(state)
        if made is None:
            return None
        noise = self._noise(made[0], 0.2 * self.contrast)
        for _ in range(_ROUNDS):
            residual, slope = made
            weight = self._weights(residual, noise)
            rows, off = slope * weight[:, None], residual * weight
            past = self._past(state) * self.prior
            matrix = rows.T @ rows + np.diag(self.prior**2)
            gradient = rows.T @ off + self.prior * past
            cost = self._cost(residual, noise, past)
            for _ in range(6):
                step = -np.asarray(np.linalg.solve(matrix + damping * np.diag(np.diag(matrix)), gradient), np.float64)
                tried = state.moved(step)
                new = self._linear(tried)
                if new is not None and self._cost(new[0], noise, self._past(tried) * self.prior) < cost:
                    state, made, damping = tried, new, max(damping / 10.0, 1e-9)
                    break
                damping *= 10.0
            else:
                break
            noise = self._noise(made[0], noise)
            if np.abs(step[:8]).max() < 1e-3:
                break
        return self._fit(state, made, noise)

    @staticmethod
    def _weights(residual: Array, noise: float) -> Array:
        """Roots of Huber's weights, over the noise."""
        size = np.abs(residual) / noise
        return np.sqrt(np.minimum(1.0, _HUBER / np.maximum(size, _HUBER))) / noise

    @staticmethod
    def _cost(residual: Array, noise: float, past: Array) -> float:
        size = np.abs(residual) / noise
        return float(np.where(size < _HUBER, size**2, 2.0 * _HUBER * size - _HUBER**2).sum() + past @ past)

    def _noise(self, residual: Array, before: float) -> float:
        """Return the light's deviation by what is left [1]; never more than before, so that a fit does not run away."""
        found = float(np.sqrt(np.mean(np.minimum(np.abs(residual), _HUBER * before) ** 2)))
        share = max(1.0 - (8 + _NUISANCES) / len(residual), 0.2)
        return max(min(found / np.sqrt(share), before), 1e-3 * self.contrast, 1e-6)

    def _fit(self, state: _State, made: tuple[Array, Array], noise: float) -> PictureFit | None:
        residual, slope = made
        explained = 1.0 - float(np.square(residual).sum() / np.square(self.light - self.light.mean()).sum())
        weight = self._weights(residual, noise)
        rows = slope * weight[:, None]
        matrix = rows.T @ rows + np.diag(np.append(np.zeros(8), self.prior[8:] ** 2))
        own, mixed, rest = matrix[:8, :8], matrix[:8, 8:], matrix[8:, 8:]
        information = own - mixed @ np.linalg.solve(rest, mixed.T)
        values, vectors = np.linalg.eigh(0.5 * (information + information.T))
        known = values > 1.0 / _KNOWN**2
        # The given corners pull with this force; without it the fit lies where the picture alone would have it.
        pull = (self.prior[:8] ** 2) * (state.corners - self.start).ravel()
        along = np.where(known, vectors.T @ pull / np.where(known, values, 1.0), 0.0)
        corners = state.corners + (vectors @ along).reshape(4, 2)
        root = np.where(known, np.sqrt(np.maximum(values, 0.0)), 0.0)[:, None] * vectors.T
        if not np.isfinite(corners).all():
            return None
        blur = float(np.exp(0.5 * (state.blur[0] + state.blur[2])))
        return PictureFit(corners, root, explained, blur, self, state)

    def sampled(self, state: _State) -> tuple[Array, Array]:
        """As `PictureFit.sampled`; nothing of corners on a line."""
        inverse = _to_plane(state.corners, len(self.cells))
        if inverse is None:
            return np.empty((0, 3)), np.empty(0)
        place, slope = _applied(inverse, self.pixels)
        black, whole, _, _ = _blurred(place, slope, state, self.cells, gradient=False)
        good = whole > 0.98
        dark = float(np.clip(state.shade[0] / state.shade[1], 0.0, 0.5))
        sampled = np.column_stack((place / len(self.cells), self.light / state.shade[1]))
        return sampled[good], (1.0 - (1.0 - dark) * black)[good]

    def _linear(self, state: _State) -> tuple[Array, Array] | None:
        """Residuals (m,) of the light, and slopes (m, 41); None of corners that no camera sees."""
        n = len(self.cells)
        inverse = _to_plane(state.corners, n)
        if inverse is None:
            return None
        place, slope = _applied(inverse, self.pixels)
        if not np.isfinite(place).all() or not (np.abs(state.blur) < 3.0).all() or not 0.3 < state.margin < 3.0:
            return None
        black, white, around, bend = state.shade[:4]
        contrast = white - black
        if not contrast > 0.0:
            return None
        b, m, grad_b, grad_m = _blurred(place, slope, state, self.cells)
        lit = hats(place / n, _LIT)
        fall = 1.0 + lit @ state.shade[4:]
        if self.lit is not None:
            known = self.lit(place / n)
            fall, lit = fall * known, lit * known[:, None]
        mixed = black * b + white * (m - b) + around * (1.0 - m)
        h = (mixed - black) / contrast
        bent = mixed + bend * contrast * h * (1.0 - h)
        by_mixed = fall * (1.0 + bend * (1.0 - 2.0 * h))
        residual = fall * bent - self.light
        rows = np.empty((len(residual), 16 + _LIT**2))
        # A corner moved by a pixel moves the plane under a pixel: by the slopes of the homography, corner by corner.
        by_place = by_mixed[:, None] * ((black - white) * grad_b + (white - around) * grad_m)
        rows[:, :8] = self._by_corners(state.corners, inverse, by_place, place, slope)
        for k in range(4):
            moved = 1e-4 * np.eye(4)[k]
            other = replace(state, blur=state.blur + moved[:3], margin=state.margin + float(moved[3]))
            b2, m2, _, _ = _blurred(place, slope, other, self.cells, gradient=False)
            rows[:, 8 + k] = by_mixed * ((black - white) * (b2 - b) + (white - around) * (m2 - m)) / 1e-4
        # Slopes by black and white beside the bend, which is of their difference.
        rows[:, 12] = by_mixed * b + fall * bend * (-h * (1.0 - h) - (1.0 - 2.0 * h) * (1.0 - h))
        rows[:, 13] = by_mixed * (m - b) + fall * bend * (h * (1.0 - h) - (1.0 - 2.0 * h) * h)
        rows[:, 14] = by_mixed * (1.0 - m)
        rows[:, 15] = fall * contrast * h * (1.0 - h)
        rows[:, 16:] = bent[:, None] * lit
        return residual, rows

    def _by_corners(self, corners: Array, inverse: Array, by_place: Array, place: Array, slope: Array) -> Array:
        """Slopes (m, 8) of the light by the corners."""
        rows = np.empty((len(place), 8))
        for k in range(8):
            moved = corners.copy()
            moved.reshape(-1)[k] += 1e-5
            other = _to_plane(moved, len(self.cells))
            assert other is not None
            rows[:, k] = (by_place * (_applied(other, self.pixels)[0] - place)).sum(axis=-1) / 1e-5
        return rows


def _blurred(
    place: Array, slope: Array, state: _State, cells: Array, gradient: bool = True
) -> tuple[Array, Array, Array, Array]:
    """Return how black a picture is and how much of it is marker and margin, (m,) each; and their slopes (m, 2) on the plane.

    The blur's covariance on the plane is a diagonal part, for which cells are differences of the normal distribution, and a
    part along a line, over which Gauss and Hermite's quadrature goes.
    """
    p, q, r = state.blur
    root = np.array([[np.exp(p), 0.0], [q, np.exp(r)]])
    spread = slope @ root
    variance = (spread**2).sum(axis=-1)
    deviation = np.sqrt(variance)
    share = np.clip((spread[:, 0] * spread[:, 1]).sum(axis=-1) / np.maximum(deviation.prod(axis=-1), 1e-12), -0.97, 0.97)
    line = np.sqrt(np.abs(share))[:, None] * deviation * np.stack((np.ones_like(share), np.sign(share)), axis=-1)
    own = np.sqrt(1.0 - np.abs(share))[:, None] * deviation
    at = place[None] + _NODES[:, None, None] * line[None]
    n, m = len(cells), state.margin
    edges = np.concatenate((np.arange(n + 1.0), [-m, n + m]))
    z = (at[..., None] - edges) / own[None, :, :, None]
    step = _normal(z)
    inside = step[..., :n] - step[..., 1 : n + 1]
    whole = step[..., n + 1] - step[..., n + 2]
    x, y = inside[:, :, 0], inside[:, :, 1]
    weights = _NODE_WEIGHTS[:, None]
    black = (weights * np.einsum("kpi,kpi->kp", y @ cells, x)).sum(axis=0)
    margin = (weights * whole[..., 0] * whole[..., 1]).sum(axis=0)
    if not gradient:
        return black, margin, np.empty(0), np.empty(0)
    bell = np.exp(-0.5 * np.minimum(z * z, 1400.0)) / np.sqrt(2.0 * np.pi) / own[None, :, :, None]
    d_inside = bell[..., :n] - bell[..., 1 : n + 1]
    d_whole = bell[..., n + 1] - bell[..., n + 2]
    grad_black = np.stack((
        (weights * np.einsum("kpi,kpi->kp", y @ cells, d_inside[:, :, 0])).sum(axis=0),
        (weights * np.einsum("kpi,kpi->kp", d_inside[:, :, 1] @ cells, x)).sum(axis=0),
    ), axis=-1)  # fmt: skip
    grad_margin = np.stack((
        (weights * d_whole[..., 0] * whole[..., 1]).sum(axis=0), (weights * whole[..., 0] * d_whole[..., 1]).sum(axis=0)
    ), axis=-1)  # fmt: skip
    return black, margin, grad_black, grad_margin


def _normal(z: Array) -> Array:
    from scipy.special import ndtr

    return np.asarray(ndtr(z))
