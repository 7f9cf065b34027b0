"""Flights of a program outside: `airworthy fly --pilot px4`, `ardupilot`, `betaflight` or `external:KIND`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from airworthy.benchmarks.fly.config import FlyConfig
from airworthy.benchmarks.fly.job import FlyResult, planned, run_fly
from airworthy.benchmarks.fly.scene import place_of, with_course
from airworthy.bridges.autopilots import CLOCKS, IMU, PHYSICS_RATE, RATES, autopilot
from airworthy.bridges.external_pilot import LinkSettings
from airworthy.bridges.remote.pilot import RemoteSettings
from airworthy.bridges.remote.words import check_word, external_entry, is_external, without_prefix
from airworthy.bridges.stick_pilot import StickPilot
from airworthy.core.errors import AirworthyError
from airworthy.simulation import Imu
from airworthy.vehicles import Vehicle, named_vehicle

__all__ = ["fly_outside"]


def fly_outside(config: FlyConfig, quiet: bool = True) -> FlyResult:
    """Fly a course, or way-points, with the program that `config.pilot` names, and judge it as any other pilot.

    Args:
        config: As of `run_fly`.
        quiet: Say nothing of where it is waited for, and show no progress.

    Raises:
        AirworthyError: It did not appear, the vehicle does not fit, or the configuration cannot be flown.
    """
    if not is_external(config.pilot):
        return fly_autopilot(replace(config, pilot=without_prefix(config.pilot)), quiet)
    check_word(config.pilot)
    if not quiet:
        print(f"Waiting for {config.pilot}.", flush=True)
    entry = external_entry(config.pilot, RemoteSettings(config.patience, config.wait))
    if entry.single and config.envs != 1:
        raise AirworthyError(f"Pilot {config.pilot!r} flies one vehicle at a time: leave --envs at 1.")
    there = config.out.exists()
    with entry() as pilot:
        try:
            return run_fly(config, quiet, pilot)
        except AirworthyError:
            if not there:  # of a run that was refused nothing is left, and what is not empty stays
                with suppress(OSError):
                    config.out.rmdir()
            raise


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
    if not config.is_rigid:
        raise AirworthyError(f"Pilot {config.pilot!r} commands motors: fly --dynamics rigid.")
    config = _rated(config)
    vehicle = named_vehicle(config.vehicle[0], config.rotors)
    kind = config.pilot.partition(":")[0]
    sticks = _sticks(config, vehicle) if kind == "betaflight" else None
    settings = LinkSettings(patience=config.patience, wait=config.wait, clock=CLOCKS.get(kind, "lockstep"))
    imu = Imu.named(config.imu or IMU)
    with autopilot(config.pilot, vehicle, config.control_rate, settings, imu, config.seed, sticks, config.form) as pilot:
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
