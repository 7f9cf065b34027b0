"""What is handed to COLMAP, as COLMAP itself has it then: cameras, and what a pair must share; and options on their way."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.capture.video.film_building import textured_picture

from airworthy.capture import CaptureVideoOptions
from airworthy.capture.alignment.align import AlignOptions
from airworthy.capture.video.colmap_process import STEPS

WIDTH, HEIGHT, FOCAL = 120, 80, 100.0


@pytest.mark.parametrize("model", ["SIMPLE_PINHOLE", "PINHOLE", "SIMPLE_RADIAL", "RADIAL", "OPENCV"])
def test_a_camera_begins_at_its_focal_length_and_in_the_middle(model: str, tmp_path: Path) -> None:
    """A picture wider than high: its centre is (60, 40), in pixels right and down."""
    pycolmap = pytest.importorskip("pycolmap")
    Image.fromarray(textured_picture(WIDTH, HEIGHT)).save(tmp_path / "a.jpg")
    group = {"names": ["a.jpg"], "model": model, "width": WIDTH, "height": HEIGHT, "focal": FOCAL}
    order = {"database": str(tmp_path / "d.db"), "images": str(tmp_path), "masks": "", "groups": [group]}
    found = STEPS["features"]({**order, "features": 300, "threads": 1}, lambda done, total: None)
    assert found["cameras"] == 1
    with pycolmap.Database.open(order["database"]) as database:
        (camera,) = database.read_all_cameras()
    assert camera.model.name == model
    assert (camera.width, camera.height) == (WIDTH, HEIGHT)
    assert (camera.principal_point_x, camera.principal_point_y) == (60.0, 40.0)
    assert (camera.focal_length_x, camera.focal_length_y) == (FOCAL, FOCAL)
    assert all(value == 0.0 for value in [camera.params[k] for k in camera.extra_params_idxs()])


def test_a_pair_of_pictures_must_share_thirty_matches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With COLMAP's own 15, carpets that repeat placed pictures of a hall metres off."""
    pycolmap = pytest.importorskip("pycolmap")
    asked: list[Any] = []

    def mapping(database: str, images: str, out: Path, options: Any, *_: Any) -> dict[int, Any]:
        asked.append(options)
        return {}

    monkeypatch.setattr(pycolmap, "incremental_mapping", mapping)
    order = {"database": "", "images": "", "out": str(tmp_path), "mapper": "incremental", "count": 2, "threads": 1, "seed": 7}
    assert STEPS["mapping"](order, lambda done, total: None) == {"models": []}
    (options,) = asked
    assert options.min_num_matches == 30
    assert (options.num_threads, options.mapper.num_threads) == (1, 1)
    assert (options.random_seed, options.mapper.random_seed) == (7, 7)
    assert options.multiple_models


GIVEN: dict[str, Any] = {
    "side": 0.2,
    "markers": ("3", "5:0.3"),
    "dictionary": "apriltag_36h11",
    "marker_on": "wall",
    "known_distance": (("1,2,3", "4,5,6", 2.5),),
    "seed": 9,
}


def test_what_is_said_of_the_scale_reaches_the_alignment() -> None:
    found = CaptureVideoOptions(**GIVEN).aligning()
    assert {name: getattr(found, name) for name in GIVEN} == GIVEN
    # All that both have, and none of it at its default, so that nothing can be left behind.
    shared = {item.name for item in fields(AlignOptions)} & {item.name for item in fields(CaptureVideoOptions)}
    assert shared == set(GIVEN)
    assert all(getattr(AlignOptions(), name) != value for name, value in GIVEN.items())
    without = CaptureVideoOptions(**GIVEN).aligning(unscaled=True)
    assert (without.known_distance, without.marker_on) == ((), "wall")
