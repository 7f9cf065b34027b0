"""Readers against values known by hand, writers against readers and against trimesh, and the reference scans."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import re
import struct
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.geometry import Box, Capsule, Cylinder, Mesh, Sphere
from airworthy.scenes.formats import (
    EXPORTS,
    FileLimits,
    Model,
    Points,
    export_scene,
    levels_of_detail,
    pack_metallic_roughness,
    read_maps,
    read_model,
    read_points,
    sample_points,
    tessellate,
    weld,
    write_glb,
    write_obj,
    write_pcd,
    write_ply,
    write_points_ply,
    write_stl,
)
from airworthy.scenes.record import Actor, Instance, Material, PointLight, Scene, SpotLight, Sun, Texture

HALF = math.sqrt(0.5)


def only(model: Model) -> Mesh:
    (mesh,) = model.shapes.values()
    assert isinstance(mesh, Mesh)
    return mesh


def scene() -> Scene:
    grid = np.arange(4 * 4 * 3, dtype=np.uint8).reshape(4, 4, 3) * 5
    mesh = dataclasses.replace(tessellate(Box((0.5, 0.5, 0.5))), face_material=np.arange(12, dtype=np.int32) // 6)
    return Scene(
        "place",
        {"box": Box((1, 2, 0.5)), "ball": Sphere(0.7), "pole": Cylinder(0.5, 1.0), "pill": Capsule(0.3, 0.6), "crate": mesh},
        {
            "red": Material((1.0, 0.25, 0.0, 1.0), emissive=(2.0, 0.0, 0.0)),
            "map": Material(
                (1.0, 1.0, 1.0, 1.0), 0.5, 0.25, base_color_map="grid", metallic_roughness_map="rough",
                height_map="rough", height_scale=0.05, detail_map="grid", detail_repeat=3.0, normal_map="rough",
                normal_scale=0.5, alpha_cutoff=0.25,
            ),
        },
        {"grid": Texture(grid), "rough": Texture(grid[:2], False, "clamp")},
        (
            Instance("box", (0, 0, 0.5), materials=("red",), semantic="ground", name="base"),
            Instance("ball", (4, 0, 1), semantic="tree", instance_id=7, collide=False),
            Instance("pole", (0, 5, 1), attitude=(0.0, HALF, 0.0, HALF)),
            Instance("pill", (-3, 0, 2), scale=2.0, visible=False),
            Instance("crate", (2, 3, 0.25), (0.0, 0.0, HALF, HALF), 0.5, ("red", "map"), name="crate <1> & \"2\""),
        ),
        (Actor("walker", (Instance("ball", (0, 0, 1), name="head"),), position=(5, 5, 0), attitude=(0, 0, HALF, HALF)),),
        (Sun((0.0, 0.6, -0.8)), PointLight((1, 2, 3), range=9.0), SpotLight((0, 0, 1), (1.0, 0.0, 0.0), attached="walker")),
    )  # fmt: skip


# Readers, by hand


def test_obj_by_hand(tmp_path: Path) -> None:
    (tmp_path / "a.obj").write_text(
        "# a comment\r\no thing\nv 0 0 0\nv 1 0 0\n  v 1 1 0\nv 0 1 0\nv 0 0 nan\nvt 0 0.25\nvt 1 0 0\nvn 0 0 2\n"
        "f 1/1/1 2/2/1 3/1/1 \\\n 4/2/1\nf -5 -4 -3\nf 1//1 3//1 4//1\nf 1 1 2\nf 1 2 5\nf 1 2\nl 1 2\n"
    )
    model = read_model(tmp_path / "a.obj")
    mesh = only(model)
    assert len(mesh.faces) == 4
    corners = mesh.vertices[mesh.faces]
    np.testing.assert_array_equal(corners[1], [[0, 0, 0], [1, 1, 0], [0, 1, 0]])
    assert mesh.uv is not None
    assert mesh.normals is not None
    np.testing.assert_array_equal(mesh.uv[mesh.faces[0]], [[0, 0.75], [1, 1], [0, 0.75]])  # v counts from the top here
    np.testing.assert_allclose(mesh.normals, [[0, 0, 1]] * len(mesh.normals))
    warnings = " ".join(model.warnings)
    assert "faces without area dropped" in warnings
    assert "not finite" in warnings
    assert "fewer than three corners" in warnings


def test_obj_relative_indices_count_from_their_line(tmp_path: Path) -> None:
    block = "v {0} 0 0\nv {0} 1 0\nv {0} 0 1\nf -3 -2 -1\n"
    (tmp_path / "a.obj").write_text("".join(block.format(i) for i in range(30_000)))  # more than one block of text
    mesh = only(read_model(tmp_path / "a.obj"))
    np.testing.assert_array_equal(mesh.vertices[mesh.faces][:, :, 0], np.repeat(np.arange(30_000.0)[:, None], 3, 1))


@pytest.mark.parametrize(
    "line", ["f 1 2 4", "f 0 1 2", "f 1 2 -4", "f 1/2/3/4 1 1", "f 1 2 x", "f 1 2 1.5", "v 1 2", "v 1 2 1.5.2"]
)
def test_obj_refuses(line: str, tmp_path: Path) -> None:
    (tmp_path / "a.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n" + line + "\n")
    with pytest.raises(AssetError):
        read_model(tmp_path / "a.obj")


def test_a_binary_stl_that_begins_with_solid(tmp_path: Path) -> None:
    facet = struct.pack("<12fH", 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0)
    (tmp_path / "a.stl").write_bytes(b"solid trap".ljust(80) + struct.pack("<I", 2) + facet * 2)
    assert len(only(read_model(tmp_path / "a.stl")).faces) == 2
    (tmp_path / "b.stl").write_text("solid b\nFACET normal 0 0 1\nouter loop\nVERTEX 0 0 0\nvertex 1e0 0 0\nvertex 0 1 0\n")
    assert only(read_model(tmp_path / "b.stl")).vertices.shape == (3, 3)


def test_gltf_by_hand(tmp_path: Path) -> None:
    """Strips, strides, normalised integers, a stretched node, y up."""
    binary = struct.pack("<16f", 0, 0, 0, 9, 1, 0, 0, 9, 0, 1, 0, 9, 1, 1, 0, 9) + struct.pack(
        "<8B", 0, 0, 255, 0, 0, 255, 255, 255
    )
    root = {
        "asset": {"version": "2.0"},
        "nodes": [
            {"children": [1, 2], "translation": [0, 1, 0]},
            {"mesh": 0, "scale": [2, 2, 2]},
            {"mesh": 0, "scale": [-1, 1, 3]},
        ],
        "meshes": [{"name": "m", "primitives": [{"attributes": {"POSITION": 0, "TEXCOORD_0": 1}, "mode": 5}]}],
        "accessors": [
            {"bufferView": 0, "componentType": 5126, "count": 4, "type": "VEC3"},
            {"bufferView": 1, "componentType": 5121, "normalized": True, "count": 4, "type": "VEC2"},
        ],
        "bufferViews": [{"buffer": 0, "byteLength": 64, "byteStride": 16}, {"buffer": 0, "byteOffset": 64, "byteLength": 8}],
        "buffers": [{"byteLength": 72}],
    }
    text = json.dumps(root).encode()
    text += b" " * (-len(text) % 4)
    head = struct.pack("<4s4I", b"glTF", 2, 28 + len(text) + 72, len(text), 0x4E4F534A)
    (tmp_path / "a.glb").write_bytes(head + text + struct.pack("<2I", 72, 0x004E4942) + binary)
    model = read_model(tmp_path / "a.glb")
    first, second = model.instances
    assert first.position == (0.0, 0.0, 1.0)  # y up becomes z up
    assert first.scale == pytest.approx(2.0)
    mesh = model.shapes["m"]
    assert isinstance(mesh, Mesh)
    np.testing.assert_array_equal(mesh.vertices, [[0, 0, 0], [1, 0, 0], [0, 0, 1], [1, 0, 1]])
    np.testing.assert_array_equal(mesh.faces, [[0, 1, 2], [2, 1, 3]])  # both front sides look towards +z of the file
    np.testing.assert_array_equal(mesh.uv, [[0, 0], [1, 0], [0, 1], [1, 1]])
    mirrored = model.shapes[second.shape]
    assert isinstance(mirrored, Mesh)
    np.testing.assert_allclose(mirrored.vertices, mesh.vertices * [-1, 3, 1] + [0, 0, 1])
    np.testing.assert_array_equal(mirrored.faces, mesh.faces[:, ::-1])


def test_gltf_skin_at_rest_and_moved(tmp_path: Path) -> None:
    """A vertex follows the sum over joints of weight * G * inverse bind, as glTF says it, in our frame."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("fuzzing", Path(__file__).with_name("fuzzing.py"))
    assert spec is not None
    assert spec.loader is not None
    fuzzing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fuzzing)
    root, binary = fuzzing.gltf_tree()
    root["nodes"][1]["scale"] = [1, 1, 1]
    inverse = np.tile(np.eye(4, dtype="<f4"), (2, 1, 1))
    inverse[:, 3, 1] = -1.0  # column-major: both joints rest at y = 1
    start = len(binary)
    root["bufferViews"][6] = {"buffer": 0, "byteOffset": start, "byteLength": 128}
    root["buffers"][0]["byteLength"] = start + 128
    (tmp_path / "a.glb").write_bytes(fuzzing.glb(root, binary + inverse.tobytes()))
    model = read_model(tmp_path / "a.glb")
    (skeleton,) = model.skeletons.values()
    assert skeleton.names == ("body", "hip", "knee")
    assert skeleton.parents.tolist() == [-1, 0, 1]
    shape = next(iter(skeleton.joints))
    mesh = model.shapes[shape]
    assert isinstance(mesh, Mesh)
    np.testing.assert_allclose(mesh.vertices, [[0, 0, 0], [1, 0, 0], [0, 0, 1], [0, -1, 0]], atol=1e-6)
    # At rest G * inverse bind is the identity for every joint.
    place = np.zeros((3, 3))
    for joint, parent in enumerate(skeleton.parents):
        place[joint] = skeleton.position[joint] + (place[parent] if parent >= 0 else 0.0)
    np.testing.assert_allclose(skeleton.inverse_bind[1:, :3, 3], -place[1:], atol=1e-6)
    np.testing.assert_allclose(place[1], [0, 0, 1], atol=1e-6)
    clip = skeleton.clips["walk"]
    assert clip.duration == 1.0
    # A quarter turn about the file's z is one about our -y.
    np.testing.assert_allclose(clip.rotation[1].values[1], [0, -HALF, 0, HALF], atol=1e-6)
    assert clip.translation[2].values.shape == (2, 3, 3)
    assert clip.translation[2].interpolation == "cubic"


