"""The viewer's server, and a small flight to look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airworthy.benchmarks.fly.job import FlyConfig, run_fly
from airworthy.geometry import Box
from airworthy.scenes import write_scene
from airworthy.scenes.record import Instance, Material, Scene

Serve = Callable[[], Any]


@pytest.fixture
def server(loopback: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A running server on a free port; viewers that a test leaves open are closed first, lest their threads write to none."""
    pytest.importorskip("viser")
    from airworthy.viewer.playback import Viewer
    from airworthy.viewer.server import serve, stop

    opened: list[Viewer] = []
    begin = Viewer.__init__

    def noted(self: Viewer, *args: Any, **options: Any) -> None:
        opened.append(self)
        begin(self, *args, **options)

    monkeypatch.setattr(Viewer, "__init__", noted)
    running = serve(port=0)
    yield running
    for viewer in opened:
        for name in ("images", "plots", "colors", "_watch"):
            if (thread := getattr(viewer, name, None)) is not None:
                thread.close()
    stop(running)


@pytest.fixture(scope="session")
def flown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of two flights over a floor with a box; not to be changed."""
    folder = tmp_path_factory.mktemp("viewed") / "run"
    things = (Instance("floor", (0.0, 0.0, -0.05), materials=("green",)), Instance("cube", (3.0, 1.0, 0.5)))
    shapes = {"floor": Box((8.0, 8.0, 0.05)), "cube": Box((0.5, 0.5, 0.5))}
    place = Scene("yard", shapes, {"green": Material((0.05, 0.3, 0.05, 1.0))}, instances=things)
    write_scene(place, folder.parent / "yard")
    run_fly(
        FlyConfig(
            scene=str(folder.parent / "yard"),
            waypoints=("0,0,1", "2,0,1.5"),
            envs=2,
            randomize=("position=0.1",),
            seed=3,
            hold=0.2,
            record_rate=20.0,
            report=False,
            out=folder,
        )
    )
    return folder
