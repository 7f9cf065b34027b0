"""Equations of motion of a rigid multirotor, as plain functions of scalars (see `airworthy.core.ops`).

Vectors are tuples; `p` is a record of parameters (`parameters.rigid_layout`), either numbers, NumPy arrays or traced values.
Frames: world z up, body x forward, y left, z up, moments about the centre of mass. Specification: rotors and drag of
FlightGoggles (section 4) and Aerial Gym (sections 3 to 5), the rotor response of Crazyflow, drag by rotor speed
and the air at the hubs of RotorPy.
"""

from __future__ import annotations

from typing import Any

from airworthy.core.arrays import Scalar, Vector
from airworthy.core.ops import absolute, cos, maximum, minimum, sqrt, where
from airworthy.core.vectors import (
    add,
    choose,
    cross,
    dot,
    matrix_columns,
    quaternion_derivative,
    quaternion_multiply,
    scale,
    sub,
    symmetric_multiply,
)


def polynomial(c: Vector, w: Scalar) -> Scalar:
    """Return c0 + c1 w + c2 w|w|: thrust or torque of a rotor; zero at rest when c0 is zero."""
    return c[0] + w * (c[1] + c[2] * absolute(w))


def rotor_acceleration(speed: Vector, command: Vector, p: Any, square: bool = False) -> Vector:
    """Return the rate of change of each rotor state [rad/s^2]: a (c - w) + b (c|c| - w|w|), coefficients by rise or fall.

    Rise means that the magnitude is to grow; for reversible rotors the specification's (9) is read on magnitudes. `square`
    says that rotors are first order (b = 0) and never turn backwards.

    Args:
        speed: Rotor states w [rad/s], n of them.
        command: Commanded states c [rad/s], n.
        p: Parameters: rotor_rise and rotor_fall, per rotor a [1/s] and b [1/rad].
        square: Whether all rotors are first order; known when a kernel is built.
    """
    rates = []
    for w, c, up, down in zip(speed, command, p.rotor_rise, p.rotor_fall, strict=True):
        if square:
            rates.append((c - w) * where(c >= w, up[0], down[0]))
            continue
        rising = absolute(c) >= absolute(w)
        a, b = where(rising, up[0], down[0]), where(rising, up[1], down[1])
        rates.append((c - w) * a + b * (c * absolute(c) - w * absolute(w)))
    return tuple(rates)


def rotor_exact(speed: Vector, command: Vector, keep_rise: Vector, keep_fall: Vector) -> Vector:
    """Return the exact first-order response: w+ = c + (w - c) exp(-dt/tau), with the factors given.

    Args:
        speed: Rotor states w [rad/s], n of them.
        command: Commanded states c [rad/s], n, held over the step.
        keep_rise: exp(-t/tau) of each rotor where the magnitude is to grow, t the time to advance.
        keep_fall: The same where it is to fall.
    """
    return tuple(
        c + (w - c) * where(absolute(c) >= absolute(w), up, down)
        for w, c, up, down in zip(speed, command, keep_rise, keep_fall, strict=True)
    )


def clip_rotors(speed: Vector, lower: Vector, upper: Vector, ceiling: Scalar) -> Vector:
    """Return rotor states within their limits; `ceiling` scales the upper limit (battery voltage over nominal).

    Args:
        speed: Rotor states [rad/s], n of them.
        lower: Least states [rad/s], n.
        upper: Largest states at nominal voltage [rad/s], n.
        ceiling: Battery voltage over nominal.
    """
    return tuple(minimum(maximum(w, lo), hi * ceiling) for w, lo, hi in zip(speed, lower, upper, strict=True))


def rotor_wrench(
    speed: Vector, acceleration: Vector, thrust_factor: Vector | None, p: Any, planar: bool, square: bool
) -> tuple[Vector, Vector, Vector]:
    """Return force, moment and rotor angular momentum in the body frame.

    Args:
        speed: Rotor states, n.
        acceleration: Their rates, n; rotor inertia turns them into torque.
        thrust_factor: Per-rotor multiplier (ground effect), n; None for 1.
        p: Parameters.
        planar: Every axis is body z: terms that vanish are not computed.
        square: Thrust and torque are pure squares of a speed that is never negative.
    """
    force, moment, momentum = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    for i, w in enumerate(speed):
        axis = (0.0, 0.0, 1.0) if planar else p.rotor_axis[i]
        lever = (p.rotor_lever[i][0], p.rotor_lever[i][1], 0.0) if planar else p.rotor_lever[i]
        thrust = w * (p.rotor_thrust[i][2] * w) if square else polynomial(p.rotor_thrust[i], w)
        if thrust_factor is not None:
            thrust = thrust * thrust_factor[i]
        # Torque and inertia rows carry the spin: positive along the axis.
        reaction = w * (p.rotor_torque[i][2] * w) if square else polynomial(p.rotor_torque[i], w)
        force = add(force, scale(axis, thrust))
        moment = add(moment, add(scale(lever, thrust), scale(axis, reaction + p.rotor_inertia[i] * acceleration[i])))
        # A rotor whose reaction torque points along the axis turns against it.
        momentum = sub(momentum, scale(axis, p.rotor_inertia[i] * w))
    return force, moment, momentum


