"""Betaflight's blackbox as comma-separated text, as its decoder and its explorer write it.

Columns carry indices (`gyroADC[0]`) and sometimes units (`vbatLatest (V)`). What scales them stands in header lines
`"key","value"` above the column names, which the decoder leaves out: then the user gives them. Signs of axes and the order of
motors have changed with versions, so they are the file's own here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.core.errors import unknown_name
from airworthy.core.files import harmless
from airworthy.logs.building import Found, LogDraft, table
from airworthy.logs.clocks.clock import nanoseconds, unwrapped
from airworthy.logs.readers.columns import text_columns
from airworthy.logs.units import DEGREE, RPM, STANDARD_GRAVITY

_HEAD_BYTES = 1 << 20
_UNIT = re.compile(r"(.+?) \(([^)]*)\)$")
_SESSION_STEP = 1.0
"""A step back by more than this begins another session [s]."""
_UNITS: Mapping[str, Mapping[str, float]] = {
    "rad/s": {"deg/s": DEGREE, "rad/s": 1.0},
    "m/s^2": {"g": STANDARD_GRAVITY, "m/s2": 1.0, "m/s/s": 1.0, "m/s^2": 1.0},
    "V": {"V": 1.0, "mV": 1e-3},
    "A": {"A": 1.0, "mA": 1e-3},
}
"""SI unit -> unit in a column's name -> factor."""
_TIMES = {"us": "us", "ms": "ms", "s": "s", "": "us"}
SETTINGS = ("acc_1G", "motorOutput", "motor_poles", "blackbox_high_resolution")
"""Header lines that scale columns, and that a user may give."""


def is_blackbox(data: bytes) -> bool:
    """Tell whether text is one of a blackbox: a line of column names that begins with `loopIteration`."""
    head = data[:_HEAD_BYTES]
    return re.search(rb'(?m)^"?loopIteration"?\s*,', head) is not None


def read_blackbox(data: bytes, draft: LogDraft, settings: Mapping[str, str]) -> None:
    """Read one session of a blackbox into a draft.

    Args:
        data: The file.
        draft: Takes streams, headers and notes.
        settings: Header lines by the user, over those of the file: "acc_1G", "motorOutput", "motor_poles".

    Raises:
        AssetError: The table cannot be read, its time is in an unknown unit, or a header that is needed is no number.
        UnknownNameError: The user gave a header that scales nothing.
    """
    for name in settings:
        if name not in SETTINGS:
            raise unknown_name("header that scales a blackbox", name, SETTINGS, "Given with --set.")
    match = re.search(rb'(?m)^"?loopIteration"?\s*,', data[:_HEAD_BYTES])
    assert match is not None
    headers = {**_headers(data[: match.start()]), **settings}
    draft.parameters |= dict(headers)
    columns, units = _named(text_columns(_first_session(data, match.start(), draft), draft, match.start()))
    if "time" not in columns:
        raise draft.refuse("its columns have no 'time (us)'")
    stamps, rows = _clock(columns["time"], units.get("time", ""), draft)
    columns = {name: values[:rows] for name, values in columns.items()}
    draft.raw |= {name: (stamps, values) for name, values in columns.items()}
    scale = _Scales(headers, units, draft, tuple(settings))
    draft.found += _inertial(columns, stamps, scale) + _motors(columns, stamps, scale)
    draft.found += _battery(columns, stamps, scale)
    draft.note(
        "Signs of axes and order of motors are the file's own and unchecked: they have changed with Betaflight's versions."
    )


def _headers(data: bytes) -> dict[str, str]:
    found = {}
    for line in data.decode("utf-8", "replace").splitlines():
        key, comma, value = line.partition(",")
        if comma and key.strip('" '):
            found[harmless(key.strip('" '))] = harmless(value.strip().strip('"'))
    return found


