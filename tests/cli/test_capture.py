"""`airworthy capture`: what it prints and writes, and how mistakes end."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from airworthy.capture import read_capture
from airworthy.capture.alignment.markers import marker_corners
from airworthy.cli.main import main
from airworthy.core import frames


@pytest.fixture(scope="module")
def build() -> ModuleType:
    """The writer of small captures of the capture room's tests."""
    path = Path(__file__).parents[1] / "capture" / "capture_building.py"
    spec = importlib.util.spec_from_file_location("capture_building_for_cli", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_show(build: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = build.transforms(9)
    del files["images/4.png"]
    build.write(tmp_path, files)
    assert main(["capture", "show", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "images " in out
    assert "1 listed image left out (images/4.png): there is no such file." in out
    assert "Up: the mean of the cameras' upward directions" in out
    assert main(["capture", "show", str(tmp_path), "--json", "--up", "z"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["images"], found["held_out"], found["metric"], found["points"]) == (8, 1, False, 3)
    assert found["camera_extent"][0][0] == pytest.approx(-2.8191, abs=1e-3)
    assert found["frame"]["scale"] == 1.0


def test_render_and_train_and_their_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out = str(tmp_path / "set"), str(tmp_path / "out")
    size = ("--size", "32", "24", "--samples", "1")
    assert main(["capture", "render", "empty_room", "--out", folder, "--views", "4", "--held-out", "1", *size, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said == {"scene": said["scene"], "transforms": f"{folder}/transforms.json", "images": 5}
    few = ("--steps", "3", "--count", "200", "--start", "random", "--degree", "0", "--json")
    assert main(["capture", "train", folder, "--out", out, *few]) == 0
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert (result["steps"], result["held_out"]) == (3, 1)
    assert Path(result["splats"]).is_file()
    assert captured.err == ""


def test_marker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from PIL import Image

    path = tmp_path / "m.png"
    assert main(["capture", "marker", "--out", str(path), "--side", "0.2"]) == 0
    said = capsys.readouterr().out
    assert "dictionary 4x4_50, number 0, side of the black square 200 mm (0.2 m)" in said
    assert "Print it at 100 %" in said
    with Image.open(path) as image:
        # Six cells are the square, and three quarters of one on either side are white: its size on paper.
        assert image.width * 6 / 7.5 / image.info["dpi"][0] * 0.0254 == pytest.approx(0.2, rel=1e-3)
    assert main(["capture", "marker", "--out", str(tmp_path / "m.jpg")]) == 2
    assert "expected a name that ends in .png" in capsys.readouterr().err


def test_align_with_corners_of_a_file(build: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The unit of the set is 2 m, and a marker of 0.5 m lies at (0.3, 0, 0) of it, turned by a right angle."""
    build.write(tmp_path / "set", build.transforms(8, fl_x=10.0, fl_y=10.0, k1=0.0, k2=0.0, p1=0.0, cx=6.0, cy=4.0))
    images = read_capture(tmp_path / "set", up="none")
    turn, middle = frames.from_euler(0.0, 0.0, 0.5 * np.pi), np.array([0.3, 0.0, 0.0])
    world = frames.rotate(turn, marker_corners(0.5) / 2.0) + middle
    eye = frames.rotate_inverse(images.attitude[:, None], world - images.position[:, None])
    pixels = eye[..., :2] / eye[..., 2:] * 10.0 + (6.0, 4.0)
    corners = {name: pixels[k].tolist() for k, name in enumerate(images.names)}
    (tmp_path / "corners.json").write_text(json.dumps(corners))
    ask = ["capture", "align", str(tmp_path / "set"), "--up", "none", "--corners", str(tmp_path / "corners.json")]
    ask += ["--no-refine", "--side", "0.5", "--level", "marker", "--out", str(tmp_path / "out")]
    assert main([*ask, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["read_to_place"]["scale"] == pytest.approx(2.0, rel=1e-6)
    assert found["images_agreeing"] == 8
    record = json.loads((tmp_path / "out" / "alignment.json").read_text())
    assert record["capture_to_place"]["scale"] == pytest.approx(2.0, rel=1e-6)
    assert record["marker_side_m"] == 0.5
    assert len(record["markers"][0]["images"]) == 8
    assert "8 of 8 images agree" in (tmp_path / "out" / "alignment.html").read_text()
    metric = read_capture(tmp_path / "out")
    assert metric.metric
    assert metric.position == pytest.approx(2.0 * frames.rotate_inverse(turn, images.position - middle), abs=1e-5)
    assert main(ask) == 0
    said = capsys.readouterr().out
    assert "Scale: a unit was 2 m, within 0.00% (95 %), by marker 0 (0.5 m)." in said
    assert "dictionary 4x4_50, side 0.5 m; 8 of 8 images agree" in said


def test_align_by_a_known_distance_and_export(build: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two points of the capture, 1.5 of its units apart, are said to be 3 m; splats go to Nerfstudio in both frames."""
    from airworthy.scenes.splats import Splats, read_splats, write_splats

    build.write(tmp_path / "set", build.transforms(8, k1=0.0, k2=0.0, p1=0.0))
    ask = ["capture", "align", str(tmp_path / "set"), "--markers", "7", "--out", str(tmp_path / "out"), "--json"]
    if importlib.util.find_spec("cv2") is None:
        pytest.skip("OpenCV is not installed: markers cannot be looked for")
    assert main([*ask, "--known-distance", "0,0,0", "1.5,0,0", "3.0"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["read_to_place"]["scale"] == pytest.approx(2.0, rel=1e-9)
    assert found["scale_by"] == ["the distance of 3 m"]
    assert not found["metric"]  # nothing but how cameras are held says what is up
    metric = read_capture(tmp_path / "out")
    assert metric.source.scale == pytest.approx(2.0)
    splats = Splats(np.zeros((1, 3)), np.array([[0.0, 0.0, 0.0, 1.0]]), np.ones((1, 3)), np.ones(1), np.zeros((1, 1, 3)))
    path = write_splats(splats, tmp_path / "a.ply", source=metric.source)
    ask = [
        "capture",
        "export",
        str(path),
        "--capture",
        str(tmp_path / "out"),
        "--out",
        str(tmp_path / "ns"),
        "--frame",
        "capture",
    ]
    assert main(ask) == 0
    assert "1 gaussians and 8 cameras for nerfstudio in the frame of the capture" in capsys.readouterr().out
    held = read_splats(tmp_path / "ns" / "splat.ply", up="z", transforms=False).splats
    assert held.scale[0, 0] == pytest.approx(0.5, rel=1e-6)
    assert main([*ask[:-2], "--program", "figs", "--json"]) == 2
    assert "align the capture first" in capsys.readouterr().err
    assert main([*ask, "--crop", *["-1", "-1", "-1", "1", "1", "1"]]) == 0
    assert "1 of 1 gaussians" in capsys.readouterr().out
    assert main([*ask, "--crop", *["1", "-1", "-1", "2", "1", "1"]]) == 2
    assert "None of 1 gaussians is in the box from (1, -1, -1) to (2, 1, 1): they lie from (0, 0, 0)" in capsys.readouterr().err
    assert main([*ask, "--crop", *["1", "-1", "-1", "0", "1", "1"]]) == 2
    assert "its lower corner must be below the upper one in x, y and z" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "gone"], "'gone' cannot be used: it is no folder, and no transforms.json."),
        (["shwo"], "Unknown 'airworthy capture' subcommand 'shwo'. Closest: 'show'."),
        (["align", "x", "--out", "x"], "--out is the capture itself, 'x'; choose another folder."),
        (["align", "x", "--markers", "a"], "The marker 'a' is not understood; expected NUMBER or NUMBER:SIDE"),
        (["align", "x", "--dictionary", "7x7"], "Unknown marker dictionary '7x7'"),
        (["align", "x", "--side", "0"], "side"),
        (["render", "mid_gait", "--out", "x"], "Unknown scene 'mid_gait'"),
        (["render", "mid_gate", "--out", "x", "--samples", "5"], "A scene cannot be captured with"),
        (["train", "gone", "--steps", "0"], "Training got steps=0; expected 1 or more."),
    ],
)
def test_mistakes_are_one_sentence(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["capture", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert not (tmp_path / "x").exists()


def test_a_stopped_render_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from airworthy.capture import rendering

    made = rendering._image
    count = 0

    def stopping(*arguments: object) -> object:
        nonlocal count
        count += 1
        if count == 3:
            raise KeyboardInterrupt
        return made(*arguments)  # type: ignore[arg-type]

    ask = ["capture", "render", "empty_room", "--out", str(tmp_path / "set"), "--views", "3", "--held-out", "0"]
    ask += ["--size", "16", "12", "--samples", "1"]
    monkeypatch.setattr(rendering, "_image", stopping)
    assert main(ask) == 130
    assert "the same command goes on with them" in capsys.readouterr().err
    assert len(list((tmp_path / "set" / "images").iterdir())) == 2
    monkeypatch.setattr(rendering, "_image", made)
    assert main(ask) == 0
    assert len(read_capture(tmp_path / "set")) == 3


@pytest.mark.parametrize(
    ("tokens", "says"),
    [
        (
            ["render", "mid_gate", "--out", "o", "--along", "line", "--held-out", "5"],
            "--held-out 5 changes nothing with --along",
        ),
        (["align", "folder", "--no-refine"], "--no-refine changes nothing without --corners"),
        (
            ["align", "folder", "--corners", "c.json", "--dictionary", "6x6_250"],
            "--dictionary 6x6_250 changes nothing with corners, which say where markers are",
        ),
    ],
)
def test_options_without_effect_are_refused(tokens: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capture", *tokens]) == 2
    assert says in capsys.readouterr().err
