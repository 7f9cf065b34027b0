"""Meshes that a hall needs besides the solids: boxes with one picture per face, turned profiles, leaves, padded boxes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.frames import from_matrix, multiply
from airworthy.geometry import Box, Cylinder, Mesh, Shape, Sphere
from airworthy.scenes.record import IDENTITY, Instance, Material, Quaternion, SpotLight, Texture, Vector3
from airworthy.scenes.textures import procedural

# Outward normal and the direction of the picture's right edge; "up" follows from them.
_SIDES = (
    ((1, 0, 0), (0, 1, 0)),
    ((-1, 0, 0), (0, -1, 0)),
    ((0, 1, 0), (-1, 0, 0)),
    ((0, -1, 0), (1, 0, 0)),
    ((0, 0, 1), (1, 0, 0)),
    ((0, 0, -1), (1, 0, 0)),
)
_CORNERS = ((-1, -1), (1, -1), (1, 1), (-1, 1))


def unwrapped_box(size: tuple[float, float, float]) -> Mesh:
    """Return a box of full side lengths `size` [m] whose every face shows the whole texture, upright on the sides."""
    half = 0.5 * np.asarray(size, float)
    vertices: list[Array] = []
    normals: list[Array] = []
    uv: list[tuple[float, float]] = []
    faces: list[tuple[int, int, int]] = []
    for normal, right in _SIDES:
        n, r = np.array(normal, float), np.array(right, float)
        up = np.cross(n, r)
        first = len(vertices)
        for a, b in _CORNERS:
            vertices.append(half * (n + a * r + b * up))
            normals.append(n)
            uv.append((0.5 + 0.5 * a, 0.5 - 0.5 * b))
        faces += [(first, first + 1, first + 2), (first, first + 2, first + 3)]
    return Mesh(np.array(vertices), np.array(faces), np.array(normals), np.array(uv))


def turned_profile(profile: list[tuple[float, float]], segments: int = 24) -> Mesh:
    """Return a surface of revolution about z.

    Args:
        profile: (radius, height) [m] from bottom to top; a radius of 0 closes an end.
        segments: Around the axis.
    """
    radius, height = np.array(profile, float).T
    # The seam has two vertices, since its texture coordinates differ by a whole turn.
    angle = 2.0 * math.pi * np.arange(segments + 1) / segments
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    vertices = np.concatenate([np.c_[r * ring, np.full(len(ring), h)] for r, h in zip(radius, height, strict=True)])
    # By length along the profile, so that a texture is not stretched where it bulges.
    arc = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(radius), np.diff(height)))])
    uv = np.stack(np.broadcast_arrays(np.linspace(0, 1, segments + 1)[None, :], 1.0 - (arc / arc[-1])[:, None]), -1).reshape(
        -1, 2
    )
    faces = []
    count = segments + 1
    for row in range(len(profile) - 1):
        for column in range(segments):
            a, b = row * count + column, row * count + column + 1
            # On the axis a quad is a triangle.
            if radius[row] > 0:
                faces.append((a, b, b + count))
            if radius[row + 1] > 0:
                faces.append((a, b + count, a + count))
    return Mesh(vertices, np.array(faces), _smooth_profile(radius, height, ring), uv)


def _smooth_profile(radius: Array, height: Array, ring: Array) -> Array:
    """Return normals of a surface of revolution: across the mean of the adjoining pieces of the profile."""
    step = np.stack([np.diff(radius), np.diff(height)], axis=1)
    step /= np.maximum(np.linalg.norm(step, axis=1, keepdims=True), 1e-12)
    slope = np.vstack([step[:1], step[:-1] + step[1:], step[-1:]])
    slope /= np.maximum(np.linalg.norm(slope, axis=1, keepdims=True), 1e-12)
    rows = [np.c_[dz * ring, np.full(len(ring), -dr)] for dr, dz in slope]
    return np.concatenate(rows)


def foliage(radius: float, count: int, size: float, seed: int) -> Mesh:
    """Return a bunch of leaf quads about the origin, denser towards the rim.

    Args:
        radius: Of the bunch [m].
        count: Leaves.
        size: Length of a leaf [m].
        seed: Variant.
    """
    rng = np.random.default_rng([seed, count])
    direction = rng.standard_normal((count, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    # Leaves hang mostly above the middle, a few below.
    direction[:, 2] = np.abs(direction[:, 2]) * 1.1 - 0.25
    center = direction * radius * rng.uniform(0.35, 1.0, (count, 1)) ** 0.5
    axis = direction + 0.7 * rng.standard_normal((count, 3))
    axis /= np.linalg.norm(axis, axis=1, keepdims=True)
    side = np.cross(axis, rng.standard_normal((count, 3)))
    side /= np.linalg.norm(side, axis=1, keepdims=True)
    length = size * rng.uniform(0.6, 1.2, (count, 1))
    corners = [
        center - 0.5 * length * axis,
        center + 0.22 * length * side,
        center + 0.5 * length * axis,
        center - 0.22 * length * side,
    ]
    vertices = np.stack(corners, axis=1).reshape(-1, 3)
    first = 4 * np.arange(count)[:, None]
    faces = np.concatenate([first + np.array([0, 1, 2]), first + np.array([0, 2, 3])], axis=1).reshape(-1, 3)
    normals = np.repeat(np.cross(axis, side), 4, axis=0)
    uv = np.tile([[0.5, 1.0], [1.0, 0.5], [0.5, 0.0], [0.0, 0.5]], (count, 1))
    tint = np.repeat(rng.uniform(0.7, 1.25, (count, 1)), 4, axis=0) * np.array([[1.0, 1.0, 0.9]])
    return Mesh(vertices, faces, normals, uv, np.c_[np.clip(tint, 0, 1), np.ones(4 * count)])


# ---- Collects what a hall is made of: shapes are shared by size, textures by kind, instances are named ----------------------

TEXTURE_SIZE = 256
"""Side of the halls' textures in pixels."""


