"""The table of what was held out: errors of predictions over windows that no fit saw, beside those of simpler models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from airworthy.core.arrays import Array, ArrayBool
from airworthy.vehicles.identification.known import with_mass
from airworthy.vehicles.identification.prediction.plant import Plant, plant_of
from airworthy.vehicles.identification.prediction.predict import (
    DRAG_WIDTH,
    FADING,
    STEP,
    WIDTH,
    Windows,
    cut_windows,
    predict,
)
from airworthy.vehicles.identification.prediction.signals import FlightSignals
from airworthy.vehicles.lookup import vehicle, vehicle_names
from airworthy.vehicles.record import Vehicle

__all__ = ["COLUMNS", "HORIZONS", "HeldOut", "HeldOutRow", "choose_trim", "held_out", "nearest_vehicle", "trimmed_rates"]

HORIZONS = (0.05, 0.1, 0.25, 0.5)
"""[s]"""
COLUMNS = ("hold", "nearest", "start", "identified", "trimmed")
"""Reading held as it was; the nearest vehicle of the catalogue, scaled to the mass; the closed form; the fit; the fit with the
push that it missed in the moment before, going on and dying away."""
PAST = 0.1
"""Moment before each window, of which a trim is told [s]."""
TRIMS = ((0.6, 0.4), (0.8, 0.25), (1.0, 0.4), (1.0, 2.0))
"""Gain and decay [s] that a trim may have; the fit's own windows choose."""
WINDOWS = 60
"""Of each flight."""
SKILL_MIN = 0.3
"""At 0.25 s on excited windows, above which a vehicle is called flyable."""
WORSE, WORSE_LEAST = 2.0, 0.5
"""Errors of specific force at 0.25 s that are so many times those of holding it, and more than so much [m/s^2], a twentieth of
the weight, are of another thrust. Ours."""
BAND = 1.645
"""Deviations within which 90 % of a normal distribution lie."""


@dataclass(frozen=True)
class HeldOutRow:
    """Errors of one reading at one horizon."""

    quantity: str
    """"rate" (about x, y, and z where that was fitted) [rad/s] or "force" (along z) [m/s^2]."""
    windows: str
    """"excited", "quiet" or "all"."""
    horizon: float
    """[s]"""
    rms: dict[str, float]
    """By `COLUMNS`."""
    median: dict[str, float]
    """Of magnitudes, by `COLUMNS`."""
    inside: float
    """Share of the fit's errors within the 90 % band that its own windows have; NaN beyond their length."""

    @property
    def skill(self) -> float:
        """1 - rms over that of holding, of the trimmed fit."""
        return 1.0 - self.rms["trimmed"] / self.rms["hold"] if self.rms["hold"] > 0.0 else math.nan


@dataclass(frozen=True)
class HeldOut:
    """The table, and what it says."""

    rows: tuple[HeldOutRow, ...]
    nearest: str
    """Name of the catalogue's nearest vehicle; empty: there is none."""
    trim: tuple[float, float]
    """Gain and decay [s]."""
    verdict: str
    """"flyable", "supported" or "do not trust"."""
    reasons: tuple[str, ...] = ()
    """Of "do not trust", a sentence each."""

    def row(self, quantity: str, windows: str, horizon: float) -> HeldOutRow | None:
        """Return one row; None where the table has none."""
        found = [r for r in self.rows if (r.quantity, r.windows) == (quantity, windows) and abs(r.horizon - horizon) < 1e-9]
        return found[0] if found else None


def nearest_vehicle(base: Vehicle) -> Vehicle | None:
    """Return the catalogue's vehicle of as many rotors whose mass is nearest, scaled to the mass, rotors in the base's order.

    None where none has its rotors near the base's arms and turning alike.
    """
    places = np.array([rotor.position[:2] for rotor in base.rotors])
    wanted = np.arctan2(places[:, 1], places[:, 0])
    for name in sorted(vehicle_names(), key=lambda name: (abs(math.log(vehicle(name).mass / base.mass)), name)):
        found = vehicle(name)
        if found.rotor_count != base.rotor_count or found.motor_state != "speed":
            continue
        spots = np.array([rotor.position[:2] for rotor in found.rotors])
        apart = np.abs(np.angle(np.exp(1j * (np.arctan2(spots[:, 1], spots[:, 0])[None] - wanted[:, None]))))
        order = apart.argmin(axis=1)
        if len(set(order.tolist())) < len(order) or apart.min(axis=1).max() > 0.3:
            continue
        rotors = tuple(found.rotors[k] for k in order)
        if len({(rotor.response, rotor.speed_max) for rotor in rotors}) > 1:
            continue
        return with_mass(replace(found, rotors=rotors), base.mass)
    return None


