"""Work that a pilot does beside its commands, as planning, charged in simulated time: its result is there only after that.

A pilot with a method `use_desk(desk)` is given a `Desk` of its own before `begin(facts)`. What it submits runs at once and in
its own thread, so that the same flight has the same bits; the flight goes on as if it had run beside it on a processor of its
own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeVar

from airworthy.core.errors import AirworthyError

T = TypeVar("T")
MEASURED: Final = "measured"
"""Charged is the processor time that the work took; a flight is then not repeatable to the bit."""
CHARGE_S = 0.1
"""Charged for each work where nothing else is said [s]. Planning latency in spec/race 5.4, more than its warm plans took."""
CHARGE_MAX_S = 60.0
"""A larger charge is taken for a mistake [s]: races end before."""
NOTE_LENGTH = 60
"""Letters of a note; ours: a word or two."""
NOTES_MAX = 1000
"""Notes of a flight that are kept; ours: who has more of them needs no more to know it."""
_EARLY_S = 1e-9
"""By so much the clock may be early, which is a quotient of whole numbers and rounds [s]."""
Charge = float | Literal["measured"]


@dataclass(frozen=True)
class DeskRecord:
    """One work that was submitted."""

    submitted_s: float
    """By the clock of the race [s]."""
    cpu_s: float
    """Processor time of the thread that did it [s]."""
    charged_s: float
    """[s]; the result is there so long after `submitted_s`."""
    failed: bool = False
    """Whether it led nowhere: the result is None."""


@dataclass(frozen=True)
class DeskNote:
    """Something out of the ordinary that a pilot did, as it says itself: for tables, so that nothing of it is silent."""

    time_s: float
    """By the clock of the race [s]."""
    word: str
    """What it did, the same for the same."""


class Ticket(Generic[T]):
    """What was submitted, and is fetched once it is ready."""

    def __init__(self, desk: Desk, record: DeskRecord, result: T):
        self._desk, self._result = desk, result
        self.record = record

    @property
    def ready(self) -> bool:
        """Whether the charged time has passed."""
        return self._desk.now >= self.record.submitted_s + self.record.charged_s - _EARLY_S

    @property
    def result(self) -> T:
        """What the work returned; raises AirworthyError before it is ready."""
        if not self.ready:
            due = self.record.submitted_s + self.record.charged_s
            raise AirworthyError(
                f"A result was asked for at {self._desk.now:.4f} s, before it is ready at {due:.4f} s; ask `ready` first."
            )
        return self._result


class Desk:
    """Takes a pilot's work, one flight's.

    Args:
        charge: Seconds of simulated time for each work, 0: none, or "measured": its processor time.

    Raises:
        AirworthyError: It is neither.
    """

    def __init__(self, charge: Charge = CHARGE_S):
        self.charge = charge_of(str(charge))
        self.now = 0.0
        """Clock of the race [s]; whoever flies the pilot sets it before each command."""
        self.records: list[DeskRecord] = []
        """Of all work, in the order of submission."""
        self.notes: list[DeskNote] = []
        """In their order."""

    def submit(self, work: Callable[[], T]) -> Ticket[T]:
        """Do some work and return its ticket; what the work raises is raised here, and charged nothing."""
        begun = time.thread_time()
        result = work()
        spent = time.thread_time() - begun
        charged = spent if self.charge == MEASURED else float(self.charge)
        record = DeskRecord(self.now, spent, charged, result is None)
        self.records.append(record)
        return Ticket(self, record, result)

    def note(self, word: str) -> None:
        """Say what was done out of the ordinary; raises AirworthyError for a word that is none, or too long."""
        if not is_note(word):
            raise AirworthyError(
                f"A note at the desk is {str(word)[:NOTE_LENGTH]!r}; expected a word or two in one line, at most {NOTE_LENGTH}"
                " letters."
            )
        if len(self.notes) < NOTES_MAX:
            self.notes.append(DeskNote(self.now, word))


def is_note(word: Any) -> bool:
    """Tell whether a word can be noted: it stands in a line of a table, so it has no line breaks."""
    return isinstance(word, str) and 0 < len(word) <= NOTE_LENGTH and word.isprintable()


def charge_of(text: str) -> Charge:
    """Return what is charged for each work, by its text.

    Args:
        text: "measured", or seconds from 0 to `CHARGE_MAX_S`.

    Raises:
        AirworthyError: It is neither.
    """
    word = text.strip()
    if word == MEASURED:
        return MEASURED
    try:
        seconds = float(word)
    except ValueError:
        seconds = math.nan
    # NaN fails both comparisons.
    if not 0.0 <= seconds <= CHARGE_MAX_S:
        raise AirworthyError(
            f"--charge-compute is {text!r}; expected {MEASURED!r}, or seconds from 0 to {CHARGE_MAX_S:g} for each plan."
        )
    return seconds


def desk_of(pilot: Any, charge: Charge) -> Desk | None:
    """Return the desk that a pilot was just given; None for one that asks for none.

    Args:
        pilot: New, before it is told any facts.
        charge: Of each work.
    """
    if not plans(pilot):
        return None
    desk = Desk(charge)
    pilot.use_desk(desk)
    return desk


def plans(pilot: Any) -> bool:
    """Tell whether a pilot, or its class, asks for a desk."""
    return callable(getattr(pilot, "use_desk", None))
