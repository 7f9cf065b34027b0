"""Rates, delays, stamps, noise and frames of the three sensors."""

import numpy as np
import pytest

from airworthy.core.errors import UnknownNameError
from airworthy.core.frames import from_euler
from airworthy.sensors.navigation.atmosphere import SEA_LEVEL_PRESSURE, pressure, pressure_altitude, temperature
from airworthy.sensors.navigation.geodesy import Home
from airworthy.sensors.navigation.suite import NavigationSensors

IDEAL = {"magnetometer": "ideal", "barometer": "ideal", "gnss": "ideal"}
LEVEL = np.array([[0.0, 0.0, 0.0, 1.0]])


def test_the_standard_atmosphere() -> None:
    # ISO 2533 table 5: at 1000 m 89874.6 Pa and 281.65 K, at 5000 m 54019.9 Pa.
    assert pressure(0.0) == SEA_LEVEL_PRESSURE
    assert pressure(1000.0) == pytest.approx(89874.6, abs=0.1)
    assert pressure(5000.0) == pytest.approx(54019.9, abs=0.1)
    assert temperature(1000.0) == pytest.approx(281.65, abs=1e-9)
    heights = np.linspace(-500.0, 9000.0, 50)
    np.testing.assert_allclose(pressure_altitude(pressure(heights)), heights, atol=1e-8)


def test_ideal_sensors_tell_the_truth() -> None:
    home = Home(altitude=100.0)
    sensors = NavigationSensors(home, **IDEAL)
    # Nose north: forward is the field's north, left its west, up its up.
    north = from_euler(0.0, 0.0, np.pi / 2)[None]
    found = sensors.sample(0.0, [[3.0, 4.0, 5.0]], [[0.1, 0.2, 0.3]], north)
    east, to_north, up = sensors.field
    assert found.magnetometer is not None
    assert found.barometer is not None
    assert found.gnss is not None
    np.testing.assert_allclose(found.magnetometer, [[to_north, -east, up]], atol=1e-12)
    np.testing.assert_allclose(found.barometer.altitude, 105.0, atol=1e-8)
    fix = found.gnss
    np.testing.assert_allclose(home.local(fix.latitude, fix.longitude, fix.altitude), [[3.0, 4.0, 5.0]], atol=1e-7)
    np.testing.assert_allclose(fix.velocity, [[0.1, 0.2, 0.3]])


def test_rates_delay_and_stamp() -> None:
    sensors = NavigationSensors(gnss="f9p_rtk")
    samples = [(k / 250, sensors.sample(k / 250, [[k / 250, 0, 0]], np.zeros((1, 3)), LEVEL)) for k in range(501)]
    # Samples k / rate from 0 to 2 s, both ends included; fixes arrive 0.11 s late.
    assert sum(s.magnetometer is not None for _, s in samples) == 151
    assert sum(s.barometer is not None for _, s in samples) == 101
    fixes = [(t, s.gnss) for t, s in samples if s.gnss is not None]
    assert len(fixes) == 19
    for arrival, fix in fixes:
        assert 0.11 <= arrival - fix.time < 0.11 + 1 / 250 + 1e-9
        place = sensors.home.local(fix.latitude, fix.longitude, fix.altitude)[0, 0]
        assert place == pytest.approx(fix.time, abs=0.06)  # of 0.0085 m standard deviation, seven of them


def test_noise_has_the_stated_size() -> None:
    sensors = NavigationSensors(gnss="m8n", flight_ids=np.arange(4000))
    at = np.zeros((4000, 3))
    found = sensors.sample(0.0, at, at, np.repeat(LEVEL, 4000, 0))
    # A fix of 400 s, when the wander has forgotten that it began at zero; it arrives 0.11 s later.
    sensors.sample(400.0, at, at, np.repeat(LEVEL, 4000, 0))
    later = sensors.sample(400.11, at, at, np.repeat(LEVEL, 4000, 0))
    compass = found.magnetometer - sensors.field
    np.testing.assert_allclose(compass.std(axis=0), 2e-3, rtol=0.05)  # 4000 draws: 1.1 % one sigma
    np.testing.assert_allclose(found.barometer.pressure.std(), np.hypot(1.2, 0.0), rtol=0.05)
    assert later.gnss is not None
    error = sensors.home.local(later.gnss.latitude, later.gnss.longitude, later.gnss.altitude)
    np.testing.assert_allclose(error.std(axis=0), [2.12, 2.12, 4.24], rtol=0.05)
    np.testing.assert_allclose(later.gnss.velocity.std(axis=0), 0.033, rtol=0.05)


def test_a_flight_does_not_depend_on_its_batch() -> None:
    many, one = NavigationSensors(flight_ids=[5, 6, 7]), NavigationSensors(flight_ids=[6])
    for t in (0.0, 0.1, 0.25):
        a = many.sample(t, np.zeros((3, 3)), np.zeros((3, 3)), np.repeat(LEVEL, 3, 0))
        b = one.sample(t, np.zeros((1, 3)), np.zeros((1, 3)), LEVEL)
        np.testing.assert_array_equal(a.magnetometer[1:2], b.magnetometer)
        np.testing.assert_array_equal(a.barometer.pressure[1:2], b.barometer.pressure)


def test_unknown_devices_are_named() -> None:
    with pytest.raises(UnknownNameError, match=r"Unknown gnss 'f9p'\. Closest: 'f9p_rtk'"):
        NavigationSensors(gnss="f9p")
