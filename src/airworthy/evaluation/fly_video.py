"""The film of a run of `airworthy fly`."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from airworthy.core.errors import AirworthyError
from airworthy.evaluation.fly_config import FlyConfig
from airworthy.evaluation.video import SHEET_SUFFIX, VIDEO_STEM, Video, VideoOptions, check_video_options, record_video
from airworthy.evaluation.video_files import SUFFIXES
from airworthy.simulation import FlightTable
from airworthy.vehicles import Vehicle

if TYPE_CHECKING:
    from airworthy.scenes import Scene

__all__ = ["Filmed", "check_film", "clear_film", "film_run"]


@dataclass(frozen=True)
class Filmed:
    """What came of filming a run."""

    video: Video | None = None
    interrupted: bool = False
    """Somebody stopped it; nothing is left of the film."""
    error: AirworthyError | None = None
    """Why there is no film; to be raised once the flights' evidence is written."""


def options_of(config: FlyConfig) -> VideoOptions:
    """How a run's flight is filmed."""
    return VideoOptions(config.video_camera, config.video_env, config.video_size, config.video_rate)


def check_film(config: FlyConfig, vehicles: Sequence[Vehicle]) -> None:
    """Refuse, before anything is flown, a film that could not be made; raises AirworthyError."""
    if "video" in config.record:
        check_video_options(options_of(config), vehicles[config.video_env % len(vehicles)])


def clear_film(folder: Path) -> None:
    """Remove the film of an earlier run in this folder: it must not stand beside other flights."""
    for suffix in (*SUFFIXES, SHEET_SUFFIX):
        with contextlib.suppress(FileNotFoundError):
            (folder / (VIDEO_STEM + suffix)).unlink()


def film_run(
    config: FlyConfig, table: FlightTable, place: Scene | None, vehicles: Sequence[Vehicle], quiet: bool = True
) -> Filmed:
    """Film one of the flights into the run's folder, where that is asked for; flights and evidence never depend on it."""
    if "video" not in config.record or place is None:
        return Filmed()
    flyer = vehicles[config.video_env % len(vehicles)]
    try:
        path = config.out / VIDEO_STEM
        return Filmed(record_video(table, place, path, options_of(config), flyer=flyer, device=config.device, quiet=quiet))
    except KeyboardInterrupt:
        clear_film(config.out)
        return Filmed(interrupted=True)
    except AirworthyError as error:
        clear_film(config.out)
        return Filmed(error=error)
