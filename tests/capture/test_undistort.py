"""Straight images against exact ones: patterns whose image through any lens is known in closed form."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.capture.cameras import MODELS, Rational, SourceCamera, camera_of
from airworthy.capture.images import Undistorter, reduced_size
from airworthy.core.errors import AirworthyError
from airworthy.optics.distortion import AnglePolynomial, PlumbBob
from airworthy.optics.lenses import Fisheye, Pinhole
from airworthy.optics.tone import srgb_from_linear

WIDTH, HEIGHT = 160, 120
PINHOLE = (150.0, 152.0, 81.5, 58.25)
FOX = PlumbBob(0.0578421, -0.0805099, -0.000980296, 0.00015575)  # coefficients of a telephone's camera
RATIONAL = Rational(0.3, 0.05, 0.001, -0.002, 0.01, 0.35, 0.02, 0.0)
FISHEYE = AnglePolynomial(0.02, -0.01, 0.002, 0.0)
PERIOD = 24.0
"""Of the pattern at the middle of the image [px]."""


def pattern(flat: np.ndarray) -> np.ndarray:
    """Linear light in [0.3, 0.7] of rays (x/z, y/z)."""
    turn = 2.0 * np.pi * PINHOLE[0] / PERIOD * flat
    return 0.5 + 0.1 * np.sin(turn[..., 0]) + 0.1 * np.cos(turn[..., 1] + 0.5)


def centres(width: int, height: int) -> np.ndarray:
    return np.stack(np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5), axis=-1)


def encoded(light: np.ndarray) -> np.ndarray:
    """Bytes of linear light, grey as three channels."""
    return np.repeat(np.rint(255.0 * srgb_from_linear(light)).astype(np.uint8)[..., None], 3, axis=-1)


def rays(camera: SourceCamera) -> np.ndarray:
    """(x/z, y/z) of every pixel: the inverse of the lens, by Newton's method with numerical slopes."""
    target = (centres(camera.width, camera.height) - (camera.cx, camera.cy)) / (camera.fx, camera.fy)
    found, step = target.copy(), 1e-6
    for _ in range(30):
        slopes = [(camera.distort(found + e) - camera.distort(found - e)) / (2.0 * step) for e in step * np.eye(2)]
        matrix = np.stack(slopes, axis=-1)
        found = found - np.linalg.solve(matrix, (camera.distort(found) - target)[..., None])[..., 0]
    assert np.abs(camera.distort(found) - target).max() < 1e-10
    return found


@pytest.mark.parametrize("lens", [PlumbBob(), FOX, RATIONAL, FISHEYE])
def test_pixels_have_the_rays_that_meet_them(lens: PlumbBob | Rational | AnglePolynomial) -> None:
    camera = SourceCamera(WIDTH, HEIGHT, *PINHOLE, lens)
    found = camera.rays(centres(WIDTH, HEIGHT))
    assert np.isfinite(found).all()
    assert camera.pixels(found) == pytest.approx(centres(WIDTH, HEIGHT), abs=1e-7)
    assert found == pytest.approx(rays(camera), abs=1e-9)


def test_pixels_beyond_the_fold_of_a_lens_have_no_ray() -> None:
    """r (1 - 0.35 r^2) is 0.65 at most, where r is 0.976."""
    camera = SourceCamera(WIDTH, HEIGHT, 100.0, 100.0, 80.0, 60.0, PlumbBob(k1=-0.35))
    inside, outside = camera.rays([(80.0 + 64.0, 60.0), (80.0 + 66.0, 60.0)])
    assert 0.8 < inside[0] < 0.976
    assert np.isnan(outside).all()


