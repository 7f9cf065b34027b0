"""Planes of Gaussians: where a pixel's ray meets them and which way they face, forwards and backwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.splats.gradient_cases import LENS, SIZE, assert_as_the_twin, in_view, weights

from airworthy.core import frames
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.scenes.splats.record import Splats
from airworthy.splats import Lens, SplatRenderer, render_projection, twin
from airworthy.splats.single import Single
from airworthy.splats.training import Rates, SplatOptimizer
from airworthy.splats.training.fields import RENDERED, TURN
from airworthy.splats.training.geometry_loss import GeometryLoss, SurfaceImages

AHEAD = np.array([0.0, 0.0, 0.0, 1.0])
BENT = Lens("opencv", (-0.2, 0.03, 0.002, -0.003, 0.01, 0.1, 0.02, 0.001))


def wall(tilt: float, spacing: float = 0.1, opacity: float = 0.9) -> tuple[Splats, Array]:
    """Flat Gaussians on a plane through (0, 0, 4) that is turned about y, and the plane's normal towards the origin."""
    turn = np.array([0.0, np.sin(0.5 * tilt), 0.0, np.cos(0.5 * tilt)])
    x, y = (grid.ravel() for grid in np.meshgrid(np.arange(-6.0, 6.0, spacing), np.arange(-4.0, 4.0, spacing)))
    where = frames.rotate(turn, np.column_stack([x, y, np.zeros(x.size)])) + np.array([0.0, 0.0, 4.0])
    ahead = where[:, 2] > 0.5
    n = int(ahead.sum())
    scale = np.tile([0.7 * spacing, 0.7 * spacing, 1e-4], (n, 1))
    splats = Splats(where[ahead], np.tile(turn, (n, 1)), scale, np.full(n, opacity), np.zeros((n, 1, 3)))
    return splats, frames.rotate(turn, np.array([0.0, 0.0, -1.0]))


def meeting(normal: Array, width: int, height: int, lens: Any) -> Array:
    """Depth (H, W) at which pixels' rays meet the plane through (0, 0, 4)."""
    fx, fy, cx, cy = lens
    u, v = np.meshgrid((np.arange(width) + 0.5 - cx) / fx, (np.arange(height) + 0.5 - cy) / fy)
    return 4.0 * normal[2] / (normal[0] * u + normal[1] * v + normal[2])


@pytest.mark.parametrize("mode", ["expected", "median"])
def test_a_slanted_wall_is_where_it_is(mode: str) -> None:
    """By means a wall is seen too near, the nearer of two that overlap hiding the other; by planes it is seen where it is."""
    splats, normal = wall(1.0)
    camera = (96, 64, (80.0, 80.0, 48.0, 32.0), np.zeros((1, 3)), AHEAD)
    truth = meeting(normal, 96, 64, camera[2])
    inner = (slice(8, -8), slice(8, -8))
    renderer, off = SplatRenderer(splats), {}
    for place in ("mean", "plane"):
        image = renderer.render(*camera, channels=("depth",), depth_mode=mode, depth_at=place)["depth"][0]
        off[place] = float(np.median(np.abs(image - truth)[inner]))
    # Gaussians are 0.07 m wide, the plane leans by tan(1) = 1.56: means are centimetres off. A plane's lean is too small by
    # 0.03 px^2 over the 1.4^2 px^2 of a Gaussian's width at most, 2 % of what a mean is off.
    assert off["mean"] > 0.01
    assert off["plane"] < 0.15 * off["mean"]


def test_one_flat_gaussian_is_a_plane() -> None:
    splats, normal = wall(0.6)
    k = int(np.argmin(np.linalg.norm(splats.position - [0.0, 0.0, 4.0], axis=1)))
    one = Splats(splats.position[k : k + 1], splats.rotation[:1], np.array([[1.0, 1.0, 1e-5]]), np.ones(1), np.zeros((1, 1, 3)))
    lens = (80.0, 80.0, 48.0, 32.0)
    images = SplatRenderer(one).render(
        96, 64, lens, np.zeros((1, 3)), AHEAD, channels=("depth", "alpha", "normal"), depth_at="plane"
    )
    truth = meeting(normal, 96, 64, lens) * (splats.position[k] @ normal) / (4.0 * normal[2])
    seen = images["alpha"][0] > 0.01
    # Its width is 20 px, so that 0.03 px^2 change the lean by 1e-4.
    np.testing.assert_allclose(images["depth"][0][seen], truth[seen], rtol=3e-4)
    towards = images["normal"][0][seen] / images["alpha"][0][seen][:, None]
    np.testing.assert_allclose(towards, np.broadcast_to(normal, towards.shape), atol=1e-5)


