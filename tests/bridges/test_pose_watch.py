"""Aborts by a process of their own, whatever the one with the pictures does; and the instants that are kept of both."""

from __future__ import annotations

import array
import fcntl
import json
import os
import socket
import struct
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.bridges.conftest import free_port
from tests.bridges.test_pose_loop import UPRIGHT, packet, tum

from airworthy.bridges.loop.guard import Abort, PoseGuard, SafetyVolume
from airworthy.bridges.loop.latency import FRAMES_FILE, FrameTimes, LatencyRow, abort_rows, kept_times, latency_text
from airworthy.bridges.loop.pose_sources import PosesEnded, pose_source
from airworthy.bridges.loop.pose_track import PoseTrack, RoomAlignment, StampedPose
from airworthy.bridges.loop.session import LATENCY_FILE, LoopConfig, serve_poses
from airworthy.bridges.loop.watch import PassedOn, RecordPipe, WatchedPoses, WatchSettings, watch
from airworthy.bridges.wire import within
from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError
from airworthy.logs.writing.mcap_writer import McapWriter

BOX = (-1.0, -1.0, 0.0, 1.0, 1.0, 2.0)


@pytest.fixture
def watched(loopback: None) -> Iterator[tuple[WatchedPoses, Any]]:
    port = free_port()
    poses = WatchedPoses(WatchSettings(f"udp:{port}", safety=BOX))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        yield poses, lambda data: sender.sendto(data, ("127.0.0.1", port))
    poses.close()
    poses.reaped()


def read_out(poses: WatchedPoses) -> tuple[list[StampedPose], list[Abort]]:
    """Have the watch end, and return what it passed on."""
    aborts: list[Abort] = []
    found: list[StampedPose] = []
    poses.tell = aborts.append
    poses.close()
    with suppress(PosesEnded):
        while (pose := poses.receive(within(0.0))) is not None:
            found.append(pose)
    return found, aborts


def wait_for_bytes(poses: WatchedPoses, count: int) -> None:
    waiting = array.array("i", [0])
    until = within(30.0)
    while waiting[0] < count and time.monotonic() < until:
        time.sleep(0.01)
        fcntl.ioctl(poses._out.fileno(), termios.FIONREAD, waiting)


def test_aborts_are_told_while_nobody_reads_or_renders(watched: tuple[WatchedPoses, Any]) -> None:
    poses, send = watched
    before = time.monotonic()
    for k in range(3):
        send(packet(0.01 * k, (0.5 * k, 0.25, 1.0)))
    # This process does nothing about poses, as if its interpreter were rendering; the system counts what lies in the pipe.
    wait_for_bytes(poses, 3 * (5 + 72) + 5 + 16 + len("no pose has come for 50 ms"))
    looked = time.monotonic()
    found, aborts = read_out(poses)
    assert [(pose.stamp, pose.position[0]) for pose in found][:1] == [(0.0, 0.0)]
    assert found[0].position.tolist() == [0.0, 0.25, 1.0]
    assert before < found[0].received < looked
    assert "no pose has come for 50 ms" in [abort.cause for abort in aborts]
    # They were told before anybody here looked; the instants are those of one clock.
    assert all(before < abort.since <= abort.told < looked and abort.sent for abort in aborts)


def test_leaving_the_volume_is_told_by_the_watch_in_the_scenes_frame(loopback: None) -> None:
    port = free_port()
    poses = WatchedPoses(WatchSettings(f"udp:{port}", align=(10.0, 0.0, 0.0, 0.0), safety=BOX))
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"rubbish", ("127.0.0.1", port))
            sender.sendto(packet(0.0, (-9.5, 0.0, 1.0)), ("127.0.0.1", port))  # at 0.5 m in the scene
            sender.sendto(packet(1.0, (-8.75, 0.0, 1.0)), ("127.0.0.1", port))
            assert poses.receive(0.0) is not None
            assert poses.receive(0.0) is not None
            found, aborts = read_out(poses)
    finally:
        poses.close()
        poses.reaped()
    assert aborts[0].cause == "the vehicle left its safety volume at 1.25, 0.00, 1.00 m"
    assert poses.malformed == 1
    assert found == []


