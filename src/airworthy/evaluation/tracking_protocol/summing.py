"""The content of an evaluation's `summary.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from airworthy import __version__
from airworthy.evaluation.tracking_protocol.adaptation import check_formula
from airworthy.evaluation.tracking_protocol.conditions import Condition
from airworthy.evaluation.tracking_protocol.config import EvaluateConfig, command_line
from airworthy.evaluation.tracking_protocol.published import SOURCE, published_ratios, published_row, published_rows
from airworthy.evaluation.tracking_protocol.tables import OPTIONS, adaptation_of, condition_row, paired, select
from airworthy.vehicles import vehicle

__all__ = ["papers", "summarize"]

Row = Mapping[str, Any]
PUBLISHED_COURSE = "robustness"
"""On which the paper's conditions were flown, but those with courses of their own."""


def summarize(rows: Sequence[Row], conditions: Sequence[Condition], config: EvaluateConfig) -> dict[str, Any]:
    """Build it, keys in a stable order.

    Args:
        rows: Of all finished flights.
        conditions: Of the run, in order.
        config: Of the run.
    """
    return {
        "version": __version__,
        "command": command_line(config),
        "protocol": asdict(config.protocol),
        "spread": asdict(config.spread),
        "statistics": {**OPTIONS, "rates": "Wilson score", "means": "bootstrap percentile, widened for small samples"},
        "flights": [{"vehicle": config.vehicle, "seed": config.seed, **row} for row in rows],
        "aggregate": _aggregates(rows, conditions, config.course == PUBLISHED_COURSE),
        "published": {"source": SOURCE, "rows": [asdict(row) for row in published_rows()]},
        "against_first_pilot": _against_pilot(rows, conditions),
        "against_baseline": _against_baseline(rows, conditions),
        "adaptation": {
            "estimates": adaptation_of(rows),
            "published": [asdict(row) for row in published_ratios()],
            "formula": [asdict(item) for item in check_formula(vehicle(config.vehicle))],
        },
    }


def papers(conditions: Sequence[Condition]) -> dict[str, tuple[str, ...]]:
    """Rows of the paper that several conditions stand beside, and these conditions' names."""
    named = dict.fromkeys(item.paper for item in conditions if item.paper)
    groups = {paper: tuple(item.name for item in conditions if item.paper == paper) for paper in named}
    return {paper: names for paper, names in groups.items() if len(names) > 1}


def _aggregates(rows: Sequence[Row], conditions: Sequence[Condition], published: bool) -> list[dict[str, Any]]:
    """One entry per condition, family and pilot, and one per group of conditions that is a row of the paper.

    What was flown on another course than the paper's (not `published`) has no row of it beside it.
    """
    found = []
    wanted: list[tuple[str, str, tuple[str, ...], str]] = [
        (item.name, item.title, (item.name,), item.paper if published or item.course else "") for item in conditions
    ]
    wanted += [(f"all:{paper}", paper, names, paper) for paper, names in papers(conditions).items()]
    several = papers(conditions)
    for name, title, names, paper in wanted:
        beside = published_row(paper) if paper and (len(names) > 1 or paper not in several) else None
        for family in dict.fromkeys(row["family"] for row in rows):
            for pilot in dict.fromkeys(row["pilot"] for row in rows):
                mine = select(rows, condition=names, family=family, pilot=pilot)
                if mine:
                    head = {"condition": name, "title": title, "family": family, "pilot": pilot, "variant": mine[0]["variant"]}
                    found.append({**head, **condition_row(mine), "published": None if beside is None else asdict(beside)})
    return found


def _against_pilot(rows: Sequence[Row], conditions: Sequence[Condition]) -> list[dict[str, Any]]:
    """Every other pilot minus the first, flight by flight."""
    pilots = list(dict.fromkeys(row["pilot"] for row in rows))
    found = []
    for item in conditions:
        for family in dict.fromkeys(row["family"] for row in rows):
            first = select(rows, condition=item.name, family=family, pilot=pilots[0]) if pilots else []
            for pilot in pilots[1:]:
                mine = select(rows, condition=item.name, family=family, pilot=pilot)
                if mine and first:
                    head = {"condition": item.name, "family": family, "pilot": pilot, "minus": pilots[0]}
                    found.append({**head, **paired(mine, first)})
    return found


def _against_baseline(rows: Sequence[Row], conditions: Sequence[Condition]) -> list[dict[str, Any]]:
    """Every condition minus the baseline, flight by flight, where they share a course."""
    found = []
    for pilot in dict.fromkeys(row["pilot"] for row in rows):
        for family in dict.fromkeys(row["family"] for row in rows):
            base = select(rows, condition="baseline", family=family, pilot=pilot)
            for item in conditions:
                mine = select(rows, condition=item.name, family=family, pilot=pilot)
                told = paired(mine, base) if mine and base and item.name != "baseline" else {"pairs": 0}
                if told["pairs"]:
                    found.append({"condition": item.name, "family": family, "pilot": pilot, "minus": "baseline", **told})
    return found
