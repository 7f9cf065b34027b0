"""Approved plans looked at again, sample by sample: a check of certificates that shares nothing with their proofs.

A proof bounds polynomials in Bernstein form. Here the path is evaluated at 10 kHz in float64, as it is flown, and its
derivatives, its height, its distance to every bar and its passages through gates are compared with what the certificate
promises. What it promises of attitudes and rotors is asked of the controller itself (`held`).

What the controller itself makes of an approved plan: the law flown on the exact reference, 20,000 times a second.

A proof bounds the law's equations in intervals. Here the law is asked as it is when it flies: in the attitude that it holds it
must ask for the reference's thrust and for no moment; how fast that attitude turns, and how fast that changes, is found by
differences of it, whatever any formula says; and rotors must make the force and the moment of a rigid body that does so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from airworthy.control.geometric import BodyState
from airworthy.control.levels import Reference
from airworthy.control.mellinger import MellingerState, mellinger_control, reference_rates
from airworthy.control.mellinger_gains import mellinger_parameters
from airworthy.core.arrays import Array
from airworthy.core.frames import from_matrix
from airworthy.gates.planner.certificate import BoundaryPlan, PlanOptions
from airworthy.trajectories import FlatSample, Gate, Limits, RotorBound, Trajectory
from airworthy.trajectories.limits import usage
from airworthy.trajectories.proof import YawedBox

__all__ = ["DENSE_RATE", "LAW_RATE", "box_distance", "dense_row", "dense_sum", "held_row"]


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
    """Return the largest share used of the limits, least clearance and least height at 10 kHz, and whether a promise is broken.

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
    """Return gates whose openings a path goes through, and whether forwards, in order of time, by samples at 10 kHz."""
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
    """Return the distance of points (n, 3) to a box, 0 inside [m], (n,)."""
    c, s = np.cos(box.yaw), np.sin(box.yaw)
    x, y, z = (points - np.array(box.center)).T
    local = np.stack((c * x + s * y, c * y - s * x, z), axis=-1)
    return np.asarray(np.linalg.norm(np.maximum(np.abs(local) - np.array(box.half_size), 0.0), axis=-1))