@pytest.mark.parametrize("lens", [PlumbBob(), FOX, RATIONAL, FISHEYE])
def test_the_image_of_a_pattern_becomes_straight(lens: PlumbBob | Rational | AnglePolynomial) -> None:
    """Bilinear interpolation is off by at most 1/8 of the sum of the second derivatives: 2 (0.1) (2 pi / 24)^2 / 8 = 0.0017 of
    light where the lens does not magnify, under 0.5 levels; roundings of both images add 1 level. Within half a pixel of the
    old image's border its last pixel is held: a slope of 0.026 a pixel makes that 0.013 of light, 3.5 levels."""
    camera = SourceCamera(WIDTH, HEIGHT, *PINHOLE, lens)
    straight = Undistorter(camera)
    result = straight(encoded(pattern(rays(camera))))
    fx, fy, cx, cy = straight.intrinsics
    flat = (centres(WIDTH, HEIGHT) - (cx, cy)) / (fx, fy)
    expected = encoded(pattern(flat))
    good = np.ones((HEIGHT, WIDTH), bool) if straight.mask is None else straight.mask
    assert good.mean() > 0.7
    where = camera.pixels(flat)
    inner = good & (np.abs(where - (WIDTH / 2, HEIGHT / 2)) <= (WIDTH / 2 - 0.5, HEIGHT / 2 - 0.5)).all(axis=-1)
    off = np.abs(result.astype(int) - expected)
    assert off[inner].max() <= 2
    assert off[inner].mean() < 0.5
    assert off[good].max() <= 5
    assert (result[~good] == 0).all()


@pytest.mark.parametrize("lens", [FOX, FISHEYE])
def test_reducing_averages_light_over_the_area(lens: PlumbBob | AnglePolynomial) -> None:
    """To 2/5 of the width. The mean of a sine over a pixel's area is the sine times sinc of its width, in closed form; places
    half a source pixel apart give it to the accuracy of the interpolation above, and the roundings as above."""
    camera = SourceCamera(WIDTH, HEIGHT, *PINHOLE, lens)
    straight = Undistorter(camera, 64)
    assert (straight.width, straight.height) == (64, 48)
    assert straight.samples == 3
    result = straight(encoded(pattern(rays(camera))))
    fx, fy, cx, cy = straight.intrinsics
    flat = (centres(64, 48) - (cx, cy)) / (fx, fy)
    turn = 2.0 * np.pi * PINHOLE[0] / PERIOD
    shrink = np.sinc(turn / fx / (2.0 * np.pi)), np.sinc(turn / fy / (2.0 * np.pi))
    light = 0.5 + 0.1 * shrink[0] * np.sin(turn * flat[..., 0]) + 0.1 * shrink[1] * np.cos(turn * flat[..., 1] + 0.5)
    good = np.ones((48, 64), bool) if straight.mask is None else straight.mask
    assert np.abs(result.astype(int) - encoded(light))[good].max() <= 2


