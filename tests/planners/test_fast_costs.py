"""Costs against central differences, compiled against twin, fits, time adjustment, yaw."""

import numpy as np
import pytest
from tests.planners.fast_cases import H, World

from airworthy.core.arrays import Array
from airworthy.planners.common.bspline import evaluate, fit, uniform_knots
from airworthy.planners.common.interface import MapSettings, Mission
from airworthy.planners.common.lbfgs import LbfgsConfig, minimise
from airworthy.planners.fast.costs import (
    FitPoints,
    SplineCosts,
    SplineDescent,
    ending,
    excess,
    nearness,
    put_control,
    put_points,
    smoothness,
)
from airworthy.planners.fast.plans import headings, unwrapped, yaw_plan
from airworthy.planners.fast.timed import Watcher, adjusted, derivative_peaks, first_meeting, probe
from airworthy.planners.fast.windows import WindowTwin, windows_of
from airworthy.planners.fast.work import PlannerWork
from airworthy.planners.mapping import maps_of_cells

PILLARS = World((20.0, 12.0, 3.0), np.array([[-6.0, 0.1, 0.5], [-4.0, -1.2, 0.4], [-4.5, 1.5, 0.4], [-3.0, 0.3, 0.4]]))
DT, SPEED, MOST = 0.17, 3.0, 2.0


class Slope:
    """A distance field of slope 1 that falls along a direction: what `nearness` takes its gradient for."""

    def __init__(self, along: Array, offset: float):
        self.along, self.offset = along / np.linalg.norm(along), offset

    def distance(self, points: Array) -> tuple[Array, Array]:
        return points @ self.along + self.offset, np.broadcast_to(self.along, points.shape)


def curve(seed: int, count: int = 14, spread: float = 0.3) -> Array:
    rng = np.random.default_rng(seed)
    return np.linspace((-8.0, 0.0, 1.0), (-1.0, 0.4, 1.3), count) + rng.normal(0.0, spread, (count, 3))


def central(function, q: Array, step: float = 1e-5) -> Array:
    g = np.zeros_like(q)
    for at in np.ndindex(q.shape):
        up, down = q.copy(), q.copy()
        up[at] += step
        down[at] -= step
        g[at] = (function(up) - function(down)) / (2.0 * step)
    return g


def close(found: Array, wanted: Array) -> None:
    """Relative error below 1e-6 of the largest entry, as the specification asks."""
    assert np.abs(found - wanted).max() < 1e-6 * max(1.0, np.abs(wanted).max())


@pytest.mark.parametrize("seed", range(5))
def test_gradients_against_central_differences(seed: int) -> None:
    q, view = curve(seed), Slope(np.array([0.3, -1.0, 0.2]), 0.1)
    target = np.array([1.0, 2.0, 3.0])
    for cost in (
        smoothness,
        lambda p: nearness(p, view, 0.4),
        lambda p: excess(p, DT, SPEED, MOST),
        lambda p: ending(p, target),
    ):
        close(cost(q)[1], central(lambda p, cost=cost: cost(p)[0], q))
    assert nearness(q, view, 0.4)[0] > 0.0
    assert excess(q, DT, SPEED, MOST)[0] > 0.0


def test_gradients_at_the_edges_of_branches() -> None:
    """Where a term begins it begins flat: value and gradient are continuous there, to the step of the differences."""
    q = np.zeros((8, 3))
    q[:, 0] = np.arange(8) * SPEED * DT  # exactly the speed limit
    value, g = excess(q, DT, SPEED, MOST)
    assert value < 1e-20
    assert np.abs(g - central(lambda p: excess(p, DT, SPEED, MOST)[0], q, 1e-7)).max() < 1e-4
    view = Slope(np.array([0.0, 0.0, 1.0]), 0.4)  # exactly the clearance
    value, g = nearness(np.zeros((8, 3)), view, 0.4)
    assert value == 0.0
    assert not g.any()
    assert np.abs(central(lambda p: nearness(p, view, 0.4)[0], np.zeros((8, 3)), 1e-7)).max() < 1e-6


