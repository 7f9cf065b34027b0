"""Impulses at spheres on links, through the tree: what a push at one link does to all coordinates, and no energy from it.

Coordinates are u = (velocity of the root, its angular velocity, joint rates), in root axes. The kinetic energy is u^T H u / 2,
H by the composite-rigid-body algorithm (Featherstone, Rigid Body Dynamics Algorithms, 2008, chapter 6); a push p along a
direction at a point with the row J of that point's velocity changes u by H^-1 J^T p.

Pushes p >= 0 against approach by projected Gauss-Seidel, which only ever lowers the energy; rebound scales them by as much
as Newton's coefficient says and energy allows; friction takes from sliding what Coulomb's law and stopping allow. What is below
the surface is lifted out little by little, paid for with the energy that contact took in the same step.
"""

from __future__ import annotations

from typing import Any

from airworthy.core.arrays import Scalar, Vector
from airworthy.core.ops import maximum, minimum, sqrt, where
from airworthy.core.vectors import add, cross, dot, scale, sub
from airworthy.dynamics.articulated.equations import (
    BodyFrame,
    kinematics,
    matrix_vector,
    positions,
    turned_inertia,
    velocities,
)
from airworthy.dynamics.articulated.factor import factored
from airworthy.dynamics.articulated.step import into_axes, to_world
from airworthy.dynamics.articulated.tree import TreeNumbers, TreeStructure

__all__ = ["carried", "contact_tree", "response", "sensed_change", "sphere_offsets"]

SWEEPS = 4
"""Passes over the spheres."""
SLOP = 2e-4
"""Depth that is left, to keep the contact [m]."""
LIFT = 0.2
"""Share of a greater depth that a step takes back, at most."""
BOUNCE = 0.1
"""Approach above which a body rebounds [m/s], as of rigid vehicles."""
_PLACES = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))


def contact_tree(
    structure: TreeStructure, model: TreeNumbers, q: Vector, spheres: tuple[Vector, ...], carriers: tuple[int, ...]
) -> tuple[Vector, Vector, Vector, Vector, Vector]:
    """Return the factors of H (below the diagonal of L by rows, one over D), places of the spheres, and axes and places of the
    joints, all in root axes from the root's point [m].

    Args:
        structure: Of the tree.
        model: Its numbers.
        q: Joint angles [rad].
        spheres: Per sphere its place in its body's frame, and its radius.
        carriers: Their bodies.
    """
    frames = kinematics(structure, model, q)
    places = positions(structure, frames)
    matrix = _inertia_matrix(structure, model, frames)
    lower, pivots = _factors(matrix, structure.fixed_base)
    at = tuple(
        add(places[body], matrix_vector(frames[body].rotation, sphere[:3]))
        for body, sphere in zip(carriers, spheres, strict=True)
    )
    flat = tuple(x for row in at for x in row)
    axes = tuple(x for frame in frames[1:] for x in frame.axis)
    return lower, pivots, flat, axes, tuple(x for place in places[1:] for x in place)


def sphere_offsets(
    structure: TreeStructure,
    model: TreeNumbers,
    attitude: Vector,
    q: Vector,
    spheres: tuple[Vector, ...],
    carriers: tuple[int, ...],
) -> Vector:
    """Return where the centres of spheres are from the root's point, world axes [m], three numbers each.

    Args:
        structure: Of the tree.
        model: Its numbers.
        attitude: Of the root, x, y, z, w, root to world.
        q: Joint angles [rad].
        spheres: Per sphere its place in its body's frame, and its radius.
        carriers: Their bodies.
    """
    frames = kinematics(structure, model, q)
    places = positions(structure, frames)
    found: list[Scalar] = []
    for body, sphere in zip(carriers, spheres, strict=True):
        found += to_world(attitude, add(places[body], matrix_vector(frames[body].rotation, sphere[:3])))
    return tuple(found)


