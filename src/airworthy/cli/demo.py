"""`airworthy demo`: the shortest way to see something fly."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from airworthy.cli.common import run_tyro
from airworthy.cli.fly import main as fly

_DESCRIPTION = "Fly a batch of randomised race quadrotors through a furnished hall in wind, and write a report."


@dataclass(frozen=True)
class DemoConfig:
    """Where to write it."""

    envs: int = 64
    """Flights at once."""
    seed: int = 0
    """Key of all random numbers."""
    device: str = "cpu"
    """"cpu", or a CUDA device such as "cuda:0"."""
    out: Path = Path("runs/demo")
    """Folder for the flights and the report."""
    json: bool = False
    """Print summary.json's aggregate instead of a table."""


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code."""
    config = run_tyro(DemoConfig, argv, "airworthy demo", _DESCRIPTION)
    words = ["--vehicle", "flightgoggles", "--scene", "mid_gate", "--pilot", "geometric", "--randomize", "default"]
    words += ["--turbulence", "0.5", "--envs", str(config.envs), "--seed", str(config.seed), "--device", config.device]
    words += ["--out", str(config.out), *(["--json"] if config.json else [])]
    if not config.json:
        print(shlex.join(["airworthy", "fly", *words]))
    return fly(words)
