"""Learning by gradient: windows of many flights, each weight's slope through network and vehicle, Adam. NumPy alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayF32, ArrayFloat, ArrayIndex
from airworthy.core.errors import AirworthyError
from airworthy.core.jobs.checkpoints import Checkpoint
from airworthy.core.native_kernel import CPU_LANES
from airworthy.core.random import Stream, flight_key, normals, uniforms
from airworthy.core.schema import Bound, check_fields
from airworthy.learning.gradient.critic import Critic
from airworthy.learning.gradient.descent import Descent
from airworthy.learning.gradient.dynamics import BODY, Surrogate, surrogate_of
from airworthy.learning.gradient.hover import START_UNIFORMS, HoverCost, HoverStart, hover_start
from airworthy.learning.gradient.kernel import HIDDEN_SIZES, FlightWindow, WindowShape
from airworthy.learning.machine import SEED_MAX, TrainingOptions
from airworthy.simulation.config import Randomization, SimulatorConfig
from airworthy.vehicles import Vehicle, hover_speed

__all__ = ["GradientOptions", "GradientTraining", "Weights", "initial_weights", "network_action", "recurrent_action"]

Weights = list[ArrayF32]
"""w1 (hidden, observed), b1, w2 (hidden, hidden), b2, w3 (actions, hidden), b3; each layer ends in tanh."""

_RATE_MAX = 40.0
"""Ours: a flight that turns faster [rad/s] is lost and starts anew."""
_BLOCK = 16
"""Flights of an environment whose starts are drawn at once."""
_UNSOUND_MAX = 10
"""Ours: windows one after the other in which every flight left the numbers; all begin anew behind each, so that one may be bad
luck."""
_WEIGHT_FLIGHT = 0xFFFFFFFF
"""Flight id of the draws of weights: no environment has it."""


HISTORY_MAX = 8
"""Past actions that a policy sees at most, and so decisions by which commands may come late."""


@dataclass(frozen=True)
class GradientOptions(TrainingOptions):
    """How to learn; defaults are `PLAIN`'s."""

    hidden: int = 32
    """Width of both hidden layers: 16, 32 or 64."""
    env_count: Annotated[int, Bound(16, 65536)] = 32
    """Flights at once, a multiple of 16."""
    # Ours, with 1000 steps of 2e-2, measured (docs/howto/learn_hover.md, "Why these defaults"): at the same number of flown
    # steps 64 flights or more settle farther off, 16 are no better and take longer.
    window: Annotated[int, Bound(2, 2000)] = 100
    """Policy steps that a gradient looks ahead. Shorter than about a second it settles beside the target."""
    iterations: Annotated[int, Bound(1, 1_000_000)] = 1000
    """Gradient steps."""
    learning_rate: Annotated[float, Bound(0.0, 1.0, above=True)] = 2e-2
    """Of Adam, falling by a cosine to `final_share` of it."""
    # Ours, measured as `env_count`: half of it learns too little in the time, twice as much is not better.
    final_share: Annotated[float, Bound(0.0, 1.0)] = 0.03  # this and `clip`: specification, 6.3
    """Of the learning rate, at the end."""
    clip: Annotated[float, Bound(1e-6, 1e6)] = 0.5
    """Largest norm of the whole gradient; a longer one is shortened."""
    keep: Annotated[float, Bound(0.0, 1.0)] = 1.0
    """Share of the state's slope that each step hands back."""
    rate: Annotated[float, Bound(10.0, 1000.0, "Hz")] = 100.0
    """Decisions per second."""
    history: Annotated[int, Bound(0, HISTORY_MAX)] = 0
    """Past actions that the policy sees."""
    memory: Literal["none", "gru"] = "none"
    """What the policy remembers of its flight beside past actions: nothing, or as much as a GRU in its middle layer keeps."""
    critic: bool = False
    """Whether a network learns what comes after the window, so that short windows do (SHAC)."""
    # Ours, chosen on starts that are not the evaluation's; SHAC has 3e-3, 16, 0.99.
    critic_rate: Annotated[float, Bound(0.0, 1.0, above=True)] = 1e-2
    """Of its Adam, falling as the policy's. Of a critic alone, like what follows."""
    critic_steps: Annotated[int, Bound(1, 64)] = 2
    """Its steps per window."""
    discount: Annotated[float, Bound(0.5, 0.9999)] = 0.98
    """Of what comes later, per policy step."""
    blend: Annotated[float, Bound(0.0, 1.0)] = 0.95  # specification, 6.3
    """Lambda of the returns that it learns."""
    delay: Annotated[int, Bound(0, HISTORY_MAX)] = 0
    """Policy steps by which commands come late at most; each flight has its own, of 0 to this. At most `history`."""
    flight_s: Annotated[float, Bound(0.1, 1e3, "s")] = 3.0  # this and `reach_m`: the specification's trial, 6.3
    """Length of a flight, after which another begins."""
    reach_m: Annotated[float, Bound(0.1, 1e3, "m")] = 4.0
    """A flight farther off is lost and starts anew."""
    seed: Annotated[int, Bound(0, SEED_MAX)] = 0
    """Of weights, starts and drawn vehicles."""
    start: HoverStart = field(default_factory=HoverStart)
    """Where flights begin."""
    cost: HoverCost = field(default_factory=HoverCost)
    """What is to be small."""
    randomization: Randomization = field(default_factory=Randomization)
    """How vehicles differ."""
    least_thrust_to_weight: Annotated[float, Bound(1.0, 10.0)] = 1.2
    """Of drawn vehicles: what can hardly hover teaches nothing (specification, 6.3)."""

    def __post_init__(self) -> None:
        check_fields(self, "GradientOptions.")
        if self.hidden not in HIDDEN_SIZES:
            raise AirworthyError(f"GradientOptions.hidden is {self.hidden}; expected {', '.join(map(str, HIDDEN_SIZES))}.")
        if self.env_count % CPU_LANES:
            raise AirworthyError(f"GradientOptions.env_count is {self.env_count}; expected a multiple of {CPU_LANES}.")
        if self.critic and self.memory != "none":
            raise AirworthyError("A critic sees what the policy sees, and not its memory: learn with one of the two.")
        if self.delay > self.history:
            raise AirworthyError(
                f"Commands come up to {self.delay} steps late, but the policy sees {self.history} past actions: it cannot know"
                " what is still to come. Give a history of at least the delay."
            )

    @property
    def task(self) -> str:
        """What is learnt."""
        return "hover"

    def begin(self, vehicle: Vehicle) -> GradientTraining:
        """Return the training of a vehicle's policy."""
        return GradientTraining(vehicle, self)