@pytest.mark.parametrize("lens", [None, BENT, Lens("fisheye", (0.02, -0.005))], ids=["pinhole", "opencv", "fisheye"])
@pytest.mark.parametrize("mode", ["expected", "median"])
def test_random_clouds_equal_the_twin(mode: str, lens: Lens | None, cloud: Any, pose: Any) -> None:
    rng = np.random.default_rng(3)
    for _ in range(3):
        splats, view = cloud(rng, 400, 0), pose(rng)
        camera = (view.width, view.height, view.lens)
        options: dict[str, Any] = {"depth_mode": mode, "depth_at": "plane", "lens": lens}
        ours = SplatRenderer(splats).render(
            *camera, view.position[None], view.attitude[None], channels=("rgb", "depth", "alpha", "normal"), **options
        )
        theirs = twin.render(splats, *camera, view.position, view.attitude, **options)
        depth, expected = ours["depth"][0], theirs["depth"]
        both = np.isfinite(depth) & np.isfinite(expected)
        assert (np.isfinite(depth) != np.isfinite(expected)).mean() <= 1e-3
        # float32 of forms whose determinants are squares of minors; where a pixel falls on the other side of 1/255, more.
        assert not both.any() or np.median(np.abs(depth[both] - expected[both])) <= 1e-4
        assert not both.any() or np.mean(np.abs(depth[both] - expected[both]) > 1e-2) <= 1e-2
        assert np.abs(ours["normal"][0] - theirs["normal"]).mean() <= 1e-5


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("lens", [None, BENT, Lens("fisheye", (0.02, -0.005))], ids=["pinhole", "opencv", "fisheye"])
def test_derivatives_equal_those_of_the_twin(seed: int, lens: Lens | None) -> None:
    rng = np.random.default_rng(seed)
    splats, weight = in_view(rng, 10, 0), weights(rng, 1)
    weight["normal"] = rng.normal(size=(1, SIZE[1], SIZE[0], 3)).astype(np.float32)
    attitude = np.array([0.05, -0.03, 0.1, 1.0])
    options: dict[str, Any] = {"depth_at": "plane", "lens": lens, "channels": ("normal",), "antialiased": bool(seed & 1)}
    if seed & 2:
        options["limit"] = rng.uniform(1.0, 6.0, (1, SIZE[1], SIZE[0]))
    assert_as_the_twin(splats, 0.2 * rng.normal(size=3), attitude / np.linalg.norm(attitude), weight, options)


@pytest.mark.parametrize("mode", ["expected", "median"])
def test_one_by_one_gives_the_bytes_of_the_lanes(mode: str, cloud: Any) -> None:
    rng = np.random.default_rng(9)
    scenes = [cloud(rng, n, 0) for n in (1200, 600)]
    attitude = rng.normal(size=(4, 4))
    camera = (75, 50, (60.0, 70.0, 37.0, 25.0), rng.uniform(-2, 2, (4, 3)), attitude, [0, 1, 1, 0])
    asked: dict[str, Any] = {"channels": ("rgb", "depth", "alpha", "normal"), "depth_mode": mode, "depth_at": "plane"}
    lanes, single = SplatRenderer(scenes), SplatRenderer(scenes)
    single._engine = Single(single._cloud, "cpu", "#define SCALAR_PATH\n")
    one, other = lanes.render(*camera, **asked), single.render(*camera, **asked)
    for name, image in one.items():
        assert image.tobytes() == other[name].tobytes(), name
    weight = {name: rng.normal(size=image.shape) for name, image in one.items()}
    found = [
        r.gradients(
            lambda images, some: {k: v[some] for k, v in weight.items()}, *camera, depth_at="plane", channels=("normal",)
        )
        for r in (lanes, single)
    ]
    for name in ("position", "rotation", "scale", "opacity"):
        assert np.array_equal(getattr(found[0][0][0], name), getattr(found[1][0][0], name)), name
    np.testing.assert_array_equal(found[0][1].rotation, found[1][1].rotation)


