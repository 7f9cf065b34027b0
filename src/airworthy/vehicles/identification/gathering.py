"""What a fit is given of each log: checks, usable parts, signals, the order of its motors, rotor speeds where they serve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.logs import Log, LogFinding, LogSegments, flight_segments, log_checks, log_findings
from airworthy.logs.checks import off_at_rest, refuse_wrong_units, rest_noise
from airworthy.logs.excitation import CAN
from airworthy.logs.gravity import GRAVITY_WITHOUT_REST
from airworthy.logs.motors.frozen import frozen_parts, overlap, stuck_motors
from airworthy.logs.motors.scale import no_flight
from airworthy.logs.segments import FROZEN, FROZEN_SENSOR, STUCK, Span
from airworthy.vehicles.identification.known import Known, believed, with_mass
from airworthy.vehicles.identification.motors.measured_speeds import GAIN_MOST, MotorFit, fit_motors
from airworthy.vehicles.identification.motors.wiring import wiring_of
from airworthy.vehicles.identification.prediction.signals import (
    FlightSignals,
    Readings,
    flight_signals,
    measured_speeds,
    refuse_rates,
)
from airworthy.vehicles.record import RotorResponse, Vehicle

__all__ = [
    "Feed",
    "Gathered",
    "Part",
    "base_of",
    "findings_within",
    "followed_speeds",
    "held_out_notes",
    "hover_of",
    "ordered_alike",
    "settled_by",
    "split",
    "spun",
    "with_motors",
]

Part = tuple[float, float]
Feed = Literal["auto", "speeds", "commands"]
HELD_SHARE = 1.0 / 3.0
"""Last part in time of each flight that no fit sees."""
GUARD = 5.0
"""Between what is fitted and what is held out [s]; of short flights a tenth of them."""
SHORT = 6.0
"""Usable seconds under which a flight is fitted whole, and nothing of it held out."""
SPEED_RATE_MIN = 100.0
"""Ours: slower speeds are not followed: a motor's lag is a few of their periods [Hz]."""


def base_of(logs: Sequence[Log], known: Known) -> tuple[Vehicle, tuple[str, ...]]:
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


def _refuse_frozen(log: Log, segments: LogSegments) -> list[str]:
    """Refuse commands that stand still for most of the flight: no pilot holds them so, and nothing of them tells a vehicle.

    Returns:
        What was left out where they stand still for less, a sentence.

    Raises:
        AirworthyError: With what they are.
    """
    stream, parts = log.stream("motor_command"), [(part.start, part.stop) for part in segments.usable]
    within = np.logical_or.reduce([(stream.time >= a) & (stream.time <= b) for a, b in parts])
    values = np.nan_to_num(stream.values[within])
    kept = overlap(parts, frozen_parts(log))
    left = [part.stop - part.start for part in segments.rejected if part.reason == FROZEN]
    alone = [part for part in segments.rejected if part.reason.startswith(STUCK)]
    flown = segments.usable_time + sum(left) + sum(part.stop - part.start for part in alone)
    constant = len(values) > 1 and np.ptp(values, axis=0).max() == 0.0
    if constant or kept + sum(left) > 0.5 * flown:
        if constant and not left:
            said = f"never change ({', '.join(f'{100.0 * value:.3g} %' for value in values[0])})"
        else:
            said = f"do not change for {kept + sum(left):.0f} s of them while it turns"
        raise AirworthyError(
            f"Log {log.name!r} flies {flown:.0f} s with motor commands that {said}: they are"
            " frozen, or another column was taken for them; name those that were sent (airworthy logs map)."
        )
    if stuck := stuck_motors(log, parts):
        raise AirworthyError(
            f"Log {log.name!r}: {', '.join(stuck)} ({segments.usable_time:.0f} s of flight, while others change): it did not"
            " run, or its column is another; name the one that was sent (airworthy logs map)."
        )
    notes = []
    if left:
        often = f"{len(left)} times" if len(left) > 1 else "once"
        notes.append(f"{log.name}: motor commands freeze {often} while it turns: {sum(left):.2g} s of flight are left out.")
    for reason in dict.fromkeys(part.reason for part in alone):
        own = [part for part in alone if part.reason == reason]
        said = f"commands of motor {reason.removeprefix(STUCK)} stand still {_when(own)}, while others change"
        notes.append(f"{log.name}: {said}: {_seconds(own):.2g} s of flight are left out.")
    for kind in ("gyro", "accelerometer"):
        own = [part for part in segments.rejected if part.reason == FROZEN_SENSOR + kind]
        if own:
            said = f"{log.name}: the {kind} freezes {_when(own)}"
            notes.append(f"{said}: {_seconds(own):.2g} s of flight are left out.")
    return notes


