"""PGO whole: arrives, keeps away, stops before what it meets late, does not depend on the batch; its parts."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.planners.fast_cases import SightMaps, World, fly, forest

from airworthy.planners.common.bspline import evaluate_uniform, fit
from airworthy.planners.common.interface import Mission, Motion
from airworthy.planners.common.reference import References
from airworthy.planners.fast.costs import smoothness
from airworthy.planners.fast.windows import MapWindows
from airworthy.planners.pgo.planner import Job, PgoPlanner, PlannerStage, Replanned
from airworthy.planners.pgo.records import (
    CollisionRange,
    GuidePath,
    PgoSettings,
    collision_range,
    guided,
    path_length,
    resampled,
    squared_jerk,
    stretched,
)

START, GOAL = np.array([[-8.0, 0.0, 1.0]]), np.array([[8.0, 0.0, 1.0]])
PILLAR = World((24.0, 12.0, 3.0), np.array([[0.0, 0.1, 0.5]]))
FREE = World((24.0, 12.0, 3.0), np.zeros((0, 3)))
LIMITS = {"speed": 3.0, "acceleration": 2.5}


def test_flies_past_a_pillar() -> None:
    flown = fly(PgoPlanner(), [PILLAR], START, GOAL, limit=15.0, **LIMITS)
    assert flown.arrived.all()
    assert flown.clearance[0] > 0.25
    assert flown.replans[0] > 5
    assert flown.time[0] < 12.0


def test_flights_do_not_depend_on_the_batch() -> None:
    worlds = [FREE, PILLAR]
    numbers = np.array([3, 7])
    both = fly(PgoPlanner(), worlds, np.repeat(START, 2, 0), np.repeat(GOAL, 2, 0), limit=2.5, numbers=numbers, **LIMITS)
    alone = fly(PgoPlanner(), [PILLAR], START, GOAL, limit=2.5, numbers=numbers[1:], **LIMITS)
    assert np.array_equal(alone.tracks[0], both.tracks[1][: len(alone.tracks[0])])


def appearing(planner: PgoPlanner, ahead: float) -> tuple[list[int], list[float], float]:
    """Fly towards a wall that appears `ahead` after 2 s: stages and speeds of set-points every 0.01 s, and the way left."""
    maps = SightMaps([FREE])
    box = FREE.lower[None], FREE.upper[None]
    planner.reset(Mission(START, GOAL, np.array([3.0]), np.array([2.5]), *box, np.arange(1)))
    position, velocity, wall = START.copy(), np.zeros((1, 3)), np.inf
    stages, speeds = [], []
    for step in range(400):
        now = np.array([step * 0.01])
        if step == 200:
            world = World((24.0, 12.0, 3.0), np.zeros((0, 3)))
            cell = int((position[0, 0] + ahead - FREE.lower[0]) / 0.1)
            world.cells[cell : cell + 2], wall = True, FREE.lower[0] + 0.1 * cell
            maps = SightMaps([world])
        maps.see(position)
        motion = Motion(now, position, velocity, np.array([[0.0, 0.0, 0.0, 1.0]]))
        stages.append(int(planner.update(motion, maps, np.array([True]))["state"][0]))
        wanted = planner.setpoints(now + 0.01)
        position, velocity = wanted.position, wanted.velocity
        speeds.append(float(np.linalg.norm(velocity)))
    return stages, speeds, float(wall - position[0, 0])


@pytest.mark.parametrize("resume", [False, True])
def test_what_is_met_too_late_stops_the_mission(resume: bool) -> None:
    """A wall that appears half a metre ahead."""
    stages, speeds, _ = appearing(PgoPlanner(PgoSettings(resume=resume)), 0.4)
    assert stages[199] == PlannerStage.EXECUTE
    if resume:
        assert PlannerStage.GENERATE in stages[199:]
    else:
        assert set(stages[210:]) == {int(PlannerStage.WAIT)}
        assert not any(speeds[210:])


def test_a_plan_without_a_successor_is_flown_on_and_stops_before_what_it_meets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wall appears 2.5 m ahead, and every search for a way around it fails."""
    planner = PgoPlanner()
    run = planner._replanner.run

    def failing(jobs: list[Job], windows: MapWindows) -> list[Replanned]:
        return [Replanned(samples=2000) for _ in jobs] if jobs[0].collides else run(jobs, windows)

    monkeypatch.setattr(planner._replanner, "run", failing)
    stages, speeds, left = appearing(planner, 2.5)
    assert set(stages[205:225]) == {int(PlannerStage.REPLAN)}
    assert stages[-1] == PlannerStage.WAIT
    assert speeds[-1] == 0.0
    # The plan is looked at every 0.05 s, in which it moves by 0.15 m at 3 m/s; it stops within 0.5 m of the cell that it meets.
    assert 0.3 < left < 0.6


