"""Still images against closed forms, against their float64 twin, and their promises: bits, lanes, threads, order."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import quiet_warp
from airworthy.geometry import Box, Mesh, RayTable, Sphere
from airworthy.rendering import ShadingOptions, StillOptions, render, still
from airworthy.rendering.path_twin import path_twin
from airworthy.rendering.shading import Cameras, shade
from airworthy.rendering.still import still_images
from airworthy.scenes import (
    Actor,
    Haze,
    Instance,
    Material,
    PointLight,
    Scene,
    SceneBatch,
    Sky,
    SplatPlacement,
    SpotLight,
    Sun,
    Texture,
)
from airworthy.scenes.sky.haze import haze_row, with_haze
from airworthy.scenes.viewpoints import look_at

BLACK = Sky((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
WHITE = Sky((1.0, 1.0, 1.0), (1.0, 1.0, 1.0), (1.0, 1.0, 1.0))
LAMBERT = StillOptions(samples=64, specular=False, sun_disc=False)
FLOOR = {"floor": Box((50.0, 50.0, 0.5))}
ON_FLOOR = (Instance("floor", (0.0, 0.0, -0.5), materials=("m",)),)
GREY = Material((0.5, 0.4, 0.3, 1.0))
DOWN = np.array([[[0.0, 0.0, -1.0]]])
LEVEL = [0.0, 0.0, 0.0, 1.0]
TURNED, TILTED = (0.0, 0.0, 0.28, 0.96), (0.28, 0.0, 0.0, 0.96)


def place(**parts: Any) -> SceneBatch:
    """A batch of one scene: a grey floor at z = 0 under a black sky, and what is given."""
    given: dict[str, Any] = {"shapes": FLOOR, "materials": {"m": GREY}, "instances": ON_FLOOR, "lights": (), "sky": BLACK}
    return SceneBatch(Scene("test", **{**given, **parts}))


def down(points: Any, batch: SceneBatch, options: StillOptions = LAMBERT, height: float = 0.5) -> np.ndarray:
    """Radiance (n, 3) seen from just above points (n, 2) of the floor."""
    xy = np.asarray(points, float).reshape(-1, 2)
    position = np.concatenate([xy, np.full((len(xy), 1), height)], 1)
    table = RayTable(DOWN)
    cameras = Cameras.of(batch, table, position, np.tile(LEVEL, (len(xy), 1)), np.zeros(len(xy), np.int32))
    return still_images(batch, table, cameras, options)[:, 0, 0]


def seen(
    batch: SceneBatch, table: RayTable, options: StillOptions, position: Any = (0.0, 0.0, 2.0), attitude: Any = LEVEL
) -> Any:
    """One image (H, W, 3)."""
    cameras = Cameras.of(batch, table, [position], [attitude], np.zeros(1, np.int32))
    return still_images(batch, table, cameras, options)[0]


# ---- closed forms -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metallic", [0.0, 1.0])
@pytest.mark.parametrize("roughness", [0.03, 0.3, 0.6, 1.0])
def test_a_white_surface_in_a_white_sky_cannot_be_told_from_it(roughness: float, metallic: float) -> None:
    material = Material((1.0, 1.0, 1.0, 1.0), roughness=roughness, metallic=metallic)
    ball, on = {"ball": Sphere(1.0)}, (Instance("ball", materials=("m",)),)
    batch = place(shapes=ball, instances=on, materials={"m": material}, sky=WHITE)
    table = RayTable(np.array([[[x, y, -1.0] for x in np.linspace(0.0, 0.5, 8)] for y in (0.0, 0.1, 0.2)]))
    # 24 pixels of 4,096 samples: noise of the mean is under 0.1 %.
    assert seen(batch, table, StillOptions(samples=4096)).mean() == pytest.approx(1.0, abs=0.005)


def test_a_closed_room_that_glows_keeps_its_energy() -> None:
    # Walls that send e and reflect a hold e / (1 - a) everywhere, however often light goes round.
    room = place(shapes={"room": Box((2.0, 1.5, 1.0))}, instances=(Instance("room", materials=("m",)),),
                 materials={"m": Material((0.8, 0.6, 0.4, 1.0), emissive=(0.2, 0.2, 0.2))})  # fmt: skip
    table = RayTable(np.array([[[np.cos(a), np.sin(a), 0.2] for a in np.linspace(0.0, 6.0, 16)]]))
    image = seen(room, table, StillOptions(samples=8192, specular=False, bounces=200), (0.3, -0.2, 0.1))
    np.testing.assert_allclose(image.mean((0, 1)), [1.0, 0.5, 0.2 / 0.6], rtol=0.005)


def test_a_lamp_falls_with_the_square_of_the_distance_and_a_spot_has_a_cone() -> None:
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 3.0]])
    square = np.sum(points**2, 1) + 1.5**2
    expected = 0.5 / np.pi * 10.0 / square * 1.5 / np.sqrt(square)
    np.testing.assert_allclose(down(points, place(lights=(PointLight((0.0, 0.0, 1.5)),)))[:, 0], expected, rtol=2e-4)
    lamp = SpotLight((0.0, 0.0, 2.0), (0.0, 0.0, -1.0), inner_angle=0.3, outer_angle=0.5)
    inside, outside = down([[0.3, 0.0], [2.0 * np.tan(0.51), 0.0]], place(lights=(lamp,)))
    np.testing.assert_allclose(inside[0], 0.5 / np.pi * 20.0 / 4.09 * 2.0 / np.sqrt(4.09), rtol=2e-4)
    assert (outside == 0.0).all()


def disc(radius: float, sides: int = 256) -> Mesh:
    """A regular polygon in z = 0, of the circle's area."""
    angle = np.arange(sides) * 2.0 * np.pi / sides
    reach = radius * np.sqrt(2.0 * np.pi / sides / np.sin(2.0 * np.pi / sides))
    rim = np.stack([reach * np.cos(angle), reach * np.sin(angle), 0.0 * angle], -1)
    faces = [[sides, k, (k + 1) % sides] for k in range(sides)]
    return Mesh(np.concatenate([rim, np.zeros((1, 3))]), np.array(faces))


