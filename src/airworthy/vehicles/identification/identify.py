"""From logs of flights to a vehicle with error bars. Pure: no files are read or written.

Stages: checks of units; order of motors; usable parts, the last third of each flight held out; start values in closed form;
joint refinement with each structure of the rotors' response; distribution, by importance sampling; prediction of what was
held out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.logs import (
    Log,
    LogSegments,
    RotorGeometry,
    flight_segments,
    log_checks,
    log_findings,
    motor_order,
)
from airworthy.logs.checks import rest_noise
from airworthy.vehicles.identification.agreement import agreement_notes, refuse_orders, refuse_unlike
from airworthy.vehicles.identification.compared import HeldOut, catalogue_plants, choose_trim, held_out
from airworthy.vehicles.identification.excitation import advice, pulled, told_by
from airworthy.vehicles.identification.importance import sample_fit
from airworthy.vehicles.identification.known import Known, believed, with_mass
from airworthy.vehicles.identification.parameters import Parameters, believed_parameters
from airworthy.vehicles.identification.plant import slowest_lag
from airworthy.vehicles.identification.predict import cut_windows, predict
from airworthy.vehicles.identification.refine import Fit, FitProblem, refine
from airworthy.vehicles.identification.result import (
    Identified,
    curve_points,
    found_values,
    hover_command,
    saved_vehicle,
    source_of,
)
from airworthy.vehicles.identification.signals import FlightSignals, flight_signals, refuse_rates
from airworthy.vehicles.identification.start import StartValues, start_values
from airworthy.vehicles.record import Vehicle

__all__ = ["identify"]

HELD_SHARE = 1.0 / 3.0
"""Last part in time of each flight that no fit sees."""
GUARD = 5.0
"""Between what is fitted and what is held out [s]; of short flights a tenth of them."""
WINDOWS, WINDOWS_QUICK = 96, 40
"""Of each flight."""
STARTS, STARTS_QUICK = 4, 1
"""Of the grid's best cells."""
SHORT = 6.0
"""Usable seconds under which a flight is fitted whole, and nothing of it held out."""
BRACKET = 0.1
"""Distance of the two regressions of an inertia over their mean, above which it is told."""
STRUCTURES = {"first power": False, "square": True}
NO_FLIGHT = "no second of it is usable flight; `airworthy logs show` gives each reason"

Part = tuple[float, float]


def identify(
    logs: Sequence[Log],
    known: Known,
    seed: int = 0,
    *,
    quick: bool = False,
    use: Sequence[Part] = (),
    skip: Sequence[Part] = (),
    holdout: Sequence[Log] = (),
    name: str = "identified",
    say: Callable[[str], None] = lambda _: None,
) -> Identified:
    """Identify a vehicle.

    Args:
        logs: Flights of one vehicle, with motor commands, gyro and accelerometer.
        known: Mass, geometry, and what was measured.
        seed: Of the draws of importance sampling; with `quick` nothing is drawn.
        quick: Fewer windows and starts, no importance sampling.
        use: Only these parts of each log, start and stop [s]; empty: all.
        skip: Not these parts [s].
        holdout: Logs that are predicted and not fitted; empty: the last third of each flight.
        name: Of the vehicle.
        say: Told each stage.

    Returns:
        The vehicle, its distribution, and the table of what was held out.

    Raises:
        AirworthyError: A log has no commands or no usable flight, its units are wrong, or motors and rotors do not fit; one
            sentence.
    """
    if not logs:
        raise AirworthyError("No log was given; expected at least one flight with motor commands, gyro and accelerometer.")
    base, trusted = _base(logs, known)
    gathered = [_Gathered(log, base, use, skip) for log in logs]
    refuse_orders([log.name for log in logs], [g.order for g in gathered])
    refuse_unlike([g.signals for g in gathered])
    notes = [*(note for g in gathered for note in g.notes), *agreement_notes([g.signals for g in gathered])]
    base = _spun(base, gathered)
    for g in gathered:
        g.settle(slowest_lag(base))
    told = told_by([g.findings for g in gathered])
    told["drag_height"] = told["turns"] and pulled([g.signals for g in gathered], base)
    fitted, held = _split([g.signals for g in gathered], bool(holdout))
    if holdout:
        judges = [_Gathered(log, base, (), ()) for log in holdout]
        for g in judges:
            g.settle(slowest_lag(base))
        held = [g.signals for g in judges]
    hover = float(np.mean([_hover(flight) for flight in fitted]))
    say(f"{sum(f.usable_time for f in fitted):.1f} s are fitted, {sum(f.usable_time for f in held):.1f} s held out")
    rested = [g.rested for g in gathered]
    fits: dict[str, tuple[float, StartValues, Parameters, Fit]] = {}
    for structure, square in STRUCTURES.items():
        if square and not told["lag"]:
            continue
        begin = start_values(fitted, base, hover, square, quick or not told["turns"], told["turns"])
        parameters = believed_parameters(base, known, rested, hover, told, trusted, square)
        say(f"{structure}: lag {1e3 * begin.lag:.0f} ms, dead time {1e3 * begin.delay:.0f} ms by the grid")
        fit = _fitted(_settled(fitted, begin), parameters, begin, told, known, quick, say)
        fits[structure] = (_left_over(fit), begin, parameters, fit)
    structure = min(fits, key=lambda s: fits[s][0])
    _, begin, parameters, fit = fits[structure]
    if not quick:
        fit, sampled = sample_fit(fit, seed, say)
        notes.append(sampled.sentence([item.label for item in parameters.items]))
    table = _table(fitted, _settled(held, begin), fit, begin, told) if held else None
    values, sensor, of_flights = found_values(fit, known)
    flown = _flown(fitted, fit)
    gauge = known.vehicle is None or base.extra.get("gauge") == "nominal"
    made = saved_vehicle(fit, values, source_of(logs, fitted), flown, gauge, seed, name)
    return Identified(
        vehicle=made,
        values=values,
        sensor=sensor,
        flights=of_flights,
        table=table,
        segments=tuple(g.segments for g in gathered),
        start=begin,
        fit=fit,
        structure=structure,
        structures={s: f[0] for s, f in fits.items()},
        hover=hover_command(made),
        curve=curve_points(fit, flown),
        advice=advice([g.findings for g in gathered]),
        notes=(*notes, *_brackets(begin, told), *_delay_note(fit)),
        seed=seed,
    )


