"""Which requests the viewer's server answers: those of pages that it served itself, on this machine.

A page of the open web can make a browser send requests to 127.0.0.1. Two headers that pages cannot forge give it away: `Host`
names the address that the browser believes to talk to, and `Origin` the page that asks. A foreign host name that was made to
point at this machine (DNS rebinding) fails by the first, a foreign page by the second.
"""

from __future__ import annotations

import http
import ipaddress
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

__all__ = ["guarded_start", "is_guarded", "refusal"]

NAME = "localhost"
"""The one name, beside loopback addresses, by which a browser here or at the near end of a tunnel calls the server."""
HEADERS = {"X-Frame-Options": "DENY", "Cross-Origin-Resource-Policy": "same-origin", "X-Content-Type-Options": "nosniff"}
"""Sent with every file: no other page may put the viewer into a frame, or read its files."""
FOREIGN = "rebound.invalid"
"""A host name that nobody can own (RFC 2606), with which a server is asked whether it is guarded."""
_PATCH = threading.Lock()


def refusal(hosts: Sequence[str], origins: Sequence[str]) -> str:
    """Why a request is not answered; "" for one that is.

    Args:
        hosts: Its `Host` headers.
        origins: Its `Origin` headers; programs that are no browsers send none.
    """
    if len(hosts) != 1 or not _is_local(hosts[0]):
        return "This server answers to 127.0.0.1 and localhost only."
    if len(origins) > 1 or any(origin.strip().lower() != f"http://{hosts[0].strip().lower()}" for origin in origins):
        return "This server answers its own pages only."
    return ""


def _is_local(host: str) -> bool:
    """Whether a `Host` is this machine: addresses written as numbers cannot be made to point elsewhere."""
    text = host.strip().lower()
    name, colon, port = text.rpartition(":")
    name = name if colon and port.isdecimal() else text
    try:
        return name == NAME or ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


@contextmanager
def guarded_start() -> Iterator[None]:
    """A server of viser that starts within the block is guarded for good.

    viser hands its own handler of requests to `websockets` and leaves no place for another, so the handler is wrapped on its
    way there. Servers that other threads start meanwhile, with handlers of their own, are left alone.
    """
    from websockets.asyncio import server as sockets

    with _PATCH:
        plain = sockets.serve

        def serve(*arguments: Any, **options: Any) -> Any:
            handler = options.get("process_request")
            if str(getattr(handler, "__module__", "")).startswith("viser."):
                options["process_request"] = _guarded(handler)
            return plain(*arguments, **options)

        sockets.serve = serve  # type: ignore[assignment,misc]
        try:
            yield
        finally:
            sockets.serve = plain  # type: ignore[misc]


def _guarded(handler: Any) -> Callable[[Any, Any], Any]:
    def check(connection: Any, request: Any) -> Any:
        reason = refusal(request.headers.get_all("Host"), request.headers.get_all("Origin"))
        if reason:
            return connection.respond(http.HTTPStatus.FORBIDDEN, f"{reason}\n")
        answer = handler(connection, request)
        if answer is not None:
            answer.headers.update(HEADERS)
        return answer

    return check


def is_guarded(host: str, port: int) -> bool:
    """Whether the server at an address refuses a request under a foreign name."""
    with socket.create_connection((host, port), timeout=10.0) as link:
        link.sendall(f"GET / HTTP/1.1\r\nHost: {FOREIGN}\r\nConnection: close\r\n\r\n".encode())
        answer = link.recv(64)
    return answer.split(b" ")[1:2] == [b"403"]