def dense_sum(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return sums over all approved plans."""
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


# Ours: forty times the firmware's loop, so that what certificates bound between ticks is looked at between ticks.
LAW_RATE = 20_000.0
"""[Hz]"""
RATE_SHARE = 20000.0 / 32000.0
"""Of a moment's clip that the law asks for per error of the rate [s/rad]. Differences over a knot, where the angular
acceleration jumps, leave up to this times the acceleration times a step."""
LAW_SLACK = 1e-6
"""Relative, of rates and rotor thrusts found by differences."""
# Ours: samples at once, so that memory does not grow with the path.
_LAW_CHUNK = 8000
_NOTHING = (0.0, 0.0, 0.0)


def held_row(path: Trajectory, limits: Limits) -> dict[str, Any]:
    """Return the largest rates, accelerations and use of rotors, and whether a promise is broken.

    Args:
        path: Of an approved plan.
        limits: What it must keep; one that bounds neither body rates nor rotors has nothing to be held against.
    """
    rate, turning, use, moment, lift = 0.0, 0.0, 0.0, 0.0, 0.0
    for sample in _chunks(path):
        axes, w, w_dot = _held(sample, limits.gravity)
        # Two samples are lost at each end to the central differences of attitude and rate.
        inner = FlatSample(*(getattr(sample, name)[2:-2] for name in sample.__dataclass_fields__))
        asked, residual = _asked(inner, axes[2:-2], w[1:-1], limits.gravity)
        thrust = np.linalg.norm(inner.acceleration + np.array([0.0, 0.0, limits.gravity]), axis=-1)
        rate = max(rate, float(np.max(np.linalg.norm(w, axis=-1))))
        turning = max(turning, float(np.max(np.abs(w_dot))))
        moment, lift = max(moment, residual), max(lift, float(np.max(np.abs(asked / thrust - 1.0))))
        use = max([use, *(_rotor_use(bound, thrust, w[1:-1], w_dot) for bound in limits.rotors)])
    most = np.inf if limits.body_rate is None else limits.body_rate
    broken = (
        rate > most * (1.0 + LAW_SLACK) or use > 1.0 + LAW_SLACK or moment > RATE_SHARE * turning / LAW_RATE or lift > LAW_SLACK
    )
    row = {"samples": int(path.duration * LAW_RATE), "rate_max": rate, "acceleration_max": turning, "rotor_use": use}
    return row | {"moment_residual": moment, "thrust_residual": lift, "broken": bool(broken)}


def _chunks(path: Trajectory) -> Iterator[FlatSample]:
    """Yield samples that overlap by what differences take at both ends."""
    count = int(path.duration * LAW_RATE) + 1
    for begin in range(0, count - 5, _LAW_CHUNK):
        yield path.sample(np.arange(begin, min(begin + _LAW_CHUNK + 4, count)) / LAW_RATE)


def _held(sample: FlatSample, gravity: float) -> tuple[Array, Array, Array]:
    """Attitudes as columns (n, 3, 3), z along the thrust and y normal to it and to the heading; and by central differences body
    rates (n - 2, 3) and angular accelerations (n - 4, 3)."""
    z = sample.acceleration + np.array([0.0, 0.0, gravity])
    z /= np.linalg.norm(z, axis=-1, keepdims=True)
    y = np.cross(z, np.stack((np.cos(sample.yaw), np.sin(sample.yaw), 0.0 * sample.yaw), axis=-1))
    y /= np.linalg.norm(y, axis=-1, keepdims=True)
    axes = np.stack((np.cross(y, z), y, z), axis=-1)
    # Half the difference of R(-h)^T R(h) and its transpose is sin(angle) along the turn's axis.
    step = np.einsum("nji,njk->nik", axes[:-2], axes[2:])
    turn = 0.5 * np.stack(
        (step[:, 2, 1] - step[:, 1, 2], step[:, 0, 2] - step[:, 2, 0], step[:, 1, 0] - step[:, 0, 1]), axis=-1
    )
    w = turn * (0.5 * LAW_RATE)
    return axes, w, (w[2:] - w[:-2]) * (0.5 * LAW_RATE)


def _asked(sample: FlatSample, axes: Array, w: Array, gravity: float) -> tuple[Array, float]:
    """Thrust over mass that the law asks for [m/s^2], and its largest moment command over the clip, in this attitude."""
    p = mellinger_parameters("mellinger_firmware", gravity)
    v = [tuple(np.moveaxis(x, -1, 0)) for x in (sample.position, sample.velocity, sample.acceleration, sample.jerk, w)]
    reference = Reference(position=v[0], velocity=v[1], acceleration=v[2], jerk=v[3], yaw=sample.yaw, yaw_rate=sample.yaw_rate)
    state = BodyState(v[0], v[1], tuple(np.moveaxis(from_matrix(axes), -1, 0)), v[4])
    memory = MellingerState(_NOTHING, _NOTHING, _NOTHING)
    thrust, moment, _ = mellinger_control(state, reference, reference_rates(reference, gravity), memory, 0.0, 0.002, p)
    worst = max(float(np.max(np.abs(m))) / top for m, top in zip(moment, p.moment_max, strict=True))
    return np.asarray(thrust) / (p.thrust_scale * p.mass), worst


def _rotor_use(bound: RotorBound, thrust: Array, w: Array, w_dot: Array) -> float:
    """Part of its range that any rotor uses: 1 at `least` and at `most`."""
    xx, yy, zz, xy, xz, yz = bound.inertia
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    moment = w_dot @ inertia + np.cross(w, w @ inertia)
    wrench = np.concatenate(((bound.mass * thrust)[:, None], moment), axis=-1)
    share = wrench @ np.array(bound.inverse).T / np.array(bound.thrust_max)
    return float(np.max(np.abs(2.0 * share - bound.most - bound.least)) / (bound.most - bound.least))