def test_ply_orders_and_encodings_agree(tmp_path: Path) -> None:
    import trimesh

    mesh = tessellate(Sphere(1.0), 12)
    reference = trimesh.Trimesh(mesh.vertices, mesh.faces, process=False)
    for encoding in ("ascii", "binary"):
        (tmp_path / "a.ply").write_bytes(reference.export(file_type="ply", encoding=encoding))
        read = only(read_model(tmp_path / "a.ply"))
        np.testing.assert_allclose(read.vertices, mesh.vertices, atol=1e-7)
        np.testing.assert_array_equal(read.faces, mesh.faces)
    write_ply(tmp_path / "l.ply", mesh)
    little = (tmp_path / "l.ply").read_bytes()
    head, _, body = little.partition(b"end_header\n")
    count = int(re.findall(rb"element vertex (\d+)", head)[0]) * 8 * 4  # x y z nx ny nz s t
    faces = np.frombuffer(body[count:], np.dtype([("n", "u1"), ("i", "<i4", 3)]))
    swapped = np.frombuffer(body[:count], "<f4").astype(">f4").tobytes()
    swapped += faces.astype(np.dtype([("n", "u1"), ("i", ">i4", 3)])).tobytes()
    (tmp_path / "b.ply").write_bytes(head.replace(b"little", b"big") + b"end_header\n" + swapped)
    for name in ("l.ply", "b.ply"):
        read = only(read_model(tmp_path / name))
        np.testing.assert_array_equal(read.vertices[read.faces], mesh.vertices[mesh.faces])