def test_field_between_cells_is_trilinear_and_its_gradient_exact() -> None:
    view = PILLARS.window().view(0)
    rng = np.random.default_rng(3)
    points = rng.uniform((-9.0, -5.0, 0.3), (9.0, 5.0, 2.7), (500, 3))
    # Away from the faces between cells, where the slope jumps.
    points = H * (np.floor(points / H) + 0.5 + rng.uniform(0.05, 0.45, points.shape))
    value, slope = view.distance(points)
    for k in range(3):
        step = np.eye(3)[k] * 1e-6
        numeric = (view.distance(points + step)[0] - view.distance(points - step)[0]) / 2e-6
        np.testing.assert_allclose(slope[:, k], numeric, atol=1e-7)
    middles = view.corner + H * (np.array([[20, 61, 10], [40, 62, 15]]) + 0.5)
    np.testing.assert_allclose(view.distance(middles)[0], [view.field[20, 61, 10], view.field[40, 62, 15]], rtol=1e-6)
    assert value.min() < 0.0 < value.max()


def test_the_push_is_the_gradient_where_the_field_is_smooth() -> None:
    """A wall: the field is a distance of slope 1, so unit and true gradient are the same."""
    world = World((20.0, 12.0, 3.0), np.zeros((0, 3)))
    world.cells[..., 1:-1] = False
    world.cells[:, :40, :] = True
    view, q = world.window().view(0), curve(7)
    q[:, 1] = np.linspace(-1.9, -1.5, len(q))
    q[:, 2] = 1.5
    close(nearness(q, view, 0.4)[1], central(lambda p: nearness(p, view, 0.4)[0], q))


def descent(evaluations: int = 300) -> SplineDescent:
    return SplineDescent(10.0, 5.0, 1e-5, 0.01, 0.4, evaluations, 1e-5)


def twin(q: Array, free_end: bool, view: WindowTwin) -> SplineCosts:
    return SplineCosts(view, q, DT, 10.0, 5.0, 1e-5, 0.01, 0.4, SPEED, MOST, free_end)


@pytest.mark.parametrize("free_end", [True, False])
@pytest.mark.parametrize("evaluations", [1, 40, 300])
def test_compiled_optimisation_equals_the_twin_to_the_bit(free_end: bool, evaluations: int) -> None:
    world, q = PILLARS.window(), curve(5)
    solver = descent(evaluations)
    records = solver.fresh(1)
    put_control(records[0], q)
    records["interval"], records["speed"], records["most"], records["free_end"] = DT, SPEED, MOST, free_end
    found = solver.run(records, world)[0]
    costs = twin(q, free_end, world.view(0))
    settings = LbfgsConfig(evaluations=evaluations, iterations=evaluations, gradient_tolerance=1e-9, step_tolerance=1e-5)
    wanted = minimise(costs, q[3 : costs.last].reshape(-1), settings)
    assert (found.value, found.evaluations) == (wanted.value, wanted.evaluations)
    assert np.array_equal(found.control, costs.points(wanted.x))
    assert np.array_equal(found.knots, uniform_knots(len(q), DT)[0])
    if evaluations == 300:
        before = view_least(world.view(0), q)
        assert view_least(world.view(0), found.control) > before
        assert found.value < costs(q[3 : costs.last].reshape(-1))[0]


def view_least(view: WindowTwin, q: Array) -> float:
    return float(view.distance(evaluate(q[None], uniform_knots(len(q), DT), np.linspace(0.0, 11 * DT, 200)[None])[0])[0].min())


def test_compiled_fit_equals_the_shared_one() -> None:
    rng = np.random.default_rng(4)
    points, ends = curve(8, 12), rng.normal(0.0, 1.0, (2, 2, 3))
    found = descent().fitted([FitPoints(points, ends, DT), FitPoints(points[:8], ends, 0.4)])
    assert np.array_equal(found[0], fit(points[None], DT, ends[None, 0], ends[None, 1])[0])
    assert np.array_equal(found[1], fit(points[None, :8], 0.4, ends[None, 0], ends[None, 1])[0])


