"""Many quadrotors that differ, flown side by side with pushes that last, for the study of how often intervals hold the truth.

Equations are written anew, in arrays over vehicles: what is studied is not what predicts. Every truth is drawn from what a fit
believes beforehand, or more narrowly, so that intervals are judged, not priors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array
from airworthy.logs import Log, LogSource, LogStream
from airworthy.vehicles import Known
from airworthy.vehicles.identification.known import IZZ_RATIO, TORQUE_SHARE, frame_vehicle

__all__ = ["FlownQuads", "drawn_quads", "fly_quads"]

RATE, REST, GRAVITY = 500, 2.0, 9.81
"""Of commands and sensors [Hz], on the ground before a flight [s], [m/s^2]."""
GYRO_NOISE, FORCE_NOISE = 0.01, 0.15
"""Of a sample [rad/s, m/s^2]."""
MASS_SHARE = 0.005
"""Error of the scales."""
PUSH, PUSH_YAW, PUSH_FORCE, LASTING = 0.08, 0.02, 0.3, 0.5
"""Deviation of pushes about x and y, and about z, over the squared gain of the pilot [1]; along z [m/s^2]; how long they last
[s]. Steps of the pilot turn the vehicle by 0.25 of that gain squared."""
STEP, STEP_RATE, STEP_FORCE = 0.2, 0.25, 2.5
"""Length of the pilot's steps [s], size over its gain [s/s], and along z [m/s^2]."""


@dataclass(frozen=True, eq=False)
class FlownQuads:
    """Vehicles, each value of all of them: first axis the vehicle."""

    mass: Array
    arm: Array
    """Hubs from the middle along x and y [m]."""
    inertia: Array
    """(n, 3)"""
    thrust: Array
    """c1, c2 of c1 s + c2 s^2, s the state as a fraction of full command [N], (n, 2)."""
    torque_ratio: Array
    lag: Array
    delay: Array
    """Dead time [samples]."""
    damping: Array
    """Share of each rate lost in a second [1/s]."""
    center: Array
    """(n, 2)"""
    lever: Array
    """(n, 3)"""
    tilt: Array
    """(n, 2)"""
    bias: Array
    """Of the accelerometer in flight against the rest [m/s^2], (n, 3)."""
    weighed: Array
    """Mass as the scales say it [kg]."""

    def __len__(self) -> int:
        return len(self.mass)

    def known(self, index: int) -> Known:
        """Return what the owner of one of them knows: its weight, with error, and where the hubs are."""
        mass = float(self.weighed[index])
        return Known(mass=(mass, MASS_SHARE * mass), vehicle=frame_vehicle(f"quad_x:{self.arm[index]:.6g}", mass))

    def truth(self, index: int, hover: float) -> dict[str, float]:
        """Return the truth of what a fit finds, SI units.

        Args:
            index: Of the vehicle.
            hover: Rotor state at which thrust is told, fraction of full command.
        """
        c1, c2 = self.thrust[index]
        xx, yy, zz = self.inertia[index]
        whole = c1 * hover + c2 * hover**2
        return {
            "mass": float(self.mass[index]),
            "thrust": float(whole),
            "thrust_linear": float(c1 * hover / whole),
            "torque_ratio": float(self.torque_ratio[index]),
            "lag": float(self.lag[index]),
            "command_delay": float(self.delay[index]) / RATE,
            "inertia_xx": float(xx),
            "inertia_yy": float(yy),
            "inertia_zz_ratio": float(2.0 * zz / (xx + yy)),
            "center_x": float(self.center[index, 0]),
            "center_y": float(self.center[index, 1]),
            "damping": float(self.damping[index]),
        }


