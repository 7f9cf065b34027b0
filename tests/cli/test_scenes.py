"""`airworthy scenes`: what it prints, what it writes, what it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from airworthy.cli.main import main
from airworthy.core.errors import UnknownNameError
from airworthy.geometry import Box
from airworthy.rendering.shading import QUALITIES
from airworthy.scenes import Instance, Scene, export_scene, read_scene, scene, scene_digest, scene_names, weather_named
from airworthy.scenes.sky.weather import SKIES

Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scenes") / "yard"
    assert main(["scenes", "new", str(folder)]) == 0
    return folder


def run(line: list[str], capsys: Output) -> str:
    code = main(["scenes", *line])
    said = capsys.readouterr()
    assert code == 0, said.err
    return said.out


def test_list_names_every_scene(capsys: Output) -> None:
    rows = json.loads(run(["list", "--json"], capsys))
    assert [row["name"] for row in rows] == scene_names()
    assert all(row["description"] for row in rows)
    text = run([], capsys)
    assert all(name in text for name in scene_names())


def test_show_counts_what_is_there(yard: Path, capsys: Output) -> None:
    values = json.loads(run(["show", str(yard), "--json"], capsys))
    assert (values["name"], values["instances"], values["actors"], values["triangles_stored"]) == ("yard", 4, 1, 0)
    assert values["classes"] == {"ground": 1, "object": 2, "person": 15, "thin": 1}
    # The ground is 20 m wide and its upper side is at 0; the mast ends 4 m above it.
    np.testing.assert_allclose(values["extent_lower_m"], (-10.0, -10.0, -0.2), atol=1e-9)
    np.testing.assert_allclose(values["extent_upper_m"], (10.0, 10.0, 4.0), atol=1e-9)
    assert values["remarks"] == []
    assert values["memory_bytes"]["textures"] == 256 * 256 * 3
    assert "instances" in run(["show", str(yard)], capsys)


def test_show_measures_how_far_courses_keep(yard: Path, capsys: Output, tmp_path: Path) -> None:
    text = (yard / "scene.toml").read_text()
    wall = '\n[[instances]]\nshape = "ground"\nposition = [0.0, 0.0, -1.0]\nname = "below"\n'
    lower = text.replace("position = [0.0, 0.0, -0.1]\nmaterials", "position = [0.0, 0.0, -30.0]\nmaterials") + wall
    (tmp_path / "scene.toml").write_text(lower.replace('name = "yard"', 'name = "yard"\ncourses = ["line"]', 1))
    values = json.loads(run(["show", str(tmp_path), "--json"], capsys))
    row = values["courses"][0]
    from airworthy.trajectories import course

    path = course("line").trajectory()
    position = path.sample(np.linspace(0.0, path.duration, 2001)).position
    crates = [np.array([1.0, 2.0, 0.5]), np.array([1.1, 1.9, 1.35])]
    near = min(float(np.linalg.norm(position - c, axis=1).min()) for c in crates)
    assert row["name"] == "line"
    assert 0.0 < row["clearance_m"] <= near
    assert row["length_m"] == pytest.approx(path.length())
    assert "clearance_m" in run(["show", str(tmp_path)], capsys)


def test_new_validates_and_is_not_overwritten(yard: Path, capsys: Output) -> None:
    assert "yard is valid (4 instances, 1 actors, 0 triangles)" in run(["validate", str(yard / "scene.toml")], capsys)
    assert json.loads(run(["validate", str(yard), "--json"], capsys)) == {
        "name": "yard",
        "valid": True,
        "problems": [],
        "notes": [],
    }
    assert main(["scenes", "new", str(yard)]) == 2
    assert "exists already" in capsys.readouterr().err


def test_validate_names_every_problem(yard: Path, tmp_path: Path, capsys: Output) -> None:
    text = (
        (yard / "scene.toml")
        .read_text()
        .replace("start = { position = [-7.0, 0.0, 1.5]", "start = { position = [1.0, 2.0, 0.5]")
    )
    (tmp_path / "scene.toml").write_text(text)
    assert main(["scenes", "validate", str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "start at [1.0, 2.0, 0.5]" in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("ending", ["glb", "obj", "stl", "ply", "pcd", "dae", "sdf", "toml"])
def test_export_writes_every_format(yard: Path, tmp_path: Path, capsys: Output, ending: str) -> None:
    out = tmp_path / f"yard.{ending}" if ending != "toml" else tmp_path / "copy"
    run(["export", str(yard), "--out", str(out), *(["--format", "toml"] if ending == "toml" else [])], capsys)
    if ending == "toml":
        assert scene_digest(read_scene(out)) == scene_digest(read_scene(yard))
    elif ending in ("glb", "obj", "stl", "ply"):
        again = scene(out)
        size = np.array(again.bounds.upper) - np.array(again.bounds.lower)
        assert size[0] > 20.0  # the ground is 20 m wide, and stands within a margin
    else:
        assert out.stat().st_size > 100


@pytest.mark.parametrize(
    ("name", "out", "says"),
    [
        ("scene.toml", "backup.toml", "'backup.toml' is no scene.toml: a scene is written as a folder"),
        ("forest:3", "forest.toml", "name the folder, as 'forest'"),
        ("scene.toml", "scene.toml", "'scene.toml' exists already; choose another name, or remove it first."),
        ("forest:3", "scene.toml", "'scene.toml' exists already"),
        (".", ".", "'scene.toml' exists already"),
        ("forest:3", "kept", "'kept/assets' exists already"),
        ("scene.toml", "house.obj", "'house.obj' is the scene that is read, and would be written over"),
        (".", "house.obj", "'house.obj' is the scene that is read"),
        ("house.obj", "house.obj", "'house.obj' is the scene that is read"),
    ],
)
def test_an_export_replaces_no_file_of_the_user(
    name: str, out: str, says: str, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    export_scene(Scene("house", {"box": Box((1.0, 1.0, 1.0))}, instances=(Instance("box"),)), tmp_path / "house.obj")
    Path("scene.toml").write_text('version = 1\nname = "mine"\n[[models]]\nfile = "house.obj"\n')
    Path("kept/assets").mkdir(parents=True)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert main(["scenes", "export", name, "--out", out]) == 2
    said = capsys.readouterr()
    assert says in said.err
    assert said.out == ""
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_scene_is_exported_under_its_own_name(tmp_path: Path, capsys: Output) -> None:
    out = tmp_path / "fresh" / "scene.toml"
    assert "Wrote" in run(["export", "gym_forest", "--out", str(out)], capsys)
    assert scene_digest(read_scene(out)) == scene_digest(scene("gym_forest"))


def test_a_cloud_holds_what_is_solid(yard: Path, tmp_path: Path, capsys: Output) -> None:
    from airworthy.scenes.formats import read_points

    out = tmp_path / "yard.pcd"
    run(["export", str(yard), "--out", str(out), "--spacing", "0.25"], capsys)
    surface = read_points(out).positions
    run(["export", str(yard), "--out", str(out), "--spacing", "0.25", "--inside"], capsys)
    points = read_points(out).positions
    assert len(surface) < len(points)
    middle = np.abs(points - np.array([1.0, 2.0, 0.5])).max(1) < 0.3
    # Within 0.3 m of the crate's middle everything is solid: two or three cells of 0.25 m along each axis.
    assert 8 <= middle.sum() <= 27
    assert not (np.abs(points - np.array([-5.0, 5.0, 2.0])).max(1) < 0.5).any()
    run(["export", str(yard), "--out", str(out), "--spacing", "0.25", "--no-ground"], capsys)
    assert len(read_points(out).positions) < 0.2 * len(surface)  # the rest was the ground


def test_validate_reads_what_show_reads(yard: Path, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("yard.glb", "yard.pcd", "yard.ply", "yard.cloud.ply"):
        run(["export", str(yard), "--out", str(tmp_path / name)], capsys)
        assert "is valid (" in run(["validate", str(tmp_path / name)], capsys)
    assert "is valid (" in run(["validate", "forest:2"], capsys)
    monkeypatch.chdir(yard.parent)
    assert "yard is valid (" in run(["validate", "yard"], capsys)


def test_a_cloud_keeps_its_frame_and_a_mesh_is_stood(yard: Path, tmp_path: Path, capsys: Output) -> None:
    for name in ("yard.glb", "yard.pcd"):
        run(["export", str(yard), "--out", str(tmp_path / name)], capsys)
    own = json.loads(run(["show", str(yard), "--json"], capsys))

    def shown(name: str, *options: str) -> dict:
        found: dict = json.loads(run(["show", str(tmp_path / name), "--json", *options], capsys))
        return found

    cloud = shown("yard.pcd")
    for key in ("bounds_lower_m", "bounds_upper_m", "start_m", "goal_m"):
        assert cloud[key] == own[key]
    np.testing.assert_allclose(cloud["extent_lower_m"], own["extent_lower_m"], atol=0.1)
    assert cloud["facts"]["cell_m"] == pytest.approx(0.1, rel=1e-5)
    assert shown("yard.pcd", "--voxel", "0.25")["facts"]["cell_m"] == 0.25
    assert shown("yard.pcd", "--recentre")["extent_lower_m"][2] == pytest.approx(0.0, abs=1e-6)
    assert shown("yard.glb")["extent_lower_m"][2] == pytest.approx(0.0, abs=1e-6)
    kept = shown("yard.glb", "--keep-frame")
    np.testing.assert_allclose(kept["extent_lower_m"], own["extent_lower_m"], atol=1e-5)


def test_render_shows_what_stands_where(yard: Path, tmp_path: Path, capsys: Output) -> None:
    out = tmp_path / "top.png"
    line = ["render", str(yard), "--view", "top", "--out", str(out), "--width", "200", "--height", "200"]
    run([*line, "--channels", "semantic", "depth", "--time", "4.5"], capsys)
    with Image.open(tmp_path / "top_semantic.png") as image:
        pixels = np.asarray(image).astype(int)
    assert pixels.shape == (200, 200, 3)
    with Image.open(tmp_path / "top_depth.png") as image:
        assert image.size == (200, 200)
    metre = 200 / (20.0 * 1.04)

    def at(x: float, y: float) -> tuple[int, ...]:
        return tuple(pixels[int(100 - y * metre), int(100 + x * metre)])

    ground, sky = at(-6.0, -6.0), tuple(pixels[0, 0])
    crate, walker = at(1.0, 2.0), at(4.0, 0.0)  # after 4.5 s the walker is half way
    assert len({ground, sky, crate, walker}) == 4
    run(
        [
            "render",
            str(yard),
            "--out",
            str(out),
            "--width",
            "32",
            "--height",
            "32",
            "--eye",
            "0",
            "0",
            "3",
            "--target",
            "1",
            "2",
            "0",
            "--channels",
            "normal",
        ],
        capsys,
    )
    assert out.exists()


CORNER = """version = 1
name = "corner"
bounds = { lower = [-2.0, -2.0, 0.0], upper = [2.0, 2.0, 2.0] }
sky = { zenith = [0.0, 0.0, 0.0], horizon = [0.0, 0.0, 0.0], ground = [0.0, 0.0, 0.0] }
[shapes.floor]
kind = "box"
half_size = [1.0, 1.0, 0.05]
[shapes.wall]
kind = "box"
half_size = [0.05, 1.0, 0.5]
[materials.white]
base_color = [0.9, 0.9, 0.9, 1.0]
[materials.red]
base_color = [0.9, 0.02, 0.02, 1.0]
[[instances]]
shape = "floor"
materials = ["white"]
[[instances]]
shape = "wall"
position = [-1.0, 0.0, 0.5]
materials = ["red"]
[[lights]]
kind = "sun"
direction = [-0.8, 0.0, -0.6]
"""


def test_render_bakes_the_light_that_walls_send_on(tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    """A white floor under a black sky turns reddish beside a lit red wall, and only with --bake."""
    monkeypatch.setenv("AIRWORTHY_CACHE", str(tmp_path / "cache"))
    (tmp_path / "scene.toml").write_text(CORNER)
    line = ["render", str(tmp_path / "scene.toml"), "--view", "top", "--width", "64", "--height", "64", "--samples", "1"]
    shares = []
    for name, more in (("plain", []), ("baked", ["--bake"])):
        run([*line, "--out", str(tmp_path / f"{name}.png"), *more], capsys)
        with Image.open(tmp_path / f"{name}.png") as image:
            pixels = np.asarray(image.convert("RGB")).astype(float)
        beside = pixels[24:40, 22:30]  # on the floor, right of the wall at the left
        shares.append((beside[..., 0] / beside[..., 1]).mean())
    assert shares[0] < 1.03  # the sun's own warmth
    assert shares[1] > 1.05 * shares[0]


def test_render_makes_stills(tmp_path: Path, capsys: Output) -> None:
    """A still image needs no --bake for the red beside the wall; its seed is its noise."""
    (tmp_path / "scene.toml").write_text(CORNER)
    line = ["render", str(tmp_path / "scene.toml"), "--view", "top", "--width", "32", "--height", "32", "--quality", "still"]
    made = []
    for name, more in (("one", []), ("again", []), ("other", ["--seed", "7"])):
        run([*line, "--samples", "48", "--out", str(tmp_path / f"{name}.png"), *more], capsys)
        with Image.open(tmp_path / f"{name}.png") as image:
            made.append(np.asarray(image.convert("RGB")).astype(float))
    beside = made[0][12:20, 11:15]
    assert (beside[..., 0] / beside[..., 1]).mean() > 1.05
    assert (made[0] == made[1]).all()
    assert (made[0] != made[2]).any()


def test_render_under_several_skies_makes_one_picture_of_them(yard: Path, tmp_path: Path, capsys: Output) -> None:
    out = tmp_path / "skies.png"
    line = ["render", str(yard), "--out", str(out), "--width", "48", "--height", "32", "--samples", "1", "--view", "orbit"]
    said = run([*line, "--channels", "rgb", "depth", "--sky", "noon", "fog", "dusk", "2026-12-21T12:00+01:00"], capsys)
    assert "(rgb, 96 x 64)" in said
    assert "(depth, 48 x 32)" in said
    with Image.open(tmp_path / "skies_rgb.png") as image:
        pixels = np.asarray(image).astype(float)
    noon, fog, dusk, winter = (pixels[y : y + 32, x : x + 48] for y in (0, 32) for x in (0, 48))
    # Automatic exposure: whatever the hour, something is to be seen.
    assert all(40.0 < part.mean() < 200.0 for part in (noon, fog, dusk, winter))
    assert fog.std() < 0.7 * noon.std()
    assert dusk[..., 2].mean() > dusk[..., 0].mean()
    run([*line, "--sky", "dusk", "--exposure", "15"], capsys)
    with Image.open(out) as image:
        assert np.asarray(image).max() < 8  # at the exposure of a sunny day dusk is black
    run([*line, "--exposure", "13"], capsys)
    with Image.open(out) as image:
        brighter = np.asarray(image).astype(float)
    run(line, capsys)
    with Image.open(out) as image:
        assert brighter.mean() > np.asarray(image).astype(float).mean() + 10.0


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("render YARD --sky noom --out a.png", "Unknown sky 'noom'. Closest: 'noon', 'snow'."),
        ("render YARD --sky 2026-06-21T12:00 --out a.png", "names no time zone"),
        ("render YARD --exposure bright --out a.png", "expected auto, or an EV"),
        ("render YARD --exposure nan --out a.png", "expected auto, or an EV"),
        ("render YARD --sky noon --channels depth --out a.png", "--sky"),
        ("shw", "Unknown 'airworthy scenes' subcommand 'shw'. Closest: 'show'."),
        ("show forrest", "Unknown scene 'forrest'. Closest: 'forest'"),
        ("show forest:99", "forest"),
        ("show nowhere.toml", "There is no file 'nowhere.toml'."),
        ("show nothing.glb", "There is no file 'nothing.glb'."),
        ("show forest:x", "NAME[:INDEX][@SEED]"),
        ("validate nowhere", "Unknown scene 'nowhere'."),
        ("validate no/where", "There is no file or folder 'no/where'."),
        ("validate no/where.toml", "There is no file 'no/where.toml'."),
        ("show YARD/assets", "There is no file or folder"),
        ("show cloud.pcd --recentre --keep-frame", "exclude each other"),
        ("render YARD --view tpo --out a.png", "Unknown view 'tpo'. Closest: 'top'."),
        ("render YARD --channels dept --out a.png", "Unknown channel 'dept'. Closest: 'depth'."),
        ("render YARD --out a.gif", "ends in .png"),
        ("render YARD --out /proc/a.png", "Could not write '/proc/a.png'"),
        ("render YARD --out FOLDER/a.png", "a.png': it is a folder."),
        ("render YARD --channels depth rgb --out FOLDER/b.png", "b_rgb.png': it is a folder."),
        ("render YARD --channels depth rgb --out FOLDER/file/new/b.png", "/file' is a file; choose another name."),
        ("render YARD --channels depth r/gb --out FOLDER/c.png", "Unknown channel 'r/gb'. Closest: 'rgb'."),
        ("materials brick --out FOLDER/a.png", "a.png': it is a folder."),
        ("materials brick --out /proc/a.png", "Could not write '/proc/a.png'"),
        ("materials brick --out FOLDER/file/a.png", "/file' is a file; choose another name."),
        ("vegetation birch --out FOLDER/a.png", "a.png': it is a folder."),
        ("vegetation birch --out FOLDER/file/a.png", "/file' is a file; choose another name."),
        ("render YARD --out a.png --channels", "--channels names none"),
        ("render YARD --quality still --seed -1 --out a.png", "--seed is -1; expected at least 0."),
        ("render YARD --seed 5 --out a.png", "--seed 5 changes nothing without --quality still"),
        ("render YARD --width 4 --out a.png", "8 to 16384"),
        ("render YARD --eye 0 0 1 --out a.png", "--eye and --target go together"),
        ("render YARD --eye 0 0 1 --target inf 0 1 --out a.png", "A camera's target is [inf, 0.0, 1.0]; expected three finite"),
        (
            "render YARD --eye nan 0 1 --target 0 0 1 --out a.png",
            "A camera's position is [nan, 0.0, 1.0]; expected three finite",
        ),
        ("render YARD --time nan --out a.png", "time"),
        ("render YARD --quality still --samples 0 --out a.png", "--samples is 0; expected at least 1."),
        ("render YARD --quality still --samples 9999999 --out a.png", "expected 1 to 1048576"),
        ("render YARD --samples 3 --out a.png", "expected 1, 2, 4 or 8"),
        ("render YARD --quality stil --out a.png", "stil"),
        ("export YARD --out a.xyz", "Unknown format 'xyz'."),
        ("export YARD --out a.pcd --spacing 0", "the spacing must be above 0"),
        ("export YARD --out a.pcd --spacing 0.001", "use a larger spacing"),
    ],
)
def test_mistakes_are_told_in_one_sentence(yard: Path, line: str, says: str, tmp_path: Path, capsys: Output) -> None:
    if "FOLDER" in line:
        for name in ("a.png", "b_rgb.png"):
            (tmp_path / name).mkdir()
        (tmp_path / "file").write_text("in the way")
    words = line.replace("YARD", str(yard)).replace("FOLDER", str(tmp_path)).split()
    assert main(["scenes", *words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert says in said.err
    assert said.err.count("\n") == 1


def test_help_and_errors_name_every_sky_and_what_qualities_take(capsys: Output) -> None:
    with pytest.raises(UnknownNameError) as refused:
        weather_named("zzz")
    said = " ".join(run(["render", "--help"], capsys).split())
    for listed in (str(refused.value).partition("Known: ")[2].partition(".")[0], said.partition("for rgb: noon")[2]):
        assert set(SKIES) <= set(re.findall(r"\w+", f"noon {listed}"))
    taken = ", ".join(f"{name} {options.samples}" for name, options in QUALITIES.items())
    assert f"(by default {taken})" in said