def _inertia_matrix(structure: TreeStructure, model: TreeNumbers, frames: tuple[BodyFrame, ...]) -> list[list[Scalar]]:
    """H, of which the lower triangle is filled."""
    count = len(frames)
    masses: list[Scalar] = [body.mass for body in model.bodies]
    firsts = [scale(matrix_vector(f.rotation, b.center), b.mass) for f, b in zip(frames, model.bodies, strict=True)]
    seconds = []
    for frame, body, h in zip(frames, model.bodies, firsts, strict=True):
        x, y, z = matrix_vector(frame.rotation, body.center)
        about = (h[1] * y + h[2] * z, h[0] * x + h[2] * z, h[0] * x + h[1] * y)
        mixed = (-(h[0] * y), -(h[0] * z), -(h[1] * z))
        inner = turned_inertia(frame.rotation, body.inertia)
        seconds.append(tuple(a + b for a, b in zip(inner, (*about, *mixed), strict=True)))
    # Inward: composites about their own points.
    for index in range(count - 1, 0, -1):
        parent, d = structure.parents[index - 1], frames[index].offset
        m, h = masses[index], firsts[index]
        # I about another point: I + 2 (d.h) E - (d h^T + h d^T) + m (d.d E - d d^T), for the point at -d.
        both = 2.0 * dot(d, h) + m * dot(d, d)
        moved = []
        for k, (r, c) in enumerate(_PLACES):
            off = d[r] * h[c] + h[r] * d[c] + m * d[r] * d[c]
            moved.append(seconds[index][k] + (both - off if r == c else -off))
        masses[parent] = masses[parent] + m
        firsts[parent] = add(firsts[parent], add(h, scale(d, m)))
        seconds[parent] = tuple(a + b for a, b in zip(seconds[parent], moved, strict=True))
    size = 5 + count
    matrix: list[list[Scalar]] = [[0.0] * size for _ in range(size)]
    m, h, inertia = masses[0], firsts[0], seconds[0]
    for k in range(3):
        matrix[k][k] = m
    # Angular momentum of a moving root: h x v.
    for r, crossed in enumerate(((0.0, -h[2], h[1]), (h[2], 0.0, -h[0]), (-h[1], h[0], 0.0))):
        for c in range(3):
            matrix[3 + r][c] = crossed[c]
    for k, (r, c) in enumerate(_PLACES):
        matrix[3 + max(r, c)][3 + min(r, c)] = inertia[k]
    for index in range(1, count):
        axis, line = frames[index].axis, 5 + index
        xx, yy, zz, xy, xz, yz = seconds[index]
        spin = (dot((xx, xy, xz), axis), dot((xy, yy, yz), axis), dot((xz, yz, zz), axis))
        push = cross(axis, firsts[index])
        matrix[line][line] = dot(axis, spin) + model.hinges[index - 1].armature
        above = index
        while above:
            spin, above = add(spin, cross(frames[above].offset, push)), structure.parents[above - 1]
            if above:
                matrix[line][5 + above] = dot(frames[above].axis, spin)
        for k in range(3):
            matrix[line][k], matrix[line][3 + k] = push[k], spin[k]
    return matrix


def _factors(matrix: list[list[Scalar]], fixed_base: bool) -> tuple[Vector, Vector]:
    """L D L^T; a root that is held takes no part."""
    lower, inverse = factored(matrix, 6 if fixed_base else 0)
    return tuple(lower[i][j] for i in range(len(matrix)) for j in range(i)), tuple(inverse)


