"""Topics of ROS 2 over DDS, by Cyclone DDS: names, types and qualities of service as rmw_cyclonedds_cpp has them.

Topic "/x" is "rt/x" in DDS, type "package/msg/Type" is "package::msg::dds_::Type_", bytes are plain CDR (XCDR1). Bytes are ours
(`types`), so that a big image costs a copy and no walk over its pixels.
"""

from __future__ import annotations

import os
import socket
import sys
import time
import warnings
from contextlib import suppress
from functools import cache
from typing import Any

from airworthy.bridges.ros.bus import Qos
from airworthy.bridges.ros.types import dds_type, needed, ros_types
from airworthy.core.errors import AirworthyError

__all__ = ["DOMAIN_MOST", "LOOPBACK_SETTINGS", "DdsBus", "domain_of_environment", "idl_type"]

DOMAIN_MOST = 232
"""Largest domain whose ports are below 65536 (DDS Interoperability Wire Protocol, 9.6.1)."""
LOOPBACK_SETTINGS = (
    "<CycloneDDS><Domain><General><Interfaces><NetworkInterface address='127.0.0.1'/></Interfaces>"
    "<AllowMulticast>false</AllowMulticast></General><Discovery><ParticipantIndex>auto</ParticipantIndex>"
    "<MaxAutoParticipantIndex>32</MaxAutoParticipantIndex><Peers><Peer Address='127.0.0.1'/></Peers></Discovery></Domain>"
    "</CycloneDDS>"
)
"""CYCLONEDDS_URI of both sides where nothing leaves this machine; a user's own variable goes before it."""


def domain_of_environment() -> int:
    """Return ROS_DOMAIN_ID, 0 where it is not set.

    Raises:
        AirworthyError: It is no domain.
    """
    text = os.environ.get("ROS_DOMAIN_ID", "0")
    if not text.isdecimal() or not 0 <= int(text) <= DOMAIN_MOST:
        raise AirworthyError(f"ROS_DOMAIN_ID is {text!r}; expected a number from 0 to {DOMAIN_MOST}.")
    return int(text)


class DdsBus:
    """A participant; see `bus.Bus`.

    Args:
        domain: 0 to `DOMAIN_MOST`.

    Raises:
        AirworthyError: The package cyclonedds is missing, or cannot begin.
    """

    name = "ros2"

    def __init__(self, domain: int = 0):
        try:
            from cyclonedds.domain import Domain, DomainParticipant
        except ImportError:
            raise needed("cyclonedds", "ros2") from None
        if not 0 <= domain <= DOMAIN_MOST:
            raise AirworthyError(f"The domain {domain} of ROS 2 is none; expected 0 to {DOMAIN_MOST}.")
        own = os.environ.get("CYCLONEDDS_URI", "")
        self.address = f"domain {domain}" + (" as CYCLONEDDS_URI says" if own else " of this machine alone")
        try:
            # Kept: without it, the participant falls back to every interface.
            self._domain: Any = _domain(Domain, domain, own or LOOPBACK_SETTINGS)
            self._participant: Any = DomainParticipant(domain)
        except Exception as error:
            raise AirworthyError(f"DDS cannot begin in domain {domain}: {str(error)[:200]}.") from None
        if not own:
            try:
                _hold_to_loopback()
            except AirworthyError:
                self._participant = None  # or it would go on listening
                raise
        self._ends: list[Any] = []

    def publisher(self, topic: str, kind: str, qos: Qos) -> DdsPublisher:
        """See `bus.Bus`."""
        from cyclonedds.pub import DataWriter

        found = _qos(qos)
        made = DdsPublisher(DataWriter(self._participant, self._topic(topic, kind), qos=found), raw_type(kind))
        self._ends.append(made)
        return made

    def subscriber(self, topic: str, kind: str, qos: Qos) -> DdsSubscriber:
        """See `bus.Bus`."""
        from cyclonedds.sub import DataReader

        made = DdsSubscriber(DataReader(self._participant, self._topic(topic, kind), qos=_qos(qos)))
        self._ends.append(made)
        return made

    def close(self) -> None:
        """See `bus.Bus`."""
        self._ends.clear()
        self._participant = None

    def _topic(self, topic: str, kind: str) -> Any:
        from cyclonedds.topic import Topic

        return Topic(self._participant, f"rt{topic}", raw_type(kind))


@cache
def _domain(make: Any, domain: int, settings: str) -> Any:
    """Once in a process: a domain's settings hold until it ends."""
    return make(domain, settings)


