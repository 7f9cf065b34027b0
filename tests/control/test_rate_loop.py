import json

import numpy as np
import pytest
import scipy
from scipy.spatial.transform import Rotation

from airworthy.control import (
    RateLoopParameters,
    RateLoopState,
    backward_euler_coefficients,
    exact_coefficients,
    gain_set,
    low_pass,
    low_pass_constants,
    pseudo_inverse,
    rate_loop,
    rate_loop_parameters,
    speed_for_thrust,
)
from airworthy.control.attitude import attitude_error
from airworthy.control.geometric import BodyState
from airworthy.control.rate_loop import WaypointParameters, blend, waypoint_control
from airworthy.core.errors import AirworthyError
from airworthy.vehicles import control_effectiveness, vehicle

P, Q = low_pass_constants(30.0)


def test_constants_are_the_published_ones(data_dir):
    published = json.loads((data_dir / "flightgoggles/vehicle.json").read_text())["rate_controller"]
    assert published["lpf_gain_p"] == pytest.approx(P, rel=1e-12)
    assert published["lpf_gain_q"] == pytest.approx(Q, rel=1e-12)
    gains = gain_set("flightgoggles")
    assert gains.limits["filter_p"] == published["lpf_gain_p"]
    assert gains.midpoint()["derivative"] == tuple(published["kd"])


@pytest.mark.parametrize("dt", [1 / 960, 1 / 100, 0.05])
def test_exact_coefficients_are_the_matrix_exponential(dt):
    augmented = np.array([[0.0, 1.0, 0.0], [-P, -Q, P], [0.0, 0.0, 0.0]])
    c = exact_coefficients(P, Q, dt)
    # Entries of the exponential are up to p dt = 1800: relative rounding of both sides.
    expected = scipy.linalg.expm(augmented * dt)[:2]
    assert np.allclose([[c.a11, c.a12, c.b1], [c.a21, c.a22, c.b2]], expected, rtol=1e-10, atol=1e-10)


def gain_db(c, frequency, rate):
    """Gain of the discrete filter from its transfer function, in dB."""
    a, b = np.array([[c.a11, c.a12], [c.a21, c.a22]]), np.array([c.b1, c.b2])
    z = np.exp(2j * np.pi * frequency / rate)
    return 20 * np.log10(abs(np.linalg.solve(z * np.eye(2) - a, z * b)[0]))


def measured_gain_db(c, frequency, rate):
    """Gain measured on a sine of 2 s, in dB, the amplitude by projection over whole periods."""
    t = np.arange(int(2.0 * rate)) / rate
    x1 = x2 = 0.0
    out = []
    for u in np.sin(2 * np.pi * frequency * t):
        x1, x2 = low_pass(x1, x2, u, c)
        out.append(x1)
    half = len(t) // 2
    return 20 * np.log10(2 * abs(np.mean(np.array(out)[half:] * np.exp(-2j * np.pi * frequency * t[half:]))))


def test_butterworth_gain_at_its_cutoff():
    continuous = 20 * np.log10(abs(P / ((2j * np.pi * 30.0) ** 2 + Q * 2j * np.pi * 30.0 + P)))
    assert continuous == pytest.approx(-3.0103, abs=1e-3)
    # Holding the input for 1/960 s costs another 20 log10 sinc(30/960) = -0.014 dB.
    exact, published = exact_coefficients(P, Q, 1 / 960), backward_euler_coefficients(P, Q, 1 / 960)
    assert measured_gain_db(exact, 30.0, 960.0) == pytest.approx(-3.01, abs=0.03)
    assert measured_gain_db(published, 30.0, 960.0) == pytest.approx(-4.12, abs=0.01)
    for c in (exact, published):
        assert measured_gain_db(c, 30.0, 960.0) == pytest.approx(gain_db(c, 30.0, 960.0), abs=1e-4)
        assert gain_db(c, 1e-3, 960.0) == pytest.approx(0.0, abs=1e-6)


def test_published_step_is_backward_euler():
    dt, x1, x2, u = 1 / 960, 0.3, -4.0, 1.7
    x2_next = (x2 + P * dt * (u - x1)) / (1 + Q * dt + P * dt * dt)
    assert low_pass(x1, x2, u, backward_euler_coefficients(P, Q, dt)) == pytest.approx((x1 + dt * x2_next, x2_next))
    exact, published = exact_coefficients(P, Q, dt), backward_euler_coefficients(P, Q, dt)
    assert tuple(map(float, blend(1.0, exact, published))) == published
    assert tuple(map(float, blend(0.0, exact, published))) == exact


def test_one_step_by_hand():
    p = RateLoopParameters((0.1, 0.2, 0.3, 0.0, 0.0, 0.0), (9.0,) * 3, (3.0,) * 3, (0.3,) * 3, (0.001, 1000.0, 1000.0))
    state = RateLoopState((0.5, 0.0, 0.0), (2.0, 0.0, 0.0), (0.0, 0.1, 0.0))
    c = exact_coefficients(P, Q, 1 / 960)
    moment, after = rate_loop((0.6, 0.0, 0.0), (1.0, 0.0, -1.0), state, c, 1 / 960, p)
    x1, x2 = low_pass(0.5, 2.0, 0.6, c)
    assert after.integral == pytest.approx((min((1.0 - x1) / 960, 0.001), 0.1, -1 / 960))
    expected = (0.1 * (9 * (1 - x1) + 3 * after.integral[0] - 0.3 * x2), 0.2 * 0.3, 0.3 * (-9 - 3 / 960))
    assert moment == pytest.approx(expected)


