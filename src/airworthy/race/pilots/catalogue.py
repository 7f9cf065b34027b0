"""Race pilots by word: those that come with the package, and one's own (`FILE.py:NAME`).

A pilot is a class of `airworthy.race.onboard.RacePilot`. It may say of itself `rate` [Hz], at which it commands (960 over a
whole number), and `sensors`, which of the race's it reads (for the table by sensors). Those of the package may be `batched`:
one object flies all flights of a batch; any other is made once per flight, and sees no flight but its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from airworthy.core.errors import AirworthyError, AssetError, unknown_name
from airworthy.core.own_modules import load_with, own_digest
from airworthy.pilots.containment import import_contained
from airworthy.race.background import plans
from airworthy.race.published import TRUTH

IN_PROCESS = "in-process"
"""Marks a pilot that was flown in the process of the simulation, where Python code finds the truth if it looks for it."""
RATE_HZ = 240.0
"""Commands per second of a pilot that does not say. Ours: four physics steps, as the trackers of fast races need."""

_PILOTS: dict[str, tuple[str, str, str]] = {
    "servo": ("airworthy.race.pilots.servo", "Servo", "flies at the next gate's beacons at 6 m/s, by IMU and beacons"),
    "truth:race": (
        "airworthy.race.pilots.truth_race",
        "TruthRace",
        "flies the fastest plan through the true gates, by its true state; needs the extra `race`",
    ),
    "poly": (
        "airworthy.race.pilots.tempers",
        "PolyPilot",
        "smooth paths through the gates as it believes them to stand, by IMU and beacons",
    ),
    "race:stored": (
        "airworthy.race.pilots.tempers",
        "StoredPilot",
        "a stored plan, moved with the gates as it believes them to stand, by IMU and beacons",
    ),
    "race:sure": (
        "airworthy.race.pilots.tempers",
        "SurePilot",
        "as `race`, with less thrust, wider margins and longer looks",
    ),
    "race": (
        "airworthy.race.pilots.racing",
        "RacingPilot",
        "the fastest way as it believes the gates to stand, by IMU and beacons; needs the extra `race`",
    ),
}
"""Word -> module, class, what it does. A word that begins with "truth:" is given the truth."""


@dataclass(frozen=True)
class PilotEntry:
    """One pilot, and how it is flown."""

    name: str
    """As it was asked for."""
    make: Callable[[], Any]
    """Makes one pilot: of one flight, or of all where `batched`."""
    truth: bool
    """Whether it is given the truth."""
    batched: bool
    """Whether one object flies all flights of a batch."""
    rate: float
    """Commands per second [Hz]."""
    sensors: tuple[str, ...]
    """That it says it reads; empty: it does not say."""
    identity: Mapping[str, Any] = field(default_factory=dict)
    """What its commands depend on, of a file of one's own."""
    plans: bool = False
    """Whether it asks for a desk (`airworthy.race.background`)."""
    door: Callable[[], Any] | None = None
    """Opens a seat for it on the other side of the wall (`airworthy.race.wall.doors`); none: it is made in this process."""

    @property
    def mark(self) -> str:
        """What its results are marked with besides the truth; empty: nothing."""
        return IN_PROCESS if self.door is None else ""


def race_pilots() -> dict[str, str]:
    """Return words of the pilots that come with the package, and what each does."""
    return {name: summary for name, (_, _, summary) in _PILOTS.items()}


def race_pilot(word: str) -> PilotEntry:
    """Return a pilot by its word, or one's own: `FILE.py:NAME`, with `truth:` before it where it needs the truth.

    Raises:
        UnknownNameError: There is no such pilot.
        AirworthyError: Its file is missing, holds no such class, or failed while it was imported, or a package that it needs
            is not installed.
    """
    if word in _PILOTS:
        module, name, _ = _PILOTS[word]
        made = getattr(import_module(module), name)
        # Before anything is flown: what a pilot needs may not be installed.
        if hasattr(made, "check"):
            made.check()
        return _entry(word, made, {}, trusted=True)
    plain = word.removeprefix(TRUTH)
    file, colon, name = plain.rpartition(":")
    if not (colon and file.endswith(".py")):
        raise unknown_name("race pilot", word, race_pilots(), "One of your own is FILE.py:CLASS.")
    path = Path(file)
    if not path.is_file():
        raise AssetError(f"There is no file {file!r} for the race pilot {name!r}.")
    digest = own_digest(path)
    made = getattr(load_with(import_contained, path, digest), name, None)
    if not (isinstance(made, type) and hasattr(made, "begin") and hasattr(made, "command")):
        raise AirworthyError(f"{file!r} has no class {name!r} with begin(facts) and command(onboard); see docs/howto/race.md.")
    return _entry(word, made, {"file": path.name, "class": name, "sha256": digest}, trusted=False)


def _entry(word: str, made: Any, identity: Mapping[str, Any], trusted: bool) -> PilotEntry:
    rate = float(getattr(made, "rate", RATE_HZ))
    return PilotEntry(
        name=word,
        make=made,
        truth=word.startswith(TRUTH),
        # A stranger's pilot of a batch would see its neighbours' sensors, and a desk is one flight's.
        batched=trusted and bool(getattr(made, "batched", False)) and not plans(made),
        rate=rate,
        sensors=tuple(getattr(made, "sensors", ())),
        plans=plans(made),
        identity=identity,
    )
