"""A policy that sees, learnt from nothing in places that nothing was learnt in before, by the clock.

    python benchmarks/visuomotor_places.py --out runs/places                  three places, three seeds: an hour and a half
    python benchmarks/visuomotor_places.py --places urban --seeds 0 --minutes 5

Places: `court`, nine captured statues on a floor (719,000 gaussians, from the reference data, so that AIRWORTHY_DATA has to be
set), `backroom:3@77`, a drawn room, with its course `cluttered`, and `urban:1@4`, a drawn street. Courses of court and street
are files beside this program. Run it on a machine with nothing else to do: minutes are those of the clock. What lies in the
folder is not made again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.core.files import data_dir
from airworthy.learning.visuomotor import VisuomotorOptions, VisuomotorProtocol
from benchmarks import hardware
from benchmarks.visuomotor_features import rounds_of, trained

BESIDE = Path(__file__).resolve().parent / "places"
STATUES = ("angel-kneeling", "angel", "massa", "narcissus", "trumpet")
"""Of the reference data, splats/statues_sog."""


@dataclass(frozen=True)
class Place:
    """Where a policy learns, and what it flies."""

    scene: str
    course: str


PLACES = {
    "court": Place("court.toml", str(BESIDE / "court_round.json")),
    "backroom": Place("backroom:3@77", "cluttered"),
    "urban": Place("urban:1@4", str(BESIDE / "street.json")),
}


def scene_of(name: str, out: Path) -> str | None:
    """Return the scene of a place, with the files that it needs beside it; None: they are not there.

    Args:
        name: Of the place.
        out: Folder in which places are put together.
    """
    if name != "court":
        return PLACES[name].scene
    found = data_dir()
    if found is None or not (statues := found / "splats" / "statues_sog").is_dir():
        return None
    folder = out / "court_place"
    folder.mkdir(parents=True, exist_ok=True)
    for statue in STATUES:
        if not (folder / f"{statue}.sog").is_file():
            shutil.copyfile(statues / f"{statue}.sog", folder / f"{statue}.sog")
    shutil.copyfile(BESIDE / "court.toml", folder / "court.toml")
    return str(folder / "court.toml")


def row_of(name: str, seed: int, summary: dict[str, Any]) -> str:
    """Return one training as a line of the table."""
    minutes = (summary["training_wall_s"] + summary["seconds"]["evaluate_s"]) / 60.0
    cpu = summary["training_cpu_s"] + summary["seconds"]["evaluate_cpu_s"]
    rounds = rounds_of(summary)
    alone = ", ".join(f"{row['alone']:.0f}" for row in rounds) + (f" of {rounds[0]['flights']:.0f}" if rounds else "")
    judged = "   ".join(
        f"{row['condition']} {row['successes']} of {row['flights']}, "
        + ("no error" if row["tracking_error_m"] is None else f"{100.0 * row['tracking_error_m']:.1f} cm")
        for row in summary["conditions"]
    )
    return f"{name:9} {seed:4} {minutes:6.1f} {cpu:8.0f} {summary['pairs']:8,}   {judged}   rounds: {alone}"


def main(argv: list[str] | None = None) -> int:
    """Train and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--places", nargs="+", choices=tuple(PLACES), default=list(PLACES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=0, help="0: as many as there is time for")
    parser.add_argument("--judged", type=int, default=20, help="flights of each condition")
    parser.add_argument("--out", type=Path, default=Path("runs/places"))
    given = parser.parse_args(argv)
    print(json.dumps(hardware.describe(hardware.use_cores(2))))
    print("place     seed    min    CPU s    pairs   judged", flush=True)
    skipped = 0
    for name in given.places:
        scene = scene_of(name, given.out)
        if scene is None:
            skipped += len(given.seeds)
            print(f"{name:9} is skipped: AIRWORTHY_DATA names no folder with splats/statues_sog", flush=True)
            continue
        for seed in given.seeds:
            options = VisuomotorOptions(
                scene=(scene,), course=(PLACES[name].course,), seed=seed, minutes=given.minutes, rounds=given.rounds
            )
            summary = trained(given.out / f"{name}_{seed}", options, VisuomotorProtocol(flights=given.judged), 0)
            print(row_of(name, seed, summary), flush=True)
    if skipped:
        print(f"{skipped} trainings were skipped.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
