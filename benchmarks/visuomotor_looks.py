"""What other looks are worth to a policy that sees: learnt in drawn halls with or without them, flown in halls of splats.

    python benchmarks/visuomotor_looks.py --out runs/looks                     nine policies; two hours of a core
    python benchmarks/visuomotor_looks.py --kinds before after --seeds 0

Kinds: `before` learns in drawn halls as they are drawn, `after`, by the same recipe, in the same halls, each in a look of its
own (`other_look:mid_gate:3@1`); `hall`, the reverse, in the hall of splats alone. Each policy then flies drawn halls that it
has never seen, the same in other looks, never seen either, the hall of splats, and the hall with captured statues, once with
impacts and once without (from the reference data, so that AIRWORTHY_DATA has to be set; else it is skipped, which is said).
Every flight has a start and a drone of its own, the same of all policies; blindfold flights are the control (`--conditions
baseline` leaves them out).

What is printed: of each policy flights that succeeded, those among them that touched something on their way, and the mean
error of all its flights; of each kind all seeds together, with Wilson's interval, and the mean of the seeds with Student's
interval. Flights of one policy are not independent of each other: Wilson's interval is of these policies, Student's, over
seeds, of what is learnt in this way, in these halls. Every folder stays, and what is in it is not made again: a stopped
benchmark goes on.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
from PIL import Image
from scipy.special import stdtrit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.benchmarks.tracking import EvaluateConfig, evaluate
from airworthy.core.arrays import ArrayU8
from airworthy.core.files import data_dir
from airworthy.evaluation.statistics import Estimate, wilson_interval
from airworthy.geometry import RayTable
from airworthy.learning.visuomotor import VisuomotorOptions, VisuomotorProtocol, train_visuomotor
from airworthy.learning.visuomotor.config import JUDGED_SEED, place_names
from airworthy.learning.visuomotor.judging import CLEAN
from airworthy.optics.tone import to_8bit
from airworthy.rendering import render
from airworthy.scenes import SceneBatch, look_at, scene
from airworthy.scenes.viewpoints import Viewpoint
from airworthy.tasks.outcomes import SUCCESSES
from airworthy.trajectories import course
from benchmarks import hardware

COURSE = "sigmoid"
CONDITIONS = ("baseline", "blindfold")

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Kind:
    """Where policies learn, and by which recipe."""

    scene: str
    rounds: int
    flights: int
    """Of a round."""
    minutes: float
    """Which say how many pairs the expert makes."""


KINDS = {
    "before": Kind("mid_gate:0-39@1", rounds=4, flights=32, minutes=8.0),
    "after": Kind("other_look:mid_gate:0-39@1", rounds=4, flights=32, minutes=8.0),
    "hall": Kind("hall", rounds=5, flights=16, minutes=10.0),
}


@dataclass(frozen=True)
class Column:
    """Where policies are judged."""

    title: str
    scene: str
    flights: int
    """In each place."""
    needs_data: bool = False
    contact: Literal["respond", "none"] = "respond"
    """At an impact: the vehicle rebounds, or flies on through it, so that sight alone is judged."""


COLUMNS = {
    "drawn": Column("drawn halls", "mid_gate:0-19@900", 1),
    "looks": Column("in other looks", "other_look:mid_gate:0-19@900", 1),
    "hall": Column("`hall`", "hall", 20),
    "statues": Column("`hall_statues`", "hall_statues", 20, needs_data=True),
    # The course leaves carl 0.06 m beside a statue.
    "through": Column("`hall_statues`, through things", "hall_statues", 20, needs_data=True, contact="none"),
}


# ---- Learning and judging ----------------------------------------------------------------------------------------------------


def recipe(kind: str, seed: int) -> VisuomotorOptions:
    """Return what is learnt."""
    made = KINDS[kind]
    return VisuomotorOptions(
        scene=(made.scene,),
        course=(COURSE,),
        seed=seed,
        rounds=made.rounds,
        flights=made.flights,
        minutes=made.minutes,
    )


def judged(policy: Path, column: Column, conditions: Sequence[str], out: Path) -> list[Row]:
    """Return a row per flight of a policy in all places of a column; what was flown before stays.

    Args:
        policy: Folder of the training.
        column: Where.
        conditions: Of `CONDITIONS`; each has a folder of its own, so that one can be flown later than the other.
        out: Folder of the flights.
    """
    found: list[Row] = []
    for condition, (number, place) in product(conditions, enumerate(place_names((column.scene,)))):
        config = EvaluateConfig(
            pilot=(f"svnet:{policy}",),
            course=COURSE,
            scene=place,
            conditions=(condition,),
            flights=column.flights,
            family=("rigid",),
            # Of each place its own, else all places would see the same starts and drones.
            seed=JUDGED_SEED + number,
            contact=column.contact,
            out=out / condition / f"place_{number:02d}",
            report=False,
        )
        done = evaluate(config)
        if done.interrupted:
            raise KeyboardInterrupt
        found += done.summary["flights"]
    return found


# ---- What came of it ---------------------------------------------------------------------------------------------------------


def successes(rows: Sequence[Row], condition: str) -> tuple[int, int]:
    """Return how many flights under a condition succeeded, and how many were flown."""
    flown = [row for row in rows if row["condition"] == condition]
    return sum(row["outcome"] in SUCCESSES for row in flown), len(flown)


def mean_error(rows: Sequence[Row]) -> float:
    """Return the mean tracking error of the flights with eyes, of the lost ones too [cm]; NaN: none has one."""
    found = [row["tracking_error_m"] for row in rows if row["condition"] == CONDITIONS[0]]
    known = [value for value in found if value is not None and math.isfinite(value)]
    return 100.0 * float(np.mean(known)) if known else math.nan


def over_seeds(values: Sequence[float], confidence: float = 0.95) -> Estimate:
    """Return a mean over seeds with Student's interval; NaN where one seed, or equal ones, leave nothing to tell it by."""
    mean, count = float(np.mean(values)), len(values)
    deviation = float(np.std(values, ddof=1)) if count > 1 else 0.0
    if not deviation > 0.0:
        return Estimate(mean, math.nan, math.nan)
    half = float(stdtrit(count - 1, 0.5 + 0.5 * confidence)) * deviation / math.sqrt(count)
    return Estimate(mean, mean - half, mean + half)


