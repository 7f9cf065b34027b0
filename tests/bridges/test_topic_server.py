"""A vehicle on topics in real time: a node flies it, it begins anew on request, its sensors come at their rates."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.bridges.test_flight_log import told
from tests.bridges.test_ros_flights import free_domain

from airworthy.bridges.clock import LinkClock
from airworthy.bridges.ros.bus import COMMANDS
from airworthy.bridges.ros.dds import DdsBus
from airworthy.bridges.ros.types import RATE_THRUST, ros_types
from airworthy.bridges.topic_server import TopicServeConfig, TopicServed, serve_topics
from airworthy.bridges.wire import within
from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError
from airworthy.logs import read_log

for _package in ("rosbags", "cyclonedds"):
    pytest.importorskip(_package)
pytestmark = pytest.mark.usefixtures("loopback")


@pytest.fixture
def domain(monkeypatch: pytest.MonkeyPatch) -> int:
    found = free_domain()
    monkeypatch.setenv("ROS_DOMAIN_ID", str(found))
    return found


@pytest.fixture
def node(domain: int) -> Iterator[None]:
    program = subprocess.Popen([sys.executable, str(Path(__file__).with_name("ros_node.py")), "hover", str(domain)])
    yield
    program.kill()
    program.wait()


def test_a_node_holds_the_vehicle_where_it_begins(node: None, tmp_path: Path) -> None:
    # A quarter of real time, so that a busy machine keeps up.
    start = (0.0, 0.0, 2.0)
    config = TopicServeConfig("ros2", rate=200.0, clock="scaled", factor=0.25, duration=1.5, start=start, out=tmp_path)
    served = serve_topics(config)
    assert served.commands > 20
    assert served.lateness.steps == 300
    assert np.linalg.norm(served.position - start) < 0.3
    log = read_log(tmp_path / "flight.mcap")
    assert len(log.stream("gyro").time) == 300


@pytest.mark.slow
def test_it_stands_until_it_is_commanded_and_begins_anew_on_request(domain: int) -> None:
    with closing(DdsBus(domain)) as bus:
        clock = bus.subscriber("/clock", "rosgraph_msgs/msg/Clock", COMMANDS)
        thrust = bus.publisher("/uav/input/rateThrust", RATE_THRUST, COMMANDS)
        reset = bus.publisher("/uav/input/reset", "std_msgs/msg/Empty", COMMANDS)
        found = []
        config = TopicServeConfig("ros2", rate=100.0, clock="scaled", factor=0.25, duration=2.0)
        thread = threading.Thread(target=lambda: found.append(serve_topics(config)))
        thread.start()
        assert clock.receive(within(30.0)) is not None
        while not (thrust.matched and reset.matched):
            assert clock.receive(within(30.0)) is not None
        thrust.send(ros_types().packed(RATE_THRUST, {"thrust": {"z": 15.0}}))
        for _ in range(20):
            assert clock.receive(within(30.0)) is not None
        reset.send(ros_types().packed("std_msgs/msg/Empty", {}))
        thread.join(60.0)
        (served,) = found
        assert (served.commands, served.resets) == (1, 1)
        # It had risen, and stands on the ground again.
        assert served.position[2] < 0.3


def test_commands_that_no_vehicle_can_take_are_left_out_and_counted(
    domain: int, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    found = iter([np.full(4, 1e300), np.array([15.0, np.nan, 0.0, 0.0]), np.zeros(3), np.array([15.0, 0.0, 0.0, 0.0])])
    monkeypatch.setattr("airworthy.bridges.topic_server.CommandTopic.newest", lambda self, yaw: next(found, None))
    served = serve_topics(TopicServeConfig("ros2", rate=100.0, clock="scaled", factor=10.0, duration=0.5))
    assert (served.commands, served.notes) == (1, ("ros2: 3 commands that were none",))
    assert not [str(item.message) for item in recwarn if issubclass(item.category, RuntimeWarning)]
    assert served.position[2] > 0.2


@pytest.mark.parametrize(("spent", "said"), [(0.3, True), (0.011, False)])
def test_a_machine_that_does_not_keep_up_is_told_of_once(
    spent: float, said: bool, domain: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(LinkClock):
        """Every look at the wall takes so long [s]; sleeping is as long as was asked for."""

        def __init__(self, mode: Any, period: float, factor: float):
            wall = [0.0]

            def now() -> float:
                wall[0] += spent / 2
                return wall[0]

            def sleep(seconds: float) -> None:
                wall[0] += seconds

            super().__init__(mode, period, factor, now, sleep)

    monkeypatch.setattr("airworthy.bridges.topic_server.LinkClock", Slow)
    told: list[str] = []
    serve_topics(TopicServeConfig("ros2", rate=100.0, duration=0.5), told.append)
    assert [line.partition(":")[0] for line in told[1:]] == ["This machine does not keep up"] * said
    # A step is due every 10 ms, and takes 300: 0.15 + 3 * 0.29 s late is the fourth.
    assert not said or "what was due at 0.04 s comes 1.0 s late" in told[1]


@pytest.mark.parametrize("granted", [True, False])
def test_steps_go_first_where_the_system_lets_them_and_else_that_is_told(
    domain: int, monkeypatch: pytest.MonkeyPatch, granted: bool
) -> None:
    asked = list[int]()

    def schedule(pid: int, policy: int, param: os.sched_param) -> None:
        asked.append(policy)
        if not granted:
            raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", schedule)
    served = serve_topics(TopicServeConfig("ros2", rate=100.0, duration=0.1))
    assert asked[0] == os.SCHED_RR | os.SCHED_RESET_ON_FORK
    assert len(asked) == (2 if granted else 1)
    assert any("real-time priority" in note for note in served.notes) is not granted


@pytest.mark.slow
def test_sensors_come_at_their_rate(domain: int) -> None:
    config = TopicServeConfig("ros2", scene="hall", sensors=("front=base_depth_camera:depth",), rate=100.0, duration=0.5,
                              clock="scaled", factor=10.0)  # fmt: skip
    served = serve_topics(config)
    # It is not stepped in the air before it is commanded, and the first picture is there at once.
    assert served.frames["front"] >= 1
    assert served.collisions == 0


@pytest.mark.slow
def test_stamps_of_samples_follow_the_clock_while_it_waits_and_begins_anew(domain: int, tmp_path: Path) -> None:
    with closing(DdsBus(domain)) as bus:
        clock = bus.subscriber("/clock", "rosgraph_msgs/msg/Clock", COMMANDS)
        reset = bus.publisher("/uav/input/reset", "std_msgs/msg/Empty", COMMANDS)
        thrust = bus.publisher("/uav/input/rateThrust", RATE_THRUST, COMMANDS)

        def waited(steps: int) -> None:
            for _ in range(steps):
                assert clock.receive(within(120.0)) is not None

        found: list[TopicServed] = []
        sensors = ("front=base_depth_camera:depth", "below=lightware_sf11b")
        config = TopicServeConfig("ros2", scene="empty_room", sensors=sensors, rate=100.0, start=(0.0, 0.0, 1.5),
                                  duration=3.0, clock="scaled", factor=0.25, out=tmp_path)  # fmt: skip
        thread = threading.Thread(target=lambda: found.append(serve_topics(config)))
        thread.start()
        waited(1)
        while not (reset.matched and thrust.matched):
            waited(1)
        for _ in range(2):
            waited(20)  # in the air, where it begins
            thrust.send(ros_types().packed(RATE_THRUST, {"thrust": {"z": 9.81}}))
            waited(40)
            reset.send(ros_types().packed("std_msgs/msg/Empty", {}))
        thread.join(60.0)
    (served,) = found
    assert served.resets == 2
    log = told(tmp_path / "flight.mcap")
    ticks = {stamp for stamp, _ in log["/uav/odometry"]}
    assert len(ticks) == 300
    for topic, name in (("/uav/camera/front/depth", "front"), ("/uav/sensors/below", "below")):
        stamps = [stamp for stamp, _ in log[topic]]
        assert len(stamps) == served.frames[name] > 3
        # Of three flights, one after the other; the last began behind the second reset.
        assert stamps == sorted(stamps)
        assert set(stamps) <= ticks | {0}


@pytest.mark.slow
def test_the_factor_is_set_by_frames_and_told_with_the_clock(domain: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airworthy.bridges.clock.WINDOW", 0.2)
    with closing(DdsBus(domain)) as bus:
        told = bus.subscriber("/clock_factor", "std_msgs/msg/Float64", COMMANDS)
        clock = bus.subscriber("/clock", "rosgraph_msgs/msg/Clock", COMMANDS)
        config = TopicServeConfig("ros2", scene="hall", sensors=("front=base_depth_camera:depth",), rate=100.0, duration=2.0,
                                  clock="scaled", factor="auto", start=(0.0, 0.0, 1.5))  # fmt: skip
        thrust = bus.publisher("/uav/input/rateThrust", RATE_THRUST, COMMANDS)
        found: list[TopicServed] = []
        thread = threading.Thread(target=lambda: found.append(serve_topics(config)))
        thread.start()
        assert clock.receive(within(120.0)) is not None  # the process with the pictures begins first
        factors = []
        while thread.is_alive():
            thrust.send(ros_types().packed(RATE_THRUST, {"thrust": {"z": 9.81}}))
            data = told.receive(within(0.2))
            if data is not None:
                factors.append(float(ros_types().unpacked("std_msgs/msg/Float64", data).data))
        thread.join(60.0)
    (note,) = [note for note in found[0].notes if note.startswith("clock factor")]
    assert "times by frames per second" in note
    assert len(set(factors)) > 1
    assert factors[0] == 1.0


@pytest.mark.slow
def test_a_soak_with_images_leaves_memory_flat(node: None, capsys: pytest.CaptureFixture[str]) -> None:
    """960 Hz of inertial sensor and 60 Hz of 640 x 480 images in real time, for 20 s, while a node flies."""
    pages = Path("/proc/self/statm")
    if not pages.exists():
        pytest.skip("memory is read as Linux tells it")
    config = TopicServeConfig("ros2", scene="hall", sensors=("front=flightgoggles_camera_v3:depth",), rate=960.0, duration=20.0)
    found: list[TopicServed] = []
    thread = threading.Thread(target=lambda: found.append(serve_topics(config)))
    thread.start()
    taken = []
    while thread.is_alive():
        thread.join(1.0)
        taken.append(int(pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20)
    (served,) = found
    settled = taken[len(taken) // 4 :]
    with capsys.disabled():
        print(f"\nsoak: {served.frames['front']:,} frames, {len(taken)} s, {served.lateness.sentence()};"
              f" memory {settled[0]:.0f} to {max(settled):.0f} MiB")  # fmt: skip
    assert served.lateness.steps == 19_200
    # Due until the end, but for what the node took to begin; of these as many are rendered as this machine can.
    assert served.frames["front"] > 0
    assert 1000 < served.frames["front"] + served.skipped["front"] <= 1201
    # A leaked image a second, of 1.2 MiB, would be 18 MiB.
    assert max(settled) - settled[0] < 10.0


def test_the_command_says_how_late_it_was(domain: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--as", "ros2", "--rate", "50", "--duration", "0.2"]) == 0
    said = capsys.readouterr().out
    assert "commands on /uav/input/rateThrust" in said
    assert "Clock real: 10 steps were late by" in said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"factor": 2.0}, "--factor changes nothing with --clock real"),
        ({"sensors": ("d435",)}, "--sensors see nothing in empty air"),
        ({"factor": "auto", "clock": "scaled"}, "--factor auto counts frames, and nothing makes any"),
        ({"level": "wrench"}, "Unknown control level of ROS 2 'wrench'"),
        ({"scene": "hall", "sensors": ("d4355",)}, "Unknown sensor 'd4355'"),
    ],
)
def test_what_cannot_be_served_is_refused(changes: dict[str, object], said: str, domain: int) -> None:
    with pytest.raises(AirworthyError, match=said):
        serve_topics(TopicServeConfig("ros2", **changes))  # type: ignore[arg-type]
