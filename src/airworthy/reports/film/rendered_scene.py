"""The scene and the vehicle at the times of some frames, and what a camera sees of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayF32
from airworthy.geometry import Box, Cylinder, Mesh, Placement, RayTable, Shape, Sphere
from airworthy.optics.projections import Pinhole, Projection
from airworthy.reports.film.cameras import CameraPath
from airworthy.scenes.formats import tessellate
from airworthy.scenes.record import Material
from airworthy.vehicles import Link, LinkShape, Rotor, Vehicle, frozen
from airworthy.vehicles.links import placed_links

if TYPE_CHECKING:
    from airworthy.scenes import Scene

__all__ = ["DISC_OPACITY", "TIP_OPACITY", "TIP_WIDTH", "Puppet", "RenderedScene", "puppet"]

# -----------------------------------------------------------------------------------------------------------------------------
# A vehicle as something to be filmed: plates, arms, motors and the discs of its rotors, made from its record.

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
    """What stands for a vehicle in a scene: bodies and one disc per rotor, in the frame of its centre of mass, or, where it has
    joints, in those of its links."""

    shapes: tuple[Shape, ...]
    """The bodies, then the discs."""
    outlines: Array
    """(rotors, 2, k, 3) points round the edge of each disc, and round the inner edge of its ring [m]."""
    links: tuple[Link, ...] = ()
    """Of a vehicle with joints."""
    carriers: tuple[int, ...] = ()
    """Of each shape the number of its link."""

    @property
    def body_count(self) -> int:
        """Shapes before the discs."""
        return len(self.shapes) - len(self.outlines)

    def poses(self, position: Array, attitude: Array, joints: Array | None) -> tuple[Array, Array]:
        """Return the pose of every shape, (k, shapes, 3) [m] and (k, shapes, 4), or (k, 1, ...) where all have one.

        Args:
            position: Of the centre of mass [m], (k, 3).
            attitude: Of the vehicle, of its root where it has joints, (k, 4).
            joints: Angles of its joints, (k, joints) [rad]; None: all zero.
        """
        if not self.links:
            return position[:, None], attitude[:, None]
        angles = np.zeros((len(position), len(self.links) - 1)) if joints is None else joints
        placed = [placed_links(self.links, row) for row in angles]
        offset, turn = (np.stack([pair[part] for pair in placed])[:, list(self.carriers)] for part in (0, 1))
        whole = np.broadcast_to(attitude[:, None], turn.shape)
        return position[:, None] + frames.rotate(whole, offset), frames.normalize(frames.multiply(whole, turn))

    def placement(self) -> Placement:
        """Return rows of a scene batch's extra dynamic instances: the body, then the discs."""
        count = len(self.shapes)
        return Placement.of(shape=np.arange(count), material=np.full(count, _PLATE), collide=np.zeros(count, bool))


def puppet(vehicle: Vehicle) -> Puppet:
    """Return a vehicle's looks, as far as its record tells them."""
    if vehicle.links:
        return _jointed_puppet(vehicle)
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
        outlines.append(_edges(radius, turn, center))
    origin = np.asarray(vehicle.center_of_mass, float)
    shapes = [_joined(parts), *discs]
    return Puppet(
        tuple(Mesh(mesh.vertices - origin, mesh.faces, face_material=mesh.face_material) for mesh in shapes),
        np.array(outlines).reshape(-1, 2, _SEGMENTS, 3) - origin,
    )


