"""First guesses of what columns mean, read back by the reader."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.core.frames import rotate
from airworthy.logs import ReadOptions, guess_mapping, read_log, table_of


def guessed(columns: dict[str, np.ndarray]) -> dict[str, tuple[tuple[str, ...], str, str]]:
    return {g.name: (g.columns, g.unit, g.frame) for g in guess_mapping(columns).streams}


def test_imu_in_degrees_and_g() -> None:
    n = np.arange(100)
    columns = {"t_ms": 2.0 * n}
    columns |= {f"gyro_{a}": 100.0 * np.sin(n) for a in "xyz"}
    columns |= {"acc_x": 0.0 * n, "acc_y": 0.0 * n, "acc_z": 0.0 * n - 1.0}
    columns |= {f"motor{k}": 1000.0 + n for k in range(4)}
    found = guess_mapping(columns)
    assert (found.time, found.time_unit) == ("t_ms", "ms")
    named = guessed(columns)
    assert named["gyro"] == (("gyro_x", "gyro_y", "gyro_z"), "deg/s", "frd")  # as the accelerometer beside it
    assert named["accelerometer"] == (("acc_x", "acc_y", "acc_z"), "g", "frd")
    assert named["motor_command"] == (("motor0", "motor1", "motor2", "motor3"), "us", "")


@pytest.mark.parametrize(
    ("least", "most", "unit", "scale"),
    [
        (0.0, 748.0, "1", 1e-3),
        (50.0, 1000.0, "1", 1e-3),
        (48.0, 1900.0, "1", 1.0 / 2047.0),
        (1000.0, 1748.0, "us", 1.0),
        (900.0, 2100.0, "us", 1.0),
        (1050.0, 1100.0, "us", 1.0),
        (0.0, 0.748, "1", 1.0),
        (0.0, 74.8, "%", 1.0),
        (0.0, 65000.0, "u16", 1.0),
    ],
)
def test_units_of_motor_commands(least: float, most: float, unit: str, scale: float) -> None:
    """Up to 748 were taken for widths of pulses, which are none below 700 us; motors that stand are 0 in any unit."""
    n = np.arange(400)
    wave = np.where(n < 100, 0.0, least + (most - least) * (0.5 + 0.5 * np.sin(0.1 * n)))
    wave[200] = most
    (found,) = guess_mapping({"t": 0.01 * n} | {f"motor{k}": wave for k in range(4)}).streams
    assert (found.name, found.unit) == ("motor_command", unit)
    assert found.scale == pytest.approx(scale)
    assert ("if full is another number, scale is 1 over it" in found.reason) == (scale != 1.0)


def test_a_guess_by_another_full_number_is_read(tmp_path: Path) -> None:
    n = np.arange(400)
    table = np.column_stack([0.01 * n, *[374.0 + 374.0 * np.sin(0.1 * n)] * 4])
    path = tmp_path / "a.csv"
    np.savetxt(path, table, delimiter=",", header="t,motor1,motor2,motor3,motor4", comments="")
    (tmp_path / "m.toml").write_text(guess_mapping(table_of(path)[0]).text(path.name))
    command = read_log(path, ReadOptions(mapping=tmp_path / "m.toml")).stream("motor_command").values
    assert np.allclose(command, 1e-3 * table[:, 1:])


def test_no_time_no_guess() -> None:
    with pytest.raises(AirworthyError, match="No column rises"):
        guess_mapping({"a": np.array([1.0, 0.0, 2.0, 0.0])})


def test_guesses_of_shared_tables_are_read(data_dir: Path, tmp_path: Path) -> None:
    path = data_dir / "flights/phantom4rtk/Horizontal_path_1/IMU_1.csv"
    columns, _ = table_of(path)
    (tmp_path / "m.toml").write_text(guess_mapping(columns).text(path.name))
    log = read_log(path, ReadOptions(mapping=tmp_path / "m.toml"))
    rows = np.loadtxt(path, delimiter=",", skiprows=1)
    assert np.allclose(log.stream("gyro").values, np.deg2rad(rows[:, 7:10]))
    assert np.allclose(log.stream("accelerometer").values, rows[:, 4:7])
    assert log.stream("attitude").quality.rate == pytest.approx(120.0, rel=1e-3)
    truth = guessed(table_of(data_dir / "flights/phantom4rtk/Horizontal_path_1/GT.csv")[0])
    assert truth["position"] == (("North", "East", "Down"), "", "ned")
    poses = guessed(table_of(data_dir / "flights/flightgoggles_example/pose_world_imu.csv")[0])
    assert set(poses) == {"position", "attitude"}


def resting(frame: str, count: int = 50) -> dict[str, np.ndarray]:
    """A table of a vehicle at rest with a heading, in axes forward, right, down over north, east, down, or in ours."""
    still, down = np.zeros(count), frame == "frd"
    columns = {"time_s": 0.01 * np.arange(count)}
    columns |= {"gx": still + 0.01, "gy": still, "gz": still + 0.02}
    columns |= {"ax": still, "ay": still, "az": still + (-9.81 if down else 9.81)}
    columns |= {"mx": still + 2e-5, "my": still, "mz": still + (4e-5 if down else -4e-5)}
    half = 0.5 * 0.7
    columns |= {"q_x": still, "q_y": still, "q_z": still + np.sin(half), "q_w": still + np.cos(half)}
    return columns | {"vel_x": still + 1.0, "vel_y": still, "vel_z": still - 0.5}


def test_frames_of_one_table_agree(tmp_path: Path) -> None:
    """gx, gy, gz are a gyro; an accelerometer whose z points down says so of the gyro and the magnetometer, and, with the
    attitudes, of the world."""
    named = guessed(resting("frd"))
    assert {name: found[2] for name, found in named.items()} == {
        "gyro": "frd", "accelerometer": "frd", "magnetometer": "frd", "attitude": "frd->ned", "velocity": "ned",
    }  # fmt: skip
    ours = guessed(resting("flu"))
    assert {found[2] for found in ours.values()} == {"flu", "", "enu"}
    # What is read has gravity upright either way.
    table = resting("frd")
    path = tmp_path / "t.csv"
    np.savetxt(path, np.stack(list(table.values()), 1), delimiter=",", header=",".join(table), comments="")
    (tmp_path / "m.toml").write_text(guess_mapping(table).text(path.name))
    log = read_log(path, ReadOptions(mapping=tmp_path / "m.toml"))
    up = rotate(log.stream("attitude").values, log.stream("accelerometer").values)
    assert np.allclose(up, [0.0, 0.0, 9.81])
    assert np.allclose(log.stream("velocity").values, [0.0, 1.0, 0.5])
    assert np.allclose(log.stream("gyro").values, [0.01, 0.0, -0.02])


def test_attitudes_that_are_of_no_frame_tell_none() -> None:
    """Quaternions with w first look like turns by half a circle: the force is then neither up nor down."""
    table = resting("flu")
    turned = np.deg2rad(60.0)
    table |= {"q_x": table["q_x"] + np.sin(turned / 2.0) - table["q_x"], "q_z": 0.0 * table["q_z"]}
    table["q_w"] = np.full(50, np.cos(turned / 2.0))
    assert guessed(table)["attitude"][2] == ""


def test_arrays_of_an_archive_are_named_by_their_array(tmp_path: Path) -> None:
    count = 40
    force = np.tile([0.1, 0.0, 9.8], (count, 1))
    turn = np.tile([0.0, 0.0, 0.0, 1.0], (count, 1))
    np.savez(tmp_path / "a.npz", t=0.01 * np.arange(count), gyro=np.zeros((count, 3)) + 0.1, accel=force, att=turn,
             motors=np.zeros((count, 4)) + 0.5)  # fmt: skip
    columns, _ = table_of(tmp_path / "a.npz")
    named = guessed(columns)
    assert named["gyro"][0] == ("gyro.0", "gyro.1", "gyro.2")
    assert named["accelerometer"][0] == ("accel.0", "accel.1", "accel.2")
    assert named["attitude"][0] == ("att.0", "att.1", "att.2", "att.3")
    assert named["motor_command"][0] == ("motors.0", "motors.1", "motors.2", "motors.3")


# ---- Names that exports have -------------------------------------------------------------------------------------------------


def table(time: str, step: float, **kinds: object) -> dict[str, np.ndarray]:
    """A table of 200 rows: `kinds` holds names, and size or middle of each."""
    draw, count = np.random.default_rng(0), 200
    made = {time: step * np.arange(count)}
    for names, middles, size in kinds.values():  # type: ignore[misc,attr-defined]
        for name, middle in zip(names, np.broadcast_to(middles, len(names)), strict=True):
            made[name] = middle + draw.normal(0.0, size, count)
    return made


def numbered(pattern: str, first: int = 1) -> list[str]:
    return [pattern.format(k) for k in range(first, first + 4)]


def test_rates_that_name_what_turns() -> None:
    names = [f"{way}_rate_dps" for way in ("roll", "pitch", "yaw")]
    asked = [f"{way}_rate_setpoint_dps" for way in ("roll", "pitch", "yaw")]
    force = [f"acc_{a}_g" for a in "xyz"]
    columns = table("t", 0.01, gyro=(names, 0.0, 0.5), force=(force, (0, 0, 1), 0.01), motor=(numbered("mot{}"), 0.5, 0.1),
                    asked=(asked, 0.0, 0.5), battery=(["vbat_mV"], 3700.0, 5.0))  # fmt: skip
    named = guessed(columns)
    # Slow as they are: the name says degrees.
    assert named["gyro"] == (tuple(names), "deg/s", "flu")
    assert named["accelerometer"] == (tuple(force), "g", "flu")
    assert named["motor_command"] == (("mot1", "mot2", "mot3", "mot4"), "1", "")
    assert named["voltage"] == (("vbat_mV",), "mV", "")
    assert set(guess_mapping(columns).unknown) == set(asked)
    named = guessed(table("t", 0.01, gyro=(["p_rad_s", "q_rad_s", "r_rad_s"], 0.0, 30.0)))
    assert named["gyro"] == (("p_rad_s", "q_rad_s", "r_rad_s"), "rad/s", "flu")


def test_names_of_px4() -> None:
    """Attitudes have w first; velocities and accelerations of the topic of positions are no positions."""
    n, still = np.arange(100.0), np.zeros(100)
    columns = {"timestamp": 2000.0 * n}
    columns |= {f"vehicle_attitude.q[{k}]": still + (k == 0) for k in range(4)}
    for prefix in ("", "v", "a"):
        columns |= {f"vehicle_local_position.{prefix}{axis}": still + 0.1 for axis in "xyz"}
    columns |= {f"sensor_combined.accelerometer_m_s2[{k}]": still - 9.81 * (k == 2) for k in range(3)}
    found = guess_mapping(columns)
    named = {g.name: (g.columns, g.frame) for g in found.streams}
    assert named["attitude"] == (tuple(f"vehicle_attitude.q[{k}]" for k in (1, 2, 3, 0)), "frd->ned")
    assert named["position"] == (tuple(f"vehicle_local_position.{axis}" for axis in "xyz"), "ned")
    assert named["velocity"] == (tuple(f"vehicle_local_position.v{axis}" for axis in "xyz"), "ned")
    assert set(found.unknown) == {f"vehicle_local_position.a{axis}" for axis in "xyz"}
    # The same numbers of nobody knows what: the order of the file, and a word of doubt.
    bare = {name.replace("vehicle_attitude.", ""): values for name, values in columns.items()}
    other = next(g for g in guess_mapping(bare).streams if g.name == "attitude")
    assert other.columns == ("q[0]", "q[1]", "q[2]", "q[3]")
    assert "where w comes first" in other.reason


def test_names_of_ardupilot() -> None:
    axes = [[f"IMU.{word}{a}" for a in "XYZ"] for word in ("Gyr", "Acc")]
    columns = table("TimeUS", 1e4, gyro=(axes[0], 0.0, 0.3), force=(axes[1], (0, 0, -9.8), 0.1),
                    motor=(numbered("RCOU.C{}"), 1500.0, 50.0), battery=(["BAT.Volt", "BAT.Curr"], 15.0, 0.1))  # fmt: skip
    named = guessed(columns)
    assert named["motor_command"] == (tuple(numbered("RCOU.C{}")), "us", "")
    assert (named["gyro"][1:], named["accelerometer"][1:]) == (("rad/s", "frd"), ("m/s^2", "frd"))
    assert (named["voltage"][0], named["current"][0]) == (("BAT.Volt",), ("BAT.Curr",))
    bare = table("TimeUS", 1e4, motor=(numbered("C{}"), 1500.0, 50.0))
    assert guessed(bare)["motor_command"] == (tuple(numbered("C{}")), "us", "")
    # Numbered columns of bare names that hold no pulses are nobody's motors.
    assert guessed(table("TimeUS", 1e4, some=(numbered("C{}"), 3.0, 1.0))) == {}


def test_names_of_a_crazyflie() -> None:
    columns = table("timestamp", 10.0, gyro=([f"gyro.{a}" for a in "xyz"], 0.0, 30.0), motor=(numbered("motor.m{}"), 3e4, 3e3),
                    force=([f"acc.{a}" for a in "xyz"], (0, 0, 1), 0.02),
                    place=([f"stateEstimate.{a}" for a in "xyz"], 0.0, 1.0),
                    speed=([f"stateEstimate.v{a}" for a in "xyz"], 0.0, 1.0),
                    turn=([f"stabilizer.{way}" for way in ("roll", "pitch", "yaw")], 0.0, 9.0))  # fmt: skip
    named = guessed(columns)
    assert set(named) == {"gyro", "accelerometer", "motor_command", "position", "velocity", "attitude"}
    assert (named["gyro"][1], named["accelerometer"][1], named["motor_command"][1]) == ("deg/s", "g", "u16")


def test_names_of_a_blackbox_that_lost_its_head(tmp_path: Path) -> None:
    arrays = {word: [f"{word}[{k}]" for k in range(3)] for word in ("gyroADC", "accSmooth", "axisP")}
    columns = table("time (us)", 1e3, gyro=(arrays["gyroADC"], 0.0, 4.0), force=(arrays["accSmooth"], (0, 0, 2048), 20.0),
                    terms=(arrays["axisP"], 0.0, 9.0), motor=(numbered("motor[{}]", 0), 1300.0, 50.0),
                    turns=(numbered("eRPM[{}]", 0), 1200.0, 50.0))  # fmt: skip
    found = guess_mapping(columns)
    named = {g.name: g for g in found.streams}
    assert set(named) == {"gyro", "accelerometer", "motor_command", "motor_speed"}
    assert (named["gyro"].unit, named["motor_command"].unit) == ("deg/s", "us")
    assert "2048 of them taken for one g" in named["accelerometer"].reason
    assert "14 poles are taken" in named["motor_speed"].reason
    path = tmp_path / "t.csv"
    np.savetxt(path, np.stack(list(columns.values()), 1), delimiter=",", header=",".join(columns), comments="")
    (tmp_path / "m.toml").write_text(found.text(path.name))
    log = read_log(path, ReadOptions(mapping=tmp_path / "m.toml"))
    assert np.median(log.stream("accelerometer").values[:, 2]) == pytest.approx(9.81, rel=0.01)
    assert np.median(log.stream("motor_speed").values) == pytest.approx(1200.0 * 100.0 / 7.0 * 2.0 * np.pi / 60.0, rel=0.02)


def test_names_of_ros(tmp_path: Path) -> None:
    axes = [[f"/imu/{word}/{a}" for a in "xyz"] for word in ("angular_velocity", "linear_acceleration")]
    columns = table("__time", 0.01, gyro=(axes[0], 0.0, 0.3), force=(axes[1], (0, 0, 9.8), 0.1),
                    turns=(numbered("/esc/rpm[{}]", 0), 9000.0, 100.0))  # fmt: skip
    columns["__time"] = columns["__time"] + 1.7e9
    named = guessed(columns)
    assert {name: found[1] for name, found in named.items()} == {
        "gyro": "rad/s",
        "accelerometer": "m/s^2",
        "motor_speed": "rpm",
    }
    whole = table("header.stamp.sec", 1.0, gyro=(axes[0], 0.0, 0.3))
    whole["header.stamp.sec"] = np.floor(whole["header.stamp.sec"] / 50.0) + 1.7e9
    assert "stands still between whole seconds: join it with the column of their parts" in guess_mapping(whole).time_reason
