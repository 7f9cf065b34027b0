"""From logs of flights to a vehicle with error bars. Pure: no files are read or written.

Stages: checks of units; order of motors; usable parts, the last third of each flight held out; start values in closed form;
joint refinement with each structure of the rotors' response; distribution, by importance sampling; prediction of what was
held out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.logs import Log, LogFinding
from airworthy.vehicles.identification.agreement import (
    agreement_notes,
    fitted_judges,
    refuse_orders,
    refuse_repeated,
    unlike_judges,
)
from airworthy.vehicles.identification.air_speed.drag import AirDrag, without_drag
from airworthy.vehicles.identification.air_speed.told import drag_values
from airworthy.vehicles.identification.air_speed.turns import drag_in_turns, flight_motions
from airworthy.vehicles.identification.compared import HeldOut, catalogue_plants, choose_trim, held_out
from airworthy.vehicles.identification.excitation import advice, pulled, told_by
from airworthy.vehicles.identification.fitting.descent import compared_descents, descend_by_gradient
from airworthy.vehicles.identification.fitting.importance import sample_fit
from airworthy.vehicles.identification.fitting.parameters import Parameters, believed_parameters
from airworthy.vehicles.identification.fitting.refine import Descent, Fit, promised_gain
from airworthy.vehicles.identification.fitting.start import StartValues, start_values
from airworthy.vehicles.identification.fitting.structures import (
    STARTS,
    STARTS_QUICK,
    STRUCTURES,
    Compared,
    RotorStructure,
    compared,
    fitted,
    start_vector,
)
from airworthy.vehicles.identification.from_bench import (
    BenchScale,
    bench_notes,
    information_of,
    scaled_by_bench,
    weighed_by_bench,
)
from airworthy.vehicles.identification.gathering import (
    Feed,
    Gathered,
    base_of,
    findings_within,
    followed_speeds,
    held_out_notes,
    hover_of,
    ordered_alike,
    settled_by,
    split,
    spun,
    with_motors,
)
from airworthy.vehicles.identification.known import NO_LOG, Known, Parts, parts_of, refuse_impossible
from airworthy.vehicles.identification.motors.measured_speeds import MotorFit
from airworthy.vehicles.identification.motors.motor_values import by_speeds, told_by_speeds
from airworthy.vehicles.identification.prediction.plant import slowest_lag
from airworthy.vehicles.identification.prediction.predict import predict
from airworthy.vehicles.identification.prediction.signals import FlightSignals, mapped_commands
from airworthy.vehicles.identification.result import (
    Identified,
    bracket_notes,
    curve_points,
    delay_note,
    found_values,
    hover_command,
    saved_vehicle,
    source_of,
    within_record,
)
from airworthy.vehicles.identification.supply import as_supplied, refuse_unlike_supplied, with_supply
from airworthy.vehicles.identification.thrust_drift import thrust_drift
from airworthy.vehicles.identification.turning import refuse_unlike_turns, turn_notes, turn_shares
from airworthy.vehicles.record import ThrustDrift, Vehicle

__all__ = ["Refinement", "identify"]

Refinement = Literal["gauss-newton", "gradient", "both"]

WORTH_A_FIT = 2.0
"""Gain in cost that one step must promise before rise and fall are fitted apart; left-out flight asks for more than that."""
GAINED = 3.0
"""So many times the promise a fit may gain: it also weighs errors anew. A power that is further behind is not fitted again."""


def identify(
    logs: Sequence[Log],
    known: Known,
    seed: int = 0,
    *,
    quick: bool = False,
    use: Parts = (),
    skip: Parts = (),
    holdout: Sequence[Log] = (),
    feed: Feed = "auto",
    refine: Refinement = "gauss-newton",
    name: str = "identified",
    say: Callable[[str], None] = lambda _: None,
) -> Identified:
    """Identify a vehicle.

    Args:
        logs: Flights of one vehicle, with motor commands, gyro and accelerometer.
        known: Mass, geometry, and what was measured.
        seed: Of the draws of importance sampling; with `quick` nothing is drawn.
        quick: Fewer windows and starts, no importance sampling.
        use: Only these parts of each log, start and stop [s], or parts by the name of their log, "" being all logs; empty: all.
        skip: Not these parts [s].
        holdout: Logs that are predicted and not fitted; empty: the last third of each flight.
        feed: What rotors follow in a fit: "speeds" as measured, "commands", or "auto", speeds where every log has good ones.
        refine: How costs are lowered: by "gauss-newton", by the "gradient" alone, or by the first and then compared, "both".
        name: Of the vehicle.
        say: Told each stage.

    Returns:
        The vehicle, its distribution, and the table of what was held out.

    Raises:
        AirworthyError: A log has no commands or no usable flight, its units are wrong, or motors and rotors do not fit; one
            sentence.
    """
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        raise AirworthyError(f"The seed of the draws is {seed!r}; expected a whole number from 0 on.")
    if not logs:
        raise AirworthyError(NO_LOG)
    refuse_repeated(logs, () if use or skip else holdout)
    known = weighed_by_bench(logs, known, use, skip)
    base, trusted = base_of(logs, known)
    refuse_impossible(base, known.measured)
    gathered = [Gathered(log, base, parts_of(use, log.name), parts_of(skip, log.name), known.order) for log in logs]
    ordered_alike(gathered)
    refuse_orders([log.name for log in logs], [g.order for g in gathered])
    refuse_unlike_supplied([g.signals for g in gathered])
    decided = followed_speeds(gathered, feed)
    base = spun(base, gathered)
    for g in gathered:
        g.settle(slowest_lag(base))
    # What turns one flight has is compared with those of others.
    turned = turn_shares([g.signals for g in gathered], base) if len(gathered) > 1 else []
    refuse_unlike_turns(turned)
    alike = agreement_notes([g.signals for g in gathered])
    notes = [*(note for g in gathered for note in g.notes), *alike, *decided]
    notes += [*turn_notes(turned), *fitted_judges(logs, holdout)]
    fit_to, held = split([g.signals for g in gathered], bool(holdout))
    findings = [findings_within(log, g.segments, f) for log, g, f in zip(logs, gathered, fit_to, strict=True)]
    notes += held_out_notes(gathered, findings)
    judges = [Gathered(log, base, (), (), known.order) for log in holdout]
    if judges:
        ordered_alike([*gathered, *judges])
        refuse_unlike_supplied([g.signals for g in gathered], [g.signals for g in judges])
        for g in judges:
            g.settle(slowest_lag(base))
        held = [g.signals for g in judges]
    motors: MotorFit | None = None
    command = float(np.mean([hover_of(flight) for flight in fit_to]))
    if all(flight.speeds is not None for flight in fit_to):
        base, fit_to, held, found = with_motors(base, fit_to, held)
        motors = found if isinstance(found, MotorFit) else None
        notes.append(found.sentence() if isinstance(found, MotorFit) else f"Rotor speeds are not followed: {found}.")
    base, scale = scaled_by_bench(base, known, command, logs, gathered, motors is not None)
    if motors is None:
        fit_to, held = ([mapped_commands(flight, base) for flight in part] for part in (fit_to, held))
    told = told_by(findings, motors is not None)
    told["drag_height"] = told["turns"] and pulled(fit_to, base)
    base, said = with_supply(base, fit_to, known, told, motors is not None)
    notes += said
    hover = float(np.mean([hover_of(flight) for flight in fit_to]))
    say(f"{sum(f.usable_time for f in fit_to):.1f} s are fitted, {sum(f.usable_time for f in held):.1f} s held out")
    job = _Job(
        tuple(fit_to),
        base,
        known,
        tuple(g.rested for g in gathered),
        hover,
        told,
        tuple(told_by([one], motors is not None) for one in findings),
        trusted,
        motors,
        scale,
        quick,
        say,
        descend_by_gradient if refine == "gradient" else None,
    )
    tried, judged = _tried(job)
    chosen = tried[judged.chosen]
    fit, begin = chosen.fit, chosen.begin
    if len(tried) > 1:
        notes.append(judged.sentence())
    supplied = [g.signals for g in (*gathered, *judges)]
    if told["sag"]:
        supplied = as_supplied(supplied, fit.problem.parameters.values(fit.theta)["sag"])
        notes = [n for n in notes if n not in alike] + agreement_notes(supplied[: len(gathered)])
    strangers = unlike_judges(supplied[: len(gathered)], supplied[len(gathered) :])
    notes += [judge.sentence for judge in strangers if not judge.verdict]
    fit, held, air, said = _with_air(job, gathered, findings, logs, fit, held)
    notes += said
    raced = compared_descents(fit, start_vector(fit.problem.parameters, begin, begin.cells[0])) if refine == "both" else ()
    if not quick:
        fit, sampled = sample_fit(fit, seed, say)
        notes.append(sampled.sentence([item.label for item in fit.problem.parameters.items]))
    if motors is not None:
        fit = told_by_speeds(fit, chosen.parameters, motors)
    fit = within_record(fit)
    notes += bench_notes(known, scale, fit, motors is not None)
    reasons = [judge.verdict for judge in strangers if judge.verdict]
    table = _table(fit_to, settled_by(held, begin.lag, begin.delay), fit, begin, told, reasons) if held else None
    if table is not None and table.verdict == "flyable" and not any(g.scaled for g in gathered):
        # Predictions by a wrong scale agree with readings of the same scale: only the thrust is wrong.
        table = replace(table, verdict="supported")
    values, sensor, of_flights = found_values(fit, known)
    flown = _flown(fit_to, fit)
    gauge = motors is None and base.command_map is None and (known.vehicle is None or base.extra.get("gauge") == "nominal")
    drift: ThrustDrift | None = None
    if motors is None and not told["sag"]:
        whole = [mapped_commands(g.signals, base) for g in gathered]
        drift, falls = thrust_drift(fit, whole, [g.took_off for g in gathered])
        notes += falls
    where, posed = source_of(logs, fit_to), source_of(*_posed(logs, fit_to, air))
    made = saved_vehicle(fit, values, where, flown, gauge, seed, name, motors, scale.source, air, drift, posed)
    drags, own = drag_values(air, made)
    return Identified(
        vehicle=made,
        values=(*values, *drags),
        sensor=sensor,
        flights=(*of_flights, *own),
        table=table,
        segments=tuple(g.segments for g in gathered),
        start=begin,
        fit=fit,
        structure=judged.chosen,
        structures=dict(judged.scores),
        hover=hover_command(made),
        curve=curve_points(fit, flown),
        advice=advice(findings),
        notes=(*notes, *bracket_notes(begin, told), *delay_note(fit)),
        seed=seed,
        motors=motors,
        raced=raced,
        air=air if isinstance(air, AirDrag) else None,
    )


# ---- Fits --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Job:
    """What is fitted to what, whatever the structure."""

    flights: tuple[FlightSignals, ...]
    base: Vehicle
    known: Known
    rested: tuple[bool, ...]
    hover: float
    told: dict[str, bool]
    told_of: tuple[dict[str, bool], ...]
    """What each flight can tell alone."""
    trusted: tuple[str, ...]
    motors: MotorFit | None
    scale: BenchScale
    quick: bool
    say: Callable[[str], None]
    descend: Descent | None

    def parameters(self, structure: RotorStructure) -> Parameters:
        """Return what is fitted of a structure."""
        middles = [0.5 * (flight.spans[0][0] + flight.spans[-1][1]) for flight in self.flights]
        return believed_parameters(
            self.base,
            self.known,
            self.rested,
            self.hover,
            self.told,
            self.trusted,
            structure.square,
            structure.apart,
            middles,
            information_of(self.known, self.scale, self.state, self.motors),
        )

    @property
    def state(self) -> float:
        """Rotor state in hover."""
        return float(np.mean([rotor.speed_max for rotor in self.base.rotors])) * self.hover

    def start(self, structure: RotorStructure) -> StartValues:
        """Return start values; where speeds were measured, they tell lag and dead time."""
        turning, motors = self.told["turns"], self.motors
        cell = None if motors is None else (motors.lag, motors.delay)
        quick = self.quick or not turning
        power, nominal = self.base.command_sag or (0.0, 1.0)
        # With the supply as it is believed to act: the fit moves it.
        flights = [replace(flight, command=flight.supplied(power, nominal)) for flight in self.flights]
        return start_values(flights, self.base, self.hover, structure.square, quick, turning, cell)


@dataclass(frozen=True, eq=False)
class _Tried:
    """One structure, fitted."""

    begin: StartValues
    parameters: Parameters
    fit: Fit


def _tried(job: _Job) -> tuple[dict[str, _Tried], Compared]:
    """Fit every structure that flights may tell, and judge them."""
    motors, told = job.motors, job.told
    if motors is not None:
        chosen = next(s for s in STRUCTURES if (s.square, s.apart) == (motors.square, motors.apart))
        begin, parameters = job.start(chosen), job.parameters(chosen)
        followed = by_speeds(parameters, motors, job.known)
        fit = fitted(
            job.flights,
            followed,
            [start_vector(followed, begin, begin.cells[0])],
            told,
            job.known,
            job.quick,
            job.say,
            None,
            job.told_of,
        )
        return {chosen.name: _Tried(begin, parameters, fit)}, Compared(chosen.name, motors.scores, motors.errors)
    plain = [s for s in STRUCTURES if not s.apart and (told["lag"] or not s.square)]
    begun = {s.name: job.start(s) for s in plain}
    # Of the same windows, whatever the structure: their errors are compared.
    flights = settled_by(
        job.flights, max(b.lag for b in begun.values()), max(b.delay for b in begun.values()) if told["lag"] else 0.0
    )
    tried: dict[str, _Tried] = {}
    for structure in plain:
        begin, parameters = begun[structure.name], job.parameters(structure)
        job.say(f"{structure.name}: lag {1e3 * begin.lag:.0f} ms, dead time {1e3 * begin.delay:.0f} ms by the grid")
        cells = begin.cells[: STARTS_QUICK if job.quick else STARTS]
        starts = [start_vector(parameters, begin, cell) for cell in cells]
        tried[structure.name] = _Tried(
            begin,
            parameters,
            fitted(flights, parameters, starts, told, job.known, job.quick, job.say, job.descend, job.told_of),
        )
    apart = [s for s in STRUCTURES if s.apart] if told["lag"] and "lag" not in job.known.fixed else []
    behind = compared({name: item.fit for name, item in tried.items()}).scores
    for structure in apart:
        # Both powers: one lag makes the wrong one of them look better where rise and fall differ.
        power = "square" if structure.square else "first power"
        near, parameters = tried[power], job.parameters(structure)
        gain = promised_gain(replace(near.fit.problem, parameters=parameters), near.fit.theta)
        job.say(f"{structure.name}: a step from one lag gains {gain:.1f}")
        if gain > WORTH_A_FIT and GAINED * gain > behind[power]:
            fit = fitted(flights, parameters, [near.fit.theta], told, job.known, job.quick, job.say, job.descend, job.told_of)
            tried[structure.name] = _Tried(near.begin, parameters, fit)
    return tried, compared({name: item.fit for name, item in tried.items()})


def _with_air(
    job: _Job,
    gathered: Sequence[Gathered],
    findings: Sequence[Sequence[LogFinding]],
    logs: Sequence[Log],
    fit: Fit,
    held: list[FlightSignals],
) -> tuple[Fit, list[FlightSignals], AirDrag | str | None, list[str]]:
    """Fit drag where logs have velocities and were fast enough, take it off what is held out, too, and say what was found."""
    found = flight_motions(logs, [g.signals for g in gathered], findings, [g.checks for g in gathered])
    motions, notes = found.of, list(found.notes)
    if not motions:
        return fit, held, found.reason or None, notes

    def refit(flights: Sequence[FlightSignals], near: Fit) -> Fit:
        return fitted(
            flights, near.problem.parameters, [near.theta], job.told, job.known, job.quick, job.say, job.descend, job.told_of
        )

    fit, air = drag_in_turns(fit, motions, held, job.base, refit, job.quick, job.say)
    if air.against:
        return fit, held, air.against.rstrip("."), [*notes, air.against]
    freed = [without_drag(flight, motions[flight.name], air) if flight.name in motions else flight for flight in held]
    return fit, freed, air, [*notes, air.sentence()]


def _posed(
    logs: Sequence[Log], flights: Sequence[FlightSignals], air: AirDrag | str | None
) -> tuple[list[Log], list[FlightSignals]]:
    """Return the logs that told drag, and their flights; all of them where none did."""
    names = air.names if isinstance(air, AirDrag) else [log.name for log in logs]
    return [log for log in logs if log.name in names], [f for f in flights if f.name in names]


# ---- What is told ------------------------------------------------------------------------------------------------------------


def _table(
    fitted: Sequence[FlightSignals],
    held: Sequence[FlightSignals],
    fit: Fit,
    begin: StartValues,
    told: dict[str, bool],
    strangers: Sequence[str],
) -> HeldOut:
    parameters, count = fit.problem.parameters, len(held)
    vehicle = parameters.vehicle(fit.theta)
    start = start_vector(parameters, begin, begin.cells[0])
    # What a flight had of its own is not known of another: only what is the same in all of them is carried over.
    common = _without_flights(parameters, fit.theta)
    name, nearest = catalogue_plants(parameters.base, count)
    identified = [parameters.plant(common[None], 0)] * count
    own = [parameters.plant(fit.theta[None], k) for k in range(len(fitted))]
    turning = told["turns"] and told["inertia_xx"]
    trim = choose_trim(own, fit.problem.windows) if turning else (1.0, 0.4)
    return held_out(
        held,
        {"nearest": nearest, "start": [parameters.plant(start[None], 0)] * count, "identified": identified},
        trim,
        _spread(fit) if fit.problem.windows else None,
        turning,
        told["turns"] and told["torque_ratio"],
        name,
        math.isfinite(hover_command(vehicle)),
        strangers,
    )


def _without_flights(parameters: Parameters, theta: Array) -> Array:
    """Return a vector in which flights have nothing of their own."""
    own = np.array([item.flight is not None for item in parameters.items])
    return np.where(own, 0.0, theta)


def _spread(fit: Fit) -> Array:
    """Deviations of the fit's errors at each step: rate x, y, z and force z, (steps + 1, 4)."""
    parts = []
    for k, windows in enumerate(fit.problem.windows):
        found = predict(fit.problem.parameters.plant(fit.theta[None], k), windows)
        errors = np.concatenate([found.rate[0] - windows.rate, (found.force[0] - windows.force)[..., 2:]], axis=-1)
        parts.append(errors)
    return np.asarray(np.sqrt(np.mean(np.concatenate(parts) ** 2, axis=0)))


def _flown(flights: Sequence[FlightSignals], fit: Fit) -> tuple[float, float]:
    """Least and largest rotor state that was flown, as fractions of full command."""
    ends = []
    for k, flight in enumerate(flights):
        plant = fit.problem.parameters.plant(fit.theta[None], k)
        power, nominal = plant.supply[0].tolist()
        states = flight.supplied(power, nominal).states(plant.response)[0]
        time = flight.command.start + flight.command.period * np.arange(len(states)) + float(plant.delay[0])
        for a, b in flight.spans:
            inside = states[(time >= a) & (time <= b)]
            if inside.size:
                ends += [float(inside.min()), float(inside.max())]
    return min(ends), max(ends)
