"""One draw of a scenario: obstacles and what they are called, before ground, walls and sky make it a scene."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayLike
from airworthy.core.frames import to_matrix
from airworthy.geometry import Box, Cylinder, Mesh, Shape
from airworthy.scenes.generators.flyingtrust.parameters import CLEAR_RADIUS, COLLISION_RADIUS, MARGIN, SCENARIOS, Scenario
from airworthy.scenes.generators.flyingtrust.voxels import Voxels
from airworthy.scenes.generators.seeding import shape_name
from airworthy.scenes.record import IDENTITY, Instance, Quaternion, Vector3

# -----------------------------------------------------------------------------------------------------------------------------
# Exact distances, rays and grids of boxes and cylinders, in float64: what generators measure their own work with.

_CHUNK = 1 << 19


@dataclass(frozen=True, eq=False)
class Solids:
    """Boxes and cylinders, n of them."""

    round: ArrayBool
    """(n,) cylinder (else box)."""
    position: Array
    """(n, 3) world [m]."""
    rotation: Array
    """(n, 3, 3) local to world."""
    half: Array
    """(n, 3) half sizes [m]; of a cylinder radius, radius, half length."""

    @classmethod
    def of(cls, shapes: Mapping[str, Shape], instances: Iterable[Instance]) -> Solids:
        """Return the colliding instances; shapes other than boxes and cylinders are a programming mistake here."""
        items = [item for item in instances if item.collide]
        half = np.zeros((len(items), 3))
        round_ = np.zeros(len(items), bool)
        for k, item in enumerate(items):
            shape = shapes[item.shape]
            assert isinstance(shape, Box | Cylinder), shape
            round_[k] = isinstance(shape, Cylinder)
            size = shape.half_size if isinstance(shape, Box) else (shape.radius, shape.radius, shape.half_length)
            half[k] = np.array(size) * item.scale
        position = np.array([item.position for item in items], float).reshape(-1, 3)
        attitude = np.array([item.attitude for item in items], float).reshape(-1, 4)
        return cls(round_, position, to_matrix(attitude), half)

    def __len__(self) -> int:
        return len(self.half)

    def _local(self, vectors: Array, about: bool) -> tuple[Array, Array, Array]:
        """Components (m, n) in the solids' frames, of points (`about` their centres) or of directions."""
        x, y, z = vectors[:, 0, None], vectors[:, 1, None], vectors[:, 2, None]
        if about:
            x, y, z = x - self.position[:, 0], y - self.position[:, 1], z - self.position[:, 2]
        r = self.rotation
        a, b, c = (x * r[:, 0, k] + y * r[:, 1, k] + z * r[:, 2, k] for k in range(3))
        return a, b, c

    def distances(self, points: ArrayLike) -> Array:
        """Return the signed distance of every point to every solid [m], (m, n); negative inside."""
        return _signed(self._local(np.asarray(points, float), True), self.half, self.round)

    def distance(self, points: ArrayLike) -> Array:
        """Return the signed distance to the nearest solid [m], (m,); infinite where there is none."""
        p = np.asarray(points, float).reshape(-1, 3)
        if not len(self):
            return np.full(len(p), np.inf)
        # Points times solids at once would take gigabytes in a forest.
        step = max(1, _CHUNK // len(self))
        parts = [self.distances(p[k : k + step]).min(1) for k in range(0, len(p), step)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def within(self, lower: ArrayLike, upper: ArrayLike) -> Solids:
        """Return the solids whose bounding boxes meet a box."""
        keep = (
            np.abs(self.position - 0.5 * (np.asarray(lower) + np.asarray(upper))) <= self._extent + _half(lower, upper)
        ).all(1)
        return Solids(self.round[keep], self.position[keep], self.rotation[keep], self.half[keep])

    def keeps(self, points: ArrayLike, clearance: float) -> bool:
        """Tell whether all points are at least `clearance` from all solids."""
        p = np.asarray(points, float)
        # Most solids are far away, and boxes say so at once.
        near = self.within(p.min(0) - clearance, p.max(0) + clearance)
        return not len(near) or bool(near.distance(p).min() >= clearance)

    @cached_property
    def _extent(self) -> Array:
        return self.half_extent()

    def half_extent(self) -> Array:
        """Return half sizes of the axis-aligned boxes around the solids [m], (n, 3)."""
        boxes = np.abs(self.rotation) @ self.half[:, :, None]
        axis = self.rotation[:, :, 2]
        # A disc's reach along an axis is its radius times the sine of the angle to its normal.
        flat = np.sqrt(np.maximum(1.0 - axis * axis, 0.0))
        rounds = np.abs(axis) * self.half[:, 2:] + flat * self.half[:, :1]
        return np.where(self.round[:, None], rounds, boxes[:, :, 0])

    def near(self, lower: ArrayLike, shape: tuple[int, ...], resolution: float, clearance: float) -> ArrayBool:
        """Return grid cells whose centre lies less than `clearance` from a solid, (nx, ny, nz).

        Args:
            lower: Lower corner of the grid, world [m], (3,).
            shape: Cells along x, y, z.
            resolution: Edge of a cell [m].
            clearance: Distance that must be kept [m].
        """
        origin = np.asarray(lower, float)
        grid = np.zeros(shape, bool)
        reach = self.half_extent() + max(clearance, 0.0)
        first = np.floor((self.position - reach - origin) / resolution).astype(int)
        last = np.ceil((self.position + reach - origin) / resolution).astype(int)
        first, last = np.clip(first, 0, shape), np.clip(last, 0, shape)
        for k in np.flatnonzero((last > first).all(1)).tolist():
            window = tuple(slice(a, b) for a, b in zip(first[k], last[k], strict=True))
            grid[window] |= self._near(k, first[k], last[k], origin, resolution, clearance)
        return grid

    def _near(self, k: int, first: Any, last: Any, origin: Array, resolution: float, clearance: float) -> ArrayBool:
        """Return the same of one solid within its window; axis by axis, since a centre's local coordinates are sums over
        axes.
        """
        axes = [origin[a] + (np.arange(first[a], last[a]) + 0.5) * resolution - self.position[k, a] for a in range(3)]
        turn = self.rotation[k]
        x, y, z = (
            (axes[0] * turn[0, c])[:, None, None] + (axes[1] * turn[1, c])[:, None] + axes[2] * turn[2, c] for c in range(3)
        )
        a, b, c = self.half[k]
        flat = [np.sqrt(x * x + y * y) - a] if self.round[k] else [np.abs(x) - a, np.abs(y) - b]
        # Beyond each face; a cylinder has a round one and two flat ones.
        beyond = [*flat, np.abs(z) - c]
        # Inside only: the squared distance knows no sign.
        if clearance <= 0.0:
            return np.logical_and.reduce([part < clearance for part in beyond])
        square = sum(np.maximum(part, 0.0) ** 2 for part in beyond)
        return np.asarray(square < clearance * clearance)

    def first_hit(self, origin: ArrayLike, directions: ArrayLike, reach: float) -> Array:
        """Return the range along unit rays from one point to the nearest solid [m], (m,); infinite beyond `reach`, 0 from
        inside.

        Args:
            origin: World [m], (3,).
            directions: Unit, world, (m, 3).
            reach: How far to look [m].
        """
        o, d = np.asarray(origin, float), np.asarray(directions, float)
        near = self.within(o - reach, o + reach)
        if not len(near):
            return np.full(len(d), np.inf)
        start = near._local(o[None], True)
        along = near._local(d, False)
        with np.errstate(divide="ignore", invalid="ignore"):
            slabs = [_slab(start[k], along[k], near.half[:, k]) for k in range(3)]
            ring = _ring(start, along, near.half[:, 0])
        # Across: a ring or two slabs; along: a slab for both.
        low = np.where(near.round, ring[0], np.maximum(slabs[0][0], slabs[1][0]))
        high = np.where(near.round, ring[1], np.minimum(slabs[0][1], slabs[1][1]))
        low, high = np.maximum(low, slabs[2][0]), np.minimum(high, slabs[2][1])
        found = np.where((low <= high) & (high >= 0.0), np.maximum(low, 0.0), np.inf).min(1)
        return np.where(found <= reach, found, np.inf)


def _half(lower: ArrayLike, upper: ArrayLike) -> Array:
    return np.asarray(0.5 * (np.asarray(upper, float) - np.asarray(lower, float)))


Parts = tuple[Array, Array, Array]


def _signed(local: Parts, half: Array, round_: ArrayBool) -> Array:
    x, y, z = local
    radial = np.sqrt(x * x + y * y) - half[:, 0]
    a = np.where(round_, radial, np.abs(x) - half[:, 0])
    # A round solid has no second face across.
    b = np.where(round_, -np.inf, np.abs(y) - half[:, 1])
    c = np.abs(z) - half[:, 2]
    u, v, w = np.maximum(a, 0.0), np.maximum(b, 0.0), np.maximum(c, 0.0)
    return np.asarray(np.sqrt(u * u + v * v + w * w) + np.minimum(np.maximum(np.maximum(a, b), c), 0.0))


def _slab(start: Array, along: Array, half: Array) -> tuple[Array, Array]:
    """Return where a ray enters and leaves a slab; a ray along it is always or never inside."""
    a, b = (-half - start) / along, (half - start) / along
    still, inside = along == 0.0, np.abs(start) <= half
    low = np.where(still, np.where(inside, -np.inf, np.inf), np.minimum(a, b))
    high = np.where(still, np.where(inside, np.inf, -np.inf), np.maximum(a, b))
    return low, high


def _ring(start: Parts, along: Parts, radius: Array) -> tuple[Array, Array]:
    """Return where a ray enters and leaves the infinite cylinder around z."""
    a = along[0] ** 2 + along[1] ** 2
    b = start[0] * along[0] + start[1] * along[1]
    c = start[0] ** 2 + start[1] ** 2 - radius**2
    root = np.sqrt(np.maximum(b * b - a * c, 0.0))
    # A ray along the axis never meets the side: it is within it always or never.
    miss, still = b * b < a * c, a < 1e-15
    low, high = (-b - root) / a, (-b + root) / a
    low = np.where(still, np.where(c <= 0.0, -np.inf, np.inf), np.where(miss, np.inf, low))
    high = np.where(still, np.where(c <= 0.0, np.inf, -np.inf), np.where(miss, -np.inf, high))
    return low, high


# -----------------------------------------------------------------------------------------------------------------------------


class ObstacleField(Protocol):
    """What generators measure: exact distance, rays, and cells that are too near."""

    def distance(self, points: ArrayLike) -> Array: ...

    def keeps(self, points: ArrayLike, clearance: float) -> bool: ...

    def first_hit(self, origin: ArrayLike, directions: ArrayLike, reach: float) -> Array:
        """Return the range along unit rays from one point to what is nearest [m], (m,); infinite where there is nothing.

        Args:
            origin: World [m], (3,).
            directions: Unit, world, (m, 3).
            reach: How far to look [m].
        """

    def near(self, lower: ArrayLike, shape: tuple[int, ...], resolution: float, clearance: float) -> ArrayBool:
        """Return grid cells that are less than a distance from an obstacle, (nx, ny, nz).

        Args:
            lower: Lower corner of the grid, world [m], (3,).
            shape: Cells along x, y, z.
            resolution: Edge of a cell [m].
            clearance: Distance that must be kept [m].
        """


@dataclass
class ObstacleLayout:
    """Obstacles of one configuration."""

    scenario: str
    """Key of `SCENARIOS`."""
    shapes: dict[str, Shape] = field(default_factory=dict)
    instances: list[Instance] = field(default_factory=list)
    facts: dict[str, float] = field(default_factory=dict)
    openings: tuple[float, ...] = ()
    """Widths of the openings in the walls at the start's and the goal's end [m]; none: closed."""
    voxels: Voxels | None = None
    """What there is instead of solids; its mesh is made with the scene."""

    @property
    def stated(self) -> Scenario:
        return SCENARIOS[self.scenario]

    def obstacles(self) -> ObstacleField:
        """Return what is measured: the colliding instances, without ground and outer walls."""
        return self.voxels if self.voxels is not None else Solids.of(self.shapes, self.instances)

    def add(
        self,
        shape: Shape,
        position: Vector3,
        semantic: str,
        material: str,
        attitude: Quaternion = IDENTITY,
        name: str = "",
        **more: Any,
    ) -> None:
        """Place a shape; equal solids share one entry, a mesh is stored under `name`.

        Args:
            shape: A solid or mesh.
            position: World [m].
            semantic: Class name.
            material: Name.
            attitude: Quaternion x, y, z, w, local to world.
            name: Of the instance, and of a mesh among the shapes.
            **more: Other fields of `Instance`.
        """
        # Solids of one size are one shape, which a batch keeps once.
        key = shape_name(shape) if not isinstance(shape, Mesh) else name
        self.shapes.setdefault(key, shape)
        where = (float(position[0]), float(position[1]), float(position[2]))
        self.instances.append(Instance(key, where, attitude, materials=(material,), semantic=semantic, name=name, **more))

    def box(self, center: Vector3, size: Vector3, semantic: str, material: str, yaw: float = 0.0, **more: Any) -> None:
        """Add a box of full side lengths `size` [m].

        Args:
            center: World [m].
            size: Full side lengths [m].
            semantic: Class name.
            material: Name.
            yaw: Turn about the vertical [rad].
            **more: Other fields of `Instance`.
        """
        half = (0.5 * float(size[0]), 0.5 * float(size[1]), 0.5 * float(size[2]))
        self.add(Box(half), center, semantic, material, about_z(yaw), **more)

    def upright(self, x: float, y: float, radius: float, height: float, semantic: str, material: str, **more: Any) -> None:
        """Add a cylinder that stands on the ground.

        Args:
            x: World [m].
            y: World [m].
            radius: [m].
            height: [m].
            semantic: Class name.
            material: Name.
            **more: Other fields of `Instance`.
        """
        self.add(Cylinder(float(radius), 0.5 * float(height)), (x, y, 0.5 * height), semantic, material, **more)


def about_z(yaw: float) -> Quaternion:
    """Return the rotation about the vertical."""
    return IDENTITY if yaw == 0.0 else (0.0, 0.0, math.sin(0.5 * yaw), math.cos(0.5 * yaw))


def start_of(stated: Scenario) -> Array:
    """Return where the flight begins [m], (3,)."""
    return np.array([-0.5 * stated.length + MARGIN, 0.0, stated.altitude])


def goal_of(stated: Scenario) -> Array:
    """Return where it ends [m], (3,)."""
    return np.array([0.5 * stated.length - MARGIN, 0.0, stated.altitude])


def straight_clearance(obstacles: ObstacleField, stated: Scenario) -> float:
    """Return the least distance of the straight line from start to goal to an obstacle [m].

    Walks the line by the distance found (which is safe, for a distance changes no faster than one moves), so that nothing is
    missed; exact to 1e-6 m where it decides, below 1.3 times the collision radius.
    """
    start, goal = start_of(stated), goal_of(stated)
    length = float(goal[0] - start[0])
    coarse = np.linspace(start, goal, int(length / 0.05) + 1)
    found = obstacles.distance(coarse)
    best = float(found.min())
    close = coarse[found < best + 0.05]
    fine = close[:, None] + np.linspace(-0.025, 0.025, 51)[:, None] * np.array([1.0, 0.0, 0.0])
    return min(best, float(obstacles.distance(fine.reshape(-1, 3)).min()))


def straight_is_free(obstacles: ObstacleField, stated: Scenario) -> bool:
    """Tell whether a sphere of the collision radius flies straight from start to goal without touching anything."""
    return straight_clearance(obstacles, stated) >= COLLISION_RADIUS


def ends_are_clear(obstacles: ObstacleField, stated: Scenario) -> bool:
    """Tell whether the upright cylinders around start and goal, from floor to ceiling, are clear."""
    heights = np.arange(0.0, stated.ceiling + 0.05, 0.05)
    ends = np.stack([start_of(stated), goal_of(stated)])
    points = np.repeat(ends, len(heights), axis=0)
    points[:, 2] = np.tile(heights, 2)
    # Between two points 0.05 m apart the distance can be less by at most 0.025^2 / (2 * 2) = 0.00016 m.
    return obstacles.keeps(points, CLEAR_RADIUS + 2e-4)
