"""One step of a rollout at 500 Hz: gyro, controller, motors, rigid body, contact; on scalars.

The same text runs on NumPy float64 (the twin) and is traced into the kernel. Sources: spec/boundary_predictor sections 6, 9,
10 and 11. The wrench is held over a step: positions are then exact, attitudes right to second order.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

from airworthy.control.geometric import BodyState
from airworthy.control.levels import Reference
from airworthy.control.mellinger import COMMAND_MAX, MellingerState, mellinger_control, motor_commands, speed_of_command
from airworthy.core.arrays import Scalar, Vector
from airworthy.core.ops import absolute, clip, maximum, sqrt, where
from airworthy.core.vectors import add, matrix_columns, norm, quaternion_multiply, rotate, rotate_inverse, scale, sub
from airworthy.gates.labels.controller_model import BAR, DT, OPENING, ControllerModel

# Sizes of flat arrays that native code reads; tests compare them with the tuples' own lengths.
STATE_SIZE = 32
"""Numbers of a `FlightState`."""
LANE_SIZE = 20
"""Numbers of a `Lane`."""
REFERENCE_SIZE = 11
NOISE_SIZE = 7


class FlightState(NamedTuple):
    """What a rollout carries from step to step; positions from the centre of gate i."""

    position: Vector
    velocity: Vector
    attitude: Vector
    rate: Vector
    integral: Vector
    turn_integral: Vector
    rate_error: Vector
    gyro: Vector
    """Two states of the low-pass per axis."""
    rotors: Vector
    """[rad/s]"""

    @classmethod
    def of(cls, numbers: Vector) -> FlightState:
        """Build one from its numbers in this order."""
        ends = (0, 3, 6, 10, 13, 16, 19, 22, 28, 32)
        return cls(*(tuple(numbers[a:b]) for a, b in itertools.pairwise(ends)))

    def numbers(self) -> Vector:
        """Return all of them in order."""
        return tuple(x for part in self for x in part)


class Lane(NamedTuple):
    """What differs between rollouts and stays during one."""

    mass: Scalar
    inverse_mass: Scalar
    inertia: Vector
    inverse_inertia: Vector
    behind: Vector
    """Gate i - 1, from gate i [m]."""
    ahead: Vector
    """Gate i + 1."""
    normal: Vector
    """Cosine and sine of gate i's heading."""
    normal_ahead: Vector
    """Of gate i + 1's; gate i - 1 has heading 0."""
    floor: Scalar
    """Height of the floor from gate i [m]."""
    started: Scalar
    """0 at the first step, else 1."""

    @classmethod
    def of(cls, x: Vector) -> Lane:
        """Build one from its numbers in this order."""
        return cls(x[0], x[1], x[2:5], x[5:8], x[8:11], x[11:14], x[14:16], x[16:18], x[18], x[19])


def flight_step(
    state: Vector, reference: Vector, noise: Vector, lane: Vector, controller_model: ControllerModel
) -> tuple[Any, ...]:
    """Return the state after one step, and what the step was.

    Args:
        state: Numbers of a `FlightState`.
        reference: Position, velocity, acceleration (3 each), yaw and yaw rate that are commanded.
        noise: Outer force, world (3) [N], and what is added to each motor's thrust (4) [N].
        lane: Numbers of a `Lane`.
        controller_model: Build-time constants.

    Returns:
        New state; distance from the position commanded [m]; 1 where the body touches a frame or the floor, else 0; 1 where
        it passed gate i's opening, else 0.
    """
    s, p = FlightState.of(state), Lane.of(lane)
    commands, memory, gyro = _control(s, reference, p, controller_model)
    rotors = _rotors(s, commands, controller_model)
    after = _move(s, rotors, noise, p, controller_model)
    error = norm(sub(after.position, tuple(reference[:3])))
    touching = _touching(after, p, controller_model)
    passed = _passed(s.position, after.position, p)
    new = after._replace(
        integral=memory.position_integral,
        turn_integral=memory.attitude_integral,
        rate_error=memory.rate_error,
        gyro=gyro,
    )
    return (*new.numbers(), error, touching, passed)


