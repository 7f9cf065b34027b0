"""What a number was measured on: processor, memory, versions, command."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shlex
import subprocess
import sys
from pathlib import Path

PACKAGES = ("airworthy", "warp-lang", "numpy")
_SIMD = ("avx512f", "avx2", "avx", "asimd", "sse4_2")


def use_cores(count: int) -> list[int]:
    """Keep this process and every child on the first `count` cores it may use; returns their numbers."""
    if not hasattr(os, "sched_setaffinity"):
        return list(range(min(count, os.cpu_count() or 1)))
    cores = sorted(os.sched_getaffinity(0))[:count]
    os.sched_setaffinity(0, cores)
    return cores


def describe(cores: list[int]) -> dict[str, object]:
    """Processor, cores, clock, vector instructions, memory, system, versions and the command of this run."""
    info = _cpu_info()
    flags = info.get("flags", info.get("Features", "")).split()
    return {
        "cpu": info.get("model name", platform.processor() or platform.machine()),
        "cpu_family_model": f"{info.get('cpu family', '?')}/{info.get('model', '?')}",
        "cores_used": len(cores),
        "cores_present": os.cpu_count(),
        "clock_mhz_reported": _number(info.get("cpu MHz")),
        "last_level_cache_mib": last_level_cache_bytes() / 2**20,
        "simd": next((name for name in _SIMD if name in flags), "unknown"),
        "memory_gib": round(_memory_bytes() / 2**30, 1),
        "gpu": _gpu(),
        "system": f"{platform.system()} {platform.release()}",
        "load_average": [round(x, 2) for x in os.getloadavg()] if hasattr(os, "getloadavg") else [],
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
        "commit": _commit(),
        "command": shlex.join([Path(sys.executable).name, *sys.argv]),
    }


def version(name: str) -> str:
    """Installed version of a distribution, or "not installed"."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def last_level_cache_bytes() -> int:
    """Size of the largest cache that one core sees; 32 MiB where the system does not tell."""
    sizes = []
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = path.read_text().strip()
        sizes.append(int(text[:-1]) * {"K": 2**10, "M": 2**20}.get(text[-1], 1))
    return max(sizes, default=32 * 2**20)


def _cpu_info() -> dict[str, str]:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return {}
    pairs = (line.split(":", 1) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 0


def _gpu() -> str:
    return _first_line(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]) or "none"


def _commit() -> str:
    here = str(Path(__file__).parent)
    commit = _first_line(["git", "-C", here, "rev-parse", "--short", "HEAD"])
    changed = _first_line(["git", "-C", here, "status", "--porcelain"])
    return (commit or "unknown") + (" with changes" if changed else "")


def _first_line(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip().split("\n")[0]


def _number(text: str | None) -> float | None:
    return float(text) if text else None
