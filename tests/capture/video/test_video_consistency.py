"""Whether a reconstruction is one place, by drawn rooms whose points and lines of sight are known."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.capture.video.test_video_parts import advice, model

from airworthy.capture.video.consistency import (
    Contradictions,
    SplitByContradictions,
    ThinCut,
    consistency_record,
    contradictions,
    split_by_contradictions,
    thinnest_cut,
)

PICTURES, WALL, BOARD = 40, 1500, 200
WALLS, FIRST, SECOND = slice(0, WALL), slice(WALL, WALL + BOARD), slice(WALL + BOARD, WALL + 2 * BOARD)


def board_of(side: float) -> tuple[float, tuple[float, float], tuple[float, float]]:
    """A board across the room: its x, and where it begins and ends in y and in z [m]."""
    return side, (-1.0, 1.0), (0.5, 2.5)


def drawn_rooms(second: np.ndarray, seed: int = 0, found: float = 0.6) -> Contradictions:
    """Contradictions of pictures of one hall with one of two boards, each of which finds a share of what is in view.

    Cameras sweep along y four times, two metres to each side, before a wall of points at x = 6 m; boards stand at x = 1.5 or
    at x = 3 m, and hide what is behind them. A camera sees 90 degrees.

    Args:
        second: Pictures in which the second board stands instead of the first, (PICTURES,).
        seed: Of the drawing.
        found: Share of points in view that a picture finds.
    """
    rng = np.random.default_rng(seed)
    wall = np.stack((np.full(WALL, 6.0), rng.uniform(-5, 5, WALL), rng.uniform(0, 3, WALL)), axis=1)
    boards = [board_of(1.5), board_of(3.0)]
    parts = [np.stack((np.full(BOARD, x), rng.uniform(*y, BOARD), rng.uniform(*z, BOARD)), axis=1) for x, y, z in boards]
    points = np.concatenate([wall, *parts])
    centres = np.stack(
        (np.full(PICTURES, -1.0), 2.0 * np.sin(np.linspace(0, 8 * np.pi, PICTURES)), np.full(PICTURES, 1.5)), axis=1
    )

    def project(k: int) -> tuple[np.ndarray, np.ndarray]:
        eye = points - centres[k]
        pixels = 0.5 * eye[:, 1:] / eye[:, :1]
        return np.where((np.abs(pixels) < 0.5).all(axis=1)[:, None], pixels, np.nan), eye[:, 0]

    picture, point = [], []
    for k in range(PICTURES):
        pixels, _ = project(k)
        there = np.ones(len(points), bool)
        there[FIRST if second[k] else SECOND] = False
        x, y, z = boards[int(second[k])]
        share = (x - centres[k, 0]) / (points[:, 0] - centres[k, 0])
        hit = centres[k] + share[:, None] * (points - centres[k])
        hidden = (share < 1.0 - 1e-9) & (hit[:, 1] > y[0]) & (hit[:, 1] < y[1]) & (hit[:, 2] > z[0]) & (hit[:, 2] < z[1])
        seen = np.flatnonzero(there & ~hidden & np.isfinite(pixels[:, 0]) & (rng.uniform(size=len(points)) < found))
        picture.append(np.full(len(seen), k))
        point.append(seen)
    return contradictions(centres, points, np.concatenate(picture), np.concatenate(point), project)


def test_one_room_does_not_contradict_itself() -> None:
    for seed in range(3):
        found = drawn_rooms(np.zeros(PICTURES, bool), seed)
        split = split_by_contradictions(found)
        # What is looked through by chance: edges of the board where they were not found.
        assert found.through.sum() < 0.01 * found.seen.sum()
        assert split is None or not split.contradictory


@pytest.mark.parametrize("order", ["one after the other", "there and back", "by turns"])
def test_two_rooms_in_one_are_told_apart(order: str) -> None:
    number = np.arange(PICTURES)
    second = {
        "one after the other": number >= 23,
        "there and back": (number >= 12) & (number < 27),
        "by turns": number % 2 == 1,
    }[order]
    found = drawn_rooms(second)
    split = split_by_contradictions(found)
    assert split is not None
    assert np.array_equal(split.first, ~second)
    assert split.contradictory
    assert split.points <= 2 * BOARD
    # Walls stand in both rooms: only boards are looked through, and only from where they do not stand.
    i, _, which = found.events.T
    across = second[i] != second[found.events[:, 1]]
    assert (which[across] >= WALL).all()
    assert across.mean() > 0.9


def looked_at(front: list[float], behind: float) -> Contradictions:
    """Four pictures from one place; three have one point in their middle, the last has others about it instead.

    Args:
        front: Depths of what the last one sees beside the line.
        behind: How far beside the line that is, in shares of the width.
    """
    depth = np.array([2.0, *front])
    pixels = np.array([[0.0, 0.0], *[[behind, 0.0]] * len(front)])
    points = np.concatenate((pixels * depth[:, None], depth[:, None]), axis=1)
    picture, point = np.array([0, 1, 2, *[3] * len(front)]), np.array([0, 0, 0, *range(1, len(depth))])
    return contradictions(np.zeros((4, 3)), points, picture, point, lambda k: (pixels, depth))


@pytest.mark.parametrize(
    ("front", "beside", "expected"),
    [
        ([4.0], 0.004, 1.0),  # A wall behind the point: it is looked through.
        ([2.1], 0.004, 0.0),  # Its own surface.
        ([1.0], 0.004, 0.0),  # Something before it hides it.
        ([4.0, 1.0], 0.004, 0.0),  # An edge: one sees past it, or not.
        ([4.0], 0.02, 0.0),  # Too far beside the line.
    ],
)
def test_a_point_is_looked_through_where_all_lies_behind_it(front: list[float], beside: float, expected: float) -> None:
    through = looked_at(front, beside).through
    assert through[3].tolist() == [expected, expected, expected, 0.0]
    assert through[:3].sum() == 0.0


def test_a_point_of_two_pictures_is_not_believed() -> None:
    pixels, depth = np.array([[0.0, 0.0], [0.004, 0.0]]), np.array([2.0, 4.0])
    points = np.concatenate((pixels * depth[:, None], depth[:, None]), axis=1)
    found = contradictions(
        np.zeros((3, 3)), points, np.array([0, 1, 2]), np.array([0, 0, 1]), lambda k: (pixels, depth)
    )  # fmt: skip
    assert found.through.sum() == 0.0


def chain(bridge: int, last: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Observations of pictures each of which shares 100 points with the next but the tenth, which shares so many."""
    picture, point, number = [], [], 0
    for k in range(last - 1):
        count = bridge if k == 9 else 100
        for one in (k, k + 1):
            picture.append(np.full(count, one))
            point.append(number + np.arange(count))
        number += count
    return np.concatenate(picture), np.concatenate(point)


