"""`airworthy fly` with a planner: from a start to a goal in any scene, with maps, camera and controller of the benchmark."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from airworthy.benchmarks.fly.config import FlyConfig
from airworthy.benchmarks.navigation.config import NavigationConfig
from airworthy.benchmarks.navigation.doubts import warn_of_doubts
from airworthy.benchmarks.navigation.methods import (
    BODY,
    NavigationMethod,
    check_ready,
    is_learnt_planner,
    is_own_pilot,
    method_names,
    method_of,
    own_method,
)
from airworthy.benchmarks.navigation.sensing import DEPTH, depth_camera, depth_maps, upright
from airworthy.benchmarks.navigation.start_room import start_room
from airworthy.core.arrays import Array, ArrayBool
from airworthy.core.errors import AirworthyError, AssetWarning, unknown_name
from airworthy.pilots import FlightPlan, FlightRun
from airworthy.pilots.catalogue import NAVIGATION, POLICY_WORDS, learnt_guide, pilot_names
from airworthy.planners.common.interface import Airframes, Mission, enclosing_radius
from airworthy.sensors import carried_sensors, device_names, device_or_sensor
from airworthy.sensors.navigation.mounted import mounted_names
from airworthy.sensors.own import SPECIFIER_HINT, is_own
from airworthy.simulation import Contact, MountedSensor, MountedSensors, SensorRecorder, Simulator, SimulatorConfig
from airworthy.tasks.navigation import GoalWatch, NavigationProtocol
from airworthy.trajectories import course_names
from airworthy.trajectories.allocation import LEAST_LEG
from airworthy.vehicles import Vehicle

if TYPE_CHECKING:
    from airworthy.scenes import GateFrame, Scene, SceneBatch

__all__ = ["GoalFlight", "ends_of", "finds_own_way", "is_planner", "limited", "own_of", "plans", "point_text", "refuse_unknown"]

# ---- The scene and the sensors of a run of `airworthy fly` ------------------------------------------------------------------

GATE_RUN = 1.5
"""Straight way before and behind a gate [m]."""

CARRIED = "carried"
"""Word of `--sensors` for what the vehicle's record says it carries."""


def place_of(config: FlyConfig) -> Scene | None:
    """Return the scene to fly in; None without one.

    Raises:
        AirworthyError: If there is none of this name, or its file is damaged.
    """
    if config.scene is None:
        return None
    from airworthy.scenes import scene

    recentre = True if config.recentre else False if config.keep_frame else None
    up = None if config.up == "auto" else config.up
    return scene(config.scene, config.units, up, recentre=recentre, voxel=config.voxel, unknown=config.unknown)


def with_course(config: FlyConfig, scene: Scene | None) -> tuple[str | None, tuple[str, ...]]:
    """Return course and waypoints of a run: what was asked for, or else what the scene is made for.

    A scene's own course; or through its gates from its start; or straight from its start to its goal.

    Raises:
        AirworthyError: If neither the user nor the scene names a way.
    """
    if scene is None or config.course is not None or config.waypoints:
        return config.course, config.waypoints
    known = [name for name in scene.courses if name in course_names()]
    if known:
        return known[0], ()
    points = [] if scene.start is None else [np.array(scene.start.position, float)]
    if scene.gates:
        points += _through_gates(scene.gates, points)
    elif scene.goal is not None:
        points.append(np.array(scene.goal.position, float))
    if len(points) < 2:
        raise AirworthyError(f"Scene {scene.name!r} has no course, gates or goal of its own: give --course or --waypoints.")
    return None, tuple(",".join(f"{value:.6g}" for value in point) for point in points)


def _through_gates(gates: Sequence[GateFrame], before: list[Array]) -> list[Array]:
    """Points in front of, in and behind each gate, so that it is flown through at a right angle."""
    centers = [np.mean(gate.corners, axis=0) for gate in gates]
    line = [*(before or centers[:1]), *centers, centers[-1]]
    points: list[Array] = []
    for k, gate in enumerate(gates):
        normal = np.linalg.svd(np.array(gate.corners) - centers[k])[2][2]
        # The marker order does not tell the direction of flight: the gate does, or else where one comes from and goes to.
        ahead = line[k + 2] - line[k] if len(gates) > 1 else normal
        ahead = ahead if gate.direction is None else np.array(gate.direction)
        normal = normal if float(normal @ ahead) >= 0.0 else -normal
        points += [centers[k] - GATE_RUN * normal, centers[k], centers[k] + GATE_RUN * normal]
    return points


