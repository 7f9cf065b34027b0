"""`airworthy vehicles`: list, show, validate, measure and synthesise vehicles."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tyro.conf import Positional

from airworthy.cli.common import emit_json, run_tyro, show_table
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.vehicles import (
    Indicators,
    Vehicle,
    hover_speed,
    indicators,
    read_vehicle,
    synthesize,
    vehicle,
    vehicle_names,
    write_vehicle,
)
from airworthy.vehicles.files import vehicle_text
from airworthy.vehicles.sources import missing_sources
from airworthy.vehicles.synthesis import arm_length

PROG = "airworthy vehicles"
_DESCRIPTION = (
    "List the vehicles there are. Also: airworthy vehicles show NAME | validate FILE | measure [NAME ...] | synthesize --help."
)
_MEASURE_DESCRIPTION = (
    "Measure the kinodynamic indicators by step tests in simulation (full collective, roll and yaw, without motor lag) and"
    " print them beside the published and the computed ones, the latter for rotors between their speed limits."
)
_INDICATORS = {"thrust_to_weight": "T/W", "alpha_xy_max": "roll", "alpha_z_max": "yaw"}


@dataclass(frozen=True)
class ListConfig:
    """What to list."""

    json: bool = False
    """Print a JSON list of objects instead of a table."""


@dataclass(frozen=True)
class ShowConfig:
    """What to show."""

    name: Positional[str]
    """Catalogue name (`airworthy vehicles` lists them), or the path of a vehicle TOML."""
    json: bool = False
    """Print every field as JSON."""


@dataclass(frozen=True)
class ValidateConfig:
    """What to validate."""

    file: Positional[Path]
    """Vehicle TOML to read and check."""


@dataclass(frozen=True)
class MeasureConfig:
    """What to measure."""

    names: Positional[tuple[str, ...]] = ()
    """Catalogue names, or paths of vehicle TOMLs; none: the whole catalogue."""
    json: bool = False
    """Print a JSON list of objects instead of a table."""


@dataclass(frozen=True)
class SynthesizeConfig:
    """What to make."""

    base: str
    """Vehicle to scale: a catalogue name, or the path of a vehicle TOML."""
    mass: float
    """Total mass of the new vehicle [kg]."""
    arm: float
    """Distance from centre to motor [m]."""
    out: Path
    """Vehicle TOML to write; its name becomes the vehicle's name."""
    omega_scale: float = 1.0
    """Maximum rotor speed over that of the base [-]."""
    fly: bool = True
    """Refuse what does not hover, step 2 m and turn 90 degrees in simulation with the default position controller."""


def main(argv: list[str]) -> int:
    """Run `airworthy vehicles`; users' mistakes raise AirworthyError, which the command line prints."""
    commands: dict[str, tuple[Any, Callable[[Any], int], str]] = {
        "list": (ListConfig, _list, _DESCRIPTION),
        "show": (ShowConfig, _show, "Show one vehicle with its sources."),
        "validate": (ValidateConfig, _validate, "Read a vehicle TOML and check that it can exist."),
        "measure": (MeasureConfig, _measure, _MEASURE_DESCRIPTION),
        "synthesize": (SynthesizeConfig, _synthesize, "Scale a vehicle, check and fly the result, and write it."),
    }
    word = argv[0] if argv and not argv[0].startswith("-") else ""
    if word and word not in commands:
        raise unknown_name(f"'{PROG}' subcommand", word, commands)
    kind, run, description = commands[word or "list"]
    config: Any = run_tyro(kind, argv[1:] if word else argv, f"{PROG} {word}".strip(), description)
    return run(config)


def _summary(craft: Vehicle) -> dict[str, Any]:
    values = indicators(craft)
    return {
        "name": craft.name,
        "mass_kg": craft.mass,
        "rotor_count": craft.rotor_count,
        "thrust_to_weight": values.thrust_to_weight,
        "alpha_xy_max": values.alpha_xy_max,
        "alpha_z_max": values.alpha_z_max,
        "arm_m": arm_length(craft),
        "motor_state": craft.motor_state,
        "title": craft.extra.get("title"),
        "family": str(craft.extra.get("family", "")),
    }


def _list(config: ListConfig) -> int:
    rows = [_summary(vehicle(name)) for name in vehicle_names()]
    if config.json:
        emit_json(rows)
        return 0
    columns = {
        "name": "name",
        "mass [kg]": "mass_kg",
        "rotors": "rotor_count",
        "arm [m]": "arm_m",
        "thrust/weight": "thrust_to_weight",
        "roll [rad/s^2]": "alpha_xy_max",
        "yaw [rad/s^2]": "alpha_z_max",
        "title": "title",
    }
    show_table(f"{len(rows)} vehicles", list(columns), [[row[key] for key in columns.values()] for row in rows])
    return 0


