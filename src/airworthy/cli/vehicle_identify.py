"""`airworthy vehicles identify`: from logs of flights to a vehicle with error bars."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from tyro.conf import Positional

from airworthy.cli.common import emit_json, show_table
from airworthy.cli.logs import read_options
from airworthy.cli.vehicle_bench import PROPELLER_TABLE, SUPPLY
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.files import json_text, make_folder, refuse_unwritable, write_text
from airworthy.core.idle_options import IdleRule, refuse_idle
from airworthy.core.jobs.progress import command_line
from airworthy.logs import Log, flight_segments, read_log, refuse_input
from airworthy.simulation.posterior import narrowed_draws
from airworthy.vehicles import (
    Identified,
    IdentifiedValue,
    Known,
    MotorPrior,
    Vehicle,
    identify,
    motor_prior,
    named_vehicle,
    write_vehicle,
)
from airworthy.vehicles.bench.fit import bench_of
from airworthy.vehicles.identification.cad import cad_inertia
from airworthy.vehicles.identification.known import NO_LOG, MeasuredValue, frame_vehicle, measured, parts_of
from airworthy.vehicles.identification.prediction.signals import FlightSignals, flight_signals
from airworthy.vehicles.identification.published import PublishedFit, identify_published

DESCRIPTION = (
    "Identify a vehicle from the logs of its flights: thrust, motor lag, dead time, inertia, centre of mass, each with its"
    " error, by what predicts gyro and accelerometer best over a quarter of a second; judged on the last third of each flight."
)
LISTS = ("--use", "--skip", "--measured", "--free", "--fix", "--topic", "--set", "--holdout")
"""Options that may be given several times."""


@dataclass(frozen=True)
class IdentifyConfig:
    """What to identify from what."""

    logs: Positional[tuple[Path, ...]]
    """Logs of one vehicle with motor commands, gyro and accelerometer (`airworthy logs show` tells what they hold)."""
    mass: str = ""
    """Weighed mass and its error [kg], as 1.520+-0.005; a log tells thrust over mass only."""
    like: str | None = None
    """Vehicle of the catalogue, or a vehicle file, that it is like: rotors, spins, and what is believed of the rest."""
    frame: str | None = None
    """NAME:LENGTH, as quad_x:0.028: hubs' distance from the middle along x and along y [m]; hexa_x, octa_x, and any with _plus:
    length of the arm [m]."""
    geometry: Path | None = None
    """Vehicle TOML whose rotors, spins and centre of mass are taken as measured."""
    measured: tuple[str, ...] = ()
    """What else was measured: NAME=VALUE+-ERROR in SI units, as inertia.zz=2.1e-5+-1e-6, imu.x=0.012+-0.002."""
    bench: Path | None = None
    """Thrust stand's table, or the JSON that `airworthy vehicles bench` wrote of it; its curves join the fit with their errors.
    It may stand in for --mass."""
    bench_map: Path | None = None
    """Of the stand's table: as --map of `airworthy vehicles bench`."""
    rotor: str | None = None
    """The motor as it is sold, its Kv last, as 2212-980: with --propeller and the voltage a rough prior of speed and thrust."""
    propeller: str | None = None
    """Diameter and pitch in inches, as 10x4.5: a rough prior of torque over thrust, and of thrust."""
    propeller_table: Path | None = None
    """Of the propeller at rest: columns rpm, CT and CP."""
    voltage: float | None = None
    """Supply under load [V], for --rotor; None: the median that the first log with one measured."""
    inertia_from: Path | None = None
    """URDF, or vehicle TOML, of a CAD model: its moments of inertia, taken to the weighed mass, are a prior with 15 %."""
    free: tuple[str, ...] = ()
    """Values that are fitted although the logs hardly tell them, by name (thrust_linear, damping, ...)."""
    fix: tuple[str, ...] = ()
    """Values that are held: NAME=VALUE in SI units, as command_delay=0."""
    order: str | None = None
    """For each rotor of the vehicle, from the first on, the column of the logs' motor commands, as 4,3,2,1, where you know it;
    without it the logs tell it, or ask."""
    use: tuple[str, ...] = ()
    """Parts of the logs, START:STOP in seconds of each log's clock, or LOG=START:STOP of one log, by its name; without any, all
    of what is usable."""
    skip: tuple[str, ...] = ()
    """Parts to leave out, START:STOP in seconds, or LOG=START:STOP."""
    holdout: tuple[Path, ...] = ()
    """Logs that judge and are not fitted; without any, the last third of each flight judges."""
    feed: Literal["auto", "speeds", "commands"] = "auto"
    """What rotors follow in the fit: "speeds" as they were measured, "commands", or "auto": speeds where every log has good
    ones."""
    refine: Literal["gauss-newton", "gradient", "both"] = "gauss-newton"
    """How the fit is refined: "gauss-newton"; the "gradient" of all values at once, by an adjoint; or "both", which fits by the
    first and prints how each gets on from the same start."""
    method: Literal["joint", "eschmann2024"] = "joint"
    """"eschmann2024" is the published procedure, for comparison: four rotors, no dead time, no errors, no vehicle written."""
    gravity_as_published: bool = False
    """Of "eschmann2024": take the accelerometer's z times 9.18 in place of 9.81, as its script does."""
    seed: int = 0
    """Of importance sampling, which --quick leaves out."""
    out: Path | None = None
    """Vehicle TOML to write; its name becomes the vehicle's name."""
    report: Path | None = None
    """Folder for report.html, the page, and identification.json: everything that was found, machine readable."""
    quick: bool = False
    """Fewer windows and starts, no importance sampling."""
    json: bool = False
    """Print everything as JSON."""
    map: Path | None = None
    """As of `airworthy logs show`."""
    set: tuple[str, ...] = ()
    """As of `airworthy logs show`."""
    topic: tuple[str, ...] = ()
    """As of `airworthy logs show`."""


