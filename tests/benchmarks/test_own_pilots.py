"""Classes of a user's own as pilots and planners of `fly`, `plan` and `evaluate`; their runs are complete in their folders."""

from __future__ import annotations

import os
import py_compile
import shutil
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
from airworthy.benchmarks.navigation import methods
from airworthy.benchmarks.tracking.job import evaluate
from airworthy.benchmarks.tracking.methods import method_of
from airworthy.core.errors import AirworthyError, AssetError, AssetWarning
from airworthy.core.own_modules import own_modules
from airworthy.pilots import FlightRun
from airworthy.planners import StraightFlight
from airworthy.simulation import read_flight
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


QUICK = FlyConfig(vehicle=("carl",), course="hover", hold=0.0, report=False)
HEIGHTS = "from own_parts.numbers import HIGH\nimport own_compiled, own_elsewhere\nTOP = HIGH\n"
USES_OTHERS = """
import importlib
import numpy as np
import own_heights

HIDDEN = importlib.import_module("own_hidden")

class Up:
    name, level, observes = "up", "position", ("position",)
    def command(self, observation):
        from own_heights import TOP
        return np.array([0.0, 0.0, TOP, 0.0])
"""


def test_modules_beside_a_pilot_are_kept_and_others_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module, a package, one that stands for a compiled one, one from elsewhere and one that no import names."""
    mine, far = tmp_path / "mine", tmp_path / "far"
    for folder in (mine / "own_parts", far):
        folder.mkdir(parents=True)
    (mine / "pilot.py").write_text(USES_OTHERS)
    (mine / "own_heights.py").write_text(HEIGHTS)
    (mine / "own_parts" / "__init__.py").write_text("")
    (mine / "own_parts" / "numbers.py").write_text("from . import more\nHIGH = more.HIGH\n")
    (mine / "own_parts" / "more.py").write_text("HIGH = 1.5\n")
    (mine / "own_hidden.py").write_text("")
    source = mine / "own_compiled.py"
    source.write_text("")
    py_compile.compile(str(source), cfile=str(mine / "own_compiled.pyc"))
    source.unlink()
    (far / "own_elsewhere.py").write_text("")
    monkeypatch.syspath_prepend(str(far))
    config = FlyConfig(
        vehicle=("carl",), course="hover", hold=0.0, pilot=f"{mine}/pilot.py:Up", report=False, out=tmp_path / "run"
    )
    with pytest.warns(AssetWarning) as told:
        run_fly(config)
    (warning,) = told
    text = str(warning.message)
    assert text.startswith(
        f"{mine}/pilot.py: it imports 'own_compiled', which is compiled; 'own_elsewhere', which lies outside"
    )
    assert "'own_hidden', which no import statement names" in text
    kept = tmp_path / "run" / "record" / "pilot"
    found = sorted(str(path.relative_to(kept)) for path in kept.rglob("*") if path.is_file())
    assert found == ["own_heights.py", "own_parts/__init__.py", "own_parts/more.py", "own_parts/numbers.py", "pilot.py"]


def test_which_sources_belong_to_a_pilot(tmp_path: Path) -> None:
    """A folder of data that is called as an installed package is none of them; a package of too many files is left out."""
    (tmp_path / "pilot.py").write_text("import numpy, own_many, own_folder.part, own_missing\nfrom . import nothing\n")
    for name in ("numpy", "own_folder", "own_many"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "part.py").write_text("import own_more\n")
    (tmp_path / "own_more.py").write_text("")
    for k in range(200):
        (tmp_path / "own_many" / f"m{k}.py").write_text("")
    found = own_modules(tmp_path / "pilot.py")
    assert [str(path) for path in found.files] == ["own_folder/part.py", "own_more.py"]
    assert found.left_out == {"own_many": "which is more than 200 files or 4 MB"}
    with pytest.raises(AssetError, match="cannot be read"):
        own_modules(tmp_path / "nowhere.py")


def test_a_class_that_is_made_of_a_planner_of_ours_has_its_own_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from airworthy.planners import KnownFreePlanner, StraightFlight\n"
        "class Slow(KnownFreePlanner):\n    pass\n"
        "class Named(StraightFlight):\n    name = 'called so'\n"
        "class Child(Named):\n    pass\n"
    )
    assert [methods.method_of(f"{path}:{kind}").name for kind in ("Slow", "Named", "Child")] == [
        "Slow",
        "called so",
        "called so",
    ]


@pytest.mark.filterwarnings("error::airworthy.core.errors.AssetWarning")
def test_a_run_is_flown_again_without_the_modules_of_its_pilot(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "up.py").write_text(USES_OTHERS.replace("own_heights", "own_top").replace("own_hidden", "json"))
    module = tmp_path / "mine" / "own_top.py"
    module.write_text("TOP = 1.5\n")
    for name in ("run", "other"):
        os.utime(module, (1.7e9, 1.7e9))  # edited within a second: the same time and size as before
        run_fly(replace(QUICK, pilot=f"{tmp_path}/mine/up.py:Up", out=tmp_path / name))
        module.write_text("TOP = 2.5\n")  # the second flight is that of the edited module
    first, second = (read_flight(tmp_path / name)[0].vector("position")[-1, 2] for name in ("run", "other"))
    assert second > first + 0.1
    again = refly(tmp_path / "run")
    assert again.equal
    assert [text.endswith("has changed since.") for text in again.changed] == [True]
    shutil.rmtree(tmp_path / "mine")
    assert refly(tmp_path / "run").equal
    (tmp_path / "run" / "record" / "pilot" / "own_top.py").write_text("raise SystemExit('was run')\n")
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
    with pytest.raises(AirworthyError, match="is a planner"):
        method_of(f"{own}:Zig")
    # One that commands a place flies at the rate of `airworthy fly`, as a rigid body.
    assert method_of(f"{own}:Up").rate == 100.0
    risen = evaluate(on_stage(tmp_path / "up", pilot=(f"{own}:Up",), flights=1, conditions=("baseline",), report=False))
    assert [row["family"] for row in risen.summary["flights"]] == ["rigid"]


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
