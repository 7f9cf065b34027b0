"""Fills the parameter rows of a batch: vehicles, surroundings, sensor, and the spread between flights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from airworthy.control.allocation import PRIORITIES
from airworthy.control.collective import irregular
from airworthy.control.gain_parameters import priority_of
from airworthy.control.gain_sets import GEOMETRIC_GAINS
from airworthy.control.kernel import control_layout
from airworthy.control.spare_rotors import spare_for, spare_shapes
from airworthy.core.arrays import Array, ArrayBool, ArrayLike, ArrayU32
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.frames import to_matrix
from airworthy.core.layout import Layout
from airworthy.core.random import Stream, normals, uniforms
from airworthy.core.schema import SHARE, Bound, shown
from airworthy.dynamics.state import DELAY_SLOTS_MAX, Effects, body_parameters, invert_inertia, rigid_layout
from airworthy.simulation.config import AIR_SPEED, FRICTION, PLACE, Imu, SimulatorConfig, Wind
from airworthy.simulation.stability import check_steps, may_be_exact, settle_rotors
from airworthy.vehicles.check import MASS, MOMENT_MIN, NUMBER_MAX, TRIANGLE_TOLERANCE
from airworthy.vehicles.record import Vehicle

__all__ = ["effects_of", "randomize", "rigid_column", "started_turbulence", "with_parameter"]

# -----------------------------------------------------------------------------------------------------------------------------
# What the rows of a batch's parameters may hold: the bounds of one number, and what several must be together.

_ANY = Bound(-NUMBER_MAX, NUMBER_MAX)
_NOT_NEGATIVE = Bound(0.0, NUMBER_MAX)
_POSITIVE = Bound(0.0, NUMBER_MAX, above=True)
_UNLIMITED = Bound(0.0, NUMBER_MAX, above=True, infinite=True)

BOUNDS: Mapping[str, Bound] = MappingProxyType(
    {
        "gravity": Bound(0.0, 1e3, "m/s^2"),
        "mass": MASS,
        "mass_inverse": Bound(1.0 / MASS.high, 1.0 / MASS.low, "1/kg"),
        "inertia": Bound(-NUMBER_MAX, NUMBER_MAX, "kg m^2"),
        "inertia_inverse": Bound(-1.0 / MOMENT_MIN, 1.0 / MOMENT_MIN, "1/(kg m^2)"),
        "rotor_rise": _NOT_NEGATIVE,
        "rotor_fall": _NOT_NEGATIVE,
        "rotor_rise_keep": SHARE,
        "rotor_fall_keep": SHARE,
        "rotor_rise_keep_half": SHARE,
        "rotor_fall_keep_half": SHARE,
        "rotor_radius": _NOT_NEGATIVE,
        "drag_linear": _NOT_NEGATIVE,
        "drag_norm": _NOT_NEGATIVE,
        "drag_axis": _NOT_NEGATIVE,
        "drag_rotor": _NOT_NEGATIVE,
        "angular_linear": _NOT_NEGATIVE,
        "angular_norm": _NOT_NEGATIVE,
        "angular_axis": _NOT_NEGATIVE,
        "force_noise": _NOT_NEGATIVE,
        "moment_noise": _NOT_NEGATIVE,
        "disturbance_probability": SHARE,
        "disturbance_force": _NOT_NEGATIVE,
        "disturbance_torque": _NOT_NEGATIVE,
        "wind": AIR_SPEED,
        "gust": AIR_SPEED,
        "gust_duration": _POSITIVE,
        "dryden_keep": Bound(0.0, 1.0, below=True),
        "dryden_gain": _NOT_NEGATIVE,
        "ground_effect": _NOT_NEGATIVE,
        "battery": _NOT_NEGATIVE,
        "command_delay": Bound(0.0, DELAY_SLOTS_MAX - 1.0, "physics steps"),
        "imu_rotation": Bound(-1.0 - 1e-6, 1.0 + 1e-6),
        "imu_noise": _NOT_NEGATIVE,
        "imu_walk": _NOT_NEGATIVE,
        "imu_limit": _UNLIMITED,
        "contact_radius": _NOT_NEGATIVE,
        "contact_reach": _NOT_NEGATIVE,
        "ground_height": PLACE,
        "rolling": FRICTION,
        "rotor_count": Bound(1.0, 64.0),
        "friction": FRICTION,
        "restitution": SHARE,
        "limit": _UNLIMITED,
        "thrust_limit": _NOT_NEGATIVE,
        "rate_limit": _POSITIVE,
        "noise": _NOT_NEGATIVE,
        "control_mass": MASS,
        # As of a file of gains (`control.gain_sets`): a negative gain pushes away from the goal.
        **{f"control_{gain}": Bound(0.0, 1e6, unit) for gain, (_, unit) in GEOMETRIC_GAINS.items()},
    }
)
"""Of each number of a row; rows that are not named here may hold any finite number that float32 can work with."""


def parameter_numbers(name: str, value: ArrayLike) -> Array:
    """Return what arrived for a parameter, as float64; `check_values` holds it against the bounds.

    Raises:
        AirworthyError: If something is no number.
    """
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.asarray(None)
    # Truth values and complex numbers would convert without a word.
    if array.dtype.kind not in "fiu":
        raise AirworthyError(f"Parameter {name!r} got {shown(value)}; expected numbers.")
    return np.asarray(array, np.float64)


def check_values(name: str, array: Array) -> None:
    """Check that each number of a parameter is inside its bound.

    Raises:
        AirworthyError: If one lies where no vehicle can be; the message shows the first such number.
    """
    bound = BOUNDS.get(name, _ANY)
    # Compared field by field instead of by `Bound.holds`: rows hold one number per environment.
    bad = ~np.isfinite(array)
    bad |= (array <= bound.low) if bound.above else (array < bound.low)
    bad |= (array >= bound.high) if bound.below else (array > bound.high)
    if bound.infinite:
        bad &= array != np.inf
    if bad.any():
        unit = f" {bound.unit}" if bound.unit else ""
        raise AirworthyError(f"Parameter {name!r} got {shown(float(array[bad][0]))}{unit}; expected {bound.expected}.")


def check_rows(rows: Array, layout: Layout, name: str) -> None:
    """Check what a changed parameter must be together with its other numbers, and with other rows.

    Args:
        rows: With the change, and what follows from it, (rows, env).
        layout: Their layout.
        name: Of the row that was changed.

    Raises:
        AirworthyError: One sentence with the reason.
    """

    def get(field: str, *shape: int) -> Array:
        return rows[layout.rows(field)].reshape(*shape, rows.shape[1])

    # Most parameters are numbers by themselves; few must agree with others.
    rule = _RULES.get(name)
    if rule is None:
        return
    reason = rule(get)
    if reason:
        raise AirworthyError(f"Parameter {name!r} got what no vehicle has: {reason}.")


Getter = Callable[..., Array]


def _inertia(get: Getter) -> str:
    xx, yy, zz, xy, xz, yz = get("inertia", 6)
    moments = np.linalg.eigvalsh(np.moveaxis(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]), -1, 0))
    least = float(moments[:, 0].min())
    if not least >= MOMENT_MIN:
        return f"a principal moment of inertia of {least:.4g} kg m^2; expected at least {MOMENT_MIN:g}"
    if np.any(moments[:, 0] + moments[:, 1] < moments[:, 2] * (1.0 - TRIANGLE_TOLERANCE)):
        return "a largest principal moment of inertia above the sum of the others"
    return ""


def _axes(get: Getter) -> str:
    length = np.linalg.norm(get("rotor_axis", -1, 3), axis=1)
    worst = float(length.flat[int(np.argmax(np.abs(length - 1.0)))])
    return "" if abs(worst - 1.0) < 1e-6 else f"a rotor axis of length {worst:.6g}; a direction has length 1"


def _limits(get: Getter) -> str:
    low, high = get("rotor_min", -1), get("rotor_max", -1)
    if np.any(low > high):
        return "a rotor whose least state is above its greatest"
    c = get("rotor_thrust", -1, 3)
    thrust = c[:, 0] + c[:, 1] * high + c[:, 2] * high * np.abs(high)
    if np.any(thrust < 0.0):
        return f"a rotor that pulls backwards at its greatest state, with {float(thrust.min()):.4g} N"
    return ""


def _turn(get: Getter) -> str:
    turn = np.moveaxis(get("imu_rotation", 3, 3), -1, 0)
    error = float(np.abs(turn @ np.swapaxes(turn, 1, 2) - np.eye(3)).max())
    if error > 1e-6 or np.any(np.linalg.det(turn) < 0.0):
        return "a matrix that is not a rotation"
    return ""


def _battery(get: Getter) -> str:
    full, _, _, nominal, loss, capacity = get("battery", 6)
    if min(float(x.min()) for x in (full, nominal, loss, capacity)) <= 0.0:
        return "a battery without voltage, efficiency or capacity"
    return ""


_RULES: dict[str, Any] = {
    "inertia": _inertia,
    "inertia_inverse": _inertia,
    "rotor_axis": _axes,
    "rotor_min": _limits,
    "rotor_max": _limits,
    "rotor_thrust": _limits,
    "imu_rotation": _turn,
    "battery": _battery,
}

# -----------------------------------------------------------------------------------------------------------------------------


def rigid_column(item: Vehicle, config: SimulatorConfig, layout: Layout, rotor_count: int) -> Array:
    """Return the vehicle's part of a parameter column of the rigid family, with its surroundings and sensor.

    Args:
        item: The vehicle.
        config: Of the simulator.
        layout: Of the parameter rows.
        rotor_count: Padded number of rotors.

    Raises:
        AirworthyError: If the configuration asks for the exact solution of rotors that are not first order, or the vehicle is
            too fast for the integrator's step.
    """
    if config.exact_rotors and any(r.response.rise[1] or r.response.fall[1] for r in item.rotors):
        raise AirworthyError(f"exact_rotors needs first-order rotors; those of {item.name} are not: set exact_rotors=False.")
    column = np.zeros(layout.size)
    body = rigid_layout(rotor_count)
    column[: body.size] = body_parameters(item, body, rotor_count)
    dt = 1.0 / config.physics_rate
    # White noise of a given autocorrelation, held over a step: its variance grows as the step shrinks, its effect does not.
    column[layout.rows("force_noise")] = np.sqrt(np.asarray(item.wrench_noise.force) / dt)
    column[layout.rows("moment_noise")] = np.sqrt(np.asarray(item.wrench_noise.moment) / dt)
    column[layout.rows("disturbance_ratio")] = item.disturbance.rate / config.physics_rate
    if "command_delay" in layout:
        column[layout.rows("command_delay")] = item.command_delay * config.physics_rate
    _put_rotor_keep(column, layout, dt)
    settle_rotors(column, layout, config)
    check_steps(column[:, None], layout, config, [item])
    put_wind(column, layout, config.wind, dt)
    if config.ground is not None:
        column[layout.rows("ground_height")] = config.ground.height
        column[layout.rows("friction")] = config.ground.friction
        column[layout.rows("restitution")] = config.ground.restitution
        column[layout.rows("rolling")] = config.ground.rolling
    column[layout.rows("ground_effect")] = config.ground_effect
    if config.imu is not None:
        put_imu(column, layout, config.imu, np.asarray(item.center_of_mass), config.physics_rate)
    return column


def _put_rotor_keep(rows: Array, layout: Layout, dt: float) -> None:
    """Factors exp(-dt / tau) of the exact rotor update, for a step and half a step; rows (rows,) or (rows, env)."""
    for name in ("rise", "fall"):
        rate = rows[layout.rows(f"rotor_{name}")][::2]
        rows[layout.rows(f"rotor_{name}_keep")] = np.exp(-dt * rate)
        rows[layout.rows(f"rotor_{name}_keep_half")] = np.exp(-0.5 * dt * rate)


def put_wind(column: Array, layout: Layout, wind: Wind, dt: float) -> None:
    """Fill the rows of moving air: mean wind, gust pulse, and Dryden filters discretised for noise held over a step.

    A first-order state x+ = a x + g n with a = exp(-dt V / L) has unit variance for g = sqrt(1 - a^2). The lateral output
    sqrt(3) x1 + (1 - sqrt(3)) x2, x2 = low-passed x1, has the variance 1 of the Dryden form (1 + sqrt(3) T s) / (1 + T s)^2
    as dt goes to 0; it is scaled so that the discrete one has exactly the standard deviation asked for.

    Args:
        column: Parameter rows of one vehicle.
        layout: Of them.
        wind: How the air moves.
        dt: Physics step [s].
    """
    column[layout.rows("wind")] = wind.mean
    column[layout.rows("gust")] = wind.gust
    column[layout.rows("gust_start")] = wind.gust_start
    column[layout.rows("gust_duration")] = wind.gust_duration
    # Frozen turbulence (Taylor): a length of air takes L / V to pass.
    keep = np.exp(-dt * wind.airspeed / np.asarray(wind.turbulence_length))
    mix = np.array([1.0, np.sqrt(3.0), np.sqrt(3.0)])
    spread = np.array([1.0, *(_cascade_spread(a, np.sqrt(3.0)) for a in keep[1:])])
    column[layout.rows("dryden_keep")] = keep
    column[layout.rows("dryden_mix")] = mix
    column[layout.rows("dryden_gain")] = np.sqrt(1.0 - keep**2) * np.asarray(wind.turbulence) / spread


def _cascade_spread(a: float, mix: float) -> float:
    """Return the standard deviation of mix x1 + (1 - mix) x2 for x1+ = a x1 + sqrt(1 - a^2) n, x2+ = a x2 + (1 - a) x1+."""
    b = 1.0 - a
    # Stationary moments: <x1 x1> = 1; <x1 x2> = a^2 c + b; <x2 x2> = a^2 s + 2 a b a c + b^2.
    cross = b / (1.0 - a * a)
    square = (2.0 * a * a * b * cross + b * b) / (1.0 - a * a)
    return float(np.sqrt(mix * mix + 2.0 * mix * (1.0 - mix) * cross + (1.0 - mix) ** 2 * square))


def started_turbulence(keep: Array, gain: Array, keys: ArrayU32) -> Array:
    """Filter states of Dryden turbulence that has always blown, from each flight's own key, shape (5, env).

    Of the cascade x1+ = a x1 + g n, x2+ = a x2 + (1 - a) x1+ the stationary moments: <x1 x1> = g^2 / (1 - a^2),
    <x1 x2> = <x1 x1> / (1 + a), and <x2 x2> from its own recursion.

    Args:
        keep: Rows `dryden_keep`, shape (3, env).
        gain: Rows `dryden_gain`, shape (3, env).
        keys: Flight keys, shape (env, 4).
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