def test_every_search_counts_as_an_attempt_however_small_and_what_fails_waits() -> None:
    """The attempt is the key of a search's random numbers: without a new one a search would fail again."""
    found = [Replanned(samples=0), Replanned(samples=1), Replanned(samples=2000)]
    planner: Any = SimpleNamespace(
        _job=lambda k, flight, motion: SimpleNamespace(),
        _replanner=SimpleNamespace(run=lambda jobs, windows: found),
        _windows=lambda flights, maps, field: None,
        _attempts=np.array([5, 5, 5, 5]),
        _retry=np.zeros(4),
        config=SimpleNamespace(failed_pause=0.25),
    )
    work = {"samples": np.zeros(4), "evaluations": np.zeros(4)}
    motion: Any = SimpleNamespace(time=np.array([1.0, 2.0, 3.0, 4.0]))
    done = PgoPlanner._replan(planner, np.array([0, 2, 3]), motion, None, work)  # type: ignore[arg-type]
    assert done.tolist() == [0, 0, 0]
    assert planner._attempts.tolist() == [5, 5, 6, 6]
    assert planner._retry.tolist() == [1.25, 0.0, 3.25, 4.25]
    assert work["samples"].tolist() == [0.0, 0.0, 1.0, 2000.0]


def test_the_guide_phase_is_solved_exactly() -> None:
    rng = np.random.default_rng(0)
    control, guide = rng.normal(0.0, 1.0, (20, 3)), rng.normal(0.0, 1.0, (14, 3))
    found = guided(control, guide, 10.0, 1.5)
    assert np.array_equal(found[[0, 1, 2, -3, -2, -1]], control[[0, 1, 2, -3, -2, -1]])
    gradient = smoothness(found, 10.0)[1][3:-3] + 3.0 * (found[3:-3] - guide)
    assert np.abs(gradient).max() < 1e-9
    assert np.array_equal(guided(control[:6], guide[:0], 10.0, 1.5), control[:6])


def test_paths_resampled() -> None:
    path = np.array([[0.0, 0.0, 0.0], [3.0, 0.0, 0.0], [3.0, 1.0, 0.0]])
    assert path_length(path) == 4.0
    np.testing.assert_allclose(resampled(path, 5), [[0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0], [3, 1, 0]])


def test_jerk_of_a_cubic() -> None:
    """x = t^3 for a second: its jerk is 6, the integral of its square 36."""
    points = np.linspace(0.0, 1.0, 11)[:, None] ** 3 * np.array([1.0, 0.0, 0.0])
    zero = np.zeros((1, 2, 3))
    zero[0, 1, 0] = 3.0
    bend = np.zeros((1, 2, 3))
    bend[0, 1, 0] = 6.0
    assert squared_jerk(fit(points[None], 0.1, zero, bend)[0], 0.1) == pytest.approx(36.0, rel=1e-6)


def test_ranges_of_what_is_not_safe() -> None:
    control = np.linspace((0.0, 0.0, 1.0), (10.0, 0.0, 1.0), 11)
    times = np.arange(0.0, 8.0 + 1e-4, 0.5)

    def at(*unsafe: int):
        safe = np.ones(len(times), bool)
        safe[list(unsafe)] = False
        return collision_range(control, 1.0, times, safe)

    assert at() == "free"
    assert at(15, 16) == "ends inside"
    found = at(4, 5, 8, 9)
    assert isinstance(found, CollisionRange)
    # From the last safe sample before the first entry to the first safe one after the last exit.
    np.testing.assert_allclose(found.head[[0, -1], 0], [1.0, 2.5])
    np.testing.assert_allclose(found.tail[[0, -1], 0], [6.0, 9.0])
    first = at(0, 1)
    assert isinstance(first, CollisionRange)
    np.testing.assert_allclose(first.head[:, 0], 1.0)


