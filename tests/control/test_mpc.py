"""The tracking MPC against published optima, its float64 twin, and its promises of independence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.control.mpc import MPC_PRESETS, MpcConfig, MpcReference, MpcSolver, mpc_preset
from airworthy.control.mpc.stage import derivative, step
from airworthy.control.mpc.twin import cost_of, solve_twin
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError, UnknownNameError

FULL = 27.6 / 1.144
HOVER = np.array([0, 0, 1, 0, 0, 0, 0, 0, 0, 1.0])
DOWN = np.array([1, -1, -1, 1, -1, -1, 1, -1, -1, 1.0])
"""From frames with z down to frames with z up, in a state."""
DOWN_INPUT = np.array([-1, 1, -1, -1.0])


def line(rows: int = 41, speed: float = 1.0) -> MpcReference:
    states = np.tile(HOVER, (rows, 1))
    states[:, 0], states[:, 3] = np.arange(rows) * 0.05 * speed, speed
    return MpcReference(states, np.full(rows, 9.81), np.zeros((rows, 3)))


def starts(count: int, seed: int = 0, spread: float = 0.4) -> Array:
    rng = np.random.default_rng(seed)
    x = HOVER + spread * np.array([1, 1, 1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5]) * rng.uniform(-1, 1, (count, 10))
    x[:, 6:] /= np.linalg.norm(x[:, 6:], axis=1, keepdims=True)
    return x


@pytest.fixture(scope="module")
def published(data_dir: Path) -> dict[str, Array]:
    problems = json.loads((data_dir / "sousvide" / "mpc_reference.json").read_text())["problems"]
    return {name: np.array([p[name] for p in problems]) for name in ("x0", "cost", "u0", "x_final")}


@pytest.mark.parametrize("single", [False, True])
def test_published_optima(published: dict[str, Array], single: bool) -> None:
    solver = MpcSolver(len(published["x0"]), line(), single=single)
    found = solver.solve(published["x0"] * DOWN, FULL, 0)
    assert not found.failed.any()
    # Asked: 1e-4 and 1e-2. Costs are stated to six digits.
    assert np.abs(found.cost / published["cost"] - 1.0).max() <= 3e-6
    assert np.abs(found.inputs[:, 0] - published["u0"] * DOWN_INPUT).max() <= 1e-2
    assert np.abs(found.states[:, -1] - published["x_final"] * DOWN).max() <= 1e-3


@pytest.mark.slow
def test_the_twin_finds_them_too(published: dict[str, Array]) -> None:
    found = solve_twin(published["x0"] * DOWN, FULL, line(), iterations=11)
    assert np.abs(found.cost / published["cost"] - 1.0).max() <= 1e-6
    assert np.abs(found.inputs[:, 0] - published["u0"] * DOWN_INPUT).max() <= 1e-4


@pytest.mark.parametrize(
    "preset", [pytest.param(name, marks=pytest.mark.slow) if name == "backroom" else name for name in sorted(MPC_PRESETS)]
)
def test_random_problems_equal_the_twin(preset: str) -> None:
    """Each with its own drone; large offsets, so that bounds are touched."""
    config = replace(mpc_preset(preset), horizon=16)
    rng = np.random.default_rng(1)
    x0, full = starts(24, 2, 0.8), rng.uniform(0.6, 1.8, 24) * FULL
    found = MpcSolver(24, line(), config).solve(x0, full, 0)
    twin = solve_twin(x0, full, line(), config, iterations=60)
    low, high = config.lower.astype(np.float32), config.upper.astype(np.float32)
    assert ((found.inputs == low) | (found.inputs == high)).mean() > 0.003  # bounds are touched
    assert ((found.inputs >= low) & (found.inputs <= high)).all()
    # The twin goes to the end, the solver until a whole step gains less than a millionth: asked is 1e-4.
    gap = found.cost / twin.cost - 1.0
    assert np.quantile(np.abs(gap), 0.9) <= 1e-5
    assert np.abs(gap).max() <= 1e-4


def test_it_is_a_minimum() -> None:
    """No other inputs within the bounds, near the solution, cost less; what is at a bound would like to pass it."""
    config = MpcConfig(horizon=16, iterations=60, tolerance=0.0)
    x0 = starts(8, 5)
    found = solve_twin(x0, FULL, line(), config, iterations=16)
    rng = np.random.default_rng(3)
    wanted = np.repeat(line().rows()[None, :17], 8, axis=0)
    wanted[..., 10] /= FULL
    from airworthy.control.mpc.twin import roll_out

    for size in (1e-1, 1e-2, 1e-3):
        other = np.clip(found.inputs + size * rng.normal(size=found.inputs.shape), config.lower, config.upper)
        states = roll_out(x0, other, np.full(8, FULL), config)
        assert (cost_of(states, other, wanted, config) >= found.cost).all()


def test_the_step_is_a_runge_kutta_step_of_the_equation() -> None:
    """Against SciPy, a fifth order error of 0.05 s; and the thrust axis of a turned drone."""
    from scipy.integrate import solve_ivp

    rng = np.random.default_rng(0)
    for x0 in starts(5, 7):
        u = np.array([rng.uniform(0, 1), *rng.uniform(-3, 3, 3)])
        exact = solve_ivp(lambda _, x, u=u: derivative(tuple(x), tuple(u), FULL, 9.81), (0, 0.05), x0, rtol=1e-11, atol=1e-12)
        assert np.abs(np.array(step(tuple(x0), tuple(u), FULL, 9.81, 0.05)) - exact.y[:, -1]).max() < 2e-6
    tilted = (0, 0, 0, 0, 0, 0, 0, np.sin(0.25), 0, np.cos(0.25))
    assert np.allclose(derivative(tilted, (1.0, 0, 0, 0), 10.0, 0.0)[3:6], (10 * np.sin(0.5), 0, 10 * np.cos(0.5)))


def test_neighbours_lanes_and_threads_change_no_byte() -> None:
    x0, rng = starts(1000, 4, 0.8), np.random.default_rng(2)
    full = rng.uniform(0.7, 1.3, 1000) * FULL
    many = MpcSolver(1000, line())
    whole = {name: np.array(value) for name, value in vars(many.solve(x0, full, 0)).items()}
    assert whole["inputs"].shape == (1000, 40, 4)
    for ids, options in ((slice(3, 7), {}), (slice(500, 530), {"threads": 2}), (slice(0, 20), {"single": True})):
        few = MpcSolver(len(full[ids]), line(), **options).solve(x0[ids], full[ids], 0)
        for name, value in whole.items():
            assert np.ascontiguousarray(getattr(few, name)).tobytes() == np.ascontiguousarray(value[ids]).tobytes(), name


def test_two_processes_give_the_same_bytes() -> None:
    program = """
