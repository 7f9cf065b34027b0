"""The articulated-body algorithm of a floating tree of hinges, as plain functions of scalars (see `airworthy.core.ops`).

All vectors are in the axes of the root body, and each body's point of reference is its joint (the root's: its own centre of
mass): shifts are over one link only, which keeps float32 good. Accelerations are classical, and gravity is left out, so
accelerations of points are specific forces: those of an accelerometer. Source: Featherstone, Rigid Body Dynamics Algorithms,
2008, chapter 7, written for joints whose axis passes through the point of reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from airworthy.core.arrays import Scalar, Vector
from airworthy.core.ops import absolute, sin_cos, where
from airworthy.core.vectors import add, cross, dot, scale, sub, symmetric_multiply
from airworthy.dynamics.articulated.laws import Torque
from airworthy.dynamics.articulated.tree import TreeBody, TreeNumbers, TreeStructure
from airworthy.dynamics.equations import polynomial

__all__ = ["BodyFrame", "TreeAccelerations", "accelerations", "kinematics", "rotor_frames", "rotor_loads", "velocities"]

ZERO: Vector = (0.0, 0.0, 0.0)
_PLACES = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
"""Rows and columns of a symmetric matrix's six numbers."""
_INDEX = ((0, 3, 4), (3, 1, 5), (4, 5, 2))

Matrix = tuple[Vector, Vector, Vector]
"""By rows."""


class BodyFrame(NamedTuple):
    """A body at given joint angles, in root axes."""

    rotation: Matrix
    """Body to root, rows."""
    offset: Vector
    """From the parent's point of reference to its own [m]."""
    axis: Vector
    """Of its joint."""


class TreeAccelerations(NamedTuple):
    """What the algorithm yields, in root axes."""

    angular: tuple[Vector, ...]
    """Per body [rad/s^2]."""
    specific: tuple[Vector, ...]
    """Per body the specific force at its point of reference [m/s^2]."""
    joint: Vector
    """Per joint [rad/s^2]."""
    torque: Vector
    """Per joint what acted about it in all [N m], implicit parts included."""


class _Articulated(NamedTuple):
    """Inertia and bias of a body with what hangs on it: N = A alpha + B acc + n, F = B^T alpha + M acc + f."""

    a: Vector
    b: Matrix
    m: Vector
    n: Vector
    f: Vector


def is_zero(x: Any) -> bool:
    """Tell whether a number is known to be zero while a kernel is built."""
    known = getattr(x, "constant", x)
    return isinstance(known, float | int) and known == 0.0


def matrix_vector(rows: Matrix, v: Vector) -> Vector:
    return (dot(rows[0], v), dot(rows[1], v), dot(rows[2], v))


def _transposed(rows: Matrix) -> Matrix:
    x, y, z = zip(*rows, strict=True)
    return x, y, z


def _rows_plus(a: Matrix, b: Matrix) -> Matrix:
    return add(a[0], b[0]), add(a[1], b[1]), add(a[2], b[2])


def kinematics(structure: TreeStructure, model: TreeNumbers, q: Vector) -> tuple[BodyFrame, ...]:
    """Return every body's frame in root axes.

    Args:
        structure: Of the tree.
        model: Its numbers.
        q: Joint angles [rad].
    """
    frames = [BodyFrame(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)), ZERO, ZERO)]
    for parent, body, angle in zip(structure.parents, model.bodies[1:], q, strict=True):
        above = frames[parent].rotation
        columns = _transposed(body.rotation)
        x, y, z = (matrix_vector(above, column) for column in columns)
        s, c = sin_cos(angle)
        turned = (add(scale(x, c), scale(y, s)), sub(scale(y, c), scale(x, s)), z)
        frames.append(BodyFrame(_transposed(turned), matrix_vector(above, body.offset), z))
    return tuple(frames)


def positions(structure: TreeStructure, frames: Sequence[BodyFrame]) -> tuple[Vector, ...]:
    """Return every body's point of reference from the root's [m], root axes."""
    found = [ZERO]
    for parent, frame in zip(structure.parents, frames[1:], strict=True):
        found.append(add(found[parent], frame.offset))
    return tuple(found)


