"""The rigid family: its equations traced into the blocks of the step's native loop."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from airworthy.core.layout import Layout
from airworthy.core.tracing import TracedBlock, trace
from airworthy.dynamics import contact
from airworthy.dynamics import equations as eq
from airworthy.dynamics.state import Effects

CONTEXT = "CONTEXT"
"""C macro that declares what `PAR(row)` needs."""

DRAG_FLAGS = {
    "none": Effects(0),
    "simple": Effects.DRAG,
    "full": Effects.DRAG | Effects.DRAG_FULL,
    "hubs": Effects.DRAG | Effects.DRAG_FULL | Effects.HUB_AIR,
}

Variant = tuple[bool, bool, str]

VARIANTS: list[Variant] = [
    (planar, square, drag) for planar in (True, False) for square in (True, False) for drag in DRAG_FLAGS
]
"""Specialised derivatives: structural zeros dropped for planar rotors, pure squares and absent drag; the most special first."""

CPU_VARIANTS = [(planar, square, drag) for planar, square, drag in VARIANTS if drag != "hubs" or not square]
"""Those that a CPU has. The others fly to the same bits on the first of these that covers them."""

GPU_VARIANTS = [
    (True, True, "none"),
    (True, True, "simple"),
    (True, False, "full"),
    (False, False, "full"),
    (False, False, "hubs"),
]
"""Those that a GPU has, since it inlines everything and compiles all in three times the time."""

GROUND_SWEEPS = 4
"""Passes over the contact points."""
GROUND_SLOP = 2e-4
"""Depth that is left, to keep the contact [m]."""
GROUND_LIFT = 0.2
"""Share of a greater depth that a step takes back."""

HELD_SHARE = {"euler": 0.0, "semi_implicit": 1.0, "rk4": 0.5}
"""Displacement over a step [dt] per change of velocity by a force held over it, as each integrator counts it."""

INTEGRATORS = {"euler": 0, "semi_implicit": 1, "rk4": 2, "midpoint": 3, "extrapolated": 4}
"""Of all families; the last two are for vehicles with joints."""


def step_source(delayed: bool = False) -> str:
    """Return the hand-written loop, with places for traced blocks and control.

    Args:
        delayed: With commands that reach their rotors late (`delay_line_source`).
    """
    return _with_sections("rigid_motion.h", delayed)


def delay_line_source() -> str:
    """Return the C struct `DelayLine`: commands on their way to rotors; it reads `DELAY_SLOTS` and `ROTORS`."""
    return native_text("delay_line.h")


def jointed_step_source() -> str:
    """Return the same loop for vehicles with joints."""
    return "#define PARAMETERS_CHANGE\n" + _with_sections("jointed_motion.h")


def _with_sections(name: str, delayed: bool = False) -> str:
    """Return the loop with what a family puts into it; hooks that it does not know stay empty."""
    text = native_text("rigid_step.cpp").replace("BATCH_OPEN", native_text("batch_open.h"))
    own = native_sections(name)
    for hook in MOTION_HOOKS:
        text = text.replace(hook, own.get(hook, ""))
    # Without a dead time nothing of it is in the text: those flights cost nothing more, and their kernels stay what they were.
    late = native_sections("rigid_delay.h") if delayed else {}
    for hook in DELAY_HOOKS:
        text = text.replace(f"{hook}\n", f"{late[hook]}\n" if hook in late else "")
    return text.replace("DELAY_LINE", delay_line_source()).replace("COMMANDED", "issued" if delayed else "command")


MOTION_HOOKS = (
    "MOTION_LOAD",
    "MOTION_SENSE",
    "SENSED_RATE",
    "MOTION_STEER",
    "MOTION_STEP",
    "MOTION_GROUND",
    "MOTION_BATTERY",
    "MOTION_BOUNDS",
    "MOTION_KEPT",
    "MOTION_STORE",
)
"""Where families put in what is their own."""

DELAY_HOOKS = ("DELAY_LOAD", "DELAY_STEP", "DELAY_STORE")
"""Where the dead time of commands is put in."""


def rigid_blocks(layout: Layout, rotor_count: int) -> list[TracedBlock]:
    """Return the traced blocks that `step_source` calls, for a padded number of rotors."""
    n = rotor_count

    def block(
        function: Any, name: str, inputs: Mapping[str, int | None], outputs: Mapping[str, int | None], **constants: Any
    ) -> TracedBlock:
        return trace(function, name, inputs, outputs, {"p": (layout, "PAR")}, constants, CONTEXT)

    state = {"velocity": 3, "attitude": 4, "body_rate": 3, "rotor_speed": n}
    acting = {"command": n, "wind": 3, "force": 3, "moment": 3}
    rates = {"dv": 3, "dq": 4, "dw": 3, "dm": n, "specific": 3}
    derivatives = [
        block(
            eq.derivative,
            f"derivative_{variant_name(planar, square, drag)}",
            # What is rarely asked for, ground effect and exact rotors, is left to the polynomial variants.
            {**state, **acting, **({} if square else {"thrust_factor": n, "exact": None, "mean_rate": n})},
            rates,
            **({"thrust_factor": None} if square else {}),
            planar=planar,
            square=square,
            drag=drag,
        )
        for planar, square, drag in CPU_VARIANTS
    ]
    return [
        *derivatives,
        block(_clip, "clip_rotors", {"speed": n, "ceiling": None}, {"out": n}),
        block(_exact, "rotor_exact", {"speed": n, "command": n}, {"half": n, "full": n}),
        block(_accelerometer, "accelerometer", {"specific": 3, "body_rate": 3, "rate_dot": 3}, {"out": 3}),
        block(_gyroscope, "gyroscope", {"body_rate": 3}, {"out": 3}),
        block(eq.wind_velocity, "wind", {"time": None, "turbulence": 3}, {"out": 3}),
        block(eq.dryden_step, "dryden", {"state": 5, "noise": 3}, {"next": 5, "velocity": 3}),
        block(eq.ground_effect_factors, "ground_effect", {"height": None, "attitude": 4}, {"out": n}),
        block(eq.battery_step, "battery", {"charge": None, "rotor_speed": n, "dt": None}, {"used": None, "ratio": None}),
        *contact_blocks(layout),
        trace(eq.normalize, "normalize", {"attitude": 4}, {"out": 4}),
        trace(eq.quaternion_exponential, "turn", {"attitude": 4, "body_rate": 3, "dt": None}, {"out": 4}),
    ]


def contact_blocks(layout: Layout) -> list[TracedBlock]:
    """Return the traced blocks of ground contact."""

    def block(function: Any, inputs: dict[str, int | None], outputs: dict[str, int | None]) -> TracedBlock:
        return trace(function, function.__name__, inputs, outputs, {"p": (layout, "PAR")}, None, CONTEXT)

    motion: dict[str, int | None] = {"velocity": 3, "body_rate": 3}
    at_point = {"touches": None, "push": None, **motion, "up": 3, "point": 3}
    before = {"approach": None, **motion, "velocity_before": 3, "rate_before": 3, "dt": None}
    after: dict[str, int | None] = {"next_velocity": 3, "next_rate": 3}
    result = {"velocity": 3, "velocity_before": 3, "attitude": 4, "dt": None}
    return [
        trace(contact.ground_frame, "ground_frame", {"velocity": 3, "attitude": 4}, {"up": 3, "out": 3}),
        block(contact.contact_state, {"height": None, "up": 3, **motion, "point": 3}, {"depth": None, "speed": None}),
        block(contact.contact_push, at_point, {**after, "next_push": None}),
        block(contact.contact_rebound, before, {**after, "share": None}),
        block(contact.contact_friction, at_point, {**after, "leaving": None}),
        block(contact.contact_holds, {**motion, "up": 3, "point": 3}, {"out": None}),
        block(contact.contact_rolling, {"push": None, **motion, "up": 3, "point": 3}, after),
        block(contact.affordable_lift, {"lift": None, **motion}, {"out": None}),
        block(contact.contact_rise, {"rise": None, **motion, "up": 3}, after),
        block(contact.contact_lift, {"lift": None, **motion}, after),
        block(contact.unpaid_lift, {"lift": None, "specific": 3, "up": 3}, {"out": None}),
        block(contact.bounce_speed, {"dt": None}, {"out": None}),
        trace(contact.ground_result, "ground_result", result, {"change": 3, "support": 3}),
    ]


def variant_name(planar: bool, square: bool, drag: str) -> str:
    """Return the name of a specialised derivative, e.g. `planar_square_simple`.

    Args:
        planar: Whether all rotors point along body z.
        square: Whether thrust and torque are pure squares of first-order rotor states.
        drag: One of `DRAG_FLAGS`.
    """
    return "_".join(["planar" if planar else "tilted", "square" if square else "polynomial", drag])


def advance_source() -> str:
    """Return the C source: a step per specialised derivative, the choice among them, uniform over the batch, ground contact."""
    template = native_text("rigid_advance.h")
    vectors = "Y, command, wind, force, moment, factor, half_m, full_m, mean_rate"
    names = f"integrator, exact, dt, {vectors}, next, moved, rate_dot, specific"
    parts = []
    for planar, square, drag in CPU_VARIANTS:
        name = variant_name(planar, square, drag)
        # Squares go without what is rarely asked for: ground effect and the exact rotor update.
        exact, factor = ("false", "") if square else ("exact", ", factor, exactly, mean_rate")
        parts.append(template.replace("VARIANT", name).replace("FACTOR", factor).replace("EXACT", exact))
    inputs = ", ".join(f"const F* {n}" for n in vectors.split(", "))
    outputs = ", ".join(f"F* {n}" for n in ("next", "moved", "rate_dot", "specific"))
    signature = f"CONTEXT, int variant, int integrator, bool exact, float dt, {inputs}, {outputs}"
    cases = f"#if LANES == 1\n{_cases(GPU_VARIANTS, names)}#else\n{_cases(CPU_VARIANTS, names)}#endif\n"
    parts.append(f"static INLINE void advance({signature}) {{\n  switch (variant) {{\n{cases}  }}\n}}\n")
    ground = native_text("rigid_ground.h")
    numbers = {"GROUND_SWEEPS": str(GROUND_SWEEPS), "GROUND_SLOP": f"{GROUND_SLOP}f", "GROUND_LIFT": f"{GROUND_LIFT}f"}
    for constant, text in numbers.items():
        ground = ground.replace(constant, text)
    return "".join([*parts, ground])


def _cases(kept: list[Variant], names: str) -> str:
    """C: per derivative of `kept` one call, for every set of flags that it is the first to cover."""
    flags: dict[Variant, list[int]] = {}
    for planar, square, drag in VARIANTS:
        order = list(DRAG_FLAGS).index
        cover = next(k for k in kept if k[0] <= planar and k[1] <= square and order(k[2]) >= order(drag))
        flags.setdefault(cover, []).append(int(planar * Effects.PLANAR | square * Effects.SQUARE | DRAG_FLAGS[drag]))
    return "".join(
        "".join(f"    case {number}:\n" for number in numbers)
        + f"      advance_{variant_name(*cover)}(CTX, {names});\n      break;\n"
        for cover, numbers in flags.items()
    )


def native_text(name: str) -> str:
    """Return a native source of this room."""
    return files("airworthy.dynamics").joinpath("native", name).read_text()


def native_sections(name: str) -> dict[str, str]:
    """Return the parts of a native source that lines `//@ NAME` begin, by name."""
    parts = native_text(name).split("//@ ")[1:]
    return {head: body.strip("\n") for head, _, body in (part.partition("\n") for part in parts)}


def _clip(speed: Any, ceiling: Any, p: Any) -> Any:
    return eq.clip_rotors(speed, p.rotor_min, p.rotor_max, ceiling)


def _exact(speed: Any, command: Any, p: Any) -> Any:
    half = eq.rotor_exact(speed, command, p.rotor_rise_keep_half, p.rotor_fall_keep_half)
    return half, eq.rotor_exact(speed, command, p.rotor_rise_keep, p.rotor_fall_keep)


def _accelerometer(specific: Any, body_rate: Any, rate_dot: Any, p: Any) -> Any:
    return eq.accelerometer(specific, body_rate, rate_dot, p.imu_rotation, p.imu_position)


def _gyroscope(body_rate: Any, p: Any) -> Any:
    return eq.into_sensor(body_rate, p.imu_rotation)
