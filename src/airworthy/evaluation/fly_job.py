"""The job behind `airworthy fly`: vehicle x course x pilot -> flights -> evidence, in one folder."""

from __future__ import annotations

import contextlib
import math
import platform
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from airworthy import __version__
from airworthy.control.config import ControlConfig
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.files import lock_folder, make_folder, write_json
from airworthy.core.native_kernel import quiet_warp
from airworthy.evaluation.fly_config import CONFIG_FILE, FlyConfig, check_config, command_line, randomization, resolved
from airworthy.evaluation.fly_scene import (
    batch_of,
    clear_recording,
    contact_of,
    mount,
    mounted_sensors,
    place_of,
    recording,
    region_of,
    with_way,
)
from airworthy.evaluation.fly_video import Filmed, check_film, clear_film, film_run
from airworthy.evaluation.folder_kinds import refuse_foreign
from airworthy.evaluation.machine import describe_machine
from airworthy.evaluation.metrics import evaluate_tracking
from airworthy.evaluation.report import REPORT_FILE, write_report
from airworthy.evaluation.summary import SUMMARY_FILE, summarize, write_summary
from airworthy.evaluation.video import Video
from airworthy.pilots import FlightPlan, Flown, Pilot, fly, pilot_for, pilot_level, pilot_names, pilot_sensors
from airworthy.simulation import Ground, Imu, Simulator, SimulatorConfig, Wind, write_flight
from airworthy.simulation.family import FAMILIES
from airworthy.simulation.flights import FLIGHT_FILE
from airworthy.simulation.recorder import MEMORY_LIMIT_BYTES
from airworthy.tasks import TrackingReference
from airworthy.trajectories import Gate, Limits, Trajectory, course, from_waypoints, kinematic_state, laps, slow_to
from airworthy.vehicles import Vehicle, read_vehicle, vehicle

if TYPE_CHECKING:
    from airworthy.scenes import Scene, SceneBatch

__all__ = ["FlyConfig", "FlyResult", "check_device", "planned", "run_fly", "simulator_config"]

DEFAULT_COURSE = "robustness"
_REACH = 1e5  # float32 keeps a centimetre at this distance [m]


@dataclass(frozen=True)
class FlyResult:
    """What a run of the job left."""

    summary: dict[str, Any]
    """Content of summary.json."""
    folder: Path
    """Where everything lies."""
    interrupted: bool
    """Stopped before the end; the unfinished flights count as aborted."""
    pilot_error: str = ""
    """What the pilot raised or did wrong; the unfinished flights count as pilot_error."""
    video: Video | None = None
    """The film, where one was asked for and made."""
    film_interrupted: bool = False
    """Somebody stopped the filming: the flights are whole, and nothing is left of the film."""