def test_pcd_encodings_agree(tmp_path: Path) -> None:
    points = Points(
        np.array([[1, 2, 3], [4, 5, np.nan], [7, 8, 9]], np.float32),
        np.array([[1, 2, 3], [4, 5, 6], [255, 128, 0]], np.uint8),
        np.array([0.5, 1, 2], np.float32),
    )
    write_pcd(tmp_path / "binary.pcd", points)
    head = (tmp_path / "binary.pcd").read_bytes().partition(b"DATA")[0]
    rows = [f"{x} {y} {z} {c:.9g} {i}" for (x, y, z), c, i in zip(points.positions, _packed(points), [0.5, 1, 2], strict=True)]
    (tmp_path / "ascii.pcd").write_bytes(head + b"DATA ascii\n" + "\n".join(rows).encode() + b"\n")
    columns = np.concatenate([points.positions, _packed(points)[:, None], np.float32([[0.5], [1], [2]])], 1).T.tobytes()
    packed = b"".join(bytes([len(columns[i : i + 32]) - 1]) + columns[i : i + 32] for i in range(0, len(columns), 32))
    body = struct.pack("<II", len(packed), len(columns)) + packed
    (tmp_path / "packed.pcd").write_bytes(head + b"DATA binary_compressed\n" + body)
    for name in ("binary.pcd", "ascii.pcd", "packed.pcd"):
        read = read_points(tmp_path / name)
        np.testing.assert_array_equal(read.positions, [[1, 2, 3], [7, 8, 9]])
        np.testing.assert_array_equal(read.colors, [[1, 2, 3], [255, 128, 0]])
        np.testing.assert_array_equal(read.intensity, [0.5, 2])
        assert len(read.warnings) == 1


