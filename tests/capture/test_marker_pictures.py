"""Corners by a marker's whole picture: drawn ones, whose place is known, of cells that are hardly a pixel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from airworthy.capture import CaptureImages
from airworthy.capture.alignment.align import align_capture
from airworthy.capture.alignment.marker_fit import MarkerSights, Square, fit_squares, scale_bound
from airworthy.capture.alignment.marker_light import light_map
from airworthy.capture.alignment.marker_photometry import fit_picture, printed_cells
from airworthy.capture.alignment.marker_refinement import PictureRefiner, through
from airworthy.capture.alignment.marker_sheet import draw_marker
from airworthy.capture.alignment.markers import DICTIONARY, marker_corners
from airworthy.capture.alignment.record import AlignOptions
from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.optics.tone import srgb_from_linear
from airworthy.scenes.viewpoints import look_at

CELLS = printed_cells(0, DICTIONARY)
SIDE = 0.2
WIDTH, HEIGHT, FOCAL = 200, 120, 150.0
LENS = np.array([FOCAL, FOCAL, 100.0, 60.0])


def drawn(corners: np.ndarray, size: tuple[int, int], light: object = None, noise: float = 0.0, seed: int = 0) -> np.ndarray:
    """A marker (h, w, 3) on grey, each pixel the mean of 8 x 8 points of it.

    Args:
        corners: (4, 2) [px].
        size: Width and height [px].
        light: Of places (m, 2) on the marker, 0 to 1 from its upper left corner; None: 1.
        noise: Standard deviation [counts].
        seed: Of the noise.
    """
    plane = np.array([[0.0, 0.0], [6.0, 0.0], [6.0, 6.0], [0.0, 6.0]])
    rows, values = [], []
    for (u, v), (x, y) in zip(corners, plane, strict=True):
        rows += [[u, v, 1.0, 0.0, 0.0, 0.0, -u * x, -v * x], [0.0, 0.0, 0.0, u, v, 1.0, -u * y, -v * y]]
        values += [x, y]
    matrix = np.append(np.linalg.solve(np.array(rows), np.array(values)), 1.0).reshape(3, 3)
    width, height = size
    # Pixels on print or margin, the square from -1 to 7; all of the others is grey.
    ends = np.array([[-1.0, -1.0, 1.0], [7.0, -1.0, 1.0], [7.0, 7.0, 1.0], [-1.0, 7.0, 1.0]]) @ np.linalg.inv(matrix).T
    ends = ends[:, :2] / ends[:, 2:]
    left, top = np.clip(np.floor(ends.min(axis=0)).astype(int), 0, size)
    right, bottom = np.clip(np.ceil(ends.max(axis=0)).astype(int), 0, size)
    u, v = np.meshgrid((np.arange(8 * left, 8 * right) + 0.5) / 8.0, (np.arange(8 * top, 8 * bottom) + 0.5) / 8.0)
    place = np.stack((u, v, np.ones_like(u)), axis=-1) @ matrix.T
    place = place[..., :2] / place[..., 2:]
    cell = np.floor(place).astype(int) + 1
    inside = ((cell >= 0) & (cell < 8)).all(axis=-1)
    cell = np.clip(cell, 0, 7)
    print_ = np.where(draw_marker(1)[cell[..., 1], cell[..., 0]] > 0, 0.8, 0.04)
    falls = 1.0 if light is None else light(place.reshape(-1, 2) / 6.0).reshape(inside.shape)
    linear = np.full((height, width), 0.25)
    points = np.where(inside, print_ * falls, 0.25).reshape(bottom - top, 8, right - left, 8)
    linear[top:bottom, left:right] = points.mean(axis=(1, 3))
    counts = 255.0 * srgb_from_linear(linear)[..., None] + noise * np.random.default_rng(seed).normal(size=(height, width, 3))
    return np.clip(np.rint(counts), 0, 255).astype(np.uint8)


def shadow(place: np.ndarray) -> np.ndarray:
    """A third of the light where a border runs across the lower right corner."""
    return np.where(place @ (0.8, 0.6) > 1.2, 0.35, 1.0)


def square_px(width: float, height: float, turn: float, at: tuple[float, float]) -> np.ndarray:
    """A foreshortened square: turned, then pressed."""
    c, s = np.cos(turn), np.sin(turn)
    return marker_corners(1.0)[:, :2] @ np.array([[c, s], [-s, c]]) * (width, -height) + at


@pytest.mark.parametrize(
    ("width", "height", "turn"), [(40.0, 40.0, 0.3), (12.0, 12.0, 0.1), (30.0, 8.0, 0.0), (36.0, 10.0, 0.7)]
)
def test_the_picture_tells_corners_of_cells_of_a_pixel(width: float, height: float, turn: float) -> None:
    """Means of 64 points of each pixel are off by at most a 16th of a pixel on an edge, and half as many counts by rounding:
    over the tens of pixels on the edges that is under 0.05 px."""
    corners = square_px(width, height, turn, (40.3, 30.6))
    rgb = drawn(corners, (80, 60))
    found = fit_picture(rgb, corners + np.array([[0.6, -0.4], [0.2, 0.3], [-0.5, 0.1], [0.4, 0.5]]), CELLS)
    assert found is not None
    assert found.explained > 0.99
    assert np.abs(found.corners - corners).max() < 0.05


@pytest.mark.slow
def test_deviations_are_those_of_the_noise() -> None:
    """Of 30 pictures with noise the errors, made independent, have a mean square of about 1 (240 numbers)."""
    corners = square_px(24.0, 14.0, 0.4, (32.3, 24.6))
    errors = []
    for seed in range(30):
        found = fit_picture(drawn(corners, (64, 48), noise=3.0, seed=seed), corners + 0.3, CELLS)
        assert found is not None
        errors.append(found.root @ (found.corners - corners).ravel())
    assert 0.75 < np.mean(np.square(errors)) < 1.6


def test_what_is_no_marker_is_said_to_explain_little() -> None:
    corners = square_px(30.0, 30.0, 0.2, (40.0, 30.0))
    noise = np.random.default_rng(0).integers(0, 256, (60, 80, 3)).astype(np.uint8)
    found = fit_picture(noise, corners, CELLS)
    assert found is None or found.explained < 0.6
    assert fit_picture(np.zeros((60, 80, 3), np.uint8), corners + 40.0, CELLS) is None
    assert fit_picture(noise, np.ones((4, 2)), CELLS) is None
    # The same picture turned by a quarter is another marker: border and margin, which are the same, explain two thirds.
    turned = fit_picture(drawn(corners, (80, 60)), np.roll(corners, 1, axis=0), CELLS)
    assert turned is None or turned.explained < 0.75


def test_light_that_is_the_same_in_all_images_is_found() -> None:
    """A shadow's border over a marker: the map tells it from the print, a third of the light beyond it."""
    squares = [square_px(40.0, 30.0, 0.1 * k, (40.3, 30.6)) for k in range(6)]
    fits = [fit_picture(drawn(c, (80, 60), shadow), c, CELLS) for c in squares]
    kept = [fit for fit in fits if fit is not None]
    assert len(kept) == 6
    light = light_map([fit.sampled(corners) for fit, corners in zip(kept, squares, strict=True)])
    bright, dark = light(np.array([[-0.05, 0.5], [1.08, 1.08]]))
    assert dark / bright == pytest.approx(0.35, abs=0.06)


