"""Films of recorded flights: what the vehicle's camera saw, or how it looks from beside it, as a file that plays."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from airworthy.benchmarks.fly.config import FlyConfig
from airworthy.benchmarks.fly.run_record import recorded_scene, recorded_vehicles
from airworthy.core.arrays import ArrayU8
from airworthy.core.errors import AirworthyError
from airworthy.core.files import make_folder, sha256_file
from airworthy.core.jobs.progress import progress
from airworthy.core.schema import Bound, check_fields
from airworthy.reports.film.cameras import AUTO, CameraPath, camera_choice, camera_path
from airworthy.reports.film.files import NO_MP4, RATE_MAX, SUFFIXES, check_video_size, video_suffix, write_video
from airworthy.reports.film.flight_track import FilmLayout, FlightTrack
from airworthy.reports.film.rendered_scene import RenderedScene
from airworthy.simulation import FlightTable, read_flight
from airworthy.vehicles import Vehicle

if TYPE_CHECKING:
    from airworthy.scenes import Scene

__all__ = [
    "SHEET_SUFFIX",
    "VIDEO_STEM",
    "Filmed",
    "Video",
    "VideoOptions",
    "check_film",
    "check_video_options",
    "clear_film",
    "film_run",
    "record_video",
]

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
    distance: Annotated[float | None, Bound(0.05, 1000.0, "m")] = None
    """Of "chase" and "orbit" from the vehicle [m]; None: five times its reach, which is far for one that is long and thin."""

    def __post_init__(self) -> None:
        check_fields(self, "VideoOptions.")
        # "auto" has a chase beside the view from on board.
        if self.distance is not None and not {"chase", "orbit", AUTO} & set(self.camera.split("+")):
            raise AirworthyError(
                f"A distance of {self.distance:g} m changes nothing for the camera {self.camera!r}: name chase or orbit, or"
                " leave it out."
            )


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
    def summary_line(self) -> str:
        """Where it is and how long it took, in one line; and the hint, if there is one, in a second."""
        speed = f"{self.frames} frames in {self.seconds:.1f} s"
        return f"Film: {self.path} ({speed}), contact sheet: {self.sheet}" + (f"\n{self.hint}" if self.hint else "")

    def described(self) -> dict[str, Any]:
        """Return the fields for summary.json; files are named relative to its folder."""
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
        camera_choice(options.camera, flyer)


def record_video(
    flights: str | Path | FlightTable,
    scene: Scene | str | None,
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
        scene: The scene, by itself or by name; None: the one that the folder says was flown in.
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
    if flyer is None:
        flown_by = recorded_vehicles("" if isinstance(flights, FlightTable) else flights, meta)
        flyer = flown_by[(env or 0) % len(flown_by)]
    scenery = _scenery(scene, None if isinstance(flights, FlightTable) else recorded_scene(flights, meta))
    begun = time.perf_counter()
    film = _Film(track, scenery, flyer, options, device)
    target = _target(path)
    make_folder(target.parent)
    sheet = target.with_name(target.stem + SHEET_SUFFIX)
    frames = _then(film.pictures(), lambda: sheet.unlink(missing_ok=True))  # an older film's does not stand beside this one
    write_video(target, progress(frames, "Filming", film.count, quiet=quiet), film.count, film.size, options.rate)
    film.write_sheet(sheet)
    hint = NO_MP4 if target.suffix.lower() == ".webp" and not Path(path).suffix else ""
    seconds = time.perf_counter() - begun
    start = float(film.times[0])
    return Video(target, sheet, env or 0, film.cameras, film.size, options.rate, film.count, start, seconds, hint)


def _then(pictures: Iterator[ArrayU8], end: Callable[[], object]) -> Iterator[ArrayU8]:
    """Yield the same, and something done behind the last."""
    yield from pictures
    end()


def _target(path: str | Path) -> Path:
    path = Path(path)
    if path.suffix and path.suffix.lower() not in SUFFIXES:
        raise AirworthyError(f"A film was to be written to {str(path)!r}; expected a name that ends in .mp4 or .webp.")
    return path if path.suffix else path.with_name(path.name + video_suffix())


def _scenery(given: Scene | str | None, flown_in: str | None) -> Scene:
    from airworthy.scenes import Scene, scene

    if isinstance(given, Scene):
        return given
    name = given or flown_in
    if not name:
        raise AirworthyError("A film needs something to see: name a scene (`airworthy scenes` lists them).")
    return scene(name)


@dataclass(eq=False)
class _Film:
    """One film in the making."""

    track: FlightTrack
    scene: Scene
    flyer: Vehicle
    options: VideoOptions
    device: str
    stills: list[ArrayU8] = field(default_factory=list)
    """Frames of the contact sheet, as far as they have been made."""

    def __post_init__(self) -> None:
        options = self.options
        main, corner = camera_choice(options.camera, self.flyer)
        self.times = self.track.frame_times(options.rate)
        self.count = len(self.times)
        self.chosen = np.unique(np.round(np.linspace(0, self.count - 1, SHEET_FRAMES)).astype(int))
        pixels = options.size[0] * options.size[1] if options.size else 640 * 360
        at_once = max(1, min(16, PIXELS_AT_ONCE // pixels, self.count))
        self.stage = RenderedScene(self.scene, self.flyer, at_once, options.samples, self.device)
        self.main = self._path(main, options.size)
        self.size = (self.main.projection.width, self.main.projection.height)
        self.layout = FilmLayout(*self.size)
        self.corner = self._path(corner, self.layout.corner_size) if corner else None
        self.cameras = "+".join(path.name for path in (self.main, self.corner) if path is not None)

    def _path(self, specifier: str, size: tuple[int, int] | None) -> CameraPath:
        return camera_path(specifier, self.track, self.times, self.flyer, self.stage.batch, size, self.options.distance)

    def pictures(self) -> Iterator[ArrayU8]:
        """Yield every frame, in order; those of the contact sheet are kept."""
        from airworthy.optics.tone import to_8bit

        position, attitude, velocity = self.track.pose(self.times)
        bent = self.track.bent(self.times)
        for first in range(0, self.count, self.stage.count):
            rows = slice(first, min(first + self.stage.count, self.count))
            self.stage.set(self.times[rows], position[rows], attitude[rows], None if bent is None else bent[rows])
            large = to_8bit(self.stage.shoot(self.main, rows))
            small = None if self.corner is None else to_8bit(self.stage.shoot(self.corner, rows))
            for k, frame in enumerate(range(rows.start, rows.stop)):
                if frame in self.chosen:
                    self.stills.append(large[k])
                picture = large[k] if small is None else self.layout.with_corner(large[k], small[k])
                yield self._captioned(picture, self.times[frame], float(np.linalg.norm(velocity[frame])))

    def _captioned(self, picture: ArrayU8, now: float, speed: float) -> ArrayU8:
        if not self.options.caption:
            return picture
        return self.layout.with_caption(picture, self.flyer.name, [f"{now:.1f} s", f"{speed:.1f} m/s"])

    def write_sheet(self, path: Path) -> Path:
        """Return the contact sheet, of the frames that were kept."""
        from airworthy.reports.film.sheet import write_sheet

        return write_sheet(path, self.stills, self.times[self.chosen], self.track, self.scene, self.flyer.name)


# ---- The film of a run of `airworthy fly` -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Filmed:
    """What came of filming a run."""

    video: Video | None = None
    interrupted: bool = False
    """Somebody stopped it; nothing is left of the film."""
    error: AirworthyError | None = None
    """Why there is no film; to be raised once the flights' evidence is written."""


