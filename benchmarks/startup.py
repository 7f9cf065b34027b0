"""Waiting times of whole processes: import, help, the first flight with an empty and with a filled kernel cache."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

FLIGHT = ("fly", "--vehicle", "flightgoggles", "--course", "robustness", "--envs", "16", "--seed", "1")


def measure(repeats: int = 5) -> dict[str, float | str]:
    """Seconds by name; a reason in place of the number where the command failed."""
    python = [sys.executable]
    results: dict[str, float | str] = {
        "python alone": _median([*python, "-c", "pass"], repeats),
        "import airworthy": _median([*python, "-c", "import airworthy"], repeats),
        "import airworthy.simulation": _median([*python, "-c", "import airworthy.simulation"], repeats),
        "airworthy --help": _median([*_airworthy(), "--help"], repeats),
    }
    with tempfile.TemporaryDirectory() as folder:
        # Both variables, so that the cache is empty wherever the package keeps it.
        places = {"WARP_CACHE_PATH": f"{folder}/warp", "XDG_CACHE_HOME": f"{folder}/cache"}
        bare = [*_flight(folder, "bare"), "--no-report"]
        results["first flight, cold kernel cache"] = _seconds(_flight(folder, "cold"), places)
        results["first flight, warm kernel cache"] = _median(bare, max(1, repeats // 2), places, fresh=Path(folder))
        results["first flight and its report, warm"] = _median(
            _flight(folder, "warm"), max(1, repeats // 2), places, fresh=Path(folder)
        )
    return results


def _flight(folder: str, name: str) -> list[str]:
    return [*_airworthy(), *FLIGHT, "--out", str(Path(folder) / name)]


def _airworthy() -> list[str]:
    """Return the installed command, else the module."""
    script = Path(sys.executable).parent / "airworthy"
    return [str(script)] if script.exists() else [sys.executable, "-m", "airworthy"]


def _median(
    command: Sequence[str], repeats: int, places: dict[str, str] | None = None, fresh: Path | None = None
) -> float | str:
    times: list[float] = []
    for number in range(repeats):
        numbered = [f"{part}_{number}" if fresh and part.startswith(str(fresh)) else part for part in command]
        found = _seconds(numbered, places)
        if isinstance(found, str):
            return found
        times.append(found)
    return median(times)


def _seconds(command: Sequence[str], places: dict[str, str] | None = None) -> float | str:
    surroundings = {**os.environ, **(places or {})}
    start = time.perf_counter()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=surroundings)
    except (OSError, subprocess.TimeoutExpired) as trouble:
        return str(trouble)[:200]
    elapsed = time.perf_counter() - start
    if done.returncode:
        return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:200]
    return elapsed
