"""`airworthy courses draw` as people type it, without a browser; what it writes is flown."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.capture import CaptureImages, write_capture
from airworthy.cli.courses import drawing
from airworthy.cli.main import main
from airworthy.core.jobs import progress
from airworthy.geometry import Box
from airworthy.scenes import Instance, Region, Scene, write_scene
from airworthy.tasks import WalkCourse
from airworthy.trajectories import read_course
from airworthy.trajectories.course_draft import CourseDraft

Output = pytest.CaptureFixture[str]
POINTS = "-3 0 1.2; 0.5 1.9 1.2; 3 0 1.2"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A floor with a wall, and a walk round its end; the working folder is theirs."""
    things = (Instance("floor", (0.0, 0.0, -0.05), name="floor"), Instance("wall", (0.5, 0.0, 1.5), name="partition"))
    shapes = {"floor": Box((4.0, 3.0, 0.05)), "wall": Box((0.05, 1.0, 1.5))}
    hut = Scene("hut", shapes, instances=things, bounds=Region((-4.0, -3.0, 0.0), (4.0, 3.0, 3.0)))
    write_scene(hut, tmp_path / "hut")
    _walk(tmp_path / "walk", metric=True)
    _walk(tmp_path / "unscaled", metric=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _walk(folder: Path, metric: bool) -> None:
    corners = np.array([(-3, 0, 1.4), (-1, 1.3, 1.4), (0.5, 1.35, 1.5), (3, 0, 1.4)], float)
    along = np.linspace(0.0, 3.0, 40)
    place = np.stack([np.interp(along, np.arange(4), corners[:, k]) for k in range(3)], axis=1)
    images = CaptureImages(
        rgb=(np.zeros((2, 2, 3), np.uint8),) * 40,
        intrinsics=np.tile((2.0, 2.0, 1.0, 1.0), (40, 1)),
        position=place,
        attitude=np.tile((-0.5, 0.5, -0.5, 0.5), (40, 1)),
        metric=metric,
    )
    write_capture(images, folder)


@pytest.mark.parametrize(("acceleration", "beyond"), [(3.0, False), (60.0, True)])
def test_what_no_rotor_gives_is_told(acceleration: float, beyond: bool, place: Path, capsys: Output) -> None:
    """Full thrust of 'carl' is 2.46 times its weight: 3 m/s^2 ask 1.05 times the weight, 60 m/s^2 six times."""
    points = ["--points", "0 0 1; 12 0 1; 24 0 1", "--speed", "20", "--acceleration", str(acceleration)]
    assert main(["courses", "draw", *points, "--out", "fast.json"]) == 0
    assert (" % of what a rotor of 'carl' gives, at " in capsys.readouterr().out) == beyond
    assert main(["courses", "draw", *points, "--out", "again.json", "--json"]) == 0
    assert (json.loads(capsys.readouterr().out)["rotor_percent"] > 100.0) == beyond


def test_points_become_a_course(place: Path, capsys: Output) -> None:
    assert main(["courses", "draw", "--scene", "hut", "--points", POINTS, "--speed", "1.5", "--out", "round.json"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Wrote round.json: 3 way-points, ")
    assert "In 'hut' 'carl' keeps 0." in out
    found = read_course("round.json")
    assert found.name == "round"
    assert found.limits is not None
    assert (found.limits.speed, found.limits.acceleration) == (1.5, 3.0)
    assert main(["courses", "validate", "round.json", "--scene", "hut"]) == 0


def test_a_walk_becomes_a_course_that_is_flown(place: Path, capsys: Output) -> None:
    line = "courses draw --scene hut --walk walk --speed 1.0 --clear 0.4 --yaw camera --out walked.json --json"
    assert main(line.split()) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["cameras"] == 40
    assert facts["moved"] >= 1  # the walk passes the wall's end within 0.3 m
    assert facts["gap_m"] >= 0.38
    found = read_course("walked.json")
    assert isinstance(found.waypoint_yaw, tuple)
    np.testing.assert_allclose(found.waypoint_yaw, 0.0, atol=1e-6)  # the cameras looked along x
    fly = "fly --scene hut --course walked.json --vehicle carl --envs 2 --no-report --out run"
    assert main(fly.split()) == 0
    flights = json.loads((place / "run" / "summary.json").read_text())["flights"]
    assert [flight["outcome"] for flight in flights] == ["success", "success"]


def test_moved_and_led_round_are_told_apart(capsys: Output) -> None:
    draft = CourseDraft(((0.0, 0.0, 1.0), (1.0, 0.0, 1.0)))

    def told(**fields: Any) -> str:
        drawing._tell_of_walk(WalkCourse(draft, 48, clearance=None, **fields))
        return capsys.readouterr().out

    assert told(moved=3, farthest=0.2) == "Follows 48 cameras; 3 way-points moved away from surfaces, by up to 0.20 m.\n"
    both = told(moved=0, farthest=0.0, around=6.6, led=5, aside=1.25)
    assert both.startswith("Follows 48 cameras; none moved.\n6.6 m of the walk leave no such room: 5 way-points follow ways")
    assert "up to 1.25 m beside the walk, and its ends without room are left out." in both
    ends = told(moved=0, farthest=0.0, around=2.0)
    assert ends.endswith("2.0 m of the walk leave no such room: its ends without room are left out.\n")


@pytest.mark.slow
def test_a_walk_tells_how_far_it_is_each_half_minute(place: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "TOLD_EVERY_S", 0.0)
    line = "courses draw --scene hut --walk walk --clear 0.4 --out walked.json"
    assert main(line.split()) == 0
    told = capsys.readouterr().err
    assert "Moving the walk off surfaces: 0 of 60 in 0 s" in told
    assert "Flying the course in thought: 0 of 40 in " in told
    assert main([*line.split(), "--json"]) == 0
    assert capsys.readouterr().err == ""


def test_a_course_is_written_over_and_nothing_else(place: Path, capsys: Output) -> None:
    line = ["courses", "draw", "--points", POINTS, "--out"]
    assert main([*line, "a.json"]) == 0
    assert main([*line, "a.json"]) == 0
    (place / "mine.json").write_text('{"my": "file"}')
    assert main([*line, "mine.json"]) == 2
    assert json.loads((place / "mine.json").read_text()) == {"my": "file"}
    capsys.readouterr()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--points '-3 0 1; 3 0 1' --scene hut", "The course 'x' takes 'carl' into 'partition' of 'hut'"),
        ("--points '-3 0 1; 9 0 1' --scene hut", "leaves the bounds of 'hut'"),
        ("--points '-3 0 1; -3 0 1'", "Way-points 1 and 2 are at one place"),
        ("--points '-3 0; 1 1 1'", "Way-point 1 is '-3 0'"),
        ("--points '0 0 1; 1 0 1' --walk walk", "Both --points and --walk are given"),
        ("--points '0 0 1; 1 0 1' --speed 0", "--speed is 0; expected more than 0, up to 100."),
        ("--points '0 0 1; 1 0 1' --yaw camera", "--yaw camera looks where the cameras of a --walk looked"),
        ("--points '0 0 1; 1 0 1' --height 2", "--height 2 changes nothing without the --walk that it is of"),
        ("--points '0 0 1; 1 0 1' --port 0", "--port 0 changes nothing with --points or --walk"),
        ("--points '0 0 1; 1 0 1' --check warn", "--check warn changes nothing without a place to look at"),
        ("--walk walk --clear 0.2", "--clear 0.2 changes nothing without a place to keep clear of"),
        ("--walk unscaled --scene hut", "is not in metres: bring it to scale first"),
        ("--walk missing --scene hut", "it is no folder"),
        ("--walk walk --scene hut --clear 4", "of room, and 4 m are asked for"),
        ("--json", "--json changes nothing in the browser"),
    ],
)
def test_mistakes(line: str, said: str, place: Path, capsys: Output) -> None:
    import shlex

    assert main(["courses", "draw", "--out", "x.json", *shlex.split(line)]) == 2
    out, err = capsys.readouterr()
    assert said in err
    assert err.count("\n") == 1
    assert not out
    assert not os.path.exists("x.json")


def test_out_is_a_course_file(place: Path, capsys: Output) -> None:
    assert main(["courses", "draw", "--points", POINTS, "--out", "round.toml"]) == 2
    assert "--out is 'round.toml'; a course is a .json file." in capsys.readouterr().err


def test_a_bad_course_is_written_where_asked(place: Path, capsys: Output) -> None:
    through = "-3 0 1; 3 0 1"
    assert main(["courses", "draw", "--out", "x.json", "--scene", "hut", "--points", through, "--check", "warn"]) == 0
    captured = capsys.readouterr()
    assert "into 'partition' of 'hut'" in captured.err + captured.out
    assert read_course("x.json").waypoints == ((-3.0, 0.0, 1.0), (3.0, 0.0, 1.0))


def test_the_browser_begins_with_the_file_that_is_there(
    loopback: None, place: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("viser")
    from airworthy.viewer import Viewer

    def interrupted(self: Viewer) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Viewer, "run", interrupted)
    assert main(["courses", "draw", "--points", POINTS, "--out", "round.json"]) == 0
    capsys.readouterr()
    assert main(["courses", "draw", "--scene", "hut", "--out", "round.json", "--port", "0"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Draw at http://127.0.0.1:")
    assert out.endswith("Closed.\n")
    assert err.startswith("What was drawn last is not saved")
