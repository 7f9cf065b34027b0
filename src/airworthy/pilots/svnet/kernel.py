"""Builds the kernel that runs layers of a network: 16 channels at a time on a CPU, one per thread on a GPU, from one text."""

# No postponed annotations here: Warp reads them.

from functools import cache
from importlib.resources import files
from typing import Any

from airworthy.core.native_kernel import MODULE_OPTIONS, quiet_warp, shared_source

PIXELS_ALONE = 6
"""Pixels that a thread of a GPU computes together; see PIXELS_1 in layers.h."""


def layers_source(prefix: str = "") -> str:
    """Native text of the kernel."""
    folder = files("airworthy.pilots.svnet").joinpath("native")
    convolve = folder.joinpath("convolve.h").read_text()
    convolutions = [convolve.replace("VECTORS", str(number)) for number in (1, 2, 3, 4)]
    texts = (folder.joinpath(name).read_text() for name in ("layers.h", "task.h"))
    layers, task = texts
    return "\n".join([prefix, shared_source("prelude.h"), layers, *convolutions, task])


@cache
def layers_kernel(prefix: str = "") -> Any:
    """Return the Warp kernel; with `#define SCALAR_PATH` as prefix, a CPU runs the form of a GPU."""
    wp = quiet_warp()

    @wp.func_native(layers_source(prefix))
    def native_layers(
        images: wp.array[wp.uint8],
        colors: wp.array[wp.float32],
        weights: wp.array[wp.float32],
        table: wp.array[wp.int32],
        work: wp.array[wp.float32],
        scores: wp.array[wp.float32],
        first_layer: int,
        last_layer: int,
        items: int,
        count: int,
        slots: int,
        image_stride: int,
        work_stride: int,
        task: int,
    ): ...

    def airworthy_layers(
        images: wp.array[wp.uint8],  # (image, H, W, 3)
        colors: wp.array[wp.float32],  # normalised, (3, 256)
        weights: wp.array[wp.float32],
        table: wp.array[wp.int32],  # Layer
        # output
        work: wp.array[wp.float32],  # (slot or image, work_stride)
        scores: wp.array[wp.float32],  # (image, channels)
        first_layer: int,
        last_layer: int,
        items: int,
        count: int,
        slots: int,
        image_stride: int,
        work_stride: int,
        first: int,
    ):
        native_layers(
            images,
            colors,
            weights,
            table,
            work,
            scores,
            first_layer,
            last_layer,
            items,
            count,
            slots,
            image_stride,
            work_stride,
            first + wp.tid(),
        )

    return wp.kernel(airworthy_layers, module="unique", module_options=MODULE_OPTIONS)
