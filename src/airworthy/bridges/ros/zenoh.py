"""Topics of ROS 2 over zenoh: keys, tokens and attachments as rmw_zenoh_cpp (0.6 and newer: Jazzy, Kilted) has them.

A message of topic "/x" has the key "DOMAIN/x/TYPE/HASH" and an attachment of 33 bytes: sequence number and stamp [ns] as int64,
little-endian, one byte with 16, and 16 bytes that name the publisher. Tokens "@ros2_lv/..." tell nodes who is there; with them
`ros2 topic list` shows our topics. Facts of ros2/rmw_zenoh (its page on design, and rmw_zenoh_cpp/src/detail), no code of it.
"""

from __future__ import annotations

import hashlib
import struct
import time
from contextlib import suppress
from itertools import count
from typing import Any

from airworthy.bridges.ros.bus import Qos
from airworthy.bridges.ros.types import dds_type, needed, ros_types
from airworthy.bridges.sockets import parse_address
from airworthy.core.errors import AirworthyError

__all__ = ["ROUTER_PORT", "ZenohBus", "attachment", "liveliness_key", "topic_key"]

ROUTER_PORT = 7447
"""Where rmw_zenoh's nodes look for a router on their machine."""
NODE = "airworthy"
"""Name of our node."""
_ATTACHMENT = struct.Struct("<qqB16s")
_DEPTH_DEFAULT = 42
"""Of rmw_zenoh; what is default is left out of tokens."""
_QUEUE = 1000
"""Messages that may wait to be received; older ones are dropped."""


def topic_key(domain: int, topic: str, kind: str, type_hash: str) -> str:
    """Return the key under which messages of a topic are sent."""
    return f"{domain}/{topic.strip('/')}/{dds_type(kind)}/{type_hash}"


def attachment(number: int, stamp: int, gid: bytes) -> bytes:
    """Return what goes with a message.

    Args:
        number: Of the message, from 1 on, by publisher.
        stamp: [ns] since 1970.
        gid: 16 bytes that name the publisher.
    """
    return _ATTACHMENT.pack(number, stamp, len(gid), gid)


def liveliness_key(
    domain: int,
    session: str,
    entity: int,
    role: str,
    topic: str = "",
    kind: str = "",
    type_hash: str = "",
    qos: Qos | None = None,
) -> str:
    """Return the token of a node ("NN"), publisher ("MP") or subscription ("MS").

    Args:
        domain: Of ROS 2.
        session: Id of the zenoh session.
        entity: Number in the session; the node's own is 0.
        role: "NN", "MP" or "MS".
        topic: "/uav/odometry"; of a node nothing from here on.
        kind: "nav_msgs/msg/Odometry".
        type_hash: Of the type.
        qos: Of delivery.
    """
    head = f"@ros2_lv/{domain}/{session}/0/{entity}/{role}/%/%/{NODE}"
    if qos is None:
        return head
    # Enumerators of rmw/types.h: best effort 2, transient local 1; reliable, volatile and keep last are default.
    reliability, durability = "" if qos.reliable else "2", "1" if qos.latched else ""
    depth = "" if qos.depth == _DEPTH_DEFAULT else str(qos.depth)
    return f"{head}/{topic.replace('/', '%')}/{dds_type(kind)}/{type_hash}/{reliability}:{durability}:,{depth}:,:,:,,"