def _jointed_puppet(vehicle: Vehicle) -> Puppet:
    """Return a vehicle with joints: each link's shapes, or beams to what it carries, its motors and discs, in its own frame."""
    held = frozen(vehicle)
    hubs = np.array([rotor.position for rotor in held.rotors], float).reshape(-1, 3)
    size = max(float(np.linalg.norm(hubs - hubs.mean(0), axis=1).mean()) if len(hubs) else 0.0, _SIZE_MIN)
    place = {link.name: number for number, link in enumerate(vehicle.links)}
    on = [place[rotor.link or vehicle.links[0].name] for rotor in vehicle.rotors]
    bodies, carriers, discs, outlines = [], [], [], []
    turns = [frames.normalize(_along(np.asarray(rotor.axis, float))) for rotor in vehicle.rotors]
    for number, link in enumerate(vehicle.links):
        hung = [item.joint.position for item in vehicle.links if item.joint is not None and item.parent == link.name]
        # A sphere round where other links begin is a bound, not a body: drawn, it would hide what moves.
        parts = [_solid(shape) for shape in link.shapes if not (shape.shape == "sphere" and hung and _within(shape, hung))]
        if not parts:
            ends = [rotor.position for rotor, body in zip(vehicle.rotors, on, strict=True) if body == number]
            ends += hung
            parts = [_arm(np.zeros(3), np.array(end, float), 0.045 * size) for end in ends if np.linalg.norm(end) > 1e-6]
        if not number:
            parts += [_block(offset, np.array(half) * size, kind) for offset, half, kind in _trunk(0.5 * size)]
        for rotor, body, turn in zip(vehicle.rotors, on, turns, strict=True):
            parts += _motor(np.array(rotor.position, float), turn, 0.5 * size) if body == number else []
        if parts:
            bodies.append(_joined(parts))
            carriers.append(number)
    for number, (rotor, turn) in enumerate(zip(vehicle.rotors, turns, strict=True)):
        radius = _radius(rotor, hubs, number, size)
        center = np.array(rotor.position, float) + frames.rotate(turn, (0.0, 0.0, 0.06 * size))
        discs.append(_moved(_disc(radius, 0.004 * size), turn, center))
        outlines.append(_edges(radius, turn, center))
    return Puppet((*bodies, *discs), np.array(outlines).reshape(-1, 2, _SEGMENTS, 3), vehicle.links, (*carriers, *on))


def _within(shape: LinkShape, points: Sequence[Sequence[float]]) -> bool:
    away = np.linalg.norm(np.asarray(points, float) - np.asarray(shape.position, float), axis=1)
    return bool((away < shape.size[0]).all())


def _solid(shape: LinkShape) -> Mesh:
    solid: dict[str, Shape] = {
        "box": Box(shape.size),
        "cylinder": Cylinder(shape.size[0], shape.size[2]),
        "sphere": Sphere(shape.size[0]),
    }
    return _painted(
        _moved(tessellate(solid[shape.shape]), np.asarray(shape.rotation, float), np.asarray(shape.position, float)), _PLATE
    )


def _edges(radius: float, turn: Array, center: Array) -> list[Array]:
    """Points round a disc's edge and round the inner edge of its ring, each (segments, 3)."""
    angle = np.linspace(0.0, 2.0 * math.pi, _SEGMENTS, endpoint=False)
    edge = radius * np.stack([np.cos(angle), np.sin(angle), np.zeros_like(angle)], axis=1)
    return [frames.rotate(turn, share * edge) + center for share in (1.0, 1.0 - TIP_WIDTH)]


def _trunk(size: float) -> list[tuple[Array, tuple[float, float, float], int]]:
    """Offset, half size over the vehicle's, and material of the blocks in the middle: two plates, battery, strap, nose."""
    up, ahead = np.array([0.0, 0.0, size]), np.array([size, 0.0, 0.0])
    return [
        (-0.02 * up, (0.36, 0.2, 0.025), _PLATE),
        (0.11 * up, (0.3, 0.17, 0.02), _PLATE),
        (0.2 * up, (0.25, 0.1, 0.07), _PLATE),
        (0.2 * up, (0.05, 0.105, 0.075), _ACCENT),
        (0.05 * up + 0.37 * ahead, (0.045, 0.08, 0.07), _ACCENT),
    ]


def _motor(hub: Array, turn: Array, size: float) -> list[Mesh]:
    can = _moved(tessellate(Cylinder(0.1 * size, 0.06 * size), 20), turn, hub + frames.rotate(turn, (0.0, 0.0, 0.03 * size)))
    foot = _moved(tessellate(Cylinder(0.03 * size, 0.13 * size), 12), turn, hub - frames.rotate(turn, (0.0, 0.0, 0.15 * size)))
    return [_painted(can, _MOTOR), _painted(foot, _PLATE)]


def _radius(rotor: Rotor, hubs: Array, number: int, size: float) -> float:
    """Return the propeller's radius; where unknown, nearly up to the next rotor's disc."""
    if rotor.radius > 0.0:
        return rotor.radius
    others = np.linalg.norm(np.delete(hubs, number, axis=0) - hubs[number], axis=1)
    apart = others[others > 0.2 * size]
    return 0.45 * float(apart.min()) if len(apart) else 0.6 * size


def _block(middle: Array, half: Array, kind: int) -> Mesh:
    mesh = tessellate(Box((float(half[0]), float(half[1]), float(half[2]))))
    return _painted(Mesh(mesh.vertices + middle, mesh.faces), kind)


def _arm(start: Array, end: Array, half: float) -> Mesh:
    """Return a beam between two points."""
    length = float(np.linalg.norm(end - start))
    beam = tessellate(Box((half, 0.6 * half, max(0.5 * length, half))))
    return _painted(_moved(beam, _along(end - start), 0.5 * (start + end)), _PLATE)


