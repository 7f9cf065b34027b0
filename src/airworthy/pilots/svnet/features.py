"""What SV-Net reads and gives: one text for training and for flight.

The network works in the frames of the specification (world z down, body x forward, y right, z down, thrust command in [-1, 0]);
everything around it is z up. Here is where they meet. Sources: SOUS VIDE, eq. 3 and section 7 of the specification;
StanfordMSL/SousVide, src/sousvide/control/pilot.py, for order and normalisation.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import conjugate, multiply, z_down_attitude, z_down_vector

__all__ = [
    "HISTORY_SIZE",
    "HISTORY_TICKS",
    "IMAGE_MEAN",
    "IMAGE_STD",
    "OBJECTIVE_SIZE",
    "OBSERVABLE_SIZE",
    "VISION_SIZE",
    "Form",
    "History",
    "from_command",
    "history_features",
    "history_rows",
    "observable",
    "to_command",
    "to_objective",
    "vision_state",
]

Form = Literal["paper", "code"]
"""Of the history's position rows: dt v_k, as eq. 3 says, or v_k, as the published code stores."""

# Source: spec/sousvide section 7: the last five ticks of 15 numbers each.
HISTORY_TICKS = 5
ROW_SIZE = 15
"""dt, dt v (3), change of v (3), quaternion (4), command (4)."""
HISTORY_SIZE = HISTORY_TICKS * ROW_SIZE
# Source: spec/sousvide section 7: height, velocity, quaternion; height, quaternion; the objective raw; the command.
OBSERVABLE_SIZE, VISION_SIZE, OBJECTIVE_SIZE, COMMAND_SIZE = 8, 5, 18, 4
# Source: spec/sousvide section 7 (SousVide, control/pilot.py): the usual statistics of ImageNet, with which the backbone
# was pre-trained.
IMAGE_MEAN = (0.485, 0.456, 0.406)
"""Of red, green, blue in [0, 1]; so are the deviations."""
IMAGE_STD = (0.229, 0.224, 0.225)


def z_down(state: ArrayLike) -> Array:
    """Return states (..., 10), position, velocity and quaternion, from z-up frames."""
    given = np.asarray(state, np.float64)
    parts = (z_down_vector(given[..., :3]), z_down_vector(given[..., 3:6]), z_down_attitude(given[..., 6:]))
    return np.concatenate(parts, axis=-1)


def observable(state: ArrayLike) -> Array:
    """Return height, velocity and quaternion (..., 8) of sensed states (..., 10), z up; the lateral position is dropped here.

    Of the two quaternions of an attitude it is the one with w >= 0: a network that was shown the one in roll-outs, and is shown
    the other in a flight that has turned round since, would not know where it is.

    Raises:
        AirworthyError: If the last axis is not of 10.
    """
    observed = z_down(_ten(state))[..., 2:]
    return np.concatenate([observed[..., :4], _upper(observed[..., 4:])], axis=-1)


def vision_state(observed: ArrayLike) -> Array:
    """Return height and quaternion (..., 5) of what `observable` gave (..., 8)."""
    given = np.asarray(observed, np.float64)
    return np.concatenate([given[..., :1], given[..., 4:]], axis=-1)


def from_command(command: ArrayLike) -> Array:
    """Return the network's command (..., 4) from a share of full thrust and body rates, z up."""
    # Thrust is negative along z down, and a half turn about x keeps the x axis: x keeps its sign, y and z change theirs.
    return np.asarray(command, np.float64) * np.array([-1.0, 1.0, -1.0, -1.0])


def to_command(output: ArrayLike) -> Array:
    """Return the share of full thrust and body rates (..., 4), z up, from the network's command: its own inverse."""
    return from_command(output)


def to_objective(objective: ArrayLike) -> Array:
    """Return what the network is told of its course (..., 18) from `objective_of`'s numbers, z up."""
    given = np.asarray(objective, np.float64)
    if given.shape[-1] != OBJECTIVE_SIZE:
        raise AirworthyError(f"An objective has shape {given.shape}; expected (..., {OBJECTIVE_SIZE}).")
    vectors = [z_down_vector(given[..., k : k + 3]) for k in (1, 4, 7)]
    turns = [z_down_attitude(given[..., k : k + 4]) for k in (10, 14)]
    return np.concatenate([given[..., :1], *vectors, *turns], axis=-1)


