"""How long a picture takes from the pose to the wire: instants of every frame, kept with the frames, and the table of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.bridges.loop.guard import Abort
from airworthy.bridges.ros.bus import SENSORS
from airworthy.bridges.ros.messages import PREFIX, RosMessage, stamp_of
from airworthy.bridges.ros.types import ABORT_TIMES, FRAME_TIMES
from airworthy.core.errors import AirworthyError
from airworthy.logs import mcap_messages
from airworthy.logs.clocks.clock import NS

__all__ = [
    "ABORTS_TOPIC",
    "FRAMES_FILE",
    "FrameTimes",
    "KeptTimes",
    "LatencyRow",
    "abort_message",
    "abort_rows",
    "kept_times",
    "latency_rows",
    "latency_text",
    "times_message",
]

FRAMES_FILE = "frames.mcap"
ABORTS_TOPIC = f"{PREFIX}/abort_times"
_TIMES = "/frame_times"
"""Behind the topic of a sensor."""
_INSTANTS = ("received", "due", "begun", "rendered", "sent")


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
    posed: float = 0.0
    """Stamp of that pose, by the source's clock."""
    held: bool = False
    """That pose was older than may be extrapolated."""
    shown: float = math.nan
    """The instant of the photons, by the source's clock."""


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
        "pose came to photons": [t.due - t.received for t in times],
        "age of the pose at the photons": [age for t in times if math.isfinite(age := t.shown - t.posed)],
        "begun late": [t.begun - t.due for t in times],
        "rendered": [t.rendered - t.begun for t in times],
        "packed and sent": [t.sent - t.rendered for t in times],
        "photons to sent": [t.sent - t.due for t in times],
    }
    return [_row(name, values) for name, values in parts.items() if values]


def abort_rows(aborts: Sequence[Abort]) -> list[LatencyRow]:
    """Return how long it took to tell aborts; none where there were none."""
    return [_row("abort told", [abort.after for abort in aborts])] if aborts else []


def _row(name: str, values: Sequence[float]) -> LatencyRow:
    return LatencyRow(name, *map(float, (*np.percentile(values, (50.0, 99.0)), max(values))))


def latency_text(rows: Sequence[LatencyRow]) -> list[str]:
    """Return lines of a table in milliseconds."""
    head = f"{'':32}{'median':>10}{'p99':>10}{'most':>10}  [ms]"
    return [head, *(f"{r.name:32}{1e3 * r.median:10.2f}{1e3 * r.p99:10.2f}{1e3 * r.most:10.2f}" for r in rows)] if rows else []


# ---- Kept with the frames ---------------------------------------------------------------------------------------------------


def times_message(name: str, stamp: float, times: FrameTimes) -> RosMessage:
    """Return the instants of a frame, which are sent and kept behind it.

    Args:
        name: Of the sensor.
        stamp: Of the frame, by the source's clock [s].
        times: They.
    """
    values = {key: round(getattr(times, key) * NS) for key in _INSTANTS}
    values |= {"header": {"stamp": stamp_of(stamp), "frame_id": name}, "pose_stamp": round(times.posed * NS)}
    return RosMessage(f"{PREFIX}/sensors/{name}{_TIMES}", FRAME_TIMES, {**values, "held": times.held}, SENSORS)


def abort_message(stamp: float, abort: Abort) -> RosMessage:
    """Return cause and instants of an abort.

    Args:
        stamp: From when it was so, by the source's clock [s].
        abort: It.
    """
    values = {"since": round(abort.since * NS), "told": round(abort.told * NS)}
    header = {"stamp": stamp_of(stamp), "frame_id": ""}
    return RosMessage(ABORTS_TOPIC, ABORT_TIMES, {"header": header, "cause": abort.cause, **values})


@dataclass(frozen=True)
class KeptTimes:
    """What a file of frames tells of time."""

    frames: dict[str, list[FrameTimes]]
    """By sensor."""
    aborts: list[Abort]
    notes: tuple[str, ...]
    """What is damaged, or missing."""


def kept_times(path: Path) -> KeptTimes:
    """Read the instants of frames and aborts that a session left.

    Args:
        path: `FRAMES_FILE`, or the folder of it.

    Raises:
        AirworthyError: It is no MCAP file, or holds no such instants.
    """
    file = path / FRAMES_FILE if path.is_dir() else path
    frames: dict[str, list[FrameTimes]] = {}
    aborts: list[Abort] = []
    notes: list[str] = []
    for kind, values in mcap_messages(file, (FRAME_TIMES, ABORT_TIMES), notes):
        row: Any = values
        if kind == ABORT_TIMES:
            aborts.append(Abort(row["cause"], row["since"] / NS, row["told"] / NS, True))
        else:
            frames.setdefault(row["header.frame_id"], []).append(_frame_times(row))
    if not frames and not aborts:
        raise AirworthyError(
            f"{str(file)!r} holds no instants of frames: `airworthy serve --poses ... --out FOLDER` keeps them, but for --clock"
            " lockstep, where nothing is due."
        )
    return KeptTimes(frames, aborts, tuple(notes))


def _frame_times(values: Any) -> FrameTimes:
    received, due, begun, rendered, sent = (values[key] / NS for key in _INSTANTS)
    shown = values["header.stamp.sec"] + values["header.stamp.nanosec"] / NS
    return FrameTimes(received, due, begun, rendered, sent, values["pose_stamp"] / NS, bool(values["held"]), shown)
