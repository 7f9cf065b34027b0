"""The job behind `airworthy fly`: vehicle x course x pilot -> flights -> evidence, in one folder."""

from __future__ import annotations

import math
import platform
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from airworthy import __version__
from airworthy.benchmarks.fly.causes import farthest_from_start
from airworthy.benchmarks.fly.config import (
    CONFIG_FILE,
    DEFAULT_COURSE,
    PLANNER_RULES,
    FlyConfig,
    check_config,
    check_spread,
    command_line,
    control_of,
    randomization,
    resolved,
)
from airworthy.benchmarks.fly.film import SHEET_SUFFIX, VIDEO_STEM, Video, check_film
from airworthy.benchmarks.fly.metrics import RunMetrics, judge_flights, labels_of
from airworthy.benchmarks.fly.run_record import RECORD, read_record, write_record
from airworthy.benchmarks.fly.scene import (
    GoalFlight,
    batch_of,
    check_ends,
    contact_of,
    ends_of,
    is_planner,
    limited,
    mount,
    mounted_sensors,
    own_of,
    place_of,
    recording,
    refuse_unknown,
    region_of,
    with_course,
)
from airworthy.benchmarks.navigation.methods import is_own_pilot, own_pilot
from airworthy.bridges.external_pilot import ExternalPilot
from airworthy.bridges.remote.pilot import RemotePilot
from airworthy.bridges.ros.flight_log import FLIGHT_LOG, FlightMcap
from airworthy.control.allocation import PRIORITIES
from airworthy.control.gain_parameters import priority_of
from airworthy.control.kernel import UNALLOCATED_LEVELS
from airworthy.core.errors import AirworthyError, AssetWarning, unknown_name
from airworthy.core.files import StagedFolder, staged_folder, write_json
from airworthy.core.frames import multiply
from airworthy.core.idle_options import refuse_idle
from airworthy.core.jobs.block_job import describe_machine, refuse_foreign
from airworthy.core.jobs.progress import stoppable
from airworthy.core.native_kernel import quiet_warp
from airworthy.core.own_modules import not_copied
from airworthy.dynamics.articulated.joint_angles import JOINT_ANGLES, joint_angles, start_angles
from airworthy.dynamics.articulated.stiffness import default_integrator
from airworthy.dynamics.articulated.tree import tree_of
from airworthy.evaluation.statistics import SUMMARY_FILE
from airworthy.pilots import ExpertPilot, FlightPlan, FlightRun, Pilot, fly, pilot_for, pilot_level, pilot_names, pilot_sensors
from airworthy.pilots.catalogue import AUTOPILOTS, EXTERNAL
from airworthy.reports.film.files import SUFFIXES
from airworthy.reports.flight_report import REPORT_FILE
from airworthy.simulation import Ground, Imu, MountedSensors, Simulator, SimulatorConfig, Wind, read_flight_meta, write_flight
from airworthy.simulation.family import FAMILIES
from airworthy.simulation.flights import FLIGHT_FILE, META_FILE
from airworthy.simulation.jointed.rows import held, root_below
from airworthy.simulation.posterior import draws_record
from airworthy.simulation.recorder import MEMORY_LIMIT_BYTES
from airworthy.trajectories import Course, Gate, Limits, Trajectory, course, from_waypoints, kinematic_state, laps
from airworthy.trajectories.quantities import magnitude, maximise
from airworthy.vehicles import Vehicle, frozen, hover_trim, named_vehicle

if TYPE_CHECKING:
    from airworthy.scenes import Scene, SceneBatch

__all__ = ["FlyConfig", "FlyResult", "angles_of", "check_device", "planned", "run_fly", "simulator_config"]

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
    pilot_notes: tuple[str, ...] = ()
    """What was odd about the conversation with a program outside, a sentence each; in the summary, too."""
    video: Video | None = None
    """The film, where one was asked for and made."""
    film_interrupted: bool = False
    """Somebody stopped the filming: the flights are whole, and nothing is left of the film."""


