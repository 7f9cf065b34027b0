"""Builds the kernel of the loss of images and its derivative."""

from __future__ import annotations

from functools import cache
from typing import Any

from airworthy.core.native_kernel import native_kernel
from airworthy.splats.native_text import native_source
from airworthy.splats.training.fields import step_numbers

_ARGUMENTS = """
    image: float32[]  # (camera, height, width, 3)
    truth: float32[]  # the same
    order: int32[]  # of tasks
    settings: float32[]  # share of the likeness, window (11), one over the count of numbers
    work: float32[]  # five padded rows per task
    maps: float32[]  # work: derivatives with respect to three means (3, camera, height, width, 3)
    sums: float32[]  # output: difference and likeness of each row
    out: float32[]  # output: derivative (camera, height, width, 3)
    width: int
    height: int
    task_count: int
    stage: int
"""


@cache
def train_loss_kernel() -> Any:
    """Return the Warp kernel (on a CPU)."""
    text = native_source("train_loss.h").replace("// The task of", step_numbers() + "\n// The task of", 1)
    return native_kernel("splats_train_loss", text, _ARGUMENTS)
