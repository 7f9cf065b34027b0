"""One draw of a scenario: obstacles and what they are called, before ground, walls and sky make it a scene."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.geometry import Box, Cylinder, Mesh, Shape
from airworthy.scenes.generators.flyingtrust.parameters import CLEAR_RADIUS, COLLISION_RADIUS, MARGIN, SCENARIOS, Scenario
from airworthy.scenes.generators.flyingtrust.solids import Solids
from airworthy.scenes.generators.flyingtrust.voxels import Voxels
from airworthy.scenes.generators.naming import shape_name
from airworthy.scenes.record import IDENTITY, Instance, Quaternion, Vector3

Floats = NDArray[np.float64]


class Obstacles(Protocol):
    """What generators measure: exact distance, rays, and cells that are too near."""

    def distance(self, points: ArrayLike) -> Floats: ...

    def keeps(self, points: ArrayLike, clearance: float) -> bool: ...

    def first_hit(self, origin: ArrayLike, directions: ArrayLike, reach: float) -> Floats: ...

    def near(self, lower: ArrayLike, shape: tuple[int, ...], resolution: float, clearance: float) -> NDArray[np.bool_]: ...


@dataclass
class Layout:
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

    def obstacles(self) -> Obstacles:
        """What is measured: the colliding instances, without ground and outer walls."""
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
        """Place a shape; equal solids share one entry, a mesh is stored under `name`."""
        key = shape_name(shape) if not isinstance(shape, Mesh) else name
        self.shapes.setdefault(key, shape)
        place = (float(position[0]), float(position[1]), float(position[2]))
        self.instances.append(Instance(key, place, attitude, materials=(material,), semantic=semantic, name=name, **more))

    def box(self, center: Vector3, size: Vector3, semantic: str, material: str, yaw: float = 0.0, **more: Any) -> None:
        """A box of full side lengths `size` [m]."""
        half = (0.5 * float(size[0]), 0.5 * float(size[1]), 0.5 * float(size[2]))
        self.add(Box(half), center, semantic, material, about_z(yaw), **more)

    def upright(self, x: float, y: float, radius: float, height: float, semantic: str, material: str, **more: Any) -> None:
        """A cylinder that stands on the ground."""
        self.add(Cylinder(float(radius), 0.5 * float(height)), (x, y, 0.5 * height), semantic, material, **more)


def about_z(yaw: float) -> Quaternion:
    """Rotation about the vertical."""
    return IDENTITY if yaw == 0.0 else (0.0, 0.0, math.sin(0.5 * yaw), math.cos(0.5 * yaw))


def start_of(stated: Scenario) -> Floats:
    """Where the flight begins [m], (3,)."""
    return np.array([-0.5 * stated.length + MARGIN, 0.0, stated.altitude])


def goal_of(stated: Scenario) -> Floats:
    """Where it ends [m], (3,)."""
    return np.array([0.5 * stated.length - MARGIN, 0.0, stated.altitude])


def straight_clearance(obstacles: Obstacles, stated: Scenario) -> float:
    """Least distance of the straight line from start to goal to an obstacle [m].

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


def straight_is_free(obstacles: Obstacles, stated: Scenario) -> bool:
    """Whether a sphere of the collision radius flies straight from start to goal without touching anything."""
    return straight_clearance(obstacles, stated) >= COLLISION_RADIUS


def ends_are_clear(obstacles: Obstacles, stated: Scenario) -> bool:
    """Whether the upright cylinders around start and goal, from floor to ceiling, are clear."""
    heights = np.arange(0.0, stated.ceiling + 0.05, 0.05)
    ends = np.stack([start_of(stated), goal_of(stated)])
    points = np.repeat(ends, len(heights), axis=0)
    points[:, 2] = np.tile(heights, 2)
    # Between two points 0.05 m apart the distance can be less by at most 0.025^2 / (2 * 2) = 0.00016 m.
    return obstacles.keeps(points, CLEAR_RADIUS + 2e-4)
