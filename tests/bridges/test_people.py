"""People by streams and recordings: where capsules are, who sees and meets them, and what is told of a stream."""

from __future__ import annotations

import socket
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from tests.bridges.conftest import free_port
from tests.bridges.test_hostile import GROWTH, hostile, many
from tests.bridges.test_lcm import link, multicast  # noqa: F401 - fixtures
from tests.bridges.test_pose_loop import tum

from airworthy.bridges.lcm.link import LcmLink
from airworthy.bridges.lcm.types import lcm_types
from airworthy.bridges.loop.session import LoopConfig, serve_poses
from airworthy.bridges.people.crowd import STALE, Crowd
from airworthy.bridges.people.skeletons import local_turns, packed_skeleton, skeleton_frame, unpacked_skeleton
from airworthy.bridges.people.sources import LcmSkeletons, markers_frame, skeleton_source
from airworthy.bridges.topic_server import TopicServeConfig, serve_topics
from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError, AssetError, AssetWarning
from airworthy.core.files import sha256_file
from airworthy.geometry import Sphere, cast
from airworthy.geometry.distance import clearance
from airworthy.scenes import Instance, Scene, SceneBatch, add_actor, read_scene, write_scene
from airworthy.scenes.files.skeleton_recording import (
    SkeletonRecording,
    read_skeletons,
    recorded_person,
    write_skeletons,
)
from airworthy.scenes.people import PERSON_JOINTS
from airworthy.sensors.devices import device

UPRIGHT = np.tile([0.0, 0.0, 0.0, 1.0], (15, 1))
HEIGHT = 1.75
PELVIS = 0.53 * HEIGHT
"""Of an upright person (Drillis and Contini)."""


def standing(x: float = 3.0, y: float = 0.0) -> np.ndarray:
    return np.array([x, y, PELVIS])


def arm_out() -> np.ndarray:
    """The left arm straight out to the left: a quarter turn about x."""
    turns = UPRIGHT.copy()
    turns[PERSON_JOINTS.index("upper_arm_left")] = Rotation.from_euler("X", 90, degrees=True).as_quat()
    return turns


def recording(count: int = 60, rate: float = 120.0) -> SkeletonRecording:
    """One who glides to the left at 1 m/s, lifting an arm."""
    t = np.arange(count) / rate
    place = np.stack([0 * t + 3.0, t, 0 * t + PELVIS], 1)
    turns = np.tile(UPRIGHT, (count, 1, 1))
    turns[:, PERSON_JOINTS.index("upper_arm_left")] = Rotation.from_euler(
        "X", (90 * t / t[-1])[:, None], degrees=True
    ).as_quat()
    return SkeletonRecording(t, place, turns)


def hand_of(batch: SceneBatch) -> np.ndarray:
    """Middle of the left hand's capsule, as the batch has it."""
    names = batch.dynamic_names(0)
    return np.asarray(batch.dynamic_poses[0][0, next(k for k, name in enumerate(names) if name.endswith("/hand_left"))])


# By hand: shoulder 0.125 h to the left and 0.06 + 0.215 h above the pelvis, then 0.186 + 0.146 + 0.0475 h along the arm.
SHOULDER = np.array([0.0, 0.125, 0.275]) * HEIGHT
ARM = (0.186 + 0.146 + 0.0475) * HEIGHT


# ---- Recordings -----------------------------------------------------------------------------------------------------------


def test_a_recording_puts_limbs_where_its_turns_say() -> None:
    batch = SceneBatch(alone(recorded_person("walker", recording())))
    for when, hand in ((0.0, [0.0, 0.0, -ARM]), (59 / 120, [0.0, ARM, 0.0]), (500.0, [0.0, ARM, 0.0])):
        batch.advance(when)
        along = min(when, 59 / 120)
        # float32 of the tracks.
        np.testing.assert_allclose(hand_of(batch), standing(3.0, along) + SHOULDER + hand, atol=2e-6)


def field(folder: Path) -> str:
    """A scene with a stone far away, and no start: vehicles stand at the origin."""
    write_scene(Scene("field", {"stone": Sphere(0.5)}, instances=(Instance("stone", (30.0, 0.0, 0.0)),)), folder / "field")
    return str(folder / "field")


def alone(kit: Any) -> Scene:
    return add_actor(Scene("empty"), kit)


