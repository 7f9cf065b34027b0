"""What identification hands back, and the vehicle record that says of every value where it comes from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.logs import Log, LogSegments
from airworthy.vehicles.check import check, rotor_thrust
from airworthy.vehicles.identification.air_speed.drag import AirDrag, with_drag
from airworthy.vehicles.identification.air_speed.told import drag_source, drag_uncertainty
from airworthy.vehicles.identification.compared import HeldOut
from airworthy.vehicles.identification.excitation import word
from airworthy.vehicles.identification.fitting.descent import Refined
from airworthy.vehicles.identification.fitting.parameters import AIR, FALL, Parameter
from airworthy.vehicles.identification.fitting.refine import Fit
from airworthy.vehicles.identification.fitting.start import StartValues
from airworthy.vehicles.identification.known import MEASURABLE, Known
from airworthy.vehicles.identification.motors.measured_speeds import MotorFit
from airworthy.vehicles.identification.prediction.signals import FlightSignals
from airworthy.vehicles.identification.sources import METHOD, motor_sources, sources_of, supply_source
from airworthy.vehicles.identification.values import IdentifiedValue
from airworthy.vehicles.record import UNCERTAIN, ThrustDrift, Uncertainty, Vehicle

__all__ = ["Identified", "IdentifiedValue", "saved_vehicle", "source_of"]

BRACKET = 0.1
"""Distance of the two regressions of an inertia over their mean, above which it is told."""
DIGITS = 12
"""Decimals of correlations: what is smaller is rounding."""


@dataclass(frozen=True, eq=False)
class Identified:
    """A vehicle from its logs."""

    vehicle: Vehicle
    """With its uncertainty and the source of each value."""
    values: tuple[IdentifiedValue, ...]
    """Of the vehicle."""
    sensor: tuple[IdentifiedValue, ...]
    """Place, tilt and lateness of the inertial sensor, and the height where drag acts."""
    flights: tuple[IdentifiedValue, ...]
    """What each flight had of its own."""
    table: HeldOut | None
    """Errors on what was held out."""
    segments: tuple[LogSegments, ...]
    """Of each log."""
    start: StartValues
    fit: Fit
    structure: str
    """How rotors respond, of `structures.STRUCTURES`: by the "first power" of their speeds or the "square", rise and fall
    alike or apart."""
    structures: Mapping[str, float]
    """Score of each structure that was tried, on flight that was left out, over that of the best; less is better."""
    hover: float
    """Mean command in hover, fraction of full."""
    curve: tuple[tuple[float, float, float], ...]
    """Command, thrust of a rotor [N] and its standard deviation, at five commands."""
    advice: tuple[str, ...]
    """What no log told, and what would help."""
    notes: tuple[str, ...]
    """What was found on the way: order of motors, structure, brackets."""
    seed: int
    motors: MotorFit | None = None
    """What measured rotor speeds told of the motors; None: none were followed."""
    raced: tuple[Refined, ...] = ()
    """How Gauss-Newton and the gradient got on from the same start, where that was asked for."""
    air: AirDrag | None = None
    """What velocities told of drag; None: there were none, or no flight was fast enough."""

    def prior(self, name: str) -> Parameter:
        """Return what was believed of a value before the logs."""
        known = {item.label: item for item in self.fit.problem.parameters.items}
        if self.air is not None:
            known |= {item.name: item for item in self.air.fit.problem.parameters.items if item.flight is None}
        return known.get(name) or Parameter(name, self.value(name).value, 0.0)

    @property
    def correlation(self) -> tuple[tuple[float, ...], ...]:
        """Of the vehicle's values."""
        assert self.vehicle.uncertainty is not None
        return self.vehicle.uncertainty.correlation

    def value(self, name: str) -> IdentifiedValue:
        """Return a value of the vehicle, the sensor or a flight by its name."""
        return next(v for v in (*self.values, *self.sensor, *self.flights) if v.name == name)

    @property
    def winds(self) -> tuple[tuple[str, IdentifiedValue, IdentifiedValue], ...]:
        """Return name, and mean wind to the east and to the north [m/s], of each flight of which it is told."""
        names = () if self.air is None else self.air.names
        return tuple((name, self.value(f"wind_x[{name}]"), self.value(f"wind_y[{name}]")) for name in names)

    def record(self) -> dict[str, Any]:
        """Return everything as plain tables, for identification.json."""
        from dataclasses import asdict

        start = asdict(self.start) | {"cells": [list(cell) for cell in self.start.cells[:8]]}
        return {
            "method": METHOD,
            "seed": self.seed,
            "structure": self.structure,
            "structures": dict(self.structures),
            "refinements": [{k: v for k, v in asdict(row).items() if k != "seconds"} for row in self.raced],
            "air": None if self.air is None else self.air.record(),
            "motors": None if self.motors is None else self.motors.record(),
            "values": [asdict(v) for v in self.values],
            "sensor": [asdict(v) for v in self.sensor],
            "flights": [asdict(v) for v in self.flights],
            "correlation": [list(row) for row in self.correlation],
            "hover_command": self.hover,
            "thrust_curve": [list(point) for point in self.curve],
            "start": start,
            "cost": self.fit.cost,
            "iterations": self.fit.iterations,
            "costs_of_starts": list(self.fit.starts),
            "held_out": None if self.table is None else asdict(self.table),
            "looks_at_held_out": 0 if self.table is None else 1,
            "segments": [asdict(s) for s in self.segments],
            "sources": dict(self.vehicle.sources),
            "advice": list(self.advice),
            "notes": list(self.notes),
        }


