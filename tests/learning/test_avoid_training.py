"""Learning to avoid: cost, steps that resume to the same bits, the folder, the pilot, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.jobs.checkpoints import Checkpoints
from airworthy.learning.avoid import AvoidOptions, AvoidProtocol, train_avoid
from airworthy.learning.avoid.evaluation import ForestFlights, fly_forests, planner_guide, policy_guide
from airworthy.learning.avoid.loss import MEAN_OVER, AvoidTick, clearance_cost, window_loss
from airworthy.learning.avoid.network import AvoidNet
from airworthy.learning.avoid.report import COLUMNS, FilmedForest, became_of, forest_cells, forest_svg
from airworthy.learning.avoid.trainer import AvoidTraining
from airworthy.learning.machine import TrainingRunOptions
from airworthy.learning.timed_training import Trained
from airworthy.pilots.avoid_policy.contract import AvoidContract, read_avoid_folder, write_avoid_folder
from airworthy.pilots.avoid_policy.pilot import AvoidPolicy, avoid_pilot, read_avoid_policy, towards
from airworthy.pilots.avoid_policy.sight import REACH, image_input, pooled, turned
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.trajectories import Keyframe, minimum_snap
from airworthy.vehicles import vehicle

TINY = AvoidOptions(seed=3, iterations=3, env_count=8, window=4, windows_per_flight=2, hidden=16, place_count=2)
QUICK = AvoidProtocol(seed=5, flights=2, speeds=(4.0,), areas=(8.0,))
ONE = TrainingRunOptions(device="cpu", threads=1)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A small training, finished and judged; its folder is read only."""
    return train_avoid(tmp_path_factory.mktemp("avoid") / "run", TINY, QUICK, ONE, command="airworthy train avoid")


def _policy(blind: bool = False) -> AvoidPolicy:
    torch.manual_seed(1)
    net = AvoidNet(24)
    with torch.no_grad():
        for tensor in net.parameters():
            tensor.add_(0.1 * torch.randn_like(tensor))
    return AvoidPolicy(AvoidContract(24, blind=blind), {k: v.numpy() for k, v in net.state_dict().items()})


# ---- cost ------------------------------------------------------------------------------------------------------------


def test_clearance_costs_what_is_written_down() -> None:
    """Against loops over numbers: closing speed times a softplus, and times the square below half a metre."""
    rng = np.random.default_rng(0)
    clearance = rng.uniform(-0.2, 0.8, (3, 2, 4))
    near, hit = (float(x) for x in clearance_cost(torch.tensor(clearance)))
    wanted = [[], []]
    for env in range(2):
        along = clearance[:, env].ravel()
        for before, here in pairwise(along):
            closing = min(max(0.9 * 15.0 * 4 * (before - here), 1.0), 20.0)
            wanted[0].append(closing * max(0.5 - here, 0.0) ** 2)
            wanted[1].append(closing * np.log1p(np.exp(-32.0 * here)))
    assert near == pytest.approx(np.mean(wanted[0]), rel=1e-12)
    assert hit == pytest.approx(np.mean(wanted[1]), rel=1e-9)


def test_a_flight_at_the_wanted_velocity_costs_nothing_of_speed() -> None:
    velocity, far = torch.tensor([[3.0, 4.0, 0.0]]), torch.full((1, 4), 9.0)
    calm = AvoidTick(velocity, velocity, far, torch.zeros(1, 3), torch.zeros(1, 3), torch.zeros(1, 3))
    before = velocity.expand(MEAN_OVER - 1, 1, 3)
    cost, parts = window_loss([calm] * 5, before, 5.0, 1.0)
    assert float(cost) == pytest.approx(0.0, abs=1e-5)
    slow = replace(calm, wanted=3.0 * velocity)
    assert window_loss([slow] * 5, before, 5.0, 1.0)[1]["speed"] == pytest.approx(10.0 - 0.5)  # smooth-L1 of 15 - 5
    assert parts["collision"] < 1e-6


# ---- training --------------------------------------------------------------------------------------------------------


def test_a_training_that_was_stopped_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    whole = AvoidTraining(TINY, 1)
    costs = [whole.step() for _ in range(3)]
    first = AvoidTraining(TINY, 1)
    assert first.step() == costs[0]
    Checkpoints(tmp_path).save(first.save(), {})
    second = AvoidTraining(TINY, 1)
    saved = Checkpoints(tmp_path).newest()
    assert saved is not None
    second.restore(saved)
    assert [second.step(), second.step()] == costs[1:]
    assert second.finished
    for name, tensor in whole.weights.items():
        assert tensor.tobytes() == second.weights[name].tobytes(), name
    assert whole.metrics(0.0) == second.metrics(0.0)


