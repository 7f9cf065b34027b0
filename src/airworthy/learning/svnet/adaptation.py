"""What a trained history network knows in flight: the ratio of thrust to mass on nominal drones, and how it takes to a payload.

The expert flies, so that the network is measured by itself, whatever policy hangs on it. Formula, fit and statistics are those
of the tracking protocol (specification, section 8): an unmodelled specific force f_add is taken up along the thrust axis as
c_hat = c + (z_B . f_add) / f, what is left is |f_add| sin(angle). Published figures for comparison: 5.98 +- 0.17 N/kg of true
6.03 on simulated nominal flights, and 72 % of the way to the true value under 350 g (StanfordMSL/SousVide, notebook
sv_c_calc, by way of the specification).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.benchmarks.tracking.adaptation import absorbed_ratio, best_ratio, payload_step, unexplained
from airworthy.control.mpc import mpc_preset
from airworthy.core.arrays import Array, ArrayAny, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import check_fields
from airworthy.learning.svnet.metrics import ratio_of
from airworthy.learning.synthesis.config import RATE, evaluation_set, noise_level
from airworthy.learning.synthesis.plan import RolloutPlan, RolloutStarts
from airworthy.learning.synthesis.rollouts import sensed_states
from airworthy.pilots.expert import ExpertPilot
from airworthy.pilots.pilot import Observation
from airworthy.pilots.svnet.contract import read_policy
from airworthy.pilots.svnet.features import HISTORY_TICKS, Form, history_features
from airworthy.pilots.svnet.variants import variant
from airworthy.simulation import Simulator, SimulatorConfig

__all__ = [
    "Adaptation",
    "AdaptationConfig",
    "RatioKnown",
    "absorbed_ratio",
    "best_ratio",
    "estimated_parameters",
    "measure_adaptation",
    "unexplained",
]

# Ours: 0.05 s is one tick at 20 Hz, 0.25 s the history of five.
AFTER = (0.05, 0.1, 0.15, 0.2, 0.25, 0.5, 1.0)
"""Times after a payload has come at which the response is told [s]."""
# Ours: the standard error of a share is then below 1 %.
FLIGHTS_MAX = 10_000
TICKS_MIN = 60
"""Of a course: a second before the payload comes, in its middle, is compared with what is more than a second behind."""


@dataclass(frozen=True)
class AdaptationConfig:
    """Flights to measure by.

    Raises:
        AirworthyError: If a number is out of range or a name unknown.
    """

    course: str = "robustness"
    flights: int = 20
    """Of each kind."""
    payload: float = 0.3
    """Added to the mass, as a share of it."""
    noise: str = "baseline"
    """Level of what is sensed: baseline, assisted, challenged or extreme."""
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        noise_level(self.noise)
        if not 1 <= self.flights <= FLIGHTS_MAX or not -0.5 <= self.payload <= 2.0 or abs(self.payload) < 1e-6:
            raise AirworthyError(
                f"Adaptation is to be measured over {self.flights} flights with a payload of {self.payload};"
                f" expected 1 to {FLIGHTS_MAX:,}, and -0.5 to 2.0 of the mass, but not 0."
            )
        if not 0 <= self.seed < 1 << 63:
            raise AirworthyError(f"The seed is {self.seed}; expected 0 to 2^63 - 1.")


@dataclass(frozen=True)
class RatioKnown:
    """Force of a rotor over mass [N/kg] as estimated over flights, where the history is full."""

    mean: float
    std: float
    """Over all ticks of all flights."""
    true: float

    @property
    def error(self) -> float:
        """Of the mean, relative."""
        return self.mean / self.true - 1.0


@dataclass(frozen=True)
class Adaptation:
    """What was measured."""

    config: AdaptationConfig
    nominal: RatioKnown
    payload: RatioKnown
    """Carried from the start."""
    payload_share: float
    """Share of the way from the nominal ratio to the true one that the estimate goes under the payload."""
    response: Mapping[str, float]
    """The same share so many seconds after a payload has come in mid-flight, mean of the flights."""

    def described(self) -> dict[str, Any]:
        """Return the record as plain data."""
        found = asdict(self)
        for name in ("nominal", "payload"):
            found[name]["error"] = getattr(self, name).error
        return found


def estimated_parameters(weights: Mapping[str, ArrayAny], history: ArrayLike) -> Array:
    """Return mass [kg] and force of a rotor [N], (..., 2), that a history network tells of histories (..., 75); in float64."""
    x = np.asarray(history, np.float64)
    for number in range(3):
        # In NumPy: to ask a trained network needs no torch.
        x = np.maximum(_linear(weights, f"history.body.{number}", x), 0.0)
    return _linear(weights, "history.estimate", x)


def measure_adaptation(folder: str | Path, config: AdaptationConfig | None = None, device: str = "cpu") -> Adaptation:
    """Fly the expert, and ask a policy's history network.

    Three kinds of flights from the published test set's starts: nominal drones; drones that carry the payload, which the
    expert knows; and nominal drones that take it on in the middle of the course, which the expert does not know.

    Args:
        folder: Of the policy.
        config: Flights; None: as they are.
        device: Of simulation and expert.

    Raises:
        AirworthyError: The policy has no history network, or one that never learnt to estimate; there is no such course, or it
            is too short.
    """
    config = config or AdaptationConfig()
    contract, weights = read_policy(folder)
    kind = variant(contract.variant)
    if not kind.learns_history:
        raise AirworthyError(
            f"The policy in {str(folder)!r} is of variant {contract.variant!r}, whose history network, if it has one, does not"
            " estimate parameters; use sv_net, no_latent, hp_net, sv_grid or sv_lite."
        )
    change: dict[str, Any] = {"mass": 0.0, "thrust": 0.0, "repetitions": config.flights, "noise": config.noise}
    plan = RolloutPlan(evaluation_set(config.course, **change, seed=config.seed))
    if plan.config.ticks < TICKS_MIN:
        raise AirworthyError(
            f"The course {config.course!r} lasts {plan.config.length:.3g} s; a payload in the middle of it shows on courses of"
            f" {TICKS_MIN / RATE:g} s or more."
        )
    starts = plan.starts(np.arange(plan.count))
    # The same starts and drones, so that only the payload differs.
    heavy = replace(starts, mass=starts.mass * (1.0 + config.payload))
    half = plan.config.ticks // 2
    estimated, true = {}, {}
    for name, drone, later in (("nominal", starts, None), ("payload", heavy, None), ("step", starts, heavy.mass)):
        sensed, command, mass = _flown(plan, drone, half, later, device)
        estimated[name] = ratio_of(estimated_parameters(weights, _histories(sensed, command, contract.history)))
        true[name] = drone.force[:, None] / mass
    known = {name: _known(estimated[name], true[name]) for name in ("nominal", "payload")}
    share = payload_step(asdict(known["nominal"]), asdict(known["payload"]))
    return Adaptation(config, known["nominal"], known["payload"], share, _response(estimated["step"], true["step"], half))


def _flown(
    plan: RolloutPlan, starts: RolloutStarts, change: int, later: Array | None, device: str
) -> tuple[Array, Array, Array]:
    """Sensed states (n, k, 10), commands (n, k, 4) and true masses (n, k); `later` are the masses from tick `change` on."""
    config, gravity = plan.config, plan.vehicle.gravity
    full = starts.force * plan.vehicle.rotor_count
    clock = SimulatorConfig(dynamics="semi_kinematic", level="rate_thrust", physics_rate=config.physics_rate, control_rate=RATE)
    simulator = Simulator(plan.vehicle, clock, len(full), config.seed, starts.number, device=device)
    simulator.set_parameter("mass", starts.mass)
    simulator.set_parameter("thrust_limit", full)
    simulator.reset(position=starts.state[:, :3], velocity=starts.state[:, 3:6], attitude=starts.state[:, 6:])
    pilot = ExpertPilot(
        plan.reference, full, starts.mass, starts.course, starts.time, mpc_preset(config.mpc), gravity, device=device
    )
    mass = np.repeat(starts.mass[:, None], config.ticks, axis=1)
    states, commands = [], []
    for tick in range(config.ticks):
        if later is not None and tick == change:
            simulator.set_parameter("mass", later)
            mass[:, tick:] = later[:, None]
        truth = {"position": simulator.position, "velocity": simulator.velocity, "attitude": simulator.attitude}
        states.append(np.concatenate([truth[name] for name in ("position", "velocity", "attitude")], axis=1).astype(np.float64))
        given = pilot.command(Observation(simulator.time, {name: np.array(value) for name, value in truth.items()}))
        commands.append(np.concatenate([given[:, :1] / full[:, None], given[:, 1:]], axis=1))
        simulator.step(given)
    return sensed_states(plan, starts.number, np.stack(states, axis=1)), np.stack(commands, axis=1), mass


def _histories(sensed: Array, command: Array, form: Form) -> Array:
    return history_features(np.arange(sensed.shape[1]) / RATE, sensed, command, form)


def _known(estimated: Array, true: Array) -> RatioKnown:
    # Before, the history is part zeros, which no training flight holds for long.
    some = estimated[:, HISTORY_TICKS:]
    return RatioKnown(float(some.mean()), float(some.std()), float(true[:, HISTORY_TICKS:].mean()))


def _response(estimated: Array, true: Array, change: int) -> dict[str, float]:
    """By seconds after the change; tick `change` itself was flown with the old mass, the next is the first to show it."""
    # The last second before: its mean is what the estimate was, without its noise.
    # The mean of a second: one tick's estimate is noisier than the step it is compared with.
    before = estimated[:, change - 20 : change + 1].mean(axis=1)
    gap = true[:, -1] - true[:, 0]
    found = {}
    for seconds in AFTER:
        tick = change + round(seconds * RATE)
        if tick < estimated.shape[1]:
            found[f"{seconds:g} s"] = float(np.mean((estimated[:, tick] - before) / gap))
    found["rest of the flight"] = float(np.mean((estimated[:, change + 20 :].mean(axis=1) - before) / gap))
    return found


def _linear(weights: Mapping[str, ArrayAny], name: str, x: Array) -> Array:
    return x @ weights[f"{name}.weight"].T.astype(np.float64) + weights[f"{name}.bias"]
