"""Images of scenes with splats: who hides whom, in which space colours are mixed, what moves, lenses and shutters."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayAny
from airworthy.core.errors import AirworthyError
from airworthy.geometry import Box, RayTable
from airworthy.optics.distortion import PlumbBob
from airworthy.optics.projections import Fisheye, Pinhole
from airworthy.optics.tone import display_from_linear, linear_from_display, to_8bit
from airworthy.rendering.images import BEHIND, blended, render
from airworthy.rendering.light_baking import relit
from airworthy.rendering.splat_images import eye_of
from airworthy.scenes import Actor, Instance, Material, Scene, SceneBatch, Sky, Waypoint
from airworthy.scenes.splats import Splats, merged, transformed, write_splats
from airworthy.scenes.splats.placing import add_splat_actor, add_splats, with_surface
from airworthy.sensors.camera import Camera
from airworthy.sensors.devices import Device
from airworthy.sensors.realism import DepthOfField, MotionBlur, Realism, RollingShutter
from airworthy.sensors.sampling import SensorView
from airworthy.splats import SplatRenderer

C0 = 0.28209479177387814
LENS = Pinhole(48, 32, 40.0, 40.0, 24.0, 16.0)
TABLE = LENS.rays()
AHEAD = np.array([[-0.5, 0.5, -0.5, 0.5]])
"""Optical frame that looks along world x, z up in the image."""
HERE = np.zeros((1, 3))
GREEN, RED = (0.1, 0.8, 0.1), (0.7, 0.05, 0.05)
DARK = Sky((0.02, 0.03, 0.2), (0.02, 0.03, 0.2), (0.02, 0.03, 0.2))


def gaussians(position: ArrayLike, scale: ArrayLike, color: ArrayLike = GREEN, opacity: float = 0.9) -> Splats:
    where = np.atleast_2d(np.asarray(position, float))
    n = len(where)
    harmonics = (np.broadcast_to(np.asarray(color, float), (n, 3)) - 0.5) / C0
    turn = np.tile([0.0, 0.0, 0.0, 1.0], (n, 1))
    return Splats(where, turn, np.broadcast_to(np.asarray(scale, float), (n, 3)), np.full(n, opacity), harmonics[:, None])


def sheet(x: float, opacity: float = 0.9, half: float = 4.0) -> Splats:
    """Flat discs across the view at a distance."""
    y, z = (grid.ravel() for grid in np.meshgrid(np.arange(-half, half + 0.01, 0.1), np.arange(-half, half + 0.01, 0.1)))
    return gaussians(np.stack([np.full(y.size, x), y, z], -1), (1e-3, 0.08, 0.08), opacity=opacity)


def box_scene(x: float, **fields: Any) -> Scene:
    """A glowing red cube of 0.5 m whose face towards the camera lies at a distance; no light but a dim sky."""
    item = Instance("box", (x + 0.25, 0.0, 0.0), materials=("red",), **fields)
    glow = Material((0.0, 0.0, 0.0, 1.0), roughness=1.0, emissive=RED)
    return Scene("boxes", {"box": Box((0.25, 0.25, 0.25))}, {"red": glow}, instances=(item,), lights=(), sky=DARK)


def look(scene: Scene | SceneBatch, channels: tuple[str, ...] = ("rgb", "depth"), **options: Any) -> dict[str, ArrayAny]:
    batch = scene if isinstance(scene, SceneBatch) else SceneBatch(scene)
    return {name: image[0] for name, image in render(batch, TABLE, HERE, AHEAD, [0], channels, **options).items()}


# ---- who hides whom -----------------------------------------------------------------------------------------------------


def test_a_box_before_a_sheet_hides_it() -> None:
    bare, image = look(box_scene(1.0)), look(add_splats(box_scene(1.0), sheet(2.0), "sheet"))
    on = np.isfinite(bare["depth"])
    assert 0 < on.sum() < on.size
    assert np.array_equal(image["depth"], bare["depth"])
    assert np.array_equal(image["rgb"][on], bare["rgb"][on])  # to the bit
    # Between its discs the sheet lets 0.3 % of the sky pass.
    assert np.abs(display_from_linear(image["rgb"][~on]) - GREEN).max() < 5e-3
    assert np.abs(to_8bit(image["rgb"])[~on].astype(int) - np.rint(255 * np.array(GREEN)).astype(int)).max() <= 1


def test_a_box_behind_a_sheet_is_hidden() -> None:
    image = look(add_splats(box_scene(3.0), sheet(2.0), "sheet"), ("rgb", "depth", "splat_depth", "splat_alpha", "semantic_id"))
    assert np.abs(display_from_linear(image["rgb"]) - GREEN).max() < 5e-3
    assert np.allclose(image["splat_depth"], 2.0, atol=1e-3)
    assert image["splat_alpha"].min() > 0.99
    on = np.isfinite(image["depth"])
    assert np.allclose(image["depth"][on], 3.0, atol=1e-5)  # of the geometry, as ever
    assert (image["semantic_id"][on] == 3).all()
    assert (image["semantic_id"][~on] == -2).all()


def test_colours_are_mixed_as_pictures_show_them() -> None:
    """A thin sheet over a bright box: the formula, in the space of the tone curve and sRGB."""
    glare = box_scene(3.0)
    glare = replace(glare, materials={"red": replace(glare.materials["red"], emissive=(1.4, 0.6, 0.1))})
    bare = look(glare, ("rgb",))["rgb"]
    veil = add_splats(glare, sheet(2.0, 0.05), "sheet")
    image = look(veil, ("rgb", "splat_alpha"))
    direct = SplatRenderer(sheet(2.0, 0.05)).render(48, 32, (40.0, 40.0, 24.0, 16.0), HERE, AHEAD)
    assert np.allclose(image["splat_alpha"], direct["alpha"][0], atol=1e-6)
    assert 0.05 < image["splat_alpha"].min() < image["splat_alpha"].max() < 0.5
    mixed = direct["rgb"][0] + (1.0 - direct["alpha"][0])[..., None] * display_from_linear(bare)
    # The tables of the curves round to 5e-5 and 3e-5 of full scale, there and back.
    assert np.abs(display_from_linear(image["rgb"]) - mixed).max() < 2e-4


def test_against_one_renderer_for_both() -> None:
    """A box made of splats instead, before the sheet and behind it: the same picture but at the outline of the box."""
    y, z = (grid.ravel() for grid in np.meshgrid(np.arange(-0.25, 0.251, 0.01), np.arange(-0.25, 0.251, 0.01)))
    shown = display_from_linear(look(box_scene(1.0), ("rgb",))["rgb"][16, 24])
    for x, opacity in ((1.0, 0.9), (3.0, 0.05)):
        face = gaussians(np.stack([np.full(y.size, x), y, z], -1), (1e-4, 0.008, 0.008), shown, 0.95)
        empty = Scene("empty", lights=(), sky=DARK)
        whole = look(add_splats(empty, merged([face, sheet(2.0, opacity)]), "both"), ("rgb",))["rgb"]
        image = look(add_splats(box_scene(x), sheet(2.0, opacity), "sheet"), ("rgb",))["rgb"]
        off = np.abs(display_from_linear(whole) - display_from_linear(image)).max(-1)
        # Pixels that the outline crosses differ: the splats' edge is soft, by sigma and by the 0.55 px of the pixel itself.
        half = round(0.25 / x * 40.0)
        inner, outer = np.zeros((32, 48), bool), np.ones((32, 48), bool)
        inner[16 - half + 2 : 16 + half - 2, 24 - half + 2 : 24 + half - 2] = True
        outer[16 - half - 3 : 16 + half + 3, 24 - half - 3 : 24 + half + 3] = False
        assert inner.any()
        assert off[inner | outer].max() <= 5e-3


@pytest.mark.parametrize(
    ("beyond", "covered", "shown"), [(-0.1, False, True), (0.1, False, False), (0.1, True, True), (0.3, True, False)]
)
def test_splats_lie_on_what_is_covered(beyond: float, covered: bool, shown: bool) -> None:
    """Splats a little behind the surface that they show are seen, up to `BEHIND`."""
    assert 0.1 < BEHIND < 0.3
    place = box_scene(2.0, covered=covered)
    image = look(add_splats(place, sheet(2.0 + beyond), "sheet"), ("rgb", "depth", "splat_alpha"))
    on = np.isfinite(image["depth"])
    assert (image["splat_alpha"][on] > 0.9).all() == shown
    assert (image["splat_alpha"][~on] > 0.9).all()
    bare = look(place, ("rgb",))["rgb"]
    assert np.array_equal(image["rgb"][on], bare[on]) != shown


def test_what_is_covered_shows_through_gaps_and_ghosts_do_not() -> None:
    far = sheet(6.0, half=0.3)
    shell = look(add_splats(box_scene(2.0, covered=True), far, "far"))
    assert np.abs(shell["rgb"][16, 24] - RED).max() < 1e-2
    ghost = look(add_splats(box_scene(2.0, covered=True, visible=False), far, "far"), ("rgb", "depth", "albedo", "splat_depth"))
    assert ghost["depth"][16, 24] == pytest.approx(2.0, abs=1e-5)
    assert np.abs(display_from_linear(ghost["rgb"][16, 24]) - GREEN).max() < 1e-2  # through the box, not behind it
    assert ghost["splat_depth"][16, 24] == pytest.approx(6.0, abs=1e-3)
    sky = look(Scene("empty", lights=(), sky=DARK), ("rgb",))["rgb"]
    assert np.array_equal(ghost["rgb"][2, 24], sky[2, 24])


def test_a_surface_of_splats_does_not_cut_what_is_behind_its_cells() -> None:
    """Cells reach beyond what they stand for; what is seen past its edge is as without them."""
    ball = gaussians(np.random.default_rng(3).normal(0.0, 0.1, (400, 3)), 0.03)
    place = add_splats(Scene("place", lights=(), sky=DARK), ball, "ball", (2.0, 0.0, 0.0))
    place = add_splats(place, transformed(sheet(4.0), translation=(0.0, 0.0, 0.0)), "sheet")
    bare, image = look(place), look(with_surface(place, 0.1))
    assert np.array_equal(bare["rgb"], image["rgb"])
    assert np.isinf(bare["depth"]).all()
    assert image["depth"][16, 24] == pytest.approx(1.8, abs=0.2)


# ---- what stays as it was -----------------------------------------------------------------------------------------------


def test_scenes_without_splats_cost_and_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = box_scene(2.0)
    alone = look(plain, ("rgb", "grey", "depth", "splat_alpha", "splat_depth"))
    assert (alone["splat_alpha"] == 0.0).all()
    assert np.isinf(alone["splat_depth"]).all()
    both = SceneBatch([plain, add_splats(plain, sheet(1.0), "sheet")], 2)
    beside = render(both, TABLE, np.zeros((2, 3)), np.repeat(AHEAD, 2, 0), None, ("rgb", "grey", "depth"))
    for name in ("rgb", "grey", "depth"):
        assert np.array_equal(beside[name][0], alone[name])
    assert not np.array_equal(beside["rgb"][1], alone["rgb"])
    monkeypatch.setattr("airworthy.rendering.images.overlaid", None)
    assert np.array_equal(look(plain)["rgb"], alone["rgb"])


def test_pictures_do_not_depend_on_other_environments() -> None:
    """Bytes of one camera alone, and of the same among seven others in three scenes."""
    rng = np.random.default_rng(5)
    one = add_splats(box_scene(2.0), sheet(3.0, 0.4), "sheet")
    two = add_splat_actor(box_scene(1.5), Actor("cart", (), position=(2.0, 0.3, 0.0)), sheet(0.0, 0.5, 0.4), 0.1)
    batch = SceneBatch([one, two, box_scene(2.0)], 8)
    position, env = rng.normal(0.0, 0.3, (8, 3)), np.arange(8)
    images = render(batch, TABLE, position, np.repeat(AHEAD, 8, 0), env, ("rgb", "splat_alpha"))
    for k in range(3):
        single = SceneBatch([one, two, box_scene(2.0)][k])
        again = render(single, TABLE, position[k : k + 1], AHEAD, [0], ("rgb", "splat_alpha"))
        for name, image in again.items():
            assert np.array_equal(image[0], images[name][k]), (k, name)


# ---- the space of colours -----------------------------------------------------------------------------------------------


def test_bytes_of_splats_come_back_as_they_are() -> None:
    """Every grey shows as itself through the tone curve; pure bright colours, which it shows of nothing, nearly so."""
    levels = np.arange(256) / 255.0
    grey = to_8bit(linear_from_display(np.repeat(levels[:, None], 3, 1)))
    assert np.abs(grey - np.arange(256)[:, None]).max() <= 1
    rng = np.random.default_rng(2)
    colors = rng.random((20000, 3))
    error = np.abs(to_8bit(linear_from_display(colors)) - 255.0 * colors).max(-1)
    assert error[colors.max(-1) < 0.85].max() <= 1.0  # under the shoulder (0.7 linear)
    assert error.max() <= 40.0
    assert error.mean() < 3.0


@given(st.lists(st.floats(0.0, 2.0), min_size=3, max_size=3))
def test_the_curves_have_an_inverse(color: list[float]) -> None:
    there = display_from_linear(np.array(color, np.float32))
    back = linear_from_display(there)
    # Tables round encoded values to 5e-5 on the way there and 3e-5 on the way back; sRGB's slope is at most 2.3, and above the
    # shoulder the curve flattens by exp(-(x - 0.7) / 0.3), by which what is rounded counts for more.
    assert np.abs(back - color).max() <= 2e-4 * math.exp(max(max(color) - 0.7, 0.0) / 0.3)


def test_the_kernel_mixes_as_the_curves_say() -> None:
    """The native blend against NumPy's curves: up to three times white behind, and over it no, some, all splats."""
    rng = np.random.default_rng(4)
    color, behind = 1.1 * rng.random((3, 40, 77, 3), np.float32), 3.0 * rng.random((3, 40, 77, 3), np.float32) ** 2
    alpha = rng.random((3, 40, 77), np.float32)
    alpha[0], alpha[1, :20] = 0.0, 1.0
    mixed = color.copy()
    mixed[alpha < 1.0] += (1.0 - alpha[alpha < 1.0])[:, None] * display_from_linear(behind[alpha < 1.0])
    expected = linear_from_display(mixed)
    found = blended(color, alpha, behind)
    assert np.array_equal(found[0], behind[0])
    # Sums round differently, so that an index of a table may be the next one: 6e-5 of full scale in what is shown.
    assert np.abs(display_from_linear(found[1:]) - display_from_linear(expected[1:])).max() < 2e-4
    assert np.array_equal(found[2:], blended(color[2:], alpha[2:], behind[2:]))
    assert np.isfinite(blended(np.full_like(color, np.nan), alpha, behind)).all()


