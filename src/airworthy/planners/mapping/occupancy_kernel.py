"""Builds the kernel that puts images into maps: one task takes flights through all stages, or one stage of a part of one."""

# No postponed annotations here: Warp reads them.

from functools import cache
from importlib.resources import files
from typing import Any

from airworthy.core.native_kernel import CPU_LANES, MODULE_OPTIONS, quiet_warp, shared_source
from airworthy.planners.mapping.boxes import SHELL
from airworthy.planners.mapping.lookup import FAR

_TEXTS = ("lanes.h", "frame.h", "slide.h", "trace.h", "apply.h", "inflate.h", "field.h", "cloud.h", "update.cpp")


def update_source(prefix: str = "") -> str:
    """Complete native source of the update; `#define SCALAR_PATH` as prefix gives a CPU the form of a GPU."""
    folder = files("airworthy.planners.mapping").joinpath("native")
    root = next(d for d in range(FAR) if d * d > FAR)
    names = f"enum {{ CPU_LANES = {CPU_LANES}, SHELL = {SHELL}, FAR = {FAR}, ROOT = {root} }};"
    return "\n".join([prefix, shared_source("prelude.h"), names, *(folder.joinpath(name).read_text() for name in _TEXTS)])


@cache
def update_kernel(prefix: str = "") -> Any:
    """Return the update as a Warp kernel; compiled at first launch, then cached on disk."""
    wp = quiet_warp()

    @wp.func_native(update_source(prefix))
    def native_update(
        words: wp.array[wp.int32],
        sizes: wp.array[wp.int64],
        numbers: wp.array[wp.float64],
        frame_numbers: wp.array[wp.float64],
        frame_words: wp.array[wp.int32],
        frame_base: wp.array[wp.int64],
        rays: wp.array[wp.float64],
        pixel: wp.array[wp.int32],
        depth: wp.array[wp.float32],
        cloud: wp.array[wp.float64],
        odds: wp.array[wp.int16],
        inflated: wp.array[wp.uint8],
        squared: wp.array[wp.int16],
        bounds: wp.array[wp.int32],
        counts: wp.array[wp.int32],
        work: wp.array[wp.int16],
        task: int,
    ): ...

    def airworthy_map_update(
        words: wp.array[wp.int32],  # frames, tasks, parts, stages, pixels, numbers per image, sizes, settings
        sizes: wp.array[wp.int64],  # work memory of a task
        numbers: wp.array[wp.float64],  # cell, longest and least ray, least and most depth, reach x, y, z [m]
        frame_numbers: wp.array[wp.float64],  # (k, 18) camera's rotation (9) and place (3), corners of the box (6)
        frame_words: wp.array[wp.int32],  # (k, 12) cells, side, window before, window now
        frame_base: wp.array[wp.int64],  # (k,) first element of the flight's layers
        rays: wp.array[wp.float64],  # (pixels, 2) x and y of the rays at depth 1
        pixel: wp.array[wp.int32],  # (pixels,) where in the image they are
        depth: wp.array[wp.float32],  # (k, H, W) [m]
        cloud: wp.array[wp.float64],  # (k, m, 3) [m]
        # output
        odds: wp.array[wp.int16],  # log-odds [1 / 4096]
        inflated: wp.array[wp.uint8],
        squared: wp.array[wp.int16],  # signed squared distance [cells^2]
        bounds: wp.array[wp.int32],  # (k, 6) local bound
        counts: wp.array[wp.int32],  # (tasks, size) zero between images
        work: wp.array[wp.int16],
        first: int,
    ):
        native_update(
            words,
            sizes,
            numbers,
            frame_numbers,
            frame_words,
            frame_base,
            rays,
            pixel,
            depth,
            cloud,
            odds,
            inflated,
            squared,
            bounds,
            counts,
            work,
            first + wp.tid(),
        )

    return wp.kernel(airworthy_map_update, module="unique", module_options=MODULE_OPTIONS)