def options_of(config: FlyConfig) -> VideoOptions:
    """Return how a run's flight is filmed."""
    return VideoOptions(config.video_camera, config.video_env, config.video_size, config.video_rate)


def check_film(config: FlyConfig, vehicles: Sequence[Vehicle]) -> None:
    """Refuse, before anything is flown, a film that could not be made; raises AirworthyError."""
    if "video" in config.record:
        check_video_options(options_of(config), vehicles[config.video_env % len(vehicles)])


def clear_film(folder: Path) -> None:
    """Remove what a film that was not finished may have left."""
    for suffix in (*SUFFIXES, SHEET_SUFFIX):
        with contextlib.suppress(FileNotFoundError):
            (folder / (VIDEO_STEM + suffix)).unlink()


def film_run(
    config: FlyConfig, table: FlightTable, scene: Scene | None, vehicles: Sequence[Vehicle], quiet: bool = True
) -> Filmed:
    """Film one of the flights into the run's folder, where that is asked for; flights and evidence never depend on it.

    Args:
        config: Of the run; films only where its `record` names "video", of the flight `video_env`.
        table: Its recorded flights.
        scene: The scene; None: there is nothing to film.
        vehicles: Of the flights, repeated in order over the environments.
        quiet: Without a bar of progress.
    """
    if "video" not in config.record or scene is None:
        return Filmed()
    flyer = vehicles[config.video_env % len(vehicles)]
    try:
        path = config.out / VIDEO_STEM
        return Filmed(record_video(table, scene, path, options_of(config), flyer=flyer, device=config.device, quiet=quiet))
    except KeyboardInterrupt:
        clear_film(config.out)
        return Filmed(interrupted=True)
    except AirworthyError as error:
        clear_film(config.out)
        return Filmed(error=error)
