"""Signals of a log as a fit reads them: commands that are held, and means of sensors about any moment, each at its own stamps.

Nothing is resampled to a common rate. Commands live on their own even lattice, where a rotor's response is exact; a state
between two stamps, or at a dead time before now, follows in closed form, so that it is continuous in the dead time (a held
command sampled at t - d would be a staircase in d, on which no Gauss-Newton step moves: specification identify, 13.1).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.logs import Log, LogSegments, LogStream
from airworthy.logs.excitation import SUPPLY_WIDTH
from airworthy.logs.motors.speeds import speed_faults
from airworthy.logs.quality import GAP_PERIODS
from airworthy.vehicles.identification.prediction.held_command import HeldCommand
from airworthy.vehicles.record import Vehicle

__all__ = [
    "FlightSignals",
    "HeldCommand",
    "Readings",
    "flight_signals",
    "mapped_commands",
    "measured_speeds",
    "readings_of",
    "refuse_rates",
]

SAMPLES_MIN = 100
"""Fewer of a stream tell nothing."""
LATTICE_MAX = 40_000_000
"""Steps of the lattice of commands: two hours at 5 kHz; a few damaged stamps must not ask for more memory than that."""


LEAD = 3.0
"""Of the commands before what is used of a flight, so much is kept: six lags of slow rotors [s]."""
RATE_MAX = 75.0
"""Ours: gyros of flight controllers end at 35 rad/s (2,000 deg/s), some at 70; larger numbers are deg/s [rad/s]."""
LATTICE = 0.002
"""Period of the lattice of commands that come faster [s]."""
SUPPLY_SAMPLES, SUPPLY_LEAST = 10, 0.3
"""Fewer voltages tell nothing; less of the nominal one is a reading that dropped out."""
SETTLE_LAGS = 5.0
"""Lags behind a break in the commands after which rotor states are known to 0.7 % of what they were wrong by."""


@dataclass(frozen=True, eq=False)
class Readings:
    """A sensor's samples at their own stamps."""

    time: Array
    """[s], ascending, (n,)."""
    values: Array
    """(n, k)."""

    @cached_property
    def integral(self) -> Array:
        """Integral from the first sample, by the trapezoidal rule, (n, k)."""
        steps = 0.5 * (self.values[1:] + self.values[:-1]) * np.diff(self.time)[:, None]
        return np.concatenate([np.zeros((1, self.values.shape[1])), np.cumsum(steps, axis=0)])

    @cached_property
    def period(self) -> float:
        """Median of the differences of stamps [s]."""
        return float(np.median(np.diff(self.time)))

    def mean(self, time: Array, width: float) -> Array:
        """Return means over intervals, (..., k).

        Args:
            time: Middle of each interval [s], (...).
            width: Of the intervals [s]; at least a period of the sensor is taken.
        """
        width = max(width, self.period)
        flat = np.asarray(time).ravel()
        ends = [self._until(flat + half * width) for half in (0.5, -0.5)]
        return ((ends[0] - ends[1]) / width).reshape(*np.shape(time), self.values.shape[1])

    def _until(self, time: Array) -> Array:
        index = np.clip(np.searchsorted(self.time, time) - 1, 0, len(self.time) - 2)
        share = np.clip((time - self.time[index]) / (self.time[index + 1] - self.time[index]), 0.0, 1.0)[:, None]
        return self.integral[index] * (1.0 - share) + self.integral[index + 1] * share


