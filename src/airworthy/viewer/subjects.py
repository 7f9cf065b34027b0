"""What is looked at: a scene, a splat file, the folder of a flight, a capture or a training, told apart by what it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from airworthy.core.errors import AirworthyError, AssetError, telling_refusals
from airworthy.core.files import read_json
from airworthy.core.jobs.block_job import KINDS, kind_of
from airworthy.logs.reading import holds_log
from airworthy.pilots import policy_word
from airworthy.pilots.network_files import CONTRACT_FILE
from airworthy.scenes import scene
from airworthy.scenes.actors import three
from airworthy.scenes.catalogue import holds_splats, is_path
from airworthy.scenes.record import Region, Scene, SplatPlacement
from airworthy.scenes.splats import SPLAT_SUFFIXES, Splats, read_splats
from airworthy.simulation.flights import FLIGHT_FILE, META_FILE
from airworthy.viewer.captures import holds_capture, read_thumbnails
from airworthy.viewer.flights import ShownFlight, load_flight
from airworthy.viewer.logs import LogView, shown_log
from airworthy.viewer.trainings import WatchedTraining, holds_training

if TYPE_CHECKING:
    from airworthy.capture.record import CaptureImages

__all__ = ["Subject", "load_subject", "splat_scene", "with_capture"]


_HEAD = 1 << 20
_DEMO = "demo.json"
"""In the folder of `airworthy demo`."""
_STRAY, _EDGE = 0.02, 0.05
"""Share of the gaussians that is left out at each side of a file's bounds, and the room around the others, of their extent."""


@dataclass(frozen=True, eq=False)
class Subject:
    """What to show."""

    title: str
    scene: Scene | None = None
    flight: ShownFlight | None = None
    bare: bool = False
    """The scene is a splat file without the surface that vehicles hit, which takes longer to find than the file to read."""
    capture: CaptureImages | None = None
    """Cameras to show, their images small."""
    training: WatchedTraining | None = None
    """A training of splats, whose newest state is the scene."""
    note: str = ""
    """What else there is to say of it."""


def load_subject(name: str, scene_name: str | None = None, log: LogView | None = None) -> Subject:
    """Find and read what a name means.

    Args:
        name: The folder of a flight, a splat file, or a scene as `airworthy.scenes.scene` takes it.
        scene_name: Of a flight: show it in this scene, instead of the one that its record names; of a log: in this scene.
        log: Of a log: how it is read and shown; anything else is refused. None: as it is.

    Raises:
        AirworthyError: There is none of this name, or it is damaged.
    """
    path = _of_demo(Path(name))
    if _is_flight(path):
        flight = load_flight(path)
        found, bare = _where(flight, scene_name)
        return Subject(path.resolve().name, found, flight, bare)
    if holds_log(path):
        shown, note = shown_log(path, log)
        found, bare = (None, False) if scene_name is None else _scene(scene_name)
        return Subject(path.resolve().name, found, shown, bare, note=note)
    if log is not None:
        raise AssetError(f"{name!r} is no flight log, and only of one a mapping, topics, a vehicle or a start are said.")
    if path.is_dir() and holds_training(path):
        return _training(path)
    held = kind_of(path) if path.is_dir() else ""
    if not held and holds_capture(path):
        return Subject(path.resolve().name, capture=read_thumbnails(path))
    if held == KINDS[CONTRACT_FILE]:
        raise AssetError(
            f"{name!r} holds a policy, of which only flights can be seen: `airworthy fly --pilot {policy_word(path)} --out"
            " FOLDER`, with its --vehicle, then `airworthy view FOLDER`."
        )
    if held not in ("", KINDS["scene.toml"]):
        raise AssetError(f"{name!r} holds {held}: there is nothing to look at in it but flights, scenes, captures and splats.")
    found, bare = _scene(name)
    return Subject(path.name if bare else found.name, found, None, bare)


def _training(path: Path) -> Subject:
    """Return a training as it is now; raises AssetError where it has saved nothing yet."""
    folder = WatchedTraining(path)
    state = folder.newest()
    if state is None:
        raise AssetError(f"The training in {str(path)!r} has saved nothing yet that is whole: ask again in a minute.")
    name = path.resolve().name
    return Subject(name, splat_scene(name, state.splats), bare=True, training=folder, note=f"{state.text()}.")


def with_capture(subject: Subject, folder: Path) -> Subject:
    """Return what is shown with the cameras of a capture; raises AirworthyError as `read_capture` does."""
    return replace(subject, capture=read_thumbnails(folder))


def _where(flight: ShownFlight, scene_name: str | None) -> tuple[Scene | None, bool]:
    """Return the scene that is named, else the one that was flown in."""
    if scene_name is not None:
        return _scene(scene_name)
    if flight.scene is None:
        return None, False
    try:
        return _scene(flight.scene)
    except AirworthyError as error:
        hint = f"The flight's scene {flight.scene!r} is not to be had (--scene takes another)"
        raise AirworthyError(f"{hint}: {error}") from error


@telling_refusals()
def _of_demo(path: Path) -> Path:
    """Of a demo's folder, that of the flight it ends with; any other path as it is.

    Raises:
        AssetError: The demo has not come to it yet, or its manifest is damaged.
    """
    manifest = path / _DEMO
    if not manifest.is_file():
        return path
    found = read_json(manifest, _HEAD)
    shown = found.get("view") if isinstance(found, dict) else None
    if not isinstance(shown, str) or Path(shown).name != shown:
        raise AssetError(f"{str(manifest)!r} is damaged: it does not name the flight to show.")
    if not _is_flight(path / shown):
        raise AssetError(f"The demo in {str(path)!r} has not come to its last flight yet: the same command goes on.")
    return path / shown


def _is_flight(path: Path) -> bool:
    """Tell whether a folder is one of `airworthy fly`, damaged or not; one of splats has a meta.json that says "means"."""
    if (path / FLIGHT_FILE).is_file():
        return True
    meta = path / META_FILE
    try:
        return meta.is_file() and b'"means"' not in meta.read_bytes()[:_HEAD]
    except OSError:
        return True  # whoever reads it says why it cannot be


def _scene(name: str) -> tuple[Scene, bool]:
    path = Path(name)
    if is_path(name) and holds_splats(path):
        splats = read_splats(path).splats
        return splat_scene(path.stem or "splats", splats), True
    if not path.exists() and path.suffix.lower() in SPLAT_SUFFIXES:
        raise AssetError(f"There is no file {name!r}.")
    return scene(name), False


def splat_scene(name: str, splats: Splats) -> Scene:
    """Return a scene of a cloud and nothing else, without the surface that vehicles hit."""
    return Scene(name, clouds={name: splats}, splats=(SplatPlacement(name),), lights=(), bounds=_bounds(splats))


def _bounds(splats: Splats) -> Region:
    """Return a box around most gaussians: a few often float far away from what was captured."""
    low, high = np.quantile(splats.position.astype(np.float64), (_STRAY, 1.0 - _STRAY), axis=0)
    edge = _EDGE * max(float((high - low).max()), 1e-3)
    return Region(three(low - edge), three(high + edge))