def _packed(points: Points) -> np.ndarray:
    assert points.colors is not None
    wide = points.colors.astype(np.uint32)
    return (wide[:, 0] << 16 | wide[:, 1] << 8 | wide[:, 2]).view(np.float32)


def test_lzf_references_back() -> None:
    """A run made by a reference that overlaps what it writes."""
    from airworthy.scenes.formats import pcd

    source = type("Source", (), {"refuse": lambda self, reason: (_ for _ in ()).throw(AssetError(reason))})()
    assert pcd.decompress(source, b"\x01ab" + bytes([3 << 5, 1]) + b"\x00c", 8) == b"abababac"[:7] + b"c"
    with pytest.raises(AssetError):
        pcd.decompress(source, b"\x00a" + bytes([3 << 5, 5]), 6)


def test_large_coordinates_are_warned_of(tmp_path: Path) -> None:
    (tmp_path / "a.obj").write_text("v 500000 0 0\nv 500001 0 0\nv 500000 1 0\nv 1e12 0 0\nf 1 2 3\nf 1 2 4\n")
    warnings = " ".join(read_model(tmp_path / "a.obj").warnings)
    assert "subtract an offset" in warnings
    assert "beyond 1e+07 m" in warnings


# Maps


def test_smoothness_is_one_minus_roughness(tmp_path: Path) -> None:
    from PIL import Image

    for name, value in (("m", 10), ("s", 55), ("h", 128)):
        Image.new("L", (4, 2), value).save(tmp_path / f"{name}.png")
    Image.fromarray(np.full((2, 4), 40_000, np.uint16)).save(tmp_path / "deep.png")
    files = {"metallic": tmp_path / "m.png", "smoothness": tmp_path / "s.png", "height": tmp_path / "deep.png"}
    material, textures = read_maps(files)
    packed = textures[material.metallic_roughness_map].pixels
    assert packed[0, 0].tolist() == [255, 200, 10]
    assert textures[material.height_map].pixels[0, 0, 0] == 40_000 >> 8
    assert (material.metallic, material.roughness, material.height_scale) == (1.0, 1.0, 0.02)
    small = pack_metallic_roughness(packed[..., 2:], np.zeros((1, 1, 1), np.uint8))
    assert small.shape == (2, 4, 3)
    assert (small[..., 1] == 0).all()
    with pytest.raises(AirworthyError, match="smoothness"):
        read_maps({"smoothnes": tmp_path / "s.png"})


# Writers


@pytest.mark.parametrize("format_", sorted(EXPORTS))
def test_exports_are_deterministic(format_: str, tmp_path: Path) -> None:
    place = scene()
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        export_scene(place, tmp_path / folder / f"x.{format_}")
    for path in sorted((tmp_path / "a").rglob("*")):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes()


