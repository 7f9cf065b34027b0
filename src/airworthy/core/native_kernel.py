"""Native kernels: built from one list of arguments, compile settings, shared texts, and launches split over threads.

A kernel of ours handles blocks of 16 environments on a CPU (one per lane) and single environments on a GPU. Its last argument
is the first block, so that a CPU launch can be cut into parts, one per thread; launches release the interpreter lock.
"""

from __future__ import annotations

import ctypes
import linecache
import math
import os
import platform
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from airworthy.core.arrays import ArrayAny
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import read_json, sha256_file, write_json
from airworthy.core.threads import after_fork, building, run_at_once

__all__ = ["announce_builds", "ensure_loaded", "kernel_cache", "native_kernel", "quiet_load"]

# ---- Warp's kernel cache, guarded: what a crash, a full disk or a bad one left of it is built anew --------------------------
#
# Warp keeps a compiled module as a folder of files and runs whatever it finds under their names; it neither forces them to
# the disk nor checks them. Each folder therefore gets a seal, the SHA-256 of what is loaded from it, when one of its kernels
# is first used. A folder that differs from its seal, or that cannot be loaded, is removed and built again.

SEAL_FILE = "airworthy.seal.json"
_SEAL_BYTES_MAX = 1 << 16
_NOT_LOADED = (".cpp", ".cu")
"""Sources, which Warp leaves beside what was made of them."""
_BLOCK = {"cpu": 1}
"""Threads per block of our launches, which is part of a module's name in the cache; Warp's own default on CUDA."""
_CUDA_BLOCK = 256
_LOADED: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
"""Devices that a kernel's module has been loaded for."""


_ANNOUNCE: list[Callable[[str], None]] = []
"""Told before each build; at most one."""


def announce_builds(tell: Callable[[str], None] | None) -> None:
    """Have a sentence told before a kernel is compiled, which takes seconds to minutes; nothing of those that are cached.

    Libraries say nothing unless their host asks: the command line does.

    Args:
        tell: Called with the sentence, in the thread that compiles; None: nobody.
    """
    _ANNOUNCE[:] = [] if tell is None else [tell]


def ensure_loaded(kernel: Any, device: str, cache: str | Path) -> None:
    """Load a kernel's module, once per device: from the cache where it is whole, from a new build elsewhere.

    Args:
        kernel: A Warp kernel.
        device: Name of a Warp device.
        cache: Warp's cache folder.

    Raises:
        AirworthyError: The cache cannot be written, or is damaged and cannot be mended.
    """
    if device in _LOADED.get(kernel, ()):
        return
    with building():
        block = _BLOCK.get(device, _CUDA_BLOCK)
        folder = Path(cache) / kernel.module.get_module_identifier(block)
        _load(kernel.module, device, block, folder, kernel.key)
        _LOADED.setdefault(kernel, set()).add(device)


def _load(module: Any, device: str, block: int, folder: Path, name: str) -> None:
    if folder.exists() and not _is_sound(folder):
        _discard(module, folder)
    held = folder.exists()
    if not held:
        for tell in _ANNOUNCE:
            what = name.removeprefix("airworthy_")
            tell(f"Compiling the kernel {what!r}, once, for the cache {str(folder.parent)!r}: seconds, or a minute or two.")
    try:
        module.load(device, block)
    except Exception as error:
        if not held:  # a new build failed: the disk, or a mistake in our sources, whose traceback is wanted
            raise _refused(folder, error) if isinstance(error, OSError) else error from None
        _discard(module, folder)
        _load(module, device, block, folder, name)
        return
    _seal(folder)


def _is_sound(folder: Path) -> bool:
    """Tell whether what was sealed is unchanged; without a seal, loading will tell."""
    if not folder.is_dir():
        return False
    if not (folder / SEAL_FILE).exists():
        return True
    try:
        sealed = read_json(folder / SEAL_FILE, _SEAL_BYTES_MAX)
        return isinstance(sealed, dict) and all(sha256_file(folder / Path(name).name) == kept for name, kept in sealed.items())
    except AssetError:
        return False


def _seal(folder: Path) -> None:
    names = sorted(path.name for path in folder.iterdir() if path.name != SEAL_FILE and path.suffix not in _NOT_LOADED)
    seal = {name: sha256_file(folder / name) for name in names if not name.startswith(".")}
    try:
        if not (folder / SEAL_FILE).exists() or read_json(folder / SEAL_FILE, _SEAL_BYTES_MAX) != seal:
            write_json(folder / SEAL_FILE, seal)
    except AirworthyError:
        return  # a cache that is only read, shared by machines say, is used as it is


