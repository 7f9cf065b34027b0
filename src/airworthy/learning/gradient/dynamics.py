"""A vehicle's policy step as one traced function of state, command and parameters: what gradients flow through.

The equations are those of the simulator (`airworthy.dynamics.equations`), with the same clipping of rotors, normalisation and
integrators; parameters are read from rows, so that one kernel serves every vehicle of a form. Left out, since their slope is
of no use: stochastic wrench, disturbances, contact, sensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, Vector
from airworthy.core.errors import AirworthyError
from airworthy.core.layout import Layout
from airworthy.core.ops import where
from airworthy.core.vectors import add, scale
from airworthy.dynamics import equations as eq
from airworthy.dynamics.rigid import DRAG_FLAGS
from airworthy.dynamics.state import Effects, padded_rotor_count
from airworthy.simulation.config import Randomization, SimulatorConfig
from airworthy.simulation.family import parameter_layout
from airworthy.simulation.posterior import bounded_config, posterior_of
from airworthy.simulation.simulator import Simulator
from airworthy.simulation.stability import rotor_poles
from airworthy.vehicles import Vehicle

__all__ = ["BODY", "Form", "Surrogate", "physics_step", "surrogate_of", "vehicle_step"]

BODY = 13
"""Rows of a state before the rotors': position, velocity, attitude x y z w, body rate."""

_LAG_STEP_MAX = 1.0
"""Ours: a sub-step is at most as long as the fastest rotor's time constant; RK4 is then right to 1 % of a rotor's change."""
_SUBSTEPS_MAX = 4
"""Ours: rotors too fast for that many are advanced by their exact solution where they are first order, as in the simulator."""


@dataclass(frozen=True)
class Form:
    """What is known when a kernel is built."""

    rotor_count: int
    planar: bool
    """Every rotor axis is body z and the inertia diagonal."""
    square: bool
    """Thrust and torque are pure squares of first-order rotor states."""
    drag: str
    """Of `airworthy.dynamics.rigid.DRAG_FLAGS`."""
    exact: bool
    """Some rotors are advanced by their exact solution."""
    substeps: int
    """Steps of the equations per policy step."""
    slots: int = 0
    """Commands on their way to rotors, one per step of the equations; see `airworthy.dynamics.state.delay_slots`."""

    @property
    def state(self) -> int:
        """Rows of a state."""
        return BODY + self.rotor_count

    @property
    def layout(self) -> Layout:
        """Of the parameter rows, as the simulator's."""
        return parameter_layout(padded_rotor_count(self.rotor_count), self.slots)

    @property
    def needed(self) -> set[int]:
        """Rows that are kept whatever a task reads: drawing asks for them."""
        layout = self.layout
        rotors = {layout.offsets["rotor_max"] + i for i in range(self.rotor_count)}
        late = ("command_delay",) if self.slots else ()
        return rotors | {layout.offsets[name] for name in ("gravity", "mass_inverse", *late)}

    def record(self, read: Callable[[int], Any]) -> SimpleNamespace:
        """Return the record that `physics_step` reads, without the rows that pad rotors; `read` is called with rows."""
        layout = self.layout
        whole = layout.record(read)
        cut = {name for name, shape in layout.fields.items() if name.startswith("rotor_") and len(shape) >= 1}
        # Layouts pad rotors: those that are not there would be traced, loaded and multiplied for nothing.
        return SimpleNamespace(**{n: v[: self.rotor_count] if n in cut else v for n, v in vars(whole).items()})

    def step(self, state: Vector, command: Vector, p: Any, dt: float, wrench: tuple[Vector, Vector] | None) -> Vector:
        """Return the state after a step of physics; see `physics_step`.

        Args:
            state: Before it.
            command: Commanded rotor states within their limits, n.
            p: Parameters.
            dt: Step [s].
            wrench: Force (world) [N] and moment (body) [N m] from outside.
        """
        return physics_step(state, command, p, self, dt, wrench)


