"""A digest of a scene: equal for equal scenes, in every process."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import numpy as np

from airworthy.scenes.record import Scene

__all__ = ["fingerprint"]


def fingerprint(scene: Scene) -> str:
    """SHA-256 over everything that a scene holds, arrays and floats by their bytes, as 64 hexadecimal digits."""
    digest = hashlib.sha256()
    _feed(digest, scene)
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    digest.update(f"{type(value).__name__}:".encode())
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            _feed(digest, getattr(value, field.name))
    elif isinstance(value, dict):
        for key in sorted(value):
            _feed(digest, key)
            _feed(digest, value[key])
    elif isinstance(value, tuple | list):
        for item in value:
            _feed(digest, item)
    elif isinstance(value, np.ndarray):
        digest.update(f"{value.dtype.str}{value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, float):
        digest.update(np.float64(value).tobytes())
    else:
        digest.update(repr(value).encode())
    digest.update(b";")
