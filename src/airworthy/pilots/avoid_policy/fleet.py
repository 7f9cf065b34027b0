"""What a policy of a fleet knows of its vehicle, and what its commands mean: shares of a vehicle's full thrust.

At accelerations a controller hides the vehicle: of the 36 of the fleet all follow 4 m/s^2 within 0.13 to 0.22 s. Policies of a
fleet therefore command as autopilots are commanded, by a direction of thrust and a share of the largest (a throttle): what a
share comes to is the vehicle's thrust to weight. Who is told it divides by it, who identifies it in flight by an estimate, and
who knows nothing by that of a middle vehicle; the rest is the network's.

Training and flight share this; its equations run on torch tensors and on NumPy arrays alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.vehicles import Vehicle, indicators

__all__ = [
    "CONDITIONS",
    "FEATURES",
    "HISTORY",
    "HISTORY_ROW",
    "IDENTIFIER_WIDTH",
    "MIDDLE_RATIO",
    "SHARE_MOST",
    "KnownVehicles",
    "bounded",
    "feature_rows",
    "given_by_throttle",
    "history_row",
    "identified",
    "ratio_of",
    "rough_ratio",
    "thrust_limited",
]

CONDITIONS = ("none", "told", "identified")
"""What a policy of a fleet knows: nothing, the vehicle's indicators, or what it makes of its last half second."""
FEATURES = ("thrust_to_weight", "alpha_xy", "alpha_z")
"""The navigation benchmark's descriptor of a vehicle (specification flyingtrust, section 2), told by its logarithms."""
MIDDLE_RATIO, _MIDDLE_ALPHA_XY, _MIDDLE_ALPHA_Z = 3.0, 300.0, 20.0
"""Ours: of a vehicle between the two halves of the fleet, whose features are 0 [1], [rad/s^2]."""
_ALPHA_SCALE = 0.5
"""Ours: accelerations spread over more than a decade, thrust over less than half of one."""
SHARE_MOST = 0.95
"""Ours: of the full thrust, the most that is asked for; the rest turns the vehicle."""
HISTORY, HISTORY_ROW = 8, 9
"""Decisions that are looked back at, half a second, and numbers of each: thrust asked for, change of velocity, up."""
IDENTIFIER_WIDTH = 64
"""Ours, of the hidden layer that makes features of a history."""
_GRAVITY, _LEAST_LIFT = 9.81, 3.0
_PRIOR = 0.02
"""Ours: weight of the middle vehicle in a least-squares estimate, of squares of throttles, a fifth of one of hover's."""
_RATIOS = 1.1, 10.0
"""Ours: of thrust to weight, what is taken for possible."""


def feature_rows(thrust_to_weight: ArrayLike, alpha_xy: ArrayLike, alpha_z: ArrayLike) -> Array:
    """Return what is told of n vehicles, (n, 3).

    Args:
        thrust_to_weight: (n,)
        alpha_xy: Largest roll acceleration [rad/s^2], (n,).
        alpha_z: Largest yaw acceleration [rad/s^2], (n,).

    Raises:
        AirworthyError: One is not above 0.
    """
    rows = np.stack([np.asarray(x, np.float64).reshape(-1) for x in (thrust_to_weight, alpha_xy, alpha_z)], 1)
    if not (np.isfinite(rows) & (rows > 0.0)).all():
        raise AirworthyError(
            "A vehicle's thrust to weight and accelerations are not all above 0: it cannot be told to a policy."
        )
    middle = np.array([MIDDLE_RATIO, _MIDDLE_ALPHA_XY, _MIDDLE_ALPHA_Z])
    return np.asarray(np.log(rows / middle) * np.array([1.0, _ALPHA_SCALE, _ALPHA_SCALE]))


@dataclass(frozen=True, eq=False)
class KnownVehicles:
    """What is known of n flown vehicles."""

    features: Array
    """(n, 3), see `feature_rows`."""

    @classmethod
    def of(cls, vehicles: Sequence[Vehicle]) -> KnownVehicles:
        """Return what is known of vehicles, one per flight; the same object may be there many times.

        Raises:
            AirworthyError: One cannot be told: it has no thrust, or does not turn.
        """
        known = {id(item): (indicators(item), item) for item in vehicles}
        found = [known[id(item)][0] for item in vehicles]
        return cls(
            feature_rows(
                [item.thrust_to_weight for item in found],
                [item.alpha_xy_max for item in found],
                [item.alpha_z_max for item in found],
            )
        )

    @property
    def ratio(self) -> Array:
        """Thrust to weight, (n, 1)."""
        return np.asarray(ratio_of(self.features, np))