def test_time_adjustment() -> None:
    q = curve(9, spread=0.05)
    knots = uniform_knots(len(q), DT)[0]
    slow = adjusted(q, knots, 100.0, 100.0)
    assert np.array_equal(slow, knots)
    solver = descent(0)
    records = solver.fresh(1)
    put_control(records[0], q)
    records["interval"], records["speed"], records["most"], records["sweeps"] = DT, SPEED, MOST, 3
    found = solver.run(records, PILLARS.window())[0].knots
    wanted = adjusted(q, knots, SPEED, MOST, 3)
    np.testing.assert_allclose(found, wanted, rtol=1e-14)
    before, after = derivative_peaks(q, knots), derivative_peaks(q, wanted)
    assert before[0] > SPEED
    assert (np.diff(wanted) > 0.0).all()
    assert after < before
    # Enough sweeps keep both limits, to the tolerance of the test that ends them.
    done = derivative_peaks(q, adjusted(q, knots, SPEED, MOST, 100))
    assert done[0] <= SPEED + 1e-4
    assert done[1] <= MOST + 1e-4


def test_one_stretch_by_hand() -> None:
    """Control points of which only the velocity between the fifth and the sixth is too fast."""
    q = np.zeros((9, 3))
    q[5:, 0] = 1.0
    knots = uniform_knots(9, 1.0)[0]
    # |V_4| = 3 * 1 / 3 = 1 against a limit of 0.95: r = 1/0.95 + 1e-4 on u_8 - u_5, spread over knots 6 to 8.
    longer = (1.0 / 0.95 + 1e-4 - 1.0) * 3.0
    wanted = knots + np.array([0.0] * 6 + [longer / 3, 2 * longer / 3, longer] + [longer] * 4)
    np.testing.assert_allclose(adjusted(q, knots, 0.95, 100.0, 1), wanted, rtol=1e-14)


def test_yaw_follows_the_curve_and_meets_both_ends() -> None:
    t = np.linspace(0.0, 1.0, 30)
    q = np.stack([8.0 * np.cos(3.0 * t), 8.0 * np.sin(3.0 * t), np.ones(30)], axis=1)
    knots = uniform_knots(30, 0.3)[0]
    plan = yaw_plan(q, knots, (1.0, 0.2, 0.0), ahead=2.0, longest=0.3, smooth=10.0, points=100.0)
    at = np.arange(len(plan.control) - 3) * plan.interval
    flat = np.concatenate([plan.control[:, None]] * 3, axis=1)
    value = evaluate(flat[None], uniform_knots(len(flat), plan.interval), np.append(at, at[-1] + plan.interval)[None])[0, :, 0]
    first = (plan.control[2] - plan.control[0]) / (2.0 * plan.interval)
    assert (value[0], first) == (pytest.approx(1.0, abs=1e-12), pytest.approx(0.2, abs=1e-12))
    # On a circle the chord to where the vehicle is 2 s later points half the arc ahead of the tangent.
    there = evaluate(q[None], knots[None], np.stack([at, np.minimum(at + 2.0, 8.1)]).reshape(1, -1))[0]
    chord = there[len(at) :] - there[: len(at)]
    wanted = np.unwrap(np.arctan2(chord[:, 1], chord[:, 0]))
    # After the turn from where it began, and before that to the direction at the end.
    assert np.abs(value[8:-6] - wanted[8:-5]).max() < 0.03
    # The valid part of the curve ends at its last control point but one, where it is tangent to the circle.
    assert value[-1] == pytest.approx(3.0 * 28.0 / 29.0 + 0.5 * np.pi, abs=0.03)


def test_yaw_minimises_its_cost() -> None:
    q, knots = curve(11), uniform_knots(14, DT)[0]
    plan = yaw_plan(q, knots, (0.5, 0.0, 0.0), ahead=2.0, longest=0.1, smooth=10.0, points=100.0)
    duration, pieces = float(knots[14] - knots[3]), len(plan.control) - 3
    at = np.arange(pieces) * plan.interval
    where = evaluate(q[None], knots[None], np.stack([at, np.minimum(at + 2.0, duration)]).reshape(1, -1))[0]
    wanted = headings(where[:pieces], where[pieces:], 0.5)

    def cost(c: Array) -> float:
        misses = (c[:-3] + 4.0 * c[1:-2] + c[2:-1]) / 6.0 - wanted
        return float(10.0 * (np.diff(c, 3) ** 2).sum() + 100.0 * (misses**2).sum())

    slope = [(cost(plan.control + e) - cost(plan.control - e)) / 2e-5 for e in np.eye(len(plan.control))[3:-3] * 1e-5]
    assert np.abs(slope).max() < 1e-6 * cost(plan.control + 0.1)


