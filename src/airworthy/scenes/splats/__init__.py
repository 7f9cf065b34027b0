"""Gaussian splats: one internal form, readers and writers of every container, editing."""

from airworthy.scenes.splats.loaded import SPLAT_LIMITS, LoadedSplats, SourceFrame
from airworthy.scenes.splats.read import SPLAT_SUFFIXES, read_splats
from airworthy.scenes.splats.record import Splats
from airworthy.scenes.splats.transforming import transformed
from airworthy.scenes.splats.write import write_splats

__all__ = [
    "SPLAT_LIMITS",
    "SPLAT_SUFFIXES",
    "LoadedSplats",
    "SourceFrame",
    "Splats",
    "read_splats",
    "transformed",
    "write_splats",
]
