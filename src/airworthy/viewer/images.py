"""The camera's images, made in a thread of their own, so that rendering does not hold up what moves."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.viewer.cameras import CameraSource, Shot

__all__ = ["ImageFeed", "Request"]


@dataclass(frozen=True, eq=False)
class Request:
    """Of which moment an image is wanted."""

    env: int
    time: float
    """[s]"""
    position: NDArray[Any]
    """Of the body, world [m]."""
    attitude: NDArray[Any]


class ImageFeed:
    """Takes the newest request only: whoever drags the time line waits for one image, not for all on the way.

    Args:
        camera: Gives the images, from this feed's thread alone.
        shown: Called with each image, or with what is wrong.
    """

    def __init__(self, camera: CameraSource, shown: Callable[[Shot | None, str], None]):
        self._camera, self._shown = camera, shown
        self._changed = threading.Condition()
        self._wanted: Request | None = None
        self._busy = self._ended = False
        self._thread = threading.Thread(target=self._work, name="viewer images", daemon=True)
        self._thread.start()

    def ask(self, request: Request) -> None:
        """Want an image; an older wish that was not begun is dropped."""
        with self._changed:
            self._wanted = request
            self._changed.notify_all()

    @property
    def idle(self) -> bool:
        """Whether nothing is wanted that is not shown."""
        with self._changed:
            return not self._busy and self._wanted is None

    def wait(self, timeout: float = 60.0) -> bool:
        """Until everything wanted is shown; False where that took longer than `timeout` [s]."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._busy and self._wanted is None, timeout)

    def close(self, timeout: float = 2.0) -> None:
        """End the thread, which may be in the middle of an image [s]."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        self._thread.join(timeout)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ended or self._wanted is not None)
                if self._ended:
                    return
                request, self._wanted, self._busy = self._wanted, None, True
            assert request is not None  # waited for
            self._make(request)
            with self._changed:
                self._busy = False
                self._changed.notify_all()

    def _make(self, request: Request) -> None:
        try:
            shot = self._camera.shot(request.env, request.time, np.asarray(request.position), np.asarray(request.attitude))
        except AirworthyError as error:
            self._shown(None, str(error))
            return
        self._shown(shot, "")