@pytest.mark.parametrize(("bridge", "thin"), [(5, True), (17, True), (18, False), (60, False)])
def test_the_thinnest_cut_is_where_fewest_are_shared(bridge: int, thin: bool) -> None:
    cut = thinnest_cut(20, *chain(bridge))
    assert cut is not None
    assert np.array_equal(cut.first, np.arange(20) < 10)
    # Nine links of 100 points on each side; what only one picture of a side sees is not counted as the side's own.
    assert (cut.shared, cut.fewest, cut.thin) == (bridge, 900, thin)


def test_the_thinnest_cut_is_found_in_any_order() -> None:
    picture, point = chain(5)
    mixed = np.random.default_rng(0).permutation(20)
    cut = thinnest_cut(20, mixed[picture], point)
    assert cut is not None
    assert cut.shared == 5
    assert set(np.flatnonzero(cut.first == cut.first[mixed[0]])) == set(mixed[:10])


def test_few_pictures_have_no_parts() -> None:
    nothing = np.zeros((5, 5))
    assert split_by_contradictions(Contradictions(nothing, nothing + 1.0, np.zeros((0, 3), np.int64))) is None
    assert split_by_contradictions(Contradictions(np.ones((40, 40)), np.zeros((40, 40)), np.zeros((0, 3), np.int64))) is None
    assert thinnest_cut(5, *chain(5, last=5)) is None
    assert thinnest_cut(10, np.zeros(0, np.int64), np.zeros(0, np.int64)) is None


