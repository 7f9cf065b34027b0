"""`airworthy film`: a film of a recorded flight, from any camera, with its contact sheet."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from tyro.conf import Positional

from airworthy.benchmarks.fly.film import VIDEO_STEM, VideoOptions, record_video
from airworthy.cli.common import emit_json, run_tyro

_DESCRIPTION = (
    "Film a flight that was recorded, without flying it again: writes an MP4 (with the extra 'video') or an animated WebP, and"
    " a contact sheet. `airworthy fly --record video` does the same as it flies."
)


@dataclass(frozen=True)
class FilmConfig:
    """What to film, and how."""

    folder: Positional[Path]
    """A folder that `airworthy fly` wrote."""
    scene: str | None = None
    """Film it in this scene instead of the one it was flown in."""
    env: int | None = None
    """Which flight; without one, the first."""
    camera: str = "auto"
    """onboard, chase, orbit, fixed, a camera of the vehicle's record or a device; two joined by a plus put the second into the
    corner; "auto" is onboard+chase."""
    size: tuple[int, int] | None = None
    """Width and height [px]; without one, 640 wide in the camera's shape."""
    rate: float = 30.0
    """Frames per second [Hz]."""
    samples: int = 4
    """Rays per pixel of surfaces: 1, 2, 4 or 8."""
    caption: bool = True
    """Write vehicle, time and speed into the picture."""
    distance: float | None = None
    """Of chase and orbit from the vehicle [m]; without one, five times its reach."""
    out: Path | None = None
    """The film; its suffix, .mp4 or .webp, may be left out. Without one, a name made of the cameras, in the folder."""
    device: str = "cpu"
    """"cpu", or a CUDA device such as "cuda:0"."""
    json: bool = False
    """Print what was written as JSON."""


def main(argv: list[str]) -> int:
    """Run the command; users' mistakes raise AirworthyError, which the command line prints."""
    config = run_tyro(FilmConfig, argv, "airworthy film", _DESCRIPTION)
    options = VideoOptions(config.camera, config.env, config.size, config.rate, config.samples, config.caption, config.distance)
    name = "_".join((VIDEO_STEM, *config.camera.split("+")))
    path = config.folder / name if config.out is None else config.out
    video = record_video(config.folder, config.scene, path, options, device=config.device, quiet=config.json)
    if config.json:
        emit_json(asdict(video))
    else:
        print(video.summary_line)
    return 0