import hashlib, numpy as np
from tests.control.test_mpc import FULL, line, starts
from airworthy.control.mpc import MpcSolver
print(hashlib.sha256(np.ascontiguousarray(MpcSolver(40, line()).solve(starts(40), FULL, 0).inputs).tobytes()).hexdigest())
"""
    root = str(Path(__file__).parents[2])
    runs = [
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True, text=True, check=True, cwd=root, env={**os.environ, "AIRWORTHY_THREADS": n},
        ).stdout
        for n in ("1", "2")
    ]  # fmt: skip
    assert runs[0] == runs[1]
    assert len(runs[0].strip()) == 64


def test_a_bad_problem_harms_no_other() -> None:
    x0, full = starts(33), np.full(33, FULL)
    clean = np.array(MpcSolver(33, line()).solve(x0, full, 0).inputs)
    for value in (np.nan, np.inf, 1e30):
        bad = x0.copy()
        bad[7] = value
        found = MpcSolver(33, line()).solve(bad, full, 0)
        assert found.failed.tolist() == [k == 7 for k in range(33)]
        assert np.isfinite(found.inputs).all()
        np.testing.assert_array_equal(np.delete(found.inputs, 7, axis=0), np.delete(clean, 7, axis=0))


def test_a_warm_start_needs_fewer_iterations_and_finds_the_same() -> None:
    reference = line(81)
    x0 = starts(64, 9)
    solver = MpcSolver(64, reference)
    first = solver.solve(x0, FULL, 0)
    cold, later = first.iterations.mean(), np.array(first.states[:, 1])
    solver.shift()
    warm = solver.solve(later, FULL, 1)
    cost, needed = np.array(warm.cost), warm.iterations.mean()
    fresh = MpcSolver(64, reference).solve(later, FULL, 1)
    assert needed < 0.7 * cold
    assert np.abs(cost / fresh.cost - 1.0).max() <= 1e-4
    solver.reset([5])
    again = solver.solve(later, FULL, 1)
    assert again.iterations[5] > again.iterations.min()


def test_the_sign_of_a_quaternion_means_nothing() -> None:
    x0 = starts(8)
    flipped = x0 * np.where(np.arange(10) >= 6, -1.0, 1.0)
    a, b = (np.array(MpcSolver(8, line()).solve(x, FULL, 0).inputs) for x in (x0, flipped))
    np.testing.assert_array_equal(a, b)


def test_the_path_ends_where_it_is_said_to() -> None:
    """Two paths in one table: the first ends in row 20, and is then held."""
    reference = line(120)
    held = MpcReference(reference.states[np.minimum(np.arange(41), 20)], reference.thrust[:41], reference.rates[:41])
    x0 = starts(4)
    np.testing.assert_array_equal(
        np.array(MpcSolver(4, reference).solve(x0, FULL, 0, last=20).inputs), MpcSolver(4, held).solve(x0, FULL, 0).inputs
    )


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"start": np.zeros((3, 10))}, "states of shape"),
    ({"full": np.zeros(4)}, "without thrust"),
    ({"full": np.ones(3)}, "'full' of shape"),
    ({"row": 41}, "outside its reference"),
    ({"row": -1}, "outside its reference"),
]


@pytest.mark.parametrize(("change", "said"), MISTAKES)
def test_mistakes_are_told_in_one_sentence(change: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {"start": starts(4), "full": FULL, "row": 0, **change}
    with pytest.raises(AirworthyError, match=said):
        MpcSolver(4, line()).solve(**given)


def test_configurations_that_cannot_be_solved() -> None:
    for bad in ({"thrust": 0.0}, {"rates": (0.1, 0.1, 0.0)}, {"horizon": 0}, {"position": np.nan}, {"rate_max": 0.0}):
        with pytest.raises(AirworthyError, match=r"expected|above 0"):
            MpcConfig(**bad)
    with pytest.raises(UnknownNameError, match="flightroom"):
        mpc_preset("flightrom")
    with pytest.raises(AirworthyError, match="shapes"):
        MpcReference(np.zeros((3, 9)), np.zeros(3), np.zeros((3, 3)))


@pytest.mark.parametrize("name", [f.name for f in fields(MpcConfig)])
def test_every_number_of_the_options_is_refused_beyond_its_range(name: str) -> None:
    least = {"horizon": 1, "iterations": 1, "rate": 1e-9, "rate_max": 1e-9, "thrust": 1e-9, "rates": (1e-9, 1e-9, 1e-9)}
    good = least.get(name, 0 if isinstance(getattr(MpcConfig(), name), int) else 0.0)
    assert getattr(MpcConfig(**{name: good}), name) == good
    below = {"horizon": 0, "iterations": 0, "rates": (0.1, 0.0, 0.1)}.get(name, 0.0 if name in least else -1e-9)
    wrong = [below]
    if not isinstance(good, int):
        wrong += [(0.1, x, 0.1) if name == "rates" else x for x in (np.nan, np.inf, -1.0)]
    for value in wrong:
        with pytest.raises(AirworthyError):
            MpcConfig(**{name: value})


# ---- far off ----------------------------------------------------------------------------------------------------------------


def far(count: int, seed: int = 0) -> Array:
    """Cold starts within 1.2 m and 2.5 m/s of hover along each axis."""
    rng = np.random.default_rng(seed)
    x = HOVER + np.repeat([1.2, 2.5, 0.2], [3, 3, 4]) * rng.uniform(-1, 1, (count, 10))
    x[:, 6:] /= np.linalg.norm(x[:, 6:], axis=1, keepdims=True)
    return x


@pytest.mark.slow
def test_far_off_it_settles_at_an_optimum() -> None:
    """What Newton steps in float64 gain from there is less than a ten-thousandth; with 20 iterations it is more, and said."""
    x = far(50)
    found = MpcSolver(50, line()).solve(x, FULL, 0)
    assert not (found.failed | found.cut_off).any()
    assert found.iterations.max() > 20
    cost = found.cost.astype(float)
    best = solve_twin(x, FULL, line(), inputs=found.inputs.astype(float), iterations=12).cost
    assert (cost / best - 1.0).max() < 1e-4
    short = MpcSolver(50, line(), MpcConfig(iterations=20)).solve(x, FULL, 0)
    late = short.cost / best - 1.0 > 1e-4
    assert late.any()
    assert short.cut_off[late].all()
    np.testing.assert_array_equal(short.cut_off, short.iterations == 20)


@pytest.mark.slow
def test_far_off_the_twin_finds_the_same_optima_on_its_own() -> None:
    x = far(50)
    found = MpcSolver(50, line()).solve(x, FULL, 0)
    hard = np.argsort(found.iterations)[-12:]
    cold = solve_twin(x[hard], FULL, line(), iterations=150).cost
    assert np.abs(found.cost[hard] / cold - 1.0).max() < 1e-4


def test_far_off_alone_and_in_a_batch_to_the_bit() -> None:
    x, config = far(37, 3), MpcConfig(iterations=20)
    together = MpcSolver(37, line(), config).solve(x, FULL, 0)
    assert 0 < together.cut_off.sum() < 37
    for k in (*np.flatnonzero(together.cut_off)[:3], 0, 36):
        alone = MpcSolver(1, line(), config).solve(x[k : k + 1], FULL, 0)
        for item in fields(alone):
            np.testing.assert_array_equal(getattr(alone, item.name)[0], getattr(together, item.name)[k])
