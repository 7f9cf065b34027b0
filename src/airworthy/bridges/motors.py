"""From an autopilot's motor commands to the rotors of a vehicle: which motor is which rotor, and what a command is worth."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.files import packaged_toml
from airworthy.vehicles import Vehicle
from airworthy.vehicles.check import rotor_thrust
from airworthy.vehicles.trim import rotor_state_for_thrust

__all__ = ["AutopilotMotors", "frame_for", "frame_names", "motor_map"]


@dataclass(frozen=True)
class AutopilotMotors:
    """The rotors of one vehicle in an autopilot's order."""

    vehicle: Vehicle
    rotors: tuple[int, ...]
    """Rotor of each motor."""
    thrust_factor: float = 1.0
    """f of thrust / largest thrust = f u^2 + (1 - f) u, for a command u in [0, 1] (PX4's THR_MDL_FAC, ArduPilot's
    MOT_THST_EXPO): 1, a command is a share of the highest speed; 0, of the largest thrust."""

    def rotor_states(self, commands: ArrayLike) -> Array:
        """Return rotor states [rad/s; N where the vehicle's motor state is thrust], (rotor_count,), in the vehicle's order.

        Args:
            commands: In the autopilot's order, at least one for each rotor; taken into [0, 1].
        """
        u = np.clip(np.asarray(commands, np.float64)[: len(self.rotors)], 0.0, 1.0)
        share = self.thrust_factor * u * u + (1.0 - self.thrust_factor) * u
        states = np.zeros(len(self.rotors))
        for rotor_index, part in zip(self.rotors, share, strict=True):
            rotor = self.vehicle.rotors[rotor_index]
            wanted = float(part) * rotor_thrust(rotor, rotor.speed_max)
            states[rotor_index] = min(max(rotor_state_for_thrust(rotor, wanted), rotor.speed_min), rotor.speed_max)
        return states


def frame_names(autopilot: str) -> list[str]:
    """Return the frames of an autopilot that have a map."""
    return list(_maps()[autopilot])


def frame_for(vehicle: Vehicle, autopilot: str, usual: str = "quad_x") -> str:
    """Return the frame of an autopilot for a vehicle's number of rotors; the usual one where no map has as many."""
    fitting = [name for name, frame in _maps()[autopilot].items() if len(frame["motors"]) == vehicle.rotor_count]
    return usual if usual in fitting or not fitting else fitting[0]


def _maps() -> dict[str, dict[str, dict[str, list[list[str]]]]]:
    return packaged_toml("airworthy.bridges", "motor_maps.toml")


def motor_map(vehicle: Vehicle, autopilot: str, frame: str = "quad_x", thrust_factor: float = 1.0) -> AutopilotMotors:
    """Return which rotor each of an autopilot's motors is.

    Args:
        vehicle: Whose rotors are to be at the frame's corners.
        autopilot: "px4", "ardupilot" or "betaflight".
        frame: Of the autopilot.
        thrust_factor: As in `AutopilotMotors`.

    Raises:
        AirworthyError: The vehicle has other rotors than the frame, or they turn otherwise.
    """
    known = _maps()[autopilot]
    if frame not in known:
        raise unknown_name(f"frame of {autopilot}", frame, known, "They are in bridges/motor_maps.toml.")
    motors = known[frame]["motors"]
    corners, turns = _corners(vehicle), [_turn(rotor.spin) for rotor in vehicle.rotors]
    if sorted(corners) != sorted(corner for corner, _ in motors):
        raise AirworthyError(
            f"The vehicle {vehicle.name!r} has rotors {_listed(corners)}; {autopilot} {frame} has"
            f" {_listed(corner for corner, _ in motors)}: fly a vehicle of this shape, such as x500."
        )
    rotors = tuple(corners.index(corner) for corner, _ in motors)
    for number, (corner, turn) in enumerate(motors, start=1):
        found = turns[rotors[number - 1]]
        if found != turn:
            raise AirworthyError(
                f"The {corner} rotor of vehicle {vehicle.name!r} turns {found}, motor {number} of {autopilot} {frame} turns"
                f" {turn}: yaw would run away; fly a vehicle whose rotors turn so, such as x500."
            )
    return AutopilotMotors(vehicle, rotors, thrust_factor)


def _corners(vehicle: Vehicle) -> list[str]:
    place = np.array([rotor.position for rotor in vehicle.rotors])
    place = place - place.mean(axis=0)
    # A rotor on an axis has no corner: a plus frame is told from an x by it.
    off = 0.2 * np.abs(place[:, :2]).max()
    return [_along(x, off) + " " + _across(y, off) for x, y in place[:, :2]]


def _along(x: float, off: float) -> str:
    return "front" if x > off else "rear" if x < -off else "middle"


def _across(y: float, off: float) -> str:
    return "left" if y > off else "right" if y < -off else "centre"


def _turn(spin: int) -> str:
    # The airframe is turned against its propeller, and z points up: a propeller that turns ccw pushes the airframe cw.
    return "ccw" if spin < 0 else "cw"


def _listed(corners: Iterable[str]) -> str:
    return ", ".join(corners)