def batch_of(config: FlyConfig, scene: Scene | None) -> SceneBatch | None:
    """Return the scene, ready for queries by every flight."""
    if scene is None:
        if config.sensors:
            raise AirworthyError("Sensors need something to see: name a --scene (`airworthy scenes` lists them).")
        return None
    from airworthy.scenes import SceneBatch

    return SceneBatch(scene, config.envs, device=config.device)


def contact_of(config: FlyConfig) -> Contact | None:
    """Return what happens at an impact; None where there is nothing to hit, or vehicles fly through it."""
    return None if config.scene is None or config.contact == "none" else Contact(mode=config.contact)


def check_ends(
    config: FlyConfig, batch: SceneBatch | None, vehicles: Sequence[Vehicle], start: Array, goal: Array | None = None
) -> None:
    """Refuse a start or goal inside of something, or so near to it that a vehicle there would touch it.

    Args:
        config: Of the run; contact "none" refuses nothing.
        batch: The scene, in environment 0; None: there is none.
        vehicles: Of the flights; the smallest half extent among them counts.
        start: Position of the course's, or the planner's, start [m], world frame, (3,).
        goal: Of a planner, likewise; None: a course is followed.

    Raises:
        AirworthyError: One sentence with the place.
    """
    if batch is None or config.contact == "none":
        return
    from airworthy.benchmarks.fly.open_meshes import warn_of_open_meshes
    from airworthy.geometry.distance import clearance

    # A body that rebounds is pushed out; one that may not touch ends its flight at once.
    least = 0.0 if config.contact == "respond" else min(min(item.body.size) for item in vehicles) - 1e-3
    gap = float(clearance(batch.geometry, np.asarray(start)[None], env=0).distance[0])
    if gap < least:
        here, near = point_text(start), _nearness(gap)
        if goal is None:
            raise AirworthyError(
                f"The course starts at {here} m, {near}, in {config.scene!r}: move its start, or fly with --contact none."
            )
        raise AirworthyError(
            f"The start {here} m lies {near}, in {config.scene!r}: choose another start, or fly with --contact none."
        )
    warn_of_open_meshes(
        batch.scenes[batch.scene_of_env[0]], {"start": start} if goal is None else {"start": start, "goal": goal}
    )
    if goal is None:
        return
    # Whatever moves may be gone by the time that somebody arrives.
    gap = float(clearance(_unmoving(batch).geometry, np.asarray(goal)[None], env=0).distance[0])
    if gap < least:
        raise AirworthyError(
            f"The goal {point_text(goal)} m lies {_nearness(gap)}, in {config.scene!r}: choose another goal, or fly with"
            " --contact none."
        )


def _unmoving(batch: SceneBatch) -> SceneBatch:
    """Return the scene of environment 0 without what moves in it."""
    from airworthy.scenes import SceneBatch

    scene = batch.scenes[batch.scene_of_env[0]]
    return SceneBatch(replace(scene, actors=()), 1) if scene.actors else batch


def _nearness(gap: float) -> str:
    return "inside an obstacle" if gap < 0.0 else f"{gap + 0.0:.2g} m from an obstacle, nearer than the vehicle is large"


def point_text(point: Array) -> str:
    """Return a position as people read it: three digits and no negative zero."""
    return "(" + ", ".join(f"{value + 0.0:.3g}" for value in np.asarray(point, np.float64).tolist()) + ")"


