"""Rows of the tables of rates in a benchmark's report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airworthy.evaluation.navigation.published import differences, published_score
from airworthy.evaluation.navigation.report_numbers import interval, number

__all__ = ["category_rows", "difference_rows", "pair_row", "score_row"]

NONE = {"score": "", "variance": "", "final": "", "missing": ""}


def score_row(entry: Mapping[str, Any], summary: Mapping[str, Any], titles: Mapping[str, str]) -> dict[str, Any]:
    """A row of the table of scores, with what was published."""
    paper = published_score(entry["pilot"])
    iqm = next(c["interquartile_mean"] for c in summary["cells"] if c["pilot"] == entry["pilot"])
    return {
        "title": titles.get(entry["pilot"], entry["pilot"]),
        "score": number(entry["score"], 2),
        "variance": number(entry["variance"], 3),
        "final": number(entry["final"], 2),
        "absolute": number(entry["absolute"], 2),
        "iqm": number(100 * iqm, 1),
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
    """Rows of every rate beside the stated one, scenario by scenario; only comparable ones are marked as far off."""
    found = {(e["pilot"], e["scenario"]): e for e in summary["scenarios"]}
    table = []
    for item in differences({key: e["value"] for key, e in found.items()}):
        entry = found[item["pilot"], item["scenario"]]
        table.append(
            {
                "scenario": item["scenario"].replace("_", " "),
                "pilot": titles.get(item["pilot"], item["pilot"]),
                "rate": f"{100 * item['rate']:.1f}",
                "interval": interval(entry["low"], entry["high"]),
                "layouts": interval(entry["layout_low"], entry["layout_high"]),
                "stated": item["stated"].words,
                "off": "inside" if abs(item["off"]) < 5e-4 else f"{100 * item['off']:+.1f}",
                "far": item["far"] and comparable,
            }
        )
    order = list(dict.fromkeys(e["scenario"].replace("_", " ") for e in summary["scenarios"]))
    return sorted(table, key=lambda row: order.index(row["scenario"]))


def category_rows(summary: Mapping[str, Any], titles: Mapping[str, str]) -> dict[str, Any]:
    """Success on real and on virtual vehicles, by pilot."""
    names = list(dict.fromkeys(entry["category"] for entry in summary["categories"]))
    found = {(e["pilot"], e["category"]): e for e in summary["categories"]}
    rows = []
    for pilot in dict.fromkeys(entry["pilot"] for entry in summary["categories"]):
        cells = [found.get((pilot, name)) for name in names]
        told = [
            {"value": "", "interval": ""}
            if cell is None
            else {"value": f"{100 * cell['value']:.1f}", "interval": interval(cell["low"], cell["high"])}
            for cell in cells
        ]
        rows.append({"title": titles.get(pilot, pilot), "cells": told})
    return {"category_names": names, "categories": rows}


def pair_row(entry: Mapping[str, Any], titles: Mapping[str, str]) -> dict[str, Any]:
    """Two pilots flight against flight."""
    names = [titles.get(entry[part], entry[part]) for part in ("first", "second")]
    return {
        "pilots": f"{names[0]} minus {names[1]}",
        "pairs": entry["pairs"],
        "difference": f"{100 * entry['difference']:+.1f}" if entry["pairs"] else "",
        "interval": f"{100 * entry['low']:+.1f} to {100 * entry['high']:+.1f}" if entry["pairs"] else "",
        "first": entry["only_first"],
        "second": entry["only_second"],
    }
