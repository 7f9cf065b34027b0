"""Contact of vehicles with joints as native code: its traced blocks, and the kernel's text of contact with scenes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from airworthy.core.layout import Layout
from airworthy.core.tracing import TracedBlock, trace
from airworthy.dynamics import equations as eq
from airworthy.dynamics.articulated import contact, step
from airworthy.dynamics.articulated.impacts import whole_weight
from airworthy.dynamics.articulated.native import APART
from airworthy.dynamics.articulated.steering import whole_motion
from airworthy.dynamics.articulated.tree import TreeStructure
from airworthy.dynamics.contact import ground_frame
from airworthy.dynamics.rigid import CONTEXT, native_sections, native_text

if TYPE_CHECKING:
    from airworthy.dynamics.articulated.flight import JointedShape

__all__ = ["block_maker", "contact_blocks", "contact_source", "jointed_scene_source", "true_model"]

Lengths = Mapping[str, int | None]
BlockMaker = Callable[[Any, str, Lengths, Lengths], TracedBlock]


def block_maker(parameters: Layout) -> BlockMaker:
    """Return what traces a function of parameter rows `p` into a block.

    Args:
        parameters: All rows.
    """

    def block(function: Any, name: str, inputs: Lengths, outputs: Lengths) -> TracedBlock:
        return trace(function, name, inputs, outputs, {"p": (parameters, "PAR")}, None, CONTEXT)

    return block


def true_model(structure: TreeStructure) -> Callable[[Any], Any]:
    """Return what finds the numbers of the tree in parameter rows `p`.

    Args:
        structure: Of the tree.
    """
    return lambda p: structure.model(lambda row: p.tree[row])


def contact_blocks(shape: JointedShape, block: Any, true: Any) -> list[TracedBlock]:
    """Return the traced blocks that `native/jointed_contact.h` calls.

    Args:
        shape: Of the vehicles.
        block: Of `block_maker`.
        true: Of `true_model`.
    """
    structure, n = shape.structure, shape.structure.joint_count
    size, spheres = 6 + n, len(shape.carriers)
    tree: dict[str, int | None] = {"axes": 3 * n, "places": 3 * n}
    factors: dict[str, int | None] = {"lower": size * (size - 1) // 2, "pivots": size}

    return [
        block(
            lambda p, q: contact.contact_tree(structure, true(p), q, p.sphere, shape.carriers),
            "contact_tree",
            {"q": n},
            {**factors, "at": 3 * spheres, **tree},
        ),
        trace(
            contact.response,
            "response",
            {"place": 3, "direction": 3, "carried": n, **tree, **factors},
            {"row": size, "found": size, "stiff": None},
        ),
        trace(contact.point_velocity, "point_velocity", {"place": 3, "carried": n, **tree, "u": size}, {"out": 3}),
        trace(contact.sliding, "sliding", {"velocity": 3, "up": 3}, {"direction": 3, "speed": None}),
        block(
            lambda p, **given: contact.rebound(**given, restitution=p.restitution),
            "rebound",
            {"approach": None, "gained": None, "spent": None},
            {"share": None},
        ),
        block(
            lambda p, **given: contact.friction_push(**given, friction=p.friction),
            "friction_push",
            {"push": None, "slide": None, "stiff": None},
            {"out": None},
        ),
        block(
            lambda p, **given: contact.lift(**given, weight=whole_weight(true(p))),
            "contact_lift",
            {"deepest": None, "lost": None, "uphill": None},
            {"out": None},
        ),
        block(
            lambda p, **given: contact.sensed_change(structure, true(p), **given, sensing=shape.sensing),
            "sensed_change",
            {"q": n, "change": size, "dt": None},
            {"specific": 3, "turn": 3},
        ),
        trace(ground_frame, "ground_frame", {"velocity": 3, "attitude": 4}, {"up": 3, "out": 3}),
        trace(step.to_root, "into_root", {"attitude": 4, "vector": 3}, {"out": 3}),
        trace(step.to_world, "from_root", {"attitude": 4, "vector": 3}, {"out": 3}),
    ]


def contact_source(shape: JointedShape) -> str:
    """Return the native text of contact, which calls the traced blocks."""
    marks = (contact.carried(shape.structure, body) for body in shape.carriers)
    table = ", ".join("{" + ", ".join("true" if mark else "false" for mark in row) + "}" for row in marks)
    text = native_text("jointed_contact.h").replace("CARRIED", table)
    return text.replace("CONTACT_SWEEPS", str(contact.SWEEPS)).replace("CONTACT_BOUNCE", f"{contact.BOUNCE}f")


def jointed_scene_source(shape: JointedShape, parameters: Layout) -> str:
    """Return the native text of contact with scenes, without the enumerators of layouts.

    Args:
        shape: Of the vehicles.
        parameters: All rows.
    """
    structure, n = shape.structure, shape.structure.joint_count
    block, true = block_maker(parameters), true_model(shape.structure)
    pose: Lengths = {"position": 3, "velocity": 3, "attitude": 4, "rate": 3, "q": n, "qd": n}
    blocks = [
        *contact_blocks(shape, block, true),
        block(
            lambda p, **given: contact.sphere_offsets(structure, true(p), **given, spheres=p.sphere, carriers=shape.carriers),
            "sphere_offsets",
            {"attitude": 4, "q": n},
            {"out": 3 * len(shape.carriers)},
        ),
        block(lambda p, **given: whole_motion(structure, true(p), **given), "whole_motion", pose, {"center": 3, "drift": 3}),
        block(
            lambda p, **given: eq.accelerometer(**given, rotation=p.imu_rotation, position=p.imu_position),
            "accelerometer",
            {"specific": 3, "body_rate": 3, "rate_dot": 3},
            {"out": 3},
        ),
    ]
    parts = native_sections("articulated_motion.h")["MOTION_PARTS"]
    own = "".join(item.source for item in blocks) + contact_source(shape)
    text = native_text("jointed_scene.h").replace("BATCH_OPEN", native_text("batch_open.h"))
    text = text.replace("struct T {\nTRACED_BLOCKS\n};", f"{parts}\nstruct T {{\n{own}\n}};")
    return "#define PARAMETERS_CHANGE\nenum { MODE_PLACES, MODE_MEET };\n" + APART + text