def test_refinement_makes_slow_plans_faster_and_fast_ones_a_little_slower() -> None:
    control = np.linspace((0.0, 0.0, 1.0), (10.0, 0.0, 1.0), 11)
    for speed, ratio in ((4.0, 0.25), (0.5, 1.01)):
        points, later = stretched(control, 1.0, speed, 100.0, 1.01)
        # Of eleven control points the knots from the fifth to the ninth stretch: four of the eight seconds.
        assert later == pytest.approx(4.0 * (ratio - 1.0))
        assert points.interval * 8.0 == pytest.approx(8.0 + later)
        np.testing.assert_allclose(points.points[[0, -1], 0], [1.0, 9.0])


def test_a_course_with_a_part_replaced() -> None:
    references = References(1)
    references.aim(0, START[0], GOAL[0], 3.0, least=1.0)
    course = GuidePath(references, 0)
    whole = course.duration
    part, points = course.segment(1.0, 7.0, 0.3)
    first, last = course.sample(part.begin + np.array([0.0, part.duration]))
    assert 7.0 <= np.linalg.norm(last - first) < 7.0 + 0.2 * 6.0
    control = fit(points.points[None], points.interval, points.ends[None, 0], points.ends[None, 1])[0]
    # Through the same points: the course stays what it was, but for the spline between the points.
    before = course.sample(np.linspace(0.0, whole, 60))
    course.replace(control, points.interval, part.begin, 0.0)
    np.testing.assert_allclose(course.sample(np.linspace(0.0, whole, 60)), before, atol=2e-3)
    assert not course.reaches_goal
    # Half a second longer: what follows is later, what was before is where it was.
    course.replace(control, points.interval + 0.5 / (len(control) - 3), part.begin, 0.5)
    assert course.duration == pytest.approx(whole + 0.5)
    np.testing.assert_allclose(course.sample(np.array([0.5])), references.sample([0], [[0.5]])[0])
    late = np.array([part.begin + part.duration + 1.0])
    np.testing.assert_allclose(course.sample(late + 0.5), references.sample([0], late[None])[0])
    rest = course.segment(course.duration - 0.5, 7.0, 0.3)[0]
    assert rest.begin + rest.duration == pytest.approx(course.duration)


def test_velocities_of_a_course_are_its_slopes() -> None:
    references = References(1)
    references.aim(0, START[0], GOAL[0], 3.0, least=1.0)
    course = GuidePath(references, 0)
    part, points = course.segment(0.5, 7.0, 0.3)
    course.replace(fit(points.points[None], points.interval, *points.ends[:, None])[0], points.interval, part.begin, 0.1)
    times = np.array([0.2, 0.9, 2.0, part.begin + part.duration + 0.4])
    numeric = (course.sample(times + 1e-6) - course.sample(times - 1e-6)) / 2e-6
    np.testing.assert_allclose(course.sample(times, 1), numeric, atol=1e-6)
    control = fit(points.points[None], points.interval, *points.ends[:, None])[0]
    middle = np.array([[1.0]])
    assert evaluate_uniform(control[None], np.array([points.interval]), middle).shape == (1, 1, 3)


@pytest.mark.slow
def test_demo_forest() -> None:
    """The forest of Fast-Planner's demo with PGO's limits; no figure is asked of it, most arrive."""
    cases = [forest(seed) for seed in range(10)]
    worlds, starts, goals = (list(x) for x in zip(*cases, strict=True))
    flown = fly(PgoPlanner(), worlds, np.array(starts), np.array(goals), limit=40.0, **LIMITS)
    assert (flown.arrived & (flown.clearance > 0.0)).sum() >= 6, (flown.time, flown.clearance)
