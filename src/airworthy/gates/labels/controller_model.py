"""The vehicle and its controller as the search flies them: numbers that are the same in every flight of a run."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from airworthy.control.mellinger import COMMAND_MAX, MellingerParameters
from airworthy.control.mellinger_gains import mellinger_parameters, mixer_for
from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.gates.labels.options import SearchOptions
from airworthy.vehicles import Vehicle, VoltageChain, read_vehicle, rotor_thrust
from airworthy.vehicles import vehicle as catalogue_vehicle

__all__ = ["DT", "OPENING", "ControllerModel", "gyro_filter", "hover", "make_controller_model"]


# Source: spec/boundary_predictor sections 9 and 10: dt = 1/500.
DT = 0.002
"""Step of physics and control loop [s]: 500 Hz, as the firmware and the competition."""
# Source: spec/boundary_predictor section 9: controller mass 0.027 (older) / 0.029 (current).
OLD_FIRMWARE_MASS = 0.027
"""Mass in the firmware that the competition compiled [kg]."""
AT_ONCE = 1.0 / DT
"""Rotors that follow faster than this [1/s] follow within a step."""
# Source: spec/boundary_predictor section 11.
OPENING, BAR = 0.4, 0.05
"""Side of a gate's square opening and of its bars' section [m]."""


class ControllerModel(NamedTuple):
    """Build-time constants of the equations; hashable, since a kernel is built for each."""

    control: MellingerParameters
    mixer: tuple[tuple[float, float, float], ...]
    subtract_excess: float
    gyro: tuple[float, float, float] | None
    """b0, a1, a2 of the low-pass of the rates; None: none."""
    chain: VoltageChain | None
    """From commands to rotor speeds; None: commands are shares of the largest thrust."""
    mass: float
    """Nominal [kg]."""
    inertia: tuple[float, float, float]
    """Nominal, principal [kg m^2]."""
    gravity: float
    levers: tuple[tuple[float, float], ...]
    """x and y of each rotor from the centre of mass [m]."""
    spins: tuple[float, ...]
    thrust: tuple[float, float, float]
    torque: tuple[float, float, float]
    speed_range: tuple[float, float]
    """[rad/s]"""
    response: tuple[tuple[float, float], tuple[float, float]] | None
    """(a, b) of rise and fall; None: rotors follow at once."""
    drag_linear: tuple[float, float, float]
    drag_rotor: tuple[float, float, float]
    body: tuple[float, float]
    """Radius and half height of the body's cylinder [m]."""


def make_controller_model(options: SearchOptions) -> ControllerModel:
    """Return the vehicle and its law that options describe.

    Raises:
        AirworthyError: The vehicle is not a quadrotor in X with equal rotors, or cannot hover; or no such name.
    """
    vehicle = read_vehicle(options.vehicle) if options.vehicle.endswith(".toml") else catalogue_vehicle(options.vehicle)
    rotor = vehicle.rotors[0]
    mixer = mixer_for(vehicle)
    if vehicle.motor_state != "speed" or any(r.thrust != rotor.thrust or r.torque != rotor.torque for r in vehicle.rotors):
        raise AirworthyError(
            f"{vehicle.name} has rotors that differ or whose state is a thrust: the search flies four equal ones."
        )
    if rotor.thrust[2] <= 0.0 or any(vehicle.inertia[3:]):
        raise AirworthyError(
            f"{vehicle.name} has no quadratic thrust or no principal axes along its body: the search needs both."
        )
    chain = vehicle.voltage_chain
    mass = options.controller_mass
    if mass is None:
        # The legacy chain and this mass are of one firmware.
        mass = OLD_FIRMWARE_MASS if chain is not None else vehicle.mass
    control = mellinger_parameters(options.gains, mass=mass)
    if chain is None:
        # An ideal map: a newton of command is a newton.
        control = control._replace(thrust_scale=0.25 * COMMAND_MAX / rotor_thrust(rotor, rotor.speed_max))
    made = ControllerModel(
        control=MellingerParameters._make(tuple(map(float, v)) if isinstance(v, tuple) else float(v) for v in control),
        mixer=mixer,
        subtract_excess=float(options.subtract_excess),
        gyro=gyro_filter(options.gyro_cutoff) if options.gyro_cutoff else None,
        chain=chain,
        mass=vehicle.mass,
        inertia=(vehicle.inertia[0], vehicle.inertia[1], vehicle.inertia[2]),
        gravity=vehicle.gravity,
        levers=tuple(
            (r.position[0] - vehicle.center_of_mass[0], r.position[1] - vehicle.center_of_mass[1]) for r in vehicle.rotors
        ),
        spins=tuple(float(r.spin) for r in vehicle.rotors),
        thrust=rotor.thrust,
        torque=rotor.torque,
        speed_range=(max(rotor.speed_min, 0.0), rotor.speed_max),
        response=_response(vehicle) if options.rotor_lag else None,
        drag_linear=vehicle.drag.linear if options.drag else (0.0, 0.0, 0.0),
        drag_rotor=_rotor_drag(vehicle, options),
        body=_body(vehicle),
    )
    _check_lift(vehicle, made, options)
    return made


