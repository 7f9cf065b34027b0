"""Desired attitudes, attitude errors and the rates that go with them, as equations.

An attitude is its three body axes in the world frame, the columns of the rotation matrix. Sources: Aerial Gym section 6
(equations 1 to 5), Lee, Leok and McClamroch 2010; rates by flatness derived here by differentiating the axes.
"""

from __future__ import annotations

from airworthy.core.arrays import Scalar, Vector
from airworthy.core.ops import sin_cos, sqrt, where
from airworthy.core.vectors import add, choose, cross, dot, scale, sub

Axes = tuple[Vector, Vector, Vector]

# Ours, as the next two: borders between a law and its fallback, set by what float32 resolves.
_PARALLEL = 1e-6
"""Squared sine under which two unit vectors count as parallel (0.06 degrees; float32 resolves it)."""
_HALF_TURN = 1e-4
"""1 + trace under which a rotation counts as a half turn (within 0.01 rad)."""
_HALF_TURN_ERROR = 0.02


def unit_or(vector: Vector, fallback: Vector, smallest_squared: Scalar = _PARALLEL) -> Vector:
    """Return the direction of a vector; the fallback (unit length) where its squared length is below the limit.

    Args:
        vector: Of any length.
        fallback: Of unit length.
        smallest_squared: Squared length, in the vector's unit squared.
    """
    squared = dot(vector, vector)
    usable = squared > smallest_squared
    return choose(usable, scale(vector, 1.0 / sqrt(where(usable, squared, 1.0))), fallback)


def heading(axes: Axes) -> Vector:
    """Return the horizontal unit vector of the present yaw (Z-Y-X): along body x; nose straight up or down, right of body y."""
    x, y, _ = axes
    horizontal = x[0] * x[0] + x[1] * x[1]
    steep = horizontal < _PARALLEL
    a, b = where(steep, y[1], x[0]), where(steep, -y[0], x[1])
    # With x vertical y is horizontal, so one of the two always has length.
    length = sqrt(a * a + b * b)
    return (a / length, b / length, 0.0)


def desired_axes(direction: Vector, chi: Vector, hold: Scalar, axes: Axes) -> Axes:
    """Return the attitude whose body z is `direction` and whose heading is chi.

    With `hold` 0, equation (5): y along direction x chi, so that body y is perpendicular to chi. With `hold` 1 chi is the
    present heading and body x gets it in the Z-Y-X sense (the closed form roll/pitch of the specification), on the side
    nearer to the present attitude: an attitude whose z is already right is its own target, upside down too.

    Degenerate: where the direction is parallel to chi (to the left of chi with `hold`), the present body x takes chi's
    place; where it is parallel to that as well, body y stays.

    Args:
        direction: Unit vector, world.
        chi: Unit horizontal vector, world.
        hold: 0/1 mask.
        axes: The present attitude.
    """
    left = (-chi[1], chi[0], 0.0)
    along = sub(left, scale(direction, dot(left, direction)))
    side = dot(cross(left, direction), axes[0]) + dot(along, axes[1])
    nearest = scale(along, where(side < 0.0, -1.0, 1.0))
    candidate = choose(hold > 0.5, nearest, cross(direction, chi))
    y = unit_or(candidate, unit_or(cross(direction, axes[0]), axes[1]))
    return cross(y, direction), y, direction


def attitude_direction(roll: Scalar, pitch: Scalar, chi: Vector) -> Vector:
    """Return the body z of Z-Y-X angles over the heading chi: Rz Ry Rx e3.

    Args:
        roll: [rad]
        pitch: [rad]
        chi: Horizontal unit vector of the heading, world.
    """
    (sr, cr), (sp, cp) = sin_cos(roll), sin_cos(pitch)
    forward, left = sp * cr, -sr
    return (forward * chi[0] - left * chi[1], forward * chi[1] + left * chi[0], cp * cr)


def rotation_difference(axes: Axes, desired: Axes) -> Vector:
    """Return (Rd^T R - R^T Rd)^vee, not halved: twice the sine of the angle along its axis."""
    b1, b2, b3 = axes
    d1, d2, d3 = desired
    return (dot(d3, b2) - dot(d2, b3), dot(d1, b3) - dot(d3, b1), dot(d2, b1) - dot(d1, b2))


