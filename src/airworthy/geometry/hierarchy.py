"""Trees over the triangles of meshes. A mesh is built once, whatever number of batches uses it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from airworthy.core.arrays import ArrayAny, ArrayBool, ArrayF32, NDArray
from airworthy.core.native_kernel import native_kernel, on_cache_line, quiet_launch, quiet_warp
from airworthy.geometry.native_text import native_source
from airworthy.geometry.placement import Box, Capsule, Cylinder, Mesh, Shape, Sphere, bounds

# ---- The kernel that builds trees: of a mesh's triangles, or of the instances of layers, one task per tree ----------------

_BODY = """
const int* row = tasks.data + 4 * task;
Builder::Bounds* mine = (Builder::Bounds*)boxes.data + row[0];
if (mode == 0) {
  TreeNode* tree = (TreeNode*)nodes.data + row[2];
  tasks.data[4 * task + 3] = Builder::build(mine, order.data + row[0], row[1], tree, row[2], leaf_size, row[0], false);
} else {
  Placer::layer((const ShapeRow*)shape_rows.data, (InstanceRow*)instances.data + row[0], poses.data + 11 * (long long)row[0],
                row[1], (TreeNode*)nodes.data + row[2], row[2], mine, order.data + row[0], mode == 2);
}
"""


_ARGUMENTS = """
    shape_rows: float32[]
    instances: float32[]
    poses: float32[]
    tasks: int32[]
    nodes: float32[]
    boxes: float32[]
    order: int32[]
    leaf_size: int
    mode: int
