"""`airworthy vehicles`: list, show, validate, measure, identify, watch and synthesise vehicles, and what benches tell."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tyro.conf import Positional

from airworthy.cli import vehicle_bench, vehicle_identify, vehicle_watch
from airworthy.cli.common import ListConfig, Subcommands, emit_json, gathered, run_subcommand, show_table
from airworthy.control.effectors import YAW_LOST, holds_yaw
from airworthy.core.errors import AirworthyError
from airworthy.core.outputs import refuse_input
from airworthy.dynamics.articulated.summary import at_start, joint_lines, joint_notes, joint_summary
from airworthy.dynamics.articulated.tree import tree_of
from airworthy.sensors import carried_sensors
from airworthy.vehicles import (
    Indicators,
    Vehicle,
    articulated_names,
    frozen,
    hover_trim,
    indicators,
    named_vehicle,
    read_vehicle,
    synthesize,
    upright,
    vehicle,
    vehicle_names,
    write_vehicle,
)
from airworthy.vehicles.files import missing_sources, vehicle_text
from airworthy.vehicles.synthesis import arm_length
from airworthy.vehicles.urdf_tree import read_urdf

PROG = "airworthy vehicles"
_DESCRIPTION = (
    "List the vehicles there are. Also: airworthy vehicles show NAME | validate FILE | measure [NAME ...] | identify LOG... |"
    " watch LOG... | bench TABLE | pendulum | synthesize --help."
)
_MEASURE_DESCRIPTION = (
    "Measure the kinodynamic indicators by step tests in simulation (full collective, roll and yaw, without motor lag) and"
    " print them beside the published and the computed ones, the latter for rotors between their speed limits."
)
ARM_USUAL = 10.0
"""Longer than any multirotor's that carries people [m]: such an arm is most likely in millimetres."""
_INDICATORS = {"thrust_to_weight": "T/W", "alpha_xy_max": "roll", "alpha_z_max": "yaw"}


@dataclass(frozen=True)
class ShowVehicleConfig:
    """What to show."""

    name: Positional[str]
    """Catalogue name (`airworthy vehicles` lists them), or the path of a vehicle TOML."""
    json: bool = False
    """Print every field as JSON."""


@dataclass(frozen=True)
class ValidateVehicleConfig:
    """What to validate."""

    file: Positional[Path]
    """Vehicle TOML, or URDF, to read and check."""
    rotors: Path | None = None
    """Of a URDF: the TOML that says which of its links are rotors; without it only the URDF itself is checked."""
    joints: Literal["free", "frozen"] | None = None
    """Of a URDF: whether its joints move or are held at zero; none: as the TOML says, else they move."""


@dataclass(frozen=True)
class MeasureVehicleConfig:
    """What to measure."""

    names: Positional[tuple[str, ...]] = ()
    """Catalogue names, or paths of vehicle TOMLs; none: the whole catalogue."""
    json: bool = False
    """Print a JSON list of objects instead of a table."""


@dataclass(frozen=True)
class SynthesizeVehicleConfig:
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
    commands: Subcommands = {
        "list": (ListConfig, _list, _DESCRIPTION),
        "show": (ShowVehicleConfig, _show, "Show one vehicle with its sources."),
        "validate": (ValidateVehicleConfig, _validate, "Read a vehicle TOML and check that it can exist."),
        "measure": (MeasureVehicleConfig, _measure, _MEASURE_DESCRIPTION),
        "identify": (vehicle_identify.IdentifyConfig, vehicle_identify.run, vehicle_identify.DESCRIPTION),
        "bench": (vehicle_bench.BenchConfig, vehicle_bench.run, vehicle_bench.DESCRIPTION),
        "pendulum": (vehicle_bench.PendulumConfig, vehicle_bench.run_pendulum, vehicle_bench.PENDULUM_DESCRIPTION),
        "watch": (vehicle_watch.WatchConfig, vehicle_watch.run, vehicle_watch.DESCRIPTION),
        "synthesize": (SynthesizeVehicleConfig, _synthesize, "Scale a vehicle, check and fly the result, and write it."),
    }
    given = {
        "identify": vehicle_identify.LISTS,
        "watch": vehicle_watch.LISTS,
        "pendulum": vehicle_bench.PENDULUM_LISTS,
    }
    lists = given.get(argv[0] if argv else "", ())
    return run_subcommand(PROG, commands, gathered(argv, lists) if lists else argv)