def _discard(module: Any, folder: Path) -> None:
    try:
        shutil.rmtree(folder) if folder.is_dir() and not folder.is_symlink() else folder.unlink()
    except FileNotFoundError:
        pass  # another process did it
    except OSError as error:
        raise AirworthyError(
            f"The kernel cache {str(folder)!r} is damaged and cannot be removed ({error.strerror}): remove it, or set"
            " WARP_CACHE_PATH to another folder."
        ) from error
    module.mark_modified()  # or Warp would repeat the failure that it remembers


def _refused(folder: Path, error: OSError) -> AirworthyError:
    return AirworthyError(
        f"Could not build a kernel in {str(folder.parent)!r} ({error.strerror or error}): set WARP_CACHE_PATH to a folder that"
        " can be written."
    )


# -----------------------------------------------------------------------------------------------------------------------------

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

_CACHE_LINE = 64
"""Bytes of a cache line, and of 16 lanes."""

SPLIT_SECONDS = 1e-3
"""A launch shorter than this stays on one thread: handing it over costs about 0.2 ms."""

_TRIALS = 2
"""Whole launches whose shortest decides: one preempted launch must not turn splitting on for good."""


@cache
def quiet_warp() -> Any:
    """Return Warp, initialised without its banner; its global configuration stays as the host program set it."""
    import warp as wp

    with _QUIET.lock, _quiet_level(wp), _without_driver_warning():
        wp.init()
    return wp


class _Quiet:
    """Threads that want Warp to be quiet: its log level is one for all of them, and is put back when the last has ended."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.inside = 0
        self.scope: Any = None


_QUIET = _Quiet()


@contextmanager
def _quiet_level(wp: Any) -> Iterator[None]:
    """Let Warp say errors only; several threads may be in here at once, and a scope of Warp's own serves but one."""
    with _QUIET.lock:
        if not _QUIET.inside:
            _QUIET.scope = wp.ScopedLogLevel(wp.LOG_ERROR)
            _QUIET.scope.__enter__()
        _QUIET.inside += 1
    try:
        yield
    finally:
        with _QUIET.lock:
            _QUIET.inside -= 1
            if not _QUIET.inside:
                _QUIET.scope.__exit__(None, None, None)


def kernel_cache() -> str:
    """Return the folder of compiled kernels as WARP_CACHE_PATH says it: Warp adds its version."""
    return str(Path(quiet_warp().config.kernel_cache_dir).parent)


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
    try:
        said = tempfile.TemporaryFile()  # noqa: SIM115  (closed below)
    except OSError:  # nothing may be written, as in the process of a pilot: the remark is let through
        yield
        return
    with said:
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


def quiet_load(kernel: Any, device: str) -> None:
    """Compile or load a kernel's module without a line of output, so that the first launch need not.

    Args:
        kernel: A Warp kernel.
        device: Warp's name of the device.
    """
    wp = quiet_warp()
    with _quiet_level(wp):
        ensure_loaded(kernel, device, wp.config.kernel_cache_dir)


def quiet_launch(kernel: Any, dim: int, inputs: list[Any], device: str, record: bool = False) -> Any:
    """Launch a kernel, or record its launch, without a line of output where its module is compiled or loaded.

    Args:
        kernel: A Warp kernel.
        dim: Threads.
        inputs: Its arguments.
        device: Warp's name of the device.
        record: Return the recorded launch instead of running it.
    """
    wp = quiet_warp()
    check_not_forked(device)
    with _quiet_level(wp):
        ensure_loaded(kernel, device, wp.config.kernel_cache_dir)
        return wp.launch(kernel, dim=dim, inputs=inputs, device=device, record_cmd=record)


_FORKED_FROM_CUDA: list[int] = []
"""The parent's id in a process that was forked after CUDA had been started."""


def _note_fork() -> None:
    warp = sys.modules.get("warp")
    if warp is not None and quiet_warp.cache_info().currsize and warp.get_cuda_device_count():
        _FORKED_FROM_CUDA[:] = [os.getppid()]


after_fork(_note_fork)
# A lock that another thread held when this process was forked would never be given back in the child.
after_fork(lambda: setattr(_QUIET, "lock", threading.RLock()))


def check_not_forked(device: str) -> None:
    """Refuse a CUDA device in a process that was forked from one with CUDA: the driver does not survive it.

    Raises:
        AirworthyError: With what to do instead.
    """
    if _FORKED_FROM_CUDA and device != "cpu":
        raise AirworthyError(
            f"This process was forked from process {_FORKED_FROM_CUDA[0]}, in which CUDA had been started, so it cannot use"
            f" {device!r}: start it by spawn (multiprocessing.get_context('spawn')), or use the CPU in it."
        )


def shared_source(*names: str) -> str:
    """Return native texts of this room, joined: `prelude.h`, `random.h`."""
    return "\n".join(files("airworthy.core").joinpath("native", name).read_text() for name in names)


