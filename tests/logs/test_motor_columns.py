"""Which motors are which rotors: vehicles whose truth is known, in every order and spin, and the shared logs."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from airworthy.cli.main import main
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.logs import (
    Log,
    LogSegments,
    LogSource,
    LogStream,
    MotorOrder,
    RotorGeometry,
    Span,
    flight_segments,
    motor_order,
    read_log,
    write_log,
)
from airworthy.logs.motors import columns

RATE, SECONDS = 250.0, 12.0
PARTS = LogSegments((Span(0.0, SECONDS),), (Span(0.2, SECONDS - 0.2),), ())
QUAD = RotorGeometry(
    np.array([[0.1, -0.1, 0.0], [-0.1, 0.1, 0.0], [0.1, 0.1, 0.0], [-0.1, -0.1, 0.0]]),  # PX4's order
    np.tile([0.0, 0.0, 1.0], (4, 1)),
    np.array([1.0, 1.0, -1.0, -1.0]),  # counter-clockwise from above
    np.full(4, 0.02),
)


def test_lags_are_those_of_one_step_after_the_other() -> None:
    """Uneven steps, a gap of minutes, and a clock that goes back once: to rounding of sums over 300 lags."""
    rng = np.random.default_rng(3)
    time = np.cumsum(rng.exponential(0.02, 1000))
    time[400:] += 200.0
    time[700:] -= 0.05
    command = rng.uniform(-0.2, 1.0, (1000, 4))
    state, walked = np.repeat(command[:1], len(columns.LAGS), axis=0), []
    for step, held in zip(np.diff(time), command, strict=False):
        state = state + (1.0 - np.exp(-step / np.array(columns.LAGS)[:, None])) * (held - state)
        walked.append(state)
    found = columns._lagged(time, command)
    np.testing.assert_allclose(found[1:], walked, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(found[0], np.repeat(command[:1], len(columns.LAGS), axis=0))


def test_values_between_stamps() -> None:
    time, values = np.array([0.0, 1.0, 3.0, 3.0]), np.arange(8.0).reshape(4, 2) ** 2
    when = np.array([-1.0, 0.0, 0.25, 2.0, 2.999, 9.0])
    wanted = np.stack([np.interp(when, time, column) for column in values.T], axis=1)
    np.testing.assert_allclose(columns._at(time, values, when), wanted, rtol=1e-12)


def hexa() -> RotorGeometry:
    around = np.radians([0.0, 60.0, 120.0, 180.0, 240.0, 300.0])
    place = 0.2 * np.stack([np.cos(around), np.sin(around), np.zeros(6)], axis=1)
    return RotorGeometry(place, np.tile([0.0, 0.0, 1.0], (6, 1)), np.array([1.0, -1.0] * 3), np.full(6, 0.02))


def flown(rotors: RotorGeometry, order: tuple[int, ...], lag: float = 0.05, yaw: float = 1.0, noise: float = 0.02) -> Log:
    """Steps of every motor by themselves, of a vehicle whose rotor i is the log's column order[i].

    Moments by hand: a newton at (x, y) along z turns by y about x and by -x about y; a rotor that turns counter-clockwise is
    answered clockwise.
    """
    draw = np.random.default_rng(3)
    count, time = len(order), np.arange(int(SECONDS * RATE)) / RATE
    steps = draw.choice([-0.1, 0.0, 0.1], (len(time) // 10 + 1, count))
    command = 0.5 + np.repeat(steps, 10, axis=0)[: len(time)]
    state = command.copy()
    for k in range(1, len(time)):
        state[k] = state[k - 1] + (1.0 - np.exp(-1.0 / (RATE * lag))) * (command[k - 1] - state[k - 1])
    push = 4.0 * (state - 0.5)
    moment = np.zeros((len(time), 3))
    for rotor, column in enumerate(order):
        x, y, _ = rotors.position[rotor]
        moment += push[:, [column]] * np.array([y / 0.01, -x / 0.01, -yaw * rotors.spin[rotor] * 0.02 / 0.015])
    rate = np.cumsum(moment, axis=0) / RATE + draw.normal(0.0, noise, moment.shape)
    streams = (LogStream("motor_command", time, command), LogStream("gyro", time, rate))
    return Log("a", streams, LogSource("a", "", "test"))


@pytest.mark.parametrize("order", list(permutations(range(4)))[::5])
def test_any_order_of_four_is_found(order: tuple[int, ...]) -> None:
    found = motor_order(flown(QUAD, order), PARTS, QUAD)
    assert found is not None
    assert found.order == order
    assert found.accepted
    assert found.spins == "recorded"
    assert found.cost < 0.01
    assert found.lag == 0.05
    # About z it is 40 times weaker, beside the noise of the sensor.
    assert min(found.explained[:2]) > 0.9


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4, 5), (3, 0, 5, 1, 4, 2)])
def test_any_order_of_six_is_found(order: tuple[int, ...]) -> None:
    found = motor_order(flown(hexa(), order), PARTS, hexa())
    assert found is not None
    assert (found.order, found.spins) == (order, "recorded")
    assert found.accepted
    # Two neighbours of a hexa exchanged turn it nearly as before, by (2 / 12) of the squares of its levers each.
    assert found.second > 0.05


def test_rotors_that_turn_the_other_way_are_told() -> None:
    found = motor_order(flown(QUAD, (0, 1, 2, 3), yaw=-1.0), PARTS, QUAD)
    assert found is not None
    assert (found.order, found.spins) == ((0, 1, 2, 3), "reversed")
    assert "TURN THE OTHER WAY ROUND" in found.sentence()


def test_without_turns_about_z_spins_are_assumed() -> None:
    found = motor_order(flown(QUAD, (2, 0, 1, 3), yaw=0.0), PARTS, QUAD)
    assert found is not None
    assert (found.order, found.spins) == ((2, 0, 1, 3), "assumed")
    assert found.sentence().startswith("For rotors 1 to 4 the log has columns 3 1 2 4 (cost 0.00, the next 0.")
    assert found.sentence().endswith("spins are assumed, since motors explain too little of the turns about z.")


def test_a_sensor_that_hears_nothing_of_motors_tells_nothing() -> None:
    log = flown(QUAD, (0, 1, 2, 3), noise=50.0)
    found = motor_order(log, PARTS, QUAD)
    assert found is not None
    assert not found.told
    assert not found.accepted
    assert "too little to tell their order" in found.sentence()


def test_orders_that_are_nearly_as_good_are_told_with_their_costs() -> None:
    found = MotorOrder((0, 1), 0.3, 0.5, (0.8, 0.8, 0.0), "assumed", 0.05, (((0, 1), 0.3), ((1, 0), 0.5)))
    assert not found.accepted
    assert "1 2: 0.30; 2 1: 0.50" in found.sentence()
    assert MotorOrder((0, 1), 0.25, 0.5, (0.8, 0.8, 0.0), "assumed", 0.05, ()).accepted


def test_what_cannot_be_asked() -> None:
    log = flown(QUAD, (0, 1, 2, 3))
    assert motor_order(log, LogSegments((), (), ()), QUAD) is None
    assert motor_order(Log("a", log.streams[:1], log.source), PARTS, QUAD) is None
    with pytest.raises(AirworthyError, match="commands 4 motors, and the vehicle has 6 rotors"):
        motor_order(log, PARTS, hexa())
    eight = RotorGeometry(np.zeros((8, 3)), np.zeros((8, 3)), np.zeros(8), np.zeros(8))
    many: Array = np.zeros((10, 8))
    with pytest.raises(AirworthyError, match="8 motors; orders of up to 6 are tried"):
        motor_order(Log("a", (LogStream("motor_command", np.arange(10.0), many), log.streams[1]), log.source), PARTS, eight)


@pytest.mark.parametrize(("name", "shares"), [("log10", (0.31, 0.39)), ("log15", (0.80, 0.84))])
def test_shared_flights_of_a_crazyflie(data_dir: Path, name: str, shares: tuple[float, float]) -> None:
    """Its firmware numbers motors clockwise from the front right; `cf2x_scg_iros2022` the other way round."""
    log = read_log(data_dir / "flights" / "crazyflie_sysid" / name)
    clockwise = 0.0325 * np.array([[1.0, -1.0, 0.0], [-1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    rotors = RotorGeometry(clockwise, np.tile([0.0, 0.0, 1.0], (4, 1)), np.array([1.0, -1.0, 1.0, -1.0]), np.zeros(4))
    found = motor_order(log, flight_segments(log), rotors)
    assert found is not None
    assert (found.order, found.accepted) == ((0, 1, 2, 3), True)
    np.testing.assert_allclose(found.explained[:2], shares, atol=0.02)


def test_the_command_line_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "flight.npz"
    write_log(flown(QUAD, (1, 0, 3, 2)), path)
    assert main(["logs", "show", str(path), "--like", "x500"]) == 0
    assert "For rotors 1 to 4 the log has columns 2 1 4 3 (cost 0.00, the next 0.47)" in capsys.readouterr().out
    assert main(["logs", "show", str(path), "--like", "x500", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["motors"]["order"] == [1, 0, 3, 2]
    assert main(["logs", "show", str(path)]) == 0
    assert "Motors\n" not in capsys.readouterr().out  # it has no geometry of its own
    assert main(["logs", "show", str(path), "--like", "x500", "--use", "0:0.5"]) == 2
    assert "--like x500 asks for the order of motors, which this log cannot tell" in capsys.readouterr().err


def test_a_log_is_asked_by_its_own_geometry(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "flight.npz"
    write_log(replace(flown(QUAD, (0, 1, 2, 3)), geometry=QUAD), path)
    assert main(["logs", "show", str(path)]) == 0
    assert "Motors are in the vehicle's order (cost 0.00, the next 0.47); spins are the record's." in capsys.readouterr().out
