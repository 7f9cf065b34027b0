"""The sky by daylight against textbook values, against sums made without its tables, and its table against the sky itself."""

from __future__ import annotations

import math
from datetime import datetime

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.scenes import Haze, Sky, sky_at, sky_sun
from airworthy.scenes.lights import SKY_COLUMNS, sky_irradiance, sky_radiance, sky_rows
from airworthy.scenes.sky import atmosphere as air
from airworthy.scenes.sky.scattering import aerosol_phase, clear_sky, molecular_phase
from airworthy.scenes.sky.solar_position import sun_position
from airworthy.scenes.sky.tables import as_gradient, daylight_table, table_irradiance, table_radiance, towards_sun

LUMINANCE = np.array([0.2126, 0.7152, 0.0722])


def daylight(degrees: float, **more: float) -> Sky:
    return Sky(model="daylight", elevation=math.radians(degrees), **more)  # type: ignore[arg-type]


def lux(color: np.ndarray) -> float:
    return float(color @ LUMINANCE) * air.LUX_PER_UNIT


# ---- Air and sun ------------------------------------------------------------------------------------------------------------


def test_the_sun_outside_of_the_air_gives_the_luminous_solar_constant() -> None:
    # 133.3 klx: Darula, Kittler and Gueymard, Reference luminous solar constant and solar luminance, 2005.
    assert lux(air.rgb_of(air.SOLAR)) == pytest.approx(133_300.0, rel=0.005)


def test_molecules_take_what_hansen_and_travis_give_for_them() -> None:
    # Light scattering in planetary atmospheres, 1974, equation 2.30, a fit of its own; 1013 mb.
    square = (air.WAVELENGTHS * 1e-3) ** -2
    book = 0.008569 * square**2 * (1.0 + 0.0113 * square + 0.00013 * square**2)
    ours = air.extinction(1.0)[0] * air.path_columns(air.RADIUS, 1.0)[0]
    np.testing.assert_allclose(ours, book, rtol=0.005)


@pytest.mark.parametrize(("mass", "degrees"), [(1.0, 90.0), (2.0, 29.9), (10.0, 5.18)])
def test_transmittance_of_clean_air_at_an_air_mass(mass: float, degrees: float) -> None:
    """Air masses: Kasten and Young, Revised optical air mass tables, 1989; 550 nm, optical depth 0.0973."""
    kasten = 1.0 / (math.sin(math.radians(degrees)) + 0.50572 * (degrees + 6.07995) ** -1.6364)
    assert kasten == pytest.approx(mass, rel=5e-3)
    columns = air.path_columns(air.RADIUS, math.sin(math.radians(degrees)))
    passed = np.exp(-columns[0] * air.extinction(1.0)[0, 8])
    # The book's air bends the light, which shortens a low path by a percent or two.
    assert passed == pytest.approx(math.exp(-0.0973 * mass), rel=0.025)


def test_the_sun_reddens_and_fades_as_it_sets_and_with_turbidity() -> None:
    suns = [sky_sun(daylight(degrees)) for degrees in (60.0, 20.0, 5.0, 1.0)]
    light = np.array([np.array(sun.color) * sun.irradiance for sun in suns if sun is not None])
    assert (np.diff(light @ LUMINANCE) < 0.0).all()
    assert (np.diff(light[:, 2] / light[:, 0]) < 0.0).all()
    hazy = [air.sun_irradiance(0.5, turbidity) for turbidity in (1.5, 3.0, 6.0)]
    assert (np.diff(np.array(hazy) @ LUMINANCE) < 0.0).all()
    assert sky_sun(daylight(-1.0)) is None
    assert sky_sun(daylight(50.0, cover=1.0)) is None
    with pytest.raises(AirworthyError, match="gradient has no sun"):
        sky_sun(Sky())