class FlightsKept(KeyboardInterrupt):
    """Stopped when all was flown: the flights are saved, and wait to be judged."""

    def __init__(self, folder: Path, *signals: int):
        super().__init__(*signals)
        self.folder = folder


def run_fly(config: FlyConfig, quiet: bool = True, pilot: Any = None) -> FlyResult:
    """Fly, judge, and write the folder.

    Args:
        config: What to do.
        quiet: Show no progress.
        pilot: Who flies, instead of the pilot that `config.pilot` names: a `Pilot`, a planner, or a class of either; such a
            run cannot be repeated from its folder alone.

    Raises:
        AirworthyError: With one sentence, if something in the configuration cannot be flown.
        FlightsKept: Stopped while the flights were judged; `metrics.judge` completes the folder.
    """
    if pilot is None and config.pilot.partition(":")[0] in (*AUTOPILOTS, EXTERNAL):
        from airworthy.benchmarks.fly.outside import fly_outside

        return fly_outside(config, quiet)
    if pilot is None:
        refuse_unknown(config.pilot)
    own = own_of(config.pilot, pilot)
    plans = is_planner(config.pilot) if own is None and pilot is None else own is not None and own.kind == "planner"
    if own is not None:
        config = config if pilot is None else replace(config, pilot=own.name)
        pilot = None if plans else own_pilot(own)
    elif pilot is not None and not isinstance(pilot, RemotePilot):
        config = replace(config, pilot=pilot.name)
    _warn_of_lost_modules(config.pilot)
    check_config(config)
    refuse_foreign(config.out, FLIGHT_FILE)
    config, vehicles = settled(config, [_vehicle(name, config.rotors) for name in config.vehicle])
    if pilot is None and own is None:
        _check_jointed(config, vehicles)
    scene = place_of(config)
    refuse_idle(config, PLANNER_RULES, plans)
    check_spread(config, vehicles)
    course_name, waypoints = (None, ends_of(config, scene)) if plans else with_course(config, scene)
    flown_config = replace(config, course=course_name, waypoints=waypoints)
    sensors = mounted_sensors(config, vehicles)
    check_film(config, vehicles)
    trajectory, _ = planned(limited(flown_config) if plans else flown_config)
    if isinstance(pilot, RemotePilot):
        pilot.follow(trajectory, tuple(vehicles))
    batch_vehicles = [vehicles[i % len(vehicles)] for i in range(config.envs)]
    batch = batch_of(config, scene)
    goal: GoalFlight | None = None
    if plans and scene is not None and batch is not None:
        goal = GoalFlight(flown_config, batch_vehicles, scene, batch, own)
    level = goal.level if goal is not None else pilot_level(config.pilot) if pilot is None else pilot.level
    _check_pilot(config, level)
    _check_priority(config, level, goal is not None)
    needed = goal.sensors if goal is not None else {} if pilot is not None else pilot_sensors(config.pilot, vehicles[0])
    if set(needed) & set(sensors):
        raise AirworthyError(f"Pilot {config.pilot!r} carries a sensor named {', '.join(needed)}: give yours another name.")
    if needed and scene is None:
        raise AirworthyError(f"Pilot {config.pilot!r} sees: name a --scene (`airworthy scenes` lists them).")
    plan = _plan(config, trajectory, scene, batch)
    plan = plan if goal is None else goal.plan(plan)
    _check_size(config, plan, max(item.rotor_count for item in vehicles))
    check_device(config.device)
    check_ends(config, batch, vehicles, trajectory.sample(0.0).position, None if goal is None else goal.mission.goal[0])
    if not plans:
        _check_course(config, flown_config, trajectory, scene, vehicles)
    made = simulator_config(config, level, vehicles)
    simulator = Simulator(
        batch_vehicles,
        made if goal is None else goal.configured(made),
        seed=config.seed,
        device=config.device,
        geometry=None if batch is None or config.contact == "none" else batch.geometry,
    )
    _place(simulator, trajectory)
    with staged_folder(config.out, owned_by_run, META_FILE) as run:
        parameters = drawn_parameters(simulator)
        mounted = mount(config, simulator, batch, {**needed, **sensors})
        if goal is not None:
            pilot = goal.attached(simulator, mounted)
        if isinstance(pilot, RemotePilot):
            pilot.meet(mounted)
        pilot = pilot or pilot_for(config.pilot, simulator, trajectory, mounted, config.device)
        with ExitStack() as open_files:
            open_files.enter_context(recording(run.path, mounted, tuple(sensors)))
            if "mcap" in config.record:
                log = open_files.enter_context(
                    FlightMcap(run.path / FLIGHT_LOG, simulator, mounted, None if plans else trajectory)
                )
                plan = replace(plan, watch=log.write)
            flown = fly(simulator, pilot, plan, quiet, mounted)
            if isinstance(pilot, (RemotePilot, ExternalPilot)) and pilot.absent:
                raise AirworthyError(f"The pilot {config.pilot} cannot be flown: {flown.pilot_error}.")
            flown = flown if goal is None else goal.scored(flown)
            try:
                with stoppable():  # what was flown is saved before anything stops the run
                    open_files.close()
                    pictures = [] if mounted is None or scene is None or not config.report else _sensor_pictures(mounted)
                    _write_flights(run.path, flown_config, flown, simulator, config, plans, pilot)
                    write_record(run.path, config, flown_config, vehicles, trajectory, scene, level, parameters, pictures)
                    run.keep()
                    if not run.replaces:
                        run.publish()
            except KeyboardInterrupt as stop:
                raise FlightsKept(config.out, *stop.args) from stop
        scored = _scored(run, config, flown, scene, quiet)
    video = scored.filmed.video
    if scored.filmed.error is not None:
        raise scored.filmed.error
    if video is not None:
        video = replace(video, path=config.out / video.path.name, sheet=config.out / video.sheet.name)
    notes = tuple(scored.summary.get("pilot_notes", ()))
    return FlyResult(scored.summary, config.out, flown.interrupted, flown.pilot_error, notes, video, scored.filmed.interrupted)


