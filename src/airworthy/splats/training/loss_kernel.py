"""Builds the kernel of the loss of images and its derivative."""

# No postponed annotations here: Warp reads them.

from functools import cache
from typing import Any

from airworthy.core.native_kernel import MODULE_OPTIONS, quiet_warp
from airworthy.splats.native_text import native_source
from airworthy.splats.training.fields import step_numbers


@cache
def train_loss_kernel() -> Any:
    """Return the Warp kernel (on a CPU)."""
    wp = quiet_warp()
    text = native_source("train_loss.h").replace("// The task of", step_numbers() + "\n// The task of", 1)

    @wp.func_native(text)
    def native_train_loss(
        image: wp.array[wp.float32],
        truth: wp.array[wp.float32],
        order: wp.array[wp.int32],
        settings: wp.array[wp.float32],
        work: wp.array[wp.float32],
        maps: wp.array[wp.float32],
        sums: wp.array[wp.float32],
        out: wp.array[wp.float32],
        width: int,
        height: int,
        task_count: int,
        stage: int,
        task: int,
    ): ...

    def airworthy_splats_train_loss(
        image: wp.array[wp.float32],  # (camera, height, width, 3)
        truth: wp.array[wp.float32],  # the same
        order: wp.array[wp.int32],  # of tasks
        settings: wp.array[wp.float32],  # share of the likeness, window (11), one over the count of numbers
        work: wp.array[wp.float32],  # five padded rows per task
        maps: wp.array[wp.float32],  # work: derivatives with respect to three means (3, camera, height, width, 3)
        sums: wp.array[wp.float32],  # output: difference and likeness of each row
        out: wp.array[wp.float32],  # output: derivative (camera, height, width, 3)
        width: int,
        height: int,
        task_count: int,
        stage: int,
        first: int,
    ):
        native_train_loss(
            image, truth, order, settings, work, maps, sums, out, width, height, task_count, stage, first + wp.tid()
        )

    return wp.kernel(airworthy_splats_train_loss, module="unique", module_options=MODULE_OPTIONS)
