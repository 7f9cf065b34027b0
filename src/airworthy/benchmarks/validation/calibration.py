"""What lies between motion capture and the vehicle: angles, lever arm, latency and gyro bias, from kinematics alone.

The marker body is not the vehicle: its axes are turned (here by two and a half degrees of yaw), its origin sits above the
centre of mass, and its pose arrives late. Gyro against capture attitudes gives the angles, the bias and the latency;
accelerometer against capture positions gives the lever. No rotor speed and no model of flight enters, so flights that a model
is judged on may take part.

Both are linear least squares with robust weights. The world rotation, position and velocity at the start of each short
stretch are nuisances and are projected out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from airworthy.benchmarks.validation.logs import FlightLog
from airworthy.core.arrays import Array, NDArray
from airworthy.logs import integrate_gyro

Indices = NDArray[np.signedinteger]

STRETCH = 0.6
"""Length of a stretch of kinematic comparison [s]."""
_STRETCH_STEP = 0.3
_SAMPLES_MIN = 12
_ROUNDS = 8
_HUBER = 2.0
"""Residuals beyond this many (robust) standard deviations count less."""


@dataclass(frozen=True)
class Calibration:
    """From a flight log's raw streams to the state of the vehicle."""

    rotation: Array
    """IMU axes to marker axes, quaternion x, y, z, w, (4,)."""
    lever: Array
    """Marker origin from the IMU, IMU axes [m], (3,)."""
    gyro_bias: Array
    """[rad/s], (3,)."""
    latency: float
    """A pose stamped t is of time t - latency [s]."""


@dataclass
class _Flight:
    """One log while it is being calibrated."""

    log: FlightLog
    rotation: Rotation
    bias: Array
    latency: float = 0.0


def calibrate(logs: Sequence[FlightLog]) -> list[Calibration]:
    """Calibrate flights of one vehicle: angles and lever are shared, gyro bias and latency are each flight's own.

    Args:
        logs: Flights of the same vehicle with the same markers.

    Returns:
        One calibration per log.
    """
    flights = [_Flight(log, Rotation.identity(), np.zeros(3)) for log in logs]
    for _ in range(_ROUNDS):
        _update_angles(flights)
    lever = _lever(flights)
    return [Calibration(f.rotation.as_quat(), lever, f.bias, f.latency) for f in flights]


def at_times(time: Array, values: Array, query: Array) -> Array:
    """Return the linear interpolation of columns, shape (len(query), k).

    Args:
        time: Of the samples [s], ascending, (n,).
        values: Samples, (n, k).
        query: Times [s]; outside of the samples the nearest end holds.
    """
    return np.stack([np.interp(query, time, column) for column in values.T], axis=-1)


def attitude_at(time: Array, quaternions: Array, query: Array) -> Rotation:
    """Return rotations between samples: quaternions of neighbours (2 ms apart) interpolated linearly and normalised.

    Args:
        time: Of the samples [s], ascending, (n,).
        quaternions: Samples x, y, z, w with consistent signs, (n, 4).
        query: Times [s], (m,).
    """
    return Rotation.from_quat(at_times(time, quaternions, query))


def stretches(log: FlightLog) -> list[Indices]:
    """Return indices of the poses in each stretch that holds enough of them."""
    starts = np.arange(log.pose_time[0], log.pose_time[-1] - STRETCH, _STRETCH_STEP)
    groups = [np.flatnonzero((log.pose_time >= s) & (log.pose_time <= s + STRETCH)) for s in starts]
    return [
        g
        for g in groups
        if g.size >= _SAMPLES_MIN and log.pose_time[g[0]] > log.time[0] and log.pose_time[g[-1]] < log.time[-1]
    ]


def _update_angles(flights: list[_Flight]) -> None:
    """Take one Gauss-Newton step for the shared rotation and each flight's gyro bias and latency."""
    blocks = [_angle_equations(flight) for flight in flights]
    count = 3 + 4 * len(flights)
    normal, right = np.zeros((count, count)), np.zeros(count)
    for index, (matrix, residual) in enumerate(blocks):
        where = [0, 1, 2, *range(3 + 4 * index, 7 + 4 * index)]
        weight = robust_weights(residual)
        weighted = matrix * weight[:, None, None]
        normal[np.ix_(where, where)] += np.einsum("nij,nik->jk", weighted, matrix)
        right[where] += np.einsum("nij,ni->j", weighted, residual)
    step = np.linalg.lstsq(normal, right, rcond=1e-12)[0]
    for index, flight in enumerate(flights):
        flight.rotation = flight.rotation * Rotation.from_rotvec(step[:3])
        flight.bias = flight.bias + step[3 + 4 * index : 6 + 4 * index]
        flight.latency += float(step[6 + 4 * index])


