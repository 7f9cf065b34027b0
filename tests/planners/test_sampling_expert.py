"""The sampling expert: its linear maps, its costs by hand, its walk, and a flight around a pillar."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy

from airworthy.core.errors import AirworthyError
from airworthy.core.random import flight_key
from airworthy.pilots.pilot import observe
from airworthy.planners.common.interface import Mission
from airworthy.planners.common.tracking import PlannerPilot
from airworthy.planners.mapping import maps_of_cells
from airworthy.planners.sampling_expert import MAP_SETTINGS, SamplingExpert, SamplingSettings, descent
from airworthy.planners.sampling_expert.descent import descended, descent_cost
from airworthy.planners.sampling_expert.planner import find_route, free_way, smoothed_routes
from airworthy.planners.sampling_expert.retimed import RetimedPaths
from airworthy.planners.sampling_expert.sampling import (
    CONTACT,
    REACH,
    TIMES,
    Goal,
    collision_cost,
    constrained_fit,
    powers,
    sample,
    spline_points,
    trajectory_cost,
)
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import vehicle


def mission(count: int = 1, numbers: list[int] | None = None) -> Mission:
    rows = [np.tile(row, (count, 1)) for row in ([-5.0, 0.0, 1.5], [5.0, 0.0, 1.5], [-7.0, -4.0, 0.0], [7.0, 4.0, 3.0])]
    flight = np.arange(count) if numbers is None else np.array(numbers)
    return Mission(rows[0], rows[1], np.full(count, 4.0), np.full(count, 6.0), rows[2], rows[3], flight, 3)


def maps_with(pillars: list[tuple[float, float]], count: int = 1, radius: float = 0.5):  # type: ignore[no-untyped-def]
    x, y = np.meshgrid(np.arange(140) * 0.1 - 6.95, np.arange(80) * 0.1 - 3.95, indexing="ij")
    flat = np.zeros(x.shape, bool)
    for px, py in pillars:
        flat |= np.hypot(x - px, y - py) < radius
    return maps_of_cells([np.repeat(flat[:, :, None], 31, axis=2)] * count, mission(count), MAP_SETTINGS)


# ---- linear maps ----------------------------------------------------------------------------------------------------------


def test_spline_is_the_natural_one() -> None:
    knots = np.random.default_rng(1).normal(size=4)
    spline = scipy.interpolate.CubicSpline(np.arange(4) / 3.0, knots, bc_type="natural")
    assert np.allclose(spline_points() @ knots, spline(TIMES), atol=1e-12)


@pytest.mark.parametrize(("degree", "held"), [(8, 2), (5, 3)])
def test_fit_keeps_the_start_and_is_the_least_squares(degree: int, held: int) -> None:
    rng = np.random.default_rng(2)
    points, start = rng.normal(size=10), rng.normal(size=held)
    by_points, by_start = constrained_fit(degree, held)
    fit = by_points @ points + by_start @ start
    for d in range(held):
        assert powers(np.array(0.0), degree, d) @ fit == pytest.approx(start[d])
    residual = powers(TIMES, degree) @ fit - points
    # Least squares: the residual is orthogonal to every free power.
    assert np.abs(powers(TIMES, degree)[:, held:].T @ residual).max() < 1e-9
    exact = rng.normal(size=degree + 1)
    again = by_points @ (powers(TIMES, degree) @ exact) + by_start @ [
        powers(np.array(0.0), degree, d) @ exact for d in range(held)
    ]
    assert np.allclose(powers(TIMES, degree) @ again, powers(TIMES, degree) @ exact, atol=1e-9)


# ---- costs ----------------------------------------------------------------------------------------------------------------


def test_collision_cost_by_distance_and_box() -> None:
    maps, turn = maps_with([(0.0, 0.0)]), np.broadcast_to(np.eye(3), (1, 4, 3, 3))
    points = np.array([[[-2.5, 0.0, 1.5], [-1.0, 0.0, 1.5], [-0.7, 0.0, 1.5], [0.0, 0.0, 1.5]]])
    cost, away = collision_cost(maps, np.zeros(1, np.int64), points, turn)
    assert away[0, 0] == pytest.approx(1.54, abs=0.05)  # the ceiling is nearer than the pillar
    assert cost[0, 0] == 0.0  # farther than the reach
    assert cost[0, 1] == pytest.approx(CONTACT * (REACH - away[0, 1]) / REACH)
    assert cost[0, 2] == cost[0, 3] == CONTACT  # 0.2 m ahead of a body of 0.3 m; inside


def test_trajectory_cost_by_hand() -> None:
    maps = maps_with([])
    straight = np.zeros((1, 1, 9, 3))
    straight[0, 0, 0], straight[0, 0, 1] = [-3.0, 0.0, 1.5], [2.0, 0.0, 0.0]
    points = np.einsum("tk,kj->tj", powers(TIMES, 8), straight[0, 0])
    speeds = np.tile([2.0, 0.0, 0.0], (10, 1))
    heights = np.array([[0.5, 2.6]])
    goal = Goal(points[:1] * 0, points[:1] * 0, points[None], speeds[None], heights)
    flight = np.zeros(1, np.int64)
    assert trajectory_cost(maps, flight, straight, goal)[0, 0] == pytest.approx(0.0, abs=1e-9)
    moved = straight.copy()
    moved[0, 0, 0] += [0.0, 0.1, 0.2]
    assert trajectory_cost(maps, flight, moved, goal)[0, 0] == pytest.approx(100.0 * 0.01 + 100.0 * 0.04)
    high = straight.copy()
    high[0, 0, 0, 2] = 2.65
    assert np.isinf(trajectory_cost(maps, flight, high, goal)[0, 0])
    assert np.isinf(trajectory_cost(maps_with([(-1.5, 0.0)]), flight, straight, goal)[0, 0])


# ---- the walk -------------------------------------------------------------------------------------------------------------


def goal_past(count: int = 1) -> Goal:
    start, speed = np.tile([-2.0, 0.0, 1.5], (count, 1)), np.tile([2.0, 0.0, 0.0], (count, 1))
    points = start[:, None] + TIMES[:, None] * speed[:, None]
    heights = np.tile([0.5, 2.6], (count, 1))
    return Goal(start, speed, points, np.tile(speed[:, None], (1, 10, 1)), heights)


def test_walk_finds_a_way_past_and_stops_early_where_it_may() -> None:
    settings = SimpleNamespace(samples=640, chains=16, kept=5)
    key, flight, tick = flight_key(3, np.array([4]), 9), np.zeros(1, np.int64), np.array([2])
    free = sample(maps_with([]), flight, goal_past(), key, tick, settings)
    assert free.samples[0] < 640  # five good ones long before
    assert free.cost[0, 0] < 1.0  # the reference itself is the first
    blocked = maps_with([(-0.3, 0.15)], radius=0.4)
    found = sample(blocked, flight, goal_past(), key, tick, settings)
    assert found.samples[0] == 640
    assert (np.diff(found.cost[0]) >= 0.0).all()
    assert found.cost[0, 0] < 9000.0
    points = powers(np.linspace(0.0, 1.0, 50), 8) @ found.coefficients[0, 0]
    assert blocked.distance(flight, points[None])[0].min() > 0.15  # points of the cost keep 0.2 m; between them a cell less
    three, keys = maps_with([(-0.3, 0.15)], 3, 0.4), flight_key(3, np.array([7, 4, 8]), 9)
    again = sample(three, np.arange(3), goal_past(3), keys, np.full(3, 2), settings)
    assert np.array_equal(again.coefficients[1], found.coefficients[0])


# ---- descent --------------------------------------------------------------------------------------------------------------


def test_descent_of_noise_comes_to_the_reference_where_nothing_is_near() -> None:
    goal, rng = goal_past(), np.random.default_rng(6)
    begun = goal.points[:, None] + 0.3 * rng.normal(size=(1, 3, 10, 3))
    begun[0, 2] = np.nan
    found = descended(maps_with([]), np.zeros(1, np.int64), goal, begun, 15)
    np.testing.assert_allclose(found[0, :2], np.broadcast_to(goal.points[0], (2, 10, 3)), atol=1e-3)
    assert np.isnan(found[0, 2]).all()


class _Ball:
    """Distances from a ball's middle, and their gradients."""

    def __init__(self, middle: np.ndarray):
        self.middle = middle

    def distance(self, flights: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        away = points - self.middle
        far = np.linalg.norm(away, axis=-1)
        return far, away / far[..., None]


def test_the_slope_of_the_cost_is_what_differences_say() -> None:
    """Near something, and below and above the heights: at each of the twelve numbers of two trajectories."""
    goal, flight, rng = goal_past(), np.zeros(1, np.int64), np.random.default_rng(4)
    low, high = (float(x) for x in np.quantile(goal.points[0, :, 2] + np.linspace(-0.3, 0.3, len(TIMES)), [0.3, 0.6]))
    goal = replace(goal, heights=np.array([[low, high]]))
    maps = _Ball(goal.points[0, 4] + [0.1, 0.3, 0.0])
    free = goal.position[:, None] + TIMES[:, None] * goal.velocity[:, None]
    x = 0.4 * rng.normal(size=(1, 2, 4, 3))
    places = free[:, None] + np.einsum("tk,nmkj->nmtj", powers(TIMES, 5)[:, 2:], x)
    assert (maps.distance(flight, places)[0] < REACH).any()
    assert (places[..., 2] < low).any()
    assert (places[..., 2] > high).any()
    slope, step = descent._model(maps, flight, goal, free, x)[1], 1e-6
    for k, index in enumerate(np.ndindex(4, 3)):
        off = np.zeros((4, 3))
        off[index] = step
        above, below = (descent._model(maps, flight, goal, free, x + sign * off)[0] for sign in (1.0, -1.0))
        np.testing.assert_allclose(slope[..., k], (above - below) / (2.0 * step), rtol=1e-4, atol=1e-3)


def test_descent_costs_less_agrees_with_itself_and_gives_way() -> None:
    settings, flight = SimpleNamespace(samples=256, chains=16, kept=3), np.zeros(1, np.int64)
    maps = maps_with([(-0.3, 0.25)], radius=0.4)
    ends, begun = [], []
    for number in range(3):
        found = sample(maps, flight, goal_past(), flight_key(3, np.array([number]), 9), flight, settings)
        best = np.einsum("tk,nmkj->nmtj", powers(TIMES, 8), found.coefficients[:, :1])
        begun.append(best[0, 0])
        ends.append(descended(maps, flight, goal_past(), best, 25)[0, 0])
    assert np.std(begun, axis=0).max() > 5.0 * np.std(ends, axis=0).max()
    assert maps.distance(flight, np.array(ends)[:1])[0].min() > 0.5
    basis = [powers(TIMES, 5, d)[:, 2:] for d in range(3)]
    free = goal_past().position + TIMES[:, None] * goal_past().velocity

    def cost(coefficients: np.ndarray) -> float:
        points, speeds, pushes = (rows @ coefficients for rows in basis)
        moving = (points + free, speeds + goal_past().velocity, pushes)
        return float(descent_cost(maps, flight, goal_past(), *(part[None, None] for part in moving))[0, 0])

    least = np.linalg.pinv(basis[0]) @ (ends[0] - free)
    for index in np.ndindex(least.shape):
        for sign in (1.0, -1.0):
            moved = least.copy()
            moved[index] += sign * 0.05
            assert cost(moved) > cost(least)


# ---- route and flight -----------------------------------------------------------------------------------------------------


def test_route_keeps_its_distance_and_joins_the_ends() -> None:
    maps = maps_with([(0.0, 0.0)])
    start, goal = mission().start[0], mission().goal[0]
    route = find_route(maps, 0, start, goal, 0.1)
    assert route.found
    assert np.allclose(route.points[[0, -1]], [start, goal])
    assert maps.distance(np.zeros(1, np.int64), route.points[None])[0].min() > 0.5
    assert route.along[-1] < 11.0
    assert route.progress(route.at(np.array(3.0)), 2.0) == pytest.approx(3.0, abs=0.11)
    walled = maps_with([(0.0, y) for y in np.arange(-4.0, 4.1, 0.5)])
    assert not find_route(walled, 0, start, goal, 0.1).found


def test_ways_smoothed_together_are_those_smoothed_alone() -> None:
    maps = maps_with([(0.0, 0.0), (2.0, 0.6)])
    field, lower = maps.field(0)
    starts = mission().start[0] + np.array([[0.0, 0.0, 0.0], [3.0, -0.5, 0.2]])
    ways = [free_way(field, lower, start, mission().goal[0], 0.1) for start in starts]
    assert all(way is not None for way in ways)
    together = smoothed_routes(maps, 0, [way for way in ways if way is not None])
    for start, route in zip(starts, together, strict=True):
        np.testing.assert_array_equal(route.points, find_route(maps, 0, start, mission().goal[0], 0.1).points)


def test_it_flies_around_a_pillar_and_stops_at_the_goal() -> None:
    maps = maps_with([(0.0, 0.1)])
    pilot = PlannerPilot(SamplingExpert(SamplingSettings(samples=192)), mission(), vehicle("virt_05"), maps)
    simulator = Simulator(vehicle("virt_05"), pilot.configured(SimulatorConfig(physics_rate=480.0)), env_count=1)
    simulator.reset(position=pilot.mission.start)
    pilot.attach(simulator)
    path = []
    for _ in range(700):
        simulator.step(pilot.command(observe(simulator, pilot.observes)))
        path.append(np.array(simulator.position[0]))
    flown = np.array(path)
    assert pilot.causes == [""]
    assert (np.hypot(flown[:, 0], flown[:, 1] - 0.1) - 0.5).min() > 0.3
    assert np.abs(flown[:, 2] - 1.5).max() < 0.8
    assert np.linalg.norm(flown[-1] - mission().goal[0]) < 0.8
    assert np.linalg.norm(flown[-1] - flown[-50]) < 0.3


def test_settings_that_cannot_be_used() -> None:
    with pytest.raises(AirworthyError, match="no more chains than samples"):
        SamplingSettings(samples=4, chains=8)


def test_the_best_candidate_is_the_one_that_is_flown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two candidates the first bends to one side, the second to the other; costs that are none leave the path as it was."""
    from airworthy.planners.sampling_expert import planner as module

    better, worse = np.zeros((9, 3)), np.zeros((9, 3))
    better[0], worse[0] = (-5.0, 0.0, 1.5), (-5.0, 0.0, 1.5)
    better[1], worse[1] = (4.0, 1.0, 0.0), (4.0, -1.0, 0.0)
    costs = iter([[1.0, 2.0], [np.inf, np.inf]])
    asked: list[np.ndarray] = []

    def sampled(*_: object) -> SimpleNamespace:
        return SimpleNamespace(samples=7, cost=np.array([next(costs)]), coefficients=np.array([[better, worse]]))

    plain = RetimedPaths.decide
    monkeypatch.setattr(module, "sample", sampled)
    monkeypatch.setattr(RetimedPaths, "decide", lambda self, *given: asked.append(given[1]) or plain(self, *given))
    expert = SamplingExpert(SamplingSettings(samples=32))
    expert.reset(mission())
    states = []
    for time in (0.0, 0.2):
        place = mission().start
        motion = SimpleNamespace(time=np.array([time]), position=place, velocity=np.zeros((1, 3)))
        told = expert.update(motion, maps_with([]), np.ones(1, bool))  # type: ignore[arg-type]
        states.append((told["state"].tolist(), told["replans"].tolist()))
    assert states == [([0], [1]), ([1], [0])]
    assert len(asked) == 1
    np.testing.assert_array_equal(asked[0], powers(TIMES, 8) @ better)
