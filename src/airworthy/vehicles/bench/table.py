"""A thrust stand's table: read, put into SI units, its units held against physics, dead columns dropped by name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.core.errors import AirworthyError, AssetError, unknown_name
from airworthy.core.files import shown
from airworthy.logs import table_of
from airworthy.vehicles.bench.columns import BENCH_UNITS, BenchColumns, guess_bench_columns, read_bench_mapping

__all__ = ["BenchTable", "bench_table", "read_bench_table"]

ROWS_MIN = 6
GLITCH = 0.08
"""Of a motor's speed from the middle of three motors and more; beyond, the sensor counted twice or not at all."""
GLITCHES_MAX = 0.5
"""Share of such rows from which on a column counts as dead."""
RUNNING = 0.05
"""Command above which motors turn."""
SPEED_MOST = 20_000.0
"""No rotor turns faster [rad/s]; toys of 30 mm reach 6,000."""
COMMAND_SLACK = 0.03
FORCE_PER_POWER = (0.003, 1.5)
"""Thrust over electrical power [N/W] where motors run: propellers of 30 mm do 0.02, slow ones of a metre 0.3 (ours, with room
on both sides); grams for newtons are a factor of 102."""
EFFICIENCY = (0.01, 1.1)
"""Shaft power over electrical power; turns a minute for radians a second are a factor of 9.5."""
ARM_OF_TORQUE = (1e-4, 1.0)
"""Torque over thrust [m]: 0.07 of a propeller's diameter."""


@dataclass(frozen=True, eq=False)
class BenchTable:
    """What a stand measured, row by row, SI units."""

    name: str
    sha256: str
    command: Array | None
    """Fraction of full, (n,)."""
    thrust: Array | None
    """Of all motors together [N], (n,)."""
    torque: Array | None
    """Of one motor, positive [N m], (n,)."""
    speed: Array | None
    """Mean of the motors whose sensor lives [rad/s], NaN where they disagree, (n,)."""
    voltage: Array | None
    """[V], (n,)"""
    current: Array | None
    """[A], (n,)"""
    time: Array | None
    """[s], (n,)"""
    motors: int
    """That carry the thrust."""
    notes: tuple[str, ...] = ()
    """What was taken for granted, dropped or left out."""

    @property
    def source(self) -> str:
        """Return the file in words."""
        return f"{self.name}[{self.sha256[:8] or 'no file'}]"

    def __len__(self) -> int:
        return len(next(v for v in (self.thrust, self.speed) if v is not None))


def read_bench_table(path: str | Path, mapping: str | Path | None = None, motors: int | None = None) -> BenchTable:
    """Read a thrust stand's table: CSV, Parquet or .npz.

    Args:
        path: The file.
        mapping: A `mapping.toml` that says what its columns are; None: they are guessed, which is noted.
        motors: That carry the thrust; None: as many as there are columns of speeds.

    Raises:
        AirworthyError: It is no table, its units cannot be right, or nothing in it lives; one sentence.
    """
    try:
        columns, draft = table_of(path)
    except AssetError as error:
        raise AssetError(str(error).replace("Log ", "Bench file ", 1)) from error
    chosen = None if mapping is None else read_bench_mapping(mapping)
    return bench_table(columns, chosen, Path(path).name, draft.data_sha256, motors, draft.notes)