def drawn_quads(count: int, seed: int) -> FlownQuads:
    """Draw quadrotors of 30 g to 2.5 kg."""
    draw = np.random.default_rng(seed)
    mass = np.exp(draw.uniform(math.log(0.03), math.log(2.5), count))
    arm = 0.028 * (mass / 0.027) ** (1.0 / 3.0) * np.exp(draw.normal(0.0, 0.1, count))
    reach = math.sqrt(2.0) * arm
    xx = 0.25 * mass * reach**2 * np.exp(draw.normal(0.0, 0.25, count))
    yy = xx * np.exp(draw.normal(0.0, 0.15, count))
    # No body has more about z than about x and y together.
    zz = 0.5 * (xx + yy) * np.minimum(IZZ_RATIO * np.exp(draw.normal(0.0, 0.1, count)), 1.98)
    hover = draw.uniform(0.5, 0.7, count)
    linear = np.clip(draw.normal(0.2, 0.12, count), 0.0, 0.5)
    share = mass * GRAVITY / 4.0
    thrust = np.stack([linear * share / hover, (1.0 - linear) * share / hover**2], axis=1)
    return FlownQuads(
        mass=mass,
        arm=arm,
        inertia=np.stack([xx, yy, zz], axis=1),
        thrust=thrust,
        torque_ratio=TORQUE_SHARE * reach * np.exp(draw.normal(0.0, 0.3, count)),
        lag=0.045 * np.exp(draw.normal(0.0, 0.25, count)),
        delay=draw.integers(2, 7, count).astype(float),
        damping=0.5 * np.exp(draw.normal(0.0, 0.7, count)),
        center=draw.normal(0.0, 0.02, (count, 2)) * reach[:, None],
        lever=draw.normal(0.0, 0.05, (count, 3)) * reach[:, None],
        tilt=np.radians(draw.normal(0.0, 1.0, (count, 2))),
        bias=draw.normal(0.0, 0.03, (count, 3)),
        weighed=mass * np.exp(draw.normal(0.0, MASS_SHARE, count)),
    )


