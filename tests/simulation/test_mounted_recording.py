"""Recorded sensors: files, index, calibration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from airworthy.core.errors import AirworthyError, UnknownNameError
from airworthy.geometry import Box
from airworthy.optics.projections import Pinhole, Spherical
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.record import Beacon, Instance, Scene
from airworthy.sensors.devices import device
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.simulation import sensor_recording as module
from airworthy.simulation.mounted import MountedSensors
from airworthy.simulation.sensor_recording import SensorRecorder, calibration, depth_unit, metres_of, write_pcd
from airworthy.vehicles import vehicle

ROOM = Scene(
    "room",
    {"wall": Box((0.5, 50.0, 50.0))},
    instances=(Instance("wall", (8.5, 0.0, 0.0)),),
    beacons=(Beacon("Gate1", "2", (7.9, 0.5, 0.0)),),
)
SENSORS: dict[str, Any] = {
    "front": device("realsense_d455").variant(
        projection=Pinhole.from_fov(16, 12, horizontal=1.2), channels=("depth", "semantic_id", "normal_world", "barycentric")
    ),
    "top": device("ouster_os1_64").variant(projection=Spherical(32, 4), rate=30.0, channels=("range", "points")),
    "down": "lightware_sf11b",
    "marks": "flightgoggles_beacons",
}


def _pixels(path: Path) -> Any:
    with Image.open(path) as image:
        return np.array(image)


@pytest.fixture
def flown(tmp_path: Path) -> tuple[Path, MountedSensors, list[Any]]:
    simulator = Simulator(vehicle("carl"), SimulatorConfig(), 2)
    mounted = MountedSensors(simulator, SceneBatch(ROOM, 2), SENSORS)
    captures: list[Any] = []
    mounted.listen(captures.append)
    with SensorRecorder(tmp_path, mounted):
        for _ in range(12):
            simulator.step()
    return tmp_path / "sensors", mounted, captures


def test_every_sample_is_on_disk_with_its_stamp_and_pose(flown: tuple[Path, MountedSensors, list[Any]]) -> None:
    folder, _, captures = flown
    for name in SENSORS:
        rows = pq.read_table(folder / name / "index.parquet").to_pylist()
        taken = [(int(e), int(s)) for c in captures if c.name == name for e, s in zip(c.envs, c.step, strict=True)]
        assert [(row["env"], row["step"]) for row in rows] == taken
        assert all(row["t"] == row["step"] / 960.0 for row in rows)
    capture = next(c for c in captures if c.name == "front" and c.step[0] == 32)
    row = next(r for r in pq.read_table(folder / "front" / "index.parquet").to_pylist() if r["env"] == 1 and r["step"] == 32)
    assert [row[f"position_{a}_m"] for a in "xyz"] == capture.position[1].tolist()


def test_images_hold_the_samples(flown: tuple[Path, MountedSensors, list[Any]]) -> None:
    folder, mounted, captures = flown
    capture = next(c for c in captures if c.name == "front" and c.step[0] == 32)
    files = folder / "front" / "1"
    depth = _pixels(files / "32.png")
    assert depth.dtype == np.uint16
    metres = mounted.sensor("front").device.limits.metres(capture.data["depth"][1])
    np.testing.assert_allclose(metres_of(depth), metres, atol=5e-4)
    np.testing.assert_array_equal(_pixels(files / "32_semantic_id.png"), capture.data["semantic_id"][1])
    assert _pixels(files / "32_normal_world.png").shape == (12, 16, 3)
    np.testing.assert_array_equal(np.load(files / "32_barycentric.npy"), capture.data["barycentric"][1])
    assert not list(folder.rglob("*.tmp"))


def test_clouds_hold_the_points(flown: tuple[Path, MountedSensors, list[Any]]) -> None:
    folder, _, captures = flown
    capture = next(c for c in captures if c.name == "top" and c.step[0] == 0)
    head, data = (folder / "top" / "0" / "0.pcd").read_bytes().split(b"DATA binary\n")
    expected = capture.data["points"][0].reshape(-1, 3)
    expected = expected[np.isfinite(expected).all(1)]
    assert f"POINTS {len(expected)}\n".encode() in head
    np.testing.assert_array_equal(np.frombuffer(data, "<f4").reshape(-1, 3), expected)
    # 90 m do not fit into 16 bits of millimetres; the calibration says what a count is.
    assert json.loads((folder / "top" / "calibration.json").read_text())["depth_unit_m"] == 4e-3


def test_readings_are_in_the_index(flown: tuple[Path, MountedSensors, list[Any]]) -> None:
    folder, _, captures = flown
    row = pq.read_table(folder / "down" / "index.parquet").to_pylist()[0]
    assert row["range"] == pytest.approx(next(c for c in captures if c.name == "down").data["range"][0].tolist())
    marks = pq.read_table(folder / "marks" / "index.parquet").to_pylist()[0]
    assert marks["beacon"] == [0]
    assert len(marks["pixel"]) == 2


def test_the_calibration_says_everything(flown: tuple[Path, MountedSensors, list[Any]]) -> None:
    folder, _, _ = flown
    text = json.loads((folder / "front" / "calibration.json").read_text())
    assert text["projection"]["model"] == "Pinhole"
    assert text["projection"]["fx"] == pytest.approx(8.0 / np.tan(0.6))
    assert text["depth_unit_m"] == 1e-3
    assert text["depths"].endswith("In flight the device gives shares of its 15 m, and pilots see those.")
    metres = calibration(device("ouster_os0_128_datasheet"), {})["depths"]
    assert metres == "files hold metres, as counts of depth_unit_m; 0 is no measurement."
    assert text["mount_in_body"]["position"] == [0.1, 0.0, 0.03]
    assert text["files"] == {"depth": "png", "semantic_id": "png", "normal_world": "png", "barycentric": "npy"}


def test_choice_of_sensors_environments_and_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "INDEX_EVERY", 2)
    simulator = Simulator(vehicle("carl"), SimulatorConfig(), 3)
    mounted = MountedSensors(simulator, SceneBatch(ROOM, 3), SENSORS)
    with SensorRecorder(tmp_path, mounted, names=["front"], envs=[2], every=2):
        for step in range(24):
            simulator.step()
            if step == 11:
                simulator.reset([2])
    assert not (tmp_path / "sensors" / "top").exists()
    rows = pq.read_table(tmp_path / "sensors" / "front" / "index.parquet").to_pylist()
    assert [(row["env"], row["episode"], row["step"]) for row in rows] == [(2, 0, 0), (2, 0, 64), (2, 1, 0), (2, 1, 64)]
    assert (tmp_path / "sensors" / "front" / "2" / "flight_1" / "64.png").exists()
    with pytest.raises(UnknownNameError, match="Unknown mounted sensor 'rear'"):
        SensorRecorder(tmp_path, mounted, names=["rear"])
    with pytest.raises(AirworthyError, match="1 or more"):
        SensorRecorder(tmp_path, mounted, every=0)


def test_units_of_depth() -> None:
    assert depth_unit(device("realsense_d455")) == 1e-3
    assert depth_unit(device("ouster_os1_64")) == 4e-3
    assert depth_unit(device("ouster_os2_64")) == 4e-3
    assert depth_unit(device("flightgoggles_camera")) == 1e-3


def test_a_folder_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match="Could not write"):
        write_pcd(tmp_path / "no" / "such.pcd", np.zeros((1, 3)))
