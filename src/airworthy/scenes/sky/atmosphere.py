"""Clear air: how much of the sun's light passes it, by wavelength, over a round Earth. What follows for the sky: `scattering`.

Three kinds of matter, each with its own profile of height: molecules (Rayleigh), aerosol (Mie) and ozone. What a path holds of
each does not depend on the wavelength, so one table of three numbers by height and direction serves all of them.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from airworthy.core.arrays import Array, ArrayLike

__all__ = [
    "ALBEDO",
    "DENSITY",
    "LUX_PER_UNIT",
    "RADIUS",
    "SOLAR",
    "TOP",
    "WAVELENGTHS",
    "density",
    "extinction",
    "path_columns",
    "rgb_of",
    "sun_irradiance",
    "transmittance",
]

RADIUS, TOP = 6.36e6, 6.46e6
"""Of the ground and of the end of the air, from the Earth's centre [m]."""
WAVELENGTHS = np.arange(390.0, 691.0, 20.0)
"""Middles of sixteen bands of 20 nm [nm]."""
# Source: ASTM G-173-03, extraterrestrial column, means over 20 nm.
SOLAR = np.array(
    [1.0798, 1.7291, 1.6506, 1.9734, 2.0213, 1.9459, 1.8733, 1.8808, 1.8509, 1.8343, 1.7981, 1.7249, 1.6642, 1.5631, 1.5338,
     1.4611]
)  # fmt: skip
"""Irradiance of the sun outside of the air [W/m2/nm]."""
# Source: Serdyuchenko, Gorshelev and others, High spectral resolution ozone absorption cross-sections, 2014 (University of
# Bremen), 233 K, means over 20 nm.
_OZONE = 1e-26 * np.array(
    [0.0473, 0.2145, 0.6986, 1.949, 4.297, 8.384, 15.41, 24.47, 32.96, 44.69, 45.50, 46.62, 34.78, 24.50, 16.63, 10.76]
)
"""Cross-section of a molecule [m2]."""
_OZONE_COLUMN = 300.0 * 2.687e20
"""Molecules over a square metre: 300 Dobson units, a common value at middle latitudes."""
_MOLECULES, _AEROSOL = 8000.0, 1200.0
"""Scale heights [m] (Bruneton and Neyret, Precomputed atmospheric scattering, 2008)."""
_LAYER, _LAYER_HALF = 25e3, 15e3
"""Ozone rises from 10 km to its most at 25 km, and is gone at 40 km [m]."""
ALBEDO = 0.92
"""Share of the light that aerosol takes which it sends on: of continental aerosol, 0.9 to 0.95."""
DENSITY = 3
"""Kinds of matter: molecules, aerosol, ozone."""

LUX_PER_UNIT = 1.2 * 2.0**15
"""Illuminance of one unit of irradiance [lx], and so luminance of one unit of radiance [cd/m2], of the skies of this folder.

Chosen so that an exposure of EV 15 at ISO 100, the photographers' rule for a sunny day, leaves linear values as they are: what
1.2 x 2^EV100 cd/m2 show is white (ISO 12232, saturation; Lagarde and de Rousiers, Moving Frostbite to PBR, 2014).
"""
_LUMEN_PER_WATT = 683.0


def density(height: ArrayLike) -> Array:
    """Return how dense molecules and aerosol are at heights (...) [m], 1 at the ground, and ozone, 1 at its most: (..., 3)."""
    h = np.maximum(np.asarray(height, np.float64), 0.0)
    layer = np.maximum(1.0 - np.abs(h - _LAYER) / _LAYER_HALF, 0.0)
    return np.stack([np.exp(-h / _MOLECULES), np.exp(-h / _AEROSOL), layer], -1)


@cache
def _molecular_depth() -> Array:
    """Return the optical depth of the molecules, straight up from the sea (16,): Bodhaine and others, On Rayleigh optical depth
    calculations, 1999, equation 30."""
    square = (WAVELENGTHS * 1e-3) ** 2
    return np.asarray(
        0.0021520 * (1.0455996 - 341.29061 / square - 0.90230850 * square) / (1.0 + 0.0027059889 / square - 85.968563 * square)
    )


