"""`truth:race`: flies a plan knowing its own true position, velocity and attitude; what a pilot without that can reach at best.

Its body rate is the gyroscope's, through a first-order filter, as any pilot's (spec/race 5.2).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from airworthy.control.levels import RATE_LOOP
from airworthy.core.arrays import Array, ArrayFloat, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.pilots.pilot import Observation
from airworthy.race.pilots.rate_inversion import RateLoopInverse
from airworthy.race.pilots.tracker import RaceTracker, TrackerGains
from airworthy.race.planning.plan import RacePlan
from airworthy.simulation.config import SimulatorConfig
from airworthy.vehicles import Vehicle

__all__ = ["TruthRacePilot"]

_SMOOTHING = 3.5
"""Samples of the gyroscope's filter: noise of 0.055 rad/s would otherwise turn into 1.4 rad/s^2 of command (spec/race 5.2)."""


class TruthRacePilot:
    """A batch of vehicles, each with its plan.

    It fits `airworthy.pilots.Pilot` but for one thing: whoever flies it hands it all samples of the gyroscope, by `sensed`.

    Args:
        plans: One for each vehicle, of one model.
        vehicle: As the loop believes it to be.
        config: Of the simulator.
        gains: Of the tracker.

    Raises:
        AirworthyError: No plan, plans for different vehicles, or a simulator with another rate loop.
    """

    name = "truth:race"
    level = RATE_LOOP
    observes = ("position", "velocity", "attitude")

    def __init__(
        self, plans: Sequence[RacePlan], vehicle: Vehicle, config: SimulatorConfig, gains: TrackerGains | None = None
    ) -> None:
        if not plans or any(plan.model.mass != plans[0].model.mass for plan in plans):
            raise AirworthyError("A pilot needs a plan for each of its vehicles, all of one model.")
        self.plans = tuple(plans)
        self.tracker = RaceTracker(plans[0].model, gains)
        self.inverse = RateLoopInverse.of(vehicle, len(plans), config)
        self.rate: Array = np.zeros((len(plans), 3))
        """Filtered body rate [rad/s], (env, 3)."""
        self.error: Array = np.zeros(len(plans))
        """Distance from the plan at the last command [m], (env,)."""
        self._sent: Array = np.zeros((len(plans), 3))

    def command(self, observation: Observation) -> ArrayFloat:
        """Return thrusts and body rates, (env, 4)."""
        time = np.asarray(observation.time, np.float64)
        now, ahead = self._reference(time), self._reference(time + self.tracker.gains.lead)
        seen = [np.asarray(observation[name], np.float64) for name in self.observes]
        state = np.hstack([*seen, self.rate])
        thrust, alpha = self.tracker.command(state, now[0], now[1], ahead[1])
        self.error = np.linalg.norm(now[0][:, :3] - state[:, :3], axis=1)
        self._sent = self.inverse.command(alpha)
        return np.hstack([thrust[:, None], self._sent])

    def sensed(self, gyro: ArrayLike) -> None:
        """Take samples that the loop has read under the last command.

        Args:
            gyro: [rad/s], (steps, env, 3), in their order.
        """
        samples = np.asarray(gyro, np.float64)
        self.inverse.advance(samples, self._sent)
        for sample in samples:
            self.rate = self.rate + (sample - self.rate) / _SMOOTHING

    def _reference(self, time: Array) -> tuple[Array, Array]:
        pairs = [plan.at(time[k : k + 1]) for k, plan in enumerate(self.plans)]
        return np.vstack([states for states, _ in pairs]), np.vstack([inputs for _, inputs in pairs])
