"""Roll-outs of the expert: many at once, each the same whatever flies beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from airworthy.control.mpc import mpc_preset
from airworthy.core.arrays import Array, ArrayBool, ArrayInt, ArrayLike
from airworthy.core.random import Stream, flight_key, normals
from airworthy.learning.synthesis.config import RATE, Stages, noise_level
from airworthy.learning.synthesis.plan import RolloutPlan, RolloutStarts
from airworthy.pilots.expert import ExpertPilot
from airworthy.pilots.pilot import Observation
from airworthy.simulation import Simulator, SimulatorConfig

__all__ = ["Rollouts", "roll_out", "sensed_states"]


@dataclass(frozen=True, eq=False)
class Rollouts:
    """n roll-outs of k ticks. Frames: world z up, body x forward, y left, z up. Image, sensed state and command of tick i are
    of the same instant."""

    number: ArrayInt
    """(n,)"""
    course: ArrayInt
    """(n,)"""
    start: Array
    """(n,) time on the course [s]."""
    mass: Array
    """(n,) [kg]"""
    force: Array
    """(n,) of one rotor at full command [N]."""
    state: Array
    """(n, k + 1, 10): position, velocity, quaternion, as they are; the last is that after the last command."""
    sensed: Array
    """(n, k, 10)"""
    command: Array
    """(n, k, 4): share of full thrust in [0, 1], body rates [rad/s]."""
    end_error: Array
    """(n,) distance from the end to the nearest sample of the course [m]."""
    kept: ArrayBool
    """(n,) ended close enough to the course, with an optimum at every tick."""
    failures: ArrayInt
    """(n,) ticks without a solution, or with one that was cut off before its optimum."""

    def selected(self, which: ArrayBool) -> Rollouts:
        """Return some of them, by mask."""
        return Rollouts(*(getattr(self, f.name)[which] for f in fields(self)))


def roll_out(
    plan: RolloutPlan,
    numbers: ArrayLike,
    device: str = "cpu",
    threads: int | None = None,
    stages: Stages | None = None,
    alive: Callable[[], None] = lambda: None,
) -> Rollouts:
    """Fly roll-outs by their numbers.

    Args:
        plan: Of the configuration.
        numbers: (n,)
        device: Of simulation and MPC.
        threads: Most threads of a CPU.
        stages: Counts the time.
        alive: Called before each tick; raises where the roll-outs are not wanted any more.
    """
    config, stages = plan.config, stages or Stages()
    with stages("planning"):
        starts = plan.starts(numbers)
    with stages("solving"):
        pilot = _pilot(plan, starts, device)
    with stages("simulating"):
        simulator = _simulator(plan, starts, device, threads)
    full = starts.force * plan.vehicle.rotor_count
    delay = round(config.delay * config.physics_rate)
    if delay:  # what is held before the first command
        simulator.set_command(np.outer(starts.mass * plan.vehicle.gravity, [1.0, 0.0, 0.0, 0.0]))
    # State, image and command of a tick are of one instant; the reference pairs them up to 40 ms apart (spec/sousvide section
    # 2).
    state, command = [_state(simulator)], []
    for _ in range(config.ticks):
        alive()
        now = state[-1]
        with stages("solving"):
            # The truth: the expert is privileged (spec/sousvide section 4); what a policy would sense is made afterwards.
            truth: dict[str, Any] = {"position": now[:, :3], "velocity": now[:, 3:6], "attitude": now[:, 6:]}
            given = pilot.command(Observation(simulator.time, truth))
        with stages("simulating"):
            simulator.set_command(given, np.full(len(full), delay) if delay else None)
            simulator.step()
            command.append(np.concatenate([given[:, :1] / full[:, None], given[:, 1:]], axis=1))
            state.append(_aligned(_state(simulator), now))
    states = np.stack(state, axis=1)
    sensed = sensed_states(plan, starts.number, states[:, :-1])
    # By the last true state, after the last command: what the paper's criterion looks at (spec/sousvide section 5).
    error = _end_error(plan, starts.course, states[:, -1, :3])
    # 0 keeps every roll-out.
    kept = (error <= config.keep_within) | (config.keep_within == 0.0)
    # A tick without a solution holds the command before: an expert that did not decide is nothing to imitate, and one that was
    # cut off before its optimum is a wrong example.
    failures = pilot.failures + pilot.cut_off
    kept &= (failures == 0) & np.isfinite(states).all((1, 2))
    values = (starts.number, starts.course, starts.time, starts.mass, starts.force, states, sensed, np.stack(command, axis=1))
    return Rollouts(*values, error, kept, failures)


def sensed_states(plan: RolloutPlan, number: ArrayInt, states: Array) -> Array:
    """Return what is sensed of true states (n, k, 10): noise of the level added, quaternions of unit length and the same
    sign.

    Args:
        plan: With the noise's level and the seed.
        number: Of the roll-outs, (n,).
        states: True, (n, k, 10), world, z up.
    """
    level = np.array(noise_level(plan.config.noise).sensor)
    if not level.any():
        return states.copy()
    # Keyed by roll-out and tick: the noise does not depend on which roll-outs are flown together.
    key = flight_key(plan.config.seed, number)[:, None]
    drawn = normals(key, np.arange(states.shape[1])[None], Stream.SENSED, 12)[..., :10]
    sensed = states + level * drawn
    sensed[..., 6:] /= np.linalg.norm(sensed[..., 6:], axis=-1, keepdims=True)
    return _aligned(sensed, states)


def _pilot(plan: RolloutPlan, starts: RolloutStarts, device: str) -> ExpertPilot:
    full = starts.force * plan.vehicle.rotor_count
    mpc, gravity = mpc_preset(plan.config.mpc), plan.vehicle.gravity
    return ExpertPilot(plan.reference, full, starts.mass, starts.course, starts.time, mpc, gravity, device=device)


def _simulator(plan: RolloutPlan, starts: RolloutStarts, device: str, threads: int | None) -> Simulator:
    config = plan.config
    clock = SimulatorConfig(dynamics="semi_kinematic", level="rate_thrust", physics_rate=config.physics_rate, control_rate=RATE)
    count = len(starts.number)
    simulator = Simulator(plan.vehicle, clock, count, config.seed, starts.number, device=device, threads=threads)
    simulator.set_parameter("mass", starts.mass)
    simulator.set_parameter("thrust_limit", starts.force * plan.vehicle.rotor_count)
    model = np.array(noise_level(config.noise).model)
    if model.any():
        # Over the steps of a tick it is divided as a number is, as the published simulator does it.
        simulator.set_parameter("noise", model * RATE / config.physics_rate)
    state = starts.state
    simulator.reset(position=state[:, :3], velocity=state[:, 3:6], attitude=state[:, 6:])
    return simulator


def _state(simulator: Simulator) -> Array:
    parts = (simulator.position, simulator.velocity, simulator.attitude)
    return np.concatenate(parts, axis=1).astype(np.float64)


def _aligned(state: Array, like: Array) -> Array:
    """Quaternions with the sign nearest to others'."""
    flip = (state[..., 6:] * like[..., 6:]).sum(-1, keepdims=True) < 0.0
    state[..., 6:] *= np.where(flip, -1.0, 1.0)
    return state


def _end_error(plan: RolloutPlan, which: ArrayInt, end: Array) -> Array:
    found = np.full(len(end), np.inf)
    for index, path in enumerate(plan.paths):
        mine = np.flatnonzero(which == index)
        points = path.sample(np.arange(0.0, path.duration + 1e-9, 1.0 / plan.config.keep_rate)).position
        found[mine] = np.linalg.norm(end[mine, None] - points, axis=-1).min(axis=1)
    return found
