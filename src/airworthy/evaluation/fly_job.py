"""The job behind `airworthy fly`: vehicle x course x pilot -> flights -> evidence, in one folder."""

from __future__ import annotations

import platform
import shlex
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np

from airworthy import __version__
from airworthy.control.config import ControlConfig
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.files import lock_folder, make_folder, write_json
from airworthy.evaluation.machine import describe_machine
from airworthy.evaluation.metrics import evaluate_tracking
from airworthy.evaluation.report import write_report
from airworthy.evaluation.summary import summarize, write_summary
from airworthy.pilots import FlightPlan, Flown, fly, tracker
from airworthy.simulation import Ground, Imu, Randomization, Simulator, SimulatorConfig, Wind, write_flight
from airworthy.tasks import TrackingReference
from airworthy.trajectories import Gate, Limits, Trajectory, course, from_waypoints, kinematic_state, slow_to
from airworthy.vehicles import Vehicle, read_vehicle, vehicle

CONFIG_FILE = "config.json"

RANDOMIZE_DEFAULT = "mass=0.1 inertia=0.1 thrust=0.05 rotor=0.02 drag=0.3 lag=0.2 wind=1.0 position=0.1 yaw=0.1"
"""What `--randomize default` stands for."""


@dataclass(frozen=True)
class FlyConfig:
    """What to fly, how, and where to write it."""

    vehicle: tuple[str, ...] = ("flightgoggles",)
    """Catalogue names or vehicle TOML files; several are dealt out to the environments in turn."""
    course: str | None = None
    """Course name or file (`airworthy courses` lists them); "robustness" where neither course nor waypoints are given."""
    waypoints: tuple[str, ...] = ()
    """Instead of a course: points "x,y,z" [m], flown smoothly under the limits below."""
    pilot: str = "geometric"
    """Who flies: geometric, mellinger, crazyflie, position or velocity."""
    envs: int = 1
    """Flights at once."""
    dynamics: Literal["rigid", "semi_kinematic"] = "rigid"
    """Equations of motion: rigid body with rotors, or point mass with attitude."""
    randomize: tuple[str, ...] = ()
    """Spread of the flights, "name=value": relative half widths of mass, inertia, thrust, rotor, drag, lag; wind [m/s],
    position [m], yaw [rad]; "default" for a mild mix of all."""
    wind: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Mean wind, world [m/s]."""
    turbulence: float = 0.0
    """Standard deviation of Dryden turbulence per axis [m/s]."""
    speed: float | None = None
    """Speed limit [m/s]; slows a course down, 2 m/s for waypoints."""
    acceleration: float | None = None
    """Acceleration limit [m/s^2]; slows a course down, 3 m/s^2 for waypoints."""
    slower: float = 1.0
    """Stretch the course's time by this factor; below 1 hurries it."""
    laps: int = 1
    """Times round the course, where it closes."""
    hold: float = 1.0
    """Hover at the end [s]."""
    imu: str | None = None
    """Simulate an inertial sensor: ideal, flightgoggles, bmi088, vn100, ..."""
    ground: bool = False
    """A ground plane at height 0 that vehicles can touch."""
    physics_rate: float = 960.0
    """Steps of the equations of motion per second [Hz]."""
    control_rate: float = 100.0
    """Set-points per second [Hz]; the control law itself runs at every physics step."""
    record_rate: float = 50.0
    """Rows per second in flight.parquet [Hz]."""
    integrator: Literal["rk4", "semi_implicit", "euler"] = "rk4"
    """Integration of the equations of motion."""
    gains: str = "auto"
    """Gains of the geometric pilot: "auto" from the airframe, or a set: lee, lmf2, magpie, octarotor, ..."""
    seed: int = 0
    """Key of all random numbers."""
    device: str = "cpu"
    """"cpu", or a CUDA device such as "cuda:0"."""
    out: Path = Path("runs/fly")
    """Folder for flight.parquet, meta.json, summary.json, config.json and report.html."""
    report: bool = True
    """Write report.html; its figures take longer than the flights."""
    json: bool = False
    """Print summary.json's aggregate instead of a table."""


