"""Colours against closed forms, and the promises of the kernel: lanes, order, environments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.core.frames import camera_attitude, from_euler
from airworthy.geometry import Box, Mesh, RayTable, Sphere
from airworthy.optics.projections import Pinhole
from airworthy.rendering import shading
from airworthy.rendering.shading import HIT_CHANNELS, Cameras, ShadingOptions, shade, shade_channels
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.lights import sky_irradiance, sky_radiance
from airworthy.scenes.record import (
    Actor,
    Instance,
    Material,
    PointLight,
    Scene,
    Sky,
    SpotLight,
    Sun,
    Texture,
)

BLACK = Sky((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
WHITE = Sky((1.0, 1.0, 1.0), (1.0, 1.0, 1.0), (1.0, 1.0, 1.0))
LAMBERT = ShadingOptions(specular=False, sun_disc=False)
GREY = Material((0.5, 0.4, 0.3, 1.0))
FLOOR = {"floor": Box((50.0, 50.0, 0.5))}
ON_FLOOR = (Instance("floor", (0.0, 0.0, -0.5), materials=("m",)),)
# Single precision, a dozen operations: a few parts in 1e6; positions on the floor carry 1e-6 m.
CLOSE = {"rtol": 2e-5, "atol": 1e-6}


def place(**parts: Any) -> SceneBatch:
    """A batch of one scene: a grey floor at z = 0 under a black sky, and what is given."""
    given: dict[str, Any] = {"shapes": FLOOR, "materials": {"m": GREY}, "instances": ON_FLOOR, "lights": (), "sky": BLACK}
    return SceneBatch(Scene("test", **{**given, **parts}))


def down(points: Any, batch: SceneBatch, options: ShadingOptions = LAMBERT, height: float = 2.0) -> np.ndarray:
    """Colours (n, 3) seen from straight above points (n, 2) of the floor."""
    xy = np.asarray(points, float).reshape(-1, 2)
    position = np.concatenate([xy, np.full((len(xy), 1), height)], 1)
    table = RayTable(np.array([[[0.0, 0.0, -1.0]]]))
    return shade(batch, table, position, np.tile([0.0, 0.0, 0.0, 1.0], (len(xy), 1)), np.zeros(len(xy), int), options)[:, 0, 0]


# ---- closed forms -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("angle", [0.0, 0.4, 1.2])
def test_a_lambertian_floor_under_the_sun_sends_albedo_over_pi_times_irradiance_times_cosine(angle: float) -> None:
    sun = Sun((np.sin(angle), 0.0, -np.cos(angle)), (1.0, 0.9, 0.8), 3.0)
    expected = np.array([0.5, 0.4, 0.3]) / np.pi * 3.0 * np.array([1.0, 0.9, 0.8]) * np.cos(angle)
    np.testing.assert_allclose(down([[0.3, -0.2]], place(lights=(sun,)))[0], expected, **CLOSE)


def test_a_point_light_falls_with_the_square_of_the_distance_and_fades_at_its_range() -> None:
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 3.0], [7.9, 0.0], [9.0, 0.0]])
    square = np.sum(points**2, 1) + 1.5**2
    expected = 0.5 / np.pi * 10.0 / square * 1.5 / np.sqrt(square)
    np.testing.assert_allclose(down(points, place(lights=(PointLight((0.0, 0.0, 1.5)),)))[:, 0], expected, rtol=2e-4)
    window = np.clip(1.0 - (square / 64.0) ** 2, 0.0, 1.0) ** 2
    ranged = place(lights=(PointLight((0.0, 0.0, 1.5), range=8.0),))
    np.testing.assert_allclose(down(points, ranged)[:, 0], expected * window, rtol=2e-4, atol=1e-7)


def test_a_spot_light_is_full_inside_and_nothing_outside_its_cone() -> None:
    lamp = SpotLight((0.0, 0.0, 2.0), (0.0, 0.0, -1.0), inner_angle=0.3, outer_angle=0.5)
    inside, outside = down([[0.3, 0.0], [2.0 * np.tan(0.51), 0.0]], place(lights=(lamp,)), height=1.0)
    square = 0.09 + 4.0
    np.testing.assert_allclose(inside[0], 0.5 / np.pi * 20.0 / square * 2.0 / np.sqrt(square), rtol=2e-4)
    assert (outside == 0.0).all()


def test_the_edge_of_a_shadow_lies_where_the_sun_puts_it() -> None:
    shapes = {**FLOOR, "plate": Box((1.0, 1.0, 0.05))}
    plate = Instance("plate", (0.0, 0.0, 2.05), materials=("m",))  # its lower face at z = 2
    sun = Sun((np.sin(0.5), 0.0, -np.cos(0.5)), irradiance=3.0)
    batch = place(shapes=shapes, instances=(*ON_FLOOR, plate), lights=(sun,))
    edge = -1.0 + 2.0 * np.tan(0.5)  # of the lower edge at x = -1
    points = [[edge - 2e-3, 0.0], [edge + 2e-3, 0.0]]
    lit, dark = down(points, batch, height=1.0)
    assert lit[0] > 0.3
    assert dark[0] == 0.0
    assert down(points, batch, ShadingOptions(shadows=False, specular=False), 1.0)[1, 0] > 0.3
    assert down(points, batch, ShadingOptions(shadow_distance=0.5, specular=False), 1.0)[1, 0] > 0.3


def test_the_sky_is_a_gradient_and_lights_a_floor_by_its_integral() -> None:
    sky = Sky(intensity=1.3)
    batch = place(sky=sky, instances=())
    directions = np.array([[[0.0, 0.6, 0.8], [1.0, 0.0, 0.0], [0.6, 0.0, -0.8], [0.0, 0.99995, -0.01]]])
    radiance = shade(batch, RayTable(directions), [[0.0, 0.0, 1.0]], [[0.0, 0.0, 0.0, 1.0]], options=LAMBERT)[0, 0]
    np.testing.assert_allclose(
        radiance, sky_radiance(sky, directions[0] / np.linalg.norm(directions[0], axis=-1)[:, None]), rtol=1e-4
    )
    # Radiance h + (z - h) sqrt(cos): the cosine-weighted mean of the root is 4 / 5.
    closed = np.pi * 1.3 * (0.2 * np.array(sky.horizon) + 0.8 * np.array(sky.zenith))
    np.testing.assert_allclose(sky_irradiance(sky, 1.0), closed, rtol=1e-5)
    np.testing.assert_allclose(down([[0.0, 0.0]], place(sky=sky))[0], np.array([0.5, 0.4, 0.3]) / np.pi * closed, rtol=1e-4)


def test_irradiance_of_a_tilted_surface_is_the_integral_over_its_hemisphere() -> None:
    sky, rng = Sky(), np.random.default_rng(0)
    d = rng.standard_normal((400_000, 3))
    d /= np.linalg.norm(d, axis=1, keepdims=True)
    n = np.array([0.8, 0.0, 0.6])
    brute = (sky_radiance(sky, d) * np.maximum(d @ n, 0.0)[:, None]).mean(0) * 4.0 * np.pi
    np.testing.assert_allclose(sky_irradiance(sky, 0.6), brute, rtol=5e-3)  # Monte Carlo: 4e5 samples


@pytest.mark.parametrize(
    "material", [Material((1.0, 1.0, 1.0, 1.0), roughness=r, metallic=m) for r in (0.1, 0.5, 1.0) for m in (0.0, 1.0)]
)
def test_a_white_furnace_gives_back_what_it_sends(material: Material) -> None:
    batch = place(
        shapes={"ball": Sphere(1.0)}, instances=(Instance("ball", materials=("m",)),), materials={"m": material}, sky=WHITE
    )
    directions = np.array([[[x, 0.0, -1.0] for x in np.linspace(0.0, 0.55, 12)]])
    radiance = shade(
        batch, RayTable(directions), [[0.0, 0.0, 2.0]], [[0.0, 0.0, 0.0, 1.0]], options=ShadingOptions(sun_disc=False)
    )
    # White surfaces under white light vanish: no more than rounding and the table of irradiance is lost or made.
    np.testing.assert_allclose(radiance, 1.0, atol=2e-3)


def test_gloss_does_not_send_more_than_arrives() -> None:
    lamp = Sun((0.0, 0.0, -1.0), irradiance=1.0, color=(1.0, 1.0, 1.0))
    k = np.arange(4000) + 0.5
    z = np.sqrt(1.0 - k / 4000)  # cosine-weighted hemisphere of views: its mean radiance times pi is what leaves
    a = k * 2.399963
    views = np.stack([np.cos(a) * np.sqrt(1 - z * z), np.sin(a) * np.sqrt(1 - z * z), z], -1)
    for roughness in (0.2, 0.5, 1.0):
        batch = place(lights=(lamp,), materials={"m": Material((1.0, 1.0, 1.0, 1.0), roughness=roughness, metallic=0.0)})
        table = RayTable(-views[None], origins=5.0 * views[None])
        radiance = shade(batch, table, [[0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 1.0]], options=ShadingOptions(sun_disc=False))[
            0, 0, :, 0
        ]
        assert 0.85 < np.pi * radiance.mean() < 1.05


# ---- textures and normals ---------------------------------------------------------------------------------------------------


def quad(uv: Any = None) -> Mesh:
    """Unit square in z = 0, u along x, v along -y (the image's top is at y = 1)."""
    vertices = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], np.float32)
    return Mesh(
        vertices, np.array([[0, 1, 2], [0, 2, 3]]), uv=np.stack([vertices[:, 0], 1 - vertices[:, 1]], -1) if uv is None else uv
    )