def policy_cell(rows: Sequence[Row]) -> str:
    """Return one policy in one column, as text: with eyes, and, where that was flown, blindfold."""
    good, count = successes(rows, CONDITIONS[0])
    blind, of = successes(rows, CONDITIONS[1])
    touched = good - sum(row["condition"] == CONDITIONS[0] and row["outcome"] == CLEAN for row in rows)
    text = f"{good} of {count}" + (f" ({touched} touched)" if touched else "")
    return f"{text}, {_number(mean_error(rows))} cm" + (f"; blind {blind} of {of}" if of else "")


def kind_cell(policies: Sequence[Sequence[Row]]) -> str:
    """Return all seeds of a kind in one column, as text."""
    counts = [successes(rows, CONDITIONS[0]) for rows in policies]
    good, count = (sum(part) for part in zip(*counts, strict=True))
    rate = wilson_interval(good, count)
    text = f"{good} of {count} ({100.0 * rate.low:.0f} to {100.0 * rate.high:.0f} %)"
    shares, errors = over_seeds([100.0 * part / whole for part, whole in counts]), over_seeds(list(map(mean_error, policies)))
    return (
        f"{text}; seeds {_interval(_within(shares, 0.0, 100.0), '%', 0)}; {_interval(_within(errors, 0.0, math.inf), 'cm', 1)}"
    )


def difference_cell(one: Sequence[Sequence[Row]], other: Sequence[Sequence[Row]]) -> str:
    """Return by how much the second kind is ahead in one column, seed by seed, as text."""
    both = list(zip(one, other, strict=True))
    rates = [[100.0 * np.divide(*successes(rows, CONDITIONS[0])) for rows in pair] for pair in both]
    gained = over_seeds([float(after - before) for before, after in rates])
    nearer = over_seeds([mean_error(after) - mean_error(before) for before, after in both])
    return f"{_interval(_within(gained, -100.0, 100.0), 'points', 0)}; {_interval(nearer, 'cm', 1)}"


def _within(value: Estimate, least: float, most: float) -> Estimate:
    """Return an interval of what lies between two bounds; NaN stays."""
    low, high = np.clip((value.low, value.high), least, most).tolist()
    return Estimate(value.value, low, high)


def _interval(value: Estimate, unit: str, digits: int) -> str:
    if math.isnan(value.low) or math.isnan(value.high):
        return f"{value.value:.{digits}f} {unit}"
    return f"{value.value:.{digits}f} {unit} ({value.low:.{digits}f} to {value.high:.{digits}f})"


def _number(value: float) -> str:
    return "?" if math.isnan(value) else f"{value:.1f}"


def line(*cells: str) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(cells)} |"


