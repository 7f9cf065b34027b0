"""Standard gains count a dead time as lag: margins of the attitude's loop stay what they are without one."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from airworthy.control.gain_parameters import gain_rows
from airworthy.control.levels import ControlConfig
from airworthy.control.linear import CHANNELS, linear_loop
from airworthy.vehicles import RotorResponse, Vehicle, vehicle


def lagging(delay: float) -> Vehicle:
    base = vehicle("flightgoggles")
    rotors = tuple(replace(rotor, response=RotorResponse.first_order(0.05)) for rotor in base.rotors)
    return replace(base, rotors=rotors, command_delay=delay)


@pytest.mark.parametrize("delay", [0.006, 0.012, 0.020])
def test_margins_stay(delay: float) -> None:
    plain, late = linear_loop(lagging(0.0)), linear_loop(lagging(delay))
    for channel in ("roll", "pitch"):
        before, after = plain.margins(channel), late.margins(channel)
        assert math.degrees(after.phase) == pytest.approx(math.degrees(before.phase), abs=2.0)
        assert after.sensitivity < before.sensitivity + 0.2
        assert after.gain_db > 10.0
    assert set(CHANNELS) >= {"roll", "pitch"}


def test_the_dead_time_is_delay_of_the_loop() -> None:
    assert linear_loop(lagging(0.012)).delay == pytest.approx(0.012 + 0.5 / 960.0)
    # Kept at the gains of a vehicle without one, the loop would have lost phase.
    gains = gain_rows(lagging(0.0), ControlConfig(), "tracking", 1.0 / 960.0, 4)
    fixed = linear_loop(lagging(0.012), gains={n: gains[n] for n in ("attitude_gain", "rate_gain")})
    assert fixed.margins("roll").phase < linear_loop(lagging(0.012)).margins("roll").phase - math.radians(4.0)
