"""Autopilots by the word that names them, made for a vehicle: what `airworthy fly --pilot px4` and `airworthy serve` share."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from airworthy.benchmarks.fly.job import FlyConfig, FlyResult, planned, run_fly
from airworthy.benchmarks.fly.scene import place_of, with_course
from airworthy.bridges.ardupilot import ArduPilotPilot
from airworthy.bridges.betaflight import BetaflightPilot, Form, Sticks
from airworthy.bridges.clock import ClockMode
from airworthy.bridges.external_pilot import ExternalPilot, LinkSettings
from airworthy.bridges.px4 import Px4Pilot
from airworthy.bridges.stick_pilot import StickPilot
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.pilots.catalogue import AUTOPILOTS
from airworthy.simulation import Imu
from airworthy.vehicles import Vehicle, named_vehicle

if TYPE_CHECKING:
    from collections.abc import Callable

    from airworthy.bridges.vehicle_sample import VehicleSample

__all__ = ["IMU", "PHYSICS_RATE", "RATES", "autopilot", "fly_autopilot"]

RATES = {"px4": 250.0, "ardupilot": 400.0, "betaflight": 500.0}
"""Samples and commands per second [Hz]: PX4's default of its simulators, the loop of ArduCopter (SCHED_LOOP_RATE), and for
Betaflight what keeps its sticks and gyroscope well ahead of 50 Hz, below which it takes a simulator for stopped."""
CLOCKS: dict[str, ClockMode] = {"px4": "lockstep", "ardupilot": "lockstep", "betaflight": "real"}
"""Betaflight's own loop follows the wall clock, whatever the stamps of its samples are."""
PHYSICS_RATE = 1000.0
"""Steps per second, which all of these divide but 400 Hz, whose commands come every second or third step [Hz]."""
IMU = "bmi088"
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


def fly_autopilot(config: FlyConfig, quiet: bool = True) -> FlyResult:
    """Fly a course, or way-points, with the autopilot that `config.pilot` names, and judge it as any other pilot.

    Rates that nobody changed are the autopilot's, and so is the inertial sensor.

    Args:
        config: As of `run_fly`.
        quiet: Say nothing of where it listens, and show no progress.

    Raises:
        AirworthyError: It did not appear, the vehicle does not fit, or the configuration cannot be flown.
    """
    if config.envs != 1 or len(config.vehicle) != 1:
        raise AirworthyError(f"Pilot {config.pilot!r} is a program outside, which flies one vehicle: leave --envs at 1.")
    if config.dynamics != "rigid":
        raise AirworthyError(f"Pilot {config.pilot!r} commands motors: fly --dynamics rigid.")
    config = _rated(config)
    vehicle = named_vehicle(config.vehicle[0], config.rotors)
    kind = config.pilot.partition(":")[0]
    sticks = _sticks(config, vehicle) if kind == "betaflight" else None
    settings = LinkSettings(patience=config.patience, wait=config.wait, clock=CLOCKS.get(kind, "lockstep"))
    imu = Imu.named(config.imu or IMU)
    with autopilot(config.pilot, vehicle, config.control_rate, settings, imu, config.seed, sticks) as pilot:
        if not quiet:
            print(f"Waiting for {pilot.name} at {pilot.address}.", flush=True)
        pilot.connect()
        result = run_fly(config, quiet, pilot)
        if not quiet:
            print("\n".join(pilot.notes()), end="\n" if pilot.notes() else "")
    return result


def _rated(config: FlyConfig) -> FlyConfig:
    usual = FlyConfig()
    kind = config.pilot.partition(":")[0]
    changes: dict[str, object] = {"imu": config.imu or IMU}
    if config.control_rate == usual.control_rate:
        changes["control_rate"] = RATES.get(kind, usual.control_rate)
    if config.physics_rate == usual.physics_rate:
        changes["physics_rate"] = PHYSICS_RATE
    return replace(config, **changes)  # type: ignore[arg-type]


def _sticks(config: FlyConfig, vehicle: Vehicle) -> StickPilot:
    name, waypoints = with_course(config, place_of(config))
    path, _ = planned(replace(config, course=name, waypoints=waypoints))
    return StickPilot(vehicle, path, config.control_rate)
