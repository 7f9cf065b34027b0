"""Vehicles with joints in the simulator: their shape, rows of a flight, what controllers believe, how flights start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from airworthy.control.collective import irregular
from airworthy.control.kernel import TRIMMED_LEVELS, control_column, control_layout
from airworthy.control.spare_rotors import spare_shapes
from airworthy.core.arrays import Array, ArrayF32, ArrayFloat, ArrayIndex, ArrayLike, ArrayU32
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import from_matrix, multiply, rotate, to_matrix
from airworthy.core.layout import Layout
from airworthy.core.random import Stream, uniforms
from airworthy.dynamics.articulated.equations import kinematics, positions
from airworthy.dynamics.articulated.flight import JointedShape, believed_layout
from airworthy.dynamics.articulated.joint_angles import joint_angles, start_angles
from airworthy.dynamics.articulated.parameters import default_target, shared_structure
from airworthy.dynamics.articulated.spheres import contact_spheres, sphere_reach
from airworthy.dynamics.articulated.steering import GAINS, ROWS, whole_motion
from airworthy.dynamics.articulated.stiffness import check_step
from airworthy.dynamics.articulated.tree import JointTree, tree_of
from airworthy.dynamics.state import Effects, battery_row, rigid_layout
from airworthy.simulation.config import ROLLING, SimulatorConfig
from airworthy.simulation.parameters import control_effects, outer_effects, put_imu, put_wind, rigid_column
from airworthy.simulation.stability import check_law
from airworthy.vehicles import control_effectiveness, upright
from airworthy.vehicles.links import frozen, rotation_matrix
from airworthy.vehicles.record import Vehicle

__all__ = ["flight_angles", "held", "jointed_column", "jointed_control", "jointed_effects", "jointed_shape", "randomize_tree"]

RATE_MARGIN = 10.0
"""A joint faster than this many times the bound of its targets has diverged."""
RATE_LIMIT = 1e3
"""Of joints without such a bound [rad/s]."""
HOLDING_GAIN = 3.0
"""At which servos hold an angle [1/s]."""
_INTEGRATORS = ("semi_implicit", "midpoint", "extrapolated", "rk4")


@lru_cache(maxsize=64)
def spheres_for(vehicle: Vehicle) -> tuple[tuple[int, tuple[float, float, float, float]], ...]:
    """Return bodies, places and radii of the spheres that a vehicle meets the ground with, found once."""
    return contact_spheres(vehicle, tree_for(vehicle))


@lru_cache(maxsize=64)
def tree_for(vehicle: Vehicle) -> JointTree:
    """Return the canonical tree of a vehicle, found once."""
    return tree_of(vehicle)


def flight_angles(vehicle: Vehicle, config: SimulatorConfig) -> tuple[float, ...]:
    """Return the angles that joints start from [rad], as configured or the vehicle's own."""
    return joint_angles(vehicle, config.joint_angles) if config.joint_angles else start_angles(vehicle)


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


def sensing_body(tree: JointTree, link: str, what: str = "Imu.link") -> int:
    """Return the number of the body that a link is.

    Args:
        tree: Of the vehicle.
        link: Its name; empty: the root.
        what: Names it, in messages.

    Raises:
        AirworthyError: No such link.
    """
    if not link:
        return 0
    if link not in tree.names:
        raise AirworthyError(f"{what} is {link!r}; the links are {', '.join(tree.names)}.")
    return tree.names.index(link)


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


def randomize_tree(rows: Array, tree: JointTree, layout: Layout, config: SimulatorConfig, keys: ArrayU32) -> Array:
    """Return parameter rows of flights, each drawn from its own key: masses and inertias of all links alike, rotors each.

    Args:
        rows: Nominal rows, (rows, env); not changed.
        tree: Of the batch.
        layout: Of the rows.
        config: Holds the relative half widths.
        keys: Of the flights, (env, 4).
    """
    out, spread, start = rows.copy(), config.randomization, layout.offsets["tree"]
    draw = 2.0 * uniforms(keys, 0, Stream.PARAMETERS, 32).T - 1.0

    def factor(share: float, index: int) -> Array:
        return np.asarray(1.0 + share * draw[index])

    mass, inertia, thrust, lag = (
        factor(share, index) for share, index in ((spread.mass, 0), (spread.inertia, 1), (spread.thrust, 4), (spread.lag, 14))
    )
    for index, name in enumerate(tree.row_names):
        group, _, rest = name.partition("].")
        row = start + index
        if group.startswith("bodies[") and rest == "mass":
            out[row] *= mass
        elif group.startswith("bodies[") and rest.startswith("inertia"):
            out[row] *= mass * inertia
        elif group.startswith("bodies[") and rest.startswith("drag"):
            out[row] *= factor(spread.drag, 13)
        elif group.startswith("propellers[") and rest.startswith(("thrust", "torque")):
            number = int(group.removeprefix("propellers["))
            out[row] *= thrust * factor(spread.rotor, 5 + number if number < 8 else 16 + number)
        elif group.startswith("propellers[") and rest.startswith(("rise", "fall")):
            out[row] /= lag
    out[layout.rows("wind")] += spread.wind * np.stack([draw[15], draw[16], np.zeros_like(draw[15])])
    return out


