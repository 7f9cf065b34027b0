"""NavRL: check values of its network, and what its shield does: item 7 of the planners' acceptance list."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.planners.ego import costs as ego
from airworthy.planners.fast import costs as fast
from airworthy.planners.fast.windows import WindowTwin
from airworthy.planners.navrl import Network, load_network
from airworthy.planners.navrl.shield import HORIZON, ShieldSphere, height_planes, shielded, violation
from airworthy.planners.pgo.records import guided
from airworthy.verification.planning.worlds import World
from airworthy.verification.published import Figure, below, zero

__all__ = ["cost_figures", "gradient_error", "network_figures", "pillar_scan", "shield_figures", "usable_network"]

# -----------------------------------------------------------------------------------------------------------------------------
# Gradients of every cost of the planners against central differences: item 1 of the planners' acceptance list.

Cost = Callable[[Array], tuple[float, Array]]

BOUND = 1e-6
"""Relative, of the largest component (specification)."""
STEP, FINE_STEP, EDGE_STEP = 1e-5, 1e-7, 1e-10
"""Of the differences: of smooth costs; of those with branches; where a branch begins, so that the cost is zero and its second
derivative, up to 2,500, jumps: there a difference is off by half the step times the jump."""
COUNT, DT, SPEED, MOST, CLEARANCE = 14, 0.17, 3.0, 2.0, 0.4
EGO_DT, EGO_SPEED, EGO_MOST, EGO_CLEARANCE = 0.24, 1.5, 2.0, 0.5
WEIGHT, GUIDE = 10.0, 1.5
"""Of smoothness and of the guide in PGO's first phase."""


class Wall:
    """A distance field whose slope is 1 everywhere: what the push of Fast-Planner takes its gradient for."""

    def __init__(self, along: Array, offset: float):
        self.along, self.offset = along / np.linalg.norm(along), offset

    def distance(self, points: Array) -> tuple[Array, Array]:
        """Return the distance of points (m, 3), and its gradient."""
        return points @ self.along + self.offset, np.broadcast_to(self.along, points.shape)


def gradient_error(cost: Cost, q: Array, step: float = STEP) -> float:
    """Return how far a cost's gradient is off central differences, relative to its largest component (at least 1).

    Args:
        cost: Gives value and gradient.
        q: Where, of any shape.
        step: Of the differences, in the units of `q`.
    """
    gradient, found = cost(q)[1], np.zeros_like(q)
    for at in np.ndindex(q.shape):
        up, down = q.copy(), q.copy()
        up[at] += step
        down[at] -= step
        found[at] = (cost(up)[0] - cost(down)[0]) / (2.0 * step)
    # Relative to at least 1: a gradient of almost nothing has nothing but rounding to be compared by.
    return float(np.abs(found - gradient).max() / max(1.0, np.abs(gradient).max()))


def cost_figures(draws: int = 40) -> Iterator[Figure]:
    """Check every cost at random control points, and where its branches begin.

    Args:
        draws: Of control points per cost.
    """
    for name, costs in {**_ego(draws), **_fast(draws)}.items():
        worst = max(gradient_error(cost, q, step) for cost, q, step in costs)
        label = f"Planners 1, {name}: gradient off central differences, {len(costs)} curves, relative, worst"
        yield Figure(label, worst, f"below {BOUND:g}", worst < BOUND)
    yield _guide(draws)
    yield _field()


def _curve(seed: int, count: int = COUNT) -> Array:
    """Control points of a way that is too fast and bends too much in places (count, 3)."""
    rng = np.random.default_rng(seed)
    return np.linspace((-8.0, 0.0, 1.0), (-1.0, 0.4, 1.3), count) + rng.normal(0.0, 0.3, (count, 3))


def _even(pace: float) -> Array:
    """Control points `pace` [m] apart along x: the speed is exactly that at a limit."""
    return np.arange(float(COUNT))[:, None] * np.array([pace, 0.0, 0.0])


Tasks = dict[str, list[tuple[Cost, Array, float]]]


