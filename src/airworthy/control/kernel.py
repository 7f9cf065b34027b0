"""The control laws as blocks of the fused step: parameter rows, traced code, and the choice among levels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.control.allocation import allocate_bounded, allocate_pseudo_inverse, limit_excess, rotor_lead, speed_for_thrust
from airworthy.control.attitude import attitude_error, into_body, into_world
from airworthy.control.config import ControlConfig
from airworthy.control.effectors import allocation_for
from airworthy.control.gain_rows import gain_rows, rotor_lead_for
from airworthy.control.geometric import BodyState, geometric_control, pose_control
from airworthy.control.levels import MODES, Reference, reference_from_command
from airworthy.control.mellinger import (
    MellingerState,
    mellinger_control,
    motor_commands,
    reference_rates,
    speed_of_command,
    thrust_of_command,
)
from airworthy.control.rate_loop import (
    FilterCoefficients,
    RateLoopState,
    backward_euler_coefficients,
    exact_coefficients,
    rate_loop,
)
from airworthy.core.layout import Layout
from airworthy.core.ops import where
from airworthy.core.tracing import Block, trace
from airworthy.core.vectors import add, matrix_columns, norm
from airworthy.vehicles import Vehicle, hover_speed

Array = NDArray[np.float64]
Sizes = Mapping[str, int | None]


@dataclass(frozen=True)
class Level:
    """A control level of the kernel."""

    number: int
    """What the native code switches on."""
    rows: int
    """Numbers of a command; 0: one per rotor."""

    def width(self, rotor_count: int) -> int:
        """Numbers of a command."""
        return self.rows or rotor_count


_WIDTHS = {
    "rotor_speed": 0,
    "rotor_thrust": 0,
    "wrench": 6,
    "rate_thrust": 4,
    "attitude_thrust": 4,
    "acceleration": 4,
    "velocity": 4,
    "velocity_steering": 4,
    "position": 4,
    "pose": 7,
    "tracking": 14,
    # Laws that remember come last: the native code loads their memory from here on.
    "rate_thrust:flightgoggles": 4,
    "tracking:mellinger": 14,
    "tracking:crazyflie": 14,
}
LEVELS = {name: Level(number, rows) for number, (name, rows) in enumerate(_WIDTHS.items())}
"""Levels by name; a colon names the law where a level has several."""

LED_LEVELS = (*MODES, "pose", "tracking:mellinger")
"""Levels at which slow rotors are hurried; below and in published loops they are commanded as they are."""

_NATIVE_NAMES = {
    "LEVEL_ROTOR_SPEED": "rotor_speed",
    "LEVEL_ROTOR_THRUST": "rotor_thrust",
    "LEVEL_WRENCH": "wrench",
    "LEVEL_RATE_LOOP": "rate_thrust:flightgoggles",
    "LEVEL_WITH_MEMORY": "rate_thrust:flightgoggles",
    "LEVEL_MELLINGER": "tracking:mellinger",
    "LEVEL_CRAZYFLIE": "tracking:crazyflie",
    "LEVEL_TRACKING": "tracking",
}


def control_layout(rotor_count: int) -> Layout:
    """Parameter rows of the control laws: the controller's own copy of the vehicle, and its gains."""
    n = rotor_count
    return Layout(
        {
            "mass": (),
            "gravity": (),
            "inertia": (6,),
            "inverse": (n, 6),
            "collective": (n,),
            "thrust_min": (n,),
            "thrust_max_rotor": (n,),
            "thrust_polynomial": (n, 3),
            "position_gain": (3,),
            "velocity_gain": (3,),
            "attitude_gain": (3,),
            "rate_gain": (3,),
            "inclination_tangent": (),
            "thrust_max": (),
            "yaw_rate_max": (),
            "pull_max": (2,),
            "vehicle_frame": (),  # accelerations arrive in the vehicle frame
            "filter": (6,),
            "rate_proportional": (3,),
            "rate_integral": (3,),
            "rate_derivative": (3,),
            "rate_integral_max": (3,),
            "m_mass": (),
            "m_kp": (3,),
            "m_kd": (3,),
            "m_ki": (3,),
            "m_integral_max": (3,),
            "m_attitude_gain": (3,),
            "m_rate_gain": (3,),
            "m_attitude_integral_gain": (3,),
            "m_attitude_integral_max": (3,),
            "m_rate_derivative_gain": (3,),
            "m_thrust_scale": (),
            "m_moment_max": (3,),
            "mixer": (n, 3),
            "subtract_excess": (),
            "use_chain": (),
            "chain": (8,),
            "lead": (),
            "drag_linear": (3,),  # of the believed vehicle, rotor drag at hover speed included [N s/m]
            "drag_norm": (3,),
        }
    )


