"""What a Newton step needs of the vehicle and of a look, exactly: slopes and second derivatives, traced once.

Both are written down once, in `planning.racer` and `planning.glances`; reverse mode over their graph (`core.tracing`) gives the
rest. The same functions are computed by NumPy here and printed as C by `kernel`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from airworthy.core import ops
from airworthy.core.arrays import Array
from airworthy.core.tracing import Graph, Value, evaluate, vector_jacobian
from airworthy.race.planning.glances import looked
from airworthy.race.planning.racer import RacerModel

__all__ = [
    "ACTIVE",
    "FLOW",
    "SIGHT",
    "VEHICLE",
    "Terms",
    "advance",
    "flow_curves",
    "flow_slopes",
    "sight",
    "sight_curves",
    "vehicle_numbers",
]

ACTIVE = 11
"""Velocity, attitude, body rate and thrust: all that accelerations and the turning of the attitude depend on."""
FLOW = 7
"""Acceleration and the derivative of the attitude; the rest of the 13 are inputs or states themselves."""
SIGHT = 7
"""Position and attitude, which a look depends on."""


VEHICLE = 9
"""Mass [kg], gravity [m/s^2], drag D, and d1 and d2 of each body axis, as of `RacerModel`."""


def vehicle_numbers(model: RacerModel) -> Array:
    """Return the numbers of a vehicle that its equations read, (9,)."""
    return np.array([model.mass, model.gravity, model.drag, *model.linear, *model.quadratic])


class _TracedModel(RacerModel):
    """A vehicle whose numbers are traced, so that one kernel flies all; of drag by axes there are two, with it and without."""

    @property
    def has_axial_drag(self) -> bool:
        return not isinstance(self.linear[0], float)


def _traced_model(vehicle: Sequence[Value], axial: bool) -> RacerModel:
    linear, quadratic = (tuple(vehicle[3:6]), tuple(vehicle[6:9])) if axial else ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    mass, gravity, drag = vehicle[:3]
    none: Any = (0.0, 0.0, 0.0)
    numbers: list[Any] = [mass, gravity, drag, none, np.zeros((0, 4)), 0.0, linear, quadratic]
    return _TracedModel(*numbers)


def advance(
    state: Sequence[Value], control: Sequence[Value], duration: Value, vehicle: Sequence[Value], axial: bool
) -> list[Value]:
    """Return the state after a step of Runge-Kutta.

    Args:
        state: (13,)
        control: (4,)
        duration: [s]
        vehicle: As of `VEHICLE`.
        axial: Whether any drag depends on the attitude.
    """
    return list(_traced_model(vehicle, axial).step(state, control, duration))


def flow_slopes(active: Sequence[Value], vehicle: Sequence[Value], axial: bool) -> list[Value]:
    """Return `FLOW` values and their slopes by `ACTIVE`, (7, 11) in a row.

    Args:
        active: As of `ACTIVE`, traced.
        vehicle: As of `VEHICLE`.
        axial: Whether any drag depends on the attitude.
    """
    values = _flow(active, vehicle, axial)
    return [*values, *_slopes(values, active)]


def flow_curves(active: Sequence[Value], weight: Sequence[Value], vehicle: Sequence[Value], axial: bool) -> list[Value]:
    """Return second derivatives of the weighted sum of `FLOW`, (11, 11) in a row.

    Args:
        active: As of `ACTIVE`, traced.
        weight: Of each value.
        vehicle: As of `VEHICLE`.
        axial: Whether any drag depends on the attitude.
    """
    return _slopes(vector_jacobian(active[0].graph, _flow(active, vehicle, axial), weight, active), active)


def _flow(active: Sequence[Value], vehicle: Sequence[Value], axial: bool) -> list[Value]:
    state, control = [0.0, 0.0, 0.0, *active[:10]], [active[10], 0.0, 0.0, 0.0]
    return list(_traced_model(vehicle, axial).derivative(state, control))[3:10]


def sight(place: Sequence[Value], target: Sequence[Value], soft: Value) -> Value:
    """Return what a look is worth.

    Args:
        place: Position and attitude.
        target: World [m].
        soft: Width of the field's edge, in tangents.
    """
    edge: Any = soft
    worth: Value = looked([*place[:3], 0.0, 0.0, 0.0, *place[3:]], target, ops, edge)
    return worth


def sight_curves(place: Sequence[Value], target: Sequence[Value], soft: Value) -> list[Value]:
    """Return slopes (7) and second derivatives (7, 7) of what a look is worth, in a row.

    Args:
        place: Position and attitude.
        target: World [m].
        soft: Width of the field's edge, in tangents.
    """
    slopes = _slopes([sight(place, target, soft)], place)
    return [*slopes, *_slopes(slopes, place)]


def _slopes(values: Sequence[Value], inputs: Sequence[Value]) -> list[Value]:
    graph = inputs[0].graph
    one = graph.constant(1.0)
    return [slope for value in values for slope in vector_jacobian(graph, [value], [one], inputs)]


class Terms:
    """A traced function on NumPy arrays.

    Args:
        function: Of traced scalars, to a list of them.
        count: Scalars that it takes.
    """

    def __init__(self, function: Callable[[list[Value]], list[Value]], count: int) -> None:
        self._graph = Graph()
        self._inputs = [self._graph.input(f"x{k}") for k in range(count)]
        self._results = function(self._inputs)

    def __call__(self, *numbers: Array) -> Array:
        """Return results, (n, results), of arrays (n,)."""
        given = {value.index: number for value, number in zip(self._inputs, numbers, strict=True)}
        found = evaluate(self._graph, self._results, given)
        return np.stack([np.broadcast_to(item, np.shape(numbers[0])) for item in found], axis=1)
