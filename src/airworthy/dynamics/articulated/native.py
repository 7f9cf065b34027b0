"""The native articulated step: one kernel per structure, made of the traced equations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from typing import Any

from airworthy.core.native_kernel import native_kernel, shared_source
from airworthy.core.tracing import TracedBlock, trace
from airworthy.core.vectors import quaternion_derivative
from airworthy.dynamics.articulated import step
from airworthy.dynamics.articulated.parameters import (
    articulated_input_layout,
    articulated_layout,
    articulated_state_layout,
)
from airworthy.dynamics.articulated.step import INTEGRATORS
from airworthy.dynamics.articulated.tree import TreeStructure
from airworthy.dynamics.equations import normalize
from airworthy.dynamics.rigid import CONTEXT, native_sections, native_text

__all__ = ["articulated_blocks", "articulated_kernel", "articulated_snippet"]

BLOCKS_PER_TASK = 16
"""Blocks of 16 environments that one CPU task covers."""

ARGUMENTS = """
    params: float32[]
    inputs: float32[]
    # written
    state: float32[]
    stride: int
    each: int  # whether every environment has parameters of its own
    dt: float
    substeps: int
    integrator: int
    stages: int  # its evaluations
    block_count: int
"""


def articulated_blocks(structure: TreeStructure) -> list[TracedBlock]:
    """Return the traced blocks that the native loop calls."""
    joints, rotors = structure.joint_count, structure.rotor_count
    layout = articulated_layout(structure)

    def block(
        function: Any, name: str, inputs: Mapping[str, int | None], outputs: Mapping[str, int | None], tree: bool = False
    ) -> TracedBlock:
        def traced(p: Any, **given: Any) -> Any:
            model = structure.model(lambda row: p.tree[row])
            return function(structure, model, **given) if tree else function(model, **given)

        return trace(traced, name, inputs, outputs, {"p": (layout, "PAR")}, None, CONTEXT)

    motion: dict[str, int | None] = {
        "attitude": 4, "rate": 3, "q": joints, "qd": joints, "law_q": joints, "law_qd": joints, "rotor": rotors,
        "command": rotors, "target": joints, "force": 3, "moment": 3, "velocity": 3, "air": 3, "h": None, "stop_h": None,
    }  # fmt: skip
    found: dict[str, int | None] = {"dv": 3, "dw": 3, "qdd": joints, "torque": joints, "specific": 3}
    keeps: dict[str, int | None] = {"keep_rise": rotors, "keep_fall": rotors}
    return [
        block(step.evaluate, "evaluate", motion, found, tree=True),
        block(step.rotor_keep, "rotor_keep", {"dt": None}, keeps),
        block(
            step.rotor_step,
            "rotor_step",
            {"rotor": rotors, "command": rotors, **keeps, "dt": None},
            {"half": rotors, "whole": rotors},
        ),
        block(step.within_limits, "within_limits", {"command": rotors}, {"out": rotors}),
        block(step.on_stops, "on_stops", {"q": joints}, {"count": None}, tree=True),
        trace(lambda q: step.wrapped(structure, q), "wrapped", {"q": joints}, {"out": joints}),
        trace(step.turned, "turned", {"attitude": 4, "rate": 3, "dt": None}, {"out": 4}),
        trace(quaternion_derivative, "attitude_slope", {"q": 4, "rate": 3}, {"out": 4}),
        trace(normalize, "normalize", {"attitude": 4}, {"out": 4}),
    ]


def articulated_snippet(structure: TreeStructure) -> str:
    """Return the complete native source of the step; its arguments are `ARGUMENTS`."""
    blocks = joined_blocks(articulated_blocks(structure))
    text = with_motion(native_text("articulated_step.cpp"), "target", "still", "").replace("TRACED_BLOCKS", blocks)
    values = {"FELT_COUNT": 3, "JOINTS": structure.joint_count, "ROTORS": structure.rotor_count, "GROUP": BLOCKS_PER_TASK}
    values |= {f"INTEGRATOR_{name.upper()}": number for name, number in INTEGRATORS.items()}
    enumerators = ", ".join(f"{name} = {number}" for name, number in values.items())
    layouts = [
        articulated_layout(structure).c_enum("P"),
        articulated_state_layout(structure).c_enum("S"),
        articulated_input_layout(structure).c_enum("IN"),
    ]
    return "\n".join([shared_source("prelude.h"), f"enum {{ {enumerators} }};", *layouts, text])


def joined_blocks(blocks: list[TracedBlock]) -> str:
    """Return the text of traced blocks, on a CPU the largest as a function of its own: that compiles in half the time, and what
    a call costs is nothing beside thousands of operations."""
    text = "".join(block.source for block in blocks)
    return text.replace("static INLINE void evaluate(", "static APART void evaluate(")


APART = """
#if LANES == 1
#define APART INLINE
#else
#define APART __attribute__((noinline))
#endif
"""


def with_motion(text: str, aim: str, air: str, felt: str) -> str:
    """Return native text with the integrators put in.

    Args:
        text: Where they are to stand.
        aim: Its name of the joints' targets.
        air: Its name of the velocity of the air.
        felt: Arguments of the evaluation behind the usual ones.
    """
    for hook, part in native_sections("articulated_motion.h").items():
        text = text.replace(hook, part.replace("AIM", aim).replace("AIR", air).replace(" FELT_MORE", felt))
    return APART + text


@cache
def articulated_kernel(structure: TreeStructure) -> Any:
    """Return the Warp kernel of a structure; compiled at first launch, then cached on disk."""
    source = articulated_snippet(structure)
    name = f"articulated_{structure.joint_count}_{structure.rotor_count}_{sha256(source.encode()).hexdigest()[:10]}"
    return native_kernel(name, source, ARGUMENTS)
