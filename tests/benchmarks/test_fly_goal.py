"""`airworthy fly` with a planner: to a goal through any scene, judged by arrival, replayed like every run."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.benchmarks.test_navigation_places import wall_with_a_door

from airworthy.benchmarks.fly import metrics
from airworthy.benchmarks.fly.config import _below_controller
from airworthy.benchmarks.fly.job import FlyConfig, run_fly
from airworthy.benchmarks.fly.metrics import judge
from airworthy.benchmarks.fly.replay import refly
from airworthy.benchmarks.fly.scene import ends_of
from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError, AssetWarning
from airworthy.evaluation.statistics import read_summary
from airworthy.planners import StraightFlight
from airworthy.reports import flight_text
from airworthy.scenes import scene
from airworthy.simulation import read_flight


@pytest.fixture(scope="module")
def hall(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(wall_with_a_door(tmp_path_factory.mktemp("place") / "hall.obj"))


def config(hall: str, out: Path, **changes: Any) -> FlyConfig:
    given: dict[str, Any] = {"vehicle": ("virt_05",), "scene": hall, "start": (-4.0, -1.5, 1.5), "goal": (4.0, -1.5, 1.5)}
    return FlyConfig(**{**given, "out": out, "report": False, "time_limit": 20.0, "speed": 2.0, "acceleration": 3.0, **changes})


def test_a_planner_finds_the_door_that_straight_flight_misses(hall: str, tmp_path: Path) -> None:
    found = {}
    for name, ends in (("straight", {}), ("ego", {}), ("through", {"start": (-4.0, 0.0, 1.5), "goal": (4.0, 0.0, 1.5)})):
        pilot = "straight" if name == "through" else name
        result = run_fly(config(hall, tmp_path / name, pilot=pilot, **ends))
        (flight,) = result.summary["flights"]
        found[name] = flight["outcome"]
        table, meta = read_flight(tmp_path / name)
        end = table.vector("position")[-1]
        assert meta["pilot"] == pilot
        if flight["outcome"] == "success":
            assert np.linalg.norm(end - (ends or {"goal": (4.0, -1.5, 1.5)})["goal"]) < 2.0
            assert table.t[-1] < 15.0  # the run ends when it has arrived, not at the time limit
    assert found == {"straight": "collision", "ego": "success", "through": "success"}
    assert refly(tmp_path / "ego").equal
    assert judge(tmp_path / "ego").summary["flights"][0]["outcome"] == "success"  # from the folder alone


def test_flights_of_a_planner_do_not_depend_on_their_batch(hall: str, tmp_path: Path) -> None:
    ends = {"start": (-4.0, 0.0, 1.5), "goal": (4.0, 0.0, 1.5), "pilot": "straight"}
    run_fly(config(hall, tmp_path / "one", **ends))
    run_fly(config(hall, tmp_path / "three", envs=3, **ends))
    one, three = read_flight(tmp_path / "one")[0], read_flight(tmp_path / "three")[0]
    for name, values in one.flight(0).columns.items():
        if name != "env":
            np.testing.assert_array_equal(three.flight(2).columns[name], values, err_msg=name)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"scene": None}, "finds its own way: name a --scene"),
        ({"course": "line"}, "--course line changes nothing for a planner.*: give --start and --goal"),
        ({"scene": "mid_gate", "goal": None}, "has no goal of its own: give --goal X Y Z"),
        (
            {"goal": (400.0, 0.0, 1.0)},
            r"goal \(400, 0, 1\) m lies outside .* from \([-., \d]{,20}\) to \([., \d]{,20}\) m: choose",
        ),
        ({"goal": (0.0, -3.0, 1.5)}, r"^The goal \(0, -3, 1.5\) m lies inside an obstacle, in .*: choose another goal, or"),
        ({"goal": (0.2, -3.0, 1.5)}, "goal .* lies 0.1 m from an obstacle, nearer than the vehicle is large"),
        ({"goal": (0.0, -3.0, 1.5), "pilot": "straight"}, "goal .* lies inside an obstacle"),
        ({"start": (0.0, -3.0, 1.5)}, r"^The start \(0, -3, 1.5\) m lies inside an obstacle, in .*: choose another start, or"),
        ({"start": (-4.0, -0.0, 0.0)}, r"start \(-4, 0, 0\) m lies 0 m from an obstacle"),
        ({"start": (np.nan, 0.0, 1.0)}, "start\\[0\\] is nan m"),
        ({"waypoints": ("0,0,1", "1,0,1", "2,0,1"), "start": None, "goal": None}, "give two --waypoints, start and goal"),
        ({"pilot": "geometric"}, "for a pilot that follows a course, and has neither start nor goal"),
        ({"dynamics": "semi_kinematic"}, "fly --dynamics rigid"),
        ({"time_limit": 0.0}, "time_limit is 0"),
        ({"pilot": "nowhere.py:Mine"}, "There is no file"),
    ],
)
def test_what_cannot_be_flown_is_refused(changes: dict[str, Any], why: str, hall: str, tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match=why):
        run_fly(config(hall, tmp_path / "run", **{"pilot": "ego", **changes}))
    assert not (tmp_path / "run").exists()


def test_a_planner_without_its_weights_flies_nothing(hall: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRWORTHY_POLICIES", str(tmp_path / "none"))
    monkeypatch.delenv("AIRWORTHY_DATA", raising=False)
    with pytest.raises(AirworthyError, match="There are no NavRL weights"):
        run_fly(config(hall, tmp_path / "run", pilot="navrl"))
    assert not (tmp_path / "run").exists()


def test_ends_that_only_a_model_s_room_gives_are_told(hall: str) -> None:
    place, asked = scene(hall), FlyConfig(pilot="known_free", scene="hall.obj")
    with pytest.warns(AssetWarning, match=r"^hall.obj is flown from \(.+\) to \(.+\) m, .* --start and --goal would"):
        ends_of(asked, place)
    with pytest.warns(AssetWarning, match=r"room; --goal would"):
        ends_of(replace(asked, start=(1.0, 1.0, 1.0)), place)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ends_of(replace(asked, start=(1.0, 1.0, 1.0), goal=(2.0, 1.0, 1.0)), place)
        ends_of(replace(asked, scene="hall.toml"), place)
        ends_of(replace(asked, scene="forest:1"), place)


def test_distances_of_who_finds_its_own_way_are_said_to_be_from_the_straight_line() -> None:
    """A planner is asked to follow no path: its flight has no course, and the page says what distances are from."""
    asked, ends = FlyConfig(scene="forest", pilot="straight"), ("0,0,1", "1,0,1")
    label = metrics.labels_of(asked, None, ends, own_way=True)["course"]
    assert label == "start to goal"
    assert metrics.labels_of(asked, None, ends, own_way=False)["course"] == "waypoints"
    assert metrics.labels_of(asked, "line", ends, own_way=False)["course"] == "line"
    flight = {"vehicle": "a", "course": label, "scene": "forest", "pilot": "straight"}
    (said,) = flight_text.own_way_note([flight])
    assert "straight line between start and goal" in said
    assert flight_text.own_way_note([{**flight, "course": "waypoints"}]) == []
    assert flight_text._title([flight]) == "a from start to goal in forest, flown by straight"


OWN = """
import numpy as np
from airworthy.planners import StraightFlight

