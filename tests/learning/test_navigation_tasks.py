"""Navigation by sight: flights among boxes against their twin, rewards by formulas written out again, images against a twin."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import native_kernel
from airworthy.learning.environments import VectorTask, vector_task
from airworthy.learning.environments.kernel import environment_arguments, environment_source
from airworthy.learning.environments.rooms import RoomForm, draw_rooms, euler_matrices, placed_boxes, touches
from airworthy.learning.environments.twin import VectorTwin
from airworthy.learning.native_ppo.trainer import NativePpo
from airworthy.learning.navigation.environments import NavigationEnvironments, time_to_collision
from airworthy.learning.navigation.eyes import LidarEye, PooledEye
from airworthy.learning.navigation.sight import CAMERA, LIDAR, RoomSight, seen_distances
from airworthy.learning.navigation.tasks import DepthNavigation, LidarNavigation
from airworthy.pilots.navigation_policy.sight import depth_image

CASES = ((DepthNavigation, PooledEye), (LidarNavigation, LidarEye))


@cache
def shared(kind: int, count: int = 24, **options: Any) -> NavigationEnvironments:
    task, eye = CASES[kind]
    return NavigationEnvironments(task(**options), count, eye(), seed=5)


def forward(count: int, width: int, steps: int, seed: int = 0) -> Array:
    """Actions that go on, so that some flights meet something."""
    found = np.random.default_rng(seed).uniform(-1.0, 1.0, (steps, count, width))
    found[..., 0] = np.abs(found[..., 0])
    return found.astype(np.float32)


@pytest.mark.parametrize("kind", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_flights_equal_their_twin_with_contact_pushes_and_new_rooms(kind: int) -> None:
    environments = shared(kind, episode_steps=20).flights
    environments.reset(5)
    ended = 0
    for k, actions in enumerate(forward(24, environments.action_count, 30)):
        if k % 5 == 0:
            twin = VectorTwin(environments)
        expected, result = twin.step(actions), environments.step(actions)
        np.testing.assert_array_equal(result.terminated, expected.terminated)
        np.testing.assert_array_equal(result.truncated, expected.truncated)
        # A gain of 20 per metre, three times at the last level, of distances that float32 knows to 1e-6 m.
        np.testing.assert_allclose(result.reward, expected.reward, rtol=2e-5, atol=2e-4)
        np.testing.assert_allclose(result.observation, expected.observation, rtol=2e-5, atol=2e-5)
        np.testing.assert_allclose(environments.place, twin.place, rtol=1e-6, atol=1e-6)
        ended += int(result.ends.ended.sum())
    assert ended >= 24


def _bell(x: Any, m: float, a: float) -> Any:
    return m * np.exp(-a * np.square(x))


def _fine(x: Any, m: float, a: float) -> Any:
    return m * (np.exp(-a * np.square(x)) - 1.0)


def _depth_terms(r: dict[str, Any], f: float, as_published: bool) -> dict[str, Any]:
    """Specification aerial_gym, 9.2, by words of its own."""
    d, d_before = np.linalg.norm(r["target"] - r["p"], axis=0), np.linalg.norm(r["target"] - r["p_before"], axis=0)

    def command(a: Array) -> tuple[Array, Array, Array]:
        s = a[0] + 1
        return s * np.cos(np.pi / 4 * a[1]), s * np.sin(np.pi / 4 * a[1]), a[2] * np.pi / 3

    (vx, vz, w), (vx0, vz0, w0) = command(r["a"]), command(r["a_before"])
    k = 1 + 2 * f
    diff = 0 * d if as_published else _fine(vx - vx0, 0.8, 3.333) + _fine(vz - vz0, 0.8, 5) + _fine(w - w0, 0.8, 3.33)
    return {
        "position": k * _bell(d, 5, 1 / 3.5),
        "near": k * _bell(d, 5, 2),
        "closer": k * np.where(d_before - d > 0, 10 * (d_before - d), 20 * (d_before - d)),
        "distance": k * (20 - d) / 20,
        "change": diff,
        "effort": f * (_fine(vx, 0.1, 0.3) + _fine(vz, 1.5, 1) + _fine(w, 1.5, 2)),
        "crash": np.where(r["touched"] > 0, -100.0, 0.0),
    }


def _lidar_terms(r: dict[str, Any], f: float, as_published: bool) -> dict[str, Any]:
    """Specification, learning by reward, 3.2, by words of its own."""
    x, y, z, w = r["q"]
    yaw = np.arctan2(2 * (x * y + w * z), 1 - 2 * (y * y + z * z))

    def level(v: Array) -> Array:
        return np.array([np.cos(yaw) * v[0] + np.sin(yaw) * v[1], -np.sin(yaw) * v[0] + np.cos(yaw) * v[1], v[2]])

    away, v = level(r["target"] - r["p"]), level(r["v"])
    d, s = np.linalg.norm(away, axis=0), np.linalg.norm(v, axis=0)
    e = (r["yaw"] - yaw + np.pi) % (2 * np.pi) - np.pi
    g, k, cosine = _bell(e, 1, 2), 1 + 2 * f, (v * away).sum(0) / (s * d)
    stable = _bell(s, 1.5, 10) + _bell(s, 1.5, 0.5) + _bell(e, 2, 0.2) + _bell(e, 4, 15) + g * _bell(r["w"][2], 1.5, 5)
    command, before = (np.array([2 * a[0], 2 * a[1], 2 * a[2], np.pi / 3 * a[3]]) for a in (r["a"], r["a_before"]))
    wrong = np.maximum(v[0], 0) if as_published else np.maximum(-v[0], 0)
    gains = ((0.1, 0.3), (0.1, 0.3), (0.15, 1), (0.15, 2))
    return {
        "position": k * _bell(d, 3, 1),
        "near": k * _bell(d, 5, 8) * g,
        "direction": k * np.where(cosine > 0, cosine * _bell(s - 2, 2, 2), -0.2) * np.minimum(d / 3, 1),
        "distance": k * (20 - d) / 20,
        "steady": k * np.where(d < 1, stable, 0.0),
        "speed": k * (_fine(np.maximum(s - 3, 0), 2, 2) + _fine(wrong, 2, 8) * (1 - _bell(d, 1, 2))),
        "change": k * (0.0 if as_published else 1.0) * _fine(command - before, 0.3, 5).sum(0),
        "effort": k * f * sum(_fine(command[i], *gain) for i, gain in enumerate(gains)),
        "crash": np.where(r["touched"] > 0, -10.0, 0.0),
    }


@pytest.mark.parametrize("as_published", [False, True])
@pytest.mark.parametrize("kind", [0, 1])
def test_every_term_of_the_reward_by_formulas_written_out_again(kind: int, as_published: bool) -> None:
    """In float64, to 1e-6; level 30 of the curriculum, and flights that touch something among them."""
    environments = shared(kind, 24, as_published=as_published).flights
    rng, n = np.random.default_rng(3), 200
    task: Any = environments.task
    c = task.curriculum
    memory = np.concatenate([rng.uniform(-3, 3, (3, n)), np.zeros((6, n)), rng.uniform(-np.pi, np.pi, (1, n))])
    near = np.arange(n) < n // 2
    p0 = memory[:3] + rng.normal(size=(3, n)) * np.where(near, 0.5, 3.0)
    q = rng.normal(size=(4, n)) * np.array([[0.2], [0.2], [1.0], [1.0]])
    q /= np.linalg.norm(q, axis=0)
    velocity, rate = rng.normal(size=(3, n)) * 1.5, rng.normal(size=(3, n))
    hover = np.ones((4, n))
    before = np.concatenate([p0, velocity, q, rate, hover])
    after = np.concatenate([p0 + 0.1 * rng.normal(size=(3, n)), velocity + 0.1, q, rate, hover])
    a, a0 = rng.uniform(-1, 1, (2, environments.action_count, n))
    touched = (rng.random(n) < 0.2).astype(float)
    flight = (3.0, 30.0 + 0.0 * touched, touched, *np.zeros((15, n)))
    p = environments.parameters_of_flight(environments.nominal.astype(float), tuple(a0), flight, tuple(memory))
    found = task.judge(tuple(before), tuple(after), tuple(a), tuple(a0), p)
    r = {
        "target": memory[:3], "yaw": memory[9], "p": after[:3], "p_before": before[:3], "v": after[3:6], "q": after[6:10],
        "w": after[10:13], "a": a, "a_before": a0, "touched": touched,
    }  # fmt: skip
    expected = (_depth_terms, _lidar_terms)[kind](r, (30.0 - c.least) / (c.most - c.least), as_published)
    assert set(expected) == set(found.terms)
    for name, value in expected.items():
        wanted = value if name == "crash" else np.where(touched > 0, 0.0, value)
        np.testing.assert_allclose(found.terms[name], wanted, rtol=1e-6, atol=1e-6, err_msg=name)
    np.testing.assert_array_equal(found.terminated, touched)
    reached = np.linalg.norm(memory[:3] - after[:3], axis=0) < 1.0
    np.testing.assert_array_equal(found.success > 0.5, reached & (touched == 0))


def test_the_image_is_part_of_the_reward_and_published_is_not() -> None:
    ours, published = shared(0), shared(0, as_published=True)
    poses = ours.flights.critic_observation.copy()
    actions = forward(24, 3, 1)[0]
    result = ours.step(actions)
    going = ~result.ends.ended
    nearest = ours.sight.look(ours.flights.critic_observation).reshape(24, -1).min(1)
    np.testing.assert_allclose(result.terms["sight"][going], -4.0 * np.exp(-(nearest[going] ** 2)), rtol=1e-6)
    assert (poses[going, :3] != ours.flights.critic_observation[going, :3]).any()
    assert not published.step(actions).terms["sight"].any()


def test_levels_count_what_stands_in_a_room_and_some_rooms_have_half() -> None:
    """Level 15: 6 walls, 3 panels, 6 objects; above 44 all there is (specification aerial_gym, section 8)."""
    form, u = RoomForm(), np.random.default_rng(0).random((16, 4000))
    for level, panels, objects in ((15, 3, 6), (30, 3, 21), (44, 3, 35), (50, 3, 35)):
        place = np.array(np.broadcast_arrays(*form.place(tuple(u), float(level)), u[0])[:-1])
        few = u[1] < 0.15
        assert set(place[1][~few]) == {panels}
        assert set(place[2][~few]) == {objects}
        assert set(place[1][few]) == {panels // 2}
        assert set(place[2][few]) == {objects // 2}
        assert ((place[3:6] >= [[-2], [-4], [-3]]) & (place[3:6] <= [[-1], [-2.5], [-2]])).all()
        assert ((place[6:9] >= [[9], [2.5], [2]]) & (place[6:9] <= [[10], [4], [3]])).all()
        assert set(np.unique(place[0])) <= set(range(1024))


def test_contact_is_found_where_bodies_share_points() -> None:
    """Points within the body that lie within a box are contact; where none is near, alternating projections say so, too."""
    form, rng, n = RoomForm(pool=8), np.random.default_rng(2), 300
    pool = draw_rooms(form)
    place = np.array(np.broadcast_arrays(*form.place(tuple(rng.random((16, n))), 50.0), np.zeros(n))[:-1])
    position = place[3:6] + (place[6:9] - place[3:6]) * rng.uniform(0.1, 0.9, (3, n))
    axes = np.moveaxis(euler_matrices(rng.uniform(-1, 1, (n, 3))), 0, 2)
    half = np.array([0.25, 0.25, 0.25])
    found = touches(form, pool, place, (0.0, 0.0, 0.0, *half), position, axes)
    assert 20 < found.sum() < n
    for k in range(n):
        gaps = [
            _gap(position[:, k], axes[:, :, k], half, *box) for box in zip(*placed_boxes(form, pool, place[:, k]), strict=True)
        ]
        reach = np.abs(axes[:, :, k]) @ half
        room = min((position[:, k] - reach - place[3:6, k]).min(), (place[6:9, k] - position[:, k] - reach).min()) - 0.1
        gap = min(*gaps, room)
        if abs(gap) > 1e-3:
            assert found[k] == (gap <= 0.0)


def _gap(p: Array, axes: Array, half: Array, middle: Array, turned: Array, edges: Array) -> float:
    """Distance between two boxes by projecting onto each in turn (von Neumann); 0 where they share a point."""
    if np.linalg.norm(middle - p) > np.linalg.norm(half) + np.linalg.norm(edges):
        return 1.0
    x = middle
    for _ in range(20_000):
        on_body = p + axes @ np.clip(axes.T @ (x - p), -half, half)
        x, earlier = middle + turned @ np.clip(turned.T @ (on_body - middle), -edges, edges), x
        gap = float(np.linalg.norm(x - on_body))
        if gap < 1e-4:
            return 0.0
        # Where nothing moves any more the two nearest points are found.
        if np.linalg.norm(x - earlier) < 1e-9:
            break
    return gap


@pytest.mark.parametrize(("kind", "rays"), [(0, CAMERA), (1, LIDAR)])
def test_images_equal_their_twin_also_of_grown_obstacles(kind: int, rays: Any) -> None:
    environments = shared(kind)
    environments.flights.level[:] = 50.0
    environments.reset(7)
    form, poses = environments.task.rooms, environments.flights.critic_observation[:6].copy()
    sight = RoomSight(form, rays, 6)
    for inflate in (0.0, 0.25):
        seen = sight.look(poses, inflate)
        for k in range(6):
            expected = seen_distances(form, rays, poses[k], inflate)
            off = np.abs(seen[k] - expected) > 1e-3 + 1e-4 * expected
            # A ray that grazes an edge meets it or not by rounding.
            assert off.mean() < 2e-3
    # A body goes never farther than what is seen.
    reached = sight.look(poses, 0.25).copy()
    assert (reached <= sight.look(poses) + 1e-4).all()


def test_a_wall_straight_ahead_is_as_far_as_it_is() -> None:
    """In an empty room, level and unturned, the depth of what is ahead is the way to the far wall's inner side."""
    pose = np.zeros((1, 22), np.float32)
    pose[0, 6], pose[0, 13:] = 1.0, (0, 0, 0, -1, -2, -3, 4, 2, 3)
    seen = RoomSight(RoomForm(), CAMERA, 1).look(pose)[0]
    assert seen[18, 32] == pytest.approx(3.9, abs=1e-5)
    # The pixel at the edge looks 43.5 degrees less half a pixel aside: the side wall is at 1.9 m.
    edge = math.tan(math.radians(43.5)) * (31.5 / 32.0)
    assert seen[18, 0] == pytest.approx(1.9 / edge, rel=1e-4)
    image = depth_image(np.array([[[0.1, 0.2, 5.0, 10.0]]], np.float32))
    np.testing.assert_allclose(image[0, 0], [-1.0, 0.02, 0.5, 1.0])


