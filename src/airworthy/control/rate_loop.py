"""Waypoint control by body rates: the outer loop for a vehicle whose own computer holds rates.

Source of the gains and limits: spec/flightgoggles 4.4 (100 Hz). Their source does not print the law; ours is position and
velocity feedback with both limits, and rates in proportion to the attitude error.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from airworthy.control.attitude import attitude_error, desired_axes, unit_or
from airworthy.control.geometric import BodyState
from airworthy.core.arrays import Scalar, Vector
from airworthy.core.errors import AirworthyError
from airworthy.core.ops import clip, maximum, sin_cos, where
from airworthy.core.vectors import add, dot, matrix_columns, norm, scale, sub, symmetric_multiply

# ---- The FlightGoggles rate loop: filtered gyro, PID on body rates, moment J a ----------------------------------------------
#
# Source: spec/flightgoggles 4.3. Per axis a second-order Butterworth low-pass at 30 Hz (x1' = x2, x2' = -q x2 - p x1 + p u),
# then a_c = K_P (W_c - x1) + K_I integral - K_D x2: the derivative acts on the measurement alone.


class FilterCoefficients(NamedTuple):
    """A discretised low-pass: x1+ = a11 x1 + a12 x2 + b1 u, x2+ = a21 x1 + a22 x2 + b2 u."""

    a11: Scalar
    a12: Scalar
    a21: Scalar
    a22: Scalar
    b1: Scalar
    b2: Scalar


class RateLoopParameters(NamedTuple):
    """Gains and the controller's own inertia; any record with these attributes will do."""

    inertia: Vector
    """xx, yy, zz, xy, xz, yz [kg m^2]."""
    proportional: Vector
    """K_P [1/s]."""
    integral: Vector
    """K_I [1/s^2]."""
    derivative: Vector
    """K_D [-]."""
    integral_max: Vector
    """Clamp of the integral of the rate error [rad]."""


class RateLoopState(NamedTuple):
    """What the loop carries from step to step; all zero at the start."""

    filtered: Vector
    """Low-passed body rate [rad/s]."""
    slope: Vector
    """Its derivative [rad/s^2]."""
    integral: Vector
    """Integral of the rate error [rad]."""


def low_pass_constants(cutoff_hz: float, damping: float = math.sqrt(0.5)) -> tuple[float, float]:
    """Return p = w^2 [1/s^2] and q = 2 zeta w [1/s] of the continuous filter; host function."""
    if not (cutoff_hz > 0.0 and 0.0 < damping < 1.0):
        raise AirworthyError(f"A low-pass needs cutoff > 0 Hz and 0 < damping < 1; {cutoff_hz} Hz and {damping} arrived.")
    w = 2.0 * math.pi * cutoff_hz
    # Of x'' + q x' + p x = p u, which has gain 1 at rest.
    return w * w, 2.0 * damping * w


def exact_coefficients(p: float, q: float, dt: float) -> FilterCoefficients:
    """Return the zero-order-hold discretisation of the underdamped filter: exp(A dt), A = [[0, 1], [-p, -q]]; host function.

    Args:
        p: Squared natural frequency [1/s^2].
        q: Damping [1/s], q^2 < 4 p.
        dt: Step [s].
    """
    if not (p > 0.0 and 0.0 < q * q < 4.0 * p and dt > 0.0):
        raise AirworthyError(f"The filter needs 0 < q^2 < 4 p and a step > 0; p = {p}, q = {q}, dt = {dt} arrived.")
    # Real and imaginary part of the filter's poles, which are complex as q^2 < 4 p.
    decay, turn = 0.5 * q, math.sqrt(p - 0.25 * q * q)
    fade = math.exp(-decay * dt)
    sine, cosine = fade * math.sin(turn * dt) / turn, fade * math.cos(turn * dt)
    a11, a12 = cosine + decay * sine, sine
    a21, a22 = -p * sine, cosine - decay * sine
    # The steady state for a held input u is (u, 0): B = (1 - Ad) (1, 0).
    return FilterCoefficients(a11, a12, a21, a22, 1.0 - a11, -a21)


def backward_euler_coefficients(p: float, q: float, dt: float) -> FilterCoefficients:
    """Return the published discretisation: x2+ = (x2 + p dt (u - x1)) / D, x1+ = x1 + dt x2+, D = 1 + q dt + p dt^2; host
    function.

    It damps 30 Hz by 4.12 dB at 960 Hz where the filter itself damps by 3.01 dB.

    Args:
        p: Squared natural frequency [1/s^2].
        q: Damping [1/s].
        dt: Step [s].
    """
    if not (p > 0.0 and q > 0.0 and dt > 0.0):
        raise AirworthyError(f"The filter needs p, q and the step above 0; p = {p}, q = {q}, dt = {dt} arrived.")
    inverse = 1.0 / (1.0 + q * dt + p * dt * dt)
    a21, b2 = -p * dt * inverse, p * dt * inverse
    return FilterCoefficients(1.0 + dt * a21, dt * inverse, a21, inverse, dt * b2, b2)


