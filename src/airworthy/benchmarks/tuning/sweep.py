"""Candidates for a vehicle's gains, flown side by side: every candidate makes the same steps and follows the same path."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from airworthy.control.allocation import Priority
from airworthy.control.gain_parameters import gain_rows
from airworthy.control.levels import ControlConfig
from airworthy.core.arrays import Array, ArrayBool
from airworthy.core.frames import yaw_of
from airworthy.core.schema import Bound, check_fields
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import Vehicle, hover_speed, rotor_thrust

GAINS: tuple[str, ...] = ("position_gain", "velocity_gain", "attitude_gain", "rate_gain")
FREQUENCY_RANGE = (0.5, 2.5)
"""Factors of the attitude's frequencies of "auto", sampled evenly in their logarithms."""
SHARE_RANGE = (0.6, 1.6)
"""Factors of the position's frequencies over those of the attitude: a cascade whose loops come closer than that rings."""
DAMPING_RANGE = (0.7, 1.6)
"""Factors of the damping ratios of "auto" (0.7 to 0.9): from 0.5, which overshoots by 16 %, to 1.4."""
STEPS: tuple[tuple[str, tuple[float, float, float, float]], ...] = (
    ("x", (1.0, 0.0, 0.0, 0.0)),
    ("y", (0.0, 1.0, 0.0, 0.0)),
    ("z", (0.0, 0.0, 1.0, 0.0)),
    ("yaw", (0.0, 0.0, 0.0, math.pi / 4.0)),
)
"""Set-point steps: position [m] and yaw [rad]."""
TESTS = len(STEPS) + 1
"""Flights of a candidate: the steps, and a path."""
STEP_TIME = 5.0
"""How long a step is watched [s]."""
PATH_SPEED_SHARE = 0.35
"""Peak acceleration of the path, as a share of what the vehicle has to spare beside its weight: brisk, and unsaturated."""
BAND = 0.02
"""A step has settled where it stays within this share of its size."""


FACTOR = Bound(0.0, 100.0, above=True)
"""Of a frequency or damping ratio."""


@dataclass(frozen=True)
class GainCandidate:
    """Gains of the geometric law as factors of "auto"."""

    position: Annotated[float, FACTOR] = 1.0
    """Of the position loop's frequency."""
    position_damping: Annotated[float, FACTOR] = 1.0
    attitude: Annotated[float, FACTOR] = 1.0
    """Of the attitude loop's frequency."""
    attitude_damping: Annotated[float, FACTOR] = 1.0

    def __post_init__(self) -> None:
        check_fields(self, "Candidate.")

    def factors(self) -> dict[str, float]:
        """Return the factor of each gain: stiffness goes with the square of the frequency, damping terms with frequency and
        damping."""
        return {
            "position_gain": self.position**2,
            "velocity_gain": self.position * self.position_damping,
            "attitude_gain": self.attitude**2,
            "rate_gain": self.attitude * self.attitude_damping,
        }


@dataclass(frozen=True, eq=False)
class CandidateResults:
    """What the candidates did; figures are NaN where a flight diverged."""

    time: Array
    """[s], (k,)."""
    responses: Array
    """Position or yaw over the size of its step, (k, candidates, steps)."""
    tracking_error: Array
    """Root mean square distance from the path [m], (candidates,)."""
    effort: Array
    """Root mean square change of rotor thrust from that of hover, over it, on the path [-], (candidates,)."""
    diverged: ArrayBool
    """(candidates,)"""
    saturated: Array
    """Share of time at which a rotor's command was at a limit, on the path, (candidates,)."""


def candidates_for(count: int, seed: int = 0) -> list[GainCandidate]:
    """Return the gains of "auto", and others spread evenly over the ranges (a Sobol sequence, scrambled by the seed)."""
    from scipy.stats import qmc

    points = qmc.Sobol(4, rng=np.random.default_rng(seed)).random_base2(max(1, math.ceil(math.log2(max(count, 2)))))
    low, high = np.log([FREQUENCY_RANGE, SHARE_RANGE, DAMPING_RANGE, DAMPING_RANGE]).T
    drawn = np.exp(low + (high - low) * points[: count - 1]).tolist()
    return [
        GainCandidate(),
        *(GainCandidate(attitude * share, slow, attitude, quick) for attitude, share, slow, quick in drawn),
    ]


