"""One stage of the tracking problem: the drone's step, its exact derivatives, and the recursion of the value function.

The model is SOUS VIDE's eq. 1 in z-up frames, a classic Runge-Kutta step with the input held. The recursion is that of
differential dynamic programming with Gauss-Newton second derivatives (Tassa, Mansard, Todorov: Control-limited differential
dynamic programming, ICRA 2014). Written on scalars, so that one text is traced into the kernel with structural zeros dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from math import isfinite
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.schema import check_fields
from airworthy.core.tracing import TracedBlock, jacobian, trace
from airworthy.core.vectors import quaternion_derivative

__all__ = ["INPUT_SIZE", "MPC_PRESETS", "STATE_SIZE", "MpcConfig", "mpc_preset"]

# ---- What the tracking MPC minimises and how long it iterates ---------------------------------------------------------------

STATE_SIZE = 10
"""Position (3), velocity (3), quaternion (4)."""
INPUT_SIZE = 4
"""Thrust command in [0, 1], body rates (3)."""
# Ours: 20 s at the published 20 Hz, ten times the published horizon.
HORIZON_MAX = 400


@dataclass(frozen=True)
class MpcConfig:
    """The problem of SOUS VIDE eq. 2: weights are those of plain squares, without a factor 1/2.

    sum_k (dx_k' Q dx_k + du_k' R du_k) + dx_N' Q_N dx_N, dx the difference to the reference, of quaternions component by
    component.

    Raises:
        AirworthyError: If a number is out of range.
    """

    # Source of all defaults: spec/sousvide section 4, [R] StanfordMSL/SousVide, configs/policy/vrmpc_fr.json.
    horizon: int = 40
    """Steps N."""
    rate: float = 20.0
    """Steps per second [Hz]."""
    position: float = 0.5
    """Of each axis [1/m^2], and so the others."""
    velocity: float = 0.05
    attitude: float = 0.05
    """Of each quaternion component."""
    thrust: float = 1.0
    """Of the thrust command, 1 being all rotors at full command."""
    rates: tuple[float, float, float] = (0.1, 0.1, 0.01)
    """Of the body rates [s^2/rad^2]."""
    terminal: float = 0.05
    """Of every state component at the horizon's end."""
    rate_max: float = 5.0
    """Bound of each body rate [rad/s]; the thrust command is bound to [0, 1]."""
    # Ours: an upper bound; `tolerance` ends warm calls after about two (spec/sousvide section 4). Of 2,000 cold starts within
    # 1.2 m and 2.5 m/s of each axis 15 % need more than 20, and the slowest 154.
    iterations: int = 200
    """At most, per call."""
    tolerance: float = 1e-6
    """Ends where an iteration lowers the cost by less than this share of it."""

    def __post_init__(self) -> None:
        check_fields(self, "MpcConfig.")
        numbers = [v for f in fields(self) for v in np.atleast_1d(getattr(self, f.name)).tolist()]
        if not all(isfinite(v) and v >= 0.0 for v in numbers):
            raise AirworthyError(f"The MPC cannot run with {self}; expected finite numbers of 0 or more.")
        if not (1 <= self.horizon <= HORIZON_MAX and self.iterations >= 1 and self.rate > 0.0 and self.rate_max > 0.0):
            raise AirworthyError(
                f"The MPC got horizon {self.horizon}, {self.iterations} iterations, rate {self.rate} Hz and rate_max"
                f" {self.rate_max}; expected 1 to {HORIZON_MAX} steps, an iteration or more, and positive rates."
            )
        if not (self.thrust > 0.0 and min(self.rates) > 0.0):
            raise AirworthyError("The MPC's weights of thrust and rates must be above 0: the inputs would not be determined.")

    @property
    def state_weights(self) -> Array:
        """Diagonal of Q, (10,)."""
        return np.repeat([self.position, self.velocity, self.attitude], [3, 3, 4])

    @property
    def input_weights(self) -> Array:
        """Diagonal of R, (4,)."""
        return np.array([self.thrust, *self.rates])

    @property
    def terminal_weights(self) -> Array:
        """Diagonal of Q_N, (10,)."""
        return np.full(STATE_SIZE, self.terminal)

    @property
    def lower(self) -> Array:
        """Least input, (4,)."""
        return np.array([0.0, -self.rate_max, -self.rate_max, -self.rate_max])

    @property
    def upper(self) -> Array:
        """Largest input, (4,)."""
        return np.array([1.0, self.rate_max, self.rate_max, self.rate_max])