@pytest.mark.parametrize("kind", ["disc", "ball"])
def test_a_glowing_disc_and_a_glowing_ball_light_a_floor_by_their_form_factor(kind: str) -> None:
    glow = {"m": GREY, "glow": Material((0.0, 0.0, 0.0, 1.0), emissive=(2.0, 3.0, 4.0))}
    shape, high = (disc(0.8), 1.2) if kind == "disc" else (Sphere(0.4), 2.0)
    batch = place(shapes={**FLOOR, "lamp": shape}, materials=glow,
                  instances=(*ON_FLOOR, Instance("lamp", (0.0, 0.0, high), materials=("glow",))))  # fmt: skip
    share = 0.8**2 / (0.8**2 + 1.2**2) if kind == "disc" else (0.4 / 2.0) ** 2
    expected = np.array([0.5, 0.4, 0.3]) * share * np.array([2.0, 3.0, 4.0])
    found = down(np.zeros((16, 2)), batch, StillOptions(samples=4096, specular=False, bounces=1))
    np.testing.assert_allclose(found.mean(0), expected, rtol=0.005)
    # Found by chance alone, without aiming, it is the same light.
    aimless = still.emitters_of
    try:
        still.emitters_of = lambda batch: none_of(aimless(batch))  # type: ignore[assignment]
        blind = down(np.zeros((1, 2)), batch, StillOptions(samples=32768, specular=False, bounces=1))
    finally:
        still.emitters_of = aimless
    np.testing.assert_allclose(blind[0], expected, rtol=0.03)


def none_of(emitters: Any) -> Any:
    """The same without anything to aim at."""
    spans = emitters.spans.copy()
    spans[:, 1] = 0
    return type(emitters)(emitters.sums, emitters.densities, emitters.places, emitters.slots, spans)


