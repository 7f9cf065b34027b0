"""Pilots over the socket protocol: any program that listens, in any language (docs/howto/external_pilots.md).

Messages are those of `airworthy.bridges.wire`; who says what, in this order:

    pilot  hello        protocol, name, level, observes, rate, batched
    we     reset        protocol, flights, seed, task, vehicles; arrays of the task
    pilot  ready
    we     observation  tick; arrays: time, declared fields, and of sensors what is new
    pilot  command      the same tick; array command (flights, width)          ... and again from `observation`
    either failure      said                                                   ends the flight
    we     close
"""

from __future__ import annotations

import math
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import Any

import numpy as np

from airworthy.bridges.remote.pilot import FlightTask, PilotHello, RemotePilot, RemoteSettings
from airworthy.bridges.sockets import parse_address
from airworthy.bridges.wire import DTYPES, LinkFailure, Message, WireLink, within
from airworthy.control.kernel import LEVELS
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.files import harmless
from airworthy.pilots.containment import PilotFailure
from airworthy.pilots.pilot import Observation

__all__ = ["PORT", "PROTOCOL", "SocketPilot", "check_place", "greeted"]

PROTOCOL = 2
"""Version of the messages: since 2 a command names the observation that it answers."""
PORT = 5005
"""Where a pilot listens unless its word says otherwise; ours."""
ANSWER_MAX = 4 << 20
"""Most bytes of arrays in an answer; ours: commands of 10,000 flights take 1.1 MB."""
_NAME_MAX, _OBSERVES_MAX, _RATE_MAX, _SAID_MAX = 40, 16, 1e4, 300
_READ = 0.2
"""What it may take to read an answer that is there [s]."""
_RETRY = 0.05
"""Between two attempts to reach a program that is not there yet [s]."""