def _angle_equations(flight: _Flight) -> tuple[Array, Array]:
    """Return derivatives (n, 3, 7) and residuals (n, 3) of integrated gyro against captured attitudes, in axes of the
    stretch.
    """
    log = flight.log
    turned = integrate_gyro(log.time, log.gyro - flight.bias)
    # d attitude / d bias, in axes of the first sample: the integral of the rotation matrix.
    matrices = Rotation.from_quat(turned).as_matrix().reshape(-1, 9)
    steps = 0.5 * (matrices[1:] + matrices[:-1]) * np.diff(log.time)[:, None]
    integral = np.vstack([np.zeros(9), np.cumsum(steps, axis=0)])
    matrix, residual = [], []
    for group in stretches(log):
        time = log.pose_time[group] - flight.latency
        relative = attitude_at(log.time, turned, time)
        captured = Rotation.from_quat(log.attitude[group]) * flight.rotation
        offset = captured * relative.inv()
        error = (offset.mean().inv() * offset).as_rotvec()
        rotation = relative.as_matrix()
        rate = np.einsum("nij,nj->ni", rotation, at_times(log.time, log.gyro, time) - flight.bias)
        # The offset captured * relative^-1 turns with the rotation by Q c, with the bias by int(Q) b, with latency by the rate.
        derivative = np.concatenate([rotation, at_times(log.time, integral, time).reshape(-1, 3, 3), rate[:, :, None]], axis=2)
        derivative = derivative - derivative.mean(axis=0)
        matrix.append(-derivative)
        residual.append(error)
    return np.concatenate(matrix), np.concatenate(residual)


def robust_weights(residual: Array) -> Array:
    """Return Huber weights of vector residuals (n, k) over their robust variance, so that flights can be added up."""
    length = np.linalg.norm(residual, axis=1)
    scale = max(1.4826 * float(np.median(length)) / np.sqrt(residual.shape[1]), 1e-9)
    return np.minimum(1.0, _HUBER * scale * np.sqrt(residual.shape[1]) / np.maximum(length, 1e-12)) / scale**2


def _lever(flights: list[_Flight]) -> Array:
    """Marker origin from the IMU [m]: positions against twice integrated specific force, accelerometer bias and scale free."""
    normal, right = np.zeros((3, 3)), np.zeros(3)
    for flight in flights:
        groups = [_lever_equations(flight, group) for group in stretches(flight.log)]
        matrix, residual = np.concatenate([g[0] for g in groups]), np.concatenate([g[1] for g in groups])
        weight = np.ones(len(residual))
        for _ in range(5):
            full = np.einsum("nij,nik,n->jk", matrix, matrix, weight)
            vector = np.einsum("nij,ni,n->j", matrix, residual, weight)
            weight = robust_weights(residual - matrix @ np.linalg.lstsq(full, vector, rcond=1e-12)[0])
        # Schur complement: eliminate this flight's bias and scale, keep the shared lever.
        keep, drop = slice(0, 3), slice(3, 7)
        inner = full[keep, drop] @ np.linalg.pinv(full[drop, drop], rcond=1e-12)
        normal += full[keep, keep] - inner @ full[drop, keep]
        right += vector[keep] - inner @ vector[drop]
    return np.asarray(np.linalg.lstsq(normal, right, rcond=1e-9)[0], np.float64)


def _lever_equations(flight: _Flight, group: Indices) -> tuple[Array, Array]:
    """Return derivatives (n, 3, 7: lever, accelerometer bias and scale), residuals (n, 3) of one stretch; start projected
    out.
    """
    log = flight.log
    time = log.pose_time[group] - flight.latency
    inside = slice(*np.searchsorted(log.time, [time[0] - 0.01, time[-1] + 0.01]))
    clock = log.time[inside]
    turned = integrate_gyro(clock, log.gyro[inside] - flight.bias)
    captured = Rotation.from_quat(log.attitude[group]) * flight.rotation
    start = (captured * attitude_at(clock, turned, time).inv()).mean()
    matrices = (start * Rotation.from_quat(turned)).as_matrix()
    force = np.einsum("nij,nj->ni", matrices, log.accelerometer[inside])
    columns = np.concatenate([matrices, force[:, :, None]], axis=2).reshape(len(clock), 12)
    travelled = at_times(clock, _twice(clock, columns), time).reshape(-1, 3, 4)
    gravity = np.array([0.0, 0.0, -0.5 * 9.81])[None, :] * ((time - time[0]) ** 2)[:, None]
    at_pose = (start * attitude_at(clock, turned, time)).as_matrix()
    matrix = np.concatenate([at_pose, travelled], axis=2)
    residual = log.position[group] - travelled[:, :, 3] - gravity
    line = np.stack([np.ones_like(time), time - time.mean()], axis=1)
    project = np.eye(len(time)) - line @ np.linalg.pinv(line)
    return np.einsum("ab,bij->aij", project, matrix), np.asarray(project @ residual, np.float64)


def _twice(time: Array, values: Array) -> Array:
    """Double time integral by the trapezoid rule, (n, k)."""
    step = np.diff(time)[:, None]
    once = np.vstack([np.zeros(values.shape[1]), np.cumsum(0.5 * (values[1:] + values[:-1]) * step, axis=0)])
    return np.vstack([np.zeros(values.shape[1]), np.cumsum(0.5 * (once[1:] + once[:-1]) * step, axis=0)])