def gains_of(vehicle: Vehicle, candidate: GainCandidate, physics_rate: float) -> dict[str, Array]:
    """Return a candidate's gains in their units, each (3,).

    Args:
        vehicle: Whose automatic gains the candidate's factors multiply.
        candidate: The factors.
        physics_rate: Steps per second [Hz].
    """
    auto = gain_rows(vehicle, ControlConfig(), "tracking", 1.0 / physics_rate, vehicle.rotor_count)
    return {name: np.asarray(auto[name], np.float64) * candidate.factors()[name] for name in GAINS}


def fly_candidates(
    vehicle: Vehicle,
    candidates: Sequence[GainCandidate],
    physics_rate: float = 960.0,
    seed: int = 0,
    device: str = "cpu",
    priority: Priority | None = None,
) -> CandidateResults:
    """Fly every candidate's steps and path in one batch; the vehicle's own noise and disturbances are on.

    Args:
        vehicle: What flies, and what its controller believes.
        candidates: n of them.
        physics_rate: Steps per second [Hz].
        seed: Of noise and disturbances; every candidate meets the same.
        device: "cpu" or a CUDA device.
        priority: Of allocation, where rotors saturate; None: the usual one.
    """
    config = SimulatorConfig(level="tracking", physics_rate=physics_rate, control=ControlConfig(priority=priority))
    count, rate = len(candidates), config.control_rate
    # Test t of every candidate is flight t: the same random numbers, so that candidates differ by their gains alone.
    flights = np.tile(np.arange(TESTS), count)
    simulator = Simulator(vehicle, config, count * TESTS, seed, flight_ids=flights, device=device)
    rows = [gains_of(vehicle, candidate, physics_rate) for candidate in candidates]
    for name in GAINS:
        simulator.set_parameter(f"control_{name}", np.repeat([row[name] for row in rows], TESTS, axis=0))
    simulator.reset()
    command = np.zeros((count, TESTS, 14))
    for test, (_, goal) in enumerate(STEPS):
        command[:, test, :3], command[:, test, 12] = goal[:3], goal[3]
    hover = np.array([rotor_thrust(r, float(w)) for r, w in zip(vehicle.rotors, hover_speed(vehicle), strict=True)])
    path = Path(vehicle)
    steps = round(max(STEP_TIME, path.duration) * rate)
    time, responses = np.arange(1, steps + 1) / rate, np.empty((steps, count, len(STEPS)))
    error, effort, saturated = np.zeros(count), np.zeros(count), np.zeros(count)
    for step in range(steps):
        command[:, -1] = path.command(step / rate)
        simulator.set_command(command.reshape(-1, 14))
        simulator.step()
        position = simulator.position.astype(np.float64).reshape(count, TESTS, 3)
        yaw = yaw_of(simulator.attitude.astype(np.float64)).reshape(count, TESTS)
        for test, (_, goal) in enumerate(STEPS):
            axis = int(np.flatnonzero(goal)[0])
            responses[step, :, test] = (yaw[:, test] if axis == 3 else position[:, test, axis]) / goal[axis]
        error += ((position[:, -1] - path.command((step + 1) / rate)[:3]) ** 2).sum(axis=1)
        states = simulator.rotor_speed.astype(np.float64).reshape(count, TESTS, -1)[:, -1]
        c0, c1, c2 = np.array([rotor.thrust for rotor in vehicle.rotors]).T
        thrust = c0 + c1 * states + c2 * states * np.abs(states)
        effort += ((thrust / hover - 1.0) ** 2).mean(axis=1)
        saturated += simulator.field("saturated").reshape(count, TESTS)[:, -1]
    diverged = np.asarray(simulator.diverged.reshape(count, TESTS).any(axis=1))
    bad = np.where(diverged, np.nan, 1.0)
    return CandidateResults(
        time[: round(STEP_TIME * rate)],
        responses[: round(STEP_TIME * rate)],
        np.sqrt(error / steps) * bad,
        np.sqrt(effort / steps) * bad,
        diverged,
        saturated / steps,
    )


