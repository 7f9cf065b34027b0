"""Vehicle in the loop: clock and motion of poses by known ones, what is flagged and raised, pictures of exactly these poses."""

from __future__ import annotations

import math
import socket
import struct
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.bridges.conftest import free_port
from tests.bridges.test_hostile import GROWTH, hostile, many

from airworthy.bridges.loop.guard import Abort, PoseGuard, SafetyVolume
from airworthy.bridges.loop.latency import FrameTimes, latency_rows
from airworthy.bridges.loop.pose_sources import STAMP_MAX, PosesEnded, checked_pose, logged_poses, pose_source
from airworthy.bridges.loop.pose_track import ClockOffset, PoseLimits, PoseTrack, RoomAlignment, StampedPose
from airworthy.bridges.loop.session import LoopConfig, serve_poses
from airworthy.bridges.ros.messages import stamp_of
from airworthy.bridges.wire import within
from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError, AssetWarning
from airworthy.core.files import sha256_file
from airworthy.core.frames import angle_between, from_rotation_vector, multiply

UPRIGHT = np.array([0.0, 0.0, 0.0, 1.0])
VELOCITY, RATE = np.array([1.0, -2.0, 0.5]), np.array([0.3, -0.2, 1.5])


def moving(stamp: float, received: float | None = None) -> StampedPose:
    """Constant velocity and constant rate in the body."""
    turn = multiply(from_rotation_vector((0.1, 0.2, 0.3)), from_rotation_vector(RATE * stamp))
    return StampedPose(stamp, 1.0 + VELOCITY * stamp, turn, stamp if received is None else received)


# ---- Clock and motion ---------------------------------------------------------------------------------------------------


def test_the_least_delay_is_the_clocks_offset() -> None:
    rng, clock = np.random.default_rng(0), ClockOffset()
    delays = 0.003 + rng.exponential(0.002, 700)
    delays[100] = 0.002
    for k, delay in enumerate(delays[:300]):
        clock.add(0.005 * k, 5.0 + 0.005 * k + delay)
        assert clock.value == pytest.approx(5.0 + delays[: k + 1].min(), abs=1e-9)
    for k, delay in enumerate(delays[300:], 300):
        clock.add(0.005 * k, 5.0 + 0.005 * k + delay)
    # Two seconds later the least delay of long ago does not count any more.
    assert clock.value == pytest.approx(5.0 + delays[101:].min(), abs=2e-3)
    assert clock.value > 5.002 + 1e-6


def test_a_drifting_clock_is_followed() -> None:
    clock = ClockOffset(1.0)
    for k in range(4000):
        clock.add(0.005 * k * (1.0 - 1e-4), 0.005 * k)
    # The offset grows by 1e-4 of a second each: the least of the last second is that of a second ago.
    assert clock.value == pytest.approx(1e-4 * (0.005 * 3999 - 1.0), abs=1e-6)


def test_constant_motion_is_met_exactly_between_and_beyond() -> None:
    track = PoseTrack()
    for k in range(40):
        assert track.add(moving(0.005 * k))
    newest = 0.005 * 39
    for ahead in (-0.083, -0.0025, 0.0, 0.001, 0.049):
        found, wanted = track.at(newest + ahead), moving(newest + ahead)
        assert found is not None
        np.testing.assert_allclose(found.position, wanted.position, atol=1e-9)
        # Between poses a turn of constant rate is a slerp; the arithmetic loses no more than this.
        assert float(angle_between(found.attitude, wanted.attitude)) < 1e-7
        assert found.age == pytest.approx(ahead, abs=1e-9)
        assert not found.held
    held = track.at(newest + 0.2)
    assert held is not None
    assert held.held
    np.testing.assert_allclose(held.position, moving(newest + 0.05).position, atol=1e-9)


def test_the_offset_of_clocks_is_taken_off() -> None:
    track = PoseTrack()
    for k in range(40):
        track.add(moving(0.005 * k, received=1000.0 + 0.005 * k))
    found = track.at(1000.1)
    assert found is not None
    np.testing.assert_allclose(found.position, moving(0.1).position, atol=1e-9)


