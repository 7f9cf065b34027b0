"""The step of training as plain NumPy in float64, one Gaussian per row: what the kernel is tested against.

Sources of the equations: Kingma, Ba: Adam (2015), algorithm 1; Kheradmand et al.: 3D Gaussian splatting as Markov chain Monte
Carlo (2024), for random motion.
"""

from __future__ import annotations

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayAny, ArrayU32
from airworthy.core.random import threefry4x32
from airworthy.scenes.splats.record import C0
from airworthy.splats.training.fields import (
    FIRST,
    LOGIT,
    MOST_LOGIT,
    MOVED,
    NOISE_MIDDLE,
    NOISE_STEEPNESS,
    NOISE_STREAM,
    SCALE,
    TURN,
    GaussianFields,
)
from airworthy.splats.training.optimizer import Rates
from airworthy.splats.twin import rotations

_STEP = 1e-30
"""Of a complex step: the derivative is the imaginary part over it, with nothing cancelled."""


def step(
    found: GaussianFields, slopes: Array, shades: Array, rates: Rates, seed: int, number: int, least_scale: float
) -> dict[str, Array]:
    """Return what one step makes of Gaussians, all of them seen, in the order of their places.

    Args:
        found: Gaussians.
        slopes: (n, SLOPE_ROWS) derivatives with respect to means (3), axes (9), opacities; then what is only counted.
        shades: (n, k, 3) derivatives with respect to harmonics.
        rates: How far.
        seed: Of random motion.
        number: Steps done before.
        least_scale: [m]

    Returns:
        `position`, `log_scale`, `rotation`, `logit`, `harmonics`, `moments` and `shade_moments`.
    """
    raw = found.raw.astype(np.float64)
    log_scale, turn, logit = raw[:, SCALE : SCALE + 3], raw[:, TURN : TURN + 4], raw[:, LOGIT]
    scale, opacity = np.exp(log_scale), 1.0 / (1.0 + np.exp(-logit))
    by_turn, by_scale = _of_axes(turn, scale, slopes[:, 3:12].reshape(-1, 3, 3))
    by_logit = (slopes[:, 12] + rates.opacity_pull) * opacity * (1.0 - opacity)
    slope = np.concatenate([slopes[:, :3], scale * (by_scale + rates.scale_pull), by_turn, by_logit[:, None]], axis=1)
    left = raw[:, [FIRST, FIRST + 1]] * rates.decays
    moments, move = _adam(found.moments.reshape(-1, 2, MOVED), slope, left, rates)
    n, flat = len(found), shades.reshape(len(found), -1)
    shade_moments, shade_move = _adam(found.shade_moments.reshape(n, 2, -1), flat, left, rates)
    rate = np.full(flat.shape[1], rates.color_rest / C0)
    rate[:3] = rates.color / C0
    log_scale = np.maximum(log_scale - rates.scale * move[:, 3:6], np.log(least_scale))
    turn = frames.normalize(turn - rates.rotation * move[:, 6:10])
    logit = np.clip(logit - rates.opacity * move[:, 10], -MOST_LOGIT, MOST_LOGIT)
    reach = rates.place + rates.place_share * np.exp(log_scale).max(axis=1, keepdims=True)
    position = found.position - reach * move[:, :3] + _noise(log_scale, turn, logit, rates, seed, number)
    harmonics = found.harmonics - (rate * shade_move).reshape(shades.shape)
    named = {"position": position, "log_scale": log_scale, "rotation": turn, "logit": logit, "harmonics": harmonics}
    return named | {"moments": moments.reshape(n, -1), "shade_moments": shade_moments.reshape(n, 2, -1, 3)}


def _of_axes(turn: Array, scale: Array, axes: Array) -> tuple[Array, Array]:
    """Return derivatives with respect to unit quaternions, along their sphere, and scales from those of R diag(scale)."""
    by_turn = np.zeros_like(turn)
    for k in range(4):
        moved = turn.astype(complex)
        moved[:, k] += _STEP * 1j
        by_turn[:, k] = np.einsum("nij,nij,nj->n", axes, rotations(moved).imag / _STEP, scale)
    by_turn -= turn * np.sum(turn * by_turn, axis=1, keepdims=True)
    return by_turn, np.einsum("nij,nij->nj", axes, rotations(turn))


def _adam(held: ArrayAny, slope: Array, left: Array, rates: Rates) -> tuple[Array, Array]:
    """Return new moments (n, 2, k) and what to subtract (n, k) at a rate of 1."""
    a, b = rates.decays
    mean = a * held[:, 0] + (1.0 - a) * slope
    square = b * held[:, 1] + (1.0 - b) * slope**2
    move = mean / (1.0 - left[:, :1]) / (np.sqrt(square / (1.0 - left[:, 1:])) + 1e-15)
    return np.stack([mean, square], axis=1), move


def _noise(log_scale: Array, turn: Array, logit: Array, rates: Rates, seed: int, number: int) -> Array:
    """Return normal numbers times the covariance, times sigma(-k (opacity - t))."""
    n = len(logit)
    opacity = 1.0 / (1.0 + np.exp(-logit))
    key = np.zeros((n, 4), np.uint32)
    key[:, 0], key[:, 1], key[:, 2] = seed & 0xFFFFFFFF, seed >> 32, np.arange(n)
    words = threefry4x32(key, np.array([number, NOISE_STREAM, 0, 0], np.uint32))
    normal = np.stack([*_pair(words[:, 0], words[:, 1]), *_pair(words[:, 2], words[:, 3])], axis=1)[:, :3]
    inside = np.exp(2.0 * log_scale) * frames.rotate(frames.conjugate(turn), normal)
    share = rates.noise / (1.0 + np.exp(NOISE_STEEPNESS * (opacity - NOISE_MIDDLE)))
    return np.asarray(share[:, None] * frames.rotate(turn, inside))


def _pair(first: ArrayU32, second: ArrayU32) -> tuple[Array, Array]:
    """Return two standard normals of two words, as `core.random` makes them."""
    radius = np.sqrt(-2.0 * np.log(((first >> np.uint32(9)) + 0.5) * 2.0**-23))
    quadrant, inside = second >> np.uint32(30), ((second << np.uint32(2)) >> np.uint32(9)) + 0.5
    angle = (quadrant - 0.5) * (np.pi / 2.0) + inside * (np.pi / 2.0**24)
    return radius * np.cos(angle), radius * np.sin(angle)