def test_a_scene_and_its_splats_are_dimmed_alike() -> None:
    place = add_splats(box_scene(2.0), sheet(3.0, 0.9), "sheet")
    full, dim = look(place, ("rgb",))["rgb"], look(relit(place, 0.4), ("rgb",))["rgb"]
    # The box exactly. The sheet: what passes it is mixed as pictures show it, and what is dark is off by the toe of the curve.
    on = np.isfinite(look(place)["depth"])
    assert dim[on] == pytest.approx(0.4 * full[on], rel=1e-5)
    assert np.abs(dim[~on] - 0.4 * full[~on]).max() < 0.01


# ---- what moves ---------------------------------------------------------------------------------------------------------


def test_clouds_ride_on_actors() -> None:
    path = (Waypoint(0.0, (2.0, -1.0, 0.0)), Waypoint(2.0, (2.0, 1.0, 0.0), (0.0, 0.0, 0.6, 0.8)))
    cloud = sheet(0.0, 0.9, 0.3)
    place = add_splat_actor(box_scene(4.0), Actor("cart", (), "scripted", path=path), cloud, 0.05)
    place = replace(place, splats=(replace(place.splats[0], scale=0.7),))
    batch = SceneBatch(place, 2)
    for time in (0.0, 0.9, 2.0):
        batch.advance([time, 0.0])
        position, attitude = batch.actor_pose("cart", [0])
        still = add_splats(box_scene(4.0), transformed(cloud, attitude[0], position[0], 0.7), "still")
        moving, stood = look(batch, ("rgb", "splat_alpha")), look(still, ("rgb", "splat_alpha"))
        # A dynamic instance is projected from its own frame: poses combine in another order, a few float32 roundings apart.
        assert np.abs(display_from_linear(moving["rgb"]) - display_from_linear(stood["rgb"])).max() < 2e-3
    assert look(batch, ("depth",))["depth"].min() < 3.0  # its surface is there, too


