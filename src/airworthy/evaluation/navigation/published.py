"""What was published, beside which our results are shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["SOURCE", "StatedRate", "differences", "published_score", "published_time", "stated_rate"]

WITHIN = 0.10
"""Farther than this from a stated rate is worth an explanation."""
_WORDS = {"=": "", "~": "about ", ">": "above ", "<": "below "}


@dataclass(frozen=True)
class StatedRate:
    """A rate that the running text states, 0 to 1."""

    value: float
    relation: str
    """"=" stated, "~" about, ">" above, "<" below, "-" between `low` and `high`."""
    low: float = float("nan")
    high: float = float("nan")

    def off(self, rate: float) -> float:
        """How far a rate lies outside of what is stated; 0 inside."""
        if self.relation == ">":
            return min(0.0, rate - self.value)
        if self.relation == "<":
            return max(0.0, rate - self.value)
        if self.relation == "-":
            return min(0.0, rate - self.low) + max(0.0, rate - self.high)
        return rate - self.value

    @property
    def words(self) -> str:
        """For people, in percent."""
        if self.relation == "-":
            return f"{100 * self.low:.0f} to {100 * self.high:.0f}"
        return f"{_WORDS[self.relation]}{100 * self.value:.0f}"


@cache
def _data() -> Mapping[str, Any]:
    import tomllib

    return tomllib.loads(files("airworthy.evaluation.navigation").joinpath("published.toml").read_text("utf-8"))


SOURCE: str = _data()["source"]


def published_score(pilot: str) -> Mapping[str, Any] | None:
    """Row of Table II of a pilot: score, variance, final, and what is missing; None where it has none."""
    found: Mapping[str, Any] | None = _data()["table"].get(pilot)
    return found


def published_time(pilot: str) -> str:
    """Median planning time per call on one thread [ms], in words; "" where none was published."""
    return str(_data()["planning_ms"].get(pilot, ""))


def stated_rate(pilot: str, scenario: str) -> StatedRate | None:
    """What the text says of a pilot in a scenario; None where it says nothing."""
    found = _data()["rates"].get(pilot, {}).get(scenario)
    return None if found is None else StatedRate(**found)


def differences(rates: Mapping[tuple[str, str], float]) -> list[dict[str, Any]]:
    """Every rate beside the stated one, and how far it is off."""
    found = []
    for (pilot, scenario), rate in rates.items():
        told = stated_rate(pilot, scenario)
        if told is not None:
            off = told.off(rate)
            entry = {"pilot": pilot, "scenario": scenario, "rate": rate, "stated": told}
            found.append({**entry, "off": off, "far": abs(off) > WITHIN})
    return found
