"""What the controller itself makes of an approved plan: the law flown on the exact reference, 20,000 times a second.

A proof bounds the law's equations in intervals. Here the law is asked as it is when it flies: in the attitude that it holds it
must ask for the reference's thrust and for no moment; how fast that attitude turns, and how fast that changes, is found by
differences of it, whatever any formula says; and rotors must make the force and the moment of a rigid body that does so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from airworthy.control.geometric import BodyState
from airworthy.control.levels import Reference
from airworthy.control.mellinger import MellingerState, mellinger_control, reference_rates
from airworthy.control.mellinger_gains import mellinger_parameters
from airworthy.core.arrays import Array
from airworthy.core.frames import from_matrix
from airworthy.trajectories import FlatSample, Limits, RotorBound, Trajectory

__all__ = ["LAW_RATE", "held_row"]


# Ours: forty times the firmware's loop, so that what certificates bound between ticks is looked at between ticks.
LAW_RATE = 20_000.0
"""[Hz]"""
RATE_SHARE = 20000.0 / 32000.0
"""Of a moment's clip that the law asks for per error of the rate [s/rad]. Differences over a knot, where the angular
acceleration jumps, leave up to this times the acceleration times a step."""
SLACK = 1e-6
"""Relative, of rates and rotor thrusts found by differences."""
# Ours: samples at once, so that memory does not grow with the path.
_CHUNK = 8000
_NOTHING = (0.0, 0.0, 0.0)


def held_row(path: Trajectory, limits: Limits) -> dict[str, Any]:
    """Largest rates, accelerations and use of rotors, and whether a promise is broken.

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
    broken = rate > most * (1.0 + SLACK) or use > 1.0 + SLACK or moment > RATE_SHARE * turning / LAW_RATE or lift > SLACK
    row = {"samples": int(path.duration * LAW_RATE), "rate_max": rate, "acceleration_max": turning, "rotor_use": use}
    return row | {"moment_residual": moment, "thrust_residual": lift, "broken": bool(broken)}


def _chunks(path: Trajectory) -> Iterator[FlatSample]:
    """Yield samples that overlap by what differences take at both ends."""
    count = int(path.duration * LAW_RATE) + 1
    for begin in range(0, count - 5, _CHUNK):
        yield path.sample(np.arange(begin, min(begin + _CHUNK + 4, count)) / LAW_RATE)


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
