"""COLLADA, SDF worlds and URDF scenes: what we write comes back, by hand, and hostile ones."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import numpy as np
import pytest

from airworthy.core.errors import AssetError
from airworthy.geometry import Box, Cylinder, Mesh
from airworthy.geometry.occupancy import voxelize
from airworthy.scenes import Instance, Material, Scene, SceneBatch, scene
from airworthy.scenes.formats import export_scene, read_model
from airworthy.scenes.record import Sun

BOX = "<geometry><box><size>2 1 0.5</size></box></geometry>"
SDF = f"""<?xml version="1.0"?><sdf version="1.9"><world name="w">
<model name="m"><pose>1 2 3 0 0 1.5707963267948966</pose><link name="l"><pose>1 0 0 0 0 0</pose>
<visual name="v">{BOX}<material><diffuse>0.2 0.4 0.6 1</diffuse></material></visual><collision name="c">{BOX}</collision>
<collision name="d"><pose>0 0 5 0 0 0</pose>
<geometry><sphere><radius>0.3</radius></sphere></geometry></collision></link></model>
<model name="ground"><link name="l"><collision name="c">
<geometry><plane><normal>0 0 1</normal><size>8 6</size></plane></geometry>
</collision></link></model><include><uri>model://tree</uri></include></world></sdf>"""
URDF = """<robot name="r"><material name="blue"><color rgba="0 0 1 1"/></material>
<link name="a"><visual><geometry><box size="2 2 0.2"/></geometry><material name="blue"/></visual></link>
<link name="b"><collision><origin xyz="0 0 1" rpy="1.5707963267948966 0 0"/>
<geometry><cylinder radius="0.1" length="2"/></geometry>
</collision><visual><geometry><mesh filename="package://r/x.stl"/></geometry></visual></link>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/>
<origin xyz="5 0 0" rpy="0 0 1.5707963267948966"/></joint></robot>"""


def place() -> Scene:
    return Scene(
        "p",
        {"box": Box((0.55, 0.35, 0.25)), "post": Cylinder(0.2, 1.0)},
        {"red": Material((0.8, 0.1, 0.1, 1.0))},
        instances=(
            Instance("box", (1.0, -2.0, 0.5), (0.0, 0.0, 0.6, 0.8), 1.5, ("red",)),
            Instance("post", (-1.3, 0.4, 1.1), (0.6, 0.0, 0.0, 0.8), materials=("red",)),
        ),
    )


@pytest.mark.parametrize("ending", ["dae", "sdf"])
def test_what_we_write_comes_back_where_it_stood(ending: str, tmp_path: Path) -> None:
    export_scene(place(), tmp_path / f"p.{ending}")
    back = scene(tmp_path / f"p.{ending}", recentre=False)

    def grid(item: Scene) -> np.ndarray:
        return voxelize(SceneBatch(item).geometry, 0, (-4.0, -4.0, -1.0), (4.0, 4.0, 3.0), 0.1)

    assert (grid(place()) != grid(back)).mean() < 2e-3  # a cylinder of 32 sides is not quite round
    colours = {tuple(np.round(material.base_color[:3], 2)) for material in back.materials.values()}
    assert (0.8, 0.1, 0.1) in colours
    assert not read_model(tmp_path / f"p.{ending}").warnings or ending == "sdf"


def test_an_sdf_world_by_hand(tmp_path: Path) -> None:
    (tmp_path / "w.world").write_text(SDF)
    model = read_model(tmp_path / "w.world")
    whole, ball, ground = model.instances
    np.testing.assert_allclose(whole.position, (1.0, 3.0, 3.0), atol=1e-9)
    assert model.shapes[whole.shape] == Box((1.0, 0.5, 0.25))
    assert (whole.visible, whole.collide, model.materials[whole.materials[0]].base_color) == (True, True, (0.2, 0.4, 0.6, 1.0))
    np.testing.assert_allclose(ball.position, (1.0, 3.0, 8.0), atol=1e-9)
    assert (ball.visible, ball.collide) == (False, True)
    np.testing.assert_allclose(ground.position, (0.0, 0.0, -0.05), atol=1e-9)
    assert any("included" in line for line in model.warnings)


