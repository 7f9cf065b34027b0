import numpy as np
from scipy.spatial.transform import Rotation

from airworthy.benchmarks.validation.calibration import Calibration, calibrate
from airworthy.benchmarks.validation.windows import reference
from airworthy.logs import integrate_gyro


def test_integrated_gyro_is_a_constant_turn():
    time = np.arange(1001) * 0.002
    turned = integrate_gyro(time, np.tile([0.3, -0.5, 1.2], (1001, 1)))
    expected = Rotation.from_rotvec(2.0 * np.array([0.3, -0.5, 1.2]))
    assert (Rotation.from_quat(turned[-1]) * expected.inv()).magnitude() < 1e-9


def test_angles_lever_bias_and_latency_are_found(spoiled):
    found = calibrate([spoiled.log])[0]
    error = (Rotation.from_quat(found.rotation).inv() * Rotation.from_quat(spoiled.rotation)).magnitude()
    # Capture angles scatter by 2 mrad, 1200 of them; the lever from positions rounded to a millimetre.
    assert error < 2e-3
    np.testing.assert_allclose(found.gyro_bias, spoiled.bias, atol=2e-3)
    np.testing.assert_allclose(found.lever, spoiled.lever, atol=1.5e-3)
    assert abs(found.latency - spoiled.latency) < 5e-4


def test_reference_states_are_the_truth(synthetic, spoiled):
    calibration = Calibration(spoiled.rotation, spoiled.lever, spoiled.bias, spoiled.latency)
    source = reference(spoiled.log, calibration)
    index = np.arange(500, 5500, 125)
    states = source.states(synthetic.log.time[index])
    truth = synthetic.state[index]
    assert states.valid.all()
    # Bounds: the bias of a cubic over +-0.1 s where acceleration turns at 1.7 Hz, and rounding to 1 mm.
    assert np.linalg.norm(states.position - truth[:, 0:3], axis=1).max() < 1.5e-3
    assert np.linalg.norm(states.velocity - truth[:, 3:6], axis=1).max() < 0.03
    angle = (Rotation.from_quat(states.attitude).inv() * Rotation.from_quat(truth[:, 6:10])).magnitude()
    assert angle.max() < 4e-3
    # A local quadratic over 12 samples passes 0.4 of 5 mrad/s of white noise; the rest is its shape error.
    assert np.sqrt(np.mean((states.rate - truth[:, 10:13]) ** 2)) < 6e-3


def test_swapped_markers_are_thrown_away(synthetic):
    log = synthetic.log
    attitude = log.attitude.copy()
    wrong = slice(200, 260)
    attitude[wrong] = (Rotation.from_quat(attitude[wrong]) * Rotation.from_rotvec([0.0, 0.0, 0.8])).as_quat()
    bad = type(log)(**{**log.__dict__, "attitude": attitude})
    source = reference(bad, Calibration(np.array([0.0, 0.0, 0.0, 1.0]), np.zeros(3), np.zeros(3), 0.0))
    assert source.rejected == 60
    inside, outside = log.pose_time[230], log.pose_time[400]
    np.testing.assert_array_equal(source.states(np.array([inside, outside])).valid, [False, True])