def fly_quads(quads: FlownQuads, seconds: float, seed: int) -> list[Log | None]:
    """Fly steps of collective, roll, pitch and yaw, pushed about, and log gyro, accelerometer and commands.

    Args:
        quads: Vehicles.
        seconds: In the air.
        seed: Of steps, noise and pushes.

    Returns:
        A log of each; None of a vehicle that turned over.
    """
    draw, dt = np.random.default_rng(seed), 1.0 / RATE
    n, count = len(quads), int(seconds * RATE)
    arm, inertia = quads.arm[:, None], quads.inertia
    rotors = frame_vehicle("quad_x:1", 1.0).rotors
    spins = np.array([float(rotor.spin) for rotor in rotors])
    x, y = (arm * np.array([rotor.position[k] for rotor in rotors]) for k in (0, 1))
    moment = np.stack([y - quads.center[:, 1:], quads.center[:, :1] - x, quads.torque_ratio[:, None] * spins], axis=1)
    mixing = np.linalg.pinv(np.concatenate([np.ones((n, 1, 4)), moment], axis=1))
    gain = np.minimum(0.45 / (quads.lag + quads.delay * dt), 14.0)
    steps = np.repeat(draw.choice([-1.0, 0.0, 1.0], (int(seconds / STEP) + 1, n, 4)), int(STEP * RATE), axis=0)
    c1, c2 = (quads.thrust[:, k, None] for k in (0, 1))
    keep, fade = np.exp(-dt / quads.lag)[:, None], math.exp(-dt / LASTING)
    size = np.concatenate([np.outer(gain**2, [PUSH, PUSH, PUSH_YAW]), np.full((n, 1), PUSH_FORCE)], axis=1)
    late = quads.delay.astype(int)
    hover = _command(np.full((n, 4), 0.25) * quads.mass[:, None] * GRAVITY, c1, c2)
    state, up, rate = hover.copy(), np.tile([0.0, 0.0, 1.0], (n, 1)), np.zeros((n, 3))
    climb, height, push = np.zeros(n), np.zeros(n), size * draw.standard_normal((n, 4))
    commands, gyro, force = np.empty((count, n, 4)), np.empty((count, n, 3)), np.empty((count, n, 3))
    lever = quads.lever - np.concatenate([quads.center, np.zeros((n, 1))], axis=1)
    tilt = np.concatenate([quads.tilt, np.zeros((n, 1))], axis=1)
    every = np.arange(n)

    def turned(thrust: Array, rate: Array) -> Array:
        spun = np.einsum("nij,nj->ni", moment, thrust) - np.cross(rate, inertia * rate)
        return np.asarray(spun / inertia - quads.damping[:, None] * rate + push[:, :3])

    for k in range(count):
        thrust = c1 * state + c2 * state**2
        turning = turned(thrust, rate)
        body = np.zeros((n, 3))
        body[:, 2] = thrust.sum(axis=1) / quads.mass + push[:, 3]
        seen = body + np.cross(turning, lever) + np.cross(rate, np.cross(rate, lever))
        gyro[k] = rate - np.cross(tilt, rate) + draw.normal(0.0, GYRO_NOISE, (n, 3))
        force[k] = seen - np.cross(tilt, seen) + quads.bias + draw.normal(0.0, FORCE_NOISE, (n, 3))
        lift = GRAVITY + STEP_FORCE * steps[k, :, 0] - climb - 0.3 * height
        wanted = 0.35 * gain[:, None] * np.stack([-up[:, 1], up[:, 0], np.zeros(n)], axis=1)
        wanted = wanted + STEP_RATE * gain[:, None] * steps[k, :, 1:]
        asked = np.concatenate(
            [(quads.mass * lift / np.maximum(up[:, 2], 0.5))[:, None], inertia * gain[:, None] * (wanted - gyro[k])], axis=1
        )
        commands[k] = np.clip(_command(np.clip(np.einsum("nij,nj->ni", mixing, asked), 0.0, None), c1, c2), 0.06, 0.995)
        acting = np.where((late <= k)[:, None], commands[np.maximum(k - late, 0), every], hover)
        middle, state = acting + (state - acting) * np.sqrt(keep), acting + (state - acting) * keep
        half = rate + 0.5 * dt * turning
        rate = rate + dt * turned(c1 * middle + c2 * middle**2, half)
        # The world's vertical in the body turns against it.
        up = up - dt * np.cross(half, up)
        up /= np.linalg.norm(up, axis=1, keepdims=True)
        climb = climb + dt * (body[:, 2] * up[:, 2] - GRAVITY)
        height = height + dt * climb
        push = fade * push + math.sqrt(1.0 - fade**2) * size * draw.standard_normal((n, 4))
    level = np.median(np.abs(gyro), axis=0).max(axis=1) < 8.0
    made: list[Log | None] = [None] * n
    for i in np.flatnonzero(level).tolist():
        made[i] = _log(quads, i, commands[:, i], gyro[:, i], force[:, i], draw)
    return made


def _command(thrust: Array, c1: Array, c2: Array) -> Array:
    """Command whose thrust is asked for, by rotors that follow it, (n, 4)."""
    return np.asarray((np.sqrt(c1**2 + 4.0 * c2 * thrust) - c1) / (2.0 * c2))


def _log(quads: FlownQuads, index: int, commands: Array, gyro: Array, force: Array, draw: np.random.Generator) -> Log:
    """Put a rest on the ground before the flight."""
    still = int(REST * RATE)
    level, tilt = np.array([0.0, 0.0, GRAVITY]), np.array([*quads.tilt[index], 0.0])
    rest = level - np.cross(tilt, level) + draw.normal(0.0, 0.02, (still, 3))
    time = np.arange(still + len(gyro)) / RATE
    streams = (
        LogStream("gyro", time, np.concatenate([draw.normal(0.0, 0.5 * GYRO_NOISE, (still, 3)), gyro])),
        LogStream("accelerometer", time, np.concatenate([rest, force])),
        LogStream("motor_command", time, np.concatenate([np.zeros((still, 4)), commands]), stamp="held"),
    )
    return Log(f"quad_{index}", streams, LogSource(f"quad_{index}", "", "simulated"))
