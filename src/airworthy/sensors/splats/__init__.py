"""Images of Gaussian splats and their derivatives."""

from airworthy.sensors.splats.cameras import Window
from airworthy.sensors.splats.exposure import Exposure, render_exposed
from airworthy.sensors.splats.gradients import Gradients, PoseGradients
from airworthy.sensors.splats.lens import Lens
from airworthy.sensors.splats.movers import SplatMovers
from airworthy.sensors.splats.policy_view import PolicyView
from airworthy.sensors.splats.projected import render_projection
from airworthy.sensors.splats.renderer import SplatRenderer

__all__ = [
    "Exposure",
    "Gradients",
    "Lens",
    "PolicyView",
    "PoseGradients",
    "SplatMovers",
    "SplatRenderer",
    "Window",
    "render_exposed",
    "render_projection",
]
