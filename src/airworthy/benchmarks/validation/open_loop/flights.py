"""A log made ready to be predicted: units checked, usable parts, motors in the vehicle's order, what feeds the rotors, poses.

What a log lacks is kept as a sentence, so that a table without a row says why it has none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from airworthy.benchmarks.validation.calibration import Calibration, calibrate, stretches
from airworthy.benchmarks.validation.logs import SAMPLES_MIN, FlightLog, flight_log
from airworthy.benchmarks.validation.windows import LogReference, reference
from airworthy.core.errors import AirworthyError
from airworthy.logs import Log, LogSegments, LogStream, RotorGeometry, Span, flight_segments, log_checks, motor_order
from airworthy.logs.checks import refuse_wrong_units, rest_noise
from airworthy.logs.motors.scale import no_flight
from airworthy.logs.motors.speeds import speed_faults
from airworthy.vehicles import Vehicle
from airworthy.vehicles.identification.agreement import refuse_orders, refuse_repeated, refuse_unlike
from airworthy.vehicles.identification.prediction.plant import slowest_lag
from airworthy.vehicles.identification.prediction.signals import (
    FlightSignals,
    Readings,
    flight_signals,
    mapped_commands,
    refuse_rates,
)
from airworthy.vehicles.identification.supply import refuse_supply

__all__ = ["Feed", "ReadyFlight", "ready_flights"]

Feed = Literal["auto", "speeds", "commands"]
UNITS_WRONG = 5.0
"""Ours: a gyro that turns so many times as fast as attitudes, or as slow, is in other units; nearer ones are another frame."""
WRONG = "Nothing is predicted from wrong units."
POSE_TIME = 3.0
"""Poses of less time than this are no reference [s]."""
LONGEST = 600.0
"""Ours: so much usable flight is judged; of longer logs the first of it [s]."""
ORDERED_MAX = 6
"""Motors whose orders are tried; of more there are too many."""


@dataclass(frozen=True, eq=False)
class ReadyFlight:
    """One log as predictions need it."""

    name: str
    signals: FlightSignals
    """Gyro, specific force, commands in the vehicle's order, usable spans."""
    segments: LogSegments
    speeds: Readings | None
    """Measured rotor speeds in the vehicle's order [rad/s]; None: rotors are fed with commands."""
    poses: LogReference | None
    """States by poses and gyro; None: the log has no poses that tell them."""
    force: bool
    """Whether specific force was measured."""
    order: tuple[int, ...] | None
    """Which column of the log each rotor is; None: the log does not tell it, and the vehicle's is taken."""
    missing: tuple[str, ...]
    """What the log lacks, and what is not judged for it, a sentence each."""
    notes: tuple[str, ...]
    """What was found on the way, a sentence each."""


def ready_flights(
    logs: Sequence[Log],
    vehicle: Vehicle,
    *,
    use: Sequence[tuple[float, float]] = (),
    skip: Sequence[tuple[float, float]] = (),
    feed: Feed = "auto",
    pose_rate: float | None = None,
) -> list[ReadyFlight]:
    """Check logs against a vehicle, and make them ready.

    Args:
        logs: Flights of one vehicle, of any format; markers of a capture system sit where they sat in all of them.
        vehicle: That is to explain them.
        use: Only these parts, start and stop [s]; empty: all.
        skip: Not these parts [s].
        feed: What the rotors follow: measured speeds, commands, or speeds where they were measured and the vehicle knows any.
        pose_rate: True rate of the poses [Hz], by which a log's clock is put right; None: it is right.

    Raises:
        AirworthyError: A log cannot be predicted with this vehicle, or the logs are not alike; one sentence.
    """
    refuse_repeated(logs)
    ready = [_ready(log, vehicle, use, skip, feed) for log in logs]
    if len({flight.speeds is not None for flight in ready}) > 1:
        raise AirworthyError(
            "Some logs have measured rotor speeds and others have not: judge them apart, or feed all of them with commands."
        )
    refuse_orders([flight.name for flight in ready], [flight.order for flight in ready])
    if all(flight.force for flight in ready):
        refuse_unlike([flight.signals for flight in ready])
    posed = [_poses(log, pose_rate) for log in logs]
    found = [pose for pose in posed if not isinstance(pose, str)]
    if len(found) < len(posed):
        return [_without_poses(flight, pose) for flight, pose in zip(ready, posed, strict=True)]
    tied = calibrate(found)
    return [_with_poses(f, log, p, c) for f, log, p, c in zip(ready, logs, found, tied, strict=True)]


