"""Tables of a benchmark's report that its command prints, too: trends with what vehicles can do, and times of planning."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from airworthy.benchmarks.navigation.config import CONFIGURATIONS, FLEET
from airworthy.benchmarks.navigation.own_scenes import is_own
from airworthy.benchmarks.navigation.score import differences, published_score, published_time
from airworthy.reports.page import DASH, fixed, share_interval
from airworthy.tasks.declared_metrics import metric

__all__ = [
    "WHY_HEADS",
    "category_rows",
    "coverage",
    "difference_rows",
    "flip_rows",
    "layout_heads",
    "layout_rows",
    "number",
    "pair_row",
    "planning",
    "proposals",
    "score_row",
    "span",
    "trends",
    "trends_within",
    "why_rows",
]

# ---- How reports write numbers ----------------------------------------------------------------------------------------------


def number(value: float, digits: int) -> str:
    """Return a number with groups of thousands; "" where there is none."""
    return fixed(value, digits, "", ",")


def span(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"


# ---- Rows of the tables of rates in a benchmark's report --------------------------------------------------------------------

NONE = {"score": "", "variance": "", "final": "", "missing": ""}


def score_row(entry: Mapping[str, Any], summary: Mapping[str, Any], titles: Mapping[str, str]) -> dict[str, Any]:
    """Return a row of the table of scores, with what was published.

    Args:
        entry: Of `summary["scores"]`.
        summary: Of the benchmark; its interquartile means are taken.
        titles: What pilots are called, by name.
    """
    paper = published_score(entry["pilot"])
    iqm = next(c["interquartile_mean"] for c in summary["cells"] if c["pilot"] == entry["pilot"])
    return {
        "title": titles.get(entry["pilot"], entry["pilot"]),
        "score": number(entry["score"], 2),
        "variance": number(entry["variance"], 3),
        "final": number(entry["final"], 2),
        "absolute": number(entry["absolute"], 2),
        "iqm": number(100 * iqm, 1),
        "timed": number(entry["timed"], 2),
        "cells": f"{entry['cells']} of {entry['cells_wanted']}",
        "missing": ", ".join(entry["missing"]),
        "reference": entry["reference_only"],
        "paper": NONE
        if paper is None
        else {
            "score": f"{paper['score']:.2f}",
            "variance": f"{paper['variance']:.3f}",
            "final": f"{paper['final']:.2f}",
            "missing": paper.get("missing", ""),
        },
    }


def difference_rows(summary: Mapping[str, Any], titles: Mapping[str, str], comparable: bool) -> list[dict[str, Any]]:
    """Return rows of every rate beside the stated one, scenario by scenario; only comparable ones are marked as far off.

    Args:
        summary: Of the benchmark.
        titles: What pilots are called, by name.
        comparable: Whether it is the whole benchmark, so that differences mean something.
    """
    found = {(e["pilot"], e["scenario"]): e for e in summary["scenarios"]}
    table = []
    for item in differences({key: e["value"] for key, e in found.items()}):
        entry = found[item["pilot"], item["scenario"]]
        table.append(
            {
                "scenario": item["scenario"].replace("_", " "),
                "pilot": titles.get(item["pilot"], item["pilot"]),
                "rate": f"{100 * item['rate']:.1f}",
                "interval": share_interval(entry["low"], entry["high"]),
                "layouts": share_interval(entry["layout_low"], entry["layout_high"]),
                "stated": item["stated"].text,
                "off": "inside" if abs(item["off"]) < 5e-4 else f"{100 * item['off']:+.1f}",
                "far": item["far"] and comparable,
            }
        )
    order = list(dict.fromkeys(e["scenario"].replace("_", " ") for e in summary["scenarios"]))
    return sorted(table, key=lambda row: order.index(row["scenario"]))


def category_rows(summary: Mapping[str, Any], titles: Mapping[str, str]) -> dict[str, Any]:
    """Return success on real and on virtual vehicles, by pilot."""
    names = list(dict.fromkeys(entry["category"] for entry in summary["categories"]))
    found = {(e["pilot"], e["category"]): e for e in summary["categories"]}
    rows = []
    for pilot in dict.fromkeys(entry["pilot"] for entry in summary["categories"]):
        cells = [found.get((pilot, name)) for name in names]
        row_cells = [
            {"value": "", "interval": ""}
            if cell is None
            else {"value": f"{100 * cell['value']:.1f}", "interval": share_interval(cell["low"], cell["high"])}
            for cell in cells
        ]
        rows.append({"title": titles.get(pilot, pilot), "cells": row_cells})
    return {"category_names": names, "categories": rows}


def _points(low: float, high: float) -> str:
    return f"{100 * low:+.1f} to {100 * high:+.1f}" if isfinite(low) and isfinite(high) else ""


def _says(entry: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return who is ahead, by the interval over other layouts."""
    if not (entry["pairs"] and isfinite(entry["layout_low"]) and isfinite(entry["layout_high"])):
        return ""
    return "tied" if entry["tied"] else f"{names[0] if entry['difference'] > 0.0 else names[1]} ahead"


