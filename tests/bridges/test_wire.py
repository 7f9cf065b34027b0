"""Messages over a socket: what comes out is what went in, to the bit, and nothing else is taken."""

from __future__ import annotations

import math
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from airworthy.bridges.wire import DTYPES, HEADER_MAX, LinkFailure, Message, WireLink, packed, within
from airworthy.core.arrays import ArrayU8
from airworthy.core.errors import AirworthyError
from airworthy.optics.projections import Pinhole
from airworthy.race import BeaconFrame, load_race, race_class
from airworthy.race.onboard import ImageFrame, Onboard, OnboardFacts, RangerSample, Truth, onboard_facts
from airworthy.race.wall.confinement import readable
from airworthy.race.wall.records import facts_message, facts_of, record_message, record_of
from airworthy.vehicles import vehicle

SOON = 5.0


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, WireLink]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, WireLink(theirs, 1 << 16)


def carried(message: Message) -> Message:
    """Send a message through a pair of sockets, in pieces of a few bytes."""
    ours, theirs = socket.socketpair()
    data = packed(message)
    with ours, theirs:

        def send() -> None:
            for at in range(0, len(data), 1000):
                ours.sendall(data[at : at + 1000])

        thread = threading.Thread(target=send)
        thread.start()
        try:
            return WireLink(theirs).receive(within(SOON))
        finally:
            thread.join()


SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3)
ARRAYS = st.sampled_from(DTYPES).flatmap(lambda kind: hnp.arrays(kind, SHAPES))
VALUES = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.text())


@given(
    st.dictionaries(st.text(max_size=8), ARRAYS, max_size=3),
    st.dictionaries(st.sampled_from(("time", "said", "plans")), VALUES),
)
def test_messages_come_out_as_they_went_in(arrays: dict[str, Any], told: dict[str, Any]) -> None:
    got = carried(Message("record", told, arrays))
    assert (got.kind, got.fields) == ("record", told)
    assert list(got.arrays) == list(arrays)
    for name, array in arrays.items():
        assert (got.arrays[name].dtype, got.arrays[name].shape) == (array.dtype, array.shape)
        # To the bit: NaNs with what they carry, and the sign of zero.
        assert got.arrays[name].tobytes() == array.tobytes()
        assert got.arrays[name].base is None or got.arrays[name].size == 0
        assert got.arrays[name].flags.writeable


def test_bytes_are_as_documented() -> None:
    data = packed(Message("command", {"time": 0.5}, {"command": np.array([[1.0, 2.0, 3.0, 4.0]])}))
    header = b'{"kind": "command", "arrays": [["command", "<f8", [1, 4]]], "time": 0.5}'
    assert data == struct.pack("<I", len(header)) + header + struct.pack("<4d", 1.0, 2.0, 3.0, 4.0)


def test_objects_do_not_cross() -> None:
    with pytest.raises(AirworthyError, match="'what' of type object does not cross"):
        packed(Message("record", {}, {"what": np.array([{}])}))
    with pytest.raises(ValueError, match="not JSON compliant"):
        packed(Message("record", {"time": math.nan}))


def framed(header: bytes) -> bytes:
    return struct.pack("<I", len(header)) + header


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (struct.pack("<I", HEADER_MAX + 1), "a header of 1,048,577 bytes"),
        (struct.pack("<I", 0), "a header of 0 bytes"),
        (b"SSH-2.0-x", "it does not speak this protocol: it began with the letters 'SSH-'$"),
        (b"\x1b[2J", r"a header of 1,244,814,107 bytes"),
        (framed(b"\xff\xff"), "no message"),
        (framed(b"[1]"), "no kind"),
        (framed(b'{"kind": 1, "arrays": []}'), "no kind"),
        (framed(b'{"kind": "a"}'), "no kind"),
        (framed(b'{"kind": "a", "arrays": [], "t": NaN}'), "not valid JSON"),
        (framed(b'{"kind": "a", "arrays": [["x", "|O8", [1]]]}'), "an array is"),
        (framed(b'{"kind": "a", "arrays": [["x", "<f8", [-1]]]}'), "an array is"),
        (framed(b'{"kind": "a", "arrays": [["x", "<f8", [1.5]]]}'), "an array is"),
        (framed(b'{"kind": "a", "arrays": [["x", "<f8", [true]]]}'), "an array is"),
        (
            framed(b'{"kind": "a", "arrays": [["x", "<f8", [4294967296, 4294967296]]]}'),
            "arrays of 147,573,952,589",
        ),
        (framed(b'{"kind": "a", "arrays": [["x", "<f8", [0]], ["x", "<f8", [0]]]}'), "two arrays of one name"),
        (framed(b"[" * 100_000 + b"]" * 100_000), "no message"),
    ],
)
def test_what_is_no_message_ends_the_connection(data: bytes, said: str, ends: tuple[socket.socket, WireLink]) -> None:
    ours, link = ends
    thread = threading.Thread(target=ours.sendall, args=(data,))
    thread.start()
    with pytest.raises(LinkFailure, match=said):
        link.receive(within(SOON))
    thread.join()


