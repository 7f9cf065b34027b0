"""How flights are judged: item 10 of SOUS VIDE's acceptance list (specification, sections 9 and 12), by hand-made flights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.evaluation.metrics import evaluate_tracking
from airworthy.evaluation.tracking_protocol.tables import class_of
from airworthy.evaluation.verification.figure import Figure, below, zero
from airworthy.simulation import FlightTable
from airworthy.tasks import TrackingReference

__all__ = ["metric_figures"]

Array = NDArray[np.float64]
T = np.arange(0.0, 10.0 + 1e-9, 0.05)
"""(201,) [s]"""
LINE = TrackingReference(T, np.stack([T, 0.0 * T, 0.0 * T + 1.0], 1), np.tile([1.0, 0.0, 0.0], (len(T), 1)), 0.0 * T)
"""Along x at 1 m/s, 1 m up, facing along it."""


def metric_figures() -> Iterator[Figure]:
    """Every outcome class once, and the metrics of a flight whose numbers can be written down."""
    flights = _flights()
    for wanted, (table, collisions) in flights.items():
        (found,) = evaluate_tracking(table, LINE)
        wrong = int(class_of(found.outcome) != wanted) + int(found.collisions != collisions)
        yield zero(f"SOUS VIDE 10, hand-made flight '{wanted.replace('_', ' ')}': class and collisions that differ", wrong)
    # 0.2 m beside the path up to 5 s (101 rows), 0.4 m after that (100), touching once; float32 columns.
    aside = np.where(T <= 5.0 + 1e-9, 0.2, 0.4)
    (found,) = evaluate_tracking(_flight(y=aside, clearance=_touching()), LINE)
    error, near, length = (101 * 0.2 + 100 * 0.4) / 201, 100.0 * 101 / 201, 199 * 0.05 + np.hypot(0.05, 0.2)
    told = "SOUS VIDE 10, hand-made flight with one touch:"
    yield below(f"{told} tracking error off that by hand", abs(found.tracking_error_m - error), 1e-6, "m")
    yield below(f"{told} proximity off that by hand", abs(found.proximity_percent - near), 1e-6, "%")
    yield below(f"{told} collisions per metre off those by hand", abs(found.collisions_per_m * length - 1.0), 1e-6)


def _flights() -> dict[str, tuple[FlightTable, int]]:
    """By the paper's class: a flight, and how often it collides."""
    leaving = np.where(T > 5.0, T - 5.0, 0.0)
    return {
        "success": (_flight(y=0.2), 0),
        "success_recovered": (_flight(y=0.2, clearance=_touching()), 1),
        "partial": (_flight(yaw=np.where(T > 9.5, np.radians(35.0), 0.0)), 0),
        "failure_no_recovery": (_flight(y=leaving, clearance=_touching()), 1),
        "failure_off_course": (_flight(y=leaving), 0),
    }


def _touching() -> Array:
    """Clearance [m] of a flight that comes within the drone's 0.15 m once."""
    return np.where(np.abs(T - 5.0) < 0.2, 0.1, 1.0)


def _flight(y: Any = 0.0, yaw: Any = 0.0, clearance: Any = 1.0) -> FlightTable:
    """Along the line, moved aside by y [m], turned by yaw [rad], with a clearance [m]."""
    zeros = np.zeros(len(T))
    columns: dict[str, Any] = {"env": zeros, "t": T, "status": zeros}
    columns |= {f"velocity_{axis}_m_s": zeros for axis in "xyz"} | {f"rate_{axis}_rad_s": zeros for axis in "xyz"}
    columns |= {"position_x_m": T, "position_y_m": y + zeros, "position_z_m": 1.0 + zeros}
    columns |= {"attitude_x": zeros, "attitude_y": zeros}
    columns |= {"attitude_z": np.sin(0.5 * (yaw + zeros)), "attitude_w": np.cos(0.5 * (yaw + zeros))}
    return FlightTable.from_columns({**columns, "clearance_m": clearance + zeros})
