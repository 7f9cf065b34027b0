"""Hover of any airframe: the attitude and the rotor states that hold it at rest, or the reason why there are none.

Level where the rotors can do that, as on every flat multirotor. Where they cannot (rotors tilted alike, one bent arm) the body
leans until the rotors' force points up. Among the attitudes around level that one is taken whose sum of squared thrusts is
least: with F the force and M the moment rows of the effectiveness, min |u|^2 over M u = 0 and |F u| = m g has, by its Lagrange
conditions, the solution of least norm of M u = 0 and d . F u = m g, where d is the direction of F u itself: a fixed point.

What the rotors can do to the body: control effectiveness and the largest accelerations, from geometry alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import to_matrix
from airworthy.vehicles.check import inertia_matrix, rotor_thrust, rotor_torque
from airworthy.vehicles.links import refuse_links
from airworthy.vehicles.record import Rotor, Vector3, Vehicle

__all__ = [
    "Indicators",
    "Trim",
    "columns",
    "control_effectiveness",
    "hover_speed",
    "hover_trim",
    "indicators",
    "linear_drag",
    "pushes_sideways",
    "rotor_state_for_thrust",
    "thrust_limits",
    "torque_ratio",
    "upright",
]


SIDEWAYS_SHARE = 0.02
"""Least over largest singular value of an airframe that is meant to push sideways: rotors canted by 2 degrees have it, arms
bent by one degree do not, and to hold such an airframe level would set its rotors against each other."""


@dataclass(frozen=True)
class Indicators:
    """Kinodynamic indicators (FlyingTrust, eqs 2, 9 and 11)."""

    thrust_to_weight: float
    """Largest upward force over weight [-]."""
    alpha_xy_max: float
    """Largest roll acceleration [rad/s^2]."""
    alpha_z_max: float
    """Largest yaw acceleration [rad/s^2]."""


def rotor_state_for_thrust(rotor: Rotor, thrust: float) -> float:
    """Return the rotor state [rad/s, or N] that gives a thrust [N], on the outer branch of c0 + c1 w + c2 w|w|; not clipped."""
    c0, c1, c2 = rotor.thrust
    # A linear law, as where the rotor state is thrust itself.
    if c2 == 0.0:
        return (thrust - c0) / c1 if c1 != 0.0 else 0.0
    side = 1.0 if thrust >= c0 else -1.0
    # with w = side * s, s >= 0: c2 s^2 + c1 s = side * (thrust - c0)
    root = math.sqrt(max(c1 * c1 + 4.0 * c2 * side * (thrust - c0), 0.0))
    return side * (root - c1) / (2.0 * c2)


def columns(vehicle: Vehicle, reference: Sequence[float], ratios: Sequence[float]) -> np.ndarray:
    """Return the wrench per newton of thrust, rows Fx Fy Fz Mx My Mz [N / N, N m / N], body frame, shape (6, rotor_count).

    Args:
        vehicle: Its rotors, in order.
        reference: Point that moments are about, body [m], (3,).
        ratios: Torque over thrust of each rotor [m], without the sign of its spin.
    """
    refuse_links(vehicle, "This analysis")
    matrix = np.empty((6, vehicle.rotor_count))
    for index, (rotor, ratio) in enumerate(zip(vehicle.rotors, ratios, strict=True)):
        axis = np.array(rotor.axis)
        # The hub stands for the whole rotor: a force along its axis has the same moment from anywhere on it.
        lever = np.array(rotor.position) - np.array(reference)
        matrix[:3, index] = axis
        matrix[3:, index] = np.cross(lever, axis) + rotor.spin * ratio * axis
    return matrix


def torque_ratio(rotor: Rotor, thrust: float) -> float:
    """Return the torque over thrust [m] at a thrust [N] held within the rotor's reach; 0 for a rotor that gives no thrust."""
    state = min(max(rotor_state_for_thrust(rotor, thrust), rotor.speed_min), rotor.speed_max)
    force = rotor_thrust(rotor, state)
    # A range that begins at or below standstill may hold no thrust at the share asked for: full speed is tried.
    if force <= 0.0:
        state = rotor.speed_max
        force = rotor_thrust(rotor, state)
    return rotor_torque(rotor, state) / force if force > 0.0 else 0.0


