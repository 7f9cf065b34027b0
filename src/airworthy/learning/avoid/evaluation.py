"""How well a policy, or a planner, flies through unseen forests: full rigid bodies in `Simulator`, noisy depth.

Specification learning_by_reward 7.2 and 8: trained with one physics, judged with another. A flight succeeds that comes within a
metre of its goal behind the forest, without having touched anything or left the forest's box, in 30 s. How fast it was is told
beside it: a top speed is a cap, and who flies slower than it may touches less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from airworthy.benchmarks.navigation import NavigationConfig, Perturbation
from airworthy.benchmarks.navigation.methods import method_of
from airworthy.benchmarks.navigation.missions import flown_vehicle
from airworthy.benchmarks.navigation.planner_adapter import PlannerGuide
from airworthy.benchmarks.navigation.sensing import DEPTH
from airworthy.core.arrays import Array, ArrayBool
from airworthy.core.native_kernel import thread_limit
from airworthy.core.schema import SEED, Bound, Length, check_fields
from airworthy.evaluation import wilson_interval
from airworthy.learning.avoid.fleet import fleet_names, unseen
from airworthy.learning.avoid.forests import AROUND, CEILING, FOREST_LENGTH, FOREST_WIDTH, forest_scene
from airworthy.pilots.avoid_policy.pilot import AvoidPilot, AvoidPolicy
from airworthy.pilots.avoid_policy.sight import CAMERA, avoid_camera
from airworthy.pilots.pilot import observe
from airworthy.planners.common.interface import Mission
from airworthy.scenes import SceneBatch
from airworthy.simulation import Contact, MountedSensors, Simulator, SimulatorConfig
from airworthy.vehicles import Vehicle, vehicle

__all__ = ["AvoidProtocol", "ForestFlights", "fly_forests", "judged", "planner_guide", "policy_guide"]

VEHICLE = "flightgoggles"
"""Flown: 1 kg, a thrust of 3.8 times its weight, drag, a body of 0.15 m."""
PHYSICS_RATE, CONTROL_RATE = 1000.0, 100.0
"""[Hz]; specification, section 8."""
# Ours, as far as the specification, section 8, leaves it open: flights between trunks, from open ground to open ground.
ALTITUDE = 1.5
"""Of starts and goals [m], below the ceiling and far from the ground."""
SIDE = 3.0
"""Starts and goals lie so far from the middle line, at most [m]."""
BEFORE = 3.0
"""And so far outside of the forest [m]."""
GOAL_RADIUS, TIME_LIMIT = 1.0, 30.0
"""Who is as near to its goal has come through [m]; later it is late [s], so that 2 m/s over 46 m is in time."""
CALM = 6.0
"""Acceleration that planners are given [m/s^2], as in the navigation benchmark; above 4 m/s, 1.5 times the top speed."""


@dataclass(frozen=True)
class AvoidProtocol:
    """In which forests it is judged, at which speeds."""

    seed: Annotated[int, SEED] = 7919
    """Of forests, starts and noise; the specification's, and nothing was chosen on it."""
    flights: Annotated[int, Bound(1, 100_000)] = 100
    """Of each speed and density, every one in a forest of its own."""
    speeds: Annotated[tuple[float, ...], Bound(0.5, 30.0, "m/s"), Length(1, 100)] = (4.0, 8.0)
    """Top speeds."""
    areas: Annotated[tuple[float, ...], Bound(2.0, 1000.0), Length(1, 100)] = (5.0, 3.3, 2.5)
    """Per tree [m^2]."""
    depth_noise: Annotated[float, Bound(0.0, 1.0)] = 0.01
    """Standard deviation of depth per metre."""

    def __post_init__(self) -> None:
        check_fields(self, "AvoidProtocol.")