def test_a_recording_comes_back_from_its_file(tmp_path: Path) -> None:
    made = recording()
    back = read_skeletons(write_skeletons(tmp_path / "walk.csv", made))
    np.testing.assert_array_equal(back.time, made.time)
    np.testing.assert_array_equal(back.position, made.position)
    np.testing.assert_allclose(back.turns, made.turns, atol=1e-15)
    assert back.notes == ()


def test_rows_that_are_no_poses_are_left_out_and_told(tmp_path: Path) -> None:
    lines = write_skeletons(tmp_path / "a.csv", recording(6)).read_text().splitlines()
    rows = [line.split(",") for line in lines]
    rows[2][1], rows[3][7] = "nan", "0.5"  # a place that is none, a quaternion that is too long
    rows[5][0] = "0.0"
    (tmp_path / "a.csv").write_text("\n".join(",".join([*row, "1"]) for row in [[*rows[0][:-1], rows[0][-1]], *rows[1:]]))
    (tmp_path / "a.csv").write_text((tmp_path / "a.csv").read_text().replace("w,1\n", "w,tail_x\n", 1))
    found = read_skeletons(tmp_path / "a.csv")
    assert len(found.time) == 3
    assert "2 of 6 rows are no poses of a skeleton" in found.notes[0]
    assert "1 rows do not come after the one before" in found.notes[1]
    assert "1 columns are of no joint here (tail_x)" in found.notes[2]


def test_a_file_without_a_joint_is_refused(tmp_path: Path) -> None:
    text = write_skeletons(tmp_path / "a.csv", recording(3)).read_text()
    (tmp_path / "a.csv").write_text(text.replace("head_", "hat_"))
    with pytest.raises(AssetError, match=r"lacks 4 columns \(head_x, head_y, head_z, ...\): it has 14 of 15 joints"):
        read_skeletons(tmp_path / "a.csv")


def test_a_scene_file_has_a_recorded_person(tmp_path: Path) -> None:
    write_skeletons(tmp_path / "walk.csv", recording())
    text = (
        'version = 1\nname = "yard"\n[[actors]]\nname = "walker"\nposition = [1.0, 0.0, 0.0]\n'
        'person = { height = 1.75, recording = "walk.csv" }\n'
    )
    (tmp_path / "scene.toml").write_text(text)
    batch = SceneBatch(read_scene(tmp_path / "scene.toml"))
    batch.advance(1.0)
    np.testing.assert_allclose(hand_of(batch), standing(4.0, 59 / 120) + SHOULDER + [0, ARM, 0], atol=2e-6)
    # Written without loss, and read back.
    write_scene(read_scene(tmp_path / "scene.toml"), tmp_path / "again")
    other = SceneBatch(read_scene(tmp_path / "again"))
    other.advance(1.0)
    np.testing.assert_array_equal(other.dynamic_poses[0], batch.dynamic_poses[0])
    (tmp_path / "scene.toml").write_text(text + 'animation = "walking"\n')
    with pytest.raises(AssetError, match="has a recording, which moves it, and other motion besides"):
        read_scene(tmp_path / "scene.toml")
    (tmp_path / "walk.csv").write_text((tmp_path / "walk.csv").read_text() + "1,2,3\n")
    (tmp_path / "scene.toml").write_text(text)
    with pytest.warns(AssetWarning, match="1 lines have another number of columns"):
        read_scene(tmp_path / "scene.toml")


# ---- One pose -------------------------------------------------------------------------------------------------------------


def test_datagrams_and_their_faults() -> None:
    back = unpacked_skeleton(packed_skeleton(7.5, standing(), arm_out()))
    assert back.stamp == 7.5
    np.testing.assert_array_equal(back.position, standing())
    np.testing.assert_allclose(back.turns, arm_out(), atol=1e-15)
    assert len(packed_skeleton(0, standing(), UPRIGHT)) == 512
    for data, said in (
        (b"", "0 bytes; expected 512"),
        (packed_skeleton(0.0, standing(), UPRIGHT)[:-32], "14 joints; expected 15"),
        (packed_skeleton(float("nan"), standing(), UPRIGHT), "a number that is none"),
        (packed_skeleton(0.0, np.full(3, np.inf), UPRIGHT), "a number that is none"),
        (packed_skeleton(0.0, standing(), UPRIGHT * 1e300), "not length 1"),
        (packed_skeleton(0.0, standing(), 0.0 * UPRIGHT), "not length 1"),
    ):
        with pytest.raises(ValueError, match=said):
            unpacked_skeleton(data)


