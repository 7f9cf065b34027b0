"""One decision of a pilot, contained: whatever goes wrong in it becomes a `PilotFailure` or a lost flight."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.pilots.pilot import Observation, Pilot

_REASON_LENGTH = 300


class PilotFailure(Exception):
    """A pilot raised, or gave what is not a command; the message says what and where. It never leaves this room."""


def decide(pilot: Pilot, observation: Observation, env_count: int, width: int) -> tuple[Any, NDArray[np.bool_]]:
    """Ask a pilot for its command.

    Args:
        pilot: Who decides.
        observation: What it sees.
        env_count: Number of environments.
        width: Numbers of a command at its level.

    Returns:
        The command, float32, shape (env, width) or (width,), and which environments' commands are not finite, shape (env,).

    Raises:
        PilotFailure: It raised, or its command is not an array of real numbers of one of these shapes.
    """
    try:
        command = pilot.command(observation)
    except Exception as error:
        raise PilotFailure(_raised(error)) from error
    array = _numbers(command)
    if array.shape not in ((width,), (env_count, width)):
        raise PilotFailure(
            f"its command has shape {array.shape}; level {pilot.level!r} takes ({env_count}, {width}) or ({width},)"
        )
    lost = ~np.isfinite(array).all(axis=-1)
    return array, np.broadcast_to(lost, (env_count,))


def _numbers(command: Any) -> NDArray[np.float32]:
    """A command as an array, tensors from a GPU included; a number too large for float32 becomes infinite."""
    try:
        array = np.asarray(command.detach().cpu() if hasattr(command, "detach") else command)
        if array.dtype.kind not in "fiub":
            raise TypeError(f"an array of {array.dtype} holds no real numbers")
        with np.errstate(over="ignore"):
            return array.astype(np.float32)
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0][:_REASON_LENGTH]
        raise PilotFailure(f"its command is not an array of numbers: {reason}") from error


def _raised(error: Exception) -> str:
    """Kind and first line of an exception, and the place that raised it."""
    reason = (str(error).splitlines() or [""])[0][:_REASON_LENGTH]
    place = traceback.extract_tb(error.__traceback__)[-1]
    said = f"{type(error).__name__}: {reason}" if reason else type(error).__name__
    return f"{said} ({Path(place.filename).name}, line {place.lineno})"