def response(
    place: Vector, direction: Vector, carried: Vector, axes: Vector, places: Vector, lower: Vector, pivots: Vector
) -> tuple[Vector, Vector, Scalar]:
    """Return a point's row J along a direction, H^-1 J^T, and J H^-1 J^T [1/kg].

    Args:
        place: Of the point from the root's [m].
        direction: Unit length.
        carried: Per joint 1 where it carries the point, else 0.
        axes: Of the joints, three numbers each.
        places: Of the joints, alike [m].
        lower: Of `contact_tree`.
        pivots: Of `contact_tree`.
    """
    row = [*direction, *cross(place, direction)]
    for k, mark in enumerate(carried):
        axis, at = axes[3 * k : 3 * k + 3], places[3 * k : 3 * k + 3]
        row.append(mark * dot(cross(axis, sub(place, at)), direction))
    n, x = len(row), list(row)
    for i in range(n):
        for k in range(i):
            x[i] = x[i] - lower[i * (i - 1) // 2 + k] * x[k]
    x = [value * inv for value, inv in zip(x, pivots, strict=True)]
    for i in range(n - 2, -1, -1):
        for k in range(i + 1, n):
            x[i] = x[i] - lower[k * (k - 1) // 2 + i] * x[k]
    return tuple(row), tuple(x), along(row, x)


def along(row: Any, u: Any) -> Scalar:
    """Return J u."""
    total = row[0] * u[0]
    for a, b in zip(row[1:], u[1:], strict=True):
        total = total + a * b
    return total


def sensed_change(
    structure: TreeStructure, model: TreeNumbers, q: Vector, change: Vector, dt: Scalar, sensing: int
) -> tuple[Vector, Vector]:
    """Return by how much impulses raise a body's specific force [m/s^2] and angular acceleration [rad/s^2], over a step.

    Args:
        structure: Of the tree.
        model: Its numbers.
        q: Joint angles [rad].
        change: Of the coordinates.
        dt: Step [s].
        sensing: Number of the body.
    """
    frames = kinematics(structure, model, q)
    turning, moving = velocities(structure, frames, change[:3], change[3:6], change[6:])
    turn, share = frames[sensing].rotation, 1.0 / dt
    return scale(into_axes(turn, moving[sensing]), share), scale(into_axes(turn, turning[sensing]), share)


def carried(structure: TreeStructure, body: int) -> tuple[float, ...]:
    """Return per joint 1 where it carries a body, else 0."""
    marks = [0.0] * structure.joint_count
    while body:
        marks[body - 1] = 1.0
        body = structure.parents[body - 1]
    return tuple(marks)


def point_velocity(place: Vector, carried: Vector, axes: Vector, places: Vector, u: Any) -> Vector:
    """Return a point's velocity, root axes [m/s].

    Args:
        place: From the root's point [m].
        carried: Per joint 1 where it carries the point, else 0.
        axes: Of the joints, three numbers each.
        places: Of the joints, alike [m].
        u: The coordinates.
    """
    moving = add(tuple(u[:3]), cross(tuple(u[3:6]), place))
    for k, mark in enumerate(carried):
        arm = sub(place, places[3 * k : 3 * k + 3])
        moving = add(moving, scale(cross(axes[3 * k : 3 * k + 3], arm), mark * u[6 + k]))
    return moving


def rebound(approach: Scalar, gained: Scalar, spent: Scalar, restitution: Scalar) -> Scalar:
    """Return by how much pushes grow: one plus Newton's coefficient of fast impacts, and no more than the energy has for it.

    Args:
        approach: Fastest [m/s].
        gained: p.b, b the velocities before [J].
        spent: p.A p [J].
        restitution: Newton's coefficient.
    """
    wanted = where(approach < BOUNCE, 1.0, 1.0 + restitution)
    some = spent > 1e-12
    most = where(some, -2.0 * gained / where(some, spent, 1.0), 1.0)
    return maximum(minimum(wanted, most), 0.0)


def sliding(velocity: Vector, up: Vector) -> tuple[Vector, Scalar]:
    """Return the direction and the speed [m/s] of a velocity along the ground; along some direction where there is none.

    Args:
        velocity: Of the point, root axes [m/s].
        up: Of the ground, root axes.
    """
    across = sub(velocity, scale(up, dot(velocity, up)))
    speed = sqrt(dot(across, across))
    moves = speed > 1e-9
    inverse = 1.0 / where(moves, speed, 1.0)
    return tuple(where(moves, x * inverse, 0.0) for x in across), speed


def friction_push(push: Scalar, slide: Scalar, stiff: Scalar, friction: Scalar) -> Scalar:
    """Return the push against sliding [N s]: as much as stops it, at most Coulomb's share.

    Args:
        push: Against approach [N s].
        slide: Speed along the ground [m/s].
        stiff: J H^-1 J^T along it [1/kg].
        friction: Coulomb's coefficient.
    """
    some = stiff > 1e-12
    return minimum(friction * push, where(some, slide / where(some, stiff, 1.0), 0.0))


def lift(deepest: Scalar, lost: Scalar, weight: Scalar, uphill: Scalar) -> Scalar:
    """Return by how much a vehicle is moved out of a surface in a step [m], for no more energy than contact took.

    Args:
        deepest: Of its spheres [m].
        lost: Energy that contact took [J].
        weight: Of the vehicle [N].
        uphill: Height that is gained per way; what gains none costs nothing.
    """
    wanted = maximum(LIFT * (deepest - SLOP), 0.0)
    paid = minimum(wanted, maximum(lost, 0.0) / maximum(weight * uphill, 1e-9))
    return where(uphill > 0.0, paid, wanted)
