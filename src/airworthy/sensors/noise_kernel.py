"""Builds the kernel of `airworthy.sensors.noise`: 16 pixels per lane vector on a CPU, one per thread on a GPU."""

# No postponed annotations here: Warp reads them.

from functools import cache
from importlib.resources import files
from typing import Any

from airworthy.core.native_kernel import MODULE_OPTIONS, quiet_warp, shared_source
from airworthy.core.random import Stream

MODEL = ("A", "B", "C", "MULTIPLIER", "OFFSET", "DROPOUT", "MISS", "MINIMUM", "MAXIMUM", "NEAR", "FAR", "DIVISOR", "NOISY")
"""Numbers of a model, in the order of the kernel's array."""


def noise_source() -> str:
    """Complete native source."""
    numbers = {**{name: k for k, name in enumerate(MODEL)}, "STREAM_SENSOR": int(Stream.SENSOR)}
    enumerators = ", ".join(f"{name} = {number}" for name, number in numbers.items())
    text = files("airworthy.sensors").joinpath("native", "noise.cpp").read_text()
    return "\n".join([shared_source("prelude.h"), f"enum {{ {enumerators} }};", shared_source("random.h"), text])


@cache
def noise_kernel() -> Any:
    """Return the Warp kernel; compiled at first launch, then cached on disk."""
    wp = quiet_warp()

    @wp.func_native(noise_source())
    def native_noise(
        values: wp.array[wp.float32],
        keys: wp.array[wp.uint32],
        model: wp.array[wp.float32],
        pixels: int,
        sensor: wp.uint32,
        block_count: int,
        block: int,
    ): ...

    def airworthy_sensor_noise(
        values: wp.array[wp.float32],  # (camera * pixels,), changed in place
        keys: wp.array[wp.uint32],  # (camera * 5,)
        model: wp.array[wp.float32],  # (len(MODEL),)
        pixels: int,
        sensor: wp.uint32,
        block_count: int,
        first: int,
    ):
        native_noise(values, keys, model, pixels, sensor, block_count, first + wp.tid())

    return wp.kernel(airworthy_sensor_noise, module="unique", module_options=MODULE_OPTIONS)