def drag_wrench(velocity_air: Vector, body_rate: Vector, rotor_speed: Vector, p: Any, simple: bool) -> tuple[Vector, Vector]:
    """Return the aerodynamic force and moment in the body frame.

    Args:
        velocity_air: Velocity through the air, body [m/s].
        body_rate: Body rate [rad/s].
        rotor_speed: Rotor states, n.
        p: Parameters.
        simple: Only the linear terms and those with the vector's norm are there, acting at the centre of mass.
    """
    speed, spin = sqrt(dot(velocity_air, velocity_air)), sqrt(dot(body_rate, body_rate))
    total = sum((absolute(w) for w in rotor_speed[1:]), absolute(rotor_speed[0]))
    force, moment = [], []
    for i, (v, w) in enumerate(zip(velocity_air, body_rate, strict=True)):
        f = p.drag_linear[i] + p.drag_norm[i] * speed
        t = p.angular_linear[i] + p.angular_norm[i] * spin
        if not simple:
            f = f + p.drag_axis[i] * absolute(v) + p.drag_rotor[i] * total
            t = t + p.angular_axis[i] * absolute(w)
        force.append(-v * f)
        moment.append(-w * t)
    if simple:
        return tuple(force), tuple(moment)
    return tuple(force), add(tuple(moment), cross(p.drag_center, tuple(force)))


def hub_wrench(velocity_air: Vector, body_rate: Vector, rotor_speed: Vector, p: Any, planar: bool) -> tuple[Vector, Vector]:
    """Return force and moment that the air adds at the rotors' hubs, body frame, moment about the centre of mass.

    With the velocity u = v + w x r of a hub through the air, split along the axis a and across it: drag
    -|W| (c_t u_across + c_a u_along), thrust c_l |u_across|^2 along a, and the moment c_f |W| u x a of blades that flap back.
    The forms are RotorPy's (3.0, there for axes along body z and with the opposite sign of c_f).

    Args:
        velocity_air: Velocity of the body through the air, body [m/s].
        body_rate: Body rate [rad/s].
        rotor_speed: Rotor states W, n.
        p: Parameters.
        planar: Every axis is body z.
    """
    force, moment = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    for i, w in enumerate(rotor_speed):
        local = add(velocity_air, cross(body_rate, p.rotor_position[i]))
        axis = (0.0, 0.0, 1.0) if planar else p.rotor_axis[i]
        along = local[2] if planar else dot(local, axis)
        across = (local[0], local[1], 0.0) if planar else sub(local, scale(axis, along))
        size = absolute(w)
        lift = p.rotor_translational_lift[i] * dot(across, across)
        drag = add(scale(across, p.rotor_hub_drag[i][0]), scale(axis, p.rotor_hub_drag[i][1] * along))
        pull = sub(scale(axis, lift), scale(drag, size))
        force = add(force, pull)
        turn = scale(cross(local, axis), p.rotor_flapping[i] * size)
        moment = add(moment, add(cross(p.rotor_position[i], pull), turn))
    return force, moment


