"""NavRL: check values of its network, and what its shield does: item 7 of the planners' acceptance list."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.evaluation.verification.figure import Figure, below, zero
from airworthy.pilots.navrl import Network, load_network
from airworthy.pilots.navrl.shield import HORIZON, Sphere, height_planes, shielded
from airworthy.pilots.navrl.velocity_programme import violation

__all__ = ["network_figures", "pillar_scan", "shield_figures", "usable_network"]

Array = NDArray[np.float64]

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
    """The network with its published weights; None: there are none here."""
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
    """The forward pass with the published weights."""
    gaps = [network.forward(STATE, pillar_scan(at)[None]).velocity[0] - told for at, told in CHECKS.items()]
    worst = float(np.abs(gaps).max())
    yield below(f"NavRL 7: velocities off the {len(CHECKS)} published check values, worst", worst, 0.01, "m/s")


def shield_figures(draws: int = 400) -> Iterator[Figure]:
    """Random velocities before random spheres: those on a way that collides are unsafe, by small steps along it.

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


def _sphere(rng: np.random.Generator) -> Sphere:
    way = rng.normal(size=3)
    return Sphere(rng.uniform(0.8, 3.0) * way / np.linalg.norm(way), float(rng.uniform(0.2, 0.5)), rng.normal(0.0, 0.3, 3))


def _gap(velocity: Array, sphere: Sphere) -> float:
    """Least distance of the straight way within the horizon to a sphere [m]; below 0: it enters."""
    t = np.linspace(0.0, HORIZON, 4001)[:, None]
    return float(np.linalg.norm(t * (velocity - sphere.velocity) - sphere.position, axis=1).min() - sphere.radius)