IDENTIFY_RULES = (
    IdleRule(("bench_map",), lambda config: config.bench is None, "without a thrust stand's table", "name it by --bench"),
    IdleRule(("rotor",), lambda config: config.propeller is None, "without a propeller", "name it by --propeller"),
    PROPELLER_TABLE,
    SUPPLY,
)
"""Options that change nothing beside the others."""


def run(config: IdentifyConfig) -> int:
    """Run the command."""
    if not config.logs:
        raise AirworthyError(NO_LOG)
    refuse_idle(config, IDENTIFY_RULES)
    if config.out is not None:
        refuse_unwritable(config.out)
        refuse_input(config.out, [*config.logs, *config.holdout], "log")
        refuse_input(
            config.out, [Path(path) for path in (config.like, config.geometry, config.inertia_from) if path], "vehicle"
        )
        if config.out.suffix.lower() != ".toml":
            raise AirworthyError(f"--out is {str(config.out)!r}; expected a vehicle file, NAME.toml.")
    if config.report is not None:
        make_folder(config.report)
        refuse_unwritable(config.report / "identification.json")
    known = _known(config)
    logs = [read_log(path, read_options(config)) for path in config.logs]
    known = dataclasses.replace(known, motor=_motor(config, logs))
    if config.method == "eschmann2024":
        return _published(config, known, logs)
    if config.gravity_as_published:
        raise AirworthyError("--gravity-as-published belongs to --method eschmann2024: leave it out.")
    judges = [read_log(path, read_options(config)) for path in config.holdout]
    found = identify(
        logs,
        known,
        config.seed,
        quick=config.quick,
        use=_parts(config.use, "--use", logs),
        skip=_parts(config.skip, "--skip", logs),
        holdout=judges,
        feed=config.feed,
        refine=config.refine,
        name="identified" if config.out is None else config.out.stem,
        say=(lambda _: None) if config.json else (lambda text: print(f"  {text}", flush=True)),
    )
    found = dataclasses.replace(found, notes=(*found.notes, *_drawn_note(found.vehicle)))
    if config.out is not None:
        write_vehicle(found.vehicle, config.out)
    if config.report is not None:
        write_text(config.report / "identification.json", json_text(_plain(found.record())))
        command = command_line("airworthy vehicles identify", config, leave_out=("json",), positional=("logs",))
        from airworthy.benchmarks.validation.identified import write_identification

        write_identification(config.report, found, logs, command, judges)
    if config.json:
        emit_json(_plain(found.record()))
        return 0
    _print(found)
    if config.out is not None:
        print(f"Wrote {config.out}.")
    if config.report is not None:
        print(f"Everything: {config.report / 'identification.json'}\nReport:     {config.report / 'report.html'}")
    return 0


