"""Flies one block: flights of one pilot in one family of dynamics under one condition, all at once, and judges them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from airworthy.benchmarks.tracking.adaptation import estimated_ratio, flown_ratio
from airworthy.benchmarks.tracking.condition_edits import moved_scene, splat_boxes, without_boxes
from airworthy.benchmarks.tracking.condition_scene import WalkableGround, Walkers, free_ground, place_of
from airworthy.benchmarks.tracking.conditions import Condition, noise_level
from airworthy.benchmarks.tracking.methods import (
    LEVEL,
    TICK_RATE,
    Drones,
    TrackingMethod,
    VehicleSpread,
    draw_drones,
    equip,
    keys_of,
    with_draws,
)
from airworthy.benchmarks.tracking.seen_images import SeenImages
from airworthy.benchmarks.tracking.trial import TrialSimulator, WatchedPilot, gust_of, pickup_of
from airworthy.bridges.external_pilot import ExternalPilot
from airworthy.bridges.remote.pilot import RemotePilot
from airworthy.control.levels import ControlConfig
from airworthy.core.arrays import Array, ArrayInt, ArrayU8
from airworthy.core.errors import AirworthyError
from airworthy.core.files import json_text
from airworthy.evaluation.metrics import FlightResult, evaluate_tracking, path_distance
from airworthy.geometry.distance import clearance
from airworthy.optics.projections import Pinhole
from airworthy.optics.tone import to_8bit
from airworthy.pilots import FlightPlan, FlightRun, fly
from airworthy.scenes import Scene, SceneBatch, scene
from airworthy.scenes.splats.editing import EditBox
from airworthy.sensors import carried_sensors
from airworthy.sensors.build import make_sensor
from airworthy.sensors.carried import POLICY_SIDE, vehicle_camera
from airworthy.sensors.devices import Device
from airworthy.sensors.mounting import mounted_pose
from airworthy.sensors.sampling import SensorView
from airworthy.simulation import Contact, FlightTable, Imu, MountedSensors, Randomization, SimulatorConfig
from airworthy.tasks import TrackingProtocol, TrackingReference
from airworthy.trajectories import Course, FlatSample, Trajectory, course
from airworthy.vehicles import Vehicle

__all__ = [
    "CONTROL_RATE",
    "IMAGES",
    "PHYSICS_RATE",
    "BlockResult",
    "ConditionBlock",
    "Setting",
    "causes_of",
    "file_name",
    "fly_block",
    "image_strip",
]

# ---- What a camera on a flight sees: some images of it side by side, rendered where it was ----------------------------------

IMAGES = 6
"""Of a flight."""
_GAP = 4


def image_strip(
    batch: SceneBatch, walkers: Walkers | None, vehicle: Vehicle, camera: Device, table: FlightTable, env: int = 0
) -> ArrayU8:
    """Return images of one flight, evenly in time from its first row to its last, side by side, (H, IMAGES W + gaps, 3).

    Args:
        batch: The scenes; its actors are moved.
        walkers: Its people.
        vehicle: Carries the camera.
        camera: A device that gives colours, mounted.
        table: The flights.
        env: Index of the flight, in the table and in the batch.
    """
    rows = np.arange(table.starts[env], table.starts[env + 1])
    chosen = rows[np.round(np.linspace(0, len(rows) - 1, IMAGES)).astype(int)]
    tiles: list[Any] = []
    for row in chosen:
        image = _image(batch, walkers, vehicle, camera, table, int(row), env)
        if tiles:
            tiles.append(np.full((image.shape[0], _GAP, 3), 255, np.uint8))
        tiles.append(image)
    return np.concatenate(tiles, axis=1)


def _image(
    batch: SceneBatch, walkers: Walkers | None, vehicle: Vehicle, camera: Device, table: FlightTable, row: int, env: int
) -> ArrayU8:
    if walkers is not None:
        walkers.pose(batch, np.full(batch.env_count, float(table.t[row])))
    attitude = table.vector("attitude")[row : row + 1].astype(np.float64)
    body = table.vector("position")[row : row + 1].astype(np.float64)
    attitude = attitude / np.linalg.norm(attitude, axis=1, keepdims=True)
    center = -np.asarray(vehicle.center_of_mass, np.float64)
    carrier, _ = mounted_pose(body, attitude, center, (0.0, 0.0, 0.0, 1.0))
    mount = camera.effective_mount
    position, turned = mounted_pose(carrier, attitude, mount.position, mount.attitude)
    linear = make_sensor(camera).capture(batch, SensorView(position, turned, np.array([env], np.int32)), ("rgb",))["rgb"]
    found: ArrayU8 = to_8bit(linear, np.ones(1))[0]
    return found


# ---- Why a flight was no success, in a few words ----------------------------------------------------------------------------

_NEAR = 0.6
"""The thing that was met is looked for this near [m]."""


def causes_of(
    results: Sequence[FlightResult],
    table: FlightTable,
    reference: TrackingReference,
    protocol: TrackingProtocol,
    batch: SceneBatch,
    pilot_error: str = "",
    failed: Mapping[int, str] | None = None,
) -> list[str]:
    """Return a few words per flight; empty for a clean success.

    Args:
        results: In the order of the table's flights.
        table: The flights, with `clearance_m`.
        reference: What they should have followed.
        protocol: By which they were judged.
        batch: The scenes, environment k of flight k.
        pilot_error: What the pilot raised.
        failed: What was wrong in flights that it failed while others flew on, by number in the block.
    """
    of = {} if failed is None else failed
    return [_cause(k, result, table, reference, protocol, batch, of.get(k, pilot_error)) for k, result in enumerate(results)]


def _cause(
    k: int,
    result: FlightResult,
    table: FlightTable,
    reference: TrackingReference,
    protocol: TrackingProtocol,
    batch: SceneBatch,
    pilot_error: str,
) -> str:
    rows = slice(int(table.starts[k]), int(table.starts[k + 1]))
    time, position = table.t[rows], table.vector("position")[rows].astype(float)
    if result.outcome == "success":
        return ""
    if result.outcome == "pilot_error":
        return f"the pilot failed: {pilot_error}"
    if result.outcome == "partial":
        end, median = np.degrees([result.yaw_error_end_rad, result.yaw_error_median_rad])
        return f"faced {end:.0f}\u00b0 off at the end, {median:.0f}\u00b0 in the median"
    if result.outcome == "diverged":
        return f"left the bounds of sense at {time[-1]:.1f} s"
    if result.collisions:
        return _met(k, table, rows, protocol, batch)
    if result.outcome == "out_of_bounds":
        return f"left the place at {result.duration_s:.1f} s"
    away = path_distance(position, reference.path)
    over = np.flatnonzero(away > protocol.path_distance_max_m)
    if len(over):
        return f"more than {protocol.path_distance_max_m:g} m from the path at {time[over[0]]:.1f} s"
    return f"{result.end_distance_m:.2f} m from the last waypoint at the end"


def _met(k: int, table: FlightTable, rows: slice, protocol: TrackingProtocol, batch: SceneBatch) -> str:
    """Return what was touched first, and when."""
    distance = table.columns["clearance_m"][rows]
    touched = np.flatnonzero(distance < protocol.collision_start_m)
    if not len(touched):
        return "touched something"
    row = rows.start + int(touched[0])
    position = table.vector("position")[row : row + 1].astype(float)
    found = clearance(batch.geometry, position, env=np.array([k]), max_distance=_NEAR)
    return f"touched {_name(int(found.instance[0]), batch, k)} at {table.t[row]:.1f} s"


def _name(instance: int, batch: SceneBatch, env: int) -> str:
    """Class of a thing, for people; a part of something that has a name of its own, by that ("Gate21, left post")."""
    scene = batch.scenes[batch.scene_of_env[env]]
    if instance < 0:
        return "something that moved on"
    if instance < len(scene.instances):
        if ", " in scene.instances[instance].name:
            return scene.instances[instance].name
        return f"the {scene.instances[instance].semantic.replace('_', ' ')}"
    return "a person" if scene.actors else "something"


# -----------------------------------------------------------------------------------------------------------------------------

CONTROL_RATE = TICK_RATE
"""Rows of a flight per second [Hz]; decisions, too, of pilots that command as published."""
PHYSICS_RATE = {"semi_kinematic": 100.0, "rigid": 500.0}
"""Steps per second [Hz]: as published for the family that was; the rigid one's rotors (20 ms) need finer ones."""
PATH_STEP = 0.05
"""Between the points by which things are near a course [m]."""


