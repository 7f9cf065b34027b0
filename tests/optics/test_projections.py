"""Ray tables against their formulas, and round trips between pixels and rays."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airworthy.core.errors import AirworthyError
from airworthy.optics.distortion import TOLERANCE, AnglePolynomial, PlumbBob
from airworthy.optics.lenses import SUPERSAMPLES
from airworthy.optics.projections import Fisheye, Pinhole, Projection, Spherical, UserRays, pixel_centres

LENS = PlumbBob(-0.28, 0.09, 4e-4, -3e-4, -0.012)
PROJECTIONS = {
    "pinhole": Pinhole.from_fov(64, 48, horizontal=math.radians(87)),
    "plumb bob": Pinhole(64, 48, 40.0, 41.0, 31.0, 24.5, LENS),
    "pincushion": Pinhole(64, 48, 40.0, 41.0, 31.0, 24.5, PlumbBob(0.2, 0.05)),
    "fisheye": Fisheye(64, 48, 20.0, 20.0, 32.0, 24.0, AnglePolynomial(0.05, -0.01, 0.003, -2e-4)),
    "fisheye beyond 180 degrees": Fisheye.from_fov(64, 64, math.radians(220)),
    "lidar": Spherical(64, 16),
    "lidar, duplicated": Spherical(64, 16, duplicate_column=True),
    "lidar, uneven rows": Spherical(64, 3, elevations=(0.4, 0.1, -0.5)),
    "dome": Spherical(32, 9, elevation=(0.0, 1.5)),
    "zones": Spherical(8, 8, (-0.4, 0.4), (-0.4, 0.4), centres=True),
}


@pytest.mark.parametrize("name", PROJECTIONS)
def test_pixels_come_back(name: str) -> None:
    """project(unproject(pixel)) = pixel to 1e-3 px (quality.md 11), at centres and between them, at any distance."""
    projection: Projection = PROJECTIONS[name]
    rng = np.random.default_rng(0)
    pixels = rng.uniform((0.51, 0.51), (projection.width - 0.51, projection.height - 0.51), (500, 2))
    rays = projection.unproject(pixels)
    np.testing.assert_allclose(np.linalg.norm(rays, axis=-1), 1.0, atol=1e-12)
    back, inside = projection.project(rays * rng.uniform(0.1, 100.0, (500, 1)))
    assert inside.all()
    # Newton stops at 1e-9 in normalised coordinates, times focal lengths of some tens of pixels.
    np.testing.assert_allclose(back, pixels, atol=1e-6)


@pytest.mark.parametrize("name", PROJECTIONS)
def test_the_table_holds_the_rays_of_the_pixels(name: str) -> None:
    projection: Projection = PROJECTIONS[name]
    table = projection.rays()
    rays = projection.unproject(pixel_centres(projection.height, projection.width))
    mask = projection.mask()
    keep = np.ones((projection.height, projection.width), bool) if mask is None else mask
    np.testing.assert_allclose(np.asarray(table.directions)[keep], rays[keep], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(table.directions, axis=-1), 1.0, atol=1e-6)


def test_pinhole_formula() -> None:
    """fx = (W / 2) / tan(hfov / 2); the ray of pixel (x, y) is ((x + 1/2 - cx) / fx, (y + 1/2 - cy) / fy, 1)."""
    camera = Pinhole.from_fov(480, 270, horizontal=math.radians(87.0))
    assert camera.fx == pytest.approx(252.9072, abs=1e-4)  # spec/aerial_gym, derived_focal_px
    assert math.degrees(camera.vertical_fov) == pytest.approx(56.1859, abs=1e-4)
    x, y = 17, 201
    expected = np.array([(x + 0.5 - 240.0) / camera.fx, (y + 0.5 - 135.0) / camera.fy, 1.0])
    np.testing.assert_allclose(camera.rays().directions[y, x], expected / np.linalg.norm(expected), atol=1e-7)


def test_integer_pixels_of_the_source() -> None:
    camera = Pinhole.from_fov(240, 135, horizontal=math.radians(87.0), integer_pixels=True)
    assert (camera.cx, camera.cy) == (120, 67)
    np.testing.assert_array_equal(camera.rays().directions[67, 120], (0.0, 0.0, 1.0))


def test_behind_and_outside_are_told() -> None:
    camera = PROJECTIONS["pinhole"]
    _, inside = camera.project([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0], [0.0, 0.0, 0.0], [10.0, 0.0, 1.0], [0.0, np.nan, 1.0]])
    assert inside.tolist() == [True, False, False, False, False]


def test_points_beyond_the_field_are_not_folded_into_the_image() -> None:
    """With k1 < 0 the polynomial turns back: far outside points would land in the middle."""
    camera = PROJECTIONS["plumb bob"]
    angle = np.radians(np.linspace(60.0, 89.5, 200))
    pixel, inside = camera.project(np.stack([np.tan(angle), np.zeros(200), np.ones(200)], -1))
    assert ((pixel[:, 0] > 0) & (pixel[:, 0] < 64)).any()
    assert not inside.any()


@given(st.floats(-0.25, 0.4), st.floats(-0.03, 0.1), st.floats(-2e-3, 2e-3), st.floats(-2e-3, 2e-3))
def test_undistortion_inverts_distortion(k1: float, k2: float, p1: float, p2: float) -> None:
    lens = PlumbBob(k1, k2, p1, p2)
    points = np.random.default_rng(1).uniform(-0.5, 0.5, (50, 2))
    found, good = lens.undistort(lens.distort(points))
    assert good.all()
    # Residuals are below TOLERANCE, so are the points, divided by the smallest slope of the lens, above 0.4 here.
    np.testing.assert_allclose(found, points, atol=3 * TOLERANCE)


def test_the_jacobian_is_the_derivative() -> None:
    points = np.random.default_rng(2).uniform(-0.6, 0.6, (20, 2))
    h = 1e-6
    numeric = np.stack([(LENS.distort(points + h * e) - LENS.distort(points - h * e)) / (2 * h) for e in np.eye(2)], axis=-1)
    np.testing.assert_allclose(LENS.jacobian(points), numeric, atol=1e-8)


def test_distortion_as_opencv_writes_it() -> None:
    """By hand at (0.5, -0.25): r2 = 0.3125, with k1 = 0.1, k2 = 0.02, p1 = 0.001, p2 = -0.002, k3 = 0.003."""
    gain = 1 + 0.1 * 0.3125 + 0.02 * 0.3125**2 + 0.003 * 0.3125**3
    x = 0.5 * gain + 2 * 0.001 * 0.5 * -0.25 - 0.002 * (0.3125 + 2 * 0.25)
    y = -0.25 * gain + 0.001 * (0.3125 + 2 * 0.0625) + 2 * -0.002 * 0.5 * -0.25
    np.testing.assert_allclose(PlumbBob(0.1, 0.02, 0.001, -0.002, 0.003).distort((0.5, -0.25)), (x, y), rtol=1e-14)


def test_a_lens_that_folds_is_refused() -> None:
    with pytest.raises(AirworthyError, match="folds a 640x480 image"):
        Pinhole(640, 480, 300.0, 300.0, 320.0, 240.0, PlumbBob(-0.6))
    with pytest.raises(AirworthyError, match="stops growing"):
        Fisheye(640, 480, 200.0, 200.0, 320.0, 240.0, AnglePolynomial(-0.4))


def test_fisheye_without_coefficients_is_equidistant() -> None:
    camera = Fisheye(100, 100, 40.0, 40.0, 50.0, 50.0)
    angle = 2.0  # beyond 90 degrees
    pixel, inside = camera.project((math.sin(angle), 0.0, math.cos(angle)))
    np.testing.assert_allclose(pixel, (50.0 + 40.0 * angle, 50.0))
    assert not inside
    assert camera.mask() is None


def test_pixels_outside_the_image_circle_have_no_ray() -> None:
    mask = Fisheye.from_fov(64, 64, math.radians(350)).mask()
    assert mask is not None
    assert not mask[0, 0]
    assert mask[32, 1]


def test_lidar_table_is_the_formula() -> None:
    """Spec/aerial_gym 7.5: azimuth from max to min over columns at j/W, elevation from max to min over rows, ends included."""
    lidar = Spherical(512, 128, elevation=(math.radians(-45), math.radians(45)))
    i, j = np.meshgrid(np.arange(128), np.arange(512), indexing="ij")
    azimuth, elevation = math.pi - 2 * math.pi * j / 512, math.radians(45) - math.radians(90) * i / 127
    flat = np.cos(elevation)
    expected = np.stack([np.cos(azimuth) * flat, np.sin(azimuth) * flat, np.sin(elevation)], axis=-1)
    np.testing.assert_allclose(lidar.rays().directions, expected, atol=1e-7)
    doubled = Spherical(512, 128, duplicate_column=True).rays().directions
    np.testing.assert_allclose(doubled[:, 0], doubled[:, -1], atol=1e-6)


def test_a_narrow_sensor_includes_both_ends() -> None:
    zones = Spherical(8, 8, (math.radians(-45), math.radians(45)), (math.radians(-45), math.radians(45)))
    np.testing.assert_allclose(zones.azimuths[[0, -1]], np.radians([45, -45]))
    np.testing.assert_allclose(zones.row_elevations[[0, -1]], np.radians([45, -45]))


def test_user_rays() -> None:
    rays = UserRays(np.array([[[2.0, 0.0, 0.0], [0.0, 0.0, -3.0]]]))
    np.testing.assert_array_equal(rays.rays().directions, [[[1, 0, 0], [0, 0, -1]]])
    np.testing.assert_array_equal(rays.unproject([[1.5, 0.5]]), [[0, 0, -1]])
    with pytest.raises(AirworthyError, match="zero or not finite"):
        UserRays(np.zeros((1, 1, 3)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Pinhole.from_fov(10, 10),
        lambda: Pinhole.from_fov(10, 10, horizontal=4.0),
        lambda: Pinhole(0, 10, 1.0, 1.0, 1.0, 1.0),
        lambda: Pinhole(10, 10, -1.0, 1.0, 1.0, 1.0),
        lambda: Spherical(10, 10, (1.0, 0.0)),
        lambda: Spherical(10, 3, elevations=(0.0, 1.0, 2.0)),
        lambda: UserRays(np.zeros((3, 3))),
    ],
)
def test_what_cannot_be_a_projection_is_refused(make: object) -> None:
    with pytest.raises(AirworthyError):
        make()  # type: ignore[operator]


@pytest.mark.parametrize("count", SUPERSAMPLES)
def test_a_pixels_samples_share_no_row_and_no_column(count: int) -> None:
    """Rooks on a board that do not attack each other, each in the middle of its field."""
    middles = (np.arange(count) + 0.5) / count - 0.5
    across, down = np.array(SUPERSAMPLES[count]).T
    assert sorted(across) == sorted(down) == middles.tolist()