def test_seeds_differ_and_a_step_learns() -> None:
    one, other = AvoidTraining(TINY, 1), AvoidTraining(replace(TINY, seed=4), 1)
    before = one.weights
    assert one.step() != other.step()
    assert all(np.isfinite(w).all() for w in one.weights.values())
    assert any((before[name] != w).any() for name, w in one.weights.items())


def test_flights_of_one_speed_class_rise_where_they_touch_nothing() -> None:
    training = AvoidTraining(TINY, 1)
    flights, ids = training.flights, np.arange(8)
    flights.hit[:], flights.progress[:] = False, 1e6
    flights.hit[0] = True
    flights.progress[1] = 0.0
    flights.level[:] = 0.5
    flights.rate(ids, 1.0)
    np.testing.assert_allclose(flights.level, [0.47, 0.5, *[0.53] * 6])


def test_a_folder_holds_policy_log_and_figures(done: Trained) -> None:
    found = json.loads((done.folder / "summary.json").read_text())
    assert (found["kind"], found["iterations"], found["env_steps"]) == ("avoid", 3, 3 * 8 * 4)
    assert [(r["speed_m_s"], r["area_m2"], r["flights"]) for r in found["flights"]] == [(4.0, 8.0, 2)]
    row = found["flights"][0]
    assert row["success"] + row["touched"] + row["left"] + row["late"] == 2
    rows = [json.loads(line) for line in (done.folder / "metrics.jsonl").read_text().splitlines()]
    assert [row["iteration"] for row in rows] == [1, 2, 3]
    assert {"speed", "collision", "nearness", "level", "cpu_s"} <= set(rows[0])
    contract, _ = read_avoid_folder(done.folder)
    assert (contract.hidden, contract.training["iterations"]) == (16, 3)
    assert train_avoid(done.folder, TINY, QUICK, ONE).figures == found
    with pytest.raises(AirworthyError, match="iterations was 3, not 4"):
        train_avoid(done.folder, replace(TINY, iterations=4), QUICK, ONE)


def test_the_page_has_the_flights_of_the_table_and_of_one_forest(done: Trained) -> None:
    page = done.report.read_text(encoding="utf-8")
    (row,) = done.figures["flights"]
    wanted = forest_cells(row)
    assert len(wanted) == len(COLUMNS)
    for cell in wanted:
        assert f"<td>{cell}</td>" in page
    # Success, touched, left and late are all there is, and the interval holds the share.
    assert sum(row[name] for name in ("success", "touched", "left", "late")) == row["flights"]
    low, high = row["success_interval_percent"]
    assert low <= 100.0 * row["success"] / row["flights"] <= high
    assert page.count('class="drone"') == QUICK.flights
    assert page.count('class="trail"') == QUICK.flights
    assert ">log</text>" in page  # of the cost
    assert "airworthy train avoid" in page


def test_a_forest_is_drawn_where_it_stands() -> None:
    """A metre is 20 units; x from 5 m before the forest, y from the left of it; crosses where something was touched."""
    track = np.zeros((21, 2, 3))
    track[:, 0, 0] = np.linspace(-3.0, 43.0, 21)
    track[:, 1, 0], track[:, 1, 1] = 1.0, 2.0
    flown = ForestFlights(np.array([True, False]), np.array([False, True]), np.zeros(2, bool), np.array([4.0, np.nan]), track)
    svg = forest_svg(FilmedForest(4.0, 5.0, np.array([[10.0, -6.0, 0.25]]), flown))
    assert '<circle cx="300" cy="360" r="5.0" fill="var(--axis)"/>' in svg
    starts = re.findall(r'class="drone" cx="(\d+)" cy="(\d+)"', svg)
    assert starts == [("40", "240"), ("120", "200")]
    assert 'd="M113 193l14 14m0 -14l-14 14" stroke="var(--bad)"' in svg
    assert ";960" in svg
    assert svg.count('dur="0.2s"') == 4