def test_the_sun_stands_where_the_solar_position_algorithm_has_it() -> None:
    # Reda and Andreas, Solar position algorithm for solar radiation applications (NREL), 2008, its example; refraction of 0.02
    # degrees is in its zenith angle.
    elevation, azimuth = sun_position(datetime.fromisoformat("2003-10-17T12:30:30-07:00"), 39.742476, -105.1786)
    assert math.degrees(elevation) == pytest.approx(90.0 - 50.11162, abs=0.03)
    assert (90.0 - math.degrees(azimuth)) % 360.0 == pytest.approx(194.34024, abs=0.02)
    sky = sky_at(datetime.fromisoformat("2003-10-17T12:30:30-07:00"), 39.742476, -105.1786)
    assert (sky.model, sky.elevation, sky.azimuth) == ("daylight", elevation, azimuth)


@pytest.mark.parametrize(
    ("time", "place", "said"),
    [
        ("2026-06-21T12:00", (0.0, 0.0), "names no time zone"),
        ("1896-06-21T12:00+00:00", (0.0, 0.0), "1950 to 2050"),
        ("2026-06-21T12:00+00:00", (91.0, 0.0), "no place at 91.0"),
    ],
)
def test_times_and_places_without_a_sun_are_refused(time: str, place: tuple[float, float], said: str) -> None:
    with pytest.raises(AirworthyError, match=said):
        sun_position(datetime.fromisoformat(time), *place)


# ---- The sky ----------------------------------------------------------------------------------------------------------------


def single(mu: float, turn: float, elevation: float, turbidity: float) -> np.ndarray:
    """Light scattered once along a line of sight, summed step by step without any table."""
    taken, ends = air.extinction(turbidity), np.linspace(0.0, 1.0, 1501) ** 2
    up = np.array([math.sqrt(1.0 - mu * mu) * math.cos(turn), math.sqrt(1.0 - mu * mu) * math.sin(turn), mu])
    sun = np.array([math.cos(elevation), 0.0, math.sin(elevation)])
    start = np.array([0.0, 0.0, air.RADIUS + 2.0])
    s = 0.5 * (ends[1:] + ends[:-1]) * air.to_top(start[2], mu)
    points, ds = start + s[:, None] * up, np.diff(ends) * air.to_top(start[2], mu)
    radius = np.linalg.norm(points, axis=1)
    along = points @ sun
    reach = -along + np.sqrt(along**2 - radius**2 + air.TOP**2)
    share = np.linspace(0.0, 1.0, 1201) ** 2
    middle = 0.5 * (share[1:] + share[:-1]) * reach[:, None]
    height = np.linalg.norm(points[:, None] + middle[..., None] * sun, axis=2) - air.RADIUS
    columns = (air.density(height) * (np.diff(share) * reach[:, None])[..., None]).sum(1)
    lit = np.where(height.min(1) < 0.0, 0.0, 1.0)[:, None] * np.exp(-columns @ taken)
    dense = air.density(radius - air.RADIUS)
    passed = np.exp(-(np.cumsum(dense * ds[:, None], 0) - 0.5 * dense * ds[:, None]) @ taken)
    facing = float(up @ sun)
    sent = dense[:, :1] * taken[0] * molecular_phase(facing) + dense[:, 1:2] * taken[1] * air.ALBEDO * aerosol_phase(facing)
    return air.rgb_of(air.SOLAR * (sent * lit * passed * ds[:, None]).sum(0))


@pytest.mark.parametrize(
    ("mu", "turn", "degrees", "turbidity"),
    [(1.0, 0.0, 40.0, 2.0), (0.3, 2.0, 40.0, 5.0), (0.1, 0.4, 8.0, 3.0), (0.5, 1.0, -4.0, 2.5)],
)
def test_light_scattered_once_is_the_sum_along_the_line_of_sight(
    mu: float, turn: float, degrees: float, turbidity: float
) -> None:
    elevation = math.radians(degrees)
    molecules, aerosol, _ = clear_sky(np.array(mu), elevation, turbidity, 0.2, np.array(turn))
    facing = mu * math.sin(elevation) + math.sqrt(1.0 - mu * mu) * math.cos(turn) * math.cos(elevation)
    ours = molecules * molecular_phase(facing) + aerosol * aerosol_phase(facing)
    np.testing.assert_allclose(ours, single(mu, turn, elevation, turbidity), rtol=0.02)


def level(sky: Sky) -> np.ndarray:
    return table_irradiance(daylight_table(sky), (0.0, 0.0, 1.0))


