"""What a user chooses about learning to navigate by sight."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from airworthy.core.errors import AirworthyError
from airworthy.core.keyword_messages import raises_without_class
from airworthy.core.schema import Bound, Length, check_fields
from airworthy.learning.machine import SEED_MAX, TrainingOptions, TrainingRunOptions
from airworthy.learning.navigation.tasks import DepthNavigation, LidarNavigation, NavigationTask
from airworthy.learning.ppo.options import TorchPpoOptions

__all__ = [
    "NAVIGATION_TASKS",
    "NavigationMachineOptions",
    "NavigationOptions",
    "NavigationRunOptions",
    "RoomsProtocol",
    "navigation_task",
]

NAVIGATION_TASKS: dict[str, type[NavigationTask]] = {task.name: task for task in (DepthNavigation, LidarNavigation)}
"""By name."""
LAG_SPREAD = 0.23
"""Of rotors: 0.05 to 0.08 s of the published vehicle about their middle (robots.json, lmf2)."""


@dataclass(frozen=True)
class NavigationOptions(TrainingOptions):
    """What is learnt, for how long, and how.

    Raises:
        AirworthyError: A number is out of range, or options that do not go together.
    """

    task: Literal["depth_navigation", "lidar_navigation"] = "depth_navigation"
    """Which."""
    seed: Annotated[int, Bound(0, SEED_MAX)] = 0
    """Of weights, rooms, flights and noise."""
    steps: Annotated[int, Bound(1, 10**12)] = 20_000_000
    """Decisions of all flights together; whole updates are made. Published are about 20 million."""
    env_count: Annotated[int, Bound(16, 1 << 16)] = 512
    """Flights at once."""
    image: Literal["latent", "pooled"] = "pooled"
    """What the policy reads of a depth image: the latent of a Deep Collision Encoder, or 12 x 16 cells of inverse depth. Of a
    LiDAR it reads 16 x 20 cells."""
    hidden: Annotated[tuple[int, ...], Bound(1, 1024), Length(1, 4)] = (256, 128, 64)
    """Widths of layers, as published."""
    recurrent: Annotated[int, Bound(0, 1024)] = 64
    """Width of the gated recurrent unit behind them, as published; 0: none."""
    rollout: Annotated[int, Bound(1, 4096)] = 32
    """Decisions of each flight between two updates, as published."""
    epochs: Annotated[int, Bound(1, 100)] = 4
    """Passes over them, as published."""
    minibatches: Annotated[int, Bound(1, 4096)] = 8
    """Of each pass."""
    learning_rate: Annotated[float, Bound(0.0, 1.0, above=True)] = 5e-4
    """At the beginning; it adapts to `target_divergence`."""
    target_divergence: Annotated[float, Bound(0.0, 1.0)] = 0.016
    """Of an update, as published."""
    gamma: Annotated[float, Bound(0.0, 1.0)] = 0.98
    """Discount of a decision, as published. Of what is expected at the target a decision of delay costs what is missing from 1:
    with 0.98 as much as a chance of 2 in 100 to touch something on the way."""
    shared: bool = True
    """Policy and critic have all but their last layers in common, memory included, as published."""
    mirror: Literal["auto", "none", "y"] = "auto"
    """y: each decision is learnt from mirrored, too, left and right changed, which takes nearly twice as long; auto: where it
    can be, of pooled depth."""
    average_updates: Annotated[int, Bound(0, 1_000_000)] = 100
    """Updates over which weights of the policy that is written down are averaged; 0: they are the last."""
    as_published: bool = False
    """With the defects of the published task."""

    def __post_init__(self) -> None:
        check_fields(self, "NavigationOptions.")
        if self.task == "lidar_navigation" and self.image == "latent":
            raise AirworthyError("A LiDAR's image has no encoder; expected image 'pooled' for lidar_navigation.")
        if self.mirror == "y" and not self._mirrors:
            raise AirworthyError("Only flights with pooled depth can be mirrored; expected mirror 'auto' or 'none' here.")

    def check_batch(self) -> None:
        """Refuse flights that minibatches cannot share, before there are environments, which take half a minute to begin.

        Raises:
            AirworthyError: It names the option.
        """
        with raises_without_class():
            self.ppo().check_batch(self.env_count)

    @property
    def _mirrors(self) -> bool:
        """Whether what it reads of an image is known mirrored."""
        return self.task == "depth_navigation" and self.image == "pooled"

    @property
    def iterations(self) -> int:
        """Updates."""
        return math.ceil(self.steps / (self.env_count * self.rollout))

    def learnt_task(self) -> NavigationTask:
        """Return the task as it is learnt."""
        return navigation_task(self.task, as_published=self.as_published, room_seed=self.seed)

    def ppo(self) -> TorchPpoOptions:
        """Return how it learns; lambda, clip, reward scale and normalisation are those of rl_training.json."""
        return TorchPpoOptions(
            seed=self.seed,
            hidden=self.hidden,
            recurrent=self.recurrent,
            rollout=self.rollout,
            epochs=self.epochs,
            minibatches=self.minibatches,
            gamma=self.gamma,
            shared=self.shared,
            mirror="y" if self.mirror == "y" or (self.mirror == "auto" and self._mirrors) else "none",
            average_updates=self.average_updates,
            # Source: rl_training.json, sample_factory_navigation: gae_lambda, clip.
            lam=0.95,
            clip=0.2,
            learning_rate=self.learning_rate,
            target_divergence=self.target_divergence,
            # The same set: reward_scale, normalize_input, normalize_returns, entropy.
            reward_scale=0.1,
            normalize_observation=True,
            normalize_value=True,
            entropy_weight=0.0,
            # Ours: published deviations are learnt from the state (adaptive_stddev), ours are numbers of their own.
            initial_std=0.5,
            # Ours: without a floor the deviation is gone before flights reach their targets.
            least_std=0.2,
            # The same set: max_grad_norm.
            gradient_norm=1.0,
        )


@dataclass(frozen=True)
class NavigationMachineOptions:
    """On how many processors it runs, and how often it is kept."""

    threads: int = 0
    """Of the processor; 0: all, or as many as it began with."""
    checkpoint_minutes: float = 1.0
    """Between two checkpoints [min]."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class NavigationRunOptions(NavigationMachineOptions):
    """For how long, too, and what is written besides."""

    minutes: float = 0.0
    """Stop after this long, with a checkpoint to go on from [min]; 0: when it is finished."""
    tensorboard: bool = False
    """Write event files of TensorBoard, too, to tensorboard/ in the folder."""

    @property
    def training_run(self) -> TrainingRunOptions:
        """Return the same of any training."""
        return TrainingRunOptions("cpu", self.threads, self.checkpoint_minutes, self.minutes, self.tensorboard)


@dataclass(frozen=True)
class RoomsProtocol:
    """In which rooms it is judged, and how cluttered they are."""

    seed: Annotated[int, Bound(0, SEED_MAX)] = 7919
    """Of rooms, starts, targets and pushes; the specification's, and nothing was chosen on it."""
    flights: Annotated[int, Bound(1, 100_000)] = 500
    """Of each level."""
    levels: Annotated[tuple[int, ...], Bound(6, 1000), Length(0, 100)] = ()
    """None: the first of the curriculum, 30, the training's last, and the last of the curriculum."""

    def __post_init__(self) -> None:
        check_fields(self, "RoomsProtocol.")


def navigation_task(name: str, as_published: bool = False, room_seed: int = 0, **changed: Any) -> NavigationTask:
    """Return a task in rooms of a seed.

    Args:
        name: Of `NAVIGATION_TASKS`.
        as_published: With the published defects.
        room_seed: Of the rooms.
        changed: Other fields of the task.
    """
    plain = NAVIGATION_TASKS[name](as_published=as_published)
    return replace(plain, rooms=replace(plain.rooms, seed=room_seed), **changed)