def test_attitudes_in_the_world_become_turns_in_parents() -> None:
    turns = Rotation.random(15, random_state=1).as_quat()
    # Down the tree by hand, with SciPy's own product.
    above = {"torso": "pelvis", "head": "torso", "upper_leg": "pelvis", "lower_leg": "upper_leg", "foot": "lower_leg",
             "upper_arm": "torso", "lower_arm": "upper_arm", "hand": "lower_arm"}  # fmt: skip
    world: dict[str, Rotation] = {}
    for name, turn in zip(PERSON_JOINTS, turns, strict=True):
        kind, _, _ = name.partition("_left") if "_left" in name else name.partition("_right")
        parent = above.get(kind)
        full = parent if parent in (None, "pelvis", "torso") else f"{parent}{'_left' if '_left' in name else '_right'}"
        world[name] = Rotation.from_quat(turn) if full is None else world[full] * Rotation.from_quat(turn)
    found = local_turns(np.stack([world[name].as_quat() for name in PERSON_JOINTS]))
    assert (Rotation.from_quat(found).inv() * Rotation.from_quat(turns)).magnitude().max() < 1e-9


def test_markers_of_ros_are_a_skeleton() -> None:
    pytest.importorskip("rosbags")
    from airworthy.bridges.ros.types import ros_types

    def marker(name: str, number: int) -> dict[str, Any]:
        return {"header": {"stamp": {"sec": 5, "nanosec": 250_000_000}}, "ns": name, "id": number,
                "pose": {"position": {"x": 3.0, "z": PELVIS}, "orientation": {"w": 1.0}}}  # fmt: skip

    kind = "visualization_msgs/msg/MarkerArray"
    for named in (True, False):
        sent = [marker(name if named else "", k) for k, name in enumerate(PERSON_JOINTS)]
        data = ros_types().packed(kind, {"markers": [*sent, marker("hat", 3)]})
        frame = markers_frame(ros_types().unpacked(kind, data).markers)
        assert frame.stamp == 5.25
        np.testing.assert_array_equal(frame.position, standing())
        np.testing.assert_allclose(frame.turns, UPRIGHT, atol=1e-15)
    with pytest.raises(ValueError, match="14 joints; expected 15"):
        markers_frame(ros_types().unpacked(kind, ros_types().packed(kind, {"markers": sent[1:]})).markers)


# ---- Streams --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def tracker(loopback: None) -> Iterator[tuple[int, Callable[[bytes], None]]]:
    port = free_port()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        yield port, lambda data: [sender.sendto(data, ("127.0.0.1", port)), time.sleep(0.002)][1]


def test_a_stream_moves_a_person_and_its_faults_are_told(tracker: Any) -> None:
    port, send = tracker
    said: list[str] = []
    with closing(Crowd([f"anna=udp:{port}"], HEIGHT, say=said.append)) as crowd:
        batch = SceneBatch(crowd.added(Scene("empty")))
        assert hand_of(batch)[2] < -1000.0  # nobody is there before the first pose
        send(packed_skeleton(1.0, standing(), arm_out()))
        crowd.update(batch, 10.0)
        np.testing.assert_allclose(hand_of(batch), standing() + SHOULDER + [0.0, ARM, 0.0], atol=2e-6)
        for data in (
            packed_skeleton(1.1, standing(1.0), UPRIGHT)[:-32],
            packed_skeleton(1.1, standing(np.nan), UPRIGHT),
            packed_skeleton(0.9, standing(2.0), UPRIGHT),
        ):
            send(data)
        crowd.update(batch, 9.99 + STALE)
        assert said == ["anna: a skeleton of 14 joints; expected 15 (pelvis, torso, head, ...) is left out."]
        crowd.update(batch, 10.01 + STALE)
        assert said[1:] == ["anna: no pose has come for 50 ms, and the last one is held."]
        np.testing.assert_allclose(hand_of(batch), standing() + SHOULDER + [0.0, ARM, 0.0], atol=2e-6)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:  # the first sender is the source
            other.sendto(packed_skeleton(2.0, standing(9.0), UPRIGHT), ("127.0.0.1", port))
        send(packed_skeleton(1.2, standing(4.0), UPRIGHT))
        crowd.update(batch, 11.0)
        np.testing.assert_allclose(hand_of(batch), standing(4.0) + SHOULDER - [0.0, 0.0, ARM], atol=2e-6)
        send(packed_skeleton(0.1, standing(5.0), UPRIGHT))  # the tracker began anew
        crowd.update(batch, 11.01)
        assert hand_of(batch)[0] == pytest.approx(5.0, abs=1e-6)
        assert crowd.notes() == [
            "anna: 3 poses taken", "anna: 1 skeletons of other than 15 joints, left out",
            "anna: 1 messages that were no poses (numbers and lengths are checked; stamps are seconds, places metres)",
            "anna: 1 poses out of order, left out", "anna: 1 times the tracker's clock began anew",
            "anna: 1 gaps of over 50 ms, in which the last pose was held",
        ]  # fmt: skip


