"""`airworthy film`: a film of what was flown before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airworthy.cli.main import main
from airworthy.reports.film.files import read_frames, video_suffix

FLY = ("fly", "--scene", "mid_gate", "--vehicle", "carl", "--waypoints=-4.5,0,1", "-4,0,1", "--hold", "0", "--no-report")
SMALL = ("--size", "64", "36", "--rate", "2", "--samples", "1")


@pytest.fixture(scope="module")
def flown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of `airworthy fly`."""
    folder = tmp_path_factory.mktemp("film") / "run"
    assert main([*FLY, "--json", "--out", str(folder)]) == 0
    return folder


def test_a_flight_is_filmed_later_from_another_camera(flown: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["film", str(flown), "--camera", "chase+onboard", *SMALL]) == 0
    said = capsys.readouterr().out
    path = flown / f"video_chase_onboard{video_suffix()}"
    frames = list(read_frames(path))
    assert said.startswith(f"Film: {path} ({len(frames)} frames in ")
    assert frames[0].shape == (36, 64, 3)
    assert (flown / "video_chase_onboard_sheet.png").is_file()


def test_json_and_a_place_of_its_own(flown: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["film", str(flown), *SMALL, "--camera", "fixed", "--out", str(tmp_path / "x.webp"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["path"], printed["camera"], printed["size"]) == (str(tmp_path / "x.webp"), "fixed", [64, 36])
    assert len(list(read_frames(tmp_path / "x.webp"))) == printed["frames"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--camera", "obit"), "Unknown camera 'obit'. Closest: 'orbit'"),
        (("--env", "7"), "There is no environment 7 in this table"),
        (("--size", "63", "36"), "A film of 63x36 pixels was asked for; expected even numbers"),
        (("--samples", "3"), "A pixel cannot have 3 samples; expected 1, 2, 4 or 8."),
        (("--out", "a.avi"), "expected a name that ends in .mp4 or .webp"),
        (("--scene", "mid_gat"), "Unknown scene 'mid_gat'"),
    ],
)
def test_mistakes(flown: Path, arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["film", str(flown), *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not list(flown.glob(".*.tmp*"))


def test_a_folder_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["film", str(tmp_path)]) == 2
    assert "meta.json" in capsys.readouterr().err