def mounted_sensors(config: FlyConfig, vehicles: Sequence[Vehicle]) -> dict[str, MountedSensor]:
    """Return sensors by their names, from words "DEVICE", "NAME=DEVICE", "NAME=DEVICE:CHANNEL,CHANNEL" or "carried".

    A device is a name of the catalogue, FILE.toml:NAME, or FILE.py:CLASS.

    Raises:
        AirworthyError: If a word is none of these, a device is unknown, or a name is given twice.
    """
    found: dict[str, MountedSensor] = {}
    for token in (part for text in config.sensors for part in text.split()):
        if token == CARRIED:
            _add_carried(found, vehicles, config.vehicle)
            continue
        name, named, rest = token.partition("=")
        kind, channels = _kind_of(rest if named else name)
        known = (*device_names(), *mounted_names())
        if not is_own(kind) and kind not in known:
            raise unknown_name("sensor", kind, known, f"Write --sensors NAME=DEVICE or DEVICE; {SPECIFIER_HINT}")
        wanted = tuple(channel for channel in channels.split(",") if channel) or None
        called = kind.rpartition(":")[2] if is_own(kind) else kind
        _add(found, (name if named else called) or called, MountedSensor(device_or_sensor(kind), channels=wanted), kind)
    return found


def _kind_of(text: str) -> tuple[str, str]:
    """Return "DEVICE:CHANNELS" in its two parts; of FILE:NAME:CHANNELS the first is FILE:NAME."""
    kind, _, channels = text.partition(":")
    if is_own(kind):
        name, _, channels = channels.partition(":")
        kind = f"{kind}:{name}"
    return kind, channels


def _add_carried(found: dict[str, MountedSensor], vehicles: Sequence[Vehicle], words: Sequence[str]) -> None:
    carried = []
    for vehicle, word in zip(vehicles, words, strict=True):
        try:
            carried.append(carried_sensors(vehicle))
        except AirworthyError as error:
            raise error if word == vehicle.name else AirworthyError(f"{word!r}: {error}") from error
    if not carried[0]:
        raise AirworthyError(f"The record of {vehicles[0].name!r} names no sensor that looks out: name a device instead.")
    if any(set(other) != set(carried[0]) for other in carried):
        raise AirworthyError("The vehicles of this run carry different sensors: name devices, which all then carry.")
    links = {mount.name: mount.link for mount in vehicles[0].sensors}
    for name, item in carried[0].items():
        _add(found, name, MountedSensor(item, link=links.get(name, "")))


def _add(found: dict[str, MountedSensor], name: str, item: MountedSensor, kind: str = "DEVICE") -> None:
    if name in found:
        raise AirworthyError(f"Two sensors are named {name!r}: give one another name, as in --sensors left={kind}.")
    if not name.replace("_", "").replace("-", "").isalnum():
        raise AirworthyError(f"A sensor is named {name!r}; expected letters, digits, '-' and '_'.")
    found[name] = item


def recording(folder: Path, mounted: MountedSensors | None, names: tuple[str, ...]) -> AbstractContextManager[Any]:
    """Write what the named sensors sample, as long as it is open.

    Args:
        folder: Of the run; samples go into `sensors/` in it.
        mounted: The sensors; None: there are none, and nothing is written.
        names: Of the sensors that are recorded.
    """
    return nullcontext() if mounted is None or not names else SensorRecorder(folder, mounted, names)


def mount(
    config: FlyConfig, simulator: Simulator, batch: SceneBatch | None, sensors: dict[str, MountedSensor]
) -> MountedSensors | None:
    """Return the sensors on every vehicle; None where none is asked for.

    Args:
        config: Of the run.
        simulator: That carries them.
        batch: The scenes that they see; None: there are none.
        sensors: By name, where and what.
    """
    return MountedSensors(simulator, batch, sensors) if sensors and batch is not None else None


def region_of(scene: Scene | None) -> tuple[Array, Array] | None:
    """Return corners of the scene's bounds [m]."""
    return None if scene is None else (np.array(scene.bounds.lower, float), np.array(scene.bounds.upper, float))


# -----------------------------------------------------------------------------------------------------------------------------

SPEED, ACCELERATION = 4.0, 6.0
"""Limits where none are named: the benchmark's [m/s], [m/s^2]."""
_OUTCOMES = {
    "success": "success",
    "not_at_goal": "not_at_goal",
    "timeout_no_path": "timeout",
    "collision": "collision",
    "out_of_bounds": "out_of_bounds",
    "diverged": "diverged",
}
"""Of the benchmark in the words of `airworthy fly`."""