"""


@cache
def build_kernel() -> Any:
    """Return the Warp kernel.

    Task rows are (first item, items, first node, nodes made). Mode 0: a mesh; 1: a layer of instances;
    2: such a layer in haste.
    """
    return native_kernel("build", native_source("build.h", "place.h") + _BODY, _ARGUMENTS)


# ---------------------------------------------------------------------------------------------------------------------------

LEAF_SIZE = 4
"""Most triangles of a leaf."""

NODE = np.dtype([("lower", "<f4", 3), ("first", "<i4"), ("upper", "<f4", 3), ("count", "<i4")])
TRIANGLE = np.dtype(
    [("a", "<f4", 3), ("face", "<i4"), ("b", "<f4", 3), ("spare", "<f4"), ("c", "<f4", 3), ("spare_too", "<f4")]
)
SHAPE = np.dtype(
    [("kind", "<i4"), ("root", "<i4"), ("size", "<f4", 3), ("extent", "<f4"), ("lower", "<f4", 3), ("upper", "<f4", 3)]
    + [(name, "<i4") for name in ("first_face", "face_count", "first_vertex", "vertex_count")]
)
INSTANCE = np.dtype(
    [("rotation", "<f4", 9), ("scale", "<f4"), ("inverse_scale", "<f4"), ("position", "<f4", 3), ("position_rest", "<f4", 3)]
    + [(name, "<i4") for name in ("shape", "instance_id", "semantic_id", "material", "flags", "group")]
    + [("footprint", "<u4")]
)
LAYOUT = np.dtype([(name, "<i4") for name in ("root", "first", "count", "capacity")])
"""Rows of `native/batch.h`, field by field."""

KINDS: dict[type, int] = {Box: 0, Sphere: 1, Cylinder: 2, Capsule: 3, Mesh: 4}


@dataclass(frozen=True)
class MeshTree:
    """A tree and its triangles in leaf order; numbers count from 0."""

    nodes: NDArray[np.void]
    triangles: NDArray[np.void]


_TREES: WeakKeyDictionary[Mesh, MeshTree] = WeakKeyDictionary()


def mesh_tree(mesh: Mesh) -> MeshTree:
    """Return the tree of a mesh, from memory where it was built before."""
    if mesh not in _TREES:
        _TREES[mesh] = _build(mesh)
    return _TREES[mesh]


def _build(mesh: Mesh) -> MeshTree:
    corners = np.asarray(mesh.vertices, np.float32)[mesh.faces]
    # Faces keep their numbers from before: `triangles["face"]` says which they were.
    kept = np.flatnonzero(~_degenerate(corners))
    corners, count = corners[kept], len(kept)
    boxes = np.concatenate([corners.min(1), corners.max(1)], 1) if count else np.zeros((1, 6), np.float32)
    # A binary tree of n leaves has 2 n - 1 nodes; one leaf may hold several triangles, so that this is the most.
    nodes = np.zeros(max(2 * count - 1, 1), NODE)
    order = np.arange(max(count, 1), dtype=np.int32)
    tasks = np.array([0, count, 0, 0], np.int32)
    wp = quiet_warp()
    none = wp.zeros(1, dtype=wp.float32, device="cpu")
    run_build([none, none, none, as_warp(tasks), as_warp(nodes), as_warp(boxes), as_warp(order), LEAF_SIZE, 0], 1, "cpu")
    triangles = np.zeros(count, TRIANGLE)
    leaf_order = order[:count]
    triangles["a"], triangles["b"], triangles["c"] = corners[leaf_order].transpose(1, 0, 2)
    triangles["face"] = kept[leaf_order]
    return MeshTree(nodes[: tasks[3]].copy(), triangles)


def _degenerate(corners: ArrayF32) -> ArrayBool:
    """Return which triangles (n, 3, 3) are points or lines: they have no inside, and only rounding could hit them."""
    # In doubles: the squared edges of a small triangle far away cancel in single precision.
    wide = corners.astype(np.float64)
    a, b, c = wide[:, 1] - wide[:, 0], wide[:, 2] - wide[:, 1], wide[:, 0] - wide[:, 2]
    longest = np.max([np.sum(e * e, axis=1) for e in (a, b, c)], axis=0) if len(corners) else np.zeros(0)
    area = np.sqrt(np.sum(np.cross(a, b) ** 2, axis=1))
    return area <= 1e-12 * longest


def run_build(inputs: list[Any], count: int, device: str) -> None:
    """Launch the builder over `count` tasks.

    Args:
        inputs: Arguments of the kernel before the task number.
        count: Tasks.
        device: Warp's name of the device.
    """
    quiet_launch(build_kernel(), count, [*inputs, 0], device)


def as_warp(array: NDArray[np.generic]) -> Any:
    """Return a NumPy array as a flat Warp array on the CPU, sharing its memory; of rows, their 32-bit words as floats."""
    wp = quiet_warp()
    flat = array.reshape(-1)
    if flat.dtype.names:
        # Kernels read rows by pointers of their own, so that the type given here does not matter.
        flat = flat.view(np.float32)
    return wp.array(flat, dtype=wp.int32 if flat.dtype == np.int32 else wp.float32, device="cpu", copy=False)


@dataclass(frozen=True)
class ShapeArrays:
    """All shapes of a batch as rows; a shape that occurs twice is stored once."""

    shapes: NDArray[np.void]
    nodes: NDArray[np.void]
    triangles: NDArray[np.void]
    vertices: ArrayF32
    faces: NDArray[np.int32]


def shape_arrays(shapes: Sequence[Shape]) -> ShapeArrays:
    """Return rows of every shape, and of the meshes their trees, triangles, vertices and faces one after the other."""
    rows = np.zeros(max(len(shapes), 1), SHAPE)
    rows["kind"][len(shapes) :] = KINDS[Sphere]
    nodes, triangles, vertices, faces = [], [], [], []
    # Roots have odd places, so that the pair of a node's children, which are looked at together, lies on one cache line.
    starts = {"node": 1, "triangle": 0, "face": 0, "vertex": 0}
    pad = np.zeros(1, NODE)
    known: dict[int, int] = {}
    for index, shape in enumerate(shapes):
        # By identity, as meshes are hashed: to compare arrays would cost more than to store them twice.
        if id(shape) in known:
            rows[index] = rows[known[id(shape)]]
            continue
        known[id(shape)] = index
        _fill(rows[index], shape)
        if not isinstance(shape, Mesh):
            continue
        tree = mesh_tree(shape)
        moved, tris = tree.nodes.copy(), tree.triangles
        # A leaf's first is a triangle, an inner node's a node; both count from where this mesh's part begins.
        moved["first"] += np.where(moved["count"] > 0, starts["triangle"], starts["node"]).astype(np.int32)
        rows[index]["root"], rows[index]["first_face"] = starts["node"], starts["face"]
        rows[index]["first_vertex"] = starts["vertex"]
        rows[index]["face_count"], rows[index]["vertex_count"] = len(shape.faces), len(shape.vertices)
        nodes += [pad, moved]
        triangles.append(tris)
        vertices.append(np.asarray(shape.vertices, np.float32))
        faces.append(np.asarray(shape.faces, np.int32))
        starts["node"] += len(moved) + 1
        starts["triangle"] += len(tris)
        starts["face"] += len(shape.faces)
        starts["vertex"] += len(shape.vertices)
    return ShapeArrays(
        rows,
        on_cache_line(_joined(nodes, NODE)),
        _joined(triangles, TRIANGLE),
        _joined(vertices, np.float32, 3),
        _joined(faces, np.int32, 3),
    )


def _joined(parts: Sequence[ArrayAny], kind: Any, width: int = 0) -> ArrayAny:
    """Return the parts in one array, never empty: Warp gives empty arrays no memory."""
    filled = [part for part in parts if len(part)]
    return np.concatenate(filled) if filled else np.zeros((1, width) if width else 1, kind)


def _fill(row: np.void, shape: Shape) -> None:
    lower, upper = bounds(shape)
    row["kind"] = KINDS[type(shape)]
    row["lower"], row["upper"] = lower, upper
    row["extent"] = np.abs(np.concatenate([lower, upper])).max()
    if isinstance(shape, Box):
        row["size"] = shape.half_size
    elif isinstance(shape, Sphere):
        row["size"] = (shape.radius, 0.0, 0.0)
    elif isinstance(shape, Cylinder | Capsule):
        row["size"] = (shape.radius, shape.half_length, 0.0)
