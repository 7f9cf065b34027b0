"""Logs written and read back, and MCAP by an independent reader."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.logs.small_files import blackbox_text, tum_text, ulog_file

from airworthy.core.errors import AirworthyError, AssetWarning
from airworthy.logs import Log, LogSource, LogStream, ReadOptions, guess_mapping, read_log, table_of, write_log


def made(folder: Path, name: str, data: bytes) -> Log:
    (folder / name).write_bytes(data)
    return read_log(folder / name)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """A log with everything that a ULog has."""
    return made(tmp_path, "a.ulg", ulog_file())


def same(first: Log, second: Log, names: list[str], exact: bool = True) -> None:
    shift = (first.source.start_ns - second.source.start_ns) / 1e9
    for name in names:
        ours, theirs = first.stream(name), second.stream(name)
        assert np.allclose(ours.time + (0.0 if exact else shift), theirs.time, atol=1e-9), name
        assert np.array_equal(ours.values, theirs.values, equal_nan=True), name
        assert ours.stamp == theirs.stamp


def test_npz_keeps_every_bit(log: Log, tmp_path: Path) -> None:
    (path,) = write_log(log, tmp_path / "b.npz")
    back = read_log(path)
    assert [s.name for s in back.streams] == [s.name for s in log.streams]
    same(log, back, [s.name for s in log.streams])
    assert back.stream("gyro").filter == log.stream("gyro").filter
    assert back.source.start_ns == log.source.start_ns
    assert back.parameters == log.parameters
    assert [(e.kind, e.detail) for e in back.events] == [(e.kind, e.detail) for e in log.events]
    assert np.allclose([e.time for e in back.events], [e.time for e in log.events], atol=1e-9)
    assert log.geometry is not None
    assert back.geometry is not None
    for name in ("position", "axis", "spin", "torque_ratio"):
        assert np.array_equal(getattr(back.geometry, name), getattr(log.geometry, name)), name
    assert back.geometry.linearised == log.geometry.linearised


def test_npz_loses_nothing_and_says_nothing(log: Log, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_log(log, tmp_path / "b.npz")


def test_tables_tell_what_they_lose(log: Log, tmp_path: Path) -> None:
    """Events, parameters and the geometry; blank rows are no samples of anything, and are not counted."""
    wanted = rf"b\.csv: csv has no {len(log.events)} events, {len(log.parameters)} parameters, geometry of rotors: \.npz"
    with pytest.warns(AssetWarning, match=wanted):
        write_log(log, tmp_path / "b.csv")


def test_samples_that_a_format_loses_are_counted(tmp_path: Path) -> None:
    """TUM has one stream of poses: of a second one nothing is written."""
    time, turn = np.arange(5) * 0.1, np.tile([0.0, 0.0, 0.0, 1.0], (5, 1))
    streams = [LogStream("position", time, np.ones((5, 3)), "a"), LogStream("attitude", time, turn, "a")]
    streams += [LogStream("position", time, np.zeros((5, 3)), "b")]
    log = Log("two", tuple(streams), LogSource("two", "", "test"))
    with pytest.warns(AssetWarning, match=r"b\.tum: tum has 5 of 10 samples of position: \.npz"):
        write_log(log, tmp_path / "b.tum")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_come_back_with_their_mapping(log: Log, tmp_path: Path, kind: str) -> None:
    path, mapping = write_log(log, tmp_path / f"b.{kind}")
    back = read_log(path, ReadOptions(mapping=mapping))
    same(log, back, ["gyro", "attitude", "position", "velocity", "motor_speed"])
    # Disarmed commands are blank in a table, and blank rows are no samples.
    assert np.array_equal(back.stream("motor_command").values, log.stream("motor_command").values[10:])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_with_blank_columns_come_back(tmp_path: Path, kind: str) -> None:
    """Commands that were never armed, and a sensor that was never there."""
    time = np.arange(4) * 0.1
    voltage = LogStream("voltage", time, np.arange(4.0)[:, None])
    blank = [LogStream("motor_command", time, np.full((4, 4), np.nan), stamp="held")]
    blank.append(LogStream("range", time, np.full((4, 1), np.nan)))
    half = LogStream("magnetometer", time, np.array([[1.0, np.nan, 3.0]] * 4))
    log = Log("a", (voltage, *blank, half), LogSource("a", "", "test"))
    path, mapping = write_log(log, tmp_path / f"b.{kind}")
    back = read_log(path, ReadOptions(mapping=mapping))
    same(log, back, ["voltage", "magnetometer"])
    assert "Stream 'motor_command' is left out: its columns are blank throughout." in back.notes
    assert not back.has("range")
    # A first guess passes over them.
    assert "motor" not in guess_mapping(table_of(path)[0]).text("b")


def test_a_stamp_twice_keeps_both_samples(tmp_path: Path) -> None:
    time = np.array([0.0, 0.1, 0.1, 0.2])
    values = np.arange(12.0).reshape(4, 3)
    log = Log("a", (LogStream("gyro", time, values),), LogSource("a", "", "test"))
    path, mapping = write_log(log, tmp_path / "b.csv")
    assert np.array_equal(read_log(path, ReadOptions(mapping=mapping)).stream("gyro").values, values)


def test_tum(tmp_path: Path) -> None:
    log = made(tmp_path, "a.txt", tum_text())
    (path,) = write_log(log, tmp_path / "b.txt")
    back = read_log(path)
    same(log, back, ["position", "attitude"])
    assert back.source.start_ns == log.source.start_ns == 100_500_000_000


def test_stamps_of_tum_have_nine_digits(tmp_path: Path) -> None:
    """Five nanoseconds after the second are .000000005, not .5."""
    time = np.array([0.0, 5e-9, 0.05])
    streams = (
        LogStream("position", time, np.zeros((3, 3))),
        LogStream("attitude", time, np.tile([0.0, 0.0, 0.0, 1.0], (3, 1))),
    )
    (path,) = write_log(Log("a", streams, LogSource("a", "", "test", start_ns=100 * 10**9)), tmp_path / "a.txt")
    stamps = [line.split()[0] for line in path.read_text().splitlines()[1:]]
    assert stamps == ["100.000000000", "100.000000005", "100.050000000"]


def test_mcap_comes_back(log: Log, tmp_path: Path) -> None:
    (path,) = write_log(log, tmp_path / "b.mcap")
    back = read_log(path)
    same(log, back, ["gyro", "position", "velocity", "motor_speed", "motor_command"], exact=False)
    assert np.allclose(np.abs(np.sum(back.stream("attitude").values * log.stream("attitude").values, axis=1)), 1.0)
    assert not back.has("accelerometer")


def test_what_a_format_has_no_place_for_is_told(log: Log, tmp_path: Path) -> None:
    with pytest.warns(AssetWarning, match=r"b\.tum: tum has no place for .*gyro.*, which are left out.*: \.npz holds"):
        write_log(log, tmp_path / "b.tum")


def test_imu_and_battery_in_mcap(tmp_path: Path) -> None:
    log = made(tmp_path, "a.csv", blackbox_text())
    write_log(log, tmp_path / "b.mcap")
    back = read_log(tmp_path / "b.mcap")
    same(log, back, ["gyro", "accelerometer", "motor_command"], exact=False)
    assert np.allclose(back.stream("voltage").values, np.float32(16.8))


def test_mcap_by_an_independent_reader(tmp_path: Path) -> None:
    """rosbags finds the index, the counts, the definitions and the numbers."""
    pytest.importorskip("rosbags")
    from rosbags.rosbag2.storage_mcap import McapReader
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    log = made(tmp_path, "a.ulg", ulog_file())
    write_log(log, tmp_path / "b.mcap")
    store = get_typestore(Stores.EMPTY)
    reader = McapReader(tmp_path / "b.mcap")
    reader.open()
    try:
        assert reader.statistics is not None
        seen: dict[str, list[tuple[int, Any]]] = {}
        for connection in reader.connections:
            # Types as the file defines them, not as the reader knows them.
            types = get_types_from_msg(connection.msgdef.data, connection.msgtype)
            store.register({name: value for name, value in types.items() if name not in store.fielddefs})
        for connection, stamp, raw in reader.messages(reader.connections, None, None):
            seen.setdefault(connection.topic, []).append((stamp, store.deserialize_cdr(raw, connection.msgtype)))
        assert reader.statistics.message_count == sum(map(len, seen.values()))
    finally:
        reader.close()
    gyro = log.stream("gyro")
    assert [stamp for stamp, _ in seen["/imu"]] == np.rint(gyro.time * 1e9 + log.source.start_ns).astype(int).tolist()
    for (_, message), row in zip(seen["/imu"], gyro.values, strict=True):
        turn = message.angular_velocity
        assert [turn.x, turn.y, turn.z] == row.tolist()
        assert message.linear_acceleration_covariance[0] == -1.0
    for (_, message), row in zip(seen["/motor_speed"], log.stream("motor_speed").values, strict=True):
        assert np.array_equal(message.angular_velocities, row)
        assert message.normalized.size == 0
    for (_, message), row in zip(seen["/motor_command"], log.stream("motor_command").values, strict=True):
        assert np.array_equal(message.normalized, row, equal_nan=True)
    for (_, message), row in zip(seen["/pose"], log.stream("position").values, strict=True):
        assert [message.pose.position.x, message.pose.position.y, message.pose.position.z] == row.tolist()
        assert message.header.frame_id == "world"


def test_battery_by_an_independent_reader(tmp_path: Path) -> None:
    pytest.importorskip("rosbags")
    from rosbags.rosbag2.storage_mcap import McapReader
    from rosbags.typesys import Stores, get_typestore

    write_log(made(tmp_path, "a.csv", blackbox_text()), tmp_path / "b.mcap")
    store = get_typestore(Stores.ROS2_HUMBLE)
    reader = McapReader(tmp_path / "b.mcap")
    reader.open()
    try:
        chosen = [c for c in reader.connections if c.topic == "/battery"]
        found = [store.deserialize_cdr(raw, c.msgtype) for c, _, raw in reader.messages(chosen, None, None)]
    finally:
        reader.close()
    assert len(found) == 20
    assert all(m.voltage == np.float32(16.8) and np.isnan(m.current) and m.present and m.serial_number == "" for m in found)


def test_signs_and_units_in_mcap_by_an_independent_reader(tmp_path: Path) -> None:
    """sensor_msgs has a discharge negative, temperatures in degrees Celsius, fields in tesla and pressures in pascal."""
    pytest.importorskip("rosbags")
    from rosbags.rosbag2.storage_mcap import McapReader
    from rosbags.typesys import Stores, get_typestore

    time = np.array([0.0, 1.0])

    def twice(kind: str, *row: float) -> LogStream:
        return LogStream(kind, time, np.tile(row, (2, 1)))

    streams = (twice("voltage", 16.0), twice("current", 5.0), twice("temperature", 300.0), twice("pressure", 101325.0))
    write_log(Log("a", (*streams, twice("magnetometer", 1e-5, 2e-5, 3e-5)), LogSource("a", "", "test")), tmp_path / "a.mcap")
    store = get_typestore(Stores.ROS2_HUMBLE)
    reader = McapReader(tmp_path / "a.mcap")
    reader.open()
    try:
        found = {c.topic: store.deserialize_cdr(raw, c.msgtype) for c, _, raw in reader.messages(reader.connections)}
    finally:
        reader.close()
    assert (found["/battery"].voltage, found["/battery"].current) == (16.0, -5.0)
    assert found["/temperature"].temperature == pytest.approx(26.85)
    assert found["/pressure"].fluid_pressure == 101325.0
    field = found["/magnetic_field"].magnetic_field
    assert (field.x, field.y, field.z) == (1e-5, 2e-5, 3e-5)
    back = read_log(tmp_path / "a.mcap")
    assert back.stream("current").values[0, 0] == 5.0
    assert back.stream("temperature").values[0, 0] == pytest.approx(300.0)


def test_large_files_have_several_chunks(tmp_path: Path) -> None:
    time = np.arange(8000) * 0.001
    log = Log("a", (LogStream("gyro", time, np.stack([time] * 3, axis=1)),), LogSource("a", "", "test"))
    (path,) = write_log(log, tmp_path / "a.mcap")
    data = path.read_bytes()
    back = read_log(path)
    assert np.array_equal(back.stream("gyro").values, log.stream("gyro").values)
    # Cut where a kill would leave it: whole chunks are there, and the loss is told.
    (tmp_path / "b.mcap").write_bytes(data[: int(0.6 * len(data))])
    cut = read_log(tmp_path / "b.mcap")
    count = len(cut.stream("gyro").time)
    assert 2000 < count < 8000
    assert np.array_equal(cut.stream("gyro").values, log.stream("gyro").values[:count])
    assert any("were left out" in note for note in cut.notes)


def test_what_cannot_be_written(log: Log, tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match="Unknown format of logs 'bag'"):
        write_log(log, tmp_path / "a.bag")
    gyro = Log("a", (log.stream("gyro"),), log.source)
    with pytest.raises(AirworthyError, match="no positions with attitudes"):
        write_log(gyro, tmp_path / "a.txt")
    with pytest.raises(AirworthyError, match="no stream"):
        write_log(Log("a", (), log.source), tmp_path / "a.npz")