# ---- A reconstruction of COLMAP ---------------------------------------------------------------------------------------------


def test_points_are_projected_as_colmap_does_and_a_drawn_model_is_one_place(tmp_path: Path) -> None:
    pycolmap = pytest.importorskip("pycolmap")
    from airworthy.capture.video.colmap_process import STEPS, _observed, _projected

    pycolmap.set_random_seed(0)
    plan = pycolmap.SyntheticDatasetOptions(num_rigs=1, num_frames_per_rig=12, num_points3D=300, num_points2D_without_point3D=0)
    drawn = pycolmap.synthesize_dataset(plan)
    drawn.write_binary(str(tmp_path))
    names = sorted(image.name for image in drawn.images.values())
    points = np.array([drawn.point3D(k).xyz for k in sorted(drawn.points3D)])
    row = {k: n for n, k in enumerate(sorted(drawn.points3D))}
    for image in drawn.images.values():
        shares, depth = _projected(drawn, image, points)
        width = drawn.camera(image.camera_id).width
        _, pixels, _, own_depth = _observed(drawn, image)
        rows = [row[p.point3D_id] for p in image.points2D if p.has_point3D()]
        inside = np.isfinite(shares[rows, 0])
        assert inside.sum() > 20
        np.testing.assert_allclose(shares[rows][inside] * width, pixels[inside], atol=1e-9)
        np.testing.assert_allclose(depth[rows], own_depth)
        # A rim of 4 % of the width is left out, and nothing else.
        rim = 0.04 * width
        height = drawn.camera(image.camera_id).height
        there = ((pixels > rim) & (pixels < np.array([width, height]) - rim)).all(axis=1)
        assert np.array_equal(inside, there)
    record = STEPS["consistency"]({"model": str(tmp_path), "names": names}, lambda done, total: None)
    # Every camera sees every point in its view: nothing is looked through, and nothing is thin.
    assert record["split"] is None
    assert record["cut"] is None or not record["cut"]["thin"]


# ---- What is said -----------------------------------------------------------------------------------------------------------


def record_of(first: np.ndarray, points: int = 221, shared: int = 5000) -> dict[str, Any]:
    names = [f"{k:06d}.jpg" for k in range(60)]
    return consistency_record(names, SplitByContradictions(first, points, 0.042, 0.002), ThinCut(first, shared, 9000))


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (np.arange(60) < 30, r"pictures of 0 to 14 s look through things of pictures of 15 to 30 s.*221 points, in 4.2 %"),
        (
            (np.arange(60) < 20) | (np.arange(60) >= 40),
            r"pictures of 0 to 10 s and 20 to 30 s look.* of pictures of 10 to 20 s",
        ),
        (np.arange(60) % 2 == 0, r"30 pictures .000000.jpg, 000002.jpg, 000004.jpg, .* film each by itself; or things were"),
    ],
)
def test_two_rooms_in_one_are_said_with_their_seconds(first: np.ndarray, said: str) -> None:
    found = advice([model(0, 60)], consistency=record_of(first))
    assert found.refused == ""
    assert re.search(said, " ".join(found.warnings))


def test_what_hardly_hangs_together_is_said() -> None:
    found = advice([model(0, 60)], consistency=record_of(np.arange(60) < 30, points=5, shared=20))
    assert len(found.warnings) == 1
    assert re.search(
        r"^Pictures of 0 to 14 s and pictures of 15 to 30 s share only 20 points, of 9000 and more.*both are seen at once\.$",
        found.warnings[0],
    )


def test_a_good_or_an_older_reconstruction_is_told_nothing() -> None:
    assert advice([model(0, 60)], consistency=record_of(np.arange(60) < 30, points=5)).warnings == ()
    assert advice([model(0, 60)], consistency=None).warnings == ()
    assert advice([model(0, 60)], consistency={"split": None, "cut": None}).warnings == ()
