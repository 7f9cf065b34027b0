"""What the room of rendering computes, number by number: images of every channel and option, baked light, splats of a scene."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from tests.fixtures.snapshots import check_snapshot, condensed

from airworthy.core.frames import camera_attitude, from_euler
from airworthy.geometry import Box, Capsule, Cylinder, Mesh, RayTable, Sphere
from airworthy.optics.distortion import PlumbBob
from airworthy.optics.projections import Fisheye, Pinhole, Spherical
from airworthy.rendering import baking, directions, occlusion, refining, soft_light
from airworthy.rendering.baking import BakeSettings
from airworthy.rendering.converting import ConvertOptions, display_color, splats_from_scene
from airworthy.rendering.images import blended, optical_flow, render
from airworthy.rendering.light_baking import bake, load_baked, relit, save_baked, scene_hash
from airworthy.rendering.shading import ShadingOptions
from airworthy.rendering.splat_images import eye_of
from airworthy.scenes import (
    Actor,
    Instance,
    Material,
    PointLight,
    Region,
    Scene,
    SceneBatch,
    Sky,
    SplatPlacement,
    Splats,
    SpotLight,
    Sun,
    Texture,
)
from airworthy.scenes.generators.halls.builder import turned_profile, unwrapped_box
from airworthy.scenes.viewpoints import view

SNAPSHOTS = Path(__file__).parent / "snapshots"
COARSE = BakeSettings(bounces=2, rays=32, probe_spacing=1.5, texel=0.8, finest=1.0, occlusion_rays=16)
LENS = Pinhole(24, 18, 16.0, 17.0, 12.5, 8.5)
POSITION = np.array([[-2.2, -1.7, 1.2], [2.0, 1.5, 1.0]])
ATTITUDE = camera_attitude(from_euler(np.array([0.1, 0.0]), np.array([0.1, 0.05]), np.array([0.7, -2.4])))


def place() -> Scene:
    """A room with every kind of shape, map and light, and splats."""
    rng = np.random.default_rng(1)
    grid = rng.integers(0, 256, (16, 16, 3)).astype(np.uint8)
    spread = rng.uniform(-0.4, 0.4, (30, 3)).astype(np.float32)
    turn = rng.normal(size=(30, 4))
    turn /= np.linalg.norm(turn, axis=1, keepdims=True)
    cloud = Splats(spread, turn, np.full((30, 3), 0.1), np.full(30, 0.6), 0.3 * rng.normal(size=(30, 4, 3)))
    profile = turned_profile([(0.0, 0.0), (0.3, 0.0), (0.2, 0.5), (0.0, 1.0)], 12)
    return Scene(
        "room",
        {
            "floor": Box((3.0, 3.0, 0.1)), "cube": unwrapped_box((0.8, 0.9, 1.0)), "ball": Sphere(0.4),
            "pole": Cylinder(0.2, 0.8), "pill": Capsule(0.2, 0.3), "vase": profile,
        },
        {
            "plain": Material((0.6, 0.5, 0.4, 1.0), 0.7),
            "grid": Material((0.9, 0.9, 0.9, 1.0), 0.4, 0.3, base_color_map="grid", normal_map="grid", uv_scale=(2.0, 1.0)),
            "glow": Material((0.1, 0.1, 0.1, 1.0), emissive=(1.0, 0.4, 0.2)),
            "boxed": Material((0.8, 0.8, 0.8, 1.0), base_color_map="grid", texture_size=0.5),
        },
        {"grid": Texture(grid)},
        (
            Instance("floor", (0, 0, -0.1), materials=("boxed",), semantic="ground"),
            Instance("cube", (1.0, 0.3, 0.5), (0.0, 0.0, 0.3, 0.954), 1.0, ("grid",)),
            Instance("ball", (-0.5, 0.6, 0.4), materials=("plain",)),
            Instance("pole", (0.2, -1.0, 0.8), materials=("glow",)),
            Instance("pill", (-1.2, -0.2, 0.6), materials=("plain",)),
            Instance("vase", (0.4, 1.4, 0.0), materials=("plain",)),
        ),
        (Actor("ball", (Instance("ball", (0.0, 0.0, 0.0), scale=0.5, materials=("plain",)),), position=(0.0, 0.0, 1.6)),),
        (Sun((-0.4, 0.3, -0.866)), PointLight((0.5, 0.5, 2.0), range=6.0), SpotLight((-1.0, 0.0, 2.2), (0.3, 0.1, -0.9))),
        Sky((0.2, 0.3, 0.6), (0.6, 0.6, 0.7), (0.2, 0.2, 0.2), 0.8),
        Region((-2.8, -2.8, 0.0), (2.8, 2.8, 2.5)),
        clouds={"cloud": cloud},
        splats=(SplatPlacement("cloud", (-1.5, 1.3, 0.8)),),
    )  # fmt: skip


def test_images_of_every_channel_and_option() -> None:
    batch = SceneBatch(place(), 2)
    values: dict[str, Any] = {}
    lenses: dict[str, Any] = {
        "pinhole": LENS,
        "bent": Pinhole(24, 18, 16.0, 17.0, 12.5, 8.5, PlumbBob(-0.1, 0.02)),
        "fisheye": Fisheye(24, 18, 9.0, 9.0, 12.0, 9.0),
        "scan": Spherical(24, 9),
    }
    channels = ("rgb", "depth", "range", "normal", "semantic_id", "instance", "albedo", "grey", "splat_depth", "splat_alpha")
    for name, lens in lenses.items():
        found = render(batch, lens.rays(), POSITION, ATTITUDE, np.arange(2), channels, projection=lens)
        values |= {f"{name} {key}": image for key, image in found.items()}
    for name, options in {
        "lambert": ShadingOptions(specular=False, sun_disc=False),
        "two": ShadingOptions(samples=2),
        "half": ShadingOptions(texture_scale=0.5),
        "unshadowed": ShadingOptions(shadows=False),
        "mirrors": ShadingOptions(reflections=True, texture_bias=1.0),
    }.items():
        values[name] = render(batch, LENS.rays(), POSITION, ATTITUDE, np.arange(2), ("rgb",), options)["rgb"]
    check_snapshot(SNAPSHOTS / "images.txt", values, 1e-3, 1e-4)


def test_flow() -> None:
    rng = np.random.default_rng(2)
    points = rng.normal(size=(2, 18, 24, 3)) * (1.0, 1.0, 0.3) + np.array((0.0, 0.0, 3.0))
    points[0, 3, 4] = np.nan
    values: dict[str, Any] = {}
    for name, lens in {"pinhole": LENS, "fisheye": Fisheye(24, 18, 9.0, 9.0, 12.0, 9.0)}.items():
        for sky in ("rotation", "nan"):
            moved = (POSITION + 0.1, ATTITUDE[::-1], ATTITUDE)
            values[f"{name} {sky}"] = optical_flow(lens, points, *moved, sky=sky)  # type: ignore[arg-type]
    before, after = rng.random((2, 4, 5, 3)).astype(np.float32), rng.random((2, 4, 5, 3)).astype(np.float32)
    values["blended"] = blended(before, rng.random((2, 4, 5)).astype(np.float32), after)
    check_snapshot(SNAPSHOTS / "flow.txt", values, 1e-5, 1e-5)


def test_baked_light(tmp_path: Path) -> None:
    scene = place()
    baked = bake(scene, COARSE)
    values: dict[str, Any] = {"baked": condensed(baked), "sphere": directions.sphere_table(40).directions}
    values["hemisphere"] = directions.hemisphere_table(40).directions
    normals = np.random.default_rng(3).normal(size=(9, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    values["towards"] = directions.attitudes_towards(np.concatenate([normals, [(0, 0, 1.0), (0, 0, -1.0)]]))
    mesh = turned_profile([(0.0, 0.0), (0.3, 0.0), (0.2, 0.5), (0.0, 1.0)], 12)
    values["occlusion"] = occlusion.vertex_occlusion(mesh, 24, 1.0)
    bare = Mesh(mesh.vertices, mesh.faces)
    values["normals"], values["bare"] = occlusion.vertex_normals(mesh), occlusion.vertex_normals(bare)
    values["of scene"] = occlusion.scene_occlusion(scene, 16, 1.0, 100_000)
    values["smoothed"] = baking.smoothed(np.random.default_rng(4).random((4, 5, 6, 3)))
    geometry = SceneBatch(scene).geometry
    values["grid"] = list(baking.probe_grid(scene, geometry, COARSE))
    points = np.random.default_rng(5).uniform(-2.0, 2.0, (60, 3)) + np.array((0.0, 0.0, 2.0))
    values["sunlit"] = baking.sun_visible(geometry, scene, points)
    values["parts"] = [f"{part.start} {part.stop}" for part in directions.parts(1000, 4000, "x", True)]
    back = load_baked(save_baked(baked, tmp_path / "baked.npz"))
    for name, value in vars(baked).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(back, name), value)
    assert {name: part.tolist() for name, part in back.occlusion.items()} == {
        name: part.tolist() for name, part in baked.occlusion.items()
    }
    assert scene_hash(scene, COARSE) != scene_hash(relit(scene, 0.5), COARSE)
    check_snapshot(SNAPSHOTS / "baked.txt", values, 1e-4, 1e-4)


def test_light_that_is_soft_or_weaker() -> None:
    scene = place()
    light = soft_light.SoftLight()
    values: dict[str, Any] = {
        "relit": condensed([relit(scene, 0.4).lights, relit(scene, 0.4).sky, relit(scene, 0.4).materials])
    }
    values["soft"] = condensed([part.lights for part in soft_light.softly_lit(scene, light).scenes])
    values["places"] = [soft_light.pixel_places(count) for count in (1, 2, 5, 9)]
    check_snapshot(SNAPSHOTS / "soft.txt", values, 1e-6, 1e-6)


def test_splats_of_a_scene_and_their_figures() -> None:
    batch = SceneBatch(place())
    options = ConvertOptions(rays=2, eyes=6, sky=40, patch=0.4, exposure=0.8)
    values: dict[str, Any] = {"made": condensed(splats_from_scene(batch, count=150, options=options))}
    values["spaced"] = condensed(splats_from_scene(batch, 0.5, options=replace(options, detail=0.0, sky=0)))
    values["poses"] = list(refining.free_poses(batch, 5, 3))
    views = refining.scene_views(batch, 2, 24, 18, 1.2, 1, 0.8, 2)
    values["views"] = condensed([views.intrinsics, views.position, views.attitude])
    image, truth = np.random.default_rng(6).random((2, 30, 40, 3))
    mask = np.random.default_rng(7).random((30, 40)) > 0.3
    values["psnr"] = [refining.image_psnr(image, truth), refining.image_psnr(image, truth, mask)]
    values["ssim"] = [refining.image_ssim(image, truth), refining.image_ssim(0.7 * truth + 0.3 * image, truth, mask)]
    values["display"] = display_color(np.linspace(0.0, 3.0, 30).reshape(10, 3), 0.7)
    eye = eye_of(LENS.rays(), LENS)
    for key, made in {"eye": eye, "rows": eye.rows(3, 9), "scan": eye_of(Spherical(9, 4).rays())}.items():
        plain = {name: part for name, part in vars(made).items() if isinstance(part, np.ndarray | float | int | tuple)}
        values[key] = condensed(plain)
    check_snapshot(SNAPSHOTS / "refining.txt", values, 1e-3, 1e-4)
    check_snapshot(SNAPSHOTS / "views.txt", {"rgb": views.rgb}, 1e-2, 1e-3)


def test_splats_from_above_in_parallel_rays() -> None:
    """With depth and without: the eye stands far behind the plane from which the rays start."""
    batch, above = SceneBatch(place()), view(place(), "top")
    directions, origins = above.rays(24, 18)
    table = RayTable(directions, origins, (0.0, 0.0, 1.0))
    pose = (above.position[None], above.attitude[None], np.zeros(1, int))
    every = render(batch, table, *pose, ("rgb", "splat_depth", "splat_alpha"))
    np.testing.assert_array_equal(render(batch, table, *pose, ("rgb",))["rgb"], every["rgb"])
    np.testing.assert_array_equal(render(batch, table, *pose, ("splat_alpha",))["splat_alpha"], every["splat_alpha"])
    known = every["splat_alpha"] > 0.5
    assert known.any()
    # The cloud hangs 0.4 to 1.2 m over the floor, and its Gaussians are 0.1 m wide.
    height = above.position[2] - every["splat_depth"][known]
    assert height.min() > 0.0
    assert height.max() < 1.6