def _ready(
    log: Log, vehicle: Vehicle, use: Sequence[tuple[float, float]], skip: Sequence[tuple[float, float]], feed: Feed
) -> ReadyFlight:
    """One log without its poses."""
    if not log.has("gyro"):
        raise AirworthyError(f"Log {log.name!r} has no gyro: a prediction starts from a measured body rate.")
    _refuse_units(log)
    notes: list[str] = _fitted_to(log, vehicle)
    missing: list[str] = []
    segments = flight_segments(log, use, skip)
    fed = _speeds(log, segments, vehicle, feed, notes)
    log = _commanded(log, vehicle, fed)
    _refuse_count(log, vehicle)
    # Speeds that stand for commands tell flight, too.
    segments = _shortened(flight_segments(log, use, skip), notes)
    if not segments.usable:
        raise AirworthyError(f"Log {log.name!r}: {no_flight(log)}.")
    log = _cut(log, segments)
    force = log.has("accelerometer")
    if not force:
        missing.append("It has no accelerometer: specific force is not judged.")
        gyro = log.stream("gyro")
        log = replace(log, streams=(*log.streams, LogStream("accelerometer", gyro.time, np.zeros_like(gyro.values))))
    rest = rest_noise(log) if force else None
    signals = flight_signals(log, segments, None if rest is None else rest.gyro_bias)
    refuse_rates(log, signals)
    order = _order(log, segments, vehicle, notes)
    if order is not None and order != tuple(range(len(order))):
        signals = signals.ordered(order)
        fed = None if fed is None else Readings(fed.time, fed.values[:, list(order)])
    if fed is None:
        signals = _supplied(mapped_commands(_settled(signals, vehicle, notes), vehicle), vehicle, notes)
    return ReadyFlight(log.name, signals, segments, fed, None, force, order, tuple(missing), tuple(notes))


def _supplied(signals: FlightSignals, vehicle: Vehicle, notes: list[str]) -> FlightSignals:
    """Let commands act as the supply lets them, where the vehicle knows how and the log has its voltage."""
    if vehicle.command_sag is None:
        return signals
    power, nominal = vehicle.command_sag
    if signals.supply is None:
        notes.append(f"Commands of {vehicle.name} go with the supply, whose voltage the log lacks: {nominal:g} V are taken.")
        return signals
    refuse_supply(signals, vehicle)
    return replace(signals, command=signals.supplied(power, nominal))


def _settled(signals: FlightSignals, vehicle: Vehicle, notes: list[str]) -> FlightSignals:
    """Leave out where the states of rotors that follow commands are not known yet, as `identify` does."""
    found = signals.settled(slowest_lag(vehicle), vehicle.command_delay)
    notes += signals.left_out(found)
    if not found.spans:
        raise AirworthyError(
            f"Log {signals.name!r}: its commands break off so often that rotors of {vehicle.name}, with their lag, are known"
            " nowhere; log them without gaps."
        )
    return found


def _shortened(segments: LogSegments, notes: list[str]) -> LogSegments:
    """Return no more usable flight than is judged."""
    if segments.usable_time <= LONGEST:
        return segments
    kept, left = [], LONGEST
    for span in segments.usable:
        if left < 1.0:
            break
        kept.append(replace(span, stop=min(span.stop, span.start + left)))
        left -= kept[-1].stop - kept[-1].start
    notes.append(f"The first {LONGEST:g} of {segments.usable_time:.0f} usable seconds are judged; --use chooses others.")
    return replace(segments, usable=tuple(kept))


def _cut(log: Log, segments: LogSegments) -> Log:
    """Return a log without what lies behind its usable parts; a rest before them stays."""
    stop = segments.usable[-1].stop + 1.0
    return log if log.duration <= stop else replace(log, streams=tuple(s.between(-np.inf, stop) for s in log.streams))


def _fitted_to(log: Log, vehicle: Vehicle) -> list[str]:
    """Say that a vehicle was fitted to this very log, where its sources name it."""
    tag = f"{log.name}[{log.source.sha256[:8]}]"
    found = (re.search(re.escape(tag) + r" ([-0-9 ]+(?:and \d+ more )?s)", text) for text in vehicle.sources.values())
    parts = next((match[1] for match in found if match is not None), "")
    return [f"The vehicle was fitted to {parts} of this log: there its errors are those of a fit."] if parts else []


