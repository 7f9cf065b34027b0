"""A motor policy that learns by reward, as a training that is stopped, gone on with, judged and flown like one by gradient."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from airworthy.core.arrays import Array, ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.core.jobs.checkpoints import Checkpoint
from airworthy.core.native_kernel import CPU_LANES
from airworthy.core.schema import Bound, check_fields
from airworthy.learning.environments import LearningTask, VectorTask
from airworthy.learning.environments.tasks import HoverTask, MotorCommand
from airworthy.learning.environments.tasks.motor_command import START as MOTOR_COMMAND_START
from airworthy.learning.gradient.hover import OBSERVATION, HoverStart
from airworthy.learning.machine import Machine, TrainingOptions, TrainingRunOptions, machine_for
from airworthy.learning.native_ppo.options import PpoOptions, PpoUpdate
from airworthy.learning.native_ppo.trainer import NativePpo
from airworthy.learning.ppo.options import TorchPpoOptions
from airworthy.pilots.motor_policy.contract import WIDTH_MAX as MOTOR_WIDTH_MAX
from airworthy.pilots.motor_policy.contract import commanded_states
from airworthy.simulation.config import Randomization
from airworthy.vehicles import Vehicle

if TYPE_CHECKING:  # it loads torch
    from airworthy.learning.ppo import TorchPpo

__all__ = ["TASKS", "PpoTraining", "PpoTrainingOptions", "ppo_learner"]

TASKS = ("hover", "motor_command")
"""Whose policies command rotors from position, velocity, attitude and body rate."""
_DEPLOYED_HZ = 250.0
"""Rate at which policies of the motor-command task are judged and fly (specification aerial_gym, 9.3)."""


@dataclass(frozen=True)
class PpoTrainingOptions(TrainingOptions):
    """What is learnt by reward, for how long, and how.

    Raises:
        AirworthyError: A number out of range, or a network that no motor policy has.
    """

    task: str = "hover"
    """One of `TASKS`."""
    env_count: Annotated[int, Bound(16, 1 << 20)] = 4096
    """Flights at once, a multiple of 16."""
    steps: Annotated[int, Bound(1, 10**12)] = 40_000_000
    """Decisions of all flights together; whole updates are made."""
    rate: Annotated[float, Bound(10.0, 1000.0, "Hz")] = 100.0
    """Decisions per second in training."""
    episode_steps: Annotated[int, Bound(0, 1_000_000)] = 0
    """Decisions after which a flight is cut off; 0: as many as the task has. Of a long flight only the beginning shows large
    errors of heading, at which policies are lost that have not learnt them."""
    randomization: Randomization = field(default_factory=Randomization)
    """How vehicles differ."""
    ppo: PpoOptions = field(default_factory=PpoOptions)
    """How it learns; of the trainer `ppo` its `TorchPpoOptions`."""
    trainer: Literal["native_ppo", "ppo"] = "native_ppo"
    """In lanes, or in torch: from the same options and seed both learn the same."""

    def __post_init__(self) -> None:
        check_fields(self, "PpoTrainingOptions.")
        if isinstance(self.ppo, TorchPpoOptions) != (self.trainer == "ppo"):
            wanted = "TorchPpoOptions" if self.trainer == "ppo" else "PpoOptions"
            raise AirworthyError(f"The trainer {self.trainer} got {type(self.ppo).__name__}; expected {wanted}.")
        if isinstance(self.ppo, TorchPpoOptions):
            _check_flown(self.ppo)
        samples = self.env_count * self.ppo.rollout
        lanes = self.trainer == "native_ppo"
        # Lanes go together, and an update takes two blocks of them at a time.
        if lanes and (self.env_count % CPU_LANES or samples % (2 * CPU_LANES * self.ppo.minibatches)):
            raise AirworthyError(
                f"PpoTrainingOptions.env_count is {self.env_count}; expected a multiple of {CPU_LANES}, of whose"
                f" {self.ppo.rollout} decisions each of {self.ppo.minibatches} minibatches gets a multiple of {2 * CPU_LANES}."
            )
        if self.task not in TASKS:
            raise AirworthyError(f"Motor policies learn the task {self.task!r} not; expected {' or '.join(TASKS)}.")

    @property
    def seed(self) -> int:
        """Of weights, starts, vehicles and noise."""
        return self.ppo.seed

    @property
    def iterations(self) -> int:
        """Updates."""
        return math.ceil(self.steps / (self.env_count * self.ppo.rollout))

    @property
    def start(self) -> HoverStart:
        """Where flights begin on which it is judged, as in training."""
        return MOTOR_COMMAND_START if self.task == "motor_command" else HoverStart()

    def differences(self, before: Mapping[str, Any]) -> list[str]:
        """Return fields in which an earlier training differs, in words."""
        inner = before.get("ppo")
        found = super().differences({**before, "ppo": asdict(self.ppo)})
        return [*found, *self.ppo.differences(inner if isinstance(inner, Mapping) else {})]

    def begin(self, vehicle: Vehicle, device: str = "cpu") -> PpoTraining:
        """Return the training of a vehicle's policy.

        Args:
            vehicle: Whose rotors it commands.
            device: Of networks in torch.
        """
        return PpoTraining(vehicle, self, device=device)


def _check_flown(options: TorchPpoOptions) -> None:
    """Refuse networks that a motor policy's folder has no words for."""
    if options.recurrent or options.image:
        raise AirworthyError(
            "A motor policy has tanh layers alone, and no memory or image: learn with these by `TorchPpo` from Python."
        )
    if max(options.hidden) > MOTOR_WIDTH_MAX:
        raise AirworthyError(f"A motor policy has layers of up to {MOTOR_WIDTH_MAX}; got {list(options.hidden)}.")


