"""Reading glTF 2.0 (.glb and .gltf)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, NDArray
from airworthy.scenes.formats._images import TextureImages
from airworthy.scenes.formats._parts import RawMesh, clean, finish, unit
from airworthy.scenes.formats._source import JsonFields, ModelSource, clean_name, unique_name
from airworthy.scenes.formats.gltf.file import (
    LARGEST,
    GltfFile,
    Node,
    compose,
    decompose,
    read_nodes,
    turn_rotation,
    turn_scale,
    turn_translation,
)
from airworthy.scenes.formats.gltf.materials import OWN_EXTRAS, Materials
from airworthy.scenes.formats.gltf.meshes import Animations, Meshes, ReadMesh, at_rest, read_skin
from airworthy.scenes.formats.model import DEFAULT_LIMITS, FileLimits, Model, Skeleton
from airworthy.scenes.record import Instance, Light, PointLight, SpotLight, Sun

_INSTANCE_BYTES = 1500
LUX = 1.0 / 100.0
"""Our unit of irradiance per lux is a matter of exposure; 100 lux, a lit room, become 1."""


def read_gltf(path: str | Path, limits: FileLimits = DEFAULT_LIMITS) -> Model:
    """Return the model of a .glb or .gltf file: meshes, metallic-roughness materials, lights, skins and animations, turned to z
    up.

    A node whose transformation is a uniform scale, rotation and translation becomes an instance; others (stretched, sheared,
    mirrored) get a mesh of their own. A skinned mesh has an instance of identity pose.

    Raises:
        AssetError: The file is damaged, too large, refers to files outside its folder or requires an unknown extension.
    """
    source = ModelSource(path, limits)
    file = GltfFile(source)
    file.tell_what_is_not_read()
    return _Reader(file).model()


class _Reader:
    def __init__(self, file: GltfFile) -> None:
        self.file = file
        self.source = file.source
        self.images = TextureImages(self.source)
        self.materials = Materials(file, self.images)
        self.meshes = Meshes(file, self.materials)
        self.nodes = read_nodes(file)
        self.animations = Animations(file)
        self.raw: dict[str, RawMesh] = {}
        self.plain: dict[int, str] = {}  # name of the shape of a mesh that is placed as it is
        self.instances: list[Instance] = []
        self.lights: list[Light] = []
        self.skeletons: dict[str, Skeleton] = {}
        self.skins: dict[int, str] = {}
        self.orders: dict[str, tuple[NDArray[np.int32], list[int]]] = {}
        self.bound: dict[str, list[str]] = {}
        self.copies = 0

    def model(self) -> Model:
        for node in self.nodes.values():
            if "mesh" in node.fields:
                mesh = self.meshes.use(node.fields.integer("mesh"))
                if mesh is not None:
                    for copy in self._copies(node):
                        self._add_instance(copy, mesh)
            if (light := node.fields.extension("KHR_lights_punctual")) is not None:
                self.lights.append(self._light(light.integer("light"), node))
        for name, skeleton in self.skeletons.items():
            self._bind(name, skeleton)
        if not self.instances and not self.lights:
            self.source.refuse("it shows no triangle")
        if any("" in instance.materials for instance in self.instances):
            self._name_default()
        used = {name: self.materials.by_name[name] for i in self.instances for name in i.materials}
        shapes = {name: finish(self.source, raw) for name, raw in self.raw.items()}
        return Model(
            dict(shapes), used, self.images.used_by(used.values()), tuple(self.instances), tuple(self.lights), self.skeletons,
            self.source.warnings,
        )  # fmt: skip

    def _name_default(self) -> None:
        """Primitives without a material: nothing if all are, else the default by name."""
        for index, instance in enumerate(self.instances):
            names = instance.materials
            if names == ("",):
                names = ()
            elif "" in names:
                names = tuple(name or self.materials.default() for name in names)
            self.instances[index] = dataclasses.replace(instance, materials=names)

    def _copies(self, node: Node) -> Iterator[Node]:
        """Yield the node itself, or one for each of its instances (EXT_mesh_gpu_instancing)."""
        extension = node.fields.extension("EXT_mesh_gpu_instancing")
        if extension is None:
            yield node
            return
        attributes = extension.object("attributes")
        given = {
            key: self.file.accessor(attributes.integer(key), (width,)).astype(np.float64)
            for key, width in (("TRANSLATION", 3), ("ROTATION", 4), ("SCALE", 3))
            if key in attributes
        }
        counts = {len(values) for values in given.values()}
        if len(counts) != 1:
            self.source.refuse(f"the instances of {node.fields.where} have no pose, or {len(counts)} different numbers of them")
        count = counts.pop()
        self.copies += count
        self.source.at_most(self.copies, self.source.limits.nodes, "instances")
        self.source.take(_INSTANCE_BYTES * count, "its instances")
        where = turn_translation(given.get("TRANSLATION", np.zeros((count, 3))))
        turns = turn_rotation(given.get("ROTATION", np.tile([0.0, 0.0, 0.0, 1.0], (count, 1))))
        sizes = turn_scale(given.get("SCALE", np.ones((count, 3))))
        length = np.linalg.norm(turns, axis=1, keepdims=True)
        if not (np.isfinite(where).all() and np.isfinite(sizes).all() and np.isfinite(length).all() and (length > 1e-9).all()):
            self.source.refuse(
                f"the instances of {node.fields.where} have a pose that is not finite, or a rotation of length 0"
            )
        for position, attitude, scale in zip(where, turns / length, sizes, strict=True):
            matrix = node.matrix @ compose(position, attitude, scale)
            if not (np.abs(matrix) <= LARGEST).all():
                self.source.refuse(f"the instances of {node.fields.where} reach numbers above {LARGEST:g}")
            yield dataclasses.replace(node, matrix=matrix)

    def _add_instance(self, node: Node, mesh: ReadMesh) -> None:
        number = node.fields.integer("mesh")
        name = clean_name(self.file.entry("meshes", number).text("name", ""), f"mesh_{number}")
        label = clean_name(node.fields.text("name", ""), f"node_{node.index}")
        if "skin" in node.fields and mesh.raw.joints is not None:
            shape = self._skinned(node, mesh, unique_name(self.raw, name))
            self.instances.append(Instance(shape, materials=mesh.materials, name=label))
            return
        position, attitude, scale = decompose(node.matrix)
        size = float(np.abs(scale).mean())
        if abs(np.linalg.det(node.matrix[:3, :3])) < 1e-30:
            self.source.warn("meshes scaled to nothing left out")
            return
        if scale[0] > 0 and _is_similar(node.matrix, size):
            if number not in self.plain:
                self.plain[number] = unique_name(self.raw, name)
                self.raw[self.plain[number]] = mesh.raw
            shape = self.plain[number]
        else:
            shape, position, attitude, size = self._baked(node, mesh, name), np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]), 1.0
            if not shape:
                return
        pose = Instance(
            shape,
            tuple(float(v) + 0.0 for v in position),  # type: ignore[arg-type]
            tuple(float(v) for v in attitude),  # type: ignore[arg-type]
            size,
            mesh.materials,
            name=label,
        )
        self.instances.append(dataclasses.replace(pose, **_own(node.fields)))

    def _baked(self, node: Node, mesh: ReadMesh, name: str) -> str:
        """Name of a copy of the mesh with the node's transformation applied, "" where nothing is left of it."""
        raw = mesh.raw
        self.source.take(4 * (6 * len(raw.vertices) + 3 * len(raw.faces)), "a stretched copy of a mesh")
        baked = clean(self.source, transformed(raw, node.matrix))
        if not len(baked.faces):
            return ""
        shape = unique_name(self.raw, name)
        self.raw[shape] = baked
        return shape

    def _skinned(self, node: Node, mesh: ReadMesh, shape: str) -> str:
        index = node.fields.integer("skin")
        if index not in self.skins:
            skeleton, joints, order = read_skin(self.file, index, self.nodes)
            name = clean_name(self.file.entry("skins", index).text("name", ""), f"skin_{index}")
            name = unique_name(self.skeletons, name)
            skeleton.clips.update(self.animations.clips(order))
            self.skins[index], self.skeletons[name], self.orders[name] = name, skeleton, (joints, order)
            self.bound[name] = []
        name = self.skins[index]
        joints = self.orders[name][0]
        raw = dataclasses.replace(mesh.raw)
        assert raw.joints is not None
        assert raw.weights is not None
        if raw.joints.size and (raw.joints.min() < 0 or raw.joints.max() >= len(joints)):
            self.source.refuse(f"a mesh is bound to joint {raw.joints.max()} of {len(joints)}")
        self.source.take(32 * len(raw.vertices), "its skin weights")
        self.skeletons[name].joints[shape] = joints[raw.joints]
        self.skeletons[name].weights[shape] = raw.weights
        self.raw[shape] = raw
        self.bound[name].append(shape)
        return shape

    def _bind(self, name: str, skeleton: Skeleton) -> None:
        """Put the meshes into the rest pose, where every joint moves them alike: they then stand as they are shown."""
        joints, order = self.orders[name]
        matrix = at_rest(skeleton, self.nodes, order, joints)
        if matrix is None:
            self.source.warn("skinned meshes left in the pose in which they were bound")
            return
        for shape in self.bound[name]:
            # Only the coordinates change: a vertex dropped here would lose its weights.
            self.raw[shape] = transformed(self.raw[shape], matrix)
            if not (np.abs(self.raw[shape].vertices) <= self.source.limits.coordinate).all():
                self.source.refuse(f"skin {name[:30]!r} puts vertices beyond {self.source.limits.coordinate:g} m")
        inverse = skeleton.inverse_bind.astype(np.float64) @ np.linalg.inv(matrix)
        for joint in set(range(len(order))) - {int(j) for j in joints}:
            inverse[joint] = np.eye(4)
        self.skeletons[name] = dataclasses.replace(skeleton, inverse_bind=inverse.astype(np.float32))

    def _light(self, index: int, node: Node) -> Light:
        """Return a light of KHR_lights_punctual; it shines along -z of its node, which is +y in our frame."""
        extension = self.file.root.extension("KHR_lights_punctual")
        lights = [] if extension is None else extension.items("lights")
        if index >= len(lights):
            self.source.refuse(f"it refers to light {index} of {len(lights)}")
        fields = JsonFields(self.source, lights[index], f"light {index}")
        red, green, blue = (min(max(v, 0.0), 1.0) for v in fields.numbers("color", 3, (1.0, 1.0, 1.0)))
        color = (red, green, blue)
        intensity = min(max(fields.number("intensity", 1.0), 0.0), 1e9) * LUX
        reach = min(max(fields.number("range", 0.0), 0.0), 1e9)
        along = unit(node.matrix[None, :3, 1])[0][0]
        x, y, z = (float(v) for v in node.matrix[:3, 3])
        direction = (float(along[0]), float(along[1]), float(along[2]))
        kind = fields.text("type")
        if kind == "directional":
            return Sun(direction, color, intensity)
        if kind == "point":
            return PointLight((x, y, z), color, intensity, reach)
        if kind != "spot":
            self.source.refuse(f"{fields.where} is none of directional, point and spot")
        cone = fields.object("spot")
        outer = min(max(cone.number("outerConeAngle", math.pi / 4), 1e-3), math.pi / 2)
        inner = min(max(cone.number("innerConeAngle", 0.0), 0.0), outer)
        return SpotLight((x, y, z), direction, inner, outer, color, intensity, reach)


