"""What is said to be left out of a file is what its reader does not find there, field by field."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.geometry import Box, Mesh
from airworthy.scenes.formats import EXPORTS, Model, export_losses, export_scene, read_model
from airworthy.scenes.record import (
    Beacon,
    GateFrame,
    Haze,
    Instance,
    Material,
    PointLight,
    Pose,
    Rain,
    Region,
    Scene,
    Sky,
    Snow,
    Texture,
)

SQUARE = Mesh(
    np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], np.float32),
    np.array([[0, 1, 2], [0, 2, 3]], np.int32),
    uv=np.array([[0, 0], [1, 0], [1, 1], [0, 1]], np.float32),
)
LEAF = np.full((2, 2, 4), 128, np.uint8)
LEAF[0, :, 3] = 20
GIVEN: dict[str, dict[str, Any]] = {
    "base_color": {"base_color": (0.25, 0.5, 0.125, 1.0)},
    "metallic": {"metallic": 1.0},
    "roughness": {"roughness": 0.3},
    "emissive": {"emissive": (1.0, 0.5, 0.25)},
    **{
        name: {name: "image"}
        for name in ("base_color_map", "metallic_roughness_map", "normal_map", "occlusion_map", "emissive_map")
    },
    "normal_scale": {"normal_map": "image", "normal_scale": 0.5},
    "height_map": {"height_map": "image", "height_scale": 0.02},
    "detail_map": {"detail_map": "image"},
    "texture_size": {"base_color_map": "image", "texture_size": 2.0},
    "double_sided": {"double_sided": False},
    "alpha_cutoff": {"alpha_cutoff": 0.5, "base_color_map": "leaf"},
    "transmission": {"transmission": 0.7},
    "ior": {"transmission": 0.7, "ior": 1.33},
    "attenuation": {"transmission": 0.7, "attenuation": (1.0, 2.0, 3.0)},
    "scattered": {"transmission": 0.7, "attenuation": (1.0, 2.0, 3.0), "scattered": (0.1, 0.2, 0.3)},
    "wave_slope": {"transmission": 0.7, "attenuation": (1.0, 2.0, 3.0), "wave_slope": 0.1},
    "translucency": {"translucency": 0.5},
    "translucent_tint": {"translucency": 0.5, "translucent_tint": (1.5, 1.25, 0.25)},
}


def model_of(material: Material) -> Model:
    pixels = np.full((2, 2, 3), 128, np.uint8)
    return Model(
        {"square": SQUARE},
        {"m": material},
        {"image": Texture(pixels), "leaf": Texture(LEAF)},
        (Instance("square", materials=("m",), name="i"),),
    )


@pytest.mark.parametrize("ending", ["obj", "dae", "glb"])
@pytest.mark.parametrize("name", list(GIVEN))
def test_it_is_said_of_what_is_not_found_again_and_of_nothing_else(ending: str, name: str, tmp_path: Path) -> None:
    material = Material(**GIVEN[name])
    again = read_model(EXPORTS[ending](tmp_path / f"a.{ending}", model_of(material)))
    (found,) = again.materials.values()
    said = " ".join(export_losses(model_of(material), ending))
    value, plain = getattr(found, name), getattr(Material(), name)
    kept = bool(value) if name.endswith("_map") else value == pytest.approx(getattr(material, name))
    assert (f" {name} of 1" in said) == (not kept), (value, said)
    assert kept or value == pytest.approx(plain) or name.endswith("_map")


def test_every_field_of_a_material_is_tried() -> None:
    untried = {item.name for item in fields(Material)} - set(GIVEN)
    # Kept in the texture coordinates, or said together with the map that they are of.
    assert untried == {"uv_scale", "height_scale", "detail_repeat"}


def test_materials_are_counted_and_numbers_that_say_nothing_are_not() -> None:
    glass, idle = (
        Material(transmission=0.9, attenuation=(1.0, 2.0, 3.0)),
        Material(ior=1.4, detail_repeat=3.0, texture_size=2.0),
    )
    shown = model_of(glass)
    both = replace(
        shown,
        materials={"m": glass, "n": idle, "unused": glass},
        instances=(*shown.instances, Instance("square", materials=("n",), name="j")),
    )
    assert export_losses(both, "obj") == (
        "Left out, since obj as written here has no place for it: attenuation of 1 of 2 materials; glb keeps all.",
    )
    assert (
        export_losses(both, "glb")
        == export_losses(model_of(Material()), "dae")
        == export_losses(model_of(Material()), "stl")
        == ()
    )
    for bare, holds in (("stl", "shapes alone"), ("pcd", "points alone"), ("ply", "shapes and the colours of surfaces")):
        assert export_losses(both, bare) == (f"It holds {holds}: what 1 of 2 materials say is left out; glb keeps all.",)
    assert export_losses(model_of(Material((0.2, 0.3, 0.4, 1.0))), "ply") == ()


def test_second_materials_of_a_mesh_count() -> None:
    two = replace(model_of(Material()), materials={"m": Material(), "n": Material(alpha_cutoff=0.5)})
    square = two.instances[0]
    assert export_losses(replace(two, instances=(replace(square, materials=("m", "n")),)), "obj")[0].count(
        "alpha_cutoff of 1 of 2"
    )


@pytest.mark.parametrize(
    "idle", ["scattered", "wave_slope", "ior", "attenuation", "height_scale", "normal_scale", "detail_repeat"]
)
def test_numbers_without_what_they_are_of_say_nothing(idle: str) -> None:
    """`scattered` and the slope of waves are of what lets light pass; scales of their maps."""
    value: Any = {"scattered": (0.1, 0.2, 0.3), "attenuation": (1.0, 2.0, 3.0)}.get(idle, 0.3)
    assert export_losses(model_of(Material(**{idle: value})), "dae") == ()


def test_mud_and_waves_are_of_water_alone() -> None:
    """Of a pane, which takes no light by depth, both say nothing."""
    said = export_losses(model_of(Material(transmission=0.5, scattered=(0.1, 0.2, 0.3), wave_slope=0.1)), "dae")[0]
    assert "transmission of 1" in said
    assert "scattered" not in said
    assert "wave_slope" not in said


def test_repeats_of_maps_are_left_out_with_them() -> None:
    assert export_losses(model_of(Material(uv_scale=(2.0, 2.0))), "dae") == ()
    assert "uv_scale of 1" in export_losses(model_of(Material(uv_scale=(2.0, 2.0), base_color_map="image")), "dae")[0]
    assert export_losses(model_of(Material(uv_scale=(2.0, 2.0), base_color_map="image")), "obj") == ()


def test_a_map_of_details_makes_its_size_count() -> None:
    said = export_losses(model_of(Material(detail_map="image", texture_size=3.0)), "obj")[0]
    assert "detail_map of 1" in said
    assert "texture_size of 1" in said


def test_an_sdf_keeps_of_solids_what_it_writes_and_of_meshes_what_their_files_do(tmp_path: Path) -> None:
    worn = Material((0.3, 0.2, 0.1, 1.0), metallic=1.0, roughness=0.2, emissive=(3.0, 2.0, 1.0), base_color_map="image")
    mesh = model_of(worn)
    solid = replace(mesh, shapes={"square": Box((1.0, 1.0, 1.0))})
    assert export_losses(mesh, "sdf") == ()
    (said,) = export_losses(solid, "sdf")
    for name in ("metallic", "roughness", "base_color_map", "emissive above 1"):
        assert f"{name} of 1" in said
    assert "base_color of" not in said
    text = EXPORTS["sdf"](tmp_path / "a.sdf", solid).read_text()
    assert "<diffuse>0.3 0.2 0.1 1</diffuse>" in text
    assert "<emissive>1 1 1 1</emissive>" in text
    assert "image" not in text


def test_what_else_a_scene_has_is_named() -> None:
    lamp = PointLight((0.0, 0.0, 2.0), (1.0, 1.0, 1.0), 10.0)
    foggy = Scene("s", {"square": SQUARE}, {}, {}, (Instance("square"),), lights=(lamp,), haze=Haze(0.1))
    assert export_losses(foggy, "obj") == ("Left out, too: lights (1), haze; toml keeps all.",)
    assert export_losses(foggy, "sdf") == export_losses(foggy, "glb") == ("Left out, too: haze; toml keeps all.",)
    assert export_losses(foggy, "toml") == ()


@pytest.mark.parametrize(("name", "format_"), [("a.obj", "glb"), ("a.glb", "stl"), ("a.world", "obj"), ("a.ply", "pcd")])
def test_a_format_that_the_name_denies_is_refused(name: str, format_: str, tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match=rf"The format is {format_}, and '{name}' ends as \w+ does"):
        export_scene(model_of(Material()), tmp_path / name, format_)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "format_"), [("a.OBJ", "obj"), ("a", "stl"), ("a.v2", "ply"), ("a.world", "sdf"), ("a.ply", "cloud.ply")]
)
def test_other_names_are_free(name: str, format_: str, tmp_path: Path) -> None:
    assert export_scene(model_of(Material()), tmp_path / name, format_).exists()


HALL = Scene(
    "hall",
    {"box": Box((1.0, 1.0, 1.0))},
    instances=(Instance("box", semantic="wall"), Instance("box", (3.0, 0.0, 0.0), visible=False)),
    lights=(),
    looks=(Instance("box", (6.0, 0.0, 0.0)),),
    sky=Sky(intensity=0.3),
    bounds=Region((-9.0, -9.0, -9.0), (9.0, 9.0, 9.0)),
    start=Pose((0.0, 0.0, 2.0)),
    goal=Pose((4.0, 0.0, 2.0)),
    spawn=(Region((0.0, 0.0, 2.0), (1.0, 1.0, 3.0)),),
    gates=(GateFrame("door", ((4.0, 0.5, 2.0), (4.0, -0.5, 2.0), (4.0, -0.5, 1.0), (4.0, 0.5, 1.0))),),
    beacons=(Beacon("door", 1, (4.0, 0.5, 2.0)),),
    courses=("line",),
)
NEVER = "spawn (1), gates (1), beacons (1), courses (1)"


@pytest.mark.parametrize(
    ("ending", "lost"),
    [
        ("glb", f"sky, bounds, start, goal, {NEVER}"),
        ("dae", f"sky, bounds, start, goal, {NEVER}"),
        ("sdf", f"classes (2), bounds, start, goal, {NEVER}"),
        ("obj", f"sky, classes (2), bounds, start, goal, {NEVER}"),
        ("stl", f"sky, classes (2), bounds, start, goal, {NEVER}"),
        ("ply", f"sky, classes (2), bounds, start, goal, {NEVER}"),
        ("pcd", f"sky, classes (2), looks (1), {NEVER}"),
        ("cloud.ply", f"sky, classes (2), looks (1), {NEVER}"),
    ],
)
def test_what_a_place_says_of_itself_is_said_where_it_is_left_out(ending: str, lost: str) -> None:
    alike = "Shapes like all others there: 1 that are seen and not hit and 1 that are hit and not seen; glb and sdf part them."
    said = export_losses(HALL, ending)
    assert said == (f"Left out, too: {lost}; toml keeps all.", *([alike] if ending in ("obj", "dae", "stl", "ply") else []))


@pytest.mark.parametrize("ending", ["obj", "dae", "stl", "ply"])
def test_shapes_that_are_not_seen_or_not_hit_stand_among_the_others(ending: str, tmp_path: Path) -> None:
    """As is said of them: the file spans all three boxes."""
    found = read_model(export_scene(HALL, tmp_path / f"a.{ending}"))
    corners = np.concatenate([mesh.vertices for mesh in found.shapes.values() if isinstance(mesh, Mesh)])
    assert corners[:, 0].max() - corners[:, 0].min() == pytest.approx(8.0)


@pytest.mark.parametrize(
    ("name", "weather"), [("haze", Haze(0.01)), ("rain", Rain(5.0)), ("snow", Snow(cover=0.5))], ids=["haze", "rain", "snow"]
)
def test_each_weather_is_said(name: str, weather: Any) -> None:
    bare = Scene("bare", lights=())
    assert export_losses(replace(bare, **{name: weather}), "glb") == (f"Left out, too: {name}; toml keeps all.",)
    assert export_losses(bare, "glb") == ()


def test_a_solid_has_one_material_and_others_of_it_are_of_no_shape() -> None:
    dull, worn = Material(), Material(metallic=1.0)
    shown = replace(model_of(dull), materials={"m": dull, "n": worn})
    named = (replace(shown.instances[0], materials=("m", "n")),)
    assert export_losses(replace(shown, shapes={"square": Box((1.0, 1.0, 1.0))}, instances=named), "sdf") == ()
    assert "metallic of 1 of 2" in export_losses(replace(shown, instances=named), "dae")[0]


@pytest.mark.parametrize("ending", ["obj", "dae", "stl", "ply", "pcd"])
def test_lights_are_said_where_there_are_none(ending: str) -> None:
    lamps = (PointLight((0.0, 0.0, 2.0)), PointLight((1.0, 0.0, 2.0)))
    assert export_losses(Scene("lit", lights=lamps), ending) == ("Left out, too: lights (2); toml keeps all.",)
    assert export_losses(Scene("lit", lights=lamps), "glb") == export_losses(Scene("lit", lights=lamps), "sdf") == ()


def test_holes_are_kept_by_a_map_with_alpha_alone() -> None:
    """A map of three channels has no mask to be written, so that its holes are left out."""
    assert export_losses(model_of(Material(alpha_cutoff=0.5, base_color_map="leaf")), "obj") == ()
    assert "alpha_cutoff of 1 of 1" in export_losses(model_of(Material(alpha_cutoff=0.5, base_color_map="image")), "obj")[0]
