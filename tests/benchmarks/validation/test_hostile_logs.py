"""Hostile logs (specification identify, 12) for `validate` and `identify`: one sentence or a correct result, no trace, no hang.

Damage of files and of every byte is in `tests/logs`; here the same logs reach a vehicle.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.benchmarks.validation.test_open_loop import record
from tests.logs.small_files import crazyflie_file, ulog_file
from tests.vehicles.flown_logs import changed, fly, quad

from airworthy.benchmarks import LogValidation, ValidateOptions, validate_logs
from airworthy.benchmarks.validation.open_loop.judgement import judged_row
from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError
from airworthy.logs import Log, LogStream, write_log
from airworthy.vehicles import Identified, Known, identify

TRUTH = quad()
KNOWN = Known(mass=(TRUTH.mass, 1e-4), vehicle=TRUTH.known())
QUICK = ValidateOptions(windows=40)


@pytest.fixture(scope="module")
def flown() -> Log:
    return fly(TRUTH, 8.0)


def validated(*logs: Log) -> LogValidation:
    return validate_logs(logs, record(TRUTH), QUICK)


def identified(*logs: Log) -> Identified:
    return identify(logs, KNOWN, quick=True)


def refused(said: str, *logs: Log) -> None:
    """Both refuse, with the same kind of sentence."""
    for judge in (validated, identified):
        with pytest.raises(AirworthyError, match=said) as caught:
            judge(*logs)
        assert "\n" not in str(caught.value)


def sound(found: LogValidation) -> None:
    """A result without a number that is none."""
    for row in found.rows:
        assert row.count > 0
        for estimate in row.rms.values():
            assert math.isfinite(estimate.value)


# ---- Files -------------------------------------------------------------------------------------------------------------------

FILES: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "wrong magic": lambda: b"ULoh\x01\x12\x35\x01" + bytes(400),
    "zeros": lambda: bytes(5000),
    "header of a Crazyflie log, cut": lambda: crazyflie_file()[:40],
    "Crazyflie log, too short": crazyflie_file,
    "Crazyflie log, changed": lambda: crazyflie_file()[:-30] + bytes(30),
    "ULog, cut": lambda: ulog_file()[: len(ulog_file()) // 2],
    "ULog, without motors that turn": ulog_file,
    "gzip bomb": lambda: gzip.compress(bytes(10_000_000)),
    "zip that is none": lambda: b"PK\x03\x04 not really",
}


@pytest.mark.parametrize("name", FILES)
def test_files_give_one_sentence(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / ("a.npz" if "zip" in name else "a.ulg" if "ULog" in name else "a.log")
    path.write_bytes(FILES[name]())
    for argv in (
        ["validate", str(path), "--vehicle", "cf2x_L250", "--out", str(tmp_path / "out")],
        ["vehicles", "identify", str(path), "--mass", "0.027+-0.0003", "--frame", "quad_x:0.028"],
    ):
        assert main(argv) == 2
        said = capsys.readouterr().err.strip()
        assert said
        assert "Traceback" not in said
        assert len(said.splitlines()) == 1
    assert not (tmp_path / "out" / "report.html").exists()


@pytest.mark.slow
def test_a_name_that_is_not_ascii(flown: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "Flüg \N{AIRPLANE}.npz"
    write_log(flown, path)
    argv = ["validate", str(path), "--vehicle", "cf2x_L250", "--windows", "20", "--out", str(tmp_path / "out")]
    assert main(argv) == 0
    assert "Verdict:" in capsys.readouterr().out
    assert "Flüg \N{AIRPLANE}" in (tmp_path / "out" / "report.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "No vehicle is named that could explain the logs"),
        (["--vehicle", "no_such"], "no_such"),
        (["--vehicle", "cf2x_L250", "--use", "5"], "--use is '5'; expected START:STOP"),
        (["--vehicle", "cf2x_L250", "--use", "0:1"], "no second of it is usable flight"),
        (["--vehicle", "cf2x_L250", "--feed", "speeds"], "cannot feed rotor speeds: no rotor speed was measured"),
        (["--vehicle", "cf2x_L250", "--data", "."], "--data belongs to the case of the reference files"),
        (["--vehicle", "cf2x_L250", "--windows", "-3"], "windows"),
    ],
)
def test_mistakes_on_the_command_line(
    flown: Log, argv: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "flown.npz"
    write_log(flown, path)
    assert main(["validate", str(path), *argv, "--out", str(tmp_path / "out")]) == 2
    err = capsys.readouterr().err.strip()
    assert said in err
    assert "Traceback" not in err


def test_options_of_logs_without_a_log_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--vehicle", "cf2x_L250"]) == 2
    assert "--vehicle is about logs, and none was named" in capsys.readouterr().err


# ---- Clocks ------------------------------------------------------------------------------------------------------------------


def timed(log: Log, change: Callable[[np.ndarray], np.ndarray]) -> Log:
    return replace(log, streams=tuple(replace(s, time=change(s.time)) for s in log.streams))


def test_a_clock_that_starts_anew(flown: Log) -> None:
    found = validated(restarted(flown))
    sound(found)
    # Rotor states are guessed where commands begin anew, and right five lags and a dead time later.
    anew = found.windows.start >= 7.0
    assert anew.any()
    assert found.windows.start[anew].min() > 7.0 + 5.0 * TRUTH.lag + TRUTH.delay
    assert found.errors["rate"]["vehicle"].max() < 0.03
    assert found.word == "flyable"
    assert judged_row(found.rows, "rate").skill["vehicle, trimmed"].low > 0.9  # type: ignore[union-attr]
    assert any("Commands begin anew once" in note and ": 0.3 s behind" in note for note in found.notes)


def test_errors_behind_lost_samples_are_those_of_any_window(flown: Log) -> None:
    time = flown.stream("gyro").time
    keep = np.abs(time - 6.0) > 0.15
    found = validated(
        replace(flown, streams=tuple(replace(s, time=s.time[keep], values=s.values[keep]) for s in flown.streams))
    )
    sound(found)
    assert (found.windows.start > 6.15).any()
    assert found.errors["rate"]["vehicle"].max() < 0.03
    assert any("Commands begin anew once" in note for note in found.notes)


def test_stamps_that_come_twice(flown: Log) -> None:
    found = validated(timed(flown, lambda t: np.round(t / 0.004) * 0.004))
    sound(found)


def test_stamps_that_are_all_equal(flown: Log) -> None:
    refused("no second of it is usable flight|good samples|wrong", timed(flown, lambda t: np.full_like(t, 3.0)))


def test_stamps_in_another_unit_of_time(flown: Log) -> None:
    # Milliseconds taken for seconds: 0.5 Hz; microseconds' inverse: 500 kHz.
    refused("no second of it|no flight|good samples|Hz|usable", timed(flown, lambda t: 1e-3 * t))


def test_drop_outs_of_119_ms(flown: Log) -> None:
    keep = np.ones(len(flown.stream("gyro").time), bool)
    for start in (3.0, 5.0, 8.2):
        at = int(start * 500)
        keep[at : at + 60] = False
    cut = replace(flown, streams=tuple(replace(s, time=s.time[keep], values=s.values[keep]) for s in flown.streams))
    found = validated(cut)
    sound(found)
    assert found.word == "flyable"
    assert len(found.flights[0].segments.usable) > 1
    for start in found.windows.start:
        assert not any(start < gap < start + 0.5 for gap in (3.06, 5.06, 8.26))


def test_samples_that_are_missing(flown: Log) -> None:
    gyro = flown.stream("gyro").values.copy()
    gyro[2000:2010] = np.nan
    sound(validated(changed(flown, "gyro", values=gyro)))


def test_a_log_that_starts_in_the_air(flown: Log) -> None:
    late = replace(flown, streams=tuple(s.between(4.0, np.inf) for s in flown.streams))
    late = timed(late, lambda t: t - 4.0)
    found = validated(late)
    sound(found)
    assert found.word == "flyable"


def test_two_flights_in_a_log(flown: Log) -> None:
    end = flown.stream("gyro").time[-1] + 0.002
    twice = replace(
        flown,
        streams=tuple(
            replace(s, time=np.concatenate([s.time, s.time + end]), values=np.concatenate([s.values, s.values]))
            for s in flown.streams
        ),
    )
    found = validated(twice)
    sound(found)
    assert len(found.flights[0].segments.usable) == 2
    assert found.word == "flyable"


# ---- Sensors and motors ------------------------------------------------------------------------------------------------------


def test_a_crash_at_the_end(flown: Log) -> None:
    force = flown.stream("accelerometer").values.copy()
    force[-150:] += 90.0
    found = validated(changed(flown, "accelerometer", values=force))
    sound(found)
    assert found.flights[0].segments.crash is not None
    assert found.windows.start.max() + 0.5 < found.flights[0].segments.crash


def test_a_gyro_at_its_end(flown: Log) -> None:
    gyro = flown.stream("gyro").values.copy()
    gyro[2500:2550, 0] = gyro[3500:3550, 0] = 34.2
    found = validated(changed(flown, "gyro", values=gyro))
    sound(found)
    for start in (5.0, 7.0):
        assert not ((found.windows.start < start + 0.1) & (found.windows.start + 0.5 > start)).any()


def test_commands_at_their_end_for_much_of_the_time(flown: Log) -> None:
    command = flown.stream("motor_command").values.copy()
    for start in range(1500, 4500, 1000):
        command[start : start + 400] = 1.0
    found = validated(changed(flown, "motor_command", values=command))
    sound(found)
    for start in (3.0, 5.0, 7.0):
        assert not ((found.windows.start < start + 0.8) & (found.windows.start + 0.5 > start)).any()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda s: np.column_stack([0.0 * s[:, 0], s[:, 1:]]), "speed of motor 1 is always 0"),
        (lambda s: np.column_stack([0.0 * s[:, 0] + 600.0, s[:, 1:]]), "speed of motor 1 never changes"),
        (lambda s: np.column_stack([0.5 * s[:, 0], s[:, 1:]]), "speed of motor 1 is half of the others'"),
        (lambda s: s * 60.0 / (2.0 * np.pi) * 3.0, "which are rpm"),
        (lambda s: s[:, :3], "it has speeds of 3 motors"),
    ],
)
def test_speeds_that_were_not_measured_are_not_followed(
    flown: Log, spoil: Callable[[np.ndarray], np.ndarray], said: str
) -> None:
    command = flown.stream("motor_command")
    speeds = LogStream("motor_speed", command.time, spoil(1000.0 * command.values))
    found = validated(replace(flown, streams=(*flown.streams, speeds)))
    assert any("Rotors follow the logged commands" in note and said in note for note in found.notes)
    assert found.word == "flyable"


def test_a_motor_that_failed(flown: Log) -> None:
    command = flown.stream("motor_command")
    speed = 1000.0 * command.values.copy()
    speed[4200:, 0] = 0.0
    found = validated(replace(flown, streams=(*flown.streams, LogStream("motor_speed", command.time, speed))))
    assert any("motor 1 stops at" in note for note in found.notes)
    # It did not fail in truth: commands explain the flight.
    assert found.word == "flyable"


@pytest.mark.parametrize("factor", [1.0 / 9.81, 3.28, 0.936, 208.0])
def test_forces_in_other_units(flown: Log, factor: float) -> None:
    force = flown.stream("accelerometer").values * factor
    refused("gravity|in g|ft/s|counts|expected", changed(flown, "accelerometer", values=force))


def test_axes_that_are_frd(flown: Log) -> None:
    turned = flown
    for kind in ("gyro", "accelerometer"):
        turned = changed(turned, kind, values=flown.stream(kind).values * np.array([1.0, -1.0, -1.0]))
    refused("down|FRD|expected|gravity", turned)


def test_rates_in_degrees_explain_nothing(flown: Log) -> None:
    gyro = flown.stream("gyro").values * 180.0 / np.pi
    with pytest.raises(AirworthyError, match="which none measures: its rates are in deg/s"):
        validated(changed(flown, "gyro", values=gyro))
    # Slower ones could be rates.
    found = validated(changed(flown, "gyro", values=0.5 * gyro))
    sound(found)
    assert found.word == "do not trust"


def test_commands_in_microseconds(flown: Log) -> None:
    command = 1000.0 + 1000.0 * flown.stream("motor_command").values
    refused("usable", changed(flown, "motor_command", values=command))


def test_motors_in_another_order(flown: Log) -> None:
    command = flown.stream("motor_command").values[:, [2, 0, 3, 1]]
    found = validated(changed(flown, "motor_command", values=command))
    assert any("the log has columns" in note for note in found.notes)
    assert found.word == "flyable"


def test_another_number_of_motors(flown: Log) -> None:
    command = flown.stream("motor_command").values
    refused("4 rotors", changed(flown, "motor_command", values=np.concatenate([command, command[:, :2]], axis=1)))


def test_no_gyro_and_no_commands(flown: Log) -> None:
    without = {
        kind: replace(flown, streams=tuple(s for s in flown.streams if s.kind != kind)) for kind in ("gyro", "motor_command")
    }
    refused("gyro", without["gyro"])
    refused("motor commands", without["motor_command"])


def test_a_wind_that_pushes(flown: Log) -> None:
    force = flown.stream("accelerometer").values.copy()
    force[1100:] += np.array([2.5, -1.5, 0.0])
    found = validated(changed(flown, "accelerometer", values=force))
    sound(found)
    assert found.word == "flyable"


def test_a_touch_of_the_ground(flown: Log) -> None:
    force, gyro = (flown.stream(kind).values.copy() for kind in ("accelerometer", "gyro"))
    force[2500:2520, 2] += 20.0
    gyro[2500:] += np.where(np.arange(len(gyro) - 2500)[:, None] < 100, 3.0, 0.0)
    found = validated(changed(changed(flown, "accelerometer", values=force), "gyro", values=gyro))
    sound(found)
    # It stands out among the worst.
    worst = found.windows.start[found.worst(6)]
    assert ((worst > 4.3) & (worst < 5.3)).any()


def test_a_blackbox_at_8_khz(flown: Log) -> None:
    time = np.arange(0.0, flown.stream("gyro").time[-1], 1.0 / 8000.0)
    held = np.searchsorted(flown.stream("motor_command").time, time, side="right") - 1
    streams = []
    for s in flown.streams:
        between = np.stack([np.interp(time, s.time, column) for column in s.values.T], axis=1)
        streams.append(replace(s, time=time, values=s.values[held] if s.kind == "motor_command" else between))
    found = validated(replace(flown, streams=tuple(streams)))
    sound(found)
    assert found.word == "flyable"


# ---- Vehicles that change ----------------------------------------------------------------------------------------------------


def heavier(log: Log, factor: float, since: float = 0.0) -> Log:
    """As if the mass had grown: force and turns at like commands fall."""
    stream = log.stream("accelerometer")
    flying = (stream.time > max(since, 2.0))[:, None]
    return changed(log, "accelerometer", values=np.where(flying, stream.values / factor, stream.values))


def test_a_payload_that_is_dropped(flown: Log) -> None:
    log = heavier(flown, 1.12, since=6.0)
    found = validated(log)
    assert any("Lift at like commands changes within a flight" in note for note in found.notes)
    assert any("changes within a flight" in note for note in identified(log).notes)


@pytest.mark.slow
def test_a_propeller_between_flights_is_told(flown: Log) -> None:
    logs = (flown, replace(heavier(flown, 1.1), name="other"))
    assert any("changes between flights" in note for note in validated(*logs).notes)
    assert any("changes between flights" in note for note in identified(*logs).notes)


def test_two_vehicles_by_mass(flown: Log) -> None:
    refused("these logs are not of one vehicle", flown, replace(heavier(flown, 1.5), name="other"))


def test_two_vehicles_by_order(flown: Log) -> None:
    command = flown.stream("motor_command").values[:, [2, 0, 3, 1]]
    refused("in the order", flown, replace(changed(flown, "motor_command", values=command), name="other"))


def test_logs_with_and_without_speeds(flown: Log) -> None:
    command = flown.stream("motor_command")
    speeds = LogStream("motor_speed", command.time, 1000.0 * command.values)
    with pytest.raises(AirworthyError, match="Some logs have measured rotor speeds and others have not"):
        validated(flown, replace(flown, streams=(*flown.streams, speeds), name="other"))


def test_a_flight_that_is_too_short_says_so() -> None:
    found = validated(fly(TRUTH, 2.6))
    sound(found)
    assert "Too few seconds are judged to tell anything from chance" in found.said


@pytest.mark.slow
def test_a_log_of_hours(flown: Log) -> None:
    """Three hours: what is judged is bounded, and said."""
    import resource

    time = np.arange(0.0, 3.0 * 3600.0, 0.01)
    one = {s.kind: s.values[1500:4500:5] for s in flown.streams}
    count = -(-len(time) // 600)
    streams = tuple(
        LogStream(kind, time, np.tile(values, (count, 1))[: len(time)], stamp="held" if kind == "motor_command" else "instant")
        for kind, values in one.items()
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = validate_logs([replace(flown, streams=streams)], record(TRUTH), ValidateOptions(windows=200))
    sound(found)
    assert any("The first 600 of" in note for note in found.notes)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_000_000


# ---- The same for a fit ------------------------------------------------------------------------------------------------------


def crashed(log: Log) -> Log:
    force = log.stream("accelerometer").values.copy()
    force[-150:] += 90.0
    return changed(log, "accelerometer", values=force)


def touched(log: Log) -> Log:
    force = log.stream("accelerometer").values.copy()
    force[2500:2520, 2] += 20.0
    return changed(log, "accelerometer", values=force)


def windy(log: Log) -> Log:
    force = log.stream("accelerometer").values.copy()
    force[1100:] += np.array([2.5, -1.5, 0.0])
    return changed(log, "accelerometer", values=force)


def restarted(log: Log) -> Log:
    return timed(log, lambda t: np.where(t < 7.0, t, t - 1.0))


def dropped(log: Log) -> Log:
    keep = np.ones(len(log.stream("gyro").time), bool)
    keep[1500:1560] = keep[2500:2560] = False
    return replace(log, streams=tuple(replace(s, time=s.time[keep], values=s.values[keep]) for s in log.streams))


@pytest.mark.parametrize(
    "spoil",
    [
        *(pytest.param(spoil, marks=pytest.mark.slow) for spoil in (crashed, touched, windy, dropped)),
        lambda log: timed(log, lambda t: np.where(t < 7, t, t - 1)),
    ],
)
def test_a_fit_to_what_is_left_is_right(flown: Log, spoil: Callable[[Log], Log]) -> None:
    found = identified(spoil(flown))
    assert found.value("lag").value == pytest.approx(TRUTH.lag, rel=0.15)
    assert found.value("inertia_xx").value == pytest.approx(TRUTH.inertia[0], rel=0.15)
    for value in (*found.values, *found.sensor):
        assert math.isfinite(value.value)
        assert math.isfinite(value.sd)


def test_rates_in_degrees_are_refused_by_both(flown: Log) -> None:
    streams = tuple(replace(s, values=np.degrees(s.values) if s.name == "gyro" else s.values) for s in flown.streams)
    refused("its rates are in deg/s", replace(flown, streams=streams))


def test_a_report_that_cannot_be_written_is_told_before_the_fit(
    flown: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("no folder")
    log = write_log(flown, tmp_path / "flown.npz")
    assert main(["vehicles", "identify", str(log), "--frame", "quad_x:0.1", "--report", str(tmp_path / "file")]) == 2
    said = capsys.readouterr().err
    assert str(tmp_path / "file") in said
    assert "Traceback" not in said
