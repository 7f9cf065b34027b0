"""Occupancy beside a scalar reference, distances beside brute force: item 2 of the planners' acceptance list."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayF32
from airworthy.core.frames import normalize
from airworthy.core.random import flight_key
from airworthy.optics.projections import Pinhole
from airworthy.planners.common.interface import MapSettings, Mission
from airworthy.planners.common.lbfgs import LbfgsConfig, minimise
from airworthy.planners.common.search import CellTable
from airworthy.planners.ego import EgoConfig
from airworthy.planners.ego.tries import MOST as MOST_POINTS
from airworthy.planners.ego.tries import EgoStart, Questions, ReboundTries
from airworthy.planners.ego.twin import EgoTwin
from airworthy.planners.fast import KinoSettings
from airworthy.planners.fast.costs import SplineCosts, SplineDescent, put_control
from airworthy.planners.fast.search import KinoSearch, problem
from airworthy.planners.fast.search_twin import search_twin
from airworthy.planners.mapping import LocalMaps, maps_of_cells, read_pixels
from airworthy.planners.mapping.twin import MapTwin
from airworthy.planners.pgo import RoadmapSettings
from airworthy.planners.pgo.roadmap import Question, Roadmaps
from airworthy.planners.pgo.roadmap_twin import roadmap_twin
from airworthy.verification.planning.worlds import CELL, SightMaps, World, mission_of
from airworthy.verification.published import Figure, below, zero

__all__ = ["distance_figures", "map_figures", "occupancy_figures", "twin_figures"]

# -----------------------------------------------------------------------------------------------------------------------------
# Compiled parts of the planners beside their readable NumPy twins, to the bit where both add in one order.

PILLARS = World((20.0, 12.0, 3.0), np.array([[-6.0, 0.1, 0.5], [-4.0, -1.2, 0.4], [-4.5, 1.5, 0.4], [-3.0, 0.3, 0.4]]))
START, GOAL = np.array([-8.0, 0.3, 1.2]), np.array([8.0, 0.0, 1.0])
VELOCITY, ACCELERATION = np.array([2.2, -0.4, 0.1]), np.array([0.8, 0.5, 0.0])
SPEED, MOST, DT, CLEARANCE, EVALUATIONS = 3.0, 2.0, 0.17, 0.4, 300


def twin_figures(tries: int = 4) -> Iterator[Figure]:
    """Check the whole tries of EGO-Planner; Fast-Planner's search and minimisation; PGO's roadmap.

    Args:
        tries: Of EGO-Planner, and curves that are minimised.
    """
    yield zero(f"EGO-Planner: of {tries} tries among pillars, unlike the readable twin", _ego(tries))
    yield below("Fast-Planner: states of the search off the readable twin, worst", _search(), 1e-12)
    yield zero(f"Fast-Planner: of {tries} minimisations, unlike the readable twin", sum(_descent(k) for k in range(tries)))
    yield below("PGO: corners of a roadmap's ways off the readable twin, worst", _roadmap(), 1e-12, "m")


def _ego(tries: int) -> int:
    """Return tries that do not end with the same control points, interval, outcome and count of evaluations."""
    rng, config = np.random.default_rng(0), EgoConfig(expansions=2_000)
    start, target = np.zeros((tries, 3, 3)), np.zeros((tries, 3, 3))
    start[:, 0] = START + rng.uniform((0.0, -1.0, -0.3), (0.5, 1.0, 0.3), (tries, 3))
    start[:, 1] = rng.uniform((0.0, -1.0, 0.0), (2.0, 1.0, 0.2), (tries, 3))
    target[:, 0], target[:, 1] = start[:, 0] + (7.3, 0.0, 0.0), (2.0, 0.0, 0.0)
    worlds, none = [PILLARS] * tries, np.zeros(tries)
    maps = SightMaps(worlds, sight=np.inf)
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
    found, other = ReboundTries(config).run(table, asked), 0
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
    """Tell whether a minimisation ends elsewhere, or after another number of evaluations."""
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


# -----------------------------------------------------------------------------------------------------------------------------

SIDE = 32
"""Of the grids [cells]."""
DENSITIES = (0.0005, 0.01, 0.2)
CAMERA = Pinhole(32, 24, 19.3, 19.3, 16.1, 12.2, integer_pixels=True)
"""The published field of view with few pixels: the scalar reference is slow."""
TABLES = {
    "EGO-Planner": MapSettings(field=True),
    "PGO": MapSettings(margin=6, ground=-1.0, border=2, skip=3, ray_min=0.5, ray_max=2.0, field=True, field_margin=0.5),
}
"""Published settings, PGO's with short rays and a small memory, so that much is forgotten."""
ROUNDING = 8 / 4096
"""Log-odds are kept in 16 bits: half a unit for each of at most 7 additions between two clamps, and for the clamp."""


def map_figures(moves: int = 2) -> Iterator[Figure]:
    """Check both parts.

    Args:
        moves: Places from which six images each are taken, of the occupancy.
    """
    yield from distance_figures()
    yield from occupancy_figures(moves)


def distance_figures() -> Iterator[Figure]:
    """Check the signed distance at the middles of all cells of random grids, asked for as planners do."""
    rng, worst, count = np.random.default_rng(7), 0.0, 0
    lower, upper = np.array([[-1.0, -2.0, -3.0]]), np.array([[2.2, 1.2, 0.1]])
    for density in DENSITIES:
        given = rng.random((SIDE,) * 3) < density
        maps = maps_of_cells([given], _mission(lower, upper), MapSettings(field=True, ground=0.0, inflation=0.0))
        taken, corner = maps.inflated(0)
        middles = corner + 0.1 * (np.argwhere(np.ones(taken.shape, bool)) + 0.5)
        inside = ((middles > lower[0]) & (middles < upper[0])).all(1)
        found, _ = maps.distance([0], middles[None, inside])
        wanted = _signed(taken.astype(bool)).reshape(-1)[inside]
        worst, count = max(worst, float(np.abs(found[0] - wanted).max())), count + int(inside.sum())
    yield below(
        f"Planners 2: distances off brute force, {count:,} cells of {len(DENSITIES)} grids of 32^3, worst", worst, 1e-9, "m"
    )


