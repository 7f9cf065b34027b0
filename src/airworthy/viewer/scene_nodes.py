"""A scene's meshes as nodes of the viewer: one batch of instances per shape and materials, standing or moving."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayAny, ArrayF32, ArrayInt
from airworthy.geometry import Mesh, Shape
from airworthy.scenes.formats import tessellate, write_glb
from airworthy.scenes.record import IDENTITY, Instance, Material, Scene
from airworthy.viewer.flights import GLTF_TURN, ActorPoses, node_name

__all__ = ["LAYERS", "SceneNodes", "wrapped"]


# -----------------------------------------------------------------------------------------------------------------------------
# Texture coordinates for what is textured by size: browsers know only coordinates, the renderer wraps by itself.


def wrapped(mesh: Mesh, materials: Sequence[Material], scale: float = 1.0) -> Mesh:
    """Return the mesh with coordinates along the dominant axis of each face where its material has a `texture_size`.

    Args:
        mesh: Of one shape.
        materials: Of its instance, at least one.
        scale: Of its instance; textures keep their size in the world.
    """
    sizes = np.array([material.texture_size for material in materials])
    kind = np.zeros(len(mesh.faces), int) if mesh.face_material is None else np.asarray(mesh.face_material, int)
    size = sizes[np.minimum(kind, len(sizes) - 1)]
    if not (size > 0.0).any():
        return mesh
    corner = np.asarray(mesh.faces).reshape(-1)  # neighbours may be wrapped along other axes, so none share a vertex
    points = mesh.vertices[corner].reshape(-1, 3, 3).astype(np.float64)
    along = _along(points) * scale / np.where(size > 0.0, size, 1.0)[:, None, None]
    given = np.zeros_like(along) if mesh.uv is None else mesh.uv[corner].reshape(along.shape)
    uv = np.where((size > 0.0)[:, None, None], along, given).reshape(-1, 2)
    return Mesh(
        mesh.vertices[corner],
        np.arange(len(corner), dtype=np.int32).reshape(-1, 3),
        None if mesh.normals is None else mesh.normals[corner],
        uv.astype(np.float32),
        None if mesh.colors is None else mesh.colors[corner],
        mesh.face_material,
    )


def by_material(mesh: Mesh, materials: Sequence[str]) -> list[tuple[Mesh, tuple[str, ...]]]:
    """Return a mesh in parts of one material each, and each part's material.

    Args:
        mesh: Of one shape.
        materials: Names of its instance's, in the order of `face_material`.
    """
    if mesh.face_material is None or len(materials) < 2:
        return [(mesh, tuple(materials))]
    parts: list[tuple[Mesh, tuple[str, ...]]] = []
    kinds = np.minimum(np.asarray(mesh.face_material, int), len(materials) - 1)
    for kind in np.unique(kinds).tolist():
        used, faces = np.unique(np.asarray(mesh.faces)[kinds == kind], return_inverse=True)
        normals, uv, colors = (None if each is None else each[used] for each in (mesh.normals, mesh.uv, mesh.colors))
        parts.append(
            (Mesh(mesh.vertices[used], faces.reshape(-1, 3).astype(np.int32), normals, uv, colors), (materials[kind],))
        )
    return parts


def _along(points: Array) -> ArrayAny:
    """Coordinates (faces, 3, 2) [m] of corners (faces, 3, 3): x and y from above, sideways and down on what stands."""
    normal = np.cross(points[:, 1] - points[:, 0], points[:, 2] - points[:, 0])
    axis = np.argmax(np.abs(normal), axis=1)
    sign = np.where(np.take_along_axis(normal, axis[:, None], 1) < 0.0, -1.0, 1.0)
    x, y, z = points[..., 0], points[..., 1], points[..., 2]
    u = np.choose(axis[:, None], [y * sign, -x * sign, x])
    v = np.choose(axis[:, None], [-z, -z, -y * sign])
    return np.stack([u, v], axis=-1)


# -----------------------------------------------------------------------------------------------------------------------------

ROOT = "/scene"
LAYERS = {"meshes": "meshes", "roof": "roof", "covered": "meshes behind splats", "collision": "what vehicles hit"}
"""Parts of a scene that are shown or hidden together, and what their switches say."""
SHOWN = ("meshes", "roof")
"""Those that are shown at first. The others are sent when they are asked for."""
_SEGMENTS = 20
"""Sides of round solids; the eye needs fewer than an export."""
_FEW = 4
"""Textured things in at most as many places come in one file; of others one is sent, with all its places."""
_HIT, _HIT_OPACITY = (225, 60, 110), 0.4
"""Colour of what can be hit."""
_GLASS_OPACITY = 0.35
"""Of what is glass or water: the browser's library bends no light."""


