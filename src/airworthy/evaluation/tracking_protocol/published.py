"""What was published about real flights, beside which simulated ones are shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from math import nan
from typing import Any

__all__ = ["SOURCE", "PublishedRatio", "PublishedRow", "published_ratios", "published_row", "published_rows"]

SOURCE = "Low, Adang, Yu, Nagami, Schwager: SOUS VIDE (arXiv:2412.16346), real flights"


@dataclass(frozen=True)
class PublishedRow:
    """A row of Tables I to III."""

    table: str
    name: str
    flights: tuple[int, int, int, int, int]
    """Clean success, success with recovery, partial, failure without recovery, failure off course."""
    collisions_per_m: float
    tracking_error_m: float = nan
    proximity_percent: float = nan
    variant: str = ""
    """Of the network, in Table I."""

    @property
    def count(self) -> int:
        """Flights."""
        return sum(self.flights)

    @property
    def successes(self) -> int:
        """Clean and recovered ones."""
        return self.flights[0] + self.flights[1]


@dataclass(frozen=True)
class PublishedRatio:
    """Estimated ratio of one rotor's force to the mass [N/kg], over whole flights."""

    name: str
    mean: float
    std: float
    true: float


@lru_cache(maxsize=1)
def _data() -> Mapping[str, Any]:
    import tomllib

    return tomllib.loads(files("airworthy.evaluation.tracking_protocol").joinpath("published.toml").read_text("utf-8"))


@lru_cache(maxsize=1)
def published_rows() -> tuple[PublishedRow, ...]:
    """Every row, in the order of the paper."""
    return tuple(PublishedRow(**{**row, "flights": tuple(row["flights"])}) for row in _data()["row"])


def published_row(name: str) -> PublishedRow | None:
    """A row of Tables II and III by name; None where there is none."""
    return next((row for row in published_rows() if row.name == name and row.table != "I"), None)


def published_ratios() -> tuple[PublishedRatio, ...]:
    """Every estimate."""
    return tuple(PublishedRatio(**row) for row in _data()["ratio"])
