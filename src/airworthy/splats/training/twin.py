"""The step of training and the loss of surfaces as plain NumPy in float64: what kernels and array code are tested against.

Sources of the equations: Kingma, Ba: Adam (2015), algorithm 1; Kheradmand et al.: 3D Gaussian splatting as Markov chain Monte
Carlo (2024), for random motion.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayAny, ArrayLike, ArrayU32
from airworthy.core.random import threefry4x32
from airworthy.scenes.splats.record import C0
from airworthy.splats.training.fields import (
    FIRST,
    LOGIT,
    MOST_LOGIT,
    MOVED,
    NEEDLE,
    NOISE_MIDDLE,
    NOISE_STEEPNESS,
    NOISE_STREAM,
    SCALE,
    TURN,
    GaussianFields,
)
from airworthy.splats.training.geometry_loss import COVERED
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
    by_log_scale = scale * (by_scale + rates.scale_pull) + _pulls(log_scale, rates)
    slope = np.concatenate([slopes[:, :3], by_log_scale, by_turn, by_logit[:, None]], axis=1)
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


def _pulls(log_scale: Array, rates: Rates) -> Array:
    """Return derivatives (n, 3), by logarithms of scales, of the shortest scale and of how far a needle's longest is beyond ten
    times the middle one.
    """
    order, rows, found = np.argsort(log_scale, axis=1), np.arange(len(log_scale)), np.zeros_like(log_scale)
    least, middle, most = order.T
    found[rows, least] = rates.flat_pull * np.exp(log_scale[rows, least])
    over = log_scale[rows, most] - log_scale[rows, middle] > NEEDLE
    found[rows, most] += rates.needle_pull * over
    found[rows, middle] -= rates.needle_pull * over
    return found


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


def geometry_loss(
    depth: ArrayAny, alpha: Array, normal: ArrayAny, edges: Array, intrinsics: ArrayLike, weight: float, smooth: float
) -> Any:
    """Return the loss of surfaces, pixel by pixel from points in space; complex where depth or normal are.

    Args:
        depth: (H, W) along the axis [m], +inf where nothing is.
        alpha: (H, W)
        normal: (H, W, 3) blended, towards the camera, in its frame.
        edges: (H, W) weight of each pixel.
        intrinsics: fx, fy, cx, cy [px].
        weight: Of normals that differ.
        smooth: Of second differences of inverse depth.
    """
    fx, fy, cx, cy = np.asarray(intrinsics, np.float64)
    height, width = depth.shape
    seen, total = (alpha > COVERED) & np.isfinite(depth.real), 0.0
    for y in range(1, height - 1):
        for x in range(1, width - 1):
            beside = [(y, x), (y, x + 1), (y, x - 1), (y + 1, x), (y - 1, x)]
            if not all(seen[one] for one in beside):
                continue
            middle, right, left, below, above = (1.0 / depth[one] for one in beside)
            if max(abs((right - left).real), abs((below - above).real)) > 0.1 * middle.real:
                continue
            share = edges[y, x] * alpha[y, x] / depth.size
            # Two tangents of the surface whose inverse depth changes as it does here: with X = r / b, X' = r' / b - r b' / b^2.
            ray = np.array([(x + 0.5 - cx) / fx, (y + 0.5 - cy) / fy, 1.0])
            across = np.array([1.0 / fx, 0.0, 0.0]) * middle - ray * (0.5 * (right - left))
            down = np.array([0.0, 1.0 / fy, 0.0]) * middle - ray * (0.5 * (below - above))
            towards = -np.cross(across, down)
            towards = towards / np.sqrt(np.sum(towards * towards))
            total = total + weight * share * (1.0 - np.sum(normal[y, x] * towards))
            for bend in (left - 2.0 * middle + right, above - 2.0 * middle + below):
                total = total + smooth * share / middle.real * bend * np.sign(bend.real)
    return total
