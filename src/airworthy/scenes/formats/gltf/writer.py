"""Writing binary glTF: instances as nodes, materials with all their maps, textures as PNG inside the file."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import ArrayAny, ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.core.files import write_bytes
from airworthy.geometry import Mesh
from airworthy.scenes.formats._parts import Writable, as_model, faces_by_material, label, material_of, shape_of
from airworthy.scenes.formats.gltf.glass import glass_json, leaf_json
from airworthy.scenes.formats.gltf.materials import OWN_EXTRAS
from airworthy.scenes.formats.gltf.reader import LUX
from airworthy.scenes.formats.meshes.solids import tessellate
from airworthy.scenes.formats.model import Model
from airworthy.scenes.formats.write_plain import png
from airworthy.scenes.record import Instance, Light, Material, PointLight, SpotLight, Sun

_WRAPS = {"repeat": 10497, "clamp": 33071, "mirror": 33648}
_VERTICES, _INDICES = 34962, 34963
_TYPES = {1: "SCALAR", 2: "VEC2", 3: "VEC3", 4: "VEC4"}
Json = dict[str, Any]


def write_glb(path: str | Path, thing: Writable, glass_opacity: float | None = None) -> Path:
    """Write a mesh, model or scene as one .glb file; z up is turned to y up. The same input gives the same bytes.

    A shape that many instances use is stored once; solids become triangles. What glTF has no place for (height and detail maps,
    semantic class) stands in `extras`, where our reader finds it. Skeletons are left out: meshes stand in their rest pose.

    Args:
        path: Of the file.
        thing: What is written.
        glass_opacity: Write glass and water as blended with what is behind, so opaque, for programs that know no transmission;
            None: as what they are.

    Raises:
        AirworthyError: An instance names a missing shape, the file would pass 4 GB, or cannot be written.
    """
    return write_bytes(path, _Writer(as_model(thing), glass_opacity).file())


class _Writer:
    def __init__(self, model: Model, glass_opacity: float | None = None) -> None:
        self._model, self._glass_opacity = model, glass_opacity
        self._binary: list[bytes] = []
        self._length = 0
        self._json: dict[str, list[Json]] = {key: [] for key in ("accessors", "bufferViews", "meshes", "nodes")}
        self._materials: dict[str, int] = {}
        self._textures: dict[str, int] = {}
        self._meshes: dict[tuple[str, tuple[str, ...]], int | None] = {}
        self._attributes: dict[str, tuple[Mesh, Json]] = {}
        self._extensions: set[str] = set()

    def file(self) -> bytes:
        for index, instance in enumerate(self._model.instances):
            self._node(index, instance)
        lights = [self._light(light) for light in self._model.lights]
        nodes = self._json["nodes"]
        root: Json = {
            "asset": {"version": "2.0", "generator": "airworthy"},
            "scene": 0,
            "scenes": [{"nodes": list(range(len(nodes)))} if nodes else {}],
        }
        if lights:
            root["extensions"] = {"KHR_lights_punctual": {"lights": lights}}
            self._extensions.add("KHR_lights_punctual")
        if self._extensions:
            root["extensionsUsed"] = sorted(self._extensions)
        root |= {key: value for key, value in self._json.items() if value}
        if self._length:
            root["buffers"] = [{"byteLength": self._length}]
        return _container(root, b"".join(self._binary))

    def _node(self, index: int, instance: Instance) -> None:
        mesh = self._mesh(instance)
        if mesh is None:
            return
        own: Json = {"semantic": instance.semantic}
        own |= {"instanceId": instance.instance_id} if instance.instance_id else {}
        own |= {} if instance.collide else {"collide": False}
        own |= {} if instance.visible else {"visible": False}
        node: Json = {"name": label(instance, index), "mesh": mesh, "extras": {OWN_EXTRAS: own}}
        x, y, z, w = (float(v) for v in frames.normalize(np.array(instance.attitude, float)))
        if any(instance.position):
            node["translation"] = _y_up(instance.position)
        # What is left out is the standard's default.
        if (x, y, z) != (0.0, 0.0, 0.0):
            node["rotation"] = [*_y_up((x, y, z)), w]
        if instance.scale != 1.0:
            node["scale"] = [float(instance.scale)] * 3
        self._json["nodes"].append(node)

    def _mesh(self, instance: Instance) -> int | None:
        # glTF keeps materials with meshes, not with nodes: another list of materials is another mesh over the same arrays.
        key = (instance.shape, instance.materials)
        if key not in self._meshes:
            mesh, attributes = self._attributes_of(instance)
            primitives = []
            for number, faces in faces_by_material(mesh):
                primitive: Json = {"attributes": attributes, "indices": self._accessor(faces.reshape(-1, 1), _INDICES)}
                if instance.materials:
                    primitive["material"] = self._material(instance.materials[min(number, len(instance.materials) - 1)])
                primitives.append(primitive)
            self._meshes[key] = len(self._json["meshes"]) if primitives else None
            if primitives:
                self._json["meshes"].append({"name": instance.shape, "primitives": primitives})
        return self._meshes[key]

    def _attributes_of(self, instance: Instance) -> tuple[Mesh, Json]:
        """Arrays of a shape, stored once however many materials it comes in."""
        if instance.shape not in self._attributes:
            mesh = tessellate(shape_of(self._model, instance))
            attributes: Json = {}
            if len(mesh.faces):
                attributes["POSITION"] = self._accessor(_turned(mesh.vertices), _VERTICES, bounds=True)
                if mesh.normals is not None:
                    attributes["NORMAL"] = self._accessor(_turned(mesh.normals), _VERTICES)
                if mesh.uv is not None:
                    attributes["TEXCOORD_0"] = self._accessor(mesh.uv, _VERTICES)
                if mesh.colors is not None:
                    attributes["COLOR_0"] = self._accessor(mesh.colors, _VERTICES)
                for name, values in mesh.channels.items():
                    table = values.reshape(len(values), -1)
                    if table.shape[1] in _TYPES:
                        attributes["_" + name.upper()] = self._accessor(table, _VERTICES)
            self._attributes[instance.shape] = (mesh, attributes)
        return self._attributes[instance.shape]

    def _accessor(self, values: ArrayAny, target: int, *, bounds: bool = False) -> int:
        integer = values.dtype.kind in "iu"
        data = np.ascontiguousarray(values, "<u4" if integer else "<f4")
        accessor: Json = {
            "bufferView": self._view(data.tobytes(), target),
            "componentType": 5125 if integer else 5126,
            "count": len(data),
            "type": _TYPES[data.shape[1]],
        }
        if bounds:
            # The standard demands bounds of positions.
            accessor |= {"min": [float(v) for v in data.min(0)], "max": [float(v) for v in data.max(0)]}
        self._json["accessors"].append(accessor)
        return len(self._json["accessors"]) - 1

    def _view(self, data: bytes, target: int = 0) -> int:
        view: Json = {"buffer": 0, "byteOffset": self._length, "byteLength": len(data)}
        if target:
            view["target"] = target
        # Accessors begin at multiples of their components' size, four bytes.
        padding = -len(data) % 4
        self._binary += [data, b"\0" * padding]
        self._length += len(data) + padding
        self._json["bufferViews"].append(view)
        return len(self._json["bufferViews"]) - 1

    def _material(self, name: str) -> int:
        if name not in self._materials:
            entry = self._surface(name, material_of(self._model, name))
            self._materials[name] = len(self._json.setdefault("materials", []))
            self._json["materials"].append(entry)
        return self._materials[name]

    def _surface(self, name: str, material: Material) -> Json:
        surface: Json = {
            "baseColorFactor": [float(v) for v in material.base_color],
            "metallicFactor": float(material.metallic),
            "roughnessFactor": float(material.roughness),
        }
        entry: Json = {"name": name, "pbrMetallicRoughness": surface, "doubleSided": material.double_sided}
        self._info(surface, "baseColorTexture", material.base_color_map, material)
        self._info(surface, "metallicRoughnessTexture", material.metallic_roughness_map, material)
        if self._info(entry, "normalTexture", material.normal_map, material):
            entry["normalTexture"]["scale"] = float(material.normal_scale)
        self._info(entry, "occlusionTexture", material.occlusion_map, material)
        self._info(entry, "emissiveTexture", material.emissive_map, material)
        # Factors end at 1; what glows more brightly has its strength in an extension.
        brightest = max(material.emissive)
        if brightest > 0:
            entry["emissiveFactor"] = [float(v) / max(brightest, 1.0) for v in material.emissive]
        if brightest > 1:
            entry["extensions"] = {"KHR_materials_emissive_strength": {"emissiveStrength": float(brightest)}}
            self._extensions.add("KHR_materials_emissive_strength")
        glass = glass_json(material)
        if glass and self._glass_opacity is not None:
            surface["baseColorFactor"][3] = self._glass_opacity
            entry["alphaMode"] = "BLEND"
            glass = {}
        if glass := glass | leaf_json(material):
            entry["extensions"] = entry.get("extensions", {}) | glass
            self._extensions |= set(glass)
        if material.alpha_cutoff > 0:
            entry |= {"alphaMode": "MASK", "alphaCutoff": float(material.alpha_cutoff)}
        own: Json = {"textureSize": float(material.texture_size)} if material.texture_size > 0 else {}
        if self._info(own, "heightTexture", material.height_map, material):
            own["heightScale"] = float(material.height_scale)
        if self._info(own, "detailTexture", material.detail_map, material):
            own["detailRepeat"] = float(material.detail_repeat)
        if any(material.scattered):
            own["scattered"] = [float(v) for v in material.scattered]
        if material.wave_slope > 0.0:
            own["waveSlope"] = float(material.wave_slope)
        if material.translucency > 0.0:
            # The extension's colour ends at 1, and says nothing of a black base.
            own["translucentTint"] = [float(v) for v in material.translucent_tint]
        return entry | ({"extras": {OWN_EXTRAS: own}} if own else {})

    def _info(self, entry: Json, key: str, texture: str, material: Material) -> bool:
        """Refer to a texture; False where there is none."""
        if texture not in self._model.textures:
            return False
        info: Json = {"index": self._texture(texture)}
        if tuple(material.uv_scale) != (1.0, 1.0):
            info["extensions"] = {"KHR_texture_transform": {"scale": [float(v) for v in material.uv_scale]}}
            self._extensions.add("KHR_texture_transform")
        entry[key] = info
        return True

    def _texture(self, name: str) -> int:
        if name not in self._textures:
            texture = self._model.textures[name]
            for key in ("samplers", "images", "textures"):
                self._json.setdefault(key, [])
            sampler = {"wrapS": _WRAPS[texture.wrap], "wrapT": _WRAPS[texture.wrap]}
            if sampler not in self._json["samplers"]:
                self._json["samplers"].append(sampler)
            self._json["images"].append({"name": name, "mimeType": "image/png", "bufferView": self._view(png(texture.pixels))})
            self._json["textures"].append(
                {"sampler": self._json["samplers"].index(sampler), "source": len(self._json["images"]) - 1}
            )
            self._textures[name] = len(self._json["textures"]) - 1
        return self._textures[name]

    def _light(self, light: Light) -> Json:
        """Entry of a light; a node that places it is added. Lights shine along -z of their node."""
        number = sum("extensions" in node for node in self._json["nodes"])
        node: Json = {"name": f"light_{number}", "extensions": {"KHR_lights_punctual": {"light": number}}}
        entry: Json = {"color": [float(v) for v in light.color]}
        if isinstance(light, Sun):
            entry |= {"type": "directional", "intensity": light.irradiance / LUX}
        else:
            node["translation"] = _y_up(light.position)
            entry |= {"type": "point", "intensity": light.intensity / LUX}
            entry |= {"range": float(light.range)} if light.range > 0 else {}
        if isinstance(light, SpotLight):
            entry["type"] = "spot"
            inner = min(light.inner_angle, light.outer_angle)
            entry["spot"] = {"innerConeAngle": float(inner), "outerConeAngle": float(light.outer_angle)}
        if not isinstance(light, PointLight):
            node["rotation"] = _towards(_y_up(light.direction))
        self._json["nodes"].append(node)
        return entry


def _y_up(vector: Any) -> list[float]:
    return [float(v) + 0.0 for v in frames.gltf_vector(vector)]


def _turned(vectors: ArrayF32) -> ArrayF32:
    return np.stack([vectors[:, 0], vectors[:, 2], -vectors[:, 1]], 1)


def _towards(direction: list[float]) -> list[float]:
    """Quaternion that turns -z into a direction."""
    length = math.sqrt(sum(v * v for v in direction)) or 1.0
    x, y, z = (v / length for v in direction)
    # Backwards: any half turn across the axis does, and the formula below would have no length.
    if z > 1 - 1e-12:
        return [0.0, 1.0, 0.0, 0.0]
    q = np.array([y, -x, 0.0, 1.0 - z])  # cross(-z, d), 1 + dot(-z, d)
    return [float(v) for v in q / np.linalg.norm(q)]


def _container(root: Json, binary: bytes) -> bytes:
    text = json.dumps(root, separators=(",", ":"), allow_nan=False).encode()
    # Chunks are padded to four bytes, JSON by blanks.
    text += b" " * (-len(text) % 4)
    length = 12 + 8 + len(text) + (8 + len(binary) if binary else 0)
    if length >= 2**32:
        raise AirworthyError(f"A .glb file of {length:,} bytes was to be written; the format ends at 4 GB. Write several.")
    parts = [b"glTF", struct.pack("<II", 2, length), struct.pack("<II", len(text), 0x4E4F534A), text]
    if binary:
        parts += [struct.pack("<II", len(binary), 0x004E4942), binary]
    return b"".join(parts)
