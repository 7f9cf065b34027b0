"""Seats: where a pilot of one flight, or of a batch, sits. One here, in this process, and one behind a connection.

A crew asks all its seats and then takes their answers, so that pilots in processes of their own think at the same time.
"""

from __future__ import annotations

import math
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from airworthy.bridges.wire import LinkFailure, Message, WireLink, within
from airworthy.core.arrays import Array
from airworthy.core.files import harmless
from airworthy.pilots.containment import PilotFailure, contained
from airworthy.race.background import NOTE_LENGTH, NOTES_MAX, Charge, Desk, DeskNote, DeskRecord, desk_of, is_note
from airworthy.race.onboard import Onboard, OnboardFacts, Truth, checked_command
from airworthy.race.wall.records import CLOSE, COMMAND, FAILURE, READY, facts_message, record_message

PILOT_ARRAYS_MAX = 4 << 20
"""Most bytes of arrays in a pilot's answer; ours. A path of 2,000 points for each of 25 flights has half of it."""
REASON_LENGTH = 400
"""Of what a pilot's process says went wrong; ours."""


def told(said: Any) -> str:
    """Return what a pilot's process says as tables and pages have it: short, and none of its escape codes."""
    return harmless(str(said)[:REASON_LENGTH])


class Seat(Protocol):
    """A pilot as its crew has it. Everything but `close` raises PilotFailure, behind which the seat is of no use."""

    records: list[DeskRecord]
    """Of its desk, where it has one."""
    notes: list[DeskNote]
    """Of its desk."""
    cpu_s: float
    """Processor time of the last command, work at the desk left out [s]."""

    def begin(self, facts: OnboardFacts, charge: Charge) -> None:
        """Have the pilot made, and told the facts."""

    def begun(self) -> None:
        """Wait until it has taken them."""

    def ask(self, onboard: Onboard, truth: Truth | None, tell: bool = False) -> None:
        """Give it a record.

        Args:
            onboard: The record.
            truth: For pilots that are given it.
            tell: Whether what it believes is wanted with its command.
        """

    def answer(self) -> Array:
        """Return its command, (flights, 4), which may not be finite."""

    def teller(self) -> Any:
        """Return what may have a method `telemetry`, or None."""

    def close(self) -> None:
        """End it."""


class LocalSeat:
    """A pilot in this process.

    Args:
        make: Makes it.
    """

    def __init__(self, make: Callable[[], Any]):
        self._make = make
        self._pilot: Any = None
        self._desk: Desk | None = None
        self._flights = 0
        self._given: tuple[Any, ...] = ()
        self.records: list[DeskRecord] = []
        self.notes: list[DeskNote] = []
        self.cpu_s = 0.0

    def begin(self, facts: OnboardFacts, charge: Charge) -> None:
        """See `Seat`."""
        self._flights = facts.flights
        pilot = contained(self._make)
        self._desk = contained(desk_of, pilot, charge)
        if self._desk is not None:
            self.records, self.notes = self._desk.records, self._desk.notes
        contained(pilot.begin, facts)
        self._pilot = pilot

    def begun(self) -> None:
        """See `Seat`; it has."""

    def ask(self, onboard: Onboard, truth: Truth | None, tell: bool = False) -> None:
        """See `Seat`.

        Args:
            onboard: The record.
            truth: For pilots that are given it.
            tell: Whether what it believes is wanted with its command.
        """
        self._given = (onboard,) if truth is None else (onboard, truth)
        if self._desk is not None:
            self._desk.now = onboard.time

    def answer(self) -> Array:
        """See `Seat`."""
        before, begun = len(self.records), time.thread_time()
        command = contained(lambda: checked_command(self._pilot.command(*self._given), self._flights))
        spent = time.thread_time() - begun
        self.cpu_s = spent - sum(record.cpu_s for record in self.records[before:])
        return command

    def teller(self) -> Any:
        """See `Seat`."""
        return self._pilot

    def close(self) -> None:
        """See `Seat`; there is nothing to end."""


