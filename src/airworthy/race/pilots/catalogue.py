"""Race pilots by word: those that come with the package, one's own (`FILE.py:NAME`), and learned ones (`policy:FOLDER`).

A pilot is a class of `airworthy.race.onboard.RacePilot`. It may say of itself `rate` [Hz], at which it commands (960 over a
whole number), and `sensors`, which of the race's it reads (for the table by sensors). Those of the package may be `batched`:
one object flies all flights of a batch; any other is made once per flight, and sees no flight but its own.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from numbers import Real
from pathlib import Path
from typing import Any

from airworthy.core.errors import AirworthyError, AssetError, unknown_name
from airworthy.core.own_modules import load_with, own_digest
from airworthy.pilots.containment import import_contained
from airworthy.race.background import plans
from airworthy.race.published import TRUTH

POLICY = "policy:"
"""Begins the word of a learned pilot; its folder follows."""
IN_PROCESS = "in-process"
"""Marks a pilot that was flown in the process of the simulation, where Python code finds the truth if it looks for it."""
_SHOWN = 60
"""Characters of a stranger's value in a message; ours."""
_ANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
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
    "race:camera": (
        "airworthy.race.pilots.camera_racing",
        "CameraRacingPilot",
        "as `race`, by IMU and camera images, without beacons",
    ),
    "race:stereo": (
        "airworthy.race.pilots.camera_racing",
        "StereoRacingPilot",
        "as `race:camera`, by images of both cameras of the stereo pair",
    ),
    "race": (
        "airworthy.race.pilots.racing",
        "RacingPilot",
        "the fastest way as it believes the gates to stand, by IMU and beacons",
    ),
    "policy": (
        "airworthy.race.learned.pilot",
        "PackagedPolicyPilot",
        "a small learned network on the estimate of `race`, by IMU and beacons; no solver, no plan",
    ),
}
"""Word -> module, class, what it does. A word that begins with "truth:" is given the truth."""
WITHOUT_DECOYS = ("servo", "truth:race")
"""Those that read no beacons of gates that are not flown, where these are lit."""


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
    if word.startswith(POLICY):
        folder, digest = own_policy(word)
        pilot = import_module("airworthy.race.learned.pilot").PolicyPilot
        return replace(_entry(word, pilot, policy_identity(folder, digest), trusted=True), make=partial(pilot, folder))
    plain = word.removeprefix(TRUTH)
    file, colon, name = plain.rpartition(":")
    if not (colon and file.endswith(".py")):
        raise unknown_name("race pilot", word, race_pilots(), "One of your own is FILE.py:CLASS, a learned one policy:FOLDER.")
    path = Path(file)
    if not path.is_file():
        raise AssetError(f"There is no file {file!r} for the race pilot {name!r}.")
    digest = own_digest(path)
    made = getattr(load_with(import_contained, path, digest), name, None)
    if not (isinstance(made, type) and hasattr(made, "begin") and hasattr(made, "command")):
        raise AirworthyError(f"{file!r} has no class {name!r} with begin(facts) and command(onboard); see docs/howto/race.md.")
    _check_made_of_nothing(file, name, made)
    return _entry(word, made, {"file": path.name, "class": name, "sha256": digest}, trusted=False)


def _check_made_of_nothing(file: str, name: str, made: type) -> None:
    """Refuse a class that cannot be made as pilots are, without arguments; one whose signature nobody knows is tried."""
    try:
        signature = inspect.signature(made)
    except (ValueError, TypeError):
        return
    needed = [item.name for item in signature.parameters.values() if item.default is item.empty and item.kind not in _ANY]
    if needed:
        raise AirworthyError(
            f"{file!r} has a class {name!r} that is made with {', '.join(map(repr, needed[:3]))}; race pilots are made without"
            " arguments: give these defaults."
        )


def own_policy(word: str) -> tuple[Path, str]:
    """Return folder and digest of a learned pilot by its word, `policy:FOLDER`; raises AssetError where it is none."""
    text = word.removeprefix(POLICY)
    if not text:
        raise AirworthyError(
            f"The race pilot {word!r} names no folder; expected {POLICY}FOLDER, as airworthy train race writes it."
        )
    folder = Path(text)
    return folder, str(import_module("airworthy.race.learned.contract").race_policy_digest(folder))


def policy_identity(folder: Path, digest: str) -> dict[str, Any]:
    """Return what a learned pilot's commands depend on.

    Args:
        folder: It lies in.
        digest: Of its weights.
    """
    return {"policy": folder.name, "sha256": digest}


def _entry(word: str, made: Any, identity: Mapping[str, Any], trusted: bool) -> PilotEntry:
    return PilotEntry(
        name=word,
        make=made,
        truth=word.startswith(TRUTH),
        # A stranger's pilot of a batch would see its neighbours' sensors, and a desk is one flight's.
        batched=trusted and bool(getattr(made, "batched", False)) and not plans(made),
        rate=_rate(word, getattr(made, "rate", RATE_HZ)),
        sensors=_sensors(word, getattr(made, "sensors", ())),
        plans=plans(made),
        identity=identity,
    )


def _rate(word: str, given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, Real) or not 0.0 < float(given) < math.inf:
        raise AirworthyError(
            f"The race pilot {word!r} has the rate {_shown(given)}; expected commands per second: 960 over a whole number, as"
            " rate = 240.0."
        )
    return float(given)


def _sensors(word: str, given: Any) -> tuple[str, ...]:
    if not isinstance(given, (tuple, list)) or not all(isinstance(name, str) for name in given):
        raise AirworthyError(f"The race pilot {word!r} has the sensors {_shown(given)}; expected names, as ('imu', 'beacons').")
    return tuple(given)


def _shown(given: Any) -> str:
    """Return a stranger's value in a message; its own words may raise."""
    try:
        return repr(given)[:_SHOWN]
    except Exception:
        return f"of type {type(given).__name__}"