_WHY: dict[str, Callable[[NavigationProtocol], str]] = {
    "collision": lambda rules: "it met the ceiling of the place",
    "out_of_bounds": lambda rules: "it left the place",
    "diverged": lambda rules: f"it leaned by more than {rules.tilt_limit_deg:g} degrees, or its state was no longer finite,",
}
"""What the watch ends a flight for that the simulator would let fly on."""


def is_planner(specifier: str) -> bool:
    """Tell whether a pilot's word is of one that finds its way to a goal: a planner of the benchmark's, FILE.py:CLASS of a
    class that plans, or avoid:FOLDER or navigation:FOLDER, a learnt policy.

    Raises:
        AirworthyError: The file is not there, or cannot be imported.
    """
    return finds_own_way(specifier) or (is_own_pilot(specifier) and method_of(specifier).kind == "planner")


def finds_own_way(specifier: str) -> bool:
    """Return whether a pilot's word is of a planner of the benchmark's, or of a learnt policy that finds its own way."""
    return specifier in method_names() or is_learnt_planner(specifier) or learnt_guide(specifier) != ""


def refuse_unknown(specifier: str) -> None:
    """Refuse a pilot's word that nothing goes by.

    Raises:
        UnknownNameError: Neither a pilot nor a planner has that name.
        AirworthyError: A planner's name, and something behind it.
    """
    word = specifier.partition(":")[0]
    if is_own_pilot(specifier) or finds_own_way(specifier) or word in pilot_names():
        return
    if word in method_names():
        raise AirworthyError(f"The pilot is named {specifier!r}; planners take nothing behind a colon: write {word}.")
    hint = f"A trained policy is {POLICY_WORDS}, a class of your own FILE.py:CLASS."
    raise unknown_name("pilot", specifier, [*pilot_names(), *method_names()], hint)


def own_of(specifier: str, given: Any = None) -> NavigationMethod | None:
    """Return a planner or pilot of the user's own, by its word or as it was given; None where a built-in one flies.

    An object that only gives commands is no method: it flies as it is.

    Raises:
        AirworthyError: As `method_of`.
    """
    if given is None:
        return method_of(specifier) if is_own_pilot(specifier) else None
    return own_method(given) if isinstance(given, type) or plans(given) else None


def plans(given: Any) -> bool:
    """Return whether a class or an object of the user's is a planner."""
    return all(hasattr(given, part) for part in ("update", "setpoints", "reset"))


def ends_of(config: FlyConfig, scene: Scene | None) -> tuple[str, ...]:
    """Start and goal of a flight as two way-points: as named, else the scene's.

    Raises:
        AirworthyError: There is no scene, or one of them is missing.
    """
    if scene is None:
        raise AirworthyError(f"Pilot {config.pilot!r} finds its own way: name a --scene (`airworthy scenes` lists them).")
    if config.waypoints:
        if len(config.waypoints) != 2:
            raise AirworthyError(f"Pilot {config.pilot!r} finds its own way: give two --waypoints, start and goal.")
        return config.waypoints
    ends = []
    for name, asked, own in (("start", config.start, scene.start), ("goal", config.goal, scene.goal)):
        if asked is None and own is None:
            raise AirworthyError(f"Scene {scene.name!r} has no {name} of its own: give --{name} X Y Z, in metres.")
        ends.append(asked if asked is not None else own.position)  # type: ignore[union-attr]
    if np.linalg.norm(np.subtract(ends[0], ends[1])) < LEAST_LEG:
        same = ", ".join(f"{value:g}" for value in ends[0])
        raise AirworthyError(f"Start and goal are the same point, ({same}) m: give another --start or --goal.")
    _tell_found(config, ends)
    return tuple(",".join(repr(float(value)) for value in end) for end in ends)


def _tell_found(config: FlyConfig, ends: Sequence[Sequence[float]]) -> None:
    """Tell where a flight begins and ends if its file, a model or a cloud, is all that anybody said."""
    from airworthy.scenes.catalogue import is_path

    lacking = [f"--{name}" for name, asked in (("start", config.start), ("goal", config.goal)) if asked is None]
    if lacking and config.scene and is_path(config.scene) and not config.scene.lower().endswith(".toml"):
        (a, b), name = (", ".join(f"{value:.3g}" for value in end) for end in ends), Path(config.scene).name
        warnings.warn(
            f"{name} is flown from ({a}) to ({b}) m, where it has room; {' and '.join(lacking)} would say otherwise.",
            AssetWarning,
            stacklevel=3,
        )


