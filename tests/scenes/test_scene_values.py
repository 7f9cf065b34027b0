"""What scenes come to, number by number: placed, packed for rendering, looked at, checked, moved, filled from points."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fixtures.snapshots import check_snapshot, condensed

from airworthy.core import frames
from airworthy.geometry import Box, Capsule, Cylinder, Placement, Sphere
from airworthy.scenes import actors, appearance, extent, lights, point_clouds, skeletons, texels, viewpoints
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.checking import check_scene, findings, point_clearance
from airworthy.scenes.formats import read_model
from airworthy.scenes.formats.model import CloudNote
from airworthy.scenes.free_points import free_path, with_free_path
from airworthy.scenes.generators.halls.builder import turned_profile, unwrapped_box
from airworthy.scenes.instance_tables import instance_numbers, material_count, semantic_numbers
from airworthy.scenes.people import person, walk_path
from airworthy.scenes.record import (
    Actor,
    Beacon,
    GateFrame,
    Instance,
    Material,
    PointLight,
    Pose,
    Region,
    Scene,
    Sky,
    SpotLight,
    Sun,
    Texture,
    Waypoint,
)

SNAPSHOTS = Path(__file__).parent / "snapshots"
TURN = (0.0, 0.0, 0.3, 0.9539392014)


def place() -> Scene:
    """Every kind of shape, material, light, actor and mark."""
    rng = np.random.default_rng(1)
    grid = rng.integers(0, 256, (16, 8, 3)).astype(np.uint8)
    crate = dataclasses.replace(unwrapped_box((0.5, 0.75, 1.25)), face_material=np.arange(12, dtype=np.int32) // 6)
    maps = Material(
        (0.9, 1.0, 1.0, 1.0), 0.5, 0.25, base_color_map="grid", metallic_roughness_map="rough", height_map="rough",
        height_scale=0.05, detail_map="grid", detail_repeat=3.0, normal_map="rough", normal_scale=0.5, alpha_cutoff=0.25,
    )  # fmt: skip
    path = (Waypoint(0.0, (0.0, 0.0, 1.0)), Waypoint(2.0, (2.0, 0.0, 1.0), TURN), Waypoint(3.0, (2.0, 1.0, 1.5)))
    return Scene(
        "place",
        {
            "box": Box((1, 2, 0.5)), "ball": Sphere(0.75), "pole": Cylinder(0.5, 1.0),
            "pill": Capsule(0.25, 0.5), "crate": crate,
            "vase": turned_profile([(0.0, 0.0), (0.3, 0.0), (0.2, 0.5), (0.0, 1.0)], 9),
        },
        {
            "red": Material((1.0, 0.25, 0.0, 1.0), emissive=(2.0, 0.0, 0.5)), "map": maps,
            "tri": Material(base_color_map="grid", texture_size=0.5),
        },
        {"grid": Texture(grid), "rough": Texture(grid[:2], False, "clamp")},
        (
            Instance("box", (0, 0, 0.5), materials=("red",), semantic="ground", name="base"),
            Instance("ball", (4, 0, 1), semantic="tree", instance_id=7, collide=False),
            Instance("pole", (0, 5, 1), attitude=(0.0, 0.6, 0.0, 0.8), materials=("tri",)),
            Instance("pill", (-3, 0, 2), scale=2.0, visible=False),
            Instance("crate", (2, 3, 0.25), (0.0, 0.0, 0.6, 0.8), 0.5, ("red", "map"), name="crate"),
            Instance("vase", (-2, -3, 0.0), TURN, 1.5, ("map",)),
        ),
        (
            Actor("walker", (Instance("ball", (0, 0, 1), name="head"),), "scripted", path=path, repeat=True),
            Actor("drifter", (Instance("box", scale=0.2),), "velocity", (5.0, 5.0, 1.0), TURN,
                  velocity=(0.5, 0.0, 0.1), rate=(0.0, 0.1, 0.6)),
        ),
        (
            Sun((0.0, 0.6, -0.8)), PointLight((1, 2, 3), range=9.0), SpotLight((0, 0, 1), (1.0, 0.0, 0.0), attached="walker"),
        ),
        Sky((0.2, 0.3, 0.6), (0.6, 0.6, 0.7), (0.2, 0.25, 0.2), 0.8),
        Region((-6.0, -6.0, 0.0), (6.0, 7.0, 4.0)),
        Pose((-4.0, -4.0, 1.5), 0.3),
        Pose((4.0, 5.0, 1.5)),
        gates=(GateFrame("g", ((0.0, 1.0, 2.0), (0.0, -1.0, 2.0), (0.0, -1.0, 1.0), (0.0, 1.0, 1.0))),),
        beacons=(Beacon("l", "m", (1.0, 2.0, 3.0)),),
    )  # fmt: skip


def arrays_of(thing: Any) -> dict[str, Any]:
    """Arrays and numbers that an object holds."""
    kinds = np.ndarray | int | float | tuple
    found = {name: value for name, value in vars(thing).items() if isinstance(value, kinds) and not name.startswith("_")}
    return {name: value for name, value in found.items() if not isinstance(value, np.ndarray) or value.dtype.kind in "biuf"}


def test_batches_and_what_rendering_reads_of_them() -> None:
    batch = SceneBatch([place(), place()], 3)
    values: dict[str, Any] = {}
    values["poses"] = list(batch.dynamic_poses)
    for scale in (1.0, 0.5):
        made = appearance.Appearance(batch, scale)
        values[f"looks {scale}"] = {key: value for key, value in arrays_of(made).items() if isinstance(value, np.ndarray)}
        values[f"memory {scale}"] = made.memory()
        values[f"baked {scale}"] = dict(vars(made.baked))
    scene = place()
    values["numbers"], values["semantics"] = [list(part) for part in instance_numbers(scene)], semantic_numbers(scene)
    for name, shape in scene.shapes.items():
        values[f"materials {name}"] = material_count(shape)
        if name in ("crate", "vase"):
            mesh: Any = shape
            values[f"vertices {name}"] = appearance.packed_vertices(mesh)
            values[f"faces {name}"], values[f"flags {name}"] = appearance.packed_faces(mesh), appearance.mesh_flags(mesh)
            values[f"density {name}"] = appearance.uv_density(mesh)
    check_snapshot(SNAPSHOTS / "batches.txt", values, 1e-6, 1e-6)


def test_texels() -> None:
    rng = np.random.default_rng(2)
    image = rng.random((5, 6, 4)).astype(np.float32)
    light = rng.lognormal(0.0, 2.0, (20, 3))
    values: dict[str, Any] = {"light": texels.unpack_shared_exponent(texels.pack_shared_exponent(light))}
    values["shared"] = texels.pack_shared_exponent(light)
    for squared in (False, True):
        values[f"packed {squared}"] = texels.pack(image, squared)
        values[f"unpacked {squared}"] = texels.unpack(texels.pack(image, squared), squared)
        values[f"mips {squared}"] = [texels.mip_chain(image, skip, squared) for skip in (0, 1)]
    values["linear"] = [texels.linear_pixels(texture) for texture in place().textures.values()]
    values["normal"] = texels.height_to_normal(image[..., 0], 0.05, (0.3, 0.4))
    values["octahedral"] = texels.octahedral(np.concatenate([rng.normal(size=(9, 3)), np.eye(3), -np.eye(3)]))
    values["basis"] = list(appearance.basis(np.concatenate([np.eye(3), -np.eye(3)])))
    check_snapshot(SNAPSHOTS / "texels.txt", values, 1e-6, 1e-6)


def test_lights() -> None:
    scene, rng = place(), np.random.default_rng(3)
    directions = rng.normal(size=(30, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    values: dict[str, Any] = {"radiance": lights.sky_radiance(scene.sky, directions)}
    values["irradiance"] = lights.sky_irradiance(scene.sky, np.linspace(-1.0, 1.0, 9))
    values["skies"], values["rows"] = lights.sky_rows([scene.sky, Sky()]), list(lights.light_rows([scene, scene]))
    boxes = [Box((1.0, 2.0, 0.05)), Box((0.02, 0.02, 1.0)), Sphere(1.0)]
    where = rng.normal(size=(5, 3))
    placed = Placement.of(shape=np.array([0, 1, 2, 0, 0]), position=where, scale=np.array([1.0, 1.0, 1.0, 0.5, 3.0]))
    for texel in (0.4, 1.5):
        values[f"maps {texel}"] = vars(lights.map_layout(boxes, placed, texel))
    grid, valid = rng.random((4, 5, 6, 2)), rng.random((4, 5, 6)) > 0.7
    values["filled"] = [lights.fill_invalid(grid, valid, rounds) for rounds in (1, 8)]
    check_snapshot(SNAPSHOTS / "lights.txt", values, 1e-6, 1e-6)


def test_views_and_sizes() -> None:
    scene = place()
    values: dict[str, Any] = {}
    for name in viewpoints.VIEWS:
        seen = viewpoints.view(scene, name)
        values[name] = [condensed(seen), [part for part in seen.rays(9, 7) if part is not None]]
        bare = dataclasses.replace(scene, goal=None, instances=scene.instances[:1], actors=())
        values[f"{name} bare"] = condensed(viewpoints.view(bare, name))
    values["box"], values["scene box"] = list(viewpoints.content_box(scene)), list(extent.scene_box(scene) or ())
    values["roofless"] = [item.name for item in viewpoints.roofless(scene).instances]
    for name, shape in scene.shapes.items():
        values[f"extent {name}"] = list(extent.instance_box(shape, (1.0, 2.0, 3.0), (0.1, -0.3, 0.5, 0.8062257748), 1.5))
    values["triangles"], values["gaussians"] = extent.triangle_count(scene), extent.gaussian_count(scene)
    values["look"] = [viewpoints.look_at((0, 0, 0), target) for target in ((1, 2, 3), (0, 0, 1), (0, 0, -1), (1e-3, 0, 5.0))]
    check_snapshot(SNAPSHOTS / "views.txt", values, 1e-6, 1e-6)


def hall(start: Pose | None) -> Scene:
    """A hall of 20 by 8 m without a roof."""
    walls = [((x, 0.0, 1.5), "end") for x in (-10.0, 10.0)] + [((0.0, y, 1.5), "side") for y in (-4.0, 4.0)]
    shapes = {"end": Box((0.05, 4.0, 1.5)), "side": Box((10.0, 0.05, 1.5))}
    items = tuple(Instance(shape, position) for position, shape in walls)
    return Scene("hall", shapes, instances=items, bounds=Region((-10.0, -4.0, 0.0), (10.0, 4.0, 3.0)), start=start)


def test_from_inside_one_looks_along_what_is_freest() -> None:
    def ahead(scene: Scene) -> np.ndarray:
        seen = viewpoints.view(scene, "inside")
        assert scene.start is not None
        np.testing.assert_allclose(seen.position, scene.start.position)
        return np.asarray(frames.rotate(seen.attitude, np.array([0.0, 0.0, 1.0])))

    # A wall 2 m ahead, the length of the hall aside.
    np.testing.assert_allclose(ahead(hall(Pose((-8.0, -2.0, 1.2), -1.57)))[2], 0.0, atol=1e-12)
    assert ahead(hall(Pose((-8.0, -2.0, 1.2), -1.57)))[0] > 0.9
    # Its own heading is kept where it is nearly as free.
    np.testing.assert_allclose(ahead(hall(Pose((0.0, -3.0, 1.2), 1.2)))[:2], (np.cos(1.2), np.sin(1.2)), atol=1e-6)
    wall = {"wall": Box((0.5, 8.0, 1.5))}
    empty = Scene("empty", wall, instances=(Instance("wall", (12.0, 0.0, 1.5)),), start=Pose((0.0, 0.0, 1.0), 2.0))
    # What can be seen is looked at, not what lies beyond the place.
    assert ahead(empty)[0] > 0.9
    # Nobody looks at a wall at arm's length, though the way back is hardly longer than twice that.
    corner = hall(Pose((6.5, 0.0, 1.2), 0.0))
    assert ahead(corner)[0] < 0.0
    for outside in (hall(None), dataclasses.replace(corner, start=Pose((0.0, 0.0, 9.0), 0.0))):
        seen = viewpoints.view(outside, "inside")
        np.testing.assert_array_equal(seen.position, viewpoints.view(outside, "orbit").position)


def test_how_far_one_sees_is_a_mean_up_to_a_limit() -> None:
    far = Scene("far", {"wall": Box((0.5, 90.0, 9.0))}, instances=(Instance("wall", (40.5, 0.0, 0.0)),))
    eye = np.array([0.0, 0.0, 1.0])
    np.testing.assert_allclose(viewpoints._free(far, eye, np.array([0.0, np.pi])), [viewpoints.SIGHT, 0.0])
    # A wall that covers the left half of what is seen, its end straight ahead.
    half = dataclasses.replace(far, instances=(Instance("wall", (10.5, 90.001, 0.0)),))
    seen = 10.0 / np.cos(np.linspace(-0.5, 0.5, 9)[:4])
    assert viewpoints._free(half, eye, np.zeros(1))[0] == pytest.approx(seen.sum() / 9.0, rel=1e-5)


def test_what_moves() -> None:
    scene, times = place(), np.array([-0.5, 0.0, 0.5, 2.0, 2.5, 3.0, 3.7, 9.1])
    walker = scene.actors[0]
    values: dict[str, Any] = {f"path {again}": list(actors.path_pose(walker.path, times, again)) for again in (False, True)}
    for time in (0.0, 1.3, 5.0):
        values[f"posed {time}"] = [(item.position, item.attitude, item.scale) for item in actors.posed(scene, time).instances]
    kit = person("anna", animation="walking", path=walk_path([(0, 0, 0), (3, 0, 0)]), motion="scripted")
    values["person"] = [item.position for item in actors.posed(actors.add_actor(scene, kit), 0.8).instances]
    position, turn = np.zeros((3, 3)), np.tile(TURN, (3, 1))
    rate = np.array([[0.0, 0.0, 0.0], [0.0, 0.1, 0.6], [3.0, 0.0, 0.0]])
    values["drifted"] = list(actors.drifted(position, turn, np.ones((3, 3)), rate, np.array([0.1, 1.0, 2.0])))
    (skeleton,) = kit.skeletons.values()
    for clip in ("", "walking"):
        values[f"joints {clip}"] = skeletons.joint_matrices(skeleton, clip, np.array([0.0, 0.31, 7.7]))
    check_snapshot(SNAPSHOTS / "moves.txt", values, 1e-6, 1e-6)


def test_findings() -> None:
    """What is said of scenes with one mistake each."""
    good = place()
    item, actor = good.instances[0], good.actors[0]
    wrong: dict[str, dict[str, Any]] = {
        "none": {},
        "shape": {"instances": (dataclasses.replace(item, shape="gone"),)},
        "material": {"instances": (dataclasses.replace(item, materials=("gone",)),)},
        "attitude": {"instances": (dataclasses.replace(item, attitude=(0.0, 0.0, 0.0, 2.0)),)},
        "scale": {"instances": (dataclasses.replace(item, scale=0.0),)},
        "number": {"instances": (dataclasses.replace(item, instance_id=100_000),)},
        "nan": {"start": Pose((np.nan, 0.0, 1.0))},
        "outside": {"start": Pose((50.0, 0.0, 1.0))},
        "inside": {"start": Pose((0.0, 0.0, 0.5))},
        "bounds": {"bounds": Region((1.0, 0.0, 0.0), (1.0, 2.0, 3.0))},
        "far": {"instances": (dataclasses.replace(item, position=(500.0, 0.0, 0.0)),)},
        "light": {"lights": (SpotLight((0, 0, 1), (0.0, 0.0, 0.0), 0.6, 0.5), PointLight((0, 0, 1), intensity=-1.0))},
        "path": {"actors": (dataclasses.replace(actor, path=actor.path[::-1]),)},
        "twice": {"actors": (actor, actor)},
        "attached": {"beacons": (Beacon("l", "m", (0.0, 0.0, 0.0), "nobody"),)},
        "texture": {"materials": {"red": Material(base_color_map="gone")}},
        "half": {"shapes": {**good.shapes, "box": Box((1.0, 0.0, 1.0))}},
    }
    values: dict[str, Any] = {}
    for name, change in wrong.items():
        scene = dataclasses.replace(good, **change)
        try:
            values[name] = [*check_scene(scene), *(str(found) for found in findings(scene))]
        except Exception as error:
            values[name] = f"{type(error).__name__}: {error}"
    values = {name: text if isinstance(text, str) else " / ".join(text) for name, text in values.items()}
    values["clearance"] = point_clearance(good, np.random.default_rng(4).uniform(-5.0, 5.0, (40, 3)))
    check_snapshot(SNAPSHOTS / "findings.txt", values, 1e-6, 1e-6)


def test_clouds_of_points() -> None:
    rng = np.random.default_rng(5)
    lattice = 0.25 * np.moveaxis(np.indices((6, 6, 6)), 0, -1).reshape(-1, 3) + np.array((0.1, -0.2, 3.0))
    values: dict[str, Any] = {}
    for name, points in {
        "lattice": lattice, "blurred": lattice + rng.normal(0.0, 1e-4, lattice.shape),
        "loose": rng.uniform(-2.0, 2.0, (400, 3)),
        "one": lattice[:1], "wall": lattice[lattice[:, 0] < 0.2], "sparse": lattice[rng.random(len(lattice)) > 0.6],
    }.items():  # fmt: skip
        found = point_clouds.find_lattice(points)
        values[f"{name} lattice"] = "none" if found is None else condensed(found)
        values[f"{name} spacing"] = point_clouds.find_spacing(points) if len(points) > 1 else 0.0
        for voxel in (0.0, 0.4):
            cells = point_clouds.cloud_cells(points, voxel or (0.3 if name == "one" else 0.0))
            colors = rng.integers(0, 256, (len(points), 3)).astype(np.uint8)
            values[f"{name} {voxel}"] = [arrays_of(cells), condensed(point_clouds.cells_mesh(cells, colors))]
    note = CloudNote(0.25, start=(1.0, 2.0, 3.0, 0.5), goal=(0.0, 0.0, 1.0))
    values["noted"] = arrays_of(point_clouds.cloud_cells(lattice, 0.0, note))
    values["mesh"] = condensed(point_clouds.cloud_mesh(lattice[:9], 0.3))
    values["steps"] = [point_clouds.float32_step(reach) for reach in (0.5, 1.0, 1000.0, 1e6)]
    values["hollow"] = point_clouds.without_inside(np.ones((4, 5, 6), bool))
    check_snapshot(SNAPSHOTS / "clouds.txt", values, 1e-6, 1e-6)


def test_free_paths() -> None:
    values: dict[str, Any] = {}
    low, high = np.array([-6.0, -6.0, 0.0]), np.array([6.0, 7.0, 4.0])
    for name, radius in {"small": 1.0, "large": 3.0, "full": 30.0}.items():
        ball = np.array([0.5, 0.2, 1.0])
        found = free_path(lambda p, ball=ball, radius=radius: np.linalg.norm(p - ball, axis=1) - radius, low, high, ball)
        values[name] = [condensed(pose) if pose else "none" for pose in found]
    made = with_free_path(dataclasses.replace(place(), start=None, goal=None), low, high)
    values["scene"] = [condensed(made.start), condensed(made.goal)]
    check_snapshot(SNAPSHOTS / "free.txt", values, 1e-6, 1e-6)


WORLDS = {
    "sdf": """<sdf version="1.7"><world name="w">
