"""Training of Gaussian splats from images."""

from airworthy.sensors.splats.training.image_loss import ImageLoss
from airworthy.sensors.splats.training.optimizer import Rates, SplatOptimizer

__all__ = ["ImageLoss", "Rates", "SplatOptimizer"]
