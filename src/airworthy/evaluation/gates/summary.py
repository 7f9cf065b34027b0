"""`summary.json` of a gates benchmark: the first contestant's numbers, the others' beside it, and all in one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from airworthy.evaluation.gates.blocks import Block
from airworthy.evaluation.gates.config import GatesConfig
from airworthy.evaluation.gates.contestants import Contestant
from airworthy.evaluation.gates.dense import dense_sum
from airworthy.evaluation.gates.predicting import us_per_gate
from airworthy.evaluation.gates.summing import course_row, errors_row, flights_row, random_row
from airworthy.evaluation.machine import describe_machine

__all__ = ["compared", "summary_of"]

Row = Mapping[str, Any]


def summary_of(
    config: GatesConfig, contestants: Sequence[Contestant], blocks: Sequence[Block], contents: Mapping[str, Row], digest: str
) -> dict[str, Any]:
    """Content of summary.json.

    Args:
        config: Of the run.
        contestants: All of them.
        blocks: Every block of the run.
        contents: Of the finished ones, by name.
        digest: Of what the numbers depend on.
    """
    rows = [_own(k, item, blocks, contents) for k, item in enumerate(contestants)]
    limits = config.limits
    told = {name: value for name, value in vars(limits).items() if value is not None}
    state = {"complete": len(contents) == len(blocks), "blocks": len(blocks), "finished": len(contents), "digest": digest}
    return {
        **rows[0],
        "certificate": {"name": config.certificate, **told, "clearance": config.clearance, "floor": config.floor},
        "beside": rows[1:],
        "compared": compared(rows, [_laps(k, blocks, contents) for k in range(len(contestants))]),
        "state": state,
        "hardware": describe_machine(),
    }


def _own(number: int, own: Contestant, blocks: Sequence[Block], contents: Mapping[str, Row]) -> dict[str, Any]:
    """One contestant's."""
    mine: dict[str, list[Row]] = {}
    for block in blocks:
        if block.who == number and block.name in contents:
            mine.setdefault(block.kind, []).append(contents[block.name])
    flights = mine.get("flights", [])
    flown = [item for item in flights if item["rows"]]
    dense = [item["dense"] for item in mine.get("course", []) if item["dense"]]
    dense += [row["dense"] for item in mine.get("random", []) for row in item["plans"] if row["dense"]]
    return {
        "name": own.name,
        "predictor": dict(own.identity),
        "courses": [course_row(item) for item in mine.get("course", [])],
        "flights": [{"course": item["course"], "family": item["family"], **flights_row(item["rows"])} for item in flown],
        "random": random_row(mine["random"]) if "random" in mine else None,
        "errors": errors_row(mine["errors"][0]) if "errors" in mine else None,
        "aggregate": _together(flights),
        "dense": dense_sum(dense),
        "prediction_us_per_gate": us_per_gate(own),
    }


def _together(flights: Sequence[Row]) -> dict[str, Any]:
    """Over all courses, by family."""
    families = dict.fromkeys(item["family"] for item in flights)
    rows = {name: [row for item in flights if item["family"] == name for row in item["rows"]] for name in families}
    return {name: flights_row(own) for name, own in rows.items() if own}


def _laps(number: int, blocks: Sequence[Block], contents: Mapping[str, Row]) -> dict[str, dict[str, float]]:
    """Lap times of approved plans by kind and course [s]."""
    told: dict[str, dict[str, float]] = {"course": {}, "random": {}}
    for block in blocks:
        if block.who == number and block.name in contents and block.kind in told:
            content = contents[block.name]
            plans = [content["row"]] if block.kind == "course" else content["plans"]
            told[block.kind] |= {row["course"]: row["lap_time_s"] for row in plans if row["flyable"]}
    return told


def compared(rows: Sequence[Row], laps: Sequence[Mapping[str, Mapping[str, float]]]) -> list[dict[str, Any]]:
    """A line per contestant: what was approved, what it took, how fast, how it flew.

    Laps are compared on the courses that all of them have an approved plan for.

    Args:
        rows: Of the contestants.
        laps: Of each: "course" and "random" -> course -> lap time [s].
    """
    shared = {kind: [name for name in laps[0][kind] if all(name in own[kind] for own in laps)] for kind in ("course", "random")}
    told = []
    for row, own in zip(rows, laps, strict=True):
        mean = {kind: float(np.mean([own[kind][name] for name in names])) if names else None for kind, names in shared.items()}
        random, errors = row["random"], row["errors"]
        told.append(
            {
                "name": row["name"],
                "courses": len(row["courses"]),
                "courses_approved": sum(item["flyable"] for item in row["courses"]),
                "stretches": sum(item["stretches"] for item in row["courses"] if item["flyable"]),
                "lowered": sum(item["lowered"] for item in row["courses"] if item["flyable"]),
                "shared": {kind: len(names) for kind, names in shared.items()},
                "lap_mean_s": mean,
                "flights": {name: _rates(item) for name, item in row["aggregate"].items()},
                "random": None if random is None else {key: random[key] for key in _RANDOM} | _random_flights(random),
                "dense_broken": row["dense"]["broken"],
                "dense_plans": row["dense"]["plans"],
                "unsafe_speed": errors["speed"] if errors else None,
                "unsafe_time": errors["time"] if errors else None,
                "keep": errors["keep_predicted"] if errors else None,
                "us_per_gate": row["prediction_us_per_gate"],
            }
        )
    return told


_RANDOM = ("courses", "approved", "approved_count", "untouched", "stretched", "lowered", "refused", "stretches", "lowerings")


def _rates(row: Row) -> dict[str, Any]:
    return {key: row[key] for key in ("flights", "successes", "crashes", "skips", "success", "error_mean_m", "error_max_m")}


def _random_flights(random: Row) -> dict[str, Any]:
    return {"flights": {name: _rates(item) for name, item in random["flights"].items()}}
