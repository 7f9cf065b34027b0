"""Camera realism: each effect on its own, presets, and the chain that joins them."""

from airworthy.sensors.realism.chain import CameraChain, Frame
from airworthy.sensors.realism.options import (
    PRESETS,
    AutoExposure,
    Bloom,
    ChromaticAberration,
    DepthOfField,
    LensDirt,
    MotionBlur,
    Realism,
    RollingShutter,
    SensorNoise,
    Vignetting,
    preset,
)

__all__ = [
    "PRESETS",
    "AutoExposure",
    "Bloom",
    "CameraChain",
    "ChromaticAberration",
    "DepthOfField",
    "Frame",
    "LensDirt",
    "MotionBlur",
    "Realism",
    "RollingShutter",
    "SensorNoise",
    "Vignetting",
    "preset",
]