def default_commands(vehicles: Sequence[Vehicle], angles: ArrayFloat) -> dict[str, Array]:
    """Return what joints do until they are told otherwise, by input rows, each (joints, k): servos, and springs whose target
    commands set, stay at the angles that flights start from; other springs go to their rest; no torque.

    Args:
        vehicles: (k,).
        angles: At the start, (k, joints) [rad].
    """
    kinds = [joint_kinds(item) for item in vehicles]
    servo, driven = (np.array([kind == name for row in kinds for kind in row]).reshape(angles.shape) for name in KINDS[:2])
    rest = np.array([default_target(tree_for(item)) for item in vehicles])
    rows = {
        "joint_target": np.where(driven, angles, rest),
        "joint_angle": np.where(servo, angles, 0.0),
        "joint_gain": np.where(servo, HOLDING_GAIN, 0.0),
    }
    return {name: value.T for name, value in rows.items()}


KINDS = ("servo", "spring", "torque", "passive")


@lru_cache(maxsize=64)
def joint_kinds(vehicle: Vehicle) -> tuple[str, ...]:
    """Return what commands say to each joint: "servo" a rate, "spring" an angle, "torque" a torque, "passive" nothing."""
    joints = [link.joint for link in vehicle.links if link.joint is not None]
    laws = tree_for(vehicle).structure.laws
    return tuple(law if joint.active and law in KINDS else "passive" for law, joint in zip(laws, joints, strict=True))


