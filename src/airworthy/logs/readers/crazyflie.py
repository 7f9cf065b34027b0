"""Crazyflie logs: the binary files of its micro-SD deck, and the same variables as arrays of an .npz archive.

Layout (Bitcraze, documentation of the micro-SD deck): byte 0xBC, uint16 version, uint16 number of event types; of each a uint16
id, a name, a uint16 count and so many `name(f)`, f a letter of Python's struct; then records of uint16 id, time (version 1:
uint32 ms, version 2: uint64 us) and values; the last four bytes are the CRC-32 of all before. Names end with a zero byte.
"""

from __future__ import annotations

import re
import zlib
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from airworthy.core.arrays import ArrayAny
from airworthy.core.files import shown
from airworthy.logs.building import LARGE_BYTES, FileContent, Found, LogDraft, table
from airworthy.logs.clocks.clock import unwrapped
from airworthy.logs.cursor import ByteCursor, EndOfData
from airworthy.logs.gathering import gathered
from airworthy.logs.units import DEGREE, RPM, STANDARD_GRAVITY

MAGIC = 0xBC
_LETTERS = {"B": "u1", "b": "i1", "H": "<u2", "h": "<i2", "I": "<u4", "i": "<i4", "f": "<f4", "d": "<f8", "e": "<f2"}
_LETTERS |= {"q": "<i8", "Q": "<u8", "L": "<u4", "l": "<i4"}
_VARIABLE = re.compile(r"(.+)\((.)\)")
_NAME_MAX = 255
"""Ours: bytes of a name; the firmware's own are under 40."""
_STEP_MS, _STEP_US = 1_000_000, 1_000


@dataclass
class _EventType:
    name: str
    row: np.dtype
    offsets: array = field(default_factory=lambda: array("q"))


def is_crazyflie(data: bytes) -> bool:
    """Tell whether the first bytes are of such a log."""
    return len(data) >= 5 and data[0] == MAGIC and data[1] in (1, 2) and data[2] == 0


def read_crazyflie(content: FileContent, draft: LogDraft) -> None:
    """Read a log of the micro-SD deck into a draft.

    Raises:
        AssetError: The header is cut or declares what cannot be.
    """
    data = content.data
    cursor = ByteCursor(data, f"Log {draft.path!r}")
    version, types = _header(cursor)
    whole = len(data) >= 4 and zlib.crc32(memoryview(data)[:-4]) == int.from_bytes(data[-4:], "little")
    if whole:
        cursor.stop -= 4
    else:
        draft.note("The checksum at the end does not fit: the file was cut, or bytes of it were changed.")
    _records(cursor, types, draft, whole)
    large = len(data) > LARGE_BYTES
    read = [(event.name, gathered(data, event.offsets, event.row)) for event in types.values()]
    types.clear()
    del data, cursor
    content.let_go()
    for name, rows in read:
        _variables(name, rows, version, draft, large)
    if large:
        draft.note("The file is large: variables that are streams are kept as these alone.")


def _variables(event: str, rows: ArrayAny, version: int, draft: LogDraft, large: bool) -> None:
    """Take the streams and variables of one event."""
    time = rows["time"]
    stamps = unwrapped(time) * _STEP_MS if version == 1 else np.minimum(time, 1 << 52).astype(np.int64) * _STEP_US
    columns = {name: rows[name] for name in rows.dtype.names or () if name not in ("id", "time")}
    found = crazyflie_streams(event, stamps, columns)
    draft.found += found
    if large:
        used = {name for item in found for name in item.origin.partition(": ")[2].split(", ")}
        columns = {name: values.copy() for name, values in columns.items() if name not in used}
    draft.raw |= {f"{event}.{name}": (stamps, values) for name, values in columns.items()}


