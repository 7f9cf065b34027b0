"""Readers against files written byte by byte, and against independent decoders on real ones."""

from __future__ import annotations

import re
import sqlite3
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from tests.logs.small_files import (
    CSV_MAPPING,
    bag_file,
    blackbox_text,
    crazyflie_file,
    csv_table,
    euroc_text,
    event_archive,
    mcap_file,
    tum_text,
    ulog_file,
    ulog_message,
)

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.logs import KINDS, ReadOptions, guess_mapping, read_log, table_of, write_log
from airworthy.logs.mapping import ColumnMapping
from airworthy.logs.writing.mcap_writer import McapWriter


def saved(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("version", [1, 2])
def test_crazyflie_small(tmp_path: Path, version: int) -> None:
    log = read_log(saved(tmp_path, "log", crazyflie_file(version)))
    assert log.notes == ()
    assert log.source.format == "Crazyflie micro-SD"
    gyro = log.stream("gyro")
    assert np.allclose(gyro.time, 0.002 * np.arange(20), atol=1e-12)
    assert np.allclose(gyro.values[3], [np.deg2rad(270.0), -np.pi, np.deg2rad(0.5)], rtol=1e-7)
    assert np.allclose(log.stream("accelerometer").values, [0.0, 0.25 * 9.81, 9.81])
    commands = log.stream("motor_command")
    assert commands.stamp == "held"
    assert commands.values[5].tolist() == [0.25, 5 / 65536]
    pose = log.stream("position:capture")
    assert np.allclose(pose.time, 0.009 + 0.01 * np.arange(4))
    assert pose.values[1].tolist() == [9.0, 2.0, 3.0]
    assert log.raw("loop.motor.m1").values.dtype == np.uint16


def independent(data: bytes) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Another decoder of a file with one event type of version 2."""
    magic, version, types, _ = struct.unpack_from("<BHHH", data)
    assert (magic, version, types) == (0xBC, 2, 1)
    end = data.index(b"\0", 7)
    (count,) = struct.unpack_from("<H", data, end + 1)
    at, names, layout = end + 3, [], "<HQ"
    for _ in range(count):
        end = data.index(b"\0", at)
        text = data[at:end].decode()
        names.append(text[:-3])
        layout += text[-2]
        at = end + 1
    rows = np.array(list(struct.iter_unpack(layout, data[at:-4])))
    assert zlib.crc32(data[:-4]) == struct.unpack("<I", data[-4:])[0]
    return names, rows[:, 1], rows[:, 2:]


@pytest.mark.parametrize(("name", "count", "last"), [("log10", 50496, 50.007), ("log15", 62774, 62.188)])
def test_crazyflie_shared(data_dir: Path, name: str, count: int, last: float) -> None:
    path = data_dir / "flights/crazyflie_sysid" / name
    names, time, rows = independent(path.read_bytes())
    log = read_log(path)
    assert log.notes == ()
    assert len(time) == count == len(log.stream("gyro").time)
    assert log.source.start_ns == int(time[0]) * 1000
    assert np.array_equal(np.rint(log.stream("gyro").time * 1e6), time - time[0])
    assert abs(log.duration - last) < 1e-3
    for k, variable in enumerate(names):
        assert np.array_equal(log.raw(f"fixedFrequency.{variable}").values.astype(np.float64), rows[:, k])
    # The two gaps and steps of the specification: a period of 0.989 ms, and 1 and 6 gaps of 6 to 7 ms.
    assert log.stream("gyro").quality.gaps == {"log10": 1, "log15": 6}[name]
    assert log.stream("gyro").quality.rate == pytest.approx(1000 / 0.989, rel=1e-4)


def test_ulog_small(tmp_path: Path) -> None:
    log = read_log(saved(tmp_path, "a.ulg", ulog_file()))
    gyro = log.stream("gyro")
    assert np.allclose(gyro.values[4], [0.1, -0.2, -4.3], rtol=1e-6)
    assert gyro.filter is not None
    assert (gyro.filter.order, gyro.filter.cutoff) == (2, 80.0)
    # Stamps are those of the sample, 0.5 ms before the message; the log begins there.
    assert np.allclose(gyro.time, 0.004 * np.arange(40), atol=1e-12)
    assert log.source.start_ns == 999_500_000
    motors = log.stream("motor_command")
    assert motors.values.shape == (40, 2)
    assert np.isnan(motors.values[:10]).all()
    assert motors.values[10].tolist() == [0.5, 0.25]
    assert np.allclose(log.stream("motor_speed").values[0], [20 * np.pi, -40 * np.pi])
    # Identity in FRD -> NED looks north: in ENU that is a quarter turn about z.
    assert np.allclose(np.abs(log.stream("attitude").values[0]), [0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)])
    assert log.stream("position").values[0].tolist() == [2.0, 1.0, -3.0]
    assert log.stream("velocity").values[0].tolist() == [5.0, 4.0, -6.0]
    assert log.geometry is not None
    assert np.allclose(log.geometry.position, [[0.1, -0.2, 0.0], [0.0, 0.0, 0.0]])
    assert np.allclose(log.geometry.axis, [[0.0, 0.0, 1.0]] * 2)
    assert log.geometry.spin.tolist() == [1.0, -1.0]
    kinds = [(e.kind, e.detail) for e in log.events]
    for expected in (
        ("disarmed", ""),
        ("armed", ""),
        ("dropout", "119 ms"),
        ("parameter", "MC_ROLL_P = 6.5"),
        ("message", "takeoff"),
    ):
        assert expected in kinds
    armed = next(e for e in log.events if e.kind == "armed")
    assert armed.time == pytest.approx(0.0405)
    assert log.parameters["info.sys_name"] == "PX4"
    assert log.raw("esc_status.esc.esc_rpm").values[0].tolist() == [600, -1200, 0, 0]


def test_ulog_magnetometer_is_in_tesla(tmp_path: Path) -> None:
    """Half a gauss forward, a tenth right, 0.2 down are 50, -10 and -20 uT forward, left, up."""
    text = "vehicle_magnetometer:uint64_t timestamp;float[3] magnetometer_ga;"
    data = ulog_file(2) + ulog_message("F", text.encode())
    data += ulog_message("A", struct.pack("<BH", 0, 50) + b"vehicle_magnetometer")
    data += ulog_message("D", struct.pack("<HQ3f", 50, 1_000_000, 0.5, 0.1, 0.2))
    log = read_log(saved(tmp_path, "a.ulg", data))
    assert np.allclose(log.stream("magnetometer").values, [[5e-5, -1e-5, -2e-5]], rtol=1e-6, atol=0.0)


def test_topics_without_a_time_set_no_clock(tmp_path: Path) -> None:
    """PX4 logs with a stamp of 0 what nobody has written to: seen in a simulated flight stamped since 1970."""
    text = "vehicle_magnetometer:uint64_t timestamp;float[3] magnetometer_ga;"
    data = ulog_file(4) + ulog_message("F", text.encode())
    data += ulog_message("A", struct.pack("<BH", 0, 50) + b"vehicle_magnetometer")
    data += ulog_message("D", struct.pack("<HQ3f", 50, 0, 0.5, 0.1, 0.2))
    log = read_log(saved(tmp_path, "a.ulg", data))
    assert log.source.start_ns == 999_500_000
    assert "vehicle_magnetometer.magnetometer_ga has no time (its stamps are 0) and is left out." in log.notes
    assert not [stream for stream in log.streams if stream.kind == "magnetometer"]
    # A clock that begins with the log does so at 0.
    own = data.replace(struct.pack("<Q", 999_500), struct.pack("<Q", 0))
    log = read_log(saved(tmp_path, "b.ulg", own))
    assert log.source.start_ns == 0
    assert log.stream("magnetometer").time.tolist() == [0.0]


def test_short_samples_of_ulog_are_left_out(tmp_path: Path) -> None:
    """One lacks its last byte: what follows it in the file must not become its z."""
    cut = struct.pack("<HQQ3f", 0, 1_002_000, 1_001_500, 7.0, 7.0, 7.0)[:-1]
    log = read_log(
        saved(tmp_path, "a.ulg", ulog_file() + ulog_message("D", cut) + ulog_message("D", struct.pack("<HQ", 99, 0)))
    )
    assert len(log.stream("gyro").time) == 40
    assert not np.any(log.stream("gyro").values[:, 0] == 7.0)
    assert "2 samples have another size than their format and were left out." in log.notes


@pytest.mark.parametrize(
    ("kind", "unit", "value", "si"),
    [
        ("velocity", "km/h", 36.0, 10.0),
        ("velocity", "cm/s", 250.0, 2.5),
        ("velocity", "mm/s", 250.0, 0.25),
        ("magnetometer", "mgauss", 500.0, 5e-5),
        ("magnetometer", "gauss", 0.5, 5e-5),
        ("magnetometer", "uT", 50.0, 5e-5),
        ("gyro", "deg/s", 180.0, np.pi),
        ("gyro", "rpm", 30.0, np.pi),
        ("gyro", "mrad/s", 1500.0, 1.5),
        ("accelerometer", "g", 1.0, 9.81),
        ("accelerometer", "mg", 1000.0, 9.81),
        ("accelerometer", "ft/s^2", 10.0, 3.048),
        ("position", "ft", 10.0, 3.048),
        ("position", "cm", 150.0, 1.5),
        ("position", "mm", 150.0, 0.15),
        ("motor_command", "%", 50.0, 0.5),
        ("motor_command", "us", 1500.0, 0.5),
        ("motor_command", "u16", 65535.0, 1.0),
        ("motor_command", "u8", 51.0, 0.2),
        ("voltage", "mV", 3700.0, 3.7),
        ("current", "mA", 1500.0, 1.5),
        ("current", "cA", 150.0, 1.5),
        ("pressure", "hPa", 1013.25, 101325.0),
        ("pressure", "mbar", 1013.25, 101325.0),
        ("pressure", "kPa", 101.325, 101325.0),
        ("temperature", "degC", 20.0, 293.15),
    ],
)
def test_units_of_tables(tmp_path: Path, kind: str, unit: str, value: float, si: float) -> None:
    width = KINDS[kind].width or 1
    names = [f"v{k}" for k in range(width)]
    table = ",".join(["t", *names]) + "\n" + "".join(",".join([str(t), *[str(value)] * width]) + "\n" for t in (0, 1))
    mapping = {kind: ColumnMapping(tuple(names), unit=unit, time="t")}
    log = read_log(saved(tmp_path, "a.csv", table.encode()), ReadOptions(mapping=mapping))
    assert np.allclose(log.stream(kind).values, si, rtol=1e-12, atol=0.0)


def test_ulog_shared_against_pyulog(data_dir: Path) -> None:
    pyulog = pytest.importorskip("pyulog")
    path = data_dir / "flights/px4_quad_sample/sample.ulg"
    log, theirs = read_log(path), pyulog.ULog(str(path))
    for topic in theirs.data_list:
        head = f"{topic.name}:{topic.multi_id}" if topic.multi_id else topic.name
        for name, values in topic.data.items():
            bare, _, index = name.partition("[")
            ours = log.raw(f"{head}.{bare}")
            column = ours.values[:, int(index.rstrip("]"))] if index else ours.values
            assert np.array_equal(np.asarray(column, np.float64), np.asarray(values, np.float64), equal_nan=True), (head, name)
    assert {k: v for k, v in log.parameters.items() if not k.startswith("info.")} == theirs.initial_parameters
    assert len([e for e in log.events if e.kind == "dropout"]) == len(theirs.dropouts)


def test_blackbox(tmp_path: Path) -> None:
    log = read_log(saved(tmp_path, "a.csv", blackbox_text()))
    assert np.allclose(log.stream("gyro").values[0], [np.pi / 2, 0.0, 0.0])
    assert np.allclose(log.stream("accelerometer").values[0], [0.0, 0.0, 9.81])
    assert np.allclose(log.stream("motor_command").values[0], [0.5, 0.0, 1.0, 0.5])
    assert np.allclose(log.stream("motor_speed").values[0], 1000 * 2 * np.pi / 60)  # 7000 electrical over 7 pairs of poles
    assert log.stream("voltage").values[0] == 16.8
    assert log.stream("gyro").quality.rate == pytest.approx(2000.0)


def test_bare_blackbox_says_what_it_needs(tmp_path: Path) -> None:
    path = saved(tmp_path, "a.csv", blackbox_text(headers=""))
    log = read_log(path)
    assert not log.has("accelerometer")
    assert not log.has("motor_command")
    assert any("--set acc_1G=2048" in note for note in log.notes)
    given = ReadOptions(settings={"acc_1G": "2048", "motorOutput": "158,2047", "motor_poles": "14"})
    assert {s.kind for s in read_log(path, given).streams} >= {"accelerometer", "motor_command", "motor_speed"}
    with pytest.raises(AssetError, match=r"header 'acc_1G' is 'much'; expected 1 number"):
        read_log(path, ReadOptions(settings={"acc_1G": "much"}))


def headed(time: str, gyro: str, force: str, rows: list[str]) -> bytes:
    """A blackbox whose columns tell their units, as `blackbox_decode --unit-...` names them."""
    names = ["loopIteration", f"time{time}", *(f"gyroADC[{k}]{gyro}" for k in range(3))]
    names += [f"accSmooth[{k}]{force}" for k in range(3)]
    return ("\n".join([", ".join(names), *rows]) + "\n").encode()


@pytest.mark.parametrize(
    ("time", "gyro", "force", "step", "rate", "up"),
    [
        (" (us)", " (deg/s)", " (g)", "500", "90", "2"),
        (" (s)", " (rad/s)", " (m/s2)", "0.0005", "1.5707963267948966", "19.62"),
        (" (ms)", " (rad/s)", " (m/s/s)", "0.5", "1.5707963267948966", "19.62"),
    ],
)
def test_units_in_heads_of_a_blackbox(tmp_path: Path, time: str, gyro: str, force: str, step: str, rate: str, up: str) -> None:
    """A quarter turn a second and two g at 2 kHz, whatever the units are."""
    rows = [f"{k},{k * float(step):.10g},{rate},0,0,0,0,{up}" for k in range(8)]
    log = read_log(saved(tmp_path, "a.csv", headed(time, gyro, force, rows)))
    assert np.allclose(log.stream("gyro").values, [np.pi / 2, 0.0, 0.0])
    assert np.allclose(log.stream("accelerometer").values, [0.0, 0.0, 2 * 9.81])
    assert np.allclose(log.stream("gyro").time, 0.0005 * np.arange(8))


def test_unknown_units_in_heads_of_a_blackbox(tmp_path: Path) -> None:
    rows = [f"{k},{k},1,0,0,0,0,1" for k in range(8)]
    log = read_log(saved(tmp_path, "a.csv", headed("", " (rpm)", " (stone)", [*rows])))
    assert not log.streams
    assert any("'gyroADC[0]' and on have the unit 'rpm', none of deg/s, rad/s" in note for note in log.notes)
    assert any("the unit 'stone'" in note for note in log.notes)
    with pytest.raises(AssetError, match=r"'time \(h\)' has a unit that is none of us, ms, s"):
        read_log(saved(tmp_path, "b.csv", headed(" (h)", "", "", rows)))


def test_headers_that_scale_nothing(tmp_path: Path) -> None:
    path = saved(tmp_path, "a.csv", blackbox_text(headers='"acc_1G",0\n"motorOutput","2047,158"\n'))
    log = read_log(path)
    assert not log.has("accelerometer")
    assert not log.has("motor_command")
    assert any("header 'acc_1G' is '0'" in note for note in log.notes)
    for name, value in (("acc_1G", "0"), ("motorOutput", "2047,158"), ("motor_poles", "-14")):
        with pytest.raises(
            AssetError, match=f"header '{name}' is '{value}'; expected (a number above 0|two numbers that rise), as"
        ):
            read_log(path, ReadOptions(settings={name: value}))
    with pytest.raises(AirworthyError, match=r"Unknown header that scales a blackbox 'acc_1g'\. Closest: 'acc_1G'"):
        read_log(path, ReadOptions(settings={"acc_1g": "2048"}))


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("a.ulg", ReadOptions(mapping="m.toml"), "--map gives a mapping, which only plain tables can have, and this is ULog"),
        ("a.ulg", ReadOptions(settings={"acc_1G": "2048"}), "--set gives a header line"),
        ("a.ulg", ReadOptions(topics={"/imu": "front"}), "--topic gives a topic, which only bags can have"),
        ("a.ulg", ReadOptions(env=3), "--env gives an environment, which only recorded runs can have"),
        ("b.csv", ReadOptions(topics={"/imu": "front"}), "this is Betaflight blackbox CSV: leave it out"),
        ("c.mcap", ReadOptions(settings={"acc_1G": "2048"}), "this is MCAP"),
        ("c.mcap", ReadOptions(topics={"/imuu": "front"}), "Unknown topic '/imuu'. Closest: '/imu'"),
        ("d.npz", ReadOptions(mapping="m.toml"), "this is .npz of Airworthy"),
    ],
)
def test_options_that_a_format_has_no_use_for(tmp_path: Path, name: str, given: ReadOptions, said: str) -> None:
    files = {"a.ulg": ulog_file(), "b.csv": blackbox_text(), "c.mcap": mcap_file()}
    if name == "d.npz":
        write_log(read_log(saved(tmp_path, "e.ulg", ulog_file())), tmp_path / name)
    else:
        saved(tmp_path, name, files[name])
    with pytest.raises(AssetError, match=re.escape(said)):
        read_log(tmp_path / name, given)


def test_second_sessions_are_told(tmp_path: Path) -> None:
    log = read_log(saved(tmp_path, "a.csv", blackbox_text() + blackbox_text(headers="")))
    assert len(log.stream("gyro").time) == 20
    assert any("second session" in note for note in log.notes)


def test_euroc_and_tum(tmp_path: Path) -> None:
    log = read_log(saved(tmp_path, "imu.csv", euroc_text()))
    assert log.source.start_ns == 1403715273262142976
    assert log.stream("gyro").values[0].tolist() == [0.1, 0.2, 0.3]
    assert log.stream("gyro").quality.rate == pytest.approx(200.0)
    tum = read_log(saved(tmp_path, "t.txt", tum_text()))
    assert tum.stream("position").values[3].tolist() == [1.0, 2.0, 3.0]
    assert np.allclose(tum.stream("attitude").time, 0.05 * np.arange(10))


def test_euroc_as_published(tmp_path: Path) -> None:
    """The ground truth's head has no [ns]: '#timestamp, p_RS_R_x [m], ...'."""
    for name, text in (("imu0", euroc_text().decode()), ("state_groundtruth_estimate0", euroc_truth())):
        (tmp_path / "mav0" / name).mkdir(parents=True)
        (tmp_path / "mav0" / name / "data.csv").write_text(text)
    for place in (tmp_path, tmp_path / "mav0", tmp_path / "mav0/state_groundtruth_estimate0/data.csv"):
        log = read_log(place)
        assert log.stream("position:truth").values[0].tolist() == [4.0, 5.0, 6.0]
        # w comes first in the file.
        assert np.allclose(log.stream("attitude").values, [0.0, 0.0, 0.6, 0.8])
    assert read_log(tmp_path).stream("velocity").values[0].tolist() == [0.1, 0.2, 0.3]
    (tmp_path / "mav0/state_groundtruth_estimate0/data.csv").write_text("time,a\n1,2\n")
    with pytest.raises(AssetError, match=r"state_groundtruth_estimate0/data\.csv"):
        read_log(tmp_path)


def euroc_truth() -> str:
    head = "#timestamp, p_RS_R_x [m], p_RS_R_y [m], p_RS_R_z [m], q_RS_w [], q_RS_x [], q_RS_y [], q_RS_z []"
    head += ", v_RS_R_x [m s^-1], v_RS_R_y [m s^-1], v_RS_R_z [m s^-1]\n"
    rows = [f"{1403715273262142976 + 5_000_000 * k},4,5,6,0.8,0,0,0.6,0.1,0.2,0.3\n" for k in range(10)]
    return head + "".join(rows)


def test_euroc_shared(data_dir: Path) -> None:
    log = read_log(data_dir / "flights/euroc_v101")
    rows = np.loadtxt(data_dir / "flights/euroc_v101/imu0.csv", delimiter=",", comments="#", usecols=range(1, 7))
    assert np.array_equal(log.stream("gyro").values, rows[:, :3])
    assert np.array_equal(log.stream("accelerometer").values, rows[:, 3:])
    tum = read_log(data_dir / "flights/euroc_v101/groundtruth_tum.txt")
    assert np.allclose(tum.stream("position").values, log.stream("position:truth").values, atol=1e-5)
    assert np.abs(np.sum(tum.stream("attitude").values * log.stream("attitude:truth").values, axis=1)).min() > 1 - 1e-9


@pytest.mark.parametrize("compression", ["", "zstd", "lz4"])
def test_mcap(tmp_path: Path, compression: str) -> None:
    if compression:
        pytest.importorskip("zstandard" if compression == "zstd" else "lz4.frame")
    log = read_log(saved(tmp_path, "a.mcap", mcap_file(compression=compression)))
    assert np.allclose(log.stream("gyro").values[:, 0], 0.1 * np.arange(10))
    assert np.allclose(log.stream("accelerometer").values, [0.0, 0.0, 9.81])
    assert np.allclose(log.stream("gyro").time, 0.01 * np.arange(10))
    assert log.source.start_ns == 5_000_000_000
    assert any("received +0.0200 s" in note for note in log.notes)


def test_bags_in_sqlite_hold_the_same(tmp_path: Path) -> None:
    bag_file(tmp_path / "a.db3")
    log, other = read_log(tmp_path / "a.db3"), read_log(saved(tmp_path, "a.mcap", mcap_file()))
    for name in ("gyro", "accelerometer", "attitude"):
        assert np.array_equal(log.stream(name).values, other.stream(name).values)
        assert np.array_equal(log.stream(name).time, other.stream(name).time)


@pytest.mark.parametrize("packed", ["file", "messages"])
def test_packed_bags_hold_the_same(tmp_path: Path, packed: str) -> None:
    """As `ros2 bag record --compression-format zstd` leaves them: the file as a whole, or each message."""
    zstandard = pytest.importorskip("zstandard")
    plain = bag_file(tmp_path / "a.db3")
    (tmp_path / "bag").mkdir()
    if packed == "file":
        path = saved(tmp_path / "bag", "a.db3.zstd", zstandard.ZstdCompressor().compress(plain))
    else:
        path = saved(tmp_path / "bag", "a.db3", plain)
        base = sqlite3.connect(path)
        for number, data in base.execute("SELECT id, data FROM messages").fetchall():
            base.execute("UPDATE messages SET data = ? WHERE id = ?", (zstandard.ZstdCompressor().compress(data), number))
        base.commit()
        base.close()
    first, back = read_log(tmp_path / "a.db3"), read_log(tmp_path / "bag")
    assert np.array_equal(back.stream("gyro").values, first.stream("gyro").values)
    assert np.array_equal(back.stream("gyro").time, read_log(path).stream("gyro").time)


def test_damaged_packed_bags_are_told(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    whole = zstandard.ZstdCompressor().compress(bag_file(tmp_path / "a.db3"))
    with pytest.raises(AssetError, match="packed by zstd and damaged"):
        read_log(saved(tmp_path, "b.zstd", whole[:8] + b"\xff" * 40))
    bomb = zstandard.ZstdCompressor().compress(bytes(400 << 20))
    with pytest.raises(AssetError, match=r"packed by zstd and holds over .* bytes"):
        read_log(saved(tmp_path, "c.zstd", bomb))
    bag_file(tmp_path / "d.db3")
    base = sqlite3.connect(tmp_path / "d.db3")
    packed = zstandard.ZstdCompressor().compress(base.execute("SELECT data FROM messages").fetchone()[0])
    base.execute("UPDATE messages SET data = ? WHERE id = 1", (packed[:6] + b"\xff" * 30,))
    base.commit()
    base.close()
    log = read_log(tmp_path / "d.db3")
    assert len(log.stream("gyro").time) == 9
    assert any("1 packed messages are damaged" in note for note in log.notes)


def test_dates_are_stamps(tmp_path: Path) -> None:
    """ISO 8601 in text and columns of dates in Parquet are nanoseconds since 1970; what is no number is told."""
    import pyarrow as pa
    from pyarrow import parquet

    lines = ["when,wx,wy,wz,who"] + [f"2024-05-01T12:00:00.{k * 10:03d}Z,0.{k},0,0,me" for k in range(5)]
    lines.append("later,0.5,0,0,me")
    mapping = 'gyro = { columns = ["wx", "wy", "wz"], time = "when", time_unit = "ns" }\n'
    (tmp_path / "m.toml").write_text(mapping)
    log = read_log(saved(tmp_path, "a.csv", "\n".join(lines).encode()), ReadOptions(mapping=tmp_path / "m.toml"))
    assert log.source.start_ns == 1_714_564_800 * 10**9
    assert np.allclose(log.stream("gyro").time, 0.01 * np.arange(5), atol=1e-6)
    assert any("'who'" in note and "left out" in note for note in log.notes)
    assert any("1 rows of gyro have no time" in note for note in log.notes)

    stamps = pa.array([1_714_564_800 * 10**9 + 12_345_678 * k for k in range(5)], pa.timestamp("ns", "UTC"))
    numbers = pa.array(np.arange(5.0))
    parquet.write_table(
        pa.table({"when": stamps, "wx": numbers, "wy": numbers, "wz": numbers, "who": ["me"] * 5}), tmp_path / "a.parquet"
    )
    log = read_log(tmp_path / "a.parquet", ReadOptions(mapping=tmp_path / "m.toml"))
    assert log.source.start_ns == 1_714_564_800 * 10**9
    assert np.allclose(log.stream("gyro").time, 0.012345678 * np.arange(5), atol=1e-12)
    assert any("'who'" in note for note in log.notes)
    columns, _ = table_of(tmp_path / "a.parquet")
    assert guess_mapping(columns).time_unit == "ns"


def test_topics_can_be_named_and_left_out(tmp_path: Path) -> None:
    path = saved(tmp_path, "a.mcap", mcap_file())
    assert read_log(path, ReadOptions(topics={"/imu": "front"})).stream("gyro:front").kind == "gyro"
    with pytest.raises(AssetError, match="none of its topics"):
        read_log(path, ReadOptions(topics={"/imu": "-"}))


def test_what_a_file_without_a_stream_holds_is_told(tmp_path: Path) -> None:
    writer = McapWriter(definitions=lambda kind: "uint8 one")
    for k in range(3):
        writer.message("/uav/camera/front/depth", "sensor_msgs/msg/Image", k, bytes(64))
    for k in range(5):
        writer.message("/tf", "tf2_msgs/msg/TFMessage", k, bytes(16))
    said = (
        r"holds messages that are streams, but 3 of '?/uav/camera/front/depth'? \(sensor_msgs/msg/Image\), 5 of '?/tf'?"
        r" \(tf2_msgs/msg/TFMessage\); Foxglove and Rerun show pictures"
    )
    with pytest.raises(AssetError, match=said):
        read_log(saved(tmp_path, "frames.mcap", writer.closed()))


def test_event_archives(tmp_path: Path) -> None:
    event_archive(tmp_path / "a.npz")
    log = read_log(tmp_path / "a.npz")
    assert np.allclose(log.stream("gyro").values[0], [np.pi, 0.0, -np.pi / 2])
    assert np.allclose(log.stream("voltage").values, 3.7)


def test_tables_need_a_meaning(tmp_path: Path) -> None:
    path = saved(tmp_path, "a.csv", csv_table())
    with pytest.raises(AssetError, match=r"columns \(t, wx, wy, wz\) need a meaning: `airworthy logs map"):
        read_log(path)
    mapping = tmp_path / "mapping.toml"
    mapping.write_text(CSV_MAPPING)
    log = read_log(path, ReadOptions(mapping=mapping))
    assert np.allclose(log.stream("gyro").values[4], [np.pi, np.pi / 2, -np.deg2rad(4.0)])
    assert np.allclose(log.stream("gyro").time, 0.002 * np.arange(10))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('gyrro = {columns = ["a"]}', "Closest: 'gyro'"),
        ('gyro = {columns = ["wx"]}', "has 1 columns; expected 3"),
        ('gyro = {columns = ["wx", "wy", "wz"], unit = "g"}', "has unit 'g'; expected one of rad/s"),
        ('gyro = {columns = ["wx", "wy", "wz"], frame = "ned"}', "has frame 'ned'; expected flu or frd"),
        ('gyro = {columns = ["wx", "wy", "ww"], time = "t"}', "Unknown column 'ww'"),
        ('gyro = {columns = ["wx", "wy", "wz"], time = "t", time_unit = "min"}', "time_unit"),
        ("", "maps no stream"),
    ],
)
def test_mappings_that_do_not_fit(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "m.toml").write_text(line)
    with pytest.raises(Exception, match=said):
        read_log(saved(tmp_path, "a.csv", csv_table()), ReadOptions(mapping=tmp_path / "m.toml"))


def test_cells_and_lines_that_do_not_fit_are_counted(tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text(CSV_MAPPING)
    data = csv_table() + b"20,?,1,2\n22,1\n"
    log = read_log(saved(tmp_path, "a.csv", data), ReadOptions(mapping=tmp_path / "m.toml"))
    assert len(log.stream("gyro").time) == 11
    assert np.isnan(log.stream("gyro").values[10, 0])
    assert any("1 lines" in note for note in log.notes)
    assert any("1 cells" in note for note in log.notes)


def test_what_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(AssetError, match="is empty"):
        read_log(saved(tmp_path, "a", b""))
    with pytest.raises(AssetError, match="begins with 00 01"):
        read_log(saved(tmp_path, "a", bytes([0, 1, 2])))
    with pytest.raises(AssetError, match="is no log"):
        read_log(tmp_path)
    with pytest.raises(AssetError, match="There is no file"):
        read_log(tmp_path / "none")
