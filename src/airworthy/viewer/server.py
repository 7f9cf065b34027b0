"""The web server: on this machine only, since what it serves is open to whoever reaches it.

viser has no way to ask a browser for a password or a token, so an address that others can reach is refused; and pages from
elsewhere that a browser on this machine has open are refused too (`viewer.server`).
"""

from __future__ import annotations

import http
import io
import ipaddress
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any

from airworthy.core.errors import AirworthyError
from airworthy.core.threads import after_fork

if TYPE_CHECKING:
    import viser

__all__ = ["free_port", "guarded_start", "is_guarded", "refusal", "serve", "stop", "url_of"]

# ---- Which requests the viewer's server answers: those of pages that it served itself, on this machine ----------------------
#
# A page of the open web can make a browser send requests to 127.0.0.1. Two headers that pages cannot forge give it away:
# `Host` names the address that the browser believes to talk to, and `Origin` the page that asks. A foreign host name that was
# made to point at this machine (DNS rebinding) fails by the first, a foreign page by the second.

NAME = "localhost"
"""The one name, beside loopback addresses, by which a browser here or at the near end of a tunnel calls the server."""
HEADERS = {"X-Frame-Options": "DENY", "Cross-Origin-Resource-Policy": "same-origin", "X-Content-Type-Options": "nosniff"}
"""Sent with every file: no other page may put the viewer into a frame, or read its files."""
FOREIGN = "rebound.invalid"
"""A host name that nobody can own (RFC 2606), with which a server is asked whether it is guarded."""
_PATCH = [threading.Lock()]
"""One lock; a new one in a forked child, since another thread may have held it."""


after_fork(lambda: _PATCH.__setitem__(0, threading.Lock()))


def refusal(hosts: Sequence[str], origins: Sequence[str]) -> str:
    """Return why a request is not answered; "" for one that is.

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
    """Tell whether a `Host` is this machine: addresses written as numbers cannot be made to point elsewhere."""
    text = host.strip().lower()
    name, colon, port = text.rpartition(":")
    # An IPv6 address has colons and no port.
    name = name if colon and port.isdecimal() else text
    try:
        return name == NAME or ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


@contextmanager
def guarded_start() -> Iterator[None]:
    """Guard for good a server of viser that starts within the block.

    viser hands its own handler of requests to `websockets` and leaves no place for another, so the handler is wrapped on its
    way there. Servers that other threads start meanwhile, with handlers of their own, are left alone.
    """
    from websockets.asyncio import server as sockets

    # One server at a time starts in the block: the wrapped function is a module's, and shared by all threads.
    with _PATCH[0]:
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
    """Tell whether the server at an address refuses a request under a foreign name."""
    with socket.create_connection((host, port), timeout=10.0) as link:
        # Asked in plain HTTP with a name that no server here has: what answers it would answer a page from elsewhere.
        link.sendall(f"GET / HTTP/1.1\r\nHost: {FOREIGN}\r\nConnection: close\r\n\r\n".encode())
        answer = link.recv(64)
    return answer.split(b" ")[1:2] == [b"403"]


# -----------------------------------------------------------------------------------------------------------------------------

PORT = 8080
PORTS_TRIED = 100
_TUNNEL = "keep 127.0.0.1 and reach it from elsewhere through 'ssh -L {port}:127.0.0.1:{port} HOST'"


def serve(host: str = "127.0.0.1", port: int = PORT) -> viser.ViserServer:
    """Start the server in threads of its own.

    Args:
        host: A loopback address, or "localhost".
        port: 0 for any free one; one that is taken is an error.

    Raises:
        AirworthyError: The address is not of this machine alone, or cannot be had, or this viser cannot be guarded.
        ModuleNotFoundError: viser is not installed.
    """
    address = _loopback(host, port)
    _check_free(address, port)
    import viser

    with redirect_stdout(io.StringIO()), guarded_start():  # it prints a table, also of addresses it does not listen on
        server = viser.ViserServer(host=address, port=port, verbose=False)
    _never_share(server)
    if port not in (0, server.get_port()):  # it was taken just now, and viser went on to another
        stop(server)
        raise _taken(address, port, "in use")
    try:
        guarded = is_guarded(address, server.get_port())
    except OSError as error:
        stop(server)
        raise AirworthyError(f"The viewer's server at {address} does not answer ({error}); try again.") from error
    if not guarded:
        stop(server)
        raise AirworthyError(
            f"viser {viser.__version__} would answer pages from elsewhere, and the viewer does not run like that:"
            " pip install 'viser==1.1.1'."
        )
    return server


def stop(server: viser.ViserServer) -> None:
    """End the server and its threads."""
    with redirect_stdout(io.StringIO()):
        server.stop()


def url_of(server: viser.ViserServer) -> str:
    """Return what to open in a browser."""
    return f"http://{server.get_host()}:{server.get_port()}"


def free_port(host: str = "127.0.0.1", first: int = PORT) -> int:
    """Return the first port from `first` on that nothing listens on.

    Raises:
        AirworthyError: The address is not of this machine alone, or the next hundred are taken.
    """
    address = _loopback(host, first)
    for port in range(first, min(first + PORTS_TRIED, 65536)):
        if _refused(address, port) is None:
            return port
    raise AirworthyError(f"{PORTS_TRIED} ports of {address} from {first} on are taken; --port 0 takes any free one.")


def _loopback(host: str, port: int) -> str:
    address = "127.0.0.1" if host == "localhost" else host
    try:
        local = isinstance(parsed := ipaddress.ip_address(address), ipaddress.IPv4Address) and parsed.is_loopback
    except ValueError:
        local = False
    if address == "::1":
        raise AirworthyError("--host is '::1'; the viewer listens on IPv4 only: leave --host out.")
    if not local:
        shown = _TUNNEL.format(port=port or PORT)
        raise AirworthyError(
            f"--host is {host!r}, which others may reach, and the viewer's server cannot ask them for a password; {shown}."
        )
    if not 0 <= port <= 65535:
        raise AirworthyError(f"--port is {port}; expected 0 (any free one) to 65535.")
    return address


def _check_free(host: str, port: int) -> None:
    """Try the address first: viser would go on to other ports, for ever where the address is not this machine's."""
    error = _refused(host, port)
    if error is not None:
        raise _taken(host, port, error.strerror) from error


def _refused(host: str, port: int) -> OSError | None:
    """Return why an address cannot be listened on; None where it can."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error
    return None


def _taken(host: str, port: int, why: str | None) -> AirworthyError:
    return AirworthyError(f"Could not listen on {host}:{port} ({why}); --port 0 takes any free one.")


def _never_share(server: Any) -> None:
    """Refuse the public tunnel to this server that a connected page may ask viser for."""
    server.request_share_url = lambda *_, **__: None
    server.gui.configure_theme(show_share_button=False, show_logo=False, control_width="large")