class ZenohBus:
    """A session; see `bus.Bus`. Where nobody routes yet, it does so itself, since rmw_zenoh's nodes need a router.

    Args:
        domain: Of ROS 2.
        router: PORT or ADDRESS:PORT of the router.

    Raises:
        AirworthyError: The package eclipse-zenoh is missing, or nothing can be reached.
    """

    name = "zenoh"

    def __init__(self, domain: int = 0, router: str = ""):
        try:
            import zenoh
        except ImportError:
            raise needed("eclipse-zenoh", "zenoh") from None
        address = parse_address(router, ROUTER_PORT)
        self._zenoh: Any = zenoh
        self._domain = domain
        place = f"tcp/{address}"
        try:
            self._session = self._opened("router", "listen", place)
            self.address = f"{place}, domain {domain}, as the router"
        except zenoh.ZError:  # there is one already
            try:
                self._session = self._opened("client", "connect", place)
            except zenoh.ZError as error:
                raise AirworthyError(
                    f"Neither can a router be made at {place}, nor is there one: {str(error)[:150]}."
                ) from None
            self.address = f"{place}, domain {domain}, by the router there"
        self._numbers = count(1)
        self._id = str(self._session.zid())
        self._tokens = [self._session.liveliness().declare_token(liveliness_key(domain, self._id, 0, "NN"))]

    def _opened(self, mode: str, side: str, place: str) -> Any:
        config = self._zenoh.Config()
        for key, value in (
            ("mode", f'"{mode}"'),
            (f"{side}/endpoints", f'["{place}"]'),
            # Or it would call into the network for others, and listen on every interface.
            ("scouting/multicast/enabled", "false"),
            ("scouting/gossip/enabled", "false"),
            *(() if side == "listen" else (("listen/endpoints", "[]"), ("connect/timeout_ms", "1000"))),
            ("timestamping/enabled", "true"),
        ):
            config.insert_json5(key, value)
        return self._zenoh.open(config)

    def publisher(self, topic: str, kind: str, qos: Qos) -> ZenohPublisher:
        """See `bus.Bus`."""
        from zenoh import ext

        key, token = self._names(topic, kind, qos, "MP")
        cache = ext.CacheConfig(max_samples=qos.depth) if qos.latched else None
        block = self._zenoh.CongestionControl.BLOCK if qos.reliable else self._zenoh.CongestionControl.DROP
        made = ext.declare_advanced_publisher(
            self._session, key, congestion_control=block, cache=cache, publisher_detection=qos.latched
        )
        return ZenohPublisher(made, self._session, token, self._watch(topic, kind, "MS"))

    def subscriber(self, topic: str, kind: str, qos: Qos) -> ZenohSubscriber:
        """See `bus.Bus`."""
        from zenoh import ext

        key, _ = self._names(topic, kind, qos, "MS")
        history = ext.HistoryConfig(detect_late_publishers=True, max_samples=qos.depth) if qos.latched else None
        handler = self._zenoh.handlers.RingChannel(_QUEUE)
        return ZenohSubscriber(
            ext.declare_advanced_subscriber(self._session, key, handler, history=history), self._watch(topic, kind, "MP")
        )

    def _names(self, topic: str, kind: str, qos: Qos, role: str) -> tuple[str, str]:
        """Key of a topic, and the token of this end of it, which is declared."""
        hashed = ros_types().type_hash(kind)
        token = liveliness_key(self._domain, self._id, next(self._numbers), role, topic, kind, hashed, qos)
        self._tokens.append(self._session.liveliness().declare_token(token))
        return topic_key(self._domain, topic, kind, hashed), token

    def _watch(self, topic: str, kind: str, role: str) -> set[str]:
        """Return a set that holds the tokens of the other end, kept up to date."""
        there: set[str] = set()
        key = f"@ros2_lv/{self._domain}/*/*/*/{role}/*/*/*/{topic.replace('/', '%')}/{dds_type(kind)}/**"

        def came(sample: Any) -> None:
            token = str(sample.key_expr)
            if self._id in token:
                return
            (there.add if sample.kind == self._zenoh.SampleKind.PUT else there.discard)(token)

        self._tokens.append(self._session.liveliness().declare_subscriber(key, came, history=True))
        return there

    def close(self) -> None:
        """See `bus.Bus`."""
        self._tokens.clear()
        with suppress(self._zenoh.ZError):
            self._session.close()


class ZenohPublisher:
    """See `bus.Publisher`."""

    def __init__(self, publisher: Any, session: Any, token: str, there: set[str]):
        self._publisher, self._session, self._there = publisher, session, there
        self._gid = hashlib.blake2b(token.encode(), digest_size=16).digest()
        self._sent = count(1)

    def send(self, data: bytes) -> None:
        """See `bus.Publisher`."""
        self._publisher.put(data, attachment=attachment(next(self._sent), time.time_ns(), self._gid))

    def flush(self, deadline: float) -> bool:
        """See `bus.Publisher`; one stream carries all messages in order."""
        return True

    @property
    def matched(self) -> int:
        """See `bus.Publisher`."""
        return len(self._there)


class ZenohSubscriber:
    """See `bus.Subscriber`."""

    def __init__(self, subscriber: Any, there: set[str]):
        self._subscriber, self._there = subscriber, there

    def receive(self, deadline: float) -> bytes | None:
        """See `bus.Subscriber`."""
        # Its own waiting has no end that can be set: looked at in between, first without any pause.
        pause = 0.0
        while True:
            sample = self._subscriber.handler.try_recv()
            if sample is not None:
                return bytes(sample.payload.to_bytes())
            if time.monotonic() >= deadline:
                return None
            time.sleep(pause)
            pause = min(pause + 2e-5, 5e-4)

    @property
    def matched(self) -> int:
        """See `bus.Subscriber`."""
        return len(self._there)
