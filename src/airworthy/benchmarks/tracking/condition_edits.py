"""Edits of any place, for conditions: the nearest things out, boxes of gaussians out, all of it moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool
from airworthy.geometry import Mesh
from airworthy.scenes import Scene
from airworthy.scenes.carved import freed
from airworthy.scenes.extent import OPAQUE
from airworthy.scenes.record import Instance, Region, SplatPlacement
from airworthy.scenes.splats.editing import EditBox, selected
from airworthy.scenes.splats.placing import SURFACE, placed, static_splats

__all__ = ["SPLAT_BOX", "gaussians_in", "moved_scene", "splat_boxes", "surface_faces", "without_boxes"]

SPLAT_BOX = 1.0
"""Edge of a box of gaussians that is taken out [m]; ours, about a piece of furniture."""
LEVEL = 0.8
"""Ours: gaussians higher or lower than the path by more than this are floor or ceiling, and no middle of a box [m]."""
NEAR = 4.0
"""Boxes have their middle this near the path [m]."""


def splat_boxes(scene: Scene, path: Array, count: int) -> list[EditBox]:
    """Return boxes round the opaque gaussians that are nearest to a path, one after the other, none in another's box.

    Args:
        scene: With its clouds.
        path: Points of the course (n, 3), world [m].
        count: Boxes; fewer where there is less.
    """
    from scipy.spatial import cKDTree

    splats = static_splats(scene)
    if splats is None:
        return []
    position = splats.position[splats.opacity >= OPAQUE].astype(np.float64)
    if not len(position):
        return []
    away, nearest = cKDTree(path).query(position)
    ahead = (np.abs(position[:, 2] - path[nearest, 2]) <= LEVEL) & (away <= NEAR)
    position, away = position[ahead], away[ahead]
    found: list[EditBox] = []
    while len(found) < count and len(position):
        x, y, z = (float(value) for value in position[np.argmin(away)])
        box = EditBox((x, y, z), (SPLAT_BOX,) * 3)
        found.append(box)
        rest = ~box.holds(position)
        position, away = position[rest], away[rest]
    return found


def gaussians_in(scene: Scene, boxes: Sequence[EditBox]) -> int:
    """Return how many standing gaussians of a scene lie in any of some boxes."""
    splats = static_splats(scene) if boxes else None
    if splats is None:
        return 0
    inside = np.zeros(len(splats), bool)
    for box in boxes:
        inside |= box.holds(splats.position)
    return int(inside.sum())


def surface_faces(scene: Scene, box: EditBox) -> ArrayBool:
    """Return which faces of the surface around a scene's gaussians have their middle in a box; none where it has no surface."""
    mesh = scene.shapes.get(SURFACE)
    if not isinstance(mesh, Mesh):
        return np.zeros(0, bool)
    corners = np.asarray(mesh.vertices, np.float64)[np.asarray(mesh.faces)]
    return box.holds(corners.mean(axis=1))


def without_boxes(scene: Scene, boxes: Sequence[EditBox]) -> Scene:
    """Return a scene without the gaussians in some boxes, and without the surface around them.

    Args:
        scene: That is edited; it stays as it is.
        boxes: In the world.
    """
    if not boxes:
        return scene
    clouds, splats = dict(scene.clouds), []
    for item in scene.splats:
        if item.attached:
            splats.append(item)
            continue
        whole = placed(scene.clouds[item.cloud], item)
        inside = np.zeros(len(whole), bool)
        for box in boxes:
            inside |= box.holds(whole.position)
        name = f"{item.name or item.cloud}/boxes"
        clouds[name] = selected(whole, ~inside)
        splats.append(SplatPlacement(name, name=item.name))
    used = {item.cloud for item in splats}
    scene = replace(scene, clouds={key: value for key, value in clouds.items() if key in used}, splats=tuple(splats))
    # What nobody saw inside of a thing is gone with it.
    scene = freed(scene, lambda points: np.any([box.holds(points) for box in boxes], axis=0))
    mesh = scene.shapes.get(SURFACE)
    if not isinstance(mesh, Mesh):
        return scene
    gone = np.zeros(len(mesh.faces), bool)
    for box in boxes:
        gone |= surface_faces(scene, box)
    return replace(scene, shapes={**scene.shapes, SURFACE: Mesh(mesh.vertices, np.asarray(mesh.faces)[~gone])})


def moved_scene(scene: Scene, offset: Array) -> Scene:
    """Return a scene with everything in it, its bounds too, moved.

    Args:
        scene: That is edited; it stays as it is.
        offset: World [m], (3,).
    """

    def at(item: Any) -> Any:
        x, y, z = (float(a + b) for a, b in zip(item.position, offset, strict=True))
        return replace(item, position=(x, y, z))

    def free(item: Any) -> Any:
        return item if getattr(item, "attached", "") or not hasattr(item, "position") else at(item)

    def corner(values: Any) -> Any:
        return tuple(float(a + b) for a, b in zip(values, offset, strict=True))

    things: tuple[Instance, ...] = tuple(at(item) for item in scene.instances)
    actors = tuple(replace(at(item), path=tuple(at(point) for point in item.path)) for item in scene.actors)
    return replace(
        scene,
        instances=things,
        actors=actors,
        splats=tuple(free(item) for item in scene.splats),
        lights=tuple(free(item) for item in scene.lights),
        beacons=tuple(free(item) for item in scene.beacons),
        bounds=Region(corner(scene.bounds.lower), corner(scene.bounds.upper)),
        carved=None if scene.carved is None else replace(scene.carved, lower=corner(scene.carved.lower)),
    )
