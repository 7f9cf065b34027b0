"""Where generated places get their chance from: a pure function of names and numbers, the same in every process."""

from __future__ import annotations

import hashlib
import operator
from typing import SupportsIndex

import numpy as np

from airworthy.core.errors import AirworthyError

__all__ = ["checked", "digest", "generator"]


def digest(*parts: object) -> int:
    """128 bits of SHA-256 over the parts' texts."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "little")


def generator(*parts: object) -> np.random.Generator:
    """A Philox generator keyed by the parts: names, indices, seeds, numbers of attempts."""
    return np.random.Generator(np.random.Philox(key=digest(*parts)))


def checked(what: str, value: SupportsIndex, lowest: int | None = None, highest: int | None = None) -> int:
    """An integer within its range.

    Raises:
        AirworthyError: If it is not an integer, or out of range.
    """
    limits = "" if lowest is None else f" from {lowest} on" if highest is None else f" from {lowest} to {highest}"
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        raise AirworthyError(f"`{what}` is {value!r}; expected an integer{limits}.")
    number = operator.index(value)
    if (lowest is not None and number < lowest) or (highest is not None and number > highest):
        raise AirworthyError(f"`{what}` is {number}; expected an integer{limits}.")
    return number
