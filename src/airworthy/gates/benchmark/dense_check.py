"""Approved plans looked at again, sample by sample: a check of certificates that shares nothing with their proofs.

A proof bounds polynomials in Bernstein form. Here the path is evaluated at 10 kHz in float64, as it is flown, and its
derivatives, its height, its distance to every bar and its passages through gates are compared with what the certificate
promises. What it promises of attitudes and rotors is asked of the controller itself (`held`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.gates.benchmark.controller_check import LAW_RATE, held_row
from airworthy.gates.planner.plans import BoundaryPlan, PlanOptions
from airworthy.trajectories import Gate, Trajectory
from airworthy.trajectories.limits import usage
from airworthy.trajectories.proof import YawedBox

__all__ = ["DENSE_RATE", "box_distance", "dense_row", "dense_sum"]


# Ours: a sample every millimetre at 10 m/s.
DENSE_RATE = 10_000.0
"""[Hz]"""
SLACK = 1e-9
"""What rounding may add, relative to a limit."""
# As in `crossings`: above rounding, below anything that is flown.
_ON_PLANE = 1e-9  # [m]
# Ours: samples at once, against all bars.
_CHUNK = 2000


def dense_row(made: BoundaryPlan, options: PlanOptions) -> dict[str, Any]:
    """Largest share used of the limits, least clearance and least height at 10 kHz, and whether a promise is broken.

    Args:
        made: An approved plan.
        options: What it must keep.
    """
    path = made.approved()
    bars = [bar for gate in dict.fromkeys(made.gates) for bar in gate.bars()]
    count = int(np.ceil(path.duration * DENSE_RATE)) + 1
    used, near, low = 0.0, np.inf, np.inf
    for begin in range(0, count, _CHUNK):
        t = np.minimum(np.arange(begin, min(begin + _CHUNK, count)) / DENSE_RATE, path.duration)
        flat = path.sample(t)
        used = max(used, usage(options.limits, flat))
        low = min(low, float(np.min(flat.position[:, 2])))
        near = min(near, _nearest(flat.position, bars, near))
    broken = used > 1.0 + SLACK or near < options.clearance * (1.0 - SLACK) or low < options.floor * (1.0 - SLACK)
    passes = passages(path, made.gates) == [(gate, True) for gate in made.gates]
    bounded = options.limits.body_rate is not None or options.limits.rotors
    held = held_row(path, options.limits) if bounded else None
    broken = broken or not passes or (held is not None and held["broken"])
    checked = {"samples": count, "used": used, "clearance_m": near, "floor_m": low, "passes": passes, "held": held}
    return checked | {"broken": bool(broken)}


def passages(path: Trajectory, gates: Sequence[Gate]) -> list[tuple[Gate, bool]]:
    """Gates whose openings a path goes through, and whether forwards, in order of time, by samples at 10 kHz."""
    t = np.arange(int(path.duration * DENSE_RATE) + 1) / DENSE_RATE
    position = path.sample(t).position
    met: list[tuple[float, Gate, bool]] = []
    for gate in dict.fromkeys(gates):
        away = position - np.asarray(gate.position)
        left = np.array([-np.sin(gate.yaw), np.cos(gate.yaw), 0.0])
        ahead = away @ gate.normal
        known = np.flatnonzero(np.abs(ahead) > _ON_PLANE)  # without samples in the plane itself, where paths join
        ahead, aside, above, when = ahead[known], (away @ left)[known], away[known, 2], t[known]
        inside = (np.abs(aside) <= 0.5 * gate.opening[0]) & (np.abs(above) <= 0.5 * gate.opening[1])
        rows = np.flatnonzero((ahead[:-1] < 0.0) != (ahead[1:] < 0.0))
        met += [(float(when[k]), gate, bool(ahead[k + 1] > 0.0)) for k in rows if inside[k]]
    return [(gate, forwards) for _, gate, forwards in sorted(met, key=lambda item: item[0])]


def _nearest(points: Array, bars: Sequence[YawedBox], known: float) -> float:
    """Least distance of points (n, 3) to any bar that may be nearer than what is known [m]."""
    low, high = points.min(axis=0), points.max(axis=0)
    least = np.inf
    for bar in bars:
        center, reach = np.array(bar.center), float(np.linalg.norm(bar.half_size))
        if np.linalg.norm(np.maximum(0.0, np.maximum(low - center, center - high))) - reach < min(known, least):
            least = min(least, float(np.min(box_distance(points, bar))))
    return least


def box_distance(points: Array, box: YawedBox) -> Array:
    """Distance of points (n, 3) to a box, 0 inside [m], (n,)."""
    c, s = np.cos(box.yaw), np.sin(box.yaw)
    x, y, z = (points - np.array(box.center)).T
    local = np.stack((c * x + s * y, c * y - s * x, z), axis=-1)
    return np.asarray(np.linalg.norm(np.maximum(np.abs(local) - np.array(box.half_size), 0.0), axis=-1))


def dense_sum(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Over all approved plans."""
    held = [row["held"] for row in rows if row["held"]]
    return {
        "plans": len(rows),
        "samples": sum(row["samples"] for row in rows),
        "rate_hz": DENSE_RATE,
        "broken": sum(row["broken"] for row in rows),
        "used_max": max((row["used"] for row in rows), default=None),
        "clearance_min_m": min((row["clearance_m"] for row in rows), default=None),
        "floor_min_m": min((row["floor_m"] for row in rows), default=None),
        "law_rate_hz": LAW_RATE,
        "law_samples": sum(row["samples"] for row in held),
        "body_rate_max": max((row["rate_max"] for row in held), default=None),
        "rotor_use_max": max((row["rotor_use"] for row in held), default=None),
        "moment_residual_max": max((row["moment_residual"] for row in held), default=None),
    }
