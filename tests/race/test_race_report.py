"""The page of a race benchmark: passages of straight flights worked out by hand, maps and timelines, and the page itself."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.core.arrays import Array
from airworthy.race import RaceScore, load_race
from airworthy.race.benchmark.job import RaceBenchConfig, run_race_bench
from airworthy.race.benchmark.recording import RaceTrace
from airworthy.race.benchmark.tables import accuracy_text, pilot_summary
from airworthy.race.gate_geometry import GateShape, shape_of
from airworthy.race.pilots.catalogue import race_pilot
from airworthy.race.report.crossings import FlownRace, crossings_of, flown_race, gate_accuracy, gate_summary, lateral_errors
from airworthy.race.report.maps import ends_table, figure_ends, figure_speeds, kind_of_cause, speed_grid
from airworthy.race.report.page import ReportInput, shown_flights, verdict, write_race_report
from airworthy.race.report.standing import ladder, title_of
from airworthy.race.report.timelines import bridged, figure_belief, figure_visibility, legs_of, stretches
from airworthy.vehicles import vehicle

SPEED, ANGLE = 6.0, math.radians(30.0)


def gate(x: float) -> GateShape:
    """A gate of 2 m by 2 m that is flown along x."""
    corners = [(x, 1.0, 1.0), (x, -1.0, 1.0), (x, -1.0, 3.0), (x, 1.0, 3.0)]
    return shape_of(corners, (1.0, 0.0, 0.0), "gate")


def straight(**said: Array) -> FlownRace:
    """A flight of 2 s at 30 degrees to the left through gates at x = 3 and 6 m, which sees the first until half a second."""
    time = np.arange(121) / 60.0
    way = np.array([math.cos(ANGLE), math.sin(ANGLE), 0.0])
    gates = (gate(3.0), gate(6.0))
    at = [3.0 / (SPEED * way[0]), 6.0 / (SPEED * way[0])]
    visible = np.zeros((121, 2), np.uint8)
    visible[:31, 0] = 4
    visible[40:61, 1] = 2
    trace = RaceTrace(
        time=time.astype(np.float32),
        position=(SPEED * time[:, None] * way + (0.0, 0.0, 2.0)).astype(np.float32),
        velocity=np.tile(SPEED * way, (121, 1)).astype(np.float32),
        attitude=np.tile([0.0, 0.0, 0.0, 1.0], (121, 1)).astype(np.float32),
        visible=visible,
        end_position=np.array([10.0, 6.0, 2.0], np.float32),
        said={key: np.asarray(value, np.float32) for key, value in said.items()},
    )
    passages = [
        {"gate": name, "loose_s": t - 0.01, "missed": False, "strict_s": t, "offset_m": [0.5, -0.1]}
        for name, t in zip("AB", at, strict=True)
    ]
    row = {
        "pilot": "own", "course": "made/0", "end": "contact", "completed": False, "time_s": None, "score": 0.0, "passed": 2,
        "part": "Gate3, left post", "reason": "", "differing": ["B"], "missed": [], "passages": passages,
        "telemetry_errors": 0, "telemetry_reason": "",
    }  # fmt: skip
    return FlownRace(row, trace, gates)


def test_passages_of_a_straight_flight_are_those_of_its_geometry() -> None:
    first, second = crossings_of(straight())
    crossed = 3.0 / (SPEED * math.cos(ANGLE))
    assert (first.time, second.leg) == (pytest.approx(crossed), pytest.approx(crossed))
    assert first.speed == pytest.approx(SPEED, rel=1e-6)
    assert first.incidence == pytest.approx(30.0, abs=1e-4)
    assert first.loose_ahead == pytest.approx(0.01)
    assert (first.lateral, first.vertical, first.room) == (0.5, -0.1, (1.0, 1.0))
    assert (first.differs, second.differs) == (False, True)
    # Seen in frames 0 to 30, all on the first leg; last at 0.5 s, 3 m along x and 1.5 m aside.
    assert first.seen == pytest.approx(31 / 60, rel=1e-5)
    assert first.last_range == pytest.approx(math.hypot(3.0 - 3.0 * math.cos(ANGLE), 1.5), rel=1e-5)
    # The second gate in frames 40 to 60; those before the first passage are not of its leg.
    late = sum(k / 60.0 >= crossed for k in range(40, 61))
    assert second.seen == pytest.approx(late / 60, rel=1e-5)
    assert math.isnan(first.position_error)


def test_a_belief_that_is_off_by_the_same_everywhere_has_no_lateral_error() -> None:
    count, shift = 121, np.array([0.3, -0.4, 0.0])
    own = straight().trace.position + shift
    gates = np.stack([np.tile(straight().gates[k].center + shift, (count, 1)) for k in range(2)], axis=1)
    gates[:, 1, 1] += 0.07  # the second one further to the left
    sigma = np.tile([0.02, 0.05], (count, 1))
    flight = straight(position=own, gates=gates, gate_sigma=sigma)
    assert np.abs(lateral_errors(flight, 0)).max() < 1e-6
    assert lateral_errors(flight, 1) == pytest.approx(0.07, abs=1e-6)
    first, second = crossings_of(flight)
    assert first.position_error == pytest.approx(0.5, abs=1e-5)
    assert (second.gate_error, second.gate_sigma) == (pytest.approx(0.07, abs=1e-6), pytest.approx(0.05))
    lines = gate_summary([flight, flight])
    assert [line["passed"] for line in lines] == [2, 2]
    assert lines[1]["gate_rms"] == pytest.approx(0.07, abs=1e-6)
    known = gate_accuracy([flight, straight()])
    assert known == {
        "passages": 2,
        "gate_rms_m": pytest.approx(0.07 / math.sqrt(2.0), abs=1e-6),
        "gate_largest_m": pytest.approx(0.07, abs=1e-6),
        "position_rms_m": pytest.approx(0.5, abs=1e-5),
        "position_largest_m": pytest.approx(0.5, abs=1e-5),
    }
    said = accuracy_text({"gate_accuracy": known})
    assert said.startswith("At 2 passages the gate was 4.95 cm (rms; at most 7.0) beside where it was believed")
    assert said.endswith("which itself was off by 50.0 cm (at most 50.0).")
    assert gate_accuracy([straight()]) is None
    assert accuracy_text({"gate_accuracy": None}) == ""
    assert "2 sigma" in figure_belief(flight, "belief")
    assert figure_belief(straight(), "belief") == ""


def test_missed_gates_are_named_and_the_flight_belongs_to_the_leg_behind() -> None:
    flight = straight()
    first = {**flight.row["passages"][0], "loose_s": None, "strict_s": None, "missed": True}
    missed = replace(flight, row={**flight.row, "passages": [first, flight.row["passages"][1]]})
    found = crossings_of(missed)
    assert (found[0].missed, found[1].gate) == (True, "B")
    assert legs_of(missed)[0] == 0
    crossed = 3.0 / (SPEED * math.cos(ANGLE))
    whole = legs_of(flight)
    assert [int(whole[0]), int(whole[math.ceil(60 * crossed)])] == [0, 1]


def test_grid_holds_the_mean_speed_of_what_flew_there() -> None:
    flight = straight()
    slow = replace(flight, trace=replace(flight.trace, velocity=flight.trace.velocity / 2.0))
    grid = speed_grid([flight, slow], np.array([0.0, 0.0]), (30, 30))
    assert grid[0, 0] == pytest.approx(0.75 * SPEED, rel=1e-6)
    assert math.isnan(grid[29, 0])
    known = np.isfinite(grid)
    assert known.sum() == len({tuple(cell) for cell in np.floor(flight.trace.position[:, :2] / 0.5).astype(int)})


def test_ends_are_told_by_gate_and_cause() -> None:
    flight = straight()
    assert kind_of_cause(flight) == "gate"
    (line,) = ends_table([flight, replace(flight, row={**flight.row, "completed": True})])
    assert (line["gate"], line["cause"], line["count"]) == ("B", "Gate3, left post", 1)
    assert "made/0" in figure_ends([flight], "ends")
    assert figure_ends([replace(flight, row={**flight.row, "completed": True})], "ends") == ""
    for text in (figure_speeds([flight], "speeds"), figure_visibility(flight, "sight")):
        assert text.startswith("<svg")


def test_a_drop_out_of_one_frame_makes_no_gap() -> None:
    assert bridged(np.array([4, 0, 4, 0, 0, 2, 1, 3])).tolist() == [4, 4, 4, 0, 0, 2, 2, 3]
    assert stretches(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0, 2, 2, 4])) == [(1.0, 3.0, 2), (3.0, 4.0, 4)]


def test_flights_worth_a_look_are_shown_once_and_others_behind_them() -> None:
    row = straight().row
    rows = [
        {**row, "completed": done, "time_s": time, "passed": gates, "missed": ["A"] * (11 - gates), "course": f"made/{k}"}
        for k, (done, time, gates) in enumerate([(False, None, 3), (True, 13.0, 10), (True, 14.0, 11), (False, None, 1)])
    ]
    flights = [replace(straight(), row=item) for item in rows]
    # A gate more is worth ten seconds.
    assert [flight.course for _, flight in shown_flights(flights)] == ["made/2", "made/0", "made/1"]
    assert [flight.course for _, flight in shown_flights(flights, 9)] == ["made/2", "made/0", "made/1", "made/3"]
    assert [word for word, _ in shown_flights(flights[1:2], 2)] == ["Best flight"]


def test_ladder_leads_from_the_stored_plan_down() -> None:
    pilots: list[dict[str, Any]] = [
        {"pilot": name, "true_state": name.startswith("truth:"), "in_process": False} for name in ("slow", "truth:told")
    ]
    flights = {"slow": [{"time_s": 20.0, "completed": True}], "truth:told": [{"time_s": 14.0, "completed": True}] * 2}
    steps = ladder(load_race("alphapilot"), vehicle("flightgoggles_2019"), pilots, flights)
    assert [step["name"] for step in steps] == ["ideal", "truth:told (with true state)", "ideal with glances", "slow"]
    assert steps[0]["time"] == pytest.approx(13.363, abs=5e-4)
    # To look costs time.
    assert steps[2]["time"] > steps[0]["time"]
    assert sum(step["costs"] for step in steps[1:]) == pytest.approx(20.0 - 13.363, abs=5e-4)
    assert steps[3]["score"] == pytest.approx(90.0)


FALLS = """
class Falls:
    sensors = ("imu",)

    def begin(self, facts):
        pass

    def command(self, onboard):
        return [0.0, 0.0, 0.0, 0.0]

    def telemetry(self):
        return {"position": [18.0, -23.0, 5.3], "nis": 1.2, "plan": [[0.0, 0.0, 1.0]]}
