"""What ArduCopter itself does on its link, as it was seen to: frames that come again, and a program that begins again."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from tests.bridges.conftest import free_port, make_pilot, simulator
from tests.bridges.test_fields import State

from airworthy.bridges import LinkSettings
from airworthy.bridges.ardupilot import ArduPilotPilot
from airworthy.bridges.sockets import AutopilotFailure
from airworthy.pilots import FlightPlan, fly
from airworthy.simulation import Imu
from airworthy.vehicles import vehicle


def frame(count: int, *pulses: int) -> bytes:
    return struct.pack("<HHI16H", 18458, 400, count, *pulses, *([0] * (16 - len(pulses))))


def answers(client: socket.socket) -> int:
    found = 0
    client.setblocking(False)
    while True:
        try:
            client.recv(65536)
        except BlockingIOError:
            return found
        found += 1


@pytest.fixture
def link(loopback: None) -> Iterator[tuple[ArduPilotPilot, socket.socket]]:
    port = free_port()
    with (
        closing(make_pilot("ardupilot", port, patience=0.3)) as pilot,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
    ):
        assert isinstance(pilot, ArduPilotPilot)
        client.connect(("127.0.0.1", port))
        yield pilot, client


def test_a_frame_that_waited_and_came_again_is_answered_once(link: tuple[ArduPilotPilot, socket.socket]) -> None:
    """It sends its frame each second until an answer comes; two answers would put it one frame ahead for good."""
    pilot, client = link
    for count in (0, 0, 0, 1):
        client.send(frame(count, *[1000] * 4))
    pilot.connect()
    assert pilot.exchange(State(0).sample, standing=True) is not None
    assert (answers(client), pilot.repeated) == (1, 2)


def test_a_frame_whose_answer_was_lost_is_answered_again(
    link: tuple[ArduPilotPilot, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airworthy.bridges.ardupilot._CROSSED", 0.0)
    pilot, client = link
    for count in (0, 0, 1):
        client.send(frame(count, *[1000] * 4))
    pilot.connect()
    assert pilot.exchange(State(0).sample, standing=True) is not None
    assert answers(client) == 2


@pytest.mark.parametrize("standing", [True, False])
def test_it_begins_again_from_another_port(link: tuple[ArduPilotPilot, socket.socket], standing: bool) -> None:
    """As after a change of parameters that needs a restart; before the flight it just goes on."""
    pilot, client = link
    for count in (700, 701):
        client.send(frame(count, *[1000] * 4))
    pilot.connect()
    assert pilot.exchange(State(0).sample, standing=True) is not None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as again:
        again.connect(client.getpeername())
        again.send(frame(0, *[1000] * 4))
        if not standing:
            with pytest.raises(AutopilotFailure, match="ArduPilot began again: its frame 701 was followed by frame 0"):
                pilot.exchange(State(0).sample, standing=False)
            return
        assert pilot.exchange(State(0).sample, standing=True) is not None
        again.send(frame(1, *[1000] * 4))
        assert pilot.exchange(State(0).sample, standing=True) is not None
        assert answers(again) == 1
    assert "ardupilot: 1 restarts before the flight." in pilot.notes()


def test_another_that_began_later_than_the_peer_is_no_restart(link: tuple[ArduPilotPilot, socket.socket]) -> None:
    pilot, client = link
    client.send(frame(5, *[1000] * 4))
    pilot.connect()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.connect(client.getpeername())
        other.send(frame(9, *[2000] * 4))
        with pytest.raises(AutopilotFailure, match=r"ArduPilot sent no servo packet within 0\.3 s"):
            pilot.exchange(State(0).sample, standing=True)


def test_at_a_rate_at_which_it_does_not_arm_it_is_said_why(stand_in: Callable[..., Any]) -> None:
    port = free_port()
    settings = LinkSettings(address=str(port), wait=1.0, stand_clock="lockstep")
    with closing(ArduPilotPilot(vehicle("x500"), 250.0, settings, Imu.named("bmi088"))) as pilot:
        stand_in("ardupilot", port)
        run = fly(simulator(), pilot, FlightPlan(duration=1.0))
    assert run.pilot_error.startswith(
        "ardupilot did not arm within 1 s: it wants 720 samples per second or more, and gets 250 (--control-rate)"
    )
