"""What is measured of flights with the true state: up to the end of the race, and which gate was missed."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.race.flights import strict_race

from airworthy.race import Post, Race, course_of, load_race, race_vehicle, stored_plan
from airworthy.race.benchmark.course_flight import CourseFlight, _Batch, _halfway, _Knowledge
from airworthy.race.benchmark.course_job import course_row, summary_of, warning_of
from airworthy.race.benchmark.flight_measures import FlightMeasures, Measure
from airworthy.race.planning.racer import RacerModel
from airworthy.race.record import GateFrames, MoveBound
from airworthy.race.referee import RaceEnd
from airworthy.race.scoring import RaceResult
from airworthy.vehicles import vehicle

RESULT = RaceResult("finished", "success", True, 1.0, 4, 1.0, (), (), (), 0, "")
FLIGHT = CourseFlight("nominal", RESULT, "", "", 9.0, 5.0, 1.0, 1, 0, 0.1)
RACE = strict_race(vehicle="kingfisher", frames=GateFrames())


def test_measures_end_with_the_race_and_not_with_the_piece_of_flight() -> None:
    """Two flights at 1 and 2 m/s and 1000 samples a second; the second's race ends with sample 14, the first's goes on."""
    kept, samples = FlightMeasures(2), np.arange(11)[:, None, None]
    for begun in (0, 10):
        path = np.array([[1e-3, 0.0, 0.0], [0.0, 2e-3, 0.0]]) * (begun + samples)
        measures = [Measure(begun + k, np.array([1.0, begun + k]), np.array([0.01, 0.02]) * (begun + k)) for k in (0, 4, 8)]
        kept.add(np.array([True, True]), np.array([99, 14]), measures, path, begun)
    # Measured at 0, 4, 8, 10, 14 and 18: of the second flight the last does not count.
    assert kept.error == pytest.approx([0.18, 0.28])
    assert kept.speed == pytest.approx([1.0, 14.0])
    assert kept.length == pytest.approx([0.020, 0.028])
    # What had ended before stays as it is.
    kept.add(np.array([False, False]), np.array([99, 14]), [Measure(20, np.full(2, 99.0), np.ones(2))], path + 1.0, 20)
    assert kept.length == pytest.approx([0.020, 0.028])
    assert kept.error == pytest.approx([0.18, 0.28])


def test_a_speed_that_is_none_is_not_the_largest() -> None:
    kept, path = FlightMeasures(1), np.zeros((2, 1, 3))
    kept.add(np.array([True]), np.array([9]), [Measure(1, np.array([3.0])), Measure(1, np.array([np.nan]))], path, 0)
    assert kept.speed == pytest.approx([3.0])
    assert kept.error == pytest.approx([0.0])


def test_behind_its_end_nobody_is_off_a_plan() -> None:
    plans = [SimpleNamespace(duration=2.0), SimpleNamespace(duration=2.0)]
    pilot = SimpleNamespace(begun=np.array([0.0, 1.0]), plans=plans, error=np.array([0.5, 0.25]))
    off = [_Batch._off_plan(SimpleNamespace(_pilot=pilot), time).tolist() for time in (2.0, 2.5, 3.5)]  # type: ignore[arg-type]
    assert off == [[0.5, 0.25], [0.0, 0.25], [0.0, 0.0]]


@pytest.mark.parametrize(
    ("passed", "ended", "missed"), [(1, 2.09, None), (1, 2.11, "-A"), (0, 2.11, "A"), (2, 60.0, "B"), (3, 60.0, None)]
)
def test_a_gate_that_the_flight_went_on_from_is_missed(passed: int, ended: float, missed: str | None) -> None:
    race = strict_race(order=("A", "-A", "B"), gates=RACE.gates[:2])
    judged = SimpleNamespace(next_strict=np.array([passed]), end_step=np.array([round(1000 * ended)]))
    batch = SimpleNamespace(_races=[race], judged=judged, _planned=[np.array([1.0, 2.0, 3.0])])
    result = replace(RESULT, completed=False, passed=passed, end="out_of_bounds")
    name, due = _Batch._missed(batch, 0, result)  # type: ignore[arg-type]
    assert (name or None) == missed
    assert due == pytest.approx(passed + 1.0, nan_ok=True) if missed else math.isnan(due)


def test_missed_gates_are_named_in_rows_and_warning() -> None:
    lost = replace(FLIGHT, result=replace(RESULT, completed=False, end="out_of_bounds", passed=1), missed="-A", missed_s=2.014)
    said = warning_of(RACE, [replace(lost, error_max=1.9), FLIGHT])
    assert said.startswith("Warning: 1 of 2 flights missed a gate although the true state was known (-A at 2.01 s): they were")
    assert "lucky" not in said
    assert (course_row(lost)["missed"], course_row(lost)["missed_s"]) == ("-A", 2.014)
    assert (course_row(FLIGHT)["missed"], course_row(FLIGHT)["missed_s"]) == ("", None)
    # Lucky is who came through.
    stray = replace(FLIGHT, error_max=0.4)
    assert "1 of 2 flights were lucky to hit nothing" in warning_of(RACE, [stray, lost])
    assert warning_of(RACE, [replace(stray, result=replace(RESULT, completed=False, end="time_limit"))]) == ""


def test_best_and_worst_times() -> None:
    flights = [replace(FLIGHT, result=replace(RESULT, time_s=time)) for time in (2.0, 1.0, 3.0)]
    told = summary_of(RACE, flights, 0)
    assert [told[f"{which}_time_s"] for which in ("best", "mean", "worst")] == [1.0, 2.0, 3.0]


# ---- Planning anew ----------------------------------------------------------------------------------------------------------


def test_plans_go_on_from_half_of_the_present_error() -> None:
    reference, state = np.zeros(13), np.arange(13.0)
    assert _halfway(reference, state) == pytest.approx([0.0, 0.5, 1.0, 1.5, 2.0, 2.5, *np.zeros(7)])


@pytest.mark.parametrize(("before", "due", "asked"), [(0.05, True, 0), (0.09, False, 1)])
def test_right_before_a_gate_planning_anew_is_put_off(before: float, due: bool, asked: int) -> None:
    race = course_of(load_race("alphapilot"), "nominal")
    plan, told = stored_plan(race, RacerModel.of(vehicle("flightgoggles_2019"))), list[Any]()
    pilot = SimpleNamespace(plans=[plan], begun=np.zeros(1))
    known = SimpleNamespace(race=race, unseen=frozenset())
    batch = SimpleNamespace(
        _pilot=pilot,
        _races=[race],
        _known=[known],
        _is_astray=lambda flight: False,
        _planner=told.append,
        _failures=np.zeros(1),
    )
    time = float(plan.gate_times[1]) - before
    assert _Batch._replan(batch, 0, time, plan.at([time])[0][0]) is due  # type: ignore[arg-type]
    assert len(told) == asked
    assert [what.passed for what in told] == [1] * asked


def test_a_post_that_may_stand_elsewhere_is_thicker_by_the_larger_bound_until_it_is_told() -> None:
    race: Race = replace(load_race("lsy_2"), posts=(Post((1.0, 0.25), 1.55, 0.015, MoveBound(x=0.15, y=0.05)),))
    course = replace(race, posts=(Post((1.1, 0.25), 1.6, 0.015),))
    known = _Knowledge(race, course)
    assert known.race.posts[0].radius == pytest.approx(0.015 + 0.4 * 0.15)
    assert known.look(np.array([1.1, 0.3, 0.5]))
    assert known.race.posts == course.posts
    assert not known.look(np.array([1.1, 0.3, 0.5]))


def test_the_last_thrust_is_held_behind_a_plan() -> None:
    race = course_of(load_race("alphapilot"), "nominal")
    plan = stored_plan(race, RacerModel.of(vehicle("flightgoggles_2019")))
    (last, held) = plan.at([plan.duration, plan.duration + 0.5])[1]
    assert held[0] == last[0] == plan.inputs[-1, 0] > 0.0


def test_the_end_of_a_race_is_known_to_its_sample() -> None:
    """Of a flight that falls out of its limits from rest: 0.5 m of fall, without the tenth of a second that was judged."""
    race = strict_race(vehicle="kingfisher", frames=GateFrames())
    race = replace(race, limits=replace(race.limits, lower=(-10.0, -10.0, 1.5)))
    model = RacerModel.of(race_vehicle(race))
    row = stored_plan(course_of(load_race("alphapilot"), "nominal"), RacerModel.of(vehicle("flightgoggles_2019")))
    states = np.tile(np.r_[0.0, 0.0, 2.0, np.zeros(6), 1.0, np.zeros(3)], (17, 1))
    states[:, 2] -= 0.4 * np.arange(17)
    plan = replace(row, states=states, inputs=np.zeros((16, 4)), legs=np.ones(4), model=model)
    batch = _Batch(race, ["nominal"], lambda told: plan, 0)
    while not batch.over:
        batch.advance()
    (flight,) = batch.flights()
    assert int(batch.judged.end[0]) == RaceEnd.OUT_OF_BOUNDS
    # It falls at 3 m/s by then: up to 0.3 m more would be flown behind the end.
    assert flight.path_m == pytest.approx(0.5, abs=0.03)
    assert flight.missed == ""