@pytest.mark.parametrize("format_", ["glb", "obj", "stl", "ply"])
def test_what_we_write_we_and_trimesh_read(format_: str, tmp_path: Path) -> None:
    import trimesh

    place = scene()
    path = export_scene(place, tmp_path / f"x.{format_}")
    model = read_model(path)
    reference = trimesh.load(path, process=False)
    mesh = reference.to_mesh() if isinstance(reference, trimesh.Scene) else reference
    triangles = 12 + 960 + 128 + 1024 + 12 + 960
    assert len(mesh.faces) == triangles
    total = sum(len(model.shapes[i.shape].faces) for i in model.instances)  # type: ignore[union-attr]
    assert total == triangles
    lower, upper = np.array([-3.6, -2.0, 0.0]), np.array([5.0 + 0.7, 5.0 + 0.7, 3.8])
    expected = np.array([lower, upper])
    expected[0, 0] = -3.6
    bounds = mesh.bounds if format_ != "glb" else mesh.bounds[:, [0, 2, 1]] * [1, -1, 1]
    np.testing.assert_allclose(np.sort(bounds, 0), expected, atol=1e-5)


def test_glb_keeps_everything(tmp_path: Path) -> None:
    place = scene()
    model = read_model(write_glb(tmp_path / "x.glb", place))
    assert model.warnings == ()
    assert len(model.instances) == 6
    for mine, read in zip(place.instances, model.instances, strict=False):
        assert read.position == pytest.approx(mine.position)
        assert read.attitude == pytest.approx(mine.attitude)
        assert read.scale == pytest.approx(mine.scale)
        assert (read.materials, read.semantic, read.instance_id) == (mine.materials, mine.semantic, mine.instance_id)
        assert (read.collide, read.visible) == (mine.collide, mine.visible)
    for name, material in place.materials.items():
        read_material = dataclasses.asdict(model.materials[name])
        for key, value in dataclasses.asdict(material).items():
            if isinstance(value, float | tuple):
                assert read_material[key] == pytest.approx(value), key
            elif key.endswith("_map") and value:
                texture = model.textures[read_material[key]]
                assert texture.wrap == place.textures[value].wrap
                assert texture.srgb == place.textures[value].srgb
                np.testing.assert_array_equal(texture.pixels, place.textures[value].pixels)
    sun, point, spot = model.lights
    assert isinstance(sun, Sun)
    assert isinstance(point, PointLight)
    assert isinstance(spot, SpotLight)
    assert sun.direction == pytest.approx((0.0, 0.6, -0.8))
    assert (point.position, point.intensity, point.range) == ((1.0, 2.0, 3.0), pytest.approx(10.0), 9.0)
    assert spot.position == pytest.approx((5.0, 5.0, 1.0))
    assert spot.direction == pytest.approx((0.0, 1.0, 0.0), abs=1e-6)  # the actor is turned by a quarter
    assert (spot.inner_angle, spot.outer_angle) == pytest.approx((0.3, 0.5))


def test_obj_keeps_materials(tmp_path: Path) -> None:
    place = scene()
    model = read_model(write_obj(tmp_path / "x.obj", place))
    assert model.warnings == ()
    mine, read = place.materials["map"], model.materials["map"]
    assert (read.base_color, read.metallic, read.roughness) == (mine.base_color, mine.metallic, mine.roughness)
    assert (read.normal_scale, read.height_scale) == pytest.approx((mine.normal_scale, mine.height_scale))
    np.testing.assert_array_equal(model.textures[read.base_color_map].pixels, place.textures["grid"].pixels)
    packed = model.textures[read.metallic_roughness_map].pixels
    np.testing.assert_array_equal(packed[..., 1:], place.textures["rough"].pixels[..., 1:])
    assert model.materials["red"].emissive == (2.0, 0.0, 0.0)


