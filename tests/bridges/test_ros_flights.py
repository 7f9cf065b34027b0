"""Nodes of ROS 2 in other processes fly, over DDS and zenoh, to equal bytes; nothing is heard beyond this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.bridges.conftest import free_port

from airworthy.benchmarks.fly.config import FlyConfig
from airworthy.benchmarks.fly.job import run_fly
from airworthy.benchmarks.navigation.config import NavigationConfig
from airworthy.benchmarks.navigation.job import run_benchmark
from airworthy.benchmarks.navigation.store import read_rows
from airworthy.benchmarks.tracking.config import EvaluateConfig
from airworthy.benchmarks.tracking.job import evaluate
from airworthy.bridges.remote.pilot import FlightTask, PilotHello, RemoteSettings
from airworthy.bridges.remote.words import external_entry
from airworthy.bridges.ros import messages
from airworthy.bridges.ros.bus import COMMANDS, LATCHED, Bus
from airworthy.bridges.ros.dds import DdsBus
from airworthy.bridges.ros.pilot import RosPilot
from airworthy.bridges.ros.types import RATE_THRUST, ros_types
from airworthy.bridges.ros.zenoh import ZenohBus
from airworthy.bridges.wire import within
from airworthy.core.errors import AirworthyError, AssetWarning
from airworthy.core.files import sha256_file
from airworthy.pilots.containment import PilotFailure
from airworthy.tasks.navigation import NavigationProtocol

for _package in ("rosbags", "cyclonedds", "zenoh"):
    pytest.importorskip(_package)
pytestmark = pytest.mark.usefixtures("loopback")
HERE = Path(__file__).parent
_USED = iter(range(1, 200))


def free_domain() -> int:
    """A domain that no other process of these tests has: workers begin at different ones."""
    return 1 + (os.getpid() * 7 + next(_USED)) % 230


@pytest.fixture
def node() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []

    def start(program: str, *words: object) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen([sys.executable, str(HERE / program), *map(str, words)]))
        return started[-1]

    yield start
    for one in started:
        one.kill()
        one.wait()


def flown(out: Path, pilot: str, **changes: Any) -> Any:
    chosen = {"waypoints": ("0,0,2", "0,0,2.01"), "hold": 0.5, "report": False, "wait": 20.0} | changes
    return run_fly(FlyConfig(pilot=pilot, out=out, **chosen))


def digest(out: Path) -> str:
    return sha256_file(out / "flight.parquet")


@pytest.mark.slow
def test_a_node_holds_a_place_over_dds_and_zenoh_with_the_same_bytes(node: Callable[..., Any], tmp_path: Path) -> None:
    domain, port = free_domain(), free_port()
    node("ros_node.py", "hover", domain)
    node("zenoh_node.py", port, domain, ros_types().type_hash(RATE_THRUST))
    words = (f"external:ros2:domain={domain}",) * 2 + (f"external:zenoh:domain={domain},router={port}",)
    for number, word in enumerate(words):
        result = flown(tmp_path / str(number), word)
        assert (result.pilot_error, result.summary["flights"][0]["outcome"]) == ("", "success")
    assert len({digest(tmp_path / str(number)) for number in range(3)}) == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ros2", "zenoh"])
def test_the_navigation_benchmark_flies_a_node_twice_the_same(kind: str, node: Callable[..., Any], tmp_path: Path) -> None:
    domain, port = free_domain(), free_port()
    if kind == "ros2":
        node("ros_node.py", "goal", domain)
        word = f"external:ros2:domain={domain},level=velocity,sees=depth"
    else:
        node("zenoh_node.py", port, domain, ros_types().type_hash(RATE_THRUST))
        word = f"external:zenoh:domain={domain},router={port},level=rate_thrust"
    traces = []
    for name in ("one", "two"):
        config = NavigationConfig(
            (word,), ("real_01",), ("forest",), configurations=(1, 2),
            repeats=1, batch=1, report=False, warm_up=0.0, protocol=NavigationProtocol(time_limit_s=1.2), out=tmp_path / name,
        )  # fmt: skip
        assert run_benchmark(config).complete
        rows = read_rows(tmp_path / name)
        assert [row["cause"] for row in rows if row["outcome"] in ("pilot_error", "planner_crash")] == []
        traces.append([row["trace"] for row in rows])
    assert traces[0] == traces[1]
    assert traces[0][0] != traces[0][1]


@pytest.mark.slow
def test_an_evaluation_flies_a_node_one_flight_after_the_other(node: Callable[..., Any], tmp_path: Path) -> None:
    domain = free_domain()
    node("ros_node.py", "hover", domain)
    word = f"external:ros2:domain={domain}"
    config = EvaluateConfig((word, "geometric"), vehicle="x500", course="line", scene="empty_room",
                            conditions=("baseline",), flights=2, report=False, out=tmp_path)  # fmt: skip
    done = evaluate(config)
    entry, ours = done.summary["aggregate"]
    assert (entry["flights"], set(entry)) == (2, set(ours))
    outcomes = [flight["outcome"] for flight in done.summary["flights"] if flight["pilot"] == entry["pilot"]]
    assert len(outcomes) == 2
    assert "pilot_error" not in outcomes


def test_a_node_that_answers_twice_is_told_of(node: Callable[..., Any], tmp_path: Path) -> None:
    """It flies by its first answers; those that come behind them are no answers to the next question."""
    digests = []
    for options in ((), ("--twice",)):
        domain = free_domain()
        node("ros_node.py", "hover", domain, *options)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", AssetWarning)
            result = flown(tmp_path / f"{len(options)}", f"external:ros2:domain={domain}")
        assert result.pilot_error == ""
        digests.append(digest(tmp_path / f"{len(options)}"))
        told = [str(item.message) for item in caught if "answers to another question" in str(item.message)]
        assert [note.removeprefix("ros2: ") for note in result.pilot_notes] == [
            line.removeprefix("Pilot ros2: ") for line in told
        ]
        assert len(told) == len(options)
    assert digests[0] == digests[1]


def test_many_at_once_are_refused(tmp_path: Path) -> None:
    word = f"external:ros2:domain={free_domain()},level=velocity"
    with pytest.raises(AirworthyError, match="flies one vehicle at a time, on topics that all would share: give --batch 1"):
        run_benchmark(NavigationConfig((word,), ("real_01",), ("forest",), out=tmp_path))
    with pytest.raises(AirworthyError, match="flies one vehicle at a time: leave --envs at 1"):
        flown(tmp_path, word, envs=2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--die", "0.3"),
            r"the stamp of /uav/odometry, 0\.3\d0 s, came on /uav/input/rateThrust within \d+\.\d s",
        ),
        (("--wrong-stamp",), r"within \d+\.\d s \(\d+ with another, 0 that were none\)"),
    ],
)
def test_a_node_that_dies_or_answers_otherwise_is_named(
    node: Callable[..., Any], tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    domain = free_domain()
    node("ros_node.py", "hover", domain, *options)
    with closing(DdsBus(domain)) as bus:  # on a busy machine it takes seconds to begin
        commands = bus.subscriber("/uav/input/rateThrust", RATE_THRUST, COMMANDS)
        for _ in range(1200):
            if commands.matched:
                break
            commands.receive(within(0.05))
        else:
            pytest.fail("the node did not begin")
    result = flown(tmp_path, f"external:ros2:domain={domain}", patience=0.5, wait=20.0 if "--die" in options else 2.0)
    assert result.summary["flights"][0]["outcome"] == "pilot_error"
    with pytest.raises(AssertionError, match=said):
        raise AssertionError(result.pilot_error)


def test_nobody_and_too_many_are_named(node: Callable[..., Any], tmp_path: Path) -> None:
    domain = free_domain()
    word = f"external:ros2:domain={domain}"
    with pytest.raises(AirworthyError, match="cannot be flown: no node subscribes to /uav/odometry at domain"):
        flown(tmp_path / "none", word, wait=0.3)
    assert not (tmp_path / "none").exists()
    others = [DdsBus(domain) for _ in range(2)]
    ends = [bus.publisher("/uav/input/rateThrust", RATE_THRUST, COMMANDS) for bus in others]
    seen = others[0].subscriber("/uav/odometry", "nav_msgs/msg/Odometry", COMMANDS)
    assert "2 nodes publish /uav/input/rateThrust, and one may" in flown(tmp_path / "two", word).pilot_error
    del ends, seen


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("external:ros2:lvel=velocity", "was given 'lvel=velocity'; expected KEY=VALUE with level, sees, domain, rate"),
        ("external:ros2:level=wrench", "Unknown control level of ROS 2 'wrench'"),
        ("external:ros2:domain=x", "was given domain='x'; expected a whole number of 0 or more"),
        ("external:ros2:domain=233", "The domain 233 of ROS 2 is none; expected 0 to 232"),
        ("external:zenoh:router=there", "'there' is no place to listen at"),
    ],
)
def test_words_that_make_no_sense_are_refused(word: str, said: str) -> None:
    with pytest.raises(AirworthyError, match=said):
        external_entry(word)


# ---- Both transports ------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["dds", "zenoh"])
def buses(request: pytest.FixtureRequest) -> Iterator[tuple[Bus, Bus]]:
    """Two ends; of DDS in one process, which speak without a network."""
    number, port = free_domain(), str(free_port())
    two: list[Bus] = [DdsBus(number) if request.param == "dds" else ZenohBus(number, port) for _ in range(2)]
    yield two[0], two[1]
    for bus in reversed(two):
        bus.close()


def test_who_comes_late_is_given_what_is_latched(buses: tuple[Bus, Bus]) -> None:
    ours, theirs = buses
    said = messages.static_frames({})
    sent = ros_types().packed(said.kind, said.values)
    publisher = ours.publisher(said.topic, said.kind, LATCHED)
    publisher.send(sent)
    late = theirs.subscriber(said.topic, said.kind, LATCHED)
    assert late.receive(within(10.0)) == sent
    assert late.receive(within(0.1)) is None


def test_big_images_arrive_whole_and_in_order(buses: tuple[Bus, Bus]) -> None:
    ours, theirs = buses
    kind, rng = "sensor_msgs/msg/Image", np.random.default_rng(0)
    here, there = ours.publisher("/big", kind, COMMANDS), theirs.subscriber("/big", kind, COMMANDS)
    for _ in range(1000):
        if here.matched and there.matched:
            break
        time.sleep(0.01)
    for number in range(30):
        pixels = rng.integers(0, 255, 1280 * 720 * 3, np.uint8)
        sent = ros_types().packed(kind, {"height": 720, "width": 1280, "encoding": "rgb8", "step": 3840, "data": pixels})
        here.send(sent)
        assert there.receive(within(10.0)) == sent, number


def test_nothing_is_heard_beyond_this_machine() -> None:
    before = set(sockets())
    buses = [DdsBus(free_domain()), ZenohBus(0, str(free_port()))]
    opened = [item for item in sockets() if item not in before]
    assert len(opened) >= 3
    for address, device in opened:
        assert address.startswith("127.") or device == "lo", (address, device)
    for bus in buses:
        bus.close()


def sockets() -> Iterator[tuple[str, str]]:
    """Address and device of every IP socket of this process, with a number that tells equal ones apart."""
    if not sys.platform.startswith("linux"):
        pytest.skip("sockets are listed as Linux does")
    for entry in os.listdir("/proc/self/fd"):
        try:
            if not os.readlink(f"/proc/self/fd/{entry}").startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(entry))) as found:
                if found.family != socket.AF_INET:
                    continue
                held = found.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16).rstrip(b"\0").decode()
                yield f"{found.getsockname()[0]}:{found.getsockname()[1]}", held
        except OSError:
            continue


def test_what_sensors_have_is_not_overtaken() -> None:
    """A node that does not take it in time ends its flight, before odometry asks for a command."""
    asked: list[str] = []

    class Sender:
        def send(self, message: Any) -> Any:
            asked.append(message.topic)
            return SimpleNamespace(flush=lambda deadline: "tf_static" not in message.topic)

    hello = PilotHello("ros2", "rate_thrust", ("position", "velocity", "attitude", "rate"))
    pilot: Any = RosPilot(lambda: None, hello, RemoteSettings(patience=0.05))
    pilot._bus, pilot._sender, pilot._task = object(), Sender(), FlightTask(1, "free")
    fields = {name: np.zeros((1, 3)) for name in hello.observes} | {"attitude": np.array([[0.0, 0.0, 0.0, 1.0]])}
    seen: Any = type("Seen", (), {"time": np.zeros(1), "__getitem__": lambda self, name: fields[name]})()
    with pytest.raises(PilotFailure, match=r"the node did not take what sensors have at 0.000 s, within 0.05 s"):
        pilot.decide(seen)
    assert asked == ["/tf_static"]