def found_values(fit: Fit, known: Known) -> tuple[tuple[IdentifiedValue, ...], ...]:
    """Return values of the vehicle, the sensor and the flights."""
    items = fit.problem.parameters.items
    measured = {MEASURABLE[name]: number.source for name, number in known.measured.items()}
    if known.izz is not None:
        measured["inertia_zz_ratio"] = known.izz.source
    information = fit.problem.parameters.information
    beside = {name: item for item in reversed(information) for name in item.names}
    groups: tuple[list[IdentifiedValue], ...] = ([], [], [])
    for k, item in enumerate(items):
        raw, sd = float(fit.theta[k]), float(fit.sd[k])
        value = math.exp(raw) if item.scale == "log" else raw
        share, fitted = float(fit.share[k]), fit.problem.parameters.free[k]
        said = word(share, fitted)
        place, told = item.name, said in ("identified", "supported")
        if place == "mass":
            said = said if told and information else "weighed"
        elif place in known.fixed:
            said, sd = "fixed", 0.0
        elif place in measured and not told:
            said = "prior" if measured[place] else "measured"
        elif place in beside and not told:
            said = "bench" if beside[place].measured else "prior"
        source = beside[place].source if place in beside else measured.get(place, "")
        spread = sd * value if item.scale == "log" else sd
        row = IdentifiedValue(item.label, value, spread, share, float(fit.laplace[k]), float(fit.sandwich[k]), said, source)
        groups[0 if item.name in UNCERTAIN else 1 if item.flight is None else 2].append(row)
    return tuple(tuple(group) for group in groups)


def source_of(logs: Sequence[Log], flights: Sequence[FlightSignals]) -> str:
    """Return logs and their parts in words: "log10[1a2b3c4d] 9-24 s, ..."."""
    said = []
    for log, flight in zip(logs, flights, strict=True):
        parts = [f"{a:.0f}-{b:.0f}" for a, b in flight.spans]
        shown = " ".join(parts[:3]) + (f" and {len(parts) - 3} more" if len(parts) > 3 else "")
        said.append(f"{log.name}[{log.source.sha256[:8] or 'no file'}] {shown} s")
    return ", ".join(said)


def saved_vehicle(
    fit: Fit,
    values: Sequence[IdentifiedValue],
    where: str,
    state: tuple[float, float],
    gauge: bool,
    seed: int,
    name: str,
    motors: MotorFit | None = None,
    scale: str = "",
    air: AirDrag | str | None = None,
    drift: ThrustDrift | None = None,
    posed: str = "",
) -> Vehicle:
    """Return the record that is written: values, sources, uncertainty.

    Args:
        fit: To the logs.
        values: Of the vehicle.
        where: Logs and parts, in words.
        state: Least and largest rotor state that was flown, as fractions of full command.
        gauge: Whether the scale of rotor states is nominal, no log having told speeds.
        seed: Of the fit.
        name: Of the vehicle.
        motors: What measured speeds told; None: none were followed.
        scale: Where the scale of rotor states comes from beside the logs; empty: from nowhere else.
        air: What velocities told of drag, or why they told nothing; None: there were none.
        drift: What thrust does within a flight; None: it is not told.
        posed: Logs that told drag, in words as `where`; empty: all of them.

    Raises:
        AirworthyError: What was found is no vehicle.
    """
    parameters = fit.problem.parameters
    made = parameters.vehicle(fit.theta)
    full = made.rotors[0].speed_max
    names = tuple(n for n in UNCERTAIN if any(item.name == n for item in parameters.items))
    index = [parameters.place(n) for n in names]
    covariance = fit.covariance[np.ix_(index, index)]
    sd = np.sqrt(np.diag(covariance))
    # What is fixed has no deviation of its own, and correlates with nothing.
    related = covariance / np.maximum(np.outer(sd, sd), 1e-300)
    sd = np.where(sd < 1e-8, 0.0, sd)
    rows = np.round(related, DIGITS) + 0.0
    np.fill_diagonal(rows, 1.0)
    told = Uncertainty(
        names=names,
        transform=tuple("log" if UNCERTAIN[n] == "log" else "linear" for n in names),
        mean=tuple(float(fit.theta[k]) for k in index),
        sd=tuple(float(v) for v in sd),
        correlation=tuple(tuple(float(v) for v in row) for row in rows),
        share=tuple(float(round(fit.share[k], 6)) for k in index),
        state=parameters.state,
        method=METHOD,
        seed=seed,
        thrust_drift=drift,
    )
    height = parameters.place(AIR)
    if isinstance(air, AirDrag):
        made, told = with_drag(made, air), drag_uncertainty(told, air)
    drag = drag_source(air, posed or where, METHOD)
    if parameters.free[height]:
        drag += f"; its force acts {1e3 * fit.theta[height]:.2g} mm above the centre of mass (+-{1e3 * fit.sd[height]:.2g})"
    sources = sources_of(values, where, gauge, drag)
    if made.command_sag is not None:
        sources["command_sag"] = supply_source(values, where, made.command_sag[1])
    fall = parameters.place(FALL)
    if parameters.free[fall]:
        sources["rotors.response"] += (
            f"; falls {math.exp(fit.theta[fall]):.3g} times as slowly (+-{100.0 * fit.sd[fall]:.2g} %)"
        )
    if motors is not None:
        sources |= motor_sources(motors, where)
    elif made.command_map is not None:
        sources["command_map"] = scale or "given"
    if scale:
        sources["rotors.speed_max"] = f"gauge: {scale}; no log told speeds" if gauge else f"{scale}; that of a command of 1"
    weighed = parameters.items[parameters.place("mass")]
    sources["mass"] = f"weighed: {math.exp(weighed.mean):.6g}+-{weighed.sd * math.exp(weighed.mean):.2g} kg"
    mass = next(v for v in values if v.name == "mass")
    if mass.word != "weighed":
        bench = ", ".join(item.source for item in parameters.information)
        sources["mass"] = f"{mass.word}: what rotors carried in {where}; {bench}; +-{100.0 * mass.sd / mass.value:.2g} %"
    made = replace(
        made,
        name=name,
        rotor_range=(state[0] * full, state[1] * full),
        uncertainty=told,
        sources=sources,
        extra={"identified_by": METHOD},
    )
    try:
        return check(made)
    except AirworthyError as error:
        raise AirworthyError(f"What the logs ask for is no vehicle: {error} `airworthy logs show` may tell why.") from None


