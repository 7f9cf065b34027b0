"""The control laws as blocks of the fused step: parameter rows, traced code, and the choice among levels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from airworthy.control import laws
from airworthy.control.allocation import PRIORITIES
from airworthy.control.effectors import allocation_for, holds_yaw
from airworthy.control.gain_parameters import gain_rows, rotor_lead_for
from airworthy.control.levels import MODES, ControlConfig
from airworthy.control.rate_loop import backward_euler_coefficients, exact_coefficients
from airworthy.control.spare_rotors import spare_shapes
from airworthy.core.arrays import Array
from airworthy.core.layout import Layout
from airworthy.core.tracing import TracedBlock, trace
from airworthy.vehicles import Vehicle, hover_trim, linear_drag, upright

Sizes = Mapping[str, int | None]


@dataclass(frozen=True)
class Level:
    """A control level of the kernel."""

    number: int
    """What the native code switches on."""
    rows: int
    """Numbers of a command; 0: one per rotor."""

    def width(self, rotor_count: int) -> int:
        """Return numbers of a command."""
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

TRIMMED_LEVELS = (
    "acceleration",
    "velocity",
    "velocity_steering",
    "position",
    "tracking",
    "tracking:mellinger",
    "tracking:crazyflie",
)
"""Levels at which the law chooses the attitude by the force it wants: there it steers the frame in which hover is level."""

UNALLOCATED_LEVELS = ("rotor_speed", "rotor_thrust", "tracking:crazyflie")
"""Levels without allocation: rotors are commanded themselves, or by the firmware's own mixer."""

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


# Source: spec/flightgoggles 4.3: Butterworth of second order at 30 Hz, p = (2 pi 30)^2, q = sqrt(2) 2 pi 30.
_FILTER_HZ, _FILTER_DAMPING = 30.0, np.sqrt(0.5)
_ALLOCATIONS = ("allocate_bounded", "allocate_yaw_before_force", "allocate_force_first")
"""Blocks of the bounded allocation, in the order of `PRIORITIES`."""


def control_layout(rotor_count: int) -> Layout:
    """Return parameter rows of the control laws: the controller's own copy of the vehicle, and its gains."""
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
            **{f"spare_{name}": shape for name, shape in spare_shapes(n).items()},
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
            "yaw_lost": (),  # the airframe cannot hold its yaw, so it is left out
            "trim": (4,),  # frame in which hover is level, to body, x y z w; identity where that is the body
        }
    )


def control_blocks(layout: Layout, rotor_count: int, irregular: bool = False) -> list[TracedBlock]:
    """Return traced blocks of every level.

    Args:
        layout: Of the parameter rows.
        rotor_count: Padded number of rotors.
        irregular: Allocation asks each airframe whether it is `collective.irregular`. With rotors to spare it always does: that
            is nothing beside the simplex method.
    """
    n, regular = rotor_count, not (irregular or spare_shapes(rotor_count))

    def block(function: Any, name: str, inputs: Sizes, outputs: Sizes, **constants: Any) -> TracedBlock:
        return trace(function, name, inputs, outputs, {"p": (layout, "CON")}, constants, "CONTEXT")

    body = {"position": 3, "velocity": 3, "attitude": 4, "body_rate": 3, "wanted": 16}
    remembering = {**body, "memory": 9, "started": None, "dt": None}
    return [
        *(block(laws.geometric_wrench, f"control_{level}", body, {"wrench": 6}, level=level) for level in MODES),
        block(laws.pose_wrench, "control_pose", body, {"wrench": 6}),
        block(
            laws.rate_loop_wrench,
            "control_rate_loop",
            {"body_rate": 3, "wanted": 16, "memory": 9, "dt": None},
            {"wrench": 6, "kept": 9},
        ),
        block(laws.mellinger_wrench, "control_mellinger", remembering, {"wrench": 6, "kept": 9}),
        block(laws.crazyflie_states, "control_crazyflie", remembering, {"states": n, "kept": 9}),
        *(
            block(laws.bounded_thrusts, name, {"wrench": 6}, {"thrusts": n}, priority=priority, regular=regular)
            for name, priority in zip(_ALLOCATIONS, PRIORITIES, strict=True)
        ),
        block(laws.exact_thrusts, "allocate_pseudo_inverse", {"wrench": 6}, {"thrusts": n, "excess": None}),
        block(laws.rotor_states, "rotor_states", {"thrusts": n}, {"states": n}),
        _extrapolated_block(),
        block(laws.trimmed, "trimmed", {"attitude": 4, "body_rate": 3}, {"turned": 4, "turning": 3}),
        block(laws.led_states, "rotor_lead", {"state": n, "target": n}, {"states": n}),
    ]


