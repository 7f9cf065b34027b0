"""Pairs, masks by motion, the test for rolling shutters, and what poor films are told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.capture.video.film_building import textured_picture

from airworthy.capture.video.advice import judged_reconstruction
from airworthy.capture.video.frames import TakenFrame
from airworthy.capture.video.moving import moving_mask
from airworthy.capture.video.pairs import likely_pairs, likeness, sequential_pairs, visual_words
from airworthy.capture.video.shutter import READOUTS, rolling_shutter

# ---- Pairs ------------------------------------------------------------------------------------------------------------------


def test_pictures_of_one_place_look_alike() -> None:
    """Five places, four pictures of each: half of a picture's descriptors are its place's, noisy, half are anybody's."""
    rng = np.random.default_rng(0)
    descriptors = []
    for _ in range(5):
        own = rng.integers(0, 160, (80, 128))
        for _ in range(4):
            noisy = np.clip(own + rng.normal(0.0, 12.0, own.shape), 0, 255)
            descriptors.append(np.concatenate((noisy, rng.integers(0, 160, (80, 128)))).astype(np.uint8))
    alike = likeness(descriptors, visual_words(descriptors, 32))
    assert np.allclose(np.diag(alike), 1.0, atol=1e-5)
    pairs = likely_pairs(alike, 3)
    same = np.mean([a // 4 == b // 4 for a, b in pairs])
    assert same > 0.9
    assert np.array_equal(alike, likeness(descriptors, visual_words(descriptors, 32)))


def test_pictures_without_features_are_like_nothing() -> None:
    nothing = np.zeros((0, 128), np.uint8)
    some = np.random.default_rng(1).integers(0, 255, (70, 128)).astype(np.uint8)
    alike = likeness([some, nothing], visual_words([some, nothing], 8))
    assert alike[0, 1] == 0.0


def test_films_are_matched_along_time_and_photographs_are_not() -> None:
    source = np.array([0] * 30 + [1] * 5)
    pairs = sequential_pairs(source, [True, False], overlap=3)
    assert {(0, 1), (0, 2), (0, 3), (0, 4), (0, 8)} <= pairs
    assert (0, 5) not in pairs
    assert max(b for _, b in pairs) == 29


# ---- Masks ------------------------------------------------------------------------------------------------------------------


def walked_past(shift: float, patch: tuple[int, int]) -> np.ndarray:
    """Grey picture (180, 320) of a wall, a nearer shelf that moves twice as far, and something 40 x 60 px at a place."""
    wall, shelf = textured_picture(700, 180, 1)[..., 0], textured_picture(900, 60, 2)[..., 0]
    thing = textured_picture(60, 60, 3)[:, :40, 0]
    picture = wall[:, 100 + round(shift) : 420 + round(shift)].copy()
    picture[120:] = shelf[:, 100 + round(2 * shift) : 420 + round(2 * shift)]
    y, x = patch
    picture[y : y + 60, x : x + 40] = thing
    return picture


def test_what_moves_by_itself_is_masked_and_what_is_near_is_not() -> None:
    """The camera moves sideways; the thing falls across the epipolar lines."""
    pytest.importorskip("cv2")
    before, now, after = (walked_past(6.0 * k, (30 + 6 * k, 150 - 6 * k)) for k in (-1, 0, 1))
    mask = moving_mask(before, now, after)
    thing = np.zeros(mask.shape, bool)
    thing[30:90, 150:190] = True
    assert mask[thing].mean() > 0.7
    assert mask[~thing].mean() < 0.05


def test_nothing_is_masked_where_all_stands_still() -> None:
    pytest.importorskip("cv2")
    still = [walked_past(6.0 * k, (30, 150 - 6 * k)) for k in (-1, 0, 1)]
    assert not moving_mask(*still).any()
    assert not moving_mask(None, still[1], None).any()


# ---- Rolling shutters -------------------------------------------------------------------------------------------------------


def pulled(best: float, bend: float, scatter: float, pictures: int, run: int = 1, seed: int = 0) -> np.ndarray:
    """Costs of pictures, each of which would have a readout of its own about the best [s]; `run` in a row have the same."""
    own = best + scatter * np.random.default_rng(seed).normal(size=-(-pictures // run)).repeat(run)[:pictures]
    return 0.25 + bend * ((np.array(READOUTS)[:, None] - own) / 0.01) ** 2


def test_a_rolling_shutter_is_where_least_is_left_over() -> None:
    found = rolling_shutter(READOUTS, pulled(0.016, 0.05, 0.0, 30), 30)
    assert found.readout == pytest.approx(0.016, rel=1e-6)
    assert found.half_95 == pytest.approx(0.0, abs=1e-9)
    assert found.rolling
    assert "rolling shutter of about 16 ms" in found.sentence


@pytest.mark.parametrize("run", [1, 5])
def test_the_interval_of_a_readout_holds_it(run: int) -> None:
    """Pictures that follow each other are wrong together: of 400 drawn films 95 % and more hold the truth."""
    held = []
    for seed in range(400):
        found = rolling_shutter(READOUTS, pulled(0.016, 0.05, 0.008, 60, run, seed), 60)
        held.append(abs(found.readout - 0.016) < found.half_95)
    assert np.mean(held) > 0.93
    # It says something all the same: at most about twice the deviation of the mean of the runs.
    assert found.half_95 < 2.0 * 2.2 * 0.008 / np.sqrt(60 / run)


def test_the_interval_of_a_readout_is_that_of_a_mean() -> None:
    """Eight pictures, half of them 4 ms above the best and half below: the deviation of a mean is 4 ms / sqrt(8 - 1)."""
    own = 0.016 + 0.004 * np.tile([1.0, -1.0], 4)
    costs = 0.25 + 0.05 * ((np.array(READOUTS)[:, None] - own) / 0.01) ** 2
    # 97.5 % of Student's distribution with 7 degrees of freedom: 2.3646.
    assert rolling_shutter(READOUTS, costs, 8).half_95 == pytest.approx(2.3646 * 0.004 / np.sqrt(7.0), rel=1e-4)


@pytest.mark.parametrize(
    ("best", "bend", "scatter", "pictures"),
    [
        (0.0, 0.05, 0.001, 30),  # none
        (0.002, 0.05, 0.0001, 30),  # too short to matter
        (0.016, 0.05, 0.06, 30),  # not certain
        (0.016, 0.05, 0.0001, 5),  # too few pictures
        (0.016, -0.05, 0.0001, 30),  # no least one
    ],
)
def test_what_is_not_certain_is_not_told(best: float, bend: float, scatter: float, pictures: int) -> None:
    found = rolling_shutter(READOUTS, pulled(best, bend, scatter, pictures), pictures)
    assert not found.rolling
    assert found.sentence == ""


# ---- Advice -----------------------------------------------------------------------------------------------------------------


def taken(count: int) -> list[TakenFrame]:
    return [TakenFrame(f"{k:06d}.jpg", 0, k, 0.5 * k, 1.0, 1.0, (0.1, 0.0), (960, 540)) for k in range(count)]


def model(first: int, last: int, points: int = 5000, error: float = 0.5) -> dict[str, Any]:
    return {"images": [f"{k:06d}.jpg" for k in range(first, last)], "points": points, "reprojection_px": error}


def advice(
    models: list[dict[str, Any]],
    features: int = 2000,
    verified: int = 300,
    shaken: int = 0,
    consistency: Any = None,
    **more: Any,
) -> Any:
    result = {"pictures": 60, "models": models, "features": dict.fromkeys(map(str, range(60)), features)}
    result |= {"pairs": {"tried": 400, "verified": verified}, "consistency": consistency}
    source = {"name": "walk.mp4", "notes": [], "shaken": shaken, "pictures": 60, **more}
    return judged_reconstruction(result, {"sources": [source]}, taken(60))


def test_a_good_film_is_told_nothing() -> None:
    found = advice([model(0, 60)])
    assert (found.refused, found.warnings) == ("", ())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"models": [], "features": 40}, "blurred or show hardly anything .40 features.*wipe the lens"),
        ({"models": [], "verified": 3}, "do not overlap .3 of 400 pairs.*film without cuts"),
        ({"models": []}, "only turned.*walk sideways"),
        ({"models": [model(0, 20)], "verified": 10}, "Only 20 of 60 pictures hang together: the pictures do not overlap"),
        (
            {"models": [model(0, 28), model(30, 55)]},
            "show 2 parts .*: 28, 25 of 60 pictures .0 to 14 s; 15 to 27 s.. If .* rooms, film each.*If .* one room, .* way",
        ),
    ],
)
def test_what_cannot_become_a_place_is_told_why(arguments: dict[str, Any], said: str) -> None:
    import re

    assert re.search(said, advice(**arguments).refused)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"models": [model(0, 40), model(41, 60)]}, "2 parts that do not hang together.*The largest part is used"),
        ({"models": [model(0, 57)]}, "3 of 60 pictures have no pose .000057.jpg"),
        ({"models": [model(0, 60, error=2.5)]}, "off by 2.5 px"),
        ({"models": [model(0, 60, points=120)]}, "Only 120 points"),
        ({"models": [model(0, 60)], "shaken": 30}, "30 of 60 pictures are shaken"),
        ({"models": [model(0, 60)], "notes": ["the film ends in the middle"]}, "walk.mp4: the film ends in the middle"),
    ],
)
def test_what_is_poor_is_said(arguments: dict[str, Any], said: str) -> None:
    import re

    found = advice(**arguments)
    assert found.refused == ""
    assert re.search(said, " ".join(found.warnings))