def run_fly(config: FlyConfig, quiet: bool = True, pilot: Pilot | None = None) -> FlyResult:
    """Fly, judge, and write the folder.

    Args:
        config: What to do.
        quiet: Show no progress.
        pilot: Who flies, instead of the built-in pilot that `config.pilot` names; such a run cannot be
            repeated from its folder alone.

    Raises:
        AirworthyError: With one sentence, if something in the configuration cannot be flown.
    """
    config = config if pilot is None else replace(config, pilot=pilot.name)
    check_config(config)
    refuse_foreign(config.out, FLIGHT_FILE)
    vehicles = [_vehicle(name) for name in config.vehicle]
    place = place_of(config)
    course_name, waypoints = with_way(config, place)
    way = replace(config, course=course_name, waypoints=waypoints)
    sensors = mounted_sensors(config, vehicles)
    check_film(config, vehicles)
    trajectory, gates = planned(way)
    level = pilot_level(config.pilot) if pilot is None else pilot.level
    _check_pilot(config, level)
    needed = {} if pilot is not None else pilot_sensors(config.pilot, vehicles[0])
    if needed and place is None:
        raise AirworthyError(f"Pilot {config.pilot!r} sees: name a --scene (`airworthy scenes` lists them).")
    batch = batch_of(config, place)
    plan = _plan(config, trajectory, place, batch)
    _check_size(config, plan, max(item.rotor_count for item in vehicles))
    check_device(config.device)
    simulator = Simulator(
        [vehicles[i % len(vehicles)] for i in range(config.envs)],
        simulator_config(config, level),
        seed=config.seed,
        device=config.device,
        geometry=None if batch is None or config.contact == "none" else batch.geometry,
    )
    _place(simulator, trajectory)
    with lock_folder(make_folder(config.out)):
        parameters = drawn_parameters(simulator)
        clear_recording(config.out)
        mounted = mount(config, simulator, batch, {**needed, **sensors})
        pilot = pilot or pilot_for(config.pilot, simulator, trajectory, mounted, config.device)
        with recording(config.out, mounted, tuple(sensors)):
            flown = fly(simulator, pilot, plan, quiet, mounted)
        meta = _write_flights(way, flown, vehicles, config)
        filmed = Filmed() if flown.interrupted else film_run(config, flown.table, place, vehicles, quiet)
        pictured = {}
        if place is not None and config.report:
            from airworthy.evaluation.fly_pictures import run_pictures

            pictured = run_pictures(place, flown.table, mounted)
        summary = _write_evidence(way, flown, vehicles, trajectory, gates, parameters, meta, pictured, filmed.video)
    if filmed.error is not None:
        raise filmed.error
    return FlyResult(summary, config.out, flown.interrupted, flown.pilot_error, filmed.video, filmed.interrupted)


def _vehicle(name: str) -> Vehicle:
    return read_vehicle(name) if name.endswith(".toml") or "/" in name else vehicle(name)


def _check_pilot(config: FlyConfig, level: str) -> None:
    levels = FAMILIES[config.dynamics].levels
    if level not in levels:
        fitting = [name for name in pilot_names() if pilot_level(name) in levels]
        raise AirworthyError(
            f"Pilot {config.pilot!r} does not fit {config.dynamics} dynamics; built-in pilots that do: {', '.join(fitting)}."
        )


def _check_size(config: FlyConfig, plan: FlightPlan, rotor_count: int) -> None:
    """Refuse a recording that would not fit into memory, before anything is built."""
    steps = math.ceil(plan.duration * config.control_rate) / plan.record_every + 1
    bytes_needed = 4 * steps * config.envs * (22 + 2 * rotor_count)
    if bytes_needed > MEMORY_LIMIT_BYTES:
        raise AirworthyError(
            f"Recording {config.envs:,} flights of {plan.duration:,.0f} s would take {bytes_needed / 2**30:,.1f} GiB, more than"
            f" {MEMORY_LIMIT_BYTES / 2**30:g}: lower --envs, --record-rate or --hold, or fly a shorter course."
        )


def check_device(name: str) -> None:
    """Refuse a device that is not there.

    Raises:
        UnknownNameError: With the devices that are.
    """
    if name == "cpu":
        return
    wp = quiet_warp()
    try:
        wp.get_device(name)
    except ValueError as error:
        known = [device.alias for device in wp.get_devices()]
        raise unknown_name("device", name, known, "Devices are the processor and the NVIDIA GPUs of this machine.") from error


def planned(config: FlyConfig) -> tuple[Trajectory, tuple[Gate, ...]]:
    """The trajectory to fly, and the gates to draw.

    Raises:
        AirworthyError: Unknown course, bad waypoints, or limits that cannot be kept.
    """
    gates: tuple[Gate, ...] = ()
    if config.waypoints:
        points = np.array([_point(text) for text in config.waypoints])
        speed, acceleration = config.speed or 2.0, config.acceleration or 3.0
        trajectory = _repeated(from_waypoints(points, Limits(speed=speed, acceleration=acceleration)), config.laps)
    else:
        chosen = course(DEFAULT_COURSE if config.course is None else config.course)
        gates = chosen.gates
        if gates:
            trajectory = chosen.trajectory(lap_count=config.laps)
        else:
            trajectory = _repeated(chosen.trajectory(lap_count=1), config.laps)
        if config.speed is not None or config.acceleration is not None:
            trajectory = slow_to(trajectory, Limits(speed=config.speed, acceleration=config.acceleration))
    return (trajectory if config.slower == 1.0 else trajectory.scaled(config.slower)), gates