# ---- What arrives ------------------------------------------------------------------------------------------------------------


def _base(logs: Sequence[Log], known: Known) -> tuple[Vehicle, tuple[str, ...]]:
    """Return what is believed beforehand, and which of its values are more than a guess."""
    assert known.mass is not None
    mass = known.mass[0]
    if known.vehicle is not None:
        base = with_mass(known.vehicle, mass)
        guessed = known.vehicle.extra.get("gauge") == "nominal"
        return base, () if guessed else ("lag", "inertia_xx", "inertia_yy", "inertia_zz_ratio", "torque_ratio", "damping")
    geometry = next((log.geometry for log in logs if log.geometry is not None), None)
    if geometry is None:
        raise AirworthyError(
            "No log says where its rotors are; name a vehicle of the catalogue (--like), a frame (--frame quad_x:0.028) or a"
            " vehicle file (--geometry)."
        )
    if not np.all(geometry.spin):
        raise AirworthyError(f"The parameters of log {logs[0].name!r} do not say which way its rotors turn; give --geometry.")
    ratio = float(np.mean(np.abs(geometry.torque_ratio))) or None
    positions = geometry.position - geometry.position.mean(axis=0)
    made = believed(
        "identified",
        mass,
        [(float(p[0]), float(p[1]), float(p[2])) for p in positions],
        [(float(a[0]), float(a[1]), float(a[2])) for a in geometry.axis],
        # A rotor that turns counter-clockwise is answered by the vehicle against its axis.
        [-1 if spin > 0 else 1 for spin in geometry.spin],
        ratio,
    )
    return made, ("torque_ratio",) if ratio else ()


