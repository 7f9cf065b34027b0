"""The sky of clear air: light that it scatters once, exactly, and more often, by a closed form; for any height of the sun.

Single scattering is integrated along each line of sight through a round atmosphere (so there is dusk, and the Earth's shadow).
All higher orders are taken as scattered evenly, which makes a geometric series of them (Hillaire, A scalable and production
ready sky and atmosphere rendering technique, 2020, section 5.5).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.scenes.sky.atmosphere import (
    ALBEDO,
    RADIUS,
    SOLAR,
    density,
    extinction,
    meets_ground,
    path_columns,
    rgb_of,
    to_top,
    transmittance,
)

__all__ = ["ASYMMETRY", "aerosol_phase", "clear_sky", "molecular_phase"]

ASYMMETRY = 0.76
"""Mean cosine of the angle by which aerosol turns light."""
_EYE = 2.0
"""Height from which the sky is seen [m]."""
_STEPS = 64
"""Along a line of sight."""


def molecular_phase(cosine: ArrayLike) -> Array:
    """Return the share of light that molecules turn by an angle, per steradian: Rayleigh's 3 (1 + cos^2) / (16 pi)."""
    c = np.asarray(cosine, np.float64)
    return np.asarray(3.0 / (16.0 * np.pi) * (1.0 + c * c))


def aerosol_phase(cosine: ArrayLike, asymmetry: float = ASYMMETRY) -> Array:
    """Return the share of light that aerosol turns by an angle, per steradian: Cornette and Shanks, 1992.

    Args:
        cosine: Of the angle, (...).
        asymmetry: Parameter g; above 0 forwards.
    """
    c, g = np.asarray(cosine, np.float64), asymmetry
    scale = 3.0 / (8.0 * np.pi) * (1.0 - g * g) / (2.0 + g * g)
    return np.asarray(scale * (1.0 + c * c) / (1.0 + g * g - 2.0 * g * c) ** 1.5)


def clear_sky(
    directions: Array, elevation: float, turbidity: float, ground: float, azimuth: Array | None = None
) -> tuple[Array, Array, Array]:
    """Return what makes the radiance of the sky above the horizon, in the renderer's units, each (..., 3).

    Radiance is molecules x `molecular_phase` + aerosol x `aerosol_phase` + multiple, where phases are of the angle between the
    line of sight and the sun: along a line of sight that angle does not change, since the sun is far.

    Args:
        directions: Sines of the elevations of lines of sight, (...), at least 0.
        elevation: Of the sun [rad].
        turbidity: Of the air.
        ground: Share of light that the ground sends back.
        azimuth: Of lines of sight from the sun [rad], (...); None: 0.

    Returns:
        Molecules, aerosol, multiple.
    """
    mu = np.asarray(directions, np.float64)
    turn = np.zeros_like(mu) if azimuth is None else np.asarray(azimuth, np.float64)
    taken = extinction(turbidity)
    sine, cosine = np.sin(elevation), np.cos(elevation)
    # Of the line of sight with the sun; as unit vectors over the eye, x towards the sun.
    facing = mu * sine + np.sqrt(np.maximum(1.0 - mu * mu, 0.0)) * np.cos(turn) * cosine
    r0 = RADIUS + _EYE
    parts = _along(np.full_like(mu, r0), mu, to_top(r0, mu), np.full_like(mu, sine), facing, taken, _STEPS, ground)
    molecules, aerosol, multiple = (rgb_of(SOLAR * part) for part in parts)
    return molecules, aerosol, multiple


def _along(
    r0: Array, mu: Array, reach: Array, sine: Array, facing: Array, taken: Array, steps: int, ground: float
) -> tuple[Array, Array, Array]:
    """Return light scattered towards the beginning of rays, under a sun of irradiance 1 at each wavelength, (..., 16) each: by
    molecules and by aerosol once, without their phases, and more often.

    Args:
        r0: Where rays begin, from the Earth's centre [m], (...).
        mu: Cosine of their angle with the vertical there.
        reach: How long they are [m].
        sine: Of the sun's elevation there.
        facing: Cosine of the angle between ray and sun.
        taken: Extinctions (3, 16) [1/m].
        steps: Pieces of a ray.
        ground: Share of light that the ground sends back; below 0: no light that was scattered more than once.
    """
    edges = np.linspace(0.0, 1.0, steps + 1) ** 2
    shape = (*mu.shape, taken.shape[1])
    molecules, aerosol, multiple = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    passed = np.ones(shape)
    for low, high in pairwise(edges):
        s, length = reach * 0.5 * (low + high), (reach * (high - low))[..., None]
        r = np.sqrt(r0 * r0 + s * s + 2.0 * r0 * s * mu)
        sun = np.clip((r0 * sine + s * facing) / r, -1.0, 1.0)
        dense = density(r - RADIUS)
        gone = dense[..., 0:1] * taken[0] + dense[..., 1:2] * taken[1] + dense[..., 2:3] * taken[2]
        left = np.exp(-gone * length)
        # Of a source that is even over the piece, what leaves it.
        weight = passed * (1.0 - left) / np.maximum(gone, 1e-30)
        lit = np.where(meets_ground(r, sun), 0.0, 1.0)[..., None] * transmittance(path_columns(r, sun), taken)
        by_molecules, by_aerosol = dense[..., 0:1] * taken[0], dense[..., 1:2] * taken[1] * ALBEDO
        molecules += weight * by_molecules * lit
        aerosol += weight * by_aerosol * lit
        if ground >= 0.0:
            multiple += weight * (by_molecules + by_aerosol) * _multiple(r, sun, taken, ground)
        passed = passed * left
    return molecules, aerosol, multiple


