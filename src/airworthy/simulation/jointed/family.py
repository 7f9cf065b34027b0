"""The family of vehicles with joints: its rows and kernel, as the simulator asks for them."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from typing import Any

from airworthy.control.kernel import LEVELS, control_blocks, control_layout, control_native
from airworthy.core.layout import Layout
from airworthy.dynamics.articulated.contact_native import contact_source
from airworthy.dynamics.articulated.flight import (
    JointedShape,
    believed_layout,
    jointed_blocks,
    jointed_constants,
    jointed_input_layout,
    jointed_layout,
    jointed_source,
    jointed_state_layout,
)
from airworthy.dynamics.articulated.native import joined_blocks
from airworthy.simulation.family import DynamicsFamily, Specialization, assembled, specialized, with_control
from airworthy.simulation.jointed.rows import held, jointed_column, jointed_control, jointed_effects, jointed_shape

__all__ = ["JOINTED", "jointed_kernel", "jointed_parameter_layout", "jointed_snippet"]


def jointed_parameter_layout(shape: JointedShape) -> Layout:
    """Return rows of the articulated family's parameters: the vehicle's, the controller's under the prefix `control_`, and what
    that believes of the joints under the prefix `believed_`."""
    believed = {f"believed_{name}": size for name, size in believed_layout(shape.structure).fields.items()}
    return Layout({**with_control(jointed_layout(shape), shape.rotor_count).fields, **believed})


def jointed_snippet(shape: JointedShape, irregular: bool = False) -> str:
    """Complete native source of the articulated step; for its arguments see `step_kernel`."""
    layout, rotors = jointed_parameter_layout(shape), shape.rotor_count
    blocks = [*jointed_blocks(shape, layout), *control_blocks(control_layout(rotors), rotors, irregular)]
    text = jointed_source()
    for hook, part in control_native().items():
        text = text.replace(hook, part)
    text = text.replace("TRACED_BLOCKS", joined_blocks(blocks)).replace("CONTACT_PARTS", contact_source(shape))
    start = jointed_layout(shape).size
    constants = {"ROTORS": rotors, "P_CONTROL_START": start, **jointed_constants(shape)}
    return assembled(text, constants, layout, jointed_state_layout(shape), jointed_input_layout(shape))


@cache
def jointed_kernel(shape: JointedShape, only: Specialization | None = None, irregular: bool = False) -> Any:
    """Return the articulated family's Warp kernel.

    Args:
        shape: Tree, the body that senses, and whether laws steer a leaning frame.
        only: As of `step_kernel`.
        irregular: As of `step_kernel`.
    """
    source = jointed_snippet(shape, irregular)
    # Trees have no short names of their own.
    mark = sha256(source.encode()).hexdigest()[:10]
    name = f"articulated_flight_{shape.structure.joint_count}_{shape.rotor_count}_{mark}"
    return specialized(name, source, only)


JOINTED = DynamicsFamily(
    "articulated",
    jointed_state_layout,
    jointed_parameter_layout,
    jointed_kernel,
    jointed_column,
    jointed_effects,
    tuple(level for level in LEVELS if level != "tracking:crazyflie"),
    jointed_shape,
    jointed_input_layout,
    jointed_control,
    held,
)
"""As the simulator flies it."""
