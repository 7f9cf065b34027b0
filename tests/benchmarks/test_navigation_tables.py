"""What a report says besides rates: trends, times of planning, what a run lacks; the word of a planner that finds no path."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.benchmarks.navigation.aggregation import OTHERS, failed_at, failures_of, layouts_of
from airworthy.benchmarks.navigation.config import FLEET, Flight, NavigationConfig
from airworthy.benchmarks.navigation.methods import NavigationMethod
from airworthy.benchmarks.navigation.missions import draws_of, mission_of
from airworthy.benchmarks.navigation.planner_adapter import PlannerGuide
from airworthy.benchmarks.navigation.replay import planning_times
from airworthy.benchmarks.navigation.report.tables import (
    WHY_HEADS,
    coverage,
    layout_heads,
    layout_rows,
    planning,
    runs,
    trends,
    why_rows,
)
from airworthy.cli.main import main
from airworthy.planners.straight import StraightFlight
from airworthy.vehicles import vehicle


def rows(vehicles: Any, layouts: int, held_out: int = 0) -> list[dict[str, Any]]:
    return [{"vehicle": v, "configuration": c, "layouts": held_out} for v in vehicles for c in range(1, layouts + 1)]


def test_what_a_run_lacks_is_said() -> None:
    assert coverage(rows(FLEET, 10)) == ""
    part = coverage(rows(FLEET[:6], 2))
    assert "36 vehicles and 10 layouts; here are 6 and 2" in part
    assert "easiest" in part
    assert "easiest" not in coverage(rows(FLEET[:6], 10))
    assert "drawn anew" in coverage(rows(FLEET, 10, held_out=3))


def test_only_an_interval_without_0_is_a_trend() -> None:
    def entry(pilot: str, value: float, low: float, high: float) -> dict[str, Any]:
        return {"pilot": pilot, "indicator": "twr", "value": value, "low": low, "high": high}

    nan = float("nan")
    found = trends(
        {"correlations": [entry("a", 0.8, 0.5, 0.9), entry("b", 0.1, -0.3, 0.4), entry("c", nan, nan, nan)]}, {"a": "A"}
    )
    assert [row["title"] for row in found] == ["A", "b", "c"]
    said = [(row["cells"][0]["words"], row["cells"][0]["says"]) for row in found]
    assert trends({"correlations": [entry("a", nan, nan, nan)]}, {}) == []
    assert said == [("+0.80 (+0.50 to +0.90)", "rises"), ("+0.10 (-0.30 to +0.40)", "no trend"), ("not defined", "")]


def test_times_of_planning_stand_beside_the_published() -> None:
    motion = {"latency_median_s": 1e-3, "latency_p95_s": 2e-3, "latency_max_s": 3e-3}
    took = {"ego": {"thinking": 0.5, "calls": 250.0, "flying": 3.0, "setup": 1.0}}
    found = planning({"motion": {"ego": motion, "mine": motion}, "seconds": took}, [{"pilot": "ego"}] * 4, {}, "fixed")
    ego, mine = found
    assert (ego["clock"], ego["median"], ego["p95"], ego["max"]) == ("2", "1", "2", "3")
    assert (ego["published"], ego["each_s"], ego["calls"]) == ("3.3", "1.00", 250)
    assert (mine["clock"], mine["published"], mine["each_s"], mine["calls"]) == ("", "", "", 0)


def test_where_flights_failed() -> None:
    # The line of the forest is 60 m less 2 m at both ends.
    flown = [{"success": 0, "scenario": "forest", "goal_distance_m": d} for d in (56.0, 28.0, 0.0, 99.0)]
    assert failed_at(flown) == pytest.approx((0.0 + 0.5 + 1.0 + 0.0) / 4)
    assert np.isnan(failed_at([{**flown[0], "success": 1}]))


def lost(cause: str, configuration: int, category: str = "real", **changes: Any) -> dict[str, Any]:
    """A flight that failed half way through a forest."""
    row = {"pilot": "ego", "scenario": "forest", "outcome": "collision", "success": 0, "cause": cause, "category": category}
    row |= {"configuration": configuration, "goal_distance_m": 28.0, "end_z_m": 0.3, "time_s": 8.0, "speed_max_m_s": 4.0}
    return {**row, "tracking_rmse_m": 0.2, "thrust_saturation": 0.5, **changes}


def test_why_flights_failed() -> None:
    arrived = lost("", 1, outcome="success", success=1, goal_distance_m=0.0)
    flown = [lost("hit a tree", k, time_s=float(k)) for k in (2, 3, 4, 7)] + [arrived] * 5
    flown += [lost("hit the ground", 2, "virtual", goal_distance_m=70.0, tracking_rmse_m=float("nan"))]
    trees, ground = failures_of(flown)
    assert (trees["outcome"], trees["cause"], trees["flights"], trees["of"]) == ("collision", "hit a tree", 4, 10)
    assert (trees["by_category"], trees["layouts"]) == ({"real": 4}, [2, 3, 4, 7])
    assert trees["way"] == [0.5, 0.5, 0.5]
    assert trees["time_s"] == pytest.approx([2.75, 3.5, 4.75])  # quartiles of 2, 3, 4, 7
    assert ground["by_category"] == {"virtual": 1}
    assert ground["way"] == [0.0, 0.0, 0.0]  # it was behind its start
    assert np.isnan(ground["tracking_rmse_m"])
    cells = dict(zip(WHY_HEADS, why_rows([trees, ground], {"ego": "EGO"})[0], strict=True))
    assert (cells["pilot"], cells["of flights there [%]"], cells["layouts"]) == ("EGO", "40.0", "2 to 4, 7")
    assert cells["way flown [%]"] == "50"
    assert cells["after [s]"] == "2.8 \N{EN DASH} 4.8"
    assert why_rows([ground], {})[0][WHY_HEADS.index("off the set-point [m]")] == ""


def test_an_outcome_that_is_the_whole_cause_is_told_in_words() -> None:
    outside, turned = lost("", 1, outcome="out_of_bounds"), lost("", 2, outcome="diverged")
    told = {entry["outcome"]: entry["cause"] for entry in failures_of([outside, turned])}
    assert told == {"out_of_bounds": "left the area, or rose above its ceiling", "diverged": "tilted too far, or not finite"}


def test_many_causes_are_gathered() -> None:
    flown = [lost(f"ValueError: {k}", 1, outcome="planner_crash") for k in range(20)] + [lost("ValueError: 3", 2)] * 2
    found = failures_of(flown)
    assert sum(entry["flights"] for entry in found) == 22
    assert [(entry["outcome"], entry["cause"], entry["flights"]) for entry in found[:2]] == [
        ("planner_crash", OTHERS, 14),
        ("collision", "ValueError: 3", 2),
    ]
    assert len(found) == 8


def test_success_layout_by_layout() -> None:
    arrived = lost("", 1, outcome="success", success=1)
    entry = layouts_of([arrived, arrived, lost("hit a tree", 1), lost("hit a tree", 3)])[0]
    assert entry["rates"] == pytest.approx({"1": 2 / 3, "3": 0.0})
    row = layout_rows([entry], {})[0]
    # As many columns as there are layouts anywhere, not as the whole benchmark has.
    assert layout_heads([entry]) == ["pilot", "scenario", "1", "2", "3", "all"]
    assert row == ["ego", "forest", "67", "", "0", "50.0"]  # of flights, not of layouts


@pytest.mark.parametrize(("numbers", "text"), [([], ""), ([4], "4"), ([1, 2], "1, 2"), ([1, 2, 3, 5, 6], "1 to 3, 5, 6")])
def test_runs_of_numbers(numbers: list[int], text: str) -> None:
    assert runs(numbers) == text


class Says(StraightFlight):
    """Says that it searches, as it was told to."""

    answer: Any = None

    @property
    def searching(self) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (np.array([True, False]), [True, False]),
        (None, [False, False]),  # who says nothing is judged by its work
        (np.array([True]), [False, False]),
        ("yes", [False, False]),
        (ValueError("no idea"), [False, False]),
    ],
)
def test_a_planner_says_that_it_searches(answer: Any, expected: list[bool]) -> None:
    flights, config = [Flight("maze", 1, "virt_05"), Flight("maze", 2, "virt_05")], NavigationConfig()
    mission = mission_of(flights, config, draws_of(flights, 0, config.perturb))
    guide = PlannerGuide(NavigationMethod("says", Says), mission, [vehicle("virt_05")] * 2, config, None)
    guide.planner.answer = answer
    assert guide.searching.tolist() == expected


def test_times_of_single_flights(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(
        "import time\nfrom airworthy.planners.straight import StraightFlight\n\n\n"
        "class Thinks(StraightFlight):\n"
        "    name = 'thinks'\n    batched = True\n\n"
        "    def update(self, motion, maps, active):\n"
        "        time.sleep(0.002 * (motion.time[0] < 0.2))\n"
        "        work = {'other': 1000.0 * (motion.time < 0.2)}\n"
        "        return {**super().update(motion, maps, active), 'work': work}\n"
    )
    found = planning_times([f"{own}:Thinks"], scenario="maze", flights=1)[0]
    assert found.calls == 20  # 100 Hz for 0.2 s
    assert 2.0 <= found.median_ms <= found.p95_ms <= found.longest_ms  # no sleep is shorter than asked
    assert found.counted_ms == pytest.approx(1.0)  # 1000 units of 1 microsecond
    assert "flown_s" in asdict(found)
    assert main(["bench", "timing", "--pilots", "straight", "--scenario", "maze", "--flights", "1"]) == 0
    assert "straight flight" in capsys.readouterr().out