NOWHERE: list[tuple[float, Any, Any]] = [
    (1e300, (3.0, 0.0, PELVIS), UPRIGHT),
    (-1e300, (3.0, 0.0, PELVIS), UPRIGHT),
    (1.7e18, (3.0, 0.0, PELVIS), UPRIGHT),  # nanoseconds of a date
    (1.7e15, (3.0, 0.0, PELVIS), UPRIGHT),  # microseconds
    (np.nan, (3.0, 0.0, PELVIS), UPRIGHT),
    (np.inf, (3.0, 0.0, PELVIS), UPRIGHT),
    (1.0, (1e300, 0.0, PELVIS), UPRIGHT),
    (1.0, (0.0, -1e300, PELVIS), UPRIGHT),
    (1.0, (0.0, 0.0, 1.1e6), UPRIGHT),
    (1.0, (np.inf, 0.0, PELVIS), UPRIGHT),
    (1.0, (np.nan, 0.0, PELVIS), UPRIGHT),
    (1.0, (3.0, 0.0, PELVIS), UPRIGHT * 1e300),
    (1.0, (3.0, 0.0, PELVIS), UPRIGHT * np.nan),
    (1.0, (3.0, 0.0, PELVIS), np.concatenate([UPRIGHT[:14], [[np.inf, 0.0, 0.0, 1.0]]])),
]


def test_poses_of_nowhere_and_never_are_refused_and_counted(tracker: Any) -> None:
    port, send = tracker
    with closing(Crowd([f"anna=udp:{port}"], HEIGHT)) as crowd:
        batch = SceneBatch(crowd.added(Scene("empty")))
        for _ in range(2):  # before the first pose, and behind it
            for stamp, place, turns in NOWHERE:
                send(packed_skeleton(stamp, place, turns))
            send(packed_skeleton(2.0, standing(1.0), UPRIGHT))
            crowd.update(batch, 10.0)
        assert hand_of(batch)[0] == pytest.approx(1.0, abs=1e-6)
        assert np.isfinite(batch.dynamic_poses[0]).all()
        notes = crowd.notes()
    assert notes[0] == "anna: 1 poses taken"
    assert f"anna: {2 * len(NOWHERE)} messages that were no poses" in notes[1]
    # A clock that none of these set: the next pose is no restart, and no disorder.
    assert notes[2:] == ["anna: 1 poses out of order, left out"]


def test_poses_of_nowhere_are_refused_whatever_brings_them(tmp_path: Path) -> None:
    kind = lcm_types()["skeleton_t"]
    source = object.__new__(LcmSkeletons)
    source._type = kind
    for stamp, place, turns in NOWHERE:
        with pytest.raises(ValueError, match=r"none|length 1"):
            skeleton_frame(stamp, place, turns)
        if np.isfinite(stamp) and abs(stamp) < 9e12:  # utime holds 64 bits
            data = kind.packed({"utime": int(stamp * 1e6), "position": place, "count": 15, "rotation": turns})
            with pytest.raises(ValueError, match=r"none|length 1"):
                source._read(data)
    with pytest.raises(ValueError, match="a stamp that is none of seconds"):  # nanoseconds where there should be microseconds
        source._read(
            kind.packed({"utime": 1_700_000_000_000_000_000, "position": standing(), "count": 15, "rotation": UPRIGHT})
        )
    good = recording(20)
    far = good.position.copy()
    far[3] = (1e300, 0.0, 0.0)
    far[5, 1] = -1.1e6
    path = write_skeletons(tmp_path / "walk.csv", SkeletonRecording(good.time, far, good.turns))
    read = read_skeletons(path)
    assert (len(read.time), read.notes) == (18, ("2 of 20 rows are no poses of a skeleton, and are left out.",))


