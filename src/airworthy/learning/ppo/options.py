"""How PPO in torch learns: what the native form has, and what only torch can."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import CPU_LANES
from airworthy.core.schema import Bound, Length, check_fields
from airworthy.learning.native_ppo.options import PpoOptions

__all__ = ["TorchPpoOptions"]

_WIDTH_MAX, _LAYERS_MAX, _IMAGE_MAX = 1024, 4, 512
"""Ours: what is larger is not learnt by reward on one machine."""
_LEAST_IMAGE = 8
"""Rows and columns: three convolutions of stride 2 leave one cell of them."""


@dataclass(frozen=True)
class TorchPpoOptions(PpoOptions):
    """How to learn; without more said, exactly as `NativePpo` does from the same options and seed.

    Raises:
        AirworthyError: A number out of range, or options that do not go together.
    """

    hidden: Annotated[tuple[int, ...], Bound(1, _WIDTH_MAX), Length(1, _LAYERS_MAX)] = (32, 24)
    """Widths of the hidden layers, of policy and critic each; tanh after each."""
    recurrent: Annotated[int, Bound(0, _WIDTH_MAX)] = 0
    """Width of a gated recurrent unit behind the hidden layers; 0: none, and the policy remembers nothing."""
    image: tuple[int, ...] = ()
    """Channels, height and width of an image that is the end of each observation; none: there is no image. It goes through
    three convolutions; what comes before it goes past them."""
    shared: bool = False
    """Policy and critic have all but their last layers in common."""
    deviation: Literal["parameter", "network"] = "parameter"
    """Standard deviations of actions are parameters of their own, or the network's, bounded by `least_std` and `most_std`."""
    most_std: Annotated[float, Bound(1e-3, 10.0)] = 1.0
    """Of the network's deviations."""
    squash: bool = False
    """Noise is added before the tanh that bounds actions, not behind it: actions never leave their bounds, and their
    log-probability takes the slope of tanh into account."""
    value_clip: Annotated[float, Bound(0.0, 1e6)] = 0.0
    """By how much a value that moves on counts as moved, in what the critic gives; 0: all of it."""
    anneal_updates: Annotated[int, Bound(0, 1_000_000_000)] = 0
    """Updates over which the learning rate falls to 0, linearly; 0: it does not. Not beside `target_divergence`."""
    stop_divergence: Annotated[float, Bound(0.0, 100.0)] = 0.0
    """Passes end where one moved the policy farther than this; 0: all are made."""
    mirror: Literal["none", "y", "xy"] = "none"
    """Samples are learnt from mirrored, too: left and right, or front and back as well, which makes four of each. Of tasks that
    command rotors, and look alike so (`airworthy.learning.ppo.symmetry`), or of environments that know their images."""
    average_updates: Annotated[int, Bound(0, 1_000_000)] = 0
    """Updates over which the weights of the policy that is written down are averaged, exponentially; 0: they are the last.
    What learns is the same."""

    def blocks(self, env_count: int) -> tuple[int, int]:
        """Return how many blocks a rollout is shared out in, and how many samples each has: in what order minibatches come.

        Args:
            env_count: Of the environments that are learnt in.
        """
        # Blocks as of the native form, so that samples come in its order; networks with memory take whole environments.
        if self.recurrent:
            return env_count, self.rollout
        size = CPU_LANES if env_count % CPU_LANES == 0 else 1
        return env_count * self.rollout // size, size

    def check_batch(self, env_count: int) -> None:
        """Refuse a number of environments whose samples do not divide into minibatches.

        Args:
            env_count: Of the environments that are learnt in.
        """
        blocks, size = self.blocks(env_count)
        if blocks % self.minibatches:
            samples = "samples" if size == 1 else f"blocks of {size} samples"
            whole = f"{blocks:,}, the {samples} of {env_count:,} environments x {self.rollout} steps"
            expected = f"its {blocks:,} environments, which go together" if self.recurrent else whole
            raise AirworthyError(
                f"TorchPpoOptions.minibatches is {self.minibatches}; expected a number that divides {expected}."
            )

    def __post_init__(self) -> None:
        check_fields(self, "TorchPpoOptions.")
        self.check_last_std()
        if self.deviation == "parameter" and self.most_std != 1.0:
            raise AirworthyError(
                f"most_std {self.most_std:g} changes nothing for deviations that are parameters: leave it out."
            )
        if self.image and (len(self.image) != 3 or not all(1 <= side <= _IMAGE_MAX for side in self.image)):
            raise AirworthyError(
                f"TorchPpoOptions.image is {list(self.image)}; expected channels, height and width, up to 512."
            )
        if self.image and min(self.image[1:]) < _LEAST_IMAGE:
            raise AirworthyError(
                f"TorchPpoOptions.image is {self.image[1]} x {self.image[2]}; expected {_LEAST_IMAGE} or more rows and columns."
            )
        if self.anneal_updates and self.target_divergence:
            raise AirworthyError(
                "anneal_updates and target_divergence both set the learning rate: choose one, and set the other to 0."
            )
        if self.least_std >= self.most_std and self.deviation == "network":
            raise AirworthyError(f"least_std is {self.least_std:g}, not below most_std ({self.most_std:g}).")
        if self.mirror != "none" and self.image:
            raise AirworthyError("Samples are mirrored of networks without convolutions; expected mirror 'none' here.")
