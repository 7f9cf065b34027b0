"""Classes of a user's own as pilots and planners of `fly`, `plan` and `evaluate`; their runs are complete in their folders."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.benchmarks.test_navigation_places import wall_with_a_door
from tests.benchmarks.tracking_stage import PLACE, on_stage

import airworthy as aw
from airworthy.benchmarks.fly.job import FlyConfig, run_fly
from airworthy.benchmarks.fly.replay import refly
from airworthy.benchmarks.fly.scene import GoalFlight
from airworthy.benchmarks.tracking.job import evaluate
from airworthy.benchmarks.tracking.methods import method_of
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.pilots import FlightRun
from airworthy.planners import StraightFlight
from airworthy.tasks.navigation import NavigationProtocol
from airworthy.vehicles import vehicle, write_vehicle

OWN = """
import numpy as np
from airworthy.planners import StraightFlight

class Up:
    name, level, observes = "up", "position", ("position",)
    def command(self, observation):
        place = observation["position"]
        return np.column_stack([place[:, :2], np.full(len(place), 2.0), np.zeros(len(place))])

class Hover:
    name, level, observes = "hover", "rate_thrust", ("velocity",)
    def command(self, observation):
        return np.array([9.5, 0.0, 0.0, 0.0])

class Zig(StraightFlight):
    name = "zig"

class Neither:
    pass
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.py"
    path.write_text(OWN)
    return path


def test_a_pilot_of_a_file_flies_and_is_flown_again_from_the_folder_alone(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_fly(FlyConfig(vehicle=("carl",), course="hover", pilot="own.py:Up", report=False, out=tmp_path / "run"))
    assert (tmp_path / "run" / "record" / "pilot.py").read_text() == OWN
    own.unlink()
    again = refly(tmp_path / "run")
    assert again.equal
    assert again.changed == ("The pilot 'own.py' is not there, seen from this folder.",)
    (tmp_path / "run" / "record" / "pilot.py").write_text(OWN + "raise SystemExit('was run')\n")
    with pytest.raises(AssetError, match=r"The pilot in .* is not the one that was flown"):
        refly(tmp_path / "run")


class Zag(StraightFlight):
    """A planner in a test."""

    name = "zag"


@pytest.mark.parametrize("planner", [Zag, Zag()])
def test_a_planner_is_given_as_a_class_or_an_object(planner: Any, tmp_path: Path) -> None:
    hall = str(wall_with_a_door(tmp_path / "hall.obj"))
    found = aw.plan(hall, planner, (-4.0, 0.0, 1.5), (-3.5, 0.0, 1.5), out=tmp_path / "run", report=False, time_limit=0.2)
    (flight,) = found.summary["flights"]
    assert (flight["pilot"], flight["outcome"]) == ("zag", "timeout")


def test_what_does_not_plan_is_no_planner(tmp_path: Path) -> None:
    for planner in (object, 3):
        with pytest.raises(AirworthyError, match=r"which has no update\(...\), setpoints\(time\) and reset\(mission\)"):
            aw.plan("hall", planner, out=tmp_path)


@pytest.mark.parametrize(
    ("name", "says"),
    [("diverged", "leaned by more than 100 degrees"), ("collision", "the ceiling"), ("out_of_bounds", "left the place")],
)
def test_what_the_watch_ends_is_labelled_with_its_cause(name: str, says: str) -> None:
    flight = GoalFlight.__new__(GoalFlight)
    flight.pilot = SimpleNamespace(causes=["", ""])  # type: ignore[assignment]
    flight._rules = NavigationProtocol()
    flight._watch = SimpleNamespace(outcome=np.array([name, ""]), end=np.array([1.25, np.nan]))  # type: ignore[assignment]
    table: Any = SimpleNamespace(status=np.zeros(2), starts=np.array([0, 1, 2]), envs=np.array([0, 1]))
    judged = flight.scored(FlightRun(table))
    assert judged.outcomes == {0: name}
    assert says in judged.causes[0]
    assert judged.causes[0].endswith("at 1.2 s")


def test_pilots_of_a_file_in_an_evaluation(own: Path, tmp_path: Path) -> None:
    found = evaluate(on_stage(tmp_path / "run", pilot=(f"{own}:Hover",), flights=1, conditions=("baseline",), report=False))
    assert found.complete
    assert [row["pilot"] for row in found.summary["flights"]] == ["hover"]
    for name, says in (("Up", "at level 'position'; in an evaluation all give 'rate_thrust'"), ("Zig", "is a planner")):
        with pytest.raises(AirworthyError, match=says):
            method_of(f"{own}:{name}")


def test_an_evaluation_flies_a_vehicle_of_a_file_and_knows_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def tried(name: str) -> Any:
        return evaluate(on_stage(tmp_path / "run", vehicle=name, flights=1, conditions=("baseline",), report=False))

    item = vehicle("flightgoggles")
    monkeypatch.chdir(tmp_path)
    write_vehicle(replace(item, name="mine"), tmp_path / "mine.toml")
    found = tried("mine.toml")
    assert found.summary["flights"][0]["vehicle"] == "mine"
    assert (tmp_path / "run" / "vehicle.toml").read_bytes() == (tmp_path / "mine.toml").read_bytes()
    assert tried(str(tmp_path / "mine.toml")).complete  # the same wherever it lies
    record = replace(item, name="given")  # and so is one that was never written
    given = aw.evaluate(
        "mpc", vehicle=record, course="hover", scene=PLACE, flights=1, conditions="baseline", out="r", report=False
    )
    assert given.summary["flights"][0]["vehicle"] == "given"
    write_vehicle(replace(item, name="mine", mass=2.0 * item.mass), tmp_path / "mine.toml")
    with pytest.raises(AirworthyError, match="vehicle_sha256"):
        tried("mine.toml")
