"""A fixed budget of Gaussians spent where it helps: those that show nothing move to ones that show much, and more are added.

Source: Kheradmand, Rebain, Sharma, Sun, Tseng, Isack, Kar, Tagliasacchi, Yi: 3D Gaussian splatting as Markov chain Monte Carlo
(2024). Where N Gaussians come to stand in place of one, equation 9's opacity and covariance keep its image nearly as it was.
"""

from __future__ import annotations

from functools import cache
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.sensors.splats.training.fields import Fields, forgotten, logits, opacities
from airworthy.sensors.splats.training.rows import LOGIT, SCALE, SEEN, SHIFT

Floats = NDArray[np.floating[Any]]
DEAD = 0.005
"""Opacity at and below which a Gaussian is taken to show nothing."""
MOST_COPIES = 51
"""In place of one, itself among them."""


def shared(opacity: Floats, copies: NDArray[np.integer[Any]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Opacity and factor on standard deviations of each of N Gaussians that come to stand in place of one.

    With o' = 1 - (1 - o)^(1/N), N in a row stop as much light at their middle as the one did; the factor
    o / sum over i = 1..N, k = 0..i-1 of C(i-1, k) (-1)^k o'^(k+1) / sqrt(k+1) keeps the integral over the image.

    Args:
        opacity: Of the one, in (0, 1), (m,).
        copies: N >= 1, (m,).
    """
    o, n = np.asarray(opacity, np.float64), np.minimum(copies, MOST_COPIES)
    new = -np.expm1(np.log1p(-o) / n)
    powers = new[:, None] ** np.arange(1, MOST_COPIES + 1)
    total = np.sum(_terms()[n - 1] * powers, axis=1)
    return new, o / total


@cache
def _terms() -> NDArray[np.float64]:
    """Row N - 1: factors of o', o'^2, ...; by the sum over i of C(i-1, k) being C(N, k+1)."""
    table = np.zeros((MOST_COPIES, MOST_COPIES))
    for n in range(1, MOST_COPIES + 1):
        for k in range(n):
            table[n - 1, k] = comb(n, k + 1) * (-1.0) ** k / np.sqrt(k + 1.0)
    return table


def relocated(found: Fields, rng: np.random.Generator, count: int, dead: float = DEAD) -> tuple[Fields, int]:
    """Gaussians of which none is dead, `count` of them or as many as there were.

    Those that show nothing, and new ones up to `count`, are put where others are, chosen by their opacity, and share the place
    with them. Whatever shares a place forgets its moments.

    Args:
        found: Gaussians.
        rng: Chooses.
        count: How many there shall be; fewer than there are: as many.
        dead: Opacity at and below which one shows nothing.

    Returns:
        The Gaussians, and how many were dead.
    """
    opacity = opacities(found.raw)
    alive = np.flatnonzero((opacity > dead) & np.isfinite(found.raw).all(axis=1))
    gone = len(found) - len(alive)
    wanted = max(count - len(found), 0) + gone
    if not len(alive) or not wanted:
        return _counted_anew(found), gone
    share = np.cumsum(opacity[alive])
    chosen = np.searchsorted(share / share[-1], rng.random(wanted), side="right").clip(max=len(alive) - 1)
    copies = np.bincount(chosen, minlength=len(alive))
    split = np.flatnonzero(copies)
    kept = found.taken(alive)
    new, factor = shared(opacity[alive[split]], copies[split] + 1)
    changed = forgotten(kept.taken(split))
    # At least a little above what counts as dead, or what is shared among many would be dead at once.
    changed.raw[:, LOGIT] = logits(np.maximum(new, 1.1 * dead))
    changed.raw[:, SCALE : SCALE + 3] += np.log(factor).astype(np.float32)[:, None]
    places = np.full(len(alive), -1)
    places[split] = np.arange(len(split))
    made = changed.taken(places[chosen])
    made.number[:] = -1
    for name in ("position", "raw", "harmonics", "moments", "shade_moments"):
        getattr(kept, name)[split] = getattr(changed, name)
    return _counted_anew(kept.joined(made)), gone


def _counted_anew(found: Fields) -> Fields:
    found.raw[:, [SHIFT, SEEN]] = 0.0
    return found
