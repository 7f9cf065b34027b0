"""The separate environment of the yardsticks: created on demand beside the repository, never in the package's own.

`python benchmarks/environment.py` creates or completes `.bench-venv` and says what could not be installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "AIRWORTHY_BENCH_ENVIRONMENT"
CPU_TORCH_INDEX = "https://download.pytorch.org/whl/cpu"


@dataclass(frozen=True)
class Yardstick:
    """A published simulator that we compare with."""

    name: str
    requirements: tuple[str, ...]
    modules: tuple[str, ...]
    """What must be importable for it to count as installed."""
    torch: bool = False
    """Whether it needs PyTorch, of which the CPU build is then installed first."""


YARDSTICKS = (
    Yardstick("crazyflow", ("crazyflow==0.4.0",), ("crazyflow", "jax")),
    Yardstick(
        "rotorpy",
        ("rotorpy==3.0.0", "torchdiffeq", "roma", "opt-einsum"),
        ("rotorpy", "torch", "torchdiffeq", "roma"),
        torch=True,
    ),
    Yardstick("pybullet", ("pybullet==3.2.7",), ("pybullet",)),
)


def location() -> Path:
    """Folder of the environment: `AIRWORTHY_BENCH_ENVIRONMENT`, or `.bench-venv` beside the repository's files."""
    return Path(os.environ.get(VARIABLE) or Path(__file__).resolve().parents[1] / ".bench-venv")


def interpreter() -> Path:
    """Its Python."""
    return location() / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def prepare(install: bool = True) -> dict[str, str]:
    """Create the environment and install what is missing.

    Args:
        install: Whether to install; otherwise only look.

    Returns:
        Yardstick name -> empty when usable, else why it is not.
    """
    if not interpreter().exists():
        if not install:
            return {y.name: f"no environment at {location()}; run without --no-install" for y in YARDSTICKS}
        _run([sys.executable, "-m", "venv", str(location())])
    return {y.name: "" if _importable(y) else _install(y) if install else "not installed" for y in YARDSTICKS}


def _install(yardstick: Yardstick) -> str:
    """Install one yardstick; empty on success, else the reason."""
    print(f"installing {yardstick.name} into {location()} (once) ...", flush=True)
    if yardstick.torch and (trouble := _install_torch()):
        return trouble
    if yardstick.name == "pybullet":
        _pip("setuptools<81", "wheel")  # its source distribution is built where no wheel fits
    trouble = _pip(*yardstick.requirements)
    return trouble or ("" if _importable(yardstick) else "installed, but cannot be imported")


def _install_torch() -> str:
    """Return the CPU build: the plain index may bring several gigabytes of CUDA libraries, so a plan with any is refused."""
    if _run([str(interpreter()), "-c", "import torch"]).returncode == 0:
        return ""
    options = ["--index-url", CPU_TORCH_INDEX, "--retries", "1", "--timeout", "20"]
    plan = _run([str(interpreter()), "-m", "pip", "install", "--dry-run", *options, "torch"])
    would = plan.stdout.rsplit("Would install", 1)[-1]
    if plan.returncode or "nvidia" in would or "triton" in would:
        return "no CPU build of torch was found"
    return _pip(*options, "torch")


def _importable(yardstick: Yardstick) -> bool:
    find = "; ".join(["import importlib.util as u", *(f"assert u.find_spec({m!r})" for m in yardstick.modules)])
    return _run([str(interpreter()), "-c", find]).returncode == 0


def _pip(*arguments: str) -> str:
    done = _run([str(interpreter()), "-m", "pip", "install", "--disable-pip-version-check", *arguments])
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["pip failed"])[-1]


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    for name, trouble in prepare().items():
        print(f"{name}: {trouble or 'ready'}")