def initial_weights(matrices: Sequence[tuple[int, int]], hover: Array, seed: int) -> Weights:
    """Return weights of a network that hovers whatever it sees, nearly: its last layer is small and biased to hover's actions.

    Args:
        matrices: Rows and columns of each.
        hover: Actions of hover, (actions,), within (-1, 1).
        seed: Of the draws.
    """
    weights: Weights = []
    for k, (rows, columns) in enumerate(matrices):
        key = flight_key(seed, _WEIGHT_FLIGHT, k)
        gain = 0.01 if k == len(matrices) - 1 else 1.0  # specification, section 10: flights must not end at once
        drawn = normals(key, 0, Stream.RESET, rows * columns).reshape(rows, columns) * (gain / math.sqrt(columns))
        weights += [drawn.astype(np.float32), np.zeros(rows, np.float32)]
    # The last layer ends in tanh, too, and arctanh has no value at 1, where a vehicle without reserve hovers.
    weights[-1] = np.arctanh(np.clip(hover, -0.99, 0.99)).astype(np.float32)
    return weights


def network_action(weights: Sequence[ArrayFloat], observed: ArrayFloat) -> ArrayFloat:
    """Return actions in [-1, 1] of observations (env, observed): (env, actions)."""
    x: ArrayFloat = observed
    for w, b in zip(weights[::2], weights[1::2], strict=True):
        x = np.tanh(x @ w.T + b)
    return x


