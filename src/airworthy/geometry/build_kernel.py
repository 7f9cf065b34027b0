"""The kernel that builds trees: of a mesh's triangles, or of the instances of layers, one task per tree."""

# No postponed annotations here: Warp reads them.

from functools import cache
from typing import Any

from airworthy.core.native_kernel import MODULE_OPTIONS, quiet_warp
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


@cache
def build_kernel() -> Any:
    """Return the Warp kernel.

    Task rows are (first item, items, first node, nodes made). Mode 0: a mesh; 1: a layer of instances;
    2: such a layer in haste.
    """
    wp = quiet_warp()

    @wp.func_native(native_source("build.h", "place.h") + _BODY)
    def native_build(
        shape_rows: wp.array[wp.float32],
        instances: wp.array[wp.float32],
        poses: wp.array[wp.float32],
        tasks: wp.array[wp.int32],
        nodes: wp.array[wp.float32],
        boxes: wp.array[wp.float32],
        order: wp.array[wp.int32],
        leaf_size: int,
        mode: int,
        task: int,
    ): ...

    def airworthy_build(
        shape_rows: wp.array[wp.float32],
        instances: wp.array[wp.float32],
        poses: wp.array[wp.float32],
        tasks: wp.array[wp.int32],
        nodes: wp.array[wp.float32],
        boxes: wp.array[wp.float32],
        order: wp.array[wp.int32],
        leaf_size: int,
        mode: int,
        first: int,
    ):
        native_build(shape_rows, instances, poses, tasks, nodes, boxes, order, leaf_size, mode, first + wp.tid())

    return wp.kernel(airworthy_build, module="unique", module_options=MODULE_OPTIONS)