def _check_lift(vehicle: Vehicle, controller_model: ControllerModel, options: SearchOptions) -> None:
    heaviest = controller_model.mass + options.randomisation.mass
    # The heaviest draw must be liftable, or labels would tell of the draw instead of the gate.
    most = 4.0 * float(_thrust_of(controller_model, np.array(controller_model.speed_range[1])))
    if options.randomisation.mass >= controller_model.mass or options.randomisation.inertia >= min(controller_model.inertia):
        raise AirworthyError(f"The randomisation would leave {vehicle.name} without mass or inertia: make it smaller.")
    if most <= heaviest * controller_model.gravity:
        raise AirworthyError(
            f"{vehicle.name} cannot hover with {1e3 * heaviest:.1f} g: its rotors lift "
            f"{1e3 * most / controller_model.gravity:.1f} g."
        )


def _response(vehicle: Vehicle) -> tuple[tuple[float, float], tuple[float, float]] | None:
    response = vehicle.rotors[0].response
    return None if at_once(vehicle) else (response.rise, response.fall)


def at_once(vehicle: Vehicle) -> bool:
    """Tell whether rotors follow their commands within a step of the labels' flights."""
    response = vehicle.rotors[0].response
    return all(a >= AT_ONCE for a, _ in (response.rise, response.fall))


def _rotor_drag(vehicle: Vehicle, options: SearchOptions) -> tuple[float, float, float]:
    if options.optional_drag:
        level, upward = (vehicle.extra.get(f"optional_drag_coeff_{axis}") for axis in ("xy", "z"))
        if level is None or upward is None:
            raise AirworthyError(f"{vehicle.name} has no optional drag: leave it off, or fly cf2x_scg_iros2022.")
        return float(level), float(level), float(upward)
    if not options.drag:
        return 0.0, 0.0, 0.0
    # The labels' model has no hubs: their drag is taken at the body's own air speed.
    across, along = vehicle.rotors[0].hub_drag
    x, y, z = vehicle.drag.rotor_speed
    return x + across, y + across, z + along


def _body(vehicle: Vehicle) -> tuple[float, float]:
    """Radius and half height of an upright cylinder around the body."""
    size = vehicle.body.size
    shape: Literal["sphere", "box", "cylinder"] = vehicle.body.shape
    return (math.hypot(size[0], size[1]) if shape == "box" else size[0]), size[2]


def gyro_filter(cutoff: float, rate: float = 1.0 / DT) -> tuple[float, float, float]:
    """Return the second-order Butterworth low-pass by the bilinear transform with prewarping: b0 and a1, a2 (b1 = 2 b0, b2 =
    b0).

    Args:
        cutoff: [Hz], below half the rate.
        rate: Samples per second [Hz].
    """
    warped = math.tan(math.pi * cutoff / rate)
    scale = 1.0 + math.sqrt(2.0) * warped + warped * warped
    return (
        warped * warped / scale,
        2.0 * (warped * warped - 1.0) / scale,
        (1.0 - math.sqrt(2.0) * warped + warped * warped) / scale,
    )


def hover(controller_model: ControllerModel, mass: ArrayLike) -> tuple[Array, Array]:
    """Return the rotor speed [rad/s] that carries a mass [kg], and the height integral [m s] at which the controller asks for
    it.

    The integral stays within its clamp: what it cannot hold, the height error does.
    """
    weight = np.asarray(mass, dtype=np.float64) * controller_model.gravity
    speed = np.clip(_speed_for(controller_model, 0.25 * weight), *controller_model.speed_range)
    p = controller_model.control
    missing = _command_for(controller_model, speed) / p.thrust_scale - p.mass * p.gravity
    gain, most = p.ki[2], p.integral_max[2]
    return speed, np.clip(missing / gain, -most, most) if gain > 0.0 else np.zeros_like(speed)


def _thrust_of(controller_model: ControllerModel, speed: Array) -> Array:
    c0, c1, c2 = controller_model.thrust
    return c0 + speed * (c1 + c2 * speed)


def _speed_for(controller_model: ControllerModel, thrust: Array) -> Array:
    c0, c1, c2 = controller_model.thrust
    return (np.sqrt(np.maximum(c1 * c1 + 4.0 * c2 * (thrust - c0), 0.0)) - c1) / (2.0 * c2)


def _command_for(controller_model: ControllerModel, speed: Array) -> Array:
    chain = controller_model.chain
    if chain is None:
        return (
            COMMAND_MAX
            * _thrust_of(controller_model, speed)
            / _thrust_of(controller_model, np.array(controller_model.speed_range[1]))
        )
    volts = (speed - chain.speed_offset) / chain.speed_slope * chain.supply / COMMAND_MAX
    b, a = chain.volts_linear, chain.volts_quadratic
    # On the rising branch; where no charge gives the volts, its top.
    grams = 2.0 * volts / (b + np.sqrt(np.maximum(b * b + 4.0 * a * volts, 0.0)))
    return grams / chain.command_to_grams
