"""Films of race flights: on the left from the camera on board, on the right from behind, with what the pilot believed drawn in.

Green frames are the openings where they are, pink ones where the pilot has them from itself, with a bar of 2 sigma across where
it says so; blue is the path that it is about to fly. Pilots without telemetry are filmed without pink and blue.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayU8
from airworthy.core.files import make_folder, sha256_file
from airworthy.core.jobs.progress import progress
from airworthy.optics.projections import Pinhole
from airworthy.optics.tone import to_8bit
from airworthy.race.published import TRUE_STATE, TRUTH
from airworthy.race.report.crossings import FlownRace
from airworthy.race.report.page import ReportInput, shown_flights
from airworthy.race.report.timelines import legs_of
from airworthy.reports.film.cameras import FOV, CameraPath, following, sized
from airworthy.reports.film.files import video_suffix, write_video
from airworthy.reports.film.flight_track import FilmLayout, FlightTrack, film_content
from airworthy.reports.film.rendered_scene import RenderedScene
from airworthy.reports.film.sheet import write_sheet
from airworthy.scenes import Scene, scene
from airworthy.sensors import device
from airworthy.vehicles import Vehicle

FOLDER = "films"
SIZE = (480, 360)
"""Of each half [px]: the shape of the contest's camera, 1024 to 768."""
RATE = 30.0
"""Pictures per second."""
_AHEAD = 3
"""Gates that are drawn: the next one and so many behind it."""
_NEAR = 0.1
"""What is nearer to a camera than this along its axis is not drawn [m]."""
_BEHIND, _CALM_S = 3.0, 0.08
"""Distance of the camera that follows [m] and its smoothing [s]; ours: at 30 m/s^2 a calmer one loses its vehicle."""
_AT_ONCE = 8
_STILLS = 12
_FINER = 2
TRUE, BELIEVED, PLANNED = (64, 220, 130), (255, 60, 210), (90, 170, 255)
"""Colours of what is drawn in: where openings are, where the pilot has them, where it is about to fly."""
Shape = tuple[Array, tuple[int, int, int], int]
"""Points of a line in the world [m], its colour, and its width [px]."""


@dataclass(frozen=True)
class RaceFilm:
    """A film that was written, or was there."""

    path: Path
    sheet: Path
    """Its contact sheet."""
    pilot: str
    course: str

    def described(self) -> dict[str, Any]:
        """Return the fields that a report reads (`airworthy.reports.film.flight_track.film_content`)."""
        return {
            "file": self.path.name,
            "sha256": sha256_file(self.path),
            "contact_sheet": self.sheet.name,
            "env": self.course,
            "camera": "on board and behind",
            "size_px": [2 * SIZE[0], SIZE[1]],
            "rate_hz": RATE,
        }


def film_race(
    flight: FlownRace, place: Scene, flyer: Vehicle, camera: Pinhole, folder: Path, *, samples: int = 1, quiet: bool = True
) -> RaceFilm:
    """Film a flight, and write a contact sheet beside it; one that is there is kept.

    Args:
        flight: The flight.
        place: Scene of its course.
        flyer: Its vehicle.
        camera: That sees beacons.
        folder: Of the run; films lie in a folder of it.
        samples: Rays per pixel of surfaces.
        quiet: Show no progress.
    """
    target = make_folder(folder / FOLDER) / (_stem(flight) + video_suffix())
    made = RaceFilm(target, target.with_name(target.stem + "_sheet.png"), str(flight.row["pilot"]), flight.course)
    if target.is_file() and made.sheet.is_file():
        return made
    film = _Film(flight, place, flyer, camera, samples)
    pictures = progress(film.pictures(), f"Filming {flight.course}", len(film.times), quiet=quiet)
    write_video(target, pictures, len(film.times), (2 * SIZE[0], SIZE[1]), RATE)
    write_sheet(made.sheet, film.stills, film.times[film.chosen], film.track, place, who_flew(flight))
    return made


