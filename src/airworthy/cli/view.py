"""`airworthy view`: look at a scene or a flight in the browser."""

from __future__ import annotations

import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tyro.conf import Positional

from airworthy.cli.common import run_tyro
from airworthy.core.errors import AirworthyError, unknown_name

if TYPE_CHECKING:
    from airworthy.viewer.cameras import CameraSource
    from airworthy.viewer.subjects import Subject

_DESCRIPTION = (
    "Look at a scene, a splat file or a recorded flight in the browser, on this machine only. Ctrl-C ends it."
    " Needs the extra 'viewer': pip install 'airworthy[viewer]'."
)
RECORDED = "recorded"


@dataclass(frozen=True)
class ViewConfig:
    """What to look at."""

    what: Positional[str]
    """A folder of `airworthy fly` or `airworthy demo`; NAME[:INDEX][@SEED] of a scene or the path of one; or a splat file."""
    scene: str | None = None
    """Of a flight: show it in this scene instead of the one it was flown in."""
    env: int | None = None
    """Of a flight: begin with this environment."""
    camera: str = "auto"
    """Of a flight: a camera of `airworthy sensors` to render live; "recorded" or "recorded:NAME" for recorded images; "auto"
    for these where there are any, else a plain camera; "none"."""
    splats: int = 1_000_000
    """Most gaussians to show; more are merged."""
    host: str = "127.0.0.1"
    """Address to listen on: a loopback address, since the server asks nobody for a password."""
    port: int | None = None
    """Port to listen on, 0 for any free one; without it, the first free one from 8080 on."""
    open: bool = False
    """Open the browser."""


def main(argv: list[str]) -> int:
    """Serve until interrupted; users' mistakes raise AirworthyError, which the command line prints."""
    config = run_tyro(ViewConfig, argv, "airworthy view", _DESCRIPTION)
    if config.splats < 1:
        raise AirworthyError(f"--splats is {config.splats}; expected 1 or more.")
    from airworthy.viewer.playback import Viewer
    from airworthy.viewer.server import PORT, free_port, serve, stop
    from airworthy.viewer.subjects import load_subject

    subject = load_subject(config.what, config.scene)
    _check(config, subject)
    camera = camera_of(config.camera, subject)
    port = free_port(config.host) if config.port is None else config.port
    server = serve(config.host, port)
    viewer: Viewer | None = None
    try:
        viewer = Viewer(server, subject, camera, config.splats)
        if config.env is not None:
            viewer.choose(config.env)
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


def _check(config: ViewConfig, subject: Subject) -> None:
    """Options that belong to flights."""
    if subject.flight is None:
        # A scene by itself carries no camera whose images could be shown.
        given = {"scene": config.scene is not None, "env": config.env is not None, "camera": config.camera != "auto"}
        for name, is_given in given.items():
            if is_given:
                raise AirworthyError(f"--{name} belongs to a flight, and {config.what!r} is a scene: leave it out.")
    elif config.env is not None and config.env not in subject.flight.envs:
        raise AirworthyError(
            f"There is no environment {config.env} in {config.what!r}, which holds {len(subject.flight.envs)}."
        )


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