def test_a_watch_that_cannot_listen_says_why(loopback: None) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(AirworthyError, match=f"Could not listen for a source of poses on 127.0.0.1:{port}"):
            WatchedPoses(WatchSettings(f"udp:{port}"))
    with pytest.raises(AirworthyError, match="smaller corner first"):
        LoopConfig("udp", safety=(0, 0, 0, 1, 0, 1))


def test_a_watch_that_dies_is_an_abort_and_ends_the_session(watched: tuple[WatchedPoses, Any]) -> None:
    poses, send = watched
    told: list[Abort] = []
    with PoseGuard(poses, RoomAlignment(), PoseTrack(), None, told.append) as guard:
        send(packet(0.0))
        assert guard.first.wait(20.0)
        poses._process.kill()
        assert guard.ended.wait(20.0)
    assert guard.failure == "the process that watches poses is gone"
    last = told[-1]
    assert (last.cause, last.sent) == ("poses come no more (the process that watches poses is gone)", False)
    assert guard.aborts == told


class Steady:
    """A pose every 10 ms, so many; then none, without an end."""

    address, malformed = "a script", 0

    def __init__(self, count: int):
        self._left, self._closed = count, threading.Event()

    def receive(self, deadline: float) -> StampedPose | None:
        if self._closed.wait(min(0.01, max(deadline - time.monotonic(), 0.0))):
            raise PosesEnded
        if not self._left:
            return None
        self._left -= 1
        now = time.monotonic()
        return StampedPose(now, np.array([0.0, 0.0, 1.5]), UPRIGHT, now)

    def close(self) -> None:
        self._closed.set()


