"""Flights of `truth:race` on courses of a race, judged by its referee: the floor that other pilots are measured against.

With the true state, so nothing of it is a result of the race: name, tables and pages say so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.pilots.pilot import observe
from airworthy.race.courses import course_of
from airworthy.race.pilots.tracker import TrackerGains
from airworthy.race.pilots.truth import TruthRacePilot
from airworthy.race.planning.plan import RacePlan, course_digest, start_state
from airworthy.race.record import Race
from airworthy.race.referee import RaceEnd, Referee
from airworthy.race.scoring import RaceResult, race_results
from airworthy.scenes import scene
from airworthy.scenes.batch import SceneBatch
from airworthy.simulation import Contact, Imu, Simulator, SimulatorConfig
from airworthy.vehicles import vehicle

__all__ = ["TruthFlight", "fly_with_truth"]

_COMMANDS = 240.0
"""Per second (spec/race 5.2); the loop below runs at the vehicle's own rate."""
_BEYOND = 1.0
"""How long behind the plan's end the referee is shown the flight [s]: it closes after 0.3 s."""


@dataclass(frozen=True)
class TruthFlight:
    """Flights of one batch."""

    results: tuple[RaceResult, ...]
    """By the referee, in the order of the courses."""
    plans: tuple[RacePlan, ...]
    error: Array
    """Distance from the plan at each command [m], (commands, flights)."""

    def table(self, flight: int = 0) -> list[dict[str, Any]]:
        """Return a row for each gate: when it was planned and passed by the strict test [s], error there and on the leg to it
        [m].

        Args:
            flight: Which.
        """
        rows, begun = [], 0
        for planned, passage in zip(self.plans[flight].gate_times, self.results[flight].passages, strict=True):
            end = min(max(begun + 1, round(planned * _COMMANDS)), len(self.error) - 1)
            rows.append(
                {
                    "gate": passage.gate,
                    "planned_s": float(planned),
                    "passed_s": passage.strict_time,
                    "error_m": float(self.error[end, flight]),
                    "leg_error_max_m": float(np.max(self.error[begun : end + 1, flight])),
                    "offset_m": passage.offset,
                }
            )
            begun = end
        return rows


def fly_with_truth(
    race: Race,
    courses: Sequence[str],
    plans: Sequence[RacePlan],
    *,
    noise: bool = True,
    seed: int = 0,
    gains: TrackerGains | None = None,
) -> TruthFlight:
    """Fly plans with the true state: contest's loop on its gyroscope, Euler steps, contact swept at each, referee.

    Args:
        race: Nominal, with a scene and a vehicle.
        courses: A name for each flight, as of `course_of`.
        plans: A plan for each, made for that course.
        noise: Whether forces, moments and gyroscope have the vehicle's noise.
        seed: Of the noise; flights of one batch differ.
        gains: Of the tracker.

    Raises:
        AirworthyError: A race without scene or vehicle, or plans for other courses.
    """
    if not race.scene or not race.vehicle:
        raise AirworthyError(f"The race {race.name!r} has no scene or no vehicle, so it cannot be flown; alphapilot has both.")
    places = [course_of(race, name) for name in courses]
    _check_plans(race, places, courses, plans)
    racer = vehicle(race.vehicle)
    exact = {} if noise else {"wrench_noise": False, "imu": Imu()}
    config = SimulatorConfig.published(racer, control_rate=_COMMANDS, contact=Contact("freeze"), **exact)
    different = list(dict.fromkeys(courses))
    batch = SceneBatch([scene(f"{race.scene}:{name}") for name in different])
    inside = np.array([different.index(name) for name in courses])
    simulator = Simulator(racer, config, len(places), seed, geometry=batch.geometry, geometry_env=inside)
    start = start_state(race)
    simulator.reset(position=np.tile(start[:3], (len(places), 1)), attitude=np.tile(start[6:10], (len(places), 1)))
    pilot = TruthRacePilot(plans, racer, config, gains)
    referee = Referee(tuple(places), physics_rate=config.physics_rate)
    state = referee.begin()
    state = referee.advance(state, np.asarray(simulator.position, np.float64)[None], np.zeros((1, len(places)), np.int64))
    errors = []
    for _ in range(math.ceil((max(plan.duration for plan in plans) + _BEYOND) * _COMMANDS)):
        position, contact = _held(simulator, pilot, round(config.physics_rate / _COMMANDS))
        errors.append(pilot.error)
        state = referee.advance(state, position, contact)
    return TruthFlight(race_results(referee, state), tuple(plans), np.array(errors))


def _held(simulator: Simulator, pilot: TruthRacePilot, steps: int) -> tuple[Array, Any]:
    """Fly one command; return positions and what happened at each physics step, (steps, env, 3) and (steps, env)."""
    simulator.set_command(pilot.command(observe(simulator, pilot.observes)))
    gyro, positions, events = [], [], []
    for _ in range(steps):  # one at a time, for the referee looks at every step
        sample = simulator.advance(1, imu_log=True)
        assert sample is not None
        gyro.append(np.array(sample[0, :, 3:6], np.float64))
        positions.append(np.array(simulator.position, np.float64))
        events.append(np.where(np.asarray(simulator.contacts.count) > 0, int(RaceEnd.CONTACT), 0))
    pilot.sensed(np.array(gyro))
    return np.array(positions), np.array(events)


def _check_plans(race: Race, places: Sequence[Race], names: Sequence[str], plans: Sequence[RacePlan]) -> None:
    if not places or len(plans) != len(places):
        raise AirworthyError(
            f"{len(places)} courses and {len(plans)} plans of {race.name!r} arrived; expected one plan for each."
        )
    for name, place, plan in zip(names, places, plans, strict=True):
        if plan.digest != course_digest(place, plan.model):
            raise AirworthyError(
                f"The plan for {race.name!r}, course {name!r}, was made for another course: solve it for this one."
            )
