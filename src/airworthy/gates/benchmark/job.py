"""The job behind `airworthy bench gates`: courses -> plans -> certificates -> flights -> evidence, in one folder."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.files import lock_folder, make_folder, write_json
from airworthy.core.jobs.block_job import (
    SUMMARY_FILE,
    BlocksDone,
    describe_machine,
    done_of,
    keep_each,
    left_of,
    refuse_foreign,
)
from airworthy.core.jobs.progress import progress
from airworthy.evaluation.statistics import wilson_interval
from airworthy.gates.benchmark.blocks import MANIFEST_FILE, GatesStore, WorkBlock, blocks_of, worked
from airworthy.gates.benchmark.config import GatesBenchConfig, check, identity_of, quick
from airworthy.gates.benchmark.dense_check import dense_sum
from airworthy.gates.benchmark.families import FAMILIES, GatesMethod, flown_vehicle
from airworthy.gates.benchmark.predictions import us_per_gate
from airworthy.simulation import Randomization
from airworthy.simulation.posterior import draws_record
from airworthy.simulation.start_state import check_device

__all__ = ["SUMMARY_FILE", "GatesBenchmarked", "compared", "run_gates", "summary_of"]

# ---- From blocks to the numbers of a summary: rates with intervals, lap times, errors ---------------------------------------

Row = Mapping[str, Any]
# Source: spec/boundary_predictor section 13: unsafe errors beyond 5 % and 10 %; 0 counts all of them.
UNSAFE = (0.0, 5.0, 10.0)
"""Errors on the unsafe side beyond these count [%]."""


def course_row(content: Row) -> dict[str, Any]:
    """Return what a summary says of one course's plan."""
    made, laps = content["plan"], content["laps"]
    sure = made["certificate"]
    return {
        "course": content["course"],
        "gates": made["gates"],
        "flyable": made["flyable"],
        "reason": made["reason"],
        "stretches": int(sum(made["stretches"])),
        "lowered": int(sum(made["lowered"])),
        "clamped": made["clamped"],
        "laps": {name: lap["time"] if name != "plan" or made["flyable"] else None for name, lap in laps.items()},
        "verdicts": {name: lap["verdict"] for name, lap in laps.items() if "verdict" in lap},
        "passed": {name: lap["passed"] for name, lap in laps.items() if "passed" in lap},
        "sentences": [] if sure is None else sure["sentences"],
        "limit_used": content["row"]["limit_used"],
        "dense": content["dense"],
        "clearance_m": None if sure is None else sure["checks"]["clearance"]["bound"],
    }


def flights_row(rows: Sequence[Row]) -> dict[str, Any]:
    """Return rates and errors over flights; rates with 95 % intervals."""
    count = len(rows)
    crashed = sum(row["outcome"] == "collision" for row in rows)
    missed = [row for row in rows if row["outcome"] == "partial"]
    skipped = sum(row["skipped"] > 0 for row in missed)
    clean = sum(row["outcome"] == "success" for row in rows)
    return {
        "flights": count,
        "successes": clean,
        "crashes": crashed,
        "skips": skipped,
        "wrong_ways": sum(row["wrong_way"] > 0 for row in missed),
        "success": asdict(wilson_interval(clean, count)),
        "crash": asdict(wilson_interval(crashed, count)),
        "skip": asdict(wilson_interval(skipped, count)),
        "error_mean_m": _mean([row["error_mean_m"] for row in rows]),
        "error_mean_worst_m": _most([row["error_mean_m"] for row in rows]),
        "error_max_m": _most([row["error_max_m"] for row in rows]),
        "gate_offset_max_m": _most([row["gate_offset_m"] for row in rows]),
        "lap_time_s": _mean([row["lap_time_s"] for row in rows]),
    }