def check_learner(env_count: int, options: PpoOptions, device: str = "cpu") -> None:
    """Refuse what `ppo_learner` would, before there are environments.

    Args:
        env_count: Of the environments.
        options: How it learns.
        device: Of networks in torch.

    Raises:
        AirworthyError: Numbers that do not divide, or there is no such device.
        ModuleNotFoundError: torch is needed and not installed.
    """
    if isinstance(options, TorchPpoOptions):
        machine_for(TrainingRunOptions(device=device))
    options.check_batch(env_count)


def ppo_learner(
    environments: VectorTask, options: PpoOptions, threads: int | None = None, device: str = "cpu"
) -> tuple[NativePpo | TorchPpo, Machine]:
    """Return what learns, in lanes or in torch as its options say, and where it computes.

    Args:
        environments: To learn in.
        options: How.
        threads: Most threads; the numbers are the same.
        device: Of networks in torch.

    Raises:
        AirworthyError: Numbers of environments that do not fit, or there is no such device.
        ModuleNotFoundError: torch is needed and not installed; the extra 'learn' brings it.
    """
    if not isinstance(options, TorchPpoOptions):
        return NativePpo(environments, options, threads), Machine("cpu", 0, "float32", "not used")
    from airworthy.learning.ppo import TorchPpo

    # Sums on a CPU are in one order, whatever the threads: a training may go on with others.
    machine = replace(machine_for(TrainingRunOptions(device=device)), threads=0)
    return TorchPpo(environments, options, threads, machine.device), machine