def _drawn_note(vehicle: Vehicle) -> list[str]:
    """Return what draws from a vehicle's uncertainty leave out, or that none can be drawn; the vehicle itself flies all the
    same."""
    try:
        said = narrowed_draws(vehicle).sentence(vehicle.name)
    except AirworthyError as reason:
        said = str(reason)
    return [said] if said else []


def _known(config: IdentifyConfig) -> Known:
    given = [name for name in ("like", "frame", "geometry") if getattr(config, name) is not None]
    if len(given) > 1:
        raise AirworthyError(f"--{given[0]} and --{given[1]} both say what flew; give one.")
    mass = measured(config.mass, "--mass") if config.mass else None
    vehicle: Vehicle | None = None
    if config.frame is not None:
        vehicle = frame_vehicle(config.frame, 1.0 if mass is None else mass.value)
    elif given:
        vehicle = named_vehicle(str(getattr(config, given[0])))
    numbers: dict[str, MeasuredValue] = {}
    for text in config.measured:
        name, equals, value = text.partition("=")
        if not equals:
            raise AirworthyError(f"--measured is {text!r}; expected NAME=VALUE+-ERROR, as inertia.zz=2.1e-5+-1e-6.")
        if name in numbers or (name == "mass" and mass is not None):
            raise AirworthyError(f"{name} is measured twice, the second time by --measured {text}; give it once.")
        if name == "mass":
            mass = measured(value, "--measured mass")
            continue
        numbers[name] = measured(value, f"--measured {name}")
    fixed: dict[str, float] = {}
    for text in config.fix:
        name, equals, value = text.partition("=")
        try:
            fixed[name] = float(value) if equals else math.nan
        except ValueError:
            fixed[name] = math.nan
        if not math.isfinite(fixed[name]):
            raise AirworthyError(f"--fix is {text!r}; expected NAME=VALUE in SI units, as command_delay=0.")
    weighed = None if mass is None else (mass.value, mass.sd)
    bench = None if config.bench is None else bench_of(config.bench, config.bench_map)
    if config.inertia_from is not None:
        numbers = cad_inertia(config.inertia_from, weighed) | numbers
    return Known(weighed, vehicle, numbers, fixed, config.free, _order(config.order), bench)


def _motor(config: IdentifyConfig, logs: Sequence[Log]) -> MotorPrior | None:
    """Return what names of motor and propeller promise, under the supply that was given or logged."""
    if config.propeller is None:
        return None
    voltage = config.voltage
    if voltage is None and config.rotor is not None:
        found = [log.stream("voltage").values for log in logs if log.has("voltage")]
        voltage = next((float(np.nanmedian(v)) for v in found if float(np.ptp(np.nan_to_num(v))) > 0.0), None)
        if voltage is None:
            raise AirworthyError("--rotor needs the supply, and no log measured it: give --voltage, in V under load.")
    return motor_prior(config.rotor, config.propeller, voltage, config.propeller_table)


