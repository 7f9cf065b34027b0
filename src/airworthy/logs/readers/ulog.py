"""ULog of PX4: the container. Its topics become streams in `ulog_streams`.

Layout (PX4 user guide, "ULog File Format"): 7 bytes of magic, a version, uint64 us; then messages of uint16 size, uint8 type
and so many bytes. F declares a format, A gives a topic a number, D holds a sample of it, I and P are facts and parameters, L
is text, O a drop-out. All numbers are little endian, structures are packed, and padding at the end of a format is not
written.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field

import numpy as np

from airworthy.core.arrays import ArrayAny
from airworthy.core.files import harmless, shown
from airworthy.logs.building import LogDraft
from airworthy.logs.cursor import ByteCursor, EndOfData
from airworthy.logs.gathering import gathered

MAGIC = b"ULog\x01\x12\x35"
_TYPES = {"int8_t": "i1", "uint8_t": "u1", "int16_t": "<i2", "uint16_t": "<u2", "int32_t": "<i4", "uint32_t": "<u4"}
_TYPES |= {"int64_t": "<i8", "uint64_t": "<u8", "float": "<f4", "double": "<f8", "bool": "u1", "char": "S1"}
_FIELD = re.compile(r"([A-Za-z0-9_]+)(?:\[(\d{1,5})\])? ([A-Za-z0-9_]+)")
_KEY = re.compile(r"([A-Za-z0-9_]+(?:\[\d{1,5}\])?) ([^\0]+)", re.DOTALL)
_DEPTH_MAX = 8
_ROW_MAX = 65535
_TEXTS_MAX = 1000
"""Ours: logged texts that become events."""


@dataclass
class UlogTopic:
    """One instance of a topic: its samples in the file's order."""

    name: str
    instance: int
    rows: ArrayAny
    """Structured array; arrays of nested formats are fields of fields."""

    @property
    def stamps(self) -> ArrayAny:
        """Stamps [us], uint64, (n,)."""
        return np.asarray(self.rows["timestamp"])


@dataclass
class Ulog:
    """What a ULog file holds."""

    topics: list[UlogTopic] = field(default_factory=list)
    parameters: dict[str, float | int] = field(default_factory=dict)
    facts: dict[str, str | int | float] = field(default_factory=dict)
    changes: list[tuple[int, str]] = field(default_factory=list)
    """Stamp [us] of the sample before, parameter and value."""
    texts: list[tuple[int, str]] = field(default_factory=list)
    dropouts: list[tuple[int, int]] = field(default_factory=list)
    """Stamp [us] of the sample before, length [ms]."""

    def topic(self, name: str, instance: int = 0) -> UlogTopic | None:
        """Return a topic with samples, or None."""
        return next((t for t in self.topics if (t.name, t.instance) == (name, instance) and len(t.rows)), None)


@dataclass
class _Subscription:
    name: str
    instance: int
    row: np.dtype
    short: int
    """Bytes that a sample has at least: without padding at the end."""
    offsets: array = field(default_factory=lambda: array("q"))


def is_ulog(data: bytes) -> bool:
    """Tell whether the first bytes are of a ULog file."""
    return data[:7] == MAGIC


def read_container(data: bytes, draft: LogDraft) -> Ulog:
    """Read all messages of a ULog file.

    Raises:
        AssetError: The header is cut, or a format is not one.
    """
    cursor = ByteCursor(data, f"Log {draft.path!r}")
    cursor.take(8, "the header")
    (start,) = cursor.unpack("Q", "the time in the header")
    reader = _Reader(draft, start)
    while cursor.left:
        at = cursor.at
        try:
            size, kind = cursor.unpack("HB", "the head of a message")
            body = ByteCursor(data, cursor.name, cursor.at, cursor.at + size)
            cursor.take(size, f"message {chr(kind) if 32 < kind < 127 else kind!r}")
            known = reader.message(kind, body)
        except EndOfData:
            draft.note(f"{len(data) - at} bytes from byte {at} on are no whole message and were left out.")
            break
        if not known:
            # A letter that no message has: the place is lost, and with it what follows.
            draft.note(f"{len(data) - at} bytes from byte {at} on are no messages of ULog and were left out.")
            break
    return reader.result(data)


