"""The record of a flight log: named streams in SI units, one clock, and nothing of the file format but what `raw` keeps.

Body axes are forward, left, up (FLU), the world is east, north, up (ENU). Times are seconds from the log's first sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.logs.quality import StreamQuality, stream_quality

FORMAT_VERSION = 1
"""Version of what readers make of files; part of `LogSource`."""


@dataclass(frozen=True)
class StreamKind:
    """What a kind of stream holds."""

    unit: str
    """SI unit."""
    width: int | None
    """Columns; None: one per motor or channel."""
    frame: str = ""
    """"flu" (body), "enu" (world), "flu->enu" (attitude), or empty for what has no axes."""
    held: bool = False
    """Whether values hold from their stamp to the next one unless the reader says otherwise."""


KINDS: Mapping[str, StreamKind] = MappingProxyType(
    {
        "gyro": StreamKind("rad/s", 3, "flu"),
        "accelerometer": StreamKind("m/s^2", 3, "flu"),
        "motor_command": StreamKind("1", None, held=True),
        "motor_speed": StreamKind("rad/s", None),
        "voltage": StreamKind("V", 1),
        "current": StreamKind("A", 1),
        "attitude": StreamKind("1", 4, "flu->enu"),
        "position": StreamKind("m", 3, "enu"),
        "velocity": StreamKind("m/s", 3, "enu"),
        "magnetometer": StreamKind("T", 3, "flu"),
        "pressure": StreamKind("Pa", 1),
        "temperature": StreamKind("K", 1),
        "range": StreamKind("m", 1),
        "rate_setpoint": StreamKind("rad/s", 3, "flu", held=True),
        "attitude_setpoint": StreamKind("1", 4, "flu->enu", held=True),
        "thrust_setpoint": StreamKind("1", 1, held=True),
        "stick": StreamKind("1", None, held=True),
        "mode": StreamKind("1", 1, held=True),
    }
)
"""Every kind of stream there is: a closed list."""

STAMPS = ("instant", "held", "mean")
"""What a stamp says: the moment of the value, the start of the time it holds for, the end of the time it is the mean of."""


@dataclass(frozen=True)
class LowPass:
    """Known low-pass filter in the path of a sensor: part of the measurement, never of the vehicle."""

    order: int
    cutoff: float
    """[Hz]"""


@dataclass(frozen=True)
class LogEvent:
    """Something that happened at one moment of a log."""

    time: float
    """[s] on the log's clock."""
    kind: str
    """"armed", "disarmed", "landed", "in_air", "mode", "crash", "parameter", "message" or "dropout"."""
    detail: str = ""


@dataclass(frozen=True)
class RotorGeometry:
    """Rotors as the log's own parameters give them; axes of the body FLU, about the origin that the file uses."""

    position: Array
    """[m], (n, 3)."""
    axis: Array
    """Direction of thrust, (n, 3)."""
    spin: Array
    """+1 counter-clockwise seen from above, -1 clockwise, 0 unknown, (n,)."""
    torque_ratio: Array
    """Torque per thrust [m], without sign, (n,)."""
    linearised: float = 0.0
    """THR_MDL_FAC of PX4: share of the square in thrust over command that the autopilot has taken out of the commands."""


@dataclass(frozen=True)
class LogSource:
    """Where a log came from."""

    path: str
    sha256: str
    format: str
    version: int = FORMAT_VERSION
    start_ns: int = 0
    """The log's time zero on the file's own clock [ns]."""


@dataclass(frozen=True)
class RawSeries:
    """One variable as the file holds it, in its unit and frame."""

    time: Array
    """[s] on the log's clock, (n,)."""
    values: ArrayAny
    """(n,) or (n, k)."""


