"""The figures of the navigation benchmark are as they must be, and each kind of check can fail."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airworthy.benchmarks.navigation import Benchmarked
from airworthy.evaluation.statistics import Estimate
from airworthy.verification.planning import navigation
from airworthy.verification.published import Figure, zero


def failed(figures: Iterator[Figure]) -> list[str]:
    """Names of those that are not as they must be; they are all told apart by their names."""
    found = list(figures)
    assert found
    assert len({figure.name for figure in found}) == len(found)
    return [figure.name for figure in found if not figure.passed]


def test_indicators(monkeypatch: pytest.MonkeyPatch) -> None:
    assert failed(navigation.indicator_figures()) == []
    computed = navigation.indicators
    monkeypatch.setattr(
        navigation,
        "indicators",
        lambda airframe, **how: replace(computed(airframe, **how), alpha_z_max=1.03 * computed(airframe).alpha_z_max),
    )
    assert len(failed(navigation.indicator_figures())) == 2  # off the table, and off what was measured


def test_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    assert failed(navigation.score_figures()) == []
    with monkeypatch.context() as patch:
        published = navigation.published_score
        patch.setattr(navigation, "published_score", lambda name: {**published(name), "final": published(name)["final"] + 0.1})
        assert ["Table II" in name for name in failed(navigation.score_figures())] == [True]
    small = navigation._small_table
    monkeypatch.setattr(navigation, "_small_table", lambda: [*small(), {**small()[0], "scenario": "maze"}])
    assert ["2 x 2" in name for name in failed(navigation.score_figures())] == [True]


def test_places_are_those_of_the_scenes_group(monkeypatch: pytest.MonkeyPatch) -> None:
    def figures(everything: bool) -> Iterator[Figure]:
        yield from (zero(f"{k} {everything}", 0) for k in range(10))
        raise AssertionError("an export was made")

    monkeypatch.setattr(navigation, "scene_figures", figures)
    assert [figure.name for figure in navigation.generator_figures(True)] == [f"{k} True" for k in range(10)]
    assert [figure.name for figure in navigation.generator_figures()][-1] == "9 False"


def test_coverage(monkeypatch: pytest.MonkeyPatch) -> None:
    rate = navigation.stratified_rate

    def narrow(*given: Any, **options: Any) -> Estimate:
        found = rate(*given, **options)
        return Estimate(
            found.value, found.value - 0.6 * (found.value - found.low), found.value + 0.6 * (found.high - found.value)
        )

    # Of 100 intervals 95 hold the truth, give or take 2.2.
    assert 88.0 <= navigation.coverage_figure(100).measured <= 100.0
    monkeypatch.setattr(navigation, "stratified_rate", narrow)
    figure = navigation.coverage_figure(100)
    assert figure.measured < 90.0
    assert not figure.passed


@pytest.mark.parametrize(("arrived", "finished", "passed"), [(6, 100, True), (6, 99, False), (9, 100, False)])
def test_straight_flight(monkeypatch: pytest.MonkeyPatch, arrived: int, finished: int, passed: bool) -> None:
    """The score of a table of one scenario and one vehicle is its rate [%]."""
    row = {"pilot": "straight", "scenario": "maze", "vehicle": "virt_05", "category": "virtual", "configuration": 1}
    rows = [{**row, "success": int(k < arrived)} for k in range(100)]
    run = Benchmarked(Path(), {}, finished, 100, False, None)
    monkeypatch.setattr(navigation, "run_benchmark", lambda config: run)
    monkeypatch.setattr(navigation, "read_rows", lambda folder: rows)
    score, took = navigation.straight_figures()
    assert (score.measured, score.passed) == (pytest.approx(arrived), passed)
    assert took.passed
    monkeypatch.setattr(navigation, "run_benchmark", lambda config: replace(run, interrupted=True))
    with pytest.raises(KeyboardInterrupt):
        next(navigation.straight_figures())


@pytest.mark.slow
def test_straight_flight_of_one_vehicle() -> None:
    """All that arrives is the first forest or narrow gap, of seven places: flown as in the benchmark."""
    score, _ = navigation.straight_figures(("virt_05",), 1)
    assert "7 flights" in score.name
    assert 0.0 <= score.measured <= 50.0


def test_what_is_left_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(navigation, "usable_network", lambda: None)
    assert navigation.navigation_left_out() == ["There are no weights of NavRL: the check values of its network were left out."]
    monkeypatch.setattr(navigation, "usable_network", object)
    assert navigation.navigation_left_out() == []


@pytest.mark.parametrize("everything", [False, True])
def test_the_whole_benchmark_only_with_everything(monkeypatch: pytest.MonkeyPatch, everything: bool) -> None:
    for name in ("indicator", "score", "generator", "straight", "planner"):
        monkeypatch.setattr(navigation, f"{name}_figures", lambda *given, n=name: iter([zero(n, 0)]))
    monkeypatch.setattr(navigation, "coverage_figure", lambda count: zero(f"coverage {count}", 0))
    names = [figure.name for figure in navigation.navigation_figures(everything)]
    whole = ["indicator", "score", "generator", "coverage 3000", "straight", "planner"]
    assert names == (whole if everything else ["indicator", "score", "generator", "coverage 600", "planner"])


@pytest.mark.slow
def test_the_whole_group() -> None:
    """In half a minute of processor time."""
    assert failed(navigation.navigation_figures()) == []
