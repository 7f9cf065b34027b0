"""What material libraries of OBJ files say of glass, mirrors and cut-outs, and what is told of the rest."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from airworthy.core.arrays import ArrayF32, ArrayU8
from airworthy.geometry import Mesh, RayTable
from airworthy.rendering.images import render
from airworthy.scenes import Scene
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.formats import Model, export_losses, read_model, write_glb, write_obj
from airworthy.scenes.record import Instance, Material, Sky, Texture
from airworthy.scenes.viewpoints import Viewpoint, look_at

HALF = (0.5, 0.5, 0.5)
SQUARE = "v -{0} {1} -{0}\nv {0} {1} -{0}\nv {0} {1} {0}\nv -{0} {1} {0}\nvt 0 0\nvt 1 0\nvt 1 1\nvt 0 1\n"


def write(folder: Path, lines: str) -> Path:
    """Write a square of a material `a` with these lines."""
    (folder / "a.mtl").write_text(f"newmtl a\n{lines}\n\nnewmtl unused\nmap_Ks nothing.png\nillum 0\n")
    (folder / "a.obj").write_text("mtllib a.mtl\n" + SQUARE.format(1, 0) + "usemtl a\nf 1/1 2/2 3/3 4/4\n")
    return folder / "a.obj"


def read(folder: Path, lines: str) -> tuple[Material, Model]:
    model = read_model(write(folder, lines))
    return model.materials["a"], model


# ---- What is read -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("d 0.25\nNi 1.33\nTf 0.9 0.8 0.7", {"base_color": (0.9, 0.8, 0.7, 1.0), "transmission": 0.75, "ior": 1.33}),
        ("Tr 0.75\nillum 7\nTf 1", {"base_color": (1.0, 1.0, 1.0, 1.0), "transmission": 0.75, "ior": 1.5}),
        ("d 0.5\nTr 0.1\nNi 9\nillum 4\nTf 1 1 1", {"base_color": (1.0, 1.0, 1.0, 1.0), "transmission": 0.5, "ior": 4.0}),
        # Without a filter, the hue of a blend with white behind: (0.5 + 0.5 * 0.2, ..., 0.5 + 0.5 * 1).
        ("Kd 0.2 0.2 1\nd\t0.5\nillum 9", {"base_color": (0.6, 0.6, 1.0, 1.0), "transmission": 0.5}),
        # (0.5 + 0.5 * 0.1, ...) = (0.55, 0.7, 0.6): a hue, of which the largest is one; how much passes is said elsewhere.
        ("Kd 0.1 0.4 0.2\nd 0.5\nillum 9", {"base_color": (0.55 / 0.7, 1.0, 0.6 / 0.7, 1.0), "transmission": 0.5}),
        ("Kd 0.5 0.5 0.5\nd 0.3", {"base_color": (*HALF, 0.3), "alpha_cutoff": 0.5}),
        ("Kd 0.5 0.5 0.5\nd 1\nTr 1\nNi 1.5\nillum 4", {"base_color": (*HALF, 1.0)}),
        ("Kd 0 0 0\nKs 0.9 0.6 0.3\nillum 3", {"base_color": (0.9, 0.6, 0.3, 1.0), "metallic": 1.0, "roughness": 0.0}),
        ("Kd 0.5 0.5 0.5\nKs 0.9 0.9 0.9\nillum 2", {"base_color": (*HALF, 1.0)}),
        ("Kd 0.5 0.5 0.5\nKs 0 0 0\nillum 5\nPr 0.4", {"base_color": (*HALF, 1.0), "roughness": 0.4}),
        (
            "Kd 0.5 0.5 0.5\nKs 1 1 1\nillum 3\nPm 0.25\nPr 0.4",
            {"base_color": (*HALF, 1.0), "metallic": 0.25, "roughness": 0.4},
        ),
    ],
)
def test_see_through_and_mirrors(lines: str, expected: dict[str, Any], tmp_path: Path) -> None:
    made, _ = read(tmp_path, lines)
    plain = Material()
    for name, value in vars(made).items():
        assert value == pytest.approx(expected.get(name, getattr(plain, name)), abs=2e-3), name


def leaf() -> ArrayU8:
    return np.arange(8 * 4 * 3, dtype=np.uint8).reshape(8, 4, 3)


@pytest.mark.parametrize("channel", ["", "-imfchan g "])
def test_a_mask_is_the_alpha_of_its_colours(channel: str, tmp_path: Path) -> None:
    mask = np.zeros((4, 8, 3), np.uint8)
    mask[:, 4:, 1] = 200
    Image.fromarray(leaf()).save(tmp_path / "leaf.png")
    Image.fromarray(mask).save(tmp_path / "mask.png")
    made, model = read(tmp_path, f"map_Kd leaf.png\nmap_d {channel}mask.png\nd 0\nNi 1.5\nillum 4")
    assert (made.alpha_cutoff, made.base_color[3], made.transmission) == (0.5, 1.0, 0.0)
    pixels = model.textures[made.base_color_map].pixels
    assert pixels.shape == (8, 8, 4)
    np.testing.assert_array_equal(pixels[..., :3], np.repeat(leaf(), 2, axis=1))
    # Green by itself, or as the eye weighs it.
    assert np.unique(pixels[:, :4, 3]) == 0
    assert np.unique(pixels[:, 4:, 3]) == (200 if channel else round(0.7152 * 200))


@pytest.mark.parametrize(
    ("lines", "told"),
    [("d 0.3", "d beside map_d"), ("Tr 0.7", "Tr beside map_d"), ("d 0", "d beside map_d"), ("d 1\nTr 1", "")],
)
def test_an_even_opacity_beside_a_mask_makes_no_hole_of_what_the_mask_leaves(lines: str, told: str, tmp_path: Path) -> None:
    Image.fromarray(np.eye(4, dtype=np.uint8) * 255).save(tmp_path / "mask.png")
    made, model = read(tmp_path, f"Kd 0.5 0.5 0.5\n{lines}\nmap_d mask.png")
    assert (made.alpha_cutoff, made.base_color[3], made.transmission) == (0.5, 1.0, 0.0)
    assert model.warnings == ((f"1 material has '{told}', which is not read",) if told else ())


def test_a_mask_without_colours_and_one_that_is_missing(tmp_path: Path) -> None:
    Image.fromarray(np.eye(4, dtype=np.uint8) * 255).save(tmp_path / "mask.png")
    made, model = read(tmp_path, "Kd 0.5 0.5 0.5\nmap_d mask.png")
    pixels = model.textures[made.base_color_map].pixels
    np.testing.assert_array_equal(pixels[..., 3], np.eye(4) * 255)
    assert (pixels[..., :3] == 255).all()
    made, model = read(tmp_path, "Kd 0.5 0.5 0.5\nmap_d none.png")
    assert (made.alpha_cutoff, made.base_color_map) == (0.0, "")
    assert model.warnings == ("image none.png left out: it is missing",)


@pytest.mark.parametrize("alpha", [True, False])
def test_an_image_that_is_its_own_mask_is_one_where_it_has_alpha(alpha: bool, tmp_path: Path) -> None:
    pixels = np.full((4, 4, 4), 90, np.uint8)
    Image.fromarray(pixels if alpha else pixels[..., :3]).save(tmp_path / "leaf.png")
    made, model = read(tmp_path, "map_Kd leaf.png\nmap_d leaf.png")
    assert made.alpha_cutoff == (0.5 if alpha else 0.0)
    assert model.textures[made.base_color_map].pixels.shape[2] == (4 if alpha else 3)


# ---- Libraries and their names ----------------------------------------------------------------------------------------------

RED, BLUE, GREEN = "Kd 1 0 0\n", "Kd 0 0 1\n", "Kd 0 1 0\n"


def colors(folder: Path, head: str, *names: str) -> tuple[dict[str, tuple[float, ...]], tuple[str, ...]]:
    """Return colours by material of a file with a triangle of each, below these lines, and what is told."""
    faces = "".join(f"usemtl {name}\nf 1 2 3\n" for name in names)
    (folder / "a.obj").write_text(head + SQUARE.format(1, 0) + faces)
    model = read_model(folder / "a.obj")
    return {name: material.base_color[:3] for name, material in model.materials.items()}, model.warnings


@pytest.mark.parametrize("head", ["mtllib a.mtl b.mtl\n", "mtllib a.mtl\nmtllib b.mtl\n", "mtllib a.mtl\t my b.mtl\n"])
def test_of_several_libraries_the_first_that_has_a_material_counts(head: str, tmp_path: Path) -> None:
    (tmp_path / "a.mtl").write_text(f"newmtl m\n{RED}")
    (tmp_path / ("my b.mtl" if "my" in head else "b.mtl")).write_text(f"newmtl m\n{BLUE}newmtl n\n{GREEN}")
    assert colors(tmp_path, head, "m", "n") == ({"m": (1, 0, 0), "n": (0, 1, 0)}, ())


def test_a_library_whose_name_has_blanks_is_one_where_there_is_such_a_file(tmp_path: Path) -> None:
    for name, color in (("a.mtl", RED), ("b.mtl", BLUE), ("a.mtl b.mtl", GREEN)):
        (tmp_path / name).write_text(f"newmtl m\n{color}")
    assert colors(tmp_path, "mtllib a.mtl b.mtl\n", "m") == ({"m": (0, 1, 0)}, ())
    assert colors(tmp_path, "mtllib c.mtl b.mtl\n", "m") == ({"m": (0, 0, 1)}, ("material library 'c.mtl' is missing",))
    _, told = colors(tmp_path, "mtllib my c.mtl\n", "m")
    assert told[0] == "material library 'my c.mtl' is missing"


def test_of_two_materials_of_one_name_in_a_library_the_last_counts_whole(tmp_path: Path) -> None:
    twice = "".join(f"newmtl {name}\nKd 1 0 0\nKe 1 1 1\nd 0\nNi 1.5\nnewmtl {name}\nKd 0 0 1\n" for name in ("m", "n", "o"))
    (tmp_path / "a.mtl").write_text(twice)
    found, told = colors(tmp_path, "mtllib a.mtl\n", "m", "n")
    assert found == {"m": (0, 0, 1), "n": (0, 0, 1)}
    assert told == ("materials that a library defines more than once: the last definition counts (2)",)
    made = read_model(tmp_path / "a.obj").materials["m"]
    assert (made.emissive, made.transmission) == ((0.0, 0.0, 0.0), 0.0)


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    (tmp_path / "a.mtl").write_text(f"newmtl m\n{RED}", "utf-8-sig")
    body = "mtllib a.mtl\n" + SQUARE.format(1, 0) + "usemtl m\nf 1 2 3 4\n"
    (tmp_path / "a.obj").write_text(body, "utf-8-sig")
    model = read_model(tmp_path / "a.obj")
    assert (model.materials["m"].base_color[:3], model.warnings) == ((1, 0, 0), ())
    # Without its mark the first vertex would be lost, and all indices off by one.
    (tmp_path / "b.obj").write_text(SQUARE.format(1, 0) + "f 1 2 3 4\n", "utf-8-sig")
    (mesh,) = read_model(tmp_path / "b.obj").shapes.values()
    assert isinstance(mesh, Mesh)
    assert len(mesh.vertices) == 4


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_names_that_differ_by_a_letter_with_an_accent_stay_apart(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "a.mtl").write_text(f"newmtl F\xea\n{GREEN}newmtl F\xe9\n{RED}", encoding)
    faces = "usemtl F\xea\nf 1 2 3\nusemtl F\xe9\nf 1 3 4\n"
    (tmp_path / "a.obj").write_text("mtllib a.mtl\n" + SQUARE.format(1, 0) + faces, encoding)
    model = read_model(tmp_path / "a.obj")
    assert {name: made.base_color[:3] for name, made in model.materials.items()} == {"F\xea": (0, 1, 0), "F\xe9": (1, 0, 0)}
    assert model.warnings == ()


# ---- What is told -----------------------------------------------------------------------------------------------------------


def test_what_is_not_read_is_counted_by_keyword(tmp_path: Path) -> None:
    (tmp_path / "a.mtl").write_text(
        "newmtl a\nKa 1 1 1\nKs 0.5 0.5 0.5\nPs 0\nPc 0.0\nPcr 0.03\nillum 2\nmap_Ks k.png\nmap_Ns n.png\n"
        "newmtl b\nmap_Ks k.png\nPc 0.5\nillum 0\nTf 0.3 0.3 0.3\n# map_Tr x.png\n"
        "newmtl c\nmap_Ks k.png\nillum 3\n"
    )
    faces = "".join(f"usemtl {name}\nf 1/1 2/2 3/3\n" for name in "ab")
    (tmp_path / "a.obj").write_text("mtllib a.mtl\n" + SQUARE.format(1, 0) + faces)
    assert read_model(tmp_path / "a.obj").warnings == (
        "2 materials have 'map_Ks', which is not read",
        "1 material has 'map_Ns', which is not read",
        "1 material has 'Pc', which is not read",
        "1 material has 'illum 0', which is not read",
        "1 material has 'Tf without d', which is not read",
    )


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("map_Kd -s 2 2 1 i.png", "1 material has 'map_Kd -s', which is not read"),
        ("map_Kd -s 1 1 1 -o 0 0 0 -clamp off -mm 0 1 i.png", ""),
        ("map_Kd -clamp on i.png", "1 material has 'map_Kd -clamp', which is not read"),
        ("illum 8", "1 material has 'illum 8 without Ks', which is not read"),
        ("d -halo 0.5\nNi 1.5", "1 material has 'd -halo', which is not read"),
        ("d 0.9", "materials that are see-through become holes where they are less than half opaque"),
        ("d much", "material line 'd much' not understood"),
        ("\n".join(f"x{k} 1" for k in range(40)), "8 further keywords of materials are not read"),
    ],
)
def test_options_and_models_that_are_not_read_are_told(lines: str, told: str, tmp_path: Path) -> None:
    Image.new("L", (2, 2)).save(tmp_path / "i.png")
    warnings = read(tmp_path, lines)[1].warnings
    assert warnings[-1:] == ((told,) if told else ())
    assert len(warnings) <= 33


# ---- Pictures ---------------------------------------------------------------------------------------------------------------


def picture(path: Path) -> ArrayF32:
    """Return what is seen of a file along y, under no sky: (h, w, 3)."""
    model = read_model(path)
    place = Scene("x", model.shapes, model.materials, model.textures, model.instances, sky=Sky(intensity=0.0))
    view = Viewpoint(np.array([0.0, -3.0, 0.0]), look_at((0.0, -3.0, 0.0), (0.0, 0.0, 0.0)), 0.4)
    table = RayTable(*view.rays(32, 24), axis=(0.0, 0.0, 1.0))
    seen = render(SceneBatch(place), table, view.position[None], view.attitude[None], channels=("rgb",))
    return np.asarray(seen["rgb"][0], np.float32)


def pane(lines: str, folder: Path) -> Path:
    """Write a pane with these lines before a wall that glows evenly."""
    (folder / "a.mtl").write_text(f"newmtl wall\nKd 0 0 0\nKe 1 1 1\nnewmtl pane\n{lines}\n")
    (folder / "a.obj").write_text(
        "mtllib a.mtl\n" + SQUARE.format(8, 4) + "usemtl wall\nf 1/1 2/2 3/3 4/4\n"
        + SQUARE.format(2, 0) + "usemtl pane\nf 5/5 6/6 7/7 8/8\n"
    )  # fmt: skip
    return folder / "a.obj"


def test_glass_passes_what_fresnel_leaves_and_is_drawn_as_that_of_gltf(tmp_path: Path) -> None:
    wall = picture(pane("d 0\nNi 1\nTf 1\nillum 4", tmp_path))[11:13, 15:17]
    np.testing.assert_allclose(wall, 1.0, atol=0.02)  # and a little gloss
    seen = picture(pane("d 0.5\nNi 1.5\nTf 1 0.5 0.25\nillum 4", tmp_path))
    # A sheet of index n mirrors 2 r / (1 + r) head-on, r = ((n - 1) / (n + 1))^2, to and fro between its sides.
    r = 0.2**2
    expected = 0.5 * (1.0 - 2.0 * r / (1.0 + r)) * np.array([1.0, 0.5, 0.25])
    np.testing.assert_allclose(seen[11:13, 15:17], expected * wall, rtol=1e-3)
    model = read_model(tmp_path / "a.obj")
    glass = Material((1.0, 0.5, 0.25, 1.0), transmission=0.5, ior=1.5)
    by_hand = replace(model, materials={**model.materials, "pane": glass})
    np.testing.assert_array_equal(picture(write_glb(tmp_path / "a.glb", by_hand)), seen)


def test_a_cut_out_is_drawn_as_that_of_gltf_and_comes_back(tmp_path: Path) -> None:
    alpha = (np.add.outer(np.arange(8), np.arange(8)) * 17).astype(np.uint8)
    Image.fromarray(alpha).save(tmp_path / "mask.png")
    seen = picture(pane("Kd 0.5 0.5 0.5\nKe 0 1 0\nmap_d mask.png", tmp_path))
    holes = seen[..., 0] > 0.9
    assert 0.2 < holes.mean() < 0.8
    assert seen[~holes][:, 0].max() < 0.3  # the leaf, by what the wall throws on it
    model = read_model(tmp_path / "a.obj")
    paint = Texture(np.dstack([np.full((8, 8, 3), 255, np.uint8), alpha]))
    leaf_ = Material((*HALF, 1.0), emissive=(0.0, 1.0, 0.0), base_color_map="m", alpha_cutoff=0.5)
    by_hand = replace(model, materials={**model.materials, "pane": leaf_}, textures={"m": paint})
    np.testing.assert_array_equal(picture(write_glb(tmp_path / "a.glb", by_hand)), seen)
    np.testing.assert_array_equal(picture(write_obj(tmp_path / "b.obj", by_hand)), seen)


# ---- What is written --------------------------------------------------------------------------------------------------------


def square(material: Material, *textures: Texture) -> Model:
    corners = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], np.float32)
    mesh = Mesh(corners, np.array([[0, 1, 2], [0, 2, 3]], np.int32), uv=corners[:, :2])
    named = {f"t{k}": texture for k, texture in enumerate(textures)}
    return Model({"square": mesh}, {"m": material}, named, (Instance("square", materials=("m",), name="i"),))


@pytest.mark.parametrize("index", [1.0, 1.33])
def test_panes_come_back(index: float, tmp_path: Path) -> None:
    glass = Material((0.9, 0.8, 0.7, 1.0), roughness=0.25, transmission=0.9, ior=index)
    again = read_model(write_obj(tmp_path / "a.obj", square(glass)))
    assert again.warnings == export_losses(square(glass), "obj") == ()
    assert vars(again.materials["m"]) == {
        name: pytest.approx(value) if isinstance(value, float | tuple) else value for name, value in vars(glass).items()
    }


@pytest.mark.parametrize(("cutoff", "alpha"), list(itertools.product([0.5, 0.2, 0.9], [1.0, 0.6])))
def test_holes_come_back_where_they_were(cutoff: float, alpha: float, tmp_path: Path) -> None:
    pixels = np.full((16, 16, 4), 80, np.uint8)
    pixels[..., 3] = np.arange(256).reshape(16, 16)
    cut = Material((1.0, 1.0, 1.0, alpha), base_color_map="t0", alpha_cutoff=cutoff)
    again = read_model(write_obj(tmp_path / "a.obj", square(cut, Texture(pixels))))
    assert again.warnings == export_losses(square(cut, Texture(pixels)), "obj") == ()
    made = again.materials["m"]
    found = again.textures[made.base_color_map].pixels
    np.testing.assert_array_equal(found[..., :3], pixels[..., :3])
    before, after = alpha * (pixels[..., 3] / 255.0) < cutoff, made.base_color[3] * (found[..., 3] / 255.0) < made.alpha_cutoff
    np.testing.assert_array_equal(after, before)


def test_an_alpha_that_is_of_no_matter_makes_no_holes(tmp_path: Path) -> None:
    again = read_model(write_obj(tmp_path / "a.obj", square(Material((0.5, 0.5, 0.5, 0.1)))))
    assert again.materials["m"] == replace(Material(), base_color=(0.5, 0.5, 0.5, 1.0))
    assert again.warnings == ()