class SocketPilot(RemotePilot):
    """A pilot that listens on a socket; see `RemotePilot`.

    Args:
        place: PORT, ADDRESS:PORT or the path of a Unix socket.
        hello: What it said when it was first asked.
        settings: Of the conversation.
    """

    def __init__(self, place: str, hello: PilotHello, settings: RemoteSettings):
        super().__init__(hello, settings)
        self._place = place
        self._links: list[WireLink] = []
        self._sent: dict[str, Array] = {}
        """Of each sensor the numbers of the samples that were sent last."""
        self._tick = 0
        """Observations that were sent."""
        self._now: float | None = None
        """Time of the flights that go on, at the last of them [s]; None: they have not begun."""

    def begin(self, task: FlightTask) -> None:
        """Connect, once for all flights or once for each, and tell the task; as in the base."""
        self.close()
        self._now = None
        parts = [task] if self.hello.batched or task.flights == 1 else [task.of_flight(k) for k in range(task.flights)]
        self._sent = {}
        for part in parts:
            try:
                link = _connected(self._place, self.settings.wait)
                self._links.append(link)
                until = within(self.settings.patience)  # from here on: how long it may not be there yet is `wait`
                said = _hello(link, until)
                if said != self.hello:
                    raise PilotFailure(f"its hello changed from {asdict(self.hello)} to {asdict(said)}")
                fields = {"protocol": PROTOCOL, "flights": part.flights, "seed": part.seed, "task": part.kind,
                          "vehicles": list(part.vehicles)}  # fmt: skip
                link.send(Message("reset", fields, {name: _plain(array) for name, array in part.arrays.items()}), until)
                _answer(link, "ready", until)
            except LinkFailure as failure:
                raise self._failed(failure) from None

    def decide(self, observation: Observation) -> Array:
        """Ask every flight's conversation, then take the answers; as in the base."""
        arrays = self._seen(observation)
        flights = len(observation.time)
        self._tick, self._now = self._tick + 1, float(observation.time.max())
        return self._shared(arrays) if len(self._links) == 1 else self._each(arrays, flights)

    def _shared(self, arrays: dict[str, Array]) -> Array:
        """Ask the one conversation of all flights."""
        until = within(self.settings.patience)
        try:
            self._links[0].send(Message("observation", {"tick": self._tick}, arrays), until)
            return self._commanded(self._links[0], until)
        except LinkFailure as failure:
            raise self._failed(failure) from None

    def _each(self, arrays: dict[str, Array], flights: int) -> Array:
        """Ask the conversation of each flight; one that fails ends its own flight alone."""
        found: dict[int, Array] = {}
        going = [flight for flight in range(flights) if flight not in self.lost_flights]
        for flight in going:
            part = {k: array[flight : flight + 1] for k, array in arrays.items()}
            with self._its_own(flight):
                self._links[flight].send(Message("observation", {"tick": self._tick}, part), within(self.settings.patience))
        until = within(self.settings.patience)
        for flight in going:
            if flight in self.lost_flights:
                continue
            with self._its_own(flight):
                # Behind one that was waited for in vain the others have answered long since.
                found[flight] = self._commanded(self._links[flight], max(until, within(_READ)))
        # How many rotors there are whoever flies knows; here a flight is one like the others.
        width = LEVELS[self.level].rows or Counter(row.shape[-1] for row in found.values()).most_common(1)[0][0]
        whole = np.zeros((flights, width))
        for flight, row in found.items():
            with self._its_own(flight):
                if row.shape != (1, width):
                    raise PilotFailure(
                        f"its command has shape {row.shape}; level {self.level!r} takes (1, {width}) or ({width},)"
                    )
                whole[flight] = row[0]
        return whole

    @contextmanager
    def _its_own(self, flight: int) -> Iterator[None]:
        """Give up a flight whose conversation fails here.

        Raises:
            PilotFailure: There is no other flight.
        """
        try:
            yield
        except (LinkFailure, PilotFailure) as failure:
            said = self._failed(failure) if isinstance(failure, LinkFailure) else failure
            self._links[flight].close()
            self.lose(flight, str(said))

    def _commanded(self, link: WireLink, until: float) -> Array:
        """Return the commands (n, width) of this tick; those of earlier ones are counted, and left out."""
        while True:
            message = _answer(link, "command", until)
            tick = message.fields.get("tick")
            if type(tick) is not int or not 0 <= tick <= self._tick:
                # As it was written: "101", a text, is not the number 101.
                raise PilotFailure(
                    f"its command has the tick {_told(repr(tick))}; expected {self._tick}, as the observation that it answers"
                    " has"
                )
            if tick == self._tick:
                if "command" not in message.arrays:
                    raise PilotFailure("its answer held no array 'command'")
                return np.atleast_2d(np.asarray(message.arrays["command"], np.float64))
            self.stale += 1
            if time.monotonic() >= until:  # of who sends faster than we read
                raise LinkFailure("it gave no answer in time")

    def close(self) -> None:
        """Say so, and close the connections; as in the base."""
        self.warn()
        for link in self._links:
            # Where it is gone already, that was said.
            with suppress(LinkFailure):
                link.send(Message("close"), within(1.0))
            link.close()
        self._links = []

    def _seen(self, observation: Observation) -> dict[str, Array]:
        """Return what is seen; of sensors the arrays of a sample are left out that were sent already."""
        # State in float64, so that programs in C need one type alone; images keep theirs.
        state = {"time": observation.time, **observation.fields}
        arrays: dict[str, Array] = {name: np.asarray(array, np.float64) for name, array in state.items()}
        for name, sample in observation.samples.items():
            head = f"sensor:{name}/"
            arrays[f"{head}number"] = _plain(sample.number)
            if name in self._sent and np.array_equal(self._sent[name], sample.number):
                continue
            self._sent[name] = np.array(sample.number)
            arrays |= {f"{head}{part}": _plain(getattr(sample, part)) for part in ("time", "valid", "position", "attitude")}
            arrays |= {f"{head}{channel}": _plain(array) for channel, array in sample.data.items()}
        return arrays

    def _failed(self, failure: LinkFailure) -> PilotFailure:
        said = str(failure)
        said = f"{said}: none within {self.settings.patience:g} s" if "in time" in said else said
        return PilotFailure(said if self._now is None else f"{said}, at {self._now:.2f} s of the flight")


