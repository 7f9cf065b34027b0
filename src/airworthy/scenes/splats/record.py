"""The one internal form of Gaussian splats: activated values, metres, quaternions x, y, z, w."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError

Floats = NDArray[np.floating[Any]]
COEFFICIENTS = (1, 4, 9, 16)
"""Spherical harmonics per colour channel, by degree."""


@dataclass(frozen=True, eq=False)
class Splats:
    """Gaussians in the frame of a scene: z up, metres.

    Raises:
        AirworthyError: If shapes do not fit.
    """

    position: Floats
    """Means, (n, 3) [m], float32."""
    rotation: Floats
    """Unit quaternions x, y, z, w, local to world, (n, 4), float32."""
    scale: Floats
    """Standard deviations along the local axes, (n, 3) [m], > 0, float32."""
    opacity: Floats
    """In [0, 1], (n,), float32."""
    harmonics: Floats
    """Coefficients of the colour, (n, k, 3), k of `COEFFICIENTS`, float32, in the order and signs of 3DGS: the colour seen from
    direction d is 0.5 + sum of harmonics times the real basis at d, clamped to at least 0; sRGB-encoded, as trained."""

    def __post_init__(self) -> None:
        for name in ("position", "rotation", "scale", "opacity", "harmonics"):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), np.float32))
        n = len(self.position)
        shapes = {"position": (n, 3), "rotation": (n, 4), "scale": (n, 3), "opacity": (n,)}
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise AirworthyError(f"Splats' {name} has shape {getattr(self, name).shape}; expected {shape}.")
        k = self.harmonics.shape[1] if self.harmonics.ndim == 3 else -1
        if self.harmonics.shape != (n, k, 3) or k not in COEFFICIENTS:
            raise AirworthyError(f"Splats' harmonics have shape {self.harmonics.shape}; expected ({n}, 1, 4, 9 or 16, 3).")

    def __len__(self) -> int:
        return len(self.position)

    @property
    def degree(self) -> int:
        """Of the harmonics, 0 to 3."""
        return COEFFICIENTS.index(self.harmonics.shape[1])