class Path:
    """A lying figure of eight that rises and sinks, flown from rest: x = a sin s, y = a / 2 sin 2 s, z = a / 4 (1 - cos s).

    The phase s begins and ends at rest. Its size and pace ask for PATH_SPEED_SHARE of the acceleration that the vehicle has
    to spare.

    Args:
        vehicle: Who is to follow it.
    """

    def __init__(self, vehicle: Vehicle):
        from airworthy.control.gains_for import acceleration_limits

        self.size = 1.5
        spare = PATH_SPEED_SHARE * min(acceleration_limits(vehicle))
        # The largest acceleration at a pace w is about 2.2 a w^2: of x and y together, by their second derivatives.
        self.pace = math.sqrt(spare / (2.2 * self.size))
        self.ramp = math.pi / self.pace
        self.duration = 4.0 * math.pi / self.pace + self.ramp
        """Two rounds, and a ramp at either end [s]."""

    def command(self, time: float) -> Array:
        """Return the tracking command at a time [s], (14,): derivatives by central differences of the closed form."""
        h = 1e-3
        samples = np.array([self._point(time + k * h) for k in (-2, -1, 0, 1, 2)])
        velocity = (samples[3] - samples[1]) / (2.0 * h)
        acceleration = (samples[3] - 2.0 * samples[2] + samples[1]) / (h * h)
        jerk = (samples[4] - 2.0 * samples[3] + 2.0 * samples[1] - samples[0]) / (2.0 * h**3)
        return np.concatenate([samples[2], velocity, acceleration, jerk, [0.0, 0.0]])

    def _phase(self, time: float) -> float:
        """Phase [rad]: from rest to the pace over the ramp (a smoothstep of fifth order), and back to rest."""
        end = self.duration
        time = min(max(time, 0.0), end)
        if time > end / 2.0:
            return self._phase_of_start(end / 2.0) * 2.0 - self._phase_of_start(end - time)
        return self._phase_of_start(time)

    def _phase_of_start(self, time: float) -> float:
        r = min(time / self.ramp, 1.0)
        # Integral of 10 r^3 - 15 r^4 + 6 r^5, which is 1/2 at r = 1.
        ramped = self.ramp * (2.5 * r**4 - 3.0 * r**5 + r**6)
        return self.pace * (ramped + max(time - self.ramp, 0.0))

    def _point(self, time: float) -> tuple[float, float, float]:
        s, a = self._phase(time), self.size
        return a * math.sin(s), 0.5 * a * math.sin(2.0 * s), 0.25 * a * (1.0 - math.cos(s))


@dataclass(frozen=True)
class StepFigures:
    """What a step response shows; NaN where it never gets there."""

    rise: float
    """From 10 to 90 % [s]."""
    overshoot: float
    """Beyond the set-point, over the step [-]."""
    settling: float
    """Until it stays within BAND [s]."""


def step_figures(time: Array, response: Array) -> StepFigures:
    """Return rise, overshoot and settling of one response (k,), 0 before and 1 where it should end."""
    first = [np.flatnonzero(response >= level) for level in (0.1, 0.9)]
    rise = float(time[first[1][0]] - time[first[0][0]]) if all(len(f) for f in first) else math.nan
    outside = np.flatnonzero(np.abs(response - 1.0) > BAND)
    settled = 0.0 if not len(outside) else (float(time[outside[-1] + 1]) if outside[-1] + 1 < len(time) else math.nan)
    return StepFigures(rise, max(float(response.max()) - 1.0, 0.0), settled)
