"""Native texts of this room, for every kernel that reads a `GeometryBatch`."""

from __future__ import annotations

from importlib.resources import files

from airworthy.core.native_kernel import shared_source

BATCH_ARGUMENTS = (
    "shape_rows",
    "mesh_nodes",
    "mesh_triangles",
    "mesh_vertices",
    "mesh_faces",
    "layout_rows",
    "layout_nodes",
    "layout_instances",
    "env_layout",
    "mover_nodes",
    "mover_instances",
    "batch_numbers",
)
"""Arrays of a batch, in the order of `GeometryBatch.arguments()`: parameters of a native function that includes `batch.h`."""
BATCH_INTEGERS = frozenset({"mesh_faces", "layout_rows", "env_layout", "batch_numbers"})
"""Which of them are `wp.array[wp.int32]`; the others are `wp.array[wp.float32]`, integers lying in them by their bits."""


def native_source(*names: str) -> str:
    """`prelude.h`, `batch.h`, then the named headers of `geometry/native`, joined.

    Inside a native function write `const Batch batch = BATCH_OF_ARGUMENTS;` after it.
    """
    folder = files("airworthy.geometry").joinpath("native")
    texts = [folder.joinpath(name).read_text() for name in ("batch.h", *(n for n in names if n != "batch.h"))]
    return "\n".join([shared_source("prelude.h"), *texts])