@dataclass(frozen=True, eq=False)
class _Group:
    """Things of one shape and materials that are one batch of instances."""

    layer: str
    name: str
    items: tuple[Instance, ...]
    """As placed; of actors' parts, only shape, scale and materials count."""
    parts: ArrayInt
    """Rows of actors' parts, (n,); empty for what stands."""


class SceneNodes:
    """The meshes; `advance` moves those of actors, `switch` shows and hides layers.

    Args:
        api: `viser.ViserServer.scene`.
        scene: What to show.
        lowered: The scene without its roof (`scenes.viewpoints.roofless`); itself where it has none.
        poses: Where its actors are.
    """

    def __init__(self, api: Any, scene: Scene, lowered: Scene, poses: ActorPoses):
        self._api, self._scene, self._lowered, self._poses = api, scene, lowered, poses
        self._groups = _groups(scene, lowered, poses)
        self._made: dict[str, list[tuple[_Group, Any, bool]]] = {}
        self.nodes: dict[str, Any] = {}
        """Handle of each node, by its name."""
        api.add_frame(ROOT, show_axes=False)
        for layer in SHOWN:
            self.switch(layer, True)

    @property
    def layers(self) -> tuple[str, ...]:
        """Layers that have something in them."""
        return tuple(layer for layer in LAYERS if self.has(layer))

    def switch(self, layer: str, on: bool) -> None:
        """Show or hide a layer."""
        if layer not in self._made:
            if not on:
                return
            self._made[layer] = self._make(layer)
            self.advance()
        for _, handle, _ in self._made[layer]:
            handle.visible = on

    def has(self, layer: str) -> bool:
        """Tell whether a layer has something in it."""
        return any(group.layer == layer for group in self._groups)

    def extend(self, scene: Scene) -> None:
        """Take a scene that has more things in it; what is shown already stays."""
        self._scene = scene
        there = {group.name for group in self._groups}
        self._groups += [group for group in _groups(scene, self._lowered, self._poses) if group.name not in there]

    def advance(self) -> None:
        """Put the actors' parts where they are now."""
        for group, handle, is_gltf in (made for layer in self._made.values() for made in layer if len(made[0].parts)):
            handle.batched_positions = self._poses.part_position[group.parts].astype(np.float32)
            handle.batched_wxyzs = _turned(self._poses.part_attitude[group.parts], is_gltf)

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _make(self, layer: str) -> list[tuple[_Group, Any, bool]]:
        """Nodes of a layer: batches, and one file of everything textured that stands in a few places only."""
        batches, few = [], []
        for group in (group for group in self._groups if group.layer == layer):
            mesh = tessellate(self._scene.shapes[group.items[0].shape], _SEGMENTS)
            if not len(mesh.faces):
                continue
            color = _HIT if layer == "collision" else self._plain(group.items[0], mesh)
            if color is None and not len(group.parts) and len(group.items) <= _FEW:
                few.append((group, mesh))
            else:
                batches.append(self._batch(group, mesh, color))
        return batches + ([self._file(layer, few)] if few else [])

    def _batch(self, group: _Group, mesh: Mesh, color: tuple[int, int, int] | None) -> tuple[_Group, Any, bool]:
        items, first = group.items, group.items[0]
        position = np.array([item.position for item in items], np.float32)
        attitude = frames.normalize(np.array([item.attitude for item in items], np.float64))
        scales = np.array([item.scale for item in items], np.float32)
        shared: dict[str, Any] = {"batched_scales": scales, "lod": "off", "cast_shadow": False}
        if color is None:
            still = replace(first, position=(0.0, 0.0, 0.0), attitude=IDENTITY, scale=1.0)
            data = self._glb([(still, self._dressed(first, mesh))])
            handle = self._api.add_batched_glb(group.name, data, _turned(attitude, True), position, **shared)
        else:
            flat = mesh.normals is None or not _round(mesh)
            opacity = _HIT_OPACITY if group.layer == "collision" else self._opacity(group.items[0])
            shared |= {"batched_colors": color, "flat_shading": flat, "side": "double", "opacity": opacity}
            handle = self._api.add_batched_meshes_simple(
                group.name, mesh.vertices, mesh.faces, _turned(attitude, False), position, **shared
            )
        self.nodes[group.name] = handle
        return group, handle, color is None

    def _file(self, layer: str, few: Sequence[tuple[_Group, Mesh]]) -> tuple[_Group, Any, bool]:
        """Things that share textures come in one file, in which each texture is once."""
        name = f"{ROOT}/{layer}/static/textured"
        things = [(item, self._dressed(item, mesh)) for group, mesh in few for item in group.items]
        wxyz = frames.to_wxyz(GLTF_TURN)
        handle = self._api.add_glb(name, self._glb(things), wxyz=wxyz, cast_shadow=False, receive_shadow=False)
        self.nodes[name] = handle
        return _Group(layer, name, tuple(item for item, _ in things), np.zeros(0, np.int64)), handle, True

    def _plain(self, item: Instance, mesh: Mesh) -> tuple[int, int, int] | None:
        """Return the one colour of an instance, linear as batches take it; None where it has several, a texture, or one per
        vertex.
        """
        kinds = [self._scene.materials.get(name, Material()) for name in item.materials] or [Material()]
        several = len(kinds) > 1 and mesh.face_material is not None
        if several or mesh.colors is not None or kinds[0].base_color_map in self._scene.textures:
            return None
        glow = np.clip(np.array(kinds[0].base_color[:3]) + np.array(kinds[0].emissive), 0.0, 1.0)
        red, green, blue = (int(v) for v in np.rint(255.0 * glow))
        return red, green, blue

    def _opacity(self, item: Instance) -> float | None:
        """Return how opaque an instance of one colour is drawn: glass and water let through what is behind; None: fully."""
        kinds = [self._scene.materials.get(name, Material()) for name in item.materials[:1]]
        return _GLASS_OPACITY if any(kind.transmission > 0.0 for kind in kinds) else None

    def _dressed(self, item: Instance, mesh: Mesh) -> Mesh:
        """Return the mesh with texture coordinates where its materials have textures by size."""
        kinds = [self._scene.materials.get(name, Material()) for name in item.materials] or [Material()]
        return wrapped(mesh, kinds, item.scale)

    def _glb(self, things: Sequence[tuple[Instance, Mesh]]) -> bytes:
        """Things as a file in memory: what viser takes with textures and colours per vertex."""
        shapes: dict[str, Shape] = {}
        stood = []
        for item, mesh in things:
            for part, materials in by_material(mesh, item.materials):
                name = str(len(shapes))
                shapes[name] = part
                stood.append(replace(item, shape=name, materials=materials, visible=True, covered=False))
        bare: dict[str, Any] = {
            "actors": (),
            "lights": (),
            "beacons": (),
            "skeletons": {},
            "clouds": {},
            "splats": (),
            "looks": (),
        }
        only = replace(self._scene, shapes=shapes, instances=tuple(stood), **bare)
        with tempfile.TemporaryDirectory() as folder:
            return write_glb(Path(folder) / "part.glb", only, _GLASS_OPACITY).read_bytes()


