"""The search: pruning loses nothing, ties go to the first, other options do what they say."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.gates.labels.labels import Labels, label
from airworthy.gates.labels.options import RANDOMISATIONS, Choices, SearchOptions
from airworthy.gates.labels.situations import PAPER

PAPERS = SearchOptions()


def _some(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    numbers = np.random.default_rng(seed).choice(PAPER.size, count, replace=False)
    return PAPER.situations(numbers), numbers


def _same(a: Labels, b: Labels) -> None:
    for item in fields(Labels):
        if item.name not in ("tried", "steps"):
            np.testing.assert_array_equal(getattr(a, item.name), getattr(b, item.name), item.name)


@pytest.mark.parametrize("law", ["paper", "strong"])
def test_pruning_loses_nothing(law: str) -> None:
    e, numbers = _some(150)
    options = replace(PAPERS, randomisation=RANDOMISATIONS[law])
    pruned, full = label(e, options, numbers), label(e, replace(options, exhaustive=True), numbers)
    _same(pruned, full)
    assert pruned.tried.sum() < 0.2 * full.tried.sum()
    assert full.tried.sum() == full.passing.sum()


@pytest.mark.slow
def test_pruning_loses_nothing_in_2000_situations() -> None:
    e, numbers = _some(2000, seed=1)
    _same(label(e, PAPERS, numbers), label(e, replace(PAPERS, exhaustive=True), numbers))


def test_pruning_loses_nothing_where_simulation_decides() -> None:
    # Without the limit the fastest candidates crash or miss the gate, and the search goes far.
    e, numbers = _some(12, seed=2)
    options = replace(PAPERS, choices=Choices(limit=(np.inf, 0.0)), draws=2)
    pruned, full = label(e, options, numbers), label(e, replace(options, exhaustive=True), numbers)
    _same(pruned, full)
    assert pruned.changed.any()


def test_labels_do_not_depend_on_what_else_is_searched() -> None:
    e, numbers = _some(20, seed=3)
    whole = label(e, PAPERS, numbers)
    part = label(e[5:9], PAPERS, numbers[5:9])
    for item in fields(Labels):
        np.testing.assert_array_equal(getattr(part, item.name), getattr(whole, item.name)[5:9])
    assert not np.array_equal(label(e, replace(PAPERS, seed=1), numbers).cost, whole.cost)


def test_a_label_is_admissible_and_costs_what_equation_7_says() -> None:
    e, numbers = _some(40, seed=4)
    found = label(e, PAPERS, numbers)
    some = found.admissible
    assert some.any()
    assert not found.crashed.any()
    np.testing.assert_allclose(found.cost[some], (found.t0 + 4.0 * found.error_mean)[some], rtol=1e-15)
    assert np.all(found.reach[some] >= 1)
    assert np.all(found.tried[some] >= 1)
    assert np.all(found.changed[some] == (found.candidate != found.analytic)[some])
    assert np.all(found.saturated[some] == (found.t0[some] > 2.0))


def test_of_equal_costs_the_first_candidate_wins() -> None:
    # One speed twice: from rest, candidates n and n + 7 are the same flight where the largest speed is next to nothing.
    e, numbers = _some(8, seed=5)
    e[:, 0] = 0.0
    options = replace(PAPERS, choices=Choices(speeds=2, speed_max=1e-12))
    for exhaustive in (False, True):
        found = label(e, replace(options, exhaustive=exhaustive), numbers)
        assert np.all(found.candidate[found.admissible] < 7)


def test_a_situation_without_a_candidate_is_marked() -> None:
    e, numbers = _some(3, seed=6)
    found = label(e, replace(PAPERS, choices=Choices(limit=(1e-6, 0.3))), numbers)
    assert not found.feasible.any()
    assert not found.changed.any()
    assert np.all(found.candidate == -1)
    assert np.all(np.isnan(found.t0))
    assert np.all(found.tried == 0)


def test_what_is_no_situation_is_refused() -> None:
    with pytest.raises(AirworthyError, match="rows of eight numbers"):
        label(np.zeros((3, 7)))
    with pytest.raises(AirworthyError, match="distances above zero"):
        label(np.zeros((1, 8)))
    with pytest.raises(AirworthyError, match="as many numbers"):
        label(PAPER.situations([0, 1]), PAPERS, [0])