def put_imu(column: Array, layout: Layout, imu: Imu, com: Array, rate: float) -> None:
    """Fill the rows of the inertial sensor.

    Args:
        column: Parameter rows of one vehicle.
        layout: Of them.
        imu: The sensor.
        com: The centre of mass from the reference point that its mount is given about [m].
        rate: Physics rate [Hz].
    """
    column[layout.rows("imu_rotation")] = to_matrix(np.asarray(imu.mounting())).ravel()
    # Vehicles are recorded about a reference point, motion is that of the centre of mass.
    column[layout.rows("imu_position")] = np.asarray(imu.position) - com
    # Densities are per square root of a hertz: a sample's deviation grows with the root of the rate, a walk's step falls with
    # it.
    column[layout.rows("imu_noise")] = np.array([*imu.accelerometer_noise, *imu.gyroscope_noise]) * np.sqrt(rate)
    column[layout.rows("imu_walk")] = np.array([*imu.accelerometer_walk, *imu.gyroscope_walk]) / np.sqrt(rate)
    column[layout.rows("imu_limit")] = (imu.accelerometer_limit, imu.gyroscope_limit)


_HUB_ROWS = ("rotor_hub_drag", "rotor_flapping", "rotor_translational_lift")


def randomize(rows: Array, layout: Layout, config: SimulatorConfig, keys: ArrayU32) -> Array:
    """Return parameter rows of flights, each drawn from its own key.

    Args:
        rows: Nominal rows, shape (rows, env); not changed.
        layout: Their layout.
        config: Holds the relative half widths.
        keys: Flight keys, shape (env, 4).

    Returns:
        New rows of the same shape.
    """
    out, spread = rows.copy(), config.randomization
    if not spread.shares:
        settle_rotors(out, layout, config)
        return out
    draw = 2.0 * uniforms(keys, 0, Stream.PARAMETERS, 32).T - 1.0

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
        rotor = thrust * factor(spread.rotor, 5 + i if i < 8 else 16 + i)  # 13 to 16 are taken
        for name in ("rotor_thrust", "rotor_torque"):
            start = layout.offsets[name] + 3 * i
            out[start : start + 3] *= rotor
    for name in ("drag_linear", "drag_norm", "drag_axis", "drag_rotor", "angular_linear", "angular_norm", "angular_axis"):
        out[layout.rows(name)] *= factor(spread.drag, 13)
    for name in _HUB_ROWS:
        out[layout.rows(name)] *= factor(spread.drag, 13)
    lag = factor(spread.lag, 14)
    for name in ("rotor_rise", "rotor_fall"):
        out[layout.rows(name)] /= lag
        for suffix in ("_keep", "_keep_half"):
            out[layout.rows(name + suffix)] **= 1.0 / lag
    settle_rotors(out, layout, config)
    out[layout.rows("wind")] += spread.wind * np.stack([draw[15], draw[16], np.zeros_like(draw[15])])
    return out


