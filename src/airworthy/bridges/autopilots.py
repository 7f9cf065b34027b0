"""Autopilots by the word that names them, made for a vehicle: what `airworthy fly --pilot px4` and `airworthy serve` share."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from airworthy.bridges.ardupilot import ArduPilotPilot
from airworthy.bridges.betaflight import BetaflightPilot, Form, Sticks
from airworthy.bridges.clock import ClockMode
from airworthy.bridges.external_pilot import ExternalPilot, LinkSettings
from airworthy.bridges.px4 import Px4Pilot
from airworthy.core.errors import unknown_name
from airworthy.pilots.catalogue import AUTOPILOTS
from airworthy.simulation import Imu
from airworthy.vehicles import Vehicle

if TYPE_CHECKING:
    from collections.abc import Callable

    from airworthy.bridges.vehicle_sample import VehicleSample

__all__ = ["CLOCKS", "IMU", "PHYSICS_RATE", "RATES", "autopilot"]

RATES = {"px4": 250.0, "ardupilot": 1000.0, "betaflight": 500.0}
"""Samples and commands per second [Hz]: PX4's default of its simulators; for ArduCopter, which arms only where its gyroscope
gives 1.8 samples for each of its 400 loops per second, more than that; for Betaflight what keeps its sticks and gyroscope well
ahead of 50 Hz, below which it takes a simulator for stopped."""
CLOCKS: dict[str, ClockMode] = {"px4": "lockstep", "ardupilot": "lockstep", "betaflight": "real"}
"""Betaflight's own loop follows the wall clock, whatever the stamps of its samples are."""
PHYSICS_RATE = 1000.0
"""Steps per second, which all of these divide [Hz]."""
IMU = "bmi088_levelled"
"""Where nobody names an inertial sensor."""


def autopilot(
    word: str,
    vehicle: Vehicle,
    rate: float,
    settings: LinkSettings,
    imu: Imu | None = None,
    seed: int = 0,
    sticks: Callable[[VehicleSample, bool], Sticks] | None = None,
    form: Form = "gazebo",
) -> ExternalPilot:
    """Return the link to an autopilot; it listens from now on.

    Args:
        word: "px4", "ardupilot" or "betaflight", with ":PORT" or ":ADDRESS:PORT" behind it where it is to listen elsewhere.
        vehicle: That it flies.
        rate: Control periods per second [Hz].
        settings: Of the link; an address in the word goes before its own.
        imu: Of the simulator.
        seed: Key of the sensors' noise.
        sticks: Of Betaflight.
        form: Of Betaflight.

    Raises:
        UnknownNameError: There is no such autopilot.
        AirworthyError: The vehicle does not fit, or the port is taken.
    """
    kind, _, address = word.partition(":")
    settings = replace(settings, address=address) if address else settings
    if kind == "px4":
        return Px4Pilot(vehicle, rate, settings, imu, seed)
    if kind == "ardupilot":
        return ArduPilotPilot(vehicle, rate, settings, imu, seed)
    if kind == "betaflight":
        return BetaflightPilot(vehicle, rate, settings, imu, seed, sticks=sticks, form=form)
    raise unknown_name("autopilot", kind, AUTOPILOTS, "docs/howto/autopilots.md says how each is started.")
