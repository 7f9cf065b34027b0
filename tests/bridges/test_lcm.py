"""LCM: fingerprints and bytes of lcm-gen, messages to and from its library, a flight by it, and hostile datagrams."""

from __future__ import annotations

import _socket
import importlib
import shutil
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.bridges.conftest import free_port
from tests.bridges.test_hostile import GROWTH, hostile, many

from airworthy.benchmarks.fly.config import FlyConfig
from airworthy.benchmarks.fly.job import run_fly
from airworthy.bridges.lcm.link import ARRIVED_MAX, DEFAULT_URL, LcmLink, Reassembly, datagrams, parse_url
from airworthy.bridges.lcm.pilot import LcmCommands, LcmSender, channel_of, lcm_message
from airworthy.bridges.lcm.types import lcm_types, parsed_types
from airworthy.bridges.loop.pose_sources import pose_source
from airworthy.bridges.people.sources import LcmSkeletons
from airworthy.bridges.remote.words import external_entry
from airworthy.bridges.ros import messages
from airworthy.bridges.wire import within
from airworthy.core.errors import AirworthyError, AssetWarning
from airworthy.core.files import sha256_file

GENERATOR = shutil.which("lcm-gen", path=str(Path(sys.executable).parent))
generated = pytest.mark.skipif(GENERATOR is None, reason="lcm-gen is not installed")
GROUP = "239.255.76.67"


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folder with the package that lcm-gen makes of our types."""
    folder = tmp_path_factory.mktemp("told")
    text = files("airworthy.bridges.lcm").joinpath("airworthy.lcm").read_text("utf-8")
    (folder / "a.lcm").write_text(text.replace("package airworthy;", "package told;"))
    subprocess.run([str(GENERATOR), "--python", "--ppath", str(folder), "a.lcm"], check=True, cwd=folder)
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))


@pytest.fixture
def multicast(loopback: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sockets join the group as well; with ttl 0 nothing leaves the machine."""
    for name in ("bind", "connect"):
        refused, allowed = getattr(socket.socket, name), getattr(_socket.socket, name)

        def call(self: Any, address: Any, refused: Any = refused, allowed: Any = allowed) -> Any:
            return (allowed if address[0] == GROUP else refused)(self, address)

        monkeypatch.setattr(socket.socket, name, call)


def made(name: str) -> Any:
    return getattr(importlib.import_module(f"told.{name}"), name)


def drawn(name: str, rng: np.random.Generator) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for item in lcm_types()[name].members:
        if item.kind == "string":
            values[item.name] = "".join(rng.choice(list("abc_1"), int(rng.integers(0, 9))))
        elif not item.sizes:
            values[item.name] = int(rng.integers(0, 9)) if item.kind != "double" else float(rng.normal())
        else:
            shape = [values[size] if size in values else int(size) for size in item.sizes]
            values[item.name] = rng.integers(0, 255, shape, np.uint8) if item.kind == "byte" else rng.normal(size=shape)
    return values


@generated
@pytest.mark.parametrize("name", sorted(lcm_types()))
def test_fingerprints_and_bytes_are_those_of_lcm_gen(told: Path, name: str) -> None:
    kind, rng = lcm_types()[name], np.random.default_rng(len(name))
    assert kind.fingerprint == made(name)._get_packed_fingerprint()
    for _ in range(20):
        values, theirs = drawn(name, rng), made(name)()
        for key, value in values.items():
            setattr(theirs, key, bytes(value) if isinstance(value, np.ndarray) and value.dtype == np.uint8 else value)
        data = kind.packed(values)
        assert data == theirs.encode()
        back = kind.unpacked(data)
        assert all(np.array_equal(back[key], value) for key, value in values.items())


@generated
def test_other_types_have_the_generators_fingerprint(tmp_path: Path) -> None:
    text = "package told2; struct odd_t { int8_t a; int16_t bb; float c[2][3]; boolean d; int32_t n; int64_t e[n][2]; /* x */ }"
    (tmp_path / "b.lcm").write_text(text)
    subprocess.run([str(GENERATOR), "--python", "--ppath", str(tmp_path), "b.lcm"], check=True, cwd=tmp_path)
    sys.path.insert(0, str(tmp_path))
    try:
        theirs = importlib.import_module("told2.odd_t").odd_t
    finally:
        sys.path.remove(str(tmp_path))
    assert parsed_types(text)["odd_t"].fingerprint == theirs._get_packed_fingerprint()


def test_messages_say_the_same_as_those_of_ros() -> None:
    said = messages.odometry_message(1.5, (1, 2, 3), (0.5, -0.25, 0.125), (0.5, 0.5, 0.5, 0.5), (0.1, 0.2, 0.3))
    found = lcm_message(said)
    assert found is not None
    pose = lcm_types()["pose_t"].unpacked(found[1])
    assert (found[0], channel_of(said.topic), pose["utime"]) == ("pose_t", "uav_odometry", 1_500_000)
    # In the world again, as it was before it was turned into the body.
    np.testing.assert_allclose(pose["velocity"], [0.5, -0.25, 0.125], atol=1e-12)
    np.testing.assert_array_equal(pose["angular_velocity"], [0.1, 0.2, 0.3])
    assert lcm_message(messages.static_frames({})) is None


