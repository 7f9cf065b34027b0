"""Films of scenes: the walk is free, the same for the same seed, the truth belongs to the pictures, rows have their times."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.capture.video.film_building import patterned_room

from airworthy.capture import detect_marker
from airworthy.capture.filming import film
from airworthy.capture.filming.film import FilmOptions, film_rig, film_scene, render_film
from airworthy.capture.filming.walk import HandWalk, find_loop
from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.geometry import Box
from airworthy.geometry.distance import clearance
from airworthy.scenes import Instance, Region, Scene, SceneBatch

SMALL = FilmOptions(
    seconds=4.0, rate=2.0, width=96, height=64, shutter=0.0, noise=0.0, marker_side=0.0, exposure_drift=0.0,
    white_drift=0.0,
)  # fmt: skip


@pytest.fixture(autouse=True)
def lamps_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Light that walls throw back takes half a minute to compute, and nothing here is about it."""
    monkeypatch.setattr(film, "use_baked", lambda batch: None)


@pytest.fixture(scope="module")
def room() -> Scene:
    return patterned_room()


def test_the_walk_keeps_from_everything_and_ends_where_it_began(room: Scene) -> None:
    batch = SceneBatch(room)
    walk = HandWalk(find_loop(batch), 30.0, seed=3)
    position, attitude = walk.poses(np.linspace(0.0, 30.0, 900))
    distance = clearance(batch.geometry, position, np.zeros(900, np.int32), 1.0).distance
    # The loop keeps 0.25 m; hand and steps take three deviations of 6 mm and 1 cm of it.
    assert distance.min() > 0.2
    assert np.linalg.norm(position[0, :2] - position[-1, :2]) < 0.08
    assert position[:, 2].min() > 1.1
    assert position[:, 2].max() < 1.9
    assert np.allclose(np.linalg.norm(attitude, axis=1), 1.0)
    # Turning slowly: a hand's rate, not a drone's.
    angle = frames.angle_between(attitude[1:], attitude[:-1]) * 30.0
    assert np.percentile(angle, 95) < 1.5


def test_a_full_room_is_told() -> None:
    scene = Scene("full", shapes={"b": Box((2.0, 2.0, 2.0))}, instances=(Instance("b", (0.0, 0.0, 1.0)),),
                  bounds=Region((-2.0, -2.0, 0.0), (2.0, 2.0, 3.0)))  # fmt: skip
    with pytest.raises(AirworthyError, match=r"'full' has hardly free room at 1.5 m"):
        find_loop(SceneBatch(scene))


def test_the_same_options_give_the_same_pictures(room: Scene) -> None:
    noisy = replace(SMALL, noise=1.0, shutter=0.02, exposures=2, seconds=1.0)
    first, again = list(film_scene(room, noisy)), list(film_scene(room, noisy))
    other = list(film_scene(room, replace(noisy, seed=1)))
    assert len(first) == 2
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[1], other[1])


def test_every_row_of_a_rolling_shutter_has_its_own_time(room: Scene) -> None:
    """Row r of a rolling frame at t is row r of an instant at t + readout ((r + 1/2) / h - 1/2)."""
    from airworthy.capture.filming.film import _Camera

    rolling = replace(SMALL, readout=0.05)
    camera, instant = _Camera(film_rig(room, rolling), rolling), _Camera(film_rig(room, SMALL), SMALL)
    found = camera._light(1.0)
    for row in (0, 20, 63):
        expected = instant._light(1.0 + 0.05 * ((row + 0.5) / 64 - 0.5))[row]
        # The same rays, traced in another order.
        assert np.abs(found[row] - expected).max() < 1e-3 * expected.max()


@pytest.mark.slow
def test_the_marker_is_where_the_truth_says(room: Scene, tmp_path: Path) -> None:
    pytest.importorskip("cv2")
    # Without the boxes, which stand before it.
    room = replace(room, instances=room.instances[:6])
    options = replace(SMALL, width=480, height=320, marker_side=0.4, seconds=6.0, rate=1.5, samples=2, quality=95)
    truth = json.loads(render_film(room, tmp_path / "film", options).read_text())
    assert len(truth["times"]) == 9
    marker, side = truth["marker"], truth["marker"]["side"]
    corners = 0.5 * side * np.array([[-1, 1, 0], [1, 1, 0], [1, -1, 0], [-1, -1, 0]])
    world = frames.rotate(np.array(marker["attitude"]), corners) + np.array(marker["position"])
    seen = 0
    for k in range(9):
        with Image.open(tmp_path / "film" / "frames" / f"{k:05d}.jpg") as image:
            found = detect_marker(np.asarray(image))
        if found is None:
            continue
        eye = frames.rotate_inverse(np.array(truth["attitude"][k]), world - np.array(truth["position"][k]))
        fx, fy, cx, cy = truth["intrinsics"]
        expected = np.stack((fx * eye[:, 0] / eye[:, 2] + cx, fy * eye[:, 1] / eye[:, 2] + cy), axis=1)
        assert np.abs(found - expected).max() < 1.0
        seen += 1
    assert seen >= 2


def test_a_folder_goes_on_and_belongs_to_one_film(room: Scene, tmp_path: Path) -> None:
    options = replace(SMALL, seconds=1.0)
    render_film(room, tmp_path, options)
    first = tmp_path / "frames" / "00000.jpg"
    before, data = first.stat().st_mtime_ns, first.read_bytes()
    (tmp_path / "frames" / "00001.jpg").unlink()
    render_film(room, tmp_path, options)
    assert (first.stat().st_mtime_ns, first.read_bytes()) == (before, data)
    assert (tmp_path / "frames" / "00001.jpg").exists()
    with pytest.raises(AirworthyError, match="holds another film"):
        render_film(room, tmp_path, replace(options, seed=5))


def test_the_marker_lies_on_floor_that_the_walk_sees(room: Scene) -> None:
    """Neither on a table over the middle of the floor nor under it."""
    room = replace(room, instances=room.instances[:6])
    options = replace(SMALL, seconds=20.0, rate=1.0, width=320, height=180, marker_side=0.2)
    bare = film_rig(room, options).marker
    assert bare is not None
    x, y, z = bare["position"]
    table = Instance("table", (x, y, 0.75), materials=("m0",))
    full = replace(room, shapes={**room.shapes, "table": Box((0.4, 0.4, 0.01))}, instances=(*room.instances, table))
    moved = film_rig(full, options).marker
    assert moved is not None
    assert max(abs(moved["position"][0] - x), abs(moved["position"][1] - y)) > 0.4
    assert moved["position"][2] == pytest.approx(z, abs=1e-4)
