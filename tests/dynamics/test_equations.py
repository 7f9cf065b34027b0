"""Single equations of motion against formulas and identities from outside the package."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from airworthy.dynamics import contact
from airworthy.dynamics import equations as eq
from airworthy.dynamics.state import contact_points, invert_inertia, padded_rotor_count, rigid_layout
from airworthy.vehicles.record import CollisionBody

FINITE = st.floats(-50.0, 50.0)
VECTOR = st.tuples(FINITE, FINITE, FINITE)
SEED = st.integers(0, 2**31)


def unit(rng: np.random.Generator) -> tuple[float, ...]:
    q = rng.normal(size=4)
    return tuple(q / np.linalg.norm(q))


def parameters(rng: np.random.Generator, n: int = 4) -> SimpleNamespace:
    """A random airframe with every term."""
    axis = rng.normal(size=(n, 3))
    axis /= np.linalg.norm(axis, axis=1, keepdims=True)
    root = rng.normal(size=(3, 3)) * 0.05
    j = root @ root.T + np.diag([0.01, 0.012, 0.02])
    mass = float(rng.uniform(0.5, 3.0))
    inertia = (j[0, 0], j[1, 1], j[2, 2], j[0, 1], j[0, 2], j[1, 2])
    inverse = np.linalg.inv(j)
    return SimpleNamespace(
        gravity=9.81,
        mass=mass,
        mass_inverse=1.0 / mass,
        inertia=inertia,
        inertia_inverse=tuple(inverse[k] for k in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))),
        rotor_axis=axis,
        rotor_lever=np.cross(rng.normal(size=(n, 3)) * 0.2, axis),
        rotor_thrust=rng.uniform(0.0, 1.0, (n, 3)) * [0.01, 1e-3, 1e-6],
        rotor_torque=rng.uniform(-1.0, 1.0, (n, 3)) * [1e-3, 1e-5, 1e-7],
        rotor_inertia=rng.uniform(-1e-5, 1e-5, n),
        rotor_rise=rng.uniform(1.0, 50.0, (n, 2)) * [1.0, 1e-3],
        rotor_fall=rng.uniform(1.0, 50.0, (n, 2)) * [1.0, 1e-3],
        **{name: rng.uniform(0.0, 0.3, 3) for name in ("drag_linear", "drag_norm", "drag_axis")},
        **{name: rng.uniform(0.0, 0.01, 3) for name in ("angular_linear", "angular_norm", "angular_axis")},
        drag_rotor=rng.uniform(0.0, 1e-4, 3),
        drag_center=rng.normal(size=3) * 0.05,
    )


@given(SEED)
def test_derivative_against_vectors_and_matrices(seed: int) -> None:
    """The whole right-hand side once more, with NumPy's matrices and SciPy's rotations."""
    rng = np.random.default_rng(seed)
    p, q = parameters(rng), unit(rng)
    v, w, wind, force, moment = (rng.normal(size=3) * s for s in (5.0, 5.0, 2.0, 1.0, 0.01))
    m, c = rng.uniform(-500, 2000, 4), rng.uniform(-500, 2000, 4)
    dv, dq, dw, dm, specific = (np.array(x) for x in eq.derivative(v, q, w, m, c, wind, force, moment, None, p))
    r = Rotation.from_quat(q).as_matrix()
    up = np.abs(c) >= np.abs(m)
    a, b = (np.where(up, p.rotor_rise[:, k], p.rotor_fall[:, k]) for k in (0, 1))
    spin_up = a * (c - m) + b * (c * np.abs(c) - m * np.abs(m))
    powers = np.stack([np.ones(4), m, m * np.abs(m)], axis=1)
    thrust, torque = (p.rotor_thrust * powers).sum(1), (p.rotor_torque * powers).sum(1)
    air = r.T @ (v - wind)
    total = np.abs(m).sum()
    drag = -air * (p.drag_linear + p.drag_norm * np.linalg.norm(air) + p.drag_axis * np.abs(air) + p.drag_rotor * total)
    damping = -w * (p.angular_linear + p.angular_norm * np.linalg.norm(w) + p.angular_axis * np.abs(w))
    body = thrust @ p.rotor_axis + drag
    xx, yy, zz, xy, xz, yz = p.inertia
    j = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    stored = -(p.rotor_inertia * m) @ p.rotor_axis
    turning = thrust @ p.rotor_lever + (torque + p.rotor_inertia * spin_up) @ p.rotor_axis + damping + moment
    turning = turning + np.cross(p.drag_center, drag)
    assert dm == pytest.approx(spin_up, rel=1e-12)
    assert dv == pytest.approx((r @ body + force) / p.mass - [0, 0, 9.81], rel=1e-9, abs=1e-9)
    assert specific == pytest.approx((body + r.T @ force) / p.mass, rel=1e-9, abs=1e-9)
    assert dw == pytest.approx(np.linalg.solve(j, turning - np.cross(w, j @ w + stored)), rel=1e-9, abs=1e-9)
    small = 1e-6
    turned = (Rotation.from_quat(q) * Rotation.from_rotvec(w * small)).as_quat()
    turned *= np.sign(turned @ q)
    assert (turned - q) / small == pytest.approx(dq, abs=1e-4)


@given(SEED, st.floats(1e-4, 0.02))
def test_quaternion_exponential(seed: int, dt: float) -> None:
    """A turn at a constant rate; to fourth order in the half angle, (0.2)^6 / 700 at 20 rad/s and 20 ms."""
    rng = np.random.default_rng(seed)
    q, w = unit(rng), rng.uniform(-12.0, 12.0, 3)
    turned = np.array(eq.normalize(eq.quaternion_exponential(q, w, dt)))
    expected = (Rotation.from_quat(q) * Rotation.from_rotvec(w * dt)).as_quat()
    assert abs(turned @ expected) == pytest.approx(1.0, abs=1e-12)
    assert np.linalg.norm(turned - expected * np.sign(turned @ expected)) < 1e-6


def test_normalize() -> None:
    assert np.array(eq.normalize((0.0, 0.0, 0.0, 2.0))) == pytest.approx([0, 0, 0, 1])
    assert np.array(eq.normalize((0.0, 0.0, 0.0, 0.0))) == pytest.approx([0, 0, 0, 0])


@given(SEED)
def test_accelerometer_is_the_second_derivative_of_its_place(seed: int) -> None:
    """The sensor's place moves on x(t) + R(t) r: its acceleration minus gravity, seen in the sensor's frame."""
    rng = np.random.default_rng(seed)
    specific, rate, turn, r = rng.normal(size=3) * 5, rng.normal(size=3) * 3, rng.normal(size=3) * 10, rng.normal(size=3) * 0.3
    mount = Rotation.from_quat(unit(rng)).as_matrix()
    reading = np.array(eq.accelerometer(specific, rate, turn, mount.ravel(), r))
    h = 1e-4
    # R(t) to second order about t = 0: exp of (w t + dw t^2 / 2), the commutator being of third order.
    place = [Rotation.from_rotvec(rate * t + turn * t * t / 2).apply(r) for t in (-h, 0.0, h)]
    acceleration = (place[0] - 2 * place[1] + place[2]) / h**2
    assert reading == pytest.approx(mount.T @ (specific + acceleration), abs=2e-4)


@given(SEED)
def test_battery_current(seed: int) -> None:
    """The current that the rotors' power draws through the resistance: P = (V0 - R I) I."""
    rng = np.random.default_rng(seed)
    p = SimpleNamespace(battery=(16.8, 1e-3, 0.01, 14.8, 1.4, 5000.0), rotor_torque=np.full((4, 3), [0.0, 0.0, 2.6e-7]))
    speed, used = rng.uniform(0, 1000, 4), rng.uniform(0, 4000)
    after, ratio = eq.battery_step(used, speed, 0.01, p)
    current, power = (after - used) / 0.01, 1.4 * 2.6e-7 * (speed**3).sum()
    voltage = 16.8 - 1e-3 * used - 0.01 * current
    assert voltage * current == pytest.approx(power, rel=1e-9)
    assert ratio == pytest.approx(voltage / 14.8, rel=1e-12)


