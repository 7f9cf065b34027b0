"""A scene as nodes of the viewer: one batch of instances per shape and materials, actors as nodes that move."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core import frames
from airworthy.geometry import Mesh, Shape
from airworthy.scenes.formats import tessellate, write_glb
from airworthy.scenes.posing import posed
from airworthy.scenes.record import Instance, Material, Scene
from airworthy.viewer.poses import GLTF_TURN
from airworthy.viewer.wrapping import wrapped

__all__ = ["SceneNodes"]

ROOT = "/scene"
_SEGMENTS = 20
"""Sides of round solids; the eye needs fewer than an export."""


class SceneNodes:
    """The scene's nodes; `advance` moves its actors.

    Args:
        api: `viser.ViserServer.scene`.
        scene: What to show.
    """

    def __init__(self, api: Any, scene: Scene):
        self._scene = scene
        self._api = api
        self._static = len(scene.instances)
        self.nodes: dict[str, Any] = {}
        """Handle of each node, by its name."""
        api.add_frame(ROOT, show_axes=False)
        groups: dict[tuple[str, tuple[str, ...]], list[Instance]] = {}
        for item in scene.instances:
            if item.visible:
                groups.setdefault((item.shape, item.materials), []).append(item)
        for number, items in enumerate(groups.values()):
            self._add(f"{ROOT}/static/{number}_{word(items[0].name or items[0].shape)}", items)
        self._actors: list[tuple[int, str]] = []
        for number, item in enumerate(self._moving(0.0)):
            if item.visible:
                name = f"{ROOT}/actors/{number}_{word(item.name)}"
                self._actors.append((number, name))
                self._add(name, [replace(item, position=(0.0, 0.0, 0.0), attitude=(0.0, 0.0, 0.0, 1.0))])
        self.advance(0.0)

    def advance(self, time: float) -> None:
        """Put the actors where they are at a time [s]."""
        if not self._actors:
            return
        items = self._moving(time)
        for number, name in self._actors:
            self.nodes[name].position = np.array(items[number].position)
            self.nodes[name].wxyz = frames.to_wxyz(items[number].attitude)

    def _moving(self, time: float) -> Sequence[Instance]:
        """Parts of actors; people as the capsules that can be hit, since a skin would be sent anew at every time."""
        if not self._scene.actors:
            return ()
        return posed(self._scene, time, skins=False).instances[self._static :]

    def _add(self, name: str, items: list[Instance]) -> None:
        first = items[0]
        position = np.array([item.position for item in items], np.float32)
        attitude = frames.normalize(np.array([item.attitude for item in items], np.float64))
        scales = np.array([item.scale for item in items], np.float32)
        mesh = tessellate(self._scene.shapes[first.shape], _SEGMENTS)
        if not len(mesh.faces):
            return
        color = self._plain(first, mesh)
        if color is None:
            turned = frames.to_wxyz(frames.multiply(attitude, GLTF_TURN)).astype(np.float32)
            handle = self._api.add_batched_glb(
                name, self._glb(first, mesh), turned, position, batched_scales=scales, lod="off", cast_shadow=False
            )
        else:
            handle = self._api.add_batched_meshes_simple(
                name,
                mesh.vertices,
                mesh.faces,
                frames.to_wxyz(attitude).astype(np.float32),
                position,
                batched_scales=scales,
                batched_colors=color,
                lod="off",
                flat_shading=mesh.normals is None or not _round(mesh),
                side="double",
                cast_shadow=False,
            )
        self.nodes[name] = handle

    def _plain(self, item: Instance, mesh: Mesh) -> tuple[int, int, int] | None:
        """The one colour of an instance, linear as batches take it; None where it has several, a texture, or one per vertex."""
        kinds = [self._scene.materials.get(name, Material()) for name in item.materials] or [Material()]
        several = len(kinds) > 1 and mesh.face_material is not None
        if several or mesh.colors is not None or kinds[0].base_color_map in self._scene.textures:
            return None
        glow = np.clip(np.array(kinds[0].base_color[:3]) + np.array(kinds[0].emissive), 0.0, 1.0)
        red, green, blue = (int(v) for v in np.rint(255.0 * glow))
        return red, green, blue

    def _glb(self, item: Instance, mesh: Mesh) -> bytes:
        """One instance at the origin as a file in memory: what viser takes with textures and colours per vertex."""
        still = replace(item, position=(0.0, 0.0, 0.0), attitude=(0.0, 0.0, 0.0, 1.0), scale=1.0)
        kinds = [self._scene.materials.get(name, Material()) for name in item.materials] or [Material()]
        shapes: dict[str, Shape] = {item.shape: wrapped(mesh, kinds, item.scale)}
        only = replace(
            self._scene, shapes=shapes, instances=(still,), actors=(), lights=(), beacons=(), skeletons={}, splat=None
        )
        with tempfile.TemporaryDirectory() as folder:
            return write_glb(Path(folder) / "part.glb", only).read_bytes()


def _round(mesh: Mesh) -> bool:
    """Whether neighbouring faces share vertices, so that shading over them is smooth as it should be."""
    return len(mesh.vertices) < 2 * len(mesh.faces)


def word(text: str) -> str:
    """A name as a part of a node's path."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", text)[:48] or "part"
