"""A sheet of trees: every kind on a meadow by daylight, with its name and height."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from airworthy.cli.scenes.picture_files import write_picture
from airworthy.core.arrays import ArrayU8
from airworthy.core.jobs.progress import progress
from airworthy.geometry import Box
from airworthy.scenes import Instance, Scene, under_sky, weather_named, with_material
from airworthy.scenes.vegetation.kinds import Season, tree_kind
from airworthy.scenes.vegetation.planting import Planting
from airworthy.scenes.vegetation.tree import TreeForm
from airworthy.scenes.viewpoints import Viewpoint, look_at

_LABEL = 18
"""Height of the line of a name [px]."""


def write_tree_sheet(names: Sequence[str], path: Path, season: Season, seed: int, cell: int, columns: int) -> Path:
    """Write the sheet.

    Args:
        names: Of kinds.
        path: Of the image.
        season: Of the leaves.
        seed: Of the trees.
        cell: Width of one picture [px]; it is a quarter higher.
        columns: Pictures in a row.
    """
    from PIL import Image, ImageDraw

    wide, tall = min(columns, len(names)), cell * 5 // 4
    sheet = Image.new("RGB", (wide * cell, -(-len(names) // wide) * (tall + _LABEL)), (250, 250, 250))
    draw = ImageDraw.Draw(sheet)
    for index, name in enumerate(progress(names, "Growing trees")):
        x, y = index % wide * cell, index // wide * (tall + _LABEL)
        sheet.paste(Image.fromarray(_picture(name, season, seed, (cell, tall))), (x, y))
        draw.text((x + 4, y + tall + 3), f"{name}, {tree_kind(name).height:g} m", fill=(40, 40, 40))
    return write_picture(path, sheet, quality=85)


def _picture(name: str, season: Season, seed: int, size: tuple[int, int]) -> ArrayU8:
    """Return a picture (height, width, 3) of a tree that fills it, as high as it is."""
    from airworthy.cli.scenes.pictures import PictureLight, pictures

    kind = tree_kind(name)
    planting = Planting()
    planting.tree(TreeForm(name, seed, season), (0.0, 0.0, 0.0), kin=False)
    meadow = with_material(
        Scene("tree", {"meadow": Box((150.0, 150.0, 0.5))}), "snow" if season == "winter" else "grass", "ground"
    )
    ground = Instance("meadow", (0.0, 0.0, -0.5), materials=("ground",), semantic="ground")
    place = under_sky(planting.joined(replace(meadow, instances=(ground,))), weather_named("noon").sky)
    high = max(1.06 * kind.height, 1.15 * kind.spread, kind.height + 3.0)
    # From the sunny side, at the height of the eyes of someone who stands there.
    eye = np.array([-1.12 * high, 0.80 * high, 1.7])
    view = Viewpoint(eye, look_at(eye, np.array([0.0, 0.0, 0.53 * kind.height])), 0.84)
    return pictures(place, view, size, ("rgb",), light=PictureLight(samples=4, bake=False, ev=14.3))["rgb"]