def _ego(draws: int) -> Tasks:
    def collision(seed: int) -> Cost:
        rng, q = np.random.default_rng(seed), _curve(seed)
        direction = rng.normal(size=(COUNT, 2, 3))
        direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
        pairs = [[(q[i] + rng.normal(scale=0.5, size=3), direction[i, j]) for j in range(2)] for i in range(COUNT)]
        return lambda x: ego.collision_cost(x, pairs, EGO_CLEARANCE)

    def meeting(e: float) -> Cost:
        # One control point whose clearance is short by e: branches begin at 0 and at d0.
        direction, q = np.array([0.0, 0.6, 0.8]), _curve(0)
        pairs: list[list[ego.Pair]] = [[] for _ in range(COUNT)]
        pairs[5] = [(q[5] + (e - EGO_CLEARANCE) * direction, direction)]
        return lambda x: ego.collision_cost(x, pairs, EGO_CLEARANCE)

    def fitness(seed: int) -> Cost:
        q = _curve(seed)
        curve = (q[:-2] + 4.0 * q[1:-1] + q[2:]) / 6.0
        reference = curve + np.random.default_rng(seed).normal(scale=0.1, size=curve.shape)
        return lambda x: ego.fitness_cost(x, reference)

    def feasible(x: Array) -> tuple[float, Array]:
        return ego.feasibility_cost(x, EGO_DT, EGO_SPEED, EGO_MOST)

    seeds = range(draws)
    tasks: Tasks = {
        "EGO-Planner, smoothness": [(ego.smooth_cost, _curve(k), STEP) for k in seeds],
        "EGO-Planner, collision": [(collision(k), _curve(k), FINE_STEP) for k in seeds],
        "EGO-Planner, feasibility": [(feasible, _curve(k), FINE_STEP) for k in seeds],
        "EGO-Planner, fitness": [(fitness(k), _curve(k), STEP) for k in seeds],
    }
    tasks["EGO-Planner, collision"] += [(meeting(e), _curve(0), FINE_STEP) for e in (0.0, EGO_CLEARANCE)]
    tasks["EGO-Planner, feasibility"].append((feasible, _even(EGO_SPEED * EGO_DT), EDGE_STEP))
    return tasks


def _fast(draws: int) -> Tasks:
    view, level = (
        cast(WindowTwin, wall) for wall in (Wall(np.array([0.3, -1.0, 0.2]), 0.1), Wall(np.array([0.0, 0.0, 1.0]), CLEARANCE))
    )
    target = np.array([1.0, 2.0, 3.0])

    def near(x: Array) -> tuple[float, Array]:
        return fast.nearness(x, view, CLEARANCE)

    def excess(x: Array) -> tuple[float, Array]:
        return fast.excess(x, DT, SPEED, MOST)

    def whole(seed: int) -> Cost:
        return fast.SplineCosts(view, _curve(seed), DT, 10.0, 5.0, 1e-5, 0.01, CLEARANCE, SPEED, MOST, True)

    seeds = range(draws)
    return {
        "Fast-Planner, smoothness": [(fast.smoothness, _curve(k), STEP) for k in seeds],
        "Fast-Planner, distance": [(near, _curve(k), STEP) for k in seeds]
        + [(lambda x: fast.nearness(x, level, CLEARANCE), np.zeros((COUNT, 3)), EDGE_STEP)],
        "Fast-Planner, limits": [(excess, _curve(k), STEP) for k in seeds] + [(excess, _even(SPEED * DT), EDGE_STEP)],
        "Fast-Planner, end point": [(lambda x: fast.ending(x, target), _curve(k), STEP) for k in seeds],
        "Fast-Planner, all together": [(whole(k), _curve(k)[3:].reshape(-1), STEP) for k in seeds],
    }


def _guide(draws: int) -> Figure:
    """PGO's first phase is solved exactly: at its result the gradient is zero."""
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(draws):
        control, guide = rng.normal(0.0, 1.0, (20, 3)), rng.normal(0.0, 1.0, (14, 3))
        found = guided(control, guide, WEIGHT, GUIDE)
        slope = fast.smoothness(found, WEIGHT)[1][3:-3] + 2.0 * GUIDE * (found[3:-3] - guide)
        worst = max(worst, float(np.abs(slope).max()))
    label = f"Planners 1, PGO, guide: gradient left at the solution, {draws} problems, worst"
    return Figure(label, worst, "below 1e-09", worst < 1e-9)


def _field() -> Figure:
    """Check the gradient of the interpolated distance between the middles of cells."""
    view = World((20.0, 12.0, 3.0), np.array([[-6.0, 0.1, 0.5], [-4.0, -1.2, 0.4], [-3.0, 0.3, 0.4]])).window().view(0)
    rng = np.random.default_rng(3)
    points = rng.uniform((-9.0, -5.0, 0.3), (9.0, 5.0, 2.7), (500, 3))
    # Away from the faces between middles, where the slope jumps.
    points = 0.1 * (np.floor(points / 0.1) + 0.5 + rng.uniform(0.05, 0.45, points.shape))
    slope, worst = view.distance(points)[1], 0.0
    for k, along in enumerate(np.eye(3) * 1e-6):
        numeric = (view.distance(points + along)[0] - view.distance(points - along)[0]) / 2e-6
        worst = max(worst, float(np.abs(slope[:, k] - numeric).max()))
    label = f"Planners 1, distance field: gradient off central differences, {len(points)} points, worst"
    return Figure(label, worst, f"below {BOUND:g}", worst < BOUND)


