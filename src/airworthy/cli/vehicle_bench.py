"""`airworthy vehicles bench` and `pendulum`: what a stand, names of motor and propeller, and two wires tell."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from airworthy.cli.common import emit_json
from airworthy.core.errors import AirworthyError
from airworthy.core.files import make_folder, refuse_unwritable
from airworthy.core.idle_options import IdleRule, refuse_idle
from airworthy.core.jobs.progress import command_line
from airworthy.core.schema import check_fields
from airworthy.logs import refuse_input
from airworthy.vehicles import BenchFit, MotorPrior, fit_bench, motor_prior, two_wire_inertia, write_bench_fit
from airworthy.vehicles.bench.levels import levels_of
from airworthy.vehicles.bench.motor_prior import against
from airworthy.vehicles.bench.table import BenchTable, read_bench_table
from airworthy.vehicles.identification.known import measured

DESCRIPTION = (
    "Fit thrust, torque and speed of a motor to a thrust stand's table, with errors by groups of levels, for"
    " `airworthy vehicles identify --bench`; without a table print what names of motor and propeller promise."
)
PENDULUM_DESCRIPTION = (
    "Moment of inertia of what hangs on two wires and twists, m g b^2 P^2 / (16 pi^2 L), as a line that `airworthy vehicles"
    " identify --measured` takes."
)
PENDULUM_LISTS = ("--periods",)


@dataclass(frozen=True)
class BenchConfig:
    """What was measured on a stand."""

    table: Positional[Path | None] = None
    """Thrust stand's table: CSV, Parquet or .npz with columns of command, thrust, torque, speed, voltage, current, time, as far
    as there are any. None: what --rotor and --propeller promise is printed."""
    rotor: str | None = None
    """The motor as it is sold, its Kv last: 2212-980."""
    propeller: str | None = None
    """Diameter and pitch in inches: 10x4.5."""
    voltage: float | None = None
    """Supply under load [V], for the motor's largest speed; None: the table's own."""
    propeller_table: Path | None = None
    """Of the propeller at rest: columns rpm, CT and CP, in the place of what propellers have."""
    map: Path | None = None
    """TOML that says what the table's columns are (docs/howto/identify.md); without it they are guessed, and it says how."""
    motors: int | None = None
    """Motors that the scale carries; None: as many as there are columns of speeds."""
    out: Path | None = None
    """JSON file for the curves, as `identify --bench` takes it."""
    report: Path | None = None
    """Folder for report.html."""
    json: bool = False
    """Print everything as JSON."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class PendulumConfig:
    """What hangs on two parallel wires of one length, its centre of mass midway between them, and swings about the vertical."""

    mass: str
    """Of what hangs, and its error [kg], as 1.520+-0.005."""
    distance: str
    """Of the wires from each other, and its error [m], as 0.200+-0.001."""
    length: str
    """Of the wires, and its error [m], as 0.900+-0.002."""
    periods: tuple[float, ...]
    """Times of --swings swings each [s]; three and more tell their own error."""
    swings: int = 1
    """Whole swings, there and back, in each time."""
    axis: Literal["x", "y", "z"] = "z"
    """The body's axis that was vertical."""
    json: bool = False
    """Print as JSON."""


PROPELLER_TABLE = IdleRule(
    ("propeller_table",), lambda config: config.propeller is None, "without a propeller", "name it by --propeller"
)
SUPPLY = IdleRule(("voltage",), lambda config: config.rotor is None, "without a motor", "name it by --rotor")
BENCH_RULES = (
    IdleRule(("map", "motors"), lambda config: config.table is None, "without a thrust stand's table", "name its file"),
    PROPELLER_TABLE,
    SUPPLY,
)
"""Options of `airworthy vehicles bench` that change nothing beside the others."""


def run(config: BenchConfig) -> int:
    """Run `airworthy vehicles bench`."""
    if config.rotor is not None and config.propeller is None:
        raise AirworthyError("--rotor is given without --propeller: a motor's speed under load lifts nothing alone; give both.")
    refuse_idle(config, BENCH_RULES)
    if config.table is None:
        return _promised(config)
    if config.out is not None:
        refuse_unwritable(config.out)
        refuse_input(config.out, [config.table], "table")
        if config.out.suffix.lower() != ".json":
            raise AirworthyError(f"--out is {str(config.out)!r}; expected a file of curves, NAME.json.")
    if config.report is not None:
        make_folder(config.report)
        refuse_unwritable(config.report / "report.html")
    table = read_bench_table(config.table, config.map, config.motors)
    found = fit_bench(table)
    prior = _prior(config, found)
    if prior is not None:
        found = dataclasses.replace(found, notes=(*found.notes, prior.sentence(), *against(prior, found)))
    if config.out is not None:
        write_bench_fit(found, config.out)
    if config.report is not None:
        command = command_line("airworthy vehicles bench", config, leave_out=("json",), positional=("table",))
        from airworthy.benchmarks.validation.bench_page import write_bench_page

        write_bench_page(config.report, found, levels_of(table), command)
    if config.json:
        emit_json(dataclasses.asdict(found))
        return 0
    _print(table, found)
    if config.out is not None:
        print(f"Wrote {config.out}: airworthy vehicles identify LOG... --bench {config.out}")
    if config.report is not None:
        print(f"Report: {config.report / 'report.html'}")
    return 0


def _print(table: BenchTable, found: BenchFit) -> None:
    motors = f", {found.motors} motors on the scale" if found.motors > 1 else ""
    print(f"{table.name}: {len(table)} rows, {found.levels} levels with motors on{motors}.")
    for note in found.notes:
        print(f"  {note}")
    for line in found.sentences():
        print(line)


def _prior(config: BenchConfig, found: BenchFit | None) -> MotorPrior | None:
    if config.propeller is None:
        return None
    voltage = config.voltage
    if voltage is None and found is not None and found.voltage is not None:
        # Full command drew the supply down to its least.
        voltage = found.voltage[0]
    return motor_prior(config.rotor, config.propeller, voltage, config.propeller_table)


def _promised(config: BenchConfig) -> int:
    prior = _prior(config, None)
    if prior is None:
        raise AirworthyError("No table is given, and no --propeller: name a thrust stand's CSV, or --rotor and --propeller.")
    if config.out is not None or config.report is not None:
        raise AirworthyError("--out and --report keep what a table tells; without one leave them out.")
    if config.json:
        emit_json(dataclasses.asdict(prior))
    else:
        print(prior.sentence())
    return 0


def run_pendulum(config: PendulumConfig) -> int:
    """Run `airworthy vehicles pendulum`."""
    numbers = {name: measured(getattr(config, name), f"--{name}") for name in ("mass", "distance", "length")}
    pairs = {name: (number.value, number.sd) for name, number in numbers.items()}
    found = two_wire_inertia(pairs["mass"], pairs["distance"], pairs["length"], config.periods, config.swings)
    axis = 2 * config.axis
    if config.json:
        emit_json(dataclasses.asdict(found) | {"measured": found.line(axis)})
        return 0
    shares = ", ".join(f"{name} {100.0 * share:.2g} %" for name, share in found.parts)
    print(f"Period {found.period:.5g} +- {found.period_sd:.2g} s; of the moment's error: {shares}.")
    print(f"--measured {found.line(axis)}")
    return 0
