"""Native kernels: compile settings, shared texts, and launches split over threads.

A kernel of ours handles blocks of 16 environments on a CPU (one per lane) and single environments on a GPU. Its last argument is
the first block, so that a CPU launch can be cut into parts, one per thread; launches release the interpreter lock.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.resources import files
from typing import Any

# Set on our modules only, never in the host program's global configuration. No fast-math: it would delete NaN checks. No
# contraction of multiply-adds (costs 5 to 17 % on a CPU): each operation rounds by itself, so specialised variants of an
# equation, lane widths and instruction sets agree to the bit.
MODULE_OPTIONS: dict[str, Any] = {
    "enable_backward": False,
    "fuse_fp": False,
    "optimization_level": 3,
    "cpu_compiler_flags": "-march=native -mprefer-vector-width=512",
}

CPU_LANES = 16

SPLIT_SECONDS = 1e-3
"""A launch shorter than this stays on one thread: handing it over costs about 0.2 ms."""


@cache
def quiet_warp() -> Any:
    """Warp, initialised without its banner."""
    import warp as wp

    wp.config.log_level = wp.LOG_ERROR
    wp.init()
    return wp


def shared_source(*names: str) -> str:
    """Native texts of this room, joined: `prelude.h`, `random.h`."""
    return "\n".join(files("airworthy.core").joinpath("native", name).read_text() for name in names)


def thread_limit() -> int:
    """Threads a CPU launch may use: AIRWORTHY_THREADS, else the processors this process may run on."""
    asked = os.environ.get("AIRWORTHY_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="airworthy")


def lanes_of(device: str) -> int:
    """Environments per block on a device."""
    return CPU_LANES if device == "cpu" else 1


class Launcher:
    """A recorded launch over blocks, split over threads when it is long enough to gain from it.

    Args:
        kernel: A Warp kernel whose last argument is the first block.
        block_count: Blocks to cover.
        arguments: Every argument but the last.
        device: Warp device name.
        threads: Most threads to use on a CPU.
    """

    def __init__(self, kernel: Any, block_count: int, arguments: list[Any], device: str, threads: int | None = None):
        self._wp = quiet_warp()
        self._seconds = 0.0
        self._whole = self._record(kernel, 0, block_count, arguments, device)
        threads = min(threads or thread_limit(), block_count) if device == "cpu" else 1
        edges = [block_count * k // threads for k in range(threads + 1)]
        spans = zip(edges[:-1], edges[1:], strict=True) if threads > 1 else ()
        self._parts = [self._record(kernel, a, b - a, arguments, device) for a, b in spans]

    def _record(self, kernel: Any, first: int, count: int, arguments: list[Any], device: str) -> Any:
        return self._wp.launch(kernel, dim=count, inputs=[*arguments, first], device=device, record_cmd=True)

    def set_argument(self, index: int, value: Any) -> None:
        """Change one argument of later launches."""
        for record in (self._whole, *self._parts):
            record.set_param_at_index(index, value)

    def launch(self) -> None:
        """Run the kernel once; on a GPU this only enqueues it."""
        if self._parts and self._seconds > SPLIT_SECONDS:
            self._launch_split()
            return
        start = time.perf_counter()
        self._whole.launch()
        # The shortest launch seen decides: one preempted launch must not turn splitting on for good.
        elapsed = time.perf_counter() - start
        self._seconds = elapsed if self._seconds == 0.0 else min(elapsed, 2.0 * self._seconds)

    def _launch_split(self) -> None:
        pool = _pool(len(self._parts))
        waiting = [pool.submit(part.launch) for part in self._parts[1:]]
        self._parts[0].launch()
        for future in waiting:
            future.result()
