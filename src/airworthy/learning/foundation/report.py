"""The page of a policy for all quadrotors: what it took, and what became of every vehicle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from airworthy.core.files import write_text
from airworthy.learning.gradient.report import flat_options
from airworthy.reports.page import DASH, card, fixed, page_of
from airworthy.reports.svg import Line, lines

__all__ = ["COLUMNS", "fleet_cells", "write_foundation_report"]

COLUMNS = (
    "mass [kg]",
    "thrust to weight",
    "kept [%]",
    "median error [cm]",
    "95 % error [cm]",
    "held",
    "tour, mean distance [cm]",
    "tour, 95 % of largest [cm]",
    "tour flown",
)


def write_foundation_report(path: Path, found: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]]) -> Path:
    """Write the page.

    Args:
        path: Of the page.
        found: What `summary.json` holds.
        metrics: Of the training log.
    """
    wall = [(row["wall_s"], row["cost"]) for row in metrics]
    gone = [(b["wall_s"], float(b["lost"] - a["lost"])) for a, b in pairwise(metrics)]
    # A judging without the tour has no columns of it.
    shown = COLUMNS if "tour_flown" in found else tuple(name for name in COLUMNS if not name.startswith("tour"))
    page = page_of(
        "airworthy.learning.foundation",
        found=found,
        cards=_cards(found),
        curves=[
            ("Cost per step", lines("cost", "wall time [s]", [Line("cost", "flown", wall)])),
            ("Flights lost since the point before", lines("lost", "wall time [s]", [Line("lost", "bad", gone)], False)),
        ],
        columns=shown,
        rows=[(row["vehicle"], fleet_cells(row)[: len(shown)], row.get("refused", "")) for row in found["vehicles"]],
        split=[(name.removesuffix("_s").replace("_", " "), fixed(s, 2)) for name, s in found["seconds"].items()],
        options=flat_options(found["options"]),
    )
    return write_text(path, page)


def _cards(found: Mapping[str, Any]) -> list[dict[str, str]]:
    worst, speed = found["worst_median_error_m"], f"{found['env_steps_per_s'] / 1e6:.1f} M/s"
    cards = [
        card("learning took", fixed(found["training_wall_s"], 1), "s", f"{found['training_cpu_s']:.1f} s of processor time"),
        card(
            "quadrotors held",
            f"{found['held']} of {found['quadrotors']}",
            "",
            "95 % of flights within bounds",
        ),
        card("worst median error", DASH if worst is None else fixed(100.0 * worst, 1), "cm", "of all vehicles"),
        card("numbers in the network", f"{found['weights']:,}", "", "for every vehicle the same"),
        card("flown in training", f"{found['env_steps'] / 1e6:.1f} M", "steps", speed),
    ]
    if "tour_flown" in found:
        cards.insert(2, card("fly the tour", f"{found['tour_flown']} of {found['quadrotors']}", "", "a path nobody trained"))
    return cards


def fleet_cells(row: Mapping[str, Any]) -> list[str]:
    """Write a vehicle's figures as the cells of `COLUMNS`; of one that is refused only what is known of it."""

    def scaled(name: str, by: float, digits: int) -> str:
        value = row.get(name)
        return DASH if value is None else fixed(by * value, digits)

    def said(name: str) -> str:
        return DASH if name not in row else "yes" if row[name] else "no"

    return [
        scaled("mass_kg", 1.0, 3),
        scaled("thrust_to_weight", 1.0, 2),
        scaled("kept_percent", 1.0, 2),
        scaled("median_error_m", 100.0, 2),
        scaled("p95_error_m", 100.0, 2),
        said("held"),
        scaled("tour_median_error_m", 100.0, 1),
        scaled("tour_p95_largest_m", 100.0, 1),
        said("tour_flown"),
    ]