@dataclass(frozen=True)
class ConditionBlock:
    """Which flights."""

    method: str
    family: str
    condition: Condition
    course: str
    scene: str
    first: int
    """Number of the first flight."""
    count: int

    @property
    def name(self) -> str:
        """Unique in a run, and good for a file's name."""
        return file_name("__".join((self.method, self.family, self.condition.name, f"{self.first:05d}")))

    @property
    def number(self) -> ArrayInt:
        """(count,) of the flights."""
        return np.arange(self.first, self.first + self.count)


def file_name(specifier: str) -> str:
    """Return a word as part of a file's name."""
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in specifier)


class Setting:
    """What blocks of one condition share: course, edited scene, ground for people.

    Args:
        condition: The condition.
        course_name: Of the run, where the condition has none.
        scene_name: So is the scene.
        known: Scenes by name that were read before.
    """

    def __init__(self, condition: Condition, course_name: str, scene_name: str, known: dict[str, Scene]):
        self.condition = condition
        self.course: Course = course(condition.course or course_name)
        self.path: Trajectory = self.course.trajectory()
        self.reference = TrackingReference.from_trajectory(self.path, CONTROL_RATE)
        name = condition.scene or scene_name
        if name not in known:
            known[name] = scene(name)
        self._plain = known[name]

    @cached_property
    def points(self) -> FlatSample:
        """Of the course, evenly in time, about `PATH_STEP` apart."""
        count = max(2, int(np.ceil(self.path.length() / PATH_STEP)))
        return self.path.sample(np.linspace(0.0, self.path.duration, count))

    @cached_property
    def scene(self) -> Scene:
        """As the condition wants it."""
        scene = place_of(self._plain, self.condition, self.points.position)
        scene = without_boxes(scene, self.splat_boxes(self._plain))
        return moved_scene(scene, self.offset) if self.condition.shift else scene

    def splat_boxes(self, scene: Scene) -> list[EditBox]:
        """Return the boxes of a scene's gaussians that the condition takes out."""
        return splat_boxes(scene, self.points.position, self.condition.boxes) if self.condition.boxes else []

    @property
    def offset(self) -> Array:
        """By which the condition moves the place: to the left of the heading at the start, world [m], (3,)."""
        yaw = float(self.points.yaw[0])
        return self.condition.shift * np.array([-np.sin(yaw), np.cos(yaw), 0.0])

    @cached_property
    def ground(self) -> WalkableGround:
        """Where people may walk."""
        return free_ground(self._plain, self.points.position, self.points.yaw)


