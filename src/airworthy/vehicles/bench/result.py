"""What a thrust stand tells of motor and propeller, kept as a small file that identification takes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import json_text, read_json, write_text
from airworthy.core.table_schema import TableSchema, check_header
from airworthy.vehicles.bench.curves import BenchCurve, BenchSag, BenchSpeed, is_covariance
from airworthy.vehicles.bench.levels import BenchTare
from airworthy.vehicles.bench.steps import BenchLag

__all__ = ["BenchFit", "BenchHysteresis", "read_bench_fit", "write_bench_fit"]

TRANSFER = 0.03
"""Ours: relative deviation of what a rotor lifts on a vehicle from what it lifts on a stand: arms under it, neighbours beside
it, another density of the air (1 % for 3 K or 10 hPa), the cell's own scale."""
TRANSFER_RATIO = 0.02
"""The same of torque over thrust, in which the air's density cancels."""
SUPPLY_SD = 0.05
"""Relative deviation of a supply that nobody measured from the stand's: of lithium cells, full to empty about the middle."""
OUTSIDE = 0.1
"""Share of the measured range by which a state may lie outside it."""
FORMAT, VERSION = "airworthy bench", 1


@dataclass(frozen=True)
class BenchHysteresis:
    """How thrust differs between ways up and down, at like states."""

    share: float
    """Up over down, less 1."""
    sd: float


@dataclass(frozen=True)
class BenchFit:
    """Curves of one motor and its propeller, with errors."""

    source: str
    """File, and the first digits of its hash."""
    state: Literal["speed", "command"]
    """What thrust is told over: speed [rad/s], or command where no speed was measured."""
    motors: int
    """That stood on the scale."""
    levels: int
    thrust: BenchCurve | None = None
    """Of one motor [N]."""
    torque: BenchCurve | None = None
    """Of one motor [N m]."""
    speed: BenchSpeed | None = None
    """Speed over command and supply; None: commands or speeds were not measured."""
    sag: BenchSag | None = None
    """Of thrust over commands; None: speeds were measured, or no voltage."""
    noise: float | None = None
    """Deviation of a row's thrust within a level, one motor [N]."""
    tare: BenchTare | None = None
    hysteresis: BenchHysteresis | None = None
    lag: BenchLag | None = None
    no_lag: str = ""
    """Why no lag is told."""
    voltage: tuple[float, float] | None = None
    """Least and largest while motors ran [V]."""
    notes: tuple[str, ...] = ()

    def thrust_at(self, state: float) -> tuple[float, float]:
        """Return thrust of one motor at a state, and its deviation on a vehicle [N].

        Args:
            state: Speed [rad/s], or command.

        Raises:
            AirworthyError: The stand measured no thrust, or did not cover that state.
        """
        if self.thrust is None:
            raise AirworthyError(f"Bench {self.source}: it measured no thrust.")
        self.refuse_outside(state)
        value = self.thrust.at(state)
        return value, value * math.hypot(self.thrust.sd(state) / value, self.scale_error)

    @property
    def scale_error(self) -> float:
        """Relative deviation of thrust that no level averages out: from stand to vehicle, and half of the hysteresis."""
        return math.hypot(TRANSFER, 0.0 if self.hysteresis is None else 0.5 * self.hysteresis.share)

    def refuse_outside(self, state: float) -> None:
        """Refuse a state that the stand did not cover.

        Raises:
            AirworthyError: One sentence.
        """
        curve = self.thrust or self.torque
        if curve is None:
            return
        slack = OUTSIDE * (curve.high - curve.low)
        if not curve.low - slack <= state <= curve.high + slack:
            unit = "rad/s" if self.state == "speed" else "of full command"
            raise AirworthyError(
                f"Bench {self.source} covers {curve.low:.3g} to {curve.high:.3g} {unit}, and the vehicle hovers at {state:.3g}:"
                " measure through that, or leave the bench out."
            )

    def covariance_at(self, state: float, supply_sd: float = 0.0) -> tuple[Array, Array]:
        """Return logarithm of thrust and its linear share at a state, and their covariance, (2,), (2, 2).

        Args:
            state: As of `thrust_at`.
            supply_sd: Further relative deviation of the state itself.
        """
        assert self.thrust is not None
        value, curve = self.thrust_at(state)[0], self.thrust
        share = curve.linear * state / value
        # Slopes of log f and of the share by both coefficients.
        rows = np.array([[state, state * abs(state)], [state - share * state, -share * state * abs(state)]]) / value
        covariance = rows @ np.array(curve.covariance) @ rows.T
        rise = curve.slope(state) * state / value
        covariance[0, 0] += self.scale_error**2 + (rise * supply_sd) ** 2
        return np.array([math.log(value), share]), covariance

    def sentences(self) -> list[str]:
        """Return what was found, in words."""
        unit = "rad/s" if self.state == "speed" else "of full"
        said = []
        if self.thrust is not None:
            top = self.thrust.high
            said.append(
                f"Thrust of a motor: {self.thrust.linear:.4g} s + {self.thrust.square:.4g} s^2 N over the"
                f" {self.state} s, {self.thrust.low:.3g} to {top:.3g} {unit}; {self.thrust.at(top):.4g} N at the top"
                f" (+-{100 * self.thrust.sd(top) / self.thrust.at(top):.2g} % on the stand, +-{100 * self.scale_error:.2g} %"
                f" more on a vehicle); {self.thrust.rms:.2g} N are left."
            )
        if self.torque is not None:
            top = self.torque.high
            said.append(
                f"Torque: {self.torque.linear:.4g} s + {self.torque.square:.4g} s^2 N m; {self.torque.at(top):.4g} N m at the"
                f" top (+-{100 * self.torque.sd(top) / self.torque.at(top):.2g} %)."
            )
        if self.sag is not None:
            said.append(
                f"Commands are those at {self.sag.voltage:.3g} V; a command counts by the {self.sag.power:.2f} +-"
                f" {self.sag.sd:.2f} power of the voltage."
            )
        if self.speed is not None:
            said.append(self._speed_sentence())
        if self.noise is not None:
            said.append(f"Noise of a row's thrust {self.noise:.2g} N.")
        if self.tare is not None:
            said.append(_tare_sentence(self.tare))
        if self.hysteresis is not None:
            said.append(
                f"Up over down thrust is {100 * self.hysteresis.share:+.2g} % (+-{100 * self.hysteresis.sd:.2g})"
                " at like states; half of it counts as an error."
            )
        said.append(f"Lag: {self.no_lag}." if self.lag is None else _lag_sentence(self.lag))
        return said

    def _speed_sentence(self) -> str:
        assert self.speed is not None
        s = self.speed
        at = f" at {s.voltage:.3g} V, by the {s.sag:.2f} +- {math.sqrt(s.covariance[2][2]):.2f} power of the voltage"
        at += " (believed rather than told)" if s.sag_share < 0.3 else ""
        return (
            f"Speed: {s.offset:.0f} + {s.slope:.0f} u rad/s{at if s.voltage else ''}, commands {s.low:.2f} to {s.high:.2f};"
            f" {s.rms:.2g} rad/s are left."
        )