@dataclass(frozen=True, eq=False)
class ForestFlights:
    """What became of n flights."""

    success: ArrayBool
    """(n,)"""
    touched: ArrayBool
    """(n,) met a tree or the ground."""
    left: ArrayBool
    """(n,) flew out of the forest's box; the rest was under way when time was over."""
    speed: Array
    """(n,) mean through the forest [m/s]; NaN where it did not come through."""
    track: Array
    """(tick, n, 3) world [m]; a decided flight stays where it was."""
    cause: tuple[str, ...] = field(default=())
    """By flight, why a planner failed; "" elsewhere."""

    @property
    def figures(self) -> dict[str, Any]:
        """Counts and the mean speed, as they are reported."""
        through = self.speed[self.success]
        rate = wilson_interval(int(self.success.sum()), len(self.success))
        return {
            "flights": len(self.success),
            "success": int(self.success.sum()),
            "success_interval_percent": [100.0 * rate.low, 100.0 * rate.high],
            "touched": int(self.touched.sum()),
            "left": int(self.left.sum()),
            "late": int((~(self.success | self.touched | self.left)).sum()),
            "mean_speed_m_s": float(through.mean()) if len(through) else None,
        }


class _PolicyGuide:
    """An avoiding policy, asked as the benchmark's guides are."""

    level = "acceleration"
    sensor = CAMERA

    def __init__(self, policy: AvoidPolicy, mission: Mission, vehicles: Sequence[Vehicle], noise: float):
        self.pilot = AvoidPilot(policy, mission.goal, mission.speed, vehicles)
        self.camera = avoid_camera(noise)

    def configured(self, config: SimulatorConfig) -> SimulatorConfig:
        return config

    def attach(self, simulator: Simulator, mounted: MountedSensors | None) -> None:
        """Nothing to prepare."""

    def command(self, simulator: Simulator, mounted: MountedSensors | None, active: ArrayBool) -> tuple[Array, list[str]]:
        found = self.pilot.command(observe(simulator, self.pilot.observes, mounted))
        return found, [""] * len(active)


GuideMaker = Callable[[Mission, Sequence[Vehicle], float], Any]
"""Makes whoever flies, of a mission, its vehicles, and the noise of depth."""


def policy_guide(policy: AvoidPolicy) -> GuideMaker:
    """Return who flies by a policy."""
    return lambda mission, vehicles, noise: _PolicyGuide(policy, mission, vehicles, noise)


def planner_guide(name: str) -> GuideMaker:
    """Return who flies by a planner of the navigation benchmark: ego, fast, straight."""

    def made(mission: Mission, vehicles: Sequence[Vehicle], noise: float) -> PlannerGuide:
        config = NavigationConfig(pilots=(name,), perturb=Perturbation(depth_noise=0.0 if name == "straight" else noise))
        return PlannerGuide(method_of(name, float(vehicles[0].body.size[0])), mission, vehicles, config, None)

    return made


def fly_forests(
    make: GuideMaker, protocol: AvoidProtocol, speed: float, area: float, only: int | None = None, fleet: str = ""
) -> ForestFlights:
    """Fly, one flight in each forest.

    Args:
        make: Makes whoever flies.
        protocol: How many, and which.
        speed: Top speed [m/s].
        area: Per tree [m^2].
        only: Fly all flights in the forest of this number instead, from their own starts.
        fleet: Whose vehicles fly, one after the other, with the body of the navigation benchmark, a sphere of 0.3 m; "": one.

    Raises:
        UnknownNameError: There is no such fleet.
    """
    count = protocol.flights
    numbers = range(count) if only is None else [only] * count
    batch = SceneBatch([forest_scene(protocol.seed, k, area) for k in numbers], count, threads=thread_limit())
    mission = _mission(protocol, speed)
    vehicles = flown_vehicles(fleet, count)
    guide = make(mission, vehicles, protocol.depth_noise)
    base = SimulatorConfig(
        physics_rate=PHYSICS_RATE, control_rate=CONTROL_RATE, level=guide.level, contact=Contact(mode="freeze")
    )
    simulator = Simulator(
        vehicles, guide.configured(base), count, seed=protocol.seed, geometry=batch.geometry, threads=thread_limit()
    )
    name = getattr(guide, "sensor", DEPTH)
    mounted = None if guide.camera is None else MountedSensors(simulator, batch, {name: guide.camera})
    guide.attach(simulator, mounted)
    simulator.reset(position=mission.start)
    return _flown(simulator, guide, mounted, mission)