class Joints:
    """The joints of a batch: where they start, how they are drawn, and what they are told.

    Args:
        vehicles: One per environment.
        config: Of the simulator.
    """

    def __init__(self, vehicles: Sequence[Vehicle], config: SimulatorConfig):
        self._vehicles, self._tree = vehicles, tree_for(vehicles[0])
        known = {id(item): flight_angles(item, config) for item in {id(item): item for item in vehicles}.values()}
        self.angles: Array = np.array([known[id(item)] for item in vehicles])
        """That flights start from [rad], (env, joints)."""

    def randomize(self, rows: Array, layout: Layout, config: SimulatorConfig, keys: ArrayU32) -> Array:
        """Return rows of flights, each drawn from its own key; see `randomize_tree`.

        Args:
            rows: Nominal rows, (rows, env).
            layout: Of the rows.
            config: Holds the relative half widths.
            keys: Of the flights, (env, 4).
        """
        return randomize_tree(rows, self._tree, layout, config, keys)

    def mass(self, rows: Array, layout: Layout) -> Array:
        """Return the mass of the whole vehicle [kg], (env,).

        Args:
            rows: In force, (rows, env).
            layout: Of them.
        """
        start, structure = layout.offsets["tree"], self._tree.structure
        model = structure.model(lambda row: rows[start + row])
        return np.asarray(sum(body.mass for body in model.bodies) + np.zeros(rows.shape[1]))

    def scatter(self, start: dict[str, ArrayFloat], ids: ArrayIndex, share: float, keys: ArrayU32) -> None:
        """Bend joints at the start within a share of what their records have them start within, in place.

        Args:
            start: State fields of the flights, each (k, width).
            ids: Their environments.
            share: Of the half widths.
            keys: Of the flights, (k, 4).
        """
        if share == 0.0:
            return
        joints = [[link.joint for link in self._vehicles[k].links if link.joint is not None] for k in ids]
        half = np.array([[0.5 * (joint.initial_high - joint.initial_low) for joint in row] for row in joints])
        low = np.array([[-np.inf if joint.lower is None else joint.lower for joint in row] for row in joints])
        high = np.array([[np.inf if joint.upper is None else joint.upper for joint in row] for row in joints])
        draw = 2.0 * uniforms(keys, 4, Stream.RESET, half.shape[1]) - 1.0
        start["joint"] = np.clip(start["joint"] + share * half * draw, low, high)

    def whole(self, tree: Array, start: Mapping[str, ArrayFloat]) -> dict[str, Array]:
        """Return where the centre of mass of the whole is and how it moves as flights start, by state rows, each (3, k).

        Args:
            tree: Rows of the tree, (rows, k).
            start: State fields, each (k, width).
        """
        structure = self._tree.structure
        names = ("position", "velocity", "attitude", "rate", "joint", "joint_rate")
        given = [tuple(start[name].T) for name in names]
        place, drift = whole_motion(structure, structure.model(lambda row: tree[row]), *given)
        return {"center": np.array(place), "center_velocity": np.array(drift)}

    def link_pose(self, link: str, tree: Array, state: Mapping[str, ArrayFloat]) -> tuple[Array, Array]:
        """Return the world pose of a link's frame: position (k, 3) [m], attitude (k, 4).

        Args:
            link: Its name; empty: the root.
            tree: Rows of the tree, (rows, k).
            state: Fields "position", "attitude" and "joint", each (k, width).

        Raises:
            AirworthyError: No such link.
        """
        body, structure = sensing_body(self._tree, link, "The link"), self._tree.structure
        model = structure.model(lambda row: tree[row])
        bodies = kinematics(structure, model, tuple(np.asarray(state["joint"], float).T))
        count = len(state["joint"])
        place = np.stack([np.broadcast_to(x, (count,)) for x in positions(structure, bodies)[body]], axis=1)
        turn = np.array([[np.broadcast_to(x, (count,)) for x in row] for row in bodies[body].rotation]).transpose(2, 0, 1)
        turn = turn @ self._tree.frames[body].T
        place = place - turn @ self._tree.origins[body]
        root = np.asarray(state["attitude"], float)
        return np.asarray(state["position"], float) + rotate(root, place), multiply(root, from_matrix(turn))

    def forget(self, inputs: ArrayF32, layout: Layout, ids: ArrayIndex, angles: ArrayFloat) -> None:
        """Write what joints do until they are told otherwise.

        Args:
            inputs: Input rows of the batch, changed in place.
            layout: Of them.
            ids: Environments (k,).
            angles: At the start of their flights, (k, joints) [rad].
        """
        for name, value in default_commands([self._vehicles[k] for k in ids], angles).items():
            inputs[layout.rows(name), ids] = value

    def command(self, inputs: ArrayF32, layout: Layout, ids: ArrayIndex, given: Mapping[str, ArrayLike | None]) -> None:
        """Write a command into the input rows; see `Simulator.set_joint_command`.

        Args:
            inputs: Input rows of the batch, changed in place.
            layout: Of them.
            ids: Environments (k,).
            given: "angle", "rate" and "torque", (k, joints) or (joints,), NaN where a joint is not told; None: of no joint.
        """
        shape = (len(ids), self._tree.structure.joint_count)
        told = {name: _command_array(name, value, shape) for name, value in given.items() if value is not None}
        kinds = np.array([joint_kinds(self._vehicles[k]) for k in ids]).reshape(shape)
        takes = {"angle": ("servo", "spring"), "rate": ("servo",), "torque": ("torque",)}
        for name, array in told.items():
            wrong = ~np.isnan(array) & ~np.isin(kinds, takes[name])
            if wrong.any():
                row, joint = np.argwhere(wrong)[0]
                raise AirworthyError(
                    f"Joint {joint} of {self._vehicles[int(ids[row])].name!r} was given a target {name}, but it is"
                    f" {_KIND_WORDS[str(kinds[row, joint])]}: leave it NaN."
                )
        nothing = np.full(shape, np.nan)
        angle, rate, torque = (told.get(name, nothing) for name in takes)
        rows = {name: inputs[layout.rows(name), ids].T for name in ("joint_target", "joint_angle", "joint_gain")}
        servo, by_angle, by_rate = kinds == "servo", ~np.isnan(angle), ~np.isnan(rate)
        target = np.where(by_angle & ~servo, angle, np.where(~np.isnan(torque), torque, rows["joint_target"]))
        target = np.where(servo & by_angle, np.where(by_rate, rate, 0.0), np.where(servo & by_rate, rate, target))
        held_at = np.where(servo & by_angle, angle, rows["joint_angle"])
        gain = np.where(servo & by_angle, HOLDING_GAIN, np.where(servo & by_rate, 0.0, rows["joint_gain"]))
        for name, value in (("joint_target", target), ("joint_angle", held_at), ("joint_gain", gain)):
            inputs[layout.rows(name), ids] = value.T


_KIND_WORDS = {
    "servo": "a servo of rate",
    "spring": "a spring, which takes an angle",
    "torque": "driven by a torque",
    "passive": "passive, which takes no command",
}


def _command_array(name: str, value: ArrayLike, shape: tuple[int, int]) -> Array:
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.asarray(None)
    if array.dtype.kind not in "fiu" or array.shape not in (shape, shape[1:]):
        raise AirworthyError(
            f"A joint command {name} must be numbers of shape {shape} or ({shape[1]},); got the shape {array.shape}."
        )
    return np.broadcast_to(np.asarray(array, float), shape)
