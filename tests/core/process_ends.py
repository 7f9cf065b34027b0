"""Whether processes have ended, for tests."""

from __future__ import annotations

import time


def ended(pid: int, seconds: float = 20.0) -> bool:
    """Whether a process is gone, waited for so long at most; one whose end nobody asked for yet is gone."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                if file.read().rsplit(")", 1)[1].split()[0] in "ZX":
                    return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False
