"""A node of ROS 2 over zenoh, as a program of its own: keys and bytes laid out by hand, not a line of the package.

    python zenoh_node.py PORT DOMAIN

It holds the first place that it sees, by rates and thrust, as `ros_node.py hover` does.
"""

import struct
import sys
import time

import numpy as np
import zenoh

IN = "nav_msgs::msg::dds_::Odometry_/RIHS01_3cc97dc7fb7502f8714462c526d369e35b603cfc34d946e3f2eda2766dfec6e0"
OUT = "mav_msgs::msg::dds_::RateThrust_"


def opened(port):
    config = zenoh.Config()
    for key, value in (("mode", '"client"'), ("connect/endpoints", f'["tcp/127.0.0.1:{port}"]'),
                       ("scouting/multicast/enabled", "false")):  # fmt: skip
        config.insert_json5(key, value)
    while True:
        try:
            return zenoh.open(config)
        except zenoh.ZError:
            time.sleep(0.05)


def text(data, at):
    at += -at % 4
    (length,) = struct.unpack_from("<I", data, at)
    return data[at + 4 : at + 3 + length].decode(), at + 4 + length


def odometry(data):
    """Stamp, position, attitude, velocity in the body; offsets behind the four bytes of the head."""
    assert data[:4] == b"\x00\x01\x00\x00"
    body = data[4:]
    stamp = struct.unpack_from("<iI", body, 0)
    frame, at = text(body, 8)
    child, at = text(body, at)
    assert (frame, child) == ("world", "uav/imu")
    at += -at % 8
    pose = struct.unpack_from("<7d", body, at)
    twist = struct.unpack_from("<6d", body, at + 8 * (7 + 36))
    return stamp, np.array(pose[:3]), np.array(pose[3:]), np.array(twist[:3])


def rate_thrust(stamp, rates, thrust):
    # Header: stamp, then "" as length 1 and a zero; three bytes up to the next double.
    return b"\x00\x01\x00\x00" + struct.pack("<iIIb3x", *stamp, 1, 0) + struct.pack("<6d", *rates, 0.0, 0.0, thrust)


def turned(q, v):
    return v + 2.0 * np.cross(q[:3], np.cross(q[:3], v) + q[3] * v)


def main():
    port, domain, type_hash = sys.argv[1], sys.argv[2], sys.argv[3]
    session = opened(port)
    node = f"@ros2_lv/{domain}/{session.zid()}/0"
    out = session.declare_publisher(f"{domain}/uav/input/rateThrust/{OUT}/{type_hash}",
                                    congestion_control=zenoh.CongestionControl.BLOCK)  # fmt: skip
    seen = session.declare_subscriber(f"{domain}/uav/odometry/{IN}")
    held = [
        session.liveliness().declare_token(f"{node}/0/NN/%/%/hover"),
        session.liveliness().declare_token(f"{node}/1/MP/%/%/hover/%uav%input%rateThrust/{OUT}/{type_hash}/::,10:,:,:,,"),
        session.liveliness().declare_token(f"{node}/2/MS/%/%/hover/%uav%odometry/{IN}/::,10:,:,:,,"),
    ]
    start, number = None, 0
    while held:
        sample = seen.recv()
        # 33 bytes: number, stamp, 16, and who sent it.
        assert len(bytes(sample.attachment.to_bytes())) == 33
        stamp, at, turn, velocity = odometry(bytes(sample.payload.to_bytes()))
        start = at if start is None or stamp == (0, 0) else start
        force = 2.0 * (start - at) - 2.5 * turned(turn, velocity) + np.array([0.0, 0.0, 9.81])
        up = turned(turn, np.array([0.0, 0.0, 1.0]))
        back = turn * np.array([-1.0, -1.0, -1.0, 1.0])
        rates = 6.0 * turned(back, np.cross(up, force / np.linalg.norm(force)))
        number += 1
        out.put(rate_thrust(stamp, rates, float(force @ up)),
                attachment=struct.pack("<qqB16s", number, stamp[0] * 10**9 + stamp[1], 16, b"hover-node-00001"))  # fmt: skip


if __name__ == "__main__":
    main()
