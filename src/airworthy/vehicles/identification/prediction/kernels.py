"""Rotors that follow their commands, and what sensors read of the vehicle that they drive, natively.

Each goes from one step to the next, where NumPy takes a call for every operation of every step; eight rotors, or windows, go
side by side. Twins: `held_command.followed`, `HeldCommand.at` and `twin.predicted`.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayInt
from airworthy.core.native_kernel import native_kernel, quiet_launch, quiet_warp

__all__ = ["LANES", "SLOWEST", "follow_commands", "sense_windows", "states_between"]

LANES = 8
"""Numbers that go side by side: as many of double precision as the widest registers hold."""
SLOWEST = 1e-6
"""Least rate at which a state follows [1/s]; a square response has none at standstill."""

_FOLLOW_ARGUMENTS = """
    values: float64[]  # (n, rotors) commands, each held for a period
    responses: float64[]  # (r, 4) a, b of rise and of fall
    count: int  # rotors
    period: float64  # [s]
    slowest: float64  # least rate at which a state follows [1/s]
    # output
    states: float64[]  # (r, n + 1, rotors)
"""
_BETWEEN_ARGUMENTS = """
    values: float64[]  # (n, rotors) commands, each held for a period
    edges: float64[]  # (r, n + 1, rotors) states where they take over
    of: int32[]  # (pairs,) whose states
    pairs: float64[]  # (pairs, 5) a, b of rise and of fall, and dead time [s]
    starts: float64[]  # (groups, lanes) of windows [s]
    count: int  # rotors
    places: int  # 2 steps + 1
    half: float64  # of a step [s]
    begin: float64  # of the first command [s]
    period: float64  # [s]
    slowest: float64  # least rate at which a state follows [1/s]
    # output
    states: float64[]  # (pairs, groups, places, rotors, lanes)
"""
_SENSE_ARGUMENTS = """
    plants: float64[]  # (sets, numbers), as `predict` puts them side by side
    states: float64[]  # (kinds, groups, 2 steps + 1, rotors, lanes) of rotors, fractions of full
    kinds: int32[]  # (sets,) which of them
    starts: float64[]  # (groups, lanes) [s]
    begun: float64[]  # (groups, 3, lanes) rates at first, as the sensor read them [rad/s]
    air: float64[]  # (groups, 2 steps + 1, 9, lanes), as of `Windows.air_in_lanes`; none where no set asks for it
    weights: float64[]  # (2 steps + 1,) of the force of the air
    push: float64[]  # (sets, windows, steps + 1, 3) angular acceleration added [rad/s^2]
    pushing: int  # whether there is one
    windows: int
    count: int  # rotors
    steps: int
    span: float64  # of a step [s]
    block_steps: int  # over which means are taken; 0: every step is told, the start first
    # output
    readings: float64[]  # (sets, windows, rows, 6) rates [rad/s] and specific forces [m/s^2]
"""


@cache
def _kernel(name: str, arguments: str) -> Any:
    """Return a kernel by the name of its text; compiled at first launch, then cached on disk."""
    folder = files("airworthy.vehicles.identification.prediction").joinpath("native")
    source = "\n".join(folder.joinpath(f"{part}.h").read_text() for part in ("lanes", f"{name}_task"))
    return native_kernel(f"identify_{name}", source, arguments, first=False)


def _launch(name: str, arguments: str, tasks: int, inputs: list[Any]) -> None:
    wp = quiet_warp()

    def sent(one: Any) -> Any:
        if isinstance(one, np.ndarray):
            kind = wp.int32 if one.dtype == np.int32 else wp.float64
            return wp.array(one.reshape(-1), dtype=kind, device="cpu", copy=False)
        return wp.float64(one) if isinstance(one, float) else one

    if tasks:
        quiet_launch(_kernel(name, arguments), tasks, [sent(one) for one in inputs], "cpu")


def follow_commands(values: Array, responses: Array, period: float) -> Array:
    """Return rotor states at the edges of periods over which commands are held, (r, n + 1, rotors).

    Args:
        values: Commands, (n, rotors); the first is where rotors begin.
        responses: a, b of rise and a, b of fall, (r, 4) (`held_command.followed` has the equation).
        period: [s]
    """
    given = [np.ascontiguousarray(part, np.float64) for part in (values, responses)]
    count, rotors = values.shape
    states = np.empty((len(responses), count + 1, rotors))
    tasks = -(-len(responses) * rotors // LANES)
    _launch("follow", _FOLLOW_ARGUMENTS, tasks, [*given, rotors, float(period), SLOWEST, states])
    return states


def states_between(
    values: Array,
    lattice: tuple[float, float],
    edges: Array,
    of: ArrayInt,
    responses: Array,
    delays: Array,
    starts: Array,
    half: float,
    places: int,
) -> Array:
    """Return rotor states along windows by several responses and dead times, (pairs, groups, places, rotors, lanes).

    Args:
        values: Commands, (n, rotors).
        lattice: When the first begins, and for how long each is held [s].
        edges: States where commands take over, by some responses, (r, n + 1, rotors).
        of: Which of these each pair has, (pairs,).
        responses: As of `follow_commands`, (pairs, 4).
        delays: Dead times [s], (pairs,).
        starts: Of windows [s], (groups, lanes).
        half: From one place to the next [s].
        places: Of each window.
    """
    rotors = values.shape[1]
    pairs = np.column_stack([responses, delays])
    states = np.empty((len(pairs), len(starts), places, rotors, LANES))
    times = [float(half), *map(float, lattice), SLOWEST]
    given = [
        np.ascontiguousarray(values, np.float64),
        edges,
        np.asarray(of, np.int32),
        pairs,
        starts,
        rotors,
        places,
        *times,
        states,
    ]
    _launch("between", _BETWEEN_ARGUMENTS, len(pairs) * len(starts), given)
    return states


def sense_windows(
    plants: Array,
    states: Array,
    kind: ArrayInt,
    starts: Array,
    begun: Array,
    air: Array,
    weights: Array,
    push: Array | None,
    count: int,
    span: float,
    block_steps: int,
) -> Array:
    """Return what gyro and accelerometer read in windows, rates and specific forces, (sets, windows, rows, 6).

    Args:
        plants: Numbers of each set side by side, (sets, numbers).
        states: Of rotors, fractions of full, (kinds, groups, 2 steps + 1, rotors, lanes).
        kind: Of each set, (sets,).
        starts: [s], (groups, lanes).
        begun: Rates at first, as the sensor read them [rad/s], (groups, 3, lanes).
        air: As of `Windows.air_in_lanes`; empty where no set asks for it.
        weights: Of the force of the air, (2 steps + 1,).
        push: Angular acceleration that is added [rad/s^2], (sets, windows, steps + 1, 3); None: none.
        count: Windows.
        span: Of a step [s].
        block_steps: Steps over which means are taken, the start left out; 0: each step is told, the start first.
    """
    places, rotors = states.shape[2:4]
    steps = (places - 1) // 2
    rows = steps // block_steps if block_steps else steps + 1
    readings = np.empty((len(plants), count, rows, 6))
    pushed = np.zeros(0) if push is None else np.ascontiguousarray(push, np.float64)
    given = [plants, states, np.asarray(kind, np.int32), starts, begun, air, weights, pushed, int(push is not None)]
    numbers = [count, rotors, steps, float(span), block_steps]
    _launch("sense", _SENSE_ARGUMENTS, len(plants) * len(starts), [*given, *numbers, readings])
    return readings