def test_the_penumbra_of_a_wall_is_as_wide_as_the_sun_seen_over_the_way() -> None:
    angle, height = 0.02, 3.0
    plate = Instance("plate", (5.0, 0.0, height), materials=("m",))  # its edge at x = 0
    sun = Sun((0.0, 0.0, -1.0), (1.0, 1.0, 1.0), np.pi)
    batch = place(shapes={**FLOOR, "plate": Box((5.0, 20.0, 1e-3))}, instances=(*ON_FLOOR, plate), lights=(sun,))
    x = np.linspace(-1.2, 1.2, 49) * height * np.tan(angle)
    options = StillOptions(samples=1024, specular=False, sun_angle=angle, bounces=1)
    lit = down(np.stack([x, 0.0 * x], -1), batch, options)[:, 0] / 0.5
    # The share of a disc that an edge leaves free.
    t = np.clip(x / (height * np.tan(angle)), -1.0, 1.0)
    share = (np.arccos(t) - t * np.sqrt(1.0 - t * t)) / np.pi
    assert np.abs(lit - share).max() < 0.06  # noise of 1,024 samples: at most 1.6 %, and 49 of them
    assert np.abs(lit - share).mean() < 0.012
    assert lit[x < -height * np.tan(angle)] == pytest.approx(1.0, rel=1e-3)
    assert (lit[x > height * np.tan(angle)] == 0.0).all()
    hard = down([[-1e-2, 0.0], [1e-2, 0.0]], batch, StillOptions(samples=4, specular=False, sun_angle=0.0))[:, 0]
    np.testing.assert_allclose(hard / 0.5, [1.0, 0.0], rtol=1e-4)


def test_the_suns_disc_brings_a_mirror_what_it_brings_a_floor() -> None:
    # A mirror shows the sun's radiance, irradiance over pi sin^2; the eye sees it only where it is asked for.
    sun = Sun((0.0, 0.0, -1.0), (1.0, 1.0, 1.0), 2.0)
    batch, table = place(lights=(sun,), instances=()), RayTable(np.array([[[0.0, 0.0, 1.0]]]))
    # Nothing but the sky there: the ray's pixel has no neighbours, so it does not spread.
    radiance = 2.0 / (np.pi * np.sin(0.01) ** 2)
    for drawn in (True, False):
        found = seen(batch, table, StillOptions(samples=4, sun_angle=0.01, sun_disc=drawn))
        np.testing.assert_allclose(found[0, 0], radiance if drawn else 0.0, rtol=1e-4)
    chrome = place(lights=(sun,), materials={"m": Material((1.0, 1.0, 1.0, 1.0), metallic=1.0, roughness=0.03)})
    side = np.linspace(-0.2, 0.2, 81)
    views = np.array([[[x, y, -1.0] for x in side] for y in side])
    found = seen(chrome, RayTable(views), StillOptions(samples=64, sun_angle=0.01, bounces=1))
    # All but a thousandth of the sun that the mirror sends on is in this square: its sum over directions is the irradiance.
    solid = (0.4 / 80) ** 2
    assert found[..., 0].sum() * solid == pytest.approx(2.0, rel=0.02)


def test_lamps_light_glossy_surfaces_as_the_standard_renderer_does() -> None:
    lamp = PointLight((0.7, -0.3, 1.4), (1.0, 1.0, 1.0), 10.0)
    for metallic, roughness in ((0.0, 0.5), (1.0, 0.4), (1.0, 0.2)):
        material = Material((0.8, 0.6, 0.4, 1.0), metallic=metallic, roughness=roughness)
        batch = place(materials={"m": material}, lights=(lamp,))
        table = RayTable(np.array([[[x, 0.0, -1.0] for x in np.linspace(-0.8, 0.8, 33)]]))
        mine = seen(batch, table, StillOptions(samples=64, bounces=1), (0.0, 0.0, 1.5))
        usual = shade(batch, table, [(0.0, 0.0, 1.5)], [LEVEL], options=ShadingOptions(samples=8))[0]
        # What both leave to approximations (masking, bounces between facets, who gets what at the coat) is a few per cent.
        np.testing.assert_allclose(mine.sum(), usual.sum(), rtol=0.03)


