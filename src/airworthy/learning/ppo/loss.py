"""The clipped loss of PPO (Schulman et al. 2017) over a batch in torch; of one sample: `native_ppo.ppo_loss`."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from airworthy.learning.ppo.model import Gaussian
from airworthy.learning.ppo.options import TorchPpoOptions

__all__ = ["Samples", "batch_loss"]

_LARGEST_LOG_RATIO = 20.0
"""As of the loss of one sample: exp of more would overflow, and the clip has long cut its gradient."""


@dataclass(frozen=True)
class Samples:
    """What was flown, and what is to be learnt from it; first axes alike."""

    taken: Tensor
    """What was drawn, before it was squashed, (..., actions)."""
    noise: Tensor
    """Standard normal, from which it was drawn, (..., actions)."""
    log_probability: Tensor
    """Of what was taken, by the policy that took it."""
    advantage: Tensor
    """Of mean 0 and deviation 1 over the rollout."""
    target: Tensor
    """Of the value, as the critic gives it."""
    value: Tensor
    """What the critic expected."""
    weight: Tensor
    """1; 0 of samples that hold numbers that are none."""


def batch_loss(policy: Gaussian, value: Tensor, samples: Samples, options: TorchPpoOptions) -> tuple[Tensor, Tensor, Tensor]:
    """Return sums over samples of the loss, of the divergence between old and new policy, and of the value's squared error.

    Args:
        policy: New.
        value: What the new critic expects.
        samples: Old.
        options: Weights and clips.

    Returns:
        Loss; (r - 1) - log r, an unbiased estimate of the divergence that is never negative (Schulman 2020); error.
    """
    o = options
    change = (policy.log_probability(samples.taken) - samples.log_probability).clamp(-_LARGEST_LOG_RATIO, _LARGEST_LOG_RATIO)
    ratio = change.exp()
    clipped = ratio.clamp(1.0 - o.clip, 1.0 + o.clip)
    gain = torch.minimum(ratio * samples.advantage, clipped * samples.advantage)
    error = (value - samples.target).square()
    counted = error
    if o.value_clip:
        # The larger of both: a value that moved beyond the clip is not drawn farther (Schulman's own code of PPO).
        moved = samples.value + (value - samples.value).clamp(-o.value_clip, o.value_clip)
        counted = torch.maximum(error, (moved - samples.target).square())
    loss = ((0.5 * o.value_weight * counted - gain) * samples.weight).sum()
    loss = loss - o.entropy_weight * policy.entropy(samples.noise) * samples.weight.sum()
    return loss, ((ratio - 1.0 - change) * samples.weight).sum(), (error * samples.weight).sum()