def test_flights_and_images_are_the_same_in_any_batch_and_a_nan_stays_where_it_is() -> None:
    ids = np.array([7, 3, 900, 41, 2, 11])
    whole = NavigationEnvironments(DepthNavigation(episode_steps=15), 6, PooledEye(), seed=9, flight_ids=ids)
    single = NavigationEnvironments(DepthNavigation(episode_steps=15), 1, PooledEye(), seed=9, flight_ids=ids[[3]], threads=1)
    for k, actions in enumerate(forward(6, 3, 30)):
        actions = actions.copy()
        if k % 4 == 1:
            actions[[1, 5]] = np.nan
        result, alone = whole.step(actions), single.step(actions[[3]])
        np.testing.assert_array_equal(alone.observation[0], result.observation[3])
        np.testing.assert_array_equal(alone.reward[0], result.reward[3])
        assert np.isfinite(result.observation).all()
        assert np.isfinite(result.reward).all()
        if k % 4 == 1:
            assert result.ends.diverged[[1, 5]].all()
            assert result.terminated[[1, 5]].all()


def test_the_gpu_form_gives_the_bytes_of_the_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One environment after the other, run here without a GPU, contact and pushes included."""
    lanes = shared(0, 24, episode_steps=20).flights
    lanes.reset(4)
    source = "#define SCALAR_PATH\n" + environment_source(lanes.shape)
    scalar = native_kernel("environment_rooms_scalar", source, environment_arguments(lanes.shape))
    monkeypatch.setattr(vector_task, "environment_kernel", lambda shape: scalar)
    monkeypatch.setattr(vector_task, "CPU_LANES", 1)
    single, ended = VectorTask(lanes.task, 24, seed=4), 0
    for actions in forward(24, 3, 30):
        ours, theirs = lanes.step(actions), single.step(actions)
        for name in ("observation", "reward", "terminated", "truncated"):
            np.testing.assert_array_equal(getattr(theirs, name), getattr(ours, name), err_msg=name)
        np.testing.assert_array_equal(single.place, lanes.place)
        ended += int(ours.terminated.sum())
    assert ended > 5


def test_what_was_saved_goes_on_to_the_same_bits() -> None:
    environments = NavigationEnvironments(DepthNavigation(episode_steps=12), 16, PooledEye(), seed=1)
    actions = forward(16, 3, 24)
    for a in actions[:10]:
        environments.step(a)
    saved = {name: x.copy() for name, x in environments.saved().items()}
    first = [(r.reward.copy(), r.observation.copy(), r.ends.returns.copy()) for r in map(environments.step, actions[10:])]
    environments.restore(saved)
    for a, kept in zip(actions[10:], first, strict=True):
        r = environments.step(a)
        for value, before in zip((r.reward, r.observation, r.ends.returns), kept, strict=True):
            np.testing.assert_array_equal(value, before)


def test_time_to_collision_is_that_of_the_ray_that_comes_first() -> None:
    """Rays one by one, as the specification says it; a flight that stands still has ten seconds."""
    rng = np.random.default_rng(1)
    distance = rng.uniform(0.3, 10.0, (5, 48, 120)).astype(np.float32)
    velocity, poses = rng.normal(size=(5, 3)), np.zeros((5, 22), np.float32)
    velocity[4], poses[:, 10:13] = 0.0, rng.uniform(-2.0, 2.0, (5, 3))
    found = time_to_collision(distance, LIDAR.directions, velocity, poses)
    for k in range(5):
        turned = LIDAR.directions.reshape(-1, 3) @ euler_matrices(poses[k, 10:13].astype(float)).T
        approach = turned @ velocity[k]
        times = distance[k].reshape(-1)[approach > 0] / approach[approach > 0]
        assert found[k] == pytest.approx(min(10.0, *times) if len(times) else 10.0, rel=1e-4)


def test_lidar_noise_is_as_often_as_published() -> None:
    """3 % of the cells moved, 2 % empty, 2 % near in the lower rows; without noise, inverse range of the nearest return."""
    eye, rng = LidarEye(), np.random.default_rng(0)
    distance = np.full((500, 48, 120), 4.0, np.float32)
    assert eye.see(distance) == pytest.approx(0.25)
    seen = 1.0 / eye.see(distance, rng.random((500, 1280))).reshape(500, 16, 20)
    assert (seen[:, :10] == 10.0).mean() == pytest.approx(0.02, abs=0.004)
    assert (seen[:, 10:] < 1.001).mean() == pytest.approx(0.02, abs=0.004)
    assert ((seen > 4.1) & (seen != 10.0)).mean() == pytest.approx(0.03, abs=0.004)


def test_trainers_that_do_not_know_rooms_say_so() -> None:
    with pytest.raises(AirworthyError, match="rooms, which this trainer does not know"):
        NativePpo(shared(0, 32).flights)
