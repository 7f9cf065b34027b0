"""Scene files: what is written comes back to the bit; what is wrong is refused in one sentence that names file and key."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from airworthy.cli.scenes.pictures import STARTER
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.geometry import Box, Capsule, Cylinder, Mesh, Sphere
from airworthy.scenes import (
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
    SplatPlacement,
    SpotLight,
    Sun,
    Texture,
    Waypoint,
    add_actor,
    formats,
    person,
    read_scene,
    scene,
    scene_digest,
    scene_names,
    write_scene,
)
from airworthy.scenes.carved import CarvedSpace
from airworthy.scenes.files import scene_file
from airworthy.scenes.files.assets import read_image
from airworthy.scenes.formats.model import FileLimits
from airworthy.scenes.splats import Splats


def mesh(rng: np.random.Generator) -> Mesh:
    vertices = rng.normal(size=(7, 3)).astype(np.float32)
    return Mesh(
        vertices,
        rng.integers(0, 7, (5, 3)),  # faces without area included: nothing may be cleaned away
        normals=rng.normal(size=(7, 3)),
        uv=rng.normal(size=(7, 2)),
        colors=rng.random((7, 4)),
        face_material=np.array([0, 1, 1, 0, 1]),
        channels={"heat": rng.random(7).astype(np.float32), "flow:uv": rng.random((7, 2)).astype(np.float32)},
    )


def cloud(rng: np.random.Generator, degree: int = 2) -> Splats:
    turn = rng.normal(size=(5, 4))
    return Splats(
        rng.normal(size=(5, 3)),
        turn / np.linalg.norm(turn, axis=1, keepdims=True),
        rng.uniform(0.01, 0.1, (5, 3)),
        rng.random(5),
        rng.normal(size=(5, (degree + 1) ** 2, 3)),
    )


def everything() -> Scene:
    """A scene that uses every field there is."""
    rng = np.random.default_rng(11)
    shapes = {
        "box": Box((0.1, 1.0 / 3.0, 2.0)),
        "ball": Sphere(0.25),
        "can": Cylinder(0.1, 0.2),
        "pill": Capsule(0.3, 0.0),
        'odd "name" / ü': mesh(rng),
        "two:halves": mesh(rng),
    }
    part = Instance("pill", (0.1, 0.2, 0.3), (0.6, 0.0, 0.0, 0.8), 1.5, ("b",), "thing", 7, "part", False, True)
    path = (Waypoint(0.0, (1.0, 2.0, 3.0)), Waypoint(0.1, (1.0, 2.0, 4.0), (0.0, 0.6, 0.0, 0.8)))
    actors = (
        Actor("mover", (part,), "scripted", (1.0, 0.0, 0.0), (0.0, 0.0, 0.6, 0.8), path, True),
        Actor("drifter", (part,), "velocity", velocity=(0.1, 0.2, 0.3), rate=(1.0, 0.0, 0.0)),
    )
    scene = Scene(
        "all of it",
        shapes,
        {"a": Material(), "b": Material((0.1, 0.2, 0.3, 0.4), 0.5, 0.6, (1.0, 2.0, 3.0), "grey", "rgb", "rgba", 0.5, "grey")},
        {
            "grey": Texture(rng.integers(0, 256, (5, 4, 1), np.uint8), False, "clamp"),
            "rgb": Texture(rng.integers(0, 256, (3, 6, 3), np.uint8)),
            "rgba": Texture(rng.integers(0, 256, (2, 2, 4), np.uint8), True, "mirror"),
        },
        (Instance("box", carries="G"), part, Instance("two:halves", materials=("a", "b"))),
        actors,
        (
            Sun((0.0, 0.0, -1.0), (0.1, 0.2, 0.3), 2.5),
            PointLight((1.0, 2.0, 3.0), (0.1, 0.2, 0.3), 5.0, 6.0, "mover"),
            SpotLight((1.0, 2.0, 3.0), (0.0, 0.0, -1.0), 0.1, 0.2, (1.0, 0.0, 0.0), 3.0, 4.0, "mover"),
        ),
        Sky((0.1, 0.1, 0.1), (0.2, 0.2, 0.2), (0.3, 0.3, 0.3), 0.4),
        Region((-1.0, -2.0, -3.0), (4.0, 5.0, 6.0)),
        Pose((0.1, 0.2, 0.3), 1.1),
        Pose((0.4, 0.5, 0.6)),
        (Region((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)), Region((1.0, 0.0, 0.0), (2.0, 1.0, 1.0))),
        (
            GateFrame("G", ((0.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 1.0, 1.0), (0.0, 0.0, 1.0))),
            GateFrame("H", ((2.0, 0.0, 0.0), (2.0, 1.0, 0.0), (2.0, 1.0, 1.0), (2.0, 0.0, 1.0)), (-1.0, 0.0, 0.0), (0.1, 0.3)),
        ),
        (Beacon("G", "1", (0.0, 0.0, 0.1), "mover"),),
        ("robustness",),
        semantics={"thing": 77},
        clouds={"cloud": cloud(rng), "other one": cloud(rng, 0)},
        splats=(
            SplatPlacement("cloud", (1.0, 2.0, 3.0), (0.0, 0.0, 0.6, 0.8), 2.0, "mover", "one"),
            SplatPlacement("other one"),
        ),
        description='quotes " and \\ and \x7f and\nlines',
        source="us",
        facts={"width_m": 1e-300, "count": 3.0},
        looks=(Instance("two:halves", (0.0, 0.0, 1.0), (0.6, 0.0, 0.0, 0.8), 0.5, ("b",), name="leaf"),),
        carved=CarvedSpace(np.arange(30, dtype=np.uint8).reshape(2, 3, 5) % 3, (-0.1, 0.3, 1e-3), 0.07),
    )
    return add_actor(scene, person("walker", 1.62, animation="walking"))


def test_everything_comes_back_to_the_bit(tmp_path: Path) -> None:
    scene = everything()
    used = {name for name, value in vars(scene).items() if value not in ((), {}, None, "")}
    assert used == set(vars(scene)), "this scene must use every field of the record"
    path = write_scene(scene, tmp_path / "scene")
    again = read_scene(path)
    assert scene_digest(again) == scene_digest(scene)
    assert scene_digest(read_scene(tmp_path / "scene")) == scene_digest(scene)
    written = {file.name: file.read_bytes() for file in (tmp_path / "scene").rglob("*.*")}
    write_scene(again, tmp_path / "scene")
    assert written == {file.name: file.read_bytes() for file in (tmp_path / "scene").rglob("*.*")}


def test_a_scene_without_lights_gets_none(tmp_path: Path) -> None:
    """One that says nothing of lights has the sun; a place of splats alone has no light of its own."""
    dark = Scene("dark", lights=())
    write_scene(dark, tmp_path)
    assert read_scene(tmp_path).lights == ()
    assert scene_digest(read_scene(tmp_path)) == scene_digest(dark)


def test_the_digest_sees_every_change() -> None:
    scene = everything()
    digests = {scene_digest(scene)}
    digests.add(scene_digest(replace(scene, name="other")))
    digests.add(scene_digest(replace(scene, start=None)))
    digests.add(scene_digest(replace(scene, facts={**scene.facts, "count": np.nextafter(3.0, 4.0)})))
    digests.add(scene_digest(replace(scene, textures={**scene.textures, "rgb": Texture(scene.textures["rgb"].pixels ^ 1)})))
    digests.add(scene_digest(replace(scene, instances=scene.instances[::-1])))
    assert len(digests) == 6
    assert scene_digest(everything()) in digests


def test_fields_that_came_later_leave_stored_digests_alone() -> None:
    """The digest is what the first version of the record gave; what says something now counts."""
    corners = ((4.0, 0.5, 2.0), (4.0, -0.5, 2.0), (4.0, -0.5, 1.0), (4.0, 0.5, 1.0))
    scene = Scene(
        "pea",
        {"pea": Sphere(0.5)},
        instances=(Instance("pea"),),
        gates=(GateFrame("door", corners),),
        beacons=(Beacon("door", "1", (4.0, 0.5, 2.0)),),
    )
    before = "1bf027f141894bde331322f6d5db8c407f7f611fe3426b35447680c21a412cc9"
    assert scene_digest(scene) == before
    said = [
        replace(scene, gates=(GateFrame("door", corners, (1.0, 0.0, 0.0)),)),
        replace(scene, gates=(GateFrame("door", corners, pivot=(4.0, 0.0)),)),
        replace(scene, instances=(Instance("pea", carries="door"),)),
    ]
    assert len({before, *map(scene_digest, said)}) == 4


_numbers = st.floats(-1e6, 1e6, allow_nan=False)
_three = st.tuples(_numbers, _numbers, _numbers)


@given(st.text(max_size=40), st.lists(st.tuples(st.text(max_size=20), _three, st.floats(1e-3, 1e3)), max_size=4))
def test_any_text_and_number_comes_back(tmp_path_factory: pytest.TempPathFactory, text: str, items: list) -> None:
    folder = tmp_path_factory.mktemp("scene")
    instances = tuple(Instance(name, position, scale=scale, name=text) for name, position, scale in items)
    scene = Scene(text, {name: Sphere(scale) for name, _, scale in items}, instances=instances, description=text)
    assert scene_digest(read_scene(write_scene(scene, folder))) == scene_digest(scene)


def write(folder: Path, text: str, header: str = 'version = 1\nname = "x"\n') -> Path:
    path = folder / "scene.toml"
    path.write_text(header + text)
    return path


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("colour = 1", "unknown key 'colour'"),
        ("instanses = []", "closest: 'instances'"),
        (
            '[[instances]]\nshape = "a"\npositon = [0, 0, 0]',
            r"instances\[0\] has the unknown key 'positon' \(closest: 'position'\)",
        ),
        ("[[instances]]\nscale = 1.0", "lacks 'shape'"),
        ('[[instances]]\nshape = "a"\nposition = [0, 0]', "list of 3 values"),
        ('[[instances]]\nshape = "a"\nposition = [0, 0, nan]', "finite number"),
        ('[[instances]]\nshape = "a"\nscale = "big"', "must be a number"),
        ('[[instances]]\nshape = "a"\ncollide = 1', "true or false"),
        ('[[instances]]\nshape = "a"\nyaw = 1.0\nattitude = [0, 0, 0, 1]', "both 'yaw' and 'attitude'"),
        ("[shapes.a]\nkind = 'ring'", "shapes.a.kind must be one of 'box', 'sphere'"),
        ("[shapes.a]\nkind = 'box'\nsize = [1, 1, 1]", "unknown key 'size'"),
        ("[shapes.a]\nkind = 'mesh'\nfile = '/etc/passwd'", "remote or absolute"),
        ("[shapes.a]\nkind = 'mesh'\nfile = 'https://a.b/c.glb'", "remote or absolute"),
        ("[shapes.a]\nkind = 'mesh'\nfile = 'file:c.glb'", "remote or absolute"),
        ("[shapes.a]\nkind = 'mesh'\nfile = '../c.glb'", "leads out of"),
        ("[shapes.a]\nkind = 'mesh'\nfile = 'a/../../c.glb'", "leads out of"),
        ("[shapes.a]\nkind = 'mesh'\nfile = 'none.safetensors'", "no file"),
        ("[textures.a]\nfile = '..\\\\c.png'", "leads out of"),
        ("[textures.a]\nsrgb = true", "either 'file'"),
        ("[textures.a]\nprocedural = 'concret'", "'concrete'"),
        ("[textures.a]\nfile = 'broken.png'", "not a usable PNG"),
        ("[materials.a]\nroughnes = 1", "closest: 'roughness'"),
        ("[[lights]]\nkind = 'lamp'", "'sun', 'point', 'spot'"),
        ("[[lights]]\nkind = 'sun'", "lacks 'direction'"),
        ("[[actors]]\nname = 'a'", "lacks 'parts'"),
        ("[[actors]]\nname = 'a'\nperson = { hight = 1.8 }", "closest: 'height'"),
        ("[[actors]]\nname = 'a'\nperson = { height = 9 }", "0.5 to 2.5 m"),
        ("[[actors]]\nname = 'a'\nperson = {}\nparts = []", "give one of them"),
        ("[[actors]]\nname = 'a'\nparts = []\n[[actors]]\nname = 'a'\nparts = []", "already has an actor"),
        ("[[models]]\nfile = 'a.exe'", "no file or folder .*a.exe"),
        ("[skeletons.a]\nfile = 'broken.safetensors'", "not a usable safetensors file"),
        ("base = 'no such thing!'", "NAME\\[:INDEX\\]"),
        ("semantics = { a = 1.5 }", "whole number"),
        ("bounds = [0, 1]", "must be a table"),
        ("start = { position = [0, 0, 1], heading = 1 }", "unknown key 'heading'"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    (tmp_path / "broken.safetensors").write_bytes(b"\xff" * 64)
    with pytest.raises(AssetError, match=says) as caught:
        read_scene(write(tmp_path, text))
    assert "scene.toml" in str(caught.value) or "none.safetensors" in str(caught.value) or "a.exe" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("header", ["", "version = 2\n", "version = true\nname = 'x'\n", "version = 1\n"])
def test_version_and_name_are_asked_for(tmp_path: Path, header: str) -> None:
    with pytest.raises(AssetError, match=r"version|lacks 'name'"):
        read_scene(write(tmp_path, "", header))


def test_a_link_does_not_lead_out(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "secret.png").write_bytes(b"x")
    (inner / "a.png").symlink_to(tmp_path / "secret.png")
    with pytest.raises(AssetError, match="leads out of"):
        read_scene(write(inner, "[textures.a]\nfile = 'a.png'"))


def test_assets_are_bounded_together(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    scene = Scene("x", textures={str(k): Texture(noise) for k in range(3)})
    write_scene(scene, tmp_path)
    size = sum(file.stat().st_size for file in (tmp_path / "assets").iterdir())
    read_scene(tmp_path, FileLimits(file_bytes=size))
    with pytest.raises(AssetError, match="at most"):
        read_scene(tmp_path, FileLimits(file_bytes=size - 1))
    with pytest.raises(AssetError, match="64 x 64 pixels"):
        read_scene(tmp_path, FileLimits(texture_pixels=64 * 63))


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 6))):
        at = int(rng.integers(0, min(len(changed), 1500)))
        changed[at] = int(rng.integers(0, 256))
    return bytes(changed[: int(rng.integers(0, len(changed) + 1))] if rng.random() < 0.3 else changed)


def test_damaged_files_load_or_are_refused(tmp_path: Path) -> None:
    scene = everything()
    write_scene(scene, tmp_path)
    files = sorted(file for file in tmp_path.rglob("*.*") if file.is_file())
    rng = np.random.default_rng(2)
    refused = 0
    for number in range(300):
        file = files[number % len(files)]
        kept = file.read_bytes()
        file.write_bytes(damaged(kept, rng))
        said = ""
        try:
            read_scene(tmp_path)
        except AssetError as error:
            said = str(error)
        file.write_bytes(kept)
        refused += bool(said)
        assert "\n" not in said
    assert refused > 100
    assert scene_digest(read_scene(tmp_path)) == scene_digest(scene)


def test_the_starter_and_a_base_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from airworthy.scenes import catalogue

    def yard(index: int, seed: int) -> Scene:
        return Scene(
            "yard", {"ball": Sphere(float(index))}, instances=(Instance("ball"),), facts={"seed": float(seed)}, courses=("a",)
        )

    monkeypatch.setattr(catalogue, "scene_generators", lambda: {"yard": yard})
    folder = tmp_path / "a"
    folder.mkdir()
    path = write(folder, STARTER.format(name="mine").replace("version = 1\n", 'version = 1\nbase = "yard:3@7"\n'), "")
    scene = read_scene(path)
    assert scene.name == "mine"
    assert scene.shapes["ball"] == Sphere(3.0)
    assert [item.shape for item in scene.instances[:2]] == ["ball", "ground"]
    assert scene.facts == {"seed": 7.0}
    assert scene.courses == ("a",)
    assert len(scene.lights) == 2  # the base's sun and the file's
    path.write_text('version = 1\nbase = "yard:3@7"\n')
    assert scene_digest(read_scene(path)) == scene_digest(yard(3, 7))
    path.write_text('version = 1\nbase = "scene.toml"\n')
    with pytest.raises(AssetError, match="NAME"):  # a base is generated: files cannot refer to files
        read_scene(path)


def test_a_heading_is_a_rotation_about_the_vertical(tmp_path: Path) -> None:
    text: dict[str, Any] = {"shape": "a", "yaw": 0.5}
    lines = "\n".join(f"{key} = {value!r}" for key, value in text.items())
    scene = read_scene(write(tmp_path, f"[[instances]]\n{lines}\n"))
    np.testing.assert_allclose(scene.instances[0].attitude, (0.0, 0.0, np.sin(0.25), np.cos(0.25)))


def test_the_sign_of_zero_is_kept(tmp_path: Path) -> None:
    scene = Scene("x", instances=(Instance("a", attitude=(0.0, -0.0, 0.0, 1.0)),))
    attitude = read_scene(write_scene(scene, tmp_path)).instances[0].attitude
    assert np.signbit(attitude).tolist() == [False, True, False, False]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name in ("street", "woodland", "lakeside") else name
        for name in scene_names()
    ],
)
def test_every_generated_scene_comes_back(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if name == "hall_statues":
        request.getfixturevalue("data_dir")  # its statues are reference files
    made = scene(name)
    assert scene_digest(read_scene(write_scene(made, tmp_path))) == scene_digest(made)


def test_a_scene_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that fails half-way leaves the old scene; the user's own files stay."""
    old = Scene("old", {"ball": Sphere(0.1)}, instances=(Instance("ball"),))
    write_scene(old, tmp_path / "place")
    for name in ("notes.txt", "assets/mine.png"):
        (tmp_path / "place" / name).write_text("mine")
    before = {path: path.read_bytes() for path in (tmp_path / "place").rglob("*") if path.is_file()}

    def fails(*_: Any) -> Any:
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("airworthy.scenes.files.scene_file._write_clouds", fails)
        with pytest.raises(OSError, match="full"):
            write_scene(Scene("new", {"ball": Sphere(0.2)}, instances=(Instance("ball"),)), tmp_path / "place")
    assert {path: path.read_bytes() for path in (tmp_path / "place").rglob("*") if path.is_file()} == before
    new = Scene("new", {"ball": Sphere(0.2)}, instances=(Instance("ball"),))
    assert scene_digest(read_scene(write_scene(new, tmp_path / "place"))) == scene_digest(new)
    assert (tmp_path / "place/assets/mine.png").read_text() == "mine"
    assert (tmp_path / "place/notes.txt").read_text() == "mine"


