"""The pilots of a batch of races: each called behind the wall, its command checked, clipped and counted.

A pilot that raises, or returns what is no command, ends its own flight with its sentence; one whose numbers are not finite ends
it as such. Its last command is held from then on, for the moments that the referee still looks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayInt
from airworthy.core.errors import AirworthyError
from airworthy.pilots.containment import PilotFailure
from airworthy.race.background import CHARGE_S, Charge, DeskNote, DeskRecord
from airworthy.race.benchmark.telemetry import Listener
from airworthy.race.onboard import Onboard, OnboardFacts, Truth, clipped_command
from airworthy.race.pilots.catalogue import PilotEntry
from airworthy.race.referee import RaceEnd
from airworthy.race.wall.seats import LocalSeat, Seat


class Crew:
    """Pilots of a batch.

    Args:
        entry: Who flies.
        facts: What pilots are told; of as many flights as there are.
        charge: Of work beside commands, for pilots that ask for a desk.
    """

    def __init__(self, entry: PilotEntry, facts: OnboardFacts, charge: Charge = CHARGE_S):
        count = facts.flights
        self._entry, self._facts, self._charge = entry, facts, charge
        self.command = np.zeros((count, 4))
        """In force, (flights, 4)."""
        self.clipped = np.zeros(count, np.int64)
        """Commands of each flight that had to be clipped."""
        self.reason = [""] * count
        """Why a pilot was sent home; empty where it was not."""
        self._digests = [sha256() for _ in range(count)]
        # One object for all rows, or one for each.
        self._rows: list[slice] = [slice(0, count)] if entry.batched else [slice(k, k + 1) for k in range(count)]
        self._seats: list[Seat] = [LocalSeat(entry.make) if entry.door is None else entry.door() for _ in self._rows]
        self._spent: list[list[float]] = [[] for _ in self._rows]
        self._failed = np.zeros(count, np.int64)
        self.heard = Listener(count, len(facts.gates))
        """What became of telemetry."""

    def begin(self) -> None:
        """Make the pilots and tell them the facts; who fails here fails at the first step."""
        # All are asked before any is waited for: pilots in processes of their own begin at the same time.
        for number, rows in enumerate(self._rows):
            told = _own_facts(replace(self._facts, flights=rows.stop - rows.start))
            with self._failing(number):
                self._seats[number].begin(told, self._charge)
        for number, rows in enumerate(self._rows):
            if not np.all(self._failed[rows]):
                with self._failing(number):
                    self._seats[number].begun()

    def close(self) -> None:
        """End pilots that have processes or connections."""
        for seat in self._seats:
            seat.close()

    def fly(self, onboard: Onboard, truth: Truth | None, racing: Array, tell: bool = False) -> ArrayInt:
        """Ask for commands; returns what has ended flights by now, `RaceEnd` or 0, (flights,).

        Args:
            onboard: Of all flights.
            truth: Of all flights; None for honest pilots.
            racing: Which flights still race, (flights,): the others hold their command.
            tell: Whether `telemetry` will be asked for.
        """
        asked = [number for number, rows in enumerate(self._rows) if np.any(racing[rows] & (self._failed[rows] == 0))]
        for number in asked:
            self._ask(number, onboard, truth, tell)
        for number in asked:
            self._take(number, racing)
        return self._failed.copy()

    def telemetry(self, racing: Array) -> dict[int, dict[str, ArrayF32]]:
        """Return what pilots say of their belief behind their last command, by the number of the flight.

        Args:
            racing: Which flights still race, (flights,): others are not asked.
        """
        said: dict[int, dict[str, ArrayF32]] = {}
        flying = np.flatnonzero(racing & (self._failed == 0))
        for seat, rows in zip(self._seats, self._rows, strict=True):
            said |= self.heard.ask(seat.teller(), rows, flying)
        return said

    def digests(self) -> tuple[str, ...]:
        """Return the SHA-256 of each flight's commands, as they were given to the vehicle."""
        return tuple(item.hexdigest() for item in self._digests)

    def planned(self, flight: int) -> tuple[DeskRecord, ...]:
        """Return what a flight's pilot did beside its commands."""
        return () if self._entry.batched else tuple(self._seats[flight].records)

    def noted(self, flight: int) -> tuple[DeskNote, ...]:
        """Return what a flight's pilot says that it did out of the ordinary."""
        return () if self._entry.batched else tuple(self._seats[flight].notes)

    def spent(self, flight: int) -> Array:
        """Return processor time of each of a flight's commands [s], work beside them left out; of a batch's, its share."""
        batched = self._entry.batched
        return np.array(self._spent[0 if batched else flight]) / (len(self.command) if batched else 1)

    def _ask(self, number: int, onboard: Onboard, truth: Truth | None, tell: bool) -> None:
        rows, alone = self._rows[number], not self._entry.batched
        given = onboard.of(rows.start) if alone else onboard
        told = truth.of(rows.start) if alone and truth is not None else truth
        with self._failing(number):
            self._seats[number].ask(given, told, tell)

    def _take(self, number: int, racing: Array) -> None:
        rows, seat = self._rows[number], self._seats[number]
        if np.all(self._failed[rows]):
            return  # it was gone when it was asked
        command: Array | None = None
        with self._failing(number):
            command = seat.answer()
        if command is None:
            return
        self._spent[number].append(seat.cpu_s)
        finite = np.all(np.isfinite(command), axis=1)
        bounded, clipped = clipped_command(np.where(finite[:, None], command, 0.0), self._facts.thrust_max)
        for k in range(len(command)):
            flight = rows.start + k
            if not racing[flight] or self._failed[flight]:
                continue
            if not finite[k]:
                said = f"the command was {np.array2string(command[k], precision=4)}, which is not finite"
                self._send_home(slice(flight, flight + 1), said, RaceEnd.BAD_COMMAND)
                continue
            self.command[flight] = bounded[k]
            self.clipped[flight] += int(clipped[k])
            self._digests[flight].update(bounded[k].tobytes())

    @contextmanager
    def _failing(self, number: int) -> Iterator[None]:
        """Let a pilot's failure end its flights, and the pilot."""
        try:
            yield
        except PilotFailure as failure:
            self._send_home(self._rows[number], str(failure), RaceEnd.PILOT_ERROR)
            self._seats[number].close()

    def _send_home(self, rows: slice, reason: str, end: RaceEnd) -> None:
        for flight in range(rows.start, rows.stop):
            if not self._failed[flight]:
                self._failed[flight], self.reason[flight] = int(end), reason


def _own_facts(facts: OnboardFacts) -> OnboardFacts:
    """Return facts in memory of their own: what a pilot writes there reaches nobody."""
    arrays = ("corners", "directions", "bounds", "pivots", "decoy_corners")
    return replace(facts, **{name: getattr(facts, name).copy() for name in arrays})


def check_rate(entry: PilotEntry, physics_rate: float) -> int:
    """Return physics steps per command of a pilot.

    Raises:
        AirworthyError: Its rate is none of the physics' rate over a whole number.
    """
    steps = physics_rate / entry.rate if entry.rate > 0.0 else 0.0
    if steps < 1.0 or steps != round(steps):
        raise AirworthyError(
            f"The race pilot {entry.name!r} commands {entry.rate:g} times a second; expected {physics_rate:g} Hz over a whole"
            " number, as 960, 480, 240 or 120."
        )
    return round(steps)
