"""Being asked to stop: SIGINT and SIGTERM take effect where everything is saved."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["stoppable"]


@contextmanager
def stoppable() -> Iterator[Callable[[], bool]]:
    """Yields what says whether a signal has come; behind the block it is given to whoever would have had it.

    Outside of the main thread, which alone is given signals, none comes.

    Raises:
        KeyboardInterrupt: Behind the block, where a signal has come and whoever would have had it ignores it, as in a job
            behind a script: work that was cut short must not look finished.
    """
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = {number: signal.signal(number, lambda n, _: came.append(n)) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        signal.raise_signal(came[0])
        raise KeyboardInterrupt
