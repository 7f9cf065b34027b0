import numpy as np
import pytest

from airworthy.benchmarks.validation.logs import read_flight_log
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.logs import even_clock

LOOP = ["gyro.x", "gyro.y", "gyro.z", "acc.x", "acc.y", "acc.z", "rpm.m1", "rpm.m2", "rpm.m3", "rpm.m4"]
LOOP += ["pwm.m1_pwm", "pwm.m2_pwm", "pwm.m3_pwm", "pwm.m4_pwm", "pm.vbatMV"]
POSE = ["locSrv.x", "locSrv.y", "locSrv.z", "locSrv.qx", "locSrv.qy", "locSrv.qz", "locSrv.qw"]


def arrays(slow=1.0, jitter=0.0, seconds=3.0):
    """A still vehicle: loop at 500 Hz, poses at 100 Hz, stamped by a clock whose second is `slow` seconds long."""
    rng = np.random.default_rng(0)
    loop_time = 20.0 + np.arange(round(500 * seconds)) * 0.002 / slow
    pose_time = 20.0 + np.arange(round(100 * seconds)) * 0.01 / slow
    loop = np.zeros((len(loop_time), len(LOOP)), np.float32)
    loop[:, 0], loop[:, 5], loop[:, 6:10], loop[:, 10:14], loop[:, 14] = 180.0, 1.0, 6000.0, 65535.0 / 2, 3700.0
    pose = np.zeros((len(pose_time), 7), np.float32)
    pose[:, 6] = 1.0
    return {
        "fixedFrequency/t": loop_time + rng.uniform(-jitter, jitter, len(loop_time)),
        "fixedFrequency/names": np.array(LOOP),
        "fixedFrequency/data": loop,
        "estPose/t": pose_time + rng.uniform(-jitter, jitter, len(pose_time)),
        "estPose/names": np.array(POSE),
        "estPose/data": pose,
    }


def written(tmp_path, content):
    path = tmp_path / "flight.npz"
    np.savez(path, **content)
    return path


def test_units_are_si(tmp_path):
    log = read_flight_log(written(tmp_path, arrays()))
    assert log.name == "flight"
    np.testing.assert_allclose(log.gyro[0], [np.pi, 0.0, 0.0], rtol=1e-6)
    np.testing.assert_allclose(log.accelerometer[0], [0.0, 0.0, 9.81], rtol=1e-6)
    np.testing.assert_allclose(log.rotor_speed[0], 200.0 * np.pi, rtol=1e-6)
    np.testing.assert_allclose(log.pwm[0], 0.5, rtol=1e-6)
    assert log.voltage[0] == pytest.approx(3.7)


def test_a_slow_clock_is_put_right_and_its_jitter_removed(tmp_path):
    log = read_flight_log(written(tmp_path, arrays(slow=1.011, jitter=3e-4)))
    # A line through 300 stamps with 0.17 ms of scatter has a slope good to 0.17e-3 / (3 s sqrt(300 / 12)) = 1.2e-5.
    assert log.clock_scale == pytest.approx(1.011, abs=4e-5)
    np.testing.assert_allclose(np.diff(log.time), 0.002, rtol=2e-4)
    np.testing.assert_allclose(np.diff(log.pose_time), 0.01, rtol=1e-9)


def test_drop_outs_stay_gaps():
    stamps = np.delete(np.arange(200) * 0.01, [50, 51, 120])
    grid, period = even_clock(stamps + 1e-4 * np.sin(np.arange(197)), 0.0101)
    assert period == pytest.approx(0.01, rel=1e-5)
    np.testing.assert_allclose(grid, stamps, atol=2e-5)


def test_another_pose_rate_is_no_clock_error(tmp_path):
    content = arrays()
    content["estPose/t"] = 20.0 + np.arange(300) * 0.0085
    assert read_flight_log(written(tmp_path, content)).clock_scale == 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.pop("estPose/data"), "has no stream 'attitude:capture'"),
        (lambda c: c.update({"fixedFrequency/names": np.array(["x", *LOOP[1:]])}), "has no stream 'gyro'"),
        (lambda c: c.update({"estPose/data": c["estPose/data"][:, :5]}), "estPose/data has shape"),
        (
            lambda c: c.update({"estPose/data": np.full_like(c["estPose/data"], np.nan)}),
            "0 good samples; at least 100",
        ),
        (lambda c: c.update({"estPose/data": np.zeros_like(c["estPose/data"])}), "0 good samples; at least 100"),
        (lambda c: c.update({"estPose/names": np.array(POSE, object)}), r"not a \.npz archive that can be read"),
    ],
)
def test_a_broken_log_gives_one_sentence(tmp_path, change, message):
    content = arrays()
    change(content)
    with pytest.raises(AirworthyError, match=message):
        read_flight_log(written(tmp_path, content))


def test_what_is_no_archive_or_not_there(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"PK\x03\x04 not really")
    with pytest.raises(AssetError, match=r"not a \.npz archive that can be read"):
        read_flight_log(tmp_path / "a.npz")
    with pytest.raises(AssetError, match="There is no file"):
        read_flight_log(tmp_path / "b.npz")
