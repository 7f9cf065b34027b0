"""Flight logs as flights to be looked at: poses, rotors, events and plots, against the numbers that the files hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.logs.small_files import blackbox_text, crazyflie_file, csv_table, tum_text, ulog_file

from airworthy.core.errors import AirworthyError
from airworthy.core.frames import from_rotation_vector, rotate, to_euler
from airworthy.logs import Log, LogEvent, LogSource, LogStream, ReadOptions, Span, read_log
from airworthy.logs.trajectory import attitudes_at, log_trajectory, values_at
from airworthy.viewer.flights import GROUNDED, RECORDED, STATUS
from airworthy.viewer.logs import LogView, _status, shown_log
from airworthy.viewer.plots import stream_plots
from airworthy.viewer.subjects import load_subject


def saved(folder: Path, name: str, data: bytes) -> Path:
    (folder / name).write_bytes(data)
    return folder / name


def log_of(*streams: LogStream, events: tuple[LogEvent, ...] = ()) -> Log:
    return Log("made", streams, LogSource("made", "", "test"), events)


def turning(time: np.ndarray) -> LogStream:
    """A turn to the left at 0.5 rad/s."""
    return LogStream("attitude", time, from_rotation_vector(np.outer(time, [0.0, 0.0, 0.5])))


def test_attitudes_are_turned_to_the_stamps_of_positions() -> None:
    time = np.arange(11) * 0.1
    place = LogStream("position", time + 0.03, np.outer(time + 0.03, [1.0, 2.0, 3.0]))
    found = log_trajectory(log_of(place, turning(time)))
    assert np.array_equal(found.time, place.time)
    assert np.allclose(to_euler(found.attitude[:-1])[:, 2], 0.5 * place.time[:-1])
    # Beyond the last attitude it holds.
    assert to_euler(found.attitude[-1])[2] == pytest.approx(0.5)
    assert np.allclose(found.velocity, [1.0, 2.0, 3.0])
    assert found.notes == ()


def test_measured_velocities_come_before_differences() -> None:
    time = np.arange(5) * 0.1
    place = LogStream("position", time, np.zeros((5, 3)))
    found = log_trajectory(log_of(place, LogStream("velocity", time, np.ones((5, 3)))))
    assert np.array_equal(found.velocity, np.ones((5, 3)))
    assert found.notes == ("The log holds no attitudes: the vehicle is shown level.",)


def test_a_gyro_alone_turns_and_stays() -> None:
    time = np.arange(101) * 0.01
    gyro = LogStream("gyro", time, np.tile([0.0, 0.0, 0.5], (101, 1)))
    found = log_trajectory(log_of(gyro))
    assert np.allclose(found.attitude, turning(time).values)
    assert not found.position.any()
    assert any("drift" in note for note in found.notes)
    assert any("no positions" in note for note in found.notes)


def test_a_log_without_poses_is_refused() -> None:
    with pytest.raises(AirworthyError, match="holds voltage; poses need positions, attitudes or a gyro"):
        log_trajectory(log_of(LogStream("voltage", np.arange(3.0), np.ones((3, 1)))))


def test_rows_that_miss_a_value_or_come_twice_are_no_poses() -> None:
    time = np.array([0.0, 0.1, 0.1, 0.3, 0.2])
    values = np.outer([0.0, 1.0, 9.0, 3.0, np.nan], np.ones(3))
    found = log_trajectory(log_of(LogStream("position", time, values)))
    assert found.time.tolist() == [0.0, 0.1, 0.3]
    assert found.position[:, 0].tolist() == [0.0, 1.0, 3.0]


def test_values_between_samples() -> None:
    time = np.array([1.0, 2.0])
    line = LogStream("voltage", time, np.array([[10.0], [12.0]]))
    assert values_at(line, np.array([0.5, 1.25, 2.0, 2.5]))[:, 0].tolist()[1:3] == [10.5, 12.0]
    assert np.isnan(values_at(line, np.array([0.5, 2.5]))).all()
    held = LogStream("motor_command", time, np.array([[0.1], [0.2]]), stamp="held")
    assert np.array_equal(values_at(held, np.array([0.5, 1.9, 5.0]))[:, 0], [np.nan, 0.1, 0.2], equal_nan=True)
    assert np.allclose(attitudes_at(turning(np.array([0.0, 1.0])), np.array([0.5]))[0], turning(np.array([0.5])).values[0])
    three = turning(np.array([0.0, 1.0, 2.0]))  # in the last interval as in the first
    assert np.allclose(attitudes_at(three, np.array([1.5]))[0], turning(np.array([1.5])).values[0])


def test_a_ulog_is_shown_with_its_rotors_and_events(tmp_path: Path) -> None:
    path = saved(tmp_path, "a.ulg", ulog_file())
    log = read_log(path)
    flight, note = shown_log(path)
    track = flight.track(0)
    place = log.stream("position")
    assert np.allclose(track.position, place.values, atol=1e-5)
    assert np.allclose(track.times, place.time)
    kinds = {event.kind for event in log.events} - {"message", "parameter"}
    assert {event.label.split()[0] for event in track.events} == {kind.replace("_", " ").split()[0] for kind in kinds}
    assert note.startswith("ULog, ")
    assert "drawn as" in note
    titles = [plot.title for plot in stream_plots(flight.streams)]
    assert "gyro [rad/s]" in titles
    assert "motor command" in titles


def test_a_start_moves_and_turns_the_whole_flight(tmp_path: Path) -> None:
    path = saved(tmp_path, "a.txt", tum_text())
    before, after = shown_log(path)[0].track(0), shown_log(path, LogView(start=(1.0, 2.0, 3.0, 90.0)))[0].track(0)
    assert np.allclose(after.position[0], [1.0, 2.0, 3.0])
    assert np.rad2deg(to_euler(after.attitude[0].astype(float))[2]) == pytest.approx(90.0, abs=1e-3)
    # A turn about the vertical: heights, distances, and what the body sees of its way stay.
    assert np.allclose(np.diff(after.position[:, 2]), np.diff(before.position[:, 2]), atol=1e-6)
    seen = []
    for track in (before, after):
        back = track.attitude[:-1].astype(float) * [-1.0, -1.0, -1.0, 1.0]
        seen.append(rotate(back, np.diff(track.position, axis=0).astype(float)))
    assert np.allclose(seen[0], seen[1], atol=1e-5)
    with pytest.raises(AirworthyError, match=r"start\[0\] is nan; expected a finite number"):
        shown_log(path, LogView(start=(float("nan"), 0.0, 0.0, 0.0)))


def test_a_start_turns_from_the_first_heading(tmp_path: Path) -> None:
    # Heading 30 degrees, flying that way at 2 m/s, and turning to the left by 0.2 rad/s.
    rows = []
    for k in range(10):
        t = 0.05 * k
        _, _, z, w = from_rotation_vector((0.0, 0.0, np.pi / 6 + 0.2 * t))
        rows.append(f"{100.5 + t:.6f} {2 * t * np.cos(np.pi / 6):.9f} {2 * t * np.sin(np.pi / 6):.9f} 1 0 0 {z:.9f} {w:.9f}\n")
    path = saved(tmp_path, "a.txt", "".join(rows).encode())
    track = shown_log(path, LogView(start=(1.0, 2.0, 3.0, 100.0)))[0].track(0)
    times = 0.05 * np.arange(10)
    headings = np.rad2deg(to_euler(track.attitude.astype(float))[:, 2])
    assert np.allclose(headings, 100.0 + np.rad2deg(0.2 * times), atol=1e-3)
    way = np.array([np.cos(np.deg2rad(100.0)), np.sin(np.deg2rad(100.0)), 0.0])
    assert np.allclose(track.position, np.array([1.0, 2.0, 3.0]) + np.outer(2 * times, way), atol=1e-5)
    assert np.allclose(track.velocity, 2 * way, atol=1e-5)


def test_logs_are_told_by_what_they_hold(tmp_path: Path) -> None:
    bare = saved(tmp_path, "log00", crazyflie_file(2))
    subject = load_subject(str(bare))
    assert subject.flight is not None
    assert subject.flight.vehicles[0].name == "cf2x_L250"
    text = saved(tmp_path, "b.csv", blackbox_text())
    assert load_subject(str(text)).flight is not None
    table = saved(tmp_path, "c.csv", csv_table())
    with pytest.raises(AirworthyError, match="logs map"):
        load_subject(str(table))


def test_another_number_of_rotors_is_told(tmp_path: Path) -> None:
    path = saved(tmp_path, "a.ulg", ulog_file())
    count = read_log(path).stream("motor_speed").values.shape[1]
    flight, note = shown_log(path, LogView(vehicle="base_octarotor"))
    assert f"which has 8 rotors where the log tells of {count}: they are not turned" in note
    assert not flight.track(0).rotors.any()


def test_what_belongs_to_logs_is_refused_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match="is no flight log"):
        load_subject("mid_gate", log=LogView(vehicle="carl"))
    with pytest.raises(AirworthyError, match="--map gives a mapping"):
        load_subject(str(saved(tmp_path, "a.ulg", ulog_file())), log=LogView(ReadOptions(mapping={})))


def test_a_row_is_said_to_fly_only_where_a_flight_was_found(tmp_path: Path) -> None:
    time = np.arange(6) * 0.5
    assert _status(time, [Span(0.5, 1.0), Span(2.0, 2.2)]).tolist() == [GROUNDED, 0, 0, GROUNDED, 0, GROUNDED]
    assert _status(time, []).tolist() == [RECORDED] * 6
    # A table of poses alone tells of none: nothing is said of it, and nothing is marked.
    track = shown_log(saved(tmp_path, "a.txt", tum_text()))[0].track(0)
    found = {track.caption(float(t)).rpartition(", ")[2] for t in track.times}
    assert found == {STATUS[int(code)] for code in set(track.status.tolist())}
    assert track.events == ()