@dataclass(frozen=True)
class Surrogate:
    """Vehicles as a trainer steps them."""

    form: Form
    step_s: float
    """Of the policy [s]."""
    layout: Layout
    """Of the parameter rows, as the simulator's."""
    rows: Array
    """Parameters, (rows, env), float64."""
    nominal: Array
    """The same as they are recorded, before anything is drawn."""

    def parameters(self, read: Callable[[int], Any]) -> SimpleNamespace:
        """Return the record that `vehicle_step` reads, without the rows that pad rotors; `read` is called with rows."""
        return self.form.record(read)


def surrogate_of(
    vehicles: Vehicle | Sequence[Vehicle], config: SimulatorConfig, env_count: int, seed: int = 0, late: bool = False
) -> Surrogate:
    """Return vehicles, drawn as the configuration says, at a physics rate that integrates their rotors well.

    Args:
        vehicles: One for all environments, or one each; all with the same number of rotors.
        config: Its `control_rate` is the policy's, its randomisation draws parameters; the physics rate is chosen here.
        env_count: Environments.
        seed: Of the draws.
        late: Whether who asks flies the dead time from command to rotor.

    Raises:
        AirworthyError: Vehicles with different numbers of rotors, or with a dead time that would be left out.
    """
    fleet = [vehicles] if isinstance(vehicles, Vehicle) else list(vehicles)
    if not late:
        refuse_dead_time(fleet)
    counts = sorted({item.rotor_count for item in fleet})
    if len(counts) != 1:
        raise AirworthyError(f"Vehicles have {counts} rotors; one policy commands as many rotors for each of them.")
    calm = replace(config, dynamics="rigid", level="rotor_speed", integrator="rk4", wrench_noise=False, disturbance=False)
    # Any rate does: only its parameter rows are looked at, for the fastest rotor there is.
    trial = Simulator(fleet, replace(calm, physics_rate=1000.0, randomization=Randomization()), len(fleet))
    # A drawn rotor is faster by up to the share by which lags are drawn.
    posteriors = [posterior_of(item, calm.randomization) for item in fleet] if calm.randomization.posterior else []
    share = bounded_config(calm, posteriors).randomization.lag
    pole = float(rotor_poles(trial.rows, trial._param_layout, calm).max()) / (1.0 - share)
    substeps = min(_SUBSTEPS_MAX, max(1, math.ceil(pole / (config.control_rate * _LAG_STEP_MAX))))
    chosen = replace(calm, physics_rate=config.control_rate * substeps)
    simulator = Simulator(vehicles, chosen, env_count, seed=seed)
    effects = simulator.effects
    flags = effects & (Effects.DRAG | Effects.DRAG_FULL | Effects.HUB_AIR)
    drag = next(name for name, value in DRAG_FLAGS.items() if value == flags)
    exact = Effects.EXACT_ROTORS in effects
    slots = simulator.layout.fields["rotor_queue"][0] if "rotor_queue" in simulator.layout else 0
    form = Form(counts[0], Effects.PLANAR in effects, Effects.SQUARE in effects and not exact, drag, exact, substeps, slots)
    rows, nominal = np.array(simulator.rows), np.array(simulator._nominal)
    return Surrogate(form, 1.0 / config.control_rate, simulator._param_layout, rows, nominal)


def refuse_dead_time(vehicles: Sequence[Vehicle]) -> None:
    """Refuse vehicles whose rotors are commanded late, where gradients flow through steps that do not know it.

    Raises:
        AirworthyError: One sentence.
    """
    for item in vehicles:
        if item.command_delay > 0.0:
            raise AirworthyError(
                f"{item.name} has a dead time of {1e3 * item.command_delay:.3g} ms from command to rotor, through which no"
                " gradient is taken: learn it by reward (--trainer native_ppo, ppo, sac or td3), or set its command_delay to 0."
            )