def curve_points(fit: Fit, state: tuple[float, float]) -> tuple[tuple[float, float, float], ...]:
    """Return command, thrust of the mean rotor [N] and its standard deviation at five commands of what was flown."""
    parameters = fit.problem.parameters
    full = parameters.base.rotors[0].speed_max
    places = [parameters.place("thrust"), parameters.place("thrust_linear")]
    covariance = fit.covariance[np.ix_(places, places)]
    points = []
    for command in np.linspace(state[0] + 0.1 * (state[1] - state[0]), state[1], 5):
        rotor = parameters.vehicle(fit.theta).rotors[0]
        thrust = rotor_thrust(rotor, float(command) * full)
        at = float(command) * full / parameters.state
        whole = math.exp(fit.theta[places[0]])
        slope = np.array([thrust, whole * (at - at * abs(at))])
        points.append((command_of(parameters.base, float(command) * full), thrust, float(np.sqrt(slope @ covariance @ slope))))
    return tuple(points)


def hover_command(vehicle: Vehicle) -> float:
    """Return the command at which rotors carry the weight, fraction of full; NaN where they cannot."""
    from airworthy.vehicles.trim import rotor_state_for_thrust

    up = sum(rotor.axis[2] for rotor in vehicle.rotors)
    rotor = vehicle.rotors[0]
    thrust = vehicle.mass * vehicle.gravity / up
    if rotor_thrust(rotor, rotor.speed_max) < thrust:
        return math.nan
    return command_of(vehicle, rotor_state_for_thrust(rotor, thrust))


def command_of(vehicle: Vehicle, state: float) -> float:
    """Return the command whose steady rotor state is given, fraction of full."""
    if vehicle.command_map is None:
        return state / vehicle.rotors[0].speed_max
    first, slope = vehicle.command_map
    return (state - first) / slope


def bracket_notes(begin: StartValues, told: dict[str, bool]) -> list[str]:
    """Return inertias whose two regressions lie apart, a sentence each."""
    if not told["inertia_xx"]:
        return []
    return [
        f"inertia {'xx' if axis == 0 else 'yy'} by regression lies between {begin.inertia_other[axis]:.3g} and"
        f" {begin.inertia[axis]:.3g} kg m^2 (correlation {begin.correlation[axis]:.2f})."
        for axis in (0, 1)
        if begin.bracket_width(axis) > BRACKET
    ]


def within_record(fit: Fit) -> Fit:
    """Return a fit that is as unsure of lag and dead time as a record makes it that has no dead time below 0.

    What the fit asks for below 0, a part of a step of the log, is then missing beside the lag.
    """
    parameters = fit.problem.parameters
    delay, lag = parameters.place("command_delay"), parameters.place("lag")
    missed = min(float(fit.theta[delay]), 0.0)
    covariance = fit.covariance.copy()
    covariance[delay, delay] += missed**2
    covariance[lag, lag] += (missed / math.exp(float(fit.theta[lag]))) ** 2
    return replace(fit, covariance=covariance)


def delay_note(fit: Fit) -> list[str]:
    """Return a sentence about a dead time that no record can hold."""
    delay = float(fit.theta[fit.problem.parameters.place("command_delay")])
    if delay >= 0.0:
        return []
    said = f"The fit asks for a dead time of {1e3 * delay:.1f} ms; the record says 0"
    return [f"{said}, and lag and dead time are unsure by as much."]
