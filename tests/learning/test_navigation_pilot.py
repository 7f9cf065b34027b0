"""A navigation policy as a pilot: it sees and knows what it learnt from, flies rooms by its camera, refuses what is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.cli.main import main
from airworthy.core.arrays import Array, ArrayF32
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.learning.export_motor import export_policy
from airworthy.learning.navigation.environments import NavigationEnvironments
from airworthy.learning.navigation.eyes import BlindEye, PooledEye
from airworthy.learning.navigation.judging import fly_level_piloted, room_scene, task_at_level
from airworthy.learning.navigation.options import RoomsProtocol
from airworthy.learning.navigation.tasks import DepthNavigation
from airworthy.pilots import FlightPlan, fly
from airworthy.pilots.catalogue import pilot_for, pilot_level, pilot_sensors, policy_word
from airworthy.pilots.navigation_policy import eyes
from airworthy.pilots.navigation_policy import pilot as flown
from airworthy.pilots.navigation_policy.contract import NavigationContract, write_navigation_folder
from airworthy.pilots.navigation_policy.network import NavigationPolicy, read_navigation_policy
from airworthy.pilots.navigation_policy.sight import (
    CAMERA,
    MOUNT,
    STATE_NUMBERS,
    commanded,
    known_state,
    navigation_camera,
    pooled_image,
)
from airworthy.pilots.network_files import write_sealed
from airworthy.pilots.pilot import Observation
from airworthy.scenes import SceneBatch
from airworthy.simulation import MountedSensors, Simulator, SimulatorConfig
from airworthy.simulation.sensor_state import Sample
from airworthy.trajectories import Keyframe, minimum_snap
from airworthy.vehicles import vehicle
from airworthy.verification.sealing import seal

LEARNT = Path(__file__).parent.parent / "fixtures" / "navigation"
ROOMS = 16


def drawn_policy(
    hidden: tuple[int, ...] = (12, 8), recurrent: int = 6, seed: int = 0, **fields: Any
) -> tuple[NavigationPolicy, dict[str, Array]]:
    rng = np.random.default_rng(seed)
    contract = NavigationContract(hidden=hidden, recurrent=recurrent, **fields)
    weights = {name: rng.normal(0.0, 0.3, shape) for name, shape in contract.shapes().items()}
    weights["seen.deviation"] = np.abs(weights["seen.deviation"]) + 0.5
    return NavigationPolicy(contract, weights), weights


# ---- What it sees, knows, and says ------------------------------------------------------------------------------------


def test_it_knows_what_the_task_shows() -> None:
    """NumPy's observation and command against those of the task's own functions, without noise, after some flight."""
    environments = NavigationEnvironments(DepthNavigation(noise=False), 24, PooledEye(), seed=2)
    rng = np.random.default_rng(0)
    for _ in range(6):
        action = rng.uniform(-1.0, 1.0, (24, 3)).astype(np.float32)
        environments.step(action)
    state, goal = environments.flights.state.astype(float), environments.flights.memory[:3].T.astype(float)
    begun = environments.flights.age == 0
    before = np.where(begun[:, None], 0.0, commanded(action.astype(float)))
    known = known_state(state[:3].T, state[3:6].T, state[6:10].T, state[10:13].T, goal, before)
    assert known.shape == (24, STATE_NUMBERS)
    np.testing.assert_allclose(known, environments.observation[:, :STATE_NUMBERS], rtol=1e-5, atol=1e-5)


def test_its_camera_is_the_middle_of_those_that_it_learnt_with() -> None:
    low, high = DepthNavigation.mount
    np.testing.assert_allclose(0.5 * (np.array(low) + np.array(high)), [*MOUNT, 0.0, 0.0, 0.0], atol=1e-12)
    device, eye = navigation_camera(), PooledEye()
    # Rays of the middles of pixels through the lens, against those of training.
    rows, columns = eye.rays.shape
    lens: Any = device.projection
    x = (np.arange(columns) + 0.5 - lens.cx) / lens.fx
    np.testing.assert_allclose(-x, eye.rays.directions[0, :, 1], atol=1e-12)
    distance = np.random.default_rng(1).uniform(0.0, 10.0, (3, rows, columns)).astype(np.float32)
    np.testing.assert_array_equal(pooled_image(np.maximum(distance, 1e-6)), eye.see(np.maximum(distance, 1e-6)))
    nothing = np.array([[[np.nan, np.inf, -1.0, 99.0] * 16] * 36])
    assert np.unique(pooled_image(nothing)) == pytest.approx(3.0 / 10.0 - 0.6)
    # A blind eye sees none of what another sees.
    np.testing.assert_array_equal(BlindEye(eye).see(distance), pooled_image(np.full_like(distance, np.nan)))


@pytest.mark.parametrize(("hidden", "recurrent"), [((12, 8), 6), ((9,), 5), ((12, 8), 0), ((7, 6, 5), 4)])
def test_it_decides_as_torch_does(hidden: tuple[int, ...], recurrent: int) -> None:
    """Tanh layers and a GRU by torch's own modules in float64, over several decisions with memory."""
    torch = pytest.importorskip("torch")
    policy, weights = drawn_policy(hidden, recurrent)
    held = {name: torch.from_numpy(x.astype(np.float32).astype(np.float64)) for name, x in weights.items()}
    cell = torch.nn.GRUCell(hidden[-1], max(recurrent, 1), dtype=torch.float64)
    if recurrent:
        found = {"weight_ih": "input.weight", "bias_ih": "input.bias", "weight_hh": "memory.weight", "bias_hh": "memory.bias"}
        cell.load_state_dict({mine: held[theirs] for mine, theirs in found.items()})
    memory, remembered = policy.begin(5), torch.zeros(5, max(recurrent, 1), dtype=torch.float64)
    for seed in range(4):
        seen = np.random.default_rng(seed).normal(size=(5, STATE_NUMBERS + 192)).astype(np.float32)
        x = (torch.from_numpy(seen.astype(np.float64)) - held["seen.mean"]) / held["seen.deviation"]
        for k in range(len(hidden)):
            x = torch.tanh(x @ held[f"layers.{k}.weight"].T + held[f"layers.{k}.bias"])
        if recurrent:
            x = remembered = cell(x, remembered).detach()
        wanted = torch.tanh(x @ held["action.weight"].T + held["action.bias"])
        action, memory = policy.act(seen, memory)
        np.testing.assert_allclose(action, wanted.numpy(), atol=2e-6)