"""


@pytest.mark.slow
def test_page_of_a_run_is_complete_in_itself_and_written_again_for_nothing_new(tmp_path: Path) -> None:
    (tmp_path / "falls.py").write_text(FALLS)
    config = RaceBenchConfig(pilot=f"{tmp_path / 'falls.py'}:Falls", courses="published:0-4", out=str(tmp_path / "out"))
    done = run_race_bench(config)
    assert done.report is not None
    page = done.report.read_text("utf-8")
    for text in (
        "Table III",
        "Table IV",
        "91.391",
        "Where flights ended",
        "From the ideal flight",
        "13.363",
        "Gate10",
        "floor",
    ):
        assert text in page
    assert "ours, on other courses than the 2019 evaluation set" in page
    assert "src=" not in page.replace('src="data:', "")
    assert "<script" not in page
    assert "behind the wall of a process" in page
    inside = run_race_bench(replace(config, in_process=True, out=str(tmp_path / "inside")))
    assert inside.report is not None
    assert "in the simulation&#39;s process" in inside.report.read_text("utf-8")
    again = run_race_bench(config)
    assert again.report == done.report
    assert again.report.read_text("utf-8") == page
    assert verdict(done.summary).endswith("completed 0 of 5 courses, five best 0.00 points.")


def test_flown_race_takes_the_true_gates_of_its_course() -> None:
    race = load_race("alphapilot")
    row = {**straight().row, "course": "published/7"}
    flight = flown_race(race, row, straight().trace)
    nominal = flown_race(race, {**row, "course": "nominal"}, straight().trace)
    assert len(flight.gates) == 11
    assert not np.allclose(flight.gates[0].center, nominal.gates[0].center)


def test_a_race_against_time_has_a_page_without_points_or_teams(tmp_path: Path) -> None:
    race = load_race("alphapilot")
    timed = replace(race, score=RaceScore("time"))
    passages = [
        {"gate": name, "loose_s": 1.0, "missed": False, "strict_s": 1.0, "offset_m": [0.0, 0.0]} for name, _ in race.passes
    ]
    row = {
        **straight().row, "course": "nominal", "completed": True, "end": "finished", "outcome": "success", "time_s": 12.5,
        "score": 12.5, "part": "", "clipped": 0, "irregular": 0, "passages": passages, "speed_max_mps": 6.0, "path_m": 12.0,
        "planning": {"count": 20, "charged_s": 2.0, "failed": 1}, "notes": {"braked": 2},
    }  # fmt: skip
    seen = replace(straight().trace, visible=np.zeros((121, 11), np.uint8))
    told = pilot_summary(timed, race_pilot("servo"), [row]) | {"gate_accuracy": None}
    summary = {
        "pilots": [told], "tables": None, "flights": [row], "class": "noisy", "courses": "nominal", "seed": 0,
        "state": {"complete": True}, "hardware": {"processor": "any", "cores": 1},
    }  # fmt: skip
    flights = {"servo": [flown_race(timed, row, seen)]}
    given = ReportInput(tmp_path, "airworthy bench race", timed, vehicle("flightgoggles_2019"), summary, flights)
    page = write_race_report(given).read_text("utf-8")
    assert "servo (in-process) completed 1 of 1 courses, mean time 12.50 s." in page
    assert "Out of the ordinary: braked 2 (in 1 of 1 flights)." in page
    assert (told["plans"], told["plans_failed"]) == (20, 1)
    assert "points" not in page
    assert "Table III" not in page
    assert "2019 evaluation set" not in page


def test_names_are_never_without_their_marks() -> None:
    def named(true_state: bool, in_process: bool) -> str:
        return title_of({"pilot": "mine", "true_state": true_state, "in_process": in_process})

    assert named(False, False) == "mine"
    assert named(True, False) == "mine (with true state)"
    assert named(False, True) == "mine (in-process)"
    assert named(True, True) == "mine (with true state, in-process)"
