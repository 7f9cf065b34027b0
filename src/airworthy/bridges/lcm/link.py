"""LCM's datagrams: UDP multicast that does not leave this machine.

Facts of LCM's protocol (lcm-proj.github.io, UDP multicast protocol): "LC02", a number, the channel and a zero byte, then the
message; one that is larger than a datagram goes in fragments, "LC03" with its size, the fragment's place and their count.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
import socket
import struct
import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from airworthy.core.errors import AirworthyError

__all__ = ["DEFAULT_URL", "LcmLink", "Reassembly", "datagrams", "parse_url"]

DEFAULT_URL = "udpm://239.255.76.67:7667"
"""LCM's own; with ttl=0 unless another is named, so that nothing leaves this machine."""
_SHORT, _FRAGMENT = struct.Struct(">II"), struct.Struct(">IIIIHH")
_MAGIC_SHORT, _MAGIC_FRAGMENT = 0x4C433032, 0x4C433033
CHANNEL_MAX = 63
"""Longest name of a channel."""
_FRAGMENT_BYTES = 1400
"""Of LCM's own library, which keeps datagrams within an Ethernet frame."""
MESSAGE_MAX = 32 << 20
"""Largest message that is put together; ours: a picture of 4K in colour has 25 MB."""
_PENDING_MAX = 16
"""Messages of which fragments are missing, that are kept at once."""
_BUFFER = 8 << 20
ARRIVED_MAX = 2000
"""Datagrams that are looked through at once, ours: three pictures of 640 x 480, and a hundredth of a second."""
_URL = re.compile(r"udpm://([0-9.]+):(\d{1,5})(?:\?ttl=(\d{1,3}))?")


def parse_url(url: str) -> tuple[str, int, int]:
    """Return group, port and ttl of udpm://GROUP:PORT?ttl=N.

    Raises:
        AirworthyError: It is none, or no multicast group.
    """
    found = _URL.fullmatch(url)
    with contextlib.suppress(ValueError):
        if found is not None and ipaddress.IPv4Address(found[1]).is_multicast and 0 < int(found[2]) < 65536:
            return found[1], int(found[2]), min(int(found[3] or 0), 255)
    raise AirworthyError(f"{url!r} is no address of LCM; write udpm://GROUP:PORT?ttl=0, such as {DEFAULT_URL}.")


def datagrams(channel: str, data: bytes, number: int) -> list[bytes]:
    """Return the datagrams of a message.

    Args:
        channel: At most `CHANNEL_MAX` letters.
        data: Message.
        number: Of the message, by sender, from 0 on.
    """
    name = channel.encode() + b"\0"
    if len(name) + len(data) <= _FRAGMENT_BYTES:
        return [_SHORT.pack(_MAGIC_SHORT, number & 0xFFFFFFFF) + name + data]
    # The first fragment has the channel in front; offsets are those of the message alone.
    ends = [_FRAGMENT_BYTES - len(name)]
    while ends[-1] < len(data):
        ends.append(min(ends[-1] + _FRAGMENT_BYTES, len(data)))
    if len(ends) > 0xFFFF:
        raise AirworthyError(f"A message of {len(data):,} bytes is too large for LCM, which counts fragments in 16 bits.")
    starts = [0, *ends[:-1]]
    found = []
    for k, (start, end) in enumerate(zip(starts, ends, strict=True)):
        head = _FRAGMENT.pack(_MAGIC_FRAGMENT, number & 0xFFFFFFFF, len(data), start, k, len(ends))
        found.append(head + (name if k == 0 else b"") + data[start:end])
    return found


@dataclass
class _Pending:
    size: int
    count: int
    data: bytearray
    there: set[int] = field(default_factory=set)
    channel: str = ""


