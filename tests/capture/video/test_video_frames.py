"""Which pictures of a film are taken: sharp ones, spread in time and motion; the published choice; stores and records."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.capture.video.film_building import textured_film, textured_picture, write_film

from airworthy.capture.video.frames import (
    choose_frames,
    farthest_in_time,
    published_frames,
    read_frames_record,
    relative_sharpness,
    take_frames,
)
from airworthy.core.errors import AirworthyError


def test_sharpness_is_held_against_neighbours() -> None:
    """A bare wall is less sharp than a shelf and no worse a picture; a shaken one among its like is."""
    times = np.arange(40) / 10.0
    sharp = np.where(times < 2.0, 1.0, 0.1)
    sharp[30] = 0.02
    found = relative_sharpness(times, sharp)
    assert found[30] == pytest.approx(0.2)
    assert np.median(found[22:]) == pytest.approx(1.0)


def test_shaken_pictures_are_passed_over() -> None:
    """Every third picture is shaken: of 300 none of the 40 that are taken is, and they are evenly apart."""
    times = np.arange(300) / 30.0
    sharp = np.where(np.arange(300) % 3 == 0, 0.2, 1.0)
    chosen = choose_frames(times, sharp, np.full(300, 0.01), 40)
    assert len(chosen) == 40
    assert (sharp[chosen] == 1.0).all()
    # Within two fifths of a step on either side of its place, so two neighbours are 0.2 to 1.8 steps apart.
    gaps = np.diff(chosen) / (300 / 40)
    assert gaps.min() >= 0.15
    assert gaps.max() <= 1.9


def test_where_more_moves_more_is_taken() -> None:
    """Half of the measure is motion: a second half that moves nine times as much holds 0.25 + 0.45 of the pictures."""
    times = np.arange(400) / 20.0
    path = np.where(np.arange(400) < 200, 0.01, 0.09)
    chosen = choose_frames(times, np.ones(400), path, 100)
    assert np.mean(chosen >= 200) == pytest.approx(0.70, abs=0.03)


def test_frame_rates_change_nothing() -> None:
    """The same walk at 15 and at 60 Hz: pictures of the same instants within a step of the slower film."""
    found = []
    for rate in (15.0, 60.0):
        times = np.arange(0.0, 20.0, 1.0 / rate)
        chosen = choose_frames(times, np.ones(len(times)), (1.0 + np.sin(times)) / rate, 30)
        found.append(times[chosen])
    # The sharpest of equals is the first of its window, which begins up to 1/15 s later on the coarser grid.
    assert np.abs(found[0] - found[1]).max() < 2.0 / 15.0


def test_a_film_with_fewer_pictures_is_taken_whole() -> None:
    assert choose_frames([0.0, 0.1, 0.2], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0], 8).tolist() == [0, 1, 2]


def test_farthest_in_time_and_the_published_choice() -> None:
    assert farthest_in_time(np.arange(9.0), 3).tolist() == [0, 4, 8]
    marked = np.arange(1000) < 100
    chosen = published_frames(np.arange(1000) / 10.0, marked)
    assert marked[chosen].sum() == 20
    assert (~marked[chosen]).sum() == 280
    # Farthest points leave no gap larger than twice the even one.
    assert np.diff(chosen[20:]).max() <= 2 * 900 / 280


def test_pictures_are_taken_and_kept(tmp_path: Path) -> None:
    film = write_film(tmp_path / "walk.mp4", textured_film(24), rate=12.0)
    half_written = tmp_path / "place" / "images" / ".000003.0123456789abcdef.tmp.jpg"
    half_written.parent.mkdir(parents=True)
    half_written.write_bytes(b"of a run that was killed")
    record = take_frames([film], tmp_path / "place", count=10, side=64)
    assert len(record["frames"]) == 10
    names = [frame["name"] for frame in record["frames"]]
    assert sorted(path.name for path in (tmp_path / "place" / "images").iterdir()) == names
    _, frames = read_frames_record(tmp_path / "place")
    assert max(frames[0].size) == 64
    # The pattern runs 2 px to the left a picture, of 96 px, at 12 Hz.
    assert np.median([frame.rate[0] for frame in frames]) == pytest.approx(-2.0 / 96.0 * 12.0, rel=0.1)
    before = (tmp_path / "place" / "images" / names[0]).stat().st_mtime_ns
    assert take_frames([film], tmp_path / "place", count=10, side=64) == record
    assert (tmp_path / "place" / "images" / names[0]).stat().st_mtime_ns == before


@pytest.mark.parametrize(("side", "larger"), [(32, 64), (64, 96), (96, None)])
def test_larger_copies_have_twice_the_size_or_all_the_pixels_of_the_film(tmp_path: Path, side: int, larger: int | None) -> None:
    film = write_film(tmp_path / "walk.mp4", textured_film(12), rate=12.0)
    record = take_frames([film], tmp_path / "place", count=10, side=side)
    names = [frame["name"] for frame in record["frames"]]

    def sizes(folder: str) -> set[tuple[int, int]]:
        found = set()
        for name in names:
            with Image.open(tmp_path / "place" / folder / name) as image:
                found.add(image.size)
        return found

    assert sizes("images") == {(side, round(side * 2 / 3))}
    if larger is None:
        assert not (tmp_path / "place" / "larger").exists()
    else:
        assert sizes("larger") == {(larger, round(larger * 2 / 3))}


def test_two_films_share_the_pictures(tmp_path: Path) -> None:
    films = [write_film(tmp_path / f"{k}.mp4", textured_film(n), rate=12.0) for k, n in enumerate((30, 15))]
    record = take_frames(films, tmp_path / "place", count=15, side=96)
    sources = [frame["source"] for frame in record["frames"]]
    assert (sources.count(0), sources.count(1)) == (10, 5)
    assert record["frames"][0]["name"].startswith("0_")


def test_too_short_and_still_films_are_told(tmp_path: Path) -> None:
    short = write_film(tmp_path / "short.mp4", textured_film(4), rate=12.0)
    with pytest.raises(AirworthyError, match="only 4 pictures, and 8 are needed"):
        take_frames([short], tmp_path / "a")
    still = write_film(tmp_path / "still.mp4", textured_film(1) * 20, rate=12.0)
    with pytest.raises(AirworthyError, match=r"hardly moves in still\.mp4: walk through the room"):
        take_frames([still], tmp_path / "b")


def test_photographs_keep_their_order_and_a_name_each(tmp_path: Path) -> None:
    """Names with blanks, which COLMAP's lists are parted by, and one name with two suffixes; 2 comes before 10."""
    shots = tmp_path / "shots"
    shots.mkdir()
    names = [f"Büro Bild {k}.png" for k in (1, 2, 9, 10, 11, 12, 13)]
    for k, name in enumerate([*names, "Büro Bild 2.jpg"]):
        Image.fromarray(textured_picture(120, 80, k)).save(shots / name)
    record = take_frames([shots], tmp_path / "out", 10, 64, "all")
    found = [frame["name"] for frame in record["frames"]]
    assert found == [f"Büro_Bild_{k}.jpg" for k in ("1", "2", "2-2", "9", "10", "11", "12", "13")]
    assert sorted(path.name for path in (tmp_path / "out" / "images").iterdir()) == sorted(found)
