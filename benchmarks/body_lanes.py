"""The bare body written by hand in 16-lane vectors: the yardstick that says what careful C reaches on this machine.

One array (field, environment); parameters differ per environment and are loaded once per env-step.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import warp as wp

from airworthy.core.arrays import Array, ArrayF32
from benchmarks import body, lanes

_DERIVATIVE = """
struct State { F x[17]; };
F p[11], command[4];
for (int k = 0; k < 11; ++k) p[k] = load(a + (long)k * stride + 16 * index);
for (int k = 0; k < 4; ++k) command[k] = load(a + (long)(11 + k) * stride + 16 * index);
const F lever = p[0] * p[2];
auto derivative = [&](const State& state, State& d) INLINE {
  const F *r = state.x + 13;
  const F x = state.x[6], y = state.x[7], z = state.x[8], w = state.x[9];
  const F wx = state.x[10], wy = state.x[11], wz = state.x[12];
  const F s0 = r[0] * r[0], s1 = r[1] * r[1], s2 = r[2] * r[2], s3 = r[3] * r[3];
  const F lift = p[0] * ((s0 + s1) + (s2 + s3)) * p[3], lift_2 = lift + lift;
  const F left = s0 - s2, right = s1 - s3;
  const F hx = p[4] * wx, hy = p[5] * wy, hz = p[6] * wz;
  for (int k = 0; k < 3; ++k) d.x[k] = state.x[3 + k];
  d.x[3] = lift_2 * (x * z + w * y);
  d.x[4] = lift_2 * (y * z - w * x);
  d.x[5] = lift - lift_2 * (x * x + y * y) - 9.81f;
  d.x[6] = 0.5f * (w * wx + (y * wz - z * wy));
  d.x[7] = 0.5f * (w * wy + (z * wx - x * wz));
  d.x[8] = 0.5f * (w * wz + (x * wy - y * wx));
  d.x[9] = -0.5f * (x * wx + (y * wy + z * wz));
  d.x[10] = (lever * (left + right) - (wy * hz - wz * hy)) * p[8];
  d.x[11] = (lever * (right - left) - (wz * hx - wx * hz)) * p[9];
  d.x[12] = (p[1] * ((s1 + s3) - (s0 + s2)) - (wx * hy - wy * hx)) * p[10];
  for (int k = 0; k < 4; ++k) d.x[13 + k] = p[7] * (command[k] - r[k]);
};
auto normalise = [&](State& state) INLINE {
  const F x = state.x[6], y = state.x[7], z = state.x[8], w = state.x[9];
  const F scale = 1.0f / root((x * x + y * y) + (z * z + w * w));
  for (int k = 6; k < 10; ++k) state.x[k] *= scale;
};
State state;
for (int k = 0; k < 17; ++k) state.x[k] = load(b + (long)k * stride + 16 * index);
const float dt = 1.0f / 960.0f;
"""

_RK4 = """
#pragma clang loop unroll(disable)
for (int step = 0; step < count; ++step) {
  State k, sum, mid;
  derivative(state, k);
  for (int i = 0; i < 17; ++i) { sum.x[i] = k.x[i]; mid.x[i] = state.x[i] + 0.5f * dt * k.x[i]; }
  derivative(mid, k);
  for (int i = 0; i < 17; ++i) { sum.x[i] += 2.0f * k.x[i]; mid.x[i] = state.x[i] + 0.5f * dt * k.x[i]; }
  derivative(mid, k);
  for (int i = 0; i < 17; ++i) { sum.x[i] += 2.0f * k.x[i]; mid.x[i] = state.x[i] + dt * k.x[i]; }
  derivative(mid, k);
  for (int i = 0; i < 17; ++i) state.x[i] += dt / 6.0f * (sum.x[i] + k.x[i]);
  normalise(state);
}
"""

_EULER = """
#pragma clang loop unroll(disable)
for (int step = 0; step < count; ++step) {
  State k;
  derivative(state, k);
  for (int i = 0; i < 17; ++i) state.x[i] += dt * k.x[i];
  normalise(state);
}
"""

_STORE = "for (int k = 0; k < 17; ++k) store(b + (long)k * stride + 16 * index, state.x[k]);"


@cache
def kernel(integrator: str) -> wp.Kernel:
    """Return the kernel with "rk4" or "euler"."""
    return lanes.lane_kernel(_DERIVATIVE + (_RK4 if integrator == "rk4" else _EULER) + _STORE)


class BodyLanes:
    """A batch of bare bodies; `step` advances all by one env-step (10 sub-steps)."""

    def __init__(self, env_count: int, integrator: str = "rk4", threads: int = 1):
        self.env_count = env_count
        padded = -(-env_count // lanes.LANES) * lanes.LANES
        constants = [np.full(env_count, value) for value in body.parameters().values()]
        self._input = _padded(np.stack([*constants, *body.commands(env_count)]), padded)
        self._state = _padded(body.initial_state(env_count), padded)
        self._launches: list[Any] = lanes.recorded(
            kernel(integrator), self._input, self._state, body.SUB_STEPS, padded, padded // lanes.LANES, threads
        )

    def step(self) -> None:
        """Advance by one env-step."""
        lanes.launch_all(self._launches)

    def state(self) -> ArrayF32:
        """Return current state, shape (17, env_count)."""
        return self._state.numpy().reshape(body.FIELDS, -1)[:, : self.env_count].copy()


def _padded(values: Array, width: int) -> wp.array:
    wide = np.pad(values, ((0, 0), (0, width - values.shape[1])), mode="edge")
    return wp.array(wide.astype(np.float32).ravel(), dtype=wp.float32, device="cpu")
