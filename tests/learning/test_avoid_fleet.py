"""Policies of a fleet: what a throttle gives, what is told and identified, trainings that resume, folders, what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import airworthy as aw
from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.jobs.checkpoints import Checkpoints
from airworthy.learning.avoid import AvoidOptions, AvoidProtocol, train_avoid
from airworthy.learning.avoid.evaluation import flown_vehicles
from airworthy.learning.avoid.fleet import FleetFlights, FleetVehicles, fleet_names, thrust_lag, unseen
from airworthy.learning.avoid.identifier import Identifier, identifier_step
from airworthy.learning.avoid.places import draw_places
from airworthy.learning.avoid.trainer import AvoidTraining
from airworthy.learning.machine import TrainingRunOptions
from airworthy.pilots.avoid_policy.contract import (
    AvoidContract,
    FleetTold,
    read_avoid_folder,
    tensor_shapes,
    write_avoid_folder,
)
from airworthy.pilots.avoid_policy.fleet import (
    HISTORY,
    HISTORY_ROW,
    KnownVehicles,
    bounded,
    feature_rows,
    given_by_throttle,
    history_row,
    identified,
    ratio_of,
    rough_ratio,
    thrust_limited,
)
from airworthy.pilots.avoid_policy.pilot import AvoidPilot, AvoidPolicy
from airworthy.pilots.network_files import sealed_text
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import vehicle

TINY = AvoidOptions(
    seed=3, iterations=2, env_count=8, window=4, windows_per_flight=2, hidden=16, place_count=2, vehicles="real",
    condition="identified", identify_steps=2,
)  # fmt: skip
QUICK = AvoidProtocol(seed=5, flights=2, speeds=(4.0,), areas=(8.0,))
ONE = TrainingRunOptions(device="cpu", threads=1)


def _contract(condition: Any) -> AvoidContract:
    return AvoidContract(8, fleet=FleetTold(condition, "virtual", (-0.5,) * 3, (0.5,) * 3))


def _weights(contract: AvoidContract) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    return {k: (0.3 * rng.normal(size=shape)).astype(np.float32) for k, shape in tensor_shapes(contract).items()}


# ---- what a throttle gives -------------------------------------------------------------------------------------------


def test_who_knows_its_vehicle_is_given_what_it_asks_for() -> None:
    asked, ratio = np.array([[2.0, -1.0, 0.5]]), np.array([[1.6]])
    given, throttle = given_by_throttle(asked, ratio, ratio, np)
    np.testing.assert_allclose(given, asked, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(throttle), np.linalg.norm(asked + np.array([0.0, 0.0, 9.81])) / (1.6 * 9.81))


def test_who_takes_a_weak_vehicle_for_a_strong_one_falls() -> None:
    given, throttle = given_by_throttle(np.zeros((1, 3)), np.array([[3.0]]), np.array([[1.5]]), np)
    np.testing.assert_allclose(throttle, [[0.0, 0.0, 1.0 / 3.0]])
    np.testing.assert_allclose(given, [[0.0, 0.0, -9.81 / 2.0]])


def test_height_comes_first_and_no_throttle_is_above_its_share() -> None:
    found = thrust_limited(np.array([[50.0, 0.0, 5.0], [0.0, 3.0, 90.0], [1.0, 1.0, -50.0]]), np.full((3, 1), 20.0), np)
    np.testing.assert_allclose(found[0], [np.sqrt(400.0 - 14.81**2), 0.0, 14.81], rtol=1e-6)
    assert np.linalg.norm(found[1]) <= 20.0 + 1e-3
    assert found[2, 2] == pytest.approx(3.0)  # nobody flies head down
    both = torch.tensor([[50.0, 0.0, 5.0]], dtype=torch.float64)
    np.testing.assert_allclose(thrust_limited(both, torch.full((1, 1), 20.0), torch).numpy(), found[:1], rtol=1e-6)


def test_features_are_logarithms_and_come_back() -> None:
    rows = feature_rows([3.0, 6.0], [300.0, 30.0], [20.0, 20.0])
    np.testing.assert_allclose(rows[0], 0.0)
    np.testing.assert_allclose(ratio_of(rows, np)[:, 0], [3.0, 6.0])
    with pytest.raises(AirworthyError, match="not all above 0"):
        feature_rows([3.0], [0.0], [1.0])
    low = bounded(np.array([[-9.0, 1.0, 2.0]]), np)
    assert ratio_of(low, np)[0, 0] == pytest.approx(1.1)


def _history(ratio: float, count: int = HISTORY) -> np.ndarray:
    """Of a vehicle without lag that was sent throttles."""
    rng = np.random.default_rng(1)
    rows = np.zeros((HISTORY, HISTORY_ROW))
    for k in range(HISTORY - count, HISTORY):
        throttle = np.array([[*rng.normal(0.0, 0.1, 2), 0.4]])
        given = throttle * 9.81 * ratio - np.array([[0.0, 0.0, 9.81]])
        rows[k] = history_row(throttle, given, np.array([[0.0, 0.0, 1.0]]), np)
    return rows.reshape(1, -1)


def test_least_squares_find_the_thrust_to_weight() -> None:
    """With the middle vehicle where there is no history yet, and nearly the truth behind half a second."""
    assert rough_ratio(np.zeros((1, HISTORY * HISTORY_ROW)), np)[0, 0] == pytest.approx(0.0)
    for ratio in (1.4, 6.0):
        error = [abs(float(np.exp(rough_ratio(_history(ratio, n), np)[0, 0])) * 3.0 / ratio - 1.0) for n in (1, 4, 8)]
        assert error[0] > error[1] > error[2]
        assert error[2] < 0.03


def test_the_pilot_identifies_as_training_does() -> None:
    torch.manual_seed(4)
    net = Identifier()
    weights = {f"identify.{name}": tensor.detach().numpy() for name, tensor in net.state_dict().items()}
    history = np.concatenate([_history(1.4), _history(5.0, 3)])
    mine = identified(weights, history)
    np.testing.assert_allclose(mine, net(torch.tensor(history, dtype=torch.float32)).detach().numpy(), atol=1e-5)
    np.testing.assert_array_equal(identified(weights, history[1:]), mine[1:])


# ---- vehicles --------------------------------------------------------------------------------------------------------


def test_halves_are_the_benchmarks_and_judged_is_the_other() -> None:
    assert len(fleet_names("virtual")) == len(fleet_names("real")) == 18
    assert sorted(fleet_names("all")) == sorted(fleet_names("virtual") + fleet_names("real"))
    assert (unseen("virtual"), unseen("real"), unseen("all")) == ("real", "virtual", "all")
    with pytest.raises(AirworthyError, match="fleet"):
        fleet_names("both")
    flown = flown_vehicles("real", 20)
    assert flown[0] is flown[18]
    assert flown[0].body.size[0] == 0.3
    assert [item.name for item in flown_vehicles("", 2)] == ["flightgoggles"] * 2


def test_lags_are_those_of_full_bodies() -> None:
    """Against steps of 4 m/s^2 in `Simulator`: what the training's point mass follows late by, the vehicles do."""
    names = ("real_09", "real_14", "virt_02", "virt_05")
    records = [vehicle(name) for name in names]
    simulator = Simulator(
        records, SimulatorConfig(physics_rate=500.0, control_rate=100.0, level="acceleration"), len(names), seed=0
    )
    simulator.reset(position=np.tile([0.0, 0.0, 50.0], (len(names), 1)))
    for _ in range(60):
        simulator.step(np.zeros((len(names), 4)))
    for _ in range(60):
        simulator.step(np.tile([4.0, 0.0, 0.0, 0.0], (len(names), 1)))
    behind = 0.6 - np.array(simulator.velocity)[:, 0] / 4.0
    fleets = [FleetVehicles.of("real"), FleetVehicles.of("virtual")]
    lag = np.concatenate([thrust_lag(f.thrust_to_weight, f.alpha_xy, f.motor) for f in fleets])
    order = [*fleet_names("real"), *fleet_names("virtual")]
    expected = np.array([lag[order.index(name)] for name in names])
    # A lag of first order is behind by tau (1 - exp(-t / tau)).
    np.testing.assert_allclose(expected * (1.0 - np.exp(-0.6 / expected)), behind, atol=0.035)
    assert expected[0] > expected[3] > expected[2]