def _first_session(data: bytes, start: int, draft: LogDraft) -> bytes:
    """Return the file up to where a second line of column names begins another session."""
    again = re.compile(rb'(?m)^"?loopIteration"?\s*,').search(data, data.find(b"\n", start) + 1 or len(data))
    if again is None:
        return data
    draft.note(f"A second session begins at byte {again.start()}; the first one is read: split the file to read it.")
    return data[: again.start()]


def _named(columns: Mapping[str, ArrayAny]) -> tuple[dict[str, ArrayAny], dict[str, str]]:
    """Columns without the units in their names, and these."""
    named, units = {}, {}
    for name, values in columns.items():
        match = _UNIT.fullmatch(name)
        bare = match[1] if match else name
        named[bare] = values
        if match:
            units[bare] = match[2]
    return named, units


def _clock(time: ArrayAny, unit: str, draft: LogDraft) -> tuple[ArrayAny, int]:
    if unit not in _TIMES:
        raise draft.refuse(f"column 'time ({unit})' has a unit that is none of us, ms, s")
    known = np.isfinite(time)
    if not known.all():
        raise draft.refuse(f"row {int(np.argmin(known))} of its table has no time")
    if _TIMES[unit] == "us":
        time = time.astype(np.int64)
        # The counter has 32 bits; a step back by less than half of that is another session.
        time = unwrapped(time) if np.all(time >= 0) and np.all(time < 1 << 32) else time
    stamps = nanoseconds(time, _TIMES[unit], f"Log {draft.path!r}, column 'time'")
    back = np.flatnonzero(np.diff(stamps) < -_SESSION_STEP * 1e9)
    if back.size:
        draft.note(f"Time goes back in row {int(back[0]) + 1}: another session begins there, and the first one is read.")
        return stamps[: back[0] + 1], int(back[0]) + 1
    return stamps, len(stamps)


class _Scales:
    """What header lines and units in the names of columns say about scales."""

    def __init__(self, headers: Mapping[str, str], units: Mapping[str, str], draft: LogDraft, given: tuple[str, ...]) -> None:
        self.headers = headers
        self.units = units
        self.draft = draft
        self.given = given

    def numbers(self, name: str, count: int) -> list[float] | None:
        """Return the numbers of a header line, None where it is missing; raises AssetError where they are none."""
        if name not in self.headers:
            return None
        try:
            found = [float(part) for part in self.headers[name].replace('"', "").split(",")]
        except ValueError:
            found = []
        if len(found) != count or not np.all(np.isfinite(found)):
            raise self.draft.refuse(f"header {name!r} is {self.headers[name]!r}; expected {count} number(s)")
        return found

    def needed(self, name: str, example: str, what: str) -> list[float] | None:
        """Return the numbers of a header that scales something: one above 0, or two that rise.

        None, and a note, where the file has none or one that scales nothing; raises AssetError where the user gave it.
        """
        found = self.numbers(name, 1 + example.count(","))
        if found is None:
            told = f"the file has no header {name!r}"
        elif found[0] > 0.0 if len(found) == 1 else found[1] > found[0]:
            return found
        else:
            wanted = "two numbers that rise" if len(found) == 2 else "a number above 0"
            told = f"header {name!r} is {self.headers[name]!r}; expected {wanted}, as {example}"
            if name in self.given:
                raise self.draft.refuse(told)
        self.draft.note(f"{what} stays raw, since {told}: give it with --set {name}={example}.")
        return None

    def factor(self, names: Sequence[str], unit: str) -> float | None:
        """Return what makes SI of columns whose names tell one unit; None, and a note, where it is unknown or not the same."""
        told = sorted({self.units.get(name, "") for name in names})
        if len(told) == 1 and told[0] in _UNITS[unit]:
            return _UNITS[unit][told[0]]
        known = ", ".join(_UNITS[unit])
        listed = " and ".join(repr(harmless(text)) for text in told)
        self.draft.note(f"Columns {names[0]!r} and on have the unit {listed}, none of {known}: they stay raw variables.")
        return None

    def bare(self, names: Sequence[str]) -> bool:
        """Tell whether no column tells a unit; where one does that is not read, it is noted."""
        told = next((self.units[name] for name in names if self.units.get(name, "")), "")
        if told:
            self.draft.note(
                f"Columns {names[0]!r} and on have the unit {harmless(told)!r}, none that is read there: they stay raw."
            )
        return not told


