"""The World Magnetic Model against an independent program, and the dipole that it must become far away."""

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.sensors.navigation.geodesy import Home
from airworthy.sensors.navigation.magnetic_field import magnetic_field

# North, east, down [nT] of pygeomag 1.1 (boxpet/pygeomag, MIT) with its WMM_2025.COF, at latitude, longitude [deg], altitude
# [km], year.
REFERENCE = [
    ((47.397742, 8.545594, 0.488, 2025.5), (21521.492251830852, 1310.438732787864, 43266.175276953625)),
    ((80.0, 0.0, 0.0, 2025.0), (6521.599441612704, 145.88695646250983, 54791.50766318361)),
    ((-35.363262, 149.165237, 0.584, 2026.0), (23009.349518746974, 5173.501491124094, -53084.20112647114)),
    ((0.0, 120.0, 0.0, 2025.0), (39677.75500236645, -109.60630481782252, -10580.16983197215)),
    ((42.36, -71.06, 0.0, 2025.5), (19991.866641949975, -4991.470287528312, 46940.9725804754)),
]


@pytest.mark.parametrize(("where", "expected"), REFERENCE)
def test_the_field_of_five_places(where: tuple[float, ...], expected: tuple[float, ...]) -> None:
    latitude, longitude, altitude, year = where
    east, north, up = 1e5 * magnetic_field(Home(latitude, longitude, 1000.0 * altitude), year)
    # Tables of the model give tenths of a nanotesla.
    np.testing.assert_allclose((north, east, -up), expected, atol=0.05)


def test_the_published_value_at_80_north() -> None:
    # WMM2025 test values (NOAA): 2025.0, 0 km, 80 N, 0 E: X 6521.6, Y 145.9, Z 54791.5 nT.
    east, north, up = 1e5 * magnetic_field(Home(80.0, 0.0, 0.0), 2025.0)
    assert (round(north, 1), round(east, 1), round(-up, 1)) == (6521.6, 145.9, 54791.5)


def test_the_poles_have_a_field_too() -> None:
    assert np.isfinite(magnetic_field(Home(90.0, 0.0, 0.0))).all()


def test_years_that_the_model_does_not_know() -> None:
    with pytest.raises(AirworthyError, match="2031; the model holds from 2025 to 2030"):
        magnetic_field(Home(), 2031.0)
