"""The two places of the sensor gallery: a generated hall, and a room full of scanned sculpture."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from airworthy.core.files import data_dir
from airworthy.core.frames import multiply, rotate
from airworthy.scenes import Scene, scene
from airworthy.scenes.extent import scene_box
from airworthy.scenes.generators.halls.builder import Builder, turned
from airworthy.scenes.generators.halls.meshes import turned_profile
from airworthy.scenes.generators.halls.room import Room, build_room
from airworthy.scenes.imports import add_model
from airworthy.scenes.record import Pose, Region, Sky, Sun

ROOM = Room((-5.0, 6.0), (-4.0, 4.0), 4.2, floor="planks", window_sill=0.7, window_top=3.4, window_count=4)

# File under the reference data's `meshes`, place on the floor, heading, height it is shown at, vertical axis of the file.
SCULPTURE: tuple[tuple[str, tuple[float, float], float, float, str], ...] = (
    ("threedscans/Hermes/Hermes.obj", (2.6, 0.2), 0.2, 2.1, "y"),
    ("threedscans/Plato/Plato.obj", (1.2, 2.2), -2.4, 0.9, "y"),
    ("threedscans/Gutenberg/Gutenberg.obj", (1.6, -2.2), 2.2, 1.0, "y"),
    ("threedscans/BootlegEve/BootlegEve.obj", (4.3, 2.3), -2.6, 1.9, "y"),
    ("threedscans/Column03/Column03.obj", (4.4, -2.3), 0.3, 2.4, "y"),
    ("egyptian_cat/cat.glb", (-0.6, 1.5), -2.0, 0.7, "z"),
    ("ggg/Angel.obj", (-0.7, -1.7), 1.2, 0.8, "z"),
    ("ggg/owl.obj", (3.4, -0.9), 2.6, 0.5, "z"),
    ("ggg/seaVase.obj", (0.2, -2.9), 0.0, 0.6, "z"),
)
_PLINTH = 1.25
"""What is lower than this stands on a plinth, so that its middle is at eye height [m]."""


def generated_place(name: str) -> Scene:
    """A scene of the catalogue."""
    return scene(name)


def scanned_place(path: str) -> Scene | None:
    """A scan to look at.

    Args:
        path: Of a model, cloud or scene file; empty: the museum, whose sculpture comes from the reference files.

    Returns:
        The scene; None where no path is given and there are no reference files.

    Raises:
        AirworthyError: If a file cannot be used.
    """
    if path:
        return scene(path)
    folder = data_dir()
    return None if folder is None or not (folder / "meshes").is_dir() else museum(folder / "meshes")


def museum(folder: Path) -> Scene:
    """Scanned sculpture in a room of ours.

    Args:
        folder: The reference files' `meshes`; what it lacks is left out.

    Raises:
        AssetError: If a file is damaged.
    """
    b = Builder()
    build_room(b, ROOM)
    stone = b.material("plinth", "plaster", texture_size=1.0, roughness=0.8)
    shown = [item for item in SCULPTURE if (folder / item[0]).is_file()]
    for _, (x, y), yaw, height, _ in shown:
        if height < _PLINTH:
            b.box((x, y, 0.5 * (_PLINTH - 0.4 * height)), (0.5, 0.5, round(_PLINTH - 0.4 * height, 3)), stone, yaw=yaw)
    rope = b.material("brass", base_color=(0.80, 0.58, 0.22, 1.0), metallic=1.0, roughness=0.25)
    for x, y in ((1.6, 1.0), (1.6, -0.7), (3.6, 1.0)):
        profile = [(0.0, 0.0), (0.16, 0.0), (0.16, 0.02), (0.02, 0.05), (0.02, 0.92), (0.035, 0.95), (0.0, 0.99)]
        b.mesh("post", turned_profile(profile), (x, y, 0.0), rope)
    place = Scene(
        name="museum",
        shapes=b.shapes,
        materials=b.materials,
        textures=b.textures,
        instances=tuple(b.instances),
        lights=(Sun((-0.30, -0.78, -0.55), irradiance=5.0), *b.lights),
        sky=Sky(intensity=1.0),
        bounds=Region((ROOM.x[0], ROOM.y[0], 0.0), (ROOM.x[1], ROOM.y[1], ROOM.height)),
        start=Pose((-3.6, 0.0, 1.5), 0.0),
        description="Scanned sculpture in a room.",
        source="scans: Three D Scans, GGG-BenchmarkSfM (CC BY 4.0), Ankledot (CC BY 4.0); the room is generated",
    )
    for name, (x, y), yaw, height, up in shown:
        base = 0.0 if height >= _PLINTH else _PLINTH - 0.4 * height
        place = _stood(place, folder / name, (x, y, base), yaw, height, up)
    return place


def _stood(place: Scene, path: Path, foot: tuple[float, float, float], yaw: float, height: float, up: str) -> Scene:
    """A model on its foot, scaled to a height: the scans' own units are arbitrary."""
    alone = add_model(Scene("alone"), path, up=up, floor=True, name=path.stem)
    box = scene_box(alone)
    scale = height / max(float(box[1][2] - box[0][2]), 1e-9) if box else 1.0
    turn = np.array(turned(yaw))
    standing = []
    for item in alone.instances:
        x, y, z = (float(v) for v in rotate(turn, scale * np.array(item.position)) + foot)
        qx, qy, qz, qw = (float(v) for v in multiply(turn, np.array(item.attitude)))
        standing.append(replace(item, position=(x, y, z), attitude=(qx, qy, qz, qw), scale=scale * item.scale))
    return replace(
        place,
        shapes=place.shapes | alone.shapes,
        materials=place.materials | alone.materials,
        textures=place.textures | alone.textures,
        instances=(*place.instances, *standing),
    )


ViewPose = tuple[tuple[float, float, float], float, float]
_POSES: dict[tuple[str, bool], ViewPose] = {
    ("mid_gate", False): ((-6.6, -2.6, 1.7), 0.42, -0.08),
    ("mid_gate", True): ((-2.3, 0.2, 1.3), -0.05, 0.0),
    ("museum", False): ((-3.9, 0.1, 1.75), 0.0, -0.06),
    ("museum", True): ((-1.75, -1.15, 1.35), -0.48, 0.0),
}


def hero_pose(place: Scene, near: bool = False) -> ViewPose:
    """Position, heading and pitch [rad] of the picture that stands for a place.

    Args:
        place: The scene.
        near: For sensors that see a few metres only.
    """
    if (place.name, near) in _POSES:
        return _POSES[place.name, near]
    if place.start is not None:
        x, y, z = place.start.position
        return (x, y, z), place.start.yaw, 0.0
    lower, upper = place.bounds.lower, place.bounds.upper
    middle = tuple(0.5 * (a + b) for a, b in zip(lower, upper, strict=True))
    return (middle[0], middle[1], min(middle[2], lower[2] + 1.5)), math.pi / 6, 0.0
