"""Step tests in simulation: what a vehicle's rotors really accelerate, and whether it hovers, steps and turns.

Both fly every vehicle they are given in one batch (FlyingTrust sections 2 and 3.3).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from airworthy.control.levels import ControlConfig
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import to_matrix, yaw_of
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import Indicators, Vehicle, control_effectiveness, hover_speed, inertia_matrix
from airworthy.vehicles.record import Drag

__all__ = ["flight_check", "flight_checks", "measured_indicators"]


MEASURE_RATE = 10_000.0
"""Physics steps per second of the acceleration tests [Hz]."""
MEASURE_WINDOW = 0.002
"""Time over which accelerations are measured [s]: at 2000 rad/s^2 a body turns by 4 mrad, too little for gyroscopic moments."""

HOVER_TIME, STEP_TIME, HOLD_TIME = 5.0, 5.0, 1.0
"""Flight check [s]: how long hover is watched, when a step must have settled, and how long it must then stay so."""
HOVER_DRIFT = 0.1
"""[m]"""
STEP_LENGTH, STEP_ANGLE = 2.0, math.pi / 2.0
"""Set-point steps [m, rad]."""
BAND = 0.05
"""A step has settled where at most this share of it is left; 0.1 m, 4.5 degrees."""
TILT_MAX = math.radians(80.0)


# ---- accelerations ---------------------------------------------------------------------------------------------------


def measured_indicators(
    vehicles: Sequence[Vehicle], motor_lag: bool = False, window: float = MEASURE_WINDOW
) -> list[Indicators]:
    """Return kinodynamic indicators measured by step tests: full collective, full roll and full yaw, the latter both ways.

    Rotors go between `speed_min` and `speed_max` as their control effectiveness says, so the figures to compare with are those
    of `indicators(vehicle, from_rest=False)`. Drag, noise and disturbances are off, and bodies start at rest, where there are
    no gyroscopic moments. The weaker of both directions counts.

    Args:
        vehicles: What to test, all in one batch.
        motor_lag: Rotors start from hover and follow by their own response, so a longer `window` tells what agility the
            motors leave; else they jump to the commanded state.
        window: Time over which accelerations are averaged [s].

    Raises:
        AirworthyError: If the window is shorter than a physics step, or with `motor_lag` a vehicle cannot hover.
    """
    steps = round(window * MEASURE_RATE) if math.isfinite(window) else 0
    if steps < 1:
        raise AirworthyError(f"The window of a step test is {window} s; expected at least {1.0 / MEASURE_RATE:g} s.")
    bare = [_without_air(model) for model in vehicles]
    if not bare:
        return []
    patterns = [_full_patterns(model) for model in bare]
    tests = len(patterns[0])
    # Published gains need no hover trim; they are never used, as commands are rotor states.
    config = SimulatorConfig(
        physics_rate=MEASURE_RATE,
        wrench_noise=False,
        disturbance=False,
        control=ControlConfig(gains="lee"),
        level="rotor_speed",
    )
    simulator = Simulator([model for model in bare for _ in range(tests)], config)
    command = _padded([row for pattern in patterns for row in pattern], simulator.rotor_count)
    if motor_lag:
        start = [hover_speed(model) for model in bare for _ in range(tests)]
        simulator.reset(rotor_speed=_padded(start, simulator.rotor_count))
    else:
        simulator.reset(rotor_speed=command)
    simulator.advance(steps, command)
    elapsed = steps / MEASURE_RATE
    up = simulator.velocity[:, 2].astype(float).reshape(-1, tests)[:, 0] / elapsed
    turn = simulator.rate.astype(float).reshape(-1, tests, 3) / elapsed
    return [_read_off(model, *values) for model, *values in zip(bare, up, turn, strict=True)]


def _without_air(model: Vehicle) -> Vehicle:
    """Return the vehicle without any force of the air but its rotors' thrust in hover: of the body and at the hubs."""
    rotors = tuple(replace(r, hub_drag=(0.0, 0.0), flapping=0.0, translational_lift=0.0) for r in model.rotors)
    return replace(model, drag=Drag(), rotors=rotors)


def _full_patterns(model: Vehicle) -> Array:
    """Rotor states that push hardest: up, roll left and right, yaw left and right, shape (5, rotor_count)."""
    matrix = control_effectiveness(model)
    turn = np.linalg.solve(inertia_matrix(model), matrix[3:])
    low = np.array([rotor.speed_min for rotor in model.rotors])
    high = np.array([rotor.speed_max for rotor in model.rotors])
    idle = np.clip(0.0, low, high)
    patterns = []
    for row in (matrix[2], turn[0], -turn[0], turn[2], -turn[2]):
        nothing = np.abs(row) <= 1e-9 * np.abs(row).max()
        patterns.append(np.where(nothing, idle, np.where(row > 0.0, high, low)))
    return np.array(patterns)


def _padded(rows: Iterable[Array], width: int) -> Array:
    return np.array([np.pad(row, (0, width - len(row))) for row in rows])


