"""Rotors that follow their commands, and rates that follow their torques, natively: step after step over whole logs.

Each goes from one step to the next, where NumPy takes a call for every operation of every step. Twins: `held_command.followed`
and `twin.integrated`.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.native_kernel import native_kernel, quiet_launch, quiet_warp

__all__ = ["follow_commands", "integrate_rates"]

_FOLLOW_ARGUMENTS = """
    values: float64[]  # (n, rotors) commands, each held for a period
    responses: float64[]  # (r, 4) a, b of rise and of fall
    count: int  # rotors
    period: float64  # [s]
    slowest: float64  # least rate at which a state follows [1/s]
    # output
    states: float64[]  # (r, n + 1, rotors)
"""
_TURN_ARGUMENTS = """
    begun: float64[]  # (sets, windows, 3) rates at first [rad/s]
    driven: float64[]  # (sets, windows, 2 steps + 1, 3) torque over inertia at ends and middles [rad/s2]
    inertias: float64[]  # (sets, 3, 3)
    inverses: float64[]  # (sets, 3, 3)
    damping: float64[]  # (sets, 3) [N m s]
    windows: int
    steps: int
    span: float64  # of a step [s]
    # output
    rates: float64[]  # (sets, windows, steps + 1, 3)
    slopes: float64[]  # (sets, windows, steps + 1, 3)
"""


@cache
def _kernel(name: str, arguments: str) -> Any:
    """Return a kernel by the name of its text; compiled at first launch, then cached on disk."""
    source = files("airworthy.vehicles.identification.prediction").joinpath("native", f"{name}_task.h").read_text()
    return native_kernel(f"identify_{name}", source, arguments, first=False)


def _launch(name: str, arguments: str, tasks: int, inputs: list[Any]) -> None:
    wp = quiet_warp()
    sent = [
        wp.array(one.reshape(-1), dtype=wp.float64, device="cpu", copy=False) if isinstance(one, np.ndarray)
        else wp.float64(one) if isinstance(one, float) else one
        for one in inputs
    ]  # fmt: skip
    if tasks:
        quiet_launch(_kernel(name, arguments), tasks, sent, "cpu")


def follow_commands(values: Array, responses: Array, period: float, slowest: float) -> Array:
    """Return rotor states at the edges of periods over which commands are held, (r, n + 1, rotors).

    Args:
        values: Commands, (n, rotors); the first is where rotors begin.
        responses: a, b of rise and a, b of fall, (r, 4) (`held_command.followed` has the equation).
        period: [s]
        slowest: Least rate at which a state follows [1/s].
    """
    given = [np.ascontiguousarray(part, np.float64) for part in (values, responses)]
    count, rotors = values.shape
    states = np.empty((len(responses), count + 1, rotors))
    _launch("follow", _FOLLOW_ARGUMENTS, len(responses) * rotors, [*given, rotors, float(period), float(slowest), states])
    return states


def integrate_rates(
    begun: Array, driven: Array, inertia: Array, inverse: Array, damping: Array, span: float
) -> tuple[Array, Array]:
    """Return body rates and angular accelerations at each step, (sets, windows, steps + 1, 3) each.

    Args:
        begun: Rates at first, (sets, windows, 3) [rad/s].
        driven: Torques over inertia at the ends and the middle of each step, (sets, windows, 2 steps + 1, 3) [rad/s2].
        inertia: (sets, 3, 3) [kg m2].
        inverse: Of these, (sets, 3, 3).
        damping: (sets, 3) [N m s].
        span: Of a step [s].
    """
    given = [np.ascontiguousarray(part, np.float64) for part in (begun, driven, inertia, inverse, damping)]
    sets, windows, places = driven.shape[:3]
    steps = (places - 1) // 2
    rates, slopes = np.empty((2, sets, windows, steps + 1, 3))
    _launch("turn", _TURN_ARGUMENTS, sets * windows, [*given, windows, steps, float(span), rates, slopes])
    return rates, slopes
