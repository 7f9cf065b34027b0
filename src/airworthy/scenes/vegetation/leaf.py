"""What leaves do with light: they send back about as much of it as they let through, and what passes is yellower.

PROSPECT-D (Feret, Gitelson, Noble and Jacquemoud 2017; `prosail` 2.0.5) gives a green leaf (N = 1.5, 40 ug/cm2 of chlorophyll,
8 of carotenoids, 1 of anthocyanins, 12 mg/cm2 of water, 8 of dry matter) a reflectance of 0.134 and a transmittance of 0.132 at
550 nm, 0.036 and 0.006 at 670 nm, 0.041 and 0.001 at 450 nm; in linear sRGB 0.066, 0.114, 0.034 and 0.057, 0.108, 0. Of what is
reflected 0.04 is the cuticle's gloss, which materials have by themselves: 0.026, 0.074, 0 are left, and what passes is 2.2, 1.5
and 0 times as much. A yellow leaf (2 of chlorophyll) lets 1.1, 1.1 and 0 times as much through, a brown one 0.9, 0.9 and 0.9.
"""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array
from airworthy.scenes.record import Material

__all__ = ["FOLIAGE", "FOLIAGE_MATERIAL", "both_sides"]

FOLIAGE = "foliage"
"""Name of the material of leaves, needles and blades."""
_THIN = 0.5
_TINT = (1.25, 1.15, 0.3)
"""Of what passes, over what is reflected: between a green and a yellow leaf, since one material serves all."""
FOLIAGE_MATERIAL = Material(roughness=0.7, base_color=(1.0, 1.0, 1.0, 1.0), translucency=_THIN, translucent_tint=_TINT)
"""White, since colours are those of vertices. Rougher than what has its gloss traced (`rendering`): a leaf's gloss is faint,
and its rays would cost as much as the leaf."""


def both_sides(reflectance: Array) -> Array:
    """Return the colours of vertices (n, 3) with which leaves of `FOLIAGE_MATERIAL` have a reflectance (n, 3)."""
    return np.asarray(np.clip(reflectance / (1.0 - _THIN), 0.0, 1.0))
