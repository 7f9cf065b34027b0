"""Vehicles with joints in the simulator's step: the shape a kernel is built for, its rows, and its traced blocks."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from airworthy.core.arrays import Scalar, Vector
from airworthy.core.layout import Layout
from airworthy.core.tracing import TracedBlock, trace
from airworthy.core.vectors import quaternion_derivative
from airworthy.dynamics import equations as eq
from airworthy.dynamics.articulated import step
from airworthy.dynamics.articulated.contact_native import block_maker, contact_blocks, true_model
from airworthy.dynamics.articulated.native import with_motion
from airworthy.dynamics.articulated.steering import GAINS, ROWS, SHAPE_STEPS, shaped, whole_motion
from airworthy.dynamics.articulated.tree import TreeNumbers, TreeStructure
from airworthy.dynamics.rigid import jointed_step_source
from airworthy.dynamics.state import input_layout, rigid_layout, rigid_state_layout

__all__ = [
    "JointedShape",
    "believed_layout",
    "jointed_blocks",
    "jointed_constants",
    "jointed_input_layout",
    "jointed_layout",
    "jointed_source",
    "jointed_state_layout",
]


@dataclass(frozen=True)
class JointedShape:
    """What a kernel of flights is built for."""

    structure: TreeStructure
    sensing: int = 0
    """Number of the body that carries the inertial sensor."""
    leaning: bool = False
    """Laws steer the frame in which hover is level, as far as joints turn it against the root."""

    carriers: tuple[int, ...] = (0,)
    """Bodies of the spheres that meet the ground."""

    @property
    def rotor_count(self) -> int:
        return self.structure.rotor_count


_OF_RIGID = (
    "rotor_count", "rotor_min", "rotor_max", "force_noise", "moment_noise", "disturbance_probability", "disturbance_ratio",
    "disturbance_force", "disturbance_torque", "wind", "gust", "gust_start", "gust_duration", "dryden_keep", "dryden_gain",
    "dryden_mix", "battery", "imu_rotation", "imu_position", "imu_noise", "imu_walk", "imu_limit",
)  # fmt: skip
"""Rows that mean the same as of the rigid family; the inertial sensor's in the canonical frame of its body."""


def jointed_layout(shape: JointedShape) -> Layout:
    """Return parameter rows of a vehicle."""
    structure = shape.structure
    rigid = rigid_layout(structure.rotor_count).fields
    return Layout(
        {
            "tree": (max(structure.row_count, 1),),  # numbers of the tree, as `JointTree.row_names` has them
            "joint_rate_max": (structure.joint_count,),  # of servos' targets [rad/s]
            **{name: rigid[name] for name in _OF_RIGID},
            "sphere": (len(shape.carriers), 4),  # place in its body's frame and radius [m]
            "contact_reach": (),  # farthest that a sphere can be from the root's own centre of mass [m]
            "ground_height": (),
            "friction": (),
            "restitution": (),
            "limit": (4,),  # distance from the origin, speed, body rate, joint rate beyond which a flight counts as diverged
        }
    )


def believed_layout(structure: TreeStructure) -> Layout:
    """Return parameter rows of what the controller believes of the joints, behind those of its laws."""
    rotors = structure.rotor_count
    return Layout(
        {
            "tree": (max(structure.row_count, 1),),
            "scale": (len(ROWS),),  # of the rows of the allocation; 0: left out
            "gains": (len(GAINS), 3),  # over the inertia [1/s^2, 1/s, ...]
            "measured": (),  # 1: allocation by the measured angles; 0: as at the start
            "inverse": (rotors, 6),  # as at the start
            "collective": (rotors,),
            "trim": (4,),  # as at the start
        }
    )


