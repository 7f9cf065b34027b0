"""From a thrust stand's table to curves of motor and propeller with errors. Pure but for reading the file."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.vehicles.bench.curves import BenchCurve, BenchSpeed, fit_curve, fit_speed, sag_of
from airworthy.vehicles.bench.levels import Levels, levels_of
from airworthy.vehicles.bench.result import BenchFit, BenchHysteresis, read_bench_fit
from airworthy.vehicles.bench.steps import fit_lag
from airworthy.vehicles.bench.table import BenchTable, read_bench_table

__all__ = ["bench_of", "fit_bench"]

MISFIT = 0.05
"""Share of the largest value above which what is left of a curve is told."""
DROWNED = 4.0
"""Torque at the top over its error and over what is left, under which it is noise."""
ALMOST = 0.3
"""Share of the largest state from which on a curve must be above 0; below, the scale's own noise decides."""
WAYS_MIN = 3
"""Levels on either way from which on they are compared."""


def fit_bench(stand: str | Path | BenchTable, mapping: str | Path | None = None, motors: int | None = None) -> BenchFit:
    """Fit thrust, torque and speed of one motor to a thrust stand's table.

    Args:
        stand: File (CSV, Parquet, .npz), or a table that was read.
        mapping: A `mapping.toml` that says what the columns are; None: they are guessed, and the notes say how.
        motors: That stood on the scale; None: as many as there are columns of speeds.

    Returns:
        Curves, with errors by groups of levels; noise, zero and hysteresis of the scale; lag where steps were sampled fast.

    Raises:
        AirworthyError: The file tells nothing, or nothing that can be true; one sentence.
    """
    table = stand if isinstance(stand, BenchTable) else read_bench_table(stand, mapping, motors)
    levels = levels_of(table)
    where, notes = f"Bench {table.name!r}", list(table.notes)
    sag = None
    if levels.speed is None and levels.voltage is not None:
        assert levels.command is not None
        assert levels.thrust is not None
        sag = sag_of(levels.command, levels.voltage, levels.thrust, levels.group)
        levels = levels.at_voltage(sag)
    thrust = None if levels.thrust is None else fit_curve(levels.state, levels.thrust, levels.group)
    torque = None if levels.torque is None else fit_curve(levels.state, levels.torque, levels.group)
    if torque is not None and torque.at(torque.high) < DROWNED * max(torque.sd(torque.high), torque.rms):
        notes.append("Torque is lost in its own noise, and left out.")
        torque = None
    for name, curve in (("thrust", thrust), ("torque", torque)):
        if curve is not None:
            notes += _checked(curve, name, where)
    speed = None
    if levels.speed is not None and levels.command is not None:
        speed = _speed(levels, where, notes)
    lag = fit_lag(table, 0.0 if speed is None else speed.sag)
    running = levels.voltage
    return BenchFit(
        source=table.source,
        state="speed" if levels.speed is not None else "command",
        motors=table.motors,
        levels=len(levels.state),
        thrust=thrust,
        torque=torque,
        speed=speed,
        sag=sag,
        noise=levels.noise if math.isfinite(levels.noise) else None,
        tare=levels.tare,
        hysteresis=None if thrust is None else _hysteresis(levels, thrust),
        lag=None if isinstance(lag, str) else lag,
        no_lag=lag if isinstance(lag, str) else "",
        voltage=None if running is None else (float(np.nanmin(running)), float(np.nanmax(running))),
        notes=tuple(notes),
    )


def bench_of(file: str | Path, mapping: str | Path | None = None) -> BenchFit:
    """Return the fit of a file: a stand's table, or what `vehicles bench --out` wrote."""
    if Path(file).suffix.lower() == ".json":
        if mapping is not None:
            raise AirworthyError(f"{str(file)!r} holds curves, which need no mapping of columns: leave it out.")
        return read_bench_fit(file)
    return fit_bench(file, mapping)


def _checked(curve: BenchCurve, name: str, where: str) -> list[str]:
    """Refuse a curve that no propeller has; return what is odd of it."""
    states = np.linspace(max(curve.low, ALMOST * curve.high), curve.high, 9)
    values = np.array([curve.at(float(s)) for s in states])
    slopes = np.array([curve.slope(float(s)) for s in states])
    if not (values > 0.0).all():
        raise AirworthyError(
            f"{where}: {name} is {values.min():.3g} at {states[int(values.argmin())]:.3g}, below 0 while motors run; set the"
            " scale to zero with motors off, or turn its sign by scale = -1 in the mapping."
        )
    if slopes[-1] <= 0.0:
        raise AirworthyError(f"{where}: {name} falls where motors turn fastest; leave out rows where they lost power.")
    if curve.rms > MISFIT * values.max():
        share = 100.0 * curve.rms / values.max()
        return [f"The curve leaves {share:.0f} % of the largest {name}: look at the report before it is believed."]
    return []


def _speed(levels: Levels, where: str, notes: list[str]) -> BenchSpeed | None:
    assert levels.speed is not None
    assert levels.command is not None
    found = fit_speed(levels.command, levels.speed, levels.voltage, levels.group)
    if found.slope <= 0.0 or found.at(found.low) <= 0.0:
        raise AirworthyError(
            f"{where}: speed does not rise with the command ({found.offset:.3g} + {found.slope:.3g} u rad/s); are the columns"
            " of command and speed the right ones?"
        )
    if found.rms > MISFIT * found.at(found.high):
        notes.append(
            f"Speed is not straight in the command: {100 * found.rms / found.at(found.high):.0f} % of the largest are left."
        )
    return found


def _hysteresis(levels: Levels, curve: BenchCurve) -> BenchHysteresis | None:
    """Compare what is left on ways up and down; None where levels go one way."""
    assert levels.thrust is not None
    model = np.array([curve.at(float(s)) for s in levels.state])
    # Little thrust says nothing of a share.
    heavy = model > 0.15 * model.max()
    up, down = heavy & (levels.rising > 0.0), heavy & (levels.rising < 0.0)
    if min(up.sum(), down.sum()) < WAYS_MIN:
        return None
    share = levels.thrust / model - 1.0
    both = []
    for way in (up, down):
        # Of the same states alone: the ends may have one way only.
        other = down if way is up else up
        inside = way & (levels.state >= levels.state[other].min()) & (levels.state <= levels.state[other].max())
        if inside.sum() < WAYS_MIN:
            return None
        groups = [share[inside & (levels.group == g)].mean() for g in np.unique(levels.group[inside])]
        both.append((float(np.mean(share[inside])), float(np.std(groups)) / math.sqrt(len(groups))))
    return BenchHysteresis(both[0][0] - both[1][0], math.hypot(both[0][1], both[1][1]))