def _order(text: str | None) -> tuple[int, ...]:
    """Return columns from 0 on; raises AirworthyError where the words are no numbers from 1 on."""
    if text is None:
        return ()
    words = text.replace(",", " ").split()
    if not words or not all(word.isdecimal() and int(word) >= 1 for word in words):
        raise AirworthyError(f"--order is {text!r}; expected a column for each rotor, from 1 on, as 4,3,2,1.")
    columns = [int(word) for word in words]
    if sorted(columns) != list(range(1, len(columns) + 1)):
        raise AirworthyError(f"--order is {text!r}; expected each column from 1 to {len(columns)} once.")
    return tuple(column - 1 for column in columns)


def _parts(texts: tuple[str, ...], option: str, logs: Sequence[Log]) -> dict[str, list[tuple[float, float]]]:
    """Return parts by the name of their log; under "" those of all."""
    made: dict[str, list[tuple[float, float]]] = {}
    for text in texts:
        name, equals, part = text.rpartition("=")
        start, colon, stop = part.partition(":")
        try:
            pair = (float(start), float(stop))
        except ValueError:
            pair = (math.nan, math.nan)
        if not colon or not pair[1] > pair[0]:
            raise AirworthyError(f"{option} is {text!r}; expected START:STOP in seconds, as 35:65, or LOG=START:STOP.")
        if equals and name not in [log.name for log in logs]:
            raise unknown_name("log", name, [log.name for log in logs], f"Named by {option} {text}.")
        made.setdefault(name, []).append(pair)
    return made