@dataclass
class Reassembly:
    """Messages out of datagrams; keeps a bounded number of unfinished ones."""

    malformed: int = 0

    def __post_init__(self) -> None:
        self._pending: OrderedDict[tuple[tuple[str, int], int], _Pending] = OrderedDict()

    def feed(self, data: bytes, sender: tuple[str, int]) -> tuple[str, bytes] | None:
        """Return channel and message that a datagram completes; None where it does not."""
        magic = data[:4]
        if len(data) >= _SHORT.size and magic == struct.pack(">I", _MAGIC_SHORT):
            channel, zero, rest = data[_SHORT.size :].partition(b"\0")
            if zero and 0 < len(channel) <= CHANNEL_MAX:
                return channel.decode("utf-8", "replace"), rest
        elif len(data) >= _FRAGMENT.size and magic == struct.pack(">I", _MAGIC_FRAGMENT):
            _, number, size, offset, index, count = _FRAGMENT.unpack_from(data)
            if self._fits(size, offset, index, count):
                return self._fragment((sender, number), data[_FRAGMENT.size :], size, offset, index, count)
        self.malformed += 1
        return None

    @staticmethod
    def _fits(size: int, offset: int, index: int, count: int) -> bool:
        # A fragment has at least one byte: a count beyond that is a lie.
        return 0 < size <= MESSAGE_MAX and offset < size and index < count <= size

    def _fragment(
        self, key: tuple[tuple[str, int], int], body: bytes, size: int, offset: int, index: int, count: int
    ) -> tuple[str, bytes] | None:
        pending = self._pending.get(key)
        if pending is None or (pending.size, pending.count) != (size, count):
            # Grown with what arrives: a size that is only claimed takes nothing.
            pending = self._pending[key] = _Pending(size, count, bytearray())
            self._pending.move_to_end(key)
            while len(self._pending) > _PENDING_MAX:
                self._pending.popitem(last=False)
        if index == 0:
            channel, zero, body = body.partition(b"\0")
            if not zero or not 0 < len(channel) <= CHANNEL_MAX:
                self.malformed += 1
                return None
            pending.channel = channel.decode("utf-8", "replace")
        if offset + len(body) > size or len(pending.data) + 65536 < offset:
            self.malformed += 1  # fragments come nearly in order; one from far ahead would only take memory
            return None
        if len(pending.data) < offset + len(body):
            pending.data.extend(bytes(offset + len(body) - len(pending.data)))
        pending.data[offset : offset + len(body)] = body
        pending.there.add(index)
        if len(pending.there) < count or not pending.channel or len(pending.data) != size:
            return None
        del self._pending[key]
        return pending.channel, bytes(pending.data)


class LcmLink:
    """Sends and receives messages of a group.

    Args:
        url: udpm://GROUP:PORT?ttl=N.

    Raises:
        AirworthyError: The URL is none, or the system has no multicast.
    """

    name = "lcm"

    def __init__(self, url: str = DEFAULT_URL):
        group, port, ttl = parse_url(url)
        self._to, self._number, self._here = (group, port), 0, ttl == 0
        self.address = f"udpm://{group}:{port}?ttl={ttl}"
        self._out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._in = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._parts = Reassembly()
        self.foreign = 0
        """Datagrams of other machines, which are not looked at with ttl 0."""
        try:
            self._out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, ttl)
            self._out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
            self._out.connect(self._to)
            self._own = self._out.getsockname()[0]
            self._in.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if hasattr(socket, "SO_REUSEPORT"):
                self._in.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            self._in.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
            # To the group alone, so that nothing that is sent to this machine itself is heard.
            self._in.bind(self._to)
            member = socket.inet_aton(group) + socket.inet_aton(self._own)
            self._in.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
        except OSError as error:
            self.close()
            raise AirworthyError(
                f"LCM cannot begin at {self.address} ({error.strerror}): this machine needs multicast."
            ) from None

    @property
    def malformed(self) -> int:
        """Datagrams that were none of LCM."""
        return self._parts.malformed

    def send(self, channel: str, data: bytes) -> None:
        """Send a message."""
        for part in datagrams(channel, data, self._number):
            self._out.send(part)
        self._number += 1

    def receive(self, deadline: float) -> tuple[str, bytes] | None:
        """Return channel and bytes of the next message; None when the deadline (`time.monotonic`) has passed."""
        while True:
            left = deadline - time.monotonic()
            came = self._datagram(left)
            if came is None:
                return None
            if (found := self._fed(*came)) is not None:
                return found
            if left <= 0.0:
                return None

    def arrived(self) -> Iterator[tuple[str, bytes]]:
        """Yield channel and bytes of the messages that have arrived, out of `ARRIVED_MAX` datagrams: never waits.

        A picture that somebody sends has hundreds of them: who took one at each look would find what is behind it, such as a
        command, that many looks later.
        """
        # Bounded: a flood must not keep us here.
        for _ in range(ARRIVED_MAX):
            came = self._datagram(0.0)
            if came is None:
                return
            if (found := self._fed(*came)) is not None:
                yield found

    def _datagram(self, seconds: float) -> tuple[bytes, tuple[str, int]] | None:
        """Return the next datagram and its sender, waited for so long [s]."""
        self._in.settimeout(max(seconds, 0.0))
        try:
            return self._in.recvfrom(65536)
        except (TimeoutError, BlockingIOError):
            return None

    def _fed(self, data: bytes, sender: tuple[str, int]) -> tuple[str, bytes] | None:
        """Return the message that a datagram completes; None where it does not, or is of another machine."""
        if self._here and sender[0] not in (self._own, "127.0.0.1"):
            self.foreign += 1
            return None
        return self._parts.feed(data, sender)

    def close(self) -> None:
        """Close the sockets; may be called again."""
        self._out.close()
        self._in.close()
