"""A bench beside flights: rotor states as speeds by its map, its curves as information, and a mass that nobody weighed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from airworthy.logs import Log, flight_segments
from airworthy.vehicles.bench.information import (
    ValueInformation,
    at_full_speed,
    bench_information,
    bench_speeds,
    motor_information,
    promised_mass,
)
from airworthy.vehicles.bench.result import SUPPLY_SD
from airworthy.vehicles.identification.fitting.refine import Fit
from airworthy.vehicles.identification.gathering import Gathered, base_of, hover_of
from airworthy.vehicles.identification.known import Known, Parts, parts_of
from airworthy.vehicles.identification.motors.measured_speeds import MotorFit
from airworthy.vehicles.identification.prediction.signals import flight_signals
from airworthy.vehicles.record import UNCERTAIN, Vehicle

__all__ = ["BenchScale", "bench_notes", "information_of", "scaled_by_bench", "weighed_by_bench"]

FAR = 3.0
"""Deviations of what a bench says of a value, beyond which flights contradict it."""
TOLD_MIN = 1e-3
"""Share of a value that the rest must tell before it can contradict a bench."""


@dataclass(frozen=True)
class BenchScale:
    """What the scale of rotor states owes to a bench, and how far its command may be trusted in flight."""

    command: float
    """Of hover, as logged."""
    voltage: float = 0.0
    """In flight [V]; 0: not measured."""
    speed_sd: float = 0.0
    """Relative deviation of the speed in hover by the stand's map."""
    source: str = ""
    """Where `speed_max` and `command_map` come from; empty: not from a bench, nor from a motor's name."""


def weighed_by_bench(logs: Sequence[Log], known: Known, use: Parts, skip: Parts) -> Known:
    """Return what is known with the mass that the bench's thrust carries in hover, where nobody weighed the vehicle.

    Args:
        logs: Flights.
        known: With a mass, or with a bench.
        use: Parts, as of `identify`.
        skip: Parts to leave out.
    """
    if known.mass is not None or known.bench is None:
        return known
    base, _ = base_of(logs, replace(known, mass=(1.0, 0.3)))
    hovers = []
    for log in logs:
        if log.has("motor_command"):
            segments = flight_segments(log, parts_of(use, log.name), parts_of(skip, log.name))
            if segments.usable:
                hovers.append(hover_of(flight_signals(log, segments)))
    if not hovers:
        return replace(known, mass=(1.0, 0.3))  # no log flies: what reads them next says which, and why
    lift = float(sum(rotor.axis[2] for rotor in base.rotors))
    return replace(known, mass=promised_mass(known.bench, float(np.mean(hovers)), lift, base.gravity))


def scaled_by_bench(
    base: Vehicle, known: Known, command: float, logs: Sequence[Log], gathered: Sequence[Gathered], speeds: bool
) -> tuple[Vehicle, BenchScale]:
    """Return a vehicle whose rotor states are speeds by a bench, or by a motor's name, where no flight measured them.

    Args:
        base: What is believed.
        known: With a bench or a motor, or neither.
        command: In hover, as logged.
        logs: Flights.
        gathered: Of each log.
        speeds: Whether measured speeds are followed.
    """
    scale = BenchScale(command, _voltage(logs, gathered))
    if speeds:
        return base, scale
    if known.bench is not None and known.bench.speed is not None:
        made, wide = bench_speeds(base, known.bench, command, scale.voltage)
        return made, replace(scale, speed_sd=wide, source=f"bench: {known.bench.source}")
    if known.bench is not None and known.bench.thrust is not None and known.bench.state == "command":
        return replace(base, command_map=None), scale
    if known.motor is not None and known.motor.speed_max is not None and base.extra.get("gauge") == "nominal":
        return at_full_speed(base, known.motor.speed_max), replace(scale, source=f"believed: {known.motor.source}")
    return base, scale


def information_of(known: Known, scale: BenchScale, state: float, motors: MotorFit | None) -> tuple[ValueInformation, ...]:
    """Return what stands beside the flights.

    Args:
        known: With a bench or a motor, or neither.
        scale: Of rotor states.
        state: In hover.
        motors: By measured speeds; None: none were followed.
    """
    found: list[ValueInformation | None] = []
    if known.bench is not None:
        bench = known.bench
        spins = motors is not None or bench.speed is not None
        command, wide = scale.command, scale.speed_sd
        if bench.sag is not None:
            log = math.log(scale.voltage / bench.sag.voltage) if scale.voltage > 0.0 else 0.0
            command *= math.exp(bench.sag.power * log)
            wide = math.hypot(bench.sag.sd * log, bench.sag.power * SUPPLY_SD if scale.voltage <= 0.0 else 0.0)
        elif bench.state == "command":
            wide = SUPPLY_SD
        found.append(bench_information(bench, state if spins else None, command, motors is None, wide))
    if known.motor is not None:
        # A bench's own speeds have no error of Kv.
        spins = motors is not None or (known.bench is not None and known.bench.speed is not None)
        scaled = spins or scale.source.startswith("believed")
        found.append(motor_information(known.motor, state, spins) if scaled else _ratio_alone(known, state))
    return tuple(item for item in found if item is not None)


