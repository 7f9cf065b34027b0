"""What glTF files hold beyond the core: instances, older materials, unlit ones, and what is left out with a word."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from airworthy.core import frames
from airworthy.core.errors import AssetError
from airworthy.geometry import Box, Mesh
from airworthy.scenes import Instance, Material, Scene
from airworthy.scenes.formats import read_model
from airworthy.scenes.formats._images import linear_to_srgb, srgb_to_linear
from airworthy.scenes.formats.export import export_scene
from airworthy.scenes.formats.gltf.glass import glass_json
from airworthy.scenes.formats.gltf.materials import metallic_of

TRIANGLE = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0]], "<f4")
UV = np.array([[0, 0], [1, 0], [0, 1]], "<f4")


def png(pixels: np.ndarray, kind: str = "PNG") -> str:
    held = io.BytesIO()
    Image.fromarray(pixels).save(held, kind)
    return "data:image/png;base64," + base64.b64encode(held.getvalue()).decode()


def write(path: Path, material: dict[str, Any] | None = None, arrays: tuple[np.ndarray, ...] = (), **more: Any) -> Path:
    """A triangle with texture coordinates; further arrays are accessors 2 and up."""
    blocks = [TRIANGLE, UV, *(np.ascontiguousarray(array) for array in arrays)]
    data = b"".join(block.tobytes() for block in blocks)
    starts = np.cumsum([0] + [block.nbytes for block in blocks])
    kinds = {1: "SCALAR", 2: "VEC2", 3: "VEC3", 4: "VEC4"}
    types = {"<f4": 5126, "<i2": 5122, "|i1": 5120}
    content: dict[str, Any] = {
        "asset": {"version": "2.0"},
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0, "TEXCOORD_0": 1}, "material": 0}]}],
        "materials": [material or {}],
        "buffers": [{"uri": "data:;base64," + base64.b64encode(data).decode(), "byteLength": len(data)}],
        "bufferViews": [
            {"buffer": 0, "byteOffset": int(a), "byteLength": block.nbytes} for a, block in zip(starts, blocks, strict=False)
        ],
        "accessors": [
            {
                "bufferView": k,
                "componentType": types[block.dtype.str],
                "count": len(block),
                "type": kinds[block.shape[1]],
                **({"normalized": True} if block.dtype.kind == "i" else {}),
            }
            for k, block in enumerate(blocks)
        ],
        **more,
    }
    path.write_text(json.dumps(content))
    return path


def instanced(count: int, attributes: dict[str, int], **node: Any) -> dict[str, Any]:
    return {"nodes": [{"mesh": 0, **node, "extensions": {"EXT_mesh_gpu_instancing": {"attributes": attributes}}}]}


def test_turns_in_bytes_are_those_in_words(tmp_path: Path) -> None:
    """Signed bytes and words, normalised: the same turns but for half a step of a byte."""
    turns = frames.normalize(np.random.default_rng(3).normal(size=(20, 4)))
    found = []
    for kind, most in (("<i2", 32767), ("<i1", 127)):
        given = np.round(turns * most).astype(kind)
        model = read_model(write(tmp_path / "m.gltf", None, (given,), **instanced(20, {"ROTATION": 2})))
        found.append(np.array([item.attitude for item in model.instances]))
    np.testing.assert_allclose(np.abs((found[0] * found[1]).sum(axis=1)), 1.0, atol=1e-4)
    assert (found[0] != found[1]).any()


def test_instances_stand_where_their_matrices_put_them(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    where = rng.normal(size=(20, 3)).astype("<f4")
    turns = np.round(frames.normalize(rng.normal(size=(20, 4))) * 32767).astype("<i2")
    sizes = np.repeat(rng.uniform(0.5, 2.0, (20, 1)), 3, 1).astype("<f4")
    sizes[7] = (1.0, 2.0, 0.5)  # stretched: a mesh of its own
    node = {"translation": [10.0, 0.0, -3.0], "rotation": [0.0, 0.6, 0.0, 0.8], "scale": [2.0, 2.0, 2.0]}
    names = {"TRANSLATION": 2, "ROTATION": 3, "SCALE": 4}
    model = read_model(write(tmp_path / "m.gltf", None, (where, turns, sizes), **instanced(20, names, **node)))
    assert not model.warnings
    assert len(model.instances) == 20
    assert len(model.shapes) == 2
    for k, item in enumerate(model.instances):
        local = where[k] + frames.rotate(frames.normalize(turns[k].astype(float)), TRIANGLE * sizes[k])
        world = np.array(node["translation"]) + 2.0 * frames.rotate(np.array(node["rotation"]), local)
        mesh = model.shapes[item.shape]
        assert isinstance(mesh, Mesh)
        placed = np.array(item.position) + item.scale * frames.rotate(np.array(item.attitude), mesh.vertices.astype(float))
        np.testing.assert_allclose(placed, world @ np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0]]), atol=1e-4)


@pytest.mark.parametrize(
    ("attributes", "says"),
    [({}, "no pose"), ({"TRANSLATION": 2, "SCALE": 0}, "different numbers"), ({"TRANSLATION": 99}, "accessors 99")],
)
def test_instances_that_lie_are_refused(attributes: dict[str, int], says: str, tmp_path: Path) -> None:
    path = write(tmp_path / "m.gltf", None, (np.zeros((5, 3), "<f4"),), **instanced(5, attributes))
    with pytest.raises(AssetError, match=says):
        read_model(path)


def test_more_instances_than_nodes_are_accepted_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "m.gltf", None, (np.zeros((30_001, 3), "<f4"),), **instanced(30_001, {"TRANSLATION": 2}))
    with pytest.raises(AssetError, match="30,001 instances"):
        read_model(path)


def test_specular_and_glossy_materials_keep_what_they_reflect() -> None:
    rng = np.random.default_rng(1)
    base, metallic = rng.uniform(0.05, 0.95, (200, 3)), rng.uniform(0.0, 1.0, 200)
    metallic[:50], metallic[50:100] = 0.0, 1.0
    m = metallic[:, None]
    # Forward, by the definition: what a surface of this base colour and metalness diffuses and mirrors.
    specular = 0.04 * (1.0 - m) + base * m
    diffuse = base * (1.0 - m) * (1.0 - 0.04) / (1.0 - specular.max(-1, keepdims=True))
    found, share = metallic_of(diffuse, specular)
    np.testing.assert_allclose(share[:100], metallic[:100], atol=1e-6)
    np.testing.assert_allclose(found[:100], base[:100], atol=1e-5)
    # Between the two the brightness of the base colour stands for its colour: exact for grey.
    grey = np.repeat(base[100:, :1], 3, 1)
    specular = 0.04 * (1.0 - m[100:]) + grey * m[100:]
    diffuse = grey * (1.0 - m[100:]) * (1.0 - 0.04) / (1.0 - specular.max(-1, keepdims=True))
    found, share = metallic_of(diffuse, specular)
    np.testing.assert_allclose(share, metallic[100:], atol=1e-5)
    np.testing.assert_allclose(found, grey, atol=1e-4)


def test_a_specular_glossiness_material_is_read(tmp_path: Path) -> None:
    diffuse = np.zeros((2, 2, 3), np.uint8)
    diffuse[0, 0], diffuse[1, 1] = (200, 40, 10), (0, 0, 0)
    shine = np.zeros((4, 4, 4), np.uint8)
    shine[:2, :2] = (56, 56, 56, 255)  # sRGB of 0.04: a dielectric, wholly glossy
    shine[2:, 2:] = (250, 200, 90, 64)  # gold, rather dull
    glossy = {"diffuseTexture": {"index": 0}, "specularGlossinessTexture": {"index": 1}, "glossinessFactor": 0.5}
    path = write(
        tmp_path / "m.gltf",
        {"name": "gold", "extensions": {"KHR_materials_pbrSpecularGlossiness": glossy}},
        textures=[{"source": 0}, {"source": 1}],
        images=[{"uri": png(diffuse)}, {"uri": png(shine)}],
    )
    model = read_model(path)
    assert not model.warnings
    material = model.materials["gold"]
    base, rough = model.textures[material.base_color_map], model.textures[material.metallic_roughness_map]
    assert base.srgb
    assert not rough.srgb
    np.testing.assert_allclose(base.pixels[0, 0, :3], (200, 40, 10), atol=3)
    np.testing.assert_allclose(base.pixels[3, 3, :3], (250, 200, 90), atol=3)
    np.testing.assert_array_equal(rough.pixels[0, 0, 1:], (round(255 - 127.5), 0))
    np.testing.assert_array_equal(rough.pixels[3, 3, 1:], (255 - 32, 255))
    plain = {"diffuseFactor": [0.2, 0.4, 0.6, 1.0], "specularFactor": [0.03, 0.03, 0.03], "glossinessFactor": 0.25}
    model = read_model(write(tmp_path / "p.gltf", {"extensions": {"KHR_materials_pbrSpecularGlossiness": plain}}))
    (material,) = model.materials.values()
    np.testing.assert_allclose(material.base_color, (0.2 * 0.97 / 0.96, 0.4 * 0.97 / 0.96, 0.6 * 0.97 / 0.96, 1.0), rtol=1e-3)
    assert (material.metallic, material.roughness) == (0.0, 0.75)


def test_an_unlit_material_glows_with_its_base_colour(tmp_path: Path) -> None:
    unlit = {
        "pbrMetallicRoughness": {"baseColorFactor": [0.5, 0.25, 1.0, 1.0], "baseColorTexture": {"index": 0}},
        "extensions": {"KHR_materials_unlit": {}},
    }
    more = {"textures": [{"source": 0}], "images": [{"uri": png(np.full((2, 2, 3), 90, np.uint8))}]}
    model = read_model(write(tmp_path / "m.gltf", unlit, extensionsRequired=["KHR_materials_unlit"], **more))
    (material,) = model.materials.values()
    assert material.emissive == (0.5, 0.25, 1.0)
    assert material.emissive_map == material.base_color_map != ""
    assert material.base_color == (0.0, 0.0, 0.0, 1.0)
    assert not model.warnings
    content = json.loads((tmp_path / "m.gltf").read_text())
    content["meshes"][0]["primitives"][0]["attributes"]["COLOR_0"] = 0
    (tmp_path / "c.gltf").write_text(json.dumps(content))
    model = read_model(tmp_path / "c.gltf")
    assert any("unlit" in warning for warning in model.warnings)
    assert next(iter(model.materials.values())).base_color == (0.5, 0.25, 1.0, 1.0)


def test_every_extension_that_is_not_read_is_named_once(tmp_path: Path) -> None:
    material = {"extensions": {"KHR_materials_clearcoat": {}, "KHR_materials_unlit": {}}}
    path = write(
        tmp_path / "m.gltf",
        material,
        extensions={"KHR_xmp": {}, "VENDOR_\x1b[31m": {}},
        extensionsUsed=["KHR_materials_clearcoat", "KHR_not_used_at_all"],
    )
    warnings = read_model(path).warnings
    assert [sum(name in line for line in warnings) for name in ("clearcoat", "xmp", "VENDOR", "unlit", "not_used")] == [
        1,
        1,
        1,
        0,
        0,
    ]
    assert not any("\x1b" in line for line in warnings)


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        (png(np.zeros((2, 2), np.uint8), "GIF"), "neither PNG nor JPEG nor WebP"),
        ("data:image/vnd-ms.dds;base64," + base64.b64encode(b"DDS " + bytes(124)).decode(), "neither PNG"),
        ("../../secret.png", "outside its own folder"),
        ("/etc/passwd", "only files in its own folder"),
        ("https://host/a.png", "only files in its own folder"),
        ("nothing.png", "no file"),
        (png(np.zeros((2, 2), np.uint8))[: 22 + 44], "damaged"),
        ("data:image/png;base64,***", "base64"),
    ],
)
def test_a_bad_texture_costs_the_texture_alone(uri: str, says: str, tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    Image.new("RGB", (2, 2)).save(tmp_path / "secret.png")
    material = {
        "pbrMetallicRoughness": {"baseColorTexture": {"index": 0}, "roughnessFactor": 0.3},
        "emissiveTexture": {"index": 1},
        "emissiveFactor": [1.0, 1.0, 1.0],
        "occlusionTexture": {"index": 0},
    }
    images = [{"uri": uri, "name": "bad"}, {"uri": png(np.full((2, 2, 3), 9, np.uint8)), "name": "good"}]
    model = read_model(write(folder / "m.gltf", material, textures=[{"source": 0}, {"source": 1}], images=images))
    (made,) = model.materials.values()
    assert (made.base_color_map, made.occlusion_map, made.roughness) == ("", "", 0.3)
    assert set(model.textures) == {"good"}
    (warning,) = model.warnings
    assert warning.startswith("image bad left out: ")
    assert any(part in warning for part in says.split("|")), warning


def test_srgb_is_its_own_inverse() -> None:
    values = np.linspace(0.0, 1.0, 256)
    np.testing.assert_allclose(linear_to_srgb(srgb_to_linear(values)), values, atol=1e-6)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, UV),
        ({"offset": [0.25, -0.5]}, UV + np.array([0.25, -0.5])),
        ({"scale": [2.0, 3.0]}, UV * np.array([2.0, 3.0])),
        # A quarter turn: the extension's matrix takes (u, v) to (v, -u).
        ({"rotation": np.pi / 2, "offset": [0.5, 0.0]}, np.stack([UV[:, 1] + 0.5, -UV[:, 0]], axis=1)),
    ],
)
def test_a_texture_is_laid_as_far_as_its_transformation_says(
    given: dict[str, Any], expected: np.ndarray, tmp_path: Path
) -> None:
    texture = {"index": 0, "extensions": {"KHR_texture_transform": given}}
    more = {"textures": [{"source": 0}], "images": [{"uri": png(np.full((2, 2, 3), 90, np.uint8))}]}
    model = read_model(write(tmp_path / "m.gltf", {"pbrMetallicRoughness": {"baseColorTexture": texture}}, **more))
    (mesh,) = model.shapes.values()
    assert isinstance(mesh, Mesh)
    assert mesh.uv is not None
    np.testing.assert_allclose(mesh.uv, expected, atol=1e-6)


def glassy(**volume: Any) -> dict[str, Any]:
    extensions = {"KHR_materials_transmission": {"transmissionFactor": 0.9}, "KHR_materials_ior": {"ior": 1.333}}
    return {"extensions": extensions | ({"KHR_materials_volume": volume} if volume else {})}


def test_glass_is_a_thin_sheet_and_bounds_a_volume_where_it_is_thick(tmp_path: Path) -> None:
    """What is left after 2 m is the attenuation's colour, so that a metre takes its logarithm by two."""
    path = tmp_path / "m.gltf"
    sheet = next(iter(read_model(write(path, glassy())).materials.values()))
    assert (sheet.transmission, sheet.ior, sheet.attenuation) == (0.9, 1.333, (0.0, 0.0, 0.0))
    thick = glassy(thicknessFactor=0.5, attenuationDistance=2.0, attenuationColor=[0.25, 0.5, 1.0])
    water = next(iter(read_model(write(path, thick)).materials.values()))
    np.testing.assert_allclose(water.attenuation, [np.log(4.0) / 2.0, np.log(2.0) / 2.0, 1e-6], rtol=1e-6)
    clear = next(iter(read_model(write(path, glassy(thicknessFactor=0.5))).materials.values()))
    assert clear.attenuation == (1e-6, 1e-6, 1e-6)  # it takes nothing, and bends
    thin = next(iter(read_model(write(path, glassy(thicknessFactor=0.0, attenuationDistance=2.0))).materials.values()))
    assert thin.attenuation == (0.0, 0.0, 0.0)
    opaque = {"extensions": {"KHR_materials_ior": {"ior": 1.8}, "KHR_materials_volume": {"thicknessFactor": 1.0}}}
    assert next(iter(read_model(write(path, opaque)).materials.values())).transmission == 0.0