def test_dae_is_what_it_should_be(tmp_path: Path) -> None:
    place = scene()
    root = ET.parse(export_scene(place, tmp_path / "x.dae")).getroot()  # noqa: S314 - our own file
    space = "{http://www.collada.org/2005/11/COLLADASchema}"
    assert root.tag == space + "COLLADA"
    assert root.get("version") == "1.4.1"
    assert root.find(f"{space}asset/{space}up_axis").text == "Z_UP"  # type: ignore[union-attr]
    assert root.find(f"{space}asset/{space}unit").get("meter") == "1"  # type: ignore[union-attr]
    geometries = root.findall(f".//{space}geometry")
    assert [geometry.get("name") for geometry in geometries] == ["ground", "tree", "object"]
    counts = [sum(int(t.get("count", "0")) for t in g.iter(space + "triangles")) for g in geometries]
    assert counts == [12, 960, 128 + 1024 + 12 + 960]
    for geometry in geometries:
        vertices = sum(len(a.text.split()) for a in geometry.iter(space + "float_array") if "positions" in a.get("id", ""))  # type: ignore[union-attr]
        for p in geometry.iter(space + "p"):
            indices = np.array(p.text.split(), int)  # type: ignore[union-attr]
            assert indices.max() < vertices // 3
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    references = {e.get(k, "")[1:] for e in root.iter() for k in ("url", "target", "source") if e.get(k, "").startswith("#")}
    assert references <= set(ids)


def test_sdf_is_what_it_should_be(tmp_path: Path) -> None:
    place = scene()
    world = ET.parse(export_scene(place, tmp_path / "x.sdf")).getroot().find("world")  # noqa: S314 - our own file
    assert world is not None
    models = world.findall("model")
    assert len(models) == 6
    kinds = [next(iter(next(model.iter("geometry")))).tag for model in models]
    assert kinds == ["box", "sphere", "cylinder", "capsule", "mesh", "sphere"]
    assert models[0].findtext(".//box/size") == "2 4 1"
    assert models[2].findtext(".//cylinder/length") == "2"
    np.testing.assert_allclose(np.array(models[2].findtext("pose", "").split(), float)[[0, 1, 2, 4]], [0, 5, 1, math.pi / 2])
    assert models[1].find(".//collision") is None
    assert models[3].find(".//visual") is None
    assert [light.get("type") for light in world.findall("light")] == ["directional", "point", "spot"]
    uri = tmp_path / world.findtext(".//mesh/uv", world.findtext(".//mesh/uri", ""))
    assert len(only(read_model(uri)).faces) == 12


def test_missing_shapes_and_formats_are_named(tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match="'nothing'"):
        write_stl(tmp_path / "a.stl", Model(instances=(Instance("nothing"),)))
    with pytest.raises(AirworthyError, match="export format"):
        export_scene(scene(), tmp_path / "a.fbx")
    with pytest.raises(AirworthyError, match="shape"):
        write_pcd(tmp_path / "a.pcd", np.zeros((3, 2)))


