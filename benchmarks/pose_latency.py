"""Vehicle in the loop: from a pose to a picture on a topic, by size of the picture; and how late ticks of 960 Hz are.

    python benchmarks/pose_latency.py [SECONDS]

Poses come 200 times a second by UDP from a process of its own, pictures go out over DDS; every camera is measured alone.
"""

from __future__ import annotations

import math
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from airworthy.bridges.clock import LinkClock
from airworthy.bridges.loop.latency import latency_text
from airworthy.bridges.loop.session import LoopConfig, serve_poses

PORT, POSE_RATE, IMU_RATE = 19870, 200.0, 960.0
CAMERAS = """
[small]
kind = "camera"
projection = { model = "pinhole", width = 224, height = 224, fx = 200.0, fy = 200.0, cx = 112.0, cy = 112.0 }
rate = 20.0
channels = ["rgb"]

[wide]
kind = "camera"
projection = { model = "pinhole", width = 640, height = 360, fx = 463.0, fy = 463.0, cx = 320.0, cy = 180.0 }
rate = 10.0
channels = ["rgb"]
"""
ROWS = {"224 x 224 colour": "{file}:small", "640 x 360 colour": "{file}:wide", "480 x 270 depth": "d455_depth:depth"}
"""Title -> word of the sensor."""


def send_poses(seconds: float) -> None:
    """Fly a circle of 1 m in the hall, in real time."""
    link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    begin = time.monotonic()
    for k in range(int(seconds * POSE_RATE)):
        t = k / POSE_RATE
        time.sleep(max(begin + t - time.monotonic(), 0.0))
        angle = 0.5 * t
        place = (math.cos(angle), math.sin(angle), 1.5)
        turn = (0.0, 0.0, math.sin(angle / 2), math.cos(angle / 2))
        link.sendto(struct.pack("<8d", time.time(), *place, *turn), ("127.0.0.1", PORT))


def tick_jitter(seconds: float) -> np.ndarray:
    """How late each tick of `IMU_RATE` begins in real time [s]."""
    clock = LinkClock("real", 1.0 / IMU_RATE)
    for k in range(int(seconds * IMU_RATE)):
        clock.begin(k / IMU_RATE)
    found = clock.lateness()
    return np.array([found.median, found.p99, found.most])


def main() -> None:
    """Print a table for each camera, and the ticks."""
    if sys.argv[1:2] == ["--send"]:
        send_poses(float(sys.argv[2]))
        return
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cameras.toml"
        file.write_text(CAMERAS)
        for title, word in ROWS.items():
            sender = subprocess.Popen([sys.executable, __file__, "--send", str(seconds + 60.0)])
            try:
                config = LoopConfig(
                    f"udp:{PORT}", "hall", (f"camera={word.format(file=file)}",), "ros2", duration=seconds, wait=60.0
                )
                result = serve_poses(config)
            finally:
                sender.kill()
                sender.wait()
            print(f"\n{title}, {result.frames['camera']} frames, {result.held} held, {len(result.aborts)} aborts")
            print("\n".join(latency_text(result.latency["camera"])))
    late = 1e3 * tick_jitter(seconds)
    print(f"\nticks of {IMU_RATE:.0f} Hz late by: median {late[0]:.3f}, p99 {late[1]:.3f}, most {late[2]:.3f} ms")


if __name__ == "__main__":
    main()
