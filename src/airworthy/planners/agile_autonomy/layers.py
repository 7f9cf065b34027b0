"""The student's network in NumPy: a depth image and 18 numbers of state to trajectories of one second, with a score each.

Source: specification of the planners, section 8.2, but for the convolutions: MobileNetV1 begins with weights of ImageNet, which
are not downloaded here, and its 569 million multiply-adds per image would take a core of a laptop 40 ms in flight and hours to
train. Ours are four convolutions that learn from nothing, 12 million multiply-adds: a patch of 4 x 4, then three that halve the
image to the same 7 x 7 cells, each then brought to 32 numbers instead of 128, because there are thousands of images to learn
from and not a hundred thousand. Over one instant a convolution along time is a matrix, which is what is written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayU8
from airworthy.core.errors import AirworthyError

__all__ = [
    "CELL_FEATURES",
    "CONVOLUTIONS",
    "IMAGE",
    "IMAGE_SLOPE",
    "NUMBERS",
    "PATCH",
    "POINTS",
    "RATE",
    "SPACING",
    "STATE",
    "STATE_SLOPE",
    "WIDTHS",
    "StudentNetwork",
    "free_course",
    "tensor_shapes",
]

# Source: spec/planners 8.1, 8.2, 8.5: 224 x 224, state of 18, 10 points at 0.1 s, 15 Hz.
IMAGE, STATE, POINTS, SPACING, RATE = 224, 18, 10, 0.1, 15.0
NUMBERS = 1 + 3 * POINTS
"""Of a mode: its score, then blocks of x, y and z."""
# Ours, as the module says.
PATCH, CONVOLUTIONS, CELL_FEATURES = 4, (16, 32, 64, 128), 32
CELLS = IMAGE // PATCH // 2 ** (len(CONVOLUTIONS) - 1)
"""Along each edge of what the convolutions leave."""
# Source: spec/planners 8.2.
WIDTHS = {
    "image": (CELLS * CELLS * CELL_FEATURES, 128, 64, 64, 32),
    "state": (STATE, 64, 32, 32, 32),
    "plan": (64, 64, 128, 128, NUMBERS),
}
"""Of the fully connected layers by branch; those of the plan are the same for every mode."""
IMAGE_SLOPE, STATE_SLOPE = 0.01, 0.5
"""Of the leaky rectifiers: behind an image, and behind state and plan."""
_TAPS = 3


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
    for number, (given, wide) in enumerate(pairwise((1, *CONVOLUTIONS))):
        edge = PATCH if number == 0 else 3
        found |= {f"convolutions.{number}.weight": (wide, given, edge, edge), f"convolutions.{number}.bias": (wide,)}
    found |= {"cells.weight": (CELL_FEATURES, CONVOLUTIONS[-1], 1, 1), "cells.bias": (CELL_FEATURES,)}
    for branch, widths in WIDTHS.items():
        for number, (given, wide) in enumerate(pairwise(widths)):
            found |= {f"{branch}.{number}.weight": (wide, given), f"{branch}.{number}.bias": (wide,)}
    for branch in ("image", "state"):
        found |= {f"{branch}_modes.weight": (modes, 1, _TAPS), f"{branch}_modes.bias": (modes,)}
    return found


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
        # One flight at a time: a product of several would add in another order.
        rows = [self._one(image, row) for image, row in zip(images, np.asarray(state, self._dtype), strict=True)]
        out = np.array(rows, np.float64).reshape(len(rows), self.modes, NUMBERS)
        points = out[..., 1:].reshape(len(rows), self.modes, 3, POINTS).swapaxes(-1, -2)
        first, second = free_course(np.asarray(state, np.float64))
        times = SPACING * np.arange(1, POINTS + 1)[:, None]
        return out[..., 0], points + (times * first[:, None] + times**2 * second[:, None])[:, None]

    def _one(self, image: ArrayU8, state: Array) -> Array:
        x = self._patches(image.astype(self._dtype) / self._dtype(127.5) - self._dtype(1.0))
        for number in range(1, len(CONVOLUTIONS)):
            x = np.maximum(self._halved(x, f"convolutions.{number}"), 0.0)
        x = np.maximum(x @ self._w["cells.weight"][:, :, 0, 0].T + self._w["cells.bias"], 0.0)
        seen = self._modes(self._branch(x.reshape(1, -1), "image", IMAGE_SLOPE, True)[0], "image_modes")
        moving = self._modes(self._branch(state[None], "state", STATE_SLOPE, True)[0], "state_modes")
        return self._branch(np.concatenate([seen, moving], axis=1), "plan", STATE_SLOPE, False)

    def _patches(self, image: Array) -> Array:
        """First convolution: patches beside one another are one product; (56, 56, 16)."""
        side = IMAGE // PATCH
        rows = image.reshape(side, PATCH, side, PATCH).transpose(0, 2, 1, 3).reshape(side * side, PATCH * PATCH)
        weight, bias = self._w["convolutions.0.weight"], self._w["convolutions.0.bias"]
        return np.maximum(rows @ weight.reshape(len(weight), -1).T + bias, 0.0).reshape(side, side, -1)

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

    def _modes(self, x: Array, name: str) -> Array:
        """Features (32,) of each mode: three taps along them, zeros around; (modes, 32)."""
        padded = np.pad(x, 1)
        taps = np.stack([padded[k : k + len(x)] for k in range(_TAPS)])
        return self._w[f"{name}.weight"][:, 0] @ taps + self._w[f"{name}.bias"][:, None]