def test_daylight_and_twilight_are_as_bright_as_handbooks_have_them() -> None:
    # Diffuse and direct light of a clear day: IES, The lighting handbook: some 100 klx in all under a high sun.
    sky = daylight(60.0)
    direct = sky_sun(sky)
    assert direct is not None
    whole = lux(level(sky)) + lux(np.array(direct.color) * direct.irradiance) * math.sin(sky.elevation)
    assert 85e3 < whole < 115e3
    # Clear sky at sunset and at the ends of civil and nautical twilight: 700, 3.4 and 0.008 lx (Seidelmann, Explanatory
    # supplement to the Astronomical almanac, 1992), within what haze makes of them.
    for degrees, book in ((0.0, 700.0), (-6.0, 3.4), (-12.0, 0.008)):
        assert 0.5 < lux(level(daylight(degrees, night=0.0))) / book < 2.0


def test_the_zenith_pales_with_turbidity_and_is_darkest_far_from_a_low_sun() -> None:
    zenith = [table_radiance(daylight_table(daylight(50.0, turbidity=t)), (0.0, 0.0, 1.0)) for t in (1.5, 3.0, 6.0)]
    # Molecules alone are blue; more aerosol sends more light of less colour.
    assert (np.diff([color[2] / color[0] for color in zenith]) < 0.0).all()
    assert (np.diff([lux(color) for color in zenith]) > 0.0).all()
    sky = daylight(10.0)
    sun = np.array(towards_sun(sky))
    around = [table_radiance(daylight_table(sky), direction) for direction in (sun, (0.0, 0.0, 1.0))]
    assert lux(around[0]) > 5.0 * lux(around[1])


def test_the_overcast_sky_is_that_of_the_cie() -> None:
    sky = daylight(40.0, cover=1.0, night=0.0)
    table = daylight_table(sky)
    zenith, horizon, half = (table_radiance(table, d) for d in ((0.0, 0.0, 1.0), (0.6, 0.8, 0.0), (math.sqrt(0.75), 0.0, 0.5)))
    np.testing.assert_allclose(zenith / horizon, 3.0, rtol=1e-6)
    np.testing.assert_allclose(half / zenith, 2.0 / 3.0, rtol=1e-3)
    assert lux(level(sky)) == pytest.approx(300.0 + 21_000.0 * math.sin(sky.elevation), rel=3e-3)
    assert 0.2 < lux(level(daylight(-6.0, cover=1.0, night=0.0))) < 3.0


def test_night_has_a_floor() -> None:
    table = daylight_table(daylight(-40.0, night=0.02))
    # Seen at the zenith [cd/m2].
    assert lux(table_radiance(table, (0.0, 0.0, 1.0))) == pytest.approx(0.02, rel=1e-3)


SPIRAL = np.arange(100_000) + 0.5
_Z = 1.0 - 2.0 * SPIRAL / len(SPIRAL)
_A = SPIRAL * np.pi * (3.0 - np.sqrt(5.0))
SPHERE = np.stack([np.sqrt(1.0 - _Z**2) * np.cos(_A), np.sqrt(1.0 - _Z**2) * np.sin(_A), _Z], -1)


@pytest.mark.parametrize("sky", [daylight(50.0), daylight(12.0, turbidity=5.0), daylight(2.0, turbidity=2.0), daylight(-5.0)])
def test_irradiance_by_normal_is_the_integral_of_the_radiance(sky: Sky) -> None:
    table, rng = daylight_table(sky), np.random.default_rng(0)
    normals = rng.normal(size=(24, 3))
    normals[:2] = (0.0, 0.0, 1.0), (0.0, 0.0, -1.0)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    radiance = table_radiance(table, SPHERE)
    brute = np.stack([(radiance * np.maximum(SPHERE @ n, 0.0)[:, None]).mean(0) for n in normals]) * 4.0 * np.pi
    np.testing.assert_allclose(table_irradiance(table, normals), brute, rtol=0.01)