def rate_step(name, aero, form, duration=3.0, rate=960.0):
    """Roll rate after a 3 rad/s step from hover: explicit Euler on body and motors, noise-free; (time, rate)."""
    body = vehicle(name)
    dt = 1.0 / rate
    inverse, inertia = pseudo_inverse(control_effectiveness(body)), np.array(body.inertia[:3])
    k_t, k_q = body.rotors[0].thrust[2], body.rotors[0].torque[2]
    x, y = np.array([r.position[0] for r in body.rotors]), np.array([r.position[1] for r in body.rotors])
    spin = np.array([r.spin for r in body.rotors])
    w = np.zeros(3)
    hover = np.sqrt(body.mass * body.gravity / 4 / k_t)
    motors = np.full(4, hover)
    state = RateLoopState((0.0,) * 3, (0.0,) * 3, (0.0,) * 3)
    p, c = rate_loop_parameters(body), form(P, Q, dt)
    history = []
    for _ in range(int(duration * rate)):
        moment, state = rate_loop(tuple(w), (3.0, 0.0, 0.0), state, c, dt, p)
        thrusts = inverse @ np.array([0.0, 0.0, body.mass * body.gravity, *moment])
        command = np.clip([speed_for_thrust(body.rotors[0].thrust, t) for t in thrusts], 0.0, body.rotors[0].speed_max)
        lift = k_t * motors**2
        torque = np.array([np.sum(y * lift), -np.sum(x * lift), np.sum(spin * k_q * motors**2)])
        torque = torque - aero * np.linalg.norm(w) * w - np.cross(w, inertia * w)
        w, motors = w + dt * torque / inertia, motors + dt * (command - motors) / 0.02
        history.append(w[0])
    return np.arange(1, len(history) + 1) * dt, np.array(history)


@pytest.mark.parametrize(("aero", "expected"), [(0.003, (1.49, 2.24, 2.65, 2.71, 2.82)), (0.0, (1.53, 2.41, 3.07, 3.12, 3.06))])
def test_roll_rate_step_of_the_race_quadrotor(aero, expected):
    # FlightGoggles, check 9: published gains, Euler, 960 Hz, within 2 %.
    t, rate = rate_step("flightgoggles", aero, backward_euler_coefficients)
    assert np.interp([0.1, 0.2, 0.5, 1.0, 3.0], t, rate) == pytest.approx(expected, rel=0.02)
    # The exact filter lags a little less; the response stays within the same 2 %.
    t, rate = rate_step("flightgoggles", aero, exact_coefficients)
    assert np.interp([0.1, 0.2, 0.5, 1.0, 3.0], t, rate) == pytest.approx(expected, rel=0.02)


def test_impossible_filters_are_refused():
    for wrong in (
        lambda: low_pass_constants(-1.0),
        lambda: exact_coefficients(1.0, 3.0, 0.1),
        lambda: backward_euler_coefficients(P, Q, 0),
    ):
        with pytest.raises(AirworthyError, match="arrived"):
            wrong()
    with pytest.raises(AirworthyError, match="geometric law"):
        rate_loop_parameters(vehicle("flightgoggles"), "lee")


def test_the_way_point_controller_by_its_equations() -> None:
    """Computed again with SciPy's rotations, for errors and speeds inside and beyond every limit."""
    rng = np.random.default_rng(3)
    p = WaypointParameters(1.2, 9.81)
    for size in (0.01, 0.3, 5.0):
        for _ in range(20):
            position, velocity, target = rng.normal(size=(3, 3)) * size
            rotation, yaw = Rotation.from_rotvec(rng.normal(size=3) * min(size, 1.0)), rng.uniform(-3.0, 3.0)
            state = BodyState(tuple(position), tuple(velocity), tuple(rotation.as_quat()), (0.0, 0.0, 0.0))
            thrust, rates = waypoint_control(state, tuple(target), yaw, p)
            error = target - position
            error *= min(1.0, (3.0 * 3.0 / 7.0) / np.linalg.norm(error))
            wanted = 7.0 * error - 3.0 * velocity
            wanted *= min(1.0, 3.0 / np.linalg.norm(wanted))
            force = 1.2 * (wanted + np.array([0.0, 0.0, 9.81]))
            z = force / np.linalg.norm(force)
            y = np.cross(z, [np.cos(yaw), np.sin(yaw), 0.0])
            y /= np.linalg.norm(y)
            desired = np.stack([np.cross(y, z), y, z], axis=1)
            matrix = rotation.as_matrix()
            turn = attitude_error(tuple(map(tuple, matrix.T)), tuple(map(tuple, desired.T)))
            assert thrust == pytest.approx(force @ matrix[:, 2], rel=1e-12)
            assert np.asarray(rates) == pytest.approx(np.clip(-10.0 * np.array(turn), -8.0, 8.0), abs=1e-9)