@st.composite
def meshes(draw: st.DrawFn) -> Mesh:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(3, 30))
    faces = np.stack([rng.permutation(count)[:3] for _ in range(draw(st.integers(1, 40)))]).astype(np.int32)
    normals = rng.normal(size=(count, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return Mesh(
        rng.normal(0, 10.0 ** draw(st.integers(-3, 3)), (count, 3)).astype(np.float32),
        faces,
        normals if draw(st.booleans()) else None,
        rng.random((count, 2)) if draw(st.booleans()) else None,
        rng.random((count, 4)) if draw(st.booleans()) else None,
    )


@given(mesh=meshes())
def test_meshes_come_back(mesh: Mesh, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("round")
    corners = mesh.vertices[mesh.faces]
    for write, name in ((write_glb, "m.glb"), (write_obj, "m.obj"), (write_stl, "m.stl"), (write_ply, "m.ply")):
        model = read_model(write(folder / name, mesh))
        read = only(model)
        # Normals at random: faces that disagree with theirs are turned round, all corners with them.
        order = np.where((read.vertices[read.faces] == corners).all((1, 2))[:, None], [0, 1, 2], [0, 2, 1])
        faces = np.take_along_axis(read.faces, order, 1)
        rewound = (order[:, 1] == 2).any()
        assert not rewound or any("faces turned round" in line for line in model.warnings)
        np.testing.assert_array_equal(read.vertices[faces], corners)  # nine digits, or the bytes: exact
        if mesh.uv is not None and name != "m.stl":
            # 1 - v, there and back, rounds twice.
            np.testing.assert_allclose(read.uv[faces], mesh.uv[mesh.faces], atol=1.2e-7)  # type: ignore[index]
        if mesh.normals is not None and name != "m.stl":
            before, after = mesh.normals[mesh.faces], read.normals[faces]  # type: ignore[index]
            turned = np.einsum("fci,fci->fc", before, after) < 0.0
            assert turned.any() == any("normals turned round" in line for line in model.warnings)
            # Made unit again when read.
            np.testing.assert_allclose(np.where(turned[..., None], -after, after), before, atol=2e-7)
        if mesh.colors is not None and name == "m.glb":
            np.testing.assert_array_equal(read.colors[faces], mesh.colors[mesh.faces])  # type: ignore[index]


@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, 50), color=st.booleans(), intensity=st.booleans())
def test_clouds_come_back(
    seed: int, count: int, color: bool, intensity: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rng = np.random.default_rng(seed)
    points = Points(
        rng.normal(size=(count, 3)).astype(np.float32),
        rng.integers(0, 256, (count, 3)).astype(np.uint8) if color else None,
        rng.random(count).astype(np.float32) if intensity else None,
    )
    folder = tmp_path_factory.mktemp("cloud")
    for path in (write_pcd(folder / "a.pcd", points), write_points_ply(folder / "a.ply", points)):
        read = read_points(path)
        np.testing.assert_array_equal(read.positions, points.positions)
        for name in ("colors", "intensity"):
            if getattr(points, name) is not None:
                np.testing.assert_array_equal(getattr(read, name), getattr(points, name))


# Shapes


@pytest.mark.parametrize(
    "shape", [Box((1, 2, 3)), Sphere(2.0), Cylinder(1.0, 2.0), Capsule(1.0, 2.0)], ids=lambda s: type(s).__name__
)
@pytest.mark.parametrize("segments", [3, 8, 33, 128])
def test_solids_become_closed_meshes(shape: Box | Sphere | Cylinder | Capsule, segments: int) -> None:
    import trimesh

    mesh = tessellate(shape, segments)
    solid = trimesh.Trimesh(mesh.vertices, mesh.faces, process=False)
    solid.merge_vertices(merge_tex=True, merge_norm=True)
    assert solid.is_watertight
    assert solid.is_winding_consistent
    volumes = {Box: 48.0, Sphere: 32 / 3 * math.pi, Cylinder: 4 * math.pi, Capsule: (4 + 4 / 3) * math.pi}
    # Inscribed: less than the solid, by about 1 - sin(2 pi / n) / (2 pi / n) per curved direction.
    step = 2 * math.pi / segments
    assert volumes[type(shape)] * (math.sin(step) / step) ** 2 * 0.9 <= solid.volume <= volumes[type(shape)] * (1 + 1e-6)
    corners = mesh.vertices[mesh.faces].astype(float)
    outward = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert mesh.normals is not None
    assert ((outward * mesh.normals[mesh.faces].mean(1)).sum(1) > 0).all()
    assert mesh.uv is not None
    assert mesh.uv.min() >= -1e-6
    assert mesh.uv.max() <= 1 + 1e-6


def test_levels_of_detail() -> None:
    mesh = tessellate(Sphere(1.0), 128)
    full, quarter, coarse = levels_of_detail(mesh)
    assert full is mesh
    assert 0.15 * len(mesh.faces) < len(quarter.faces) <= 0.25 * len(mesh.faces)
    assert 0.03 * len(mesh.faces) < len(coarse.faces) <= 0.06 * len(mesh.faces)
    for level in (quarter, coarse):
        radius = np.linalg.norm(level.vertices, axis=1)
        assert radius.max() <= 1 + 1e-6
        assert radius.min() > 0.97  # a cell is small against the sphere
        assert level.uv is not None
    with pytest.raises(AirworthyError, match="above 0"):
        levels_of_detail(mesh, (0.0,))


def test_weld_merges_what_is_equal() -> None:
    mesh = tessellate(Box((1, 1, 1)))
    soup = Mesh(mesh.vertices[mesh.faces].reshape(-1, 3), np.arange(36).reshape(-1, 3))
    welded = weld(soup)
    assert len(welded.vertices) == 8
    np.testing.assert_array_equal(welded.vertices[welded.faces], soup.vertices[soup.faces])


@pytest.mark.parametrize(("inside", "count"), [(True, 10 * 5 * 4), (False, 10 * 5 * 4 - 8 * 3 * 2)])
def test_sampled_points_cover_a_box(inside: bool, count: int) -> None:
    box = Scene("s", {"b": Box((0.5, 0.25, 0.2))}, instances=(Instance("b", (0.5, 0.25, 0.2)),))
    points = sample_points(box, inside=inside).positions
    assert len(points) == count
    np.testing.assert_allclose(points.min(0), [0.05, 0.05, 0.05], atol=1e-6)
    np.testing.assert_allclose(points.max(0), [0.95, 0.45, 0.35], atol=1e-6)


# Reference files: counts as their SOURCES.md states them.

SCANS = {
    "threedscans/Column03/Column03.obj": 13_980,
    "threedscans/Hermes/Hermes.obj": 19_670,
    "threedscans/Plato/Plato.obj": 17_064,
    "threedscans/Gutenberg/Gutenberg.obj": 17_346,
    "threedscans/BootlegEve/BootlegEve.obj": 15_654,
    "ggg/Angel.obj": 35_804,
    "ggg/birdBath.obj": 35_079,
    "ggg/blackVase.obj": 31_366,
    "ggg/owl.obj": 24_407,
    "ggg/plasticVase.obj": 35_708,
    "ggg/seaVase.obj": 35_483,
    "ycb_banana/textured_simple_reoriented.obj": 15_728,
    "ycb_scissors/textured_simple_reoriented.obj": 15_728,
    "egyptian_cat/cat.glb": 4_622,
    "copyroom/copyroom_c2000_opt.obj": 30_947,
}


@pytest.mark.parametrize("name", SCANS)
def test_the_scans_load(name: str, data_dir: Path) -> None:
    path = data_dir / "meshes" / name
    model = read_model(path)
    dropped = [int(w.partition("(")[2].rstrip(")").replace(",", "") or 1) for w in model.warnings if "without area" in w]
    assert len(only(model).faces) + sum(dropped) == SCANS[name]
    (instance,) = model.instances
    material = model.materials[instance.materials[0]] if instance.materials else Material()
    if "threedscans" in name:
        assert material.normal_map
        assert material.occlusion_map
    if "ycb" in name or "copyroom" in name:
        assert material.base_color_map
    if "cat" in name:
        maps = (material.base_color_map, material.metallic_roughness_map, material.normal_map, material.occlusion_map)
        assert all(maps)


def test_the_reference_cloud_loads(data_dir: Path) -> None:
    points = read_points(data_dir / "scenes" / "navrl" / "generated_env_initial.pcd").positions
    assert points.shape == (40_548, 3)
    np.testing.assert_allclose([points.min(0), points.max(0)], [[-9.4, -10.0, 0.0], [10.0, 10.2, 4.0]], atol=0.06)


def test_full_size_on_request(data_dir: Path) -> None:
    path = data_dir / "meshes" / "ycb_banana" / "textured_simple_reoriented.obj"
    assert next(iter(read_model(path).textures.values())).pixels.shape == (2048, 2048, 3)
    model = read_model(path, FileLimits(memory_bytes=200_000_000))
    assert next(iter(model.textures.values())).pixels.shape == (4096, 4096, 3)
    assert model.warnings == ()


def test_a_scan_survives_the_round_trip(data_dir: Path, tmp_path: Path) -> None:
    import trimesh

    mine = read_model(data_dir / "meshes" / "egyptian_cat" / "cat.glb")
    small = {name: Texture(t.pixels[::8, ::8], t.srgb, t.wrap) for name, t in mine.textures.items()}  # PNG takes its time
    model = read_model(write_glb(tmp_path / "cat.glb", dataclasses.replace(mine, textures=small)))
    np.testing.assert_array_equal(only(model).vertices, only(mine).vertices)
    np.testing.assert_array_equal(only(model).faces, only(mine).faces)
    np.testing.assert_array_equal(only(model).uv, only(mine).uv)  # type: ignore[arg-type]
    assert len(model.textures) == 3
    file = io.BytesIO((tmp_path / "cat.glb").read_bytes())
    reference = trimesh.load(file, file_type="glb")
    assert len(reference.to_mesh().faces) == 4_622
