"""What a fit of drag predicts: velocity and specific force over windows, from identified thrust and measured motion.

Thrust of the rotors and the attitude of the vehicle are known; what its velocity is after a while, and what an accelerometer
reads meanwhile, then tell the force of the air, linear or square in the speed through it. The wind of a flight, a lean of its
attitudes against the rotors' axes, the accelerometer's bias, a scale of the thrust and how late velocities come are each
flight's own (specification identify, 5 and 6.3: windows of 0.5 s). Attitudes are taken as measured: predicted ones would be off
by what pushes of air turned the vehicle, and gravity along them would count as drag.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.frames import rotate, rotate_inverse
from airworthy.vehicles.identification.air_speed.motion import FlightMotion, moved_spans
from airworthy.vehicles.identification.fitting.parameters import Parameter, Parameters
from airworthy.vehicles.identification.fitting.refine import BLOCK_STEPS, FitProblem
from airworthy.vehicles.identification.prediction.plant import Plant
from airworthy.vehicles.identification.prediction.predict import Windows, crossed, cut_windows, rotor_states, thrusts
from airworthy.vehicles.identification.prediction.signals import FlightSignals
from airworthy.vehicles.record import Vehicle

__all__ = ["SQUARE", "AirProblem", "FlownAir", "air_parameters", "air_windows", "flown_air"]

LENGTH = 0.5
"""Of windows [s]."""
AIR_WIDTH = 0.05
"""Over which velocities are averaged [s]."""
TURN_WIDTH = 0.02
"""Over which angular acceleration is told [s]."""
SQUARE = "drag_square"
"""Drag that is square in the air speed, over mass [1/m]."""
DRAG_MEAN, DRAG_SD = 0.3, 1.0
"""Of linear drag over mass before any log [1/s], and deviation of its logarithm: of published quadrotors 0.15 to 0.6."""
SQUARE_MEAN, SQUARE_SD = 0.03, 1.2
"""Of square drag over mass [1/m]: half of air's density, times area and coefficient, over the mass; 0.01 for two kilograms, 0.1
for thirty grams."""
WIND_SD = 2.0
"""Of each axis of a flight's wind across the ground [m/s]; a breeze. Upwards, hardly any."""
LEAN_SD, SCALE_SD, LATE_SD, BIAS_SD = 0.03, 0.02, 0.03, 0.1
"""Of attitudes against the rotors' axes [rad], of thrust [1], of velocities [s], of the accelerometer [m/s^2]."""
NUISANCES = {
    "wind_x": WIND_SD,
    "wind_y": WIND_SD,
    "lean_x": LEAN_SD,
    "lean_y": LEAN_SD,
    "lift": SCALE_SD,
    "late": LATE_SD,
    "bias_x": BIAS_SD,
    "bias_y": BIAS_SD,
    "bias_z": BIAS_SD,
}


@dataclass(frozen=True, eq=False)
class FlownAir:
    """What is known throughout the windows of one flight."""

    push: Array
    """Specific force of the rotors, body axes [m/s^2], (windows, steps + 1, 3)."""
    felt: Array
    """Specific force at the centre of mass as the sensor shows it, body axes [m/s^2], (windows, steps + 1, 3)."""
    attitude: Array
    """Body to world, x, y, z, w, (windows, steps + 1, 4)."""
    velocity: Array
    """In the world [m/s], (windows, steps + 1, 3)."""
    along: Array
    """The same in body axes [m/s], (windows, steps + 1, 3)."""
    step: float
    """[s]"""
    gravity: float
    """[m/s^2]"""


def air_windows(flight: FlightSignals, motion: FlightMotion, count: int) -> Windows:
    """Return windows of a flight in which attitude and velocity are known.

    Args:
        flight: Signals.
        motion: Of the flight.
        count: At most so many.
    """
    return cut_windows(replace(flight, spans=moved_spans(motion, flight.spans)), count, LENGTH)


def flown_air(windows: Windows, motion: FlightMotion, plant: Plant, gravity: float) -> FlownAir:
    """Return what is known throughout windows.

    Args:
        windows: Of a flight.
        motion: Of that flight.
        plant: One set of parameters, as identified.
        gravity: [m/s^2]
    """
    time = windows.start[:, None] + windows.step * np.arange(windows.steps + 1)
    thrust = thrusts(plant, rotor_states(plant, windows))[0, :, ::2]
    push = thrust @ plant.force[0].T
    gyro, lever = windows.flight.gyro, plant.lever[0]
    turning = (gyro.mean(time + 0.5 * TURN_WIDTH, TURN_WIDTH) - gyro.mean(time - 0.5 * TURN_WIDTH, TURN_WIDTH)) / TURN_WIDTH
    rate = windows.rate
    pushed = crossed(turning, lever) + rate * (rate @ lever)[..., None] - lever * (rate**2).sum(axis=-1, keepdims=True)
    read = windows.flight.force.mean(time + float(plant.force_delay[0]), windows.step) - plant.force_offset[0]
    felt = read + crossed(plant.tilt[0], read) - pushed
    attitude, velocity = motion.attitudes(time), motion.velocity.mean(time, AIR_WIDTH)
    return FlownAir(push, felt, attitude, velocity, rotate_inverse(attitude, velocity), windows.step, gravity)


