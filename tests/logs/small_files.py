"""Small log files of every format, written byte by byte, so that no reader is tested by its own idea of a format."""

from __future__ import annotations

import sqlite3
import struct
import zlib
from pathlib import Path

import numpy as np


def crazyflie_file(version: int = 2, records: int = 20) -> bytes:
    """Two interleaved event types: 3 gyro and 3 accelerometer values with 2 motors, and a pose by radio every fifth time."""
    head = struct.pack("<BHH", 0xBC, version, 2)
    loop = ["gyro.x(f)", "gyro.y(f)", "gyro.z(f)", "acc.x(f)", "acc.y(f)", "acc.z(f)", "motor.m1(H)", "motor.m2(H)"]
    pose = ["locSrv.x(f)", "locSrv.y(f)", "locSrv.z(f)"]
    for number, name, variables in ((7, "loop", loop), (9, "pose", pose)):
        head += struct.pack("<H", number) + name.encode() + b"\0" + struct.pack("<H", len(variables))
        head += b"".join(v.encode() + b"\0" for v in variables)
    stamp = "<HI" if version == 1 else "<HQ"
    scale = 1 if version == 1 else 1000
    body = b""
    for k in range(records):
        body += struct.pack(stamp, 7, (100 + 2 * k) * scale)
        body += struct.pack("<6f2H", 90.0 * k, -180.0, 0.5, 0.0, 0.25, 1.0, 16384, k)
        if k % 5 == 4:
            body += struct.pack(stamp, 9, (101 + 2 * k) * scale) + struct.pack("<3f", 1.0 * k, 2.0, 3.0)
    data = head + body
    return data + struct.pack("<I", zlib.crc32(data))


def ulog_message(kind: str, body: bytes) -> bytes:
    return struct.pack("<HB", len(body), ord(kind)) + body


def ulog_key(kind: str, text: str, value: bytes) -> bytes:
    key = text.encode()
    return ulog_message(kind, struct.pack("<B", len(key)) + key + value)


def ulog_file(samples: int = 40) -> bytes:
    """An armed quadrotor: gyro, attitude, motors (NaN before arming), nested esc report, parameters of geometry, a drop-out."""
    data = b"ULog\x01\x12\x35\x01" + struct.pack("<Q", 900_000)
    data += ulog_message("B", bytes(40))
    formats = [
        "vehicle_angular_velocity:uint64_t timestamp;uint64_t timestamp_sample;float[3] xyz;uint8_t[4] _padding0;",
        "vehicle_attitude:uint64_t timestamp;float[4] q;",
        "actuator_motors:uint64_t timestamp;uint64_t timestamp_sample;float[12] control;uint16_t reversible_flags;",
        "esc_report:uint64_t timestamp;int32_t esc_rpm;uint8_t esc_state;uint8_t[3] _padding0;",
        "esc_status:uint64_t timestamp;esc_report[4] esc;uint8_t esc_count;",
        "vehicle_local_position:uint64_t timestamp;float x;float y;float z;float vx;float vy;float vz;",
        "vehicle_status:uint64_t timestamp;uint8_t arming_state;uint8_t nav_state;",
    ]
    data += b"".join(ulog_message("F", text.encode()) for text in formats)
    data += ulog_key("I", "char[3] sys_name", b"PX4")
    for name, value in (("CA_ROTOR0_PX", 0.1), ("CA_ROTOR0_PY", 0.2), ("CA_ROTOR1_KM", -0.05), ("IMU_GYRO_CUTOFF", 80.0)):
        data += ulog_key("P", f"float {name}", struct.pack("<f", value))
    data += ulog_key("P", "int32_t CA_ROTOR_COUNT", struct.pack("<i", 2))
    names = [
        "vehicle_angular_velocity",
        "vehicle_attitude",
        "actuator_motors",
        "esc_status",
        "vehicle_local_position",
        "vehicle_status",
    ]
    for number, name in enumerate(names):
        data += ulog_message("A", struct.pack("<BH", 0, number) + name.encode())
    for k in range(samples):
        t = 1_000_000 + 4000 * k
        # Padding at the end is left out, as PX4 does.
        data += ulog_message("D", struct.pack("<HQQ3f", 0, t, t - 500, 0.1, 0.2, 0.3 + k))
        data += ulog_message("D", struct.pack("<HQ4f", 1, t, 1.0, 0.0, 0.0, 0.0))
        nan = float("nan")
        control = [nan] * 12 if k < 10 else [0.5, 0.25] + [nan] * 10
        data += ulog_message("D", struct.pack("<HQQ12fH", 2, t, t, *control, 0))
        report = b"".join(struct.pack("<QiB3x", t, rpm, 1) for rpm in (600, -1200, 0, 0))
        data += ulog_message("D", struct.pack("<HQ", 3, t) + report + b"\x04")
        data += ulog_message("D", struct.pack("<HQ6f", 4, t, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0))
        data += ulog_message("D", struct.pack("<HQBB", 5, t, 2 if k >= 10 else 1, 3))
        if k == 20:
            data += ulog_message("O", struct.pack("<H", 119))
            data += ulog_key("P", "float MC_ROLL_P", struct.pack("<f", 6.5))
            data += ulog_message("L", b"6" + struct.pack("<Q", t) + b"takeoff")
    return data


