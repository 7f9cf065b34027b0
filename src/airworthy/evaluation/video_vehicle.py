"""A vehicle as something to be filmed: plates, arms, motors and the discs of its rotors, made from its record."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from airworthy.core import frames
from airworthy.geometry import Box, Cylinder, Mesh, Placement, Shape
from airworthy.scenes.formats import tessellate
from airworthy.scenes.record import Material
from airworthy.vehicles import Rotor, Vehicle

__all__ = ["DISC_OPACITY", "TIP_OPACITY", "TIP_WIDTH", "Puppet", "puppet"]

Floats = NDArray[np.float64]

DISC_OPACITY = 0.35
"""Of a turning rotor: how much of what is behind its disc it hides."""
TIP_OPACITY, TIP_WIDTH = 0.6, 0.06
"""The same of the painted tips of its blades, which turn into a ring, and how wide that is over the disc's radius."""
MATERIALS = (
    Material(base_color=(0.035, 0.037, 0.042, 1.0), roughness=0.5),
    Material(base_color=(0.85, 0.16, 0.03, 1.0), roughness=0.45),
    Material(base_color=(0.45, 0.46, 0.48, 1.0), metallic=0.6, roughness=0.35),
    Material(base_color=(0.1, 0.105, 0.115, 1.0), roughness=0.6),
)
"""Plates; nose, battery strap and blade tips; motors; discs."""
_PLATE, _ACCENT, _MOTOR, _DISC = range(len(MATERIALS))
_SIZE_MIN = 0.02
"""Least distance from the middle to a rotor that is drawn [m]."""
_SEGMENTS = 40


@dataclass(frozen=True, eq=False)
class Puppet:
    """What stands for a vehicle in a scene: a body, and one disc per rotor, all in the frame of its centre of mass."""

    shapes: tuple[Shape, ...]
    """The body, then the discs."""
    outlines: Floats
    """(rotors, 2, k, 3) points round the edge of each disc, and round the inner edge of its ring [m]."""

    def placement(self) -> Placement:
        """Rows of a scene batch's extra movers: the body, then the discs."""
        count = len(self.shapes)
        return Placement.of(shape=np.arange(count), material=np.full(count, _PLATE), collide=np.zeros(count, bool))


def puppet(vehicle: Vehicle) -> Puppet:
    """A vehicle's looks, as far as its record tells them."""
    hubs = np.array([rotor.position for rotor in vehicle.rotors], float).reshape(-1, 3)
    middle = hubs.mean(0) if len(hubs) else np.array(vehicle.body.center, float)
    away = np.linalg.norm(hubs - middle, axis=1) if len(hubs) else np.array(vehicle.body.size, float)
    size = max(float(away.mean()), _SIZE_MIN)
    parts = [_block(middle + offset, np.array(half) * size, kind) for offset, half, kind in _trunk(size)]
    discs, outlines = [], []
    for number, (rotor, hub) in enumerate(zip(vehicle.rotors, hubs, strict=True)):
        turn = frames.normalize(_along(np.asarray(rotor.axis, float)))
        parts += [_arm(middle, hub, 0.045 * size), *_motor(hub, turn, size)]
        radius = _radius(rotor, hubs, number, size)
        center = hub + frames.rotate(turn, (0.0, 0.0, 0.09 * size))
        discs.append(_moved(_disc(radius, 0.004 * size), turn, center))
        angle = np.linspace(0.0, 2.0 * math.pi, _SEGMENTS, endpoint=False)
        edge = radius * np.stack([np.cos(angle), np.sin(angle), np.zeros_like(angle)], axis=1)
        outlines.append([frames.rotate(turn, share * edge) + center for share in (1.0, 1.0 - TIP_WIDTH)])
    origin = np.asarray(vehicle.center_of_mass, float)
    shapes = [_joined(parts), *discs]
    return Puppet(
        tuple(Mesh(mesh.vertices - origin, mesh.faces, face_material=mesh.face_material) for mesh in shapes),
        np.array(outlines).reshape(-1, 2, _SEGMENTS, 3) - origin,
    )


