"""Where a training computes: device, threads, precision, and torch set so that the same run gives the same bits."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from airworthy import __version__
from airworthy.core.errors import AirworthyError
from airworthy.learning.options import TrainingRunOptions

__all__ = ["Machine", "computing", "machine_for"]

_BFLOAT16_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}
"""Of /proc/cpuinfo, where the processor multiplies in bfloat16."""


@dataclass(frozen=True)
class Machine:
    """What the bits of a training depend on besides its options and data."""

    device: str
    """cpu or cuda:N."""
    threads: int
    precision: str
    """float32 or bfloat16, of the image network."""
    torch: str
    airworthy: str = __version__

    def differences(self, before: Mapping[str, Any]) -> list[str]:
        """What another machine had otherwise, in words."""
        now = asdict(self)
        return [f"{name} {before.get(name)}, now {now[name]}" for name in now if before.get(name) != now[name]]


def machine_for(run: TrainingRunOptions, precision: str = "float32", before: Mapping[str, Any] | None = None) -> Machine:
    """Where this run computes; a run that goes on takes the threads it began with, if it was not told otherwise.

    Args:
        run: What was asked for.
        precision: "float32", "bfloat16", or "auto", which takes bfloat16 where the machine computes with it.
        before: The machine on which the training began; None: it begins here.

    Raises:
        AirworthyError: There is no such device.
    """
    device = _device(run.device)
    begun = before.get("threads") if before else None
    threads = run.threads or (begun if isinstance(begun, int) else 0) or _processors()
    if precision == "auto":
        precision = "bfloat16" if _has_bfloat16(device) else "float32"
    return Machine(device, threads, precision, torch.__version__)


@contextmanager
def computing(machine: Machine) -> Iterator[torch.device]:
    """Set torch up for a training, and leave it as it was found.

    On a CPU every operation is one that gives the same bits on every run. On a GPU the derivative of pooling adds in any
    order, so a repeated training agrees in its course, not in its bits.
    """
    device = torch.device(machine.device)
    threads, settled = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    filled = torch.utils.deterministic.fill_uninitialized_memory
    torch.set_num_threads(machine.threads)
    if device.type == "cpu":
        torch.use_deterministic_algorithms(True)
        torch.utils.deterministic.fill_uninitialized_memory = False
    try:
        yield device
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(settled)
        torch.utils.deterministic.fill_uninitialized_memory = filled


def _device(name: str) -> str:
    if name == "auto":
        return "cuda:0" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise AirworthyError(f"There is no device {name!r}; expected cpu, cuda, cuda:1, or auto.") from error
    if device.type == "cpu":
        return "cpu"
    if device.type != "cuda":
        raise AirworthyError(f"Networks are trained on cpu or cuda, not on {name!r}.")
    if not torch.cuda.is_available() or (device.index or 0) >= torch.cuda.device_count():
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        raise AirworthyError(f"Device {name!r} was asked for, but torch sees {count} GPUs here; use --device cpu.")
    return f"cuda:{device.index or 0}"


def _processors() -> int:
    if sys.platform == "linux":
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def _has_bfloat16(device: str) -> bool:
    if device != "cpu":
        return bool(torch.cuda.is_bf16_supported())
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    lines = (line for line in text.splitlines() if line.partition(":")[0].strip().lower() in ("flags", "features"))
    return bool(_BFLOAT16_FLAGS & set(next(lines, "").split()))
