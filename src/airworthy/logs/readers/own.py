"""Flights that Airworthy recorded, and archives that it wrote of logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from airworthy.core.arrays import ArrayAny
from airworthy.core.files import parse_json, read_json, read_toml
from airworthy.logs.building import Found, LogDraft, table
from airworthy.logs.clocks.clock import NS, nanoseconds
from airworthy.logs.readers.columns import parquet_columns
from airworthy.logs.readers.crazyflie import crazyflie_streams
from airworthy.logs.record import KINDS, STAMPS, LowPass, RotorGeometry

FLIGHT_FILE = "flight.parquet"
NPZ_HEAD = "airworthy_log"
"""Array of an archive of ours that holds its description as JSON."""
GEOMETRY_ARRAYS = ("position", "axis", "spin", "torque_ratio")
"""Arrays of a `RotorGeometry`, under "geometry/" in an archive of ours."""
_EVENTS_MAX = 1_000_000
_META_BYTES_MAX = 1 << 24
_XYZ = ("x", "y", "z")
_SECONDS_MAX = 3e8


def is_run(folder: Path) -> bool:
    """Tell whether a folder holds recorded flights."""
    return (folder / FLIGHT_FILE).is_file() and (folder / "meta.json").is_file()


def read_run(data: bytes, draft: LogDraft, folder: Path, env: int) -> None:
    """Read one recorded flight into a draft.

    Args:
        data: Content of `flight.parquet`.
        draft: Takes the streams.
        folder: Of the run.
        env: Environment whose flight it is.

    Raises:
        AssetError: The table is damaged, or holds no such environment.
    """
    columns = parquet_columns(data, draft)
    if any(name not in columns for name in ("env", "t", "position_x_m", "attitude_w", "rate_x_rad_s")):
        raise draft.refuse("it is not a table of recorded flights: it lacks env, t or the state")
    rows = columns["env"] == env
    if not rows.any():
        known = np.unique(columns["env"])
        raise draft.refuse(f"there is no environment {env}; it holds {known[0]} to {known[-1]}")
    columns = {name: values[rows] for name, values in columns.items()}
    stamps = nanoseconds(columns["t"], "s", f"Log {draft.path!r}, column 't'")
    draft.raw |= {name: (stamps, values) for name, values in columns.items() if name not in ("env", "t")}
    _state(columns, stamps, draft)
    _rotors(columns, stamps, draft, folder)


def _state(columns: Mapping[str, ArrayAny], stamps: ArrayAny, draft: LogDraft) -> None:
    def add(kind: str, names: list[str], label: str = "") -> bool:
        values = table(columns, names)
        if values is not None:
            draft.found.append(Found(kind, stamps, values, label, origin=names[0].replace("_x_", "_xyz_")))
        return values is not None

    measured = add("gyro", [f"imu_rate_{a}_rad_s" for a in _XYZ])
    add("gyro", [f"rate_{a}_rad_s" for a in _XYZ], "truth" if measured else "")
    if not add("accelerometer", [f"imu_force_{a}_m_s2" for a in _XYZ]) or not measured:
        draft.note(
            "The flight was recorded without its inertial sensor: the gyro is the true rate (airworthy fly --imu keeps it)."
        )
    add("attitude", [f"attitude_{a}" for a in (*_XYZ, "w")])
    add("position", [f"position_{a}_m" for a in _XYZ])
    add("velocity", [f"velocity_{a}_m_s" for a in _XYZ])


def _rotors(columns: Mapping[str, ArrayAny], stamps: ArrayAny, draft: LogDraft, folder: Path) -> None:
    """Speeds, and commands as shares of the largest speed, which the vehicle's file tells."""
    count = 0
    while f"rotor_speed_{count}_rad_s" in columns and np.isfinite(columns[f"rotor_speed_{count}_rad_s"]).any():
        count += 1
    if not count:
        return
    speeds = table(columns, [f"rotor_speed_{k}_rad_s" for k in range(count)])
    commands = table(columns, [f"rotor_command_{k}_rad_s" for k in range(count)])
    limits, thrust = _rotor_limits(folder, count)
    held, commanded = _command_stamps(stamps, folder)
    if thrust:
        draft.note("Rotors of this vehicle have thrust as their state: speeds are left out.")
    elif speeds is not None:
        draft.found.append(Found("motor_speed", stamps, speeds, origin="rotor_speed_*"))
    if commands is not None and limits is None:
        draft.note("Commands of rotors stay raw: record/vehicle_0.toml, which has their largest speed, is not there.")
    elif commands is not None and limits is not None:
        values = commands[commanded] / limits
        draft.found.append(Found("motor_command", held, values, origin="rotor_command_* over speed_max"))


