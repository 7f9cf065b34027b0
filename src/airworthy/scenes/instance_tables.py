"""From scene records to what the geometry engine holds: tables of shapes and materials, and rows of instances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, NDArray
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.geometry import Mesh, Shape
from airworthy.geometry.placement import SHADOWS, Placement
from airworthy.scenes.record import DEFAULT_SEMANTICS, Instance, Material, Scene, Texture

__all__ = [
    "FIRST_INSTANCE_ID",
    "FIRST_OWN_SEMANTIC",
    "InstanceTable",
    "MaterialTable",
    "ShapeTable",
    "actor_instances",
    "carrier_groups",
    "instance_numbers",
    "look_instances",
    "semantic_numbers",
    "static_instances",
]

FIRST_INSTANCE_ID = 100
"""Instances without a number of their own are counted from here (spec/aerial_gym 7.1)."""
FIRST_OWN_SEMANTIC = 200
"""Class names that neither the scene nor `DEFAULT_SEMANTICS` numbers are counted from here, in alphabetical order."""
MATERIALS_MAX = 4096
"""Most materials that one mesh may name."""
MAPS = ("base_color_map", "metallic_roughness_map", "normal_map", "occlusion_map", "emissive_map", "height_map", "detail_map")
"""Fields of a material that name textures."""


def semantic_numbers(scene: Scene) -> dict[str, int]:
    """Return the number of every class name in use, by the scene's own table, then `DEFAULT_SEMANTICS`, then from 200 on."""
    used = {instance.semantic for instance in scene.instances}
    used.update(part.semantic for actor in scene.actors for part in actor.parts)
    numbers = {**DEFAULT_SEMANTICS, **scene.semantics}
    taken = set(numbers.values())
    number = FIRST_OWN_SEMANTIC
    for name in sorted(used - numbers.keys()):
        while number in taken:
            number += 1
        numbers[name] = number
        taken.add(number)
    return numbers


def instance_numbers(scene: Scene) -> tuple[list[int], list[int]]:
    """Return instance numbers of the instances, and of the actors' parts, each in order.

    Those without a number get the next free one from 100 on; parts of one actor share theirs, since they are one thing.
    """
    parts = [part for actor in scene.actors for part in actor.parts]
    taken = {item.instance_id for item in (*scene.instances, *parts) if item.instance_id}
    number = FIRST_INSTANCE_ID
    static: list[int] = []
    moving: list[int] = []
    for instance in scene.instances:
        while number in taken:
            number += 1
        static.append(instance.instance_id or number)
        number += not instance.instance_id
    for actor in scene.actors:
        while number in taken:
            number += 1
        moving += [part.instance_id or number for part in actor.parts]
        number += 1
    return static, moving


def carrier_groups(scene: Scene) -> dict[str, int]:
    """Return the group number, from 1 on, of every landmark that something carries: of those instances, and of the landmark's
    beacons.
    """
    parts = (part for actor in scene.actors for part in actor.parts)
    names = dict.fromkeys(item.carries for item in (*scene.instances, *parts) if item.carries)
    return {name: number for number, name in enumerate(names, 1)}


class ShapeTable:
    """The unique shapes of many scenes: meshes by identity, solids by their measures."""

    def __init__(self) -> None:
        self.shapes: list[Shape] = []
        self._index: dict[Any, int] = {}

    def add(self, shape: Shape) -> int:
        """Return the index of a shape, which joins the table when it is new."""
        # Solids are equal by value, meshes by identity.
        key = id(shape) if isinstance(shape, Mesh) else shape
        found = self._index.get(key)
        if found is None:
            found = self._index[key] = len(self.shapes)
            self.shapes.append(shape)
        return found

    def copy(self) -> ShapeTable:
        """Return a table that goes on from here by itself."""
        made = ShapeTable()
        made.shapes, made._index = list(self.shapes), dict(self._index)
        return made

    def __contains__(self, shape: Shape) -> bool:
        return (id(shape) if isinstance(shape, Mesh) else shape) in self._index


