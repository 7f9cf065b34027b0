"""From the light that reaches a lens to the image that comes out of a camera, in physical order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.geometry import RayTable
from airworthy.sensors.noise import Draw
from airworthy.sensors.projections import Projection
from airworthy.sensors.realism.electrons import noisy, quantized
from airworthy.sensors.realism.exposure import exposed, exposure_factors, mean_luminance, next_stops
from airworthy.sensors.realism.glow import bloomed
from airworthy.sensors.realism.lens import aberrated, field_cosine, vignetted
from airworthy.sensors.realism.settings import Realism
from airworthy.sensors.tone import to_8bit

__all__ = ["Optics", "develop"]

Image = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Optics:
    """What the lens pieces need to know of a camera."""

    cosine: NDArray[np.float32]
    """Of each pixel's angle off the axis, (H, W)."""
    center: tuple[float, float]
    """Principal point (u, v) [px]."""

    @classmethod
    def of(cls, projection: Projection, table: RayTable | None = None) -> Optics:
        """Of a projection and its rays."""
        rays = projection.rays() if table is None else table
        center = (getattr(projection, "cx", 0.5 * projection.width), getattr(projection, "cy", 0.5 * projection.height))
        return cls(field_cosine(rays), (float(center[0]), float(center[1])))


def develop(
    linear: Image,
    settings: Realism,
    optics: Optics,
    stops: NDArray[np.float64] | None = None,
    interval: float = 0.0,
    draw: Draw | None = None,
) -> NDArray[Any]:
    """Images as a camera gives them: vignetting, chromatic aberration, bloom and dirt, exposure, noise, counts, tone.

    Args:
        linear: Radiance at the lens, (c, H, W, 3) float32. With every piece off it is returned as it is.
        settings: Which pieces.
        optics: Of the camera.
        stops: Exposures of the frame before [EV], (c,), NaN where a flight begins; this frame's replace them. None: first.
        interval: Time since the frame before [s].
        draw: Random numbers; None: no noise.

    Returns:
        float32, or uint8 for the output "srgb", (c, H, W, 3).
    """
    image = linear
    if settings.vignetting is not None:
        image = vignetted(image, optics.cosine, settings.vignetting.strength)
    if settings.chromatic_aberration is not None:
        image = aberrated(image, settings.chromatic_aberration.shift, optics.center)
    if settings.bloom is not None:
        image = bloomed(image, settings.bloom, settings.lens_dirt)
    factor = np.ones(len(image), np.float32)
    if settings.auto_exposure is not None:
        before = np.full(len(image), np.nan) if stops is None else stops
        now = next_stops(before, mean_luminance(image), interval, settings.auto_exposure)
        if stops is not None:
            stops[:] = now
        factor = exposure_factors(now)
        image = exposed(image, factor)
    if settings.noise is not None:
        # Less exposure is a shorter or smaller opening, more is amplification.
        image = noisy(image, settings.noise, draw, np.maximum(factor, 1.0))
    if settings.quantization is not None:
        image = quantized(image, settings.quantization)
    return to_8bit(image, curve=settings.curve) if settings.output == "srgb" else image
