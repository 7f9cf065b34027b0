"""Flights to learn from: a rigid body with lagging inputs, gusts, and a cheap stand-in for the filter, many at once.

The stand-in knows each gate with the variance of a draw within its bounds until the camera sees it; every frame in which it
does is then a measurement whose deviation grows with the distance (spec/race 9: "sigma grows as 5.3, drops when s(t) is
integrated"). Own place and velocity are off by a little. Scenes, contacts, occlusion and the rate loop are left
out; what a policy is worth is measured in races (`airworthy bench race`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayF32
from airworthy.race.briefing import RaceBriefing
from airworthy.race.estimation.landmarks import gate_axes
from airworthy.race.learned.batch import COMMAND_HZ, FRAME, CourseBatch, FlightNoise
from airworthy.race.learned.observing import RacerView
from airworthy.race.learned.reference import MovedReference
from airworthy.race.pilots.tracker import RaceTracker
from airworthy.race.planning.horizon import GateWindows

__all__ = ["CourseFlights", "CourseRound"]

_CALM = FlightNoise()


@dataclass(frozen=True)
class CourseRound:
    """What a round of flights left."""

    seen: ArrayF32
    """(samples, observed)."""
    wanted: ArrayF32
    """What the expert would have put out there, (samples, 4)."""
    error: float
    """Mean squared difference of the policy's outputs from these."""
    lost: int
    """Times that a flight was too far from its plan, and begun anew."""
    crossed: int
    """Passages of gates."""
    hit: int
    """Those of them outside the true opening less the vehicle's radius."""
    finish: Array
    """When each flight that began at the start was through its last gate [s], NaN where it never was, (n,)."""


class CourseFlights:
    """Makes flights of one race.

    Args:
        briefing: What is known of it.
        gates: All passages as they nominally stand, with their whole openings.
        reference: The expert's plan.
        tracker: Who flies it.
        lag: Of thrust and moments [s].
        thrust_max: That an output of 1 stands for [N].
    """

    def __init__(
        self,
        briefing: RaceBriefing,
        gates: GateWindows,
        reference: MovedReference,
        tracker: RaceTracker,
        lag: float,
        thrust_max: float,
    ) -> None:
        self.briefing, self.gates, self.reference, self.tracker = briefing, gates, reference, tracker
        self.lag, self.thrust_max = lag, thrust_max
        self.passages = len(briefing.gates)
        self.view = RacerView.of(briefing.start, briefing.start_yaw, self.passages)
        self.nominal = gate_axes(briefing, np.zeros((1, self.passages, 3)))[0]
        # Variance of a draw within plus or minus b is b^2 / 3; what cannot move is known.
        self.prior = 1.0 / np.maximum(briefing.bound**2 / 3.0, 1e-12)

    def fly(
        self,
        policy: Callable[[ArrayF32], ArrayF32],
        rng: np.random.Generator,
        count: int,
        seconds: float,
        by_expert: float = 0.0,
        on_the_way: float = 0.75,
        keep_every: int = 8,
        noise: FlightNoise = _CALM,
    ) -> CourseRound:
        """Fly, and ask the expert on the way.

        Args:
            policy: From what is seen to outputs.
            rng: Of all that is drawn.
            count: Flights.
            seconds: How long.
            by_expert: Share of flights that the expert flies.
            on_the_way: Share of flights that begin somewhere on the course, the others at its start.
            keep_every: Of so many commands one is kept.
            noise: Disturbances.
        """
        batch = CourseBatch(self, rng, count, on_the_way, noise)
        expert = rng.random(count) < by_expert
        seen, wanted, errors = [], [], []
        for number in range(round(seconds * COMMAND_HZ)):
            if number % FRAME == 0:
                batch.look()
            believed, axes = batch.believed()
            observed = batch.observe(believed, axes)
            label = batch.label(believed)
            output = policy(observed)
            if number % keep_every == 0:
                seen.append(observed)
                wanted.append(label)
                errors.append(float(np.mean((output - label) ** 2)))
            batch.advance(np.where(expert[:, None], label, output), believed, number)
            if batch.over:
                break
        return CourseRound(
            np.concatenate(seen),
            np.concatenate(wanted),
            float(np.mean(errors)),
            batch.lost,
            batch.crossed,
            batch.hit,
            batch.finish,
        )
