"""A first guess of what the columns of a table mean, with its reasons, as a `mapping.toml` to be edited."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.core.errors import AirworthyError
from airworthy.core.table_schema import toml_key, toml_string
from airworthy.logs.guessing.frames import MappingGuess, agreeing_frames
from airworthy.logs.units import STANDARD_GRAVITY

_TIME = re.compile(r"#?\s*(t|time|stamp|timestamp|time_?stamp|ts)([_ \[(]*(s|sec|ms|us|ns)[\])]?)?", re.IGNORECASE)
_AXIS = re.compile(r"(?<![a-z])([xyzw])(?![a-z])|([xyzw])$|([xyzw])(?=_|\d|$| |\[|\()", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
_THREES = (
    ("gyro", re.compile(r"gyr|omega|angular|ang_?vel|rate|dps|^[wg]_?[xyz]|^imu_w", re.IGNORECASE)),
    ("accelerometer", re.compile(r"acc|^a_?[xyz](?![a-z])|specific|imu_f|imu_a", re.IGNORECASE)),
    ("magnetometer", re.compile(r"mag|^m_?[xyz]", re.IGNORECASE)),
    ("velocity", re.compile(r"vel|(?:^|\.)v_?[xyz]|speed", re.IGNORECASE)),
    ("position", re.compile(r"pos|^p_?[xyz]|^t_?[xyz]$|^[xyz]$|estimate\.[xyz]|loc", re.IGNORECASE)),
)
_PX4 = re.compile(r"(?<![a-z])vehicle_(attitude|local_position)(?![a-z])(?!_setpoint)", re.IGNORECASE)
"""Topics of PX4: attitudes are of FRD over NED, their first number w; positions and velocities are of NED."""
_DERIVED = re.compile(r"\.a_?[xyz]$|\.delta_|_reset", re.IGNORECASE)
"""In names of a topic of positions, what is none."""
_SERIES = (
    ("motor_speed", re.compile(r"rpm|(motor|rotor|mot|esc)_?(speed|omega|w)(?![a-z])", re.IGNORECASE), "rpm"),
    (
        "motor_command",
        re.compile(
            r"motor|pwm|cmd|thr|throttle|output|actuator|servo|rcou|(?<![a-z])mot(?![a-z])|^esc|^m_?\d|^u_?\d|^c\d+$",
            re.IGNORECASE,
        ),
        "",
    ),
)
_RATES = (("roll", "pitch", "yaw"), ("p", "q", "r"), ("phi", "theta", "psi"))
"""What rates about x, y, z are called, beside a word for a rate."""
_RATE = re.compile(
    r"rate|gyr|dps|deg_?/?p?e?r?_?s(?![a-z])|rad_?/?p?e?r?_?s(?![a-z])|omega|(?<![a-z])w(?![a-z])", re.IGNORECASE
)
_WANTED = re.compile(r"set_?point|(?<![a-z])sp(?![a-z])|desired|target|(?<![a-z])ref|command|cmd", re.IGNORECASE)
"""In names of rates that somebody asked for, and nobody measured."""
PULSES = (700.0, 2500.0)
"""Widths of pulses that motors are driven by [us]: 1000 to 2000, with what calibrations and stops add."""
FULL_SCALES = (1000, 2047, 2500)
"""Full command of other numbers: per mille, and DShot's, whose least is 48."""
_COUNTS = (512, 1024, 2048, 4096, 8192, 16384)
"""Of a converter to one g, as flight controllers have them."""
_UNIT_WORDS = {
    "gyro": (
        ("mrad/s", re.compile(r"mrad", re.IGNORECASE)),
        ("deg/s", re.compile(r"deg|dps|gyroADC", re.IGNORECASE)),
        ("rad/s", re.compile(r"rad|rps", re.IGNORECASE)),
    ),
    "accelerometer": (
        ("mg", re.compile(r"(?<![a-z])mg(?![a-z])|milli_?g", re.IGNORECASE)),
        ("ft/s^2", re.compile(r"ft", re.IGNORECASE)),
        ("m/s^2", re.compile(r"m_?/?p?s_?\^?2|mss|m_s_s", re.IGNORECASE)),
        ("g", re.compile(r"(?<=[_ \[(])g(?=$|[\])_ ])", re.IGNORECASE)),
    ),
    "motor_speed": (("rad/s", re.compile(r"rad|omega", re.IGNORECASE)), ("rpm", re.compile(r"rpm", re.IGNORECASE))),
    "motor_command": (("us", re.compile(r"(?<![a-z])us(?![a-z])", re.IGNORECASE)), ("%", re.compile(r"%|perc?en?t|pct"))),
    "voltage": (("mV", re.compile(r"(?<![a-zA-Z])mV(?![a-zA-Z])|millivolt")), ("V", re.compile(r"(?<=[_ \[(])V(?=$|[\])_ ])"))),
    "current": (("mA", re.compile(r"(?<![a-zA-Z])mA(?![a-zA-Z])")), ("A", re.compile(r"(?<=[_ \[(])A(?=$|[\])_ ])"))),
}
"""Words of names that say a unit, by kind; the first that fits."""
_SINGLES = (
    ("voltage", re.compile(r"volt|vbat|battery_?v", re.IGNORECASE)),
    ("current", re.compile(r"current|amper|(?<![a-z])curr(?![a-z])", re.IGNORECASE)),
    ("pressure", re.compile(r"press|baro", re.IGNORECASE)),
    ("temperature", re.compile(r"temp", re.IGNORECASE)),
    ("range", re.compile(r"range|tof|lidar|sonar", re.IGNORECASE)),
)


