"""The program that compares policies learnt with and without other looks: what is flown and told, nothing is made twice."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

from benchmarks.visuomotor_looks import COLUMNS, over_seeds, policy_cell, recipe

from airworthy.learning.visuomotor.config import place_names
from airworthy.scenes.generators import SPLAT_HALLS
from benchmarks import hardware, visuomotor_looks


def flights(good: int, bad: int, error: float, blind: int = 0) -> list[dict[str, Any]]:
    """Rows of flights with eyes, and of as many blindfold ones of which some succeed."""
    rows = [
        {"condition": "baseline", "outcome": "success" if k < good else "off_course", "tracking_error_m": error}
        for k in range(good + bad)
    ]
    return rows + [
        {"condition": "blindfold", "outcome": "success_recovered" if k < blind else "collision", "tracking_error_m": 1.0}
        for k in range(good + bad)
    ]


def test_kinds_learn_in_places_that_no_column_judges_but_the_reverse_in_its_own() -> None:
    before, after, reverse = (recipe(kind, 3) for kind in ("before", "after", "hall"))
    assert after.places == tuple(f"other_look:{name}" for name in before.places)
    assert len(before.places) == 40
    drawn, looks = (place_names((COLUMNS[name].scene,)) for name in ("drawn", "looks"))
    assert looks == tuple(f"other_look:{name}" for name in drawn)
    assert len(drawn) * COLUMNS["drawn"].flights == COLUMNS["hall"].flights == 20
    assert not {*before.places, *after.places} & {*drawn, *looks, *SPLAT_HALLS}
    assert reverse.places == (COLUMNS["hall"].scene,)
    # By one recipe, so that looks alone differ.
    assert replace(after, scene=before.scene) == before
    assert {one.seed for one in (before, after, reverse)} == {3}


def test_an_interval_over_seeds_is_students() -> None:
    # Mean 2, deviation 1: 4.303 / sqrt(3) on either side (any table of t, two degrees of freedom).
    found = over_seeds([1.0, 2.0, 3.0])
    assert (found.value, found.low, found.high) == pytest.approx((2.0, 2.0 - 2.484, 2.0 + 2.484), abs=1e-3)
    assert math.isnan(over_seeds([5.0]).low)
    assert math.isnan(over_seeds([5.0, 5.0]).high)


def test_flights_that_touched_count_and_errors_are_of_those_with_eyes() -> None:
    assert policy_cell(flights(3, 1, 0.05, 2)) == "3 of 4, 5.0 cm; blind 2 of 4"
    touched = [{**row, "outcome": "success_recovered"} for row in flights(2, 0, 0.05)[:2]]
    assert policy_cell(touched + flights(1, 0, 0.05)[:1]) == "3 of 3 (2 touched), 5.0 cm"
    assert policy_cell(flights(0, 2, math.nan)[:2]) == "0 of 2, ? cm"


def test_policies_are_trained_pair_by_pair_judged_in_every_column_and_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    trained, flown = [], []

    def train(folder: Path, options: Any, protocol: Any, **others: Any) -> Any:
        trained.append((folder.name, options.scene, options.seed))
        steps = [{"alone": None}, {"alone": 12.0, "flights": 32}]
        return SimpleNamespace(figures={"pairs": 16_000, "training_cpu_s": 300.0, "steps": steps})

    def evaluate(config: Any) -> Any:
        flown.append((config.scene, config.seed, config.conditions))
        policy = config.pilot[0]
        # Of twenty places the first so many are flown.
        good = {"before_0": 10, "after_0": 14, "before_1": 12, "after_1": 18}[Path(policy).name]
        done = config.out.name < f"place_{good:02d}" if config.flights == 1 else True
        outcome, error = ("success", 0.1) if done else ("off_course", 0.5)
        row = {"condition": config.conditions[0], "outcome": outcome, "tracking_error_m": error}
        return SimpleNamespace(interrupted=False, summary={"flights": [row] * config.flights})

    monkeypatch.setattr(hardware, "use_cores", lambda count: [0])
    monkeypatch.setattr(visuomotor_looks, "train_visuomotor", train)
    monkeypatch.setattr(visuomotor_looks, "evaluate", evaluate)
    monkeypatch.delenv("AIRWORTHY_DATA", raising=False)
    words = ["--kinds", "before", "after", "--seeds", "0", "1", "--columns", "drawn", "hall", "statues"]
    assert visuomotor_looks.main([*words, "--conditions", "baseline", "--out", str(tmp_path)]) == 0
    assert [name for name, _, _ in trained] == ["before_0", "after_0", "before_1", "after_1"]
    assert flown[:2] == [("mid_gate:0@900", 7919, ("baseline",)), ("mid_gate:1@900", 7920, ("baseline",))]
    assert len(flown) == 4 * 21
    said = capsys.readouterr().out
    assert "statues is skipped: AIRWORTHY_DATA names no folder" in said
    assert "before_0: 16,000 pairs, 300 processor seconds; 12 of new flights without help, round by round" in said
    table = said.splitlines()[-9:]
    assert table[0] == "| learnt in | `--seed` | drawn halls | `hall` |"
    assert table[2] == "| before | 0 | 10 of 20, 30.0 cm | 20 of 20, 10.0 cm |"
    # 50 and 60 %: 55, deviation 7.07, times 12.706 / sqrt(2) (one degree of freedom): 64 points on either side.
    assert "| before | all | 22 of 40 (40 to 69 %); seeds 55 % (0 to 100); 28.0 cm (2.6 to 53.4) |" in table[6]
    assert table[8].startswith(
        "| after less before | 2 pairs | 25 points (-39 to 89); -10.0 cm (-35.4 to 15.4) | 0 points; 0.0 cm |"
    )
