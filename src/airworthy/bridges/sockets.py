"""Sockets of a link: on this machine only unless asked, one peer, deadlines, and a sentence for what goes wrong."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass

from airworthy.core.errors import AirworthyError
from airworthy.pilots.containment import PilotFailure

__all__ = ["LOOPBACK", "Address", "AutopilotFailure", "TcpLink", "UdpLink", "parse_address", "refuse_shared_ports"]

LOOPBACK = "127.0.0.1"
_DATAGRAM_MAX = 2048
"""Ours: no protocol here has datagrams of half as many bytes; longer ones are cut, and then refused by their length."""


class AutopilotFailure(PilotFailure):
    """The program at the other end was silent, left, or spoke something else: a flight ends as `pilot_error` with this."""


@dataclass(frozen=True)
class Address:
    """Where to listen."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Whether nobody beyond this machine can reach it."""
        return ipaddress.ip_address(self.host).is_loopback

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def parse_address(text: str, port: int) -> Address:
    """Return an address as a user writes it: "", "PORT", "HOST" or "HOST:PORT", where HOST is an IPv4 number.

    Args:
        text: What was written; where it names no host, it is this machine.
        port: Where it names no port.

    Raises:
        AirworthyError: It is none of these.
    """
    host, colon, number = text.rpartition(":")
    if colon and not number:
        number = "none"  # "HOST:" is a slip, and not the protocol's port
    if not colon:
        host, number = ("", text) if text.isdigit() else (text, "")
    try:
        found = Address(str(ipaddress.IPv4Address(host or LOOPBACK)), int(number) if number else port)
        if not 0 < found.port < 65536:
            raise ValueError
    except ValueError:
        raise AirworthyError(
            f"The address {text!r} is no place to listen at; write PORT, ADDRESS or ADDRESS:PORT, such as 127.0.0.1:{port}."
        ) from None
    return found


def refuse_shared_ports(sources: Mapping[str, tuple[str, int]]) -> None:
    """Refuse two sources that listen on one UDP port.

    Args:
        sources: By what the user wrote ("--poses udp:9870"): the word of the source ("udp:9870"), and the port where it names
            none; words of other kinds than udp are passed over.

    Raises:
        AirworthyError: One sentence.
    """
    taken: dict[int, str] = {}
    for told, (source, usual) in sources.items():
        kind, _, where = source.partition(":")
        if kind != "udp":
            continue
        port = parse_address(where, usual).port
        if port in taken:
            raise AirworthyError(
                f"{taken[port]} and {told} listen on one UDP port, {port}: name another with udp:PORT for one of them."
            )
        taken[port] = told


def _bound(kind: socket.SocketKind, address: Address, who: str) -> socket.socket:
    made = socket.socket(socket.AF_INET, kind)
    try:
        if kind == socket.SOCK_STREAM:
            # Or a port stays taken for a minute after a flight.
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((address.host, address.port))
    except OSError as error:
        made.close()
        raise AirworthyError(
            f"Could not listen for {who} on {address} ({error.strerror}): another simulator may be running; stop it, or name"
            " another port."
        ) from None
    return made


