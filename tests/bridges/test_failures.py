"""What can go wrong with a program outside: each ends in one sentence, in time, and nothing hangs."""

from __future__ import annotations

import socket
import struct
import subprocess
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.bridges.conftest import KINDS, free_port, make_pilot, simulator

from airworthy.bridges import LinkSettings, Px4Pilot
from airworthy.bridges.ardupilot import ArduPilotPilot
from airworthy.bridges.sockets import Address, AutopilotFailure, TcpLink, UdpLink, parse_address
from airworthy.core.errors import AirworthyError
from airworthy.pilots import FlightPlan, fly
from airworthy.vehicles import vehicle

EVERY = pytest.mark.parametrize("kind", KINDS)
X500 = vehicle("x500")


@EVERY
def test_killed_in_mid_flight(flown: Callable[..., Any], kind: str) -> None:
    armed_at = {"px4": 0.5, "ardupilot": 0.5, "betaflight": 1.0}[kind]
    run, _ = flown(kind, 60.0, "--die", str(armed_at + 0.4))
    said = {
        "px4": "PX4 closed the connection in mid-flight",
        "ardupilot": "ArduPilot sent no servo packet within 1 s after the vehicle's state",
        "betaflight": "Betaflight sent no motor commands within 1 s after the vehicle's state",
    }
    assert run.pilot_error.startswith(said[kind])
    assert run.unfinished == {0: "pilot_error"}
    assert 0.2 < float(run.table.columns["t"][-1]) < 0.6  # what was flown is kept


@EVERY
def test_silent_in_mid_flight(flown: Callable[..., Any], kind: str) -> None:
    run, _ = flown(kind, 60.0, "--mute", "1.2")
    assert "within 1 s after" in run.pilot_error


@EVERY
def test_rubbish_is_counted_and_flown_through(flown: Callable[..., Any], kind: str) -> None:
    run, pilot = flown(kind, 0.3, "--garbage")
    assert run.pilot_error == ""
    told = " ".join(pilot.notes())
    # Ten stray bytes in front of every PX4 frame; three packets for ArduPilot in seven frames; one for Betaflight in each.
    assert {"px4": "stray bytes", "ardupilot": "malformed packets", "betaflight": "malformed packets"}[kind] in told


def test_a_restarted_ardupilot_ends_the_flight(flown: Callable[..., Any]) -> None:
    run, _ = flown("ardupilot", 60.0, "--restart", "0.9")
    assert run.pilot_error.startswith("ArduPilot began again: its frame ")


@EVERY
def test_nobody_comes(loopback: None, kind: str) -> None:
    port = free_port()
    with make_pilot(kind, port, wait=0.2, patience=0.2) as pilot:
        if kind == "betaflight":
            assert fly(simulator(), pilot, FlightPlan(duration=1.0)).pilot_error.startswith(
                "betaflight never answered within 0.2 s"
            )
            return
        with pytest.raises(AirworthyError, match=rf"No .* 127\.0\.0\.1:{port} within 0\.2 s"):
            pilot.connect()


def test_it_connects_and_never_speaks(loopback: None) -> None:
    port = free_port()
    with make_pilot("px4", port, wait=0.3) as pilot, socket.create_connection(("127.0.0.1", port)):
        run = fly(simulator(), pilot, FlightPlan(duration=1.0))
    assert run.pilot_error.startswith("px4 never answered within 0.3 s")


def test_it_speaks_and_never_arms(stand_in: Callable[..., subprocess.Popen[bytes]]) -> None:
    port = free_port()
    with make_pilot("ardupilot", port, wait=0.3) as pilot:
        client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        client.settimeout(0.01)
        packet = struct.pack("<HHI16H", 18458, 400, 0, *([1000] * 16))
        client.sendto(packet, ("127.0.0.1", port))
        pilot.connect()
        # One more frame waits; after it nothing comes: patience ends it.
        client.sendto(struct.pack("<HHI16H", 18458, 400, 1, *([1000] * 16)), ("127.0.0.1", port))
        run = fly(simulator(), pilot, FlightPlan(duration=1.0))
        client.close()
    assert "ardupilot did not arm within 0.3 s" in run.pilot_error or "sent no servo packet" in run.pilot_error