def _scale_inertia(rows: Array, layout: Layout, axes: Array) -> None:
    """Scale inertia as J_ij sqrt(s_i s_j), which keeps it positive definite, and its inverse accordingly."""
    pairs = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
    factors = np.stack([np.sqrt(axes[i] * axes[j]) for i, j in pairs])
    rows[layout.rows("inertia")] *= factors
    rows[layout.rows("inertia_inverse")] /= factors


def with_parameter(rows: Array, layout: Layout, name: str, value: ArrayLike, config: SimulatorConfig) -> Array:
    """Return rows with one parameter changed, and those that follow from it.

    Args:
        rows: Shape (rows, env); not changed.
        layout: Their layout.
        name: Field to change.
        value: (env, k), or (env,) for a scalar field; or (k,) or a number for all.
        config: Physics rate and integrator.

    Raises:
        AirworthyError: If the name is unknown, the shape does not fit, or no vehicle has such a parameter.
    """
    if name not in layout:
        raise unknown_name("parameter", name, layout.fields)
    array, shape, env_count = parameter_numbers(name, value), layout.fields[name], rows.shape[1]
    width = int(np.prod(shape, dtype=int))
    shared = array.ndim == 0 or (shape != () and array.shape in (shape, (width,)))
    if not shared and array.shape not in ((env_count, *shape), (env_count, width) if shape else (env_count,)):
        raise AirworthyError(f"Parameter {name!r} got shape {array.shape}; expected {(env_count, *shape)} or {shape}.")
    out = rows[:, :1].copy() if shared and rows.strides[1] == 0 else rows.copy()
    values = array.reshape(-1, 1) if shared else array.reshape(env_count, width).T
    absent = _absent_rotors(out, layout, name)
    if absent is not None:
        # Whatever fills the columns of rotors that a vehicle lacks is not read, and so not checked.
        values = np.where(absent, out[layout.rows(name)], values)
        check_values(name, values[~absent])
    else:
        check_values(name, values)
    out[layout.rows(name)] = values
    _follow(out, layout, name, config)
    check_rows(out, layout, name)
    return np.broadcast_to(out, rows.shape) if out.shape != rows.shape else out