def flown_vehicles(fleet: str, count: int) -> list[Vehicle]:
    """Return who flies so many flights: the vehicles of a fleet one after the other, or `VEHICLE` where there is none.

    Raises:
        UnknownNameError: There is no such fleet.
    """
    if not fleet:
        return [vehicle(VEHICLE)] * count
    names = fleet_names(fleet)
    return [flown_vehicle(names[k % len(names)], "sphere") for k in range(count)]


def _mission(protocol: AvoidProtocol, speed: float) -> Mission:
    count = protocol.flights
    # The same starts and goals for whoever flies, at whatever speed and density, and however many fly.
    across = np.random.default_rng([protocol.seed, 3]).uniform(-SIDE, SIDE, (count, 2)).T
    ends = [np.stack([np.full(count, x), y, np.full(count, ALTITUDE)], 1) for x, y in zip(_ENDS, across, strict=True)]
    half = 0.5 * FOREST_WIDTH
    return Mission(
        start=ends[0],
        goal=ends[1],
        speed=np.full(count, speed),
        acceleration=np.full(count, max(CALM, 1.5 * speed)),
        lower=np.tile([-AROUND, -half, 0.0], (count, 1)),
        upper=np.tile([FOREST_LENGTH + AROUND, half, CEILING], (count, 1)),
        flight=np.arange(count),
        seed=protocol.seed,
    )


_ENDS = (-BEFORE, FOREST_LENGTH + BEFORE)


def _flown(simulator: Simulator, guide: Any, mounted: MountedSensors | None, mission: Mission) -> ForestFlights:
    count = len(mission.start)
    success, touched, left = (np.zeros(count, bool) for _ in range(3))
    entered, passed = np.full(count, np.nan), np.full(count, np.nan)
    causes = [""] * count
    position = mission.start.copy()
    command, track = None, [position]
    for tick in range(1, round(TIME_LIMIT * CONTROL_RATE) + 1):
        active = ~(success | touched | left)
        if not active.any():
            break
        found, told = guide.command(simulator, mounted, active)
        command = found if command is None else np.where(active[:, None], found, command)
        for k in np.flatnonzero(active & np.array([bool(cause) for cause in told])):
            causes[k], left[k] = told[k], True
        simulator.step(command)
        position = np.where(active[:, None], np.array(simulator.position, np.float64), position)
        track.append(position)
        at = tick / CONTROL_RATE
        entered = np.where(np.isnan(entered) & (position[:, 0] >= 0.0), at, entered)
        passed = np.where(np.isnan(passed) & (position[:, 0] >= FOREST_LENGTH), at, passed)
        touched |= active & ((simulator.field("status") == 2.0) | simulator.diverged)
        outside = ((position < mission.lower) | (position > mission.upper)).any(1)
        left |= active & outside & ~touched
        near = np.linalg.norm(mission.goal - position, axis=1) < GOAL_RADIUS
        success |= active & near & ~touched & ~left
    return ForestFlights(success, touched, left, FOREST_LENGTH / (passed - entered), np.stack(track), tuple(causes))


def judged(policy: AvoidPolicy, protocol: AvoidProtocol) -> list[dict[str, Any]]:
    """Return what became of a policy's flights, a row per speed and density."""
    make = policy_guide(policy)
    fleet = "" if policy.contract.fleet is None else unseen(policy.contract.fleet.vehicles)
    return [
        {
            "speed_m_s": speed,
            "area_m2": area,
            **({"vehicles": fleet} if fleet else {}),
            **fly_forests(make, protocol, speed, area, fleet=fleet).figures,
        }
        for speed in protocol.speeds
        for area in protocol.areas
    ]
