"""An outer and an inner controller in a row, as a back end of `PlannerPilot`: from set-points to rotor thrusts.

The outer one asks for thrust and angular acceleration, the inner one for moments, allocation for rotor thrusts within limits:
thrust direction, roll and pitch before yaw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from airworthy.control.config import ControlConfig
from airworthy.core.errors import unknown_name
from airworthy.core.frames import rotate
from airworthy.pilots.agilicious.bodies import Bodies
from airworthy.pilots.agilicious.dfbc import DFBC_GAINS, DfbcGains, dfbc_control
from airworthy.pilots.agilicious.indi import Butterworth, indi_moment, plain_moment
from airworthy.pilots.pilot import Observation
from airworthy.pilots.planning.interface import Motion, Setpoints
from airworthy.pilots.planning.tracking_so3 import GENTLE_SHARE, So3State, so3_control, so3_gains
from airworthy.simulation.simulator import Simulator

__all__ = ["INNER", "Dfbc", "Measured", "Outer", "Pipeline", "So3"]

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]

INNER = ("plain", "indi")
RATE = 300.0
"""Commands per second that the filters are meant for [Hz]."""
INNER_CUTOFF, OUTER_CUTOFF = 12.0, 6.0
"""Of the gyroscope's derivative and the rotors, and of what makes up for the air [Hz]."""
AIR_SPEED = 3.0
"""Faster than this the air is made up for [m/s]."""
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
    fresh: Bools
    """Flights that have just begun, (n,)."""
    ahead: Sequence[Setpoints]
    """Set-points at the times that the controller looks ahead."""


class Outer(Protocol):
    """Asks for thrust and angular acceleration."""

    ahead: tuple[float, ...]
    """Times from now at which it wants set-points [s]."""

    def configure(self, bodies: Bodies, simulator: Simulator) -> None:
        """Meet the vehicles."""
        ...

    def wish(self, wanted: Setpoints, measured: Measured) -> tuple[Array, Array]:
        """Thrust [N], (n,), and angular acceleration, body [rad/s^2], (n, 3)."""
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

    def configure(self, bodies: Bodies, simulator: Simulator) -> None:
        """Only masses matter."""
        self._mass = bodies.mass

    def wish(self, wanted: Setpoints, measured: Measured) -> tuple[Array, Array]:
        """See `dfbc_control`."""
        motion = measured.motion
        air = np.zeros_like(motion.position)
        if self._air:
            push = rotate(motion.attitude, np.stack([0.0 * measured.thrust, 0.0 * measured.thrust, measured.thrust], axis=1))
            missing = push - measured.acceleration - [0.0, 0.0, 9.81]
            fast = np.linalg.norm(motion.velocity, axis=1) > AIR_SPEED
            air = np.where(fast[:, None], missing, 0.0)
        p, v, q, w = map(columns, (motion.position, motion.velocity, motion.attitude, measured.rate))
        out = dfbc_control(p, v, q, w, reference(wanted, measured.jerk), self.gains, columns(air), measured.thrust)
        return self._mass * out.thrust, np.stack(out.turn, axis=1)


class So3:
    """The common controller of EGO-Planner and Fast-Planner as an outer one, its term in the measured acceleration included."""

    ahead: tuple[float, ...] = ()

    def configure(self, bodies: Bodies, simulator: Simulator) -> None:
        """Gains of each vehicle."""
        # The inner loop's filters add a lag of their own: with the published attitude gains it would ring.
        gains = [so3_gains(v, lag_share=GENTLE_SHARE) for v in simulator.vehicles]
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
        """The simulator only turns thrusts into rotor speeds."""
        return ControlConfig()

    def configure(self, simulator: Simulator) -> None:
        """Meet the vehicles; filters fit the simulator's rate of commands."""
        self.bodies = Bodies(simulator.vehicles)
        self._rate = simulator.config.control_rate
        self._fast = Butterworth(INNER_CUTOFF, self._rate)
        self._slow = Butterworth(OUTER_CUTOFF, self._rate)
        self._time = np.full(len(self.bodies), np.inf)
        self._last: tuple[Array, Array, Array] | None = None
        self.outer.configure(self.bodies, simulator)

    def command(
        self,
        wanted: Setpoints,
        motion: Motion,
        errors: tuple[Array, Array],
        observation: Observation,
        ahead: Sequence[Setpoints] = (),
    ) -> Array:
        """Rotor thrusts [N], (n, rotors)."""
        rate = np.asarray(observation["rate"], float)
        thrusts = self.bodies.thrusts(np.asarray(observation["rotor_speed"], float))
        measured, turning, acting = self._measure(wanted, motion, rate, thrusts, ahead)
        force, turn = self.outer.wish(wanted, measured)
        inertia = self.bodies.inertia_columns()
        if self.inner == "indi":
            moment = indi_moment(columns(turn), columns(rate), columns(turning), columns(acting), inertia)
        else:
            moment = plain_moment(columns(turn), columns(rate), inertia)
        return self.bodies.allocated(force, moment)

    def _measure(
        self, wanted: Setpoints, motion: Motion, rate: Array, thrusts: Array, ahead: Sequence[Setpoints]
    ) -> tuple[Measured, Array, Array]:
        """What is measured, the filtered angular acceleration (n, 3) and the rotors' filtered moments (n, 3)."""
        step = motion.time - self._time
        fresh: Bools = np.asarray(~((step > 0.0) & (step < 1.0)), bool)
        step = np.where(fresh, 1.0 / self._rate, step)[:, None]
        before = (rate, motion.velocity, wanted.acceleration) if self._last is None else self._last
        now = (rate, motion.velocity, wanted.acceleration)
        slopes = [np.where(fresh[:, None], 0.0, (a - b) / step) for a, b in zip(now, before, strict=True)]
        self._time, self._last = motion.time.copy(), tuple(a.copy() for a in now)  # type: ignore[assignment]
        jump = np.asarray((np.abs(slopes[2]) > JERK_MAX).any(axis=1))
        fast = self._fast.step(np.concatenate([slopes[0], thrusts], axis=1), fresh)
        slow = self._slow.step(np.concatenate([slopes[1], self.bodies.wrench(thrusts)[:, 2:3]], axis=1), fresh)
        jerk = np.where(jump[:, None], 0.0, slopes[2])
        measured = Measured(motion, rate, slow[:, :3], slow[:, 3] / self.bodies.mass, jerk, fresh, ahead)
        return measured, fast[:, :3], self.bodies.wrench(fast[:, 3:])[:, 3:]


def columns(rows: Array) -> tuple[Array, ...]:
    """(n, k) as k arrays (n,), as equations take them."""
    return tuple(np.ascontiguousarray(rows.T))


def reference(wanted: Setpoints, jerk: Array) -> SimpleNamespace:
    """Set-points as equations take them."""
    vectors = {name: columns(getattr(wanted, name)) for name in ("position", "velocity", "acceleration")}
    return SimpleNamespace(**vectors, jerk=columns(jerk), yaw=wanted.yaw, yaw_rate=wanted.yaw_rate)
