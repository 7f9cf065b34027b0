"""From what readers found to a `Log`: frames, one clock, and the order of streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.core.errors import AssetError
from airworthy.core.files import harmless, sha256
from airworthy.core.frames import flu_enu, normalize
from airworthy.logs.clocks.clock import NS
from airworthy.logs.record import KINDS, Log, LogEvent, LogSource, LogStream, LowPass, RawSeries, RotorGeometry

LOG_BYTES_MAX = 1 << 30
"""Largest log file that is read."""


LARGE_BYTES = 256 << 20
"""Ours: of larger files, variables that became streams are not kept raw, too."""


class FileContent:
    """The bytes of a file, which a reader lets go as soon as it has what it needs of them."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def let_go(self) -> None:
        """Forget the bytes."""
        self.data = b""


@dataclass(frozen=True)
class Found:
    """One stream as a reader found it: its own clock, its own axes, SI units."""

    kind: str
    stamps: ArrayAny
    """[ns], int64, (n,)."""
    values: ArrayAny
    """(n, k), or (n,) of one column."""
    label: str = ""
    frame: str = ""
    """Frame of the values as of `core.frames.flu_enu`; empty: the kind's own."""
    stamp: str = ""
    """As of `LogStream`; empty: "held" for commands, "instant" for all else."""
    filter: LowPass | None = None
    origin: str = ""
    clock_offset: float = 0.0
    clock_scale: float = 1.0


@dataclass
class LogDraft:
    """Everything that a reader gathers of a file."""

    path: str
    format: str
    data_sha256: str
    found: list[Found] = field(default_factory=list)
    raw: dict[str, tuple[ArrayAny, ArrayAny]] = field(default_factory=dict)
    """Variable -> stamps [ns], values."""
    events: list[tuple[int, str, str]] = field(default_factory=list)
    """Stamp [ns], kind, detail."""
    parameters: dict[str, float | int | str] = field(default_factory=dict)
    geometry: RotorGeometry | None = None
    notes: list[str] = field(default_factory=list)

    def refuse(self, reason: str) -> AssetError:
        """Return the error for a file that cannot be read."""
        return AssetError(f"Log {self.path!r}: {reason}.")

    def note(self, sentence: str) -> None:
        """Keep a sentence about what was lost or taken for granted."""
        if sentence not in self.notes:
            self.notes.append(harmless(sentence))


def draft_of(path: str | Path, data: bytes, kind: str) -> LogDraft:
    """Return an empty draft of a file."""
    return LogDraft(str(path), kind, sha256(data))


def build(draft: LogDraft) -> Log:
    """Return the log of a draft.

    Raises:
        AssetError: It holds no stream and no variable with a sample, or an attitude without a direction.
    """
    # Streams come first: a variable that nobody knows must not set the clock.
    stamps = [f.stamps for f in draft.found if len(f.stamps)] or [s for s, _ in draft.raw.values() if len(s)]
    if not stamps:
        raise draft.refuse("it holds no sample of anything")
    start = min(int(np.min(s)) for s in stamps)
    # Streams and variables of one message share their stamps, and so their times.
    times: dict[int, tuple[ArrayAny, Array]] = {}

    def seconds(series: ArrayAny) -> Array:
        # The stamps are kept beside: another array may get the place of one that is gone.
        if id(series) not in times:
            times[id(series)] = (series, _seconds(series, start))
        return times[id(series)][1]

    # Each is let go as it is made a stream: a long log's values are not there twice.
    pending, made = draft.found[::-1], []
    draft.found.clear()
    while pending:
        found = pending.pop()
        if len(found.stamps):
            made.append(_stream(found, seconds(found.stamps), draft))
    streams = tuple(made)
    _tell_steps(streams, draft)
    raw = {name: RawSeries(seconds(series), values) for name, (series, values) in draft.raw.items()}
    # What came before the first sample holds from there on.
    events = [LogEvent(max(t - start, 0) / NS, kind, harmless(detail)) for t, kind, detail in sorted(draft.events)]
    return Log(
        name=Path(draft.path).name,
        streams=streams,
        source=LogSource(draft.path, draft.data_sha256, draft.format, start_ns=start),
        events=tuple(events),
        parameters=dict(draft.parameters),
        geometry=draft.geometry,
        notes=tuple(draft.notes),
        raw_series=raw,
    )


def _tell_steps(streams: Sequence[LogStream], draft: LogDraft) -> None:
    """Note streams whose stamps go back or come twice; those of one sentence share one."""
    told: dict[str, list[str]] = {}
    for stream in streams:
        steps = np.diff(stream.time)
        back = np.flatnonzero(steps < 0.0)
        parts = []
        if back.size:
            first, by = float(stream.time[back[0]]), -float(steps[back[0]])
            parts.append(f"stamps go back {back.size} times (first by {by:.6g} s, at {first:.6g} s)")
        if twice := int((steps == 0.0).sum()):
            parts.append(f"{twice} stamps are those of the sample before")
        if parts:
            told.setdefault(" and ".join(parts), []).append(stream.name)
    for sentence, names in told.items():
        draft.note(f"In {', '.join(names)} {sentence}.")


def _seconds(stamps: ArrayAny, start: int) -> Array:
    return (stamps - np.int64(start)).astype(np.float64) / NS


def _stream(found: Found, time: Array, draft: LogDraft) -> LogStream:
    kind = KINDS[found.kind]
    values = np.asarray(found.values, np.float64)
    values = values[:, None] if values.ndim == 1 else values
    if found.frame and kind.frame:
        values = flu_enu(values, found.frame)
    if kind.frame == "flu->enu":
        values = _unit(values, found, draft)
    # Infinity is what a division by zero left: no measurement.
    if np.isinf(values).any():
        values = np.where(np.isfinite(values), values, np.nan)
    return LogStream(
        kind=found.kind,
        time=time,
        values=values,
        label=harmless(found.label),
        stamp=found.stamp or ("held" if kind.held else "instant"),
        filter=found.filter,
        clock_offset=found.clock_offset,
        clock_scale=found.clock_scale,
        origin=harmless(found.origin),
    )


def _unit(values: Array, found: Found, draft: LogDraft) -> Array:
    """Return attitudes of unit length; what is no rotation is missing, and counted."""
    with np.errstate(over="ignore", invalid="ignore"):
        length = np.linalg.norm(values, axis=1)
    bad = ~((length > 0.5) & (length < 2.0))
    if bad.any():
        draft.note(
            f"{int(bad.sum())} of {len(bad)} attitudes of {found.origin or found.kind} are no rotation and count as missing."
        )
    out = normalize(values)
    out[bad] = np.nan
    return out


def table(columns: Mapping[str, ArrayAny], names: Sequence[str]) -> Array | None:
    """Return columns side by side as float64, (n, k); None where one of them is missing."""
    if any(name not in columns for name in names):
        return None
    return np.stack([np.asarray(columns[name], np.float64) for name in names], axis=1)
