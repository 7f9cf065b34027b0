"""`airworthy races`."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.race.test_race_files import SMALL

from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError
from airworthy.race import load_race, race_names
from airworthy.race.benchmark.course_flight import CourseFlight
from airworthy.race.benchmark.course_job import fly_race_courses, summary_of
from airworthy.race.pilots.catalogue import race_pilots
from airworthy.race.planning.course_planner import CoursePlanner
from airworthy.race.racers import race_vehicle
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

    monkeypatch.setattr("airworthy.race.planning.minimum_time_program.MinimumTimeProgram.solve", solve)
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


@pytest.mark.parametrize(
    ("race", "needed", "flights", "reserve"),
    [
        ("lsy_0", 0.0, 1, 0.0),
        ("lsy_0", 0.03, 2, 0.03),
        ("lsy_0", 0.07, 3, 0.07),
        # Nothing helps: the boldest flight is told. Vehicles that are drawn, and gates told in flight, are not rehearsed.
        ("lsy_0", 0.5, 3, 0.0),
        ("lsy_1", 0.03, 1, 0.0),
        ("lsy_2", 0.03, 1, 0.0),
    ],
)
def test_a_race_that_is_known_is_rehearsed(
    race: str, needed: float, flights: int, reserve: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("casadi")
    asked: list[float] = []

    def flown(race: object, courses: list[str], planned: Any, **_: object) -> list[CourseFlight]:
        (plans,) = planned.args
        asked.append(usual.options.power - plans.options.power)
        done = asked[-1] >= needed - 1e-9
        result = RaceResult("finished" if done else "contact", "success", done, 3.0, 4, 3.0, (), (), (), 0, "")
        return [CourseFlight(courses[0], result, "", "", 2.0, 5.0, 3.0, 1, 0, 0.05)]

    flown_race = load_race(race)
    usual = CoursePlanner.of(flown_race, race_vehicle(flown_race))
    monkeypatch.setattr("airworthy.race.benchmark.course_job.fly_courses", flown)
    course = "nominal" if race == "lsy_0" else "fresh/0/1"
    (flight,) = fly_race_courses(flown_race, [course])
    # Where none is completed the others are told all the same.
    assert (len(asked), flight.reserve, flight.rehearsals) == (flights, reserve, flights - 1)
    assert flight.result.completed is (needed <= 0.0 or reserve > 0.0)
    said = f"; 1 of 1 behind rehearsals that were lost ({course})"
    note = summary_of(flown_race, [flight], 0)["note"]
    assert note.endswith(said) is (reserve > 0.0)
    assert note.endswith(f"; 1 of 1 lost, and calmer ones too: 2 of {course}") is (needed == 0.5)
    np.testing.assert_allclose(asked, [0.0, 0.03, 0.07][:flights], atol=1e-12)


@pytest.mark.parametrize(("number", "code"), [(None, 130), (signal.SIGTERM, 143)])
def test_a_stop_keeps_what_was_flown_and_says_so(
    number: signal.Signals | None,
    code: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("casadi")
    result = RaceResult("finished", "success", True, 3.0, 4, 3.0, (), (), (), 0, "")

    def flown(race: object, courses: list[str], *_: object, **__: object) -> list[CourseFlight]:
        if courses == ["fresh/0/1"] and number is None:
            raise KeyboardInterrupt
        if courses == ["fresh/0/1"]:
            signal.raise_signal(number)
        return [CourseFlight(courses[0], result, "", "", 2.0, 5.0, 3.0, 1, 0, 0.05)]

    monkeypatch.setattr("airworthy.race.benchmark.course_job.fly_courses", flown)
    out = tmp_path / "flown.json"
    assert main(["races", "fly", "lsy_1", "--courses", "fresh:0/3", "--out", str(out)]) == code
    said = capsys.readouterr()
    assert f"Stopped: 1 of 3 courses were flown: {out} holds them, and names those that were not flown.\n" in said.err
    assert said.out == ""
    kept = json.loads(out.read_text())
    assert (kept["runs"], kept["not_flown"]) == (1, ["fresh/0/1", "fresh/0/2"])
    assert main(["races", "fly", "lsy_1", "--courses", "fresh/0/1,nominal"]) == code
    assert "Stopped: no course was flown to its end." in capsys.readouterr().err


def test_who_missed_a_gate_is_told_which_and_when(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("casadi")
    result = RaceResult("out_of_bounds", "out_of_bounds", False, 0.0, 2, 0.0, (), (), (), 0, "")
    flight = CourseFlight("nominal", result, "", "", 2.0, 5.0, 3.0, 1, 0, 0.05, missed="3", missed_s=2.0145)
    monkeypatch.setattr("airworthy.race.benchmark.course_job.fly_courses", lambda *_, **__: [flight])
    assert main(["races", "fly", "lsy_0"]) == 0
    said = capsys.readouterr()
    assert "lsy_0 nominal: out_of_bounds, as 2 calmer flights, missed gate 3 at 2.014 s, 2 of 4 passages" in said.err
    assert "missed 3 at 2.01 s" in said.out


def test_courses_are_those_of_the_race_that_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    for courses, said in (
        ("fresh:1/x", "The race 'lsy_2' has no course 'fresh:1/x'; expected nominal, fresh/SEED/NUMBER, fresh:SEED/COUNT or"),
        ("nominal,monza", "The race 'lsy_2' has no course 'monza'"),
        ("published:0-4", "The race 'lsy_2' has no course 'published:0-4'"),
    ):
        assert main(["races", "fly", "lsy_2", "--courses", courses]) == 2
        told = capsys.readouterr().err
        assert said in told
        assert "AlphaPilot" not in told
    assert main(["races", "fly", "lsy_0", "--courses", "fresh:0/3"]) == 2
    assert "Nothing of the race 'lsy_0' is drawn: its one course is nominal, not 'fresh:0/3'." in capsys.readouterr().err


def test_a_time_limit_that_no_plan_keeps_is_noted_before_and_in_the_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = yard(tmp_path, "[10.0, 0.0, 1.8]", 2.0)
    file.write_text(file.read_text().replace("time_s = 20.0", "time_s = 0.55"))
    said = "note: limits.time_s is 0.55 s for 10 m from gate to gate, which asks for 18.2 m/s on average"
    assert main(["races", "check", str(file)]) == 0
    assert said in capsys.readouterr().out

    def solved(*_: object) -> None:
        raise AirworthyError("none")

    monkeypatch.setattr("airworthy.cli.races.minimum_time_plan", solved)
    assert main(["races", "plan", str(file), "--out", str(tmp_path / "x.json")]) == 2
    assert said in capsys.readouterr().err
    file.write_text(file.read_text().replace("time_s = 0.55", "time_s = 0.3"))
    assert main(["races", "check", str(file)]) == 0
    assert "note: The race 'yard' ends after 0.3 s (limits.time_s), and no flight through its gates" in capsys.readouterr().out


def test_an_opening_that_is_no_rectangle_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = yard(tmp_path, "[10.0, 0.0, 1.8]", 2.0)
    pose = "position = [5.0, 0.0, 1.8]\nopening = [2.0, 2.0]"
    corners = "corners = [[5.0, 1.0, 2.8], [5.0, -1.0, 2.8], [5.0, -0.7, 0.8], [5.0, 0.7, 0.8]]\ndirection = [1.0, 0.0, 0.0]"
    assert pose in file.read_text()
    file.write_text(file.read_text().replace(pose, corners))
    assert main(["races", "check", str(file)]) == 0
    assert "note: gate 'A' fills 85 % of the rectangle about its centre" in capsys.readouterr().out