def textured(material: Material, pixels: np.ndarray, srgb: bool = True, **parts: Any) -> SceneBatch:
    given = {"shapes": {"quad": quad()}, "instances": (Instance("quad", materials=("m",)),), "materials": {"m": material}}
    return place(textures={"t": Texture(pixels, srgb)}, **{**given, **parts})


def channel(batch: SceneBatch, points: Any, name: str, height: float = 0.01, options: ShadingOptions = LAMBERT) -> np.ndarray:
    """A channel (n, 3) of floor points (n, 2) seen from close above."""
    xy = np.asarray(points, float).reshape(-1, 2)
    position = np.concatenate([xy, np.full((len(xy), 1), height)], 1)
    table = RayTable(np.array([[[0.0, 0.0, -1.0]]]))
    cameras = Cameras.of(batch, table, position, np.tile([0.0, 0.0, 0.0, 1.0], (len(xy), 1)), np.zeros(len(xy), int))
    return shade_channels(batch, table, cameras, (name,), options)[name][:, 0, 0]


@pytest.mark.parametrize("srgb", [True, False])
def test_texels_are_met_at_their_centres_and_mixed_between(srgb: bool) -> None:
    rng = np.random.default_rng(3)
    pixels = rng.integers(0, 256, (4, 8, 3), dtype=np.uint8)
    batch = textured(Material((1.0, 1.0, 1.0, 1.0), base_color_map="t"), pixels, srgb)
    row, column = np.meshgrid(np.arange(4), np.arange(8), indexing="ij")
    xy = np.stack([(column + 0.5) / 8, 1.0 - (row + 0.5) / 4], -1).reshape(-1, 2)
    value = pixels / 255.0
    linear = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4) if srgb else value
    # Nine bits of the square root: half a count is 1/1020 of the root, twice that of the value.
    np.testing.assert_allclose(channel(batch, xy, "albedo"), linear.reshape(-1, 3), atol=2.1e-3)
    between = channel(batch, [[2.0 / 8, 1.0 - 1.5 / 4]], "albedo")[0]
    np.testing.assert_allclose(between, 0.5 * (linear[1, 1] + linear[1, 2]), atol=2.1e-3)