def flip_rows(summary: Mapping[str, Any], titles: Mapping[str, str]) -> list[list[str]]:
    """Return how often repeats of a flight end differently, by pilot and scenario: cells of a table."""
    return [
        [
            titles.get(entry["pilot"], entry["pilot"]),
            entry["scenario"].replace("_", " "),
            f"{entry['combinations']:,}",
            f"{entry['flights']:,}",
            number(100.0 * entry["rate"], 1),
            number(100.0 * entry["mixed"], 1),
        ]
        for entry in summary["flips"]
    ]


def pair_row(entry: Mapping[str, Any], titles: Mapping[str, str]) -> dict[str, Any]:
    """Compare two pilots flight against flight."""
    names = [titles.get(entry[part], entry[part]) for part in ("first", "second")]
    return {
        "pilots": f"{names[0]} minus {names[1]}",
        "pairs": entry["pairs"],
        "difference": f"{100 * entry['difference']:+.1f}" if entry["pairs"] else "",
        "interval": _points(entry["low"], entry["high"]),
        "layouts": _points(entry["layout_low"], entry["layout_high"]),
        "says": _says(entry, names),
        "first": entry["only_first"],
        "second": entry["only_second"],
    }


# ---- Tables of why flights failed, for the report and for its command: by cause, and layout by layout -----------------------

Entry = Mapping[str, Any]
WHY_HEADS = (
    "pilot",
    "scenario",
    "outcome",
    "cause",
    "flights",
    "of flights there [%]",
    "vehicles",
    "layouts",
    "way flown [%]",
    "height [m]",
    "after [s]",
    metric("tracking_rmse_m").heading(),
    metric("thrust_saturation").heading(),
)


def why_rows(failures: Sequence[Entry], titles: Mapping[str, str]) -> list[list[str]]:
    """Return cells under `WHY_HEADS`; ranges are the middle half of the flights, single numbers medians."""
    return [
        [
            titles.get(entry["pilot"], entry["pilot"]),
            entry["scenario"].replace("_", " "),
            entry["outcome"].replace("_", " "),
            entry["cause"],
            f"{entry['flights']:,}",
            number(100.0 * entry["flights"] / entry["of"], 1),
            ", ".join(f"{count} {name}" for name, count in entry["by_category"].items()),
            runs(entry["layouts"]),
            _range(entry["way"], 0, 100.0),
            _range(entry["height_m"], 1),
            _range(entry["time_s"], 1),
            number(entry["tracking_rmse_m"], 2),
            number(100.0 * entry["thrust_saturation"], 0),
        ]
        for entry in failures
    ]


def layout_heads(layouts: Sequence[Entry]) -> list[str]:
    """Return the heads of `layout_rows`: as many configurations as were flown anywhere."""
    return ["pilot", "scenario", *map(str, range(1, _last_configuration(layouts) + 1)), "all"]


