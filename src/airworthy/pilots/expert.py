"""The expert: tracks a path by model predictive control, with the true state and each drone's true parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from airworthy.control.mpc import MpcConfig, MpcReference, MpcSolver
from airworthy.core.arrays import Array, ArrayBool, ArrayIndex, ArrayInt, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.pilots.pilot import Observation
from airworthy.pilots.trackers import HoverFrame
from airworthy.simulation.simulator import Simulator
from airworthy.trajectories import Course, Trajectory, kinematic_state, minimum_snap
from airworthy.vehicles import Vehicle
from airworthy.vehicles.trim import thrust_limits

__all__ = ["ExpertPilot", "ExpertReference", "expert_for", "expert_reference", "full_thrust", "full_thrust_of", "held"]

# -----------------------------------------------------------------------------------------------------------------------------
# Paths as the expert's MPC reads them: rows at its rate, one path behind the other, and where a vehicle is on them.

SEARCH = 0.2
"""How far from the clock a vehicle is looked for on its path [s]: hz / 5 samples (StanfordMSL/FiGS, vehicle_rate_mpc.py)."""
NEAREST = 0.05
"""Weight of every squared component of the difference by which the nearest sample is found; it cancels, and is kept as said."""
# Position, velocity, acceleration, jerk: what a keyframe's end holds; snap is free, as it is what the plan minimises.
_HELD_ORDERS = 4


def held(course: Course, seconds: float) -> Trajectory:
    """Return a keyframe course with its end held: a keyframe equal to the last one, at rest, `seconds` after it, and planned
    anew.

    Other courses are taken as they are; where they end, the MPC repeats their last row.
    """
    if course.kind != "keyframes":
        return course.trajectory()
    last = course.keyframes[-1]
    axes = {axis: _first(getattr(last, axis)) for axis in ("x", "y", "z", "yaw")}
    end = replace(last, time=last.time + seconds, name="", **axes)
    return minimum_snap((*course.keyframes, end), course.coefficient_count)


def _first(values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Value and the first three derivatives, as far as they are given."""
    return tuple(values[:_HELD_ORDERS])


@dataclass(frozen=True, eq=False)
class ExpertReference:
    """Paths of one rate in one table."""

    table: MpcReference
    first: ArrayInt
    """(paths,) row at which each begins."""
    last: ArrayInt
    """(paths,) row at which each ends."""
    rate: float
    """Rows per second [Hz]."""

    def nearest(
        self, state: Array, time: Array, path: ArrayInt, search: float = SEARCH, expected: ArrayInt | None = None
    ) -> ArrayInt:
        """Return the row (n,) of each vehicle's path that is nearest to it in all ten components, near the clock; the earliest
        of equals.

        Args:
            state: (n, 10) position, velocity, quaternion.
            time: (n,) since the path's beginning [s].
            path: (n,) which path.
            search: Before and after the clock [s].
            expected: (n,) row around which is looked instead of the clock's, where it is not negative.
        """
        # A tolerance far below a row, so that 0.2 s at 20 Hz is four rows although the product is not exact.
        reach = int(np.floor(search * self.rate + 1e-9))
        clock = self.first[path] + np.rint(time * self.rate).astype(np.int64)
        if expected is not None:
            clock = np.where(expected < 0, clock, expected)
        rows = np.clip(clock[:, None] + np.arange(-reach, reach + 1), self.first[path][:, None], self.last[path][:, None])
        wanted = self.table.states[rows]
        # q and -q are one attitude: the row's sign is turned to the vehicle's before components are compared.
        sign = np.where((wanted[..., 6:] * state[:, None, 6:]).sum(-1, keepdims=True) < 0.0, -1.0, 1.0)
        off = np.concatenate([wanted[..., :6], sign * wanted[..., 6:]], axis=-1) - state[:, None]
        return np.asarray(np.take_along_axis(rows, (NEAREST * off**2).sum(-1).argmin(1)[:, None], axis=1)[:, 0])


def expert_reference(
    paths: Trajectory | Course | Sequence[Trajectory | Course], config: MpcConfig | None = None, gravity: float = 9.81
) -> ExpertReference:
    """Sample paths for the MPC; courses with their end held for a horizon.

    Args:
        paths: One or several.
        config: Its rate and horizon count.
        gravity: [m/s^2]

    Raises:
        AirworthyError: There is no path.
    """
    config = config or MpcConfig()
    several = [paths] if isinstance(paths, Trajectory | Course) else list(paths)
    if not several:
        raise AirworthyError("An expert needs at least one path to follow.")
    parts, first = [], [0]
    for path in several:
        trajectory = held(path, config.horizon / config.rate) if isinstance(path, Course) else path
        parts.append(_rows(trajectory, config.rate, gravity))
        first.append(first[-1] + len(parts[-1]))
    rows = np.concatenate(parts)
    table = MpcReference(rows[:, :10], rows[:, 10], rows[:, 11:])
    return ExpertReference(table, np.array(first[:-1]), np.array(first[1:]) - 1, config.rate)


