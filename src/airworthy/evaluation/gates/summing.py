"""From blocks to the numbers of a summary: rates with intervals, lap times, errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.evaluation.statistics import wilson_interval

Array = NDArray[np.float64]
Row = Mapping[str, Any]
UNSAFE = (0.0, 5.0, 10.0)
"""Errors on the unsafe side beyond these count [%]."""


def course_row(content: Row) -> dict[str, Any]:
    """What a summary says of one course's plan."""
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
    """Rates and errors over flights; rates with 95 % intervals."""
    count = len(rows)
    crashed = sum(row["outcome"] == "collision" for row in rows)
    skipped = sum(row["skipped"] > 0 and row["outcome"] != "collision" for row in rows)
    clean = sum(row["outcome"] == "success" for row in rows)
    return {
        "flights": count,
        "successes": clean,
        "crashes": crashed,
        "skips": skipped,
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
    """Over all random courses: how plans came out, and flights by family."""
    plans = [row for block in blocks for row in block["plans"]]
    count = len(plans)
    approved = [row for row in plans if row["flyable"]]
    untouched = sum(row["untouched"] for row in approved)
    stretched = sum(not row["untouched"] and row["lowered"] == 0 for row in approved)
    violated = sum(row["verdict"] != "proven" for row in approved)
    reasons: dict[str, int] = {}
    for row in plans:
        if row["reason"]:
            word = row["reason"].split(" ")[0]
            reasons[word] = reasons.get(word, 0) + 1
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
    """Shares of unsafe errors per output, where their distributions lie [%], and the joint test."""
    percent = np.array([[np.nan if x is None else x for x in row] for row in content["percent"]], dtype=np.float64)
    told: dict[str, Any] = {name: content[name] for name in ("asked", "without_label", "clipped", "known")}
    for k, (name, sign) in enumerate((("speed", 1.0), ("time", -1.0))):
        own = percent[:, k] if len(percent) else np.zeros(0)
        zero = int(np.count_nonzero(~np.isfinite(own)))
        own = own[np.isfinite(own)]
        unsafe = {f"beyond_{limit:g}": asdict(wilson_interval(int(np.sum(sign * own > limit)), own.size)) for limit in UNSAFE}
        told[name] = {"count": int(own.size), "zero_labels": zero, **_shape(own), **unsafe}
    both = np.nan_to_num(percent * (1.0, -1.0), nan=-np.inf) if len(percent) else np.zeros((0, 2))
    told["either"] = {
        f"beyond_{limit:g}": asdict(wilson_interval(int(np.sum((both > limit).any(axis=1))), len(both))) for limit in UNSAFE
    }
    for name in ("predicted", "label"):
        kept = content.get(f"keep_{name}")
        told[f"keep_{name}"] = None if kept is None else asdict(wilson_interval(kept, content["known"]))
    return told


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
