"""What is set up before a batch flies: vehicles, places, starts, the simulator and its camera."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from airworthy.core.native_kernel import thread_limit
from airworthy.evaluation.navigation.config import NavigationConfig
from airworthy.evaluation.navigation.guiding import Guide
from airworthy.evaluation.navigation.lifting import CONTROL_RATE, PHYSICS_RATE, Lifted, lift
from airworthy.evaluation.navigation.missions import Draws, draws_of, flown_vehicle, mission_of, place
from airworthy.evaluation.navigation.plan import Flight
from airworthy.evaluation.navigation.sensing import DEPTH, ActiveSensors
from airworthy.pilots.planning.interface import Mission
from airworthy.scenes import SceneBatch
from airworthy.simulation import Contact, Simulator, SimulatorConfig
from airworthy.vehicles import Vehicle

__all__ = ["Stage", "sensors_of", "simulator_of", "stage_of"]

Array = NDArray[np.float64]


@dataclass(eq=False)
class Stage:
    """Everything of a batch but who flies it."""

    mission: Mission
    draws: Draws
    vehicles: list[Vehicle]
    radius: Array
    batch: SceneBatch
    lifted: Lifted
    seconds: dict[str, float] = field(default_factory=dict)


def stage_of(flights: Sequence[Flight], config: NavigationConfig) -> Stage:
    """Draw, build and lift what flights need; raises AirworthyError where vehicles or scenes are not to be had."""
    begun = perf_counter()
    draws = draws_of(flights, config.seed, config.perturb)
    mission = mission_of(flights, config, draws)
    vehicles = [flown_vehicle(flight.vehicle, config.body) for flight in flights]
    radius = np.array([item.body.size[0] for item in vehicles])
    movers, speed = config.perturb.moving_obstacles, config.perturb.moving_speed
    scenes = [place(f.scenario, f.configuration, config.layouts, movers, speed) for f in flights]
    batch = SceneBatch(scenes, len(flights), device=config.device, threads=thread_limit())
    lifted = lift(vehicles, mission, draws, radius, config.protocol, config.device)
    return Stage(mission, draws, vehicles, radius, batch, lifted, {"setup": perf_counter() - begun})


def simulator_of(stage: Stage, guide: Guide, config: NavigationConfig) -> Simulator:
    """The simulator of a batch, at the level that its guide commands."""
    base = SimulatorConfig(
        physics_rate=PHYSICS_RATE, control_rate=CONTROL_RATE, level=guide.level, contact=Contact(mode="freeze")
    )
    made = guide.configured(base)
    mission = stage.mission
    return Simulator(
        stage.vehicles,
        made,
        len(stage.vehicles),
        seed=mission.seed,
        flight_ids=mission.flight,
        device=config.device,
        threads=thread_limit(),
        geometry=stage.batch.geometry,
    )


def sensors_of(simulator: Simulator, stage: Stage, guide: Guide) -> ActiveSensors | None:
    """What its guide looks through, mounted; None where it sees nothing."""
    if guide.camera is None:
        return None
    return ActiveSensors(simulator, stage.batch, {DEPTH: guide.camera}, move_scene=False)