def choose_trim(plants: Sequence[Plant], windows: Sequence[Windows]) -> tuple[float, float]:
    """Return gain and decay of the trim that predicts a fit's own windows best."""
    total = np.zeros(len(TRIMS))
    for plant, fitted in zip(plants, windows, strict=True):
        of = replace(fitted, fading=FADING)
        push = missed_push(plant, of)
        for k, trim in enumerate(TRIMS):
            left = trimmed_rates(plant, of, trim, push)[..., :2] - of.rate[..., :2]
            total[k] += float((left**2).sum())
    return TRIMS[int(np.argmin(total))]


def missed_push(plant: Plant, windows: Windows) -> Array:
    """Return the angular acceleration that a plant missed before each window [rad/s^2], (windows, 3).

    Args:
        plant: One set of parameters.
        windows: With `PAST` of usable flight before each.
    """
    steps = max(round(PAST / windows.step), 1)
    start = windows.start - steps * windows.step
    time = start[:, None] + windows.step * np.arange(steps + 1)
    flight = windows.flight
    past = Windows(flight, start, windows.step, flight.gyro.mean(time, WIDTH), flight.force.mean(time, WIDTH), windows.fading)
    return np.asarray((past.rate - predict(plant, past).rate[0])[:, -1] / (steps * windows.step))


def trimmed_rates(plant: Plant, windows: Windows, trim: tuple[float, float], missed: Array | None = None) -> Array:
    """Return predicted rates with the push that a plant missed before each window, (windows, steps + 1, 3).

    Args:
        plant: One set of parameters.
        windows: With `PAST` of usable flight before each.
        trim: Gain and decay [s] of the push.
        missed: Of `missed_push`, (windows, 3); None: it is taken here.
    """
    missed = missed_push(plant, windows) if missed is None else missed
    gain, decay = trim
    push = missed[:, None] * (gain * np.exp(-windows.step * np.arange(windows.steps + 1) / decay))[:, None]
    return predict(plant, windows, push[None]).rate[0]


def held_out(
    flights: Sequence[FlightSignals],
    plants: dict[str, Sequence[Plant] | None],
    trim: tuple[float, float],
    spread: Array | None,
    turning: bool,
    yaw: bool,
    nearest: str,
    hovers: bool,
    strangers: Sequence[str] = (),
) -> HeldOut:
    """Predict windows of flights that no fit saw.

    Args:
        flights: What was held out.
        plants: "nearest", "start" and "identified": of each flight, or None.
        trim: Gain and decay [s].
        spread: Deviations of the fit's own errors at each step of its windows, rate x, y, z and force z, (steps + 1, 4).
        turning: Whether rates are predicted.
        yaw: Whether the rate about z counts.
        nearest: Name of the catalogue's vehicle.
        hovers: Whether the identified vehicle carries its weight.
        strangers: Why flights that were held out judge nothing of this vehicle, a sentence each.
    """
    axes = [0, 1, 2] if yaw else [0, 1]
    errors: dict[str, list[Array]] = {name: [] for name in COLUMNS}
    excited: list[ArrayBool] = []
    length = HORIZONS[-1]
    for k, flight in enumerate(flights):
        longest = max(b - a for a, b in flight.spans) - PAST - 2.0 * DRAG_WIDTH
        windows = cut_windows(flight, WINDOWS, min(length, longest), STEP, before=PAST, fading=FADING)
        measured = np.concatenate([windows.rate, windows.force[..., 2:]], axis=-1)
        excited.append(windows.excited)
        errors["hold"].append(_padded(measured[:, :1] - measured, length))
        for name in ("nearest", "start", "identified"):
            of = plants[name]
            if of is None:
                errors[name].append(np.full_like(errors["hold"][-1], np.nan))
                continue
            found = predict(of[k], windows)
            both = np.concatenate([found.rate[0], found.force[0][..., 2:]], axis=-1)
            errors[name].append(_padded(both - measured, length))
        of = plants["identified"]
        assert of is not None
        trimmed = errors["identified"][-1].copy()
        if turning:
            trimmed[..., :3] = _padded(trimmed_rates(of[k], windows, trim) - windows.rate, length)
        errors["trimmed"].append(trimmed)
    joined = {name: np.concatenate(parts) for name, parts in errors.items()}
    rows = _rows(joined, np.concatenate(excited), axes, spread, turning)
    word, reasons = _verdict(rows, turning, hovers, strangers)
    return HeldOut(tuple(rows), nearest, trim, word, reasons)


