"""Step tests in simulation against the computed indicators, and the flight check of new vehicles."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airworthy.evaluation.step_tests import flight_checks, measured_indicators
from airworthy.vehicles import indicators, vehicle, vehicle_names

FLEET = [vehicle(name) for name in vehicle_names()]


def test_measured_equals_computed_within_two_percent() -> None:
    # FlyingTrust section 2: both agree within 2 % with motor lag set to zero; every catalogue vehicle in one batch.
    for craft, found in zip(FLEET, measured_indicators(FLEET), strict=True):
        expected = indicators(craft, from_rest=False)
        for name in ("thrust_to_weight", "alpha_xy_max", "alpha_z_max"):
            assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=0.02), f"{craft.name} {name}"


def test_motor_lag_lowers_what_is_measured() -> None:
    craft = vehicle("flightgoggles")
    quick, slow = measured_indicators([craft])[0], measured_indicators([craft], motor_lag=True)[0]
    assert slow.alpha_xy_max < 0.5 * quick.alpha_xy_max


def test_the_published_fleet_flies_and_a_brick_does_not() -> None:
    sound = [craft for craft in FLEET if "published_thrust_to_weight" in craft.extra]
    assert len(sound) == 36
    faults = flight_checks(sound)
    assert [craft.name for craft, found in zip(sound, faults, strict=True) if found] == []
    heavy = replace(sound[0], name="brick", mass=3.0 * sound[0].mass)
    assert flight_checks([heavy])[0] != []