def _check_course(
    config: FlyConfig, flown: FlyConfig, trajectory: Trajectory, scene: Scene | None, vehicles: list[Vehicle]
) -> None:
    """Refuse a course of the user's that meets something; warn of one that the scene brings."""
    if scene is None or config.contact == "none":
        return
    from airworthy.tasks.course_fit import check_course

    chosen = config.course is not None or bool(config.waypoints)
    check = "warn" if config.course_check == "refuse" and not chosen else config.course_check
    name = flown.course or ("waypoints" if config.waypoints else "start to goal")
    advice = "move its way-points (`airworthy courses validate` tells of them), or fly it as it is with --course-check warn"
    check_course(trajectory, scene, vehicles, name, check, advice)


def owned_by_run(name: str) -> bool:
    """Tell whether an entry of a run's folder is the run's, to be replaced with it; others are the user's."""
    is_film = name.startswith(VIDEO_STEM) and name.endswith((*SUFFIXES, SHEET_SUFFIX))
    return is_film or name in {FLIGHT_FILE, FLIGHT_LOG, META_FILE, CONFIG_FILE, SUMMARY_FILE, REPORT_FILE, RECORD, "sensors"}


def _sensor_pictures(mounted: MountedSensors) -> list[dict[str, str]]:
    from airworthy.reports.pictures import sensor_pictures

    return sensor_pictures(mounted)


def _scored(run: StagedFolder, config: FlyConfig, flown: FlightRun, scene: Scene | None, quiet: bool) -> RunMetrics:
    """Film, summary and report of what was flown; the flights are kept wherever this is stopped."""
    try:
        if flown.asked_to_stop:
            raise KeyboardInterrupt
        return judge_flights(run.path, config, read_record(run.path), flown, read_flight_meta(run.path), scene, quiet)
    except KeyboardInterrupt as stop:
        raise FlightsKept(config.out, *stop.args) from stop


def _vehicle(name: str, rotors: str | None = None) -> Vehicle:
    return named_vehicle(name, rotors)


