"""Films of recorded flights: what the vehicle's camera saw, or how it looks from beside it, as a file that plays."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.core.files import make_folder, sha256_file
from airworthy.core.progress import progress
from airworthy.evaluation.video_cameras import AUTO, CameraPath, camera_path, camera_words
from airworthy.evaluation.video_files import NO_MP4, RATE_MAX, SUFFIXES, check_video_size, video_suffix, write_video
from airworthy.evaluation.video_stage import Stage
from airworthy.evaluation.video_track import FlightTrack
from airworthy.evaluation.video_words import Layout
from airworthy.simulation import FlightTable, read_flight
from airworthy.vehicles import Vehicle, read_vehicle, vehicle

if TYPE_CHECKING:
    from airworthy.scenes import Scene

__all__ = ["SHEET_SUFFIX", "VIDEO_STEM", "Video", "VideoOptions", "check_video_options", "record_video"]

Picture = NDArray[np.uint8]
Floats = NDArray[np.float64]

VIDEO_STEM = "video"
"""Name of a film in a run's folder, without its suffix."""
SHEET_SUFFIX = "_sheet.png"
"""The contact sheet of video.mp4 is video_sheet.png."""
SHEET_FRAMES = 12
PIXELS_AT_ONCE = 1 << 21
"""Of all frames that are rendered in one call: bounds the memory, whatever the size and length of a film."""


@dataclass(frozen=True)
class VideoOptions:
    """How a flight is filmed."""

    camera: str = AUTO
    """"onboard" (the vehicle's first colour camera, or a plain one), "chase", "orbit", "fixed", a camera of the vehicle's
    record or of `airworthy sensors`; two joined by a plus put the second into the corner; "auto" is "onboard+chase"."""
    env: int | None = None
    """Environment of the flight; None: the first."""
    size: tuple[int, int] | None = None
    """Width and height, even [px]; None: 640 wide, in the camera's shape."""
    rate: float = 30.0
    """Frames per second."""
    samples: int = 4
    """Rays per pixel of surfaces: 1, 2, 4 or 8."""
    caption: bool = True
    """Write vehicle, time and speed into the picture."""


@dataclass(frozen=True)
class Video:
    """A film that was written."""

    path: Path
    sheet: Path
    """Its contact sheet, a PNG."""
    env: int
    camera: str
    """Main camera, and after a plus the one in the corner."""
    size: tuple[int, int]
    """[px]"""
    rate: float
    """Frames per second."""
    frames: int
    start: float
    """Of the flight, at the first frame [s]."""
    seconds: float
    """That rendering and writing it took [s]."""
    hint: str = ""
    """What would make it better, in one sentence."""

    @property
    def told(self) -> str:
        """Where it is and how long it took, in one line; and the hint, if there is one, in a second."""
        speed = f"{self.frames} frames in {self.seconds:.1f} s"
        return f"Film: {self.path} ({speed}), contact sheet: {self.sheet}" + (f"\n{self.hint}" if self.hint else "")

    def described(self) -> dict[str, Any]:
        """For summary.json; files are named relative to its folder."""
        return {
            "file": self.path.name,
            "sha256": sha256_file(self.path),
            "contact_sheet": self.sheet.name,
            "env": self.env,
            "camera": self.camera,
            "size_px": list(self.size),
            "rate_hz": self.rate,
            "frames": self.frames,
            "start_s": self.start,
        }


def check_video_options(options: VideoOptions, flyer: Vehicle | None = None) -> None:
    """Refuse what cannot be filmed, before anything is rendered.

    Raises:
        AirworthyError: One sentence.
    """
    if options.size is not None:
        check_video_size(options.size)
    if not 1.0 <= options.rate <= RATE_MAX:
        raise AirworthyError(f"A film of {options.rate:g} frames per second was asked for; expected 1 to {RATE_MAX:g}.")
    if flyer is not None:
        camera_words(options.camera, flyer)


def record_video(
    flights: str | Path | FlightTable,
    place: Scene | str | None,
    path: str | Path,
    options: VideoOptions | None = None,
    *,
    flyer: Vehicle | None = None,
    device: str = "cpu",
    quiet: bool = True,
) -> Video:
    """Film a recorded flight, and write a contact sheet beside it.

    Args:
        flights: A folder of `airworthy fly`, or its table.
        place: The scene, by itself or by name; None: the one that the folder says was flown in.
        path: The film: .mp4 or .webp; without a suffix, .mp4 where PyAV is installed and .webp elsewhere.
        options: How.
        flyer: Who flew; by default what the folder says.
        device: Where images are rendered: "cpu", or a CUDA device.
        quiet: Show no progress.

    Raises:
        AirworthyError: There is nothing to film, or something in the options cannot be used. Nothing is left of a film that
            was not finished.
    """
    options = options or VideoOptions()
    table, meta = (flights, {}) if isinstance(flights, FlightTable) else read_flight(flights)
    check_video_options(options)
    env = int(table.envs[0]) if options.env is None and table.env_count else options.env
    track = FlightTrack.of(table, env)
    flyer = flyer or _flyer(meta, env or 0)
    scenery = _scenery(place, meta)
    begun = time.perf_counter()
    film = _Film(track, scenery, flyer, options, device)
    target = _target(path)
    make_folder(target.parent)
    write_video(target, progress(film.pictures(), "Filming", film.count, quiet=quiet), film.count, film.size, options.rate)
    sheet = target.with_name(target.stem + SHEET_SUFFIX)
    film.write_sheet(sheet)
    hint = NO_MP4 if target.suffix.lower() == ".webp" and not Path(path).suffix else ""
    seconds = time.perf_counter() - begun
    start = float(film.times[0])
    return Video(target, sheet, env or 0, film.cameras, film.size, options.rate, film.count, start, seconds, hint)


