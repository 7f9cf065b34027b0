"""Signals while a solver runs: CasADi swallows what their handlers raise, and ends as if it had found nothing."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["told_signals"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def told_signals() -> Iterator[None]:
    """End what runs in the block at a signal, and behind it give the signal to whoever would have had it.

    Where nobody in Python takes a signal, and outside of the main thread, nothing changes.

    Raises:
        KeyboardInterrupt: Behind the block, where a signal has come, whatever its handler does.
    """
    came: list[int] = []

    def stop(number: int, frame: Any) -> None:
        came.append(number)
        raise KeyboardInterrupt(number)  # which a solver's loop takes for a failure, and ends

    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: handler for number in _SIGNALS if callable(handler := signal.getsignal(number))}
    for number in before:
        signal.signal(number, stop)
    try:
        yield
    except KeyboardInterrupt:
        if not came:
            raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        signal.raise_signal(came[0])
        raise KeyboardInterrupt(came[0])
