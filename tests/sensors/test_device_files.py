"""Devices in a file beside the vehicle's: taken up when the vehicle is read, and whole wherever the record goes."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.sensors.carried import carried_sensors
from airworthy.vehicles import read_vehicle, vehicle, write_vehicle
from airworthy.vehicles.record import SensorMount

DEVICES = """
[short_lidar]
kind = "lidar"
projection = { model = "spherical", width = 32, height = 4, azimuth = [-180, 180], elevation = [-15, 15] }
limits = { minimum = 0.3, maximum = 25 }
rate = 10
channels = ["range"]
"""


def written(folder: Path, device: str, devices: str = DEVICES) -> Path:
    """A vehicle's file that carries a device, and the devices' file in a folder beside it."""
    (folder / "parts").mkdir(parents=True)
    (folder / "parts" / "mine.toml").write_text(devices)
    top = SensorMount("top", "lidar", device, (0.0, 0.0, 0.08))
    write_vehicle(replace(vehicle("carl"), name="mine", sensors=(top,)), folder / "vehicle.toml")
    return folder / "vehicle.toml"


@pytest.mark.parametrize("device", ["parts/mine.toml", "parts/mine.toml:short_lidar"])
def test_a_device_beside_the_vehicle_is_carried(device: str, tmp_path: Path) -> None:
    body = read_vehicle(written(tmp_path, device))
    item = carried_sensors(body)["top"]
    assert (item.width, item.height, item.rate, item.limits.maximum) == (32, 4, 10.0, 25.0)
    assert item.mount.position == (0.0, 0.0, 0.08)
    # Written again, anywhere, it is the same without the file.
    write_vehicle(body, tmp_path / "elsewhere.toml")
    shutil.rmtree(tmp_path / "parts")
    assert read_vehicle(tmp_path / "elsewhere.toml") == body


@pytest.mark.parametrize(
    ("device", "devices", "said"),
    [
        (
            "parts/nothing.toml:a",
            DEVICES,
            "vehicle.toml: the device of sensor 'top', 'parts/nothing.toml:a', is no file beside it",
        ),
        (
            "parts/mine.toml:long_lidar",
            DEVICES,
            r"must be one of the tables of '.*mine.toml' \(short_lidar\): write parts/mine",
        ),
        ("parts/mine.toml", DEVICES + "[other]\nkind = 'lidar'\n", r"\(short_lidar, other\): write parts/mine.toml:NAME"),
        ("parts/mine.toml", "x = 1\n", r"\(none\)"),
        ("parts/mine.toml", "[a\n", "is not valid TOML"),
    ],
)
def test_a_file_that_holds_no_such_device(device: str, devices: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(AssetError, match=said):
        read_vehicle(written(tmp_path, device, devices))


@pytest.mark.parametrize(
    ("devices", "said"),
    [("[a]\nkind = 'sonar'\n", "'sonar'"), ("[a]\nkind = 'lidar'\nlimits = 3\n", "device 'parts/mine.toml:a'")],
)
def test_a_device_that_cannot_be_used(devices: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match=said) as caught:
        carried_sensors(read_vehicle(written(tmp_path, "parts/mine.toml", devices)))
    assert "Sensor 'top' of vehicle 'mine'" in str(caught.value)


def test_a_record_of_a_run_flies_the_device_again_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "a", "parts/mine.toml")
    asked = "--vehicle a/vehicle.toml --scene mid_gate --course hover --sensors carried --no-report --out run"
    assert main(["fly", *asked.split()]) == 0
    (tmp_path / "b").mkdir()
    shutil.move(tmp_path / "run", tmp_path / "b" / "run")
    shutil.rmtree(tmp_path / "a")
    monkeypatch.chdir(tmp_path / "b")
    capsys.readouterr()
    assert main(["replay", "run"]) == 0
    assert capsys.readouterr().out.startswith("Equal: every flight has the same bytes")


def test_a_changed_device_is_told_as_a_changed_vehicle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "a", "parts/mine.toml")
    asked = "--vehicle a/vehicle.toml --scene mid_gate --course hover --sensors carried --no-report --out run"
    assert main(["fly", *asked.split()]) == 0
    (tmp_path / "a" / "parts" / "mine.toml").write_text(DEVICES.replace("maximum = 25", "maximum = 9"))
    capsys.readouterr()
    assert main(["replay", "run"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Equal")
    assert "vehicle 0" in said
    assert json.loads(Path("run/summary.json").read_text())["aggregate"]["flights"] == 1
