"""The machine that a result was made on, for the record."""

from __future__ import annotations

import os
import platform


def describe_machine() -> dict[str, str | int]:
    """Processor, usable cores, operating system and Python: the `hardware` of a result's meta."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {
        "processor": _processor(),
        "cores": cores,
        "system": f"{platform.system()} {platform.machine()}",
        "python": f"Python {platform.python_version()}",
    }


def _processor() -> str:
    """Name of the processor; the architecture where the system does not tell."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            names = (line.partition(":")[2].strip() for line in file if line.startswith("model name"))
            return next(names, "") or platform.processor() or platform.machine()
    except OSError:
        return platform.processor() or platform.machine()