def _last_configuration(layouts: Sequence[Entry]) -> int:
    return max((int(k) for entry in layouts for k in entry["rates"]), default=0)


def layout_rows(layouts: Sequence[Entry], titles: Mapping[str, str]) -> list[list[str]]:
    """Return cells under `layout_heads`: success in percent by configuration, "" where nothing was flown."""
    found, last = [], _last_configuration(layouts)
    for entry in layouts:
        rates, flights = entry["rates"], entry["flights"]
        cells = [number(100.0 * rates[str(k)], 0) if str(k) in rates else "" for k in range(1, last + 1)]
        whole = sum(rates[k] * flights[k] for k in rates) / sum(flights.values())
        head = [titles.get(entry["pilot"], entry["pilot"]), entry["scenario"].replace("_", " ")]
        found.append([*head, *cells, number(100.0 * whole, 1)])
    return found


def runs(numbers: Sequence[int]) -> str:
    """Return 1, 2, 3, 7 as "1 to 3, 7"."""
    parts: list[list[int]] = []
    for value in numbers:
        if parts and value == parts[-1][-1] + 1:
            parts[-1].append(value)
        else:
            parts.append([value])
    joined = [str(p[0]) if len(p) == 1 else f"{p[0]} to {p[-1]}" if len(p) > 2 else f"{p[0]}, {p[1]}" for p in parts]
    return ", ".join(joined)


def _range(quartiles: Sequence[float], digits: int, scale: float = 1.0) -> str:
    """Return the middle half; one number where both ends read alike."""
    low, _, high = (number(scale * value, digits) for value in quartiles)
    return low if low == high else f"{low} {DASH} {high}"


# -----------------------------------------------------------------------------------------------------------------------------

Row = Mapping[str, Any]
INDICATOR_LABELS = {"twr": "thrust to weight", "alpha_xy": "roll acceleration", "alpha_z": "yaw acceleration"}