def test_a_texture_far_away_is_its_mean_and_nearby_is_not() -> None:
    pixels = np.indices((64, 64)).sum(0) % 2 * np.uint8(255)
    batch = textured(Material((1.0, 1.0, 1.0, 1.0), base_color_map="t"), pixels[..., None].astype(np.uint8), False)
    cam = Pinhole.from_fov(16, 16, vertical=0.5)
    look_down = np.array([[1.0, 0.0, 0.0, 0.0]])
    cameras = Cameras.of(batch, cam.rays(), [[0.5, 0.5, 1.9]], look_down)
    far = shade_channels(batch, cam.rays(), cameras, ("albedo",), LAMBERT)["albedo"][0]
    assert np.abs(far - 0.5).max() < 0.02
    near = channel(batch, [[0.5 / 64, 1 - 0.5 / 64], [1.5 / 64, 1 - 0.5 / 64]], "albedo")[:, 0]
    np.testing.assert_allclose(near, [0.0, 1.0], atol=1e-3)


@pytest.mark.parametrize(("wrap", "expected"), [("repeat", 0.0), ("clamp", 1.0), ("mirror", 1.0)])
def test_textures_wrap(wrap: Any, expected: float) -> None:
    pixels = np.array([[[0], [255]]], np.uint8)
    mesh = quad(np.array([[0, 0], [2, 0], [2, 1], [0, 1]], np.float32))
    scene = {"shapes": {"quad": mesh}, "instances": (Instance("quad", materials=("m",)),)}
    material = Material((1.0, 1.0, 1.0, 1.0), base_color_map="t")
    batch = place(textures={"t": Texture(pixels, False, wrap)}, materials={"m": material}, **scene)
    np.testing.assert_allclose(channel(batch, [[0.625, 0.5]], "albedo")[0, 0], expected, atol=1e-6)  # u = 1.25


