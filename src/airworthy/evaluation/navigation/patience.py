"""Waiting for a user's code, but not for ever."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Timed", "TooLong", "within"]


class TooLong(Exception):
    """A call took longer than it may."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Interrupt the block when it takes too long.

    By the operating system's timer, so that a loop or a sleep ends there; code that is compiled and never comes back cannot be
    interrupted. Outside of the main thread, which alone is given signals, the time is looked at afterwards.

    Raises:
        TooLong: It took longer.
    """
    message = f"took more than {seconds:g} s"
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        begun = time.monotonic()
        yield
        if time.monotonic() - begun > seconds:
            raise TooLong(message)
        return

    def ring(number: int, frame: Any) -> None:
        raise TooLong(message)

    before = signal.signal(signal.SIGALRM, ring)
    # Again and again: the code may catch the first one.
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


class Timed:
    """An object whose calls are held to a time each; everything else of it shows through.

    Args:
        inner: The object.
        seconds: Longest time of a call.
    """

    _CALLS = ("reset", "update", "adopt", "setpoints", "command")

    def __init__(self, inner: Any, seconds: float):
        self._inner, self._seconds = inner, seconds

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if name not in self._CALLS:
            return value

        def call(*arguments: Any) -> Any:
            with within(self._seconds):
                return value(*arguments)

        return call
