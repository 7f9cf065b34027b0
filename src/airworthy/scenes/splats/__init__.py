"""Gaussian splats: one internal form, readers and writers of every container, editing."""

from airworthy.scenes.splats.record import Splats

__all__ = ["Splats"]
