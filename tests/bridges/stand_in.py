"""Stand-ins for three autopilots: programs of their own that speak the protocols and fly, without a line of the package.

    python stand_in.py px4|ardupilot|betaflight PORT [--die SECONDS] [--mute SECONDS] [--garbage]

Every packet is laid out by hand here, from the protocols' documents, so that both sides cannot make the same mistake.
"""

import argparse
import json
import os
import socket
import struct
import time

import numpy as np

MASS, GRAVITY, THRUST_MAX = 1.656, 9.81, 80.0  # of the vehicle x500
ARM, TORQUE = 0.174, 0.025  # [m], [N m / N]
INERTIA = np.array([0.0217, 0.0217, 0.0401])
HOME = (47.397742, 8.545594, 488.0)
SQUARE = [(0.0, (0, 0, 0)), (1.5, (1.5, 0, 0)), (4.0, (1.5, 1.5, 0)), (6.5, (0, 1.5, 0)), (9.0, (0, 0, 0))]


def matrix(w, x, y, z):
    return np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ])  # fmt: skip


def mixed(thrust, moment):
    """Commands in the order front right, rear left, front left, rear right; FRD moments."""
    roll, pitch, yaw = moment[0] / (4 * ARM), moment[1] / (4 * ARM), moment[2] / (4 * TORQUE)
    each = [thrust / 4 - roll + pitch + yaw, thrust / 4 + roll - pitch + yaw, thrust / 4 + roll + pitch - yaw,
            thrust / 4 - roll - pitch - yaw]  # fmt: skip
    return np.sqrt(np.clip(np.array(each) / (THRUST_MAX / 4), 0.0, 1.0))


def attitude_moment(turn, down_wanted, rate, yaw_error):
    """Moment (FRD) that brings the body's down axis to `down_wanted`, NED."""
    error = turn.T @ np.cross(turn[:, 2], down_wanted)
    wanted = np.array([7.0 * error[0], 7.0 * error[1], np.clip(2.0 * yaw_error, -0.5, 0.5)])
    return INERTIA * 18.0 * (wanted - rate)


class Hover:
    """Holds and moves in NED about the first position it sees."""

    def __init__(self, script):
        self.script, self.start, self.yaw, self.begin = script, None, 0.0, 0.0

    def commands(self, now, position, velocity, attitude, rate):
        turn = matrix(*attitude)
        yaw = np.arctan2(turn[1, 0], turn[0, 0])
        if self.start is None:
            self.start, self.yaw, self.begin = np.array(position), yaw, now
        offset = [place for begin, place in self.script if now - self.begin >= begin][-1]
        push = 2.0 * np.clip(self.start + offset - position, -2, 2) - 2.8 * np.array(velocity)
        force = push - np.array([0, 0, GRAVITY])
        error = (self.yaw - yaw + np.pi) % (2 * np.pi) - np.pi
        moment = attitude_moment(turn, -force / np.linalg.norm(force), np.array(rate), error)
        return mixed(MASS * max(-force @ turn[:, 2], 1.0), moment)


def crc(data, seed):
    value = 0xFFFF
    for byte in [*data, seed]:
        byte ^= value & 0xFF
        byte = (byte ^ (byte << 4)) & 0xFF
        value = (value >> 8) ^ (byte << 8) ^ (byte << 3) ^ (byte >> 4)
    return struct.pack("<H", value & 0xFFFF)


class End:
    """When to die or to fall silent, in time of the simulation."""

    def __init__(self, options):
        self.die, self.mute = options.die, options.mute

    def check(self, now):
        if now > self.die:
            os._exit(9)  # like a kill: nothing is closed or said
        while now > self.mute:
            time.sleep(0.05)


def px4(options):
    link = socket.create_connection(("127.0.0.1", options.port))
    hover, end, held = Hover(SQUARE if options.square else SQUARE[:1]), End(options), b""
    truth, count = None, 0
    while True:
        data = link.recv(65536)
        if not data:
            return
        held += data
        while len(held) >= 12 and len(held) >= 12 + held[1]:
            length, number = held[1], int.from_bytes(held[7:10], "little")
            payload, held = held[10 : 10 + length], held[12 + length :]
            if number == 115:  # HIL_STATE_QUATERNION
                payload = payload.ljust(64, b"\0")
                values = struct.unpack("<Q4f3f3i3h2H3h", payload)
                north = np.radians(values[8] / 1e7 - HOME[0]) * 6367000.0
                east = np.radians(values[9] / 1e7 - HOME[1]) * 6378137.0 * np.cos(np.radians(HOME[0]))
                position = np.array([north, east, HOME[2] - values[10] / 1e3])
                truth = (position, np.array(values[11:14]) / 100.0, values[1:5])
            if number != 107:  # HIL_SENSOR
                continue
            payload = payload.ljust(65, b"\0")
            stamp, *sensors = struct.unpack("<Q13fIB", payload)
            count += 1
            now = stamp / 1e6
            end.check(now)
            if count < 20:  # its drivers need some samples
                continue
            armed = now > 0.5
            commands = hover.commands(now, *truth, sensors[3:6]) if armed and truth else np.zeros(4)
            body = struct.pack("<QQ16fB", stamp, 1, *commands, *([0.0] * 12), 129 if armed else 1)
            head = bytes([len(body), 0, 0, count & 0xFF, 1, 1, 93, 0, 0])
            noise = b"\xfd\x03rubbish" if options.garbage else b""
            link.sendall(noise + b"\xfd" + head + body + crc(head + body, 47))


