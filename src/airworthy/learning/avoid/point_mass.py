"""A vehicle as a point that accelerates as it is told, a little late: what the gradient goes through.

The specification (learning_by_reward 7.2) after Zhang et al., "Learning Vision-based Agile Flight via Differentiable Physics",
arXiv 2407.10648: a first-order lag from the commanded to the acting thrust, drag, gusts, trapezoidal integration. Its equations
are written once, over `ops` of whole rows, and run on torch tensors and on NumPy float64 arrays alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from airworthy.pilots.avoid_policy.pilot import GRAVITY

__all__ = ["Body", "advance", "attitude_axes"]


@dataclass
class Body:
    """What differs between flights; columns (env, 1), or one number for all."""

    lag: Any
    """Rate of the first-order lag of thrust [1/s]."""
    linear: Any
    """Drag per mass and speed [1/s]."""
    square: Any
    """Drag per mass and square of speed [1/m]."""
    wind: Any
    """World [m/s], (env, 3)."""


def advance(
    p: Any, v: Any, a: Any, act: Any, asked: Any, gust: Any, body: Body, dt: Any, ops: Any
) -> tuple[Any, Any, Any, Any]:
    """Return position, velocity, acceleration and acting command a step later.

    Args:
        p: World [m], (env, 3).
        v: [m/s]
        a: [m/s^2], of the step before.
        act: Acting command, net of gravity [m/s^2].
        asked: New command, the same.
        gust: Acceleration by gusts [m/s^2].
        body: What differs between flights.
        dt: Step [s], (env, 1).
        ops: The module of arrays: torch or NumPy.
    """
    # Exact over the step, so that a lag of any rate stays between the old command and the new.
    keep = ops.exp(-body.lag * dt)
    acting = asked * (1.0 - keep) + act * keep
    air = v - body.wind
    # 1e-12 under the root: its slope at rest would be infinite.
    speed = ops.sqrt((air * air).sum(1, keepdims=True) + 1e-12)
    new = acting + gust - (body.linear + body.square * speed) * air
    # Trapezoidal (specification): the acceleration of before carries the place, the mean of both the velocity.
    return p + v * dt + 0.5 * a * dt * dt, v + 0.5 * (a + new) * dt, new, acting


def attitude_axes(act: Any, heading: Any, ops: Any) -> tuple[Any, Any, Any]:
    """Return body axes forward, left and up, (env, 3) each, of a vehicle whose thrust gives an acceleration.

    Args:
        act: Net of gravity, world [m/s^2], (env, 3).
        heading: Unit vector of the heading, (env, 2).
        ops: The module of arrays: torch or NumPy.
    """
    join = ops.concatenate
    thrust = join([act[:, 0:2], act[:, 2:3] + GRAVITY], 1)
    # A multirotor's thrust is along its own vertical: who accelerates leans.
    up = thrust / ops.sqrt((thrust * thrust).sum(1, keepdims=True) + 1e-12)
    flat = join([heading, 0.0 * heading[:, 0:1]], 1)
    # Gram-Schmidt: the heading is kept as far as the lean allows.
    forward = flat - (flat * up).sum(1, keepdims=True) * up
    forward = forward / ops.sqrt((forward * forward).sum(1, keepdims=True) + 1e-12)
    left = join(
        [
            up[:, 1:2] * forward[:, 2:3] - up[:, 2:3] * forward[:, 1:2],
            up[:, 2:3] * forward[:, 0:1] - up[:, 0:1] * forward[:, 2:3],
            up[:, 0:1] * forward[:, 1:2] - up[:, 1:2] * forward[:, 0:1],
        ],
        1,
    )
    return forward, left, up