def _hold_to_loopback() -> None:
    """Let sockets of this process that listen everywhere hear this machine alone.

    Cyclone DDS binds what it receives by to every address whatever its settings (its issue 2090). Linux can hold a bound socket
    to a network device, since 5.7 without a privilege.

    Raises:
        AirworthyError: The system cannot.
    """
    if not sys.platform.startswith("linux"):
        warnings.warn(
            "Cyclone DDS listens on every network interface of this system: have its firewall keep UDP 7400 to 65535 closed.",
            stacklevel=4,
        )
        return
    for entry in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if not os.readlink(f"/proc/self/fd/{entry}").startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(entry))) as found:
                if (found.family, found.type) != (socket.AF_INET, socket.SOCK_DGRAM):
                    continue  # of another family the name may be empty: pipes between processes
                if found.getsockname()[0] != "0.0.0.0":  # noqa: S104 - what is looked for
                    continue
                try:
                    found.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
                except OSError as error:
                    raise AirworthyError(
                        "Cyclone DDS listens on every network interface, and this system cannot hold it to the one of its own"
                        f" ({error.strerror}): set CYCLONEDDS_URI to settings of yours to go on all the same."
                    ) from None


class DdsPublisher:
    """See `bus.Publisher`."""

    def __init__(self, writer: Any, kind: Any):
        self._writer, self._kind = writer, kind

    def send(self, data: bytes) -> None:
        """See `bus.Publisher`."""
        self._writer.write(self._kind.of(data))

    def flush(self, deadline: float) -> bool:
        """See `bus.Publisher`."""
        return bool(self._writer.wait_for_acks(max(int((deadline - time.monotonic()) * 1e9), 0)))

    @property
    def matched(self) -> int:
        """See `bus.Publisher`."""
        return len(self._writer.get_matched_subscriptions())


class DdsSubscriber:
    """See `bus.Subscriber`."""

    def __init__(self, reader: Any):
        from cyclonedds.core import InstanceState, ReadCondition, SampleState, ViewState, WaitSet

        self._reader = reader
        self._condition = ReadCondition(reader, ViewState.Any | SampleState.Any | InstanceState.Any)
        self._waiting = WaitSet(reader.participant)
        self._waiting.attach(self._condition)

    def receive(self, deadline: float) -> bytes | None:
        """See `bus.Subscriber`."""
        while True:
            for sample in self._reader.take(1):
                data = getattr(sample, "cdr", None)
                if data is not None:  # else the end of a writer
                    return bytes(data)
            left = deadline - time.monotonic()
            if left <= 0.0:
                return None
            self._waiting.wait(int(left * 1e9))

    @property
    def matched(self) -> int:
        """See `bus.Subscriber`."""
        return len(self._reader.get_matched_publications())


def _qos(qos: Qos) -> Any:
    from cyclonedds.core import Policy
    from cyclonedds.core import Qos as DdsQos
    from cyclonedds.util import duration

    reliability = Policy.Reliability.Reliable(duration(seconds=1)) if qos.reliable else Policy.Reliability.BestEffort
    return DdsQos(
        reliability,
        Policy.History.KeepLast(qos.depth),
        Policy.Durability.TransientLocal if qos.latched else Policy.Durability.Volatile,
        Policy.DataRepresentation(use_cdrv0_representation=True, use_xcdrv2_representation=False),
    )


# ---- Types of DDS, made from definitions at run time ------------------------------------------------------------------------


@cache
def idl_type(kind: str) -> Any:
    """Return the class of Cyclone DDS for a type; it packs and unpacks by itself, apart from `types`."""
    return _struct(kind)


@cache
def raw_type(kind: str) -> Any:
    """Return the same class, of which an object is the bytes of a message, `of(data)` and `.cdr`."""
    made = _struct(kind)

    def of(data: bytes) -> Any:
        found = object.__new__(made)
        object.__setattr__(found, "cdr", data)
        return found

    made.of = staticmethod(of)
    made.serialize = lambda self, *_, **__: self.cdr
    made.deserialize = staticmethod(lambda data, *_, **__: of(bytes(data)))
    return made


def _struct(kind: str) -> Any:
    from cyclonedds.idl import make_idl_struct

    fields = {name: _idl(node) for name, node in ros_types().fields(kind)}
    return make_idl_struct(f"{kind.rpartition('/')[2]}_", dds_type(kind).replace("::", "."), fields)


def _idl(node: Any) -> Any:
    from cyclonedds.idl import types

    which, about = int(node[0]), node[1]
    if which == 1:
        own = {"string": str, "bool": bool, "char": types.uint8, "byte": types.byte}
        return own.get(about[0]) or getattr(types, about[0])
    if which == 2:
        return idl_type(about)
    inner, count = _idl(about[0]), about[1]
    return types.array[inner, count] if which == 3 else types.sequence[inner]
