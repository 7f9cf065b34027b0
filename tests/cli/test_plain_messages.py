"""Messages that name what is wrong, and commands whose output was closed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import airworthy as aw
from airworthy.benchmarks.fly.scene import _add
from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.scenes import scene


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("fly --envs 1e9", "'1e9' is not a whole number"),
        ("fly --slower fast", "'fast' is not a number"),
        ("--verison", "Unknown option '--verison'. Closest: '--version'."),
        ("fly --pilot runs/nopolicy", "svnet:FOLDER, policy:FOLDER, avoid:FOLDER or navigation:FOLDER"),
        ("tune carl --out /proc/x", "Could not make the folder '/proc/x'"),
    ],
)
def test_mistakes_are_named_plainly(words: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    told = capsys.readouterr().err
    assert says in told
    assert "invalid literal" not in told


def test_the_record_of_a_scene_is_no_vehicle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "scene.toml"
    path.write_text('version = 1\nname = "yard"\nbounds = { lower = [0, 0, 0], upper = [1, 1, 1] }\n')
    assert main(["vehicles", "validate", str(path)]) == 2
    assert "is the record of a scene, not of a vehicle" in capsys.readouterr().err


@pytest.mark.parametrize("corner", ["1 0 nan", "0 1e30 0"])
def test_a_model_of_wild_corners_says_so(corner: str, tmp_path: Path) -> None:
    path = tmp_path / "wild.obj"
    path.write_text(f"v 0 0 0\nv {corner}\nv 0 1 0\nf 1 2 3\n")
    with pytest.raises(AssetError, match="no triangle is left, since 1 of 1 have a corner that is not finite or lies beyond"):
        scene(path)


def test_words_are_no_places() -> None:
    with pytest.raises(AirworthyError, match=r"`position` of cameras is 'abc'; expected numbers, \(3,\) or \(c, 3\)"):
        aw.render("hall", position="abc", target=(0.0, 0.0, 1.0))


def test_a_second_sensor_is_told_how_to_be_named() -> None:
    found = {"front": object()}
    with pytest.raises(AirworthyError, match="--sensors left=d435"):
        _add(found, "front", found["front"], "d435")  # type: ignore[arg-type]


def test_a_command_whose_output_is_closed_ends_well() -> None:
    code = (
        "import sys; sys.stdout = sys.stderr = None; from airworthy.cli.main import main; sys.exit(main(['courses', 'list']))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=dict(os.environ), timeout=60, check=False)
    assert done.returncode == 0
