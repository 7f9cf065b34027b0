"""The front door: what `import airworthy as aw` offers, the scripts of its page, and its mistakes."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import webbrowser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import airworthy as aw
from airworthy.api import configured
from airworthy.benchmarks import FlyConfig, NavigationConfig
from airworthy.core.errors import AirworthyError

PAGE = Path(__file__).resolve().parents[1] / "docs" / "howto" / "python.md"
SCRIPTS = dict(re.findall(r"^## ([^\n]+)\n\n```python\n(.*?)^```", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE))

PRINTS = {
    "Fly a batch and plot it": "'success'",
    "Render depth and colour": r"\(2, 180, 320, 3\) \(2, 180, 320\) \{'shape': \[2, 180, 320\], 'least': ",
    "Train a policy and fly it": r"\d+ \{",
    "Put a planner into a place of one's own": "'success'",
    "Evaluate with a perturbation": r"wind:2\.5 ",
}
"""What each script prints, a pattern."""


def test_the_page_has_five_scripts_of_ten_lines_and_one_import() -> None:
    assert list(SCRIPTS) == list(PRINTS)
    for text in SCRIPTS.values():
        assert len(text.splitlines()) <= 10
        imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
        assert [ast.unparse(node) for node in imports] == ["import airworthy as aw"]


def test_the_error_is_at_the_front_door_and_loads_nothing_before_it_is_asked_for(tmp_path: Path) -> None:
    assert aw.AirworthyError is AirworthyError
    with pytest.raises(aw.AirworthyError, match="no_such_vehicle"):
        aw.fly("no_such_vehicle", out=tmp_path / "run")
    assert "except aw.AirworthyError as error" in PAGE.read_text()
    asked = "import sys, airworthy; early = 'airworthy.core.errors' in sys.modules; airworthy.AirworthyError; print(early)"
    told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert told.stdout == "False\n"


SLOW = ("Train a policy and fly it", "Put a planner into a place of one's own", "Evaluate with a perturbation")


@pytest.mark.parametrize("title", [pytest.param(t, marks=pytest.mark.slow if t in SLOW else ()) for t in PRINTS])
def test_scripts_run_as_printed(
    title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.chdir(tmp_path)
    exec(compile(SCRIPTS[title], title, "exec"), {})
    assert re.search(PRINTS[title], out := capsys.readouterr().out), out
    assert len(opened) == SCRIPTS[title].count(".show()")
    for address in opened:
        assert Path(address.removeprefix("file://")).is_file()


def test_all_that_is_offered_is_there() -> None:
    calls = {
        "AirworthyError",
        "Simulator",
        "bench",
        "course",
        "evaluate",
        "fly",
        "plan",
        "render",
        "scene",
        "synthesize",
        "task",
        "train",
        "vehicle",
    }
    assert calls <= set(aw.__all__)
    assert calls | {"vehicles", "scenes", "planners"} <= set(dir(aw))
    for name in calls:
        assert getattr(aw, name) is not None
    assert aw.vehicle("carl").name == "carl"
    assert aw.task("goal") == aw.tasks.GoalProtocol()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: aw.fly(env=3), r"Unknown option of fly 'env'\. Closest: 'envs'"),
        (lambda: aw.fly(envs=0), r"envs is 0; expected 1 to 1000000"),
        (lambda: aw.task("gaol"), r"Unknown task 'gaol'\. Closest: 'goal'"),
        (lambda: aw.train("svnett", "."), r"Unknown kind of network 'svnett'\. Closest: 'svnet'"),
        (lambda: aw.train("avoid", iterations=0), r"iterations is 0; expected 1 to"),
        (lambda: aw.train("avoid", "x500"), r"avoid learns in places that it draws itself, and 'x500' was given"),
        (lambda: aw.train("avoid", areas=(1.0,)), r"areas is 1\.0; expected 2 to|areas.* expected 2"),
        (
            lambda: aw.train("hover"),
            r"train needs its second argument, `data`, of hover the vehicle.*aw.train\('hover', 'cf2x_L250'\)",
        ),
        (lambda: aw.train("hover", "carl", trainer="sacc"), r"Unknown trainer 'sacc'\. Closest: 'sac'"),
        (lambda: aw.train("hover", "carl", trainer="sac", window=10), r"window=10 changes nothing|window"),
        (lambda: aw.train("motor_command", "carl"), r"motor_command is learnt on tinyprop"),
        (lambda: aw.train("recovery", minuts=1), r"Unknown option of train task 'minuts'"),
        (
            lambda: aw.train("px4_motor_command", trainer="gradient"),
            r"The gradient learns .*, not the task 'px4_motor_command'",
        ),
        (lambda: aw.train("foundation", histori=1), r"Unknown option of train foundation 'histori'\. Closest: 'history'"),
        (lambda: aw.plan("hall", "egoo"), r"Unknown planner 'egoo'\. Closest: 'ego"),
        (lambda: aw.render("hall", (0, 0, 1)), r"needs either what it looks at"),
        (
            lambda: aw.render("hall", [(0, 0, 1)], target=(np.inf, 0, 1)),
            r"^`target` of cameras is \[inf, 0.0, 1.0\]; expected finite",
        ),
        (
            lambda: aw.render("hall", (0, np.nan, 1), target=(1, 0, 1)),
            r"^`position` of cameras is \[0.0, nan, 1.0\]; expected fi",
        ),
        (lambda: aw.render("hall", (0, 0, 1), attitude=(0, 0, 0, np.nan)), r"^`attitude` of cameras is .* expected finite"),
        (lambda: aw.render("hall", (0, 1), target=(1, 0, 1)), r"^`position` of cameras has shape \(2,\); expected \(3,\)"),
        (lambda: aw.render("hall", (0, 0, 1), target=np.zeros((2, 3))), r"^`target` .* \(2, 3\); expected \(3,\) or \(1, 3\)"),
        (lambda: aw.scenes.look_at((0, 0, 1), (1e200, 0, 1)), r"^A camera's target is .* expected three finite coordinates"),
        (lambda: aw.bench.navigation(depth_nose=0.1), r"Closest: 'depth_noise'"),
    ],
)
def test_mistakes_are_one_sentence(call: Any, message: str) -> None:
    with pytest.raises(AirworthyError, match=message):
        call()


def test_keywords_become_configurations(tmp_path: Path) -> None:
    given = {"vehicle": "carl", "wind": np.array([1.0, 0.0, 0.0]), "randomize": "default", "out": str(tmp_path)}
    assert configured("fly", given, FlyConfig) == (
        FlyConfig(vehicle=("carl",), wind=(1.0, 0.0, 0.0), randomize=("default",), out=tmp_path),
    )
    (chosen,) = configured("bench", {"pilots": "ego", "depth_noise": 0.1, "seed": 3}, NavigationConfig)
    assert (chosen.pilots, chosen.perturb.depth_noise, chosen.seed) == (("ego",), 0.1, 3)


def test_records_are_flown_as_their_files_are(tmp_path: Path) -> None:
    drone, line = aw.vehicle("carl"), aw.course("line")
    by_record = aw.fly(drone, course=line, out=tmp_path / "record", report=False)
    by_name = aw.fly("carl", course="line", out=tmp_path / "name", report=False)
    assert by_record.frame().equals(by_name.frame())
    assert (tmp_path / "record_inputs" / "carl.toml").is_file()
    with pytest.raises(AirworthyError, match=r"holds no report\.html: run it with report=True"):
        by_name.report()


def test_paths_that_cannot_be_meant_are_one_sentence_in_python_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    empty = [
        lambda: aw.train("hover", "flightgoggles", out=""),
        lambda: aw.train("recovery", out=""),
        lambda: aw.fly(out=""),
        lambda: aw.plan("forest", out=""),
        lambda: aw.render("forest", (0, 0, 1), (1, 0, 1), out=""),
        lambda: aw.bench.race(out=""),
        lambda: aw.synthesize(""),
    ]
    for call in empty:
        with pytest.raises(AirworthyError, match=r"out is ''|The folder to be made is ''"):
            call()
    long = "a" * 300
    for call in (
        lambda: aw.train("hover", "flightgoggles", out=long),
        lambda: aw.train(f"{long}.py:T"),
        lambda: aw.fly(pilot=f"policy:{long}"),
    ):
        with pytest.raises(AirworthyError, match=r"has 30\d bytes; expected at most 255|too long|no file|no folder"):
            call()
    assert list(tmp_path.iterdir()) == []
