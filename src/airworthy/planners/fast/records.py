"""Records that go to compiled code and come back: one definition, as NumPy types and as text of C structs."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayAny, ArrayU8

FAR = 1e4
"""Distance of what is not known [m]."""

# Ours. Sizes of records are fixed, so that a batch is one array; what does not fit is given up and counted.
MOST_STEPS = 256
"""Longest chain of states that a search may give: more than the slowest way to its horizon takes."""

MOST_POINTS = 256
"""Ours: most control points of a spline, as many as a search may give states."""

NODE_BYTES = 6 * 8 + 3 * 8 + 3 * 8 + 6 * 4
"""Of one node of the search: state, input, duration, cost, estimate; cell, parent, place in the heap, slot."""


class Outcome(IntEnum):
    """How a kinodynamic search ended."""

    NO_PATH = 0
    REACH_END = 1
    """Joined with the goal by the analytic connection."""
    REACH_HORIZON = 2
    NEAR_END = 3
    """Next to the goal, but the connection is blocked."""


WINDOW = np.dtype(
    [
        ("cells", np.uint64),  # address of the occupied cells, 1 each
        ("field", np.uint64),  # address of the distances at their middles; 0: not asked for
        ("side", np.int32, (3,)),  # cells in memory, x slowest
        ("count", np.int32, (3,)),  # of which so many are in the window
        ("offset", np.int32, (3,)),  # where in memory the window's first cell is; behind the last one memory begins anew
        ("squares", np.int32),  # distances are 0: float32 metres, 1: int16 signed squares of cells
        ("resolution", np.float64),
        ("corner", np.float64, (3,)),  # lower corner of the first cell
        ("lower", np.float64, (3,)),  # of the box in which to fly
        ("upper", np.float64, (3,)),
    ]
)
"""What is known around a vehicle; see windows.py."""

PROBLEM = np.dtype(
    [
        ("start", np.float64, (6,)),  # position, velocity
        ("acceleration", np.float64, (3,)),  # at the start
        ("goal", np.float64, (6,)),
        ("speed", np.float64),  # limit of each component
        ("most", np.float64),  # acceleration, likewise
        ("held", np.int32),  # 1: begin with the present acceleration
        ("unused", np.int32),
    ]
)
"""What one flight asks of the kinodynamic search."""

FOUND = np.dtype(
    [
        ("status", np.int32),  # Outcome
        ("expansions", np.int32),
        ("nodes", np.int32),
        ("steps", np.int32),  # rows of the path
        ("attempts", np.int32),
        ("unused", np.int32),
        ("curve_time", np.float64),
        ("curve", np.float64, (12,)),  # three cubics, ascending; after REACH_END
        ("path", np.float64, (MOST_STEPS * 10,)),  # state, input, duration of each step, the last step first
    ]
)
"""What it answers."""

SEARCH_SETTINGS = np.dtype(
    [
        ("capacity", np.int32),
        ("checks", np.int32),
        ("horizon", np.float64),
        ("weight", np.float64),
        ("greed", np.float64),
        ("step_time", np.float64),
        ("first_time", np.float64),
    ]
)
"""See `KinoSettings`."""

DESCENT = np.dtype(
    [
        ("window", np.int32),  # number of its window
        ("count", np.int32),  # control points
        ("free_end", np.int32),  # 1: the last three points move too, held by the end term
        ("memory", np.int32),
        ("evaluations", np.int32),  # most
        ("sweeps", np.int32),  # most, of the time adjustment
        ("evaluations_done", np.int32),
        ("status", np.int32),  # LbfgsStatus
        ("fit", np.int32),  # begin with the spline through so many points; 0: with the control points given
        ("unused", np.int32),
        ("interval", np.float64),
        ("smooth", np.float64),
        ("distance", np.float64),
        ("feasible", np.float64),
        ("end", np.float64),
        ("clearance", np.float64),
        ("speed", np.float64),
        ("most", np.float64),
        ("gradient_tolerance", np.float64),
        ("step_tolerance", np.float64),
        ("value", np.float64),
        ("ends", np.float64, (12,)),  # of the fit: velocities at start and end, then accelerations
        ("points", np.float64, (3 * MOST_POINTS,)),  # of the fit
        ("control", np.float64, (3 * MOST_POINTS,)),  # in and out
        ("knots", np.float64, (MOST_POINTS + 4,)),  # out
    ]
)
"""One spline to be optimised, and what came of it."""

WATCH = np.dtype(
    [
        ("window", np.int32),  # number of its window
        ("count", np.int32),  # control points
        ("now", np.float64),  # time of the plan from which on to look
        ("ahead", np.float64),  # as far as this [m]
        ("hit", np.float64),  # out: seconds from now to the first meeting, -1 if there is none
        ("distance", np.float64),  # out: from where the plan is now to there
        ("goal", np.float64, (3,)),
        ("goal_least", np.float64),  # how far it should be from what is occupied [m]
        ("goal_near", np.int32),  # out: 1 where it is not farther
        ("unused", np.int32),
        ("control", np.float64, (3 * MOST_POINTS,)),
        ("knots", np.float64, (MOST_POINTS + 4,)),
    ]
)
"""One plan to be watched."""

MOST_PROBES = 512
"""Ours: points of a probe, at most."""

PROBE = np.dtype(
    [
        ("window", np.int32),  # number of its window
        ("count", np.int32),  # points
        ("points", np.float64, (3 * MOST_PROBES,)),
        ("distance", np.float64, (MOST_PROBES,)),  # out
    ]
)
"""Points whose distances from what is occupied are asked for."""

_C_TYPES = {"u8": "unsigned long long", "i4": "int", "f8": "double"}


def struct_text(name: str, record: np.dtype[Any]) -> str:
    """Return the C struct of a record. All of our records are laid out without padding."""
    assert record.fields is not None
    lines = []
    for field, (kind, *_) in record.fields.items():
        base, shape = kind.subdtype if kind.subdtype else (kind, ())
        sides = "".join(f"[{n}]" for n in shape)
        lines.append(f"  {_C_TYPES[base.str[1:]]} {field}{sides};")
    return f"struct {name} {{\n" + "\n".join(lines) + "\n};"


def as_bytes(record: ArrayAny) -> ArrayU8:
    """Return a record array as the bytes that a kernel is given; no copy."""
    return record.reshape(-1).view(np.uint8)
