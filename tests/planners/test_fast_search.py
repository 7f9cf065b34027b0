"""The kinodynamic search: heuristic by dense search, connection at its ends, paths against the twin, states and limits."""

import numpy as np
import pytest
from tests.planners.fast_cases import H, World

from airworthy.planners.fast.records import Outcome
from airworthy.planners.fast.search import KinoPath, KinoSearch, connection, cost_of_time, least_cost, problem
from airworthy.planners.fast.search_twin import search_twin
from airworthy.planners.fast.settings import KinoSettings

SPEED, MOST = 3.0, 2.0


def state(rng: np.random.Generator, spread: float) -> tuple[float, ...]:
    return (*rng.uniform(-spread, spread, 3).tolist(), *rng.uniform(-3.0, 3.0, 3).tolist())


def one(world: World, start: tuple[float, ...], goal: tuple[float, ...], held: bool = True, **options: float):
    values = np.array(start)
    given = problem(values[:3], values[3:6], values[6:9], np.array(goal), SPEED, MOST, held)
    settings = KinoSettings(**options)
    return KinoSearch(settings).run(given.copy(), world.window())[0], search_twin(settings, world.window().view(0), given[0])


def same(a: KinoPath, b: KinoPath) -> None:
    assert (a.outcome, a.expansions, a.nodes) == (b.outcome, b.expansions, b.nodes)
    # Both add in the same order; the cosine and the cube root of two mathematical libraries may differ in the last bit.
    for name in ("states", "inputs", "durations", "curve"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-12, atol=1e-12)
    assert a.curve_time == pytest.approx(b.curve_time, rel=1e-12)


def test_heuristic_is_the_least_cost_over_time() -> None:
    rng = np.random.default_rng(1)
    for case in range(300):
        start, end = state(rng, 8.0), state(rng, 8.0)
        if case % 3 == 0:
            end = (*end[:3], 0.0, 0.0, 0.0)
        least = max(abs(a - b) for a, b in zip(start[:3], end[:3], strict=True)) / (0.5 * SPEED)
        found, when = least_cost(start, end, 10.0, SPEED)
        times = np.linspace(least, least + 30.0, 60_001)
        dense = cost_of_time(start, end, 10.0, times)
        # 0.5 ms between samples: at a minimum the cost is flat, so the dense search is above by at most c'' dt^2 / 8.
        assert found <= dense.min() + 1e-9 * abs(found)
        assert found == pytest.approx(dense.min(), rel=1e-5)
        assert found == pytest.approx(cost_of_time(start, end, 10.0, when), rel=1e-12)
        assert when >= least


