"""What identification promises: known vehicles are flown in the simulator, identified from their logs, compared with the truth.

A pilot that holds height and attitude steps its commands, each rotor's command is logged, and the vehicle answers it late by
its dead time; the log holds what a gyro and an accelerometer of common noise would have read. Aims are those of the
specification of identification, section 11.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.files import data_dir, parse_toml
from airworthy.logs import Log, flight_segments, read_log
from airworthy.vehicles import (
    Identified,
    Known,
    Vehicle,
    frame_vehicle,
    identify,
)
from airworthy.vehicles.files import vehicle_from_table, vehicle_text
from airworthy.vehicles.identification.prediction.signals import FlightSignals, flight_signals
from airworthy.vehicles.identification.published import identify_published
from airworthy.vehicles.identification.result import hover_command
from airworthy.verification.identification.air import air_figures
from airworthy.verification.identification.bench import bench_figures
from airworthy.verification.identification.coverage import BATCH, HIGHEST, LOWEST, coverage_rows, fit_flights
from airworthy.verification.identification.crazyflie import crazyflie_figures
from airworthy.verification.identification.dead_time import dead_time_figures
from airworthy.verification.identification.draws import draw_figures
from airworthy.verification.identification.pilots import flight_figures, tuning_figures
from airworthy.verification.identification.refusals import refusal_figures
from airworthy.verification.identification.truths import MASS_SHARE, RATE, FlownTruth, flown, truths
from airworthy.verification.identification.validated import general_path_figures
from airworthy.verification.keeping import FigurePart, Memo, memo_in_memory
from airworthy.verification.published import Figure, below, within, zero

SHARED = {"log10": (50_496, 26_333_702, 76_340_661), "log15": (62_774, 39_244_913, 101_433_032)}
"""Shared binary logs of a Crazyflie: records, first and last stamp [us], by a decoder of 20 lines of its own (tests/logs)."""


@dataclass(frozen=True)
class Misses:
    """How far an identified vehicle is from the truth."""

    name: str
    thrust: float
    """Largest over the flown range, over the truth."""
    lag: float
    """Over the truth."""
    delay: float
    """[s]"""
    inertia: float
    """The larger of xx and yy, over the truth."""
    yaw: float
    """Of torque over Izz, over the truth."""
    center: float
    """Over half a millimetre or 1 % of the arm, whichever is more."""
    lever: float
    """[m]"""
    tilt: float
    """[rad]"""


def misses(truth: FlownTruth, found: Identified) -> Misses:
    """Compare an identified vehicle with the truth."""
    vehicle, made = truth.vehicle, found.vehicle
    _, c1, c2 = vehicle.rotors[0].thrust
    curve = [abs(f / (c1 * 1000.0 * u + c2 * (1000.0 * u) ** 2) - 1.0) for u, f, _ in found.curve]
    hover = 1000.0 * found.fit.problem.parameters.state / made.rotors[0].speed_max
    lag = 1.0 / (vehicle.rotors[0].response.rise[0] + 2.0 * vehicle.rotors[0].response.rise[1] * hover)
    arm = float(np.mean([math.hypot(*r.position[:2]) for r in vehicle.rotors]))
    ratio = vehicle.rotors[0].torque[2] / vehicle.rotors[0].thrust[2]
    off = math.dist(made.center_of_mass[:2], vehicle.center_of_mass[:2])
    lever = [found.value(f"imu_{axis}").value - truth.lever[k] for k, axis in enumerate("xyz")]
    tilt = [found.value(f"imu_tilt_{axis}").value - truth.tilt[k] for k, axis in enumerate("xy")]
    return Misses(
        vehicle.name,
        max(curve),
        abs(found.value("lag").value / lag - 1.0),
        abs(found.value("command_delay").value - truth.delay / RATE),
        max(abs(made.inertia[k] / vehicle.inertia[k] - 1.0) for k in (0, 1)),
        abs(found.value("torque_ratio").value / made.inertia[2] * vehicle.inertia[2] / ratio - 1.0),
        off / max(5e-4, 0.01 * arm),
        max(map(abs, lever)) if found.value("imu_x").word == "identified" else 0.0,
        max(map(abs, tilt)),
    )


def recovered(truth: FlownTruth, number: int, quick: bool, memo: Memo) -> tuple[Vehicle, Misses]:
    """Fly, identify and compare a vehicle; what is kept of the fit is its record, named as the truth is, and how far it is off.

    Args:
        truth: Flown.
        number: Of the vehicle; seed of its flight.
        quick: As of `identify`.
        memo: Keeps both.
    """

    def make() -> dict[str, Any]:
        mass = truth.vehicle.mass
        found = identify([flown(truth, number)], Known(mass=(mass, MASS_SHARE * mass), vehicle=truth.known), quick=quick)
        record = replace(found.vehicle, name=truth.vehicle.name)
        return {"misses": asdict(misses(truth, found)), "vehicle": vehicle_text(record)}

    kept = memo(f"recovered_{truth.vehicle.name}", make)
    table = parse_toml(kept["vehicle"], f"the identified {truth.vehicle.name}")
    return vehicle_from_table(table, truth.vehicle.name), Misses(**kept["misses"])


AIMS = (
    ("thrust over command", "thrust", 0.01, ""),
    ("lag", "lag", 0.05, ""),
    ("dead time", "delay", 1.0 / RATE, "s"),
    ("Ixx, Iyy", "inertia", 0.03, ""),
    ("torque over Izz", "yaw", 0.03, ""),
    ("centre of mass, over its aim", "center", 1.0, ""),
    ("lever of the sensor", "lever", 0.003, "m"),
    ("tilt of the sensor", "tilt", math.radians(0.3), "rad"),
)
"""What must be recovered, the field of `Misses`, its aim and unit (11.4)."""


def identify_parts(everything: bool = False) -> list[FigurePart]:
    """Return what is measured of identification, in the order of the specification's acceptance where it can be.

    Args:
        everything: All vehicles, by the full method, each tuned on what was found of it, and both flights of the Crazyflie by
            thirds; else three, by the quick one, of which one is tuned on.
    """
    chosen = truths() if everything else truths()[:3]

    def pairs(memo: Memo) -> list[tuple[FlownTruth, Vehicle, Misses]]:
        return [(truth, *recovered(truth, number, not everything, memo)) for number, truth in enumerate(chosen)]

    def vehicles(memo: Memo) -> Iterator[Figure]:
        return recovery_figures([row for _, _, row in pairs(memo)])

    def flights(memo: Memo) -> Iterator[Figure]:
        return flight_figures([vehicle for _, vehicle, _ in pairs(memo)])

    def tuned(memo: Memo) -> Iterator[Figure]:
        return tuning_figures([(t.flown, vehicle) for t, vehicle, _ in pairs(memo)[: None if everything else 1]], memo)

    folder = data_dir()
    parts = [
        FigurePart("dead_time", lambda memo: dead_time_figures()),
        FigurePart("refusals", lambda memo: refusal_figures(folder)),
        FigurePart("vehicles", vehicles),
        FigurePart("air", lambda memo: air_figures(everything, memo)),
        FigurePart("flights", flights),
        FigurePart("tuned", tuned),
        FigurePart("draws", lambda memo: _draws(everything)),
        FigurePart("bench", lambda memo: _bench()),
    ]
    if everything:
        parts.append(FigurePart("covered", _covered))
    return parts if folder is None else [*parts, *_real_flights(folder, everything)]


def _real_flights(folder: Path, everything: bool) -> list[FigurePart]:
    """Parts that need reference files."""
    parts = [
        FigurePart("decoder", lambda memo: decoder_figures(folder)),
        FigurePart("published", lambda memo: _published(folder)),
        FigurePart("crazyflie", lambda memo: crazyflie_figures(folder, everything)),
    ]
    return [*parts, FigurePart("general_path", lambda memo: general_path_figures(folder))] if everything else parts


def identify_figures(everything: bool = False) -> Iterator[Figure]:
    """Measure identification.

    Args:
        everything: As of `identify_parts`.
    """
    memo = memo_in_memory()
    return chain.from_iterable(part.make(memo) for part in identify_parts(everything))


def identify_left_out() -> list[str]:
    """Return what is not measured, one sentence each."""
    return [
        "Logs that nobody had looked at (acceptance 11) were run once, by hand: docs/howto/identify.md tells what came of it."
    ]


def recovery_figures(found: Sequence[Misses]) -> Iterator[Figure]:
    """Tell the worst of some vehicles in each of `AIMS`.

    Args:
        found: How far each is from its truth.
    """
    for title, field, aim, unit in AIMS:
        worst = max(found, key=lambda row: getattr(row, field))
        yield below(f"{title}, worst of {len(found)} flown vehicles ({worst.name})", getattr(worst, field), aim, unit)


def _bench() -> Iterator[Figure]:
    """Measure what benches tell, beside a flight of the small vehicle."""
    small = truths()[0]
    return bench_figures(small.vehicle, small.known, flown(small, 0, 14.0))


def _draws(everything: bool) -> Iterator[Figure]:
    """Draws of an identified vehicle keep thrust over mass (11.8)."""
    truth = truths()[0]
    mass = truth.vehicle.mass
    known = Known(mass=(mass, 0.02 * mass), vehicle=truth.known)
    found = identify([flown(truth, 0, 12.0)], known, quick=True).vehicle
    drawn = found.draw(2000, 0)
    hover = np.array([hover_command(v) for v in drawn.vehicles])
    weights = np.array([v.mass for v in drawn.vehicles])
    yield below("draws of an identified vehicle: share rejected", drawn.rejected / 2000.0, 0.02)
    yield within("draws: deviation of the mass over that of the scales", float(np.std(np.log(weights))) / 0.02, 1.0, 0.05)
    yield below("draws: deviation of hover over that of the mass", float(np.std(np.log(hover)) / np.std(np.log(weights))), 0.25)
    yield from draw_figures(found, everything)


def _covered(memo: Memo) -> Iterator[Figure]:
    """Share of the 90 % intervals of one batch of pushed flights that hold the truth; the whole study takes 200 fits (11.6)."""
    source: list[Iterator[dict[str, Any]]] = []

    def make(index: int) -> dict[str, Any]:
        # Those before it are kept: flights are fitted in their order.
        if not source:
            source.append(fit_flights(0, range(index)))
        return next(source[0])

    rows = coverage_rows([memo(f"interval_{index}", partial(make, index)) for index in range(BATCH)])
    told = sum(row.fits for row in rows)
    inside = sum(row.inside * row.fits for row in rows) / max(told, 1)
    middle = 0.5 * (LOWEST + HIGHEST)
    title = f"90 % intervals of pushed flights that hold the truth, of {told}"
    yield within(title, inside, middle, round((HIGHEST - LOWEST) / 2.0 / middle, 4))


def decoder_figures(folder: Path) -> Iterator[Figure]:
    """Read both shared binary logs of a Crazyflie: records, stamps to the microsecond, checksum (11.1).

    Args:
        folder: Of reference files; without the logs nothing is measured.
    """
    for name, (records, first, last) in SHARED.items():
        file = folder / "flights/crazyflie_sysid" / name
        if not file.is_file():
            continue
        log = read_log(file)
        time = log.stream("gyro").time
        ends = [log.source.start_ns // 1000, log.source.start_ns // 1000 + round(1e6 * float(time[-1]))]
        yield zero(f"{name}: records beside {records:,}", abs(len(time) - records))
        off = max(abs(a - b) for a, b in zip(ends, (first, last), strict=True))
        yield zero(f"{name}: first and last stamp off [us]", off)
        yield zero(f"{name}: damage told, such as a wrong checksum", len(log.notes))


def _published(folder: Path) -> Iterator[Figure]:
    """Run the published procedure on the published flights (11.2)."""
    place = folder / "flights/crazyflie_sysid"
    if not place.is_dir():
        return
    frame = frame_vehicle("quad_x:0.028", 0.027)
    positions = np.array([r.position for r in frame.rotors])
    axes = np.array([r.axis for r in frame.rotors])
    parts = ((35.0, 65.0),), ((55.0, 61.378845), (61.379683, 80.509798), (80.874170, 90.0))
    flights = [_part(read_log(place / name), of) for name, of in zip(("log10", "log15"), parts, strict=True)]
    found = identify_published(flights[0], flights[1], 0.027, positions, axes, gravity_as_published=True)
    yield within("Eschmann 2024: lag", found.lag, 0.0715657, 1e-5, "s")
    for title, measured, aim, share in (
        ("k0", found.thrust[0], 0.0212656, 1e-3),
        ("k1", found.thrust[1], -0.011175, 1e-3),
        ("k2", found.thrust[2], 0.120130, 1e-3),
        ("k2 alone", found.thrust_square, 0.1500, 1e-3),
        ("Ixx", found.inertia[0], 1.02863e-5, 5e-4),
        ("Iyy", found.inertia[1], 1.10524e-5, 5e-4),
    ):
        yield within(f"Eschmann 2024: {title}", measured, aim, share)


def _part(log: Log, parts: Sequence[tuple[float, float]]) -> FlightSignals:
    begin = log.source.start_ns * 1e-9
    spans = tuple((a - begin + 5e-7, b - begin - 5e-7) for a, b in parts)
    return replace(flight_signals(log, flight_segments(log)), spans=spans)