BLACKBOX_HEADERS = '"acc_1G",2048\n"motorOutput","158,2047"\n"motor_poles",14\n"blackbox_high_resolution",0\n'


def blackbox_text(headers: str = BLACKBOX_HEADERS, rows: int = 20) -> bytes:
    """A quadrotor at rest: gyro 90 deg/s about x, 1 g up, motors at half, eRPM 70."""
    names = ["loopIteration", "time (us)"]
    names += [f"gyroADC[{k}]" for k in range(3)] + [f"accSmooth[{k}]" for k in range(3)] + [f"motor[{k}]" for k in range(4)]
    names += ["eRPM[0]", "vbatLatest (V)", "flightModeFlags (flags)"]
    lines = [f"{k},{1_000_000 + 500 * k},90,0,0,0,0,2048,1102.5,158,2047,1102.5,70,16.8,ANGLE_MODE" for k in range(rows)]
    return (headers + ", ".join(names) + "\n" + "\n".join(lines) + "\n").encode()


EUROC_HEAD = "#timestamp [ns],w_RS_S_x [rad s^-1],w_RS_S_y [rad s^-1],w_RS_S_z [rad s^-1]"
EUROC_HEAD += ",a_RS_S_x [m s^-2],a_RS_S_y [m s^-2],a_RS_S_z [m s^-2]\n"


def euroc_text(rows: int = 10) -> bytes:
    lines = [f"{1403715273262142976 + 5_000_000 * k},0.1,0.2,0.3,9.0,0.1,-3.5\n" for k in range(rows)]
    return (EUROC_HEAD + "".join(lines)).encode()


def tum_text(rows: int = 10) -> bytes:
    return ("# stamp x y z qx qy qz qw\n" + "".join(f"{100.5 + 0.05 * k:.6f} 1 2 {k} 0 0 0 1\n" for k in range(rows))).encode()


def imu_cdr(sec: int, nanosec: int, rate: float, force: float) -> bytes:
    """sensor_msgs/msg/Imu by hand: head, stamp, "base" with its zero byte, padding to 8, then 37 doubles."""
    text = b"base\0"
    body = struct.pack("<iI", sec, nanosec) + struct.pack("<I", len(text)) + text
    body += bytes(-len(body) % 8)
    body += struct.pack("<4d", 0.0, 0.0, 0.0, 1.0) + struct.pack("<9d", *[0.0] * 9)
    body += struct.pack("<3d", rate, 0.0, 0.0) + struct.pack("<9d", *[0.0] * 9)
    body += struct.pack("<3d", 0.0, 0.0, force) + struct.pack("<9d", *[0.0] * 9)
    return b"\0\1\0\0" + body


def mcap_record(opcode: int, body: bytes) -> bytes:
    return struct.pack("<BQ", opcode, len(body)) + body


def mcap_text(text: str) -> bytes:
    return struct.pack("<I", len(text.encode())) + text.encode()


