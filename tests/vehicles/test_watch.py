"""Watching a vehicle on simulated flights whose values change on the way: what is told, what is not, and what is refused."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.vehicles.drifting_flights import NONE, Change, fly, record

from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError
from airworthy.logs import Log, read_log, write_log
from airworthy.vehicles import (
    Drift,
    Known,
    ThrustDrift,
    Vehicle,
    WatchedVehicle,
    frame_vehicle,
    identify,
    vehicle,
    watch,
    write_vehicle,
)
from airworthy.vehicles.identification.thrust_drift import USUAL, flight_rate
from airworthy.vehicles.watching.changes import unlikely

REST = 1.5
"""A log's clock is so far ahead of the time in the air [s]."""
CHANGES = {
    "none": NONE,
    "mass": Change(at=20.0, mass=1.1),
    "rotor": Change(at=20.0, thrust=(1.0, 0.92, 1.0, 1.0)),
    "sag": Change(at=5.0, over=25.0, thrust=(0.9,) * 4),
    "center": Change(at=20.0, center=(0.004, -0.003)),
    "lag": Change(at=20.0, lag=1.3),
    "delay": Change(at=20.0, delay=0.008),
    "before": Change(mass=1.1),
    "much": Change(at=20.0, mass=1.4),
}


@pytest.fixture(scope="module")
def logs() -> dict[str, Log]:
    return dict(zip(CHANGES, fly(list(CHANGES.values()), 32.0, seed=3), strict=True))


@pytest.fixture(scope="module")
def hovers() -> dict[str, Log]:
    names = ("none", "mass", "sag", "lag")
    return dict(zip(names, fly([CHANGES[n] for n in names], 32.0, seed=4, vigour=0.0), strict=True))


def only(found: WatchedVehicle) -> Drift:
    assert len(found.drifts) == 1, [d.sentence for d in found.drifts]
    return found.drifts[0]


def test_nothing_is_told_where_nothing_changed(logs: dict[str, Log], hovers: dict[str, Log]) -> None:
    for log in (logs["none"], hovers["none"]):
        found = watch([log], record())
        assert not found.alarm
        assert found.seconds > 25.0


@pytest.mark.parametrize(
    ("name", "cause", "truth"),
    [
        ("mass", "mass", (0.1,)),
        ("rotor", "rotor_2", (-0.08,)),
        ("center", "center", (0.004, -0.003)),
        ("lag", "lag", (0.3,)),
        ("delay", "command_delay", (0.008,)),
        ("much", "mass", (0.4,)),
    ],
)
def test_a_jump_is_told_with_size_and_begin(logs: dict[str, Log], name: str, cause: str, truth: tuple[float, ...]) -> None:
    drift = only(watch([logs[name]], record()))
    assert drift.cause == cause
    assert (drift.told, drift.steadily, drift.before) == (True, False, False)
    assert abs(drift.began - (20.0 + REST)) <= 1.0
    assert 0.0 < drift.alarmed - (20.0 + REST) <= 4.0
    for size, true in zip(drift.sizes, truth, strict=True):
        # Three deviations: the interval has 1.645 to either side.
        reach = 3.0 / 1.645 * 0.5 * (size.high - size.low)
        assert abs(size.value - true) < reach, drift.sentence
        assert reach < 0.35 * abs(true) if cause != "center" else reach < 2e-3


def test_a_battery_that_sags_is_thrust_that_goes_down(logs: dict[str, Log]) -> None:
    drift = only(watch([logs["sag"]], record()))
    assert (drift.cause, drift.steadily) == ("thrust", True)
    assert drift.began_low < 5.0 + REST + 3.0
    assert drift.sizes[0].low < -0.1 < drift.sizes[0].high
    assert "mass that is spread" in drift.sentence


def test_what_was_so_from_the_start_is_judged_by_the_record(logs: dict[str, Log]) -> None:
    drift = only(watch([logs["before"]], record()))
    assert (drift.cause, drift.before) == ("mass", True)
    assert drift.sizes[0].low < 0.1 < drift.sizes[0].high
    # A record that is less sure of its mass and thrust has nothing to object.
    found = watch([logs["before"]], record(sure=False))
    assert not found.alarm
    assert any("tells no uncertainty" in note for note in found.notes)


def test_in_hover_mass_and_thrust_are_not_told_apart(hovers: dict[str, Log]) -> None:
    for name in ("mass", "sag"):
        drift = only(watch([hovers[name]], record()))
        assert drift.cause == "thrust_over_mass"
        assert not drift.told
        assert "Which of both is not told" in drift.sentence
    jump = only(watch([hovers["mass"]], record()))
    assert jump.sizes[0].value == pytest.approx(1.0 / 1.1 - 1.0, abs=0.015)


def test_in_hover_lag_and_dead_time_are_not_watched(hovers: dict[str, Log]) -> None:
    """A pilot's answers to pushes look like another dead time: where nothing else moves, nothing is told of it."""
    found = watch([hovers["lag"]], record())
    assert not found.alarm
    assert {w.cause for w in found.watchable if w.smallest is None} == {"lag", "command_delay"}


