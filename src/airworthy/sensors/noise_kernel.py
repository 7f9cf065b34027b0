"""Builds the kernel of `airworthy.sensors.noise`: 16 pixels per lane vector on a CPU, one per thread on a GPU."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from airworthy.core.native_kernel import native_kernel, shared_source
from airworthy.core.random import Stream

MODEL = ("A", "B", "C", "MULTIPLIER", "OFFSET", "DROPOUT", "MISS", "MINIMUM", "MAXIMUM", "NEAR", "FAR", "DIVISOR", "NOISY")
"""Numbers of a model, in the order of the kernel's array."""


def noise_source() -> str:
    """Complete native source."""
    numbers = {**{name: k for k, name in enumerate(MODEL)}, "STREAM_SENSOR": int(Stream.SENSOR)}
    enumerators = ", ".join(f"{name} = {number}" for name, number in numbers.items())
    text = files("airworthy.sensors").joinpath("native", "noise.cpp").read_text()
    return "\n".join([shared_source("prelude.h"), f"enum {{ {enumerators} }};", shared_source("random.h"), text])


_ARGUMENTS = """
    values: float32[]  # (camera * pixels,), changed in place
    keys: uint32[]  # (camera * 5,)
    model: float32[]  # (len(MODEL),)
    pixels: int
    sensor: uint32
    block_count: int
"""


@cache
def noise_kernel() -> Any:
    """Return the Warp kernel; compiled at first launch, then cached on disk."""
    return native_kernel("sensor_noise", noise_source(), _ARGUMENTS, "block")
