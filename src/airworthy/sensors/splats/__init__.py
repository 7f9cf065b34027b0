"""Images of Gaussian splats and their derivatives."""

from airworthy.sensors.splats.gradients import Gradients, PoseGradients
from airworthy.sensors.splats.renderer import SplatRenderer

__all__ = ["Gradients", "PoseGradients", "SplatRenderer"]
