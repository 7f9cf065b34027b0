"""One room as a scene, and the curriculum's level of a scene."""

from __future__ import annotations

import dataclasses
from typing import SupportsIndex

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.geometry import Shape
from airworthy.scenes.generators.rooms.batch import RoomArrays, room_arrays, room_of
from airworthy.scenes.generators.rooms.parameters import Room
from airworthy.scenes.generators.seeding import DAY, DAY_SKY, checked, shape_name, surfaces, textures_of
from airworthy.scenes.record import Actor, Instance, Light, PointLight, Pose, Quaternion, Region, Scene, Vector3

_SURFACES = {"panel": "wood", "tree": "bark", "thin": "metal", "ground": "floor", "bottom_wall": "floor"}
_OBJECT_SURFACES = ("crate", "concrete", "rust", "plaster")
_GOAL = (0.92, 0.5, 0.5)
_SOURCE = "Generated after Aerial Gym (arXiv 2503.01471), BSD-3 configuration of ntnu-arl/aerial_gym_simulator"


def room_scene(name: str, index: SupportsIndex, seed: SupportsIndex = 0, *, per_link: bool = True) -> Scene:
    """Return the room of environment `index`, the same as row `index` of `room_batch(name, count, seed)`.

    Args:
        name: One of `ROOMS`, or its name in the source.
        index: From 0 on.
        seed: Any integer.
        per_link: Every link of a tree has its own instance number; else a tree has one.

    Raises:
        UnknownNameError: If there is no such room.
        AirworthyError: If index or seed is not an integer, or the index is negative.
    """
    own, room = room_of(name)
    number = checked("index", index, 0)
    arrays = room_arrays(own, [number], seed, per_link=per_link)
    names = _names(room, arrays)
    pieces = [_piece(arrays, k, piece) for k, piece in enumerate(names)]
    shapes: dict[str, Shape] = {shape_name(arrays.shapes[s]): arrays.shapes[s] for s in arrays.shape[0]}
    materials = surfaces(*sorted({m for item in pieces for m in item.materials}))
    # The same arrays as a batch's: one scene is the row of one environment.
    moves, lower, upper = arrays.moves.tolist(), arrays.lower[0], arrays.upper[0]
    spawn = Region(_vector(arrays.spawn[0][0]), _vector(arrays.spawn[1][0]))
    return Scene(
        name=f"{own}:{number}" + (f"@{int(seed)}" if int(seed) else ""),
        shapes=shapes,
        materials=materials,
        textures=textures_of(materials),
        instances=tuple(item for item, moving in zip(pieces, moves, strict=True) if not moving),
        actors=tuple(_dynamic_actor(arrays, k, pieces[k]) for k in np.flatnonzero(arrays.moves).tolist()),
        lights=_lights(room, lower, upper),
        sky=DAY_SKY,
        bounds=Region(_vector(lower), _vector(upper)),
        start=Pose(_vector(0.5 * (arrays.spawn[0][0] + arrays.spawn[1][0]))),
        goal=Pose(_vector(lower + (upper - lower) * np.array(_GOAL))),
        spawn=(spawn,),
        description=f"{own}, environment {number}, seed {int(seed)}",
        source=_SOURCE,
        facts={"assets": float(room.count), "kept_assets": float(room.kept), "level": float(room.count)},
    )


def _names(room: Room, arrays: RoomArrays) -> list[str]:
    """Asset by kind and number; links of a tree with a number of their own after a point."""
    assets = [f"{a.semantic}_{k + 1}" if a.count > 1 else a.semantic for a in room.ordered() for k in range(a.count)]
    counts: dict[int, int] = {}
    names = []
    for asset, number in zip(arrays.asset.tolist(), np.bincount(arrays.asset + 1)[arrays.asset + 1].tolist(), strict=True):
        # Counted as they come, which is the order of a tree's links.
        link = counts[asset] = counts.get(asset, -1) + 1
        names.append("ground" if asset < 0 else f"{assets[asset]}.{link}" if number > 1 else assets[asset])
    return names


def _piece(arrays: RoomArrays, k: int, name: str) -> Instance:
    kind = name.partition(".")[0].rstrip("0123456789").rstrip("_")
    surface = _OBJECT_SURFACES[k % len(_OBJECT_SURFACES)] if kind == "object" else _SURFACES.get(kind, "plaster")
    if not kind.endswith(("wall", "ground")):
        surface += f"~{k % 5}"
    return Instance(
        shape_name(arrays.shapes[arrays.shape[0, k]]),
        _vector(arrays.position[0, k]),
        _quaternion(arrays.attitude[0, k]),
        materials=(surface,),
        semantic=kind,
        instance_id=int(arrays.instance_id[k]),
        name=name,
    )


def _dynamic_actor(arrays: RoomArrays, k: int, piece: Instance) -> Actor:
    """Return an actor that carries the piece at its own origin and keeps the twist that it is commanded."""
    # The actor has the pose now; keeping it in the part too would apply it twice.
    part = dataclasses.replace(piece, position=(0.0, 0.0, 0.0), attitude=(0.0, 0.0, 0.0, 1.0))
    speed, rate = _vector(arrays.velocity[0, k]), _vector(arrays.rate[0, k])
    return Actor(piece.name, (part,), "velocity", piece.position, piece.attitude, velocity=speed, rate=rate)


def _lights(room: Room, lower: np.ndarray, upper: np.ndarray) -> tuple[Light, ...]:
    """Lamps under the ceiling of a closed room, the sun elsewhere."""
    if not any(a.semantic == "top_wall" for a in room.assets):
        return DAY
    size = upper - lower
    positions = [lower + size * np.array([x, 0.5, 0.88]) for x in (0.15, 0.5, 0.85)]
    return tuple(PointLight(_vector(position), (1.0, 0.96, 0.9), 7.0) for position in positions)


def _vector(values: np.ndarray) -> Vector3:
    x, y, z = values.tolist()
    return (x, y, z)


def _quaternion(values: np.ndarray) -> Quaternion:
    x, y, z, w = values.tolist()
    return (x, y, z, w)


def with_level(scene: Scene, level: SupportsIndex) -> Scene:
    """Return a room with its first `level` assets only, counted over the whole list, kept ones first and never removed.

    A level above the number of assets leaves all; the ground is not counted.

    Raises:
        AirworthyError: If the level is not an integer from 0 on, or the scene is not one of the rooms.
    """
    number = checked("level", level, 0)
    if "kept_assets" not in scene.facts:
        raise AirworthyError(f"Scene {scene.name!r} has no levels; expected one of the rooms, such as obstacle_room:0.")
    # Walls, and what else a room cannot be without.
    number = max(number, int(scene.facts["kept_assets"]))
    assets = dict.fromkeys(_asset_name(item.name) for item in scene.instances if item.name != "ground")
    assets |= dict.fromkeys(actor.name for actor in scene.actors)
    present = {"ground", *list(assets)[:number]}
    return dataclasses.replace(
        scene,
        instances=tuple(item for item in scene.instances if _asset_name(item.name) in present),
        actors=tuple(actor for actor in scene.actors if actor.name in present),
        facts={**scene.facts, "level": float(min(number, len(assets)))},
    )


def _asset_name(name: str) -> str:
    return name.partition(".")[0]