def test_planes_change_nothing_else(cloud: Any) -> None:
    """Colours, coverage and depths of means are the same bytes beside planes and normals as without."""
    rng = np.random.default_rng(5)
    renderer = SplatRenderer(cloud(rng, 900, 1))
    camera = (75, 50, (60.0, 70.0, 37.0, 25.0), rng.uniform(-2, 2, (3, 3)), AHEAD)
    plain = renderer.render(*camera)
    more = renderer.render(*camera, channels=("rgb", "depth", "alpha", "normal"))
    planes = renderer.render(*camera, depth_at="plane")
    for name, image in plain.items():
        assert image.tobytes() == more[name].tobytes(), name
        assert name == "depth" or image.tobytes() == planes[name].tobytes(), name


def test_a_plane_that_passes_by_the_camera_stays_before_it(plain: Any) -> None:
    """A floor seen edge-on by a Gaussian as wide as its distance: depths stay within a quarter of nothing and four times."""
    turn = np.array([np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)])
    floor = Splats([[0.0, 0.3, 2.0]], turn[None], np.array([[2.0, 2.0, 1e-5]]), np.ones(1), np.zeros((1, 1, 3)))
    found = SplatRenderer(floor).render(96, 64, (80.0, 80.0, 48.0, 32.0), np.zeros((1, 3)), AHEAD, depth_at="plane")["depth"]
    seen = found[np.isfinite(found)]
    assert len(seen) > 100
    assert 0.0 < seen.min() < 1.0
    assert seen.max() == pytest.approx(8.0, rel=1e-4)


def test_tilted_gaussians_turn_into_the_wall_that_they_make() -> None:
    """By the loss of normals alone: what they show together is a wall; each on its own leans by some degrees."""
    rng = np.random.default_rng(8)
    splats, normal = wall(0.5, spacing=0.2, opacity=0.8)
    tilt = np.column_stack([0.2 * rng.normal(size=(len(splats), 3)), np.ones(len(splats))])
    turned = frames.normalize(frames.multiply(splats.rotation.astype(float), frames.normalize(tilt)))
    optimizer = SplatOptimizer(
        Splats(splats.position, turned, splats.scale, splats.opacity, splats.harmonics), least_scale=1e-4
    )
    lens, surfaces = (40.0, 40.0, 24.0, 16.0), GeometryLoss(1.0)
    asked = optimizer.camera_view(48, 32, lens, np.zeros((1, 3)), AHEAD, channels=("rgb", "depth", "alpha", "normal"))

    def loss(images: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        shown = SurfaceImages(images["depth"][0], images["alpha"][0], images["normal"][0])
        value, by_depth, by_normal = surfaces(shown, np.ones((32, 48), np.float32), lens)
        return value, {"depth": by_depth[None], "normal": by_normal[None]}

    def lean() -> float:
        found = optimizer.fields()
        towards = frames.rotate(found.raw[:, TURN : TURN + 4].astype(float), np.array([0.0, 0.0, 1.0]))
        seen = found.raw[:, RENDERED] > 0
        return float(np.degrees(np.median(np.arccos(np.abs(towards @ normal).clip(max=1.0))[seen])))

    still = Rates(place=0.0, scale=0.0, rotation=5e-3, opacity=0.0, color=0.0, color_rest=0.0)
    first, _ = optimizer.step_channels(asked, loss, still)
    before = lean()
    for _ in range(60):
        last, _ = optimizer.step_channels(asked, loss, still)
    assert before > 12.0
    assert lean() < 0.5 * before
    assert last < 0.6 * first


def test_what_is_unknown_is_refused(plain: Any) -> None:
    renderer = SplatRenderer(plain([0.0, 0.0, 3.0], 0.1, 0.5, 0.5))
    with pytest.raises(AirworthyError, match="place of depth 'surface'"):
        renderer.render(*SIZE, LENS, np.zeros((1, 3)), AHEAD, depth_at="surface")
    from airworthy.sensors import Fisheye

    with pytest.raises(AirworthyError, match="Normals of splats are in the frame of one camera"):
        render_projection(renderer, Fisheye.from_fov(64, 48, 3.0), np.zeros((1, 3)), AHEAD, channels=("normal",))
