"""Training of Gaussian splats from images."""

from airworthy.splats.training.geometry_loss import GeometryLoss, SurfaceImages
from airworthy.splats.training.image_loss import ImageLoss
from airworthy.splats.training.optimizer import Rates, SplatOptimizer

__all__ = ["GeometryLoss", "ImageLoss", "Rates", "SplatOptimizer", "SurfaceImages"]