def test_jumps_flips_gaps_and_disorder_are_counted_and_left_out() -> None:
    track = PoseTrack(PoseLimits(stubborn=3))
    for k in range(10):
        track.add(moving(0.005 * k))
    far = moving(0.05)
    assert not track.add(StampedPose(0.05, far.position + 1.0, far.attitude, 0.05))
    turned = multiply(far.attitude, from_rotation_vector((0.0, 0.0, math.pi)))
    assert not track.add(StampedPose(0.051, far.position, turned, 0.051))
    assert (track.jumps, track.flips) == (2, 1)
    assert not track.add(moving(0.02))
    assert track.late == 1
    assert track.add(moving(0.06))
    assert track.add(moving(0.2))
    assert track.dropouts == 1
    # A place that it stays at is believed in the end.
    away = [StampedPose(0.2 + 0.005 * k, moving(0.2).position + 5.0, UPRIGHT, 0.2 + 0.005 * k) for k in range(1, 5)]
    assert [track.add(pose) for pose in away] == [False, False, False, True]
    found = track.at(0.22)
    assert found is not None
    np.testing.assert_allclose(found.position, moving(0.2).position + 5.0)


def test_a_clock_that_began_anew_is_followed() -> None:
    """After a restart of the tracker, and after a stamp far ahead: what went back by over a second is no disorder."""
    track = PoseTrack()

    def came(stamp: float, received: float) -> bool:
        return track.add(StampedPose(stamp, np.array([received, 0.0, 0.0]), np.array([0.0, 0.0, 0.0, 1.0]), received))

    assert all(came(500.0 + t, t) for t in (0.0, 0.01, 0.02))
    # Half a second back is disorder, and so is the same stamp.
    assert not came(499.6, 0.03)
    assert not came(500.02, 0.03)
    assert (track.late, track.restarts) == (2, 0)
    assert came(1.0, 0.04)
    assert came(1.01, 0.05)
    assert (track.restarts, track.taken, len(track)) == (1, 5, 2)
    # The offset is that of the new clock alone.
    assert track.clock.value == pytest.approx(0.04 - 1.0)
    assert came(101.0, 0.06)
    assert came(1.03, 0.07)
    assert track.restarts == 2
    found = track.at(0.07)
    assert found is not None
    np.testing.assert_allclose(found.position, [0.07, 0.0, 0.0])


def test_stamps_and_places_beyond_all_bounds_are_no_poses() -> None:
    """A date in nanoseconds instead of seconds, and a place that no sensor can be at."""
    level = (0.0, 0.0, 0.0, 1.0)
    assert checked_pose(1.7e9, (1.0, 2.0, 3.0), level, 0.0) is not None
    for stamp, place in (
        (1.7e18, (0.0, 0.0, 0.0)),
        (-1e300, (0.0, 0.0, 0.0)),
        (1.0, (1e30, 0.0, 0.0)),
        (1.0, (0.0, 0.0, -2e6)),
    ):
        assert checked_pose(stamp, place, level, 0.0) is None
    # What is taken fits the stamps that go out.
    assert stamp_of(STAMP_MAX + 3600.0)["sec"] < 2**31


def test_a_pose_of_the_same_stamp_is_no_new_one() -> None:
    track = PoseTrack()
    again = StampedPose(0.5, np.array([1.0, 2.0, 3.0]), UPRIGHT, 0.5)
    assert track.add(again)
    assert not track.add(again)
    assert (track.taken, len(track), track.jumps) == (1, 1, 0)