def test_a_change_between_two_logs(logs: dict[str, Log], hovers: dict[str, Log]) -> None:
    drift = only(watch([logs["none"], logs["before"]], record()))
    assert (drift.cause, drift.before, drift.log) == ("mass", True, logs["before"].name)
    assert drift.sizes[0].value == pytest.approx(0.1, abs=0.03)


def test_the_battery_s_voltage_is_told_beside_thrust(logs: dict[str, Log]) -> None:
    log = logs["sag"]
    gyro = log.stream("gyro")
    fallen = 12.6 - 1.2 * np.clip((gyro.time - 5.0) / 25.0, 0.0, 1.0)
    with_voltage = replace(log, streams=(*log.streams, replace(gyro, kind="voltage", values=fallen[:, None])))
    assert "The battery's voltage fell by 9" in only(watch([with_voltage], record())).sentence


def emptying(rate: float, sd: float, since: float) -> Vehicle:
    """The record, of flights in which thrust went so."""
    base = record()
    assert base.uncertainty is not None
    return replace(base, uncertainty=replace(base.uncertainty, thrust_drift=ThrustDrift(rate, sd, since)))


def test_what_the_record_s_own_battery_did_is_no_drift(logs: dict[str, Log]) -> None:
    # The flight loses 0.4 % per second from 5 s on, and log(0.9) in all.
    found = watch([logs["sag"]], emptying(-0.0042, 0.0008, 5.0))
    assert not found.alarm
    last = next(row for row in reversed(found.track) if row.name == "thrust_drift")
    assert (last.unit, last.value < -2.0 * last.sd) == ("1/s", True)
    assert any("its battery, and no drift" in note for note in found.notes)
    # A battery that falls by a third of that is no excuse.
    drift = only(watch([logs["sag"]], emptying(-0.0014, 0.0003, 5.0)))
    assert drift.cause in ("thrust", "thrust_over_mass")
    # What jumps is told beside a battery that may fall.
    drift = only(watch([logs["mass"]], emptying(-0.001, 0.001, 16.0)))
    assert (drift.cause, abs(drift.began - (20.0 + REST)) <= 1.0) == ("mass", True)
    assert drift.sizes[0].low < 0.1 < drift.sizes[0].high


def test_the_rate_of_a_fall_is_found_beside_a_first_second_that_is_none_of_it() -> None:
    draw, time = np.random.default_rng(2), np.arange(1.0, 41.0)
    excess = 0.03 - 0.003 * time + draw.normal(0.0, 0.01, 40) + np.where(time < 2.0, 0.2, 0.0)
    rate, sd = flight_rate(time, excess)
    assert abs(rate + 0.003) < 3.0 * sd < 0.0015
    # Too short a flight tells nothing: what is usual is left.
    assert flight_rate(time[:2], excess[:2]) == (0.0, USUAL)


def changed(log: Log, kind: str, values: np.ndarray) -> Log:
    return replace(log, streams=tuple(replace(s, values=values) if s.kind == kind else s for s in log.streams))


def test_what_cannot_be_watched_is_refused(logs: dict[str, Log]) -> None:
    log = logs["none"]
    command = log.stream("motor_command").values
    bare = replace(log, streams=tuple(s for s in log.streams if s.kind != "motor_command"))
    for given, said in (
        ([bare], "holds no motor commands"),
        ([changed(log, "motor_command", 0.0 * command)], "every motor command is 0"),
        ([changed(log, "motor_command", command[:, :3])], "commands 3 motors, and mine has 4 rotors"),
        ([changed(log, "gyro", np.full_like(log.stream("gyro").values, np.nan))], "good samples|usable"),
        ([changed(log, "accelerometer", log.stream("accelerometer").values / 9.81)], "Nothing is told of wrong units"),
        ([], "No log was given"),
    ):
        with pytest.raises(AirworthyError, match=said):
            watch(given, record())
    supply = replace(log.streams[0], kind="voltage", values=np.linspace(16.5, 15.0, len(log.streams[0].time))[:, None])
    with pytest.raises(AirworthyError, match=r"was flown at 15\.750 V, and commands of mine act as they are at 3\.9 V"):
        watch([replace(log, streams=(*log.streams, supply))], replace(record(), command_sag=(0.9, 3.9)))
    with pytest.raises(AirworthyError, match="watching needs 6 s"):
        watch([log], record(), use=[(5.0, 9.0)])
    with pytest.raises(AirworthyError, match="no second of it is usable flight"):
        watch([log], record(), use=[(0.0, 0.5)])
    with pytest.raises(AirworthyError, match="threshold is 0"):
        watch([log], record(), threshold=0.0)
    early, late = (replace(log, name=n, source=replace(log.source, start_ns=t)) for n, t in (("b", 10**18), ("a", 2 * 10**18)))
    with pytest.raises(AirworthyError, match="give logs in order of time"):
        watch([late, early], record())
    base = record()
    uneven = replace(base, rotors=(replace(base.rotors[0], response=vehicle("x500").rotors[0].response), *base.rotors[1:]))
    with pytest.raises(AirworthyError, match="differ in their lags"):
        watch([log], uneven)


