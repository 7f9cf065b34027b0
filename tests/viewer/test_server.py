"""What the server listens on, and whose requests it answers."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("viser")

from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from airworthy.core.errors import AirworthyError
from airworthy.viewer import serve
from airworthy.viewer import server as module
from airworthy.viewer.server import free_port, is_guarded, refusal


def _answer(port: int, *headers: str) -> bytes:
    """What a plain GET with these headers gets: the first kilobyte."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as link:
        link.sendall("\r\n".join(["GET / HTTP/1.1", *headers, "Connection: close", "", ""]).encode())
        return link.recv(1024)


class TestAddress:
    def test_listens_on_loopback_only(self, server: Any) -> None:
        port = server.get_port()
        assert server.get_host() == "127.0.0.1"
        assert _answer(port, f"Host: 127.0.0.1:{port}").startswith(b"HTTP/1.1 200")
        if not Path("/proc/net/tcp").is_file():
            pytest.skip("only Linux tells what listens")
        listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        bound = {row[1] for row in listening if row[3] == "0A" and int(row[1].split(":")[1], 16) == port}
        assert bound == {f"0100007F:{port:04X}"}  # 127.0.0.1, as the kernel writes it
        six = Path("/proc/net/tcp6")
        rows = [line.split() for line in six.read_text().splitlines()[1:]] if six.is_file() else []
        assert not [row for row in rows if row[3] == "0A" and int(row[1].split(":")[1], 16) == port]

    def test_never_opens_a_public_tunnel(self, server: Any) -> None:
        assert server.request_share_url() is None
        assert server._share_tunnel is None

    @pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::", "example.org", ""])  # noqa: S104
    def test_refuses_addresses_that_others_reach(self, host: str) -> None:
        with pytest.raises(AirworthyError, match=r"others may reach.*ssh -L 8080:127\.0\.0\.1:8080"):
            serve(host)

    def test_says_that_it_is_of_the_older_protocol(self) -> None:
        with pytest.raises(AirworthyError, match="listens on IPv4 only"):
            serve("::1")

    def test_refuses_a_port_that_is_taken(self, server: Any) -> None:
        with pytest.raises(AirworthyError, match=r"Could not listen on 127\.0\.0\.1:\d+ .*--port 0"):
            serve(port=server.get_port())

    def test_refuses_a_port_that_is_none(self) -> None:
        with pytest.raises(AirworthyError, match="--port is 65536"):
            serve(port=65536)

    def test_finds_the_next_free_port(self, server: Any) -> None:
        taken = server.get_port()
        assert taken < free_port(first=taken) <= taken + module.PORTS_TRIED


class TestGuard:
    """DNS rebinding, and pages from elsewhere that a browser of this machine has open."""

    @pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", "x"])
    def test_foreign_hosts_get_no_file(self, server: Any, host: str) -> None:
        answer = _answer(server.get_port(), f"Host: {host}:{server.get_port()}")
        assert answer.startswith(b"HTTP/1.1 403")
        assert answer.endswith(b"This server answers to 127.0.0.1 and localhost only.\n")

    def test_foreign_origins_get_no_file(self, server: Any) -> None:
        port = server.get_port()
        assert _answer(port, f"Host: 127.0.0.1:{port}", "Origin: https://evil.example").startswith(b"HTTP/1.1 403")
        assert _answer(port, f"Host: 127.0.0.1:{port}", f"Origin: http://127.0.0.1:{port}").startswith(b"HTTP/1.1 200")

    def test_no_page_may_frame_it(self, server: Any) -> None:
        answer = _answer(server.get_port(), "Host: localhost")
        assert b"\r\nX-Frame-Options: DENY\r\n" in answer
        assert b"\r\nCross-Origin-Resource-Policy: same-origin\r\n" in answer

    def test_websockets_of_other_pages_are_refused(self, server: Any) -> None:
        port = server.get_port()
        options: dict[str, Any] = {"proxy": None, "open_timeout": 5}
        foreign = ["http://evil.example", f"https://127.0.0.1:{port}", f"http://127.0.0.1:{port + 1}", "null"]
        for origin in foreign:
            with pytest.raises(InvalidStatus, match="403"):
                connect(f"ws://127.0.0.1:{port}", origin=origin, **options)  # type: ignore[arg-type]
        with pytest.raises(InvalidStatus, match="403"):
            connect(f"ws://127.0.0.1:{port}", additional_headers={"Host": f"evil.example:{port}"}, **options)
        own: Any = f"http://127.0.0.1:{port}"
        connect(f"ws://127.0.0.1:{port}", origin=own, **options).close()

    @pytest.mark.parametrize(
        ("hosts", "origins", "answered"),
        [
            (["127.0.0.1:8080"], [], True),
            (["LOCALHOST:9000"], ["http://localhost:9000"], True),  # the near end of a tunnel
            (["[::1]:8080"], [], True),
            (["127.0.0.2"], [], True),
            ([], [], False),
            (["127.0.0.1", "evil.example"], [], False),
            (["127.0.0.1:8080"], ["http://127.0.0.1:8080", "http://evil.example"], False),
            (["127.0.0.1:8080"], ["http://localhost:8080"], False),
            (["127.0.0.1:80:80"], [], False),
            (["2130706433"], [], False),  # 127.0.0.1 as one number, which pages can write too
            (["localhost."], [], False),
            (["[::ffff:10.0.0.1]"], [], False),
        ],
    )
    def test_headers(self, hosts: list[str], origins: list[str], answered: bool) -> None:
        assert (refusal(hosts, origins) == "") == answered

    def test_a_server_that_cannot_be_guarded_does_not_stay(self, loopback: None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "is_guarded", lambda *_: False)
        stopped = []
        monkeypatch.setattr(module, "stop", lambda server: stopped.append(server) or server.stop())
        with pytest.raises(AirworthyError, match=r"would answer pages from elsewhere.*pip install 'viser==1\.1\.1'"):
            serve(port=0)
        assert len(stopped) == 1

    def test_other_servers_are_left_alone(self, server: Any) -> None:
        from websockets.asyncio import server as sockets

        assert sockets.serve.__module__ == "websockets.asyncio.server"
        assert is_guarded("127.0.0.1", server.get_port())