def _padded(errors: Array, length: float) -> Array:
    """Errors up to the longest horizon, NaN behind the end of shorter windows."""
    steps = round(length / STEP) + 1
    out = np.full((len(errors), steps, errors.shape[2]), np.nan)
    out[:, : errors.shape[1]] = errors[:, :steps]
    return out


def _rows(
    errors: dict[str, Array], excited: ArrayBool, axes: list[int], spread: Array | None, turning: bool
) -> list[HeldOutRow]:
    rows = []
    for quantity, columns in (("rate", axes), ("force", [3])):
        if quantity == "rate" and not turning:
            continue
        for label, which in (("excited", excited), ("quiet", ~excited), ("all", np.ones_like(excited))):
            if not which.any():
                continue
            for horizon in HORIZONS:
                step = round(horizon / STEP)
                at = {name: values[which, step][:, columns] for name, values in errors.items()}
                inside = math.nan
                if spread is not None and step < len(spread):
                    inside = float(np.mean(np.abs(at["identified"]) <= BAND * spread[step, columns]))
                rms = {name: float(np.sqrt(np.mean(e**2))) for name, e in at.items()}
                median = {name: float(np.median(np.abs(e))) for name, e in at.items()}
                rows.append(HeldOutRow(quantity, label, horizon, rms, median, inside))
    return rows


def _verdict(
    rows: Sequence[HeldOutRow], turning: bool, hovers: bool, strangers: Sequence[str] = ()
) -> tuple[str, tuple[str, ...]]:
    """Return the verdict, and the reasons of "do not trust", a sentence each."""
    reasons = list(strangers)
    # Thrust that is worse than a reading held as it was, and by more than vibration, flies nothing, however well it turns.
    lift = next((r.rms for r in rows if (r.quantity, r.windows, r.horizon) == ("force", "all", 0.25)), None)
    if lift is not None and lift["identified"] > max(WORSE * lift["hold"], WORSE_LEAST):
        reasons.append(
            f"Specific force a quarter of a second ahead is off by {lift['identified']:.2g} m/s^2, and by {lift['hold']:.2g}"
            " where the reading is held: what was held out lifts otherwise (mass, propeller, battery), or the thrust is wrong."
        )
    if not hovers:
        reasons.append("Its rotors cannot carry its weight.")
    quantity, unit = ("rate", "rad/s") if turning else ("force", "m/s^2")
    row = next((r for r in rows if (r.quantity, r.windows, r.horizon) == (quantity, "excited", 0.25)), None)
    skill = math.nan if row is None else row.skill
    if row is None:
        reasons.append("What was held out has no window with turns or thrust that change: nothing there judges it.")
    elif not skill > 0.0:
        what = "Rates" if turning else "Specific forces"
        off = f"are off by {row.rms['trimmed']:.2g} {unit}, and by {row.rms['hold']:.2g} where the reading is held"
        reasons.append(f"{what} a quarter of a second ahead, where the flight is excited, {off}: it predicts them no better.")
    if reasons:
        return "do not trust", tuple(reasons)
    return ("flyable" if turning and skill > SKILL_MIN else "supported"), ()


def catalogue_plants(base: Vehicle, flights: int) -> tuple[str, list[Plant] | None]:
    """Return the name of the catalogue's nearest vehicle and its plant for each flight; None where there is none."""
    found = nearest_vehicle(base)
    return ("", None) if found is None else (found.name, [plant_of(found)] * flights)
