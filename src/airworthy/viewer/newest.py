"""Work in a thread of its own that takes the newest request only: who drags a slider waits for one answer, not for all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["NewestWorker"]

Wish = TypeVar("Wish")


class NewestWorker(Generic[Wish]):
    """Calls a function with requests, one at a time; of those that wait only the newest.

    Args:
        work: Called in the thread; whatever it raises ends it, so that it answers mistakes itself.
        name: Of the thread.
    """

    def __init__(self, work: Callable[[Wish], None], name: str):
        self._work = work
        self._changed = threading.Condition()
        self._wanted: list[Wish] = []
        self._busy = self._ended = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def ask(self, request: Wish) -> None:
        """Want an answer; an older request that was not begun is dropped."""
        with self._changed:
            self._wanted = [request]
            self._changed.notify_all()

    @property
    def idle(self) -> bool:
        """Whether nothing is wanted that is not answered."""
        with self._changed:
            return not self._busy and not self._wanted

    def wait(self, timeout: float = 60.0) -> bool:
        """Wait until everything wanted is answered; False where that took longer than `timeout` [s]."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._busy and not self._wanted, timeout)

    def close(self, timeout: float = 30.0) -> None:
        """End the thread; what it is in the middle of is waited for, as it may write to what is closed next.

        Args:
            timeout: Longest wait [s].
        """
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        self._thread.join(timeout)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ended or bool(self._wanted))
                if self._ended:
                    return
                request, self._busy = self._wanted.pop(), True
            try:
                self._work(request)
            finally:
                with self._changed:
                    self._busy = False
                    self._changed.notify_all()