def _groups(scene: Scene, lowered: Scene, poses: ActorPoses) -> list[_Group]:
    """Everything that stands or moves, by layer, shape and materials."""
    under = {id(item) for item in lowered.instances}
    found: dict[tuple[str, bool, str, tuple[str, ...]], list[tuple[Instance, int]]] = {}

    def put(layer: str, item: Instance, part: int) -> None:
        # What can be hit has one colour, whatever its materials.
        materials = () if layer == "collision" else item.materials
        found.setdefault((layer, part >= 0, item.shape, materials), []).append((item, part))

    things = [*((item, -1) for item in scene.instances), *((item, row) for row, item in enumerate(poses.parts))]
    for item, part in things:
        if item.covered:
            put("covered", item, part)
        elif item.visible:
            put("meshes" if part >= 0 or id(item) in under else "roof", item, part)
        if item.collide:
            put("collision", item, part)
    return [_group(number, key, rows) for number, (key, rows) in enumerate(found.items())]


def _group(number: int, key: tuple[str, bool, str, tuple[str, ...]], rows: Sequence[tuple[Instance, int]]) -> _Group:
    layer, moving, shape, _ = key
    group = "actors" if moving else "static"
    name = f"{ROOT}/{layer}/{group}/{number}_{node_name(rows[0][0].name or shape)}"
    items = tuple(item for item, _ in rows)
    return _Group(layer, name, items, np.array([part for _, part in rows if part >= 0], np.int64))


def _turned(attitude: ArrayAny, is_gltf: bool) -> ArrayF32:
    """w, x, y, z as viser takes them, from the frame of the file where the shape is one."""
    turned = frames.multiply(attitude, GLTF_TURN) if is_gltf else attitude
    return np.asarray(frames.to_wxyz(turned), np.float32)


def _round(mesh: Mesh) -> bool:
    """Tell whether neighbouring faces share vertices, so that shading over them is smooth as it should be."""
    return len(mesh.vertices) < 2 * len(mesh.faces)