def velocities(
    structure: TreeStructure, frames: Sequence[BodyFrame], velocity: Vector, rate: Vector, qd: Vector
) -> tuple[tuple[Vector, ...], tuple[Vector, ...]]:
    """Return angular velocity [rad/s] and velocity of the point of reference [m/s] of every body, root axes.

    Args:
        structure: Of the tree.
        frames: Of `kinematics`.
        velocity: Of the root's point, root axes.
        rate: Of the root.
        qd: Joint rates [rad/s].
    """
    turning, moving = [rate], [velocity]
    for parent, frame, speed in zip(structure.parents, frames[1:], qd, strict=True):
        moving.append(add(moving[parent], cross(turning[parent], frame.offset)))
        turning.append(add(turning[parent], scale(frame.axis, speed)))
    return tuple(turning), tuple(moving)


def rotor_frames(structure: TreeStructure, model: TreeNumbers, frames: Sequence[BodyFrame]) -> list[tuple[int, Vector, Vector]]:
    """Return, per rotor, its body, its hub from the body's point of reference [m] and its axis, root axes."""
    return [
        (body, matrix_vector(frames[body].rotation, item.position), matrix_vector(frames[body].rotation, item.axis))
        for body, item in zip(structure.carriers, model.propellers, strict=True)
    ]


def rotor_loads(
    structure: TreeStructure,
    model: TreeNumbers,
    frames: Sequence[BodyFrame],
    turning: Sequence[Vector],
    speed: Vector,
    speed_rate: Vector,
) -> list[tuple[int, Vector, Vector]]:
    """Return, per rotor, its body, and the force [N] and moment about the body's point of reference [N m] it exerts there.

    Thrust and reaction torque are those of the rigid family; a rotor whose reaction torque points along the axis turns against
    it, so that its angular momentum is -J w along the axis, and its body has to turn it along.

    Args:
        structure: Of the tree.
        model: Its numbers.
        frames: Of `kinematics`.
        turning: Angular velocity per body.
        speed: Rotor states.
        speed_rate: Their rates of change.
    """
    loads = []
    for index, (body, arm, axis) in enumerate(rotor_frames(structure, model, frames)):
        item = model.propellers[index]
        force = scale(axis, polynomial(item.thrust, speed[index]))
        reaction = polynomial(item.torque, speed[index]) + item.inertia * speed_rate[index]
        moment = add(cross(arm, force), scale(axis, reaction))
        if not is_zero(item.inertia):
            moment = add(moment, cross(turning[body], scale(axis, item.inertia * speed[index])))
        loads.append((body, force, moment))
    return loads


def _own(body: TreeBody, frame: BodyFrame, turning: Vector) -> _Articulated:
    """Return the inertia of a body alone about its point of reference, and the bias of its turning."""
    center = matrix_vector(frame.rotation, body.center)
    h = scale(center, body.mass)
    inner = turned_inertia(frame.rotation, body.inertia)
    x, y, z = (center[k] * h[k] for k in range(3))
    # Squares are summed, not subtracted from their total: what is small about the lever's own direction keeps its digits.
    a = (y + z + inner[0], x + z + inner[1], x + y + inner[2])
    a = (*a, *(inner[k] - center[r] * h[c] for k, (r, c) in enumerate(_PLACES) if k > 2))
    b = ((0.0, -h[2], h[1]), (h[2], 0.0, -h[0]), (-h[1], h[0], 0.0))
    pull = cross(turning, cross(turning, center))
    spin = ZERO if all(map(is_zero, body.inertia)) else cross(turning, symmetric_multiply(inner, turning))
    return _Articulated(a, b, (body.mass,) * 3 + ZERO, add(spin, cross(h, pull)), scale(pull, body.mass))


def turned_inertia(rotation: Matrix, inertia: Vector) -> Vector:
    """Return R I R^T of six numbers."""
    if all(map(is_zero, inertia)):
        return (0.0,) * 6
    half = [symmetric_multiply(inertia, row) for row in rotation]
    return tuple(dot(half[r], rotation[c]) for r, c in _PLACES)