def _show(config: ShowConfig) -> int:
    craft = _named(config.name)
    if config.json:
        emit_json({**_summary(craft), "hover_state": _hover(craft), "vehicle": dataclasses.asdict(craft)})
        return 0
    unit = "rad/s" if craft.motor_state == "speed" else "N"
    hover = ", ".join(f"{state:.5g}" for state in _hover(craft))
    summary = {key: value for key, value in _summary(craft).items() if value is not None}
    rows = [*summary.items(), ("hover_state", f"{hover} {unit}" if hover else "cannot hover level")]
    for key, value in rows:
        print(f"{key:18}{value:.5g}" if isinstance(value, float) else f"{key:18}{value}")
    print(f"\n{vehicle_text(craft)}", end="")
    return 0


def _named(name: str) -> Vehicle:
    """A vehicle from the catalogue, or from a file where the name is a path."""
    return read_vehicle(name) if name.endswith(".toml") or "/" in name else vehicle(name)


def _hover(craft: Vehicle) -> list[float]:
    """Hover rotor states; empty where there are none."""
    try:
        return [float(state) for state in hover_speed(craft)]
    except AirworthyError:
        return []


def _validate(config: ValidateConfig) -> int:
    craft = read_vehicle(config.file)
    values = indicators(craft)
    summary = f"{craft.mass:g} kg, {craft.rotor_count} rotors, thrust to weight {values.thrust_to_weight:.3g}"
    print(f"{config.file}: {craft.name} is valid ({summary}).")
    notes = [f"no source is given for {name}" for name in missing_sources(craft)]
    if not _hover(craft):
        notes.append("it cannot hover level")
    for note in notes:
        print(f"note: {note}")
    return 0


def _measure(config: MeasureConfig) -> int:
    from airworthy.evaluation.step_tests import measured_indicators

    crafts = [_named(name) for name in config.names or vehicle_names()]
    rows = [_comparison(craft, measured) for craft, measured in zip(crafts, measured_indicators(crafts), strict=True)]
    if config.json:
        emit_json(rows)
        return 0
    kinds = ("printed", "computed", "measured")
    headings = [f"{label} {kind}" for label in _INDICATORS.values() for kind in kinds]
    cells = [
        [row["name"], *((row[kind] or {}).get(key) for key in _INDICATORS for kind in kinds), *map(_worst, _deviations(row))]
        for row in rows
    ]
    title = f"Indicators of {len(rows)} vehicles (roll and yaw in rad/s^2), and the worst deviation of what was measured"
    show_table(title, ["name", *headings, "computed [%]", "printed [%]"], cells)
    return 0


def _comparison(craft: Vehicle, measured: Indicators) -> dict[str, Any]:
    """Printed (None where nothing was), computed and measured indicators of a vehicle, and deviations of the measured [%]."""
    found, computed = dataclasses.asdict(measured), dataclasses.asdict(indicators(craft, from_rest=False))
    printed = {key: craft.extra[f"published_{key}"] for key in _INDICATORS if f"published_{key}" in craft.extra}
    deviation = {
        f"from_{kind}": {key: _percent(found[key], float(values[key])) for key in values}
        for kind, values in (("computed", computed), ("printed", printed))
    }
    return {
        "name": craft.name,
        "printed": printed or None,
        "computed": computed,
        "measured": found,
        "deviation_percent": deviation,
    }


def _percent(value: float, reference: float) -> float | None:
    """Deviation from a reference [%]; None where the reference is zero or infinite."""
    return 100.0 * (value / reference - 1.0) if reference != 0.0 and math.isfinite(reference) else None


def _deviations(row: dict[str, Any]) -> list[list[float | None]]:
    return [list(row["deviation_percent"][f"from_{kind}"].values()) for kind in ("computed", "printed")]


def _worst(deviations: list[float | None]) -> float | None:
    """The deviation of largest size, with its sign, to 0.01 %."""
    known = [value for value in deviations if value is not None]
    if not known:
        return None
    worst = max(known, key=abs)
    return round(worst, 2) + 0.0  # no minus before a zero


def _synthesize(config: SynthesizeConfig) -> int:
    from airworthy.evaluation.step_tests import flight_check

    check = flight_check if config.fly else None
    made = synthesize(_named(config.base), config.mass, config.arm, config.omega_scale, config.out.stem, check)
    write_vehicle(made, config.out)
    values = indicators(made)
    print(
        f"Wrote {config.out}: thrust to weight {values.thrust_to_weight:.3g}, roll {values.alpha_xy_max:.4g} rad/s^2, "
        f"yaw {values.alpha_z_max:.4g} rad/s^2."
    )
    return 0
