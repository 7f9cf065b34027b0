"""Builds the fused kernel: control, allocation, rotors, body, disturbances and IMU over all steps of a control period."""

# No postponed annotations here: Warp reads them.

from functools import cache
from typing import Any

from airworthy.control.kernel import control_blocks, control_constants, control_layout, control_native
from airworthy.core.layout import Layout
from airworthy.core.native_kernel import MODULE_OPTIONS, quiet_warp, shared_source
from airworthy.core.random import Stream
from airworthy.dynamics.parameters import CONTACT_POINTS, rigid_layout
from airworthy.dynamics.rigid import INTEGRATORS, advance_source, rigid_blocks, step_source
from airworthy.dynamics.state import COMMAND_ROWS, Effects, input_layout, rigid_state_layout

ARGUMENTS = ("state", "inputs", "params", "param_table", "keys", "imu_log")
"""Array arguments of the kernel, in order; then the scalars below and the first block."""
SCALARS = ("stride", "dt", "substeps", "integrator", "level", "command_rows", "flags", "block_count")


def parameter_layout(rotor_count: int) -> Layout:
    """Rows of the kernel's parameter array: the vehicle's, then the controller's under the prefix `control_`."""
    control = {f"control_{name}": shape for name, shape in control_layout(rotor_count).fields.items()}
    return Layout({**rigid_layout(rotor_count).fields, **control})


BLOCKS_PER_TASK = 16
"""Blocks of 16 environments that one CPU task covers."""


def step_snippet(rotor_count: int) -> str:
    """Complete native source of the step for a padded number of rotors."""
    blocks = [
        *rigid_blocks(rigid_layout(rotor_count), rotor_count),
        *control_blocks(control_layout(rotor_count), rotor_count),
    ]
    text = step_source()
    for hook, part in control_native().items():
        text = text.replace(hook, part)
    text = text.replace("TRACED_BLOCKS", "".join(b.source for b in blocks) + advance_source())
    return "\n".join([shared_source("prelude.h"), _constants(rotor_count), shared_source("random.h"), text])


def _constants(rotor_count: int) -> str:
    layout = parameter_layout(rotor_count)
    values = {
        "ROTORS": rotor_count,
        "GROUP": BLOCKS_PER_TASK,
        "COMMAND_ROWS": COMMAND_ROWS,
        "CONTACT_POINTS": CONTACT_POINTS,
        "P_CONTROL_START": rigid_layout(rotor_count).size,
        **control_constants(),
        **{f"STREAM_{s.name}": int(s) for s in Stream},
        **{f"E_{e.name}": int(e) for e in Effects},
        **{f"INTEGRATOR_{name.upper()}": number for name, number in INTEGRATORS.items()},
    }
    enumerators = ", ".join(f"{name} = {number}" for name, number in values.items())
    layouts = [layout.c_enum("P"), rigid_state_layout(rotor_count).c_enum("S"), input_layout().c_enum("IN")]
    return "\n".join([f"enum {{ {enumerators} }};", *layouts])


@cache
def step_kernel(rotor_count: int) -> Any:
    """The Warp kernel for a padded number of rotors; compiled at first launch, then cached on disk."""
    wp = quiet_warp()

    @wp.func_native(step_snippet(rotor_count))
    def rigid_step(
        state: wp.array[wp.float32],
        inputs: wp.array[wp.float32],
        params: wp.array[wp.float32],
        param_table: wp.array[wp.int32],
        keys: wp.array[wp.uint32],
        imu_log: wp.array[wp.float32],
        stride: int,
        dt: float,
        substeps: int,
        integrator: int,
        level: int,
        command_rows: int,
        flags: int,
        block_count: int,
        task: int,
    ): ...

    def airworthy_step(
        state: wp.array[wp.float32],
        inputs: wp.array[wp.float32],
        params: wp.array[wp.float32],
        param_table: wp.array[wp.int32],
        keys: wp.array[wp.uint32],
        imu_log: wp.array[wp.float32],
        stride: int,
        dt: float,
        substeps: int,
        integrator: int,
        level: int,
        command_rows: int,
        flags: int,
        block_count: int,
        first: int,
    ):
        rigid_step(
            state,
            inputs,
            params,
            param_table,
            keys,
            imu_log,
            stride,
            dt,
            substeps,
            integrator,
            level,
            command_rows,
            flags,
            block_count,
            first + wp.tid(),
        )

    airworthy_step.__name__ = airworthy_step.__qualname__ = f"airworthy_step_{rotor_count}"
    return wp.kernel(airworthy_step, module="unique", module_options=MODULE_OPTIONS)