def test_what_is_said_is_what_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A vehicle that is lost while the summary is made is in it, or is not said."""
    said: list[str] = []

    def slowly(*arguments: Any) -> None:
        time.sleep(0.3)  # as long as a busy machine takes, in which poses become stale

    monkeypatch.setattr("airworthy.bridges.loop.session.write_json", slowly)
    config = LoopConfig("own", sensors=("base_lidar:range",), duration=0.2, out=tmp_path)
    source = Steady(10_000)
    result = serve_poses(config, said.append, source)
    source._left = 0
    assert len([sentence for sentence in said if sentence.startswith("Abort")]) == len(result.aborts)

    said.clear()
    lost = Steady(10)
    result = serve_poses(config, said.append, lost)
    assert len([sentence for sentence in said if sentence.startswith("Abort")]) == len(result.aborts)


class Silent(Steady):
    """No pose; an end at once, or none."""

    def __init__(self, ends: bool):
        super().__init__(0)
        self._ends = ends

    def receive(self, deadline: float) -> StampedPose | None:
        if self._ends:
            raise PosesEnded
        return super().receive(deadline)


@pytest.mark.parametrize(("ends", "wait", "said"), [(True, 600.0, "it ended"), (False, 0.1, "none within 0.1 s")])
def test_a_source_without_a_pose_is_named_with_the_reason(ends: bool, wait: float, said: str) -> None:
    config = LoopConfig("own", sensors=("base_lidar:range",), wait=wait)
    with pytest.raises(AirworthyError, match=f"No pose came from a script: {said}"):
        serve_poses(config, source=Silent(ends))


def test_what_delays_aborts_and_what_was_not_read_is_told() -> None:
    source: Any = Steady(100)
    source.first_in_line, source.left_out = False, 7
    config = LoopConfig("own", sensors=("base_lidar:range",), duration=0.1)
    notes = serve_poses(config, source=source).notes
    assert "poses: 7 were not read in time, and left out" in notes
    assert [note for note in notes if note.startswith("aborts: this system gives the process that raises them no real-time")]
    source = Steady(100)
    source.first_in_line = True
    assert not [note for note in serve_poses(config, source=source).notes if note.startswith(("aborts", "poses: 0"))]


def test_what_is_watched_is_what_was_asked_for() -> None:
    asked = LoopConfig("udp", publish="zenoh", align=(1.0, 2.0, 3.0, 90.0), safety=BOX, extrapolation=0.02).watched
    assert asked == WatchSettings("udp", "zenoh", (1.0, 2.0, 3.0, 90.0), BOX, 0.02)
    assert (asked.alignment, asked.volume) == (RoomAlignment((1.0, 2.0, 3.0), 90.0), SafetyVolume(BOX[:3], BOX[3:]))
    assert LoopConfig("udp").watched == WatchSettings("udp")
    assert WatchSettings("udp").volume is None


class Lost(Steady):
    """Ends when the abort that it is the cause of can be read in the file."""

    def __init__(self, folder: Path):
        super().__init__(20)
        self._folder, self.found, self._until = folder, list[str](), within(60.0)

    def receive(self, deadline: float) -> StampedPose | None:
        pose = super().receive(deadline)
        if pose is None and self._left == 0:
            with suppress(AirworthyError):  # nothing there yet
                self.found = [abort.cause for abort in kept_times(self._folder).aborts]
            if self.found or time.monotonic() > self._until:
                raise PosesEnded
        return pose


def test_an_abort_is_in_the_file_while_the_session_goes_on(tmp_path: Path) -> None:
    pytest.importorskip("rosbags")
    lost = Lost(tmp_path)
    serve_poses(LoopConfig("own", sensors=("base_lidar:range",), duration=120.0, out=tmp_path), source=lost)
    assert lost.found == ["no pose has come for 50 ms"]


def orders_and_records(closing_words: bytes, poses: str) -> list[tuple[str, bytes]]:
    """Run a watch in this process with an end of its orders; return its records."""
    read, write = os.pipe()
    got, put = os.pipe()
    with os.fdopen(read, "rb") as orders, os.fdopen(put, "wb", buffering=0) as out, os.fdopen(got, "rb") as records:
        with os.fdopen(write, "wb") as ours:
            ours.write(closing_words)
        watch(WatchSettings(poses), orders, out)
        out.close()
        data = records.read()
    found = []
    while data:
        kind, length = struct.unpack_from("<BI", data)
        found.append((chr(kind), data[5 : 5 + length]))
        data = data[5 + length :]
    return found


def test_a_process_of_pictures_that_is_gone_is_an_abort(loopback: None) -> None:
    ended = orders_and_records(b"end\n", f"udp:{free_port()}")
    assert [kind for kind, _ in ended] == ["r", "e"]
    killed = orders_and_records(b"", f"udp:{free_port()}")
    assert [kind for kind, _ in killed] == ["r", "a", "e"]
    assert killed[1][1][16:] == b"the process that shows pictures is gone"
    refused = orders_and_records(b"end\n", "udp:x")
    assert [kind for kind, _ in refused] == ["x"]


def test_a_second_sender_of_poses_is_told_of(loopback: None) -> None:
    class Pipe:
        def __init__(self) -> None:
            self.told: list[tuple[str, bytes]] = []

        def put(self, kind: str, content: bytes = b"") -> None:
            self.told.append((kind, content))

        def flush(self) -> None:
            pass

    port, pipe = free_port(), Pipe()
    source = PassedOn(pose_source(f"udp:{port}"), pipe)  # type: ignore[arg-type]
    with closing(source), socket.socket(type=socket.SOCK_DGRAM) as one, socket.socket(type=socket.SOCK_DGRAM) as two:
        one.sendto(packet(0.0), ("127.0.0.1", port))
        assert source.receive(within(10.0)) is not None
        two.sendto(packet(0.1), ("127.0.0.1", port))
        assert source.receive(within(0.2)) is None
    assert [item for item in pipe.told if item[0] == "o"] == [("o", struct.pack("<Q", 1))]


@pytest.mark.parametrize(
    ("poses", "people", "said"),
    [
        ("udp:9871", ("udp",), "--poses udp:9871 and --people udp listen on one UDP port, 9871"),
        (
            "file:x",
            ("a=udp:127.0.0.1:9999", "b=udp:9999"),
            "--people a=udp:127.0.0.1:9999 and --people b=udp:9999 listen on one",
        ),
    ],
)
def test_two_sources_on_one_port_are_refused(poses: str, people: tuple[str, ...], said: str) -> None:
    with pytest.raises(AirworthyError, match=said):
        LoopConfig(poses, people=people)


def test_a_reader_that_sleeps_is_not_waited_for() -> None:
    got, put = os.pipe()
    with os.fdopen(put, "wb", buffering=0) as out, os.fdopen(got, "rb", buffering=0) as reader:
        pipe = RecordPipe(out)
        for _ in range(40_000):  # of 77 bytes: 3 MB, of which a pipe holds 64 kB, and a megabyte may wait
            pipe.put("p", bytes(72))
        pipe.put("a", bytes(16) + b"stop")
        assert 20_000 < pipe.left_out < 30_000
        data = bytearray()
        while pipe._held:
            data += reader.read(1 << 20)
            pipe.flush()
        os.set_blocking(reader.fileno(), False)
        data += reader.read(1 << 20) or b""
    counts: dict[str, int] = {}
    last = b""
    while data:
        kind, length = struct.unpack_from("<BI", data)
        counts[chr(kind)] = counts.get(chr(kind), 0) + 1
        last = bytes(data[5 : 5 + length])
        del data[: 5 + length]
    assert (counts["p"] + pipe.left_out, last) == (40_000, bytes(16) + b"stop")


def test_nobody_to_read_is_no_reason_to_fail() -> None:
    got, put = os.pipe()
    os.close(got)
    with os.fdopen(put, "wb", buffering=0) as out:
        pipe = RecordPipe(out)
        pipe.put("p", bytes(72))
        pipe.drain(0.0)
        assert not pipe._held


# ---- What is kept -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Poses with a gap of 100 ms that also leave the volume, as a session kept them; with the lines of its aborts."""
    pytest.importorskip("rosbags")
    folder = tmp_path_factory.mktemp("kept")
    stamps = [t for t in np.arange(70) * 0.01 if not 0.2 < t < 0.3]
    where = tum(folder / "p.txt", stamps, lambda t: (0.0, 0.0, 1.5 if t < 0.5 else 2.5))
    said: list[str] = []
    config = LoopConfig(f"file:{where}", sensors=("base_lidar:range",), out=folder / "run", safety=(-1, -1, 1, 1, 1, 2))
    return config.out, serve_poses(config, said.append), [line for line in said if line.startswith("Abort")]


