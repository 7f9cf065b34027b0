"""Gain sets: published ones, kept as data files beside this module with their sources, and a user's own in such files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from airworthy.control.allocation import Priority
from airworthy.core.errors import AirworthyError, AssetError, unknown_name
from airworthy.core.files import read_toml, write_text
from airworthy.core.schema import Bound, number
from airworthy.core.table_schema import TableSchema, toml_value, unknown_key

GEOMETRIC_GAINS: dict[str, tuple[int, str]] = {
    "position_gain": (3, "1/s^2"),
    "velocity_gain": (3, "1/s"),
    "attitude_gain": (3, "N m"),
    "rate_gain": (3, "N m s"),
}
"""Gains of the geometric law: how many numbers (per axis x, y, z) and their unit."""
GEOMETRIC_LIMITS: dict[str, tuple[int, str]] = {
    "inclination_max": (1, "rad"),
    "yaw_rate_max": (1, "rad/s"),
    "thrust_max": (1, "N"),
    "pull_max": (2, "m/s^2"),
}
"""Constants that go with them: how many numbers and their unit; 0 is no limit, see `GeometricParameters`."""
# Ours: no gain of a flying robot is as large; a file with a larger one has another unit. Texts are names and sources.
_LARGEST = 1e6
_SCHEMA = TableSchema(entries_max=64, list_max=16, text_max=2000)

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
    limits: dict[str, Any] = field(default_factory=dict)
    """Constants that come with the gains: inclination_max [rad], yaw_rate_max [rad/s], cutoff_hz, ..."""
    priority: Priority | None = None
    """What allocation serves first where rotors saturate (`ControlConfig.priority`); None: the set does not say."""

    def midpoint(self) -> dict[str, Any]:
        """Return the gains to use when they are not randomised, by field name of the law's parameters."""
        return self._between(lambda low, high: 0.5 * (low + high))

    def sample(self, rng: np.random.Generator, count: int) -> dict[str, Any]:
        """Return gains drawn uniformly within their ranges, every number an array of shape (count,)."""
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
    """Return every published gain set, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def gain_set(name: str) -> GainSet:
    """Return a published gain set by its name; ranges come sorted, whatever their source printed.

    Raises:
        UnknownNameError: No such set.
    """
    if name not in gain_set_names():
        raise unknown_name("gain set", name, gain_set_names())
    return _read(_FOLDER / f"{name}.toml")


@cache
def _read(path: Path) -> GainSet:
    table = read_toml(path)
    minimum: dict[str, Value] = {}
    maximum: dict[str, Value] = {}
    for name, value in table.get("values", {}).items():
        minimum[name] = maximum[name] = tuple(value) if isinstance(value, list) else value
    for name, ends in table.get("ranges", {}).items():
        pairs = [sorted(pair) for pair in zip(ends["minimum"], ends["maximum"], strict=True)]
        minimum[name], maximum[name] = tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)
    return GainSet(table["name"], table["law"], table["source"], minimum, maximum, table.get("limits", {}))


# ---- a user's own ----------------------------------------------------------------------------------------------------


def checked_gains(values: Mapping[str, Any], where: str) -> dict[str, Value]:
    """Return gains and limits of the geometric law by name, each one number (for all its axes) or one per axis.

    Args:
        values: Name in `GEOMETRIC_GAINS` or `GEOMETRIC_LIMITS` to a number or numbers, in their units.
        where: What a message calls it.

    Raises:
        AirworthyError: A name is unknown, or a value is not finite, negative, or of another length.
    """
    known = GEOMETRIC_GAINS | GEOMETRIC_LIMITS
    found: dict[str, Value] = {}
    for name, value in values.items():
        if name not in known:
            raise unknown_name(f"gain of {where}", str(name), known)
        count, unit = known[name]
        label, bound = f"{where}: {name}", Bound(0.0, _LARGEST, unit)
        if not isinstance(value, list | tuple):
            one = float(number(value, label, bound))
            found[name] = one if count == 1 else (one,) * count
            continue
        if len(value) != count:
            wanted = "one number" if count == 1 else f"{count} numbers"
            raise AirworthyError(f"{label} is a list of {len(value)}; expected {bound.of(wanted)}.")
        numbers = tuple(float(number(x, f"{label}[{index}]", bound)) for index, x in enumerate(value))
        found[name] = numbers[0] if count == 1 else numbers
    return found


@dataclass(frozen=True)
class _GainFile:
    """A user's gain set as a file has it."""

    law: Literal["geometric"]
    name: str = ""
    source: str = ""
    priority: Priority | None = None
    values: dict[str, float | tuple[float, ...]] = field(default_factory=dict)
    limits: dict[str, float | tuple[float, ...]] = field(default_factory=dict)


def read_gain_set(path: str | Path) -> GainSet:
    """Return a user's gain set from a TOML file: `name`, `law = "geometric"`, `[values]` and, where wanted, `source`,
    `priority` (of `allocation.PRIORITIES`) and `[limits]`.

    Raises:
        AssetError: The file is missing, too large, or no TOML; a key, a gain or a number is not one.
    """
    where = f"Gain file {str(path)!r}"
    found: _GainFile = _SCHEMA.record(_GainFile, read_toml(path), f"{where}: ")
    tables = {"values": (found.values, GEOMETRIC_GAINS), "limits": (found.limits, GEOMETRIC_LIMITS)}
    for title, (values, known) in tables.items():
        for name in values:
            if name not in known:
                raise unknown_key(name, known, f"{where}: {title}")
    if not found.values and not found.limits:
        raise AssetError(f"{where} has no gain in [values]; give at least one of {', '.join(GEOMETRIC_GAINS)}.")
    try:
        gains, bounds = (checked_gains(values, where) for values, _ in tables.values())
    except AirworthyError as error:
        raise AssetError(str(error)) from None
    return GainSet(found.name or Path(path).stem, "geometric", found.source, gains, gains, bounds, found.priority)


def write_gain_set(gains: GainSet, path: str | Path) -> Path:
    """Write the midpoints of a geometric gain set as a file that `read_gain_set` reads."""
    lines = [f"{name} = {toml_value(getattr(gains, name))}" for name in ("name", "law", "source")]
    if gains.priority is not None:
        lines.append(f"priority = {toml_value(gains.priority)}")
    for title, values, units in (("values", gains.midpoint(), GEOMETRIC_GAINS), ("limits", gains.limits, GEOMETRIC_LIMITS)):
        if values:
            lines += ["", f"[{title}]"]
        for name, value in values.items():
            numbers = [float(x) for x in value] if isinstance(value, tuple) else float(value)
            lines.append(f"{name} = {toml_value(numbers)}  # {units[name][1]}")
    return write_text(Path(path), "\n".join(lines) + "\n")


def is_gain_file(name: str) -> bool:
    """Tell whether a choice of gains names a file instead of a published set."""
    return name.endswith(".toml")