def bench_notes(known: Known, scale: BenchScale, fit: Fit, speeds: bool) -> list[str]:
    """Return what was taken of a bench and of names, and where flights are far from them, in words.

    Args:
        known: With a bench or a motor, or neither.
        scale: Of rotor states.
        fit: With what stands beside it.
        speeds: Whether measured speeds were followed.
    """
    said = []
    if known.bench is not None:
        bench, name = known.bench, known.bench.source
        said += [f"{name}: {note}" for note in bench.notes]
        if scale.source.startswith("bench"):
            supply = (
                f"at the {scale.voltage:.3g} V of the flights"
                if scale.voltage > 0.0
                else "at its own supply, no log having any"
            )
            said.append(f"{name}: rotor states are speeds by its map, {supply} (+-{100.0 * scale.speed_sd:.2g} %).")
        elif bench.state == "speed" and not speeds:
            said.append(
                f"{name} tells thrust over speed, and neither it nor the logs tell speeds of commands: its thrust is unused."
            )
    if known.motor is not None:
        said.append(known.motor.sentence())
    for item in fit.problem.parameters.information:
        said += [note for k, value in enumerate(item.names) if (note := _contradiction(fit, item, k, value))]
    if speeds and known.bench is not None and known.bench.lag is not None and known.bench.lag.by == "speed":
        # Measured speeds tell the lag, and that of the bench is no part of the fit.
        value, sd = known.bench.lag.both
        at = fit.problem.parameters.place("lag")
        away, sds = float(fit.theta[at]) - math.log(value), math.hypot(sd / value, float(fit.sd[at]))
        if abs(away) > FAR * sds:
            said.append(
                f"By measured speeds, lag is {math.exp(away):.3g} times what bench: {known.bench.source} says,"
                f" {abs(away) / sds:.0f} deviations: one of them is wrong."
            )
    return said


def _contradiction(fit: Fit, item: ValueInformation, k: int, value: str) -> str:
    """Say how far a bench is from a fit, or from what the fit would be without it; empty: not beyond chance.

    With a share s = 1 - l^2 / b^2 of flights and of what was weighed (l by the curvature, b of the bench), a fit goes s times
    the way from the bench to them, and that way scatters by theirs (sandwich) and by s b.
    """
    at = fit.problem.parameters.place(value)
    away, sd = float(fit.theta[at] - item.mean[k]), math.sqrt(item.covariance[k, k])
    log = UNCERTAIN[value] == "log"

    def times(by: float) -> str:
        return f"{math.exp(min(by, 50.0)):.3g} times" if log else f"{by:+.2g} off"

    if abs(away) > FAR * sd:
        return (
            f"With the flights, {value} is {times(away)} what {item.source} says, over {FAR:g} of its deviations: one of them"
            " is wrong."
        )
    laplace, sandwich = float(fit.laplace[at]), float(fit.sandwich[at])
    share = 1.0 - (laplace / sd) ** 2
    if share < TOLD_MIN:
        return ""
    scatter = math.sqrt(max(sandwich**2, share * laplace**2) + (share * sd) ** 2)
    if abs(away) <= FAR * scatter:
        return ""
    beside = "flights and the weighed mass" if value == "thrust" else "flights"
    return (
        f"Without {item.source}, {beside} would have {value} at {times(away / share)} what it says,"
        f" {abs(away) / scatter:.0f} deviations of both: one of them is wrong."
    )


def _ratio_alone(known: Known, state: float) -> ValueInformation:
    assert known.motor is not None
    return motor_information(replace(known.motor, speed_max=None), state, False)


def _voltage(logs: Sequence[Log], gathered: Sequence[Gathered]) -> float:
    """Median of the supply in flight [V]; 0 where it was not measured."""
    found = []
    for log, g in zip(logs, gathered, strict=True):
        if not log.has("voltage"):
            continue
        stream = log.stream("voltage")
        values = stream.values[:, 0]
        inside = np.zeros(len(values), bool)
        for start, stop in g.signals.spans:
            inside |= (stream.time >= start) & (stream.time <= stop)
        inside &= np.isfinite(values)
        if inside.any() and float(np.ptp(values[inside])) > 0.0:
            found.append(float(np.median(values[inside])))
    return float(np.mean(found)) if found else 0.0
