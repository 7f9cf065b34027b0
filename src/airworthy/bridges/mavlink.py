"""MAVLink 2: the few messages of a simulated autopilot, to bytes and back.

Wire format: mavlink.io, "Packet Serialization" and "MAVLink 2"; messages: common.xml, minimal.xml of mavlink/mavlink. Fields
are sent largest type first, extensions last in their order; zeros at a payload's end are left out.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

__all__ = ["MESSAGES", "MavlinkFrame", "MavlinkMessage", "MavlinkParser", "encode", "message", "x25"]

MAGIC = 0xFD
_HEADER, _CHECKSUM, _SIGNATURE = 10, 2, 13
_SIGNED = 0x01
"""Of the incompatibility flags: a signature follows. It is not checked; frames with other flags may not be read at all."""
_FORMATS = {
    "uint64_t": "Q", "int64_t": "q", "double": "d", "uint32_t": "I", "int32_t": "i", "float": "f", "uint16_t": "H",
    "int16_t": "h", "uint8_t": "B", "int8_t": "b",
}  # fmt: skip


@dataclass(frozen=True)
class MavlinkMessage:
    """A kind of message."""

    number: int
    name: str
    declared: tuple[str, ...]
    """Fields as the definition has them: "type name" or "type[n] name"."""
    extensions: tuple[str, ...] = ()
    """Those that came later."""

    @cached_property
    def wire(self) -> tuple[tuple[str, str, int], ...]:
        """Fields in the order in which they are sent: type, name, length (0: not an array)."""
        # Sorting is stable: fields of one size keep their order.
        base = sorted(map(_parsed, self.declared), key=lambda item: -struct.calcsize(_FORMATS[item[0]]))
        return (*base, *map(_parsed, self.extensions))

    @cached_property
    def layout(self) -> struct.Struct:
        """Of the whole payload, extensions included."""
        return struct.Struct("<" + "".join(f"{count or ''}{_FORMATS[kind]}" for kind, _, count in self.wire))

    @cached_property
    def seed(self) -> int:
        """CRC_EXTRA: a checksum over the definition, so that two sides with different ones do not talk."""
        crc = x25(f"{self.name} ".encode())
        for kind, name, count in self.wire[: len(self.declared)]:
            crc = x25(f"{kind} {name} ".encode() + (bytes([count]) if count else b""), crc)
        return (crc & 0xFF) ^ (crc >> 8)


def _parsed(text: str) -> tuple[str, str, int]:
    kind, _, name = text.partition(" ")
    base, bracket, count = kind.partition("[")
    return base, name, int(count.rstrip("]")) if bracket else 0


MESSAGES = (
    MavlinkMessage(0, "HEARTBEAT", ("uint8_t type", "uint8_t autopilot", "uint8_t base_mode", "uint32_t custom_mode",
                             "uint8_t system_status", "uint8_t mavlink_version")),
    MavlinkMessage(2, "SYSTEM_TIME", ("uint64_t time_unix_usec", "uint32_t time_boot_ms")),
    MavlinkMessage(76, "COMMAND_LONG", ("uint8_t target_system", "uint8_t target_component", "uint16_t command",
                                 "uint8_t confirmation", *(f"float param{k}" for k in range(1, 8)))),
    MavlinkMessage(77, "COMMAND_ACK", ("uint16_t command", "uint8_t result"),
            ("uint8_t progress", "int32_t result_param2", "uint8_t target_system", "uint8_t target_component")),
    MavlinkMessage(93, "HIL_ACTUATOR_CONTROLS", ("uint64_t time_usec", "float[16] controls", "uint8_t mode", "uint64_t flags")),
    MavlinkMessage(107, "HIL_SENSOR",
                   ("uint64_t time_usec", "float xacc", "float yacc", "float zacc", "float xgyro", "float ygyro",
                                "float zgyro", "float xmag", "float ymag", "float zmag", "float abs_pressure",
                                "float diff_pressure", "float pressure_alt", "float temperature", "uint32_t fields_updated"),
            ("uint8_t id",)),
    MavlinkMessage(113, "HIL_GPS", ("uint64_t time_usec", "uint8_t fix_type", "int32_t lat", "int32_t lon", "int32_t alt",
                             "uint16_t eph", "uint16_t epv", "uint16_t vel", "int16_t vn", "int16_t ve", "int16_t vd",
                             "uint16_t cog", "uint8_t satellites_visible"), ("uint8_t id", "uint16_t yaw")),
    MavlinkMessage(115, "HIL_STATE_QUATERNION", ("uint64_t time_usec", "float[4] attitude_quaternion", "float rollspeed",
                                          "float pitchspeed", "float yawspeed", "int32_t lat", "int32_t lon", "int32_t alt",
                                          "int16_t vx", "int16_t vy", "int16_t vz", "uint16_t ind_airspeed",
                                          "uint16_t true_airspeed", "int16_t xacc", "int16_t yacc", "int16_t zacc")),
)  # fmt: skip
"""All that are written or read here; frames of others are skipped and counted."""
_BY_NUMBER = {item.number: item for item in MESSAGES}
_BY_NAME = {item.name: item for item in MESSAGES}


def message(name: str) -> MavlinkMessage:
    """Return a kind of message by its name."""
    return _BY_NAME[name]


def _table() -> tuple[int, ...]:
    found = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ 0x8408 if byte & 1 else byte >> 1
        found.append(byte)
    return tuple(found)


_TABLE = _table()


def x25(data: bytes, crc: int = 0xFFFF) -> int:
    """Return the checksum CRC-16/MCRF4XX (X.25 without its last turn), continued from `crc`."""
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc


@dataclass(frozen=True)
class MavlinkFrame:
    """A message that arrived whole."""

    kind: MavlinkMessage
    sequence: int
    system: int
    component: int
    fields: Mapping[str, Any]


def encode(name: str, fields: Mapping[str, Any], sequence: int, system: int = 1, component: int = 1) -> bytes:
    """Return a frame.

    Args:
        name: Of the message.
        fields: All of its fields by name; extensions that are left out are zero.
        sequence: Counts the sender's frames, modulo 256.
        system: Sender's system id.
        component: Sender's component id.
    """
    kind = _BY_NAME[name]
    values: list[Any] = []
    for index, (_, key, count) in enumerate(kind.wire):
        value = fields[key] if index < len(kind.declared) else fields.get(key, 0)
        values.extend(value) if count else values.append(value)
    # The first byte always stays.
    payload = kind.layout.pack(*values)
    payload = payload[:1] + payload[1:].rstrip(b"\0")
    body = struct.pack("<BBBBBBHB", len(payload), 0, 0, sequence & 0xFF, system, component, kind.number & 0xFFFF, 0) + payload
    return bytes([MAGIC]) + body + struct.pack("<H", x25(bytes([kind.seed]), x25(body)))


@dataclass
class MavlinkParser:
    """Frames out of a stream of bytes, whatever is between them; holds at most one unfinished frame."""

    skipped: int = 0
    """Bytes that belonged to no frame."""
    damaged: int = 0
    """Frames whose checksum was wrong."""
    unknown: int = 0
    """Frames of messages that are not read here."""
    _held: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> list[MavlinkFrame]:
        """Return the frames that are whole now."""
        self._held += data
        found: list[MavlinkFrame] = []
        start = 0
        while True:
            at = self._held.find(MAGIC, start)
            self.skipped += (len(self._held) if at < 0 else at) - start
            start = len(self._held) if at < 0 else at
            if len(self._held) - start < _HEADER + _CHECKSUM:
                break
            flags = self._held[start + 2]
            size = _HEADER + self._held[start + 1] + _CHECKSUM + (_SIGNATURE if flags & _SIGNED else 0)
            if flags & ~_SIGNED:
                self.skipped, start = self.skipped + 1, start + 1
                continue
            if len(self._held) - start < size:
                break
            frame, fits = self._frame(bytes(self._held[start : start + size]))
            if frame is not None:
                found.append(frame)
            # A wrong checksum may mean that the start was none: look for the next one right behind it.
            start += size if fits else 1
        del self._held[:start]
        return found

    def _frame(self, data: bytes) -> tuple[MavlinkFrame | None, bool]:
        """Return the message of a frame's bytes, if it is one that is read here, and whether its bytes are used up."""
        length, _, _, sequence, system, component, low, high = struct.unpack("<BBBBBBHB", data[1:_HEADER])
        kind = _BY_NUMBER.get(low | high << 16)
        if kind is None:
            self.unknown += 1
            return None, True
        end = _HEADER + length
        (told,) = struct.unpack("<H", data[end : end + _CHECKSUM])
        if x25(bytes([kind.seed]), x25(data[1:end])) != told:
            self.damaged += 1
            return None, False
        payload = data[_HEADER:end][: kind.layout.size].ljust(kind.layout.size, b"\0")
        values = list(kind.layout.unpack(payload))
        fields: dict[str, Any] = {}
        for _, name, count in kind.wire:
            fields[name] = tuple(values[:count]) if count else values[0]
            del values[: count or 1]
        return MavlinkFrame(kind, sequence, system, component, fields), True