def test_drawn_vehicles_are_like_those_of_their_half_and_can_hover() -> None:
    real = FleetVehicles.of("real")
    drawn = real.drawn(4000, np.random.default_rng(0))
    assert drawn.thrust_to_weight.min() >= 1.25
    np.testing.assert_allclose(np.log(drawn.alpha_xy).mean(), np.log(real.alpha_xy).mean(), atol=0.02)
    low, high = real.told_bounds
    inside = ((drawn.features >= low) & (drawn.features <= high)).mean(0)
    assert (inside > 0.9).all()


# ---- flights of training ---------------------------------------------------------------------------------------------


def _ticks(condition: str) -> tuple[FleetFlights, list[Any]]:
    flights = FleetFlights(4, draw_places(1, 0), 8, 6.0, "real", condition, threads=1)
    flights.begin(np.arange(4), np.random.default_rng(0))

    class Asks:
        """Hovers, and tells what it was given."""

        def __init__(self) -> None:
            self.given: list[Any] = []

        def __call__(self, image: Any, state: Any, memory: Any) -> Any:
            self.given.append(state)
            return torch.zeros(len(state), 6), memory

    net, noise = Asks(), torch.Generator()
    with torch.no_grad():
        for _ in range(3):
            flights.tick(net, noise, np.random.default_rng(0))  # type: ignore[arg-type]
    return flights, net.given


