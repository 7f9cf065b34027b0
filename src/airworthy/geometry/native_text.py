"""Native texts of this room, for every kernel that reads a `GeometryBatch`."""

from __future__ import annotations

from importlib.resources import files
from itertools import chain

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
    "dynamic_nodes",
    "dynamic_instances",
    "batch_numbers",
)
"""Arrays of a batch, in the order of `GeometryBatch.arguments()`: parameters of a native function that includes `batch.h`."""
BATCH_INTEGERS = frozenset({"mesh_faces", "layout_rows", "env_layout", "batch_numbers"})
"""Which of them are `wp.array[wp.int32]`; the others are `wp.array[wp.float32]`, integers lying in them by their bits."""

BATCH_SIGNATURE = "".join(f"{name}: {'int32' if name in BATCH_INTEGERS else 'float32'}[]\n" for name in BATCH_ARGUMENTS)
"""The same as the first arguments of a `native_kernel`."""


def native_source(*names: str) -> str:
    """Return `prelude.h`, `batch.h`, then the named headers of `geometry/native`, joined.

    Inside a native function write `const Batch batch = BATCH_OF_ARGUMENTS;` after it. The name `rays.h` stands for all that
    nearest-hit and any-hit rays need: `lanes.h`, `solids.h`, and `traverse.h` as `RayCast` (origins of their own) and
    `CameraCast` (one origin for all rays of a packet).
    """
    wanted = chain.from_iterable(_RAYS if name == "rays.h" else (name,) for name in names if name != "batch.h")
    return "\n".join([shared_source("prelude.h"), _text("batch.h"), *(_text(name) for name in wanted)])


_RAYS = ("lanes.h", "solids.h", "RayCast", "CameraCast")
_ORIGINS = {"RayCast": "F", "CameraCast": "float"}


def _text(name: str) -> str:
    folder = files("airworthy.geometry").joinpath("native")
    if name not in _ORIGINS:
        return folder.joinpath(name).read_text()
    text = folder.joinpath("traverse.h").read_text()
    return f"#define CAST_NAME {name}\n#define ORIGIN {_ORIGINS[name]}\n{text}\n#undef CAST_NAME\n#undef ORIGIN"