@dataclass(frozen=True)
class FlyResult:
    """What a run of the job left."""

    summary: dict[str, Any]
    """Content of summary.json."""
    folder: Path
    """Where everything lies."""
    interrupted: bool
    """Stopped before the end; the unfinished flights count as aborted."""


def run_fly(config: FlyConfig, quiet: bool = True) -> FlyResult:
    """Fly, judge, and write the folder.

    Args:
        config: What to do.
        quiet: Show no progress.

    Raises:
        AirworthyError: With one sentence, if something in the configuration cannot be flown.
    """
    vehicles = [_vehicle(name) for name in config.vehicle]
    if config.envs < 1 or not vehicles:
        raise AirworthyError(f"envs is {config.envs} and {len(vehicles)} vehicles are named; expected at least one of each.")
    trajectory, gates = planned(config, vehicles)
    pilot = tracker(config.pilot, trajectory)
    simulator = Simulator(
        [vehicles[i % len(vehicles)] for i in range(config.envs)],
        simulator_config(config, pilot.level),
        seed=config.seed,
        device=config.device,
    )
    _place(simulator, trajectory)
    with lock_folder(make_folder(config.out)):
        write_json(config.out / CONFIG_FILE, resolved(config))
        parameters = drawn_parameters(simulator)
        flown = fly(simulator, pilot, _plan(config, trajectory), quiet)
        summary = _write(config, flown, vehicles, trajectory, gates, parameters)
    return FlyResult(summary, config.out, flown.interrupted)


def _vehicle(name: str) -> Vehicle:
    return read_vehicle(name) if name.endswith(".toml") else vehicle(name)


def planned(config: FlyConfig, vehicles: list[Vehicle]) -> tuple[Trajectory, tuple[Gate, ...]]:
    """The trajectory to fly, and the gates to draw.

    Raises:
        AirworthyError: Unknown course, bad waypoints, or limits that cannot be kept.
    """
    if config.course is not None and config.waypoints:
        raise AirworthyError("Both a course and waypoints are given; name one of them.")
    if not (np.isfinite(config.slower) and config.slower > 0.0):
        raise AirworthyError(f"slower is {config.slower}; expected a positive factor of time.")
    gates: tuple[Gate, ...] = ()
    if config.waypoints:
        points = np.array([_point(text) for text in config.waypoints])
        trajectory = from_waypoints(points, Limits(speed=config.speed or 2.0, acceleration=config.acceleration or 3.0))
    else:
        chosen = course(config.course or "robustness")
        trajectory, gates = chosen.trajectory(lap_count=config.laps), chosen.gates
        if config.speed is not None or config.acceleration is not None:
            trajectory = slow_to(trajectory, Limits(speed=config.speed, acceleration=config.acceleration))
    return (trajectory if config.slower == 1.0 else trajectory.scaled(config.slower)), gates


def _point(text: str) -> list[float]:
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != 3 or not np.all(np.isfinite(numbers)):
        raise AirworthyError(f"Waypoint {text!r} is not three numbers; write it as x,y,z in metres, e.g. 1,0,1.5.")
    return numbers


def randomization(words: tuple[str, ...]) -> Randomization:
    """Parse "mass=0.1" words; "default" stands for a mild mix.

    Raises:
        AirworthyError: If a word is not a known name with a number of at least 0.
    """
    known = [field.name for field in fields(Randomization)]
    values: dict[str, float] = {}
    for word in (part for text in words for part in (RANDOMIZE_DEFAULT if text == "default" else text).split()):
        name, _, number = word.partition("=")
        if name not in known:
            raise unknown_name("quantity to randomize", name, known, "Write for example --randomize mass=0.1 wind=2.")
        try:
            values[name] = float(number)
        except ValueError:
            raise AirworthyError(f"--randomize got {word!r}; write it as {name}=NUMBER.") from None
        if not (np.isfinite(values[name]) and values[name] >= 0.0):
            raise AirworthyError(f"--randomize got {word!r}; expected a number of at least 0.")
        if name in ("mass", "inertia", "thrust", "rotor", "lag") and values[name] >= 1.0:
            raise AirworthyError(f"--randomize got {word!r}, a relative half width; expected less than 1.")
    return Randomization(**values)


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
        wind=Wind(mean=config.wind, turbulence=(config.turbulence,) * 3),
        imu=None if config.imu is None else Imu.named(config.imu),
        randomization=randomization(config.randomize),
    )


