"""Published gain sets, kept as data files beside this module, each with its source."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.errors import unknown_name

_FOLDER = Path(__file__).parent / "gains"

Value = float | tuple[float, ...]


@dataclass(frozen=True)
class GainSet:
    """Named gains of one control law, each a range; fixed gains have equal ends."""

    name: str
    law: str
    """"geometric", "rate_loop" or "mellinger"."""
    source: str
    minimum: dict[str, Value]
    maximum: dict[str, Value]
    limits: dict[str, float] = field(default_factory=dict)
    """Constants that come with the gains: inclination_max [rad], yaw_rate_max [rad/s], cutoff_hz, ..."""

    def midpoint(self) -> dict[str, Any]:
        """The gains to use when they are not randomised, by field name of the law's parameters."""
        return self._between(lambda low, high: 0.5 * (low + high))

    def sample(self, rng: np.random.Generator, count: int) -> dict[str, Any]:
        """Gains drawn uniformly within their ranges, every number an array of shape (count,)."""
        return self._between(lambda low, high: rng.uniform(low, high, count))

    def _between(self, pick: Any) -> dict[str, Any]:
        gains: dict[str, Any] = {}
        for name, low in self.minimum.items():
            high = self.maximum[name]
            if isinstance(low, tuple) and isinstance(high, tuple):
                gains[name] = tuple(pick(a, b) for a, b in zip(low, high, strict=True))
            else:
                gains[name] = pick(low, high)
        return gains


def gain_set_names() -> list[str]:
    """Every published gain set, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def gain_set(name: str) -> GainSet:
    """A published gain set by its name; ranges come sorted, whatever their source printed.

    Raises:
        UnknownNameError: No such set.
    """
    if name not in gain_set_names():
        raise unknown_name("gain set", name, gain_set_names())
    return _read(_FOLDER / f"{name}.toml")


@cache
def _read(path: Path) -> GainSet:
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    minimum: dict[str, Value] = {}
    maximum: dict[str, Value] = {}
    for name, value in table.get("values", {}).items():
        minimum[name] = maximum[name] = tuple(value) if isinstance(value, list) else value
    for name, ends in table.get("ranges", {}).items():
        pairs = [sorted(pair) for pair in zip(ends["minimum"], ends["maximum"], strict=True)]
        minimum[name], maximum[name] = tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)
    return GainSet(table["name"], table["law"], table["source"], minimum, maximum, table.get("limits", {}))
