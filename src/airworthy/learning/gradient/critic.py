"""A critic at the end of short windows: short-horizon actor-critic, without its random actions.

SHAC: Xu et al. 2022, "Accelerated Policy Learning with Parallel Differentiable Simulation", arXiv 2204.07137.

A network learns what flights are to cost from where they are; the gradient of a window goes on through it. What tells, and
is derived through, is a slow copy of the network that learns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayF32
from airworthy.core.native_kernel import CPU_LANES, Launcher, native_kernel, quiet_warp, shared_source
from airworthy.core.random import Stream, flight_key, normals
from airworthy.learning.gradient.descent import Descent
from airworthy.learning.gradient.kernel import Ahead, FlightWindow, WindowShape
from airworthy.learning.gradient.twin import value_twin
from airworthy.learning.network_source import network_source

__all__ = ["Critic", "fit_twin"]

_WEIGHT_FLIGHT = 0xFFFFFFFD
"""Flight id of the draws of its weights: no environment has it, nor the policy's."""
_TARGET_KEEP = 0.8
"""Ours: share of the slow copy that stays in each window. SHAC keeps 0.2 to 0.995, by task; here windows are a third of a
second and many: five of them carry what was learnt over."""
_CLIP = 1.0  # specification, learning by reward, 6.3: norm 1
"""Largest norm of its gradient."""

_ARGUMENTS = """
    value: float32[]     # as packed by `Critic.fit`
    inputs: float32[]    # of the window
    returns: float32[]   # alike
    scratch: float32[]   # (block, step, 4 hidden + 1, lane)
    # output
    gradient: float32[]  # (block, weights)
    steps: int
    scale: float         # one over the number of samples
"""


@cache
def _kernel(observed: int, hidden: int, input_rows: int) -> Any:
    numbers = f"enum {{ OBSERVED = {observed}, HIDDEN = {hidden}, INPUT_ROWS = {input_rows} }};"
    text = files("airworthy.learning.gradient").joinpath("native", "value_fit.h").read_text()
    return native_kernel("value_fit", "\n".join([shared_source("prelude.h"), numbers, network_source(), text]), _ARGUMENTS)


class Critic:
    """What flights of a window are to cost behind its end, as it is learnt.

    Args:
        window: Of flights, of a shape with a critic.
        seed: Of its weights.
        discount: Of what comes later, per step.
        blend: Lambda of the returns that it learns.
    """

    def __init__(self, window: FlightWindow, seed: int, discount: float, blend: float):
        shape, env_count, steps = window.shape, window.env_count, window.steps
        self._descent = Descent(_drawn(shape, seed))
        self.discount, self.blend, self._env_count, self._steps = discount, blend, env_count, steps
        self._slow = [w.copy() for w in self._descent.weights]
        self._blocks, count = env_count // CPU_LANES, len(self._descent.flat)
        inputs, returns = window.rows_of_samples
        self._held: dict[str, ArrayF32] = {
            "value": np.zeros(count + sum(w.size for w in self._descent.weights[:4:2]), np.float32),
            "inputs": inputs,
            "returns": returns,
            "scratch": np.zeros((4 * shape.hidden + 1) * steps * env_count, np.float32),
            "gradient": np.zeros(self._blocks * count, np.float32),
        }
        self._samples = steps * env_count
        self._kernel = (shape.observed, shape.hidden, shape.kept_rows[0])
        self._launcher: Launcher | None = None

    @property
    def weights(self) -> list[ArrayF32]:
        """Of the network that learns."""
        return self._descent.weights

    @property
    def ahead(self) -> Ahead:
        """What it tells windows: by its slow copy."""
        return Ahead(self._slow, self.discount, self.blend)

    def fit(self, rate: float, done: int) -> None:
        """Learn a step from the last window.

        Args:
            rate: Of learning.
            done: Steps that were taken before.
        """
        self._descent.step(self.gradient(), rate, _CLIP, done)

    def follow(self) -> None:
        """Let the slow copy come nearer."""
        for slow, quick in zip(self._slow, self._descent.weights, strict=True):
            slow += np.float32(1.0 - _TARGET_KEEP) * (quick - slow)

    def gradient(self) -> list[ArrayF32]:
        """Return the gradient of half the mean squared error on the last window, shaped as the weights."""
        weights = self._descent.weights
        np.concatenate([w.ravel() for w in (*weights, *(w.T for w in weights[:4:2]))], out=self._held["value"])
        self.prepare().launch()
        whole = self._held["gradient"].reshape(self._blocks, -1).sum(axis=0)
        parts = np.split(whole, np.cumsum([w.size for w in weights])[:-1])
        return [g.reshape(w.shape) for g, w in zip(parts, weights, strict=True)]

    def prepare(self) -> Launcher:
        """Build its kernel, where no step has."""
        if self._launcher is None:
            wp = quiet_warp()
            arrays = [wp.array(x, device="cpu", copy=False) for x in self._held.values()]
            arguments = [*arrays, self._steps, 1.0 / self._samples]
            self._launcher = Launcher(_kernel(*self._kernel), self._blocks, arguments, "cpu")
        return self._launcher

    def arrays(self) -> dict[str, ArrayAny]:
        """Return everything that its next step depends on, by name."""
        slow = np.concatenate([w.ravel() for w in self._slow])
        found = {"flat": self._descent.flat, "moments": self._descent.moments, "slow": slow}
        return {f"critic.{name}": np.array(values) for name, values in found.items()}

    def restore(self, arrays: Mapping[str, ArrayAny]) -> None:
        """Take what `arrays` gave."""
        self._descent.flat[:], self._descent.moments[:] = arrays["critic.flat"], arrays["critic.moments"]
        ends = np.cumsum([0, *(w.size for w in self._slow)])
        for slow, (first, last) in zip(self._slow, pairwise(ends), strict=True):
            slow[:] = arrays["critic.slow"][first:last].reshape(slow.shape)


def _drawn(shape: WindowShape, seed: int) -> list[ArrayF32]:
    weights: list[ArrayF32] = []
    for k, (rows, columns) in enumerate(shape.value_matrices):
        key = flight_key(seed, _WEIGHT_FLIGHT, k)
        # Its last layer begins at zero: slopes of a network that knows nothing would lead flights anywhere.
        gain = 0.0 if k == 2 else 1.0
        drawn = normals(key, 0, Stream.RESET, rows * columns).reshape(rows, columns) * (gain / math.sqrt(columns))
        weights += [drawn.astype(np.float32), np.zeros(rows, np.float32)]
    return weights


def fit_twin(ahead: Ahead, seen: Array, returns: Array) -> list[Array]:
    """Return the gradient of half the mean squared error on float64 NumPy, shaped as the weights.

    Args:
        ahead: The network that learns.
        seen: (observed, samples).
        returns: (samples,); NaN where a flight left the numbers, which then counts as told rightly.
    """
    told, layers = value_twin(ahead, seen)
    w: Sequence[Array] = [np.asarray(x, float) for x in ahead.weights]
    error = told - returns
    slope = np.where(np.isfinite(error), error, 0.0)[None] / len(returns)
    found: list[Array] = []
    for k in (4, 2, 0):
        found = [slope @ layers[k // 2].T, slope.sum(axis=1), *found]
        slope = w[k].T @ slope * (1.0 - layers[k // 2] ** 2)
    return found
