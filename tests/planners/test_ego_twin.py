"""Tries of EGO-Planner: the compiled form against the readable one, and what a found trajectory promises."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.planners.ego_cases import questions

from airworthy.core.errors import AirworthyError
from airworthy.planners.common.bspline import evaluate_uniform
from airworthy.planners.ego.config import EgoConfig, EgoOutcome
from airworthy.planners.ego.tries import EgoStart, Questions, ReboundTries
from airworthy.planners.ego.twin import EgoTwin

CONFIG = EgoConfig(expansions=2_000)


def _only(asked: Questions, flights: np.ndarray) -> Questions:
    return Questions(**{name: value[flights] for name, value in vars(asked).items()})


@pytest.mark.parametrize(("seed", "speed", "acceleration", "gradient"), [(0, 2.0, 3.0, 0.001), (4, 4.0, 6.0, 0.01)])
def test_compiled_is_the_twin_to_the_bit(seed: int, speed: float, acceleration: float, gradient: float) -> None:
    config = replace(CONFIG, gradient=gradient)
    table, asked = questions(seed, 8, speed, acceleration)
    found = ReboundTries(config).run(table, asked)
    for i in range(8):
        twin = EgoTwin(config, table.cells[i], asked, i)
        assert twin.run() == found.outcome[i]
        assert np.array_equal(twin.q, found.control[i, : found.count[i]])
        assert twin.interval == found.interval[i]
        assert (twin.evaluations, twin.rebounds, twin.restarts) == (found.evaluations[i], found.rebounds[i], found.restarts[i])
        assert (twin.book.expansions if twin.book else 0) == found.expansions[i]
    assert {EgoStart.WARM, EgoStart.POLYNOMIAL, EgoStart.RANDOM} == set(asked.kind.tolist())


def test_a_try_does_not_depend_on_its_batch() -> None:
    table, asked = questions(1, 24)
    tries = ReboundTries(CONFIG)
    together, order = tries.run(table, asked), np.random.default_rng(0).permutation(24)
    apart = tries.run(table, _only(asked, order))
    for name, value in vars(apart).items():
        assert np.array_equal(value, vars(together)[name][order])


def test_what_is_found_keeps_its_ends_limits_and_distance() -> None:
    table, asked = questions(2, 60)
    found = ReboundTries(EgoConfig()).run(table, asked)
    good = found.outcome == EgoOutcome.FOUND
    assert good.mean() > 0.7
    for i in np.flatnonzero(good):
        q, dt = found.control[i, None, : found.count[i]], found.interval[i, None]
        # Boundary rows of a least-squares fit weigh more than its points, but are not exact.
        assert evaluate_uniform(q, dt, [[0.0]])[0, 0] == pytest.approx(asked.start[i, 0], abs=0.1)
        assert evaluate_uniform(q, dt, [[0.0]], 1)[0, 0] == pytest.approx(asked.start[i, 1], abs=0.3)
        end = (found.count[i] - 3) * float(dt[0])
        times = np.linspace(0.0, 2.0 / 3.0 * end, 400)[None]
        # Checked at steps of a cell's edge, so a corner of a cell may be cut.
        assert table.cells[i].taken(evaluate_uniform(q, dt, times)[0]).mean() < 0.02


def test_near_targets_and_settings() -> None:
    table, asked = questions(3, 1)
    target = asked.start.copy()
    target[:, 0, 0] += 0.15
    assert ReboundTries(CONFIG).run(table, replace(asked, target=target)).outcome[0] == EgoOutcome.CLOSE
    with pytest.raises(AirworthyError, match=r"EgoConfig\.clearance is -1"):
        EgoConfig(clearance=-1.0)
    with pytest.raises(AirworthyError, match="at most 33"):
        EgoConfig(spacing=0.1)