def _trunk(size: float) -> list[tuple[Floats, tuple[float, float, float], int]]:
    """Offset, half size over the vehicle's, and material of the blocks in the middle: two plates, battery, strap, nose."""
    up, ahead = np.array([0.0, 0.0, size]), np.array([size, 0.0, 0.0])
    return [
        (-0.02 * up, (0.36, 0.2, 0.025), _PLATE),
        (0.11 * up, (0.3, 0.17, 0.02), _PLATE),
        (0.2 * up, (0.25, 0.1, 0.07), _PLATE),
        (0.2 * up, (0.05, 0.105, 0.075), _ACCENT),
        (0.05 * up + 0.37 * ahead, (0.045, 0.08, 0.07), _ACCENT),
    ]


def _motor(hub: Floats, turn: Floats, size: float) -> list[Mesh]:
    can = _moved(tessellate(Cylinder(0.1 * size, 0.06 * size), 20), turn, hub + frames.rotate(turn, (0.0, 0.0, 0.03 * size)))
    foot = _moved(tessellate(Cylinder(0.03 * size, 0.13 * size), 12), turn, hub - frames.rotate(turn, (0.0, 0.0, 0.15 * size)))
    return [_painted(can, _MOTOR), _painted(foot, _PLATE)]


def _radius(rotor: Rotor, hubs: Floats, number: int, size: float) -> float:
    """The propeller's radius; where unknown, nearly up to the next rotor's disc."""
    if rotor.radius > 0.0:
        return rotor.radius
    others = np.linalg.norm(np.delete(hubs, number, axis=0) - hubs[number], axis=1)
    apart = others[others > 0.2 * size]
    return 0.45 * float(apart.min()) if len(apart) else 0.6 * size


def _block(middle: Floats, half: Floats, kind: int) -> Mesh:
    mesh = tessellate(Box((float(half[0]), float(half[1]), float(half[2]))))
    return _painted(Mesh(mesh.vertices + middle, mesh.faces), kind)


def _arm(start: Floats, end: Floats, half: float) -> Mesh:
    """A beam between two points."""
    length = float(np.linalg.norm(end - start))
    beam = tessellate(Box((half, 0.6 * half, max(0.5 * length, half))))
    return _painted(_moved(beam, _along(end - start), 0.5 * (start + end)), _PLATE)


def _moved(mesh: Mesh, turn: Floats, offset: Floats) -> Mesh:
    return Mesh(frames.rotate(turn, mesh.vertices.astype(float)) + offset, mesh.faces, face_material=mesh.face_material)


def _painted(mesh: Mesh, kind: int) -> Mesh:
    return Mesh(mesh.vertices, mesh.faces, face_material=np.full(len(mesh.faces), kind))


def _disc(radius: float, half: float) -> Mesh:
    """A flat cylinder with a ring of another material round it."""
    inner = (1.0 - TIP_WIDTH) * radius
    angle = np.linspace(0.0, 2.0 * math.pi, _SEGMENTS, endpoint=False)
    round_ = np.stack([np.cos(angle), np.sin(angle), np.zeros(_SEGMENTS)], axis=1)
    here, after = np.arange(_SEGMENTS), (np.arange(_SEGMENTS) + 1) % _SEGMENTS
    out = _SEGMENTS + here
    faces = np.concatenate([np.stack([here, out, _SEGMENTS + after], 1), np.stack([here, _SEGMENTS + after, after], 1)])
    ring = Mesh(np.concatenate([inner * round_, radius * round_]), faces)
    return _joined([_painted(tessellate(Cylinder(inner, half), _SEGMENTS), _DISC), _painted(ring, _ACCENT)])


def _along(direction: Floats) -> Floats:
    """Quaternion x, y, z, w that turns z into a direction; none for the direction zero."""
    length = float(np.linalg.norm(direction))
    x, y, z = direction / length if length > 1e-9 else (0.0, 0.0, 1.0)
    return np.array([1.0, 0.0, 0.0, 0.0]) if z < -1.0 + 1e-9 else frames.normalize(np.array([-y, x, 0.0, 1.0 + z]))


def _joined(meshes: list[Mesh]) -> Mesh:
    starts = np.cumsum([0] + [len(mesh.vertices) for mesh in meshes[:-1]])
    faces = np.concatenate([mesh.faces + start for mesh, start in zip(meshes, starts, strict=True)])
    kinds = np.concatenate([mesh.face_material for mesh in meshes if mesh.face_material is not None])
    return Mesh(np.concatenate([mesh.vertices for mesh in meshes]), faces, face_material=kinds)
