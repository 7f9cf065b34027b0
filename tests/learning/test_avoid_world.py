"""Places of `avoid`, and what is seen and near in them: beside the general caster, NumPy twins and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from airworthy.core.errors import AirworthyError
from airworthy.core.frames import camera_attitude, from_euler, from_matrix, to_matrix
from airworthy.geometry import Box, Cylinder, GeometryBatch, Placement, RayTable, Sphere, cast
from airworthy.geometry.distance import clearance
from airworthy.learning.avoid import twin
from airworthy.learning.avoid.forests import FOREST_LENGTH, FOREST_WIDTH, GAP, draw_trunks, forest_scene
from airworthy.learning.avoid.kernel import Looks
from airworthy.learning.avoid.places import SIDE, Places, draw_places, set_trunks
from airworthy.learning.avoid.point_mass import Body, advance, attitude_axes
from airworthy.pilots.avoid_policy.pilot import GRAVITY, LEAST_LIFT, THRUST_MAX, limited
from airworthy.pilots.avoid_policy.sight import HALF_TANGENT, IMAGE, REACH, rays

ENVS, POINTS = 12, 6
COUNTS = (60, 8, 8)


@pytest.fixture(scope="module")
def looks() -> Looks:
    """Twelve environments with trunks, balls and boxes, cameras tilted every way that a flight tilts them; rays as lines."""
    return _looks(0.0)


def _looks(spread: float) -> Looks:
    places, rng = draw_places(3, 5), np.random.default_rng(4)
    made = Looks(places, rays(), ENVS, POINTS, REACH, spread, 1)
    made.layout[:], made.counts[:] = np.arange(ENVS) % 3, COUNTS
    made.offset[:] = rng.uniform(0.0, SIDE, (ENVS, 2))
    made.position[:] = np.concatenate([rng.uniform(-100.0, 100.0, (ENVS, 2)), rng.uniform(0.5, 3.0, (ENVS, 1))], 1)
    turn = from_euler(rng.uniform(-0.7, 0.7, ENVS), rng.uniform(-0.7, 0.7, ENVS), rng.uniform(-3.0, 3.0, ENVS))
    made.camera[:] = np.swapaxes(to_matrix(turn), 1, 2)
    made.points[:] = made.position[:, None] + rng.uniform(-1.0, 1.0, (ENVS, POINTS, 3)) * (1.0, 1.0, 0.4)
    made.look()
    return made


def _obstacles(looks: Looks, places: Places, env: int) -> twin.AvoidObstacles:
    n, m, k = looks.counts[env]
    where, moved = looks.layout[env], looks.offset[env].astype(float)
    parts = [a[where, :count].astype(float) for a, count in ((places.trunks, n), (places.balls, m), (places.boxes, k))]
    for part in parts:
        part[:, :2] += moved
    return twin.AvoidObstacles(parts[0], parts[1], parts[2], SIDE)


@pytest.mark.parametrize("spread", [0.0, HALF_TANGENT / IMAGE[1]])
def test_images_are_those_of_the_twin(spread: float) -> None:
    looks, places = _looks(spread), draw_places(3, 5)
    for env in range(ENVS):
        wanted = twin.depths(_obstacles(looks, places, env), looks.position[env], looks.camera[env], rays(), REACH, spread)
        # At an obstacle's rim a ray of single precision passes where one of double meets it.
        off = np.abs(looks.depth[env] - wanted) > 1e-3 * wanted
        assert off.mean() < 0.01, (env, off.sum())


def test_clearance_is_that_of_the_twin_and_grows_along_its_gradient(looks: Looks) -> None:
    places = draw_places(3, 5)
    for env in range(ENVS):
        here = _obstacles(looks, places, env)
        for k in range(POINTS):
            point = looks.points[env, k].astype(float)
            distance, slope = twin.nearest(here, point)
            assert looks.nearest[env, k, 0] == pytest.approx(distance, abs=1e-4)
            np.testing.assert_allclose(looks.nearest[env, k, 1:], slope, atol=1e-3)
            assert twin.nearest(here, point + 1e-4 * slope)[0] == pytest.approx(distance + 1e-4, abs=1e-8)


def test_images_and_clearances_are_those_of_the_general_geometry(looks: Looks) -> None:
    """The same obstacles, all their images within reach, as shapes of `airworthy.geometry`."""
    places = draw_places(3, 5)
    env = 2
    here, eye = _obstacles(looks, places, env), looks.position[env].astype(float)
    trunks, balls, boxes = here.about(eye)
    shapes: list[Cylinder | Sphere | Box] = [Box((200.0, 200.0, 1.0))]
    middles = [np.array([*eye[:2], -1.0])]
    for (x, y), radius in zip(trunks, here.trunks[:, 2], strict=True):
        shapes.append(Cylinder(float(radius), 80.0))
        middles.append(np.array([eye[0] + x, eye[1] + y, 0.0]))
    for away, radius in zip(balls, here.balls[:, 3], strict=True):
        shapes.append(Sphere(float(radius)))
        middles.append(eye + away)
    for away, half in zip(boxes, here.boxes[:, 3:], strict=True):
        shapes.append(Box(tuple(half.tolist())))
        middles.append(eye + away)
    count = len(shapes)
    layout = Placement.of(list(range(count)), np.array(middles), np.tile([0.0, 0.0, 0.0, 1.0], (count, 1)), np.ones(count))
    geometry = GeometryBatch(shapes, [layout], threads=1)
    table = rays().astype(float)
    # The optical frame has x right, y down, z ahead.
    directions = np.stack([-table[0], -table[1], np.ones(table.shape[1])], 1).reshape(*IMAGE, 3)
    axes = looks.camera[env].astype(float).T
    attitude = camera_attitude(from_matrix(axes))
    seen = cast(
        geometry, RayTable(directions, axis=(0.0, 0.0, 1.0)), eye[None], attitude[None], channels=("depth",), max_range=100.0
    )
    wanted = np.minimum(np.nan_to_num(seen["depth"].reshape(-1), posinf=REACH), REACH)
    assert (np.abs(looks.depth[env] - wanted) > 2e-3 * wanted).mean() < 0.01
    found = clearance(geometry, looks.points[env].astype(float), np.zeros(POINTS, int), 100.0).distance
    np.testing.assert_allclose(looks.nearest[env, :, 0], found, atol=1e-3)


def test_a_trunk_between_two_rays_is_seen_as_by_a_camera_of_many_pixels() -> None:
    """Of 64 rays in each pixel's width, the nearest return: what half a pixel's spread stands for."""
    trunk = twin.AvoidObstacles(np.array([[6.0, 0.26, 0.08]]), np.zeros((0, 4)), np.zeros((0, 6)), SIDE)
    eye, axes = (0.0, 0.0, 1.5), np.eye(3)
    pitch = 2.0 * HALF_TANGENT / IMAGE[1]
    table = rays()[:, 6 * 16 : 7 * 16]
    lines = twin.depths(trunk, eye, axes, table, REACH, 0.0)
    spread = twin.depths(trunk, eye, axes, table, REACH, 0.5 * pitch)
    fine = np.stack([table[0][:, None] + pitch * (np.arange(64) + 0.5 - 32) / 64, np.repeat(table[1][:, None], 64, 1)])
    wanted = twin.depths(trunk, eye, axes, fine.reshape(2, -1), REACH, 0.0).reshape(16, 64).min(1)
    assert (lines > 5.0).all()
    assert ((spread < 6.1) == (wanted < 6.1)).all()
    assert (wanted < 6.1).any()
    np.testing.assert_allclose(spread[wanted < 6.1], wanted[wanted < 6.1], atol=0.05)


def test_trunks_are_set_as_by_the_twin() -> None:
    rng = np.random.default_rng(1)
    candidates = np.concatenate([rng.uniform(0.0, SIDE, (2, 300, 2)), rng.uniform(0.1, 0.4, (2, 300, 1))], 2).astype(np.float32)
    found = set_trunks(candidates, 150)
    for place in range(2):
        wanted = twin.set_trunks(candidates[place], 150, SIDE, 0.6)
        np.testing.assert_array_equal(found[place, : len(wanted)], wanted.astype(np.float32))
        assert (found[place, len(wanted) :, 2] < 0.0).all()


def test_forests_are_as_dense_as_they_say_and_leave_gaps() -> None:
    trunks = draw_trunks(3, 0, 2.5)
    assert len(trunks) == round(FOREST_LENGTH * FOREST_WIDTH / 2.5)
    apart = np.hypot(*(trunks[:, None, :2] - trunks[None, :, :2]).transpose(2, 0, 1)) - trunks[:, 2] - trunks[:, None, 2]
    assert (apart + 10.0 * np.eye(len(trunks))).min() >= GAP
    np.testing.assert_array_equal(trunks, draw_trunks(3, 0, 2.5))
    assert not np.array_equal(trunks, draw_trunks(3, 1, 2.5))
    assert len(forest_scene(3, 0, 5.0).instances) == 1 + 192
    with pytest.raises(AirworthyError, match="too dense"):
        draw_trunks(3, 0, 1.2)


# ---- The point mass ----------------------------------------------------------------------------------------------------------


def _drawn(count: int) -> tuple[list[np.ndarray], Body]:
    rng = np.random.default_rng(2)
    state = [rng.normal(size=(count, 3)) for _ in range(6)]
    return state, Body(*(np.abs(rng.normal(size=(count, 1))) + 0.1 for _ in range(3)), rng.normal(size=(count, 3)))


def test_a_fall_and_a_push_are_those_of_the_textbook() -> None:
    """Without drag, and with a thrust that follows at once, a constant acceleration: half a t squared."""
    zero, dt = np.zeros((1, 3)), np.full((1, 1), 0.05)
    a = np.array([[1.0, -2.0, 0.5]])
    p, v, acc, act = zero, zero, a, a
    for _ in range(40):
        p, v, acc, act = advance(p, v, acc, act, a, zero, Body(1e9, 0.0, 0.0, zero), dt, np)
    np.testing.assert_allclose(p, 0.5 * a * 4.0, rtol=1e-12)
    np.testing.assert_allclose(v, 2.0 * a, rtol=1e-12)


def test_speed_under_drag_settles_where_drag_is_thrust() -> None:
    zero, dt, push = np.zeros((1, 3)), np.full((1, 1), 1.0 / 15.0), np.array([[6.4, 0.0, 0.0]])
    p, v, acc, act = zero, zero, zero, zero
    for _ in range(1500):
        p, v, acc, act = advance(p, v, acc, act, push, zero, Body(12.0, 0.0, 0.1, zero), dt, np)
    assert v[0, 0] == pytest.approx(8.0, rel=1e-6)  # 0.1 * 8^2 = 6.4


def test_tensors_give_what_arrays_give_and_gradients_are_those_of_differences() -> None:
    state, body = _drawn(3)
    dt = np.full((3, 1), 1.0 / 15.0)
    tensors = [torch.tensor(a, requires_grad=True) for a in state]
    held = Body(*(torch.tensor(getattr(body, name)) for name in ("lag", "linear", "square", "wind")))

    def step(*x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return advance(*x[:4], limited(20.0 * x[4], torch), x[5], held, torch.tensor(dt), torch)

    flown = advance(*state[:4], limited(20.0 * state[4], np), state[5], body, dt, np)
    for a, b in zip(step(*tensors), flown, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b, rtol=1e-12, atol=1e-12)
    assert torch.autograd.gradcheck(step, tensors)


def test_what_is_asked_for_can_be_given() -> None:
    asked = np.random.default_rng(0).normal(0.0, 40.0, (500, 3))
    thrust = limited(asked, np) + np.array([0.0, 0.0, GRAVITY])
    assert np.linalg.norm(thrust, axis=1).max() <= THRUST_MAX * (1.0 + 1e-6)
    assert thrust[:, 2].min() >= LEAST_LIFT - 1e-9
    gentle = np.array([[3.0, -2.0, 1.0]])
    np.testing.assert_allclose(limited(gentle, np), gentle, rtol=1e-9)


def test_the_attitude_is_that_of_its_thrust() -> None:
    rng = np.random.default_rng(3)
    act, angle = rng.normal(0.0, 4.0, (50, 3)), rng.uniform(-3.0, 3.0, 50)
    heading = np.stack([np.cos(angle), np.sin(angle)], 1)
    forward, left, up = attitude_axes(act, heading, np)
    matrix = np.stack([forward, left, up], 2)
    np.testing.assert_allclose(np.swapaxes(matrix, 1, 2) @ matrix, np.tile(np.eye(3), (50, 1, 1)), atol=1e-9)
    assert np.linalg.det(matrix) == pytest.approx(np.ones(50))
    thrust = act + np.array([0.0, 0.0, GRAVITY])
    np.testing.assert_allclose(up, thrust / np.linalg.norm(thrust, axis=1, keepdims=True), atol=1e-9)
    # It looks to the side of its heading: the nose leans neither left nor right of it.
    side = np.stack([-heading[:, 1], heading[:, 0], np.zeros(50)], 1)
    assert (np.sum(left * side, 1) > 0.0).all()
