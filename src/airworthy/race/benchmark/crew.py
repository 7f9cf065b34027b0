"""The pilots of a batch of races: each called behind the wall, its command checked, clipped and counted.

A pilot that raises, or returns what is no command, ends its own flight with its sentence; one whose numbers are not finite ends
it as such. Its last command is held from then on, for the moments that the referee still looks.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayInt
from airworthy.core.errors import AirworthyError
from airworthy.pilots.containment import PilotFailure, contained
from airworthy.race.background import CHARGE_S, Charge, Desk, DeskRecord, desk_of
from airworthy.race.benchmark.telemetry import Listener
from airworthy.race.onboard import Onboard, OnboardFacts, Truth, checked_command, clipped_command
from airworthy.race.pilots.catalogue import PilotEntry
from airworthy.race.referee import RaceEnd


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
        self._pilots: list[Any] = []
        # One of each pilot's, as `_pilots`.
        self._desks: list[Desk | None] = []
        self._spent: list[list[float]] = [[] for _ in self._rows]
        self._failed = np.zeros(count, np.int64)
        self.heard = Listener(count, len(facts.gates))
        """What became of telemetry."""

    def begin(self) -> None:
        """Make the pilots and tell them the facts; who fails here fails at the first step."""
        for rows in self._rows:
            told = replace(self._facts, flights=rows.stop - rows.start)
            try:
                pilot = contained(self._entry.make)
                desk = contained(desk_of, pilot, self._charge)
                contained(pilot.begin, _own_facts(told))
                self._pilots.append(pilot)
                self._desks.append(desk)
            except PilotFailure as failure:
                self._pilots.append(None)
                self._desks.append(None)
                self._send_home(rows, str(failure), RaceEnd.PILOT_ERROR)

    def fly(self, onboard: Onboard, truth: Truth | None, racing: Array) -> ArrayInt:
        """Ask for commands; returns what has ended flights by now, `RaceEnd` or 0, (flights,).

        Args:
            onboard: Of all flights.
            truth: Of all flights; None for honest pilots.
            racing: Which flights still race, (flights,): the others hold their command.
        """
        for k, rows in enumerate(self._rows):
            if self._pilots[k] is not None and np.any(racing[rows] & (self._failed[rows] == 0)):
                self._ask(k, onboard, truth, racing)
        return self._failed.copy()

    def telemetry(self, racing: Array) -> dict[int, dict[str, ArrayF32]]:
        """Return what pilots say of their belief behind their last command, by the number of the flight.

        Args:
            racing: Which flights still race, (flights,): others are not asked.
        """
        said: dict[int, dict[str, ArrayF32]] = {}
        flying = np.flatnonzero(racing & (self._failed == 0))
        for rows, pilot in zip(self._rows, self._pilots, strict=True):
            said |= self.heard.ask(pilot, rows, flying)
        return said

    def digests(self) -> tuple[str, ...]:
        """Return the SHA-256 of each flight's commands, as they were given to the vehicle."""
        return tuple(item.hexdigest() for item in self._digests)

    def planned(self, flight: int) -> tuple[DeskRecord, ...]:
        """Return what a flight's pilot did beside its commands."""
        desk = self._desks[flight] if not self._entry.batched else None
        return () if desk is None else tuple(desk.records)

    def spent(self, flight: int) -> Array:
        """Return processor time of each of a flight's commands [s], work beside them left out; of a batch's, its share."""
        batched = self._entry.batched
        return np.array(self._spent[0 if batched else flight]) / (len(self.command) if batched else 1)

    def _ask(self, number: int, onboard: Onboard, truth: Truth | None, racing: Array) -> None:
        rows, pilot, desk = self._rows[number], self._pilots[number], self._desks[number]
        alone = not self._entry.batched
        beside = 0
        if desk is not None:
            desk.now, beside = onboard.time, len(desk.records)
        given: Sequence[Any] = (onboard.of(rows.start) if alone else onboard,)
        if truth is not None:
            given = (*given, truth.of(rows.start) if alone else truth)
        count = rows.stop - rows.start
        begun = time.thread_time()
        try:
            command = contained(lambda: checked_command(pilot.command(*given), count))
        except PilotFailure as failure:
            self._send_home(rows, str(failure), RaceEnd.PILOT_ERROR)
            return
        charged = sum(record.cpu_s for record in desk.records[beside:]) if desk is not None else 0.0
        self._spent[number].append(time.thread_time() - begun - charged)
        finite = np.all(np.isfinite(command), axis=1)
        bounded, clipped = clipped_command(np.where(finite[:, None], command, 0.0), self._facts.thrust_max)
        for k in range(count):
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

    def _send_home(self, rows: slice, reason: str, end: RaceEnd) -> None:
        for flight in range(rows.start, rows.stop):
            if not self._failed[flight]:
                self._failed[flight], self.reason[flight] = int(end), reason


def _own_facts(facts: OnboardFacts) -> OnboardFacts:
    """Return facts in memory of their own: what a pilot writes there reaches nobody."""
    arrays = ("corners", "directions", "bounds", "pivots")
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