def control_effectiveness(vehicle: Vehicle, reference: Literal["com", "root"] = "com") -> np.ndarray:
    """Return the body wrench per newton of rotor thrust.

    Column k is [a_k; (p_k - r) x a_k + spin_k kappa_k a_k] (Aerial Gym 3.1, whose direction d is -spin). kappa is torque over
    thrust: exact where both are proportional, else taken where the rotor carries an equal share of the weight.

    Args:
        vehicle: Its rotors, mass and gravity.
        reference: Point r that moments are taken about: the centre of mass, or the body frame's origin.

    Returns:
        Rows Fx, Fy, Fz [N/N], Mx, My, Mz [N m/N], body frame, shape (6, rotor_count).
    """
    if reference not in ("com", "root"):
        raise AirworthyError(f"Unknown reference {reference!r} for the control effectiveness; use 'com' or 'root'.")
    share = vehicle.mass * vehicle.gravity / vehicle.rotor_count
    ratios = [torque_ratio(rotor, share) for rotor in vehicle.rotors]
    return columns(vehicle, vehicle.center_of_mass if reference == "com" else (0.0, 0.0, 0.0), ratios)


def linear_drag(vehicle: Vehicle, states: ArrayLike) -> np.ndarray:
    """Return the drag per velocity along each body axis at given rotor states [N s/m], (3,), without turning: body, rotors and
    hubs."""
    refuse_links(vehicle, "This analysis")
    sizes = np.abs(np.asarray(states, float))
    total = np.add(vehicle.drag.linear, np.multiply(vehicle.drag.rotor_speed, sizes.sum()))
    for rotor, size in zip(vehicle.rotors, sizes, strict=True):
        along = np.square(rotor.axis)
        total = total + size * (rotor.hub_drag[0] * (1.0 - along) + rotor.hub_drag[1] * along)
    return np.asarray(total)


def pushes_sideways(effectiveness: np.ndarray) -> bool:
    """Tell whether rotors can push any way while they hold a moment: rank 6, and by design, not by an arm that is slightly
    bent.

    Args:
        effectiveness: Wrench per newton of thrust, shape (6, rotor_count); moments are measured against their largest lever.
    """
    lever = max(float(np.abs(effectiveness[3:]).max()), 1e-12)
    scaled = effectiveness / np.array([1.0, 1.0, 1.0, lever, lever, lever])[:, None]
    # Singular values of mixed units mean nothing, so moments were divided by their largest lever.
    sizes = np.linalg.svd(scaled, compute_uv=False)
    return len(sizes) == 6 and bool(sizes[5] > SIDEWAYS_SHARE * sizes[0])


def indicators(vehicle: Vehicle, from_rest: bool = True) -> Indicators:
    """Return thrust to weight and the largest roll and yaw accelerations, each from its own best rotor states.

    Every output is a sum over rotors of a function of one rotor's state, so each rotor is put at the end of its range that
    helps (FlyingTrust section 2: rotors between 0 and maximum). Accelerations are J^-1 times the moment about the centre of
    mass; where the two directions differ (irregular airframes), the weaker one counts.

    Args:
        vehicle: Its rotors, mass and inertia.
        from_rest: Rotors range from standstill (full reverse if reversible), as in the published table; else from `speed_min`.
    """
    # All of it, products of inertia too: an irregular airframe that rolls also yaws.
    inverse = np.linalg.inv(inertia_matrix(vehicle))
    matrix = np.zeros((3, 2 * vehicle.rotor_count))  # (upward force, roll, yaw acceleration) per newton, then per newton metre
    for index, rotor in enumerate(vehicle.rotors):
        axis = np.array(rotor.axis)
        lever = np.array(rotor.position) - np.array(vehicle.center_of_mass)
        turn = inverse @ np.column_stack([np.cross(lever, axis), rotor.spin * axis])
        matrix[:, 2 * index : 2 * index + 2] = [[axis[2], 0.0], turn[0], turn[2]]
    up, roll, yaw = (_range_of(vehicle, row, from_rest) for row in matrix)
    weight = vehicle.mass * vehicle.gravity
    # A line of rotors turns no way about itself, and -0 is how no number is written: 0 is added.
    around = [min(-turn[0], turn[1]) + 0.0 for turn in (roll, yaw)]
    return Indicators(up[1] / weight if weight > 0.0 else math.inf, *around)


