"""Reading COLLADA (.dae): triangles and polygons of geometries, their common materials, and the nodes that place them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayF32
from airworthy.core.files import shown
from airworthy.scenes.formats._images import TextureImages, srgb_to_linear
from airworthy.scenes.formats._parts import RawMesh, clean, finish
from airworthy.scenes.formats._source import ModelSource, clean_name, unique_name
from airworthy.scenes.formats.gltf.reader import transformed
from airworthy.scenes.formats.meshes.polygons import cut_concave, fans
from airworthy.scenes.formats.model import DEFAULT_LIMITS, FileLimits, Model
from airworthy.scenes.formats.worlds import children, find, floats, parse_xml, whole
from airworthy.scenes.record import Instance, Material

_UP = {"X_UP": ((0, -1, 0), (0, 0, -1), (1, 0, 0)), "Y_UP": ((1, 0, 0), (0, 0, -1), (0, 1, 0))}
_INPUTS_MAX = 32


def read_dae(path: str | Path, limits: FileLimits = DEFAULT_LIMITS) -> Model:
    """Return the model of a COLLADA file, z up and in metres as its asset says, every placed geometry a mesh of its own.

    Raises:
        AssetError: The file is damaged, hostile, too large, or shows no triangle.
    """
    source = ModelSource(path, limits)
    return _Reader(source, parse_xml(source, "COLLADA")).model()


class _Reader:
    def __init__(self, source: ModelSource, root: Element) -> None:
        self.source, self.root = source, root
        self.images = TextureImages(source)
        self.by_id: dict[str, Element] = {}
        for element in root.iter():
            if (key := element.get("id")) is not None:
                self.by_id.setdefault(key, element)
        self.materials: dict[str, Material] = {}
        self.names: dict[str, str] = {}
        self.meshes: dict[str, list[tuple[str, RawMesh]]] = {}
        self.raw: dict[str, RawMesh] = {}
        self.instances: list[Instance] = []
        self.placed = 0

    def model(self) -> Model:
        scene = find(self.root, "scene/instance_visual_scene")
        shown_scene = self._target(scene) if scene is not None else find(self.root, "library_visual_scenes/visual_scene")
        if shown_scene is None:
            self.source.refuse("it has no scene")
        for node in children(shown_scene, "node"):
            self._node(node, self._frame(), 0)
        if not self.instances:
            self.source.refuse("it shows no triangle")
        used = {name: self.materials[name] for item in self.instances for name in item.materials}
        shapes: dict[str, Any] = {name: finish(self.source, raw) for name, raw in self.raw.items()}
        textures = self.images.used_by(used.values())
        return Model(shapes, used, textures, tuple(self.instances), warnings=self.source.warnings)

    def _frame(self) -> Array:
        """From the file's axes and unit to z up and metres."""
        unit = find(self.root, "asset/unit")
        size = floats(self.source, "1" if unit is None else unit.get("meter", "1"), 1)[0]
        if not 1e-9 < size < 1e9:
            self.source.refuse(f"its unit has {size:g} metres")
        axis = find(self.root, "asset/up_axis")
        turn = np.array(_UP.get("Y_UP" if axis is None else (axis.text or "").strip(), np.eye(3)), float)
        matrix = np.eye(4)
        matrix[:3, :3] = size * turn
        return matrix

    def _target(self, element: Element) -> Element | None:
        """Return what a url of the same file refers to."""
        url = element.get("url") or element.get("target") or element.get("source") or ""
        found = self.by_id.get(url[1:]) if url.startswith("#") else None
        if found is None:
            self.source.warn(f"a reference to {shown(url)} leads nowhere in this file")
        return found

    def _node(self, node: Element, above: Array, depth: int) -> None:
        if depth > self.source.limits.node_depth:
            self.source.refuse(f"its nodes are nested deeper than {self.source.limits.node_depth} levels")
        self.placed += 1
        self.source.at_most(self.placed, self.source.limits.nodes, "nodes")
        matrix = above @ self._local(node)
        if not (np.abs(matrix) <= 1e12).all():
            self.source.refuse("the transformation of a node holds numbers above 1e12")
        for use in children(node, "instance_geometry"):
            geometry = self._target(use)
            if geometry is not None:
                self._add_instance(use, geometry, matrix, node)
        for use in children(node, "instance_node"):
            other = self._target(use)
            if other is not None:
                self._node(other, matrix, depth + 1)
        if find(node, "instance_controller") is not None:
            self.source.warn("skinned meshes left out")
        for child in children(node, "node"):
            self._node(child, matrix, depth + 1)

    def _local(self, node: Element) -> Array:
        matrix = np.eye(4)
        for step in node:
            if step.tag == "matrix":
                # Steps of a node apply in the order of the file, the last one first to a point.
                matrix = matrix @ floats(self.source, step.text, 16).reshape(4, 4)
            elif step.tag == "translate":
                move = np.eye(4)
                move[:3, 3] = floats(self.source, step.text, 3)
                matrix = matrix @ move
            elif step.tag == "scale":
                matrix = matrix @ np.diag([*floats(self.source, step.text, 3), 1.0])
            elif step.tag == "rotate":
                x, y, z, angle = floats(self.source, step.text, 4)
                length = math.sqrt(x * x + y * y + z * z)
                # An axis of no length turns nothing; exporters write some.
                if length > 0.0:
                    half = 0.5 * math.radians(angle)
                    turn = np.eye(4)
                    axis = np.array([x, y, z]) / length
                    turn[:3, :3] = frames.to_matrix(np.array([*(math.sin(half) * axis), math.cos(half)]))
                    matrix = matrix @ turn
            elif step.tag in ("lookat", "skew"):
                self.source.warn(f"transformations of the kind {step.tag} passed over")
        return matrix

    def _add_instance(self, use: Element, geometry: Element, matrix: Array, node: Element) -> None:
        key = geometry.get("id") or ""
        if key not in self.meshes:
            self.meshes[key] = self._geometry(geometry)
        bound = {
            item.get("symbol"): self._target(item)
            for item in use.iter("instance_material")
            if item.get("symbol") and item.get("target")
        }
        label = clean_name(node.get("name") or node.get("id") or "", key or "mesh")
        for symbol, raw in self.meshes[key]:
            self.source.take(4 * (6 * len(raw.vertices) + 3 * len(raw.faces)), "a placed mesh")
            # Moved, not instanced: nodes of a COLLADA file may shear and mirror, which an instance cannot.
            moved = clean(self.source, transformed(raw, matrix))
            if not len(moved.faces):
                continue
            name = unique_name(self.raw, clean_name(geometry.get("name") or key, "mesh"))
            self.raw[name] = moved
            material = bound.get(symbol)
            names = () if material is None else (self._material(material),)
            self.instances.append(Instance(name, materials=names, name=label))

    # ---- geometries

    def _geometry(self, geometry: Element) -> list[tuple[str, RawMesh]]:
        mesh = find(geometry, "mesh")
        if mesh is None:
            self.source.warn("geometries that are no meshes left out")
            return []
        parts = []
        # All three are polygons with or without counts; the rest is hardly ever written.
        for kind in ("triangles", "polylist", "polygons"):
            for piece in children(mesh, kind):
                raw = self._piece(mesh, piece, kind)
                if raw is not None:
                    parts.append((piece.get("material") or "", raw))
        for kind in ("lines", "linestrips", "tristrips", "trifans"):
            if find(mesh, kind) is not None:
                self.source.warn(f"{kind} left out")
        return parts

    def _piece(self, mesh: Element, piece: Element, kind: str) -> RawMesh | None:
        inputs = children(piece, "input")
        if not 0 < len(inputs) <= _INPUTS_MAX:
            self.source.refuse(f"a mesh has {len(inputs)} inputs")
        offsets = [int(whole(self.source, item.get("offset", "0"), 0, _INPUTS_MAX)[0]) for item in inputs]
        stride = max(offsets) + 1
        lists = [whole(self.source, p.text, 0, 2**31) for p in children(piece, "p")]
        index = np.concatenate(lists) if lists else np.zeros(0, np.int64)
        if len(index) % stride:
            self.source.refuse("a mesh ends within a corner")
        corners = index.reshape(-1, stride)
        if kind == "triangles":
            counts = np.full(len(corners) // 3, 3)
        elif kind == "polylist":
            counts = whole(self.source, getattr(find(piece, "vcount"), "text", ""), 0, 2**31)
        else:
            counts = np.array([len(numbers) // stride for numbers in lists], np.int64)
        if counts.sum() > len(corners):
            self.source.refuse("a mesh promises more corners than it has")
        self.source.at_most(int(np.maximum(counts - 2, 0).sum()), self.source.limits.faces, "triangles")
        self.source.take(60 * len(corners), "its corners")
        tables: dict[str, ArrayF32] = {}
        for item, offset in zip(inputs, offsets, strict=True):
            for semantic, table in self._tables(mesh, item):
                at = corners[:, offset]
                if semantic not in tables and table is not None:
                    if len(at) and at.max() >= len(table):
                        self.source.refuse(f"a mesh uses {semantic} {at.max()} of {len(table)}")
                    # Spread to corners: each input has indices of its own, where a mesh here has one set.
                    tables[semantic] = table[at]
        if "POSITION" not in tables or tables["POSITION"].shape[1] < 3:
            self.source.warn("meshes without positions left out")
            return None
        vertices, faces = np.ascontiguousarray(tables["POSITION"][:, :3]), fans(counts)
        cut_concave(self.source, faces, counts, vertices, np.arange(len(vertices), dtype=np.int32))
        raw = RawMesh(vertices, faces)
        if "NORMAL" in tables and tables["NORMAL"].shape[1] == 3:
            raw.normals = np.clip(tables["NORMAL"], -1e6, 1e6)  # a file may hold what float32 does not
        if "TEXCOORD" in tables and tables["TEXCOORD"].shape[1] >= 2:
            uv = tables["TEXCOORD"]
            # Origin at the lower left in COLLADA.
            raw.uv = np.stack([uv[:, 0], 1.0 - uv[:, 1]], 1).astype(np.float32)
        if "COLOR" in tables and tables["COLOR"].shape[1] >= 3:
            rgb = np.clip(tables["COLOR"][:, :3], 0.0, 1.0)
            raw.colors = np.concatenate([srgb_to_linear(rgb), np.ones((len(rgb), 1))], 1).astype(np.float32)
        return raw

    def _tables(self, mesh: Element, item: Element) -> list[tuple[str, ArrayF32 | None]]:
        """Values behind an input; VERTEX stands for all inputs of the vertices."""
        target = self._target(item)
        if target is None:
            return []
        if item.get("semantic") == "VERTEX":
            return (
                [pair for inner in children(target, "input") for pair in self._tables(mesh, inner)]
                if target.tag == "vertices"
                else []
            )
        return [(item.get("semantic") or "", self._values(target))]

    def _values(self, target: Element) -> ArrayF32 | None:
        array, accessor = find(target, "float_array"), find(target, "technique_common/accessor")
        if array is None or accessor is None:
            return None
        values = floats(self.source, array.text)
        stride = int(whole(self.source, accessor.get("stride", "1"), 1, 17)[0])
        self.source.take(4 * len(values), "its numbers")
        with np.errstate(over="ignore"):
            return values[: len(values) // stride * stride].reshape(-1, stride).astype(np.float32)

    # ---- materials

    def _material(self, element: Element) -> str:
        key = element.get("id") or ""
        if key not in self.names:
            self.source.at_most(len(self.names) + 1, self.source.limits.materials, "materials")
            name = unique_name(self.materials, clean_name(element.get("name") or key, "material"))
            use = find(element, "instance_effect")
            effect = None if use is None else self._target(use)
            self.materials[name] = Material() if effect is None else self._effect(effect)
            self.names[key] = name
        return self.names[key]

    def _effect(self, effect: Element) -> Material:
        surface = next((found for kind in ("phong", "lambert", "blinn", "constant") for found in effect.iter(kind)), None)
        if surface is None:
            return Material()
        color, image = self._channel(effect, surface, "diffuse")
        glow, _ = self._channel(effect, surface, "emission")
        # A texture takes a colour's place in COLLADA, and is multiplied by it here.
        base = (1.0, 1.0, 1.0) if image else color if color is not None else Material.base_color[:3]
        emissive = (0.0, 0.0, 0.0) if glow is None else glow
        return Material(
            (base[0], base[1], base[2], 1.0), emissive=(emissive[0], emissive[1], emissive[2]), base_color_map=image
        )

    def _channel(self, effect: Element, surface: Element, kind: str) -> tuple[tuple[float, ...] | None, str]:
        """Linear colour and texture of one channel."""
        element = find(surface, kind)
        if element is None:
            return None, ""
        texture, color = find(element, "texture"), find(element, "color")
        if texture is not None:
            return None, self._texture(effect, texture.get("texture") or "")
        if color is None:
            return None, ""
        values = floats(self.source, color.text)[:3].clip(0.0, 1.0)  # linear, as modelling programs write them
        return tuple(float(v) for v in values) if len(values) == 3 else None, ""

    def _texture(self, effect: Element, name: str) -> str:
        """Through sampler and surface to the image; older files name the image itself."""
        params = {item.get("sid"): item for item in effect.iter("newparam")}
        # Twice: sampler, then surface.
        for _ in range(2):
            if name in params:
                inner = next((e for e in params[name].iter() if e.tag in ("source", "init_from") and e.text), None)
                name = "" if inner is None or inner.text is None else inner.text.strip()
        image = self.by_id.get(name)
        init = None if image is None else find(image, "init_from")
        file = "" if init is None else (init.text or getattr(find(init, "ref"), "text", "") or "").strip()
        if not file:
            self.source.warn(f"texture {shown(name)} has no image")
            return ""
        short = file.replace("\\", "/").rpartition("/")[2]
        pixels = self.images.pixels_if_sound(file, lambda: self.source.reference(file, escaped=True), short)
        return "" if pixels is None else self.images.texture(file, pixels, short, True)