def _read_off(model: Vehicle, up: float, turn: Array) -> Indicators:
    """Return the indicators from the upward acceleration [m/s^2] and the angular ones [rad/s^2] of the five tests, shape (5,
    3).
    """
    ratio = (float(up) + model.gravity) / model.gravity if model.gravity > 0.0 else math.inf
    return Indicators(ratio, float(min(turn[1, 0], -turn[2, 0])), float(min(turn[3, 2], -turn[4, 2])))


# ---- flights ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Manoeuvre:
    name: str
    goal: tuple[float, float, float, float]
    """Position [m] and yaw [rad] asked for at level "position", from rest at the origin."""


_MANOEUVRES = (
    _Manoeuvre("hover", (0.0, 0.0, 0.0, 0.0)),
    _Manoeuvre(f"{STEP_LENGTH:g} m step along x", (STEP_LENGTH, 0.0, 0.0, 0.0)),
    _Manoeuvre(f"{STEP_LENGTH:g} m step along y", (0.0, STEP_LENGTH, 0.0, 0.0)),
    _Manoeuvre(f"{STEP_LENGTH:g} m step along z", (0.0, 0.0, STEP_LENGTH, 0.0)),
    _Manoeuvre(f"{math.degrees(STEP_ANGLE):g} degree yaw step", (0.0, 0.0, 0.0, STEP_ANGLE)),
)


def flight_check(vehicle: Vehicle) -> list[str]:
    """Fly one vehicle for gross misbehaviour; see `flight_checks`."""
    return flight_checks([vehicle])[0]


def flight_checks(vehicles: Sequence[Vehicle]) -> list[list[str]]:
    """Fly each vehicle with the default position controller and say what goes wrong.

    Hover stays within 0.1 m for 5 s; steps of 2 m along each axis and of 90 degrees in yaw settle within 5 s, that is: from
    then on, for a second, no more than 5 % is left of them; steps along an axis never tilt the body beyond 80 degrees. A
    vehicle's own noise and disturbances are on.

    Returns:
        Reasons per vehicle, one sentence each; empty where it flies well.
    """
    reasons: list[list[str]] = [_hover_fault(model) for model in vehicles]
    able = [index for index, faults in enumerate(reasons) if not faults]
    if not able:
        return reasons
    config = SimulatorConfig(level="position")
    simulator = Simulator([vehicles[index] for index in able for _ in _MANOEUVRES], config)
    position, attitude = _fly(simulator, np.tile([m.goal for m in _MANOEUVRES], (len(able), 1)))
    for env, (index, manoeuvre) in enumerate((index, manoeuvre) for index in able for manoeuvre in _MANOEUVRES):
        if simulator.diverged[env]:
            reasons[index].append(f"the {manoeuvre.name} ends out of control.")
        else:
            reasons[index] += _faults(manoeuvre, position[:, env], attitude[:, env], config.control_rate)
    return reasons


def _hover_fault(model: Vehicle) -> list[str]:
    try:
        hover_speed(model)
    except AirworthyError as error:
        return [str(error)]
    return []


def _fly(simulator: Simulator, goals: Array) -> tuple[Array, Array]:
    """Positions (step, env, 3) and attitudes (step, env, 4) at the ends of all control steps."""
    count = round((STEP_TIME + HOLD_TIME) * simulator.config.control_rate)
    position, attitude = np.empty((count, len(goals), 3)), np.empty((count, len(goals), 4))
    simulator.set_command(goals)
    for step in range(count):
        simulator.step()
        position[step], attitude[step] = simulator.position, simulator.attitude
    return position, attitude


def _faults(manoeuvre: _Manoeuvre, position: Array, attitude: Array, rate: float) -> list[str]:
    """Return what is wrong with one flight: positions (step, 3) [m], attitudes (step, 4), steps per second."""
    distance = np.linalg.norm(position - np.array(manoeuvre.goal[:3]), axis=1)
    if not any(manoeuvre.goal):
        drift = float(distance[: round(HOVER_TIME * rate)].max())
        return [f"in hover it strays {drift:.2g} m, and {HOVER_DRIFT:g} m is the limit."] if drift > HOVER_DRIFT else []
    late = slice(round(STEP_TIME * rate) - 1, None)
    if manoeuvre.goal[3] != 0.0:
        error = yaw_of(attitude) - manoeuvre.goal[3]
        left = math.degrees(float(np.abs(np.arctan2(np.sin(error), np.cos(error)))[late].max()))
        return _unsettled(manoeuvre, left, math.degrees(BAND * STEP_ANGLE), "degrees")
    tilt = float(np.arccos(np.clip(to_matrix(attitude)[:, 2, 2], -1.0, 1.0)).max())
    faults = _unsettled(manoeuvre, float(distance[late].max()), BAND * STEP_LENGTH, "m")
    if tilt > TILT_MAX:
        limit = math.degrees(TILT_MAX)
        faults.append(f"the {manoeuvre.name} tilts it by {math.degrees(tilt):.0f} degrees, and {limit:.0f} is the limit.")
    return faults


def _unsettled(manoeuvre: _Manoeuvre, left: float, limit: float, unit: str) -> list[str]:
    if left <= limit:
        return []
    return [
        f"the {manoeuvre.name} has not settled after {STEP_TIME:g} s: {left:.2g} {unit} are left, and {limit:.2g} is the limit."
    ]