def test_leaves_cast_the_shadow_of_their_holes() -> None:
    y, x = np.mgrid[0:16, 0:16]
    pixels = np.full((16, 16, 4), 255, np.uint8)
    pixels[(x < 8) ^ (y < 8), 3] = 0  # two of four quarters are holes
    card = Mesh(np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], float), np.array([[0, 1, 2], [0, 2, 3]]),
                uv=np.array([[0, 1], [1, 1], [1, 0], [0, 0]], float))  # fmt: skip
    leaf = Material((1.0, 1.0, 1.0, 1.0), base_color_map="leaf", alpha_cutoff=0.5)
    batch = place(shapes={**FLOOR, "card": card}, materials={"m": GREY, "leaf": leaf},
                  textures={"leaf": Texture(pixels, wrap="clamp")},
                  instances=(*ON_FLOOR, Instance("card", (0.0, 0.0, 2.0), materials=("leaf",))),
                  lights=(Sun((0.0, 0.0, -1.0), (1.0, 1.0, 1.0), np.pi),))  # fmt: skip
    corners = np.array([[-0.5, 0.5], [0.5, 0.5], [-0.5, -0.5], [0.5, -0.5]])
    lit = down(corners, batch, StillOptions(samples=4, specular=False, sun_angle=0.0, bounces=1))[:, 0]
    # Texture rows go down, so the first quarter is the upper left: solid.
    np.testing.assert_allclose(lit / 0.5, [0.0, 1.0, 1.0, 0.0], atol=1e-4)


# ---- the twin ---------------------------------------------------------------------------------------------------------------


def crowded() -> Scene:
    """Boxes and balls of every kind of material, a sun, lamps, glow, and a sky."""
    shapes = {**FLOOR, "box": Box((0.4, 0.3, 0.6)), "ball": Sphere(0.5), "panel": Box((0.6, 0.4, 0.02)), "bulb": Sphere(0.15)}
    materials = {
        "m": GREY,
        "gold": Material((1.0, 0.78, 0.34, 1.0), metallic=1.0, roughness=0.3),
        "paint": Material((0.6, 0.1, 0.1, 1.0), roughness=0.25),
        "chrome": Material((0.9, 0.9, 0.9, 1.0), metallic=1.0, roughness=0.03),
        "glow": Material((0.2, 0.2, 0.2, 1.0), emissive=(3.0, 2.5, 2.0)),
    }
    instances = (
        *ON_FLOOR,
        Instance("box", (-0.9, 0.4, 0.6), TURNED, materials=("paint",)),
        Instance("ball", (0.3, 0.5, 0.5), materials=("gold",)),
        Instance("ball", (1.3, 0.2, 0.4), scale=0.8, materials=("chrome",)),
        Instance("panel", (0.0, 0.0, 2.4), TILTED, materials=("glow",)),
        Instance("bulb", (-0.2, -0.6, 0.3), scale=0.7, materials=("glow",)),
    )
    lights = (
        Sun((0.5, 0.4, -0.77), irradiance=2.0),
        PointLight((1.0, -1.5, 1.5), range=6.0),
        SpotLight((-1.5, -1.0, 2.0), (0.5, 0.5, -0.7)),
    )
    return Scene("crowded", shapes, materials, instances=instances, lights=lights)


EYE, AIM = (0.2, -3.2, 1.4), (0.1, 0.2, 0.5)


def pinhole(width: int, height: int) -> RayTable:
    u, v = np.meshgrid(np.arange(width) + 0.5 - 0.5 * width, np.arange(height) + 0.5 - 0.5 * height)
    return RayTable(np.stack([u * 1.1 / width, v * 1.1 / width, np.ones_like(u)], -1))


@pytest.mark.parametrize("options", [
    StillOptions(samples=6, seed=5, sun_angle=0.03),
    StillOptions(samples=4, seed=1 << 62, specular=False, bounces=3),
    StillOptions(samples=4, seed=1 << 40, coat=False, sun_angle=0.0),
])  # fmt: skip
def test_every_pixel_is_that_of_the_float64_twin(options: StillOptions) -> None:
    batch, table = SceneBatch(crowded()), pinhole(24, 18)
    attitude = look_at(EYE, AIM)
    mine, twin = seen(batch, table, options, EYE, attitude), path_twin(batch, table, np.array(EYE), attitude, options)
    off = np.abs(mine - twin).max(-1) / np.maximum(np.abs(twin).max(-1), 1e-2)
    assert np.median(off) < 2e-6
    # A path that rounding sends past an edge is another path: one in some hundred pixels at most.
    assert (off < 1e-3).mean() > 0.98
    assert mine.mean() == pytest.approx(twin.mean(), rel=5e-3)


# ---- promises ---------------------------------------------------------------------------------------------------------------