def _repeated(trajectory: Trajectory, count: int) -> Trajectory:
    if count == 1:
        return trajectory
    ends = trajectory.sample(np.array([0.0, trajectory.duration])).position
    gap = float(np.linalg.norm(ends[1] - ends[0]))
    if gap > 1e-6:
        raise AirworthyError(f"This course ends {gap:.3g} m from where it begins, so it cannot be flown for {count} laps.")
    return laps(trajectory, count)


def _point(text: str) -> list[float]:
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != 3 or not np.all(np.isfinite(numbers)):
        raise AirworthyError(f"Waypoint {text!r} is not three numbers; write it as x,y,z in metres, e.g. 1,0,1.5.")
    if max(map(abs, numbers)) > _REACH:
        raise AirworthyError(f"Waypoint {text!r} is in metres, and more than {_REACH / 1000:g} km away.")
    return numbers


def simulator_config(config: FlyConfig, level: str) -> SimulatorConfig:
    """The simulator's part of the configuration."""
    return SimulatorConfig(
        dynamics=config.dynamics,
        physics_rate=config.physics_rate,
        control_rate=config.control_rate,
        integrator=config.integrator,
        level=level,
        control=ControlConfig(gains=config.gains),
        ground=Ground() if config.ground else None,
        contact=contact_of(config),
        wind=Wind(mean=config.wind, turbulence=(config.turbulence,) * 3),
        imu=None if config.imu is None else Imu.named(config.imu),
        randomization=randomization(config.randomize),
    )


def _place(simulator: Simulator, trajectory: Trajectory) -> None:
    """Start every flight on the trajectory, with its attitude and velocity."""
    first = trajectory.sample(np.zeros(1))
    attitude = kinematic_state(first).attitude[0]
    simulator.reset(position=first.position[0], velocity=first.velocity[0], attitude=attitude)


def _plan(config: FlyConfig, trajectory: Trajectory, place: Scene | None, batch: SceneBatch | None) -> FlightPlan:
    path = trajectory.sample(np.linspace(0.0, trajectory.duration, 400)).position
    return FlightPlan(
        duration=trajectory.duration + config.hold,
        reference=trajectory,
        record_every=max(1, round(config.control_rate / config.record_rate)),
        # Without a plane to stand on, a flight that ends under the floor of a course above it has crashed.
        min_height=0.0 if path[:, 2].min() > 0.05 and not config.ground and place is None else -np.inf,
        bounds=20.0 + 2.0 * float(np.ptp(path, axis=0).max()),
        region=region_of(place),
        geometry=None if batch is None else batch.geometry,
        latency=config.latency,
    )


def drawn_parameters(simulator: Simulator) -> dict[str, Any]:
    """What differs between the flights, for the report: name with unit -> (env,)."""
    if not simulator.config.randomization.any:
        return {}
    found: dict[str, Any] = {"mass_kg": simulator.parameter("mass")}
    if simulator.config.dynamics == "rigid":
        masses = np.array([item.mass for item in simulator.vehicles])
        found["mass_ratio"] = simulator.parameter("mass") / masses
        highest = simulator.parameter("rotor_max")
        c = simulator.parameter("rotor_thrust").reshape(len(highest), -1, 3)
        thrust = (c[..., 0] + c[..., 1] * highest + c[..., 2] * highest**2).sum(axis=1)
        found["thrust_to_weight"] = thrust / (simulator.parameter("mass") * simulator.parameter("gravity"))
        rise = simulator.parameter("rotor_rise").reshape(len(highest), -1, 2)[:, 0, 0]
        if np.all(rise > 0):
            found["rotor_rise_time_s"] = 1.0 / rise
        wind = simulator.parameter("wind")
        found["wind_speed_m_s"] = np.hypot(wind[:, 0], wind[:, 1])
    return {name: values for name, values in found.items() if np.ptp(values) > 0.0}


