"""The bare body as an ordinary Warp kernel, one environment per thread: what a Warp user writes first."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import warp as wp

from airworthy.core.arrays import ArrayF32
from benchmarks import body, lanes


@wp.struct
class Parameters:
    """Constants of the vehicle, the same for every environment; SI units."""

    thrust: float
    torque: float
    arm: float
    inverse_mass: float
    inertia: wp.vec3
    motor_rate: float


@wp.struct
class Body:
    """State of one environment, or its time derivative."""

    position: wp.vec3
    velocity: wp.vec3
    attitude: wp.quat
    rate: wp.vec3
    rotors: wp.vec4


@wp.func
def body_derivative(s: Body, command: wp.vec4, p: Parameters) -> Body:
    """Time derivative under commanded rotor speeds."""
    squares = wp.cw_mul(s.rotors, s.rotors)
    lever = p.thrust * p.arm
    lift = p.thrust * (squares[0] + squares[1] + squares[2] + squares[3]) * p.inverse_mass
    torque = wp.vec3(
        lever * (squares[0] + squares[1] - squares[2] - squares[3]),
        lever * (squares[1] + squares[2] - squares[0] - squares[3]),
        p.torque * (squares[1] + squares[3] - squares[0] - squares[2]),
    )
    d = Body()
    d.position = s.velocity
    d.velocity = wp.quat_rotate(s.attitude, wp.vec3(0.0, 0.0, lift)) - wp.vec3(0.0, 0.0, 9.81)
    d.attitude = 0.5 * (s.attitude * wp.quat(s.rate, 0.0))
    d.rate = wp.cw_div(torque - wp.cross(s.rate, wp.cw_mul(p.inertia, s.rate)), p.inertia)
    d.rotors = p.motor_rate * (command - s.rotors)
    return d


@wp.func
def body_moved(s: Body, d: Body, reach: float) -> Body:
    """State after moving along `d` for `reach` seconds."""
    m = Body()
    m.position = s.position + reach * d.position
    m.velocity = s.velocity + reach * d.velocity
    m.attitude = s.attitude + reach * d.attitude
    m.rate = s.rate + reach * d.rate
    m.rotors = s.rotors + reach * d.rotors
    return m


@wp.kernel(enable_backward=False)
def advance(
    position: wp.array[wp.vec3],  # [m], world
    velocity: wp.array[wp.vec3],  # [m/s], world
    attitude: wp.array[wp.quat],  # body to world
    rate: wp.array[wp.vec3],  # [rad/s], body
    rotors: wp.array[wp.vec4],  # [rad/s]
    command: wp.array[wp.vec4],  # [rad/s]
    p: Parameters,
    dt: float,  # [s]
    sub_steps: int,
    first: int,
):
    """Advance one environment in place by `sub_steps` RK4 steps."""
    env = first + wp.tid()
    s = Body()
    s.position = position[env]
    s.velocity = velocity[env]
    s.attitude = attitude[env]
    s.rate = rate[env]
    s.rotors = rotors[env]
    c = command[env]
    for _ in range(sub_steps):
        k1 = body_derivative(s, c, p)
        k2 = body_derivative(body_moved(s, k1, 0.5 * dt), c, p)
        k3 = body_derivative(body_moved(s, k2, 0.5 * dt), c, p)
        k4 = body_derivative(body_moved(s, k3, dt), c, p)
        s = body_moved(s, k1, dt / 6.0)
        s = body_moved(s, k2, dt / 3.0)
        s = body_moved(s, k3, dt / 3.0)
        s = body_moved(s, k4, dt / 6.0)
        s.attitude = wp.normalize(s.attitude)
    position[env] = s.position
    velocity[env] = s.velocity
    attitude[env] = s.attitude
    rate[env] = s.rate
    rotors[env] = s.rotors


class BodyWarp:
    """A batch of bare bodies on a Warp device; `step` advances all by one env-step of RK4 sub-steps."""

    def __init__(self, env_count: int, threads: int = 1, device: str = "cpu", sub_steps: int = body.SUB_STEPS):
        state, command = body.initial_state(env_count), body.commands(env_count)
        types = (wp.vec3, wp.vec3, wp.quat, wp.vec3, wp.vec4)
        rows = (state[0:3], state[3:6], state[6:10], state[10:13], state[13:17])
        self._state = [
            wp.array(np.ascontiguousarray(r.T, np.float32), dtype=t, device=device) for r, t in zip(rows, types, strict=True)
        ]
        commands = wp.array(np.ascontiguousarray(command.T, np.float32), dtype=wp.vec4, device=device)
        inputs = [*self._state, commands, _parameters(), 1.0 / body.RATE_HZ, sub_steps]
        threads = 1 if device != "cpu" else max(1, min(threads, env_count))
        edges = [env_count * k // threads for k in range(threads + 1)]
        self._launches: list[Any] = [
            wp.launch(advance, dim=high - low, inputs=[*inputs, low], device=device, record_cmd=True)
            for low, high in pairwise(edges)
        ]

    def step(self) -> None:
        """Advance by one env-step."""
        lanes.launch_all(self._launches)

    def state(self) -> ArrayF32:
        """Return current state, shape (17, env_count)."""
        return np.concatenate([part.numpy().T for part in self._state])


@cache
def _parameters() -> Parameters:
    p = Parameters()
    for name in ("thrust", "torque", "arm", "inverse_mass", "motor_rate"):
        setattr(p, name, body.PARAMETERS[name])
    p.inertia = wp.vec3(*(body.PARAMETERS[f"inertia_{axis}"] for axis in "xyz"))
    return p
