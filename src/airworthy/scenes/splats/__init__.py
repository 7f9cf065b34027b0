"""Gaussian splats: one internal form, readers and writers of every container, editing."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.scenes.splats.capture_frame import SourceFrame
    from airworthy.scenes.splats.editing import (
        EditBox,
        brightened,
        cropped,
        deleted,
        duplicated,
        levels_of_detail,
        merged,
        recolored,
        selected,
        thinned,
        transformed,
    )
    from airworthy.scenes.splats.read import SPLAT_LIMITS, SPLAT_SUFFIXES, LoadedSplats, read_splats
    from airworthy.scenes.splats.record import Splats
    from airworthy.scenes.splats.write import write_splats
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "SPLAT_LIMITS",
    "SPLAT_SUFFIXES",
    "EditBox",
    "LoadedSplats",
    "SourceFrame",
    "Splats",
    "brightened",
    "cropped",
    "deleted",
    "duplicated",
    "levels_of_detail",
    "merged",
    "read_splats",
    "recolored",
    "selected",
    "thinned",
    "transformed",
    "write_splats",
]