class _Gathered:
    """One log: checks, parts, signals, order of its motors."""

    def __init__(self, log: Log, base: Vehicle, use: Sequence[Part], skip: Sequence[Part]) -> None:
        if not log.has("motor_command"):
            raise AirworthyError(
                f"Log {log.name!r} holds no motor commands: it tells noise of sensors, time offsets and motion, but no vehicle."
            )
        count = log.stream("motor_command").values.shape[1]
        if count != base.rotor_count:
            raise AirworthyError(
                f"Log {log.name!r} commands {count} motors, and the given geometry has {base.rotor_count} rotors; name the"
                " vehicle that flew it."
            )
        if not np.any(np.nan_to_num(log.stream("motor_command").values)):
            raise AirworthyError(f"Log {log.name!r}: every motor command is 0, so nothing flew by them; a vehicle is not told.")
        for check in log_checks(log):
            if check.passed is False and check.name in ("gravity at rest", "gravity in flight"):
                raise AirworthyError(f"Log {log.name!r}: {check.said} Nothing is fitted to wrong units.")
        self.segments: LogSegments = flight_segments(log, use, skip)
        if not self.segments.usable:
            raise AirworthyError(f"Log {log.name!r}: {NO_FLIGHT}.")
        self.findings = log_findings(log, self.segments)
        rest = rest_noise(log)
        self.rested = rest is not None
        self.signals: FlightSignals = flight_signals(log, self.segments, None if rest is None else rest.gyro_bias)
        refuse_rates(log, self.signals)
        self.notes: list[str] = []
        self.reversed = False
        self.order: tuple[int, ...] | None = None
        self._order(log, base)
        if log.has("voltage") and float(np.ptp(np.nan_to_num(log.stream("voltage").values))) == 0.0:
            self.notes.append(f"{log.name}: the voltage is constant, so it was not measured, and no sag is told.")

    def settle(self, lag: float) -> None:
        """Leave out where rotor states are not known yet, and say so.

        Args:
            lag: Believed of the rotors [s].

        Raises:
            AirworthyError: Nothing is left.
        """
        before, self.signals = self.signals, self.signals.settled(lag)
        self.notes += [f"{self.signals.name}: {said}" for said in before.left_out(self.signals)]
        if not self.signals.spans:
            raise AirworthyError(
                f"Log {self.signals.name!r}: its commands break off so often that rotor speeds are known nowhere; log them"
                " without gaps."
            )

    def _order(self, log: Log, base: Vehicle) -> None:
        arms = np.array([rotor.position for rotor in base.rotors]) - np.array(base.center_of_mass)
        spins = -np.array([float(rotor.spin) for rotor in base.rotors])
        rotors = RotorGeometry(arms, np.array([r.axis for r in base.rotors]), spins, np.zeros(len(spins)))
        if len(spins) > 6:
            self.notes.append(f"{log.name}: the order of {len(spins)} motors is assumed; up to 6 are tried.")
            return
        found = motor_order(log, self.segments, rotors)
        turns = any(f.parameter == "inertia xx, yy" and f.verdict == "can tell" for f in self.findings)
        if found is None or not (found.accepted or turns):
            self.notes.append(f"{log.name}: the order of motors and their spins are assumed; too few turns tell them.")
            return
        if found.told and not found.accepted:
            raise AirworthyError(f"Log {log.name!r}: {found.sentence()}")
        self.notes.append(f"{log.name}: {found.sentence()}")
        if not found.told:
            return
        self.signals = self.signals.ordered(found.order)
        self.order = tuple(found.order)
        self.reversed = found.spins == "reversed"


def _spun(base: Vehicle, gathered: Sequence[_Gathered]) -> Vehicle:
    """Return the base with rotors that turn the other way round, where logs show that."""
    if not any(g.reversed for g in gathered):
        return base
    return replace(base, rotors=tuple(replace(r, spin=1 if r.spin < 0 else -1) for r in base.rotors))


def _split(flights: Sequence[FlightSignals], whole: bool) -> tuple[list[FlightSignals], list[FlightSignals]]:
    """Return what is fitted and what is held out: the last third in time of each flight, behind a guard."""
    if whole:
        return list(flights), []
    fitted, held = [], []
    for flight in flights:
        if flight.usable_time < SHORT:
            fitted.append(flight)
            continue
        begin, end = flight.spans[0][0], flight.spans[-1][1]
        cut = end - HELD_SHARE * (end - begin)
        guard = min(GUARD, 0.1 * (end - begin))
        first, last = flight.within((begin, cut - guard)), flight.within((cut, end))
        if first.usable_time < 2.0 or last.usable_time < 1.0:
            fitted.append(flight)
            continue
        fitted.append(first)
        held.append(last)
    return fitted, held


def _settled(flights: Sequence[FlightSignals], begin: StartValues) -> list[FlightSignals]:
    """Return flights without what lies within some lags of breaks in their commands, now that the lag is about known."""
    found = [flight.settled(begin.lag, begin.delay) for flight in flights]
    for flight in found:
        if not flight.spans:
            raise AirworthyError(
                f"Log {flight.name!r}: its commands break off so often that rotors, with a lag of {1e3 * begin.lag:.0f} ms, are"
                " known nowhere; log them without gaps."
            )
    return found