# StanfordMSL/SousVide at 7cd1a50, configs/policy/vrmpc_fr.json and vrmpc_br.json.
MPC_PRESETS = {
    "flightroom": MpcConfig(),
    "backroom": MpcConfig(velocity=0.1, attitude=0.2),
}
"""Weights that are published; data synthesis uses "flightroom"."""


def mpc_preset(name: str) -> MpcConfig:
    """Return published weights by name.

    Raises:
        UnknownNameError: If there are none of this name.
    """
    if name not in MPC_PRESETS:
        raise unknown_name("MPC preset", name, MPC_PRESETS)
    return MPC_PRESETS[name]


# -----------------------------------------------------------------------------------------------------------------------------

TRIANGLE = STATE_SIZE * (STATE_SIZE + 1) // 2
"""Numbers of a symmetric matrix of the state, row by row from the diagonal on."""
INPUT_TRIANGLE = INPUT_SIZE * (INPUT_SIZE + 1) // 2
Numbers = tuple[Any, ...]


def derivative(x: Numbers, u: Numbers, full: Any, gravity: Any) -> Numbers:
    """Return the time derivative of the state.

    Args:
        x: Position, velocity (world, z up) and quaternion x, y, z, w.
        u: Thrust command in [0, 1], body rates [rad/s].
        full: Thrust at full command over mass [m/s^2].
        gravity: [m/s^2]
    """
    qx, qy, qz, qw = x[6:]
    push = full * u[0]
    # The axis of thrust as the specification writes it, which is not of unit length where the quaternion is not.
    up = (2.0 * (qx * qz + qy * qw), 2.0 * (qy * qz - qx * qw), qw * qw - qx * qx - qy * qy + qz * qz)
    turn = quaternion_derivative((qx, qy, qz, qw), u[1:])
    return (*x[3:6], push * up[0], push * up[1], push * up[2] - gravity, *turn)


def step(x: Numbers, u: Numbers, full: Any, gravity: Any, dt: Any) -> Numbers:
    """Return the state after `dt` [s] (Runge-Kutta, fourth order).

    Args:
        x: State, `STATE_SIZE` numbers, world, z up [m, m/s].
        u: Thrust command in [0, 1] and body rates [rad/s].
        full: Thrust at full command over mass [m/s^2].
        gravity: [m/s^2]
        dt: [s]
    """

    def along(k: Numbers, share: Any) -> Numbers:
        return tuple(a + share * b for a, b in zip(x, k, strict=True))

    k1 = derivative(x, u, full, gravity)
    k2 = derivative(along(k1, 0.5 * dt), u, full, gravity)
    k3 = derivative(along(k2, 0.5 * dt), u, full, gravity)
    k4 = derivative(along(k3, dt), u, full, gravity)
    return tuple(a + dt * (b + 2.0 * (c + d) + e) / 6.0 for a, b, c, d, e in zip(x, k1, k2, k3, k4, strict=True))


