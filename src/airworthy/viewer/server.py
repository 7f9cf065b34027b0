"""The web server: on this machine only, since what it serves is open to whoever reaches it.

viser has no way to ask a browser for a password or a token, so an address that others can reach is refused; and pages from
elsewhere that a browser on this machine has open are refused too (`viewer.guard`).
"""

from __future__ import annotations

import io
import ipaddress
import socket
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

from airworthy.core.errors import AirworthyError
from airworthy.viewer.guard import guarded_start, is_guarded

if TYPE_CHECKING:
    import viser

__all__ = ["free_port", "serve", "stop", "url_of"]

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
    """What to open in a browser."""
    return f"http://{server.get_host()}:{server.get_port()}"


def free_port(host: str = "127.0.0.1", first: int = PORT) -> int:
    """The first port from `first` on that nothing listens on.

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
    """Why an address cannot be listened on; None where it can."""
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
    """A connected page may ask viser for a public tunnel to this server; it gets none."""
    server.request_share_url = lambda *_, **__: None
    server.gui.configure_theme(show_share_button=False, show_logo=False)