def _hover(flight: FlightSignals) -> float:
    """Mean command of what is usable."""
    time = flight.command.start + flight.command.period * np.arange(len(flight.command.values))
    inside = np.zeros(len(time), bool)
    for a, b in flight.spans:
        inside |= (time >= a) & (time <= b)
    return float(np.median(np.abs(flight.command.values[inside]).mean(axis=1)))


# ---- Fit ---------------------------------------------------------------------------------------------------------------------


def _fitted(
    flights: Sequence[FlightSignals],
    parameters: Parameters,
    begin: StartValues,
    told: dict[str, bool],
    known: Known,
    quick: bool,
    say: Callable[[str], None],
) -> Fit:
    turns = told["turns"] and told["inertia_xx"]
    yaw = told["turns"] and told["torque_ratio"]
    across = told["imu_tilt"] and told["turns"]
    windows = tuple(cut_windows(flight, WINDOWS_QUICK if quick else WINDOWS) for flight in flights)
    problem = FitProblem(parameters, windows, (turns, turns, yaw, across, across, True), known.izz)
    cells = begin.cells[: STARTS_QUICK if quick else STARTS]
    return refine(problem, [start_vector(parameters, begin, cell) for cell in cells], say)


def start_vector(parameters: Parameters, begin: StartValues, cell: tuple[float, float]) -> Array:
    """Return a vector at the closed form's values; what is not fitted stays at its prior."""
    theta = parameters.mean
    c1, c2 = begin.thrust
    hover = parameters.state / parameters.base.rotors[0].speed_max
    whole = c1 * hover + c2 * hover**2
    found = {
        "thrust": math.log(whole) if whole > 0.0 else math.nan,
        "thrust_linear": c1 * hover / whole if whole > 0.0 else math.nan,
        "lag": math.log(cell[0]),
        "command_delay": cell[1],
        "center_x": parameters.base.center_of_mass[0] + begin.center[0],
        "center_y": parameters.base.center_of_mass[1] + begin.center[1],
    }
    for axis, name in enumerate(("inertia_xx", "inertia_yy")):
        # The truth lies between the two regressions.
        pair = (begin.inertia[axis], begin.inertia_other[axis])
        found[name] = 0.5 * (math.log(pair[0]) + math.log(pair[1])) if min(pair) > 0.0 else math.nan
    for name, value in found.items():
        place = parameters.place(name)
        item = parameters.items[place]
        if parameters.free[place] and math.isfinite(value):
            # No start lies where its prior hardly reaches.
            theta[place] = float(np.clip(value, item.mean - 3.0 * item.sd, item.mean + 3.0 * item.sd))
    return theta


def _left_over(fit: Fit) -> float:
    """Log of the covariance that a fit leaves, summed over windows: with as many parameters, less is better."""
    total = 0.0
    for whitening, windows in zip(fit.problem.scaled(fit.theta).whitening, fit.problem.windows, strict=True):
        # Of triangular matrices; blocks that only foretell are silent, and count nothing.
        sizes = np.diagonal(whitening, axis1=1, axis2=2)
        total -= len(windows) * float(np.log(sizes[sizes > 0.0]).sum())
    return total


# ---- What is told ------------------------------------------------------------------------------------------------------------


def _table(
    fitted: Sequence[FlightSignals], held: Sequence[FlightSignals], fit: Fit, begin: StartValues, told: dict[str, bool]
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
        states = flight.command.states(plant.response)[0]
        time = flight.command.start + flight.command.period * np.arange(len(states)) + float(plant.delay[0])
        for a, b in flight.spans:
            inside = states[(time >= a) & (time <= b)]
            if inside.size:
                ends += [float(inside.min()), float(inside.max())]
    return min(ends), max(ends)


def _brackets(begin: StartValues, told: dict[str, bool]) -> list[str]:
    """Inertias whose two regressions lie apart."""
    if not told["inertia_xx"]:
        return []
    return [
        f"inertia {'xx' if axis == 0 else 'yy'} by regression lies between {begin.inertia_other[axis]:.3g} and"
        f" {begin.inertia[axis]:.3g} kg m^2 (correlation {begin.correlation[axis]:.2f})."
        for axis in (0, 1)
        if begin.bracket_width(axis) > BRACKET
    ]


def _delay_note(fit: Fit) -> list[str]:
    delay = float(fit.theta[fit.problem.parameters.place("command_delay")])
    return [f"The fit asks for a dead time of {1e3 * delay:.1f} ms; the record says 0."] if delay < 0.0 else []