def test_vehicles_hide_splats_and_are_hidden() -> None:
    from airworthy.geometry import Placement

    body = Placement.of(shape=[0], collide=[False], instance_id=[60000])
    place = add_splats(Scene("place", lights=(), sky=DARK), sheet(3.0), "sheet")
    batch = SceneBatch(place, 1, extra_dynamic_instances=body, extra_shapes=[Box((0.2, 0.2, 0.2))])
    for x, hidden in ((2.0, True), (5.0, False)):
        batch.pose_dynamic_instances([[[x, 0.0, 0.0]]], [[frames.IDENTITY]])
        image = look(batch, ("rgb", "instance_id", "splat_alpha"))
        assert image["instance_id"][16, 24] == 60000
        assert (image["splat_alpha"][16, 24] == 0.0) == hidden
        own = look(batch, ("rgb",), ignore=[batch.geometry.dynamic_start])
        assert np.abs(display_from_linear(own["rgb"][16, 24]) - GREEN).max() < 5e-3  # a camera's own body hides nothing


# ---- lenses and shutters ------------------------------------------------------------------------------------------------


def test_the_eye_of_a_table() -> None:
    assert eye_of(TABLE).projection == pytest.approx(LENS) or isinstance(eye_of(TABLE).projection, Pinhole)
    found = eye_of(TABLE).projection
    assert isinstance(found, Pinhole)
    assert [found.fx, found.fy, found.cx, found.cy] == pytest.approx([40.0, 40.0, 24.0, 16.0])
    part = eye_of(TABLE).rows(8, 20).projection
    assert isinstance(part, Pinhole)
    assert np.allclose(part.rays().directions, TABLE.directions[8:20], atol=1e-12)
    bent = Pinhole(48, 32, 40.0, 40.0, 24.0, 16.0, PlumbBob(-0.1, 0.02))
    assert eye_of(bent.rays(), bent).projection is bent
    unknown = bent.rays()
    assert eye_of(unknown).projection is unknown
    assert eye_of(LENS.rays(), bent).projection != bent  # what is said must be true
    wide = Fisheye.from_fov(40, 30, 3.0)
    assert eye_of(wide.rays(), wide).projection is wide
    shifted = RayTable(TABLE.directions, np.broadcast_to([0.1, 0.0, -0.2], TABLE.directions.shape))
    assert eye_of(shifted).offset == (0.1, 0.0, -0.2)
    odd = RayTable(TABLE.directions, np.random.default_rng(0).normal(size=TABLE.directions.shape))
    with pytest.raises(AirworthyError, match="parallel"):
        eye_of(odd)


