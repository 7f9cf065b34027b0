"""Hover of any airframe: closed forms, an independent solver on random vehicles, and the reasons where there is none."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
import scipy

from airworthy.core.errors import AirworthyError
from airworthy.core.frames import rotate
from airworthy.vehicles import (
    Rotor,
    RotorResponse,
    Vehicle,
    check,
    hover_speed,
    hover_trim,
    rotor_thrust,
    rotor_torque,
    thrust_limits,
    upright,
    vehicle,
    vehicle_names,
)

RACER = vehicle("flightgoggles")


def with_axis(rotor: Rotor, x: float, y: float) -> Rotor:
    """The rotor with its axis turned by angles [rad] towards x and y."""
    axis = np.array([math.tan(x), math.tan(y), 1.0])
    return replace(rotor, axis=tuple(float(a) for a in axis / np.linalg.norm(axis)))


def without_thrust(rotor: Rotor) -> Rotor:
    return replace(rotor, thrust=(0.0, 0.0, 0.0), torque=(0.0, 0.0, 0.0))


def one_askew(degrees: float) -> Vehicle:
    first, *others = RACER.rotors
    return replace(RACER, rotors=(with_axis(first, math.radians(degrees), 0.0), *others))


def all_askew(degrees: float) -> Vehicle:
    return replace(RACER, rotors=tuple(with_axis(r, math.radians(degrees), 0.0) for r in RACER.rotors))


def wrench(airframe: Vehicle, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Force and moment about the centre of mass of rotor states, written out here rotor by rotor."""
    force, moment = np.zeros(3), np.zeros(3)
    for rotor, state in zip(airframe.rotors, states, strict=True):
        axis, lever = np.array(rotor.axis), np.array(rotor.position) - np.array(airframe.center_of_mass)
        force += rotor_thrust(rotor, state) * axis
        moment += rotor_thrust(rotor, state) * np.cross(lever, axis) + rotor.spin * rotor_torque(rotor, state) * axis
    return force, moment


def assert_at_rest(airframe: Vehicle) -> None:
    """Rotor states within limits carry the weight at the trim's attitude, without a moment."""
    trim = hover_trim(airframe)
    assert trim.hovers, trim.reason
    for rotor, state in zip(airframe.rotors, trim.states, strict=True):
        assert rotor.speed_min <= state <= rotor.speed_max
    force, moment = wrench(airframe, np.array(trim.states))
    weight = airframe.mass * airframe.gravity
    np.testing.assert_allclose(rotate(np.array(trim.attitude), force), [0.0, 0.0, weight], atol=1e-6 * weight)
    np.testing.assert_allclose(moment, 0.0, atol=1e-7 * weight)


@pytest.mark.parametrize("name", vehicle_names())
def test_every_catalogue_vehicle_hovers_level(name: str) -> None:
    assert_at_rest(vehicle(name))
    assert hover_trim(vehicle(name)).tilt == 0.0
    assert hover_trim(vehicle(name)).attitude == (0.0, 0.0, 0.0, 1.0)
    assert upright(vehicle(name)) is vehicle(name) or upright(vehicle(name)) == vehicle(name)


@pytest.mark.parametrize("degrees", [0.01, 0.2, 5.0, 40.0, 60.0])
def test_rotors_tilted_alike_lean_the_body_the_other_way_by_as_much(degrees: float) -> None:
    airframe = all_askew(degrees)
    assert_at_rest(airframe)
    trim = hover_trim(airframe)
    assert math.degrees(trim.tilt) == pytest.approx(degrees, rel=1e-9)
    # Thrust leans to the body's front, so the body leans back: body z points to world -x.
    body_z = rotate(np.array(trim.attitude), np.array([0.0, 0.0, 1.0]))
    np.testing.assert_allclose(body_z, [-math.sin(math.radians(degrees)), 0.0, math.cos(math.radians(degrees))], atol=1e-12)
    np.testing.assert_allclose(trim.states, hover_speed(RACER), rtol=1e-9)


@pytest.mark.parametrize("degrees", [0.01, 1.0, 10.0])
def test_one_bent_arm(degrees: float) -> None:
    airframe = one_askew(degrees)
    assert_at_rest(airframe)
    # A quarter of the force is turned by the angle, the sum by a quarter of it, up to terms of the next order.
    assert math.degrees(hover_trim(airframe).tilt) == pytest.approx(degrees / 4, rel=2.0 * math.radians(degrees))


def test_rotors_below_the_body_facing_down_hover_upside_down() -> None:
    airframe = replace(RACER, rotors=tuple(replace(r, axis=(0.0, 0.0, -1.0)) for r in RACER.rotors))
    assert_at_rest(airframe)
    assert hover_trim(airframe).tilt == pytest.approx(math.pi)


