"""Streams of one device stay together in messages; those of two are not mixed, and none is made up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.logs import Log, LogSource, LogStream, read_log, write_log

TIME = np.arange(5) * 0.1
TURN = np.array([0.0, 0.0, np.sin(0.3), np.cos(0.3)])
OTHER = np.array([np.sin(0.2), 0.0, 0.0, np.cos(0.2)])


def constant(kind: str, *row: float, label: str = "", shift: float = 0.0) -> LogStream:
    return LogStream(kind, TIME + shift, np.tile(row, (len(TIME), 1)), label=label)


def written(folder: Path, *streams: LogStream) -> Log:
    (path,) = write_log(Log("a", streams, LogSource("a", "", "test", start_ns=10**9)), folder / "a.mcap")
    return read_log(path)


def by_topic(log: Log, kind: str) -> dict[str, list[float]]:
    return {stream.origin: stream.values[0].tolist() for stream in log.of_kind(kind)}


def test_each_battery_has_its_own_current(tmp_path: Path) -> None:
    streams = [constant("voltage", 16.0), constant("voltage", 12.0, label="1")]
    streams += [constant("current", 5.0), constant("current", 2.0, label="1")]
    log = written(tmp_path, *streams)
    assert by_topic(log, "voltage") == {"/battery": [16.0], "/battery/1": [12.0]}
    assert by_topic(log, "current") == {"/battery": [5.0], "/battery/1": [2.0]}


def test_a_battery_without_a_current_has_none(tmp_path: Path) -> None:
    log = written(tmp_path, constant("voltage", 16.0), constant("voltage", 12.0, label="1"), constant("current", 5.0))
    assert by_topic(log, "voltage") == {"/battery": [16.0], "/battery/1": [12.0]}
    assert by_topic(log, "current") == {"/battery": [5.0]}


def test_a_current_alone_is_kept(tmp_path: Path) -> None:
    log = written(tmp_path, constant("voltage", 16.0), constant("current", 5.0, shift=0.05))
    assert by_topic(log, "voltage") == {"/battery": [16.0]}
    assert by_topic(log, "current") == {"/battery_current": [5.0]}
    assert log.stream("current").time[0] - log.stream("voltage").time[0] == pytest.approx(0.05)


def test_each_position_has_its_own_attitude(tmp_path: Path) -> None:
    streams = [constant("position", 1.0, 2.0, 3.0, label="estimate"), constant("position", 4.0, 5.0, 6.0, label="capture")]
    streams += [constant("attitude", *TURN, label="capture"), constant("attitude", *OTHER, label="estimate")]
    log = written(tmp_path, *streams)
    assert by_topic(log, "position") == {"/pose/estimate": [1.0, 2.0, 3.0], "/pose/capture": [4.0, 5.0, 6.0]}
    turns = by_topic(log, "attitude")
    assert np.allclose(turns["/pose/estimate"], OTHER)
    assert np.allclose(turns["/pose/capture"], TURN)


def test_a_position_without_an_attitude_claims_none(tmp_path: Path) -> None:
    streams = [constant("position", 1.0, 2.0, 3.0), constant("position", 4.0, 5.0, 6.0, label="gps")]
    log = written(tmp_path, *streams, constant("attitude", *TURN))
    assert by_topic(log, "position") == {"/pose": [1.0, 2.0, 3.0], "/position/gps": [4.0, 5.0, 6.0]}
    (turn,) = log.of_kind("attitude")
    assert turn.origin == "/pose"


def test_points_by_an_independent_reader(tmp_path: Path) -> None:
    pytest.importorskip("rosbags")
    from rosbags.rosbag2.storage_mcap import McapReader
    from rosbags.typesys import Stores, get_typestore

    written(tmp_path, constant("position", 1.0, 2.0, 3.0))
    store = get_typestore(Stores.ROS2_HUMBLE)
    reader = McapReader(tmp_path / "a.mcap")
    reader.open()
    try:
        found = [(c.topic, store.deserialize_cdr(raw, c.msgtype)) for c, _, raw in reader.messages(reader.connections)]
    finally:
        reader.close()
    assert [topic for topic, _ in found] == ["/position"] * len(TIME)
    assert all((m.point.x, m.point.y, m.point.z) == (1.0, 2.0, 3.0) for _, m in found)


def test_each_gyro_has_its_own_accelerometer(tmp_path: Path) -> None:
    streams = [constant("gyro", 1.0, 0.0, 0.0), constant("gyro", 2.0, 0.0, 0.0, label="1")]
    streams += [constant("accelerometer", 0.0, 0.0, 8.0, label="1"), constant("accelerometer", 0.0, 0.0, 9.0)]
    log = written(tmp_path, *streams)
    assert by_topic(log, "gyro") == {"/imu": [1.0, 0.0, 0.0], "/imu/1": [2.0, 0.0, 0.0]}
    assert by_topic(log, "accelerometer") == {"/imu": [0.0, 0.0, 9.0], "/imu/1": [0.0, 0.0, 8.0]}


def test_poses_of_two_devices_are_no_trajectory(tmp_path: Path) -> None:
    streams = [constant("position", 1.0, 2.0, 3.0, label="gps"), constant("position", 4.0, 5.0, 6.0, label="capture")]
    log = Log("a", (*streams, constant("attitude", *TURN, label="capture")), LogSource("a", "", "test"))
    (path,) = write_log(log, tmp_path / "a.txt")
    assert read_log(path).stream("position").values[0].tolist() == [4.0, 5.0, 6.0]
    only = Log("a", (streams[0], constant("attitude", *TURN), constant("attitude", *TURN, label="1")), log.source)
    with pytest.raises(AirworthyError, match="no positions with attitudes"):
        write_log(only, tmp_path / "b.txt")