class MaterialTable:
    """The unique material lists of many scenes, one after the other; row 0 is the default material.

    Two lists are the same when their values and the pixels behind their maps are, so a thousand generated scenes share rows.
    """

    def __init__(self) -> None:
        self.rows: list[tuple[int, str]] = [(-1, "")]
        """(scene index, name in its materials) of every row; (-1, "") is the default material."""
        self.materials: list[Material] = [Material()]
        self.textures: list[dict[str, Texture]] = [{}]
        """Of every row: texture by the name its maps use."""
        self._start: dict[Any, int] = {((Material(), ()),): 0}

    def copy(self) -> MaterialTable:
        """Return a table that goes on from here by itself."""
        made = MaterialTable()
        made.rows, made.materials, made.textures = list(self.rows), list(self.materials), list(self.textures)
        made._start = dict(self._start)
        return made

    def add(self, scene: Scene, scene_index: int, names: Sequence[str], count: int) -> int:
        """Return the first row of an instance's materials.

        Args:
            scene: Whose materials the names are in.
            scene_index: Its number in the batch.
            names: The instance's material names; none: the default material.
            count: Rows that the shape's `face_material` needs; the last name is repeated up to it.

        Raises:
            UnknownNameError: The scene has no such material or texture.
        """
        if not names and count <= 1:
            return 0
        # As many as the mesh names, whatever the instance gives.
        wanted = [names[min(k, len(names) - 1)] if names else "" for k in range(max(count, len(names), 1))]
        found = [_material(scene, name) for name in wanted]
        # Pixels by identity: to compare them would cost more than a row.
        key = tuple((m, tuple(id(t.pixels) for t in textures.values())) for m, textures in found)
        start = self._start.get(key)
        if start is None:
            start = self._start[key] = len(self.rows)
            for name, (material, textures) in zip(wanted, found, strict=True):
                self.rows.append((scene_index if name else -1, name))
                self.materials.append(material)
                self.textures.append(textures)
        return start


def _material(scene: Scene, name: str) -> tuple[Material, dict[str, Texture]]:
    if not name:
        return Material(), {}
    if name not in scene.materials:
        raise unknown_name("material", name, scene.materials, f"It is named by an instance of scene {scene.name!r}.")
    material = scene.materials[name]
    textures: dict[str, Texture] = {}
    for field_name in MAPS:
        texture = getattr(material, field_name)
        if not texture:
            continue
        if texture not in scene.textures:
            raise unknown_name("texture", texture, scene.textures, f"Material {name!r} of scene {scene.name!r} names it.")
        textures[texture] = scene.textures[texture]
    return material, textures


@dataclass
class InstanceTable:
    """Instances as arrays of n; the columns of a `Placement`."""

    shape: NDArray[np.int32]
    position: Array
    attitude: Array
    scale: Array
    instance_id: NDArray[np.int32]
    semantic_id: NDArray[np.int32]
    material: NDArray[np.int32]
    visible: ArrayBool
    collide: ArrayBool
    group: NDArray[np.int32]
    shadow: NDArray[np.int32] | None = None
    footprint: Array | None = None
    actor: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    """Of actors' parts: index of the actor in its scene."""

    def __len__(self) -> int:
        return len(self.shape)

    def placement(self) -> Placement:
        """Return these rows as the engine takes them."""
        return Placement(**{column.name: getattr(self, column.name) for column in fields(Placement)})


def static_instances(scene: Scene, index: int, shapes: ShapeTable, materials: MaterialTable) -> InstanceTable:
    """Return rows of a scene's instances.

    Args:
        scene: The scene.
        index: Number of the scene among those of the batch.
        shapes: Of the whole batch; what is new is added.
        materials: Alike.

    Raises:
        UnknownNameError: An instance names a shape, material or texture that the scene does not hold.
        AirworthyError: A pose or scale is not finite.
    """
    return _instances(scene, index, scene.instances, instance_numbers(scene)[0], shapes, materials)


