"""Hand-written kernels in 16-lane vectors through Warp's CPU compiler, and launches split over threads.

These kernels share no code with the package: they are the outside measure of what the machine can do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

import warp as wp

LANES = 16
CPU_OPTIONS: dict[str, Any] = {
    "enable_backward": False,
    "optimization_level": 3,
    "cpu_compiler_flags": "-march=native -mprefer-vector-width=512",
}
"""The width is a preference: a machine with narrower vectors splits each 16-lane operation."""

PRELUDE = """
typedef float F __attribute__((ext_vector_type(16)));
typedef int I __attribute__((ext_vector_type(16)));
typedef unsigned int U __attribute__((ext_vector_type(16)));
#define INLINE __attribute__((always_inline))
auto load = [](const float* p) INLINE { return *(const F*)p; };
auto store = [](float* p, F x) INLINE { *(F*)p = x; };
auto bits_of = [](F x) INLINE { return __builtin_bit_cast(U, x); };
auto float_of = [](U x) INLINE { return __builtin_bit_cast(F, x); };
auto root = [](F x) INLINE { return __builtin_elementwise_sqrt(x); };
"""


def lane_kernel(snippet: str) -> wp.Kernel:
    """Return a kernel that runs `snippet` once per index.

    The snippet sees `a` and `b` (pointers to float, `b` for output), `count` and `stride` (ints) and `index`.
    """
    body = f"{PRELUDE}\nconst float* a = (const float*)a_.data; float* b = (float*)b_.data;\n{snippet}"

    @wp.func_native(body)
    def run(a_: wp.array[wp.float32], b_: wp.array[wp.float32], count: int, stride: int, index: int): ...

    @wp.kernel(module="unique", module_options=CPU_OPTIONS, enable_backward=False)
    def kernel(
        a_: wp.array[wp.float32],
        # output
        b_: wp.array[wp.float32],
        count: int,
        stride: int,
        first: int,
    ):
        run(a_, b_, count, stride, first + wp.tid())

    return kernel


def recorded(kernel: wp.Kernel, a: wp.array, b: wp.array, count: int, stride: int, total: int, threads: int) -> list[Any]:
    """One recorded launch per thread, together covering the indices 0 .. total - 1."""
    edges = [total * k // threads for k in range(threads + 1)]
    return [
        wp.launch(kernel, dim=high - low, inputs=[a, b, count, stride, low], device="cpu", record_cmd=True)
        for low, high in pairwise(edges)
        if high > low
    ]


@cache
def pool() -> ThreadPoolExecutor:
    """Return the threads of every split launch here; launches release the interpreter lock."""
    return ThreadPoolExecutor(max_workers=16, thread_name_prefix="benchmark")


def launch_all(commands: Sequence[Any]) -> None:
    """Run recorded launches at once, the last one on the calling thread; returns when all are done."""
    waiting = [pool().submit(command.launch) for command in commands[:-1]]
    commands[-1].launch()
    for done in waiting:
        done.result()


def rate(call: Callable[[], object], seconds: float, least: int = 2) -> float:
    """Return calls per second of `call`, run for about `seconds` and at least `least` times."""
    count, start = 0, time.perf_counter()
    while True:
        call()
        count += 1
        elapsed = time.perf_counter() - start
        if elapsed >= seconds and count >= least:
            return count / elapsed
