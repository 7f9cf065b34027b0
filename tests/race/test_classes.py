"""Classes end in options that exist."""

from __future__ import annotations

import math
from dataclasses import fields

import pytest

from airworthy.core.errors import AirworthyError
from airworthy.race import RaceClass, race_class, race_classes
from airworthy.sensors import BeaconOptions
from airworthy.simulation import Randomization
from airworthy.vehicles import vehicle


def test_the_four_classes() -> None:
    assert list(race_classes()) == ["published", "noisy", "hard", "v3"]
    assert race_class() is race_classes()["noisy"]
    for item in race_classes().values():
        vehicle(item.vehicle)
    with pytest.raises(AirworthyError, match=r"Unknown class of the race 'nosy'\. Closest: 'noisy'"):
        race_class("nosy")


def test_published_is_the_original() -> None:
    item = race_class("published")
    assert item.beacons() == BeaconOptions()
    assert item.vehicles() == Randomization()
    assert item.latency() == 0.0
    imu = item.imu()
    # Variances of the published files, per sample at 960 Hz.
    assert imu.accelerometer_noise[0] == pytest.approx(math.sqrt(0.005 / 960.0))
    assert imu.gyroscope_noise[0] == pytest.approx(math.sqrt(0.003 / 960.0))
    assert imu.accelerometer_walk == imu.gyroscope_walk == (0.0, 0.0, 0.0)


def test_what_the_others_switch_on() -> None:
    noisy, hard, v3 = (race_class(name) for name in ("noisy", "hard", "v3"))
    assert noisy.beacons() == BeaconOptions(pixel_noise=1.0, dropout=0.02)
    assert hard.beacons() == BeaconOptions(pixel_noise=3.0, dropout=0.1, shuffle=True)
    assert hard.latency() == pytest.approx(1.0 / 60.0)
    assert hard.vehicles() == Randomization(mass=0.05, drag=0.05, position=0.3)
    assert v3.imu().accelerometer_walk[0] == pytest.approx(math.sqrt(1e-7))
    assert v3.vehicle == "flightgoggles"


def test_no_key_is_without_effect() -> None:
    """Each number of a class changes one of the options that it ends in."""
    plain = RaceClass("plain", "", "flightgoggles_2019")
    other = {"vehicle": "flightgoggles", "shuffle": True, "bias_walk": True, "frame_delay": 2}
    for item in fields(RaceClass):
        if item.name in ("name", "title"):
            continue
        changed = RaceClass(
            **{"name": "plain", "title": "", "vehicle": "flightgoggles_2019", item.name: other.get(item.name, 0.1)}
        )
        ends = [(c.vehicle, c.beacons(), c.latency(), c.imu(), c.vehicles()) for c in (plain, changed)]
        assert ends[0] != ends[1], item.name