def test_bits_do_not_depend_on_lanes_threads_or_what_else_is_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    table, options, attitude = pinhole(22, 15), StillOptions(samples=20, seed=3), look_at(EYE, AIM)
    alone = seen(SceneBatch(crowded(), threads=1), table, options, EYE, attitude)
    monkeypatch.setattr("airworthy.core.native_kernel.SPLIT_SECONDS", 0.0)
    split = SceneBatch(crowded(), threads=3)
    assert (seen(split, table, options, EYE, attitude) == alone).all()
    # Three environments in another order, one of them another scene, and cameras in no order.
    others = SceneBatch([place(lights=(Sun((0.0, 0.0, -1.0)),)).scenes[0], crowded(), crowded()])
    envs = np.array([2, 0, 1], np.int32)
    cameras = Cameras.of(others, table, [EYE, (0.0, 0.0, 3.0), EYE], [attitude, LEVEL, attitude], envs)
    found = still_images(others, table, cameras, options)
    assert (found[0] == alone).all()
    assert (found[2] == alone).all()
    assert not (found[1] == alone).all()
    monkeypatch.setattr(still, "_PREFIX", "#define SCALAR_PATH\n")
    assert (seen(SceneBatch(crowded()), table, options, EYE, attitude) == alone).all()


def test_seeds_differ_and_more_samples_go_on_where_fewer_ended() -> None:
    batch, table, attitude = SceneBatch(crowded()), pinhole(16, 12), look_at(EYE, AIM)
    one, other = (seen(batch, table, StillOptions(samples=16, seed=k), EYE, attitude) for k in (0, 1))
    assert not (one == other).all()
    both = [seen(batch, table, StillOptions(samples=n), EYE, attitude).astype(float) * n for n in (16, 32)]
    # The first 16 of 32 are the 16: what is added is light.
    assert (both[1] - both[0] > -1e-3).all()


def test_what_glows_on_an_actor_goes_with_it() -> None:
    bulb = Actor("bulb", (Instance("lamp", materials=("glow",)),), position=(0.0, 0.0, 1.0))
    glow = {"m": GREY, "glow": Material((0.0, 0.0, 0.0, 1.0), emissive=(5.0, 5.0, 5.0))}
    batch = place(shapes={**FLOOR, "lamp": Sphere(0.2)}, materials=glow, actors=(bulb,))
    options = StillOptions(samples=1024, specular=False, bounces=1)
    below = down([[0.0, 0.0], [4.0, 0.0]], batch, options, 0.3)[:, 0]
    batch.pose_actor("bulb", [(4.0, 0.0, 1.0)], [LEVEL])
    moved = down([[0.0, 0.0], [4.0, 0.0]], batch, options, 0.3)[:, 0]
    assert below[0] == pytest.approx(0.5 * 5.0 * 0.04, rel=0.03)
    np.testing.assert_allclose(moved, below[::-1], rtol=0.1)


def test_render_takes_a_still_beside_its_other_channels() -> None:
    batch, table, attitude = SceneBatch(crowded()), pinhole(16, 12), look_at(EYE, AIM)
    options = StillOptions(samples=4)
    found = render(batch, table, [EYE], [attitude], channels=("depth", "grey", "rgb", "albedo"), still=options)
    assert (found["rgb"][0] == seen(batch, table, options, EYE, attitude)).all()
    assert found["grey"].shape == found["depth"].shape == (1, 12, 16)
    with pytest.raises(AirworthyError, match="ask for 'rgb'"):
        render(batch, table, [EYE], [attitude], channels=("depth",), still=options)


@pytest.mark.parametrize(("given", "said"), [
    ({"samples": 0}, "0 samples per pixel was asked for; expected 1 to"),
    ({"bounces": -1}, "over -1 bounces; expected 0 to"),
    ({"sun_angle": 0.7}, "half angle 0.7 rad was asked for; expected 0 to 0.5"),
    ({"sun_angle": float("nan")}, "sun_angle"),
    ({"max_range": 0.0}, "Rays reach 0.0 m; expected"),
    ({"samples": 1.5}, "samples"),
])  # fmt: skip
def test_what_cannot_be_is_refused_in_a_sentence(given: dict[str, Any], said: str) -> None:
    with pytest.raises(AirworthyError) as told:
        StillOptions(**given)
    assert said in str(told.value)


