"""How a policy is judged: flights by place and course, the verdict, and the folders in which they stay whatever is broken off.

evaluate/           the flights that `summary.json` tells of, or those of a first judgement so far
evaluate/judging.json   how they are judged, and what it took until now, however often it was stopped
evaluate.before/    the same, while a finished training is judged by another protocol; with the page that tells of them
evaluate.next/      flights of such a second judgement that was broken off: the same command goes on with them
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from airworthy.benchmarks.tracking.conditions import Condition, condition
from airworthy.benchmarks.tracking.config import EvaluateConfig
from airworthy.benchmarks.tracking.job import evaluate
from airworthy.core.errors import AssetError
from airworthy.core.files import make_folder, read_json, write_json
from airworthy.core.jobs.progress import progress
from airworthy.evaluation.statistics import wilson_interval
from airworthy.learning.folder_training import plain_options
from airworthy.learning.timed_training import SUMMARY_FILE
from airworthy.learning.training_folder import REPORT_FILE, say
from airworthy.learning.visuomotor.config import VisuomotorOptions, VisuomotorProtocol, place_names
from airworthy.learning.visuomotor.training import mean_of_finite
from airworthy.tasks import SUCCESSES

__all__ = [
    "EVALUATE_FOLDER",
    "condition_rows",
    "is_control",
    "judge",
    "judged_anew",
    "judged_places",
    "settle_evidence",
    "verdict_of",
]

EVALUATE_FOLDER, _BEFORE, _NEXT = "evaluate", "evaluate.before", "evaluate.next"
_JUDGING_FILE = "judging.json"
_TOLD_STOPS = 4
"""So many evaluations are one line of progress; fewer have their own."""
_FIT_PERCENT = 95.0
"""Ours: a policy is called fit to fly where at least this share of flights succeeded, and touched nothing, under every
condition of its judgement."""
CLEAN = "success"
"""Of `SUCCESSES` that in which nothing was touched."""
_TOLD = 0.8
"""Ours: least lower end of Wilson's interval of all flights together for a verdict without a word on how few they were; 16
flights of 16 reach it."""

# ---- Folders -----------------------------------------------------------------------------------------------------------------


@contextmanager
def judged_anew(folder: Path, protocol: VisuomotorProtocol) -> Iterator[None]:
    """Put what a policy was judged by aside while it is judged anew, and back where that does not end.

    Behind the block the earlier flights still lie there: only `settle_evidence` removes them, once `summary.json` tells of
    the new ones.

    Args:
        folder: Of the training, settled.
        protocol: By which it is judged now; flights of it that were broken off are gone on with.
    """
    now, before, later = (folder / name for name in (EVALUATE_FOLDER, _BEFORE, _NEXT))
    goes_on = _protocol_of(later) == plain_options(protocol)
    try:
        if now.is_dir():
            now.rename(before)
        else:
            before.mkdir()
        if (folder / REPORT_FILE).is_file():
            shutil.copy2(folder / REPORT_FILE, before / REPORT_FILE)
        if goes_on:
            later.rename(now)
        else:
            shutil.rmtree(later, ignore_errors=True)
        yield
    except BaseException:
        settle_evidence(folder)
        raise


def settle_evidence(folder: Path) -> None:
    """Put a training's folder in order in which a second judgement ended, or was broken off at whatever moment.

    Args:
        folder: Of the training: behind this, flights and page in it are those of its summary.
    """
    now, before, later = (folder / name for name in (EVALUATE_FOLDER, _BEFORE, _NEXT))
    if not before.is_dir():
        return
    if now.is_dir() and _is_told_of(now, folder / SUMMARY_FILE):
        shutil.rmtree(before)
        return
    if now.is_dir():
        shutil.rmtree(later, ignore_errors=True)
        now.rename(later)
    if (before / REPORT_FILE).is_file():
        os.replace(before / REPORT_FILE, folder / REPORT_FILE)
    before.rename(now)


def _is_told_of(flights: Path, summary: Path) -> bool:
    """Tell whether a summary is of flights: written by the protocol by which they were judged."""
    held = _protocol_of(flights)
    return held is not None and summary.is_file() and read_json(summary).get("protocol") == held


def _protocol_of(flights: Path) -> Any:
    """Return how flights are judged, as JSON has it; None: nothing says it, as in a folder of an earlier version."""
    found = _judging(flights)
    return found["protocol"] if found else None


def _judging(flights: Path) -> dict[str, Any] | None:
    """Return what `judging.json` holds; None: there is none."""
    path = flights / _JUDGING_FILE
    if not path.is_file():
        return None
    found = read_json(path)
    whole = isinstance(found, dict) and isinstance(found.get("protocol"), dict)
    if not whole or not all(isinstance(found.get(name), int | float) for name in ("seconds", "cpu_seconds")):
        told = f"delete {str(flights)!r}, and they are flown again"
        raise AssetError(f"{str(path)!r} does not say how flights are judged: {told}.")
    return dict(found)


class _Clock:
    """What judging takes, over all runs that it takes; kept beside the flights, behind each block of them."""

    def __init__(self, flights: Path, protocol: VisuomotorProtocol):
        self._path, self._protocol = make_folder(flights) / _JUDGING_FILE, plain_options(protocol)
        before = _judging(flights) or {"seconds": 0.0, "cpu_seconds": 0.0}
        self._begun = time.perf_counter() - before["seconds"], time.process_time() - before["cpu_seconds"]

    def spent(self) -> tuple[float, float]:
        """Return seconds by the clock, and of all processor cores."""
        wall, cpu = self._begun
        return time.perf_counter() - wall, time.process_time() - cpu

    def keep(self, *_: object) -> None:
        """Write down what it took so far."""
        wall, cpu = self.spent()
        write_json(self._path, {"protocol": self._protocol, "seconds": wall, "cpu_seconds": cpu})


# ---- Flights -----------------------------------------------------------------------------------------------------------------


def judged_places(options: VisuomotorOptions, protocol: VisuomotorProtocol) -> tuple[str, ...]:
    """Return names of the places that a policy is judged in: those that it learns in, where no others are asked for."""
    return place_names(protocol.scene) if protocol.scene else options.places


def judge(folder: Path, options: VisuomotorOptions, protocol: VisuomotorProtocol, quiet: bool) -> dict[str, Any]:
    """Return flights by condition, the verdict, and what judging took; what was flown before by the same protocol stays.

    Args:
        folder: Of the training, with its policy.
        options: What was learnt.
        protocol: How it is judged.
        quiet: Say nothing.

    Raises:
        KeyboardInterrupt: It was asked to stop; blocks of flights that are finished stay.
    """
    where = folder / EVALUATE_FOLDER
    if where.is_dir() and _protocol_of(where) not in (None, plain_options(protocol)):
        # Of a first judgement that was stopped: no summary tells of them.
        say(quiet, f"{folder}: flights of a judgement by another protocol, which was stopped, are given up.")
        shutil.rmtree(where)
    clock = _Clock(where, protocol)
    clock.keep()
    try:
        flights = _flown(folder, options, protocol, quiet, clock)
    finally:
        clock.keep()
    rows = condition_rows(flights)
    fit, why = verdict_of(rows)
    wall, cpu = clock.spent()
    seconds = {"evaluate_s": wall, "evaluate_cpu_s": cpu}
    return {"fit": fit, "verdict": why, "conditions": rows, "flights": flights, "seconds": seconds}


def _flown(
    folder: Path, options: VisuomotorOptions, protocol: VisuomotorProtocol, quiet: bool, clock: _Clock
) -> list[dict[str, Any]]:
    places = judged_places(options, protocol)
    count = protocol.flights * len(protocol.family) * len(options.course) * len(places)
    say(quiet, f"Judging it: {', '.join(protocol.conditions)}, {count} flights of each.")
    flights: list[dict[str, Any]] = []
    stops = [(c, p) for c in range(len(options.course)) for p in range(len(places))]
    for c, p in progress(stops, "Judging in places", quiet=quiet or len(stops) < _TOLD_STOPS):
        name = options.course[c]
        config = EvaluateConfig(
            pilot=(f"svnet:{folder}",),
            course=name,
            scene=places[p],
            conditions=protocol.conditions,
            flights=protocol.flights,
            family=protocol.family,  # type: ignore[arg-type]
            vehicle=options.vehicle,
            # Of each place its own, else all places would see the same starts and drones.
            seed=protocol.seed + p,
            out=folder / EVALUATE_FOLDER / (f"course_{c}" if len(places) == 1 else f"course_{c}_place_{p:04d}"),
        )
        done = evaluate(config, quiet or len(stops) >= _TOLD_STOPS, step=clock.keep)
        if done.interrupted:
            raise KeyboardInterrupt
        where = Path(config.out).relative_to(folder).as_posix()
        flights += [{**row, "course_index": c, "place": places[p], "folder": where} for row in done.summary["flights"]]
    return flights


def condition_rows(all_flights: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row per course, condition and family, all places together: successes with Wilson's interval, errors, endings."""
    found: dict[tuple[int, str, str], list[Mapping[str, Any]]] = {}
    for row in all_flights:
        found.setdefault((row["course_index"], row["condition"], row["family"]), []).append(row)
    rows = []
    for (_, named, family), flights in found.items():
        good = sum(row["outcome"] in SUCCESSES for row in flights)
        rate = wilson_interval(good, len(flights))
        lost = [row for row in flights if row["outcome"] not in SUCCESSES]
        touched = [row for row in flights if row["outcome"] in SUCCESSES and row["outcome"] != CLEAN]
        rows.append(
            {
                "course": flights[0]["course"],
                "places": len({row["place"] for row in flights}),
                "condition": named,
                "family": family,
                "flights": len(flights),
                "successes": good,
                "touched": len(touched),
                "control": is_control(condition(named)),
                "interval_percent": [100.0 * rate.low, 100.0 * rate.high],
                "collisions": int(sum(row["collisions"] for row in flights)),
                **{name: mean_of_finite([row[name] for row in flights]) for name in ("tracking_error_m", "proximity_percent")},
                "ended": [f"{row['outcome'].replace('_', ' ')}: {row['cause']}" for row in (*lost, *touched)],
                "folder": flights[0]["folder"],
            }
        )
    return rows


