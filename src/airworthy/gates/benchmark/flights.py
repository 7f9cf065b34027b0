"""Flights of plans in a family of dynamics: one batch, judged as it flies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.control.levels import ControlConfig
from airworthy.core.arrays import Array, ArrayF32, ArrayInt
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import from_euler
from airworthy.core.schema import check_fields
from airworthy.gates.benchmark.families import (
    PHYSICS_RATE,
    FlightFamily,
    FlightSpread,
    believed,
    drawn_vehicles,
    flown_vehicle,
    hover_integrals,
    identified_vehicles,
    mass_spread_of,
)
from airworthy.gates.task import GateJudge, GateProtocol, GateResults
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.simulation.posterior import DrawnVehicle
from airworthy.trajectories import Gate, Trajectory

# Ours: as `labels.lanes.EXTRA`, the default of spec/boundary_predictor section 14 for the end of a rollout.
HOLD = 0.5
"""Flown after the end of a trajectory [s]."""
KEPT_RATE = 25.0
"""Of what is kept for figures [Hz]."""
_CHUNK = 100


@dataclass(frozen=True)
class FlightOptions:
    """How plans are flown."""

    seed: int = 0
    """Of what flights differ by."""
    spread: FlightSpread | None = None
    """How they differ; None: as those of the family do, whose lift must leave room for it."""
    vehicle: str = ""
    """Flown in the place of the family's, a name or a file; empty: the family's own."""
    identified: bool = False
    """Whether vehicles are drawn from what an identification left open of it, in the place of `spread`'s masses."""
    command_rate: float = PHYSICS_RATE
    """Set-points per second, at most 500 [Hz]; between two of them the last is held (30 in the competition)."""
    device: str = "cpu"
    """Where it is computed."""
    threads: int | None = None
    """Most threads on a CPU."""

    def __post_init__(self) -> None:
        check_fields(self, "FlightOptions.")
        if not 1.0 <= self.command_rate <= PHYSICS_RATE:
            raise AirworthyError(f"The command rate is {self.command_rate:g} Hz; expected 1 to {PHYSICS_RATE:g}.")


@dataclass(frozen=True)
class PlanFlights:
    """What a batch of flights left; f flights, T kept samples."""

    results: GateResults
    error_mean: Array
    """Mean distance from where a flight was to where the command before had it [m]: E of eq. 7, to its end or crash; (f,)."""
    error_max: Array
    """The largest [m], (f,)."""
    t: Array
    """[s], (T,)."""
    error: Array
    """At the kept samples, NaN once a flight has ended [m], (f, T)."""
    position: ArrayF32
    """[m], (f, T, 3)."""
    mass: Array
    """That each flight drew [kg], (f,)."""
    drawn: tuple[DrawnVehicle, ...] = ()
    """What each flight drew from an identification; empty: nothing was."""


def fly(
    paths: Sequence[Trajectory],
    courses: Sequence[Sequence[Gate]],
    family: FlightFamily,
    flights: int = 1,
    options: FlightOptions | None = None,
    first_id: int = 0,
    protocol: GateProtocol | None = None,
    progress_callback: Callable[[float], None] | None = None,
    numbers: Sequence[int] | None = None,
) -> PlanFlights:
    """Fly each path a number of times, all at once.

    Args:
        paths: What is followed, from rest.
        courses: The gates of each path, all laps.
        family: Who flies.
        flights: Per path; flight k of path j is number `first_id` + j * flights + k, which fixes what it draws.
        options: How.
        first_id: Number of the first flight.
        protocol: Of the judge.
        progress_callback: Called now and then with the share that is done.
        numbers: Of the first flight of each path, instead of those from `first_id` on: a path draws the same whatever others
            fly.

    Raises:
        AirworthyError: No path, or a number that does not fit.
    """
    chosen = FlightOptions() if options is None else options
    if not paths or len(paths) != len(courses) or flights < 1:
        raise AirworthyError(f"Flights need as many courses as paths, and 1 flight or more; got {len(paths)}, {len(courses)}.")
    begins = range(first_id, first_id + len(paths) * flights, flights) if numbers is None else numbers
    ids = [begin + k for begin in begins for k in range(flights)]
    if len(ids) != len(paths) * flights:
        raise AirworthyError(f"Each of {len(paths)} paths needs a number of its own; got {len(ids) // flights}.")
    return _Batch(paths, courses, family, ids, chosen, protocol).flown(progress_callback)


