"""Values of a JSON object, checked as they are taken out: a wrong type is a sentence, not a TypeError."""

from __future__ import annotations

import math
from typing import Any, NoReturn

from airworthy.scenes.formats._source import Source

Table = dict[str, Any]


class Fields:
    """An object of a JSON file and where it stands ("node 3")."""

    def __init__(self, source: Source, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            source.refuse(f"{where} is not an object")
        self.source = source
        self.value: Table = value
        self.where = where

    def __contains__(self, key: str) -> bool:
        return key in self.value

    def _wrong(self, key: str, expected: str) -> NoReturn:
        self.source.refuse(f"{key} of {self.where} is not {expected}")

    def integer(self, key: str, default: int | None = None, low: int = 0, high: int = 2**53) -> int:
        """A whole number within limits; 3.0 is one."""
        value = self.value.get(key, default)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            self._wrong(key, "a whole number")
        if not low <= value < high:
            self._wrong(key, f"within {low}..{high - 1}")
        return value

    def number(self, key: str, default: float) -> float:
        """A finite number."""
        return _number(self, key, self.value.get(key, default))

    def numbers(self, key: str, count: int, default: tuple[float, ...] | None = None) -> tuple[float, ...]:
        """A list of so many finite numbers."""
        value = self.value.get(key, default)
        if not isinstance(value, list | tuple) or len(value) != count:
            self._wrong(key, f"a list of {count} numbers")
        return tuple(_number(self, key, item) for item in value)

    def text(self, key: str, default: str | None = None) -> str:
        """A string."""
        value = self.value.get(key, default)
        if not isinstance(value, str):
            self._wrong(key, "a string")
        return value

    def flag(self, key: str, default: bool = False) -> bool:
        """True or false."""
        value = self.value.get(key, default)
        if not isinstance(value, bool):
            self._wrong(key, "true or false")
        return value

    def items(self, key: str) -> list[Any]:
        """A list, empty where it is missing; not longer than the limit of nodes."""
        value = self.value.get(key, [])
        if not isinstance(value, list):
            self._wrong(key, "a list")
        self.source.at_most(len(value), self.source.limits.nodes, f"entries in {key}")
        return value

    def indices(self, key: str, count: int) -> list[int]:
        """A list of whole numbers below a count."""
        items = self.items(key)
        for item in items:
            if isinstance(item, bool) or not isinstance(item, int) or not 0 <= item < count:
                self._wrong(key, f"a list of numbers below {count}")
        return items

    def object(self, key: str) -> Fields:
        """An object, empty where it is missing."""
        return Fields(self.source, self.value.get(key, {}), f"{key} of {self.where}")

    def extension(self, name: str) -> Fields | None:
        """One of its extensions, None where it has not got that."""
        extensions = self.object("extensions")
        return extensions.object(name) if name in extensions else None


def _number(fields: Fields, key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        fields._wrong(key, "a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        fields._wrong(key, "a finite number")
    return number