def test_markers_of_nowhere_are_refused() -> None:
    pytest.importorskip("rosbags")
    from airworthy.bridges.ros.types import ros_types

    kind = "visualization_msgs/msg/MarkerArray"

    def markers(**changes: Any) -> Any:
        sent = [{"id": k, "header": {"stamp": {"sec": 5}}, "pose": {"orientation": {"w": 1.0}}} for k in range(15)]
        sent[0] |= changes
        return ros_types().unpacked(kind, ros_types().packed(kind, {"markers": sent})).markers

    assert markers_frame(markers()).stamp == 5.0
    for value in (1e300, np.nan, -np.inf):
        for pose in ({"position": {"y": value}, "orientation": {"w": 1.0}}, {"orientation": {"w": value}}):
            with pytest.raises(ValueError, match=r"none|length 1"):
                markers_frame(markers(pose=pose))
    with pytest.raises(ValueError, match="none of seconds"):
        markers_frame(markers(header={"stamp": {"sec": 2**31 - 10}}))


@many
def test_hostile_skeletons(count: int, tracker: Any) -> None:
    port, _ = tracker
    with (
        closing(Crowd([f"udp:{port}"])) as crowd,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        batch = SceneBatch(crowd.added(Scene("empty")))
        sender.sendto(packed_skeleton(0.0, standing(), UPRIGHT), ("127.0.0.1", port))
        crowd.update(batch)
        tracemalloc.start()
        for number, data in enumerate(hostile([packed_skeleton(1.0, standing(), arm_out())], count)):
            sender.sendto(data, ("127.0.0.1", port))
            if number % 50 == 0:
                crowd.update(batch)
                assert np.isfinite(batch.dynamic_poses[0]).all()
        crowd.update(batch)
        now, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert now < GROWTH
        sender.sendto(packed_skeleton(1e200, standing(4.0), UPRIGHT), ("127.0.0.1", port))
        for _ in range(20):
            crowd.update(batch)
        assert "1 skeletons" not in crowd.notes()[0]


def test_skeletons_over_lcm(link: LcmLink, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setattr("airworthy.bridges.people.sources.LcmLink", lambda: LcmLink(link.address))
    with closing(LcmSkeletons("bob")) as source:
        kind = lcm_types()["skeleton_t"]
        values = {"utime": 1_500_000, "position": standing(), "count": 15, "rotation": arm_out()}
        link.send("bob", kind.packed(values))
        link.send("other", kind.packed(values))
        link.send("bob", kind.packed({**values, "count": 3, "rotation": UPRIGHT[:3]}))
        link.send("bob", b"rubbish")
        waiting: list[Any] = []
        while len(waiting) < 3:
            waiting += source.waiting()
        frame = waiting[0]()
        assert frame.stamp == 1.5
        np.testing.assert_allclose(frame.turns, arm_out(), atol=1e-15)
        for read, said in zip(waiting[1:], ("3 joints; expected 15", "no message skeleton_t"), strict=True):
            with pytest.raises(ValueError, match=said):
                read()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tcp:1"], "Unknown source of people 'tcp:1'"),
        (["ros2:"], "Unknown source of people 'ros2:'"),
        (["file:nothing.csv"], "nothing.csv"),
        (["udp:x"], "is no place to listen at"),
    ],
)
def test_words_that_are_none_are_refused(words: list[str], said: str) -> None:
    with pytest.raises(AirworthyError, match=said):
        Crowd(words)
    with pytest.raises(AirworthyError, match="Unknown source of people"):
        skeleton_source("file:x")
    with pytest.raises(ValueError, match="14 joints"):
        skeleton_frame(0.0, np.zeros(3), UPRIGHT[:14])


# ---- In the scene of another vehicle --------------------------------------------------------------------------------------