def bench_table(
    columns: Mapping[str, ArrayAny],
    mapping: Mapping[str, BenchColumns] | None = None,
    name: str = "bench",
    sha256: str = "",
    motors: int | None = None,
    notes: list[str] | None = None,
) -> BenchTable:
    """Return a checked table of columns.

    Args:
        columns: Name -> numbers, (n,) each.
        mapping: Kind -> what is taken; None: guessed.
        name: Of the file.
        sha256: Of the file; empty: there is none.
        motors: As of `read_bench_table`.
        notes: Of the reader.

    Raises:
        AirworthyError: As of `read_bench_table`.
    """
    said = list(notes or ())
    where = f"Bench {name!r}"
    if motors is not None and not 1 <= motors <= 64:
        raise AirworthyError(f"{motors} motors carry the thrust; expected 1 to 64.")
    if mapping is None:
        mapping, guessed = guess_bench_columns(columns)
        said.append(f"Columns are guessed: {'; '.join(guessed)}." if guessed else "No column's name is known.")
    for kind, item in mapping.items():
        for column in item.columns:
            if column not in columns:
                raise AirworthyError(str(unknown_name("column", column, columns, f"Mapped to {kind!r}.")))
    rows = min((len(columns[c]) for item in mapping.values() for c in item.columns), default=0)
    if rows < ROWS_MIN:
        raise AirworthyError(f"{where} has {rows} rows of numbers that are known; expected at least {ROWS_MIN}.")
    single = {kind: mapping[kind].values(kind, columns[mapping[kind].columns[0]]) for kind in BENCH_UNITS if kind in mapping}
    single.pop("speed", None)
    single = {kind: np.where(np.isfinite(values), values, np.nan) for kind, values in single.items()}
    if "voltage" in single:
        # A supply of 0 V and less drives nothing: its reading is none.
        single["voltage"] = np.where(single["voltage"] > 0.0, single["voltage"], np.nan)
    if "command" in single:
        _refuse_commands(single["command"], mapping["command"], columns, where)
    dead = [kind for kind in ("thrust", "torque", "voltage", "current", "time", "command") if _dead(single.get(kind))]
    for kind in dead:
        said.append(f"Column {shown(mapping[kind].columns[0])} is the same throughout: {kind} was not measured.")
        single.pop(kind)
    speed, count = _speeds(columns, mapping.get("speed"), single.get("command"), said)
    if speed is None and "thrust" not in single:
        listed = ", ".join(shown(c) for item in mapping.values() for c in item.columns) or ", ".join(map(shown, columns))
        raise AirworthyError(
            f"{where}: neither thrust nor a rotor's speed is in it (columns: {listed}); give --map mapping.toml."
        )
    if speed is None and "command" not in single:
        raise AirworthyError(
            f"{where} has thrust, but neither commands nor speeds to hold it against; give --map mapping.toml."
        )
    said += _holes(single, speed, mapping, rows)
    motors = motors or count
    state = speed if speed is not None else single["command"]
    whole = np.isfinite(state)
    for values in single.values():
        whole &= np.isfinite(values)
    if whole.sum() < ROWS_MIN:
        raise AirworthyError(
            f"{where} has {int(whole.sum())} rows in which nothing is missing; expected at least {ROWS_MIN}: leave out columns"
            " that have holes by --map mapping.toml."
        )
    if not float(state[whole].max()) > 0.0:
        said_of = "speeds" if speed is not None else "commands"
        raise AirworthyError(
            f"{where} has {said_of} of {state[whole].min():.3g} to {state[whole].max():.3g} in its"
            " whole rows, and motors run above 0; give the right column or scale by --map mapping.toml."
        )
    torque = single.get("torque")
    if torque is not None and motors > 1:
        said.append(f"Torques of {motors} motors cancel on one scale: torque is left out.")
        torque = None
    if torque is not None:
        torque = _upright(torque, state)
    table = BenchTable(
        name,
        sha256,
        single.get("command"),
        single.get("thrust"),
        torque,
        speed,
        single.get("voltage"),
        single.get("current"),
        _clock(single.get("time"), said),
        motors,
        tuple(said),
    )
    _refuse_units(table, where)
    return table


def _holes(single: Mapping[str, Array], speed: Array | None, mapping: Mapping[str, BenchColumns], rows: int) -> list[str]:
    """Return how many rows lack what is fitted, and are left out for that."""
    found = {kind: single[kind] for kind in ("thrust", "torque", "voltage", "command") if kind in single}
    if speed is not None:
        found["speed"] = speed
    counts = {kind: int(np.sum(~np.isfinite(values))) for kind, values in found.items()}
    return [
        f"{count:,} of {rows:,} rows have no {kind} ({', '.join(map(shown, mapping[kind].columns))}), and are left out."
        for kind, count in counts.items()
        if count
    ]


def _refuse_commands(command: Array, item: BenchColumns, columns: Mapping[str, ArrayAny], where: str) -> None:
    """Refuse commands that are not 0 to 1 of full, with the unit in which the column was taken."""
    good = np.isfinite(command)
    if not good.any():
        return
    low, high = float(command[good].min()), float(command[good].max())
    if low < -COMMAND_SLACK or high > 1.0 + COMMAND_SLACK:
        given = np.asarray(columns[item.columns[0]], np.float64)[good]
        ends = item.ends()
        raise AirworthyError(
            f"{where}: commands go from {low:.3g} to {high:.3g} of full; expected 0 to 1: column {shown(item.columns[0])} holds"
            f" {given.min():g} to {given.max():g}, taken in {shown(item.unit or '1')} ({ends[0]:g} to {ends[1]:g}); give its"
            " unit, or its low and high, by --map mapping.toml."
        )


def _dead(values: Array | None) -> bool:
    if values is None:
        return False
    good = values[np.isfinite(values)]
    return not good.size or float(np.ptp(good)) == 0.0


