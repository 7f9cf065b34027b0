"""Checks of scenes: a sound one has no problem, and every kind of fault is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from airworthy.cli.scenes.pictures import STARTER
from airworthy.geometry import Box, Mesh, Sphere
from airworthy.scenes import (
    Actor,
    Beacon,
    Instance,
    Material,
    PointLight,
    Pose,
    Region,
    Scene,
    SpotLight,
    Sun,
    Waypoint,
    check_scene,
    findings,
    read_scene,
)
from airworthy.scenes.checking import point_clearance

SOUND = Scene(
    "sound",
    {"wall": Box((0.1, 2.0, 2.0))},
    {"paint": Material()},
    instances=(Instance("wall", (0.0, 0.0, 2.0), materials=("paint",)),),
    bounds=Region((-5.0, -5.0, 0.0), (5.0, 5.0, 5.0)),
    start=Pose((-3.0, 0.0, 1.0)),
    goal=Pose((3.0, 0.0, 1.0)),
    spawn=(Region((-4.0, -1.0, 1.0), (-3.0, 1.0, 2.0)),),
    source="us",
)


def test_a_sound_scene_raises_no_word() -> None:
    assert check_scene(SOUND) == []


def wall(**changes: object) -> dict[str, object]:
    return {"instances": (replace(SOUND.instances[0], **changes),)}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (wall(shape="wal"), "names the shape 'wal'"),
        (wall(materials=("paint", "gold")), "names the material 'gold'"),
        (wall(carries="Gate3"), "carries the beacons of 'Gate3', of which the scene has none"),
        (wall(position=(0.0, np.nan, 0.0)), "instances[0].position[1] is nan"),
        (wall(attitude=(0.0, 0.0, 0.0, 0.9)), "attitude has length 0.9"),
        (wall(scale=-1.0), "scale is -1.0"),
        (
            {"materials": {"paint": Material(base_color_map="bricks")}},
            "materials.paint.base_color_map names the texture 'bricks'",
        ),
        ({"materials": {"paint": Material(roughness=np.inf)}}, "materials.paint.roughness is inf"),
        ({"shapes": {"wall": Box((0.1, 0.0, -1.0))}}, "shapes.wall has the size -1 m"),
        ({"shapes": {"wall": Sphere(0.0)}}, "shapes.wall has the size 0 m"),
        ({"shapes": {"wall": Mesh(np.eye(3), np.array([[0, 1, 2]]), uv=np.full((3, 2), np.nan))}}, "shapes.wall.uv"),
        ({"lights": (Sun((0.0, 0.0, -2.0)),)}, "lights[0].direction has length 2"),
        ({"lights": (PointLight((0.0, 0.0, 1.0), intensity=-1.0),)}, "lights[0] has a negative strength"),
        ({"lights": (SpotLight((0.0, 0.0, 1.0), (0.0, 0.0, -1.0), 0.6, 0.5),)}, "inner <= outer"),
        ({"lights": (PointLight((0.0, 0.0, 1.0), attached="cart"),)}, "lights[0] is attached to the actor 'cart'"),
        ({"beacons": (Beacon("G", "1", (0.0, 0.0, 1.0), "cart"),)}, "beacons[0] is attached to the actor 'cart'"),
        ({"bounds": Region((1.0, 0.0, 0.0), (0.0, 1.0, 1.0))}, "the lower corner must be below"),
        ({"start": Pose((-6.0, 0.0, 1.0))}, "start is at [-6.0, 0.0, 1.0], outside the bounds"),
        ({"goal": Pose((0.35, 0.0, 1.0))}, "goal at [0.35, 0.0, 1.0] has 0.25 m of clearance, but needs 0.3 m"),
        ({"start": Pose((0.0, 0.0, 1.0))}, "start at [0.0, 0.0, 1.0] has -0.1 m of clearance"),
        ({"spawn": (Region((0.0, 0.0, 0.0), (9.0, 1.0, 1.0)),)}, "spawn[0] is not a box inside the bounds"),
        ({"actors": (Actor("cart", (), "scripted"),)}, "path is empty"),
        ({"actors": (Actor("a", ()), Actor("a", ()))}, "name of its own"),
        ({"actors": (Actor("a", (), skeleton="bones"),)}, "Unknown skeleton 'bones'"),
        ({"actors": (Actor("a", (Instance("x"),)),)}, "actor 'a' part 0 names the shape 'x'"),
        ({"actors": (Actor("a", (), path=(Waypoint(np.nan, (0.0, 0.0, 0.0)),)),)}, "time is nan"),
        ({"instances": (replace(SOUND.instances[0], instance_id=7),) * 2}, "2 instances have the number 7"),
        ({"semantics": {"a": 5, "b": 5}}, "the number 5 to 2 classes"),
    ],
)
def test_every_fault_is_named(change: dict, says: str) -> None:
    found = findings(replace(SOUND, **change))
    assert any(item.fatal and says in item for item in found), found
    assert all("\n" not in item for item in found)


def test_parts_of_one_thing_share_a_number_and_a_place() -> None:
    one = replace(SOUND.instances[0], instance_id=7)
    shadow = replace(one, shadow="only")
    assert not [item for item in findings(replace(SOUND, instances=(one, shadow))) if item.fatal]
    x, y, z = one.position
    away = replace(shadow, position=(x + 1.0, y, z))
    assert any("the number 7" in item for item in findings(replace(SOUND, instances=(one, away))))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"instances": (), "shapes": {}}, "it is empty"),
        ({"shapes": {**SOUND.shapes, "spare": Sphere(1.0)}}, "1 shapes are not used (spare)"),
        ({"lights": ()}, "no light but the sky"),
        ({"start": None}, "no start"),
        ({"source": ""}, "no source"),
        (wall(position=(20.0, 0.0, 0.0)), "1 instances lie outside the bounds (wall)"),
    ],
)
def test_remarks_stop_nothing(change: dict, says: str) -> None:
    said = check_scene(replace(SOUND, **change))
    assert any(line.startswith("note: ") and says in line for line in said), said
    assert not any(item.fatal for item in findings(replace(SOUND, **change)))


def test_clearance_sees_actors_at_their_beginning() -> None:
    cart = Actor("cart", (Instance("wall"),), position=(0.0, 0.0, 10.0))
    scene = replace(SOUND, actors=(cart,))
    # 1 m beside the cart's wall, which is 0.2 m thick.
    assert point_clearance(scene, np.array([[1.1, 0.0, 10.0]]))[0] == pytest.approx(1.0, abs=1e-5)


def test_the_starter_is_sound(tmp_path: Path) -> None:
    (tmp_path / "scene.toml").write_text(STARTER.format(name="mine"))
    scene = read_scene(tmp_path)
    assert check_scene(scene) == []
    assert scene.name == "mine"
    assert len(scene.actors[0].parts) == 15


def test_the_example_of_the_documentation_is_sound(tmp_path: Path, repository: Path) -> None:
    text = (repository / "docs" / "howto" / "scenes.md").read_text(encoding="utf-8")
    (tmp_path / "scene.toml").write_text(text.partition("```toml\n")[2].partition("```")[0])
    scene = read_scene(tmp_path)
    assert check_scene(scene) == []
    assert [actor.name for actor in scene.actors] == ["cart", "visitor"]
    assert scene.lights[1].attached == "cart"  # type: ignore[union-attr]