def test_a_flight_is_decided_alike_in_any_batch() -> None:
    policy, _ = drawn_policy()
    seen = np.random.default_rng(3).normal(size=(33, STATE_NUMBERS + 192)).astype(np.float32)
    memory = np.random.default_rng(4).normal(size=(33, 6)).astype(np.float32)
    whole, after = policy.act(seen, memory)
    alone, then = policy.act(seen[20:21], memory[20:21])
    np.testing.assert_array_equal(alone[0], whole[20])
    np.testing.assert_array_equal(then[0], after[20])


# ---- Flights ------------------------------------------------------------------------------------------------------------


def test_it_flies_rooms_by_its_camera_and_not_without_an_image(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rooms of the first level, in the simulator, from its own depth camera; then blind, as if nothing were near."""
    policy, protocol = flown.read_flown_policy(LEARNT), RoomsProtocol(flights=ROOMS)
    seeing = fly_level_piloted(policy, PooledEye(), protocol, 15).success
    monkeypatch.setattr(eyes, "pooled_image", lambda depth: pooled_image(np.full(np.shape(depth), np.inf)))
    blind = fly_level_piloted(policy, PooledEye(), protocol, 15).success
    assert seeing.sum() >= 12
    assert blind.sum() <= seeing.sum() // 2


def test_fly_takes_it_from_start_to_goal(tmp_path: Path) -> None:
    words = ["fly", "--pilot", f"navigation:{LEARNT}", "--scene", "obstacle_room", "--vehicle", "lmf2", "--no-report"]
    assert main([*words, "--gains", "lmf2", "--time-limit", "2", "--out", str(tmp_path / "flight")]) == 0
    record = json.loads((tmp_path / "flight" / "record" / "record.json").read_text())
    assert "policy" in json.dumps(record)
    # What the law does not read of a velocity's command is idle for it, too.
    assert main([*words, "--gain", "pull_max=3", "--out", str(tmp_path / "idle")]) == 2


def test_a_slower_flight_is_slower_and_holds_at_its_goal() -> None:
    policy, _ = drawn_policy()
    simulator = Simulator([vehicle("lmf2")] * 2, SimulatorConfig(level="velocity"))
    scene = task_at_level("depth_navigation", 15, 1)
    place = NavigationEnvironments(scene, 1, PooledEye(), 1).flights.place[:, 0]
    batch = SceneBatch([room_scene(scene.rooms, place, "room")] * 2, 2)
    simulator.reset(position=np.tile(np.array([place[3:6] + place[6:9]]) * 0.5, (2, 1)))
    mounted = MountedSensors(simulator, batch, eyes.DepthSight().sensors)
    middle = np.array(simulator.position, float)[0]
    far, near = (middle + np.array([along, 0.0, 0.0]) for along in (50.0, 0.3))
    pilot = flown.NavigationPilot(flown.FlownPolicy(policy, eyes.DepthSight()), np.stack([far, near]), np.full(2, 0.5))
    plan = FlightPlan(duration=0.3)
    fly(simulator, pilot, plan, True, mounted)
    wanted = pilot._wanted
    assert np.linalg.norm(wanted[0, :3]) <= 0.5 + 1e-9
    # A goal within a metre is held by a velocity along the way to it, without a turn.
    np.testing.assert_allclose(wanted[1], [*(near - np.array(simulator.position, float)[1]), 0.0], atol=0.05)


class Recorded(NavigationPolicy):
    """Keeps what it is shown, and asks for whole actions."""

    def __init__(self, contract: NavigationContract):
        self.contract, self.seen = contract, np.zeros((0, STATE_NUMBERS))

    def act(self, observation: ArrayF32, memory: ArrayF32) -> tuple[ArrayF32, ArrayF32]:
        self.seen = np.array(observation[:, :STATE_NUMBERS], float)
        return np.ones((len(observation), self.contract.actions), np.float32), memory


def decided(task: str, goal: Array, velocity: Array, rate: Array) -> tuple[Array, Array]:
    """What a policy is shown, and what its pilot commands, in level flights from the origin that see nothing, (n, ...) each."""
    count, lidar = len(goal), task == "lidar_navigation"
    fields: dict[str, Any] = {"numbers": 320, "actions": 4} if lidar else {}
    policy = Recorded(NavigationContract(task, recurrent=0, **fields))  # type: ignore[arg-type]
    eye: eyes.FlownEye = eyes.LidarSight() if lidar else eyes.DepthSight()
    zeros, level = np.zeros((count, 3)), np.tile([0.0, 0.0, 0.0, 1.0], (count, 1))
    empty = {"range": np.full((count, 48, 120), np.inf)} if lidar else {"depth": np.full((count, 36, 64), np.inf)}
    first = np.zeros(count, np.int64)
    sample = Sample(np.zeros(count), first, first, np.ones(count, bool), zeros, level, empty)
    known = {"position": zeros, "velocity": velocity, "attitude": level, "rate": rate}
    pilot = flown.NavigationPilot(flown.FlownPolicy(policy, eye), goal, np.full(count, 2.0))
    command = pilot.command(Observation(np.zeros(count), known, {eye.sensor: sample}))
    return policy.seen, command


@pytest.mark.parametrize(("task", "farthest"), [("depth_navigation", 8.0), ("lidar_navigation", 10.0)])
def test_a_far_goal_is_shown_as_far_as_those_of_training(task: str, farthest: float) -> None:
    """As far as it is up to there, then at that distance on the same line."""
    way = np.array([0.6, -0.48, 0.64])
    distance = np.array([2.0, 7.9, 8.1, 9.9, 10.1, 200.0])
    zeros = np.zeros((6, 3))
    seen, _ = decided(task, distance[:, None] * way, zeros, zeros)
    np.testing.assert_allclose(seen[:, 3], np.minimum(distance, farthest), rtol=1e-6)
    np.testing.assert_allclose(seen[:, :3], np.tile(way, (6, 1)), rtol=1e-6)


def test_holding_by_accelerations_brakes_what_moves_and_not_what_turns() -> None:
    """The way less twice the velocity, at most 2 m/s^2, of level flights with whatever rate."""
    rng = np.random.default_rng(7)
    way, velocity = rng.uniform(-0.5, 0.5, (2, 20, 3))
    velocity[:4] *= 10.0
    _, wanted = decided("lidar_navigation", way, velocity, rng.uniform(-2.0, 2.0, (20, 3)))
    pull = way - 2.0 * velocity
    size = np.linalg.norm(pull, axis=1, keepdims=True)
    assert (size > 2.0).any()
    assert (size < 2.0).any()
    np.testing.assert_allclose(wanted[:, :3], pull * np.minimum(1.0, 2.0 / size), rtol=1e-9)


def test_a_path_is_followed_and_limits_are_one_sentence() -> None:
    rest = (0.0, 0.0, 0.0)

    def line(length: float) -> Any:
        ends = ((0.0, 0.0), (8.0, length))
        return minimum_snap([Keyframe(t, x=(x, *rest), y=(0.0, *rest), z=(1.5, *rest), yaw=(0.0, 0.0, 0.0)) for t, x in ends])

    simulator = Simulator([vehicle("lmf2")], SimulatorConfig(level="velocity"))
    path = line(6.0)
    policy = flown.FlownPolicy(drawn_policy()[0], eyes.DepthSight())
    pilot = flown.navigation_pilot(policy, simulator, path)
    np.testing.assert_allclose(pilot.goal(np.array([1.0])), path.sample(np.array([4.0])).position)
    with pytest.raises(AirworthyError, match="commands at most 2 m/s"):
        flown.navigation_pilot(policy, simulator, line(20.0))
    slow = Simulator([vehicle("lmf2")], SimulatorConfig(level="velocity", control_rate=5.0))
    with pytest.raises(AirworthyError, match="decides at 10 Hz"):
        flown.navigation_pilot(policy, slow, path)


# ---- Folders ------------------------------------------------------------------------------------------------------------


def test_a_folder_is_a_pilot_by_its_word(tmp_path: Path) -> None:
    policy, weights = drawn_policy()
    folder = write_navigation_folder(tmp_path / "p", policy.contract, weights)
    word = policy_word(folder)
    assert word == f"navigation:{folder}"
    assert pilot_level(word) == "velocity"
    assert list(pilot_sensors(word, vehicle("lmf2"))) == [CAMERA]
    assert read_navigation_policy(folder).contract == policy.contract
    assert not seal(folder)
    with pytest.raises(AirworthyError, match="not exported"):
        export_policy(folder, tmp_path / "p.onnx")


def test_folders_that_are_no_policy_are_refused(tmp_path: Path) -> None:
    policy, weights = drawn_policy()
    folder = write_navigation_folder(tmp_path / "p", policy.contract, weights)
    whole = (folder / "weights.safetensors").read_bytes()
    (folder / "weights.safetensors").write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(AssetError, match="changed or damaged"):
        read_navigation_policy(folder)
    (folder / "weights.safetensors").write_bytes(whole)
    # Sealed again by whoever changed it: what the numbers mean is compared with this program's.
    table = json.loads((folder / "contract.json").read_text())
    for key, value in (("rate_hz", 20.0), ("image", {**table["image"], "reach_m": 5.0})):
        write_sealed(folder / "contract.json", {**table, key: value})
        with pytest.raises(AssetError, match=key.partition("_")[0]):
            read_navigation_policy(folder)
    with pytest.raises(AirworthyError, match="cannot be written"):
        write_navigation_folder(tmp_path / "q", NavigationContract(hidden=(13, 8), recurrent=6), weights)
    with pytest.raises(AirworthyError, match="lacks the tensor"):
        NavigationPolicy(NavigationContract(hidden=(13, 8), recurrent=6), weights)
    flat = {**weights, "seen.deviation": 0.0 * weights["seen.deviation"]}
    with pytest.raises(AssetError, match="no training gives less"):
        read_navigation_policy(write_navigation_folder(tmp_path / "r", policy.contract, flat))
    huge = {**weights, "action.bias": np.full(3, 1e6)}
    with pytest.raises(AssetError, match="beyond 10000"):
        read_navigation_policy(write_navigation_folder(tmp_path / "s", policy.contract, huge))


def test_mistakes_on_the_command_line_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["fly", "--scene", "obstacle_room", "--vehicle", "lmf2", "--out", str(tmp_path / "x")]
    for more, told in (
        (["--pilot", "navigation"], "navigation:FOLDER"),
        (["--pilot", f"navigation:{tmp_path / 'none'}"], "none"),
        (["--pilot", f"navigation:{LEARNT}", "--speed", "3"], "at most 2 m/s"),
    ):
        assert main([*words, *more]) == 2
        assert told in capsys.readouterr().err
    simulator = Simulator([vehicle("lmf2")], SimulatorConfig(level="velocity"))
    with pytest.raises(AssetError):
        pilot_for(f"navigation:{tmp_path}", simulator, None)  # type: ignore[arg-type]