def random_row(blocks: Sequence[Row]) -> dict[str, Any]:
    """Return sums over all random courses: how plans came out, and flights by family."""
    plans = [row for block in blocks for row in block["plans"]]
    count = len(plans)
    approved = [row for row in plans if row["flyable"]]
    untouched = sum(row["untouched"] for row in approved)
    stretched = sum(not row["untouched"] and row["lowered"] == 0 for row in approved)
    violated = sum(row["verdict"] != "proven" for row in approved)
    reasons: dict[str, int] = {}
    for row in plans:
        if row["reason"]:
            first_part = row["reason"].split(" ")[0]
            reasons[first_part] = reasons.get(first_part, 0) + 1
    families = dict.fromkeys(name for block in blocks for name in block["flights"])
    flights = {name: [row for block in blocks for row in block["flights"][name]] for name in families}
    ratio = [row["lap_time_s"] / row["least_time_s"] for row in approved if row["least_time_s"]]
    compared = [row for row in approved if row["laps"]]
    return {
        "courses": count,
        "approved": asdict(wilson_interval(len(approved), count)),
        "approved_count": len(approved),
        "untouched": untouched,
        "stretched": stretched,
        "lowered": len(approved) - untouched - stretched,
        "refused": count - len(approved),
        "refused_for": reasons,
        "approved_but_not_proven": violated,
        "clamped_share": sum(row["clamped"] for row in plans) / max(1, sum(row["asked"] for row in plans)),
        "stretches": _mean([row["stretches"] for row in approved]),
        "lowerings": _mean([row["lowered"] for row in approved]),
        "lap_time_s": _mean([row["lap_time_s"] for row in approved]),
        "over_least": _mean(ratio),
        "against": {name: _mean(_ratios(compared, name)) for name in ("through_gates", "minimum_snap", "trapezoid")},
        "flights": {name: flights_row(rows) for name, rows in flights.items()},
    }


def _ratios(rows: Sequence[Row], name: str) -> list[float]:
    pairs = [(row["lap_time_s"], row["laps"][name]["time"]) for row in rows if name in row["laps"]]
    return [own / other for own, other in pairs if other]


def errors_row(content: Row) -> dict[str, Any]:
    """Return shares of unsafe errors per output, where their distributions lie [%], and the joint test."""
    percent = np.array([[np.nan if x is None else x for x in row] for row in content["percent"]], dtype=np.float64)
    table: dict[str, Any] = {name: content[name] for name in ("asked", "without_label", "clipped", "known")}
    for k, (name, sign) in enumerate((("speed", 1.0), ("time", -1.0))):
        own = percent[:, k] if len(percent) else np.zeros(0)
        zero = int(np.count_nonzero(~np.isfinite(own)))
        own = own[np.isfinite(own)]
        unsafe = {f"beyond_{limit:g}": asdict(wilson_interval(int(np.sum(sign * own > limit)), own.size)) for limit in UNSAFE}
        table[name] = {"count": int(own.size), "zero_labels": zero, **_shape(own), **unsafe}
    both = np.nan_to_num(percent * (1.0, -1.0), nan=-np.inf) if len(percent) else np.zeros((0, 2))
    table["either"] = {
        f"beyond_{limit:g}": asdict(wilson_interval(int(np.sum((both > limit).any(axis=1))), len(both))) for limit in UNSAFE
    }
    for name in ("predicted", "label"):
        kept = content.get(f"keep_{name}")
        table[f"keep_{name}"] = None if kept is None else asdict(wilson_interval(kept, content["known"]))
    return table


def _shape(values: Array) -> dict[str, float | None]:
    """Mean, median, quantiles and skewness (above zero: the long tail is on the right)."""
    if not values.size:
        return {"mean": None, "median": None, "low": None, "high": None, "skewness": None}
    low, median, high = np.quantile(values, (0.05, 0.5, 0.95))
    spread = float(values.std())
    skew = float(np.mean(((values - values.mean()) / spread) ** 3)) if spread > 0.0 else None
    return {"mean": float(values.mean()), "median": float(median), "low": float(low), "high": float(high), "skewness": skew}


def _finite(values: Any) -> Array:
    array = np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    return array[np.isfinite(array)]


def _mean(values: Any) -> float | None:
    known = _finite(values)
    return float(np.mean(known)) if known.size else None


def _most(values: Any) -> float | None:
    known = _finite(values)
    return float(np.max(known)) if known.size else None


# -----------------------------------------------------------------------------------------------------------------------------
# `summary.json` of a gates benchmark: the first method's numbers, the others' beside it, and all in one table.


def summary_of(
    config: GatesBenchConfig,
    methods: Sequence[GatesMethod],
    blocks: Sequence[WorkBlock],
    contents: Mapping[str, Row],
    digest: str,
) -> dict[str, Any]:
    """Return the content of summary.json.

    Args:
        config: Of the run.
        methods: All of them.
        blocks: Every block of the run.
        contents: Of the finished ones, by name.
        digest: Of what the numbers depend on.
    """
    rows = [_own(k, item, blocks, contents) for k, item in enumerate(methods)]
    limits = config.limits
    table = {name: value for name, value in asdict(limits).items() if value is not None and value != ()}
    state = {"complete": len(contents) == len(blocks), "blocks": len(blocks), "finished": len(contents), "digest": digest}
    return {
        **rows[0],
        "certificate": {"name": config.certificate, **table, "clearance": config.clearance, "floor": config.floor},
        "beside": rows[1:],
        "compared": compared(rows, [_laps(k, blocks, contents) for k in range(len(methods))]),
        "state": state,
        **({"vehicle": config.vehicle} if config.vehicle else {}),
        **_draws(config),
        "hardware": describe_machine(),
    }