def limited(config: FlyConfig) -> FlyConfig:
    """Return the same with the benchmark's limits where none are named."""
    return replace(config, speed=config.speed or SPEED, acceleration=config.acceleration or ACCELERATION)


class GoalFlight:
    """Flights of one planner, or of a learnt policy that sees, to a goal.

    Args:
        config: With start and goal as two way-points.
        vehicles: One per flight.
        scene: The scene.
        batch: The same, ready for queries.
        own: The planner, where it is the user's own; None: as the configuration names it.

    Raises:
        AirworthyError: The planner is not to be had, lacks something, or cannot fly there.
    """

    def __init__(
        self,
        config: FlyConfig,
        vehicles: Sequence[Vehicle],
        scene: Scene,
        batch: SceneBatch,
        own: NavigationMethod | None = None,
    ):
        if not config.is_rigid:
            raise AirworthyError(f"Pilot {config.pilot!r} needs a vehicle with rotors: fly --dynamics rigid.")
        self.radius = np.array([enclosing_radius(item) for item in vehicles])
        self.sensors: dict[str, MountedSensor] = {}
        if learnt_guide(config.pilot):
            self.mission = _mission(config, vehicles, self.radius, scene)
            # A policy never says that it looks for a way.
            self._searcher: Any = None
            self._set_policy(config, vehicles)
        else:
            self._set_planner(config, vehicles, scene, batch, own)
        self._rules = NavigationProtocol(time_limit_s=config.time_limit)
        mission = self.mission
        self._watch = GoalWatch(mission.goal, mission.lower, mission.upper, self.radius, self._rules)

    def _set_policy(self, config: FlyConfig, vehicles: Sequence[Vehicle]) -> None:
        from airworthy.pilots.avoid_policy.pilot import GoalPilot, check_speed, read_avoid_policy
        from airworthy.pilots.avoid_policy.sight import CAMERA, avoid_camera
        from airworthy.pilots.navigation_policy import pilot as navigation

        word, _, folder = config.pilot.partition(":")
        if word == NAVIGATION:
            policy = navigation.read_flown_policy(folder)
            if config.speed is not None:
                navigation.check_speed(policy, config.speed, asked=True)
            self.sensors = policy.eye.sensors
            self.pilot: Any = navigation.NavigationGoalPilot(policy, self.mission.goal, self.mission.speed)
            return
        avoiding = read_avoid_policy(folder)
        check_speed(avoiding.contract, float(self.mission.speed.max()))
        self.sensors = {CAMERA: MountedSensor(avoid_camera())}
        self.pilot = GoalPilot(avoiding, self.mission.goal, self.mission.speed, vehicles)

    def _set_planner(
        self,
        config: FlyConfig,
        vehicles: Sequence[Vehicle],
        scene: Scene,
        batch: SceneBatch,
        own: NavigationMethod | None,
    ) -> None:
        from airworthy.planners.common.tracking import PlannerPilot
        from airworthy.planners.common.tracking_faults import Alone, made
        from airworthy.planners.mapping import maps_of_scene

        who = method_of(config.pilot, max(BODY, float(self.radius.max()))) if own is None else own
        check_ready(who)
        self.mission = _mission(config, vehicles, self.radius, scene)
        planner: Any = Alone(who.make) if who.alone else made(who.make) if who.own else who.make()
        if hasattr(planner, "doubts"):
            _tell_doubts(who.name, planner, self.mission, batch)
        usual, settings = NavigationConfig(), planner.settings
        knows = who.privileged and settings is not None
        maps: Any = None
        if hasattr(planner, "maps_for"):
            maps = planner.maps_for(self.mission, batch if knows else None)
            self.sensors = {DEPTH: MountedSensor(depth_camera(usual, None))}
        elif knows:
            maps = maps_of_scene(batch, self.mission, settings)
        elif settings is not None:
            maps = depth_maps(self.mission, settings, usual)
            self.sensors = {DEPTH: MountedSensor(depth_camera(usual, settings))}
        self.pilot = PlannerPilot(planner, self.mission, list(vehicles), maps)
        self._searcher = self.pilot.guard.planner

    @property
    def level(self) -> str:
        """Control level of the commands."""
        return str(self.pilot.level)

    def configured(self, config: SimulatorConfig) -> SimulatorConfig:
        """Return the simulator with the gains of the common controller."""
        made: SimulatorConfig = self.pilot.configured(config)
        return made

    def plan(self, plan: FlightPlan) -> FlightPlan:
        """Return a flight plan as long as the time limit, and no longer than until every flight has arrived, failed or
        ended."""
        return replace(plan, duration=self._rules.time_limit_s, bounds=np.inf, finished=self._finished)

    def attached(self, simulator: Simulator, mounted: MountedSensors | None) -> Any:
        """Return the pilot, with its controllers and its camera in hand."""
        self.pilot.attach(simulator, mounted, DEPTH)
        return self.pilot

    def scored(self, flown: FlightRun) -> FlightRun:
        """Return the flights with what became of those that neither hit anything nor left the place by their status."""
        last = flown.table.status[flown.table.starts[1:] - 1]
        outcomes, causes = dict(flown.outcomes), dict(flown.causes)
        for env, status in zip(flown.table.envs.tolist(), last.tolist(), strict=True):
            if self.pilot.causes[env] and status == 0:
                outcomes[env], causes[env] = "pilot_error", self.pilot.causes[env]
            elif status == 0 and str(self._watch.outcome[env]) in _OUTCOMES:
                outcome = _OUTCOMES[str(self._watch.outcome[env])]
                outcomes[env] = outcome
                if outcome in _WHY:
                    causes.setdefault(env, f"{_WHY[outcome](self._rules)} at {self._watch.end[env]:.1f} s")
        return replace(flown, outcomes=outcomes, causes=causes)

    def _finished(self, simulator: Simulator) -> ArrayBool:
        nothing = np.full(simulator.env_count, np.nan)
        self._watch.update(
            simulator.time,
            simulator.position,
            simulator.velocity,
            upright(simulator.field("attitude")),
            nothing,
            simulator.diverged,
            np.asarray(getattr(self._searcher, "searching", np.zeros(simulator.env_count, bool)), bool),
        )
        self.pilot.over = ~self._watch.active
        return np.asarray(~self._watch.active | self.pilot.failed)