def test_instants_of_frames_and_aborts_can_be_computed_anew(session: Any, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.bridges.test_flight_log import told

    folder, result, said = session
    found = told(folder / FRAMES_FILE)  # by rosbags, with the types that the file defines
    rows = [message for _, message in found["/uav/sensors/base_lidar/frame_times"]]
    assert len(rows) == result.frames["base_lidar"] > 3
    for row, (stamp, _) in zip(rows, found["/uav/camera/base_lidar/range"], strict=True):
        assert row.header.stamp.sec * 10**9 + row.header.stamp.nanosec == stamp
        # A pose comes, is due some milliseconds later at most; work begins, ends, is sent.
        assert row.due <= row.begun <= row.rendered <= row.sent
        assert abs((row.due - row.received) - (stamp - row.pose_stamp)) < 5_000_000
    ways = {
        "pose came to photons": [row.due - row.received for row in rows],
        "age of the pose at the photons": [
            row.header.stamp.sec * 10**9 + row.header.stamp.nanosec - row.pose_stamp for row in rows
        ],
        "begun late": [row.begun - row.due for row in rows],
        "rendered": [row.rendered - row.begun for row in rows],
        "packed and sent": [row.sent - row.rendered for row in rows],
        "photons to sent": [row.sent - row.due for row in rows],
    }
    capsys.readouterr()
    assert main(["logs", "latency", str(folder), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)["latency_s"]
    kept = json.loads((folder / LATENCY_FILE).read_text())["latency_s"]
    for table in (printed, kept):
        for row in table["base_lidar"]:
            way = sorted(ways[row["name"]])
            middle = way[len(way) // 2] if len(way) % 2 else (way[len(way) // 2 - 1] + way[len(way) // 2]) / 2
            at = 0.99 * (len(way) - 1)
            high = way[int(at)] + (at - int(at)) * (way[min(int(at) + 1, len(way) - 1)] - way[int(at)])
            assert [row["median"], row["p99"], row["most"]] == pytest.approx(
                [middle / 1e9, high / 1e9, way[-1] / 1e9], abs=2e-9
            )
    assert sum(row.held for row in rows) == result.held

    stops = [message for _, message in found["/uav/abort_times"]]
    assert len(found["/uav/abort"]) == len(stops) == len(result.aborts) == len(said) >= 2
    assert [stop.cause for stop in stops] == [abort.cause for abort in result.aborts]
    assert sorted(stop.cause for stop in stops)[-1].startswith("the vehicle left its safety volume at 0.00, 0.00, 2.50 m")
    delays = [(stop.told - stop.since) / 1e9 for stop in stops]
    assert printed["aborts"][0]["most"] == pytest.approx(max(delays), abs=2e-9)
    assert kept["aborts"][0]["median"] == pytest.approx(float(np.median(delays)), abs=2e-9)


def test_the_table_of_a_kept_session_is_printed(session: Any, capsys: pytest.CaptureFixture[str]) -> None:
    folder, result, _ = session
    assert main(["logs", "latency", str(folder / FRAMES_FILE)]) == 0
    said = capsys.readouterr().out
    assert f"base_lidar: {result.frames['base_lidar']} frames, {result.held} held." in said
    assert f"{len(result.aborts)} aborts." in said
    assert all(name in said for name in ("photons to sent", "abort told"))


def test_a_file_that_was_cut_tells_what_is_left(session: Any, tmp_path: Path) -> None:
    data = (session[0] / FRAMES_FILE).read_bytes()
    whole = kept_times(session[0])
    assert whole.notes == ()
    (tmp_path / FRAMES_FILE).write_bytes(data[: len(data) * 3 // 4])
    left = kept_times(tmp_path)
    count = len(left.frames["base_lidar"])
    assert 0 < count < len(whole.frames["base_lidar"])
    assert left.frames["base_lidar"] == whole.frames["base_lidar"][:count]
    assert any("bytes from byte" in note for note in left.notes)


def test_messages_that_are_cut_are_counted(tmp_path: Path) -> None:
    pytest.importorskip("rosbags")
    from airworthy.bridges.ros.types import ABORT_TIMES, ros_types

    whole = ros_types().packed(ABORT_TIMES, {"cause": "so", "since": 1_000_000_000, "told": 1_500_000_000})
    writer = McapWriter(None, ros_types().definition)
    for data in (whole, whole[:-3], b"", whole):
        writer.message("/uav/abort_times", ABORT_TIMES, 0, data)
    (tmp_path / FRAMES_FILE).write_bytes(writer.closed())
    kept = kept_times(tmp_path)
    assert kept.aborts == [Abort("so", 1.0, 1.5, True)] * 2
    assert kept.notes == ("2 messages are damaged, and were left out.",)


@pytest.mark.parametrize(
    ("data", "said"), [(b"", "cannot be read"), (b"PNG", "is no MCAP file"), (None, "cannot be read: No such file")]
)
def test_files_without_instants_are_refused(
    tmp_path: Path, data: bytes | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if data is not None:
        (tmp_path / FRAMES_FILE).write_bytes(data)
    assert main(["logs", "latency", str(tmp_path / FRAMES_FILE)]) == 2
    assert said in capsys.readouterr().err


def test_frames_in_lockstep_have_no_instants(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rosbags")
    where = tum(tmp_path / "p.txt", np.arange(30) * 0.01, lambda t: (0.0, 0.0, 1.5))
    serve_poses(LoopConfig(f"file:{where}", sensors=("base_lidar:range",), clock="lockstep", out=tmp_path / "run"))
    assert main(["logs", "latency", str(tmp_path / "run")]) == 2
    assert "holds no instants of frames" in capsys.readouterr().err


def test_tables_are_in_milliseconds() -> None:
    head, line = latency_text([LatencyRow("rendered", 0.012345, 0.5, 2.0)])
    assert head.split() == ["median", "p99", "most", "[ms]"]
    assert line.split() == ["rendered", "12.35", "500.00", "2000.00"]
    assert latency_text([]) == []


def test_delays_of_aborts_have_a_row() -> None:
    (row,) = abort_rows([Abort("a", 1.0, 1.002), Abort("b", 2.0, 2.004), Abort("c", 3.0, 2.9)])
    assert (row.median, row.most) == (pytest.approx(0.002), pytest.approx(0.004))  # what was told before it was so: at once
    assert abort_rows([]) == []
    assert not FrameTimes(0.0, 0.0, 0.0, 0.0, 0.0).held
