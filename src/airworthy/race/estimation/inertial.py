"""Where inertial samples lead: position, velocity and attitude of many flights, and how errors grow on the way.

From sample to sample (a, w: measured specific force and body rate less their biases, dt the period, g gravity):

    q_mid = q exp(w dt / 2),  q+ = q exp(w dt),  A = R(q_mid) a,  v+ = v + (A + g) dt,  p+ = p + v dt + (A + g) dt^2 / 2    (1)

Errors are those of p, of v, of the attitude about world axes (R = exp([theta]) R_believed, so that theta stays as it is while
the vehicle turns) and of the biases b_a, b_g. To first order, with M the sum of R(q_mid) dt so far:

    d theta = -M b_g,    dA = -[A] theta - R(q_mid) b_a + [A] M_mid b_g                                                  (2)

which (1) sums into velocity and position. What is summed is summed sample by sample, in order: the same bits, however samples
are cut into calls. The Jacobian that replaces a turn's left Jacobian by the middle attitude is off by |w dt|^2 / 24, 1e-5 at
15 rad/s and 960 Hz (ours).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array

P, V, TURN, B_A, B_G = slice(0, 3), slice(3, 6), slice(6, 9), slice(9, 12), slice(12, 15)
"""Where errors of position, velocity, attitude and biases stand in the state."""


@dataclass(frozen=True)
class InertialMotion:
    """Vehicles as believed, and how errors since the last covariance have come to matter; (flights, ...)."""

    position: Array
    """World [m], (n, 3)."""
    velocity: Array
    """World [m/s], (n, 3)."""
    attitude: Array
    """Quaternion x, y, z, w, body to world, (n, 4)."""
    bias: Array
    """Of accelerometer [m/s^2] and gyroscope [rad/s], (n, 6); (n, 0) where none is estimated."""
    steps: int
    """Samples since the slopes were begun."""
    velocity_slope: Array
    """Velocity by the attitude and, where estimated, both biases at the beginning, (n, 3, 3 or 9)."""
    position_slope: Array
    """Position likewise."""
    turning: Array
    """Sum of R dt, M of (2) [s], (n, 3, 3)."""


def at_rest(position: Array, yaw: float, flights: int, biased: bool) -> InertialMotion:
    """Return vehicles that stand level.

    Args:
        position: World [m], (3,).
        yaw: Heading [rad].
        flights: How many.
        biased: Whether biases are estimated.
    """
    attitude = np.tile(frames.from_euler(0.0, 0.0, yaw), (flights, 1))
    bias = np.zeros((flights, 6 if biased else 0))
    where, still = np.tile(position, (flights, 1)), np.zeros((flights, 3))
    return InertialMotion(where, still, attitude, bias, 0, *_no_slopes(flights, biased))


def _no_slopes(flights: int, biased: bool) -> tuple[Array, Array, Array]:
    shape = (flights, 3, 9 if biased else 3)
    return np.zeros(shape), np.zeros(shape), np.zeros((flights, 3, 3))


def fresh_slopes(motion: InertialMotion) -> InertialMotion:
    """Return the same with slopes begun anew, and the attitude at unit length."""
    slopes = _no_slopes(len(motion.position), motion.bias.shape[1] > 0)
    return replace(
        motion,
        attitude=frames.normalize(motion.attitude),
        steps=0,
        velocity_slope=slopes[0],
        position_slope=slopes[1],
        turning=slopes[2],
    )


def moved(motion: InertialMotion, samples: Array, dt: float, gravity: float, euler: bool = False) -> InertialMotion:
    """Return vehicles after inertial samples: equations (1) and (2).

    Args:
        motion: Before.
        samples: Specific force [m/s^2] and body rate [rad/s], body frame, (k, n, 6).
        dt: Period of the samples [s].
        gravity: [m/s^2]
        euler: Whether motion goes in explicit Euler steps, as in a simulator that has them: forces act at the attitude where a
            step begins, positions move by the velocity there.
    """
    biased = motion.bias.shape[1] > 0
    known = samples - motion.bias if biased else samples
    half = frames.from_rotation_vector(known[..., 3:] * (0.5 * dt))
    whole = frames.multiply(half, half)
    before = [motion.attitude]
    for turn in whole:  # over samples, never over flights: each turns the one before
        before.append(frames.multiply(before[-1], turn))
    middle = frames.multiply(np.stack(before[:-1]), half) if len(whole) else half
    pushed = np.stack(before[:-1]) if euler and len(whole) else middle
    force = frames.rotate(pushed, known[..., :3])
    gain = (force + np.array([0.0, 0.0, -gravity])) * dt
    velocity = _running(motion.velocity, gain)
    position = _running(motion.position, (velocity[:-1] if euler else velocity[:-1] + 0.5 * gain) * dt)
    turned = frames.to_matrix(middle) * dt
    turning = _running(motion.turning, turned)
    slope = _force_slope(force, turned, turning[:-1], dt, biased) * dt
    velocity_slope = _running(motion.velocity_slope, slope)
    position_slope = _running(motion.position_slope, (velocity_slope[:-1] + 0.5 * slope) * dt)
    return InertialMotion(
        position[-1], velocity[-1], before[-1], motion.bias, motion.steps + len(samples),
        velocity_slope[-1], position_slope[-1], turning[-1],
    )  # fmt: skip


def _running(start: Array, steps: Array) -> Array:
    """Start and every sum after it, (k + 1, ...); cumsum adds in order, so that no cut between calls changes a bit."""
    return np.cumsum(np.concatenate([start[None], steps]), axis=0)


def _force_slope(force: Array, turned: Array, turning: Array, dt: float, biased: bool) -> Array:
    """dA of (2) by attitude, and by both biases, (k, n, 3, 3 or 9)."""
    cross = skew(force)
    if not biased:
        return -cross
    by_rate = cross @ (turning + 0.5 * turned)
    return np.concatenate([-cross, turned / -dt, by_rate], axis=-1)


def skew(v: Array) -> Array:
    """Return the matrices [v] with [v] w = v x w, (..., 3, 3)."""
    x, y, z = v[..., 0], v[..., 1], v[..., 2]
    zero = np.zeros_like(x)
    rows = [np.stack(row, -1) for row in ((zero, -z, y), (z, zero, -x), (-y, x, zero))]
    return np.stack(rows, -2)


def transition(motion: InertialMotion, dt: float) -> Array:
    """Return how errors where the slopes began become errors now, (n, 9, 9), with biases (n, 15, 15).

    Args:
        motion: With its slopes.
        dt: Period of the samples [s].
    """
    biased = motion.bias.shape[1] > 0
    count = 15 if biased else 9
    matrix = np.tile(np.eye(count), (len(motion.position), 1, 1))
    matrix[:, P, V] = np.eye(3) * (motion.steps * dt)
    matrix[:, V, 6:count] = motion.velocity_slope
    matrix[:, P, 6:count] = motion.position_slope
    if biased:
        matrix[:, TURN, B_G] = -motion.turning
    return matrix


def added_noise(motion: InertialMotion, dt: float, noise: Array, walk: Array) -> Array:
    """Return the covariance that white noise of the samples has added since the slopes began, (n, 9, 9) or (n, 15, 15).

    Exact for a constant specific force and heading; biases' walk enters velocity by way of the next transitions only, which
    leaves out W T^3 / 3, 1e-13 of a frame's worth.

    Args:
        motion: With its slopes.
        dt: Period of the samples [s].
        noise: Of a sample of accelerometer and gyroscope, (2,).
        walk: Of both biases, per sqrt(s), (2,).
    """
    count, time = (15 if motion.bias.shape[1] else 9), motion.steps * dt
    # A sample's error lasts for dt: intensities per second.
    force, rate = (float(value) ** 2 * dt for value in noise)
    by_v, by_p = motion.velocity_slope[..., :3], motion.position_slope[..., :3]
    one = np.eye(3)
    q = np.zeros((len(motion.position), count, count))
    q[:, P, P] = force * time**3 / 3.0 * one + rate * time / 5.0 * _square(by_p, by_p)
    q[:, P, V] = force * time**2 / 2.0 * one + rate * time / 4.0 * _square(by_p, by_v)
    q[:, V, V] = force * time * one + rate * time / 3.0 * _square(by_v, by_v)
    q[:, P, TURN] = rate * time / 3.0 * by_p
    q[:, V, TURN] = rate * time / 2.0 * by_v
    q[:, TURN, TURN] = rate * time * one
    for row, column in ((V, P), (TURN, P), (TURN, V)):
        q[:, row, column] = np.swapaxes(q[:, column, row], 1, 2)
    if count == 15:
        q[:, B_A, B_A] = float(walk[0]) ** 2 * time * one
        q[:, B_G, B_G] = float(walk[1]) ** 2 * time * one
    return q


def _square(a: Array, b: Array) -> Array:
    return a @ np.swapaxes(b, 1, 2)
