"""The readable twin of the native articulated step: the same functions, on NumPy float64, many environments at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import unknown_name
from airworthy.core.tracing.scalar import ScalarFunction
from airworthy.core.vectors import quaternion_derivative
from airworthy.dynamics.articulated.step import (
    INTEGRATORS,
    evaluate,
    rotor_keep,
    rotor_step,
    turned,
    within_limits,
)
from airworthy.dynamics.articulated.tree import JointTree, TreeNumbers, TreeStructure
from airworthy.dynamics.equations import normalize

__all__ = ["ArticulatedTwin", "JointedMotion"]


@dataclass(frozen=True)
class JointedMotion:
    """State of many environments, rows first: float64 (k, env)."""

    position: Array
    """Of the root's own centre of mass, world [m], (3, env)."""
    velocity: Array
    """World [m/s], (3, env)."""
    attitude: Array
    """x, y, z, w, root to world, (4, env)."""
    rate: Array
    """Of the root, root axes [rad/s], (3, env)."""
    joint: Array
    """[rad], (joints, env)."""
    joint_rate: Array
    """[rad/s], (joints, env)."""
    rotor: Array
    """Rotor states, (rotors, env)."""


_INPUTS = (
    "attitude", "rate", "q", "qd", "law_q", "law_qd", "rotor", "command", "target", "force", "moment", "velocity", "air",
    "h", "stop_h",
)  # fmt: skip


def _floats(values: Any) -> list[float]:
    return [float(np.asarray(v).reshape(-1)[0]) for v in values]


def _single(structure: TreeStructure, model: TreeNumbers) -> ScalarFunction:
    """Return the evaluation as a function of floats."""
    n, r = structure.joint_count, structure.rotor_count
    sizes = (4, 3, n, n, n, n, r, r, n, 3, 3, 3, 3, 1, 1)

    def function(h: Any, stop_h: Any, **given: Any) -> Any:
        return evaluate(structure, model, **given, h=h[0], stop_h=stop_h[0])

    return ScalarFunction(function, dict(zip(_INPUTS, sizes, strict=True)))


