"""`airworthy view`: look at a scene, a flight, a capture or a training in the browser, or write it as a page."""

from __future__ import annotations

import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tyro.conf import Positional

from airworthy.cli.common import gathered, run_tyro
from airworthy.cli.logs import read_options
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.idle_options import IdleRule, refuse_idle

if TYPE_CHECKING:
    from airworthy.viewer.cameras import CameraSource
    from airworthy.viewer.logs import LogView
    from airworthy.viewer.subjects import Subject

_DESCRIPTION = (
    "Look at a scene, a splat file, a recorded flight, a flight log, a capture or a training in the browser, on this machine"
    " only. Ctrl-C ends it; --export writes one HTML file instead."
    " Needs the extra 'viewer': pip install 'airworthy[viewer]'."
)
RECORDED = "recorded"


@dataclass(frozen=True)
class ViewConfig:
    """What to look at."""

    what: Positional[str]
    """A folder of `airworthy fly` or `airworthy demo`; a flight log as `airworthy logs show` reads it; NAME[:INDEX][@SEED] of
    a scene or the path of one; a splat file; a capture; or a folder of `airworthy capture train`."""
    scene: str | None = None
    """Of a flight or a log: show it in this scene instead of the one it was flown in."""
    vehicle: str = ""
    """Of a log: who is drawn; empty: a vehicle with as many rotors."""
    start: tuple[float, float, float, float] | None = None
    """Of a log: where its first pose is to lie, x, y, z [m], and its heading [deg]; without it, where the log has it."""
    map: Path | None = None
    """Of a log that is a plain table: the `mapping.toml` that says what its columns mean."""
    set: tuple[str, ...] = ()
    """As of `airworthy logs show`."""
    topic: tuple[str, ...] = ()
    """As of `airworthy logs show`."""
    env: int | None = None
    """Of a flight: begin with this environment."""
    camera: str = "auto"
    """Of a flight: a camera of `airworthy sensors` to render live; "recorded" or "recorded:NAME" for recorded images; "auto"
    for these where there are any, else a plain camera; "none"."""
    splats: int = 1_000_000
    """Most gaussians to show; more are merged."""
    capture: Path | None = None
    """Of a scene, splats or a training: also show the cameras of this capture, in the same frame."""
    training: bool = False
    """Of a training: keep up with it, showing every state that it saves."""
    export: Path | None = None
    """Write one HTML file that opens without a server, instead of opening one."""
    host: str = "127.0.0.1"
    """Address to listen on: a loopback address, since the server asks nobody for a password."""
    port: int | None = None
    """Port to listen on, 0 for any free one; without it, the first free one from 8080 on."""
    open: bool = False
    """Open the browser."""


RULES = (
    IdleRule(
        ("host", "port", "open", "training"),
        lambda config: config.export is not None,
        "with --export, which serves nobody",
    ),
)
"""Options of `airworthy view` that change nothing beside the others."""


def main(argv: list[str]) -> int:
    """Serve until interrupted; users' mistakes raise AirworthyError, which the command line prints."""
    config = run_tyro(ViewConfig, gathered(argv, ("--set", "--topic")), "airworthy view", _DESCRIPTION)
    if config.splats < 1:
        raise AirworthyError(f"--splats is {config.splats}; expected 1 or more.")
    refuse_idle(config, RULES)
    from airworthy.viewer.subjects import load_subject, with_capture

    if config.export is not None:
        _check_export(config.export)
    subject = load_subject(config.what, config.scene, _log_view(config))
    _check(config, subject)
    if subject.flight is not None and subject.note:
        print(subject.note)  # of a log: what nothing told, and who is drawn instead
    if config.capture is not None:
        subject = with_capture(subject, config.capture)
    camera = camera_of(config.camera, subject)
    return _serve(config, subject, camera) if config.export is None else _export(config, config.export, subject, camera)


def _log_view(config: ViewConfig) -> LogView | None:
    """Return how a log is to be shown; None where nothing is said of one."""
    from airworthy.viewer.logs import LogView

    options = read_options(config)
    view = LogView(options, config.vehicle, config.start)
    return None if view == LogView() else view


