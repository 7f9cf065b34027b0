"""Controllers that follow set-points on the rigid family: the common one, and others for comparison.

A back end says at which level and rate the simulator must be built, sets its gains, and turns set-points into commands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from airworthy.control import rotor_lag
from airworthy.control.attitude import attitude_error, desired_axes, unit_or
from airworthy.control.levels import ControlConfig
from airworthy.core.arrays import Array, Scalar, Vector
from airworthy.core.errors import unknown_name
from airworthy.core.ops import absolute, sin_cos, where
from airworthy.core.vectors import cross, dot, matrix_columns, scale, sub, symmetric_multiply
from airworthy.pilots.pilot import Observation
from airworthy.planners.common.interface import Motion, Setpoints
from airworthy.simulation.simulator import Simulator
from airworthy.vehicles import Vehicle, upright
from airworthy.vehicles.trim import indicators

__all__ = [
    "GENTLE_SHARE",
    "LAG_SHARE",
    "Backend",
    "BackendInput",
    "Fused",
    "So3Gains",
    "backend",
    "backend_names",
    "register_backend",
    "so3_control",
    "so3_gains",
    "so3_rows",
]

# -----------------------------------------------------------------------------------------------------------------------------
# The SO(3) controller that flies EGO-Planner and Fast-Planner, its gains on any vehicle, and its readable twin.
#
# Source: specification of the planners, section 10.1 (ego-planner `so3_control`, gains of `gains_hummingbird.yaml` and
# `simulator.xml`). The simulator's fused law at level "tracking" is the same law without the term in the measured
# acceleration; here are the gains that it gets, and the published law itself for comparison.

# Source: spec/planners 10.1, the 0.98 kg vehicle; [R] ego-planner, so3_quadrotor_simulator/src/quadrotor_simulator_so3.cpp.
MASS, INERTIA = 0.98, (2.64e-3, 2.64e-3, 4.96e-3)
"""The vehicle that the published numbers are for: [kg], [kg m^2]."""
# [R] ego-planner, so3_control/src/so3_control_nodelet.cpp: defaults of the node, effective because the yaml names other keys.
FORCE_GAINS = (5.7, 5.7, 6.2), (3.4, 3.4, 4.0)
"""Position [N/m] and velocity [N s/m]."""
# [R] so3_control/config/gains_hummingbird.yaml; plan_manage/launch/simulator.xml sets z to 1.0 and 0.1.
TURN_GAINS = (1.0, 1.0, 1.0), (0.07, 0.07, 0.1)
"""Attitude [N m] and rate [N m s]; yaw as the launch file overrides it."""
# Spec/planners 10.1: "cap the bandwidth at 1/(4 tau_motor)", a rule of this project, not of the original.
LAG_SHARE = 0.65
"""Attitude frequency [rad/s] times the rotors' lag p, at most (ours; within 1 / (4 lag) as Hz, which is 1.57): what the
published vehicle has with the benchmark's rotors, 19.5 rad/s and 1/30 s, so that slower rotors keep its damping, 0.22. Behind a
lag the loop p s^3 + s^2 + 1.36 s + 1 (times over its own) is damped below p = 1.36 (Routh): at 1.57 vehicles ring and fall."""
GENTLE_SHARE = 0.25
"""1 / (4 lag) as rad/s: no vehicle with a lag of 1/30 s turns faster than 7.5 rad/s."""
AUTHORITY_ANGLE = 0.5
"""Error of attitude at which a hovering vehicle's rotors have no more to give, at least [rad] (ours). Where they would be
spent before, the attitude's frequency is lowered: a loop that is always saturated rings until the vehicle falls."""
POSITION_SHARE = 0.35
"""Position frequency over attitude frequency, at most (ours): it binds where rotors are slower than 1/30 s, and there the
cascade would ring."""
# [R] ego-planner, so3_control/src/SO3Control.cpp: ka = 0.2 |e| per axis if |e| <= 3, else 0.
ACCELERATION_SHARE, ACCELERATION_ERROR = 0.2, 3.0
"""Of the term in the measured acceleration: gain per sum of errors, and the sum above which there is none."""


