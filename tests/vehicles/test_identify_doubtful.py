"""What identification is given that cannot be, or that it cannot know: one sentence each, and what to do."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.vehicles.flown_logs import Craft, changed, fly, quad

from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError
from airworthy.logs import Log, LogSource, flight_segments, log_findings, read_log
from airworthy.vehicles import Known, identify
from airworthy.vehicles.identification.agreement import fitted_judges, refuse_repeated
from airworthy.vehicles.identification.gathering import Gathered, held_out_notes
from airworthy.vehicles.identification.known import frame_vehicle, parts_of
from airworthy.vehicles.identification.motors.wiring import wiring_of
from airworthy.vehicles.identification.prediction.signals import FlightSignals, HeldCommand, Readings, flight_signals
from airworthy.vehicles.identification.turning import refuse_unlike_turns, turn_notes, turn_shares

TRUTH = quad()


def known(craft: Craft = TRUTH, **given: Any) -> Known:
    return Known(mass=(craft.mass, 0.002 * craft.mass), vehicle=craft.known(), **given)


@pytest.fixture(scope="module")
def flown() -> Log:
    return fly(TRUTH, 10.0)


def named(log: Log, name: str, kind: str = "test") -> Log:
    return replace(log, name=name, source=LogSource(name, name * 4, kind))


def signals(log: Log) -> FlightSignals:
    return flight_signals(log, flight_segments(log))


# ---- Frames of the gyro, and orders of motors --------------------------------------------------------------------------------


def turned(log: Log, *signs: float) -> Log:
    """With other signs of the gyro's axes."""
    return changed(log, "gyro", values=log.stream("gyro").values * np.array(signs))


@pytest.mark.parametrize(
    ("signs", "order", "axes"),
    [
        ((1.0, -1.0, -1.0), "2,1,4,3", "y and z"),
        ((-1.0, 1.0, -1.0), "4,3,2,1", "x and z"),
        ((-1.0, -1.0, 1.0), "3,4,1,2", "x and y"),
        ((1.0, -1.0, 1.0), "2,1,4,3", "y"),
    ],
)
def test_a_gyro_in_another_frame_is_no_order_of_motors(flown: Log, signs: Any, order: str, axes: str) -> None:
    with pytest.raises(AirworthyError, match=f"the gyro's {axes} point the other way: turns cannot tell which") as refused:
        identify([turned(flown, *signs)], known(), quick=True)
    assert f"Say --order {order} if motors are wired so" in str(refused.value)
    assert ('frame = "frd" in mapping.toml' in str(refused.value)) == (axes == "y and z")


def test_motors_that_are_wired_so_are_said_to_be(flown: Log) -> None:
    values = flown.stream("motor_command").values[:, [3, 2, 1, 0]]
    log = changed(flown, "motor_command", values=values)
    base, parts = TRUTH.known(), flight_segments(log)
    with pytest.raises(AirworthyError, match="Say --order 4,3,2,1"):
        wiring_of(log, parts, base, True)
    found = wiring_of(log, parts, base, True, (3, 2, 1, 0))
    assert (found.order, found.reversed) == ((3, 2, 1, 0), False)
    assert "A gyro whose x and z point the other way would show the same" in found.note
    # A format that says the frame itself is believed.
    framed = wiring_of(named(log, "a", "Crazyflie micro-SD"), parts, base, True)
    assert framed.order == (3, 2, 1, 0)
    assert "would show the same" not in framed.note
    with pytest.raises(AirworthyError, match=r"said to come in the order 1 2 3 4, and its turns ask for 4 3 2 1 \(cost"):
        wiring_of(log, parts, base, True, (0, 1, 2, 3))
    with pytest.raises(AirworthyError, match="names 3 columns, and the vehicle has 4 rotors"):
        wiring_of(log, parts, base, True, (0, 1, 2))