def mcap_records(messages: int = 10) -> bytes:
    """Schema, channel and Imu messages at 100 Hz, received 20 ms late."""
    inner = mcap_record(
        3, struct.pack("<H", 1) + mcap_text("sensor_msgs/msg/Imu") + mcap_text("ros2msg") + struct.pack("<I", 0)
    )
    inner += mcap_record(4, struct.pack("<HH", 3, 1) + mcap_text("/imu") + mcap_text("cdr") + struct.pack("<I", 0))
    for k in range(messages):
        stamp = 5_000_000_000 + 10_000_000 * k
        head = struct.pack("<HIQQ", 3, k, stamp + 20_000_000, stamp)
        inner += mcap_record(5, head + imu_cdr(stamp // 10**9, stamp % 10**9, 0.1 * k, 9.81))
    return inner


def mcap_file(messages: int = 10, compression: str = "") -> bytes:
    """The same in one chunk."""
    inner = packed = mcap_records(messages)
    if compression == "zstd":
        import zstandard

        packed = zstandard.ZstdCompressor().compress(inner)
    elif compression == "lz4":
        import lz4.frame

        packed = lz4.frame.compress(inner)
    chunk = struct.pack("<QQQI", 0, 0, len(inner), zlib.crc32(inner)) + mcap_text(compression)
    chunk += struct.pack("<Q", len(packed)) + packed
    data = b"\x89MCAP0\r\n" + mcap_record(1, mcap_text("ros2") + mcap_text("test")) + mcap_record(6, chunk)
    return data + mcap_record(15, struct.pack("<I", 0)) + mcap_record(2, struct.pack("<QQI", 0, 0, 0)) + b"\x89MCAP0\r\n"


def bag_file(path: Path, messages: int = 10) -> bytes:
    """The same messages in the tables of a ROS 2 bag."""
    base = sqlite3.connect(path)
    base.execute(
        "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT, serialization_format TEXT,"
        " offered_qos_profiles TEXT)"
    )
    base.execute("CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER, data BLOB)")
    base.execute("INSERT INTO topics VALUES (3, '/imu', 'sensor_msgs/msg/Imu', 'cdr', '')")
    for k in range(messages):
        stamp = 5_000_000_000 + 10_000_000 * k
        data = imu_cdr(stamp // 10**9, stamp % 10**9, 0.1 * k, 9.81)
        base.execute("INSERT INTO messages(topic_id, timestamp, data) VALUES (3, ?, ?)", (stamp + 20_000_000, data))
    base.commit()
    base.close()
    return path.read_bytes()


def event_archive(path: Path) -> bytes:
    """Crazyflie events as arrays."""
    t = np.arange(50) * 0.002
    names = np.array(["gyro.x", "gyro.y", "gyro.z", "pm.vbatMV"])
    data = np.tile(np.array([180.0, 0.0, -90.0, 3700.0], np.float32), (50, 1))
    np.savez(path, **{"fixedFrequency/t": t, "fixedFrequency/names": names, "fixedFrequency/data": data})
    return path.read_bytes()


def csv_table() -> bytes:
    """Gyro in deg/s and FRD, stamps in ms."""
    return ("t,wx,wy,wz\n" + "".join(f"{2 * k},180,-90,{k}\n" for k in range(10))).encode()


def parquet_table(path: Path) -> bytes:
    """The same table in Parquet."""
    import pyarrow as pa
    from pyarrow import parquet

    k = np.arange(10)
    parquet.write_table(pa.table({"t": 2 * k, "wx": np.full(10, 180.0), "wy": np.full(10, -90.0), "wz": 1.0 * k}), path)
    return path.read_bytes()


def own_archive(path: Path) -> bytes:
    """What `airworthy logs convert` makes of the small ULog."""
    from airworthy.logs import read_log, write_log

    source = path.with_suffix(".ulg")
    source.write_bytes(ulog_file())
    write_log(read_log(source), path)
    return path.read_bytes()


CSV_MAPPING = 'gyro = {columns = ["wx", "wy", "wz"], unit = "deg/s", frame = "frd", time = "t", time_unit = "ms"}\n'


def every_format(folder: Path) -> dict[str, bytes]:
    """One file of every format by a name, with the ending it usually has."""
    return {
        "crazyflie": crazyflie_file(),
        "log.ulg": ulog_file(),
        "blackbox.csv": blackbox_text(),
        "euroc.csv": euroc_text(),
        "tum.txt": tum_text(),
        "plain.mcap": mcap_file(),
        "zstd.mcap": mcap_file(compression="zstd"),
        "lz4.mcap": mcap_file(compression="lz4"),
        "bag.db3": bag_file(folder / "made.db3"),
        "events.npz": event_archive(folder / "made.npz"),
        "table.csv": csv_table(),
        "own.npz": own_archive(folder / "own.npz"),
        "table.parquet": parquet_table(folder / "made.parquet"),
    }
