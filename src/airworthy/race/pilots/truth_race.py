"""`truth:race` as a pilot of `airworthy bench race`: plans through the true gates before it moves, and flies the plan.

It is given the truth, so nothing of it is a result of the race. What it does else is what any pilot may: it plans from corners,
reads the gyroscope's samples from the records, and keeps its own twin of the rate loop, of which it is told the vehicle.
"""

from __future__ import annotations

import math

import numpy as np

from airworthy.core.arrays import Array, ArrayFloat
from airworthy.pilots.pilot import Observation
from airworthy.race.onboard import Onboard, OnboardFacts, Truth
from airworthy.race.pilots.truth import TruthRacePilot
from airworthy.race.planning.bounds import RacePlanOptions
from airworthy.race.planning.minimum_time import casadi_module, minimum_time_plan
from airworthy.race.planning.racer import RacerModel
from airworthy.race.record import Race, RaceGate, RaceLimits, RaceScore, RaceStart
from airworthy.simulation.config import SimulatorConfig

NODES = 12
"""Of a plan on each leg (spec/race 5.4): solved in half the time of 24, for 0.02 s of the race."""
_NO_LIMIT_S = 3600.0
"""A plan does not read it."""


class TruthRace:
    """See the module; one flight."""

    rate = 240.0
    sensors = ()

    @classmethod
    def check(cls) -> None:
        """Raise AirworthyError where there is no solver to plan with."""
        casadi_module()

    def begin(self, facts: OnboardFacts) -> None:
        """Take what is told; where gates stand comes with the first command."""
        self._facts = facts
        self._flown: TruthRacePilot | None = None

    def command(self, onboard: Onboard, truth: Truth) -> Array:
        """Return thrust [N] and rates [rad/s], (1, 4); the first call plans, which nobody is charged: it stands still."""
        if self._flown is None:
            self._flown = self._planned(truth)
        else:
            self._flown.sensed(onboard.imu[:, :, 3:])
        fields: dict[str, ArrayFloat] = {"position": truth.position, "velocity": truth.velocity, "attitude": truth.attitude}
        return np.asarray(self._flown.command(Observation(np.array([onboard.time]), fields)), np.float64)

    def _planned(self, truth: Truth) -> TruthRacePilot:
        facts = self._facts
        model = RacerModel.of(facts.vehicle)
        plan = minimum_time_plan(told_course(facts, truth.corners[0]), model, RacePlanOptions(nodes=NODES))
        return TruthRacePilot([plan], facts.vehicle, SimulatorConfig.published(facts.vehicle))


def told_course(facts: OnboardFacts, corners: Array) -> Race:
    """Return a course as a planner takes it: its passages through gates that stand where somebody says.

    Args:
        facts: What is told of the race.
        corners: Of the opening of each passage, world [m], (passages, 4, 3).
    """
    # A gate that is flown twice is two here: each passage has its own, in the direction in which it is flown.
    gates = tuple(
        RaceGate(
            f"{number + 1} {name}"[:40],
            tuple(tuple(point) for point in opening.tolist()),
            # Unit vectors of a rotation may be a last bit longer than one, which a gate refuses.
            tuple(np.clip(way, -1.0, 1.0).tolist()),
        )
        for number, (name, opening, way) in enumerate(zip(facts.gates, corners, facts.directions, strict=True))
    )
    return Race(
        name="as told",
        title="",
        order=tuple(gate.name for gate in gates),
        start=RaceStart(facts.start_position, math.degrees(facts.start_yaw)),
        limits=RaceLimits(_NO_LIMIT_S),
        score=RaceScore("time"),
        gates=gates,
    )
