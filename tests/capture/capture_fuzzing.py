"""Hostile captures: how small valid ones of every layout are damaged.

    python tests/capture/capture_fuzzing.py [inputs per layout, default 1000] [seed] [layouts...]

reads that many damaged captures per layout and prints what came of them. Every one must load, or be refused with an AssetError
of one sentence, within two seconds.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path

import capture_building as build
import numpy as np

from airworthy.capture import CaptureImages, read_capture

_spec = importlib.util.spec_from_file_location("model_fuzzing", Path(__file__).parents[1] / "scenes" / "formats" / "fuzzing.py")
assert _spec is not None
assert _spec.loader is not None
models = importlib.util.module_from_spec(_spec)
sys.modules["model_fuzzing"] = models
_spec.loader.exec_module(models)

LAYOUTS = ("transforms", "blender", "colmap_binary", "colmap_text")
Files = build.Files


def seeds() -> dict[str, list[Files]]:
    """Valid captures of every layout."""
    text = build.colmap(2, binary=False, model="FULL_OPENCV", parameters=(10, 11, 6, 4, 0.1, 0, 0, 0, 0, 0.1, 0, 0))
    applied = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]
    fisheye = build.transforms(2, camera_model="OPENCV_FISHEYE", p1=0.0, test_filenames=["images/0.png"])
    return {
        "transforms": [build.transforms(2, applied_transform=applied), fisheye],
        "blender": [build.blender(1)],
        "colmap_binary": [build.colmap(2)],
        "colmap_text": [text],
    }


def inputs(layout: str, seed: int) -> Callable[[], Files]:
    """Endless damaged captures of a layout."""
    rng = np.random.default_rng([seed, LAYOUTS.index(layout)])
    valid = seeds()[layout]

    def draw() -> Files:
        files = valid[int(rng.integers(len(valid)))]
        models_ = [name for name in files if name.startswith(("transforms", "sparse"))]
        names = models_ if rng.integers(5) else list(files)
        name = names[int(rng.integers(len(names)))]
        data = files[name]
        if name.endswith(".json") and rng.integers(4):
            return files | {name: json.dumps(models.changed_tree(json.loads(data), rng)).encode()}
        return files | {name: models.mutated(data, rng, [data])}

    return draw


class Driver(models.PromisedReads):
    """Reads sets of files; only what changed is written."""

    message_limit = 3000

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._there: Files = {}

    def read(self, files: Files) -> str:
        """Read one input."""
        changed = {name: data for name, data in files.items() if self._there.get(name) is not data}
        build.write(self.folder, changed)
        self._there |= changed
        return str(self.promised(lambda: check(read_capture(self.folder, width=9))))

    def keep(self, files: Files) -> None:
        """Leave an input in the folder `failed`."""
        build.write(self.folder / "failed", files)


def check(images: CaptureImages) -> None:
    """What was loaded must be sound: finite, in range, consistent."""
    assert len(images)
    assert (images.sizes[:, 0] <= 9).all()
    assert (images.intrinsics[:, :2] > 0).all()
    assert np.abs(np.linalg.norm(images.attitude, axis=1) - 1).max() < 1e-9
    assert np.abs(images.position).max() < 1e8
    if images.points is not None:
        assert np.isfinite(images.points).all()
        assert images.colors is None or len(images.colors) == len(images.points)
    assert all(text.isprintable() for text in (*images.skipped, *images.notes))


def run(layout: str, count: int, seed: int, folder: Path) -> Driver:
    """Read so many damaged inputs of a layout."""
    driver = Driver(folder)
    models.fuzz(layout, driver, inputs(layout, seed), count, seed)
    return driver


if __name__ == "__main__":
    models.program(LAYOUTS, run)
