"""The shield: clusters, half spaces against the set of velocities that collide, and the programme against brute force."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.planners.navrl.shield import (
    HORIZON,
    SPEED,
    Plane,
    ShieldSphere,
    clusters,
    half_space,
    height_planes,
    nearest_velocity,
    shielded,
    spheres_of_scan,
    stacked_spheres,
    violation,
)

REST = np.zeros(3)


def collides(velocity: np.ndarray, sphere: ShieldSphere, slack: float = 0.0) -> bool:
    """Whether a straight way enters a sphere within the horizon, by small steps."""
    t = np.linspace(0.0, HORIZON, 4001)[:, None]
    return bool((np.linalg.norm(t * (velocity - sphere.velocity) - sphere.position, axis=1) < sphere.radius - slack).any())


def random_planes(rng: np.random.Generator, count: int) -> list[Plane]:
    planes = []
    for _ in range(count):
        normal = rng.normal(size=3)
        normal /= np.linalg.norm(normal)
        planes.append((tuple(rng.normal(0.0, 1.0) * normal), tuple(normal)))
    return planes  # type: ignore[return-value]


# ---- the programme --------------------------------------------------------------------------------------------------------


def test_programme_equals_a_general_solver() -> None:
    from scipy.optimize import minimize

    rng, solved = np.random.default_rng(4), 0
    for _ in range(60):
        planes, wanted = random_planes(rng, int(rng.integers(1, 7))), rng.normal(0.0, 2.0, 3)
        found, feasible = nearest_velocity(wanted, planes, SPEED)
        points, normals = np.array([p for p, _ in planes]), np.array([n for _, n in planes])
        rules = [
            {"type": "ineq", "fun": lambda v, n=normals, p=points: ((v - p) * n).sum(axis=1)},
            {"type": "ineq", "fun": lambda v: SPEED**2 - v @ v},
        ]
        options = {"ftol": 1e-12, "maxiter": 300}
        other = minimize(lambda v, w=wanted: ((v - w) ** 2).sum(), REST, constraints=rules, options=options)
        if not feasible:
            # Then no point of a fine grid of velocities is allowed either.
            cloud = SPEED * rng.uniform(-1.0, 1.0, (20000, 3))
            cloud = cloud[np.linalg.norm(cloud, axis=1) <= SPEED]
            worst = np.max(((points[:, None] - cloud) * normals[:, None]).sum(axis=2), axis=0)
            assert worst.min() > 0.0
            # The least worst violation: none of the cloud is better, up to the halving's 40 steps.
            assert max(violation(plane, found) for plane in planes) <= worst.min() + 1e-9
            continue
        solved += 1
        assert max(violation(plane, found) for plane in planes) < 1e-7
        assert np.linalg.norm(found) <= SPEED + 1e-9
        if other.success and max(violation(plane, other.x) for plane in planes) < 1e-9:
            # SLSQP's own accuracy is about the square root of its tolerance.
            assert ((found - wanted) ** 2).sum() <= other.fun + 1e-5
    assert solved > 20


def test_programme_of_parallel_and_opposite_planes() -> None:
    up, down = (0.0, 0.0, 1.0), (0.0, 0.0, -1.0)
    found, feasible = nearest_velocity([1.0, 0.0, 0.0], [((0.0, 0.0, 0.5), up), ((0.0, 0.0, 0.2), up)], SPEED)
    assert feasible
    assert np.allclose(found, [1.0, 0.0, 0.5])
    found, feasible = nearest_velocity([1.0, 0.0, 0.0], [((0.0, 0.0, 0.5), up), ((0.0, 0.0, -0.5), down)], SPEED)
    assert not feasible
    assert abs(found[2]) < 1e-6  # in the middle, where both are violated by 0.5
    found, feasible = nearest_velocity([9.0, 0.0, 0.0], [], SPEED)
    assert feasible
    assert np.allclose(found, [SPEED, 0.0, 0.0])


# ---- half spaces ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_half_space_is_right_about_what_collides(seed: int) -> None:
    """Its conflict is the collision of the straight way, and what lies on its plane just touches."""
    rng, met = np.random.default_rng(seed), 0
    for _ in range(60):
        direction = rng.normal(size=3)
        direction /= np.linalg.norm(direction)
        sphere = ShieldSphere(rng.uniform(0.6, 3.0) * direction, rng.uniform(0.2, 0.5), rng.normal(0.0, 0.3, 3))
        wanted = rng.normal(0.0, 0.4, 3) + rng.uniform(0.3, 2.5) * direction
        (point, normal), conflict = half_space(wanted, sphere)
        assert np.linalg.norm(normal) == pytest.approx(1.0)
        assert conflict == collides(wanted, sphere) or collides(wanted, sphere, 1e-3) != collides(wanted, sphere, -1e-3)
        if conflict:
            met += 1
            assert violation((point, normal), wanted) >= -1e-9
            # The nearest velocity on the border: it neither enters by more than rounding nor keeps a distance.
            assert not collides(np.array(point), sphere, 1e-3)
            assert collides(np.array(point), sphere, -1e-2)
    assert met > 8


def test_overlap_is_left_within_a_step() -> None:
    verdict = shielded(np.array([1.0, 0.0, 0.0]), [ShieldSphere(np.array([0.2, 0.0, 0.0]), 0.25, REST)])
    assert verdict.conflict
    assert verdict.velocity[0] < 0.0


# ---- the shield -----------------------------------------------------------------------------------------------------------


def test_safe_velocities_pass_unchanged_and_unsafe_ones_keep_all_planes() -> None:
    spheres = [ShieldSphere(np.array([2.0, 0.0, 0.0]), 0.5, REST), ShieldSphere(np.array([1.5, 1.5, 0.0]), 0.5, REST)]
    for safe in ([0.0, -1.5, 0.0], [0.2, 0.0, 0.0], [-1.0, 0.3, 0.2]):
        verdict = shielded(np.array(safe), spheres)
        assert not verdict.conflict
        assert verdict.velocity.tolist() == safe
    verdict = shielded(np.array([1.8, 0.1, 0.0]), spheres, height_planes(1.0, 0.0, 0.7, 1.3))
    assert verdict.conflict
    assert verdict.feasible
    assert max(violation(plane, verdict.velocity) for plane in verdict.planes) < 1e-7
    assert not any(collides(verdict.velocity, sphere, 1e-3) for sphere in spheres)


def test_heights_are_kept() -> None:
    assert height_planes(1.0, 0.1, 0.7, 1.3) == []
    assert shielded(np.array([1.0, 0.0, -0.4]), [], height_planes(1.0, -0.4, 0.7, 1.3)).velocity.tolist() == [1.0, 0.0, 0.0]
    assert shielded(np.array([1.0, 0.0, 0.4]), [], height_planes(1.0, 0.4, 0.7, 1.3)).velocity.tolist() == [1.0, 0.0, 0.0]
    # Above its heights already, and on the way down: let pass.
    assert not shielded(np.array([1.0, 0.0, -0.1]), [], height_planes(2.5, -0.1, 0.7, 1.3)).conflict


def test_clusters_by_definition() -> None:
    rng = np.random.default_rng(8)
    points = np.concatenate([rng.uniform(0.0, 1.2, (60, 3)), [[5.0, 5.0, 5.0]]])
    label = clusters(points)
    near = np.linalg.norm(points[:, None] - points[None], axis=2) <= 0.2
    assert label[-1] == -1
    assert ((label == -1) == (near.sum(axis=1) < 2)).all()  # with two points to a cluster every member is a core
    assert (label[:, None] == label[None])[near & (label >= 0)[:, None] & (label >= 0)[None]].all()
    assert clusters(np.zeros((0, 3))).shape == (0,)


def test_spheres_of_clusters_and_boxes() -> None:
    (sphere,) = spheres_of_scan(np.array([[2.0, -0.1, 0.0], [2.0, 0.1, 0.0], [9.0, 0.0, 0.0]]))
    assert np.allclose(sphere.position, [2.1, 0.0, 0.0])
    assert sphere.radius == pytest.approx(0.15)
    stack = stacked_spheres(np.array([1.0, 0.0, 0.0]), np.array([0.6, 0.8, 3.0]), np.array([0.0, 1.0, 0.0]))
    assert len(stack) == 3
    assert all(s.radius == pytest.approx(0.5 + 0.6) for s in stack)
    assert np.allclose([s.position[2] for s in stack], [-1.0, 0.0, 1.0])