def transformed(raw: RawMesh, matrix: Array) -> RawMesh:
    """Return a mesh moved by an affine matrix; a mirror turns its faces round."""
    linear = matrix[:3, :3]
    with np.errstate(over="ignore", invalid="ignore"):
        vertices = (raw.vertices.astype(np.float64) @ linear.T + matrix[:3, 3]).astype(np.float32)
    faces, normals = raw.faces, raw.normals
    determinant = float(np.linalg.det(linear))
    if normals is not None:
        # Cofactors: the inverse transpose but for a factor, and finite where a scale is nearly zero.
        cofactors = np.stack([np.cross(linear[(i + 1) % 3], linear[(i + 2) % 3]) for i in range(3)])
        normals = unit(normals.astype(np.float64) @ cofactors.T * np.sign(determinant))[0]
    if determinant < 0:
        faces = np.ascontiguousarray(faces[:, ::-1])
    return dataclasses.replace(raw, vertices=vertices, faces=faces, normals=normals)


def _is_similar(matrix: Array, size: float) -> bool:
    """Tell whether the linear part is a rotation times a size."""
    linear = matrix[:3, :3]
    return bool(np.abs(linear.T @ linear - size * size * np.eye(3)).max() <= 1e-5 * size * size)


def _own(fields: JsonFields) -> dict[str, Any]:
    """Return what our writer notes of an instance in `extras`."""
    extras = fields.value.get("extras")
    if not isinstance(extras, dict) or not isinstance(extras.get(OWN_EXTRAS), dict):
        return {}
    own = JsonFields(fields.source, extras[OWN_EXTRAS], f"extras of {fields.where}")
    return {
        "semantic": clean_name(own.text("semantic", "object"), "object"),
        "instance_id": own.integer("instanceId", 0, 0, 2**31),
        "collide": own.flag("collide", True),
        "visible": own.flag("visible", True),
    }