def _target(path: str | Path) -> Path:
    path = Path(path)
    if path.suffix and path.suffix.lower() not in SUFFIXES:
        raise AirworthyError(f"A film was to be written to {str(path)!r}; expected a name that ends in .mp4 or .webp.")
    return path if path.suffix else path.with_name(path.name + video_suffix())


def _scenery(place: Scene | str | None, meta: dict[str, Any]) -> Scene:
    from airworthy.scenes import Scene, scene

    if isinstance(place, Scene):
        return place
    name = place or meta.get("scene")
    if not isinstance(name, str) or not name:
        raise AirworthyError("A film needs something to see: name a scene (`airworthy scenes` lists them).")
    return scene(name)


def _flyer(meta: dict[str, Any], env: int) -> Vehicle:
    config = meta.get("config")
    names = config.get("vehicle") if isinstance(config, dict) else None
    names = names if isinstance(names, list) and names else [meta.get("vehicle")]
    name = names[env % len(names)]
    if not isinstance(name, str) or not name:
        raise AirworthyError("The flights do not say who flew: give the vehicle, as in flyer=vehicle('carl').")
    return read_vehicle(name) if name.endswith(".toml") or "/" in name else vehicle(name)


@dataclass(eq=False)
class _Film:
    """One film in the making."""

    track: FlightTrack
    place: Scene
    flyer: Vehicle
    options: VideoOptions
    device: str
    stills: list[Picture] = field(default_factory=list)
    """Frames of the contact sheet, as far as they have been made."""

    def __post_init__(self) -> None:
        options = self.options
        main, corner = camera_words(options.camera, self.flyer)
        self.times = self.track.frame_times(options.rate)
        self.count = len(self.times)
        self.chosen = np.unique(np.round(np.linspace(0, self.count - 1, SHEET_FRAMES)).astype(int))
        pixels = options.size[0] * options.size[1] if options.size else 640 * 360
        at_once = max(1, min(16, PIXELS_AT_ONCE // pixels, self.count))
        self.stage = Stage(self.place, self.flyer, at_once, options.samples, self.device)
        self.main = self._path(main, options.size)
        self.size = (self.main.projection.width, self.main.projection.height)
        self.layout = Layout(*self.size)
        self.corner = self._path(corner, self.layout.corner_size) if corner else None
        self.cameras = "+".join(path.name for path in (self.main, self.corner) if path is not None)

    def _path(self, word: str, size: tuple[int, int] | None) -> CameraPath:
        return camera_path(word, self.track, self.times, self.flyer, self.stage.batch, size)

    def pictures(self) -> Iterator[Picture]:
        """Every frame, in order; those of the contact sheet are kept."""
        from airworthy.sensors.tone import to_8bit

        position, attitude, velocity = self.track.pose(self.times)
        for first in range(0, self.count, self.stage.count):
            rows = slice(first, min(first + self.stage.count, self.count))
            self.stage.set(self.times[rows], position[rows], attitude[rows])
            large = to_8bit(self.stage.shoot(self.main, rows))
            small = None if self.corner is None else to_8bit(self.stage.shoot(self.corner, rows))
            for k, frame in enumerate(range(rows.start, rows.stop)):
                if frame in self.chosen:
                    self.stills.append(large[k])
                picture = large[k] if small is None else self.layout.with_corner(large[k], small[k])
                yield self._captioned(picture, self.times[frame], float(np.linalg.norm(velocity[frame])))

    def _captioned(self, picture: Picture, now: float, speed: float) -> Picture:
        if not self.options.caption:
            return picture
        return self.layout.with_caption(picture, self.flyer.name, [f"{now:.1f} s", f"{speed:.1f} m/s"])

    def write_sheet(self, path: Path) -> Path:
        """The contact sheet, of the frames that were kept."""
        from airworthy.evaluation.video_sheet import write_sheet

        return write_sheet(path, self.stills, self.times[self.chosen], self.track, self.place, self.flyer.name)