def test_haze_lies_before_what_is_seen_and_scattered_light_goes_through_it() -> None:
    """A black floor 3 m below in even haze under a white sky and a sun: airlight over the way, by its closed form."""
    haze, sun = Haze(0.4, height=0.0), Sun((0.3, 0.0, -0.95))
    row = haze_row(haze, np.full(3, np.pi), (sun,))
    expected = with_haze(row, np.zeros(3), 3.0, np.array([0.0, 0.0, -1.0]), 3.0)
    black = place(haze=haze, sky=WHITE, lights=(sun,), materials={"m": Material((0.0, 0.0, 0.0, 1.0))})
    np.testing.assert_allclose(down([[0.0, 0.0]], black, height=3.0)[0], expected, rtol=1e-4)
    # In haze that lets nothing pass everything has the light of haze, whatever is behind.
    thick = down([[0.0, 0.0]], place(haze=Haze(50.0, height=0.0), sky=WHITE, lights=(sun,)), height=3.0)[0]
    np.testing.assert_allclose(thick, with_haze(row, np.zeros(3), 3.0, np.array([0.0, 0.0, -1.0]), 1e3), rtol=1e-4)


def test_the_twin_knows_haze() -> None:
    batch, table = SceneBatch(replace(crowded(), haze=Haze(0.1, height=3.0))), pinhole(16, 12)
    attitude, options = look_at(EYE, AIM), StillOptions(samples=4, seed=2)
    mine, twin = seen(batch, table, options, EYE, attitude), path_twin(batch, table, np.array(EYE), attitude, options)
    off = np.abs(mine - twin).max(-1) / np.maximum(np.abs(twin).max(-1), 1e-2)
    assert np.median(off) < 1e-5  # the kernel's exponential is within 3e-6
    assert (off < 1e-3).mean() > 0.97
    clear = seen(SceneBatch(crowded()), table, options, EYE, attitude)
    assert np.abs(mine - clear).mean() > 0.01


def pane(**look: Any) -> tuple[dict[str, Any], Instance]:
    """A pane at z = 1 over the floor, as one sheet, and what it is made of."""
    card = np.array([[-9.0, -9.0, 0.0], [9.0, -9.0, 0.0], [9.0, 9.0, 0.0], [-9.0, 9.0, 0.0]])
    shapes = {**FLOOR, "pane": Mesh(card, np.array([[0, 1, 2], [0, 2, 3]]))}
    materials = {"m": GREY, "glass": Material((0.5, 0.8, 1.0, 1.0), **{"transmission": 0.9, **look})}
    return {"shapes": shapes, "materials": materials}, Instance("pane", (0.0, 0.0, 1.0), materials=("glass",))


def test_a_pane_lets_pass_what_it_does_not_mirror() -> None:
    """At right angles ((n - 1) / (n + 1))^2 at each side, 2 R / (1 + R) at both; the sun's rays go through once."""
    sun = Sun((0.0, 0.0, -1.0), (1.0, 1.0, 1.0), np.pi)
    parts, sheet = pane(ior=1.6)
    once = (0.6 / 2.6) ** 2
    left = np.array([0.5, 0.8, 1.0]) * 0.9 * (1.0 - 2.0 * once / (1.0 + once))
    options = StillOptions(samples=512, specular=False, sun_disc=False, bounces=1)
    below = down([[0.0, 0.0]], place(lights=(sun,), instances=(*ON_FLOOR, sheet), **parts), options)[0]
    np.testing.assert_allclose(below, left * [0.5, 0.4, 0.3], rtol=1e-3)
    options = StillOptions(samples=4096, specular=False, sun_disc=False, bounces=2)
    above = down([[0.0, 0.0]], place(lights=(sun,), instances=(*ON_FLOOR, sheet), **parts), options, height=1.5)[0]
    # One of some ten samples is mirrored, to a black sky; the sun itself stands there, and the eye is not to see it.
    white = down([[0.0, 0.0]], place(sky=WHITE, instances=(*ON_FLOOR, sheet), **parts), options, height=1.5)[0]
    assert (above > 0.85 * left**2 * [0.5, 0.4, 0.3]).all()
    assert (white > 2.0 * once / (1.0 + once)).all()


