"""`airworthy bench race`: fly pilots through courses of a race, and set their scores beside the published ones."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from airworthy.cli.common import emit_json, flown_exit, interrupted, run_tyro, show_table, stopped_by_terminate
from airworthy.core.errors import AirworthyError
from airworthy.race.benchmark.job import RaceBenchConfig, RaceBenched, run_race_bench
from airworthy.race.benchmark.tables import accuracy_text, final_range, noted_text
from airworthy.race.benchmark.timing import timing_text
from airworthy.race.published import QUALIFIER

_DESCRIPTION = (
    "Fly pilots through courses of a race: each sees its IMU and beacons alone, an exact referee judges every physics step, and"
    " scores stand beside those of 2019. A stopped run goes on where it was."
)


FLY_WORDS = {"--course": ["--courses"], "--film": ["--film-flights", "1"]}
"""Of `airworthy fly --race`, which flies one course: what they are here."""


def fly_one(argv: list[str]) -> int:
    """Run `airworthy fly --race NAME --pilot PILOT --course published/7 --film`: one course of a race, by the same rules."""
    words: list[str] = []
    for word in argv:
        name, equals, value = word.partition("=")
        words += [*FLY_WORDS.get(name, [name]), *([value] if equals else [])]
    if not any(word in FLY_WORDS["--course"] for word in words):
        raise AirworthyError("airworthy fly --race flies one course: name it, as --course published/7 or --course nominal.")
    return main(words)


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code: 1 where a pilot failed, 130 after Ctrl-C, 143 after a request to terminate."""
    # "class" is no name that a field could have.
    named = [word for word in argv if word.split("=")[0] in ("--class", "--conditions")]
    if len(named) > 1:
        raise AirworthyError(
            f"The class is given {len(named)} times ({', '.join(named)}): --class and --conditions are one; give it once."
        )
    words = ["--conditions" + word.removeprefix("--class") if word.split("=")[0] == "--class" else word for word in argv]
    config = run_tyro(RaceBenchConfig, words, "airworthy bench race", _DESCRIPTION)
    with stopped_by_terminate() as received:
        done = run_race_bench(config, quiet=config.json)
    if config.json:
        told = {"folder": str(done.folder), "interrupted": done.interrupted, "timing": list(done.timing)}
        emit_json({**told, **done.summary})
    else:
        _show(done)
    if done.interrupted:
        left = done.flights - len(done.summary["flights"])
        flights = "flight" if left == 1 else "flights"
        what = f"flights of finished blocks are kept; the same command flies the other {left:,} {flights}"
        return interrupted(received, f"Interrupted: {what if left else 'flights are whole; the same command films the rest'}.")
    return flown_exit(Counter(str(flight["outcome"]) for flight in done.summary["flights"]))


def _show(done: RaceBenched) -> None:
    summary = done.summary
    if summary["tables"]:
        rows = [
            (row["rank"], row["name"] or "", row["final"], *(row["best"]), row["note"]) for row in summary["tables"]["scores"]
        ]
        show_table("Table III", ("rank", "pilot", "final", "1", "2", "3", "4", "5", "note"), rows)
        sensors = [
            (", ".join(row["used"]), row["teams"], row["completed_percent"], row["mean"], _known(row["std"]), row["note"])
            for row in summary["tables"]["sensors"]
        ]
        show_table("Table IV", ("sensors", "teams", "completed [%]", "mean", "std", "note"), sensors)
    table = [_pilot_cells(row) for row in summary["pilots"]]
    titles = ("pilot", "completed", "95 % of it [%]", "mean score", "std", "mean time [s]", "best five", "95 % of it", "missed")
    if table:
        show_table(f"Class {summary['class']}, courses {summary['courses']}", titles, table)
    for row in summary["pilots"]:
        ends = ", ".join(f"{name} {count}" for name, count in row["statistics"]["ends"].items())
        hit = "; hit " + ", ".join(f"{name} ({count})" for name, count in row["parts"].items()) if row["parts"] else ""
        print(f"{row['pilot']}: {ends}{hit}. {row['note'][:1].upper()}{row['note'][1:]}.")
        why = [flight["reason"] for flight in summary["flights"] if flight["pilot"] == row["pilot"] and flight["reason"]]
        for reason in dict.fromkeys(why):
            print(f"{row['pilot']}: {why.count(reason)} of {row['runs']} ended by this: {reason}")
        for said in filter(None, (noted_text(row), accuracy_text(row))):
            print(f"{row['pilot']}: {said}")
        if row["runs"] < QUALIFIER.best and summary["tables"]:
            runs = f"{row['runs']} run{'s' * (row['runs'] > 1)}"
            print(f"{row['pilot']}: {runs}, and Table III has the best {QUALIFIER.best}: no row of it there.")
    for timing in done.timing:
        if said := timing_text(timing):
            print(f"{timing['pilot']}: {said}")
    if missing := [name for name, by in (summary["confinement"] or {}).items() if not by]:
        print(f"Pilots flew in processes of their own, where this system does not enforce: {', '.join(missing)}.")
    if not summary["repeatable"]:
        print("Plans were charged the processor time they took: the same command gives other flights again.")
    print(f"Report: {done.report}")


def _pilot_cells(row: dict[str, Any]) -> tuple[Any, ...]:
    told = row["statistics"]
    rate = told["completion"]
    return (
        row["pilot"] + ", with true state" * row["true_state"] + ", in-process" * row["in_process"],
        f"{row['completed']} of {row['runs']}",
        f"{100.0 * rate['low']:.1f} to {100.0 * rate['high']:.1f}",
        _known(row["mean_score"]),
        _known(told["score"].get("std")),
        _known(row["mean_time_s"]),
        _known(row["final_score"]),
        final_range(told),
        told["passages_missed"],
    )


def _known(value: float | None) -> float | None:
    """Return a number, or nothing for one that is none, as the deviation of a single run."""
    return None if value is None or math.isnan(value) else value