def ardupilot(options):
    link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    link.settimeout(1.0)
    to = ("127.0.0.1", options.port)
    hover, end, frame, pulses = Hover(SQUARE if options.square else SQUARE[:1]), End(options), 0, [1000] * 4
    while True:
        packet = struct.pack("<HHI16H", 18458, 400, frame, *pulses, *([0] * 12))
        if options.garbage and frame % 7 == 3:
            link.sendto(packet[:-5], to)
            link.sendto(struct.pack("<HHI16H", 4711, 400, frame, *([2000] * 16)), to)
            link.sendto(struct.pack("<HHI16H", 18458, 400, max(frame - 1, 0), *([2000] * 16)), to)
        link.sendto(packet, to)
        while True:
            try:
                line = link.recv(65536)
            except TimeoutError:  # as ArduCopter: the same frame once more, every second
                link.sendto(packet, to)
                continue
            state = json.loads(line)
            if not options.garbage or state["timestamp"] != getattr(hover, "last", None):
                break
        now = state["timestamp"]
        slow = now - getattr(hover, "last", now) > 1.0 / 720.0  # "Gyro 0 rate 400Hz < loop ratex1.8 720Hz", and it does not arm
        hover.last = now
        end.check(now)
        frame += 1
        if options.restart and now > options.restart:  # a new program: its frames count from 0, from a port of its own
            frame, options.restart, pulses = 0, 0.0, [1000] * 4
            link.close()
            link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            link.settimeout(1.0)
            continue
        if now > 0.5 and not slow:
            u = hover.commands(now, np.array(state["position"]), state["velocity"], state["quaternion"], state["imu"]["gyro"])
            pulses = [1000 + round(1000 * float(value)) for value in u]


def betaflight(options):
    state_link, rc_link, out = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3))
    state_link.bind(("127.0.0.1", options.port + 1))
    rc_link.bind(("127.0.0.1", options.port + 2))
    rc_link.setblocking(False)
    end, channels, last = End(options), (1500, 1500, 1000, 1500) + (1000,) * 12, -1.0
    while True:
        values = struct.unpack("<18d", state_link.recv(4096))
        while True:
            try:
                channels = struct.unpack("<d16H", rc_link.recv(4096))[1:]
            except BlockingIOError:
                break
        now = values[0]
        if now < last:
            continue
        last = now
        end.check(now)
        # As the firmware turns them: gyroscope and attitude to forward-left-up in north-west-up; then to FRD and NED.
        rate = np.array([values[1], values[2], values[3] if options.legacy or options.old else -values[3]])
        w, x, y, z = values[7:11]
        if options.old:  # until 2025.12: forward-right-down in north-east-down as it is
            y, z = -y, -z
        elif not options.legacy:
            y, z, k = -y, -z, np.sqrt(0.5)
            w, x, y, z = k * (w - z), k * (x - y), k * (y + x), k * (z + w)
        turn = matrix(w, x, -y, -z)
        if now < 0.5:
            assert abs(-values[6] - 9.81) < 0.5, f"at rest a level copter measures one g upwards, not {values}"
        # Angles follow the rates' curve since 4.5: 70 deg/s at the middle, 670 at the end, worth 60 degrees.
        sticks = [(channels[k] - 1500) / 500 for k in (0, 1, 3)]
        rates = [stick * 70.0 + 600.0 * stick * abs(stick) for stick in sticks]
        roll, pitch = (np.radians(60.0) * asked / 670.0 for asked in rates[:2])
        throttle, armed = (channels[2] - 1000) / 1000, channels[4] > 1700
        heading = np.arctan2(turn[1, 0], turn[0, 0])
        # Stick right: roll right; stick forward: nose down.
        c, s = np.cos(heading), np.sin(heading)
        up = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]) @ np.array([np.tan(pitch), np.tan(roll), -1.0])
        moment = attitude_moment(turn, -up / np.linalg.norm(up), rate, np.radians(rates[2]) / 2.0)
        share = 0.055 + 0.945 * throttle
        if options.crossed:
            moment = moment * np.array([-1.0, 1.0, 1.0])
        u = mixed(THRUST_MAX * share * share, moment) if armed and throttle > 0.05 else np.full(4, 0.055 if armed else 0.0)
        if options.garbage:
            out.sendto(b"short", ("127.0.0.1", options.port))
        # Its own numbers: rear right, front right, rear left, front left.
        out.sendto(struct.pack("<4f", *(u if options.old else u[[3, 0, 1, 2]])), ("127.0.0.1", options.port))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("px4", "ardupilot", "betaflight"))
    parser.add_argument("port", type=int)
    parser.add_argument("--die", type=float, default=np.inf)
    parser.add_argument("--mute", type=float, default=np.inf)
    parser.add_argument("--restart", type=float, default=0.0)
    parser.add_argument("--garbage", action="store_true")
    parser.add_argument("--square", action="store_true")
    parser.add_argument("--legacy", action="store_true")
    parser.add_argument("--old", action="store_true")
    parser.add_argument("--crossed", action="store_true")
    chosen = parser.parse_args()
    {"px4": px4, "ardupilot": ardupilot, "betaflight": betaflight}[chosen.kind](chosen)
