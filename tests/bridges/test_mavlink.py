"""MAVLink frames against published constants, an independent implementation's bytes, and hostile streams."""

import math

import numpy as np
import pytest

from airworthy.bridges.mavlink import MESSAGES, MavlinkParser, encode, message, x25

# CRC_EXTRA as the dialect's generated headers have them (mavlink/c_library_v2, common.h, MAVLINK_MESSAGE_CRCS).
CRC_EXTRA = {
    "HEARTBEAT": 50,
    "SYSTEM_TIME": 137,
    "COMMAND_LONG": 152,
    "COMMAND_ACK": 143,
    "HIL_ACTUATOR_CONTROLS": 47,
    "HIL_SENSOR": 108,
    "HIL_GPS": 124,
    "HIL_STATE_QUATERNION": 4,
}


def test_the_checksum_has_its_published_check_value() -> None:
    # reveng.sourceforge.io, catalogue of parametrised CRC algorithms: CRC-16/MCRF4XX, check 0x6f91.
    assert x25(b"123456789") == 0x6F91


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.name)
def test_the_seed_of_every_message_is_the_published_one(kind: object) -> None:
    assert kind.seed == CRC_EXTRA[kind.name]  # type: ignore[attr-defined]


# pymavlink 2.4.50, dialect common, MAVLink 2, sequence 7, system 1, component 200.
VECTORS: list[tuple[str, dict[str, object], str]] = [
    (
        "HIL_SENSOR",
        {
            "time_usec": 1234567890123,
            "xacc": 0.25,
            "yacc": -0.5,
            "zacc": -9.75,
            "xgyro": 0.125,
            "ygyro": -0.0625,
            "zgyro": 1.5,
            "xmag": 0.21,
            "ymag": -0.01,
            "zmag": 0.43,
            "abs_pressure": 956.25,
            "diff_pressure": 0.0,
            "pressure_alt": 488.5,
            "temperature": 11.75,
            "fields_updated": 7167,
        },
        "fd3e00000701c86b0000cb04fb711f0100000000803e000000bf00001cc10000003e000080bd0000c03f3d0a573e0ad723bcf628dc3e00106f44000000000040f44300003c41ff1b291f",
    ),
    (
        "HIL_GPS",
        {
            "time_usec": 5000000,
            "fix_type": 3,
            "lat": 473977420,
            "lon": -85455940,
            "alt": 488123,
            "eph": 2,
            "epv": 3,
            "vel": 1234,
            "vn": -300,
            "ve": 400,
            "vd": -5,
            "cog": 12700,
            "satellites_visible": 20,
        },
        "fd2400000701c8710000404b4c00000000004c52401cbc0be8fabb72070002000300d204d4fe9001fbff9c3103143290",
    ),
    (
        "HIL_STATE_QUATERNION",
        {
            "time_usec": 40000,
            "attitude_quaternion": (0.5, -0.5, 0.25, 0.75),
            "rollspeed": 0.1,
            "pitchspeed": -0.2,
            "yawspeed": 0.3,
            "lat": 473977420,
            "lon": 85455940,
            "alt": 488000,
            "vx": -1,
            "vy": 250,
            "vz": -300,
            "ind_airspeed": 390,
            "true_airspeed": 391,
            "xacc": 10,
            "yacc": -20,
            "zacc": -1000,
        },
        "fd4000000701c8730000409c0000000000000000003f000000bf0000803e0000403fcdcccc3dcdcc4cbe9a99993e4c52401c44f4170540720700fffffa00d4fe860187010a00ecff18fcbdfa",
    ),
    (
        "HIL_ACTUATOR_CONTROLS",
        {
            "time_usec": 8000,
            "controls": (0.5, 0.25, 0.75, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
            "mode": 129,
            "flags": 1,
        },
        "fd5100000701c85d0000401f00000000000001000000000000000000003f0000803e0000403f0000803f0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000008198a0",
    ),
    (
        "HEARTBEAT",
        {"type": 0, "autopilot": 8, "base_mode": 0, "custom_mode": 0, "system_status": 4, "mavlink_version": 3},
        "fd0900000701c80000000000000000080004038b7e",
    ),
    ("SYSTEM_TIME", {"time_unix_usec": 0, "time_boot_ms": 4000}, "fd0a00000701c80200000000000000000000a00f8e02"),
    (
        "COMMAND_LONG",
        {
            "target_system": 1,
            "target_component": 1,
            "command": 400,
            "confirmation": 0,
            "param1": 1.0,
            "param2": 0.0,
            "param3": 0.0,
            "param4": 0.0,
            "param5": 0.0,
            "param6": 0.0,
            "param7": 0.0,
        },
        "fd2000000701c84c00000000803f000000000000000000000000000000000000000000000000900101016270",
    ),
]


@pytest.mark.parametrize(("name", "values", "expected"), VECTORS)
def test_bytes_are_those_of_pymavlink(name: str, values: dict[str, object], expected: str) -> None:
    assert encode(name, values, 7, 1, 200).hex() == expected


@pytest.mark.parametrize(("name", "values", "expected"), VECTORS)
def test_and_are_read_back(name: str, values: dict[str, object], expected: str) -> None:
    (frame,) = MavlinkParser().feed(bytes.fromhex(expected))
    assert (frame.kind.name, frame.sequence, frame.system, frame.component) == (name, 7, 1, 200)
    for key, value in values.items():
        np.testing.assert_allclose(frame.fields[key], value, rtol=1e-7)  # floats are of 32 bits


def heartbeat(number: int) -> bytes:
    fields = {"type": 2, "autopilot": 12, "base_mode": 0, "custom_mode": number, "system_status": 4, "mavlink_version": 3}
    return encode("HEARTBEAT", fields, number)


def test_a_stream_in_pieces_with_rubbish_between() -> None:
    stream = b"rub" + heartbeat(1) + b"\xfd\xfd" + heartbeat(2) + b"\xfe\x00" + heartbeat(3)
    for size in (1, 2, 7, len(stream)):
        parser = MavlinkParser()
        found = [frame for k in range(0, len(stream), size) for frame in parser.feed(stream[k : k + size])]
        # What looks like a start may hold back what follows until a checksum fails: nothing is lost by it.
        found += parser.feed(b"\0" * 300)
        assert [frame.fields["custom_mode"] for frame in found] == [1, 2, 3]


def test_every_flipped_bit_is_noticed() -> None:
    frame = heartbeat(5)
    for bit in range(8, 8 * len(frame)):
        damaged = bytearray(frame)
        damaged[bit // 8] ^= 1 << bit % 8
        parser = MavlinkParser()
        found = parser.feed(bytes(damaged) + b"\0" * 300)
        assert not found, f"bit {bit}"


def test_random_and_mutated_bytes_neither_crash_nor_grow() -> None:
    rng = np.random.default_rng(3)
    parser, frame = MavlinkParser(), heartbeat(9)
    for k in range(20000):
        data = bytearray(frame) if k % 2 else bytearray(rng.bytes(int(rng.integers(1, 60))))
        data[int(rng.integers(len(data)))] ^= int(rng.integers(1, 256))
        parser.feed(bytes(data))
        assert len(parser._held) < 10 + 255 + 2 + 13
    assert parser.damaged + parser.unknown > 0
    assert parser.skipped > 0


def test_trailing_zeros_are_left_out_and_a_signature_is_passed_over() -> None:
    frame = heartbeat(0)
    assert len(frame) == 10 + 9 + 2
    zero = encode("COMMAND_ACK", {"command": 0, "result": 0}, 0)
    assert len(zero) == 10 + 1 + 2
    body = bytearray(heartbeat(6))
    body[2] = 1
    crc = x25(bytes([message("HEARTBEAT").seed]), x25(bytes(body[1:-2])))
    (read,) = MavlinkParser().feed(bytes(body[:-2]) + crc.to_bytes(2, "little") + b"s" * 13)
    assert read.fields["custom_mode"] == 6
    assert math.isclose(read.fields["type"], 2)