def is_control(item: Condition) -> bool:
    """Tell whether a condition takes a policy's eyes away: who flies by sight fails, and who does not was not led by sight."""
    return item.blind or item.freeze > 0.0


def verdict_of(all_rows: list[dict[str, Any]]) -> tuple[bool, str]:
    """Return whether a policy is fit to fly where it was judged, and why, in a sentence.

    It is where at least 95 % of its flights succeeded and touched nothing under every condition that leaves it its eyes; a
    sentence says how many did, and with what confidence that bounds the share.

    Args:
        all_rows: Of `summary.json`, a row per course, condition and family.
    """
    rows = [row for row in all_rows if not is_control(condition(row["condition"]))]
    fit, why = _verdict_of_seeing(rows)
    blind = [row for row in all_rows if row not in rows and row["successes"]]
    told = ", ".join(f"{row['successes']} of {row['flights']} under {row['condition']!r}" for row in blind)
    return fit, f"{why} Not sight alone leads it: flights succeeded without eyes, {told}." if blind else why


def _verdict_of_seeing(rows: list[dict[str, Any]]) -> tuple[bool, str]:
    # A flight that touched something and went on reached its end, and shows nothing that is fit to be flown.
    worst = min(rows, key=lambda row: _clean(row) / row["flights"])
    fit = 100.0 * _clean(worst) >= _FIT_PERCENT * worst["flights"]
    total, good = sum(row["flights"] for row in rows), sum(map(_clean, rows))
    touched = sum(row["touched"] for row in rows)
    rate = wilson_interval(good, total)
    if fit:
        errors = [row["tracking_error_m"] for row in rows if row["tracking_error_m"] is not None]
        beside = f", {100.0 * max(errors):.0f} cm off the course in the worst condition" if errors else ""
        beside += f"; {touched} more came to the end and touched something" if touched else ""
        said = "yes" if rate.low >= _TOLD else f"yes, as far as so few flights tell ({total})"
        return True, (
            f"{said}, since {good} of {total} flights succeeded without a touch (Wilson {100.0 * rate.low:.0f} to"
            f" {100.0 * rate.high:.0f} %), at least {_clean(worst)} of {worst['flights']} under every condition{beside}."
        )
    first = f"; the first: {worst['ended'][0]}" if worst["ended"] else ""
    named = f"{worst['condition']}, {str(worst['family']).replace('_', ' ')}"
    if len({row["course"] for row in rows}) > 1:
        named = f"{worst['course']}, {named}"
    failed, brushed = worst["flights"] - worst["successes"], worst["touched"]
    ways = [f"{failed} of {worst['flights']} flights failed"] if failed or not brushed else []
    ways += [f"{brushed} of {worst['flights']} touched something"] if brushed else []
    return False, (f"no, since {' and '.join(ways)} under {named!r}, where at most {100.0 - _FIT_PERCENT:g} % may{first}.")


def _clean(row: Mapping[str, Any]) -> int:
    """Return how many flights of a row succeeded and touched nothing."""
    return int(row["successes"] - row["touched"])
