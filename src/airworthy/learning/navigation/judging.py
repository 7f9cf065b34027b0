"""How well a policy navigates unseen rooms: in the launch that it learnt in, and as a rigid body in `Simulator`.

Specification, learning by reward, section 8: trained with one physics, judged with another. In `Simulator` flights are
integrated at 1,000 Hz, rooms are scenes with walls and turned boxes, and the first contact that the simulator itself finds ends
a flight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayFloat
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import thread_limit
from airworthy.evaluation import wilson_interval
from airworthy.geometry import Box, Shape
from airworthy.learning.environments import Curriculum
from airworthy.learning.environments.rooms import WALL, RoomForm, draw_rooms, placed_boxes
from airworthy.learning.navigation.environments import NavigationEnvironments
from airworthy.learning.navigation.eyes import NavigationEye
from airworthy.learning.navigation.options import RoomsProtocol, navigation_task
from airworthy.learning.navigation.sight import RoomSight
from airworthy.learning.navigation.tasks import NavigationTask
from airworthy.pilots import FlightPlan, fly
from airworthy.pilots.navigation_policy.network import NavigationPolicy
from airworthy.pilots.navigation_policy.pilot import FlownPolicy, NavigationPilot
from airworthy.pilots.navigation_policy.sight import SPEED, STATE_NUMBERS
from airworthy.scenes import Scene, SceneBatch
from airworthy.scenes.record import Instance, Region
from airworthy.simulation import Contact, MountedSensors, Simulator, SimulatorConfig
from airworthy.vehicles import vehicle

__all__ = [
    "LevelFlights",
    "check_levels",
    "fly_level",
    "fly_level_piloted",
    "fly_level_simulated",
    "level_row",
    "room_scene",
    "task_at_level",
]

PHYSICS_RATE, CONTROL_RATE = 1000.0, 100.0
"""[Hz]; specification, section 8, and the published rate of the controller."""
_SLAB = 1.0
"""Ours: half thickness of the walls of a scene [m], because what is behind their inner side is solid."""


@dataclass(frozen=True, eq=False)
class LevelFlights:
    """What became of n flights."""

    success: ArrayBool
    """(n,) within a metre of the target when time was over."""
    crashed: ArrayBool
    """(n,) touched something; the rest was elsewhere when time was over."""
    distance: Array
    """(n,) from the target at the end [m]."""
    track: Array
    """(decision, n, 3) world [m]; of piloted flights the first and the last."""


def level_row(level: int, flights: LevelFlights) -> dict[str, Any]:
    """Return the figures of a level as they are reported.

    Args:
        level: Of the curriculum.
        flights: At it.
    """
    n, success, crashed = len(flights.success), int(flights.success.sum()), int(flights.crashed.sum())
    rate = wilson_interval(success, n)
    letters = np.where(flights.success, "s", np.where(flights.crashed, "t", "l"))
    return {
        "level": level,
        "flights": n,
        "success": success,
        "crashed": crashed,
        "late": n - success - crashed,
        "success_percent": 100.0 * success / n,
        "success_interval_percent": [100.0 * rate.low, 100.0 * rate.high],
        "median_distance_m": float(np.median(flights.distance)),
        # Of each flight, in order: success, touched, late. Two policies judged alike flew the same rooms: they pair.
        "outcomes": "".join(letters.tolist()),
    }


def task_at_level(name: str, level: int, seed: int) -> NavigationTask:
    """Return a task in rooms of a seed, at a level that stays.

    Args:
        name: Of the task.
        level: Things placed.
        seed: Of the rooms.
    """
    return navigation_task(name, room_seed=seed, curriculum=Curriculum(least=level, most=level + 1, window=10_000_000))


def fly_level(policy: NavigationPolicy, eye: NavigationEye, protocol: RoomsProtocol, level: int) -> LevelFlights:
    """Fly in the launch of the policy step, with noise and pushes as in training.

    Args:
        policy: Decides, without noise of its own.
        eye: What it reads of images.
        protocol: How many flights, in which rooms.
        level: Of the curriculum.
    """
    count = protocol.flights
    task = task_at_level(policy.contract.task, level, protocol.seed)
    flights = NavigationEnvironments(task, count, eye, protocol.seed, threads=thread_limit())
    memory = policy.begin(count)
    success, crashed, over = (np.zeros(count, bool) for _ in range(3))
    distance, track = np.zeros(count), [np.array(flights.flights.state[:3].T, float)]
    for _ in range(task.episode_steps):
        action, memory = policy.act(flights.observation, memory)
        result = flights.step(action)
        # The first flight of each environment alone: those that begin behind it would favour short ones, the crashes.
        ended = result.ends.ended & ~over
        success |= ended & result.ends.success
        crashed |= ended & result.terminated
        # Direction and distance to the target are what a flight sees first; the distance has no noise.
        distance = np.where(ended, flights.final_critic_observation[:, 3], distance)
        over |= ended
        # Behind its end a flight stays where it was seen last.
        track.append(np.where(over[:, None], track[-1], flights.flights.state[:3].T))
    return LevelFlights(success, crashed, distance, np.stack(track))


# ---- In the simulator -------------------------------------------------------------------------------------------------------


def room_scene(form: RoomForm, place: ArrayFloat, name: str) -> Scene:
    """Return the room of one flight as a scene: six walls and its boxes.

    Args:
        form: Of the rooms.
        place: `PLACE` numbers.
        name: Of the scene.
    """
    lower, upper = np.asarray(place[3:6], float) + WALL, np.asarray(place[6:9], float) - WALL
    middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
    shapes: dict[str, Shape] = {}
    instances: list[Instance] = []
    for axis in range(3):
        # Wider than the room, so that slabs overlap at its edges and nothing slips through a corner.
        size = half + 2.0 * _SLAB
        size[axis] = _SLAB
        shapes[f"wall_{axis}"] = Box(tuple(size.tolist()))
        for end, sign in ((lower, -1.0), (upper, 1.0)):
            at = middle.copy()
            at[axis] = end[axis] + sign * _SLAB
            instances.append(Instance(f"wall_{axis}", tuple(at.tolist()), semantic="wall"))
    for k, (at, axes, edges) in enumerate(zip(*placed_boxes(form, draw_rooms(form), place), strict=True)):
        shapes[f"box_{k}"] = Box(tuple(edges.tolist()))
        instances.append(Instance(f"box_{k}", tuple(at.tolist()), _quaternion(axes)))
    bounds = Region(tuple(lower.tolist()), tuple(upper.tolist()))
    return Scene(name=name, shapes=shapes, materials={}, textures={}, instances=tuple(instances), bounds=bounds)


def _quaternion(axes: Array) -> tuple[float, float, float, float]:
    """x, y, z, w of a rotation matrix: the eigenvector of the largest eigenvalue of a symmetric matrix (Bar-Itzhack, 2000)."""
    m = np.asarray(axes, float)
    # Its trace is 0 and its largest eigenvalue 3 for a rotation: no case of small denominators.
    k = np.array(
        [
            [m[0, 0] - m[1, 1] - m[2, 2], m[1, 0] + m[0, 1], m[2, 0] + m[0, 2], m[2, 1] - m[1, 2]],
            [m[1, 0] + m[0, 1], m[1, 1] - m[0, 0] - m[2, 2], m[2, 1] + m[1, 2], m[0, 2] - m[2, 0]],
            [m[2, 0] + m[0, 2], m[2, 1] + m[1, 2], m[2, 2] - m[0, 0] - m[1, 1], m[1, 0] - m[0, 1]],
            [m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1], m[0, 0] + m[1, 1] + m[2, 2]],
        ]
    )
    x, y, z, w = np.linalg.eigh(k)[1][:, -1].tolist()
    return (x, y, z, w)


def _simulated(
    name: str, eye: NavigationEye, protocol: RoomsProtocol, level: int
) -> tuple[NavigationEnvironments, Simulator, SceneBatch]:
    """Flights of a task in `Simulator`, each in its own room: where `fly_level` begins them, and their scenes."""
    count = protocol.flights
    task = task_at_level(name, level, protocol.seed)
    launch = NavigationEnvironments(task, count, eye, protocol.seed, threads=thread_limit())
    scenes = [room_scene(task.rooms, launch.flights.place[:, k], f"room_{k}") for k in range(count)]
    batch = SceneBatch(scenes, count, threads=thread_limit())
    flown = vehicle(task.vehicle)
    config = SimulatorConfig(
        physics_rate=PHYSICS_RATE,
        control_rate=CONTROL_RATE,
        level=task.level,
        control=task.control_for(flown),
        contact=Contact(mode="freeze"),
    )
    simulator = Simulator([flown] * count, config, count, seed=protocol.seed, geometry=batch.geometry, threads=thread_limit())
    state = np.array(launch.flights.state, float)
    simulator.reset(position=state[:3].T, velocity=state[3:6].T, attitude=state[6:10].T, rate=state[10:13].T)
    return launch, simulator, batch


def fly_level_piloted(policy: FlownPolicy, eye: NavigationEye, protocol: RoomsProtocol, level: int) -> LevelFlights:
    """Fly as `airworthy fly --pilot navigation:FOLDER` does, with the pilot's own sensor, in the same rooms.

    Args:
        policy: With what it sees by, of `read_flown_policy`.
        eye: Of its training, by which the flights it begins from are made.
        protocol: How many flights, in which rooms.
        level: Of the curriculum.
    """
    launch, simulator, batch = _simulated(policy.policy.contract.task, eye, protocol, level)
    goal = launch.flights.memory[:3].T.astype(float)
    pilot = NavigationPilot(policy, goal, np.full(launch.env_count, SPEED))
    begun = np.array(simulator.position, float)
    plan = FlightPlan(duration=launch.task.episode_steps / launch.task.rate)
    fly(simulator, pilot, plan, True, MountedSensors(simulator, batch, policy.eye.sensors))
    ended = np.array(simulator.position, float)
    crashed = (simulator.field("status") != 0.0) | simulator.diverged
    distance = np.linalg.norm(goal - ended, axis=1)
    return LevelFlights((distance < 1.0) & ~crashed, crashed, distance, np.stack([begun, ended]))


def fly_level_simulated(policy: NavigationPolicy, eye: NavigationEye, protocol: RoomsProtocol, level: int) -> LevelFlights:
    """Fly in `Simulator`, from the same starts to the same targets as `fly_level`, each in its own room.

    Args:
        policy: Decides ten times a second.
        eye: What it reads of images; these are cast as in training, on where the simulator's vehicle is.
        protocol: How many flights, in which rooms.
        level: Of the curriculum.
    """
    launch, simulator, _ = _simulated(policy.contract.task, eye, protocol, level)
    task, count, place, memory_of = launch.task, launch.env_count, launch.flights.place.copy(), launch.flights.memory.copy()
    pilot = _Pilot(policy, eye, launch, place, memory_of)
    crashed, track = np.zeros(count, bool), [np.array(simulator.position, float)]
    for _ in range(task.episode_steps):
        command = pilot.command(_state_of(simulator))
        for _ in range(round(CONTROL_RATE / task.rate)):
            simulator.step(command)
        crashed |= (simulator.field("status") != 0.0) | simulator.diverged
        track.append(np.array(simulator.position, float))
    distance = np.linalg.norm(memory_of[:3].T - track[-1], axis=1)
    return LevelFlights((distance < 1.0) & ~crashed, crashed, distance, np.stack(track))


def _state_of(simulator: Simulator) -> Array:
    """Position, velocity, attitude, body rate, (13, env)."""
    parts = [simulator.position, simulator.velocity, simulator.attitude, simulator.rate]
    return np.concatenate([np.array(x, float) for x in parts], 1).T


class _Pilot:
    """A policy that reads states of any simulator through the task's own functions, without noise."""

    def __init__(
        self,
        policy: NavigationPolicy,
        eye: NavigationEye,
        launch: NavigationEnvironments,
        place: ArrayFloat,
        memory_of: ArrayFloat,
    ):
        self._policy, self._eye, self._place, self._kept = policy, eye, place.astype(float), memory_of.astype(float)
        self._flights, self._task = launch.flights, replace(launch.task, noise=False)
        count = launch.env_count
        self._sight = RoomSight(launch.task.rooms, eye.rays, count, thread_limit())
        self._memory = policy.begin(count)
        self._past = np.tile(launch.flights.hover_action.astype(float)[:, None], (1, count))

    def command(self, state: Array) -> Array:
        # Age, level and touch, which no policy sees.
        flight: Any = (0.0, 0.0, 0.0, *self._place)
        nominal = self._flights.nominal.astype(float)
        p = self._flights.parameters_of_flight(nominal, tuple(self._past), flight, tuple(self._kept))
        known = self._task.observe(tuple(state), (0.0,) * 16, p)
        # What critics see is the pose of the camera in its room: images are cast from it.
        pose = np.stack(np.broadcast_arrays(*self._task.observe_critic(tuple(state), p))).T.astype(np.float32)
        image = self._eye.see(self._sight.look(pose))
        seen = np.concatenate([np.stack(np.broadcast_arrays(*known)).T, image], 1).astype(np.float32)
        assert seen.shape[1] == STATE_NUMBERS + self._eye.numbers
        action, self._memory = self._policy.act(seen, self._memory)
        self._past = action.T.astype(float)
        return np.stack(np.broadcast_arrays(*self._task.commanded(tuple(self._past), p))).T


def check_levels(protocol: RoomsProtocol, most: int) -> None:
    """Refuse a level that the curriculum does not have.

    Args:
        protocol: As asked.
        most: Last of the curriculum.

    Raises:
        AirworthyError: It asks for one beyond the last.
    """
    if max(protocol.levels, default=0) > most:
        raise AirworthyError(
            f"RoomsProtocol.levels has {max(protocol.levels)}; expected at most {most}, the last of the curriculum."
        )


def levels_of(protocol: RoomsProtocol, least: int, reached: int, most: int) -> Sequence[int]:
    """Return the levels of a judgement: those asked for, or the first, 30, the training's last, and the last.

    Args:
        protocol: As asked.
        least: First of the curriculum.
        reached: At which the training ended.
        most: Last of the curriculum.
    """
    return protocol.levels or sorted({least, max(30, least), reached, most})