def air_parameters(base: Vehicle, flights: int, square: bool) -> Parameters:
    """Return what is fitted, with priors.

    Args:
        base: Whose mass counts.
        flights: How many.
        square: Whether drag is square in the air speed, too.
    """
    items = [Parameter(f"drag_{axis}", float(np.log(DRAG_MEAN)), DRAG_SD, "log") for axis in "xyz"]
    items += [Parameter(SQUARE, float(np.log(SQUARE_MEAN)), SQUARE_SD, "log")] if square else []
    items += [Parameter(name, 0.0, sd, flight=k) for k in range(flights) for name, sd in NUISANCES.items()]
    return Parameters(base, 1.0, tuple(items), (True,) * len(items))


@dataclass(frozen=True, eq=False)
class AirProblem(FitProblem):
    """Errors of velocity [m/s] and specific force [m/s^2] of windows, by drag and nuisances."""

    flown: tuple[FlownAir, ...] = ()
    """Of each flight."""

    @property
    def levelled(self) -> tuple[bool, ...]:
        """None: what is fitted to is no force of rotors."""
        return (False,) * len(self.windows)

    def errors(self, theta: Array, flight: int) -> Array:
        """Return errors of a flight's windows in means over blocks, (sets, windows, blocks, 6): velocity, then force."""
        both = air_errors(self.flown[flight], self._named(theta, flight))[:, :, 1:]
        blocks = both.shape[2] // BLOCK_STEPS
        cut = both[:, :, : blocks * BLOCK_STEPS]
        return np.asarray(cut.reshape(*cut.shape[:2], blocks, BLOCK_STEPS, 6).mean(axis=3))

    def _named(self, theta: Array, flight: int) -> dict[str, Array]:
        """Return values by name, (sets,) each."""
        found = {}
        for k, item in enumerate(self.parameters.items):
            if item.flight in (None, flight):
                found[item.name] = np.exp(np.minimum(theta[:, k], 50.0)) if item.scale == "log" else theta[:, k]
        return found


def air_errors(flown: FlownAir, of: dict[str, Array]) -> Array:
    """Return errors of velocity and specific force at each step, (sets, windows, steps + 1, 6).

    Args:
        flown: What is known of the windows.
        of: Values by name, (sets,) each.
    """
    sets = len(of["drag_x"])

    def vector(*names: str) -> Array:
        columns = [of[name] if name else np.zeros(sets) for name in names]
        return np.stack(columns, axis=-1)[:, None, None]

    wind = vector("wind_x", "wind_y", "")
    air = (
        flown.along - rotate_inverse(flown.attitude, wind)
        if np.any(wind)
        else np.broadcast_to(flown.along, (sets, *flown.along.shape))
    )
    strength = vector("drag_x", "drag_y", "drag_z")
    if SQUARE in of:
        strength = strength + of[SQUARE][:, None, None, None] * np.linalg.norm(air, axis=-1, keepdims=True)
    force = (1.0 + of["lift"])[:, None, None, None] * flown.push - strength * air
    lean = vector("lean_x", "lean_y", "")
    pushed = rotate(flown.attitude, force + crossed(lean, force)) - np.array([0.0, 0.0, flown.gravity])
    gained = 0.5 * flown.step * (pushed[:, :, 1:] + pushed[:, :, :-1])
    velocity = np.concatenate([np.zeros_like(gained[:, :, :1]), np.cumsum(gained, axis=2)], axis=2)
    velocity += flown.velocity[:, :1] - of["late"][:, None, None, None] * (pushed - pushed[:, :, :1])
    return np.concatenate([velocity - flown.velocity, force + vector("bias_x", "bias_y", "bias_z") - flown.felt], axis=-1)


def problem_of(
    flights: Sequence[FlightSignals], motions: Sequence[FlightMotion], plants: Sequence[Plant], base: Vehicle, count: int
) -> AirProblem:
    """Return the problem of linear drag.

    Args:
        flights: What is fitted.
        motions: Of each.
        plants: Of each, as identified.
        base: Whose gravity counts.
        count: Windows of each flight, at most.
    """
    windows = tuple(air_windows(flight, motion, count) for flight, motion in zip(flights, motions, strict=True))
    flown = [flown_air(w, m, p, base.gravity) for w, m, p in zip(windows, motions, plants, strict=True)]
    return AirProblem(air_parameters(base, len(flights), False), windows, (True,) * 6, flown=tuple(flown))
