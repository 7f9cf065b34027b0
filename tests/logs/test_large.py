"""Logs of hours and of thousands of samples a second: what they take, and that nothing of them is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.logs.large_files import write_blackbox, write_crazyflie, write_ulog
from tests.logs.small_files import ulog_file

from airworthy.logs import flight_segments, log_checks, log_findings, read_log
from airworthy.logs.readers import crazyflie, ulog_streams

FOUR_HOURS = 4.0 * 3600.0
MEMORY_MB = 1000.0
_SHOW = """
import resource, sys
from airworthy.cli.main import main
code = main(["logs", "show", sys.argv[1]])
print("PEAK", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)
sys.exit(code)
"""


def shown(path: Path) -> tuple[str, float]:
    """What `logs show` prints, and the most memory that its process took [MB]."""
    done = subprocess.run([sys.executable, "-c", _SHOW, str(path)], capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr
    text, _, peak = done.stdout.rpartition("PEAK")
    return text, float(peak)


@pytest.mark.slow
def test_four_hours_of_ulog_take_less_than_a_gigabyte(tmp_path: Path) -> None:
    """434 MB: IMU and motors at 250 Hz, attitudes at 125 Hz; read and shown took 2.3 GB."""
    write_ulog(tmp_path / "a.ulg", FOUR_HOURS)
    text, peak = shown(tmp_path / "a.ulg")
    assert peak < MEMORY_MB
    assert "3600000" in text
    assert "1800000" in text
    assert "14389.2 s in 1 parts are usable" in text
    assert "gravity in flight: good. Mean vertical specific force over 14390 s of flight is 9.81" in text
    assert "Stamps of attitude come -0.0" in text or "Stamps of attitude come +0.0" in text
    assert "are kept as these alone" in text


@pytest.mark.slow
def test_four_hours_of_a_crazyflie_take_less_than_a_gigabyte(tmp_path: Path) -> None:
    """151 MB at 250 Hz; read and shown took 1.9 GB."""
    write_crazyflie(tmp_path / "log", FOUR_HOURS, 250.0)
    text, peak = shown(tmp_path / "log")
    assert peak < MEMORY_MB
    assert "3600000" in text
    assert "14389.2 s in 1 parts are usable" in text


def test_the_makers_of_large_logs_make_what_they_say(tmp_path: Path) -> None:
    """Half a minute: so that the tests of hours read flights, and not noise."""
    write_ulog(tmp_path / "a.ulg", 40.0)
    write_crazyflie(tmp_path / "log", 40.0, 250.0)
    for name in ("a.ulg", "log"):
        log = read_log(tmp_path / name)
        assert len(log.stream("gyro").time) == 10000
        assert not log.notes
        checks = {check.name: check for check in log_checks(log)}
        assert checks["gravity at rest"].passed
        assert checks["gravity in flight"].passed
        assert flight_segments(log).usable_time == pytest.approx(29.2, abs=0.05)
        if log.has("attitude"):
            assert checks["gyro against attitude"].value == pytest.approx(1.0, abs=2e-3)


@pytest.mark.parametrize(("write", "module"), [("ulog", ulog_streams), ("crazyflie", crazyflie)])
def test_large_files_keep_streams_and_no_second_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: str, module: object
) -> None:
    path = tmp_path / "log"
    if write == "ulog":
        path.write_bytes(ulog_file())
    else:
        write_crazyflie(path, 12.0, 250.0)
    whole = read_log(path)
    monkeypatch.setattr(module, "LARGE_BYTES", 100)
    lean = read_log(path)
    assert [stream.name for stream in lean.streams] == [stream.name for stream in whole.streams]
    for ours, theirs in zip(lean.streams, whole.streams, strict=True):
        assert np.array_equal(ours.time, theirs.time)
        assert np.array_equal(ours.values, theirs.values, equal_nan=True)
    assert lean.events == whole.events
    assert any("are kept as these alone" in note for note in lean.notes)
    missing = set(whole.raw_series) - set(lean.raw_series)
    assert ("vehicle_attitude.q" if write == "ulog" else "fixedFrequency.gyro.x") in missing
    for name, series in lean.raw_series.items():
        assert np.array_equal(series.values, whole.raw(name).values, equal_nan=series.values.dtype.kind == "f")
        assert series.values.base is None
    if write == "ulog":
        assert "vehicle_status.arming_state" in whole.raw_series


def test_streams_of_one_message_share_their_times(tmp_path: Path) -> None:
    write_crazyflie(tmp_path / "log", 12.0, 250.0)
    log = read_log(tmp_path / "log")
    assert log.stream("gyro").time is log.stream("accelerometer").time
    assert log.stream("gyro").time is log.raw("fixedFrequency.acc.x").time


def test_a_blackbox_at_eight_kilohertz(tmp_path: Path) -> None:
    """Twelve seconds: every stamp of 125 us, and a flight that is found in them."""
    write_blackbox(tmp_path / "a.csv", 12.0, 8000.0)
    log = read_log(tmp_path / "a.csv")
    gyro = log.stream("gyro")
    assert len(gyro.time) == 96000
    assert gyro.quality.rate == pytest.approx(8000.0, rel=1e-9)
    assert gyro.quality.gaps == gyro.quality.backward == gyro.quality.duplicates == 0
    assert gyro.time[-1] == pytest.approx(11.999875, abs=1e-9)
    assert log.stream("motor_command").quality.rate == pytest.approx(8000.0)
    checks = {check.name: check for check in log_checks(log)}
    assert checks["gravity at rest"].passed
    segments = flight_segments(log)
    assert segments.flown[0].start == pytest.approx(10.0, abs=2e-3)
    assert next(f for f in log_findings(log, segments) if f.parameter == "lag and dead time").verdict == "can tell"


@pytest.mark.slow
def test_minutes_of_eight_kilohertz_take_less_than_a_gigabyte(tmp_path: Path) -> None:
    write_blackbox(tmp_path / "a.csv", 180.0, 8000.0)
    text, peak = shown(tmp_path / "a.csv")
    assert peak < MEMORY_MB
    assert "1440000" in text
