"""What kernels of a task are built for, and the parameter rows of vehicles as they are recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from airworthy.core.arrays import Array, ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.learning.environments.conditions import FlightConditions
from airworthy.learning.environments.controller import allocation_of, controller_rows, has_irregular_rotors, leans
from airworthy.learning.environments.jointed import JointedForm, equal_share, jointed_column, jointed_form
from airworthy.learning.environments.kernel import EnvironmentShape, parameters_of
from airworthy.learning.environments.task import LearningTask
from airworthy.learning.environments.traits import traits_of
from airworthy.learning.gradient.dynamics import surrogate_of
from airworthy.simulation.config import Randomization, SimulatorConfig
from airworthy.simulation.posterior import posterior_of
from airworthy.vehicles import Vehicle, hover_speed

__all__ = ["nominal_row", "shape_of"]


def shape_of(
    task: LearningTask, vehicles: Sequence[Vehicle], spread: Randomization, least: float, conditions: FlightConditions
) -> tuple[EnvironmentShape, Array]:
    """Return the shape that fits all of some vehicles, and the simulator's parameter rows of each as recorded, (rows,
    vehicles).

    Args:
        task: That is flown.
        vehicles: All with the same number of rotors.
        spread: How they are drawn.
        least: Thrust to weight to which drawn vehicles are raised.
        conditions: Of flights.

    Raises:
        AirworthyError: They have different numbers of rotors, or some controllers serve rotors otherwise than others.
    """
    fleet, traits = list(vehicles), traits_of(task)
    if traits.jointed:
        return _jointed_shape(task, fleet, spread, least, conditions)
    # Rows of rotors that are advanced exactly hold for one length of step.
    rate = task.rate * traits.physics_steps
    found = surrogate_of(fleet, SimulatorConfig(control_rate=rate, randomization=spread), len(fleet), late=True)
    form = replace(found.form, drag=found.form.drag if not spread.wind else "full")
    allocations = sorted({allocation_of(item, traits) for item in fleet})
    if len(allocations) > 1:
        raise AirworthyError(f"Controllers of these vehicles serve saturated rotors by {allocations}; fly them apart.")
    leaning = any(leans(item, traits) for item in fleet)
    irregular = any(has_irregular_rotors(item, traits) for item in fleet)
    bodies = {_box(item) if traits.rooms is not None else () for item in fleet}
    if len(bodies) > 1:
        raise AirworthyError(f"The task {task.name!r} has rooms, in which vehicles of one size fly; fly others apart.")
    controller = (leaning, allocations[0], irregular)
    if spread.posterior and len(fleet) > 1:
        raise AirworthyError(f"Identified vehicles are drawn of one record at a time, not of {len(fleet)}: train them apart.")
    posterior = posterior_of(fleet[0], spread) if spread.posterior else None
    shape = EnvironmentShape(task, form, spread, float(least), conditions, *controller, bodies.pop(), posterior)
    return shape, found.nominal


def _jointed_shape(
    task: LearningTask, fleet: Sequence[Vehicle], spread: Randomization, least: float, conditions: FlightConditions
) -> tuple[EnvironmentShape, Array]:
    """As `shape_of`, of vehicles with joints."""
    form = jointed_form(fleet)
    if spread.any:
        raise AirworthyError("Vehicles with joints are not drawn in learning tasks: leave the randomization out.")
    if late := [item.name for item in fleet if item.command_delay > 0.0]:
        raise AirworthyError(f"{late[0]} has joints and a dead time, which learning tasks of joints do not fly: set it to 0.")
    if conditions.ground is not None:
        raise AirworthyError("Ground is not there in learning tasks of vehicles with joints: leave it out.")
    shape = EnvironmentShape(task, form, spread, float(least), conditions, False, "", False)
    return shape, np.stack([jointed_column(item) for item in fleet], axis=1)


def _box(item: Vehicle) -> tuple[float, ...]:
    """Middle from the centre of mass and half edges of the box around a vehicle's body [m]."""
    body = item.body
    middle = np.asarray(body.center, float) - np.asarray(item.center_of_mass, float)
    size = tuple(map(float, body.size))
    # A sphere has its radius alone, a cylinder radius, radius and half height: each is within this box.
    half = (size[0],) * 3 if body.shape == "sphere" else size
    return (*map(float, middle), *half)


def nominal_row(shape: EnvironmentShape, vehicle: Vehicle, column: Array) -> ArrayF32:
    """Return the used rows of a vehicle as it is recorded, with hover and its controller's beside them.

    Args:
        shape: Of the kernels.
        vehicle: That is flown.
        column: The simulator's parameter rows of it, (rows,).
    """
    p, jointed = parameters_of(shape), isinstance(shape.form, JointedForm)
    speeds = equal_share(vehicle) if jointed else np.asarray(hover_speed(vehicle))
    rows = column if jointed else controller_rows(vehicle, shape.traits, shape.dt, column, p.layout)
    low, high = (rows[p.layout.rows(f"rotor_{end}")][: len(speeds)] for end in ("min", "max"))
    whole = np.concatenate([rows, speeds, np.zeros(shape.actions), [vehicle.mass * vehicle.gravity]])
    affine = tuple((2.0 * speeds - low - high) / (high - low))
    whole[p.extra["hover_action"]] = shape.traits.hover(p.record(lambda row: whole[row]), affine)
    return whole[p.used].astype(np.float32)