def control_blocks(layout: Layout, rotor_count: int) -> list[Block]:
    """Traced blocks of every level for a padded number of rotors."""
    n = rotor_count

    def block(function: Any, name: str, inputs: Sizes, outputs: Sizes, **constants: Any) -> Block:
        return trace(function, name, inputs, outputs, {"p": (layout, "CON")}, constants, "CONTEXT")

    body = {"position": 3, "velocity": 3, "attitude": 4, "rate": 3, "wanted": 16}
    remembering = {**body, "memory": 9, "started": None, "dt": None}
    return [
        *(block(_geometric, f"control_{level}", body, {"wrench": 6}, level=level) for level in MODES),
        block(_pose, "control_pose", body, {"wrench": 6}),
        block(_rate_loop, "control_rate_loop", {"rate": 3, "wanted": 16, "memory": 9, "dt": None}, {"wrench": 6, "kept": 9}),
        block(_mellinger, "control_mellinger", remembering, {"wrench": 6, "kept": 9}),
        block(_crazyflie, "control_crazyflie", remembering, {"states": n, "kept": 9}),
        block(_bounded, "allocate_bounded", {"wrench": 6}, {"thrusts": n}),
        block(_exact, "allocate_pseudo_inverse", {"wrench": 6}, {"thrusts": n, "excess": None}),
        block(_rotor_states, "rotor_states", {"thrusts": n}, {"states": n}),
        _extrapolated_block(),
        block(_rotor_lead, "rotor_lead", {"state": n, "target": n}, {"states": n}),
    ]


def tracking_rates_blocks(layout: Layout) -> list[Block]:
    """Traced blocks of the tracking law for bodies that take thrust and rates: rates turn the attitude at K_R / K_W."""
    inputs = {"position": 3, "velocity": 3, "attitude": 4, "rate": 3, "wanted": 16}
    record = {"p": (layout, "CON")}
    return [trace(tracking_rates, "control_tracking", inputs, {"asked": 4}, record, None, "CONTEXT"), _extrapolated_block()]


def _extrapolated_block() -> Block:
    return trace(extrapolated, "extrapolated", {"wanted": 16, "elapsed": None}, {"asked": 16})


def control_native() -> dict[str, str]:
    """Hand-written parts of the step: hook name -> C."""

    def read(name: str) -> str:
        return files("airworthy.control").joinpath("native", name).read_text()

    call = "      case {}: T::control_{}(CTX, p, v, q, w, asked, wrench); break;\n"
    cases = "".join(call.format(LEVELS[name].number, name) for name in (*MODES, "pose"))
    return {
        "CONTROL_LOAD": read("control_load.h"),
        "CONTROL_STEP": read("control_step.h").replace("CONTROL_CASES", cases),
        "CONTROL_LEAD": read("control_lead.h"),
        "CONTROL_STORE": read("control_store.h"),
    }


def control_constants() -> dict[str, int]:
    """C enumerators of the levels that the native code names."""
    return {name: LEVELS[level].number for name, level in _NATIVE_NAMES.items()}


# ---- equations with the argument lists of the kernel ------------------------------------------------------------------------


def _allocation(p: Any) -> Any:
    return SimpleNamespace(inverse=p.inverse, collective=p.collective, thrust_min=p.thrust_min, thrust_max=p.thrust_max_rotor)


def _geometric(position: Any, velocity: Any, attitude: Any, rate: Any, wanted: Any, p: Any, level: str) -> Any:
    mode = MODES[level]
    if level == "acceleration":
        mode = mode._replace(vehicle_frame=p.vehicle_frame)
    reference = reference_from_command(level, wanted)
    if level == "tracking":
        reference = _against_drag(reference, attitude, p)
    out = geometric_control(BodyState(position, velocity, attitude, rate), reference, mode, p)
    return 0.0, 0.0, out.thrust, out.moment