def _serve(config: ViewConfig, subject: Subject, camera: CameraSource | None) -> int:
    """Serve until interrupted."""
    from airworthy.viewer.playback import Viewer
    from airworthy.viewer.server import PORT, free_port, serve, stop

    port = free_port(config.host) if config.port is None else config.port
    server = serve(config.host, port)
    viewer: Viewer | None = None
    try:
        viewer = Viewer(server, subject, camera, config.splats)
        if config.env is not None:
            viewer.choose(config.env)
        if config.training:
            viewer.watch()
        taken = "" if config.port is not None or port == PORT else f", since port {PORT} is taken"
        print(f"{subject.title}: {viewer.url}{taken} (Ctrl-C ends)", flush=True)
        if config.open:
            webbrowser.open(viewer.url)
        viewer.run()
    except KeyboardInterrupt:
        print("Closed.")
    finally:
        stop(server) if viewer is None else viewer.close()
    return 0


def _check_export(path: Path) -> None:
    """Refuse what could not be written before a place is made and shown."""
    from airworthy.core.files import refuse_unwritable

    if path.suffix.lower() not in (".html", ".htm"):
        raise AirworthyError(f"--export is {str(path)!r}; a recording is an .html file.")
    if path.parent.is_dir():
        refuse_unwritable(path)


def _export(config: ViewConfig, path: Path, subject: Subject, camera: CameraSource | None) -> int:
    """Write one HTML file; the server that it is recorded from is open on this machine meanwhile."""
    from airworthy.viewer.playback import Viewer
    from airworthy.viewer.recording import export_recording
    from airworthy.viewer.server import serve

    viewer = Viewer(serve(port=0), subject, camera, config.splats)
    try:
        if config.env is not None:
            viewer.choose(config.env)
        print(f"Wrote {export_recording(viewer, path).text()}.")
    finally:
        viewer.close()
    return 0


def _check(config: ViewConfig, subject: Subject) -> None:
    """Refuse options that belong to flights or trainings where there is none."""
    if config.training and subject.training is None:
        raise AirworthyError(f"--training belongs to a folder of `airworthy capture train`, and {config.what!r} is none.")
    if config.capture is not None and subject.capture is not None:
        raise AirworthyError(f"{config.what!r} is a capture itself: leave --capture out.")
    if subject.flight is None:
        # A scene by itself carries no camera whose images could be shown.
        given = {"scene": config.scene is not None, "env": config.env is not None, "camera": config.camera != "auto"}
        for name, is_given in given.items():
            if is_given:
                raise AirworthyError(f"--{name} belongs to a flight, and {config.what!r} is {_kind(subject)}: leave it out.")
    elif config.env is not None and config.env not in subject.flight.envs:
        raise AirworthyError(
            f"There is no environment {config.env} in {config.what!r}, which holds {len(subject.flight.envs)}."
        )


def _kind(subject: Subject) -> str:
    if subject.training is not None:
        return "a training"
    return "a capture" if subject.scene is None else "a scene"


def camera_of(choice: str, subject: Subject) -> CameraSource | None:
    """Return where the camera's images come from.

    Raises:
        AirworthyError: Nothing was recorded, there is nothing to see, or no such camera.
    """
    from airworthy.viewer.cameras import LiveCamera, RecordedCamera, recorded_names

    flight = subject.flight
    if flight is None or choice == "none":
        return None
    kind, _, wanted = choice.partition(":")
    names = recorded_names(Path(flight.folder)) if kind in ("auto", RECORDED) else []
    if kind == RECORDED or (kind == "auto" and names):
        if not names:
            raise AirworthyError(
                f"No colour images were recorded in {str(flight.folder)!r}: fly with --sensors, or name a camera."
            )
        if wanted and wanted not in names:
            raise unknown_name("recorded camera", wanted, names)
        return RecordedCamera(Path(flight.folder), wanted or names[0])
    if subject.scene is None:
        if kind == "auto":
            return None
        raise AirworthyError("A camera needs something to see: name a --scene (`airworthy scenes` lists them).")
    return LiveCamera(subject.scene, "" if kind == "auto" else choice, flight.vehicle(flight.envs[0]))
