"""Scores, final scores and their statistics, and the published tables with ours among them."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from tests.race.flights import flown, row_race, strict_race

from airworthy.core.errors import AirworthyError
from airworthy.core.files import data_dir
from airworthy.race import (
    RaceScore,
    Referee,
    best_interval,
    blocks_of,
    final_score,
    load_race,
    published_scores,
    published_sensors,
    published_source,
    race_results,
    race_statistics,
    run_score,
    scores_with_ours,
    sensors_with_ours,
)
from airworthy.race.benchmark.tables import final_range

QUALIFIER = load_race("alphapilot").score
TIMED = RaceScore("time")


def test_the_winners_time_and_score() -> None:
    assert run_score(QUALIFIER, 11, 18.609) == pytest.approx(91.391, abs=1e-9)
    assert run_score(QUALIFIER, 10, 18.609) == pytest.approx(81.391, abs=1e-9)  # a missed gate is not counted
    assert run_score(QUALIFIER, 11, math.nan) == 0.0  # not completed
    assert run_score(TIMED, 4, 5.25) == 5.25


def test_every_published_row_gives_its_final_score() -> None:
    """Five scores, each rounded to 0.001, and their mean, rounded as well."""
    rows = published_scores()
    assert [row.rank for row in rows] == list(range(1, 21))
    assert [row.final for row in rows] == sorted((row.final for row in rows), reverse=True)
    for row in rows:
        assert final_score(QUALIFIER, [*row.best, *[0.0] * 20]) == pytest.approx(row.final, abs=1e-3)
        assert list(row.best) == sorted(row.best, reverse=True)


def test_the_sensors_tables_weighted_mean_is_that_of_the_paper() -> None:
    rows = published_sensors()
    teams = np.array([row.teams for row in rows])
    assert teams.sum() == 20
    assert teams @ [row.completed_percent for row in rows] / 20 == pytest.approx(43.0, abs=0.01)
    assert teams @ [row.mean for row in rows] / 20 == pytest.approx(30.86, abs=0.01)
    assert "1905.11377" in published_source()


def test_the_tables_are_those_of_the_reference_data() -> None:
    folder = data_dir()
    if folder is None:
        pytest.skip("AIRWORTHY_DATA is unset")
    with open(folder / "flightgoggles" / "alphapilot_scores.csv", encoding="utf-8") as file:
        rows = [tuple(map(float, row[:7])) for row in list(csv.reader(file))[1:]]
    assert [(row.rank, row.final, *row.best) for row in published_scores()] == rows
    names = {"ir": "beacons"}
    table = json.loads((folder / "flightgoggles" / "alphapilot_sensor_packages.json").read_text())["table"]
    assert [(row.used, row.teams, row.completed_percent, row.mean, row.std) for row in published_sensors()] == [
        (tuple(names.get(x, x) for x in r["sensors"]), r["teams"], r["completed_runs_pct"], r["mean_score"], r["std"])
        for r in table
    ]


def test_ours_stand_at_their_rank_and_are_marked() -> None:
    rng = np.random.default_rng(0)
    best = 96.0 + 0.3 * rng.random(25)
    table = scores_with_ours({"race": best, "servo": [50.0] * 5 + [0.0] * 20, "truth:race": best + 0.5})
    assert [row.name for row in table[:3]] == ["truth:race", "race", ""]
    assert [row.rank for row in table[:4]] == [1, 1, 1, 2]
    (servo,) = [row for row in table if row.name == "servo"]
    assert servo.rank == 17
    assert servo.final == 50.0
    assert table.index(servo) == 2 + 16
    assert {row.note for row in table if not row.name} == {""}
    assert table[1].note == "ours, on other courses than the 2019 evaluation set"
    assert table[0].note == "ours, on other courses than the 2019 evaluation set, with true state"
    assert tuple(row for row in table if not row.name) == published_scores()
    np.testing.assert_array_equal(table[1].best, np.sort(best)[::-1][:5])


def test_who_ties_a_team_stands_behind_it() -> None:
    winner = published_scores()[0]
    table = scores_with_ours({"same": [winner.final] * 5})
    assert [row.name for row in table[:2]] == ["", "same"]
    assert table[1].rank == 2


def test_rows_by_sensors() -> None:
    rows = sensors_with_ours({("imu", "beacons"): [(True, 96.0), (True, 95.0), (False, 0.0)]})
    assert rows[:4] == published_sensors()
    assert rows[4].completed_percent == pytest.approx(200 / 3)
    assert rows[4].mean == pytest.approx(191 / 3)
    assert rows[4].std == pytest.approx(np.std([96.0, 95.0, 0.0], ddof=1))
    with pytest.raises(AirworthyError, match="No run was given for the sensors imu"):
        sensors_with_ours({("imu",): []})


def test_final_scores_take_as_many_runs_as_they_say() -> None:
    assert final_score(QUALIFIER, range(25)) == 22.0
    for count in (4, 26):
        with pytest.raises(AirworthyError, match=f"{count} runs were given; expected 5 to 25"):
            final_score(QUALIFIER, np.zeros(count))
    with pytest.raises(AirworthyError, match="not a number"):
        final_score(QUALIFIER, [math.nan] * 25)
    assert final_score(TIMED, [5.0, math.nan, 6.0]) == 5.5
    assert math.isnan(final_score(TIMED, [math.nan]))


def test_blocks_make_one_final_score_each() -> None:
    assert [len(block) for block in blocks_of(QUALIFIER, np.arange(60))] == [25, 25]
    assert blocks_of(QUALIFIER, np.arange(60))[1][0] == 25.0
    assert [len(block) for block in blocks_of(QUALIFIER, np.arange(10))] == [10]
    assert blocks_of(QUALIFIER, np.arange(4)) == ()
    assert [len(block) for block in blocks_of(TIMED, np.arange(60))] == [60]


def test_the_interval_of_the_best_five() -> None:
    """Of 25 values by chance, drawn again: the interval lies around the value, and above the mean of all."""
    scores = 90.0 + np.random.default_rng(1).normal(size=25)
    found = best_interval(QUALIFIER, scores, seed=3)
    assert found.value == pytest.approx(np.sort(scores)[-5:].mean())
    assert scores.mean() < found.low < found.value < found.high <= scores.max()
    assert found == best_interval(QUALIFIER, scores, seed=3)
    alike = best_interval(QUALIFIER, [95.0] * 25)
    assert (alike.low, alike.high) == (95.0, 95.0)
    # Its quantiles by an independent form: how often the k-th best of a draw is which of the values.
    drawn = np.sort(np.random.default_rng(9).choice(scores, (20000, 25)), axis=1)[:, -5:].mean(axis=1)
    assert found.low == pytest.approx(np.quantile(drawn, 0.025), abs=0.05)
    assert found.high == pytest.approx(np.quantile(drawn, 0.975), abs=0.05)


def test_statistics_of_several_flights() -> None:
    race = row_race()
    paths = [flown((0, 0), (25, 0)), flown((0, 0), (12, 0)), flown((0, 0), (7, 0), (8, 3), (12, 3), (13, 0), (21, 0))]
    length = max(map(len, paths))
    padded = np.stack([np.concatenate([p, np.repeat(p[-1:], length - len(p), axis=0)]) for p in paths], axis=1)
    referee = Referee(race, 3)
    results = race_results(referee, referee.judge(padded))
    found = race_statistics(race.score, results)
    assert (found["runs"], found["completed"]) == (3, 2)
    # Wilson 1927 for 2 of 3 at 95 %.
    assert found["completion"]["low"] == pytest.approx(0.2077, abs=1e-4)
    assert found["completion"]["high"] == pytest.approx(0.9385, abs=1e-4)
    assert found["ends"] == {"finished": 2, "running": 1}
    assert found["passages_missed"] == 1
    assert found["differing"] == 2
    assert found["time_s"]["count"] == 2
    assert found["final"] == []  # fewer runs than count
    assert found["left_out"] == 3
    with pytest.raises(AirworthyError, match="No run was given"):
        race_statistics(race.score, [])


def test_statistics_of_a_race_against_time() -> None:
    race = strict_race()
    referee = Referee(race, 1)
    results = race_results(referee, referee.judge(flown((0, 0), (25, 0))[:, None]))
    found = race_statistics(race.score, results * 4)
    assert found["final"][0]["value"] == pytest.approx(2.0)
    assert found["passages_missed"] == 0


def test_no_reference_file_is_shipped() -> None:
    """Values are; the files they were read from are not: beside programs, pages and races, all that lies there is made here."""
    folder = Path(str(load_race.__code__.co_filename)).parent
    made = {
        "learned/alphapilot/contract.json",  # by `airworthy train race`
        "learned/alphapilot/weights.safetensors",
        "planning/alphapilot_glances.json",  # by `airworthy races plan`
        "planning/alphapilot_nominal.json",
    }
    programs = {".py", ".pyc", ".h", ".cpp", ".toml", ".j2"}
    files = [item for item in folder.rglob("*") if item.is_file() and item.suffix not in programs]
    found = {item.relative_to(folder).as_posix() for item in files}
    assert found == made


def test_finals_of_several_blocks_are_said_to_be_so() -> None:
    """An interval of one block is none of the mean of several."""
    blocks = [{"value": 96.2, "low": 96.0, "high": 96.4}, {"value": 96.4, "low": 96.3, "high": 96.5}]
    assert final_range({"final": blocks[:1], "final_runs": [25]}) == "96.00 to 96.40"
    assert final_range({"final": blocks, "final_runs": [25, 25]}) == "96.20 to 96.40 in 2 blocks of 25"
    assert final_range({"final": [], "final_runs": []}) == ""