def _speeds(
    columns: Mapping[str, ArrayAny], item: BenchColumns | None, command: Array | None, said: list[str]
) -> tuple[Array | None, int]:
    """Mean speed of the motors whose sensors live, and how many motors there are; dead ones are dropped by name."""
    if item is None:
        return None, 1
    each = np.stack([item.values("speed", columns[c]) for c in item.columns], axis=1)
    running = np.full(len(each), True) if command is None else np.nan_to_num(command) > RUNNING
    named, kept = np.array([shown(c) for c in item.columns]), np.full(each.shape[1], True)
    for k in range(each.shape[1]):
        usual = _median(each[running, k])
        kept[k] = math.isfinite(usual) and usual != 0.0 and not _dead(each[:, k])
    for k in np.flatnonzero(~kept).tolist():
        said.append(f"Column {named[k]} is dead: it reads 0 or the same while motors run, and is dropped.")
    if not kept.any():
        said.append("No sensor of speed lives: thrust is told over commands.")
        return None, each.shape[1]
    each, names = np.abs(each[:, kept]), named[kept]
    if each.shape[1] < 3:
        return each.mean(axis=1), len(kept)
    middle = np.nanmedian(np.where(np.isfinite(each).any(axis=1, keepdims=True), each, 0.0), axis=1)
    off = ~(np.abs(each - middle[:, None]) <= GLITCH * np.maximum(middle, 1e-9)[:, None])
    share = off[running].mean(axis=0) if running.any() else off.mean(axis=0)
    odd = share > GLITCHES_MAX
    for k in np.flatnonzero(odd).tolist():
        said.append(f"Column {names[k]} is off the other motors in {100 * share[k]:.0f} % of the rows, and is dropped.")
    if odd.all():
        raise AirworthyError(
            f"The speeds {', '.join(names)} agree in hardly a row: none of them can be trusted; leave them out."
        )
    agree = ~off[:, ~odd]
    # What most motors say stands; where half of the sensors count twice, nobody knows.
    good = agree.sum(axis=1) > 0.5 * agree.shape[1]
    if not agree[running].all():
        share, lost = 100.0 * np.mean(~agree[running].all(axis=1)), 100.0 * np.mean(~good[running])
        said.append(f"In {share:.1f} % of the rows a speed is over 8 % off the others; {lost:.1f} % of the rows are left out.")
    mean = np.where(agree, each[:, ~odd], 0.0).sum(axis=1) / np.maximum(agree.sum(axis=1), 1)
    mean[~good & running] = math.nan
    return mean, len(kept)


def _clock(time: Array | None, said: list[str]) -> Array | None:
    """Time that rises, or None."""
    if time is None:
        return None
    back = int(np.sum(np.diff(time) < 0.0))
    if back > 0.01 * len(time) + 1 or not np.isfinite(time).all():
        said.append("Time goes back or is missing: it is not used.")
        return None
    return np.maximum.accumulate(time)


def _upright(torque: Array, state: Array) -> Array:
    """Torque without its sign, which says the way the rotor turns."""
    top = np.nan_to_num(state) > 0.5 * np.nanmax(state)
    return np.asarray(torque if _median(torque[top]) >= 0.0 else -torque)


def _median(values: Array) -> float:
    """Return the median of what is known; NaN of nothing."""
    good = values[np.isfinite(values)]
    return float(np.median(good)) if good.size else math.nan


def _refuse_units(table: BenchTable, where: str) -> None:
    """Refuse what cannot be in the units that the columns are said to have."""
    fix = "correct the unit by --map mapping.toml"
    state = table.speed if table.speed is not None else table.command
    assert state is not None
    top = np.nan_to_num(state) >= 0.8 * np.nanmax(state)
    if table.speed is not None and float(np.nanmax(table.speed)) > SPEED_MOST:
        raise AirworthyError(f"{where}: rotors turn at {np.nanmax(table.speed):.3g} rad/s; no rotor does: {fix}.")
    thrust = None if table.thrust is None else _median(table.thrust[top])
    if thrust is not None and table.thrust is not None:
        # What is pulled at rest is the scale's zero, and no thrust.
        thrust -= _median(table.thrust[np.nan_to_num(state) <= np.nanquantile(state, 0.1)])
        if thrust <= 0.0:
            raise AirworthyError(
                f"{where}: thrust falls by {-thrust:.3g} N from rest to the fastest rows; expected that it rises: give"
                " scale = -1 in the mapping if the cell reads pulls, and look whether the propeller turns the right way."
            )
    power = None
    if table.voltage is not None and table.current is not None:
        power = _median((table.voltage * table.current)[top])
    if power is not None and power > 0.0 and thrust is not None:
        _between(thrust / power, FORCE_PER_POWER, f"{where}: the fastest rows lift", "N for each watt", fix)
    if table.torque is not None:
        torque = _median(table.torque[top])
        if table.speed is not None and power is not None and power > 0.0:
            shaft = torque * _median(table.speed[top])
            _between(shaft / power, EFFICIENCY, f"{where}: power at the shaft is", "of the electrical power", fix)
        if thrust is not None:
            _between(torque / thrust, ARM_OF_TORQUE, f"{where}: torque over thrust is", "m", fix)


def _between(value: float, limits: tuple[float, float], head: str, unit: str, fix: str) -> None:
    if math.isfinite(value) and not limits[0] <= value <= limits[1]:
        raise AirworthyError(f"{head} {value:.3g} {unit}; expected {limits[0]:g} to {limits[1]:g}: {fix}.")
