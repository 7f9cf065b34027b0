"""Score and statistics of the navigation benchmark against the paper, hand-computed numbers, and what they promise."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airworthy.benchmarks.navigation.aggregation import _correlations, _correlations_within, _paired, summarize
from airworthy.benchmarks.navigation.intervals import layout_difference, paired_difference, spearman, stratified_rate
from airworthy.benchmarks.navigation.score import (
    Score,
    cells_of,
    differences,
    final_scores,
    flips_of,
    least_time,
    line_of,
    published_score,
    scenario_weight,
    score_of,
    score_table,
    stated_rate,
    timed_scores,
    timed_success,
    vehicle_weight,
)
from airworthy.benchmarks.navigation.store import read_rows
from airworthy.core.errors import AirworthyError
from airworthy.planners.straight import trapezoid
from airworthy.scenes.generators import SCENARIOS
from airworthy.tasks.navigation import NavigationProtocol

TABLE_2 = {
    "ego": (30.25, 0.120, 21.32),
    "fast": (37.34, 0.106, 27.58),
    "pgo": (20.39, 0.054, 17.70),
    "navrl": (37.78, 0.122, 26.41),
    "straight": (6.05, 0.005, 5.97),
}


def row(
    pilot: str, scenario: str, vehicle: str, configuration: int, success: int, repeat: int = 0, **more: Any
) -> dict[str, Any]:
    category = "real" if vehicle.startswith("real") else "virtual"
    key = {"pilot": pilot, "scenario": scenario, "vehicle": vehicle, "configuration": configuration, "repeat": repeat}
    facts = {"twr": 2.0, "alpha_xy": 100.0, "alpha_z": 10.0, "mass_kg": 1.0, "seed": 0, "layouts": 0}
    return {**key, "success": success, "category": category, **facts, **more}


# ---- the score ------------------------------------------------------------------------------------------------------


def test_final_scores_of_table_2() -> None:
    scores = [Score(name, score, variance, (), 1, 1) for name, (score, variance, _) in TABLE_2.items()]
    for item in final_scores(scores):
        # The printed variances have three digits: 0.0005 of 0.12 times 0.3 of 38 are 0.05.
        assert item.final == pytest.approx(TABLE_2[item.pilot][2], abs=0.05)


@pytest.mark.parametrize("successes", [10, 7, 0])
def test_a_pilot_alone_that_is_the_same_everywhere_loses_nothing_by_rounding(successes: int) -> None:
    """The mean over the fleet is off by a rounding, which was all the variance in the table, so that 30 % were taken."""
    fleet = [f"{kind}_{k:02d}" for kind in ("real", "virt") for k in range(1, 19)]
    rows = [row("one", place, name, k, k <= successes) for place in ("forest", "maze") for name in fleet for k in range(1, 11)]
    (found,) = score_table(rows)
    assert found.variance == 0.0
    assert found.final == found.absolute == found.score == pytest.approx(10.0 * successes)


def test_a_hand_computed_table_with_a_missing_scenario() -> None:
    # forest (1.2) and maze (1.0) on a real (1.5) and a virtual (1.0) vehicle: W = 0.6, 0.4 within a scenario.
    rows = [row("a", "forest", "real_01", k, k <= 8) for k in range(1, 11)]
    rows += [row("a", "forest", "virt_01", k, k <= 3) for k in range(1, 11)]
    rows += [row("b", "forest", "real_01", k, k <= 5) for k in range(1, 11)]
    rows += [row("b", "forest", "virt_01", k, 0) for k in range(1, 11)]
    rows += [row("b", "maze", "real_01", k, k <= 1) for k in range(1, 11)]
    rows += [row("b", "maze", "virt_01", k, k <= 2) for k in range(1, 11)]
    found = {item.pilot: item for item in score_table(rows)}
    # a: 0.6 * 0.8 + 0.4 * 0.3 = 0.6; variance 0.6 * 0.04 + 0.4 * 0.09 = 0.06.
    assert (found["a"].score, found["a"].variance) == pytest.approx((60.0, 0.06))
    assert (found["a"].missing, found["a"].reference_only) == (("maze",), True)
    # b: (1.2 * 0.3 + 1.0 * (0.06 + 0.08)) / 2.2 = 5/22.
    mean = 5.0 / 22.0
    spread = (1.2 * (0.6 * (0.5 - mean) ** 2 + 0.4 * mean**2) + 0.6 * (0.1 - mean) ** 2 + 0.4 * (0.2 - mean) ** 2) / 2.2
    assert (found["b"].score, found["b"].variance) == pytest.approx((100 * mean, spread))
    # The largest variance is a's, flagged as it is.
    assert found["a"].final == pytest.approx(60.0 * 0.7)
    assert found["b"].final == pytest.approx(100 * mean * (1.0 - 0.3 * spread / 0.06))
    assert found["b"].absolute == pytest.approx(100 * mean * (1.0 - 0.3 * spread / 0.25))
    assert [item.pilot for item in score_table(rows)] == ["b", "a"]  # what is for reference stands below


def test_missing_vehicles_are_never_zeros() -> None:
    cells = np.array([[0.8, np.nan], [0.4, 0.2]])
    found = score_of(cells, [1.0, 1.0], [1.5, 1.0])
    assert found.score == pytest.approx(100 * 0.5 * (0.8 + 0.6 * 0.4 + 0.4 * 0.2))
    assert (found.cells, found.cells_wanted, found.missing, found.reference_only) == (3, 4, (), True)
    assert np.isnan(score_of(np.full((2, 2), np.nan), [1, 1], [1, 1]).score)


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1))
def test_a_score_is_a_mean(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells, rows, columns = rng.random((4, 5)), rng.uniform(0.5, 2.0, 4), rng.uniform(0.5, 2.0, 5)
    found = score_of(cells, rows, columns)
    weight = np.outer(rows / rows.sum(), columns / columns.sum())
    assert found.score == pytest.approx(100 * (weight * cells).sum())
    assert found.variance == pytest.approx((weight * (cells - found.score / 100) ** 2).sum())
    assert 0.0 <= found.variance <= 0.25 + 1e-12
    turned = score_of(cells[::-1, ::-1], rows[::-1], columns[::-1])
    assert (turned.score, turned.variance) == pytest.approx((found.score, found.variance))


def test_scores_refuse_what_is_no_rate() -> None:
    for cells, weights, why in (([[1.2]], [1.0], "between 0 and 1"), ([[0.5]], [1.0, 1.0], "have to fit")):
        with pytest.raises(AirworthyError, match=why):
            score_of(cells, weights, [1.0])
    with pytest.raises(AirworthyError, match=r"beta is 1\.5"):
        final_scores([], 1.5)


def test_weights_are_those_of_the_data(data_dir: Path) -> None:
    stated = json.loads((data_dir / "flyingtrust" / "scoring.json").read_text())
    total = sum(scenario_weight(name) for name in SCENARIOS)
    for name in SCENARIOS:
        assert scenario_weight(name) / total == pytest.approx(stated["normalised_scenario_weight"][stated["scenarios"][name]])
    fleet = 18 * (vehicle_weight("real") + vehicle_weight("virtual"))
    for kind in ("real", "virtual"):
        assert vehicle_weight(kind) / fleet == pytest.approx(stated["normalised_platform_weight"][kind])


def test_published_numbers_are_those_of_the_data(data_dir: Path) -> None:
    names = {"EGO-Planner": "ego", "Fast-Planner": "fast", "PGO": "pgo", "NavRL": "navrl", "Straight": "straight"}
    keys = {"score": "score", "variance": "variance", "final_score": "final"}
    checked = 0
    with (data_dir / "flyingtrust" / "paper_results.csv").open() as file:
        for item in csv.DictReader(file):
            pilot = names.get(item["algorithm"])
            if pilot is None or not item["value"]:
                continue
            if item["metric"] in keys:
                score = published_score(pilot)
                assert score is not None
                assert score[keys[item["metric"]]] == float(item["value"])
            elif item["metric"] == "success":
                rate = stated_rate(pilot, item["scenario"])
                assert rate is not None
                assert rate.value == float(item["value"])
                assert rate.relation == ("-" if "-" in item["relation"] else item["relation"])
            else:
                continue
            checked += 1
    assert checked == 15 + 23


def test_how_far_a_rate_is_off() -> None:
    found = {
        (d["pilot"], d["scenario"]): d
        for d in differences(
            {("fast", "forest"): 0.9, ("pgo", "sudden_drop"): 0.17, ("straight", "urban"): 0.2, ("x", "maze"): 0}
        )
    }
    assert found["fast", "forest"]["off"] == 0.0
    assert found["pgo", "sudden_drop"]["off"] == pytest.approx(0.12)
    assert found["pgo", "sudden_drop"]["far"]
    assert found["straight", "urban"]["off"] == pytest.approx(0.0)
    assert len(found) == 3


# ---- statistics -----------------------------------------------------------------------------------------------------


def test_bootstrap_intervals_cover(monkeypatch: pytest.MonkeyPatch) -> None:
    """36 vehicles with rates of their own, 10 layouts each: 93 to 97 % of the intervals hold the true mean.

    Of 600 intervals that hold it with 95 % each, 93.2 to 96.8 % do within two standard deviations (0.89 %).
    """
    rng, hits, count = np.random.default_rng(7), 0, 600
    from airworthy.benchmarks.navigation import intervals

    for k in range(count):
        rates = rng.beta(1.5, 1.5, 36)
        table = (rng.random((36, 10)) < rates[:, None]).astype(float)
        monkeypatch.setattr(intervals, "_layout_means", lambda rows, stratum, t=table: (t, np.ones_like(t)))
        found = stratified_rate([], "vehicle", seed=k, resamples=300)
        hits += found.low <= rates.mean() <= found.high
    assert 0.93 <= hits / count <= 0.97


def test_shared_layouts_widen_the_interval() -> None:
    # Layouts decide everything: with other layouts the rate would move, for these vehicles it would not.
    rows = [row("a", "forest", f"v{v}", c, int(c <= 3)) for v in range(20) for c in range(1, 11)]
    own, shared = stratified_rate(rows, "vehicle"), stratified_rate(rows, "vehicle", shared_layouts=True)
    assert own.value == shared.value == pytest.approx(0.3)
    assert shared.high - shared.low > 3 * (own.high - own.low)


def test_repeats_are_the_third_level() -> None:
    once = [row("a", "forest", f"v{v}", c, (v + c) % 2) for v in range(6) for c in range(1, 11)]
    often = [{**item, "repeat": k} for item in once for k in range(4)]
    assert stratified_rate(often, "vehicle").value == stratified_rate(once, "vehicle").value
    mixed = [row("a", "forest", "v0", c, k % 2, k) for c in range(1, 11) for k in range(4)]
    found = stratified_rate(mixed, "vehicle")
    assert found.value == 0.5
    assert found.low < 0.5 < found.high  # every layout has the same mean: only repeats vary


def test_too_little_gives_no_interval() -> None:
    assert np.isnan(stratified_rate([], "vehicle").value)
    alone = stratified_rate([row("a", "forest", "v", 1, 1)], "vehicle")
    assert alone.value == 1.0
    assert np.isnan(alone.low)
    certain = stratified_rate([row("a", "forest", "v", c, 0) for c in range(1, 11)], "vehicle")
    assert (certain.value, certain.low, certain.high) == (0.0, 0.0, pytest.approx(0.2775, abs=1e-4)), "Wilson's for 0 of 10"


def test_statistics_do_not_depend_on_the_order_of_rows_within_a_layout() -> None:
    rng = np.random.default_rng(0)
    rows = [row("a", "forest", f"v{v}", c, int(rng.random() < 0.4)) for v in range(5) for c in range(1, 11)]
    other = sorted(rows, key=lambda item: (item["vehicle"], -item["configuration"]))
    assert stratified_rate(rows, "vehicle") == stratified_rate(other, "vehicle")


def test_paired_differences() -> None:
    a = [row("a", "forest", "v", c, int(c <= 6)) for c in range(1, 11)]
    b = [row("b", "forest", "v", c, int(c <= 3 or c == 10)) for c in range(1, 11)]
    found = paired_difference(a, b)
    assert (found["pairs"], found["only_first"], found["only_second"]) == (10, 3, 1)
    assert found["difference"] == pytest.approx(0.2)
    assert found["low"] < 0.2 < found["high"]
    assert paired_difference(a, [{**item, "seed": 1} for item in b])["pairs"] == 0


def test_many_pairs_have_the_interval_of_the_normal_law_on_both_sides() -> None:
    """400 pairs: 150 won, 50 lost. Their mean is 0.25, its standard error that of values of -1, 0 and 1."""
    a = [row("a", "forest", f"v{v}", c, int(v < 15)) for c in range(1, 11) for v in range(40)]
    b = [row("b", "forest", f"v{v}", c, int(15 <= v < 20)) for c in range(1, 11) for v in range(40)]
    found = paired_difference(a, b, resamples=4000)
    error = np.sqrt((200 / 400 - 0.25**2) / 400)
    # Quantiles of 4,000 draws err by 0.04 standard errors, 0.0014; the mean moves in steps of 0.0025.
    assert found["low"] == pytest.approx(0.25 - 1.96 * error, abs=0.006)
    assert found["high"] == pytest.approx(0.25 + 1.96 * error, abs=0.006)


def test_with_layouts_drawn_again_a_difference_that_one_layout_makes_is_none() -> None:
    # In layout 1 a wins with all 40 vehicles, elsewhere they are alike: sure for these ten layouts, luck for another ten.
    a = [row("a", "forest", f"v{v}", c, int(c <= 5)) for c in range(1, 11) for v in range(40)]
    b = [row("b", "forest", f"v{v}", c, int(2 <= c <= 5)) for c in range(1, 11) for v in range(40)]
    near, wide = paired_difference(a, b), layout_difference(a, b)
    assert near["difference"] == wide.value == pytest.approx(0.1)
    assert near["low"] > 0.05
    assert wide.low <= 0.0
    assert wide.high > 0.25


@pytest.mark.parametrize(("won", "tied"), [((1,), True), ((), True), (range(1, 11), False), (range(1, 9), False)])
def test_pilots_are_tied_where_the_interval_over_layouts_touches_zero(won: Iterable[int], tied: bool) -> None:
    """Where a wins in one layout of ten, a third of all draws leave it out: the bound is 0 itself, and a tie may come of it."""
    a = [row("a", "forest", "v", c, int(c in won)) for c in range(1, 11)]
    b = [row("b", "forest", "v", c, 0) for c in range(1, 11)]
    ahead, behind = _paired(a, b), _paired(b, a)
    assert (ahead["layout_low"] == 0.0, behind["layout_high"] == 0.0) == (tied, tied)
    assert ahead["tied"] is behind["tied"] is tied


def test_a_single_layout_puts_nobody_ahead() -> None:
    a, b = ([row(name, "forest", f"v{v}", 1, won) for v in range(20)] for name, won in (("a", 1), ("b", 0)))
    found = _paired(a, b)
    assert np.isnan(found["layout_low"])
    assert found["tied"] is True


def test_the_interval_over_layouts_is_that_of_the_spread_between_their_means() -> None:
    rng = np.random.default_rng(4)
    means = {s: rng.normal(0.1, 0.2, 40) for s in ("forest", "maze", "perlin")}
    a, b = [], []
    for s, values in means.items():
        for c, value in enumerate(values, 1):
            wins = round(50 * (value + 1) / 2)
            a += [row("a", s, f"v{v}", c, int(v < wins)) for v in range(50)]
            b += [row("b", s, f"v{v}", c, int(v >= wins)) for v in range(50)]
    found = layout_difference(a, b, resamples=4000)
    table = [2 * np.round(50 * (v + 1) / 2) / 50 - 1 for v in means.values()]
    spread = np.sqrt(sum(np.var(v, ddof=1) / 40 for v in table)) / 3  # of a mean over strata of one weight
    assert found.value == pytest.approx(np.mean(table))
    assert found.high - found.low == pytest.approx(2 * 1.96 * spread, rel=0.06)
    assert np.isnan(layout_difference(a[:50], b[:50]).low)  # one layout
    assert np.isnan(layout_difference(a, [{**item, "seed": 1} for item in b]).value)


def test_an_interval_over_two_layouts_is_widened() -> None:
    """In each of 40 scenarios a wins one of two layouts: draws of the sum are binomial, of half the variance it should have.

    The spread of a mean of two is estimated from both with one degree of freedom: 0.5 for 1 and 0, of the mean 0.25.
    """
    places = [f"s{k:02d}" for k in range(40)]
    a = [row("a", place, "v", c, int(c == 1)) for place in places for c in (1, 2)]
    b = [row("b", place, "v", c, 0) for place in places for c in (1, 2)]
    found = layout_difference(a, b, resamples=4000)
    half = 1.96 * np.sqrt(0.25 / 40)  # 0.155; unwidened 0.110
    assert found.value == 0.5
    # Sums are whole numbers of 80: one of them for that, and for the draws.
    assert found.low == pytest.approx(0.5 - half, abs=1 / 80)
    assert found.high == pytest.approx(0.5 + half, abs=1 / 80)


def test_two_pilots_of_the_committed_results_are_tied() -> None:
    rows = read_rows(Path(__file__).parents[2] / "docs/results/navigation")
    ego, pgo, fast = ([item for item in rows if item["pilot"] == name] for name in ("ego", "pgo", "fast"))
    close, far = layout_difference(ego, pgo), layout_difference(fast, ego)
    assert 100 * close.value == pytest.approx(1.75, abs=0.005)
    assert close.low < 0.0 < close.high
    assert far.low > 0.1


def test_least_time_is_that_of_straight_flight() -> None:
    for length, speed, acceleration in ((34.0, 4.0, 6.0), (34.0, 4.0, 3.0), (1.0, 4.0, 6.0), (8.0 / 3.0, 4.0, 6.0)):
        end = least_time(length, speed, acceleration)
        times = np.array([end * 0.999, end, end * 1.01])
        distance, pace, _ = trapezoid(times, np.full(3, length), np.full(3, speed), np.full(3, acceleration))
        assert distance[0] < length - 1e-9
        assert distance[1:] == pytest.approx(length, abs=1e-9)
        assert pace[1:] == pytest.approx(0.0, abs=1e-6)


def test_time_weighs_on_those_that_creep() -> None:
    rules = NavigationProtocol()
    line = line_of({"scenario": "forest"})
    least = least_time(line - 2.0, 4.0, 6.0)
    quick = row("a", "forest", "real_01", 1, 1, time_s=least + 2.0, a_max_m_s2=6.0)
    slow = row("b", "forest", "real_01", 1, 1, time_s=4.0 * least + 2.0, a_max_m_s2=6.0)
    lost = row("c", "forest", "real_01", 1, 0, time_s=3.0, a_max_m_s2=6.0)
    assert [timed_success(item, rules) for item in (quick, slow, lost)] == pytest.approx([1.0, 0.25, 0.0])
    assert timed_scores([quick, slow, lost], rules) == pytest.approx({"a": 100.0, "b": 25.0, "c": 0.0})
    assert timed_success({**slow, "a_max_m_s2": 3.0}, rules) > 0.25  # held against what its own limits allow
    assert line_of({"scenario": "own_hall", "line_m": 7.5}) == 7.5


def test_flips_are_counted_between_repeats_of_one_combination() -> None:
    ends = {1: (1, 1, 1), 2: (1, 0, 1), 3: (0, 0, 0), 4: (1,)}
    rows = [row("a", "maze", "v", c, s, k) for c, got in ends.items() for k, s in enumerate(got)]
    (found,) = flips_of(rows)
    # Of three repeats with two successes, 4 of 6 ordered pairs differ; the single flight tells nothing.
    assert (found["combinations"], found["flights"]) == (3, 9)
    assert found["rate"] == pytest.approx((0.0 + 4.0 / 6.0 + 0.0) / 3.0)
    assert found["mixed"] == pytest.approx(1.0 / 3.0)
    assert flips_of([row("a", "maze", "v", c, 1) for c in range(1, 11)]) == []


def test_a_trend_between_two_groups_is_none_within_them() -> None:
    found = []
    for k in range(10):
        for category, base in (("real", 2), ("virt", 7)):
            alpha = 1000.0 * (category == "virt") + (k * 7) % 10
            more = {"alpha_xy": alpha, "twr": 2.0, "a_max_m_s2": 6.0, "time_s": 20.0}
            found += [row("a", "forest", f"{category}_{k:02d}", c, int(c <= base + (k % 3)), **more) for c in range(1, 11)]
    by_pilot = {"a": found}
    whole = next(e for e in _correlations(by_pilot) if e["indicator"] == "alpha_xy")
    within = {e["category"]: e for e in _correlations_within(by_pilot) if e["indicator"] == "alpha_xy"}
    assert whole["low"] > 0.5
    assert set(within) == {"real", "virtual"}
    assert all(e["low"] < 0.0 < e["high"] and e["vehicles"] == 10 for e in within.values())


def test_spearman_is_scipys() -> None:
    from scipy.stats import spearmanr

    rng = np.random.default_rng(3)
    x = rng.random(36)
    y = np.round(x + rng.normal(0, 0.3, 36), 1)
    found = spearman(x, y)
    assert found.value == pytest.approx(float(spearmanr(x, y).statistic))
    assert found.low < found.value < found.high
    assert np.isnan(spearman(x, np.ones(36)).value)
    with pytest.raises(AirworthyError, match="one length"):
        spearman([1.0, 2.0], [1.0])


def test_the_summary_has_every_number() -> None:
    rng = np.random.default_rng(0)
    more = dict.fromkeys(
        ("time_s", "path_length_m", "speed_mean_m_s", "speed_max_m_s", "clearance_min_m", "tracking_rmse_m"), 1.0
    )
    more |= dict.fromkeys(("thrust_saturation", "rate_saturation", "control_effort", "compute_s"), 0.1)
    more |= {"jerk_integral": 2.0, "snap_integral": 3.0, "goal_distance_m": 14.0}  # of a line of 36 m and more
    more |= {"cause": "hit a tree", "end_z_m": 1.0, "a_max_m_s2": 6.0}
    more |= dict.fromkeys(("latency_median_s", "latency_p95_s", "latency_max_s"), 0.0) | {"replans": 3}
    rows = [
        row(p, s, v, c, (good := int(rng.random() < 0.5)), outcome="success" if good else "collision", **more)
        for p in ("a", "b")
        for s in ("forest", "maze")
        for v in ("real_01", "virt_01", "virt_02")
        for c in range(1, 11)
    ]
    found = summarize(rows)
    assert len(found["scenarios"]) == 4
    assert len(found["vehicles"]) == 6
    assert len(found["correlations"]) == 6
    assert found["outcomes"]["a"]["success"] + found["outcomes"]["a"]["collision"] == 60
    assert sum(cell["flights"] for cell in found["cells"][0]["cells"]) == 60
    assert found["paired"][0]["pairs"] == 60
    assert found["paired"][0]["layout_low"] < found["paired"][0]["difference"] < found["paired"][0]["layout_high"]
    assert found["correlations_by_category"] == []  # a real vehicle and two virtual ones are no fleet
    assert found["flips"] == []
    # A line of 36 m and more in 1 s, of which 2 s are the hold: as fast as can be, so time takes nothing off.
    assert [item["timed"] for item in found["scores"]] == pytest.approx([item["score"] for item in found["scores"]])
    assert sum(e["flights"] for e in found["failures"]) == sum(not r["success"] for r in rows)
    assert [len(e["rates"]) for e in found["layouts"]] == [10] * 4
    cells = cells_of([r for r in rows if r["pilot"] == "a"], ["forest", "maze"], ["real_01", "virt_01", "virt_02"])
    assert found["cells"][0]["cells"][0]["value"] == cells[0, 0]
