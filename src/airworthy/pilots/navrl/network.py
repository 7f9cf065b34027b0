"""The network of NavRL in NumPy: scan, goal and moving obstacles to a velocity in the goal's frame.

Source: specification of the planners, section 7.2, and the notes beside the published weights. Every product is of one flight's
rows, so the numbers of a flight do not depend on how many others there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError

__all__ = ["SHAPES", "Network", "Output"]

Array = NDArray[np.float64]

RAYS, BEAMS, OBSTACLES, OBSTACLE_SIZE, STATE_SIZE = 36, 4, 5, 10, 8
SPEED = 2.0
"""Largest velocity per axis [m/s]."""
_SLOPE, _EPSILON, _LEAST = 0.01, 1e-5, 1e-6
_SCAN, _MOVING, _JOINT, _HEAD = (
    "feature_extractor.module.0.module.",
    "feature_extractor.module.1.module.1.",
    "feature_extractor.module.3.module.",
    "actor.module.0.module.",
)
SHAPES: dict[str, tuple[int, ...]] = {
    f"{_SCAN}0.weight": (4, 1, 5, 3),
    f"{_SCAN}0.bias": (4,),
    f"{_SCAN}2.weight": (16, 4, 5, 3),
    f"{_SCAN}2.bias": (16,),
    f"{_SCAN}4.weight": (16, 16, 5, 3),
    f"{_SCAN}4.bias": (16,),
    f"{_SCAN}7.weight": (128, 288),
    f"{_SCAN}7.bias": (128,),
    f"{_SCAN}8.weight": (128,),
    f"{_SCAN}8.bias": (128,),
    f"{_MOVING}0.weight": (128, 50),
    f"{_MOVING}0.bias": (128,),
    f"{_MOVING}2.weight": (128,),
    f"{_MOVING}2.bias": (128,),
    f"{_MOVING}3.weight": (64, 128),
    f"{_MOVING}3.bias": (64,),
    f"{_MOVING}5.weight": (64,),
    f"{_MOVING}5.bias": (64,),
    f"{_JOINT}0.weight": (256, 200),
    f"{_JOINT}0.bias": (256,),
    f"{_JOINT}2.weight": (256,),
    f"{_JOINT}2.bias": (256,),
    f"{_JOINT}3.weight": (256, 256),
    f"{_JOINT}3.bias": (256,),
    f"{_JOINT}5.weight": (256,),
    f"{_JOINT}5.bias": (256,),
    f"{_HEAD}alpha_layer.weight": (3, 256),
    f"{_HEAD}alpha_layer.bias": (3,),
    f"{_HEAD}beta_layer.weight": (3, 256),
    f"{_HEAD}beta_layer.bias": (3,),
    "critic.module.weight": (1, 256),
    "critic.module.bias": (1,),
}
"""Tensors of the network by the names of the published checkpoint; those of its training alone are left out."""


@dataclass(frozen=True, eq=False)
class Output:
    """Of n flights."""

    velocity: Array
    """Mean action in the goal's frame [m/s], (n, 3), within +-SPEED."""
    value: Array
    """The critic's, normalised, (n,)."""


class Network:
    """The policy and its critic.

    Args:
        weights: Arrays by name; see `SHAPES`.

    Raises:
        AirworthyError: If one is missing, of another shape, or not finite.
    """

    def __init__(self, weights: Mapping[str, NDArray[Any]]):
        for name, shape in SHAPES.items():
            found = np.shape(weights[name]) if name in weights else None
            if found != shape or not np.isfinite(weights[name]).all():
                raise AirworthyError(f"The NavRL weights have {name!r} of shape {found}; expected {shape}, all finite.")
        self._w = {name: np.asarray(weights[name], np.float64) for name in SHAPES}

    def forward(self, state: Array, scan: Array, moving: Array | None = None) -> Output:
        """Velocity and value.

        Args:
            state: (n, 8): unit vector to the goal, horizontal distance, vertical offset, velocity; in the goal's frame.
            scan: (n, 36, 4): 4 m minus the distance, rays counter-clockwise from the goal's direction, elevations rising.
            moving: (n, 5, 10) nearest moving obstacles, zeros where there are fewer; None: none.
        """
        count = len(state)
        x = _elu(self._conv(scan[:, None], f"{_SCAN}0", (1, 1), (2, 1)))
        x = _elu(self._conv(x, f"{_SCAN}2", (2, 1), (2, 1)))
        x = _elu(self._conv(x, f"{_SCAN}4", (2, 2), (2, 1)))
        seen = self._norm(self._linear(x.reshape(count, -1), f"{_SCAN}7"), f"{_SCAN}8")
        others = np.zeros((count, OBSTACLES * OBSTACLE_SIZE)) if moving is None else moving.reshape(count, -1)
        met = self._block(self._block(others, f"{_MOVING}0", f"{_MOVING}2"), f"{_MOVING}3", f"{_MOVING}5")
        x = np.concatenate([seen, np.asarray(state, float), met], axis=1)
        x = self._block(self._block(x, f"{_JOINT}0", f"{_JOINT}2"), f"{_JOINT}3", f"{_JOINT}5")
        alpha, beta = (1.0 + _softplus(self._linear(x, f"{_HEAD}{name}_layer")) + _LEAST for name in ("alpha", "beta"))
        return Output(2.0 * SPEED * alpha / (alpha + beta) - SPEED, self._linear(x, "critic.module")[:, 0])

    def _linear(self, x: Array, name: str) -> Array:
        # (n, 1, in) times (in, out): one product per flight.
        return np.matmul(x[:, None, :], self._w[f"{name}.weight"].T)[:, 0] + self._w[f"{name}.bias"]

    def _norm(self, x: Array, name: str) -> Array:
        mean = x.mean(axis=1, keepdims=True)
        spread = ((x - mean) ** 2).mean(axis=1, keepdims=True)
        return (x - mean) / np.sqrt(spread + _EPSILON) * self._w[f"{name}.weight"] + self._w[f"{name}.bias"]

    def _block(self, x: Array, linear: str, norm: str) -> Array:
        y = self._linear(x, linear)
        return self._norm(np.where(y > 0.0, y, _SLOPE * y), norm)

    def _conv(self, x: Array, name: str, stride: tuple[int, int], pad: tuple[int, int]) -> Array:
        """Cross-correlation of (n, c, rays, beams) with zeros around."""
        kernel = self._w[f"{name}.weight"]
        padded = np.pad(x, ((0, 0), (0, 0), (pad[0], pad[0]), (pad[1], pad[1])))
        windows = np.lib.stride_tricks.sliding_window_view(padded, kernel.shape[2:], axis=(2, 3))
        windows = windows[:, :, :: stride[0], :: stride[1]]
        n, _, height, width = windows.shape[:4]
        rows = np.ascontiguousarray(windows.transpose(0, 2, 3, 1, 4, 5)).reshape(n, height * width, -1)
        out = np.matmul(rows, kernel.reshape(len(kernel), -1).T) + self._w[f"{name}.bias"]
        return out.transpose(0, 2, 1).reshape(n, len(kernel), height, width)


def _elu(x: Array) -> Array:
    return np.where(x > 0.0, x, np.expm1(np.minimum(x, 0.0)))


def _softplus(x: Array) -> Array:
    return np.logaddexp(0.0, x)
