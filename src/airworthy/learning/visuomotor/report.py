"""The page of a visuomotor policy: the verdict first, what it stands on, what the policy saw, and how it was learnt."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from airworthy.benchmarks.tracking.block import file_name
from airworthy.benchmarks.tracking.conditions import Condition, condition
from airworthy.core.files import read_bytes, write_text
from airworthy.learning.gradient.report import flat_options
from airworthy.reports.page import DASH, card, fixed, page_of
from airworthy.reports.svg import PERCENT, Line, lines
from airworthy.tasks import SUCCESSES

__all__ = ["STEP_COLUMNS", "learning_curves", "picture_title", "step_cells", "write_visuomotor_report"]

_PICTURE_LIMIT_BYTES = 8 << 20
_PICTURES = 18
"""Most on a page, of some 130 kB each: all conditions of both families in one place."""
_STAGES = {
    "data": "the expert's roll-outs and what a camera would see",
    "features": "features of images",
    "history": "history network",
    "flights": "flights of its own, with labels",
    "heads": "learning of the heads",
    "evaluate": "judging",
}
_STOPPED = {
    "flights": "Two rounds in a row flew as well as was asked for, so no further one was flown.",
    "clock": "A further round would not have ended within the minutes there were.",
    "rounds": "As many rounds were flown as were asked for, or as there is ever time for.",
}


def write_visuomotor_report(folder: Path, path: Path, found: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write the page.

    Args:
        folder: Of the training, with the flights by which it was judged.
        path: Of the page.
        found: What `summary.json` holds.
        rows: Of the training log.
    """
    # Controls, which ought to fail, are no part of what it is called fit by.
    seeing = [row for row in found["conditions"] if not row.get("control")]
    total = sum(row["flights"] for row in seeing)
    good = sum(row["successes"] for row in seeing)
    minutes = (found["training_wall_s"] + found["seconds"]["evaluate_s"]) / 60.0
    pictures, unseen = _pictures(folder, found["flights"])
    page = page_of(
        "airworthy.learning.visuomotor",
        found=found,
        cards=[
            card("fit to fly here", "yes" if found["fit"] else "no", "", f"{good} of {total} flights", _tone(found["fit"])),
            card("all of it took", fixed(minutes, 1), "min", f"{_cpu(found):.0f} s of processor time"),
            card("learnt of", f"{found['pairs']:,}", "pairs", f"{counted(found['rounds'], 'round')} of flights of its own"),
            card("tracking error", _worst(seeing), "cm", "in the worst condition"),
        ],
        # Failures first, controls, which ought to fail, last.
        conditions=[_condition(row) for row in sorted(found["conditions"], key=_failed_share)],
        folders=sorted({row["folder"] for row in found["conditions"]}),
        places=_places(found),
        pictures=pictures,
        unseen=unseen,
        curves=learning_curves(rows),
        columns=STEP_COLUMNS,
        steps=[step_cells(row) for row in found["steps"]],
        stopped=_STOPPED[found["stopped_by"]],
        split=[(name, _spent(found["seconds"], key)) for key, name in _STAGES.items() if f"{key}_s" in found["seconds"]],
        options=flat_options(found["options"]),
        threads=counted(found["machine"]["threads"], "thread"),
    )
    return write_text(path, page)


