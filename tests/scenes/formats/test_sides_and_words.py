"""Normals against the winding of their faces, and what is said of files that are not what their name says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from airworthy.core.arrays import ArrayF32
from airworthy.core.errors import AssetError
from airworthy.geometry import Mesh, RayTable, Sphere
from airworthy.rendering.images import render
from airworthy.scenes import Scene
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.formats import Model, read_model, tessellate, write_glb, write_obj, write_ply
from airworthy.scenes.viewpoints import Viewpoint, look_at

TURNED = "vertex normals turned round that point against the winding of their faces"


def ball(*, wound: bool = False, inward: bool = False) -> Mesh:
    """Return a ball, its faces wound inwards, its normals turned inwards, or both."""
    mesh = tessellate(Sphere(1.0), 16)
    assert mesh.normals is not None
    used, faces = np.unique(mesh.faces, return_inverse=True)
    faces = faces.reshape(-1, 3).astype(np.int32)
    normals = mesh.normals[used]
    return Mesh(mesh.vertices[used], faces[:, ::-1].copy() if wound else faces, -normals if inward else normals)


def seen(model: Model) -> ArrayF32:
    place = Scene("x", model.shapes, model.materials, model.textures, model.instances)
    view = Viewpoint(np.array([0.0, -3.0, 1.0]), look_at((0.0, -3.0, 1.0), (0.0, 0.0, 0.0)), 0.9)
    table = RayTable(*view.rays(32, 24), axis=(0.0, 0.0, 1.0))
    return np.asarray(
        render(SceneBatch(place), table, view.position[None], view.attitude[None], channels=("rgb",))["rgb"], np.float32
    )


@pytest.mark.parametrize(("wound", "inward"), [(True, False), (False, True), (True, True)])
def test_a_ball_looks_the_same_whichever_side_its_file_calls_outside(wound: bool, inward: bool, tmp_path: Path) -> None:
    plain = read_model(write_glb(tmp_path / "a.glb", ball()))
    assert plain.warnings == ()
    expected = seen(plain)
    assert np.ptp(expected) > 0.3
    for write in (write_glb, write_obj, write_ply):
        suffix = write.__name__.rpartition("_")[2]
        model = read_model(write(tmp_path / f"b.{suffix}", ball(wound=wound, inward=inward)))
        # Both round is a ball from within, which is drawn from either side as it is.
        told = () if wound and inward else (f"{TURNED} ({len(ball().vertices):,})",)
        assert model.warnings == told
        # Rays meet turned faces at the last bit elsewhere, and normals are packed in 16 bits.
        np.testing.assert_allclose(seen(model), expected, atol=2e-3)


def test_one_ball_of_two_is_turned_and_bent_leaves_are_not(tmp_path: Path) -> None:
    right, wrong = ball(), ball(inward=True)
    assert right.normals is not None
    assert wrong.normals is not None
    # A leaf whose normals are bent by 100 degrees, to the look of the crown around it.
    lean = np.radians(100.0)
    leaf = np.array([[5, 0, 0], [6, 0, 0], [5, 1, 0]], np.float32)
    bent = np.tile(np.array([np.sin(lean), 0.0, np.cos(lean)], np.float32), (3, 1))
    count = len(right.vertices)
    both = Mesh(
        np.concatenate([right.vertices, wrong.vertices + np.float32(3.0), leaf]),
        np.concatenate([right.faces, wrong.faces + count, [[2 * count, 2 * count + 1, 2 * count + 2]]]).astype(np.int32),
        np.concatenate([right.normals, wrong.normals, bent]),
    )
    model = read_model(write_ply(tmp_path / "a.ply", both))
    assert model.warnings == (f"{TURNED} ({count:,})",)
    (mesh,) = model.shapes.values()
    assert isinstance(mesh, Mesh)
    assert mesh.normals is not None
    np.testing.assert_allclose(mesh.normals, np.concatenate([right.normals, right.normals, bent]), atol=1e-6)


def test_where_most_are_wrong_so_are_those_between(tmp_path: Path) -> None:
    """A ball turned inwards of which one normal is bent to 110 degrees from the front: alone, it would be left as it is."""
    mesh = ball(inward=True)
    assert mesh.normals is not None
    lean, normals = np.radians(110.0), mesh.normals.copy()
    side = int(np.argmin(np.abs(mesh.vertices[:, 2]) - np.abs(mesh.vertices[:, 1])))
    normals[side] = np.cos(lean) * mesh.vertices[side] + np.sin(lean) * np.array([0.0, 0.0, 1.0])
    read = read_model(write_ply(tmp_path / "a.ply", Mesh(mesh.vertices, mesh.faces, normals)))
    (made,) = read.shapes.values()
    assert isinstance(made, Mesh)
    assert made.normals is not None
    np.testing.assert_allclose(made.normals, -normals, atol=1e-6)


@pytest.mark.parametrize(
    ("content", "is_"),
    [
        (b"", "empty"),
        (b" \n\t ", "blank"),
        (b"hello this is text", "text that begins with 'hello'"),
        (b"[1, 2]", "text that begins with '[1,'"),
        (b"\x89PNG\r\n\x1a\n" + bytes(40), "an image (PNG)"),
        (b"PK\x03\x04" + bytes(40), "an archive (ZIP)"),
        (bytes(range(256)), "binary, and does not begin as glTF"),
    ],
)
def test_what_is_no_gltf_is_told_for_what_it_is(content: bytes, is_: str, tmp_path: Path) -> None:
    path = tmp_path / "a.glb"
    path.write_bytes(content)
    expected = f"{str(path)!r} cannot be used: it is {is_}; expected glTF 2.0, binary or as JSON text."
    with pytest.raises(AssetError, match=f"^{re.escape(expected)}$"):
        read_model(path)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("cut.png", "image cut.png left out: it is damaged"),
        ("text.png", "image text.png left out: it is neither PNG nor JPEG nor WebP"),
        ("none.png", "image none.png left out: it is missing"),
    ],
)
def test_an_image_that_cannot_be_used_is_named_once(name: str, told: str, tmp_path: Path) -> None:
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3), np.uint8)).save(tmp_path / "cut.png")
    (tmp_path / "cut.png").write_bytes((tmp_path / "cut.png").read_bytes()[:3000])
    (tmp_path / "text.png").write_text("no image")
    (tmp_path / "a.mtl").write_text(f"newmtl a\nmap_Kd {name}\nmap_d {name}\n")
    (tmp_path / "a.obj").write_text("mtllib a.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nusemtl a\nf 1/1 2/1 3/1\n")
    assert read_model(tmp_path / "a.obj").warnings == (told,)
