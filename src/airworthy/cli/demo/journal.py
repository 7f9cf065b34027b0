"""`demo.json`: which parts of the demo are made, by which commands, and how long each took."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
    commands: list[str]
    made: list[str] = field(default_factory=list)
    """Names of parts that are whole."""
    seconds: dict[str, float] = field(default_factory=dict)
    """By part; of all runs together."""
    left_out: dict[str, str] = field(default_factory=dict)
    """By part, why."""

    @classmethod
    def open(cls, folder: Path, commands: Sequence[str]) -> Journal:
        """That of a folder, or a new one.

        Raises:
            AirworthyError: The folder holds another demo.
            AssetError: Its journal is damaged.
        """
        path = folder / DEMO_FILE
        if not path.exists():
            return cls(folder, list(commands))
        found = read_json(path, _LIMIT_BYTES)
        try:
            before, version = list(found["commands"]), str(found["version"])
            journal = cls(folder, list(commands), list(found["made"]), dict(found["seconds"]))
        except (KeyError, TypeError, ValueError) as error:
            raise AssetError(f"{str(path)!r} is damaged: delete the folder, or name another with --out.") from error
        if before != list(commands) or version != __version__:
            raise AirworthyError(
                f"{str(folder)!r} holds a demo with other options or of another version: delete it, or name another with --out."
            )
        return journal

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

    def keep(self, name: str) -> None:
        """A part is whole."""
        self.made.append(name)
        write_json(self.folder / DEMO_FILE, self.described())

    def leave_out(self, name: str, why: str) -> None:
        """A part cannot be made here."""
        self.left_out[name] = why

    def described(self) -> dict[str, Any]:
        """As plain data."""
        told = {"commands": self.commands, "made": self.made, "seconds": self.seconds, "left_out": self.left_out}
        return {"version": __version__, "view": "policy", **told, "hardware": describe_machine()}
