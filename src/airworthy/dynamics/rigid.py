"""The rigid family: its equations traced into the blocks of the step's native loop."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from airworthy.core.layout import Layout
from airworthy.core.tracing import Block, trace
from airworthy.dynamics import equations as eq
from airworthy.dynamics.state import Effects

CONTEXT = "CONTEXT"
"""C macro that declares what `PAR(row)` needs."""

DRAG_FLAGS = {"none": Effects(0), "simple": Effects.DRAG, "full": Effects.DRAG | Effects.DRAG_FULL}
VARIANTS = [(planar, square, drag) for planar in (False, True) for square in (False, True) for drag in DRAG_FLAGS]
"""Specialised derivatives: structural zeros dropped for planar rotors, pure squares and absent drag."""

INTEGRATORS = {"euler": 0, "semi_implicit": 1, "rk4": 2}


def step_source() -> str:
    """The hand-written loop, with places for traced blocks and control."""
    return native_text("rigid_step.cpp").replace("BATCH_OPEN", native_text("batch_open.h"))


def rigid_blocks(layout: Layout, rotor_count: int) -> list[Block]:
    """The traced blocks that `step_source` calls, for a padded number of rotors."""
    n = rotor_count

    def block(function: Any, name: str, inputs: Mapping[str, int | None], outputs: Mapping[str, int | None], **constants: Any) -> Block:
        return trace(function, name, inputs, outputs, {"p": (layout, "PAR")}, constants, CONTEXT)

    state = {"velocity": 3, "attitude": 4, "rate": 3, "rotor_speed": n}
    acting = {"command": n, "wind": 3, "force": 3, "moment": 3}
    rates = {"dv": 3, "dq": 4, "dw": 3, "dm": n, "specific": 3}
    derivatives = [
        block(
            eq.derivative,
            f"derivative_{variant_name(planar, square, drag)}",
            # Ground effect scales thrust: only the polynomial variants carry its factor.
            {**state, **acting, **({} if square else {"thrust_factor": n})},
            rates,
            **({"thrust_factor": None} if square else {}),
            planar=planar,
            square=square,
            drag=drag,
        )
        for planar, square, drag in VARIANTS
    ]
    return [
        *derivatives,
        block(_clip, "clip_rotors", {"speed": n, "ceiling": None}, {"out": n}),
        block(_exact, "rotor_exact", {"speed": n, "command": n}, {"half": n, "full": n}),
        block(_accelerometer, "accelerometer", {"specific": 3, "rate": 3, "rate_dot": 3}, {"out": 3}),
        block(_gyroscope, "gyroscope", {"rate": 3}, {"out": 3}),
        block(eq.wind_velocity, "wind", {"time": None, "turbulence": 3}, {"out": 3}),
        block(eq.dryden_step, "dryden", {"state": 5, "noise": 3}, {"next": 5, "velocity": 3}),
        block(eq.ground_effect_factors, "ground_effect", {"height": None, "attitude": 4}, {"out": n}),
        block(eq.battery_step, "battery", {"charge": None, "rotor_speed": n, "dt": None}, {"used": None, "ratio": None}),
        block(
            eq.contact_impulse,
            "contact",
            {"height": None, "velocity": 3, "attitude": 4, "rate": 3, "point": 3},
            {"next_velocity": 3, "next_rate": 3, "depth": None},
        ),
        trace(eq.normalize, "normalize", {"attitude": 4}, {"out": 4}),
        trace(eq.quaternion_exponential, "turn", {"attitude": 4, "rate": 3, "dt": None}, {"out": 4}),
    ]


def variant_name(planar: bool, square: bool, drag: str) -> str:
    """Name of a specialised derivative, e.g. `planar_square_simple`."""
    return "_".join(["planar" if planar else "tilted", "square" if square else "polynomial", drag])


def advance_source() -> str:
    """C: one step per specialised derivative, and the choice among them, uniform over the batch."""
    template = native_text("rigid_advance.h")
    names = "integrator, exact, dt, Y, command, wind, force, moment, factor, half_m, full_m, next, moved, rate_dot, specific"
    vectors = "Y, command, wind, force, moment, factor, half_m, full_m"
    parts, cases = [], []
    for planar, square, drag in VARIANTS:
        name = variant_name(planar, square, drag)
        # Squares go without what is rarely asked for: ground effect and the exact rotor update.
        exact, factor = ("false", "") if square else ("exact", ", factor")
        parts.append(template.replace("VARIANT", name).replace("FACTOR", factor).replace("EXACT", exact))
        number = int(planar * Effects.PLANAR | square * Effects.SQUARE | DRAG_FLAGS[drag])
        cases.append(f"    case {number}: advance_{name}(CTX, {names}); break;\n")
    inputs = ", ".join(f"const F* {n}" for n in vectors.split(", "))
    outputs = ", ".join(f"F* {n}" for n in ("next", "moved", "rate_dot", "specific"))
    signature = f"CONTEXT, int variant, int integrator, bool exact, float dt, {inputs}, {outputs}"
    parts.append(f"static INLINE void advance({signature}) {{\n  switch (variant) {{\n{''.join(cases)}  }}\n}}\n")
    return "".join(parts)


def native_text(name: str) -> str:
    """A native source of this room."""
    return files("airworthy.dynamics").joinpath("native", name).read_text()


def _clip(speed: Any, ceiling: Any, p: Any) -> Any:
    return eq.clip_rotors(speed, p.rotor_min, p.rotor_max, ceiling)


def _exact(speed: Any, command: Any, p: Any) -> Any:
    half = eq.rotor_exact(speed, command, p.rotor_rise_keep_half, p.rotor_fall_keep_half)
    return half, eq.rotor_exact(speed, command, p.rotor_rise_keep, p.rotor_fall_keep)


def _accelerometer(specific: Any, rate: Any, rate_dot: Any, p: Any) -> Any:
    return eq.accelerometer(specific, rate, rate_dot, p.imu_rotation, p.imu_position)


def _gyroscope(rate: Any, p: Any) -> Any:
    return eq.into_sensor(rate, p.imu_rotation)
