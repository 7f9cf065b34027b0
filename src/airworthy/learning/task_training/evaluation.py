"""Judge a policy of any task: flights in the simulator, whose physics it never learnt with, by the task's own judgement.

The same starts for everybody, those of a `VectorTask` of seed 7919 that no training has (specification, learning by reward,
section 8); observations have the noise that is the task's own, or are flown without it, too; actions are without exploration.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayFloat, Vector
from airworthy.core.frames import to_matrix
from airworthy.core.random import Stream, flight_key, normals
from airworthy.core.schema import Bound, check_fields
from airworthy.dynamics.articulated.stiffness import default_integrator
from airworthy.evaluation import wilson_interval
from airworthy.learning.environments import LearningTask, VectorTask
from airworthy.learning.environments.jointed import split_state
from airworthy.learning.environments.traits import TaskTraits, traits_of
from airworthy.learning.gradient.evaluation import EVALUATION_SEED
from airworthy.learning.gradient.flyers import Flyer, GeometricController, MpcController
from airworthy.learning.task_training.policy import without_noise
from airworthy.learning.verdicts import JudgedFlights, beside_controller
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.simulation.jointed.joints import tree_for
from airworthy.vehicles import Vehicle

__all__ = [
    "PathController", "RootController", "TaskFlights", "TaskProtocol", "compare", "fly_task", "known_controllers",
    "simulated_dynamics", "task_figures",
]  # fmt: skip

_FAR = 1e6
"""State of a flight that left the numbers is set to it: it is lost, and its numbers are not read."""


@dataclass(frozen=True)
class TaskProtocol:
    """How policies are judged."""

    flights: Annotated[int, Bound(1, 1_000_000)] = 1024
    """As they are; also of the geometric controller."""
    mpc_flights: Annotated[int, Bound(0, 1_000_000)] = 64
    """Of the MPC, which takes more time, the first of the same starts; 0: without it."""
    steady_s: Annotated[float, Bound(0.01, 1e3, "s")] = 2.0
    """End of a flight, over which the error is the mean distance; of a shorter flight its last half."""
    physics_rate: Annotated[float, Bound(100.0, 1e5, "Hz")] = 1000.0
    """Steps of the equations per second."""
    seed: int = EVALUATION_SEED
    """Of starts."""

    def __post_init__(self) -> None:
        check_fields(self, "TaskProtocol.")


class Acting(Protocol):
    """What an action is taken from."""

    def action(self, seen: ArrayFloat) -> ArrayFloat:
        """Return actions (env, actions) of observations (env, observed)."""
        ...


@dataclass(frozen=True, eq=False)
class TaskFlights:
    """What was measured of flights, (flights,) each unless said otherwise."""

    lost: ArrayBool
    """Ended by what happened in them, or left the numbers."""
    success: ArrayBool
    """Not lost, and the last state is what the task asks for."""
    error: Array | None
    """Mean distance over the end [m]; None: the task has none."""
    returns: Array | None
    """Sum of rewards until the end or the loss; None: of a known controller, which takes no actions."""
    terms: dict[str, float] = field(default_factory=dict)
    """Mean per decision of the named parts of the reward."""


def fly_task(
    task: LearningTask,
    vehicle: Vehicle,
    flyer: Acting | Flyer,
    protocol: TaskProtocol,
    count: int,
    rate: float | None = None,
    noise: bool = True,
) -> TaskFlights:
    """Fly the first starts of the protocol for as long as the task's flights are, and judge them.

    Args:
        task: That is judged.
        vehicle: What flies.
        flyer: A policy of the task, or a known controller.
        protocol: How it is judged.
        count: Flights.
        rate: Decisions per second [Hz]; None: the task's.
        noise: Disturb what a policy sees as the task does; known controllers see the true state.

    Raises:
        AirworthyError: The flyer cannot fly this vehicle.
    """
    starts, traits = VectorTask(task, count, vehicle, protocol.seed), traits_of(task)
    known = flyer if isinstance(flyer, GeometricController | MpcController | PathController) else None
    flights = _Flights(starts, traits, protocol, known, task.rate if rate is None else rate)
    if noise and task.noise:
        flights.disturb()
    for _ in range(task.episode_steps):
        flights.step(flyer)
        if flights.lost.all():
            break
    return flights.result()


class _Flights:
    """Flights in a simulator, and what the task says of them."""

    def __init__(self, starts: VectorTask, traits: TaskTraits, protocol: TaskProtocol, known: Flyer | None, rate: float):
        self._starts, self._traits, self.task = starts, traits, starts.task
        self._seen_by = without_noise(self.task)
        self._keys: ArrayAny | None = None
        self._known, self._rate, self._protocol = known, rate, protocol
        config = SimulatorConfig(
            level=traits.level if known is None else known.level,
            control=traits.control(starts.vehicle) if known is None and not traits.by_rotor else SimulatorConfig().control,
            control_rate=rate,
            physics_rate=protocol.physics_rate,
            **simulated_dynamics(traits, starts.vehicle, 1.0 / protocol.physics_rate),
        )
        self._simulator = s = Simulator(starts.vehicle, config, starts.env_count, seed=protocol.seed)
        first, rotors = starts.state.astype(float), starts.vehicle.rotor_count
        self._joints = (len(first) - 13 - rotors) // 2 if traits.jointed else 0
        parts = split_state(tuple(first), rotors, self._joints)
        names = ("position", "velocity", "attitude", "rate", "rotor_speed", "joint", "joint_rate")
        # Of rigid vehicles there is nothing behind the rotors.
        s.reset(**{name: np.array(part).T for name, part in zip(names, parts, strict=True) if part})
        count = starts.env_count
        self._memory, self.age = starts.memory.astype(float), np.zeros(count)
        # Flights begin as if they had hovered before: the first change of action is judged against that.
        self._past = np.tile(np.asarray(starts.hover_action, float)[:, None], (1, count))
        self._state = first
        self.lost, self._success = np.zeros(count, bool), np.zeros(count, bool)
        self._returns, self._errors = np.zeros(count), list[Any]()
        self._terms: dict[str, float] = {}
        self._judged = self._tick = 0
        if isinstance(known, PathController):
            known.follow(self)
        elif known is not None:
            known.begin(s)

    def disturb(self) -> None:
        """Let observations have the task's noise: of flight and decision alone, so that every policy is shown the same."""
        self._seen_by = self.task
        self._keys = flight_key(self._protocol.seed, np.arange(len(self.age)))

    def _noises(self) -> Vector:
        """Sixteen standard normal numbers of each flight, or zeros."""
        count = len(self.age)
        if self._keys is None:
            return tuple(np.zeros(count) for _ in range(16))
        return tuple(normals(self._keys, self._tick, Stream.SENSED, 16).T)

    def record(self, age: Array | None = None) -> Any:
        """Parameters of the flights as they are now."""
        curriculum = self._traits.curriculum
        # Judged where a curriculum ends, whatever level the training came to.
        level = float(curriculum.most) if curriculum else 0.0
        # The nominal vehicle in every flight, as the simulator flies it.
        column = self._starts.nominal.astype(float)[:, None] * np.ones(len(self.age))
        flight = (self.age if age is None else age, level)
        return self._starts.parameters_of_flight(column, tuple(self._past), flight, tuple(self._memory))

    def step(self, flyer: Any) -> None:
        """One decision and its judgement."""
        p, count = self.record(), len(self.age)
        state, action = tuple(self._state), self._past
        if self._known is None:
            seen = np.array([np.broadcast_to(x, count) for x in self._seen_by.observe(state, self._noises(), p)], float).T
            self._tick += 1
            # As in training: what lies beyond the limits of an action is cut off, not refused.
            action = np.clip(np.asarray(flyer.action(seen), float), -1.0, 1.0).T
            command = np.array([np.broadcast_to(x, count) for x in self.task.command(tuple(action), p)]).T
        else:
            command = np.asarray(self._known.command(self._simulator, None), float)
        if self._traits.pushed:
            force, moment = (np.array([np.broadcast_to(x, count) for x in part]).T for part in self.task.wrench(state, p))  # type: ignore[attr-defined]
            self._simulator.set_external(force, moment)
        rotors = self._simulator.rotor_count
        if self._joints and command.shape[-1] > rotors and self._known is None:
            self._simulator.set_joint_command(rate=command[:, rotors:])
            command = command[:, :rotors]
        self._simulator.step(command)
        after = self._now()
        sound = np.isfinite(after).all(axis=0) & ~self._simulator.diverged
        # Numbers that are finite and far off, so that the task's own formulas stay defined for all others.
        after = np.where(sound, after, _FAR)
        self._judge(state, tuple(after), action, p, sound)
        self._past, self._state = action, after

    def _judge(self, before: Any, after: Any, action: Array, p: Any, sound: ArrayBool) -> None:
        count, flying = len(self.age), ~self.lost
        with np.errstate(all="ignore"):
            judged = self.task.judge(before, after, tuple(action), tuple(self._past), p)
            memory = self._traits.remember(before, after, tuple(action), p)
        # A lost flight earns nothing any more, as in training, where the next one has begun in its place.
        values = {k: np.where(flying & sound, np.broadcast_to(x, count), 0.0) for k, x in judged.terms.items()}
        for name, value in values.items():
            self._terms[name] = self._terms.get(name, 0.0) + float(value.sum())
            self._returns += value
        self._judged += int(flying.sum())
        # Once lost, always lost: a flight that would come back by luck does not count as kept.
        self.lost |= ~sound | (np.broadcast_to(judged.terminated, count) > 0.5)
        self._success = np.broadcast_to(judged.success, count) > 0.5
        if len(memory):
            self._memory = np.array([np.broadcast_to(x, count) for x in memory], float)
        self.age = self.age + 1.0
        self._errors.append(self._traits.error(after, self.record()))

    def _now(self) -> Array:
        s = self._simulator
        parts = [np.asarray(s.field(name), float).T for name in ("position", "velocity", "attitude", "rate")]
        joints = [np.asarray(s.field(name), float).T for name in ("joint", "joint_rate")] if self._joints else []
        return np.concatenate([*parts, np.asarray(s.rotor_speed, float).T, *joints])

    def result(self) -> TaskFlights:
        """Return what was measured."""
        error = None
        if self._errors[-1] is not None:
            # At most half of a flight: short tasks would be judged on their approach otherwise.
            last = max(1, min(round(self._protocol.steady_s * self._rate), len(self._errors) // 2))
            error = np.array(self._errors[-last:], float).mean(axis=0)
        terms = {name: total / max(self._judged, 1) for name, total in self._terms.items()}
        acted = self._known is None
        return TaskFlights(
            self.lost, self._success & ~self.lost, error, self._returns if acted else None, terms if acted else {}
        )


def simulated_dynamics(traits: TaskTraits, vehicle: Vehicle, dt: float) -> dict[str, Any]:
    """Return what of a simulator's settings is another for vehicles with joints: not the integrator that policies learn with.

    Args:
        traits: Of the task.
        vehicle: That flies.
        dt: Step of physics [s].
    """
    if not traits.jointed:
        return {}
    return {"dynamics": "articulated", "integrator": default_integrator(tree_for(vehicle), dt)}


class RootController(GeometricController):
    """Our geometric law on a vehicle with joints, which it leaves as they are, its root at the origin, its heading as it is."""

    def command(self, simulator: Simulator, noise: Array | None) -> Array:
        """Return where the centre of mass is when the root's is at the origin, and the heading, (env, 4)."""
        offset = np.asarray(simulator.center, float) - np.asarray(simulator.position, float)
        forward = to_matrix(np.asarray(simulator.attitude, float))[:, :, 0]
        return np.concatenate([offset, np.arctan2(forward[:, 1], forward[:, 0])[:, None]], axis=1)


class PathController:
    """Our tracking law on the path of a task, inside the simulator's step."""

    name, level, outside = "geometric controller", "tracking", False
    hover = np.zeros(12)
    _SPAN = 0.02
    """Seconds on either side of which differences are taken: a path is points without derivatives."""
    _MOST = (9.81, 100.0)
    """Ours: largest acceleration [m/s^2] and jerk [m/s^3]; corners of straight paths have none, but differences do."""

    def __init__(self, rate: float):
        self.rate = rate
        self._flights: Any = None

    def follow(self, flights: Any) -> None:
        """Take the paths from flights."""
        self._flights = flights

    def begin(self, simulator: Simulator) -> None:
        """Begin flights: nothing is kept."""

    def command(self, simulator: Simulator, noise: Array | None) -> Array:
        """Return position, velocity, acceleration, jerk, yaw 0, (env, 14)."""
        f, span = self._flights, self._SPAN
        steps = span * self.rate
        p = f.record()
        early, before, now, after, late = (np.array(f.task.reference(f.age + k * steps, p)) for k in (-2, -1, 0, 1, 2))
        # Central differences: those of one side would lag by half a span.
        velocity = (after - before) / (2.0 * span)
        acceleration = _within((after - 2.0 * now + before) / span**2, self._MOST[0])
        jerk = _within((late - 2.0 * after + 2.0 * before - early) / (2.0 * span**3), self._MOST[1])
        rest = np.zeros((2, now.shape[1]))
        return np.asarray(np.concatenate([now, velocity, acceleration, jerk, rest]).T)


def _within(vectors: Array, most: float) -> Array:
    """Vectors (3, env), shortened to a length."""
    return np.asarray(vectors * np.minimum(1.0, most / np.maximum(np.linalg.norm(vectors, axis=0), 1e-9)))


def known_controllers(task: LearningTask, protocol: TaskProtocol) -> list[tuple[Flyer, int]]:
    """Return who flies beside a policy of a task, and how many flights: where it holds a place, or follows a path.

    Args:
        task: That is judged.
        protocol: With the counts.
    """
    if traits_of(task).jointed:
        # The MPC knows rigid vehicles only.
        return [(RootController(task.rate), protocol.flights)] if getattr(task, "error", 0) is not None else []
    if hasattr(task, "reference"):
        return [(PathController(task.rate), protocol.flights)]
    if getattr(task, "error", 0) is None:
        return []
    # The MPC solves a problem per decision, and so flies fewer of the same starts.
    found: list[tuple[Flyer, int]] = [(GeometricController(task.rate), protocol.flights)]
    if protocol.mpc_flights:
        found.append((MpcController(task.rate, task.episode_steps / task.rate), protocol.mpc_flights))
    return found


def task_figures(flights: TaskFlights) -> dict[str, Any]:
    """Return the figures of flights, as `summary.json` has them.

    Rates with their Wilson interval of 95 %. Distances are quantiles over all flights, a lost one being infinitely far (None
    where the quantile is one of those); the mean is over the flights that were kept.
    """
    count = len(flights.lost)
    found: dict[str, Any] = {"flights": count}
    for name, good in (("kept", ~flights.lost), ("success", flights.success)):
        rate = wilson_interval(int(good.sum()), count)
        found |= {f"{name}_percent": 100.0 * rate.value, f"{name}_interval_percent": [100.0 * rate.low, 100.0 * rate.high]}
    if flights.error is not None:
        error = np.where(flights.lost, np.inf, flights.error)
        for name, share in (("median_error_m", 0.5), ("p95_error_m", 0.95)):
            # Between a number and infinity there is no mean: the next flight above it is taken.
            value = float(np.quantile(error, share, method="linear" if np.isfinite(error).all() else "higher"))
            found[name] = value if np.isfinite(value) else None
        # Of those that were kept: with one flight infinitely far there would be no mean.
        found["mean_error_m"] = None if flights.lost.all() else float(flights.error[~flights.lost].mean())
    if flights.returns is not None:
        found |= {"mean_return": float(flights.returns.mean()), "terms": dict(flights.terms)}
    return found


def compare(learnt: TaskFlights, other: TaskFlights, name: str) -> dict[str, Any]:
    """Return who does the task better, as `beside_controller` does: by success, and by the error where that is tied.

    Args:
        learnt: Flights of the policy.
        other: Of the controller beside it, from the same starts.
        name: Of that.
    """
    mine, theirs = (JudgedFlights(flights.success, ~flights.lost, flights.error) for flights in (learnt, other))
    return beside_controller(mine, theirs, name, "success")
