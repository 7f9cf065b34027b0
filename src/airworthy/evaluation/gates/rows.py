"""Numbers as JSON has them, and small; rows of flights and of plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from airworthy.evaluation.gates.flying import Flown
from airworthy.pilots.boundary.plans import BoundaryPlan
from airworthy.tasks.gates import FLOOR

__all__ = ["number", "plan_row", "rows_of", "short"]


def rows_of(flown: Flown, names: Sequence[str] = ()) -> list[dict[str, Any]]:
    """One row per flight."""
    r = flown.results
    outcomes, laps, skipped = r.outcomes, r.lap_time, r.skipped
    rows = []
    for k in range(len(outcomes)):
        into = "" if not r.crashed[k] else "floor" if r.crash_into[k] == FLOOR else f"gate {r.crash_into[k] + 1}"
        row: dict[str, Any] = {"course": names[k]} if names else {}
        rows.append(
            row
            | {
                "flight": k,
                "outcome": str(outcomes[k]),
                "skipped": int(skipped[k]),
                "into": into,
                "lap_time_s": number(laps[k]),
                "error_mean_m": number(flown.error_mean[k]),
                "error_max_m": number(flown.error_max[k]),
                "gate_offset_m": number(np.nanmax(np.abs(r.offsets[k]), initial=0.0)),
                "mass_kg": number(flown.mass[k]),
            }
        )
    return rows


def plan_row(made: BoundaryPlan) -> dict[str, Any]:
    """How a plan came out, in short."""
    sure = made.certificate
    # As the predictor said it, before any mending: does that keep the limit?
    untouched = bool(np.all(made.stretched == 0) and np.all(made.lowered == 0))
    return {
        "course": made.name,
        "flyable": made.flyable,
        "reason": made.reason,
        "untouched": untouched,
        "stretches": int(np.sum(made.stretched)),
        "lowered": int(np.sum(made.lowered)),
        "clamped": made.clamped,
        "asked": len(made.situations),
        "lap_time_s": number(made.lap_time),
        "limit_used": number(limit_used(made)),
        "clearance_m": number(sure.clearance.bound if sure else np.nan),
        "verdict": sure.verdict if sure else "",
    }


def limit_used(made: BoundaryPlan) -> float:
    """Largest proved share of any limit; NaN without a path."""
    if made.certificate is None:
        return float("nan")
    checks = made.certificate.limit.checks
    return max(
        check.bound / check.limit if check.sense == "at most" else check.limit / max(check.bound, 1e-9) for check in checks
    )


def short(values: Any, digits: int = 4) -> Any:
    """Rounded lists: figures need no more, and files stay small."""
    return np.round(np.asarray(values, dtype=np.float64), digits).tolist()


def number(value: Any) -> float | None:
    """A plain number; None where it is not finite, as JSON has it."""
    return float(value) if np.isfinite(value) else None