def native_kernel(name: str, source: str, arguments: str, index: str = "task", *, first: bool = True) -> Any:
    """Make a Warp kernel that does nothing but call one native function, once per thread; compiled at first launch.

    Warp reads the signatures of both from Python source and wants every argument in each and in the call: they are written here
    from one list.

    Args:
        name: Of the kernel, which becomes `airworthy_NAME`.
        source: Native text: what stands in the function's body, before which nothing can be declared.
        arguments: A line for each, `NAME: KIND` and a comment after `#`: `float32[]` and the like are arrays, `int`, `float`
            and `uint32` are numbers. Lines of comments alone divide what is read from what is written.
        index: The thread's number in the native text; "": it has none, as one thread does all.
        first: Whether a last argument `first` is added to the thread's number, so that launches can be cut (`Launcher`).
    """
    wp = quiet_warp()
    kinds = dict(_argument(line) for line in arguments.splitlines() if line.partition("#")[0].strip())
    typed = ", ".join(f"{argument}: {kind}" for argument, kind in kinds.items())
    called = [*kinds, *(["first + wp.tid()" if first else "wp.tid()"] if index else [])]
    text = (
        f"def native_{name}({typed}{f', {index}: int' if index else ''}): ...\n\n\n"
        f"def airworthy_{name}({typed}{', first: int' if first else ''}):\n    native_{name}({', '.join(called)})\n"
    )
    # Warp asks `inspect` for the text of a function: it finds that of these two where it finds that of any file.
    file = f"<airworthy kernel {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {"__name__": __name__, "wp": wp}
    exec(compile(text, file, "exec"), space)  # noqa: S102  (the text is ours)
    space[f"native_{name}"] = wp.func_native(source)(space[f"native_{name}"])
    return wp.kernel(space[f"airworthy_{name}"], module="unique", module_options=MODULE_OPTIONS)


def _argument(line: str) -> tuple[str, str]:
    """Name of an argument and its annotation for Warp."""
    name, _, kind = (part.strip() for part in line.partition("#")[0].partition(":"))
    if kind.endswith("[]"):
        return name, f"wp.array[wp.{kind[:-2]}]"
    return name, kind if kind in ("int", "float") else f"wp.{kind}"


def on_cache_line(array: ArrayAny) -> ArrayAny:
    """Return a copy that begins on a cache line, so that no vector of 16 lanes lies in two of them; NumPy promises 16 bytes."""
    room = np.empty(array.nbytes + _CACHE_LINE, np.uint8)
    first = -room.ctypes.data % _CACHE_LINE
    made = room[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


def thread_limit() -> int:
    """Return threads a CPU launch may use: AIRWORTHY_THREADS, else the processors this process may run on.

    Raises:
        AirworthyError: If AIRWORTHY_THREADS is not a whole number of at least 1.
    """
    asked = os.environ.get("AIRWORTHY_THREADS", "").strip()
    if asked:
        if not (asked.isascii() and asked.isdigit() and int(asked) > 0):
            raise AirworthyError(f"AIRWORTHY_THREADS is {asked!r}; expected a whole number of at least 1, or leave it unset.")
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


class Launcher:
    """A recorded launch over blocks, split over threads when it is long enough to gain from it.

    Args:
        kernel: A Warp kernel whose last argument is the first block.
        block_count: Blocks to cover.
        arguments: Every argument but the last.
        device: Warp device name.
        threads: Most threads to use on a CPU.
        split_seconds: A launch that takes less stays on one thread; None: `SPLIT_SECONDS`.
    """

    _split_seconds: float | None = None

    def __init__(
        self,
        kernel: Any,
        block_count: int,
        arguments: list[Any],
        device: str,
        threads: int | None = None,
        split_seconds: float | None = None,
    ):
        self._whole = self._record(kernel, 0, block_count, arguments, device)
        threads = min(threads or thread_limit(), block_count) if device == "cpu" else 1
        edges = [block_count * k // threads for k in range(threads + 1)]
        spans = pairwise(edges) if threads > 1 else ()
        self._parts = [self._record(kernel, a, b - a, arguments, device) for a, b in spans]
        self._seconds, self._whole_launches, self._split_seconds = math.inf, 0, split_seconds

    def _record(self, kernel: Any, first: int, count: int, arguments: list[Any], device: str) -> Any:
        return quiet_launch(kernel, count, [*arguments, first], device, record=True)

    def launch(self) -> None:
        """Run the kernel once; on a GPU this only enqueues it."""
        least = SPLIT_SECONDS if self._split_seconds is None else self._split_seconds
        if self._parts and self._whole_launches >= _TRIALS and self._seconds > least:
            self._launch_split()
            return
        start = time.perf_counter()
        self._whole.launch()
        self._seconds = min(self._seconds, time.perf_counter() - start)
        self._whole_launches += 1

    def _launch_split(self) -> None:
        # Recorded launches hold their arrays, so none is given back under a thread.
        run_at_once([part.launch for part in self._parts])