class UdpLink:
    """A datagram socket with one peer: whoever sends first, or whom it was told.

    Args:
        address: Where to listen.
        who: Is expected there, for sentences.
        peer: Only from there anything is taken; None: from whoever sends a packet that `adopt` is called for.

    Raises:
        AirworthyError: The port is taken, or the address is not this machine's.
    """

    def __init__(self, address: Address, who: str, peer: tuple[str, int] | None = None):
        self._socket = _bound(socket.SOCK_DGRAM, address, who)
        self.address, self.who, self.peer = address, who, peer
        self.refused = 0
        """Packets of others than the peer."""
        self.stranger: tuple[bytes, tuple[str, int]] | None = None
        """The last of them, and its sender, since a peer was adopted: who begins again does so from another port."""
        self._known = peer is not None

    def adopt(self, sender: tuple[str, int]) -> None:
        """Take a sender for the peer from now on."""
        self.peer, self._known, self.stranger = sender, True, None

    def receive(self, deadline: float) -> tuple[bytes, tuple[str, int]] | None:
        """Return the next datagram and its sender; None when the deadline (`time.monotonic`) has passed."""
        while True:
            left = deadline - time.monotonic()
            self._socket.settimeout(max(left, 0.0))
            try:
                data, sender = self._socket.recvfrom(_DATAGRAM_MAX)
            except (TimeoutError, BlockingIOError):
                return None
            except ConnectionError:
                # Linux reports here that nobody listened to what was sent before; silence will tell by itself.
                if left <= 0.0:
                    return None
                continue
            if self._known and sender != self.peer:
                self.refused, self.stranger = self.refused + 1, (data, sender)
                if left <= 0.0:
                    return None
                continue
            return data, sender

    def drain(self) -> None:
        """Throw away what has arrived."""
        # Bounded: a flood must not keep us here.
        for _ in range(1000):
            if self.receive(0.0) is None:
                return

    def send(self, data: bytes, to: tuple[str, int] | None = None) -> None:
        """Send a datagram to the peer, or elsewhere; that nobody listens is found by the silence that follows."""
        where = to or self.peer
        assert where is not None
        with contextlib.suppress(ConnectionError, BlockingIOError):
            self._socket.sendto(data, where)

    def close(self) -> None:
        """Close the socket; may be called again."""
        self._socket.close()


class TcpLink:
    """A server for one client; later ones are turned away.

    Args:
        address: Where to listen.
        who: Is expected, for sentences.

    Raises:
        AirworthyError: The port is taken, or the address is not this machine's.
    """

    def __init__(self, address: Address, who: str):
        self._server = _bound(socket.SOCK_STREAM, address, who)
        self._server.listen(4)
        self.address, self.who = address, who
        self._client: socket.socket | None = None
        self.refused = 0
        """Clients that came while one was there."""

    @property
    def connected(self) -> bool:
        """Whether a client is there."""
        return self._client is not None

    def accept(self, wait: float) -> None:
        """Wait for a client.

        Args:
            wait: At most [s].

        Raises:
            AirworthyError: None came.
        """
        self._server.settimeout(wait)
        try:
            self._client = self._server.accept()[0]
        except TimeoutError:
            raise AirworthyError(
                f"No {self.who} connected to {self.address} within {wait:g} s: start it, then fly again, or wait longer with"
                " --wait SECONDS."
            ) from None
        self._client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._server.setblocking(False)

    def receive(self, deadline: float, most: int = 65536) -> bytes:
        """Return what arrives next; empty when the deadline (`time.monotonic`) has passed.

        Raises:
            AutopilotFailure: The client left.
        """
        client = self._served()
        client.settimeout(max(deadline - time.monotonic(), 0.0))
        try:
            data = client.recv(most)
        except (TimeoutError, BlockingIOError):
            return b""
        except OSError as error:
            raise self._left(error) from None
        if not data:
            raise self._left()
        return data

    def send(self, data: bytes, patience: float) -> None:
        """Send everything.

        Raises:
            AutopilotFailure: The client left, or does not read for `patience` [s].
        """
        client = self._served()
        client.settimeout(patience)
        try:
            client.sendall(data)
        except TimeoutError:
            raise AutopilotFailure(f"{self.who} has not read what was sent to it for {patience:g} s") from None
        except OSError as error:
            raise self._left(error) from None

    def close(self) -> None:
        """Close both sockets; may be called again."""
        if self._client is not None:
            self._client.close()
        self._server.close()

    def _served(self) -> socket.socket:
        assert self._client is not None
        # Whoever else comes is turned away at once, and not left to wait for an answer.
        with contextlib.suppress(BlockingIOError, OSError):
            other = self._server.accept()[0]
            other.close()
            self.refused += 1
        return self._client

    def _left(self, error: OSError | None = None) -> AutopilotFailure:
        why = f" ({error.strerror})" if error is not None and error.strerror else ""
        return AutopilotFailure(f"{self.who} closed the connection in mid-flight{why}")
