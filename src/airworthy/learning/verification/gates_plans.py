"""Network, loss, and plans with their certificates (specification, sections 7, 8 and 11)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.evaluation.verification.figure import Figure, below, zero
from airworthy.learning.verification.gates_search import oracle
from airworthy.pilots.boundary.contract import PAPER_RANGES, tensor_shapes
from airworthy.pilots.boundary.errors import loss_minimum, loss_of
from airworthy.pilots.boundary.network import Boundary
from airworthy.pilots.boundary.planner import BoundaryPlan, plan
from airworthy.trajectories import course

__all__ = ["COURSES", "loss_figures", "network_figures", "plan_figures"]

Array = NDArray[np.float64]

COURSES = ("straight_8", "straight_8_heights", "circle_8", "circle_12_heights", "snake_8", "snake_10_hard", "mixed_10")
"""Of the catalogue: those of the specification's section 12."""
PARAMETERS = 145_282
SAMPLES = 4_001
"""Of each plan."""
ROUNDING = 1e-9
"""By which samples may miss what is proven."""
SLACK = 5e-3
"""How far a proven bound may lie above what samples meet [m/s^2]: its tolerance is a thousandth of 2, and samples miss a
maximum by less than that."""


# ---- network and loss -----------------------------------------------------------------------------------------------------


def loss_figures() -> Iterator[Figure]:
    """Size of the network, and where its loss is least, found from its slope and by dense search."""
    count = sum(int(np.prod(shape)) for shape in tensor_shapes().values())
    yield Figure("Gates 7: numbers that the network learns", float(count), f"{PARAMETERS:,}", count == PARAMETERS)
    at, value, crossing = loss_minimum()
    for words, found, told, digits in (
        ("loss is least at an error of", at, 0.0443, 4),
        ("its least value", value, -0.01306, 5),
        ("it is zero again at", crossing, 0.0916, 4),
    ):
        yield Figure(f"Gates 7: {words}", found, f"{told:+g}", round(found, digits) == told)
    errors = np.linspace(-1.0, 1.0, 200_001)
    yield below("Gates 7: least loss above that of 200,001 errors", value - float(loss_of(errors).min()), 1e-15)
    slope = float(loss_of(1e-5) - loss_of(-1e-5)) / 2e-5
    yield below("Gates 7: slope at zero off (0.8 - 2.0) / 2", abs(slope + 0.6), 1e-8)


def network_figures(networks: Sequence[tuple[str, Path]], repeats: int = 200) -> Iterator[Figure]:
    """How long networks take for one gate, everything included.

    Args:
        networks: Name and folder of each.
        repeats: Of which the shortest counts.
    """
    for name, folder in networks:
        network, least = Boundary.read(folder), np.inf
        row = np.mean(np.array(PAPER_RANGES), axis=1)
        for _ in range(repeats):
            begun = time.thread_time()
            network.predict(row)
            least = min(least, time.thread_time() - begun)
        yield below(f"Gates 7: network {name}, a gate predicted, processor time of one thread", 1e6 * float(least), 100.0, "us")


# ---- certificates ---------------------------------------------------------------------------------------------------------


def plan_figures(names: Sequence[str] = COURSES) -> Iterator[Figure]:
    """Courses planned with the fastest pairs that the limit admits, their certificates held against dense samples.

    Args:
        names: Of courses.
    """
    plans = [plan(course(name), oracle) for name in names]
    refused = sum(not (made.flyable and made.certificate is not None and made.certificate.proven) for made in plans)
    yield zero(f"Gates 8: of {len(plans)} courses, without a proven plan", refused)
    checked = np.array([_checked(made) for made in plans if made.trajectory is not None and made.certificate is not None])
    if not len(checked):
        return
    worst = checked.max(axis=0)
    label = f"Gates 8, {SAMPLES:,} samples of each plan"
    yield below(f"{label}: |a| + 0.3 |v|^3, most", float(worst[0]), 2.0, "m/s^2")
    yield below(f"{label}: |a| + 0.3 |v|^3 beyond its proven bound, most", float(worst[1]), ROUNDING, "m/s^2")
    yield below(f"{label}: proven bound beyond what samples meet, most", float(worst[2]), SLACK, "m/s^2")
    yield below(f"{label}: below the proven height, most", float(worst[3]), ROUNDING, "m")
    yield below(f"{label}: nearer to a frame than proven, most", float(worst[4]), ROUNDING, "m")
    yield below("Gates 8: gates missed by the plan, position and velocity, worst", float(worst[5]), 1e-9)


def _checked(made: BoundaryPlan) -> tuple[float, ...]:
    """What samples use of the limit; by how much they break bounds; how much above them the limit's is; misses at gates."""
    path, sure = made.trajectory, made.certificate
    assert path is not None
    assert sure is not None
    flat = path.sample(np.linspace(0.0, path.duration, SAMPLES))
    used = float(np.max(np.linalg.norm(flat.acceleration, axis=1) + 0.3 * np.linalg.norm(flat.velocity, axis=1) ** 3))
    bound = sure.limit.checks[0].bound
    low = sure.floor.bound - float(flat.position[:, 2].min())
    near = sure.clearance.bound - _clearance(flat.position, made)
    at = path.sample(np.cumsum(made.durations)[:-1])
    through = np.array([gate.normal for gate in made.gates]) * made.speeds[1:-1, None]
    miss = max(
        float(np.abs(at.position - [gate.position for gate in made.gates]).max()), float(np.abs(at.velocity - through).max())
    )
    return used, used - bound, bound - used, low, near, miss


def _clearance(points: Array, made: BoundaryPlan) -> float:
    """Least distance of points (m, 3) from every bar of every gate [m]."""
    least = np.inf
    bars: list[Any] = [bar for gate in dict.fromkeys(made.gates) for bar in gate.bars()]
    for bar in bars:
        x, y, z = (points - bar.center).T
        c, s = np.cos(bar.yaw), np.sin(bar.yaw)
        local = np.stack([c * x + s * y, c * y - s * x, z], axis=1)
        gap = np.linalg.norm(np.maximum(np.abs(local) - bar.half_size, 0.0), axis=1)
        least = min(least, float(gap.min()))
    return least
