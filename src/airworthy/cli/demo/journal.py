"""`demo.json`: which parts of the demo are made, by which commands, and how long each took."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airworthy import __version__
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import read_json, write_json
from airworthy.evaluation.machine import describe_machine

__all__ = ["DEMO_FILE", "Journal"]

DEMO_FILE = "demo.json"
_LIMIT_BYTES = 1 << 20


@dataclass(eq=False)
class Journal:
    """Kept in the demo's folder; written after each part."""

    folder: Path
    identity: list[str]
    """What is made: commands of the parts with a folder that stands for any, since a demo may be moved."""
    commands: list[str]
    """Of the parts, as they are called here."""
    made: list[str] = field(default_factory=list)
    """Names of parts that are whole."""
    seconds: dict[str, float] = field(default_factory=dict)
    """By part; of all runs together."""
    left_out: dict[str, str] = field(default_factory=dict)
    """By part, why."""

    @classmethod
    def open(cls, folder: Path, identity: Sequence[str], commands: Sequence[str]) -> Journal:
        """That of a folder, or a new one.

        Raises:
            AirworthyError: The folder holds another demo.
            AssetError: Its journal is damaged.
        """
        path = folder / DEMO_FILE
        if not os.path.lexists(path):
            return cls(folder, list(identity), list(commands))
        try:
            found = read_json(path, _LIMIT_BYTES)
            before, version = [str(word) for word in found.get("identity", ())], str(found["version"])
            made, seconds = [str(name) for name in found["made"]], {k: float(v) for k, v in found["seconds"].items()}
        except (AssetError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise AssetError(f"{str(path)!r} is damaged: delete the folder, or name another with --out.") from error
        if changed := _changed(before, identity, version):
            raise AirworthyError(
                f"{str(folder)!r} holds another demo ({changed}): repeat its options, delete it, or name another with --out."
            )
        return cls(folder, list(identity), list(commands), made, seconds)

    def has(self, name: str) -> bool:
        """Whether a part is whole."""
        return name in self.made

    @contextmanager
    def clocked(self, name: str) -> Iterator[None]:
        """Adds the time inside to a part's."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begun
            with suppress(AirworthyError):  # on a full disk, what was there before stays
                self._write()

    def keep(self, name: str) -> None:
        """A part is whole."""
        self.made = [*(known for known in self.made if known != name), name]
        self._write()

    def _write(self) -> None:
        write_json(self.folder / DEMO_FILE, self.described())

    def leave_out(self, name: str, why: str) -> None:
        """A part cannot be made here."""
        self.left_out[name] = why

    def described(self) -> dict[str, Any]:
        """As plain data."""
        told = {"made": self.made, "seconds": self.seconds, "left_out": self.left_out}
        commands = {"identity": self.identity, "commands": self.commands}
        return {"version": __version__, "view": "policy", **commands, **told, "hardware": describe_machine()}


def _changed(before: Sequence[str], now: Sequence[str], version: str) -> str:
    """What another demo had otherwise, in a few words; empty where it is the same."""
    if version != __version__:
        return f"made by version {version}, this is {__version__}"
    for old, new in zip(before, now, strict=False):
        words = list(zip(old.split(), new.split(), strict=False))
        for a, b in words:
            if a != b:
                return f"{a!r} in its command {' '.join(old.split()[:2])!r}, now {b!r}"
    return "" if list(before) == list(now) else "with other options"
