"""Bare physics of many vehicles with joints: no control, noise, contact or containment, which are the simulator's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayLike, aligned_zeros
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.native_kernel import CPU_LANES, Launcher, quiet_warp
from airworthy.core.schema import Bound, number, shown
from airworthy.dynamics.articulated.native import BLOCKS_PER_TASK, articulated_kernel
from airworthy.dynamics.articulated.parameters import (
    articulated_input_layout,
    articulated_state_layout,
    default_target,
    shared_structure,
)
from airworthy.dynamics.articulated.step import INTEGRATORS, STAGES
from airworthy.dynamics.articulated.stiffness import check_step
from airworthy.dynamics.articulated.tree import tree_of
from airworthy.vehicles.lookup import vehicle_given
from airworthy.vehicles.record import Vehicle

__all__ = ["ArticulatedBatch"]

MOST = 1 << 24
"""Environments of a batch."""


def _environments(vehicles: Any, env_count: int | None) -> list[Vehicle]:
    """Return the vehicle of each environment."""
    if env_count is not None:
        number(env_count, "env_count", Bound(1, MOST), whole=True)
    if isinstance(vehicles, Vehicle | str):
        return [vehicle_given(vehicles)] * (env_count or 1)
    items = [vehicle_given(item, f"vehicles[{index}]") for index, item in enumerate(vehicles)]
    if not items or env_count not in (None, len(items)):
        raise AirworthyError(f"{len(items)} vehicles were given for {env_count or 'no'} environments; expected one for each.")
    return items


class ArticulatedBatch:
    """Environments of one structure on lanes of a CPU, float32.

    Args:
        vehicles: One for all environments, or one for each; all of one structure.
        env_count: Environments, where one vehicle is given.
        dt: Step [s].
        integrator: One of `INTEGRATORS`.
        rows: Parameter rows per environment, (rows, env), instead of the vehicles'.
        threads: Most threads.

    Raises:
        AirworthyError: Vehicles of different structure, numbers that fit no array, or a step too long for the integrator.
    """

    def __init__(
        self,
        vehicles: Vehicle | Sequence[Vehicle],
        env_count: int | None = None,
        dt: float = 0.002,
        integrator: str = "midpoint",
        rows: ArrayLike | None = None,
        threads: int | None = None,
    ):
        items = _environments(vehicles, env_count)
        if integrator not in INTEGRATORS:
            raise unknown_name("integrator", integrator, INTEGRATORS)
        if not number(dt, "dt") > 0.0:
            raise AirworthyError(f"dt is {dt}; expected a step in seconds above zero.")
        known = {id(item): tree_of(item) for item in {id(item): item for item in items}.values()}
        trees = [known[id(item)] for item in items]
        self.tree = trees[0]
        self.structure = shared_structure(trees, [item.name for item in items])
        for item in {id(item): item for item in items}.values():
            check_step(known[id(item)], dt, integrator, item.name)
        self.env_count, self.dt, self.integrator = len(items), dt, integrator
        self.layout, self.inputs_layout = articulated_state_layout(self.structure), articulated_input_layout(self.structure)
        self._stride = -(-self.env_count // CPU_LANES) * CPU_LANES
        self._each = rows is not None or len(known) > 1
        given = np.stack([tree.values for tree in trees], axis=1) if rows is None else np.asarray(rows, float)
        if given.shape != (self.structure.row_count, self.env_count):
            raise AirworthyError(f"rows has the shape {given.shape}; expected {(self.structure.row_count, self.env_count)}.")
        self.rows: Array = given
        self._state = self._zeros(self.layout.size)
        self._inputs = self._zeros(self.inputs_layout.size)
        self._params = self._padded(given) if self._each else np.ascontiguousarray(given[:, 0], np.float32)
        self._threads = threads
        self._launchers: dict[int, Launcher] = {}
        self.reset()

    def _zeros(self, rows: int) -> ArrayF32:
        return aligned_zeros((rows, self._stride))

    def _padded(self, rows: Array) -> ArrayF32:
        """Lanes beyond the last environment repeat it."""
        made = self._zeros(len(rows))
        made[:, : self.env_count] = rows
        made[:, self.env_count :] = rows[:, -1:]
        return made

    def reset(self, **fields: ArrayLike) -> None:
        """Put all environments at rest, joints and rotors at zero, but for the fields given.

        Args:
            fields: State fields, (env, k) or (k,).
        """
        self._state[:] = 0.0
        self._inputs[:] = 0.0
        self.set(attitude=(0.0, 0.0, 0.0, 1.0))
        self.target(default_target(self.tree))
        self.set(**fields)

    def set(self, **fields: ArrayLike) -> None:
        """Set state fields.

        Args:
            fields: (env, k) or (k,).

        Raises:
            AirworthyError: No such field, or another shape.
        """
        for name, value in fields.items():
            if name not in self.layout:
                raise unknown_name("state field", name, self.layout.fields)
            self._put(self._state[self.layout.rows(name)], name, value)

    def _put(self, rows: ArrayF32, name: str, value: ArrayLike) -> None:
        try:
            given = np.asarray(value, float)
        except (TypeError, ValueError):
            raise AirworthyError(f"{name} is {shown(value)}; expected numbers.") from None
        if not np.isfinite(given).all():
            raise AirworthyError(f"{name} holds what is not finite; expected numbers.")
        if given.shape not in ((len(rows),), (self.env_count, len(rows))):
            raise AirworthyError(
                f"{name} has the shape {given.shape}; expected ({len(rows)},) or {(self.env_count, len(rows))}."
            )
        spread = np.broadcast_to(given, (self.env_count, len(rows))).T
        rows[:, : self.env_count] = spread
        rows[:, self.env_count :] = spread[:, -1:]

    def field(self, name: str) -> ArrayF32:
        """Return a state field, (env, k); a view into the memory of the batch."""
        if name not in self.layout:
            raise unknown_name("state field", name, self.layout.fields)
        return self._state[self.layout.rows(name), : self.env_count].T

    def target(self, target: ArrayLike) -> None:
        """Set the joints' targets, (env, joints) or (joints,)."""
        self._put(self._inputs[self.inputs_layout.rows("joint_target")], "target", target)

    def push(self, force: ArrayLike = (0.0, 0.0, 0.0), moment: ArrayLike = (0.0, 0.0, 0.0)) -> None:
        """Set the external force [N], world, and moment [N m], root axes, on the root; (env, 3) or (3,)."""
        self._put(self._inputs[self.inputs_layout.rows("force")], "force", force)
        self._put(self._inputs[self.inputs_layout.rows("moment")], "moment", moment)

    def advance(self, steps: int, command: ArrayLike) -> None:
        """Take steps under held rotor commands.

        Args:
            steps: How many.
            command: (env, rotors) or (rotors,).
        """
        number(steps, "steps", Bound(0, 2**31 - 1), whole=True)
        self._put(self._inputs[self.inputs_layout.rows("command")], "command", command)
        if steps not in self._launchers:
            self._launchers[steps] = self._launcher(steps)
        self._launchers[steps].launch()

    def _launcher(self, steps: int) -> Launcher:
        wp = quiet_warp()
        arrays = [
            wp.array(a.reshape(-1), dtype=wp.float32, device="cpu", copy=False)
            for a in (self._params, self._inputs, self._state)
        ]
        blocks, number = self._stride // CPU_LANES, INTEGRATORS[self.integrator]
        tasks = -(-blocks // BLOCKS_PER_TASK)
        scalars = [self._stride, int(self._each), self.dt, steps, number, STAGES[number], blocks]
        return Launcher(articulated_kernel(self.structure), tasks, [*arrays, *scalars], "cpu", self._threads)