# ---- Refusals ----------------------------------------------------------------------------------------------------------------


def _refuse_units(log: Log) -> None:
    checks = log_checks(log)
    refuse_wrong_units(log, WRONG, checks)
    for check in checks:
        turned = check.name.startswith("gyro against") and not 1.0 / UNITS_WRONG < check.value < UNITS_WRONG
        if check.passed is False and turned and check.blamed != "attitude":
            raise AirworthyError(f"Log {log.name!r}: {check.said} {WRONG}")
        if check.passed is False and check.name == "stamps" and "Hz" in check.said:
            raise AirworthyError(f"Log {log.name!r}: {check.said}")


def _refuse_count(log: Log, vehicle: Vehicle) -> None:
    stream = log.stream("motor_command")
    count = stream.values.shape[1]
    if count != vehicle.rotor_count:
        raise AirworthyError(
            f"Log {log.name!r} is of {count} motors, and {vehicle.name} has {vehicle.rotor_count} rotors; name the vehicle that"
            " flew it."
        )
    if not np.any(np.nan_to_num(stream.values)):
        raise AirworthyError(f"Log {log.name!r}: every motor command is 0, so nothing flew by them.")


# ---- What feeds the rotors ---------------------------------------------------------------------------------------------------


def _speeds(log: Log, segments: LogSegments, vehicle: Vehicle, feed: Feed, notes: list[str]) -> Readings | None:
    """Return measured rotor speeds where they are to be followed."""
    if feed == "commands":
        return None
    reason = _no_speeds(log, segments, vehicle)
    if not reason:
        stream = log.stream("motor_speed")
        good = np.isfinite(stream.values).all(axis=1) & np.isfinite(stream.time)
        time, values = stream.time[good], stream.values[good]
        onward = np.concatenate([[True], time[1:] > np.maximum.accumulate(time)[:-1]])
        notes.append("Rotors turn as they were measured: motors and their lags are not judged.")
        return Readings(time[onward], np.abs(values[onward]))
    if feed == "speeds":
        raise AirworthyError(f"Log {log.name!r} cannot feed rotor speeds: {reason}.")
    if log.has("motor_command"):
        how = "a command of 1 being the vehicle's largest rotor state"
        how = how if vehicle.command_map is None else "through the vehicle's map"
        notes.append(f"Rotors follow the logged commands, {how}: {reason}.")
    return None


def _no_speeds(log: Log, segments: LogSegments, vehicle: Vehicle) -> str:
    """Return why measured speeds cannot be followed; empty where they can."""
    if not log.has("motor_speed"):
        return "no rotor speed was measured"
    stream = log.stream("motor_speed")
    if stream.values.shape[1] != vehicle.rotor_count:
        return f"it has speeds of {stream.values.shape[1]} motors, and {vehicle.name} has {vehicle.rotor_count} rotors"
    if vehicle.motor_state != "speed":
        return f"the rotor states of {vehicle.name} are thrusts"
    if vehicle.sources.get("rotors.speed_max", "").startswith("gauge"):
        return f"the rotor states of {vehicle.name} have a nominal scale"
    faults = speed_faults(log, segments)
    if faults:
        return faults[0]
    return "" if np.isfinite(stream.values).all(axis=1).sum() > 100 else "too few speeds were measured"


def _commanded(log: Log, vehicle: Vehicle, fed: Readings | None) -> Log:
    """Return a log with commands: of one without, measured speeds stand for them."""
    if log.has("motor_command"):
        if fed is None and vehicle.motor_state != "speed":
            raise AirworthyError(
                f"The rotor states of {vehicle.name} are thrusts, and the commands of a log are fractions of speed: no command"
                " of it says a thrust."
            )
        return log
    if fed is None:
        raise AirworthyError(
            f"Log {log.name!r} holds neither motor commands nor measured rotor speeds: it tells noise of sensors, time offsets"
            " and motion, but nothing that a vehicle could explain."
        )
    full = np.array([rotor.speed_max for rotor in vehicle.rotors])
    return replace(log, streams=(*log.streams, LogStream("motor_command", fed.time, fed.values / full, stamp="held")))