def _moved(mesh: Mesh, turn: Array, offset: Array) -> Mesh:
    return Mesh(frames.rotate(turn, mesh.vertices.astype(float)) + offset, mesh.faces, face_material=mesh.face_material)


def _painted(mesh: Mesh, kind: int) -> Mesh:
    return Mesh(mesh.vertices, mesh.faces, face_material=np.full(len(mesh.faces), kind))


def _disc(radius: float, half: float) -> Mesh:
    """Return a flat cylinder with a ring of another material round it."""
    inner = (1.0 - TIP_WIDTH) * radius
    angle = np.linspace(0.0, 2.0 * math.pi, _SEGMENTS, endpoint=False)
    round_ = np.stack([np.cos(angle), np.sin(angle), np.zeros(_SEGMENTS)], axis=1)
    here, after = np.arange(_SEGMENTS), (np.arange(_SEGMENTS) + 1) % _SEGMENTS
    out = _SEGMENTS + here
    faces = np.concatenate([np.stack([here, out, _SEGMENTS + after], 1), np.stack([here, _SEGMENTS + after, after], 1)])
    ring = Mesh(np.concatenate([inner * round_, radius * round_]), faces)
    return _joined([_painted(tessellate(Cylinder(inner, half), _SEGMENTS), _DISC), _painted(ring, _ACCENT)])


def _along(direction: Array) -> Array:
    """Quaternion x, y, z, w that turns z into a direction; none for the direction zero."""
    length = float(np.linalg.norm(direction))
    x, y, z = direction / length if length > 1e-9 else (0.0, 0.0, 1.0)
    return np.array([1.0, 0.0, 0.0, 0.0]) if z < -1.0 + 1e-9 else frames.normalize(np.array([-y, x, 0.0, 1.0 + z]))


def _joined(meshes: list[Mesh]) -> Mesh:
    starts = np.cumsum([0] + [len(mesh.vertices) for mesh in meshes[:-1]])
    faces = np.concatenate([mesh.faces + start for mesh, start in zip(meshes, starts, strict=True)])
    kinds = np.concatenate([mesh.face_material for mesh in meshes if mesh.face_material is not None])
    return Mesh(np.concatenate([mesh.vertices for mesh in meshes]), faces, face_material=kinds)


# -----------------------------------------------------------------------------------------------------------------------------

_EMPTY, _BODY, _DISCS = range(3)
"""Blocks of the batch's environments: without the vehicle, with it, and with the discs of its rotors too."""
_TABLES = 64
"""Most tables of rays that are kept."""
_FINER = 4
"""Discs are drawn this much finer than pixels, for smooth edges."""
_BOX = 16
"""Corners of what is rendered twice lie on multiples of this [px], so that neighbouring frames share a table of rays."""