def accelerations(
    structure: TreeStructure,
    model: TreeNumbers,
    frames: Sequence[BodyFrame],
    rate: Vector,
    qd: Vector,
    torques: Sequence[Torque],
    loads: Sequence[tuple[int, Vector, Vector]],
    held: Vector | None = None,
) -> TreeAccelerations:
    """Return all accelerations: inward over articulated inertias, the root, and outward again.

    Args:
        structure: Of the tree.
        model: Its numbers.
        frames: Of `kinematics`.
        rate: Angular velocity of the root [rad/s].
        qd: Joint rates [rad/s].
        torques: Per joint.
        loads: Body, force [N] and moment about its point of reference [N m], root axes; as many as there are.
        held: Specific force of a root that does not move, i.e. gravity turned round; None: the root is free.
    """
    turning, _ = velocities(structure, frames, ZERO, rate, qd)
    bodies = [_own(body, frame, w) for body, frame, w in zip(model.bodies, frames, turning, strict=True)]
    for body, force, moment in loads:
        own = bodies[body]
        bodies[body] = own._replace(n=sub(own.n, moment), f=sub(own.f, force))
    drifts: list[tuple[Vector, Vector]] = [(ZERO, ZERO)]
    for parent, frame, speed in zip(structure.parents, frames[1:], qd, strict=True):
        w = turning[parent]
        drifts.append((scale(cross(w, frame.axis), speed), cross(w, cross(w, frame.offset))))
    solved: list[tuple[Vector, Vector, Scalar, Scalar]] = [(ZERO, ZERO, 0.0, 0.0)] * len(bodies)
    applied: list[Torque] = list(torques)
    for index in range(len(bodies) - 1, 0, -1):
        parent, frame = structure.parents[index - 1], frames[index]
        passed, solved[index], applied[index - 1] = _eliminate(bodies[index], frame, torques[index - 1], drifts[index])
        bodies[parent] = _joined(bodies[parent], passed)
    root = bodies[0]
    if held is not None:
        angular, specific = [ZERO], [held]
    else:
        alpha, acc = solve_root(root.a, root.b, root.m, scale(root.n, -1.0), scale(root.f, -1.0))
        angular, specific = [alpha], [acc]
    joint, torque = [], []
    for index, parent in enumerate(structure.parents, start=1):
        drift_w, drift_v = drifts[index]
        alpha = add(angular[parent], drift_w)
        acc = add(sub(specific[parent], cross(frames[index].offset, angular[parent])), drift_v)
        uw, uv, inverse, u = solved[index]
        qdd = (u - (dot(uw, alpha) + dot(uv, acc))) * inverse
        joint.append(qdd)
        act = applied[index - 1]
        torque.append(act.explicit - act.implicit * qdd)
        angular.append(add(alpha, scale(frames[index].axis, qdd)))
        specific.append(acc)
    return TreeAccelerations(tuple(angular), tuple(specific), tuple(joint), tuple(torque))


def _eliminate(
    own: _Articulated, frame: BodyFrame, torque: Torque, drift: tuple[Vector, Vector]
) -> tuple[_Articulated, tuple[Vector, Vector, Scalar, Scalar], Torque]:
    """Take a joint out: what its parent feels, what the way outward needs, and the torque that acts."""
    a, b, m, n, f = own
    axis, offset = frame.axis, frame.offset
    uw = symmetric_multiply(a, axis)
    uv = matrix_vector(_transposed(b), axis)
    inertia, bias = dot(axis, uw) + torque.armature, dot(axis, n)
    if torque.effort is not None:
        torque = _within_effort(torque, inertia, bias)
    inverse = 1.0 / (inertia + torque.implicit)
    u = torque.explicit - bias
    wi, vi = scale(uw, inverse), scale(uv, inverse)
    left_a = tuple(a[k] - uw[r] * wi[c] for k, (r, c) in enumerate(_PLACES))
    left_m = tuple(m[k] - uv[r] * vi[c] for k, (r, c) in enumerate(_PLACES))
    x, y, z = (sub(b[r], scale(vi, uw[r])) for r in range(3))
    left_b = (x, y, z)
    gain = u * inverse
    drift_w, drift_v = drift
    moment = add(add(n, scale(uw, gain)), add(symmetric_multiply(left_a, drift_w), matrix_vector(left_b, drift_v)))
    back = matrix_vector(_transposed(left_b), drift_w)
    force = add(add(f, scale(uv, gain)), add(back, symmetric_multiply(left_m, drift_v)))
    passed = _shifted(_Articulated(left_a, left_b, left_m, moment, force), offset)
    return passed, (uw, uv, inverse, u), torque


