"""An outer and an inner controller in a row, as a back end of `PlannerPilot`: from set-points to rotor thrusts.

The outer one asks for thrust and angular acceleration, the inner one for moments, allocation for rotor thrusts within limits:
thrust direction, roll and pitch before yaw.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol

import numpy as np

from airworthy.control import allocate_bounded, allocation_for
from airworthy.control.levels import ControlConfig
from airworthy.control.spare_rotors import Spare
from airworthy.core.arrays import Array, ArrayBool, ArrayIndex, Vector
from airworthy.core.errors import unknown_name
from airworthy.core.frames import rotate
from airworthy.core.vectors import cross, symmetric_multiply
from airworthy.planners.agilicious.dfbc import DFBC_GAINS, GRAVITY, DfbcGains, dfbc_control
from airworthy.planners.common.interface import Motion, Setpoints
from airworthy.planners.common.tracking_backends import GENTLE_SHARE, BackendInput, So3State, so3_control, so3_gains
from airworthy.simulation.simulator import Simulator
from airworthy.vehicles import Vehicle, control_effectiveness, upright
from airworthy.vehicles.trim import thrust_limits

__all__ = [
    "INNER",
    "Butterworth",
    "Dfbc",
    "Measured",
    "Outer",
    "Pipeline",
    "So3",
    "VehicleBodies",
    "indi_moment",
    "plain_moment",
]

# -----------------------------------------------------------------------------------------------------------------------------
# The inner loop of Agilicious: incremental inversion of the rotation's dynamics, and its filter; equations.
#
# Source: specification of the planners, section 9. What the rotors' moments and the turning do is measured, so only the
# change of moment has to be computed, and errors of inertia and drag act on that alone.


class _Coefficients(NamedTuple):
    """y = b0 (u + 2 u1 + u2) - a1 y1 - a2 y2."""

    b0: float
    a1: float
    a2: float


class Butterworth:
    """Second-order low-pass of arrays (n, k), by the bilinear transform with the cut-off warped into place.

    Args:
        cutoff: [Hz]
        rate: Samples per second [Hz].
    """

    def __init__(self, cutoff: float, rate: float):
        c = math.tan(math.pi * cutoff / rate)
        d = 1.0 + math.sqrt(2.0) * c + c * c
        self.coefficients = _Coefficients(c * c / d, 2.0 * (c * c - 1.0) / d, (1.0 - math.sqrt(2.0) * c + c * c) / d)
        self._past: list[Array] = []

    def step(self, u: Array, fresh: ArrayBool) -> Array:
        """Return the next value; rows that are fresh (n,) begin at rest at their first."""
        if not self._past:
            self._past = [u.copy() for _ in range(4)]
        u1, u2, y1, y2 = (np.where(fresh[:, None], u, past) for past in self._past)
        b0, a1, a2 = self.coefficients
        y = b0 * (u + 2.0 * u1 + u2) - a1 * y1 - a2 * y2
        self._past = [u.copy(), u1, y, y1]
        return y


def plain_moment(turn: Vector, rate: Vector, inertia: Vector) -> Vector:
    """Return J alpha + w x J w [N m].

    Args:
        turn: Wanted angular acceleration, body [rad/s^2].
        rate: Body rates w [rad/s].
        inertia: xx, yy, zz, xy, xz, yz [kg m^2].
    """
    spin, push = cross(rate, symmetric_multiply(inertia, rate)), symmetric_multiply(inertia, turn)
    return tuple(a + b for a, b in zip(push, spin, strict=True))


def indi_moment(turn: Vector, rate: Vector, measured: Vector, acting: Vector, inertia: Vector) -> Vector:
    """Return tau_f + J (alpha - w'_f) about roll and pitch, J alpha + w x J w about yaw, which else would swing [N m].

    Args:
        turn: Wanted angular acceleration, body [rad/s^2].
        rate: Body [rad/s].
        measured: Angular acceleration, filtered [rad/s^2].
        acting: Moments of the rotors, filtered alike [N m].
        inertia: xx, yy, zz, xy, xz, yz [kg m^2].
    """
    change = symmetric_multiply(inertia, tuple(a - b for a, b in zip(turn, measured, strict=True)))
    plain = plain_moment(turn, rate, inertia)
    return acting[0] + change[0], acting[1] + change[1], plain[2]


# ---- What the controllers know of each flight's vehicle, as arrays over flights ---------------------------------------------


class VehicleBodies:
    """Masses, inertias and rotors of n vehicles, padded to the most rotors.

    Args:
        vehicles: As the controllers believe them to be.
    """

    def __init__(self, vehicles: Sequence[Vehicle]):
        self.rotors = max(v.rotor_count for v in vehicles)
        count, n = len(vehicles), self.rotors
        self.mass = np.array([v.mass for v in vehicles])
        self.inertia = np.array([v.inertia for v in vehicles])
        """xx, yy, zz, xy, xz, yz, (n, 6)."""
        self.effect = np.zeros((count, 6, n))
        """Wrench per newton of each rotor."""
        self.lowest, self.highest = np.zeros((count, n)), np.zeros((count, n))
        self._polynomial = np.zeros((count, n, 3))
        kept: dict[int, Any] = {}
        for k, v in enumerate(vehicles):
            if id(v) not in kept:
                kept[id(v)] = (control_effectiveness(v), thrust_limits(v), [r.thrust for r in v.rotors], allocation_for(v, n))
            effect, limits, polynomial, _ = kept[id(v)]
            self.effect[k, :, : v.rotor_count] = effect
            self.lowest[k, : v.rotor_count], self.highest[k, : v.rotor_count] = limits
            self._polynomial[k, : v.rotor_count] = polynomial
        plans = [kept[id(v)][3] for v in vehicles]
        self._inverse = np.array([p.inverse for p in plans])
        self._collective = np.array([p.collective for p in plans])
        self._spare = [np.array(field) for field in zip(*(p.spare for p in plans), strict=True)]

    def __len__(self) -> int:
        return len(self.mass)

    def inertia_columns(self) -> tuple[Array, ...]:
        """Return xx, yy, zz, xy, xz, yz, (n,) each, as equations take them."""
        return tuple(self.inertia.T)

    def thrusts(self, speed: Array) -> Array:
        """Return thrust of each rotor at speeds (n, rotors) [N]."""
        c0, c1, c2 = np.moveaxis(self._polynomial, -1, 0)
        return np.asarray(c0 + c1 * speed + c2 * speed * np.abs(speed))

    def wrench(self, thrusts: Array) -> Array:
        """Return force and moment, body, (n, 6)."""
        return np.asarray(np.einsum("nij,nj->ni", self.effect, thrusts))

    def allocated(self, force: Array, moment: Sequence[Array]) -> Array:
        """Return rotor thrusts (n, rotors) [N] within limits for a force along body z and moments (n,); yaw is given up
        first."""
        zero = np.zeros(len(self))
        wrench = np.stack([zero, zero, force, *moment], axis=1)
        thrusts = np.asarray(np.einsum("nij,nj->ni", self._inverse, wrench))
        # The scheme by priority equals the exact solution wherever that is within limits: it runs only where it is not.
        beyond = np.flatnonzero(~((thrusts >= self.lowest) & (thrusts <= self.highest)).all(axis=1))
        if beyond.size:
            thrusts[beyond] = np.stack(allocate_bounded(tuple(wrench[beyond].T), self._plan_of(beyond)), axis=1)
        return thrusts

    def _plan_of(self, ids: ArrayIndex) -> SimpleNamespace:
        inverse = self._inverse[ids]
        return SimpleNamespace(
            inverse=tuple(tuple(inverse[:, i, j] for j in range(6)) for i in range(self.rotors)),
            collective=tuple(self._collective[ids].T),
            thrust_min=tuple(self.lowest[ids].T),
            thrust_max=tuple(self.highest[ids].T),
            spare=Spare._make(f[ids] if f.ndim == 1 else _by_element(f[ids]) for f in self._spare),
        )


def _by_element(field: Array) -> Any:
    """Tuples of arrays over flights from (flights, k) or (flights, k, j)."""
    return tuple(field.T) if field.ndim == 2 else tuple(tuple(row.T) for row in np.moveaxis(field, 1, 0))


# -----------------------------------------------------------------------------------------------------------------------------

INNER = ("plain", "indi")
# Source: spec/planners section 9, with the cutoffs below.
RATE = 300.0
"""Commands per second that the filters are meant for [Hz]."""
# Source: spec/planners section 9: gyro derivative and rotors 12 Hz at 300 Hz, accelerometer and rotor speed of the outer loop 6
# Hz.
INNER_CUTOFF, OUTER_CUTOFF = 12.0, 6.0
"""Of the gyroscope's derivative and the rotors, and of what makes up for the air [Hz]."""
# Source: spec/planners section 9, "when compensation is on and |v| > 3 m/s".
AIR_SPEED = 3.0
"""Faster than this the air is made up for [m/s]."""
# Ours: a jump of the acceleration by only 1 m/s^2 between two commands at 300 Hz would already count as 300 m/s^3.
JERK_MAX = 50.0
"""Of the reference; steeper changes of its acceleration are a new plan [m/s^3]."""


@dataclass(frozen=True, eq=False)
class Measured:
    """What the outer controllers are given, (n, ...)."""

    motion: Motion
    rate: Array
    """Body [rad/s], (n, 3)."""
    acceleration: Array
    """World, filtered [m/s^2], (n, 3)."""
    thrust: Array
    """Of all rotors along body z, over mass, filtered [m/s^2], (n,)."""
    jerk: Array
    """Of the reference [m/s^3], (n, 3)."""
    fresh: ArrayBool
    """Flights that have just begun, (n,)."""
    ahead: Sequence[Setpoints]
    """Set-points at the times that the controller looks ahead."""


class Outer(Protocol):
    """Asks for thrust and angular acceleration."""

    ahead: tuple[float, ...]
    """Times from now at which it wants set-points [s]."""

    def configure(self, bodies: VehicleBodies, simulator: Simulator) -> None:
        """Meet the vehicles."""
        ...

    def wish(self, wanted: Setpoints, measured: Measured) -> tuple[Array, Array]:
        """Return thrust [N], (n,), and angular acceleration, body [rad/s^2], (n, 3)."""
        ...


class Dfbc:
    """Control by differential flatness.

    Args:
        gains: Of `dfbc`.
        air: Make up for what the air does, from what is measured.
    """

    ahead: tuple[float, ...] = ()

    def __init__(self, gains: DfbcGains = DFBC_GAINS, air: bool = True):
        self.gains, self._air = gains, air

    def configure(self, bodies: VehicleBodies, simulator: Simulator) -> None:
        """Take the masses; nothing else matters."""
        self._mass = bodies.mass

    def wish(self, wanted: Setpoints, measured: Measured) -> tuple[Array, Array]:
        """See `dfbc_control`."""
        motion = measured.motion
        air = np.zeros_like(motion.position)
        if self._air:
            push = rotate(motion.attitude, np.stack([0.0 * measured.thrust, 0.0 * measured.thrust, measured.thrust], axis=1))
            missing = push - measured.acceleration - [0.0, 0.0, GRAVITY]
            fast = np.linalg.norm(motion.velocity, axis=1) > AIR_SPEED
            air = np.where(fast[:, None], missing, 0.0)
        p, v, q, w = map(columns, (motion.position, motion.velocity, motion.attitude, measured.rate))
        out = dfbc_control(p, v, q, w, reference(wanted, measured.jerk), self.gains, columns(air), measured.thrust)
        return self._mass * out.thrust, np.stack(out.turn, axis=1)


class So3:
    """The common controller of EGO-Planner and Fast-Planner as an outer one, its term in the measured acceleration included."""

    ahead: tuple[float, ...] = ()

    def configure(self, bodies: VehicleBodies, simulator: Simulator) -> None:
        """Set gains of each vehicle."""
        # The inner loop's filters add a lag of their own: with the published attitude gains it would ring.
        gains = [so3_gains(upright(v), lag_share=GENTLE_SHARE) for v in simulator.vehicles]
        names = ("position", "velocity", "attitude", "rate")
        self._gains = SimpleNamespace(**{n: columns(np.array([getattr(g, n) for g in gains])) for n in names})
        self._bodies = bodies

    def wish(self, wanted: Setpoints, measured: Measured) -> tuple[Array, Array]:
        """See `so3_control`; the moment that it asks for, less the gyroscopic one, over the inertia."""
        motion, inertia = measured.motion, self._bodies.inertia_columns()
        state = So3State(
            *map(columns, (motion.position, motion.velocity, measured.acceleration, motion.attitude, measured.rate))
        )
        thrust, moment = so3_control(state, reference(wanted, measured.jerk), self._gains, self._bodies.mass, inertia)
        spin = plain_moment((0.0, 0.0, 0.0), columns(measured.rate), inertia)
        # Products of inertia are left out: the gains are of the principal axes.
        return thrust, np.stack([(moment[i] - spin[i]) / inertia[i] for i in range(3)], axis=1)


class Pipeline:
    """A back end.

    Args:
        name: As in results.
        outer: Outer controller.
        inner: Of `INNER`.

    Raises:
        UnknownNameError: No such inner controller.
    """

    level = "rotor_thrust"
    rate = RATE
    observes: tuple[str, ...] = ("rate", "rotor_speed")

    def __init__(self, name: str, outer: Outer, inner: str = "plain"):
        if inner not in INNER:
            raise unknown_name("inner controller", inner, INNER)
        self.name, self.outer, self.inner = name, outer, inner

    @property
    def ahead(self) -> tuple[float, ...]:
        """As the outer controller's."""
        return self.outer.ahead

    def control(self) -> ControlConfig:
        """Return plain controllers: the simulator only turns thrusts into rotor speeds."""
        return ControlConfig()

    def configure(self, simulator: Simulator) -> None:
        """Meet the vehicles; filters fit the simulator's rate of commands."""
        self.bodies = VehicleBodies([upright(item) for item in simulator.vehicles])
        self._rate = simulator.config.control_rate
        self._fast = Butterworth(INNER_CUTOFF, self._rate)
        self._slow = Butterworth(OUTER_CUTOFF, self._rate)
        self._time = np.full(len(self.bodies), np.inf)
        self._last: tuple[Array, Array, Array] | None = None
        self.outer.configure(self.bodies, simulator)

    def command(self, given: BackendInput) -> Array:
        """Return rotor thrusts [N], (n, rotors)."""
        rate = np.asarray(given.observation["rate"], float)
        thrusts = self.bodies.thrusts(np.asarray(given.observation["rotor_speed"], float))
        measured, turning, acting = self._measure(given, rate, thrusts)
        force, turn = self.outer.wish(given.wanted, measured)
        inertia = self.bodies.inertia_columns()
        if self.inner == "indi":
            moment = indi_moment(columns(turn), columns(rate), columns(turning), columns(acting), inertia)
        else:
            moment = plain_moment(columns(turn), columns(rate), inertia)
        return self.bodies.allocated(force, moment)

    def _measure(self, given: BackendInput, rate: Array, thrusts: Array) -> tuple[Measured, Array, Array]:
        """Return what is measured, the filtered angular acceleration (n, 3) and the rotors' filtered moments (n, 3)."""
        wanted, motion = given.wanted, given.motion
        step = motion.time - self._time
        fresh: ArrayBool = np.asarray(~((step > 0.0) & (step < 1.0)), bool)
        step = np.where(fresh, 1.0 / self._rate, step)[:, None]
        before = (rate, motion.velocity, wanted.acceleration) if self._last is None else self._last
        now = (rate, motion.velocity, wanted.acceleration)
        slopes = [np.where(fresh[:, None], 0.0, (a - b) / step) for a, b in zip(now, before, strict=True)]
        self._time, self._last = motion.time.copy(), tuple(a.copy() for a in now)  # type: ignore[assignment]
        jump = np.asarray((np.abs(slopes[2]) > JERK_MAX).any(axis=1))
        fast = self._fast.step(np.concatenate([slopes[0], thrusts], axis=1), fresh)
        slow = self._slow.step(np.concatenate([slopes[1], self.bodies.wrench(thrusts)[:, 2:3]], axis=1), fresh)
        jerk = np.where(jump[:, None], 0.0, slopes[2])
        measured = Measured(motion, rate, slow[:, :3], slow[:, 3] / self.bodies.mass, jerk, fresh, given.ahead)
        return measured, fast[:, :3], self.bodies.wrench(fast[:, 3:])[:, 3:]


def columns(rows: Array) -> tuple[Array, ...]:
    """Return (n, k) as k arrays (n,), as equations take them."""
    return tuple(np.ascontiguousarray(rows.T))


def reference(wanted: Setpoints, jerk: Array) -> SimpleNamespace:
    """Return set-points as equations take them."""
    vectors = {name: columns(getattr(wanted, name)) for name in ("position", "velocity", "acceleration")}
    return SimpleNamespace(**vectors, jerk=columns(jerk), yaw=wanted.yaw, yaw_rate=wanted.yaw_rate)