def _range_of(vehicle: Vehicle, row: np.ndarray, from_rest: bool) -> tuple[float, float]:
    """Least and largest value of sum over rotors of row . (thrust, torque)."""
    low = high = 0.0
    for index, rotor in enumerate(vehicle.rotors):
        ends = {min(rotor.speed_min, 0.0) if from_rest else rotor.speed_min, rotor.speed_max}
        if rotor.speed_min < 0.0:
            ends.add(0.0)
        # Thrust and torque of one state together: their extremes may lie at different ends.
        values = [row[2 * index] * rotor_thrust(rotor, w) + row[2 * index + 1] * rotor_torque(rotor, w) for w in ends]
        low, high = low + min(values), high + max(values)
    return low, high


_SETTLED = 1e-6
"""Largest force left over, in weights, and moment, in weights times the rotors' reach, that counts as hover."""
_LEVEL = 1e-9
"""[rad]"""
_TURNS = 100
_HARD = 1e4
"""Weight of an equation over the thrusts' size in a bounded least-squares problem; Newton's method removes what it leaves."""
_E3 = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True)
class Trim:
    """Hover in still air."""

    up: Vector3
    """Direction of the rotors' force in the body frame, unit length: it points up in hover. (0, 0, 1): hover is level."""
    thrusts: tuple[float, ...]
    """Thrust of each rotor [N]; where it cannot hover, the nearest that its rotors can give to what level hover needs."""
    states: tuple[float, ...]
    """Rotor states of these thrusts [rad/s, or N], within their limits."""
    reason: str = ""
    """Why it cannot hover, as the rest of a sentence; empty where it can."""

    @property
    def hovers(self) -> bool:
        """Whether it stays where it is."""
        return not self.reason

    @property
    def tilt(self) -> float:
        """Angle between body z and the vertical in hover [rad]."""
        return math.atan2(math.hypot(self.up[0], self.up[1]), self.up[2])

    def use(self, vehicle: Vehicle) -> float:
        """Return the largest share of a rotor's largest thrust (of its size, where the rotor turns in reverse) that hover
        takes."""
        shares = [abs(t) / max(abs(a), abs(b)) for t, a, b in zip(self.thrusts, *thrust_limits(vehicle), strict=True) if a < b]
        return max(shares, default=0.0)

    @property
    def attitude(self) -> tuple[float, float, float, float]:
        """Attitude of hover with the least rotation from level, x, y, z, w, body to world."""
        x, y, z = self.up
        # Upside down: the axis of the half turn is anyone's choice, and the formula below would divide by 0.
        if z < -1.0 + 1e-12:
            return (1.0, 0.0, 0.0, 0.0)
        w = math.sqrt(0.5 * (1.0 + z))
        return (0.5 * y / w, -0.5 * x / w, 0.0, w)  # along up x e3


def thrust_limits(vehicle: Vehicle) -> tuple[Array, Array]:
    """Return the least and largest thrust of each rotor [N], at its speed limits."""
    refuse_links(vehicle, "This analysis")
    # Sorted afterwards: a polynomial that falls has its largest thrust at the lower end.
    ends = np.array([[rotor_thrust(r, r.speed_min), rotor_thrust(r, r.speed_max)] for r in vehicle.rotors])
    return ends.min(axis=1), ends.max(axis=1)


