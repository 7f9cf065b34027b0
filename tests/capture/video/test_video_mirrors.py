"""Mirrors in reconstructions: against rooms drawn with one, and what only looks like one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.capture.video.film_building import textured_picture

from airworthy.capture.video.advice import judged_reconstruction
from airworthy.capture.video.colmap_process import STEPS
from airworthy.capture.video.mirrors import (
    MirrorPlane,
    find_mirror,
    mirror_matches,
    mirror_record,
    mirror_walls,
    mirrored_descriptors,
)
from airworthy.core.arrays import Array, ArrayInt
from airworthy.scenes.splats.capture_frame import SourceFrame

NORMAL, OFFSET = np.array([0.6, 0.8, 0.0]), -3.0
"""The room lies where NORMAL @ x > OFFSET."""


def image_of(points: Array) -> Array:
    return np.asarray(points - 2.0 * (points @ NORMAL - OFFSET)[:, None] * NORMAL)


def room(rng: np.random.Generator, count: int) -> Array:
    """Points (count, 3) all over a room of 8 m before the plane."""
    places = rng.uniform(-4.0, 4.0, (8 * count, 3))
    return places[places @ NORMAL > OFFSET + 0.2][:count]


def mixed(rng: np.random.Generator, real: Array, behind: Array, wrong: int) -> tuple[Array, ArrayInt]:
    """Points before and behind, and pairs of them, in any order, with wrong ones among them."""
    points = np.concatenate([real, behind])
    pairs = np.stack((np.arange(len(behind)), len(real) + np.arange(len(behind))), axis=1)
    pairs = np.concatenate([pairs, rng.integers(0, len(points), (wrong, 2))])
    return points, np.where(rng.random((len(pairs), 1)) < 0.5, pairs, pairs[:, ::-1])[rng.permutation(len(pairs))]


@pytest.mark.parametrize("seed", range(5))
def test_a_mirror_is_found_among_wrong_pairs(seed: int) -> None:
    """30 points of 400 are seen in it, each within 3 cm; 200 pairs are wrong."""
    rng = np.random.default_rng(seed)
    real = room(rng, 400)
    behind = image_of(real[:30]) + rng.normal(0.0, 0.03, (30, 3))
    points, pairs = mixed(rng, real, behind, 200)
    found = find_mirror(points, pairs, room(rng, 20))
    assert found is not None
    assert found.believed
    assert len(found.pairs) >= 28
    assert np.degrees(np.arccos(found.normal @ NORMAL)) < 0.3
    assert found.offset == pytest.approx(OFFSET, abs=0.03)
    # The points behind it come first.
    assert (points[found.pairs[:, 0]] @ NORMAL < OFFSET).all()
    assert (points[found.pairs[:, 1]] @ NORMAL > OFFSET).all()


@pytest.mark.parametrize("seed", range(5))
def test_wrong_pairs_have_no_plane(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, pairs = mixed(rng, room(rng, 400), np.zeros((0, 3)), 300)
    found = find_mirror(points, pairs, room(rng, 20))
    assert found is None or not found.believed
    assert find_mirror(points, np.zeros((0, 2), np.int64), points[:5]) is None


def test_what_is_alike_on_both_sides_of_a_way_is_no_mirror() -> None:
    """A hall whose halves are each other's mirror images: the camera walks through both of them."""
    rng = np.random.default_rng(1)
    real = room(rng, 200)
    points, pairs = mixed(rng, real, image_of(real), 50)
    assert find_mirror(points, pairs, np.concatenate([real[:10], image_of(real[:10])])) is None


def test_what_is_alike_on_both_sides_at_the_end_of_a_room_is_no_mirror() -> None:
    """A cupboard with two doors, 1 m wide, at the end of a room in which the camera keeps 2 m and more from its middle."""
    rng = np.random.default_rng(2)
    real = room(rng, 400)
    side = np.array([0.8, -0.6, 0.0])
    door = OFFSET * NORMAL + rng.uniform(0.05, 0.5, (60, 1)) * NORMAL + 3.0 * side + rng.uniform(0.0, 2.0, (60, 1)) * [0, 0, 1]
    points, pairs = mixed(rng, np.concatenate([door, real]), np.zeros((0, 3)), 0)
    points = np.concatenate([points, image_of(door)])
    pairs = np.stack((np.arange(60), len(points) - 60 + np.arange(60)), axis=1)
    cameras = real[real @ NORMAL > OFFSET + 2.0][:20]
    assert find_mirror(points, pairs, cameras) is None


