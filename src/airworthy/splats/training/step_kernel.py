"""Builds the kernel that moves Gaussians by one step of Adam where the renderer reads them."""

# No postponed annotations here: Warp reads them.

from functools import cache
from typing import Any

from airworthy.core.native_kernel import MODULE_OPTIONS, quiet_warp, shared_source
from airworthy.splats.native_text import native_source
from airworthy.splats.training.fields import step_numbers


@cache
def train_step_kernel(prefix: str = "") -> Any:
    """Return the Warp kernel; `prefix` is put before its native text (`#define SCALAR_PATH` makes a CPU run the form of a
    GPU).
    """
    wp = quiet_warp()
    # The generator of random numbers needs the prelude, which stands first in the source.
    text = native_source("train_step.h", "train_step_task.h").replace(
        "// One step of Adam", shared_source("random.h") + step_numbers() + "\n// One step of Adam", 1
    )

    @wp.func_native(prefix + text)
    def native_train_step(
        geometry: wp.array[wp.float32],
        harmonics: wp.array[wp.float32],
        chunks: wp.array[wp.float32],
        order: wp.array[wp.int32],
        raw: wp.array[wp.float32],
        moments: wp.array[wp.float32],
        shade_moments: wp.array[wp.float32],
        slopes: wp.array[wp.float32],
        colour_slopes: wp.array[wp.float32],
        settings: wp.array[wp.float32],
        draw: wp.array[wp.int32],
        stage: int,
        task: int,
    ): ...

    def airworthy_splats_train_step(
        geometry: wp.array[wp.float32],  # read and written: (block, GEOMETRY_ROWS, 16)
        harmonics: wp.array[wp.float32],  # read and written: (block, k, 3, 16)
        chunks: wp.array[wp.float32],  # read and written: ChunkRow
        order: wp.array[wp.int32],  # of tasks
        raw: wp.array[wp.float32],  # read and written: (block, RAW_ROWS, 16)
        moments: wp.array[wp.float32],  # read and written: (block, 2 * MOVED, 16)
        shade_moments: wp.array[wp.float32],  # read and written: (block, 2, k, 3, 16)
        slopes: wp.array[wp.float32],  # read, then set to 0: (block, SLOPE_ROWS, 16)
        colour_slopes: wp.array[wp.float32],  # read, then set to 0: as harmonics
        settings: wp.array[wp.float32],  # SETTINGS
        draw: wp.array[wp.int32],  # seed (2), step
        stage: int,  # 0: all on a CPU, Gaussians on a GPU; 1: bounds of chunks on a GPU
        first: int,
    ):
        native_train_step(
            geometry,
            harmonics,
            chunks,
            order,
            raw,
            moments,
            shade_moments,
            slopes,
            colour_slopes,
            settings,
            draw,
            stage,
            first + wp.tid(),
        )

    return wp.kernel(airworthy_splats_train_step, module="unique", module_options=MODULE_OPTIONS)