def hover_speed(vehicle: Vehicle) -> Array:
    """Return rotor states that hold the vehicle at rest at its trim attitude, shape (rotor_count,); see `hover_trim`.

    Raises:
        AirworthyError: The rotors cannot hold it.
    """
    trim = hover_trim(vehicle)
    if not trim.hovers:
        raise AirworthyError(f"{vehicle.name} cannot hover: {trim.reason}.")
    return np.array(trim.states)


@lru_cache(maxsize=1024)
def hover_trim(vehicle: Vehicle) -> Trim:
    """Return attitude and rotor states of hover in still air, or why there is none; see this module's text for which is
    chosen."""
    refuse_links(vehicle, "This analysis")
    weight = vehicle.mass * vehicle.gravity
    target = np.array([0.0, 0.0, weight, 0.0, 0.0, 0.0])
    bounds = thrust_limits(vehicle)
    matrix = control_effectiveness(vehicle)
    # Torque over thrust varies a little with speed for fitted polynomials: settle it where each rotor really runs.
    for _ in range(8):
        level = _level_thrusts(matrix, target, *bounds)
        before, matrix = matrix, _settled(vehicle, level)
        if np.array_equal(before, matrix):
            break
    error = matrix @ level - target
    # To hold an airframe level whose rotors are only slightly askew would set them against each other.
    if _is_rest(vehicle, error) and (pushes_sideways(matrix) or not np.any(matrix[:2])):
        return _trim(vehicle, level, _E3)
    # Level hover failed: the body may lean, so that rotors that are askew all push upwards.
    matrix, thrusts = control_effectiveness(vehicle), None
    for _ in range(8):
        thrusts = _leaning_thrusts(vehicle, matrix, weight, *bounds)
        before, matrix = matrix, _settled(vehicle, thrusts) if thrusts is not None else matrix
        if np.array_equal(before, matrix):
            break
    if thrusts is not None:
        force = (matrix @ thrusts)[:3]
        up = force / np.linalg.norm(force)
        # What is level but for rounding shall be exactly level: its own record is then used as it is.
        up = up if np.abs(up - _E3).max() > _LEVEL else _E3
        if _is_rest(vehicle, np.concatenate([force - weight * up, (matrix @ thrusts)[3:]])):
            return _trim(vehicle, thrusts, up)
    if _is_rest(vehicle, error):
        return _trim(vehicle, level, _E3)
    return _trim(vehicle, np.clip(level, *bounds), _E3, _why_not(vehicle, weight, *bounds))


def upright(vehicle: Vehicle) -> Vehicle:
    """Return the vehicle as seen from the frame that is level in its hover: its own record where hover is level, or where it
    has none.

    Positions, axes, inertia and centre of mass are turned; of the drag coefficients the diagonal is kept.
    """
    refuse_links(vehicle, "This analysis")
    trim = hover_trim(vehicle)
    if not trim.hovers or trim.tilt == 0.0:
        return vehicle
    turn = to_matrix(np.array(trim.attitude))
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = (turn @ inertia_matrix(vehicle) @ turn.T).tolist()
    rotors = tuple(replace(r, position=_vector(turn @ r.position), axis=_vector(turn @ r.axis)) for r in vehicle.rotors)
    names = ("linear", "quadratic_norm", "quadratic_axis", "rotor_speed", "angular_linear", "angular_norm", "angular_axis")
    drag = {name: _vector(turn**2 @ np.array(getattr(vehicle.drag, name))) for name in names}
    return replace(
        vehicle,
        inertia=(xx, yy, zz, xy, xz, yz),
        rotors=rotors,
        center_of_mass=_vector(turn @ vehicle.center_of_mass),
        drag=replace(vehicle.drag, **drag, center=_vector(turn @ vehicle.drag.center)),
    )


