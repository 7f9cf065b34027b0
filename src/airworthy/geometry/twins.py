"""Readable float64 twins of the distance, sweep and occupancy queries: brute force over every instance and triangle.

They share no formula with the kernels where another one exists: solids by their signed distance functions, the inside of a
mesh by solid angles, sweeps by closed forms (points and triangles) or by halving (everything else, since distances to convex
bodies are convex along a straight path).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from airworthy.core.arrays import Array, ArrayBool
from airworthy.geometry.placement import Box, Capsule, Cylinder, Mesh, Placement, Shape, Sphere


def rotation(attitude: Array) -> Array:
    """Return the matrix (3, 3), local to world, of a unit quaternion x, y, z, w."""
    x, y, z, w = attitude
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def triangles_of(mesh: Mesh) -> Array:
    """Return corners (m, 3, 3) of a mesh's triangles."""
    return mesh.vertices.astype(np.float64)[mesh.faces]


def nearest_on_edge(points: Array, a: Array, b: Array) -> Array:
    """Return the nearest point of segments a-b, broadcast, (..., 3).

    Args:
        points: (..., 3) [m].
        a: One end, (..., 3) [m], broadcast against the points.
        b: The other end, alike.
    """
    e = b - a
    # An edge of length 0 has one nearest point, its end: t is then 0 over something tiny.
    length = np.maximum(np.sum(e * e, -1), 1e-300)
    t = np.clip(np.sum((points - a) * e, -1) / length, 0.0, 1.0)
    return a + e * t[..., None]


def nearest_on_triangles(points: Array, triangles: Array) -> Array:
    """Return the nearest point of every triangle to every point, (n, m, 3)."""
    p = points[:, None]
    a, b, c = triangles[:, 0], triangles[:, 1], triangles[:, 2]
    normal = np.cross(b - a, c - a)
    area = np.sum(normal * normal, -1)
    height = np.sum((p - a) * normal, -1) / np.maximum(area, 1e-300)
    foot = p - normal * height[..., None]
    # A degenerate triangle has no inside; its edges answer for it.
    inside = area > 0.0
    for u, v in ((a, b), (b, c), (c, a)):
        inside = inside & (np.sum(np.cross(v - u, foot - u) * normal, -1) >= 0.0)
    candidates = [nearest_on_edge(p, u, v) for u, v in ((a, b), (b, c), (c, a))]
    distance = np.stack([np.sum((p - x) ** 2, -1) for x in candidates])
    # The nearest of the three edges is right wherever the foot lies outside.
    best = np.take_along_axis(np.stack(candidates), distance.argmin(0)[None, ..., None], 0)[0]
    return np.where(inside[..., None], foot, best)


def triangle_distance(points: Array, triangles: Array) -> Array:
    """Return the distance of points (n, 3) to the nearest of triangles (m, 3, 3) [m], (n,)."""
    if not len(triangles):
        return np.full(len(points), np.inf)
    return np.sqrt(np.sum((nearest_on_triangles(points, triangles) - points[:, None]) ** 2, -1)).min(1)


def winding_number(points: Array, triangles: Array) -> Array:
    """Return how often a closed surface encloses points: sum of solid angles / 4 pi (Van Oosterom and Strackee, 1983), (n,)."""
    a, b, c = (triangles[:, k] - points[:, None] for k in range(3))
    la, lb, lc = (np.linalg.norm(x, axis=-1) for x in (a, b, c))
    volume = np.sum(a * np.cross(b, c), -1)
    flat = la * lb * lc + np.sum(a * b, -1) * lc + np.sum(b * c, -1) * la + np.sum(c * a, -1) * lb
    # arctan2 is half of each solid angle, so 4 pi becomes 2 pi.
    return np.arctan2(volume, flat).sum(1) / (2.0 * np.pi)