def jointed_state_layout(shape: JointedShape) -> Layout:
    """Return state rows: those of the rigid family, of the root, and the joints'."""
    joints = shape.structure.joint_count
    fields: dict[str, tuple[int, ...]] = {}
    for name, size in rigid_state_layout(shape.rotor_count).fields.items():
        fields[name] = size
        if name == "rotor_speed":
            fields["joint"] = (joints,)  # [rad]
            fields["joint_rate"] = (joints,)  # [rad/s]
    fields["joint_torque"] = (joints,)  # that acted in the last step [N m]
    fields["stop"] = ()  # share of the last launch's steps after which a joint pressed into a stop
    fields["center"] = (3,)  # centre of mass of the whole, world [m]
    fields["center_velocity"] = (3,)  # world [m/s]
    fields["launch_joint"] = (joints,)  # of an unfinished launch: angles that allocation was last found at [rad]
    return Layout(fields)


def jointed_input_layout(shape: JointedShape) -> Layout:
    """Return input rows: those of all families, and the joints' targets."""
    joints = shape.structure.joint_count
    own = {
        "joint_target": (joints,),  # angle of a spring [rad], rate of a servo [rad/s], torque [N m]
        "joint_angle": (joints,),  # that a servo is to hold [rad]
        "joint_gain": (joints,),  # at which it does [1/s]; 0: none is held
    }
    return Layout({**input_layout().fields, **own})


def jointed_blocks(shape: JointedShape, parameters: Layout) -> list[TracedBlock]:
    """Return the traced blocks of motion, sensing and steering; those of the control laws are the control room's.

    Args:
        shape: Of the vehicles.
        parameters: All rows: the vehicle's, the laws' (`control_`) and what they believe (`believed_`).
    """
    structure = shape.structure
    joints, rotors = structure.joint_count, structure.rotor_count

    block, true = block_maker(parameters), true_model(structure)

    def believed(p: Any) -> Any:
        return structure.model(lambda row: p.believed_tree[row])

    moving: dict[str, int | None] = {"rate": 3, "q": joints, "qd": joints}
    pose: dict[str, int | None] = {"position": 3, "velocity": 3, "attitude": 4, **moving}
    motion: dict[str, int | None] = {
        "attitude": 4, **moving, "law_q": joints, "law_qd": joints, "rotor": rotors, "command": rotors, "target": joints,
        "force": 3, "moment": 3, "velocity": 3, "air": 3, "h": None, "stop_h": None,
    }  # fmt: skip
    found: dict[str, int | None] = {
        "dv": 3, "dw": 3, "qdd": joints, "torque": joints, "specific": 3, "sensed": 3, "sensed_turn": 3,
    }  # fmt: skip
    keeps: dict[str, int | None] = {"keep_rise": rotors, "keep_fall": rotors}
    whole: dict[str, int | None] = {"center": 3, "drift": 3}
    steering: dict[str, int | None] = {
        "inertia": 6, "inverse": 6 * rotors, "collective": rotors, "gains": 3 * len(GAINS), "trim": 4,
    }  # fmt: skip
    asked: dict[str, int | None] = {"q": joints, "target": joints, "angle": joints, "gain": joints}
    return [
        block(lambda p, **given: step.evaluate(structure, true(p), **given, sensing=shape.sensing), "evaluate", motion, found),
        block(lambda p, dt: step.rotor_keep(true(p), dt), "rotor_keep", {"dt": None}, keeps),
        block(
            lambda p, **given: step.rotor_step(true(p), **given),
            "rotor_step",
            {"rotor": rotors, "command": rotors, **keeps, "dt": None},
            {"half": rotors, "whole": rotors},
        ),
        block(lambda p, q: step.on_stops(structure, true(p), q), "on_stops", {"q": joints}, {"count": None}),
        trace(lambda q: step.wrapped(structure, q), "wrapped", {"q": joints}, {"out": joints}),
        trace(step.turned, "turned", {"attitude": 4, "rate": 3, "dt": None}, {"out": 4}),
        trace(quaternion_derivative, "attitude_slope", {"q": 4, "rate": 3}, {"out": 4}),
        trace(eq.normalize, "normalize", {"attitude": 4}, {"out": 4}),
        block(
            lambda p, **given: step.joint_aim(structure, rate_max=p.joint_rate_max, **given),
            "joint_aim",
            asked,
            {"out": joints},
        ),
        block(
            lambda p, **given: step.sensed_rate(structure, true(p), **given, sensing=shape.sensing),
            "sensed_rate",
            moving,
            {"out": 3},
        ),
        block(lambda p, **given: whole_motion(structure, true(p), **given), "whole_motion", pose, whole),
        block(lambda p, **given: whole_motion(structure, believed(p), **given), "believed_motion", pose, whole),
        block(lambda p, q: shaped(structure, believed(p), q, p, shape.leaning), "shaped", {"q": joints}, steering),
        block(
            lambda p, speed, ceiling: eq.clip_rotors(speed, p.rotor_min, p.rotor_max, ceiling),
            "clip_rotors",
            {"speed": rotors, "ceiling": None},
            {"out": rotors},
        ),
        block(
            lambda p, **given: eq.accelerometer(**given, rotation=p.imu_rotation, position=p.imu_position),
            "accelerometer",
            {"specific": 3, "body_rate": 3, "rate_dot": 3},
            {"out": 3},
        ),
        block(lambda p, body_rate: eq.into_sensor(body_rate, p.imu_rotation), "gyroscope", {"body_rate": 3}, {"out": 3}),
        block(
            lambda p, **given: battery_step(true(p), p.battery, **given),
            "battery",
            {"charge": None, "rotor_speed": rotors, "dt": None},
            {"used": None, "ratio": None},
        ),
        *contact_blocks(shape, block, true),
        block(eq.wind_velocity, "wind", {"time": None, "turbulence": 3}, {"out": 3}),
        block(eq.dryden_step, "dryden", {"state": 5, "noise": 3}, {"next": 5, "velocity": 3}),
    ]


