"""Where flights begin and end, within which limits, on what: everything of a batch that is drawn or looked up before flying."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from airworthy.core import frames
from airworthy.core.random import Stream, flight_key, uniforms
from airworthy.evaluation.navigation.config import NavigationConfig, Perturbation
from airworthy.evaluation.navigation.plan import Flight
from airworthy.geometry import Cylinder
from airworthy.pilots.planning.interface import Mission
from airworthy.scenes import Scene, scene, scene_digest
from airworthy.scenes.generators.flyingtrust import SCENARIOS
from airworthy.scenes.generators.flyingtrust.layout import goal_of, start_of
from airworthy.scenes.generators.seeding import generator
from airworthy.scenes.record import Actor, Instance, Material, Waypoint
from airworthy.tasks.navigation import acceleration_limit
from airworthy.vehicles import Vehicle, indicators, vehicle

__all__ = ["Draws", "Mission", "body_radius", "draws_of", "flown_vehicle", "mission_of", "place", "place_digest"]

Array = NDArray[np.float64]
JITTER_POSITION, JITTER_YAW = 0.1, np.radians(5.0)
"""Half widths of the start's spread [m], [rad]."""
STAND = 0.02
"""Between a vehicle's body and the floor that it stands on [m]."""
PILLAR_RADIUS = 0.3
"""Of moving obstacles [m]."""
_CLEAR = 6.0
"""Moving obstacles keep this far from start and goal along the line [m]."""
_DRAW = 0x4E41
"""Stands where a key has its episode: the benchmark's draws are nobody else's."""


@dataclass(frozen=True, eq=False)
class Draws:
    """What every flight draws; functions of the seed and the flight's number alone."""

    offset: Array
    """Of the start, x and y [m], (n, 2)."""
    yaw: Array
    """[rad], (n,)."""
    gains: Array
    """Factors of the position, velocity, attitude and rate gains, (n, 4)."""
    thrust: Array
    """Share of its thrust that each of eight rotors has left, (n, 8)."""


def draws_of(flights: Sequence[Flight], seed: int, perturb: Perturbation) -> Draws:
    """Draw them."""
    number = np.array([flight.number for flight in flights], np.uint32)
    u = uniforms(flight_key(seed, number, _DRAW), 0, Stream.RESET, 16)
    spread = 2.0 * u - 1.0
    return Draws(
        JITTER_POSITION * spread[:, :2],
        JITTER_YAW * spread[:, 2],
        1.0 + perturb.gain_error * spread[:, 3:7],
        1.0 - perturb.motor_degradation * u[:, 7:15],
    )


def mission_of(flights: Sequence[Flight], config: NavigationConfig, draws: Draws) -> Mission:
    """What each flight has to do; its start is the place over the ground where it hovers before."""
    stated = [SCENARIOS[flight.scenario] for flight in flights]
    start = np.array([start_of(item) for item in stated])
    start[:, :2] += draws.offset
    half = np.array([[0.5 * item.length, 0.5 * item.width] for item in stated])
    rules = config.protocol
    if config.a_max == "vehicle":
        ratio = [indicators(vehicle(flight.vehicle)).thrust_to_weight for flight in flights]
        limit = acceleration_limit(ratio, rules.acceleration_m_s2)
    else:
        limit = np.full(len(flights), rules.acceleration_m_s2)
    return Mission(
        start=start,
        goal=np.array([goal_of(item) for item in stated]),
        speed=np.full(len(flights), rules.speed_m_s),
        acceleration=limit,
        lower=np.concatenate([-half, np.zeros((len(flights), 1))], axis=1),
        upper=np.concatenate([half, [[item.ceiling] for item in stated]], axis=1),
        flight=np.array([flight.number for flight in flights], np.int64),
        seed=config.seed,
    )


def body_radius(craft: Vehicle) -> float:
    """Of the sphere that encloses a vehicle [m]; where its record does not say, rotors and their propellers."""
    told = craft.extra.get("body_radius_m")
    if told is not None:
        return float(told)
    return max(float(np.linalg.norm(r.position[:2])) + r.radius for r in craft.rotors)


@lru_cache(maxsize=256)
def flown_vehicle(name: str, body: str) -> Vehicle:
    """A vehicle with the collision body of a mode; the same object for the same words."""
    craft = vehicle(name)
    radius = body_radius(craft) if body == "body" else 0.3
    return replace(craft, body=replace(craft.body, shape="sphere", size=(radius, radius, radius), center=(0.0, 0.0, 0.0)))


@lru_cache(maxsize=8)
def place(scenario: str, configuration: int, layouts: int, movers: int = 0, speed: float = 1.0) -> Scene:
    """A configuration's scene, with what moves in it; the same object for the same words."""
    found = scene(f"{scenario}:{configuration}@{layouts}")
    if not movers:
        return found
    stated = SCENARIOS[scenario]
    rng = generator("movers", scenario, configuration, layouts)
    material = "moving obstacle"
    actors = tuple(_pillar(k, stated.length, stated.width, stated.ceiling, speed, rng, material) for k in range(movers))
    shape = Cylinder(PILLAR_RADIUS, 0.5 * stated.ceiling)
    return replace(
        found,
        shapes={**found.shapes, material: shape},
        materials={**found.materials, material: Material((0.8, 0.25, 0.1, 1.0))},
        actors=(*found.actors, *actors),
    )


def _pillar(
    k: int, length: float, width: float, ceiling: float, speed: float, rng: np.random.Generator, material: str
) -> Actor:
    """A pillar that goes to and fro across the area at constant speed."""
    x = rng.uniform(-0.5 * length + _CLEAR, 0.5 * length - _CLEAR)
    reach = rng.uniform(0.15, 0.45) * width
    middle = rng.uniform(-0.05, 0.05) * width
    turn, phase = (-1.0 if rng.random() < 0.5 else 1.0), rng.random()
    there = 2.0 * reach / max(speed, 1e-3)
    # A triangle wave that begins anywhere on its way.
    stops = sorted({0.0, 2.0 * there, *((share - phase) % 1.0 * 2.0 * there for share in (0.0, 0.5))})
    path = []
    for at in stops:
        share = (at / (2.0 * there) + phase) % 1.0
        y = middle + turn * reach * (4.0 * abs(share - 0.5) - 1.0)
        path.append(Waypoint(at, (float(x), float(y), 0.5 * ceiling)))
    part = Instance(material, materials=(material,), semantic=material)
    return Actor(f"mover {k}", (part,), motion="scripted", path=tuple(path), repeat=True)


@lru_cache(maxsize=1024)
def place_digest(scenario: str, configuration: int, layouts: int, movers: int = 0, speed: float = 1.0) -> str:
    """SHA-256 of a configuration's scene."""
    return scene_digest(place(scenario, configuration, layouts, movers, speed))


def standing(mission: Mission, draws: Draws, radius: Array) -> tuple[Array, Array]:
    """Positions (n, 3) and attitudes (n, 4) of vehicles on the ground below their start, facing along the line."""
    position = mission.start.copy()
    position[:, 2] = radius + STAND
    zero = np.zeros_like(draws.yaw)
    return position, np.asarray(frames.from_euler(zero, zero, draws.yaw))
