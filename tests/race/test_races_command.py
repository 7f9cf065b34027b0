"""`airworthy races`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.race.test_race_files import SMALL

from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError
from airworthy.race import race_names
from airworthy.race.benchmark.course_flight import CourseFlight
from airworthy.race.pilots.catalogue import race_pilots
from airworthy.race.scoring import RaceResult


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["races"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in race_names())
    assert main(["races", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == list(race_names())
    (hall,) = [row for row in rows if row["name"] == "alphapilot"]
    assert hall["length_m"] == pytest.approx(225.5, abs=0.05)  # the published one
    assert (hall["gates"], hall["test"], hall["time_limit_s"]) == (11, "loose", 300.0)


@pytest.mark.parametrize("name", [*race_names(), "random:4"])
def test_show(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["races", "show", name]) == 0
    said = capsys.readouterr().out
    assert name in said
    assert main(["races", "show", name, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["race"]["name"] == name
    assert len(shown["order"]) * shown["laps"] == shown["passages"]


def test_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    assert main(["races", "check", str(file)]) == 0
    said = capsys.readouterr().out
    assert "small is valid (2 passages of 2 gates" in said
    assert "note: no source is given" in said
    file.write_text(SMALL.replace('title = "Two gates"', 'title = "Two gates"\nvehicle = "cf99"\nsource = "me"'))
    assert main(["races", "check", str(file)]) == 2
    said = capsys.readouterr()
    assert f"{file}: Unknown vehicle 'cf99'" in said.err
    assert "is valid" not in said.out
    file.write_text(SMALL.replace('title = "Two gates"', 'title = "Two gates"\nvehicle = "kingfisher"\nsource = "me"'))
    assert main(["races", "check", str(file)]) == 0
    assert "no source" not in capsys.readouterr().out
    file.write_text(SMALL.replace("radius = 0.1", "radius = -1.0"))
    assert main(["races", "check", str(file)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "posts[0].radius must be a number, 0.001 to 5 m" in said


def test_a_race_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["races", "show", "monza"]) == 2
    assert "Unknown race 'monza'" in capsys.readouterr().err


def test_pilots_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["races", "pilots"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in race_pilots())
    assert "external:PORT" in said
    assert main(["races", "pilots", "--json"]) == 0
    assert [row["pilot"] for row in json.loads(capsys.readouterr().out)] == list(race_pilots())


def test_plans_and_flights_refuse_what_cannot_be_written_and_who_cannot_fly_before_they_solve(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("casadi")

    def solve(*_: object) -> None:
        raise AssertionError("it began to solve")

    monkeypatch.setattr("airworthy.race.planning.minimum_time._Problem.solve", solve)
    for words, said in (
        (["fly", "lsy_0", "--out", str(tmp_path)], "it is a folder"),
        (["plan", "lsy_0", "--out", str(tmp_path / "no" / "plan.json")], "No such file"),
        (["fly", "uzh_split_s", "--vehicle", "carl"], "The vehicle 'carl' has unlike rotors"),
    ):
        assert main(["races", *words]) == 2
        told = capsys.readouterr().err
        assert said in told
        assert told.count("\n") == 1


def yard(tmp_path: Path, other: str, size: float, more: str = "") -> Path:
    """A race whose second gate stands elsewhere, and may be of another size."""
    file = tmp_path / "yard.toml"
    file.write_text(YARD.format(other=other, size=size, more=more))
    return file


YARD = """
airworthy = "race"
version = 1
name = "yard"
title = "Two gates"
source = "drawn here"
vehicle = "kingfisher"
order = ["A", "B"]
start = {{ position = [0.0, 0.0, 1.5] }}
limits = {{ time_s = 20.0 }}
score = {{ rule = "time" }}

[[gates]]
name = "A"
position = [5.0, 0.0, 1.8]
opening = [2.0, 2.0]

