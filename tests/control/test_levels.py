import pytest

from airworthy.control import (
    LEVELS,
    MODES,
    collective_from_normalized,
    command_fields,
    normalized_from_collective,
    reference_from_command,
)
from airworthy.core.errors import AirworthyError, UnknownNameError


def test_every_level_names_its_command():
    widths = {level: len(command_fields(level, 6)) for level in LEVELS}
    assert widths["rotor_speed"] == widths["rotor_thrust"] == 6
    assert widths["wrench"] == 6
    assert widths["pose"] == 7
    assert widths["tracking"] == 14
    assert {widths[level] for level in MODES if level != "tracking"} == {4}


def test_a_command_becomes_the_reference_of_its_level():
    velocity = reference_from_command("velocity", (1.0, 2.0, 3.0, 0.5))
    assert velocity.velocity == (1.0, 2.0, 3.0)
    assert velocity.yaw_rate == 0.5
    rates = reference_from_command("rate_thrust", (9.0, 0.1, 0.2, 0.3))
    assert rates.thrust == 9.0
    assert rates.rate == (0.1, 0.2, 0.3)
    attitude = reference_from_command("attitude_thrust", (9.0, 0.1, 0.2, 0.3))
    assert (attitude.thrust, attitude.roll, attitude.pitch, attitude.yaw_rate) == (9.0, 0.1, 0.2, 0.3)
    flat = reference_from_command("tracking", tuple(float(i) for i in range(16)))
    assert flat.position == (0.0, 1.0, 2.0)
    assert flat.jerk == (9.0, 10.0, 11.0)
    assert (flat.yaw, flat.yaw_rate) == (12.0, 13.0)


def test_mistakes_are_named():
    with pytest.raises(UnknownNameError, match="Closest: 'velocity'"):
        command_fields("velocty")
    with pytest.raises(UnknownNameError, match="geometric controller"):
        reference_from_command("wrench", (0.0,) * 6)
    with pytest.raises(AirworthyError, match="position command has 4 numbers"):
        reference_from_command("position", (0.0, 1.0))


def test_normalized_collective():
    # Aerial Gym: thrust = (a0 + 1) m g, so 0 hovers and -1 is off.
    assert collective_from_normalized(0.0, 2.0, 9.81) == pytest.approx(19.62)
    assert collective_from_normalized(-1.0, 2.0, 9.81) == 0.0
    assert normalized_from_collective(collective_from_normalized(0.3, 2.0, 9.81), 2.0, 9.81) == pytest.approx(0.3)