def _command_stamps(stamps: ArrayAny, folder: Path) -> tuple[ArrayAny, slice]:
    """Since when recorded commands hold [ns], and which of them are commands.

    A row has the state after a step of the physics, and the command that was issued for that step. Control laws issue one in
    every step, so that where rows are rarer, a command stands for as long before the middle of its step as behind it: held
    since the step began, commands would come half of what lies between late, and a fit would find that as a dead time below 0.
    What the first row has was never commanded. Without the physics' rate, stamps stay those of the rows.
    """
    meta = read_json(folder / "meta.json", _META_BYTES_MAX) if (folder / "meta.json").is_file() else {}
    rate = meta.get("physics_rate_hz") if isinstance(meta, dict) else None
    if not _number(rate) or not 1.0 <= float(str(rate)) <= 1e6 or len(stamps) < 2:
        return stamps, slice(None)
    step = NS / float(str(rate))
    between = max(float(np.median(np.diff(stamps))), step)
    return stamps[1:] - round(0.5 * (step + between)), slice(1, None)


def _rotor_limits(folder: Path, count: int) -> tuple[ArrayAny | None, bool]:
    """Largest speed of each rotor, None where no vehicle of the run tells it, and whether thrust is the rotors' state."""
    path = folder / "record" / "vehicle_0.toml"
    if not path.is_file():
        return None, False
    content = read_toml(path)
    common = content.get("rotor", {})
    rotors = content.get("rotors", [])
    if not isinstance(common, dict) or not isinstance(rotors, list) or len(rotors) != count:
        return None, False
    found = [{**common, **(r if isinstance(r, dict) else {})}.get("speed_max") for r in rotors]
    good = all(isinstance(v, int | float) and 0.0 < v < 1e9 for v in found)
    return (np.array(found, np.float64) if good else None), content.get("motor_state") == "thrust"


# ---- Archives ----------------------------------------------------------------------------------------------------------------


def is_event_archive(arrays: Mapping[str, ArrayAny]) -> bool:
    """Tell whether arrays are events of a Crazyflie: EVENT/t, EVENT/names, EVENT/data."""
    return any(name.endswith("/t") and name[:-1] + "data" in arrays and name[:-1] + "names" in arrays for name in arrays)


def read_event_archive(arrays: Mapping[str, ArrayAny], draft: LogDraft) -> None:
    """Read events of a Crazyflie into a draft; stamps are seconds of its clock.

    Raises:
        AssetError: An event's arrays do not fit each other.
    """
    for name in arrays:
        event = name.removesuffix("/t")
        if event == name or f"{event}/data" not in arrays:
            continue
        time, names, data = arrays[name], arrays.get(f"{event}/names"), arrays[f"{event}/data"]
        fits = names is not None and names.dtype.kind == "U" and data.ndim == 2 and data.shape == (time.size, names.size)
        if names is None or not fits or data.dtype.kind not in "fiu" or time.dtype.kind not in "fiu" or time.ndim != 1:
            raise draft.refuse(f"{event}/data has shape {data.shape}, which does not fit {event}/t and {event}/names")
        stamps = nanoseconds(time, "s", f"Log {draft.path!r}, {name}")
        columns = {str(text): data[:, k] for k, text in enumerate(names)}
        draft.raw |= {f"{event}.{text}": (stamps, values) for text, values in columns.items()}
        draft.found += crazyflie_streams(event, stamps, columns)


