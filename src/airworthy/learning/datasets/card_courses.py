"""What a data set's card shows of its courses: their roll-outs from above, each in its own place, and what was seen."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.learning.datasets.card_pictures import WIDTH, data_uri, plan_picture, sheet, spread_pairs
from airworthy.learning.datasets.identity import scene_of
from airworthy.learning.datasets.images import ImageStack
from airworthy.learning.datasets.reader import ExpertDataset
from airworthy.learning.synthesis.clearing import cleared_for
from airworthy.learning.synthesis.config import RATE
from airworthy.scenes import Scene
from airworthy.scenes.digest import scene_digest

__all__ = ["pictures_of"]

Content = dict[str, Any]
COLUMNS = 8
IMAGES, IMAGES_EACH = 4 * COLUMNS, 2 * COLUMNS
"""On the contact sheet of the only course, and of each of several."""
SMALL = 2 * WIDTH // 3
"""Width of the pictures from above where there are several [px]."""


def pictures_of(dataset: ExpertDataset) -> Content:
    """Plans, contact sheets and one roll-out tick by tick, with what is said of them."""
    names, place = dataset.config.courses, _same_scene(dataset)
    width = WIDTH if len(names) == 1 else SMALL
    plans = []
    for name in names:
        seen = None if place is None else cleared_for(place, name, dataset.config.clear)
        plans.append({"name": name, "picture": data_uri(plan_picture(dataset, name, seen, width))})
    note = "Every roll-out that was kept, from above; dark: the course."
    found: Content = {"plans": plans, "plan_note": note, "sheets": [], "strip": "", "strip_note": "", "sheet_note": ""}
    images = dataset.images
    return found if images is None or not len(images) else found | _seen(dataset, images)


def _seen(dataset: ExpertDataset, images: ImageStack) -> Content:
    names, camera = dataset.config.courses, dataset.camera or {}
    count = IMAGES if len(names) == 1 else IMAGES_EACH
    chosen = {name: spread_pairs(dataset, count, (name,)) for name in names}
    sheets = []
    for name, pairs in chosen.items():
        if len(pairs):
            picture = sheet(images, pairs, [f"{dataset.true[k, 0]:.2f} s" for k in pairs], COLUMNS)
            note = "spread over the course, each of another roll-out; the number is the time on the course."
            note = note.capitalize() if len(names) == 1 else f"{name}: {note}"
            sheets.append({"name": name, "picture": data_uri(picture), "note": note})
    told = (
        f"{camera['width']} x {camera['height']} pixels, rendered at the true pose through the mounted camera; image, sensed"
        " state and command of a pair are of the same instant."
    )
    return {"sheets": sheets, "sheet_note": told, **_strip(dataset, images, np.concatenate(list(chosen.values())))}


def _strip(dataset: ExpertDataset, images: ImageStack, pairs: NDArray[np.int64]) -> Content:
    """Images of one roll-out from its first tick to its last."""
    row, ticks = int(pairs[len(pairs) // 2]) // dataset.config.ticks, dataset.config.ticks
    some = np.unique(np.round(np.linspace(0, ticks - 1, COLUMNS)).astype(int))
    picture = sheet(images, row * ticks + some, [f"{tick / RATE:.2f} s" for tick in some], COLUMNS)
    mass, force = dataset.parameters[row]
    note = (
        f"Roll-out {dataset.number[row]:,} from start to end: {mass:.3f} kg, {force:.2f} N per rotor, from"
        f" {dataset.start[row]:.2f} s of {dataset.course[row]}."
    )
    return {"strip": data_uri(picture), "strip_note": note}


def _same_scene(dataset: ExpertDataset) -> Scene | None:
    """The scene of the data set, if it can still be had."""
    try:
        place = scene_of(dataset.config)
    except AirworthyError:
        return None
    return place if place is not None and scene_digest(place) == dataset.identity["scene_sha256"] else None
