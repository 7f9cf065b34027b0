"""Builds the fused kernel: control, allocation, rotors, body, disturbances and IMU over all steps of a control period."""

from __future__ import annotations

from functools import cache
from typing import Any

from airworthy.control.kernel import control_blocks, control_constants, control_layout, control_native, tracking_rates_blocks
from airworthy.core.layout import Layout
from airworthy.core.native_kernel import native_kernel, shared_source
from airworthy.core.random import Stream
from airworthy.dynamics.rigid import INTEGRATORS, advance_source, rigid_blocks, step_source
from airworthy.dynamics.semi_kinematic import (
    semi_kinematic_blocks,
    semi_kinematic_layout,
    semi_kinematic_source,
    semi_kinematic_state_layout,
)
from airworthy.dynamics.state import (
    COMMAND_ROWS,
    CONTACT_POINTS,
    SPANS_MAX,
    Effects,
    input_layout,
    rigid_layout,
    rigid_state_layout,
)

ARGUMENTS = ("state", "inputs", "params", "param_table", "keys", "imu_log", "elapsed")
"""Array arguments of the kernel, in order; then the scalars below and the first block."""
SCALARS = ("stride", "dt", "substeps", "integrator", "level", "command_rows", "flags", "block_count")


BLOCKS_PER_TASK = 16
"""Blocks of 16 environments that one CPU task covers."""


def parameter_layout(rotor_count: int) -> Layout:
    """Rows of the rigid family's parameters: the vehicle's, then the controller's under the prefix `control_`."""
    return _with_control(rigid_layout(rotor_count), rotor_count)


def semi_kinematic_parameter_layout(rotor_count: int) -> Layout:
    """Rows of the semi-kinematic family's parameters: the vehicle's, then the controller's under the prefix `control_`."""
    return _with_control(semi_kinematic_layout(), rotor_count)


def _with_control(vehicle: Layout, rotor_count: int) -> Layout:
    control = {f"control_{name}": shape for name, shape in control_layout(rotor_count).fields.items()}
    return Layout({**vehicle.fields, **control})


def step_snippet(rotor_count: int) -> str:
    """Complete native source of the rigid step for a padded number of rotors."""
    vehicle, control = rigid_layout(rotor_count), control_layout(rotor_count)
    blocks = [*rigid_blocks(vehicle, rotor_count), *control_blocks(control, rotor_count)]
    text = step_source()
    for hook, part in control_native().items():
        text = text.replace(hook, part)
    text = text.replace("TRACED_BLOCKS", "".join(b.source for b in blocks) + advance_source())
    constants = {"ROTORS": rotor_count, "P_CONTROL_START": vehicle.size}
    return _assemble(text, constants, parameter_layout(rotor_count), rigid_state_layout(rotor_count))


def semi_kinematic_snippet(rotor_count: int) -> str:
    """Complete native source of the semi-kinematic step."""
    vehicle, control = semi_kinematic_layout(), control_layout(rotor_count)
    blocks = [*semi_kinematic_blocks(vehicle), *tracking_rates_blocks(control)]
    text = semi_kinematic_source().replace("TRACED_BLOCKS", "".join(b.source for b in blocks))
    constants = {"P_CONTROL_START": vehicle.size}
    return _assemble(text, constants, semi_kinematic_parameter_layout(rotor_count), semi_kinematic_state_layout())


def _assemble(text: str, constants: dict[str, int], parameters: Layout, state: Layout) -> str:
    values = {
        **constants,
        "GROUP": BLOCKS_PER_TASK,
        "COMMAND_ROWS": COMMAND_ROWS,
        "CONTACT_POINTS": CONTACT_POINTS,
        "SPANS_MAX": SPANS_MAX,
        **control_constants(),
        **{f"STREAM_{s.name}": int(s) for s in Stream},
        **{f"E_{e.name}": int(e) for e in Effects},
        **{f"INTEGRATOR_{name.upper()}": number for name, number in INTEGRATORS.items()},
    }
    enumerators = ", ".join(f"{name} = {number}" for name, number in values.items())
    layouts = [parameters.c_enum("P"), state.c_enum("S"), input_layout().c_enum("IN")]
    return "\n".join([shared_source("prelude.h"), f"enum {{ {enumerators} }};", *layouts, shared_source("random.h"), text])


@cache
def step_kernel(rotor_count: int) -> Any:
    """Return the rigid family's Warp kernel for a padded number of rotors; compiled at first launch, then cached on disk."""
    return native_kernel(f"step_{rotor_count}", step_snippet(rotor_count), _ARGUMENTS)


@cache
def semi_kinematic_kernel(rotor_count: int) -> Any:
    """Return the semi-kinematic family's Warp kernel."""
    return native_kernel("semi_kinematic", semi_kinematic_snippet(rotor_count), _ARGUMENTS)


_ARGUMENTS = """
    state: float32[]
    inputs: float32[]
    params: float32[]
    param_table: int32[]
    keys: uint32[]
    imu_log: float32[]
    elapsed: int32[]
    stride: int
    dt: float
    substeps: int
    integrator: int
    level: int
    command_rows: int
    flags: int
    block_count: int
"""