def _warn_of_lost_modules(specifier: str) -> None:
    """Warn of what a pilot's file uses and the run's folder will not have."""
    if not is_own_pilot(specifier):
        return
    file = specifier.rpartition(":")[0]
    lost = [f"{name!r}, {why}" for name, why in not_copied(file).items()]
    if lost:
        warnings.warn(
            f"{file}: it imports {'; '.join(lost)}: the run's folder keeps no copy, so that flying it again needs"
            f" {'them' if len(lost) > 1 else 'it'} as now.",
            AssetWarning,
            stacklevel=3,
        )


def _check_pilot(config: FlyConfig, level: str) -> None:
    levels = FAMILIES["rigid" if config.dynamics == "auto" else config.dynamics].levels
    if level not in levels:
        fitting = [name for name in pilot_names() if pilot_level(name) in levels]
        raise AirworthyError(
            f"Pilot {config.pilot!r} does not fit {config.dynamics} dynamics; built-in pilots that do: {', '.join(fitting)}."
        )


_ONE_SPHERE = "keeps clear by one sphere around a rigid vehicle"
_NOT_OF_JOINTS = {
    "crazyflie": "mixes motors by the firmware's own table for four rotors in an x",
    "avoid": _ONE_SPHERE,
    "navigation": _ONE_SPHERE,
}
"""Built-in pilots that know rigid vehicles only, and why. A policy's contract says itself which joints it knows."""


def _check_jointed(config: FlyConfig, vehicles: list[Vehicle]) -> None:
    """Refuse a built-in pilot that knows rigid vehicles only."""
    why = _ONE_SPHERE if is_planner(config.pilot) else _NOT_OF_JOINTS.get(config.pilot.partition(":")[0])
    if config.dynamics == "articulated" and why is not None:
        rest = [name for name in pilot_names() if name not in (*_NOT_OF_JOINTS, *AUTOPILOTS)]
        raise AirworthyError(
            f"Pilot {config.pilot!r} {why}, and {vehicles[0].name!r} has joints: fly {', '.join(rest)}, or hold the joints with"
            " --dynamics rigid."
        )


def _check_priority(config: FlyConfig, level: str, plans: bool) -> None:
    """Refuse an order of allocation where nothing is allocated, or by a controller that brings its own."""
    priority = priority_of(control_of(config))  # refuses two that differ
    if config.priority is None and priority == PRIORITIES[0]:
        return
    why = f"the law of pilot {config.pilot!r} commands the rotors by itself" if level in UNALLOCATED_LEVELS else ""
    why = "planners bring their own controller" if plans else why
    why = "semi_kinematic dynamics have no rotors" if config.dynamics == "semi_kinematic" else why
    if why:
        asked = "--priority" if config.priority is not None else f"The priority in {config.gains!r}"
        raise AirworthyError(f"{asked} changes nothing, since {why}: leave it out.")


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
    """Return the trajectory to fly, and the gates to draw.

    Raises:
        AirworthyError: Unknown course, bad waypoints, or limits that cannot be kept.
    """
    gates: tuple[Gate, ...] = ()
    if config.waypoints:
        points = np.array([_point(text) for text in config.waypoints])
        speed, acceleration = config.speed or 2.0, config.acceleration or 3.0
        trajectory = _repeated(from_waypoints(points, Limits(speed=speed, acceleration=acceleration)), config.laps or 1)
    else:
        chosen = course(DEFAULT_COURSE if config.course is None else config.course)
        gates = chosen.gates
        limits = None
        if config.speed is not None or config.acceleration is not None:
            limits = chosen.hurried(config.speed, config.acceleration)
            _check_effect(chosen, config)
        if gates:
            trajectory = chosen.trajectory(limits, lap_count=config.laps)
        else:
            trajectory = _repeated(chosen.trajectory(limits, lap_count=1), config.laps or chosen.lap_count)
    return (trajectory if config.slower == 1.0 else trajectory.scaled(config.slower)), gates


