import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from airworthy.control import (
    Allocation,
    allocate_bounded,
    allocate_pseudo_inverse,
    allocation_for,
    collective_direction,
    pseudo_inverse,
    rotor_lead,
    speed_for_thrust,
)
from airworthy.core.errors import AirworthyError
from airworthy.vehicles import control_effectiveness, rotor_thrust, vehicle

CASES = 3000


def polygon(count, lever=0.2, kappa=0.02, tilt=0.0):
    """Effectiveness of n rotors on a circle, alternately spinning, each tilted about its arm."""
    columns = []
    for k in range(count):
        angle = 2 * np.pi * (k + 0.5) / count
        sign = (-1) ** k
        position = lever * np.array([np.cos(angle), np.sin(angle), 0.0])
        axis = np.array([-np.sin(angle) * np.sin(tilt) * sign, np.cos(angle) * np.sin(tilt) * sign, np.cos(tilt)])
        columns.append([*axis, *(np.cross(position, axis) + sign * kappa * axis)])
    return np.array(columns).T


def batch(effectiveness, lower, upper, cases):
    inverse = pseudo_inverse(effectiveness)
    return Allocation(
        tuple(tuple(row) for row in inverse),
        tuple(collective_direction(inverse)),
        tuple(np.full(cases, x) for x in lower),
        tuple(np.full(cases, x) for x in upper),
    )


def random_wrenches(rng, cases, lateral=0.0):
    scale = rng.choice([0.1, 0.5, 1.0, 3.0, 30.0], size=cases)
    return np.stack(
        [
            lateral * rng.normal(size=cases) * scale,
            lateral * rng.normal(size=cases) * scale,
            rng.uniform(-5.0, 35.0, cases),
            rng.normal(size=cases) * scale,
            rng.normal(size=cases) * scale,
            rng.normal(size=cases) * 0.2 * scale,
        ]
    )