def solid_distance(shape: Shape, points: Array) -> Array:
    """Return the signed distance of points in the solid's frame (n, 3) to its surface [m], (n,)."""
    if isinstance(shape, Sphere):
        return np.linalg.norm(points, axis=-1) - shape.radius
    if isinstance(shape, Capsule):
        z = np.clip(points[:, 2], -shape.half_length, shape.half_length)
        return np.linalg.norm(points - np.stack([0 * z, 0 * z, z], -1), axis=-1) - shape.radius
    if isinstance(shape, Box):
        q = np.abs(points) - np.array(shape.half_size)
    else:
        assert isinstance(shape, Cylinder)
        q = np.stack([np.hypot(points[:, 0], points[:, 1]) - shape.radius, np.abs(points[:, 2]) - shape.half_length], -1)
    # Outside the first term counts, inside the second: never both.
    return np.linalg.norm(np.maximum(q, 0.0), axis=-1) + np.minimum(q.max(-1), 0.0)


def shape_distance(shape: Shape, points: Array, closed: bool = False) -> Array:
    """Return the distance of points in the shape's frame [m], (n,): signed for solids and closed meshes.

    Args:
        shape: The shape.
        points: In its frame [m], (n, 3).
        closed: Whether a mesh bounds a volume; the distance inside is then negative.
    """
    if not isinstance(shape, Mesh):
        return solid_distance(shape, points)
    triangles = triangles_of(shape)
    distance = triangle_distance(points, triangles)
    return np.where(winding_number(points, triangles) > 0.5, -distance, distance) if closed else distance


def to_local(placement: Placement, k: int | np.intp, points: Array) -> Array:
    """Return world points (n, 3) in instance k's frame, in which its shape has its own size.

    Args:
        placement: Instances.
        k: Which of them.
        points: World [m], (n, 3).
    """
    return (points - placement.position[k]) @ rotation(placement.attitude[k]) / placement.scale[k]


def clearance(shapes: Sequence[Shape], closed: Sequence[bool], placement: Placement, points: Array) -> Array:
    """Return signed distances of world points (n, 3) to every instance [m], (n, instances); +inf for those that do not collide.

    Args:
        shapes: What the instances are placements of.
        closed: Whether each shape, if it is a mesh, bounds a volume.
        placement: Instances.
        points: World [m], (n, 3).
    """
    out = np.full((len(points), len(placement)), np.inf)
    for k in np.flatnonzero(placement.collide):
        number = placement.shape[k]
        local = to_local(placement, k, points)
        out[:, k] = placement.scale[k] * shape_distance(shapes[number], local, closed[number])
    return out


def first_contact(distance: Callable[[Array], Array], count: int, halvings: int = 48) -> Array:
    """Return the first fraction in [0, 1] at which a convex distance of the fraction falls to zero, else +inf, (count,).

    Args:
        distance: From fractions (count,) to distances (count,) [m], convex in each.
        count: How many are asked at once.
        halvings: Steps of each of the two searches, for the least distance and for the zero before it.
    """
    low, high = np.zeros(count), np.ones(count)
    for _ in range(halvings):
        a, b = low + (high - low) / 3.0, high - (high - low) / 3.0
        right = distance(a) > distance(b)
        low, high = np.where(right, a, low), np.where(right, high, b)
    least = 0.5 * (low + high)
    least = np.where(distance(np.ones(count)) < distance(least), 1.0, least)
    hit = distance(least) <= 0.0
    low, high = np.zeros(count), least.copy()
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        touching = distance(middle) <= 0.0
        low, high = np.where(touching, low, middle), np.where(touching, middle, high)
    return np.where(distance(np.zeros(count)) <= 0.0, 0.0, np.where(hit, high, np.inf))


def sphere_sweep_triangle(start: Array, end: Array, radius: float, triangle: Array) -> float:
    """Return the first fraction at which a moving sphere touches a triangle (3, 3), else +inf, in closed form.

    The sphere's centre enters the triangle grown by the radius: two faces, three edges as cylinders, three corners as spheres.

    Args:
        start: Centre at fraction 0 [m], (3,).
        end: Centre at fraction 1 [m], (3,).
        radius: Of the sphere [m].
        triangle: Corners [m], (3, 3).
    """
    if triangle_distance(start[None], triangle[None])[0] <= radius:
        return 0.0
    path, found = end - start, [np.inf]
    normal = np.cross(triangle[1] - triangle[0], triangle[2] - triangle[0])
    normal = normal / np.linalg.norm(normal)
    slope, height = normal @ path, normal @ (start - triangle[0])
    for side in (-radius, radius):
        if slope != 0.0:
            t = (side - height) / slope
            foot = start + t * path - side * normal
            if np.linalg.norm(nearest_on_triangles(foot[None], triangle[None])[0, 0] - foot) < 1e-12:
                found.append(t)
    for k in range(3):
        a, edge = triangle[k], triangle[(k + 1) % 3] - triangle[k]
        found.append(_enter(start - a, path, radius))
        along = edge / np.linalg.norm(edge)
        p, v = start - a - along * ((start - a) @ along), path - along * (path @ along)
        t = _enter(p, v, radius)
        if np.isfinite(t) and 0.0 <= (start + t * path - a) @ along <= np.linalg.norm(edge):
            found.append(t)
    return min((t for t in found if 0.0 <= t <= 1.0), default=np.inf)


