"""What identification promises: known vehicles are flown in the simulator, identified from their logs, compared with the truth.

A pilot that holds height and attitude steps its commands, each rotor's command is logged, and the vehicle answers it late by
its dead time; the log holds what a gyro and an accelerometer of common noise would have read. Aims are those of the
specification of identification, section 11.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from airworthy.core.files import data_dir
from airworthy.logs import Log, flight_segments, read_log
from airworthy.vehicles import (
    Identified,
    Known,
    frame_vehicle,
    identify,
)
from airworthy.vehicles.identification.prediction.signals import FlightSignals, flight_signals
from airworthy.vehicles.identification.published import identify_published
from airworthy.vehicles.identification.result import hover_command
from airworthy.verification.identification.air import air_figures
from airworthy.verification.identification.bench import bench_figures
from airworthy.verification.identification.coverage import HIGHEST, LOWEST, coverage_rows, fit_flights
from airworthy.verification.identification.draws import draw_figures
from airworthy.verification.identification.pilots import flight_figures, tuning_figures
from airworthy.verification.identification.truths import MASS_SHARE, RATE, FlownTruth, flown, truths
from airworthy.verification.identification.validated import general_path_figures
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


def recovered(chosen: Sequence[FlownTruth], quick: bool) -> Iterator[tuple[FlownTruth, Identified, Misses]]:
    """Fly, identify and compare vehicles.

    Args:
        chosen: Vehicles.
        quick: As of `identify`.
    """
    for number, truth in enumerate(chosen):
        mass = truth.vehicle.mass
        found = identify([flown(truth, number)], Known(mass=(mass, MASS_SHARE * mass), vehicle=truth.known), quick=quick)
        yield truth, found, misses(truth, found)


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


def identify_figures(everything: bool = False) -> Iterator[Figure]:
    """Measure identification.

    Args:
        everything: All vehicles, by the full method, each tuned on what was found of it, and both flights of the Crazyflie;
            else three, by the quick one, of which one is tuned on.
    """
    chosen = truths() if everything else truths()[:3]
    # What fits hold is as large as their logs: only what is compared is kept.
    made = [(truth, found.vehicle, row) for truth, found, row in recovered(chosen, not everything)]
    found = [row for _, _, row in made]
    for title, field, aim, unit in AIMS:
        worst = max(found, key=lambda row: getattr(row, field))
        yield below(f"{title}, worst of {len(found)} flown vehicles ({worst.name})", getattr(worst, field), aim, unit)
    yield from air_figures(everything)
    yield from flight_figures([replace(vehicle, name=truth.vehicle.name) for truth, vehicle, _ in made])
    yield from tuning_figures([(truth.flown, vehicle) for truth, vehicle, _ in made[: None if everything else 1]])
    yield from _draws(everything)
    small = truths()[0]
    yield from bench_figures(small.vehicle, small.known, flown(small, 0, 14.0))
    if everything:
        yield from _covered()
    folder = data_dir()
    if folder is not None:
        yield from decoder_figures(folder)
        yield from _published(folder)
        if everything:
            yield from general_path_figures(folder)


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


def _covered() -> Iterator[Figure]:
    """Share of the 90 % intervals of one batch of pushed flights that hold the truth; the whole study takes 200 fits (11.6)."""
    rows = coverage_rows(list(fit_flights(0)))
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