class Mine(StraightFlight):
    name = "mine"

class Up:
    name, level, observes = "up", "position", ("position",)
    def command(self, observation):
        return np.array([0.0, 0.0, 1.5, 0.0])
"""


def course_of(folder: Path) -> tuple[str, str]:
    """Return what the flights and their judgement call the way."""
    (flight,) = read_summary(folder)["flights"]
    return read_flight(folder)[1]["course"], flight["course"]


def test_planners_of_a_user_s_own_follow_no_waypoints(
    hall: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By file from the command line and as an object: labelled as built-in ones are, also when judged without their file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(OWN)
    words = ["--pilot", "own.py:Mine", "--scene", hall, "--vehicle", "virt_05", "--out", "run", "--no-report"]
    assert main(["fly", *words, "--start", "-4", "0", "1.5", "--goal", "4", "0", "1.5"]) == 0
    said = capsys.readouterr().out
    assert "finds its own way: distances are from the straight line between start and goal" in said
    ours = {"start": (-4.0, 0.0, 1.5), "goal": (4.0, 0.0, 1.5)}
    run_fly(config(hall, tmp_path / "object", **ours), pilot=StraightFlight())
    assert course_of(tmp_path / "run") == course_of(tmp_path / "object") == ("start to goal", "start to goal")
    (tmp_path / "own.py").unlink()
    for name in ("run", "object"):
        before = (tmp_path / name / "summary.json").read_bytes()
        (tmp_path / name / "summary.json").unlink()
        judge(tmp_path / name)
        assert (tmp_path / name / "summary.json").read_bytes() == before


def test_pilots_of_a_user_s_own_keep_the_name_of_their_course(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    given = {"vehicle": ("carl",), "pilot": f"{tmp_path / 'own.py'}:Up", "report": False, "hold": 0.0}
    run_fly(FlyConfig(**given, course="hover", out=tmp_path / "hover"))
    run_fly(FlyConfig(**given, waypoints=("0,0,1.5", "0.5,0,1.5"), out=tmp_path / "points"))
    assert course_of(tmp_path / "hover") == ("hover", "hover")
    assert course_of(tmp_path / "points") == ("waypoints", "waypoints")


def test_learnt_policies_take_commands_below_the_rate_of_a_planner_s_controller() -> None:
    """They command the simulator themselves; a planner's setpoints go through a controller of 100 Hz."""
    for pilot, refused in (("ego", True), ("navigation:runs/a", False), ("avoid:runs/a", False), ("geometric", False)):
        asked = FlyConfig(pilot=pilot, control_rate=50.0)
        assert _below_controller(asked, plans=pilot != "geometric") == refused
