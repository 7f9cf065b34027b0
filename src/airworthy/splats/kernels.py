"""Builds the kernels of splats and of their derivatives: 16 at a time on a CPU, one per thread on a GPU, from one text."""

from __future__ import annotations

from functools import cache
from typing import Any

from airworthy.core.native_kernel import native_kernel
from airworthy.splats.native_text import native_source

# ---- Builds the kernel that lists the Gaussians of each tile, front to back -----------------------------------------------

_ARRANGE_ARGUMENTS = """
    cameras: float32[]  # CameraRow
    order: int32[]  # of tasks
    records: float32[]  # Record (camera, chunk_stride, CHUNK)
    tags: int32[]  # (camera, chunk_stride, 4, CHUNK)
    counts: int32[]  # CPU: seen and rows (camera, chunk_stride, 2); GPU: running sum of tiles
    scratch: int32[]  # CPU: work, Entry (camera, band, 2, entry_capacity)
    heads: int32[]  # CPU: work (camera, rows, columns)
    keys: int64[]  # GPU: camera and tile, depth
    # output
    tiles: int32[]  # begin and end of each tile's list (camera, rows, columns, 2)
    lists: int32[]  # places of records; CPU: (camera, band, capacity)
    needed: int32[]  # CPU: length of the lists of each band
    chunk_stride: int
    columns: int
    rows: int
    band_rows: int
    entry_capacity: int
    capacity: int
    stage: int
"""


@cache
def arrange_kernel(prefix: str = "") -> Any:
    """Return the Warp kernel; `prefix` is put before its native text (`#define SCALAR_PATH` makes a CPU run the form of a
    GPU).
    """
    return native_kernel("splats_arrange", prefix + native_source("span.h", "arrange.h", "arrange_task.h"), _ARRANGE_ARGUMENTS)


# ---- Builds the kernel that composites pixels: 16 at a time on a CPU, one per thread on a GPU, from one text --------------

_RASTER_ARGUMENTS = """
    cameras: float32[]  # CameraRow
    order: int32[]  # of tasks
    records: float32[]  # Record (camera, chunk_stride, CHUNK)
    planes: float32[]  # Plane (camera, chunk_stride, CHUNK), where they are asked for
    tiles: int32[]  # begin and end of each tile's list (camera, rows, columns, 2)
    lists: int32[]  # places of records; CPU: (camera, band, capacity)
    limits: float32[]  # depth beyond which nothing is blended (camera, height, width)
    # output
    rgb: float32[]  # (camera, height, width, 3)
    depth: float32[]  # (camera, height, width)
    alpha: float32[]  # (camera, height, width)
    normal: float32[]  # (camera, height, width, 3)
    chunk_stride: int
    width: int
    height: int
    band_rows: int
    capacity: int
    flags: int
"""


@cache
def raster_kernel(prefix: str = "") -> Any:
    """Return the Warp kernel; `prefix` is put before its native text (`#define SCALAR_PATH` makes a CPU run the form of a
    GPU).
    """
    return native_kernel("splats_raster", prefix + native_source("raster.h", "raster_task.h"), _RASTER_ARGUMENTS)


# ---------------------------------------------------------------------------------------------------------------------------
# Builds the kernel that carries derivatives of Gaussians in images back to those in space, on a CPU and on a GPU

_PROJECT_BACK_ARGUMENTS = """
    geometry: float32[]  # (block, GEOMETRY_ROWS, 16)
    harmonics: float32[]  # (block, k, 3, 16)
    chunks: float32[]  # ChunkRow
    cameras: float32[]  # CameraRow
    order: int32[]  # of tasks; on a CPU
    tags: int32[]  # (camera, chunk_stride, 4, CHUNK)
    counts: int32[]  # seen and rows (camera, chunk_stride, 2); or ends of the records' places in the list
    record_slopes: float32[]  # of each record, 16 numbers
    slopes: float32[]  # output, added to: (block, SLOPE_ROWS, 16)
    colour_slopes: float32[]  # output, added to: as harmonics
    pose_slopes: float32[]
    touched: bool[]  # output: chunks that were seen
    chunk_stride: int
    image_count: int
    width: int
    height: int
    flags: int
    packed: int  # whether what was seen of a chunk lies at its beginning
    near: float
    dilation: float
"""


@cache
def project_back_kernel() -> Any:
    """Return the Warp kernel."""
    text = native_source("project.h", "group.h", "lens_back.h", "project_back.h", "project_back_task.h")
    return native_kernel("splats_project_back", text, _PROJECT_BACK_ARGUMENTS)


# ---- Builds the kernel that carries derivatives of pixels back to the Gaussians in an image, on a CPU and on a GPU --------

_RASTER_BACK_ARGUMENTS = """
    cameras: float32[]  # CameraRow
    order: int32[]  # of tasks; on a CPU
    records: float32[]  # Record (camera, chunk_stride, CHUNK)
    planes: float32[]  # Plane (camera, chunk_stride, CHUNK), where they are asked for
    counts: int32[]  # seen and rows (camera, chunk_stride, 2); or ends of the records' places in the list
    tiles: int32[]  # begin and end of each tile's list (camera, rows, columns, 2)
    lists: int32[]  # places of records (camera, band, capacity); or all in one
    owners: int32[]  # output of the first stage: of each place in the one list, number of the record
    places: int32[]  # likewise the place; later in the order of the owners
    limits: float32[]  # depth beyond which nothing was blended (camera, height, width)
    rendered_rgb: float32[]  # images (camera, height, width, 3)
    rendered_depth: float32[]  # (camera, height, width)
    rendered_alpha: float32[]
    rendered_normal: float32[]
    rgb: float32[]  # derivatives of the loss, as the images
    depth: float32[]
    alpha: float32[]
    normal: float32[]
    used: int32[]  # work: how much of each tile's list was walked (camera, rows, columns)
    partials: float32[]  # work: of each place in the lists, 16 numbers
    record_slopes: float32[]  # output: of each record, 16 numbers
    chunk_stride: int
    width: int
    height: int
    band_rows: int  # of tiles; 0: one list for all
    capacity: int
    flags: int
    stage: int  # BACK_TILES, BACK_CAMERAS or BACK_RECORDS
"""


@cache
def raster_back_kernel() -> Any:
    """Return the Warp kernel."""
    text = native_source("raster.h", "group.h", "raster_back.h", "raster_back_task.h")
    return native_kernel("splats_raster_back", text, _RASTER_BACK_ARGUMENTS)


# ---------------------------------------------------------------------------------------------------------------------------

_PROJECT_ARGUMENTS = """
    geometry: float32[]  # (block, GEOMETRY_ROWS, 16)
    harmonics: float32[]  # (block, k, 3, 16)
    chunks: float32[]  # ChunkRow
    cameras: float32[]  # CameraRow
    order: int32[]  # of tasks
    # output
    records: float32[]  # Record (camera, chunk_stride, CHUNK)
    planes: float32[]  # Plane (camera, chunk_stride, CHUNK), where they are asked for
    tags: int32[]  # (camera, chunk_stride, 4, CHUNK)
    counts: int32[]  # CPU: seen and rows (camera, chunk_stride, 2); GPU: tiles of each Gaussian
    chunk_stride: int
    width: int
    height: int
    flags: int
    near: float
    dilation: float
"""


@cache
def project_kernel(prefix: str = "") -> Any:
    """Return the Warp kernel; `prefix` is put before its native text (`#define SCALAR_PATH` makes a CPU run the form of a
    GPU).
    """
    return native_kernel("splats_project", prefix + native_source("project.h", "span.h", "project_task.h"), _PROJECT_ARGUMENTS)