def test_cameras_lidars_and_contact_meet_a_person(tmp_path: Path) -> None:
    batch = SceneBatch(alone(recorded_person("walker", recording())))
    batch.advance(59 / 120)
    # A ray to the left hand's middle, from a metre before it, meets its capsule of 0.022 h.
    hand = hand_of(batch)
    rays = device("base_lidar").projection.rays()
    seen = cast(batch.geometry, rays, (hand - [1.0, 0.0, 0.0])[None], np.array([[0.0, 0.0, 0.0, 1.0]]),
                channels=("range", "semantic_id"))  # fmt: skip
    person_class = batch.semantics[0]["person"]
    met = seen["semantic_id"][0] == person_class
    assert met.any()
    assert seen["range"][0][met].min() == pytest.approx(1.0 - 0.022 * HEIGHT, abs=0.02)
    near = clearance(batch.geometry, (hand + np.array([0.5, 0.0, 0.0]))[None]).distance[0]
    assert near == pytest.approx(0.5 - 0.022 * HEIGHT, abs=1e-5)


def test_a_tracked_vehicle_flies_into_a_recorded_person_twice_the_same(tmp_path: Path) -> None:
    pytest.importorskip("rosbags")
    write_skeletons(tmp_path / "walk.csv", recording())
    where = tum(tmp_path / "p.txt", np.arange(40) * 0.01, lambda t: (2.5, t, 1.0))
    told, place = [], field(tmp_path)
    for name in ("one", "two", "nobody"):
        people = () if name == "nobody" else (f"anna=file:{tmp_path / 'walk.csv'}",)
        config = LoopConfig(f"file:{where}", sensors=("base_depth_camera:depth,semantic_id",), clock="lockstep", people=people,
                            out=tmp_path / name, radius=0.4, scene=place)  # fmt: skip
        told.append(serve_poses(config).collisions)
    # Half a metre before a torso of 0.085 x 1.75 m: met by a sphere of 0.4 m, and alone where the person is.
    assert told == [1, 1, 0]
    digests = [sha256_file(tmp_path / name / "frames.mcap") for name in ("one", "two", "nobody")]
    assert digests[0] == digests[1] != digests[2]
    with pytest.raises(AirworthyError, match="is a stream, and frames that repeat need a recording: write file:PATH"):
        serve_poses(LoopConfig(f"file:{where}", sensors=("base_lidar",), clock="lockstep", people=("udp:9871",)))


def test_a_served_vehicle_is_met_by_a_person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loopback: None) -> None:
    for package in ("rosbags", "cyclonedds"):
        pytest.importorskip(package)
    from tests.bridges.test_ros_flights import free_domain

    monkeypatch.setenv("ROS_DOMAIN_ID", str(free_domain()))
    made = recording(120)
    # Through the place where the vehicle stands.
    walked = SkeletonRecording(made.time, made.position - [3.0, 0.5, 0.0], made.turns)
    write_skeletons(tmp_path / "walk.csv", walked)
    nobody = TopicServeConfig("ros2", scene=field(tmp_path), rate=100.0, duration=1.5, clock="scaled", factor=20.0)
    config = replace(nobody, people=(f"file:{tmp_path / 'walk.csv'}",))
    assert (serve_topics(config).collisions > 0, serve_topics(nobody).collisions) == (True, False)
    with pytest.raises(AirworthyError, match="--people walk in a scene"):
        TopicServeConfig("ros2", people=("udp",))


def test_people_are_in_data_sets_of_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_skeletons(tmp_path / "walk.csv", recording())
    where = tum(tmp_path / "p.txt", np.arange(10) * 0.01, lambda t: (1.0, t, 1.0))
    words = ["logs", "render", str(where), "--sensors", "base_depth_camera:depth", "--at", "poses", "--imu", "none"]
    assert main([*words, "--out", str(tmp_path / "a"), "--people", f"file:{tmp_path / 'walk.csv'}"]) == 0
    assert main([*words, "--out", str(tmp_path / "b")]) == 0
    one, two = (sorted((tmp_path / name / "mav0/depth0/data").iterdir()) for name in "ab")
    assert len(one) == len(two) == 10
    assert all(a.read_bytes() != b.read_bytes() for a, b in zip(one, two, strict=True))