def tracking_rates_blocks(layout: Layout) -> list[TracedBlock]:
    """Return traced blocks of the tracking law for bodies that take thrust and rates: rates turn the attitude at K_R / K_W."""
    inputs = {"position": 3, "velocity": 3, "attitude": 4, "body_rate": 3, "wanted": 16}
    record = {"p": (layout, "CON")}
    return [
        trace(laws.tracking_rates, "control_tracking", inputs, {"asked": 4}, record, None, "CONTEXT"),
        _extrapolated_block(),
    ]


def _extrapolated_block() -> TracedBlock:
    return trace(laws.extrapolated, "extrapolated", {"wanted": 16, "elapsed": None}, {"asked": 16})


def control_native() -> dict[str, str]:
    """Return hand-written parts of the step: hook name -> C."""

    def read(name: str) -> str:
        return files("airworthy.control").joinpath("native", name).read_text()

    call = "      case {}: T::control_{}(CTX, p, v, steered_q, steered_w, asked, wrench); break;\n"
    cases = "".join(call.format(LEVELS[name].number, name) for name in (*MODES, "pose"))
    return {
        "CONTROL_LOAD": read("control_load.h"),
        "CONTROL_STEP": read("control_step.h").replace("CONTROL_CASES", cases),
        "CONTROL_LEAD": read("control_lead.h"),
        "CONTROL_STORE": read("control_store.h"),
    }


def control_constants() -> dict[str, int]:
    """Return C enumerators of the levels that the native code names."""
    return {name: LEVELS[level].number for name, level in _NATIVE_NAMES.items()}


# ---- parameter rows ----------------------------------------------------------------------------------------------------------


def control_column(vehicle: Vehicle, config: ControlConfig, law: str, dt: float, rotor_count: int) -> Array:
    """Return rows of a vehicle as its controller believes it to be, shape (control_layout(rotor_count).size,).

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
    put = layout.writer(column)

    x, y, z, w = hover_trim(vehicle).attitude if law in TRIMMED_LEVELS else (0.0, 0.0, 0.0, 1.0)
    put("trim", (-x, -y, -z, w))
    vehicle = upright(vehicle) if law in TRIMMED_LEVELS else vehicle
    allocation = allocation_for(vehicle, rotor_count)
    put("mass", vehicle.mass)
    put("gravity", vehicle.gravity)
    put("inertia", vehicle.inertia)
    put("inverse", allocation.inverse)
    put("collective", allocation.collective)
    put("thrust_min", allocation.thrust_min)
    put("thrust_max_rotor", allocation.thrust_max)
    for name in spare_shapes(rotor_count):
        put(f"spare_{name}", getattr(allocation.spare, name))
    polynomial = np.zeros((rotor_count, 3))
    polynomial[: vehicle.rotor_count] = [r.thrust for r in vehicle.rotors]
    put("thrust_polynomial", polynomial)
    put("yaw_lost", not holds_yaw(vehicle))
    put("vehicle_frame", config.acceleration_frame == "vehicle")
    p, q = (2.0 * np.pi * _FILTER_HZ) ** 2, 2.0 * _FILTER_DAMPING * 2.0 * np.pi * _FILTER_HZ
    form = backward_euler_coefficients if config.published_filter else exact_coefficients
    put("filter", tuple(form(p, q, dt)))
    put("subtract_excess", config.overflow == "subtract")
    if vehicle.voltage_chain is not None and config.voltage_chain:
        put("use_chain", 1.0)
        put("chain", [getattr(vehicle.voltage_chain, name) for name in laws.CHAIN_FIELDS])
    else:
        put("chain", (1, 1, 0, 1, 0, 65535, 1, 0))
    lead = rotor_lead_for(vehicle, config)
    put("lead", lead if law in LED_LEVELS else 1.0)
    if config.drag_feed_forward:
        put("drag_linear", linear_drag(vehicle, hover_trim(vehicle).states))
        put("drag_norm", vehicle.drag.quadratic_norm)
    for name, value in gain_rows(vehicle, config, law, dt, rotor_count).items():
        put(name, value)
    return column