def _control(
    s: FlightState, reference: Vector, p: Lane, controller_model: ControllerModel
) -> tuple[Vector, MellingerState, Vector]:
    """Motor commands, the controller's memory and the gyro's."""
    rate, gyro = (s.rate, s.gyro) if controller_model.gyro is None else _filtered(s.rate, s.gyro, controller_model.gyro)
    wanted = Reference(
        position=tuple(reference[:3]), velocity=tuple(reference[3:6]), acceleration=tuple(reference[6:9]), yaw=reference[9]
    )
    body_state = BodyState(s.position, s.velocity, s.attitude, rate)
    memory = MellingerState(s.integral, s.turn_integral, s.rate_error)
    turning = (0.0, 0.0, reference[10])
    thrust, moment, memory = mellinger_control(body_state, wanted, turning, memory, p.started, DT, controller_model.control)
    return motor_commands(thrust, moment, controller_model.mixer, controller_model.subtract_excess), memory, gyro


def _filtered(rate: Vector, memory: Vector, gyro: tuple[float, float, float]) -> tuple[Vector, Vector]:
    """Second-order low-pass of the rates, transposed direct form."""
    b0, a1, a2 = gyro
    out, first, second = [], [], []
    for i in range(3):
        x = b0 * rate[i]
        y = x + memory[i]
        first.append(2.0 * x - a1 * y + memory[3 + i])
        second.append(x - a2 * y)
        out.append(y)
    return tuple(out), (*first, *second)


def _rotors(s: FlightState, commands: Vector, controller_model: ControllerModel) -> Vector:
    """Rotor speeds at the end of the step [rad/s]; the thrust of the step is theirs."""
    if controller_model.chain is not None:
        wanted = tuple(speed_of_command(u, controller_model.chain) for u in commands)
    else:
        wanted = tuple(_ideal_speed(u, controller_model) for u in commands)
    if controller_model.response is None:
        return wanted
    (rise, rise2), (fall, fall2) = controller_model.response
    speeds = []
    for w, c in zip(s.rotors, wanted, strict=True):
        up = DT * (rise * (c - w) + rise2 * (c * c - w * w))
        down = DT * (fall * (c - w) + fall2 * (c * c - w * w))
        speeds.append(w + where(c >= w, up, down))
    return tuple(speeds)


def _ideal_speed(command: Scalar, controller_model: ControllerModel) -> Scalar:
    """Speed at which the thrust is the command's share of the largest."""
    c0, c1, c2 = controller_model.thrust
    low, high = (c0 + w * (c1 + c2 * w) for w in controller_model.speed_range)
    thrust = clip(command * (high / COMMAND_MAX), low, high)
    return (sqrt(maximum(c1 * c1 - 4.0 * c2 * c0 + (4.0 * c2) * thrust, 0.0)) - c1) * (0.5 / c2)


def _move(s: FlightState, rotors: Vector, noise: Vector, p: Lane, controller_model: ControllerModel) -> FlightState:
    """Rigid body under the rotors' wrench, gravity, drag and the outer force."""
    c0, c1, c2 = controller_model.thrust
    t0, t1, t2 = controller_model.torque
    thrust = tuple(c0 + w * (c1 + c2 * w) + n for w, n in zip(rotors, noise[3:], strict=True))
    torque = tuple(t0 + w * (t1 + t2 * w) for w in rotors)
    moment = [
        _weighted([y for _, y in controller_model.levers], thrust),
        _weighted([-x for x, _ in controller_model.levers], thrust),
    ]
    moment.append(_weighted(controller_model.spins, torque))
    lift = (0.0, 0.0, thrust[0] + thrust[1] + thrust[2] + thrust[3])
    force = add(rotate(s.attitude, _dragged(s, rotors, lift, controller_model)), tuple(noise[:3]))
    push = scale(force, p.inverse_mass)
    push = (push[0], push[1], push[2] - controller_model.gravity)
    velocity = add(s.velocity, scale(push, DT))
    position = add(s.position, scale(add(s.velocity, velocity), 0.5 * DT))
    rate = _turned(s.rate, moment, p)
    return s._replace(
        position=position, velocity=velocity, rate=rate, attitude=_attitude(s.attitude, add(s.rate, rate)), rotors=rotors
    )


def _dragged(s: FlightState, rotors: Vector, lift: Vector, controller_model: ControllerModel) -> Vector:
    """Force in the body frame: lift and drag by speed, linear and with the rotors' speeds."""
    if not any(controller_model.drag_linear) and not any(controller_model.drag_rotor):
        return lift
    body_velocity = rotate_inverse(s.attitude, s.velocity)
    turning = rotors[0] + rotors[1] + rotors[2] + rotors[3]
    return tuple(
        f - (a + b * turning) * v
        for f, a, b, v in zip(lift, controller_model.drag_linear, controller_model.drag_rotor, body_velocity, strict=True)
    )