LAYOUTS = {
    "quad": (polygon(4), [0.1] * 4, [6.0] * 4, 0.0),
    "hex": (polygon(6), [0.0] * 6, [5.0, 5.0, 4.0, 5.0, 6.0, 5.0], 0.0),
    "octo": (polygon(8), [0.05] * 8, [4.0] * 8, 0.0),
    "tilted hex": (polygon(6, tilt=0.4), [0.0] * 6, [5.0] * 6, 0.5),
    "off centre": (polygon(4) + np.array([0, 0, 0, 0.02, -0.03, 0.0])[:, None], [0.1] * 4, [6.0] * 4, 0.0),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_bounded_allocation_properties(name):
    effectiveness, lower, upper, lateral = LAYOUTS[name]
    a = batch(effectiveness, lower, upper, CASES)
    w = random_wrenches(np.random.default_rng(11), CASES, lateral)
    thrusts = np.array(allocate_bounded(tuple(w), a))
    low, high = np.array(lower)[:, None], np.array(upper)[:, None]
    assert np.all(thrusts >= low)
    assert np.all(thrusts <= high)

    exact = pseudo_inverse(effectiveness) @ w
    feasible = np.all((exact >= low) & (exact <= high), axis=0)
    assert 0.02 < feasible.mean() < 0.9
    assert np.allclose(thrusts[:, feasible], exact[:, feasible], atol=1e-12)

    # Where limits bind: roll and pitch keep their direction and sign and are never overshot, yaw likewise.
    rows = pseudo_inverse(effectiveness)
    recovered = np.linalg.pinv(rows[:, 2:]) @ thrusts if lateral == 0.0 else (effectiveness @ thrusts)[2:]
    share = np.sum(recovered[1:3] * w[3:5], axis=0) / np.sum(w[3:5] ** 2, axis=0)
    assert np.allclose(recovered[1:3], share * w[3:5], atol=1e-9)
    assert np.all((share > -1e-9) & (share < 1 + 1e-9))
    yaw_share = recovered[3] / w[5]
    assert np.all((yaw_share > -1e-6) & (yaw_share < 1 + 1e-6))

    # Yaw goes before roll and pitch: those are given up only where, with no yaw at all and any collective, they do not fit.
    lost = share < 1 - 1e-6
    for k in np.flatnonzero(lost)[:60]:
        tilt = rows[:, 3:5] @ w[3:5, k]
        collective = collective_direction(rows)[:, None]
        fit = scipy.optimize.linprog(
            [0.0],
            A_ub=np.vstack([collective, -collective]),
            b_ub=np.concatenate([np.array(upper) - tilt, tilt - np.array(lower)]),
            bounds=[(None, None)],
        )
        assert fit.status == 2  # infeasible
    # Thrust is moved only where roll and pitch need it, yaw notwithstanding: it is as near to what is asked as they let it be.
    collective, tilt = collective_direction(rows)[:, None], rows[:, 3:5] @ w[3:5]
    least, most = ((low - tilt) / collective).max(axis=0), ((high - tilt) / collective).min(axis=0)
    roomy = (least <= most) & ~feasible
    assert np.allclose(recovered[0, roomy], np.clip(w[2], least, most)[roomy], atol=1e-9)


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_is_achieved_never_falls_as_the_demand_grows(name):
    effectiveness, lower, upper, _ = LAYOUTS[name]
    rng = np.random.default_rng(5)
    rows = pseudo_inverse(effectiveness)
    for _ in range(40):
        direction = np.array([0.0, 0.0, 0.0, *rng.normal(size=2), 0.0])
        scales = np.linspace(0.0, 20.0, 60)
        w = np.array([0.0, 0.0, rng.uniform(1.0, 20.0), 0.0, 0.0, 0.0])[:, None] + direction[:, None] * scales
        thrusts = np.array(allocate_bounded(tuple(w), batch(effectiveness, lower, upper, 60)))
        moment = (np.linalg.pinv(rows[:, 2:]) @ thrusts)[1:3]
        along = direction[3:5] @ moment
        assert np.all(np.diff(along) > -1e-9)


def test_padding_changes_nothing():
    effectiveness, lower, upper, _ = LAYOUTS["quad"]
    a = batch(effectiveness, lower, upper, 500)
    zeros = (np.zeros(500),) * 4
    padded = Allocation(a.inverse + ((0.0,) * 6,) * 4, a.collective + (0.0,) * 4, a.thrust_min + zeros, a.thrust_max + zeros)
    w = tuple(random_wrenches(np.random.default_rng(3), 500))
    small, large = np.array(allocate_bounded(w, a)), np.array(allocate_bounded(w, padded))
    assert np.array_equal(large[:4], small)
    assert not large[4:].any()


def test_omnidirectional_airframes_stay_within_limits_and_scale_the_force_first():
    body = vehicle("base_octarotor")
    a = allocation_for(body)
    assert not any(a.collective)
    w = random_wrenches(np.random.default_rng(2), CASES, lateral=1.0)
    thrusts = np.array(allocate_bounded(tuple(w), a))
    assert np.all(np.abs(thrusts) <= 6.25)
    exact = np.array(a.inverse) @ w
    feasible = np.abs(exact).max(axis=0) <= 6.25
    assert np.allclose(thrusts[:, feasible], exact[:, feasible], atol=1e-12)
    force = (control_effectiveness(body) @ thrusts)[:3]
    share = np.sum(force * w[:3], axis=0) / np.sum(w[:3] ** 2, axis=0)
    assert np.allclose(force, share * w[:3], atol=1e-8)


def test_attitude_keeps_its_authority_without_thrust():
    """At zero collective roll still acts: the collective is raised by just what the lower limits need."""
    effectiveness, lower, upper, _ = LAYOUTS["quad"]
    thrusts = np.array(allocate_bounded((0.0, 0.0, 0.0, 0.5, 0.0, 0.0), batch(effectiveness, lower, upper, 1)))[:, 0]
    achieved = effectiveness @ thrusts
    assert achieved[3] == pytest.approx(0.5)
    assert thrusts.min() == pytest.approx(0.1)


def test_pseudo_inverse_of_planar_and_full_airframes():
    for effectiveness in (polygon(4), polygon(6), polygon(6, tilt=0.4), control_effectiveness(vehicle("base_random"))):
        assert np.allclose(pseudo_inverse(effectiveness), np.linalg.pinv(effectiveness), atol=1e-9)
    with pytest.raises(AirworthyError, match="shape"):
        pseudo_inverse(np.eye(3))


def test_a_tilted_quadrotor_gets_the_moments_it_is_asked_for():
    # Rank 4 with sideways force: six-row least squares would compromise between newtons and newton metres.
    effectiveness = polygon(4, tilt=0.2)
    w = np.array([0.0, 0.0, 10.0, 0.3, -0.2, 0.05])
    achieved = effectiveness @ pseudo_inverse(effectiveness) @ w
    assert np.allclose(achieved[2:], w[2:], atol=1e-12)


def test_pseudo_inverse_allocation_clips_where_asked():
    a = batch(polygon(4), [0.0] * 4, [2.0] * 4, 1)
    w = (0.0, 0.0, 12.0, 0.0, 0.0, 0.0)
    assert np.allclose(allocate_pseudo_inverse(w, a), 2.0)
    assert np.allclose(allocate_pseudo_inverse(w, a, limit=0.0), 3.0)


def test_allocation_of_a_vehicle():
    a = allocation_for(vehicle("flightgoggles"), rotor_count=6)
    # FlightGoggles 4.3: u_i = +-Mx/(4 a k_T) ..., i.e. thrusts of 1/4 per newton and 1/(4 a) per newton metre.
    assert np.allclose(np.array(a.inverse)[:4, 2], 0.25)
    assert np.allclose(np.array(a.inverse)[:4, 3], np.array([1, 1, -1, -1]) / 0.32)
    assert np.allclose(np.array(a.inverse)[:4, 4], np.array([-1, 1, 1, -1]) / 0.32)
    assert np.allclose(np.array(a.inverse)[:4, 5], np.array([-1, 1, -1, 1]) * 1.91 / 0.26 / 4)
    assert not np.any(a.inverse[4:])
    assert a.thrust_max == pytest.approx((9.2444,) * 4 + (0.0, 0.0))
    with pytest.raises(AirworthyError, match="does not fit a kernel for 3"):
        allocation_for(vehicle("flightgoggles"), rotor_count=3)


@given(st.floats(-5e-5, 1e-3), st.floats(0.0, 1e-5), st.floats(0.0, 3000.0))
def test_speed_for_thrust_inverts_the_polynomial(c1, c2, w):
    if c2 < 1e-9 and c1 < 1e-9:
        return
    c2 = max(c2, 1e-9)
    if c1 + 2 * c2 * w <= 1e-8 or w * c2 < -c1:
        return  # the falling branch near zero, where thrust is negative
    thrust = c1 * w + c2 * w * w
    back = float(speed_for_thrust((0.0, c1, c2), thrust))
    assert c1 * back + c2 * back * abs(back) == pytest.approx(thrust, abs=1e-9)
    assert back == pytest.approx(w, rel=1e-6, abs=1e-4)


def test_speed_for_thrust_special_cases():
    assert float(speed_for_thrust((0.0, 1.0, 0.0), -3.5)) == pytest.approx(-3.5)
    assert float(speed_for_thrust((0.0, 0.0, 2e-6), -8.0)) == pytest.approx(-2000.0)
    assert float(speed_for_thrust((0.0, 0.0, 2e-6), 0.0)) == 0.0
    assert float(speed_for_thrust((0.5, 0.0, 2e-6), 0.5)) == 0.0
    assert float(speed_for_thrust((0.0, 0.0, 0.0), 0.0)) == 0.0
    for name in ("cf2x_L250", "base_octarotor", "flightgoggles"):
        rotor = vehicle(name).rotors[0]
        for speed in (rotor.speed_max, 0.5 * (rotor.speed_max + max(rotor.speed_min, 0.0))):
            assert float(speed_for_thrust(rotor.thrust, rotor_thrust(rotor, speed))) == pytest.approx(speed)


def test_rotor_lead_divides_the_time_constant():
    # dw/dt = (c - w)/tau with c = w + k (r - w) is a lag of tau/k.
    w, target, tau, k, dt = 100.0, 500.0, 0.1, 4.0, 1e-5
    for _ in range(int(0.025 / dt)):
        w += dt * (rotor_lead(w, target, k) - w) / tau
    assert w == pytest.approx(500.0 - 400.0 * np.exp(-1.0), rel=1e-3)