class _Batch:
    """One simulator and what it is told."""

    def __init__(
        self,
        paths: Sequence[Trajectory],
        courses: Sequence[Sequence[Gate]],
        family: FlightFamily,
        ids: list[int],
        options: FlightOptions,
        protocol: GateProtocol | None,
    ):
        self.paths, self.options = list(paths), options
        self.owner = np.repeat(np.arange(len(paths)), len(ids) // len(paths))
        self.count = len(self.owner)
        nominal = flown_vehicle(family, options.vehicle)
        spread = FlightSpread(mass=mass_spread_of(family.name)) if options.spread is None else options.spread
        self.drawn: list[DrawnVehicle] = []
        if options.identified:
            self.vehicles, self.drawn = identified_vehicles(nominal, spread, options.seed, ids)
        else:
            self.vehicles = drawn_vehicles(nominal, spread, options.seed, ids)
        config = SimulatorConfig(
            dynamics=family.dynamics,
            physics_rate=PHYSICS_RATE,
            control_rate=PHYSICS_RATE,
            level=family.level,
            control=ControlConfig(mellinger_gains=family.gains, overflow=family.overflow),
        )
        self.simulator = Simulator(
            self.vehicles,
            config,
            seed=options.seed,
            flight_ids=ids,
            believed=[believed(family, nominal)] * self.count,
            device=options.device,
            threads=options.threads,
        )
        self.judge = GateJudge([courses[int(k)] for k in self.owner], protocol)
        self.end = np.array([paths[int(k)].duration + HOLD for k in self.owner])
        self.steps = int(np.ceil(float(np.max(self.end)) * PHYSICS_RATE))
        self._begin(hover_integrals(family, nominal, self.vehicles))

    def _begin(self, integrals: Array) -> None:
        """At rest on the reference, level, rotors at hover, the height's integral as hovering left it."""
        first = [path.sample(0.0) for path in self.paths]
        position = np.array([sample.position for sample in first])[self.owner]
        yaw = np.array([float(sample.yaw) for sample in first])[self.owner]
        zero = np.zeros(self.count)
        self.simulator.reset(position=position, attitude=from_euler(zero, zero, yaw))
        if "position_integral" in self.simulator.layout:
            kept = self.simulator.save()
            row = self.simulator.layout.offsets["position_integral"] + 2
            kept.state[row, : self.count] = integrals
            self.simulator.restore(kept)
        self.position = position

    def flown(self, progress_callback: Callable[[float], None] | None) -> PlanFlights:
        every = round(PHYSICS_RATE / KEPT_RATE)
        sums, most, numbers = np.zeros(self.count), np.zeros(self.count), np.zeros(self.count)
        kept_error, kept_position, kept_time = [], [], []
        before_position, before_up = self.position[None], _up(np.asarray(self.simulator.attitude))[None]
        for begin in range(0, self.steps, _CHUNK):
            steps = np.arange(begin, min(begin + _CHUNK, self.steps))
            commands = self._commands(steps)
            position, up = self._advance(commands)
            after = (steps + 1) / PHYSICS_RATE
            times = np.concatenate(([begin / PHYSICS_RATE], after))
            self.judge.watch(times, np.concatenate((before_position, position)), np.concatenate((before_up, up)))
            # The position now against the position commanded one step before.
            error = np.linalg.norm(position - commands[:, :, :3], axis=-1)
            over = np.where(self.judge.crashed, self.judge.crash_time, self.end)
            alive = after[:, None] <= over
            # One after the other: a plain sum's order, and its last bit, would depend on the batch.
            sums += np.cumsum(np.where(alive, error, 0.0), axis=0)[-1]
            most = np.maximum(most, np.max(np.where(alive, error, 0.0), axis=0))
            numbers += np.count_nonzero(alive, axis=0)
            rows = np.flatnonzero((steps + 1) % every == 0)
            kept_time.append(after[rows])
            kept_error.append(np.where(alive, error, np.nan)[rows])
            kept_position.append(position[rows].astype(np.float32))
            before_position, before_up = position[-1:], up[-1:]
            if progress_callback is not None:
                progress_callback(float(steps[-1] + 1) / self.steps)
        return PlanFlights(
            self.judge.results(),
            sums / np.maximum(numbers, 1),
            most,
            np.concatenate(kept_time),
            np.concatenate(kept_error).T,
            np.concatenate(kept_position).transpose(1, 0, 2),
            np.array([item.mass for item in self.vehicles]),
            tuple(self.drawn),
        )

    def _commands(self, steps: ArrayInt) -> Array:
        """Set-points of these steps, (k, flights, 14); a slower command rate holds each for a while."""
        rate = self.options.command_rate
        at = np.floor(steps / PHYSICS_RATE * rate + 1e-9) / rate
        rows = np.stack([_row(path, at) for path in self.paths], axis=1)
        return rows[:, self.owner]

    def _advance(self, commands: Array) -> tuple[Array, Array]:
        position, attitude = np.empty((len(commands), self.count, 3)), np.empty((len(commands), self.count, 4))
        for k, command in enumerate(commands):
            self.simulator.step(command)
            position[k], attitude[k] = self.simulator.position, self.simulator.attitude
        return position, _up(attitude)


def _row(path: Trajectory, t: Array) -> Array:
    flat = path.sample(t)
    yaw = np.stack((flat.yaw, flat.yaw_rate), axis=-1)
    return np.concatenate((flat.position, flat.velocity, flat.acceleration, flat.jerk, yaw), axis=-1)


def _up(attitude: Array) -> Array:
    """Body z axis in the world of quaternions x, y, z, w, (..., 3)."""
    x, y, z, w = np.moveaxis(attitude, -1, 0)
    return np.stack((2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)), axis=-1)