def _header(cursor: ByteCursor) -> tuple[int, dict[int, _EventType]]:
    _, version, count = cursor.unpack("BHH", "the header")
    if version not in (1, 2):
        raise cursor.refuse(f"version {version} of Crazyflie logs is unknown; 1 and 2 are read")
    types: dict[int, _EventType] = {}
    for _ in range(count):
        (number,) = cursor.unpack("H", "the id of an event type")
        name = cursor.text(_NAME_MAX, "the name of an event type")
        (variables,) = cursor.unpack("H", f"the number of variables of {shown(name)}")
        if variables * 4 > cursor.left:  # "x(f)" and more, so that no list grows beyond the file
            raise EndOfData(
                f"{cursor.name}: {shown(name)} declares {variables} variables at byte {cursor.at}, too many for the file."
            )
        fields = [("id", "<u2"), ("time", "<u4" if version == 1 else "<u8")]
        for _ in range(variables):
            at = cursor.at
            text = cursor.text(_NAME_MAX, "the name of a variable")
            match = _VARIABLE.fullmatch(text)
            if match is None or match[2] not in _LETTERS:
                raise cursor.refuse(f"variable {shown(text)} does not end with its type, as in 'acc.x(f)'", at)
            fields.append((match[1], _LETTERS[match[2]]))
        names = [name for name, _ in fields]
        if number in types or len(set(names)) != len(names):
            raise cursor.refuse(f"event type {shown(name)} or one of its variables is declared twice")
        types[number] = _EventType(name, np.dtype(fields))
    if not types:
        raise cursor.refuse("it declares no event type")
    return version, types


def _records(cursor: ByteCursor, types: dict[int, _EventType], draft: LogDraft, whole: bool) -> None:
    """Sort records by their type; what comes after the first that cannot be is lost, and told."""
    # Written out over plain numbers: a log has a hundred thousand records and more.
    known = {number: (event.offsets, event.row.itemsize) for number, event in types.items()}
    data, at, stop = cursor.data, cursor.at, cursor.stop
    while stop - at >= 2:
        offsets, size = known.get(data[at] | data[at + 1] << 8, (None, 0))
        if offsets is None or stop - at < size:
            break
        # A file that was not closed ends in zeros, which would be records of type 0 at time 0.
        if not whole and offsets and not any(data[at : at + size]):
            break
        offsets.append(at)
        at += size
    cursor.at = at
    # Without a checksum that fits, its four bytes may be the last ones.
    if cursor.left and not (not whole and cursor.left == 4):
        draft.note(f"{cursor.left} bytes from byte {cursor.at} on are no records and were left out.")


# ---- Variables by name -------------------------------------------------------------------------------------------------------


def crazyflie_streams(event: str, stamps: ArrayAny, columns: Mapping[str, ArrayAny]) -> list[Found]:
    """Return the streams among variables of the Crazyflie's firmware.

    Args:
        event: Name of the event; poses that came by radio are labelled "capture".
        stamps: [ns], (n,).
        columns: Variables by name, (n,) each.
    """
    found: list[Found] = []

    def add(kind: str, names: list[str], scale: float = 1.0, label: str = "", shift: float = 0.0) -> None:
        values = table(columns, names)
        if values is not None:
            found.append(Found(kind, stamps, values * scale + shift, label, origin=f"{event}: {', '.join(names)}"))

    axes = "xyz"
    add("gyro", [f"gyro.{a}" for a in axes], DEGREE)
    add("accelerometer", [f"acc.{a}" for a in axes], STANDARD_GRAVITY)
    for prefix, suffix, full in (("motor.m", "", 65536.0), ("pwm.m", "_pwm", 65535.0)):
        add("motor_command", _numbered(columns, prefix, suffix), 1.0 / full, "" if prefix == "motor.m" else "pwm")
    add("motor_speed", _numbered(columns, "rpm.m", ""), RPM)
    add("voltage", ["pm.vbatMV"], 1e-3) if "pm.vbatMV" in columns else add("voltage", ["pm.vbat"])
    add("position", [f"locSrv.{a}" for a in axes], label="capture")
    add("attitude", [f"locSrv.q{a}" for a in "xyzw"], label="capture")
    add("position", [f"stateEstimate.{a}" for a in axes], label="estimate")
    add("velocity", [f"stateEstimate.v{a}" for a in axes], label="estimate")
    add("attitude", [f"stateEstimate.q{a}" for a in "xyzw"], label="estimate")
    add("pressure", ["baro.pressure"], 100.0)  # hPa
    add("temperature", ["baro.temp"], shift=273.15)
    add("range", ["range.zrange"], 1e-3)  # mm
    add("magnetometer", [f"mag.{a}" for a in axes], 1e-4)  # gauss
    return found


def _numbered(columns: Mapping[str, ArrayAny], prefix: str, suffix: str) -> list[str]:
    """Return the names of motors 1 to n that are there; one that is not, so that nothing is found, where there is none."""
    names: list[str] = []
    while f"{prefix}{len(names) + 1}{suffix}" in columns:
        names.append(f"{prefix}{len(names) + 1}{suffix}")
    return names or [f"{prefix}1{suffix}"]