def _labels(config: FlyConfig) -> dict[str, Any]:
    course_name = config.course or ("waypoints" if config.waypoints else DEFAULT_COURSE)
    return {"scene": config.scene, "course": course_name, "pilot": config.pilot, "seed": config.seed}


def _write_flights(config: FlyConfig, flown: Flown, vehicles: list[Vehicle], asked: FlyConfig) -> dict[str, Any]:
    """Write the flights first: what judges and shows them can be made again; returns their meta data."""
    meta = _meta(asked, flown, [item.name for item in vehicles], _labels(config))
    write_flight(config.out, flown.table, meta)
    for name in (CONFIG_FILE, SUMMARY_FILE, REPORT_FILE):  # of an earlier run: they must not stand beside other flights
        with contextlib.suppress(FileNotFoundError):
            (config.out / name).unlink()
    clear_film(config.out)
    write_json(config.out / CONFIG_FILE, resolved(asked))
    return meta


def _write_evidence(
    config: FlyConfig,
    flown: Flown,
    vehicles: list[Vehicle],
    trajectory: Trajectory,
    gates: tuple[Gate, ...],
    parameters: dict[str, Any],
    meta: dict[str, Any],
    pictured: dict[str, Any],
    video: Video | None,
) -> dict[str, Any]:
    """Judge the flights and write the rest of the folder."""
    names = [item.name for item in vehicles]
    reference = TrackingReference.from_trajectory(trajectory)
    summary = summarize(
        evaluate_tracking(flown.table, reference, ended_by=flown.unfinished),
        command=meta["command"],
        labels=_labels(config),
        flight_labels={env: {"vehicle": names[env % len(names)], **_cause(flown, env)} for env in range(config.envs)},
        parameters=parameters,
        seed=config.seed,
    )
    summary |= {} if video is None else {"video": video.described()}
    write_summary(config.out, summary)
    if config.report:
        rotors = vehicles[0].rotors
        write_report(
            config.out,
            table=flown.table,
            summary=summary,
            meta=meta,
            reference=reference,
            gates=[_corners(gate) for gate in gates],
            place=pictured,
            rotor_limits=([r.speed_min for r in rotors], [r.speed_max for r in rotors]) if len(vehicles) == 1 else None,
        )
    return summary


def _meta(config: FlyConfig, flown: Flown, names: list[str], labels: dict[str, Any]) -> dict[str, Any]:
    return {
        "version": __version__,
        "command": command_line(config),
        "vehicle": names[0] if len(names) == 1 else names,
        **labels,
        "physics_rate_hz": config.physics_rate,
        "control_rate_hz": config.control_rate,
        "device": config.device,
        "hardware": describe_machine(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "interrupted": flown.interrupted,
        "pilot_error": flown.pilot_error or None,
        "config": resolved(config),
    }


def _cause(flown: Flown, env: int) -> dict[str, str]:
    return {"cause": flown.pilot_error} if flown.unfinished.get(env) == "pilot_error" else {}


def _corners(gate: Gate) -> Any:
    """Corners of the opening, in order round it, (4, 3)."""
    left = np.array([-np.sin(gate.yaw), np.cos(gate.yaw), 0.0]) * 0.5 * gate.opening[0]
    up = np.array([0.0, 0.0, 0.5 * gate.opening[1]])
    return np.asarray(gate.position) + np.array([left + up, -left + up, -left - up, left - up])
