"""The splat renderer against its float64 twin, closed forms, and its promises of repetition."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fixtures.likeness import psnr

from airworthy.core.arrays import Array, ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.scenes.splats.record import Splats
from airworthy.splats import SplatRenderer, twin

AHEAD = np.array([0.0, 0.0, 0.0, 1.0])
LENS = np.array([100.0, 100.0, 32.5, 24.5])
C1 = 0.4886025119029199


def rendered(renderer: SplatRenderer, width: int = 65, height: int = 49, **options: Any) -> dict[str, ArrayF32]:
    """From the origin along +z, the principal point in the middle of pixel (24, 32)."""
    images = renderer.render(width, height, LENS, np.zeros((1, 3)), AHEAD, **options)
    return {name: image[0] for name, image in images.items()}


# ---- against the twin --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(16))
def test_random_clouds_equal_the_twin(seed: int, cloud: Any, pose: Any) -> None:
    rng = np.random.default_rng(seed)
    splats, view = cloud(rng, 500, seed % 4), pose(rng)
    options = {
        "antialiased": bool(seed & 4),
        "depth_mode": "median" if seed & 8 else "expected",
        "background": rng.uniform(size=3),
    }
    camera = (view.width, view.height, view.lens)
    ours = SplatRenderer(splats).render(*camera, view.position[None], view.attitude[None], **options)
    theirs = twin.render(splats, *camera, view.position, view.attitude, **options)
    # Asked: a mean error of 1e-3 and 50 dB. float32 gives 1e-7 and 120 dB, less where a pixel falls on the other side of 1/255.
    assert np.abs(ours["rgb"][0] - theirs["rgb"]).mean() <= 1e-5
    assert psnr(ours["rgb"][0], theirs["rgb"]) >= 70.0
    assert np.abs(ours["alpha"][0] - theirs["alpha"]).mean() <= 1e-5
    depth, expected = ours["depth"][0], theirs["depth"]
    both = np.isfinite(depth) & np.isfinite(expected)
    assert (np.isfinite(depth) != np.isfinite(expected)).mean() <= 1e-3
    assert not both.any() or np.median(np.abs(depth[both] - expected[both])) <= 1e-4
    assert ours["alpha"].min() >= 0.0
    assert ours["alpha"].max() <= 1.0


def test_needles_and_sheets_equal_the_twin(cloud: Any, pose: Any) -> None:
    """Axes of very different lengths: thin in the image, wide across it, near the plane of the camera."""
    rng = np.random.default_rng(3)
    base = cloud(rng, 300)
    scale = np.exp(rng.uniform(np.log(1e-4), np.log(2.0), (300, 3)))
    splats = Splats(base.position, base.rotation, scale, base.opacity, base.harmonics)
    for _ in range(4):
        view = pose(rng)
        camera = (view.width, view.height, view.lens)
        ours = SplatRenderer(splats).render(*camera, view.position[None], view.attitude[None], channels=("rgb",))["rgb"][0]
        theirs = twin.render(splats, *camera, view.position, view.attitude)["rgb"]
        assert np.abs(ours - theirs).mean() <= 1e-4
        assert psnr(ours, theirs) >= 60.0


# ---- closed forms --------------------------------------------------------------------------------------------------------


def test_one_round_gaussian_on_the_axis(plain: Any) -> None:
    """sigma_px^2 = (f sigma / z)^2 + 0.3; opacity times exp(-r^2 / 2 sigma_px^2), left out below 1/255."""
    images = rendered(SplatRenderer(plain([0.0, 0.0, 4.0], 0.1, [0.8, 0.4, 0.2], 0.6)))
    x, y = np.meshgrid(np.arange(65) - 32.0, np.arange(49) - 24.0)
    alpha = 0.6 * np.exp(-0.5 * (x * x + y * y) / ((100.0 * 0.1 / 4.0) ** 2 + 0.3))
    alpha[alpha < 1.0 / 255.0] = 0.0
    # 2 to the power of x is good to 4e-6, the rest is float32.
    np.testing.assert_allclose(images["alpha"], alpha, atol=5e-6)
    np.testing.assert_allclose(images["rgb"], alpha[..., None] * [0.8, 0.4, 0.2], atol=5e-6)
    np.testing.assert_array_equal(np.isfinite(images["depth"]), images["alpha"] >= 1.0 / 255.0)
    np.testing.assert_allclose(images["depth"][24, 32], 4.0, atol=1e-5)


def test_antialiasing_keeps_the_light_of_a_point(plain: Any) -> None:
    """One far narrower than a pixel: widened, but its sum over pixels stays that of the narrow one, 2 pi sigma^2 opacity."""
    splats = plain([0.0, 0.0, 10.0], 0.03, 1.0, 0.9)
    sharp, kept = rendered(SplatRenderer(splats)), rendered(SplatRenderer(splats), antialiased=True)
    bare = 2.0 * np.pi * (100.0 * 0.03 / 10.0) ** 2 * 0.9
    # What lies below 1/255 is left out, and summing over pixels is not integrating: 5 %.
    np.testing.assert_allclose(kept["alpha"].sum(), bare, rtol=0.05)
    assert sharp["alpha"].sum() > 2.0 * bare


def test_two_layers_and_a_background(plain: Any) -> None:
    splats = plain([[0.0, 0.0, 6.0], [0.0, 0.0, 3.0]], 5.0, [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]], [0.8, 0.6])
    images = rendered(SplatRenderer(splats), background=(0.2, 0.4, 1.0))
    middle = images["rgb"][24, 32]
    np.testing.assert_allclose(middle, [0.6 + 0.08 * 0.2, 0.4 * 0.8 + 0.08 * 0.4, 0.08], atol=1e-5)
    np.testing.assert_allclose(images["alpha"][24, 32], 0.92, atol=1e-5)
    np.testing.assert_allclose(images["depth"][24, 32], (0.6 * 3.0 + 0.32 * 6.0) / 0.92, atol=1e-4)
    assert rendered(SplatRenderer(splats), depth_mode="median")["depth"][24, 32] == np.float32(3.0)


def test_nothing_is_the_background_at_infinite_depth(plain: Any) -> None:
    images = rendered(SplatRenderer(plain([0.0, 0.0, -4.0], 0.1, 1.0, 1.0)), background=(0.1, 0.2, 0.3))
    np.testing.assert_array_equal(images["rgb"], np.broadcast_to(np.float32([0.1, 0.2, 0.3]), (49, 65, 3)))
    assert np.isinf(images["depth"]).all()
    assert not images["alpha"].any()


@pytest.mark.parametrize("mode", ["expected", "median"])
def test_depth_of_an_opaque_plate(mode: str) -> None:
    """A tilted plate of flat Gaussians: the depth where each pixel's ray meets the plane, to a Gaussian's own size."""
    grid = np.stack(np.meshgrid(np.linspace(-4, 4, 120), np.linspace(-4, 4, 120)), -1).reshape(-1, 2)
    slope = 0.3
    where = np.column_stack([grid, 5.0 + slope * grid[:, 0]])
    half = 0.5 * np.arctan(-slope)
    turned = np.tile([0.0, np.sin(half), 0.0, np.cos(half)], (len(where), 1))
    splats = Splats(
        where, turned, np.tile([0.05, 0.05, 1e-3], (len(where), 1)), np.full(len(where), 0.95), np.zeros((len(where), 1, 3))
    )
    depth = rendered(SplatRenderer(splats), depth_mode=mode)["depth"]
    x = (np.arange(65) + 0.5 - LENS[2]) / LENS[0]
    plane = np.broadcast_to(5.0 / (1.0 - slope * x), (49, 65))
    # Means lie around the ray by a sigma of 0.05 m along the slope, 0.015 m in depth, and the nearer ones are met first.
    assert np.abs(depth - plane).max() <= 0.05
    assert np.median(np.abs(depth - plane)) <= 0.02


@pytest.mark.parametrize("axis", range(3))
def test_harmonics_of_degree_one_are_linear_in_the_direction(axis: int) -> None:
    """Y = C1 (-y, z, -x) (3DGS): seen from direction d, the colour is 0.5 + k Y(d)."""
    harmonics = np.zeros((1, 4, 3))
    harmonics[0, 1 + axis] = 0.5
    one = Splats(np.zeros((1, 3)), AHEAD[None], np.full((1, 3), 0.2), np.ones(1), harmonics)
    rng = np.random.default_rng(axis)
    direction = rng.normal(size=(20, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    attitude = np.array([_towards(w) for w in direction])
    image = SplatRenderer(one).render(9, 9, (50.0, 50.0, 4.5, 4.5), -3.0 * direction, attitude, channels=("rgb", "alpha"))
    found = image["rgb"][:, 4, 4] / image["alpha"][:, 4, 4, None]
    expected = 0.5 + 0.5 * C1 * np.stack([-direction[:, 1], direction[:, 2], -direction[:, 0]], 1)[:, axis]
    np.testing.assert_allclose(found, np.repeat(expected[:, None], 3, 1), atol=1e-5)


@pytest.mark.parametrize("degree", [2, 3])
def test_harmonics_of_higher_degree_equal_scipy(degree: int) -> None:
    from scipy.special import sph_harm_y

    rng = np.random.default_rng(degree)
    count = (degree + 1) ** 2
    harmonics = 0.2 * rng.normal(size=(1, count, 3))
    one = Splats(np.zeros((1, 3)), AHEAD[None], np.full((1, 3), 0.2), np.ones(1), harmonics)
    direction = rng.normal(size=(20, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    image = SplatRenderer(one).render(
        9, 9, (50.0,) * 2 + (4.5,) * 2, -3.0 * direction, np.array([_towards(w) for w in direction])
    )
    polar, azimuth = np.arccos(direction[:, 2]), np.arctan2(direction[:, 1], direction[:, 0])
    values = []
    for n in range(degree + 1):
        for m in range(-n, n + 1):  # real harmonics of SciPy's complex ones, which carry the phase (-1)^m
            y = sph_harm_y(n, abs(m), polar, azimuth)
            values.append(y.real if m == 0 else np.sqrt(2.0) * (y.imag if m < 0 else y.real))
    expected = np.maximum(0.5 + np.stack(values, 1) @ harmonics[0], 0.0)
    np.testing.assert_allclose(image["rgb"][:, 4, 4] / image["alpha"][:, 4, 4, None], expected, atol=1e-5)


def _towards(direction: Array) -> Array:
    """Attitude of a camera whose optical axis is `way`."""
    from scipy.spatial.transform import Rotation

    right = np.cross([0.3, 0.2, 0.9], direction)
    right /= np.linalg.norm(right)
    return Rotation.from_matrix(np.column_stack([right, np.cross(direction, right), direction])).as_quat()


# ---- promises ------------------------------------------------------------------------------------------------------------


def test_the_order_of_the_gaussians_changes_nothing(cloud: Any, pose: Any) -> None:
    rng = np.random.default_rng(11)
    splats, view = cloud(rng, 800, 1), pose(rng)
    order = rng.permutation(800)
    mixed = Splats(*(getattr(splats, name)[order] for name in ("position", "rotation", "scale", "opacity", "harmonics")))
    a, b = (
        SplatRenderer(s).render(view.width, view.height, view.lens, view.position[None], view.attitude[None])["rgb"]
        for s in (splats, mixed)
    )
    np.testing.assert_allclose(a, b, atol=1e-5)


def _many(cloud: Any) -> tuple[list[Splats], dict[str, Any]]:
    rng = np.random.default_rng(5)
    scenes = [cloud(rng, n, degree) for n, degree in ((700, 0), (1500, 3), (3, 1))]
    attitude = rng.normal(size=(9, 4))
    cameras = {
        "intrinsics": np.column_stack([rng.uniform(40, 90, (9, 2)), np.full((9, 2), 30.0)]),
        "position": rng.uniform(-2, 2, (9, 3)),
        "attitude": attitude / np.linalg.norm(attitude, axis=1, keepdims=True),
        "scene": rng.integers(0, 3, 9),
        "background": rng.uniform(size=(9, 3)),
    }
    return scenes, cameras


def test_threads_neighbours_and_groups_change_no_byte(cloud: Any) -> None:
    scenes, cameras = _many(cloud)
    whole = SplatRenderer(scenes, threads=1).render(70, 60, **cameras)
    split = SplatRenderer(scenes, threads=3)
    split._group = 2
    for _ in range(4):  # threads take part only from the third launch on
        again = split.render(70, 60, **cameras)
    alone = {name: value[4:5] for name, value in cameras.items()}
    single = SplatRenderer(scenes).render(70, 60, **alone)
    own = SplatRenderer(scenes[cameras["scene"][4]]).render(70, 60, **{k: v for k, v in alone.items() if k != "scene"})
    for name, image in whole.items():
        assert image.tobytes() == again[name].tobytes()
        assert image[4:5].tobytes() == single[name].tobytes() == own[name].tobytes()


def test_a_longer_list_than_reserved_is_made_again(plain: Any) -> None:
    """Large Gaussians fall into every tile; the first reservation is for few."""
    rng = np.random.default_rng(0)
    where = rng.uniform([-1, -1, 2], [1, 1, 4], (400, 3))
    splats = plain(where, 2.0, rng.uniform(size=(400, 3)), 0.05)
    ours = SplatRenderer(splats).render(200, 150, (100, 100, 100, 75), np.zeros((1, 3)), AHEAD)["rgb"][0]
    theirs = twin.render(splats, 200, 150, (100, 100, 100, 75), np.zeros(3), AHEAD)["rgb"]
    assert np.abs(ours - theirs).mean() <= 1e-5


def test_two_processes_give_the_same_bytes(tmp_path: Path) -> None:
    program = """