def recurrent_action(weights: Sequence[ArrayFloat], observed: ArrayFloat, memory: ArrayFloat) -> tuple[ArrayFloat, ArrayFloat]:
    """Return actions in [-1, 1] of a network whose middle layer is a GRU, (env, actions), and its memory then, (env, hidden).

    Args:
        weights: As of `FlightWindow.run`.
        observed: (env, observed).
        memory: Before, (env, hidden).
    """
    w1, b1, wi, bi, wh, bh, w3, b3 = weights
    x = np.tanh(observed @ w1.T + b1)
    (ir, iz, fresh), (hr, hz, pushed) = (np.split(a @ w.T + b, 3, axis=1) for a, w, b in ((x, wi, bi), (memory, wh, bh)))
    # The logistic function by tanh, as the kernel has it: it does not overflow.
    reset, update = (0.5 + 0.5 * np.tanh(0.5 * s) for s in (ir + hr, iz + hz))
    fresh = np.tanh(fresh + reset * pushed)
    memory = fresh + update * (memory - fresh)
    return np.tanh(memory @ w3.T + b3), memory


class GradientTraining:
    """A policy that learns to hold a place, by the gradient of its own flights.

    Args:
        vehicle: Whose rotors it commands.
        options: How.
        device: A Warp device.

    Raises:
        AirworthyError: The vehicle cannot hover, or drawn ones have too little thrust.
    """

    trainer: ClassVar[str] = "gradient"
    law: ClassVar[Literal["state", "square"]] = "state"

    def __init__(self, vehicle: Vehicle, options: GradientOptions | None = None, device: str = "cpu"):
        self.vehicle, self.options = vehicle, options or GradientOptions()
        o = self.options
        config = SimulatorConfig(control_rate=o.rate, randomization=o.randomization)
        self.surrogate = self._surrogate(config)
        self.shape = self._window_shape()
        rows = self.surrogate.rows
        layout = self.surrogate.layout
        n = vehicle.rotor_count
        self._speeds = np.asarray(hover_speed(vehicle))
        self._lower, self._upper = (rows[layout.rows(f"rotor_{end}")][:n] for end in ("min", "max"))
        hover = (2.0 * self._speeds[:, None] - self._upper - self._lower) / (self._upper - self._lower)
        self._keep_thrust(rows)
        self.window = FlightWindow(self.shape, o.env_count, o.window, device)
        flights = np.arange(o.env_count)
        # Flights count from episode 1: the draws of episode 0 are free for delays and first ages.
        delay = np.floor(self._draws(flights, np.zeros(o.env_count))[0] * (o.delay + 1))
        self.window.set_vehicles(rows, hover, delay)
        self.hover = hover[:, 0]
        self._descent = Descent(initial_weights(self.shape.matrices, self.hover, o.seed))
        self.weights = self._descent.weights
        self._critic = Critic(self.window, o.seed, o.discount, o.blend) if o.critic else None
        self._starts: dict[int, ArrayF32] = {}
        self._unsound = 0
        self.iteration = 0
        self.episode = np.zeros(o.env_count, np.int64)
        self.age = np.zeros(o.env_count, np.int64)
        self.lost = 0
        """Flights that left reach or numbers so far."""
        self._restart(flights)
        # Or all flights would end at once, again and again.
        self.age = (self._draws(flights, np.zeros(o.env_count))[1] * o.flight_s * o.rate).astype(np.int64)

    def _window_shape(self) -> WindowShape:
        """Return what the window's kernel is built for."""
        o = self.options
        form, step_s = self.surrogate.form, self.surrogate.step_s
        return WindowShape(form, step_s, o.hidden, o.history, o.cost, critic=o.critic, recurrent=o.memory == "gru")

    def _surrogate(self, config: SimulatorConfig) -> Surrogate:
        """Return the vehicles of the flights as the kernel steps them."""
        return surrogate_of(self.vehicle, config, self.options.env_count, seed=self.options.seed)

    def _keep_thrust(self, rows: Array) -> None:
        """Raise the thrust of drawn vehicles that have too little to learn from, and count them."""
        layout, n = self.surrogate.layout, self.vehicle.rotor_count
        c = rows[layout.rows("rotor_thrust")].reshape(-1, 3, rows.shape[1])[:n]
        full = rows[layout.rows("rotor_max")][:n]
        thrust = (c[:, 0] + full * (c[:, 1] + c[:, 2] * np.abs(full))).sum(axis=0)
        ratio = thrust / (rows[layout.offsets["mass"]] * rows[layout.offsets["gravity"]])
        # A recorded vehicle is flown as it is, however weak.
        raised = np.maximum(1.0, self.options.least_thrust_to_weight / ratio) if self.options.randomization.shares else 1.0
        c *= raised
        # A rotor's torque follows its thrust: their ratio is its geometry, which nobody draws.
        rows[layout.rows("rotor_torque")].reshape(-1, 3, rows.shape[1])[:n] *= raised
        self.raised = int(np.sum(raised > 1.0))
        """Drawn vehicles whose thrust was raised to `least_thrust_to_weight`."""

    @property
    def finished(self) -> bool:
        """Whether all is learnt."""
        return self.iteration >= self.options.iterations

    @property
    def env_steps(self) -> int:
        """Policy steps flown so far, over all environments."""
        return self.iteration * self.options.window * self.options.env_count

    @property
    def hidden(self) -> tuple[int, ...]:
        """Widths of the hidden layers."""
        return self.options.hidden, self.options.hidden

    @property
    def history(self) -> int:
        """Past actions that the policy sees."""
        return self.options.history

    @property
    def memory(self) -> Literal["none", "gru"]:
        """What it remembers beside them."""
        return self.options.memory

    @property
    def flown_rate(self) -> float:
        """Decisions per second of the policy when it flies [Hz]."""
        return self.options.rate

    def prepare(self) -> None:
        """Build the kernel, where no step has."""
        self.window.prepare(self.options.keep, self._critic.ahead if self._critic else None)
        if self._critic is not None:
            self._critic.prepare()

    def metrics(self, cost: float) -> dict[str, Any]:
        """Return what is written down of a step that came to this cost."""
        return {"cost": cost, "lost": self.lost}

    def step(self) -> float:
        """Learn from one window; returns its mean cost per policy step, of the flights that stayed within the numbers."""
        o = self.options
        critic = self._critic
        costs, gradient = self.window.run(self.weights, o.keep, critic.ahead if critic else None)
        sound = np.isfinite(costs)
        share = o.final_share + (1.0 - o.final_share) * 0.5 * (1.0 + math.cos(math.pi * self.iteration / o.iterations))
        self._descent.step(gradient, o.learning_rate * share, o.clip, self.iteration)
        if critic is not None:
            for k in range(o.critic_steps):
                critic.fit(o.critic_rate * share, self.iteration * o.critic_steps + k)
            critic.follow()
        self._check_sound(bool(sound.any()))
        self.iteration += 1
        self.age += o.window
        self._restart(np.flatnonzero(self._ended()))
        return float(np.mean(costs[sound])) / o.window if sound.any() else math.inf

    def _check_sound(self, any_sound: bool) -> None:
        """Stop before what learns nothing more is kept: raise AirworthyError where weights or all flights left the numbers."""
        self._unsound = 0 if any_sound else self._unsound + 1
        if self._unsound >= _UNSOUND_MAX or not np.isfinite(self._descent.flat).all():
            raise AirworthyError(
                f"The training diverged at gradient step {self.iteration + 1:,}: its flights are no numbers any more. Look at"
                f" mass, inertia and rotors of {self.vehicle.name!r}, or learn with a smaller --learning-rate."
            )

    def _ended(self) -> Array:
        x, o = self.window.state, self.options
        distance, rate = (np.einsum("ij,ij->j", part, part) for part in (x[:3], x[10:BODY]))
        # What is no number is not below a limit, nor is its sum.
        lost = ~((distance <= o.reach_m**2) & (rate <= _RATE_MAX**2) & np.isfinite(x.sum(axis=0)))
        self.lost += int(lost.sum())
        return lost | (self.age >= o.flight_s * o.rate)

    def _restart(self, flights: ArrayIndex) -> None:
        if not flights.size:
            return
        episode = self.episode[flights] + 1
        for block in np.unique(episode // _BLOCK).tolist():
            mine = flights[episode // _BLOCK == block]
            self.window.state[:, mine] = self._block(block)[self.episode[mine] + 1 - block * _BLOCK, :, mine].T
        self.window.memory[:, flights] = 0.0
        self.episode[flights] = episode
        self.age[flights] = 0

    def _block(self, block: int) -> ArrayF32:
        """Return starts of `_BLOCK` successive flights of each environment, (flight, state rows, env).

        Drawn together, because a draw of few numbers costs as much as one of many.
        """
        if block not in self._starts:
            o, n, rows = self.options, self.shape.actions, self.shape.state
            flights = np.arange(o.env_count)
            starts = np.empty((_BLOCK, rows, o.env_count), np.float32)
            episode = block * _BLOCK + np.arange(_BLOCK)
            draws = self._draws(np.tile(flights, _BLOCK), np.repeat(episode, o.env_count))
            lower, upper = (np.tile(limit, (1, _BLOCK)) for limit in (self._lower, self._upper))
            made = hover_start(draws[:START_UNIFORMS], self._speeds, lower, upper, o.start)
            starts[:, : BODY + n] = made.reshape(BODY + n, _BLOCK, -1).transpose(1, 0, 2)
            starts[:, BODY + n :] = np.tile(self.hover, self.shape.history)[:, None]
            # Flights that end early are ahead of the others by a block or two; what nobody is at any more is forgotten.
            least = int(self.episode.min()) // _BLOCK
            self._starts = {k: v for k, v in self._starts.items() if k >= least}
            self._starts[block] = starts
        return self._starts[block]

    def _draws(self, flights: ArrayIndex, episode: ArrayAny) -> Array:
        """Uniform numbers of each flight, (START_UNIFORMS, flights): of its own seed, number and episode alone."""
        return uniforms(flight_key(self.options.seed, flights, episode), 0, Stream.RESET, START_UNIFORMS).T

    # ---- stopping and going on ---------------------------------------------------------------------------------------

    def save(self) -> Checkpoint:
        """Return everything that the next step depends on."""
        # Vehicles, delays and starts follow from the seed, and are drawn again.
        named = {"state": self.window.state, "episode": self.episode, "age": self.age}
        named |= {f"weight_{k}": w for k, w in enumerate(self.weights)} | {"moments": self._descent.moments}
        named |= self._critic.arrays() if self._critic else {}
        named |= {"memory": self.window.memory} if self.shape.recurrent else {}
        return Checkpoint(self.iteration, {k: np.array(a) for k, a in named.items()}, {"lost": self.lost})

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what `save` gave, to the same bits."""
        arrays = checkpoint.arrays
        self.window.state[:] = arrays["state"]
        self.episode[:], self.age[:] = arrays["episode"], arrays["age"]
        self._descent.moments[:] = arrays["moments"]
        if self._critic is not None:
            self._critic.restore(arrays)
        if self.shape.recurrent:
            self.window.memory[:] = arrays["memory"]
        for k, weight in enumerate(self.weights):
            weight[:] = arrays[f"weight_{k}"]
        self.iteration, self.lost = checkpoint.number, int(checkpoint.notes["lost"])
