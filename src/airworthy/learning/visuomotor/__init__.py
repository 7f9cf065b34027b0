"""A policy that sees, for a place and a course of one's own, in minutes: frozen features, small heads, flights of its own."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.learning.visuomotor.config import VisuomotorOptions, VisuomotorProtocol
    from airworthy.learning.visuomotor.run import train_visuomotor
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["VisuomotorOptions", "VisuomotorProtocol", "train_visuomotor"]