@pytest.mark.parametrize("kind", KINDS)
def test_a_port_that_is_taken(loopback: None, kind: str) -> None:
    port = free_port()
    with (
        make_pilot(kind, port),
        pytest.raises(AirworthyError, match=rf"Could not listen for .* on 127\.0\.0\.1:{port} \(Address"),
    ):
        make_pilot(kind, port)


def test_a_second_client_is_turned_away(loopback: None) -> None:
    port = free_port()
    link = TcpLink(Address("127.0.0.1", port), "PX4")
    first = socket.create_connection(("127.0.0.1", port))
    link.accept(1.0)
    second = socket.create_connection(("127.0.0.1", port))
    second.settimeout(5.0)
    for _ in range(50):
        link.send(b"x", 1.0)
        if link.refused:
            break
        time.sleep(0.02)
    assert second.recv(10) == b""  # closed, not left waiting
    assert link.refused == 1
    assert first.recv(100).startswith(b"x")
    for one in (first, second):
        one.close()
    link.close()


def test_who_does_not_read_is_let_go(loopback: None) -> None:
    port = free_port()
    link = TcpLink(Address("127.0.0.1", port), "PX4")
    client = socket.create_connection(("127.0.0.1", port))
    link.accept(1.0)
    with pytest.raises(AutopilotFailure, match=r"PX4 has not read what was sent to it for 0\.1 s"):
        link.send(b"\0" * 100_000_000, 0.1)
    client.close()
    link.close()


def test_packets_of_others_are_not_flown_by(loopback: None) -> None:
    port = free_port()
    link = UdpLink(Address("127.0.0.1", port), "ArduPilot")
    mine, other = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    mine.sendto(b"a", ("127.0.0.1", port))
    received = link.receive(time.monotonic() + 2.0)
    assert received is not None
    link.adopt(received[1])
    other.sendto(b"b", ("127.0.0.1", port))
    mine.sendto(b"c", ("127.0.0.1", port))
    assert link.receive(time.monotonic() + 2.0) == (b"c", received[1])
    assert link.refused == 1
    for one in (mine, other, link):
        one.close()


def test_a_flood_of_random_packets_does_not_outlast_the_deadline(loopback: None) -> None:
    rng, port = np.random.default_rng(0), free_port()
    pilot = ArduPilotPilot(X500, 250.0, LinkSettings(address=str(port), wait=0.5))
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for _ in range(300):
        sender.sendto(rng.bytes(int(rng.integers(0, 100))), ("127.0.0.1", port))
    with pytest.raises(AirworthyError, match=r"within 0\.5 s \(what came was none: "):
        pilot.connect()
    assert pilot.malformed > 0
    sender.close()
    pilot.close()


def test_two_vehicles_are_refused(loopback: None) -> None:
    from airworthy.pilots.pilot import Observation

    alone = pytest.raises(AirworthyError, match="px4 flies one vehicle, and there are 2: set --envs to 1")
    with Px4Pilot(X500, 250.0, LinkSettings(address=str(free_port()))) as pilot, alone:
        pilot.command(Observation(np.zeros(2), {}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", "127.0.0.1:4560"), ("4561", "127.0.0.1:4561"), ("10.0.0.1", "10.0.0.1:4560"), ("10.0.0.1:9", "10.0.0.1:9")],
)
def test_addresses(text: str, expected: str) -> None:
    found = parse_address(text, 4560)
    assert str(found) == expected
    assert found.loopback == expected.startswith("127.")


@pytest.mark.parametrize("text", ["localhost", "1.2.3", "127.0.0.1:0", "127.0.0.1:70000", "127.0.0.1:x", ":"])
def test_no_addresses(text: str) -> None:
    with pytest.raises(AirworthyError, match="is no place to listen at; write PORT, ADDRESS or ADDRESS:PORT"):
        parse_address(text, 4560)
