"""The readable twin of the semi-kinematic step, on NumPy float64 arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.control.kernel import control_layout
from airworthy.control.laws import extrapolated, tracking_rates
from airworthy.core.random import Stream, flight_key, normals
from airworthy.dynamics import semi_kinematic as sk
from airworthy.dynamics.equations import normalize
from airworthy.dynamics.parameters import padded_rotor_count
from airworthy.dynamics.state import COMMAND_ROWS, Effects
from airworthy.simulation.simulator import Simulator

Array = NDArray[np.float64]


class SemiKinematicTwin:
    """A float64 copy of a semi-kinematic simulator's present, advanced by NumPy.

    Args:
        simulator: Where parameters, state and keys are taken from, at this instant.
    """

    def __init__(self, simulator: Simulator):
        rotor_count = padded_rotor_count(simulator.rotor_count)
        split = sk.semi_kinematic_layout().size
        self.p = sk.semi_kinematic_layout().record(lambda row: simulator.rows[row])
        self.c = control_layout(rotor_count).record(lambda row: simulator.rows[split + row])
        self.dt, self.level = 1.0 / simulator.config.physics_rate, simulator.config.level
        self.noisy = Effects.WRENCH_NOISE in simulator.effects
        self.key = flight_key(simulator.seed, simulator.flight_ids, simulator.episode)
        self.clock = simulator.flight_step.astype(np.int64)
        self.force = np.zeros((3, simulator.env_count))
        self.state: dict[str, Any] = {
            name: np.array(simulator.field(name), float).T.copy()
            for name in ("position", "velocity", "attitude", "rate", "thrust")
        }

    def field(self, name: str) -> Array:
        """State, shape (env, k) or (env,)."""
        return np.asarray(self.state[name]).T

    def advance(self, steps: int, command: ArrayLike) -> None:
        """Advance by physics steps under one command, shape (env, width) or (width,)."""
        array = np.atleast_2d(np.asarray(command, float))
        wanted = np.zeros((COMMAND_ROWS, len(self.clock)))
        wanted[: array.shape[1]] = np.broadcast_to(array, (len(self.clock), array.shape[1])).T
        for step in range(steps):
            self._step(tuple(wanted), step * self.dt)

    def _step(self, wanted: tuple[Any, ...], elapsed: float) -> None:
        s = self.state
        if self.level == "tracking":
            body = (tuple(s["position"]), tuple(s["velocity"]), tuple(s["attitude"]), tuple(s["rate"]))
            asked = tracking_rates(*body, extrapolated(wanted, elapsed), self.c)
        else:
            asked = wanted[:4]
        thrust, *rate = sk.limited_input(asked[0], asked[1:4], self.p)
        y = np.concatenate([s["position"], s["velocity"], s["attitude"]])
        y = self._rk4(y, thrust, tuple(rate))
        if self.noisy:
            y = y + np.array(self.p.noise) * normals(self.key, self.clock, Stream.SENSOR_AND_WRENCH, 12).T[:10]
        s["position"], s["velocity"] = y[:3], y[3:6]
        s["attitude"] = np.array(normalize(tuple(y[6:])))
        s["rate"], s["thrust"] = np.array(np.broadcast_arrays(*rate)), thrust
        self.clock = self.clock + 1

    def _rk4(self, y: Array, thrust: Any, rate: tuple[Any, ...]) -> Array:
        def slope(z: Array) -> Array:
            dv, dq = sk.derivative(tuple(z[3:6]), tuple(z[6:]), thrust, rate, tuple(self.force), self.p)
            return np.concatenate([z[3:6], np.array(dv), np.array(dq)])

        k1 = slope(y)
        k2 = slope(y + 0.5 * self.dt * k1)
        k3 = slope(y + 0.5 * self.dt * k2)
        k4 = slope(y + self.dt * k3)
        return np.asarray(y + self.dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4))