def test_parallel_rays_see_splats_where_they_are() -> None:
    """Straight down at 0.05 m per pixel: three small gaussians at known places, one below a box."""
    u, v = np.meshgrid(0.05 * (np.arange(64) - 31.5), 0.05 * (np.arange(48) - 23.5))
    table = RayTable(np.broadcast_to((0.0, 0.0, 1.0), (48, 64, 3)), np.stack([u, v, np.zeros_like(u)], -1))
    down = np.array([[1.0, 0.0, 0.0, 0.0]])
    dots = gaussians([[0.025, 0.025, 1.0], [1.025, 0.525, 3.0], [-0.5, -0.5, 0.5]], 0.05)
    roof = Instance("box", (-0.5, -0.5, 1.0), materials=("red",))
    place = add_splats(replace(box_scene(0.0), instances=(roof,)), dots, "dots")
    images = render(SceneBatch(place), table, np.array([[0.0, 0.0, 5.0]]), down, [0], ("splat_alpha", "splat_depth", "depth"))
    alpha, depth = images["splat_alpha"][0], images["splat_depth"][0]
    for x, y, z in ((0.025, 0.025, 1.0), (1.025, 0.525, 3.0)):
        column, row = round(x / 0.05 + 31.5), round(-y / 0.05 + 23.5)
        assert alpha[row, column] > 0.6
        assert depth[row, column] == pytest.approx(5.0 - z, abs=1e-2)  # float32 of an eye 320 m away
    assert alpha[round(0.5 / 0.05 + 23.5), round(-0.5 / 0.05 + 31.5)] == 0.0


