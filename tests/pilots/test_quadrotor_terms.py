"""One policy for all quadrotors: in which terms a vehicle looks like any other, and its network as the vehicle's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.pilots.motor_cases import contract, held, weights

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.frames import from_euler, multiply
from airworthy.learning.export_motor import export_policy
from airworthy.pilots import MotorPolicy, motor_observation, motor_pilot, read_motor_policy
from airworthy.pilots.motor_policy.contract import check_vehicle, vehicle_digest, write_motor_folder
from airworthy.pilots.motor_policy.quadrotor import SPINS, QuadrotorTerms
from airworthy.pilots.network_files import CONTRACT_FILE, write_sealed
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import Vehicle, hover_speed, rotor_thrust, vehicle, vehicle_names

BAND = ((0.85, 1.15),) * 4
QUADROTORS = [name for name in vehicle_names() if vehicle(name).rotor_count == 4]


def policy(**given: Any) -> MotorPolicy:
    made = contract(**{"vehicle": "any", "family": "quadrotor", "limits": BAND, "hover": (0.0,) * 4, "history": 2, **given})
    return MotorPolicy(made, tuple(weights(made)))


@pytest.mark.parametrize("name", QUADROTORS)
def test_every_quadrotor_of_the_catalogue_has_them(name: str) -> None:
    item = vehicle(name)
    terms = QuadrotorTerms.of(item, 0.15)
    rotors = [item.rotors[k] for k in terms.order]
    assert tuple(rotor.spin for rotor in rotors) == SPINS
    angles = np.degrees([np.arctan2(r.position[1], r.position[0]) for r in rotors]) - np.degrees(terms.turn)
    np.testing.assert_allclose((angles - [45.0, 135.0, 225.0, 315.0] + 180.0) % 360.0 - 180.0, 0.0, atol=10.0)
    hover = hover_speed(item)
    np.testing.assert_allclose(0.5 * (terms.low + terms.high), hover, rtol=1e-12)
    ends = zip(item.rotors, terms.low, terms.high, strict=True)
    assert all(r.speed_min <= low < high <= r.speed_max * (1 + 1e-12) for r, low, high in ends)
    # A third more thrust, whatever a state is; less where the vehicle is weak, more where thrust is no square.
    assert 1.25 < rotor_thrust(item.rotors[0], terms.high[0]) / rotor_thrust(item.rotors[0], hover[0]) < 1.45


def state(seed: int = 0) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    q = rng.normal(size=(5, 4))
    fields = {name: rng.normal(size=(5, 3)) for name in ("position", "velocity", "rate")}
    return {**fields, "attitude": q / np.linalg.norm(q, axis=1, keepdims=True)}


@pytest.mark.parametrize("name", ["x500", "real_01", "virt_01", "cf2x_gym_pybullet_drones", "carl"])
def test_the_vehicles_own_network_does_what_the_policy_does_in_turned_axes(name: str) -> None:
    """Turned as people would: body and target by the same angle, rotors by their numbers."""
    item, general, x = vehicle(name), policy(), state()
    terms, own = QuadrotorTerms.of(item, 0.15), general.fitted(item)
    c, s = np.cos(terms.turn), np.sin(terms.turn)
    rate = x["rate"] @ np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    turned = multiply(x["attitude"], np.tile(from_euler(0.0, 0.0, terms.turn), (5, 1)))
    past = np.random.default_rng(1).uniform(-1.0, 1.0, (5, 2, 4))
    yaw = np.full(5, 0.3)
    seen = motor_observation(x["position"], x["velocity"], turned, rate, yaw + terms.turn)
    wanted = general.action(np.concatenate([seen, past[:, :, terms.order].reshape(5, 8)], axis=1))
    seen = motor_observation(x["position"], x["velocity"], x["attitude"], x["rate"], yaw)
    found = own.action(np.concatenate([seen, past.reshape(5, 8)], axis=1))
    np.testing.assert_allclose(found[:, terms.order], wanted, atol=2e-6)
    assert own.contract.family == ""
    assert (own.contract.vehicle, own.contract.digest) == (name, vehicle_digest(item))
    np.testing.assert_allclose(own.command(np.ones((1, 4)))[0], terms.high, rtol=1e-12)


def test_other_numbers_of_the_same_rotors_are_the_same_vehicle() -> None:
    item = vehicle("x500")
    shuffled = replace(item, rotors=tuple(item.rotors[k] for k in (2, 0, 3, 1)))
    a, b = (QuadrotorTerms.of(v, 0.15) for v in (item, shuffled))
    assert [item.rotors[k].position for k in a.order] == [shuffled.rotors[k].position for k in b.order]
    assert a.turn == b.turn == 0.0


def test_a_policy_of_one_vehicle_is_left_as_it_is() -> None:
    made = contract()
    own = MotorPolicy(made, tuple(weights(made)))
    assert own.fitted(vehicle("x500")) is own


def _spins(*signs: Any) -> Callable[[Vehicle], Vehicle]:
    return lambda v: replace(v, rotors=tuple(replace(r, spin=k) for r, k in zip(v.rotors, signs, strict=True)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda v: vehicle("base_octarotor"), "'base_octarotor' is none"),
        (lambda v: replace(v, rotors=tuple(replace(r, axis=(0.0, 0.1, 0.995)) for r in v.rotors)), "with upright rotors"),
        (_spins(1, 1, 1, 1), "neighbouring rotors turn against each other"),
        (_spins(-1, -1, -1, -1), "neighbouring rotors turn against each other"),
        (_spins(1, 1, -1, -1), None),
        (_spins(1, -1, 1, -1), "do not"),
        (lambda v: replace(v, rotors=tuple(replace(r, speed_min=700.0) for r in v.rotors)), "no thrust in reserve|hover"),
    ],
)
def test_what_is_no_such_quadrotor(change: Callable[[Vehicle], Vehicle], said: str | None) -> None:
    item = change(vehicle("x500"))
    if said is None:  # all turning the other way round is as good
        assert QuadrotorTerms.of(item, 0.15).turn == pytest.approx(-np.pi / 2)
        return
    with pytest.raises(AirworthyError, match=said):
        check_vehicle(policy().contract, item)


def test_a_folder_says_that_it_is_of_a_family(tmp_path: Path) -> None:
    general = policy()
    folder = write_motor_folder(tmp_path, general.contract, general.weights)
    assert read_motor_policy(folder).contract == general.contract
    table = json.loads((folder / CONTRACT_FILE).read_text())
    assert (table["vehicle"]["family"], table["vehicle"]["rotor_state"]["unit"]) == ("quadrotor", "hover")
    with pytest.raises(AirworthyError, match="a policy for any quadrotor; only one vehicle's own"):
        export_policy(folder, tmp_path / "p.h")
    table["vehicle"]["family"] = "helicopter"
    write_sealed(folder / CONTRACT_FILE, table)
    with pytest.raises(AssetError, match="family"):
        read_motor_policy(folder)


@pytest.mark.parametrize(
    "given", [{"limits": ((0.85, 1.15),) * 3 + ((0.8, 1.2),)}, {"action": "square"}, {"limits": BAND[:3], "hover": (0.0,) * 3}]
)
def test_contracts_of_a_family_that_make_no_sense(given: dict[str, Any]) -> None:
    with pytest.raises(AirworthyError, match=r"Contract\.family"):
        policy(**given)


def test_it_flies_one_vehicle_at_a_time() -> None:
    config = SimulatorConfig(level="rotor_speed", control_rate=100.0)
    pilot = motor_pilot(policy(), Simulator(vehicle("x500"), config, 2), held())
    assert pilot.policy.contract.vehicle == "x500"
    check_vehicle(pilot.policy.contract, vehicle("x500"))
    heavier = replace(vehicle("x500"), mass=2.0)
    with pytest.raises(AirworthyError, match="train one for it"):
        check_vehicle(pilot.policy.contract, heavier)
    with pytest.raises(AirworthyError, match="fly different vehicles one after the other"):
        motor_pilot(policy(), Simulator([vehicle("x500"), vehicle("tinyprop")], config, 2), held())