def look_instances(scene: Scene, index: int, shapes: ShapeTable, materials: MaterialTable) -> InstanceTable:
    """Return rows of what only colours show, which have neither numbers nor classes; arguments and errors as
    `static_instances`.
    """
    items = [replace(item, semantic="object", carries="", collide=False) for item in scene.looks]
    return _instances(scene, index, items, [0] * len(items), shapes, materials)


def actor_instances(scene: Scene, index: int, shapes: ShapeTable, materials: MaterialTable) -> InstanceTable:
    """Return rows of a scene's actors' parts at rest, in the actors' frames; raises as `static_instances`.

    Args:
        scene: The scene.
        index: Number of the scene among those of the batch.
        shapes: Of the whole batch; what is new is added.
        materials: Alike.
    """
    parts = [part for actor in scene.actors for part in actor.parts]
    table = _instances(scene, index, parts, instance_numbers(scene)[1], shapes, materials)
    table.actor = np.repeat(np.arange(len(scene.actors), dtype=np.int32), [len(actor.parts) for actor in scene.actors])
    return table


def _instances(
    scene: Scene, index: int, items: Sequence[Instance], numbers: list[int], shapes: ShapeTable, materials: MaterialTable
) -> InstanceTable:
    semantic = semantic_numbers(scene)
    slots: dict[str, tuple[int, int]] = {}
    firsts: dict[tuple[Any, int], int] = {}
    for name in {item.shape for item in items}:
        if name not in scene.shapes:
            raise unknown_name("shape", name, scene.shapes, f"It is named by an instance of scene {scene.name!r}.")
    for item in items:  # in order, so that tables do not depend on how a set is walked
        if item.shape not in slots:
            shape = scene.shapes[item.shape]
            slots[item.shape] = (shapes.add(shape), material_count(shape))
        key = (item.materials, slots[item.shape][1])
        if key not in firsts:
            firsts[key] = materials.add(scene, index, *key)
    count, groups = len(items), carrier_groups(scene)
    table = InstanceTable(
        np.array([slots[item.shape][0] for item in items], np.int32),
        np.array([item.position for item in items], np.float64).reshape(count, 3),
        np.array([item.attitude for item in items], np.float64).reshape(count, 4),
        np.array([item.scale for item in items], np.float64),
        np.array(numbers, np.int32),
        np.array([semantic[item.semantic] for item in items], np.int32),
        np.array([firsts[item.materials, slots[item.shape][1]] for item in items], np.int32),
        np.array([item.visible or item.covered for item in items], bool),  # rays meet what is covered
        np.array([item.collide for item in items], bool),
        np.array([groups.get(item.carries, 0) for item in items], np.int32),
        np.array([SHADOWS[item.shadow] for item in items], np.int32),
        np.array([item.footprint for item in items], np.float64).reshape(count, 2),
    )
    _check(table, items, scene)
    return table


def material_count(shape: Shape) -> int:
    """Return how many materials a shape's faces name, at least 1."""
    if not isinstance(shape, Mesh) or shape.face_material is None or not len(shape.face_material):
        return 1
    count = int(shape.face_material.max()) + 1
    if count > MATERIALS_MAX or shape.face_material.min() < 0:
        raise AirworthyError(f"A mesh's face_material names material {count - 1}; expected 0 to {MATERIALS_MAX - 1}.")
    return count


def _check(table: InstanceTable, items: Sequence[Instance], scene: Scene) -> None:
    length = np.linalg.norm(table.attitude, axis=1)
    good = np.isfinite(table.position).all(1) & (np.abs(length - 1.0) < 1e-4) & (table.scale > 0.0) & np.isfinite(table.scale)
    if good.all():
        return
    wrong = int(np.argmin(good))
    item = items[wrong]
    raise AirworthyError(
        f"Instance {item.name or wrong!r} of scene {scene.name!r} has position {item.position}, attitude {item.attitude} and"
        f" scale {item.scale}; expected finite numbers, a quaternion of length 1 and a scale above 0."
    )
