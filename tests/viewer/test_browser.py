"""A real browser opens the viewer and sees the scene and the flight move."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("viser")

from tests.viewer.chromium import PROGRAM, Page

from airworthy.viewer import Viewer, load_subject


def _pixels(path: Path) -> np.ndarray:
    from PIL import Image

    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB")).astype(int)


@pytest.mark.slow
@pytest.mark.skipif(not PROGRAM.is_file(), reason="no Chromium")
def test_a_flight_in_the_browser(server: Any, flown: Path, tmp_path: Path) -> None:
    viewer = Viewer(server, load_subject(str(flown)))
    viewer.playing.value = False
    server.initial_camera.position = np.array([-0.6, -1.6, 2.0])  # near the start, so that the vehicle is many pixels wide
    server.initial_camera.look_at = np.array([0.4, 0.0, 1.0])
    with Page(tmp_path / "profile") as page:
        page.open(viewer.url)
        deadline = time.monotonic() + 60.0
        while "flight 0: 0.00 s" not in page.text():
            assert time.monotonic() < deadline, page.text()
            time.sleep(0.5)
        time.sleep(6.0)  # software WebGL needs seconds for its first frames
        before = _pixels(page.picture(tmp_path / "before.png"))
        viewer.show(viewer.duration)
        while f"flight 0: {viewer.duration:.2f} s" not in page.text():
            assert time.monotonic() < deadline + 60.0, page.text()
            time.sleep(0.5)
        time.sleep(3.0)
        after = _pixels(page.picture(tmp_path / "after.png"))
    seen = before[200:, :600]  # left of the panel, below the note about software WebGL
    assert (np.abs(seen - seen[0, 0]).max(-1) > 20).mean() > 0.01  # something is drawn
    moved = np.abs(after - before)[200:, :600].max(-1) > 40
    assert moved.sum() >= 100  # the vehicle, half a metre wide at two metres, is gone from there
