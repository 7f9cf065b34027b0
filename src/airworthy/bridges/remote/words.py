"""Pilots outside by their word: external:KIND[:WHERE], which `airworthy fly`, `evaluate` and `bench navigation` take.

external:PORT, external:socket[:WHERE]    the socket protocol; WHERE is PORT, ADDRESS:PORT or the path of a Unix socket
external:ros2[:KEY=VALUE,...]             a node of ROS 2 over DDS; external:zenoh the same over zenoh; keys: `ROS_KEYS`
external:lcm[:KEY=VALUE,...]              a program over LCM; keys: `LCM_KEYS`
external:px4, ardupilot, betaflight[:ADDRESS]    the same as without `external:`, in `airworthy fly` alone
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airworthy.bridges.remote.pilot import PilotHello, RemotePilot, RemoteSettings
from airworthy.bridges.remote.socket_pilot import PORT, PROTOCOL, SocketPilot, check_place, greeted
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.pilots.catalogue import AUTOPILOTS, EXTERNAL
from airworthy.pilots.pilot import SENSOR

if TYPE_CHECKING:
    from airworthy.bridges.ros.bus import Bus

__all__ = [
    "EXTERNAL_KINDS",
    "ROS_KEYS",
    "ExternalEntry",
    "check_word",
    "external_entry",
    "is_external",
    "split_word",
    "without_prefix",
]

SOCKET = "socket"
EXTERNAL_KINDS: Mapping[str, str] = {
    SOCKET: "a program that listens, by the socket protocol (docs/howto/external_pilots.md)",
    "ros2": "a node of ROS 2, over DDS (docs/howto/ros2.md)",
    "zenoh": "a node of ROS 2, over zenoh, as of rmw_zenoh",
    "lcm": "a program over LCM (docs/howto/lcm.md)",
    **AUTOPILOTS,
}
"""What follows `external:`."""
ROS_KEYS: Mapping[str, str] = {
    "level": "rate_thrust",
    "sees": "",
    "domain": "",
    "router": "",
    "rate": "0",
}
"""Settings of a node and their defaults: control level of its commands, sensors with + between them (and imu), ROS_DOMAIN_ID
unless named, of zenoh where the router is, decisions per second (0: in every control period)."""
LCM_KEYS: Mapping[str, str] = {"level": "rate_thrust", "sees": "", "url": "", "rate": "0"}
"""The same of LCM; the URL is LCM's own with ttl 0 unless named."""


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
    return word == EXTERNAL or (word.startswith(f"{EXTERNAL}:") and split_word(word)[0] not in AUTOPILOTS)


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


def check_word(word: str) -> None:
    """Refuse a word that names nobody, before anybody is waited for.

    Raises:
        UnknownNameError: There is no such kind.
        AirworthyError: It names no program, or its place is none.
    """
    kind, where = split_word(word)
    if word in (EXTERNAL, f"{EXTERNAL}:"):
        raise AirworthyError(
            f"{word!r} names no program: write external:PORT for one that listens there, or external:KIND with"
            f" {', '.join(EXTERNAL_KINDS)} (docs/howto/external_pilots.md)."
        )
    if kind not in EXTERNAL_KINDS:
        raise unknown_name("external pilot", kind, EXTERNAL_KINDS, "Write external:KIND or external:KIND:WHERE.")
    if kind == SOCKET and where and "/" not in where:
        check_place(where)


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
    check_word(word)
    kind, where = split_word(word)
    if kind == SOCKET:
        return _socket_entry(where or str(PORT), settings)
    if kind in AUTOPILOTS:
        raise AirworthyError(
            f"{word!r} is an autopilot, which holds a vehicle where its own pilot tells it: fly it with `airworthy fly` or"
            " `airworthy serve`."
        )
    if kind in ("ros2", "zenoh"):
        return _ros_entry(kind, where, settings)
    return _lcm_entry(where, settings)


def _said(hello: PilotHello) -> dict[str, Any]:
    return {"level": hello.level, "observes": list(hello.observes), "rate": hello.rate}


def _socket_entry(where: str, settings: RemoteSettings) -> ExternalEntry:
    hello = greeted(where, settings)
    identity = {"pilot": SOCKET, "protocol": PROTOCOL, **_said(hello)}
    return ExternalEntry(hello, lambda: SocketPilot(where, hello, settings), identity=identity)


def _ros_entry(kind: str, where: str, settings: RemoteSettings) -> ExternalEntry:
    from airworthy.bridges.ros.dds import DdsBus, domain_of_environment
    from airworthy.bridges.ros.pilot import RosPilot
    from airworthy.bridges.ros.topics import input_of
    from airworthy.bridges.ros.zenoh import ZenohBus

    chosen = _settings(kind, where, {key: value for key, value in ROS_KEYS.items() if key != "router" or kind == "zenoh"})
    input_of(chosen["level"])
    domain = _whole(kind, "domain", chosen["domain"]) if chosen["domain"] else domain_of_environment()
    hello = _chosen_hello(kind, chosen)

    def bus() -> Bus:
        return DdsBus(domain) if kind == "ros2" else ZenohBus(domain, chosen["router"])

    bus().close()  # what is missing is said before anything flies
    return ExternalEntry(hello, lambda: RosPilot(bus, hello, settings), True, {"pilot": kind, **_said(hello)})


def _lcm_entry(where: str, settings: RemoteSettings) -> ExternalEntry:
    from airworthy.bridges.lcm.link import DEFAULT_URL, LcmLink
    from airworthy.bridges.lcm.pilot import LCM_INPUTS, LcmPilot

    chosen = _settings("lcm", where, LCM_KEYS)
    if chosen["level"].partition(":")[0] not in LCM_INPUTS:
        raise unknown_name("control level of LCM", chosen["level"], LCM_INPUTS)
    hello, url = _chosen_hello("lcm", chosen), chosen["url"] or DEFAULT_URL
    LcmLink(url).close()  # what is missing is said before anything flies
    identity = {"pilot": "lcm", **_said(hello)}
    return ExternalEntry(hello, lambda: LcmPilot(lambda: LcmLink(url), hello, settings), True, identity)


def _chosen_hello(kind: str, chosen: Mapping[str, str]) -> PilotHello:
    """Return what a pilot without a greeting is said to be."""
    seen = tuple(name if name == "imu" else f"{SENSOR}{name}" for name in chosen["sees"].split("+") if name)
    observes = ("position", "velocity", "attitude", "rate", *seen)
    return PilotHello(kind, chosen["level"], observes, _number(kind, "rate", chosen["rate"]))


def _settings(kind: str, text: str, usual: Mapping[str, str]) -> dict[str, str]:
    """Return settings as `KEY=VALUE,KEY=VALUE` has them, over the usual ones."""
    found = dict(usual)
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        if not equals or key not in usual:
            raise AirworthyError(
                f"external:{kind} was given {part!r}; expected KEY=VALUE with {', '.join(usual)}, such as"
                f" external:{kind}:level=velocity."
            )
        found[key] = value
    return found


def _whole(kind: str, key: str, text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise AirworthyError(f"external:{kind} was given {key}={text!r}; expected a whole number of 0 or more.")
    return int(text)


def _number(kind: str, key: str, text: str) -> float:
    if not text.isascii() or not text.replace(".", "", 1).isdigit():
        raise AirworthyError(f"external:{kind} was given {key}={text!r}; expected a number of 0 or more.")
    return float(text)
