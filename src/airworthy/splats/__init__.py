"""Images of Gaussian splats and their derivatives, and the training of splats from images."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.splats.cameras import RenderRequest, Window
    from airworthy.splats.cloud import DynamicSplats
    from airworthy.splats.exposure import Exposure, render_exposed
    from airworthy.splats.lens import Lens
    from airworthy.splats.policy_view import PolicyView
    from airworthy.splats.projected import render_projection
    from airworthy.splats.renderer import Gradients, PoseGradients, SplatRenderer
    from airworthy.splats.training import GeometryLoss, ImageLoss, Rates, SplatOptimizer, SurfaceImages
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "DynamicSplats", "Exposure", "GeometryLoss", "Gradients", "ImageLoss", "Lens", "PolicyView", "PoseGradients", "Rates",
    "RenderRequest", "SplatOptimizer", "SplatRenderer", "SurfaceImages", "Window", "render_exposed", "render_projection",
]  # fmt: skip