def filmed(given: ReportInput, most: int, quiet: bool = True) -> tuple[ReportInput, bool]:
    """Film flights of a run: of each pilot the first ones that its page shows.

    Args:
        given: What the page is made of.
        most: Flights of each pilot that are filmed.
        quiet: Show no progress.

    Returns:
        The same with what the page says of the films, and whether somebody stopped it; films that were finished are kept.
    """
    camera = device("flightgoggles_beacons").projection
    assert isinstance(camera, Pinhole)
    films: dict[tuple[str, str], Any] = {}
    try:
        for pilot, flights in given.flights.items():
            for _, flight in shown_flights(flights, most)[:most]:
                if len(flight.trace.time) > 1:
                    place = scene(f"{given.race.scene}:{flight.course}")
                    made = film_race(flight, place, given.vehicle, camera, given.folder, quiet=quiet)
                    films[pilot, flight.course] = _content(made)
    except KeyboardInterrupt:
        return replace(given, films=films, shown=most), True
    return replace(given, films=films, shown=most), False


def _content(film: RaceFilm) -> dict[str, Any]:
    """Return what the page shows of a film; a large one lies beside the page, in the folder of films."""
    content = film_content(film.path.parent, {"video": film.described()})
    assert content is not None
    if not content["beside"]:
        return content
    note = str(content["note"]).replace(film.path.name, f"{FOLDER}/{film.path.name}")
    return content | {"source": f"{FOLDER}/{content['source']}", "note": note}


def _stem(flight: FlownRace) -> str:
    """Return the name of a film's file: pilot and course, letters, figures and hyphens alone."""
    name = f"{Path(str(flight.row['pilot'])).name}-{flight.course}"
    return "".join(letter if letter.isalnum() else "-" for letter in name)


def who_flew(flight: FlownRace) -> str:
    """Return the pilot as a film names it, never without what it was told."""
    word = str(flight.row["pilot"])
    return Path(word).name + (f" {TRUE_STATE}" if word.startswith(TRUTH) else "")


def track_of(flight: FlownRace) -> FlightTrack:
    """Return a flight for cameras that follow it."""
    trace = flight.trace
    attitude = frames.continuous(frames.normalize(trace.attitude.astype(np.float64)))
    rows = (trace.position.astype(np.float64), trace.velocity.astype(np.float64))
    return FlightTrack(trace.time.astype(np.float64), *rows, attitude, np.zeros(max(0, len(trace.time) - 1), bool))


