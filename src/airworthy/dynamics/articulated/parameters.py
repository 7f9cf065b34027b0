"""Rows of vehicles with joints: parameters, state and inputs of the native step, and what may be changed in them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.layout import Layout
from airworthy.core.ops import scalars_of
from airworthy.dynamics.articulated.tree import JointTree, TreeStructure, _names_of

__all__ = [
    "articulated_input_layout",
    "articulated_layout",
    "articulated_state_layout",
    "default_target",
    "shared_structure",
    "with_number",
]


def articulated_layout(structure: TreeStructure) -> Layout:
    """Return parameter rows: the tree's, in the order of `JointTree.row_names`."""
    return Layout({"tree": (max(structure.row_count, 1),)})


def articulated_state_layout(structure: TreeStructure) -> Layout:
    """Return state rows."""
    joints, rotors = structure.joint_count, structure.rotor_count
    return Layout(
        {
            "position": (3,),  # of the root's own centre of mass, world [m]
            "velocity": (3,),  # world [m/s]
            "attitude": (4,),  # x, y, z, w, root to world
            "rate": (3,),  # of the root, root axes [rad/s]
            "joint": (joints,),  # [rad]
            "joint_rate": (joints,),  # [rad/s]
            "rotor_speed": (rotors,),
            "position_residual": (3,),  # what float32 could not keep of the position [m]
            "joint_torque": (joints,),  # that acted in the last step [N m]
            "acceleration": (3,),  # specific force of the root at the start of the last step, root axes [m/s^2]
            "stop": (),  # share of the last launch's steps after which a joint pressed into a stop
        }
    )


def articulated_input_layout(structure: TreeStructure) -> Layout:
    """Return input rows."""
    return Layout(
        {
            "command": (structure.rotor_count,),
            "joint_target": (structure.joint_count,),
            "force": (3,),  # external, on the root's own centre of mass, world [N]
            "moment": (3,),  # external, on the root, root axes [N m]
        }
    )


def default_target(tree: JointTree) -> Array:
    """Return the targets that hold where none are given: a spring's rest, no rate, no torque; (joints,)."""
    pairs = zip(tree.structure.laws, tree.model.hinges, strict=True)
    return np.array([float(hinge.rest) if law == "spring" else 0.0 for law, hinge in pairs])


def shared_structure(trees: Sequence[JointTree], names: Sequence[str]) -> TreeStructure:
    """Return the structure of a batch, whose vehicles must all have the same.

    Args:
        trees: One per environment.
        names: Of their vehicles.

    Raises:
        AirworthyError: Two differ; the sentence names them.
    """
    first = trees[0].structure
    for tree, name in zip(trees, names, strict=True):
        if tree.structure is not first and tree.structure != first:
            raise AirworthyError(
                f"{names[0]!r} and {name!r} have different joints, links or structural zeros, so they cannot share a batch:"
                " simulate them in batches of their own."
            )
    return first


def with_number(tree: JointTree, rows: Array, name: str, value: float | Array) -> Array:
    """Return parameter rows (rows, env) with one number of the tree changed.

    Args:
        tree: What the rows are of.
        rows: (rows, env); they are not changed.
        name: As in `JointTree.row_names`, e.g. "bodies[2].mass".
        value: One for all environments, or (env,).

    Raises:
        AirworthyError: No such number, or one that is structure: zero, or a direction along an axis.
    """
    if name in tree.row_names:
        changed = rows.copy()
        changed[tree.row_names.index(name)] = value
        return changed
    names = _names_of(tree.structure.template, "")
    if name not in names:
        raise unknown_name("number of the tree", name, names)
    fixed = scalars_of(tree.structure.template)[names.index(name)]
    raise AirworthyError(
        f"{name} is {fixed:g} by the structure of this vehicle, which a batch shares and randomisation cannot change: give the"
        " record a value that is not zero, or change another number."
    )