def attitude_error(axes: Axes, desired: Axes) -> Vector:
    """Return e_R = 1/2 (Rd^T R - R^T Rd)^vee, equation (1).

    At a half turn it would vanish and the vehicle rest there: within 0.01 rad of it an error of 0.02 along the turn's axis
    takes its place.
    """
    error = scale(rotation_difference(axes, desired), 0.5)
    diagonal = tuple(dot(d, b) for d, b in zip(desired, axes, strict=True))
    # Near a half turn about n, Rd^T R + 1 = 2 n n^T: its column of largest diagonal points along n.
    columns = [tuple(dot(desired[i], axes[j]) + (1.0 if i == j else 0.0) for i in range(3)) for j in range(3)]
    column = choose(diagonal[0] >= diagonal[1], columns[0], columns[1])
    largest = where(diagonal[0] >= diagonal[1], diagonal[0], diagonal[1])
    column = choose(diagonal[2] > largest, columns[2], column)
    # At a half turn the error vanishes by symmetry; any axis leads away from it, and the longest column is known best.
    half_turn = 1.0 + diagonal[0] + diagonal[1] + diagonal[2] < _HALF_TURN
    return choose(half_turn, scale(unit_or(column, (1.0, 0.0, 0.0)), _HALF_TURN_ERROR), error)


def into_body(axes: Axes, vector: Vector) -> Vector:
    """Return a world vector in the body frame."""
    return (dot(axes[0], vector), dot(axes[1], vector), dot(axes[2], vector))


def into_world(axes: Axes, vector: Vector) -> Vector:
    """Return a body vector in the world frame."""
    return add(add(scale(axes[0], vector[0]), scale(axes[1], vector[1])), scale(axes[2], vector[2]))


def flat_rates(axes: Axes, thrust: Scalar, jerk: Vector, chi: Vector, yaw_rate: Scalar) -> Vector:
    """Return body rates of the attitude `desired_axes(..., hold=0)` along a trajectory [rad/s], in its own frame.

    With t the specific thrust and b3 body z: jerk = t' b3 + t (wy b1 - wx b2); wz keeps b2 perpendicular to the turning chi.
    Zero where t is below 0.1 m/s^2.

    Args:
        axes: The attitude.
        thrust: Specific thrust t [m/s^2].
        jerk: World [m/s^3].
        chi: Heading, unit, horizontal.
        yaw_rate: Rate of chi [rad/s].
    """
    usable = thrust > 0.1
    per_thrust = where(usable, 1.0, 0.0) / where(usable, thrust, 1.0)
    wx, wy = -dot(axes[1], jerk) * per_thrust, dot(axes[0], jerk) * per_thrust
    left = (-chi[1], chi[0], 0.0)
    wz = (wx * dot(axes[2], chi) + yaw_rate * dot(axes[1], left)) / _heading_share(axes, chi)
    return (wx, wy, wz)


def flat_angular_acceleration(
    axes: Axes,
    thrust: Scalar,
    body_rate: Vector,
    jerk: Vector,
    snap: Vector,
    chi: Vector,
    yaw_rate: Scalar,
    yaw_acceleration: Scalar,
) -> Vector:
    """Return the time derivative of `flat_rates` [rad/s^2], from snap [m/s^4] and yaw acceleration [rad/s^2].

    Args:
        axes: Body axes, world.
        thrust: Over mass [m/s^2].
        body_rate: Body rates of `flat_rates` [rad/s].
        jerk: World [m/s^3].
        snap: World [m/s^4].
        chi: Horizontal unit vector of the heading, world.
        yaw_rate: [rad/s]
        yaw_acceleration: [rad/s^2]
    """
    usable = thrust > 0.1
    per_thrust = where(usable, 1.0, 0.0) / where(usable, thrust, 1.0)
    b1, b2, b3 = axes
    wx, wy, wz = body_rate
    thrust_rate = dot(jerk, b3)
    ax = -(dot(snap, b2) + 2.0 * thrust_rate * wx) * per_thrust + wy * wz
    ay = (dot(snap, b1) - 2.0 * thrust_rate * wy) * per_thrust - wx * wz
    # Derivative of  -wz b1.chi + wx b3.chi + yaw_rate b2.left = 0.
    left = (-chi[1], chi[0], 0.0)
    turn = -wz * (-wy * dot(b3, chi) + yaw_rate * dot(b1, left))
    turn = turn + ax * dot(b3, chi) + wx * (wy * dot(b1, chi) + yaw_rate * dot(b3, left))
    turn = turn + yaw_acceleration * dot(b2, left) + yaw_rate * (-wz * dot(b1, left) + wx * dot(b3, left))
    return (ax, ay, turn / _heading_share(axes, chi))


def _heading_share(axes: Axes, chi: Vector) -> Scalar:
    """b1 . chi, the sine between body z and chi; guarded where they are parallel."""
    share = dot(axes[0], chi)
    return where(share > 1e-3, share, 1e-3)