@pytest.mark.parametrize("bad", [-1.0, 1e300, 0.0])
def test_glass_that_cannot_be_is_kept_within_what_can(bad: float, tmp_path: Path) -> None:
    volume = {"thicknessFactor": 1.0, "attenuationDistance": bad, "attenuationColor": [bad, 0.5, 2.0]}
    extensions = {"KHR_materials_transmission": {"transmissionFactor": 5.0}, "KHR_materials_ior": {"ior": bad}}
    given = {"extensions": extensions | {"KHR_materials_volume": volume}}
    made = next(iter(read_model(write(tmp_path / "m.gltf", given)).materials.values()))
    assert made.transmission == 1.0
    assert 1.0 <= made.ior <= 4.0
    assert all(0.0 < value <= 1e4 for value in made.attenuation)


def test_a_map_of_glass_is_left_out_with_a_word(tmp_path: Path) -> None:
    given = {"extensions": {"KHR_materials_transmission": {"transmissionFactor": 1.0, "transmissionTexture": {"index": 0}}}}
    warnings = read_model(write(tmp_path / "m.gltf", given)).warnings
    assert ["how much passes glass" in line for line in warnings] == [True]


def test_leaves_of_other_programs_let_light_through(tmp_path: Path) -> None:
    extension = {"diffuseTransmissionFactor": 0.4, "diffuseTransmissionColorFactor": [0.3, 0.5, 0.1]}
    given = {
        "pbrMetallicRoughness": {"baseColorFactor": [0.2, 0.5, 0.4, 1.0]},
        "extensions": {"KHR_materials_diffuse_transmission": extension},
    }
    leaf = next(iter(read_model(write(tmp_path / "a.gltf", given)).materials.values()))
    assert leaf.translucency == 0.4
    np.testing.assert_allclose(leaf.translucent_tint, (1.5, 1.0, 0.25))
    extension["diffuseTransmissionFactor"] = 7.0
    assert next(iter(read_model(write(tmp_path / "b.gltf", given)).materials.values())).translucency == 1.0


