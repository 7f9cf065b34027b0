"""What a user chooses about control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class ControlConfig:
    """Gains, allocation and variants of the control laws."""

    gains: str = "auto"
    """Geometric gains: "auto" derives them from the vehicle, else the name of a set."""
    rate_gains: str = "flightgoggles"
    """Gains of the FlightGoggles rate loop."""
    mellinger_gains: str = "mellinger_firmware"
    """Gains of the Mellinger law."""
    allocation: Literal["bounded", "pseudo_inverse"] = "bounded"
    """From wrench to rotor thrusts."""
    acceleration_frame: Literal["vehicle", "world"] = "vehicle"
    """Frame of commands at level "acceleration"."""
    published_filter: bool = False
    """Discretise the rate loop's low-pass by backward Euler, as published, instead of exactly."""
    overflow: Literal["subtract", "clip"] = "subtract"
    """Crazyflie motor commands above full: take the excess from all motors, or clip each."""
    voltage_chain: bool = True
    """Crazyflie motor commands go through the vehicle's voltage chain where it has one."""
    rotor_lead: float = 0.0
    """Factor by which geometric and SI Mellinger laws hurry slow rotors, from their measured state; 1: none, 0: as much as a
    lag above 0.03 s asks for, at most 4 (none with a named gain set)."""
    drag_feed_forward: bool = True
    """Tracking laws make up for the drag that the believed vehicle has at the reference velocity."""