@dataclass(frozen=True, eq=False)
class BlockResult:
    """What a block left."""

    rows: list[dict[str, Any]]
    """One per flight: names of columns to values."""
    table: FlightTable
    """The flights; their environments are the flights' numbers."""
    first_image: ArrayU8 | None
    """What the first flight saw, some images side by side, (H, W, 3)."""


def fly_block(
    block: ConditionBlock,
    setting: Setting,
    method: TrackingMethod,
    vehicle: Vehicle,
    *,
    spread: VehicleSpread,
    protocol: TrackingProtocol,
    seed: int = 0,
    contact: str = "respond",
    randomization: Randomization | None = None,
    device: str = "cpu",
    progress_callback: Callable[[], None] | None = None,
    picture: bool = True,
) -> BlockResult | None:
    """Fly and judge a block.

    Args:
        block: Which flights.
        setting: Of its condition.
        method: Who flies.
        vehicle: What.
        spread: Of starts and drones.
        protocol: Thresholds.
        seed: Of everything that is drawn.
        contact: "respond", "freeze" or "none": what happens at an impact.
        randomization: What the simulator draws of vehicles; None: nothing.
        device: Where it is simulated.
        progress_callback: Called after every tick.
        picture: Keep what the first flight saw.

    Returns:
        The result; None where somebody stopped it.

    Raises:
        AirworthyError: Pilot, sensors, scene and vehicle do not fit together.
    """
    condition, number = block.condition, block.number
    drones = draw_drones(vehicle, setting.path, spread, condition, seed, number)
    batch = SceneBatch(setting.scene, block.count, device=device)
    config = SimulatorConfig(
        dynamics=block.family,  # type: ignore[arg-type]
        physics_rate=physics_rate(block.family, method),
        control_rate=method.rate,
        level=method.level,
        control=method.control or ControlConfig(),
        contact=None if contact == "none" else Contact(mode=contact),  # type: ignore[arg-type]
        state_noise=_model_noise(block, method),
        imu=Imu.named(method.imu) if method.imu else None,
        randomization=randomization or Randomization(),
    )
    geometry = None if contact == "none" else batch.geometry
    simulator = TrialSimulator(vehicle, config, block.count, seed=seed, flight_ids=number, device=device, geometry=geometry)
    if not config.randomization.posterior:
        equip(simulator, drones)
    simulator.reset(position=drones.position, velocity=drones.velocity, attitude=drones.attitude)
    drawn = simulator.drawn_vehicles()
    if drawn:
        drones = with_draws(drones, drawn)
        equip(simulator, drones, drawn)
    keys = keys_of(seed, number)
    walkers = Walkers(setting.ground, keys, condition.people, setting.path.duration) if condition.people else None
    gust = gust_of(condition, setting.path, drones, CONTROL_RATE)
    pickup = pickup_of(condition, setting.path, drones, CONTROL_RATE)
    # A pilot that decides more often is recorded, pushed and judged at the same ticks as all others.
    every = round(method.rate / CONTROL_RATE)
    simulator.prepare(drones, gust, walkers, batch, progress_callback, every, pickup)
    sensors = dict(method.sensors(vehicle)) if method.sensors else {}
    mounted = MountedSensors(simulator, batch, sensors, move_scene=False) if sensors else None
    pilot = WatchedPilot(
        method.make(simulator, setting.course, mounted),
        condition.noise if method.senses else "baseline",
        keys,
        every,
        SeenImages(condition) if condition.sees_otherwise else None,
    )
    try:
        flown = fly(simulator, pilot, replace(_plan(setting, batch), record_every=every), True, mounted)
    finally:
        if isinstance(pilot.inner, (RemotePilot, ExternalPilot)):
            pilot.inner.close()
    if flown.interrupted:
        return None
    if isinstance(pilot.inner, (RemotePilot, ExternalPilot)) and pilot.inner.absent:
        raise AirworthyError(
            f"The pilot {method.name} cannot be flown: {flown.pilot_error}. Flights that were flown are kept, and the same"
            " command goes on from there; --wait SECONDS waits longer."
        )
    table = _table(flown, pilot, simulator, number)
    rows = _rows(block, setting, method, drones, flown, table, pilot, protocol, batch)
    for row, item in zip(rows, drawn, strict=bool(drawn)):
        row["drawn"] = json_text({**item.values, "rejected": item.rejected})
    carried = (item.device for item in sensors.values() if isinstance(item.device, Device))
    camera = next((item for item in carried if item.kind == "camera"), None) or _own_camera(vehicle)
    image = None
    if picture and block.first == 0 and camera is not None:
        image = image_strip(batch, walkers, vehicle, camera, table)
    return BlockResult(rows, table, image)


