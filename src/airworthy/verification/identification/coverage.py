"""How often intervals of identification hold the truth: short flights of many quadrotors, pushed about, each fitted.

    python -m airworthy.verification.identification.coverage --fits 200 --minutes 10 --out coverage.jsonl

writes a line for each fit and carries on where it stopped, for some minutes at a time if so asked; without --fits it prints the
table of what is there. Fits of an older method stay in the file, and are not counted.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.vehicles import Identified, identify
from airworthy.vehicles.record import UNCERTAIN
from airworthy.verification.identification.flights import drawn_quads, fly_quads

__all__ = ["BATCH", "Coverage", "coverage_rows", "coverage_table", "fit_flights"]

FIT = 2
"""Of the method that fits; raised where it changes what it finds. 1: one lag, a trim that does not drift."""
BATCH = 20
"""Vehicles that are drawn and flown side by side; a batch's number is its seed."""
SECONDS = 10.0
"""Of each flight, all of it fitted."""
SHARE_MIN = 0.3
"""Values of which a log tells less are their priors, and not counted."""
INSIDE = 1.645
"""Deviations within which 90 % of a normal distribution lie."""
LOWEST, HIGHEST = 0.84, 0.95
"""Of the specification, section 11.6."""


@dataclass(frozen=True)
class Coverage:
    """Of one value over all fits."""

    name: str
    fits: int
    """In which a log told it."""
    inside: float
    """Share of the 90 % intervals that hold the truth."""
    spread: float
    """Root of the mean square of errors over their deviations; 1 is right."""
    bias: float
    """Mean error over the deviations."""

    @property
    def error(self) -> float:
        """Return the standard error of the share that so many fits leave."""
        return math.sqrt(self.inside * (1.0 - self.inside) / self.fits) if self.fits else math.nan


def fit_flights(batch: int, skip: Sequence[int] = ()) -> Iterator[dict[str, Any]]:
    """Fly a batch, fit each of its flights, and return each as a plain record.

    Args:
        batch: Its number, and its seed.
        skip: Vehicles of it that are not fitted.
    """
    quads = drawn_quads(BATCH, batch)
    for index, log in enumerate(fly_quads(quads, SECONDS, batch)):
        row: dict[str, Any] = {"batch": batch, "vehicle": index, "fit": FIT}
        if index in skip:
            continue
        if log is None:
            yield row | {"refused": "it turned over"}
            continue
        try:
            # What is held out is of no interest here; that flights are fitted whole, is: a part, here all, may also judge.
            found = identify([log], quads.known(index), quick=True, use=[(0.0, 2.0 * SECONDS)], holdout=[log])
        except AirworthyError as error:
            yield row | {"refused": str(error)}
            continue
        yield row | _compared(found, quads.truth(index, _state(found)))


def _state(found: Identified) -> float:
    """Rotor state at which thrust is told, fraction of full command."""
    return found.fit.problem.parameters.state / found.vehicle.rotors[0].speed_max


def _compared(found: Identified, truth: dict[str, float]) -> dict[str, Any]:
    """Errors, deviations and shares on each value's scale, of those that these flights were drawn with."""
    parameters, fit = found.fit.problem.parameters, found.fit
    values = {}
    for name, drawn in truth.items():
        place = parameters.place(name)
        told = math.log(drawn) if UNCERTAIN[name] == "log" else drawn
        if parameters.free[place] and name != "mass":
            values[name] = [
                _short(float(fit.theta[place]) - told),
                _short(float(fit.sd[place])),
                _short(float(fit.share[place])),
            ]
    return {"structure": found.structure, "values": values}


def _short(value: float) -> float:
    """Return a number with the digits that a study needs."""
    return float(f"{value:.5g}")


def coverage_rows(records: Sequence[dict[str, Any]]) -> list[Coverage]:
    """Return how often intervals hold the truth, of each value that logs told.

    Args:
        records: Of `fit_flights`.
    """
    rows = []
    for name in UNCERTAIN:
        told = [r["values"][name] for r in records if name in r.get("values", {}) and r["values"][name][2] >= SHARE_MIN]
        if not told:
            continue
        over = np.array([error / sd for error, sd, _ in told])
        rows.append(
            Coverage(
                name,
                len(told),
                float(np.mean(np.abs(over) <= INSIDE)),
                float(np.sqrt(np.mean(over**2))),
                float(np.mean(over)),
            )
        )
    return rows


def coverage_table(records: Sequence[dict[str, Any]]) -> str:
    """Return the table in words."""
    fitted = [r for r in records if "values" in r]
    refused = len(records) - len(fitted)
    lines = [f"{len(fitted)} fits, {refused} refused; 90 % intervals, aim {100 * LOWEST:.0f} to {100 * HIGHEST:.0f} %"]
    lines.append(f"{'value':18s} {'fits':>5s} {'inside':>12s} {'spread':>7s} {'bias':>6s}")
    for row in coverage_rows(records):
        inside = f"{100.0 * row.inside:.0f} +- {100.0 * row.error:.0f} %"
        lines.append(f"{row.name:18s} {row.fits:5d} {inside:>12s} {row.spread:7.2f} {row.bias:6.2f}")
    return "\n".join(lines)


def read_records(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file; an unfinished last line is left out.

    Raises:
        AirworthyError: Another line is no record.
    """
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")
    records = []
    for number, line in enumerate(lines[:-1], start=1):
        try:
            records.append(json.loads(line))
        except ValueError:
            raise AirworthyError(f"Line {number} of {path} is no record of this study; name another file.") from None
    return records


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="file of records, a line each")
    parser.add_argument("--fits", type=int, default=0, help="carry on until so many are there")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after so long, finished or not")
    given = parser.parse_args(arguments)
    everything = read_records(given.out)
    text = "".join(json.dumps(record) + "\n" for record in everything)
    given.out.write_text(text, encoding="utf-8")
    records = [r for r in everything if r.get("fit", 1) == FIT]
    if len(records) < len(everything):
        print(f"{len(everything) - len(records)} of {len(everything)} records are of another method, and are not counted.")
    batch, end = 0, time.monotonic() + 60.0 * given.minutes
    while sum("values" in r for r in records) < given.fits and time.monotonic() < end:
        done = [r["vehicle"] for r in records if r["batch"] == batch]
        for record in fit_flights(batch, done) if len(done) < BATCH else ():
            records.append(record)
            with given.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
            if sum("values" in r for r in records) >= given.fits or time.monotonic() >= end:
                break
        batch += 1
    print(coverage_table(records))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