def history_rows(
    time: Array, observed: Array, command: Array, before_time: Array, before: Array, form: Form = "paper"
) -> Array:
    """Return rows (..., 15) of ticks k from these and the ticks before them (eq. 3), in the specification's frames.

    Args:
        time: (...,) of tick k [s].
        observed: (..., 8) observable state of tick k.
        command: (..., 4) the network's command that was given at tick k - 1.
        before_time: (...,) of tick k - 1 [s].
        before: (..., 8) of tick k - 1.
        form: Of the position rows.
    """
    if form not in ("paper", "code"):
        raise AirworthyError(f"The history's form is {form!r}; expected 'paper' or 'code'.")
    # Real time between ticks, not the nominal period: a late tick moved farther.
    dt = (time - before_time)[..., None]
    velocity = observed[..., 1:4]
    moved = dt * velocity if form == "paper" else velocity
    turn = _upper(multiply(conjugate(observed[..., 4:]), before[..., 4:]))
    return np.concatenate([dt, moved, velocity - before[..., 1:4], turn, command], axis=-1)


def history_features(time: ArrayLike, state: ArrayLike, command: ArrayLike, form: Form = "paper") -> Array:
    """Return histories (n, k, 75) at every tick of whole roll-outs, as a flight would have them.

    Args:
        time: (n, k) or (k,) [s].
        state: (n, k, 10) sensed, z up.
        command: (n, k, 4) share of full thrust and body rates, z up; that of tick i enters the history of tick i + 1.
        form: Of the position rows.
    """
    observed, given = observable(state), from_command(command)
    count, ticks = observed.shape[:2]
    clock = np.broadcast_to(np.asarray(time, np.float64), (count, ticks))
    rows = np.zeros((count, ticks - 1 + HISTORY_TICKS, ROW_SIZE))
    if ticks > 1:
        new = history_rows(clock[:, 1:], observed[:, 1:], given[:, :-1], clock[:, :-1], observed[:, :-1], form)
        rows[:, HISTORY_TICKS:] = new
    # At tick k the newest row is that of k; tick 0 has none.
    newest = np.arange(ticks)[:, None] + HISTORY_TICKS - 1 - np.arange(HISTORY_TICKS)
    return _flat(rows[:, newest])


def _flat(rows: Array) -> Array:
    """(..., 5, 15) newest first -> (..., 75): all five values of the first number, then of the second, and so on."""
    return np.ascontiguousarray(rows.swapaxes(-1, -2).reshape(*rows.shape[:-2], HISTORY_SIZE))


def _upper(attitude: Array) -> Array:
    """Return the same attitudes (..., 4) by quaternions with w >= 0."""
    return np.where(attitude[..., 3:] < 0.0, -attitude, attitude)


def _ten(state: ArrayLike) -> Array:
    given = np.asarray(state, np.float64)
    if given.shape[-1:] != (10,):
        raise AirworthyError(f"A sensed state has shape {given.shape}; expected (..., 10): position, velocity, quaternion.")
    return given


class History:
    """The histories of n flights, as they grow.

    Args:
        count: Flights n.
        form: Of the position rows.
    """

    def __init__(self, count: int, form: Form = "paper"):
        self._form: Form = form
        self._rows = np.zeros((count, HISTORY_TICKS, ROW_SIZE))
        self._last: dict[str, Any] = {"time": np.full(count, np.nan), "seen": np.zeros((count, OBSERVABLE_SIZE))}

    def push(self, time: ArrayLike, observed: ArrayLike, command: ArrayLike, which: ArrayBool | None = None) -> None:
        """Take in a tick: what is seen now, and the command that was given at the tick before. The first tick adds nothing.

        Args:
            time: (n,) [s].
            observed: (n, 8) of `observable`.
            command: (n, 4) the network's.
            which: (n,) flights that it is a tick for; None: all.
        """
        clock, now = np.asarray(time, np.float64), np.asarray(observed, np.float64)
        mine = np.ones(len(clock), bool) if which is None else which
        known = mine & np.isfinite(self._last["time"])
        row = history_rows(clock, now, np.asarray(command, np.float64), self._last["time"], self._last["seen"], self._form)
        self._rows[known] = np.concatenate([row[known, None], self._rows[known, :-1]], axis=1)
        self._last["time"] = np.where(mine, clock, self._last["time"])
        self._last["seen"] = np.where(mine[:, None], now, self._last["seen"])

    def features(self) -> Array:
        """Return (n, 75), zeros where nothing has happened yet."""
        return _flat(self._rows)

    def reset(self, ids: ArrayLike | None = None) -> None:
        """Begin flights anew (None: all)."""
        which = slice(None) if ids is None else np.asarray(ids)
        self._rows[which] = 0.0
        self._last["time"][which] = np.nan