@pytest.mark.parametrize(("code", "expected"), [((191, 128, 238), (0.5, 0.0, 0.866)), ((128, 191, 238), (0.0, 0.5, 0.866))])
def test_a_normal_map_tilts_right_with_red_and_up_with_green(code: Any, expected: Any) -> None:
    pixels = np.broadcast_to(np.array(code, np.uint8), (4, 4, 3))
    by_uv = textured(Material(normal_map="t"), pixels, False)
    laid = textured(Material(normal_map="t", texture_size=0.5), pixels, False)
    box = textured(Material(normal_map="t"), pixels, False, shapes={"quad": Box((1.0, 1.0, 0.5))})
    for batch, height in ((by_uv, 0.5), (laid, 0.5), (box, 1.0)):
        # Eight bits: 1/128, and 1/2^15 of a turn for the tangent.
        np.testing.assert_allclose(channel(batch, [[0.3, 0.4]], "normal", height)[0], expected, atol=1e-2)


def test_a_mesh_and_solids_have_the_same_laid_texture_and_upright_walls() -> None:
    pixels = np.zeros((2, 1, 1), np.uint8)
    pixels[0] = 255  # the top half is white
    box = {"shapes": {"quad": Box((1.0, 1.0, 0.5))}, "instances": (Instance("quad", materials=("m",)),)}
    batch = textured(Material((1.0, 1.0, 1.0, 1.0), base_color_map="t", texture_size=1.0), pixels, False, **box)
    for direction in ((1.0, 0.0, 0.0), (-1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, -1.0, 0.0)):
        table = RayTable(np.array([[direction]]))
        start = -1.01 * np.array(direction)
        # v = -z: 0.25 is three quarters down a repeat, below its middle
        poses = start + np.array([[0.0, 0.0, 0.25], [0.0, 0.0, -0.25]])
        cameras = Cameras.of(batch, table, poses, np.tile([0.0, 0.0, 0.0, 1.0], (2, 1)), [0, 0])
        upper, lower = shade_channels(batch, table, cameras, ("albedo",), LAMBERT)["albedo"][:, 0, 0, 0]
        assert upper < 0.02
        assert lower > 0.98


def test_roughness_and_metal_come_from_green_and_blue_and_occlusion_dims_only_the_sky() -> None:
    pixels = np.zeros((2, 2, 3), np.uint8)  # roughness 0, metallic 0, occlusion 0
    material = Material((0.5, 0.5, 0.5, 1.0), occlusion_map="t")
    sun = Sun((0.0, 0.0, -1.0), (1.0, 1.0, 1.0), 2.0)
    dim = channel(textured(material, pixels, False, sky=WHITE, lights=(sun,)), [[0.5, 0.5]], "rgb")[0, 0]
    np.testing.assert_allclose(dim, 0.5 / np.pi * 2.0, **CLOSE)
    rough = Material((0.0, 0.0, 0.0, 1.0), metallic=1.0, roughness=1.0, metallic_roughness_map="t")
    pixels[..., 1] = 255
    black_dielectric = channel(textured(rough, pixels, False, sky=WHITE), [[0.5, 0.5]], "rgb", options=ShadingOptions())[0, 0]
    assert 0.005 < black_dielectric < 0.06  # metal is off by the map: only the four per cent of a dielectric


def test_vertex_colors_and_detail_multiply() -> None:
    mesh = Mesh(quad().vertices, quad().faces, uv=quad().uv, colors=np.tile(np.float32([0.25, 1.0, 0.5, 1.0]), (4, 1)))
    pixels = np.full((2, 2, 3), 64, np.uint8)
    parts = {"shapes": {"quad": mesh}}
    material = Material((0.8, 0.8, 0.8, 1.0), detail_map="t")
    albedo = channel(textured(material, pixels, False, **parts), [[0.4, 0.4]], "albedo")[0]
    np.testing.assert_allclose(albedo, 0.8 * np.array([0.25, 1.0, 0.5]) * 2 * 64 / 255, rtol=5e-3)