@dataclass(frozen=True)
class So3Gains:
    """Gains of one vehicle, in the units of `airworthy.control.GeometricParameters`."""

    position: tuple[float, ...]
    """[1/s^2]"""
    velocity: tuple[float, ...]
    """[1/s]"""
    attitude: tuple[float, ...]
    """[N m]"""
    rate: tuple[float, ...]
    """[N m s]"""
    frequency: tuple[float, float]
    """Roll and pitch, then sideways position [rad/s]."""
    capped: bool
    """Whether the rotors' lag or strength lowered them."""


def so3_gains(vehicle: Vehicle, fixed: bool = False, lag_share: float = LAG_SHARE) -> So3Gains:
    """Return the published gains on a vehicle.

    Force gains scale with mass, attitude gains with inertia: frequencies and damping stay those of the 0.98 kg vehicle. The
    attitude's frequency is held below lag_share / lag and below what the rotors can deliver (`_deliverable`), and the
    position's below POSITION_SHARE of that, damping kept. Yaw, which allocation gives up first, has the lag's limit alone.

    Args:
        vehicle: As its controller believes it to be.
        fixed: The absolute numbers, whatever the vehicle.
        lag_share: Attitude frequency [rad/s] times the rotors' lag, at most.
    """
    if fixed:
        force = [tuple(k / vehicle.mass for k in gains) for gains in FORCE_GAINS]
        frequency = math.sqrt(TURN_GAINS[0][0] / vehicle.inertia[0]), math.sqrt(force[0][0])
        return So3Gains(force[0], force[1], *TURN_GAINS, frequency, False)
    # A dead time costs as much phase as a lag of its length.
    limit = lag_share / max(rotor_lag(vehicle) + vehicle.command_delay, 1e-9)
    turning = [math.sqrt(k / j) for k, j in zip(TURN_GAINS[0], INERTIA, strict=True)]
    strength = _deliverable(vehicle)
    turn_share = [min(1.0, limit / w, most / w) for w, most in zip(turning, (strength, strength, math.inf), strict=True)]
    tilt = turning[0] * turn_share[0]
    pull, damping = ([k / MASS for k in gains] for gains in FORCE_GAINS)
    share = [min(1.0, POSITION_SHARE * tilt / math.sqrt(k)) for k in pull]
    inertia = vehicle.inertia[:3]
    return So3Gains(
        tuple(k * s * s for k, s in zip(pull, share, strict=True)),
        tuple(k * s for k, s in zip(damping, share, strict=True)),
        tuple(j * (w * s) ** 2 for j, w, s in zip(inertia, turning, turn_share, strict=True)),
        tuple(j * k / j0 * s for j, k, j0, s in zip(inertia, TURN_GAINS[1], INERTIA, turn_share, strict=True)),
        (tilt, math.sqrt(pull[0]) * share[0]),
        min(*turn_share, *share) < 1.0,
    )


def _deliverable(vehicle: Vehicle) -> float:
    """Frequency of roll and pitch [rad/s] at which an error of AUTHORITY_ANGLE asks for all that rotors have left.

    A rotor that hovers at the share h of its most can be changed by the lesser of h and 1 - h; the indicators stand for 1/2.
    """
    known = indicators(vehicle)
    hover = min(1.0, 1.0 / max(known.thrust_to_weight, 1e-9))
    left = 2.0 * min(hover, 1.0 - hover)
    return math.sqrt(max(left * known.alpha_xy_max, 1e-6) / AUTHORITY_ANGLE)