def _absent_rotors(rows: Array, layout: Layout, name: str) -> ArrayBool | None:
    """Return which rows of a field are those of rotors that a vehicle does not have, (field rows, env); None for other fields.

    They stay what they are, whatever is set: a value there would add to what the vehicle feels.
    """
    if "rotor_count" not in layout or name.removeprefix("control_") not in _PER_ROTOR:
        return None
    shape = layout.fields[name]
    rotor = np.repeat(np.arange(shape[0]), int(np.prod(shape[1:], dtype=int)))
    return np.asarray(rotor[:, None] >= rows[layout.rows("rotor_count")])


_PER_ROTOR = {name for name, shape in rigid_layout(7).fields.items() if shape[:1] == (7,)}
_PER_ROTOR |= {name for name, shape in control_layout(7).fields.items() if shape[:1] == (7,)}


def _follow(rows: Array, layout: Layout, name: str, config: SimulatorConfig) -> None:
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
            _put_rotor_keep(rows, layout, 1.0 / config.physics_rate)
            settle_rotors(rows, layout, config)
        elif name in ("rotor_axis", "rotor_position"):
            axis, position = (rows[get(n)].reshape(-1, 3, rows.shape[1]) for n in ("rotor_axis", "rotor_position"))
            rows[get("rotor_lever")] = np.cross(position, axis, axis=1).reshape(-1, rows.shape[1])
        elif name in ("control_inverse", "control_thrust_min", "control_thrust_max_rotor"):
            _put_spare_rotors(rows, layout)
        elif name in ("contact_point", "contact_radius"):
            points = rows[get("contact_point")].reshape(-1, 3, rows.shape[1])
            rows[get("contact_reach")] = np.linalg.norm(points, axis=1).max(axis=0) + rows[get("contact_radius")]