def test_what_lcm_has_no_type_for_is_told_once() -> None:
    class Link:
        def send(self, channel: str, data: bytes) -> None:
            raise AssertionError(channel)

    sender = LcmSender(Link())  # type: ignore[arg-type]
    course = messages.path_message(np.zeros(1), np.zeros((1, 3)), np.zeros(1))
    with pytest.warns(AssetWarning, match="LCM has no type for nav_msgs/msg/Path: uav_course is not sent"):
        sender.send(course)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sender.send(course)
        sender.send(messages.static_frames({}))  # of every flight: its page says so


# ---- Datagrams ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 1385, 1386, 1400, 2786, 100_000])
def test_messages_come_out_of_their_datagrams_in_any_order(size: int) -> None:
    data, rng = np.random.default_rng(size).bytes(size), np.random.default_rng(1)
    parts = datagrams("uav_camera_x", data, 7)
    assert max(map(len, parts)) <= 1420
    reassembly = Reassembly()
    for order in (np.arange(len(parts)), rng.permutation(len(parts)) if size < 50_000 else np.arange(len(parts))):
        found = [reassembly.feed(parts[k], ("127.0.0.1", 5)) for k in order]
        assert [item for item in found if item is not None] == [("uav_camera_x", data)]
    assert reassembly.malformed == 0


@many
def test_hostile_datagrams(count: int) -> None:
    import tracemalloc

    reassembly, rng = Reassembly(), np.random.default_rng(2)
    seeds = [*datagrams("uav_input_rateThrust", b"x" * 60, 1), *datagrams("uav_camera_x", rng.bytes(4000), 2)]
    tracemalloc.start()
    for number, data in enumerate(hostile(seeds, count)):
        reassembly.feed(data, ("127.0.0.1", number % 50))
    now, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Sixteen unfinished messages of a few datagrams; a claimed size of 32 MiB takes none of it.
    assert now < 16 * 2 * 65536
    assert reassembly.malformed > count // 10
    (part,) = datagrams("a", b"b", 3)
    assert reassembly.feed(part, ("127.0.0.1", 5)) == ("a", b"b")


@many
@pytest.mark.parametrize("name", sorted(lcm_types()))
def test_hostile_messages(name: str, count: int) -> None:
    kind = lcm_types()[name]
    seeds = [kind.packed(drawn(name, np.random.default_rng(k))) for k in range(4)]
    refused = 0
    for data in hostile(seeds, count):
        try:
            kind.unpacked(data)
        except AirworthyError:
            refused += 1
    assert refused > count // 3


@pytest.mark.parametrize(
    "url", ["", "udpm://127.0.0.1:7667", "udpm://239.255.76.67:0", "tcp://239.255.76.67:7667", "udpm://x:1"]
)
def test_addresses_that_are_none_are_refused(url: str) -> None:
    with pytest.raises(AirworthyError, match="is no address of LCM; write udpm://GROUP:PORT"):
        parse_url(url)


def test_nothing_leaves_the_machine_unless_asked() -> None:
    assert parse_url(DEFAULT_URL) == (GROUP, 7667, 0)
    assert parse_url("udpm://239.1.2.3:9?ttl=2") == ("239.1.2.3", 9, 2)


@pytest.fixture
def link(multicast: None) -> Iterator[LcmLink]:
    try:
        made = LcmLink(f"udpm://{GROUP}:{free_port()}?ttl=0")
    except AirworthyError as error:
        pytest.skip(str(error))
    yield made
    made.close()


def test_the_library_and_we_hear_each_other(link: LcmLink) -> None:
    lcm = pytest.importorskip("lcm")
    theirs, heard = lcm.LCM(link.address), []
    theirs.subscribe("here", lambda channel, data: heard.append((channel, data)))
    big = np.random.default_rng(0).bytes(50_000)  # within the small buffers that kernels give unasked
    for data in (b"small", big):
        theirs.publish("there", data)
        found = None
        while (received := link.receive(within(5.0))) is not None:
            if received[0] == "there":
                found = received[1]
                break
        assert found == data
        link.send("here", data)
        theirs.handle_timeout(5000)
        assert heard[-1] == ("here", data)


def test_datagrams_of_other_machines_are_not_looked_at(link: LcmLink, loopback: None) -> None:
    link._own = "203.0.113.1"  # as if what comes came from elsewhere
    link.send("a", b"b")
    assert link.receive(within(0.2)) is None
    assert link.foreign >= 1