def so3_rows(vehicles: Sequence[Vehicle], fixed: bool = False, lag_share: float = LAG_SHARE) -> dict[str, Array]:
    """Return parameters of the simulator that make its "tracking" level this controller, by name, (env, 3).

    Args:
        vehicles: One per environment, as their controllers believe them to be.
        fixed: The absolute published numbers, whatever the vehicle.
        lag_share: Attitude frequency [rad/s] times the rotors' lag, at most.
    """
    known: dict[int, So3Gains] = {}
    for vehicle in vehicles:
        if id(vehicle) not in known:
            known[id(vehicle)] = so3_gains(upright(vehicle), fixed, lag_share)
    every = [known[id(v)] for v in vehicles]
    return {f"control_{name}_gain": np.array([getattr(g, name) for g in every]) for name in _GAINS}


_GAINS = ("position", "velocity", "attitude", "rate")


# ---- the published law ---------------------------------------------------------------------------------------------------


class So3State(NamedTuple):
    """What the published law reads."""

    position: Vector
    """World [m]."""
    velocity: Vector
    """World [m/s]."""
    acceleration: Vector
    """Measured, world [m/s^2]."""
    attitude: Vector
    """Quaternion x, y, z, w, body to world."""
    rate: Vector
    """Body [rad/s]."""


def so3_control(state: So3State, reference: Any, gains: Any, mass: Scalar, inertia: Vector, gravity: Scalar = 9.81) -> Any:
    """Return thrust [N] and moment [N m] of the published law, an equation.

    f = m (g z + Kx e_p + Kv e_v + a_d + diag(k_a) (a_d - a)), k_a = 0.2 |e| per axis where |e| <= 3 and e is the sum of the
    three errors; tau = -K_R e_R - K_W w + w x J w; thrust f . R z, none where the attitude is more than 90 degrees off.

    Args:
        state: Present state.
        reference: With position, velocity, acceleration (tuples) and yaw.
        gains: `So3Gains` or alike.
        mass: Believed [kg].
        inertia: Believed xx, yy, zz, xy, xz, yz [kg m^2].
        gravity: [m/s^2]
    """
    force = []
    for i in range(3):
        e_p, e_v = reference.position[i] - state.position[i], reference.velocity[i] - state.velocity[i]
        e_a = reference.acceleration[i] - state.acceleration[i]
        total = absolute(e_p + e_v + e_a)
        share = where(total > ACCELERATION_ERROR, 0.0, ACCELERATION_SHARE * total)
        pull = gains.position[i] * e_p + gains.velocity[i] * e_v + reference.acceleration[i] + share * e_a
        force.append(mass * (pull + (gravity if i == 2 else 0.0)))
    axes = matrix_columns(state.attitude)
    sine, cosine = sin_cos(reference.yaw)
    wanted = (force[0], force[1], force[2])
    target = desired_axes(unit_or(wanted, axes[2]), (cosine, sine, 0.0), 0.0, axes)
    aligned = dot(target[0], axes[0]) + dot(target[1], axes[1]) + dot(target[2], axes[2])
    thrust = where(0.5 * (3.0 - aligned) < 1.0, dot(wanted, axes[2]), 0.0)
    error = attitude_error(axes, target)
    spin = cross(state.rate, symmetric_multiply(inertia, state.rate))
    push = tuple(gains.attitude[i] * error[i] + gains.rate[i] * state.rate[i] for i in range(3))
    return thrust, sub(spin, scale(push, 1.0))


# -----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BackendInput:
    """What a back end is given with every command, of n flights."""

    wanted: Setpoints
    """What to follow now, (n, ...), world."""
    motion: Motion
    """Odometry, (n, ...), world."""
    errors: tuple[Array, Array]
    """Of odometry, position [m] and velocity [m/s], (n, 3) each: what the motion has too much."""
    observation: Observation
    """All that the back end declared."""
    ahead: Sequence[Setpoints]
    """What to follow at the times of the back end's `ahead`."""