@pytest.mark.parametrize("seed", [3, 7])
def test_a_hexarotor_built_askew_leans_instead_of_setting_its_rotors_against_each_other(seed: int) -> None:
    """Also where its rotors could hold it level: the second one's, with thrusts that differ by more than their mean."""
    rng = np.random.default_rng(seed)
    ring = [(0.2 * math.cos(k * math.pi / 3), 0.2 * math.sin(k * math.pi / 3), 0.0) for k in range(6)]
    flat = [replace(RACER.rotors[0], position=p, spin=1 if k % 2 else -1) for k, p in enumerate(ring)]
    airframe = replace(RACER, rotors=tuple(with_axis(r, *rng.uniform(-0.0035, 0.0035, 2)) for r in flat))
    assert_at_rest(airframe)
    trim = hover_trim(airframe)
    assert 0.0 < trim.tilt < 0.005
    assert np.ptp(trim.states) < 0.05 * np.mean(trim.states)


def random_vehicle(rng: np.random.Generator) -> Vehicle:
    """Four to eight rotors anywhere, facing anywhere near up, of any size, some reversible, mass beside the middle."""
    count = int(rng.integers(4, 9))
    spread = rng.choice([0.02, 0.3, 0.8])
    rotors = []
    for k in range(count):
        axis = np.array([0.0, 0.0, 1.0]) + spread * rng.normal(size=3)
        angle = 2 * math.pi * (k + 0.3 * rng.normal()) / count
        full, kappa, speed = rng.uniform(2.0, 9.0), rng.uniform(0.01, 0.1), rng.uniform(500.0, 2000.0)
        rotors.append(
            Rotor(
                position=(0.2 * math.cos(angle), 0.2 * math.sin(angle), 0.05 * rng.normal()),
                thrust=(0.0, 0.0, full / speed**2),
                torque=(0.0, 0.0, kappa * full / speed**2),
                spin=1 if k % 2 else -1,
                response=RotorResponse.first_order(0.03),
                speed_max=speed,
                speed_min=float(rng.choice([0.0, 0.1 * speed, -speed])),
                axis=tuple(float(a) for a in axis / np.linalg.norm(axis)),
            )
        )
    offset = tuple(float(c) for c in 0.02 * rng.normal(size=3))
    return check(Vehicle("random", rng.uniform(0.5, 2.5), (0.01, 0.01, 0.018, 0.0, 0.0, 0.0), tuple(rotors), offset))


def slsqp_effort(airframe: Vehicle, starts: Iterable[np.ndarray]) -> float:
    """Least sum of squared thrusts of hover at any attitude by another solver, from these starts; inf where it finds none."""
    columns = []
    for rotor in airframe.rotors:
        axis, lever = np.array(rotor.axis), np.array(rotor.position) - np.array(airframe.center_of_mass)
        columns.append([*axis, *(np.cross(lever, axis) + rotor.spin * rotor.torque[2] / rotor.thrust[2] * axis)])
    matrix, weight = np.array(columns).T, airframe.mass * airframe.gravity
    force, moment = matrix[:3] / weight, matrix[3:] / (0.2 * weight)
    equations = [
        {"type": "eq", "fun": lambda u: moment @ u, "jac": lambda u: moment},
        {"type": "eq", "fun": lambda u: (force @ u) @ (force @ u) - 1.0, "jac": lambda u: 2.0 * (force @ u) @ force},
    ]
    best = math.inf
    for start in starts:
        found = scipy.optimize.minimize(
            lambda u: u @ u / weight**2,
            start,
            jac=lambda u: 2.0 * u / weight**2,
            bounds=list(zip(*thrust_limits(airframe), strict=True)),
            constraints=equations,
            method="SLSQP",
            options={"maxiter": 100, "ftol": 1e-14},
        )
        error = max(np.abs(moment @ found.x).max(), abs(float(np.linalg.norm(force @ found.x)) - 1.0))
        best = min(best, float(found.x @ found.x)) if error < 1e-7 else best
    return best


def test_random_vehicles_against_an_independent_solver() -> None:
    """SLSQP finds no hover where there is said to be none, and none near a leaning one that takes less."""
    rng = np.random.default_rng(5)
    leaning = none = 0
    for _ in range(40):
        airframe = random_vehicle(rng)
        trim = hover_trim(airframe)
        if not trim.hovers:
            none += 1
            assert slsqp_effort(airframe, (rng.uniform(*thrust_limits(airframe)) for _ in range(2))) == math.inf, trim.reason
            continue
        assert_at_rest(airframe)
        if trim.tilt > 0.0:
            leaning += 1
            effort = slsqp_effort(airframe, [np.array(trim.thrusts) * (1.0 + 1e-3 * rng.normal(size=airframe.rotor_count))])
            assert np.square(trim.thrusts).sum() == pytest.approx(effort, rel=1e-5)
    assert leaning >= 10
    assert none >= 10