class ArticulatedTwin:
    """Steps of bare physics.

    Args:
        tree: What moves.
        rows: Parameter rows, (rows,) or (rows, env); None: those of the tree.
        single: For one environment: evaluations run on floats, in a fraction of the time.
    """

    def __init__(self, tree: JointTree, rows: ArrayLike | None = None, single: bool = False):
        self.tree, self.structure = tree, tree.structure
        values = np.asarray(tree.values if rows is None else rows, float)
        self.model = self.structure.model(lambda row: values[row])
        self._single = _single(self.structure, self.model) if single else None
        self.force: Any = (0.0, 0.0, 0.0)
        """External, on the root's own centre of mass, world [N]."""
        self.moment: Any = (0.0, 0.0, 0.0)
        """External, on the root, root axes [N m]."""
        self.air: Any = (0.0, 0.0, 0.0)
        """Velocity of the air, world [m/s]."""
        self.sensing: int | None = None
        """Number of a body that carries an inertial sensor."""
        self._heard: list[tuple[Array, ...]] = []

    def start(self, env_count: int = 1, **fields: ArrayLike) -> JointedMotion:
        """Return a state at rest with joints and rotors at zero, but for the fields given.

        Args:
            env_count: Environments.
            fields: Of `JointedMotion`, (k, env) or (k,).
        """
        n, r = self.structure.joint_count, self.structure.rotor_count
        sizes = {"position": 3, "velocity": 3, "attitude": 4, "rate": 3, "joint": n, "joint_rate": n, "rotor": r}
        rows = {name: np.zeros((size, env_count)) for name, size in sizes.items()}
        rows["attitude"][3] = 1.0
        for name, value in fields.items():
            given = np.asarray(value, float)
            rows[name] = np.broadcast_to(given[:, None] if given.ndim == 1 else given, (sizes[name], env_count)).copy()
        return JointedMotion(**rows)

    def evaluate(
        self,
        at: JointedMotion,
        law: JointedMotion,
        command: Any,
        target: Any,
        h: float,
        stop_h: float,
        force: Any = None,
        moment: Any = None,
    ) -> tuple[Array, ...]:
        """Return world acceleration, angular acceleration, joint accelerations, joint torques and specific force, (k, env).

        Args:
            at: Where geometry is taken.
            law: Where laws are taken.
            command: Rotor commands, (rotors, env) or (rotors,).
            target: Of the joints, alike.
            h: Step of the laws [s].
            stop_h: Of the stops [s].
            force: External, world [N]; None: `self.force`.
            moment: External, root axes [N m]; None: `self.moment`.
        """
        given: tuple[Any, ...] = (
            at.attitude,
            at.rate,
            at.joint,
            at.joint_rate,
            law.joint,
            law.joint_rate,
            at.rotor,
            command,
            target,
            self.force if force is None else force,
            self.moment if moment is None else moment,
            at.velocity,
            self.air,
        )
        env = at.position.shape[1]
        if self._single is not None:
            n = self.structure.joint_count
            flat = np.array(self._single(**dict(zip(_INPUTS, map(_floats, (*given, (h,), (stop_h,))), strict=True))))[:, None]
            return tuple(np.split(flat, np.cumsum([3, 3, n, n])))
        named: dict[str, Any] = dict(zip(_INPUTS, (*map(tuple, given), h, stop_h), strict=True))
        found = evaluate(self.structure, self.model, **named, sensing=self.sensing)
        arrays = tuple(np.stack([np.broadcast_to(np.asarray(x, float), (env,)) for x in part]) for part in found)
        self._heard.append(arrays)
        return arrays[:5]

    def step(
        self, state: JointedMotion, command: ArrayLike, target: ArrayLike, dt: float, integrator: str = "midpoint"
    ) -> JointedMotion:
        """Return the state one step on.

        Args:
            state: Before.
            command: Of the rotors, (rotors, env) or (rotors,).
            target: Of the joints, (joints, env) or (joints,).
            dt: Step [s].
            integrator: One of `INTEGRATORS`.
        """
        if integrator not in INTEGRATORS:
            raise unknown_name("integrator", integrator, INTEGRATORS)
        self._heard.clear()
        asked = tuple(within_limits(self.model, tuple(np.asarray(command, float))))
        aim = tuple(np.asarray(target, float))
        keep = rotor_keep(self.model, dt)
        half, whole = (np.stack(v) for v in rotor_step(self.model, tuple(state.rotor), asked, *keep, dt))
        after = getattr(self, f"_{integrator}")(state, replace(state, rotor=half), asked, aim, dt, whole)
        return replace(after, rotor=whole)

    def acted(
        self,
        state: JointedMotion,
        command: Array,
        target: Array,
        dt: float,
        integrator: str,
        force: Any,
        moment: Any,
        sensing: int,
    ) -> tuple[JointedMotion, tuple[Array, ...]]:
        """Return the state one step on under external forces, and what was felt: joint torques of the last evaluation, specific
        force of the root and of the body that senses, and that body's angular acceleration, of the first.

        Args:
            state: Before.
            command: Of the rotors, (rotors, env).
            target: Of the joints, (joints, env).
            dt: Step [s].
            integrator: One of `INTEGRATORS`.
            force: External, world [N].
            moment: External, root axes [N m].
            sensing: Number of the body that carries the inertial sensor.
        """
        self.force, self.moment, self.sensing = force, moment, sensing
        after = self.step(state, command, target, dt, integrator)
        first, last = self._heard[0], self._heard[-1]
        return after, (last[3], first[4], first[5], first[6])

    def _moved(self, origin: JointedMotion, found: tuple[Array, ...], h: float) -> JointedMotion:
        """Take a semi-implicit step: velocities first, then positions by the new ones."""
        dv, dw, dqd = found[:3]
        velocity, rate, qd = origin.velocity + dv * h, origin.rate + dw * h, origin.joint_rate + dqd * h
        return replace(
            origin,
            velocity=velocity,
            rate=rate,
            joint_rate=qd,
            position=origin.position + velocity * h,
            attitude=np.stack(turned(tuple(origin.attitude), tuple(rate), h)),
            joint=origin.joint + qd * h,
        )

    def _semi_implicit(
        self, y: JointedMotion, half: JointedMotion, command: Any, target: Any, dt: float, whole: Array
    ) -> JointedMotion:
        return self._moved(y, self.evaluate(y, y, command, target, dt, dt), dt)

    def _midpoint(
        self, y: JointedMotion, half: JointedMotion, command: Any, target: Any, dt: float, whole: Array
    ) -> JointedMotion:
        h = 0.5 * dt
        middle = replace(self._moved(y, self.evaluate(y, y, command, target, h, h), h), rotor=half.rotor)
        dv, dw, dqd = self.evaluate(middle, y, command, target, h, h)[:3]
        velocity, rate, qd = y.velocity + dv * dt, y.rate + dw * dt, y.joint_rate + dqd * dt
        return replace(
            y,
            velocity=velocity,
            rate=rate,
            joint_rate=qd,
            position=y.position + (y.velocity + velocity) * h,
            attitude=np.stack(turned(tuple(y.attitude), tuple((y.rate + rate) * 0.5), dt)),
            joint=y.joint + (y.joint_rate + qd) * h,
        )

    def _extrapolated(
        self, y: JointedMotion, half: JointedMotion, command: Any, target: Any, dt: float, whole: Array
    ) -> JointedMotion:
        h = 0.5 * dt
        once = self._moved(y, self.evaluate(y, y, command, target, dt, dt), dt)
        first = replace(self._moved(y, self.evaluate(y, y, command, target, h, h), h), rotor=half.rotor)
        twice = self._moved(first, self.evaluate(first, first, command, target, h, h), h)
        names = ("position", "velocity", "attitude", "rate", "joint", "joint_rate")
        made = {name: 2.0 * getattr(twice, name) - getattr(once, name) for name in names}
        made["attitude"] = np.stack(normalize(tuple(made["attitude"])))
        return replace(y, **made)

    def _rk4(self, y: JointedMotion, half: JointedMotion, command: Any, target: Any, dt: float, whole: Array) -> JointedMotion:
        names = ("position", "velocity", "attitude", "rate", "joint", "joint_rate")
        at, total = y, dict.fromkeys(names, np.zeros(1))
        for stage in range(4):
            dv, dw, dqd = self.evaluate(at, at, command, target, 0.0, dt)[:3]
            dq = np.stack(quaternion_derivative(tuple(at.attitude), tuple(at.rate)))
            slope = dict(zip(names, (at.velocity, dv, dq, dw, at.joint_rate, dqd), strict=True))
            weight, h = (1.0 if stage in (0, 3) else 2.0), (dt if stage == 2 else 0.5 * dt)
            total = {name: total[name] + weight * slope[name] for name in names}
            rotor = whole if stage == 2 else half.rotor
            at = replace(y, rotor=rotor, **{name: getattr(y, name) + slope[name] * h for name in names})
        made = {name: getattr(y, name) + total[name] * (dt / 6.0) for name in names}
        made["attitude"] = np.stack(normalize(tuple(made["attitude"])))
        return replace(y, **made)
