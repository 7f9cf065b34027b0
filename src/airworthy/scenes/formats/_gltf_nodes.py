"""The tree of nodes of a glTF file, in our frame."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from airworthy.core import frames
from airworthy.scenes.formats._fields import Fields
from airworthy.scenes.formats._gltf_file import GltfFile

Doubles = NDArray[np.float64]
TURN = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, -1.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
"""From y up to z up. A transformation T of the file is TURN T TURN^-1 in our frame."""

_NODE_BYTES = 1500
_LARGEST = 1e12  # squares and products of two such matrices are still numbers


@dataclass
class Node:
    """A node with its place in our frame."""

    index: int
    fields: Fields
    parent: int
    position: Doubles
    attitude: Doubles
    scale: Doubles
    matrix: Doubles
    """(4, 4) to the world."""
    order: int
    """Number in the order in which nodes are met, parents first."""
    children: list[int] = field(default_factory=list)


def turn_translation(values: NDArray) -> NDArray:
    """(..., 3) translations turned to z up."""
    return np.stack([values[..., 0], -values[..., 2], values[..., 1]], -1)


def turn_rotation(values: NDArray) -> NDArray:
    """(..., 4) rotations turned to z up: their axis turns like a vector."""
    return np.stack([values[..., 0], -values[..., 2], values[..., 1], values[..., 3]], -1)


def turn_scale(values: NDArray) -> NDArray:
    """(..., 3) scales turned to z up."""
    return np.stack([values[..., 0], values[..., 2], values[..., 1]], -1)


def read_nodes(file: GltfFile) -> dict[int, Node]:
    """All nodes of the scene that the file shows, parents first; refuses a node with two parents, which includes cycles."""
    source = file.source
    count = file.count("nodes")
    nodes: dict[int, Node] = {}
    file.source.take(_NODE_BYTES * count, "its nodes")
    waiting = [(root, -1, 0) for root in reversed(_roots(file, count))]
    while waiting:
        index, parent, depth = waiting.pop()
        if index in nodes:
            source.refuse(f"node {index} has more than one parent, or is its own ancestor")
        if depth > source.limits.node_depth:
            source.refuse(f"its nodes are nested deeper than {source.limits.node_depth} levels")
        node = _node(file, index, parent, nodes)
        nodes[index] = node
        node.children = node.fields.indices("children", count)
        waiting += [(child, index, depth + 1) for child in reversed(node.children)]
    return nodes


def _roots(file: GltfFile, count: int) -> list[int]:
    if file.count("scenes"):
        return file.entry("scenes", file.root.integer("scene", 0)).indices("nodes", count)
    children = {child for index in range(count) for child in file.entry("nodes", index).indices("children", count)}
    return [index for index in range(count) if index not in children]


def _node(file: GltfFile, index: int, parent: int, nodes: dict[int, Node]) -> Node:
    fields = file.entry("nodes", index)
    if "matrix" in fields:
        local = np.array(fields.numbers("matrix", 16)).reshape(4, 4).T
        _check(file, local, index)
        local = TURN @ local @ TURN.T
        position, attitude, scale = decompose(local)
    else:
        position = turn_translation(np.array(fields.numbers("translation", 3, (0.0, 0.0, 0.0))))
        attitude = turn_rotation(np.array(fields.numbers("rotation", 4, (0.0, 0.0, 0.0, 1.0))))
        scale = turn_scale(np.array(fields.numbers("scale", 3, (1.0, 1.0, 1.0))))
        largest = np.abs(attitude).max()
        if largest > 0:
            attitude = attitude / largest
            attitude = attitude / np.linalg.norm(attitude)
        else:
            file.source.warn("rotations of length zero taken for none")
            attitude = np.array([0.0, 0.0, 0.0, 1.0])
        local = compose(position, attitude, scale)
    _check(file, local, index)
    matrix = local if parent < 0 else nodes[parent].matrix @ local
    _check(file, matrix, index)
    return Node(index, fields, parent, position, attitude, scale, matrix, len(nodes))


def _check(file: GltfFile, matrix: Doubles, index: int) -> None:
    if not (np.abs(matrix) <= _LARGEST).all():
        file.source.refuse(f"the transformation of node {index} holds numbers above {_LARGEST:g}")


def compose(position: Doubles, attitude: Doubles, scale: Doubles) -> Doubles:
    """(4, 4) of translation, rotation and scale."""
    matrix = np.eye(4)
    matrix[:3, :3] = frames.to_matrix(attitude) * scale
    matrix[:3, 3] = position
    return matrix


def decompose(matrix: Doubles) -> tuple[Doubles, Doubles, Doubles]:
    """Translation, rotation (unit x, y, z, w) and scale of a matrix; shear is lost, a mirror becomes a negative x scale."""
    linear = matrix[:3, :3]
    scale = np.linalg.norm(linear, axis=0)
    if np.linalg.det(linear) < 0:
        scale[0] = -scale[0]
    columns = linear / np.where(scale == 0, 1.0, scale)
    left, _, right = np.linalg.svd(columns)
    rotation = left @ np.diag([1.0, 1.0, np.sign(np.linalg.det(left @ right)) or 1.0]) @ right
    return matrix[:3, 3].copy(), frames.from_matrix(rotation), scale