@dataclass(frozen=True)
class TableGuess:
    """What a table's columns seem to be."""

    time: str
    time_unit: str
    time_reason: str
    streams: tuple[MappingGuess, ...]
    unknown: tuple[str, ...]

    def text(self, source: str) -> str:
        """Return the mapping as TOML, a comment with the reason before each line."""
        source = source.encode("utf-8", "backslashreplace").decode()  # a name need not be one of UTF-8
        lines = [f"# A first guess for {source}: read each line, and correct what is wrong.", f"# time: {self.time_reason}"]
        clock = f'time = {toml_string(self.time)}, time_unit = "{self.time_unit}"'
        for item in self.streams:
            columns = ", ".join(toml_string(c) for c in item.columns)
            unit = f'unit = "{item.unit}", ' if item.unit else ""
            frame = f'frame = "{item.frame}", ' if item.frame else ""
            scale = f", scale = {item.scale:.6g}" if item.scale != 1.0 else ""
            line = f"{toml_key(item.name)} = {{ columns = [{columns}], {unit}{frame}{clock}{scale} }}"
            lines += [f"# {item.reason}", line]
        if self.unknown:
            lines.append(f"# Not taken: {', '.join(toml_string(c) for c in self.unknown)}")
        return "\n".join(lines) + "\n"


def guess_mapping(columns: Mapping[str, ArrayAny]) -> TableGuess:
    """Guess what columns mean, by their names first and their numbers second.

    Args:
        columns: Name -> numbers, (n,) each.

    Raises:
        AirworthyError: No column can be the time.
    """
    columns = {name: values for name, values in columns.items() if np.isfinite(np.asarray(values, np.float64)).any()}
    time, unit, reason = _time(columns)
    left = [name for name in columns if name != time]
    found: list[MappingGuess] = []

    def take(guess: MappingGuess | None) -> None:
        if guess is None:
            return
        count = sum(g.name.partition(":")[0] == guess.name for g in found)
        name = f"{guess.name}:{count}" if count else guess.name
        found.append(replace(guess, name=name))
        for column in guess.columns:
            left.remove(column)

    # Four motors at half their thrust are of unit length, too.
    fours = [group for group in _array_groups(left, 4) if not any(pattern.search(group[0]) for _, pattern, _ in _SERIES)]
    for group in _axis_groups(left, 4):
        take(_attitude(group, columns))
    for group in fours:
        take(_attitude(group, columns, numbered=True))
    take(_named_rates(left, columns))
    take(_euler(left, columns))
    for kind, pattern, series_unit in _SERIES:
        for names in _numbered(left, pattern):
            if not _is_other(names, columns):
                take(_motors(kind, names, series_unit, columns))
    for group in (*_axis_groups(left, 3), *_array_groups(left, 3)):
        take(_three(group, columns))
    take(_compass(left))
    for kind, pattern in _SINGLES:
        name = next((n for n in left if pattern.search(n)), None)
        if name is not None:
            take(_single(kind, name, columns))
    return TableGuess(time, unit, reason, tuple(agreeing_frames(found, columns)), tuple(left))


