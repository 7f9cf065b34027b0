"""More Gaussians where derivatives say that they are wanted: clones of small ones, halves of large ones, and none that show
nothing.

Source: Kerbl, Kopanas, Leimkuehler, Drettakis: 3D Gaussian splatting (2023), section 5.2, and its reference code. Where there
would be more than a budget, those with the largest derivatives come first (Mallick et al.: Taming 3DGS, 2024).
"""

from __future__ import annotations

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array
from airworthy.splats.training.engines import DEAD
from airworthy.splats.training.fields import (
    LOGIT,
    MOVED,
    RENDERED,
    SCALE,
    SHIFT,
    TURN,
    GaussianFields,
    forgotten,
    logits,
    opacities,
)

__all__ = ["densified", "faded"]

SPLIT_SHARE = 0.01
"""Of the reach: what is longer is split, what is shorter is cloned (reference code: `percent_dense`)."""
SHRINK = 1.6
"""Factor by which halves are smaller."""
FADED = 0.01
"""Opacity to which all are lowered now and then, so that what is not needed dies."""


def densified(
    found: GaussianFields, rng: np.random.Generator, count: int, threshold: float, reach: float, dead: float = DEAD
) -> tuple[GaussianFields, int]:
    """Return Gaussians with new ones where the place in the image is under strain, and how many of the old ones were dead.

    Strain is the mean length of the loss' derivative with respect to the place in the image over the images in which a Gaussian
    was since the last time; what was counted of it begins anew.

    Args:
        found: Gaussians.
        rng: For the places of halves.
        count: Most there may be.
        threshold: Least strain that asks for more [1/px].
        reach: Of the views [m].
        dead: Opacity at and below which one shows nothing.
    """
    alive = (opacities(found.raw) > dead) & np.isfinite(found.raw).all(axis=1)
    if not alive.any():
        return _counted_anew(found), int(len(found) - alive.sum())
    kept = found.taken(np.flatnonzero(alive))
    strain = kept.raw[:, SHIFT].astype(np.float64) / np.maximum(kept.raw[:, RENDERED], 1.0)
    room = max(count - len(kept), 0)
    wanted = np.flatnonzero(strain > threshold)
    # The most strained first; equal ones in their order.
    wanted = np.sort(wanted[np.argsort(-strain[wanted], kind="stable")][:room])
    large = np.exp(kept.raw[wanted, SCALE : SCALE + 3].max(axis=1)) > SPLIT_SHARE * reach
    clones, halves = forgotten(kept.taken(wanted[~large])), _half(kept.taken(wanted[large]), rng)
    others = _half(kept.taken(wanted[large]), rng)
    for name in ("position", "raw", "harmonics", "moments", "shade_moments"):
        getattr(kept, name)[wanted[large]] = getattr(halves, name)
    for made in (clones, others):
        made.number[:] = -1
    return _counted_anew(kept.joined(clones).joined(others)), int(len(found) - alive.sum())


def faded(found: GaussianFields) -> GaussianFields:
    """Return Gaussians whose opacity is at most `FADED`, moments of opacities forgotten."""
    most = logits(np.full(len(found), FADED))
    found.raw[:, LOGIT] = np.minimum(found.raw[:, LOGIT], most)
    found.moments[:, [MOVED - 1, 2 * MOVED - 1]] = 0.0
    return found


def _half(some: GaussianFields, rng: np.random.Generator) -> GaussianFields:
    """Return smaller ones, each at a place drawn from the old one's distribution, as if they had never moved."""
    made = forgotten(some)
    scale = np.exp(made.raw[:, SCALE : SCALE + 3].astype(np.float64))
    turn = made.raw[:, TURN : TURN + 4].astype(np.float64)
    offset: Array = frames.rotate(turn, scale * rng.normal(size=scale.shape))
    made.position[:] = made.position + offset.astype(np.float32)
    made.raw[:, SCALE : SCALE + 3] -= np.float32(np.log(SHRINK))
    return made


def _counted_anew(found: GaussianFields) -> GaussianFields:
    found.raw[:, [SHIFT, RENDERED]] = 0.0
    return found