def _place(simulator: Simulator, trajectory: Trajectory) -> None:
    """Start every flight on the trajectory, with its attitude and velocity."""
    first = trajectory.sample(np.zeros(1))
    attitude = kinematic_state(first).attitude[0]
    simulator.reset(position=first.position[0], velocity=first.velocity[0], attitude=attitude)


def _plan(config: FlyConfig, trajectory: Trajectory) -> FlightPlan:
    path = trajectory.sample(np.linspace(0.0, trajectory.duration, 400)).position
    every = max(1, round(config.control_rate / config.record_rate)) if config.record_rate > 0 else 1
    return FlightPlan(
        duration=trajectory.duration + max(config.hold, 0.0),
        reference=trajectory,
        record_every=every,
        # Without a plane to stand on, a flight that ends under the floor of a course above it has crashed.
        min_height=0.0 if path[:, 2].min() > 0.05 and not config.ground else -np.inf,
        bounds=20.0 + 2.0 * float(np.ptp(path, axis=0).max()),
    )


def drawn_parameters(simulator: Simulator) -> dict[str, Any]:
    """What differs between the flights, for the report: name with unit -> (env,)."""
    if not simulator.config.randomization.any:
        return {}
    nominal = {item.name: item for item in simulator.vehicles}
    found: dict[str, Any] = {"mass_kg": simulator.parameter("mass")}
    if "rotor_thrust" in simulator.layout.fields or simulator.config.dynamics == "rigid":
        masses = np.array([nominal[item.name].mass for item in simulator.vehicles])
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


def _write(
    config: FlyConfig,
    flown: Flown,
    vehicles: list[Vehicle],
    trajectory: Trajectory,
    gates: tuple[Gate, ...],
    parameters: dict[str, Any],
) -> dict[str, Any]:
    reference = TrackingReference.from_trajectory(trajectory)
    unfinished = {int(env): "aborted" for env in flown.table.envs} if flown.interrupted else {}
    results = evaluate_tracking(flown.table, reference, ended_by=unfinished)
    names = [item.name for item in vehicles]
    place = config.course or ("waypoints" if config.waypoints else "robustness")
    labels = {"scene": None, "course": place, "pilot": config.pilot, "seed": config.seed}
    summary = summarize(
        results,
        command=command_line(config),
        labels=labels,
        flight_labels={env: {"vehicle": names[env % len(names)]} for env in range(config.envs)},
        parameters=parameters,
        seed=config.seed,
    )
    meta = {
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
        "config": resolved(config),
    }
    write_flight(config.out, flown.table, meta)
    write_summary(config.out, summary)
    rotors = vehicles[0].rotors
    if not config.report:
        return summary
    write_report(
        config.out,
        table=flown.table,
        summary=summary,
        meta=meta,
        reference=reference,
        gates=[_corners(gate) for gate in gates],
        rotor_limits=([r.speed_min for r in rotors], [r.speed_max for r in rotors]) if len(vehicles) == 1 else None,
    )
    return summary


def _corners(gate: Gate) -> Any:
    """Corners of the opening, in order round it, (4, 3)."""
    left = np.array([-np.sin(gate.yaw), np.cos(gate.yaw), 0.0]) * 0.5 * gate.opening[0]
    up = np.array([0.0, 0.0, 0.5 * gate.opening[1]])
    return np.asarray(gate.position) + np.array([left + up, -left + up, -left - up, left - up])


def resolved(config: FlyConfig) -> dict[str, Any]:
    """The configuration as plain data, for config.json."""
    return {"version": 1, **asdict(config), "out": str(config.out)}


def command_line(config: FlyConfig) -> str:
    """The exact command that re-creates a run."""
    words = ["airworthy", "fly"]
    for field in fields(config):
        value, default = getattr(config, field.name), field.default
        if value == default or field.name == "json":
            continue
        option = "--" + field.name.replace("_", "-")
        if isinstance(value, bool):
            words.append(option if value else f"--no-{option[2:]}")
        else:
            words += [option, *(str(v) for v in (value if isinstance(value, tuple) else (value,)))]
    return shlex.join(words)
