"""Excitation flights end to end: planned, flown in simulation, read back as a log, which then tells the vehicle."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import airworthy as aw
from airworthy.logs import Log, LogSource, LogStream, flight_segments, log_findings, read_log
from airworthy.trajectories import ExcitationConfig, excitation_plan
from airworthy.vehicles import Vehicle, vehicle

TOLD = ("thrust over command / mass", "lag and dead time", "inertia xx, yy", "torque / inertia zz", "drag", "lever of the IMU")


def hexa() -> Vehicle:
    """Six of the rotors of a catalogue vehicle on arms of 0.275 m."""
    base = vehicle("x500")
    turns = (np.pi / 6.0) + np.arange(6) * (np.pi / 3.0)
    places = [(0.275 * float(np.cos(t)), 0.275 * float(np.sin(t)), 0.0) for t in turns]
    spins = (1, -1, 1, -1, 1, -1)
    rotors = tuple(replace(base.rotors[0], position=p, spin=s) for p, s in zip(places, spins, strict=True))  # type: ignore[arg-type]
    return replace(base, name="hexa", mass=2.4, inertia=(0.032, 0.032, 0.058, 0.0, 0.0, 0.0), rotors=rotors, sensors=())


def flown(craft: Vehicle, folder: Path, rate: float, config: ExcitationConfig) -> Log:
    """Plan, fly, and read the run as a log; nothing may have been at an end of its range, or outside of the box."""
    plan = excitation_plan(craft, config)
    run = aw.fly(
        craft, course=plan.course, imu="bmi088", control_rate=rate, record_rate=rate, report=False, out=folder / craft.name
    )
    assert run.summary["aggregate"]["outcomes"]["success"] == 1
    log = read_log(run.folder)
    command = log.stream("motor_command").values
    least = [rotor.speed_min / rotor.speed_max for rotor in craft.rotors]
    assert command.shape[1] == craft.rotor_count
    assert command.max() < 0.995
    assert np.all(command.min(axis=0) > np.array(least) + 0.005)
    place = log.stream("position").values
    low = np.array([-0.5 * config.box[0], -0.5 * config.box[1], config.height])
    assert np.all(place >= low)
    assert np.all(place <= low + config.box)
    return log


def verdicts(log: Log) -> dict[str, str]:
    return {found.parameter: found.verdict for found in log_findings(log, flight_segments(log))}


def test_a_short_flight_tells_a_vehicle(tmp_path: Path) -> None:
    """Two pulses of each kind, which is what the shortest plan has; its two lines are too few for drag."""
    log = flown(vehicle("cf2x_gym_pybullet_drones"), tmp_path, 240.0, ExcitationConfig(length=0.1))
    told = verdicts(log)
    assert all(told[name] == "can tell" for name in TOLD if name != "drag")


@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda: vehicle("cf2x_L250"), hexa, lambda: vehicle("real_18")])
def test_plans_of_small_and_heavy_vehicles(tmp_path: Path, make: object) -> None:
    """A Crazyflie with slow rotors, a hexarotor, a vehicle of 5.5 kg whose rotors hardly turn it about z."""
    log = flown(make(), tmp_path, 480.0, ExcitationConfig())  # type: ignore[operator]
    told = verdicts(log)
    assert all(told[name] == "can tell" for name in TOLD)
    assert told["mass"] == told["battery"] == "cannot tell"


def test_hover_alone_tells_neither(tmp_path: Path) -> None:
    run = aw.fly("x500", course="hover", imu="bmi088", control_rate=240, record_rate=240, report=False, out=tmp_path / "run")
    told = verdicts(read_log(run.folder))
    assert told["thrust over command / mass"] == "partly"
    assert told["inertia xx, yy"] == told["torque / inertia zz"] == told["drag"] == "cannot tell"


def test_twenty_seconds_tell_as_much_in_a_long_log() -> None:
    """Yaw steps and pulses of thrust of 20 s in a flight of ten minutes: deviations over all of it would hide them."""
    time = np.arange(0.0, 600.0, 0.01)
    steps = (time > 300.0) & (time < 320.0)
    yaw = np.where(steps, np.sin(2.0 * np.pi * time), 0.0)
    zero = np.zeros_like(time)
    streams = (
        LogStream("gyro", time, np.stack([zero, zero, yaw], axis=1)),
        LogStream("accelerometer", time, np.stack([zero, zero, 9.81 + 1.6 * yaw], axis=1)),
        LogStream("motor_command", time, (0.5 + 0.05 * yaw)[:, None] * np.ones(4), stamp="held"),
    )
    told = verdicts(Log("made", streams, LogSource("made", "", "test")))
    assert told["torque / inertia zz"] == told["thrust over command / mass"] == "can tell"
    assert told["inertia xx, yy"] == "cannot tell"