def battery_step(model: TreeNumbers, battery: Vector, charge: Scalar, rotor_speed: Vector, dt: Scalar) -> tuple[Scalar, Scalar]:
    """Return the charge used [A s] after a step, and voltage over nominal; see `dynamics.equations.battery_step`.

    Args:
        model: Numbers of the tree, of which the rotors' torques draw the power.
        battery: As in its row.
        charge: Used before the step [A s].
        rotor_speed: Rotor states [rad/s].
        dt: Step [s].
    """
    p = SimpleNamespace(battery=battery, rotor_torque=tuple(item.torque for item in model.propellers))
    return eq.battery_step(charge, rotor_speed, dt, p)


def jointed_source() -> str:
    """Return the hand-written loop, with places for traced blocks and control."""
    rows, start = [], 0
    for name in GAINS:
        rows.append(f"for (int i = 0; i < 3; ++i) par_lanes[P_control_{name} + i] = whole_gains[{start} + i];")
        start += 3
    rows.append("for (int i = 0; i < 6; ++i) par_lanes[P_control_inertia + i] = whole_inertia[i];")
    text = jointed_step_source().replace("STEERED_ROWS", "\n        ".join(rows))
    text = text.replace(
        "struct T {\nTRACED_BLOCKS\n};", "MOTION_PARTS\nstruct T {\nTRACED_BLOCKS\nMOTION_MOVES\nCONTACT_PARTS\n};"
    )
    return with_motion(text, "aim", "wind", ", K + SENSED, K + TURN")


def jointed_constants(shape: JointedShape) -> dict[str, int]:
    """Return C enumerators of the loop beside those of all families."""
    joints = shape.structure.joint_count
    felt = 6 + 2 * joints
    return {
        "JOINTS": joints,
        "SHAPE_STEPS": SHAPE_STEPS,
        "STATES": 10 + shape.rotor_count + 2 * joints,
        "FELT_COUNT": 9,
        "SENSED": felt + 3,
        "TURN": felt + 6,
        "GAIN_ROWS": 3 * len(GAINS),
        "SPHERES": len(shape.carriers),
        "NU": 6 + joints,
        "LOWER": (6 + joints) * (5 + joints) // 2,
    }