<light type="directional" name="sun"><direction>0.3 0.2 -0.9</direction><diffuse>0.8 0.7 0.6 1</diffuse></light>
<light type="point" name="lamp"><pose>1 2 3 0 0 0</pose><diffuse>1 1 0.5 1</diffuse><attenuation><range>12</range></attenuation>
</light><light type="spot" name="spot"><pose>0 0 3 0.1 0.2 0.3</pose><direction>0 0 -1</direction>
<spot><inner_angle>0.2</inner_angle><outer_angle>0.7</outer_angle></spot></light>
<model name="m"><static>true</static><pose>1 2 0.5 0 0 0.7</pose><link name="l"><pose>0.1 0 0 0.2 0 0</pose>
<visual name="v"><pose>0 0 0.1 0 0.3 0</pose><geometry><box><size>1 2 0.5</size></box></geometry>
<material><diffuse>0.2 0.4 0.6 1</diffuse><emissive>0.1 0 0 1</emissive></material></visual>
<collision name="c"><geometry><cylinder><radius>0.3</radius><length>1.2</length></cylinder></geometry></collision></link>
<link name="k"><visual name="s"><geometry><sphere><radius>0.4</radius></sphere></geometry></visual>
<collision name="s"><geometry><capsule><radius>0.2</radius><length>0.6</length></capsule></geometry></collision>
<visual name="p"><geometry><plane><normal>0 0 1</normal><size>8 6</size></plane></geometry></visual></link></model></world>
</sdf>""",
    "urdf": """<robot name="r"><material name="blue"><color rgba="0 0.2 1 1"/></material>
