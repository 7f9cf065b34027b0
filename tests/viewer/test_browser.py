"""A real browser opens the viewer, sees the scene, and plays a flight."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("viser")

from tests.viewer.chromium import PROGRAM, Page

from airworthy.scenes.record import Scene, SplatPlacement
from airworthy.scenes.splats import Splats
from airworthy.viewer import Subject, Viewer, load_subject

pytestmark = pytest.mark.skipif(not PROGRAM.is_file(), reason="no Chromium")

SMALL = (640, 420)
"""Few pixels, since the tests' browser draws without a GPU."""


def _left(pixels: np.ndarray) -> np.ndarray:
    """What is left of the panel and below the browser's note about software drawing."""
    return pixels[150:, :300]


def test_a_browser_opens_the_viewer_and_plays_a_flight(server: Any, flown: Path, tmp_path: Path) -> None:
    """The green floor is seen; playing, the vehicle leaves where it was, and the words say so."""
    viewer = Viewer(server, load_subject(str(flown)))
    viewer.controls.playing.value = False
    server.initial_camera.position = np.array([-0.6, -1.6, 2.0])  # near the start, so that the vehicle is many pixels wide
    server.initial_camera.look_at = np.array([1.0, 0.3, 1.0])

    def green(pixels: np.ndarray) -> bool:
        red, green, blue = _left(pixels)[-40:].reshape(-1, 3).mean(0)
        return bool(green > red + 20 and green > blue + 20)

    with Page(tmp_path / "profile", SMALL) as page:
        page.open(viewer.url)
        page.until_text("flight 0: 0.00 s")
        before = page.until_shown(tmp_path / "before.png", green)
        threading.Thread(target=_play, args=(viewer,), daemon=True).start()
        page.until_text(f"flight 0: {viewer.duration:.2f} s")

        def moved(pixels: np.ndarray) -> bool:
            return bool((np.abs(pixels - before).max(-1) > 40)[150:, :300].sum() >= 60)

        page.until_shown(tmp_path / "after.png", moved)


def _play(viewer: Viewer) -> None:
    """To the end, as the loop of `run` does it, and no further."""
    while viewer.time < viewer.duration:
        viewer.controls.playing.value = True
        viewer.step(min(0.1, viewer.duration - viewer.time))
    viewer.controls.playing.value = False
    viewer.show(viewer.duration)


@pytest.mark.slow
def test_keys_choose_flights_and_views(server: Any, flown: Path, tmp_path: Path) -> None:
    viewer = Viewer(server, load_subject(str(flown)))
    viewer.controls.playing.value = False
    with Page(tmp_path / "profile", SMALL) as page:
        page.open(viewer.url)
        page.until_text("flight 0: 0.00 s")
        page.press("PageDown", "PageDown", 34)
        page.until_text("flight 1: 0.00 s")
        page.press("End", "End", 35)
        page.until_text(f"flight 1: {viewer.duration:.2f} s")
        page.press("c", "KeyC", 67)
        deadline = 100
        while viewer.controls.view.value != "chase" and deadline:
            deadline -= 1
            page.text()  # takes a moment
        assert viewer.controls.view.value == "chase"
        (client,) = server.get_clients().values()
        body = viewer.nodes["/flight/vehicle"].position
        assert np.linalg.norm(client.camera.position - body) < 5.0
        page.press(" ", "Space", 32)
        while not viewer.controls.playing.value and deadline:
            deadline -= 1
            page.text()
        assert viewer.controls.playing.value


@pytest.mark.slow
def test_splats_have_their_colours(server: Any, tmp_path: Path) -> None:
    """A flat red patch of fine gaussians, seen from the side, is red in the middle of the picture, in any unit of its file."""
    x, z = np.meshgrid(np.arange(-1.0, 1.0, 0.02), np.arange(-1.0, 1.0, 0.02))
    points = 1e-3 * np.stack((x, 0.0 * x, z), axis=-1).reshape(-1, 3)
    count = len(points)
    turns, colors = np.tile((0.0, 0.0, 0.0, 1.0), (count, 1)), np.tile((0.8, 0.1, 0.2), (count, 1))
    harmonics = ((colors - 0.5) / 0.28209479177387814)[:, None]
    cloud = Splats(points, turns, np.full((count, 3), 1.5e-5), np.full(count, 0.99), harmonics)
    place = Scene("patch", clouds={"patch": cloud}, splats=(SplatPlacement("patch", scale=1000.0),))
    viewer = Viewer(server, Subject("patch", place))
    server.initial_camera.position, server.initial_camera.look_at = np.array([0.0, -2.0, 0.0]), np.zeros(3)

    def red(pixels: np.ndarray) -> bool:
        middle = pixels[200:220, 150:170].reshape(-1, 3).mean(0)  # beside panel and notices
        return bool(np.abs(middle - [204.0, 26.0, 51.0]).max() < 20)  # opacity 0.99, and the browser's low-pass filter

    with Page(tmp_path / "profile", SMALL) as page:
        page.open(viewer.url)
        page.until_shown(tmp_path / "patch.png", red, 120.0)
