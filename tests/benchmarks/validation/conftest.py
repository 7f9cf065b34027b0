"""A synthetic flight: a known model under a rough attitude controller, with perfect or spoiled sensors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from airworthy.benchmarks.validation.logs import FlightLog
from airworthy.benchmarks.validation.protocol import BRUSHED
from airworthy.benchmarks.validation.structure import STRUCTURES, Structure, VehicleModel
from airworthy.core.vectors import cross, rotate_inverse
from airworthy.dynamics.equations import derivative, drag_wrench
from airworthy.dynamics.state import body_parameters, rigid_layout

STEP = 0.002
POSE_EVERY = 5
_TONES = np.array([[0.4, 0.9, 1.7], [0.5, 1.1, 1.5], [0.2, 0.3, 0.6]])
"""Frequencies of the wished roll, pitch and yaw [Hz]."""
_MIX = np.array([[-1, -1, 1, 1], [-1, 1, 1, -1], [-1, 1, -1, 1]], float)


@dataclass(frozen=True)
class Synthetic:
    """A log and the truth behind it."""

    log: FlightLog
    model: VehicleModel
    structure: Structure
    theta: np.ndarray
    state: np.ndarray
    """Position, velocity, attitude, rate at every loop sample, (n, 13)."""


def true_structure() -> tuple[Structure, np.ndarray]:
    structure = Structure(BRUSHED, STRUCTURES["damping"], 2.0e-8)
    theta = structure.mean.copy()
    values = {"thrust_1": 0.02, "thrust_3": -0.02, "inertia_x": 0.15, "inertia_y": -0.1, "drag_xy": 0.018, "drag_height": 0.03}
    for name, value in values.items():
        theta[structure.free.index(name)] = value
    return structure, theta


def record_of(model: VehicleModel) -> Any:
    layout = rigid_layout(4)
    column = body_parameters(model.vehicle, layout, 4)
    column[layout.rows("rotor_rise")] = column[layout.rows("rotor_fall")] = np.tile([1.0, 0.0], 4)
    return layout.record(lambda row: float(column[row]))


def fly(model: VehicleModel, seconds: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States (n, 13), rotor speeds (n, 4) and specific forces (n, 3) of a flight that wanders about a point."""
    p, rng = record_of(model), np.random.default_rng(seed)
    hover = np.sqrt(model.vehicle.mass * 9.81 / sum(r.thrust[2] for r in model.vehicle.rotors))
    phase, state = rng.uniform(0.0, 6.28, (3, 3)), np.zeros(13)
    state[2], state[9] = 1.0, 1.0
    speed = np.full(4, hover)
    states, speeds, forces = [], [], []

    def rates(z: np.ndarray, w: np.ndarray, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        v, q, r, rotors = tuple(z[3:6]), tuple(z[6:10]), tuple(z[10:13]), tuple(w)
        drag, _ = drag_wrench(rotate_inverse(q, v), r, rotors, p, False)
        moment = cross(model.drag_center, drag)
        dv, dq, dw, _, f = derivative(v, q, r, rotors, tuple(w + slope), (0.0,) * 3, (0.0,) * 3, moment, None, p)
        return np.array([*v, *dv, *dq, *dw]), np.array(f)

    for index in range(round(seconds / STEP)):
        t = index * STEP
        wish = 0.12 * np.sin(2.0 * np.pi * _TONES * t + phase).sum(axis=1)
        wish[0] += 0.1 * state[4] + 0.05 * state[1]
        wish[1] -= 0.1 * state[3] + 0.05 * state[0]
        rotation = Rotation.from_quat(state[6:10])
        error = (rotation.inv() * Rotation.from_rotvec(wish)).as_rotvec()
        torque = np.array([0.0035, 0.0035, 0.001]) * error - np.array([3.5e-4, 3.5e-4, 2e-4]) * state[10:13]
        lift = 0.5 * (1.0 - state[2]) - 0.5 * state[5]
        command = hover * (1.0 + 0.5 * (lift / 0.35 + _MIX.T @ (torque * np.array([60.0, 60.0, 300.0]))))
        target = speed + (np.clip(command, 0.6 * hover, 1.4 * hover) - speed) * (1.0 - np.exp(-STEP / 0.05))
        slope, middle = (target - speed) / STEP, 0.5 * (speed + target)
        k1, force = rates(state, speed, slope)
        states.append(state.copy()), speeds.append(speed), forces.append(force)
        k2, _ = rates(state + 0.5 * STEP * k1, middle, slope)
        k3, _ = rates(state + 0.5 * STEP * k2, middle, slope)
        k4, _ = rates(state + STEP * k3, target, slope)
        state = state + STEP / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        state[6:10] /= np.linalg.norm(state[6:10])
        speed = target
    return np.array(states), np.array(speeds), np.array(forces)


@pytest.fixture(scope="session")
def synthetic() -> Synthetic:
    """Twelve seconds with perfect sensors; rotor speeds lead the state by what the windows take for the gyro's delay."""
    from airworthy.benchmarks.validation.windows import GYRO_DELAY

    structure, theta = true_structure()
    model = structure.model(theta)
    state, speed, force = fly(model, 12.0, 5)
    time = np.arange(len(state)) * STEP
    early = np.stack([np.interp(time + GYRO_DELAY, time, column) for column in speed.T], axis=1)
    log = FlightLog(
        name="synthetic",
        time=time,
        gyro=state[:, 10:13],
        accelerometer=force,
        rotor_speed=early,
        pwm=early / 3000.0,
        voltage=np.full(len(time), 3.8),
        pose_time=time[::POSE_EVERY],
        position=state[::POSE_EVERY, 0:3],
        attitude=state[::POSE_EVERY, 6:10],
        clock_scale=1.0,
    )
    return Synthetic(log, model, structure, theta, state)


@dataclass(frozen=True)
class Spoiled:
    """The synthetic log with markers, latency and bias, and what was done to it."""

    log: FlightLog
    rotation: np.ndarray
    lever: np.ndarray
    bias: np.ndarray
    latency: float


@pytest.fixture(scope="session")
def spoiled(synthetic: Synthetic) -> Spoiled:
    """As the real logs are: marker body turned and lifted, poses late and rounded, gyro biased and noisy."""
    rng = np.random.default_rng(3)
    log, rotation = synthetic.log, Rotation.from_rotvec(np.deg2rad([0.5, -0.7, 2.4]))
    lever, bias, latency = np.array([0.002, -0.003, 0.025]), np.array([0.01, -0.02, 0.005]), 0.006
    body = Rotation.from_quat(log.attitude)
    attitude = body * rotation.inv() * Rotation.from_rotvec(rng.normal(0.0, 0.002, (len(log.attitude), 3)))
    spoiled_log = replace(
        log,
        gyro=log.gyro + bias + rng.normal(0.0, 0.005, log.gyro.shape),
        accelerometer=1.01 * log.accelerometer + np.array([0.05, -0.03, 0.0]) + rng.normal(0.0, 0.02, log.accelerometer.shape),
        pose_time=log.pose_time + latency,
        position=np.round(log.position + body.apply(lever), 3),
        attitude=attitude.as_quat(),
    )
    return Spoiled(spoiled_log, rotation.as_quat(), lever, bias, latency)
