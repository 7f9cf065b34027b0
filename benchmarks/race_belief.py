"""Whether the pilot `race` is as sure as it may be: its errors in flight against its own covariance, over whole races.

    python benchmarks/race_belief.py                                   24 fresh courses, two minutes on a quiet core
    python benchmarks/race_belief.py --flights 100 --class v3 --seed 7000

Position, velocity and attitude are held against the truth of the simulator 60 times a second: the normalised estimation error
squared (NEES), of which a filter that is as sure as it may be has 9 on average, and over n flights at one instant 95 % of the
time between the quantiles of a chi-square of 9 n. The truth is seen by this program alone: what is flown is what `race` flies.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import chi2

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.core import frames
from airworthy.core.arrays import Array
from airworthy.race import load_race, race_class
from airworthy.race.benchmark.flight import fly_races
from airworthy.race.onboard import Onboard, Truth
from airworthy.race.pilots.catalogue import PilotEntry
from airworthy.race.pilots.racing import RacingPilot
from benchmarks import hardware

RATE, FREEDOM, FROM_S = 60.0, 9, 0.5
"""Instants per second [Hz], errors of a vehicle, and since when a flight counts: it stood still before [s]."""


class Watched(RacingPilot):
    """`race`, with its own errors noted beside it."""

    flights: list[list[tuple[float, float]]] = []  # noqa: RUF012 - of this program's one run
    """Of each flight: instant [s], NEES."""

    def begin(self, facts: Any) -> None:
        """Begin a flight, and its notes."""
        super().begin(facts)
        self.notes: list[tuple[float, float]] = []
        Watched.flights.append(self.notes)

    def command(self, onboard: Onboard, truth: Truth) -> Array:  # type: ignore[override]
        """Return what `race` commands."""
        given = super().command(onboard)
        if onboard.time >= FROM_S and onboard.time >= FROM_S + len(self.notes) / RATE:
            self.notes.append((onboard.time, self._squared(truth)))
        return given

    def _squared(self, truth: Truth) -> float:
        motion = self._state.now.motion
        turn = frames.multiply(truth.attitude[0], frames.conjugate(motion.attitude[0]))
        moved = truth.position[0] - motion.position[0], truth.velocity[0] - motion.velocity[0]
        off = np.concatenate([*moved, frames.to_rotation_vector(frames.canonical(turn))])
        covariance = self._filter.covariance(self._state)[0][:FREEDOM, :FREEDOM]
        return float(off @ np.linalg.solve(covariance, off))


def figures(flights: list[list[tuple[float, float]]]) -> dict[str, Any]:
    """Return what NEES was over flights.

    Args:
        flights: Of each flight instant and NEES.
    """
    whole = min(len(notes) for notes in flights)
    found = np.array([[value for _, value in notes[:whole]] for notes in flights])
    count = len(found)
    low, high = chi2.ppf([0.025, 0.975], FREEDOM * count) / count
    instant, each = found.mean(axis=0), found.mean(axis=1)
    half = 1.96 * each.std(ddof=1) / np.sqrt(count) if count > 1 else np.inf
    return {
        "flights": count,
        "seconds": whole / RATE,
        "mean": float(each.mean()),
        "mean_95": [float(each.mean() - half), float(each.mean() + half)],
        "band": [float(low), float(high)],
        "within_band_percent": 100.0 * float(np.mean((instant > low) & (instant < high))),
        "too_sure_percent": 100.0 * float(np.mean(instant >= high)),
        "worst_flight": float(each.max()),
    }


def main() -> int:
    """Fly and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flights", type=int, default=24)
    parser.add_argument("--seed", type=int, default=7000, help="of the courses, fresh:SEED/FLIGHTS")
    parser.add_argument("--class", dest="word", choices=("noisy", "hard", "v3"), default="noisy")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    race, begun = load_race("alphapilot"), time.process_time()
    entry = PilotEntry("truth:watched", Watched, True, False, 240.0, Watched.sensors)
    completed = 0
    for number in range(asked.flights):
        (flown,) = fly_races(race, (f"fresh/{asked.seed}/{number}",), entry, race_class(asked.word))
        completed += flown.result.completed
        if number % 10 == 9:
            print(f"  {number + 1} of {asked.flights}, {completed} completed", file=sys.stderr, flush=True)
    told = {"class": asked.word, "seed": asked.seed, "completed": completed, **figures(Watched.flights)}
    told |= {"cpu_s": time.process_time() - begun, "hardware": hardware.describe([])}
    if asked.json:
        print(json.dumps(told, indent=1))
        return 0
    print(
        f"class {asked.word}, fresh:{asked.seed}/{asked.flights}: {completed} completed; NEES of {FREEDOM} errors over"
        f" {told['seconds']:.1f} s: {told['mean']:.2f} (95 % of the mean {told['mean_95'][0]:.2f} to {told['mean_95'][1]:.2f})"
        f"; of the instants {told['within_band_percent']:.0f} % in the 95 % band {told['band'][0]:.2f} to"
        f" {told['band'][1]:.2f}, {told['too_sure_percent']:.0f} % above; the worst flight {told['worst_flight']:.1f};"
        f" {told['cpu_s']:.0f} processor s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
