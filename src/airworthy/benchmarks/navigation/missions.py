"""Where flights begin and end, within which limits, on what: everything of a batch that is drawn or looked up before flying."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from airworthy.benchmarks.navigation.config import Flight, NavigationConfig, Perturbation, is_file, vehicle_names_of
from airworthy.benchmarks.navigation.own_scenes import OwnSceneConfig, is_own, load_own_scene
from airworthy.core import frames
from airworthy.core.arrays import Array
from airworthy.core.random import Stream, flight_key, uniforms
from airworthy.geometry import Cylinder
from airworthy.planners.common.interface import Airframes, Mission, enclosing_radius
from airworthy.scenes import Scene, scene, scene_digest
from airworthy.scenes.generators.flyingtrust import SCENARIOS
from airworthy.scenes.generators.flyingtrust.layout import goal_of, start_of
from airworthy.scenes.generators.seeding import generator
from airworthy.scenes.record import Actor, Instance, Material, Waypoint
from airworthy.simulation.posterior import posterior_of
from airworthy.tasks.navigation import acceleration_limit
from airworthy.vehicles import Vehicle, indicators, read_vehicle, vehicle

__all__ = ["FlightDraws", "Mission", "draws_of", "flown_vehicle", "layout_digest", "layout_scene", "mission_of"]

JITTER_POSITION, JITTER_YAW = 0.1, np.radians(5.0)
"""Half widths of the start's spread [m], [rad]."""
STAND = 0.02
"""Between a vehicle's body and the floor that it stands on [m]."""
CLIMB_MOST = 8.0
"""From where a vehicle takes off to its start, at most [m]."""
PILLAR_RADIUS = 0.3
"""Of moving obstacles [m]."""
_CLEAR = 6.0
"""Moving obstacles keep this far from start and goal along the line [m]."""
_DRAW = 0x4E41
"""Stands where a key has its episode: the benchmark's draws are nobody else's."""


@dataclass(frozen=True, eq=False)
class FlightDraws:
    """What every flight draws; functions of the seed and the flight's number alone."""

    offset: Array
    """Of the start, x and y [m], (n, 2)."""
    yaw: Array
    """[rad], (n,)."""
    gains: Array
    """Factors of the position, velocity, attitude and rate gains, (n, 4)."""
    thrust: Array
    """Share of its thrust that each of 16 rotors has left, (n, 16)."""


def draws_of(flights: Sequence[Flight], seed: int, perturb: Perturbation) -> FlightDraws:
    """Draw them.

    Args:
        flights: The n flights; draws depend on their numbers only.
        seed: Of the benchmark.
        perturb: How far gains and motors may be off, shares of 1.
    """
    number = np.array([flight.number for flight in flights], np.uint32)
    u = uniforms(flight_key(seed, number, _DRAW), 0, Stream.RESET, 24)
    spread = 2.0 * u - 1.0
    return FlightDraws(
        JITTER_POSITION * spread[:, :2],
        JITTER_YAW * spread[:, 2],
        perturb.gain_scale * (1.0 + perturb.gain_error * spread[:, 3:7]),
        1.0 - perturb.motor_degradation * u[:, 7:23],
    )


def mission_of(flights: Sequence[Flight], config: NavigationConfig, draws: FlightDraws) -> Mission:
    """Return what each flight has to do; its start is the place over the ground where it hovers before.

    Args:
        flights: The n flights.
        config: Limits of speed [m/s] and acceleration [m/s^2], bodies, layouts, seed.
        draws: Of the flights; starts are moved by their offsets [m].
    """
    terms = [_terms(flight, config) for flight in flights]
    start, goal, lower, upper = (np.array([term[k] for term in terms]) for k in range(4))
    start[:, :2] += draws.offset
    rules = config.protocol
    vehicles = [flown_vehicle(flight.vehicle, config.body) for flight in flights]
    if config.a_max == "vehicle":
        ratio = [indicators(item).thrust_to_weight for item in vehicles]
        limit = acceleration_limit(ratio, rules.acceleration_m_s2)
    else:
        limit = np.full(len(flights), rules.acceleration_m_s2)
    return Mission(
        start=start,
        goal=goal,
        speed=np.full(len(flights), rules.speed_m_s),
        acceleration=limit,
        lower=lower,
        upper=upper,
        flight=np.array([flight.number for flight in flights], np.int64),
        seed=config.seed,
        vehicle=Airframes.of(vehicles, [item.body.size[0] for item in vehicles]),
    )


def _terms(flight: Flight, config: NavigationConfig) -> tuple[Any, Any, Any, Any]:
    """Start, goal and both corners of the area of a flight [m]."""
    if is_own(flight.scenario):
        assert isinstance(config, OwnSceneConfig)
        own = config.own_scene(flight.scenario)
        pair = own.pairs[flight.configuration - 1]
        return pair.start, pair.goal, own.lower, own.upper
    stated = SCENARIOS[flight.scenario]
    half = 0.5 * stated.length, 0.5 * stated.width
    return start_of(stated), goal_of(stated), (-half[0], -half[1], 0.0), (*half, stated.ceiling)


