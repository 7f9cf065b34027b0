import json
from dataclasses import replace

import numpy as np
import pytest
import scipy

from airworthy.control import (
    MODES,
    BodyState,
    Reference,
    allocate_bounded,
    allocation_for,
    bandwidth,
    default_gains,
    gain_set,
    gain_set_names,
    geometric_control,
    geometric_parameters,
    rotor_lag,
)
from airworthy.control.gains_for import angular_acceleration_at_hover
from airworthy.core.errors import AirworthyError, UnknownNameError
from airworthy.vehicles import Vehicle, control_effectiveness, hover_speed, rotor_thrust, vehicle, vehicle_names

PUBLISHED = {
    "lee": "lee_controller_config",
    "lmf2": "lmf2_controller_config",
    "magpie": "magpie_controller_config",
    "octarotor": "lee_controller_config_octarotor",
    "fully_actuated": "fully_actuated_controller_rov",
}
KEYS = {"position_gain": "pos", "velocity_gain": "vel", "attitude_gain": "rot", "rate_gain": "angvel"}


@pytest.mark.parametrize("name", PUBLISHED)
def test_geometric_sets_equal_the_reference_file_sorted(name, data_dir):
    table = json.loads((data_dir / "aerial_gym/controller_gains.json").read_text())["sets"][PUBLISHED[name]]
    gains = gain_set(name)
    for ours, theirs in KEYS.items():
        ends = np.sort([table[f"K_{theirs}_tensor_min"], table[f"K_{theirs}_tensor_max"]], axis=0)
        assert np.array_equal([gains.minimum[ours], gains.maximum[ours]], ends)
        assert np.allclose(gains.midpoint()[ours], ends.mean(axis=0))
    assert gains.limits["yaw_rate_max"] == table["max_yaw_rate"]
    assert gains.source


def test_samples_fill_their_ranges_and_repeat():
    gains = gain_set("octarotor")
    one, two = (gains.sample(np.random.default_rng(7), 2000) for _ in range(2))
    for name, axes in one.items():
        for axis, values in enumerate(axes):
            low, high = gains.minimum[name][axis], gains.maximum[name][axis]
            assert values.shape == (2000,)
            assert low <= values.min() < low + 0.01 * (high - low) + 1e-12
            assert high >= values.max() > high - 0.01 * (high - low) - 1e-12
            assert np.array_equal(values, two[name][axis])


def test_every_set_is_there_and_mistakes_are_named():
    assert set(gain_set_names()) == {
        *PUBLISHED,
        "flightgoggles",
        "mellinger_firmware",
        "mellinger_crazyswarm",
        "mellinger_crazyflow",
    }
    for name in gain_set_names():
        assert gain_set(name).name == name
    with pytest.raises(UnknownNameError, match="Closest: 'magpie'"):
        gain_set("magpy")
    with pytest.raises(AirworthyError, match="mellinger law"):
        geometric_parameters(vehicle("carl"), "mellinger_firmware")


def linearised(body: Vehicle, p) -> np.ndarray:
    """Poles of hover under position control, rotors as one lag per thrust, by differentiating the whole loop.

    States: position, velocity, rotation vector, rates, thrusts. Rates of each rotor's thrust: its slower time constant.
    """
    a, effectiveness = allocation_for(body), control_effectiveness(body)
    n, lag = body.rotor_count, rotor_lag(body)
    hover = np.array([rotor_thrust(r, float(w)) for r, w in zip(body.rotors, hover_speed(body), strict=True)])
    i = body.inertia
    inverse = np.linalg.inv([[i[0], i[3], i[4]], [i[3], i[1], i[5]], [i[4], i[5], i[2]]])

    def derivative(z: np.ndarray) -> np.ndarray:
        x, v, turn, w, thrusts = np.split(z, [3, 6, 9, 12])
        q = np.array([*(0.5 * turn), 1.0])
        q = q / np.linalg.norm(q)
        out = geometric_control(BodyState(tuple(x), tuple(v), tuple(q), tuple(w)), Reference(), MODES["position"], p)
        command = np.array(allocate_bounded((0.0, 0.0, out.thrust, *out.moment), a), float)
        wrench = effectiveness @ thrusts
        # To first order in the turn: R f = f + turn x f.
        acceleration = (wrench[:3] + np.cross(turn, wrench[:3])) / body.mass - [0.0, 0.0, body.gravity]
        return np.concatenate([v, acceleration, w, inverse @ wrench[3:], (command - thrusts) / lag])

    trim = np.concatenate([np.zeros(12), hover])
    h = 1e-5
    columns = [(derivative(trim + h * e) - derivative(trim - h * e)) / (2 * h) for e in np.eye(12 + n)]
    return scipy.linalg.eigvals(np.array(columns).T)