def _rows(path: Trajectory, rate: float, gravity: float) -> Array:
    """(rows, 14) of one path."""
    # Up to the last row inside the path: rounding of duration x rate must not lose it.
    times: ArrayLike = np.arange(int(np.floor(path.duration * rate + 1e-6)) + 1) / rate
    sample = path.sample(times)
    state = kinematic_state(sample, gravity)
    parts = (sample.position, sample.velocity, state.attitude, state.thrust[:, None], state.body_rate)
    return np.concatenate(parts, axis=1)


# -----------------------------------------------------------------------------------------------------------------------------

# Ours: the clock is a sum of physics steps, and rounds; a tick missed by rounding would come a whole period late.
_EARLY = 1e-3
"""Of a period: by as much the clock of a tick may be early."""


class ExpertPilot:
    """Solves a tracking problem per environment at the MPC's rate and holds the command in between.

    A problem that cannot be solved keeps the command of before and is counted in `failures`.

    Args:
        reference: Paths.
        full: (env,) thrust of all rotors at full command, as it is [N].
        mass: (env,) [kg].
        believed: (env,) the same thrust as the vehicle's own allocation believes it to be [N], in which the command is given;
            None: as it is.
        frame: Of vehicles that hover leaning: attitude and commands are of the frame that is level then, and so is `full`.
        path: (env,) which path each flies, or one; its clock begins with the flight, at `offset`.
        offset: (env,) or one: where on its path each flight begins [s].
        config: Of the MPC.
        gravity: (env,) or one [m/s^2].
        search: How far from the clock a vehicle is looked for on its path [s].
        by_progress: A vehicle is looked for as far from where it was found last, and not from the clock: whoever is late
            flies on from where it is, however late that is, and is never sent across to where it ought to be.
        device: Of the MPC.

    Raises:
        AirworthyError: Shapes do not fit, or a drone has no mass or thrust.
    """

    name = "mpc"
    level = "rate_thrust"
    observes = ("position", "velocity", "attitude")

    def __init__(
        self,
        reference: ExpertReference,
        full: ArrayLike,
        mass: ArrayLike,
        path: ArrayLike = 0,
        offset: ArrayLike = 0.0,
        config: MpcConfig | None = None,
        gravity: ArrayLike = 9.81,
        search: float = SEARCH,
        device: str = "cpu",
        believed: ArrayLike | None = None,
        frame: HoverFrame | None = None,
        by_progress: bool = False,
    ):
        self._full, self._mass = np.atleast_1d(np.asarray(full, float)), np.atleast_1d(np.asarray(mass, float))
        count = len(self._full)
        if self._full.shape != self._mass.shape or not (self._full > 0.0).all() or not (self._mass > 0.0).all():
            raise AirworthyError(
                f"The expert got thrusts of shape {self._full.shape} and masses of shape {self._mass.shape};"
                " expected as many of each, all above 0."
            )
        self.config = config or MpcConfig()
        if abs(reference.rate - self.config.rate) > 1e-9:
            raise AirworthyError(
                f"The expert's paths have {reference.rate:g} rows a second; its MPC runs at {self.config.rate:g} Hz."
            )
        self._believed = self._full if believed is None else np.broadcast_to(np.asarray(believed, float), self._full.shape)
        self.reference, self._search, self._frame = reference, search, frame
        self._path = np.broadcast_to(np.asarray(path, np.int64), count)
        self._offset = np.broadcast_to(np.asarray(offset, float), count)
        self._gravity = np.broadcast_to(np.asarray(gravity, float), count)
        self.solver = MpcSolver(count, reference.table, self.config, device)
        self._tick = np.full(count, -1, np.int64)
        self._found = np.full(count, -1, np.int64) if by_progress else None
        self._command = np.zeros((count, 4))
        self.failures = np.zeros(count, np.int64)
        """(env,) ticks at which no solution was found, since the flight began."""
        self.cut_off = np.zeros(count, np.int64)
        """(env,) ticks at which the solver used up its iterations before it settled, since the flight began: flown, since they
        are near the optimum, but no example to learn from."""
        self.iterations = np.zeros(count, np.int64)
        """(env,) of the last tick."""

    def weigh(self, mass: ArrayLike) -> None:
        """Know from now on of other masses, (env,) or one [kg].

        Raises:
            AirworthyError: There are not as many, or one is not above 0.
        """
        known = np.asarray(mass, float)
        if known.shape not in ((), self._mass.shape) or not (known > 0.0).all():
            raise AirworthyError(
                f"The expert of {len(self._mass)} vehicles got masses of shape {known.shape}, the least {np.min(known):g};"
                f" expected {self._mass.shape}, all above 0."
            )
        self._mass = np.broadcast_to(known, self._mass.shape)

    def command(self, observation: Observation) -> Array:
        """Return collective thrust [N] and body rates [rad/s], (env, 4)."""
        tick = np.floor(observation.time * self.config.rate + _EARLY).astype(np.int64)
        new = tick != self._tick
        if new.any():
            self._begin(np.flatnonzero(new & (tick < np.maximum(self._tick, 1))))
            state = np.concatenate([observation[name] for name in self.observes], axis=1).astype(np.float64)
            if self._frame is not None:
                state[:, 6:] = self._frame.attitude(state[:, 6:])
            self._solve(state, observation.time + self._offset, new)
            self._tick = tick
        return self._command.copy() if self._frame is None else self._frame.to_body(self._command)

    def _begin(self, ids: ArrayIndex) -> None:
        """Begin new flights: nothing of the last ones counts."""
        self.solver.reset(ids)
        self.failures[ids] = self.cut_off[ids] = 0
        self._command[ids] = 0.0
        if self._found is not None:
            self._found[ids] = -1
        # Hover, in the thrust that the vehicle's own allocation believes in, until the first problem is solved.
        self._command[ids, 0] = (self._mass * self._gravity * self._believed / self._full)[ids]

    def _solve(self, state: Array, time: Array, new: ArrayBool) -> None:
        # A diverged flight still looks a row up; its own problem fails in the solver and nobody else's does.
        usable = np.where(np.isfinite(state), state, 0.0)
        expected = None if self._found is None else np.where(self._found < 0, -1, self._found + 1)
        row = self.reference.nearest(usable, time, self._path, self._search, expected)
        if self._found is not None:
            self._found = np.where(new, row, self._found)
        found = self.solver.solve(state, self._full / self._mass, row, self.reference.last[self._path], self._gravity, new)
        first = found.inputs[:, 0].astype(np.float64)
        # A failed problem keeps the last command: the rest of the old plan is better than any made-up one.
        good = new & ~found.failed
        self._command[good] = np.concatenate([self._believed[:, None] * first[:, :1], first[:, 1:]], axis=1)[good]
        self.failures[new & found.failed] += 1
        self.cut_off[new & found.cut_off] += 1
        self.iterations[new] = found.iterations[new]
        self.solver.shift(new)