@pytest.mark.parametrize(("baseline", "poses"), [(0.005, 1), (0.02, 3), (0.05, 7)])
def test_velocity_and_rate_are_taken_over_the_baseline(baseline: float, poses: int) -> None:
    track, step, ahead = PoseTrack(PoseLimits(baseline=baseline)), 1.0 / 128.0, 0.01  # a step that floats hold exactly

    def speeding(k: int) -> float:
        return 2.0 * (k * step) ** 2

    for k in range(40):
        turn = from_rotation_vector((0.0, 0.0, speeding(k)))
        assert track.add(StampedPose(k * step, np.array([speeding(k), 0.0, 0.0]), turn, k * step))
    wanted = speeding(39) + (speeding(39) - speeding(39 - poses)) / (poses * step) * ahead
    found = track.at(39 * step + ahead)
    assert found is not None
    assert found.position[0] == pytest.approx(wanted, abs=1e-9)
    assert float(angle_between(found.attitude, from_rotation_vector((0.0, 0.0, wanted)))) < 1e-7


def test_alignment_turns_and_moves_the_room() -> None:
    placed = RoomAlignment((1.0, 2.0, 3.0), 90.0).placed(StampedPose(0.0, np.array([1.0, 0.0, 0.0]), UPRIGHT, 0.0))
    np.testing.assert_allclose(placed.position, [1.0, 3.0, 3.0], atol=1e-12)
    np.testing.assert_allclose(placed.attitude, [0.0, 0.0, math.sqrt(0.5), math.sqrt(0.5)], atol=1e-12)


# ---- Sources --------------------------------------------------------------------------------------------------------------


def packet(stamp: float, position: Any = (0.0, 0.0, 1.0), attitude: Any = (0.0, 0.0, 0.0, 1.0)) -> bytes:
    return struct.pack("<8d", stamp, *position, *attitude)


def test_datagrams_of_poses(loopback: None) -> None:
    port = free_port()
    with closing(pose_source(f"udp:{port}")) as source, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        bad = (b"", packet(1.0)[:-1], packet(math.nan), packet(1.0, attitude=(0.0, 0.0, 0.0, 0.0)), packet(1.0, (1e400, 0, 0)))
        for data in (*bad, packet(7.5, (1.0, 2.0, 3.0))):
            sender.sendto(data, ("127.0.0.1", port))
        found = source.receive(within(5.0))
        assert found is not None
        assert (found.stamp, found.position.tolist(), source.malformed) == (7.5, [1.0, 2.0, 3.0], 5)
        assert source.receive(within(0.01)) is None
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            other.sendto(packet(8.0), ("127.0.0.1", port))
        assert source.receive(within(0.05)) is None  # the first one is the source


@many
def test_hostile_datagrams_of_poses(count: int, loopback: None) -> None:
    port = free_port()
    with closing(pose_source(f"udp:{port}")) as source, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        tracemalloc.start()
        for data in hostile([packet(1.0)], count):
            sender.sendto(data, ("127.0.0.1", port))
            pose = source.receive(within(0.0))
            assert pose is None or np.isfinite([*pose.position, *pose.attitude, pose.stamp]).all()
        now, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert now < GROWTH
        sender.sendto(packet(9.0), ("127.0.0.1", port))
        found = None
        for _ in range(1000):
            found = source.receive(within(0.2))
            if found is not None and found.stamp == 9.0:
                break
        assert found is not None


def test_quaternions_of_a_length_are_made_ones_of_one() -> None:
    pose = checked_pose(0.0, (0, 0, 0), (0.0, 0.0, 0.0, 1.005), 0.0)
    assert pose is not None
    assert np.linalg.norm(pose.attitude) == pytest.approx(1.0, abs=1e-12)
    assert checked_pose(0.0, (0, 0, 0), (0.0, 0.0, 0.0, 1.02), 0.0) is None


@pytest.mark.parametrize(
    ("word", "said"),
    [("tcp:x", "Unknown source of poses 'tcp:x'"), ("file:", "Unknown source of poses 'file:'"),
     ("ros2:/a b", "is no topic of ROS 2"), ("udp:x", "is no place to listen at")],
)  # fmt: skip
def test_sources_that_are_none_are_refused(word: str, said: str) -> None:
    with pytest.raises(AirworthyError, match=said):
        pose_source(word)