@pytest.mark.parametrize("name", vehicle_names())
def test_default_gains_place_damped_poles_on_every_airframe(name):
    body = vehicle(name)
    p = default_gains(body, control_period=0.002)
    poles = linearised(body, p)
    assert poles.real.max() < 0.0
    # 0.45 by design of the cascade (LAG_BANDWIDTH); inertia products and the finite difference take a little.
    damping = -poles.real / np.abs(poles)
    assert damping.min() > 0.40
    # And it settles as its bandwidth promises: the slowest pole is at least half as fast as the slower of the position and
    # yaw loops by themselves.
    band = bandwidth(body)
    assert -poles.real.max() > 0.5 * min(0.23 * band.attitude[0], 0.5 * band.attitude[2])


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_default_gains_survive_wrong_inertia(factor):
    for name in ("cf2x_L250", "flightgoggles", "real_09", "real_18", "lmf2"):
        body = vehicle(name)
        wrong = replace(body, inertia=tuple(factor * j for j in body.inertia))
        assert linearised(body, default_gains(wrong)).real.max() < 0.0


def test_bandwidth_follows_lag_and_authority():
    fast, slow = bandwidth(vehicle("flightgoggles")), bandwidth(vehicle("cf2x_L250"))
    assert fast.attitude[0] == pytest.approx(0.35 / 0.022)
    assert slow.attitude[0] == pytest.approx(0.35 / (rotor_lag(vehicle("cf2x_L250")) + 0.002))
    # Rotors driven with a lead of 4 react four times as fast.
    assert bandwidth(vehicle("cf2x_L250"), lead=4.0).attitude[0] > 3.5 * slow.attitude[0]
    # Weak yaw limits the yaw loop.
    heavy = vehicle("real_18")
    assert bandwidth(heavy).attitude[2] == pytest.approx(np.sqrt(angular_acceleration_at_hover(heavy)[2] / 0.5))


def test_acceleration_at_hover_is_what_the_rotors_leave():
    # FlightGoggles: hover 2.4525 N of 9.244 N; all four may move by 2.4525: roll 4 x 0.08 x 2.4525 / J.
    found = angular_acceleration_at_hover(vehicle("flightgoggles"))
    assert found == pytest.approx([0.32 * 2.4525 / 0.0049] * 2 + [9.81 * 0.26 / 1.91 / 0.0069], rel=1e-9)


def test_thrust_budget_leaves_room_for_control_but_never_less_than_the_weight():
    for name in vehicle_names():
        body = vehicle(name)
        p = default_gains(body)
        assert p.thrust_max > body.mass * body.gravity
        assert p.inclination_tangent == pytest.approx(np.sqrt(3.0))


def test_published_sets_come_without_force_limits():
    p = geometric_parameters(vehicle("lmf2"), "lmf2")
    assert p.thrust_max == 0.0
    assert p.inclination_tangent == 0.0
    assert p.position_gain == (2.0, 2.0, 1.0)
    assert p.velocity_gain == pytest.approx((3.0, 3.0, 1.5))
