"""What a controller needs to know of a vehicle whose shape changes, at each step anew: its centre of mass, inertia, allocation.

Laws steer the whole as if it were a rigid body at the angles that its joints have: position and velocity are those of the
centre of mass, attitude and rates those of the root. Gains of rotation grow with the inertia, so that frequencies stay.
"""

from __future__ import annotations

from typing import Any

from airworthy.core.arrays import Scalar, Vector
from airworthy.core.ops import sqrt, where
from airworthy.core.vectors import add, cross, dot, matrix_columns, sub
from airworthy.dynamics.articulated.composite import body_centers, effectiveness, is_out, mean_by_mass, whole_inertia
from airworthy.dynamics.articulated.equations import kinematics, positions, turned_inertia, velocities
from airworthy.dynamics.articulated.factor import factored, solved
from airworthy.dynamics.articulated.step import to_world
from airworthy.dynamics.articulated.tree import TreeNumbers, TreeStructure
from airworthy.dynamics.equations import normalize

__all__ = ["GAINS", "ROWS", "SHAPE_STEPS", "allocation", "shaped", "whole_motion"]

GAINS = (
    "attitude_gain",
    "rate_gain",
    "m_attitude_gain",
    "m_rate_gain",
    "m_attitude_integral_gain",
    "m_rate_derivative_gain",
)
"""Rows of control that are moments, in proportion to the inertia about their axes."""
ROWS = (2, 3, 4, 5)
"""What is allocated: collective and moments."""
SHAPE_STEPS = 10
"""Physics steps of a launch after which inertia and allocation are found anew, besides at its begin; centre of mass and its
motion are found at each. In as long a time (20 ms at 500 Hz) joints at 1 rad/s turn by a degree."""
_DAMPING = 1e-6
"""Added to the diagonal of the allocation's matrix, whose rows have length 1 at the start: where a shape cannot give a moment,
nothing is asked in its place."""


def whole_motion(
    structure: TreeStructure,
    model: TreeNumbers,
    position: Vector,
    velocity: Vector,
    attitude: Vector,
    rate: Vector,
    q: Vector,
    qd: Vector,
) -> tuple[Vector, Vector]:
    """Return position [m] and velocity [m/s] of the centre of mass of the whole, world.

    Args:
        structure: Of the tree.
        model: Its numbers.
        position: Of the root's own centre of mass, world [m].
        velocity: Of the same, world [m/s].
        attitude: Of the root, x, y, z, w, root to world.
        rate: Of the root, root axes [rad/s].
        q: Joint angles [rad].
        qd: Joint rates [rad/s].
    """
    frames = kinematics(structure, model, q)
    centers = body_centers(structure, model, frames)
    turning, moving = velocities(structure, frames, (0.0, 0.0, 0.0), rate, qd)
    places = positions(structure, frames)
    speeds = [
        add(v, cross(w, sub(middle, place))) for v, w, middle, place in zip(moving, turning, centers, places, strict=True)
    ]
    center, drift = mean_by_mass(model, centers), mean_by_mass(model, speeds)
    return add(position, to_world(attitude, center)), add(velocity, to_world(attitude, drift))


def shaped(structure: TreeStructure, model: TreeNumbers, q: Vector, p: Any, leaning: bool) -> tuple[Vector, ...]:
    """Return what laws read of a vehicle's shape: inertia of the whole, allocation's inverse by rotors, its collective
    direction, the gains of `GAINS`, and the turn from the frame that laws steer to the root (x, y, z, w).

    Args:
        structure: Of the tree.
        model: Its numbers as the controller believes them.
        q: Measured joint angles [rad].
        p: Record with `believed_scale` and `believed_gains`.
        leaning: Laws steer the frame whose z axis is the force of the rotors that hold the vehicle without a moment, and which
            hover therefore has level; else the root.
    """
    inertia, columns = whole_inertia(structure, model, q), effectiveness(structure, model, q)
    trim: Vector = (0.0, 0.0, 0.0, 1.0)
    inverse, collective = allocation(columns, p.believed_scale)
    if leaning:
        shares = tuple(row[2] for row in inverse)
        trim = level_frame(tuple(dot_all(tuple(c[axis] for c in columns), shares) for axis in range(3)))
        axes = matrix_columns(trim)
        inertia = turned_inertia(axes, inertia)  # rows of R^T, R the frame to the root
        # Rotors that make no moment push along the frame's z axis alone: of a newton along that, the root's z has its cosine.
        inverse = tuple((0.0, 0.0, row[2] * axes[2][2], *(dot(axis, row[3:]) for axis in axes)) for row in inverse)
        collective = tuple(share * axes[2][2] for share in collective)
    gains = tuple(k * inertia[axis] for group in p.believed_gains for axis, k in enumerate(group))
    return inertia, tuple(x for row in inverse for x in row), collective, gains, trim


def level_frame(force: Vector) -> Vector:
    """Return the shortest turn from a frame to the root's whose z axis is a force's direction, x, y, z, w.

    Args:
        force: Of a unit along the root's z, root axes; where it has no such part, nothing is turned.
    """
    x, y, z = force
    some = z > 0.5
    along = z + sqrt(x * x + y * y + z * z)
    turn = normalize((-y, x, 0.0, where(some, along, 1.0)))
    return tuple(where(some, part, whole) for part, whole in zip(turn, (0.0, 0.0, 0.0, 1.0), strict=True))


def allocation(columns: tuple[Vector, ...], row_scale: Vector) -> tuple[tuple[Vector, ...], Vector]:
    """Return the pseudo-inverse of collective and moments, per rotor six numbers, and the collective direction.

    As `control.effectors.pseudo_inverse`, in closed form: B^T (B B^T)^-1 with rows scaled, damped by a millionth, so that it
    stays finite in shapes that cannot give every moment. The collective direction, which counts where not all fits, is of a
    force without moments about x and y, unlike `collective_direction` with whatever yaw comes with it.

    Args:
        columns: Of the effectiveness, per rotor six numbers.
        row_scale: Of the four rows: about one over their length; 0 leaves a row out.
    """
    rows = [tuple(column[r] * s for column in columns) for r, s in zip(ROWS, row_scale, strict=True)]
    solved = _pseudo_inverse(rows)
    inverse = tuple((0.0, 0.0, *(value * s for value, s in zip(x, row_scale, strict=True))) for x in solved)
    # Yaw comes last where rotors are full: a force that made none would leave nothing to rotors whose axes lean by a few
    # hundredths, since what they give against it by drag is as little.
    shares = tuple(x[0] * row_scale[0] for x in _pseudo_inverse(rows[:3]))
    working = [share for share, column in zip(shares, columns, strict=True) if not is_out(column)]
    least: Scalar = working[0] if working else 0.0
    for share in working[1:]:
        least = where(share < least, share, least)
    return inverse, tuple(where(least > 1e-9, share, 0.0) for share in shares)


def _pseudo_inverse(rows: list[Vector]) -> list[list[Scalar]]:
    """B^T (B B^T)^-1 of the rows of B, per column, damped."""
    gram = [[dot_all(a, b) + (_DAMPING if i == j else 0.0) for j, b in enumerate(rows)] for i, a in enumerate(rows)]
    lower, pivots = factored(gram)
    return [solved(lower, pivots, [row[k] for row in rows]) for k in range(len(rows[0]))]


def dot_all(a: Vector, b: Vector) -> Scalar:
    total = a[0] * b[0]
    for x, y in zip(a[1:], b[1:], strict=True):
        total = total + x * y
    return total
