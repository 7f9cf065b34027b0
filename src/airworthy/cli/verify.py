"""`airworthy verify`: acceptance figures of the physics and of what the documentation promises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import chain

from airworthy.cli.common import emit_json, run_tyro, show_table
from airworthy.core.files import data_dir
from airworthy.core.progress import progress
from airworthy.evaluation.verification import Figure, flightgoggles_figures, promise_figures, published_figures

_DESCRIPTION = "Measure the physics and the promises on this machine, and print each figure beside what it must be."


@dataclass(frozen=True)
class VerifyConfig:
    """How to print."""

    json: bool = False
    """Print a JSON list of figures."""


def main(argv: list[str]) -> int:
    """Run the command; returns 0 where every figure is as it must be, else 1."""
    config = run_tyro(VerifyConfig, argv, "airworthy verify", _DESCRIPTION)
    figures: Iterator[Figure] = chain(flightgoggles_figures(), promise_figures(), published_figures())
    found = list(progress(figures, "verifying", quiet=config.json))
    if config.json:
        emit_json([asdict(figure) for figure in found])
    else:
        rows = [(f.name, f.measured, f.unit, f.aim, "yes" if f.passed else "NO") for f in found]
        show_table("", ("figure", "measured", "unit", "must be", "is it"), rows)
        failed = sum(not f.passed for f in found)
        print(f"{len(found) - failed} of {len(found)} figures are as they must be.")
        if data_dir() is None:
            print("AIRWORTHY_DATA is unset: comparisons with reference files were left out.")
    return int(any(not f.passed for f in found))
