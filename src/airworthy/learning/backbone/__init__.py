"""Backbones: what of seeing is the same in all places, pre-trained on images that are drawn, without any foreign weights."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.learning.backbone.config import BackboneOptions
    from airworthy.learning.backbone.probe import ProbeOptions, probe_backbone
    from airworthy.learning.backbone.run import train_backbone
    from airworthy.learning.backbone.sources import backbone_weights
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["BackboneOptions", "ProbeOptions", "backbone_weights", "probe_backbone", "train_backbone"]