def _check_effect(chosen: Course, config: FlyConfig) -> None:
    """Refuse a limit that keyframes, which are never hurried, keep anyhow."""
    if chosen.kind != "keyframes":
        return
    for name, order, unit in (("speed", 1, "m/s"), ("acceleration", 2, "m/s^2")):
        limit = getattr(config, name)
        if limit is None:
            continue
        most = maximise(magnitude(chosen.trajectory(lap_count=1), order), 1e-3 * limit).attained
        if most <= limit:
            raise AirworthyError(
                f"--{name} {limit:g} changes nothing: course {chosen.name!r} has its own times and reaches {most:.3g} {unit};"
                f" give less, leave it out, or hurry it with --slower below 1."
            )


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


def settled(config: FlyConfig, vehicles: list[Vehicle]) -> tuple[FlyConfig, list[Vehicle]]:
    """Return the configuration, where vehicles have joints with the dynamics and integrator that these are flown by, and the
    vehicles as they fly: with joints held where dynamics have none.

    Args:
        config: As it was given.
        vehicles: Of it.

    Raises:
        AirworthyError: Joints are spoken of that are not there, or angles do not fit.
    """
    jointed = [item for item in vehicles if item.links]
    if config.joints is not None and not jointed:
        raise AirworthyError(f"--joints changes nothing, since {vehicles[0].name} has no joints: leave it out.")
    dynamics = config.dynamics
    if dynamics == "auto":
        dynamics = "articulated" if jointed and len(jointed) == len(vehicles) else "rigid"
    if dynamics != "articulated":
        held = [frozen(item, angles_of(config, item)) if item.links else item for item in vehicles]
        return config, held
    for item in vehicles:
        angles_of(config, item)
    if config.integrator != "auto" or not jointed:
        return replace(config, dynamics="articulated"), vehicles
    changes: dict[str, Any] = {"integrator": default_integrator(tree_of(jointed[0]), 1.0 / config.physics_rate)}
    return replace(config, dynamics="articulated", **changes), vehicles


def angles_of(config: FlyConfig, item: Vehicle) -> tuple[float, ...]:
    """Return the angles that a vehicle's joints start from [rad].

    Args:
        config: Of the run.
        item: A vehicle with joints.

    Raises:
        AirworthyError: `config.joints` is no name and no angles, or does not fit the vehicle.
    """
    if config.joints is None:
        return start_angles(item)
    if config.joints in JOINT_ANGLES or not any(c.isdigit() for c in config.joints):
        return joint_angles(item, config.joints)
    try:
        numbers = [float(part) for part in config.joints.split(",")]
    except ValueError:
        raise AirworthyError(
            f"--joints is {config.joints!r}; expected {', '.join(JOINT_ANGLES)}, or an angle for each joint in radians, with"
            " commas."
        ) from None
    return joint_angles(item, numbers)


def simulator_config(config: FlyConfig, level: str, vehicles: Sequence[Vehicle] = ()) -> SimulatorConfig:
    """Return the simulator's part of the configuration.

    Args:
        config: Of the run, settled.
        level: Of the pilot's commands.
        vehicles: Of which the first has the joints that `config.joints` speaks of.
    """
    jointed = config.dynamics == "articulated"
    windless = jointed and not any(any(link.drag) for item in vehicles for link in item.links)
    return SimulatorConfig(
        dynamics="rigid" if config.dynamics == "auto" else config.dynamics,
        joint_angles=angles_of(config, vehicles[0]) if jointed and config.joints is not None and vehicles else (),
        physics_rate=config.physics_rate,
        control_rate=config.control_rate,
        integrator="rk4" if config.integrator == "auto" else config.integrator,
        level=level,
        control=control_of(config),
        ground=Ground() if config.ground else None,
        contact=contact_of(config),
        wind=Wind(mean=config.wind, turbulence=(config.turbulence,) * 3),
        imu=None if config.imu is None else Imu.named(config.imu),
        randomization=randomization(config.randomize, windless),
    )