def sensor(**fields: Any) -> Camera:
    return Camera(Device("cam", "camera", LENS, channels=("rgb",), rate=10.0, **fields))


def views(count: int) -> list[SensorView]:
    """A camera that yaws and climbs from image to image."""
    made = []
    for k in range(count):
        turn = np.array([[0.0, 0.0, math.sin(0.04 * k), math.cos(0.04 * k)]])
        made.append(SensorView(np.array([[0.0, 0.0, 0.02 * k]]), turn, np.zeros(1, np.intp)))
    return made


def busy() -> Scene:
    rng = np.random.default_rng(8)
    where = np.stack([rng.uniform(2.0, 4.0, 300), rng.uniform(-2.0, 2.0, 300), rng.uniform(-1.0, 1.0, 300)], -1)
    cloud = merged([gaussians(where[k : k + 1], 0.06, rng.random(3), 0.95) for k in range(300)])
    return add_splats(box_scene(2.5), cloud, "dots")


def test_a_rolling_shutter_that_stands_still_is_none() -> None:
    batch = SceneBatch(busy())
    view = SensorView(HERE, np.array([frames.IDENTITY]), np.zeros(1, np.intp))
    still = sensor().capture(batch, view)["rgb"]
    rolled = sensor(realism=Realism(rolling_shutter=RollingShutter(0.9))).capture(batch, view)["rgb"]
    assert np.array_equal(still, rolled)