def _summary(record: Vehicle) -> dict[str, Any]:
    """Return what a line of the list says; of vehicles with joints as they are with all at zero."""
    joints = {"joints": record.joint_count} if record.links else {}
    record = frozen(record)
    values = indicators(record)
    return {
        "name": record.name,
        "mass_kg": record.mass,
        "rotor_count": record.rotor_count,
        **joints,
        "thrust_to_weight": _thrust_to_weight(record),
        "alpha_xy_max": values.alpha_xy_max,
        "alpha_z_max": values.alpha_z_max,
        "arm_m": arm_length(record),
        "motor_state": record.motor_state,
        "title": record.extra.get("title"),
        "family": str(record.extra.get("family", "")),
    }


def _thrust_to_weight(record: Vehicle) -> float:
    """Largest force over weight along the direction that points up in hover, which is not body z where it leans."""
    return indicators(upright(record)).thrust_to_weight


def _list(config: ListConfig) -> int:
    rows = [_summary(vehicle(name)) for name in sorted([*vehicle_names(), *articulated_names()])]
    if config.json:
        emit_json(rows)
        return 0
    columns = {
        "name": "name",
        "mass [kg]": "mass_kg",
        "rotors": "rotor_count",
        "joints": "joints",
        "arm [m]": "arm_m",
        "thrust/weight": "thrust_to_weight",
        "roll [rad/s^2]": "alpha_xy_max",
        "yaw [rad/s^2]": "alpha_z_max",
        "title": "title",
    }
    show_table(f"{len(rows)} vehicles", list(columns), [[row.get(key) for key in columns.values()] for row in rows])
    return 0


def _show(config: ShowVehicleConfig) -> int:
    record = _named(config.name)
    joints = joint_summary(record) if record.links else {}
    if config.json:
        emit_json({**_summary(record), **_hover(at_start(record)), **joints, "vehicle": dataclasses.asdict(record)})
        return 0
    summary = {key: value for key, value in _summary(record).items() if value is not None}
    rows = [*summary.items(), ("hover", _hover_text(at_start(record)))]
    for key, value in [*rows, *((key, value) for key, value in joints.items() if key != "tree")]:
        print(f"{key:18}{value:.5g}" if isinstance(value, float) else f"{key:18}{value}")
    for line in joint_lines(record) if joints else ():
        print(line)
    print(f"\n{vehicle_text(record)}", end="")
    return 0


def _named(name: str) -> Vehicle:
    """Return a vehicle from the catalogue, or from a file where the name is a path."""
    return named_vehicle(name)


def _hover(record: Vehicle) -> dict[str, Any]:
    """Hover in still air: rotor states (none where it cannot), tilt, largest share of a rotor's thrust, or why it cannot."""
    trim = hover_trim(record)
    return {
        "hover_state": list(trim.states) if trim.hovers else [],
        "hover_tilt_deg": math.degrees(trim.tilt) if trim.hovers else None,
        "hover_thrust_share": trim.use(record) if trim.hovers else None,
        "cannot_hover": trim.reason or None,
    }


def _hover_text(record: Vehicle) -> str:
    """Hover in one line."""
    trim = hover_trim(record)
    if not trim.hovers:
        return f"cannot: {trim.reason}"
    states = ", ".join(f"{state:.5g}" for state in trim.states)
    unit = "rad/s" if record.motor_state == "speed" else "N"
    tilt = f"leaning by {math.degrees(trim.tilt):.3g} degrees" if trim.tilt > 0.0 else "level"
    return f"{tilt}, rotors at {states} {unit}, up to {trim.use(record):.0%} of a rotor's thrust"


def _drawn_note(record: Vehicle) -> list[str]:
    """Return what draws from a vehicle's uncertainty leave out; raises AirworthyError where no flight could draw from it."""
    if record.uncertainty is None:
        return []
    from airworthy.benchmarks.fly.config import FlyConfig
    from airworthy.benchmarks.fly.job import settled, simulator_config
    from airworthy.simulation import Simulator
    from airworthy.simulation.posterior import narrowed_draws

    # As `airworthy fly --randomize identified` builds it: what that refuses of a record, this refuses.
    config, flown = settled(FlyConfig(randomize=("identified",)), [record])
    Simulator(flown[0], simulator_config(config, "tracking", flown), 1)
    return [note] if (note := narrowed_draws(record).sentence(record.name)) else []


