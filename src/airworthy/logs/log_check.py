"""What a check of a log says."""

from __future__ import annotations

from dataclasses import dataclass

from airworthy.logs.record import Log


@dataclass(frozen=True)
class LogCheck:
    """One check: what was measured, and whether it is what it should be."""

    name: str
    passed: bool | None
    """None: the log does not hold what the check needs."""
    said: str
    """A sentence."""
    value: float = float("nan")
    blamed: str = ""
    """Kind of the streams that are wrong by it, where it tells which: "gyro", "accelerometer" or "attitude"."""


def went_back(log: Log, *kinds: str) -> str:
    """Return why a check cannot be made, the first stream of the kinds or names whose stamps go back; empty without any."""
    known = {name for stream in log.streams for name in (stream.kind, stream.name)}
    names = [log.stream(kind).name for kind in kinds if kind in known and log.stream(kind).quality.backward]
    return f"Stamps of {names[0]} go back." if names else ""
