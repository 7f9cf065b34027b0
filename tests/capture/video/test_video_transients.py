"""Masks of what passes by: leftovers, their deviation from other pictures of the same surface, regions, files."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.capture.video.film_building import patterned_room, textured_picture

from airworthy.capture import CaptureImages, CaptureVideoOptions, capture_video
from airworthy.capture.filming import FilmOptions, film
from airworthy.capture.video.run import _VideoRun
from airworthy.capture.video.transients import (
    TRANSIENTS_FILE,
    SeenViews,
    _packed,
    deviations,
    leftover_colors,
    standing_out,
    with_transients_masked,
)
from airworthy.core.errors import AirworthyError
from airworthy.core.files import write_json

HEIGHT, WIDTH, STEP, COUNT = 60, 80, 2, 9
PERSON = (slice(20, 40), slice(30, 42))
NOISE = 0.01


def wall_views(person: float, picture: int = 4) -> SeenViews:
    """Cameras that move along a wall at a depth of 1 by `STEP` pixels each.

    What the splats lack is a pattern of the wall, the same in all; each picture has its noise; one shows somebody.
    """
    rng = np.random.default_rng(3)
    lack = 0.2 * rng.normal(size=(HEIGHT, WIDTH + STEP * COUNT, 3))
    leftover = [lack[:, STEP * k : STEP * k + WIDTH] + NOISE * rng.normal(size=(HEIGHT, WIDTH, 3)) for k in range(COUNT)]
    leftover[picture][PERSON] += person
    focal = 100.0
    position = np.zeros((COUNT, 3))
    position[:, 0] = STEP / focal * np.arange(COUNT)
    return SeenViews(
        tuple(part.astype(np.float32) for part in leftover),
        (np.ones((HEIGHT, WIDTH), np.float32),) * COUNT,
        np.tile((focal, focal, 0.5 * WIDTH, 0.5 * HEIGHT), (COUNT, 1)),
        position,
        np.tile((0.0, 0.0, 0.0, 1.0), (COUNT, 1)),
    )


def test_what_splats_lack_in_all_pictures_is_no_deviation_and_what_one_shows_alone_is() -> None:
    """Lack has 20 times the noise, and cancels; 0.3 of somebody is 30 times the noise, over sqrt(2) for scatter and picture."""
    views = wall_views(0.3)
    found = deviations(views, 4)
    inner = np.zeros((HEIGHT, WIDTH), bool)
    inner[PERSON] = True
    # Every pixel of the middle is seen by four others at least; the largest of three normal channels is about 1.
    assert np.median(found[inner]) == pytest.approx(30.0 / np.sqrt(2.0), rel=0.25)
    assert np.median(found[~inner]) < 1.5
    assert standing_out(found)[inner].all()
    # The others see nobody where they stand themselves: the median of many is not moved by one.
    for other in (0, 3, 5, 8):
        assert not standing_out(deviations(views, other)).any()


def test_nothing_stands_out_where_nobody_passes() -> None:
    views = wall_views(0.0)
    assert not any(standing_out(deviations(views, k)).any() for k in range(COUNT))


def test_a_picture_that_no_other_overlaps_is_held_against_itself() -> None:
    views = wall_views(0.3)
    alone = SeenViews(
        views.leftover[4:5], views.depth[4:5], views.intrinsics[4:5], views.position[4:5], views.attitude[4:5]
    )  # fmt: skip
    # The scatter of the lack, 0.2, is all it has: 0.3 is 1.5 of it.
    assert not standing_out(deviations(alone, 0)).any()


def test_what_is_masked_already_says_nothing() -> None:
    views = wall_views(0.3)
    nothing = np.full((HEIGHT, WIDTH, 3), np.nan, np.float32)
    hidden = SeenViews(
        (*views.leftover[:4], nothing, *views.leftover[5:]), views.depth, views.intrinsics, views.position, views.attitude
    )
    assert not deviations(hidden, 4).any()


def test_exposure_is_fitted_by_what_stays() -> None:
    """A fifth of the photograph is somebody, the rest an affine map of the image: what is left over there is nothing."""
    image = textured_picture(100, 60, 5).astype(np.float32) / 255.0
    truth = (0.8 * image + np.array([0.05, 0.02, -0.01])).astype(np.float32)
    truth[10:50, 20:50] += 0.4
    found = leftover_colors(image, truth)
    # A pull of 1e-4 towards no change moves colours by less than a level of 8 bits; the filter reaches 4 pixels.
    assert np.abs(found[:, 60:]).max() < 1.0 / 255.0
    assert np.abs(found[14:46, 24:46] - 0.4).max() < 1.0 / 255.0
    shown = np.ones((60, 100), bool)
    shown[10:50, 20:50] = False
    hidden = leftover_colors(image, truth, shown)
    assert np.isnan(hidden[~shown]).all()
    assert np.abs(hidden[shown]).max() < 1.0 / 255.0


def test_regions_are_closed_large_and_strong() -> None:
    """A ring of 30 x 20 px is filled and widened by 3 px; a speck, and a large pale region, are not taken."""
    deviation = np.zeros((100, 160), np.float32)
    deviation[20:40, 30:60] = 8.0
    deviation[24:36, 34:56] = 0.0
    deviation[80:82, 10:13] = 50.0
    deviation[60:90, 100:140] = 5.0
    found = standing_out(deviation)
    assert found[20:40, 30:60].all()
    assert found[17, 45]
    assert found[30, 27]
    assert not found[16, 45]
    assert found.sum() < 26 * 36
    assert not found[70:, :].any()
    assert not standing_out(np.zeros((10, 10), np.float32)).any()


def photographs(count: int) -> CaptureImages:
    rgb = tuple(np.full((40, 60, 3), 90, np.uint8) for _ in range(count))
    attitude = np.tile((0.0, 0.0, 0.0, 1.0), (count, 1))
    own = np.ones((40, 60), bool)
    own[:5] = False
    return CaptureImages(rgb, np.tile((50.0, 50.0, 30.0, 20.0), (count, 1)), np.zeros((count, 3)), attitude, (own,) * count)


def test_masks_that_lie_there_are_taken_and_join_those_that_images_have(tmp_path: Path) -> None:
    """Made at half the size: a pixel of the mask is two by two of the image. What has no mask keeps its own."""
    mask = np.zeros((20, 30), bool)
    mask[10:15, 3:8] = True
    (tmp_path / TRANSIENTS_FILE).write_bytes(_packed([mask, np.zeros((20, 30), bool)]))
    first, second = with_transients_masked(photographs(2), tmp_path).masks
    wanted = np.ones((40, 60), bool)
    wanted[:5] = False
    assert second is not None
    assert np.array_equal(second, wanted)
    wanted[20:30, 6:16] = False
    assert first is not None
    assert np.array_equal(first, wanted)
    with pytest.raises(AirworthyError, match="masks of 2 images, and there are 3: delete it"):
        with_transients_masked(photographs(3), tmp_path)


def test_masks_that_nothing_could_find_are_refused(tmp_path: Path) -> None:
    (tmp_path / "photographs").mkdir()
    for k in range(3):
        Image.fromarray(textured_picture(64, 48, k)).save(tmp_path / "photographs" / f"{k}.jpg")
    with pytest.raises(AirworthyError, match=r"nothing would be masked.*Drop --masks, or --no-train"):
        capture_video(tmp_path / "photographs", tmp_path / "out", CaptureVideoOptions(masks=True, train=False))


def test_what_is_told_as_masked_is_masked(tmp_path: Path) -> None:
    """Of three pictures one has a mask by motion, one of what passes by over a fifth of it, and one none."""
    write_json(tmp_path / "masks.json", {"masked": {"00000": 0.25}})
    fifth = np.ones((40, 60), bool)
    fifth[:8] = False
    images = CaptureImages(
        (np.zeros((40, 60, 3), np.uint8),) * 3, np.tile((50.0, 50.0, 30.0, 20.0), (3, 1)), np.zeros((3, 3)),
        np.tile((0.0, 0.0, 0.0, 1.0), (3, 1)), (None, np.ones((40, 60), bool), fifth),
    )  # fmt: skip
    scaled: Any = SimpleNamespace(images=images)

    def told(options: CaptureVideoOptions) -> dict[str, float]:
        return _VideoRun([], tmp_path, options.plan(), 1, "", True)._masked(scaled)

    assert told(CaptureVideoOptions(masks=True)) == {"00000": 0.25, "00002": pytest.approx(0.2)}
    assert told(CaptureVideoOptions(masks=True, train=False)) == {"00000": 0.25}
    assert told(CaptureVideoOptions()) == {}


@pytest.mark.slow
def test_a_thing_that_is_carried_through_a_film_is_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """24 pictures of a room with exact poses; a board of 26 x 40 px is elsewhere in each, and stands still in none."""
    monkeypatch.setattr(film, "use_baked", lambda batch: None)
    options = FilmOptions(seconds=12.0, rate=2.0, width=160, height=120, exposures=1, marker_side=0.0, laps=0.5)
    position, attitude = film.film_rig(patterned_room(), options).walk.poses(np.arange(options.count) / options.rate)
    pictures = [picture.copy() for picture in film.film_scene(patterned_room(), options)]
    board, places = textured_picture(26, 40, 77), np.random.default_rng(4).integers(0, (80, 134), (options.count, 2))
    carried = np.zeros((options.count, 120, 160), bool)
    for picture, there, (y, x) in zip(pictures, carried, places, strict=True):
        picture[y : y + 40, x : x + 26] = board
        there[y : y + 40, x : x + 26] = True
    lens = options.lens
    intrinsics = np.tile((lens.fx, lens.fy, lens.cx, lens.cy), (options.count, 1))
    images = CaptureImages(tuple(pictures), intrinsics, position, attitude, metric=True)
    found = with_transients_masked(images, tmp_path)
    hidden = np.stack([np.zeros((120, 160), bool) if mask is None else ~mask for mask in found.masks])
    # Four fifths of it, and of the rest margins of 3 px alone are 3 % of a picture.
    assert hidden[carried].mean() > 0.8
    assert hidden[~carried].mean() < 0.1
    again = with_transients_masked(images, tmp_path)
    assert all(np.array_equal(a, b) for a, b in zip(again.masks, found.masks, strict=True))