class Backend(Protocol):
    """Follows set-points. Attitudes and rates that reach it are of the frame that is level in hover (`HoverFrame`); a back end
    of thrust and rates commands in that frame, one of rotor thrusts knows the vehicles as `upright` turns them."""

    name: str
    level: str
    """Control level of its commands."""
    rate: float
    """Commands per second that it wants [Hz]."""
    observes: tuple[str, ...]
    """State that it reads besides position, velocity and attitude."""

    @property
    def ahead(self) -> tuple[float, ...]:
        """Times from now at which it also wants set-points [s]; of planners with `preview`, else by their motion now."""
        ...

    def control(self) -> ControlConfig:
        """Return the configuration with which the simulator must be built."""
        ...

    def configure(self, simulator: Simulator) -> None:
        """Take the simulator's vehicles as its controllers believe them to be; once, before flying."""
        ...

    def command(self, given: BackendInput) -> Array:
        """Return commands (n, width)."""
        ...


@dataclass
class Fused:
    """Laws that run inside the simulator's step, at its physics rate, at level "tracking".

    They close the loop on the true state; errors of odometry act through the set-points, from which they are taken.

    Attributes:
        name: As in results.
        gains: "so3", "so3_fixed", "so3_gentle", or "auto" for the airframe's own.
        level: Of the law.
    """

    name: str
    gains: str
    level: str = "tracking"
    rate: float = 100.0
    observes: tuple[str, ...] = ()
    ahead: tuple[float, ...] = ()

    def control(self) -> ControlConfig:
        """Return what the published controller knows: it hurries no rotors and counts on no drag."""
        return ControlConfig() if self.gains == "auto" else ControlConfig(rotor_lead=1.0, drag_feed_forward=False)

    def configure(self, simulator: Simulator) -> None:
        """Put the gains into the rows of the simulator's controllers."""
        if self.gains != "auto":
            share = GENTLE_SHARE if self.gains == "so3_gentle" else LAG_SHARE
            for name, rows in so3_rows(simulator.vehicles, self.gains == "so3_fixed", share).items():
                simulator.set_parameter(name, rows)

    def command(self, given: BackendInput) -> Array:
        """Return position, velocity, acceleration, no jerk, yaw, yaw rate; the law runs inside the step, on the true state."""
        wanted, errors = given.wanted, given.errors
        zero = np.zeros_like(wanted.position)
        heading = np.stack([wanted.yaw, wanted.yaw_rate], axis=1)
        parts = (wanted.position - errors[0], wanted.velocity - errors[1], wanted.acceleration, zero, heading)
        return np.concatenate(parts, axis=1)


_MAKERS: dict[str, tuple[Callable[[], Backend], str]] = {
    "so3": (lambda: Fused("so3", "so3"), "SO(3) controller of EGO-Planner and Fast-Planner, gains scaled to each vehicle"),
    "so3_fixed": (lambda: Fused("so3_fixed", "so3_fixed"), "the same with its absolute gains on every vehicle"),
    "so3_gentle": (lambda: Fused("so3_gentle", "so3_gentle"), "the same, turning no faster than a quarter of 1 / rotors' lag"),
    "geometric": (lambda: Fused("geometric", "auto"), "geometric law at each vehicle's own bandwidth, rotors hurried"),
    "mellinger": (lambda: Fused("mellinger", "auto", "tracking:mellinger"), "Mellinger law at each vehicle's own bandwidth"),
}


def register_backend(name: str, make: Callable[[], Backend], text: str) -> None:
    """Add a controller by name.

    Args:
        name: As in configurations and results.
        make: Called once per flight batch.
        text: A line for `backend_names()`.
    """
    _MAKERS[name] = (make, text)


def backend_names() -> dict[str, str]:
    """Return controllers and what they are."""
    _load()
    return {name: text for name, (_, text) in _MAKERS.items()}


DEFAULT_BACKEND = "so3"
"""The benchmark's own controller."""


def backend(name: str) -> Backend:
    """Return a controller by name.

    Raises:
        UnknownNameError: If there is none of this name.
    """
    _load()
    if name not in _MAKERS:
        raise unknown_name("controller", name, _MAKERS)
    return _MAKERS[name][0]()


def _load() -> None:
    """Import the controllers of other folders, which add themselves when they are."""
    import airworthy.planners.agilicious  # noqa: F401