@dataclass
class Opened:
    """A connection to a pilot, and its process where that is ours."""

    link: WireLink
    process: subprocess.Popen[bytes] | None = None
    folder: str = ""
    """That the process was started in, empty; removed with it."""

    def cpu_clock(self) -> float:
        """Return the processor time of the process and all its threads [s]; NaN where it is not ours or not told."""
        if self.process is None:
            return math.nan
        try:
            # Linux' clock of another process, which that process cannot turn: man clock_getcpuclockid.
            return time.clock_gettime((~self.process.pid << 3) | 2)
        except OSError:
            return math.nan

    def ending(self) -> str:
        """Return how the process ended, in words; empty where it has not, or is not ours."""
        if self.process is None:
            return ""
        try:
            code = self.process.wait(1.0)  # the connection breaks a moment before the process is gone
        except subprocess.TimeoutExpired:
            return ""
        if code >= 0:
            return f"its process ended with exit code {code}"
        return f"its process was killed by {signal.Signals(-code).name}"

    def close(self) -> None:
        """Close the connection, and end the process."""
        self.link.close()
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
        if self.process is not None:
            self.process.wait()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)


@dataclass
class SocketSeat:
    """A pilot behind a connection."""

    open: Callable[[], Opened]
    """Connects, or starts its process; raises PilotFailure."""
    greet: Callable[[Opened, float], Any]
    """Waits for its hello until a time; raises PilotFailure, LinkFailure."""
    patience_s: float
    """How long it may take for an answer, by the clock on the wall [s]."""
    records: list[DeskRecord] = field(default_factory=list)
    notes: list[DeskNote] = field(default_factory=list)
    cpu_s: float = math.nan

    def __post_init__(self) -> None:
        self._opened: Opened | None = None
        self._facts: Message | None = None
        self._flights, self._due, self._clock = 0, math.inf, math.nan
        self._teller: _Teller | None = None
        self._tick, self._asked_at = 0, 0.0
        self.stale = 0
        """Commands that answered an earlier record than the last one; they are left out, and noted."""

    def begin(self, facts: OnboardFacts, charge: Charge) -> None:
        """See `Seat`."""
        self._flights, self._facts = facts.flights, facts_message(facts, charge)
        self._opened = self.open()
        self._due = within(self.patience_s)

    def begun(self) -> None:
        """See `Seat`."""
        assert self._opened is not None
        assert self._facts is not None
        try:
            self.greet(self._opened, self._due)
            self._opened.link.send(self._facts, self._due)
        except LinkFailure as failure:
            raise self._failed(failure) from None
        ready = self._received(READY)
        self._keep(ready)
        self._teller = _Teller() if ready.fields.get("tells") is True else None

    def ask(self, onboard: Onboard, truth: Truth | None, tell: bool = False) -> None:
        """See `Seat`.

        Args:
            onboard: The record.
            truth: For pilots that are given it.
            tell: Whether what it believes is wanted with its command.
        """
        assert self._opened is not None
        self._due = within(self.patience_s)
        self._clock = self._opened.cpu_clock()
        message = record_message(onboard, truth)
        # What it believes is read once a frame, and comes with the command.
        self._tick, self._asked_at = self._tick + 1, onboard.time
        told = {**message.fields, "tell": tell and self._teller is not None, "tick": self._tick}
        try:
            self._opened.link.send(Message(message.kind, told, message.arrays), self._due)
        except LinkFailure as failure:
            raise self._failed(failure) from None

    def answer(self) -> Array:
        """See `Seat`."""
        assert self._opened is not None
        message = self._commanded()
        before = len(self.records)
        self._keep(message)
        spent = self._opened.cpu_clock() - self._clock
        self.cpu_s = spent - sum(record.cpu_s for record in self.records[before:])
        if self._teller is not None:
            self._teller.said = {key: array for key, array in message.arrays.items() if key != "command"}
            self._teller.failure = told(message.fields.get("untold", ""))
        if "command" not in message.arrays:
            raise PilotFailure("its answer held no command")
        try:
            return checked_command(message.arrays["command"], self._flights)
        except ValueError as error:
            raise PilotFailure(f"ValueError: {error}") from None

    def teller(self) -> Any:
        """See `Seat`."""
        return self._teller

    def close(self) -> None:
        """See `Seat`."""
        if self._opened is None:
            return
        # Where it is gone already, that was said.
        with suppress(LinkFailure):
            self._opened.link.send(Message(CLOSE), within(1.0))
        self._opened.close()
        self._opened = None

    def _commanded(self) -> Message:
        """Return the command that answers the last record; earlier ones are counted, and left out."""
        while True:
            message = self._received(COMMAND)
            tick = message.fields.get("tick", self._tick)  # programs of others may leave it out
            if type(tick) is not int or not 0 < tick <= self._tick:
                raise PilotFailure(f"its command has the tick {told(repr(tick))}; expected {self._tick}, as the record has")
            if tick == self._tick:
                return message
            self.stale += 1
            if len(self.notes) < NOTES_MAX:
                self.notes.append(DeskNote(self._asked_at, STALE))
            if time.monotonic() >= self._due:  # of who sends faster than we read
                raise PilotFailure(f"it gave no answer in time: none within {self.patience_s:g} s")

    def _received(self, kind: str) -> Message:
        assert self._opened is not None
        try:
            message = self._opened.link.receive(self._due)
        except LinkFailure as failure:
            raise self._failed(failure) from None
        if message.kind == FAILURE:
            self._keep(message)
            raise PilotFailure(told(message.fields.get("said", "it failed")))
        if message.kind != kind:
            raise PilotFailure(f"it answered {message.kind[:40]!r}; expected {kind!r}")
        return message

    def _failed(self, failure: LinkFailure) -> PilotFailure:
        assert self._opened is not None
        said = str(failure)
        if "in time" in said:
            return PilotFailure(f"{said}: none within {self.patience_s:g} s")
        return PilotFailure(self._opened.ending() or said)

    def _keep(self, message: Message) -> None:
        """Take what was done at the desk."""
        given = message.fields.get("plans", [])
        if not isinstance(given, list) or len(given) > 1000:
            raise PilotFailure("its answer says of its plans what is no list")
        for row in given:
            numbers = isinstance(row, list) and len(row) in (3, 4) and all(type(x) in (int, float) for x in row[:3])
            # The fourth may be left out, by programs of others.
            if not numbers or not np.all(np.isfinite(row[:3])) or (len(row) == 4 and type(row[3]) is not bool):
                raise PilotFailure("its answer says of a plan what are no three numbers and whether it failed")
            submitted, spent, charged = (float(x) for x in row[:3])
            self.records.append(DeskRecord(submitted, spent, charged, failed=row[3:] == [True]))
        noted = message.fields.get("notes", [])
        if not isinstance(noted, list) or len(self.notes) + len(noted) > NOTES_MAX:
            raise PilotFailure(f"its answer says of its notes what is no list, or there are more than {NOTES_MAX}")
        for row in noted:
            pair = isinstance(row, list) and len(row) == 2 and type(row[0]) in (int, float) and is_note(row[1])
            if not pair or not math.isfinite(row[0]):
                raise PilotFailure(f"its answer holds a note that is no time with a line of up to {NOTE_LENGTH} letters")
            self.notes.append(DeskNote(float(row[0]), row[1]))


STALE = "a command that answered an earlier record came, and was left out"
"""Note of a program that does."""


class _Teller:
    """What a pilot said of its belief with its last command."""

    said: Mapping[str, Any]
    failure: str

    def __init__(self) -> None:
        self.said, self.failure = {}, ""

    def telemetry(self) -> Mapping[str, Any]:
        """Return it; raises PilotFailure where there was something wrong with it."""
        if self.failure:
            raise PilotFailure(self.failure)
        return self.said


def empty_folder(prefix: str) -> str:
    """Make an empty folder and return its path."""
    return os.path.realpath(tempfile.mkdtemp(prefix=prefix))