def tum(path: Path, stamps: Any, place: Callable[[float], Any], first: float = 1.5e9) -> Path:
    rows = ["# timestamp tx ty tz qx qy qz qw"]
    rows += [f"{first + t:.6f} {' '.join(f'{v:.9f}' for v in place(t))} 0 0 0 1" for t in stamps]
    path.write_text("\n".join(rows) + "\n")
    return path


def test_a_file_is_replayed_at_its_own_pace(tmp_path: Path) -> None:
    path = tum(tmp_path / "a.txt", np.arange(5) * 0.25, lambda t: (t, 0, 1))
    now = [100.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    source = pose_source(f"file:{path}", lambda: now[0], sleep)
    came = []
    while len(came) < 5:
        pose = source.receive(now[0] + 0.1)
        came += [pose.received] if pose is not None else []
    np.testing.assert_allclose(np.diff(came), 0.25, atol=1e-6)
    with pytest.raises(PosesEnded):
        source.receive(now[0] + 1.0)
    assert [pose.position[0] for pose in logged_poses(str(path))] == pytest.approx([0.0, 0.25, 0.5, 0.75, 1.0])


def test_rows_of_a_file_that_are_no_poses_are_told(tmp_path: Path) -> None:
    path = tmp_path / "odd.txt"
    path.write_text("0.0 0 0 1 0 0 0 1\n0.1 0 0 1 0 0 0 0\n0.2 0 0 1 0 0 0 1\n")
    with pytest.warns(AssetWarning, match="odd.txt: 1 of 3 rows are no poses, and are left out"):
        found = list(logged_poses(str(path)))
    assert [pose.stamp for pose in found] == pytest.approx([0.0, 0.2])


# ---- What is raised at once -----------------------------------------------------------------------------------------------


class Scripted:
    """Poses at given times by the true clock, then nothing."""

    address, malformed = "a script", 0

    def __init__(self, poses: list[tuple[float, Any]]):
        self._poses, self._begin, self._at = poses, within(0.0), 0

    def receive(self, deadline: float) -> StampedPose | None:
        if self._at == len(self._poses):
            raise PosesEnded
        when, place = self._poses[self._at]
        threading.Event().wait(max(min(self._begin + when, deadline) - within(0.0), 0.0))
        if self._begin + when > deadline:
            return None
        self._at += 1
        return StampedPose(when, np.asarray(place, float), UPRIGHT, within(0.0))

    def close(self) -> None:
        pass


def guarded(poses: list[tuple[float, Any]], volume: SafetyVolume | None = None) -> tuple[PoseGuard, list[Abort]]:
    told: list[Abort] = []
    with PoseGuard(Scripted(poses), RoomAlignment(), PoseTrack(), volume, told.append) as guard:
        assert guard.ended.wait(20.0)
    return guard, told


def test_a_dropout_is_an_abort_each_time_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    # By a clock of its own: on a busy machine a script that sleeps comes late itself.
    here = (0, 0, 1)
    steady = [(0.01 * k, here) for k in range(20)]
    dropouts = [(0.3, None), (0.35, here), (0.36, here), (0.5, None), (0.7, here), (0.71, here)]
    told = ticked(Ticking([*steady, *dropouts]), monkeypatch)
    assert [abort.cause for abort in told] == ["no pose has come for 50 ms"] * 2
    # Stale 50 ms after the poses at 0.19 and 0.36 s.
    assert [abort.after for abort in told] == pytest.approx([0.06, 0.09])


def test_leaving_the_volume_is_an_abort_and_coming_back_none() -> None:
    box = SafetyVolume((-1, -1, 0), (1, 1, 2))
    path = [(0.01 * k, (0.25 * k, 0, 1)) for k in range(8)] + [(0.08 + 0.01 * k, (1.75 - 0.25 * k, 0, 1)) for k in range(8)]
    _, told = guarded(path, box)
    assert [abort.cause for abort in told if "left" in abort.cause] == [
        "the vehicle left its safety volume at 1.25, 0.00, 1.00 m"
    ]
    with pytest.raises(AirworthyError, match="write its smaller corner first"):
        SafetyVolume((0, 0, 0), (1, 0, 1))


class Ticking:
    """What comes at given times by a clock of its own: places of poses, or None where nothing came; each looked at `late`."""

    address, malformed = "a script", 0

    def __init__(self, items: list[tuple[float, Any]], late: float = 0.0):
        self._items, self._late, self.now = list(items), late, 0.0

    def monotonic(self) -> float:
        return self.now

    def receive(self, deadline: float) -> StampedPose | None:
        if not self._items:
            raise PosesEnded
        when, place = self._items.pop(0)
        self.now = when + self._late
        return None if place is None else StampedPose(when, np.asarray(place, float), UPRIGHT, when)

    def close(self) -> None:
        pass


def ticked(source: Ticking, monkeypatch: pytest.MonkeyPatch, volume: SafetyVolume | None = None) -> list[Abort]:
    monkeypatch.setattr("airworthy.bridges.loop.guard.time", source)
    told: list[Abort] = []
    with PoseGuard(source, RoomAlignment(), PoseTrack(), volume, told.append) as guard:
        assert guard.ended.wait(20.0)
    assert guard.failure == ""
    return told


class Belated(Ticking):
    """Poses every 10 ms, of which some were long on their way: (when it came, how long)."""

    def receive(self, deadline: float) -> StampedPose | None:
        if not self._items:
            raise PosesEnded
        when, way = self._items.pop(0)
        self.now = when
        return StampedPose(when - way, np.array((0.0, 0.0, 1.0)), UPRIGHT, when)


def test_poses_that_were_long_on_their_way_are_stale_however_many_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """A link that lags by 60 ms more and more, with a pose every 10 ms all the while: by their arrival none is ever missed."""
    soon = [(1.0 + 0.01 * k, 0.0) for k in range(20)]
    lagging = [(1.2 + 0.01 * k, min(0.009 * k, 0.4)) for k in range(60)]
    again = [(1.8 + 0.01 * k, 0.0) for k in range(10)]
    told = ticked(Belated([*soon, *lagging, *again, (1.9, 0.07)]), monkeypatch)
    assert [abort.cause for abort in told] == ["the newest pose was 54 ms old when it came, by its stamp"]
    assert told[0].since == pytest.approx(1.26)
    # Fresh poses end it, so that it is told anew the next time.
    told = ticked(Belated([*soon, *lagging, *again, *((1.9 + 0.01 * k, 0.009 * k) for k in range(12))]), monkeypatch)
    assert len(told) == 2


def test_an_abort_is_told_after_the_moment_that_it_was_so(monkeypatch: pytest.MonkeyPatch) -> None:
    here = (0, 0, 1)
    told = ticked(Ticking([(0.0, here), (0.049, None), (0.083, None), (0.1, None), (0.2, here), (0.257, None)]), monkeypatch)
    # Stale it is 50 ms after the newest pose, so at 0.05 and at 0.25.
    assert [(abort.cause, round(abort.after, 9)) for abort in told] == [
        ("no pose has come for 50 ms", 0.033), ("no pose has come for 50 ms", 0.007)
    ]  # fmt: skip
    out = ticked(Ticking([(0.0, (2, 0, 1))], late=0.004), monkeypatch, SafetyVolume((-1, -1, 0), (1, 1, 2)))
    assert [abort.after for abort in out] == pytest.approx([0.004])


def test_each_way_out_of_the_volume_is_an_abort(monkeypatch: pytest.MonkeyPatch) -> None:
    path = [(0.04 * k, (x, 0, 1)) for k, x in enumerate((0.5, 1.25, 1.5, 0.5, 0.25, 1.1, 1.2, 0.5))]
    told = ticked(Ticking(path), monkeypatch, SafetyVolume((-1, -1, 0), (1, 1, 2)))
    left = "the vehicle left its safety volume at {} m"
    assert [abort.cause for abort in told] == [left.format("1.25, 0.00, 1.00"), left.format("1.10, 0.00, 1.00")]


def test_latency_is_told_by_its_parts() -> None:
    rows = {row.name: row for row in latency_rows([FrameTimes(1.0, 1.002, 1.003, 1.013, 1.015, 50.0, False, 50.4)] * 3)}
    names: tuple[str, ...] = ("pose came to photons", "age of the pose at the photons")
    names += ("begun late", "rendered", "packed and sent", "photons to sent")
    np.testing.assert_allclose([rows[name].median for name in names], [0.002, 0.4, 0.001, 0.010, 0.002, 0.013], atol=1e-9)
    # Of a frame whose stamp nobody kept no age is told.
    assert names[1] not in {row.name for row in latency_rows([FrameTimes(1.0, 1.002, 1.003, 1.013, 1.015)])}
    assert latency_rows([]) == []


# ---- Pictures -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tum(tmp_path_factory.mktemp("poses") / "p.txt", np.arange(40) * 0.01, lambda t: (t, 0.0, 1.5))


def frames(folder: Path) -> Iterator[Any]:
    from tests.bridges.test_flight_log import told

    yield from told(folder / "frames.mcap")["/uav/camera/base_depth_camera/depth"]


def test_in_lockstep_frames_show_exactly_their_instants(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("rosbags")
    from airworthy.scenes import SceneBatch, scene
    from airworthy.sensors.build import make_sensor
    from airworthy.sensors.devices import device
    from airworthy.sensors.mounting import mounted_pose
    from airworthy.sensors.sampling import SensorView

    for name in ("one", "two"):
        config = LoopConfig(f"file:{path}", sensors=("base_depth_camera:depth",), clock="lockstep", out=tmp_path / name)
        result = serve_poses(config)
        assert (result.held, result.aborts) == (0, ())
    assert sha256_file(tmp_path / "one" / "frames.mcap") == sha256_file(tmp_path / "two" / "frames.mcap")
    item, batch = device("base_depth_camera"), SceneBatch([scene("hall")], 1)
    shown = list(frames(tmp_path / "one"))
    assert len(shown) == result.frames["base_depth_camera"] == math.floor(0.39 * item.rate + 1e-6) + 1
    for index, (_, message) in enumerate(shown):
        body = np.array([[index / item.rate, 0.0, 1.5]])
        mount = item.effective_mount
        place, turn = mounted_pose(body, UPRIGHT[None], mount.position, mount.attitude)
        wanted = make_sensor(item).capture(batch, SensorView(place, turn, np.zeros(1, np.int32)), ("depth",))["depth"][0]
        found = np.frombuffer(message.data.tobytes(), "<f4").reshape(wanted.shape)
        # Stamps of the file have microseconds, which at 1 m/s are as many micrometres; edges move by less than a pixel.
        assert np.isclose(found, item.limits.metres(wanted), rtol=0.0, atol=1e-3).mean() > 0.99


def test_poses_of_a_topic_become_pictures_on_topics(tmp_path: Path) -> None:
    for package in ("rosbags", "cyclonedds"):
        pytest.importorskip(package)
    from tests.bridges.test_ros_flights import free_domain

    from airworthy.bridges.ros.bus import COMMANDS, SENSORS
    from airworthy.bridges.ros.dds import DdsBus
    from airworthy.bridges.ros.messages import stamp_of
    from airworthy.bridges.ros.types import ros_types

    number = free_domain()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROS_DOMAIN_ID", str(number))
        with closing(DdsBus(number)) as bus:
            out = bus.publisher("/room/uav", "geometry_msgs/msg/PoseStamped", SENSORS)
            seen = bus.subscriber("/uav/camera/base_depth_camera/depth", "sensor_msgs/msg/Image", SENSORS)
            aborts = bus.subscriber("/uav/abort", "std_msgs/msg/Empty", COMMANDS)
            stop = threading.Event()

            def source() -> None:
                stamp = 50.0
                while not stop.wait(0.01):
                    stamp += 0.01
                    values = {"header": {"stamp": stamp_of(stamp)}, "pose": {"position": {"z": 1.5}, "orientation": {"w": 1.0}}}
                    out.send(ros_types().packed("geometry_msgs/msg/PoseStamped", values))

            thread = threading.Thread(target=source)
            thread.start()
            try:
                config = LoopConfig("ros2:/room/uav", sensors=("base_depth_camera:depth",), publish="ros2", duration=1.0,
                                    wait=20.0, safety=(1.0, 1.0, 1.0, 2.0, 2.0, 2.0))  # fmt: skip
                result = serve_poses(config)
            finally:
                stop.set()
                thread.join()
            assert result.frames["base_depth_camera"] >= 1
            assert "left its safety volume at 0.00, 0.00, 1.50 m" in result.aborts[0].cause
            data = seen.receive(within(5.0))
            assert data is not None
            assert ros_types().unpacked("sensor_msgs/msg/Image", data).encoding == "32FC1"
            assert aborts.receive(within(5.0)) is not None


def test_a_gap_of_100_ms_is_held_and_flagged(tmp_path: Path) -> None:
    stamps = [t for t in np.arange(60) * 0.01 if not 0.2 < t < 0.3]
    where = tum(tmp_path / "gap.txt", stamps, lambda t: (0.0, 0.0, 1.5))
    said: list[str] = []
    result = serve_poses(LoopConfig(f"file:{where}", sensors=("base_lidar:range",)), said.append)
    assert result.track.dropouts == 1
    assert any("no pose has come for 50 ms" in abort.cause for abort in result.aborts)
    assert any(sentence.startswith("Abort: no pose") for sentence in said)


def test_packets_that_come_late_and_frames_left_out_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Noisy(Scripted):
        """Every second packet is none."""

        def receive(self, deadline: float) -> StampedPose | None:
            self.malformed += 1
            return super().receive(deadline)

    def slow(*_: Any) -> None:
        threading.Event().wait(0.2)

    steady = [(0.01 * k, (0.0, 0.0, 1.5)) for k in range(400)]
    monkeypatch.setattr("airworthy.bridges.loop.session._Show._frame", slow)
    result = serve_poses(LoopConfig("own", sensors=("base_depth_camera:depth",), duration=0.6), source=Noisy(steady))
    told = {note.split(":")[0]: note for note in result.notes}
    # Packets: many more than the one before the first pose; frames: 30 a second, each of which takes six periods.
    assert int(told["poses"].split()[1].replace(",", "")) > 10
    assert told["frames"].endswith("a whole period late, left out")


def test_touching_something_is_a_collision(tmp_path: Path) -> None:
    where = tum(tmp_path / "low.txt", np.arange(30) * 0.01, lambda t: (0.0, 0.0, 0.1))
    result = serve_poses(LoopConfig(f"file:{where}", sensors=("base_depth_camera:depth",), clock="lockstep"))
    assert result.collisions == 1


def test_the_command_prints_a_table(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--poses", f"file:{path}", "--sensors", "base_depth_camera:depth", "--duration", "0.3"]) == 0
    said = capsys.readouterr().out
    assert "photons to sent" in said
    assert "Waiting for poses at the file" in said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"poses": "udp", "clock": "lockstep"}, "--clock lockstep renders a file's poses"),
        ({"poses": "udp", "sensors": ()}, "No sensor is named"),
        ({"poses": "udp", "sensors": ("d4555",)}, "Unknown sensor 'd4555'"),
        ({"poses": "udp:19", "wait": 0.1}, "Could not listen for a source of poses|No pose came from udp"),
    ],
)
def test_what_cannot_be_shown_is_refused(changes: dict[str, Any], said: str, loopback: None) -> None:
    with pytest.raises(AirworthyError, match=said):
        serve_poses(LoopConfig(**changes))
