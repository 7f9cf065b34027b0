"""A contact sheet of materials: each in its own small scene, lit by the renderer, with its name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from airworthy.cli.scenes.picture_files import write_picture
from airworthy.core.arrays import ArrayU8
from airworthy.core.jobs.progress import progress
from airworthy.geometry import RayTable
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.materials.swatches import swatch

_LABEL = 18
"""Height of the line of a name [px]."""


def write_sheet(names: Sequence[str], path: Path, cell: int, columns: int, map_size: int) -> Path:
    """Write the contact sheet.

    Args:
        names: Of materials.
        path: Of the image.
        cell: Side of one picture [px].
        columns: Pictures in a row.
        map_size: Side of the maps [px].
    """
    from PIL import Image, ImageDraw

    wide = min(columns, len(names))
    sheet = Image.new("RGB", (wide * cell, -(-len(names) // wide) * (cell + _LABEL)), (250, 250, 250))
    draw = ImageDraw.Draw(sheet)
    for index, name in enumerate(progress(names, "Drawing materials")):
        x, y = index % wide * cell, index // wide * (cell + _LABEL)
        sheet.paste(Image.fromarray(picture(name, cell, map_size)), (x, y))
        draw.text((x + 4, y + cell + 3), name, fill=(40, 40, 40))
    # JPEG and WebP, so that a page can afford it; PNG takes no quality.
    return write_picture(path, sheet, quality=80)


def picture(name: str, side: int, map_size: int) -> ArrayU8:
    """Return a rendered picture (side, side, 3) of a material.

    Args:
        name: Of the material.
        side: [px].
        map_size: Side of its maps [px].
    """
    from airworthy.optics.tone import to_8bit
    from airworthy.rendering.images import render
    from airworthy.rendering.shading import ShadingOptions

    scene, view = swatch(name, map_size)
    table = RayTable(*view.rays(side, side), axis=(0.0, 0.0, 1.0))
    options = ShadingOptions(samples=4, reflections=True)
    found = render(SceneBatch(scene), table, view.position[None], view.attitude[None], channels=("rgb",), options=options)
    return np.asarray(to_8bit(found["rgb"])[0])