def test_a_damaged_film_that_shows_no_place_is_to_be_copied_again() -> None:
    found = advice([], notes=["11 pictures can be read of the 40 that its head tells of: it was cut off or is damaged"])
    assert "only turned" in found.refused
    assert "First, though, copy or export the film again (walk.mp4: 11 pictures can be read" in found.refused
    # Photographs are no film.
    told = advice([], notes=["b.jpg is damaged"], kind="photographs").refused
    assert told.endswith("First, though, copy the photographs again (walk.mp4: b.jpg is damaged).")
    # What is no damage has nothing to do with it.
    assert "copy" not in advice([], notes=["the film is HDR"]).refused


def test_a_picture_that_sees_few_points_of_many_is_believed_where_they_are_enough() -> None:
    """A fifth of the median, 150 of 757, was too many to ask for; of dim films, whose median is low, a fifth alone counts."""
    from airworthy.capture.video.colmap_process import hardly_held

    seen = dict.fromkeys(range(20), 757)
    assert hardly_held(seen | {20: 131, 21: 60, 22: 59, 23: 12}) == [22, 23]
    dim = dict.fromkeys(range(20), 200)
    assert hardly_held(dim | {20: 40, 21: 39}) == [21]
    assert hardly_held({0: 700, 1: 700, 2: 5}) == []
