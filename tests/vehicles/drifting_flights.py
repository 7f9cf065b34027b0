"""Logs of many flights at once of a small quadrotor whose values change on the way, by equations of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from airworthy.logs import Log, LogSource, LogStream
from airworthy.vehicles import Drag, RotorResponse, Uncertainty, Vehicle, frame_vehicle

GRAVITY, RATE, REST = 9.81, 250, 1.5
MASS, INERTIA, RATIO = 0.8, (4.0e-3, 4.4e-3, 7.6e-3), 0.015
LAG, DELAY = 0.04, 0.012
FULL = 2.1 * MASS * GRAVITY / 4.0
"""Thrust of a rotor at full command [N], an eighth of it linear."""
PUSH = 1.0
"""Deviation of a slow random angular acceleration about x and y [rad/s^2], and, times 0.1, of one along z [m/s^2]."""


def record(sure: bool = True) -> Vehicle:
    """The vehicle as it was identified."""
    base = frame_vehicle("quad_x:0.12", MASS)
    thrust = (0.0, 0.125 * FULL / 1e3, 0.875 * FULL / 1e6)
    torque = (0.0, RATIO * thrust[1], RATIO * thrust[2])
    rotors = tuple(replace(r, thrust=thrust, torque=torque, response=RotorResponse.first_order(LAG)) for r in base.rotors)
    damped = tuple(0.2 * v for v in INERTIA)
    made = replace(
        base,
        name="mine",
        rotors=rotors,
        inertia=(*INERTIA, 0.0, 0.0, 0.0),
        command_delay=DELAY,
        drag=Drag(angular_linear=(damped[0], damped[1], damped[2])),
    )
    names = ("mass", "thrust", "torque_ratio", "lag", "command_delay", "inertia_xx", "inertia_yy", "center_x", "center_y")
    sd = (0.005, 0.006, 0.02, 0.02, 0.0003, 0.01, 0.01, 0.0005, 0.0005)
    related = np.eye(len(names))
    for i, j in ((0, 1), (0, 5), (0, 6), (1, 5), (1, 6)):
        related[i, j] = related[j, i] = 0.5
    told = Uncertainty(
        names=names,
        transform=tuple("linear" if n in ("command_delay", "center_x", "center_y") else "log" for n in names),
        mean=(0.0,) * len(names),
        sd=sd,
        correlation=tuple(tuple(float(v) for v in row) for row in related),
        share=(0.9,) * len(names),
        state=500.0,
    )
    return replace(made, uncertainty=told) if sure else made


@dataclass(frozen=True)
class Change:
    """What a flight's vehicle becomes."""

    at: float = 0.0
    """[s] in the air."""
    mass: float = 1.0
    inertia: float = 1.0
    thrust: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    lag: float = 1.0
    delay: float = 0.0
    """Added [s]."""
    center: tuple[float, float] = (0.0, 0.0)
    """[m]"""
    over: float = 0.0
    """It takes so long [s]."""


NONE = Change()