@given(st.data())
def test_damaged_messages_are_refused_or_are_messages(data: st.DataObject) -> None:
    """Whatever a stranger sends: a message, or a sentence; nothing else is raised."""
    whole = bytearray(packed(Message("command", {"plans": []}, {"command": np.ones((1, 4))})))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    ours, theirs = socket.socketpair()
    with theirs:
        with ours:
            ours.sendall(bytes(whole[: data.draw(st.integers(0, len(whole)))]))
        with suppress(LinkFailure):
            assert isinstance(WireLink(theirs).receive(within(SOON)), Message)


def test_silence_ends_at_its_time_even_where_a_byte_comes_now_and_then(ends: tuple[socket.socket, WireLink]) -> None:
    ours, link = ends
    ours.sendall(b"\x10\x00")
    with pytest.raises(LinkFailure, match="no answer in time"):
        link.receive(within(0.0))
    ours.close()
    with pytest.raises(LinkFailure, match="closed"):
        link.receive(within(SOON))


# ---- Records ----------------------------------------------------------------------------------------------------------------


def test_facts_cross_to_the_bit() -> None:
    camera = Pinhole(1024, 768, 548.4, 548.4, 512.0, 384.0)
    racer = vehicle("flightgoggles_2019")
    facts = onboard_facts(load_race("alphapilot"), racer, camera, race_class("v3"), rates=(960.0, 60.0, 240.0), flights=2)
    back, charge = facts_of(carried(facts_message(facts, "measured")))
    assert charge == "measured"
    for item in fields(OnboardFacts):
        old, new = getattr(facts, item.name), getattr(back, item.name)
        assert type(new) is type(old)
        assert np.array_equal(new, old) if isinstance(old, np.ndarray) else new == old
    with pytest.raises(AirworthyError, match="expected facts of protocol 1"):
        facts_of(Message("facts", {"protocol": 2}))


@pytest.mark.parametrize(("frames", "pair"), [(0, False), (3, False), (2, True)])
def test_records_cross_to_the_bit(frames: int, pair: bool) -> None:
    rng = np.random.default_rng(1)

    def pictures(count: int) -> list[ArrayU8]:
        return [rng.integers(0, 256, (1, 6, 8, 3), np.uint8) for _ in range(count)]

    pixels = [np.where(rng.random((1, 11, 4, 2)) < 0.5, np.nan, rng.normal(500.0, 100.0, (1, 11, 4, 2))) for _ in range(frames)]
    onboard = Onboard(
        0.1 + 0.2,
        np.arange(4) / 960.0,
        rng.normal(size=(4, 1, 6)),
        tuple(BeaconFrame(k / 60.0, pixel) for k, pixel in enumerate(pixels)),
        tuple(RangerSample(k / 60.0, rng.normal(size=1)) for k in range(frames)),
        np.array([True]),
        tuple(ImageFrame(k / 60.0, *pictures(2 if pair else 1)) for k in range(frames)),
    )
    truth = Truth(*(rng.normal(size=shape) for shape in ((1, 3), (1, 3), (1, 4), (1, 3), (1, 11, 4, 3))))
    got, true = record_of(carried(record_message(onboard, truth)))
    assert got.time == onboard.time
    for name in ("imu_stamp", "imu", "collision"):
        assert getattr(got, name).tobytes() == getattr(onboard, name).tobytes()
    assert [x.stamp for x in got.frames] == [x.stamp for x in onboard.frames]
    assert [x.pixel.tobytes() for x in got.frames] == [x.pixel.tobytes() for x in onboard.frames]
    assert [(x.stamp, x.distance.tobytes()) for x in got.ranger] == [(x.stamp, x.distance.tobytes()) for x in onboard.ranger]
    assert [(x.stamp, x.pixels.tobytes()) for x in got.images] == [(x.stamp, x.pixels.tobytes()) for x in onboard.images]
    assert all(image.pixels.dtype == np.uint8 and image.pixels.shape == (1, 6, 8, 3) for image in got.images)
    assert [x.right is not None for x in got.images] == frames * [pair]
    assert [x.right.tobytes() for x in got.images if x.right is not None] == [
        x.right.tobytes() for x in onboard.images if x.right is not None
    ]
    # Who has one camera is sent what was sent before there was another.
    assert ("image_right" in record_message(onboard, None).arrays) == pair
    assert true is not None
    assert all(np.array_equal(getattr(true, item.name), getattr(truth, item.name)) for item in fields(Truth))
    assert record_of(carried(record_message(onboard, None)))[1] is None


# ---- Which files are read ---------------------------------------------------------------------------------------------------


def test_everything_but_what_is_withheld_is_readable(tmp_path: Path) -> None:
    for name in ("a/b/secret", "a/b/plain", "a/c/plain", "d/plain"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    rules = list(readable([tmp_path / "a", tmp_path / "d", tmp_path / "nowhere"], [tmp_path / "a/b/secret"]))
    whole = {path.relative_to(tmp_path).as_posix() for path, all_of_it in rules if all_of_it}
    listed = {path.relative_to(tmp_path).as_posix() for path, all_of_it in rules if not all_of_it}
    assert whole == {"a/b/plain", "a/c", "d"}
    assert listed == {"a", "a/b"}