class _Film:
    """One film in the making."""

    def __init__(self, flight: FlownRace, place: Scene, flyer: Vehicle, camera: Pinhole, samples: int):
        self.flight, self.track = flight, track_of(flight)
        self.times = self.track.frame_times(RATE)
        self.chosen = np.unique(np.round(np.linspace(0, len(self.times) - 1, _STILLS)).astype(int))
        self.stills: list[ArrayU8] = []
        self._legs = legs_of(flight)
        self._stage = RenderedScene(place, flyer, min(_AT_ONCE, len(self.times)), samples)
        position, attitude, _ = self.track.pose(self.times)
        self._aboard = CameraPath("onboard", sized(camera, SIZE), position, frames.camera_attitude(attitude), False)
        eye, turn = following("chase", self.track, self.times, flyer, self._stage.batch, _BEHIND, _CALM_S)
        self._behind = CameraPath("chase", Pinhole.from_fov(*SIZE, horizontal=FOV), eye, turn, True)
        self._layout = FilmLayout(2 * SIZE[0], SIZE[1])

    def pictures(self) -> Iterator[ArrayU8]:
        position, attitude, velocity = self.track.pose(self.times)
        for first in range(0, len(self.times), self._stage.count):
            rows = slice(first, min(first + self._stage.count, len(self.times)))
            self._stage.set(self.times[rows], position[rows], attitude[rows])
            halves = [to_8bit(self._stage.shoot(path, rows)) for path in (self._aboard, self._behind)]
            for k, number in enumerate(range(rows.start, rows.stop)):
                row = int(np.clip(np.searchsorted(self.track.times, self.times[number], side="right") - 1, 0, None))
                near = self._lines(row)
                left = drawn_over(halves[0][k], near, self._aboard, number)
                right = drawn_over(halves[1][k], near, self._behind, number)
                picture = np.concatenate([left, right], axis=1)
                if number in self.chosen:
                    self.stills.append(picture)
                yield self._captioned(picture, number, float(np.linalg.norm(velocity[number])))

    def _captioned(self, picture: ArrayU8, number: int, speed: float) -> ArrayU8:
        row = self.flight.row
        leg = int(self._legs[min(int(np.searchsorted(self.track.times, self.times[number])), len(self._legs) - 1)])
        gate = f"  gate {leg + 1} of {len(row['passages'])}"
        name = f"{who_flew(self.flight)}, {row['course']}"
        return self._layout.with_caption(picture, name, [f"{self.times[number]:.1f} s", f"{speed:.1f} m/s", gate])

    def _lines(self, row: int) -> list[Shape]:
        """Return what is drawn in at a row of the trace."""
        leg = int(self._legs[row])
        lines: list[Shape] = []
        plan = self.flight.trace.plan_at(row)
        if len(plan) > 1:
            lines.append((plan.astype(np.float64), PLANNED, 2))
        for number in range(leg, min(leg + 1 + _AHEAD, len(self.flight.gates))):
            shape = self.flight.gates[number]
            lines.append((_closed(shape.ring), TRUE, 3))
            offset = self._offset(row, number)
            if np.isfinite(offset).all():
                # Thinner: where both are the same, both are seen.
                lines.append((_closed(shape.ring + offset), BELIEVED, 1))
                lines += self._sigma(row, number, shape.center + offset, shape.left)
        return lines

    def _offset(self, row: int, number: int) -> Array:
        """Return by how much the pilot has a gate beside where it is, from itself [m], (3,); NaN where it is unsaid."""
        trace = self.flight.trace
        if "gates" not in trace.said or "position" not in trace.said:
            return np.full(3, np.nan)
        believed = trace.said["gates"][row, number].astype(np.float64) - trace.said["position"][row]
        return np.asarray(believed - (self.flight.gates[number].center - trace.position[row]))

    def _sigma(self, row: int, number: int, center: Array, left: Array) -> list[Shape]:
        """Return a bar of 2 sigma to each side."""
        said = self.flight.trace.said.get("gate_sigma")
        sigma = np.nan if said is None else float(said[row, number])
        return [(center + 2.0 * sigma * np.outer([-1.0, 1.0], left), BELIEVED, 3)] if np.isfinite(sigma) else []


def _closed(ring: Array) -> Array:
    return np.vstack([ring, ring[:1]])


def drawn_over(picture: ArrayU8, lines: Sequence[Shape], path: CameraPath, number: int) -> ArrayU8:
    """Return a picture with lines of the world drawn over it, whatever hides them; what is behind the camera is left out.

    Args:
        picture: RGB, (height, width, 3).
        lines: What is drawn, the last on top.
        path: The camera.
        number: Of the picture on it.
    """
    from PIL import Image, ImageDraw

    assert isinstance(path.projection, Pinhole)
    size = (picture.shape[1], picture.shape[0])
    layer = Image.new("RGBA", (_FINER * size[0], _FINER * size[1]))
    draw = ImageDraw.Draw(layer)
    for points, colour, width in lines:
        local = frames.rotate_inverse(path.attitude[number], points - path.position[number])
        for start, end in clipped(local):
            ends, _ = path.projection.project(np.stack([start, end]))
            draw.line([(float(u), float(v)) for u, v in _FINER * ends], fill=(*colour, 255), width=_FINER * width)
    laid = Image.fromarray(picture).convert("RGBA")
    laid.alpha_composite(layer.resize(size, Image.Resampling.BOX))
    return np.asarray(laid.convert("RGB"))


def clipped(points: Array) -> list[tuple[Array, Array]]:
    """Return the parts of a line's pieces that lie before a camera.

    Args:
        points: In the optical frame, z ahead [m], (n, 3).
    """
    pieces = []
    for start, end in pairwise(points):
        if max(start[2], end[2]) <= _NEAR:
            continue
        share = [(_NEAR - start[2]) / (end[2] - start[2]) if point[2] < _NEAR else None for point in (start, end)]
        cut = [point if k is None else start + k * (end - start) for k, point in zip(share, (start, end), strict=True)]
        pieces.append((cut[0], cut[1]))
    return pieces