def test_mirror_images_are_matched_and_what_is_its_own_is_not() -> None:
    rng = np.random.default_rng(0)
    own = rng.gamma(0.6, 20.0, (60, 128)).astype(np.float32)
    turned = mirrored_descriptors(own[:25]) + rng.normal(0.0, 2.0, (25, 128)).astype(np.float32)
    alike = own[:5] + mirrored_descriptors(own[:5])
    pairs = mirror_matches(np.concatenate([own, 3.0 * turned, alike]))
    # What is alike on both sides is between both, and takes the surest away from some of those that it was made of.
    assert {tuple(pair) for pair in pairs.tolist()} >= {(k, 60 + k) for k in range(5, 25)}
    assert (pairs[:, 1] < 85).all()
    np.testing.assert_array_equal(mirrored_descriptors(mirrored_descriptors(own)), own)
    assert len(mirror_matches(own[:2])) == 0


def test_descriptors_of_a_mirrored_picture_are_mirrored_descriptors(tmp_path: Path) -> None:
    """As COLMAP finds them in a picture and in its mirror image, at the same places."""
    pycolmap = pytest.importorskip("pycolmap")
    from scipy.spatial import cKDTree

    width = 240
    picture = textured_picture(width, 160)
    for name, pixels in (("a.png", picture), ("b.png", picture[:, ::-1])):
        Image.fromarray(np.ascontiguousarray(pixels)).save(tmp_path / name)
    group = {"names": ["a.png", "b.png"], "model": "SIMPLE_PINHOLE", "width": width, "height": 160, "focal": 200.0}
    order = {"database": str(tmp_path / "d.db"), "images": str(tmp_path), "masks": "", "groups": [group]}
    STEPS["features"]({**order, "features": 800, "threads": 1}, lambda done, total: None)
    with pycolmap.Database.open(order["database"]) as database:
        number = {image.name: image.image_id for image in database.read_all_images()}
        places = [database.read_keypoints(number[name])[:, :2] for name in group["names"]]
        found = [np.asarray(database.read_descriptors(number[name]).data, np.float32) for name in group["names"]]
    gap, same = cKDTree(np.column_stack((width - places[1][:, 0], places[1][:, 1]))).query(places[0])
    a, b = found[0].reshape(-1, 128)[gap < 0.3], found[1].reshape(-1, 128)[same[gap < 0.3]]
    assert len(a) > 100
    # All have a length of 512.
    assert np.median(np.linalg.norm(mirrored_descriptors(a) - b, axis=1)) < 80.0
    assert np.median(np.linalg.norm(a - b, axis=1)) > 250.0


def result(mirror: dict[str, Any] | None) -> dict[str, Any]:
    names = [f"{k:06d}.jpg" for k in range(20)]
    model = {"images": names, "points": 2000, "reprojection_px": 0.3}
    return {"pictures": 20, "models": [model], "pairs": {"verified": 100, "tried": 100}, "features": {}, "mirror": mirror}


def test_a_mirror_is_said_with_the_pictures_that_show_it_best() -> None:
    pairs = np.array([[100 + k, k] for k in range(15)])
    seen = [np.arange(100, 100 + k) for k in (0, 3, 15, 9, 12)]
    record = mirror_record(MirrorPlane(NORMAL, OFFSET, pairs), list("abcde"), seen)
    assert record is not None
    assert (record["pairs"], record["believed"], record["pictures"]) == (15, True, ["c", "d", "e"])
    (said,) = judged_reconstruction(result(record), {"sources": []}, []).warnings
    assert said.startswith("A mirror is in the film, or a pane that mirrors, seen in c, d, e: 15 points behind a plane")
    assert said.endswith("Cover the mirror with a cloth or paper, and film again.")
    few = mirror_record(MirrorPlane(NORMAL, OFFSET, pairs[:11]), list("abcde"), seen)
    for nothing in (None, few):
        assert judged_reconstruction(result(nothing), {"sources": []}, []).warnings == ()
    assert mirror_record(None, [], []) is None


def test_a_mirror_ends_the_place_where_it_hangs() -> None:
    """Of a reconstruction half as large as its place, turned by a quarter about z and moved."""
    source = SourceFrame("z", "", (0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)), (1.0, 2.0, 3.0), 2.0)
    record = mirror_record(MirrorPlane(NORMAL, OFFSET, np.zeros((20, 2), np.int64)), [], [])
    ((normal, offset),) = mirror_walls({"mirror": record}, source)
    np.testing.assert_allclose(normal, (-0.8, 0.6, 0.0), atol=1e-12)
    foot = OFFSET * NORMAL
    assert normal @ (2.0 * np.array([-foot[1], foot[0], foot[2]]) + (1.0, 2.0, 3.0)) == pytest.approx(offset)
    few = mirror_record(MirrorPlane(NORMAL, OFFSET, np.zeros((5, 2), np.int64)), [], [])
    assert mirror_walls({"mirror": few}, source) == mirror_walls({"mirror": None}, source) == mirror_walls({}, source) == []