import hashlib, numpy as np
from airworthy.scenes.splats.record import Splats
from airworthy.splats import SplatRenderer
rng = np.random.default_rng(1)
q = rng.normal(size=(2000, 4)); q /= np.linalg.norm(q, axis=1, keepdims=True)
scale, colours = np.exp(rng.normal(-2, .7, (2000, 3))), rng.normal(size=(2000, 4, 3))
s = Splats(rng.uniform(-3, 3, (2000, 3)), q, scale, rng.uniform(0, 1, 2000), colours)
o = SplatRenderer(s).render(120, 80, (90, 90, 60, 40), rng.uniform(-1, 1, (4, 3)), q[:4])
print(hashlib.sha256(b"".join(o[k].tobytes() for k in sorted(o))).hexdigest())
"""
    runs = [
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "AIRWORTHY_THREADS": n},
        ).stdout
        for n in ("1", "2")
    ]
    assert runs[0] == runs[1]
    assert len(runs[0].strip()) == 64


def test_extreme_clouds_give_finite_images(cloud: Any) -> None:
    """The largest and smallest values that are let in, seen from among them."""
    rng = np.random.default_rng(8)
    base = cloud(rng, 2000, 3)
    scale = 10.0 ** rng.uniform(-30, 5, (2000, 3))
    scale[:50] = 0.0
    where = base.position * 10.0 ** rng.uniform(-6, 5, (2000, 1))
    opacity = rng.choice([0.0, 1e-30, 1.0 / 255.0, 0.5, 1.0], 2000)
    splats = Splats(where, base.rotation, scale, opacity, base.harmonics * 2e3)
    for lens in ((100.0, 100.0, 30.0, 20.0), (1e30, 1e-30, 0.0, 0.0), (1e4, 1e4, -1e5, 1e5)):
        for antialiased in (False, True):
            poses = rng.normal(size=(6, 3)), base.rotation[:6]
            images = SplatRenderer(splats).render(60, 40, lens, *poses, antialiased=antialiased, near=1e-4)
            assert np.isfinite(images["rgb"]).all()
            assert images["alpha"].min() >= 0.0
            assert images["alpha"].max() <= 1.0
            assert not np.isnan(images["depth"]).any()


# ---- mistakes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"width": 0}, "0 x 10 pixels"),
        ({"near": 0.0}, "`near` is 0.0"),
        ({"near": float("nan")}, "`near` is nan"),
        ({"dilation": 0.0}, "`dilation`"),
        ({"channels": ("rgb", "colour")}, "colour"),
        ({"depth_mode": "mode"}, "depth mode"),
        ({"position": np.zeros(3)}, "position of shape"),
        ({"position": np.full((1, 3), np.nan)}, "position that is not finite"),
        ({"position": np.full((1, 3), 1e9)}, "beyond"),
        ({"attitude": np.zeros((1, 4))}, "zeros"),
        ({"attitude": np.zeros((2, 4))}, "attitude of shape"),
        ({"intrinsics": (0.0, 1.0, 1.0, 1.0)}, "focal length"),
        ({"scene": [1]}, "scenes 1 to 1"),
        ({"scene": [0.5]}, "whole numbers"),
    ],
)
def test_mistakes_are_told_in_one_sentence(change: dict[str, Any], said: str, plain: Any) -> None:
    right = {"width": 10, "height": 10, "intrinsics": LENS, "position": np.zeros((1, 3)), "attitude": AHEAD}
    renderer = SplatRenderer(plain([0.0, 0.0, 3.0], 0.1, 0.5, 0.5))
    with pytest.raises(AirworthyError, match=said):
        renderer.render(**{**right, **change})


def test_clouds_that_cannot_be_rendered(plain: Any) -> None:
    with pytest.raises(AirworthyError, match="no scenes"):
        SplatRenderer([])
    with pytest.raises(AirworthyError, match="position that is not finite"):
        SplatRenderer(plain([np.nan, 0.0, 0.0], 0.1, 0.5, 0.5))
    with pytest.raises(AirworthyError, match="opacities outside"):
        SplatRenderer(plain([0.0, 0.0, 0.0], 0.1, 0.5, 1.5))
    with pytest.raises(AirworthyError, match="device 'gpu'"):
        SplatRenderer(plain([0.0, 0.0, 0.0], 0.1, 0.5, 0.5), device="gpu")
    nothing = Splats(np.zeros((0, 3)), np.zeros((0, 4)), np.zeros((0, 3)), np.zeros(0), np.zeros((0, 1, 3)))
    assert not rendered(SplatRenderer(nothing))["alpha"].any()
    assert SplatRenderer(nothing).render(8, 8, LENS, np.zeros((0, 3)), AHEAD)["rgb"].shape == (0, 8, 8, 3)


@pytest.mark.parametrize(("depth", "seen"), [(0.25, False), (np.nextafter(np.float32(0.25), np.float32(1.0)), True)])
def test_what_lies_just_at_the_nearest_depth_is_not_seen(depth: float, seen: bool, plain: Any) -> None:
    """By kernel and twin alike: a mean has to lie farther away."""
    splats = plain([0.0, 0.0, float(depth)], 0.01, 1.0, 0.9)
    lens = (100.0, 100.0, 32.5, 24.5)
    assert (rendered(SplatRenderer(splats), near=0.25)["alpha"].max() > 0.5) == seen
    found = twin.project(splats, 65, 49, lens, np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]), near=0.25)
    assert len(found.index) == int(seen)
