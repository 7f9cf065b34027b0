"""Builds the kernel that runs layers of a network: 16 channels at a time on a CPU, one per thread on a GPU, from one text."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from airworthy.core.native_kernel import native_kernel, shared_source

# Ours, because accumulators of six pixels still fit the registers of a thread.
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


_ARGUMENTS = """
    images: uint8[]  # (image, H, W, 3)
    colors: float32[]  # normalised, (3, 256)
    weights: float32[]
    table: int32[]  # Layer
    # output
    work: float32[]  # (slot or image, work_stride)
    scores: float32[]  # (image, channels)
    first_layer: int
    last_layer: int
    items: int
    count: int
    slots: int
    image_stride: int
    work_stride: int
"""


@cache
def layers_kernel(prefix: str = "") -> Any:
    """Return the Warp kernel; with `#define SCALAR_PATH` as prefix, a CPU runs the form of a GPU."""
    return native_kernel("layers", layers_source(prefix), _ARGUMENTS)
