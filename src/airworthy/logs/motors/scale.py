"""Motor commands that are no fractions of full: numbers of a firmware whose scale a mapping leaves out."""

from __future__ import annotations

import numpy as np

from airworthy.logs.record import Log

__all__ = ["NO_FLIGHT", "no_flight", "wrong_scale"]

COMMAND_MOST = 1.5
"""Ours: half of the commands of no fraction of full go further; controllers ask for a little more than full at most."""
NO_FLIGHT = "no second of it is usable flight"
"""What is said of a log that holds none."""


def wrong_scale(log: Log) -> str:
    """Return that motor commands are no fractions of full, and what to do, a clause; empty where they are.

    Args:
        log: Any.
    """
    if not log.has("motor_command"):
        return ""
    values = np.abs(log.stream("motor_command").values)
    values = values[np.isfinite(values) & (values > 0.0)]
    if not values.size or float(np.median(values)) <= COMMAND_MOST:
        return ""
    most = float(values.max())
    return f"motor commands go to {most:.4g}, expected 0 to 1: give their scale, or their unit, in the log's map"


def no_flight(log: Log) -> str:
    """Return that a log holds no usable flight, and why where that is known, a clause.

    Args:
        log: Of which no part is usable.
    """
    return f"{NO_FLIGHT}: {told}" if (told := wrong_scale(log)) else f"{NO_FLIGHT}; `airworthy logs show` gives each reason"