def read_own_archive(arrays: Mapping[str, ArrayAny], draft: LogDraft) -> None:
    """Read an archive that `write_npz` wrote into a draft.

    Raises:
        AssetError: Its description does not fit its arrays.
    """
    head = arrays[NPZ_HEAD]
    if head.dtype != np.uint8 or head.ndim != 1:
        raise draft.refuse(f"array {NPZ_HEAD!r} is no description in UTF-8")
    content = parse_json(bytes(head).decode("utf-8", "replace"), f"{draft.path}: {NPZ_HEAD}")
    listed = content.get("streams") if isinstance(content, dict) else None
    start = content.get("start_ns", 0) if isinstance(content, dict) else 0
    if not isinstance(listed, list) or not isinstance(start, int) or abs(start) >= 1 << 62:
        raise draft.refuse("its description lists no streams")
    for k, item in enumerate(listed):
        time, values = arrays.get(f"stream_{k}/time"), arrays.get(f"stream_{k}/values")
        if not isinstance(item, dict) or time is None or values is None or item.get("kind") not in KINDS:
            raise draft.refuse(f"stream {k} of its description is not among its arrays, or of no kind")
        width = KINDS[item["kind"]].width
        fits = time.dtype == np.float64 and values.dtype == np.float64 and time.ndim == 1 and values.ndim == 2
        if not fits or len(time) != len(values) or width not in (None, values.shape[1]) or item.get("stamp") not in STAMPS:
            raise draft.refuse(f"arrays of stream {k} have shapes {time.shape} and {values.shape}, which do not fit its kind")
        if not (np.isfinite(time).all() and np.all(np.abs(time) < _SECONDS_MAX)):
            raise draft.refuse(f"stream {k} has times that are not finite")
        stamps = np.rint(time * NS).astype(np.int64) + start
        low = item.get("filter")
        low_pass = (
            LowPass(int(low[0]), float(low[1])) if isinstance(low, list) and len(low) == 2 and all(map(_number, low)) else None
        )
        label = str(item.get("label", ""))[:64]
        origin = str(item.get("origin", ""))[:256]
        clock = [item.get("clock_offset", 0.0), item.get("clock_scale", 1.0)]
        if not all(map(_number, clock)):
            raise draft.refuse(f"stream {k} has clock {clock}; expected an offset and a scale")
        read = Found(item["kind"], stamps, values, label, stamp=item["stamp"], filter=low_pass, origin=origin)
        draft.found.append(replace(read, clock_offset=float(clock[0]), clock_scale=float(clock[1])))
    if isinstance(content.get("parameters"), dict):
        draft.parameters |= {k: v for k, v in content["parameters"].items() if isinstance(v, int | float | str)}
    _own_events(content.get("events", []), start, draft)
    _own_geometry(arrays, content.get("linearised", 0.0), draft)


def _own_events(listed: object, start: int, draft: LogDraft) -> None:
    if not isinstance(listed, list) or len(listed) > _EVENTS_MAX:
        raise draft.refuse("its events are no list")
    for item in listed:
        good = isinstance(item, list) and len(item) == 3 and _number(item[0]) and isinstance(item[1], str)
        if not good or not isinstance(item[2], str) or not abs(item[0]) < _SECONDS_MAX:
            raise draft.refuse(f"event {str(item)[:80]} is not a time [s], a kind and a detail")
        draft.events.append((start + round(item[0] * NS), item[1], item[2]))


def _own_geometry(arrays: Mapping[str, ArrayAny], linearised: object, draft: LogDraft) -> None:
    found = [arrays.get(f"geometry/{name}") for name in GEOMETRY_ARRAYS]
    position, axis, spin, ratio = found
    if position is None or axis is None or spin is None or ratio is None:
        return
    rotors = position.shape[0] if position.ndim == 2 else 0
    fits = position.shape == axis.shape == (rotors, 3) and spin.shape == ratio.shape == (rotors,)
    if not fits or any(array.dtype != np.float64 or not np.isfinite(array).all() for array in (position, axis, spin, ratio)):
        raise draft.refuse("its geometry of rotors is not of finite positions and axes (n, 3), spins and ratios (n,)")
    if not _number(linearised):
        raise draft.refuse(f"THR_MDL_FAC of its geometry is {linearised!r}; expected a number")
    draft.geometry = RotorGeometry(position, axis, spin, ratio, float(str(linearised)))


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