def test_emission_shines_in_the_dark() -> None:
    batch = place(materials={"m": Material((0.0, 0.0, 0.0, 1.0), emissive=(3.0, 2.0, 1.0))})
    np.testing.assert_allclose(down([[0.0, 0.0]], batch)[0], [3.0, 2.0, 1.0], rtol=1e-6)


def test_cut_out_materials_are_holes_for_eyes_and_for_colours() -> None:
    pixels = np.full((2, 2, 4), 255, np.uint8)
    pixels[:, 0, 3] = 0  # the left half is a hole
    shapes = {**FLOOR, "quad": quad()}
    cut = Material((0.0, 0.0, 0.0, 1.0), base_color_map="t", alpha_cutoff=0.5)
    lifted = Instance("quad", (0.0, 0.0, 1.0), materials=("cut",))
    glow = Material((0.0, 0.0, 0.0, 1.0), emissive=(1.0, 1.0, 1.0))
    batch = place(
        shapes=shapes, instances=(*ON_FLOOR, lifted), materials={"m": glow, "cut": cut}, textures={"t": Texture(pixels)}
    )
    through, stopped = down([[0.2, 0.5], [0.8, 0.5]], batch)[:, 0]
    assert through == 1.0
    assert stopped == 0.0


def test_a_mirror_shows_the_box_behind_the_eye() -> None:
    shapes = {"mirror": Box((0.1, 5.0, 5.0)), "target": Box((0.5, 0.5, 0.5))}
    materials = {
        "m": Material((1.0, 1.0, 1.0, 1.0), metallic=1.0, roughness=0.03),
        "t": Material((0.0, 0.0, 0.0, 1.0), emissive=(0.0, 2.0, 0.0)),
    }
    instances = (Instance("mirror", (2.1, 0.0, 0.0), materials=("m",)), Instance("target", (-3.0, 0.0, 0.0), materials=("t",)))
    batch = place(shapes=shapes, materials=materials, instances=instances)
    # The image of the box's face at x = -2.5 lies at x = 6.5; half its width is 0.5.
    inside, outside = (np.array([6.5, y, 0.0]) for y in (0.49, 0.51))
    table = RayTable(np.stack([inside, outside])[None])
    args = (batch, table, [[0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 1.0]])
    green = shade(*args, options=ShadingOptions(reflections=True, sun_disc=False))[0, 0, :, 1]
    assert green[0] == pytest.approx(2.0, rel=0.02)  # a white mirror reflects all of it
    assert green[1] < 0.01
    assert shade(*args, options=ShadingOptions(sun_disc=False))[0, 0, 0, 1] == 0.0


# ---- lights that move, samples, promises ------------------------------------------------------------------------------------


def test_a_lamp_on_an_actor_moves_with_it() -> None:
    lamp = PointLight((0.0, 0.0, 0.0), (1.0, 1.0, 1.0), 10.0, attached="drone")
    actor = Actor("drone", (), position=(0.0, 0.0, 1.0))
    batch = place(lights=(lamp,), actors=(actor,))
    np.testing.assert_allclose(down([[0.0, 0.0]], batch, height=0.5)[0, 0], 0.5 / np.pi * 10.0, rtol=2e-4)
    batch.pose_actor("drone", (0.0, 0.0, 2.0))
    np.testing.assert_allclose(down([[0.0, 0.0]], batch, height=0.5)[0, 0], 0.5 / np.pi * 10.0 / 4.0, rtol=2e-4)


def room(index: int) -> Scene:
    """A small scene that differs by its number."""
    rng = np.random.default_rng(index)
    shapes = {**FLOOR, "ball": Sphere(0.6), "quad": quad()}
    instances = [*ON_FLOOR]
    for _ in range(4):
        x, y, z = rng.uniform(-2, 2, 3)
        instances.append(Instance("ball", (x, y, 1.0 + 0.3 * z), materials=("g",)))
        instances.append(Instance("quad", (y, x, 1.5), scale=0.7, materials=("t",)))
    materials = {
        "m": GREY,
        "g": Material((0.9, 0.5, 0.2, 1.0), metallic=0.7, roughness=0.2),
        "t": Material((1.0, 1.0, 1.0, 1.0), base_color_map="t", normal_map="n"),
    }
    textures = {
        "t": Texture(rng.integers(0, 256, (16, 16, 3), dtype=np.uint8)),
        "n": Texture(rng.integers(100, 156, (8, 8, 3), dtype=np.uint8), False),
    }
    lights = (Sun((-0.3, 0.4, -0.86)), PointLight((1.0, 0.0, 2.0 + index)))
    return Scene(f"room{index}", shapes, materials, textures, tuple(instances), lights=lights)