def learning_curves(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return titled curves over wall time, as SVG: flights that succeeded without help or touch, their error, pairs.

    Args:
        rows: Of the training log.
    """
    flown = [row for row in rows if row.get("flights")]
    known = [row for row in flown if row["tracking_error_m"] is not None]
    values = (
        (
            "Flights that succeeded without help or touch [%]",
            "share",
            [(row["wall_s"], 100.0 * row["alone"] / row["flights"]) for row in flown],
        ),
        ("Tracking error [cm]", "error", [(row["wall_s"], 100.0 * row["tracking_error_m"]) for row in known]),
        ("Pairs", "pairs", [(row["wall_s"], float(row["pairs"])) for row in rows]),
    )
    return [(title, _over_minutes(name, points)) for title, name, points in values]


def _over_minutes(name: str, points: Sequence[tuple[float, float]]) -> str:
    curve = Line(name, "flown", [(wall / 60.0, y) for wall, y in points])
    return lines(name, "wall time [min]", [curve], False, PERCENT if name == "share" else None)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: "1 round", "2 rounds"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _failed_share(row: Mapping[str, Any]) -> tuple[bool, float]:
    return bool(row.get("control")), row["successes"] / row["flights"]


def _places(found: Mapping[str, Any]) -> str:
    """Return where it learnt and was judged, where that is more than one place."""
    if found["places"] == found["judged_places"] == 1:
        return ""
    return f"It learnt in {found['places']} places, and was judged in {found['judged_places']}."


def _tone(fit: bool) -> str:
    return "good" if fit else "poor"


def _spent(seconds: Mapping[str, float], stage: str) -> str:
    cpu = seconds.get(f"{stage}_cpu_s")
    clock = f"{seconds[f'{stage}_s']:.1f} s"
    return clock if cpu is None else f"{clock}, {cpu:.1f} s of processor time"


def _cpu(found: Mapping[str, Any]) -> float:
    return float(found["training_cpu_s"] + found["seconds"]["evaluate_cpu_s"])


def _worst(rows: Sequence[Mapping[str, Any]]) -> str:
    errors = [row["tracking_error_m"] for row in rows if row["tracking_error_m"] is not None]
    return fixed(100.0 * max(errors), 0) if errors else DASH


def _condition(row: Mapping[str, Any]) -> list[str]:
    low, high = row["interval_percent"]
    error = row["tracking_error_m"]
    return [
        row["course"],
        row["condition"] + (" (a control, ought to fail)" if row.get("control") else ""),
        row["family"].replace("_", " "),
        f"{row['successes']} of {row['flights']}",
        f"{low:.0f} to {high:.0f}",
        fixed(None if error is None else 100.0 * error, 1),
        fixed(row["proximity_percent"], 1),
        f"{row['collisions']}",
        row["ended"][0] if row["ended"] else DASH,
    ]


STEP_COLUMNS = (
    "step", "succeeded without help or touch", "error [cm]", "flown by the expert [%]", "pairs learnt of", "took [s]",
)  # fmt: skip
"""Heads of `step_cells`."""


def step_cells(row: Mapping[str, Any]) -> list[str]:
    """Return a step of the summary as cells of a table."""
    if not row.get("flights"):
        return ["imitation", DASH, DASH, DASH, f"{row['pairs']:,}", fixed(row["step_s"], 0)]
    return [
        "round",
        f"{row['alone']} of {row['flights']}",
        fixed(None if row["tracking_error_m"] is None else 100.0 * row["tracking_error_m"], 1),
        fixed(row["helped_percent"], 1),
        f"{row['pairs']:,}",
        fixed(row["step_s"], 0),
    ]


def _pictures(folder: Path, flights: Sequence[Mapping[str, Any]]) -> tuple[list[tuple[str, str]], int]:
    """Return what the first flight of each condition saw, with a title, and how many of them there is no room for."""
    names = ("course", "place", "condition", "family", "folder")
    judged = list(dict.fromkeys(tuple(str(row[name]) for name in names) for row in flights))
    several = len({where for *_, where in judged}) > 1
    found = []
    for flown, place, named, family, where in _shown(judged, flights):
        # Folders are named by who, how, under what, which flights.
        path = next((folder / where / "flights").glob(f"*__{family}__{file_name(named)}__*/seen.png"), None)
        if path is None:
            continue
        data = base64.b64encode(read_bytes(path, _PICTURE_LIMIT_BYTES)).decode("ascii")
        title = f"{picture_title(condition(named), family)}{f', {flown} in {place}' if several else ''}"
        found.append((title, f"data:image/png;base64,{data}"))
    return found, max(len(judged) - _PICTURES, 0)


def _shown(judged: Sequence[tuple[str, ...]], flights: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Return those of (course, place, condition, family, folder) that there is room for: of each course, condition and family
    one place, where a flight failed rather than where none did, then the next.
    """
    if len(judged) <= _PICTURES:
        return list(judged)
    failed = {
        tuple(str(row[name]) for name in ("course", "place", "condition", "family"))
        for row in flights
        if row["outcome"] not in SUCCESSES
    }
    kinds: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for item in sorted(judged, key=lambda item: item[:4] not in failed):
        kinds.setdefault((item[0], *item[2:4]), []).append(item)
    turns = [item for turn in zip_longest(*kinds.values()) for item in turn if item is not None]
    return sorted(turns[:_PICTURES], key=judged.index)


def picture_title(item: Condition, family: str) -> str:
    """Return the title of what a camera saw in flight, with what the policy was shown where that is not the same.

    Args:
        item: The condition.
        family: Of dynamics.
    """
    shown = [
        *(["black images"] if item.blind else []),
        *([f"one and the same image from {item.freeze:g} s on"] if item.freeze else []),
        *([f"images {item.image_delay:g} s late"] if item.image_delay else []),
    ]
    otherwise = f" (as the camera saw it; the policy was shown {' and '.join(shown)})" if shown else ""
    return f"{item.title}, {family.replace('_', '-')}{otherwise}"
