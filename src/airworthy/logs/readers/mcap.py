"""MCAP, the container: schemas, channels and messages, in chunks or not. Its messages become streams in `ros_streams`.

Layout (MCAP format specification, version 0): 8 bytes of magic, then records of uint8 opcode, uint64 length and content;
texts and bytes have a length of uint32 before them. All numbers are little endian.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from airworthy.core.errors import AssetError
from airworthy.core.files import harmless, shown
from airworthy.logs.building import LogDraft
from airworthy.logs.cursor import ByteCursor
from airworthy.logs.readers.columns import bytes_allowed
from airworthy.logs.readers.packing import lz4_bytes, zstd_bytes

MAGIC = b"\x89MCAP0\r\n"
SCHEMA, CHANNEL, MESSAGE, CHUNK, DATA_END = 3, 4, 5, 6, 15
FOOTER = 2
_FOOTER_BYTES = 9 + 20
"""Head and content of the footer: place of the summary, of its offsets, and a checksum."""
_IN_CHUNKS = (SCHEMA, CHANNEL, MESSAGE)


@dataclass(frozen=True)
class McapChannel:
    """A topic: its type by name, and what describes it."""

    topic: str
    encoding: str
    """Of messages: "cdr"."""
    type: str
    schema_encoding: str
    """"ros2msg", "ros2idl", ..."""
    schema: str


@dataclass(frozen=True)
class BagMessage:
    """One message as it lies in the file."""

    channel: int
    received: int
    """[ns]"""
    data: memoryview


def is_mcap(data: bytes) -> bool:
    """Tell whether the first bytes are of an MCAP file."""
    return data[:8] == MAGIC


class McapFile:
    """Messages of a file in its order; `channels` grows while they are read.

    Args:
        data: The file.
        draft: Takes notes of what is lost.
    """

    def __init__(self, data: bytes, draft: LogDraft) -> None:
        self.channels: dict[int, McapChannel] = {}
        self._schemas: dict[int, tuple[str, str, str]] = {}
        self._data = data
        self._draft = draft
        self._unpacked_left = bytes_allowed(len(data))
        self._summary_read = False

    def messages(self) -> Iterator[BagMessage]:
        """Yield every message; a damaged tail ends it, and is noted."""
        cursor = ByteCursor(self._data, f"Log {self._draft.path!r}", len(MAGIC))
        while cursor.left:
            at = cursor.at
            if bytes(self._data[at : at + 8]) == MAGIC:
                return
            try:
                opcode, length = cursor.unpack("BQ", "the head of a record")
                body = ByteCursor(self._data, cursor.name, cursor.at, cursor.at + length)
                cursor.take(length, f"record {opcode}")
                if opcode == CHUNK:
                    yield from self._chunk_or_note(body, at)
                elif opcode in _IN_CHUNKS:
                    yield from self._record(opcode, body)
                elif opcode == DATA_END:
                    return
                elif opcode == 0:
                    raise body.refuse("record 0 is none of MCAP", at)
            except AssetError as error:
                lost = len(self._data) - at
                self._draft.note(f"{lost} bytes from byte {at} on were left out: {str(error).partition(': ')[2].rstrip('.')}.")
                return
        self._draft.note("The file has no end record: it was not closed.")

    def _chunk_or_note(self, body: ByteCursor, at: int) -> Iterator[BagMessage]:
        """Yield what a chunk holds; one that is damaged is noted and passed over, for its length leads to the next record."""
        try:
            yield from self._chunk(body)
        except AssetError as error:
            self._draft.note(f"The chunk at byte {at} is damaged: {str(error).partition(': ')[2].rstrip('.')}.")

    def _read_summary(self) -> None:
        """Take schemas and channels from the summary at the end, which repeats those that a damaged chunk held."""
        self._summary_read = True
        end = len(self._data) - len(MAGIC) - _FOOTER_BYTES
        if end < len(MAGIC) or bytes(self._data[end + _FOOTER_BYTES :]) != MAGIC or self._data[end] != FOOTER:
            return
        cursor = ByteCursor(self._data, f"Log {self._draft.path!r}", end + 9)
        (start,) = cursor.unpack("Q", "the place of the summary")
        if not len(MAGIC) <= start < end:
            return
        cursor = ByteCursor(self._data, cursor.name, start, end)
        try:
            while cursor.left:
                opcode, length = cursor.unpack("BQ", "the head of a record")
                body = ByteCursor(self._data, cursor.name, cursor.at, cursor.at + length)
                cursor.take(length, f"record {opcode}")
                if opcode in (SCHEMA, CHANNEL):
                    for _ in self._record(opcode, body):
                        pass
        except AssetError:
            self._draft.note("The summary at the end of the file is damaged, too.")

    def _chunk(self, body: ByteCursor) -> Iterator[BagMessage]:
        _, _, size, crc = body.unpack("QQQI", "the head of a chunk")
        compression = _text(body, "the compression of a chunk")
        (length,) = body.unpack("Q", "the length of a chunk")
        packed = body.take(length, "a chunk")
        if size > self._unpacked_left:
            raise body.refuse(f"chunks unpack to over {bytes_allowed(len(self._data)):,} bytes")
        self._unpacked_left -= size
        records = unpacked(packed, compression, size, body)
        if crc and _crc(records) != crc:
            self._draft.note(f"The checksum of the chunk at byte {body.at - length} does not fit: it was left out.")
            return
        inner = ByteCursor(records, f"{body.name}, chunk at byte {body.at - length}")
        while inner.left:
            opcode, count = inner.unpack("BQ", "the head of a record")
            part = ByteCursor(records, inner.name, inner.at, inner.at + count)
            inner.take(count, f"record {opcode}")
            if opcode in _IN_CHUNKS:
                yield from self._record(opcode, part)

    def _record(self, opcode: int, body: ByteCursor) -> Iterator[BagMessage]:
        if opcode == MESSAGE:
            channel, _, received, _ = body.unpack("HIQQ", "the head of a message")
            if channel not in self.channels and not self._summary_read:
                self._read_summary()
            yield BagMessage(channel, received, body.take(body.left, "a message"))
        elif opcode == SCHEMA:
            (number,) = body.unpack("H", "a schema")
            name, encoding = _text(body, "the name of a schema"), _text(body, "the encoding of a schema")
            (length,) = body.unpack("I", "the length of a schema")
            text = bytes(body.take(length, "a schema")).decode("utf-8", "replace")
            self._schemas.setdefault(number, (name, encoding, text))
        elif opcode == CHANNEL:
            number, schema = body.unpack("HH", "a channel")
            topic, encoding = _text(body, "a topic"), _text(body, "the encoding of a channel")
            kind, schema_encoding, text = self._schemas.get(schema, ("", "", ""))
            self.channels.setdefault(number, McapChannel(topic, encoding, kind, schema_encoding, text))


def _text(body: ByteCursor, what: str) -> str:
    (length,) = body.unpack("I", what)
    return harmless(bytes(body.take(length, what)).decode("utf-8", "replace"))


def _crc(data: bytes) -> int:
    import zlib

    return zlib.crc32(data)


def unpacked(packed: memoryview, compression: str, size: int, place: ByteCursor) -> bytes:
    """Return the records of a chunk, of exactly the size that it declares.

    Raises:
        AssetError: The compression is unknown, or its bytes are damaged or of another size.
    """
    unpack: dict[str, Callable[[memoryview, int], bytes]]
    unpack = {"": lambda data, _: bytes(data), "zstd": zstd_bytes, "lz4": lz4_bytes}
    if compression not in unpack:
        raise place.refuse(f"compression {shown(compression)} is unknown; zstd and lz4 are read")
    try:
        records = unpack[compression](packed, size + 1)
    except (ValueError, RuntimeError, EOFError, OSError, struct.error, MemoryError) as error:
        raise place.refuse(f"a chunk cannot be unpacked: {harmless(str(error))[:120]}") from error
    if len(records) != size:
        raise place.refuse(f"a chunk unpacks to another size than the {size} bytes that it declares")
    return records