def extrapolated(wanted: Any, elapsed: Any) -> Any:
    """A tracking command some time after it was given [s]: moved on by its own derivatives instead of held."""
    p, v, a, j, yaw, yaw_rate = wanted[:3], wanted[3:6], wanted[6:9], wanted[9:12], wanted[12], wanted[13]
    later_a = tuple(x + y * elapsed for x, y in zip(a, j, strict=True))
    later_v = tuple(u + elapsed * (x + elapsed * (0.5 * y)) for u, x, y in zip(v, a, j, strict=True))
    later_p = tuple(
        s + elapsed * (u + elapsed * (0.5 * x + elapsed * (y * (1.0 / 6.0)))) for s, u, x, y in zip(p, v, a, j, strict=True)
    )
    return *later_p, *later_v, *later_a, *j, yaw + yaw_rate * elapsed, yaw_rate, wanted[14], wanted[15]


def _against_drag(reference: Reference, attitude: Any, p: Any) -> Reference:
    """The reference with the acceleration that the believed drag takes at the reference velocity added."""
    axes = matrix_columns(attitude)
    body = into_body(axes, reference.velocity)
    speed = norm(reference.velocity)
    push = tuple(v * (a + b * speed) / p.mass for v, a, b in zip(body, p.drag_linear, p.drag_norm, strict=True))
    return reference._replace(acceleration=add(reference.acceleration, into_world(axes, push)))


def tracking_rates(position: Any, velocity: Any, attitude: Any, rate: Any, wanted: Any, p: Any) -> Any:
    """Collective thrust [N] and body rates [rad/s] that follow a tracking command: w_d - (K_R / K_W) e_R."""
    state = BodyState(position, velocity, attitude, rate)
    out = geometric_control(state, reference_from_command("tracking", wanted), MODES["tracking"], p)
    error = attitude_error(matrix_columns(attitude), out.axes)
    return out.thrust, *(out.rate[i] - p.attitude_gain[i] / p.rate_gain[i] * error[i] for i in range(3))


def _pose(position: Any, velocity: Any, attitude: Any, rate: Any, wanted: Any, p: Any) -> Any:
    return pose_control(BodyState(position, velocity, attitude, rate), wanted[:3], wanted[3:7], p)


def _rate_loop(rate: Any, wanted: Any, memory: Any, dt: Any, p: Any) -> Any:
    gains = SimpleNamespace(
        inertia=p.inertia,
        proportional=p.rate_proportional,
        integral=p.rate_integral,
        derivative=p.rate_derivative,
        integral_max=p.rate_integral_max,
    )
    state = RateLoopState(memory[:3], memory[3:6], memory[6:9])
    moment, state = rate_loop(rate, wanted[1:4], state, FilterCoefficients(*p.filter), dt, gains)
    return (0.0, 0.0, wanted[0], *moment), (*state.filtered, *state.slope, *state.integral)


def _mellinger_law(
    position: Any, velocity: Any, attitude: Any, rate: Any, reference: Reference, memory: Any, started: Any, dt: Any, p: Any
) -> Any:
    gains = SimpleNamespace(**{name[2:]: getattr(p, name) for name in vars(p) if name.startswith("m_")}, gravity=p.gravity)
    state = BodyState(position, velocity, attitude, rate)
    kept = MellingerState(memory[:3], memory[3:6], memory[6:9])
    return mellinger_control(state, reference, reference_rates(reference, p.gravity), kept, started, dt, gains)


def _mellinger(
    position: Any, velocity: Any, attitude: Any, rate: Any, wanted: Any, memory: Any, started: Any, dt: Any, p: Any
) -> Any:
    reference = _against_drag(reference_from_command("tracking", wanted), attitude, p)
    thrust, moment, kept = _mellinger_law(position, velocity, attitude, rate, reference, memory, started, dt, p)
    return (0.0, 0.0, thrust, *moment), kept


