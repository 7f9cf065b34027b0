"""The covariance of a window's errors over its blocks: a mixture of noise and of pushes that last."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from airworthy.core.arrays import Array

__all__ = ["whitening_of"]

CLIP = 4.0
"""Errors beyond so many times the usual enter the covariance as that."""
LASTING = (0.03, 0.1, 0.3, 1.0)
"""Times that pushes last, of which the covariance of errors is mixed [s]: a mixture has less freedom than the windows' own."""
ALONE = 0.02
"""Share of errors that is taken to be of each block alone, whatever the mixture says: without it differences of neighbouring
blocks count for more than any rotor's equation is true to."""
MIXTURES = 3
"""How often the mixture is fitted, in its own metric."""


def whitening_of(errors: Array, floor: Array, length: float) -> Array:
    """Return inverse roots of the covariance of errors over blocks, lower triangular, (channels, blocks, blocks).

    Args:
        errors: (windows, blocks, channels).
        floor: Least size of an error, (channels,).
        length: Of a block [s].
    """
    # What is wrong in all windows alike is no disturbance: taken for one, it would be left as it is.
    errors = errors - np.median(errors, axis=0)
    width = np.maximum(1.4826 * np.median(np.abs(errors), axis=0), floor)
    clipped = np.clip(errors / width, -CLIP, CLIP) * width
    blocks = errors.shape[1]
    found = np.empty((errors.shape[2], blocks, blocks))
    for k, least in enumerate(floor):
        own = clipped[..., k].T @ clipped[..., k] / len(errors) + least**2 * np.eye(blocks)
        mixed = _explained(own, _causes(blocks, length))
        mixed = (1.0 - ALONE) * mixed + ALONE * np.diag(np.diag(mixed))
        found[k] = np.linalg.inv(np.linalg.cholesky(mixed))
    return found


def _explained(covariance: Array, causes: Array) -> Array:
    """Return the mixture of causes that explains a covariance best, by least squares in its own metric, repeated.

    Args:
        covariance: (blocks, blocks).
        causes: (causes, blocks, blocks).
    """
    from scipy.optimize import nnls

    blocks = len(covariance)
    size = np.trace(covariance) / blocks
    found = 0.5 * (covariance + np.diag(np.diag(covariance)))
    scaled = causes * (size / np.einsum("kbb->k", causes) * blocks)[:, None, None]
    for _ in range(MIXTURES):
        root = np.linalg.inv(np.linalg.cholesky(found))
        shares, _ = nnls(
            np.stack([(root @ cause @ root.T).ravel() for cause in scaled], axis=1), (root @ covariance @ root.T).ravel()
        )
        found = np.einsum("k,kbd->bd", shares, scaled) + 1e-4 * size * np.eye(blocks)
    return found


@lru_cache(maxsize=8)
def _causes(blocks: int, length: float) -> Array:
    """Covariances over blocks of what makes errors: noise, a wrong start, and pushes that last, as they are and summed up."""
    fine = 5
    time = length / fine * (np.arange(blocks * fine) + 0.5)
    apart = np.abs(time[:, None] - time[None, :])
    step = length / fine

    def blockwise(matrix: Array) -> Array:
        return matrix.reshape(blocks, fine, blocks, fine).mean(axis=(1, 3))

    found = [np.eye(blocks), np.ones((blocks, blocks))]
    for lasting in LASTING:
        push = np.exp(-apart / lasting)
        found += [blockwise(push), blockwise(np.cumsum(np.cumsum(push, axis=0), axis=1) * step**2)]
    return np.stack(found)