def _inertial(columns: Mapping[str, ArrayAny], stamps: ArrayAny, scale: _Scales) -> list[Found]:
    found = []
    high = (scale.numbers("blackbox_high_resolution", 1) or [0.0])[0] == 1.0
    for name, label in (("gyroADC", ""), ("gyroUnfilt", "unfiltered")):
        names = _axes(name)
        values = table(columns, names)
        if values is None:
            continue
        # Without a unit: whole deg/s, or tenths of them.
        told = any(scale.units.get(n, "") for n in names)
        factor = scale.factor(names, "rad/s") if told else DEGREE * (0.1 if high else 1.0)
        if factor is not None:
            found.append(Found("gyro", stamps, values * factor, label, origin=f"{name}[0..2]"))
    names = _axes("accSmooth")
    values = table(columns, names)
    if values is not None:
        if any(scale.units.get(n, "") for n in names):
            factor = scale.factor(names, "m/s^2")
        else:
            counts = scale.needed("acc_1G", "2048", "The accelerometer")
            factor = None if counts is None else STANDARD_GRAVITY / counts[0]
        if factor is not None:
            found.append(Found("accelerometer", stamps, values * factor, origin="accSmooth[0..2]"))
    return found


def _battery(columns: Mapping[str, ArrayAny], stamps: ArrayAny, scale: _Scales) -> list[Found]:
    found = []
    for kind, unit, names in (("voltage", "V", ("vbatLatest", "vbat")), ("current", "A", ("amperageLatest", "amperage"))):
        name = next((n for n in names if n in columns), "")
        if name and name not in scale.units:
            scale.draft.note(f"Column {name!r} does not say its unit, as in '{name} ({unit})', and stays a raw variable.")
        elif name and (factor := scale.factor([name], unit)) is not None:
            found.append(Found(kind, stamps, columns[name] * factor, origin=name))
    return found


def _axes(name: str) -> list[str]:
    return [f"{name}[{k}]" for k in range(3)]


def _indexed(columns: Mapping[str, ArrayAny], name: str, scale: _Scales) -> Array | None:
    """Return name[0], name[1] and on side by side; None without any, or in a unit that is not read."""
    names: list[str] = []
    while f"{name}[{len(names)}]" in columns:
        names.append(f"{name}[{len(names)}]")
    return table(columns, names) if names and scale.bare(names) else None


def _motors(columns: Mapping[str, ArrayAny], stamps: ArrayAny, scale: _Scales) -> list[Found]:
    found = []
    motors = _indexed(columns, "motor", scale)
    if motors is not None and (ends := scale.needed("motorOutput", "158,2047", "The motors' command")) is not None:
        commands = np.clip((motors - ends[0]) / (ends[1] - ends[0]), 0.0, 1.0)
        found.append(Found("motor_command", stamps, commands, origin="motor[]"))
    speeds = _indexed(columns, "eRPM", scale)
    if speeds is not None and (poles := scale.needed("motor_poles", "14", "The motors' speed")) is not None:
        # eRPM is electrical turns per minute / 100; one mechanical turn is half of the poles of them.
        found.append(Found("motor_speed", stamps, speeds * (100.0 / (0.5 * poles[0]) * RPM), origin="eRPM[]"))
    sticks = _indexed(columns, "rcCommand", scale)
    if sticks is not None:
        found.append(Found("stick", stamps, sticks, origin="rcCommand[]"))
    names = _axes("setpoint")
    wanted = table(columns, names)
    if wanted is not None:
        factor = scale.factor(names, "rad/s") if any(scale.units.get(n, "") for n in names) else DEGREE
        if factor is not None:
            found.append(Found("rate_setpoint", stamps, wanted * factor, origin="setpoint[0..2]"))
    return found