def _when(parts: Sequence[Span]) -> str:
    """Return from when to when, the first three."""
    said = ", ".join(f"from {part.start:.1f} to {part.stop:.1f} s" for part in parts[:3])
    return said + (f" and {len(parts) - 3} times more" if len(parts) > 3 else "")


def _seconds(parts: Sequence[Span]) -> float:
    return sum(part.stop - part.start for part in parts)


class Gathered:
    """One log: checks, parts, signals, order of its motors."""

    def __init__(self, log: Log, base: Vehicle, use: Sequence[Part], skip: Sequence[Part], order: Sequence[int] = ()) -> None:
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
        self.checks = log_checks(log)
        refuse_wrong_units(log, "Nothing is fitted to wrong units.", self.checks)
        self.segments: LogSegments = flight_segments(log, use, skip)
        if not self.segments.usable:
            raise AirworthyError(f"Log {log.name!r}: {no_flight(log)}.")
        frozen = _refuse_frozen(log, self.segments)
        self.took_off = self.segments.flown[0].start
        self.findings = log_findings(log, self.segments)
        rest = rest_noise(log)
        self.rested = rest is not None
        self.signals: FlightSignals = flight_signals(log, self.segments, None if rest is None else rest.gyro_bias)
        refuse_rates(log, self.signals)
        self.notes: list[str] = frozen
        # Thrust over mass is no better than the accelerometer's scale: where nothing tells it, that is said.
        scale = [c for c in self.checks if c.name == GRAVITY_WITHOUT_REST and c.passed is None]
        self.scaled: bool = not scale
        """Whether the accelerometer's scale is told."""
        self.notes += [f"{log.name}: {c.said}" for c in (*scale, *off_at_rest(self.checks))]
        self.unfollowed = ""
        self._speeds(log, base)
        turns = any(f.parameter == "inertia xx, yy" and f.verdict == "can tell" for f in self.findings)
        wiring = wiring_of(log, self.segments, base, turns, order)
        self.order, self.reversed, self.undecided = wiring.order, wiring.reversed, wiring.undecided
        if wiring.note:
            self.notes.append(f"{log.name}: {wiring.note}")
        if wiring.order is not None:
            self.signals = self.signals.ordered(wiring.order)
        if log.has("voltage") and float(np.ptp(np.nan_to_num(log.stream("voltage").values))) == 0.0:
            self.notes.append(f"{log.name}: the voltage is constant, so it was not measured, and no sag is told.")

    def _speeds(self, log: Log, base: Vehicle) -> None:
        """Take measured rotor speeds, where they can be followed."""
        found = measured_speeds(log, self.segments, base.rotor_count)
        if isinstance(found, Readings) and found.period > 1.0 / SPEED_RATE_MIN:
            found = f"speeds come at {1.0 / found.period:.0f} Hz, and {SPEED_RATE_MIN:.0f} Hz are needed"
        if isinstance(found, Readings):
            self.signals = replace(self.signals, speeds=found)
        else:
            self.unfollowed = found or "no rotor speed was measured"
            if found:
                self.notes.append(f"{log.name}: measured rotor speeds are not followed: {found}.")

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


def ordered_alike(gathered: Sequence[Gathered]) -> None:
    """Take the order of motors of a log that tells it for those that leave it undecided.

    Args:
        gathered: Logs of one vehicle.

    Raises:
        AirworthyError: A log leaves it undecided, and nothing tells it.
    """
    told = next((g for g in gathered if g.order is not None), None)
    for g in gathered:
        if not g.undecided:
            continue
        if told is None or told.order is None:
            raise AirworthyError(f"Log {g.signals.name!r}: {g.undecided} Or give --order, the column of each rotor.")
        g.signals, g.order, g.reversed = g.signals.ordered(told.order), told.order, told.reversed
        g.notes.append(f"{g.signals.name}: the order of motors is that of {told.signals.name}; its own turns do not decide it.")


def spun(base: Vehicle, gathered: Sequence[Gathered]) -> Vehicle:
    """Return the base with rotors that turn the other way round, where logs show that."""
    if not any(g.reversed for g in gathered):
        return base
    return replace(base, rotors=tuple(replace(r, spin=1 if r.spin < 0 else -1) for r in base.rotors))


