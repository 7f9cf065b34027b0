"""What the tracking MPC minimises and how long it iterates."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError, unknown_name

__all__ = ["INPUT_SIZE", "MPC_PRESETS", "STATE_SIZE", "MpcConfig", "mpc_preset"]

STATE_SIZE = 10
"""Position (3), velocity (3), quaternion (4)."""
INPUT_SIZE = 4
"""Thrust command in [0, 1], body rates (3)."""
HORIZON_MAX = 400


@dataclass(frozen=True)
class MpcConfig:
    """The problem of SOUS VIDE eq. 2: weights are those of plain squares, without a factor 1/2.

    sum_k (dx_k' Q dx_k + du_k' R du_k) + dx_N' Q_N dx_N, dx the difference to the reference, of quaternions component by
    component.

    Raises:
        AirworthyError: If a number is out of range.
    """

    horizon: int = 40
    """Steps N."""
    rate: float = 20.0
    """Steps per second [Hz]."""
    position: float = 0.5
    """Of each axis [1/m^2], and so the others."""
    velocity: float = 0.05
    attitude: float = 0.05
    """Of each quaternion component."""
    thrust: float = 1.0
    """Of the thrust command, 1 being all rotors at full command."""
    rates: tuple[float, float, float] = (0.1, 0.1, 0.01)
    """Of the body rates [s^2/rad^2]."""
    terminal: float = 0.05
    """Of every state component at the horizon's end."""
    rate_max: float = 5.0
    """Bound of each body rate [rad/s]; the thrust command is bound to [0, 1]."""
    iterations: int = 20
    """At most, per call."""
    tolerance: float = 1e-6
    """Ends where an iteration lowers the cost by less than this share of it."""

    def __post_init__(self) -> None:
        numbers = [v for f in fields(self) for v in np.atleast_1d(getattr(self, f.name)).tolist()]
        if not all(isfinite(v) and v >= 0.0 for v in numbers):
            raise AirworthyError(f"The MPC cannot run with {self}; expected finite numbers of 0 or more.")
        if not (1 <= self.horizon <= HORIZON_MAX and self.iterations >= 1 and self.rate > 0.0 and self.rate_max > 0.0):
            raise AirworthyError(
                f"The MPC got horizon {self.horizon}, {self.iterations} iterations, rate {self.rate} Hz and rate_max"
                f" {self.rate_max}; expected 1 to {HORIZON_MAX} steps, an iteration or more, and positive rates."
            )
        if not (self.thrust > 0.0 and min(self.rates) > 0.0):
            raise AirworthyError("The MPC's weights of thrust and rates must be above 0: the inputs would not be determined.")

    @property
    def state_weights(self) -> NDArray[np.float64]:
        """Diagonal of Q, (10,)."""
        return np.repeat([self.position, self.velocity, self.attitude], [3, 3, 4])

    @property
    def input_weights(self) -> NDArray[np.float64]:
        """Diagonal of R, (4,)."""
        return np.array([self.thrust, *self.rates])

    @property
    def terminal_weights(self) -> NDArray[np.float64]:
        """Diagonal of Q_N, (10,)."""
        return np.full(STATE_SIZE, self.terminal)

    @property
    def lower(self) -> NDArray[np.float64]:
        """Least input, (4,)."""
        return np.array([0.0, -self.rate_max, -self.rate_max, -self.rate_max])

    @property
    def upper(self) -> NDArray[np.float64]:
        """Largest input, (4,)."""
        return np.array([1.0, self.rate_max, self.rate_max, self.rate_max])


# StanfordMSL/SousVide at 7cd1a50, configs/policy/vrmpc_fr.json and vrmpc_br.json.
MPC_PRESETS = {
    "flightroom": MpcConfig(),
    "backroom": MpcConfig(velocity=0.1, attitude=0.2),
}
"""Weights that are published; data synthesis uses "flightroom"."""


def mpc_preset(name: str) -> MpcConfig:
    """Published weights by name.

    Raises:
        UnknownNameError: If there are none of this name.
    """
    if name not in MPC_PRESETS:
        raise unknown_name("MPC preset", name, MPC_PRESETS)
    return MPC_PRESETS[name]
