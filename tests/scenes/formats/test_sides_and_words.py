"""Normals against the winding of their faces, and what is said of files that are not what their name says."""

from __future__ import annotations

import itertools
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
REWOUND = "faces turned round that are wound against their vertex normals"


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


def two_balls(*wrong: bool) -> Mesh:
    """Return balls with normals outwards, or inwards where wrong, and a leaf whose normals are bent by 100 degrees."""
    balls = [ball(inward=inward) for inward in wrong]
    count, lean = len(balls[0].vertices), np.radians(100.0)
    leaf = np.array([[5, 0, 0], [6, 0, 0], [5, 1, 0]], np.float32)
    bent = np.tile(np.array([np.sin(lean), 0.0, np.cos(lean)], np.float32), (3, 1))
    last = np.array([[0, 1, 2]], np.int32) + count * len(balls)
    normals = [mesh.normals for mesh in balls if mesh.normals is not None]
    return Mesh(
        np.concatenate([*(mesh.vertices + np.float32(3.0 * k) for k, mesh in enumerate(balls)), leaf]),
        np.concatenate([*(mesh.faces + count * k for k, mesh in enumerate(balls)), last]).astype(np.int32),
        np.concatenate([*normals, bent]),
    )


@pytest.mark.parametrize("wrong", [(False, True), (False, True, False)])
def test_where_half_or_fewer_are_wrong_faces_are_turned_and_bent_leaves_are_not(
    wrong: tuple[bool, ...], tmp_path: Path
) -> None:
    mesh, faces, count = two_balls(*wrong), len(ball().faces), len(ball().vertices)
    model = read_model(write_ply(tmp_path / "a.ply", mesh))
    assert model.warnings == (f"{REWOUND} ({faces:,})",)
    (made,) = model.shapes.values()
    assert isinstance(made, Mesh)
    np.testing.assert_allclose(made.normals, mesh.normals, atol=1e-6)  # type: ignore[arg-type]
    expected = mesh.faces.copy()
    expected[faces : 2 * faces] = expected[faces : 2 * faces, [0, 2, 1]]
    np.testing.assert_array_equal(made.faces, expected)
    assert count * len(wrong) + 3 == len(made.vertices)


def test_where_most_are_wrong_their_normals_are_turned_and_those_of_right_ones_are_not(tmp_path: Path) -> None:
    mesh, count = two_balls(True, True, False), len(ball().vertices)
    model = read_model(write_ply(tmp_path / "a.ply", mesh))
    (made,) = model.shapes.values()
    assert isinstance(made, Mesh)
    np.testing.assert_array_equal(made.faces, mesh.faces)
    assert made.normals is not None
    assert mesh.normals is not None
    np.testing.assert_allclose(made.normals[: 2 * count], -mesh.normals[: 2 * count], atol=1e-6)
    np.testing.assert_allclose(made.normals[2 * count : 3 * count], mesh.normals[2 * count : 3 * count], atol=1e-6)


@pytest.mark.parametrize("inward", [False, True])
@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_a_ball_of_which_some_faces_are_wound_wrong_is_no_patchwork(share: float, inward: bool, tmp_path: Path) -> None:
    """Its normals are shared by faces of both kinds, so that they are right however many faces disagree."""
    mesh = ball(inward=inward)
    faces = mesh.faces.copy()
    wrong = np.random.default_rng(4).permutation(len(faces)) < share * len(faces)
    faces[wrong] = faces[wrong][:, [0, 2, 1]]
    model = read_model(write_ply(tmp_path / "a.ply", Mesh(mesh.vertices, faces, mesh.normals)))
    turned = int((wrong ^ inward).sum())
    assert model.warnings == (f"{REWOUND} ({turned:,})",)
    (made,) = model.shapes.values()
    assert isinstance(made, Mesh)
    np.testing.assert_array_equal(made.faces, mesh.faces[:, [0, 2, 1]] if inward else mesh.faces)
    np.testing.assert_allclose(made.normals, mesh.normals, atol=1e-6)  # type: ignore[arg-type]


def test_folds_of_a_surface_are_left_as_they_are(tmp_path: Path) -> None:
    """A square of eight triangles whose middle is drawn beyond its right side: two of them show their backs."""
    x, y = np.meshgrid([0.0, 1.0, 2.0], [0.0, 1.0, 2.0])
    corners = np.stack([x, y, 0.0 * x], 2).reshape(-1, 3).astype(np.float32)
    corners[4, 0] = 2.5
    around = [0, 1, 2, 5, 8, 7, 6, 3, 0]
    faces = np.array([(4, a, b) for a, b in itertools.pairwise(around)], np.int32)
    up = np.tile(np.array([0.0, 0.0, 1.0], np.float32), (9, 1))
    model = read_model(write_ply(tmp_path / "a.ply", Mesh(corners, faces, up)))
    (made,) = model.shapes.values()
    assert isinstance(made, Mesh)
    front = np.cross(*np.moveaxis(corners[faces[:, 1:]] - corners[faces[:, :1]], 1, 0))[:, 2]
    assert (front < 0).sum() == 2
    np.testing.assert_array_equal(made.faces, faces)
    np.testing.assert_array_equal(made.normals, up)
    assert model.warnings == ()


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
