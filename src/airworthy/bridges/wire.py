"""Messages over a stream socket: a length, a JSON header, and the bytes of arrays (spec/connect 10).

    4 bytes      length of the header, little-endian
    header       JSON object in UTF-8: "kind", "arrays" as [[name, dtype, shape], ...], and any fields
    bytes        of the arrays in that order, C order, little-endian

Nothing is run or looked up by what arrives: a message that is not of this form, or too large, ends the connection.
"""

from __future__ import annotations

import json
import math
import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.core.files import parse_json

DTYPES = ("<f8", "<f4", "<i8", "|b1", "|u1")
"""What arrays may be: bytes of other types, as of objects, mean nothing to another process."""
HEADER_MAX = 1 << 20
"""Longest header [bytes]; ours. The longest of a race is the vehicle's record, of some kilobytes."""
ARRAYS_MAX = 64 << 20
"""Most bytes of a message's arrays; ours. A minute of looking at 60 frames of 11 gates takes 2.5 MB, an image 2.4 MB, a pair
of them 4.7 MB."""
_RANK_MAX = 8
_COUNT_MAX = 1 << 40
"""Of an array without numbers, the product of its other axes; ours: NumPy refuses from 2^60 on."""
_CHUNK = 1 << 16
_HEAD = struct.Struct("<I")


def within(seconds: float) -> float:
    """Return the moment so many seconds from now, as links take it: on the monotonic clock [s]."""
    return time.monotonic() + seconds


class LinkFailure(Exception):
    """A connection is of no use any more: closed, silent for too long, or it brought what is no message."""


@dataclass(frozen=True)
class Message:
    """One message."""

    kind: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    """What JSON holds; neither "kind" nor "arrays"."""
    arrays: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict)


def packed(message: Message) -> bytes:
    """Return a message's bytes.

    Raises:
        AirworthyError: An array of a type that does not cross.
    """
    arrays = {name: _crossing(name, array) for name, array in message.arrays.items()}
    listed = [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()]
    header = json.dumps({"kind": message.kind, "arrays": listed, **message.fields}, allow_nan=False).encode()
    return b"".join([_HEAD.pack(len(header)), header, *(array.tobytes() for array in arrays.values())])


def _crossing(name: str, array: Any) -> np.ndarray[Any, Any]:
    plain = np.asarray(array)
    little = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
    if little.dtype.str not in DTYPES:
        raise AirworthyError(f"An array {name!r} of type {plain.dtype} does not cross; expected one of {DTYPES}.")
    return little


class WireLink:
    """One end of a connection.

    Args:
        connection: A stream socket, which the link closes.
        most: Bytes of arrays that a message may bring.
    """

    def __init__(self, connection: socket.socket, most: int = ARRAYS_MAX):
        self._socket, self._most, self._held = connection, most, bytearray()
        if connection.family in (socket.AF_INET, socket.AF_INET6):
            # Small messages to and fro: waiting for more to send would cost 40 ms each.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, message: Message, until: float = math.inf) -> None:
        """Send a message.

        Args:
            message: It.
            until: When to give up, on the monotonic clock [s].

        Raises:
            LinkFailure: The other end is gone, or does not read.
        """
        data = packed(message)
        try:
            self._wait(until)
            self._socket.sendall(data)
        except TimeoutError:
            raise LinkFailure("it does not read what it is sent") from None
        except OSError as error:
            raise LinkFailure(f"the connection broke ({error.strerror or error})") from None

    def receive(self, until: float = math.inf) -> Message:
        """Return the next message.

        Args:
            until: When to give up, on the monotonic clock [s].

        Raises:
            LinkFailure: The other end is gone or silent, or sent what is no message.
        """
        head = self._exactly(_HEAD.size, until)
        (length,) = _HEAD.unpack(head)
        if not 2 <= length <= HEADER_MAX:
            raise LinkFailure(_foreign(head, length))
        header, listed = _header(self._exactly(length, until))
        total = sum(size for _, _, _, size in listed)
        if total > self._most:
            raise LinkFailure(f"it sent arrays of {total:,} bytes; expected {self._most:,} at most")
        arrays = {}
        for name, dtype, shape, size in listed:
            # Copies: whoever gets an array owns its memory, and may write there.
            arrays[name] = np.frombuffer(self._exactly(size, until), dtype).reshape(shape).copy()
        kind = header.pop("kind")
        return Message(kind, header, arrays)

    def close(self) -> None:
        """Close the connection; the other end finds its end."""
        self._socket.close()

    def _wait(self, until: float) -> None:
        if until == math.inf:
            self._socket.settimeout(None)
            return
        left = until - time.monotonic()
        if left <= 0.0:
            raise TimeoutError
        self._socket.settimeout(left)

    def _exactly(self, size: int, until: float) -> bytes:
        while len(self._held) < size:
            try:
                # The whole wait is bounded: who sends a byte a second is as silent as who sends none.
                self._wait(until)
                more = self._socket.recv(max(_CHUNK, size - len(self._held)))
            except TimeoutError:
                raise LinkFailure("it gave no answer in time") from None
            except OSError as error:
                raise LinkFailure(f"the connection broke ({error.strerror or error})") from None
            if not more:
                raise LinkFailure("the connection was closed")
            self._held += more
        taken = bytes(self._held[:size])
        del self._held[:size]
        return taken


def _foreign(head: bytes, length: int) -> str:
    """Say what begins a message that is none: of a program that speaks in text its first letters say more than a number."""
    if head.isascii() and (word := head.decode("ascii")).isprintable():
        web = ", as a web server answers" if word == "HTTP" else ""
        return f"it does not speak this protocol: it began with the letters {word!r}{web}"
    return f"it sent no message of the protocol: a header of {length:,} bytes, expected 2 to {HEADER_MAX:,}"


def _header(data: bytes) -> tuple[dict[str, Any], list[tuple[str, str, tuple[int, ...], int]]]:
    """Return the fields of a header, and name, type, shape and bytes of each array."""
    try:
        value = parse_json(data.decode("utf-8"), "the header")
    except (UnicodeDecodeError, AirworthyError) as error:
        raise LinkFailure(f"it sent no message of the protocol: {str(error)[:200].rstrip('.')}") from None
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str) or not isinstance(value.get("arrays"), list):
        raise LinkFailure("it sent no message of the protocol: the header has no kind and no list of arrays")
    listed = [_listed(entry) for entry in value.pop("arrays")]
    if len({name for name, _, _, _ in listed}) < len(listed):
        raise LinkFailure("it sent no message of the protocol: two arrays of one name")
    return value, listed


def _listed(entry: Any) -> tuple[str, str, tuple[int, ...], int]:
    if isinstance(entry, list) and len(entry) == 3:
        name, dtype, shape = entry
        whole = isinstance(shape, list) and len(shape) <= _RANK_MAX and all(type(n) is int and n >= 0 for n in shape)
        # An array with an axis of length 0 has no bytes, however long its other axes are said to be: NumPy refuses such ones.
        whole = whole and (0 not in shape or math.prod(max(n, 1) for n in shape) < _COUNT_MAX)
        if isinstance(name, str) and dtype in DTYPES and whole:
            # Python's whole numbers: a product of these does not overflow to something small.
            return name, dtype, tuple(shape), math.prod(shape) * np.dtype(dtype).itemsize
    raise LinkFailure(
        f"it sent no message of the protocol: an array is {str(entry)[:80]}; expected [name, one of {', '.join(DTYPES)}, shape]"
    )