def _tell_doubts(name: str, planner: Any, mission: Mission, batch: SceneBatch) -> None:
    """Warn of what a planner doubts of flights that begin looking towards their goals."""
    away = mission.goal - mission.start
    heading, env = np.arctan2(away[:, 1], away[:, 0]), np.zeros(len(away), np.int64)
    warn_of_doubts(name, planner, mission, start_room(batch, mission.start, heading, env, mission.lower, mission.upper))


def _mission(config: FlyConfig, vehicles: Sequence[Vehicle], radius: Array, scene: Scene) -> Mission:
    count = len(vehicles)
    ends = np.array([[float(part) for part in point.split(",")] for point in config.waypoints], np.float64)
    lower, upper = (np.array(corner, np.float64) for corner in (scene.bounds.lower, scene.bounds.upper))
    for name, end in zip(("start", "goal"), ends, strict=True):
        if not ((end >= lower) & (end <= upper)).all():
            raise AirworthyError(
                f"The {name} {point_text(end)} m lies outside the scene {scene.name!r}, which reaches from"
                f" {point_text(lower)} to {point_text(upper)} m: choose another."
            )
    limits = limited(config)
    rows = [np.tile(values, (count, 1)) for values in (ends[0], ends[1], lower, upper)]
    return Mission(
        start=rows[0],
        goal=rows[1],
        speed=np.full(count, limits.speed, np.float64),
        acceleration=np.full(count, limits.acceleration, np.float64),
        lower=rows[2],
        upper=rows[3],
        flight=np.arange(count),
        seed=config.seed,
        vehicle=Airframes.of(vehicles, radius),
    )
