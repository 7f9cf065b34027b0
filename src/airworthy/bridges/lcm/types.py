"""Types of LCM as its language defines them, read at run time, and messages as bytes and back.

Facts of LCM's type specification (lcm-proj.github.io): numbers are big-endian, texts have their length with a zero byte as
int32, and every message begins with a fingerprint of its type's names, types and dimensions.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from airworthy.core.errors import AirworthyError

__all__ = ["LcmType", "lcm_types", "parsed_types"]

_NUMBERS = {
    "int8_t": "b",
    "int16_t": "h",
    "int32_t": "i",
    "int64_t": "q",
    "float": "f",
    "double": "d",
    "boolean": "?",
    "byte": "B",
}
_STRUCT = re.compile(r"struct\s+(\w+)\s*\{([^{}]*)\}")
_MEMBER = re.compile(r"(\w+)\s+(\w+)((?:\s*\[\s*\w+\s*\])*)\s*;")
_MASK = (1 << 64) - 1
_TEXT_MAX, _ITEMS_MAX = 1 << 16, 1 << 28
"""Longest text, and most numbers of an array [1]; ours: a count is 31 bits of whatever was sent."""


@dataclass(frozen=True)
class _Member:
    name: str
    kind: str
    sizes: tuple[str, ...]
    """Numbers, or names of members that hold them."""


@dataclass(frozen=True)
class LcmType:
    """One type."""

    name: str
    members: tuple[_Member, ...]
    fingerprint: bytes
    """Eight bytes that every message of it begins with."""

    def packed(self, values: Mapping[str, Any]) -> bytes:
        """Return a message's bytes; members that are left out are 0, "" or empty.

        Raises:
            AirworthyError: A member that there is not, or an array of another length than its type says.
        """
        unknown = set(values) - {item.name for item in self.members}
        if unknown:
            names = ", ".join(item.name for item in self.members)
            raise AirworthyError(f"A message {self.name} has no member {', '.join(sorted(unknown))}; it has {names}.")
        parts = [self.fingerprint]
        for item in self.members:
            value = values.get(item.name, "" if item.kind == "string" else 0)
            if item.kind == "string":
                text = value.encode() + b"\0"
                parts.append(struct.pack(">i", len(text)) + text)
            elif not item.sizes:
                parts.append(struct.pack(f">{_NUMBERS[item.kind]}", value))
            else:
                count = self._count(item, values)
                array = np.zeros(count) if item.name not in values else np.asarray(value).reshape(-1)
                if array.size != count:
                    raise AirworthyError(f"The member {item.name!r} of {self.name} has {array.size} numbers; expected {count}.")
                parts.append(array.astype(f">{_code(item.kind)}").tobytes())
        return b"".join(parts)

    def unpacked(self, data: bytes) -> dict[str, Any]:
        """Return the values of a message, arrays as NumPy's of this machine's order.

        Raises:
            AirworthyError: It is of another type, or cut short.
        """
        if data[:8] != self.fingerprint:
            raise AirworthyError(
                f"{len(data):,} bytes are no message {self.name}: they begin with {data[:8].hex() or 'nothing'}."
            )
        found: dict[str, Any] = {}
        at = 8
        try:
            for item in self.members:
                if item.kind == "string":
                    (length,) = struct.unpack_from(">i", data, at)
                    if not 1 <= length <= _TEXT_MAX or at + 4 + length > len(data):
                        raise ValueError(f"a text of {length} bytes")
                    found[item.name] = data[at + 4 : at + 3 + length].decode("utf-8", "replace")
                    at += 4 + length
                elif not item.sizes:
                    (found[item.name],) = struct.unpack_from(f">{_NUMBERS[item.kind]}", data, at)
                    at += struct.calcsize(_NUMBERS[item.kind])
                else:
                    count = self._count(item, found)
                    kind = np.dtype(f">{_code(item.kind)}")
                    if at + count * kind.itemsize > len(data):
                        raise ValueError(f"an array of {count:,} numbers in {len(data):,} bytes")
                    array = np.frombuffer(data, kind, count, at).astype(kind.newbyteorder("="))
                    lengths = [self._length(item, size, found) for size in item.sizes]
                    found[item.name] = array if len(lengths) == 1 else array.reshape(lengths)
                    at += count * kind.itemsize
        except (struct.error, ValueError) as error:
            raise AirworthyError(f"{len(data):,} bytes are no message {self.name}: {error}.") from None
        if at != len(data):
            raise AirworthyError(f"A message {self.name} of {len(data):,} bytes has {len(data) - at:,} too many.")
        return found

    def _count(self, item: _Member, values: Mapping[str, Any]) -> int:
        count = 1
        for size in item.sizes:
            count *= self._length(item, size, values)
        return count

    def _length(self, item: _Member, size: str, values: Mapping[str, Any]) -> int:
        length = int(size) if size.isdecimal() else int(values.get(size, 0))
        if not 0 <= length <= _ITEMS_MAX:
            raise ValueError(f"{length:,} numbers in {item.name!r}")
        return length


def _code(kind: str) -> str:
    """NumPy's name of a type of numbers, without its order of bytes."""
    return {"byte": "u1", "boolean": "?", "int8_t": "i1"}.get(kind, _NUMBERS[kind])


def parsed_types(text: str) -> dict[str, LcmType]:
    """Return the types of a text in LCM's language, by name; types of members are numbers and texts.

    Raises:
        AirworthyError: A line is none of a struct, or a member has a type that is not read here.
    """
    plain = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    found = {}
    for name, body in _STRUCT.findall(plain):
        members = tuple(_Member(label, kind, tuple(re.findall(r"\w+", sizes))) for kind, label, sizes in _MEMBER.findall(body))
        rest = _MEMBER.sub("", body).strip()
        odd = [item.kind for item in members if item.kind not in (*_NUMBERS, "string")]
        if rest or odd or any(item.kind == "string" and item.sizes for item in members):
            what = (odd or [rest or "an array of texts"])[0][:40]
            raise AirworthyError(f"The LCM type {name} has {what!r}, which is not read here.")
        found[name] = LcmType(name, members, _fingerprint(members))
    return found


def _fingerprint(members: tuple[_Member, ...]) -> bytes:
    value = 0x12345678
    for item in members:
        value = _hashed_text(value, item.name)
        value = _hashed_text(value, item.kind)
        value = _hashed(value, len(item.sizes))
        for size in item.sizes:
            value = _hashed(value, 0 if size.isdecimal() else 1)
            value = _hashed_text(value, size)
    # What follows is of types within types, of which there are none here, but for the turn by one bit.
    value &= _MASK
    return struct.pack(">Q", ((value << 1) & _MASK) + (value >> 63))


def _hashed_text(value: int, text: str) -> int:
    value = _hashed(value, len(text))
    for letter in text.encode():
        value = _hashed(value, letter)
    return value


def _hashed(value: int, byte: int) -> int:
    """One step of LCM's hash, on signed numbers of 64 bits."""
    signed = value - (1 << 64) if value >> 63 else value
    return (((value << 8) & _MASK) ^ ((signed >> 55) & _MASK)) + byte & _MASK


@cache
def lcm_types() -> Mapping[str, LcmType]:
    """Return the types of `airworthy.lcm`."""
    return parsed_types(files("airworthy.bridges.lcm").joinpath("airworthy.lcm").read_text("utf-8"))