@pytest.mark.parametrize(
    ("offset", "before", "after"),
    [
        ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
        ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
        ((3.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
        ((3.0, 0.0, 0.0), (0.0, 2.0, 0.0), (0.0, 0.0, 0.0)),
        ((1e-6, 0.0, 0.0), (-3.0, 0.0, 0.0), (3.0, 0.0, 0.0)),
    ],
)
def test_heuristic_where_terms_vanish(offset: tuple, before: tuple, after: tuple) -> None:
    start, end = (0.0, 0.0, 0.0, *before), (*offset, *after)
    found, when = least_cost(start, end, 10.0, SPEED)
    assert np.isfinite(found)
    assert found >= 0.0
    if start == (*end[:3], *start[3:]) and before == after:
        assert (found, when) == (0.0, 0.0)
        return
    times = np.linspace(max(abs(w) for w in offset) / (0.5 * SPEED), 10.0, 200_001)[1:]
    assert found == pytest.approx(cost_of_time(start, end, 10.0, times).min(), rel=1e-5)


def test_connection_meets_both_states() -> None:
    rng = np.random.default_rng(2)
    for _ in range(100):
        start, end = state(rng, 8.0), state(rng, 8.0)
        _, t = least_cost(start, end, 10.0, SPEED)
        c = connection(start, end, t)
        powers, slopes = t ** np.arange(4), np.array([0.0, 1.0, 2.0 * t, 3.0 * t * t])
        assert np.array_equal(np.concatenate([c[:, 0], c[:, 1]]), start)
        np.testing.assert_allclose(np.concatenate([c @ powers, c @ slopes]), end, atol=1e-9)


def test_connection_costs_what_the_heuristic_says() -> None:
    """The cubic's acceleration is linear in time: its integral of |a|^2, plus the time's weight, is the least cost."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        start, end = state(rng, 8.0), state(rng, 8.0)
        cost, t = least_cost(start, end, 10.0, SPEED)
        c = connection(start, end, t)
        a, b = 2.0 * c[:, 2], 6.0 * c[:, 3]
        effort = float((a @ a) * t + (a @ b) * t**2 + (b @ b) * t**3 / 3.0)
        assert effort + 10.0 * t == pytest.approx(cost, rel=1e-9)


FREE = World((20.0, 12.0, 3.0), np.zeros((0, 3)))
PILLAR = World((20.0, 12.0, 3.0), np.array([[-5.0, 0.1, 0.6]]))
MANY = World((20.0, 12.0, 3.0), np.array([[-6.0, 0.1, 0.5], [-4.0, -1.2, 0.4], [-4.5, 1.5, 0.4], [-3.0, 0.3, 0.4]]))
AT_REST = (-8.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
MOVING = (-8.0, 0.3, 1.2, 2.2, -0.4, 0.1, 0.8, 0.5, 0.0)


@pytest.mark.parametrize("world", [FREE, PILLAR, MANY], ids=["free", "pillar", "many"])
@pytest.mark.parametrize("start", [AT_REST, MOVING], ids=["rest", "moving"])
@pytest.mark.parametrize("goal", [(8.0, 0.0, 1.0), (-3.5, 0.0, 1.0)], ids=["far", "near"])
def test_search_equals_its_twin(world: World, start: tuple, goal: tuple) -> None:
    same(*one(world, start, goal))


def test_paths_keep_limits_and_stay_clear() -> None:
    found, _ = one(MANY, MOVING, (8.0, 0.0, 1.0))
    assert found.outcome is Outcome.REACH_HORIZON
    ends = np.concatenate([found.states[1:], found.states[:0]])
    assert np.abs(ends[:, 3:]).max() <= SPEED
    assert np.abs(found.inputs[1:]).max() <= MOST
    for k, (s, u, t) in enumerate(zip(found.states, found.inputs, found.durations, strict=True)):
        points = np.array([s[:3] + s[3:] * d + 0.5 * u * d * d for d in t * np.arange(1, 6) / 5])
        assert not MANY.window().view(0).blocked(points).any()
        if k + 1 < len(found.states):
            np.testing.assert_array_equal(found.states[k + 1, :3], s[:3] + s[3:] * t + 0.5 * u * t * t)
    last = found.sample(np.array([found.duration]))[0]
    assert np.linalg.norm(last - np.array(MOVING[:3])) >= KinoSettings().horizon


def test_samples_and_ends_of_a_joined_path() -> None:
    found, _ = one(PILLAR, AT_REST, (-3.0, 0.0, 1.0))
    assert found.outcome is Outcome.REACH_END
    np.testing.assert_allclose(found.sample(np.array([0.0, found.duration])), [AT_REST[:3], (-3.0, 0.0, 1.0)], atol=1e-9)
    np.testing.assert_allclose(found.boundary()[0], [(0.0, 0.0, 0.0), (0.0, 0.0, 0.0)], atol=1e-9)


def test_no_way_is_said_and_counted() -> None:
    """A ring of pillars: everything within is searched, nothing found."""
    angles = np.linspace(0.0, 2.0 * np.pi, 24, endpoint=False)
    ring = World((20.0, 12.0, 3.0), np.stack([2.0 * np.cos(angles), 2.0 * np.sin(angles), np.full(24, 0.4)], axis=1))
    start = (0.0, 0.0, 1.0, *([0.0] * 6))
    found, twin = one(ring, start, (8.0, 0.0, 1.0), step_time=0.8, checks=20, capacity=400)
    assert found.outcome is Outcome.NO_PATH
    assert len(found.durations) == 0
    assert found.nodes > 100
    same(found, twin)


def test_many_flights_equal_each_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    world, search = MANY.window(), KinoSearch(KinoSettings())
    goals = [(8.0, y, 1.0) for y in (-4.0, -2.0, 0.0, 2.0, 4.0)]
    given = [
        problem(np.array(MOVING[:3]), np.array(MOVING[3:6]), np.array(MOVING[6:9]), np.array(g), SPEED, MOST) for g in goals
    ]
    alone = [search.run(p.copy(), world)[0] for p in given]
    five = type(world)(np.repeat(world.records, 5), world.alive)
    for threads in ("1", "2"):
        monkeypatch.setenv("AIRWORTHY_THREADS", threads)
        for a, b in zip(alone, search.run(np.concatenate(given), five), strict=True):
            same(a, b)
            assert np.array_equal(a.states, b.states)


def test_cells_lie_as_the_map_says() -> None:
    view = PILLAR.window().view(0)
    points = np.array([[-5.0, 0.1, 1.0], [-4.0, 0.1, 1.0], [-5.0, 0.1, -0.01], [30.0, 0.0, 1.0]])
    assert view.blocked(points).tolist() == [True, False, True, True]
    assert view.resolution == H