def _time(columns: Mapping[str, ArrayAny]) -> tuple[str, str, str]:
    """Column of the stamps, its unit, and why."""

    def rising(name: str) -> bool:
        values = np.asarray(columns[name], np.float64)
        steps = np.diff(values[np.isfinite(values)])
        return steps.size > 1 and bool(np.mean(steps >= 0.0) > 0.99) and bool(np.any(steps > 0.0))

    named = [n for n in columns if _TIME.fullmatch(n.strip()) or n.lower().startswith("time")]
    name = next((n for n in named if rising(n)), None) or next((n for n in columns if rising(n)), None)
    if name is None:
        raise AirworthyError(f"No column rises throughout, as time does; columns: {', '.join(list(columns)[:12])}.")
    said = f"column {name!r} rises throughout" + (" and is named so" if name in named else "")
    values = np.asarray(columns[name], np.float64)
    step = float(np.median(np.diff(values[np.isfinite(values)])))
    match = re.search(r"(?<![a-z])(ns|us|ms|sec|s)(?![a-z])", name.lower()) if step > 0.0 else None
    if match is not None:
        return name, {"sec": "s"}.get(match[1], match[1]), f"{said}; its name says {match[1]}"
    for unit, large in (("ns", 1e17), ("us", 1e14), ("ms", 1e11)):
        if values[0] > large:
            return name, unit, f"{said}; {values[0]:.4g} is a date in {unit}"
    if step == 0.0:
        said += ", but stands still between whole seconds: join it with the column of their parts first"
    unit = "s" if step < 0.4 else "ms" if step < 150.0 else "us" if step < 1.5e5 else "ns"
    return name, unit, f"{said}; a step of {step:.4g} is likely one in {unit}"


def _axis_groups(names: list[str], count: int) -> list[tuple[str, ...]]:
    """Names that differ in an axis letter only, in the order x, y, z(, w)."""
    groups: dict[str, dict[str, str]] = {}
    for name in names:
        for match in _AXIS.finditer(name):
            template = f"{name[: match.start()]}*{name[match.end() :]}"
            groups.setdefault(template, {}).setdefault(match[0].lower(), name)
    wanted = "xyzw"[:count]
    found = [tuple(group[a] for a in wanted) for group in groups.values() if all(a in group for a in wanted)]
    taken: set[str] = set()
    out = []
    for group in found:
        if not taken & set(group) and len(set(group)) == count:
            out.append(group)
            taken |= set(group)
    return out


def _array_groups(names: list[str], count: int) -> list[tuple[str, ...]]:
    """Columns "NAME.0" or "NAME[0]" to "NAME.K" of an array that has exactly so many."""
    arrays: dict[str, dict[int, str]] = {}
    for name in names:
        match = re.fullmatch(r"(.+?)(?:\.(\d{1,4})|\[(\d{1,4})\])", name)
        if match is not None:
            arrays.setdefault(match[1], {})[int(match[2] or match[3])] = name
    return [tuple(found[k] for k in range(count)) for found in arrays.values() if set(found) == set(range(count))]


def _numbered(names: list[str], pattern: re.Pattern[str]) -> list[tuple[str, ...]]:
    """Names that differ in a number only, in its order; one alone is none."""
    groups: dict[str, dict[int, str]] = {}
    for name in names:
        numbers = list(_NUMBER.finditer(name))
        if numbers and pattern.search(name):
            last = numbers[-1]
            groups.setdefault(f"{name[: last.start()]}*{name[last.end() :]}", {})[int(last[0][:6])] = name
    return [tuple(group[k] for k in sorted(group)) for group in groups.values() if 2 <= len(group) <= 12]


def _values(columns: Mapping[str, ArrayAny], names: tuple[str, ...]) -> Array:
    return np.stack([np.asarray(columns[name], np.float64) for name in names], axis=1)


