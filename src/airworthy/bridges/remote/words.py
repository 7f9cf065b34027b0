"""Pilots outside by their word: external:KIND[:WHERE], which `airworthy fly`, `evaluate` and `bench navigation` take.

external:PORT, external:socket[:WHERE]    the socket protocol; WHERE is PORT, ADDRESS:PORT or the path of a Unix socket
external:px4, ardupilot, betaflight[:ADDRESS]    the same as without `external:`, in `airworthy fly` alone
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from airworthy.bridges.remote.pilot import PilotHello, RemotePilot, RemoteSettings
from airworthy.bridges.remote.socket_pilot import PORT, PROTOCOL, SocketPilot, greeted
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.pilots.catalogue import AUTOPILOTS, EXTERNAL

__all__ = ["EXTERNAL_KINDS", "ExternalEntry", "external_entry", "is_external", "split_word", "without_prefix"]

SOCKET = "socket"
EXTERNAL_KINDS: Mapping[str, str] = {
    SOCKET: "a program that listens, by the socket protocol (docs/howto/external_pilots.md)",
    **AUTOPILOTS,
}
"""What follows `external:`."""


@dataclass(frozen=True)
class ExternalEntry:
    """A pilot outside that can be flown; called, it returns a new one."""

    hello: PilotHello
    new: Callable[[], RemotePilot]
    single: bool = False
    """One flight at a time: all share the same topics."""
    identity: Mapping[str, Any] = field(default_factory=dict)
    """What its decisions depend on, as far as anybody can know."""

    @property
    def observes(self) -> tuple[str, ...]:
        """Fields and sensors that it is given."""
        return self.hello.observes

    def __call__(self) -> RemotePilot:
        """Return a new pilot, which has not begun."""
        return self.new()


def is_external(word: str) -> bool:
    """Tell whether a pilot's word is of one outside that decides from observations, autopilots left out."""
    return word.startswith(f"{EXTERNAL}:") and split_word(word)[0] not in AUTOPILOTS


def without_prefix(word: str) -> str:
    """Return the word of an autopilot that stands behind `external:`; any other as it is."""
    kind, where = split_word(word) if word.startswith(f"{EXTERNAL}:") else ("", "")
    return word if kind not in AUTOPILOTS else f"{kind}:{where}" if where else kind


def split_word(word: str) -> tuple[str, str]:
    """Return kind and place of `external:KIND[:WHERE]`; a number or a path alone is of a socket."""
    rest = word.removeprefix(f"{EXTERNAL}:")
    kind, _, where = rest.partition(":")
    if kind.isdecimal() or "/" in kind or kind.count(".") == 3:
        return SOCKET, rest
    return kind, where


def external_entry(word: str, settings: RemoteSettings | None = None) -> ExternalEntry:
    """Return a pilot by its word, after it has said what it is.

    Args:
        word: `external:KIND[:WHERE]`.
        settings: Of the conversation.

    Raises:
        UnknownNameError: There is no such kind.
        AirworthyError: Nothing answers there, or it cannot be flown.
    """
    settings = RemoteSettings() if settings is None else settings
    kind, where = split_word(word)
    if kind == SOCKET:
        return _socket_entry(where or str(PORT), settings)
    if kind in AUTOPILOTS:
        raise AirworthyError(
            f"{word!r} is an autopilot, which holds a vehicle where its own pilot tells it: fly it with `airworthy fly` or"
            " `airworthy serve`."
        )
    raise unknown_name("external pilot", kind, EXTERNAL_KINDS, "Write external:KIND or external:KIND:WHERE.")


def _socket_entry(where: str, settings: RemoteSettings) -> ExternalEntry:
    hello = greeted(where, settings)
    identity = {
        "pilot": SOCKET,
        "protocol": PROTOCOL,
        "level": hello.level,
        "observes": list(hello.observes),
        "rate": hello.rate,
    }
    return ExternalEntry(hello, lambda: SocketPilot(where, hello, settings), identity=identity)
