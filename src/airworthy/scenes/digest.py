"""Whether two scenes are the same, to the last bit."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from airworthy.scenes.record import Scene

__all__ = ["scene_digest"]


def scene_digest(scene: Scene) -> str:
    """SHA-256 of everything a scene holds, as 64 hexadecimal digits.

    Numbers count by value (1 and 1.0 are equal), arrays by shape, kind and bytes, tables in the order of their names, so that
    equal digests mean equal scenes, on any machine.
    """
    held = hashlib.sha256()
    _feed(held, scene)
    return held.hexdigest()


def _feed(held: Any, value: Any) -> None:
    """Every value with its kind and length before it, so that no two contents run into the same bytes."""
    if isinstance(value, np.ndarray):
        held.update(f"a{value.dtype.str}{value.shape}".encode())
        held.update(np.ascontiguousarray(value).tobytes())
    elif is_dataclass(value):
        held.update(f"r{type(value).__name__}".encode())
        for item in fields(value):
            held.update(f"f{item.name}".encode())
            _feed(held, getattr(value, item.name))
    elif isinstance(value, dict):
        held.update(f"d{len(value)}".encode())
        for key in sorted(value, key=str):
            _feed(held, key)
            _feed(held, value[key])
    elif isinstance(value, tuple | list):
        held.update(f"t{len(value)}".encode())
        for part in value:
            _feed(held, part)
    elif isinstance(value, bool | str) or value is None:
        text = str(value).encode()
        held.update(f"s{type(value).__name__}{len(text)}:".encode() + text)
    else:
        held.update(b"n" + struct.pack("<d", float(value)))