CAMERA = Pinhole.from_fov(37, 21, vertical=1.1)  # not a whole number of packets
ATTITUDE = camera_attitude(from_euler(0.0, 0.5, 0.3))


def visible_from(batch: SceneBatch, envs: Any, options: ShadingOptions) -> dict[str, np.ndarray]:
    count = len(envs)
    cameras = Cameras.of(batch, CAMERA.rays(), np.tile([-3.0, -1.0, 3.0], (count, 1)), np.tile(ATTITUDE, (count, 1)), envs)
    return shade_channels(batch, CAMERA.rays(), cameras, ("rgb", "albedo", "normal"), options)


EVERYTHING = ShadingOptions(reflections=True, samples=2)


def test_environments_permuted_give_permuted_images_bit_for_bit() -> None:
    scenes = [room(k) for k in range(5)]
    order = np.array([3, 0, 4, 1, 2])
    straight = visible_from(SceneBatch(scenes), np.arange(5), EVERYTHING)
    mixed = visible_from(SceneBatch([scenes[k] for k in order]), np.arange(5), EVERYTHING)
    for name, array in straight.items():
        np.testing.assert_array_equal(mixed[name], array[order])
        assert np.isfinite(array).all()
    alone = visible_from(SceneBatch(scenes[2]), [0], EVERYTHING)
    np.testing.assert_array_equal(alone["rgb"][0], straight["rgb"][2])


def test_threads_do_not_change_a_bit() -> None:
    one, two = (visible_from(SceneBatch(room(1), threads=k), [0], EVERYTHING)["rgb"] for k in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_the_form_of_a_gpu_gives_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    lanes = visible_from(SceneBatch(room(0)), [0], EVERYTHING)
    monkeypatch.setattr(shading, "_PREFIX", "#define SCALAR_PATH\n")
    scalar = visible_from(SceneBatch(room(0)), [0], EVERYTHING)
    for name, array in lanes.items():
        np.testing.assert_array_equal(scalar[name], array)


def test_known_hits_give_the_same_image_as_traced_ones() -> None:
    from airworthy.geometry import cast

    batch = SceneBatch(room(2))
    table = CAMERA.rays()
    cameras = Cameras.of(batch, table, [[-3.0, -1.0, 3.0]], [ATTITUDE])
    hits = cast(batch.geometry, table, [[-3.0, -1.0, 3.0]], [ATTITUDE], channels=HIT_CHANNELS)
    np.testing.assert_array_equal(
        shade_channels(batch, table, cameras, ("rgb",), hits=hits)["rgb"],
        shade_channels(batch, table, cameras, ("rgb",))["rgb"],
    )


def test_more_samples_smooth_an_edge() -> None:
    batch = place(
        materials={"m": Material((0.0, 0.0, 0.0, 1.0), emissive=(1.0, 1.0, 1.0))}, shapes={"floor": Box((1.0, 1.0, 0.5))}
    )
    cam = Pinhole.from_fov(64, 64, vertical=1.0)
    poses = ([[0.07, 0.03, 3.0]], [from_euler(np.pi, 0.0, 0.2)])
    image = shade(batch, cam.rays(), *poses, options=ShadingOptions(samples=8, specular=False))[0, ..., 0]
    values = np.unique(np.round(image * 8, 3))
    assert len(values) > 4
    np.testing.assert_allclose(values, np.round(values), atol=2e-3)


@pytest.mark.parametrize(
    "bad", [{"samples": 3}, {"shadow_distance": -1.0}, {"max_range": 0.0}, {"mirror_roughness": 0.0}, {"texture_bias": np.nan}]
)
def test_options_refuse_nonsense(bad: dict[str, Any]) -> None:
    with pytest.raises(AirworthyError):
        ShadingOptions(**bad)