def test_the_told_hover_and_the_others_do_not() -> None:
    told, given = _ticks("told")
    assert given[0].shape == (4, 13)
    torch.testing.assert_close(given[0][:, 10:], told.features.clamp(told._low, told._high))
    # Asked for nothing they stay as high as they were, but for noise, drag and gusts.
    assert float(told.act[:, 2].abs().max()) < 0.05
    nothing, seen = _ticks("none")
    assert seen[0].shape == (4, 10)
    expected = 9.81 * (nothing.ratio[:, 0] / 3.0 - 1.0)
    assert (nothing.act[:, 2].sign() == expected.sign()).all()
    assert (nothing.act[:, 2].abs() > 0.3 * expected.abs()).all()


def test_a_training_resumes_to_the_same_bits_across_both_stages(tmp_path: Path) -> None:
    whole = AvoidTraining(TINY, 1)
    costs = [whole.step() for _ in range(4)]
    for stop in (1, 3):
        first = AvoidTraining(TINY, 1)
        assert [first.step() for _ in range(stop)] == costs[:stop]
        Checkpoints(tmp_path / str(stop)).save(first.save(), {})
        second = AvoidTraining(TINY, 1)
        saved = Checkpoints(tmp_path / str(stop)).newest()
        assert saved is not None
        second.restore(saved)
        assert [second.step() for _ in range(4 - stop)] == costs[stop:]
        assert second.finished
        for name, tensor in whole.weights.items():
            assert tensor.tobytes() == second.weights[name].tobytes(), name


def test_who_identifies_has_the_policy_of_who_was_told() -> None:
    told, other = AvoidTraining(replace(TINY, condition="told", identify_steps=150), 1), AvoidTraining(TINY, 1)
    while not told.finished:
        told.step()
    while not other.finished:
        other.step()
    for name, tensor in told.weights.items():
        assert tensor.tobytes() == other.weights[name].tobytes(), name
    extra = set(other.weights) - set(told.weights)
    assert extra
    assert all(name.startswith("identify.") for name in extra)


def test_a_checkpoint_without_a_fleet_is_refused() -> None:
    plain = AvoidTraining(replace(TINY, vehicles="", condition="told", identify_steps=150), 1)
    fleet = AvoidTraining(replace(TINY, condition="none", identify_steps=150), 1)
    with pytest.raises(AirworthyError, match="without a fleet"):
        fleet.flights.restore(plain.flights.arrays())