def _vector(values: Array) -> Vector3:
    return (float(values[0]), float(values[1]), float(values[2]))


def _trim(vehicle: Vehicle, thrusts: Array, up: Array, reason: str = "") -> Trim:
    pairs = zip(vehicle.rotors, thrusts, strict=True)
    states = tuple(min(max(rotor_state_for_thrust(r, float(t)), r.speed_min), r.speed_max) for r, t in pairs)
    return Trim(_vector(up), tuple(float(t) for t in thrusts), states, reason)


def _settled(vehicle: Vehicle, thrusts: Array) -> Array:
    """Effectiveness with torque over thrust of each rotor where it runs."""
    ratios = [torque_ratio(rotor, float(thrust)) for rotor, thrust in zip(vehicle.rotors, thrusts, strict=True)]
    return columns(vehicle, vehicle.center_of_mass, ratios)


def _is_rest(vehicle: Vehicle, error: Array) -> bool:
    weight = vehicle.mass * vehicle.gravity
    settled = _SETTLED * weight
    return bool(np.abs(error[:3]).max() <= settled and np.abs(error[3:]).max() <= settled * _reach(vehicle))


def _reach(vehicle: Vehicle) -> float:
    """Largest distance of a rotor from the centre of mass [m], at least 1 cm: the scale of moments."""
    offsets = np.array([rotor.position for rotor in vehicle.rotors]) - np.array(vehicle.center_of_mass)
    return max(float(np.linalg.norm(offsets, axis=1).max()), 0.01)


def _level_thrusts(matrix: Array, target: Array, lower: Array, upper: Array) -> Array:
    """Thrusts [N] of least norm that give the wrench; bounded least squares where those leave the rotors' limits."""
    thrusts = np.linalg.pinv(matrix, rcond=1e-9) @ target
    if np.all(thrusts >= lower) and np.all(thrusts <= upper):
        return thrusts
    from scipy.optimize import lsq_linear

    free = upper > lower
    out = lower.copy()
    if free.any():
        rest = target - matrix[:, ~free] @ lower[~free]
        out[free] = lsq_linear(matrix[:, free], rest, bounds=(lower[free], upper[free]), tol=1e-12).x
    return out


# ---- hover with the body leaning ----------------------------------------------------------------------------------------


def _leaning_thrusts(vehicle: Vehicle, matrix: Array, weight: float, lower: Array, upper: Array) -> Array | None:
    """Thrusts of least norm whose force is the weight, in whatever direction, with zero moment; None if there are none."""
    force, moment = matrix[:3], matrix[3:] / _reach(vehicle)
    axes = force @ np.maximum(upper, 0.0)
    for first in (_E3, axes):
        length = float(np.linalg.norm(first))
        thrusts = _fixed_point(force, moment, weight, first / length, lower, upper) if length > 0.0 else None
        if thrusts is not None:
            return thrusts
    return None


def _fixed_point(force: Array, moment: Array, weight: float, up: Array, lower: Array, upper: Array) -> Array | None:
    thrusts = np.zeros(force.shape[1])
    for _ in range(_TURNS):
        thrusts = _least_norm(np.vstack([moment, up @ force]), np.array([0.0, 0.0, 0.0, weight]), lower, upper)
        pushed = force @ thrusts
        length = float(np.linalg.norm(pushed))
        if length <= 1e-9 * weight:
            return None
        moved, up = float(np.linalg.norm(pushed / length - up)), pushed / length
        if moved < 1e-12:
            break
    return _polished(force, moment, weight, thrusts, lower, upper)


def _least_norm(rows: Array, target: Array, lower: Array, upper: Array) -> Array:
    thrusts = np.asarray(np.linalg.pinv(rows, rcond=1e-9) @ target)
    if np.all(thrusts >= lower) and np.all(thrusts <= upper):
        return thrusts
    from scipy.optimize import lsq_linear

    free, out = upper > lower, lower.copy()
    if free.any():
        stacked = np.vstack([_HARD * rows[:, free], np.eye(int(free.sum()))])
        rest = np.concatenate([_HARD * (target - rows[:, ~free] @ lower[~free]), np.zeros(int(free.sum()))])
        out[free] = np.clip(lsq_linear(stacked, rest, (lower[free], upper[free]), "bvls").x, lower[free], upper[free])
    return out


