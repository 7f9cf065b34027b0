"""Processor time of pilots: of commands, which nobody is charged, and of work beside them, which is.

No two runs take the same time, so nothing of it stands in a row of the results or in summary.json, which are the same bytes for
the same command; it has a file of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayLike
from airworthy.race.background import Charge
from airworthy.race.benchmark.flight import RaceFlight
from airworthy.race.pilots.catalogue import PilotEntry

TIMING_FILE = "timing.json"


def flight_timing(pilot: str, flight: RaceFlight) -> dict[str, Any]:
    """Return what a flight took, as JSON has it.

    Args:
        pilot: Its word.
        flight: As it was flown.
    """
    # Of another's program no processor time is known.
    spent = flight.command_cpu_s[np.isfinite(flight.command_cpu_s)]
    return {
        "pilot": pilot,
        "course": flight.course,
        "commands": len(spent),
        "commands_cpu_s": float(spent.sum()),
        "command_median_s": _quantile(spent, 0.5),
        "command_p99_s": _quantile(spent, 0.99),
        "plans_cpu_s": [record.cpu_s for record in flight.planned],
        "plans_failed": sum(record.failed for record in flight.planned),
    }


def pilot_timing(entry: PilotEntry, charge: Charge, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a pilot's processor time over all its flights.

    Args:
        entry: The pilot.
        charge: Of work beside commands.
        rows: Of its flights, as of `flight_timing`; at least one.
    """
    commands = sum(row["commands"] for row in rows)
    total = sum(row["commands_cpu_s"] for row in rows)
    plans = [seconds for row in rows for seconds in row["plans_cpu_s"]]
    mean = total / commands if commands else None
    return {
        "pilot": entry.name,
        "flights": len(rows),
        "command": {
            "count": commands,
            "mean_s": mean,
            # Of flights' own quantiles: single commands are not kept.
            "median_s": _quantile([row["command_median_s"] for row in rows if row["commands"]], 0.5),
            "p99_worst_flight_s": _quantile([row["command_p99_s"] for row in rows if row["commands"]], 1.0),
            "share_of_period": None if mean is None else mean * entry.rate,
            "charged": False,
        },
        "planning": {
            "count": len(plans),
            "median_s": _quantile(plans, 0.5),
            "p90_s": _quantile(plans, 0.9),
            "max_s": _quantile(plans, 1.0),
            "charged": charge,
            "failed": sum(row["plans_failed"] for row in rows),
        }
        if entry.plans
        else None,
    }


def timing_text(row: Mapping[str, Any]) -> str:
    """Return a pilot's processor time in a sentence or two; empty where none is known.

    Args:
        row: As of `pilot_timing`.
    """
    command, planning = row["command"], row["planning"]
    if not command["count"]:
        return ""
    text = (
        f"Processor time of a command {_milli(command['mean_s'])}, {100.0 * command['share_of_period']:.0f} % of its period"
        f" (99 % within {_milli(command['p99_worst_flight_s'])} in the slowest flight), not charged."
    )
    if planning is None or not planning["count"]:
        return text
    charged = "as measured" if planning["charged"] == "measured" else f"{planning['charged']:g} s each"
    spread = f"90 % within {_milli(planning['p90_s'])}, the longest {_milli(planning['max_s'])}"
    nowhere = f"; {planning['failed']} led nowhere" if planning["failed"] else "; none led nowhere"
    return f"{text} {planning['count']} plans of {_milli(planning['median_s'])} ({spread}), charged {charged}{nowhere}."


def _milli(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"


def _quantile(values: ArrayLike, share: float) -> float | None:
    array = np.asarray(values, np.float64)
    return float(np.quantile(array, share)) if array.size else None