def test_headings_turn_the_short_way() -> None:
    assert unwrapped(3.0, -3.0) == pytest.approx(-3.0 + 2.0 * np.pi)
    ahead = np.array([[-1.0, 0.1, 0.0], [-1.0, -0.1, 0.0], [0.0, 0.0, 0.0]])
    found = headings(np.zeros((3, 3)), ahead, 3.0)
    assert np.abs(np.diff(found, prepend=3.0)).max() < 0.4
    assert found[2] == found[1]


def test_watching_equals_the_twin() -> None:
    """Plans that meet a pillar, one that meets none, one that begins behind it; distances at points."""
    from airworthy.planners.fast.plans import FlightPlans, SplinePlan, YawPlan

    world, straight = PILLARS.window(), np.linspace((-8.0, 0.0, 1.0), (0.0, 0.3, 1.2), 20)
    aside = straight + np.array([0.0, 4.0, 0.0])
    plans, knots = FlightPlans(np.zeros((3, 3)), np.zeros(3)), uniform_knots(20, 0.2)[0]
    for flight, control in enumerate((straight, aside, straight)):
        plans.put(flight, SplinePlan(control, knots, YawPlan(np.zeros(5), 1.0), 10.0))
    now = np.array([10.0, 10.4, 12.8])
    goals = np.array([[8.0, 0.0, 1.0], [-6.0, 0.85, 1.0], [8.0, 0.0, 1.0]])
    three = type(world)(np.repeat(world.records, 3), world.alive)
    checked = Watcher(6.0, 0.3).check(plans, np.arange(3), now, goals, three)
    for k, control in enumerate((straight, aside, straight)):
        hit, distance = first_meeting(control, knots, float(now[k] - 10.0), 6.0, world.view(0))
        assert (checked.hit[k], checked.distance[k]) == (pytest.approx(hit, abs=1e-12), pytest.approx(distance, rel=1e-12))
    assert checked.hit[0] > 0.0 > checked.hit[1]
    assert checked.goal_near.tolist() == [False, True, False]
    points = np.random.default_rng(0).uniform((-11.0, -6.0, 0.0), (10.0, 6.0, 3.0), (200, 3))
    assert np.array_equal(probe(PlannerWork(8), [0], [points], world)[0], world.view(0).coarse(points))


def test_windows_of_kept_maps_read_the_same_cells() -> None:
    """Maps that keep rings in memory are read where they lie."""
    lower, upper = PILLARS.lower[None], PILLARS.upper[None]
    mission = Mission(lower, upper, np.ones(1), np.ones(1), lower, upper, np.arange(1))
    settings = MapSettings(ground=0.0, field=True)
    boxes_shape = (200, 120, 31)
    cells = np.zeros(boxes_shape, bool)
    cells[60:70, 50:60, :20] = True
    maps = maps_of_cells([cells], mission, settings)
    view = windows_of(maps, np.array([0]), lower, upper, H, True).view(0)
    given, corner = maps.inflated(0)
    assert np.array_equal(view.cells, given)
    np.testing.assert_allclose(view.field, maps.field(0)[0], atol=1e-6)
    points = np.random.default_rng(0).uniform((-9.0, -5.0, 0.3), (9.0, 5.0, 2.5), (300, 3))
    np.testing.assert_allclose(view.distance(points)[0], maps.distance([0], points[None])[0][0], atol=1e-9)
    np.testing.assert_allclose(view.corner, corner)
    record = descent().fresh(1)
    put_points(record[0], curve(1, 10), np.zeros((2, 2, 3)))
    record["interval"], record["speed"], record["most"] = DT, SPEED, MOST
    found = descent().run(record, windows_of(maps, np.array([0]), lower, upper, H, True))[0]
    assert np.isfinite(found.control).all()