def turned(yaw: float) -> Quaternion:
    """Return the rotation about the vertical."""
    return (0.0, 0.0, math.sin(0.5 * yaw), math.cos(0.5 * yaw))


def along(direction: Sequence[float], yaw: float = 0.0) -> Quaternion:
    """Return the rotation that lays local z along a direction; local x stays as near as it can to the heading `yaw`."""
    z = np.asarray(direction, float) / np.linalg.norm(direction)
    x = np.array([math.cos(yaw), math.sin(yaw), 0.0])
    # Looking along the heading, any other direction serves; a cross product of near parallels would be noise.
    if abs(float(x @ z)) > 0.99:
        x = np.array([0.0, 0.0, 1.0])
    y = np.cross(z, x)
    y /= np.linalg.norm(y)
    q = from_matrix(np.stack([np.cross(y, z), y, z], axis=1))
    return (float(q[0]), float(q[1]), float(q[2]), float(q[3]))


@dataclasses.dataclass
class Builder:
    """What has been collected so far. Every adding method takes world metres and radians."""

    shapes: dict[str, Shape] = dataclasses.field(default_factory=dict)
    materials: dict[str, Material] = dataclasses.field(default_factory=dict)
    textures: dict[str, Texture] = dataclasses.field(default_factory=dict)
    instances: list[Instance] = dataclasses.field(default_factory=list)
    lights: list[SpotLight] = dataclasses.field(default_factory=list)
    origin: Vector3 = (0.0, 0.0, 0.0)
    """Where the piece being built stands; `heading` turns it."""
    heading: float = 0.0

    def at(self, x: float, y: float, z: float = 0.0, yaw: float = 0.0) -> Builder:
        """Return the same collection with another place to build at.

        Args:
            x: World [m].
            y: World [m].
            z: World [m].
            yaw: Heading of the piece [rad].
        """
        return dataclasses.replace(self, origin=(x, y, z), heading=yaw)

    def material(self, name: str, texture: str = "", seed: int = 0, **values: Any) -> str:
        """Name a material, with a procedural base colour map if a kind is given; defined once, whoever asks first.

        Args:
            name: Of the material.
            texture: Kind of `procedural` map; empty: none.
            seed: Of the map.
            **values: Fields of `Material`.
        """
        if name not in self.materials:
            if texture:
                key = f"{texture}_{seed}" if seed else texture
                self.textures.setdefault(key, procedural(texture, TEXTURE_SIZE, seed))
                values["base_color_map"] = key
                values.setdefault("base_color", (1.0, 1.0, 1.0, 1.0))
            self.materials[name] = Material(**values)
        return name

    def box(
        self, center: Vector3, size: Vector3, material: str, semantic: str = "furniture", yaw: float = 0.0, **more: Any
    ) -> None:
        """Add a box of full side lengths `size`.

        Args:
            center: From where the piece stands, turned with it [m].
            size: Full side lengths [m].
            material: Name.
            semantic: Class name.
            yaw: Turn about the vertical, besides the piece's own [rad].
            **more: Other fields of `Instance`.
        """
        sides = (float(size[0]), float(size[1]), float(size[2]))
        shape = Box((0.5 * sides[0], 0.5 * sides[1], 0.5 * sides[2]))
        self._add(f"box_{_key(sides)}", shape, center, turned(yaw), material, semantic, more)

    def wrapped(
        self, center: Vector3, size: Vector3, material: str, semantic: str = "furniture", yaw: float = 0.0, **more: Any
    ) -> None:
        """Add a box on whose every face the texture lies once.

        Args:
            center: From where the piece stands, turned with it [m].
            size: Full side lengths [m].
            material: Name.
            semantic: Class name.
            yaw: Turn about the vertical, besides the piece's own [rad].
            **more: Other fields of `Instance`.
        """
        sides = (float(size[0]), float(size[1]), float(size[2]))
        name = f"wrapped_{_key(sides)}"
        mesh = self.shapes.get(name) or unwrapped_box(sides)
        self._add(name, mesh, center, turned(yaw), material, semantic, more)

    def upright(
        self, base: Vector3, radius: float, height: float, material: str, semantic: str = "furniture", **more: Any
    ) -> None:
        """Add a cylinder that stands on its base's centre.

        Args:
            base: Centre of the lower face, from where the piece stands, turned with it [m].
            radius: [m].
            height: [m].
            material: Name.
            semantic: Class name.
            **more: Other fields of `Instance`.
        """
        center = (base[0], base[1], base[2] + 0.5 * height)
        shape = Cylinder(radius, 0.5 * height)
        self._add(f"cylinder_{_key((radius, height))}", shape, center, IDENTITY, material, semantic, more)

    def rod(self, start: Vector3, end: Vector3, radius: float, material: str, semantic: str = "furniture", **more: Any) -> None:
        """Add a cylinder from one point to another.

        Args:
            start: Centre of one face, from where the piece stands, turned with it [m].
            end: Centre of the other, alike.
            radius: [m].
            material: Name.
            semantic: Class name.
            **more: Other fields of `Instance`.
        """
        a, b = np.asarray(start, float), np.asarray(end, float)
        length = round(float(np.linalg.norm(b - a)), 4)
        shape = Cylinder(radius, 0.5 * length)
        center = (0.5 * (a + b)).tolist()
        self._add(
            f"cylinder_{_key((radius, length))}",
            shape,
            (center[0], center[1], center[2]),
            along(b - a),
            material,
            semantic,
            more,
        )

    def beam(
        self,
        start: Vector3,
        end: Vector3,
        width: float,
        depth: float,
        material: str,
        semantic: str = "furniture",
        facing: float = 0.0,
        **more: Any,
    ) -> None:
        """Add a straight bar of rectangular section from one point to another.

        Local x stays as near as it can to `facing`, or points up where the bar lies along that.

        Args:
            start: Centre of one end, from where the piece stands, turned with it [m].
            end: Centre of the other, alike.
            width: Of the section, along the bar's local x [m].
            depth: Along its local y [m].
            material: Name.
            semantic: Class name.
            facing: Heading [rad].
            **more: Other fields of `Instance`.
        """
        a, b = np.asarray(start, float), np.asarray(end, float)
        length = round(float(np.linalg.norm(b - a)), 4)
        center = (0.5 * (a + b)).tolist()
        shape = Box((0.5 * width, 0.5 * depth, 0.5 * length))
        middle = (center[0], center[1], center[2])
        self._add(f"box_{_key((width, depth, length))}", shape, middle, along(b - a, facing), material, semantic, more)

    def ball(self, center: Vector3, radius: float, material: str, semantic: str = "furniture", **more: Any) -> None:
        """Add a ball.

        Args:
            center: From where the piece stands, turned with it [m].
            radius: [m].
            material: Name.
            semantic: Class name.
            **more: Other fields of `Instance`.
        """
        self._add(f"sphere_{_key((radius,))}", Sphere(radius), center, IDENTITY, material, semantic, more)

    def mesh(
        self,
        name: str,
        mesh: Mesh,
        position: Vector3,
        material: str,
        semantic: str = "furniture",
        yaw: float = 0.0,
        **more: Any,
    ) -> None:
        """Add an instance of a mesh that is stored once under its name.

        Args:
            name: Among the shapes.
            mesh: In its own frame [m].
            position: From where the piece stands, turned with it [m].
            material: Name.
            semantic: Class name.
            yaw: Turn about the vertical, besides the piece's own [rad].
            **more: Other fields of `Instance`.
        """
        self._add(name, mesh, position, turned(yaw), material, semantic, more)

    def lamp(self, position: Vector3, intensity: float, color: Vector3 = (1.0, 0.97, 0.92), reach: float = 0.0) -> None:
        """Add a shaded lamp that shines downwards: a bare one would burn a spot into the ceiling.

        Args:
            position: From where the piece stands, turned with it [m].
            intensity: As of `SpotLight`.
            color: Linear RGB.
            reach: As of `SpotLight` [m].
        """
        self.lights.append(SpotLight(self._world(position), (0.0, 0.0, -1.0), 0.8, 1.5, color, intensity, reach))

    def _world(self, position: Sequence[float]) -> Vector3:
        c, s = math.cos(self.heading), math.sin(self.heading)
        x, y, z = (float(value) for value in position)
        return (
            round(self.origin[0] + c * x - s * y, 6),
            round(self.origin[1] + s * x + c * y, 6),
            round(self.origin[2] + z, 6),
        )

    def _add(
        self,
        name: str,
        shape: Shape,
        position: Sequence[float],
        attitude: Quaternion,
        material: str,
        semantic: str,
        more: dict[str, Any],
    ) -> None:
        if material not in self.materials:
            raise KeyError(f"material {material!r} is used before it is defined")
        self.shapes.setdefault(name, shape)
        where, turn = self._world(position), _product(turned(self.heading), attitude)
        self.instances.append(Instance(name, where, turn, 1.0, (material,), semantic, **more))


def _key(values: Sequence[float]) -> str:
    return "x".join(f"{value:.4g}" for value in values)


def _product(a: Quaternion, b: Quaternion) -> Quaternion:
    """Hamilton product, rounded so that a scene file holds short numbers."""
    x, y, z, w = (round(float(value), 9) for value in multiply(a, b))
    return (x, y, z, w)