def test_every_colour_of_the_film_is_explained() -> None:
    """Whoever came through, touched, left or was late: the ends that there are, each with the colour that it is drawn in."""
    colours = {"flown": "blue", "bad": "red", "warn": "orange"}
    for ends in ((1, 0, 0, 0), (1, 2, 0, 0), (0, 0, 3, 0), (0, 0, 0, 1), (1, 1, 2, 3)):
        success, touched, left, _ = (np.repeat(np.eye(4, dtype=bool)[k], ends) for k in range(4))
        count = sum(ends)
        flown = ForestFlights(success, touched, left, np.full(count, np.nan), np.zeros((3, count, 3)))
        told = became_of(flown)
        assert [int(word) for word in re.findall(r"\d+", told)] == [number for number in ends if number]
        svg = forest_svg(FilmedForest(4.0, 5.0, np.zeros((0, 3)), flown))
        drawn = {colours[role] for role in re.findall(r'class="trail"[^>]*--(\w+)\)', svg)}
        assert drawn == set(re.findall("blue|red|orange", told))


def test_a_finished_training_is_judged_again(done: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(shutil.copytree(done.folder, tmp_path / "run"))
    monkeypatch.setattr(AvoidTraining, "step", lambda self: pytest.fail("it learns again"))
    again = train_avoid(folder, TINY, replace(QUICK, flights=1), ONE)
    assert [row["flights"] for row in again.figures["flights"]] == [1]
    assert again.figures["training_cpu_s"] == done.figures["training_cpu_s"]
    assert again.report.read_text(encoding="utf-8").count('class="drone"') == 1
    assert json.loads((folder / "summary.json").read_text(encoding="utf-8")) == json.loads(json.dumps(dict(again.figures)))


@pytest.mark.slow
def test_the_command_trains_and_says_what_came_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = [f"--{name.replace('_', '-')}={getattr(TINY, name)}" for name in ("env_count", "window", "hidden", "place_count")]
    words = ["train", "avoid", "--iterations", "1", "--flights", "1", "--out", str(tmp_path / "run"), "--json", *small]
    assert main([*words, "--windows-per-flight", "2", "--speeds", "12", "--areas", "2.5"]) == 0
    assert f"--out {tmp_path / 'run'}" in (tmp_path / "run/report.html").read_text(encoding="utf-8")
    found = json.loads(capsys.readouterr().out)
    assert found["finished"]
    assert [(row["speed_m_s"], row["area_m2"]) for row in found["flights"]] == [(12.0, 2.5)]
    assert found["command"].startswith("airworthy train avoid --iterations 1")


# ---- the policy in flight --------------------------------------------------------------------------------------------


def test_the_pilots_network_is_the_trainers() -> None:
    policy = _policy()
    net = AvoidNet(24)
    net.load_state_dict({k: torch.from_numpy(v) for k, v in policy.weights.items()})
    rng = np.random.default_rng(3)
    depth, state = rng.uniform(0.2, 20.0, (5, 192)).astype(np.float32), rng.normal(size=(5, 10)).astype(np.float32)
    memory = rng.uniform(-1.0, 1.0, (5, 24)).astype(np.float32)
    with torch.no_grad():
        image = image_input(torch.from_numpy(depth), torch.clip)
        wanted, after = net(image, torch.from_numpy(state), torch.from_numpy(memory))
    out, kept = policy.decide(depth, state, memory)
    np.testing.assert_allclose(out, wanted.numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(kept, after.numpy(), rtol=1e-4, atol=1e-5)
    alone = policy.decide(depth[2:3], state[2:3], memory[2:3])
    assert (alone[0].tobytes(), alone[1].tobytes()) == (out[2:3].tobytes(), kept[2:3].tobytes())


def test_a_blind_policy_does_not_see() -> None:
    blind, rng = _policy(blind=True), np.random.default_rng(3)
    state, memory = rng.normal(size=(1, 10)), np.zeros((1, 24), np.float32)
    one, other = (blind.decide(np.full((1, 192), d, np.float32), state, memory)[0] for d in (1.0, 9.0))
    np.testing.assert_array_equal(one, other)
    seeing = _policy()
    assert (seeing.decide(np.full((1, 192), 1.0, np.float32), state, memory)[0] != one).any()


def test_of_each_block_the_nearest_return_counts() -> None:
    depth = np.full((2, 48, 64), np.inf)
    depth[0, 5, 9], depth[0, 4, 8], depth[0, 6, 9] = 3.0, 7.0, 0.0  # 0 is no return
    small = pooled(depth).reshape(2, 12, 16)
    assert small[0, 1, 2] == 3.0
    assert (np.delete(small[0].ravel(), 16 + 2) == REACH).all()
    assert image_input(np.array([0.1, 3.0, 99.0]), np.clip) == pytest.approx([9.4, 0.4, 3.0 / 16.0 - 0.6])


def test_frames_and_wishes() -> None:
    heading = np.array([[0.0, 1.0]])
    np.testing.assert_allclose(turned(np.array([[0.0, 2.0, 1.0]]), heading), [[2.0, 0.0, 1.0]])
    there = turned(np.array([[1.0, 2.0, 3.0]]), heading)
    np.testing.assert_allclose(turned(there, heading, back=True), [[1.0, 2.0, 3.0]])
    wanted, direction = towards(np.array([[30.0, 40.0, 0.0]]), np.zeros((1, 3)), np.array([5.0]))
    np.testing.assert_allclose(wanted, [[3.0, 4.0, 0.0]])
    near, _ = towards(0.02 * direction, np.zeros((1, 3)), np.array([5.0]))
    assert np.linalg.norm(near) <= 0.02


@pytest.mark.slow
def test_forests_are_flown_by_policies_and_planners(done: Trained) -> None:
    flown = fly_forests(policy_guide(read_avoid_policy(done.folder)), QUICK, 4.0, 8.0)
    again = fly_forests(policy_guide(read_avoid_policy(done.folder)), QUICK, 4.0, 8.0)
    np.testing.assert_array_equal(flown.track, again.track)
    straight = fly_forests(planner_guide("straight"), replace(QUICK, areas=(3.0,)), 4.0, 3.0)
    assert straight.touched.all()
    assert straight.figures["mean_speed_m_s"] is None


def test_fly_takes_the_policy_with_its_camera(done: Trained, tmp_path: Path) -> None:
    words = ["fly", "--pilot", f"avoid:{done.folder}", "--scene", "forest:1", "--no-report"]
    assert main([*words, "--time-limit", "1", "--out", str(tmp_path / "flight")]) == 0
    record = json.loads((tmp_path / "flight" / "record" / "record.json").read_text())
    assert "policy" in json.dumps(record)
    assert main([*words, "--speed", "20", "--acceleration", "20", "--out", str(tmp_path / "fast")]) == 2
    assert main([*words, "--hold", "2", "--out", str(tmp_path / "held")]) == 2


def test_a_path_is_followed_by_its_point_three_seconds_on() -> None:
    simulator = Simulator([vehicle("flightgoggles")], SimulatorConfig(level="acceleration"))
    rest = (0.0, 0.0, 0.0)
    ends = [
        Keyframe(t, x=(x, *rest), y=(0.0, *rest), z=(1.5, *rest), yaw=(0.0, 0.0, 0.0)) for t, x in ((0.0, 0.0), (8.0, 20.0))
    ]
    line = minimum_snap(ends)
    pilot = avoid_pilot(_policy(), simulator, line)
    np.testing.assert_allclose(pilot.goal(np.array([1.0])), line.sample(np.array([4.0])).position)
    # Septic from rest to rest: its peak is 35/16 of its mean.
    assert pilot.speed == pytest.approx(35.0 / 16.0 * 20.0 / 8.0, rel=1e-3)
    slow = Simulator([vehicle("flightgoggles")], SimulatorConfig(level="acceleration", control_rate=10.0))
    with pytest.raises(AirworthyError, match="decides at 15 Hz"):
        avoid_pilot(_policy(), slow, line)


# ---- refused ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"iterations": 0}, "iterations"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"window": 1}, "window"),
        ({"fastest": float("nan")}, "fastest"),
        ({"collision_weight": -1.0}, "collision_weight"),
    ],
)
def test_options_that_learn_nothing_are_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(AirworthyError, match=told):
        AvoidOptions(**given)


def test_folders_that_are_no_policy_are_refused(tmp_path: Path) -> None:
    policy = _policy()
    folder = write_avoid_folder(tmp_path / "p", policy.contract, policy.weights)
    assert read_avoid_policy(folder).contract == policy.contract
    weights = (folder / "weights.safetensors").read_bytes()
    (folder / "weights.safetensors").write_bytes(weights[:-1] + bytes([weights[-1] ^ 1]))
    with pytest.raises(AssetError, match="changed or damaged"):
        read_avoid_policy(folder)
    with pytest.raises(AirworthyError, match="cannot be written"):
        write_avoid_folder(tmp_path / "q", AvoidContract(25), policy.weights)
    with pytest.raises(AirworthyError, match="lacks the tensor"):
        AvoidPolicy(AvoidContract(25), policy.weights)
    with pytest.raises(AssetError):
        read_avoid_policy(tmp_path)
    assert main(["fly", "--pilot", "avoid", "--scene", "forest:1", "--out", str(tmp_path / "x")]) == 2