def _put_spare_rotors(rows: Array, layout: Layout) -> None:
    """Bring what allocation knows of spare rotors up to date, where there is any."""
    shapes = spare_shapes(layout.fields["control_inverse"][0])
    if not shapes:
        return
    names = ("control_inverse", "control_thrust_min", "control_thrust_max_rotor")
    for env in range(rows.shape[1]):
        inverse, *vectors = (rows[layout.rows(name), env] for name in names)
        spare = spare_for(inverse.reshape(-1, 6), *vectors)
        for name in shapes:
            rows[layout.rows(f"control_spare_{name}"), env] = np.ravel(getattr(spare, name))


def effects_of(rows: Array, layout: Layout, config: SimulatorConfig) -> Effects:
    """Return the effects that a batch needs, from its parameters and its configuration.

    Args:
        rows: Parameter rows (rows, env).
        layout: Of them.
        config: Of the simulator.
    """
    rotor_count = layout.fields["rotor_axis"][0]
    effects = Effects(0)

    def any_of(*names: str, first: int | None = None) -> bool:
        return any(bool(np.any(rows[layout.rows(name)][:first] != 0.0)) for name in names)

    axis = rows[layout.rows("rotor_axis")].reshape(rotor_count, 3, -1)
    products = rows[layout.rows("inertia")][3:]
    if not (np.any(axis[:, :2] != 0.0) or np.any(axis[:, 2] != 1.0) or np.any(products != 0.0)):
        effects |= Effects.PLANAR
    exact = may_be_exact(rows, layout, config)
    if _square_rotors(rows, layout) and not exact and config.ground_effect == 0.0:
        effects |= Effects.SQUARE
    if any_of("drag_linear", "drag_norm", "drag_axis", "drag_rotor", "angular_linear", "angular_norm", "angular_axis"):
        effects |= Effects.DRAG
        if any_of("drag_axis", "drag_rotor", "angular_axis", "drag_center"):
            effects |= Effects.DRAG_FULL
    if any_of(*_HUB_ROWS):
        effects |= Effects.DRAG | Effects.DRAG_FULL | Effects.HUB_AIR
    effects |= outer_effects(config, any_of)
    if config.ground is not None:
        effects |= Effects.GROUND
    if config.ground_effect != 0.0:
        effects |= Effects.GROUND_EFFECT
    if config.battery:
        effects |= Effects.BATTERY
    if exact:
        effects |= Effects.EXACT_ROTORS
    effects |= control_effects(config)
    if not effects & (Effects.PSEUDO_INVERSE | Effects.FORCE_FIRST) and _is_irregular(rows, layout):
        effects |= Effects.IRREGULAR
    if any_of("control_trim", first=3):
        effects |= Effects.LEANING
    return effects


