"""The student's network in NumPy: a depth image and 18 numbers of state to trajectories of one second, with a score each.

Source: specification of the planners, section 8.2, with other layers before the points. MobileNetV1 begins with weights of
ImageNet, which are not downloaded here, and its 569 million multiply-adds per image would take a core of a laptop 40 ms in
flight and hours to train. Ours learn from nothing, 2 million multiply-adds, of images that are turned level (`level`) and of a
state in the same level frame, in which the points are told, too: leaning is undone in closed form before anything is learnt.
Over one instant a convolution along time is a matrix, which is what is written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayU8
from airworthy.core.errors import AirworthyError
from airworthy.planners.agile_autonomy.level import COLUMNS, ROWS, UNSEEN, VIEW_STEPS, level_axes, level_views

__all__ = [
    "CELLS",
    "CELL_FEATURES",
    "CONVOLUTIONS",
    "FEATURES",
    "IMAGE",
    "IMAGE_SLOPE",
    "NUMBERS",
    "PATCH",
    "PLAN",
    "POINTS",
    "RATE",
    "SPACING",
    "STATE",
    "STATE_SLOPE",
    "STEPS",
    "WIDTHS",
    "StudentNetwork",
    "flown_shapes",
    "free_course",
    "level_state",
    "tensor_shapes",
]

# Source: spec/planners 8.1, 8.2, 8.5: 224 x 224 in 0..250, state of 18, 10 points at 0.1 s, 15 Hz.
IMAGE, STEPS, STATE, POINTS, SPACING, RATE = 224, 250, 18, 10, 0.1, 15.0
NUMBERS = 1 + 3 * POINTS
"""Of a mode: its score, then blocks of x, y and z."""
# Ours, as the module says.
PATCH, CONVOLUTIONS, CELL_FEATURES = 4, (24, 48, 96), 48
CELLS = (ROWS // PATCH // 2 ** (len(CONVOLUTIONS) - 1), COLUMNS // PATCH // 2 ** (len(CONVOLUTIONS) - 1))
"""Of what the convolutions leave, along the height and along the width."""
_PLANES = 2
"""Of a view: nearness, and what the camera does not see."""
FEATURES = 12
"""Numbers of the state in the level frame."""
# Ours: behind an image of that few cells 128 numbers as published were the narrowest place.
WIDTHS = {
    "image": (CELLS[0] * CELLS[1] * CELL_FEATURES, 256, 128, 64),
    "state": (FEATURES, 64, 32, 32),
    "plan": (128, 128, 128, NUMBERS),
}
"""Of the fully connected layers by branch; those of the plan are the same for every mode."""
PLAN = WIDTHS["image"][-1] + WIDTHS["state"][-1]
"""Numbers of what is seen and of motion, of which a layer for each mode makes what its plan begins with."""
IMAGE_SLOPE, STATE_SLOPE = 0.01, 0.5
"""Of the leaky rectifiers: behind an image, and behind state and plan."""
# Ours: so that speeds and rates are numbers of about one.
_SPEED, _TURN = 5.0, 3.0
"""[m/s], [rad/s]"""
_FLOWN = 5
"""Highest power of time in what is flown; the two lowest are given by place and velocity."""


@cache
def flown_shapes() -> Array:
    """Return (10, 10): what of any ten points a flown polynomial can follow that begins where and as fast as the vehicle flies.

    Between decisions a path of degree 5 is fitted to the points: what it cannot follow would be learnt in vain.
    """
    times = SPACING * np.arange(1, POINTS + 1)
    powers = times[:, None] ** np.arange(2, _FLOWN + 1)
    return np.asarray(powers @ np.linalg.pinv(powers), np.float64)


def level_state(state: Any, axes: Any) -> list[Any]:
    """Return what the network is told of the state: parts (n, 3) of arrays or tensors, to be put side by side.

    Up in the body frame, which is how it leans; velocity and direction of the reference, level; body rates.

    Args:
        state: (n, 18).
        axes: (n, 3, 3) from body to level, see `level.level_axes`.
    """
    velocity, direction = ((axes * state[:, None, k : k + 3]).sum(-1) for k in (9, 15))
    return [state[:, 6:9], velocity / _SPEED, state[:, 12:15] / _TURN, direction]


def free_course(state: Any) -> tuple[Any, Any]:
    """Return what the network's points are told from, as factors of time and of its square, (n, 3) each, body frame.

    Within a second the present velocity becomes one toward the reference, a metre a second faster: what is flown where nothing
    is in the way. The publication lets the network find that as well. From thousands of instants it does not: level flight in
    the frame of a leaning body is a product of its inputs, and a decimetre of height decides.

    Args:
        state: (n, 18), an array or a tensor.
    """
    velocity, direction = state[:, 9:12], state[:, 15:18]
    speed = (velocity**2).sum(-1)[:, None] ** 0.5
    return velocity, 0.5 * ((speed + 1.0) * direction - velocity)


def tensor_shapes(modes: int) -> dict[str, tuple[int, ...]]:
    """Return name and shape of every tensor."""
    found: dict[str, tuple[int, ...]] = {}
    for number, (given, wide) in enumerate(pairwise((_PLANES, *CONVOLUTIONS))):
        edge = PATCH if number == 0 else 3
        found |= {f"convolutions.{number}.weight": (wide, given, edge, edge), f"convolutions.{number}.bias": (wide,)}
    found |= {"cells.weight": (CELL_FEATURES, CONVOLUTIONS[-1], 1, 1), "cells.bias": (CELL_FEATURES,)}
    for branch, widths in WIDTHS.items():
        for number, (given, wide) in enumerate(pairwise(widths)):
            found |= {f"{branch}.{number}.weight": (wide, given), f"{branch}.{number}.bias": (wide,)}
    first = WIDTHS["plan"][0]
    return found | {"modes.weight": (modes * first, PLAN), "modes.bias": (modes * first,)}


class StudentNetwork:
    """The network without torch; the numbers of a flight do not depend on how many others there are.

    Args:
        weights: Arrays by name; see `tensor_shapes`.
        modes: Trajectories at once.
        dtype: In which it computes: float32 in flight, float64 as the twin of what torch learns.

    Raises:
        AirworthyError: If one is missing, of another shape, or not finite.
    """

    def __init__(self, weights: Mapping[str, ArrayAny], modes: int, dtype: Any = np.float32):
        for name, shape in tensor_shapes(modes).items():
            found = np.shape(weights[name]) if name in weights else None
            if found != shape or not np.isfinite(weights[name]).all():
                raise AirworthyError(f"The student's weights have {name!r} of shape {found}; expected {shape}, all finite.")
        self.modes, self._dtype = modes, dtype
        self._w = {name: np.ascontiguousarray(weights[name], dtype) for name in tensor_shapes(modes)}

    def __call__(self, images: ArrayU8, state: Array) -> tuple[Array, Array]:
        """Return scores (n, modes) and points (n, modes, 10, 3) in the body frame [m].

        Args:
            images: (n, 224, 224) in steps of a 250th of the reach.
            state: (n, 18), see the contract's inputs.
        """
        return self.of_views(level_views(images, state, STEPS), state)

    def of_views(self, views: ArrayU8, state: Array) -> tuple[Array, Array]:
        """Return the same of views (n, 48, 96), see `level.level_views`."""
        state = np.asarray(state, np.float64)
        axes = level_axes(state)
        told = np.concatenate(level_state(state, axes), axis=1).astype(self._dtype)
        # One flight at a time: a product of several would add in another order.
        rows = [self._one(view, row) for view, row in zip(views, told, strict=True)]
        out = np.array(rows, np.float64).reshape(len(rows), self.modes, NUMBERS)
        points = out[..., 1:].reshape(len(rows), self.modes, 3, POINTS)
        local = np.einsum("nji,st,nmjt->nmsi", axes, flown_shapes(), points)
        first, second = free_course(state)
        times = SPACING * np.arange(1, POINTS + 1)[:, None]
        return out[..., 0], local + (times * first[:, None] + times**2 * second[:, None])[:, None]

    def _one(self, view: ArrayU8, state: Array) -> Array:
        unseen = view == UNSEEN
        near = np.where(unseen, self._dtype(0.0), view.astype(self._dtype) / self._dtype(VIEW_STEPS))
        x = self._patches(np.stack([near, unseen.astype(self._dtype)], axis=-1))
        for number in range(1, len(CONVOLUTIONS)):
            x = np.maximum(self._halved(x, f"convolutions.{number}"), 0.0)
        x = np.maximum(x @ self._w["cells.weight"][:, :, 0, 0].T + self._w["cells.bias"], 0.0)
        seen = self._branch(x.reshape(1, -1), "image", IMAGE_SLOPE, True)[0]
        moving = self._branch(state[None], "state", STATE_SLOPE, True)[0]
        begun = self._w["modes.weight"] @ np.concatenate([seen, moving]) + self._w["modes.bias"]
        begun = np.where(begun > 0.0, begun, self._dtype(STATE_SLOPE) * begun)
        return self._branch(begun.reshape(self.modes, -1), "plan", STATE_SLOPE, False)

    def _patches(self, planes: Array) -> Array:
        """First convolution, of (48, 96, 2): patches beside one another are one product; (12, 24, features)."""
        down, across = ROWS // PATCH, COLUMNS // PATCH
        rows = planes.reshape(down, PATCH, across, PATCH, _PLANES).transpose(0, 2, 4, 1, 3).reshape(down * across, -1)
        weight, bias = self._w["convolutions.0.weight"], self._w["convolutions.0.bias"]
        return np.maximum(rows @ weight.reshape(len(weight), -1).T + bias, 0.0).reshape(down, across, -1)

    def _halved(self, x: Array, name: str) -> Array:
        """Cross-correlation of (height, width, c) by 3 x 3 at every second cell, zeros around."""
        padded = np.pad(x, ((1, 1), (1, 1), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(0, 1))[::2, ::2]
        height, width = windows.shape[:2]
        rows = np.ascontiguousarray(windows).reshape(height * width, -1)
        weight = self._w[f"{name}.weight"]
        return (rows @ weight.reshape(len(weight), -1).T + self._w[f"{name}.bias"]).reshape(height, width, -1)

    def _branch(self, x: Array, name: str, slope: float, last: bool) -> Array:
        """Fully connected layers, a leaky rectifier behind each, and behind the last one if `last`."""
        count = len(WIDTHS[name]) - 1
        for number in range(count):
            x = x @ self._w[f"{name}.{number}.weight"].T + self._w[f"{name}.{number}.bias"]
            if last or number < count - 1:
                x = np.where(x > 0.0, x, self._dtype(slope) * x)
        return x
