"""Our simulator as a server: a vehicle on the ground that an autopilot of the user's takes off with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np

from airworthy import __version__
from airworthy.bridges.autopilots import IMU, PHYSICS_RATE, RATES, autopilot
from airworthy.bridges.betaflight import BetaflightPilot, Form
from airworthy.bridges.betaflight_form import FormVerdict, find_form, hand_sticks
from airworthy.bridges.clock import ClockMode
from airworthy.bridges.external_pilot import LinkSettings
from airworthy.bridges.sockets import LOOPBACK, AutopilotFailure
from airworthy.bridges.stick_pilot import StickPilot
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.idle_options import IdleRule, refuse_idle
from airworthy.core.schema import SEED, Bound, check_fields
from airworthy.pilots import FlightPlan, FlightRun, fly
from airworthy.sensors.navigation.geodesy import Home
from airworthy.simulation import Ground, Imu, Simulator, SimulatorConfig, write_flight
from airworthy.trajectories import Limits, Trajectory, from_waypoints
from airworthy.vehicles import Vehicle, named_vehicle

__all__ = ["SERVE_RULES", "ServeConfig", "Served", "self_test", "serve", "stand"]


HOVER_HEIGHT = 1.5
"""Ours, of a Betaflight, above where it stood: clear of the ground, and low enough to fall from [m]."""


SERVE_RULES = (
    IdleRule(("factor",), lambda config: config.clock != "scaled", "with a clock that is not scaled", "choose --clock scaled"),
    IdleRule(("form", "self_test"), lambda config: config.autopilot != "betaflight", "for an autopilot that is no Betaflight"),
    IdleRule(
        ("magnetometer", "barometer", "gnss"),
        lambda config: config.autopilot != "px4",
        "for ArduPilot and Betaflight, which make these sensors themselves, from the true position",
    ),
    IdleRule(
        ("home",),
        lambda config: config.autopilot == "ardupilot",
        "for ArduPilot, whose world's origin is its own home",
        "start ArduPilot with --home",
    ),
)
"""What changes nothing in `ServeConfig`."""


@dataclass(frozen=True)
class ServeConfig:
    """What is served."""

    autopilot: Literal["px4", "ardupilot", "betaflight"]
    """Whose protocol is spoken."""
    vehicle: str = "x500"
    """Of the catalogue, or a file."""
    listen: str = ""
    """Where: PORT, ADDRESS or ADDRESS:PORT; without it, the protocol's port, for programs of this machine alone."""
    duration: Annotated[float, Bound(0.1, 86400.0, "s")] = 600.0
    """Most of a flight, in simulated time [s]."""
    clock: ClockMode = "real"
    """"lockstep", as fast as both sides answer; "real", at wall-clock time; "scaled", at --factor times that."""
    factor: Annotated[float, Bound(0.01, 1000.0)] = 1.0
    """Simulated over wall-clock time, with --clock scaled."""
    patience: Annotated[float, Bound(0.01, 3600.0, "s")] = 5.0
    """How long a reply may take [s]."""
    wait: Annotated[float, Bound(0.01, 3600.0, "s")] = 600.0
    """How long to wait for the autopilot to appear, and again for it to arm [s]."""
    thrust_factor: Annotated[float, Bound(0.0, 1.0)] = 1.0
    """What a motor command u is worth: f u^2 + (1 - f) u of the largest thrust (PX4's THR_MDL_FAC)."""
    form: Form = "gazebo"
    """Of Betaflight: how its firmware was built, with the Gazebo bridge (its default) or without (legacy)."""
    self_test: bool = False
    """Of Betaflight: turn it by hand about each axis, and say which form its firmware takes, instead of a flight."""
    home: tuple[float, float, float] = (Home().latitude, Home().longitude, Home().altitude)
    """Where the vehicle stands on the Earth: latitude [deg], longitude [deg], altitude [m]."""
    heading: Annotated[float, Bound(0.0, 360.0, "deg")] = 90.0
    """Of the vehicle's nose, clockwise from north [deg]."""
    imu: str = IMU
    """Inertial sensor (`airworthy sensors` lists them)."""
    magnetometer: str = "hmc5883l"
    """Device, of sensors/navigation/devices.toml."""
    barometer: str = "ms5611"
    """The same."""
    gnss: str = "f9p_rtk"
    """The same: f9p_rtk, m8n, ideal."""
    seed: Annotated[int, SEED] = 0
    """Key of all random numbers."""
    out: Path | None = None
    """Folder to keep the flight in: flight.parquet and meta.json."""

    def __post_init__(self) -> None:
        check_fields(self)
        refuse_idle(self, SERVE_RULES)


