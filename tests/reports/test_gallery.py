"""The sensor gallery shows every device, and its pictures say what they should."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.reports import pictures
from airworthy.reports.gallery import GalleryConfig, write_gallery
from airworthy.sensors import device_names


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("AIRWORTHY_DATA", raising=False)
        out = tmp_path_factory.mktemp("gallery")
        return write_gallery(GalleryConfig(scene="obstacle_room:2", bake=False, out=out)).read_text()


@pytest.mark.slow
def test_every_device_has_its_card(page: str) -> None:
    assert set(re.findall(r"<h3 id=\"[^\"]*\">([a-z0-9_]+)<", page)) == set(device_names())


@pytest.mark.slow
def test_the_page_is_complete_in_itself(page: str) -> None:
    assert "{{" not in page
    assert set(re.findall(r'src="(data:image/(?:jpeg|png);base64)', page)) <= {
        "data:image/jpeg;base64",
        "data:image/png;base64",
    }
    assert not re.findall(r'(?:src|href)="(?!data:|#)', page)
    assert len(page) < 8e6


@pytest.mark.slow
def test_without_a_scan_it_says_so(page: str) -> None:
    assert "No scanned place" in page


def test_an_unknown_scene_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match="Unknown scene 'obstacle_rom'"):
        write_gallery(GalleryConfig(scene="obstacle_rom", out=tmp_path))


def test_near_is_warm_and_nothing_is_dark() -> None:
    picture = pictures.distance_picture([[0.5, 9.0, np.inf, np.nan, -1.0]], 0.0, 10.0).astype(int)
    assert picture[0, 0, 0] > picture[0, 0, 2]  # red over blue
    assert picture[0, 1, 2] > picture[0, 1, 0]
    assert (picture[0, 2:] == pictures.NOTHING).all()


def test_neighbouring_numbers_differ_in_colour() -> None:
    picture = pictures.number_picture(np.arange(100, 140)[None]).astype(int)[0]
    assert np.abs(np.diff(picture, axis=0)).sum(axis=1).min() > 60
    assert (pictures.number_picture([[-2]]) == pictures.NOTHING).all()


def test_flow_tells_direction_and_length() -> None:
    picture = pictures.flow_picture([[[5.0, 0.0], [-5.0, 0.0], [0.0, 0.0], [np.nan, 0.0]]], largest=5.0).astype(int)[0]
    assert picture[0, 0] > picture[0, 2]  # to the right: red
    assert picture[1, 2] > picture[1, 0]  # to the left: cyan
    assert np.ptp(picture[2]) == 0  # at rest: white
    assert (picture[3] == pictures.NOTHING).all()


def test_points_are_drawn_where_they_are() -> None:
    """A point on the line of sight is in the middle; the nearer of two hides the other."""
    line = np.array([[5.0, 0.0, 0.0], [9.0, 0.0, 0.0], [5.0, 2.0, 0.0]])
    picture = pictures.points_picture(line, [0.0, 1.0, 0.5], (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (200, 100), 1.2)
    lit = np.argwhere((picture != pictures.NOTHING).any(axis=2))
    assert [50, 100] in lit.tolist()
    assert (lit[:, 1] < 70).any()  # y is to the left
    alone = pictures.points_picture(line[:1], [0.0], (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (200, 100), 1.2)
    assert np.ptp(np.argwhere((alone != pictures.NOTHING).any(axis=2)), axis=0).max() == 1
    empty = pictures.points_picture(np.full((2, 3), np.nan), [0.0, 1.0], (0.0, 0.0, 0.0), (1.0, 0.0, 0.0))
    assert (empty == pictures.NOTHING).all()
