"""Fit drag by air speed beside a vehicle that was identified from its inertial sensor.

The inertial fit knows thrust, lag and the sensor's place; here these stand, with each flight's scale of thrust and bias free,
so that what is uncertain of them is not taken for drag. What was found of drag is then taken off the accelerometer's readings
and the inertial fit goes on from where it was: both in turns are one fit of everything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import rotate_inverse
from airworthy.logs.excitation import SAG
from airworthy.vehicles.identification.air_speed.motion import FlightMotion
from airworthy.vehicles.identification.air_speed.problem import (
    AIR_WIDTH,
    SCALE_SD,
    SQUARE,
    air_errors,
    air_parameters,
    air_windows,
    flown_air,
    problem_of,
)
from airworthy.vehicles.identification.excitation import SUPPORTED, word
from airworthy.vehicles.identification.fitting.refine import Fit, left_out_scores, refine
from airworthy.vehicles.identification.fitting.structures import folds_of
from airworthy.vehicles.identification.prediction.plant import Plant
from airworthy.vehicles.identification.prediction.signals import FlightSignals, Readings
from airworthy.vehicles.record import Drag, Rotor, Vehicle
from airworthy.vehicles.uncertainty import DRAGS

__all__ = ["AirDrag", "AirStretch", "fit_drag", "with_drag", "without_drag"]

WINDOWS, WINDOWS_QUICK = 96, 48
"""Of each flight."""
HORIZONS = (0.1, 0.25, 0.5)
"""At which velocities are judged [s]."""
LIFT_MOST = 2.5
"""Deviations of a flight's thrust from what its accelerometer tells that a fit may ask for; ours: three simulated flights asked
for 0.3 at most, two others, whose falling battery was not followed, for 3 and 7."""
CLEARLY = 0.9
"""Ours: a fit's error of velocity over that of holding it, from which on velocities do not go with thrust and attitudes. Of
right ones it is 0.01 to 0.3; of such in another unit 0.98, in another frame 1.4 and more."""


@dataclass(frozen=True, eq=False)
class AirStretch:
    """A flight, how it moved, and what predicts its thrust."""

    flight: FlightSignals
    motion: FlightMotion
    plant: Plant
    """One set of parameters, with what the flight had of its own."""


@dataclass(frozen=True, eq=False)
class AirDrag:
    """What was found of drag."""

    fit: Fit
    square: bool
    """Whether drag is square in the air speed, too."""
    names: tuple[str, ...]
    """Of the flights."""
    source: str
    """Where velocities are from, in words."""
    score: float
    """Of linear and square drag over linear drag alone, on flight that was left out; less is better."""
    error: float
    """Standard error of that."""
    velocity: Mapping[str, tuple[float, ...]]
    """Root mean square of velocity errors on what was held out, at `HORIZONS` [m/s]: "hold", "without" drag, and "fitted";
    empty: nothing was held out that has velocities."""
    against: str = ""
    """Why nothing of it is believed, a sentence; empty: it may be."""

    def place(self, name: str, flight: int | None = None) -> int:
        """Return where a value stands in the fit."""
        items = self.fit.problem.parameters.items
        return next(k for k, item in enumerate(items) if (item.name, item.flight) == (name, flight))

    def value(self, name: str) -> float:
        """Return a value of the vehicle, SI units over mass."""
        return math.exp(float(self.fit.theta[self.place(name)]))

    @property
    def told(self) -> tuple[str, ...]:
        """Return the axes whose linear drag the logs told, by name."""
        return tuple(name for name in DRAGS if self.fit.share[self.place(name)] >= SUPPORTED)

    def word(self, name: str) -> str:
        """Return how a value is called."""
        return word(float(self.fit.share[self.place(name)]), True)

    def record(self) -> dict[str, Any]:
        """Return it as plain tables, for identification.json."""
        return {
            "source": self.source,
            "flights": list(self.names),
            "square": self.square,
            "square_over_linear": {"score": self.score, "error": self.error},
            "velocity_held_out": {name: list(row) for name, row in self.velocity.items()} | {"horizons": list(HORIZONS)},
            "told": list(self.told),
        }

    def sentence(self) -> str:
        """Return what was found, in words."""
        if not self.told:
            return f"Velocities ({self.source}) are too slow to tell drag: it stays as it was."
        parts = []
        for name in DRAGS:
            k = self.place(name)
            size = f"{self.value(name):.3g} (+-{100.0 * self.fit.sd[k]:.2g} %)" if name in self.told else "not told"
            parts.append(f"{name[-1]} {size}")
        square = f", and square {self.value(SQUARE):.3g} 1/m" if self.square else ""
        form = f"With square drag beside it left-out flight scores {self.score:+.1f} +- {self.error:.1f} (less is better)"
        gain = ""
        if self.velocity:
            held, plain, fitted = (self.velocity[name][-1] for name in ("hold", "without", "fitted"))
            gain = f" Velocity {HORIZONS[-1]:g} s ahead on what was held out: {fitted:.2g} m/s off, {plain:.2g} without drag,"
            gain += f" {held:.2g} held."
        return f"Drag over mass by {self.source} [1/s]: {', '.join(parts)}{square}. {form}.{gain}"


def fit_drag(
    stretches: Sequence[AirStretch],
    held: Sequence[AirStretch],
    base: Vehicle,
    quick: bool,
    say: Callable[[str], None] = lambda _: None,
) -> AirDrag:
    """Fit linear drag, and square drag where left-out flight asks for it.

    Args:
        stretches: What is fitted.
        held: What was held out, of these flights or others.
        base: Whose mass and gravity count.
        quick: Fewer windows.
        say: Told each stage.

    Raises:
        AirworthyError: No stretch has poses for half a second.
    """
    flights, motions, plants = ([getattr(s, name) for s in stretches] for name in ("flight", "motion", "plant"))
    problem = problem_of(flights, motions, plants, base, WINDOWS_QUICK if quick else WINDOWS)
    linear = refine(problem, [problem.parameters.mean], say)
    both = refine(replace(problem, parameters=air_parameters(base, len(flights), True)), [_begun(linear)], say)
    folds = folds_of(problem)
    apart = np.bincount(folds, weights=left_out_scores(both, folds)) - np.bincount(
        folds, weights=left_out_scores(linear, folds)
    )
    error = float(apart.std(ddof=1) * math.sqrt(len(apart))) if len(apart) > 1 else math.inf
    names = tuple(flight.name for flight in flights)
    found = AirDrag(linear, False, names, motions[0].source, float(apart.sum()), error, {})
    if float(apart.sum()) < -error:
        curved = replace(found, fit=both, square=True)
        # Where neither part is told beside the other, the record takes none of them.
        found = curved if curved.told else found
    against = contradiction(velocity_errors(found, stretches, base), found.source) or runaway(found)
    if against:
        return replace(found, against=against)
    if not found.told:
        return found
    velocity = velocity_errors(found, held, base)
    return replace(found, velocity=velocity, against=useless(velocity, found.source))


def useless(errors: Mapping[str, tuple[float, ...]], source: str) -> str:
    """Return that drag foretells no velocity better than none does, a sentence; empty where it does, or nothing was held out.

    Args:
        errors: As of `velocity_errors`, on what was held out.
        source: Where velocities are from, in words.
    """
    if not errors or errors["fitted"][-1] < errors["without"][-1]:
        return ""
    fitted, plain = errors["fitted"][-1], errors["without"][-1]
    return (
        f"Drag that {source} asks for foretells velocities {HORIZONS[-1]:g} s ahead on what was held out no better than none"
        f" does ({fitted:.2g} m/s off, and {plain:.2g} without): neither drag nor wind is told."
    )


def contradiction(errors: Mapping[str, tuple[float, ...]], source: str) -> str:
    """Return why velocities and the vehicle's motion cannot be of one flight, a sentence; empty where they can.

    Args:
        errors: As of `velocity_errors`, on what was fitted.
        source: Where velocities are from, in words.
    """
    if not errors or errors["fitted"][-1] < CLEARLY * errors["hold"][-1]:
        return ""
    held, fitted = errors["hold"][-1], errors["fitted"][-1]
    return (
        f"{source} does not go with thrust and attitude: {HORIZONS[-1]:g} s ahead they miss it by {fitted:.2g} m/s, hardly"
        f" better than holding it, or worse ({held:.2g}): its frame, unit or order of columns is another, or that of the"
        " attitudes is, or it is noise; neither drag nor wind is told."
    )


def runaway(found: AirDrag) -> str:
    """Return why thrust and velocities cannot be of one vehicle, a sentence; empty where they can.

    A flight's thrust may differ by some hundredths from what its accelerometer told; where a fit asks for much more, something
    else is wrong, and what drag took of the readings would be thrust in the record.

    Args:
        found: Of drag.
    """
    lifts = {name: float(found.fit.theta[found.place("lift", k)]) for k, name in enumerate(found.names)}
    name = max(lifts, key=lambda each: abs(lifts[each]))
    if abs(lifts[name]) <= LIFT_MOST * SCALE_SD:
        return ""
    sense = "more" if lifts[name] > 0.0 else "less"
    return (
        f"{found.source} would have {name!r} lift {100.0 * abs(lifts[name]):.0f} % {sense} than its accelerometer tells, where"
        f" {100.0 * SCALE_SD:g} % are expected: the battery falls and no voltage tells how far, or thrust, mass or attitudes"
        " are wrong; neither drag nor wind is told. A longer flight, whose voltage falls by over"
        f" {100.0 * SAG:.0f} %, would help."
    )


def _begun(linear: Fit) -> Array:
    """Return a start with half of the drag square: at 3 m/s as much as the linear half."""
    parameters = linear.problem.parameters
    theta = linear.theta.copy()
    theta[: len(DRAGS)] -= math.log(2.0)
    across = float(np.exp(theta[:2]).mean())
    assert parameters.items[len(DRAGS)].flight is not None
    return np.insert(theta, len(DRAGS), math.log(max(across, 1e-3) / 3.0))


def velocity_errors(found: AirDrag, held: Sequence[AirStretch], base: Vehicle) -> dict[str, tuple[float, ...]]:
    """Return errors of velocity, as of `AirDrag.velocity`; a flight's wind and lean count in its own parts only.

    Args:
        found: Of drag.
        held: What judges: what no fit saw, or what was fitted.
        base: Whose gravity counts.
    """
    errors: dict[str, list[Array]] = {"hold": [], "without": [], "fitted": []}
    items = found.fit.problem.parameters.items
    for stretch in held:
        try:
            windows = air_windows(stretch.flight, stretch.motion, WINDOWS)
        except AirworthyError:
            # Half a second of it has no poses throughout: nothing of it judges, and the others do.
            continue
        flown = flown_air(windows, stretch.motion, stretch.plant, base.gravity)
        number = found.names.index(stretch.flight.name) if stretch.flight.name in found.names else None
        of = {}
        for k, item in enumerate(items):
            if item.flight is None:
                of[item.name] = np.array([math.exp(found.fit.theta[k])])
            elif item.flight == (number or 0):
                of[item.name] = np.array([0.0 if number is None else found.fit.theta[k]])
        still = of | {name: np.array([0.0]) for name in (*DRAGS, SQUARE) if name in of}
        at = [round(h / windows.step) for h in HORIZONS]
        errors["hold"].append((flown.velocity[:, :1] - flown.velocity)[:, at])
        errors["without"].append(air_errors(flown, still)[0][:, at, :3])
        errors["fitted"].append(air_errors(flown, of)[0][:, at, :3])
    if not errors["hold"]:
        return {}
    joined = {name: np.concatenate(parts) for name, parts in errors.items()}
    return {name: tuple(float(v) for v in np.sqrt((e**2).sum(axis=-1).mean(axis=0))) for name, e in joined.items()}


# ---- What follows ------------------------------------------------------------------------------------------------------------


def with_drag(vehicle: Vehicle, found: AirDrag) -> Vehicle:
    """Return a vehicle with the drag that logs told; what they did not tell along an axis stays.

    Drag that goes with rotor speeds, at hubs or along single axes gives way: what was fitted is all of it.

    Args:
        vehicle: Whose mass counts.
        found: By its logs.
    """
    if not found.told:
        return vehicle
    old, square = vehicle.drag, vehicle.mass * found.value(SQUARE) if found.square else 0.0

    def axes(told: float | None, before: tuple[float, float, float]) -> tuple[float, float, float]:
        row = [
            (vehicle.mass * found.value(name) if told is None else told) if name in found.told else before[k]
            for k, name in enumerate(DRAGS)
        ]
        return (row[0], row[1], row[2])

    drag: Drag = replace(
        old,
        linear=axes(None, old.linear),
        quadratic_norm=axes(square, old.quadratic_norm),
        quadratic_axis=axes(0.0, old.quadratic_axis),
        rotor_speed=axes(0.0, old.rotor_speed),
    )
    return replace(vehicle, drag=drag, rotors=tuple(_without_hub(rotor, found) for rotor in vehicle.rotors))


def _without_hub(rotor: Rotor, found: AirDrag) -> Rotor:
    across, along = rotor.hub_drag
    return replace(
        rotor,
        hub_drag=(0.0 if {"drag_x", "drag_y"} & set(found.told) else across, 0.0 if "drag_z" in found.told else along),
    )


def without_drag(flight: FlightSignals, motion: FlightMotion, found: AirDrag) -> FlightSignals:
    """Return a flight whose accelerometer reads what it would without the drag that was found.

    Args:
        flight: As it was read.
        motion: Of the flight.
        found: Of drag; the wind of a flight that was not fitted is not known, and taken as none.
    """
    wind, time = np.zeros(3), flight.force.time
    if flight.name in found.names:
        number = found.names.index(flight.name)
        wind[:2] = [found.fit.theta[found.place(name, number)] for name in ("wind_x", "wind_y")]
    air = rotate_inverse(motion.attitudes(time), motion.velocity.mean(time, AIR_WIDTH) - wind)
    strength = np.array([found.value(name) if name in found.told else 0.0 for name in DRAGS])
    if found.square:
        strength = strength + found.value(SQUARE) * np.linalg.norm(air, axis=-1, keepdims=True)
    # The sensor's lean is under two degrees: of a force that is a tenth of gravity, nothing.
    return replace(flight, force=Readings(time, flight.force.values + strength * air), felt=flight.force)
