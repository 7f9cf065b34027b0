"""What the columns of a thrust stand's table mean: `mapping.toml`, or a guess by names and numbers.

    thrust = { columns = ["weight[g]"], unit = "gf" }
    speed = { columns = ["rpm1", "rpm2", "rpm3", "rpm4"], unit = "rpm" }
    command = { columns = ["pwm"], unit = "us", low = 1100, high = 1940 }

A unit is never guessed from numbers where that would decide a scale: a thrust without a unit in its name is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.core.errors import AirworthyError, AssetError, unknown_name
from airworthy.core.files import read_toml, shown
from airworthy.core.table_schema import TableSchema
from airworthy.logs.units import RPM

__all__ = ["BENCH_UNITS", "BenchColumns", "guess_bench_columns", "read_bench_mapping"]

GRAM_FORCE = 9.80665e-3
"""Weight of a gram under standard gravity [N]."""
POUND_FORCE, OUNCE_FORCE, INCH = 453.59237 * GRAM_FORCE, 28.349523125 * GRAM_FORCE, 0.0254

BENCH_UNITS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "thrust": {
            "N": 1.0, "mN": 1e-3, "gf": GRAM_FORCE, "g": GRAM_FORCE, "kgf": 1e3 * GRAM_FORCE, "kg": 1e3 * GRAM_FORCE,
            "lbf": POUND_FORCE, "ozf": OUNCE_FORCE,
        },
        "torque": {
            "Nm": 1.0, "mNm": 1e-3, "Ncm": 1e-2, "kgfm": 1e3 * GRAM_FORCE, "kgfcm": 10.0 * GRAM_FORCE,
            "gfcm": 1e-2 * GRAM_FORCE, "ozfin": OUNCE_FORCE * INCH, "lbfin": POUND_FORCE * INCH,
            "lbfft": 12.0 * POUND_FORCE * INCH,
        },
        "speed": {"rad/s": 1.0, "rpm": RPM, "Hz": 2.0 * np.pi},
        "voltage": {"V": 1.0, "mV": 1e-3},
        "current": {"A": 1.0, "mA": 1e-3},
        "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6},
        "command": {"1": 1.0, "%": 0.01, "u16": 1.0 / 65535.0, "u8": 1.0 / 255.0, "dshot": 1.0, "us": 1.0},
    }
)  # fmt: skip
"""By kind of column: unit -> factor that makes SI of it. Of "us" and "dshot" see `PULSES`."""
PULSES = {"us": (1000.0, 2000.0), "dshot": (47.0, 2047.0)}
"""What stands still and what is full command: pulses of servos, throttle values of DShot, where the file says no others."""


@dataclass(frozen=True)
class BenchColumns:
    """One quantity of a table: its columns, and how they become SI units."""

    columns: tuple[str, ...]
    """Of speeds one for each motor; of all else one."""
    unit: str = ""
    """Of `BENCH_UNITS`; empty: SI."""
    scale: float = 1.0
    """Further factor: -1 where a cell reads pulls, 1/7 for electrical turns of 14 poles."""
    low: float | None = None
    """Of a command: its value at rest; none: by the unit."""
    high: float | None = None
    """Of a command: its value at full; none: by the unit."""

    def values(self, kind: str, column: ArrayAny) -> Array:
        """Return a column in SI units, commands as fractions of full."""
        given = np.asarray(column, np.float64)
        if kind == "command":
            low, high = self.ends()
            return np.asarray(self.scale * (given - low) / (high - low))
        unit = self.unit or next(iter(BENCH_UNITS[kind]))
        return np.asarray(given * (BENCH_UNITS[kind][unit] * self.scale))

    def ends(self) -> tuple[float, float]:
        """Return what a column of commands holds at rest and at full."""
        unit = self.unit or next(iter(BENCH_UNITS["command"]))
        low, high = PULSES.get(unit, (0.0, 1.0 / BENCH_UNITS["command"][unit]))
        return low if self.low is None else self.low, high if self.high is None else self.high


_SCHEMA = TableSchema(entries_max=16, list_max=16, list_noun="columns", number_max=1e9)


def read_bench_mapping(path: str | Path) -> dict[str, BenchColumns]:
    """Read a mapping.

    Raises:
        AssetError: The file is missing, or a line is not one of a mapping.
    """
    made = {}
    for kind, value in read_toml(path).items():
        where = f"{str(path)!r}: {kind}"
        if kind not in BENCH_UNITS:
            raise AssetError(str(unknown_name(f"quantity of a bench in {str(path)!r}", kind, BENCH_UNITS)))
        item = made[kind] = _SCHEMA.record(BenchColumns, value, where)
        if not item.columns or (kind != "speed" and len(item.columns) != 1):
            raise AssetError(f"{where} has {len(item.columns)} columns; expected 1" + (" or more." if kind == "speed" else "."))
        if item.unit and item.unit not in BENCH_UNITS[kind]:
            raise AssetError(f"{where} has unit {shown(item.unit)}; expected one of {', '.join(BENCH_UNITS[kind])}.")
        if item.scale == 0.0 or (item.low is not None and item.low == item.high):
            raise AssetError(f"{where} has a scale of 0; expected another number.")
        if kind != "command" and not (item.low is None and item.high is None):
            raise AssetError(f"{where} has low or high, which belong to a command; leave them out.")
    if not made:
        raise AssetError(f"{str(path)!r} maps nothing; expected a line as thrust = {{ columns = [...], unit = ... }}.")
    return made


# ---- A guess -----------------------------------------------------------------------------------------------------------------

_NAMES = {
    "time": re.compile(r"^#?\s*(t|time(stamp)?|elapsed)(?![a-z])", re.IGNORECASE),
    "torque": re.compile(r"torque|^q(?![a-z])", re.IGNORECASE),
    "thrust": re.compile(r"thrust|weight|load[_ ]?cell|lift|^force", re.IGNORECASE),
    "speed": re.compile(r"rpm|rotation|motor.*speed|rotor.*speed|prop.*speed|^speed|omega", re.IGNORECASE),
    "command": re.compile(r"esc|pwm|throttle|command|cmd|dshot|signal|pulse", re.IGNORECASE),
    "voltage": re.compile(r"volt|vbat|^v(?![a-z])", re.IGNORECASE),
    "current": re.compile(r"current|amp|^i(?![a-z])", re.IGNORECASE),
}
"""By kind, in the order in which they are looked for."""
_OTHER = re.compile(
    r"efficien|power|watt|temp|vibration|servo|air[_ ]?speed|wind|set_?point|target|message|pressure", re.IGNORECASE
)
"""In names of columns that are none of these: "Overall Efficiency (gf/W)", "Airspeed (m/s)"."""
_UNIT_WORDS = {
    "thrust": {
        "n": "N", "newton": "N", "newtons": "N", "mn": "mN", "g": "gf", "gf": "gf", "gram": "gf", "grams": "gf", "kg": "kgf",
        "kgf": "kgf", "lb": "lbf", "lbf": "lbf", "lbs": "lbf", "oz": "ozf", "ozf": "ozf",
    },
    "torque": {
        "nm": "Nm", "mnm": "mNm", "ncm": "Ncm", "kgfm": "kgfm", "kgm": "kgfm", "kgfcm": "kgfcm", "kgcm": "kgfcm",
        "gfcm": "gfcm", "gcm": "gfcm", "ozin": "ozfin", "ozfin": "ozfin", "inoz": "ozfin", "lbin": "lbfin",
        "lbfin": "lbfin", "inlb": "lbfin", "lbfft": "lbfft", "lbft": "lbfft", "ftlb": "lbfft",
    },
    "speed": {"rpm": "rpm", "rad/s": "rad/s", "rads": "rad/s", "hz": "Hz", "1/min": "rpm", "rev/min": "rpm"},
    "voltage": {"v": "V", "mv": "mV", "volt": "V", "volts": "V"},
    "current": {"a": "A", "ma": "mA", "amp": "A", "amps": "A"},
    "time": {"s": "s", "sec": "s", "ms": "ms", "us": "us"},
}  # fmt: skip
"""What units are called in names, without signs between their parts."""
_ELECTRICAL = re.compile(r"(?<![a-z])e[_ -]?rpm", re.IGNORECASE)
"""In names of columns that count electrical turns: a rotor's times the motor's pairs of poles. ("Motor Electrical Speed (RPM)"
of a stand is a rotor's speed already, by the poles that it was told.)"""
_BRACKETS = re.compile(r"[\[(]\s*([^\])]+?)\s*[\])]")


def guess_bench_columns(columns: Mapping[str, ArrayAny]) -> tuple[dict[str, BenchColumns], list[str]]:
    """Return what the columns of a stand's table seem to be, and why, in words.

    Args:
        columns: Name -> numbers, (n,) each.

    Raises:
        AirworthyError: A thrust or torque does not say its unit, or turns are electrical ones.
    """
    left = [name for name in columns if name and not _OTHER.search(name)]
    made: dict[str, BenchColumns] = {}
    said = []
    for kind, pattern in _NAMES.items():
        found = [name for name in left if pattern.search(name)]
        if not found:
            continue
        chosen = _motors(found, columns) if kind == "speed" else (_first_live(found, columns),)
        if kind == "speed":
            _refuse_electrical(chosen)
        unit = _unit(kind, chosen[0], columns)
        made[kind] = BenchColumns(chosen, unit)
        said.append(f"{kind} is {', '.join(map(shown, chosen))} in {unit}")
        left = [name for name in left if name not in found]
    return made, said


def _live(column: ArrayAny) -> bool:
    """Whether a column tells anything: not blank, and not the same throughout."""
    good = np.asarray(column, np.float64)
    good = good[np.isfinite(good)]
    return bool(good.size and np.ptp(good) > 0.0)


def _first_live(names: Iterable[str], columns: Mapping[str, ArrayAny]) -> str:
    names = list(names)
    return next((name for name in names if _live(columns[name])), names[0])


def _motors(names: list[str], columns: Mapping[str, ArrayAny]) -> tuple[str, ...]:
    """Return speeds of several motors, which differ in a number only, or the one that is best."""
    groups: dict[str, list[str]] = {}
    own = [name for name in names if not _ELECTRICAL.search(name)]
    names = own if any(_live(columns[name]) for name in own) else names
    for name in names:
        if re.search(r"\d", name):
            groups.setdefault(re.sub(r"\d+", "*", name), []).append(name)
    several = [tuple(group) for group in groups.values() if len(group) > 1]
    if several:
        return max(several, key=len)
    # A stand may count turns by light and by the motor's wires; the one that is not plugged in reads 0.
    return (_first_live(sorted(names, key=lambda n: "optical" not in n.lower()), columns),)


def _refuse_electrical(names: tuple[str, ...]) -> None:
    if _ELECTRICAL.search(names[0]):
        listed = ", ".join(f'"{name}"' for name in names)
        raise AirworthyError(
            f"Column {shown(names[0])} names electrical turns, which are the rotor's times the motor's pairs of poles; write a"
            f' mapping.toml with speed = {{ columns = [{listed}], unit = "rpm", scale = 0.142857 }}, 1 over the pairs (here of'
            " 14 poles), and give it by --map."
        )


def _unit(kind: str, name: str, columns: Mapping[str, ArrayAny]) -> str:
    if kind == "command":
        return _command_unit(name, columns)
    words = _UNIT_WORDS[kind]
    bracket = _BRACKETS.search(name)
    tails = [bracket[1]] if bracket else [*re.split(r"[_ ]", name)[-1:], re.sub(r"\d+$", "", name)]
    for tail in tails:
        plain = tail.lower().strip()
        found = words.get(plain) or words.get(re.sub(r"[^a-z]", "", plain))
        if found:
            return found
    if kind in ("thrust", "torque"):
        raise AirworthyError(
            f"Column {shown(name)} does not say its unit; write a mapping.toml with {kind} = {{ columns = [{shown(name)}],"
            f' unit = "{"gf" if kind == "thrust" else "Nm"}" }} and give it by --map ({", ".join(BENCH_UNITS[kind])}).'
        )
    if kind == "speed":
        return "rpm"
    largest = _largest(columns[name])
    if kind == "voltage":
        return "mV" if largest > 1000.0 else "V"
    if kind == "current":
        return "A"
    return "ms" if _step(columns[name]) > 2.0 else "s"


def _command_unit(name: str, columns: Mapping[str, ArrayAny]) -> str:
    largest = _largest(columns[name])
    if "dshot" in name.lower():
        return "dshot"
    if "%" in name or 1.5 < largest <= 100.5:
        return "%"
    return "1" if largest <= 1.5 else "u8" if largest <= 255.0 else "us" if largest <= 2600.0 else "u16"


def _largest(column: ArrayAny) -> float:
    with np.errstate(all="ignore"):
        return float(np.nanmax(np.append(np.asarray(column, np.float64), 0.0)))


def _step(column: ArrayAny) -> float:
    steps = np.diff(np.asarray(column, np.float64))
    steps = steps[np.isfinite(steps) & (steps > 0.0)]
    return float(np.median(steps)) if steps.size else 0.0