def test_rows_of_a_rolling_shutter_are_of_their_own_instant() -> None:
    batch = SceneBatch(busy())
    rolling = sensor(realism=Realism(rolling_shutter=RollingShutter(1.0)))
    first, last = views(2)
    rolling.capture(batch, first)
    image = display_from_linear(rolling.capture(batch, last)["rgb"][0])
    off = []
    for row in (2, 15, 29):
        share = 1.0 - (31 - row) / 32
        turn = np.array([[0.0, 0.0, math.sin(0.04 * share), math.cos(0.04 * share)]])
        then = SensorView(np.array([[0.0, 0.0, 0.02 * share]]), turn, np.zeros(1, np.intp))
        exact = display_from_linear(sensor().capture(batch, then)["rgb"][0])
        off.append(np.abs(image[row] - exact[row]).mean())
    now = display_from_linear(sensor().capture(batch, last)["rgb"][0])
    # A band turns by up to a pixel, its rows by half of that from its middle; the top row is a whole frame (3.2 px) older.
    assert max(off) < 0.04
    assert np.abs(image[2] - now[2]).mean() > 3.0 * off[0]


def test_motion_blur_is_the_mean_of_instants() -> None:
    batch = SceneBatch(busy())
    blurred = sensor(realism=Realism(motion_blur=MotionBlur(1.0, 4)))
    first, last = views(2)
    blurred.capture(batch, first)
    image = blurred.capture(batch, last)["rgb"]
    total = np.zeros_like(image)
    for number in range(4):
        share = (number + 0.5) / 4
        turn = np.array([[0.0, 0.0, math.sin(0.04 * share), math.cos(0.04 * share)]])
        total += sensor().capture(batch, SensorView(np.array([[0.0, 0.0, 0.02 * share]]), turn, np.zeros(1, np.intp)))["rgb"]
    assert np.abs(image - total / 4).max() < 1e-3  # spherical and linear interpolation differ by 1e-6 rad here


def test_depth_of_field_is_gathered_where_there_are_splats() -> None:
    lens = DepthOfField(1.4, 0.5, 24e-3, 16, "lens")
    view = SensorView(HERE, np.array([frames.IDENTITY]), np.zeros(1, np.intp))
    two = SceneBatch([busy(), box_scene(2.5)], 2)
    pair = SensorView(np.zeros((2, 3)), np.tile(frames.IDENTITY, (2, 1)), np.arange(2))
    by_rays, gather = (
        sensor(realism=Realism(depth_of_field=lens)),
        sensor(realism=Realism(depth_of_field=replace(lens, method="gather"))),
    )
    images = by_rays.capture(two, pair)["rgb"]
    assert np.array_equal(images[0], gather.capture(SceneBatch(busy()), view)["rgb"][0])
    assert np.array_equal(images[1], by_rays.capture(SceneBatch(box_scene(2.5)), view)["rgb"][0])


