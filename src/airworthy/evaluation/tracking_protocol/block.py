"""Flies one block: flights of one pilot in one family of dynamics under one condition, all at once, and judges them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.evaluation.metrics import evaluate_tracking
from airworthy.evaluation.tracking_protocol.adaptation import flown_ratio, told_ratio
from airworthy.evaluation.tracking_protocol.causes import causes_of
from airworthy.evaluation.tracking_protocol.conditions import Condition, noise_level
from airworthy.evaluation.tracking_protocol.drones import Drones, Spread, draw_drones, equip, keys_of
from airworthy.evaluation.tracking_protocol.entrants import Entrant
from airworthy.evaluation.tracking_protocol.people import Ground, Walkers, free_ground
from airworthy.evaluation.tracking_protocol.places import place_of
from airworthy.evaluation.tracking_protocol.seeing import Image, seen_by
from airworthy.evaluation.tracking_protocol.trial import TrialSimulator, WatchedPilot, gust_of
from airworthy.pilots import FlightPlan, Flown, fly
from airworthy.scenes import Scene, SceneBatch, scene
from airworthy.sensors import carried_sensors
from airworthy.sensors.devices import Device
from airworthy.sensors.projections import Pinhole
from airworthy.sensors.splats.policy_camera import POLICY_SIDE, vehicle_camera
from airworthy.simulation import Contact, FlightTable, MountedSensors, SimulatorConfig
from airworthy.tasks import TrackingProtocol, TrackingReference
from airworthy.trajectories import Course, FlatSample, Trajectory, course
from airworthy.vehicles import Vehicle

__all__ = ["CONTROL_RATE", "PHYSICS_RATE", "Block", "BlockResult", "Setting", "file_name", "fly_block"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
CONTROL_RATE = 20.0
"""Decisions per second [Hz]."""
PHYSICS_RATE = {"semi_kinematic": 100.0, "rigid": 500.0}
"""Steps per second [Hz]: as published for the family that was; the rigid one's rotors (20 ms) need finer ones."""
PATH_STEP = 0.05
"""Between the points by which things are near a course [m]."""


@dataclass(frozen=True)
class Block:
    """Which flights."""

    entrant: str
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
        return file_name("__".join((self.entrant, self.family, self.condition.name, f"{self.first:05d}")))

    @property
    def number(self) -> Ints:
        """(count,) of the flights."""
        return np.arange(self.first, self.first + self.count)


def file_name(word: str) -> str:
    """A word as part of a file's name."""
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in word)


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
        return place_of(self._plain, self.condition, self.points.position)

    @cached_property
    def ground(self) -> Ground:
        """Where people may walk."""
        return free_ground(self._plain, self.points.position, self.points.yaw)


@dataclass(frozen=True, eq=False)
class BlockResult:
    """What a block left."""

    rows: list[dict[str, Any]]
    """One per flight: names of columns to values."""
    table: FlightTable
    """The flights; their environments are the flights' numbers."""
    seen: Image | None
    """What the first flight saw, some images side by side, (H, W, 3)."""


