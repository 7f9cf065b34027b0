"""The web server: on this machine only, since what it serves is open to whoever reaches it.

viser has no way to ask a browser for a password or a token, so an address that others can reach is refused.
"""

from __future__ import annotations

import io
import ipaddress
import socket
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

from airworthy.core.errors import AirworthyError

if TYPE_CHECKING:
    import viser

__all__ = ["serve", "stop", "url_of"]

PORT = 8080
_TUNNEL = "keep 127.0.0.1 and reach it from elsewhere through 'ssh -L {port}:127.0.0.1:{port} HOST'"


def serve(host: str = "127.0.0.1", port: int = PORT) -> viser.ViserServer:
    """Start the server in threads of its own.

    Args:
        host: A loopback address, or "localhost".
        port: 0 for any free one; one that is taken is an error.

    Raises:
        AirworthyError: The address is not of this machine alone, or cannot be had.
        ModuleNotFoundError: viser is not installed.
    """
    address = _loopback(host, port)
    _check_free(address, port)
    import viser

    with redirect_stdout(io.StringIO()):  # it prints a table of its own, also of addresses it does not listen on
        server = viser.ViserServer(host=address, port=port, verbose=False)
    _never_share(server)
    return server


def stop(server: viser.ViserServer) -> None:
    """End the server and its threads."""
    with redirect_stdout(io.StringIO()):
        server.stop()


def url_of(server: viser.ViserServer) -> str:
    """What to open in a browser."""
    return f"http://{server.get_host()}:{server.get_port()}"


def _loopback(host: str, port: int) -> str:
    address = "127.0.0.1" if host == "localhost" else host
    try:
        local = isinstance(parsed := ipaddress.ip_address(address), ipaddress.IPv4Address) and parsed.is_loopback
    except ValueError:
        local = False
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
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            message = f"Could not listen on {host}:{port} ({error.strerror}); --port 0 takes any free one."
            raise AirworthyError(message) from error


def _never_share(server: Any) -> None:
    """A connected page may ask viser for a public tunnel to this server; it gets none."""
    server.request_share_url = lambda *_, **__: None
    server.gui.configure_theme(show_share_button=False, show_logo=False)
