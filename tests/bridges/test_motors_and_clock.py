"""Motor maps, what a command is worth, and the clock of a link."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.bridges.conftest import free_port

from airworthy.bridges.clock import AutomaticFactor, LinkClock, Thinned
from airworthy.bridges.motors import frame_for, frame_names, motor_map
from airworthy.core.errors import AirworthyError, UnknownNameError
from airworthy.vehicles import Vehicle, vehicle
from airworthy.vehicles.check import rotor_thrust

X500 = vehicle("x500")


# Moments of more thrust about forward (rolls right), left (nose down) and up, by corner: r x F and the reaction torque.
CORNERS = {"front right": (-1, -1, -1), "rear left": (1, 1, -1), "front left": (1, -1, 1), "rear right": (-1, 1, 1)}
PX4 = ("front right", "rear left", "front left", "rear right")
BETAFLIGHT = ("rear right", "front right", "rear left", "front left")


@pytest.mark.parametrize(
    ("autopilot", "frame", "order"),
    [
        ("px4", "quad_x", PX4),
        ("ardupilot", "quad_x", PX4),
        ("betaflight", "quad_x", BETAFLIGHT),
        ("betaflight", "quad_x_before_2026", (*BETAFLIGHT[1:], BETAFLIGHT[0])),
    ],
)
def test_each_motor_turns_the_vehicle_as_the_autopilot_expects(autopilot: str, frame: str, order: tuple[str, ...]) -> None:
    found = motor_map(X500, autopilot, frame)
    for motor, corner in enumerate(order):
        rotor = X500.rotors[found.rotors[motor]]
        x, y, _ = rotor.position
        assert (np.sign(y), np.sign(-x), rotor.spin) == CORNERS[corner]


def test_what_a_command_is_worth() -> None:
    rotor = X500.rotors[0]
    for factor in (0.0, 0.4, 1.0):
        found = motor_map(X500, "px4", thrust_factor=factor)
        for u in (0.0, 0.3, 1.0):
            share = rotor_thrust(rotor, float(found.rotor_states([u] * 4)[0])) / rotor_thrust(rotor, rotor.speed_max)
            assert share == pytest.approx(factor * u * u + (1 - factor) * u, abs=1e-12)
    np.testing.assert_allclose(motor_map(X500, "px4").rotor_states([0.5] * 16), 0.5 * rotor.speed_max)
    np.testing.assert_allclose(motor_map(X500, "px4").rotor_states([-1.0, 2.0, 0.0, 0.0])[[0, 1]], [0.0, rotor.speed_max])


def test_other_rotors_are_refused_with_their_names() -> None:
    turned = replace(X500, rotors=tuple(replace(rotor, spin=-rotor.spin) for rotor in X500.rotors))
    with pytest.raises(
        AirworthyError, match="The front right rotor of vehicle 'x500' turns cw, motor 1 of px4 quad_x turns ccw"
    ):
        motor_map(turned, "px4")
    with pytest.raises(AirworthyError, match="has rotors rear centre, middle right, front centre, middle left; px4 quad_x has"):
        motor_map(vehicle("virt_03"), "px4")
    with pytest.raises(UnknownNameError, match="Unknown frame of px4 'quad_y'"):
        motor_map(X500, "px4", "quad_y")
    assert frame_names("px4") == ["quad_x", "hexa_x"]


HEXA = ("middle right", "middle left", "front left", "rear right", "front right", "rear left")
ANGLES = {"middle right": 90, "middle left": -90, "front left": -30, "rear right": 150, "front right": 30, "rear left": -150}
CW = ("middle right", "front left", "rear left")


def hexa() -> Vehicle:
    """Six rotors by degrees clockwise from the nose, in an order of their own; whose propeller turns ccw has the spin -1."""
    rotors = []
    for corner in sorted(HEXA):
        angle = np.radians(ANGLES[corner])
        place = (0.3 * np.cos(angle), -0.3 * np.sin(angle), 0.0)
        rotors.append(replace(X500.rotors[0], position=place, spin=1 if corner in CW else -1))
    return replace(X500, name="hexa", rotors=tuple(rotors))


@pytest.mark.parametrize("autopilot", ["px4", "ardupilot"])
def test_six_rotors_are_those_of_a_hexa_x(autopilot: str) -> None:
    made = hexa()
    assert frame_for(made, autopilot) == "hexa_x"
    found = motor_map(made, autopilot, "hexa_x")
    for motor, corner in enumerate(HEXA):
        x, y, _ = made.rotors[found.rotors[motor]].position
        assert np.degrees(np.arctan2(-y, x)) == pytest.approx(ANGLES[corner])
    # More of motors 1, 3 and 6, which turn cw, pushes the nose to the left.
    assert [made.rotors[k].spin for k in found.rotors] == [1, -1, 1, -1, -1, 1]
    states = found.rotor_states([0.6, 0.1, 0.2, 0.3, 0.4, 0.5, *[0.9] * 10])
    np.testing.assert_allclose(states[list(found.rotors)] / made.rotors[0].speed_max, [0.6, 0.1, 0.2, 0.3, 0.4, 0.5])


def test_a_hexa_flies_with_px4_and_not_with_betaflight(loopback: None) -> None:
    from airworthy.bridges import LinkSettings, Px4Pilot

    with Px4Pilot(hexa(), 250.0, LinkSettings(address=str(free_port()))) as pilot:
        assert (pilot.frame, len(pilot.motors.rotors)) == ("hexa_x", 6)
    assert frame_for(hexa(), "betaflight") == "quad_x"
    with pytest.raises(AirworthyError, match="betaflight quad_x has rear right"):
        motor_map(hexa(), "betaflight")


class Wall:
    """A wall clock that sleeps as told, and longer by `slip`."""

    def __init__(self, slip: float = 0.0):
        self.time, self.slip = 100.0, slip

    def sleep(self, seconds: float) -> None:
        self.time += seconds + self.slip


@pytest.mark.parametrize(("mode", "factor", "expected"), [("lockstep", 1.0, 0.0), ("real", 7.0, 1.0), ("scaled", 4.0, 0.25)])
def test_a_second_of_simulation_takes(mode: str, factor: float, expected: float) -> None:
    wall = Wall()
    clock = LinkClock(mode, 0.01, factor, lambda: wall.time, wall.sleep)  # type: ignore[arg-type]
    for k in range(101):
        clock.begin(k * 0.01)
    assert wall.time - 100.0 == pytest.approx(expected, abs=1e-9)
    assert clock.lateness().most == pytest.approx(0.0, abs=1e-9)


def test_lateness_is_counted_and_said() -> None:
    wall = Wall(slip=0.002)
    clock = LinkClock("real", 0.01, 1.0, lambda: wall.time, wall.sleep)
    for k in range(50):
        clock.begin(k * 0.01)
    wall.time += 0.5  # a step that took long: those after it are late, too, until caught up with
    clock.begin(0.5)
    late = clock.lateness()
    assert (late.steps, late.late) == (51, 1)
    assert late.median == pytest.approx(0.002)
    assert late.sentence().startswith("51 steps were late by: median 2.00 ms, p99 ")
    assert LinkClock("lockstep", 0.01).lateness().sentence() == "lockstep: no step is ever late"


def test_of_a_row_without_end_an_even_part_is_kept() -> None:
    row: Thinned[int] = Thinned(100)
    for number in range(100_000):
        row.add(number)
    assert row.count == 100_000
    assert 50 <= len(row.kept) <= 101
    # 1,024 is the power of two at which a hundred of them are enough.
    assert row.kept == list(range(0, 100_000, 1024))


def test_the_automatic_factor_is_that_of_flightgoggles() -> None:
    now = [100.0]
    auto = AutomaticFactor(60.0, lambda: now[0])
    assert not auto.update(0)
    for frames, seconds, wanted in ((22, 1.0, 22 / 55), (22 + 110, 2.0, 1.0), (142, 1.25, 8 / 55)):
        now[0] += seconds - 0.001
        assert not (seconds == 1.0 and auto.update(frames))  # before the window has ended
        now[0] += 0.001 + 1e-9
        assert auto.update(frames)
        assert auto.value == pytest.approx(wanted, rel=1e-6)
    now[0] += 5.0
    assert not auto.update(142)  # no frame: nothing is known
    assert auto.value == pytest.approx(8 / 55, rel=1e-6)
    assert auto.sentence() == "clock factor: set 3 times by frames per second, 0.145 to 1, at last 0.145"
    # Of a camera with another rate, the same share of it.
    half = AutomaticFactor(30.0, lambda: now[0])
    half.update(0)
    now[0] += 1.0
    assert half.update(11)
    assert half.value == pytest.approx(22 / 55)


def test_a_clock_goes_on_at_another_factor_without_making_up_for_what_is_late() -> None:
    now, slept = [0.0], []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    clock = LinkClock("scaled", 0.1, 1.0, lambda: now[0], sleep)
    clock.begin(0.1)
    now[0] += 1.0  # ten periods late
    clock.begin(0.2)
    clock.scale(0.5, 0.2)
    clock.begin(0.3)
    assert slept[-1] == pytest.approx(0.2)
    assert clock.factor == 0.5
    assert clock.lateness().late == 1


@pytest.mark.parametrize(("factor", "slips", "late"), [(4.0, (0.002, 0.003, 0.004), 2), (0.5, (0.009, 0.015, 0.021), 1)])
def test_a_step_of_a_scaled_clock_is_late_by_a_period_of_wall_clock_time(
    factor: float, slips: tuple[float, ...], late: int
) -> None:
    wall = Wall()
    clock = LinkClock("scaled", 0.01, factor, lambda: wall.time, wall.sleep)
    clock.begin(0.0)
    for k, slip in enumerate(slips, 1):
        wall.time = 100.0 + k / factor + slip  # due a second of simulated time after the one before
        clock.begin(float(k))
    assert clock.lateness().most == pytest.approx(slips[-1])
    assert clock.lateness().late == late
