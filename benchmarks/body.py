"""The bare body of the benchmark in plain Python: a rigid body with 4 lagging motors, as a reference and to count operations.

State, 17 numbers: position, velocity (world), attitude quaternion x, y, z, w (body to world), body rate, rotor speeds. Values:
the FlightGoggles quadrotor without drag. Integrated by explicit Euler or classical RK4, quaternion renormalised every sub-step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from airworthy.core.arrays import Array

SUB_STEPS = 10
RATE_HZ = 960.0
FIELDS = 17
PARAMETERS: dict[str, float] = {
    "thrust": 1.91e-6,  # [N s^2/rad^2]
    "torque": 2.6e-7,  # [N m s^2/rad^2]
    "arm": 0.08,  # [m] along x and along y
    "inverse_mass": 1.0,  # [1/kg]
    "inertia_x": 0.0049,  # [kg m^2]
    "inertia_y": 0.0049,
    "inertia_z": 0.0069,
    "motor_rate": 50.0,  # [1/s], one over the time constant
}
GRAVITY = 9.81


def derivative(state: Sequence[Any], command: Sequence[Any], p: dict[str, Any]) -> list[Any]:
    """Time derivative of the state under commanded rotor speeds [rad/s]."""
    vx, vy, vz, x, y, z, w, wx, wy, wz = state[3:13]
    r = state[13:17]
    s = [speed * speed for speed in r]
    lift = p["thrust"] * ((s[0] + s[1]) + (s[2] + s[3])) * p["inverse_mass"]
    lever = p["thrust"] * p["arm"]
    front_left, front_right = s[0] - s[2], s[1] - s[3]
    tx = lever * (front_left + front_right)
    ty = lever * (front_right - front_left)
    tz = p["torque"] * ((s[1] + s[3]) - (s[0] + s[2]))
    hx, hy, hz = p["inertia_x"] * wx, p["inertia_y"] * wy, p["inertia_z"] * wz
    lift_2 = lift + lift
    return [
        vx,
        vy,
        vz,
        lift_2 * (x * z + w * y),
        lift_2 * (y * z - w * x),
        lift - lift_2 * (x * x + y * y) - GRAVITY,
        0.5 * (w * wx + (y * wz - z * wy)),
        0.5 * (w * wy + (z * wx - x * wz)),
        0.5 * (w * wz + (x * wy - y * wx)),
        -0.5 * (x * wx + (y * wy + z * wz)),
        (tx - (wy * hz - wz * hy)) * p["inverse_inertia_x"],
        (ty - (wz * hx - wx * hz)) * p["inverse_inertia_y"],
        (tz - (wx * hy - wy * hx)) * p["inverse_inertia_z"],
        *(p["motor_rate"] * (c - speed) for c, speed in zip(command, r, strict=True)),
    ]


def sub_step(state: Sequence[Any], command: Sequence[Any], p: dict[str, Any], dt: float, integrator: str) -> list[Any]:
    """One sub-step of `dt` seconds with "euler" or "rk4"."""
    k = derivative(state, command, p)
    total = k
    if integrator == "rk4":
        for reach, weight in ((0.5 * dt, 2.0), (0.5 * dt, 2.0), (dt, 1.0)):
            k = derivative([s + reach * d for s, d in zip(state, k, strict=True)], command, p)
            total = [t + weight * d for t, d in zip(total, k, strict=True)]
    reach = dt / 6.0 if integrator == "rk4" else dt
    after = [s + reach * d for s, d in zip(state, total, strict=True)]
    x, y, z, w = after[6:10]
    scale = 1.0 / ((x * x + y * y) + (z * z + w * w)) ** 0.5
    return [*after[:6], x * scale, y * scale, z * scale, w * scale, *after[10:]]


def parameters() -> dict[str, float]:
    """Return the values above, with inverse inertias."""
    inverse = {f"inverse_inertia_{axis}": 1.0 / PARAMETERS[f"inertia_{axis}"] for axis in "xyz"}
    return {**PARAMETERS, **inverse}


def initial_state(env_count: int) -> Array:
    """Slightly different upright states near hover, shape (17, env_count)."""
    phase = np.linspace(0.0, 6.0, env_count)
    state = np.zeros((FIELDS, env_count))
    state[2], state[3], state[4] = 10.0, 0.3 * np.sin(phase), 0.2 * np.cos(phase)
    state[6], state[9] = 0.1 * np.sin(phase), np.sqrt(1.0 - 0.01 * np.sin(phase) ** 2)
    state[10], state[11], state[12] = 0.5 * np.cos(phase), 0.4 * np.sin(2.0 * phase), 0.1
    state[13:] = 1133.0
    return state


def commands(env_count: int) -> Array:
    """Constant rotor commands around hover [rad/s], shape (4, env_count)."""
    phase = np.linspace(0.0, 3.0, env_count)
    return np.stack([1133.15 + 3.0 * np.sin(phase + k) for k in range(4)])


def reference(env_count: int, integrator: str) -> Array:
    """State after one env-step (10 sub-steps) in float64, shape (17, env_count)."""
    state: list[Any] = list(initial_state(env_count))
    for _ in range(SUB_STEPS):
        state = sub_step(state, list(commands(env_count)), parameters(), 1.0 / RATE_HZ, integrator)
    return np.stack(state)


def flops_per_env_step(integrator: str) -> int:
    """Additions, multiplications, divisions and roots of 10 sub-steps of one environment, each counted as one."""
    tally = [0]
    traced = {name: Counted(tally) for name in parameters()}
    sub_step([Counted(tally)] * FIELDS, [Counted(tally)] * 4, traced, 1.0 / RATE_HZ, integrator)
    return SUB_STEPS * tally[0]


class Counted:
    """A number that only counts what is done with it."""

    def __init__(self, tally: list[int]):
        self.tally = tally

    def _operation(self, *_: Any) -> Counted:
        self.tally[0] += 1
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = _operation
