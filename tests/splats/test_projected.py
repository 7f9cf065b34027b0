"""Splats through any projection, or along any table of rays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.fixtures.likeness import psnr

from airworthy.core import frames
from airworthy.core.arrays import ArrayAny
from airworthy.core.errors import AirworthyError
from airworthy.geometry import RayTable
from airworthy.optics.distortion import PlumbBob
from airworthy.optics.projections import Fisheye, Pinhole, Spherical, UserRays
from airworthy.scenes.splats import Splats
from airworthy.splats import DynamicSplats, Lens, SplatRenderer, projected, render_projection
from airworthy.splats.projected import FINER

IDENTITY = np.array([0.0, 0.0, 0.0, 1.0])


def smooth(rng: np.random.Generator, count: int = 400) -> Splats:
    """Wide, faint Gaussians all around."""
    direction = rng.normal(size=(count, 3))
    where = direction / np.linalg.norm(direction, axis=1, keepdims=True) * rng.uniform(3.0, 6.0, (count, 1))
    turned = rng.normal(size=(count, 4))
    turned /= np.linalg.norm(turned, axis=1, keepdims=True)
    scale = np.exp(rng.uniform(np.log(0.3), np.log(0.7), (count, 3)))
    return Splats(where, turned, scale, rng.uniform(0.05, 0.3, count), rng.normal(0, 0.5, (count, 1, 3)))


@pytest.fixture(scope="module")
def renderer() -> SplatRenderer:
    return SplatRenderer(smooth(np.random.default_rng(0)))


@pytest.fixture(scope="module")
def poses() -> tuple[ArrayAny, ArrayAny]:
    rng = np.random.default_rng(1)
    attitude = rng.normal(size=(2, 4))
    return rng.uniform(-0.5, 0.5, (2, 3)), attitude / np.linalg.norm(attitude, axis=1, keepdims=True)


def test_a_pinhole_is_rendered_as_it_is(renderer: SplatRenderer, poses: Any) -> None:
    camera = Pinhole(60, 40, 50.0, 55.0, 29.0, 21.0)
    plain = renderer.render(60, 40, (50.0, 55.0, 29.0, 21.0), *poses)
    for sensor in (camera, camera.rays()):
        images = render_projection(renderer, sensor, *poses)
        for name, image in plain.items():
            np.testing.assert_allclose(images[name], image, atol=1e-5, err_msg=name)
    shifted = Pinhole(60, 40, 50.0, 55.0, 28.5, 20.5, integer_pixels=True)
    np.testing.assert_allclose(render_projection(renderer, shifted, *poses)["rgb"], plain["rgb"], atol=1e-5)


@pytest.mark.parametrize("axis", [(1.0, 0.0, 0.0), (0.6, 0.8, 0.0)])
def test_a_pinhole_in_a_sensor_frame_is_found(axis: Any, renderer: SplatRenderer, poses: Any) -> None:
    """The rays of a pinhole given x forward; depth along an axis of its own."""
    camera = Pinhole(60, 40, 50.0, 55.0, 29.0, 21.0)
    rays = frames.rotate(np.array(frames.BODY_FROM_CAMERA), camera.rays().directions)
    sensor = UserRays(rays, axis=axis)
    assert projected._plan(sensor).lens == Lens()
    where, turned = poses
    images = render_projection(renderer, sensor, where, turned)
    plain = renderer.render(60, 40, (50.0, 55.0, 29.0, 21.0), where, frames.multiply(turned, frames.BODY_FROM_CAMERA))
    np.testing.assert_allclose(images["rgb"], plain["rgb"], atol=1e-5)
    share = (rays @ np.array(axis)) / camera.rays().directions[..., 2]
    np.testing.assert_allclose(images["depth"], plain["depth"] * share, rtol=1e-4)
    limit = np.abs(images["depth"]) * 0.9 * np.sign(share)
    hidden = render_projection(renderer, sensor, where, turned, limit=limit)
    same = renderer.render(
        60, 40, (50.0, 55.0, 29.0, 21.0), where, frames.multiply(turned, frames.BODY_FROM_CAMERA), limit=limit / share
    )
    assert np.abs(hidden["alpha"] - same["alpha"]).mean() <= 1e-5


def test_lenses_and_image_circles(renderer: SplatRenderer, poses: Any) -> None:
    bent = Pinhole(60, 40, 50.0, 55.0, 29.0, 21.0, PlumbBob(-0.2, 0.03, 0.001, 0.002))
    lens = Lens("opencv", (-0.2, 0.03, 0.001, 0.002))
    direct = renderer.render(60, 40, (50.0, 55.0, 29.0, 21.0), *poses, lens=lens)
    assert render_projection(renderer, bent, *poses)["rgb"].tobytes() == direct["rgb"].tobytes()
    round_one = Fisheye.from_fov(60, 60, 3.0)
    round_one = Fisheye(60, 60, round_one.fx, round_one.fy, 30.0, 30.0, angle_max=1.5)
    images = render_projection(renderer, round_one, *poses, background=[[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    outside = round_one.mask()
    assert outside is not None
    assert (~outside).any()
    np.testing.assert_array_equal(
        images["rgb"][1, ~outside], np.broadcast_to(np.float32([0.4, 0.5, 0.6]), ((~outside).sum(), 3))
    )
    assert np.isinf(images["depth"][:, ~outside]).all()
    assert not images["alpha"][:, ~outside].any()


@pytest.mark.parametrize("field", [1.5, 3.0, 4.5])
def test_reading_between_pixels_stays_within_its_bound(field: float, renderer: SplatRenderer, poses: Any) -> None:
    """The rays of a fisheye as a bare table: each value off by at most (|I_uu| + |I_vv|) / 32, steps of rays.

    The bound's second derivatives are taken from the direct image by differences.
    """
    camera = Fisheye.from_fov(81, 61, field)
    table = RayTable(camera.rays().directions)
    assert projected._plan(table).lens is None
    direct = renderer.render(81, 61, (camera.fx, camera.fy, camera.cx, camera.cy), *poses, lens=Lens("fisheye"))
    read = render_projection(renderer, table, *poses)
    image = direct["rgb"].astype(np.float64)
    bound = np.zeros_like(image)
    bound[:, :, 1:-1] += np.abs(image[:, :, 2:] - 2 * image[:, :, 1:-1] + image[:, :, :-2])
    bound[:, 1:-1] += np.abs(image[:, 2:] - 2 * image[:, 1:-1] + image[:, :-2])
    away = np.abs(read["rgb"] - image)[:, 2:-2, 2:-2]
    # To the bound comes what the other view's own linearisation moves: these Gaussians are 0.15 rad wide and farther from the
    # axis of one of the two views than of the other; 1 % of light, 3 % where they are behind.
    assert away.mean() <= bound.mean() / (8.0 * FINER**2) + (0.002 if field < 3.1 else 0.006)
    assert (away <= bound[:, 2:-2, 2:-2] / (8.0 * FINER**2) + (0.02 if field < 3.1 else 0.08)).all()
    assert psnr(read["rgb"], image) >= (50.0 if field < 3.1 else 40.0)
    depth = direct["depth"]
    both = np.isfinite(depth) & np.isfinite(read["depth"])
    assert np.median(np.abs(depth - read["depth"])[both]) <= 0.02


def test_a_scanner_sees_all_around(plain: Any) -> None:
    """Six balls on the axes: at the right azimuth, elevation and distance of a full sphere of rays."""
    axes = np.concatenate([np.eye(3), -np.eye(3)])
    colours = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 1], [1, 0, 1], [1, 1, 0]], float)
    renderer = SplatRenderer(plain(3.0 * axes, 0.3, colours, 1.0))
    scan = Spherical(88, 45, elevation=(-np.pi / 2, np.pi / 2))  # rays along all six
    images = render_projection(renderer, scan, np.zeros((1, 3)), IDENTITY)
    rays = scan.rays().directions
    for axis, colour in zip(axes, colours, strict=True):
        near = np.unravel_index(np.argmax(rays @ axis), rays.shape[:2])
        np.testing.assert_allclose(images["rgb"][0][near], colour, atol=0.03)
        assert images["alpha"][0][near] > 0.95
        # Depth is along x, the scanner's axis.
        assert images["depth"][0][near] == pytest.approx(3.0 * rays[near][0], abs=0.05)
    between = rays @ axes.T
    assert (images["alpha"][0][between.max(axis=-1) < 0.9] < 0.01).all()


def test_a_limit_along_rays(plain: Any) -> None:
    """A wall at 2 m on the left half hides a ball at 3 m there."""
    renderer = SplatRenderer(plain([[3.0, 1.0, 0.0], [3.0, -1.0, 0.0]], 0.2, 0.8, 1.0))
    scan = Spherical(121, 41, azimuth=(-1.0, 1.0), elevation=(-0.3, 0.3), centres=True)
    along = scan.rays().directions[..., 0]
    limit = np.where(np.arange(121) < 60, 2.0 * along, np.inf)[None].astype(float)
    images = render_projection(renderer, scan, np.zeros((1, 3)), IDENTITY, limit=limit)
    free = render_projection(renderer, scan, np.zeros((1, 3)), IDENTITY)
    assert not images["alpha"][0, :, :58].any()
    np.testing.assert_array_equal(images["alpha"][0, :, 62:], free["alpha"][0, :, 62:])
    assert free["alpha"][0, :, :58].max() > 0.9


def test_origins_single_rays_and_dynamic_instances(renderer: SplatRenderer, plain: Any) -> None:
    lone = RayTable(np.array([[[0.0, 0.0, 1.0]]]))
    ball = SplatRenderer(plain([[0.0, 0.0, 3.0]], 0.5, 0.8, 1.0))
    assert render_projection(ball, lone, np.zeros((1, 3)), IDENTITY)["alpha"][0, 0, 0] > 0.95
    offset = RayTable(np.array([[[0.0, 0.0, 1.0]]]), np.array([[[5.0, 0.0, 0.0]]]))
    assert not render_projection(ball, offset, np.zeros((1, 3)), IDENTITY)["alpha"].any()
    dynamic = DynamicSplats([0], [[[5.0, 0.0, 0.0]]], [[IDENTITY]])
    image = render_projection(ball, offset, np.zeros((1, 3)), IDENTITY, scene=[-1], dynamic_instances=dynamic)
    assert image["alpha"][0, 0, 0] > 0.95
    apart = RayTable(np.tile([0.0, 0.0, 1.0], (1, 2, 1)), np.array([[[0.0, 0, 0], [1.0, 0, 0]]]))
    with pytest.raises(AirworthyError, match="different places"):
        render_projection(renderer, apart, np.zeros((1, 3)), IDENTITY)
    with pytest.raises(AirworthyError, match="positions of shape"):
        render_projection(renderer, lone, np.zeros(3), IDENTITY)


def test_cameras_do_not_depend_on_each_other(renderer: SplatRenderer) -> None:
    rng = np.random.default_rng(2)
    scan = Spherical(64, 16)
    where, turned = rng.uniform(-1, 1, (3, 3)), rng.normal(size=(3, 4))
    turned /= np.linalg.norm(turned, axis=1, keepdims=True)
    whole = render_projection(renderer, scan, where, turned)
    for k in range(3):
        one = render_projection(renderer, scan, where[k : k + 1], turned[k : k + 1])
        for name, image in whole.items():
            assert image[k].tobytes() == one[name][0].tobytes()


def test_a_view_is_no_larger_than_its_side_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the rays' step asks for more, the focal length is what the largest side leaves: pixels over the field's width."""
    table = Pinhole(64, 16, 60.0, 60.0, 40.0, 3.0).rays()  # its middle is off: ends of the field differ in size and sign
    (plain,) = projected.ray_views(table)
    monkeypatch.setattr(projected, "SIZE_MAX", 60)
    (view,) = projected.ray_views(table)
    assert max(view.width, view.height) <= 60
    turned = frames.rotate_inverse(view.turn, table.directions.reshape(-1, 3)[view.rays])
    away = np.arccos(np.clip(turned[:, 2], -1.0, 1.0))[:, None]
    flat = away * turned[:, :2] / np.maximum(np.linalg.norm(turned[:, :2], axis=1, keepdims=True), 1e-12)
    assert view.intrinsics[0] == pytest.approx((60 - 2 * 2 - 2) / np.ptp(flat, axis=0).max(), rel=1e-6)
    assert view.intrinsics[0] < plain.intrinsics[0]