def _place(simulator: Simulator, trajectory: Trajectory) -> None:
    """Start every flight on the trajectory, with its attitude and velocity, leaning as the vehicle's hover does."""
    first = trajectory.sample(np.zeros(1))
    attitude = kinematic_state(first).attitude[0]
    jointed, position = simulator.config.dynamics == "articulated", first.position[0]
    trim = hover_trim(held(simulator.vehicles[0], simulator.config) if jointed else simulator.vehicles[0])
    if simulator.config.dynamics != "semi_kinematic" and trim.tilt > 0.0:
        attitude = multiply(attitude, np.array(trim.attitude))
    if jointed:  # the trajectory is the whole vehicle's
        position = np.array([root_below(item, simulator.config, position, attitude) for item in simulator.vehicles])
    simulator.reset(position=position, velocity=first.velocity[0], attitude=attitude)


def _plan(config: FlyConfig, trajectory: Trajectory, scene: Scene | None, batch: SceneBatch | None) -> FlightPlan:
    return FlightPlan(
        duration=trajectory.duration + config.hold,
        reference=trajectory,
        record_every=max(1, round(config.control_rate / config.record_rate)),
        bounds=farthest_from_start(trajectory),
        region=region_of(scene),
        geometry=None if batch is None else batch.geometry,
        latency=config.latency,
    )


def drawn_parameters(simulator: Simulator) -> dict[str, Any]:
    """Return what differs between the flights, for the report: name with unit -> (env,)."""
    if not simulator.config.randomization.any:
        return {}
    if simulator.config.dynamics == "articulated":
        masses = [row for row, name in enumerate(tree_of(simulator.vehicles[0]).row_names) if name.endswith(".mass")]
        total = simulator.parameter("tree")[:, masses].sum(axis=1)
        return {"mass_kg": total} if np.ptp(total) > 0.0 else {}
    found: dict[str, Any] = {"mass_kg": simulator.parameter("mass")}
    if simulator.config.dynamics == "rigid":
        recorded = np.array([item.mass for item in simulator.vehicles])
        found["mass_ratio"] = simulator.parameter("mass") / recorded
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


def exactly_turned(simulator: Simulator) -> list[str]:
    """Return vehicles whose rotors advance by their exact solution, being too fast for the integrator's step."""
    return sorted({item.name for item, exact in zip(simulator.vehicles, simulator.exact_rotors, strict=True) if exact})


def _write_flights(
    folder: Path,
    flown_config: FlyConfig,
    flown: FlightRun,
    simulator: Simulator,
    asked: FlyConfig,
    own_way: bool,
    pilot: Pilot,
) -> None:
    """Write the flights and how they were asked for."""
    names = [item.name for item in simulator.vehicles[: len(asked.vehicle)]]
    labels = labels_of(flown_config, flown_config.course, flown_config.waypoints, own_way)
    meta = _meta(asked, flown, names, labels) | {"exact_rotors": exactly_turned(simulator)}
    if simulator.config.randomization.posterior:
        told = draws_record(simulator.vehicles, simulator.config.randomization)
        meta |= {**told, "rejected_draws": simulator.rejected_draws}
    meta |= {"pilot_notes": pilot.notes()} if isinstance(pilot, RemotePilot) and pilot.notes() else {}
    if isinstance(pilot, ExpertPilot):  # by flight: ticks that kept the last command, and those flown short of the optimum
        meta |= {"mpc": {"failed_ticks": pilot.failures.tolist(), "cut_off_ticks": pilot.cut_off.tolist()}}
    write_flight(folder, flown.table, meta)
    write_json(folder / CONFIG_FILE, resolved(asked))


def _meta(config: FlyConfig, flown: FlightRun, names: list[str], labels: dict[str, Any]) -> dict[str, Any]:
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
        **({"outcomes": {str(env): outcome for env, outcome in flown.outcomes.items()}} if flown.outcomes else {}),
        **({"causes": {str(env): cause for env, cause in flown.causes.items()}} if flown.causes else {}),
        "config": resolved(config),
    }