def followed_speeds(gathered: Sequence[Gathered], feed: Feed) -> list[str]:
    """Let fits follow measured speeds where every log has good ones, else commands in all of them; return what was decided.

    Args:
        gathered: Logs.
        feed: What is asked for.

    Raises:
        AirworthyError: Speeds are asked for, and a log has none that can be followed.
    """
    short = [g for g in gathered if g.signals.speeds is None]
    if feed == "speeds" and short:
        raise AirworthyError(f"Log {short[0].signals.name!r} cannot feed rotor speeds: {short[0].unfollowed}.")
    if feed != "commands" and not short:
        return []
    notes = []
    if feed == "auto" and len(short) < len(gathered):
        names = ", ".join(g.signals.name for g in short)
        notes.append(f"Rotor speeds of some logs are not followed, since {names} tell none: a fit follows one or the other.")
    for g in gathered:
        g.signals = replace(g.signals, speeds=None)
    return notes


def with_motors(
    base: Vehicle, fitted: Sequence[FlightSignals], held: Sequence[FlightSignals]
) -> tuple[Vehicle, list[FlightSignals], list[FlightSignals], MotorFit | str]:
    """Fit motors to measured speeds, and return the vehicle and its flights in terms of real rotor speeds.

    Args:
        base: Whose scale of rotor states may be nominal.
        fitted: With speeds.
        held: What judges, which follows commands.

    Returns:
        Vehicle, flights that are fitted and held out, their commands mapped to steady states, and the motors; or why the
        speeds are not followed, with the flights as they were but for their speeds.
    """
    motors = fit_motors(fitted, float(np.mean([hover_of(flight) for flight in fitted])))
    middle = float(np.median(motors.gains))
    odd = [k + 1 for k, gain in enumerate(motors.gains) if not middle / GAIN_MOST < gain < middle * GAIN_MOST]
    if odd:
        said = (
            f"speed over command of motor {', '.join(map(str, odd))} is {motors.gains[odd[0] - 1] / middle:.2g} of the others'"
        )
        return base, [_blind(f) for f in fitted], [_blind(f) for f in held], said
    rise = RotorResponse.first_order(motors.lag, motors.lag * motors.ratio)
    rotors = tuple(replace(r, speed_max=motors.full, response=rise) for r in base.rotors)
    extra = {key: value for key, value in base.extra.items() if key != "gauge"}
    base = replace(base, rotors=rotors, extra=extra, command_map=motors.command_map)
    return base, [f.mapped(motors.offset) for f in fitted], [_blind(f).mapped(motors.offset) for f in held], motors


def _blind(flight: FlightSignals) -> FlightSignals:
    return replace(flight, speeds=None)


def split(flights: Sequence[FlightSignals], whole: bool) -> tuple[list[FlightSignals], list[FlightSignals]]:
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


def findings_within(log: Log, segments: LogSegments, flight: FlightSignals) -> tuple[LogFinding, ...]:
    """Say of each parameter whether the part of a log that is fitted can tell it: what is held out shows nothing to a fit.

    Args:
        log: The log.
        segments: Of all of it.
        flight: What of it is fitted.
    """
    return log_findings(log, replace(segments, usable=tuple(Span(a, b) for a, b in flight.spans)), "what is fitted")


def held_out_notes(gathered: Sequence[Gathered], findings: Sequence[Sequence[LogFinding]]) -> list[str]:
    """Say what flights tell by their parts that are held out alone, a sentence for each flight.

    Args:
        gathered: Logs.
        findings: Of what is fitted of each of them.
    """
    notes = []
    for g, within in zip(gathered, findings, strict=True):
        told = {f.parameter for f in within if f.verdict == CAN}
        lost = [f.parameter for f in g.findings if f.verdict == CAN and f.parameter not in told]
        if lost:
            notes.append(
                f"{g.signals.name}: {', '.join(lost)} would be told with what is held out of it, which no fit sees; to fit"
                " all of it hold out another flight (--holdout)."
            )
    return notes


def settled_by(flights: Sequence[FlightSignals], lag: float, delay: float) -> list[FlightSignals]:
    """Return flights without what lies within some lags of breaks in their commands, now that the lag is about known."""
    found = [flight.settled(lag, delay) for flight in flights]
    for flight in found:
        if not flight.spans:
            raise AirworthyError(
                f"Log {flight.name!r}: its commands break off so often that rotors, with a lag of {1e3 * lag:.0f} ms, are"
                " known nowhere; log them without gaps."
            )
    return found


def hover_of(flight: FlightSignals) -> float:
    """Return the mean command of what is usable."""
    time = flight.command.start + flight.command.period * np.arange(len(flight.command.values))
    inside = np.zeros(len(time), bool)
    for a, b in flight.spans:
        inside |= (time >= a) & (time <= b)
    return float(np.median(np.abs(flight.command.values[inside]).mean(axis=1)))