def fly_block(
    block: Block,
    setting: Setting,
    entrant: Entrant,
    vehicle: Vehicle,
    *,
    spread: Spread,
    protocol: TrackingProtocol,
    seed: int = 0,
    contact: str = "respond",
    device: str = "cpu",
    told: Callable[[], None] | None = None,
    picture: bool = True,
) -> BlockResult | None:
    """Fly and judge a block.

    Args:
        block: Which flights.
        setting: Of its condition.
        entrant: Who flies.
        vehicle: What.
        spread: Of starts and drones.
        protocol: Thresholds.
        seed: Of everything that is drawn.
        contact: "respond", "freeze" or "none": what happens at an impact.
        device: Where it is simulated.
        told: Called after every tick.
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
        physics_rate=PHYSICS_RATE[block.family],
        control_rate=CONTROL_RATE,
        level="rate_thrust",
        contact=None if contact == "none" else Contact(mode=contact),  # type: ignore[arg-type]
        state_noise=_model_noise(block),
    )
    geometry = None if contact == "none" else batch.geometry
    simulator = TrialSimulator(vehicle, config, block.count, seed=seed, flight_ids=number, device=device, geometry=geometry)
    equip(simulator, drones)
    simulator.reset(position=drones.position, velocity=drones.velocity, attitude=drones.attitude)
    keys = keys_of(seed, number)
    walkers = Walkers(setting.ground, keys, condition.people, setting.path.duration) if condition.people else None
    gust = gust_of(condition, setting.path, drones, CONTROL_RATE)
    simulator.prepare(drones, gust, walkers, batch, told)
    sensors = dict(entrant.sensors(vehicle)) if entrant.sensors else {}
    mounted = MountedSensors(simulator, batch, sensors, move_scene=False) if sensors else None
    pilot = WatchedPilot(
        entrant.make(simulator, setting.course, mounted), condition.noise if entrant.senses else "baseline", keys
    )
    flown = fly(simulator, pilot, _plan(setting, batch), True, mounted)
    if flown.interrupted:
        return None
    table = _table(flown, pilot, simulator, number)
    rows = _rows(block, setting, entrant, drones, flown, table, pilot, protocol, batch)
    carried = (item.device for item in sensors.values() if isinstance(item.device, Device))
    camera = next(carried, None) or _own_camera(vehicle)
    image = None
    if picture and block.first == 0 and camera is not None:
        image = seen_by(batch, walkers, vehicle, camera, table)
    return BlockResult(rows, table, image)


def _own_camera(vehicle: Vehicle) -> Device | None:
    """The camera of a vehicle's record for the picture of a flight whose pilot sees nothing: at the policy's view, or whole.

    None: it has none, and there is no picture.
    """
    if not any(device.kind == "camera" for device in carried_sensors(vehicle).values()):
        return None
    whole = vehicle_camera(vehicle)
    straight = isinstance(whole.projection, Pinhole) and not whole.projection.distortion.any
    return vehicle_camera(vehicle, side=POLICY_SIDE) if straight else whole


def _model_noise(block: Block) -> tuple[float, ...]:
    """Standard deviations per physics step: over the steps of a tick divided as a number is, as in the published simulator."""
    share = CONTROL_RATE / PHYSICS_RATE[block.family]
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


def _table(flown: Flown, pilot: WatchedPilot, simulator: TrialSimulator, number: Ints) -> FlightTable:
    """The flights with their numbers, what was commanded, and an impact as the clearance that it is."""
    columns: dict[str, Any] = {name: np.array(values) for name, values in flown.table.columns.items()}
    env = columns["env"].copy()
    first = flown.table.starts[np.searchsorted(flown.table.envs, env)]
    tick = np.arange(len(env)) - first
    columns["env"] = number[env].astype(np.int32)
    names = ("command_thrust_n", *(f"command_rate_{a}_rad_s" for a in "xyz"))
    columns |= _by_tick(names, pilot.commands, tick, env)
    columns |= _by_tick(("estimate_mass_kg", "estimate_force_n"), pilot.estimates, tick, env)
    met = np.zeros(len(env), bool)
    for k, touched in enumerate(simulator.touches):
        met |= (tick == k + 1) & touched[env]
    # In contact a body stands off by its own radius, so an impact is not seen in the distance alone.
    columns["clearance_m"] = np.where(met, np.minimum(columns["clearance_m"], 0.0), columns["clearance_m"])
    return FlightTable.from_columns(columns)


def _by_tick(names: tuple[str, ...], values: list[Array], tick: Ints, env: Ints) -> dict[str, Array]:
    """Columns of what was decided at a row's tick; NaN in rows after the last decision."""
    if not values:
        return {}
    matrix = np.stack([np.broadcast_to(item, (int(env.max()) + 1, len(names))) for item in values])
    known = tick < len(matrix)
    rows = matrix[np.where(known, tick, 0), env]
    return {name: np.where(known, rows[:, k], np.nan) for k, name in enumerate(names)}


def _rows(
    block: Block,
    setting: Setting,
    entrant: Entrant,
    drones: Drones,
    flown: Flown,
    table: FlightTable,
    pilot: WatchedPilot,
    protocol: TrackingProtocol,
    batch: SceneBatch,
) -> list[dict[str, Any]]:
    ended = {int(block.number[env]): outcome for env, outcome in flown.unfinished.items()}
    results = evaluate_tracking(table, setting.reference, protocol, ended_by=ended)
    causes = causes_of(results, table, setting.reference, protocol, batch, flown.pilot_error)
    flown_c = flown_ratio(table, drones.full_of(block.family), drones.rotors)
    told_mean, told_std = told_ratio(table)
    failures = np.asarray(getattr(pilot.inner, "failures", np.zeros(block.count)), np.int64)
    head = {"pilot": block.entrant, "variant": entrant.variant, "family": block.family, "condition": block.condition.name}
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
                "ratio_told": float(told_mean[k]),
                "ratio_told_std": float(told_std[k]),
                "pilot_failures": int(failures[k]),
            }
        )
    return rows
