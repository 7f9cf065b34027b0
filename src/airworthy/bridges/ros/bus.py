"""What a transport of ROS 2's topics offers, whichever it is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from airworthy.core.errors import AirworthyError

__all__ = ["COMMANDS", "LATCHED", "SENSORS", "Bus", "Publisher", "Qos", "Subscriber", "topic_name"]

_TOPIC = re.compile(r"(/[A-Za-z][A-Za-z0-9_]*)+")


@dataclass(frozen=True)
class Qos:
    """How messages of a topic are delivered."""

    reliable: bool
    depth: int
    latched: bool = False
    """Whoever joins later is given the last ones (transient local)."""


SENSORS = Qos(reliable=False, depth=5)
"""The profile "sensor data" of ROS 2."""
COMMANDS = Qos(reliable=True, depth=10)
LATCHED = Qos(reliable=True, depth=1, latched=True)


class Publisher(Protocol):
    """Sends messages of one topic."""

    def send(self, data: bytes) -> None:
        """Send a message's CDR bytes."""
        ...

    def flush(self, deadline: float) -> bool:
        """Wait until reliable subscribers have what was sent; False when the deadline (`time.monotonic`) has passed."""
        ...

    @property
    def matched(self) -> int:
        """How many subscribers are known."""
        ...


class Subscriber(Protocol):
    """Receives messages of one topic."""

    def receive(self, deadline: float) -> bytes | None:
        """Return the CDR bytes of the next message; None when the deadline (`time.monotonic`) has passed."""
        ...

    @property
    def matched(self) -> int:
        """How many publishers are known."""
        ...


class Bus(Protocol):
    """A transport."""

    name: str
    address: str
    """Where it can be reached, for sentences."""

    def publisher(self, topic: str, kind: str, qos: Qos) -> Publisher:
        """Return a publisher.

        Args:
            topic: "/uav/odometry".
            kind: "nav_msgs/msg/Odometry".
            qos: Of delivery.
        """
        ...

    def subscriber(self, topic: str, kind: str, qos: Qos) -> Subscriber:
        """Return a subscriber; arguments as of `publisher`."""
        ...

    def close(self) -> None:
        """End it; may be called again."""
        ...


def topic_name(text: str) -> str:
    """Return a topic's full name.

    Raises:
        AirworthyError: It is none of ROS 2.
    """
    name = text if text.startswith("/") else f"/{text}"
    if not _TOPIC.fullmatch(name):
        raise AirworthyError(
            f"{text!r} is no topic of ROS 2; write letters, digits and _ between slashes, such as /uav/odometry."
        )
    return name