def test_a_scene_of_somebody_else_is_not_replaced(tmp_path: Path) -> None:
    """Neither a scene.toml that was written by hand nor assets that a scene file by another name uses."""
    ball = Scene("ball", {"ball": Sphere(0.1)}, instances=(Instance("ball"),))
    (tmp_path / "scene.toml").write_text('version = 1\nname = "mine"\n')
    with pytest.raises(AirworthyError, match=r"scene.toml' is not of write_scene"):
        write_scene(ball, tmp_path)
    assert (tmp_path / "scene.toml").read_text() == 'version = 1\nname = "mine"\n'

    meshed = Scene("meshed", {"mesh": Mesh(np.eye(3), np.array([[0, 1, 2]]))}, instances=(Instance("mesh"),))
    path = write_scene(meshed, tmp_path / "other")
    path.rename(path.with_name("kept.toml"))
    before = (path.parent / "assets/meshes.safetensors").read_bytes()
    with pytest.raises(AirworthyError, match=r"assets/meshes.safetensors' is there, of no scene.toml"):
        write_scene(replace(meshed, name="again"), path.parent)
    assert (path.parent / "assets/meshes.safetensors").read_bytes() == before
    assert not path.exists()


def test_of_a_model_of_several_shapes_the_part_has_to_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shapes = {"hull": Box((1.0, 1.0, 1.0)), "mast": Box((0.1, 0.1, 2.0))}
    folder = SimpleNamespace(path=lambda file, where: tmp_path / file, limits=None)

    def read(count: int, part: str) -> object:
        monkeypatch.setattr(formats, "read_model", lambda *given: SimpleNamespace(shapes=dict(list(shapes.items())[:count])))
        return scene_file._shape({"kind": "mesh", "file": "boat.obj", "part": part}, folder, {}, "shapes.boat")  # type: ignore[arg-type]

    assert read(1, "") is shapes["hull"]
    assert read(2, "mast") is shapes["mast"]
    for count, part in ((2, ""), (1, "mast"), (0, "")):
        with pytest.raises(AirworthyError, match="part"):
            read(count, part)


