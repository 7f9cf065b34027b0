"""The kernel that builds trees: of a mesh's triangles, or of the instances of layers, one task per tree."""

from __future__ import annotations

from functools import cache
from typing import Any

from airworthy.core.native_kernel import native_kernel
from airworthy.geometry.native_text import native_source

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
