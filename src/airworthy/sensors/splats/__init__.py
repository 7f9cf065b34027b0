"""Images of Gaussian splats."""

from airworthy.sensors.splats.renderer import SplatRenderer

__all__ = ["SplatRenderer"]
