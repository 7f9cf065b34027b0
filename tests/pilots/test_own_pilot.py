"""A pilot of one's own: what it may see, and what becomes of the flights when it goes wrong."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.pilots import FlightPlan, FlightRun, Observation, Pilot, fly
from airworthy.pilots.flight_loop import _ended
from airworthy.simulation import Imu, Simulator, SimulatorConfig
from airworthy.vehicles import vehicle

CARL = vehicle("carl")
GOAL = np.array([0.5, 0.0, 1.0])


class Homing:
    """Flies to a point: a whole pilot in ten lines."""

    name = "homing"
    level = "velocity"
    observes = ("position", "velocity")

    def command(self, observation: Observation) -> Any:
        wanted = 1.5 * (GOAL - observation["position"]) - 0.2 * observation["velocity"]
        turn = np.zeros((len(wanted), 1))
        return np.concatenate([np.clip(wanted, -1.0, 1.0), turn], axis=1)


@dataclass
class Scripted:
    """Hovers at the origin until `at` seconds, then does what it is told."""

    then: Callable[[Observation], Any]
    at: float = 0.1
    level: str = "position"
    observes: Any = ()
    name: str = "scripted"

    def command(self, observation: Observation) -> Any:
        return self.then(observation) if observation.time[0] >= self.at - 1e-9 else np.zeros((len(observation.time), 4))


def simulator(level: str = "position", envs: int = 3, **options: Any) -> Simulator:
    return Simulator(CARL, SimulatorConfig(level=level, **options), env_count=envs, seed=3)


def flown(pilot: Pilot, duration: float = 0.3, envs: int = 3, **options: Any) -> FlightRun:
    return fly(simulator(pilot.level, envs, **options), pilot, FlightPlan(duration))


def test_a_pilot_of_ten_lines_reaches_its_goal() -> None:
    result = flown(Homing(), duration=5.0, envs=2)
    last = result.table.vector("position")[result.table.starts[1:] - 1]
    np.testing.assert_allclose(last, np.tile(GOAL, (2, 1)), atol=0.05)  # a tenth of the way: the law has no integral
    assert not result.interrupted
    assert result.pilot_error == ""
    assert result.unfinished == {}


# ---- what it sees -----------------------------------------------------------------------------------------------------------


def observed(observes: tuple[str, ...], **options: Any) -> dict[str, Any]:
    """What a pilot that declares these fields finds in its observation."""
    found: dict[str, Any] = {}

    def look(observation: Observation) -> Any:
        found.update(observation.fields, time=observation.time)
        return np.zeros(4)

    result = flown(Scripted(look, 0.0, observes=observes), duration=0.01, **options)
    assert result.pilot_error == ""
    return found


def test_it_sees_what_it_declares_and_nothing_else() -> None:
    assert set(observed(())) == {"time"}
    assert set(observed(("imu", "rate"), imu=Imu())) == {"time", "imu", "rate"}


def test_a_field_that_it_does_not_declare_is_refused() -> None:
    observation = Observation(np.zeros(1), {"imu": np.zeros((1, 6))})
    with pytest.raises(AirworthyError, match="A pilot read 'position', which it does not declare; add it to `observes`"):
        _ = observation["position"]
    result = flown(Scripted(lambda observed: observed["position"], observes=("velocity",)))
    assert "A pilot read 'position', which it does not declare" in result.pilot_error


@pytest.mark.parametrize(
    ("field", "width"), [("position", 3), ("velocity", 3), ("attitude", 4), ("rate", 3), ("rotor_speed", 4), ("wind", 3)]
)
def test_fields_have_one_row_per_environment(field: str, width: int) -> None:
    assert observed((field,))[field].shape == (3, width)


def test_what_it_sees_is_a_copy_that_cannot_be_written() -> None:
    found = observed(("position",))
    for array in found.values():
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 1.0


@pytest.mark.parametrize(
    ("observes", "message"),
    [
        (("map",), "'scripted' observes 'map'; it may ask for position, velocity,"),
        (("position_residual",), "observes 'position_residual'; it may ask for"),
        ("position", "observes the text 'position'; write a tuple, ('position',)"),
        (("imu",), "observes 'imu', but no inertial sensor is simulated"),
    ],
)
def test_what_it_may_not_have_is_refused_before_the_flight(observes: Any, message: str) -> None:
    with pytest.raises(AirworthyError) as caught:
        flown(Scripted(lambda _: np.zeros(4), observes=observes))
    assert message in str(caught.value)


def test_fields_that_the_dynamics_lack_are_refused() -> None:
    pilot = Scripted(lambda _: np.zeros(4), level="rate_thrust", observes=("rotor_speed",))
    with pytest.raises(AirworthyError, match="'rotor_speed', which semi_kinematic dynamics do not have"):
        flown(pilot, dynamics="semi_kinematic")


# ---- what goes wrong --------------------------------------------------------------------------------------------------------


def raises(error: BaseException) -> Callable[[Observation], Any]:
    def do(observation: Observation) -> Any:
        raise error

    return do


@pytest.mark.parametrize(
    ("then", "cause"),
    [
        (raises(ValueError("no map\nsecond line")), "ValueError: no map (test_own_pilot.py, line "),
        (raises(KeyError("gate")), "KeyError: 'gate' ("),
        (raises(MemoryError()), "MemoryError ("),
        (raises(SystemExit("bye")), "SystemExit: bye (test_own_pilot.py, line "),
        (raises(GeneratorExit()), "GeneratorExit (test_own_pilot.py, line "),
        (raises(KeyboardInterrupt()), "KeyboardInterrupt (test_own_pilot.py, line "),
        (raises(asyncio.CancelledError()), "CancelledError (test_own_pilot.py, line "),
        (lambda _: np.linalg.inv(np.zeros((2, 2))), "LinAlgError: Singular matrix (test_own_pilot.py, line "),
        (raises(AirworthyError("lost.")), "AirworthyError: lost. ("),
        (lambda _: np.zeros((3, 5)), "its command has shape (3, 5); level 'position' takes (3, 4) or (4,)"),
        (lambda _: np.zeros((4, 3)), "its command has shape (4, 3)"),
        (lambda _: 1.0, "its command has shape ()"),
        (lambda _: np.zeros(0), "its command has shape (0,)"),
        (lambda _: None, "its command is not an array of numbers: "),
        (lambda _: "forward", "its command is not an array of numbers: "),
        (lambda _: [[1.0], [1.0, 2.0]], "its command is not an array of numbers: "),
        (
            lambda _: np.zeros(4, complex),
            "its command is not an array of numbers: an array of complex128 holds no real numbers",
        ),
        (lambda _: np.full(4, "1"), "its command is not an array of numbers: "),
    ],
)
def test_a_pilot_that_fails_ends_the_run_with_the_cause(then: Callable[[Observation], Any], cause: str) -> None:
    result = flown(Scripted(then))
    assert result.pilot_error.startswith(cause)
    assert result.unfinished == {0: "pilot_error", 1: "pilot_error", 2: "pilot_error"}
    # 0.1 s at 100 Hz were flown, and the start was recorded.
    assert result.table.row_count == 3 * 11
    assert np.isfinite(result.table.vector("position")).all()


@pytest.mark.parametrize("command", [[0, 0, 1, 0], np.zeros(4, np.int8), np.zeros((3, 4), bool), (0.0, 0.0, 1.0, 0.0)])
def test_anything_that_is_numbers_of_the_right_shape_is_a_command(command: Any) -> None:
    assert flown(Scripted(lambda _: command)).pilot_error == ""


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
@pytest.mark.parametrize("level", ["position", "rate_thrust", "rotor_speed"])
def test_a_command_that_is_not_finite_loses_that_flight_and_no_other(level: str, bad: float) -> None:
    def hover(observation: Observation) -> Any:
        return np.tile({"position": 0.0, "rate_thrust": 0.0, "rotor_speed": 1000.0}[level], (20, 4))

    def spoilt(observation: Observation) -> Any:
        command = hover(observation)
        command[7, 2] = bad
        return command

    def pilot(then: Callable[[Observation], Any]) -> Pilot:
        return Scripted(then, 0.0, level=level)

    clean, result = flown(pilot(hover), envs=20), flown(pilot(spoilt), envs=20)
    assert set(result.table.flight(7).status[1:]) == {1}
    assert result.pilot_error == ""
    others = [env for env in range(20) if env != 7]
    for name, values in result.table.select(others).columns.items():
        np.testing.assert_array_equal(values, clean.table.select(others).columns[name], err_msg=name)


def test_a_command_beyond_all_sense_is_named_where_the_flight_ends() -> None:
    command = np.zeros((3, 4))
    command[1, 2] = -1e30
    result = fly(simulator("position"), Scripted(lambda _: command, 0.0), FlightPlan(3.0, min_height=-1.0))
    assert set(result.table.flight(1).status[-1:]) <= {1, 2}
    assert result.causes == {1: "its command held 1e+30, beyond what any level takes"}
    lost = np.zeros((3, 4))
    lost[2] = np.nan
    assert flown(Scripted(lambda _: lost, 0.0)).causes == {2: "its command is not finite"}


@pytest.mark.parametrize("latency", [0.0, 0.005])
def test_one_flight_takes_a_command_with_or_without_its_axis(latency: float) -> None:
    def at(shape: tuple[int, ...]) -> Any:
        command = np.array([0.5, 0.0, 1.0, 0.3]).reshape(shape)
        sim = simulator(envs=1)
        return fly(sim, Scripted(lambda _: command, 0.0), FlightPlan(0.3, latency=latency)).table.columns

    for name, values in at((4,)).items():
        np.testing.assert_array_equal(values, at((1, 4))[name], err_msg=name)


def test_a_flight_that_was_lost_before_the_pilot_failed_stays_lost() -> None:
    def spoil_then_fail(observation: Observation) -> Any:
        if observation.time[0] > 0.15:
            raise RuntimeError("late")
        command = np.zeros((3, 4))
        command[1] = np.nan
        return command

    result = flown(Scripted(spoil_then_fail))
    assert result.unfinished == {0: "pilot_error", 2: "pilot_error"}
    assert result.table.flight(1).status[-1] == 1


def interrupt(observation: Observation) -> Any:
    """What Ctrl-C does to a process, while a pilot decides."""
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.5)
    return np.zeros(4)


def swallow(observation: Observation) -> Any:
    try:
        interrupt(observation)
    except BaseException:
        return np.zeros(4)


@pytest.mark.parametrize("then", [interrupt, swallow])
def test_an_interrupt_keeps_what_was_flown(then: Callable[[Observation], Any]) -> None:
    before = signal.getsignal(signal.SIGINT)
    result = flown(Scripted(then))
    assert signal.getsignal(signal.SIGINT) is before
    assert result.interrupted
    assert result.pilot_error == ""
    assert result.unfinished == {0: "aborted", 1: "aborted", 2: "aborted"}
    assert result.table.row_count == 3 * 11


# ---- the plan ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("duration", [0.0, -1.0, np.nan, np.inf])
def test_a_duration_that_cannot_be_flown(duration: float) -> None:
    with pytest.raises(AirworthyError, match="the duration must be positive"):
        flown(Scripted(lambda _: np.zeros(4)), duration=duration)


def test_more_steps_than_the_clock_counts() -> None:
    with pytest.raises(AirworthyError, match="more than the 4,294,967,295 physics steps"):
        flown(Scripted(lambda _: np.zeros(4)), duration=1e7)


def test_a_pilot_of_another_level_than_the_simulator() -> None:
    with pytest.raises(AirworthyError, match="commands level 'position' but the simulator was built for 'velocity'"):
        fly(simulator("velocity"), Scripted(lambda _: np.zeros(4)), FlightPlan(1.0))


def test_floor_and_bounds_end_flights_for_good() -> None:
    # Without thrust a vehicle falls 0.31 m in 0.25 s: through the floor, then out of the bounds, which is no longer asked.
    pilot = Scripted(lambda _: np.zeros(4), 0.0, level="rotor_speed")
    fallen = fly(simulator("rotor_speed"), pilot, FlightPlan(0.4, min_height=-0.1, bounds=0.3)).table.flight(0)
    assert fallen.status[0] == 0
    assert set(fallen.status[fallen.t > 0.3]) == {2}
    left = fly(simulator("rotor_speed"), pilot, FlightPlan(0.4, bounds=0.3)).table.flight(0)
    assert set(left.status[left.t > 0.3]) == {3}


def test_recording_every_nth_step() -> None:
    pilot = Scripted(lambda _: np.zeros(4))
    table = fly(simulator(), pilot, FlightPlan(0.3, record_every=4)).table
    np.testing.assert_allclose(table.flight(0).t, np.arange(0.0, 0.3, 0.04), atol=1 / 960)


@pytest.mark.parametrize("beyond", [False, True])
def test_flights_end_beyond_their_limits_and_not_at_them(beyond: bool) -> None:
    """Each limit in a flight of its own; what has ended for another reason keeps it."""

    def past(value: float, way: float) -> float:
        return float(np.nextafter(value, way * np.inf)) if beyond else value

    start = np.zeros((7, 3))
    place = np.tile([0.0, 0.0, 1.0], (7, 1))
    place[1] = (0.0, 3.0, past(4.0, 1.0) + (1e-9 if beyond else 0.0))  # five metres from its start
    place[2, 0], place[3, 2] = past(-2.0, -1.0), past(0.5, -1.0)
    place[4] = place[5] = (9.0, 9.0, -9.0)
    status = np.array([0, 0, 0, 0, 1, 0, 0])
    contact = SimpleNamespace(mode="reset")
    simulator: Any = SimpleNamespace(
        position=place,
        center=place,
        field=lambda name: status,
        config=SimpleNamespace(contact=contact),
        contacts=SimpleNamespace(count=np.array([0, 0, 0, 0, 3, 1, 0])),
    )
    plan: Any = SimpleNamespace(bounds=5.0, region=(np.array([-2.0, -9.0, -9.0]), np.array([9.0, 9.0, 9.0])), min_height=0.5)
    ends = [0, 3, 3, 2] if beyond else [0, 0, 0, 0]
    assert _ended(simulator, plan, start).tolist() == [*ends, 1, 2, 0]
    contact.mode = "rebound"
    assert _ended(simulator, plan, start).tolist() == [*ends, 1, 3, 0]
    free: Any = SimpleNamespace(bounds=np.inf, region=None, min_height=-np.inf)
    assert _ended(simulator, free, start).tolist() == [0, 0, 0, 0, 1, 0, 0]