def _validate(config: ValidateVehicleConfig) -> int:
    urdf = config.file.suffix.lower() == ".urdf"
    if config.rotors is not None and not urdf:
        raise AirworthyError("--rotors belongs to a URDF: leave it out.")
    if config.joints is not None and config.rotors is None:
        raise AirworthyError("--joints belongs to a URDF with its --rotors: leave it out.")
    if urdf and config.rotors is None:
        return _validate_tree(config.file)
    record = named_vehicle(str(config.file), config.rotors, config.joints) if urdf else read_vehicle(config.file)
    # A record without a device for a sensor can fly, but what it is said to carry cannot be mounted.
    carried_sensors(record)
    drawn = _drawn_note(record)
    if record.links:
        tree_of(record)  # what cannot be simulated with joints is told here
        print(f"{config.file}: {record.joint_count} joints move; hover is told where flights start, all else at zero.")
    record, given, hovering = frozen(record), record, at_start(record)
    summary = f"{record.mass:g} kg, {record.rotor_count} rotors, thrust to weight {_thrust_to_weight(record):.3g}"
    print(f"{config.file}: {record.name} is valid ({summary}).")
    trim = hover_trim(hovering)
    if trim.hovers:
        print(f"hover: {_hover_text(hovering)}.")
    else:
        print(f"WARNING: it cannot hover: {trim.reason}. It can still be flown; its flights are judged by what happens.")
    if not holds_yaw(hovering):
        print(f"WARNING: it cannot hold its yaw: {YAW_LOST}.")
    arm = arm_length(record)
    if arm > ARM_USUAL:
        print(f"note: its arms are {arm:.4g} m long; positions are in metres, and {arm:.4g} mm would be {arm / 1000.0:.4g}")
    for note in (*(joint_notes(given) if given.links else ()), *drawn):
        print(f"note: {note}")
    for name in missing_sources(given):
        print(f"note: no source is given for {name}")
    return 0


def _validate_tree(file: Path) -> int:
    tree = read_urdf(file)
    print(f"{file}: a valid URDF ({tree.mass:g} kg, {len(tree.links)} links, {len(tree.movable_joints)} joints that move).")
    print("note: it names no rotors; check them with --rotors FILE (docs/howto/vehicles.md)")
    return 0


def _measure(config: MeasureVehicleConfig) -> int:
    from airworthy.benchmarks.step_tests import measured_indicators

    records = [_named(name) for name in config.names or vehicle_names()]
    rows = [_comparison(record, measured) for record, measured in zip(records, measured_indicators(records), strict=True)]
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


def _comparison(record: Vehicle, measured: Indicators) -> dict[str, Any]:
    """Return printed (None where nothing was), computed and measured indicators of a vehicle, and deviations of the measured
    [%].
    """
    found, computed = dataclasses.asdict(measured), dataclasses.asdict(indicators(record, from_rest=False))
    printed = {key: record.extra[f"published_{key}"] for key in _INDICATORS if f"published_{key}" in record.extra}
    deviation = {
        f"from_{kind}": {key: _percent(found[key], float(values[key])) for key in values}
        for kind, values in (("computed", computed), ("printed", printed))
    }
    return {
        "name": record.name,
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
    """Return the deviation of largest size, with its sign, to 0.01 %."""
    known = [value for value in deviations if value is not None]
    if not known:
        return None
    worst = max(known, key=abs)
    return round(worst, 2) + 0.0  # no minus before a zero


def _synthesize(config: SynthesizeVehicleConfig) -> int:
    from airworthy.benchmarks.step_tests import flight_check

    refuse_input(config.out, [Path(config.base)], "vehicle")
    check = flight_check if config.fly else None
    made = synthesize(_named(config.base), config.mass, config.arm, config.omega_scale, config.out.stem, check)
    write_vehicle(made, config.out)
    values = indicators(made)
    print(
        f"Wrote {config.out}: thrust to weight {values.thrust_to_weight:.3g}, roll {values.alpha_xy_max:.4g} rad/s^2, "
        f"yaw {values.alpha_z_max:.4g} rad/s^2."
    )
    return 0