def derivative(
    velocity: Vector,
    attitude: Vector,
    body_rate: Vector,
    rotor_speed: Vector,
    command: Vector,
    wind: Vector,
    force: Vector,
    moment: Vector,
    thrust_factor: Vector | None,
    p: Any,
    planar: bool = False,
    square: bool = False,
    drag: str = "full",
    exact: Scalar = 0.0,
    mean_rate: Vector | None = None,
) -> tuple[Vector, Vector, Vector, Vector, Vector]:
    """Return the time derivative of a rigid multirotor.

    Specialised forms drop terms that are zero and change no other operation; kernels are compiled without contraction of
    multiply-adds, so a vehicle flies to the same bits in a batch that needs a more general form.

    Args:
        velocity: World [m/s].
        attitude: Quaternion x, y, z, w, body to world; near unit length.
        body_rate: Body rate in the body frame [rad/s].
        rotor_speed: Rotor states, n.
        command: Commanded rotor states within limits, n.
        wind: Air velocity, world [m/s].
        force: External force, world [N].
        moment: External moment, body [N m].
        thrust_factor: Per-rotor thrust multiplier, n; None for 1.
        p: Parameters.
        planar: All rotor axes are body z and the inertia is diagonal.
        square: Thrust and torque are pure squares, rotors first order and not reversible.
        drag: "none", "simple" (linear and norm terms), "full", or "hubs": that at the rotors' hubs as well.
        exact: 1 where rotors advance by their exact solution, else 0.
        mean_rate: Then the mean rate of each rotor over the step, n: the torque of its inertia has to follow what the rotor
            really does, or angular momentum is lost at steps longer than the lag.

    Returns:
        Acceleration (world), quaternion derivative, angular acceleration (body), rotor accelerations, and the specific force
        in the body frame, i.e. everything but gravity over mass [m/s^2].
    """
    rotor_rate = rotor_acceleration(rotor_speed, command, p, square)
    felt = rotor_rate if mean_rate is None else choose(exact > 0.5, mean_rate, rotor_rate)
    body_force, torque, momentum = rotor_wrench(rotor_speed, felt, thrust_factor, p, planar, square)
    columns = matrix_columns(attitude)
    if drag != "none":
        through_air = _into_body(columns, sub(velocity, wind))
        drag_force, drag_moment = drag_wrench(through_air, body_rate, rotor_speed, p, drag == "simple")
        body_force, torque = add(body_force, drag_force), add(torque, drag_moment)
        if drag == "hubs":
            hub_force, hub_moment = hub_wrench(through_air, body_rate, rotor_speed, p, planar)
            body_force, torque = add(body_force, hub_force), add(torque, hub_moment)
    force_world = tuple(
        columns[0][i] * body_force[0] + columns[1][i] * body_force[1] + columns[2][i] * body_force[2] for i in range(3)
    )
    acceleration = scale(add(force_world, force), p.mass_inverse)
    acceleration = (acceleration[0], acceleration[1], acceleration[2] - p.gravity)
    net = sub(add(torque, moment), cross(body_rate, add(_inertia_times(p.inertia, body_rate, planar), momentum)))
    rate_dot = _inertia_times(p.inertia_inverse, net, planar)
    specific = scale(add(body_force, _into_body(columns, force)), p.mass_inverse)
    return acceleration, quaternion_derivative(attitude, body_rate), rate_dot, rotor_rate, specific


def _into_body(columns: tuple[Vector, Vector, Vector], vector: Vector) -> Vector:
    return tuple(dot(axis, vector) for axis in columns)


def _inertia_times(inertia: Vector, vector: Vector, diagonal: bool) -> Vector:
    return tuple(inertia[i] * vector[i] for i in range(3)) if diagonal else symmetric_multiply(inertia, vector)


def accelerometer(specific: Vector, body_rate: Vector, rate_dot: Vector, rotation: Vector, position: Vector) -> Vector:
    """Return the specific force at an offset, turned sensor [m/s^2]: R^T (f + dw x r + w x (w x r)).

    Args:
        specific: Specific force at the centre of mass, body.
        body_rate: Body rate [rad/s].
        rate_dot: Angular acceleration [rad/s^2].
        rotation: Sensor-to-body matrix, 9 numbers by rows.
        position: Sensor from the centre of mass, body [m].
    """
    f = add(specific, add(cross(rate_dot, position), cross(body_rate, cross(body_rate, position))))
    return into_sensor(f, rotation)


def into_sensor(vector: Vector, rotation: Vector) -> Vector:
    """Return a body vector in the sensor frame: R^T v, R the sensor-to-body matrix by rows."""
    return tuple(rotation[i] * vector[0] + rotation[3 + i] * vector[1] + rotation[6 + i] * vector[2] for i in range(3))


def wind_velocity(time: Scalar, turbulence: Vector, p: Any) -> Vector:
    """Return air velocity, world [m/s]: mean wind, one 1-cosine gust pulse, turbulence.

    Args:
        time: Of the simulation [s].
        turbulence: Velocity that is added, world [m/s].
        p: Parameters: wind, gust, gust_start, gust_duration.
    """
    duration = maximum(p.gust_duration, 1e-6)
    phase = (time - p.gust_start) / duration
    inside = (phase > 0.0) & (phase < 1.0)
    share = where(inside, 0.5 * (1.0 - cos(6.283185307179586 * minimum(maximum(phase, 0.0), 1.0))), 0.0)
    return tuple(p.wind[i] + p.gust[i] * share + turbulence[i] for i in range(3))


