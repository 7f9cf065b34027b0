"""Processes that end with the one that started them, however that ended: by kill -9, too, which tells nobody."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time

__all__ = ["die_with_parent", "watch_parent"]

_DEATH_SIGNAL = 1
"""Option of prctl: PR_SET_PDEATHSIG (linux/prctl.h)."""
_WATCH = 0.5
"""How often a process looks for the one that started it [s]."""


def die_with_parent(parent: int | None = None) -> None:
    """Let the system kill this process when the thread that started it ends, however that ends; on Linux.

    Long calls into libraries that keep Python's lock are ended, too. Elsewhere `watch_parent` is all there is.

    Args:
        parent: Number of the process that started this one; if it has ended already, this one ends here. None: not looked at.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if parent is not None and os.getppid() != parent:
        # It ended before the system was asked, which tells of later ends alone. 1: nobody is left to read why.
        os._exit(1)


def watch_parent(parent: int) -> None:
    """End this process soon after the one that started it has ended, by a thread that looks for it.

    Unlike `die_with_parent` on every system, and whichever thread started this process; but only while Python's lock is free.

    Args:
        parent: Number of the process that started this one.
    """
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_WATCH)
    # Not sys.exit, which would end this thread alone.
    os._exit(1)