def greeted(place: str, settings: RemoteSettings) -> PilotHello:
    """Connect once, and return what the program there says of itself.

    Args:
        place: PORT, ADDRESS:PORT or the path of a Unix socket.
        settings: How long to wait.

    Raises:
        AirworthyError: Nothing listens there, or what it says is no hello of a pilot that flies here.
    """
    try:
        link = _connected(place, settings.wait)
        try:
            return _hello(link, within(settings.patience))
        finally:
            link.close()
    except (LinkFailure, PilotFailure) as failure:
        raise AirworthyError(f"The pilot external:{place} cannot be flown: {failure}.") from None


def check_place(place: str) -> None:
    """Refuse a place, PORT or ADDRESS:PORT, at which no program can listen.

    Raises:
        AirworthyError: It is none.
    """
    number = place.rpartition(":")[2]
    if number.isdecimal() and not 0 < int(number) < 65536:
        raise AirworthyError(f"The pilot external:{place} has the port {number}; ports are 1 to 65535.")
    parse_address(place, PORT)


def _connected(place: str, wait: float) -> WireLink:
    until = within(wait)
    while True:
        try:
            return WireLink(_socket(place), ANSWER_MAX)
        except OSError as error:
            if time.monotonic() >= until:
                reason = error.strerror or str(error)
                raise PilotFailure(f"nothing answered at {place} for {wait:g} s ({reason}); start your program") from None
        time.sleep(_RETRY)


def _socket(place: str) -> socket.socket:
    if "/" in place:
        made = socket.socket(socket.AF_UNIX)
        try:
            made.connect(place)
        except OSError:
            made.close()
            raise
        return made
    address = parse_address(place, PORT)
    return socket.create_connection((address.host, address.port), timeout=5.0)


def _hello(link: WireLink, until: float) -> PilotHello:
    message = link.receive(until)
    said = message.fields
    if message.kind == "failure":
        raise PilotFailure(_told(said.get("said")))
    if message.kind != "hello" or said.get("protocol") != PROTOCOL:
        raise PilotFailure(f"it began with {message.kind[:40]!r}; expected a hello of protocol {PROTOCOL}")
    name, level, rate, observes = said.get("name"), said.get("level"), said.get("rate", 0.0), said.get("observes", [])
    if level is None:
        raise PilotFailure("its hello names no control level; pilots of races fly in `airworthy bench race`")
    if not isinstance(level, str) or level not in LEVELS:
        raise PilotFailure(str(unknown_name("control level", _told(level), LEVELS)).rstrip("."))
    if not isinstance(name, str) or not 0 < len(name) <= _NAME_MAX or not name.isprintable():
        raise PilotFailure(f"its hello has the name {_told(name)!r}; expected 1 to {_NAME_MAX} letters")
    if type(rate) not in (int, float) or not math.isfinite(rate) or not 0.0 <= rate <= _RATE_MAX:
        raise PilotFailure(f"its hello has the rate {_told(rate)}; expected decisions per second, 0 to {_RATE_MAX:g}")
    listed = isinstance(observes, list) and len(observes) <= _OBSERVES_MAX
    if not listed or not all(isinstance(item, str) and 0 < len(item) <= _NAME_MAX and item.isprintable() for item in observes):
        raise PilotFailure("its hello has 'observes' that is no list of names")
    return PilotHello(name, level, tuple(observes), float(rate), said.get("batched") is True)


def _answer(link: WireLink, kind: str, until: float) -> Message:
    message = link.receive(until)
    if message.kind == "failure":
        raise PilotFailure(_told(message.fields.get("said", "it failed")))
    if message.kind != kind:
        raise PilotFailure(f"it answered {harmless(message.kind[:40])!r}; expected {kind!r}")
    return message


def _told(said: Any) -> str:
    """Return what a program says as tables have it: short, and none of its escape codes."""
    return harmless(str(said)[:_SAID_MAX])


def _plain(array: Any) -> Any:
    """Return an array of a type that crosses: whole numbers as int64, halves of floats as float32."""
    found = np.asarray(array)
    if found.dtype.newbyteorder("<").str in DTYPES:
        return found
    return found.astype(np.float32 if found.dtype.kind == "f" and found.itemsize < 4 else
                        np.float64 if found.dtype.kind == "f" else np.int64)  # fmt: skip