def rough_ratio(history: Any, ops: Any) -> Any:
    """Return the logarithm (n, 1) of the thrust to weight over the middle one's that histories (n, 72) roughly show.

    By least squares: specific force over throttle, with the middle vehicle for a prior. It reckons with no lag, and so is late;
    what is learnt beside it corrects that, and need not learn a division.

    Args:
        history: Rows of `history_row`, the newest last.
        ops: The module of arrays: torch or NumPy.
    """
    top, below = _PRIOR * MIDDLE_RATIO, _PRIOR
    for k in range(0, HISTORY * HISTORY_ROW, HISTORY_ROW):
        throttle, change = history[:, k : k + 3], history[:, k + 3 : k + 6]
        top = top + ((throttle * change).sum(1) + throttle[:, 2])[:, None]
        below = below + (throttle * throttle).sum(1)[:, None]
    return ops.log(ops.clip(top / below, *_RATIOS) / MIDDLE_RATIO)


def bounded(features: Any, ops: Any) -> Any:
    """Return features (n, 3) whose thrust to weight is one that something can fly with."""
    low, high = (float(np.log(x / MIDDLE_RATIO)) for x in _RATIOS)
    return ops.concatenate([ops.clip(features[:, 0:1], low, high), features[:, 1:]], 1)


def identified(weights: Any, history: Array) -> Array:
    """Return features (n, 3) that a policy's identifier makes of histories (n, 72).

    Args:
        weights: Tensors of the policy by name.
        history: Rows of `history_row`, the newest last.
    """
    x = np.asarray(history, np.float32)
    # One row at a time in the sums, so that a flight's numbers do not depend on how many there are.
    hidden = np.tanh(np.stack([weights["identify.first.weight"] @ row for row in x]) + weights["identify.first.bias"])
    found = np.stack([weights["identify.second.weight"] @ row for row in hidden]) + weights["identify.second.bias"]
    rough = np.concatenate([rough_ratio(np.asarray(history, np.float64), np), np.zeros((len(x), 2))], 1)
    return np.asarray(bounded(rough + found, np), np.float64)


def ratio_of(features: Any, ops: Any) -> Any:
    """Return the thrust to weight (n, 1) that features (n, 3) tell.

    Args:
        features: As of `feature_rows`, or an estimate of them.
        ops: The module of arrays: torch or NumPy.
    """
    return MIDDLE_RATIO * ops.exp(features[:, 0:1])


def thrust_limited(asked: Any, most: Any, ops: Any) -> Any:
    """Return thrust per mass (n, 3) [m/s^2] for an acceleration that is asked for: height first, as `pilot.limited`.

    Args:
        asked: Net of gravity, world [m/s^2], (n, 3).
        most: Longest thrust per mass, (n, 1).
        ops: The module of arrays: torch or NumPy.
    """
    lift = ops.minimum(ops.clip(asked[:, 2:3] + _GRAVITY, _LEAST_LIFT, 1e3), most)
    across = asked[:, 0:2]
    length = ops.sqrt((across * across).sum(1, keepdims=True) + 1e-12)
    room = ops.sqrt(ops.clip(most * most - lift * lift, 1e-6, 1e6))
    return ops.concatenate([across * ops.clip(room / length, 0.0, 1.0), lift], 1)


def given_by_throttle(asked: Any, believed: Any, actual: Any, ops: Any) -> tuple[Any, Any]:
    """Return the acceleration (n, 3), net of gravity, that a vehicle gives, and the throttle vector (n, 3) it was sent.

    The throttle is the thrust that is asked for over the largest that the vehicle is believed to have; the vehicle gives that
    share of the thrust that it has.

    Args:
        asked: Net of gravity, world [m/s^2], (n, 3).
        believed: Thrust to weight that the policy reckons with, (n, 1).
        actual: The vehicle's, (n, 1).
        ops: The module of arrays: torch or NumPy.
    """
    throttle = thrust_limited(asked, SHARE_MOST * _GRAVITY * believed, ops) / (_GRAVITY * believed)
    given = throttle * (_GRAVITY * actual)
    return ops.concatenate([given[:, 0:2], given[:, 2:3] - _GRAVITY], 1), throttle


def history_row(throttle: Any, change: Any, up: Any, ops: Any) -> Any:
    """Return what is kept of a decision to identify the vehicle by, (n, 9).

    Args:
        throttle: Sent at the decision before, heading frame, (n, 3).
        change: Of velocity since then, over the time between [m/s^2], heading frame, (n, 3).
        up: Of the body now, heading frame, (n, 3).
        ops: The module of arrays: torch or NumPy.
    """
    return ops.concatenate([throttle, change * (1.0 / _GRAVITY), up], 1)
