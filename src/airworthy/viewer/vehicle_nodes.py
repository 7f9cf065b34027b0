"""A vehicle as simple solids: hub, nose, arms, and propellers that turn, from its record."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from airworthy.core import frames
from airworthy.core.arrays import Array
from airworthy.geometry import Box, Cylinder, Mesh
from airworthy.scenes.formats import tessellate
from airworthy.vehicles import Rotor, Vehicle

__all__ = ["VehicleNodes", "reach_of"]

BODY, NOSE, BLADE, DISC, FRONT_DISC = (45, 50, 58), (230, 70, 40), (35, 38, 44), (120, 132, 148), (240, 140, 60)
_SIZE_MIN = 0.02
"""Least distance from the middle to a rotor that is drawn [m]."""
_BLADE = np.array(
    [(0.08, 0.07, 0.0), (0.55, 0.12, 0.02), (1.0, 0.05, 0.0), (1.0, -0.03, 0.0), (0.55, -0.06, -0.02), (0.08, -0.05, 0.0)]
)
"""Outline of a blade in its plane, in radii; the leading edge is a little higher."""
_FAN = ((0, 1, 4), (0, 4, 5), (1, 2, 3), (1, 3, 4))
_BLURRED = 0.15
"""Share of the highest speed from which on a propeller is seen as a disc."""


class VehicleNodes:
    """A vehicle's nodes below the node `name`, in its body frame (x forward, y left, z up); discs ahead are orange.

    Args:
        api: `viser.ViserServer.scene`.
        name: Of a node that stands at the vehicle's centre of mass.
        vehicle: Whose record is drawn.
    """

    def __init__(self, api: Any, name: str, vehicle: Vehicle):
        hubs = np.array([rotor.position for rotor in vehicle.rotors], float).reshape(-1, 3)
        middle = hubs.mean(0) if len(hubs) else np.array(vehicle.body.center)
        reach = reach_of(vehicle)
        mass = np.array(vehicle.center_of_mass, float)
        """Flights are recorded of the centre of mass; the record's places count from its reference point."""
        parts = [_placed(_box(0.3 * reach, 0.22 * reach, 0.12 * reach), middle)]
        parts += [_arm(middle, hub, 0.05 * reach) for hub in hubs]
        nose = _placed(_box(0.1 * reach, 0.12 * reach, 0.08 * reach), middle + np.array([0.36 * reach, 0.0, 0.0]))
        self.solids = [_add(api, f"{name}/body", _placed(_joined(parts), -mass), BODY)]
        self.solids.append(_add(api, f"{name}/nose", _placed(nose, -mass), NOSE))
        self.blades: list[Any] = []
        self.discs: list[Any] = []
        self._along = [_along(rotor.axis) for rotor in vehicle.rotors]
        self._sense = np.array([-rotor.spin for rotor in vehicle.rotors], float)
        for number, rotor in enumerate(vehicle.rotors):
            radius = _radius(rotor, hubs, number, reach)
            placed = {"position": hubs[number] - mass, "wxyz": frames.to_wxyz(self._along[number])}
            ahead = rotor.position[0] > middle[0] + 0.1 * reach
            color = FRONT_DISC if ahead else DISC
            self.blades.append(_add(api, f"{name}/rotor_{number}", _propeller(radius, self._sense[number]), BLADE, **placed))
            disc = tessellate(Cylinder(radius, 0.01 * reach), 28)
            self.discs.append(_add(api, f"{name}/disc_{number}", disc, color, opacity=0.45, **placed))

    def turn(self, angles: ArrayLike, share: ArrayLike) -> None:
        """Turn the propellers.

        Args:
            angles: (rotors,) from rest [rad].
            share: (rotors,) speed of each, of the highest; one that stands shows its blades alone.
        """
        for number, (angle, speed) in enumerate(zip(np.asarray(angles, float), np.asarray(share, float), strict=False)):
            if number >= len(self.blades):
                return
            turned = _about_z(float(self._sense[number] * angle))
            self.blades[number].wxyz = frames.to_wxyz(frames.multiply(self._along[number], turned))
            blurred = bool(speed > _BLURRED)
            if self.discs[number].visible != blurred:
                self.discs[number].visible = blurred


def reach_of(vehicle: Vehicle) -> float:
    """From the middle to its rotors' hubs, on average [m]; of a vehicle without rotors, half its body's size."""
    hubs = np.array([rotor.position for rotor in vehicle.rotors], float).reshape(-1, 3)
    away = np.linalg.norm(hubs - hubs.mean(0), axis=1) if len(hubs) else np.array(vehicle.body.size)
    return max(float(away.mean()), _SIZE_MIN)


def _radius(rotor: Rotor, hubs: Array, number: int, reach: float) -> float:
    """Return the propeller's radius; where unknown, nearly up to the next rotor's disc."""
    if rotor.radius > 0.0:
        return rotor.radius
    others = np.linalg.norm(np.delete(hubs, number, axis=0) - hubs[number], axis=1)
    apart = others[others > 0.2 * reach]
    return 0.45 * float(apart.min()) if len(apart) else 0.6 * reach


def _propeller(radius: float, sense: float) -> Mesh:
    """Return two blades and a hub, in the plane z = 0; the leading edge is the one that goes ahead in the sense of turning."""
    one = radius * _BLADE * np.array([1.0, sense, 1.0])
    faces = np.array(_FAN, np.int32)
    hub = tessellate(Cylinder(0.1 * radius, 0.06 * radius), 12)
    return _joined([Mesh(one, faces), Mesh(one * np.array([-1.0, -1.0, 1.0]), faces), hub])


def _add(api: Any, name: str, mesh: Mesh, color: tuple[int, int, int], **options: Any) -> Any:
    return api.add_mesh_simple(
        name, mesh.vertices, mesh.faces, color=color, flat_shading=True, side="double", cast_shadow=False, **options
    )


def _box(x: float, y: float, z: float) -> Mesh:
    return tessellate(Box((x, y, z)))


def _placed(mesh: Mesh, position: Array) -> Mesh:
    return Mesh(mesh.vertices + position, mesh.faces)


def _arm(start: Array, end: Array, half: float) -> Mesh:
    """Return a beam between two points."""
    length = float(np.linalg.norm(end - start))
    beam = _box(half, half, max(0.5 * length, half))
    direction = (end - start) / length if length > 1e-9 else np.array([0.0, 0.0, 1.0])
    return Mesh(frames.rotate(_along(direction), beam.vertices.astype(float)) + 0.5 * (start + end), beam.faces)


def _along(direction: Any) -> Array:
    """Quaternion x, y, z, w that turns z into a direction."""
    x, y, z = np.asarray(direction, float) / np.linalg.norm(direction)
    if z < -1.0 + 1e-9:
        return np.array([1.0, 0.0, 0.0, 0.0])
    return frames.normalize(np.array([-y, x, 0.0, 1.0 + z]))


def _about_z(angle: float) -> Array:
    return np.array([0.0, 0.0, math.sin(0.5 * angle), math.cos(0.5 * angle)])


def _joined(meshes: list[Mesh]) -> Mesh:
    starts = np.cumsum([0] + [len(mesh.vertices) for mesh in meshes[:-1]])
    faces = np.concatenate([mesh.faces + start for mesh, start in zip(meshes, starts, strict=True)])
    return Mesh(np.concatenate([mesh.vertices for mesh in meshes]), faces)
