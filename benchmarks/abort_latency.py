"""Vehicle in the loop: how soon a vehicle is told to stop, from the moment that it should, while pictures are made.

    python benchmarks/abort_latency.py [SECONDS] [BURNERS]

A process of its own sends poses 200 times a second by UDP. Twice a second it is silent for 120 ms (stale from 50 ms on), and in
between leaves the safety volume for 40 ms; it measures by its own clock when /uav/abort comes over DDS. Pictures of 640 x 360
are rendered of splats meanwhile; BURNERS processes take what processor time they get.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from airworthy.bridges.loop.session import LoopConfig, serve_poses

PORT, DOMAIN, RATE = 19871, 77, 200.0
STALE, SILENT, OUTSIDE = 0.05, 0.12, 0.04
CAMERA = """
[wide]
kind = "camera"
projection = { model = "pinhole", width = 640, height = 360, fx = 463.0, fy = 463.0, cx = 320.0, cy = 180.0 }
rate = 10.0
channels = ["rgb"]
"""


def send(seconds: float) -> None:
    """Send poses, and print when each abort was due and when it came, [s] by this process' monotonic clock."""
    from airworthy.bridges.ros.bus import COMMANDS
    from airworthy.bridges.ros.dds import DdsBus

    # Whoever measures is not to be what is late: a real vehicle has a processor of its own.
    with suppress(AttributeError, OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(2))
    aborts = DdsBus(DOMAIN).subscriber("/uav/abort", "std_msgs/msg/Empty", COMMANDS)
    came: list[float] = []

    def listen() -> None:
        while True:
            if aborts.receive(time.monotonic() + 1.0) is not None:
                came.append(time.monotonic())

    threading.Thread(target=listen, daemon=True).start()
    link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    due: list[tuple[str, float]] = []
    begin = last = time.monotonic()
    out = quiet = False
    while (now := time.monotonic()) < begin + seconds:
        phase = (now - begin) % 0.5
        away = 0.25 < phase < 0.25 + OUTSIDE
        if phase < SILENT and now > begin + 5.0:
            if not quiet:
                due.append(("stale", last + STALE))
            quiet = True
        else:
            quiet = False
            link.sendto(struct.pack("<8d", now, 0.0, 0.0, 1.52 if away else 1.5, 0.0, 0.0, 0.0, 1.0), ("127.0.0.1", PORT))
            last = time.monotonic()
            if away and not out:
                due.append(("left", last))
            out = away
        time.sleep(1.0 / RATE)
    time.sleep(1.0)
    for kind, when in due:
        print(kind, when, *[value for value in came if when - 0.02 <= value < when + 0.2][:1])
    print("came", len(came))


def main() -> None:
    """Print delays by kind, and how many never came."""
    if sys.argv[1:2] == ["--send"]:
        send(float(sys.argv[2]))
        return
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    burners = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    os.environ["ROS_DOMAIN_ID"] = str(DOMAIN)
    print(f"{os.cpu_count()} processors, {burners} burners, load {os.getloadavg()[0]:.1f}")
    burn = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(burners)]
    sender = None
    try:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "camera.toml").write_text(CAMERA)
            sender = subprocess.Popen(
                [sys.executable, __file__, "--send", str(seconds + 30.0)], stdout=subprocess.PIPE, text=True
            )
            box = (-1.0, -1.0, 1.0, 1.0, 1.0, 1.51)
            sensors, out = (f"camera={folder}/camera.toml:wide",), Path(folder) / "run"
            config = LoopConfig(f"udp:{PORT}", "hall", sensors, "ros2", out, safety=box, duration=seconds, wait=60.0)
            said: list[str] = []
            result = serve_poses(config, said.append)
            ended = time.monotonic()
            told, _ = sender.communicate()
    finally:
        for process in (*burn, *filter(None, [sender])):
            process.kill()
            process.wait()
    rows = [line.split() for line in told.splitlines() if not line.startswith("came")]
    rows = [row for row in rows if ended - seconds + 1.0 < float(row[1]) < ended - 0.5]
    for kind in ("stale", "left"):
        found = [1e3 * (float(row[2]) - float(row[1])) for row in rows if row[0] == kind and len(row) > 2]
        missing = sum(row[0] == kind and len(row) < 3 for row in rows)
        if found:
            low, p99 = np.percentile(found, (50.0, 99.0))
            late = sum(value > 20.0 for value in found)
            print(f"{kind}: {len(found)} aborts, median {low:.1f}, p99 {p99:.1f}, most {max(found):.1f} ms;"
                  f" {late} later than 20 ms; {missing} never came")  # fmt: skip
    printed = sum(sentence.startswith("Abort") for sentence in said)
    for row in getattr(result, "abort_latency", []):
        print(f"as told: median {1e3 * row.median:.1f}, p99 {1e3 * row.p99:.1f}, most {1e3 * row.most:.1f} ms")
    print(*result.notes, sep="\n")
    print(f"frames {result.frames}, aborts printed {printed}, in the summary {len(result.aborts)}")


if __name__ == "__main__":
    main()