# ---- In captures ------------------------------------------------------------------------------------------------------------


def filmed(
    count: int = 12, light: object = None, times: int = 1, tilt: float = 0.0, draw: bool = True
) -> tuple[CaptureImages, np.ndarray]:
    """A marker of 12 to 20 px on a floor, seen from all around; and its corners in the images."""
    rng = np.random.default_rng(3)
    turn = 2.0 * np.pi * (np.arange(count) + rng.uniform(0.0, 0.5, count)) / count
    away = rng.uniform(0.7, 1.4, count)
    position = np.stack((away * np.cos(turn), away * np.sin(turn), rng.uniform(1.2, 1.6, count)), axis=-1)
    attitude = np.stack([look_at(place, 0.1 * rng.normal(size=3)) for place in position])
    eye = frames.rotate_inverse(attitude[:, None], marker_corners(SIDE)[None] - position[:, None])
    lens = LENS * times
    pixel = eye[..., :2] / eye[..., 2:] * lens[:2] + lens[2:]
    size = (WIDTH * times, HEIGHT * times)
    blank = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    rgb = tuple(drawn(corners, size, light, 1.0, k) if draw else blank for k, corners in enumerate(pixel))
    wrong = frames.from_rotation_vector(tilt * rng.normal(size=(count, 3)))
    return CaptureImages(rgb, np.tile(lens, (count, 1)), position, frames.multiply(attitude, wrong)), pixel


def read(images: CaptureImages, pixel: np.ndarray, off: float) -> MarkerSights:
    """Corners as a detector has them: inwards by a share."""
    inward = pixel + off * (pixel.mean(axis=1, keepdims=True) - pixel)
    numbers = np.arange(len(images))
    return MarkerSights(numbers, inward, images.intrinsics, images.position, images.attitude)


@pytest.mark.slow
@pytest.mark.parametrize("light", [None, shadow])
def test_corners_that_are_read_too_small_do_not_shrink_the_place(light: object) -> None:
    """A twentieth too small in every image, as small pictures are read: the scale is right by 0.5 %, and in its interval."""
    images, pixel = filmed(light=light, tilt=0.001)
    sights = read(images, pixel, 0.05)
    square = Square(np.zeros(3), frames.IDENTITY, 0.95 * SIDE)
    left: dict[int, str] = {}
    found = PictureRefiner(images, DICTIONARY, images.intrinsics)(0, square, sights.some(np.arange(0, 12, 2)), left)
    # Those in which nothing was read are looked at as well.
    assert found.images.tolist() == list(range(12))
    assert left == {}
    fit = fit_squares([(square, SIDE)], [found])
    error = fit.squares[0].edge / SIDE - 1.0
    assert abs(error) < 0.005
    assert abs(error) <= fit.spread.half95(np.eye(8)[0])
    assert fit.spread.half95(np.eye(8)[0]) < 0.02


