"""`airworthy demo`: the shortest way to see something fly."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from airworthy.cli.common import run_tyro
from airworthy.cli.fly import main as fly

_DESCRIPTION = "Fly a batch of randomised race quadrotors along a published course in wind, and write a report."


@dataclass(frozen=True)
class DemoConfig:
    """Where to write it."""

    envs: int = 64
    """Flights at once."""
    seed: int = 0
    """Key of all random numbers."""
    out: Path = Path("runs/demo")
    """Folder for the flights and the report."""


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code."""
    config = run_tyro(DemoConfig, argv, "airworthy demo", _DESCRIPTION)
    words = ["--vehicle", "flightgoggles", "--course", "robustness", "--pilot", "geometric", "--randomize", "default"]
    words += ["--turbulence", "0.5", "--envs", str(config.envs), "--seed", str(config.seed), "--out", str(config.out)]
    print("airworthy fly " + " ".join(words))
    return fly(words)
