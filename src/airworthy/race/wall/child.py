"""The process of one pilot: `python -m airworthy.race.wall.child FD`, where FD is its end of a socket pair.

It confines itself before any code of the pilot's is run, says what the pilot is, and then answers records with commands. It
ends when the other end does.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.bridges.wire import LinkFailure, Message, WireLink
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.jobs.parent_watch import die_with_parent
from airworthy.core.own_modules import own_digest
from airworthy.pilots.containment import PilotFailure, contained, stops_noted
from airworthy.race.background import Desk, desk_of
from airworthy.race.benchmark.telemetry import checked_telemetry
from airworthy.race.onboard import checked_command
from airworthy.race.pilots.catalogue import POLICY, PilotEntry, own_policy, race_pilot
from airworthy.race.published import TRUTH
from airworthy.race.wall.confinement import confined
from airworthy.race.wall.records import CLOSE, COMMAND, FAILURE, HELLO, PROTOCOL, READY, facts_of, record_of

REFUSED = "refused"
"""Kind of the message instead of a hello, where there is no such pilot or it cannot be made."""


def main(arguments: list[str]) -> int:
    """Serve one pilot; returns the exit code, 0 where the other end closed the connection."""
    die_with_parent()
    link = WireLink(socket.socket(fileno=int(arguments[0])))
    try:
        with stops_noted():
            return _serve(link)
    except LinkFailure:
        return 1
    finally:
        link.close()


def _serve(link: WireLink) -> int:
    asked = link.receive().fields
    word, digest = asked["word"], asked["digest"]
    learned = word.startswith(POLICY)
    place = Path(word.removeprefix(POLICY) if learned else word.removeprefix(TRUTH).rpartition(":")[0]) if digest else None
    holds = confined([place if learned else place.parent] if place is not None else [])
    try:
        # Read again here: what is flown is what the run was begun with.
        if place is not None and (own_policy(word)[1] if learned else own_digest(place)) != digest:
            raise AirworthyError(f"{str(place)!r} was changed while its pilot was flying; fly it anew into another --out.")
        entry = race_pilot(word)
    except AirworthyError as error:
        link.send(Message(REFUSED, {"said": str(error)}))
        return 1
    link.send(Message(HELLO, hello_of(entry) | {"holds": holds}))
    pilot = _Pilot(link, entry)
    while pilot.answered():
        pass
    return 0


def hello_of(entry: PilotEntry) -> dict[str, Any]:
    """Return what a pilot says of itself first."""
    return {
        "protocol": PROTOCOL,
        "name": entry.name,
        "rate": entry.rate,
        "sensors": list(entry.sensors),
        "batched": entry.batched,
        "plans": entry.plans,
    }


class _Pilot:
    """One pilot behind a link; its failures are answers."""

    def __init__(self, link: WireLink, entry: PilotEntry):
        self._link, self._entry = link, entry
        self._pilot: Any = None
        self._desk: Desk | None = None
        self._flights = self._passages = 0

    def answered(self) -> bool:
        """Take one message and answer it; False once there is nothing more to do."""
        message = self._link.receive()
        if message.kind == CLOSE:
            return False
        before = self._done()
        try:
            answer = self._commanded(message) if self._pilot is not None else self._begun(message)
        except PilotFailure as failure:
            # What was planned before it failed was planned.
            self._link.send(Message(FAILURE, {"said": str(failure), **self._since(before)}))
            return False
        self._link.send(answer)
        return True

    def _begun(self, message: Message) -> Message:
        facts, charge = facts_of(message)
        self._flights, self._passages = facts.flights, len(facts.gates)
        pilot = contained(self._entry.make)
        self._desk = contained(desk_of, pilot, charge)
        contained(pilot.begin, facts)
        self._pilot = pilot
        return Message(READY, {**self._since((0, 0)), "tells": callable(getattr(pilot, "telemetry", None))})

    def _commanded(self, message: Message) -> Message:
        onboard, truth = record_of(message)
        told = () if truth is None else (truth,)
        before = self._done()
        if self._desk is not None:
            self._desk.now = onboard.time
        command = contained(lambda: checked_command(self._pilot.command(onboard, *told), self._flights))
        fields: dict[str, Any] = {**self._since(before), "tick": message.fields["tick"]}
        arrays: dict[str, Any] = {"command": command}
        # A command that is not finite ends the flight: such a pilot is not asked what it believes.
        if message.fields.get("tell") and np.isfinite(command).any():
            try:
                arrays |= self._told()
            except PilotFailure as failure:
                fields["untold"] = str(failure)
        return Message(COMMAND, fields, arrays)

    def _done(self) -> tuple[int, int]:
        """Count records and notes at the desk."""
        return (0, 0) if self._desk is None else (len(self._desk.records), len(self._desk.notes))

    def _since(self, before: tuple[int, int]) -> dict[str, Any]:
        """Return what was done at the desk behind so many records and notes."""
        if self._desk is None:
            return {"plans": []}
        records, notes = self._desk.records[before[0] :], self._desk.notes[before[1] :]
        plans = [(item.submitted_s, item.cpu_s, item.charged_s, item.failed) for item in records]
        return {"plans": plans, "notes": [(item.time_s, item.word) for item in notes]}

    def _told(self) -> dict[str, Array]:
        """Return what the pilot says of its belief, by key, a row per flight."""
        said = contained(lambda: checked_telemetry(self._pilot.telemetry(), self._flights, self._passages))
        return {key: np.stack([row[key] for row in said]) for key in said[0]}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