def test_commands_that_answer_otherwise_are_counted(link: LcmLink) -> None:
    with closing(LcmLink(link.address)) as other:
        commands = LcmCommands(link, "rate_thrust")
        kind = lcm_types()["rate_thrust_t"]
        for data in (b"rubbish", kind.packed({"utime": 5}), kind.packed({"utime": 1_000_000, "thrust": 9.0})):
            other.send("uav_input_rateThrust", data)
        found = commands.answer((1, 0), 0.0, within(5.0))
        assert found is not None
        assert (found.tolist(), commands.malformed, commands.stale) == ([9.0, 0.0, 0.0, 0.0], 1, 1)


def test_what_comes_behind_pictures_is_found_at_once(link: LcmLink, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of `serve --as lcm` with a camera: its own pictures come back, hundreds of datagrams each, and a look is one step."""
    monkeypatch.setattr("airworthy.bridges.people.sources.LcmLink", lambda: LcmLink(link.address))
    picture = bytes(100_000)  # within the small buffers that kernels give unasked
    command, pose = lcm_types()["rate_thrust_t"], lcm_types()["skeleton_t"]
    with closing(LcmLink(link.address)) as other, closing(LcmSkeletons("anna")) as people:
        other.send("uav_camera_front_image_rect_color", picture)
        other.send("uav_input_rateThrust", command.packed({"thrust": 5.0}))
        other.send("anna", pose.packed({"count": 0}))
        found = LcmCommands(link, "rate_thrust").newest(0.0)
        assert found is not None
        assert found.tolist() == [5.0, 0.0, 0.0, 0.0]
        assert len(people.waiting()) == 1


def test_a_flood_does_not_keep_us(link: LcmLink, monkeypatch: pytest.MonkeyPatch) -> None:
    (part,) = datagrams("a", b"b", 3)
    monkeypatch.setattr(link, "_datagram", lambda seconds: (part, ("127.0.0.1", 5)))
    assert sum(1 for _ in link.arrived()) == ARRIVED_MAX
    assert LcmCommands(link, "rate_thrust").newest(0.0) is None


@generated
def test_a_program_of_the_library_holds_a_place_twice_the_same(told: Path, link: LcmLink, tmp_path: Path) -> None:
    pytest.importorskip("lcm")
    node = subprocess.Popen([sys.executable, str(Path(__file__).with_name("lcm_node.py")), str(told), link.address])
    try:
        for name in ("one", "two"):
            config = FlyConfig(pilot=f"external:lcm:url={link.address}", waypoints=("0,0,2", "0,0,2.01"), hold=0.3,
                               report=False, wait=20.0, out=tmp_path / name)  # fmt: skip
            result = run_fly(config)
            assert (result.pilot_error, result.summary["flights"][0]["outcome"]) == ("", "success")
    finally:
        node.kill()
        node.wait()
    assert sha256_file(tmp_path / "one" / "flight.parquet") == sha256_file(tmp_path / "two" / "flight.parquet")


def test_a_program_that_is_not_there_is_told_by_its_channel(link: LcmLink, tmp_path: Path) -> None:
    config = FlyConfig(pilot=f"external:lcm:url={link.address}", waypoints=("0,0,2", "0,0,2.01"), hold=0.3, report=False,
                       wait=0.4, patience=0.1, out=tmp_path / "none")  # fmt: skip
    said = r"nobody answered uav_odometry on the channel uav_input_rateThrust at udpm://.* within 0\.4 s; start your program"
    with pytest.raises(AirworthyError, match=said):
        run_fly(config)
    assert not (tmp_path / "none").exists()


@many
def test_hostile_poses_over_lcm(link: LcmLink, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the wire: datagrams that are damaged anywhere, and whole messages that are no poses; then a true one is understood."""
    import tracemalloc

    monkeypatch.setattr("airworthy.bridges.loop.pose_sources.LcmLink", lambda: LcmLink(link.address))
    kind = lcm_types()["pose_t"]
    true = kind.packed({"utime": 5, "position": (1.0, 2.0, 3.0), "orientation": (0.0, 0.0, 0.0, 1.0)})
    with closing(pose_source("lcm:room")) as source:
        tracemalloc.start()
        for data, wire in zip(hostile([true], count // 2), hostile(datagrams("room", true, 1), count // 2), strict=True):
            link.send("room", data)
            link._out.send(wire or b"0")
            for _ in range(2):
                pose = source.receive(within(0.0))
                assert pose is None or np.isfinite([*pose.position, *pose.attitude, pose.stamp]).all()
        now, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert now < GROWTH
        assert source.malformed > count // 4
        link.send("room", kind.packed({"utime": 9_000_000, "position": (1, 2, 3), "orientation": (0, 0, 0, 1)}))
        found = None
        while (pose := source.receive(within(1.0))) is not None:
            found = pose
        assert found is not None
        assert (found.stamp, found.position.tolist()) == (9.0, [1.0, 2.0, 3.0])


def test_words_that_make_no_sense_are_refused() -> None:
    with pytest.raises(AirworthyError, match="Unknown control level of LCM 'velocity'"):
        external_entry("external:lcm:level=velocity")
    with pytest.raises(AirworthyError, match="is no address of LCM"):
        external_entry("external:lcm:url=here")
