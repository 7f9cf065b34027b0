"""Native kernels: compile settings, shared texts, and launches split over threads.

A kernel of ours handles blocks of 16 environments on a CPU (one per lane) and single environments on a GPU. Its last argument
is the first block, so that a CPU launch can be cut into parts, one per thread; launches release the interpreter lock.
"""

from __future__ import annotations

import ctypes
import math
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

from airworthy.core.errors import AirworthyError

# Set on our modules only, never in the host program's global configuration. No fast-math: it would delete NaN checks. No
# contraction of multiply-adds (on a CPU it would gain 4 % at most): each operation rounds by itself, so specialised variants of
# an equation, lane widths and instruction sets agree to the bit.
MODULE_OPTIONS: dict[str, Any] = {
    "enable_backward": False,
    "fuse_fp": False,
    "optimization_level": 3,
    # The width the machine has; only x86 compilers know the option.
    "cpu_compiler_flags": "-march=native -ffp-contract=off"
    + (" -mprefer-vector-width=512" if platform.machine() in ("x86_64", "AMD64") else ""),
}

CPU_LANES = 16

SPLIT_SECONDS = 1e-3
"""A launch shorter than this stays on one thread: handing it over costs about 0.2 ms."""

_TRIALS = 2
"""Whole launches whose shortest decides: one preempted launch must not turn splitting on for good."""


@cache
def quiet_warp() -> Any:
    """Warp, initialised without its banner; its global configuration stays as the host program set it."""
    import warp as wp

    with wp.ScopedLogLevel(wp.LOG_ERROR), _without_driver_warning():
        wp.init()
    return wp


def _has_cuda_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


@contextmanager
def _without_driver_warning() -> Iterator[None]:
    """Keep Warp's native remark that there is no CUDA driver off standard error; anything else said there is passed on."""
    if _has_cuda_driver():
        yield
        return
    sys.stderr.flush()
    with tempfile.TemporaryFile() as said:
        kept = os.dup(2)
        os.dup2(said.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            said.seek(0)
            lines = said.read().splitlines(keepends=True)
            os.write(2, b"".join(line for line in lines if b"CUDA driver" not in line))


def quiet_launch(kernel: Any, dim: int, inputs: list[Any], device: str, record: bool = False) -> Any:
    """Launch a kernel, or record its launch, without a line of output where its module is compiled or loaded."""
    wp = quiet_warp()
    with wp.ScopedLogLevel(wp.LOG_ERROR):
        return wp.launch(kernel, dim=dim, inputs=inputs, device=device, record_cmd=record)


def shared_source(*names: str) -> str:
    """Native texts of this room, joined: `prelude.h`, `random.h`."""
    return "\n".join(files("airworthy.core").joinpath("native", name).read_text() for name in names)


def thread_limit() -> int:
    """Threads a CPU launch may use: AIRWORTHY_THREADS, else the processors this process may run on.

    Raises:
        AirworthyError: If AIRWORTHY_THREADS is not a whole number of at least 1.
    """
    asked = os.environ.get("AIRWORTHY_THREADS", "").strip()
    if asked:
        if not (asked.isascii() and asked.isdigit() and int(asked) > 0):
            raise AirworthyError(f"AIRWORTHY_THREADS is {asked!r}; expected a whole number of at least 1, or leave it unset.")
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="airworthy")


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
        self._whole = self._record(kernel, 0, block_count, arguments, device)
        threads = min(threads or thread_limit(), block_count) if device == "cpu" else 1
        edges = [block_count * k // threads for k in range(threads + 1)]
        spans = pairwise(edges) if threads > 1 else ()
        self._parts = [self._record(kernel, a, b - a, arguments, device) for a, b in spans]
        self._seconds, self._whole_launches = math.inf, 0

    def _record(self, kernel: Any, first: int, count: int, arguments: list[Any], device: str) -> Any:
        return quiet_launch(kernel, count, [*arguments, first], device, record=True)

    def launch(self) -> None:
        """Run the kernel once; on a GPU this only enqueues it."""
        if self._parts and self._whole_launches >= _TRIALS and self._seconds > SPLIT_SECONDS:
            self._launch_split()
            return
        start = time.perf_counter()
        self._whole.launch()
        self._seconds = min(self._seconds, time.perf_counter() - start)
        self._whole_launches += 1

    def _launch_split(self) -> None:
        pool = _pool(len(self._parts))
        waiting = [pool.submit(part.launch) for part in self._parts[1:]]
        self._parts[0].launch()
        for future in waiting:
            future.result()