def _within_effort(torque: Torque, inertia: Scalar, bias: Scalar) -> Torque:
    """Limit the torque of a drive: where what it would exert by the end of the step, as far as this joint alone can tell, is
    beyond its limit, it exerts that limit, and no implicit part is left."""
    effort: Any = torque.effort
    # What stops add is no torque of the drive.
    other, stiff = torque.stop, torque.stop_implicit
    alone = (torque.explicit - bias) / (inertia + torque.implicit)
    drive = (torque.explicit - other) - (torque.implicit - stiff) * alone
    beyond = absolute(drive) > effort
    most = where(drive > 0.0, effort, -effort)
    explicit = where(beyond, most + other, torque.explicit)
    return torque._replace(explicit=explicit, implicit=where(beyond, stiff, torque.implicit))


def _shifted(own: _Articulated, offset: Vector) -> _Articulated:
    """Bring what a parent feels to the parent's point of reference."""
    if all(map(is_zero, offset)):
        return own
    a, b, m, n, f = own
    full = tuple(tuple(m[_INDEX[r][c]] for c in range(3)) for r in range(3))
    # Columns of [d]x M, whose rows are those of M^T = M.
    b2 = _rows_plus(b, _transposed(tuple(cross(offset, row) for row in full)))  # type: ignore[arg-type]
    left = _transposed(tuple(cross(offset, row) for row in b))  # type: ignore[arg-type]  # [d]x B^T
    right = tuple(cross(row, offset) for row in b2)  # B' [d]x
    a2 = tuple(a[k] + left[r][c] - right[r][c] for k, (r, c) in enumerate(_PLACES))
    return _Articulated(a2, b2, m, add(n, cross(offset, f)), f)


def _joined(a: _Articulated, b: _Articulated) -> _Articulated:
    return _Articulated(add(a.a, b.a), _rows_plus(a.b, b.b), add(a.m, b.m), add(a.n, b.n), add(a.f, b.f))


def solve_root(a: Vector, b: Matrix, m: Vector, n: Vector, f: Vector) -> tuple[Vector, Vector]:
    """Return angular and linear acceleration of [A B; B^T M] (alpha, acc) = (n, f), by LDL^T with translation first.

    Args:
        a: Upper left block, six numbers.
        b: Upper right block, rows.
        m: Lower right block, six numbers.
        n: Moment.
        f: Force.
    """

    def entry(r: int, c: int) -> Scalar:
        if r < 3 and c < 3:
            return m[_INDEX[r][c]]
        if r >= 3 and c >= 3:
            return a[_INDEX[r - 3][c - 3]]
        return b[max(r, c) - 3][min(r, c)]

    lower: list[list[Scalar]] = [[0.0] * 6 for _ in range(6)]
    kept: list[list[Scalar]] = [[0.0] * 6 for _ in range(6)]
    inverse: list[Scalar] = []
    for j in range(6):
        pivot = entry(j, j)
        for k in range(j):
            pivot = pivot - lower[j][k] * kept[j][k]
        inverse.append(1.0 / pivot)
        for i in range(j + 1, 6):
            left = entry(i, j)
            for k in range(j):
                left = left - lower[i][k] * kept[j][k]
            kept[i][j] = left
            lower[i][j] = left * inverse[j]
    x = [*f, *n]
    for i in range(6):
        for k in range(i):
            x[i] = x[i] - lower[i][k] * x[k]
    x = [value * inv for value, inv in zip(x, inverse, strict=True)]
    for i in range(5, -1, -1):
        for k in range(i + 1, 6):
            x[i] = x[i] - lower[k][i] * x[k]
    return tuple(x[3:]), tuple(x[:3])
