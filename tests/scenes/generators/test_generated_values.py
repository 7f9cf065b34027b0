"""What generators build, number by number: every size, place, colour, light and fact, as they were when they were read through.

The layouts are the world of published figures: a number that moves makes another benchmark.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fixtures.snapshots import check_snapshot, condensed

from airworthy.core.files import sha256
from airworthy.geometry import Mesh
from airworthy.scenes.generators import GENERATORS, room_arrays
from airworthy.scenes.generators.halls import builder, furniture, layouts, race_hall
from airworthy.scenes.generators.halls.builder import Builder
from airworthy.scenes.people import person, standing_angles, walk_path, walking_angles
from airworthy.scenes.record import Instance, Scene
from airworthy.scenes.textures import procedural, texture_kinds

SNAPSHOTS = Path(__file__).parent / "snapshots"
PIXELS = 2e-6
"""8 bits are rounded: a value that lies on a half may fall to either side."""
HALLS = {
    "mid_gate": layouts.mid_gate,
    "flightroom": layouts.flightroom,
    "backroom": layouts.backroom,
    "alphapilot": race_hall.alphapilot,
}
FLYINGTRUST = ("forest", "urban", "random_cylinder", "narrow_gap", "sudden_drop", "maze", "perlin", "sudden_drop_plus")
ROOMS = ("obstacle_room", "gym_forest", "lidar_room", "dynamic_room", "empty_room", "thin_room")


def arrays_of(shape: Any) -> dict[str, Any]:
    """Arrays of a mesh, fields of a solid."""
    if not isinstance(shape, Mesh):
        return {"solid": np.hstack([np.ravel(value) for value in vars(shape).values()])}
    return {name: value for name, value in vars(shape).items() if isinstance(value, np.ndarray)}


def shape_figures(shapes: dict[str, Any]) -> dict[str, Any]:
    """Arrays of the same name of all shapes, one after the other."""
    arrays = [item for name in sorted(shapes) for item in arrays_of(shapes[name]).items()]
    names = sorted({name for name, _ in arrays})
    return {name: np.concatenate([np.ravel(array) for key, array in arrays if key == name]) for name in names}


def room_figures(name: str, env_ids: Any, **options: Any) -> dict[str, Any]:
    """Arrays of many rooms; what is not an array, once."""
    return {
        key: value for key, value in vars(room_arrays(name, env_ids, 2, **options)).items() if isinstance(value, np.ndarray)
    }


def instance_figures(rows: Sequence[Instance]) -> dict[str, Any]:
    """Places, sizes, flags and words of things."""
    words = [" ".join((row.name, row.shape, row.semantic, *row.materials)) for row in rows]
    return {
        "position": np.array([row.position for row in rows]),
        "attitude": np.array([row.attitude for row in rows]),
        "scale": np.array([row.scale for row in rows]),
        "flags": np.array([(row.collide, row.visible, row.covered, row.instance_id) for row in rows], np.int64),
        "words": sha256("\n".join(words)),
        "first": words[:: max(1, len(words) // 8)],
    }


def scene_figures(scene: Scene) -> dict[str, Any]:
    """Everything of a scene, short."""
    figures: dict[str, Any] = {
        "shapes": shape_figures(scene.shapes),
        "things": instance_figures(scene.instances),
        "materials": scene.materials,
        "textures": list(scene.textures),
    }
    for name in ("actors", "lights", "sky", "bounds", "start", "goal", "spawn", "gates", "beacons", "courses", "facts"):
        figures[name] = getattr(scene, name)
    return figures


@pytest.mark.parametrize("name", HALLS)
def test_halls(name: str) -> None:
    scene = HALLS[name](2, 3)
    check_snapshot(SNAPSHOTS / f"{name}.txt", scene_figures(scene))
    pixels = {key: texture.pixels for key, texture in scene.textures.items()}
    check_snapshot(SNAPSHOTS / f"{name}_textures.txt", pixels, of_means=PIXELS)


@pytest.mark.parametrize("name", [*FLYINGTRUST, *ROOMS])
def test_scenarios_and_rooms(name: str) -> None:
    check_snapshot(SNAPSHOTS / f"{name}.txt", scene_figures(GENERATORS[name](4, 0)))


def test_textures() -> None:
    """Every kind, small, of two seeds."""
    pixels = {f"{kind} {seed}": procedural(kind, 64, seed).pixels for kind in texture_kinds() for seed in (0, 3)}
    check_snapshot(SNAPSHOTS / "textures.txt", pixels, of_means=PIXELS)


def test_furniture() -> None:
    """Each piece alone, with what it takes by default and with other sizes."""
    pieces: dict[str, Any] = {
        "gate": lambda b: furniture.gate(b, (1.4, 1.2), 0.8),
        "low gate": lambda b: furniture.gate(b, (1.0, 1.0), 0.0, 0.2),
        "ladder": furniture.ladder,
        "monitor": furniture.monitor,
        "pillar": lambda b: furniture.pillar(b, 3.0),
        "padded pillar": lambda b: furniture.padded_pillar(b, 3.0),
        "table": furniture.table,
        "chair": furniture.chair,
        "shelf": lambda b: furniture.shelf(b, 3),
        "crate": lambda b: furniture.crate(b, 0.6, 0.1, 0.4),
        "carton": lambda b: furniture.carton(b, (0.3, 0.4, 0.2), 0.1, 0.4),
        "drum": furniture.drum,
        "cone": furniture.cone,
        "plant": lambda b: furniture.plant(b, 3),
        "whiteboard": furniture.whiteboard,
        "tripod light": furniture.tripod_light,
        "tracking camera": lambda b: furniture.tracking_camera(b, 2.5, 0.7),
        "poster": lambda b: furniture.poster(b, 1.5, (0.6, 0.9), "poster", 2),
        "extinguisher": furniture.extinguisher,
    }
    built: dict[str, Any] = {}
    for name, build in pieces.items():
        b = Builder().at(1.0, -2.0, 0.3, 0.6)
        build(b)
        built[name] = condensed([b.instances, shape_figures(b.shapes), b.materials])
    check_snapshot(SNAPSHOTS / "furniture.txt", built)


def test_meshes_of_the_builder() -> None:
    profile = [(0.0, 0.0), (0.3, 0.0), (0.2, 0.5), (0.2, 0.9), (0.0, 1.0)]
    shapes = {
        "box": builder.unwrapped_box((0.4, 0.8, 1.2)),
        "profile": builder.turned_profile(profile),
        "coarse": builder.turned_profile(profile, 5),
        "foliage": builder.foliage(0.5, 12, 0.2, 7),
    }
    directions = ((1.0, 2.0, 3.0), (0.0, 0.0, 1.0), (0.0, 0.0, -1.0), (0.3, 0.0, -2.0))
    figures: dict[str, Any] = {name: arrays_of(shape) for name, shape in shapes.items()}
    figures |= {"turned": builder.turned(0.7), "along": [builder.along(direction, 0.3) for direction in directions]}
    check_snapshot(SNAPSHOTS / "builder.txt", figures)


def test_people() -> None:
    phase = np.linspace(0.0, 1.0, 17)
    path = walk_path([(0.0, 0.0, 0.0), (4.0, 0.0, 0.0), (4.0, 3.0, 0.5)])
    kits = {
        "default": person(),
        "anna": person("anna", 1.6, position=(1.0, 2.0, 0.0), yaw=0.7, animation="walking", speed=0.9, path=path, repeat=True),
    }
    figures: dict[str, Any] = {"walking": walking_angles(phase), "standing": standing_angles(phase)}
    for name, kit in kits.items():
        figures[name] = {**vars(kit), "shapes": shape_figures(kit.shapes)}
    figures["closed"] = walk_path([(0.0, 0.0, 0.0), (1.0, 2.0, 0.0)], 0.5, True, 1.0)
    check_snapshot(SNAPSHOTS / "people.txt", figures)


def test_many_rooms_at_once_and_their_levels() -> None:
    figures: dict[str, Any] = {}
    for name in ROOMS:
        for level in (None, 7):
            figures[f"{name} {level}"] = room_figures(name, np.arange(30), level=level, half_probability=0.5)
    figures["together"] = room_figures("gym_forest", np.arange(5), episodes=np.arange(5), per_link=False)
    check_snapshot(SNAPSHOTS / "room_arrays.txt", figures)