def extinction(turbidity: float) -> Array:
    """Return the extinction of molecules and aerosol at the ground and of ozone at its most, (3, 16) [1/m].

    Aerosol by Angstrom's law with the exponent 1.3 and the coefficient 0.04608 T - 0.04586 (Preetham, Shirley and Smits, A
    practical analytic model for daylight, 1999, appendix).

    Args:
        turbidity: What the air takes over what its molecules take: 2 very clear, 3 clear, 6 hazy.
    """
    aerosol = max(0.04608 * turbidity - 0.04586, 0.0) * (WAVELENGTHS * 1e-3) ** -1.3
    return np.stack([_molecular_depth() / _MOLECULES, aerosol / _AEROSOL, _OZONE * _OZONE_COLUMN / _LAYER_HALF])


# ---- What a path out of the air holds: a table by height and direction ------------------------------------------------------
#
# Heights and directions are spaced as in Bruneton and Neyret 2008, section 4: by the distance to the horizon and to the top.

_HEIGHTS, _SLOPES, _STEPS = 48, 128, 400
_REACH = float(np.sqrt(TOP**2 - RADIUS**2))


def to_top(radius: ArrayLike, cosine: ArrayLike) -> Array:
    """Return the distance to the end of the air [m] from a distance to the Earth's centre [m] in a direction by its cosine with
    the vertical."""
    r, mu = np.asarray(radius, np.float64), np.asarray(cosine, np.float64)
    return np.asarray(-r * mu + np.sqrt(np.maximum(r * r * (mu * mu - 1.0) + TOP * TOP, 0.0)))


def meets_ground(radius: ArrayLike, cosine: ArrayLike) -> Array:
    """Tell whether a ray meets the ground."""
    r, mu = np.asarray(radius, np.float64), np.asarray(cosine, np.float64)
    return np.asarray((mu < 0.0) & (r * r * (mu * mu - 1.0) + RADIUS * RADIUS >= 0.0))


@cache
def _columns() -> Array:
    """Return the table, (_HEIGHTS, _SLOPES, 3) [m]."""
    horizon = np.linspace(0.0, 1.0, _HEIGHTS)[:, None] * _REACH
    r = np.sqrt(horizon**2 + RADIUS**2)
    near, far = TOP - r, horizon + _REACH
    d = near + np.linspace(0.0, 1.0, _SLOPES)[None] * (far - near)
    mu = np.clip((_REACH**2 - horizon**2 - d * d) / np.maximum(2.0 * r * d, 1e-9), -1.0, 1.0)
    # Squares: air is dense where the path begins.
    edges = np.linspace(0.0, 1.0, _STEPS + 1) ** 2
    middle, width = 0.5 * (edges[1:] + edges[:-1]), edges[1:] - edges[:-1]
    total = np.zeros((_HEIGHTS, _SLOPES, DENSITY))
    for share, part in zip(middle, width, strict=True):
        s = d * share
        height = np.sqrt(r * r + s * s + 2.0 * r * s * mu) - RADIUS
        total += density(height) * (d * part)[..., None]
    return total


def path_columns(radius: ArrayLike, cosine: ArrayLike) -> Array:
    """Return what paths out of the air hold of each matter: metres of air as dense as at the ground (ozone: at its most).

    Args:
        radius: Where they begin, from the Earth's centre [m], (...).
        cosine: Of their angle with the vertical, (...); below the horizon that of the horizon is taken.

    Returns:
        (..., 3) [m].
    """
    r = np.clip(np.asarray(radius, np.float64), RADIUS, TOP)
    horizon = np.sqrt(np.maximum(r * r - RADIUS * RADIUS, 0.0))
    mu = np.maximum(np.asarray(cosine, np.float64), -horizon / r)
    near, far = TOP - r, horizon + _REACH
    x = np.clip(horizon / _REACH, 0.0, 1.0) * (_HEIGHTS - 1)
    y = np.clip((to_top(r, mu) - near) / np.maximum(far - near, 1e-9), 0.0, 1.0) * (_SLOPES - 1)
    i, j = np.minimum(x.astype(int), _HEIGHTS - 2), np.minimum(y.astype(int), _SLOPES - 2)
    a, b = (x - i)[..., None], (y - j)[..., None]
    table = _columns()
    low = table[i, j] + (table[i, j + 1] - table[i, j]) * b
    high = table[i + 1, j] + (table[i + 1, j + 1] - table[i + 1, j]) * b
    return np.asarray(low + (high - low) * a)


