"""Fills the parameter rows of a batch: vehicles, surroundings, sensor, and the spread between flights."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.frames import to_matrix
from airworthy.core.layout import Layout
from airworthy.core.random import Stream, Words, normals, uniforms
from airworthy.dynamics.parameters import body_parameters, invert_inertia, rigid_layout
from airworthy.dynamics.state import Effects
from airworthy.simulation.config import Imu, Randomization, SimulatorConfig, Wind
from airworthy.vehicles.record import Vehicle

Array = NDArray[np.float64]


def rigid_column(item: Vehicle, config: SimulatorConfig, layout: Layout, rotor_count: int) -> Array:
    """The vehicle's part of a parameter column of the rigid family, with its surroundings and sensor.

    Raises:
        AirworthyError: If the configuration asks for the exact solution of rotors that are not first order.
    """
    if config.exact_rotors and any(r.response.rise[1] or r.response.fall[1] for r in item.rotors):
        raise AirworthyError(f"exact_rotors needs first-order rotors; those of {item.name} are not: set exact_rotors=False.")
    column = np.zeros(layout.size)
    body = rigid_layout(rotor_count)
    column[: body.size] = body_parameters(item, body, rotor_count)
    dt = 1.0 / config.physics_rate
    column[layout.rows("force_noise")] = np.sqrt(np.asarray(item.wrench_noise.force) / dt)
    column[layout.rows("moment_noise")] = np.sqrt(np.asarray(item.wrench_noise.moment) / dt)
    _put_rotor_keep(column, layout, dt)
    _put_wind(column, layout, config.wind, dt)
    if config.ground is not None:
        column[layout.rows("ground_height")] = config.ground.height
        column[layout.rows("friction")] = config.ground.friction
        column[layout.rows("restitution")] = config.ground.restitution
    column[layout.rows("ground_effect")] = config.ground_effect
    if config.imu is not None:
        _put_imu(column, layout, config.imu, np.asarray(item.center_of_mass), config.physics_rate)
    return column


def _put_rotor_keep(rows: Array, layout: Layout, dt: float) -> None:
    """Factors exp(-dt / tau) of the exact rotor update, for a step and half a step; rows (rows,) or (rows, env)."""
    for name in ("rise", "fall"):
        rate = rows[layout.rows(f"rotor_{name}")][::2]
        rows[layout.rows(f"rotor_{name}_keep")] = np.exp(-dt * rate)
        rows[layout.rows(f"rotor_{name}_keep_half")] = np.exp(-0.5 * dt * rate)


def _put_wind(column: Array, layout: Layout, wind: Wind, dt: float) -> None:
    """Mean wind, gust pulse, and Dryden filters discretised for noise held over a step.

    A first-order state x+ = a x + g n with a = exp(-dt V / L) has unit variance for g = sqrt(1 - a^2). The lateral output
    sqrt(3) x1 + (1 - sqrt(3)) x2, x2 = low-passed x1, has the variance 1 of the Dryden form (1 + sqrt(3) T s) / (1 + T s)^2
    as dt goes to 0; it is scaled so that the discrete one has exactly the standard deviation asked for.
    """
    column[layout.rows("wind")] = wind.mean
    column[layout.rows("gust")] = wind.gust
    column[layout.rows("gust_start")] = wind.gust_start
    column[layout.rows("gust_duration")] = wind.gust_duration
    keep = np.exp(-dt * wind.airspeed / np.asarray(wind.turbulence_length))
    mix = np.array([1.0, np.sqrt(3.0), np.sqrt(3.0)])
    spread = np.array([1.0, *(_cascade_spread(a, np.sqrt(3.0)) for a in keep[1:])])
    column[layout.rows("dryden_keep")] = keep
    column[layout.rows("dryden_mix")] = mix
    column[layout.rows("dryden_gain")] = np.sqrt(1.0 - keep**2) * np.asarray(wind.turbulence) / spread


def _cascade_spread(a: float, mix: float) -> float:
    """Standard deviation of mix x1 + (1 - mix) x2 for x1+ = a x1 + sqrt(1 - a^2) n, x2+ = a x2 + (1 - a) x1+."""
    b = 1.0 - a
    # Stationary moments: <x1 x1> = 1; <x1 x2> = a^2 c + b; <x2 x2> = a^2 s + 2 a b a c + b^2.
    cross = b / (1.0 - a * a)
    square = (2.0 * a * a * b * cross + b * b) / (1.0 - a * a)
    return float(np.sqrt(mix * mix + 2.0 * mix * (1.0 - mix) * cross + (1.0 - mix) ** 2 * square))


def started_turbulence(keep: Array, gain: Array, keys: Words) -> Array:
    """Filter states of Dryden turbulence that has always blown, from each flight's own key, shape (5, env).

    Args:
        keep: Rows `dryden_keep`, shape (3, env).
        gain: Rows `dryden_gain`, shape (3, env).
        keys: Flight keys, shape (env, 4).

    Of the cascade x1+ = a x1 + g n, x2+ = a x2 + (1 - a) x1+ the stationary moments: <x1 x1> = g^2 / (1 - a^2),
    <x1 x2> = <x1 x1> / (1 + a), and <x2 x2> from its own recursion.
    """
    draw = normals(keys, 3, Stream.RESET, 8).T
    first = gain**2 / (1.0 - keep**2)
    share = 1.0 / (1.0 + keep)  # of x1 in x2
    second = (2.0 * keep**2 * (1.0 - keep) * share + (1.0 - keep) ** 2) / (1.0 - keep**2) * first
    rest = np.sqrt(np.maximum(second - share**2 * first, 0.0))
    state = [np.sqrt(first[0]) * draw[0]]
    for axis in (1, 2):
        outer = np.sqrt(first[axis]) * draw[2 * axis - 1]
        state += [outer, share[axis] * outer + rest[axis] * draw[2 * axis]]
    return np.stack(state)


def _put_imu(column: Array, layout: Layout, imu: Imu, com: Array, rate: float) -> None:
    column[layout.rows("imu_rotation")] = to_matrix(np.asarray(imu.mounting())).ravel()
    column[layout.rows("imu_position")] = np.asarray(imu.position) - com
    column[layout.rows("imu_noise")] = np.array([*imu.accelerometer_noise, *imu.gyroscope_noise]) * np.sqrt(rate)
    column[layout.rows("imu_walk")] = np.array([*imu.accelerometer_walk, *imu.gyroscope_walk]) / np.sqrt(rate)
    column[layout.rows("imu_limit")] = (imu.accelerometer_limit, imu.gyroscope_limit)


def randomize(rows: Array, layout: Layout, spread: Randomization, keys: Words) -> Array:
    """Parameter rows of flights, each drawn from its own key.

    Args:
        rows: Nominal rows, shape (rows, env); not changed.
        layout: Their layout.
        spread: Relative half widths.
        keys: Flight keys, shape (env, 4).

    Returns:
        New rows of the same shape.
    """
    out = rows.copy()
    draw = 2.0 * uniforms(keys, 0, Stream.PARAMETERS, 24).T - 1.0

    def factor(share: float, index: int) -> Array:
        return 1.0 + share * draw[index]

    mass = factor(spread.mass, 0)
    out[layout.rows("mass")] *= mass
    out[layout.rows("mass_inverse")] /= mass
    if "rotor_thrust" not in layout:
        out[layout.rows("thrust_limit")] *= factor(spread.thrust, 4)
        return out
    axes = np.stack([mass * factor(spread.inertia, 1 + i) for i in range(3)])
    _scale_inertia(out, layout, axes)
    thrust = factor(spread.thrust, 4)
    for i in range(layout.fields["rotor_thrust"][0]):
        rotor = thrust * factor(spread.rotor, 5 + i)
        for name in ("rotor_thrust", "rotor_torque"):
            start = layout.offsets[name] + 3 * i
            out[start : start + 3] *= rotor
    for name in ("drag_linear", "drag_norm", "drag_axis", "drag_rotor", "angular_linear", "angular_norm", "angular_axis"):
        out[layout.rows(name)] *= factor(spread.drag, 13)
    lag = factor(spread.lag, 14)
    for name in ("rotor_rise", "rotor_fall"):
        out[layout.rows(name)] /= lag
        for suffix in ("_keep", "_keep_half"):
            out[layout.rows(name + suffix)] **= 1.0 / lag
    out[layout.rows("wind")] += spread.wind * np.stack([draw[15], draw[16], np.zeros_like(draw[15])])
    return out


def _scale_inertia(rows: Array, layout: Layout, axes: Array) -> None:
    """Scale inertia as J_ij sqrt(s_i s_j), which keeps it positive definite, and its inverse accordingly."""
    pairs = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
    factors = np.stack([np.sqrt(axes[i] * axes[j]) for i, j in pairs])
    rows[layout.rows("inertia")] *= factors
    rows[layout.rows("inertia_inverse")] /= factors


def with_parameter(rows: Array, layout: Layout, name: str, value: ArrayLike, dt: float) -> Array:
    """Rows with one parameter changed, and those that follow from it.

    Args:
        rows: Shape (rows, env); not changed.
        layout: Their layout.
        name: Field to change.
        value: (env, k), or (env,) for a scalar field; or (k,) or a number for all.
        dt: Physics step [s].

    Raises:
        AirworthyError: If the name is unknown, or the shape or an inertia cannot be used.
    """
    if name not in layout:
        raise unknown_name("parameter", name, layout.fields)
    array, shape, env_count = np.asarray(value, float), layout.fields[name], rows.shape[1]
    width = int(np.prod(shape, dtype=int))
    shared = array.ndim == 0 or (shape != () and array.shape in (shape, (width,)))
    if not shared and array.shape not in ((env_count, *shape), (env_count, width) if shape else (env_count,)):
        raise AirworthyError(f"Parameter {name!r} got shape {array.shape}; expected {(env_count, *shape)} or {shape}.")
    out = rows[:, :1].copy() if shared and rows.strides[1] == 0 else rows.copy()
    out[layout.rows(name)] = array.reshape(-1, 1) if shared else array.reshape(env_count, width).T
    _follow(out, layout, name, dt)
    return np.broadcast_to(out, rows.shape) if out.shape != rows.shape else out


def _follow(rows: Array, layout: Layout, name: str, dt: float) -> None:
    """Bring what is derived from a changed parameter up to date."""
    get = layout.rows
    with np.errstate(all="ignore"):
        if name == "mass":
            rows[get("mass_inverse")] = 1.0 / rows[get("mass")]
        elif name == "mass_inverse":
            rows[get("mass")] = 1.0 / rows[get("mass_inverse")]
        elif name in ("inertia", "inertia_inverse"):
            other = "inertia_inverse" if name == "inertia" else "inertia"
            try:
                rows[get(other)] = np.stack([invert_inertia(tuple(column)) for column in rows[get(name)].T], axis=1)
            except np.linalg.LinAlgError:
                raise AirworthyError(f"Parameter {name!r} got a matrix that cannot be inverted.") from None
        elif name in ("rotor_rise", "rotor_fall"):
            _put_rotor_keep(rows, layout, dt)
        elif name in ("rotor_axis", "rotor_position"):
            axis, position = (rows[get(n)].reshape(-1, 3, rows.shape[1]) for n in ("rotor_axis", "rotor_position"))
            rows[get("rotor_lever")] = np.cross(position, axis, axis=1).reshape(-1, rows.shape[1])
        elif name in ("contact_point", "contact_radius"):
            points = rows[get("contact_point")].reshape(-1, 3, rows.shape[1])
            rows[get("contact_reach")] = np.linalg.norm(points, axis=1).max(axis=0) + rows[get("contact_radius")]


def effects_of(rows: Array, layout: Layout, config: SimulatorConfig) -> Effects:
    """The effects that a batch needs, from its parameters and its configuration."""
    rotor_count = layout.fields["rotor_axis"][0]
    effects = Effects(0)

    def any_of(*names: str) -> bool:
        return any(bool(np.any(rows[layout.rows(name)] != 0.0)) for name in names)

    axis = rows[layout.rows("rotor_axis")].reshape(rotor_count, 3, -1)
    products = rows[layout.rows("inertia")][3:]
    if not (np.any(axis[:, :2] != 0.0) or np.any(axis[:, 2] != 1.0) or np.any(products != 0.0)):
        effects |= Effects.PLANAR
    if _square_rotors(rows, layout) and not config.exact_rotors and config.ground_effect == 0.0:
        effects |= Effects.SQUARE
    if any_of("drag_linear", "drag_norm", "drag_axis", "drag_rotor", "angular_linear", "angular_norm", "angular_axis"):
        effects |= Effects.DRAG
        if any_of("drag_axis", "drag_rotor", "angular_axis", "drag_center"):
            effects |= Effects.DRAG_FULL
    if config.wrench_noise and any_of("force_noise", "moment_noise"):
        effects |= Effects.WRENCH_NOISE
    if config.disturbance and any_of("disturbance_probability"):
        effects |= Effects.DISTURBANCE
    if any_of("wind", "gust"):
        effects |= Effects.WIND
    if any_of("dryden_gain"):
        effects |= Effects.WIND | Effects.TURBULENCE
    if config.imu is not None:
        effects |= Effects.IMU
        if any_of("imu_noise", "imu_walk"):
            effects |= Effects.IMU_NOISE
    if config.ground is not None:
        effects |= Effects.GROUND
    if config.ground_effect != 0.0:
        effects |= Effects.GROUND_EFFECT
    if config.battery:
        effects |= Effects.BATTERY
    if config.exact_rotors:
        effects |= Effects.EXACT_ROTORS
    if config.control.allocation == "pseudo_inverse":
        effects |= Effects.PSEUDO_INVERSE
    if config.gyro_feedback:
        effects |= Effects.GYRO_FEEDBACK
    return effects


def _square_rotors(rows: Array, layout: Layout) -> bool:
    thrust = rows[layout.rows("rotor_thrust")].reshape(-1, 3, rows.shape[1])[:, :2]
    torque = rows[layout.rows("rotor_torque")].reshape(-1, 3, rows.shape[1])[:, :2]
    second = [rows[layout.rows(name)].reshape(-1, 2, rows.shape[1])[:, 1] for name in ("rotor_rise", "rotor_fall")]
    reversible = rows[layout.rows("rotor_min")] < 0.0
    return not any(np.any(x != 0.0) for x in (thrust, torque, *second, reversible))


__all__ = ["effects_of", "randomize", "rigid_column", "started_turbulence", "with_parameter"]