def scene_of(flight: Flight, config: NavigationConfig) -> Scene:
    """Return where a flight is flown; the same object for the same words."""
    if is_own(flight.scenario):
        assert isinstance(config, OwnSceneConfig)
        return load_own_scene(config.own_scene(flight.scenario), config.unknown)
    moving_obstacles, speed = config.perturb.moving_obstacles, config.perturb.moving_speed
    return layout_scene(flight.scenario, flight.configuration, config.layouts, moving_obstacles, speed)


def scene_sha256(flight: Flight, config: NavigationConfig) -> str:
    """Return the SHA-256 of that scene."""
    if is_own(flight.scenario):
        assert isinstance(config, OwnSceneConfig)
        return config.own_scene(flight.scenario).sha256
    moving_obstacles, speed = config.perturb.moving_obstacles, config.perturb.moving_speed
    return layout_digest(flight.scenario, flight.configuration, config.layouts, moving_obstacles, speed)


def own_line(flight: Flight, config: NavigationConfig) -> float:
    """Return the distance from start to goal of a flight in a place of one's own [m]."""
    start, goal, _, _ = _terms(flight, config)
    return float(np.linalg.norm(np.subtract(goal, start)))


def catalogue_vehicle(name: str) -> Vehicle:
    """Return a vehicle by its word: a name, or a file."""
    return read_vehicle(name) if is_file(name) else vehicle(name)


def largest_radius(names: Sequence[str], body: str) -> float:
    """Return the enclosing radius of the largest body of some vehicles [m]."""
    return max(float(flown_vehicle(name, body).body.size[0]) for name in names)


def check_drawn(config: NavigationConfig) -> None:
    """Refuse vehicles of which none can be drawn, where flights draw theirs; raises AirworthyError."""
    if config.randomize is not None:
        for name in vehicle_names_of(config.vehicles):
            posterior_of(catalogue_vehicle(name), config.spread)


@lru_cache(maxsize=256)
def flown_vehicle(name: str, body: str) -> Vehicle:
    """Return a vehicle with the collision body of a mode; the same object for the same words."""
    record = catalogue_vehicle(name)
    radius = enclosing_radius(record) if body == "body" else 0.3
    return replace(record, body=replace(record.body, shape="sphere", size=(radius, radius, radius), center=(0.0, 0.0, 0.0)))


@lru_cache(maxsize=8)
def layout_scene(scenario: str, configuration: int, layouts: int, moving_obstacles: int = 0, speed: float = 1.0) -> Scene:
    """Return a configuration's scene, with what moves in it; the same object for the same words.

    Args:
        scenario: Its name.
        configuration: Its number, 1 to 10.
        layouts: Seed of where things stand.
        moving_obstacles: Moving pillars besides.
        speed: Of these [m/s].
    """
    found = scene(f"{scenario}:{configuration}@{layouts}")
    if not moving_obstacles:
        return found
    stated = SCENARIOS[scenario]
    rng = generator("movers", scenario, configuration, layouts)
    material = "moving obstacle"
    actors = tuple(
        _pillar(k, stated.length, stated.width, stated.ceiling, speed, rng, material) for k in range(moving_obstacles)
    )
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
    """Return a pillar that goes to and fro across the area at constant speed."""
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
def layout_digest(scenario: str, configuration: int, layouts: int, moving_obstacles: int = 0, speed: float = 1.0) -> str:
    """Return the SHA-256 of a configuration's scene.

    Args:
        scenario: Its name.
        configuration: Its number, 1 to 10.
        layouts: Seed of where things stand.
        moving_obstacles: Moving pillars besides.
        speed: Of these [m/s].
    """
    return scene_digest(layout_scene(scenario, configuration, layouts, moving_obstacles, speed))


def standing(mission: Mission, draws: FlightDraws, radius: Array) -> tuple[Array, Array]:
    """Return positions (n, 3) and attitudes (n, 4) of vehicles on the ground below their start, facing along the line.

    Args:
        mission: Of the n flights: starts and lower corners of the areas [m], world frame, (n, 3).
        draws: Their headings [rad], (n,).
        radius: Of the bodies [m], (n,).
    """
    position = mission.start.copy()
    # Starts may hang high over the lowest point of a place of one's own.
    position[:, 2] = np.maximum(mission.lower[:, 2], mission.start[:, 2] - CLIMB_MOST) + (radius + STAND)
    zero = np.zeros_like(draws.yaw)
    return position, np.asarray(frames.from_euler(zero, zero, draws.yaw))