def test_a_whole_reduction_without_distortion_is_the_mean_of_pixels() -> None:
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (HEIGHT, WIDTH, 3)).astype(np.uint8)
    encoded_ = pixels / 255.0
    light = np.where(encoded_ <= 0.04045, encoded_ / 12.92, ((encoded_ + 0.055) / 1.055) ** 2.4)
    mean = light.reshape(HEIGHT // 4, 4, WIDTH // 4, 4, 3).mean(axis=(1, 3))
    found = Undistorter(SourceCamera(WIDTH, HEIGHT, *PINHOLE), WIDTH // 4)
    assert found.mask is None
    # Equal but for the rounding of a value that lies within float32 of the middle between two levels.
    off = np.abs(found(pixels).astype(int) - np.rint(255.0 * srgb_from_linear(mean)))
    assert off.max() <= 1
    assert (off > 0).mean() < 1e-3


def test_nothing_finer_than_a_pixel_comes_through() -> None:
    """A checkerboard of single pixels is half of the light: sRGB 188, not the mean of the bytes, 128, and no moiré."""
    board = np.repeat((255 * (np.indices((HEIGHT, WIDTH)).sum(axis=0) % 2)).astype(np.uint8)[..., None], 3, axis=-1)
    half = Undistorter(SourceCamera(WIDTH, HEIGHT, *PINHOLE), WIDTH // 2)(board)
    assert (half == 188).all()
    uneven = Undistorter(SourceCamera(WIDTH, HEIGHT, *PINHOLE), 50)(board)  # 3.2 pixels each way
    assert np.abs(uneven.astype(int) - 188).max() <= 12


def test_the_same_image_passes_unchanged() -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (HEIGHT, WIDTH, 3)).astype(np.uint8)
    same = Undistorter(SourceCamera(WIDTH, HEIGHT, *PINHOLE), 4 * WIDTH)
    assert same(pixels) is pixels
    assert (same.intrinsics == PINHOLE).all()


def test_sizes_and_intrinsics_keep_the_field_of_view() -> None:
    assert reduced_size(1080, 1920, 270) == (270, 480)
    assert reduced_size(1081, 3, 10) == (10, 1)
    assert reduced_size(100, 50, None) == reduced_size(100, 50, 100) == (100, 50)
    camera = SourceCamera(1081, 721, 900.0, 910.0, 500.0, 360.0)
    small = Undistorter(camera, 333)
    fx, fy, cx, cy = small.intrinsics
    for edge, new, old in ((0, 0, 0), (1, small.width, 1081)):
        assert (new - cx) / fx == pytest.approx((old - 500.0) / 900.0, abs=1e-12), edge
    for new, old in ((0, 0), (small.height, 721)):
        assert (new - cy) / fy == pytest.approx((old - 360.0) / 910.0, abs=1e-12)


def test_masks_are_where_the_old_image_was() -> None:
    """Against the projections of `sensors`: the ray of a pixel of the new image hits the old one."""
    camera = SourceCamera(WIDTH, HEIGHT, *PINHOLE, PlumbBob(0.2, 0.05, 0.01, -0.01))
    straight = Undistorter(camera)
    flat = (centres(WIDTH, HEIGHT) - PINHOLE[2:]) / PINHOLE[:2]
    points = np.concatenate([flat, np.ones((HEIGHT, WIDTH, 1))], axis=-1)
    _, inside = Pinhole(WIDTH, HEIGHT, *PINHOLE, camera.lens).project(points)
    assert straight.mask is not None
    assert (straight.mask == inside).all()
    assert 0.3 < inside.mean() < 0.95


def test_masks_of_images_shrink_to_what_is_wholly_shown() -> None:
    shown = np.ones((8, 12), bool)
    shown[3, 4] = False
    small = Undistorter(SourceCamera(12, 8, 10.0, 10.0, 6.0, 4.0), 6)
    found = small.masked(shown)
    assert found.shape == (4, 6)
    assert [tuple(place) for place in np.argwhere(~found)] == [(1, 2)]


def test_what_a_lens_folds_back_is_left_out() -> None:
    """r (1 - 0.4 r^2) is largest at r = 1 / sqrt(1.2) = 0.913: rays beyond come back into the image."""
    camera = SourceCamera(200, 200, 80.0, 80.0, 100.0, 100.0, PlumbBob(-0.4))
    assert camera.reach(2.0) == pytest.approx(1.0 / np.sqrt(1.2), abs=2.0 / 255)
    straight = Undistorter(camera)
    flat = (centres(200, 200) - 100.0) / 80.0
    assert straight.mask is not None
    assert not straight.mask[np.linalg.norm(flat, axis=-1) > 0.914].any()
    assert straight.mask[np.linalg.norm(flat, axis=-1) < 0.90].all()


def test_lenses_are_those_of_the_sensors() -> None:
    rng = np.random.default_rng(0)
    flat = rng.uniform(-0.5, 0.5, (50, 2))
    points = np.concatenate([flat, np.ones((50, 1))], axis=1)
    values = dict(zip(MODELS["OPENCV"], (150.0, 152.0, 81.5, 58.25, 0.05, -0.02, 0.001, 0.002), strict=True))
    bob = Pinhole(WIDTH, HEIGHT, *PINHOLE, PlumbBob(0.05, -0.02, 0.001, 0.002)).project(points)[0]
    assert camera_of("OPENCV", WIDTH, HEIGHT, [*values.values()]).pixels(flat) == pytest.approx(bob, abs=1e-9)
    eye = Fisheye(WIDTH, HEIGHT, *PINHOLE, FISHEYE).project(points)[0]
    fisheye = camera_of("OPENCV_FISHEYE", WIDTH, HEIGHT, [*PINHOLE, 0.02, -0.01, 0.002, 0.0])
    assert fisheye.pixels(flat) == pytest.approx(eye, abs=1e-9)
    assert fisheye.pixels(np.zeros(2)) == pytest.approx(PINHOLE[2:])
    radial = Pinhole(WIDTH, HEIGHT, 150.0, 150.0, 81.5, 58.25, PlumbBob(0.1, 0.02)).project(points)[0]
    assert camera_of("RADIAL", WIDTH, HEIGHT, [150.0, 81.5, 58.25, 0.1, 0.02]).pixels(flat) == pytest.approx(radial, abs=1e-9)


def test_the_rational_model() -> None:
    """Written out as OpenCV documents it."""
    k1, k2, p1, p2, k3, k4, k5, k6 = values = (0.3, 0.05, 0.001, -0.002, 0.01, 0.35, 0.02, 0.004)
    x, y = 0.3, -0.2
    r2 = x * x + y * y
    gain = (1 + k1 * r2 + k2 * r2**2 + k3 * r2**3) / (1 + k4 * r2 + k5 * r2**2 + k6 * r2**3)
    expected = x * gain + 2 * p1 * x * y + p2 * (r2 + 2 * x * x), y * gain + p1 * (r2 + 2 * y * y) + 2 * p2 * x * y
    assert Rational(*values).distort((x, y)) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(
    ("model", "parameters", "message"),
    [
        ("FOV", (1.0,) * 5, "its camera model is FOV; known are SIMPLE_PINHOLE"),
        ("OPENCV", (1.0,) * 4, "its camera has 4 parameters; OPENCV has 8"),
        ("PINHOLE", (0.0, 1.0, 1.0, 1.0), "focal lengths 0, 1"),
        ("PINHOLE", (1.0, 1.0, float("nan"), 1.0), "numbers out of range"),
        ("RADIAL", (1.0, 1.0, 1.0, 1e9, 0.0), "numbers out of range"),
    ],
)
def test_cameras_that_cannot_be(model: str, parameters: tuple[float, ...], message: str) -> None:
    with pytest.raises(AirworthyError, match=message):
        camera_of(model, 10, 10, parameters)


def test_a_lens_of_which_nothing_is_left() -> None:
    with pytest.raises(AirworthyError, match="under a tenth"):
        Undistorter(SourceCamera(100, 100, 20.0, 20.0, 50.0, 50.0, PlumbBob(-8.0)))


def test_a_lens_that_folds_askew_is_followed_to_where_it_folds_first() -> None:
    """x = u + 2 p u v + p (3 u^2 + v^2) and y = v + p (u^2 + 3 v^2) + 2 p u v: the area of the slopes is
    (1 + p (6 u + 2 v)) (1 + p (2 u + 6 v)) - (2 p (u + v))^2, on the diagonal with u = v = -r / sqrt(2)
    (1 - 8 p r / sqrt(2))^2 - (4 p r / sqrt(2))^2, 0 first at r = sqrt(2) / (12 p)."""
    camera = SourceCamera(200, 200, 80.0, 80.0, 100.0, 100.0, PlumbBob(0.0, 0.0, 0.2, 0.2))
    assert camera.reach(2.0) == pytest.approx(np.sqrt(2.0) / 2.4, abs=2.0 / 255)
