"""Vehicles with joints in the simulator: their shape, rows of a flight, what controllers believe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from airworthy.control.collective import irregular
from airworthy.control.kernel import TRIMMED_LEVELS, control_column, control_layout
from airworthy.control.spare_rotors import spare_shapes
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import to_matrix
from airworthy.core.layout import Layout
from airworthy.dynamics.articulated.flight import JointedShape, believed_layout
from airworthy.dynamics.articulated.parameters import shared_structure
from airworthy.dynamics.articulated.spheres import sphere_reach
from airworthy.dynamics.articulated.steering import GAINS, ROWS
from airworthy.dynamics.articulated.stiffness import check_step
from airworthy.dynamics.state import Effects, battery_row, rigid_layout
from airworthy.simulation.config import ROLLING, SimulatorConfig
from airworthy.simulation.jointed.joints import flight_angles, sensing_body, spheres_for, tree_for
from airworthy.simulation.parameters import control_effects, outer_effects, put_imu, put_wind, rigid_column
from airworthy.simulation.stability import check_law
from airworthy.vehicles import control_effectiveness, upright
from airworthy.vehicles.links import frozen, rotation_matrix
from airworthy.vehicles.record import Vehicle

__all__ = ["held", "jointed_column", "jointed_control", "jointed_effects", "jointed_shape", "root_below"]

RATE_MARGIN = 10.0
"""A joint faster than this many times the bound of its targets has diverged."""
RATE_LIMIT = 1e3
"""Of joints without such a bound [rad/s]."""
_INTEGRATORS = ("semi_implicit", "midpoint", "extrapolated", "rk4")


def held(vehicle: Vehicle, config: SimulatorConfig) -> Vehicle:
    """Return the rigid vehicle that one with joints is at the angles its flights start from."""
    return frozen(vehicle, flight_angles(vehicle, config))


def root_below(vehicle: Vehicle, config: SimulatorConfig, center: Array, attitude: Array) -> Array:
    """Return where the root's own centre of mass is when that of the whole is at a place, joints as a flight starts [m], (3,).

    Args:
        vehicle: With joints.
        config: Of the simulator.
        center: Of the whole, world [m], (3,).
        attitude: Of the root, x, y, z, w.
    """
    offset = np.asarray(held(vehicle, config).center_of_mass) - np.asarray(vehicle.links[0].center_of_mass)
    return np.asarray(center - to_matrix(np.asarray(attitude)) @ offset)


def jointed_shape(vehicles: Sequence[Vehicle], config: SimulatorConfig) -> JointedShape:
    """Return what a kernel for a batch is built for.

    Args:
        vehicles: One per environment.
        config: Of the simulator.

    Raises:
        AirworthyError: Some are rigid, two have different trees, or something is asked for that is not simulated with joints.
    """
    _refuse_unknown(config, any(any(link.drag) for item in vehicles for link in item.links))
    distinct = list({id(item): item for item in vehicles}.values())
    for item in distinct:
        if not item.links:
            raise AirworthyError(
                f"{item.name!r} has no joints, and the family 'articulated' flies vehicles with joints: set dynamics='rigid'."
            )
    trees = [tree_for(item) for item in distinct]
    structure = shared_structure(trees, [item.name for item in distinct])
    for tree, item in zip(trees, distinct, strict=True):
        check_step(tree, 1.0 / config.physics_rate, config.integrator, item.name)
        if config.battery and item.battery is not None and item.motor_state == "thrust":
            raise AirworthyError(
                f"The battery of {item.name!r} cannot be simulated, since the state of its rotors is a thrust, of which no"
                ' power follows: give it motor_state = "speed" and coefficients of speed, or leave config.battery out.'
            )
    sensing = 0 if config.imu is None else sensing_body(trees[0], config.imu.link)
    spheres = [tuple(body for body, _ in spheres_for(item)) for item in distinct]
    for found, item in zip(spheres, distinct, strict=True):
        if found != spheres[0]:
            raise AirworthyError(
                f"{distinct[0].name!r} and {item.name!r} meet the ground with other spheres, so they cannot share a batch:"
                " simulate them in batches of their own."
            )
    return JointedShape(structure, sensing, config.level in TRIMMED_LEVELS, spheres[0])


def _refuse_unknown(config: SimulatorConfig, drag: bool) -> None:
    if config.integrator not in _INTEGRATORS:
        raise AirworthyError(
            f"The integrator {config.integrator!r} is not there for vehicles with joints; choose {', '.join(_INTEGRATORS)}."
        )
    asked = {
        "ground effect": config.ground_effect != 0.0,
        "downwash": config.downwash is not None,
        "wind without drag of links": not drag and (config.wind.blows or config.randomization.wind != 0.0),
        "resistance to rolling": any(k is not None and k.rolling != ROLLING for k in (config.ground, config.contact)),
        "the firmware's mixer": config.level == "tracking:crazyflie",
    }
    for what, there in asked.items():
        if there:
            raise AirworthyError(f"{what[0].upper()}{what[1:]} is not simulated for vehicles with joints: leave it out.")


def jointed_column(item: Vehicle, config: SimulatorConfig, layout: Layout, shape: JointedShape) -> Array:
    """Return the vehicle's part of a parameter column, length of the layout, the rest zero.

    Args:
        item: The vehicle.
        config: Of the simulator.
        layout: Of all parameter rows.
        shape: Of the batch.
    """
    column, tree = np.zeros(layout.size), tree_for(item)
    put, dt = layout.writer(column), 1.0 / config.physics_rate
    if tree.values:
        put("tree", tree.values)
    joints = [link.joint for link in item.links if link.joint is not None]
    bounds = [joint.rate_max for joint in joints]
    put("joint_rate_max", [RATE_LIMIT if bound is None else bound for bound in bounds])
    given = [bound for bound in bounds if bound is not None]
    put("limit", (1e5, 1e3, 1e3, RATE_MARGIN * max(given) if given else RATE_LIMIT))
    put("rotor_count", item.rotor_count)
    put("battery", battery_row(item))
    put("rotor_min", [rotor.speed_min for rotor in item.rotors])
    put("rotor_max", [rotor.speed_max for rotor in item.rotors])
    put("force_noise", np.sqrt(np.asarray(item.wrench_noise.force) / dt))
    put("moment_noise", np.sqrt(np.asarray(item.wrench_noise.moment) / dt))
    put("disturbance_probability", item.disturbance.probability)
    put("disturbance_ratio", item.disturbance.rate / config.physics_rate)
    put("disturbance_force", item.disturbance.force_max)
    put("disturbance_torque", item.disturbance.torque_max)
    put_wind(column, layout, config.wind, dt)
    put("sphere", [sphere for _, sphere in spheres_for(item)])
    put("contact_reach", sphere_reach(tree, spheres_for(item)))
    if config.ground is not None:
        put("ground_height", config.ground.height)
        put("friction", config.ground.friction)
        put("restitution", config.ground.restitution)
    put("imu_rotation", np.eye(3))
    put("imu_limit", (np.inf, np.inf))
    if config.imu is not None:
        put_imu(column, layout, config.imu, np.zeros(3), config.physics_rate)
        # From the link's frame, in which a mount is given, to the canonical one, in which the body moves.
        frame, origin = tree.frames[shape.sensing], tree.origins[shape.sensing]
        put("imu_rotation", frame.T @ rotation_matrix(config.imu.mounting()))
        put("imu_position", frame.T @ (np.asarray(config.imu.position) - origin))
    return column


def jointed_control(
    column: Array, item: Vehicle, belief: Vehicle, config: SimulatorConfig, layout: Layout, shape: JointedShape
) -> None:
    """Fill the controller's part of a parameter column: gains found at the angles that flights start from, and the believed
    tree, by which allocation, inertia and centre of mass follow the joints.

    Args:
        column: To be filled.
        item: The vehicle.
        belief: What the controller takes it for.
        config: Of the simulator.
        layout: Of all parameter rows.
        shape: Of the batch.

    Raises:
        AirworthyError: The belief has another tree, or gains do not fit.
    """
    tree = tree_for(belief)
    shared_structure([tree_for(item), tree], [item.name, belief.name])
    rigid, n, start = held(belief, config), shape.rotor_count, layout.offsets["control_mass"]
    law = control_column(rigid, config.control, config.level, 1.0 / config.physics_rate, n)
    own = control_layout(n)
    _check_gains(law, item, config, n)
    believed, offset = believed_layout(shape.structure), layout.offsets["believed_tree"]
    values = np.zeros(believed.size)
    put = believed.writer(values)
    if tree.values:
        put("tree", tree.values)
    steered = upright(rigid) if shape.leaning else rigid
    put("trim", law[own.rows("trim")])
    inertia = np.array(steered.inertia[:3])
    put("gains", [law[own.rows(name)] / inertia for name in GAINS])
    measured = config.control.joint_allocation == "measured"
    put("measured", measured)
    put("inverse", law[own.rows("inverse")])
    put("collective", law[own.rows("collective")])
    put("scale", _row_scale(law[own.rows("inverse")].reshape(n, 6), steered))
    if measured and spare_shapes(n):
        # What is known of rotors to spare is of one shape: of a changing one, thrusts keep the proportions of the inverse.
        law[own.rows("spare_scale")] = 0.0
    column[start : start + law.size] = law
    column[offset : offset + believed.size] = values


def _row_scale(inverse: Array, steered: Vehicle) -> Array:
    """One over the length of the rows of the effectiveness; 0 for a row that allocation leaves out."""
    length = np.linalg.norm(control_effectiveness(steered)[list(ROWS)], axis=1)
    used = np.abs(inverse[:, list(ROWS)]).max(axis=0) > 0.0
    return np.where(used & (length > 1e-9), 1.0 / np.where(length > 1e-9, length, 1.0), 0.0)


def _check_gains(law: Array, item: Vehicle, config: SimulatorConfig, rotor_count: int) -> None:
    """Refuse gains that the physics rate makes unstable, as of the rigid vehicle that this one is with its joints held."""
    vehicle = rigid_layout(rotor_count)
    control = {f"control_{name}": size for name, size in control_layout(rotor_count).fields.items()}
    layout = Layout({**vehicle.fields, **control})
    alike = replace(config, dynamics="rigid", integrator="rk4", exact_rotors=True, imu=None, joint_angles=())
    column = rigid_column(held(item, config), alike, layout, rotor_count)
    column[vehicle.size :] = law
    check_law(column, layout, alike, item)


def jointed_effects(rows: Array, layout: Layout, config: SimulatorConfig) -> Effects:
    """Return the effects that a batch needs.

    Args:
        rows: Parameter rows (rows, env).
        layout: Of them.
        config: Of the simulator.
    """
    effects = Effects(0)

    def any_of(*names: str) -> bool:
        return any(bool(np.any(rows[layout.rows(name)] != 0.0)) for name in names)

    effects |= outer_effects(config, any_of) | control_effects(config)
    if config.ground is not None:
        effects |= Effects.GROUND
    if config.battery:
        effects |= Effects.BATTERY
    # A shape that changes may be irregular at any moment.
    if config.control.allocation != "pseudo_inverse":
        vectors = (rows[layout.rows(f"control_{name}")] for name in ("collective", "thrust_min", "thrust_max_rotor"))
        if any_of("believed_measured") or bool(np.any(irregular(*map(tuple, vectors)))):
            effects |= Effects.IRREGULAR
    return effects | (Effects.LEANING if config.level in TRIMMED_LEVELS else Effects(0))