def test_pixels_are_those_of_the_picture_whatever_they_are_stored_as() -> None:
    """Palettes, with and without a colour that is see-through, grey with alpha, CMYK, one bit: by colours that are known."""
    rng = np.random.default_rng(4)
    grey, colours = rng.integers(0, 256, (5, 7), np.uint8), rng.integers(0, 256, (4, 3), np.uint8)
    indices = rng.integers(0, 4, (5, 7), np.uint8)

    def held(image: Image.Image, **options: Any) -> Any:
        buffer = io.BytesIO()
        image.save(buffer, "PNG", **options)
        return read_image(buffer.getvalue(), FileLimits(), "a.png")

    palette = Image.fromarray(indices)
    palette.putpalette(colours.tobytes())
    np.testing.assert_array_equal(held(palette), colours[indices])
    clear = held(palette, transparency=2)
    np.testing.assert_array_equal(clear[..., :3], colours[indices])
    np.testing.assert_array_equal(clear[..., 3], np.where(indices == 2, 0, 255))
    both = held(Image.merge("LA", [Image.fromarray(grey), Image.fromarray(255 - grey)]))
    np.testing.assert_array_equal(both, np.stack([grey, grey, grey, 255 - grey], axis=-1))
    np.testing.assert_array_equal(held(Image.fromarray(grey)), grey[..., None])
    np.testing.assert_array_equal(held(Image.fromarray(grey > 99)), np.repeat(255 * (grey > 99), 3).reshape(5, 7, 3))
    for count in (3, 4):
        pixels = rng.integers(0, 256, (5, 7, count), np.uint8)
        np.testing.assert_array_equal(held(Image.fromarray(pixels)), pixels)