def _tare_sentence(tare: BenchTare) -> str:
    if not tare.told:
        return "No row has motors off: the scale's zero is taken for right."
    drift = f", drifts by {tare.drift:+.2g} N" if tare.drift_told else "; motors were off at one time only, so no drift is told"
    return f"The scale's zero is {tare.start:.3g} N{drift}; taken off."


def _lag_sentence(lag: BenchLag) -> str:
    parts = [
        f"{1e3 * value:.1f} ms {word} (+-{1e3 * sd:.1f})"
        for value, sd, word in ((lag.rise, lag.rise_sd, "rising"), (lag.fall, lag.fall_sd, "falling"))
        if value > 0.0
    ]
    return f"Lag of {lag.by} by {lag.steps} steps: {', '.join(parts)}, {1e3 * lag.delay:.1f} ms after the command."


_SCHEMA = TableSchema(entries_max=64, list_max=256, text_max=4096)


def write_bench_fit(fit: BenchFit, path: str | Path) -> None:
    """Write a fit as JSON, for `identify --bench`."""
    write_text(path, json_text({"format": FORMAT, "version": VERSION, "bench": _SCHEMA.encode(fit)}))


def read_bench_fit(path: str | Path) -> BenchFit:
    """Read what `write_bench_fit` has written.

    Raises:
        AssetError: It is something else.
    """
    table = read_json(path)
    check_header(table, repr(str(path)), "a bench's curves", ("format", FORMAT), VERSION)
    fit = _SCHEMA.entry(table, "bench", BenchFit, repr(str(path)))
    assert isinstance(fit, BenchFit)
    for curve in (fit.thrust, fit.torque):
        if curve is not None and not (curve.high > curve.low >= 0.0 and curve.at(curve.high) > 0.0):
            raise AssetError(f"{str(path)!r} holds a curve that is not positive over its range; write it anew from the stand.")
    for part, name in ((fit.thrust, "thrust"), (fit.torque, "torque"), (fit.speed, "speed")):
        if part is not None and not is_covariance(np.array(part.covariance)):
            raise AssetError(
                f"{str(path)!r} holds a covariance of {name} that is none (symmetric, positive definite); write it anew from"
                " the stand."
            )
    if fit.lag is not None and not (max(fit.lag.rise, fit.lag.fall) > 0.0 and fit.lag.both[1] > 0.0):
        raise AssetError(f"{str(path)!r} holds a lag that is not above 0, or has no error; write it anew from the stand.")
    return fit