def dryden_step(state: Vector, noise: Vector, p: Any) -> tuple[Vector, Vector]:
    """Return one step of Dryden turbulence: 5 filter states, 3 normals -> next states and velocity along wind axes [m/s].

    Longitudinal: first order. Lateral and vertical: two cascaded first-order states, output a + mix b (MIL-F-8785C forms,
    discretised exactly for white noise held over the step).

    Args:
        state: Filter states: longitudinal, two lateral, two vertical [m/s].
        noise: Three independent standard normal numbers.
        p: Parameters: dryden_keep, dryden_gain, dryden_mix, per axis.
    """
    k, g, m = p.dryden_keep, p.dryden_gain, p.dryden_mix
    u = k[0] * state[0] + g[0] * noise[0]
    a_v = k[1] * state[1] + g[1] * noise[1]
    b_v = k[1] * state[2] + (1.0 - k[1]) * a_v
    a_w = k[2] * state[3] + g[2] * noise[2]
    b_w = k[2] * state[4] + (1.0 - k[2]) * a_w
    velocity = (u, a_v * m[1] + b_v * (1.0 - m[1]), a_w * m[2] + b_w * (1.0 - m[2]))
    return (u, a_v, b_v, a_w, b_w), velocity


def ground_effect_factors(height: Scalar, attitude: Vector, p: Any) -> Vector:
    """Return thrust multiplier per rotor near the ground: 1 + c (radius / (4 h))^2, h the hub's height, at least half a radius.

    The form of the gym-pybullet-drones lineage (spec/boundary_predictor 10); it acts while the body is not upside down.

    Args:
        height: Of the centre of mass, world z [m].
        attitude: Quaternion x, y, z, w, body to world.
        p: Parameters: rotor_position, rotor_radius, ground_height, ground_effect.
    """
    up = matrix_columns(attitude)
    upright = where(up[2][2] > 0.0, 1.0, 0.0)
    factors = []
    for position, radius in zip(p.rotor_position, p.rotor_radius, strict=True):
        hub = height + up[0][2] * position[0] + up[1][2] * position[1] + up[2][2] * position[2] - p.ground_height
        ratio = radius / (4.0 * maximum(hub, 0.5 * radius + 1e-6))
        factors.append(1.0 + upright * p.ground_effect * ratio * ratio)
    return tuple(factors)


def battery_step(charge: Scalar, rotor_speed: Vector, dt: Scalar, p: Any) -> tuple[Scalar, Scalar]:
    """Return the charge used [A s] after a step, and voltage over nominal (the factor on rotor speed limits).

    Args:
        charge: Used before the step [A s].
        rotor_speed: Rotor states [rad/s], n of them.
        dt: Step [s].
        p: Parameters: battery (full voltage [V], slope [V/(A s)], resistance [Ohm], nominal voltage [V], 1 / efficiency,
            capacity [A s]), rotor_torque.
    """
    full, slope, resistance, nominal, inverse_efficiency, capacity = p.battery
    power = 0.0
    for w, torque in zip(rotor_speed, p.rotor_torque, strict=True):
        power = power + absolute(w * polynomial(torque, w))
    open_voltage = full - slope * minimum(charge, capacity)
    # I from P = (V0 - R I) I, the smaller root, written without cancellation.
    electric = power * inverse_efficiency
    root = sqrt(maximum(open_voltage * open_voltage - 4.0 * resistance * electric, 0.0))
    current = 2.0 * electric / maximum(open_voltage + root, 1e-3)
    return charge + current * dt, maximum(open_voltage - resistance * current, 0.0) / nominal


def quaternion_exponential(attitude: Vector, body_rate: Vector, dt: Scalar) -> Vector:
    """Return the attitude after turning at a constant body rate for dt: q exp(w dt / 2), to fourth order in the half angle.

    Used by the semi-implicit step; the result is renormalised by the caller.

    Args:
        attitude: Quaternion x, y, z, w, body to world.
        body_rate: Body rate [rad/s], held.
        dt: Step [s].
    """
    half = scale(body_rate, 0.5 * dt)
    s = dot(half, half)
    sine = 1.0 - s * (1.0 / 6.0) + s * s * (1.0 / 120.0)
    cosine = 1.0 - s * 0.5 + s * s * (1.0 / 24.0)
    return quaternion_multiply(attitude, (*scale(half, sine), cosine))


def normalize(attitude: Vector) -> Vector:
    """Return the unit quaternion; the components of a zero one stay zero."""
    length = sqrt(attitude[0] * attitude[0] + attitude[1] * attitude[1] + attitude[2] * attitude[2] + attitude[3] * attitude[3])
    inverse = 1.0 / maximum(length, 1e-12)
    return tuple(c * inverse for c in attitude)
