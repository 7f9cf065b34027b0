"""Logs of hours, written in chunks: what a test of memory reads."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
from tests.logs.small_files import ulog_message

_CHUNK = 60.0
"""Seconds that are written at once."""


def _motion(time: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Gyro (n, 3), specific force (n, 3) in FLU, quaternions w, x, y, z of FLU in ENU, and commands (n, 4).

    A vehicle that rests for ten seconds and then rocks about x and moves up and down.
    """
    flying = time > 10.0
    zero = np.zeros_like(time)
    angle = np.where(flying, 0.3 * np.sin(2.0 * (time - 10.0)), 0.0)
    rate = np.where(flying, 0.6 * np.cos(2.0 * (time - 10.0)), 0.0)
    noise = 0.01 * np.sin(977.0 * time)
    push = np.where(flying, 1.5 * np.sin(3.0 * time), 0.0)
    gyro = np.stack([rate + noise, noise, -noise], axis=1)
    force = np.stack([noise, (9.81 + push) * np.sin(angle), (9.81 + push) * np.cos(angle)], axis=1)
    attitude = np.stack([np.cos(0.5 * angle), np.sin(0.5 * angle), zero, zero], axis=1)
    command = np.where(flying, 0.5 + 0.05 * np.sin(3.0 * time), 0.0)[:, None] * np.ones(4)
    return gyro, force, attitude, command


def _row(layout: list[tuple[str, str]], name: str) -> list[tuple[str, str]]:
    """A message of ULog with its head."""
    return [(f"{name}_size", "<u2"), (f"{name}_kind", "u1"), (f"{name}_id", "<u2"), *[(f"{name}_{k}", t) for k, t in layout]]


def write_ulog(path: Path, seconds: float) -> None:
    """ULog: IMU and motors at 250 Hz, attitude at 125 Hz."""
    formats = (
        ("sensor_combined", "uint64_t timestamp;float[3] gyro_rad;float[3] accelerometer_m_s2;", "<u8 (3,)<f4 (3,)<f4"),
        ("actuator_motors", "uint64_t timestamp;uint64_t timestamp_sample;float[12] control;", "<u8 <u8 (12,)<f4"),
        ("vehicle_attitude", "uint64_t timestamp;float[4] q;", "<u8 (4,)<f4"),
    )
    head = b"ULog\x01\x12\x35\x01" + struct.pack("<Q", 0) + ulog_message("B", bytes(40))
    head += b"".join(ulog_message("F", f"{name}:{text}".encode()) for name, text, _ in formats)
    for number, (name, _, _) in enumerate(formats):
        head += ulog_message("A", struct.pack("<BH", 0, number) + name.encode())
    fields: list[tuple[str, str]] = []
    # Two frames of 4 ms, an attitude after the first.
    for index, number in enumerate((0, 1, 2, 0, 1)):
        kinds = formats[number][2].split(" ")
        fields += _row([(f"v{k}", kind) for k, kind in enumerate(kinds)], f"m{index}")
    row = np.dtype(fields)
    flip = np.array([1.0, -1.0, -1.0])
    with path.open("wb") as file:
        file.write(head)
        for start in np.arange(0.0, seconds, _CHUNK):
            time = start + np.arange(0.0, min(_CHUNK, seconds - start), 0.004)
            time = time[: len(time) // 2 * 2]
            gyro, force, attitude, command = _motion(time)
            block = np.zeros(len(time) // 2, row)
            stamps = np.rint(1e6 * time).astype(np.uint64) + 1_000_000
            for index, (number, part) in enumerate(((0, 0), (1, 0), (2, 0), (0, 1), (1, 1))):
                name, every = f"m{index}", slice(part, None, 2)
                size = np.dtype(",".join(formats[number][2].split(" "))).itemsize + 2
                block[f"{name}_size"], block[f"{name}_kind"], block[f"{name}_id"] = size, ord("D"), number
                block[f"{name}_v0"] = stamps[every]
                if number == 0:
                    block[f"{name}_v1"], block[f"{name}_v2"] = gyro[every] * flip, force[every] * flip
                elif number == 1:
                    block[f"{name}_v1"] = stamps[every]
                    block[f"{name}_v2"] = np.nan
                    block[f"{name}_v2"][:, :4] = command[every]
                else:
                    # FLU in ENU to FRD in NED.
                    w, x, y, z = attitude[every].T
                    turn = np.sqrt(0.5)
                    block[f"{name}_v1"] = np.stack(
                        [turn * (w - z), turn * (x + y), turn * (y - x) * -1.0, -turn * (w + z)], axis=1
                    )
            file.write(block.tobytes())


def write_crazyflie(path: Path, seconds: float, rate: float) -> None:
    """Micro-SD log with six floats and four commands a record."""
    names = [f"{kind}.{axis}(f)" for kind in ("gyro", "acc") for axis in "xyz"] + [f"motor.m{k}(H)" for k in range(1, 5)]
    head = struct.pack("<BHHH", 0xBC, 2, 1, 0) + b"fixedFrequency\0" + struct.pack("<H", len(names))
    head += b"".join(name.encode() + b"\0" for name in names)
    row = np.dtype([("id", "<u2"), ("t", "<u8"), ("v", "<f4", 6), ("m", "<u2", 4)])
    total = zlib.crc32(head)
    with path.open("wb") as file:
        file.write(head)
        for start in np.arange(0.0, seconds, _CHUNK):
            time = start + np.arange(0.0, min(_CHUNK, seconds - start), 1.0 / rate)
            gyro, force, _, command = _motion(time)
            block = np.zeros(len(time), row)
            block["t"] = np.rint(1e6 * time)
            block["v"] = np.concatenate([np.degrees(gyro), force / 9.80665], axis=1)
            block["m"] = 65535.0 * command
            data = block.tobytes()
            total = zlib.crc32(data, total)
            file.write(data)
        file.write(struct.pack("<I", total))


def write_blackbox(path: Path, seconds: float, rate: float) -> None:
    """Blackbox as CSV, whole microseconds."""
    from tests.logs.small_files import BLACKBOX_HEADERS

    names = ["loopIteration", "time (us)"] + [f"gyroADC[{k}]" for k in range(3)] + [f"accSmooth[{k}]" for k in range(3)]
    names += [f"motor[{k}]" for k in range(4)]
    with path.open("w") as file:
        file.write(BLACKBOX_HEADERS + ", ".join(names) + "\n")
        for start in np.arange(0.0, seconds, 5.0):
            time = start + np.arange(0.0, min(5.0, seconds - start), 1.0 / rate)
            gyro, force, _, command = _motion(time)
            table = np.column_stack(
                [
                    np.rint(time * rate),
                    np.rint(1e6 * time),
                    np.rint(np.degrees(gyro)),
                    np.rint(force / 9.80665 * 2048.0),
                    np.rint(158.0 + 1889.0 * command),
                ]
            )
            np.savetxt(file, table, fmt="%d", delimiter=",")