# -----------------------------------------------------------------------------------------------------------------------------

STATE = np.array([[1.0, 0.0, 0.0, 20.0, 0.0, 0.0, 0.0, 0.0]])
"""On the way, 20 m to go, at rest."""
CHECKS: dict[tuple[float, float] | None, tuple[float, float, float]] = {
    None: (1.39, 0.49, 0.43),
    (2.0, 0.5): (1.91, -0.99, 0.42),
    (2.0, -0.5): (1.25, 1.02, 0.53),
    (2.0, 0.0): (0.01, -1.47, -1.31),
}
"""Centre of a pillar of radius 0.4 m [m] and the velocity in the goal's frame [m/s] (specification, section 7.2)."""
RADIUS = 0.4


def usable_network() -> Network | None:
    """Return the network with its published weights; None: there are none here."""
    try:
        return load_network()
    except AirworthyError:
        return None


def pillar_scan(centre: tuple[float, float] | None) -> Array:
    """Scan (36, 4) of one upright pillar: 4 m minus the distance; of nothing, zeros."""
    if centre is None:
        return np.zeros((36, 4))
    angle = np.radians(10.0 * np.arange(36))
    along = np.cos(angle) * centre[0] + np.sin(angle) * centre[1]
    rest = along**2 - (np.dot(centre, centre) - RADIUS**2)
    level = along - np.sqrt(np.maximum(rest, 0.0))
    ranges = level[:, None] / np.cos(np.radians([-10.0, 0.0, 10.0, 20.0]))
    return np.where(((rest > 0.0) & (along > 0.0))[:, None], 4.0 - np.minimum(4.0, ranges), 0.0)


def network_figures(network: Network) -> Iterator[Figure]:
    """Check the forward pass with the published weights."""
    gaps = [network.forward(STATE, pillar_scan(at)[None]).velocity[0] - given for at, given in CHECKS.items()]
    worst = float(np.abs(gaps).max())
    yield below(f"NavRL 7: velocities off the {len(CHECKS)} published check values, worst", worst, 0.01, "m/s")


def shield_figures(draws: int = 400) -> Iterator[Figure]:
    """Check random velocities before random spheres: those on a way that collides are unsafe, by small steps along it.

    Args:
        draws: How many.
    """
    rng = np.random.default_rng(0)
    safe = changed = unsafe = passed = inside = 0
    for _ in range(draws):
        spheres = [_sphere(rng) for _ in range(int(rng.integers(1, 4)))]
        # Towards one of them, at a speed that may or may not reach it.
        wanted = rng.normal(0.0, 0.4, 3) + rng.uniform(0.0, 1.5) * spheres[0].position / np.linalg.norm(spheres[0].position)
        verdict = shielded(wanted, spheres, height_planes(1.0, float(wanted[2]), -5.0, 7.0))
        gap = min(_gap(wanted, sphere) for sphere in spheres)
        if gap > 1e-3:
            safe += 1
            changed += not np.array_equal(verdict.velocity, wanted)
        elif gap < -1e-3:
            unsafe += 1
            passed += not verdict.conflict
            kept = max(violation(plane, verdict.velocity) for plane in verdict.planes)
            inside += verdict.feasible and kept > 1e-7
    yield zero(f"NavRL 7: of {safe} safe velocities, changed by the shield", changed)
    yield zero(f"NavRL 7: of {unsafe} unsafe velocities, let pass", passed)
    yield zero("NavRL 7: of what is flown instead, outside of a half space that could be kept", inside)


def _sphere(rng: np.random.Generator) -> ShieldSphere:
    direction = rng.normal(size=3)
    return ShieldSphere(
        rng.uniform(0.8, 3.0) * direction / np.linalg.norm(direction), float(rng.uniform(0.2, 0.5)), rng.normal(0.0, 0.3, 3)
    )


def _gap(velocity: Array, sphere: ShieldSphere) -> float:
    """Least distance of the straight way within the horizon to a sphere [m]; below 0: it enters."""
    t = np.linspace(0.0, HORIZON, 4001)[:, None]
    return float(np.linalg.norm(t * (velocity - sphere.velocity) - sphere.position, axis=1).min() - sphere.radius)