@pytest.mark.parametrize(
    ("said", "direction"),
    [("<direction>2 -1 -2</direction>", (2 / 3, -1 / 3, -2 / 3)), ("", (0.0, 0.0, -1.0))],  # straight down where none is said
)
def test_an_sdf_suns_light_travels_where_its_direction_points(
    said: str, direction: tuple[float, float, float], tmp_path: Path
) -> None:
    light = f'<light name="sun" type="directional">{said}</light><include>'
    (tmp_path / "w.world").write_text(SDF.replace("<include>", light))
    (sun,) = read_model(tmp_path / "w.world").lights
    assert isinstance(sun, Sun)
    assert sun.direction == pytest.approx(direction, abs=1e-12)


def test_a_urdf_stands_at_rest(tmp_path: Path) -> None:
    (tmp_path / "r.urdf").write_text(URDF)
    model = read_model(tmp_path / "r.urdf")
    plate, tube = model.instances
    assert (plate.collide, tube.visible) == (False, False)
    np.testing.assert_allclose(tube.position, (5.0, 0.0, 1.0), atol=1e-9)
    assert model.materials[plate.materials[0]].base_color == (0.0, 0.0, 1.0, 1.0)
    assert any("package://r/x.stl" in line for line in model.warnings)


@pytest.mark.parametrize("ending", ["dae", "sdf", "urdf"])
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('<!DOCTYPE x [<!ENTITY a "b">]><sdf>&a;</sdf>', "document type"),
        ("<x/>", "outermost element"),
        ("<a>" * 200, "nested deeper"),
        ("<a>" + "<b/>" * 50_001 + "</a>", "more than 50,000|would take"),
        ("<a", "not readable XML"),
        ("", "not readable XML"),
    ],
)
def test_hostile_xml_is_refused(ending: str, text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / f"x.{ending}").write_text(text)
    with pytest.raises(AssetError, match=says):
        read_model(tmp_path / f"x.{ending}")


def test_damaged_files_load_or_are_refused(tmp_path: Path) -> None:
    export_scene(place(), tmp_path / "p.dae")
    rng = random.Random(0)
    for ending, whole in (("dae", (tmp_path / "p.dae").read_text()), ("sdf", SDF), ("urdf", URDF)):
        for _ in range(150):
            text = list(whole)
            for _ in range(rng.randint(1, 4)):
                at = rng.randrange(len(text))
                text[at] = rng.choice(["", "9", "-", "e", "nan", "1e99", "<", ">", '"', "#", "99999999999999999999", " "])
            (tmp_path / f"x.{ending}").write_text("".join(text))
            with contextlib.suppress(AssetError):  # anything else fails
                read_model(tmp_path / f"x.{ending}")


DAE = """<COLLADA version="1.4.1"><asset><unit meter="1"/><up_axis>Z_UP</up_axis></asset>
<library_geometries><geometry id="g"><mesh>
<source id="p"><float_array id="pa" count="9">0 0 0 1 0 0 0 1 0</float_array>
<technique_common><accessor source="#pa" count="3" stride="3"/></technique_common></source>
<source id="t"><float_array id="ta" count="6">0 0 0.75 0.125 0.25 1</float_array>
<technique_common><accessor source="#ta" count="3" stride="2"/></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<triangles count="1"><input semantic="VERTEX" source="#v" offset="0"/><input semantic="TEXCOORD" source="#t" offset="1"/>
<p>0 0 1 1 2 2</p></triangles></mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s"><node><instance_geometry url="#g"/></node></visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#s"/></scene></COLLADA>"""


def test_texture_coordinates_of_a_dae_count_v_from_the_top(tmp_path: Path) -> None:
    (tmp_path / "t.dae").write_text(DAE)
    (mesh,) = read_model(tmp_path / "t.dae").shapes.values()
    assert isinstance(mesh, Mesh)
    assert mesh.uv is not None
    found = {tuple(at): tuple(uv) for at, uv in zip(mesh.vertices.tolist(), mesh.uv.tolist(), strict=True)}
    # The file counts v from the bottom of the image, a mesh here from its top; all numbers are exact in float32.
    assert found == {(0.0, 0.0, 0.0): (0.0, 1.0), (1.0, 0.0, 0.0): (0.75, 0.875), (0.0, 1.0, 0.0): (0.25, 0.0)}