@pytest.mark.parametrize("degrees", [45.0, 4.0])
def test_the_table_is_the_sky(degrees: float) -> None:
    sky, rng = daylight(degrees, turbidity=3.0, night=0.0), np.random.default_rng(1)
    z, turn = rng.uniform(0.02, 1.0, 400), rng.uniform(-np.pi, np.pi, 400)
    facing = z * math.sin(sky.elevation) + np.sqrt(1.0 - z * z) * np.cos(turn) * math.cos(sky.elevation)
    ground = float(np.array(sky.ground) @ LUMINANCE)
    molecules, aerosol, multiple = clear_sky(z, sky.elevation, sky.turbidity, ground, turn)
    exact = molecules * molecular_phase(facing)[:, None] + aerosol * aerosol_phase(facing)[:, None] + multiple
    at = sky.azimuth + turn
    flat = np.sqrt(1.0 - z * z)
    found = table_radiance(daylight_table(sky), np.stack([flat * np.cos(at), flat * np.sin(at), z], -1))
    np.testing.assert_allclose(found, exact, rtol=0.03)
    assert float(np.abs(found / exact - 1.0).mean()) < 2e-3


def test_light_is_as_large_as_its_factor_and_the_ground_gives_back_its_share() -> None:
    one, two = (daylight_table(daylight(30.0, intensity=factor)) for factor in (1.0, 2.0))
    np.testing.assert_allclose(table_radiance(two, SPHERE[::997]), 2.0 * table_radiance(one, SPHERE[::997]), rtol=1e-9)
    sky = daylight(30.0)
    sun = sky_sun(sky)
    assert sun is not None
    whole = level(sky) + np.array(sun.color) * sun.irradiance * math.sin(sky.elevation)
    np.testing.assert_allclose(table_radiance(one, (0.0, 0.0, -1.0)), np.array(sky.ground) * whole / np.pi, rtol=0.01)


# ---- Rows of numbers --------------------------------------------------------------------------------------------------------


def test_rows_of_gradients_are_what_they_were_and_tables_stand_behind_them() -> None:
    plain, mixed = sky_rows([Sky(), Sky(intensity=2.0)]), sky_rows([Sky(), daylight(30.0), daylight(30.0)], [Haze()] * 3)
    assert plain.shape == (2, SKY_COLUMNS)
    assert (plain[:, 9:12] == 0.0).all()
    np.testing.assert_array_equal(mixed[0], plain[0])
    # Two scenes under one sky share a table.
    assert mixed[1, 9] == 2.0
    assert mixed[2, 9] == 1.0
    table = daylight_table(daylight(30.0))
    np.testing.assert_array_equal(mixed[3:].reshape(-1)[: len(table)], table.astype(np.float32))


def test_light_of_daylight_is_told_as_that_of_gradients() -> None:
    sky = daylight(20.0)
    np.testing.assert_array_equal(sky_radiance(sky, SPHERE[::999]), table_radiance(daylight_table(sky), SPHERE[::999]))
    np.testing.assert_allclose(sky_irradiance(sky, 1.0), level(sky), rtol=1e-6)
    assert sky_irradiance(sky, np.linspace(-1.0, 1.0, 5)).shape == (5, 3)
    shown = as_gradient(sky)
    assert shown.model == "gradient"
    np.testing.assert_allclose(shown.zenith, table_radiance(daylight_table(sky), (0.0, 0.0, 1.0)))
    assert as_gradient(Sky(intensity=3.0)) == Sky(intensity=3.0)
    with pytest.raises(AirworthyError, match="gradient needs no table"):
        daylight_table(Sky())


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ({"model": "sunny"}, r"Sky\.model"),
        ({"turbidity": 0.5}, r"Sky\.turbidity is 0\.5; expected 1 to 10"),
        ({"elevation": 45.0}, r"Sky\.elevation is 45 rad; expected"),
        ({"azimuth": math.nan}, r"Sky\.azimuth is nan rad; expected"),
        ({"cover": 1.5}, r"Sky\.cover is 1\.5; expected 0 to 1"),
        ({"intensity": -1.0}, r"Sky\.intensity is -1; expected 0 or more"),
        ({"night": -1.0}, r"Sky\.night is -1 cd/m2; expected 0 to 1000"),
    ],
)
def test_numbers_that_no_sky_has_are_refused(numbers: dict[str, float], said: str) -> None:
    with pytest.raises(AirworthyError, match=said):
        Sky(**numbers)  # type: ignore[arg-type]