def test_orders_that_no_gyro_explains_need_no_word(flown: Log) -> None:
    for order in ((0, 1, 2, 3), (1, 0, 2, 3), (1, 2, 3, 0)):
        values = np.empty_like(flown.stream("motor_command").values)
        values[:, list(order)] = flown.stream("motor_command").values
        log = changed(flown, "motor_command", values=values)
        found = wiring_of(log, flight_segments(log), TRUTH.known(), True)
        assert found.order == order
        assert "would show the same" not in found.note


@pytest.mark.parametrize(
    ("order", "said"),
    [((0, 0, 1, 2), r"\(0, 0, 1, 2\)"), ((1, 2, 3, 4), r"\(1, 2, 3, 4\); expected each column from 0 to 3 once")],
)
def test_orders_that_are_none(order: tuple[int, ...], said: str) -> None:
    with pytest.raises(AirworthyError, match=said):
        known(order=order)


# ---- Numbers that cannot be --------------------------------------------------------------------------------------------------


def test_commands_that_never_change_in_flight_are_refused(flown: Log) -> None:
    """The vehicle turns, and its motors are said to do nothing: no fit is made of that."""
    frozen = np.full_like(flown.stream("motor_command").values, 0.5)
    with pytest.raises(
        AirworthyError, match=r"with motor commands that never change \(50 %, 50 %, 50 %, 50 %\): they are frozen"
    ):
        identify([changed(flown, "motor_command", values=frozen)], known(), quick=True)
    # One motor that stands still is another matter.
    frozen[:, 1:] = flown.stream("motor_command").values[:, 1:]
    with pytest.raises(AirworthyError, match="motor 1's commands are 50 % throughout"):
        identify([changed(flown, "motor_command", values=frozen)], known(), quick=True)


@pytest.mark.parametrize("mass", [27.0, 1e-6])
def test_a_mass_in_grams_is_refused(flown: Log, mass: float) -> None:
    given = Known(mass=(mass, 0.01 * mass), vehicle=frame_vehicle("quad_x:0.028", mass))
    with pytest.raises(AirworthyError, match=r"kg on arms of 0\.0396 m weighs .* give the mass in kg \(27 g are 0\.027\)"):
        identify([flown], given, quick=True)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("command_delay", -1.0, "command_delay cannot be fixed at -1 s; expected 0 to 1 s"),
        ("command_delay", 12.0, "command_delay cannot be fixed at 12 s"),
        ("lag", 50.0, r"lag cannot be fixed at 50 s; expected 0\.0001 to 10 s"),
        ("center_x", 30.0, "center_x cannot be fixed at 30 m"),
        ("thrust_linear", 7.0, "thrust_linear cannot be fixed at 7; expected -1 to 2"),
    ],
)
def test_values_that_cannot_be_fixed(name: str, value: float, said: str) -> None:
    with pytest.raises(AirworthyError, match=said):
        known(fixed={name: value})


def test_the_command_line_says_them_too(tmp_path: Path, capsys: pytest.CaptureFixture[str], data_dir: Path) -> None:
    log = str(data_dir / "flights/crazyflie_sysid/log10")
    ask = ["--frame", "quad_x:0.028", "--quick"]
    for more, said in (
        (["--mass", "27+-0.1"], "give the mass in kg"),
        (["--mass", "0.027+-0.0001", "--fix", "command_delay=-1"], "command_delay cannot be fixed at -1 s"),
        (["--mass", "0.027+-0.0001", "--order", "0,1,2,3"], "expected a column for each rotor, from 1 on, as 4,3,2,1"),
        (["--mass", "0.027+-0.0001"], "hold the same flight: counted twice"),
        (["--mass", "0.027+-0.0001", "--holdout", log], "what judges a fit must not be fitted"),
    ):
        logs = [log] * (2 if "twice" in said else 1)
        assert main(["vehicles", "identify", *logs, *ask, *more]) == 2
        told = capsys.readouterr().err
        assert said in told
        assert "Traceback" not in told


# ---- Several logs ------------------------------------------------------------------------------------------------------------


