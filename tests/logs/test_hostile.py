"""Logs that lie, stop, restart or break off (spec/identify section 12): a sentence or the right parts, never a guess.

Damage of bytes is in `test_damage`, clocks that go back in `test_segments`, wrong units of forces in `test_checks`, the order
of motors in `test_motor_columns`, logs of hours in `test_large`.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.logs.small_files import blackbox_text, crazyflie_file, ulog_file

from airworthy.core.errors import AssetError
from airworthy.logs import Log, LogSource, LogStream, flight_segments, log_checks, log_findings, read_log

RATE = 250.0


def flight(seconds: float = 20.0, up: tuple[tuple[float, float], ...] = ((2.0, 18.0),)) -> Log:
    """Rest, flights between these times, and rest; commands, speeds, gyro, accelerometer and voltage."""
    time = np.arange(0.0, seconds, 1.0 / RATE)
    flying = np.zeros(len(time), bool)
    for start, stop in up:
        flying |= (time >= start) & (time < stop)
    draw = np.random.default_rng(4)
    push = np.where(flying, 1.5 * np.sin(3.0 * time), 0.0)
    wave = np.where(flying, 0.5, 0.002)[:, None]
    force = np.stack([0.0 * push, 0.0 * push, 9.81 + push], axis=1)
    command = np.where(flying, 0.5 + 0.05 * np.sin(3.0 * time), 0.0)[:, None] * [1.0, 1.02, 0.98, 1.01]
    streams = (
        LogStream("gyro", time, wave * draw.normal(size=(len(time), 3))),
        LogStream(
            "accelerometer",
            time,
            force + wave * draw.normal(size=(len(time), 3)),
        ),
        LogStream("motor_command", time, command, stamp="held"),
        LogStream("motor_speed", time, 2000.0 * np.sqrt(command)),
        LogStream("voltage", time, (16.8 - 0.1 * time)[:, None]),
    )
    return Log("made", streams, LogSource("made", "", "test"))


def changed(log: Log, kind: str, values: np.ndarray, time: np.ndarray | None = None) -> Log:
    stream = log.stream(kind)
    other = replace(stream, values=values, time=stream.time if time is None else time)
    return replace(log, streams=tuple(other if s is stream else s for s in log.streams))


def finding(log: Log, name: str):  # type: ignore[no-untyped-def]
    return next(f for f in log_findings(log, flight_segments(log)) if f.parameter == name)


def check(log: Log, name: str):  # type: ignore[no-untyped-def]
    return next(c for c in log_checks(log) if c.name == name)


# ---- Files -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"ULoh\x01\x12\x35\x01" + bytes(40), "which no format that is read does"),
        (b"\xbc\x03\x00" + bytes(40), "which no format that is read does"),
        (b"\x89MCAQ0\r\n" + bytes(40), "which no format that is read does"),
        (gzip.compress(ulog_file()), "which no format that is read does"),
        (bytes(5000), "which no format that is read does"),
    ],
)
def test_what_is_of_no_format(tmp_path: Path, data: bytes, said: str) -> None:
    (tmp_path / "a.ulg").write_bytes(data)
    with pytest.raises(AssetError, match=said):
        read_log(tmp_path / "a.ulg")


@pytest.mark.parametrize(("make", "header"), [(crazyflie_file, 190), pytest.param(ulog_file, 1100, marks=pytest.mark.slow)])
def test_cut_at_every_byte_of_the_header_and_a_hundred_places(tmp_path: Path, make: object, header: int) -> None:
    data, path = make(), tmp_path / "log"  # type: ignore[operator]
    counts = []
    for at in [*range(1, header), *np.linspace(header, len(data) - 1, 100).astype(int)]:
        path.write_bytes(data[:at])
        try:
            log = read_log(path)
        except AssetError:
            continue
        counts.append(len(log.stream("gyro").time) if log.has("gyro") else 0)
    assert counts == sorted(counts)
    assert len(set(counts)) > 10


def test_an_event_that_is_not_declared_ends_what_is_read(tmp_path: Path) -> None:
    """Its size is not known, and with it not where the next record begins: what came before it stays."""
    data = crazyflie_file()[:-4]
    size = 2 + 8 + 6 * 4 + 2 * 2
    start = data.index(struct.pack("<HQ", 7, 100_000))
    place = start + 3 * size
    data = data[:place] + struct.pack("<HQ", 99, 5) + data[place:]
    (tmp_path / "log").write_bytes(data + struct.pack("<I", zlib.crc32(data)))
    log = read_log(tmp_path / "log")
    assert len(log.stream("gyro").time) == 3
    assert any(f"bytes from byte {place} on are no records" in note for note in log.notes)


def test_the_clock_of_a_blackbox_turns_over(tmp_path: Path) -> None:
    """The counter of 32 bits of microseconds goes on, and a log of an hour and twelve minutes does so once."""
    lines = blackbox_text(rows=40).decode().splitlines(keepends=True)
    head = next(k for k, line in enumerate(lines) if line.startswith("loopIteration")) + 1
    for k, line in enumerate(lines[head:]):
        cells = line.split(",")
        cells[1] = str((2**32 - 10_000 + 500 * k) % 2**32)
        lines[head + k] = ",".join(cells)
    (tmp_path / "b.csv").write_text("".join(lines))
    gyro = read_log(tmp_path / "b.csv").stream("gyro")
    assert gyro.time == pytest.approx(0.0005 * np.arange(40), abs=1e-9)


# ---- Flights -----------------------------------------------------------------------------------------------------------------


def test_two_arm_cycles_are_two_flights() -> None:
    found = flight_segments(flight(60.0, ((5.0, 25.0), (32.0, 55.0))))
    assert [(round(s.start, 1), round(s.stop, 1)) for s in found.flown] == [(5.0, 25.0), (32.0, 55.0)]
    assert [(round(s.start, 1), round(s.stop, 1)) for s in found.usable] == [(5.5, 24.7), (32.5, 54.7)]


def test_a_landing_inside_is_left_out() -> None:
    """A second and a half on the ground, motors idle at a tenth of hover: not a dip, and not flight."""
    log = flight(40.0, ((2.0, 38.0),))
    time, command = log.stream("motor_command").time, log.stream("motor_command").values.copy()
    command[(time > 20.0) & (time < 21.5)] = 0.05
    found = flight_segments(changed(log, "motor_command", command))
    assert len(found.flown) == 2
    assert all(not (s.start < 21.5 and s.stop > 20.0 - 0.3) or s.start >= 21.5 for s in found.usable)


def test_a_log_that_starts_in_the_air() -> None:
    log = flight(30.0, ((-1.0, 25.0),))
    found = flight_segments(log)
    assert found.flown[0].start == 0.0
    assert found.usable[0].start == pytest.approx(0.5, abs=0.01)
    assert check(log, "gravity in flight").passed is None


def test_a_crash_at_the_end_ends_the_flight() -> None:
    log = flight(30.0, ((2.0, 26.0),))
    force = log.stream("accelerometer").values.copy()
    force[int(25.0 * RATE) : int(25.02 * RATE)] = [80.0, 10.0, -30.0]
    found = flight_segments(changed(log, "accelerometer", force))
    assert found.crash == pytest.approx(25.0, abs=0.01)
    assert found.flown[-1].stop < 25.0
    assert found.usable[-1].stop <= 24.71


def test_a_rate_that_changes_is_a_row_of_gaps_and_no_flight() -> None:
    """Ten seconds at 250 Hz, then 50 Hz: steps of five periods are gaps, and are told once each."""
    log = flight(20.0, ((1.0, 19.0),))
    for kind in ("gyro", "accelerometer"):
        stream = log.stream(kind)
        kept = (stream.time < 10.0) | (np.arange(len(stream.time)) % 5 == 0)
        log = changed(log, kind, stream.values[kept], stream.time[kept])
    assert log.stream("gyro").quality.rate == pytest.approx(RATE)
    found = flight_segments(log)
    assert found.usable[-1].stop <= 10.05
    assert any("gap of 20 ms in gyro" in s.reason for s in found.rejected)


def test_drop_outs_of_119_ms_end_parts() -> None:
    log = flight(20.0, ((1.0, 19.0),))
    stream = log.stream("gyro")
    kept = (stream.time < 8.0) | (stream.time > 8.119)
    found = flight_segments(changed(log, "gyro", stream.values[kept], stream.time[kept]))
    assert len(found.usable) == 2
    assert any(s.reason.startswith("gap of 1") and s.reason.endswith("ms in gyro") for s in found.rejected)


def test_equal_stamps_throughout_are_no_flight() -> None:
    log = flight()
    for kind in ("gyro", "accelerometer", "motor_command", "motor_speed", "voltage"):
        log = changed(log, kind, log.stream(kind).values, np.zeros(len(log.stream(kind).time)))
    assert log.stream("gyro").quality.rate == 0.0
    assert log.stream("gyro").quality.duplicates == len(log.stream("gyro").time) - 1
    found = flight_segments(log)
    assert found.usable == ()
    assert log_findings(log, found)[0].reason == "no second of it is usable flight"
    assert check(log, "gravity at rest").passed is None


def test_a_gyro_at_full_scale_spoils_its_part() -> None:
    log = flight(20.0, ((1.0, 19.0),))
    time, rate = log.stream("gyro").time, log.stream("gyro").values.copy()
    for start in (6.0, 12.0):
        rate[(time >= start) & (time < start + 0.1), 1] = np.radians(1961.0)
    log = changed(log, "gyro", rate)
    assert log.stream("gyro").quality.saturated > 0.0
    found = flight_segments(log)
    assert [s.reason for s in found.rejected].count("saturated gyro") == 2
    assert len(found.usable) == 3


def test_commands_at_their_end_two_fifths_of_the_time() -> None:
    log = flight(20.0, ((0.0, 20.0),))
    time, command = log.stream("motor_command").time, log.stream("motor_command").values.copy()
    command[(time % 5.0) < 2.0] = 1.0
    found = flight_segments(changed(log, "motor_command", command))
    assert found.usable_time == pytest.approx(12.0, abs=0.5)
    assert [s.reason for s in found.rejected].count("saturated command") == 4


# ---- Channels and units ------------------------------------------------------------------------------------------------------


def test_speeds_that_are_measured() -> None:
    assert finding(flight(), "thrust over rotor speed").verdict == "can tell"


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda w: w * [1, 0, 1, 1], "speed of motor 2 is always 0"),
        (lambda w: w * [1, 1, 0.5, 1], "speed of motor 3 is half of the others'"),
        (lambda w: np.where([False, False, False, True], 1500.0, w), "speed of motor 4 never changes"),
        (lambda w: w * 60.0 / (2.0 * np.pi), "which are rpm"),
        (
            lambda w: np.where((np.arange(len(w)) > 2500)[:, None] & [True, False, False, False], 3.0, w),
            "motor 1 stops at 10.0",
        ),
    ],
)
def test_speeds_that_do_not_measure(damage: object, said: str) -> None:
    log = flight()
    found = finding(changed(log, "motor_speed", damage(log.stream("motor_speed").values)), "thrust over rotor speed")  # type: ignore[operator]
    assert found.verdict == "partly"
    assert said in found.reason


def test_a_voltage_that_never_changes_was_not_measured() -> None:
    log = flight()
    found = finding(changed(log, "voltage", np.full((len(log.stream("voltage").time), 1), 3.7)), "battery")
    assert found.verdict == "cannot tell"
    assert "constant (3.70 V)" in found.reason
    assert finding(log, "battery").verdict == "can tell"


def test_frd_that_is_named_flu() -> None:
    log = flight()
    flipped = changed(log, "accelerometer", log.stream("accelerometer").values * [1.0, -1.0, -1.0])
    found = check(flipped, "gravity at rest")
    assert found.passed is False
    assert "FRD named FLU" in found.said
    assert check(log, "gravity at rest").passed


def test_milliseconds_that_are_named_microseconds() -> None:
    """250 Hz are then 250 kHz; the other way round everything is too slow, which the advice tells."""
    log = flight()
    wrong = replace(log, streams=tuple(replace(s, time=1e-3 * s.time) for s in log.streams))
    found = check(wrong, "stamps")
    assert found.passed is False
    assert "unit of its time is wrong" in found.said
    assert check(log, "stamps").passed