def physics_rate(family: str, method: TrackingMethod) -> float:
    """Return the steps of physics per second, of which a pilot's commands take a whole number [Hz]."""
    return max(PHYSICS_RATE[family], method.rate)


def _own_camera(vehicle: Vehicle) -> Device | None:
    """Return the camera of a vehicle's record for the picture of a flight whose pilot sees nothing: at the policy's view, or
    whole.

    None: it has none, and there is no picture.
    """
    if not any(device.kind == "camera" for device in carried_sensors(vehicle).values()):
        return None
    whole = vehicle_camera(vehicle)
    straight = isinstance(whole.projection, Pinhole) and not whole.projection.distortion.any
    return vehicle_camera(vehicle, side=POLICY_SIDE) if straight else whole


def _model_noise(block: ConditionBlock, method: TrackingMethod) -> tuple[float, ...]:
    """Return standard deviations per physics step: over the steps of a tick divided as a number is, as in the published
    simulator.
    """
    share = CONTROL_RATE / physics_rate(block.family, method)
    return tuple(value * share for value in noise_level(block.condition.noise).model)


def _plan(setting: Setting, batch: SceneBatch) -> FlightPlan:
    box = setting.scene.bounds
    return FlightPlan(
        duration=setting.path.duration,
        reference=setting.path,
        region=(np.array(box.lower, float), np.array(box.upper, float)),
        geometry=batch.geometry,
        latency=setting.condition.delay,
    )


