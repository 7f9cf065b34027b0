"""The expert: tracks a path by model predictive control, with the true state and each drone's true parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.control.effectors import thrust_limits
from airworthy.control.mpc import MpcConfig, MpcSolver
from airworthy.core.errors import AirworthyError
from airworthy.pilots.expert_reference import SEARCH, ExpertReference
from airworthy.pilots.pilot import Observation
from airworthy.simulation.simulator import Simulator
from airworthy.vehicles import Vehicle

__all__ = ["ExpertPilot", "expert_for", "full_thrust", "full_thrust_of"]

Array = NDArray[np.float64]
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
        path: (env,) which path each flies, or one; its clock begins with the flight, at `offset`.
        offset: (env,) or one: where on its path each flight begins [s].
        config: Of the MPC.
        gravity: (env,) or one [m/s^2].
        search: How far from the clock a vehicle is looked for on its path [s].
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
        self.reference, self._search = reference, search
        self._path = np.broadcast_to(np.asarray(path, np.int64), count)
        self._offset = np.broadcast_to(np.asarray(offset, float), count)
        self._gravity = np.broadcast_to(np.asarray(gravity, float), count)
        self.solver = MpcSolver(count, reference.table, self.config, device)
        self._tick = np.full(count, -1, np.int64)
        self._command = np.zeros((count, 4))
        self.failures = np.zeros(count, np.int64)
        """(env,) ticks at which no solution was found, since the flight began."""
        self.iterations = np.zeros(count, np.int64)
        """(env,) of the last tick."""

    def command(self, observation: Observation) -> Array:
        """Collective thrust [N] and body rates [rad/s], (env, 4)."""
        tick = np.floor(observation.time * self.config.rate + _EARLY).astype(np.int64)
        new = tick != self._tick
        if new.any():
            self._begin(np.flatnonzero(new & (tick < np.maximum(self._tick, 1))))
            state = np.concatenate([observation[name] for name in self.observes], axis=1).astype(np.float64)
            self._solve(state, observation.time + self._offset, new)
            self._tick = tick
        return self._command.copy()

    def _begin(self, ids: NDArray[np.intp]) -> None:
        """New flights: nothing of the last ones counts."""
        self.solver.reset(ids)
        self.failures[ids] = 0
        self._command[ids] = 0.0
        self._command[ids, 0] = (self._mass * self._gravity * self._believed / self._full)[ids]

    def _solve(self, state: Array, time: Array, new: NDArray[np.bool_]) -> None:
        usable = np.where(np.isfinite(state), state, 0.0)
        row = self.reference.nearest(usable, time, self._path, self._search)
        found = self.solver.solve(state, self._full / self._mass, row, self.reference.last[self._path], self._gravity, new)
        first = found.inputs[:, 0].astype(np.float64)
        good = new & ~found.failed
        self._command[good] = np.concatenate([self._believed[:, None] * first[:, :1], first[:, 1:]], axis=1)[good]
        self.failures[new & found.failed] += 1
        self.iterations[new] = found.iterations[new]
        self.solver.shift(new)


def full_thrust(simulator: Simulator) -> Array:
    """(env,) thrust of all rotors at full command [N], with the parameters in force."""
    if simulator.config.dynamics == "semi_kinematic":
        return np.array(simulator.parameter("thrust_limit"), float)
    count = simulator.env_count
    a, b, c = np.moveaxis(simulator.parameter("rotor_thrust").reshape(count, -1, 3), -1, 0)
    top, up = simulator.parameter("rotor_max"), simulator.parameter("rotor_axis").reshape(count, -1, 3)[..., 2]
    return np.asarray(((a + b * top + c * top**2) * up).sum(axis=1))


def believed_thrust(simulator: Simulator) -> Array:
    """(env,) the same of the records that controllers know; where there is no controller, what is in force."""
    if simulator.config.dynamics == "semi_kinematic":
        return full_thrust(simulator)
    return np.array([full_thrust_of(v) for v in simulator.vehicles])


def full_thrust_of(vehicle: Vehicle) -> float:
    """Thrust of all rotors of a record at full command, along body z [N]."""
    return float((thrust_limits(vehicle)[1] * [rotor.axis[2] for rotor in vehicle.rotors]).sum())


def expert_for(simulator: Simulator, reference: ExpertReference, **options: Any) -> ExpertPilot:
    """The expert of a simulator's drones as they are now: make it after parameters were drawn.

    Args:
        simulator: Whose parameters count.
        reference: Paths.
        options: Further arguments of `ExpertPilot`.
    """
    given = {"gravity": simulator.parameter("gravity"), "believed": believed_thrust(simulator), **options}
    return ExpertPilot(reference, full_thrust(simulator), simulator.parameter("mass"), **given)