@dataclass(frozen=True, eq=False)
class FlightSignals:
    """What a vehicle is fitted to of one flight."""

    name: str
    command: HeldCommand
    gyro: Readings
    """[rad/s], the bias at rest taken off where there was a rest."""
    force: Readings
    """Specific force [m/s^2]."""
    commanded: Readings
    """The commands at their own stamps, as logged, (n, rotors)."""
    spans: tuple[tuple[float, float], ...]
    """Parts that may be used, from and to [s]."""
    breaks: tuple[float, ...] = ()
    """Where commands begin anew after some that nobody knows: the first one of a log that starts in the air, those behind gaps
    and behind where the clock went back [s]. Rotor states are guessed there, and right some lags later."""
    speeds: Readings | None = None
    """Measured rotor speeds [rad/s], which a fit follows in the place of commands; None: none are to be followed."""
    felt: Readings | None = None
    """Specific force as it was read, where `force` is without the drag that was found; None: `force` is."""
    supply: Readings | None = None
    """Voltage of the supply [V], (n, 1); None: it was not measured."""

    @property
    def usable_time(self) -> float:
        """[s]"""
        return sum(stop - start for start, stop in self.spans)

    def within(self, *parts: tuple[float, float]) -> FlightSignals:
        """Return the same with what of its spans lies in given parts [s]."""
        cut = [(max(a, c), min(b, d)) for a, b in self.spans for c, d in parts]
        spans = tuple((a, b) for a, b in cut if b > a)
        command = self.command.between(spans[0][0] - LEAD, spans[-1][1]) if spans else self.command
        return replace(self, command=command, spans=spans)

    def mapped(self, offset: float) -> FlightSignals:
        """Return the same with commands as steady rotor states, fractions of that at full command.

        Args:
            offset: Steady state just above a command of 0, over that at full command; a command of 0 is a motor that stands.
        """
        return replace(self, command=self.command.mapped(offset))

    def supplied(self, power: float, nominal: float) -> HeldCommand:
        """Return commands as the supply lets them act: times a power of its voltage over a nominal one.

        Args:
            power: Exponent; 0: the voltage plays no part.
            nominal: Voltage at which a command acts as it is [V].
        """
        if self.supply is None or power == 0.0:
            return self.command
        # Before the first and behind the last voltage these hold.
        first, last = float(self.supply.time[0]), float(self.supply.time[-1])
        half = 0.5 * max(SUPPLY_WIDTH, self.supply.period)
        time = np.clip(self.command.middles, first + half, max(last - half, first + half))
        volts = np.maximum(self.supply.mean(time, SUPPLY_WIDTH), SUPPLY_LEAST * nominal)
        return self.command.supplied((volts / nominal) ** power)

    def settled(self, lag: float, delay: float = 0.0) -> FlightSignals:
        """Return the same without the parts of its spans in which rotor states are not known yet.

        Args:
            lag: Of the rotors [s].
            delay: Dead time of the commands [s].
        """
        wait = SETTLE_LAGS * max(lag, 0.0) + max(delay, 0.0)
        spans = self.spans
        for begun in self.breaks:
            parts = [part for a, b in spans for part in ((a, min(b, begun)), (max(a, begun + wait), b))]
            spans = tuple((a, b) for a, b in parts if b > a)
        return replace(self, spans=spans)

    def left_out(self, settled: FlightSignals) -> tuple[str, ...]:
        """Return what was left out until rotor states were known, a sentence; nothing where nothing was.

        Args:
            settled: What `settled` made of this.
        """
        less = self.usable_time - settled.usable_time
        if less <= 0.0:
            return ()
        ends = [b for _, b in self.spans]
        count = sum(any(begun < b for b in ends) for begun in self.breaks)
        often = f"{count} times" if count > 1 else "once"
        why = "a gap, a clock that went back, a log that starts in the air"
        said = f"Commands begin anew {often} ({why}): {less:.2g} s behind are left out, until rotor speeds are known."
        return (said,)

    def ordered(self, order: tuple[int, ...]) -> FlightSignals:
        """Return the same with commands in another order, as `HeldCommand.ordered`."""
        commanded = Readings(self.commanded.time, self.commanded.values[:, list(order)])
        speeds = None if self.speeds is None else Readings(self.speeds.time, self.speeds.values[:, list(order)])
        return replace(self, command=self.command.ordered(order), commanded=commanded, speeds=speeds)


def flight_signals(log: Log, segments: LogSegments, gyro_bias: Array | None = None) -> FlightSignals:
    """Return the signals of a log.

    Args:
        log: With "motor_command", "gyro" and "accelerometer".
        segments: Of it; their usable parts become the spans.
        gyro_bias: Taken off the gyro [rad/s], (3,); None: nothing is.

    Raises:
        AirworthyError: A stream is missing or too short; one sentence.
    """
    for kind, holds in (
        ("motor_command", "motor commands, so it tells noise of sensors and motion, but no vehicle"),
        ("gyro", "gyro"),
        ("accelerometer", "accelerometer"),
    ):
        if not log.has(kind):
            raise AirworthyError(
                f"Log {log.name!r} holds no {holds}: a vehicle is identified from commands, gyro and accelerometer."
            )
    gyro = _readings(log, log.stream("gyro"))
    if gyro_bias is not None:
        gyro = Readings(gyro.time, gyro.values - gyro_bias)
    spans = tuple((span.start, span.stop) for span in segments.usable)
    command, commanded = _command(log)
    breaks = _breaks(log.stream("motor_command"))
    force = _readings(log, log.stream("accelerometer"))
    return FlightSignals(log.name, command, gyro, force, commanded, spans, breaks, supply=_supply(log))


def _supply(log: Log) -> Readings | None:
    """Return the voltage of a log; None where it was not measured: what never changes was not."""
    if not log.has("voltage"):
        return None
    stream = log.stream("voltage")
    time, values = _ascending(replace(stream, values=np.where(stream.values > 0.0, stream.values, np.nan)))
    if len(time) < SUPPLY_SAMPLES or float(np.ptp(values)) == 0.0:
        return None
    return Readings(time, values)


def mapped_commands(flight: FlightSignals, vehicle: Vehicle) -> FlightSignals:
    """Return a flight whose commands are steady rotor states, fractions of the largest, as a vehicle's map says.

    Args:
        flight: Commands as logged, fractions of full.
        vehicle: Whose map; without one a command of 1 is its largest rotor state.
    """
    if vehicle.command_map is None:
        return flight
    first, slope = vehicle.command_map
    full = float(np.mean([rotor.speed_max for rotor in vehicle.rotors]))
    values = flight.command.values
    steady = np.where(values == 0.0, 0.0, (np.sign(values) * first + slope * values) / full)
    return replace(flight, command=replace(flight.command, values=steady, offset=first / full))


