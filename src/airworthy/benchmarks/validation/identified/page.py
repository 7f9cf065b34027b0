"""The page of an identified vehicle: each value and its source, what no log told, predictions of what it never saw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from airworthy.benchmarks.validation.identified.figures import (
    WIDE,
    correlation_figure,
    curve_figure,
    held_figure,
    parts_figure,
    values_figure,
)
from airworthy.benchmarks.validation.open_loop.flights import ready_flights
from airworthy.benchmarks.validation.open_loop.page import validation_parts
from airworthy.benchmarks.validation.open_loop.prediction import batch_windows
from airworthy.benchmarks.validation.open_loop.validate import LogValidation, ValidateOptions, judged
from airworthy.core.errors import AirworthyError
from airworthy.core.files import make_folder, write_text
from airworthy.logs import Log, LogSegments
from airworthy.reports.page import DASH, card, fixed, markup, page_of
from airworthy.vehicles import Identified, IdentifiedValue
from airworthy.vehicles.identification.compared import COLUMNS, HeldOutRow
from airworthy.vehicles.identification.gathering import GUARD, HELD_SHARE, SHORT

__all__ = ["PAGE", "held_parts", "write_identification"]

PAGE = "report.html"
WINDOWS = 120
"""Of each flight, for the pictures."""
TONES = {"flyable": "good", "do not trust": "poor"}
TAGS = {
    "identified": "success_recovered",
    "supported": "success",
    "weighed": "success_recovered",
    "measured": "success_recovered",
    "bench": "success_recovered",
    "fixed": "success",
    "prior": "partial",
    "assumed": "failure",
}
UNITS: dict[str, tuple[str, float]] = {
    "mass": ("g", 1e3),
    "thrust": ("N", 1.0),
    "thrust_linear": ("", 1.0),
    "torque_ratio": ("mm", 1e3),
    "lag": ("ms", 1e3),
    "command_delay": ("ms", 1e3),
    "inertia_xx": ("10\N{SUPERSCRIPT MINUS}\N{SUPERSCRIPT SIX} kg m\N{SUPERSCRIPT TWO}", 1e6),
    "inertia_yy": ("10\N{SUPERSCRIPT MINUS}\N{SUPERSCRIPT SIX} kg m\N{SUPERSCRIPT TWO}", 1e6),
    "inertia_zz_ratio": ("", 1.0),
    "center_x": ("mm", 1e3),
    "center_y": ("mm", 1e3),
    "damping": ("1/s", 1.0),
    "drag_x": ("1/s", 1.0),
    "drag_y": ("1/s", 1.0),
    "drag_z": ("1/s", 1.0),
    "drag_square": ("1/m", 1.0),
    "sag": ("", 1.0),
    "imu_x": ("mm", 1e3),
    "imu_y": ("mm", 1e3),
    "imu_z": ("mm", 1e3),
    "imu_tilt_x": ("deg", 180.0 / math.pi),
    "imu_tilt_y": ("deg", 180.0 / math.pi),
    "drag_height": ("mm", 1e3),
    "force_delay": ("ms", 1e3),
    "speed_delay": ("ms", 1e3),
    "fall_ratio": ("", 1.0),
}
"""Unit and factor of each value on the page."""
MEANINGS = {
    "mass": "mass",
    "thrust": "thrust of a rotor in hover",
    "thrust_linear": "share of it that is linear in the rotor state",
    "torque_ratio": "torque over thrust of a rotor",
    "lag": "lag of the rotors about hover",
    "command_delay": "dead time from command to rotor",
    "inertia_xx": "inertia about x",
    "inertia_yy": "inertia about y",
    "inertia_zz_ratio": "inertia about z over the mean of the others",
    "center_x": "centre of mass, forward",
    "center_y": "centre of mass, left",
    "damping": "damping of rates, over inertia",
    "drag_x": "linear drag over mass, forward",
    "drag_y": "linear drag over mass, left",
    "drag_z": "linear drag over mass, up",
    "drag_square": "square drag over mass",
    "sag": "exponent by which commands go with the supply",
    "imu_x": "inertial sensor, forward",
    "imu_y": "inertial sensor, left",
    "imu_z": "inertial sensor, up",
    "imu_tilt_x": "tilt of the sensor about x",
    "imu_tilt_y": "tilt of the sensor about y",
    "drag_height": "where drag acts, above the centre of mass",
    "force_delay": "accelerometer later than the gyro",
    "speed_delay": "measured rotor speeds later than the gyro",
    "fall_ratio": "lag of falling rotors over that of rising ones",
}
_SOURCES = {
    "mass": "mass",
    "thrust": "rotors.thrust",
    "thrust_linear": "rotors.thrust",
    "torque_ratio": "rotors.torque",
    "lag": "rotors.response",
    "command_delay": "command_delay",
    "inertia_xx": "inertia",
    "inertia_yy": "inertia",
    "inertia_zz_ratio": "inertia",
    "center_x": "center_of_mass",
    "center_y": "center_of_mass",
    "damping": "drag",
    "drag_x": "drag",
    "drag_y": "drag",
    "drag_z": "drag",
    "drag_square": "drag",
    "sag": "command_sag",
}


def held_parts(segments: LogSegments) -> tuple[float, float] | None:
    """Return the part of a flight that no fit saw where no other log judges: its last third; None: it was fitted whole.

    Args:
        segments: Of the log.
    """
    usable = segments.usable
    if segments.usable_time < SHORT or not usable:
        return None
    begin, end = usable[0].start, usable[-1].stop
    cut = end - HELD_SHARE * (end - begin)
    guard = min(GUARD, 0.1 * (end - begin))
    first = sum(max(min(s.stop, cut - guard) - s.start, 0.0) for s in usable)
    last = sum(max(s.stop - max(s.start, cut), 0.0) for s in usable)
    return None if first < 2.0 or last < 1.0 else (cut, end)


def write_identification(
    folder: str | Path, found: Identified, logs: Sequence[Log], command: str, holdout: Sequence[Log] = ()
) -> Path:
    """Write report.html.

    Args:
        folder: Made if missing.
        found: What was identified.
        logs: What it was fitted to, in the order in which it was given.
        command: That makes it again.
        holdout: Logs that judged it; empty: the last third of each flight.

    Returns:
        The page.
    """
    held = [None if holdout else held_parts(segments) for segments in found.segments]
    judges: list[tuple[Log, tuple[float, float] | None]] = [(log, None) for log in holdout]
    judges = judges or [(log, part) for log, part in zip(logs, held, strict=True) if part]
    predicted, why_not = _predicted(found, judges)
    page = page_of(
        "airworthy.benchmarks.validation.identified",
        title=f"{found.vehicle.name}: a vehicle from {len(logs)} log{'s' if len(logs) > 1 else ''}",
        verdict=_verdict(found),
        cards=_cards(found),
        rows=[_row(found, value) for value in found.values],
        sensor=[_row(found, value) for value in found.sensor],
        winds=[(name, _wind(east), _wind(north)) for name, east, north in found.winds],
        values=markup(values_figure(found)),
        curve=markup(curve_figure(found)),
        correlation=markup(correlation_figure(found)),
        held=None if found.table is None else markup(held_figure(found)),
        held_rows=[] if found.table is None else [_held_row(row) for row in found.table.rows],
        columns=list(COLUMNS),
        nearest="" if found.table is None else found.table.nearest,
        trim_of=None if found.table is None else found.table.trim,
        parts=markup(parts_figure([log.name for log in logs], found.segments, held)),
        segments=_segments(found, logs),
        judges=", ".join(dict.fromkeys(log.name for log, _ in judges)),
        advice=list(found.advice),
        notes=list(found.notes),
        structures=[(name, fixed(score, 1), name == found.structure) for name, score in found.structures.items()],
        command=command,
        predicted=None if predicted is None else validation_parts(predicted),
        said="" if predicted is None else predicted.said,
        why_not=why_not,
        near=[f"{1e3 * v:.0f}" for v in found.start.near],
    )
    return write_text(make_folder(folder) / PAGE, page)


def _predicted(found: Identified, judges: Sequence[tuple[Log, tuple[float, float] | None]]) -> tuple[LogValidation | None, str]:
    """Predict what was held out with the record that is saved, in the Simulator; where that cannot be, say why."""
    if not judges:
        return None, "The flights are too short to hold anything out: nothing judges this vehicle."
    options = ValidateOptions(feed="commands", windows=WINDOWS)
    try:
        flights = [
            flight
            for log, part in judges
            for flight in ready_flights([log], found.vehicle, use=() if part is None else (part,), feed="commands")
        ]
        return judged(found.vehicle, batch_windows(flights, WINDOWS), options), ""
    except AirworthyError as error:
        return None, str(error)


# ---- Words -------------------------------------------------------------------------------------------------------------------


def _verdict(found: Identified) -> str:
    told = [v.name for v in found.values if v.word in ("identified", "supported", "weighed", "measured")]
    said = f"{len(told)} of {len(found.values)} values are told by the logs, or were measured; the others are beliefs."
    if found.table is None:
        return f"Nothing was held out, so nothing judges this vehicle. {said}"
    meaning = {
        "flyable": "It hovers, and predicts what it never saw clearly better than holding the reading.",
        "supported": "It predicts what it never saw somewhat better than holding the reading.",
        "do not trust": " ".join(found.table.reasons),
    }
    return f"{found.table.verdict.capitalize()}. {meaning.get(found.table.verdict, '')} {said}"


def _cards(found: Identified) -> list[dict[str, str]]:
    table = found.table
    cards = []
    if table is not None:
        cards.append(card("verdict", table.verdict, tone=TONES.get(table.verdict, "")))
        row = table.row("rate", "excited", 0.25) or table.row("force", "all", 0.25)
        if row is not None:
            unit = "rad/s" if row.quantity == "rate" else "m/s\N{SUPERSCRIPT TWO}"
            below = f"held {fixed(row.rms['hold'], 2)}, trimmed {fixed(row.rms['trimmed'], 2)}"
            cards.append(card(f"{row.quantity}, 250 ms ahead", fixed(row.rms["identified"], 2), unit, below))
    cards.append(card("hover", fixed(100.0 * found.hover, 1), "%", "of full command"))
    for name, label in (("lag", "lag"), ("command_delay", "dead time"), ("inertia_xx", "Ixx")):
        value = found.value(name)
        unit, factor = UNITS[name]
        below = f"+- {_digits(factor * value.sd)}, {value.word}"
        # A unit of several words stands below: beside the number it would break.
        beside, below = (unit, below) if " " not in unit else ("", f"{unit}; {below}")
        cards.append(card(label, _digits(factor * value.value), beside, below))
    return cards


def _row(found: Identified, value: IdentifiedValue) -> dict[str, Any]:
    unit, factor = UNITS.get(value.name, ("", 1.0))
    prior = found.prior(value.name)
    if prior.scale == "log":
        wide = WIDE * value.sd / value.value if value.value else 0.0
        ends = (value.value * math.exp(-wide), value.value * math.exp(wide))
        believed = [math.exp(prior.mean + k * WIDE * prior.sd) for k in (0.0, -1.0, 1.0)]
    else:
        ends = (value.value - WIDE * value.sd, value.value + WIDE * value.sd)
        believed = [prior.mean + k * WIDE * prior.sd for k in (0.0, -1.0, 1.0)]
    source = found.vehicle.sources.get(_SOURCES.get(value.name, ""), "")
    return {
        "meaning": MEANINGS.get(value.name, value.name),
        "name": value.name,
        "value": _digits(factor * value.value),
        "interval": _range(factor * ends[0], factor * ends[1]) if value.sd else "held",
        "unit": unit,
        "prior": _digits(factor * believed[0]),
        "prior_interval": _range(factor * believed[1], factor * believed[2]) if prior.sd > 1e-8 else "held",
        "share": fixed(value.share, 2),
        "word": value.word,
        "tag": TAGS.get(value.word, "partial"),
        "source": source,
    }


def _wind(value: IdentifiedValue) -> tuple[str, str]:
    """Return a component of a wind [m/s] and its interval."""
    return fixed(value.value, 2), f"{fixed(value.value - WIDE * value.sd, 2)} {DASH} {fixed(value.value + WIDE * value.sd, 2)}"


def _digits(value: float) -> str:
    """Three digits, and no powers of ten where they can be spared."""
    if not math.isfinite(value):
        return DASH
    if value and not 1e-3 <= abs(value) < 1e4:
        return f"{value:.2e}"
    places = 2 if not value else max(2 - math.floor(math.log10(abs(value))), 0)
    return f"{value:.{min(places, 5)}f}"


def _range(low: float, high: float) -> str:
    return f"{_digits(low)} {DASH} {_digits(high)}"


def _held_row(row: HeldOutRow) -> dict[str, Any]:
    skill = row.skill
    return {
        "quantity": "body rate [rad/s]" if row.quantity == "rate" else "specific force [m/s\N{SUPERSCRIPT TWO}]",
        "windows": row.windows,
        "horizon": f"{1e3 * row.horizon:.0f} ms",
        "rms": [fixed(row.rms[name], 3) for name in COLUMNS],
        "median": [fixed(row.median[name], 3) for name in COLUMNS],
        "skill": fixed(skill, 2),
        "tag": "success_recovered" if skill > 0.3 else "partial" if skill > 0.0 else "failure",
        "inside": DASH if not math.isfinite(row.inside) else f"{100.0 * row.inside:.0f} %",
    }


def _segments(found: Identified, logs: Sequence[Log]) -> list[dict[str, Any]]:
    return [
        {
            "name": log.name,
            "format": log.source.format,
            "hash": log.source.sha256[:12],
            "usable": f"{of.usable_time:.1f} s",
            "rejected": "; ".join(f"{s.start:.1f} {DASH} {s.stop:.1f} s {s.reason}" for s in of.rejected[:6])
            + (f"; and {len(of.rejected) - 6} more" if len(of.rejected) > 6 else ""),
        }
        for log, of in zip(logs, found.segments, strict=True)
    ]