class _Reader:
    """Messages one after the other."""

    def __init__(self, draft: LogDraft, start: int) -> None:
        self.draft = draft
        self.ulog = Ulog()
        self.formats: dict[str, str] = {}
        self.layouts: dict[str, np.dtype] = {}
        self.subscribed: dict[int, _Subscription] = {}
        self.stamp = min(start, 1 << 52)
        self.odd = 0

    def message(self, kind: int, body: ByteCursor) -> bool:
        """Take one message; returns whether its letter is known."""
        if kind == ord("D"):
            self._sample(body)
        elif kind == ord("F"):
            name, _, fields = _text(body).partition(":")
            self.formats[name] = fields
        elif kind == ord("A"):
            self._subscribe(body)
        elif kind in b"IM":
            self._fact(body, multiple=kind == ord("M"))
        elif kind in b"PQ":
            self._parameter(body, default=kind == ord("Q"))
        elif kind in b"LC":
            self._logged(body, tagged=kind == ord("C"))
        elif kind == ord("O"):
            self.ulog.dropouts.append((self.stamp, body.unpack("H", "a drop-out")[0]))
        elif kind == ord("B"):
            self._flags(body)
        else:
            return kind in b"RS"
        return True

    def result(self, data: bytes) -> Ulog:
        """Return everything, samples gathered."""
        if self.odd:
            self.draft.note(f"{self.odd} samples have another size than their format and were left out.")
        for item in self.subscribed.values():
            self.ulog.topics.append(UlogTopic(item.name, item.instance, gathered(data, item.offsets, item.row)))
        return self.ulog

    def _flags(self, body: ByteCursor) -> None:
        flags = bytes(body.take(16, "the flags"))
        unknown = [bit for k, byte in enumerate(flags[8:]) for bit in [byte & ~(1 if k == 0 else 0)] if bit]
        if unknown:
            raise body.refuse("the file uses parts of ULog that are not known here (incompatible flags)")

    def _subscribe(self, body: ByteCursor) -> None:
        instance, number = body.unpack("BH", "a subscription")
        name = _text(body)
        row = self._layout(name, body, 0)
        if "timestamp" not in (row.names or ()):
            raise body.refuse(f"topic {shown(name)} has no timestamp")
        short = row.itemsize
        for part in reversed(row.names or ()):
            if not part.startswith("_padding"):
                break
            short -= row[part].itemsize
        if number not in self.subscribed:
            self.subscribed[number] = _Subscription(name, instance, _without_end(row, short), short)

    def _layout(self, name: str, body: ByteCursor, depth: int) -> np.dtype:
        """Return the packed layout of a format, nested ones within it."""
        if name in self.layouts:
            return self.layouts[name]
        if name not in self.formats or depth > _DEPTH_MAX:
            raise body.refuse(f"format {shown(name)} is not declared, or nested over {_DEPTH_MAX} deep")
        fields: list[tuple[str, str | np.dtype] | tuple[str, str | np.dtype, tuple[int]]] = []
        size = 0
        for text in filter(None, self.formats[name].split(";")):
            match = _FIELD.fullmatch(text)
            if match is None:
                raise body.refuse(f"format {shown(name)} has a field {shown(text)}; expected 'type name' or 'type[n] name'")
            kind = _TYPES.get(match[1]) or self._layout(match[1], body, depth + 1)
            count = int(match[2]) if match[2] else 1
            size += np.dtype(kind).itemsize * count
            if size > _ROW_MAX:
                raise body.refuse(f"format {shown(name)} is larger than a message may be")
            fields.append((match[3], kind, (count,)) if match[2] else (match[3], kind))
        if len({f[0] for f in fields}) != len(fields) or not fields:
            raise body.refuse(f"format {shown(name)} is empty or has a field twice")
        self.layouts[name] = np.dtype(fields)
        return self.layouts[name]

    def _sample(self, body: ByteCursor) -> None:
        (number,) = body.unpack("H", "a sample")
        item = self.subscribed.get(number)
        if item is None or body.left < item.short:
            self.odd += 1
            return
        item.offsets.append(body.at)
        # `timestamp` is the first field wherever PX4 writes; a guess is enough for where a parameter changed.
        if item.row.names and item.row.names[0] == "timestamp" and body.left >= 8:
            self.stamp = max(self.stamp, min(int.from_bytes(body.data[body.at : body.at + 8], "little"), 1 << 52))

    def _fact(self, body: ByteCursor, multiple: bool) -> None:
        if multiple:
            return
        kind, name = self._key(body)
        data = bytes(body.take(body.left, "a fact"))
        if kind.startswith("char"):
            self.ulog.facts[name] = harmless(data.decode("utf-8", "replace").rstrip("\0"))
        elif kind in _TYPES and len(data) == np.dtype(_TYPES[kind]).itemsize:
            self.ulog.facts[name] = np.frombuffer(data, _TYPES[kind])[0].item()

    def _parameter(self, body: ByteCursor, default: bool) -> None:
        if default:
            return
        kind, name = self._key(body)
        if kind not in ("int32_t", "float"):
            raise body.refuse(f"parameter {shown(name)} is {shown(kind)}; expected int32_t or float")
        (value,) = body.unpack("i" if kind == "int32_t" else "f", f"parameter {shown(name)}")
        if self.subscribed:
            self.ulog.changes.append((self.stamp, f"{name} = {value:g}"))
        else:
            self.ulog.parameters[name] = value

    def _logged(self, body: ByteCursor, tagged: bool) -> None:
        body.take(1, "the level of a text")
        if tagged:
            body.take(2, "the tag of a text")
        (stamp,) = body.unpack("Q", "the time of a text")
        if len(self.ulog.texts) < _TEXTS_MAX:
            self.ulog.texts.append((min(stamp, 1 << 52), _text(body)))

    def _key(self, body: ByteCursor) -> tuple[str, str]:
        (length,) = body.unpack("B", "the length of a key")
        text = bytes(body.take(length, "a key")).decode("utf-8", "replace")
        match = _KEY.fullmatch(text)
        if match is None:
            raise body.refuse(f"key {shown(text)} is not 'type name'")
        return match[1], harmless(match[2])


def _text(body: ByteCursor) -> str:
    return harmless(bytes(body.take(body.left, "a text")).decode("utf-8", "replace"))


def _without_end(row: np.dtype, size: int) -> np.dtype:
    """Return the layout without padding at its end, which files may leave out."""
    names = row.names or ()
    places = dict(row.fields or {})
    kept = [name for name in names if places[name][1] < size]
    return row[kept] if len(kept) == len(names) else np.dtype([(name, row[name]) for name in kept])