def test_a_flight_that_is_given_twice_is_refused(flown: Log) -> None:
    with pytest.raises(AirworthyError, match="Logs 'a' and 'copy' hold the same flight: counted twice it would look surer"):
        identify([named(flown, "a"), named(flown, "copy")], known(), quick=True)
    with pytest.raises(AirworthyError, match="what judges a fit must not be fitted"):
        identify([named(flown, "a")], known(), quick=True, holdout=[named(flown, "copy")])
    assert fitted_judges([named(flown, "a")], [named(flown, "copy"), turned(flown, 1.0, 1.0, -1.0)]) == [
        "copy judges, and parts of it are fitted: there its errors are those of a fit."
    ]
    refuse_repeated([flown, turned(flown, 1.0, 1.0, -1.0)])


@pytest.fixture(scope="module")
def alike(flown: Log) -> FlightSignals:
    return signals(named(flown, "a"))


def other(seed: int, push: float = 0.0, **changes: Any) -> FlightSignals:
    return signals(named(fly(replace(TRUTH, **changes), 10.0, seed=seed, push=push), "b"))


@pytest.mark.slow
def test_vehicles_that_lift_alike_and_turn_unlike_are_told(flown: Log, alike: FlightSignals) -> None:
    base = TRUTH.known()
    heavier = other(1, inertia=(1.95e-5, 2.1e-5, 3.6e-5))
    notes = turn_notes(turn_shares([alike, heavier], base))
    assert [note[:31] for note in notes] == ["Turns about x at like commands ", "Turns about y at like commands "]
    assert 25 <= int(notes[0].partition("a has ")[2].partition(" %")[0]) <= 34
    assert "% more than b" in notes[0]
    refuse_unlike_turns(turn_shares([alike, heavier], base))
    with pytest.raises(AirworthyError, match=r"'a' turns at least [12]\.\d\d times as much about x as 'b': these logs are not"):
        identify([named(flown, "a"), named(fly(replace(TRUTH, inertia=(3e-5, 3.2e-5, 5e-5)), 10.0, seed=1), "b")], known())


@pytest.mark.parametrize("change", [{}, {"push": 5.0}, {"lag": 0.04}])
def test_flights_of_one_vehicle_turn_alike(alike: FlightSignals, change: dict[str, Any]) -> None:
    """Pushes make slopes too small: their brackets are wide, and nothing is told."""
    both = turn_shares([alike, other(2, **change)], TRUTH.known())
    assert turn_notes(both) == []
    refuse_unlike_turns(both)


def test_shares_of_turns_are_ratios_of_inertia(alike: FlightSignals) -> None:
    shares = turn_shares([alike, other(3, inertia=(1.5e-5, 3.2e-5, 2.8e-5))], TRUTH.known())
    found = {(s.name, s.axis): s.share for s in shares}
    assert found["a", "x"] / found["b", "x"] == pytest.approx(1.0, abs=0.03)
    assert found["a", "y"] / found["b", "y"] == pytest.approx(2.0, abs=0.06)


