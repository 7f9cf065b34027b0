"""Fast-Planner whole: arrives, keeps away, replans, moves bad goals, does not depend on the batch, waits for its compute."""

import numpy as np
import pytest
from tests.planners.fast_cases import SightMaps, World, fly, forest

from airworthy.planners.common.bspline import uniform_knots
from airworthy.planners.common.interface import Mission, Motion
from airworthy.planners.fast.planner import FastPlanner, PlannerStage, candidates, clearer_goal
from airworthy.planners.fast.plans import FlightPlans, PlanQueue, SplinePlan, YawPlan

START, GOAL = np.array([[-8.0, 0.0, 1.0]]), np.array([[8.0, 0.0, 1.0]])
PILLAR = World((24.0, 12.0, 3.0), np.array([[0.0, 0.1, 0.5]]))
FREE = World((24.0, 12.0, 3.0), np.zeros((0, 3)))


def test_flies_past_a_pillar() -> None:
    flown = fly(FastPlanner(), [PILLAR], START, GOAL, limit=15.0)
    assert flown.arrived.all()
    # The optimiser pushes from 0.4 m on, against a field that is inflated by one cell.
    assert flown.clearance[0] > 0.3
    assert flown.replans[0] > 3
    # 16 m at 3 m/s and 2 m/s^2 take 6.8 s straight; the planner's times are those of its search, plus stretches.
    assert flown.time[0] < 10.0
    # A set-point moves by no more than its speed allows: sqrt(3) * 3 m/s per axis, plus what the time adjustment leaves.
    assert flown.jumps < 0.07


def test_flights_do_not_depend_on_the_batch() -> None:
    worlds, n = [FREE, PILLAR], 2
    both = fly(FastPlanner(), worlds, np.repeat(START, n, 0), np.repeat(GOAL, n, 0), limit=2.5)
    for k in range(n):
        alone = fly(FastPlanner(), [worlds[k]], START, GOAL, limit=2.5)
        assert np.array_equal(alone.tracks[0], both.tracks[k][: len(alone.tracks[0])])


def test_compute_delays_plans_and_flights_still_arrive() -> None:
    late = fly(FastPlanner(), [PILLAR], START, GOAL, limit=15.0, delay=0.05)
    assert late.arrived.all()
    assert late.clearance[0] > 0.25


def test_a_goal_in_a_pillar_is_moved() -> None:
    goal = np.array([[0.3, 0.1, 1.0]])
    planner = FastPlanner()
    fly(planner, [PILLAR], START, goal, limit=4.0)
    assert PILLAR.clearance(planner.goal) > 0.3
    assert np.linalg.norm(planner.goal[0] - goal[0]) < 2.6


def test_candidates_and_what_is_chosen() -> None:
    view = PILLAR.window().view(0)
    goal = np.array([0.0, 0.1, 1.0])
    around = candidates(goal)
    assert around.shape == (180, 3)
    radii = np.unique(np.round(np.hypot(*(around - goal)[:, :2].T), 6))
    np.testing.assert_allclose(radii, [0.5, 1.0, 1.5, 2.0, 2.5])
    found = clearer_goal(goal, view, 0.3)
    assert found is not None
    inside = around[((around >= view.lower) & (around <= view.upper)).all(1)]
    assert view.coarse(found[None])[0] == view.coarse(inside).max()
    assert clearer_goal(goal, view, 50.0) is None


def test_no_way_keeps_trying_but_not_every_time() -> None:
    """A start walled in: attempts are as far apart as they would take."""
    angles = np.linspace(0.0, 2.0 * np.pi, 40, endpoint=False)
    ring = np.stack([-8.0 + 1.2 * np.cos(angles), 1.2 * np.sin(angles), np.full(40, 0.3)], axis=1)
    world, planner = World((24.0, 12.0, 3.0), ring), FastPlanner()
    maps = SightMaps([world])
    maps.see(START)
    mission = Mission(START, GOAL, np.array([3.0]), np.array([2.0]), world.lower[None], world.upper[None], np.arange(1))
    planner.reset(mission)
    still, asked = np.zeros((1, 3)), 0
    for step in range(200):
        motion = Motion(np.array([step * 0.01]), START, still, np.array([[0.0, 0.0, 0.0, 1.0]]))
        report = planner.update(motion, maps, np.array([True]))
        asked += bool(report["work"]["kino_expansions"][0] > 0)
        assert report["replans"][0] == 0
        assert report["state"][0] == PlannerStage.GENERATE
        assert np.array_equal(planner.setpoints(motion.time).position, START)
    assert 1 <= asked < 200