[[gates]]
name = "B"
position = {other}
opening = [{size}, {size}]
{more}
"""


def test_a_gate_within_a_gate_is_found_by_check_plan_and_flight(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("casadi")
    file = yard(tmp_path, "[5.0, 0.0, 1.8]", 1.0)
    for word in ("check", "plan", "fly"):
        assert main(["races", word, str(file)]) == 2
        told = capsys.readouterr().err
        assert "A bar of gate 'B' stands in the opening of gate 'A' (their centres are 0 m apart)" in told
        assert told.count("\n") == 1


def test_a_gate_that_plans_have_no_way_through_is_told_without_solving(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("casadi")
    file = yard(tmp_path, "[5.2, 0.0, 1.8]", 2.0)
    said = "No plan leads through gate 'A' of the race 'yard': gate 'B' is in its way (their centres are 0.2 m apart)"
    assert main(["races", "check", str(file)]) == 0
    assert f"note: {said}" in capsys.readouterr().out
    for word in ("plan", "fly"):
        assert main(["races", word, str(file)]) == 2
        assert said in capsys.readouterr().err


def test_a_course_on_which_gates_meet_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = yard(tmp_path, "[5.0, 4.5, 1.8]", 2.0, "bound = { x = 0.0, y = 4.0 }")
    assert main(["races", "check", str(file)]) == 2
    said = capsys.readouterr().err
    assert "on its course fresh/0/" in said
    assert "stands in the opening of gate" in said


def test_a_gate_too_narrow_to_keep_off_its_edges_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = yard(tmp_path, "[9.0, 0.0, 1.8]", 0.3)
    assert main(["races", "check", str(file)]) == 0
    said = capsys.readouterr().out
    assert "note: gate 'B' leaves 0.13 m between plans and its edges" in said
    assert "gate 'A'" not in said


@pytest.mark.parametrize("words", [["plan"], ["plan", "--glances"], ["fly"]])
def test_who_waits_for_a_plan_is_told_that_it_is_being_solved(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    @contextmanager
    def waiting(text: str, *, quiet: bool = False) -> Iterator[None]:
        told.append(text)
        yield
        told.append("over")

    def solved(*_: object, **__: object) -> None:
        told.append("solving")
        raise AirworthyError("none")

    monkeypatch.setattr("airworthy.cli.races.waiting", waiting)
    for name in ("minimum_time_plan", "glancing_plan", "fly_race_courses"):
        monkeypatch.setattr(f"airworthy.cli.races.{name}", solved)
    assert main(["races", *words, "lsy_0", "--out", str(tmp_path / "x.json")]) == 2
    assert told[0].startswith("lsy_0: planning")
    assert told[1:] == ["solving"]


def test_flights_before_a_course_without_a_plan_are_kept_and_it_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("casadi")
    result = RaceResult("finished", "success", True, 3.0, 4, 3.0, (), (), (), 0, "")

    def flown(race: object, courses: list[str], *_: object, **__: object) -> list[CourseFlight]:
        if courses == ["fresh/0/1"]:
            raise AirworthyError("No plan was found.")
        return [CourseFlight(courses[0], result, "", "", 2.0, 5.0, 3.0, 1, 0, 0.05)]

    monkeypatch.setattr("airworthy.race.benchmark.course_job.fly_courses", flown)
    out = tmp_path / "flown.json"
    assert main(["races", "fly", "lsy_1", "--courses", "fresh:0/3", "--out", str(out)]) == 2
    assert "No plan was found. This was the course 'fresh/0/1', behind 1 that were flown." in capsys.readouterr().err
    kept = json.loads(out.read_text())
    assert (kept["runs"], kept["not_flown"]) == (1, ["fresh/0/1", "fresh/0/2"])
    assert main(["races", "fly", "lsy_1", "--courses", "fresh:0/1", "--out", str(out)]) == 0
    assert json.loads(out.read_text())["not_flown"] == []
