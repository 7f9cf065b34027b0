"""How long a picture takes from the pose to the wire: the instants of every frame, and the table of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["FrameTimes", "LatencyRow", "latency_rows", "latency_text"]


@dataclass(frozen=True)
class FrameTimes:
    """Instants of one frame, by this machine's monotonic clock [s]."""

    received: float
    """The newest pose that it rests on came."""
    due: float
    """What it shows: the instant of the photons."""
    begun: float
    rendered: float
    sent: float


@dataclass(frozen=True)
class LatencyRow:
    """One part of the way, [s]."""

    name: str
    median: float
    p99: float
    most: float


def latency_rows(times: Sequence[FrameTimes]) -> list[LatencyRow]:
    """Return the parts of the way from pose to wire, and the whole; none where there are no frames."""
    if not times:
        return []
    parts = {
        "age of the pose at the photons": [t.due - t.received for t in times],
        "begun late": [t.begun - t.due for t in times],
        "rendered": [t.rendered - t.begun for t in times],
        "packed and sent": [t.sent - t.rendered for t in times],
        "photons to sent": [t.sent - t.due for t in times],
    }
    return [
        LatencyRow(name, *map(float, (*np.percentile(values, (50.0, 99.0)), max(values)))) for name, values in parts.items()
    ]


def latency_text(rows: Sequence[LatencyRow]) -> list[str]:
    """Return lines of a table in milliseconds."""
    head = f"{'':32}{'median':>10}{'p99':>10}{'most':>10}  [ms]"
    return [head, *(f"{r.name:32}{1e3 * r.median:10.2f}{1e3 * r.p99:10.2f}{1e3 * r.most:10.2f}" for r in rows)] if rows else []
