"""How a network's sums become an action, as scalars: traced into the kernel that learns, and its twin on NumPy."""

from __future__ import annotations

from airworthy.core.arrays import Scalar, Vector
from airworthy.core.ops import clip, exp, softplus, tanh

__all__ = ["LOG_STD_MAX", "LOG_STD_MIN", "gaussian_action", "plain_action", "smoothed_action"]

LOG_STD_MIN, LOG_STD_MAX = -20.0, 2.0
"""Of logarithms of standard deviations before tanh, as published (Haarnoja et al. 2018, appendix D)."""
_HALF_LOG_TWO_PI = 0.9189385332046727  # of a Gaussian's log-density
_LOG_TWO = 0.6931471805599453


def gaussian_action(raw: Vector, noise: Vector) -> tuple[Vector, Scalar]:
    """Return the action of a Gaussian squashed by tanh, and its log-density (Haarnoja et al. 2018, appendix C).

    Args:
        raw: Means, then logarithms of standard deviations, before tanh.
        noise: Standard normal numbers, one per action.

    Returns:
        Action within (-1, 1), and log pi(action).
    """
    n = len(noise)
    action: list[Scalar] = []
    density: Scalar = 0.0
    for mean, spread, e in zip(raw[:n], raw[n:], noise, strict=True):
        # Clipped before exp: a deviation of e^2 fills the range of actions, one of e^-20 is none.
        s = clip(spread, LOG_STD_MIN, LOG_STD_MAX)
        u = mean + exp(s) * e
        # log(1 - tanh(u)^2) = 2 (log 2 - u - softplus(-2 u)): no cancellation where tanh is near 1.
        density = density - 0.5 * e * e - s - _HALF_LOG_TWO_PI - 2.0 * (_LOG_TWO - u - softplus(-2.0 * u))
        action.append(tanh(u))
    return tuple(action), density


def plain_action(raw: Vector, noise: Vector) -> tuple[Vector, Scalar]:
    """Return the action without noise, as TD3's actor learns; its density is none, and told as 0.

    Args:
        raw: Sums of the last layer.
        noise: Not used.
    """
    return tuple(tanh(x) for x in raw), 0.0 * raw[0]


def smoothed_action(raw: Vector, noise: Vector, deviation: float, most: float) -> tuple[Vector, Scalar]:
    """Return the action with clipped noise on top, as TD3 explores, and smooths its targets (Fujimoto et al. 2018, 5.3).

    Args:
        raw: Sums of the last layer.
        noise: Standard normal numbers, one per action.
        deviation: Of the noise.
        most: At which it is clipped.

    Returns:
        Action within [-1, 1], and 0 for a density.
    """
    moved = (tanh(x) + clip(deviation * e, -most, most) for x, e in zip(raw, noise, strict=True))
    return tuple(clip(x, -1.0, 1.0) for x in moved), 0.0 * raw[0]
