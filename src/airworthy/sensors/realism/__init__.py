"""What a real camera adds to an ideal image: shutter, lens, exposure, noise; see docs/concepts/realism.md."""

from airworthy.sensors.realism.rain import RainDrops, RainStreaks
from airworthy.sensors.realism.settings import (
    REALISM,
    AutoExposure,
    Bloom,
    ChromaticAberration,
    DepthOfField,
    FixedExposure,
    LensDirt,
    MotionBlur,
    Quantization,
    Realism,
    RollingShutter,
    SensorNoise,
    Vignetting,
    realism,
)

__all__ = [
    "REALISM",
    "AutoExposure",
    "Bloom",
    "ChromaticAberration",
    "DepthOfField",
    "FixedExposure",
    "LensDirt",
    "MotionBlur",
    "Quantization",
    "RainDrops",
    "RainStreaks",
    "Realism",
    "RollingShutter",
    "SensorNoise",
    "Vignetting",
    "realism",
]