def _signed(taken: ArrayBool) -> Array:
    """D = D+ - D- + one cell inside [m], by looking at every pair of cells."""
    cells, flags = np.argwhere(np.ones(taken.shape, bool)).astype(float), taken.reshape(-1)
    out = np.zeros(len(cells))
    for mine, sign in ((~flags, 1.0), (flags, -1.0)):
        squares = _least(cells[~mine], cells[mine])
        out[mine] = sign * 0.1 * np.sqrt(squares) + (0.1 if sign < 0.0 else 0.0)
    return out.reshape(taken.shape)


def _least(sources: Array, asked: Array, chunk: int = 64) -> Array:
    """Squared distance to the nearest source, exact in whole numbers, of points (m, 3) [cells]."""
    found = np.empty(len(asked))
    # |s|^2 - 2 p s as one product; whole numbers far below 2^24 are exact in single precision.
    rows = np.concatenate([(sources**2).sum(1)[:, None], -2.0 * sources], axis=1).T.astype(np.float32)
    for at in range(0, len(asked), chunk):
        part = asked[at : at + chunk]
        pairs = np.concatenate([np.ones((len(part), 1)), part], axis=1).astype(np.float32) @ rows
        found[at : at + chunk] = pairs.min(1) + (part**2).sum(1)
    return found


def occupancy_figures(moves: int) -> Iterator[Figure]:
    """Check images of rough surfaces with everything that a depth image can hold, from places on a random walk, in two
    boxes."""
    lower, upper = np.array([[-4.0, -5.0, 0.0], [-3.0, -30.0, 0.0]]), np.array([[4.0, 5.05, 3.0], [-0.5, -24.4, 2.0]])
    for name, settings in TABLES.items():
        states, odds, distances, cells = _walked(settings, _mission(lower, upper), moves)
        label = f"Planners 2, settings of {name}: of {cells:,} cells"
        yield zero(f"{label}, with another state or inflation than the scalar reference", states)
        yield below(f"{label}, log-odds off the reference, worst", odds, ROUNDING)
        yield zero(f"{label}, with another distance", distances)


def _mission(lower: Array, upper: Array) -> Mission:
    """Flights of which only the boxes matter."""
    n, nowhere = len(lower), np.zeros_like(lower)
    return Mission(nowhere, nowhere, np.ones(n), np.ones(n), lower, upper, np.arange(n))


def _walked(settings: MapSettings, task: Mission, moves: int) -> tuple[int, float, int, int]:
    """States and inflations that differ, worst difference of log-odds, distances that differ, and cells that were compared."""
    rng, maps = np.random.default_rng(1), LocalMaps(settings, task, CAMERA)
    twins = [MapTwin(settings, task, CAMERA, flight) for flight in range(2)]
    at, both = np.array([[-1.0, 2.0, 1.5], [-1.5, -27.0, 1.0]]), np.arange(2)
    states, odds, distances, cells = 0, 0.0, 0, 0
    for _ in range(moves):
        at = at + rng.uniform(-0.8, 0.8, at.shape) * (1.0, 1.0, 0.4)
        turn, depth = normalize(rng.normal(size=(2, 4))), _images(rng, settings)
        for _ in range(6):  # so that something becomes occupied
            maps.update(both, depth, at, turn)
            for flight, twin in enumerate(twins):
                twin.update(depth[flight], at[flight], turn[flight])
        for flight, twin in enumerate(twins):
            found = _compared(maps, twin, flight)
            states, odds, distances = states + found[0], max(odds, found[1]), distances + found[2]
            cells += found[3]
    return states, odds, distances, cells


def _images(rng: np.random.Generator, settings: MapSettings) -> ArrayF32:
    image = read_pixels(CAMERA, settings)
    shape = (2, image.height, image.width)
    depth = rng.uniform(0.25, 0.9 * settings.ray_max, (2, 1, 1)) + 0.02 * rng.normal(size=shape)
    for value in (0.0, np.inf, np.nan, -1.0, 0.1, 50.0):
        depth[rng.random(shape) < 0.02] = value
    return depth.astype(np.float32)


def _compared(maps: LocalMaps, twin: MapTwin, flight: int) -> tuple[int, float, int, int]:
    """Of every cell of a flight's window; see `_walked`."""
    cells, lower = maps.inflated(flight)
    h = maps.settings.resolution
    first = np.rint((lower - twin.origin) / h).astype(int)
    window = tuple(slice(a, a + n) for a, n in zip(first, cells.shape, strict=True))
    asked = (lower + h * (np.moveaxis(np.indices(cells.shape), 0, -1) + 0.5)).reshape(1, -1, 3)
    odds = np.abs(maps.log_odds([flight], asked).reshape(cells.shape) - twin.odds[window]).max()
    state = np.where(twin.odds >= twin.least, np.where(twin.odds > np.log(4.0), 1, 0), -1)[window]
    other = (maps.state([flight], asked).reshape(cells.shape) != state) | (cells.astype(bool) != twin.inflated[window])
    s = twin.squared[window]
    metres = np.where(s >= 0, h * np.sqrt(np.abs(s)), h - h * np.sqrt(np.abs(s))).astype(np.float32)
    return int(other.sum()), float(odds), int(np.sum(maps.field(flight)[0] != metres)), cells.size