# ---- contact -----------------------------------------------------------------------------------------------------------------


def body(rng: np.random.Generator) -> tuple[SimpleNamespace, Any]:
    p = parameters(rng)
    p.contact_radius, p.ground_height = float(rng.choice([0.0, 0.1])), 0.0
    p.friction, p.restitution = float(rng.uniform(0, 1.2)), float(rng.uniform(0, 1))
    p.rolling = float(rng.uniform(0, 1.0))
    xx, yy, zz, xy, xz, yz = p.inertia
    j = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return p, lambda u, w: 0.5 * p.mass * np.dot(u, u) + 0.5 * np.dot(w, j @ np.array(w))


@given(SEED)
def test_frame_and_depth(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, _ = body(rng)
    q, velocity, w, point = unit(rng), rng.normal(size=3), rng.normal(size=3), rng.normal(size=3) * 0.2
    r = Rotation.from_quat(q)
    up, u = contact.ground_frame(tuple(velocity), q)
    assert np.array(up) == pytest.approx(r.inv().apply([0, 0, 1]))
    assert np.array(u) == pytest.approx(r.inv().apply(velocity))
    depth, approach = contact.contact_state(0.3, up, u, tuple(w), tuple(point), p)
    lowest = r.apply(point) - [0, 0, p.contact_radius]
    assert depth == pytest.approx(-(0.3 + lowest[2]))
    assert approach == pytest.approx(-(velocity + np.cross(r.apply(w), lowest))[2])


@given(SEED)
def test_contact_never_adds_energy(seed: int) -> None:
    """Pushes, rebound, friction and lift, each for itself, on random bodies with three points in contact."""
    rng = np.random.default_rng(seed)
    p, energy = body(rng)
    up = np.array(unit(rng)[:3])
    up /= np.linalg.norm(up)
    u, w = rng.normal(size=3) * 3, rng.normal(size=3) * 5
    points = rng.normal(size=(3, 3)) * 0.2
    u0, w0, now = u, w, energy(u, w)
    push = [0.0] * 3
    for _ in range(3):
        for k, point in enumerate(points):
            u, w, push[k] = contact.contact_push(1.0, push[k], tuple(u), tuple(w), tuple(up), tuple(point), p)
            assert push[k] >= 0.0
            assert energy(u, w) <= now * (1 + 1e-12)
            now = energy(u, w)
    u, w, share = contact.contact_rebound(5.0, tuple(u), tuple(w), tuple(u0), tuple(w0), 0.001, p)
    assert 0.0 <= share <= p.restitution
    assert energy(u, w) <= energy(u0, w0) * (1 + 1e-12)
    now = energy(u, w)
    for k, point in enumerate(points):
        u, w, _ = contact.contact_friction(1.0, push[k], tuple(u), tuple(w), tuple(up), tuple(point), p)
        assert energy(u, w) <= now * (1 + 1e-12)
        now = energy(u, w)
    lift = 1e-3
    lifted = contact.contact_lift(lift, tuple(u), tuple(w), p)
    assert energy(*lifted) + p.mass * p.gravity * lift <= max(now, p.mass * p.gravity * lift) * (1 + 1e-12)


@given(SEED)
def test_the_energy_bounds_are_met_exactly(seed: int) -> None:
    """Where a bound acts, energy is what it allows: neither more nor, by a wrong factor, less."""
    rng = np.random.default_rng(seed)
    p, energy = body(rng)
    p.restitution, up = 1.0, tuple(np.eye(3)[2])
    u0, w0, rise = rng.normal(size=3) - [0.0, 0.0, 3.0], rng.normal(size=3) * 3.0, float(rng.uniform(0.0, 0.3))
    # Three pushes of one pass are no solution: the rebound of e = 1 would gain, and is shortened to what there was.
    u, w = tuple(u0), tuple(w0)
    for point in rng.normal(size=(3, 3)) * 0.2:
        u, w, _ = contact.contact_push(1.0, 0.0, u, w, up, tuple(point), p)
    taken = energy(u0, w0) - energy(u, w)
    full = energy(2 * np.array(u) - u0, 2 * np.array(w) - w0)
    u, w, share = contact.contact_rebound(5.0, u, w, tuple(u0), tuple(w0), 0.001, p)
    if full > energy(u0, w0) * (1 + 1e-9) and taken > 1e-9:
        assert share < 1.0
    else:
        assert share == pytest.approx(1.0, abs=1e-6)
    assert energy(u, w) <= energy(u0, w0) * (1 + 1e-12)
    weight, now = p.mass * p.gravity, energy(u0, w0)
    assert energy(*contact.contact_lift(rise, tuple(u0), tuple(w0), p)) == pytest.approx(
        max(now - weight * rise, 0.0), abs=1e-9
    )
    assert contact.affordable_lift(1e9, tuple(u0), tuple(w0), p) * weight == pytest.approx(now)
    risen = contact.affordable_lift(rise, tuple(u0), tuple(w0), p)
    slower, turned = contact.contact_rise(risen, tuple(u0), tuple(w0), up, p)
    assert energy(slower, turned) + weight * risen == pytest.approx(now)
    if u0[2] ** 2 > 2.0 * p.gravity * rise:  # the fall pays: nothing else changes
        assert np.array(slower)[:2] == pytest.approx(u0[:2])
        assert np.array(turned) == pytest.approx(w0)
    assert energy(*contact.bounded_motion(0.5 * now, tuple(u0), tuple(w0), p)) == pytest.approx(0.5 * now)
    assert np.array(contact.bounded_motion(2.0 * now, tuple(u0), tuple(w0), p)) == pytest.approx(np.array([u0, w0]))
    assert energy(*contact.bounded_motion(-1.0, tuple(u0), tuple(w0), p)) == 0.0


@given(SEED)
def test_rolling_is_resisted_and_never_reversed(seed: int) -> None:
    """A small push takes `rolling` radius push of angular momentum about the axis; a large one ends the rotation about it.

    Of a body that slides about its centre of mass, of one that rolls about the point below; that stays at rest then.
    """
    rng = np.random.default_rng(seed)
    p, energy = body(rng)
    p.contact_radius = 0.3
    w = rng.normal(size=3) * 5.0
    axis, xx = w / np.linalg.norm(w), p.inertia
    inertia = np.array([[xx[0], xx[3], xx[4]], [xx[3], xx[1], xx[5]], [xx[4], xx[5], xx[2]]])
    p.friction, up, point = 100.0, (0.0, 0.0, 1.0), tuple(rng.normal(size=3) * 0.02)
    lever = np.array(point) - [0.0, 0.0, 0.3]
    rolls = -np.cross(w, lever)
    about = inertia + p.mass * (lever @ lever * np.eye(3) - np.outer(lever, lever))
    for u, moment in ((rolls + np.array([3.0, 0.0, 0.0]), inertia), (rolls, about)):
        slower, turned = (np.array(x) for x in contact.contact_rolling(1e-6, tuple(u), tuple(w), up, point, p))
        assert moment @ (w - turned) == pytest.approx(axis * p.rolling * 0.3 * 1e-6, rel=1e-6, abs=1e-13)
        still, stopped = (np.array(x) for x in contact.contact_rolling(1e6, tuple(u), tuple(w), up, point, p))
        assert stopped @ axis == pytest.approx(0.0, abs=1e-9) or p.rolling < 1e-3
        assert still + np.cross(stopped, lever) == pytest.approx(u + np.cross(w, lever), abs=1e-9) or moment is inertia
        assert energy(still, stopped) <= energy(slower, turned) * (1 + 1e-12) <= energy(u, w) * (1 + 1e-12)
        assert np.array_equal(contact.contact_rolling(0.0, tuple(u), tuple(w), up, point, p)[1], w)


def test_a_single_point_rebounds_by_newton() -> None:
    """One point, no friction: it leaves at e times the speed of its approach."""
    for seed in range(50):
        rng = np.random.default_rng(seed)
        p, _ = body(rng)
        up, u, w = (0.0, 0.0, 1.0), tuple(rng.normal(size=3) - [0, 0, 5]), tuple(rng.normal(size=3))
        point = tuple(rng.normal(size=3) * 0.1)
        _, before = contact.contact_state(0.0, up, u, w, point, p)
        if before <= 0.1:
            continue
        u1, w1, _ = contact.contact_push(1.0, 0.0, u, w, up, point, p)
        _, stopped = contact.contact_state(0.0, up, u1, w1, point, p)
        assert stopped == pytest.approx(0.0, abs=1e-12)
        u2, w2, share = contact.contact_rebound(before, u1, w1, u, w, 0.001, p)
        _, after = contact.contact_state(0.0, up, u2, w2, point, p)
        assert share == pytest.approx(p.restitution)
        assert after == pytest.approx(-p.restitution * before, rel=1e-9)


def test_friction_within_its_cone() -> None:
    """It ends the slip if it may, else it is `friction` times the push; a point that does not touch is left alone."""
    rng = np.random.default_rng(1)
    p, _ = body(rng)
    p.friction = 0.5
    up, u, w, point = (0.0, 0.0, 1.0), (2.0, 1.0, 0.0), (0.1, 0.2, 0.3), (0.1, 0.0, -0.1)
    held, turned, _ = contact.contact_friction(1.0, 100.0, u, w, up, point, p)
    lever = np.array(point) - [0, 0, p.contact_radius]
    slip = (np.array(held) + np.cross(turned, lever))[:2]
    before = (np.array(u) + np.cross(w, lever))[:2]
    assert np.dot(slip, before) == pytest.approx(0.0, abs=1e-12)  # what remains is turned, not left over
    slid, _, _ = contact.contact_friction(1.0, 0.01, u, w, up, point, p)
    assert np.linalg.norm(np.subtract(slid, u)) * p.mass == pytest.approx(0.5 * 0.01)
    untouched = contact.contact_friction(0.0, 100.0, u, w, up, point, p)
    assert np.allclose(untouched[0], u)
    assert np.allclose(untouched[1], w)


# ---- parameters --------------------------------------------------------------------------------------------------------------


def test_contact_points_of_each_shape() -> None:
    com = np.array([0.01, 0.0, 0.02])
    box, none = contact_points(CollisionBody("box", (0.2, 0.1, 0.05), (0.0, 0.0, 0.1)), com)
    assert none == 0.0
    assert {tuple(np.round(np.abs(x + com - [0, 0, 0.1]), 9)) for x in box} == {(0.2, 0.1, 0.05)}
    assert len({tuple(x) for x in box}) == 8
    sphere, radius = contact_points(CollisionBody("sphere", (0.15,) * 3), com)
    assert radius == 0.15
    assert np.allclose(sphere, -com)
    cylinder, none = contact_points(CollisionBody("cylinder", (0.1, 0.1, 0.03)), np.zeros(3))
    assert none == 0.0
    assert np.allclose(np.linalg.norm(cylinder[:, :2], axis=1), 0.1)
    assert set(np.abs(cylinder[:, 2])) == {0.03}


def test_inertia_inverse_and_padding() -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3))
    j = root @ root.T + np.eye(3)
    inverse = invert_inertia((j[0, 0], j[1, 1], j[2, 2], j[0, 1], j[0, 2], j[1, 2]))
    assert inverse == pytest.approx([np.linalg.inv(j)[k] for k in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))])
    assert [padded_rotor_count(n) for n in (1, 4, 5, 6, 7, 8)] == [4, 4, 6, 6, 8, 8]
    assert rigid_layout(4).size < rigid_layout(8).size


@pytest.mark.parametrize(
    ("dt", "approach", "rebounds"),
    [(0.001, 0.0999, False), (0.001, 0.1001, True), (0.02, 0.3923, False), (0.02, 0.3925, True)],
)
def test_slow_approaches_do_not_rebound(dt: float, approach: float, rebounds: bool) -> None:
    """Up to a tenth of a metre per second, or what gravity adds in two steps: 2 * 9.81 * 0.02 = 0.3924 m/s."""
    p = parameters(np.random.default_rng(4))
    p.restitution = 0.5
    down, still = (0.0, 0.0, -approach), (0.0, 0.0, 0.0)
    # Stopped by a push along the vertical through the centre of mass: nothing turns.
    velocity, rate, share = contact.contact_rebound(approach, still, still, down, still, dt, p)
    assert share == pytest.approx(0.5 if rebounds else 0.0)
    assert velocity[2] == pytest.approx(0.5 * approach if rebounds else 0.0)
    assert rate == still