def test_nothing_is_asked_of_flights_that_are_not_active() -> None:
    planner, maps = FastPlanner(), SightMaps([FREE, FREE])
    two = np.repeat(START, 2, 0), np.repeat(GOAL, 2, 0)
    maps.see(two[0])
    mission = Mission(
        *two, np.full(2, 3.0), np.full(2, 2.0), *(np.repeat(c[None], 2, 0) for c in (FREE.lower, FREE.upper)), np.arange(2)
    )
    planner.reset(mission)
    motion = Motion(np.zeros(2), two[0], np.zeros((2, 3)), np.tile((0.0, 0.0, 0.0, 1.0), (2, 1)))
    report = planner.update(motion, maps, np.array([True, False]))
    assert report["replans"].tolist() == [1, 0]
    assert report["work"]["evaluations"][1] == 0.0


def test_plans_hold_when_their_compute_is_over() -> None:
    plans = FlightPlans(np.zeros((1, 3)), np.zeros(1))
    queue, knots = PlanQueue(plans), uniform_knots(8, 1.0)[0]
    always = np.array([True])

    def plan(height: float) -> SplinePlan:
        return SplinePlan(np.full((8, 3), height), knots, YawPlan(np.zeros(5), 1.0), 1.0)

    queue.begin(np.array([1.0]), always)
    queue.offer(0, plan(1.0))
    queue.adopt(np.array([0.3]))
    assert not queue.begin(np.array([1.2]), always)[0]
    assert plans.setpoints(np.array([1.2])).position[0, 0] == 0.0
    # What is said of a flight that was busy counts for nothing.
    queue.adopt(np.array([5.0]))
    queue.settle(np.array([1.29]))
    assert plans.setpoints(np.array([1.29])).position[0, 0] == 0.0
    queue.settle(np.array([1.31]))
    assert plans.setpoints(np.array([1.31])).position[0, 0] == 1.0
    # A plan that is replaced before it holds never does.
    for time, height in ((1.4, 2.0), (1.4, 3.0)):
        assert queue.begin(np.array([time]), always)[0]
        queue.offer(0, plan(height))
    queue.adopt(np.array([0.1]))
    queue.settle(np.array([1.6]))
    assert plans.setpoints(np.array([1.6])).position[0, 0] == 3.0


def test_set_points_are_the_curve_and_its_derivatives() -> None:
    rng = np.random.default_rng(0)
    plans, knots = FlightPlans(np.zeros((2, 3)), np.zeros(2)), np.sort(rng.uniform(0.0, 5.0, 14))
    yaw = YawPlan(rng.normal(0.0, 0.3, 9), 1.0)
    plans.put(1, SplinePlan(rng.normal(0.0, 1.0, (10, 3)), knots, yaw, 2.0))
    duration, step = float(knots[10] - knots[3]), 1e-5
    for t in rng.uniform(0.05, duration - 0.05, 20):
        a, b, c = (plans.setpoints(np.full(2, 2.0 + t + d)) for d in (-step, 0.0, step))
        # The curve is cubic: central differences are exact to the rounding of the numbers that are taken from each other.
        np.testing.assert_allclose((c.position - a.position)[1] / (2 * step), b.velocity[1], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose((c.velocity - a.velocity)[1] / (2 * step), b.acceleration[1], rtol=1e-3, atol=1e-3)
        assert (c.yaw - a.yaw)[1] / (2 * step) == pytest.approx(b.yaw_rate[1], abs=1e-4)
        assert not b.velocity[0].any()
    after = plans.setpoints(np.full(2, 3.0 + duration))
    assert not after.velocity.any()
    assert not after.yaw_rate.any()


@pytest.mark.slow
def test_demo_forest() -> None:
    """Acceptance: 40 x 20 m, 150 pillars, 3 m/s, 2 m/s^2; at least 90 % of 20 seeds arrive."""
    cases = [forest(seed) for seed in range(20)]
    worlds, starts, goals = (list(x) for x in zip(*cases, strict=True))
    flown = fly(FastPlanner(), worlds, np.array(starts), np.array(goals), limit=40.0)
    good = flown.arrived & (flown.clearance > 0.0)
    assert good.sum() >= 18, (flown.time, flown.clearance)
