"""Betaflight's blackbox as comma-separated text, as its decoder and its explorer write it.

Columns carry indices (`gyroADC[0]`) and sometimes units (`vbatLatest (V)`). What scales them stands in header lines
`"key","value"` above the column names, which the decoder leaves out: then the user gives them. Signs of axes and the order of
motors have changed with versions, so they are the file's own here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.core.files import harmless
from airworthy.logs.building import Found, LogDraft, table
from airworthy.logs.clock import nanoseconds, unwrapped
from airworthy.logs.readers.columns import text_columns
from airworthy.logs.units import DEGREE, RPM, STANDARD_GRAVITY

_HEAD_BYTES = 1 << 20
_UNIT = re.compile(r"(.+?) \(([^)]*)\)$")
_SESSION_STEP = 1.0
"""A step back by more than this begins another session [s]."""
_UNITS = {"V": 1.0, "mV": 1e-3, "A": 1.0, "mA": 1e-3}


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
        AssetError: The table cannot be read, or a header that is needed is no number.
    """
    match = re.search(rb'(?m)^"?loopIteration"?\s*,', data[:_HEAD_BYTES])
    assert match is not None
    headers = {**_headers(data[: match.start()]), **settings}
    draft.parameters |= dict(headers)
    columns, units = _named(text_columns(_first_session(data, match.start(), draft), draft, match.start()))
    if "time" not in columns:
        raise draft.refuse("its columns have no 'time (us)'")
    stamps, rows = _clock(columns["time"], draft)
    columns = {name: values[:rows] for name, values in columns.items()}
    draft.raw |= {name: (stamps, values) for name, values in columns.items()}
    scale = _Scales(headers, draft)
    draft.found += _inertial(columns, units, stamps, scale) + _motors(columns, stamps, scale)
    for kind, names in (("voltage", ("vbatLatest", "vbat")), ("current", ("amperageLatest", "amperage"))):
        name = next((n for n in names if n in columns), None)
        if name is not None and units.get(name) in _UNITS:
            draft.found.append(Found(kind, stamps, columns[name] * _UNITS[units[name]], origin=name))
        elif name is not None:
            draft.note(f"Column {name!r} does not say its unit, as in '{name} (V)', and stays a raw variable.")
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


def _clock(time: ArrayAny, draft: LogDraft) -> tuple[ArrayAny, int]:
    known = np.isfinite(time)
    if not known.all():
        raise draft.refuse(f"row {int(np.argmin(known))} of its table has no time")
    wide = time.astype(np.int64)
    # The counter has 32 bits; a step back by less than half of that is another session.
    wide = unwrapped(wide) if np.all(wide >= 0) and np.all(wide < 1 << 32) else wide
    stamps = nanoseconds(wide, "us", f"Log {draft.path!r}, column 'time'")
    back = np.flatnonzero(np.diff(stamps) < -_SESSION_STEP * 1e9)
    if back.size:
        draft.note(f"Time goes back in row {int(back[0]) + 1}: another session begins there, and the first one is read.")
        return stamps[: back[0] + 1], int(back[0]) + 1
    return stamps, len(stamps)


class _Scales:
    """What header lines say about scales."""

    def __init__(self, headers: Mapping[str, str], draft: LogDraft) -> None:
        self.headers = headers
        self.draft = draft

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

    def lacks(self, name: str, example: str, what: str) -> None:
        """Note which header is needed for what."""
        self.draft.note(f"{what} stays raw, since the file has no header {name!r}: give it with --set {name}={example}.")


def _inertial(columns: Mapping[str, ArrayAny], units: Mapping[str, str], stamps: ArrayAny, scale: _Scales) -> list[Found]:
    found = []
    high = (scale.numbers("blackbox_high_resolution", 1) or [0.0])[0] == 1.0
    for name, label in (("gyroADC", ""), ("gyroUnfilt", "unfiltered")):
        values = table(columns, [f"{name}[{k}]" for k in range(3)])
        if values is not None:
            factor = DEGREE * (0.1 if high else 1.0)
            found.append(Found("gyro", stamps, values * factor, label, origin=f"{name}[0..2]"))
    values = table(columns, [f"accSmooth[{k}]" for k in range(3)])
    if values is not None:
        unit = units.get("accSmooth[0]", "")
        counts = scale.numbers("acc_1G", 1)
        if unit in ("g", "m/s/s", "m/s^2"):
            factor = STANDARD_GRAVITY if unit == "g" else 1.0
        elif counts is not None and counts[0] > 0.0:
            factor = STANDARD_GRAVITY / counts[0]
        else:
            scale.lacks("acc_1G", "2048", "The accelerometer")
            return found
        found.append(Found("accelerometer", stamps, values * factor, origin="accSmooth[0..2]"))
    return found


def _indexed(columns: Mapping[str, ArrayAny], name: str) -> Array | None:
    count = 0
    while f"{name}[{count}]" in columns:
        count += 1
    return table(columns, [f"{name}[{k}]" for k in range(count)]) if count else None


def _motors(columns: Mapping[str, ArrayAny], stamps: ArrayAny, scale: _Scales) -> list[Found]:
    found = []
    motors = _indexed(columns, "motor")
    if motors is not None:
        ends = scale.numbers("motorOutput", 2)
        if ends is None or not ends[1] > ends[0]:
            scale.lacks("motorOutput", "158,2047", "The motors' command")
        else:
            commands = np.clip((motors - ends[0]) / (ends[1] - ends[0]), 0.0, 1.0)
            found.append(Found("motor_command", stamps, commands, origin="motor[]"))
    speeds = _indexed(columns, "eRPM")
    if speeds is not None and (poles := scale.numbers("motor_poles", 1)) is not None and poles[0] > 0.0:
        # eRPM is electrical turns per minute / 100; one mechanical turn is half of the poles of them.
        found.append(Found("motor_speed", stamps, speeds * (100.0 / (0.5 * poles[0]) * RPM), origin="eRPM[]"))
    elif speeds is not None:
        scale.lacks("motor_poles", "14", "The motors' speed")
    sticks = _indexed(columns, "rcCommand")
    if sticks is not None:
        found.append(Found("stick", stamps, sticks, origin="rcCommand[]"))
    wanted = table(columns, [f"setpoint[{k}]" for k in range(3)])
    if wanted is not None:
        found.append(Found("rate_setpoint", stamps, wanted * DEGREE, origin="setpoint[0..2]"))
    return found
