"""Steps that an integrator can take: how fast a vehicle's own dynamics are against the physics rate.

An explicit integrator multiplies what is left of a disturbance with a polynomial of z = step * pole. Explicit Euler, and rotors
and rates of the semi-implicit form, ring beyond z = 1 and grow beyond 2; RK4 leaves a third at z = 2 and grows beyond 2.785.
Rotors that are faster advance by their exact solution where they have one (first order), in their own lanes alone; whatever
else is too fast is refused with the rate that it needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from airworthy.control.kernel import control_layout
from airworthy.control.laws import crazyflie_states
from airworthy.control.levels import MODES
from airworthy.core.arrays import Array, ArrayBool
from airworthy.core.errors import AirworthyError
from airworthy.core.layout import Layout
from airworthy.simulation.config import SimulatorConfig
from airworthy.vehicles.record import Vehicle

# Ours, within stability: Euler's method is stable up to 2 but oscillates beyond 1, the classical fourth-order one up to 2.78.
STEP_MAX = {"euler": 1.0, "semi_implicit": 1.0, "rk4": 2.0}
"""Largest step times fastest pole that is integrated as it stands."""
_ROUNDING = 1.0 + 1e-9
FASTEST = 1.0 - 1e-6
"""Share of its lag that a drawn rotor may be faster by, at most."""


def settle_rotors(rows: Array, layout: Layout, config: SimulatorConfig) -> None:
    """Set the row `rotor_exact` where rotors have to advance by their exact solution, in place.

    Args:
        rows: Parameter rows, shape (rows,) or (rows, env).
        layout: Their layout.
        config: Integrator, physics rate and `exact_rotors`.
    """
    first = _per_rotor(rows, layout, 0)
    # A response with a quadratic term has no exponential to advance by.
    second = _per_rotor(rows, layout, 1).max(axis=0) > 0.0
    fast = first.max(axis=0) > _pole_max(config)
    rows[layout.offsets["rotor_exact"]] = np.where(second, 0.0, np.where(fast, 1.0, float(config.exact_rotors)))


def check_steps(rows: Array, layout: Layout, config: SimulatorConfig, vehicles: Sequence[Vehicle]) -> None:
    """Refuse what is too fast for the integrator and has no exact solution: rotors of second order, and damping by the air.

    Args:
        rows: Parameter rows, shape (rows, env).
        layout: Their layout.
        config: Integrator, physics rate, and the spread between flights, whose fastest vehicle counts.
        vehicles: One per environment, for messages.

    Raises:
        AirworthyError: One sentence with the least physics rate.
    """
    # One column seen many times: all environments are alike, and one is enough.
    if rows.strides[1] == 0:
        rows = rows[:, :1]
    spread = config.randomization
    rotors = np.where(_per_rotor(rows, layout, 1).max(axis=0) > 0.0, rotor_poles(rows, layout, config), 0.0)
    # The lightest vehicle that may be drawn is damped the fastest.
    lightest = (1.0 - min(spread.mass, 0.99)) * (1.0 - min(spread.inertia, 0.99))
    damping = air_poles(rows, layout) * (1.0 + spread.drag) / lightest
    for poles, what in ((rotors / (1.0 - min(spread.lag, FASTEST)), "rotors answer"), (damping, "drag acts")):
        worst = int(np.argmax(poles))
        if poles[worst] > _pole_max(config) * _ROUNDING:
            least = math.ceil(float(poles[worst]) / STEP_MAX[config.integrator])
            raise AirworthyError(
                f"The {what} of {vehicles[worst].name} within {1e3 / poles[worst]:.3g} ms, too fast for {config.integrator} at"
                f" {config.physics_rate:g} Hz: set physics_rate to at least {least} Hz."
            )


def rotor_poles(rows: Array, layout: Layout, config: SimulatorConfig) -> Array:
    """Return the fastest pole of any rotor at any of its states [1/s], (env,): a + 2 b |w| of its response.

    Args:
        rows: Parameter rows (rows, env).
        layout: Of them.
        config: Whether there is a battery.
    """
    reach = np.maximum(np.abs(rows[layout.rows("rotor_min")]), np.abs(rows[layout.rows("rotor_max")]))
    # A full battery turns rotors faster than the nominal one, for which their limits hold.
    if config.battery:
        full, nominal = (rows[layout.offsets["battery"] + k] for k in (0, 3))
        reach = reach * np.maximum(full / nominal, 1.0)
    slopes = [rows[layout.rows(f"rotor_{sense}")] for sense in ("rise", "fall")]
    return np.asarray(np.max([sense[0::2] + 2.0 * sense[1::2] * reach for sense in slopes], axis=(0, 1)))


def air_poles(rows: Array, layout: Layout) -> Array:
    """Return the fastest pole of drag on motion and rotation [1/s], (env,), at all that rotors at full speed can reach.

    Drag k v of a mass m has the pole k / m; quadratic drag k v |v| has 2 k v / m, at the speed sqrt(F / k) where it meets a
    force F. Rotation likewise, with inertia and the moment of all rotors together.
    """

    def get(name: str) -> Any:
        return rows[layout.rows(name)]

    count = layout.fields["rotor_axis"][0]
    speed = np.maximum(np.abs(get("rotor_min")), np.abs(get("rotor_max")))

    def largest(name: str) -> Array:
        c = np.abs(get(name)).reshape(count, 3, -1)
        return np.asarray(c[:, 0] + c[:, 1] * speed + c[:, 2] * speed**2)

    thrust = largest("rotor_thrust")
    lever = np.linalg.norm(get("rotor_lever").reshape(count, 3, -1), axis=1)
    force = thrust.sum(axis=0) + (get("mass") * get("gravity"))[0]
    moment = (thrust * lever + largest("rotor_torque")).sum(axis=0)
    hub = (get("rotor_hub_drag").reshape(count, 2, -1).max(axis=1)) * speed
    away = np.linalg.norm(get("rotor_position").reshape(count, 3, -1), axis=1)
    linear = get("drag_linear") + get("drag_rotor") * speed.sum(axis=0) + hub.sum(axis=0)
    damping = get("angular_linear") + ((hub * away + np.abs(get("rotor_flapping")) * speed) * away).sum(axis=0)
    # What drives instead of braking, as a fit may try, has no pole that a step must follow.
    bent = np.maximum(get("drag_norm") + get("drag_axis"), 0.0)
    motion = (linear + 2.0 * np.sqrt(bent * force)) * get("mass_inverse")
    bent = np.maximum(get("angular_norm") + get("angular_axis"), 0.0)
    turning = (damping + 2.0 * np.sqrt(bent * moment)) * np.abs(get("inertia_inverse")[:3])
    return np.asarray(np.maximum(motion, turning).max(axis=0))


def may_be_exact(rows: Array, layout: Layout, config: SimulatorConfig) -> bool:
    """Tell whether rotors of any flight advance by their exact solution, also after the spread between flights is drawn.

    Args:
        rows: Parameter rows (rows, env).
        layout: Of them.
        config: With the spread between flights.
    """
    share = 1.0 - min(config.randomization.lag, 0.99)
    stiff = (_per_rotor(rows, layout, 0).max(axis=0) / share > _pole_max(config)) & (
        _per_rotor(rows, layout, 1).max(axis=0) == 0.0
    )
    return bool(np.any(_exact(rows, layout)) or np.any(stiff))


def _exact(rows: Array, layout: Layout) -> ArrayBool:
    return np.asarray(rows[layout.offsets["rotor_exact"]] > 0.5)


def _per_rotor(rows: Array, layout: Layout, which: int) -> Array:
    """Return the first- (0) or second-order (1) coefficients of both ways, (2 rotors,) or (2 rotors, env)."""
    return np.concatenate([rows[layout.rows(f"rotor_{sense}")][which::2] for sense in ("rise", "fall")])


def _pole_max(config: SimulatorConfig) -> float:
    return STEP_MAX[config.integrator] * config.physics_rate * _ROUNDING


LAW_RATE_MAX = 2e4
"""A physics rate above this is not proposed: gains that need it belong to another vehicle [Hz]."""


def check_law(column: Array, layout: Layout, config: SimulatorConfig, vehicle: Vehicle) -> None:
    """Refuse gains whose attitude loop the physics rate makes unstable: laws run once per physics step.

    About hover each axis is a chain of rotor lag, rate and angle, closed by the geometric law's gains; its matrix over one
    step, as the integrator takes it, has to shrink. The firmware's law is linearised with its mixer and thrust map. What is
    unstable at any rate, for lag or for gains, is not refused; position loops and integrals are slower and left out.

    Args:
        column: Parameter rows of one vehicle with its controller, shape (rows,).
        layout: Their layout.
        config: Level, integrator and physics rate.
        vehicle: For the message.

    Raises:
        AirworthyError: One sentence with the least physics rate.
    """
    if config.level == FIRMWARE_LEVEL:
        radius = _firmware_radius(column, layout, vehicle.rotor_count, config)
        what, other = "Crazyflie firmware's gains", "level to 'tracking:mellinger'"
    elif config.level in MODES:
        loops = _axis_loops(column, layout, config)
        radius, what, other = partial(_radius, loops, config), f"gains {config.control.gains!r}", "gains to 'auto'"
    else:
        return
    if radius(config.physics_rate) < 1.0 or radius(LAW_RATE_MAX) >= 1.0:
        return
    if config.level == FIRMWARE_LEVEL and any(radius(config.physics_rate * 1.02**-k) < 1.0 for k in range(1, 36)):
        return  # calm at half the rate or above: a band of slight swings where rotors turn from exact to integrated
    # From the top: where rotors turn from one solution to the other there may be calm islands below.
    count = math.ceil(math.log(LAW_RATE_MAX / config.physics_rate) / math.log(1.02))
    rates = [config.physics_rate * 1.02**k for k in range(count)]
    if config.level == FIRMWARE_LEVEL:
        least = next(rate for rate in [*rates, LAW_RATE_MAX] if radius(rate) < 1.0)
    else:
        least = 1.02 * next(rate for rate in reversed(rates) if radius(rate) >= 1.0)
    raise AirworthyError(
        f"The {what} on {vehicle.name} are unstable at {config.physics_rate:g} physics steps a second"
        f" with {config.integrator}: set physics_rate to at least {math.ceil(least)} Hz, or {other}."
    )


def _axis_loops(column: Array, layout: Layout, config: SimulatorConfig) -> list[tuple[float, float, float, float]]:
    """Per axis and way of the rotors: angle gain [1/s^2], rate gain [1/s], pole of the rotors [1/s], 1 if exact at any rate."""
    inertia = column[layout.rows("inertia")][:3]
    angle, rate = (column[layout.rows(f"control_{name}_gain")] / inertia for name in ("attitude", "rate"))
    lead = float(column[layout.offsets["control_lead"]])
    if float(MODES[config.level].rate):
        angle = np.zeros(3)
    reach = np.abs(column[layout.rows("rotor_max")])
    exact = _exact_by_choice(column, layout, config)
    loops = []
    for sense in ("rise", "fall"):
        response = column[layout.rows(f"rotor_{sense}")]
        pole = float(np.max(response[0::2] + response[1::2] * reach))  # of second order at half the reach
        loops += [(float(a), float(r), pole * lead, exact) for a, r in zip(angle, rate, strict=True)]
    return loops


def _radius(loops: list[tuple[float, float, float, float]], config: SimulatorConfig, physics_rate: float) -> float:
    """Of the two ways of the rotors the smaller spectral radius, of the axes the largest."""
    dt = 1.0 / physics_rate
    radii = np.array([_loop_radius(*loop, config.integrator, dt) for loop in loops]).reshape(2, 3)
    return float(radii.min(axis=0).max())


def _loop_radius(angle: float, rate: float, pole: float, exact: float, integrator: str, dt: float) -> float:
    left, share = _lag_over_step(pole * dt, exact, integrator)
    asked = np.array([-angle, -rate, 0.0])
    attitude, turning, moment = np.eye(3)
    turned = turning + dt * (moment + share * (asked - moment))
    moved = {"rk4": 0.5 * (turned + turning), "semi_implicit": turned, "euler": turning}[integrator]
    rows = [attitude + dt * moved, turned, moment + (1.0 - left) * (asked - moment)]
    matrix = np.array(rows) if angle > 0.0 else np.array(rows)[1:, 1:]
    return float(np.abs(np.linalg.eigvals(matrix)).max())


def _exact_by_choice(column: Array, layout: Layout, config: SimulatorConfig) -> float:
    """1 where rotors advance by their exact solution at any rate, not only because the present one is too low for them."""
    return float(config.exact_rotors and not np.any(_per_rotor(column, layout, 1)))


def _lag_over_step(z: float, exact: float, integrator: str) -> tuple[float, float]:
    """Return what a step leaves of the distance to the command, and the mean way towards it, z = step * pole."""
    if exact or z > STEP_MAX[integrator]:
        left = math.exp(-z)
    else:
        left = 1.0 - z if integrator != "rk4" else 1.0 - z + z**2 / 2.0 - z**3 / 6.0 + z**4 / 24.0
    # Euler forms take the moment at the step's start.
    return left, (1.0 - (1.0 - left) / z if z > 1e-6 else 0.5 * z) if integrator == "rk4" else 0.0


# ---- the firmware's law ------------------------------------------------------------------------------------------------------

FIRMWARE_LEVEL = "tracking:crazyflie"
_SMALL = 1e-5
"""Perturbation of angles [rad] and rates [rad/s]: far above rounding, far below any limit of the law."""


def _firmware_radius(column: Array, layout: Layout, rotor_count: int, config: SimulatorConfig) -> Callable[[float], float]:
    """Spectral radius over one step of angles, rates, the law's last rate error and rotor states about hover, by physics rate.

    Of the two ways of the rotors the smaller one. The gain on the rate's difference belongs to the rotors' lag: where rotors
    follow within a step or two, it is as large as the body's inertia and swings.
    """
    padded = layout.fields["rotor_axis"][0]
    start = layout.offsets["control_mass"]
    believed = control_layout(padded).record(lambda row: column[start + row])
    inverse = _symmetric(column[layout.rows("inertia_inverse")])
    lever, axis = (column[layout.rows(f"rotor_{name}")].reshape(padded, 3)[:rotor_count] for name in ("lever", "axis"))
    thrust, torque = (column[layout.rows(f"rotor_{name}")].reshape(padded, 3)[:rotor_count] for name in ("thrust", "torque"))
    weight = float(column[layout.offsets["mass"]] * column[layout.offsets["gravity"]])
    lift = _hover_lift(believed, thrust, weight)
    speed = _firmware_states(believed, lift, np.zeros((1, 9)), 1.0)[:rotor_count, 0]
    # Angular acceleration per rotor state, and per change of it: the rotors' own angular momentum.
    slope = [c[:, 1] + 2.0 * c[:, 2] * np.abs(speed) for c in (thrust, torque)]
    push = inverse @ (lever * slope[0][:, None] + axis * slope[1][:, None]).T
    spin = inverse @ (axis * column[layout.rows("rotor_inertia")][:rotor_count, None]).T
    poles = []
    for sense in ("rise", "fall"):
        response = column[layout.rows(f"rotor_{sense}")]
        poles.append(float(np.max(response[0::2][:rotor_count] + 2.0 * response[1::2][:rotor_count] * np.abs(speed))))
    exact, integrator = _exact_by_choice(column, layout, config), config.integrator

    def radius(rate: float) -> float:
        dt = 1.0 / rate
        moves = np.concatenate([_SMALL * np.eye(9), -_SMALL * np.eye(9)])
        states = _firmware_states(believed, lift, moves, dt)[:rotor_count]
        asked = np.hstack([(states[:, :9] - states[:, 9:]) / (2.0 * _SMALL), np.zeros((rotor_count, rotor_count))])
        angle, turning, _, rotors = np.split(np.eye(9 + rotor_count), (3, 6, 9))
        found = []
        for pole in poles:
            left, share = _lag_over_step(pole * dt, exact, integrator)
            change = (1.0 - left) * (asked - rotors)
            mean = rotors + share * (asked - rotors)
            turned = turning + dt * (push @ mean) + spin @ change
            moved = {"rk4": 0.5 * (turned + turning), "semi_implicit": turned, "euler": turning}[integrator]
            matrix = np.vstack([angle + dt * moved, turned, -turning, rotors + change])
            found.append(float(np.abs(np.linalg.eigvals(matrix)).max()))
        return min(found)

    return radius


def _hover_lift(believed: Any, thrust: Array, weight: float) -> float:
    """Upward acceleration on top of gravity that the law has to be asked for until the rotors carry the weight [m/s^2]."""
    low, high = -believed.gravity, 20.0 * believed.gravity
    for _ in range(60):
        middle = 0.5 * (low + high)
        w = _firmware_states(believed, middle, np.zeros((1, 9)), 1.0)[: len(thrust), 0]
        carried = float(np.sum(thrust[:, 0] + w * (thrust[:, 1] + thrust[:, 2] * np.abs(w))))
        low, high = (middle, high) if carried < weight else (low, middle)
    return high


def _firmware_states(believed: Any, lift: float, moves: Array, dt: float) -> Array:
    """Rotor states that the law asks for in place at small angles, rates and last rate errors.

    Args:
        believed: Record of the controller's rows.
        lift: Reference acceleration upwards [m/s^2].
        moves: Angles [rad], rates [rad/s] and rate errors of the step before [rad/s], shape (k, 9).
        dt: Step [s].

    Returns:
        Padded rotors, shape (rotors, k).
    """
    zero = np.zeros(len(moves))
    still = (zero,) * 3
    angle, rate, before = (tuple(moves[:, k : k + 3].T) for k in (0, 3, 6))
    attitude = (*(0.5 * a for a in angle), zero + 1.0)
    wanted = (*(zero,) * 8, zero + lift, *(zero,) * 7)
    states, _ = crazyflie_states(still, still, attitude, rate, wanted, (*still, *still, *before), zero + 1.0, dt, believed)
    return np.stack([np.broadcast_to(state, zero.shape) for state in states])


def _symmetric(six: Array) -> Array:
    """Return a matrix of its xx, yy, zz, xy, xz, yz entries."""
    xx, yy, zz, xy, xz, yz = six
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
