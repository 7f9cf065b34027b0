"""Sharing one Gaussian's place among several, and the first Gaussians."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airworthy.core import frames
from airworthy.scenes.splats.record import Splats
from airworthy.scenes.viewpoints import look_at
from airworthy.splats import SplatRenderer
from airworthy.splats.training.engines import MOST_COPIES, relocated, shared
from airworthy.splats.training.fields import fields_of, opacities
from airworthy.splats.training.plane_sweep import (
    focus,
    random_points,
    reach_of,
    swept_points,
    views_radius,
    visible_from,
)
from airworthy.splats.training.starting_splats import splats_at, surfaces_at


@given(st.floats(0.01, 0.99), st.integers(1, MOST_COPIES))
def test_shared_opacity_stops_as_much_light(opacity: float, copies: int) -> None:
    new, _ = shared(np.array([opacity]), np.array([copies]))
    assert 1.0 - (1.0 - new[0]) ** copies == pytest.approx(opacity, rel=1e-9)


@given(st.floats(0.05, 0.99), st.integers(1, 12))
def test_shared_form_keeps_the_integral(opacity: float, copies: int) -> None:
    # Along a line through its middle one Gaussian of opacity o and deviation s stops o * s * sqrt(2 pi) of light in all; N
    # equal ones of o' and s' stop 1 - (1 - o' exp(-x^2 / 2 s'^2))^N at x.
    new, factor = shared(np.array([opacity]), np.array([copies]))
    x = np.linspace(-12.0, 12.0, 20001) * max(1.0, factor[0])
    stopped = 1.0 - (1.0 - new[0] * np.exp(-0.5 * (x / factor[0]) ** 2)) ** copies
    assert np.trapezoid(stopped, x) == pytest.approx(opacity * np.sqrt(2.0 * np.pi), rel=1e-6)


def test_one_alone_stays_as_it_was() -> None:
    new, factor = shared(np.array([0.3, 0.9]), np.array([1, 1]))
    np.testing.assert_allclose(new, [0.3, 0.9], rtol=1e-12)
    np.testing.assert_allclose(factor, 1.0, rtol=1e-12)


def test_dead_ones_move_to_live_ones_and_the_image_stays() -> None:
    rng = np.random.default_rng(0)
    n = 60
    where = np.column_stack([rng.uniform(-1.0, 1.0, (n, 2)), np.full(n, 3.0)])
    opacity = np.where(np.arange(n) < 20, 0.004, rng.uniform(0.2, 0.6, n))
    turn = np.tile([0.0, 0.0, 0.0, 1.0], (n, 1))
    splats = Splats(where, turn, np.full((n, 3), 0.15), opacity, rng.normal(size=(n, 1, 3)))
    found, gone = relocated(fields_of(splats), np.random.default_rng(1), n + 6)
    assert gone == 20
    assert len(found) == n + 6
    assert opacities(found.raw).min() > 0.005
    assert (found.number == -1).sum() == 26
    camera = (64, 64, (60.0, 60.0, 32.0, 32.0), np.zeros((1, 3)), (0.0, 0.0, 0.0, 1.0))
    before, after = (SplatRenderer(s).render(*camera)["alpha"][0] for s in (splats, found.splats()))
    # What is shared is shared in the image, too: the integral is kept, the middle is kept, the flanks differ a little.
    assert np.abs(before - after).mean() < 0.02


def test_nothing_changes_where_nothing_is_dead() -> None:
    splats = splats_at(np.random.default_rng(3).normal(size=(50, 3)), np.full((50, 3), 0.4), 0.5)
    found, gone = relocated(fields_of(splats), np.random.default_rng(1), 50)
    assert gone == 0
    np.testing.assert_array_equal(found.position, fields_of(splats).position)


def test_all_dead_is_left_as_it_is() -> None:
    splats = splats_at(np.random.default_rng(3).normal(size=(9, 3)), np.full((9, 3), 0.4), 0.001)
    found, gone = relocated(fields_of(splats), np.random.default_rng(1), 20)
    assert gone == 9
    assert len(found) == 9


def ring(count: int = 8, radius: float = 4.0) -> tuple[np.ndarray, np.ndarray]:
    """Cameras around the origin that look at it."""
    turn = 2.0 * np.pi * np.arange(count) / count
    eye = np.column_stack([radius * np.cos(turn), radius * np.sin(turn), np.full(count, 0.5)])
    return eye, np.stack([look_at(place, np.zeros(3)) for place in eye])


def test_points_lie_where_several_views_see_them() -> None:
    eye, turn = ring()
    lens, sizes = np.tile((60.0, 60.0, 32.0, 24.0), (8, 1)), np.tile((64, 48), (8, 1))
    np.testing.assert_allclose(focus(eye, turn), 0.0, atol=1e-5)
    assert views_radius(eye) == pytest.approx(4.4)
    assert reach_of(eye, turn) == pytest.approx(4.4)
    points = random_points(500, lens, eye, turn, sizes, np.random.default_rng(0))
    assert points.shape == (500, 3)
    assert (visible_from(points, lens, eye, turn, sizes, 0.05)[1].sum(axis=0) >= 3).all()


def test_sizes_are_the_distances_of_neighbours() -> None:
    grid = np.stack(np.meshgrid(*[np.arange(4.0)] * 3), axis=-1).reshape(-1, 3)
    splats = splats_at(grid, np.full((64, 3), 0.25), 0.2)
    np.testing.assert_allclose(splats.scale, 1.0)  # three neighbours at least stand one step away
    np.testing.assert_allclose(0.5 + 0.28209479 * splats.harmonics[:, 0], 0.25, atol=1e-6)


def test_flat_ones_lie_on_the_surface_of_their_neighbours() -> None:
    rng = np.random.default_rng(4)
    normal = np.array([0.48, -0.6, 0.64])
    across = np.linalg.svd(normal[None])[2][1:]
    wall = rng.uniform(-2.0, 2.0, (400, 2)) @ across + 0.7 * normal
    turn, thickness = surfaces_at(wall)
    np.testing.assert_allclose(np.abs(frames.rotate(turn, (1.0, 0.0, 0.0)) @ normal), 1.0, atol=1e-9)
    np.testing.assert_allclose(thickness, 0.1)
    round_ones, flat = (splats_at(wall, np.full((400, 3), 0.4), 0.3, flat=flat) for flat in (False, True))
    np.testing.assert_allclose(flat.scale[:, 0], 0.1 * round_ones.scale[:, 0], rtol=1e-6)
    np.testing.assert_allclose(flat.scale[:, 1:], round_ones.scale[:, 1:])
    np.testing.assert_allclose(flat.position, round_ones.position)


def test_what_lies_in_no_plane_stays_round() -> None:
    # The twelve corners of an icosahedron are spread alike in all directions; those of another one are far away.
    ratio = 0.5 + 0.5 * np.sqrt(5.0)
    first = np.array([(0.0, a, b * ratio) for a in (-1.0, 1.0) for b in (-1.0, 1.0)])
    corners = np.concatenate([np.roll(first, k, axis=1) for k in range(3)])
    cloud = np.concatenate([corners, corners + 100.0])
    np.testing.assert_allclose(surfaces_at(cloud)[1], 1.0, atol=1e-9)
    np.testing.assert_allclose(surfaces_at(np.zeros((20, 3)))[1], 1.0)
    few = splats_at(corners, np.full((12, 3), 0.4), flat=True)
    np.testing.assert_allclose(few.scale, few.scale[:, :1].repeat(3, axis=1))


def test_swept_planes_find_a_patterned_wall() -> None:
    # A wall at y = 3, its pattern known in closed form; five cameras in a row look at it straight.
    eye = np.column_stack([np.linspace(-0.6, 0.6, 5), np.zeros((5, 2))])
    turn = np.tile(look_at(np.zeros(3), np.array([0.0, 1.0, 0.0])), (5, 1))
    lens = np.tile((80.0, 80.0, 48.0, 36.0), (5, 1))
    u, v = np.meshgrid((np.arange(96) + 0.5 - 48.0) / 80.0, (np.arange(72) + 0.5 - 36.0) / 80.0)
    images = []
    for place, attitude in zip(eye, turn, strict=True):
        ray = frames.rotate(attitude, np.stack([u, v, np.ones_like(u)], axis=-1))
        wall = place + ray * (3.0 / ray[..., 1:2])
        x, z = wall[..., 0], wall[..., 2]
        shade = [0.5 + 0.2 * np.sin(7.0 * x + k) + 0.2 * np.sin(9.0 * z + 2.0 * x + k * k) for k in range(3)]
        images.append((255.0 * np.stack(shade, axis=-1)).astype(np.uint8))
    found = swept_points(images, lens, eye, turn, 0.8, 12.0)
    assert len(found.position) > 5 * 72 * 96 // 2
    # A plane is one of 96 in inverse depth: 0.012 / m, 0.11 m at 3 m.
    assert np.median(np.abs(found.position[:, 1] - 3.0)) < 0.11