def _plain(value: Any) -> Any:
    """Return what JSON takes: NaN, which it has no word for, as None."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return value


# ---- Printed -----------------------------------------------------------------------------------------------------------------

_UNITS = {
    "mass": "kg", "thrust": "N", "thrust_linear": "1", "torque_ratio": "m", "lag": "s", "command_delay": "s",
    "inertia_xx": "kg m^2", "inertia_yy": "kg m^2", "inertia_zz_ratio": "1", "center_x": "m", "center_y": "m", "damping": "1/s",
    "imu_x": "m", "imu_y": "m", "imu_z": "m", "imu_tilt_x": "rad", "imu_tilt_y": "rad", "drag_height": "m",
    "force_delay": "s", "speed_delay": "s", "fall_ratio": "1",
    "drag_x": "1/s", "drag_y": "1/s", "drag_z": "1/s", "drag_square": "1/m", "sag": "1",
}  # fmt: skip


def _row(value: IdentifiedValue) -> tuple[object, ...]:
    return (value.name, value.value, value.sd, _UNITS.get(value.name, ""), value.word, round(value.share, 3))


def _print(found: Identified) -> None:
    for note in found.notes:
        print(f"  {note}")
    rows = [_row(v) for v in (*found.values, *found.sensor)]
    show_table("Values (thrust of a rotor in hover)", ("value", "is", "+-", "unit", "that is", "share"), rows)
    low, high, lower, higher = (1e3 * v for v in found.start.near)
    if found.motors is None:
        near = f"{low:.0f} to {high:.0f} ms (rms within 1 % of the least), {lower:.0f} to {higher:.0f} (5 %)"
        print(f"Lag by the force alone: {near}.")
    hover = f"hover at {100.0 * found.hover:.1f} % of full command"
    hover = hover if math.isfinite(found.hover) else "no command up to full carries its weight"
    print(f"Rotors respond by the {found.structure}; {hover}.")
    if found.raced:
        columns = ("refined by", "cost", "steps", "processor time [s]", "farthest value", "off by [deviations]")
        raced = [(r.method, r.cost, r.steps, round(r.seconds, 2), r.of, round(r.apart, 3)) for r in found.raced]
        show_table("From the same start, on the same windows", columns, raced)
    if winds := found.winds:
        across = [(log, east.value, east.sd, north.value, north.sd) for log, east, north in winds]
        title = "Mean wind of each flight [m/s], gusts not counted"
        show_table(title, ("log", "to the east", "+-", "to the north", "+-"), across)
    points = [(100.0 * command, thrust, sd) for command, thrust, sd in found.curve]
    show_table("Thrust of a rotor", ("command [%]", "thrust [N]", "+-"), points)
    if found.table is not None:
        head = (
            "reading",
            "windows",
            "horizon [s]",
            "hold",
            "nearest",
            "start",
            "identified",
            "trimmed",
            "skill",
            "in 90 % band",
        )
        table = [
            (r.quantity, r.windows, r.horizon, *(_number(v) for v in r.rms.values()), r.skill, _number(r.inside))
            for r in found.table.rows
        ]
        title = "Errors on what was held out, rms [rad/s, m/s^2]"
        title += f"; nearest of the catalogue: {found.table.nearest or 'none'}"
        show_table(title, head, table)
        print(f"Verdict: {found.table.verdict}.{''.join(f' {reason}' for reason in found.table.reasons)}")
    else:
        print("The flights are too short to hold anything out: nothing judges this vehicle.")
    for line in found.advice:
        print(f"  not told: {line}")


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


# ---- The published method ----------------------------------------------------------------------------------------------------


def _published(config: IdentifyConfig, known: Known, logs: list[Log]) -> int:
    if config.out is not None or config.report is not None:
        raise AirworthyError(
            "--method eschmann2024 is for comparison: it tells no errors and is not judged, so no vehicle is written; leave"
            " --out and --report out."
        )
    if known.vehicle is None:
        raise AirworthyError("--method eschmann2024 needs the rotors' places: give --frame, --like or --geometry.")
    assert known.mass is not None
    use, skip = _parts(config.use, "--use", logs), _parts(config.skip, "--skip", logs)
    parts = [flight_segments(log, parts_of(use, log.name), parts_of(skip, log.name)) for log in logs]
    flights = [flight_signals(log, segments) for log, segments in zip(logs, parts, strict=True)]
    thrust, turning = max(flights, key=_vertical), max(flights, key=_turning)
    rotors = known.vehicle.rotors
    positions = np.array([rotor.position for rotor in rotors]) - np.array(known.vehicle.center_of_mass)
    axes = np.array([rotor.axis for rotor in rotors])
    found = identify_published(thrust, turning, known.mass[0], positions, axes, config.gravity_as_published)
    if config.json:
        emit_json(dataclasses.asdict(found) | {"thrust_flight": thrust.name, "turning_flight": turning.name})
        return 0
    _print_published(found, thrust, turning)
    return 0


def _print_published(found: PublishedFit, thrust: FlightSignals, turning: FlightSignals) -> None:
    c0, c1, c2 = found.thrust
    print(f"Thrust and lag from {thrust.name}, inertia from {turning.name}; as published: no dead time, no errors.")
    print(f"lag      {1e3 * found.lag:.4f} ms, of a grid of 100")
    print(f"thrust   {c0:.6g} {c1:+.6g} u {c2:+.6g} u^2 N per rotor; as a square alone {found.thrust_square:.6g} u^2")
    print(f"inertia  {found.inertia[0]:.6g}, {found.inertia[1]:.6g}, {found.inertia[2]:.6g} kg m^2 (zz by its ratio)")
    print(
        f"         the other way round {found.inertia_inverse[0]:.6g}, {found.inertia_inverse[1]:.6g}"
        f" (correlations {found.correlation[0]:.2f}, {found.correlation[1]:.2f})"
    )
    print("note: without dead time the lag takes it up, and inertia comes out too small; --method joint fits both.")


def _values(flight: FlightSignals, values: Any, time: Any) -> Any:
    inside = np.zeros(len(time), bool)
    for start, stop in flight.spans:
        inside |= (time > start) & (time < stop)
    return values[inside]


def _vertical(flight: FlightSignals) -> float:
    return float(np.std(_values(flight, flight.force.values, flight.force.time)[:, 2])) if flight.spans else 0.0


def _turning(flight: FlightSignals) -> float:
    return float(np.std(_values(flight, flight.gyro.values, flight.gyro.time)[:, :2])) if flight.spans else 0.0
