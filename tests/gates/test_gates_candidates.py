"""Candidates and the limit: the counts that were computed independently for the whole grid."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.gates.labels.candidates import POINTS, candidates, fastest
from airworthy.gates.labels.options import Choices, SearchOptions
from airworthy.gates.labels.situations import PAPER, corners
from airworthy.trajectories.polynomial import differentiate, evaluate, septic_coasting

KNOWN = json.loads((Path(__file__).parent / "fixtures" / "grid_feasibility.json").read_text())


def test_the_limit_leaves_as_many_candidates_of_the_whole_grid_as_it_should() -> None:
    passing = without = saturated = 0
    times, speeds = [], np.zeros(10, np.int64)
    for at in range(0, PAPER.size, 12_960):
        found = candidates(PAPER.situations(np.arange(at, at + 12_960)))
        choice = fastest(found)
        some = choice >= 0
        t0 = found.t0[np.flatnonzero(some), choice[some]]
        passing += int(found.admissible.sum())
        without += int((~some).sum())
        saturated += int((t0 > 2.0).sum())
        times.append(t0)
        speeds += np.bincount(choice[some] // 7, minlength=10)
    # To within 1e-5, the share that rounding at the limit may move; here nothing is moved.
    assert passing == pytest.approx(KNOWN["passing"], rel=1e-5)
    assert without == KNOWN["E_without_any_passing_candidate"]
    assert saturated == KNOWN["min_time_label"]["above_2s"]
    assert list(speeds) == list(KNOWN["min_time_label"]["v_histogram"].values())
    wanted = KNOWN["min_time_label"]["quantiles"]
    # The file has three digits.
    np.testing.assert_allclose(
        np.quantile(np.concatenate(times), [float(q) for q in wanted]), list(wanted.values()), atol=5.1e-4
    )


@pytest.mark.parametrize(
    "choices", [Choices(), Choices(limit=(np.inf, 0.0), thrust=10.6), Choices(limit=(3.0, 0.1), thrust=10.4)]
)
def test_the_factored_verdict_is_that_of_the_trajectories_themselves(choices: Choices) -> None:
    numbers = np.random.default_rng(1).integers(0, PAPER.size, 6)
    e = PAPER.situations(numbers)
    found = candidates(e, choices)
    (most, cubic), thrust, up = choices.limit, choices.thrust or np.inf, np.array([[0.0], [0.0], [9.81]])
    positions, headings = corners(e)
    out = np.stack((np.cos(headings), np.sin(headings), np.zeros_like(headings)), axis=-1)
    tau = np.linspace(0.0, 1.0, POINTS)
    for k in range(len(e)):
        for n in range(0, 70, 3):
            speed, kept = (e[k, 0], found.v[k, n], 0.0), True
            for leg, time in enumerate((found.t0[k, n], found.tf[k, n])):
                c = septic_coasting(
                    positions[k, leg], positions[k, leg + 1], speed[leg] * out[k, leg], speed[leg + 1] * out[k, leg + 1], time
                )
                velocity, push = (
                    np.array([evaluate(differentiate(row, order), tau) for row in c]) / time**order for order in (1, 2)
                )
                v, a, lift = (np.linalg.norm(x, axis=0) for x in (velocity, push, push + up))
                kept &= bool(np.all((a < most - cubic * v**3) & (lift < thrust)))
            assert kept == found.admissible[k, n]
    assert 0 < found.admissible.sum() < found.admissible.size


def test_candidates_are_speed_major_with_the_published_durations() -> None:
    found = candidates(PAPER.situations(0))
    assert found.v.shape == (1, 70)
    np.testing.assert_allclose(found.v[0, ::7], np.linspace(0.0, 2.0, 10))
    np.testing.assert_allclose(found.t0[0, :7], 1.5 * np.linspace(0.5, 1.1, 7))  # from rest to rest
    assert found.t0[0, 7] == pytest.approx(0.5 * 2.0 * 0.8 / (2.0 / 9.0))
    assert found.tf[0, 0] == pytest.approx(1.6)
    assert found.tf[0, 69] == pytest.approx(0.8)
    assert not found.admissible[0, 63:].any()  # 2 m/s is never admissible


def test_a_search_without_a_thrust_is_described_as_before_there_was_one() -> None:
    assert "thrust" not in SearchOptions().described()["choices"]
    assert SearchOptions(choices=Choices(thrust=11.0)).described()["choices"]["thrust"] == 11.0


def test_without_a_limit_everything_is_admissible_and_a_wrong_limit_is_refused() -> None:
    assert candidates(PAPER.situations(7), Choices(limit=(np.inf, 0.0))).admissible.all()
    with pytest.raises(AirworthyError, match="The limit is"):
        Choices(limit=(-1.0, 0.3))
    with pytest.raises(AirworthyError, match="to hover it must exceed gravity"):
        Choices(thrust=9.0)
    with pytest.raises(AirworthyError, match="draws must be a whole number"):
        SearchOptions(draws=0)
