"""A motor policy's network: small layers on NumPy, the same bits alone and in any batch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from airworthy.core.arrays import Array, ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import to_matrix
from airworthy.pilots.motor_policy.contract import INPUTS, OBSERVED, MotorContract, read_motor_folder

__all__ = ["MotorPolicy", "motor_observation", "read_motor_policy"]

_SCALES = tuple(port[4] for port in INPUTS)


@dataclass(frozen=True)
class MotorPolicy:
    """A contract and the network that it describes."""

    contract: MotorContract
    weights: tuple[ArrayF32, ...]
    """Weight (rows, columns) and bias (rows,) of each layer, first to last."""

    def action(self, observed: ArrayLike) -> ArrayF32:
        """Return actions within -1 to 1, (env, rotors), float32.

        Args:
            observed: (env, `MotorContract.observed`): of `motor_observation`, then past actions, the newest first.

        Raises:
            AirworthyError: It has another shape.
        """
        x = np.asarray(observed, np.float32)
        if x.ndim != 2 or x.shape[1] != self.contract.observed:
            raise AirworthyError(f"A policy got observations of shape {x.shape}; expected (env, {self.contract.observed}).")
        x = np.ascontiguousarray(x.T)
        for w, b in zip(self.weights[::2], self.weights[1::2], strict=True):
            # Column by column instead of as a matrix product, whose order of sums depends on the size of the batch; and in
            # the order of the exported C, so that both round alike.
            total = np.repeat(b[:, None], x.shape[1], axis=1)
            for column, row in zip(w.T, x, strict=True):
                total += column[:, None] * row
            x = np.tanh(total)
        return np.ascontiguousarray(x.T)

    def command(self, action: ArrayLike) -> Array:
        """Rotor states [unit of the contract] that actions (env, rotors) command."""
        low, high = np.array(self.contract.limits).T
        return 0.5 * (low + high) + 0.5 * (high - low) * np.asarray(action, float)


def motor_observation(
    position_error: ArrayLike, velocity_error: ArrayLike, attitude: ArrayLike, rate: ArrayLike, yaw: ArrayLike
) -> Array:
    """Return what a policy sees before its past actions, (env, `OBSERVED`).

    Args:
        position_error: Position minus the target's, world [m], (env, 3).
        velocity_error: Velocity minus the target's, world [m/s], (env, 3).
        attitude: Quaternions x, y, z, w, body to world, (env, 4).
        rate: Body rate, body frame [rad/s], (env, 3).
        yaw: Heading of the target, from world x [rad], (env,).
    """
    c, s = np.cos(yaw), np.sin(yaw)
    # World to target: a turn by minus the heading about z.
    p, v = (_turned(np.asarray(x, float), c, s) for x in (position_error, velocity_error))
    columns = np.swapaxes(to_matrix(attitude), -1, -2)
    axes = [_turned(columns[:, k], c, s) for k in range(3)]
    parts = (p, v, np.concatenate(axes, axis=1), np.asarray(rate, float))
    seen = np.concatenate([scale * part for scale, part in zip(_SCALES, parts, strict=True)], axis=1)
    assert seen.shape[1] == OBSERVED
    return seen


def _turned(x: Array, c: Array, s: Array) -> Array:
    return np.stack([c * x[:, 0] + s * x[:, 1], c * x[:, 1] - s * x[:, 0], x[:, 2]], axis=1)


def read_motor_policy(folder: str | Path) -> MotorPolicy:
    """Return the policy of a folder that `airworthy train hover` wrote.

    Raises:
        AssetError: A file is missing, too large, damaged, of another kind, or not the one that the contract names.
    """
    contract, weights = read_motor_folder(folder)
    return MotorPolicy(contract, tuple(weights))