def fly(changes: list[Change], seconds: float = 40.0, seed: int = 0, vigour: float = 1.0, push: float = PUSH) -> list[Log]:
    """Fly a batch closed loop, one flight per change, and log gyro, accelerometer and commands.

    Args:
        changes: One per flight.
        seconds: In the air.
        seed: Of steps, noise and pushes.
        vigour: Of steps of collective, roll, pitch and yaw; 0: hovering.
        push: As of PUSH.
    """
    draw, dt, n, count = np.random.default_rng(seed), 1.0 / RATE, len(changes), int(seconds * RATE)
    base = record()
    place, spin = np.array([r.position for r in base.rotors]), np.array([float(r.spin) for r in base.rotors])
    c1, c2 = 0.125 * FULL, 0.875 * FULL
    ratio, believed = RATIO, np.array(INERTIA)

    def moments(center: np.ndarray) -> np.ndarray:
        arm = place[None, :, :2] - center[:, None]
        return np.stack([arm[..., 1], -arm[..., 0], np.broadcast_to(spin * ratio, arm.shape[:2])], axis=1)

    allocation = np.linalg.inv(np.concatenate([np.ones((1, 1, 4)), moments(np.zeros((1, 2)))], axis=1)[0])
    hover = float((-c1 + np.sqrt(c1**2 + c2 * MASS * GRAVITY)) / (2.0 * c2))
    hold = RATE // 4
    steps = np.repeat(draw.choice([-1.0, 0.0, 1.0], (count // hold + 1, n, 4)), hold, axis=0)[:count] * vigour
    state, commands = np.full((n, 4), hover), np.full((count, n, 4), hover)
    w, velocity, height, pushed, summed = (np.zeros((n, k)) for k in (3, 1, 1, 3, 3))
    up = np.tile([0.0, 0.0, 1.0], (n, 1))
    gyro, force = np.empty((count, n, 3)), np.empty((count, n, 3))
    delays = np.array([DELAY + c.delay for c in changes])
    shares = {k: np.array([getattr(c, k) for c in changes]) for k in ("mass", "inertia", "lag", "thrust", "center")}
    begin, over = np.array([c.at for c in changes]), np.array([max(c.over, 1e-9) for c in changes])
    for k in range(count):
        share = np.clip((k * dt - begin) / over, 0.0, 1.0)
        mass = MASS * (1.0 + share * (shares["mass"] - 1.0))
        inertia = believed * (1.0 + share * (shares["inertia"] - 1.0))[:, None]
        gain = 1.0 + share[:, None] * (shares["thrust"] - 1.0)
        lag = LAG * (1.0 + share * (shares["lag"] - 1.0))
        turning = moments(share[:, None] * shares["center"])
        delay = np.where(share > 0.0, delays, DELAY)
        late = np.rint(delay * RATE).astype(int)
        f = gain * (c1 * state + c2 * state**2)
        lift = f.sum(axis=1) / mass
        seen = w + draw.normal(0.0, 0.005, (n, 3))
        gyro[k], force[k] = seen, draw.normal(0.0, 0.15, (n, 3))
        force[k, :, 2] += lift + 0.1 * pushed[:, 2]
        wanted = GRAVITY + 1.5 * steps[k, :, 0] - 1.5 * velocity[:, 0] - 1.0 * height[:, 0]
        rates = 3.0 * np.stack([-up[:, 1], up[:, 0], np.zeros(n)], axis=1) + steps[k, :, 1:] * np.array([1.2, 1.2, 0.6])
        off = rates - seen
        # A pilot that integrates: what its vehicle lacks it makes up for.
        summed = np.clip(summed + dt * off, -1.0, 1.0)
        torque = believed * (8.0 * off + 10.0 * summed)
        asked = np.clip(
            np.concatenate([(MASS * wanted / np.maximum(up[:, 2], 0.5))[:, None], torque], axis=1) @ allocation.T, 0.02, None
        )
        commands[k] = np.clip((-c1 + np.sqrt(c1**2 + 4.0 * c2 * asked)) / (2.0 * c2), 0.05, 1.0)
        acting = commands[np.maximum(k - late, 0), np.arange(n)]
        keep = np.exp(-0.5 * dt / lag)[:, None]
        middle = acting + (state - acting) * keep
        f = gain * (c1 * middle + c2 * middle**2)
        angular = (np.einsum("nij,nj->ni", turning, f) - np.cross(w, inertia * w)) / inertia - 0.2 * w
        angular[:, :2] += pushed[:, :2]
        w = w + dt * angular
        up = up + dt * np.cross(up, w)
        up = up / np.linalg.norm(up, axis=1, keepdims=True)
        velocity = 0.999 * velocity + dt * (up[:, 2] * f.sum(axis=1) / mass - GRAVITY)[:, None]
        height = height + dt * velocity
        state = acting + (state - acting) * keep**2
        pushed = pushed * (1.0 - dt / 0.5) + push * np.sqrt(2.0 * dt / 0.5) * draw.standard_normal((n, 3))
    return [_log(k, gyro[:, k], force[:, k], commands[:, k], draw) for k in range(n)]


def _log(number: int, gyro: np.ndarray, force: np.ndarray, commands: np.ndarray, draw: np.random.Generator) -> Log:
    still = int(REST * RATE)
    rest_w = draw.normal(0.0, 0.005, (still, 3))
    rest_f = draw.normal(0.0, 0.02, (still, 3)) + np.array([0.0, 0.0, GRAVITY])
    time = np.arange(still + len(gyro)) / RATE
    streams = (
        LogStream("gyro", time, np.concatenate([rest_w, gyro])),
        LogStream("accelerometer", time, np.concatenate([rest_f, force])),
        LogStream("motor_command", time, np.concatenate([np.zeros((still, 4)), commands]), stamp="held"),
    )
    return Log(f"flight_{number}", streams, LogSource(f"flight_{number}", "0123456789abcdef", "test"))
