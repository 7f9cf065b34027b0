"""A vehicle on topics for a long time: is memory flat, how late do steps begin, how even do samples come, are pictures skipped?

    python benchmarks/soak.py [SECONDS] [FRAMES_PER_SECOND] [SCENE] [WIDTHxHEIGHT]

Serves flightgoggles in SCENE (hall) over DDS: inertial sensor, odometry, tf and clock at 960 Hz, colours of 640x360, which
another process renders beside them. A third process takes inertial samples and pictures, counts those whose stamps are missing,
measures how unevenly they come, and says ten times a second that the vehicle is to stay. Memory of the first two is printed
every minute; SECONDS are simulated, at wall-clock time as long as the machine keeps up.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from airworthy.bridges.clock import Thinned, punctual
from airworthy.bridges.priority import FirstInLine
from airworthy.bridges.topic_server import TopicServeConfig, serve_topics

DOMAIN, RATE = 78, 960.0
CAMERA = """
[wide]
kind = "camera"
projection = {{ model = "pinhole", width = {width}, height = {height}, fx = 463.0, fy = 463.0, cx = {cx}, cy = {cy} }}
rate = {rate}
channels = ["rgb"]
"""


def listen() -> None:
    """Take what comes until nothing has for 30 s, and command no velocity; print what there was."""
    from airworthy.bridges.ros.bus import COMMANDS, SENSORS, Qos
    from airworthy.bridges.ros.dds import DdsBus
    from airworthy.bridges.ros.types import ros_types

    bus, deep = DdsBus(DOMAIN), Qos(reliable=False, depth=96)
    imu = bus.subscriber("/uav/sensors/imu", "sensor_msgs/msg/Imu", deep)
    pictures = bus.subscriber("/uav/camera/wide/image_rect_color", "sensor_msgs/msg/Image", SENSORS)
    stay = bus.publisher("/uav/input/velocity", "geometry_msgs/msg/TwistStamped", COMMANDS)
    zero, again = ros_types().packed("geometry_msgs/msg/TwistStamped", {}), 0.0
    count = frames = missing = 0
    last: int | None = None
    ages: Thinned[float] = Thinned(200_000)
    quiet = time.monotonic() + 120.0
    punctual().__enter__()
    first = FirstInLine(inherited=True).__enter__()  # whoever measures must not be what is late
    while time.monotonic() < quiet:
        if time.monotonic() > again:
            stay.send(zero)
            again = time.monotonic() + 0.1
        data = imu.receive(time.monotonic() + 0.05)
        if data is not None:
            came = time.monotonic()
            stamp = ros_types().unpacked("sensor_msgs/msg/Imu", data).header.stamp
            step = round((stamp.sec + 1e-9 * stamp.nanosec) * RATE)
            missing += 0 if last is None else step - last - 1
            last, count, quiet = step, count + 1, came + 30.0
            ages.add(came - step / RATE)
        while pictures.receive(0.0) is not None:
            frames += 1
    print(f"taken: {count:,} inertial samples, {missing:,} missing; {frames:,} pictures", flush=True)
    if ages.kept:
        # Against the median, not the earliest: clocks of both are the same, and what is asked for is how even they come.
        off = 1e3 * np.abs(np.array(ages.kept) - np.median(ages.kept))
        median, p99, most = np.percentile(off, 50.0), np.percentile(off, 99.0), off.max()
        line = "without real-time priority" if first.refused else "at real-time priority"
        print(f"jitter at the listener, {line}: median {median:.3f} ms, p99 {p99:.3f} ms, most {most:.1f} ms", flush=True)


def resident(process: int | str = "self") -> float:
    """Memory of a process [MB]; 0 of one that is gone."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def memory_text() -> str:
    """Memory of this process, and of the one that renders."""
    children = "".join(
        f" + {resident(child.pid):.1f} MB {child.name}" for child in multiprocessing.active_children() if child.pid
    )
    return f"{resident():.1f} MB{children}"


def main() -> None:
    """Print memory every minute, then lateness, and what arrived."""
    if sys.argv[1:2] == ["--listen"]:
        listen()
        return
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 600.0
    rate = float(sys.argv[2]) if len(sys.argv) > 2 else 10.0
    scene = sys.argv[3] if len(sys.argv) > 3 else "hall"
    width, height = (int(side) for side in (sys.argv[4] if len(sys.argv) > 4 else "640x360").split("x"))
    os.environ["ROS_DOMAIN_ID"] = str(DOMAIN)
    seen = f"{scene}, {rate:g} pictures of {width} x {height} a second"
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, {seconds:g} s, {seen}", flush=True)
    listener = subprocess.Popen([sys.executable, __file__, "--listen"])
    begin, over = time.monotonic(), threading.Event()

    def watch() -> None:
        while not over.wait(60.0):
            print(f"{time.monotonic() - begin:6.0f} s: {memory_text()}, load {os.getloadavg()[0]:.1f}", flush=True)

    threading.Thread(target=watch, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "camera.toml").write_text(
            CAMERA.format(rate=rate, width=width, height=height, cx=width / 2, cy=height / 2)
        )
        sensors = (f"wide={folder}/camera.toml:wide",)
        config = TopicServeConfig("ros2", scene=scene, sensors=sensors, level="velocity", rate=RATE, duration=seconds)
        try:
            served = serve_topics(config, lambda sentence: print(sentence, flush=True))
        finally:
            over.set()
    spent, times = time.monotonic() - begin, os.times()
    print(f"{served.seconds:.1f} s in {spent:.1f} s of wall-clock and {times.user + times.system:.1f} s of processor time")
    print(f"{served.lateness.sentence()}; memory at the end {memory_text()}")
    print("\n".join(served.notes), flush=True)
    listener.wait()


if __name__ == "__main__":
    main()
