"""Vehicles with joints in learning: their form, a traced step of the articulated equations, and their parameter rows.

A state is position, velocity (world), attitude x y z w and body rate of the root, rotor states, joint angles, joint rates:
13 + rotors + 2 joints scalars. Steps are the semi-implicit ones of `airworthy.dynamics.articulated`, which the simulator takes
as `integrator="semi_implicit"`: a third of the others' cost, and stable however stiff joints are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, Scalar, Vector
from airworthy.core.errors import AirworthyError
from airworthy.core.layout import Layout
from airworthy.core.ops import maximum, minimum
from airworthy.core.vectors import add, scale
from airworthy.dynamics.articulated.joint_angles import start_angles
from airworthy.dynamics.articulated.parameters import default_target, shared_structure
from airworthy.dynamics.articulated.step import evaluate, rotor_keep, rotor_step, turned, within_limits, wrapped
from airworthy.dynamics.articulated.tree import TreeStructure
from airworthy.learning.gradient.dynamics import BODY
from airworthy.simulation.jointed.joints import spheres_for, tree_for
from airworthy.simulation.jointed.rows import RATE_LIMIT
from airworthy.vehicles import Vehicle

__all__ = ["JointedForm", "jointed_column", "jointed_form", "split_state"]

_NOTHING = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class JointedForm:
    """What is known of vehicles with joints when a kernel is built; as `Form` of rigid ones."""

    structure: TreeStructure
    spheres: tuple[tuple[int, tuple[float, float, float, float]], ...]
    """Of the links: body, place in its frame and radius [m], as they meet the ground; what tasks test against things with."""
    substeps: int = 1
    """Steps of the equations per step of physics that the task asks for: 1, since stiff joints are taken implicitly."""

    @property
    def rotor_count(self) -> int:
        return self.structure.rotor_count

    @property
    def joint_count(self) -> int:
        return self.structure.joint_count

    @property
    def state(self) -> int:
        """Rows of a state."""
        return BODY + self.rotor_count + 2 * self.joint_count

    @property
    def layout(self) -> Layout:
        """Of the parameter rows: numbers of the tree, bounds and rest of the joints, and of the rotors what tasks read."""
        n, joints = self.rotor_count, self.joint_count
        return Layout(
            {
                "tree": (max(self.structure.row_count, 1),),
                "gravity": (),
                "joint_rate_max": (joints,),  # of servos' targets [rad/s]
                "joint_target": (joints,),  # where no command says one: as `default_target`
                "joint_start": (joints,),  # angles that flights of the simulator start from [rad]
                "rotor_thrust": (n, 3),
                "rotor_min": (n,),
                "rotor_max": (n,),
            }
        )

    @property
    def needed(self) -> set[int]:
        """Rows that are kept whatever a task reads."""
        return set()

    def record(self, read: Callable[[int], Any]) -> SimpleNamespace:
        """Return the record that tasks and the step read: with `model`, the numbers of the tree.

        Args:
            read: Called with a row.
        """
        layout = self.layout
        record = layout.record(read)
        first = layout.offsets["tree"]
        record.model, record.structure = self.structure.model(lambda row: read(first + row)), self.structure
        record.spheres = self.spheres
        return record

    def step(self, state: Vector, command: Vector, p: Any, dt: float, wrench: tuple[Vector, Vector] | None) -> Vector:
        """Return the state after a semi-implicit step.

        Args:
            state: Before it.
            command: Rotor states, then a target for each joint, if the task commands joints.
            p: Parameters, of `record`.
            dt: Step [s].
            wrench: Force on the root (world) [N] and moment (root axes) [N m] from outside.
        """
        structure, model = self.structure, p.model
        position, velocity, attitude, rate, rotor, q, qd = split_state(state, self.rotor_count, self.joint_count)
        asked = within_limits(model, command[: self.rotor_count])
        whole = rotor_step(model, rotor, asked, *rotor_keep(model, dt), dt)[1]
        force, moment = wrench or (_NOTHING, _NOTHING)
        dv, dw, dqd, _, _ = evaluate(
            structure, model, attitude, rate, q, qd, q, qd, rotor, asked, self._target(command, p), force, moment, velocity,
            _NOTHING, dt, dt,
        )  # fmt: skip
        velocity, rate, qd = (add(x, scale(slope, dt)) for x, slope in ((velocity, dv), (rate, dw), (qd, dqd)))
        return (
            *add(position, scale(velocity, dt)),
            *velocity,
            *turned(attitude, rate, dt),
            *rate,
            *whole,
            *wrapped(structure, add(q, scale(qd, dt))),
            *qd,
        )

    def _target(self, command: Vector, p: Any) -> Vector:
        told = command[self.rotor_count :]
        if not told:
            return tuple(p.joint_target)
        return tuple(
            maximum(minimum(asked, most), -most) if law == "servo" else asked
            for law, asked, most in zip(self.structure.laws, told, p.joint_rate_max, strict=True)
        )


def split_state(state: Vector, rotors: int, joints: int) -> tuple[Vector, ...]:
    """Return position, velocity, attitude, body rate, rotor states, joint angles and joint rates of a state.

    Args:
        state: 13 + rotors + 2 joints scalars.
        rotors: How many.
        joints: How many.
    """
    ends = (3, 6, 10, BODY, BODY + rotors, BODY + rotors + joints, BODY + rotors + 2 * joints)
    return tuple(tuple(state[a:b]) for a, b in zip((0, *ends[:-1]), ends, strict=True))


@lru_cache(maxsize=64)
def _column(vehicle: Vehicle) -> Array:
    tree = tree_for(vehicle)
    form = JointedForm(tree.structure, spheres_for(vehicle))
    column = np.zeros(form.layout.size)
    put = form.layout.writer(column)
    if tree.values:
        put("tree", tree.values)
    bounds = [link.joint.rate_max for link in vehicle.links if link.joint is not None]
    put("gravity", vehicle.gravity)
    put("joint_rate_max", [RATE_LIMIT if bound is None else bound for bound in bounds])
    put("joint_target", default_target(tree))
    put("joint_start", start_angles(vehicle))
    put("rotor_thrust", [rotor.thrust for rotor in vehicle.rotors])
    put("rotor_min", [rotor.speed_min for rotor in vehicle.rotors])
    put("rotor_max", [rotor.speed_max for rotor in vehicle.rotors])
    return column


def jointed_column(vehicle: Vehicle) -> Array:
    """Return the parameter rows of a vehicle with joints as it is recorded, (rows,)."""
    return _column(vehicle).copy()


def jointed_form(vehicles: Sequence[Vehicle]) -> JointedForm:
    """Return the form of vehicles with joints.

    Args:
        vehicles: All with the same tree.

    Raises:
        AirworthyError: Some are rigid, fixed to the ground, or two have different trees.
    """
    for item in vehicles:
        if not item.links:
            raise AirworthyError(f"{item.name!r} has no joints, which the task moves: name a vehicle with joints.")
        if item.fixed_base:
            raise AirworthyError(f"{item.name!r} is fixed to the ground: no task flies it.")
    structure = shared_structure([tree_for(item) for item in vehicles], [item.name for item in vehicles])
    spheres = {spheres_for(item) for item in vehicles}
    if len(spheres) > 1:
        raise AirworthyError("Vehicles with links of different sizes cannot share a batch: fly them apart.")
    return JointedForm(structure, spheres.pop())


def equal_share(vehicle: Vehicle) -> Array:
    """Return rotor states whose thrusts are equal shares of the weight, (rotors,).

    Of a vehicle whose rotors hang on joints hover depends on its shape; this is where policies begin.

    Args:
        vehicle: With joints.

    Raises:
        AirworthyError: Its rotors cannot lift it.
    """
    share = vehicle.mass * vehicle.gravity / vehicle.rotor_count
    states = []
    for rotor in vehicle.rotors:
        c0, c1, c2 = rotor.thrust
        root: Scalar = np.sqrt(max(c1 * c1 + 4.0 * c2 * (share - c0), 0.0))
        states.append(2.0 * (share - c0) / (c1 + root) if c1 > 0.0 else (root - c1) / (2.0 * c2))
        if states[-1] > rotor.speed_max:
            raise AirworthyError(f"{vehicle.name!r} cannot hover: a rotor's share of its weight, {share:.3g} N, is beyond it.")
    return np.array(states)