def outer_effects(config: SimulatorConfig, any_of: Callable[..., bool]) -> Effects:
    """Return the effects of pushes, air and sensor that a batch needs.

    Args:
        config: Of the simulator.
        any_of: Tells whether any environment has a number other than zero in one of the rows named.
    """
    effects = Effects(0)
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
    return effects


def control_effects(config: SimulatorConfig) -> Effects:
    """Return the effects of control that follow from the configuration alone."""
    effects = Effects.GYRO_FEEDBACK if config.gyro_feedback else Effects(0)
    if config.control.allocation == "pseudo_inverse":
        return effects | Effects.PSEUDO_INVERSE
    priority = priority_of(config.control)
    if priority == PRIORITIES[0]:
        return effects
    return effects | (Effects.FORCE_FIRST if priority.startswith("force") else Effects.YAW_BEFORE_FORCE)


def _is_irregular(rows: Array, layout: Layout) -> bool:
    """Tell whether some airframe needs the kernel of irregular ones; those for rotors to spare have no other."""
    if spare_shapes(layout.fields["control_inverse"][0]):
        return False
    vectors = (rows[layout.rows(f"control_{name}")] for name in ("collective", "thrust_min", "thrust_max_rotor"))
    return bool(np.any(irregular(*map(tuple, vectors))))


def _square_rotors(rows: Array, layout: Layout) -> bool:
    thrust = rows[layout.rows("rotor_thrust")].reshape(-1, 3, rows.shape[1])[:, :2]
    torque = rows[layout.rows("rotor_torque")].reshape(-1, 3, rows.shape[1])[:, :2]
    second = [rows[layout.rows(name)].reshape(-1, 2, rows.shape[1])[:, 1] for name in ("rotor_rise", "rotor_fall")]
    reversible = rows[layout.rows("rotor_min")] < 0.0
    return not any(np.any(x != 0.0) for x in (thrust, torque, *second, reversible))