def test_missing_samples_are_no_drift(logs: dict[str, Log]) -> None:
    values = logs["none"].stream("gyro").values.copy()
    values[4000:4010] = np.nan
    found = watch([changed(logs["none"], "gyro", values)], record())
    assert not found.alarm


@pytest.mark.slow
def test_a_weak_rotor_in_a_real_flight(data_dir: Path) -> None:
    """From its middle on the log of a real flight gets the commands that the same flight would have asked of a weaker rotor."""
    log = read_log(data_dir / "flights/crazyflie_sysid/log15")
    known = Known((0.027, 0.0003), frame_vehicle("quad_x:0.028", 0.027))
    mine = identify([log], known, quick=True).vehicle
    assert not watch([log], mine).alarm
    rotor, stream = mine.rotors[0], log.stream("motor_command")
    linear, square = rotor.thrust[1] * rotor.speed_max, rotor.thrust[2] * rotor.speed_max**2
    commands, late = stream.values.copy(), stream.time >= 30.0
    asked = (linear * commands + square * commands**2)[late, 1] / 0.85
    commands[late, 1] = (np.sqrt(linear**2 + 4.0 * square * asked) - linear) / (2.0 * square)
    drift = only(watch([changed(log, "motor_command", commands)], mine))
    assert drift.cause == "rotor_2"
    assert abs(drift.began - 30.0) < 1.5
    assert drift.sizes[0].value == pytest.approx(-0.15, abs=0.05)


@pytest.mark.slow
def test_weaker_rotors_in_a_real_flight_with_few_turns_are_no_mass(data_dir: Path) -> None:
    """`log10` steps its thrust and hardly turns: what is less thrust of all must not be told as more mass."""
    logs = [read_log(data_dir / "flights/crazyflie_sysid" / name) for name in ("log10", "log15")]
    mine = identify(logs, Known((0.027, 0.0003), frame_vehicle("quad_x:0.028", 0.027)), quick=True).vehicle
    rotor, stream = mine.rotors[0], logs[0].stream("motor_command")
    linear, square = rotor.thrust[1] * rotor.speed_max, rotor.thrust[2] * rotor.speed_max**2
    commands, late = stream.values.copy(), stream.time >= 0.5 * (stream.time[0] + stream.time[-1])
    asked = (linear * commands + square * commands**2)[late] / 0.9
    commands[late] = (np.sqrt(linear**2 + 4.0 * square * asked) - linear) / (2.0 * square)
    drift = only(watch([changed(logs[0], "motor_command", commands)], mine))
    assert drift.cause == "thrust_over_mass"
    assert drift.sizes[0].low < -0.1 < drift.sizes[0].high + 0.03


def test_chances_go_on_where_floats_end() -> None:
    assert unlikely(3.841, 1) == pytest.approx(-np.log10(0.05), abs=1e-3)
    for dimensions in (1, 2, 3):
        below, above = unlikely(1330.0, dimensions), unlikely(1342.0, dimensions)
        assert 0.0 < above - below < 4.0
        assert above == pytest.approx(below + 12.0 / 2.0 / np.log(10.0), abs=0.02)


# ---- The command -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(logs: dict[str, Log], tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("watched")
    for name in ("none", "mass"):
        write_log(logs[name], made / f"{name}.npz")
    write_vehicle(record(), made / "mine.toml")
    return made


def test_the_command_prints_writes_and_exits(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    out = tmp_path / "rows.csv"
    assert main(["vehicles", "watch", "mass.npz", "--vehicle", "mine.toml", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "What has drifted" in said
    assert "mass (inertia as it was)" in said
    assert "Smallest change that would have shown within 10 s" in said
    rows = list(csv.DictReader(out.read_text().splitlines()))
    last = next(r for r in reversed(rows) if r["name"] == "thrust_over_mass")
    assert float(last["low"]) < np.log(1.0 / 1.1) < float(last["high"])
    assert main(["vehicles", "watch", "mass.npz", "--vehicle", "mine.toml", "--json", "--fail"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["alarm"] is True
    assert found["drifts"][0]["cause"] == "mass"
    assert "track" not in found
    assert main(["vehicles", "watch", "none.npz", "--vehicle", "mine.toml", "--fail"]) == 0
    assert "Nothing has drifted that these logs would show." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["none.npz", "--vehicle", "nobody.toml"], "nobody.toml"),
        (["nothing.npz", "--vehicle", "mine.toml"], "nothing.npz"),
        (["none.npz", "--vehicle", "mine.toml", "--out", "rows.txt"], "expected a table, NAME.csv"),
        (["none.npz", "--vehicle", "mine.toml", "--use", "5"], "--use is '5'; expected START:STOP"),
        (["none.npz", "--vehicle", "mine.toml", "--threshold", "0"], "threshold is 0; expected 2 to 1,000"),
        (["none.npz", "--vehicle", "base_octarotor"], "commands 4 motors, and base_octarotor has 8 rotors"),
    ],
)
def test_mistakes_get_a_sentence(
    folder: Path, argv: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert main(["vehicles", "watch", *argv]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
