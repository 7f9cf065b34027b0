"""WGS84 against closed forms, and the world's axes."""

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.sensors.navigation.geodesy import FIRST_ECCENTRICITY_SQUARED, SEMI_MAJOR_AXIS, Home, ecef, geodetic


def test_the_three_axes_of_the_ellipsoid() -> None:
    polar = SEMI_MAJOR_AXIS * np.sqrt(1.0 - FIRST_ECCENTRICITY_SQUARED)
    assert polar == pytest.approx(6356752.3142, abs=1e-4)  # NIMA TR8350.2, table 3.3
    found = ecef([0.0, 0.0, 90.0], [0.0, 90.0, 0.0], [0.0, 10.0, 20.0])
    expected = [[SEMI_MAJOR_AXIS, 0, 0], [0, SEMI_MAJOR_AXIS + 10, 0], [0, 0, polar + 20]]
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_there_and_back_is_exact() -> None:
    rng = np.random.default_rng(1)
    latitude, longitude, altitude = rng.uniform(-90, 90, 500), rng.uniform(-180, 180, 500), rng.uniform(-500, 12000, 500)
    back = geodetic(ecef(latitude, longitude, altitude))
    np.testing.assert_allclose(back[0], latitude, atol=1e-11)
    np.testing.assert_allclose(back[1], longitude, atol=1e-11)
    np.testing.assert_allclose(back[2], altitude, atol=2e-8)  # float64 keeps 1e-9 m of 6.4e6 m


def test_a_metre_north_east_and_up() -> None:
    home = Home(47.0, 8.0, 400.0)
    w = np.sqrt(1.0 - FIRST_ECCENTRICITY_SQUARED * np.sin(np.radians(47.0)) ** 2)
    meridian = SEMI_MAJOR_AXIS * (1.0 - FIRST_ECCENTRICITY_SQUARED) / w**3  # radii of curvature
    transverse = SEMI_MAJOR_AXIS / w
    latitude, longitude, altitude = home.geodetic(np.eye(3))
    assert np.radians(latitude[1] - 47.0) * (meridian + 400.0) == pytest.approx(1.0, abs=1e-6)
    assert np.radians(longitude[0] - 8.0) * (transverse + 400.0) * np.cos(np.radians(47.0)) == pytest.approx(1.0, abs=1e-6)
    assert altitude[2] - 400.0 == pytest.approx(1.0, abs=1e-7)
    np.testing.assert_allclose(home.local(latitude, longitude, altitude), np.eye(3), atol=1e-7)


def test_a_home_off_the_earth_is_refused() -> None:
    with pytest.raises(AirworthyError, match=r"Home\.latitude"):
        Home(latitude=91.0)