def table(found: Mapping[tuple[str, int], Mapping[str, Sequence[Row]]], columns: Sequence[str]) -> str:
    """Return all of it as a page's table.

    Args:
        found: By kind and seed, then by column, a row per flight.
        columns: In order.
    """
    kinds = list(dict.fromkeys(kind for kind, _ in found))
    seeds = {kind: [seed for other, seed in found if other == kind] for kind in kinds}
    lines = [line("learnt in", "`--seed`", *(COLUMNS[name].title for name in columns)), "|" + " --- |" * (2 + len(columns))]
    for kind in kinds:
        lines += [line(kind, str(seed), *(policy_cell(found[kind, seed][name]) for name in columns)) for seed in seeds[kind]]
    for kind in kinds:
        cells = (kind_cell([found[kind, seed][name] for seed in seeds[kind]]) for name in columns)
        lines.append(line(kind, "all", *cells))
    shared = [seed for seed in seeds.get("before", ()) if seed in seeds.get("after", ())]
    if shared:
        cells = (
            difference_cell(*([found[kind, seed][name] for seed in shared] for kind in ("before", "after"))) for name in columns
        )
        lines.append(line("after less before", f"{len(shared)} pairs", *cells))
    return "\n".join(lines)


# ---- What it looks like ------------------------------------------------------------------------------------------------------


def seen_at(place: str, share: float, side: int = 160) -> ArrayU8:
    """Return what is seen along the heading of the course, behind a share of its time, (side, side, 3) of 8 bits."""
    path = course(COURSE).trajectory()
    at = path.sample(np.array([share * path.duration]))
    position, yaw = at.position[0], float(at.yaw[0])
    ahead = position + np.array([math.cos(yaw), math.sin(yaw), -0.05])
    eye = Viewpoint(position, look_at(position, ahead), 1.2)
    rays = RayTable(*eye.rays(side, side), axis=(0.0, 0.0, 1.0))
    return to_8bit(render(SceneBatch(scene(place)), rays, position[None], eye.attitude[None], channels=("rgb",))["rgb"])[0]


def draw_sheet(file: Path, across: int = 8) -> None:
    """Draw halls as they are drawn, the same in other looks, and the halls of splats, a row each."""
    rows = [[(place, 0.15) for place in place_names((KINDS[kind].scene,))[:across]] for kind in ("before", "after")]
    rows.append(list(product(("hall", "hall_statues"), np.linspace(0.05, 0.75, across // 2).tolist())))
    pictures = [np.concatenate([seen_at(place, share) for place, share in row], axis=1) for row in rows]
    Image.fromarray(np.concatenate(pictures)).save(file, quality=85)


def main(argv: list[str] | None = None) -> int:
    """Train, judge and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", choices=tuple(KINDS), default=list(KINDS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--columns", nargs="+", choices=tuple(COLUMNS), default=list(COLUMNS), help="where they are judged")
    parser.add_argument("--conditions", nargs="+", choices=CONDITIONS, default=list(CONDITIONS))
    parser.add_argument("--sheet", type=Path, help="where to draw what is seen in these places, instead")
    parser.add_argument("--threads", type=int, default=0, help="of the CPU; 0: two cores and all their threads")
    parser.add_argument("--out", type=Path, default=Path("runs/looks"))
    given = parser.parse_args(argv)
    if given.sheet is not None:
        draw_sheet(given.sheet)
        return 0
    print(json.dumps(hardware.describe(hardware.use_cores(given.threads or 2))))
    columns = [name for name in given.columns if data_dir() is not None or not COLUMNS[name].needs_data]
    for name in given.columns:
        if name not in columns:
            print(f"{name} is skipped: AIRWORTHY_DATA names no folder", flush=True)
    # The hall of splats learns where it is judged, so that its reverse comes last: what is compared is whole first.
    order = [(kind, seed) for kinds in (("before", "after"), ("hall",)) for seed in given.seeds for kind in kinds]
    found: dict[tuple[str, int], dict[str, list[Row]]] = {}
    # By one flight; what is told is told of flights below.
    shortest = VisuomotorProtocol(conditions=CONDITIONS[:1], flights=1, scene=("mid_gate:0@900",))
    for kind, seed in order:
        if kind not in given.kinds:
            continue
        folder = given.out / f"{kind}_{seed}"
        figures = train_visuomotor(folder, recipe(kind, seed), shortest, threads=given.threads, quiet=True).figures
        alone = ", ".join(f"{step['alone']:.0f}" for step in figures["steps"] if step.get("flights"))
        print(
            f"{folder.name}: {figures['pairs']:,} pairs, {figures['training_cpu_s']:.0f} processor seconds; {alone} of new"
            " flights without help, round by round",
            flush=True,
        )
        found[kind, seed] = {}
        for name in columns:
            found[kind, seed][name] = judged(folder, COLUMNS[name], given.conditions, given.out / "judged" / folder.name / name)
            print(f"  {COLUMNS[name].title}: {policy_cell(found[kind, seed][name])}", flush=True)
    print(table(dict(sorted(found.items(), key=lambda item: list(KINDS).index(item[0][0]))), columns))
    return 0


if __name__ == "__main__":
    sys.exit(main())
