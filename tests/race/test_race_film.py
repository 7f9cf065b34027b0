"""Films of race flights: what is drawn into a picture and where, which flights are filmed, and what the page says of films."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.race.test_race_report import FALLS, straight

from airworthy.optics.projections import Pinhole
from airworthy.race.benchmark.job import RaceBenchConfig, run_race_bench
from airworthy.race.report import film
from airworthy.race.report.crossings import FlownRace
from airworthy.race.report.film import RaceFilm, clipped, drawn_over, track_of, who_flew
from airworthy.reports.film.cameras import CameraPath
from airworthy.reports.film.files import read_frames


def test_lines_are_cut_where_they_come_too_near_to_a_camera() -> None:
    line = np.array([[0.0, 0.0, 1.1], [0.0, 1.0, -0.9], [0.0, 2.0, -1.0], [1.0, 2.0, 3.0]])
    (a, b), (c, d) = clipped(line)
    # From 1.1 m ahead to 0.9 m behind: half of the way is left.
    assert np.allclose(np.concatenate([a, b]), [0.0, 0.0, 1.1, 0.0, 0.5, 0.1])
    assert np.allclose(np.concatenate([c, d]), [0.275, 2.0, 0.1, 1.0, 2.0, 3.0])
    assert clipped(line[1:3]) == []


def test_a_line_is_drawn_where_the_camera_sees_it() -> None:
    camera = Pinhole(200, 100, 100.0, 100.0, 100.0, 50.0)
    # Optical frame and world alike: x to the right, y down, z ahead; the camera stands 2 m behind the origin.
    path = CameraPath("test", camera, np.array([[0.0, 0.0, -2.0]]), np.array([[0.0, 0.0, 0.0, 1.0]]), False)
    black = np.zeros((100, 200, 3), np.uint8)
    drawn = drawn_over(black, [(np.array([[-1.0, 0.5, 0.0], [1.0, 0.5, 0.0]]), (255, 0, 0), 2)], path, 0)
    rows, columns = np.nonzero(drawn[..., 0] > 128)
    # Half a metre of two is 25 pixels below the middle; one metre is 50 to each side.
    assert set(rows.tolist()) <= {74, 75, 76}
    assert columns.min() == pytest.approx(50, abs=2)
    assert columns.max() == pytest.approx(150, abs=2)
    assert black.max() == 0


def test_track_goes_through_the_rows_of_the_trace() -> None:
    flight = straight()
    track = track_of(flight)
    position, _, velocity = track.pose(flight.trace.time[::10].astype(np.float64))
    assert np.allclose(position, flight.trace.position[::10], atol=1e-6)
    assert np.linalg.norm(velocity, axis=1) == pytest.approx(6.0, rel=1e-6)
    assert len(track.frame_times(film.RATE)) == 61


def test_a_film_says_who_was_told_the_truth() -> None:
    flight = straight()
    assert who_flew(flight) == "own"
    assert who_flew(replace(flight, row={**flight.row, "pilot": "truth:race"})) == "truth:race with true state"


@pytest.fixture
def config(tmp_path: Path) -> RaceBenchConfig:
    (tmp_path / "falls.py").write_text(FALLS)
    own = f"{tmp_path / 'falls.py'}:Falls"
    return RaceBenchConfig(pilot=own, courses="published:0-2", film_flights=2, out=str(tmp_path / "out"))


@pytest.mark.slow
def test_as_many_flights_are_filmed_as_were_asked_for(config: RaceBenchConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    from PIL import Image

    asked: list[str] = []

    def fake(flight: FlownRace, place: Any, flyer: Any, camera: Any, folder: Path, **_: Any) -> RaceFilm:
        asked.append(f"{flight.course} in {place.name}")
        made = folder / film.FOLDER / f"{len(asked)}.webp"
        made.parent.mkdir(exist_ok=True)
        made.write_bytes(b"film")
        sheet = made.with_suffix(".png")
        Image.new("RGB", (8, 8)).save(sheet)
        return RaceFilm(made, sheet, str(flight.row["pilot"]), flight.course)

    monkeypatch.setattr(film, "film_race", fake)
    done = run_race_bench(config)
    # None was completed: the first failure, then others in order.
    assert asked == [f"published/{k} in alphapilot:published/{k}" for k in (0, 1)]
    assert done.report is not None
    page = done.report.read_text("utf-8")
    assert page.count("data:image/webp;base64,ZmlsbQ==") == 2
    assert not done.interrupted


@pytest.mark.slow
def test_stopping_a_film_leaves_numbers_and_page(config: RaceBenchConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any, **__: Any) -> RaceFilm:
        raise KeyboardInterrupt

    monkeypatch.setattr(film, "film_race", stop)
    done = run_race_bench(config)
    assert (done.interrupted, done.complete) == (True, True)
    assert done.report is not None
    assert "Where flights ended" in done.report.read_text("utf-8")


@pytest.mark.slow
def test_film_of_a_flight_shows_both_views_and_what_was_believed(config: RaceBenchConfig, tmp_path: Path) -> None:
    done = run_race_bench(config)
    (first, _) = sorted(path for path in (tmp_path / "out" / film.FOLDER).iterdir() if path.suffix in (".mp4", ".webp"))
    pictures = list(read_frames(first))
    row = done.summary["flights"][0]
    assert pictures[0].shape == (360, 960, 3)
    assert row["end"] == "contact"
    # Openings are drawn in green on both halves.
    green = (pictures[0][..., 1].astype(int) - pictures[0][..., 0] > 80) & (pictures[0][..., 1] > 150)
    assert green[:, :480].sum() > 20
    assert green[:, 480:].sum() > 20
