"""Random and mutated packets on every protocol: nothing breaks, hangs or grows, and what follows is still understood."""

from __future__ import annotations

import gc
import json
import socket
import struct
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from tests.bridges.conftest import free_port, make_pilot
from tests.bridges.test_ros_types import drawn

from airworthy.bridges import LinkSettings
from airworthy.bridges.ardupilot import servo_packet
from airworthy.bridges.mavlink import MavlinkParser, encode
from airworthy.bridges.ros.topics import INPUTS, CommandTopic
from airworthy.bridges.ros.types import ros_types
from airworthy.bridges.wire import LinkFailure, Message, WireLink, packed, within

QUICK, WHOLE = 2_000, 100_000
GROWTH = 1 << 20
"""Most that memory may have grown by [bytes], of which a link's own buffers are some: far less than a byte a packet."""
SIZES = [pytest.param(QUICK, id="quick"), pytest.param(WHOLE, id="whole", marks=pytest.mark.slow)]
many = pytest.mark.parametrize("count", SIZES)


def hostile(seeds: list[bytes], count: int) -> Iterator[bytes]:
    """Random bytes, and true packets with bytes that are flipped, cut off, doubled, or numbers that are made large."""
    rng = np.random.default_rng(count)
    for number in range(count):
        data = bytearray(seeds[number % len(seeds)])
        kind = number % 6
        at = int(rng.integers(0, len(data)))
        if kind == 0:
            data = bytearray(rng.bytes(int(rng.integers(0, 400))))
        elif kind == 1:
            data[at] ^= 1 << int(rng.integers(8))
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            data[at:at] = rng.bytes(int(rng.integers(1, 60)))
        elif kind == 4:
            data[at : at + 4] = bytes([255] * 4)
        else:
            data += data[:at]
        yield bytes(data)


@pytest.fixture
def steady() -> Iterator[None]:
    """Fail where memory grew."""
    gc.collect()
    tracemalloc.start()
    yield
    gc.collect()
    now, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert now < GROWTH


CONTROLS = {"time_usec": 5, "controls": (0.5,) * 16, "mode": 128, "flags": 1}
FRAMES = [encode("HIL_ACTUATOR_CONTROLS", CONTROLS, 3)]


@many
@pytest.mark.usefixtures("steady")
def test_mavlink(count: int) -> None:
    parser = MavlinkParser()
    for data in hostile(FRAMES, count):
        parser.feed(data)
        # A frame has 280 bytes and a signature of 13 at most.
        assert len(parser._held) < 300
    assert parser.skipped > count
    assert parser.damaged > 0
    for _ in range(3):  # an unfinished frame may swallow what comes next
        found = parser.feed(FRAMES[0])
    assert found[-1].fields["controls"] == (0.5,) * 16


@many
@pytest.mark.usefixtures("steady", "loopback")
def test_px4_over_its_stream(count: int) -> None:
    port = free_port()
    with closing(make_pilot("px4", port)) as pilot:
        last = encode("HIL_ACTUATOR_CONTROLS", {**CONTROLS, "controls": (0.25,) * 16}, 9)

        def client() -> None:
            with socket.create_connection(("127.0.0.1", port)) as link:
                for data in hostile(FRAMES, count):
                    link.sendall(data)
                for _ in range(3):
                    link.sendall(last)
                link.recv(1)

        thread = threading.Thread(target=client, daemon=True)
        thread.start()
        pilot.connect()
        for _ in range(count):
            reply = pilot._reply(within(20.0))  # type: ignore[attr-defined]
            assert reply is not None
            if (reply.commands == 0.25).all():
                break
        else:
            raise AssertionError("the last frame was not understood")


@many
@pytest.mark.usefixtures("steady", "loopback")
@pytest.mark.parametrize("kind", ["ardupilot", "betaflight"])
def test_datagrams_of_autopilots(kind: str, count: int) -> None:
    port = free_port()
    true = struct.pack("<HHI16H", 18458, 400, 7, *([1500] * 16)) if kind == "ardupilot" else struct.pack("<4f", *([0.5] * 4))
    with closing(make_pilot(kind, port)) as pilot, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        pilot._link.adopt(sender_of(sender))  # type: ignore[attr-defined]
        pilot._count = 3  # type: ignore[attr-defined]
        look = pilot._next if kind == "ardupilot" else pilot._motors  # type: ignore[attr-defined]
        for number, data in enumerate(hostile([true], count)):
            sender.sendto(data, ("127.0.0.1", port))
            if number % 20 == 19:
                for _ in range(20):
                    look(0.0)
        sender.sendto(true, ("127.0.0.1", port))
        assert look(within(5.0)) is not None
        assert pilot.malformed > count // 3  # type: ignore[attr-defined]


def sender_of(sender: socket.socket) -> tuple[str, int]:
    sender.bind(("127.0.0.1", 0))
    found = sender.getsockname()
    return str(found[0]), int(found[1])


