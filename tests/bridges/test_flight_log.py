"""A flight as an MCAP file while it is flown: read by rosbags, its pictures those of the recorder, whole up to a kill."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from airworthy.benchmarks.fly.config import FlyConfig
from airworthy.benchmarks.fly.job import run_fly
from airworthy.bridges.ros import messages
from airworthy.bridges.ros.flight_log import FLIGHT_LOG
from airworthy.bridges.ros.types import ros_types
from airworthy.core.errors import AirworthyError
from airworthy.logs import read_log
from airworthy.logs.writing.mcap_writer import McapWriter
from airworthy.simulation import read_flight
from airworthy.simulation.sensor_recording import depth_16bit

pytest.importorskip("rosbags")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("flown") / "run"
    sensors = ("front=flightgoggles_camera_v3:rgb", "d455_depth:depth")
    config = FlyConfig(waypoints=("0,0,1.5", "0.05,0,1.5"), scene="hall", sensors=sensors, imu="bmi088", hold=0.0,
                       record=("mcap",), report=False, out=out)  # fmt: skip
    run_fly(config)
    return out


def told(path: Path) -> dict[str, list[tuple[int, Any]]]:
    """Stamps and messages by topic, read by rosbags with the types that the file defines."""
    from rosbags.rosbag2.storage_mcap import McapReader
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    store, found = get_typestore(Stores.EMPTY), dict[str, list[tuple[int, Any]]]()
    reader = McapReader(path)
    reader.open()
    try:
        for connection in reader.connections:
            types = get_types_from_msg(connection.msgdef.data, connection.msgtype)
            store.register({name: value for name, value in types.items() if name not in store.fielddefs})
        for connection, stamp, raw in reader.messages(reader.connections, None, None):
            found.setdefault(connection.topic, []).append((stamp, store.deserialize_cdr(raw, connection.msgtype)))
        assert reader.statistics is not None
        assert reader.statistics.message_count == sum(map(len, found.values()))
    finally:
        reader.close()
    return found


def test_poses_and_sensors_are_those_of_the_run(run: Path) -> None:
    found = told(run / FLIGHT_LOG)
    table, _ = read_flight(run)
    time = table.columns["t"]
    stamps = [stamp for stamp, _ in found["/uav/odometry"]]
    # Every control step of 10 ms; the table keeps every second one.
    assert stamps[::2][: len(time)] == np.rint(time * 1e9).astype(int).tolist()
    places = [message.pose.pose.position for _, message in found["/uav/odometry"]][::2][: len(time)]
    for axis in "xyz":
        assert [np.float32(getattr(place, axis)) for place in places] == table.columns[f"position_{axis}_m"].tolist()
    assert len(found["/uav/sensors/imu"]) == len(found["/uav/motor_speed"]) == len(found["/tf"]) == len(stamps)
    assert {item.child_frame_id for _, said in found["/tf_static"] for item in said.transforms} == {
        "uav/front", "uav/front_optical", "uav/d455_depth", "uav/d455_depth_optical"}  # fmt: skip
    ((_, course),) = found["/uav/course"]
    assert course.poses[-1].pose.position.x == pytest.approx(0.05)


def in_order(folder: Path) -> list[Path]:
    """Pictures by the step that they are named after."""
    return sorted(folder.glob("*.png"), key=lambda path: int(path.stem))


def test_pictures_are_the_recorders(run: Path) -> None:
    found = told(run / FLIGHT_LOG)
    files = in_order(run / "sensors" / "front" / "0")
    colour = found["/uav/camera/front/image_rect_color/compressed"]
    assert len(colour) == len(files) > 10
    for (_, message), file in zip(colour, files, strict=True):
        assert message.format == "png"
        assert np.array_equal(np.asarray(Image.open(io.BytesIO(message.data.tobytes()))), np.asarray(Image.open(file)))
    files = in_order(run / "sensors" / "d455_depth" / "0")
    depth = found["/uav/camera/d455_depth/depth"]
    assert len(depth) == len(files)
    for (_, message), file in zip(depth, files, strict=True):
        metres = np.frombuffer(message.data.tobytes(), "<f4").reshape(message.height, message.width)
        counts = np.asarray(Image.open(file), np.float64)
        # The file rounds to millimetres; float32 keeps ten metres to half a micrometre.
        assert np.abs(1e3 * metres - counts)[counts > 0].max() <= 0.5 + 1e-3
        assert np.all((counts > 0) == (depth_16bit(metres) > 0))


def test_our_own_logs_read_it(run: Path) -> None:
    log = read_log(run / FLIGHT_LOG)
    assert {"position", "attitude", "gyro", "accelerometer", "motor_speed"} <= {item.kind for item in log.streams}


def test_what_was_written_before_a_kill_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    with path.open("wb") as file:
        writer = McapWriter(file, ros_types().definition, chunk_bytes=4000)
        for step in range(100):
            said = messages.odometry_message(0.01 * step, (step, 0, 0), (0, 0, 0), (0, 0, 0, 1), (0, 0, 0))
            writer.message(said.topic, said.kind, step * 10_000_000, ros_types().packed(said.kind, said.values))
        cut = path.read_bytes()  # a kill here
        writer.closed()
    assert path.read_bytes()[: len(cut)] == cut
    (tmp_path / "b.mcap").write_bytes(cut)
    whole, part = (read_log(tmp_path / name).stream("position").values for name in ("a.mcap", "b.mcap"))
    # A chunk of 4,000 bytes holds five messages of 800.
    assert 95 <= len(part) <= len(whole) == 100
    assert np.array_equal(part, whole[: len(part)])


def test_several_flights_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match="--record mcap records one flight, and there are 2: leave --envs at 1"):
        run_fly(FlyConfig(record=("mcap",), envs=2, out=tmp_path))
