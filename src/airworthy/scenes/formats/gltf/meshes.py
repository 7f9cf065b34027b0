"""Meshes of glTF files: all primitives of a mesh become one, with a material number per face."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayInt, NDArray
from airworthy.scenes.formats._parts import RawMesh, clean, compact, vertex_normals
from airworthy.scenes.formats._source import JsonFields, clean_name, unique_name
from airworthy.scenes.formats.gltf.file import TURN, GltfFile, Node, turn_rotation, turn_scale, turn_translation
from airworthy.scenes.formats.gltf.materials import Materials, Placing
from airworthy.scenes.formats.model import Clip, Skeleton, Track

# ---- Skins and animations of glTF files -------------------------------------------------------------------------------------

_INTERPOLATIONS = {"LINEAR": "linear", "STEP": "step", "CUBICSPLINE": "cubic"}
_TURNS: dict[str, tuple[int, Callable[[NDArray], NDArray]]] = {
    "translation": (3, turn_translation),
    "rotation": (4, turn_rotation),
    "scale": (3, turn_scale),
}
_LATEST = 1e6  # [s]


def read_skin(file: GltfFile, index: int, nodes: dict[int, Node]) -> tuple[Skeleton, NDArray[np.int32], list[int]]:
    """Return a skin as a skeleton without meshes and clips.

    Args:
        file: The model.
        index: Number of the skin.
        nodes: Of the scene, by their numbers.

    Returns:
        The skeleton; the number in it of each joint of the skin; and the node of each of its joints.
    """
    source = file.source
    fields = file.entry("skins", index)
    joints = fields.indices("joints", file.count("nodes"))
    if not joints or len(set(joints)) != len(joints) or not all(joint in nodes for joint in joints):
        source.refuse(f"skin {index} has joints that are no nodes of the scene, or one of them twice")
    source.at_most(len(joints), source.limits.joints, f"joints in skin {index}")
    order = _with_ancestors(joints, nodes)
    source.at_most(len(order), source.limits.joints, f"nodes above the joints of skin {index}")
    number_of = {node: number for number, node in enumerate(order)}
    inverse = np.tile(np.eye(4), (len(order), 1, 1))
    if "inverseBindMatrices" in fields:
        matrices = file.accessor(fields.integer("inverseBindMatrices"), (16,)).astype(np.float64)
        if len(matrices) < len(joints) or not (np.abs(matrices) <= 1e12).all():
            source.refuse(f"skin {index} has {len(joints)} joints and not as many finite inverse bind matrices")
        for number, joint in enumerate(joints):
            inverse[number_of[joint]] = TURN @ matrices[number].reshape(4, 4).T @ TURN.T
    skeleton = Skeleton(
        names=_names(order, nodes),
        parents=np.array([number_of.get(nodes[node].parent, -1) for node in order], np.int32),
        position=np.array([nodes[node].position for node in order], np.float32),
        attitude=np.array([nodes[node].attitude for node in order], np.float32),
        scale=np.array([nodes[node].scale for node in order], np.float32),
        inverse_bind=inverse.astype(np.float32),
    )
    return skeleton, np.array([number_of[joint] for joint in joints], np.int32), order


def _with_ancestors(joints: list[int], nodes: dict[int, Node]) -> list[int]:
    """Joints and all nodes above them, parents first."""
    needed: set[int] = set()
    for joint in joints:
        # What is above a known one is known.
        while joint >= 0 and joint not in needed:
            needed.add(joint)
            joint = nodes[joint].parent
    return sorted(needed, key=lambda index: nodes[index].order)


def _names(order: list[int], nodes: dict[int, Node]) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for node in order:
        names[unique_name(names, clean_name(nodes[node].fields.text("name", ""), f"joint_{node}"))] = None
    return tuple(names)


def at_rest(skeleton: Skeleton, nodes: dict[int, Node], order: list[int], bound: NDArray[np.int32]) -> Array | None:
    """Return (4, 4) by which the bound joints move a vertex in the rest pose, if all do so alike; else None.

    Args:
        skeleton: Its inverse bind matrices.
        nodes: Of the scene, by their numbers, in the rest pose.
        order: Node of each joint of the skeleton.
        bound: Joints that have weight in a mesh.
    """
    matrices = np.array([nodes[order[joint]].matrix @ skeleton.inverse_bind[joint] for joint in bound])
    size = max(float(np.abs(matrices[0, :3, :3]).max()), 1e-12)
    offset = np.abs(matrices - matrices[0])
    reach = 1e-3 * max(1.0, float(np.abs(matrices[0, :3, 3]).max()))
    # Skins are often used only to place things: where nothing bends, a mesh may as well be one.
    alike = offset[:, :3, :3].max() <= 1e-3 * size and offset[:, :3, 3].max() <= reach
    return matrices[0] if alike and abs(np.linalg.det(matrices[0, :3, :3])) > 1e-18 else None


class Animations:
    """The animations of a file, sorted by the node that they move."""

    def __init__(self, file: GltfFile) -> None:
        self._file = file
        self._names: dict[str, None] = {}
        self._channels: dict[int, list[tuple[str, str, JsonFields]]] = {}  # of a node: clip, path, sampler
        for index in range(file.count("animations")):
            self._sort(file.entry("animations", index), index)

    def _sort(self, fields: JsonFields, index: int) -> None:
        samplers = fields.items("samplers")
        name = unique_name(self._names, clean_name(fields.text("name", ""), f"animation_{index}"))
        self._names[name] = None
        for number, value in enumerate(fields.items("channels")):
            channel = JsonFields(fields.source, value, f"channel {number} of {fields.where}")
            target = channel.object("target")
            path = target.text("path")
            which = channel.integer("sampler")
            if which >= len(samplers):
                fields.source.refuse(f"{channel.where} has no sampler")
            sampler = JsonFields(fields.source, samplers[which], f"sampler {which} of {fields.where}")
            if path in _TURNS and "node" in target:
                self._channels.setdefault(target.integer("node"), []).append((name, path, sampler))
            else:
                fields.source.warn("animations of other things than position, rotation and scale left out")

    def clips(self, order: list[int]) -> dict[str, Clip]:
        """Return clips of a skeleton whose joints are these nodes."""
        tracks: dict[str, dict[str, dict[int, Track]]] = {}
        for joint, node in enumerate(order):
            for name, path, sampler in self._channels.get(node, ()):
                clip = tracks.setdefault(name, {key: {} for key in _TURNS})
                clip[path][joint] = _track(self._file, sampler, path)
        clips = {}
        for name in self._names:
            if name in tracks:
                last = max(float(track.times[-1]) for group in tracks[name].values() for track in group.values())
                clips[name] = Clip(last, **tracks[name])
        return clips


def _track(file: GltfFile, sampler: JsonFields, path: str) -> Track:
    width, turn = _TURNS[path]
    times = file.accessor(sampler.integer("input"), (1,))[:, 0]
    values = file.accessor(sampler.integer("output"), (width,))
    interpolation = _INTERPOLATIONS.get(sampler.text("interpolation", "LINEAR"), "")
    each = 3 if interpolation == "cubic" else 1
    rising = len(times) > 0 and bool((np.abs(times) <= _LATEST).all()) and bool((np.diff(times) > 0).all())
    if not interpolation or not rising or len(values) != each * len(times) or not np.isfinite(values).all():
        sampler.source.refuse(f"{sampler.where} has no rising times with a finite value each")
    values = turn(values)
    if interpolation == "cubic":
        values = values.reshape(-1, 3, width)
    elif path == "rotation":
        values = _unit_rows(values)
    return Track(times, np.ascontiguousarray(values, np.float32), interpolation)  # type: ignore[arg-type]


def _unit_rows(values: NDArray) -> NDArray:
    wide = values.astype(np.float64)
    length = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.where(length > 1e-12, wide / np.maximum(length, 1e-12), [0.0, 0.0, 0.0, 1.0])


# -----------------------------------------------------------------------------------------------------------------------------

_MODES = ("points", "lines", "lines", "lines", "triangles", "strips", "fans")
_CHANNELS_MAX = 16


@dataclass
class ReadMesh:
    """A mesh in our frame, not yet placed."""

    raw: RawMesh
    materials: tuple[str, ...]


def z_up(vectors: NDArray) -> NDArray:
    """Return (n, 3) of a y-up file in our frame: x stays, y becomes z, z becomes -y."""
    return np.stack([vectors[:, 0], -vectors[:, 2], vectors[:, 1]], 1)


class Meshes:
    """The meshes of a file, read when a node first uses them."""

    def __init__(self, file: GltfFile, materials: Materials) -> None:
        self._file = file
        self._materials = materials
        self._read: dict[int, ReadMesh | None] = {}
        self._vertices = 0
        self._faces = 0
        self._primitives = 0

    def use(self, index: int) -> ReadMesh | None:
        """Return a mesh by number; None where it holds no triangle."""
        if index not in self._read:
            fields = self._file.entry("meshes", index)
            parts = []
            for number, primitive in enumerate(fields.items("primitives")):
                part = self._primitive(JsonFields(fields.source, primitive, f"primitive {number} of {fields.where}"))
                if part is not None:
                    parts.append(part)
            self._read[index] = self._joined(parts) if parts else None
        return self._read[index]

    def _joined(self, parts: list[tuple[RawMesh, str]]) -> ReadMesh:
        """Return one mesh of several; while they are copied, both are there, though all may be made of the same bytes."""
        if len(parts) == 1:
            return _joined(parts)
        size = sum(_bytes_of(raw) for raw, _ in parts)
        self._file.source.take(size, "a mesh of several pieces")
        joined = _joined(parts)
        parts.clear()
        self._file.source.give_back(size)
        return joined

    def _primitive(self, fields: JsonFields) -> tuple[RawMesh, str] | None:
        source = fields.source
        self._primitives += 1
        source.at_most(self._primitives, source.limits.primitives, "primitives")
        mode = _MODES[fields.integer("mode", 4, 0, len(_MODES))]
        if mode in ("points", "lines"):
            source.warn(f"primitives of {mode} left out")
            return None
        if fields.extension("KHR_draco_mesh_compression") is not None:
            source.refuse(f"{fields.where} is Draco-compressed, which is not supported: export it without")
        if fields.items("targets"):
            source.warn("morph targets passed over")
        attributes = fields.object("attributes")
        if "POSITION" not in attributes:
            source.warn("primitives without positions left out")
            return None
        # Counted over the file, not the mesh: many small ones take as much memory as a large one.
        vertices = self._attribute(attributes, "POSITION", (3,))
        self._vertices += len(vertices)
        source.at_most(self._vertices, source.limits.vertices, "vertices")
        faces = self._triangles(fields, mode, len(vertices))
        name, placing = self._material(fields)
        raw = RawMesh(z_up(vertices), faces)
        raw = self._attributes(raw, attributes, placing)
        # Vertices that no triangle uses are dropped: several primitives often share one table of them.
        before = 4 * sum(a.size for a in (raw.vertices, raw.normals, raw.uv, raw.colors, raw.weights) if a is not None)
        raw = clean(source, compact(raw))
        if not len(raw.faces):
            return None
        after = 4 * sum(a.size for a in (raw.vertices, raw.normals, raw.uv, raw.colors, raw.weights) if a is not None)
        source.give_back(before - after)
        return raw, name

    def _material(self, fields: JsonFields) -> tuple[str, Placing]:
        if "material" not in fields:
            return "", Placing()
        return self._materials.use(fields.integer("material"), "COLOR_0" in fields.object("attributes"))

    def _attribute(self, attributes: JsonFields, key: str, widths: tuple[int, ...]) -> ArrayF32:
        return self._file.accessor(attributes.integer(key), widths)

    def _attributes(self, raw: RawMesh, attributes: JsonFields, placing: Placing) -> RawMesh:
        if "NORMAL" in attributes:
            raw.normals = z_up(self._attribute(attributes, "NORMAL", (3,)))
        key = f"TEXCOORD_{placing.set}"
        if key in attributes:
            raw.uv = placing.apply(self._attribute(attributes, key, (2,)))
        if "COLOR_0" in attributes:
            raw.colors = _rgba(self._attribute(attributes, "COLOR_0", (3, 4)))
        if "JOINTS_0" in attributes and "WEIGHTS_0" in attributes:
            raw.joints = self._file.accessor(attributes.integer("JOINTS_0"), (4,), integer=True).astype(np.int32)
            raw.weights = self._attribute(attributes, "WEIGHTS_0", (4,))
            if "WEIGHTS_1" in attributes:
                attributes.source.warn("skin weights after the fourth passed over")
        # The standard leaves names with an underscore to users.
        own = [key for key in attributes.value if key.startswith("_")]
        for key in own[:_CHANNELS_MAX]:
            raw.channels[key[1:61].lower() or "channel"] = self._channel(attributes, key)
        for name, values in (("NORMAL", raw.normals), (key, raw.uv), ("COLOR_0", raw.colors), ("JOINTS_0", raw.joints)):
            self._same_length(name, values, raw)
        self._same_length("WEIGHTS_0", raw.weights, raw)
        for name, values in raw.channels.items():
            self._same_length(name, values, raw)
        return raw

    def _channel(self, attributes: JsonFields, key: str) -> ArrayF32:
        values = self._attribute(attributes, key, (1, 2, 3, 4))
        return values[:, 0] if values.shape[1] == 1 else values

    def _same_length(self, name: str, values: NDArray | None, raw: RawMesh) -> None:
        if values is not None and len(values) != len(raw.vertices):
            self._file.source.refuse(f"a primitive has {len(raw.vertices):,} positions and {len(values):,} of {name[:30]!r}")

    def _triangles(self, fields: JsonFields, mode: str, count: int) -> NDArray[np.int32]:
        source = fields.source
        if "indices" in fields:
            indices = self._file.accessor(fields.integer("indices"), (1,), integer=True)[:, 0]
            if len(indices) and (indices.min() < 0 or indices.max() >= count):
                source.refuse(f"{fields.where} uses vertex {indices.max()} of {count}")
        else:
            source.take(8 * count, "its indices")
            indices = np.arange(count)
        if mode == "triangles":
            if len(indices) % 3:
                source.warn("corners of an unfinished triangle dropped", len(indices) % 3)
            faces = indices[: len(indices) // 3 * 3].reshape(-1, 3)
        else:
            source.take(24 * len(indices), "its triangles")
            faces = _strip(indices) if mode == "strips" else _fan(indices)
        self._faces += len(faces)
        source.at_most(self._faces, source.limits.faces, "triangles")
        return faces.astype(np.int32)


def _strip(indices: ArrayInt) -> ArrayInt:
    """Make a triangle of every vertex after the second; every second one is turned round."""
    faces = np.stack([indices[:-2], indices[1:-1], indices[2:]], 1) if len(indices) > 2 else np.zeros((0, 3), np.int64)
    faces[1::2] = faces[1::2][:, [1, 0, 2]]
    return faces


def _fan(indices: ArrayInt) -> ArrayInt:
    if len(indices) < 3:
        return np.zeros((0, 3), np.int64)
    return np.stack([np.full(len(indices) - 2, indices[0]), indices[1:-1], indices[2:]], 1)


def _rgba(colors: ArrayF32) -> ArrayF32:
    if colors.shape[1] == 4:
        return colors
    return np.concatenate([colors, np.ones((len(colors), 1), np.float32)], 1)


def _bytes_of(raw: RawMesh) -> int:
    arrays = (raw.vertices, raw.faces, raw.normals, raw.uv, raw.colors, raw.joints, raw.weights, *raw.channels.values())
    return sum(array.nbytes for array in arrays if array is not None)


def _joined(parts: list[tuple[RawMesh, str]]) -> ReadMesh:
    """Return one mesh of several; what only some have is filled in for the others."""
    names = list(dict.fromkeys(name for _, name in parts))
    raws = [raw for raw, _ in parts]
    if len(parts) == 1:
        return ReadMesh(raws[0], tuple(names))
    starts = np.cumsum([0] + [len(raw.vertices) for raw in raws])
    joined = RawMesh(
        np.concatenate([raw.vertices for raw in raws]),
        np.concatenate([raw.faces + np.int32(start) for raw, start in zip(raws, starts, strict=False)]),
    )
    if any(raw.normals is not None for raw in raws):
        joined.normals = np.concatenate(
            [vertex_normals(raw.vertices, raw.faces) if raw.normals is None else raw.normals for raw in raws]
        )
    for key, fill in (("uv", (0.0, 0.0)), ("colors", (1.0,) * 4), ("joints", (0,) * 4), ("weights", (1.0, 0.0, 0.0, 0.0))):
        if any(getattr(raw, key) is not None for raw in raws):
            kind = np.int32 if key == "joints" else np.float32
            blocks = [
                np.tile(np.array(fill, kind), (len(raw.vertices), 1)) if getattr(raw, key) is None else getattr(raw, key)
                for raw in raws
            ]
            setattr(joined, key, np.concatenate(blocks))
    shared = set.intersection(*(set(raw.channels) for raw in raws))
    for key in sorted(shared):
        if len({raw.channels[key].shape[1:] for raw in raws}) == 1:
            joined.channels[key] = np.concatenate([raw.channels[key] for raw in raws])
    if len(names) > 1:
        number = {name: index for index, name in enumerate(names)}
        joined.face_material = np.concatenate([np.full(len(raw.faces), number[name], np.int32) for raw, name in parts])
    return ReadMesh(joined, tuple(names))
