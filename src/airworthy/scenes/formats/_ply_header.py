"""The header of a PLY file."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from airworthy.core.untrusted import shown
from airworthy.scenes.formats._source import Source

_HEADER_MAX = 1 << 16
_PROPERTIES_MAX = 256
_CODES = {"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4", "float": "f4", "double": "f8"}
_WIDE = {
    "int8": "i1",
    "uint8": "u1",
    "int16": "i2",
    "uint16": "u2",
    "int32": "i4",
    "uint32": "u4",
    "int64": "i8",
    "uint64": "u8",
}
_TYPES = {**_CODES, **_WIDE, "float32": "f4", "float64": "f8"}


@dataclass
class Property:
    """A column, or a list of varying length where `length` is given."""

    name: str
    kind: str
    """NumPy code without byte order."""
    length: str = ""


@dataclass
class Element:
    """A table of the file."""

    name: str
    count: int
    properties: list[Property] = field(default_factory=list)

    @property
    def least(self) -> int:
        """Bytes of a row, with its lists empty."""
        return sum(np.dtype(p.length or p.kind).itemsize for p in self.properties)


def read_header(source: Source) -> tuple[str, list[Element], int]:
    """Byte order ("ascii", "<", ">"), elements, and where the body begins."""
    data = source.data
    if data[:5] not in (b"ply\n", b"ply\r\n") and data[:4] not in (b"ply\n", b"ply\r"):
        source.refuse("it does not begin with the line ply")
    end = data.find(b"end_header", 0, _HEADER_MAX)
    if end < 0:
        source.refuse(f"its header does not end within {_HEADER_MAX:,} bytes")
    body = end + len(b"end_header")
    body += 2 if data[body : body + 2] == b"\r\n" else 1
    order = ""
    elements: list[Element] = []
    for line in data[:end].decode("latin-1").splitlines()[1:]:
        words = line.split()
        if not words or words[0] in ("comment", "obj_info"):
            continue
        if words[0] == "format" and len(words) >= 2:
            order = {"ascii": "ascii", "binary_little_endian": "<", "binary_big_endian": ">"}.get(words[1], "")
        elif words[0] == "element" and len(words) == 3 and words[2].isascii() and words[2].isdigit():
            elements.append(Element(words[1], _count(source, words[2])))
        elif words[0] == "property" and elements:
            elements[-1].properties.append(_property(source, words))
        else:
            source.refuse(f"its header holds the line {shown(line)}")
    if not order:
        source.refuse("its header names no format that exists (ascii, binary_little_endian, binary_big_endian)")
    if sum(len(element.properties) for element in elements) + len(elements) > _PROPERTIES_MAX:
        source.refuse(f"its header holds more than {_PROPERTIES_MAX} elements and properties")
    return order, elements, body


def _count(source: Source, word: str) -> int:
    if len(word) > 20 or int(word) > len(source.data):
        source.refuse(f"it promises {word[:24]} rows of an element and has {len(source.data):,} bytes in all")
    return int(word)


def _property(source: Source, words: list[str]) -> Property:
    if len(words) == 3 and words[1] in _TYPES:
        return Property(words[2], _TYPES[words[1]])
    if len(words) == 5 and words[1] == "list" and words[3] in _TYPES and _TYPES.get(words[2], "f4")[0] in "iu":
        return Property(words[4], _TYPES[words[3]], _TYPES[words[2]])
    return source.refuse(f"its header holds the property {shown(' '.join(words))}")
