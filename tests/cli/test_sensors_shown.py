"""What `airworthy sensors show` prints of a sensor and of a rig: every number, in words and as JSON."""

from __future__ import annotations

import json
import math

import pytest

from airworthy.cli.main import main
from airworthy.sensors import device, device_names, rig, rig_names

ZONES = """\
gives             m
name              st_vl53l5cx_datasheet
kind              tof
projection        model Spherical, width 24, height 24, azimuth (-0.392699, 0.392699), elevation (-0.392699, 0.392699), \
elevations (), duplicate_column False, centres True
limits            minimum 0.02, maximum 4, normalize False
noise             a 0, b 0, c 0, offset 0, multiplier 0.02, dropout 0
noise_enabled     True
mount             position (0, 0, 0), attitude (0, 0, 0, 1)
randomize_mount   False
rate              15
latency           0
channels          (range)
"""


def test_every_number_of_a_sensor_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sensors", "show", "st_vl53l5cx_datasheet"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(ZONES)
    assert {"realism           none", "sub_rays          3"} <= set(said.splitlines())


def test_the_same_numbers_are_its_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sensors", "show", "st_vl53l5cx_datasheet", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["channels"] == ["range"]
    assert said["projection"] == {
        "model": "Spherical",
        "width": 24,
        "height": 24,
        "azimuth": [-math.pi / 8.0, math.pi / 8.0],
        "elevation": [-math.pi / 8.0, math.pi / 8.0],
        "elevations": [],
        "duplicate_column": False,
        "centres": True,
    }
    assert said["mount"] == {"position": [0.0, 0.0, 0.0], "attitude": [0.0, 0.0, 0.0, 1.0], "spread": None}


@pytest.mark.parametrize("name", ["flightgoggles_stereo", "flightgoggles_race"])
def test_a_rig_is_its_members_one_after_the_other(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sensors", "show", name]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:-1] for line in lines if line[0] != " "] == list(rig(name))
    names = [line.split()[1] for line in lines if line.startswith("  name ")]
    assert names == [item.name for item in rig(name).values()]


@pytest.mark.parametrize("kind", ["", "tof", "ranger"])
def test_the_list_has_one_row_per_sensor(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sensors", "list", "--json", *(["--kind", kind] if kind else [])]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == [name for name in device_names() if not kind or device(name).kind == kind]
    assert set(rows[0]) >= {"minimum_m", "maximum_m", "rate_hz", "gives", "noise"}
    assert not set(rig_names()) & {row["name"] for row in rows}
