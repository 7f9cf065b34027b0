"""A simulator under a condition, and a pilot that is watched: what happens to flights while they are flown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from airworthy.benchmarks.tracking.condition_scene import Walkers
from airworthy.benchmarks.tracking.conditions import Condition, noise_level
from airworthy.benchmarks.tracking.methods import Drones
from airworthy.benchmarks.tracking.seen_images import SeenImages
from airworthy.core.arrays import Array, ArrayBool, ArrayInt, ArrayLike, ArrayU32
from airworthy.core.random import Stream, normals
from airworthy.pilots.pilot import Observation, Pilot
from airworthy.scenes import SceneBatch
from airworthy.simulation import Simulator
from airworthy.trajectories import Trajectory

__all__ = ["Gust", "Pickup", "TrialSimulator", "WatchedPilot", "gust_of", "pickup_of"]

GUST_AT, GUST_LASTS = 0.48, 1.0
"""Share of the course at which a gust begins (the published one: 7.1 s of 15), and how long it lasts [s]."""
PICKUP_AT = 0.3
"""Share of the course at which a load is hung on; ours: time to fly without it, and more with it."""


@dataclass(frozen=True, eq=False)
class Gust:
    """A push of constant specific force for a while."""

    start: float
    """[s of the flight]"""
    end: float
    acceleration: Array
    """(n, 3) world [m/s^2]."""


def gust_of(condition: Condition, path: Trajectory, drones: Drones, rate: float) -> Gust | None:
    """Return the push of a condition: horizontal, at a right angle to the course where it begins, from each flight's own side.

    Args:
        condition: Its strength.
        path: The course.
        drones: Their sides.
        rate: Ticks per second, on which it begins and ends [Hz].
    """
    if condition.gust == 0.0:
        return None
    start = np.floor(GUST_AT * path.duration * rate) / rate
    sample = path.sample(np.array([start]))
    x, y = sample.velocity[0, :2]
    if np.hypot(x, y) < 0.05:  # at rest: the way it faces
        x, y = np.cos(sample.yaw[0]), np.sin(sample.yaw[0])
    across = np.array([-y, x, 0.0]) / np.hypot(x, y)
    return Gust(float(start), float(start + GUST_LASTS), condition.gust * drones.side[:, None] * across)


@dataclass(frozen=True, eq=False)
class Pickup:
    """A load that is hung on at the centre of mass, and stays."""

    start: float
    """[s of the flight]"""
    mass: Array
    """(n,) of vehicle and load together [kg]."""


def pickup_of(condition: Condition, path: Trajectory, drones: Drones, rate: float) -> Pickup | None:
    """Return the load of a condition.

    Args:
        condition: Its share of the drawn mass.
        path: The course.
        drones: Their masses.
        rate: Ticks per second, on one of which it is hung on [Hz].
    """
    if condition.pickup == 0.0:
        return None
    start = np.floor(PICKUP_AT * path.duration * rate) / rate
    return Pickup(float(start), drones.mass * (1.0 + condition.pickup))


class TrialSimulator(Simulator):
    """A simulator that pushes vehicles, loads them, moves people, and tells of every tick.

    `prepare` says what of this it does; until then it is a simulator like any other.
    """

    _gust: Gust | None = None
    _pickup: Pickup | None = None
    _walkers: Walkers | None = None
    _batch: SceneBatch | None = None
    _progress_callback: Callable[[], None] | None = None

    def prepare(
        self,
        drones: Drones,
        gust: Gust | None = None,
        walkers: Walkers | None = None,
        batch: SceneBatch | None = None,
        progress_callback: Callable[[], None] | None = None,
        every: int = 1,
        pickup: Pickup | None = None,
    ) -> None:
        """Set what happens from now on, and pose the people at the present time.

        Args:
            drones: Mass of each.
            gust: A push.
            walkers: The people of `batch`.
            batch: The scenes of the environments.
            progress_callback: Called after every tick.
            every: Steps of the simulator to a tick.
            pickup: A load.
        """
        self._every, self._steps = every, 0
        self._gust, self._walkers, self._batch, self._progress_callback = gust, walkers, batch, progress_callback
        self._mass, self._pickup = drones.mass, pickup
        self.touches: list[ArrayBool] = []
        """By tick: which vehicles have met something in it, (env,)."""
        self._met = self._counts()
        self._move(np.asarray(self.time, np.float64))

    def step(self, command: ArrayLike | None = None) -> None:
        """Fly one step under the condition; see `Simulator.step`."""
        now = np.asarray(self.time, np.float64)
        if self._pickup is not None:
            self._hang_on(self._pickup, now)
        if self._gust is not None:
            blows = (now >= self._gust.start - 1e-9) & (now < self._gust.end - 1e-9)
            self.set_external(np.where(blows[:, None], self._mass[:, None] * self._gust.acceleration, 0.0))
        # Cameras look when the tick ends, so that is when people are where they are seen.
        self._move(now + 1.0 / self.config.control_rate)
        super().step(command)
        met = self._counts()
        touched = met > self._met
        if self._steps % self._every:  # within a tick that has begun
            self.touches[-1] |= touched
        else:
            self.touches.append(touched)
        self._met = met
        self._steps += 1
        if self._progress_callback is not None and self._steps % self._every == 0:
            self._progress_callback()

    def _hang_on(self, load: Pickup, now: Array) -> None:
        mass = np.where(now >= load.start - 1e-9, load.mass, self._mass)
        if np.any(mass != self._mass):
            # Mass alone: a load at the centre of mass adds no inertia.
            self._mass = mass
            self.set_parameter("mass", mass, lasting=not self.config.randomization.posterior)

    def _move(self, time: Array) -> None:
        if self._walkers is not None and self._batch is not None:
            self._walkers.pose(self._batch, time)

    def _counts(self) -> ArrayInt:
        return np.zeros(self.env_count, np.int64) if self.scene is None else self.contacts.count.copy()


class WatchedPilot:
    """A pilot that reads sensed values, and whose decisions are kept.

    Args:
        pilot: Who decides.
        noise: Level of what it senses, in the fields of its state; "baseline": the true values.
        keys: (n, 4) of the flights.
        every: Decisions to a tick: within one, what is sensed is off by the same, as an estimate's error lasts, and the first
            decision of each is kept.
        seen: What it is shown instead of what its cameras see; None: what they see.
    """

    def __init__(self, pilot: Pilot, noise: str, keys: ArrayU32, every: int = 1, seen: SeenImages | None = None):
        self.inner, self._keys, self._every, self._seen = pilot, keys, every, seen
        self.name, self.level, self.observes = pilot.name, pilot.level, pilot.observes
        self._sensor = np.array(noise_level(noise).sensor)
        self._asked = 0
        self.commands: list[Array] = []
        """By tick, (n, width)."""
        self.estimates: list[Array] = []
        """By tick, (n, 2): mass [kg] and force of a rotor [N], of a pilot that has an attribute `estimate`."""

    @property
    def lost_flights(self) -> dict[int, str]:
        """Flights that a program outside has failed, and why."""
        found: dict[int, str] = getattr(self.inner, "lost_flights", {})
        return found

    def command(self, observation: Observation) -> Any:
        """Return the pilot's command."""
        observation = observation if self._seen is None else self._seen.of(observation)
        given = self.inner.command(self._sensed(observation) if self._sensor.any() else observation)
        self._asked += 1
        if (self._asked - 1) % self._every:
            return given
        self.commands.append(np.array(given, float))
        estimate = getattr(self.inner, "estimate", None)
        if estimate is not None:
            self.estimates.append(np.array(estimate, float))
        return given

    def _sensed(self, observation: Observation) -> Observation:
        """Return the state with the level's noise; quaternions of unit length, the sign as it is."""
        drawn = self._sensor * normals(self._keys, self._asked // self._every, Stream.SENSED, 12)[:, :10]
        fields = dict(observation.fields)
        for name, part in (("position", slice(0, 3)), ("velocity", slice(3, 6)), ("attitude", slice(6, 10))):
            if name in fields:
                fields[name] = fields[name] + drawn[:, part]
        if "height" in fields:
            fields["height"] = fields["height"] + drawn[:, 2].reshape(fields["height"].shape)
        if "attitude" in fields:
            fields["attitude"] = fields["attitude"] / np.linalg.norm(fields["attitude"], axis=1, keepdims=True)
        for values in fields.values():
            values.flags.writeable = False
        return replace(observation, fields=fields)
