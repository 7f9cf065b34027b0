"""Parts of a log by motion alone, clocks that go back, and what else ends a part."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.logs.small_files import ulog_file

from airworthy.cli.main import main
from airworthy.core.errors import AssetWarning
from airworthy.logs import Log, LogSource, LogStream, ReadOptions, flight_segments, log_checks, read_log, write_log

RATE = 100.0


def lying(seconds: float = 30.0) -> Log:
    """A sensor on a table, its position known within a millimetre: noise alone."""
    draw, count = np.random.default_rng(1), int(seconds * RATE)
    time = np.arange(count) / RATE
    streams = (
        LogStream("gyro", time, draw.normal(0.0, 0.002, (count, 3))),
        LogStream("accelerometer", time, draw.normal([0.0, 0.0, 9.81], 0.02, (count, 3))),
        LogStream("position", time, draw.normal(0.0, 0.001, (count, 3))),
    )
    return Log("a", streams, LogSource("a", "", "test"))


def lifted(log: Log, start: float, stop: float, turning: float = 0.3) -> Log:
    """The same, carried up to 2 m within a second from `start`, down again before `stop`, its gyro turning to and fro."""
    time = log.stream("gyro").time
    up = np.clip(np.minimum(time - start, stop - time), 0.0, 1.0)
    gyro, force, place = log.streams
    rocking = turning * (up > 0.0) * np.sin(20.0 * time)
    return replace(
        log,
        streams=(
            replace(gyro, values=gyro.values + rocking[:, None]),
            force,
            replace(place, values=place.values + 2.0 * up[:, None] * [0.0, 0.0, 1.0]),
        ),
    )


def test_a_sensor_on_a_table_does_not_fly() -> None:
    found = flight_segments(lying())
    assert found.flown == ()
    assert found.told_by == "motion"


def test_positions_that_are_all_missing_tell_nothing() -> None:
    """Or all before the first sample of the gyro: found by damaged files."""
    log = lifted(lying(), 10.25, 20.25)
    gyro, force, place = log.streams
    for missing in (
        replace(place, values=np.full_like(place.values, np.nan)),
        replace(place, time=place.time - 100.0),
        replace(place, time=place.time[:0], values=place.values[:0]),
    ):
        found = flight_segments(replace(log, streams=(gyro, force, missing)))
        # The gyro still tells motion, the height nothing.
        assert found.told_by == "motion"
        assert len(found.flown) == 1


def test_motion_tells_flight() -> None:
    (flown,) = flight_segments(lifted(lying(), 10.25, 20.25)).flown
    # Within the blocks of a second that motion is judged over.
    assert 9.25 < flown.start <= 10.25
    assert 20.24 <= flown.stop < 21.25


def test_a_still_hover_is_flight() -> None:
    """Between climb and descent nothing but noise: two metres above the table."""
    (flown,) = flight_segments(lifted(lying(), 10.0, 20.0, turning=0.0)).flown
    assert flown.start <= 10.0
    assert flown.stop >= 19.9


def test_a_rest_between_two_flights_is_none() -> None:
    log = lying()
    for start, stop in ((5.0, 10.0), (20.0, 25.0)):
        log = lifted(log, start, stop)
    assert len(flight_segments(log).flown) == 2


def test_poses_alone_need_motion() -> None:
    log = lying()
    assert flight_segments(replace(log, streams=log.streams[2:])).flown == ()
    moved = lifted(log, 10.0, 20.0)
    assert len(flight_segments(replace(moved, streams=moved.streams[2:])).flown) == 1


def stepped_back(by: float, rows: int = 3000) -> Log:
    """A flight throughout, whose clock goes back at 15 s."""
    time = np.arange(rows) / RATE
    time[rows // 2 :] -= by
    draw = np.random.default_rng(2)
    streams = (
        LogStream("gyro", time, draw.normal(0.0, 0.3, (rows, 3))),
        LogStream("accelerometer", time, draw.normal([0.0, 0.0, 9.81], 0.3, (rows, 3))),
        LogStream("motor_command", time, np.full((rows, 4), 0.5), stamp="held"),
    )
    return Log("a", streams, LogSource("a", "", "test"))


def test_usable_parts_end_where_a_clock_goes_back() -> None:
    found = flight_segments(stepped_back(3.0))
    assert next(s.reason for s in found.rejected if "clock" in s.reason) == "clock back by 2990 ms in gyro"
    first, second = found.usable
    # 12.00 to 14.99 s are there twice.
    assert first.stop == pytest.approx(11.99)
    assert second.start == pytest.approx(15.0)


def test_streams_that_go_back_are_not_good() -> None:
    log = stepped_back(3.0)
    assert log.stream("gyro").quality.backward == 1
    found = {check.name: check for check in log_checks(log)}
    assert found["stamps"].passed is False
    assert "gyro (1 times)" in found["stamps"].said
    assert not any(check.passed for check in found.values())
    assert next(c for c in log_checks(stepped_back(0.0)) if c.name == "stamps").passed


def test_held_commands_of_a_clock_that_goes_back() -> None:
    """Stamps 0, 2, 1: at 1.5 s the command of 1 s holds."""
    from airworthy.logs.segments import command_at

    stream = LogStream("motor_command", np.array([0.0, 2.0, 1.0]), np.array([[0.1], [0.3], [0.2]]))
    assert command_at(Log("a", (stream,), LogSource("a", "", "t")), np.array([0.5, 1.5, 2.5])).tolist() == [0.1, 0.2, 0.3]


@pytest.fixture
def jumping(tmp_path: Path) -> tuple[Path, Path]:
    """A table whose stamps go back once, and come twice once, and its mapping."""
    stamps = [0, 10, 20, 30, 30, 25, 40, 50]
    (tmp_path / "t.csv").write_text("t,v\n" + "".join(f"{t},{k}\n" for k, t in enumerate(stamps)))
    (tmp_path / "m.toml").write_text('voltage = {columns = ["v"], time = "t", time_unit = "ms"}\n')
    return tmp_path / "t.csv", tmp_path / "m.toml"


def test_show_tells_of_stamps(jumping: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "show", str(jumping[0]), "--map", str(jumping[1])]) == 0
    said = capsys.readouterr().out
    assert (
        "In voltage stamps go back 1 times (first by 0.005 s, at 0.03 s) and 1 stamps are those of the sample before." in said
    )
    assert "stamps: WRONG" in said
    head, row = (line.split() for line in said.splitlines() if line.startswith(("stream", "voltage")))
    assert head[-6:] == ["back", "twice", "missing", "[%]", "stamp", "of"]
    assert row[-5:] == ["1", "1", "0", "instant", "v"]


@pytest.mark.parametrize("kind", ["csv", "parquet", "npz", "mcap"])
def test_conversions_sort_and_tell(jumping: tuple[Path, Path], tmp_path: Path, kind: str) -> None:
    log = read_log(jumping[0], ReadOptions(mapping=jumping[1]))
    if kind == "npz":
        (path,) = write_log(log, tmp_path / "a.npz")
        assert read_log(path).stream("voltage").values[:, 0].tolist() == list(range(8))
        return
    with pytest.warns(AssetWarning, match="stamps of voltage go back, and samples are written in the order"):
        path, *mapping = write_log(log, tmp_path / f"a.{kind}")
    back = read_log(path, ReadOptions(mapping=mapping[0]) if mapping else None)
    assert back.stream("voltage").values[:, 0].tolist() == [0, 1, 2, 5, 3, 4, 6, 7]
    assert np.allclose(back.stream("voltage").time, [0.0, 0.01, 0.02, 0.025, 0.03, 0.03, 0.04, 0.05])


def test_what_told_flight_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.ulg").write_bytes(ulog_file(samples=600))
    assert main(["logs", "show", str(tmp_path / "a.ulg")]) == 0
    assert "s, by its motor commands" in capsys.readouterr().out
