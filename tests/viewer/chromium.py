"""A page in headless Chromium, driven through its debugging port: real time, so that a live page can be pictured."""

from __future__ import annotations

import base64
import json
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayAny

PROGRAM = Path("/usr/bin/chromium")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--remote-debugging-port=0",
)


def until(wanted: Callable[[], bool], timeout: float = 60.0) -> None:
    """Wait for something that another thread or process does."""
    deadline = time.monotonic() + timeout
    while not wanted():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.05)


class PageError(RuntimeError):
    """The browser could not do what it was told."""


class Page:
    """A browser with one page; ends with the `with` block.

    Args:
        folder: For the browser's own files.
        size: Of the window [px].
    """

    def __init__(self, folder: Path, size: tuple[int, int] = (960, 600)):
        self._folder = folder
        window = f"--window-size={size[0]},{size[1]}"
        line = [str(PROGRAM), *FLAGS, window, f"--user-data-dir={folder}", "about:blank"]
        self._process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._socket: Any = None
        self._count = 0

    def __enter__(self) -> Page:
        from websockets.sync.client import connect

        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        marker = self._folder / "DevToolsActivePort"
        deadline = time.monotonic() + 60.0
        while not (marker.is_file() and marker.read_text().count("\n")):
            assert time.monotonic() < deadline, "Chromium did not start"
            time.sleep(0.1)
        port = marker.read_text().splitlines()[0]
        with opener.open(f"http://127.0.0.1:{port}/json", timeout=30) as answer:
            pages = [entry for entry in json.load(answer) if entry["type"] == "page"]
        self._socket = connect(pages[0]["webSocketDebuggerUrl"], max_size=None, proxy=None)
        return self

    def __exit__(self, *_: object) -> None:
        if self._socket is not None:
            self._socket.close()
        self._process.terminate()
        self._process.wait(20)

    def call(self, method: str, timeout: float = 120.0, **parameters: Any) -> dict[str, Any]:
        """One command of the debugging protocol, and its result."""
        self._count += 1
        self._socket.send(json.dumps({"id": self._count, "method": method, "params": parameters}))
        deadline = time.monotonic() + timeout
        while True:
            answer = json.loads(self._socket.recv(timeout=max(deadline - time.monotonic(), 0.0)))
            if answer.get("id") == self._count:
                if "error" in answer:
                    raise PageError(str(answer["error"]))
                return answer["result"]

    def open(self, url: str) -> None:
        """Go to a page, and wait until it can be pictured."""
        self.call("Page.navigate", url=url)
        deadline = time.monotonic() + 60.0
        while True:
            try:
                self._capture()
            except PageError:
                assert time.monotonic() < deadline, f"{url} does not open"
                time.sleep(0.1)
            else:
                return

    def _capture(self) -> bytes:
        """PNG of the page.

        Chromium takes the next frame that it draws, and a page that has nothing new to draw may give none for minutes: then a
        screencast, which asks for frames of its own, is begun and ended, and the picture asked for again.
        """
        for timeout in (15.0, 15.0, 90.0):
            try:
                return base64.b64decode(self.call("Page.captureScreenshot", timeout, format="png")["data"])
            except TimeoutError:
                self.call("Page.startScreencast", format="jpeg", quality=1)
                time.sleep(0.3)
                self.call("Page.stopScreencast")
        raise PageError("Chromium draws no frame")

    def text(self) -> str:
        """What stands on the page."""
        found = self.call("Runtime.evaluate", expression="document.body ? document.body.innerText : ''", returnByValue=True)
        return str(found["result"].get("value", ""))

    def press(self, key: str, code: str, number: int) -> None:
        """A key, by its name, its place on the keyboard, and its number in Windows' table."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=code, windowsVirtualKeyCode=number)

    def until_text(self, text_part: str, timeout: float = 60.0) -> None:
        """Wait for words on the page."""
        deadline = time.monotonic() + timeout
        while text_part not in self.text():
            assert time.monotonic() < deadline, f"{text_part!r} is not in {self.text()!r}"
            time.sleep(0.1)

    def picture(self, path: Path) -> Path:
        """A picture of the page as PNG."""
        path.write_bytes(self._capture())
        return path

    def until_shown(self, path: Path, wanted: Callable[[ArrayAny], bool], timeout: float = 60.0) -> ArrayAny:
        """Wait for a picture (h, w, 3) that is as wanted; software WebGL needs seconds for its first frames."""
        from PIL import Image

        deadline = time.monotonic() + timeout
        while True:
            with Image.open(self.picture(path)) as picture:
                pixels = np.asarray(picture.convert("RGB")).astype(int)
            if wanted(pixels):
                return pixels
            assert time.monotonic() < deadline, f"{path} is not as wanted"
            time.sleep(0.2)