# ---- Light scattered more than once: one number by height and the sun's elevation -------------------------------------------

_LEVELS = np.array([0.0, 400.0, 1e3, 2e3, 4e3, 7e3, 11e3, 16e3, 24e3, 34e3, 50e3, 99e3])
"""Heights of the table [m]."""
_SUNS = np.sin(np.radians([-24, -18, -14, -11, -9, -7, -5.5, -4, -3, -2, -1, 0, 1, 2.5, 4, 6, 9, 13, 18, 25, 35, 50, 70, 90]))
"""Sines of the sun's elevation of the table."""
_NODES, _TURNS, _PIECES = 10, 4, 16
"""Directions by elevation and azimuth, and pieces of a ray, of which the table is made."""


def _multiple(r: Array, sun: Array, taken: Array, ground: float) -> Array:
    table = _multiple_table(taken.tobytes(), taken.shape[1], ground)
    x = np.interp(r - RADIUS, _LEVELS, np.arange(len(_LEVELS)))
    y = np.interp(sun, _SUNS, np.arange(len(_SUNS)))
    i, j = np.minimum(x.astype(int), len(_LEVELS) - 2), np.minimum(y.astype(int), len(_SUNS) - 2)
    a, b = (x - i)[..., None], (y - j)[..., None]
    low = table[i, j] + (table[i, j + 1] - table[i, j]) * b
    high = table[i + 1, j] + (table[i + 1, j + 1] - table[i + 1, j]) * b
    return np.asarray(low + (high - low) * a)


@lru_cache(maxsize=64)
def _multiple_table(extinctions: bytes, bands: int, ground: float) -> Array:
    """Return radiance that comes evenly from all sides, of light scattered twice or more, under a sun of irradiance 1:
    (height, sun, 16)."""
    taken = np.frombuffer(extinctions).reshape(-1, bands)
    # Gauss in the vertical, evenly around it; the sun's side stands for both.
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    turns = (np.arange(_TURNS) + 0.5) / _TURNS * np.pi
    mu, turn = (part.reshape(-1) for part in np.meshgrid(nodes, turns, indexing="ij"))
    share = np.repeat(weights, _TURNS) / (2.0 * _TURNS)
    r0, up = (part.astype(np.float64) for part in np.broadcast_arrays(RADIUS + _LEVELS[:, None], mu))
    struck = meets_ground(r0, up)
    down = -r0 * up - np.sqrt(np.maximum(r0 * r0 * (up * up - 1.0) + RADIUS**2, 0.0))
    reach = np.where(struck, np.maximum(down, 0.0), to_top(r0, up))
    back, through = _even(r0, up, reach, taken)
    met = np.where(struck, ground, 0.0)[..., None] * through
    again = ((back + met) * share[:, None]).sum(-2)
    second = np.stack([_second(r0, up, turn, reach, sine, met, taken, share) for sine in _SUNS], 1)
    return np.asarray(second / (1.0 - np.minimum(again, 0.95))[:, None])


def _second(r0: Array, up: Array, turn: Array, reach: Array, sine: float, met: Array, taken: Array, share: Array) -> Array:
    """Return the mean of light scattered once, over directions (height, direction) with their shares: (height, 16)."""
    sun = np.full_like(r0, sine)
    facing = up * sine + np.sqrt(1.0 - up * up) * np.sqrt(max(1.0 - sine * sine, 0.0)) * np.cos(turn)
    molecules, aerosol, _ = _along(r0, up, reach, sun, facing, taken, _PIECES, -1.0)
    once = 0.0
    for part, phase in ((molecules, molecular_phase(facing)), (aerosol, aerosol_phase(facing))):
        # Few directions miss the forward peak, or meet it too often: they are made to share out all light, and no more.
        once = once + part * (phase / (4.0 * np.pi * (phase * share).sum(-1, keepdims=True)))[..., None]
    # And of the ground that is seen, which the sun alone lights.
    r1 = np.sqrt(r0 * r0 + reach * reach + 2.0 * r0 * reach * up)
    low = np.clip((r0 * sine + reach * facing) / r1, -1.0, 1.0)
    lit = np.maximum(low, 0.0)[..., None] * transmittance(path_columns(r1, low), taken)
    return np.asarray(((once + met * lit / np.pi) * share[:, None]).sum(-2))


def _even(r0: Array, mu: Array, reach: Array, taken: Array) -> tuple[Array, Array]:
    """Return what comes back along rays where radiance 1 comes from all sides everywhere, and what passes them, (..., 16)."""
    edges = np.linspace(0.0, 1.0, _PIECES + 1) ** 2
    total, passed = np.zeros((*mu.shape, taken.shape[1])), np.ones((*mu.shape, taken.shape[1]))
    for low, high in pairwise(edges):
        s, length = reach * 0.5 * (low + high), (reach * (high - low))[..., None]
        dense = density(np.sqrt(r0 * r0 + s * s + 2.0 * r0 * s * mu) - RADIUS)
        gone = dense[..., 0:1] * taken[0] + dense[..., 1:2] * taken[1] + dense[..., 2:3] * taken[2]
        sent = dense[..., 0:1] * taken[0] + dense[..., 1:2] * taken[1] * ALBEDO
        left = np.exp(-gone * length)
        total += passed * (1.0 - left) / np.maximum(gone, 1e-30) * sent
        passed = passed * left
    return total, passed