@many
@pytest.mark.usefixtures("steady")
def test_servo_packets(count: int) -> None:
    for data in hostile([struct.pack("<HHI16H", 18458, 400, 7, *([1500] * 16))], count):
        found = servo_packet(data)
        assert isinstance(found, str) or len(found.pulses) in (16, 32)


MESSAGES = [
    packed(Message("command", {"a": 1}, {"command": np.ones((1, 4))})),
    packed(Message("hello", {"protocol": 2, "name": "x", "level": "velocity", "observes": ["position"]})),
]


@many
@pytest.mark.usefixtures("steady")
def test_the_socket_protocol(count: int) -> None:
    for data in hostile(MESSAGES, count):
        ours, theirs = socket.socketpair()
        with ours:
            link = WireLink(theirs, 1 << 16)
            ours.sendall(data)
            ours.shutdown(socket.SHUT_WR)
            try:
                while True:
                    assert link.receive(within(5.0)).kind
            except LinkFailure:
                pass
            link.close()


def test_headers_that_promise_too_much_are_refused_at_once() -> None:
    listed = [["a", "<f8", [1 << 39]], ["a", "<f8", [1 << 31, 1 << 31]], ["a", "<f8", [0, 1 << 62]]]
    for entry, said in zip(listed, ("expected 65,536 at most", "expected 65,536 at most", "an array is"), strict=True):
        header = json.dumps({"kind": "command", "arrays": [entry]}).encode()
        ours, theirs = socket.socketpair()
        with ours, closing(WireLink(theirs, 1 << 16)) as link:
            ours.sendall(struct.pack("<I", len(header)) + header)
            with pytest.raises(LinkFailure, match=said):
                link.receive(within(5.0))


class Fed:
    """A subscriber that gives what it is fed."""

    matched = 1

    def __init__(self) -> None:
        self.waiting: list[bytes] = []

    def receive(self, deadline: float) -> bytes | None:
        return self.waiting.pop(0) if self.waiting else None

    def subscriber(self, *_: object) -> Fed:
        return self


@many
@pytest.mark.parametrize("level", sorted(INPUTS))
def test_commands_of_ros(level: str, count: int, request: pytest.FixtureRequest) -> None:
    pytest.importorskip("rosbags")
    rng, kind, bus = np.random.default_rng(5), INPUTS[level].kind, Fed()
    seeds = [ros_types().packed(kind, drawn(kind, rng)) for _ in range(5)]
    commands: Any = CommandTopic(bus, level)  # type: ignore[arg-type]
    for data in hostile(seeds, 100):  # what is compiled and cached at the first time
        bus.waiting.append(data)
        commands.answer((1, 0), 0.0, 0.0)
    request.getfixturevalue("steady")
    for data in hostile(seeds, count):
        bus.waiting.append(data)
        found = commands.answer((-1, 0), 0.0, 0.0)
        assert found is None or found.ndim == 1
    assert commands.malformed > count // 10
    assert commands.malformed + commands.stale == pytest.approx(count + 100, abs=count // 10)


# ---- What libraries listen with -----------------------------------------------------------------------------------------


def test_sockets_of_dds_and_zenoh_outlive_rubbish(loopback: None) -> None:
    pytest.importorskip("cyclonedds")
    pytest.importorskip("zenoh")
    from tests.bridges.test_ros_flights import free_domain, sockets

    from airworthy.bridges.ros import messages
    from airworthy.bridges.ros.bus import LATCHED
    from airworthy.bridges.ros.dds import DdsBus
    from airworthy.bridges.ros.zenoh import ZenohBus

    said = messages.static_frames({})
    sent = ros_types().packed(said.kind, said.values)
    rtps = b"RTPS\x02\x01\x01\x10" + bytes(12) + b"\x15\x01\x20\x00" + bytes(32)
    before, router, domain = set(sockets()), free_port(), free_domain()
    makers: list[Callable[[], Any]] = [lambda: DdsBus(domain), lambda: ZenohBus(0, str(router))]
    for make in makers:
        with closing(make()) as bus:
            ports = [int(address.rpartition(":")[2]) for address, _ in sockets() if (address, _) not in before]
            publisher = bus.publisher(said.topic, said.kind, LATCHED)
            publisher.send(sent)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                for data in hostile([rtps], QUICK):
                    for port in ports:
                        sender.sendto(data, ("127.0.0.1", port))
            if isinstance(bus, ZenohBus):
                for data in hostile([b"\x08\x00\x01\x09" + bytes(20)], 200):
                    with socket.create_connection(("127.0.0.1", router)) as link:
                        link.sendall(data)
            late = bus.subscriber(said.topic, said.kind, LATCHED)
            assert late.receive(within(10.0)) == sent


def test_a_second_simulator_on_a_port_is_refused_with_a_sentence(loopback: None) -> None:
    from airworthy.core.errors import AirworthyError

    port = free_port()
    with closing(make_pilot("px4", port)), pytest.raises(AirworthyError, match="another simulator may be running; stop it"):
        make_pilot("px4", port)
    assert LinkSettings().address == ""