@dataclass(frozen=True)
class Served:
    """What a session left."""

    run: FlightRun
    """The flight."""
    notes: tuple[str, ...]
    """What was odd about the link."""


def serve(config: ServeConfig, say: Callable[[str], None] = lambda sentence: None) -> Served:
    """Wait for an autopilot, let it fly one vehicle from the ground until it leaves, time is over, or somebody stops it.

    Args:
        config: What is served.
        say: Is given a sentence when it listens, and when the autopilot is there.

    Raises:
        AirworthyError: The vehicle does not fit, the port is taken, or nobody came.
    """
    vehicle, rate, imu = named_vehicle(config.vehicle), RATES[config.autopilot], Imu.named(config.imu)
    settings = LinkSettings(
        config.listen, config.patience, config.wait, config.clock, config.factor, "real", config.thrust_factor,
        Home(*config.home), config.magnetometer, config.barometer, config.gnss,
    )  # fmt: skip
    sticks = StickPilot(vehicle, _climb(vehicle), rate) if config.autopilot == "betaflight" else None
    with autopilot(config.autopilot, vehicle, rate, settings, imu, config.seed, sticks, config.form) as link:
        beyond = "" if link.address.startswith(LOOPBACK) else ": other machines can reach it"
        say(f"Waiting for {config.autopilot} at {link.address}{beyond}. Ctrl-C ends it.")
        link.connect()
        say("The vehicle stands until it arms.")
        flown = SimulatorConfig(physics_rate=PHYSICS_RATE, control_rate=rate, imu=imu, ground=Ground())
        simulator = Simulator(vehicle, flown, env_count=1, seed=config.seed)
        stand(simulator, vehicle, config.heading)
        run = fly(simulator, link, FlightPlan(config.duration, record_every=max(round(rate / 50.0), 1)))
    if config.out is not None:
        write_flight(config.out, run.table, _meta(config, vehicle, run))
    return Served(run, tuple(link.notes()))


def self_test(config: ServeConfig, say: Callable[[str], None] = lambda sentence: None) -> FormVerdict:
    """Find out which form of packets a Betaflight takes.

    Args:
        config: With `self_test`.
        say: Is given a sentence when it listens, and what is tried.

    Raises:
        AirworthyError: The vehicle does not fit, the port is taken, or the firmware does not answer.
    """
    vehicle = named_vehicle(config.vehicle)
    settings = LinkSettings(config.listen, config.patience, config.wait, thrust_factor=config.thrust_factor)
    link = BetaflightPilot(vehicle, RATES["betaflight"], settings, sticks=hand_sticks)
    with link:
        say(f"Waiting for betaflight at {link.address}; nothing flies. Ctrl-C ends it.")
        try:
            return find_form(link, say)
        except AutopilotFailure as failure:
            raise AirworthyError(f"{failure}.") from None


def _climb(vehicle: Vehicle) -> Trajectory:
    """Return what our pilot at Betaflight's sticks does: nobody else may be there."""
    feet = _feet(vehicle)
    return from_waypoints(np.array([feet, feet + np.array([0.0, 0.0, HOVER_HEIGHT])]), Limits(speed=0.5, acceleration=0.5))


def stand(simulator: Simulator, vehicle: Vehicle, heading: float, position: Array | None = None) -> None:
    """Put a vehicle somewhere with its rotors off.

    Args:
        simulator: Of it.
        vehicle: It.
        heading: Of its nose, clockwise from north [deg].
        position: World [m]; None: on the ground at the origin.
    """
    yaw = np.radians(90.0 - heading)
    simulator.reset(
        position=_feet(vehicle) if position is None else position,
        attitude=(0.0, 0.0, np.sin(yaw / 2), np.cos(yaw / 2)),
        rotor_speed=np.zeros(vehicle.rotor_count),
    )


def _feet(vehicle: Vehicle) -> Array:
    """Where the centre of mass is when the collision body stands on the ground."""
    half = vehicle.body.size[2]
    return np.array([0.0, 0.0, half - vehicle.body.center[2] + vehicle.center_of_mass[2]])


def _meta(config: ServeConfig, vehicle: Vehicle, run: FlightRun) -> dict[str, object]:
    return {
        "version": __version__,
        "vehicle": vehicle.name,
        "pilot": config.autopilot,
        "seed": config.seed,
        "physics_rate_hz": PHYSICS_RATE,
        "control_rate_hz": RATES[config.autopilot],
        "interrupted": run.interrupted,
        "pilot_error": run.pilot_error or None,
    }
