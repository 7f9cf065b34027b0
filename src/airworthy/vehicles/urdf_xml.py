"""XML of a URDF, read with every doorway shut: no document type, no entities, bounded size, depth and element count."""

from __future__ import annotations

import math
from typing import NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

import numpy as np

__all__ = ["BYTES_MAX", "BrokenXmlError", "numbers", "parse"]

BYTES_MAX = 4 * 1024 * 1024
DEPTH_MAX = 32
ELEMENTS_MAX = 50_000
LENGTH_MAX = 1e6
"""No number of a drone's URDF is larger."""


class BrokenXmlError(Exception):
    """What is wrong, without the file's name; the reader of the file adds that."""


def parse(data: bytes) -> Element:
    """The outermost element; raises BrokenXmlError on anything but plain XML within the limits."""
    builder, depth, count = TreeBuilder(), 0, 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth, count
        depth, count = depth + 1, count + 1
        if depth > DEPTH_MAX or count > ELEMENTS_MAX:
            raise BrokenXmlError(f"nested deeper than {DEPTH_MAX} or more than {ELEMENTS_MAX} elements")
        builder.start(tag, attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    def refuse(*_: object) -> NoReturn:
        raise BrokenXmlError("a document type or entities are not allowed in a URDF")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = parser.ExternalEntityRefHandler = refuse
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, LookupError, ValueError) as error:  # the last two: unknown or unsuited encodings
        raise BrokenXmlError(f"not readable XML ({error})") from None
    return builder.close()


def numbers(element: Element | None, attribute: str, count: int, default: str | None = None) -> np.ndarray:
    """`count` finite numbers of an attribute, shape (count,); raises BrokenXmlError on anything else."""
    text = default if element is None else element.get(attribute, default)
    if text is None:
        raise BrokenXmlError(
            f"an element with {attribute!r} is missing" if element is None else f"<{element.tag[:40]}> lacks {attribute!r}"
        )
    parts = text.split()
    try:
        values = [float(part) for part in parts if "_" not in part]
    except ValueError:
        values = []
    if len(values) != count or len(parts) != count or not all(math.isfinite(v) and abs(v) <= LENGTH_MAX for v in values):
        raise BrokenXmlError(
            f"{attribute}={text[:60]!r} must be {count} finite number{'s' if count > 1 else ''} up to {LENGTH_MAX:g}"
        )
    return np.array(values)