@pytest.mark.parametrize(
    "lens", [Pinhole(64, 48, 50.0, 50.0, 32.0, 24.0, PlumbBob(-0.15, 0.03)), Fisheye.from_fov(64, 48, 2.6)]
)
def test_lenses_that_bend(lens: Any) -> None:
    """Small gaussians appear where the projection says; what a box hides is hidden."""
    where = np.array([[2.0, 0.9, 0.4], [2.0, -1.2, -0.6], [3.0, 0.0, 0.0]])
    place = add_splats(box_scene(1.5), gaussians(where, 0.03, opacity=0.95), "dots")
    images = render(SceneBatch(place), lens.rays(), HERE, AHEAD, [0], ("splat_alpha",), projection=lens)["splat_alpha"][0]
    pixel, inside = lens.project(frames.rotate_inverse(AHEAD[0], where))
    assert inside.all()
    for k in range(2):
        column, row = (int(v) for v in pixel[k])
        patch = images[row - 2 : row + 3, column - 2 : column + 3]
        weight = patch / patch.sum()
        middle = [
            (weight * (np.arange(row - 2, row + 3)[:, None] + 0.5)).sum(),
            (weight * (np.arange(column - 2, column + 3) + 0.5)).sum(),
        ]
        assert middle == pytest.approx([pixel[k][1], pixel[k][0]], abs=0.35)
    assert images[int(pixel[2][1]), int(pixel[2][0])] == 0.0


# ---- flights ------------------------------------------------------------------------------------------------------------


def test_a_pilot_sees_splats(tmp_path: Path) -> None:
    from airworthy.pilots import FlightPlan, fly
    from airworthy.scenes import scene
    from airworthy.simulation import Contact, MountedSensor, MountedSensors, Simulator, SimulatorConfig
    from airworthy.vehicles import vehicle

    write_splats(sheet(3.0, 0.9, 1.0), tmp_path / "wall.spz")
    place = scene(tmp_path / "wall.spz")
    assert place.start is not None
    batch = SceneBatch(place, 2)
    config = SimulatorConfig(level="velocity", contact=Contact("freeze"))
    simulator = Simulator(vehicle("carl"), config, env_count=2, geometry=batch.geometry)
    simulator.reset(position=place.start.position)
    mounted = MountedSensors(simulator, batch, {"cam": MountedSensor("d435", channels=("rgb", "splat_alpha"))})
    coverage: list[float] = []

    class Watcher:
        name, level, observes = "watcher", "velocity", ("sensor:cam",)

        def command(self, observation: Any) -> Array:
            coverage.append(float(observation.sample("cam")["splat_alpha"].mean()))
            return np.zeros((2, 4))

    fly(simulator, Watcher(), FlightPlan(0.3), mounted=mounted)
    assert len(coverage) >= 6
    assert coverage[-1] > 0.01
    data = mounted.latest("cam").data
    assert data["rgb"].shape == (2, 360, 640, 3)
    assert np.array_equal(data["rgb"][0], data["rgb"][1])


def test_fly_in_a_splat_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line, end to end: a file, a camera, contact."""
    from PIL import Image

    from airworthy.cli.main import main
    from airworthy.scenes import scene

    rng = np.random.default_rng(1)
    write_splats(gaussians(rng.normal(0.0, 0.3, (500, 3)), 0.05, rng.random((500, 3))), tmp_path / "ball.spz")
    monkeypatch.chdir(tmp_path)
    start = scene("ball.spz").start
    assert start is not None
    waypoints = [",".join(f"{v:g}" for v in np.add(start.position, (0.0, 0.0, rise))) for rise in (0.0, 0.4)]
    command = ["fly", "--scene", "ball.spz", "--sensors", "cam=d435:rgb", "--contact", "freeze", "--out", "run", "--hold", "0"]
    assert main([*command, "--waypoints", *waypoints]) == 0
    images = sorted(Path("run/sensors/cam").rglob("*.png"))
    assert len(images) > 10
    assert any(np.asarray(Image.open(path).convert("L")).std() > 20.0 for path in images[:10])