class RenderedScene:
    """A scene in one environment per frame that is rendered at once.

    Args:
        scene: The scene.
        vehicle: Who is filmed.
        frames_at_once: How many frames are rendered in one call.
        samples: Rays per pixel of surfaces.
        device: Where rays are traced.
    """

    def __init__(self, scene: Scene, vehicle: Vehicle, frames_at_once: int, samples: int = 4, device: str = "cpu"):
        from airworthy.rendering.shading import ShadingOptions
        from airworthy.scenes import SceneBatch

        self.count = frames_at_once
        self._puppet = puppet(vehicle)
        self.batch = SceneBatch(
            scene,
            3 * frames_at_once,
            device,
            extra_dynamic_instances=self._puppet.placement(),
            extra_shapes=self._puppet.shapes,
            extra_materials=MATERIALS,
        )
        self._options = ShadingOptions(samples=samples, reflections=True)
        self._tables: dict[Projection, RayTable] = {}
        self._outlines = np.zeros((0, 0, 2, 0, 3))

    def set(self, times: Array, position: Array, attitude: Array, joints: Array | None = None) -> None:
        """Set everything at the times of at most `count` frames: (k,) [s], the vehicle's (k, 3) [m] and (k, 4).

        Args:
            times: Of the frames [s], (k,).
            position: Of the vehicle [m], world frame, (k, 3).
            attitude: Of the vehicle, quaternions x, y, z, w, (k, 4).
            joints: Angles of its joints, (k, joints) [rad]; None: it has none, or all are zero.
        """
        # A last chunk is filled up with its last frame: the batch keeps one size.
        rows = np.minimum(np.arange(self.count), len(times) - 1)
        self.batch.advance(np.tile(times[rows], 3))
        bodies, discs = self._puppet.body_count, len(self._puppet.outlines)
        shown = np.array([[False] * (bodies + discs), [True] * bodies + [False] * discs, [True] * (bodies + discs)])
        place, turn = self._puppet.poses(position, attitude, joints)
        self.batch.pose_dynamic_instances(
            np.tile(place[rows], (3, 1, 1)), np.tile(turn[rows], (3, 1, 1)), active=np.repeat(shown, self.count, axis=0)
        )
        if self._puppet.links:
            place, turn = place[:, bodies:], turn[:, bodies:]
        self._outlines = place[:, :, None, None] + frames.rotate(turn[:, :, None, None], self._puppet.outlines)

    def shoot(self, path: CameraPath, rows: slice) -> ArrayF32:
        """Return the linear radiance (k, height, width, 3) that a camera sees at frames `rows` of its path, which `set` has
        staged."""
        position, attitude = path.position[rows], path.attitude[rows]
        if not path.sees_vehicle:
            return self._rendered(path.projection, position, attitude, _EMPTY)
        image = self._rendered(path.projection, position, attitude, _BODY)
        if isinstance(path.projection, Pinhole):
            self._add_discs(image, path.projection, position, attitude)
        return image

    def _rendered(self, projection: Projection, position: Array, attitude: Array, block: int, first: int = 0) -> ArrayF32:
        """Images (k, h, w, 3) of the staged frames from `first` on, in one of the three blocks of environments."""
        from airworthy.rendering.images import render

        if projection not in self._tables:
            if len(self._tables) >= _TABLES:
                self._tables.pop(next(iter(self._tables)))
            self._tables[projection] = projection.rays()
        env = block * self.count + first + np.arange(len(position))
        table = self._tables[projection]
        rendered = render(self.batch, table, position, attitude, env, ("rgb",), self._options, projection=projection)
        return np.asarray(rendered["rgb"], np.float32)

    def _add_discs(self, image: ArrayF32, projection: Pinhole, position: Array, attitude: Array) -> None:
        """Lay the rotors' discs over the images, half transparent: rendered once more where they are, and mixed.

        One frame after the other, since what is rendered of a frame must not depend on its neighbours.
        """
        for frame, outlines in enumerate(self._disc_pixels(projection, position, attitude)):
            box = _box_of(outlines, projection)
            if box is None:
                continue
            left, top, right, bottom = box
            part = replace(projection, width=right - left, height=bottom - top, cx=projection.cx - left, cy=projection.cy - top)
            one = slice(frame, frame + 1)
            solid = self._rendered(part, position[one], attitude[one], _DISCS, frame)[0]
            under = image[frame, top:bottom, left:right]
            under += _filled(outlines - (left, top), part)[..., None] * (solid - under)

    def _disc_pixels(self, projection: Pinhole, position: Array, attitude: Array) -> Array:
        """Pixels of the discs' edges, (k, rotors, 2, points, 2); NaN where a disc is not wholly before the camera."""
        local = frames.rotate_inverse(attitude[:, None, None, None], self._outlines - position[:, None, None, None])
        pixel, _ = projection.project(local)
        behind = (local[..., 2] < 0.02).any(axis=(2, 3))
        pixel[behind] = np.nan
        return pixel


def _box_of(pixels: Array, projection: Pinhole) -> tuple[int, int, int, int] | None:
    """Left, top, right and bottom of what holds all discs [px]; None where none is in the image."""
    points = pixels.reshape(-1, 2)
    points = points[np.isfinite(points).all(1)]
    if not len(points):
        return None
    low = np.maximum(np.floor(points.min(0) / _BOX) * _BOX, 0)
    high = np.minimum(np.ceil(points.max(0) / _BOX) * _BOX, (projection.width, projection.height))
    return (int(low[0]), int(low[1]), int(high[0]), int(high[1])) if (high > low).all() else None


def _filled(outlines: Array, part: Pinhole) -> ArrayF32:
    """Return how much of what is behind each pixel (height, width) discs hide: outlines (rotors, 2, points, 2), outer and
    inner.
    """
    from PIL import Image, ImageDraw

    mask = Image.new("L", (_FINER * part.width, _FINER * part.height))
    draw = ImageDraw.Draw(mask)
    for edges in outlines[np.isfinite(outlines).all(axis=(1, 2, 3))]:
        for outline, opacity in zip(edges, (TIP_OPACITY, DISC_OPACITY), strict=True):
            draw.polygon([(float(u), float(v)) for u, v in _FINER * outline], fill=round(255 * opacity))
    return np.asarray(mask.reduce(_FINER), np.float32) / np.float32(255.0)
