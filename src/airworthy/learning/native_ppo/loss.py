"""The clipped loss of PPO (Schulman et al. 2017) as scalars: traced into the update's kernel, and its twin on NumPy."""

from __future__ import annotations

from collections.abc import Sequence

from airworthy.core.arrays import Scalar, Vector
from airworthy.core.ops import clip, exp, minimum

__all__ = ["ppo_loss"]

_HALF_LOG_TWO_PI = 0.9189385332046727  # of a Gaussian's log-density
_LARGEST_LOG_RATIO = 20.0
"""exp of more is no use and would overflow; the clip has long cut its gradient."""


def ppo_loss(
    mean: Vector,
    log_std: Vector,
    value: Scalar,
    action: Vector,
    old: Sequence[Scalar],
    clip_share: float,
    value_weight: float,
    entropy_weight: float,
) -> tuple[Scalar, Scalar, Scalar]:
    """Return the loss of one sample, its part of the divergence between old and new policy, and its squared error of the value.

    Args:
        mean: Of the new policy's Gaussian, per action.
        log_std: Logarithm of its standard deviations.
        value: What the new critic says.
        action: That was taken.
        old: Log-probability of the action when it was taken, advantage, target of the value.
        clip_share: By how much the ratio of probabilities counts away from 1.
        value_weight: Of half the squared error of the value.
        entropy_weight: Of the policy's entropy, which is wanted.

    Returns:
        The loss; (r - 1) - log r, an unbiased estimate of the divergence that is never negative (Schulman 2020); the error.
    """
    old_log, advantage, target = old
    log_probability: Scalar = 0.0
    entropy: Scalar = 0.0
    for m, s, a in zip(mean, log_std, action, strict=True):
        z = (a - m) * exp(-s)
        log_probability = log_probability - 0.5 * z * z - s - _HALF_LOG_TWO_PI
        # But for a constant, which no slope sees.
        entropy = entropy + s
    change = clip(log_probability - old_log, -_LARGEST_LOG_RATIO, _LARGEST_LOG_RATIO)
    ratio = exp(change)
    gain = minimum(ratio * advantage, clip(ratio, 1.0 - clip_share, 1.0 + clip_share) * advantage)
    error = (value - target) * (value - target)
    loss = -gain + 0.5 * value_weight * error - entropy_weight * entropy
    return loss, (ratio - 1.0) - change, error
