"""Skins and animations of glTF files."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from airworthy.scenes.formats._fields import Fields
from airworthy.scenes.formats._gltf_file import GltfFile
from airworthy.scenes.formats._gltf_nodes import TURN, Node, turn_rotation, turn_scale, turn_translation
from airworthy.scenes.formats._source import clean_name, unique_name
from airworthy.scenes.formats.model import Clip, Skeleton, Track

_INTERPOLATIONS = {"LINEAR": "linear", "STEP": "step", "CUBICSPLINE": "cubic"}
_TURNS: dict[str, tuple[int, Callable[[NDArray], NDArray]]] = {
    "translation": (3, turn_translation),
    "rotation": (4, turn_rotation),
    "scale": (3, turn_scale),
}
_LATEST = 1e6  # [s]


def read_skin(file: GltfFile, index: int, nodes: dict[int, Node]) -> tuple[Skeleton, NDArray[np.int32], list[int]]:
    """A skin as a skeleton without meshes and clips.

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
    place = {node: number for number, node in enumerate(order)}
    inverse = np.tile(np.eye(4), (len(order), 1, 1))
    if "inverseBindMatrices" in fields:
        matrices = file.accessor(fields.integer("inverseBindMatrices"), (16,)).astype(np.float64)
        if len(matrices) < len(joints) or not (np.abs(matrices) <= 1e12).all():
            source.refuse(f"skin {index} has {len(joints)} joints and not as many finite inverse bind matrices")
        for number, joint in enumerate(joints):
            inverse[place[joint]] = TURN @ matrices[number].reshape(4, 4).T @ TURN.T
    skeleton = Skeleton(
        names=_names(order, nodes),
        parents=np.array([place.get(nodes[node].parent, -1) for node in order], np.int32),
        position=np.array([nodes[node].position for node in order], np.float32),
        attitude=np.array([nodes[node].attitude for node in order], np.float32),
        scale=np.array([nodes[node].scale for node in order], np.float32),
        inverse_bind=inverse.astype(np.float32),
    )
    return skeleton, np.array([place[joint] for joint in joints], np.int32), order


def _with_ancestors(joints: list[int], nodes: dict[int, Node]) -> list[int]:
    """Joints and all nodes above them, parents first."""
    needed: set[int] = set()
    for joint in joints:
        while joint >= 0 and joint not in needed:
            needed.add(joint)
            joint = nodes[joint].parent
    return sorted(needed, key=lambda index: nodes[index].order)


def _names(order: list[int], nodes: dict[int, Node]) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for node in order:
        names[unique_name(names, clean_name(nodes[node].fields.text("name", ""), f"joint_{node}"))] = None
    return tuple(names)


def at_rest(
    skeleton: Skeleton, nodes: dict[int, Node], order: list[int], bound: NDArray[np.int32]
) -> NDArray[np.float64] | None:
    """(4, 4) by which the bound joints move a vertex in the rest pose, if all do so alike; else None."""
    matrices = np.array([nodes[order[joint]].matrix @ skeleton.inverse_bind[joint] for joint in bound])
    size = max(float(np.abs(matrices[0, :3, :3]).max()), 1e-12)
    offset = np.abs(matrices - matrices[0])
    reach = 1e-3 * max(1.0, float(np.abs(matrices[0, :3, 3]).max()))
    alike = offset[:, :3, :3].max() <= 1e-3 * size and offset[:, :3, 3].max() <= reach
    return matrices[0] if alike and abs(np.linalg.det(matrices[0, :3, :3])) > 1e-18 else None


class Animations:
    """The animations of a file, sorted by the node that they move."""

    def __init__(self, file: GltfFile) -> None:
        self._file = file
        self._names: dict[str, None] = {}
        self._channels: dict[int, list[tuple[str, str, Fields]]] = {}  # of a node: clip, path, sampler
        for index in range(file.count("animations")):
            self._sort(file.entry("animations", index), index)

    def _sort(self, fields: Fields, index: int) -> None:
        samplers = fields.items("samplers")
        name = unique_name(self._names, clean_name(fields.text("name", ""), f"animation_{index}"))
        self._names[name] = None
        for number, value in enumerate(fields.items("channels")):
            channel = Fields(fields.source, value, f"channel {number} of {fields.where}")
            target = channel.object("target")
            path = target.text("path")
            which = channel.integer("sampler")
            if which >= len(samplers):
                fields.source.refuse(f"{channel.where} has no sampler")
            sampler = Fields(fields.source, samplers[which], f"sampler {which} of {fields.where}")
            if path in _TURNS and "node" in target:
                self._channels.setdefault(target.integer("node"), []).append((name, path, sampler))
            else:
                fields.source.warn("animations of other things than position, rotation and scale left out")

    def clips(self, order: list[int]) -> dict[str, Clip]:
        """Clips of a skeleton whose joints are these nodes."""
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


def _track(file: GltfFile, sampler: Fields, path: str) -> Track:
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