class PpoTraining:
    """A policy that learns by reward to hold a place.

    Args:
        vehicle: Whose rotors it commands.
        options: How.
        threads: Most threads; the numbers are the same.
        device: Of networks in torch: cpu, cuda, cuda:1, or auto.

    Raises:
        AirworthyError: The vehicle cannot hover, its rotors do not fit the task's commands, or there is no such device.
        ModuleNotFoundError: The trainer is `ppo`, and torch is not installed; the extra 'learn' brings it.
    """

    history = 0
    raised = 0

    def __init__(
        self, vehicle: Vehicle, options: PpoTrainingOptions | None = None, threads: int | None = None, device: str = "cpu"
    ):
        self.vehicle, self.options = vehicle, options or PpoTrainingOptions()
        o = self.options
        task: HoverTask | MotorCommand = HoverTask(rate=o.rate) if o.task == "hover" else MotorCommand(rate=o.rate)
        self.task: LearningTask = replace(task, episode_steps=o.episode_steps or task.episode_steps)
        # First: environments may compile for half a minute.
        check_learner(o.env_count, o.ppo, device)
        environments = VectorTask(self.task, o.env_count, vehicle, o.seed, o.randomization, threads=threads)
        self.law: Literal["state", "square"] = "state" if o.task == "hover" else "square"
        if self.law == "square":
            _check_squares(vehicle, environments)
        self.ppo, self.machine = ppo_learner(environments, o.ppo, threads, device)
        self.last: PpoUpdate | None = None
        """What the last update came to."""
        self.lost = 0
        """Flights that ended otherwise than by their time."""

    @property
    def trainer(self) -> str:
        """By its name."""
        return self.options.trainer

    @property
    def iteration(self) -> int:
        """Updates done."""
        return self.ppo.updates

    @property
    def env_steps(self) -> int:
        """Decisions so far, over all flights."""
        return self.ppo.env_steps

    @property
    def finished(self) -> bool:
        """Whether all is learnt."""
        return self.iteration >= self.options.iterations

    @property
    def hidden(self) -> tuple[int, ...]:
        """Widths of the policy's hidden layers."""
        return self.options.ppo.hidden

    @property
    def flown_rate(self) -> float:
        """Decisions per second of the policy when it flies [Hz]."""
        return _DEPLOYED_HZ if self.options.task == "motor_command" else self.options.rate

    @property
    def hover(self) -> Array:
        """Actions of hover, (rotors,)."""
        return np.clip(self.ppo.environments.hover_action.astype(float), -1.0, 1.0)

    @property
    def weights(self) -> list[ArrayF32]:
        """Weight and bias of each layer of the policy, as a motor policy's folder holds them."""
        # Copies: the learner goes on in its own arrays.
        first, *rest = (w.copy() for w in self.ppo.policy_weights)
        return [first if self.options.task == "hover" else _of_motor_policy(first), *rest]

    def prepare(self) -> None:
        """Build the kernels: making the environments did."""

    def step(self) -> float:
        """Fly a rollout and learn from it; returns less the mean reward per step."""
        self.last = self.ppo.update()
        self.lost += self.last.terminated
        return -self.last.reward

    def metrics(self, cost: float) -> dict[str, Any]:
        """Return what is written down of the last update."""
        assert self.last is not None
        # JSON has no NaN: what cannot be said is null, so that any reader takes the log.
        row = {name: None if isinstance(x, float) and not math.isfinite(x) else x for name, x in asdict(self.last).items()}
        return {**row, "cost": cost, "lost": self.lost}

    def save(self) -> Checkpoint:
        """Return everything that the next update depends on."""
        inner = self.ppo.save()
        return Checkpoint(inner.number, inner.arrays, {**inner.notes, "lost": self.lost})

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what `save` gave, to the same bits."""
        self.ppo.restore(checkpoint)
        self.lost = int(checkpoint.notes["lost"])


def _check_squares(vehicle: Vehicle, environments: VectorTask) -> None:
    """Refuse rotors whose limits are not the task's least and largest thrust: a motor policy's folder could not say it."""
    low, high = (np.array([getattr(rotor, f"speed_{end}") for rotor in vehicle.rotors]) for end in ("min", "max"))
    # Both ends and the middle: with the law's form known, these three settle it.
    for action in (-1.0, 0.0, 1.0):
        asked = environments.command(np.full(len(low), action))
        if not np.allclose(asked, commanded_states(np.full(len(low), action), low, high, "square"), rtol=1e-4):
            raise AirworthyError(
                f"The task motor_command commands thrusts that are not those of the rotors of {vehicle.name!r} at their limits:"
                " learn the task hover with this vehicle."
            )


def _of_motor_policy(first: ArrayF32) -> ArrayF32:
    """First layer over the inputs of a motor policy, which hold those of the motor-command task: the same function.

    Args:
        first: Over the way to the target 3, two rows of the rotation matrix 6, velocity 3, body rate 3; (width, 15).
    """
    whole = np.zeros((len(first), OBSERVATION), np.float32)
    # A motor policy sees position less the target's, half the velocity, the matrix by columns, a tenth of the rate.
    whole[:, 0:3] = -first[:, 0:3]
    whole[:, 3:6] = 2.0 * first[:, 9:12]
    for row in range(2):
        whole[:, [6 + 3 * column + row for column in range(3)]] = first[:, 3 + 3 * row : 6 + 3 * row]
    whole[:, 15:18] = 10.0 * first[:, 12:15]
    return whole