def vehicle_step(
    state: Vector, command: Vector, p: Any, form: Form, step_s: float, wrench: tuple[Vector, Vector] | None = None
) -> Vector:
    """Return the state after one policy step under one command.

    Args:
        state: Position, velocity (world), attitude x y z w, body rate, rotor states: 13 + n.
        command: Commanded rotor states within their limits, n.
        p: Parameters, from `Surrogate.parameters`.
        form: Of the vehicles.
        step_s: Of the policy [s].
        wrench: Force (world) [N] and moment (body) [N m] from outside, held over the step.
    """
    dt = step_s / form.substeps
    for _ in range(form.substeps):
        state = physics_step(state, command, p, form, dt, wrench)
    return state


def physics_step(
    state: Vector, command: Vector, p: Any, form: Form, dt: float, wrench: tuple[Vector, Vector] | None = None
) -> Vector:
    """Return RK4, as the simulator's step: rotors clipped to their limits and the quaternion normalised after it.

    Args:
        state: As of `vehicle_step`.
        command: Commanded rotor states within their limits, n.
        p: Parameters.
        form: Of the vehicles.
        dt: Of the step [s].
        wrench: Force (world) [N] and moment (body) [N m] from outside, held over the step.
    """
    half = full = None
    if form.exact:
        half = eq.rotor_exact(state[BODY:], command, p.rotor_rise_keep_half, p.rotor_fall_keep_half)
        full = eq.rotor_exact(state[BODY:], command, p.rotor_rise_keep, p.rotor_fall_keep)

    def held(rotors: Vector, exactly: Vector | None) -> Vector:
        if exactly is None:
            return rotors
        return tuple(where(p.rotor_exact > 0.5, e, r) for e, r in zip(exactly, rotors, strict=True))

    def at(slopes: Vector, h: float, exactly: Vector | None) -> Vector:
        moved = add(state, scale(slopes, h))
        return (*moved[:BODY], *held(moved[BODY:], exactly))

    # Over a step that is longer than a rotor's lag the slope at its beginning says nothing about the torque of its inertia.
    mean_rate = None if full is None else tuple((f - m) * (1.0 / dt) for f, m in zip(full, state[BODY:], strict=True))
    around = (mean_rate, wrench or (_NOTHING, _NOTHING))
    k1 = _slopes(state, command, p, form, *around)
    k2 = _slopes(at(k1, 0.5 * dt, half), command, p, form, *around)
    k3 = _slopes(at(k2, 0.5 * dt, half), command, p, form, *around)
    k4 = _slopes(at(k3, dt, full), command, p, form, *around)
    weighted = [a + 2.0 * b + 2.0 * c + d for a, b, c, d in zip(k1, k2, k3, k4, strict=True)]
    after = add(state, scale(tuple(weighted), dt / 6.0))
    rotors = eq.clip_rotors(held(after[BODY:], full), p.rotor_min, p.rotor_max, 1.0)
    return (*after[:6], *eq.normalize(after[6:10]), *after[10:BODY], *rotors)


_NOTHING = (0.0, 0.0, 0.0)


def _slopes(
    state: Vector, command: Vector, p: Any, form: Form, mean_rate: Vector | None, wrench: tuple[Vector, Vector]
) -> Vector:
    velocity, attitude, rate, rotors = state[3:6], state[6:10], state[10:BODY], state[BODY:]
    acceleration, turn, spin, rotor_rate, _ = eq.derivative(
        velocity,
        attitude,
        rate,
        rotors,
        command,
        # A constant without drag: tracing folds it away, and no row of wind is loaded.
        tuple(p.wind) if form.drag != "none" else _NOTHING,
        *wrench,
        None,
        p,
        planar=form.planar,
        square=form.square,
        drag=form.drag,
        exact=p.rotor_exact if form.exact else 0.0,
        mean_rate=mean_rate,
    )
    return (*velocity, *acceleration, *turn, *spin, *rotor_rate)
