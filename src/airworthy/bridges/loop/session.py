"""Vehicle in the loop: the real one is tracked, and its cameras are shown this scene (spec/flightgoggles 5, spec/connect 9)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from airworthy.bridges.clock import Thinned
from airworthy.bridges.loop.guard import Abort, PoseGuard
from airworthy.bridges.loop.latency import (
    FRAMES_FILE,
    FrameTimes,
    LatencyRow,
    abort_message,
    abort_rows,
    latency_rows,
    times_message,
)
from airworthy.bridges.loop.pose_sources import PORT as POSES_PORT
from airworthy.bridges.loop.pose_sources import PoseSource, logged_poses
from airworthy.bridges.loop.pose_track import PoseLimits, PoseTrack, StampedPose, TrackedPose
from airworthy.bridges.loop.watch import WatchedPoses, WatchSettings, abort_bus
from airworthy.bridges.people.crowd import Crowd
from airworthy.bridges.people.sources import people_ports
from airworthy.bridges.ros import messages
from airworthy.bridges.ros.messages import PREFIX, RosMessage
from airworthy.bridges.ros.topics import TopicSender
from airworthy.bridges.ros.types import ros_types
from airworthy.bridges.sensor_words import sensor_of
from airworthy.bridges.sockets import refuse_shared_ports
from airworthy.core.errors import AirworthyError
from airworthy.core.files import write_json
from airworthy.core.schema import Bound, check_fields
from airworthy.geometry.distance import clearance
from airworthy.logs.clocks.clock import NS
from airworthy.logs.writing.mcap_writer import McapWriter
from airworthy.scenes import SceneBatch, scene
from airworthy.sensors.build import make_sensor
from airworthy.sensors.devices import Device
from airworthy.sensors.mounting import mounted_pose
from airworthy.sensors.sampling import SensorView
from airworthy.simulation.sensor_state import Sample

__all__ = ["FRAMES_FILE", "LATENCY_FILE", "LoopConfig", "LoopResult", "serve_poses"]

LATENCY_FILE = "latency.json"
_FLUSHED = 1.0
"""Longest time of frames that a kill loses [s]; what led to an abort it does not lose."""
_FILE = "file:"


@dataclass(frozen=True)
class LoopConfig:
    """What is shown to a vehicle that is tracked elsewhere."""

    poses: str
    """Where its poses come from: udp[:PORT], ros2:/TOPIC, zenoh:/TOPIC (geometry_msgs/PoseStamped), lcm[:CHANNEL] (pose_t), or
    file:PATH, a log that is replayed at its own pace."""
    scene: str = "hall"
    """What its cameras see: a scene's name or file."""
    sensors: tuple[str, ...] = ("d455_depth",)
    """What it carries: DEVICE, NAME=DEVICE or NAME=DEVICE:CHANNEL,CHANNEL (`airworthy sensors` lists devices, one's own are
    FILE.toml:NAME)."""
    publish: Literal["none", "ros2", "zenoh"] = "none"
    """Where pictures go: topics of ROS 2 (docs/howto/ros2.md), over DDS or zenoh."""
    out: Path | None = None
    """Folder for frames.mcap, the same messages with the instants of every frame and abort, and latency.json."""
    align: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    """Where the room's origin lies in the scene, x, y, z [m], and how far the room is turned to the left [deg]."""
    safety: tuple[float, float, float, float, float, float] | None = None
    """Smaller and larger corner of the box that the vehicle may be in, in the scene [m]; outside, /uav/abort is raised."""
    people: tuple[str, ...] = ()
    """Who is tracked besides, [NAME=]SOURCE: udp[:PORT], lcm[:CHANNEL], ros2:/TOPIC, zenoh:/TOPIC, or file:PATH, recorded."""
    person_height: Annotated[float, Bound(0.5, 2.5, "m")] = 1.75
    """Of their bodies [m]."""
    radius: Annotated[float, Bound(0.0, 100.0, "m")] = 0.3
    """Of the sphere about the pose that is taken for the vehicle: where it touches the scene, /uav/collision is raised [m]."""
    extrapolation: Annotated[float, Bound(0.0, 1.0, "s")] = 0.05
    """Longest time that a pose is moved on by its speed; from then on it is held, and /uav/abort raised [s]."""
    clock: Literal["real", "lockstep"] = "real"
    """"real": frames when they are due; "lockstep": each frame of a file at exactly its instant, as fast as it goes."""
    duration: Annotated[float, Bound(0.01, 86400.0, "s")] = 600.0
    """Most of it [s]."""
    wait: Annotated[float, Bound(0.01, 3600.0, "s")] = 60.0
    """How long to wait for the first pose [s]."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.clock == "lockstep" and not self.poses.startswith(_FILE):
            raise AirworthyError("--clock lockstep renders a file's poses: give --poses file:PATH, or --clock real.")
        if not self.sensors:
            raise AirworthyError("No sensor is named; `airworthy sensors` lists them.")
        refuse_shared_ports({f"--poses {self.poses}": (self.poses, POSES_PORT)} | people_ports(self.people))
        _ = (self.watched.alignment, self.watched.volume)  # refuse what is none

    @property
    def watched(self) -> WatchSettings:
        """Return what the process that watches poses needs of it."""
        return WatchSettings(self.poses, self.publish, self.align, self.safety, self.extrapolation)


@dataclass(frozen=True)
class LoopResult:
    """What a session did."""

    frames: dict[str, int]
    """By sensor."""
    latency: dict[str, list[LatencyRow]]
    """The same; empty in lockstep, where nothing is due."""
    held: int
    """Frames whose pose was held."""
    aborts: tuple[Abort, ...]
    """All that were told, by the one list that they are printed from."""
    collisions: int
    track: PoseTrack
    notes: tuple[str, ...]
    abort_latency: list[LatencyRow]
    """How long it took to tell them; empty where there were none."""
    interrupted: bool = False
    """Somebody stopped it."""


def serve_poses(
    config: LoopConfig, say: Callable[[str], None] = lambda sentence: None, source: PoseSource | None = None
) -> LoopResult:
    """Render what a tracked vehicle's cameras see until its poses end, time is over, or somebody stops it.

    Poses are taken in, and aborts raised, by a process of its own, which no picture delays.

    Args:
        config: What is shown.
        say: Is given a sentence when it waits, at each abort, and at the first contact of a row.
        source: Of poses, in place of `config.poses`: an object of this process, which is watched by a thread of it, so that
            whatever else computes here delays aborts.

    Raises:
        AirworthyError: Scene, sensors or source cannot be had, or no pose came in time.
    """
    devices = dict(sensor_of(word) for word in config.sensors)
    with ExitStack() as stack:
        crowd = Crowd(config.people, config.person_height, config.clock == "real", say)
        stack.callback(crowd.close)
        show = _Show(config, devices, SceneBatch([crowd.added(scene(config.scene))], 1), crowd, say)
        stack.callback(show.close)
        if config.clock == "lockstep":
            return show.replayed(list(logged_poses(config.poses.removeprefix(_FILE))))
        if source is None:
            source = WatchedPoses(config.watched)
            stack.callback(source.reaped)
        stack.callback(source.close)
        say(f"Waiting for poses at {source.address}. Ctrl-C ends it.")
        for address in crowd.addresses:
            say(f"Waiting for {address}.")
        guard = stack.enter_context(PoseGuard(source, show.align, show.track, show.volume, show.abort))
        deadline = time.monotonic() + config.wait
        while not guard.first.wait(0.05):
            if guard.ended.is_set() or time.monotonic() > deadline:
                why = guard.failure or ("it ended" if guard.ended.is_set() else f"none within {config.wait:g} s")
                odd = f"; {_NO_POSES.format(source.malformed).removeprefix('poses: ')}" if source.malformed else ""
                raise AirworthyError(f"No pose came from {source.address}: {why.rstrip('.')}{odd}.")
        return show.live(guard, source)


class _Show:
    """The scene, the cameras, and where pictures go."""

    def __init__(
        self,
        config: LoopConfig,
        devices: dict[str, Device],
        batch: SceneBatch,
        crowd: Crowd,
        say: Callable[[str], None],
    ):
        self._crowd, self._acts = crowd, bool(batch.scenes[0].actors)
        self._config, self._devices, self._batch, self._say = config, devices, batch, say
        self._sensors = {name: make_sensor(item, name) for name, item in devices.items()}
        self.align, self.volume = config.watched.alignment, config.watched.volume
        self.track = PoseTrack(PoseLimits(extrapolation=config.extrapolation))
        # Of aborts those alone that nobody else has sent; known to subscribers before there is one.
        self._bus, self._send_abort = abort_bus(config.publish)
        self._sender = None if self._bus is None else TopicSender(self._bus, reliable=False)
        self._file: Any = None
        if config.out is not None:
            config.out.mkdir(parents=True, exist_ok=True)
            self._file = open(config.out / FRAMES_FILE, "wb")  # noqa: SIM115 - closed by `close`
            self._writer = McapWriter(self._file, ros_types().definition)
        self._count = dict.fromkeys(devices, 0)
        self._times: dict[str, Thinned[FrameTimes]] = {name: Thinned() for name in devices}
        self._aborts_kept, self._flushed = 0, 0.0
        self._touching, self._interrupted, self._collisions, self._held = False, False, 0, 0
        self._send(messages.static_frames(devices), 0.0)
        for name in devices:  # whatever is compiled and loaded at the first picture is so now
            self._pictures(name, TrackedPose(np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]), 0.0, False, 0.0), 0.0)

    def abort(self, abort: Abort) -> None:
        """Raise /uav/abort where it is not yet, and say it; called from the thread that takes poses."""
        if not abort.sent:
            self._send_abort()
        self._say(f"Abort: {abort.cause} (told after {1e3 * abort.after:.1f} ms).")

    def live(self, guard: PoseGuard, source: PoseSource) -> LoopResult:
        """Show frames when they are due."""
        left_out = 0
        begin = time.monotonic()
        end = begin + self._config.duration
        try:
            for name, index, offset in self._schedule():
                due = begin + offset
                while time.monotonic() < due and not guard.ended.is_set():
                    time.sleep(max(min(due - time.monotonic(), 0.02), 0.0))
                if due > end or guard.ended.is_set():
                    break
                if time.monotonic() > due + 1.0 / self._devices[name].rate and index:
                    left_out += 1  # a frame that is a whole period late: the next one is newer
                    continue
                begun = time.monotonic()
                self._move(offset)
                pose = guard.at(due)
                assert pose is not None
                stamp = due - guard.offset
                times = FrameTimes(pose.received, due, begun, 0.0, 0.0, pose.stamp, pose.held, stamp)
                self._frame(name, pose, stamp, times)
                self._keep_aborts(guard)
        except KeyboardInterrupt:
            self._interrupted = True
        # From here on none is told any more: what is counted is what was said.
        guard.stop()
        self._keep_aborts(guard)
        odd = {
            _NO_POSES: source.malformed,
            "frames: {:,} a whole period late, left out": left_out,
            "poses: {:,} packets or more of another sender than the first, which alone is listened to": getattr(
                source, "others", 0
            ),
            "poses: {:,} were not read in time, and left out": getattr(source, "left_out", 0),
        }
        notes = [words.format(count) for words, count in odd.items() if count]
        if getattr(source, "first_in_line", None) is False:
            notes.append(_NO_PRIORITY)
        return self._result([*notes, *([f"poses: {guard.failure}"] if guard.failure else [])], guard.aborts)

    def _keep_aborts(self, guard: PoseGuard) -> None:
        """Write those that came since the last time; here, since the file is not the thread's that is told them."""
        new, offset = guard.aborts[self._aborts_kept :], guard.offset
        for abort in new:
            stamp = max(abort.since - offset, 0.0)
            self._keep(RosMessage(f"{PREFIX}/abort", "std_msgs/msg/Empty", {}), stamp)
            self._keep(abort_message(stamp, abort), stamp)
        self._aborts_kept += len(new)
        now = time.monotonic()
        if self._file is not None and (new or now > self._flushed + _FLUSHED):
            self._writer.flush()
            self._flushed = now

    def replayed(self, poses: list[StampedPose]) -> LoopResult:
        """Show every frame of a file at its instant."""
        if not poses:
            raise AirworthyError(f"{self._config.poses!r} holds no pose.")
        first, last = poses[0].stamp, min(poses[-1].stamp, poses[0].stamp + self._config.duration)
        fed = 0
        for name, _, offset in self._schedule():
            now = first + offset
            if now > last + 1e-9:
                break
            # One pose beyond the instant, so that it lies between two.
            while fed < len(poses) and (fed == 0 or poses[fed - 1].stamp < now):
                item = poses[fed]
                self.track.add(self.align.placed(StampedPose(item.stamp, item.position, item.attitude, item.stamp)))
                fed += 1
            pose = self.track.at(now)
            assert pose is not None
            self._move(offset)
            self._frame(name, pose, now, None)
        return self._result([], [])

    def _schedule(self) -> Iterator[tuple[str, int, float]]:
        """Yield sensors, numbers of their frames and the times at which they are due, for ever."""
        index = dict.fromkeys(self._devices, 0)
        while True:
            name = min(index, key=lambda key: index[key] / self._devices[key].rate)
            yield name, index[name], index[name] / self._devices[name].rate
            index[name] += 1

    def _move(self, since: float) -> None:
        """Put actors and people where they are, so long since the beginning [s]."""
        if self._acts:
            self._batch.advance(since)
            self._crowd.update(self._batch)

    def _frame(self, name: str, pose: TrackedPose, stamp: float, times: FrameTimes | None) -> None:
        pictures = self._pictures(name, pose, stamp)
        rendered = time.monotonic()
        self._send(messages.transform_message(stamp, pose.position, pose.attitude), stamp)
        for message in pictures:
            self._send(message, stamp)
        sent = time.monotonic()
        self._count[name] += 1
        self._held += pose.held
        if times is not None:
            times = replace(times, rendered=rendered, sent=sent)
            self._times[name].add(times)
            self._send(times_message(name, stamp, times), stamp)
        self._touch(pose, stamp)

    def _pictures(self, name: str, pose: TrackedPose, stamp: float) -> list[RosMessage]:
        item = self._devices[name]
        mount = item.effective_mount
        place, turn = mounted_pose(pose.position[None], pose.attitude[None], mount.position, mount.attitude)
        data = dict(self._sensors[name].capture(self._batch, SensorView(place, turn, np.zeros(1, np.int32)), item.channels))
        number = np.array([self._count[name]])
        sample = Sample(np.array([stamp]), number, number, np.ones(1, bool), place, turn, data)
        return list(messages.sensor_messages(name, item, sample, beacons=self._batch.scenes[0].beacons))

    def _touch(self, pose: TrackedPose, stamp: float) -> None:
        near = clearance(self._batch.geometry, pose.position[None], max_distance=2.0 * self._config.radius + 1e-3).distance[0]
        touches = bool(near < self._config.radius)
        if touches and not self._touching:
            self._collisions += 1
            self._send(messages.collision_message(), stamp)
            self._say(f"Collision at {stamp:.3f} s.")
        self._touching = touches

    def _send(self, message: RosMessage, stamp: float) -> None:
        if self._sender is not None:
            self._sender.send(message)
        self._keep(message, stamp)

    def _keep(self, message: RosMessage, stamp: float) -> None:
        if self._file is not None:
            data = ros_types().packed(message.kind, message.values)
            self._writer.message(message.topic, message.kind, max(round(stamp * NS), 0), data)

    def close(self) -> None:
        """End file and topics; may be called again."""
        if self._file is not None and not self._file.closed:
            self._writer.closed()
            self._file.close()
        if self._bus is not None:
            self._bus.close()

    def _result(self, notes: list[str], aborts: list[Abort]) -> LoopResult:
        t = self.track
        odd = {"jumps left out": t.jumps, "of them turned markers": t.flips, "out of order": t.late, "gaps": t.dropouts,
               "times after which the source's clock began anew": t.restarts}  # fmt: skip
        notes += [f"poses: {count:,} {what}" for what, count in odd.items() if count]
        notes += self._crowd.notes()
        latency = {name: latency_rows(times.kept) for name, times in self._times.items()}
        told = (dict(self._count), latency, self._held, tuple(aborts), self._collisions, t, tuple(notes))
        result = LoopResult(*told, abort_rows(aborts), self._interrupted)
        if self._config.out is not None:
            write_json(self._config.out / LATENCY_FILE, _told(result))
        return result


_NO_POSES = "poses: {:,} packets that were none (numbers and lengths are checked; stamps are seconds, positions metres)"
_OTHER_SENDERS = "poses: {:,} packets or more of another sender than the first, which alone is listened to"
_NO_PRIORITY = (
    "aborts: this system gives the process that raises them no real-time priority (limit rtprio), so that others may delay them"
)


def _told(result: LoopResult) -> dict[str, Any]:
    rows = {name: [vars(row) for row in rows] for name, rows in result.latency.items()}
    aborts = [{"cause": abort.cause, "after_s": abort.after} for abort in result.aborts]
    rows |= {"aborts": [vars(row) for row in result.abort_latency]} if result.abort_latency else {}
    return {"frames": result.frames, "latency_s": rows, "held": result.held, "aborts": aborts, "collisions": result.collisions,
            "clock_offset_s": result.track.clock.value if result.track.clock.value < inf else None,
            "notes": list(result.notes)}  # fmt: skip