@dataclass(frozen=True, eq=False)
class LogStream:
    """One kind of measurement or command over time, in the units and frames of `KINDS`.

    Raises:
        AirworthyError: The kind, the stamp or a shape is not one that a stream may have.
    """

    kind: str
    time: Array
    """[s], in the file's order, (n,)."""
    values: Array
    """NaN where a value is missing, (n, k)."""
    label: str = ""
    """Tells a second sensor of a kind: "1", "capture"."""
    stamp: str = "instant"
    filter: LowPass | None = None
    clock_offset: float = 0.0
    """Taken into `time` already [s]: time = offset + scale x (the stream's own time)."""
    clock_scale: float = 1.0
    """Taken into `time` already."""
    origin: str = ""
    """Variables of the file that it was made of."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise unknown_name("kind of stream", self.kind, KINDS)
        if self.stamp not in STAMPS:
            raise AirworthyError(f"Stream {self.name!r} has stamp {self.stamp!r}; expected one of {', '.join(STAMPS)}.")
        width = KINDS[self.kind].width
        good = self.time.ndim == 1 and self.values.ndim == 2 and len(self.time) == len(self.values)
        if not good or width not in (None, self.values.shape[1]):
            raise AirworthyError(
                f"Stream {self.name!r} has times {self.time.shape} and values {self.values.shape}; expected (n,) and"
                f" (n, {width or 'any'})."
            )

    @property
    def name(self) -> str:
        """Kind and label ("gyro:1"), or the kind alone."""
        return f"{self.kind}:{self.label}" if self.label else self.kind

    @property
    def unit(self) -> str:
        """SI unit of the values."""
        return KINDS[self.kind].unit

    @property
    def frame(self) -> str:
        """Axes of the values; empty where there are none."""
        return KINDS[self.kind].frame

    @cached_property
    def quality(self) -> StreamQuality:
        """Rate, gaps and what else a look at the numbers tells."""
        return stream_quality(self.time, self.values)

    def between(self, start: float, stop: float) -> LogStream:
        """Return the part with start <= time < stop [s]."""
        from dataclasses import replace

        inside = (self.time >= start) & (self.time < stop)
        return replace(self, time=self.time[inside], values=self.values[inside])


@dataclass(frozen=True, eq=False)
class Log:
    """One flight log, whatever format it came in."""

    name: str
    streams: tuple[LogStream, ...]
    source: LogSource
    events: tuple[LogEvent, ...] = ()
    parameters: Mapping[str, float | int | str] = field(default_factory=dict)
    """The file's own: airframe, filters, geometry."""
    geometry: RotorGeometry | None = None
    notes: tuple[str, ...] = ()
    """What was lost, left out or taken for granted while reading, a sentence each."""
    raw_series: Mapping[str, RawSeries] = field(default_factory=dict)

    def raw(self, name: str) -> RawSeries:
        """Return a variable of the file under its own name, unconverted.

        Raises:
            UnknownNameError: The file holds no such variable.
        """
        if name not in self.raw_series:
            raise unknown_name("variable of the log", name, self.raw_series)
        return self.raw_series[name]

    def has(self, name: str) -> bool:
        """Tell whether `stream` finds one of this name: of a kind ("gyro"), or of a kind and label ("gyro:1")."""
        return any(name in (stream.kind, stream.name) for stream in self.streams)

    def of_kind(self, kind: str) -> tuple[LogStream, ...]:
        """Return all streams of a kind, in the reader's order of preference."""
        return tuple(stream for stream in self.streams if stream.kind == kind)

    def stream(self, name: str) -> LogStream:
        """Return the stream of a kind ("gyro": the first one) or of a kind and label ("gyro:1").

        Raises:
            UnknownNameError: The log has no such stream.
        """
        for stream in self.streams:
            if name in (stream.name, stream.kind):
                return stream
        raise unknown_name("stream", name, [s.name for s in self.streams], f"Log {self.name!r} has no other ones.")

    @property
    def duration(self) -> float:
        """Time from the first sample of all streams to the last [s]."""
        ends = [float(np.max(s.time)) for s in self.streams if s.time.size]
        return max(ends, default=0.0)
