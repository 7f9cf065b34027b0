"""Water and solid glass: closed forms of still images, the twin, waves, and the standard renderer beside still images."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from airworthy.geometry import Box, RayTable, Sphere
from airworthy.optics.lenses import ray_steps
from airworthy.rendering import StillOptions, quality_options, render
from airworthy.rendering.path_twin import path_twin
from airworthy.rendering.shading import Cameras
from airworthy.rendering.still import still_images
from airworthy.rendering.water import (
    WATER_SLANT,
    bent,
    inner_reflectance,
    interface_mirrors,
    kept,
    outer_reflectance,
    wave_slopes,
)
from airworthy.scenes import Instance, Material, PointLight, Scene, SceneBatch, Sky, Sun
from airworthy.scenes.viewpoints import look_at

INDEX = 1.333
BLACK = Sky((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
WHITE = Sky((1.0, 1.0, 1.0), (1.0, 1.0, 1.0), (1.0, 1.0, 1.0))
LEVEL = [0.0, 0.0, 0.0, 1.0]
DEPTH = 0.8
CLEAR = Material((1.0, 1.0, 1.0, 1.0), transmission=1.0, ior=INDEX, attenuation=(1e-7, 1e-7, 1e-7))


def pond(water: Material, floor: tuple[float, float, float] = (0.5, 0.4, 0.3), **parts: Any) -> SceneBatch:
    """Water 0.8 m deep, its surface at z = 0, over a floor that is wider than anything seen."""
    shapes = {"floor": Box((60.0, 60.0, 0.5)), "water": Box((50.0, 50.0, 0.5)), **parts.pop("shapes", {})}
    on = (
        Instance("floor", (0.0, 0.0, -0.5 - DEPTH), materials=("floor",)),
        Instance("water", (0.0, 0.0, -0.5), materials=("water",)),
        *parts.pop("instances", ()),
    )
    materials = {"floor": Material((*floor, 1.0)), "water": water, **parts.pop("materials", {})}
    return SceneBatch(Scene("pond", shapes, materials, instances=on, **{"lights": (), "sky": BLACK, **parts}))


def down(batch: SceneBatch, options: StillOptions, angle: float = 0.0, height: float = 1.0) -> np.ndarray:
    """Radiance (3,) along a ray that falls on the water at an angle from upright."""
    table = RayTable(np.array([[[np.sin(angle), 0.0, -np.cos(angle)]]]))
    cameras = Cameras.of(batch, table, [[0.0, 0.0, height]], [LEVEL], np.zeros(1, np.int32))
    return np.asarray(still_images(batch, table, cameras, options)[0, 0, 0])


def lambert(samples: int, bounces: int = 200) -> StillOptions:
    return StillOptions(samples=samples, specular=False, sun_disc=False, sun_angle=0.0, bounces=bounces)


# ---- closed forms -----------------------------------------------------------------------------------------------------------


def test_clear_water_over_a_white_floor_under_a_white_sky_is_not_seen() -> None:
    """Whatever is bent, gathered and mirrored: nothing is taken, so all of it comes back."""
    batch = pond(CLEAR, (1.0, 1.0, 1.0), sky=WHITE)
    for angle in (0.0, 0.9):
        np.testing.assert_allclose(down(batch, lambert(4096), angle), 1.0, atol=0.02)
    rough = render(batch, RayTable(np.array([[[0.0, 0.0, -1.0]]])), [[0.0, 0.0, 1.0]], [LEVEL], channels=("rgb",),
                   options=quality_options("high"))["rgb"]  # fmt: skip
    np.testing.assert_allclose(np.asarray(rough), 1.0, atol=0.06)  # gloss of the floor, a fit, and a mean way


def test_the_sun_on_the_floor_loses_by_fresnel_snell_and_beer() -> None:
    """Once down and once up; on level ground as much light arrives as if its rays were not bent."""
    attenuation = np.array([0.9, 0.2, 0.05])
    water = replace(CLEAR, attenuation=tuple(attenuation.tolist()))
    for slant, look in ((0.0, 0.3), (0.9, 0.0)):
        sun = Sun((np.sin(slant), 0.0, -np.cos(slant)), (1.0, 1.0, 1.0), np.pi)
        found = down(pond(water, lights=(sun,)), lambert(8192, 2), look)
        passed = [float(1.0 - interface_mirrors(np.array([np.cos(a)]), INDEX)[0]) for a in (slant, look)]
        way = [DEPTH / np.sqrt(1.0 - (np.sin(a) / INDEX) ** 2) for a in (slant, look)]
        expected = np.array([0.5, 0.4, 0.3]) * np.cos(slant) * np.prod(passed) / INDEX**2 * np.exp(-attenuation * sum(way))
        np.testing.assert_allclose(found, expected, rtol=0.01)  # which of 8,192 samples pass is chance: 0.2 % of them


def test_deep_water_sends_back_what_is_scattered_in_it() -> None:
    water = replace(CLEAR, attenuation=(40.0, 40.0, 40.0), scattered=(0.02, 0.05, 0.01))
    mirrored = ((INDEX - 1.0) / (INDEX + 1.0)) ** 2
    expected = mirrored + np.array([0.02, 0.05, 0.01])
    batch = pond(water, sky=WHITE)
    np.testing.assert_allclose(down(batch, lambert(16384)), expected, rtol=0.03)
    seen = render(batch, RayTable(np.array([[[0.0, 0.0, -1.0]]])), [[0.0, 0.0, 1.0]], [LEVEL], channels=("rgb",))["rgb"]
    np.testing.assert_allclose(np.asarray(seen)[0, 0, 0], expected, rtol=0.002)
    # Half a metre of it shows 1 - exp(-2 k d) of that over a black floor.
    thin = pond(replace(water, attenuation=(1.0, 1.0, 1.0)), (0.0, 0.0, 0.0), sky=WHITE)
    share = 1.0 - np.exp(-2.0 * DEPTH)
    np.testing.assert_allclose(down(thin, lambert(16384)), mirrored + share * np.array([0.02, 0.05, 0.01]), rtol=0.03)


def test_light_bends_by_snells_law_and_nothing_leaves_beyond_the_critical_angle() -> None:
    angle = np.linspace(0.0, 1.5, 40)
    falling = np.stack([np.sin(angle), 0.0 * angle, -np.cos(angle)], -1)
    up = np.broadcast_to([0.0, 0.0, 1.0], falling.shape)
    inside = bent(falling, up, INDEX)
    np.testing.assert_allclose(inside[:, 0] * INDEX, np.sin(angle), atol=1e-12)
    # Back the same way, and as much of it mirrored from either side (Stokes).
    np.testing.assert_allclose(bent(-inside, -up, 1.0 / INDEX), -falling, atol=1e-12)
    np.testing.assert_allclose(
        interface_mirrors(inside[:, 2], 1.0 / INDEX), interface_mirrors(falling[:, 2], INDEX), atol=1e-12
    )
    critical = np.sqrt(1.0 - 1.0 / INDEX**2)
    assert (interface_mirrors(np.array([0.0, critical - 1e-6]), 1.0 / INDEX) == 1.0).all()
    assert interface_mirrors(np.array([critical + 1e-3]), 1.0 / INDEX)[0] < 0.9


def test_a_thing_on_the_floor_is_seen_where_snells_law_puts_it() -> None:
    """A glowing ball at the place that the bent ray meets, and a dark floor beside it."""
    angle = 0.8
    reach = 1.0 * np.tan(angle) + DEPTH * np.tan(np.arcsin(np.sin(angle) / INDEX))
    for shift, seen in ((0.0, True), (0.3, False), (1.0 * np.tan(angle) + DEPTH * np.tan(angle) - reach, False)):
        glow = Material((0.0, 0.0, 0.0, 1.0), emissive=(5.0, 5.0, 5.0))
        ball = Instance("ball", (reach + shift, 0.0, -DEPTH), materials=("glow",))
        batch = pond(CLEAR, (0.0, 0.0, 0.0), shapes={"ball": Sphere(0.05)}, materials={"glow": glow}, instances=(ball,))
        still = down(batch, lambert(256), angle)[0]
        table = RayTable(np.array([[[np.sin(angle), 0.0, -np.cos(angle)]]]))
        fast = np.asarray(render(batch, table, [[0.0, 0.0, 1.0]], [LEVEL], channels=("rgb",))["rgb"])[0, 0, 0, 0]
        expected = 5.0 * float(1.0 - interface_mirrors(np.array([np.cos(angle)]), INDEX)[0]) / INDEX**2 if seen else 0.0
        assert still == pytest.approx(expected, rel=0.05)
        assert fast == pytest.approx(expected, rel=1e-3)


def test_shares_of_light_from_all_sides_are_those_of_fresnels_equations() -> None:
    s = (np.arange(200_000) + 0.5) / 200_000  # squares of sines: even for light from all sides
    for index in (1.2, INDEX, 1.5):
        outer = interface_mirrors(np.sqrt(1.0 - s), index).mean()
        inner = interface_mirrors(np.sqrt(1.0 - s), 1.0 / index).mean()
        assert inner == pytest.approx(1.0 - (1.0 - outer) / index**2, abs=1e-4)
        assert inner_reflectance(index) == pytest.approx(inner, abs=0.006)
        assert outer_reflectance(index) == pytest.approx(outer, abs=0.015)
    passes = 1.0 - interface_mirrors(np.sqrt(1.0 - s), INDEX)
    assert np.average(1.0 / np.sqrt(1.0 - s / INDEX**2), weights=passes) == pytest.approx(WATER_SLANT, abs=0.005)
    np.testing.assert_allclose(kept(np.array([0.5, 1.0, 0.0]), np.array([2.0])), [np.exp([-1.0, -2.0, 0.0])])


# ---- waves ------------------------------------------------------------------------------------------------------------------


def test_waves_are_as_steep_as_asked_and_move() -> None:
    rng = np.random.default_rng(0)
    point = rng.uniform(-200.0, 200.0, (200_000, 2))
    slope, lost = wave_slopes(point, 3.0, 0.1)
    assert np.sqrt(np.mean(np.sum(slope**2, -1))) == pytest.approx(0.1, rel=0.01)
    np.testing.assert_allclose(slope.mean(0), 0.0, atol=2e-3)
    assert (lost == 0.0).all()
    later, _ = wave_slopes(point[:100], 3.2, 0.1)
    assert np.abs(later - slope[:100]).mean() > 0.02
    # What a pixel of a metre cannot show is lost to the slopes, and told.
    wide, lost = wave_slopes(point, 3.0, 0.1, np.full(len(point), 1.0))
    assert np.mean(np.sum(wide**2, -1)) + lost[0] == pytest.approx(0.01, rel=0.02)
    assert 0.5 < lost[0] / 0.01 < 0.99


def test_normals_of_the_renderer_are_those_of_the_twins_waves() -> None:
    """Through pixels of a few millimetres all of them; through coarse ones those that are left, as the twin says."""
    batch = pond(replace(CLEAR, wave_slope=0.08), sky=WHITE)
    batch.time[:] = 7.25
    eyes = np.array([[3.0, -2.0, 1.5], [-7.0, 11.0, 1.2], [0.4, 0.1, 1.0]])
    for width, atol in ((0.02, 2e-3), (0.6, 0.02)):
        view = np.stack(np.meshgrid(np.linspace(-width, width, 24), np.linspace(-width, width, 18)), -1)
        table = RayTable(np.concatenate([view, np.full((18, 24, 1), -1.0)], -1))
        pose = eyes, np.tile(LEVEL, (3, 1)), np.zeros(3, np.int32)
        found = render(batch, table, *pose, channels=("normal", "point_world", "range"))
        point, normal = np.asarray(found["point_world"]), np.asarray(found["normal"])
        far, cosine = np.asarray(found["range"]), np.abs(table.directions[..., 2])
        across, down_by = ray_steps(table)
        wide = far * np.sqrt(np.linalg.norm(np.cross(across, down_by), axis=-1).reshape(18, 24) / cosine)
        slopes, _ = wave_slopes(point, 7.25, 0.08, wide)
        expected = np.concatenate([-slopes, np.ones((3, 18, 24, 1))], -1)
        expected /= np.linalg.norm(expected, axis=-1, keepdims=True)
        np.testing.assert_allclose(normal, expected, atol=atol)
        assert 0.03 < np.abs(normal[..., :2]).max() < 0.3


# ---- twins, and one renderer beside the other -------------------------------------------------------------------------------

EYE, AIM = (2.4, -3.0, 1.6), (0.0, 0.0, -0.3)


def things() -> dict[str, Any]:
    """A ball half under water, a box on the floor, a lamp and a sun."""
    return {
        "shapes": {"ball": Sphere(0.5), "block": Box((0.4, 0.3, 0.3))},
        "materials": {"red": Material((0.7, 0.2, 0.1, 1.0), roughness=0.6)},
        "instances": (
            Instance("ball", (0.2, 0.3, 0.1), materials=("red",)),
            Instance("block", (-0.9, 0.2, -0.6), materials=("red",)),
        ),
        "lights": (Sun((0.5, 0.3, -0.81), (1.0, 0.95, 0.9), 2.5), PointLight((-1.0, -1.0, 1.5), intensity=3.0)),
        "sky": Sky(),
    }


def pinhole(width: int, height: int) -> RayTable:
    x, y = np.meshgrid((np.arange(width) + 0.5) / width - 0.5, ((np.arange(height) + 0.5) / height - 0.5) * height / width)
    return RayTable(np.stack([x, y, np.full_like(x, 0.6)], -1))


@pytest.mark.parametrize("slope", [0.0, 0.1])
def test_the_twin_knows_water(slope: float) -> None:
    water = replace(CLEAR, attenuation=(0.6, 0.25, 0.2), scattered=(0.05, 0.08, 0.04), wave_slope=slope)
    batch, table, options = pond(water, **things()), pinhole(24, 18), StillOptions(samples=4, seed=2, sun_angle=0.05)
    batch.time[:] = 1.5
    attitude = look_at(EYE, AIM)
    cameras = Cameras.of(batch, table, [EYE], [attitude], np.zeros(1, np.int32))
    mine, twin = still_images(batch, table, cameras, options)[0], path_twin(batch, table, np.array(EYE), attitude, options)
    off = np.abs(mine - twin).max(-1) / np.maximum(np.abs(twin).max(-1), 1e-2)
    assert np.median(off) < 5e-5
    assert (off < 1e-2).mean() > 0.9  # choices between mirroring, passing and staying, at which rounding decides
    assert mine.mean() == pytest.approx(twin.mean(), rel=1e-2)


def test_the_standard_renderer_shows_what_still_images_do() -> None:
    """A clear pond under sky and sun: what is gathered, bent and dimmed there by means is followed path by path here."""
    water = replace(CLEAR, attenuation=(0.5, 0.1, 0.06))
    batch, table, attitude = pond(water, **{**things(), "shapes": {}, "instances": ()}), pinhole(40, 30), look_at(EYE, AIM)
    pose = {"position": [EYE], "attitude": [attitude]}
    still = StillOptions(samples=1024, seed=1, coat=False, sun_disc=False)
    paths = np.asarray(render(batch, table, **pose, channels=("rgb",), still=still)["rgb"])[0]
    fast = np.asarray(render(batch, table, **pose, channels=("rgb",), options=quality_options("high"))["rgb"])[0]
    ratio = fast.mean((0, 1)) / paths.mean((0, 1))
    np.testing.assert_allclose(ratio, 1.0, atol=0.05)


def test_water_without_waves_stands_still_and_waves_do_not() -> None:
    table, pose = pinhole(24, 18), {"position": [EYE], "attitude": [look_at(EYE, AIM)]}
    for slope, moves in ((0.0, False), (0.1, True)):
        images = []
        for time in (0.0, 0.4):
            batch = pond(replace(CLEAR, wave_slope=slope), **things())
            batch.time[:] = time
            images.append(np.asarray(render(batch, table, **pose, channels=("rgb", "depth"))["rgb"]))
        assert (np.abs(images[1] - images[0]).max() > 1e-3) == moves


def test_an_eye_under_water_sees_through_water() -> None:
    """Straight up to a white sky: what Fresnel lets in, gathered by the square of the index, less what the way takes."""
    attenuation = np.array([0.9, 0.2, 0.05])
    batch = pond(replace(CLEAR, attenuation=tuple(attenuation.tolist())), sky=WHITE)
    table = RayTable(np.array([[[0.0, 0.0, 1.0]]]))
    passed = 1.0 - float(interface_mirrors(np.array([1.0]), 1.0 / INDEX)[0])
    pose = {"position": [[0.0, 0.0, -0.6]], "attitude": [LEVEL]}
    fast = np.asarray(render(batch, table, **pose, channels=("rgb",), options=quality_options("high"))["rgb"])[0, 0, 0]
    np.testing.assert_allclose(fast, passed * INDEX**2 * np.exp(-0.6 * attenuation), rtol=0.03)  # and a little from below
    still = np.asarray(render(batch, table, **pose, channels=("rgb",), still=lambert(8192, 1))["rgb"])[0, 0, 0]
    np.testing.assert_allclose(still, passed * INDEX**2 * np.exp(-0.6 * attenuation), rtol=0.01)