def _table(flown: FlightRun, pilot: WatchedPilot, simulator: TrialSimulator, number: ArrayInt) -> FlightTable:
    """Return the flights with their numbers, what was commanded, and an impact as the clearance that it is."""
    columns: dict[str, Any] = {name: np.array(values) for name, values in flown.table.columns.items()}
    env = columns["env"].copy()
    first = flown.table.starts[np.searchsorted(flown.table.envs, env)]
    tick = np.arange(len(env)) - first
    columns["env"] = number[env].astype(np.int32)
    names = ("command_thrust_n", *(f"command_rate_{a}_rad_s" for a in "xyz"))
    # Other levels' numbers are no thrust and rates: what moved those vehicles is in their rotors' columns.
    columns |= _by_tick(names, pilot.commands if pilot.level == LEVEL else [], tick, env)
    columns |= _by_tick(("estimate_mass_kg", "estimate_force_n"), pilot.estimates, tick, env)
    met = np.zeros(len(env), bool)
    for k, touched in enumerate(simulator.touches):
        met |= (tick == k + 1) & touched[env]
    # In contact a body stands off by its own radius, so an impact is not seen in the distance alone.
    columns["clearance_m"] = np.where(met, np.minimum(columns["clearance_m"], 0.0), columns["clearance_m"])
    return FlightTable.from_columns(columns)


def _by_tick(names: tuple[str, ...], values: list[Array], tick: ArrayInt, env: ArrayInt) -> dict[str, Array]:
    """Columns of what was decided at a row's tick; NaN in rows after the last decision."""
    if not values:
        return {}
    matrix = np.stack([np.broadcast_to(item, (int(env.max()) + 1, len(names))) for item in values])
    known = tick < len(matrix)
    rows = matrix[np.where(known, tick, 0), env]
    return {name: np.where(known, rows[:, k], np.nan) for k, name in enumerate(names)}


def _rows(
    block: ConditionBlock,
    setting: Setting,
    method: TrackingMethod,
    drones: Drones,
    flown: FlightRun,
    table: FlightTable,
    pilot: WatchedPilot,
    protocol: TrackingProtocol,
    batch: SceneBatch,
) -> list[dict[str, Any]]:
    ended = {int(block.number[env]): outcome for env, outcome in {**flown.outcomes, **flown.unfinished}.items()}
    results = evaluate_tracking(table, setting.reference, protocol, ended_by=ended)
    failed = {env: flown.causes[env] for env in flown.outcomes}
    causes = causes_of(results, table, setting.reference, protocol, batch, flown.pilot_error, failed)
    flown_c = flown_ratio(table, drones.full_of(block.family), drones.rotors)
    estimated_mean, estimated_std = estimated_ratio(table)
    failures = np.asarray(getattr(pilot.inner, "failures", np.zeros(block.count)), np.int64)
    head = {"pilot": block.method, "variant": method.variant, "family": block.family, "condition": block.condition.name}
    head |= {"course": setting.course.name, "scene": setting.scene.name}
    rows = []
    for k, result in enumerate(results):
        values = asdict(result)
        number = values.pop("env")
        rows.append(
            {
                **head,
                "flight": number,
                **values,
                "cause": causes[k],
                "mass_kg": float(drones.mass[k]),
                "thrust_n": float(drones.thrust[k]),
                "ratio_true": float(drones.ratio[k]),
                "ratio_nominal": float(drones.nominal),
                "ratio_flown": float(flown_c[k]),
                "ratio_told": float(estimated_mean[k]),
                "ratio_told_std": float(estimated_std[k]),
                "pilot_failures": int(failures[k]),
            }
        )
    return rows
