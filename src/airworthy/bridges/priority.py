"""The system's scheduling of whoever must be on time: first in line, of Linux the least of its real-time classes."""

from __future__ import annotations

import os
from contextlib import suppress
from types import TracebackType

__all__ = ["FirstInLine"]


class FirstInLine:
    """Has the system let this thread go before all that have no real-time class, until it is left; a context manager.

    For threads that sleep most of the time: one that never does would starve the machine. Niceness would not do, since it
    counts within one session alone (sched(7), autogroup).

    Args:
        inherited: Threads and processes that this thread makes meanwhile go first, too.
    """

    def __init__(self, inherited: bool = False):
        self._inherited = inherited
        self._before: tuple[int, os.sched_param] | None = None
        self.refused = False
        """Whether the system did not let it: it needs the right to real-time priority (`ulimit -r`)."""

    def __enter__(self) -> FirstInLine:
        with suppress(AttributeError, OSError):
            before = os.sched_getscheduler(0), os.sched_getparam(0)
            if before[1].sched_priority > 0:  # whoever started us has put us farther in front already (chrt)
                return self
            alone = 0 if self._inherited else os.SCHED_RESET_ON_FORK
            os.sched_setscheduler(0, os.SCHED_RR | alone, os.sched_param(1))
            self._before = before
        self.refused = self._before is None
        return self

    def leave(self) -> None:
        """Go back to the class from before; by the thread that came."""
        if self._before is not None:
            policy, priority = self._before
            try:
                os.sched_setscheduler(0, policy, priority)
            except PermissionError:  # without privileges the flag can be set, and never be taken back; it does no harm
                os.sched_setscheduler(0, policy | os.SCHED_RESET_ON_FORK, priority)
            self._before = None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.leave()