def trends(summary: Mapping[str, Any], titles: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return Spearman's rank correlation of vehicles' success with each indicator, by pilot; what it says, in words."""
    found: dict[str, dict[str, Any]] = {}
    for entry in summary["correlations"]:
        row = found.setdefault(entry["pilot"], {"title": titles.get(entry["pilot"], entry["pilot"]), "cells": []})
        row["cells"].append({**entry, "words": _rho(entry), "says": _report_tables_says(entry)})
    return _defined(found)


def _defined(found: Mapping[Any, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows, none where not one correlation is defined: of too few vehicles there is none."""
    rows = list(found.values())
    return rows if any(isfinite(cell["value"]) for row in rows for cell in row["cells"]) else []


def trends_within(summary: Mapping[str, Any], titles: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the same within each category of vehicles; the title says which and how many."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for entry in summary["correlations_by_category"]:
        head = f"{titles.get(entry['pilot'], entry['pilot'])}, {entry['vehicles']} {entry['category']}"
        row = found.setdefault((entry["pilot"], entry["category"]), {"title": head, "cells": []})
        row["cells"].append({**entry, "words": _rho(entry), "says": _report_tables_says(entry)})
    return _defined(found)


def _rho(entry: Mapping[str, Any]) -> str:
    if not isfinite(entry["value"]):
        return "not defined"
    if not (isfinite(entry["low"]) and isfinite(entry["high"])):
        return f"{entry['value']:+.2f}"
    return f"{entry['value']:+.2f} ({entry['low']:+.2f} to {entry['high']:+.2f})"


def _report_tables_says(entry: Mapping[str, Any]) -> str:
    """Tell the trend: only an interval that leaves 0 out is one."""
    if not (isfinite(entry["low"]) and isfinite(entry["high"])):
        return ""
    return "rises" if entry["low"] > 0.0 else "falls" if entry["high"] < 0.0 else "no trend"


def planning(summary: Mapping[str, Any], rows: Sequence[Row], titles: Mapping[str, str], compute: str) -> list[dict[str, Any]]:
    """Return what calls of each pilot took: by the clock of the machine that flew, as the compute model has it, and as
    published [ms].

    A call is one in which there was work. The clock's mean is over calls of a batch, which share what batching saves.

    Args:
        summary: Of the benchmark: "motion" has simulated latencies [s], "seconds" the clock's.
        rows: Of the flights, whose number shares out the seconds of the clock.
        titles: What pilots are called, by name.
        compute: Name of the compute model.
    """
    found = []
    for pilot, motion in summary["motion"].items():
        took = summary["seconds"].get(pilot, {})
        calls = took.get("calls", 0.0)
        found.append(
            {
                "title": titles.get(pilot, pilot),
                "calls": int(calls),
                "clock": _ms(took.get("thinking", 0.0) / calls) if calls else "",
                "model": compute,
                **{name: _ms(motion[f"latency_{name}_s"]) for name in ("median", "p95", "max")},
                "each_s": _seconds(rows, pilot, took),
                "published": published_time(pilot),
            }
        )
    return found


PROPOSAL_COUNTS = ("proposals", "proposals_flown", "plans_flown")
"""As `airworthy.planners.hybrid.planner.COUNTS`, which would bring the planners along."""


def proposals(rows: Sequence[Row], titles: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return how often hybrids flew what was proposed and what was planned, per pilot that counts it.

    Args:
        rows: Of the flights, whose counted work says so.
        titles: What pilots are called, by name.
    """
    found: dict[str, Counter[str]] = {}
    for row in rows:
        work = json.loads(row.get("work") or "{}")
        if "proposals" in work:
            count = found.setdefault(row["pilot"], Counter())
            count.update({name: int(work.get(name, 0)) for name in PROPOSAL_COUNTS})
            count["flights"] += 1
    return [
        {
            "title": titles.get(pilot, pilot),
            "flights": count["flights"],
            **{name: count[name] for name in PROPOSAL_COUNTS},
            "share": _percent(count["proposals_flown"], count["proposals_flown"] + count["plans_flown"]),
        }
        for pilot, count in found.items()
    ]


def _percent(part: int, whole: int) -> str:
    return f"{100.0 * part / whole:.1f}" if whole else ""


def _seconds(rows: Sequence[Row], pilot: str, took: Mapping[str, float]) -> str:
    """Seconds of one process per flight by the clock, everything included."""
    flights = sum(row["pilot"] == pilot for row in rows)
    whole = took.get("flying", 0.0) + took.get("setup", 0.0)
    return f"{whole / flights:.2f}" if flights and whole else ""


def _ms(seconds: float) -> str:
    return f"{1000.0 * seconds:.3g}" if isfinite(seconds) and seconds > 0.0 else ""


def coverage(rows: Sequence[Row]) -> str:
    """Return what a run lacks of what the published rates are means over, in a sentence; "" where it is all there."""
    vehicles, layouts = {row["vehicle"] for row in rows}, {row["configuration"] for row in rows}
    if any(is_own(row.get("scenario", "")) for row in rows):
        return "Of places of one's own nothing is published: scores stand beside each other here, and nowhere else."
    held_out = any(row["layouts"] for row in rows)
    if vehicles == set(FLEET) and len(layouts) == CONFIGURATIONS and not held_out:
        return ""
    if held_out:
        return "Published rates are of other layouts than these, which were drawn anew."
    whole = f"{len(FLEET)} vehicles and {CONFIGURATIONS} layouts"
    sentence = f"Published rates are means over {whole}; here are {len(vehicles)} and {len(layouts)}."
    first = layouts == set(range(1, len(layouts) + 1)) and len(layouts) < CONFIGURATIONS
    return sentence + (
        " Layouts are ordered by difficulty, and these are the easiest: expect more success here." if first else ""
    )
