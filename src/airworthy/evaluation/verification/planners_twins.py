"""Compiled parts of the planners beside their readable NumPy twins, to the bit where both add in one order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from airworthy.core.random import flight_key
from airworthy.evaluation.verification.figure import Figure, below, zero
from airworthy.evaluation.verification.planners_worlds import CELL, SeenMaps, World, mission_of
from airworthy.pilots.ego import EgoConfig
from airworthy.pilots.ego.ego_kernel import MOST as MOST_POINTS
from airworthy.pilots.ego.tries import EgoStart, Questions, Tries
from airworthy.pilots.ego.twin import EgoTwin
from airworthy.pilots.fast import KinoSettings
from airworthy.pilots.fast.costs import SplineCosts
from airworthy.pilots.fast.descent import SplineDescent, put_control
from airworthy.pilots.fast.search import KinoSearch, problem
from airworthy.pilots.fast.search_twin import search_twin
from airworthy.pilots.pgo import RoadmapSettings
from airworthy.pilots.pgo.roadmap import Question, Roadmaps
from airworthy.pilots.pgo.roadmap_twin import roadmap_twin
from airworthy.pilots.planning.lbfgs import LbfgsConfig, minimise
from airworthy.pilots.planning.search_cells import CellTable

__all__ = ["twin_figures"]

Array = NDArray[np.float64]

PILLARS = World((20.0, 12.0, 3.0), np.array([[-6.0, 0.1, 0.5], [-4.0, -1.2, 0.4], [-4.5, 1.5, 0.4], [-3.0, 0.3, 0.4]]))
START, GOAL = np.array([-8.0, 0.3, 1.2]), np.array([8.0, 0.0, 1.0])
VELOCITY, ACCELERATION = np.array([2.2, -0.4, 0.1]), np.array([0.8, 0.5, 0.0])
SPEED, MOST, DT, CLEARANCE, EVALUATIONS = 3.0, 2.0, 0.17, 0.4, 300


def twin_figures(tries: int = 4) -> Iterator[Figure]:
    """Whole tries of EGO-Planner; Fast-Planner's search and minimisation; PGO's roadmap.

    Args:
        tries: Of EGO-Planner, and curves that are minimised.
    """
    yield zero(f"EGO-Planner: of {tries} tries among pillars, unlike the readable twin", _ego(tries))
    yield below("Fast-Planner: states of the search off the readable twin, worst", _search(), 1e-12)
    yield zero(f"Fast-Planner: of {tries} minimisations, unlike the readable twin", sum(_descent(k) for k in range(tries)))
    yield below("PGO: corners of a roadmap's ways off the readable twin, worst", _roadmap(), 1e-12, "m")


def _ego(tries: int) -> int:
    """Tries that do not end with the same control points, interval, outcome and count of evaluations."""
    rng, config = np.random.default_rng(0), EgoConfig(expansions=2_000)
    start, target = np.zeros((tries, 3, 3)), np.zeros((tries, 3, 3))
    start[:, 0] = START + rng.uniform((0.0, -1.0, -0.3), (0.5, 1.0, 0.3), (tries, 3))
    start[:, 1] = rng.uniform((0.0, -1.0, 0.0), (2.0, 1.0, 0.2), (tries, 3))
    target[:, 0], target[:, 1] = start[:, 0] + (7.3, 0.0, 0.0), (2.0, 0.0, 0.0)
    worlds, none = [PILLARS] * tries, np.zeros(tries)
    maps = SeenMaps(worlds, sight=np.inf)
    maps.see(start[:, 0])
    table = CellTable(maps, mission_of(worlds, start[:, 0], target[:, 0], 2.0, 3.0), range(tries), CELL)
    asked = Questions(
        np.arange(tries),
        start,
        target,
        none + 2.0,
        none + 3.0,
        rng.uniform(size=(tries, 2)),
        none,
        np.where(np.arange(tries) % 2, EgoStart.RANDOM, EgoStart.POLYNOMIAL),
        np.zeros((tries, MOST_POINTS, 3)),
        none.astype(int),
        none + 1.0,
        none,
    )
    found, other = Tries(config).run(table, asked), 0
    for k in range(tries):
        twin = EgoTwin(config, table.cells[k], asked, k)
        same = twin.run() == found.outcome[k] and np.array_equal(twin.q, found.control[k, : found.count[k]])
        other += not (same and twin.interval == found.interval[k] and twin.evaluations == found.evaluations[k])
    return other


def _search() -> float:
    """Worst difference of states; infinite where the search went another way. Cosines and cube roots of two libraries may
    differ in the last bit."""
    window, settings = PILLARS.window(), KinoSettings()
    asked = problem(START, VELOCITY, ACCELERATION, GOAL, SPEED, MOST, True)
    found, twin = KinoSearch(settings).run(asked.copy(), window)[0], search_twin(settings, window.view(0), asked[0])
    if (found.outcome, found.expansions, found.nodes) != (twin.outcome, twin.expansions, twin.nodes):
        return float("inf")
    return max(float(np.abs(getattr(found, name) - getattr(twin, name)).max(initial=0.0)) for name in ("states", "durations"))


def _descent(seed: int) -> bool:
    """Whether a minimisation ends elsewhere, or after another number of evaluations."""
    rng, window = np.random.default_rng(seed), PILLARS.window()
    q = np.linspace(START, (-1.0, 0.4, 1.3), 14) + rng.normal(0.0, 0.3, (14, 3))
    solver = SplineDescent(10.0, 5.0, 1e-5, 0.01, CLEARANCE, EVALUATIONS, 1e-5)
    records = solver.fresh(1)
    put_control(records[0], q)
    records["interval"], records["speed"], records["most"], records["free_end"] = DT, SPEED, MOST, True
    found = solver.run(records, window)[0]
    costs = SplineCosts(window.view(0), q, DT, 10.0, 5.0, 1e-5, 0.01, CLEARANCE, SPEED, MOST, True)
    limits = LbfgsConfig(evaluations=EVALUATIONS, iterations=EVALUATIONS, gradient_tolerance=1e-9, step_tolerance=1e-5)
    wanted = minimise(costs, q[3:].reshape(-1), limits)
    return found.evaluations != wanted.evaluations or not np.array_equal(found.control, costs.points(wanted.x))


def _roadmap() -> float:
    """Worst difference of corners; infinite where other ways were found."""
    window, settings, none = PILLARS.window(), RoadmapSettings(samples=50), np.zeros((0, 3))
    asked = Question(0, START, np.array([-1.0, 0.0, 1.5]), none, none, flight_key(3, 0), 2)
    found, twin = Roadmaps(settings).run([asked], window)[0], roadmap_twin(settings, window.view(0), asked)
    if [len(path) for path in found.paths] != [len(path) for path in twin.paths] or not found.paths:
        return float("inf")
    return max(float(np.abs(a - b).max()) for a, b in zip(found.paths, twin.paths, strict=True))
