"""Vehicles as things that sensors see: the collision bodies of a group as movers of each member's scene."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError
from airworthy.core.frames import rotate
from airworthy.geometry import Box, Cylinder, Placement, Shape, Sphere
from airworthy.vehicles import Vehicle
from airworthy.vehicles.record import CollisionBody

FIRST_VEHICLE_ID = 60000
"""Instance number of a group's first member; the others follow."""
VEHICLE_CLASS = 8
"""Semantic number of vehicles (`scenes.DEFAULT_SEMANTICS`)."""


def body_shape(body: CollisionBody) -> Shape:
    """A vehicle's collision body as a shape."""
    if body.shape == "sphere":
        return Sphere(body.size[0])
    if body.shape == "box":
        return Box(body.size)
    return Cylinder(body.size[0], body.size[2])


class VehicleMovers:
    """Bodies of every member of a group, for the scene of each of them.

    A scene batch wants the same rows in every environment, so there is one row per place in a group and kind of body, of which
    one per place is active.

    Args:
        vehicles: One per environment.
        groups: Group of each environment, (env,); None: each flies alone, and its own body is the only row.
        flight_ids: Of the simulator, (env,); members are ordered by them, so that numbers do not depend on the batch's order.

    Use `placement` and `shapes` as `extra_movers` and `extra_shapes` of a `SceneBatch`.
    """

    def __init__(self, vehicles: Sequence[Vehicle], groups: ArrayLike | None = None, flight_ids: ArrayLike | None = None):
        self.env_count = len(vehicles)
        group = np.arange(self.env_count) if groups is None else np.asarray(groups, np.int64)
        if group.shape != (self.env_count,):
            raise AirworthyError(f"Groups have shape {group.shape}; expected one number per environment, ({self.env_count},).")
        bodies = list(dict.fromkeys((v.body.shape, v.body.size) for v in vehicles))
        self.shapes: list[Shape] = [body_shape(CollisionBody(*body)) for body in bodies]
        kind = np.array([bodies.index((v.body.shape, v.body.size)) for v in vehicles])
        flights = np.arange(self.env_count) if flight_ids is None else np.asarray(flight_ids)
        self._members, place = _members(group, flights)
        self.member_max, kinds = self._members.shape[1], len(bodies)
        self._offset = np.array([v.body.center for v in vehicles]) - [v.center_of_mass for v in vehicles]
        present = self._members >= 0
        self._active = (present[..., None] & (kind[self._members][..., None] == np.arange(kinds))).reshape(self.env_count, -1)
        self.own_row: NDArray[np.int64] = place * kinds + kind
        """Row of each environment's own vehicle, (env,)."""
        self.placement = Placement.of(
            shape=np.tile(np.arange(kinds), self.member_max),
            instance_id=FIRST_VEHICLE_ID + np.repeat(np.arange(self.member_max), kinds),
            semantic_id=np.full(self.member_max * kinds, VEHICLE_CLASS),
            collide=np.zeros(self.member_max * kinds, bool),
        )

    def poses(
        self, position: NDArray[np.floating], attitude: NDArray[np.floating]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
        """Arguments of `SceneBatch.pose_movers`: positions (env, rows, 3), attitudes (env, rows, 4), active (env, rows).

        Args:
            position: Centres of mass, world [m], (env, 3).
            attitude: (env, 4).
        """
        turn = np.asarray(attitude, np.float64)
        centre = np.asarray(position, np.float64) + rotate(turn, self._offset)
        kinds = len(self.shapes)
        return (
            np.repeat(centre[self._members], kinds, axis=1),
            np.repeat(turn[self._members], kinds, axis=1),
            self._active,
        )


def _members(group: NDArray[np.int64], flights: NDArray[np.generic]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Environments of each one's group in order, (env, most), -1 where there are fewer; and each one's place among them."""
    order = np.lexsort((flights, group))
    _, start, count = np.unique(group[order], return_index=True, return_counts=True)
    place = np.zeros(len(group), np.int64)
    members = np.full((len(group), int(count.max())), -1, np.int64)
    for first, size in zip(start, count, strict=True):
        those = order[first : first + size]
        place[those] = np.arange(size)
        members[those, :size] = those
    return members, place