<link name="a"><visual><origin xyz="0.1 0.2 0.3" rpy="0.1 0.2 0.3"/><geometry><box size="2 1.5 0.2"/></geometry>
<material name="blue"/></visual></link><link name="b"><collision><origin xyz="0 0 1" rpy="1.5 0 0"/>
<geometry><cylinder radius="0.1" length="2"/></geometry></collision><visual><geometry><sphere radius="0.3"/></geometry></visual>
</link><joint name="j" type="revolute"><parent link="a"/><child link="b"/><origin xyz="5 0 0" rpy="0 0 1.2"/></joint>
<link name="c"/><joint name="i" type="fixed"><parent link="b"/><child link="c"/><origin xyz="0 1 0"/></joint></robot>""",
    "dae": """<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1"><asset><unit meter="0.01"/>
<up_axis>Y_UP</up_axis></asset><library_effects><effect id="e"><profile_COMMON><technique sid="t"><phong>
<emission><color>0.1 0 0 1</color></emission><diffuse><color>0.5 0.25 0.75 1</color></diffuse>
<transparency><float>0.5</float></transparency></phong></technique></profile_COMMON></effect></library_effects>
<library_materials><material id="m"><instance_effect url="#e"/></material></library_materials>
<library_geometries><geometry id="g"><mesh><source id="p"><float_array id="pa" count="12">0 0 0 100 0 0 0 100 0
0 0 100</float_array>
<technique_common><accessor source="#pa" count="4" stride="3"/></technique_common></source><vertices id="v">
<input semantic="POSITION" source="#p"/></vertices><triangles material="x" count="2"><input
semantic="VERTEX" source="#v" offset="0"/>
<p>0 1 2 0 2 3</p></triangles><polylist material="x" count="1"><input semantic="VERTEX" source="#v" offset="0"/>
<vcount>4</vcount><p>0 1 2 3</p></polylist></mesh></geometry></library_geometries><library_visual_scenes><visual_scene id="s">
<node><translate>100 0 50</translate><rotate>0 0 1 30</rotate><scale>2 2 2</scale><instance_geometry url="#g"><bind_material>
<technique_common><instance_material symbol="x" target="#m"/></technique_common></bind_material></instance_geometry>
<node><matrix>1 0 0 10 0 0 -1 20 0 1 0 30 0 0 0 1</matrix><instance_geometry url="#g"/></node></node></visual_scene>
</library_visual_scenes><scene><instance_visual_scene url="#s"/></scene></COLLADA>""",
}


@pytest.mark.parametrize("ending", WORLDS)
def test_worlds_with_every_element(ending: str, tmp_path: Path) -> None:
    (tmp_path / f"w.{ending}").write_text(WORLDS[ending])
    model = read_model(tmp_path / f"w.{ending}")
    names = ("shape", "position", "attitude", "scale", "materials", "collide", "visible")
    rows = [tuple(getattr(item, name) for name in names) for item in model.instances]
    values = {"rows": condensed(rows), "shapes": condensed(model.shapes), "lights": condensed(model.lights)}
    values |= {"materials": condensed(model.materials), "warnings": condensed(model.warnings)}
    check_snapshot(SNAPSHOTS / f"world_{ending}.txt", values, 1e-6, 1e-6)
