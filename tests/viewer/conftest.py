"""Loopback sockets for the viewer's server, and no others; a small flight to look at."""

from __future__ import annotations

import _socket
import socket
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
def loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sockets reach 127.0.0.1; every other address still raises."""
    for name in ("bind", "connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, _local_only(name, getattr(socket.socket, name)))
    refused = socket.getaddrinfo

    def found(host: Any, *rest: Any, **options: Any) -> Any:
        return (_socket.getaddrinfo if host == "127.0.0.1" else refused)(host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", found)


def _local_only(name: str, refused: Callable[..., Any]) -> Callable[..., Any]:
    allowed = getattr(_socket.socket, name)

    def call(self: socket.socket, address: Any) -> Any:
        local = isinstance(address, tuple) and address[0] == "127.0.0.1"
        return (allowed if local else refused)(self, address)

    return call


@pytest.fixture
def server(loopback: None) -> Iterator[Any]:
    """A running server on a free port."""
    pytest.importorskip("viser")
    from airworthy.viewer.server import serve, stop

    running = serve(port=0)
    yield running
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