def low_pass(value: Scalar, slope: Scalar, measured: Scalar, c: Any) -> tuple[Scalar, Scalar]:
    """Return one step of the filter: filtered value and its derivative.

    Args:
        value: Filtered value x1.
        slope: Its derivative x2 [1/s].
        measured: New value u, in the unit of x1.
        c: `FilterCoefficients` or alike.
    """
    return (
        c.a11 * value + c.a12 * slope + c.b1 * measured,
        c.a21 * value + c.a22 * slope + c.b2 * measured,
    )


def rate_loop(
    body_rate: Vector, target: Vector, state: RateLoopState, coefficients: Any, dt: Scalar, p: Any
) -> tuple[Vector, RateLoopState]:
    """Return the moment [N m] and next state of the loop.

    Args:
        body_rate: Measured body rate, the gyro's [rad/s].
        target: Commanded body rate [rad/s].
        state: From the last step.
        coefficients: `exact_coefficients`, or `backward_euler_coefficients` for the published form, or a `blend` of both.
        dt: Step [s].
        p: `RateLoopParameters` or alike.
    """
    filtered, slope, integral, acceleration = [], [], [], []
    for i in range(3):
        x1, x2 = low_pass(state.filtered[i], state.slope[i], body_rate[i], coefficients)
        error = target[i] - x1
        # The clamp of the source is +-1000, in effect none (spec/flightgoggles 4.3); it is kept so that others can be set.
        total = clip(state.integral[i] + error * dt, -p.integral_max[i], p.integral_max[i])
        acceleration.append(p.proportional[i] * error + p.integral[i] * total - p.derivative[i] * x2)
        filtered.append(x1)
        slope.append(x2)
        integral.append(total)
    moment = symmetric_multiply(p.inertia, tuple(acceleration))
    return moment, RateLoopState(tuple(filtered), tuple(slope), tuple(integral))


def blend(published: Scalar, exact: Any, backward_euler: Any) -> FilterCoefficients:
    """Return coefficients of the published form where the 0/1 mask is set, else the exact ones; an equation.

    Args:
        published: 1 for the published form, else 0.
        exact: Coefficients by zero-order hold.
        backward_euler: Coefficients of the published form.
    """
    return FilterCoefficients(*(where(published > 0.5, b, a) for a, b in zip(exact, backward_euler, strict=True)))


# -----------------------------------------------------------------------------------------------------------------------------


class WaypointParameters(NamedTuple):
    """Gains and limits; any record with these attributes will do."""

    mass: Scalar
    """[kg]"""
    gravity: Scalar
    """[m/s^2]"""
    # Source: spec/flightgoggles 4.4, [R4] config/waypointController.yaml: 7, 3, 10; 3 m/s, 3 m/s^2, 8 rad/s.
    position_gain: Scalar = 7.0
    """[1/s^2]"""
    velocity_gain: Scalar = 3.0
    """[1/s]"""
    attitude_gain: Scalar = 10.0
    """[1/s]"""
    rate_max: Scalar = 8.0
    """[rad/s], per axis."""
    acceleration_max: Scalar = 3.0
    """[m/s^2]"""
    speed_max: Scalar = 3.0
    """[m/s]"""


def limited_length(vector: Vector, longest: Scalar) -> Vector:
    """Return the vector, shortened to a length where it is longer."""
    length = norm(vector)
    return scale(vector, where(length > longest, longest / maximum(length, 1e-9), 1.0))


def waypoint_control(state: BodyState, position: Vector, yaw: Scalar, p: Any) -> tuple[Scalar, Vector]:
    """Return collective thrust [N] and body rates [rad/s] towards a way-point.

    The position error is shortened so that it alone asks for no more than `speed_max`.

    Args:
        state: Present state.
        position: World [m].
        yaw: [rad]
        p: `WaypointParameters` or alike.
    """
    # At this error the proportional and the velocity term balance at `speed_max`.
    reach = p.speed_max * p.velocity_gain / p.position_gain
    pull = scale(limited_length(sub(position, state.position), reach), p.position_gain)
    wanted = limited_length(sub(pull, scale(state.velocity, p.velocity_gain)), p.acceleration_max)
    force = scale(add(wanted, (0.0, 0.0, p.gravity)), p.mass)
    axes = matrix_columns(state.attitude)
    sine, cosine = sin_cos(yaw)
    direction = unit_or(force, axes[2], 1e-6 * (p.mass * p.gravity) * (p.mass * p.gravity))
    target = desired_axes(direction, (cosine, sine, 0.0), 0.0, axes)
    rates = scale(attitude_error(axes, target), -p.attitude_gain)
    return dot(force, axes[2]), tuple(clip(rate, -p.rate_max, p.rate_max) for rate in rates)