def by_hand(name: str, seconds: float, constant: float = 0.0, part: tuple[float, float] | None = None) -> FlightSignals:
    """Commands at random, and a gyro that turns by what they turn through a lag of 50 ms, and by a constant moment beside it.

    Args:
        name: Of the flight.
        seconds: Its length.
        constant: Angular acceleration about x and y that no rotor tells [rad/s^2].
        part: Of the flight that may be used; None: all of it.
    """
    rng, count = np.random.default_rng(3), round(seconds / 0.002)
    held = HeldCommand(0.0, 0.002, np.repeat(rng.uniform(0.5, 0.8, (count // 25 + 1, 4)), 25, axis=0)[:count])
    state = held.states(np.array([[20.0, 0.0, 20.0, 0.0]]))[0]
    arms = np.array([rotor.position for rotor in TRUTH.known().rotors])
    pushed = (state**2) @ np.stack([arms[:, 1], -arms[:, 0]], axis=1) / 1e-4
    # `TurnShare` compares increments less their means: what turns evenly is nothing that motors did.
    turning = np.column_stack([pushed - pushed.mean(axis=0) + constant, np.zeros(count + 1)])
    time = 0.002 * np.arange(count + 1)
    rate = np.concatenate([np.zeros((1, 3)), np.cumsum(0.001 * (turning[1:] + turning[:-1]), axis=0)])
    still = Readings(time, np.zeros((count + 1, 3)))
    spans = ((0.0, float(time[-1])),) if part is None else (part,) if part[1] > part[0] else ()
    return FlightSignals(name, held, Readings(time, rate), still, Readings(time[:-1], held.values), spans)


@pytest.mark.parametrize("constant", [-30.0, 30.0])
def test_a_constant_moment_is_no_turn_of_motors(constant: float) -> None:
    """A centre of mass that is off turns a vehicle evenly, which pilots hold by commands: neither side's mean may count."""
    alone = by_hand("a", 8.0)
    shares = turn_shares([alone, by_hand("b", 8.0, constant)], TRUTH.known())
    assert [(s.name, s.axis) for s in shares] == [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")]
    for share in shares:
        # The first mean over 5 ms begins before the log.
        assert share.share == pytest.approx(1.0, abs=1e-3)
        # Everything is explained: both slopes agree, and nothing scatters.
        assert share.most == pytest.approx(1.0, abs=0.02)
        assert share.error < 0.02


@pytest.mark.parametrize("part", [(1.0, 1.0), (1.0, 1.08)])
def test_a_flight_without_an_increment_tells_no_turns(part: tuple[float, float]) -> None:
    """No span, or one that is shorter than an increment: nothing is compared, of the other flight neither."""
    assert turn_shares([by_hand("a", 8.0), by_hand("b", 8.0, part=part)], TRUTH.known()) == []
    assert turn_shares([by_hand("b", 8.0, part=part)], TRUTH.known()) == []
    assert turn_shares([], TRUTH.known()) == []


def test_a_short_flight_tells_no_turns() -> None:
    """Twelve blocks of ten increments, neighbours half of 0.1 s apart: six seconds, and the last increment's own length."""
    long = by_hand("a", 8.0)
    assert turn_shares([long, by_hand("b", 8.0, part=(1.0, 7.02))], TRUTH.known()) == []
    assert len(turn_shares([long, by_hand("b", 8.0, part=(1.0, 7.12))], TRUTH.known())) == 4


def test_real_flights_of_one_vehicle_turn_alike(data_dir: Path) -> None:
    flights = [signals(read_log(data_dir / "flights/crazyflie_sysid" / name)) for name in ("log10", "log15")]
    assert turn_notes(turn_shares(flights, frame_vehicle("quad_x:0.028", 0.027))) == []


def test_parts_of_one_log_are_its_own() -> None:
    assert parts_of([(1.0, 2.0)], "a") == [(1.0, 2.0)]
    named = {"": [(0.0, 9.0)], "a": [(1.0, 2.0)]}
    assert parts_of(named, "a") == [(0.0, 9.0), (1.0, 2.0)]
    assert parts_of(named, "b") == parts_of(named, "") == [(0.0, 9.0)]


# ---- What is held out, and commands that stand still -------------------------------------------------------------------------


class Stopped(Exception):
    """In the place of a fit."""


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Any, list[str]]]:
    """Return what would be fitted, without a fit, and what was said until then of parts that are held out."""

    def of(log: Log, *holdout: Log) -> tuple[Any, list[str]]:
        seen: list[Any] = []
        said: list[str] = []

        def stop(given: Any) -> None:
            seen.append(given)
            raise Stopped

        def heard(*given: Any) -> list[str]:
            said.extend(held_out_notes(*given))
            return said

        module = importlib.import_module("airworthy.vehicles.identification.identify")
        monkeypatch.setattr(module, "_tried", stop)
        monkeypatch.setattr(module, "held_out_notes", heard)
        with pytest.raises(Stopped):
            identify([log], known(), quick=True, holdout=holdout)
        return seen[0], said

    return of


def test_turns_that_are_held_out_tell_a_fit_nothing(flown: Log, job: Callable[..., tuple[Any, list[str]]]) -> None:
    """Yaw in the last third alone: torque and inertia about z are assumed, and it is said which flight would tell them."""
    gyro, parts = flown.stream("gyro"), flight_segments(flown).usable
    cut = parts[-1].stop - (parts[-1].stop - parts[0].start) / 3.0
    late = changed(flown, "gyro", values=np.where((gyro.time < cut)[:, None], gyro.values * [1.0, 1.0, 0.05], gyro.values))
    assert {f.parameter: f.verdict for f in log_findings(late, flight_segments(late))}["torque / inertia zz"] == "can tell"
    split, said = job(late)
    for told in (split.told, *split.told_of):
        assert told["inertia_xx"]
        assert not told["torque_ratio"]
        assert not told["inertia_zz_ratio"]
    assert len(said) == 1
    assert "torque / inertia zz would be told with what is held out of it" in said[0]
    # Fitted whole, it tells them.
    whole, said = job(late, named(flown, "another"))
    assert whole.told["torque_ratio"]
    assert whole.told_of[0]["torque_ratio"]
    assert said == []


@pytest.mark.parametrize("order", [(), (0, 1, 2, 3)])
@pytest.mark.parametrize(("value", "said"), [(0.0, "are 0"), (np.nan, "are missing"), (0.5, "are 50 %")])
def test_a_motor_whose_commands_stand_still_is_named(flown: Log, order: tuple[int, ...], value: float, said: str) -> None:
    commands = flown.stream("motor_command").values.copy()
    commands[:, 2] = value
    log = changed(flown, "motor_command", values=commands)
    with pytest.raises(AirworthyError, match=f"motor 3's commands {said} throughout .* its column is another"):
        identify([log], known(order=order))


def test_commands_that_freeze_for_a_while_are_left_out_and_counted(flown: Log) -> None:
    stream = flown.stream("motor_command")
    middle = float(stream.time.mean())
    held = (stream.time > middle) & (stream.time < middle + 2.0)
    log = changed(flown, "motor_command", values=np.where(held[:, None], stream.values[np.argmax(held)], stream.values))
    gathered = Gathered(log, TRUTH.known(), (), ())
    (said,) = [note for note in gathered.notes if "freeze" in note]
    match = re.search(r"freeze once while it turns: ([\d.]+) s of flight are left out", said)
    assert match is not None
    # Two seconds, half a second behind, and blocks of a tenth at both ends.
    assert float(match[1]) == pytest.approx(2.6, abs=0.21)
    # For most of it: nothing is fitted to the rest.
    long = (stream.time > middle - 2.0)[:, None]
    gone = changed(flown, "motor_command", values=np.where(long, stream.values[np.argmax(long)], stream.values))
    with pytest.raises(AirworthyError, match=r"motor commands that do not change for \d+ s of them while it turns"):
        Gathered(gone, TRUTH.known(), (), ())


def test_what_freezes_for_a_part_is_left_out_and_told(flown: Log) -> None:
    """One motor, and the gyro: what is left of the flight is fitted."""
    stream, gyro = flown.stream("motor_command"), flown.stream("gyro")
    commands, rates = stream.values.copy(), gyro.values.copy()
    commands[(stream.time > 4.0) & (stream.time < 7.0), 1] = 0.3
    part = (gyro.time > 9.0) & (gyro.time < 10.0)
    rates[part] = rates[np.argmax(part)]
    gathered = Gathered(changed(changed(flown, "motor_command", values=commands), "gyro", values=rates), TRUTH.known(), (), ())
    motor, sensor = [note for note in gathered.notes if "left out" in note]
    assert re.search(
        r"commands of motor 2 stand still from (3.9|4.0) to 7\.5 s, while others change: 3\.[56] s of flight", motor
    )
    assert "the gyro freezes from 9.0 to 10.0 s: 1 s of flight are left out" in sensor
    assert not any(a < 6.9 and b > 4.1 for a, b in gathered.signals.spans)
    assert not any(a < 9.9 and b > 9.1 for a, b in gathered.signals.spans)
