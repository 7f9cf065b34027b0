"""A vehicle as simple solids: hub, nose, arms and rotor discs, from its record."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core import frames
from airworthy.geometry import Box, Cylinder, Mesh
from airworthy.scenes.formats import tessellate
from airworthy.vehicles import Rotor, Vehicle

__all__ = ["add_vehicle"]

Floats = NDArray[np.float64]
BODY, NOSE, DISC, FRONT_DISC = (45, 50, 58), (230, 70, 40), (120, 132, 148), (240, 140, 60)
_SIZE_MIN = 0.02
"""Least distance from the middle to a rotor that is drawn [m]."""


def add_vehicle(api: Any, name: str, vehicle: Vehicle) -> list[Any]:
    """Show a vehicle below the node `name`, in its body frame (x forward, y left, z up); discs ahead of the middle are orange.

    Returns:
        The handles: the body's, then one per rotor.
    """
    hubs = np.array([rotor.position for rotor in vehicle.rotors], float).reshape(-1, 3)
    middle = hubs.mean(0) if len(hubs) else np.array(vehicle.body.center)
    away = np.linalg.norm(hubs - middle, axis=1) if len(hubs) else np.array(vehicle.body.size)
    reach = max(float(away.mean()), _SIZE_MIN)
    parts = [_placed(_box(0.3 * reach, 0.22 * reach, 0.12 * reach), middle)]
    parts += [_arm(middle, hub, 0.05 * reach) for hub in hubs]
    handles = [_add(api, f"{name}/body", _joined(parts), BODY)]
    nose = _placed(_box(0.1 * reach, 0.12 * reach, 0.08 * reach), middle + np.array([0.36 * reach, 0.0, 0.0]))
    handles.append(_add(api, f"{name}/nose", nose, NOSE))
    for number, rotor in enumerate(vehicle.rotors):
        disc = tessellate(Cylinder(_radius(rotor, hubs, number, reach), 0.02 * reach), 24)
        ahead = rotor.position[0] > middle[0] + 0.1 * reach
        turned = Mesh(frames.rotate(_along(rotor.axis), disc.vertices.astype(float)) + hubs[number], disc.faces)
        handles.append(_add(api, f"{name}/rotor_{number}", turned, FRONT_DISC if ahead else DISC, 0.75))
    return handles


def _radius(rotor: Rotor, hubs: Floats, number: int, reach: float) -> float:
    """The propeller's radius; where unknown, nearly up to the next rotor's disc."""
    if rotor.radius > 0.0:
        return rotor.radius
    others = np.linalg.norm(np.delete(hubs, number, axis=0) - hubs[number], axis=1)
    apart = others[others > 0.2 * reach]
    return 0.45 * float(apart.min()) if len(apart) else 0.6 * reach


def _add(api: Any, name: str, mesh: Mesh, color: tuple[int, int, int], opacity: float | None = None) -> Any:
    return api.add_mesh_simple(
        name, mesh.vertices, mesh.faces, color=color, opacity=opacity, flat_shading=True, side="double", cast_shadow=False
    )


def _box(x: float, y: float, z: float) -> Mesh:
    return tessellate(Box((x, y, z)))


def _placed(mesh: Mesh, position: Floats) -> Mesh:
    return Mesh(mesh.vertices + position, mesh.faces)


def _arm(start: Floats, end: Floats, half: float) -> Mesh:
    """A beam between two points."""
    length = float(np.linalg.norm(end - start))
    beam = _box(half, half, max(0.5 * length, half))
    direction = (end - start) / length if length > 1e-9 else np.array([0.0, 0.0, 1.0])
    return Mesh(frames.rotate(_along(direction), beam.vertices.astype(float)) + 0.5 * (start + end), beam.faces)


def _along(direction: Any) -> Floats:
    """Quaternion x, y, z, w that turns z into a direction."""
    x, y, z = np.asarray(direction, float) / np.linalg.norm(direction)
    if z < -1.0 + 1e-9:
        return np.array([1.0, 0.0, 0.0, 0.0])
    return frames.normalize(np.array([-y, x, 0.0, 1.0 + z]))


def _joined(meshes: list[Mesh]) -> Mesh:
    starts = np.cumsum([0] + [len(mesh.vertices) for mesh in meshes[:-1]])
    faces = np.concatenate([mesh.faces + start for mesh, start in zip(meshes, starts, strict=True)])
    return Mesh(np.concatenate([mesh.vertices for mesh in meshes]), faces)