def _crazyflie(
    position: Any, velocity: Any, attitude: Any, rate: Any, wanted: Any, memory: Any, started: Any, dt: Any, p: Any
) -> Any:
    reference = reference_from_command("tracking", wanted)
    thrust, moment, kept = _mellinger_law(position, velocity, attitude, rate, reference, memory, started, dt, p)
    commands = motor_commands(thrust, moment, p.mixer, p.subtract_excess)
    chain = SimpleNamespace(**dict(zip(_CHAIN, p.chain, strict=True)))
    states = []
    for command, polynomial, largest in zip(commands, p.thrust_polynomial, p.thrust_max_rotor, strict=True):
        ideal = speed_for_thrust(polynomial, thrust_of_command(command, largest))
        states.append(where(p.use_chain > 0.5, speed_of_command(command, chain), ideal))
    return states, kept


def _bounded(wrench: Any, p: Any) -> Any:
    return allocate_bounded(wrench, _allocation(p))


def _pseudo_inverse(wrench: Any, p: Any) -> Any:
    return allocate_pseudo_inverse(wrench, _allocation(p), 0.0)


def _exact(wrench: Any, p: Any) -> Any:
    """Pseudo-inverse and by how much its worst rotor exceeds a limit [N]."""
    thrusts = _pseudo_inverse(wrench, p)
    return thrusts, limit_excess(thrusts, p.thrust_min, p.thrust_max_rotor)


def _rotor_lead(state: Any, target: Any, p: Any) -> Any:
    return tuple(rotor_lead(w, t, p.lead) for w, t in zip(state, target, strict=True))


def _rotor_states(thrusts: Any, p: Any) -> Any:
    return tuple(speed_for_thrust(c, t) for c, t in zip(p.thrust_polynomial, thrusts, strict=True))


_CHAIN = (
    "command_to_grams",
    "volts_linear",
    "volts_quadratic",
    "supply",
    "pwm_min",
    "pwm_max",
    "speed_slope",
    "speed_offset",
)


# ---- parameter rows ----------------------------------------------------------------------------------------------------------


def control_column(vehicle: Vehicle, config: ControlConfig, law: str, dt: float, rotor_count: int) -> Array:
    """Rows of a vehicle as its controller believes it to be, shape (control_layout(rotor_count).size,).

    Args:
        vehicle: The believed vehicle.
        config: Gains and variants.
        law: The level, as in `LEVELS`.
        dt: Physics step, the rate at which the laws run [s].
        rotor_count: Padded number of rotors.

    Raises:
        AirworthyError: If a gain set is unknown.
    """
    layout = control_layout(rotor_count)
    column = np.zeros(layout.size)

    def put(name: str, value: Any) -> None:
        column[layout.rows(name)] = np.asarray(value, float).ravel()

    allocation = allocation_for(vehicle, rotor_count)
    put("mass", vehicle.mass)
    put("gravity", vehicle.gravity)
    put("inertia", vehicle.inertia)
    put("inverse", allocation.inverse)
    put("collective", allocation.collective)
    put("thrust_min", allocation.thrust_min)
    put("thrust_max_rotor", allocation.thrust_max)
    polynomial = np.zeros((rotor_count, 3))
    polynomial[: vehicle.rotor_count] = [r.thrust for r in vehicle.rotors]
    put("thrust_polynomial", polynomial)
    put("vehicle_frame", config.acceleration_frame == "vehicle")
    p, q = (2.0 * np.pi * 30.0) ** 2, 2.0 * np.sqrt(0.5) * 2.0 * np.pi * 30.0
    form = backward_euler_coefficients if config.published_filter else exact_coefficients
    put("filter", tuple(form(p, q, dt)))
    put("subtract_excess", config.overflow == "subtract")
    if vehicle.voltage_chain is not None and config.voltage_chain:
        put("use_chain", 1.0)
        put("chain", [getattr(vehicle.voltage_chain, name) for name in _CHAIN])
    else:
        put("chain", (1, 1, 0, 1, 0, 65535, 1, 0))
    lead = rotor_lead_for(vehicle, config)
    put("lead", lead if law in LED_LEVELS else 1.0)
    if config.drag_feed_forward:
        turning = float(np.abs(hover_speed(vehicle)).sum())
        put("drag_linear", np.add(vehicle.drag.linear, np.multiply(vehicle.drag.rotor_speed, turning)))
        put("drag_norm", vehicle.drag.quadratic_norm)
    for name, value in gain_rows(vehicle, config, law, dt, rotor_count).items():
        put(name, value)
    return column
