"""Tables of why flights failed, for the report and for its command: by cause, and layout by layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airworthy.evaluation.navigation.plan import CONFIGURATIONS
from airworthy.evaluation.navigation.report_numbers import DASH, number

__all__ = ["LAYOUT_HEADS", "WHY_HEADS", "layout_rows", "why_rows"]

Entry = Mapping[str, Any]
WHY_HEADS = (
    "pilot",
    "scenario",
    "outcome",
    "cause",
    "flights",
    "of all there [%]",
    "vehicles",
    "layouts",
    "way behind them [%]",
    "height [m]",
    "after [s]",
    "off the set-point [m]",
    "rotors saturated [%]",
)
LAYOUT_HEADS = ("pilot", "scenario", *(str(k) for k in range(1, CONFIGURATIONS + 1)), "all")


def why_rows(failures: Sequence[Entry], titles: Mapping[str, str]) -> list[list[str]]:
    """Cells under `WHY_HEADS`; ranges are the middle half of the flights, single numbers medians."""
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


def layout_rows(layouts: Sequence[Entry], titles: Mapping[str, str]) -> list[list[str]]:
    """Cells under `LAYOUT_HEADS`: success in percent by configuration, "" where nothing was flown."""
    found = []
    for entry in layouts:
        rates, flights = entry["rates"], entry["flights"]
        cells = [number(100.0 * rates[str(k)], 0) if str(k) in rates else "" for k in range(1, CONFIGURATIONS + 1)]
        whole = sum(rates[k] * flights[k] for k in rates) / sum(flights.values())
        head = [titles.get(entry["pilot"], entry["pilot"]), entry["scenario"].replace("_", " ")]
        found.append([*head, *cells, number(100.0 * whole, 1)])
    return found


def runs(numbers: Sequence[int]) -> str:
    """1, 2, 3, 7 as "1 to 3, 7"."""
    parts: list[list[int]] = []
    for value in numbers:
        if parts and value == parts[-1][-1] + 1:
            parts[-1].append(value)
        else:
            parts.append([value])
    joined = [str(p[0]) if len(p) == 1 else f"{p[0]} to {p[-1]}" if len(p) > 2 else f"{p[0]}, {p[1]}" for p in parts]
    return ", ".join(joined)


def _range(quartiles: Sequence[float], digits: int, scale: float = 1.0) -> str:
    """The middle half; one number where both ends read alike."""
    low, _, high = (number(scale * value, digits) for value in quartiles)
    return low if low == high else f"{low} {DASH} {high}"
