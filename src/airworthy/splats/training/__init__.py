"""Training of Gaussian splats from images."""

from airworthy.splats.training.image_loss import ImageLoss
from airworthy.splats.training.optimizer import Rates, SplatOptimizer

__all__ = ["ImageLoss", "Rates", "SplatOptimizer"]