def _polished(force: Array, moment: Array, weight: float, thrusts: Array, lower: Array, upper: Array) -> Array | None:
    """Thrusts moved by the least that gives zero moment and the weight as force, those at a limit held; None if none do."""
    slack = 1e-6 * np.maximum(upper - lower, 1e-12)
    free = (thrusts > lower + slack) & (thrusts < upper - slack)
    thrusts = thrusts.copy()
    for _ in range(20):
        pushed = force @ thrusts
        error = np.append(moment @ thrusts, (pushed @ pushed - weight * weight) / (2.0 * weight))
        if np.abs(error).max() < 1e-12 * weight:
            break
        slope = np.vstack([moment, pushed @ force / weight])[:, free]
        thrusts[free] -= np.linalg.pinv(slope, rcond=1e-9) @ error
    at_rest = np.abs(error).max() < 1e-9 * weight
    return thrusts if at_rest and np.all(thrusts >= lower - slack) and np.all(thrusts <= upper + slack) else None


# ---- why not ------------------------------------------------------------------------------------------------------------


def _why_not(vehicle: Vehicle, weight: float, lower: Array, upper: Array) -> str:
    """Return why nothing holds it at rest, as the rest of a sentence."""
    matrix = control_effectiveness(vehicle)
    idle = [index for index in range(vehicle.rotor_count) if upper[index] <= max(lower[index], 0.0)]
    names = ", ".join(str(index) for index in idle)
    lost = f" (rotor{'s' if len(idle) > 1 else ''} {names} without thrust)" if idle else ""
    most = _largest_lift(matrix, (), lower, upper)
    if most < weight:
        return f"it weighs {weight:.4g} N and its rotors lift at most {most:.4g} N{lost}"
    balanced = max(_largest_lift(matrix, (3, 4, 5), lower, upper), 0.0) + 0.0  # no minus before a zero
    # A share of the weight below the solver's rounding is none.
    carried = "nothing" if balanced < 1e-6 * weight else f"at most {balanced:.4g} N"
    if balanced < weight and _largest_lift(matrix, (3, 4), lower, upper) >= weight:
        return (
            f"its rotors' reaction torques do not cancel: they carry its {weight:.4g} N only while it turns in yaw, and"
            f" {carried} with its heading held{lost}"
        )
    if balanced < weight:
        return (
            f"its rotors do not balance about the centre of mass: without turning it they lift {carried} of its "
            f"{weight:.4g} N{lost}"
        )
    least = float(np.linalg.norm(matrix[:3] @ lower))
    if least > weight:
        return f"its rotors push with {least:.4g} N at their lowest speeds and it weighs {weight:.4g} N"
    return f"no rotor states within their limits carry its {weight:.4g} N without a moment{lost}"


def _largest_lift(matrix: Array, balanced: tuple[int, ...], lower: Array, upper: Array) -> float:
    """Largest force [N] along body z or along the sum of the rotors' axes, with these rows of the wrench zero; -inf if none."""
    from scipy.optimize import linprog

    axes = matrix[:3] @ np.maximum(upper, 0.0)
    best = -math.inf
    for direction in (_E3, axes):
        length = float(np.linalg.norm(direction))
        if length == 0.0:
            continue
        rows = matrix[list(balanced)] if balanced else None
        zeros = np.zeros(len(balanced)) if balanced else None
        found = linprog(-(direction / length) @ matrix[:3], A_eq=rows, b_eq=zeros, bounds=list(zip(lower, upper, strict=True)))
        best = max(best, -float(found.fun)) if found.status == 0 else best
    return best