def _turned(rate: Vector, moment: Any, p: Lane) -> Vector:
    """Euler's equations over a step."""
    wx, wy, wz = rate
    ix, iy, iz = p.inertia
    gyroscopic = ((iz - iy) * wy * wz, (ix - iz) * wz * wx, (iy - ix) * wx * wy)
    change = (DT * (m - g) * j for m, g, j in zip(moment, gyroscopic, p.inverse_inertia, strict=True))
    return tuple(w + d for w, d in zip(rate, change, strict=True))


def _attitude(attitude: Vector, rates: Vector) -> Vector:
    """Return turned by the mean of two rates (their sum is given) over a step, with one Newton step back to unit length."""
    a, b, c = scale(rates, 0.25 * DT)
    turned = quaternion_multiply(attitude, (a, b, c, 1.0))
    squared = turned[0] * turned[0] + turned[1] * turned[1] + turned[2] * turned[2] + turned[3] * turned[3]
    return scale(turned, 1.5 - 0.5 * squared)


def _weighted(weights: Any, values: Vector) -> Scalar:
    return weights[0] * values[0] + weights[1] * values[1] + weights[2] * values[2] + weights[3] * values[3]


def _touching(s: FlightState, p: Lane, controller_model: ControllerModel) -> Scalar:
    """1 where the body's box is in the floor or in a bar of a frame.

    Upwards the box is as tall as the tilted cylinder; level it is as wide as the cylinder's diagonal, 1.3 mm more than the
    Crazyflie's radius.
    """
    radius, half = controller_model.body
    upright = matrix_columns(s.attitude)[2][2]
    tall = half * absolute(upright) + radius * sqrt(maximum(1.0 - upright * upright, 0.0))
    wide = (radius * radius + half * half) ** 0.5
    hit = where(s.position[2] - tall < p.floor, 1.0, 0.0)
    for position, normal in ((p.behind, (1.0, 0.0)), ((0.0, 0.0, 0.0), p.normal), (p.ahead, p.normal_ahead)):
        x, y, z = sub(s.position, position)
        along, aside = absolute(x * normal[0] + y * normal[1]), absolute(y * normal[0] - x * normal[1])
        height = absolute(z)
        near = where(along < 0.5 * BAR + wide, 1.0, 0.0)
        near = where(aside < 0.5 * OPENING + BAR + wide, near, 0.0)
        near = where(height < 0.5 * OPENING + BAR + tall, near, 0.0)
        free = where(aside < 0.5 * OPENING - wide, where(height < 0.5 * OPENING - tall, 0.0, 1.0), 1.0)
        hit = maximum(hit, near * free)
    return hit


def _passed(before: Vector, after: Vector, p: Lane) -> Scalar:
    """1 where the plane of gate i was crossed forwards within its opening."""
    ahead_before = before[0] * p.normal[0] + before[1] * p.normal[1]
    ahead_after = after[0] * p.normal[0] + after[1] * p.normal[1]
    rise = ahead_after - ahead_before
    share = -ahead_before / where(rise > 0.0, rise, 1.0)
    met = add(before, scale(sub(after, before), share))
    aside = absolute(met[1] * p.normal[0] - met[0] * p.normal[1])
    within = where(aside <= 0.5 * OPENING, where(absolute(met[2]) <= 0.5 * OPENING, 1.0, 0.0), 0.0)
    return where(ahead_before < 0.0, where(ahead_after >= 0.0, within, 0.0), 0.0)


def reference_at(sigma: Scalar, coefficients: Vector, pace: Scalar) -> Vector:
    """Return position, velocity and acceleration (3 each) of a segment.

    Args:
        sigma: Part of the segment flown, less a half: about the middle the powers do not cancel in float32.
        coefficients: Ascending powers of sigma, three axes of eight.
        pace: 1 / duration [1/s].
    """
    position, velocity, push = [], [], []
    for axis in range(3):
        c = coefficients[8 * axis : 8 * axis + 8]
        value, slope, bend = c[7], 7.0 * c[7], 42.0 * c[7]
        for k in range(6, -1, -1):
            value = value * sigma + c[k]
            if k >= 1:
                slope = slope * sigma + k * c[k]
            if k >= 2:
                bend = bend * sigma + (k * (k - 1.0)) * c[k]
        position.append(value)
        velocity.append(slope * pace)
        push.append(bend * (pace * pace))
    return (*position, *velocity, *push)
