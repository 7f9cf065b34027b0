"""The joints of a batch: where they start, how they are drawn, what they are told, and where links are by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayFloat, ArrayIndex, ArrayLike, ArrayU32
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import from_matrix, multiply, rotate
from airworthy.core.layout import Layout
from airworthy.core.random import Stream, uniforms
from airworthy.dynamics.articulated.equations import kinematics, positions
from airworthy.dynamics.articulated.joint_angles import joint_angles, start_angles
from airworthy.dynamics.articulated.parameters import default_target
from airworthy.dynamics.articulated.spheres import contact_spheres
from airworthy.dynamics.articulated.steering import whole_motion
from airworthy.dynamics.articulated.tree import JointTree, tree_of
from airworthy.simulation.config import SimulatorConfig
from airworthy.vehicles.record import Vehicle

__all__ = ["Joints", "flight_angles", "sensing_body", "spheres_for", "tree_for"]

# Ours; the specification's 3 lets a ring of five links bend by 4 degrees in hover, where its heading is lost: rotors that lean
# by that turn it more than their drag can. At 6 it bends by 0.2 degrees; at 10 a chain of four that turns a corner with full
# rotors leaves its way instead. The servo's own loop is some hundred times faster.
HOLDING_GAIN = 6.0
"""At which servos hold an angle [1/s]."""


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
    # By identity: of thousands of environments most have the same vehicle, and a vehicle's hash is that of all of its numbers.
    distinct = {id(item): (joint_kinds(item), default_target(tree_for(item))) for item in {id(v): v for v in vehicles}.values()}
    kinds = [distinct[id(item)][0] for item in vehicles]
    servo, driven = (np.array([kind == name for row in kinds for kind in row]).reshape(angles.shape) for name in KINDS[:2])
    rest = np.array([distinct[id(item)][1] for item in vehicles])
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