# ---- folders ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("condition", ["none", "told", "identified"])
def test_a_folder_tells_what_its_policy_knows(condition: str, tmp_path: Path) -> None:
    contract = _contract(condition)
    write_avoid_folder(tmp_path / "p", contract, _weights(contract))
    found, weights = read_avoid_folder(tmp_path / "p")
    assert found.fleet == contract.fleet
    assert weights["state.weight"].shape == (8, 10 if condition == "none" else 13)
    told = AvoidPolicy(found, weights).told().contract.fleet
    assert told is not None
    assert told.condition == ("told" if condition == "identified" else condition)


def test_contracts_of_a_fleet_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    contract = _contract("told")
    write_avoid_folder(tmp_path / "p", contract, _weights(contract))
    file = tmp_path / "p" / "contract.json"
    table = {name: value for name, value in json.loads(file.read_text()).items() if name != "seal"}
    changes = ({"condition": "guessed"}, "condition"), ({"least": [0.0]}, "bounds"), ({"features": ["mass"]}, "features")
    for change, said in changes:
        file.write_text(sealed_text(table | {"fleet": table["fleet"] | change}))
        with pytest.raises(AssetError, match=said):
            read_avoid_folder(tmp_path / "p")
    with pytest.raises(AirworthyError, match="least and most"):
        FleetTold("told", "real", (1.0,) * 3, (0.0,) * 3)


def test_a_policy_of_a_fleet_needs_to_know_what_is_flown() -> None:
    contract = _contract("identified")
    policy = AvoidPolicy(contract, _weights(contract))
    with pytest.raises(AirworthyError, match="2 vehicles"):
        AvoidPilot(policy, np.zeros((2, 3)), np.ones(2))
    AvoidPilot(policy, np.zeros((2, 3)), np.ones(2), KnownVehicles(np.zeros((2, 3))))


def test_a_training_of_a_half_is_judged_on_the_other(tmp_path: Path) -> None:
    done = train_avoid(tmp_path / "run", TINY, QUICK, ONE, command="airworthy train avoid --vehicles real")
    assert done.finished
    assert done.figures["flights"][0]["vehicles"] == "virtual"
    assert done.iteration == 4
    again = train_avoid(tmp_path / "run", TINY, QUICK, ONE)
    assert again.figures["flights"] == done.figures["flights"]


def test_options_without_a_fleet_change_nothing_and_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AirworthyError, match="without --vehicles"):
        AvoidOptions(condition="none")
    with pytest.raises(AirworthyError, match="identifies nothing"):
        AvoidOptions(vehicles="real", identify_steps=3)
    assert main(["train", "avoid", "--condition", "none", "--out", str(tmp_path / "x")]) == 2
    assert "--condition none changes nothing" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "x").exists()


def _learnt(out: Path) -> Any:
    return aw.train(
        "avoid", out=out, vehicles="virtual", condition="none", iterations=1, env_count=4, window=2, hidden=8,
        place_count=1, flights=1, speeds=(4.0,), areas=(20.0,), threads=1,
    )  # fmt: skip


def test_python_learns_for_a_fleet(tmp_path: Path) -> None:
    assert _learnt(tmp_path / "p").summary["flights"][0]["vehicles"] == "real"


@pytest.mark.slow
def test_what_is_learnt_for_a_fleet_flies_to_a_goal(tmp_path: Path) -> None:
    _learnt(tmp_path / "p")
    words = ["fly", "--scene", "forest:3", "--vehicle", "real_09", "--speed", "2", "--time-limit", "1"]
    assert main([*words, "--pilot", f"avoid:{tmp_path / 'p'}", "--out", str(tmp_path / "flight")]) == 0
    assert main([*words, "--pilot", f"hybrid:{tmp_path / 'p'}", "--out", str(tmp_path / "hybrid")]) == 0


def test_what_identifying_tells_is_its_error_before_it_learnt_of_a_window() -> None:
    torch.manual_seed(1)
    net = Identifier()
    histories, truth = torch.randn(9, 5, 72), torch.randn(5, 3)
    with torch.no_grad():
        before = float((net(histories[:4].flatten(0, 1)) - truth.repeat(4, 1)).square().mean())
    assert identifier_step(net, torch.optim.Adam(net.parameters(), 1e-2), histories, truth) == pytest.approx(before, rel=1e-6)