def transmittance(columns: Array, taken: Array) -> Array:
    """Return the share of light (..., 16) that passes columns (..., 3) [m] of matter with extinctions (3, 16) [1/m]."""
    depth = columns[..., 0:1] * taken[0] + columns[..., 1:2] * taken[1] + columns[..., 2:3] * taken[2]
    return np.asarray(np.exp(-depth))


# ---- From wavelengths to colours --------------------------------------------------------------------------------------------

# IEC 61966-2-1, from XYZ.
_SRGB = np.array([[3.2406, -1.5372, -0.4986], [-0.9689, 1.8758, 0.0415], [0.0557, -0.2040, 1.0570]])
# Wyman, Sloan and Shirley, Simple analytic approximations to the CIE XYZ color matching functions, 2013: weight, middle [nm],
# and one over the width below and above it.
_LOBES = (
    ((0.362, 442.0, 0.0624, 0.0374), (1.056, 599.8, 0.0264, 0.0323), (-0.065, 501.1, 0.0490, 0.0382)),
    ((0.821, 568.8, 0.0213, 0.0247), (0.286, 530.9, 0.0613, 0.0322)),
    ((1.217, 437.0, 0.0845, 0.0278), (0.681, 459.0, 0.0385, 0.0725)),
)


@cache
def _rgb_weights() -> Array:
    """Return (16, 3): linear RGB in our units of a spectrum per nanometre [W/m2/nm]."""
    # Finer than the bands, whose light is taken as even within them.
    fine = (WAVELENGTHS[:, None] + np.arange(-9.5, 10.0)[None]).reshape(-1)
    xyz = []
    for lobes in _LOBES:
        total = np.zeros_like(fine)
        for weight, middle, below, above in lobes:
            off = (fine - middle) * np.where(fine < middle, below, above)
            total += weight * np.exp(-0.5 * off * off)
        xyz.append(total.reshape(len(WAVELENGTHS), -1).sum(1))
    return np.asarray(np.einsum("wx,cx->wc", np.stack(xyz, -1), _SRGB) * (_LUMEN_PER_WATT / LUX_PER_UNIT))


def rgb_of(spectrum: ArrayLike) -> Array:
    """Return linear RGB (..., 3), in the renderer's units, of spectra (..., 16) [W/m2/nm, or per steradian].

    Colours that sRGB cannot show (the deepest reds of a low sun) lose their negative part.
    """
    return np.maximum(np.einsum("...w,wc->...c", np.asarray(spectrum, np.float64), _rgb_weights()), 0.0)


_DISC = 0.00465
"""Half angle of the sun [rad]."""


def sun_irradiance(elevation: float, turbidity: float) -> Array:
    """Return the irradiance (3,) of a surface that faces the sun, in the renderer's units; the part of the disc that has set
    gives none, and the air bends no light.

    Args:
        elevation: Of the sun's middle above the horizon [rad].
        turbidity: Of the air.
    """
    above = min(max(elevation / _DISC, -1.0), 1.0)
    # Share of a disc above a line through it.
    share = 0.5 + (above * np.sqrt(1.0 - above * above) + np.arcsin(above)) / np.pi
    passed = transmittance(path_columns(RADIUS, np.sin(max(elevation, 0.0))), extinction(turbidity))
    return rgb_of(SOLAR * passed) * share