def back(
    x: Numbers,
    u: Numbers,
    full: Any,
    gravity: Any,
    dt: Any,
    value: Numbers,
    slope: Numbers,
    x_slope: Numbers,
    u_slope: Numbers,
    x_bend: Numbers,
    u_bend: Numbers,
) -> tuple[list[Any], ...]:
    """Return the quadratic model of what is left to pay from a stage on, by changes of its state and input.

    Args:
        x: State.
        u: Input.
        full: As of `derivative`.
        gravity: As of `derivative`.
        dt: As of `step`.
        value: Hessian of the value function of the next stage, upper triangle.
        slope: Its gradient.
        x_slope: Gradient of the stage's cost by the state.
        u_slope: And by the input.
        x_bend: Diagonal of its Hessian by the state.
        u_bend: And by the input.

    Returns:
        Q_x (10), Q_u (4), Q_xx (upper triangle), Q_uu (upper triangle), Q_ux (4 x 10).
    """
    n, m = STATE_SIZE, INPUT_SIZE
    _, rows = jacobian(lambda *z: step(z[:n], z[n:], full, gravity, dt), (*x, *u))
    rows = [[_number(entry) for entry in row] for row in rows]
    a, b = list(zip(*(row[:n] for row in rows), strict=True)), list(zip(*(row[n:] for row in rows), strict=True))
    full_value = _symmetric(value)
    va = [[_dot(full_value[i], column) for i in range(n)] for column in a]
    vb = [[_dot(full_value[i], column) for i in range(n)] for column in b]
    q_xx = [_plus(_dot(a[i], va[j]), x_bend[i] if i == j else 0.0) for i in range(n) for j in range(i, n)]
    q_uu = [_plus(_dot(b[i], vb[j]), u_bend[i] if i == j else 0.0) for i in range(m) for j in range(i, m)]
    q_ux = [_dot(b[i], va[j]) for i in range(m) for j in range(n)]
    q_x = [_plus(x_slope[i], _dot(a[i], slope)) for i in range(n)]
    q_u = [_plus(u_slope[i], _dot(b[i], slope)) for i in range(m)]
    return q_x, q_u, q_xx, q_uu, q_ux


def improve(q_xx: Numbers, q_x: Numbers, q_ux: Numbers, gain: Numbers, change: Numbers) -> tuple[list[Any], list[Any]]:
    """Return the Hessian (upper triangle) and gradient of the stage's value function, with the input's change and feedback put
    in.

    Both terms of the feedback cancel against each other where it is optimal on the free inputs and zero on those at a bound.

    Args:
        q_xx: Hessian by the state, upper triangle.
        q_x: Gradient by the state.
        q_ux: Mixed derivatives, input by state.
        gain: Feedback, input by state.
        change: Of the input.
    """
    n = STATE_SIZE
    cross = [tuple(q_ux[i * n + j] for i in range(INPUT_SIZE)) for j in range(n)]
    feedback = [tuple(gain[i * n + j] for i in range(INPUT_SIZE)) for j in range(n)]
    pairs = [(i, j) for i in range(n) for j in range(i, n)]
    value = [old + _dot(cross[i], feedback[j]) for old, (i, j) in zip(q_xx, pairs, strict=True)]
    return value, [q_x[i] + _dot(cross[i], change) for i in range(n)]


@cache
def stage_blocks() -> tuple[TracedBlock, ...]:
    """Return the equations as native code."""
    n, m = STATE_SIZE, INPUT_SIZE
    model = {"x": n, "u": m, "full": None, "gravity": None, "dt": None}
    given = {"value": TRIANGLE, "slope": n, "x_slope": n, "u_slope": m, "x_bend": n, "u_bend": m}
    found = {"q_x": n, "q_u": m, "q_xx": TRIANGLE, "q_uu": INPUT_TRIANGLE, "q_ux": m * n}
    parts = {"q_xx": TRIANGLE, "q_x": n, "q_ux": m * n, "gain": m * n, "change": m}
    return (
        trace(step, "step", model, {"out": n}),
        trace(back, "back", {**model, **given}, found),
        trace(improve, "improve", parts, {"value": TRIANGLE, "slope": n}),
    )


def _symmetric(triangle: Sequence[Any]) -> list[list[Any]]:
    full = [[0.0] * STATE_SIZE for _ in range(STATE_SIZE)]
    entries = iter(triangle)
    for i in range(STATE_SIZE):
        for j in range(i, STATE_SIZE):
            full[i][j] = full[j][i] = next(entries)
    return full


def _number(entry: Any) -> Any:
    """Return a traced value that is known at build time as a number."""
    known = getattr(entry, "constant", None)
    return entry if known is None else float(known)


def _is(entry: Any, number: float) -> bool:
    return isinstance(entry, int | float) and entry == number


def _plus(a: Any, b: Any) -> Any:
    return b if _is(a, 0.0) else a if _is(b, 0.0) else a + b


def _dot(a: Sequence[Any], b: Sequence[Any]) -> Any:
    total: Any = 0.0
    for x, y in zip(a, b, strict=True):
        if _is(x, 0.0) or _is(y, 0.0):
            continue
        total = _plus(total, y if _is(x, 1.0) else x if _is(y, 1.0) else x * y)
    return total