CANNOT = {
    "it weighs 98.1 N and its rotors lift at most 36.98 N": replace(RACER, mass=10.0),
    "do not balance about the centre of mass": replace(RACER, center_of_mass=(0.2, 0.0, 0.0)),
    "reaction torques do not cancel": replace(RACER, rotors=tuple(replace(r, spin=1) for r in RACER.rotors)),
    "(rotor 2 without thrust)": replace(RACER, rotors=(*RACER.rotors[:2], without_thrust(RACER.rotors[2]), RACER.rotors[3])),
    "(rotors 0, 1, 2, 3 without thrust)": replace(RACER, rotors=tuple(map(without_thrust, RACER.rotors))),
    "push with 17.19 N at their lowest speeds": replace(
        RACER, rotors=tuple(replace(r, speed_min=1500.0) for r in RACER.rotors)
    ),
}


@pytest.mark.parametrize("reason", CANNOT)
def test_what_cannot_hover_is_a_vehicle_and_says_why(reason: str) -> None:
    airframe = check(CANNOT[reason])
    trim = hover_trim(airframe)
    assert not trim.hovers
    assert reason in trim.reason
    assert trim.tilt == 0.0
    assert all(r.speed_min <= s <= r.speed_max for r, s in zip(airframe.rotors, trim.states, strict=True))
    with pytest.raises(AirworthyError, match="flightgoggles cannot hover: "):
        hover_speed(airframe)


def test_a_dead_rotor_of_a_hexarotor_is_made_up_for() -> None:
    ring = [(0.2 * math.cos(k * math.pi / 3), 0.2 * math.sin(k * math.pi / 3), 0.0) for k in range(6)]
    # Spins in pairs (+ + - - + -): with one rotor out its opposite goes idle or the rest balances.
    rotors = [replace(RACER.rotors[0], position=p, spin=s) for p, s in zip(ring, (1, 1, -1, -1, 1, -1), strict=True)]
    rotors[1] = without_thrust(rotors[1])
    airframe = replace(RACER, rotors=tuple(rotors))
    assert_at_rest(airframe)
    assert hover_trim(airframe).thrusts[1] == 0.0


@pytest.mark.parametrize(("dead", "spin"), [(0, 1), (3, -1)])
def test_a_hexarotor_of_alternating_spins_with_a_rotor_out_carries_itself_while_it_turns(dead: int, spin: int) -> None:
    ring = [(0.2 * math.cos(k * math.pi / 3), 0.2 * math.sin(k * math.pi / 3), 0.0) for k in range(6)]
    # Its opposite cannot stand still, which alone would balance the reaction torques.
    pairs = zip(ring, 3 * (1, -1), strict=True)
    rotors = [replace(RACER.rotors[0], position=p, spin=s, speed_min=200.0) for p, s in pairs]
    assert rotors[dead].spin == spin
    rotors[dead] = without_thrust(rotors[dead])
    reason = hover_trim(replace(RACER, rotors=tuple(rotors))).reason
    assert "only while it turns in yaw, and nothing with its heading held" in reason
    assert f"(rotor {dead} without thrust)" in reason
    assert "at most 0 N" not in reason


def test_upright_turns_the_whole_record() -> None:
    airframe = replace(all_askew(20.0), inertia=(0.004, 0.006, 0.009, 0.0001, 0.0, 0.0002), center_of_mass=(0.01, 0.0, 0.02))
    turned = upright(airframe)
    assert_at_rest(airframe)
    assert hover_trim(turned).tilt == 0.0
    np.testing.assert_allclose([r.axis for r in turned.rotors], [(0.0, 0.0, 1.0)] * 4, atol=1e-12)
    turn = np.array([rotate(np.array(hover_trim(airframe).attitude), axis) for axis in np.eye(3)]).T
    xx, yy, zz, xy, xz, yz = airframe.inertia
    matrix = turn @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ turn.T
    np.testing.assert_allclose(turned.inertia, matrix[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]], atol=1e-15)
    for a, b in zip(airframe.rotors, turned.rotors, strict=True):
        np.testing.assert_allclose(b.position, turn @ a.position, atol=1e-15)
    np.testing.assert_allclose(turned.center_of_mass, turn @ airframe.center_of_mass, atol=1e-15)