def _enter(p: Array, v: Array, radius: float) -> float:
    """Return when |p + t v| first equals the radius, else +inf."""
    a, b, c = v @ v, p @ v, p @ p - radius * radius
    if a == 0.0 or b * b < a * c:
        return np.inf
    return float((-b - np.sqrt(b * b - a * c)) / a)


def sweep(
    shapes: Sequence[Shape], placement: Placement, start: Array, end: Array, axis: Array, radius: Array, cuts: int = 200
) -> Array:
    """Return the first contact of moving capsules with the surfaces of every instance, (n, instances), +inf without one.

    Args:
        shapes: The batch's shapes.
        placement: Instances.
        start: Centre at fraction 0, world [m], (n, 3).
        end: Centre at fraction 1, (n, 3).
        axis: Half of the capsule's core, world [m], (n, 3); zero for a sphere.
        radius: [m], (n,).
        cuts: Halvings of the search for the nearest point of the core.
    """
    out = np.full((len(start), len(placement)), np.inf)
    for k in np.flatnonzero(placement.collide):
        shape, scale = shapes[placement.shape[k]], placement.scale[k]
        # One triangle at a time: only a convex body's distance along a line is convex.
        bodies = list(triangles_of(shape)[:, None]) if isinstance(shape, Mesh) else [shape]
        for body in bodies:
            gap = _gap(body, placement, k, start, end, axis, radius / scale, cuts)
            out[:, k] = np.minimum(out[:, k], first_contact(gap, len(start)))
    return out


def blocked(shapes: Sequence[Shape], placement: Placement, start: Array, end: Array, through: Array) -> ArrayBool:
    """Tell whether anything that rays see stands between two points but the group that each passes through, (n,).

    A hair is swept, so that solids are met by their distances, where the kernel intersects rays. Segments wholly inside of a
    solid are blocked here, and not there, where only surfaces count.

    Args:
        shapes: The batch's shapes.
        placement: Instances.
        start: World [m], (n, 3).
        end: World [m], (n, 3).
        through: Group that is not seen, (n,); 0: none.
    """
    seen = replace(placement, collide=placement.visible)
    met = sweep(shapes, seen, start, end, np.zeros(3), np.full(len(start), _HAIR))
    own = (placement.group > 0) & (placement.group == np.asarray(through)[:, None])
    return np.asarray((np.isfinite(met) & ~own).any(1))


_HAIR = 1e-7
"""Radius [m] of the hair that `blocked` sweeps: triangles have no inside, and no point is exactly on one."""


def _gap(
    body: Shape | Array, placement: Placement, k: int | np.intp, start: Array, end: Array, axis: Array, radius: Array, cuts: int
) -> Callable[[Array], Array]:
    """Distance of the moving core to one convex body less the radius, as a function of the fraction, in the body's frame."""

    def point(p: Array) -> Array:
        local = to_local(placement, k, p)
        return triangle_distance(local, body) if isinstance(body, np.ndarray) else solid_distance(body, local)

    def gap(t: Array) -> Array:
        centre = start + (end - start) * t[:, None]
        if not axis.any():
            return point(centre) - radius
        # The nearest point of the core is searched for as well, since its distance to a convex body is convex along it.
        low, high = -np.ones(len(t)), np.ones(len(t))
        for _ in range(cuts):
            a, b = low + (high - low) / 3.0, high - (high - low) / 3.0
            right = point(centre + axis * a[:, None]) > point(centre + axis * b[:, None])
            low, high = np.where(right, a, low), np.where(right, high, b)
        return point(centre + axis * (0.5 * (low + high))[:, None]) - radius

    return gap