def _order(log: Log, segments: LogSegments, vehicle: Vehicle, notes: list[str]) -> tuple[int, ...] | None:
    """Return which column belongs to which rotor, where the log tells it."""
    if vehicle.rotor_count > ORDERED_MAX:
        notes.append(f"The order of {vehicle.rotor_count} motors is taken as the vehicle's; up to {ORDERED_MAX} are tried.")
        return None
    arms = np.array([rotor.position for rotor in vehicle.rotors]) - np.array(vehicle.center_of_mass)
    axes = np.array([rotor.axis for rotor in vehicle.rotors])
    # The reaction torque of the record turns the vehicle against the rotor.
    spins = -np.array([float(rotor.spin) for rotor in vehicle.rotors])
    found = motor_order(log, segments, RotorGeometry(arms, axes, spins, np.zeros(len(spins))))
    if found is None or not found.accepted:
        notes.append("The order of motors and their spins are taken as the vehicle's: the log does not tell them.")
        return None
    notes.append(found.sentence())
    return tuple(found.order)


# ---- Poses -------------------------------------------------------------------------------------------------------------------


def _poses(log: Log, pose_rate: float | None) -> FlightLog | str:
    """Return a log with its poses; where they tell no states, why not."""
    label = pose_label(log)
    if label is None:
        return "It has no poses (attitude and position of one source)"
    if not log.has("accelerometer"):
        return "Without an accelerometer its poses are not tied to the sensor"
    # Calibration asks for every half second of it: of hours, a part tells as much.
    stop = log.stream(f"attitude:{label}" if label else "attitude").time[0] + LONGEST
    made = flight_log(replace(log, streams=tuple(s.between(-np.inf, stop) for s in log.streams)), pose_rate, label)
    if len(made.pose_time) < SAMPLES_MIN or made.pose_time[-1] - made.pose_time[0] < POSE_TIME or not stretches(made):
        return "Its poses are too few or too slow to tell states"
    return made


def _without_poses(flight: ReadyFlight, reason: FlightLog | str) -> ReadyFlight:
    reason = reason if isinstance(reason, str) else "It has poses, and others of the logs have none"
    said = f"{reason}: attitude, velocity and position are not judged, and air forces that depend on velocity are left out."
    return replace(flight, missing=(*flight.missing, said))


def _with_poses(flight: ReadyFlight, log: Log, poses: FlightLog, calibration: Calibration) -> ReadyFlight:
    notes, label, scale = list(flight.notes), pose_label(log), poses.clock_scale
    if label != "capture":
        notes.append(f"Poses are {label or 'the log'}'s own: errors of its estimator count as the vehicle's.")
    made = replace(flight, poses=reference(poses, calibration))
    if scale == 1.0:
        return replace(made, notes=tuple(notes))
    notes.append(f"A second of its clock lasts {scale:.4f} s, by the rate of its poses; times are put right by that.")
    return replace(
        made,
        notes=tuple(notes),
        signals=_rescaled(flight.signals, scale),
        speeds=None if flight.speeds is None else _times(flight.speeds, scale),
        segments=_stretched(flight.segments, scale),
    )


def pose_label(log: Log) -> str | None:
    """Return the label of the streams that tell poses: a capture system's before an estimator's; None without any."""
    found = [s.label for s in log.of_kind("attitude") if any(p.label == s.label for p in log.of_kind("position"))]
    if not found:
        return None
    return "capture" if "capture" in found else found[0]


def _rescaled(signals: FlightSignals, scale: float) -> FlightSignals:
    command = signals.command
    return replace(
        signals,
        command=replace(command, start=scale * command.start, period=scale * command.period),
        spans=tuple((scale * a, scale * b) for a, b in signals.spans),
        gyro=_times(signals.gyro, scale),
        force=_times(signals.force, scale),
        commanded=_times(signals.commanded, scale),
    )


def _times(readings: Readings, scale: float) -> Readings:
    return Readings(scale * readings.time, readings.values)


def _stretched(segments: LogSegments, scale: float) -> LogSegments:
    def of(spans: Sequence[Span]) -> tuple[Span, ...]:
        return tuple(replace(span, start=scale * span.start, stop=scale * span.stop) for span in spans)

    return replace(segments, flown=of(segments.flown), usable=of(segments.usable), rejected=of(segments.rejected))
