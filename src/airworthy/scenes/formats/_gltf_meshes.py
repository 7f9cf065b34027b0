"""Meshes of glTF files: all primitives of a mesh become one, with a material number per face."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from airworthy.scenes.formats._clean import RawMesh, clean, compact, vertex_normals
from airworthy.scenes.formats._fields import Fields
from airworthy.scenes.formats._gltf_file import GltfFile
from airworthy.scenes.formats._gltf_materials import Materials, Placing

_MODES = ("points", "lines", "lines", "lines", "triangles", "strips", "fans")
_CHANNELS_MAX = 16


@dataclass
class ReadMesh:
    """A mesh in our frame, not yet placed."""

    raw: RawMesh
    materials: tuple[str, ...]


def z_up(vectors: NDArray) -> NDArray:
    """(n, 3) of a y-up file in our frame: x stays, y becomes z, z becomes -y."""
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
        """A mesh by number; None where it holds no triangle."""
        if index not in self._read:
            fields = self._file.entry("meshes", index)
            parts = []
            for number, primitive in enumerate(fields.items("primitives")):
                part = self._primitive(Fields(fields.source, primitive, f"primitive {number} of {fields.where}"))
                if part is not None:
                    parts.append(part)
            self._read[index] = _joined(parts) if parts else None
        return self._read[index]

    def _primitive(self, fields: Fields) -> tuple[RawMesh, str] | None:
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
        vertices = self._attribute(attributes, "POSITION", (3,))
        self._vertices += len(vertices)
        source.at_most(self._vertices, source.limits.vertices, "vertices")
        faces = self._triangles(fields, mode, len(vertices))
        name, placing = self._material(fields)
        raw = RawMesh(z_up(vertices), faces)
        raw = self._attributes(raw, attributes, placing)
        before = 4 * sum(a.size for a in (raw.vertices, raw.normals, raw.uv, raw.colors, raw.weights) if a is not None)
        raw = clean(source, compact(raw))
        if not len(raw.faces):
            return None
        after = 4 * sum(a.size for a in (raw.vertices, raw.normals, raw.uv, raw.colors, raw.weights) if a is not None)
        source.give_back(before - after)
        return raw, name

    def _material(self, fields: Fields) -> tuple[str, Placing]:
        if "material" not in fields:
            return "", Placing()
        return self._materials.use(fields.integer("material"))

    def _attribute(self, attributes: Fields, key: str, widths: tuple[int, ...]) -> NDArray[np.float32]:
        return self._file.accessor(attributes.integer(key), widths)

    def _attributes(self, raw: RawMesh, attributes: Fields, placing: Placing) -> RawMesh:
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
        own = [key for key in attributes.value if key.startswith("_")]
        for key in own[:_CHANNELS_MAX]:
            raw.channels[key[1:61].lower() or "channel"] = self._channel(attributes, key)
        for name, values in (("NORMAL", raw.normals), (key, raw.uv), ("COLOR_0", raw.colors), ("JOINTS_0", raw.joints)):
            self._same_length(name, values, raw)
        self._same_length("WEIGHTS_0", raw.weights, raw)
        for name, values in raw.channels.items():
            self._same_length(name, values, raw)
        return raw

    def _channel(self, attributes: Fields, key: str) -> NDArray[np.float32]:
        values = self._attribute(attributes, key, (1, 2, 3, 4))
        return values[:, 0] if values.shape[1] == 1 else values

    def _same_length(self, name: str, values: NDArray | None, raw: RawMesh) -> None:
        if values is not None and len(values) != len(raw.vertices):
            self._file.source.refuse(f"a primitive has {len(raw.vertices):,} positions and {len(values):,} of {name[:30]!r}")

    def _triangles(self, fields: Fields, mode: str, count: int) -> NDArray[np.int32]:
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


def _strip(indices: NDArray[np.int64]) -> NDArray[np.int64]:
    """Every vertex after the second makes a triangle; every second one is turned round."""
    faces = np.stack([indices[:-2], indices[1:-1], indices[2:]], 1) if len(indices) > 2 else np.zeros((0, 3), np.int64)
    faces[1::2] = faces[1::2][:, [1, 0, 2]]
    return faces


def _fan(indices: NDArray[np.int64]) -> NDArray[np.int64]:
    if len(indices) < 3:
        return np.zeros((0, 3), np.int64)
    return np.stack([np.full(len(indices) - 2, indices[0]), indices[1:-1], indices[2:]], 1)


def _rgba(colors: NDArray[np.float32]) -> NDArray[np.float32]:
    if colors.shape[1] == 4:
        return colors
    return np.concatenate([colors, np.ones((len(colors), 1), np.float32)], 1)


def _joined(parts: list[tuple[RawMesh, str]]) -> ReadMesh:
    """One mesh of several; what only some have is filled in for the others."""
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