def _attitude(names: tuple[str, ...], columns: Mapping[str, ArrayAny], numbered: bool = False) -> MappingGuess | None:
    with np.errstate(all="ignore"):
        length = np.nanmedian(np.linalg.norm(_values(columns, names), axis=1))
    if not abs(length - 1.0) < 0.02:
        return None
    if numbered and _PX4.search(names[0]):
        names = (*names[1:], names[0])
        return MappingGuess(
            "attitude", names, "", "frd->ned", "named as PX4's attitude: w comes first, FRD over NED", told=True
        )
    said = "four columns x, y, z, w of unit length"
    if numbered:
        said = (
            "four numbered columns of unit length, taken for x, y, z, w (where w comes first, `airworthy logs show` finds that"
        )
        said += " the gyro turns otherwise)"
    return MappingGuess("attitude", names, "", "", f"{said}; body and world taken for FLU and ENU")


def _euler(left: list[str], columns: Mapping[str, ArrayAny]) -> MappingGuess | None:
    for words in (("roll", "pitch", "yaw"), ("euler_x", "euler_y", "euler_z"), ("phi", "theta", "psi")):
        names = tuple(next((n for n in left if w in n.lower() and "rate" not in n.lower()), "") for w in words)
        if all(names):
            largest = float(np.nanmax(np.abs(_values(columns, names))))
            unit = "deg" if largest > 7.0 else "rad"
            return MappingGuess(
                "attitude", names, unit, "", f"roll, pitch, yaw up to {largest:.3g}: {unit}; FLU and ENU are a guess"
            )
    return None


def _three(names: tuple[str, ...], columns: Mapping[str, ArrayAny]) -> MappingGuess | None:
    kind = next((k for k, pattern in _THREES if pattern.search(names[0])), None)
    if kind is None or (kind == "position" and _DERIVED.search(names[0])):
        return None
    if kind in ("position", "velocity") and _PX4.search(names[0]):
        return MappingGuess(kind, names, "", "ned", f"named as PX4's {kind}: SI units, NED", told=True)
    values = _values(columns, names)
    with np.errstate(all="ignore"):
        size = float(np.nanpercentile(np.linalg.norm(values, axis=1), 99))
        middle = float(np.nanmedian(np.linalg.norm(values, axis=1)))
        up = float(np.nanmedian(values[:, 2]))
    if kind == "gyro":
        return _rates(names, size)
    if kind == "accelerometer":
        unit = _unit_word(kind, names[0]) or ("g" if 0.5 < middle < 2.0 else "mg" if 900.0 < middle < 1100.0 else "m/s^2")
        counts = next((c for c in _COUNTS if abs(middle / c - 1.0) < 0.08), None) if unit == "m/s^2" else None
        if counts is not None:
            frame = "frd" if up < 0.0 else "flu"
            said = f"named as forces, half of them {middle:.4g} long: counts, {counts} of them taken for one g"
            return MappingGuess(kind, names, "g", frame, said, told=True, scale=1.0 / counts)
        frame = "frd" if up < -0.5 * {"g": 1.0, "mg": 1000.0, "ft/s^2": 32.2}.get(unit, STANDARD_GRAVITY) else "flu"
        way = "down" if frame == "frd" else "up"
        said = f"named as forces, half of them {middle:.3g} long: {unit}; z is {up:.3g}, so z points {way}"
        return MappingGuess(kind, names, unit, frame, said, told=True)
    frame = "flu" if kind == "magnetometer" else "enu"
    return MappingGuess(kind, names, "", frame, f"named as {kind}; SI units and {frame.upper()} are a guess")


def _rates(names: tuple[str, ...], size: float) -> MappingGuess:
    """Rates about x, y, z; `size` is one under which 99 % of them lie."""
    word = _unit_word("gyro", names[0])
    unit = word or ("deg/s" if size > 20.0 else "rad/s")
    said = f"named as rates in {unit}" if word else f"named as rates, 99 % under {size:.3g}: {unit}"
    return MappingGuess("gyro", names, unit, "flu", said)


def _named_rates(left: list[str], columns: Mapping[str, ArrayAny]) -> MappingGuess | None:
    """Rates that are called by what turns: roll_rate_dps, p_rad_s, gyro_roll."""
    rated = [n for n in left if _RATE.search(n) and not _WANTED.search(n)]
    for words in _RATES:
        groups: dict[str, dict[str, str]] = {}
        for name in rated:
            for word in words:
                found = re.search(rf"(?<![a-z]){word}(?![a-z])" if len(word) == 1 else word, name, re.IGNORECASE)
                if found is not None:
                    groups.setdefault(f"{name[: found.start()]}*{name[found.end() :]}", {})[word] = name
        for group in groups.values():
            if set(group) == set(words):
                names = tuple(group[word] for word in words)
                with np.errstate(all="ignore"):
                    return _rates(names, float(np.nanpercentile(np.linalg.norm(_values(columns, names), axis=1), 99)))
    return None


