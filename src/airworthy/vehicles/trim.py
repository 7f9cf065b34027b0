"""Hover of any airframe: the attitude and the rotor states that hold it at rest, or the reason why there are none.

Level where the rotors can do that, as on every flat multirotor. Where they cannot (rotors tilted alike, one bent arm) the body
leans until the rotors' force points up. Among the attitudes around level that one is taken whose sum of squared thrusts is
least: with F the force and M the moment rows of the effectiveness, min |u|^2 over M u = 0 and |F u| = m g has, by its Lagrange
conditions, the solution of least norm of M u = 0 and d . F u = m g, where d is the direction of F u itself: a fixed point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import to_matrix
from airworthy.vehicles.check import inertia_matrix, rotor_thrust
from airworthy.vehicles.record import Vector3, Vehicle
from airworthy.vehicles.wrench import columns, control_effectiveness, pushes_sideways, rotor_state_for_thrust, torque_ratio

__all__ = ["Trim", "hover_speed", "hover_trim", "thrust_limits", "upright"]


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
        """Largest share of a rotor's largest thrust (of its size, where the rotor turns in reverse) that hover takes."""
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
    """Least and largest thrust of each rotor [N], at its speed limits."""
    # Sorted afterwards: a polynomial that falls has its largest thrust at the lower end.
    ends = np.array([[rotor_thrust(r, r.speed_min), rotor_thrust(r, r.speed_max)] for r in vehicle.rotors])
    return ends.min(axis=1), ends.max(axis=1)


def hover_speed(vehicle: Vehicle) -> Array:
    """Rotor states that hold the vehicle at rest at its trim attitude, shape (rotor_count,); see `hover_trim`.

    Raises:
        AirworthyError: The rotors cannot hold it.
    """
    trim = hover_trim(vehicle)
    if not trim.hovers:
        raise AirworthyError(f"{vehicle.name} cannot hover: {trim.reason}.")
    return np.array(trim.states)


@lru_cache(maxsize=1024)
def hover_trim(vehicle: Vehicle) -> Trim:
    """Attitude and rotor states of hover in still air, or why there is none; see this module's text for which is chosen."""
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
