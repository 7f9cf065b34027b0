"""Boxes and cylinders against solids and triangles: distances as a minimisation finds them, sweeps that miss nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy

from airworthy.core.frames import rotate, to_matrix
from airworthy.geometry.batch import GeometryBatch
from airworthy.geometry.placement import Box, Capsule, Cylinder, Mesh, Placement, Sphere
from airworthy.geometry.sweep import body_clearance, sweep_body

MARGIN = 0.002
TRIANGLE = Mesh(np.array([[-0.3, -0.2, 0.1], [0.4, 0.0, 0.0], [0.0, 0.35, -0.1]]), np.array([[0, 1, 2]]))
SHAPES: dict[str, Any] = {
    "box": Box((0.3, 0.2, 0.1)),
    "sphere": Sphere(0.25),
    "cylinder": Cylinder(0.2, 0.3),
    "capsule": Capsule(0.1, 0.3),
    "triangle": TRIANGLE,
}
CORES = {"box": (1.0, 0.2, 0.15, 0.05), "cylinder": (2.0, 0.15, 0.15, 0.06)}


def core_of(name: str, center: Any = (0.02, -0.01, 0.03)) -> np.ndarray:
    kind, *half = CORES[name]
    return np.array([kind, *half, *center, MARGIN, np.linalg.norm(half) + np.linalg.norm(center) + MARGIN])


def random_pose(rng: np.random.Generator, spread: float) -> tuple[np.ndarray, np.ndarray]:
    q = rng.normal(size=4)
    return rng.uniform(-spread, spread, 3), q / np.linalg.norm(q)


def least_distance(shape: Any, at: Any, turn: Any, core: np.ndarray, position: np.ndarray, attitude: np.ndarray) -> float:
    """By SLSQP over a point of each, from several starts."""
    body, world = to_matrix(attitude), to_matrix(np.asarray(turn))
    kind, half, center = core[0], core[1:4], core[4:7]
    corners = TRIANGLE.vertices.astype(float)

    def points(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mine = position + body @ (center + x[:3])
        its = x[3] * corners[0] + x[4] * corners[1] + x[5] * corners[2] if shape is TRIANGLE else x[3:6]
        return mine, at + world @ its

    bounds = [(-h, h) for h in half]
    rules: list[Any] = []
    if kind == 2.0:
        rules.append({"type": "ineq", "fun": lambda x: half[0] ** 2 - x[0] ** 2 - x[1] ** 2})
    round_ = 0.0
    if shape is TRIANGLE:
        bounds += [(0.0, 1.0)] * 3
        rules.append({"type": "eq", "fun": lambda x: x[3:6].sum() - 1.0})
    elif isinstance(shape, Box):
        bounds += [(-h, h) for h in shape.half_size]
    elif isinstance(shape, Cylinder):
        bounds += [(-shape.radius, shape.radius)] * 2 + [(-shape.half_length, shape.half_length)]
        rules.append({"type": "ineq", "fun": lambda x: shape.radius**2 - x[3] ** 2 - x[4] ** 2})
    else:
        length = shape.half_length if isinstance(shape, Capsule) else 0.0
        bounds += [(0.0, 0.0)] * 2 + [(-length, length)]
        round_ = shape.radius

    def square(x: np.ndarray) -> float:
        mine, its = points(x)
        return float(((mine - its) ** 2).sum())

    third = np.full(3, 1.0 / 3.0) if shape is TRIANGLE else np.zeros(3)
    found = scipy.optimize.minimize(
        square, np.r_[np.zeros(3), third], bounds=bounds, constraints=rules, tol=1e-14, options={"maxiter": 400}
    )
    return float(np.sqrt(found.fun)) - round_


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("shape", SHAPES)
def test_distance_is_the_least(shape: str, core: str) -> None:
    rng, row, compared = np.random.default_rng(3), core_of(core), 0
    for _ in range(12):
        turn = random_pose(rng, 0.0)[1]
        at = np.array([0.1, 0.2, -0.1])
        batch = GeometryBatch([SHAPES[shape]], [Placement.of([0], [at], turn)])
        position, attitude = random_pose(rng, 0.9)
        found = body_clearance(batch, row, (position, attitude))
        turned = to_matrix(attitude)
        expected = least_distance(SHAPES[shape], at, turn, row, position, attitude)
        if expected < 1e-3:
            assert found.distance[0] < 2e-3
            continue
        assert found.distance[0] == pytest.approx(expected, abs=2e-6)
        arm = position + turned @ found.arm[0]
        assert arm - found.point[0] == pytest.approx(found.normal[0] * found.distance[0], abs=1e-6)
        compared += 1
    assert compared > 5


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("shape", SHAPES)
def test_sweeps_stop_where_they_touch(shape: str, core: str) -> None:
    """At the fraction found the body is at its gap; before it, at 200 instants, never nearer; where none is found, nowhere."""
    rng, gap, met, n = np.random.default_rng(5), 1e-4, 0, 40
    row = np.tile(core_of(core), (n, 1))
    batch = GeometryBatch([SHAPES[shape]], [Placement.of([0], [(0.0, 0.0, 0.0)])])
    start = [random_pose(rng, 0.0) for _ in range(n)]
    begin = np.array([2.0 * p / np.linalg.norm(p) * 0.6 for p in rng.normal(size=(n, 3))])
    end = -begin + rng.uniform(-0.3, 0.3, (n, 3))
    q0 = np.array([q for _, q in start])
    q1 = q0 + rng.choice([0.0, 0.05, 0.5], (n, 1)) * rng.normal(size=(n, 4))
    q1 /= np.linalg.norm(q1, axis=1, keepdims=True)
    found = sweep_body(batch, row, (begin, q0), (end, q1), 0, gap=gap)
    for share in np.linspace(0.0, 1.0, 201):
        t = np.where(found.instance >= 0, found.fraction, 1.0) * share
        q = q0 + t[:, None] * (q1 - q0)
        q /= np.linalg.norm(q, axis=1, keepdims=True)
        there = body_clearance(batch, row, (begin + t[:, None] * (end - begin), q), 0)
        assert (there.distance >= MARGIN + gap - 2e-9).all()
        if share == 1.0:
            hit = found.instance >= 0
            assert np.abs(there.distance - MARGIN - gap)[hit].max() < 2e-9
            met = int(hit.sum())
            assert rotate(q[hit], found.arm[hit]).shape == (met, 3)
    assert 5 < met <= n


def test_large_floors_do_not_blur() -> None:
    """A box over a floor of 100 m, as a box and as two triangles: its height, to 1e-11 m."""
    quad = Mesh(np.array([[-50, -50, 1], [50, -50, 1], [50, 50, 1], [-50, 50, 1]], float), np.array([[0, 1, 2], [0, 2, 3]]))
    for shape in (Box((50.0, 50.0, 1.0)), quad):
        batch = GeometryBatch([shape], [Placement.of([0], [(3.0, 2.0, -1.0)])])
        found = body_clearance(batch, core_of("box", (0, 0, 0)), ((7.3, -11.1, 0.05 + 1e-4), (0.0, 0.0, 0.0, 1.0)))
        assert found.distance[0] == pytest.approx(1e-4, abs=1e-11)
        assert found.normal[0] == pytest.approx([0.0, 0.0, 1.0], abs=1e-9)