def measured_speeds(log: Log, segments: LogSegments, rotors: int) -> Readings | str | None:
    """Return measured rotor speeds [rad/s]; why they cannot be followed; None where the log has none.

    Args:
        log: A flight.
        segments: Its parts; speeds are judged in the air.
        rotors: How many the vehicle has.
    """
    if not log.has("motor_speed"):
        return None
    stream = log.stream("motor_speed")
    if stream.values.shape[1] != rotors:
        return f"it has speeds of {stream.values.shape[1]} motors, and the vehicle has {rotors} rotors"
    faults = speed_faults(log, segments)
    if faults:
        return faults[0]
    time, values = _ascending(stream)
    return Readings(time, np.abs(values)) if len(time) >= SAMPLES_MIN else "too few speeds were measured"


def _breaks(stream: LogStream) -> tuple[float, ...]:
    """Return times from which on commands are known again."""
    good = np.isfinite(stream.time)
    time, values = stream.time[good], np.nan_to_num(stream.values[good])
    if len(time) < 2:
        return ()
    kept = np.flatnonzero(np.concatenate([[True], time[1:] > np.maximum.accumulate(time)[:-1]]))
    steps = np.diff(time[kept])
    found = kept[1:][steps > GAP_PERIODS * float(np.median(steps))].tolist() if steps.size else []
    for back in np.flatnonzero(np.diff(time) < 0.0).tolist():
        # The next one that goes on.
        found += kept[np.searchsorted(kept, back + 1) :][:1].tolist()
    # Rotors of a log that begins with motors that stand do stand.
    if np.any(values[0]):
        found.append(0)
    return tuple(sorted({float(time[k]) for k in found}))


def _ascending(stream: LogStream) -> tuple[Array, Array]:
    """Stamps that go on, and values without missing ones."""
    good = np.isfinite(stream.values).all(axis=1) & np.isfinite(stream.time)
    time, values = stream.time[good], stream.values[good]
    if not time.size:
        return time, values
    # What is stamped before an earlier sample is left out: segments end where a clock goes back.
    onward = np.concatenate([[True], time[1:] > np.maximum.accumulate(time)[:-1]])
    return time[onward], values[onward]


def readings_of(stream: LogStream) -> Readings:
    """Return a stream's samples, those that are missing or go back left out."""
    return Readings(*_ascending(stream))


def _readings(log: Log, stream: LogStream) -> Readings:
    time, values = _ascending(stream)
    if len(time) < SAMPLES_MIN:
        raise AirworthyError(
            f"Stream {stream.name!r} of log {log.name!r} has {len(time)} good samples; at least {SAMPLES_MIN} are needed."
        )
    return Readings(time, values)


def _command(log: Log) -> tuple[HeldCommand, Readings]:
    """Put commands on an even lattice by the exact mean of what was held over each of its steps."""
    stream = log.stream("motor_command")
    # A command that is not there is a motor that is stopped.
    time, values = _ascending(replace(stream, values=np.nan_to_num(stream.values)))
    if len(time) < SAMPLES_MIN:
        raise AirworthyError(
            f"The motor commands of log {log.name!r} have {len(time)} good samples; at least {SAMPLES_MIN} are needed."
        )
    period = float(np.median(np.diff(time)))
    period *= max(round(LATTICE / period), 1)
    count = int(np.ceil((time[-1] - time[0]) / period)) + 1
    if count > LATTICE_MAX:
        raise AirworthyError(
            f"The motor commands of log {log.name!r} span {time[-1] - time[0]:.4g} s at {1.0 / period:.4g} Hz; cut the log."
        )
    edges = time[0] + period * np.arange(count + 1)
    held = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values[:-1] * np.diff(time)[:, None], axis=0)])
    until = np.stack([np.interp(edges, time, column) for column in held.T], axis=1)
    # Behind the last stamp its command is held.
    until += np.maximum(edges - time[-1], 0.0)[:, None] * values[-1]
    return HeldCommand(float(time[0]), period, np.diff(until, axis=0) / period), Readings(time, values)


def refuse_rates(log: Log, signals: FlightSignals) -> None:
    """Refuse rates that no gyro measures.

    Args:
        log: Whose they are.
        signals: As read of it.

    Raises:
        AirworthyError: They are beyond `RATE_MAX`.
    """
    time = signals.gyro.time
    inside = np.zeros(len(time), bool)
    for start, stop in signals.spans:
        inside |= (time >= start) & (time <= stop)
    most = float(np.quantile(np.abs(signals.gyro.values[inside]).max(axis=1), 0.999)) if inside.any() else 0.0
    if most > RATE_MAX:
        raise AirworthyError(
            f"Log {log.name!r}: the gyro reaches {most:.0f} rad/s in flight, which none measures: its rates are in deg/s."
            " Nothing is told from wrong units."
        )
