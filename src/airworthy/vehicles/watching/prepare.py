"""What of a log is watched: its checks, usable parts, and motors in the order of the vehicle's rotors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.logs import Log, RotorGeometry, flight_segments, motor_order
from airworthy.logs.checks import refuse_wrong_units, rest_noise
from airworthy.logs.motors.scale import no_flight
from airworthy.vehicles.identification.prediction.plant import slowest_lag
from airworthy.vehicles.identification.prediction.signals import FlightSignals, flight_signals, mapped_commands
from airworthy.vehicles.identification.supply import refuse_supply
from airworthy.vehicles.record import Vehicle

__all__ = ["Prepared", "prepared"]

Part = tuple[float, float]
SAG = 0.02
"""Share by which a voltage must have fallen to be told beside thrust."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """A log that can be watched."""

    log: Log
    signals: FlightSignals
    took_off: float
    """[s]"""
    notes: tuple[str, ...]

    def voltage_fall(self, time: float) -> float | None:
        """Return the share by which the voltage has fallen from before a time to the last seconds; None if unknown."""
        if not self.log.has("voltage"):
            return None
        stream = self.log.stream("voltage")
        values = stream.values[:, 0]
        good = np.isfinite(values) & (values > 0.0)
        before, after = good & (stream.time < time), good & (stream.time > stream.time[-1] - 5.0)
        # A voltage that never changes was not measured.
        if not before.any() or not after.any() or float(np.ptp(values[good])) == 0.0:
            return None
        return float(1.0 - np.median(values[after]) / np.median(values[before]))


def prepared(log: Log, vehicle: Vehicle, use: Sequence[Part] = (), skip: Sequence[Part] = ()) -> Prepared:
    """Check a log and return what is watched of it.

    Args:
        log: With motor commands, gyro and accelerometer.
        vehicle: Who flew it.
        use: Only these parts [s].
        skip: Not these parts [s].

    Raises:
        AirworthyError: It cannot be watched; one sentence.
    """
    if not log.has("motor_command"):
        raise AirworthyError(f"Log {log.name!r} holds no motor commands: without them nothing tells what the vehicle answered.")
    commands = log.stream("motor_command").values
    if commands.shape[1] != vehicle.rotor_count:
        raise AirworthyError(
            f"Log {log.name!r} commands {commands.shape[1]} motors, and {vehicle.name} has {vehicle.rotor_count} rotors; name"
            " the vehicle that flew it."
        )
    if not np.any(np.nan_to_num(commands)):
        raise AirworthyError(f"Log {log.name!r}: every motor command is 0, so nothing flew by them.")
    refuse_wrong_units(log, "Nothing is told of wrong units.")
    segments = flight_segments(log, use, skip)
    if not segments.usable:
        raise AirworthyError(f"Log {log.name!r}: {no_flight(log)}.")
    rest = rest_noise(log)
    signals = flight_signals(log, segments, None if rest is None else rest.gyro_bias)
    refuse_supply(signals, vehicle)
    notes = [] if rest is not None else [f"{log.name}: no rest before the flight, so the gyro's bias is taken as 0."]
    if vehicle.rotor_count <= 6:
        spins = -np.array([float(rotor.spin) for rotor in vehicle.rotors])
        arms = np.array([rotor.position for rotor in vehicle.rotors]) - np.array(vehicle.center_of_mass)
        rotors = RotorGeometry(arms, np.array([r.axis for r in vehicle.rotors]), spins, np.zeros(len(spins)))
        found = motor_order(log, segments, rotors)
        if found is not None and found.accepted and found.told:
            if found.spins == "reversed":
                raise AirworthyError(
                    f"Log {log.name!r}: its rotors turn the other way round than {vehicle.name} says; name the vehicle that"
                    " flew it."
                )
            signals = signals.ordered(found.order)
            if found.order != tuple(range(len(spins))):
                columns = " ".join(str(k + 1) for k in found.order)
                other = f" {found.mirrored()}" if found.turned_axes else ""
                notes.append(f"{log.name}: rotors 1 to {len(spins)} are its columns {columns}.{other}")
        else:
            notes.append(f"{log.name}: the order of motors is taken as the vehicle's; too few turns tell it.")
    settled = signals.settled(slowest_lag(vehicle), vehicle.command_delay)
    notes += [f"{log.name}: {said}" for said in signals.left_out(settled)]
    return Prepared(log, mapped_commands(settled, vehicle), segments.flown[0].start, tuple(notes))