def test_clear_glass_under_a_white_sky_is_not_seen() -> None:
    """Nothing is taken up: what it mirrors and what it lets pass are 1 together, over a white floor or none."""
    parts, sheet = pane()
    parts["materials"] = {
        "m": Material((1.0, 1.0, 1.0, 1.0)),
        "glass": Material((1.0, 1.0, 1.0, 1.0), transmission=1.0, ior=1.9),
    }
    sky = place(sky=WHITE, instances=(sheet,), **parts)
    np.testing.assert_allclose(down([[0.0, 0.0]], sky, height=1.5), 1.0, rtol=1e-5)
    # Between a white floor and an endless pane light goes to and fro until it finds a way out.
    floor = place(sky=WHITE, instances=(*ON_FLOOR, sheet), **parts)
    found = down([[0.0, 0.0]], floor, StillOptions(samples=512, specular=False, bounces=200), height=1.5)
    np.testing.assert_allclose(found, 1.0, atol=0.03)


def test_the_twin_knows_glass() -> None:
    scene = crowded()
    box = Instance("pane", (0.0, 0.0, 1.2), TILTED, materials=("glass",))
    scene = replace(
        scene,
        shapes={**scene.shapes, "pane": Box((2.0, 2.0, 0.01))},
        materials={**scene.materials, "glass": Material((0.6, 0.9, 0.7, 1.0), transmission=0.9, ior=1.7)},
        instances=(*scene.instances, box),
    )
    batch, table, options = SceneBatch(scene), pinhole(24, 18), StillOptions(samples=4, seed=2)
    attitude = look_at(EYE, AIM)
    mine, twin = seen(batch, table, options, EYE, attitude), path_twin(batch, table, np.array(EYE), attitude, options)
    off = np.abs(mine - twin).max(-1) / np.maximum(np.abs(twin).max(-1), 1e-2)
    assert np.median(off) < 5e-6
    assert (off < 1e-3).mean() > 0.95  # more edges, and choices between mirroring and passing, at which rounding decides
    assert mine.mean() == pytest.approx(twin.mean(), rel=1e-2)
    assert np.abs(mine - seen(SceneBatch(crowded()), table, options, EYE, attitude)).mean() > 1e-3


def test_daylight_is_shown() -> None:
    noon, dusk = (down([[0.0, 0.0]], place(sky=Sky(model="daylight", elevation=elevation))) for elevation in (0.9, -0.05))
    assert (noon > 10.0 * dusk).all()
    assert (dusk > 0.0).all()


def test_splats_and_too_many_lamps_are_refused(cloud: Any) -> None:
    lamps = tuple(PointLight((0.0, 0.0, 1.0)) for _ in range(251))
    with pytest.raises(AirworthyError, match="251 lights"):
        down([[0.0, 0.0]], place(lights=lamps))
    with pytest.raises(AirworthyError, match="splats"):
        down([[0.0, 0.0]], place(clouds={"c": cloud(np.random.default_rng(0), 4)}, splats=(SplatPlacement("c"),)))


def test_no_bounce_is_what_glows_alone() -> None:
    assert (down([[0.0, 0.0]], place(lights=(PointLight((0.0, 0.0, 1.5)),)), StillOptions(samples=4, bounces=0)) == 0.0).all()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "darwin", reason="Warp has no CUDA compiler on macOS")
def test_the_kernel_compiles_for_cuda(tmp_path: Path) -> None:
    wp = quiet_warp()
    with wp.ScopedLogLevel(wp.LOG_ERROR):
        wp.compile_aot_module(still.path_kernel().module, device=None, arch=90, module_dir=tmp_path, use_ptx=True)
    (path,) = tmp_path.glob("*.ptx")
    text = path.read_text(errors="replace")
    assert ".target sm_90" in text
    # Correctly rounded and not contracted; no double arithmetic.
    assert not re.search(r"fma\.rn|\.approx|div\.full|\.ftz", text)
    assert not re.search(r"^\s*(add|sub|mul|div|fma|cvt)\.\S*f64", text, re.MULTILINE)


@pytest.mark.gpu
def test_a_gpu_makes_the_image_of_a_cpu() -> None:
    table, options, attitude = pinhole(40, 30), StillOptions(samples=32), look_at(EYE, AIM)
    here, there = (seen(SceneBatch(crowded(), device=name), table, options, EYE, attitude) for name in ("cpu", "cuda:0"))
    off = np.abs(there - here).max(-1) / np.maximum(here.max(-1), 1e-2)
    assert np.median(off) < 1e-5
    assert there.mean() == pytest.approx(here.mean(), rel=2e-3)