def _draws(config: GatesBenchConfig) -> dict[str, Any]:
    """Return what is written down of draws from an identification; empty where none are drawn."""
    if config.randomize is None:
        return {}
    flown = {name: flown_vehicle(FAMILIES[name], config.vehicle) for name in config.families}
    records = list({item.name: item for item in flown.values()}.values())
    return {"randomize": config.randomize, **draws_record(records, Randomization(posterior=True))}


def _own(number: int, own: GatesMethod, blocks: Sequence[WorkBlock], contents: Mapping[str, Row]) -> dict[str, Any]:
    """Return one method's."""
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


def _laps(number: int, blocks: Sequence[WorkBlock], contents: Mapping[str, Row]) -> dict[str, dict[str, float]]:
    """Lap times of approved plans by kind and course [s]."""
    table: dict[str, dict[str, float]] = {"course": {}, "random": {}}
    for block in blocks:
        if block.who == number and block.name in contents and block.kind in table:
            content = contents[block.name]
            plans = [content["row"]] if block.kind == "course" else content["plans"]
            table[block.kind] |= {row["course"]: row["lap_time_s"] for row in plans if row["flyable"]}
    return table


def compared(rows: Sequence[Row], laps: Sequence[Mapping[str, Mapping[str, float]]]) -> list[dict[str, Any]]:
    """Return a line per method: what was approved, what it took, how fast, how it flew.

    Laps are compared on the courses that all of them have an approved plan for.

    Args:
        rows: Of the methods.
        laps: Of each: "course" and "random" -> course -> lap time [s].
    """
    shared = {kind: [name for name in laps[0][kind] if all(name in own[kind] for own in laps)] for kind in ("course", "random")}
    table = []
    for row, own in zip(rows, laps, strict=True):
        mean = {kind: float(np.mean([own[kind][name] for name in names])) if names else None for kind, names in shared.items()}
        random, errors = row["random"], row["errors"]
        table.append(
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
    return table


_RANDOM = ("courses", "approved", "approved_count", "untouched", "stretched", "lowered", "refused", "stretches", "lowerings")


def _rates(row: Row) -> dict[str, Any]:
    kept = ("flights", "successes", "crashes", "skips", "wrong_ways", "success", "error_mean_m", "error_max_m")
    return {key: row[key] for key in kept}


def _random_flights(random: Row) -> dict[str, Any]:
    return {"flights": {name: _rates(item) for name, item in random["flights"].items()}}


# -----------------------------------------------------------------------------------------------------------------------------


class GatesBenchmarked(BlocksDone):
    """What a run left."""


def run_gates(
    config: GatesBenchConfig,
    methods: Sequence[GatesMethod],
    quiet: bool = True,
    step: Callable[[str], None] | None = None,
) -> GatesBenchmarked:
    """Do what has not been done, and write the folder.

    Args:
        config: What to do.
        methods: Who predicts, the one that the report is about first; all on the same courses, under the same certificate,
            in flights with the same draws.
        quiet: Show no progress.
        step: Told the name of each block when it is kept.

    Raises:
        AirworthyError: With one sentence, if something cannot be done, or the folder holds something else.
    """
    check(config)
    config = quick(config)
    check_device(config.device)
    if not methods or len({item.name for item in methods}) != len(methods):
        raise AirworthyError("A benchmark needs predictors with names of their own, one or more.")
    refuse_foreign(config.out, MANIFEST_FILE)
    with lock_folder(make_folder(config.out)):
        store = GatesStore(config.out, identity_of(config, [item.identity for item in methods]))
        blocks = blocks_of(config, methods)
        finished = _worked(left_of(blocks, store), config, methods, quiet)
        interrupted = keep_each(finished, lambda block, content: store.keep(block.name, content), step)
        done = done_of(blocks, store)
        contents = {block.name: store.content(block.name) for block in done}
        summary = summary_of(config, methods, blocks, contents, store.digest)
        write_json(store.folder / SUMMARY_FILE, summary)
        report = None
        if config.report and done:
            from airworthy.gates.benchmark.report import write_report

            report = write_report(config, done, contents, store, summary)
    return GatesBenchmarked(Path(config.out), summary, len(done), len(blocks), interrupted, report)


def _worked(
    left: Sequence[WorkBlock], config: GatesBenchConfig, methods: Sequence[GatesMethod], quiet: bool
) -> Generator[tuple[WorkBlock, dict[str, Any]], None, None]:
    """Blocks, as they are finished."""
    for block in progress(left, "planning and flying", quiet=quiet):
        yield block, worked(block, config, methods)