def test_leaves_come_back_as_they_were_written(tmp_path: Path) -> None:
    leaf = Material((0.0, 1.0, 0.5, 1.0), translucency=0.5, translucent_tint=(1.25, 1.15, 0.3))
    shapes = {"leaf": Box((1.0, 1.0, 0.01))}
    place = Scene("leaf", shapes, {"leaf": leaf}, instances=(Instance("leaf", materials=("leaf",)),), lights=())
    export_scene(place, tmp_path / "leaf.glb")
    again = next(iter(read_model(tmp_path / "leaf.glb").materials.values()))
    assert (again.translucency, again.translucent_tint) == (leaf.translucency, leaf.translucent_tint)


def test_glass_and_water_come_back_as_they_were_written(tmp_path: Path) -> None:
    surfaces = {
        "sheet": Material(transmission=0.8),
        "lake": Material(
            transmission=1.0, ior=1.333, attenuation=(0.62, 0.42, 0.66), scattered=(0.008, 0.02, 0.014), wave_slope=0.07
        ),
    }
    shapes = {name: Box((1.0, 1.0, 0.1)) for name in surfaces}
    place = Scene("glass", shapes, surfaces, instances=tuple(Instance(name, materials=(name,)) for name in surfaces), lights=())
    export_scene(place, tmp_path / "m.glb")
    found = read_model(tmp_path / "m.glb").materials
    for name, given in surfaces.items():
        for field in ("transmission", "ior", "attenuation", "scattered", "wave_slope"):
            np.testing.assert_allclose(getattr(found[name], field), getattr(given, field), rtol=1e-6, err_msg=field)


def test_what_is_opaque_says_nothing_of_glass_and_clear_glass_all_of_it() -> None:
    assert glass_json(Material()) == {}
    assert glass_json(Material(transmission=1.0)) == {"KHR_materials_transmission": {"transmissionFactor": 1.0}}
    clear = glass_json(Material(transmission=1.0, ior=1.333, attenuation=(0.02, 0.01, 0.0)))
    assert clear["KHR_materials_ior"] == {"ior": 1.333}
    volume = clear["KHR_materials_volume"]
    assert volume["attenuationDistance"] == pytest.approx(50.0)
    assert volume["attenuationColor"] == pytest.approx([np.exp(-1.0), np.exp(-0.5), 1.0])
    assert volume["thicknessFactor"] > 0.0
