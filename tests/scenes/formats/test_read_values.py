"""What readers take from files, whole and damaged, and what writers leave, number by number."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fixtures.damage import outcomes
from tests.fixtures.snapshots import check_snapshot, condensed

from airworthy.geometry import Box, Capsule, Cylinder, Mesh, Sphere
from airworthy.scenes.formats import EXPORTS, export_scene, read_model, read_points, sample_points, weld
from airworthy.scenes.formats.meshes import solids
from airworthy.scenes.formats.meshes.simplify import coarser, levels_of_detail, simplified
from airworthy.scenes.formats.model import FileLimits, Points
from airworthy.scenes.formats.write_plain import write_pcd, write_points_ply
from airworthy.scenes.generators.halls.builder import turned_profile, unwrapped_box
from airworthy.scenes.record import Actor, Instance, Material, PointLight, Pose, Scene, SpotLight, Sun, Texture

_spec = importlib.util.spec_from_file_location("fuzzing", Path(__file__).with_name("fuzzing.py"))
assert _spec is not None
assert _spec.loader is not None
fuzzing = importlib.util.module_from_spec(_spec)
sys.modules["fuzzing"] = fuzzing
_spec.loader.exec_module(fuzzing)

SNAPSHOTS = Path(__file__).parent / "snapshots"
PROFILE = [(0.0, 0.0), (0.3, 0.0), (0.2, 0.5), (0.2, 0.9), (0.0, 1.0)]


@pytest.mark.parametrize("name", fuzzing.FORMATS)
def test_files_whole_and_damaged(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = fuzzing.Driver(tmp_path, name)
    found = outcomes(fuzzing, monkeypatch, driver, fuzzing.seeds()[name], fuzzing.inputs(name, 77), 120)
    check_snapshot(SNAPSHOTS / f"read_{name}.txt", found, 1e-6)


def place() -> Scene:
    """Every kind of solid, map, light and flag, turned and scaled."""
    grid = np.arange(4 * 4 * 3, dtype=np.uint8).reshape(4, 4, 3) * 5
    crate = dataclasses.replace(unwrapped_box((0.5, 0.75, 1.25)), face_material=np.arange(12, dtype=np.int32) // 6)
    maps = Material(
        (1.0, 1.0, 1.0, 1.0), 0.5, 0.25, base_color_map="grid", metallic_roughness_map="rough", height_map="rough",
        height_scale=0.05, detail_map="grid", detail_repeat=3.0, normal_map="rough", normal_scale=0.5, alpha_cutoff=0.25,
    )  # fmt: skip
    return Scene(
        "place",
        {"box": Box((1, 2, 0.5)), "ball": Sphere(0.75), "pole": Cylinder(0.5, 1.0), "pill": Capsule(0.25, 0.5), "crate": crate},
        {"red": Material((1.0, 0.25, 0.0, 1.0), emissive=(2.0, 0.0, 0.5)), "map": maps},
        {"grid": Texture(grid), "rough": Texture(grid[:2], False, "clamp")},
        (
            Instance("box", (0, 0, 0.5), materials=("red",), semantic="ground", name="base"),
            Instance("ball", (4, 0, 1), semantic="tree", instance_id=7, collide=False),
            Instance("pole", (0, 5, 1), attitude=(0.0, 0.6, 0.0, 0.8)),
            Instance("pill", (-3, 0, 2), scale=2.0, visible=False),
            Instance("crate", (2, 3, 0.25), (0.0, 0.0, 0.6, 0.8), 0.5, ("red", "map"), name="crate <1> & 2"),
        ),
        (Actor("walker", (Instance("ball", (0, 0, 1), name="head"),), position=(5, 5, 0), attitude=(0, 0, 0.6, 0.8)),),
        (Sun((0.0, 0.6, -0.8)), PointLight((1, 2, 3), range=9.0), SpotLight((0, 0, 1), (1.0, 0.0, 0.0), attached="walker")),
        start=Pose((1.0, 2.0, 1.5), 0.3),
        goal=Pose((-2.0, 4.0, 1.5)),
    )


@pytest.mark.parametrize("ending", EXPORTS)
def test_exports(ending: str, tmp_path: Path) -> None:
    """What is written and read back, and every text of what lies in the folder."""
    path = export_scene(place(), tmp_path / f"place.{ending}")
    clouds = ending.startswith("cloud") or ending == "pcd"
    figures: dict[str, Any] = {"read": condensed((read_points if clouds else read_model)(path))}
    figures["files"] = sorted(file.name for file in tmp_path.rglob("*") if file.is_file())
    for file in sorted(tmp_path.rglob("*")):
        if file.suffix in (".mtl", ".sdf"):
            figures[file.name] = file.read_text().splitlines()
    check_snapshot(SNAPSHOTS / f"export_{ending}.txt", figures, 1e-6)


@pytest.mark.parametrize("write", [write_pcd, write_points_ply])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_points(write: Callable[..., Path], kind: type, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    positions = (rng.normal(size=(9, 3)) + (0 if kind is np.float32 else 5e5)).astype(kind)
    colors, intensity = rng.integers(0, 256, (9, 3)).astype(np.uint8), rng.random(9).astype(np.float32)
    rows = [Points(positions, c, i) for c in (None, colors) for i in (None, intensity)]
    for given in rows:
        path = write(tmp_path / ("a.pcd" if write is write_pcd else "a.ply"), given)
        back = read_points(path)
        np.testing.assert_array_equal(back.positions, positions)
        assert back.positions.dtype == kind
        for mine, theirs in ((given.colors, back.colors), (given.intensity, back.intensity)):
            assert (mine is None) == (theirs is None)
            if mine is not None:
                np.testing.assert_array_equal(mine, theirs)


def test_solids_simplified_and_sampled() -> None:
    scene = place()
    ball = solids.tessellate(Sphere(0.75))
    shapes: dict[str, Any] = {}
    for name, shape in scene.shapes.items():
        shapes |= {f"{name} {n}": solids.tessellate(shape, n) for n in (3, 8, 16)} | {name: solids.tessellate(shape)}
    turned = turned_profile(PROFILE, 64)
    tint = np.abs(turned.vertices[:, [0, 1, 2, 2]]) / np.float32(1.5)
    colored = dataclasses.replace(turned, colors=tint)
    parts = dataclasses.replace(turned, face_material=(np.arange(len(turned.faces)) % 3).astype(np.int32))
    shapes |= {"weld": weld(ball), "levels": levels_of_detail(colored), "half": simplified(parts, 100)}
    shapes |= {"few": simplified(ball, 12)}
    shapes["coarser"] = coarser(Scene("x", {"ball": ball, "turned": parts}, instances=(Instance("ball"),)), 0.3)
    check_snapshot(SNAPSHOTS / "solids.txt", {key: condensed(shape) for key, shape in shapes.items()}, 1e-6)
    sampled = {f"{g} {i}": sample_points(scene, 0.23, ground=g, inside=i) for g in (False, True) for i in (False, True)}
    sampled["default"] = sample_points(scene)
    check_snapshot(SNAPSHOTS / "sampled.txt", {key: condensed(points) for key, points in sampled.items()}, 1e-6)


def test_limits() -> None:
    check_snapshot(SNAPSHOTS / "limits.txt", {"default": FileLimits()})
    assert isinstance(place().shapes["crate"], Mesh)
