"""How flights start: which environments, in what state, with what luck."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError
from airworthy.core.frames import from_euler, multiply, to_matrix
from airworthy.core.layout import Layout
from airworthy.core.random import Stream, Words, uniforms
from airworthy.simulation.checks import start_array
from airworthy.simulation.config import Imu, Randomization
from airworthy.vehicles import Vehicle, hover_speed

Array = NDArray[np.floating[Any]]
Ids = NDArray[np.intp]


def resolve_ids(env_ids: ArrayLike | None, env_count: int) -> Ids:
    """Environment indices from indices, a mask, or None for all.

    Raises:
        AirworthyError: If an index does not exist or a mask has another length.
    """
    if env_ids is None:
        return np.arange(env_count)
    ids = np.asarray(env_ids)
    if ids.dtype == bool:
        if ids.shape != (env_count,):
            raise AirworthyError(f"A reset mask has shape {ids.shape}; expected ({env_count},).")
        return np.flatnonzero(ids)
    if ids.size and not (np.issubdtype(ids.dtype, np.integer) and ids.min() >= 0 and ids.max() < env_count):
        raise AirworthyError(f"Reset got environment ids outside 0..{env_count - 1}.")
    return np.atleast_1d(ids).astype(np.intp)


class Starts:
    """Start states: what a reset names, and for the rest what the last one named or hover.

    Args:
        vehicles: One per environment.
        layout: State rows.
        dynamics: Name of the family, for messages.
        rotor_count: Padded number of rotors.
    """

    def __init__(self, vehicles: Sequence[Vehicle], layout: Layout, dynamics: str, rotor_count: int):
        count = len(vehicles)
        self._layout, self._dynamics = layout, dynamics
        self._hover = _hover_states(vehicles, rotor_count)
        self._rotor_count = max(item.rotor_count for item in vehicles)
        self.position, self.attitude = np.zeros((count, 3)), np.tile([0.0, 0.0, 0.0, 1.0], (count, 1))

    def build(self, ids: Ids, given: Mapping[str, ArrayLike | None]) -> dict[str, Array]:
        """State per field for some environments, each (k, width); positions and attitudes are kept for later resets.

        Raises:
            AirworthyError: If a value has the wrong shape or the dynamics have no such field.
        """
        start = {name: self._value(name, ids, value) for name, value in given.items() if self._has(name, value)}
        norm = np.linalg.norm(start["attitude"], axis=1, keepdims=True)
        if not np.all(norm > 1e-6):
            raise AirworthyError("Reset got an attitude of zero length or not a number; expected quaternions x, y, z, w.")
        start["attitude"] = start["attitude"] / norm * np.where(start["attitude"][:, 3:] < 0, -1.0, 1.0)
        self.position[ids], self.attitude[ids] = start["position"], start["attitude"]
        return start

    def _has(self, name: str, value: ArrayLike | None) -> bool:
        if name not in self._layout and value is not None:
            raise AirworthyError(f"Reset got {name}, which {self._dynamics} dynamics do not have.")
        return name in self._layout

    def _value(self, name: str, ids: Ids, value: ArrayLike | None) -> Array:
        width = self._layout.fields[name][0]
        if value is None:
            kept = {"position": self.position, "attitude": self.attitude, "rotor_speed": self._hover}
            return np.array(kept[name][ids]) if name in kept else np.zeros((len(ids), width))
        # Rotors that pad the kernel may be left out.
        asked = self._rotor_count if name == "rotor_speed" and np.shape(value)[-1:] != (width,) else width
        return start_array(name, value, len(ids), asked, width)


def scatter(start: dict[str, Array], spread: Randomization, keys: Words) -> None:
    """Move and turn start poses within the configured spread, each by its own flight key, in place."""
    if spread.position == 0.0 and spread.yaw == 0.0:
        return
    draw = 2.0 * uniforms(keys, 0, Stream.RESET, 4) - 1.0
    start["position"] = start["position"] + spread.position * draw[:, :3]
    zero = np.zeros(len(keys))
    start["attitude"] = multiply(from_euler(zero, zero, spread.yaw * draw[:, 3]), start["attitude"])


def initial_biases(imu: Imu, keys: Words) -> Array:
    """Accelerometer and gyroscope biases at the start of flights, (k, 6)."""
    draw = 2.0 * uniforms(keys, 1, Stream.RESET, 8)[:, :6] - 1.0
    return draw * np.repeat(imu.bias_initial[:2], 3)


def mounted_rotations(imu: Imu, keys: Words) -> Array:
    """Sensor-to-body matrices by rows, (k, 9): the mount turned by random Euler angles within its tolerance."""
    angles = imu.bias_initial[2] * (2.0 * uniforms(keys, 2, Stream.RESET, 4) - 1.0)
    turned = multiply(np.asarray(imu.mounting()), from_euler(angles[:, 0], angles[:, 1], angles[:, 2]))
    return to_matrix(turned).reshape(len(keys), 9)


def _hover_states(vehicles: Sequence[Vehicle], padded: int) -> Array:
    """Rotor states at hover per environment, (env, padded); the lower limits for a vehicle that cannot hover."""
    known: dict[Vehicle, Array] = {}
    for item in vehicles:
        if item not in known:
            states = np.zeros(padded)
            try:
                states[: item.rotor_count] = hover_speed(item)
            except AirworthyError:
                states[: item.rotor_count] = [r.speed_min for r in item.rotors]
            known[item] = states
    if len(known) == 1:
        return np.broadcast_to(next(iter(known.values())), (len(vehicles), padded))
    return np.stack([known[item] for item in vehicles])