@pytest.mark.slow
def test_larger_images_tell_the_scale_and_pixels_stay_those_of_the_capture() -> None:
    pytest.importorskip("cv2", reason="OpenCV is not installed")
    images, pixel = filmed()
    larger, _ = filmed(times=2)
    found = align_capture(images, AlignOptions(side=SIDE, level="marker"), larger=larger)
    assert found.bundle is not None
    marker = found.bundle.markers[0]
    assert np.abs(marker.pixels - pixel[marker.images]).max() < 0.1
    assert found.similarity.scale == pytest.approx(1.0, rel=0.003)
    assert abs(found.similarity.scale - 1.0) <= found.scale_half
    with pytest.raises(AirworthyError, match="The larger images are 12 and others than the 11 of the capture"):
        align_capture(replace(images, **first(images, 11)), AlignOptions(side=SIDE), larger=larger)


def first(images: CaptureImages, count: int) -> dict:
    """Fields of the first images."""
    names = ("rgb", "intrinsics", "position", "attitude", "masks", "names", "held_out")
    return {name: getattr(images, name)[:count] for name in names}


def test_neighbours_in_a_walk_that_err_alike_are_counted_once() -> None:
    """Every four images that follow each other are off by the same: left out one by one, their scatter would look halved."""
    images, pixel = filmed(32, draw=False)
    off = np.repeat(np.random.default_rng(1).normal(size=(8, 1, 2)), 4, axis=0) * np.ones((1, 4, 1))
    off = off + 0.3 * np.repeat(np.random.default_rng(2).normal(size=(8, 4, 2)), 4, axis=0)
    plain = replace(read(images, pixel, 0.0), pixels=pixel + off)
    start = [(Square(np.zeros(3), frames.IDENTITY, SIDE), SIDE)]
    alone = fit_squares(start, [plain]).spread
    grouped = fit_squares(start, [replace(plain, root=np.tile(np.eye(8), (32, 1, 1)))]).spread
    assert (alone.images, grouped.images) == (32, 8)
    assert 1.4 < np.sqrt(grouped.by_image[0, 0] / alone.by_image[0, 0]) < 3.5


def test_sights_through_another_lens_and_back_are_the_same() -> None:
    images, pixel = filmed(4)
    sights = replace(read(images, pixel, 0.0), root=np.random.default_rng(0).normal(size=(4, 8, 8)))
    there = through(sights, 2.0 * sights.lens)
    assert there.pixels == pytest.approx(2.0 * pixel)
    assert there.root == pytest.approx(0.5 * sights.root)
    back = through(there, sights.lens)
    assert back.pixels == pytest.approx(pixel)
    assert back.root == pytest.approx(sights.root)


@pytest.mark.slow
def test_what_corners_are_off_together_widens_the_interval() -> None:
    """One corner too far inwards in all images, by a hundredth of the side: its two coordinates are spread over the eight
    directions of which scale is one, so the scale is off by a fraction, and the interval holds it."""
    images, _ = filmed()
    world = marker_corners(SIDE)
    root = np.tile(20.0 * np.eye(8), (12, 1, 1))
    for shift in ((0.0, 0.0), (-0.01 * SIDE, 0.01 * SIDE)):
        moved = world.copy()
        moved[2, :2] += shift
        eye = frames.rotate_inverse(images.attitude[:, None], moved[None] - images.position[:, None])
        sights = replace(read(images, eye[..., :2] / eye[..., 2:] * FOCAL + LENS[2:], 0.0), root=root)
        fit = fit_squares([(Square(np.zeros(3), frames.IDENTITY, SIDE), SIDE)], [sights])
        half = fit.spread.half95(np.eye(8)[0])
        assert abs(fit.squares[0].edge / SIDE - 1.0) <= half + 1e-9
        assert (fit.spread.by_shape > 0.0) == any(shift)


def test_a_fit_is_as_good_as_can_be() -> None:
    """Forty draws of corners with noise scatter as Cramer and Rao's bound allows: their root mean square within three of its
    own deviations, 3 / sqrt(2 x 40) = 34 %. Twice the noise, twice the bound; four times the images, half of it."""
    images, pixel = filmed(draw=False)
    square, rng = Square(np.zeros(3), frames.IDENTITY, SIDE), np.random.default_rng(4)
    exact = read(images, pixel, 0.0)
    bound = scale_bound(square, exact, 0.5)
    off = []
    for _ in range(40):
        noisy = replace(exact, pixels=pixel + 0.5 * rng.normal(size=pixel.shape))
        off.append(np.log(fit_squares([(square, SIDE)], [noisy], 0.0).squares[0].edge / SIDE))
    assert np.sqrt(np.mean(np.square(off))) == pytest.approx(bound, rel=0.34)
    assert scale_bound(square, exact, 1.0) == pytest.approx(2.0 * bound)
    assert scale_bound(square, exact.some(np.tile(np.arange(12), 4)), 0.5) == pytest.approx(0.5 * bound)