def full_thrust(simulator: Simulator) -> Array:
    """Return (env,) thrust of all rotors at full command [N], with the parameters in force."""
    if simulator.config.dynamics == "semi_kinematic":
        return np.array(simulator.parameter("thrust_limit"), float)
    if simulator.config.dynamics == "articulated":
        # As flights start, at which its rotors' axes are; the allocation follows them later.
        return np.array([full_thrust_of(item) for item in simulator.held])
    count = simulator.env_count
    a, b, c = np.moveaxis(simulator.parameter("rotor_thrust").reshape(count, -1, 3), -1, 0)
    # Only the part along body z counts: that is the direction in which the MPC's thrust acts.
    top, up = simulator.parameter("rotor_max"), simulator.parameter("rotor_axis").reshape(count, -1, 3)[..., 2]
    return np.asarray(((a + b * top + c * top**2) * up).sum(axis=1))


def believed_thrust(simulator: Simulator) -> Array:
    """Return (env,) the same of the records that controllers know; where there is no controller, what is in force."""
    if simulator.config.dynamics == "semi_kinematic":
        return full_thrust(simulator)
    return np.array([full_thrust_of(v) for v in simulator.held])


def full_thrust_of(vehicle: Vehicle) -> float:
    """Return thrust of all rotors of a record at full command, along body z [N]."""
    return float((thrust_limits(vehicle)[1] * [rotor.axis[2] for rotor in vehicle.rotors]).sum())


def expert_for(simulator: Simulator, reference: ExpertReference, **options: Any) -> ExpertPilot:
    """Return the expert of a simulator's drones as they are now: make it after parameters were drawn.

    Args:
        simulator: Whose parameters count.
        reference: Paths.
        options: Further arguments of `ExpertPilot`.
    """
    gravity = np.array([item.gravity for item in simulator.vehicles])
    if simulator.config.dynamics != "articulated":
        gravity = np.asarray(simulator.parameter("gravity"))
    given = {"gravity": gravity, "believed": believed_thrust(simulator), **options}
    full = full_thrust(simulator)
    frame = None if simulator.config.dynamics == "semi_kinematic" else HoverFrame(simulator.held)
    if frame is not None and frame.leans:
        # Rotors tilted alike push along `up` with more than their part along body z.
        given |= {"frame": frame, "believed": given["believed"] / frame.up[:, 2]}
        full = full / frame.up[:, 2]
    return ExpertPilot(reference, full, simulator.mass, **given)