def _unit_word(kind: str, name: str) -> str:
    """Return the unit that a name says, or nothing."""
    return next((unit for unit, pattern in _UNIT_WORDS.get(kind, ()) if pattern.search(name)), "")


def _is_other(names: tuple[str, ...], columns: Mapping[str, ArrayAny]) -> bool:
    """Whether numbered columns of bare names (C1, C2 ...) hold no widths of pulses, which those of motors are."""
    if not all(re.fullmatch(r"(?i)c\d+", name) for name in names):
        return False
    values = _values(columns, names)
    good = values[np.isfinite(values)]
    return not good.size or float(good.min()) < 700.0 or float(good.max()) > 2500.0


def _compass(left: list[str]) -> MappingGuess | None:
    """Position by North, East and Down, or East, North and Up."""
    for words, frame in ((("north", "east", "down"), "ned"), (("east", "north", "up"), "enu")):
        names = tuple(next((n for n in left if n.lower().strip() == w), "") for w in words)
        if all(names):
            return MappingGuess("position", names, "", frame, f"named {', '.join(words)}; metres are a guess", told=True)
    return None


def _motors(kind: str, names: tuple[str, ...], unit: str, columns: Mapping[str, ArrayAny]) -> MappingGuess:
    values = _values(columns, names)
    largest = float(np.nanmax(values))
    word = _unit_word(kind, names[0])
    if kind == "motor_command" and not word:
        return _driven(names, values, largest)
    unit = word or unit
    if kind == "motor_speed" and "erpm" in names[0].lower():
        by = 100.0 if largest < 10_000.0 else 1.0
        hundreds = " in hundreds" if by > 1.0 else ""
        said = f"{len(names)} columns of electrical turns{hundreds}: 14 poles are taken, so 7 of them are one of the rotor"
        return MappingGuess(kind, names, "rpm", "", said, scale=by / 7.0)
    return MappingGuess(kind, names, unit, "", f"{len(names)} columns named as motors, up to {largest:.4g}: {unit}")


def _driven(names: tuple[str, ...], values: Array, largest: float) -> MappingGuess:
    """Motor commands by their numbers: widths of pulses do not come below 700 us, whatever a motor does."""
    count = f"{len(names)} columns named as motors"
    running = values[np.isfinite(values) & (values != 0.0)]
    least = float(np.percentile(running, 1.0)) if running.size else 0.0
    pulses = PULSES[0] < least and largest <= PULSES[1]
    if largest > 300.0 and largest <= PULSES[1] and not pulses:
        full = next((number for number in FULL_SCALES if largest <= number), FULL_SCALES[-1])
        said = (
            f"{count}, nearly all between {least:.4g} and {largest:.4g}: widths of pulses are 1000 to 2000 us, so 0 to {full}"
        )
        said += " are taken for none to full; if full is another number, scale is 1 over it"
        return MappingGuess("motor_command", names, "1", "", said, scale=1.0 / full)
    unit = "u16" if largest > PULSES[1] else "us" if pulses else "%" if largest > 1.5 else "1"
    return MappingGuess("motor_command", names, unit, "", f"{count}, up to {largest:.4g}: {unit}")


def _single(kind: str, name: str, columns: Mapping[str, ArrayAny]) -> MappingGuess:
    with np.errstate(all="ignore"):
        middle = float(np.nanmedian(np.asarray(columns[name], np.float64)))
    small = {"voltage": ("mV", 200.0), "current": ("mA", 500.0), "range": ("mm", 100.0)}
    unit = {"temperature": "degC" if middle < 200.0 else "K", "pressure": "hPa" if middle < 2000.0 else "Pa"}.get(kind, "")
    if kind in small:
        by_size = small[kind][0] if middle > small[kind][1] else {"voltage": "V", "current": "A", "range": "m"}[kind]
        unit = _unit_word(kind, name) or by_size
    return MappingGuess(kind, (name,), unit, "", f"named as {kind}, half of it {middle:.4g}: {unit}")
